//! What the answer of a renewal says of the tables that are known.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use onionskin_keys::KeySet;
use onionskin_schema::{Table, TableName};

use super::question::{Wanted, by_name, name_of};
use crate::catalog::tables;
use crate::error::Outcome;
use crate::exchange::{Rows, Server};
use crate::mask::{AccountMasks, settle_indexes};
use crate::parts::settle_parts;

/// The answer, as far as it is about tables.
pub(crate) struct Answer {
    /// Tables of which all was asked for, and those of them that there are.
    whole: HashSet<TableName>,
    tables: HashMap<TableName, Table>,
    /// Others, and whether those of them that there are have sealed columns.
    others: HashSet<TableName>,
    is_sealed: HashMap<TableName, bool>,
    /// The server has warned of nothing.
    is_complete: bool,
}

/// What has become of a table that is known.
pub(crate) enum Found {
    /// It was not asked for.
    NotAsked,
    Same,
    /// A view, about which its own columns do not tell all: there are tables behind it.
    View,
    /// A table that is locked by a definition, or a view that has lost what it shows.
    Unclear,
    Different,
}

impl Answer {
    pub fn read(
        server: &mut Server,
        keys: &KeySet,
        wanted: &Wanted,
        masks: &AccountMasks,
        mut rows: Rows,
        is_complete: bool,
    ) -> Outcome<Answer> {
        let is_sealed = by_name(&rows);
        let (whole, others) = (names(&wanted.whole), names(&wanted.others));
        rows.retain(|row| whole.contains(&name_of(row)));
        let mut tables = tables(&rows, keys)?;
        // views are looked up once more
        settle_parts(server, tables.iter_mut().filter(|table| !table.view))?;
        settle_indexes(server, tables.iter_mut(), masks)?;
        Ok(Answer {
            whole,
            tables: tables.into_iter().map(named).collect(),
            others,
            is_sealed,
            is_complete,
        })
    }

    /// What has become of a table.
    pub fn of(&self, table: &Table) -> Found {
        let name = TableName::new(&table.database, &table.name);
        let same = if self.whole.contains(&name) {
            let found = self.tables.get(&name);
            if found.is_some() && table.view && table.damaged.is_none() {
                return Found::View;
            }
            // one whose columns the account may not see
            let is_hidden = table.columns.is_empty() && !table.view && self.is_complete;
            match found {
                None if is_hidden => Some(true),
                found => found.map(|found| found.with_references_of(table) == *table),
            }
        } else if self.others.contains(&name) {
            self.is_sealed.get(&name).map(|is_sealed| !is_sealed)
        } else {
            return Found::NotAsked;
        };
        match same {
            Some(true) => Found::Same,
            None if !self.is_complete => Found::Unclear,
            _ => Found::Different,
        }
    }
}

fn names(tables: &BTreeMap<String, BTreeSet<String>>) -> HashSet<TableName> {
    let each = |(database, names): (&String, &BTreeSet<String>)| {
        let full = |name: &String| TableName::new(database, name);
        names.iter().map(full).collect::<Vec<_>>()
    };
    tables.iter().flat_map(each).collect()
}

fn named(table: Table) -> (TableName, Table) {
    (TableName::new(&table.database, &table.name), table)
}
