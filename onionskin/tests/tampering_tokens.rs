//! Order keys that somebody with access to the server has changed: `MIN` and `MAX` return a value
//! that a sealed cell of the column holds, or OS1102. See docs/threat-model.md for where a value
//! comes from a key alone.

use onionskin_testkit::*;

on_both_servers!(
    an_invented_key_is_never_returned_as_a_value,
    a_copied_key_gives_a_stored_value_or_an_error,
    keys_of_other_columns_do_not_open,
    extremes_are_right,
);

const PROTECTED: &str = "
[protect.\"app.*\"]
k = [\"range\"]
i = [\"range\"]
d = [\"range\"]
";

struct Table {
    admin: Session,
    session: Session,
    _proxy: Proxy,
    _server: Server,
}

/// `k` has no index, `i` has one; both are 10, 20 and 30.
fn table(kind: Kind) -> Option<Table> {
    if direct_mode() {
        return None;
    }
    let server = Server::start(kind, ServerOptions::default())?;
    let proxy = Proxy::start(&server, PROTECTED);
    let mut admin = server.connect();
    admin.must("CREATE DATABASE app");
    let mut session = proxy.connect_to("app");
    session.must("CREATE TABLE t (id INT PRIMARY KEY, k INT, i INT NOT NULL, d DATE, KEY (i))");
    session.must(
        "INSERT INTO t VALUES (1, 10, 10, '2001-01-01'), (2, 20, 20, '2002-02-02'), \
         (3, 30, 30, NULL)",
    );
    Some(Table {
        admin,
        session,
        _proxy: proxy,
        _server: server,
    })
}

/// The column of a column's order keys.
fn keys_of(admin: &mut Session, column: &str) -> String {
    admin
        .text(&format!(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'app' \
             AND table_name = 't' AND column_name LIKE '{column}$ord%'"
        ))
        .unwrap()
}

/// Questions whose answer is one extreme, the last value of the row.
fn questions(function: &str, column: &str) -> Vec<String> {
    let mut questions = vec![
        format!("SELECT {function}({column}) FROM t"),
        format!("SELECT {function}({column}) AS x FROM t"),
        format!("SELECT {function}(t.{column}) FROM app.t"),
        format!("(SELECT {function}(a.{column}) FROM t AS a)"),
    ];
    if column == "k" {
        questions.extend([
            format!("SELECT COUNT(*), {function}(k) FROM t"),
            format!("SELECT {function}(k) FROM t WHERE id > 0"),
            format!("SELECT {function}(a.k) FROM t a JOIN t b ON a.id = b.id"),
            format!("SELECT {function}(k) x FROM t LIMIT 1"),
            format!("SELECT {function}(k) FROM t FOR UPDATE"),
        ]);
    }
    questions
}

/// The last value of the only row, as text and as a prepared statement gives it.
fn answers(session: &mut Session, question: &str) -> [Answer; 2] {
    let last = |text: String| text.rsplit('\t').next().unwrap_or_default().to_owned();
    [
        session.text(question).map(last),
        session.execute_text(question, ()).map(last),
    ]
}

type Answer = Result<String, Failure>;

fn an_invented_key_is_never_returned_as_a_value(kind: Kind) {
    let Some(mut t) = table(kind) else { return };
    for column in ["k", "i"] {
        let keys = keys_of(&mut t.admin, column);
        // 30 is 0x1e: one more in the last cell is the key of 31, which no row holds.
        let key = t
            .admin
            .text(&format!("SELECT HEX(`{keys}`) FROM app.t WHERE id = 3"))
            .unwrap();
        let (front, last) = key.split_at(key.len() - 4);
        let last = u16::from_str_radix(last, 16).unwrap() + 1;
        t.admin.must(&format!(
            "UPDATE app.t SET `{keys}` = X'{front}{last:04X}' WHERE id = 3"
        ));
        for question in questions("MAX", column) {
            for answer in answers(&mut t.session, &question) {
                let failure = answer.expect_err(&question);
                assert!(failure.message.contains("OS1102"), "{question}: {failure}");
            }
            assert_eq!(t.session.text("SELECT 4711").unwrap(), "4711");
        }
        for question in questions("MIN", column) {
            for answer in answers(&mut t.session, &question) {
                assert_eq!(answer.expect(&question), "10", "{question}");
            }
        }
    }
}

fn a_copied_key_gives_a_stored_value_or_an_error(kind: Kind) {
    let Some(mut t) = table(kind) else { return };
    for column in ["k", "i"] {
        let keys = keys_of(&mut t.admin, column);
        let key = |admin: &mut Session, id: u32| {
            admin
                .text(&format!("SELECT HEX(`{keys}`) FROM app.t WHERE id = {id}"))
                .unwrap()
        };
        let own: Vec<String> = (1..=3).map(|id| key(&mut t.admin, id)).collect();
        for (from, to) in [(1, 3), (3, 1), (2, 1), (2, 3), (1, 2)] {
            for (id, key) in (1..).zip(&own) {
                t.admin.must(&format!(
                    "UPDATE app.t SET `{keys}` = X'{key}' WHERE id = {id}"
                ));
            }
            let copied = &own[from - 1];
            t.admin.must(&format!(
                "UPDATE app.t SET `{keys}` = X'{copied}' WHERE id = {to}"
            ));
            for question in ["MIN", "MAX"].iter().flat_map(|f| questions(f, column)) {
                for answer in answers(&mut t.session, &question) {
                    match answer {
                        Ok(value) => assert!(
                            ["10", "20", "30"].contains(&value.as_str()),
                            "{question}: {value}"
                        ),
                        Err(failure) => {
                            assert!(failure.message.contains("OS1102"), "{question}: {failure}");
                        }
                    }
                }
            }
        }
    }
}

/// Keys without the key of the column are no keys, in whichever clause they are opened.
fn keys_of_other_columns_do_not_open(kind: Kind) {
    let Some(mut t) = table(kind) else { return };
    let (k, i) = (keys_of(&mut t.admin, "k"), keys_of(&mut t.admin, "i"));
    t.admin.must(&format!("UPDATE app.t SET `{k}` = `{i}`"));
    for question in [
        "SELECT MIN(k) FROM t",
        "SELECT MAX(k), COUNT(*) FROM t",
        "SELECT DISTINCT k FROM t",
        "SELECT k, COUNT(*) FROM t GROUP BY k",
        "SELECT id, MIN(k) FROM t GROUP BY id",
    ] {
        let failure = t.session.text(question).expect_err(question);
        assert!(failure.message.contains("OS1102"), "{question}: {failure}");
    }
}

fn extremes_are_right(kind: Kind) {
    let Some(mut t) = table(kind) else { return };
    t.session
        .must("INSERT INTO t VALUES (4, -5, -5, '1999-12-31'), (5, NULL, 7, NULL)");
    let mut expect = |question: &str, answer: &str| {
        assert_eq!(t.session.text(question).unwrap(), answer, "{question}");
        let prepared = t.session.execute_text(question, ());
        assert_eq!(prepared.unwrap(), answer, "{question}, prepared");
    };
    expect("SELECT MIN(k) FROM t", "-5");
    expect("SELECT MAX(k) FROM t", "30");
    expect("SELECT MIN(i) FROM t", "-5");
    expect("SELECT MAX(i) FROM t", "30");
    expect("SELECT MIN(d) FROM t", "1999-12-31");
    expect("SELECT MAX(d) AS latest FROM t AS a", "2002-02-02");
    expect(
        "SELECT MIN(k), MAX(k), MIN(i), MAX(i), MAX(d) FROM t",
        "-5\t30\t-5\t30\t2002-02-02",
    );
    expect("SELECT MIN(k) FROM t WHERE id = 5", "NULL");
    expect("SELECT MAX(i), MAX(k) FROM t WHERE id IN (1, 2)", "20\t20");
    expect("SELECT MIN(k) FROM t WHERE k > 10", "20");
    expect("SELECT MIN(DISTINCT k) FROM t", "-5");
    expect("SELECT DISTINCT MAX(k) FROM t", "30");
    expect("SELECT SQL_NO_CACHE MAX(k) FROM t", "30");
    expect("SELECT MAX(k) FROM t LIMIT 0", "");
    expect(
        "SELECT id > 3 AS g, MIN(k), MAX(i) FROM t GROUP BY g ORDER BY g",
        "0\t10\t30\n1\t-5\t7",
    );
    t.session.must("UPDATE t SET k = NULL");
    let mut expect = |question: &str| {
        assert_eq!(t.session.text(question).unwrap(), "NULL", "{question}");
    };
    expect("SELECT MIN(k) FROM t");
    expect("SELECT MAX(k) FROM t");
    expect("SELECT MAX(k) FROM t WHERE id > 1");
    t.session.must("DELETE FROM t");
    for question in [
        "SELECT MIN(k) FROM t",
        "SELECT MAX(i) FROM t",
        "SELECT MIN(k) FROM t WHERE id < 9",
    ] {
        assert_eq!(t.session.text(question).unwrap(), "NULL", "{question}");
    }
    // Once the table is locked, it can be named once.
    t.session.must("INSERT INTO t VALUES (1, 1, 1, NULL)");
    t.session.must("LOCK TABLES t WRITE");
    assert_eq!(t.session.text("SELECT MAX(i) FROM t").unwrap(), "1");
    t.session.must("UNLOCK TABLES");
}
