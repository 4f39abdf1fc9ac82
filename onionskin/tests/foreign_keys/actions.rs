//! ON UPDATE CASCADE and SET NULL over protected keys: definitions as everywhere, and a clear
//! refusal of what would do it.

use super::*;

fn refused(pair: &mut Pair, sql: &str, code: &str) {
    let said = pair.protected.run(sql).map(|_| sql.to_owned());
    let said = said.unwrap_err().to_string();
    assert!(said.contains(code), "{sql}\n{said}");
}

const PARENT: &str = "CREATE TABLE p (id CHAR(36) PRIMARY KEY, n INT UNIQUE, v VARCHAR(20) UNIQUE, note VARCHAR(20))";
const RULES: &str = "SELECT CONSTRAINT_NAME, UNIQUE_CONSTRAINT_NAME, UPDATE_RULE, DELETE_RULE, TABLE_NAME, REFERENCED_TABLE_NAME \
                     FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'app' ORDER BY 1";

/// As Sequelize and TypeORM define them.
pub fn actions_stand_in_definitions(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(
        &mut pair,
        &[
            PARENT,
            "CREATE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, p_id CHAR(36), \
             CONSTRAINT f1 FOREIGN KEY (p_id) REFERENCES p (id) ON DELETE SET NULL ON UPDATE CASCADE)",
            "CREATE TABLE d (p_id CHAR(36) NOT NULL, x INT NOT NULL, PRIMARY KEY (p_id, x), \
             CONSTRAINT f2 FOREIGN KEY (p_id) REFERENCES p (id) ON UPDATE CASCADE ON DELETE CASCADE)",
            "CREATE TABLE e (n INT, v VARCHAR(20))",
            "ALTER TABLE e ADD CONSTRAINT f3 FOREIGN KEY (n) REFERENCES p (n) ON DELETE SET NULL ON UPDATE NO ACTION, \
             ADD CONSTRAINT f4 FOREIGN KEY (v) REFERENCES p (v) ON UPDATE SET NULL",
            "CREATE TABLE s (id CHAR(36) PRIMARY KEY, up CHAR(36), KEY k (up), \
             CONSTRAINT f5 FOREIGN KEY (up) REFERENCES s (id) ON DELETE SET NULL ON UPDATE RESTRICT)",
            RULES,
            "SHOW CREATE TABLE c",
            "SHOW CREATE TABLE d",
            "SHOW CREATE TABLE e",
            "SHOW CREATE TABLE s",
            "SELECT rc.UPDATE_RULE, kcu.COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE kcu \
             JOIN information_schema.REFERENTIAL_CONSTRAINTS rc ON rc.CONSTRAINT_SCHEMA = kcu.CONSTRAINT_SCHEMA \
             AND rc.TABLE_NAME = kcu.TABLE_NAME AND rc.CONSTRAINT_NAME = kcu.CONSTRAINT_NAME \
             WHERE kcu.TABLE_SCHEMA = 'app' ORDER BY kcu.CONSTRAINT_NAME, 2",
        ],
    );
    assert_eq!(columns(&pair, "c"), "id,p_id$enc");
    assert_eq!(columns(&pair, "e"), "n$enc,v$enc");
    // the key on the server does nothing
    let physical = "SELECT COUNT(*) FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'app' \
                    AND (UPDATE_RULE IN ('CASCADE', 'SET NULL') OR DELETE_RULE = 'SET NULL')";
    assert_eq!(pair.behind.connect().text(physical).unwrap(), "0");
    // what is kept survives other changes, and goes with the key
    same(
        &mut pair,
        &[
            "ALTER TABLE c MODIFY p_id CHAR(36) COMMENT 'whose', ADD INDEX (id, p_id)",
            "RENAME TABLE c TO child",
            "SHOW CREATE TABLE child",
            RULES,
            "ALTER TABLE child DROP FOREIGN KEY f1",
            "ALTER TABLE child ADD CONSTRAINT f1 FOREIGN KEY (p_id) REFERENCES p (id) ON UPDATE SET NULL",
            "SHOW CREATE TABLE child",
            "ALTER TABLE child DROP FOREIGN KEY f1",
            "ALTER TABLE child ADD CONSTRAINT f6 FOREIGN KEY (p_id) REFERENCES p (id)",
            "SHOW CREATE TABLE child",
            RULES,
        ],
    );
    thread::sleep(Duration::from_millis(1500));
    same(&mut pair, &["SHOW CREATE TABLE e", RULES]);
    // what nothing can keep
    for sql in [
        "CREATE TABLE x (v VARCHAR(20) NOT NULL, FOREIGN KEY (v) REFERENCES p (v) ON DELETE SET NULL)",
        "CREATE TABLE x (v VARCHAR(20), FOREIGN KEY (v) REFERENCES p (v) ON UPDATE CASCADE, FOREIGN KEY (v) REFERENCES p (v))",
        "ALTER TABLE child ADD FOREIGN KEY (p_id) REFERENCES p (id) ON UPDATE CASCADE",
        "ALTER TABLE d ADD FOREIGN KEY (p_id) REFERENCES p (id) ON DELETE SET NULL",
        "CREATE TABLE x (v VARCHAR(20), FOREIGN KEY (v) REFERENCES p (v) ON DELETE SET DEFAULT)",
    ] {
        refused(&mut pair, sql, "OS1027");
    }
}

/// A change is made as by a plain server, or refused.
pub fn actions_are_not_left_undone(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(
        &mut pair,
        &[
            PARENT,
            "CREATE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, p_id CHAR(36), n INT, v VARCHAR(20), \
             CONSTRAINT f1 FOREIGN KEY (p_id) REFERENCES p (id) ON DELETE SET NULL ON UPDATE CASCADE, \
             CONSTRAINT f2 FOREIGN KEY (n) REFERENCES p (n) ON UPDATE CASCADE ON DELETE CASCADE, \
             CONSTRAINT f3 FOREIGN KEY (v) REFERENCES p (v) ON UPDATE CASCADE)",
            "CREATE TABLE s (id CHAR(3) PRIMARY KEY, up CHAR(3), \
             FOREIGN KEY (up) REFERENCES s (id) ON DELETE SET NULL ON UPDATE CASCADE)",
            "INSERT INTO p VALUES ('a', 1, 'x', 'one'), ('b', 2, 'y', 'two'), ('c', 3, 'z', 'three'), ('d', 4, 'w', 'four')",
            "INSERT INTO c (p_id, n) VALUES ('a', NULL), (NULL, 2), ('d', 4)",
            "INSERT INTO s VALUES ('1', NULL), ('2', '1'), ('3', '3')",
            // nothing refers to these
            "UPDATE p SET n = 30 WHERE id = 'c'",
            "UPDATE p SET note = 'other' WHERE id = 'a'",
            "UPDATE p SET n = 1, note = 'same' WHERE id = 'a'",
            "DELETE FROM p WHERE id = 'c'",
            // ON DELETE CASCADE is the server's
            "DELETE FROM p WHERE id = 'b'",
            "SELECT p_id, n FROM c ORDER BY id",
        ],
    );
    let children = "SELECT p_id, n FROM c ORDER BY id";
    for sql in [
        "DELETE FROM p WHERE id = 'a'",
        "DELETE FROM p WHERE note = 'same'",
        "UPDATE p SET n = 5 WHERE n = 4",
        "UPDATE p SET n = n + 1 WHERE n = 4",
        "INSERT INTO p VALUES ('d', 4, 'w', 'four') ON DUPLICATE KEY UPDATE n = 9",
        // the server would skip the rows
        "DELETE IGNORE FROM p WHERE id = 'a'",
        "UPDATE IGNORE p SET n = 5 WHERE n = 4",
        "INSERT IGNORE INTO p VALUES ('d', 4, 'w', 'four') ON DUPLICATE KEY UPDATE n = 9",
        // the token stays the same, and the child's spelling would, too
        "UPDATE p SET v = 'X' WHERE id = 'a'",
        "UPDATE p SET v = 'X' WHERE v = 'x'",
        "INSERT INTO p VALUES ('A', 1, 'X', 'one') ON DUPLICATE KEY UPDATE v = VALUES(v)",
        "DELETE FROM s WHERE id = '1'",
    ] {
        refused(&mut pair, sql, "OS1027");
        assert_eq!(
            pair.plain.text(children).unwrap(),
            pair.protected.text(children).unwrap()
        );
    }
    // MySQL 9.7 leaves a row in its place if the key stays, and so the children
    let replace = "REPLACE INTO p VALUES ('a', 7, 'x7', 'seven')";
    match kind {
        Kind::MySql => same(&mut pair, &[replace, children]),
        Kind::MariaDb => refused(&mut pair, replace, "OS1027"),
    }
    let mut session = pair.proxy.connect_to("app");
    let said = session.execute("DELETE FROM p WHERE id = ?", ("a",));
    let said = said.map(|_| "deleted").unwrap_err().to_string();
    assert!(said.contains("OS1027"), "{said}");
    // the session goes on, in a transaction too
    same(
        &mut pair,
        &["BEGIN", "INSERT INTO p (id, n) VALUES ('t', 70)"],
    );
    refused(&mut pair, "DELETE FROM p WHERE id = 'a'", "OS1027");
    same(
        &mut pair,
        &[
            "COMMIT",
            "SELECT id, n FROM p ORDER BY id",
            // without the keys' checks nobody does anything
            "SET foreign_key_checks = 0",
            "UPDATE p SET n = 40 WHERE n = 4",
            "SET foreign_key_checks = 1",
            "SELECT p_id, n FROM c ORDER BY id",
            "UPDATE p SET n = 4 WHERE n = 40",
            // by hand, as the error says
            "UPDATE c SET p_id = NULL WHERE p_id = 'a'",
            "DELETE FROM p WHERE id = 'a'",
            "SELECT p_id, n FROM c ORDER BY id",
        ],
    );
    // another key that only forbids says so as ever
    same(
        &mut pair,
        &[
            "CREATE TABLE f (v VARCHAR(20), CONSTRAINT only FOREIGN KEY (v) REFERENCES p (v))",
            "INSERT INTO f VALUES ('w')",
            "DELETE FROM c",
        ],
    );
    let said = pair.same("DELETE FROM p WHERE id = 'd'");
    assert!(said.contains("1451"), "{said}");
}

/// Only the proxy can write what a definition keeps.
pub fn actions_are_authentic(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(
        &mut pair,
        &[
            PARENT,
            "CREATE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, p_id CHAR(36), note VARCHAR(20), \
             CONSTRAINT f1 FOREIGN KEY (p_id) REFERENCES p (id) ON DELETE SET NULL ON UPDATE CASCADE)",
            "INSERT INTO p (id) VALUES ('a')",
            "INSERT INTO c (p_id, note) VALUES ('a', 'n')",
        ],
    );
    same(&mut pair, &[RULES]);
    refused(&mut pair, "DELETE FROM p WHERE id = 'a'", "OS1027");
    // an administrator edits the comment
    let mut admin = pair.behind.connect();
    admin.must("USE app");
    let shown = admin
        .text("SELECT COLUMN_COMMENT FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'app' AND TABLE_NAME = 'c' AND COLUMN_NAME = 'p_id$enc'")
        .unwrap();
    let mut fields: Vec<&str> = shown.split('|').collect();
    assert!(fields[11].contains("kd"), "{shown}");
    fields[11] = "";
    let ty = admin
        .text("SELECT COLUMN_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'app' AND TABLE_NAME = 'c' AND COLUMN_NAME = 'p_id$enc'")
        .unwrap();
    admin.must(&format!(
        "ALTER TABLE c MODIFY `p_id$enc` {ty} NULL COMMENT '{}'",
        fields.join("|")
    ));
    thread::sleep(Duration::from_millis(1500));
    refused(&mut pair, "SELECT p_id FROM c", "OS1101");
}

/// The server says that the other table is not there, and the proxy where the server would not.
pub fn a_missing_table_is_told_by_the_server(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    let create = "CREATE TABLE x (id INT AUTO_INCREMENT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES nosuch (id))";
    let add = "ALTER TABLE y ADD FOREIGN KEY (a) REFERENCES nosuch (id) ON UPDATE CASCADE";
    let number = match kind {
        Kind::MySql => "1824",
        Kind::MariaDb => "1005",
    };
    same(&mut pair, &["CREATE TABLE y (a INT)"]);
    for sql in [create, add] {
        let said = pair.say(sql);
        assert!(said.protected.starts_with(number), "{sql}\n{said:?}");
        assert_eq!(
            said.plain.split(" (errno").next(),
            said.protected.split(" (errno").next()
        );
    }
    pair.protected.must("SET foreign_key_checks = 0");
    for sql in [create, add] {
        refused(&mut pair, sql, "OS1041");
    }
}
