//! MySQL's `ANALYZE TABLE t UPDATE HISTOGRAM ON a, b WITH 16 BUCKETS`, and `DROP HISTOGRAM ON a`:
//! over plain columns they are the server's own. A histogram of cells would tell nobody anything.

use onionskin_schema::TableName;
use onionskin_value::Family;

use super::words::named;
use crate::errors::{self, NotUnderstood};
use crate::lex::{LiteralKind, Token, TokenKind};
use crate::planner::{Known, Planned, Request, identifier, refuse};

/// The table and the columns.
pub(super) struct Histogram {
    table: TableName,
    columns: Vec<String>,
}

impl Histogram {
    /// Reads the whole statement. `None`: it is another one.
    pub(super) fn read(request: &Request, tokens: &[Token]) -> Option<Self> {
        let sql = request.sql;
        if request.settings.family != Family::MySql {
            return None;
        }
        let end = tokens.iter().rposition(|t| !t.is(b';'))? + 1;
        let all = &tokens[..end];
        let is = |at: usize, word: &str| all.get(at).is_some_and(|t| t.is_word(sql, word));
        let is_mark = |at: usize, mark: u8| all.get(at).is_some_and(|t| t.is(mark));
        if !is(0, "analyze") {
            return None;
        }
        let mut at = 1;
        at += usize::from(is(at, "no_write_to_binlog") || is(at, "local"));
        if !is(at, "table") {
            return None;
        }
        at += 1;
        let table = named(sql, all, at, request.settings.database.as_deref())?;
        at += if is_mark(at + 1, b'.') { 3 } else { 1 };
        let updates = is(at, "update");
        if !(updates || is(at, "drop")) || !is(at + 1, "histogram") || !is(at + 2, "on") {
            return None;
        }
        at += 3;
        let mut columns = Vec::new();
        loop {
            columns.push(identifier(sql, all.get(at)?)?);
            at += 1;
            if !is_mark(at, b',') {
                break;
            }
            at += 1;
        }
        let is_number = |t: &Token| t.kind == TokenKind::Literal(LiteralKind::Integer);
        if updates && is(at, "with") && all.get(at + 1).is_some_and(is_number) {
            at += if is(at + 2, "buckets") { 3 } else { 0 };
        }
        if updates && (is(at, "auto") || is(at, "manual")) && is(at + 1, "update") {
            at += 2;
        }
        (at == all.len()).then_some(Self { table, columns })
    }

    /// Refuses one of a protected column, and of a table or a column that is not known.
    pub(super) fn check(&self, request: &Request) -> Planned<()> {
        let (database, name) = (&self.table.database, &self.table.name);
        let Known::Table(table) = request.catalog.table(database, name) else {
            return NotUnderstood::UnknownTable(name.clone()).refuse();
        };
        for column in &self.columns {
            match table.column(column) {
                Some(found) if found.protection.is_none() => {}
                Some(_) => {
                    let about = format!("a histogram of the protected column {column}");
                    return refuse(&errors::STATEMENT, about);
                }
                None => return refuse(&errors::STATEMENT, "a histogram of an unknown column"),
            }
        }
        Ok(())
    }
}
