//! The schema within a transaction that sees the past: look-ups show what was, statements meet what
//! is.

use std::collections::{BTreeSet, HashSet};

use onionskin_keys::KeySet;
use onionskin_plan::{COLLATION, Catalog, Known};
use onionskin_schema::{TableName, folded};
use onionskin_value::Family;

use super::definitions::is_shown;
use super::lists::fold;
use super::question::{Wanted, names_of, question};
use crate::age::now;
use crate::catalog::{Account, KeyedPlan};
use crate::error::Outcome;
use crate::exchange::{Confirmed, Server};

impl Account {
    /// Sees to it within a transaction that sees the past: the definitions of the tables that the
    /// statement names are as they are known. Each is asked for if it was asked for more than
    /// `oldest` milliseconds ago. Of a name that is no table's, that is asked where a table's name
    /// stands. It makes no snapshot.
    pub fn confirm(
        &self,
        server: &mut Server,
        keys: &KeySet,
        keyed: &KeyedPlan,
        oldest: u64,
    ) -> Outcome<()> {
        let (began, generation) = (now(), self.generation());
        if server.confirmed.generation != generation {
            server.confirmed = Confirmed {
                generation,
                ..Confirmed::default()
            };
        }
        let table_words = &keyed.plan.facts.table_words;
        let mut asked = Vec::new();
        let mut known = Vec::new();
        for name in &keyed.plan.names {
            let at = server.confirmed.names.get(name);
            let is_new = oldest > 0 && at.is_some_and(|at| began.saturating_sub(*at) <= oldest);
            if is_new || !self.can_be_confirmed(name) {
                continue;
            }
            let Known::Table(table) = Catalog::table(self, &name.database, &name.name) else {
                if table_words.contains(&folded(&name.name)) {
                    asked.push(name.clone());
                    known.push(None);
                }
                continue;
            };
            asked.push(name.clone());
            known.push(Some(table));
        }
        let shown = server.present_definitions(&asked)?;
        for ((name, known), shown) in asked.into_iter().zip(known).zip(&shown) {
            if !is_shown(known.as_deref(), shown) {
                // another session may have looked it up meanwhile; what this one is shown has to be
                // confirmed, too
                self.look_up(server, keys, &[name])?;
                self.new_generation();
                return Ok(());
            }
            server.confirmed.names.insert(name, began);
        }
        Ok(())
    }

    /// Which of these names are tables' in a transaction that sees the past, as far as it sees.
    pub fn tables_of_the_past(
        &self,
        server: &mut Server,
        names: &[TableName],
    ) -> Outcome<HashSet<TableName>> {
        let mut databases: BTreeSet<String> = names.iter().map(|n| n.database.clone()).collect();
        // A name may stand for databases that are spelled otherwise, and whoever asks about it
        // later asks for the lists of those.
        let known = self.lists.read();
        let spelled: Vec<&[String]> = databases
            .iter()
            .filter_map(|d| known.databases(d))
            .collect();
        let spelled: Vec<String> = spelled.concat();
        drop(known);
        databases.extend(spelled);
        let wanted = Wanted::lists(databases.iter().cloned().collect());
        let rows = server.rows(question(&wanted, Family::MySql).as_bytes())?;
        let lists = names_of(rows, &wanted.lists)?;
        let databases: Vec<&str> = databases.iter().map(String::as_str).collect();
        self.lists.write().suppose(&databases);
        let mut found = HashSet::new();
        for (database, tables) in lists {
            let tables: HashSet<String> = tables.iter().map(|name| fold(name)).collect();
            let here = names.iter().filter(|table| {
                let name = &table.name;
                fold(&table.database) == fold(&database)
                    && (tables.contains(&fold(name)) || name.starts_with(COLLATION))
            });
            found.extend(here.cloned());
        }
        Ok(found)
    }
}
