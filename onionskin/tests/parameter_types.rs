//! Parameters of every type in every place, in the binary protocol: what is stored, found and said
//! is what a plain server stores, finds and says, or the statement is refused.
//!
//! A client may bind a value of any type to any parameter: a BLOB for a number, a DATETIME for a
//! text. Each server has rules of its own for that, and a literal in the parameter's place may mean
//! something else. So all of them are tried, on a protected column and on a plain one beside it.

use onionskin_testkit::*;

on_both_servers!(
    stored_and_found_alike,
    stored_and_found_alike_without_an_engine,
    constants_that_the_engine_computes,
);

const COM_STMT_EXECUTE: u8 = 0x17;
const COM_STMT_CLOSE: u8 = 0x19;

/// A type's code, its flag byte, and a value.
struct Parameter {
    name: &'static str,
    code: u8,
    unsigned: bool,
    value: Vec<u8>,
}

fn parameters() -> Vec<Parameter> {
    let mut all = Vec::new();
    let mut add = |name, code, value: &[u8]| {
        all.push(Parameter {
            name,
            code,
            unsigned: false,
            value: value.to_vec(),
        });
    };
    let text = |text: &str| {
        let mut bytes = vec![u8::try_from(text.len()).expect("a short text")];
        bytes.extend_from_slice(text.as_bytes());
        bytes
    };
    add("LONG 5", 3, &5i32.to_le_bytes());
    add("LONGLONG -1", 8, &(-1i64).to_le_bytes());
    add("FLOAT 0.1", 4, &0.1f32.to_le_bytes());
    add("FLOAT 3.4e38", 4, &3.4e38f32.to_le_bytes());
    add("DOUBLE 1.5", 5, &1.5f64.to_le_bytes());
    add("DECIMAL 1.25", 246, &text("1.25"));
    add("DECIMAL abc", 246, &text("abc"));
    add("VARSTR 5", 253, &text("5"));
    add("VARSTR 1.25", 253, &text("1.25"));
    add("VARSTR 2020-01-31", 253, &text("2020-01-31"));
    add("VARSTR abc", 253, &text("abc"));
    add("BLOB 5", 252, &text("5"));
    add("BLOB 1.25", 252, &text("1.25"));
    add("BLOB abc", 252, &text("abc"));
    let moment = [0xe4, 0x07, 1, 31, 10, 11, 12, 0x08, 0x0a, 0x0c, 0x00];
    let with_length = |length: u8| [&[length][..], &moment[..usize::from(length)]].concat();
    add("DATE", 10, &with_length(4));
    add("DATE with a time", 10, &with_length(7));
    add("DATE of zero", 10, &[0]);
    add("DATETIME", 12, &with_length(7));
    add("DATETIME with a fraction", 12, &with_length(11));
    add("DATETIME of zero", 12, &[0]);
    add("TIMESTAMP with a fraction", 7, &with_length(11));
    let time = [0u8, 1, 0, 0, 0, 2, 3, 4, 0xd8, 0xa6, 0x08, 0x00];
    let with_length = |length: u8| [&[length][..], &time[..usize::from(length)]].concat();
    add("TIME", 11, &with_length(8));
    add("TIME with a fraction", 11, &with_length(12));
    add("TIME of zero", 11, &[0]);
    add("TIME of minus zero", 11, &[8, 1, 0, 0, 0, 0, 0, 0, 0]);
    all.push(Parameter {
        name: "LONGLONG 2^64 - 1",
        code: 8,
        unsigned: true,
        value: u64::MAX.to_le_bytes().to_vec(),
    });
    all
}

/// Types, and a value that the rows have.
const TYPES: [(&str, &str); 12] = [
    ("INT", "5"),
    ("TINYINT", "5"),
    ("BIGINT UNSIGNED", "5"),
    ("DECIMAL(20,10)", "1.25"),
    ("DOUBLE", "1.25"),
    ("VARCHAR(40)", "'1.25'"),
    ("TEXT", "'abc'"),
    ("VARBINARY(40)", "'abc'"),
    ("DATE", "'2020-01-31'"),
    ("DATETIME(3)", "'2020-01-31 10:11:12'"),
    ("TIME(2)", "'26:03:04'"),
    ("YEAR", "2020"),
];

/// `r` is the protected column, `p` a plain one of its type.
const STATEMENTS: [&str; 20] = [
    "INSERT INTO t (id, r) VALUES (3, ?)",
    "INSERT INTO t (id, r, p) VALUES (3, ?, ?), (4, 1, ?)",
    "INSERT INTO t SET id = 3, p = ?",
    "INSERT INTO t (id, r) VALUES (1, ?) ON DUPLICATE KEY UPDATE r = ?",
    "INSERT INTO t (id, r) VALUES (1, ?) ON DUPLICATE KEY UPDATE r = VALUES(r), p = ?",
    "INSERT INTO t (id, r) VALUES (1, NULL) ON DUPLICATE KEY UPDATE p = ?",
    "INSERT INTO t (id, r) VALUES (1, NULL) ON DUPLICATE KEY UPDATE r = COALESCE(?, r)",
    "REPLACE INTO t (id, r, p) VALUES (1, ?, ?)",
    "UPDATE t SET r = ? WHERE id = 1",
    "UPDATE t SET r = ?, p = ? WHERE id = 1",
    "UPDATE t SET r = COALESCE(?, r) WHERE id = 1",
    "UPDATE t SET n = 7 WHERE r = ?",
    "UPDATE t SET r = CONCAT(r, '') WHERE p < ?",
    "DELETE FROM t WHERE r = ?",
    "DELETE FROM t WHERE p > ? AND r IS NOT NULL",
    "SELECT id FROM t WHERE r = ? ORDER BY id",
    "SELECT id, r FROM t WHERE r < ? OR r > ? ORDER BY id",
    "SELECT id FROM t WHERE r IN (?, 7) ORDER BY id",
    "SELECT id, r FROM t WHERE p <= ? ORDER BY id",
    "SELECT id, CONCAT(r, '!') FROM t WHERE p <= ? ORDER BY id",
];

/// What the server says to an execution: an error's number, the counts of an OK, or rows.
#[derive(PartialEq, Debug)]
enum Answer {
    Error(u16, String),
    /// Rows that are changed, the last number, warnings.
    Done(Vec<u8>),
    Rows(Vec<Vec<u8>>),
}

fn execute(client: &mut RawClient, id: [u8; 4], parameter: &Parameter, count: usize) -> Answer {
    let mut command = [&id[..], &[0, 1, 0, 0, 0]].concat();
    command.extend(std::iter::repeat_n(0, count.div_ceil(8)));
    command.push(1);
    for _ in 0..count {
        command.extend([parameter.code, u8::from(parameter.unsigned) << 7]);
    }
    for _ in 0..count {
        command.extend_from_slice(&parameter.value);
    }
    client.command(COM_STMT_EXECUTE, &command);
    match client.read() {
        Reply::Error(number, text) => Answer::Error(number, text),
        Reply::Packet(ok) if ok[0] == 0 => {
            // counts of one byte, the status, the warnings; no text behind
            Answer::Done([&ok[1..3], &ok[5..7]].concat())
        }
        Reply::Packet(_) => {
            client.until_eof();
            let mut rows = Vec::new();
            loop {
                match client.read() {
                    Reply::Packet(end) if end[0] == 0xfe && end.len() < 9 => {
                        return Answer::Rows(rows);
                    }
                    Reply::Packet(row) => rows.push(row),
                    Reply::Error(number, text) => return Answer::Error(number, text),
                    other => panic!("{other:?}"),
                }
            }
        }
        other => panic!("{}: {other:?}", parameter.name),
    }
}

/// The table's rows as texts.
fn rows(client: &mut RawClient) -> Vec<Vec<u8>> {
    let all = client.lists(3, b"SELECT id, r, p, n FROM t ORDER BY id", 2);
    all.expect("rows").split_off(5)
}

/// What docs/differences.md tells of expressions behind ON DUPLICATE KEY UPDATE on MySQL: there a
/// parameter has a type by its company.
fn is_known(kind: Kind, ty: &str, sql: &str, parameter: &Parameter) -> bool {
    let is_upsert = kind == Kind::MySql && sql.contains("DUPLICATE");
    let is_text = parameter.name.starts_with("VARSTR") || parameter.name.starts_with("BLOB");
    is_upsert && sql.contains("COALESCE(?") && (is_text || ty == "TIME(2)")
        || is_upsert && ty == "TIME(2)" && parameter.name == "LONGLONG 2^64 - 1"
}

fn compare(kind: Kind, pair: &Pair) {
    let mut clients = [pair.beside().port(), pair.proxy.port()].map(RawClient::login);
    for client in &mut clients {
        client.query(b"USE app");
    }
    let (mut tried, mut refused, mut different) = (0, 0, Vec::new());
    for (ty, value) in TYPES {
        let [plain, protected] = ["", " ENCRYPTED FOR (eq, range)"].map(|words| {
            let key = "id INT PRIMARY KEY, n INT DEFAULT 0";
            format!("CREATE TABLE t ({key}, r {ty}{words}, p {ty})")
        });
        let fill =
            format!("INSERT INTO t (id, r, p) VALUES (1, {value}, {value}), (2, NULL, {value})");
        for (client, create) in clients.iter_mut().zip([&plain, &protected]) {
            for sql in ["DROP TABLE IF EXISTS t", create, &fill] {
                let said = client.query(sql.as_bytes());
                assert!(matches!(said, Reply::Packet(_)), "{sql}: {said:?}");
            }
        }
        for sql in STATEMENTS {
            let count = sql.matches('?').count();
            for parameter in &parameters() {
                let [a, b] = clients.each_mut().map(|client| {
                    let id = match client.try_prepare(sql.as_bytes()) {
                        Ok(id) => id,
                        Err(Reply::Error(number, text)) => return Answer::Error(number, text),
                        Err(other) => panic!("{sql}: {other:?}"),
                    };
                    let answer = execute(client, id, parameter, count);
                    client.command(COM_STMT_CLOSE, &id);
                    answer
                });
                tried += 1;
                let is_refused = matches!(&b, Answer::Error(_, text) if text.contains("OS1"));
                refused += usize::from(is_refused);
                let [plain, protected] = clients.each_mut().map(rows);
                let is_alike = is_refused
                    || is_known(kind, ty, sql, parameter)
                    || plain == protected
                        && match (&a, &b) {
                            // how values are shown is compared elsewhere
                            (Answer::Error(a, _), Answer::Error(b, _)) => a == b,
                            _ => a == b,
                        };
                if !is_alike {
                    let shown = |rows: &Vec<Vec<u8>>| {
                        let rows = rows.iter().map(|r| String::from_utf8_lossy(r).into_owned());
                        rows.collect::<Vec<_>>().join(" | ")
                    };
                    different.push(format!(
                        "{ty}: {sql} [{}]\n  plain {a:?} {}\n  proxy {b:?} {}",
                        parameter.name,
                        shown(&plain),
                        shown(&protected)
                    ));
                }
                let has_changed = !sql.starts_with("SELECT") && !matches!(a, Answer::Error(..));
                if has_changed || plain != protected {
                    for client in &mut clients {
                        client.query(b"DELETE FROM t");
                        client.query(fill.as_bytes());
                    }
                }
            }
        }
    }
    println!(
        "{tried} tried, {refused} refused, {} different",
        different.len()
    );
    assert!(different.is_empty(), "{}", different.join("\n"));
    // it is no comparison of refusals
    assert!(refused * 3 < tried * 2, "{refused} of {tried} are refused");
}

fn stored_and_found_alike(kind: Kind) {
    let Some(pair) = Pair::with_settings(kind, "", "") else {
        return;
    };
    compare(kind, &pair);
}

fn stored_and_found_alike_without_an_engine(kind: Kind) {
    let Some(pair) = Pair::of(kind, false, &[]) else {
        return;
    };
    compare(kind, &pair);
}

/// A constant expression is computed by the engine, and its value stands in the statement as a
/// literal: a binary string for a number, a text of another character set for bytes.
fn constants_that_the_engine_computes(kind: Kind) {
    const TABLE: &str = "CREATE TABLE c (id INT PRIMARY KEY, n INT {eq, range}, d DECIMAL(10,2) {eq}, \
         f DOUBLE {eq}, b VARBINARY(20) {eq}, w BIT(16) {eq}, v VARCHAR(20) {eq}, p INT)";
    let Some(mut pair) = Pair::with_settings(kind, TABLE, "") else {
        return;
    };
    pair.run("SET @number = UNHEX('3132'), @text = CONVERT('é' USING latin1)");
    let numbers = [
        "UNHEX('3132')",
        "CAST('12' AS BINARY)",
        "CHAR(49, 50)",
        "@number",
    ];
    let texts = [
        "CONVERT('é' USING latin1)",
        "CONCAT('1', 'é')",
        "UNHEX('C3A9')",
        "@text",
    ];
    let for_numbers = ["n", "d", "f"].map(|column| (column, numbers));
    let for_texts = ["b", "w", "v"].map(|column| (column, texts));
    let (mut tried, mut refused) = (0, 0);
    for (column, expressions) in for_numbers.into_iter().chain(for_texts) {
        for expression in expressions {
            for sql in [
                format!("INSERT INTO c (id, {column}) VALUES (9, {expression})"),
                format!("UPDATE c SET {column} = {expression} WHERE id = 1"),
                format!("REPLACE INTO c SET id = 2, {column} = {expression}, p = 1"),
            ] {
                pair.run("DELETE FROM c");
                pair.run("INSERT INTO c (id, n) VALUES (1, 1), (2, 2)");
                let said = pair.say(&sql);
                tried += 1;
                if said.protected.contains("OS1") {
                    refused += 1;
                    continue;
                }
                assert_eq!(said.plain, said.protected, "{sql}");
                pair.same_result_of_text("SELECT * FROM c ORDER BY id");
            }
        }
    }
    assert!(refused * 3 < tried, "{refused} of {tried} are refused");
}
