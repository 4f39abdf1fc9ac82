//! Statements of the benchmark itself: settings, tables, proofs. Loads have drivers of their own.

use mysql::{Conn, Opts, Row, Value, prelude::Queryable};

use crate::error::BenchError;

/// A session of the benchmark's account, past every relay unless it was opened through one.
pub struct Session(Conn);

impl Session {
    /// Logs in.
    pub fn open(options: impl Into<Opts>) -> mysql::Result<Self> {
        Conn::new(options).map(Self)
    }

    /// A statement whose answer is of no interest.
    pub fn run(&mut self, sql: &str) -> Result<(), BenchError> {
        self.attempt(sql).map_err(|said| failed(sql, said))
    }

    /// The same, with the server's words alone if it fails.
    pub fn attempt(&mut self, sql: &str) -> Result<(), String> {
        self.0.query_drop(sql).map_err(|error| error.to_string())
    }

    /// All rows, cells as text.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>, BenchError> {
        let rows: Vec<Row> = self
            .0
            .query(sql)
            .map_err(|error| failed(sql, error.to_string()))?;
        Ok(rows
            .into_iter()
            .map(|row| row.unwrap().into_iter().map(text_of).collect())
            .collect())
    }

    /// The first cell of the first row; empty without rows.
    pub fn text(&mut self, sql: &str) -> Result<String, BenchError> {
        Ok(self
            .rows(sql)?
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next())
            .unwrap_or_default())
    }

    /// The session's own connection, for drivers.
    pub fn connection(&mut self) -> &mut Conn {
        &mut self.0
    }
}

fn text_of(value: Value) -> String {
    match value {
        Value::NULL => "NULL".into(),
        Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        other => other.as_sql(true).trim_matches('\'').to_owned(),
    }
}

fn failed(sql: &str, said: String) -> BenchError {
    BenchError::Statement {
        sql: sql.chars().take(120).collect(),
        said,
    }
}
