//! How often a condition is evaluated.
//!
//! A condition that compares with a value of another kind (`c = '12abc'`) warns each time that it is evaluated: 1292, which names no column.
//! For which rows that is, and whether also once before all of them, is the optimizer's choice: it depends on the index that finds the rows, on
//! where a LIMIT ends the search, on which side of an OR comes first. Two plain servers with other indexes differ in it. So of
//! statements that change rows, such warnings are not counted; all others are, and the values, rows and errors are compared as
//! always.

use super::answers::Answer;
use super::comparison::Difference;
use super::script::Statement;
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};

/// Rows that a server shows; of a longer list nothing is certain.
const SHOWN: usize = 64;

/// Drops, of the differences behind `from`, those in the number of warnings, if the two lists differ in such warnings only. Returns whether it has dropped
/// any: what is asked about the statement is not comparable then.
pub fn drop_uncertain(
    plain: &mut Conn,
    proxy: &mut Conn,
    statements: &[Statement],
    differences: &mut Vec<Difference>,
    from: usize,
) -> bool {
    let counts = |d: &Difference| d.kind.ends_with(": warnings") || is_about_their_number(d);
    let changes = |s: &Statement| {
        let is = |label: &str| s.label.starts_with(label);
        is("update") || is("delete") || s.label == super::computed::COPY
    };
    if !statements.last().is_some_and(changes) || !differences[from..].iter().any(counts) {
        return false;
    }
    if !same_others(listed(plain), listed(proxy)) {
        return false;
    }
    let about = differences.split_off(from);
    differences.extend(about.into_iter().filter(|d| !counts(d)));
    true
}

/// Drops a difference in what `SHOW WARNINGS` shows, if it is in such warnings only.
pub fn drop_shown(
    statements: &[Statement],
    plain: &Answer,
    proxied: &Answer,
    differences: &mut Vec<Difference>,
    from: usize,
) {
    let [statement] = statements else { return };
    if statement.text() != "SHOW WARNINGS" {
        return;
    }
    let rows = |answer: &Answer| {
        let set = answer.sets.first();
        set.map_or_else(Vec::new, |set| set.rows.clone())
    };
    if same_others(rows(plain), rows(proxied)) {
        differences.truncate(from);
    }
}

/// `Rows matched: 1  Changed: 0  Warnings: 1` and the same with another number of warnings.
fn is_about_their_number(difference: &Difference) -> bool {
    let before = |side: &str| {
        let (_, text) = difference.detail.split_once(side)?;
        Some(text.split_once("Warnings: ")?.0.to_owned())
    };
    difference.kind.ends_with(": info") && before("plain: ") == before("proxy: ")
}

fn listed(conn: &mut Conn) -> Vec<Vec<Value>> {
    let rows: Vec<Row> = conn.query("SHOW WARNINGS").unwrap_or_default();
    rows.into_iter().map(Row::unwrap).collect()
}

fn same_others(plain: Vec<Vec<Value>>, proxied: Vec<Vec<Value>>) -> bool {
    let plain = others(plain);
    plain.is_some() && plain == others(proxied)
}

/// The warnings that are not of this kind, by level and code; `None` if the list may not be whole.
fn others(rows: Vec<Vec<Value>>) -> Option<Vec<(Value, Value)>> {
    if rows.len() >= SHOWN {
        return None;
    }
    let mut rest = Vec::new();
    for row in rows {
        let [level, code, Value::Bytes(message)] = row.as_slice() else {
            return None;
        };
        let of_column = String::from_utf8_lossy(message).contains(" for column ");
        if of_column || !is_truncation(code) {
            rest.push((level.clone(), code.clone()));
        }
    }
    Some(rest)
}

fn is_truncation(code: &Value) -> bool {
    *code == Value::from("1292") || *code == Value::from(1292)
}
