//! Foreign keys of the table, and those that point at it, are moved with it.
//!
//! The server would leave them behind: a key of the old table stays with the old table, and one
//! that points at it goes on to point at it, under its new name. So they are moved under the lock
//! of the switch, before the tables change their names:
//!
//! ```text
//! before the lock     new: what another table's changes do to the rows, see below
//! L: LOCK TABLES t WRITE, new WRITE, children WRITE, parents
//!    the last changes are written
//!    child: DROP key, ADD temporary REFERENCES new      one statement: there is always one of them
//!    child: DROP temporary, ADD key REFERENCES new
//!    t:     DROP key
//!    new:   ADD key REFERENCES parent
//!    RENAME TABLE t TO old, new TO t                    what points at `new` goes with it
//! ```
//!
//! Constraint names are unique in a database, and one statement cannot drop a key and add another
//! under its name. All of these statements change definitions only: without `foreign_key_checks` no
//! row is read, and rows that have no counterpart stay as they are. An index that the server has
//! made for a key by itself would be replaced with the key, on MySQL by reading the table. To
//! rename it and back makes it an index like any other.
//!
//! **Cascades.** What ON DELETE CASCADE and its like do to the rows of a table is not in the binary
//! log (of MariaDB, and of MySQL before 9.6). So the new table has keys with these actions from the
//! beginning, under names of their own, and the server does in both tables the same. Where the old
//! table forbids what would orphan a row, they cascade: what it lets by concerns rows only that the
//! new table has not lost yet. A row that is copied while its parent goes is refused (1452), and
//! read once more. A change that comes by in the log is of a row that may have gone without a word
//! since, with a parent that it has there only: so the new table's row is deleted first, and
//! written if there still is one.
//!
//! **MariaDB** renames in a session of its own when the lock is given back (`switch.rs`). Then
//! others hold the neighbours, so that the rename meets nobody. Should it fail all the same, the
//! keys go back, and what was written in these milliseconds was not held to the table's own keys.
//!
//! **After a kill** the catalogue tells how far it was: [`Moves::settle`] brings every key to where
//! it belongs, with the tables switched or not.

use std::collections::{BTreeMap, BTreeSet};

use onionskin_rowstream::checkpoint::{ForeignKey, State};
use onionskin_rowstream::session::{Session, SqlError};
use onionskin_schema::{identifier, same_name};
use onionskin_value::Family;

use crate::error::{MigrateError, Result};
use crate::facts::{Facts, is_in};
use crate::foreign_catalog::{indexes, pointing_at, same};
use crate::job::Job;
use crate::preflight::Names;
use crate::privileges;
use crate::statement::mark;

/// What stands behind the name of an index while it is renamed.
pub(crate) const RENAMED: &str = "$onionskin";
/// Longest name of an index.
const LONGEST: usize = 64;

/// Whether the names have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The old table has its name.
    Before,
    /// The new table has it.
    After,
}

/// The keys of one migration, in a database and for a table.
pub(crate) struct Moves<'a> {
    pub keys: &'a [ForeignKey],
    pub database: &'a str,
    pub table: &'a str,
    /// The table that takes its place.
    pub new: &'a str,
    /// What the table is called afterwards.
    pub old: &'a str,
    /// The migration's.
    pub id: &'a str,
    pub family: Family,
}

/// An error if a key is over a column that is protected in one of the tables, or becomes another
/// one: then both sides of it would have to change at once.
pub(crate) fn must_be_plain(keys: &[ForeignKey], old: &Facts, new: &Facts) -> Result<()> {
    let is_kept = |name: &String| {
        let plain = |facts: &Facts| {
            let column = facts.logical.column(name)?;
            let physical = facts.column(name)?;
            let kind = (
                &physical.column_type,
                &physical.charset,
                &physical.collation,
            );
            (column.protection.is_none()).then(|| format!("{kind:?}"))
        };
        matches!((plain(old), plain(new)), (Some(before), Some(after)) if before == after)
    };
    for key in keys {
        let is_ours =
            |database: &str, table: &str| same(database, table, &old.database, &old.table);
        let own = key
            .columns
            .iter()
            .filter(|_| is_ours(&key.database, &key.table));
        let pointed = key
            .parent_columns
            .iter()
            .filter(|_| is_ours(&key.parent_database, &key.parent));
        if let Some(column) = own.chain(pointed).find(|name| !is_kept(name)) {
            return Err(over(key, column, old));
        }
    }
    Ok(())
}

/// An error if a key is over a column that is protected before or after, by the names of these, or
/// that gets another type. Told before anything is made.
pub(crate) fn must_not_be_over(
    keys: &[ForeignKey],
    table: &Facts,
    changed: &BTreeSet<String>,
) -> Result<()> {
    for key in keys {
        let is_ours =
            |database: &str, name: &str| same(database, name, &table.database, &table.table);
        let own = key
            .columns
            .iter()
            .filter(|_| is_ours(&key.database, &key.table));
        let pointed = key.parent_columns.iter();
        let pointed = pointed.filter(|_| is_ours(&key.parent_database, &key.parent));
        let is_changed = |name: &&String| changed.iter().any(|other| same_name(other, name));
        if let Some(column) = own.chain(pointed).find(is_changed) {
            return Err(over(key, column, table));
        }
    }
    Ok(())
}

fn over(key: &ForeignKey, column: &str, table: &Facts) -> MigrateError {
    MigrateError::Refused {
        table: format!("{}.{}", table.database, table.table),
        reason: format!(
            "the foreign key {} of {} is over the column {column}, which is protected or becomes another one: \
             drop it first, and add it again afterwards",
            key.name, key.table
        ),
    }
}

fn changes_rows(action: &str) -> bool {
    matches!(action, "CASCADE" | "SET NULL")
}

impl Job {
    /// The keys of a migration whose tables have these names.
    pub(crate) fn moves<'a>(
        &'a self,
        state: &'a State,
        names: &'a Names,
        family: Family,
    ) -> Moves<'a> {
        Moves {
            keys: &state.foreign_keys,
            database: &self.database,
            table: &self.table,
            new: &names.new,
            old: &names.old,
            id: &state.id,
            family,
        }
    }
}

impl Moves<'_> {
    /// Whether the table itself has the key.
    pub fn is_own(&self, key: &ForeignKey) -> bool {
        same(&key.database, &key.table, self.database, self.table)
    }

    /// Whether it points at the table.
    fn points_here(&self, key: &ForeignKey) -> bool {
        same(&key.parent_database, &key.parent, self.database, self.table)
    }

    /// Whether the server changes rows of the table by it.
    pub fn cascades(&self, key: &ForeignKey) -> bool {
        self.is_own(key) && (changes_rows(&key.on_delete) || changes_rows(&key.on_update))
    }

    /// The first key by which the server changes rows of the table.
    pub fn cascading(&self) -> Option<&ForeignKey> {
        self.keys.iter().find(|key| self.cascades(key))
    }

    /// The first key by which the server changes what tells rows of the table apart.
    pub fn changing_keys(&self) -> Option<&ForeignKey> {
        let mut own = self.keys.iter().filter(|key| self.is_own(key));
        own.find(|key| key.in_unique_key && changes_rows(&key.on_update))
    }

    /// A key's name until it has its own again.
    pub fn temporary(&self, at: usize) -> String {
        format!("{}_onionskin_f{at}", self.table)
    }

    /// The name of the key of the new table that follows another table's changes.
    pub fn following(&self, at: usize) -> String {
        format!("{}_onionskin_w{at}", self.table)
    }

    pub fn add(&self, key: &ForeignKey, name: &str, parent: &str) -> String {
        let list = |names: &[String]| {
            let quoted: Vec<String> = names.iter().map(|name| identifier(name)).collect();
            quoted.join(", ")
        };
        // What the server would not show is not written, because MariaDB then shows it.
        let unsaid = match self.family {
            Family::MySql => "NO ACTION",
            Family::MariaDb => "RESTRICT",
        };
        let action = |event: &str, action: &str| match action == unsaid {
            true => String::new(),
            false => format!(" ON {event} {action}"),
        };
        format!(
            "ADD CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {}.{} ({}){}{}",
            identifier(name),
            list(&key.columns),
            identifier(&key.parent_database),
            identifier(parent),
            list(&key.parent_columns),
            action("DELETE", &key.on_delete),
            action("UPDATE", &key.on_update),
        )
    }

    /// The key with which the new table follows another table's changes.
    pub fn add_following(&self, at: usize) -> String {
        let cascading = |action: &str| match changes_rows(action) {
            true => action.to_owned(),
            false => "CASCADE".to_owned(),
        };
        let key = &self.keys[at];
        let follower = ForeignKey {
            on_delete: cascading(&key.on_delete),
            // Rows are found by their keys, which must not change unnoticed.
            on_update: match key.in_unique_key {
                true => "RESTRICT".into(),
                false => cascading(&key.on_update),
            },
            ..key.clone()
        };
        self.add(&follower, &self.following(at), &key.parent)
    }

    pub fn alter(&self, database: &str, table: &str, parts: &[String]) -> String {
        format!(
            "{}ALTER TABLE {}.{} {}",
            mark(self.id),
            identifier(database),
            identifier(table),
            parts.join(", ")
        )
    }

    /// The tables that have the keys.
    pub fn owners(&self) -> BTreeSet<(&str, &str)> {
        let keys = self.keys.iter();
        keys.map(|key| (key.database.as_str(), key.table.as_str()))
            .collect()
    }

    /// The keys of other tables that point at this one, by their tables.
    fn children(&self) -> BTreeMap<(&str, &str), Vec<usize>> {
        let mut children: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for (at, key) in self.keys.iter().enumerate() {
            if !self.is_own(key) {
                let table = (key.database.as_str(), key.table.as_str());
                children.entry(table).or_default().push(at);
            }
        }
        children
    }

    /// The tables that point at this one and those that it points at, as they are written in a
    /// statement.
    pub fn neighbours(&self) -> [Vec<String>; 2] {
        let children = self.children();
        let parents: BTreeSet<(&str, &str)> = self
            .keys
            .iter()
            .filter(|key| !self.points_here(key))
            .map(|key| (key.parent_database.as_str(), key.parent.as_str()))
            .filter(|parent| !children.contains_key(parent))
            .collect();
        let name = |(database, table): (&str, &str)| {
            format!("{}.{}", identifier(database), identifier(table))
        };
        [
            children.into_keys().map(name).collect(),
            parents.into_iter().map(name).collect(),
        ]
    }

    /// Statements that hold the neighbours, each in a session of its own. InnoDB's locks on
    /// children count, which those who only read may have, too; parents are not to be written.
    pub fn holds(&self) -> Vec<String> {
        let [children, parents] = self.neighbours();
        let children = children
            .iter()
            .map(|name| format!("LOCK TABLES {name} WRITE"));
        let parents = parents
            .iter()
            .map(|name| format!("FLUSH TABLES {name} WITH READ LOCK"));
        children.chain(parents).collect()
    }

    /// An error if the account may not do under the lock what is to be done to the neighbours.
    pub fn must_be_permitted(&self, session: &mut Session) -> Result<()> {
        let why = "which its foreign keys need under the lock of the switch";
        for key in self.keys {
            let owner = (key.database.as_str(), key.table.as_str());
            let needed = ["SELECT", "ALTER", "LOCK TABLES"];
            privileges::must_have(session, &needed, owner, why)?;
            let parent = (key.parent_database.as_str(), key.parent.as_str());
            let needed = ["SELECT", "REFERENCES", "LOCK TABLES"];
            privileges::must_have(session, &needed, parent, why)?;
        }
        Ok(())
    }

    /// An error if a table that hangs together with this one by foreign keys is being migrated: the
    /// switch of one changes the definition of the other, which ends the other's migration, hours
    /// of copying later. Two that begin at the same moment may not see each other, and then one of
    /// them ends so.
    pub fn must_be_alone(&self, session: &mut Session) -> Result<()> {
        let names = self.keys.iter().flat_map(|key| {
            [
                (&key.database, &key.table),
                (&key.parent_database, &key.parent),
            ]
        });
        let names: BTreeSet<_> = names.collect();
        for (database, table) in names {
            if same_name(database, self.database) && same_name(table, self.table) {
                continue;
            }
            let checkpoint = Names::of(table).checkpoint;
            if is_in(session, database, &checkpoint)? {
                return Err(MigrateError::Refused {
                    table: format!("{}.{}", self.database, self.table),
                    reason: format!(
                        "{database}.{table}, with which it hangs together by a foreign key, is being migrated \
                         (there is a table {checkpoint}), and each of the two would end the other: let that one end first, \
                         or give it up with --abort"
                    ),
                });
            }
        }
        Ok(())
    }

    /// What has to be locked beside the two tables, each with the kind of its lock.
    pub fn locks(&self) -> Vec<String> {
        // MySQL wants to have the parent alone to add a key.
        let kind = match self.family {
            Family::MySql => "WRITE",
            Family::MariaDb => "READ",
        };
        let [children, parents] = self.neighbours();
        let children = children.iter().map(|name| format!("{name} WRITE"));
        let parents = parents.iter().map(|name| format!("{name} {kind}"));
        children.chain(parents).collect()
    }

    /// The keys with which the new table, empty as yet, follows what the server does to the rows of
    /// the old one.
    pub fn follow(&self, session: &mut Session) -> Result<()> {
        if self.keys.is_empty() {
            return Ok(());
        }
        self.make_explicit(session, self.database, self.new)?;
        if self.family == Family::MariaDb {
            // What the switch does to hold the neighbours, while nothing is lost by an error.
            let name = format!("{}.{}", identifier(self.database), identifier(self.new));
            let flush = format!("FLUSH TABLES {name} WITH READ LOCK");
            let doing = MigrateError::sql("holding a table, which needs the privilege RELOAD");
            session.run(&flush).map_err(doing)?;
            session
                .run("UNLOCK TABLES")
                .map_err(MigrateError::sql("giving a table back"))?;
        }
        let parts: Vec<String> = (0..self.keys.len())
            .filter(|&at| self.cascades(&self.keys[at]))
            .map(|at| self.add_following(at))
            .collect();
        if !parts.is_empty() {
            session
                .run(&self.alter(self.database, self.new, &parts))
                .map_err(MigrateError::sql("adding foreign keys to the new table"))?;
        }
        Ok(())
    }

    /// What is done under the lock, see the module.
    pub fn statements(&self) -> Vec<String> {
        let drop = |name: &str| format!("DROP FOREIGN KEY {}", identifier(name));
        let in_place = |parts: Vec<String>| {
            let in_place = "ALGORITHM=INPLACE".to_owned();
            parts.into_iter().chain([in_place]).collect::<Vec<_>>()
        };
        let mut statements = Vec::new();
        for ((database, table), keys) in self.children() {
            let (mut moved, mut named) = (Vec::new(), Vec::new());
            for at in keys {
                let (key, temporary) = (&self.keys[at], self.temporary(at));
                moved.push(drop(&key.name));
                moved.push(self.add(key, &temporary, self.new));
                named.push(drop(&temporary));
                named.push(self.add(key, &key.name, self.new));
            }
            for parts in [moved, named] {
                statements.push(self.alter(database, table, &in_place(parts)));
            }
        }
        let (mut dropped, mut added) = (Vec::new(), Vec::new());
        for (at, key) in self.keys.iter().enumerate() {
            if !self.is_own(key) {
                continue;
            }
            let parent = match self.points_here(key) {
                true => self.new,
                false => &key.parent,
            };
            dropped.push(drop(&key.name));
            if self.cascades(key) {
                added.push(drop(&self.following(at)));
            }
            added.push(self.add(key, &key.name, parent));
        }
        if !dropped.is_empty() {
            statements.push(self.alter(self.database, self.table, &in_place(dropped)));
            statements.push(self.alter(self.database, self.new, &in_place(added)));
        }
        statements
    }

    /// Does it. After an error [`Self::settle`] undoes what was done.
    pub fn bind(&self, locker: &mut Session) -> std::result::Result<(), SqlError> {
        unchecked(locker, |locker| {
            for sql in self.statements() {
                locker.run(&sql)?;
            }
            Ok(())
        })
    }

    /// An error unless the keys point at the table that were noted, and those of the new table.
    pub fn must_be_all(&self, session: &mut Session) -> Result<()> {
        let mut there = pointing_at(session, self.database, self.table)?;
        let here = self.keys.iter().enumerate();
        let expected = here
            .filter(|(_, key)| self.points_here(key))
            .flat_map(|(at, key)| {
                let follower = self.cascades(key).then(|| self.following(at));
                [Some(key.name.clone()), follower]
            });
        let mut all = true;
        for name in expected.flatten() {
            match there.iter().position(|there| same_name(&name, there)) {
                Some(at) => drop(there.swap_remove(at)),
                None => all = false,
            }
        }
        match all && there.is_empty() {
            true => Ok(()),
            false => Err(MigrateError::Changed(
                "other foreign keys point at it".into(),
            )),
        }
    }

    /// Makes indexes that may be the server's own, made for a key, such that stay with the key's
    /// change. `session` may hold no lock.
    pub fn make_all_explicit(&self, session: &mut Session) -> Result<()> {
        for (database, table) in self.owners() {
            self.make_explicit(session, database, table)?;
        }
        Ok(())
    }

    fn make_explicit(&self, session: &mut Session, database: &str, table: &str) -> Result<()> {
        let doing = MigrateError::sql("renaming an index of a foreign key");
        // The new table's keys are those of the table.
        let of_table = match same(database, table, self.database, self.new) {
            true => self.table,
            false => table,
        };
        let keys: Vec<&ForeignKey> = self
            .keys
            .iter()
            .filter(|key| same(&key.database, &key.table, database, of_table))
            .collect();
        let names: Vec<String> = indexes(session, database, table)?
            .into_iter()
            .filter(|(_, columns)| keys.iter().any(|key| is_same_list(&key.columns, columns)))
            .map(|(name, _)| name)
            .filter(|name| name.chars().count() + RENAMED.len() <= LONGEST)
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        let renaming = |from: &str, to: &str| {
            let renames: Vec<String> = names
                .iter()
                .map(|name| {
                    let [from, to] = [from, to].map(|end| identifier(&format!("{name}{end}")));
                    format!("RENAME INDEX {from} TO {to}")
                })
                .collect();
            self.alter(database, table, &renames)
        };
        // Under a lock nobody sees the other name.
        let name = format!("{}.{}", identifier(database), identifier(table));
        session
            .run(&format!("LOCK TABLES {name} WRITE"))
            .map_err(&doing)?;
        let mut renamed = session.run(&renaming("", RENAMED));
        if renamed.is_ok() {
            renamed = session.run(&renaming(RENAMED, ""));
        }
        session.run("UNLOCK TABLES").map_err(&doing)?;
        if let Err(error) = renamed {
            // A wait that was given up may have cost the lock, too.
            self.rename_indexes_back(session)?;
            return Err(doing(error));
        }
        Ok(())
    }
}

/// Runs it without `foreign_key_checks`: definitions are changed without a look at the rows.
pub(crate) fn unchecked<T>(
    session: &mut Session,
    run: impl FnOnce(&mut Session) -> std::result::Result<T, SqlError>,
) -> std::result::Result<T, SqlError> {
    session.run("SET foreign_key_checks = 0")?;
    let done = run(session);
    // Where the connection is gone, there is no setting, either.
    let restored = session.run("SET foreign_key_checks = 1");
    let done = done?;
    restored?;
    Ok(done)
}

fn is_same_list(one: &[String], other: &[String]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| same_name(a, b))
}
