//! Parameters, where the client's character set is not the connection's, into columns of every
//! kind. MySQL converts such a text to the set of the column, or to that of the connection if the
//! column has none.

use super::*;

/// Columns of every kind that a text goes into.
const COLUMNS: [(&str, &str); 9] = [
    ("u", "VARCHAR(40) CHARACTER SET utf8mb4 {eq, range, like}"),
    ("c", "VARCHAR(40) CHARACTER SET cp1251 {eq, range}"),
    ("k", "TEXT CHARACTER SET koi8r {}"),
    ("v", "VARBINARY(80) {eq}"),
    ("f", "BINARY(40) {}"),
    ("l", "BLOB {}"),
    ("e", "ENUM('Жук','b') CHARACTER SET cp1251 {eq}"),
    ("j", "JSON {}"),
    ("n", "INT {}"),
];

/// What is written, and asked for: `{c}` is a column.
const STATEMENTS: [&str; 11] = [
    "INSERT INTO t_par (id, {c}) VALUES (?, ?)",
    "REPLACE INTO t_par (id, {c}) VALUES (?, ?)",
    "INSERT INTO t_par (id, {c}) VALUES (?, ?) ON DUPLICATE KEY UPDATE {c} = VALUES({c})",
    "UPDATE t_par SET id = ?, {c} = ? WHERE id = (SELECT MIN(id) FROM t_few) OR FALSE",
    "UPDATE t_par SET n = ? WHERE {c} = ?",
    "SELECT COUNT(*) + ? FROM t_par WHERE {c} = ?",
    "SELECT COUNT(*) + ? FROM t_par WHERE {c} IN (?, 'b')",
    "SELECT COUNT(*) + ? FROM t_par WHERE {c} > ?",
    "SELECT COUNT(*) + ? FROM t_par WHERE {c} LIKE ?",
    "SELECT COUNT(*) + ? FROM t_par WHERE CONCAT({c}, '') = ?",
    "INSERT INTO t_par (id, {c}) SELECT ?, ? FROM t_few",
];

/// Every pair of sets; the same, or an error.
pub fn parameters_between_sets(pair: &mut Pair, findings: &mut Findings) {
    let columns: Vec<String> = COLUMNS.iter().map(|(n, ty)| format!("{n} {ty}")).collect();
    let columns = columns.join(", ");
    create(
        pair,
        &format!("CREATE TABLE t_par (id INT PRIMARY KEY, {columns})"),
    );
    pair.both("CREATE TABLE t_few (id INT)");
    pair.both("INSERT INTO t_few VALUES (1)");
    let mut id = 0;
    for client in ["utf8mb4", "cp1251", "binary"] {
        for connection in ["utf8mb4", "koi8r", "latin1"] {
            pair.run(&format!("SET NAMES {client}"));
            pair.run(&format!("SET character_set_connection = {connection}"));
            pair.run("SET character_set_results = utf8mb4");
            let set = Charset::from_name(client).expect(client);
            for text in ["Жук", "Äb", "12"] {
                let bytes = encoded(set, text).unwrap_or_else(|| text.as_bytes().to_vec());
                for (column, _) in COLUMNS {
                    for statement in STATEMENTS {
                        id += 1;
                        let sql = statement.replace("{c}", column);
                        let values = [Value::from(id), Value::Bytes(bytes.clone())];
                        let about = format!("{client} {connection} {sql}");
                        one(pair, findings, &about, &sql, &values);
                    }
                }
            }
            pair.run("SET NAMES utf8mb4");
            pair.compare("SELECT * FROM t_par ORDER BY id", &[]);
        }
    }
    // a character that the connection's set or the column's lacks, and bytes that are none
    let refused = findings.refused("parameters between sets");
    assert!(id > 2000 && refused.len() < id / 50, "{refused:#?}");
    let clear = |r: &&String| r.contains("OS1018");
    assert_eq!(
        refused.iter().filter(clear).count(),
        refused.len(),
        "{refused:#?}"
    );
}

/// One statement, on the protected side first.
fn one(pair: &mut Pair, findings: &mut Findings, about: &str, sql: &str, values: &[Value]) {
    let run = |session: &mut Session| {
        let answer = session.execute(sql, values.to_vec());
        answer.map(|o| (o.text(), o.affected, o.warnings))
    };
    let protected = run(&mut pair.protected);
    if let Err(failure) = &protected
        && failure.message.starts_with("OS")
    {
        findings
            .refused
            .push(format!("{about} {values:?}: {failure}"));
        return;
    }
    let plain = run(&mut pair.plain);
    let said = |f: Failure| (f.code, f.state);
    let about = format!("{about} {values:?}");
    findings.compare(&about, &plain.map_err(said), &protected.map_err(said));
}
