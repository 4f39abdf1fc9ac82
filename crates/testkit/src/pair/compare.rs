//! What both of a pair say, with whole definitions of columns, collected to the end.

use super::Pair;
use crate::{Failure, Session, announce};
use ::mysql::consts::{ColumnFlags, ColumnType};
use ::mysql::prelude::{Protocol, Queryable};
use ::mysql::{Params, QueryResult, Value};

/// What was compared.
#[derive(Default)]
pub struct Findings {
    compared: usize,
    refused: Vec<String>,
    different: Vec<String>,
    /// [`Pair::conclude`] has told them.
    told: bool,
}

impl Findings {
    /// Whether all that was compared has been told.
    pub fn are_told(&self) -> bool {
        self.told || self.compared == 0
    }
}

/// What a client sees of a column.
#[derive(Clone, PartialEq, Debug)]
struct Definition {
    name: String,
    origin: [String; 4],
    ty: ColumnType,
    flags: ColumnFlags,
    collation: u16,
    decimals: u8,
    length: u32,
}

/// What a client sees of a statement.
#[derive(Clone, PartialEq, Debug, Default)]
struct Seen {
    columns: Vec<Definition>,
    rows: Vec<Vec<Value>>,
    warnings: u16,
    error: Option<(u16, String)>,
    prepared: Vec<Definition>,
}

/// Differences are told in the end.
impl Pair {
    /// Compares everything that both say to a statement, as text and prepared.
    pub fn compare(&mut self, sql: &str, parameters: &[Value]) {
        if parameters.is_empty() {
            self.compare_text(sql);
        }
        let a = prepared(&mut self.plain, sql, parameters);
        let b = prepared(&mut self.protected, sql, parameters);
        self.judge(&format!("prepared: {sql} {parameters:?}"), a, b);
    }

    /// As prepared only: what a statement does, it does once.
    pub fn compare_prepared(&mut self, sql: &str) {
        let a = prepared(&mut self.plain, sql, &[]);
        let b = prepared(&mut self.protected, sql, &[]);
        self.judge(&format!("prepared: {sql}"), a, b);
    }

    /// As a text only.
    pub fn compare_text(&mut self, sql: &str) {
        let a = text(&mut self.plain, sql);
        let b = text(&mut self.protected, sql);
        self.judge(sql, a, b);
    }

    fn judge(&mut self, sql: &str, mut a: Seen, mut b: Seen) {
        self.findings.compared += 1;
        if let Some((_, message)) = &b.error
            && message.starts_with("OS")
        {
            self.findings.refused.push(format!("{sql}\n  {message}"));
            return;
        }
        // servers take them from the temporary table, if the optimizer needs one: two plain servers
        // differ
        let gathers = [" JOIN ", " GROUP BY ", " DISTINCT "];
        if gathers.iter().any(|word| sql.contains(word)) {
            let uncertain = ColumnFlags::PRI_KEY_FLAG
                | ColumnFlags::UNIQUE_KEY_FLAG
                | ColumnFlags::MULTIPLE_KEY_FLAG
                | ColumnFlags::PART_KEY_FLAG
                | ColumnFlags::AUTO_INCREMENT_FLAG
                | ColumnFlags::NUM_FLAG
                | ColumnFlags::BINARY_FLAG;
            for seen in [&mut a, &mut b] {
                let columns = seen.columns.iter_mut().chain(&mut seen.prepared);
                columns.for_each(|c| c.flags.remove(uncertain));
            }
        }
        // which of several texts an error has depends on names of databases and hosts
        for seen in [&mut a, &mut b] {
            if let Some((_, message)) = &mut seen.error {
                message.clear();
            }
        }
        if a != b {
            let mut text = format!("{sql}\n");
            for (p, q) in a.columns.iter().zip(&b.columns).filter(|(p, q)| p != q) {
                text += &format!("  column {p:?}\n      but {q:?}\n");
            }
            for (p, q) in a.prepared.iter().zip(&b.prepared).filter(|(p, q)| p != q) {
                text += &format!("  prepared {p:?}\n        but {q:?}\n");
            }
            if a.columns.len() != b.columns.len() || a.prepared.len() != b.prepared.len() {
                text += &format!(
                    "  columns {} but {}, prepared {} but {}\n",
                    a.columns.len(),
                    b.columns.len(),
                    a.prepared.len(),
                    b.prepared.len()
                );
            }
            if a.rows != b.rows {
                text += &format!("  rows {:?}\n   but {:?}\n", a.rows, b.rows);
            }
            if (a.warnings, &a.error) != (b.warnings, &b.error) {
                text += &format!(
                    "  warnings {}, error {:?} but {}, {:?}\n",
                    a.warnings, a.error, b.warnings, b.error
                );
            }
            self.findings.different.push(text);
        }
    }

    /// Panics if anything differed, or more was refused than that.
    pub fn conclude(&mut self, refused: usize) {
        self.findings.told = true;
        self.proxy.assert_healthy();
        announce(&format!(
            "{} answers compared, {} refused, {} different",
            self.findings.compared,
            self.findings.refused.len(),
            self.findings.different.len()
        ));
        assert!(
            self.findings.different.is_empty() && self.findings.refused.len() <= refused,
            "different:\n{}\nrefused:\n{}",
            self.findings.different.join("\n"),
            self.findings.refused.join("\n")
        );
    }
}

fn text(session: &mut Session, sql: &str) -> Seen {
    let mut seen = Seen::default();
    let conn = session.conn();
    let done = conn.query_iter(sql).map(|r| collect(r, &mut seen));
    finish(session, seen, done)
}

fn prepared(session: &mut Session, sql: &str, parameters: &[Value]) -> Seen {
    let mut seen = Seen::default();
    let conn = session.conn();
    let done = conn.prep(sql).and_then(|statement| {
        seen.prepared = statement.columns().iter().map(definition).collect();
        let params = match parameters {
            [] => Params::Empty,
            values => Params::Positional(values.to_vec()),
        };
        let done = conn
            .exec_iter(&statement, params)
            .map(|r| collect(r, &mut seen));
        // or else the client would take it from its cache, with the settings of another time
        conn.close(statement)?;
        done
    });
    finish(session, seen, done)
}

fn finish(
    session: &mut Session,
    mut seen: Seen,
    done: ::mysql::Result<::mysql::Result<()>>,
) -> Seen {
    match done.and_then(|d| d) {
        Ok(()) => seen.warnings = session.conn().warnings(),
        Err(error) => {
            let failure = Failure::from(error);
            seen = Seen {
                error: Some((failure.code, failure.message)),
                ..Seen::default()
            };
        }
    }
    seen
}

fn collect<P: Protocol>(
    mut result: QueryResult<'_, '_, '_, P>,
    seen: &mut Seen,
) -> ::mysql::Result<()> {
    while let Some(set) = result.iter() {
        seen.columns = set.columns().as_ref().iter().map(definition).collect();
        for row in set {
            seen.rows.push(row?.unwrap());
        }
    }
    Ok(())
}

fn definition(column: &::mysql::Column) -> Definition {
    Definition {
        name: column.name_str().into_owned(),
        origin: [
            column.schema_str().into_owned(),
            column.table_str().into_owned(),
            column.org_table_str().into_owned(),
            column.org_name_str().into_owned(),
        ],
        ty: column.column_type(),
        flags: column.flags(),
        collation: column.character_set(),
        decimals: column.decimals(),
        length: column.column_length(),
    }
}
