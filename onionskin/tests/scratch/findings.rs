//! What statements without rows do and say, on a plain server and through the proxy.

use mysql::prelude::Queryable;
use mysql::{Params, Value};

use onionskin_testkit::*;

/// What a client is told of a statement without rows, and may ask behind it.
#[derive(PartialEq, Debug, Default)]
pub struct Told {
    affected: u64,
    id: u64,
    warnings: u16,
    info: String,
    error: u16,
    state: String,
    message: String,
    shown: String,
    asked: String,
}

#[allow(dead_code)] // not every test compares by itself
impl Told {
    /// Whether the proxy has refused the statement.
    pub fn refused(&self) -> bool {
        self.message.starts_with("OS")
    }

    /// Takes the error's text away: it depends on names of databases and keys.
    pub fn without_message(&mut self) -> String {
        std::mem::take(&mut self.message)
    }
}

pub fn tell(session: &mut Session, sql: &str, prepared: Option<&[Value]>) -> Told {
    let conn = session.conn();
    let done = match prepared {
        None => conn.query_drop(sql),
        Some(values) => conn.prep(sql).and_then(|statement| {
            let params = match values {
                [] => Params::Empty,
                values => Params::Positional(values.to_vec()),
            };
            let done = conn.exec_drop(&statement, params);
            conn.close(statement)?;
            done
        }),
    };
    let mut told = Told::default();
    match done {
        Ok(()) => {
            told.affected = conn.affected_rows();
            told.id = conn.last_insert_id();
            told.warnings = conn.warnings();
            told.info = conn.info_str().into_owned();
        }
        Err(error) => {
            let failure = Failure::from(error);
            (told.error, told.state) = (failure.code, failure.state);
            told.message = failure.message;
        }
    }
    if prepared.is_none() {
        told.shown = warnings(session);
        if told.error > 0 {
            // which of several texts an error has depends on names of databases and keys
            told.shown = String::new();
        }
        told.asked = session.text("SELECT LAST_INSERT_ID()").unwrap_or_default();
    }
    told
}

/// The warnings in any order: those of duplicates come after those of values. What a duplicate is,
/// a server that sees tokens cannot tell.
fn warnings(session: &mut Session) -> String {
    let shown = session.text("SHOW WARNINGS").unwrap_or_default();
    let mut lines: Vec<String> = shown
        .lines()
        .map(|line| {
            match (
                line.split_once("Duplicate entry "),
                line.rsplit_once(" for key "),
            ) {
                (Some((head, _)), Some((_, key))) => format!("{head}Duplicate entry for key {key}"),
                _ => line.to_string(),
            }
        })
        .collect();
    lines.sort();
    lines.join("\n")
}

/// Findings of a test.
#[derive(Default)]
#[allow(dead_code)] // likewise
pub struct Findings {
    /// Queries that show the tables' rows.
    pub tables: &'static [&'static str],
    /// Tables with AUTO_INCREMENT.
    pub counted: &'static [&'static str],
    pub next: u32,
    pub refused: Vec<String>,
    pub different: Vec<String>,
    pub compared: usize,
}

#[allow(dead_code)] // not every test compares in every way
impl Findings {
    /// Gives the next numbers of AUTO_INCREMENT: servers reserve more of them for a query's rows
    /// than are used.
    pub fn renumber(&mut self, pair: &mut Pair) {
        self.next += 1000;
        for table in self.counted {
            pair.run(&format!(
                "ALTER TABLE {table} AUTO_INCREMENT = {}",
                self.next
            ));
        }
    }

    /// Runs a statement on both and compares what both say; returns whether it did anything.
    pub fn run(&mut self, pair: &mut Pair, sql: &str, prepared: Option<&[Value]>) -> bool {
        self.compared += 1;
        let mut b = tell(&mut pair.protected, sql, prepared);
        if b.message.starts_with("OS") {
            self.refused.push(format!("{sql}\n  {}", b.message));
            return false;
        }
        let mut a = tell(&mut pair.plain, sql, prepared);
        let messages = (
            std::mem::take(&mut a.message),
            std::mem::take(&mut b.message),
        );
        if a != b {
            let text = format!("{sql} ({prepared:?})\n  {a:?}\n  {b:?}\n  {messages:?}");
            self.different.push(text);
        }
        true
    }

    pub fn contents(&mut self, pair: &mut Pair, sql: &str) {
        for query in self.tables {
            let (a, b) = (pair.plain.text(query), pair.protected.text(query));
            if a != b {
                let text = |t: Result<String, Failure>| t.unwrap_or_else(|e| e.to_string());
                let (a, b) = (text(a), text(b));
                let lines = a.lines().zip(b.lines()).filter(|(p, q)| p != q);
                let lines: Vec<String> = lines.map(|(p, q)| format!("  {p}\n  {q}")).collect();
                self.different.push(format!(
                    "{query} after {sql}: {} and {} rows\n{}",
                    a.lines().count(),
                    b.lines().count(),
                    lines.join("\n")
                ));
            }
        }
    }

    /// Prepared and rolled back, then as text.
    pub fn both_ways(&mut self, pair: &mut Pair, sql: &str, values: &[Value]) {
        let inserts = !sql.starts_with("UPDATE") && !sql.starts_with("DELETE");
        if inserts {
            self.renumber(pair);
        }
        pair.run("BEGIN");
        if self.run(pair, sql, Some(values)) {
            self.contents(pair, &format!("prepared {sql}"));
        }
        pair.run("ROLLBACK");
        if values.is_empty() {
            if inserts {
                self.renumber(pair);
            }
            self.run(pair, sql, None);
            self.contents(pair, sql);
        }
    }

    pub fn conclude(&self, pair: &mut Pair, refused: usize) {
        pair.proxy.assert_healthy();
        announce(&format!(
            "{} statements compared, {} refused, {} different",
            self.compared,
            self.refused.len(),
            self.different.len()
        ));
        assert!(
            self.different.is_empty() && self.refused.len() <= refused,
            "different:\n{}\nrefused:\n{}",
            self.different.join("\n"),
            self.refused.join("\n")
        );
    }
}
