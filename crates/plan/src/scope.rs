//! Names in a statement: which table, which column, protected or not.

use std::sync::Arc;

use onionskin_schema::{Table, same_name};
use onionskin_value::SqlType;
use sqlparser::ast::{Expr, Ident, JoinConstraint, JoinOperator};

use crate::errors::{self, NotUnderstood};
use crate::fetch::unnested;
use crate::plan::ColumnUse;
use crate::planner::{Planned, refuse};

/// A table in a `FROM` clause.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The name by which columns are qualified: the alias, or the table's name.
    pub name: String,
    /// The database, when columns may be qualified with it too.
    pub database: Option<String>,
    /// The table; `None` for derived tables and for names that are no known table.
    pub table: Option<Arc<Table>>,
    /// The columns of a derived table, none of them protected; `None` when they are not known.
    pub exports: Option<Vec<String>>,
}

/// What an identifier means.
#[derive(Clone, Debug)]
pub(crate) enum Resolved {
    /// A protected column.
    Protected(ColumnUse),
    /// Something else that the server knows better than we do.
    Plain,
    /// No table of the statement has such a column.
    Unknown,
}

/// The tables that names are looked up in, innermost query first.
#[derive(Default)]
pub(crate) struct Scope<'p> {
    pub sources: Vec<Source>,
    pub parent: Option<&'p Scope<'p>>,
    /// Aliases of the select list, with the column when the item is a protected one.
    pub aliases: Vec<(String, Option<ColumnUse>)>,
    /// Aliases of items that are computed from a protected column, on the server from its tokens.
    pub computed: Vec<(String, ColumnUse)>,
}

impl<'p> Scope<'p> {
    pub fn inside(parent: Option<&'p Scope<'p>>) -> Self {
        Scope {
            sources: Vec::new(),
            parent,
            aliases: Vec::new(),
            computed: Vec::new(),
        }
    }

    /// Looks a possibly qualified column up.
    pub fn resolve(&self, parts: &[Ident]) -> Planned<Resolved> {
        let names: Vec<&str> = parts.iter().map(|p| p.value.as_str()).collect();
        match names[..] {
            [column] => self.resolve_bare(column),
            [table, column] => self.resolve_in(None, table, column),
            [database, table, column] => self.resolve_in(Some(database), table, column),
            _ => NotUnderstood::NameParts("a name", "three").refuse(),
        }
    }

    fn resolve_bare(&self, column: &str) -> Planned<Resolved> {
        let mut protected = None;
        let mut plain = false;
        for source in &self.sources {
            match &source.table {
                Some(table) => match position(table, column) {
                    Some(index) if table.columns[index].protection.is_some() => {
                        if protected.is_some() {
                            return refuse(&errors::AMBIGUOUS, format!("column {column}"));
                        }
                        protected = Some(ColumnUse {
                            table: Arc::clone(table),
                            index,
                        });
                    }
                    Some(_) => plain = true,
                    None => {}
                },
                None => {
                    plain |= source
                        .exports
                        .as_ref()
                        .is_some_and(|e| e.iter().any(|n| same_name(n, column)));
                }
            }
        }
        match (protected, plain) {
            (Some(_), true) => refuse(&errors::AMBIGUOUS, format!("column {column}")),
            (Some(found), false) => Ok(Resolved::Protected(found)),
            (None, true) => Ok(Resolved::Plain),
            (None, false) => match self.parent {
                Some(parent) => match parent.resolve_bare(column)? {
                    Resolved::Unknown if self.is_open() => Ok(Resolved::Plain),
                    found => Ok(found),
                },
                None if self.is_open() => Ok(Resolved::Plain),
                None => Ok(Resolved::Unknown),
            },
        }
    }

    fn resolve_in(&self, database: Option<&str>, table: &str, column: &str) -> Planned<Resolved> {
        let mut found = None;
        for source in &self.sources {
            let named = same_name(&source.name, table)
                && database.is_none_or(|d| {
                    source
                        .database
                        .as_deref()
                        .is_some_and(|s| s.eq_ignore_ascii_case(d))
                });
            if !named {
                continue;
            }
            if found.is_some() {
                return refuse(&errors::AMBIGUOUS, format!("table {table}"));
            }
            found = Some(match &source.table {
                Some(t) => match position(t, column) {
                    Some(index) if t.columns[index].protection.is_some() => {
                        Resolved::Protected(ColumnUse {
                            table: Arc::clone(t),
                            index,
                        })
                    }
                    Some(_) => Resolved::Plain,
                    None => Resolved::Unknown,
                },
                None => match &source.exports {
                    Some(exports) if !exports.iter().any(|n| same_name(n, column)) => {
                        Resolved::Unknown
                    }
                    _ => Resolved::Plain,
                },
            });
        }
        match (found, self.parent) {
            (Some(found), _) => Ok(found),
            (None, Some(parent)) => parent.resolve_in(database, table, column),
            (None, None) => Ok(Resolved::Unknown),
        }
    }

    /// The name of the source that a protected column comes from: as it is qualified, or the only
    /// one that has it.
    pub fn source_of(&self, expr: &Expr, column: &ColumnUse) -> String {
        match unnested(expr) {
            Expr::CompoundIdentifier(parts) if parts.len() > 1 => {
                parts[parts.len() - 2].value.clone()
            }
            _ => self
                .sources
                .iter()
                .find(|s| {
                    s.table
                        .as_ref()
                        .is_some_and(|t| Arc::ptr_eq(t, &column.table))
                })
                .map(|s| s.name.clone())
                .unwrap_or_default(),
        }
    }

    /// The type of a plain column of a table that is known.
    pub fn plain_type(&self, expr: &Expr) -> Option<SqlType> {
        self.plain_column(expr)?.column().sql_type
    }

    /// A plain column of a table that is known.
    pub fn plain_column(&self, expr: &Expr) -> Option<ColumnUse> {
        let (source, column) = match unnested(expr) {
            Expr::Identifier(column) => (None, column),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [.., source, column] => (Some(source), column),
                _ => return None,
            },
            _ => return None,
        };
        let mut found = self
            .sources
            .iter()
            .filter(|s| source.is_none_or(|n| same_name(&n.value, &s.name)))
            .filter_map(|s| {
                let table = s.table.as_ref()?;
                let index = position(table, &column.value)?;
                Some(ColumnUse {
                    table: Arc::clone(table),
                    index,
                })
            })
            .filter(|c| c.column().protection.is_none());
        match (found.next(), found.next()) {
            (Some(column), None) => Some(column),
            _ => None,
        }
    }

    /// Whether some source's columns are not known (a temporary table, a view out of sight).
    pub fn is_open(&self) -> bool {
        self.sources
            .iter()
            .any(|s| s.table.is_none() && s.exports.is_none())
    }

    /// The same, here or in a query around this one.
    pub fn is_open_anywhere(&self) -> bool {
        self.is_open() || self.parent.is_some_and(Scope::is_open_anywhere)
    }

    /// The select-list alias of this name: `Some(None)` when it is not a protected column.
    pub fn alias(&self, name: &str) -> Option<Option<&ColumnUse>> {
        self.aliases
            .iter()
            .find(|(alias, _)| same_name(alias, name))
            .map(|(_, column)| column.as_ref())
    }
}

pub(crate) fn position(table: &Table, column: &str) -> Option<usize> {
    let found = table.column(column)?;
    table.columns.iter().position(|c| std::ptr::eq(c, found))
}

/// What a join compares. `None`: it is of a kind that servers do not have.
pub(crate) fn join_constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    match operator {
        JoinOperator::Join(c)
        | JoinOperator::Inner(c)
        | JoinOperator::Left(c)
        | JoinOperator::LeftOuter(c)
        | JoinOperator::Right(c)
        | JoinOperator::RightOuter(c)
        | JoinOperator::CrossJoin(c)
        | JoinOperator::StraightJoin(c) => Some(c),
        _ => None,
    }
}
