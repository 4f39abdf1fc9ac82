//! The DEFAULT of a CHAR under `PAD_CHAR_TO_FULL_LENGTH`.
//!
//! Servers fill it up with blanks: MariaDB when it shows the definition, MySQL when the table is
//! altered, for good. A protected column's stands in the table's catalog as it was written. Its
//! value is the same: a CHAR has no blanks at its end.

use super::answers::Answer;
use super::comparison::Difference;
use super::script::Statement;
use mysql::Value;

/// Statements that describe columns.
const LABELS: [&str; 3] = ["describe", "show columns", "information_schema.columns"];

/// Drops the differences behind `from` if they are in such blanks only.
pub fn drop_padding(
    statements: &[Statement],
    plain: &Answer,
    proxied: &Answer,
    differences: &mut Vec<Difference>,
    from: usize,
) {
    let [statement] = statements else { return };
    if differences.len() == from || !LABELS.contains(&statement.label) {
        return;
    }
    let (Some(plain), Some(proxied)) = (plain.sets.first(), proxied.sets.first()) else {
        return;
    };
    let unpadded = |rows: &[Vec<Value>]| rows.iter().map(|row| without(row)).collect::<Vec<_>>();
    if unpadded(&plain.rows) == unpadded(&proxied.rows) {
        differences.truncate(from);
    }
}

/// A column's description without such blanks.
fn without(row: &[Value]) -> Vec<Value> {
    let is_char = |cell: &Value| matches!(cell, Value::Bytes(text) if text.starts_with(b"char("));
    let trimmed = |cell: &Value| match cell {
        Value::Bytes(text) => Value::Bytes(text.trim_ascii_end().to_vec()),
        other => other.clone(),
    };
    match row.iter().any(is_char) {
        true => row.iter().map(trimmed).collect(),
        false => row.to_vec(),
    }
}
