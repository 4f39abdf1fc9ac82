//! Tables with KEY BY: whose the rows are that a statement writes.
//!
//! A cell is sealed under a key of its row's tenant ([`onionskin_schema::Tenant`]). So every row
//! that is written has to say its tenant before its cells are made:
//!
//! - a new row, by the constant that it gives the tenant's column ([`Piece::Tenant`]);
//! - a row that an UPDATE changes, by what it holds: such an UPDATE reads its rows first.
//!
//! What writes cells in any other way is refused, and so is a statement that gives a row another
//! tenant: its cells would stay under the key of the one before. The binder is the net below: it
//! seals no cell of such a column without a tenant.

use std::sync::Arc;

use onionskin_schema::{Table, Tenant, same_name};

use crate::errors::{self, Refusal};
use crate::lex::Token;
use crate::plan::{Action, ColumnUse, Effect, Piece, ScratchWrite, Text};
use crate::planner::{Planned, Planner, identifier, refuse};
use crate::scope::Scope;

impl Planner<'_> {
    /// What stands before the cells of a new row of this table, which consists of these pieces by
    /// the names of physical columns: nothing if the table has no KEY BY.
    pub(crate) fn tenant_of_row(&mut self, table: &Arc<Table>, row: &[(String, Text)]) -> Text {
        let Some(tenant) = table.tenant() else {
            return Text::new();
        };
        let is_keyed = |c: &onionskin_schema::Column| {
            let protection = c.protection.as_ref();
            protection.is_some_and(|p| p.capabilities.tenant.is_some())
        };
        let Some(index) = table.columns.iter().position(is_keyed) else {
            return Text::new();
        };
        let mut given = row.iter();
        let given = given.find(|(name, _)| same_name(name, &tenant.column));
        let used = ColumnUse {
            table: Arc::clone(table),
            index,
        };
        vec![Piece::Tenant {
            column: self.column_index(&used),
            value: given.map(|(_, text)| text.clone()).unwrap_or_default(),
        }]
    }
}

/// The error of a statement that writes rows whose tenant is not known.
pub(crate) fn unknown(table: &Table, about: &str) -> Refusal {
    let about = format!("{}.{}: {about}", table.database, table.name);
    Refusal::new(&errors::TENANT, about)
}

/// Refuses REPLACE and a change of rows that are met: the row that is there may be another
/// tenant's.
pub(crate) fn check_met(table: &Table, about: &str) -> Planned<()> {
    match table.tenant() {
        None => Ok(()),
        Some(_) => Err(unknown(table, about)),
    }
}

/// Whether it is the column that says whose the table's rows are.
pub(crate) fn says_tenant(table: &Table, column: &str) -> bool {
    let is = |tenant: &Tenant| same_name(&tenant.column, column);
    table.tenant().is_some_and(is)
}

/// Refuses to give rows another tenant. A name may be that of any table of the statement.
pub(crate) fn check_assigned(scope: &Scope, plain: &[String]) -> Planned<()> {
    for table in scope.sources.iter().filter_map(|s| s.table.as_ref()) {
        if plain.iter().any(|name| says_tenant(table, name)) {
            return Err(unknown(table, "another tenant for rows that are there"));
        }
        if table.view && table.tenant().is_some() {
            return Err(unknown(table, "a change through a view"));
        }
    }
    Ok(())
}

/// Refuses a view by which rows could get another tenant: one that shows the tenant's column of
/// such a table, and that servers write through. Of a view without protected columns nobody could
/// tell.
pub(crate) fn check_view(sql: &[u8], tokens: &[Token], near: &[Arc<Table>]) -> Planned<()> {
    let is_computed = tokens
        .windows(3)
        .any(|w| w[0].is_word(sql, "algorithm") && w[1].is(b'=') && w[2].is_word(sql, "temptable"));
    if is_computed {
        return Ok(());
    }
    let shows = |table: &&Arc<Table>| {
        let is_named = |t: &Token| identifier(sql, t).is_some_and(|name| says_tenant(table, &name));
        table.tenant().is_some() && tokens.iter().any(|t| t.is(b'*') || is_named(t))
    };
    match near.iter().find(shows) {
        Some(table) => {
            let about = "a view that shows whose rows are, without ALGORITHM = TEMPTABLE";
            Err(unknown(table, about))
        }
        None => Ok(()),
    }
}

/// Refuses changes by way of the scratch engine, but for deletions.
pub(crate) fn check(action: &Action) -> Planned<()> {
    let Action::ScratchWrite(write) = action else {
        return Ok(());
    };
    let ScratchWrite { scratch, effect } = write.as_ref();
    let about = "rows that the scratch engine computes";
    match effect {
        Effect::Insert(new) => check_met(&new.table, about),
        Effect::Update(written) => {
            let tables = written.iter().map(|w| &scratch.reads[w.read].table);
            for table in tables {
                check_met(table, about)?;
            }
            Ok(())
        }
        Effect::Create(new) => {
            let has = new.encrypted.iter().any(|(_, clause)| {
                let words: Vec<_> = clause.split_ascii_whitespace().collect();
                words
                    .windows(2)
                    .any(|w| w[0].eq_ignore_ascii_case("key") && w[1].eq_ignore_ascii_case("by"))
            });
            match has {
                true => refuse(&errors::TENANT, about),
                false => Ok(()),
            }
        }
        Effect::Delete(_) => Ok(()),
    }
}
