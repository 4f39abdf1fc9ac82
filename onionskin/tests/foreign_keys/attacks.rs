//! What a foreign key must not be an excuse for.

use super::*;

const ID: &str = "id INT AUTO_INCREMENT PRIMARY KEY";

pub fn keys_that_no_server_keeps_are_no_reason(kind: Kind) {
    let settings = "[protect.\"app.*\"]\n\"*\" = [\"eq\"]\n";
    let Some(mut pair) = pair(kind, settings) else {
        return;
    };
    same(&mut pair, AUTHORS);
    let key = "FOREIGN KEY (ref) REFERENCES author (id)";
    let app = &mut pair.protected;
    app.must(&format!("CREATE TABLE old ({ID}, ref INT) ENGINE=MyISAM"));
    app.must(&format!("CREATE TABLE wrong ({ID}, ref VARCHAR(20))"));
    let more = key.replace("(ref)", "(more)");
    let mut refused = vec![
        format!("CREATE TABLE t ({ID}, ref INT, {key}) ENGINE=MyISAM"),
        format!("CREATE TABLE t ({ID}, ref INT, {key}) ENGINE MEMORY"),
        format!("CREATE TABLE t ({ID}, ref VARCHAR(20), {key})"),
        format!("CREATE TEMPORARY TABLE t ({ID}, ref INT, {key})"),
        format!("ALTER TABLE wrong ADD {key}"),
        format!("ALTER TABLE wrong ADD COLUMN more VARCHAR(20), ADD {more}"),
    ];
    if kind == Kind::MariaDb {
        let if_absent = |key: &str| key.replace("KEY (", "KEY IF NOT EXISTS (");
        let more = if_absent(&more);
        refused.push(format!("ALTER TABLE wrong ADD COLUMN more INT, ADD {more}"));
        refused.push(format!("ALTER TABLE wrong ADD {}", if_absent(key)));
    }
    for sql in refused {
        let said = app.run(&sql).map(|_| sql.clone()).unwrap_err().to_string();
        assert!(said.contains("OS1041"), "{sql}\n{said}");
    }
    // a table of another engine that is there already
    let said = app.run(&format!("ALTER TABLE old ADD {key}"));
    let said = said.map(|_| "MyISAM").unwrap_err().to_string();
    assert!(said.contains("OS1041") && said.contains("InnoDB"), "{said}");
    assert_eq!(columns(&pair, "old"), "id,ref$enc");
    assert_eq!(columns(&pair, "wrong"), "id,ref$enc");
}

/// By another name, or of another type.
pub fn a_plaintext_column_does_not_become_another(kind: Kind) {
    let settings = "[protect.\"app.*\"]\nssn = [\"eq\"]\n\"*\" = [\"eq\"]\n";
    let Some(mut pair) = pair(kind, settings) else {
        return;
    };
    same(&mut pair, AUTHORS);
    for (table, more) in [("book", ", title VARCHAR(20)"), ("link", "")] {
        let key = "FOREIGN KEY (author_id) REFERENCES author (id)";
        let sql = format!(
            "CREATE TABLE {table} ({ID}, author_id INT{more}, CONSTRAINT of_{table} {key})"
        );
        same(&mut pair, &[&sql]);
        for change in [
            "RENAME COLUMN author_id TO ssn",
            "RENAME COLUMN id TO ssn",
            "CHANGE author_id ssn INT",
            "DROP FOREIGN KEY of_@, RENAME COLUMN author_id TO ssn",
            "DROP FOREIGN KEY of_@, CHANGE author_id ssn VARCHAR(11)",
            "DROP FOREIGN KEY of_@, MODIFY author_id VARCHAR(200)",
            "DROP CONSTRAINT of_@, MODIFY author_id VARCHAR(200)",
        ] {
            let sql = format!("ALTER TABLE {table} {}", change.replace('@', table));
            let said = pair.protected.run(&sql).map(|_| sql.clone());
            let said = said.unwrap_err().to_string();
            assert!(said.contains("OS1014"), "{sql}\n{said}");
        }
        same(
            &mut pair,
            &[
                &format!(
                    "ALTER TABLE {table} DROP FOREIGN KEY of_{table}, MODIFY author_id INT NOT NULL, ADD CONSTRAINT again_{table} {key}"
                ),
                &format!("ALTER TABLE {table} RENAME COLUMN author_id TO writer"),
            ],
        );
    }
    assert_eq!(columns(&pair, "book"), "id,writer,title$enc");
}

pub fn columns_that_are_made_anew_keep_their_keys(kind: Kind) {
    let settings = "[protect.\"app.*\"]\nname = \"plain\"\n\"*\" = [\"eq\"]\n";
    let Some(mut pair) = pair(kind, settings) else {
        return;
    };
    same(&mut pair, AUTHORS);
    same(
        &mut pair,
        &[
            "CREATE TABLE t (a_id INT, id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(100), b_id INT, c_id INT, word VARCHAR(20) DEFAULT 'x', \
             UNIQUE KEY u (name(10), b_id), KEY k (name(5), a_id, word), UNIQUE KEY v (c_id, b_id), KEY w (word(3), c_id))",
            "ALTER TABLE t ADD FOREIGN KEY f1 (b_id) REFERENCES author (id), ADD FOREIGN KEY f2 (c_id) REFERENCES author (id), \
             ADD FOREIGN KEY f3 (a_id) REFERENCES author (id)",
            "INSERT INTO t (name, a_id, b_id, c_id) VALUES ('same', 1, 1, 1), ('same', 1, 2, 1)",
        ],
    );
    assert_eq!(columns(&pair, "t"), "a_id,id,name,b_id,c_id,word$enc");
    pair.same("SHOW CREATE TABLE t");
    pair.same("INSERT INTO t (name, b_id) VALUES ('same', 2)");

    // texts stay what they are, whatever the session speaks
    same(
        &mut pair,
        &[
            "CREATE TABLE land (code CHAR(2) PRIMARY KEY)",
            "CREATE TABLE flag (land CHAR(2) DEFAULT '\u{e9}', a_id INT)",
        ],
    );
    let key = "ADD FOREIGN KEY (land) REFERENCES land (code)";
    pair.protected.must("SET NAMES latin1");
    for sql in [
        format!("ALTER TABLE flag {key}"),
        format!("ALTER TABLE flag COMMENT '\u{e9}', {key}"),
    ] {
        let said = pair.protected.run(&sql).map(|_| sql.clone());
        let said = said.unwrap_err().to_string();
        assert!(said.contains("OS1"), "{sql}\n{said}");
    }
    pair.protected.must("SET NAMES utf8mb4");
    same(
        &mut pair,
        &[
            "SHOW CREATE TABLE flag",
            &format!("ALTER TABLE flag {key}"),
            "SHOW CREATE TABLE flag",
            // another key refers to the column
            "CREATE TABLE p (k INT PRIMARY KEY)",
            "CREATE TABLE c (k INT, FOREIGN KEY (k) REFERENCES p (k))",
        ],
    );
    let sql = "ALTER TABLE p ADD FOREIGN KEY (k) REFERENCES author (id)";
    let said = pair
        .protected
        .run(sql)
        .map(|_| sql)
        .unwrap_err()
        .to_string();
    assert!(said.contains("OS1041") && !said.contains('$'), "{said}");
}

pub fn an_enforced_table_gets_its_key_back(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(&mut pair, AUTHORS);
    for (table, more) in [("book", ", title VARCHAR(20)"), ("link", "")] {
        let key = format!("CONSTRAINT of_{table} FOREIGN KEY (author_id) REFERENCES author (id)");
        let insert = format!("INSERT INTO {table} (author_id) VALUES (1)");
        same(
            &mut pair,
            &[
                &format!("CREATE TABLE {table} ({ID}, author_id INT{more}, {key})"),
                &insert,
            ],
        );
        // behind the proxy's back
        let mut admin = pair.behind.connect();
        admin.must("USE app");
        for session in [&mut admin, &mut pair.plain] {
            session.must(&format!("ALTER TABLE {table} DROP FOREIGN KEY of_{table}"));
        }
        // an account of which nothing is known yet looks at foreign keys
        admin.must(&format!("CREATE USER of_{table} IDENTIFIED BY ''"));
        admin.must(&format!("GRANT ALL ON app.* TO of_{table}"));
        let user = format!("of_{table}");
        let mut fresh = Session::open(pair.proxy.port(), &user, "", Some("app"));
        let said = fresh.run(&insert).map(|_| "written");
        assert!(said.unwrap_err().to_string().contains("OS1108"));
        same(
            &mut pair,
            &[&format!("ALTER TABLE {table} ADD {key}"), &insert],
        );
    }
}

/// A table of an engine without foreign keys, and columns that come together with their key.
pub fn engines_that_keep_no_keys_are_noticed(kind: Kind) {
    let settings = "[protect.\"app.*\"]\n\"*\" = [\"eq\"]\n";
    let Some(mut pair) = pair(kind, settings) else {
        return;
    };
    same(&mut pair, AUTHORS);
    let key = "FOREIGN KEY (ref) REFERENCES author (id)";
    // as Django adds a column to a table with rows
    same(
        &mut pair,
        &[
            &format!("CREATE TABLE book ({ID}, title VARCHAR(20))"),
            "INSERT INTO book (title) VALUES ('Eden')",
            &format!("ALTER TABLE book ADD COLUMN ref INT NULL, ADD CONSTRAINT r {key}"),
            &format!("CREATE TABLE link ({ID}, ref INT, {key})"),
            &format!("CREATE TABLE hollow ({ID}, ref INT)"),
        ],
    );
    assert_eq!(columns(&pair, "book"), "id,title$enc,ref");
    assert_eq!(columns(&pair, "link"), "id,ref");
    let app = &mut pair.protected;
    app.must(&format!("CREATE TABLE old ({ID}, a INT) ENGINE=MyISAM"));
    for sql in [
        format!("ALTER TABLE old ADD COLUMN ref INT, ADD {key}"),
        format!("ALTER TABLE hollow ADD {key}, ENGINE=MyISAM"),
        "ALTER TABLE hollow ADD COLUMN more INT, ADD FOREIGN KEY (more) REFERENCES author (id), ENGINE=MyISAM".to_owned(),
    ] {
        let said = app.run(&sql).map(|_| sql.clone()).unwrap_err().to_string();
        assert!(said.contains("OS1041"), "{sql}\n{said}");
    }
    app.must("SET default_storage_engine = MyISAM");
    for more in ["", ", title VARCHAR(20)"] {
        let sql = format!("CREATE TABLE t ({ID}, ref INT{more}, {key})");
        let said = app.run(&sql).map(|_| sql.clone()).unwrap_err().to_string();
        assert!(said.contains("OS1041"), "{sql}\n{said}");
    }
    assert_eq!(columns(&pair, "old"), "id,a$enc");
    assert_eq!(columns(&pair, "hollow"), "id,ref$enc");
}

/// Invisible columns and keys, and keys in any order.
pub fn odd_definitions_are_made_anew(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(&mut pair, AUTHORS);
    let invisible = match kind {
        Kind::MySql => "KEY k (b, a) INVISIBLE",
        Kind::MariaDb => "KEY k (b, a) IGNORED",
    };
    same(
        &mut pair,
        &[
            &format!("CREATE TABLE t (b INT, a INT INVISIBLE, {invisible})"),
            "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES author (id)",
            "SHOW CREATE TABLE t",
            "INSERT INTO t (a, b) VALUES (1, 2)",
            "SELECT * FROM t",
            "CREATE TABLE o (a INT PRIMARY KEY, b INT UNIQUE, c INT, FOREIGN KEY (c) REFERENCES o (b), FOREIGN KEY (b) REFERENCES o (a))",
            "INSERT INTO o VALUES (1, 1, 1)",
        ],
    );
    assert_eq!(columns(&pair, "t"), "b$enc,a");
    pair.same("INSERT INTO o VALUES (2, 2, 7)");
}

/// Groups of keys through migrations.
pub fn groups_of_keys_are_migrated(kind: Kind) {
    let options = PairOptions {
        settings: "[protect.\"app.*\"]\n\"*\" = [\"eq\"]\n",
        server: ServerOptions {
            binlog: Some(Binlog::Row),
            ..ServerOptions::default()
        },
        ..PairOptions::default()
    };
    let Some(mut pair) = Pair::start_with(kind, options) else {
        return;
    };
    let app = &mut pair.protected;
    for sql in [
        "CREATE TABLE land (id INT AUTO_INCREMENT UNIQUE, code VARCHAR(9) PRIMARY KEY, note VARCHAR(20), size INT UNIQUE)",
        "CREATE TABLE flag (id INT AUTO_INCREMENT UNIQUE, code VARCHAR(9), FOREIGN KEY f (code) REFERENCES land (code))",
        "INSERT INTO land (code, note, size) VALUES ('no', 'x', 1), ('se', 'y', 2)",
        "INSERT INTO flag (code) VALUES ('no')",
        "ALTER TABLE flag DROP FOREIGN KEY f",
    ] {
        let sql = match kind {
            Kind::MySql => sql.replace("FOREIGN KEY f (", "CONSTRAINT f FOREIGN KEY ("),
            Kind::MariaDb => sql.to_owned(),
        };
        app.must(&sql);
    }
    for words in [
        &["--rotate"][..],
        &["--rebuild"],
        &["--modify", "note VARCHAR(40)"],
        &["--add", "note: range"],
        &["--drop", "size: eq"],
        &["--decrypt", "note"],
        &["--encrypt", "note: eq"],
    ] {
        let arguments = [&["app.land", "--drop-old"], words].concat();
        // an index needs the capability
        if words[0] == "--drop" {
            pair.protected.must("ALTER TABLE land DROP KEY size");
        }
        must_migrate(&pair.behind, Some(&pair.proxy), &arguments);
        let there = pair
            .protected
            .text("SELECT note FROM land WHERE code = 'se'");
        assert_eq!(there.unwrap(), "y", "{words:?}");
    }
    must_migrate(
        &pair.behind,
        Some(&pair.proxy),
        &["app.flag", "--drop-old", "--rotate"],
    );
    let key = "ALTER TABLE flag ADD FOREIGN KEY (code) REFERENCES land (code)";
    pair.protected.must(key);
    pair.protected.must("INSERT INTO flag (code) VALUES ('se')");
    pair.protected
        .must_fail("INSERT INTO flag (code) VALUES ('dk')");
}
