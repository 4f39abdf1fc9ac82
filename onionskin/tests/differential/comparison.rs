//! What two answers differ in.

use super::answers::{Answer, Definition, Set};
use super::script::{Check, Order, Statement};
use mysql::Value;
use mysql::consts::ColumnFlags;
use std::fmt::Write;

/// A difference between the plain server and the proxy.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Differences of the same kind are one finding.
    pub kind: String,
    /// Expected and actual.
    pub detail: String,
    /// The data are not the same any more: what follows differs because of this.
    pub diverged: bool,
    /// Only column definitions differ.
    pub is_metadata: bool,
    /// Number of the step that showed it.
    pub step: usize,
}

/// How the answers to a text differ. `plain` answers only the statements that the proxy did not
/// refuse.
#[expect(clippy::too_many_lines, reason = "one arm for each pair of outcomes")]
pub fn differences(
    statements: &[Statement],
    plain: &Answer,
    proxied: &Answer,
    found: &mut Vec<Difference>,
) {
    let label = |index: usize| statements.get(index).map_or("?", |s| s.label);
    let protocol = match statements {
        [one] if one.prepared => " (binary)",
        _ => "",
    };
    let mut metadata = Vec::new();
    let mut add = |index: usize, kind: String, detail: String, diverged: bool| {
        found.push(Difference {
            kind: format!("{}{protocol}: {kind}", label(index)),
            detail,
            diverged,
            is_metadata: false,
            step: 0,
        });
    };

    for (index, (p, q)) in plain.sets.iter().zip(&proxied.sets).enumerate() {
        let Some(statement) = statements.get(index) else {
            break;
        };
        sets(statement, p, q, &mut |kind, detail, diverged| {
            add(index, kind, detail, diverged)
        });
        definitions(label(index), &p.columns, &q.columns, &mut |kind, detail| {
            metadata.push((format!("{}: {kind}", label(index)), detail));
        });
    }
    let failed_at = plain.sets.len().max(proxied.sets.len());
    match (&plain.problem, &proxied.problem) {
        (None, None) => {
            if plain.sets.len() != proxied.sets.len() {
                let detail = format!(
                    "{} results, {} through the proxy",
                    plain.sets.len(),
                    proxied.sets.len()
                );
                add(
                    failed_at.saturating_sub(1),
                    "number of results".into(),
                    detail,
                    true,
                );
            }
        }
        (None, Some(problem)) => {
            let what = problem
                .refusal_code()
                .map_or_else(|| problem.code.to_string(), |code| format!("OS{code}"));
            let kind = format!("fails through the proxy only, with {what}");
            // An UPDATE that changes nothing on the plain server leaves the data as they were.
            let defines = |s: &Statement| {
                let text = s.text();
                ["CREATE", "ALTER", "DROP", "RENAME"]
                    .contains(&text.split(' ').next().unwrap_or(""))
            };
            let diverged = plain.sets.last().is_none_or(|set| set.affected > 0)
                || statements.get(proxied.sets.len()).is_some_and(defines);
            add(
                proxied.sets.len(),
                kind,
                format!("{} ({}): {}", problem.code, problem.state, problem.message),
                diverged,
            );
        }
        (Some(problem), None) => {
            let kind = format!("fails on the plain server only, with {}", problem.code);
            add(
                plain.sets.len(),
                kind,
                format!("{} ({}): {}", problem.code, problem.state, problem.message),
                true,
            );
        }
        (Some(p), Some(q)) => {
            let several = statements
                .get(failed_at)
                .is_some_and(|s| s.check.several_errors);
            let same = (p.code, &p.state) == (q.code, &q.state);
            if q.code == 0 || p.code == 0 {
                add(
                    failed_at,
                    "the connection broke".into(),
                    format!("plain: {p:?}\nproxy: {q:?}"),
                    true,
                );
            } else if !(same || (several && p.code != q.code)) {
                let kind = format!(
                    "error {} ({}) instead of {} ({})",
                    q.code, q.state, p.code, p.state
                );
                add(
                    failed_at,
                    kind,
                    format!("plain: {}\nproxy: {}", p.message, q.message),
                    false,
                );
            }
        }
    }
    if let (Some((p_count, p)), Some((q_count, q))) = (&plain.prepared, &proxied.prepared) {
        if p_count != q_count {
            add(
                0,
                "number of parameters".into(),
                format!("plain: {p_count}, proxy: {q_count}"),
                false,
            );
        }
        if p.len() != q.len() {
            add(
                0,
                "prepared columns".into(),
                format!("plain: {p:?}\nproxy: {q:?}"),
                false,
            );
        } else if plain.problem.is_none() && proxied.problem.is_none() {
            // a plain server cannot be asked under other plans for one that fails, and the client
            // may have noted the columns of an earlier execution
            definitions(label(0), p, q, &mut |kind, detail| {
                metadata.push((format!("{}: prepared {kind}", label(0)), detail));
            });
        }
    }
    found.extend(metadata.into_iter().map(|(kind, detail)| Difference {
        kind,
        detail,
        diverged: false,
        is_metadata: true,
        step: 0,
    }));
}

type Add<'a> = &'a mut dyn FnMut(String, String, bool);

fn sets(statement: &Statement, plain: &Set, proxied: &Set, add: Add) {
    if plain.columns.len() != proxied.columns.len() {
        let names =
            |set: &Set| -> Vec<String> { set.columns.iter().map(|c| c.name.clone()).collect() };
        let detail = format!("plain: {:?}\nproxy: {:?}", names(plain), names(proxied));
        return add("number of columns".into(), detail, false);
    }
    if let Some((kind, detail)) = rows(statement, plain, proxied) {
        add(kind, detail, false);
    }
    if plain.affected != proxied.affected {
        let detail = format!("plain: {}, proxy: {}", plain.affected, proxied.affected);
        add("affected rows".into(), detail, true);
    }
    let mut simple = |kind: &str, p: String, q: String| {
        if p != q {
            add(kind.into(), format!("plain: {p:?}, proxy: {q:?}"), false);
        }
    };
    simple(
        "insert id",
        plain.insert_id.to_string(),
        proxied.insert_id.to_string(),
    );
    if !statement.check.uncounted {
        simple(
            "warnings",
            plain.warnings.to_string(),
            proxied.warnings.to_string(),
        );
    }
    // MariaDB says nothing of an UPDATE whose condition it sees to be impossible. MariaDB tells
    // nothing of an UPDATE of which it sees that it finds no row, whoever has asked: that is the
    // plan's choice
    let none = b"Rows matched: 0  Changed: 0  Warnings: 0";
    let is_untold = proxied.info.is_empty() && plain.info.as_bytes() == none;
    if !plain.info.is_empty() && !is_untold {
        simple("info", plain.info.clone(), proxied.info.clone());
    }
}

/// Flags that servers take from the temporary table when the optimizer sorts or groups in one, so
/// that two plain servers differ in them; other properties that depend on the plan are asked for
/// under each (`plans.rs`).
const KEY_FLAGS: ColumnFlags = ColumnFlags::PRI_KEY_FLAG
    .union(ColumnFlags::UNIQUE_KEY_FLAG)
    .union(ColumnFlags::MULTIPLE_KEY_FLAG)
    .union(ColumnFlags::PART_KEY_FLAG);

/// The flags of which a statement of this kind cannot be certain. Which table of several is read
/// first, and so which columns go through a temporary table, follows from statistics that are
/// gathered in the background.
fn uncertain_flags(label: &str) -> ColumnFlags {
    let joins = label.starts_with("select join");
    let several = joins || ["select exists", "select in subquery"].contains(&label);
    let mut uncertain = KEY_FLAGS;
    if several {
        // GROUP_FLAG, called NUM_FLAG by clients, says that the column came out of such a table.
        uncertain |= ColumnFlags::AUTO_INCREMENT_FLAG
            | ColumnFlags::NUM_FLAG
            | ColumnFlags::BINARY_FLAG
            | ColumnFlags::NO_DEFAULT_VALUE_FLAG
            | ColumnFlags::TIMESTAMP_FLAG
            | ColumnFlags::ON_UPDATE_NOW_FLAG;
    }
    if joins {
        uncertain |= ColumnFlags::NOT_NULL_FLAG;
    }
    uncertain
}

fn definitions(
    label: &str,
    plain: &[Definition],
    proxied: &[Definition],
    add: &mut dyn FnMut(String, String),
) {
    for (p, q) in plain.iter().zip(proxied) {
        let mut differ = |kind: &str, a: String, b: String| {
            add(
                kind.to_owned(),
                format!("column {:?} ({:?}): plain {a}, proxy {b}", p.name, p.ty),
            );
        };
        if p.name != q.name {
            differ("column name", p.name.clone(), q.name.clone());
        }
        if label == "information_schema.columns" {
            // A derived table behind the proxy, which no client asks for types.
            continue;
        }
        if p.origin != q.origin {
            differ(
                "column origin",
                format!("{:?}", p.origin),
                format!("{:?}", q.origin),
            );
        }
        if p.ty != q.ty {
            differ("column type", format!("{:?}", p.ty), format!("{:?}", q.ty));
        }
        for (name, _) in ((p.flags ^ q.flags) - uncertain_flags(label)).iter_names() {
            let state = |flags: ColumnFlags| {
                if flags.iter_names().any(|(n, _)| n == name) {
                    "set"
                } else {
                    "not set"
                }
                .to_owned()
            };
            differ(
                &format!("column flag {name}"),
                state(p.flags),
                state(q.flags),
            );
        }
        if p.collation != q.collation {
            differ(
                "collation id",
                p.collation.to_string(),
                q.collation.to_string(),
            );
        }
        if p.decimals != q.decimals {
            differ("decimals", p.decimals.to_string(), q.decimals.to_string());
        }
        // SHOW CREATE TABLE's length is that of the definition.
        if p.length != q.length && label != "show create table" {
            differ("column length", p.length.to_string(), q.length.to_string());
        }
    }
}

/// How the rows differ.
fn rows(statement: &Statement, plain: &Set, proxied: &Set) -> Option<(String, String)> {
    let check = &statement.check;
    let (p, q) = (certain(statement, plain), certain(statement, proxied));
    if p.len() != q.len() {
        let detail = format!(
            "plain: {} rows, proxy: {} rows\n{}",
            p.len(),
            q.len(),
            first_rows(&p, &q)
        );
        return Some(("number of rows".into(), detail));
    }
    if check.order == Order::OnlyCount {
        return None;
    }
    if let Order::By(keys) = &check.order {
        let by = |rows: &[Vec<Value>]| -> Vec<Vec<Value>> {
            rows.iter()
                .map(|row| keys.iter().filter_map(|&k| row.get(k).cloned()).collect())
                .collect()
        };
        if by(&p) != by(&q) {
            return Some(("order of rows".into(), first_rows(&p, &q)));
        }
    }
    let (mut p, mut q) = (p, q);
    let in_order = check.order == Order::Total;
    if !in_order {
        p.sort_by_key(|row| row_key(row, check));
        q.sort_by_key(|row| row_key(row, check));
    }
    let columns = |p: &[Vec<Value>], q: &[Vec<Value>]| -> Vec<usize> {
        (0..plain.columns.len())
            .filter(|&c| {
                p.iter()
                    .zip(q)
                    .any(|(x, y)| !same_cell(check, c, &x[c], &y[c]))
            })
            .collect()
    };
    let different = columns(&p, &q);
    if different.is_empty() {
        return None;
    }
    let (mut ps, mut qs) = (p.clone(), q.clone());
    ps.sort_by_key(|row| row_key(row, check));
    qs.sort_by_key(|row| row_key(row, check));
    if in_order && columns(&ps, &qs).is_empty() {
        return Some(("order of rows".into(), first_rows(&p, &q)));
    }
    let types: Vec<String> = different
        .iter()
        .map(|&c| format!("{:?}", plain.columns[c].ty))
        .collect();
    Some((
        format!("values of {}", types.first().cloned().unwrap_or_default()),
        first_rows(&p, &q),
    ))
}

/// What rows are sorted by: what is certain before what is nearly so. (The client's Debug form of a
/// value shows its first bytes only.)
fn row_key(row: &[Value], check: &Check) -> String {
    let is_near = |column: &usize| check.approximate.contains(column);
    let (near, certain): (Vec<usize>, Vec<usize>) = (0..row.len()).partition(is_near);
    let columns = certain.into_iter().chain(near);
    columns
        .map(|column| row[column].as_sql(true) + "\n")
        .collect()
}

fn same_cell(check: &Check, column: usize, plain: &Value, proxied: &Value) -> bool {
    if plain == proxied {
        return true;
    }
    if !check.approximate.contains(&column) {
        return false;
    }
    let number = |value: &Value| match value {
        Value::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.parse::<f64>().ok(),
        Value::Double(number) => Some(*number),
        Value::Float(number) => Some(f64::from(*number)),
        _ => None,
    };
    match (number(plain), number(proxied)) {
        // Sums of 1e308 and 1 are worth nothing in any order.
        (Some(a), Some(b)) => {
            (a - b).abs() <= 1e-6 * a.abs().max(b.abs()) || a.abs().max(b.abs()) > 1e30
        }
        _ => false,
    }
}

/// The rows with everything replaced that is not certain.
fn certain(statement: &Statement, set: &Set) -> Vec<Vec<Value>> {
    let check = &statement.check;
    let mut rows = set.rows.clone();
    for row in &mut rows {
        for &column in &check.lookalikes {
            if let Some(cell) = row.get_mut(column)
                && *cell != Value::NULL
            {
                *cell = Value::from("…");
            }
        }
    }
    if statement.label == "show create table" {
        for row in &mut rows {
            if let Some(Value::Bytes(text)) = row.get_mut(1) {
                *text = without_counter(&String::from_utf8_lossy(text)).into_bytes();
            }
        }
    }
    rows
}

/// Without ` AUTO_INCREMENT=n` among the table's options: failed statements use up numbers.
fn without_counter(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(" AUTO_INCREMENT=") {
        out += &rest[..at];
        rest =
            rest[at + " AUTO_INCREMENT=".len()..].trim_start_matches(|c: char| c.is_ascii_digit());
    }
    out + rest
}

/// The rows from the first different one on.
fn first_rows(plain: &[Vec<Value>], proxied: &[Vec<Value>]) -> String {
    let same = plain
        .iter()
        .zip(proxied)
        .take_while(|(p, q)| p == q)
        .count();
    let mut text = format!("from row {same} on\n");
    for (side, rows) in [("plain", plain), ("proxy", proxied)] {
        for row in rows.iter().skip(same).take(3) {
            let cells: Vec<String> = row.iter().map(shown).collect();
            let _ = writeln!(text, "  {side}: {}", cells.join(" | "));
        }
    }
    text.trim_end().to_owned()
}

fn shown(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => format!("{text:?}"),
            Err(_) => format!("{bytes:02x?}"),
        },
        other => format!("{other:?}"),
    }
}
