//! Suite `sm`: cells of version 2, whose nonces are synthetic, beside tables of older programs,
//! whose CHECK constraints demand version 1.
//!
//! `sm_nonces/*.sql` are a table and its rows as the last program with random nonces wrote them,
//! one for each family of servers, and `*.json` its keys.

use std::os::unix::fs::PermissionsExt;

use onionskin_testkit::*;

on_both_servers!(
    a_table_of_an_older_program_is_read_and_written,
    new_tables_have_cells_of_version_2,
);

const SM: &str = "suite = \"sm\"";

/// The first bytes of the cells of a column.
fn kinds(admin: &mut Session, table: &str, column: &str) -> String {
    admin
        .text(&format!(
            "SELECT DISTINCT HEX(SUBSTR(`{column}$enc`, 1, 1)) FROM {table} \
             WHERE `{column}$enc` IS NOT NULL"
        ))
        .unwrap()
}

fn a_table_of_an_older_program_is_read_and_written(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let (sql, keys) = match kind {
        Kind::MariaDb => (
            include_str!("sm_nonces/mariadb.sql"),
            include_str!("sm_nonces/mariadb.json"),
        ),
        Kind::MySql => (
            include_str!("sm_nonces/mysql.sql"),
            include_str!("sm_nonces/mysql.json"),
        ),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys.json");
    std::fs::write(&file, keys).expect("the keys");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("their mode");
    let mut admin = server.connect();
    admin.must("CREATE DATABASE fixture");
    admin.must("USE fixture");
    for statement in sql.split(";\n").filter(|s| !s.trim().is_empty()) {
        admin.must(statement);
    }
    let options = ProxyOptions {
        settings: SM.into(),
        tables: "[protect.\"fixture.*\"]\nextra = []\n".into(),
        keys: Some(file),
        ..ProxyOptions::default()
    };
    let proxy = Proxy::start_with(&server, options);
    let mut session = proxy.connect_to("fixture");
    let old = "1\t10\talice\tfirst\n2\t20\tbob\tNULL\n\
               3\tNULL\tNULL\tthird, which is longer than the others";
    assert_eq!(
        session.text("SELECT * FROM old ORDER BY id").unwrap(),
        old,
        "old cells open"
    );
    assert_eq!(
        session
            .text("SELECT id FROM old WHERE name = 'bob'")
            .unwrap(),
        "2"
    );
    // Its CHECK demands version 1, and gets it.
    session.must("INSERT INTO old VALUES (4, 40, 'dora', 'new')");
    session.must("UPDATE old SET name = 'bert', note = 'changed' WHERE id = 2");
    for column in ["n", "name", "note"] {
        assert_eq!(kinds(&mut admin, "fixture.old", column), "12", "{column}");
    }
    // A column that is added is a new one; those that are there keep their format.
    session.must("ALTER TABLE old ADD COLUMN extra VARCHAR(20)");
    session.must("ALTER TABLE old RENAME COLUMN name TO title");
    session.must("INSERT INTO old VALUES (5, 50, 'emil', 'last', 'more')");
    assert_eq!(kinds(&mut admin, "fixture.old", "title"), "12");
    assert_eq!(kinds(&mut admin, "fixture.old", "extra"), "22");
    let all = "1\t10\talice\tfirst\tNULL\n2\t20\tbert\tchanged\tNULL\n\
               3\tNULL\tNULL\tthird, which is longer than the others\tNULL\n\
               4\t40\tdora\tnew\tNULL\n5\t50\temil\tlast\tmore";
    let everything = "SELECT * FROM old ORDER BY id";
    assert_eq!(session.text(everything).unwrap(), all);
    // New ids, and the newest cells.
    must_migrate(&server, Some(&proxy), &["fixture.old", "--rotate"]);
    let mut session = proxy.connect_to("fixture");
    assert_eq!(session.text(everything).unwrap(), all);
    for column in ["n", "title", "note", "extra"] {
        assert_eq!(kinds(&mut admin, "fixture.old", column), "22", "{column}");
    }
}

fn new_tables_have_cells_of_version_2(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let options = ProxyOptions {
        settings: SM.into(),
        tables: "[protect.\"app.*\"]\nname = [\"eq\"]\n".into(),
        ..ProxyOptions::default()
    };
    let proxy = Proxy::start_with(&server, options);
    let mut admin = server.connect();
    admin.must("CREATE DATABASE app");
    let mut session = proxy.connect_to("app");
    session.must("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20))");
    session.must("INSERT INTO t VALUES (1, 'alice'), (2, 'alice')");
    assert_eq!(kinds(&mut admin, "app.t", "name"), "22");
    assert_eq!(
        admin
            .text("SELECT COUNT(DISTINCT `name$enc`) FROM app.t")
            .unwrap(),
        "2"
    );
    // A cell that says that it is of version 1 is refused, and does not open where the CHECK is
    // gone.
    let disguised = "CONCAT(X'12', SUBSTR(`name$enc`, 2))";
    admin.must_fail(&format!(
        "UPDATE app.t SET `name$enc` = {disguised} WHERE id = 1"
    ));
    let check = admin
        .text(
            "SELECT constraint_name FROM information_schema.table_constraints \
             WHERE table_schema = 'app' AND table_name = 't' AND constraint_type = 'CHECK'",
        )
        .unwrap();
    admin.must(&format!("ALTER TABLE app.t DROP CONSTRAINT `{check}`"));
    admin.must(&format!(
        "UPDATE app.t SET `name$enc` = {disguised} WHERE id = 1"
    ));
    let refused = session.text("SELECT name FROM t WHERE id = 1");
    assert!(refused.is_err_and(|e| e.message.contains("OS1102")));
    assert_eq!(
        session.text("SELECT name FROM t WHERE id = 2").unwrap(),
        "alice"
    );
}
