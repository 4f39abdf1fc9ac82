//! A plan gets its ciphers, and is told what it rests on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use onionskin_crypt::{CellFormat, ColumnCipher, ColumnId};
use onionskin_keys::KeySet;
use onionskin_plan::{Action, COLLATION, ColumnUse, LexMode, Plan, errors};
use onionskin_schema::{KeyRole, Table, TableName};
use parking_lot::RwLock;

use super::names::is_virtual;
use super::{Account, KeyedPlan};
use crate::age::Age;
use crate::error::{Failure, Outcome};
use crate::mask::{self, PlanKeys};
use crate::metrics::Label;

/// How often a statement is planned before it is given up. While a plan is made, a definition of
/// another session of the account may make it old.
pub(crate) const MAX_PLANS: u32 = 32;

/// Where a plan comes from.
pub(crate) struct PlanOrigin<'a> {
    /// The statement.
    pub sql: &'a [u8],
    /// How it is read.
    pub mode: LexMode,
    /// Of what was known of tables when the plan was made.
    pub generation: u64,
    /// Where the statement is counted.
    pub label: Label,
    /// Protected columns that it names, for the audit log.
    pub named: Vec<ColumnUse>,
}

impl Account {
    /// Gives a plan the ciphers of its columns, so that it can be executed.
    pub fn keyed_plan(
        &self,
        plan: Plan,
        origin: PlanOrigin<'_>,
        keys: &KeySet,
    ) -> Outcome<Arc<KeyedPlan>> {
        let PlanOrigin {
            sql,
            mode,
            generation,
            label,
            named,
        } = origin;
        let shows = mask::check(&plan, sql, mode, self)?;
        let ciphers = plan
            .columns
            .iter()
            .map(|column| cipher(keys, column))
            .collect::<Outcome<Vec<_>>>()?;
        let basis = self.basis(&plan);
        let runs_programs = plan.facts.runs_programs || self.may_have_view(&plan.names);
        Ok(Arc::new(KeyedPlan {
            plan,
            runs_programs,
            keys: PlanKeys::new(ciphers, shows, keys.tenant_names()),
            snapshot: self.number,
            generation,
            edition: self.rules.edition,
            shown: RwLock::default(),
            basis,
            label,
            named,
        }))
    }

    /// Whether one of these may be a view: it has no key.
    fn may_have_view(&self, names: &[TableName]) -> bool {
        let tables = self.tables.read();
        let may_be_one = |name: &TableName| {
            let table = tables.get(name).and_then(|entry| entry.table.as_ref());
            let is_table = !name.name.starts_with(COLLATION) && !is_virtual(&name.database);
            let has_key = |table: &Table| table.columns.iter().any(|c| c.key != KeyRole::None);
            is_table && table.is_some_and(|table| !has_key(table))
        };
        names.iter().any(may_be_one)
    }

    /// What a plan rests on: lists of names, and tables.
    fn basis(&self, plan: &Plan) -> Vec<Arc<Age>> {
        let lists = self.lists.read();
        let tables = self.tables.read();
        // what the server keeps for itself never changes
        let may_change = |table: &&TableName| !is_virtual(&table.database);
        let names: Vec<_> = plan.names.iter().filter(may_change).cloned().collect();
        let mut basis = match names.is_empty() {
            true => Vec::new(),
            false => lists.ages(&names),
        };
        // the scratch engine gets plain tables as they are known here
        let all = matches!(plan.action, Action::Scratch(_) | Action::ScratchWrite(_));
        for table in &names {
            let TableName { database, name } = table;
            let Some(entry) = tables.get(table).filter(|_| !name.starts_with(COLLATION)) else {
                continue;
            };
            // some that are there show nothing
            if entry.table.is_some() || lists.has(database, name) == Some(true) {
                entry.whole.fetch_or(all, Ordering::Relaxed);
                basis.push(Arc::clone(&entry.age));
            }
        }
        basis
    }
}

/// The cipher of a column under the key that its definition names.
fn cipher(keys: &KeySet, column: &ColumnUse) -> Outcome<Arc<ColumnCipher>> {
    let key_id = column.column().protection.as_ref().map_or(0, |p| p.key_id);
    cipher_of(keys, column, key_id)
}

/// The cipher of a column under some key.
pub(crate) fn cipher_of(
    keys: &KeySet,
    column: &ColumnUse,
    key_id: u16,
) -> Outcome<Arc<ColumnCipher>> {
    let (Some(protection), Some(table)) = (&column.column().protection, column.table.table_id)
    else {
        return Err(Failure::refused(&errors::INTERNAL, column.path()));
    };
    let cells = CellFormat::from_numbers(protection.suite, protection.cell_version)
        .ok_or_else(|| Failure::refused(&errors::DAMAGED, column.path()))?;
    let id = ColumnId {
        table,
        column: protection.column_id,
    };
    keys.column_cipher(cells, key_id, id, protection.capabilities.join.as_deref())
        .map_err(|e| Failure::key(&e, &column.path()))
}
