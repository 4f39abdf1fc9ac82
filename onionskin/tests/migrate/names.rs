//! Names that servers write in their own way, and names that are nearly those of other tables.

use super::*;

/// MariaDB's engine writes `tä` in another way than its catalogue. A foreign key from a table that
/// the account may not see is found nevertheless.
pub fn keys_to_a_table_with_an_accent(kind: Kind) {
    let Some(server) = start(kind) else { return };
    let mut session = server.connect();
    for sql in [
        "CREATE DATABASE `dä`",
        "CREATE DATABASE beside",
        "CREATE TABLE `dä`.`tä-` (id INT PRIMARY KEY, s VARCHAR(30))",
        "CREATE TABLE beside.c (id INT PRIMARY KEY, r INT, \
         CONSTRAINT `kä` FOREIGN KEY (r) REFERENCES `dä`.`tä-` (id))",
        "INSERT INTO `dä`.`tä-` VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO beside.c VALUES (1, 1)",
        "CREATE USER mover IDENTIFIED BY 'secret'",
        "GRANT ALL ON `dä`.* TO mover",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT, PROCESS ON *.* TO mover",
    ] {
        session.must(sql);
    }
    match kind {
        Kind::MySql => session.must("GRANT XA_RECOVER_ADMIN ON *.* TO mover"),
        Kind::MariaDb => {
            session.must("GRANT BINLOG MONITOR, CONNECTION ADMIN, RELOAD ON *.* TO mover")
        }
    };
    let socket = format!("unix:{}", server.socket().display());
    let mut command = migrate_at(&socket, None, &["dä.tä-", "--rebuild"]);
    command
        .args(["--user", "mover"])
        .env("ONIONSKIN_PASSWORD", "secret");
    let (succeeded, text) = run_migration(command);
    let is_told = text.contains("from a table that this account may not see");
    assert!(!succeeded && is_told, "{text}");

    let before = session.text("SHOW CREATE TABLE beside.c").expect("a table");
    must_migrate(&server, None, &["dä.tä-", "--rebuild", "--drop-old"]);
    assert_eq!(
        session.text("SHOW CREATE TABLE beside.c").expect("a table"),
        before
    );
    assert_eq!(
        session.must_fail("DELETE FROM `dä`.`tä-` WHERE id = 1"),
        1451
    );
    session.must("INSERT INTO beside.c VALUES (2, 2)");
}

/// The catalogue's collation takes `T` for `t` and `tä` for `ta`. They are tables of their own.
pub fn tables_with_nearly_the_same_name(kind: Kind) {
    let Some(server) = start(kind) else { return };
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    for (number, (table, child)) in [("ta", "c"), ("TA", "C"), ("tä", "ç")].iter().enumerate() {
        let sql = format!(
            "CREATE TABLE app.`{table}` (id INT AUTO_INCREMENT PRIMARY KEY, `{table}_s` VARCHAR(30), KEY (`{table}_s`))"
        );
        session.must(&sql);
        let sql = format!(
            "CREATE TABLE app.`{child}` (id INT PRIMARY KEY, r INT, \
             CONSTRAINT `key {number}` FOREIGN KEY (r) REFERENCES app.`{table}` (id))"
        );
        session.must(&sql);
        session.must(&format!(
            "INSERT INTO app.`{table}` VALUES (7, 'a'), (9, 'b')"
        ));
        session.must(&format!("INSERT INTO app.`{child}` VALUES (1, 7)"));
    }
    for table in ["ta", "TA", "tä", "c", "C"] {
        let name = format!("app.{table}");
        must_migrate(&server, None, &[&name, "--rebuild", "--drop-old"]);
    }
    for (table, child) in [("ta", "c"), ("TA", "C"), ("tä", "ç")] {
        let sql = format!("DELETE FROM app.`{table}` WHERE id = 7");
        assert_eq!(session.must_fail(&sql), 1451, "{table}");
        let shown = session.text(&format!("SHOW CREATE TABLE app.`{child}`"));
        let shown = shown.expect("a table");
        assert!(shown.contains(&format!("REFERENCES `{table}`")), "{shown}");
        session.must(&format!(
            "INSERT INTO app.`{table}` (`{table}_s`) VALUES ('c')"
        ));
        let last = session.text(&format!("SELECT MAX(id) FROM app.`{table}`"));
        assert_eq!(last.expect("a number"), "10");
    }
}
