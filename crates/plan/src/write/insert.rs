//! `INSERT` and `REPLACE` as a whole: the target, the clauses, and what becomes of rows that are
//! met. The rows themselves are planned in `new_rows.rs`.

use std::ops::ControlFlow;
use std::sync::Arc;

use onionskin_schema::Table;
use onionskin_value::Family;
use sqlparser::ast::{Insert, ObjectName, OnInsert, Query, SetExpr, TableObject};

use super::Target;
use super::duplicate::RowAlias;
use super::new_rows::{Destination, Lenience};
use crate::errors::{self, NotUnderstood};
use crate::plan::{Action, Piece, Purpose, ResultItem, Upsert};
use crate::planner::{Known, Planned, Planner, refuse};
use crate::query::Mode;
use crate::scope::{self, Scope};
use crate::tenant;
use crate::unknown::Place;
use crate::visit::{Visitor, visit};

impl Planner<'_> {
    /// Plans an `INSERT` or a `REPLACE`.
    pub(crate) fn insert(&mut self, insert: &Insert) -> Planned<Action> {
        check_clauses(insert)?;
        let TableObject::TableName(name) = &insert.table else {
            return NotUnderstood::PartOf("the target", "INSERT").refuse();
        };
        let (database, table_name, known) = self.table(name)?;
        let table = match known {
            Known::Table(table) => Some(table),
            _ => None,
        };
        if table.as_ref().is_some_and(|t| !t.is_protected()) && reads_nothing(insert) {
            // a word of it, such as a column's name, is a protected table's name
            return Ok(Action::Relay);
        }
        let Some(table) = table.filter(|t| t.is_protected()) else {
            return self.insert_into_plain(insert);
        };
        self.check_inserted(insert, &table)?;
        if insert.replace_into {
            tenant::check_met(&table, "REPLACE")?;
        }
        if table.view {
            tenant::check_met(&table, "new rows through a view")?;
        }
        let mut scope = Scope::inside(None);
        scope.sources.push(scope::Source {
            name: table_name,
            database,
            table: Some(Arc::clone(&table)),
            exports: None,
        });
        let mut upsert = Upsert {
            target: self.insert_target(name)?,
            rows: Vec::new(),
            folded: None,
            columns: Vec::new(),
            constants: Vec::new(),
            assigned: Vec::new(),
        };
        let to = Destination {
            name,
            table: &table,
            scope: &scope,
            lenience: Lenience {
                ignore: insert.ignore,
                assigned: self.assigned_on_duplicate(insert.on.as_ref(), &table)?,
            },
        };
        match insert.assignments.as_slice() {
            [] => self.insert_values(insert, &to, &mut upsert)?,
            assignments => self.insert_set(assignments, &to, &mut upsert)?,
        }
        let alias = self.row_alias(insert, &upsert.rows, &table)?;
        let result = self.insert_returning(insert, &scope)?;
        self.met_rows(insert, &to, alias.as_ref(), &mut upsert)?;
        upsert.columns.sort_unstable();
        upsert.columns.dedup();
        if !upsert.columns.is_empty() || !upsert.constants.is_empty() {
            self.upsert = Some(upsert);
        }
        Ok(Action::Server {
            text: self.assemble()?,
            result,
        })
    }

    /// Into a table that is not protected. Protected tables may be read from, but not handed on.
    fn insert_into_plain(&mut self, insert: &Insert) -> Planned<Action> {
        if self.near.iter().any(|table| table.view) {
            return refuse(&errors::VIEW, "writing beside one");
        }
        let Some(query) = &insert.source else {
            return NotUnderstood::Beside("INSERT … SET", "a protected table").refuse();
        };
        for column in &insert.columns {
            self.judge_name(column)?;
        }
        self.query(query, None, Mode::Nested)?;
        if insert.on.is_some() || insert.returning.is_some() {
            return NotUnderstood::EitherClause("ON DUPLICATE KEY UPDATE", "RETURNING").refuse();
        }
        Ok(Action::Server {
            text: self.assemble()?,
            result: None,
        })
    }

    /// Refuses forms that a view cannot be written through in, and names for the new row's columns.
    fn check_inserted(&mut self, insert: &Insert, table: &Table) -> Planned<()> {
        self.inserted_view(table, !reads_nothing(insert))?;
        let is_more = insert.on.is_some() || insert.replace_into || insert.returning.is_some();
        if table.view && is_more {
            return refuse(&errors::VIEW, "writing through one in this form");
        }
        if let Some(alias) = &insert.insert_alias {
            let renames = alias.col_aliases.as_ref().is_some_and(|c| !c.is_empty());
            if renames && insert.source.is_none() {
                return NotUnderstood::PartOf("column aliases", "the new row").refuse();
            }
            self.judge_name(&alias.row_alias)?;
        }
        Ok(())
    }

    /// The table of an `INSERT` as the statement names it.
    fn insert_target(&self, name: &ObjectName) -> Planned<String> {
        let ends = (
            name.0.first().and_then(|p| p.as_ident()),
            name.0.last().and_then(|p| p.as_ident()),
        );
        let (Some(first), Some(last)) = ends else {
            return NotUnderstood::PartOf("the target", "INSERT").refuse();
        };
        let first = self.token_at(self.offset(first.span))?;
        let last = self.token_at(self.offset(last.span))?;
        let text = &self.sql()[self.tokens[first].start..self.tokens[last].end];
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// The protected columns without a default that the statement's own ON DUPLICATE KEY UPDATE
    /// assigns. To MariaDB they are given then, whatever the new row has; MySQL asks for a value
    /// all the same.
    fn assigned_on_duplicate(
        &mut self,
        on: Option<&OnInsert>,
        table: &Arc<Table>,
    ) -> Planned<Vec<usize>> {
        let Some(OnInsert::DuplicateKeyUpdate(list)) = on else {
            return Ok(Vec::new());
        };
        let mut assigned = Vec::new();
        if self.request.settings.family == Family::MariaDb {
            for assignment in list {
                let name = self.assigned_name(assignment)?;
                if let Target::Protected(column) = self.target(&name, table, Place::Update)?
                    && column.column().is_required()
                {
                    assigned.push(column.index);
                }
            }
        }
        Ok(assigned)
    }

    /// `INSERT … VALUES`.
    fn insert_values(
        &mut self,
        insert: &Insert,
        to: &Destination,
        upsert: &mut Upsert,
    ) -> Planned<()> {
        let Some(query) = &insert.source else {
            return NotUnderstood::Without("INSERT", "values").refuse();
        };
        let SetExpr::Values(values) = query.body.as_ref() else {
            return refuse(
                &errors::NOT_CONSTANT,
                "INSERT … SELECT into a protected table",
            );
        };
        let plain_query = query.with.is_none()
            && query.order_by.is_none()
            && query.limit_clause.is_none()
            && query.locks.is_empty();
        if !plain_query || values.explicit_row {
            return NotUnderstood::Clause("VALUES ROW").refuse();
        }
        self.insert_rows(&insert.columns, values.rows.len(), to, upsert)?;
        self.scan_values(&insert.columns, values, to)
    }

    /// The columns that `RETURNING` shows.
    fn insert_returning(
        &mut self,
        insert: &Insert,
        scope: &Scope,
    ) -> Planned<Option<Vec<ResultItem>>> {
        let Some(list) = &insert.returning else {
            return Ok(None);
        };
        let tokens = self.returning_tokens()?;
        self.returned(list, tokens, scope).map(Some)
    }

    /// What becomes of rows that have a new row's key: REPLACE writes all of the new row over them,
    /// ON DUPLICATE KEY UPDATE changes them.
    fn met_rows(
        &mut self,
        insert: &Insert,
        to: &Destination,
        alias: Option<&RowAlias>,
        upsert: &mut Upsert,
    ) -> Planned<()> {
        match &insert.on {
            None if insert.replace_into => {
                let seals = upsert.rows.iter().flatten().flat_map(|(_, text)| text);
                let sealed = |piece: &Piece| match piece {
                    Piece::Slot(slot) if slot.purpose == Purpose::Seal => Some(slot.column),
                    _ => None,
                };
                upsert.columns = seals.filter_map(sealed).collect();
                Ok(())
            }
            None => Ok(()),
            Some(OnInsert::DuplicateKeyUpdate(list)) => {
                let returns = insert.returning.is_some();
                self.on_duplicate(list, to.scope, to.table, alias, returns, upsert)
            }
            Some(_) => NotUnderstood::Clause("ON CONFLICT").refuse(),
        }
    }
}

/// Refuses clauses that are not understood.
fn check_clauses(insert: &Insert) -> Planned<()> {
    let Insert {
        insert_token: _,
        optimizer_hints: _,
        or,
        ignore: _,
        into: _,
        table: _,
        table_alias,
        columns: _,
        overwrite,
        source: _,
        assignments: _,
        partitioned,
        after_columns,
        has_table_keyword,
        on: _,
        returning: _,
        output,
        replace_into: _,
        priority: _,
        insert_alias: _,
        settings,
        format_clause,
        multi_table_insert_type,
        multi_table_into_clauses,
        multi_table_when_clauses,
        multi_table_else_clause,
    } = insert;
    if or.is_some()
        || *overwrite
        || partitioned.is_some()
        || !after_columns.is_empty()
        || *has_table_keyword
        || output.is_some()
        || settings.is_some()
        || format_clause.is_some()
        || multi_table_insert_type.is_some()
        || !multi_table_into_clauses.is_empty()
        || !multi_table_when_clauses.is_empty()
        || multi_table_else_clause.is_some()
        || table_alias.is_some()
    {
        return NotUnderstood::ClauseOf("INSERT").refuse();
    }
    Ok(())
}

/// Counts queries.
struct Queries(usize);

impl Visitor for Queries {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.0 += 1;
        ControlFlow::Continue(())
    }
}

/// Whether no query stands in the statement beside its `VALUES`, so that it can be about no table
/// but its target.
fn reads_nothing(insert: &Insert) -> bool {
    let of_values = |q: &Query| matches!(q.body.as_ref(), SetExpr::Values(_));
    let mut queries = Queries(0);
    let _ = visit(insert, &mut queries);
    match &insert.source {
        Some(query) => of_values(query) && queries.0 == 1,
        None => queries.0 == 0,
    }
}
