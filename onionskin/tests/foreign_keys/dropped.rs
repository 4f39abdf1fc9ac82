//! Foreign keys that are dropped: what they kept in plaintext stays so, and the table usable.

use super::*;

const BOOK: &str = "CREATE TABLE book (id INT AUTO_INCREMENT PRIMARY KEY, title VARCHAR(20), author_id INT, \
                    CONSTRAINT of_author FOREIGN KEY (author_id) REFERENCES author (id))";
const LINK: &str = "CREATE TABLE link (author_id INT, book_id INT, PRIMARY KEY (author_id, book_id), \
                    CONSTRAINT of_a FOREIGN KEY (author_id) REFERENCES author (id), \
                    CONSTRAINT of_b FOREIGN KEY (book_id) REFERENCES book (id) ON DELETE CASCADE)";

/// As frameworks change a column: the key goes, the column changes, the key comes again.
pub fn a_dropped_key_leaves_the_table_usable(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(&mut pair, AUTHORS);
    same(
        &mut pair,
        &[
            BOOK,
            LINK,
            "INSERT INTO book (title, author_id) VALUES ('Eden', 1), ('Tehanu', 2)",
            "INSERT INTO link VALUES (1, 1), (2, 2)",
        ],
    );
    let mut other = pair.proxy.connect_to("app");
    other.must("SELECT title FROM book");
    other.must("SELECT * FROM link");
    let constraints = "SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS \
                       WHERE TABLE_SCHEMA = 'app' AND TABLE_NAME IN ('book', 'link', 'written') ORDER BY 1";
    let checks =
        "SELECT COUNT(*) FROM information_schema.CHECK_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'app'";
    let usable = [
        "SELECT title FROM book WHERE author_id = 1",
        "SELECT * FROM link ORDER BY author_id",
        "SHOW CREATE TABLE book",
        "SHOW CREATE TABLE link",
        constraints,
        checks,
    ];
    same(
        &mut pair,
        &[
            "ALTER TABLE book DROP FOREIGN KEY of_author",
            "ALTER TABLE link DROP FOREIGN KEY of_a",
            "ALTER TABLE link DROP FOREIGN KEY of_b",
            "INSERT INTO book (title, author_id) VALUES ('Solaris', 77)",
            "INSERT INTO link VALUES (9, 9)",
        ],
    );
    same(&mut pair, &usable);
    // what is looked up anew says the same, by this session, another one, and another proxy
    thread::sleep(Duration::from_millis(1500));
    same(&mut pair, &usable);
    other.must("INSERT INTO link VALUES (8, 8)");
    other.must("DELETE FROM link WHERE author_id = 8");
    let fresh = Proxy::start_with(
        &pair.behind,
        ProxyOptions {
            settings: "enforce = true\n".into(),
            tables: EVERYTHING.split_once('\n').unwrap().1.into(),
            keys: Some(pair.proxy.keys()),
            ..ProxyOptions::default()
        },
    );
    let mut session = fresh.connect_to("app");
    let title = "SELECT title FROM book WHERE author_id = 77";
    assert_eq!(session.text(title).unwrap(), "Solaris");
    same(
        &mut pair,
        &[
            "DELETE FROM link WHERE author_id > 8",
            "DELETE FROM book WHERE author_id = 77",
            "ALTER TABLE book MODIFY author_id INT NOT NULL COMMENT 'who'",
            "ALTER TABLE book CHANGE author_id writer INT NOT NULL",
            "ALTER TABLE link RENAME COLUMN book_id TO of_book",
            "RENAME TABLE link TO written",
        ],
    );
    thread::sleep(Duration::from_millis(1500));
    same(
        &mut pair,
        &[
            "SELECT title FROM book WHERE writer = 1",
            "SELECT of_book FROM written ORDER BY of_book",
            "SHOW CREATE TABLE written",
            "ALTER TABLE book ADD CONSTRAINT of_author FOREIGN KEY (writer) REFERENCES author (id)",
            "ALTER TABLE written ADD CONSTRAINT of_b FOREIGN KEY (of_book) REFERENCES book (id)",
            "SHOW CREATE TABLE written",
            "SELECT of_book FROM written ORDER BY of_book",
            // once more, and both at once
            "ALTER TABLE book DROP FOREIGN KEY of_author, MODIFY writer BIGINT",
            "SELECT title, writer FROM book ORDER BY id",
        ],
    );
    // a protected column makes servers copy the rows, and count them
    for sql in [
        "ALTER TABLE book ADD COLUMN note VARCHAR(20)",
        "ALTER TABLE book DROP COLUMN note",
        "ALTER TABLE written DROP FOREIGN KEY of_b, ADD COLUMN n INT",
        "ALTER TABLE written DROP COLUMN n",
    ] {
        for session in [&mut pair.plain, &mut pair.protected] {
            session.must(sql);
        }
    }
    thread::sleep(Duration::from_millis(1500));
    same(
        &mut pair,
        &[
            "INSERT INTO book (title, writer) VALUES ('z', 3)",
            "SELECT of_book FROM written ORDER BY of_book",
            "SHOW CREATE TABLE written",
            "SELECT title FROM book ORDER BY id",
        ],
    );
    for sql in [
        "ALTER TABLE book DROP COLUMN writer",
        "ALTER TABLE book ADD COLUMN writer INT",
    ] {
        for session in [&mut pair.plain, &mut pair.protected] {
            session.must(sql);
        }
    }
    same(
        &mut pair,
        &[
            "INSERT INTO book (title, writer) VALUES ('x', 5)",
            "SELECT title FROM book WHERE writer = 5",
        ],
    );
    assert_eq!(columns(&pair, "book"), "id,title$enc,writer$enc");
    same(&mut pair, &["DROP TABLE written", "DROP TABLE book"]);
}

/// A mark is for the column that it was made for, and for numbers; nobody else can make one.
pub fn marks_of_dropped_keys_are_no_excuse(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(&mut pair, AUTHORS);
    same(
        &mut pair,
        &[BOOK, "ALTER TABLE book DROP FOREIGN KEY of_author"],
    );
    // it cannot become a text, by one statement or two
    for change in [
        "MODIFY author_id VARCHAR(20)",
        "CHANGE author_id other VARCHAR(20)",
    ] {
        let said = pair.protected.run(&format!("ALTER TABLE book {change}"));
        let said = said.map(|_| change).unwrap_err().to_string();
        assert!(said.contains("OS1014"), "{change}\n{said}");
    }
    let mut admin = pair.behind.connect();
    admin.must("USE app");
    let find = "SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = 'app' AND \
               TABLE_NAME = 'book' AND CONSTRAINT_TYPE = 'CHECK' AND CONSTRAINT_NAME LIKE 'onionskin%' \
               AND CONSTRAINT_NAME NOT IN (SELECT CONSTRAINT_NAME FROM information_schema.CHECK_CONSTRAINTS \
               WHERE CONSTRAINT_SCHEMA = 'app' AND CHECK_CLAUSE LIKE '%enc%')";
    // an account of which nothing is known yet looks at foreign keys and marks anew
    let refused = |pair: &Pair, statement: &str, why: &str| {
        let user = why.replace(' ', "_");
        let mut admin = pair.behind.connect();
        admin.must(&format!("CREATE USER {user} IDENTIFIED BY ''"));
        admin.must(&format!("GRANT ALL ON app.* TO {user}"));
        thread::sleep(Duration::from_millis(1500));
        let mut session = Session::open(pair.proxy.port(), &user, "", Some("app"));
        let said = session.run(statement).map(|_| why.to_owned());
        let said = said.unwrap_err().to_string();
        assert!(said.contains("OS1108"), "{why}\n{said}");
    };
    // an administrator makes other columns plain
    admin.must("ALTER TABLE book ADD COLUMN secret INT");
    refused(&pair, "INSERT INTO book (secret) VALUES (5)", "a column");
    // servers drop the mark with any column
    admin.must("ALTER TABLE book DROP COLUMN secret");
    refused(&pair, "INSERT INTO book (author_id) VALUES (5)", "no mark");
    for session in [&mut pair.plain, &mut pair.protected] {
        session.must("DROP TABLE book");
    }
    same(
        &mut pair,
        &[BOOK, "ALTER TABLE book DROP FOREIGN KEY of_author"],
    );
    let mark = admin.text(find).unwrap();
    admin.must("ALTER TABLE book CHANGE author_id ssn INT");
    refused(&pair, "INSERT INTO book (ssn) VALUES (5)", "a name");
    admin.must("ALTER TABLE book CHANGE ssn author_id VARCHAR(20)");
    refused(&pair, "INSERT INTO book (author_id) VALUES ('x')", "a type");
    admin.must("ALTER TABLE book MODIFY author_id INT");
    thread::sleep(Duration::from_millis(1500));
    let mut session = pair.proxy.connect_to("app");
    session.must("INSERT INTO book (author_id) VALUES (5)");
    // a name of the same form
    let forged = match mark.strip_suffix('0') {
        Some(front) => format!("{front}1"),
        None => format!("{}0", &mark[..mark.len() - 1]),
    };
    admin.must(&format!("ALTER TABLE book DROP CONSTRAINT `{mark}`"));
    admin.must(&format!(
        "ALTER TABLE book ADD CONSTRAINT `{forged}` CHECK (1 = 1)"
    ));
    refused(&pair, "INSERT INTO book (author_id) VALUES (5)", "forged");
    // a key that is dropped behind the proxy leaves none
    same(&mut pair, &[LINK]);
    admin.must("ALTER TABLE link DROP FOREIGN KEY of_a");
    refused(&pair, "INSERT INTO link VALUES (1, 1)", "without the proxy");
    // nothing is left where a CHECK is dropped, or a key that is not there
    let count = "SELECT COUNT(*) FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = 'app' \
                 AND TABLE_NAME = 'plain' AND CONSTRAINT_NAME LIKE 'onionskin%'";
    same(
        &mut pair,
        &[
            "CREATE TABLE plain (a_id INT, CONSTRAINT k FOREIGN KEY (a_id) REFERENCES author (id), CONSTRAINT c CHECK (a_id > 0))",
            "ALTER TABLE plain DROP CONSTRAINT c",
        ],
    );
    pair.same("ALTER TABLE plain DROP FOREIGN KEY nothing");
    assert_eq!(admin.text(count).unwrap(), "0");
    same(&mut pair, &["ALTER TABLE plain DROP FOREIGN KEY k"]);
    assert_eq!(admin.text(count).unwrap(), "1");
    // MariaDB shows constraints to those who may do more than read in the whole database
    let granted = match kind {
        Kind::MySql => "SELECT ON app.plain",
        Kind::MariaDb => "SELECT, INSERT ON app.*",
    };
    admin.must("CREATE USER looker IDENTIFIED BY ''");
    admin.must(&format!("GRANT {granted} TO looker"));
    let mut looker = Session::open(pair.proxy.port(), "looker", "", Some("app"));
    looker.must("SELECT COUNT(*) FROM plain");
}
