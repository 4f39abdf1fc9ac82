//! Protected keys that others refer to: the server compares their tokens.

use super::*;

/// Keys that are no ids: UUIDs, codes, dates, several columns.
pub fn protected_keys_can_be_referred_to(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(
        &mut pair,
        &[
            "CREATE TABLE land (code CHAR(2) PRIMARY KEY, name VARCHAR(40) UNIQUE)",
            "CREATE TABLE town (no INT, land CHAR(2), mayor VARCHAR(40), twin INT, twin_land CHAR(2), PRIMARY KEY (no, land), \
             FOREIGN KEY f1 (land) REFERENCES land (code), FOREIGN KEY f2 (twin, twin_land) REFERENCES town (no, land))",
            // as frameworks do: the key comes later, where the column has a key of its own
            "CREATE TABLE flag (land CHAR(2) NOT NULL PRIMARY KEY COMMENT 'whose', colours VARCHAR(30) DEFAULT 'blue', day DATE)",
            "ALTER TABLE flag ADD CONSTRAINT flies FOREIGN KEY (land) REFERENCES land (code) ON DELETE CASCADE",
            "CREATE TABLE street (town INT, name VARCHAR(30), land CHAR(2), UNIQUE (name, land))",
            "ALTER TABLE street ADD CONSTRAINT lies FOREIGN KEY (town, land) REFERENCES town (no, land), ADD INDEX (name)",
            "CREATE TABLE holiday (on_day DATE UNIQUE, name VARCHAR(40))",
            "ALTER TABLE flag ADD FOREIGN KEY f3 (day) REFERENCES holiday (on_day)",
            "CREATE TABLE anthem (id INT AUTO_INCREMENT PRIMARY KEY)",
            "ALTER TABLE anthem ADD COLUMN whose CHAR(2), ADD FOREIGN KEY f4 (whose) REFERENCES land (code)",
        ],
    );
    let expected = [
        ("land", "code$enc,name$enc"),
        ("town", "no$enc,land$enc,mayor$enc,twin$enc,twin_land$enc"),
        ("flag", "land$enc,colours$enc,day$enc"),
        ("street", "town$enc,name$enc,land$enc"),
        ("anthem", "id,whose$enc"),
    ];
    for (table, expected) in expected {
        assert_eq!(columns(&pair, table), expected, "{table}");
        pair.same(&format!("SHOW CREATE TABLE {table}"));
    }
    same(
        &mut pair,
        &[
            "INSERT INTO land VALUES ('no', 'Norway'), ('se', 'Sweden')",
            "INSERT INTO town VALUES (1, 'no', 'a', NULL, NULL), (1, 'se', 'b', 1, 'no')",
            "INSERT INTO holiday VALUES ('2024-05-17', 'x')",
            "INSERT INTO flag (land, day) VALUES ('no', '2024-05-17'), ('se', NULL)",
            "INSERT INTO street VALUES (1, 'Main', 'se')",
            "INSERT INTO anthem (whose) VALUES ('no')",
            "SELECT l.name, t.mayor, f.colours FROM land l JOIN town t ON t.land = l.code JOIN flag f ON f.land = l.code \
             WHERE l.code > 'a' ORDER BY l.code",
            "SELECT s.name FROM street s JOIN town t ON t.no = s.town AND t.land = s.land WHERE t.no = 1",
        ],
    );
    for sql in [
        "INSERT INTO town VALUES (2, 'fi', 'c', NULL, NULL)",
        "INSERT INTO town VALUES (2, 'se', 'c', 7, 'no')",
        "INSERT INTO flag (land) VALUES ('dk')",
        "UPDATE flag SET day = '2024-05-18' WHERE land = 'se'",
        "DELETE FROM land WHERE code = 'no'",
        "DELETE FROM holiday",
    ] {
        let said = pair.same(sql);
        assert!(!said.contains(" OS1"), "{sql}\n{said}");
    }
    // another type, and rows that are there
    pair.protected.must("CREATE TABLE wide (land CHAR(3))");
    let said = pair
        .protected
        .run("ALTER TABLE wide ADD FOREIGN KEY (land) REFERENCES land (code)");
    assert!(said.unwrap_err().to_string().contains("OS1006"));
    pair.protected.must("CREATE TABLE full (land CHAR(2))");
    pair.protected.must("INSERT INTO full VALUES ('no')");
    let said = pair
        .protected
        .run("ALTER TABLE full ADD FOREIGN KEY (land) REFERENCES land (code)");
    let said = said.unwrap_err().to_string();
    assert!(
        said.contains("OS1006") && said.contains("has rows"),
        "{said}"
    );
    // a definition that is read anew, by a proxy that has seen none of it
    let other = Proxy::start_with(
        &pair.behind,
        ProxyOptions {
            settings: "enforce = true\n".into(),
            tables: EVERYTHING.split_once('\n').unwrap().1.into(),
            keys: Some(pair.proxy.keys()),
            ..ProxyOptions::default()
        },
    );
    let mut session = other.connect_to("app");
    assert_eq!(
        session
            .text("SELECT colours FROM flag WHERE land = 'se'")
            .unwrap(),
        "blue"
    );
}

/// What the server can compare is what foreign keys need, and no more.
pub fn groups_of_keys_are_their_own(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    let tables = ["a", "b", "c", "d", "e"];
    same(
        &mut pair,
        &[
            "CREATE TABLE a (k VARCHAR(10) PRIMARY KEY, other VARCHAR(10))",
            "CREATE TABLE b (k VARCHAR(10) PRIMARY KEY)",
            "CREATE TABLE c LIKE a",
            "CREATE TABLE d (k VARCHAR(10), FOREIGN KEY (k) REFERENCES a (k))",
            "CREATE TABLE e (k VARCHAR(10))",
        ],
    );
    for table in tables {
        pair.protected
            .must(&format!("INSERT INTO {table} (k) VALUES ('same')"));
    }
    let mut token = |table: &str| {
        let mut admin = pair.behind.connect();
        let name = format!(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'app' AND TABLE_NAME = '{table}' AND COLUMN_NAME LIKE 'k$eq%'"
        );
        let name = admin.text(&name).unwrap();
        admin
            .text(&format!("SELECT HEX(`{name}`) FROM app.{table}"))
            .unwrap()
    };
    let tokens = tables.map(&mut token);
    assert_eq!(tokens[0], tokens[3], "a foreign key");
    for (n, table) in tables.iter().enumerate() {
        let alike = tokens.iter().filter(|t| **t == tokens[n]).count();
        let expected = if matches!(*table, "a" | "d") { 2 } else { 1 };
        assert_eq!(alike, expected, "{table}: {tokens:?}");
    }
    // the same name again is another group
    pair.protected.must("DROP TABLE b");
    pair.protected
        .must("CREATE TABLE b (k VARCHAR(10) PRIMARY KEY)");
    pair.protected.must("INSERT INTO b (k) VALUES ('same')");
    assert_ne!(token("b"), tokens[1]);
    // groups of this form are not for the choosing
    let said = pair
        .protected
        .run("CREATE TABLE x (k VARCHAR(10) ENCRYPTED FOR (eq, join:`key:#0`))");
    assert!(said.unwrap_err().to_string().contains("OS1013"));
    // it survives a rename
    for sql in [
        "RENAME TABLE a TO renamed",
        "INSERT INTO renamed (k) VALUES ('more')",
        "INSERT INTO d VALUES ('more')",
    ] {
        pair.protected.must(sql);
    }
    let joined = "SELECT COUNT(*) FROM d JOIN renamed r ON d.k = r.k";
    assert_eq!(pair.protected.text(joined).unwrap(), "2");
    pair.protected.must_fail("INSERT INTO d VALUES ('none')");
}
