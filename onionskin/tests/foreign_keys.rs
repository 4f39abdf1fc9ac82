//! Foreign keys under a wildcard of `[protect]`, as frameworks define them: ids that the server
//! makes stay plaintext, and so does what refers to them, whenever the key is defined.

#[path = "foreign_keys/actions.rs"]
mod actions;
#[path = "foreign_keys/attacks.rs"]
mod attacks;
#[path = "foreign_keys/dropped.rs"]
mod dropped;
#[path = "foreign_keys/inline.rs"]
mod inline;
#[path = "foreign_keys/joined.rs"]
mod joined;
#[path = "foreign_keys/letters.rs"]
mod letters;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use actions::{
    a_missing_table_is_told_by_the_server, actions_are_authentic, actions_are_not_left_undone,
    actions_stand_in_definitions,
};
use attacks::{
    a_plaintext_column_does_not_become_another, an_enforced_table_gets_its_key_back,
    columns_that_are_made_anew_keep_their_keys, engines_that_keep_no_keys_are_noticed,
    groups_of_keys_are_migrated, keys_that_no_server_keeps_are_no_reason,
    odd_definitions_are_made_anew,
};
use dropped::{a_dropped_key_leaves_the_table_usable, marks_of_dropped_keys_are_no_excuse};
use inline::columns_name_what_they_refer_to;
use joined::{groups_of_keys_are_their_own, protected_keys_can_be_referred_to};
use letters::{
    a_key_that_comes_later_counts_at_once, a_snapshot_does_not_hide_a_referenced_key,
    ignore_is_refused_behind_another_cascade, other_letters_of_a_referenced_key_are_refused,
    views_do_not_hide_a_referenced_key,
};
use onionskin_testkit::*;

on_both_servers!(
    ids_without_a_sign_are_referred_to,
    what_refers_to_an_id_stays_plaintext,
    keys_that_are_added_later_find_plaintext,
    a_table_with_rows_keeps_its_protection,
    no_row_is_lost_while_a_key_is_added,
    named_columns_are_protected_all_the_same,
    an_enforced_wildcard_follows_foreign_keys,
    what_is_to_be_encrypted_yet_is_no_reason,
    an_enforced_wildcard_sees_through_views,
    protected_keys_can_be_referred_to,
    columns_name_what_they_refer_to,
    groups_of_keys_are_their_own,
    keys_that_no_server_keeps_are_no_reason,
    a_plaintext_column_does_not_become_another,
    columns_that_are_made_anew_keep_their_keys,
    an_enforced_table_gets_its_key_back,
    engines_that_keep_no_keys_are_noticed,
    odd_definitions_are_made_anew,
    groups_of_keys_are_migrated,
    a_dropped_key_leaves_the_table_usable,
    marks_of_dropped_keys_are_no_excuse,
    actions_stand_in_definitions,
    actions_are_not_left_undone,
    actions_are_authentic,
    a_missing_table_is_told_by_the_server,
    other_letters_of_a_referenced_key_are_refused,
    a_key_that_comes_later_counts_at_once,
    a_snapshot_does_not_hide_a_referenced_key,
    views_do_not_hide_a_referenced_key,
    ignore_is_refused_behind_another_cascade,
);

const EVERYTHING: &str = "enforce = true\n[protect.\"app.*\"]\n\"*\" = [\"eq\", \"range\"]\n";

fn pair(kind: Kind, settings: &str) -> Option<Pair> {
    Pair::start_with(
        kind,
        PairOptions {
            settings,
            database: "DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
            ..PairOptions::default()
        },
    )
}

/// The columns of a table, as the server has them, without companions.
fn columns(pair: &Pair, table: &str) -> String {
    let sql = format!(
        "SELECT GROUP_CONCAT(COLUMN_NAME ORDER BY ORDINAL_POSITION) FROM information_schema.COLUMNS \
         WHERE TABLE_SCHEMA = 'app' AND TABLE_NAME = '{table}' AND COLUMN_NAME NOT RLIKE '[$](eq|ord)_'"
    );
    pair.behind.connect().text(&sql).unwrap()
}

fn same(pair: &mut Pair, statements: &[&str]) {
    for sql in statements {
        let said = pair.same(sql);
        assert!(!said.contains(" OS1"), "{sql}\n{said}");
    }
}

const AUTHORS: &[&str] = &[
    "CREATE TABLE author (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) NOT NULL)",
    "INSERT INTO author (name) VALUES ('Lem'), ('Le Guin'), ('Tove')",
];

/// As Knex, Laravel and Rails number their rows.
fn ids_without_a_sign_are_referred_to(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    for (n, (id, ty)) in [
        ("INT UNSIGNED NOT NULL AUTO_INCREMENT", "INT UNSIGNED NULL"),
        (
            "BIGINT(20) UNSIGNED AUTO_INCREMENT",
            "bigint unsigned not null",
        ),
        ("INT(8) ZEROFILL AUTO_INCREMENT", "INT(8) UNSIGNED ZEROFILL"),
        ("SMALLINT SIGNED AUTO_INCREMENT", "SMALLINT"),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("FOREIGN KEY (a) REFERENCES a{n} (id) ON DELETE CASCADE");
        let statements = [
            format!("CREATE TABLE a{n} (id {id}, word VARCHAR(20), PRIMARY KEY (id))"),
            format!("CREATE TABLE b{n} (n INT, a {ty}, {key})"),
            format!("CREATE TABLE c{n} (n INT, a {ty})"),
            format!("ALTER TABLE c{n} ADD CONSTRAINT k{n} {key}"),
            format!("ALTER TABLE a{n} ADD COLUMN b {ty}, ADD FOREIGN KEY (b) REFERENCES a{n} (id)"),
            format!("INSERT INTO a{n} (word, b) VALUES ('x', 1)"),
            format!("INSERT INTO b{n} VALUES (5, 1)"),
            format!("INSERT INTO c{n} VALUES (5, 1)"),
            format!("SELECT word, c{n}.a FROM a{n} JOIN c{n} ON c{n}.a = a{n}.id"),
            format!("DELETE FROM a{n}"),
            format!("SELECT COUNT(*) FROM c{n}"),
        ];
        for sql in &statements {
            // MySQL warns of widths, each time it reads one
            let said = pair.say(sql);
            assert!(!said.is_refused(), "{sql}\n{said:?}");
        }
        pair.same(&format!("SHOW CREATE TABLE c{n}"));
        assert_eq!(columns(&pair, &format!("c{n}")), "n$enc,a", "{ty}");
        assert_eq!(columns(&pair, &format!("a{n}")), "id,word$enc,b", "{ty}");
    }
    // a key of another type is the server's to refuse, or ours
    let said = pair.say("CREATE TABLE d (a INT, FOREIGN KEY (a) REFERENCES a0 (id))");
    assert!(said.protected.starts_with('1'), "{said:?}");
}

fn what_refers_to_an_id_stays_plaintext(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(&mut pair, AUTHORS);
    same(
        &mut pair,
        &[
            "CREATE TABLE book (id BIGINT AUTO_INCREMENT PRIMARY KEY, title VARCHAR(80), author_id INT NOT NULL, parent BIGINT, \
             CONSTRAINT a FOREIGN KEY (author_id) REFERENCES author (id) ON DELETE CASCADE ON UPDATE CASCADE, \
             CONSTRAINT p FOREIGN KEY (parent) REFERENCES book (id) ON DELETE SET NULL)",
            // through other keys, and in the table itself
            "CREATE TABLE novel (book BIGINT PRIMARY KEY, pages INT, FOREIGN KEY (book) REFERENCES book (id) ON DELETE CASCADE)",
            "CREATE TABLE print (id INT PRIMARY KEY, novel BIGINT, twin BIGINT, UNIQUE (novel), \
             FOREIGN KEY (twin) REFERENCES print (novel), FOREIGN KEY (novel) REFERENCES novel (book) ON DELETE SET NULL)",
            "CREATE TABLE note (id INT AUTO_INCREMENT PRIMARY KEY, text VARCHAR(50))",
            "ALTER TABLE note ADD COLUMN (book BIGINT, page INT), ADD FOREIGN KEY (book) REFERENCES book (id)",
        ],
    );
    let expected = [
        ("author", "id,name$enc"),
        ("book", "id,title$enc,author_id,parent"),
        ("novel", "book,pages$enc"),
        ("print", "id$enc,novel,twin"),
        ("note", "id,text$enc,book,page$enc"),
    ];
    for (table, expected) in expected {
        assert_eq!(columns(&pair, table), expected, "{table}");
        pair.same(&format!("SHOW CREATE TABLE {table}"));
    }
    let rows = [
        "INSERT INTO book (title, author_id, parent) VALUES ('Solaris', 1, NULL), ('Eden', 1, 1), ('Tehanu', 2, NULL)",
        "INSERT INTO novel VALUES (1, 204), (3, 226)",
        "INSERT INTO print VALUES (7, 1, NULL), (8, 3, 1)",
        "INSERT INTO note (text, book, page) VALUES ('ocean', 2, 10)",
        "SELECT b.title, a.name FROM book b JOIN author a ON a.id = b.author_id WHERE a.name = 'Lem' ORDER BY b.id",
    ];
    same(&mut pair, &rows);
    pair.same("INSERT INTO book (title, author_id) VALUES ('x', 99)");
    // what is looked up anew says the same
    thread::sleep(Duration::from_millis(1500));
    same(
        &mut pair,
        &[
            "DELETE FROM note",
            "DELETE FROM print WHERE id = 8",
            "UPDATE author SET id = 11 WHERE name = 'Lem'",
            "DELETE FROM author WHERE name = 'Le Guin'",
            "SELECT title, author_id FROM book ORDER BY id",
            "SELECT book, pages FROM novel ORDER BY book",
            "DELETE FROM book WHERE title = 'Solaris'",
            "SELECT * FROM print",
            "SELECT title, parent FROM book",
            "ALTER TABLE note MODIFY id INT AUTO_INCREMENT COMMENT 'n', MODIFY book BIGINT COMMENT 'b'",
            "ALTER TABLE note CHANGE book of_book BIGINT, RENAME TO remark",
            "INSERT INTO remark (text, of_book) VALUES ('moon', 2)",
            "SELECT text, of_book FROM remark",
        ],
    );
    // without AUTO_INCREMENT it would be a column like any other, in plaintext
    let said = pair.say("ALTER TABLE remark MODIFY id INT");
    assert!(said.protected.contains("OS1014"), "{said:?}");
}

/// As Django, Rails and Laravel make them.
fn keys_that_are_added_later_find_plaintext(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(&mut pair, &AUTHORS[..1]);
    same(
        &mut pair,
        &[
            "CREATE TABLE book (id BIGINT AUTO_INCREMENT PRIMARY KEY, title VARCHAR(80) NOT NULL, author_id INT NULL, price DECIMAL(6,2))",
            "CREATE TABLE tag (id INT AUTO_INCREMENT PRIMARY KEY, word VARCHAR(30) UNIQUE)",
            "CREATE TABLE book_tags (id INT AUTO_INCREMENT PRIMARY KEY, book_id BIGINT NOT NULL, tag_id INT NOT NULL)",
            "CREATE TABLE pick (book_id BIGINT PRIMARY KEY, by_whom VARCHAR(20) DEFAULT 'me' COMMENT 'who', at DATETIME)",
            "ALTER TABLE book ADD CONSTRAINT book_author FOREIGN KEY (author_id) REFERENCES author (id)",
            "SHOW WARNINGS",
            "ALTER TABLE book_tags ADD CONSTRAINT both_ids UNIQUE (book_id, tag_id)",
            "ALTER TABLE book_tags ADD CONSTRAINT of_book FOREIGN KEY (book_id) REFERENCES book (id)",
            "ALTER TABLE book_tags ADD CONSTRAINT of_tag FOREIGN KEY (tag_id) REFERENCES tag (id) ON DELETE CASCADE",
            "ALTER TABLE pick ADD INDEX i (at, book_id), ADD CONSTRAINT picked FOREIGN KEY (book_id) REFERENCES book (id), ADD COLUMN more INT",
        ],
    );
    let expected = [
        ("book", "id,title$enc,author_id,price$enc"),
        ("book_tags", "id,book_id,tag_id"),
        ("pick", "book_id,by_whom$enc,at$enc,more$enc"),
    ];
    for (table, expected) in expected {
        assert_eq!(columns(&pair, table), expected, "{table}");
        pair.same(&format!("SHOW CREATE TABLE {table}"));
    }
    same(
        &mut pair,
        &[
            AUTHORS[1],
            "INSERT INTO book (title, author_id, price) VALUES ('Solaris', 1, 9.5), ('Tehanu', 2, 8)",
            "INSERT INTO tag (word) VALUES ('sea'), ('dragon')",
            "INSERT INTO book_tags (book_id, tag_id) VALUES (1, 1), (2, 2), (2, 1)",
            "INSERT INTO pick (book_id, at) VALUES (2, '2024-05-06 07:08:09')",
            "SELECT title, word, by_whom, at FROM book JOIN book_tags ON book.id = book_id JOIN tag ON tag.id = tag_id \
             LEFT JOIN pick ON pick.book_id = book.id ORDER BY book.id, tag.id",
            "DELETE FROM tag WHERE word = 'dragon'",
            "SELECT book_id, tag_id FROM book_tags ORDER BY id",
        ],
    );
    for sql in [
        "INSERT INTO book_tags (book_id, tag_id) VALUES (1, 1)",
        "INSERT INTO book_tags (book_id, tag_id) VALUES (1, 9)",
        "ALTER TABLE pick ADD FOREIGN KEY (nothing) REFERENCES book (id)",
    ] {
        pair.same(sql);
    }
}

fn a_table_with_rows_keeps_its_protection(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(&mut pair, AUTHORS);
    same(
        &mut pair,
        &[
            "CREATE TABLE book (id INT AUTO_INCREMENT PRIMARY KEY, author_id INT)",
            "INSERT INTO book (author_id) VALUES (1), (2)",
        ],
    );
    let key = "ALTER TABLE book ADD FOREIGN KEY (author_id) REFERENCES author (id)";
    let said = pair.protected.run(key).unwrap_err().to_string();
    assert!(
        said.contains("OS1041") && said.contains("has rows"),
        "{said}"
    );
    assert_eq!(columns(&pair, "book"), "id,author_id$enc");
    same(
        &mut pair,
        &["SELECT author_id FROM book WHERE author_id > 1"],
    );
    // the refusal has left no lock behind
    pair.proxy
        .connect_to("app")
        .must("INSERT INTO author (name) VALUES ('x')");

    same(&mut pair, &["DELETE FROM book", "LOCK TABLES book WRITE"]);
    let said = pair.protected.run(key).unwrap_err().to_string();
    assert!(
        said.contains("OS1041") && said.contains("LOCK TABLES"),
        "{said}"
    );
    same(&mut pair, &["UNLOCK TABLES"]);
    // rows of a transaction that is not over
    let mut other = pair.proxy.connect_to("app");
    other.must("BEGIN");
    other.must("INSERT INTO book (author_id) VALUES (2)");
    pair.protected.must("SET lock_wait_timeout = 1");
    let said = pair.protected.run(key).unwrap_err().to_string();
    assert!(
        said.contains("OS1041") && said.contains("cannot be locked"),
        "{said}"
    );
    other.must("ROLLBACK");
    pair.protected.must(key);
    assert_eq!(columns(&pair, "book"), "id,author_id");
    // another proxy session knows at once
    other.must("INSERT INTO book (author_id) VALUES (3)");
    let there = pair
        .behind
        .connect()
        .text("SELECT author_id FROM app.book")
        .unwrap();
    assert_eq!(there, "3");
}

/// Sessions write while the key comes.
fn no_row_is_lost_while_a_key_is_added(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(&mut pair, AUTHORS);
    let key = "ALTER TABLE book ADD FOREIGN KEY (author_id) REFERENCES author (id)";
    let (mut added, mut refused) = (0, 0);
    for round in 0..12 {
        pair.protected.must("DROP TABLE IF EXISTS book");
        pair.protected
            .must("CREATE TABLE book (id INT AUTO_INCREMENT PRIMARY KEY, author_id INT NOT NULL, title VARCHAR(20))");
        let go = AtomicBool::new(true);
        let written = thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    let mut session = pair.proxy.connect_to("app");
                    let go = &go;
                    scope.spawn(move || {
                        let mut written = 0;
                        // at times the key is there first, on a slow machine too
                        thread::sleep(Duration::from_millis(round * round * 4));
                        while go.load(Ordering::Relaxed) {
                            let sql = "INSERT INTO book (author_id, title) VALUES (2, 'a')";
                            written += usize::from(session.run(sql).is_ok());
                        }
                        written
                    })
                })
                .collect();
            match pair.protected.run(key) {
                Ok(_) => added += 1,
                Err(failure) => {
                    assert!(failure.to_string().contains("OS1041"), "{failure}");
                    refused += 1;
                }
            }
            thread::sleep(Duration::from_millis(30));
            go.store(false, Ordering::Relaxed);
            writers
                .into_iter()
                .map(|w| w.join().unwrap())
                .sum::<usize>()
        });
        let sql = "SELECT COUNT(*) FROM book WHERE author_id = 2 AND title = 'a'";
        let there = pair.protected.text(sql).unwrap();
        assert_eq!(there, written.to_string(), "round {round}");
    }
    assert!(added > 0, "{added} keys were added, {refused} refused");
}

fn named_columns_are_protected_all_the_same(kind: Kind) {
    let settings =
        "[protect.\"app.*\"]\nauthor_id = [\"eq\", \"range\"]\n\"*\" = [\"eq\", \"range\"]\n";
    let Some(mut pair) = pair(kind, settings) else {
        return;
    };
    same(&mut pair, AUTHORS);
    let key = "FOREIGN KEY (author_id) REFERENCES author (id)";
    for sql in [
        format!("CREATE TABLE book (id INT AUTO_INCREMENT PRIMARY KEY, author_id INT, {key})"),
        format!(
            "CREATE TABLE book (who INT ENCRYPTED FOR (eq), {})",
            key.replace("author_id", "who")
        ),
    ] {
        let said = pair.protected.run(&sql).unwrap_err().to_string();
        assert!(said.contains("OS1041"), "{sql}\n{said}");
        assert!(said.contains("\"*_id\" = \"plain\""), "{said}");
    }
    pair.protected.must("CREATE TABLE book (id INT AUTO_INCREMENT PRIMARY KEY, author_id INT, other INT ENCRYPTED FOR (eq))");
    for column in ["author_id", "other"] {
        let sql = format!(
            "ALTER TABLE book ADD {}",
            key.replace("author_id", column)
                .replacen("author_id", column, 1)
        );
        let said = pair.protected.run(&sql).unwrap_err().to_string();
        assert!(said.contains("OS1041"), "{sql}\n{said}");
    }
    assert_eq!(columns(&pair, "book"), "id,author_id$enc,other$enc");
    // the other way round: what it refers to is protected
    let said = pair.protected.run("CREATE TABLE n (id INT AUTO_INCREMENT PRIMARY KEY, UNIQUE (id), FOREIGN KEY (id) REFERENCES book (author_id))");
    let said = said.unwrap_err().to_string();
    assert!(said.contains("OS1041"), "{said}");
}

fn an_enforced_wildcard_follows_foreign_keys(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(&mut pair, AUTHORS);
    same(
        &mut pair,
        &[
            "CREATE TABLE book (id INT AUTO_INCREMENT PRIMARY KEY, title VARCHAR(20), author_id INT, FOREIGN KEY f (author_id) REFERENCES author (id))",
        ],
    );
    let mut admin = pair.behind.connect();
    admin.must("CREATE USER reader IDENTIFIED BY ''");
    admin.must("GRANT SELECT ON app.book TO reader");
    admin.must("CREATE USER sees_both IDENTIFIED BY ''");
    admin.must("GRANT SELECT ON app.book TO sees_both");
    admin.must("GRANT SELECT ON app.author TO sees_both");
    pair.protected
        .must("INSERT INTO book (title, author_id) VALUES ('Eden', 1)");
    let mut both = Session::open(pair.proxy.port(), "sees_both", "", Some("app"));
    assert_eq!(both.text("SELECT title FROM book").unwrap(), "Eden");
    // an account that does not see what the key refers to cannot tell: it is refused
    let mut reader = Session::open(pair.proxy.port(), "reader", "", Some("app"));
    let said = reader.run("SELECT title FROM book").map(|o| o.text());
    let said = said.unwrap_err().to_string();
    assert!(said.contains("OS1108"), "{said}");

    // a plaintext column that refers to nothing
    admin.must("USE app");
    let mut fresh = pair.proxy.connect_to("app");
    admin.must("ALTER TABLE book ADD COLUMN secret INT");
    thread::sleep(Duration::from_millis(1500));
    let said = fresh
        .run("INSERT INTO book (secret) VALUES (77)")
        .unwrap_err()
        .to_string();
    assert!(said.contains("OS1108"), "{said}");
    // to a column that no proxy leaves in plaintext
    admin.must("CREATE TABLE bare (code INT PRIMARY KEY)");
    admin.must("ALTER TABLE book ADD FOREIGN KEY (secret) REFERENCES bare (code)");
    thread::sleep(Duration::from_millis(1500));
    let said = fresh
        .run("INSERT INTO book (secret) VALUES (77)")
        .unwrap_err()
        .to_string();
    assert!(said.contains("OS1108"), "{said}");
}

/// A table that was there before, and is encrypted later.
fn what_is_to_be_encrypted_yet_is_no_reason(kind: Kind) {
    let settings = "[protect.\"app.*\"]\n\"*\" = [\"eq\"]\n";
    let Some(mut pair) = pair(kind, settings) else {
        return;
    };
    let mut admin = pair.behind.connect();
    admin.must("USE app");
    admin.must("CREATE TABLE customer (email VARCHAR(60) PRIMARY KEY)");
    let key = "FOREIGN KEY (email) REFERENCES customer (email)";
    let sql =
        format!("CREATE TABLE bill (id INT AUTO_INCREMENT PRIMARY KEY, email VARCHAR(60), {key})");
    let said = pair.protected.run(&sql).unwrap_err().to_string();
    assert!(said.contains("OS1041"), "{said}");
    pair.protected
        .must("CREATE TABLE bill (id INT AUTO_INCREMENT PRIMARY KEY, email VARCHAR(60))");
    let said = pair.protected.run(&format!("ALTER TABLE bill ADD {key}"));
    let said = said.unwrap_err().to_string();
    assert!(said.contains("OS1041"), "{said}");
    assert_eq!(columns(&pair, "bill"), "id,email$enc");
}

fn an_enforced_wildcard_sees_through_views(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(&mut pair, AUTHORS);
    same(
        &mut pair,
        &[
            "CREATE TABLE book (id INT AUTO_INCREMENT PRIMARY KEY, title VARCHAR(20), author_id INT, FOREIGN KEY (author_id) REFERENCES author (id))",
            "INSERT INTO book (title, author_id) VALUES ('Eden', 1), ('Tehanu', 2), ('Solaris', 1)",
            "CREATE VIEW books AS SELECT id, title, author_id AS author FROM book",
            "CREATE VIEW names (n, no) AS SELECT b.id, a.id FROM book b JOIN author a ON b.author_id = a.id",
            "CREATE VIEW counts AS SELECT author_id, COUNT(*) AS n FROM book GROUP BY author_id",
            "CREATE VIEW numbers AS SELECT n FROM names WHERE no > 1",
            "SELECT id, title FROM books WHERE author = 1 ORDER BY id",
            "SELECT n, no FROM names ORDER BY n",
            "SELECT * FROM counts ORDER BY author_id",
            "SELECT * FROM numbers",
            "UPDATE books SET title = 'Eden 2' WHERE id = 1",
            "SELECT title FROM book ORDER BY id",
        ],
    );
    // whoever administers the server puts a plaintext column behind a name
    let mut admin = pair.behind.connect();
    admin.must("USE app");
    let mut fresh = pair.proxy.connect_to("app");
    for definition in [
        "SELECT id, code AS author FROM clear",
        "SELECT id, code + 0 AS author FROM clear",
        "SELECT id, (SELECT MAX(code) FROM clear) AS author FROM book",
        "SELECT b.id, c.code AS author FROM book b JOIN clear c ON c.id = b.id",
        "SELECT id, author_id AS author FROM book UNION ALL SELECT id, code FROM clear",
        "SELECT id, 5 AS author FROM book",
        // of a database that no section names
        "SELECT id, code AS author FROM evil.clear",
        // under names that stand inside
        "SELECT x.id, x.id2 AS author FROM (SELECT x.code AS id2, x.id FROM evil.clear x) x",
        "SELECT x.n AS id, x.id AS author FROM (SELECT x.code AS id, x.id AS n FROM evil.clear x) x",
    ] {
        admin.must("CREATE DATABASE IF NOT EXISTS evil");
        for name in ["clear", "evil.clear"] {
            let columns = "id INT AUTO_INCREMENT PRIMARY KEY, code INT";
            admin.must(&format!("CREATE TABLE IF NOT EXISTS {name} ({columns})"));
        }
        admin.must(&format!("CREATE OR REPLACE VIEW books AS {definition}"));
        thread::sleep(Duration::from_millis(1500));
        let said = fresh.run("SELECT id FROM books WHERE author = 4711");
        let said = said.unwrap_err().to_string();
        assert!(said.contains("OS1108"), "{definition}\n{said}");
    }
    // one that is in use becomes another, with the same columns
    admin.must("CREATE OR REPLACE VIEW ids AS SELECT id, author_id AS author FROM book");
    let count = "SELECT COUNT(*) FROM ids WHERE author = 1";
    assert_eq!(fresh.text(count).unwrap(), "2");
    admin.must("CREATE OR REPLACE VIEW ids AS SELECT id, code AS author FROM clear");
    thread::sleep(Duration::from_millis(1500));
    let said = fresh.run(count).map(|_| "counted");
    assert!(said.unwrap_err().to_string().contains("OS1108"));
    // and a table in use gets a column
    fresh.must("CREATE TABLE link (id INT AUTO_INCREMENT PRIMARY KEY, book INT, FOREIGN KEY (book) REFERENCES book (id))");
    fresh.must("INSERT INTO link (book) VALUES (1)");
    admin.must("ALTER TABLE link ADD COLUMN secret VARCHAR(20)");
    thread::sleep(Duration::from_millis(1500));
    let said = fresh.run("INSERT INTO link (book, secret) VALUES (1, 'x')");
    let said = said.map(|_| "written");
    assert!(said.unwrap_err().to_string().contains("OS1108"));
    if kind == Kind::MariaDb {
        same(
            &mut pair,
            &[
                "CREATE SEQUENCE numbered",
                "SELECT NEXT VALUE FOR numbered",
                "SHOW CREATE TABLE numbered",
            ],
        );
    }
}
