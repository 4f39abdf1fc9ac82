//! Masked columns: an account sees of them what its rule says, and learns nothing more by any
//! statement. Two databases differ in masked values only: whatever the account asks, it is answered
//! alike.

use onionskin_testkit::*;

on_both_servers!(
    each_account_sees_what_is_said_of_it,
    nothing_more_is_learned,
    roles_count_as_they_are_set,
    roles_that_programs_take_away,
    an_account_is_known_in_every_character_set,
    views_and_other_names_show_nothing,
    questions_about_a_statement_are_about_the_clients,
    a_reload_masks_open_sessions,
);

const PEOPLE: &str = "CREATE TABLE people (id INT PRIMARY KEY, email VARCHAR(60) NOT NULL UNIQUE, name VARCHAR(40), \
     born INT, note VARCHAR(60), city VARCHAR(20), `sé``at` INT, UNIQUE place (`sé``at`, born), KEY age (born), KEY both_of (city, born))";
const CARDS: &str =
    "CREATE TABLE cards (id INT PRIMARY KEY, number CHAR(16), pin VARCHAR(8), mail VARCHAR(60))";

/// Rows lie in the order of a masked column.
const KEYED: &str = "CREATE TABLE keyed (code INT PRIMARY KEY, city VARCHAR(20))";
const LOOSE: &str = "CREATE TABLE loose (mail VARCHAR(60) NOT NULL UNIQUE, city VARCHAR(20))";

/// The sections about one database.
fn sections(database: &str) -> String {
    format!(
        r#"
[protect."{database}.people"]
enforce = true
email = ["eq", "range", "join:mail"]
name = ["eq", "like"]
born = ["eq", "range"]
note = ["eq"]

[protect."{database}.cards"]
enforce = true
number = []
pin = ["eq"]
mail = ["eq", "join:mail"]

[protect."{database}.keyed"]
enforce = true
code = ["range"]

[protect."{database}.loose"]
enforce = true
mail = ["eq"]

[mask."{database}.keyed"]
code = {{ support = "null", "*" = "clear" }}

[mask."{database}.loose"]
mail = {{ support = "null", "*" = "clear" }}

[mask."{database}.people"]
email = {{ support = "null", root = "clear", boss = "clear", "role:auditor" = "clear", "*" = "refuse" }}
name = {{ support = "first:1", root = "clear", boss = "clear", "role:auditor" = "clear", "*" = "null" }}
born = {{ support = "null", root = "clear", boss = "clear", "role:auditor" = "clear", "*" = "null" }}

[mask."{database}.cards"]
number = {{ support = "last:4", "zoë" = "refuse", "*" = "clear" }}
pin = {{ support = "refuse", "*" = "clear" }}
mail = {{ support = "refuse", "*" = "clear" }}
"#
    )
}

/// Both databases, with rows that look alike to `support`.
fn start(kind: Kind) -> Option<Pair> {
    let settings = "control = \"control.sock\"\n".to_owned() + &sections("one") + &sections("two");
    let pair = Pair::with_settings(kind, "", &settings)?;
    let mut root = pair.proxy.connect();
    let people = [
        "(1, 'a@x', 'Alice', 1970, 'n', 'Rome', 1), (2, 'b@x', 'Bob', 1980, 'm', 'Oslo', 2), \
         (3, 'c@x', 'Carol', 1990, 'n', 'Rome', 3), (4, 'd@x', NULL, 1960, NULL, NULL, 4)",
        "(1, 'z@y', 'Amber', 2001, 'n', 'Rome', 1), (2, 'm@y', 'Bill', 2001, 'm', 'Oslo', 2), \
         (3, 'a@x', 'Cy', 1900, 'n', 'Rome', 3), (4, 'Z@z', NULL, 1960, NULL, NULL, 4)",
    ];
    let cards = [
        "(1, '4111111111111111', '1234', 'a@x'), (2, '4222222222222222', '0000', 'b@x')",
        "(1, '5999999999991111', '9', 'z@y'), (2, '5000000000002222', '8', 'q')",
    ];
    for (at, database) in ["one", "two"].into_iter().enumerate() {
        root.must(&format!("CREATE DATABASE {database}"));
        root.must(&format!("USE {database}"));
        root.must(PEOPLE);
        root.must(CARDS);
        root.must(&format!("INSERT INTO people VALUES {}", people[at]));
        root.must(&format!("INSERT INTO cards VALUES {}", cards[at]));
        root.must(KEYED);
        root.must(LOOSE);
        let (low, high) = [(1, 2), (9, 8)][at];
        root.must(&format!(
            "INSERT INTO keyed VALUES ({low}, 'Rome'), ({high}, 'Oslo')"
        ));
        root.must(&format!(
            "INSERT INTO loose VALUES ('{low}', 'Rome'), ('{high}', 'Oslo')"
        ));
    }
    for user in ["support", "boss", "roly", "other", "zoë"] {
        root.must(&format!("CREATE USER {user} IDENTIFIED BY ''"));
        for database in ["one", "two"] {
            root.must(&format!("GRANT ALL ON {database}.* TO {user}"));
        }
    }
    Some(pair)
}

/// Cells with commas between them, rows with semicolons.
fn rows(outcome: &Outcome) -> String {
    outcome.text().replace('\t', ",").replace('\n', ";")
}

fn login(pair: &Pair, user: &str, database: &str) -> Session {
    Session::open(pair.proxy.port(), user, "", Some(database))
}

fn each_account_sees_what_is_said_of_it(kind: Kind) {
    let Some(pair) = start(kind) else {
        return;
    };
    let all = "SELECT id, email, name, born, note, city FROM people WHERE id IN (1, 4) ORDER BY id";
    let cases = [
        (
            "support",
            "1,NULL,A****,NULL,n,Rome;4,NULL,NULL,NULL,NULL,NULL",
        ),
        ("boss", "1,a@x,Alice,1970,n,Rome;4,d@x,NULL,1960,NULL,NULL"),
    ];
    for (user, expected) in cases {
        let mut session = login(&pair, user, "one");
        assert_eq!(rows(&session.must(all)), expected, "{user}");
        let prepared = session.execute(all, ()).expect("a result");
        assert_eq!(rows(&prepared), expected, "{user}, prepared");
        let star = session.must("SELECT * FROM people WHERE id = 1");
        let expected = expected.split(';').next().expect("a row");
        assert_eq!(rows(&star), format!("{expected},1"), "{user}");
    }
    let mut support = login(&pair, "support", "one");
    let numbers = support.must("SELECT c.number AS n FROM cards c ORDER BY c.id");
    assert_eq!(rows(&numbers), "****1111;****2222");
    for sql in ["SELECT pin FROM cards", "SELECT * FROM cards"] {
        assert_eq!(support.must_fail(sql), 1143, "{sql}");
    }
    // what is not masked, and what stands beside it, is the account's as ever
    support.must("UPDATE people SET note = 'seen' WHERE id = 2");
    support.must("DELETE FROM cards WHERE id = 2");
    // a new row has a value in every column
    assert_eq!(support.must_fail("INSERT INTO cards (id) VALUES (3)"), 1143);
    let notes = support.must("SELECT id, note, name FROM people WHERE note = 'seen'");
    assert_eq!(rows(&notes), "2,seen,B****");
    let notes = support.must("SELECT UPPER(note) FROM people WHERE note = 'seen'");
    assert_eq!(rows(&notes), "SEEN");
    let mut other = login(&pair, "other", "one");
    assert_eq!(other.must_fail("SELECT email FROM people"), 1143);
    let named = other.must("SELECT name, born FROM people WHERE id = 1");
    assert_eq!(rows(&named), "NULL,NULL");
}

/// Statements, of which some are not refused.
const STATEMENTS: &[&str] = &[
    // in which order rows come, and which come at all
    "SELECT city FROM keyed",
    "SELECT code, city FROM keyed LIMIT 1",
    "SELECT city FROM loose",
    "SELECT city FROM loose LIMIT 1",
    "SELECT c.id, k.city FROM cards c, keyed k",
    "UPDATE keyed SET city = 'Bonn' LIMIT 1",
    "DELETE FROM loose LIMIT 1",
    "DELETE FROM loose WHERE city = 'Oslo'",
    "SELECT id FROM people",
    "SELECT id FROM people LIMIT 1",
    "SELECT id, born FROM people LIMIT 2",
    "SELECT id FROM people FORCE INDEX (age) LIMIT 1",
    "SELECT id FROM people FORCE INDEX (age)",
    "SELECT id FROM people USE INDEX FOR ORDER BY (age) LIMIT 1",
    "SELECT id FROM people WHERE city = 'Rome' LIMIT 1",
    "SELECT id, city FROM people FORCE INDEX (both_of)",
    "SELECT id FROM people ORDER BY city LIMIT 2",
    "SELECT city, MAX(id) FROM people GROUP BY city",
    "SELECT city, id FROM people GROUP BY city ORDER BY NULL",
    "SELECT DISTINCT city FROM people",
    "SELECT a.id, b.id FROM people a, people b",
    "SELECT id FROM (SELECT id FROM people) d LIMIT 1",
    "WITH c AS (SELECT id FROM people) SELECT * FROM c LIMIT 1",
    "SELECT id FROM people UNION ALL SELECT id FROM people",
    "SELECT GROUP_CONCAT(id) FROM people",
    "SELECT id, @n := COALESCE(@n, 0) + 1 FROM people",
    "SELECT id, ROW_NUMBER() OVER () FROM people",
    "UPDATE people SET `sé``at` = 5",
    "UPDATE people SET `SÉ``AT` = 1 WHERE id = 2",
    "UPDATE IGNORE people SET `Sé``at` = 1 WHERE id = 2",
    "SELECT id, `sé``at` FROM people",
    "UPDATE people SET note = 'first' LIMIT 1",
    "SELECT id, note FROM people ORDER BY id",
    "INSERT INTO cards (id) SELECT id + 200 FROM people LIMIT 1",
    "EXPLAIN SELECT id FROM people FORCE INDEX (age)",
    "SELECT /*+ INDEX(people age) */ id FROM people LIMIT 1",
    "SELECT /*+ ORDER_INDEX(people age) */ id FROM people",
    "SELECT p.id FROM cards c JOIN people p LIMIT 3",
    "SELECT id FROM people AS `p q` LIMIT 1",
    "SELECT id FROM one.people LIMIT 1",
    "SELECT LENGTH(note), id FROM people LIMIT 2",
    "SELECT id FROM people WHERE LENGTH(note) = 1 LIMIT 1",
    "UPDATE people SET city = 'x' WHERE LENGTH(note) = 5 LIMIT 1",
    "UPDATE people p SET p.note = CONCAT(p.note, '!') LIMIT 1",
    "UPDATE people, cards SET people.note = 'w' WHERE cards.id = people.id",
    "SELECT id, note, city FROM people ORDER BY id",
    "DELETE FROM people LIMIT 1",
    "DELETE FROM people WHERE LENGTH(note) = 5 LIMIT 1",
    "DELETE p FROM people p WHERE p.id = 77",
    "DELETE FROM people WHERE city = 'nowhere'",
    "SELECT id INTO @first FROM people LIMIT 1",
    "SELECT @first",
    "SELECT (SELECT id FROM people LIMIT 1)",
    "SELECT id FROM cards WHERE id IN (SELECT id FROM people) LIMIT 1",
    "SELECT UPPER(note) FROM people ORDER BY 1 LIMIT 1",
    "SELECT id, note FROM people ORDER BY note LIMIT 3",
    "SELECT id FROM people FOR UPDATE",
    "SELECT email, name, born, note FROM people ORDER BY id",
    "SELECT * FROM people WHERE city = 'Rome' ORDER BY id",
    "SELECT id FROM people WHERE email = 'a@x'",
    "SELECT id FROM people WHERE 'a@x' = email",
    "SELECT id FROM people WHERE born > 1975",
    "SELECT id FROM people WHERE name LIKE 'Al%'",
    "SELECT COUNT(*) FROM people WHERE email IN ('a@x', 'q')",
    "SELECT id FROM people ORDER BY born",
    "SELECT id, born FROM people ORDER BY 2",
    "SELECT born, id FROM people ORDER BY 1 LIMIT 1",
    "SELECT * FROM people ORDER BY 4",
    "SELECT born AS b, id FROM people ORDER BY b",
    "SELECT born b, id FROM people HAVING b > 1975",
    "SELECT name AS n, id FROM people ORDER BY n IS NULL, id",
    "SELECT COUNT(*) FROM people GROUP BY born",
    "SELECT COUNT(DISTINCT born) FROM people",
    "SELECT DISTINCT born FROM people",
    "SELECT MIN(email), MAX(born) FROM people",
    "SELECT SUM(born) FROM people",
    "SELECT LENGTH(name) FROM people WHERE id = 1",
    "SELECT id, UPPER(email) FROM people",
    "SELECT id, email = 'a@x' FROM people",
    "SELECT IF(born > 1975, 1, 0) FROM people",
    "SELECT (SELECT email FROM people WHERE id = 1)",
    "SELECT (SELECT born FROM people WHERE id = 1) > 1975",
    "SELECT d.email FROM (SELECT email FROM people) d WHERE d.email > 'b'",
    "SELECT COUNT(*) FROM (SELECT * FROM people) d WHERE d.born > 1975",
    "SELECT COUNT(*) FROM (SELECT DISTINCT born FROM people) d",
    "WITH c AS (SELECT * FROM people) SELECT COUNT(*) FROM c WHERE born > 1975",
    "SELECT id FROM people UNION SELECT born FROM people",
    "SELECT born FROM people UNION ALL SELECT born FROM people",
    "SELECT id FROM people WHERE id IN (SELECT id FROM people WHERE email > 'b')",
    "SELECT id FROM people WHERE EXISTS (SELECT * FROM people p WHERE p.born > people.born)",
    "SELECT id FROM people WHERE (1, 'a@x') IN (SELECT id, email FROM people)",
    "SELECT 1 FROM people a JOIN people b ON a.email = b.email",
    "SELECT COUNT(*) FROM people a JOIN people b USING (born)",
    "SELECT COUNT(*) FROM people a NATURAL JOIN people b",
    "SELECT c.id FROM cards c JOIN people p ON c.mail = p.email",
    "SELECT c.id, p.email FROM cards c JOIN people p ON c.id = p.id ORDER BY c.id",
    "SELECT COUNT(*) FROM cards NATURAL JOIN people",
    "SELECT ROW_NUMBER() OVER (ORDER BY born) FROM people",
    "SELECT id, RANK() OVER w FROM people WINDOW w AS (ORDER BY email)",
    "SELECT GROUP_CONCAT(name) FROM people",
    "SELECT @x := email FROM people WHERE id = 1",
    "SELECT email INTO @x FROM people WHERE id = 1",
    "SELECT id FROM people WHERE email IS NULL",
    "SELECT id FROM people WHERE NOT (name <=> NULL)",
    "SELECT id FROM people WHERE born BETWEEN 1900 AND 1975 FOR UPDATE",
    "SELECT id FROM people WHERE email > (SELECT MIN(email) FROM people)",
    "SELECT id FROM people WHERE born = ANY (SELECT born FROM people WHERE id <> 1)",
    "SELECT email /*! , born > 1975 */ FROM people",
    "SELECT id FROM people WHERE /*! email = 'a@x' OR */ id = 1",
    "SELECT id FROM people WHERE `email` = 'a@x'",
    "SELECT id FROM people WHERE EMAIL = 'a@x'",
    "SELECT id FROM people WHERE CONCAT(email, '') = 'a@x'",
    "SELECT id FROM people ORDER BY FIELD(email, 'a@x'), id",
    "SELECT name FROM people WHERE id = 1 LIMIT 0",
    "SELECT people.name FROM people, cards WHERE cards.id = people.id ORDER BY people.id",
    "DESCRIBE people",
    "SHOW CREATE TABLE people",
    "EXPLAIN SELECT id FROM people WHERE email = 'a@x'",
    "EXPLAIN SELECT email FROM people",
    "SET @y = (SELECT email FROM people WHERE id = 1)",
    "DO (SELECT email FROM people WHERE id = 1)",
    "PREPARE s FROM 'SELECT id FROM people WHERE email = ''a@x'''",
    "EXECUTE s",
    "PREPARE t FROM 'SELECT email, name FROM people WHERE id = 1'",
    "EXECUTE t",
    "INSERT INTO people VALUES (9, 'a@x', 'q', 1, 'q', 'q')",
    "INSERT INTO people (id, email) VALUES (9, 'a@x')",
    "INSERT IGNORE INTO people (id, email) VALUES (9, 'a@x')",
    "INSERT INTO people SET id = 9, email = 'a@x'",
    "REPLACE INTO people (id, email) VALUES (9, 'a@x')",
    "INSERT INTO people (id, email) VALUES (1, 'q') ON DUPLICATE KEY UPDATE note = email",
    "INSERT INTO cards (id, number) SELECT id + 20, email FROM people",
    "INSERT INTO cards SELECT id + 20, born, note, city FROM people",
    "INSERT INTO cards (id) SELECT id + 30 FROM people WHERE born > 1975",
    "UPDATE people SET note = email",
    "UPDATE people SET email = 'a@x' WHERE id = 2",
    "UPDATE people SET note = 'q' WHERE email = 'a@x'",
    "UPDATE people SET born = born + 1",
    "UPDATE people SET note = 'q' ORDER BY born LIMIT 1",
    "UPDATE people p JOIN cards c ON p.email = c.mail SET c.id = c.id + 100",
    "DELETE FROM people WHERE email = 'a@x'",
    "DELETE FROM people ORDER BY born LIMIT 1",
    "DELETE FROM people WHERE id = 77 RETURNING *",
    "CREATE TABLE taken SELECT * FROM people",
    "CREATE TABLE taken (id INT, email VARCHAR(60)) SELECT id, email FROM people",
    "CREATE TEMPORARY TABLE taken SELECT id, email FROM people",
    "CREATE TABLE taken LIKE people",
    "CREATE VIEW taken AS SELECT id, email AS e FROM people",
    "RENAME TABLE people TO taken",
    "ALTER TABLE people RENAME TO taken",
    "ALTER TABLE people RENAME COLUMN email TO e",
    "ALTER TABLE people CHANGE email e VARCHAR(60)",
    "ALTER TABLE people MODIFY email VARCHAR(60) CHECK (email > 'b')",
    "ALTER TABLE people ADD UNIQUE KEY u (born)",
    "CREATE TABLE child (mail VARCHAR(60), FOREIGN KEY (mail) REFERENCES people (email))",
    "LOAD DATA LOCAL INFILE '/dev/null' INTO TABLE people (email)",
    "TABLE people",
    "HANDLER people OPEN",
    "CHECKSUM TABLE people",
    "SELECT id FROM people PROCEDURE ANALYSE()",
    "SELECT * FROM people INTO OUTFILE '/tmp/none'",
    "(SELECT email FROM people ORDER BY email LIMIT 1)",
    "SELECT email FROM people WHERE id = 1; SELECT id FROM people WHERE email = 'a@x'",
    "UPDATE people SET note = 'w' WHERE id = 2",
    "DELETE FROM people WHERE id = 3",
    "SELECT id, note, city FROM people ORDER BY id",
    "TRUNCATE TABLE people",
    "DROP TABLE people",
];

/// What a client sees of an answer.
fn said(answer: &Result<Outcome, Failure>) -> String {
    match answer {
        Ok(outcome) => format!("{outcome:?}"),
        Err(failure) => {
            let text = format!("{failure:?}");
            // the database's name is no secret
            text.replace("two.", "one.")
        }
    }
}

fn nothing_more_is_learned(kind: Kind) {
    let Some(pair) = start(kind) else {
        return;
    };
    let mut sessions = ["one", "two"].map(|database| login(&pair, "support", database));
    let mut refused = 0;
    let mut alike = |sql: &str| {
        let [one, two] = &mut sessions;
        let (text, other) = (one.run(sql), two.run(sql));
        assert_eq!(said(&text), said(&other), "{sql}");
        let (prepared, other) = (one.execute(sql, ()), two.execute(sql, ()));
        assert_eq!(said(&prepared), said(&other), "{sql}, prepared");
        refused += u32::from(said(&text).contains("OS1215"));
    };
    for sql in STATEMENTS {
        alike(sql);
    }
    assert!(refused > 60, "{refused} refused by a mask");
}

fn an_account_is_known_in_every_character_set(kind: Kind) {
    let Some(pair) = start(kind) else {
        return;
    };
    // latin1, utf8mb4, cp1250
    for (user, charset) in [(&b"zo\xeb"[..], 8), ("zoë".as_bytes(), 45), (b"zo\xeb", 26)] {
        let mut client = RawClient::login_as(pair.proxy.port(), user, charset);
        let answer = client.query(b"SELECT number FROM one.cards WHERE id = 1");
        assert!(
            matches!(answer, Reply::Error(1143, _)),
            "{charset}: {answer:?}"
        );
    }
}

/// The role, which `roly` may take on; and a session of root's.
fn start_with_auditor(kind: Kind) -> Option<(Pair, Session)> {
    let pair = start(kind)?;
    let mut root = pair.proxy.connect();
    root.must("CREATE ROLE auditor");
    root.must("GRANT ALL ON one.* TO auditor");
    root.must("GRANT auditor TO roly");
    Some((pair, root))
}

fn roles_count_as_they_are_set(kind: Kind) {
    let Some((pair, _)) = start_with_auditor(kind) else {
        return;
    };
    let sql = "SELECT name FROM people WHERE id = 1";
    for with_temporary in [false, true] {
        let mut session = login(&pair, "roly", "one");
        if with_temporary {
            session.must("CREATE TEMPORARY TABLE own (id INT, v VARCHAR(9) ENCRYPTED FOR (eq))");
        }
        for _ in 0..2 {
            assert_eq!(rows(&session.must(sql)), "NULL");
            session.must("SET ROLE auditor");
            assert_eq!(rows(&session.must(sql)), "Alice");
            let found = session.must("SELECT id FROM people WHERE name = 'Alice'");
            assert_eq!(rows(&found), "1");
            let prepared = session.execute(sql, ()).expect("a result");
            assert_eq!(rows(&prepared), "Alice");
            session.must("SET ROLE NONE");
            assert_eq!(rows(&session.must(sql)), "NULL");
            // what was prepared with a role counts no longer without it
            let prepared = session.execute(sql, ()).expect("a result");
            assert_eq!(rows(&prepared), "NULL");
            let probe = "SELECT id FROM people WHERE name = 'Alice'";
            assert_eq!(session.must_fail(probe), 1143);
        }
    }
}

/// A role is gone, however it was given up: the mask goes by what the session has.
fn roles_that_programs_take_away(kind: Kind) {
    let Some((pair, mut root)) = start_with_auditor(kind) else {
        return;
    };
    root.must("USE one");
    let invoker = "SQL SECURITY INVOKER BEGIN";
    for (name, body) in [
        ("ok", "SET ROLE NONE"),
        ("fails", "SET ROLE NONE; SIGNAL SQLSTATE '45000'"),
        ("shows", "SET ROLE NONE; SELECT 5"),
        ("dynamic", "PREPARE x FROM 'SET ROLE NONE'; EXECUTE x"),
    ] {
        root.must(&format!("CREATE PROCEDURE {name}() {invoker} {body}; END"));
    }
    let mut ways = vec![
        "CALL ok()",
        "CALL fails()",
        "CALL shows()",
        "CALL dynamic()",
        "PREPARE x FROM 'SET ROLE NONE'; EXECUTE x",
        "/*!50000 SET ROLE NONE */",
        "SET/**/ROLE/**/NONE",
        "DO 1; SET ROLE NONE",
    ];
    if kind == Kind::MariaDb {
        ways.extend([
            "EXECUTE IMMEDIATE 'SET ROLE NONE'",
            "BEGIN NOT ATOMIC SET ROLE NONE; END",
            "SET STATEMENT max_statement_time = 9 FOR SET ROLE NONE",
            "IF 1 THEN SET ROLE NONE; END IF",
        ]);
    }
    let sql = "SELECT name FROM people WHERE id = 1";
    for way in ways {
        let mut session = login(&pair, "roly", "one");
        session.must("SET ROLE auditor");
        assert_eq!(rows(&session.must(sql)), "Alice");
        // some fail, and some are refused
        let _ = session.run(way);
        let role = session.text("SELECT CURRENT_ROLE()").expect("a row");
        let is_gone = ["NONE", "NULL"].contains(&role.as_str());
        let wanted = if is_gone { "NULL" } else { "Alice" };
        assert_eq!(rows(&session.must(sql)), wanted, "{way}: {role}");
        let prepared = session.execute(sql, ()).expect("a result");
        assert_eq!(rows(&prepared), wanted, "{way}");
    }
}

fn views_and_other_names_show_nothing(kind: Kind) {
    let Some(pair) = start(kind) else {
        return;
    };
    let mut boss = login(&pair, "boss", "one");
    boss.must("CREATE VIEW v AS SELECT id, email AS e, note AS n FROM people");
    assert_eq!(rows(&boss.must("SELECT e FROM v WHERE id = 1")), "a@x");
    let mut support = login(&pair, "support", "one");
    for sql in [
        "SELECT e FROM v",
        "SELECT * FROM v",
        "SELECT id FROM v WHERE e = 'a@x'",
    ] {
        assert_eq!(support.must_fail(sql), 1143, "{sql}");
    }
    assert_eq!(rows(&support.must("SELECT id FROM v WHERE id = 1")), "1");
}

fn a_reload_masks_open_sessions(kind: Kind) {
    let Some(pair) = start(kind) else {
        return;
    };
    let mut boss = login(&pair, "boss", "one");
    let sql = "SELECT name FROM people WHERE id = ?";
    assert_eq!(rows(&boss.execute(sql, (1,)).expect("clear")), "Alice");
    let path = pair.proxy.folder().join("onionskin.toml");
    let text = std::fs::read_to_string(&path).expect("the configuration");
    let masked = text.replace("boss = \"clear\"", "boss = \"first:2\"");
    assert_ne!(text, masked);
    // one that says too little changes nothing
    let missing = text.replace("\"*\" = \"null\"", "nobody = \"null\"");
    std::fs::write(&path, missing).expect("written");
    let (done, told) = pair.proxy.command(&["reload"]);
    assert!(!done && told.contains("all other accounts"), "{told}");
    assert_eq!(rows(&boss.execute(sql, (1,)).expect("clear")), "Alice");
    // nor does one whose column may be there in plaintext
    let plain = text.replace("name = [\"eq\", \"like\"]", "name = \"plain\"");
    std::fs::write(&path, plain).expect("written");
    let (done, told) = pair.proxy.command(&["reload"]);
    assert!(!done && told.contains("enforced"), "{told}");
    let wrong = masked.replace("first:2", "first:0");
    std::fs::write(&path, wrong).expect("written");
    let (done, told) = pair.proxy.command(&["reload"]);
    assert!(!done && told.contains("first:N"), "{told}");
    std::fs::write(&path, &masked).expect("written");
    let (done, told) = pair.proxy.command(&["reload"]);
    assert!(done, "{told}");
    assert_eq!(rows(&boss.execute(sql, (1,)).expect("masked")), "Al****");
    // letters of a number: an error, and never the number
    let failure = boss
        .run("SELECT born FROM people WHERE id = 1")
        .expect_err("no text");
    assert!(format!("{failure:?}").contains("OS1215"), "{failure:?}");
    assert_eq!(
        boss.must_fail("SELECT id FROM people WHERE name = 'Alice'"),
        1143
    );
}

/// Roles are asked for behind what may have called a program. That is not the statement which the
/// client asks about.
fn questions_about_a_statement_are_about_the_clients(kind: Kind) {
    let Some(mut pair) = start(kind) else {
        return;
    };
    let plain = pair.beside().connect();
    let mut sides = [plain, pair.proxy.connect()];
    for side in &mut sides {
        side.must("CREATE DATABASE three");
        side.must("USE three");
        side.must("CREATE TABLE p (id INT PRIMARY KEY, v VARCHAR(10))");
        side.must("CREATE FUNCTION f(a INT) RETURNS INT DETERMINISTIC RETURN a");
    }
    let script = [
        "INSERT INTO p (id) VALUES (1), (2), (3)",
        "SELECT ROW_COUNT()",
        "REPLACE p (id, v) VALUES (1, 'a')",
        "SELECT ROW_COUNT()",
        "UPDATE p SET v = 'z' WHERE id IN (f(1), 2)",
        "SELECT ROW_COUNT()",
        "INSERT IGNORE INTO p (id) VALUES (f(1))",
        "SHOW WARNINGS",
        "SELECT @@warning_count",
        "INSERT INTO p (id) VALUES (f(1))",
        "SHOW ERRORS",
        "SELECT CAST('1x' AS SIGNED), f(1)",
        "SHOW WARNINGS",
        "SELECT f(id) FROM p",
        "SELECT FOUND_ROWS()",
        "SELECT f(id) FROM p; SELECT FOUND_ROWS(); INSERT INTO p (id) VALUES (f(9)); SELECT ROW_COUNT()",
    ];
    for sql in script {
        let [expected, heard] = sides.each_mut().map(|side| said(&side.run(sql)));
        assert_eq!(heard, expected, "{sql}");
    }
    if kind == Kind::MySql {
        // the server takes nothing but its end
        let began = sides[1].run("CREATE TABLE q (id INT) START TRANSACTION");
        assert!(began.is_ok(), "{began:?}");
        sides[1].must("COMMIT");
        assert_eq!(rows(&sides[1].must("SELECT COUNT(*) FROM q")), "0");
    }
    pair.run("DO 0");
}
