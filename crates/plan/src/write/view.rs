//! Writing through views.
//!
//! Which views rows can be written through, and which rows they reach, is for the server to say.
//! What the proxy needs is to know the one table behind the view ([`Base`]): protected columns that
//! the view leaves out are nobody's but the proxy's to fill in, and rows are found again by the
//! table's key.

use onionskin_schema::{Base, Protection, Table};

use super::Target;
use crate::errors;
use crate::planner::{Planned, Planner, refuse};
use crate::scope::{Scope, position};

/// What is known of the table behind a view; `None` for what is no view.
pub(super) fn behind(table: &Table) -> Planned<Option<&Base>> {
    match &table.base {
        _ if !table.view => Ok(None),
        Some(base) => Ok(Some(base)),
        None => refuse(
            &errors::VIEW,
            "writing through one of anything but one table, or of a table or a definition that the account does not see",
        ),
    }
}

impl Planner<'_> {
    /// Checks the views that an UPDATE names.
    pub(super) fn updated_views(&mut self, scope: &Scope) -> Planned<()> {
        let mut views = Vec::new();
        for table in scope.sources.iter().filter_map(|s| s.table.as_ref()) {
            views.extend(behind(table)?);
        }
        if !self.near.iter().any(|table| table.view) {
            return Ok(());
        }
        let sql = self.sql();
        let reads = self.tokens.iter().any(|t| t.is_word(sql, "select"));
        if reads || (scope.sources.len() > 1 && !views.is_empty()) {
            return refuse(&errors::VIEW, "writing beside one");
        }
        if views.is_empty() {
            // a word of it, such as a column's name, is a view's name
            return Ok(());
        }
        if let Some(column) = views.iter().find_map(|base| base.changed.as_ref()) {
            let about = format!("UPDATE through one of a table in which {column} has ON UPDATE");
            return refuse(&errors::VIEW, about);
        }
        self.note_hidden_times();
        Ok(())
    }

    /// Checks the view that an INSERT names, if its target is one. `reads`: there is a query in the
    /// statement.
    pub(super) fn inserted_view(&mut self, table: &Table, reads: bool) -> Planned<()> {
        if reads && self.near.iter().any(|table| table.view) {
            return refuse(&errors::VIEW, "writing beside one");
        }
        let Some(base) = behind(table)? else {
            return Ok(());
        };
        let renamed = |p: &Protection| p.names.renamed.is_some();
        if table.protected_columns().any(|(_, p)| renamed(p)) {
            // what says so is no column of the table, and servers take no row for a view with such
            // a column
            let about = "INSERT through one that calls protected columns otherwise";
            return refuse(&errors::VIEW, about);
        }
        if let Some(column) = &base.missing {
            let about = format!("INSERT through one without {column}, which needs a value");
            return refuse(&errors::VIEW, about);
        }
        self.note_hidden_times();
        Ok(())
    }
}

/// Refuses to leave the server to say that a protected column has no value: for a view it would say
/// it otherwise.
pub(super) fn check_omitted(table: &Table, named: &[Target]) -> Planned<()> {
    if !table.view {
        return Ok(());
    }
    let is_given = |index: usize| {
        let mut named = named.iter();
        named.any(|t| matches!(t, Target::Protected(c) if c.index == index))
    };
    let is_missing = |index: &usize| {
        let column = &table.columns[*index];
        let is_required = column.is_required() || column.has_lost_default();
        let needs = column.protection.is_some() && is_required;
        needs && !is_given(*index)
    };
    match (0..table.columns.len()).find(is_missing) {
        None => Ok(()),
        Some(index) => {
            let name = &table.columns[index].name;
            let about = format!("INSERT through one without a value for column {name}");
            refuse(&errors::VIEW, about)
        }
    }
}

/// Refuses to assign a column that the view computes: the server says so only if there is a row.
pub(super) fn check_assigned(scope: &Scope, plain: &[String]) -> Planned<()> {
    for table in scope.sources.iter().filter_map(|s| s.table.as_ref()) {
        let Some(base) = &table.base else { continue };
        let computes = |name: &&String| {
            position(table, name).is_some_and(|index| base.computed.contains(&index))
        };
        if let Some(name) = plain.iter().find(computes) {
            let about = format!("UPDATE of column {name}, which it computes");
            return refuse(&errors::VIEW, about);
        }
    }
    Ok(())
}
