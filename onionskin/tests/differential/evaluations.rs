//! How often a condition is evaluated.
//!
//! A condition that compares with a value of another kind (`c = '12abc'`) warns each time that it
//! is evaluated: 1292, which names no column. For which rows that is, and whether also once before
//! all of them, is the optimizer's choice: it depends on the index that finds the rows, on where a
//! LIMIT ends the search, on which side of an OR comes first. Two plain servers with other indexes
//! differ in it. So such warnings are not counted; all others are, and the values, rows and errors
//! are compared as always. The same holds for 1525, the error of a constant that is no time at all,
//! which may stand twice in the list, and for 1292 and 1366 about a column where they can only be a
//! condition's, or cannot be told from one ([`Raised`]).
//!
//! MySQL also warns of the zero date that one of its own temporary tables holds beside a MAX() that
//! is NULL; which table there is depends on the plan.

use super::answers::Answer;
use super::comparison::Difference;
use super::script::Statement;
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};

/// Rows that a server shows; of a longer list nothing is certain.
const SHOWN: usize = 64;

/// Drops, of the differences behind `from`, those in the number of warnings, if the two lists
/// differ in such warnings only. Returns whether it has dropped any: what is asked about the
/// statement is not comparable then. `is_cut`: what the proxy has refused stands behind them in
/// the same text.
pub fn drop_uncertain(
    plain: &mut Conn,
    proxy: &mut Conn,
    statements: &[Statement],
    raised: &Raised,
    is_cut: bool,
    differences: &mut Vec<Difference>,
    from: usize,
) -> bool {
    let counts = |d: &Difference| d.kind.ends_with(": warnings") || is_about_their_number(d);
    let before = statements.len() - usize::from(!is_cut);
    if let Some(before) = statements.get(..before) {
        // of a statement within a text nobody can ask what the warnings were
        let is_before = |d: &Difference| {
            let mut before = before.iter().filter(|s| evaluates(s));
            before.any(|s| d.kind == format!("{}: warnings", s.label))
        };
        let about = differences.split_off(from);
        differences.extend(about.into_iter().filter(|d| !is_before(d)));
    }
    if !statements.last().is_some_and(evaluates) || !differences[from..].iter().any(counts) {
        return false;
    }
    if !same_others(listed(plain), listed(proxy), raised) {
        return false;
    }
    let about = differences.split_off(from);
    differences.extend(about.into_iter().filter(|d| !counts(d)));
    true
}

/// Whether it has a condition, or reads rows, or may do so.
fn evaluates(statement: &Statement) -> bool {
    changes(statement) || statement.text().starts_with("SELECT ") || is_by_name(statement)
}

/// Whether it executes what another one has prepared.
fn is_by_name(statement: &Statement) -> bool {
    statement.text().starts_with("EXECUTE ")
}

fn changes(statement: &Statement) -> bool {
    let is = |label: &str| statement.label.starts_with(label);
    is("update") || is("delete") || statement.label == super::computed::COPY
}

/// What may have raised the warnings of the last statement.
#[derive(Clone, PartialEq, Eq)]
pub enum Raised {
    /// 1292 about a column may be of a value that was stored, unless that value stands in the
    /// condition alone. The statement's text before its condition, and the condition.
    Storing(String, String),
    /// It has changed nothing, or stores nothing: 1292 is a condition's.
    Condition,
    /// It is prepared, on MySQL. There, a parameter gets the type of what stands beside it, even of
    /// another parameter, and is converted once or for each row, first to 64 bits and then to the
    /// column; and if its value is of another type, the statement is resolved once more, with the
    /// words `DEFAULT` in it (1364).
    Conversion,
}

pub fn raised(
    plain_server: &Conn,
    statements: &[Statement],
    plain: &Answer,
    proxied: &Answer,
) -> Raised {
    let evaluated = |s: &&Statement| evaluates(s) && !is_by_name(s);
    let Some(last) = statements.last().filter(evaluated) else {
        return Raised::nothing();
    };
    if !changes(last) {
        return Raised::Condition;
    }
    let is_mysql = super::answers::is_mysql(plain_server);
    let nothing = |answer: &Answer| {
        answer.problem.is_none() && answer.sets.last().is_some_and(|set| set.affected == 0)
    };
    match last.label.starts_with("delete") || nothing(plain) && nothing(proxied) {
        _ if last.prepared && is_mysql => Raised::Conversion,
        true => Raised::Condition,
        false => {
            let text = last.text();
            let (stored, condition) = text.split_once(" WHERE ").unwrap_or((&text, ""));
            Raised::Storing(stored.to_owned(), condition.to_owned())
        }
    }
}

impl Raised {
    /// Nothing is known of it.
    pub fn nothing() -> Raised {
        Raised::Storing(String::new(), String::new())
    }

    /// Whether a warning about a column may be of a value that was stored.
    fn may_be_stored(&self, message: &str) -> bool {
        let Raised::Storing(stored, condition) = self else {
            return false;
        };
        let value = message.split_once(" value: '").map(|(_, behind)| behind);
        let value = value.and_then(|behind| behind.split_once("' for column "));
        !value.is_some_and(|(value, _)| {
            let quoted = format!("'{value}'");
            condition.contains(&quoted) && !stored.contains(&quoted)
        })
    }
}

/// Drops a difference in what `SHOW WARNINGS` shows, if it is in such warnings only.
pub fn drop_shown(
    statements: &[Statement],
    plain: &Answer,
    proxied: &Answer,
    raised: &Raised,
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
    if same_others(rows(plain), rows(proxied), raised) {
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

fn same_others(plain: Vec<Vec<Value>>, proxied: Vec<Vec<Value>>, raised: &Raised) -> bool {
    let is_whole = plain.len().max(proxied.len()) < SHOWN;
    let plain = others(plain, raised);
    // what stores nothing has no others behind the end of the list, either
    let is_certain =
        |others: &Vec<_>| is_whole || *raised == Raised::Condition && others.is_empty();
    plain.as_ref().is_some_and(is_certain) && plain == others(proxied, raised)
}

/// The warnings that are not of this kind, by level and code; `None` if it is no list of warnings.
fn others(rows: Vec<Vec<Value>>, raised: &Raised) -> Option<Vec<(Value, Value)>> {
    let mut rest = Vec::new();
    for row in rows {
        let [level, code, Value::Bytes(message)] = row.as_slice() else {
            return None;
        };
        let message = String::from_utf8_lossy(message);
        let of_aggregate = message.contains("'0000-00-00' for column 'MAX(");
        let of_column = message.contains(" for column ") && !of_aggregate;
        let is_stored = of_column && raised.may_be_stored(&message);
        // how a constant is written; the server says so each time that it reads it
        let is_deprecated = *raised == Raised::Condition && (is(code, "4095") || is(code, "4096"));
        let is_odd = is(code, "1292") || is(code, "1366");
        let of_condition = is(code, "1525") || is_odd && !is_stored || is_deprecated;
        let resolved = *raised == Raised::Conversion && is(code, "1364") && !is_error(level);
        if !of_condition && !resolved {
            rest.push((level.clone(), code.clone()));
        }
    }
    if *raised == Raised::Conversion {
        rest.dedup();
    }
    Some(rest)
}

fn is_error(level: &Value) -> bool {
    *level == Value::from("Error")
}

fn is(code: &Value, number: &str) -> bool {
    *code == Value::from(number) || number.parse().is_ok_and(|n: u64| *code == Value::from(n))
}
