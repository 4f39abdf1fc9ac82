//! How rows get from the old table into the new one.
//!
//! Columns that stay as they are never leave the server: `INSERT … SELECT` copies them, so every
//! type arrives exactly. What has to be computed outside of it (sealed cells) is read, transformed,
//! put into a temporary table beside the key, and joined to the old table's row. Should that row
//! change between the read and the join, then its event is still to come, and the row is written
//! again.

use std::sync::Arc;

use onionskin_schema::identifier;

use crate::RowError;
use crate::key::{Key, KeyDefinition, column_of};
use crate::session::{Cell, Row, Session, SqlError};

/// Computes columns of the new table from columns of the old one. Used by many threads at once.
pub trait Transform: Send + Sync {
    /// The columns of the old table that it reads, as expressions over the table `source`.
    fn inputs(&self, source: &str) -> Vec<String>;
    /// The columns of the new table that it gives.
    fn outputs(&self) -> &[String];
    /// Appends the outputs of a row as SQL constants with commas between them.
    fn compute(&self, inputs: &[Cell], out: &mut String) -> Result<(), String>;
    /// What verifying reads of the new table, as expressions over the table `target`.
    fn stored(&self, target: &str) -> Vec<String>;
    /// Whether what is stored is what the inputs give.
    fn agrees(&self, inputs: &[Cell], stored: &[Cell]) -> Result<bool, String>;
}

/// A column that the server copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Its name in the new table.
    pub target: String,
    /// Its name in the old one; `None` for a constant.
    pub source: Option<String>,
    /// What is written if there is no source: an expression without columns.
    pub constant: String,
    /// What is written instead of the source's value, with `{}` for the qualified column, where the
    /// server's own conversion would depend on the session.
    pub converted: Option<String>,
    /// The server computes it from others: nothing is written, and it is only compared.
    pub is_generated: bool,
    /// An expression whose value is the same in both tables where the row was copied right, with
    /// `{}` for the qualified column; `None` if the column cannot be compared.
    pub compared: Option<String>,
}

/// From one table to the other, in one database.
#[derive(Clone)]
pub struct Route {
    /// The database.
    pub database: String,
    /// The old table.
    pub source: String,
    /// The new table.
    pub target: String,
    /// The key by which rows are found in both.
    pub key: KeyDefinition,
    /// The columns that the server copies.
    pub copied: Vec<Copied>,
    /// What is computed outside of it.
    pub transform: Option<Arc<dyn Transform>>,
    /// The columns that are, by the names that applications know: those that are protected in one
    /// of the tables.
    pub sealed: Vec<String>,
    /// Whether rows that meet on a unique key of the new table would have met in the old one, so
    /// that one of them is stale and may be replaced.
    pub replaces: bool,
    /// How many rows one statement may read; rows that pass through this process stay in memory for
    /// that long.
    pub most_rows: usize,
}

/// What happens to a row that meets another one on a unique key of the new table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meeting {
    /// The row in the table stays: what is copied is never newer than what changes have brought.
    Keep,
    /// The row in the table goes: what a change brings is never older than what is there, except
    /// for rows that are written again.
    Replace,
    /// It is an error, which names the value.
    Conflict,
    /// Neither is written, and the session keeps the keys of the first two that met: see
    /// [`crate::meeting`].
    Tell,
}

/// The temporary table for computed columns, one for each session.
const STAGE: &str = "onionskin_stage";
/// How long a statement with computed values may get, in bytes; servers take 16 MiB and more.
const LONGEST_INSERT: usize = 1 << 20;

impl Route {
    /// A table's name in SQL, with its database.
    pub fn qualified(&self, table: &str) -> String {
        format!("{}.{}", identifier(&self.database), identifier(table))
    }

    /// Prepares a session: makes it use the database, and its temporary table if the route computes
    /// anything.
    pub fn prepare(&self, session: &mut Session) -> Result<(), SqlError> {
        session.run(&format!("USE {}", identifier(&self.database)))?;
        let Some(transform) = &self.transform else {
            return Ok(());
        };
        let mut columns: Vec<String> = self
            .key
            .columns
            .iter()
            .enumerate()
            .map(|(n, column)| format!("{} AS k{n}", column_of(&self.source, &column.name)))
            .collect();
        let parts: Vec<String> = (0..columns.len()).map(|n| format!("k{n}")).collect();
        columns.extend(
            transform
                .outputs()
                .iter()
                .enumerate()
                .map(|(n, name)| format!("{} AS c{n}", column_of(&self.target, name))),
        );
        session.run(&format!("DROP TEMPORARY TABLE IF EXISTS {STAGE}"))?;
        session.run(&format!(
            "CREATE TEMPORARY TABLE {STAGE} (PRIMARY KEY ({})) ENGINE=InnoDB SELECT {} FROM {} CROSS JOIN {} WHERE FALSE",
            parts.join(", "),
            columns.join(", "),
            identifier(&self.source),
            identifier(&self.target),
        ))?;
        Ok(())
    }

    /// The statement that copies the rows for which `condition` over the old table holds, if
    /// nothing is computed.
    pub fn copy_statement(&self, condition: &str, meeting: Meeting) -> String {
        let (targets, sources) = self.lists();
        format!(
            "{} INTO {} ({}) SELECT {} FROM {} FORCE INDEX ({}) WHERE {condition}{}",
            verb(meeting),
            identifier(&self.target),
            targets.join(", "),
            sources.join(", "),
            identifier(&self.source),
            identifier(&self.key.index),
            self.tail(meeting),
        )
    }

    fn lists(&self) -> (Vec<String>, Vec<String>) {
        let written = || self.copied.iter().filter(|c| !c.is_generated);
        let targets = written().map(|c| identifier(&c.target)).collect();
        let sources = written().map(|c| match &c.source {
            Some(source) => {
                let value = column_of(&self.source, source);
                match &c.converted {
                    Some(expression) => expression.replace("{}", &value),
                    None => value,
                }
            }
            None => c.constant.clone(),
        });
        (targets, sources.collect())
    }

    fn tail(&self, meeting: Meeting) -> String {
        let first = column_of(&self.target, &self.key.columns[0].name);
        match meeting {
            Meeting::Replace | Meeting::Conflict => String::new(),
            // INSERT IGNORE would let values be cut, too.
            Meeting::Keep => format!(" ON DUPLICATE KEY UPDATE {first} = {first}"),
            Meeting::Tell => self.telling(&first),
        }
    }

    /// Writes the rows for which `condition` over the old table holds, as they are now. Returns how
    /// many there were.
    pub fn write(
        &self,
        session: &mut Session,
        condition: &str,
        meeting: Meeting,
    ) -> Result<u64, RowError> {
        let Some(transform) = &self.transform else {
            let sql = self.copy_statement(condition, meeting);
            return Ok(session.run_until_done(&sql)?);
        };
        let parts = self.key.columns.len();
        let mut read = vec![self.key.select_list(&self.source)];
        read.extend(transform.inputs(&self.source));
        let rows = session.rows(&format!(
            "SELECT {} FROM {} FORCE INDEX ({}) WHERE {condition}",
            read.join(", "),
            identifier(&self.source),
            identifier(&self.key.index),
        ))?;
        let names: Vec<String> = (0..parts)
            .map(|n| format!("k{n}"))
            .chain((0..transform.outputs().len()).map(|n| format!("c{n}")))
            .collect();
        let head = format!("INSERT INTO {STAGE} ({}) VALUES ", names.join(", "));
        let count = rows.len() as u64;
        let mut sql = head.clone();
        for row in rows {
            let (key, inputs) = split(row, &self.key)?;
            sql.push_str(if sql.len() == head.len() { "(" } else { ",(" });
            for (part, column) in key.0.iter().zip(&self.key.columns) {
                sql.push_str(&column.literal(part));
                sql.push(',');
            }
            transform
                .compute(&inputs, &mut sql)
                .map_err(|reason| RowError::Value {
                    key: key.shown(&self.key),
                    reason,
                })?;
            sql.push(')');
            if sql.len() > LONGEST_INSERT {
                self.flush_stage(session, &sql, meeting)?;
                sql.clone_from(&head);
            }
        }
        if sql.len() > head.len() {
            self.flush_stage(session, &sql, meeting)?;
        }
        Ok(count)
    }

    fn flush_stage(
        &self,
        session: &mut Session,
        insert: &str,
        meeting: Meeting,
    ) -> Result<(), RowError> {
        let Some(transform) = &self.transform else {
            return Ok(());
        };
        let (mut targets, mut sources) = self.lists();
        for (n, name) in transform.outputs().iter().enumerate() {
            targets.push(identifier(name));
            sources.push(format!("{STAGE}.c{n}"));
        }
        let join: Vec<String> = self
            .key
            .columns
            .iter()
            .enumerate()
            .map(|(n, column)| format!("{} = {STAGE}.k{n}", column_of(&self.source, &column.name)))
            .collect();
        session.run(&format!("DELETE FROM {STAGE}"))?;
        session.run(insert).map_err(without_value)?;
        let sql = format!(
            "{} INTO {} ({}) SELECT STRAIGHT_JOIN {} FROM {STAGE} JOIN {} FORCE INDEX ({}) ON {}{}",
            verb(meeting),
            identifier(&self.target),
            targets.join(", "),
            sources.join(", "),
            identifier(&self.source),
            identifier(&self.key.index),
            join.join(" AND "),
            self.tail(meeting),
        );
        session.run_until_done(&sql).map_err(without_entry)?;
        Ok(())
    }

    /// Deletes the rows with these keys from the new table; there is at least one.
    pub fn delete(&self, session: &mut Session, keys: &[Key]) -> Result<u64, SqlError> {
        let sql = format!(
            "DELETE FROM {} WHERE {}",
            identifier(&self.target),
            self.key.among(&self.target, keys)
        );
        session.run_until_done(&sql)
    }
}

/// Servers quote the value that they refuse, and here it is one that is to be kept secret.
fn without_value(error: SqlError) -> SqlError {
    match error.code {
        0 => error,
        code => SqlError {
            code,
            message: format!("error {code} about a computed value, which is not shown"),
        },
    }
}

/// Where a protected column becomes a plain one, its value may be what two rows have in common.
fn without_entry(error: SqlError) -> SqlError {
    match error.message.rsplit_once(" for key ") {
        Some((_, key)) if error.is_duplicate() => SqlError {
            code: error.code,
            message: format!("Duplicate entry for key {key}"),
        },
        _ => error,
    }
}

fn verb(meeting: Meeting) -> &'static str {
    match meeting {
        Meeting::Keep | Meeting::Conflict | Meeting::Tell => "INSERT",
        Meeting::Replace => "REPLACE",
    }
}

/// The key, which comes first, and the rest of a row.
pub(crate) fn split(mut row: Row, key: &KeyDefinition) -> Result<(Key, Row), RowError> {
    let rest = row.split_off(key.columns.len().min(row.len()));
    let parts: Option<Vec<Vec<u8>>> = row.into_iter().collect();
    let mut parts = parts.ok_or(RowError::NullKey)?;
    for (part, column) in parts.iter_mut().zip(&key.columns) {
        column.strip_zeros(part);
    }
    Ok((Key(parts), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_two_rows_share_is_not_told() {
        let error = |code, message: &str| {
            without_entry(SqlError {
                code,
                message: message.into(),
            })
            .message
        };
        assert_eq!(
            error(1062, "Duplicate entry 'x for key y' for key 't.email'"),
            "Duplicate entry for key 't.email'"
        );
        assert_eq!(error(1205, "Lock wait for key"), "Lock wait for key");
    }
}
