//! Brings foreign keys back to where they belong, after a kill or an attempt that failed.

use std::collections::BTreeMap;

use onionskin_rowstream::checkpoint::ForeignKey;
use onionskin_rowstream::session::Session;
use onionskin_schema::{identifier, same_name};

use crate::error::{MigrateError, Result};
use crate::foreign_catalog::{exists, indexes, orphans, same, visible};
use crate::foreign_keys::{Moment, Moves, RENAMED, unchecked};

/// Parts of ALTER TABLE, by their tables.
#[derive(Default)]
struct Alterations(BTreeMap<(String, String), Vec<String>>);

impl Alterations {
    fn add(&mut self, database: &str, table: &str, parts: Vec<String>) {
        if !parts.is_empty() {
            let table = (database.to_owned(), table.to_owned());
            self.0.entry(table).or_default().extend(parts);
        }
    }
}

/// What is not where it belongs.
#[derive(Default)]
struct Mending {
    /// What makes names free.
    first: Alterations,
    then: Alterations,
    /// Keys that their tables do not have at all, under any name.
    missing: Vec<usize>,
}

impl Moves<'_> {
    /// Brings all keys to where they belong. Returns what has to be told: how many rows of the
    /// table have no counterpart, where a kill has left it without a key. `session` may hold no
    /// lock.
    pub fn settle(&self, session: &mut Session, moment: Moment) -> Result<Vec<String>> {
        if self.keys.is_empty() {
            return Ok(Vec::new());
        }
        self.rename_indexes_back(session)?;
        let work = self.misplaced(session, moment)?;
        if work.first.0.is_empty() && work.then.0.is_empty() {
            return Ok(Vec::new());
        }
        // Nobody is to write between two of the statements.
        let doing = || MigrateError::sql("locking tables to give foreign keys back");
        let mut locks = Vec::new();
        for table in [self.table, self.new, self.old] {
            if exists(session, self.database, table)? {
                let name = format!("{}.{}", identifier(self.database), identifier(table));
                locks.push(format!("{name} WRITE"));
            }
        }
        locks.extend(self.locks());
        session
            .run_until_done(&format!("LOCK TABLES {}", locks.join(", ")))
            .map_err(doing())?;
        let missing = self.mend(session, moment);
        session.run("UNLOCK TABLES").map_err(doing())?;
        let mut told = Vec::new();
        for key in missing? {
            told.extend(orphans(session, key)?);
        }
        Ok(told)
    }

    /// The same in a session that holds the locks. Returns the keys that were missing.
    pub fn mend(&self, session: &mut Session, moment: Moment) -> Result<Vec<&ForeignKey>> {
        let work = self.misplaced(session, moment)?;
        unchecked(session, |session| {
            for ((database, table), parts) in work.first.0.iter().chain(&work.then.0) {
                session.run_until_done(&self.alter(database, table, parts))?;
            }
            Ok(())
        })
        .map_err(MigrateError::sql("giving foreign keys back"))?;
        Ok(work.missing.iter().map(|&at| &self.keys[at]).collect())
    }

    /// What is not where it belongs.
    fn misplaced(&self, session: &mut Session, moment: Moment) -> Result<Mending> {
        let other = match moment {
            Moment::Before => self.new,
            Moment::After => self.old,
        };
        let follows = moment == Moment::Before && exists(session, self.database, other)?;
        let mut there = visible(session, self.database, self.table)?;
        there.extend(visible(session, self.database, other)?);
        let mut mending = Mending::default();
        for (at, key) in self.keys.iter().enumerate() {
            let found = |table: &str, name: &str| {
                there.iter().find(|found| {
                    same(&found.database, &found.table, &key.database, table)
                        && same_name(&found.name, name)
                })
            };
            let drop = |name: &str| format!("DROP FOREIGN KEY {}", identifier(name));
            let add = |name: &str| self.add(key, name, &key.parent);
            let (temporary, following) = (self.temporary(at), self.following(at));
            let is_left = found(&key.table, &temporary).is_some();
            let (mut first, mut then) = (Vec::new(), Vec::new());
            match found(&key.table, &key.name) {
                Some(found) if same_name(&found.parent, &key.parent) => {
                    then.extend(is_left.then(|| drop(&temporary)));
                }
                Some(_) => {
                    first.push(drop(&key.name));
                    first.extend((!is_left).then(|| add(&temporary)));
                    then.extend([drop(&temporary), add(&key.name)]);
                }
                None => {
                    then.extend(is_left.then(|| drop(&temporary)));
                    then.push(add(&key.name));
                    mending.missing.extend((!is_left).then_some(at));
                }
            }
            then.extend(found(&key.table, &following).map(|_| drop(&following)));
            mending.first.add(&key.database, &key.table, first);
            mending.then.add(&key.database, &key.table, then);
            if self.is_own(key) {
                let mut beside = Vec::new();
                beside.extend(found(other, &key.name).map(|_| drop(&key.name)));
                match (found(other, &following), follows && self.cascades(key)) {
                    (Some(_), false) => beside.push(drop(&following)),
                    (None, true) => beside.push(self.add_following(at)),
                    _ => {}
                }
                mending.first.add(&key.database, other, beside);
            }
        }
        Ok(mending)
    }

    /// After a kill in the midst of it.
    pub fn rename_indexes_back(&self, session: &mut Session) -> Result<()> {
        for (database, table) in self.owners() {
            let renames: Vec<String> = indexes(session, database, table)?
                .into_iter()
                .filter_map(|(name, _)| {
                    let before = name.strip_suffix(RENAMED)?;
                    Some(format!(
                        "RENAME INDEX {} TO {}",
                        identifier(&name),
                        identifier(before)
                    ))
                })
                .collect();
            if !renames.is_empty() {
                session
                    .run_until_done(&self.alter(database, table, &renames))
                    .map_err(MigrateError::sql("renaming an index of a foreign key"))?;
            }
        }
        Ok(())
    }
}
