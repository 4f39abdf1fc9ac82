//! What a client sees of a statement, and what two clients saw differently.

use ::mysql::consts::ColumnType;
use ::mysql::prelude::Queryable;
use ::mysql::{Conn, OptsBuilder, Value};
use std::time::Duration;

/// One result of a statement; without columns where it returns no rows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Set {
    pub columns: Vec<(String, ColumnType)>,
    pub rows: Vec<Vec<Value>>,
    pub affected: u64,
    pub insert_id: u64,
}

/// An error that ended a statement; code 0 is a connection that broke.
#[derive(Clone, PartialEq, Debug)]
pub struct Problem {
    pub code: u16,
    pub message: String,
}

/// The answer to a statement.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Seen {
    pub sets: Vec<Set>,
    pub warnings: u16,
    pub problem: Option<Problem>,
}

impl Seen {
    /// The error's number.
    pub fn code(&self) -> Option<u16> {
        self.problem.as_ref().map(|p| p.code)
    }

    /// The text of an error of Onionskin's own, from its code on.
    pub fn refusal(&self) -> Option<&str> {
        let message = &self.problem.as_ref()?.message;
        let digits = message.strip_prefix("OS")?.get(..4)?;
        digits
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then_some(message.as_str())
    }
}

/// Logs in. An answer that takes longer than half a minute is a broken connection.
pub fn connect(port: u16, user: &str, password: &str, database: &str) -> Result<Conn, Problem> {
    let limit = Some(Duration::from_secs(30));
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port)
        .user(Some(user))
        .pass(Some(password))
        .db_name(Some(database).filter(|d| !d.is_empty()))
        .prefer_socket(false)
        .read_timeout(limit)
        .write_timeout(limit)
        .max_allowed_packet(Some(64 << 20));
    Conn::new(options).map_err(problem)
}

fn problem(error: ::mysql::Error) -> Problem {
    match error {
        ::mysql::Error::MySqlError(e) => Problem {
            code: e.code,
            message: e.message,
        },
        other => Problem {
            code: 0,
            message: other.to_string(),
        },
    }
}

/// Runs a statement as text.
pub fn run(conn: &mut Conn, sql: &str) -> Seen {
    let mut seen = Seen::default();
    let result = collect(conn, sql, &mut seen.sets);
    seen.problem = result.err().map(problem);
    if seen.problem.is_none() {
        seen.warnings = conn.warnings();
    }
    seen
}

fn collect(conn: &mut Conn, sql: &str, sets: &mut Vec<Set>) -> ::mysql::Result<()> {
    let mut result = conn.query_iter(sql)?;
    while let Some(set) = result.iter() {
        let columns = set.columns();
        let columns = columns.as_ref().iter();
        let mut found = Set {
            columns: columns
                .map(|c| (c.name_str().into_owned(), c.column_type()))
                .collect(),
            affected: set.affected_rows(),
            insert_id: set.last_insert_id().unwrap_or(0),
            ..Set::default()
        };
        for row in set {
            found.rows.push(row?.unwrap());
        }
        sets.push(found);
    }
    Ok(())
}

/// What of an answer is certain.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Certain {
    /// Rows in their order.
    Order,
    /// The rows, in whatever order.
    Rows,
    /// Their number: LIMIT without ORDER BY.
    Count,
}

/// What is certain of the rows of a statement: SQL promises no order without an ORDER BY of the
/// whole.
pub fn certain(sql: &str) -> Certain {
    let mut depth = 0;
    let (mut ordered, mut limited) = (false, false);
    let words = words(sql);
    for (i, word) in words.iter().enumerate() {
        match word.as_str() {
            "(" => depth += 1,
            ")" => depth -= 1,
            "by" if depth == 0 && i > 0 && words[i - 1] == "order" => ordered = true,
            "limit" | "fetch" => limited = true,
            _ => {}
        }
    }
    match (ordered, limited) {
        (true, _) => Certain::Order,
        (false, true) => Certain::Count,
        (false, false) => Certain::Rows,
    }
}

/// Words in lower case and parentheses; no strings, no comments. Names lose their backticks.
pub fn words(sql: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut chars = sql.char_indices().peekable();
    let mut word = String::new();
    while let Some((at, c)) = chars.next() {
        if c.is_alphanumeric() || c == '_' || c == '$' {
            word.extend(c.to_lowercase());
            continue;
        }
        if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        match c {
            '\'' | '"' => {
                while let Some((_, d)) = chars.next() {
                    if d == '\\' {
                        chars.next();
                    } else if d == c {
                        break;
                    }
                }
            }
            '`' => {
                let name: String = chars
                    .by_ref()
                    .map(|(_, d)| d)
                    .take_while(|d| *d != '`')
                    .collect();
                words.push(name.to_lowercase());
            }
            '#' => while chars.next_if(|(_, d)| *d != '\n').is_some() {},
            '-' if sql[at..].starts_with("-- ") => {
                while chars.next_if(|(_, d)| *d != '\n').is_some() {}
            }
            '/' if sql[at..].starts_with("/*") && !sql[at..].starts_with("/*!") => {
                let end = sql[at + 2..].find("*/").map_or(sql.len(), |e| at + e + 4);
                while chars.next_if(|(i, _)| *i < end).is_some() {}
            }
            '(' | ')' => words.push(c.to_string()),
            _ => {}
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// The first difference: its kind, and both sides.
pub fn difference(
    plain: &Seen,
    other: &Seen,
    certain: Certain,
    loose: bool,
) -> Option<(String, String)> {
    let shown = |seen: &Seen| match &seen.problem {
        None => "no error".to_owned(),
        Some(p) => format!("{} {}", p.code, p.message),
    };
    if plain.code() != other.code() {
        let number = |seen: &Seen| seen.code().map_or("none".into(), |c| c.to_string());
        let kind = format!("error {} instead of {}", number(other), number(plain));
        return Some((
            kind,
            format!("plain: {}\nproxy: {}", shown(plain), shown(other)),
        ));
    }
    if plain.sets.len() != other.sets.len() {
        let detail = format!("plain: {}\nproxy: {}", plain.sets.len(), other.sets.len());
        return Some(("number of results".into(), detail));
    }
    for (p, q) in plain.sets.iter().zip(&other.sets) {
        let named =
            |set: &Set| -> Vec<String> { set.columns.iter().map(|c| c.0.clone()).collect() };
        if named(p) != named(q) {
            let detail = format!("plain: {:?}\nproxy: {:?}", named(p), named(q));
            return Some(("column names".into(), detail));
        }
        if let Some((kind, detail)) = rows(p, q, certain, loose) {
            return Some((kind, detail));
        }
        let types = |set: &Set| -> Vec<ColumnType> { set.columns.iter().map(|c| c.1).collect() };
        if types(p) != types(q) {
            let detail = format!("plain: {:?}\nproxy: {:?}", types(p), types(q));
            return Some(("column types".into(), detail));
        }
        for (kind, a, b) in [
            ("affected rows", p.affected, q.affected),
            ("insert id", p.insert_id, q.insert_id),
        ] {
            if a != b {
                return Some((kind.into(), format!("plain: {a}\nproxy: {b}")));
            }
        }
    }
    if plain.warnings != other.warnings {
        let detail = format!("plain: {}\nproxy: {}", plain.warnings, other.warnings);
        return Some(("number of warnings".into(), detail));
    }
    None
}

/// `loose`: a cell is gathered from several rows (GROUP_CONCAT), whose order is not promised.
fn rows(p: &Set, q: &Set, certain: Certain, loose: bool) -> Option<(String, String)> {
    if p.rows.len() != q.rows.len() {
        let detail = format!(
            "plain: {} rows, proxy: {} rows\n{}",
            p.rows.len(),
            q.rows.len(),
            first(&p.rows, &q.rows)
        );
        return Some(("number of rows".into(), detail));
    }
    if certain == Certain::Count {
        return None;
    }
    let normal = |set: &Set| -> Vec<Vec<String>> {
        let cell = |(value, column): (&Value, &(String, ColumnType))| {
            let mut text = approximate(value, column.1);
            if loose {
                let mut letters: Vec<char> = text.chars().collect();
                letters.sort_unstable();
                text = letters.into_iter().collect();
            }
            text
        };
        let row = |row: &Vec<Value>| row.iter().zip(&set.columns).map(cell).collect();
        set.rows.iter().map(row).collect()
    };
    let (mut a, mut b) = (normal(p), normal(q));
    if certain == Certain::Order && a == b {
        return None;
    }
    a.sort_unstable();
    b.sort_unstable();
    if a != b {
        let kind = if p.columns.len() == 1 && p.rows.len() == 1 {
            "value"
        } else {
            "rows"
        };
        return Some((kind.into(), first(&p.rows, &q.rows)));
    }
    (certain == Certain::Order).then(|| ("order of rows".into(), first(&p.rows, &q.rows)))
}

/// Whether two answers have the same rows, ordered alike by the keys of ORDER BY: rows with the
/// same keys may stand in any order. False if a key is no column of the result.
pub fn differs_in_ties_only(sql: &str, plain: &Seen, other: &Seen) -> bool {
    plain.sets.iter().zip(&other.sets).all(|(p, q)| {
        let Some(keys) = order_keys(sql, p) else {
            return false;
        };
        let by_keys = |set: &Set| -> Vec<Vec<String>> {
            let key = |row: &Vec<Value>, k: usize| row[k].as_sql(true).to_lowercase();
            let of_row = |row: &Vec<Value>| keys.iter().map(|&k| key(row, k)).collect();
            set.rows.iter().map(of_row).collect()
        };
        let (keys_of_p, keys_of_q) = (by_keys(p), by_keys(q));
        // LIMIT and OFFSET cut through the first and the last rows of equal keys; between them, all
        // rows are there
        let whole = |set: &Set, keys: &[Vec<String>]| {
            let inner = |k: &Vec<String>| Some(k) != keys.first() && Some(k) != keys.last();
            let rows = set.rows.iter().zip(keys).filter(|(_, k)| inner(k));
            let mut rows: Vec<String> = rows.map(|(row, _)| format!("{row:?}")).collect();
            rows.sort_unstable();
            rows
        };
        keys_of_p == keys_of_q && whole(p, &keys_of_p) == whole(q, &keys_of_q)
    })
}

/// The columns of a result that the outermost ORDER BY names or counts.
fn order_keys(sql: &str, set: &Set) -> Option<Vec<usize>> {
    let lower = sql.to_ascii_lowercase();
    let mut text = &lower[lower.rfind("order by")? + "order by".len()..];
    for end in [
        " limit",
        "\nlimit",
        " for update",
        " lock in",
        " into ",
        " procedure",
    ] {
        text = text.split(end).next()?;
    }
    let key = |key: &str| {
        let mut words = key.split_whitespace();
        let name = words.next()?;
        if words.any(|w| w != "asc" && w != "desc") {
            return None;
        }
        match name.parse::<usize>() {
            Ok(position) => position.checked_sub(1).filter(|i| *i < set.columns.len()),
            Err(_) => {
                let name = name.rsplit('.').next()?.trim_matches('`');
                set.columns
                    .iter()
                    .position(|c| c.0.eq_ignore_ascii_case(name))
            }
        }
    };
    text.split(',').map(key).collect()
}

/// Sums of DOUBLE depend on the order of the rows in their last digits.
fn approximate(value: &Value, ty: ColumnType) -> String {
    let text = value.as_sql(true);
    let inexact = matches!(
        ty,
        ColumnType::MYSQL_TYPE_DOUBLE | ColumnType::MYSQL_TYPE_FLOAT
    );
    match text.trim_matches('\'').parse::<f64>() {
        Ok(number) if inexact => format!("{number:.9e}"),
        _ => text,
    }
}

fn first(plain: &[Vec<Value>], other: &[Vec<Value>]) -> String {
    let same = plain.iter().zip(other).take_while(|(p, q)| p == q).count();
    let mut text = format!("from row {same} on");
    for (side, rows) in [("plain", plain), ("proxy", other)] {
        for row in rows.iter().skip(same).take(3) {
            let cells: Vec<String> = row.iter().map(|value| value.as_sql(true)).collect();
            text += &format!("\n  {side}: {}", cells.join(" | "));
        }
    }
    text
}
