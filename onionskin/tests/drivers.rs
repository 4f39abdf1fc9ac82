//! What drivers send and read beside plain statements: flags in the middle of an answer, cursors
//! inside of procedures, packets that they should not send.

use ::mysql::prelude::Queryable;
use onionskin_testkit::*;

on_both_servers!(
    more_results_are_told_early,
    procedures_with_cursors_of_their_own,
    a_client_that_compresses_unasked,
    rows_without_values,
    words_in_comments_and_aliases,
    counts_of_groups_in_their_order,
    programs_with_the_names_of_tables,
    a_program_behind_other_statements,
    one_statement_is_prepared,
    stored_programs_are_prepared,
    a_nul_at_the_end,
    programs_that_read_no_table,
    a_change_of_user_without_plugins,
);

const COM_QUERY: u8 = 3;
const COM_CHANGE_USER: u8 = 17;
const COM_STMT_EXECUTE: u8 = 23;
const COM_SET_OPTION: u8 = 27;
/// In the first byte of an EOF packet's status, which is its fourth.
const MORE_RESULTS: u8 = 0x8;

const TABLES: &str = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(30) {eq}, n INT);\
                      CREATE TABLE u (id INT PRIMARY KEY, w VARCHAR(30))";

fn pair(kind: Kind) -> Option<Pair> {
    let mut pair = Pair::with_engine(kind, TABLES)?;
    pair.same("INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 2)");
    pair.same("INSERT INTO u VALUES (1, 'x')");
    Some(pair)
}

/// The packets of an answer to so many statements with rows.
fn results(client: &mut RawClient, count: usize) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let mut ends = 0;
    while ends < 2 * count {
        match client.read() {
            Reply::Packet(packet) => {
                ends += usize::from(packet[0] == 0xfe && packet.len() < 9);
                packets.push(packet);
            }
            other => panic!("{other:?}"),
        }
    }
    packets
}

/// A client that does not read a result looks at the packet behind its definitions for whether
/// another one follows. It took the next statement's rows for those of one before.
fn more_results_are_told_early(kind: Kind) {
    let Some(pair) = pair(kind) else { return };
    let [mut plain, mut protected] =
        [pair.beside().port(), pair.proxy.port()].map(RawClient::login);
    let flags = |client: &mut RawClient, texts: &[&str]| -> Vec<u8> {
        client.command(COM_SET_OPTION, &[0, 0]);
        client.read();
        client.command(COM_QUERY, texts.join("; ").as_bytes());
        let packets = results(client, texts.len());
        let ends = packets.iter().filter(|p| p[0] == 0xfe && p.len() < 9);
        ends.map(|eof| eof[3] & MORE_RESULTS).collect()
    };
    for texts in [
        ["SELECT id, v FROM app.t", "SELECT 2", "SELECT w FROM app.u"],
        [
            "SELECT 1",
            "SELECT v FROM app.t ORDER BY v",
            "SELECT UPPER(v) FROM app.t",
        ],
        [
            "SELECT UPPER(v) FROM app.t",
            "SELECT v, COUNT(*) FROM app.t GROUP BY v",
            "SELECT 3",
        ],
        [
            "SHOW CREATE TABLE app.t",
            "SHOW COLUMNS FROM app.t",
            "SELECT v FROM app.t",
        ],
    ] {
        let expected = flags(&mut plain, &texts);
        assert_eq!(expected, [8, 8, 8, 8, 0, 0], "{texts:?}");
        assert_eq!(flags(&mut protected, &texts), expected, "{texts:?}");
    }
}

/// The server says of such a procedure's rows that there is a cursor, and sends them.
fn procedures_with_cursors_of_their_own(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    for server in [pair.beside(), &pair.behind] {
        let mut session = server.connect();
        session.must("USE app");
        session.must(
            "CREATE PROCEDURE p() BEGIN DECLARE c CURSOR FOR SELECT 1; OPEN c; CLOSE c; \
             SELECT 5 AS a UNION SELECT 6; SELECT 7 AS b; END",
        );
    }
    for session in pair.sessions() {
        let conn = session.conn();
        let statement = conn.prep("CALL p()").expect("a statement");
        for _ in 0..2 {
            let mut found = Vec::new();
            let mut result = conn.exec_iter(&statement, ()).expect("results");
            while let Some(set) = result.iter() {
                let rows: Vec<i64> = set
                    .map(|row| row.expect("a row").get(0).expect("a"))
                    .collect();
                found.push(rows);
            }
            drop(result);
            assert_eq!(found[..2], [vec![5, 6], vec![7]]);
        }
    }
    pair.same("SELECT id, v FROM t ORDER BY id");
    let [mut plain, mut protected] =
        [pair.beside().port(), pair.proxy.port()].map(RawClient::login);
    let called = |client: &mut RawClient| {
        client.query(b"USE app");
        let id = client.prepare(b"CALL p()");
        client.command(COM_STMT_EXECUTE, &[&id[..], &[0, 1, 0, 0, 0]].concat());
        let packets = results(client, 2);
        (packets, client.read())
    };
    assert_eq!(called(&mut plain), called(&mut protected));
}

/// Its packets have another head. Its first command is `SELECT 1`, not worth compressing.
fn a_client_that_compresses_unasked(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let mut client = RawClient::login(pair.proxy.port());
    let inner = packet(0, b"\x03SELECT 1");
    let length = u8::try_from(inner.len()).expect("short");
    client.send(&[&[length, 0, 0, 0, 0, 0, 0], &inner[..]].concat());
    // not left to wait for an answer that it can read
    assert!(client.closes());
    pair.proxy.assert_healthy();
}

/// `VALUES ()` names no column: a DEFAULT for an AUTO_INCREMENT one may be the number 0.
fn rows_without_values(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.create(
        "CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(10) {eq} DEFAULT 'd', \
         n INT DEFAULT 7)",
    );
    for mode in ["", ",NO_AUTO_VALUE_ON_ZERO"] {
        pair.same(&format!("SET sql_mode = CONCAT(@@sql_mode, '{mode}')"));
        for sql in [
            "INSERT INTO a VALUES ()",
            "INSERT INTO a VALUES (), ()",
            "INSERT INTO a () VALUES ()",
            "INSERT INTO a () VALUES (), ()",
            "REPLACE INTO a VALUES ()",
            "REPLACE INTO a VALUES (), ()",
            "INSERT IGNORE INTO a VALUES ()",
            "INSERT INTO a VALUES () ON DUPLICATE KEY UPDATE v = 'x'",
            "INSERT INTO a VALUES (), (1, 'a', 1)",
            "INSERT INTO a VALUES (100, 'a', 1), ()",
            "INSERT INTO a (id, v) VALUES ()",
        ] {
            pair.same(sql);
            pair.same("SELECT * FROM a ORDER BY id");
            pair.same("SELECT LAST_INSERT_ID()");
        }
    }
}

/// What MediaWiki and Doctrine write.
fn words_in_comments_and_aliases(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    for sql in [
        "SELECT /*! STRAIGHT_JOIN */ t.id, u.w FROM t JOIN u ON t.id = u.id ORDER BY t.id",
        "DELETE /*!32302 QUICK */ FROM t WHERE v = 'none'",
        "INSERT /*! LOW_PRIORITY */ INTO t VALUES (3, 'three', 3)",
        "UPDATE /*! LOW_PRIORITY */ t SET v = 'drei' WHERE id = 3",
        "SELECT COUNT(*) FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = 'app'",
        "SELECT t.TABLE_NAME AS u FROM information_schema.TABLES t JOIN information_schema.COLUMNS u \
         ON u.TABLE_NAME = t.TABLE_NAME WHERE t.TABLE_SCHEMA = 'app' GROUP BY t.TABLE_NAME ORDER BY 1",
        "SELECT v FROM t ORDER BY id",
    ] {
        pair.same(sql);
    }
    // a table among them is read as one
    let sql = "SELECT t.v FROM information_schema.COLUMNS x JOIN t ON x.TABLE_NAME = 'u'";
    let failure = pair.protected.run(sql).expect_err(sql);
    assert!(failure.message.starts_with("OS1001"), "{failure}");
    let hidden = "SELECT c.TABLE_NAME FROM information_schema.COLUMNS c /*! JOIN t */ LIMIT 1";
    let failure = pair.protected.run(hidden).expect_err(hidden);
    assert!(failure.message.starts_with("OS10"), "{failure}");
    // the tree is that of the session's settings: elsewhere, all behind the backslash is a string
    pair.protected.must("SET sql_mode = 'NO_BACKSLASH_ESCAPES'");
    let hidden = "SELECT t.TABLE_NAME FROM information_schema.COLUMNS t WHERE '\\' = '' UNION \
                  SELECT v FROM t WHERE v = ' OR 1 = 1 -- '";
    let failure = pair.protected.run(hidden).expect_err(hidden);
    assert!(failure.message.starts_with("OS1001"), "{failure}");
    pair.protected.must("SET sql_mode = 'ANSI_QUOTES'");
    let hidden = "SELECT c.TABLE_NAME FROM information_schema.COLUMNS c, \"t\" WHERE \"t\".v = 'x'";
    let failure = pair.protected.run(hidden).expect_err(hidden);
    assert!(failure.message.starts_with("OS1001"), "{failure}");
}

/// MySQL sorts such groups in a temporary table, and calls its columns by their aliases.
fn counts_of_groups_in_their_order(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.create(
        "CREATE TABLE acc (id INT PRIMARY KEY, firm INT {eq}, name VARCHAR(20) {eq}, n INT)",
    );
    pair.same(
        "INSERT INTO acc VALUES (1, 6, 'a', 50), (2, 6, 'a', 50), (3, 1, 'b', 20), (4, 2, 'b', 30)",
    );
    for sql in [
        "SELECT COUNT(DISTINCT id) c, firm f FROM acc GROUP BY firm ORDER BY 1 DESC LIMIT 1",
        "SELECT COUNT(DISTINCT id) c, firm FROM acc GROUP BY firm ORDER BY c DESC LIMIT 1",
        "SELECT firm AS f, COUNT(DISTINCT id), SUM(n) FROM acc GROUP BY f ORDER BY 2 DESC LIMIT 1",
        "SELECT name AS f, COUNT(DISTINCT n) c FROM acc GROUP BY name ORDER BY c DESC LIMIT 1",
        "SELECT COUNT(DISTINCT firm) c, name FROM acc GROUP BY name ORDER BY c DESC LIMIT 1",
    ] {
        pair.same_result(sql);
    }
}

/// DROP and CALL name a program, whatever the tables are called.
fn programs_with_the_names_of_tables(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    for sql in [
        "DROP PROCEDURE IF EXISTS t",
        "DROP FUNCTION IF EXISTS t",
        "DROP EVENT IF EXISTS t",
        "DROP TRIGGER IF EXISTS app.t",
        "DROP PROCEDURE t",
        "CREATE PROCEDURE t(n INT, OUT m INT) BEGIN SET m = n; SELECT n; END",
        "SET @a = 3",
        "CALL t(2, @m)",
        "CALL app.t(@a, @m)",
        "CALL `t`(NULL, @m)",
        "CALL t",
        "DROP PROCEDURE t",
        "CALL t(2, @m)",
    ] {
        pair.same(sql);
    }
    // what is passed may be of a table
    let sql = "CALL t((SELECT MAX(v) FROM t), @m)";
    let failure = pair.protected.run(sql).expect_err(sql);
    assert!(failure.message.starts_with("OS10"), "{failure}");
    pair.same("SELECT id, v FROM t ORDER BY id");
}

/// `DROP PROCEDURE IF EXISTS p; CREATE PROCEDURE p() …` in one text, as migrations and the tests of
/// drivers have it, also where a pattern of `[protect]` matches every name.
fn a_program_behind_other_statements(kind: Kind) {
    const POLICY: &str = "[protect.\"app.*\"]\n\"id\" = \"plain\"\n\"*\" = [\"eq\"]\n";
    let Some(mut pair) = Pair::with_settings(kind, TABLES, POLICY) else {
        return;
    };
    for session in pair.sessions() {
        for (text, rows) in [
            (
                "DROP PROCEDURE IF EXISTS app.p; CREATE PROCEDURE app.p(n INT) BEGIN DO 1; \
                 SELECT n AS a; SELECT 'x' AS b UNION SELECT 'y'; END; ",
                3,
            ),
            (
                "INSERT INTO app.t VALUES (9, 'nine', 9); DROP PROCEDURE app.p; \
                 CREATE PROCEDURE app.p(n INT) SELECT n + 1",
                1,
            ),
        ] {
            session.conn().query_drop(text).expect(text);
            let mut found = 0;
            let mut result = session.conn().query_iter("CALL app.p(7)").expect("results");
            while let Some(set) = result.iter() {
                found += set.count();
            }
            assert_eq!(found, rows, "{text}");
        }
    }
    pair.same("SELECT id, v FROM t WHERE v = 'nine'");
    // one that names a protected table is refused, and what stands before it has run
    let both = "INSERT INTO app.t VALUES (10, 'ten', 10); \
                CREATE PROCEDURE app.q() BEGIN SELECT v FROM app.t; SELECT 1; END";
    let conn = pair.protected.conn();
    let mut errors = Vec::new();
    let mut result = conn.query_iter(both).expect("the first of two");
    while let Some(set) = result.iter() {
        errors.extend(set.filter_map(|row| Some(row.err()?.to_string())));
    }
    drop(result);
    assert!(errors.concat().contains("OS1044"), "{errors:?}");
    pair.same("SELECT id FROM t WHERE v = 'nine' ORDER BY id");
    assert!(pair.protected.run("CALL app.q()").is_err());
}

/// A second one is the server's syntax error, with its text.
fn one_statement_is_prepared(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    for text in [
        "SELECT v FROM t; SELECT id FROM t",
        "SELECT id FROM t;\n DELETE FROM t WHERE v = ?",
        "SELECT 1; ; SELECT 2",
    ] {
        let mut said = Vec::new();
        for session in pair.sessions() {
            let refused = session.conn().prep(text).map(|_| ());
            said.push(refused.expect_err(text).to_string());
        }
        assert_eq!(said[0], said[1]);
        pair.same(&format!("PREPARE s FROM '{text}'"));
    }
}

/// MariaDB prepares stored programs, whose semicolons are their own. MySQL says that it does not
/// (1295), and drivers send the text then.
fn stored_programs_are_prepared(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let program = "CREATE PROCEDURE p(IN n INT)\nBEGIN\n  SELECT 5, n;\nEND\n";
    let mut said = Vec::new();
    for session in pair.sessions() {
        let conn = session.conn();
        let done = conn.prep(program).and_then(|made| conn.exec_drop(made, ()));
        said.push(done.map_err(|error| error.to_string()));
    }
    assert_eq!(said[0], said[1]);
    assert_eq!(said[1].is_ok(), kind == Kind::MariaDb, "{said:?}");
    let text = program.trim_end();
    if kind == Kind::MySql {
        pair.same(text);
    }
    pair.same("CALL p(2)");
    pair.same("DROP PROCEDURE p");
    pair.same(&format!("PREPARE s FROM '{text}'"));
    pair.same("EXECUTE s");
    pair.same("CALL p(3)");
    // what is refused as a text is refused
    let near = "CREATE PROCEDURE q() BEGIN SELECT v FROM t; SELECT 1; END";
    assert!(pair.protected.conn().prep(near).is_err());
    let refused = pair.protected.run(&format!("PREPARE r FROM '{near}'"));
    assert!(refused.is_err());
    assert!(pair.protected.run("EXECUTE r").is_err());
    assert!(pair.protected.run("CALL q()").is_err());
}

/// Programs in C send it when they count it. Servers read up to it; another one before it is an
/// error to them.
fn a_nul_at_the_end(kind: Kind) {
    let Some(pair) = pair(kind) else { return };
    let [mut plain, mut protected] =
        [pair.beside().port(), pair.proxy.port()].map(RawClient::login);
    for text in [
        "SELECT 1\0",
        "USE app\0",
        "SELECT id, v FROM t WHERE v = 'one'\0",
        "INSERT INTO t VALUES (3, 'three', 3)\0",
        "SELECT UPPER(v) FROM t WHERE id = 3\0",
    ] {
        let [expected, found] =
            [&mut plain, &mut protected].map(|client| client.query(text.as_bytes()));
        assert_eq!(found, expected, "{text:?}");
        let [expected, found] = [&mut plain, &mut protected]
            .map(|client| client.try_prepare(text.as_bytes()).map(|_| ()));
        assert_eq!(found, expected, "{text:?}");
    }
    for text in [
        "SELECT 1\0\0",
        "SELECT v FROM t WHERE v = 'one'\0 OR 1",
        "\0",
    ] {
        let found = protected.query(text.as_bytes());
        assert!(matches!(found, Reply::Error(..)), "{text:?}: {found:?}");
        assert!(protected.try_prepare(text.as_bytes()).is_err(), "{text:?}");
    }
}

/// DUAL is none, also where a pattern of `[protect]` matches every name.
fn programs_that_read_no_table(kind: Kind) {
    const POLICY: &str = "[protect.\"app.*\"]\n\"id\" = \"plain\"\n\"*\" = [\"eq\"]\n";
    let Some(mut pair) = Pair::with_settings(kind, TABLES, POLICY) else {
        return;
    };
    for sql in [
        "CREATE PROCEDURE p() SELECT 1 FROM DUAL",
        "CALL p()",
        "CREATE PROCEDURE q() BEGIN DECLARE x INT; SELECT 2 INTO x FROM dual WHERE 1 = 1; SELECT x; END",
        "CALL q()",
        "CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN (SELECT 3 FROM DUAL)",
        "SELECT f()",
        "CREATE TRIGGER g BEFORE INSERT ON u FOR EACH ROW SET @x = (SELECT 4 FROM DUAL)",
    ] {
        pair.same(sql);
    }
    // these are names of tables that are not there
    for sql in [
        "CREATE PROCEDURE r() SELECT 1 FROM `dual`",
        "CREATE PROCEDURE r() SELECT 1 FROM app.dual",
        "CREATE PROCEDURE r() INSERT INTO `dual` SELECT 1 FROM DUAL",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS10"), "{sql}\n→ {failure}");
    }
}

/// A client that names no login method, as Node's `mysql`: MariaDB asks it for an answer of
/// `mysql_native_password` all the same.
fn a_change_of_user_without_plugins(kind: Kind) {
    if kind != Kind::MariaDb {
        return; // MySQL has no method that such a client knows
    }
    let Some(pair) = pair(kind) else { return };
    for port in [pair.beside().port(), pair.proxy.port()] {
        let mut client = RawClient::connect(port);
        assert!(matches!(client.read(), Reply::Packet(_)));
        let mut login = login_payload(b"");
        login[2] &= !0x08; // PLUGIN_AUTH
        client.send(&packet(1, &login));
        assert!(matches!(client.read(), Reply::Packet(ok) if ok[0] == 0));
        client.query(b"SET @before = 1");
        // no password, and a collation
        client.command(COM_CHANGE_USER, b"root\0\0app\0\x2d\0");
        let asked = client.read();
        assert!(matches!(&asked, Reply::Packet(switch) if switch[0] == 0xfe));
        client.send(&packet(2, b""));
        let done = client.read();
        assert!(matches!(&done, Reply::Packet(ok) if ok[0] == 0));
        let rows = client.lists(
            COM_QUERY,
            b"SELECT @before IS NULL, v FROM t WHERE id = 1",
            2,
        );
        let row = rows.expect("rows").pop();
        assert_eq!(row.as_deref(), Some(&b"\x011\x03one"[..]));
    }
}
