//! How old what is known of the schema may be, and the one look-up that renews it.
//!
//! Whatever is planned rests on three things: which databases there are, which tables each of them
//! has, and what the tables look like that the statement names. Each has an
//! [`Age`](crate::age::Age). A plan is used while none of its ages is more than a second, be it one
//! that relays. Then everything that the account has used of late is looked up again with one
//! statement, by the first session that needs it; the others wait for it, and not for long: after a
//! second each of them looks for itself.
//!
//! No word of a statement is sent for that. The names of all tables are asked for, and compared
//! here with the words; only what is the name of a table is then asked about by name. Asking for
//! all sealed columns at once would be simpler, but it costs both servers a tenth of a millisecond
//! for each table of the database, and MariaDB waits there for every table that a definition has
//! locked. Names alone cost a tenth of that, and wait for nobody.
//!
//! | file | holds |
//! |---|---|
//! | `lists` | the names that there are |
//! | `turns` | who looks up for the others |
//! | `question`, `answer` | the one look-up, and what it says of the tables that are known |
//! | `confirm`, `definitions` | the same within a transaction that sees the past |

mod answer;
mod confirm;
mod definitions;
mod lists;
mod question;
mod turns;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use onionskin_keys::KeySet;
use onionskin_plan::COLLATION;
use onionskin_schema::{Column, Table, TableName};
use onionskin_value::Family;

use crate::age::{RECHECK, now};
use crate::catalog::{Account, KeyedPlan, LookUp};
use crate::error::{Failure, Outcome};
use crate::exchange::{Rows, Server};
use answer::{Answer, Found};
use lists::Names;
use question::{Wanted, names_of, question};

pub(crate) use definitions::is_shown;
pub(crate) use lists::{DATABASES, Lists, fold};
pub(crate) use turns::Turns;

/// A renewal that asks for more names than these takes tens of milliseconds at the server.
const AT_ONCE: usize = 5_000;
/// A table in use takes the server as long as so many names in a list.
const TABLE_WEIGHS: usize = 20;

/// When something was asked: what is found is no newer, and is not taken over in another epoch.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub began: u64,
    pub epoch: u64,
}

impl Moment {
    /// Now.
    pub fn of(account: &Account) -> Moment {
        Moment {
            epoch: account.epoch(),
            began: now(),
        }
    }

    /// When a question is asked, of those that began at this moment. Where the server answers all
    /// of them as it would have answered the first, that is the moment of each.
    pub fn of_question(self, account: &Account, server: &Server) -> Moment {
        match server.questions_share_a_past() {
            true => self,
            false => Moment::of(account),
        }
    }
}

impl Account {
    /// Whether something that the plan rests on is more than a second old. Marks it as used.
    #[inline]
    pub fn is_due(&self, keyed: &KeyedPlan) -> bool {
        if keyed.basis.is_empty() {
            return false;
        }
        let now = now();
        let mut due = false;
        for age in &keyed.basis {
            age.touch(now);
            due |= age.is_old(now, u64::MAX);
        }
        due
    }

    /// Whether something that the plan rests on is too old for what began then.
    fn is_older(keyed: &KeyedPlan, came: u64) -> bool {
        let now = now();
        keyed.basis.iter().any(|age| age.is_old(now, came))
    }

    /// Sees to it that nothing the plan rests on is too old. The generation tells whether anything
    /// is different.
    pub fn renew_for(
        &self,
        server: &mut Server,
        keys: &KeySet,
        family: Family,
        keyed: &KeyedPlan,
    ) -> Outcome<()> {
        if server.sees_the_past() {
            return self.confirm(server, keys, keyed, RECHECK);
        }
        let came = now();
        for age in &keyed.basis {
            age.touch(came);
        }
        while Self::is_older(keyed, came) {
            let waited = now().saturating_sub(came);
            let turn = self
                .turns
                .take(Duration::from_millis(RECHECK.saturating_sub(waited)));
            // one who waits in vain for a server that does not answer another session asks its own
            if turn.is_some() || now().saturating_sub(came) >= RECHECK {
                self.renew(server, keys, family, &keyed.plan.names)?;
                break;
            }
        }
        if Self::is_older(keyed, came) && keyed.generation == self.generation() {
            // what the renewal left out, because a definition has it locked
            self.look_up(server, keys, &keyed.plan.names)?;
            if Self::is_older(keyed, came) && keyed.generation == self.generation() {
                tracing::debug!(names = ?keyed.plan.names, "a look-up has renewed too little");
                return Err(Failure::Stale);
            }
        }
        Ok(())
    }

    /// Looks up what the account has used of late, with one statement; these names among it.
    fn renew(
        &self,
        server: &mut Server,
        keys: &KeySet,
        family: Family,
        names: &[TableName],
    ) -> Outcome<()> {
        let epoch = self.epoch();
        let began = now();
        let wanted = self.wanted(began, names);
        let heard = (server.untold, server.told_state);
        let (rows, warnings) = server.rows_and_warnings(&question(&wanted, family))?;
        // MariaDB tells of the setting that the question has for itself
        (server.untold, server.told_state) = heard;
        let is_list = |row: &Vec<Option<Vec<u8>>>| {
            row.get(2)
                .and_then(Option::as_deref)
                .unwrap_or_default()
                .is_empty()
        };
        let (lists, details): (Rows, Rows) = rows.into_iter().partition(is_list);
        let lists = names_of(lists, &wanted.lists)?;
        let mut changed = self.put_lists(lists, began, epoch);
        let answer = Answer::read(server, keys, &wanted, &self.masks, details, warnings == 0)?;
        changed |= self.refresh_pins(keys);
        let look = LookUp {
            began,
            epoch,
            current: None,
        };
        let Some(views) = self.take_over(&answer, &look, changed) else {
            return Ok(());
        };
        if !views.is_empty() {
            self.look_up_tables(server, keys, &views, &look)?;
        }
        Ok(())
    }

    /// Forgets tables that have become others, and tells the views, which have to be looked up once
    /// more. `changed`: something else is different already. `None`: names were forgotten
    /// meanwhile.
    fn take_over(
        &self,
        answer: &Answer,
        look: &LookUp,
        mut changed: bool,
    ) -> Option<Vec<TableName>> {
        let mut views = Vec::new();
        let mut known = self.tables.write();
        if self.epoch() != look.epoch {
            return None;
        }
        known.retain(|key, entry| {
            let Some(table) = entry.table.as_deref() else {
                return true;
            };
            if key.name.starts_with(COLLATION) {
                return true;
            }
            match answer.of(table) {
                Found::NotAsked | Found::Unclear => {}
                // one that a wildcard leaves in plaintext may be a view, or lose a foreign key
                Found::Same if self.rests_on_references(table) => views.push(key.clone()),
                Found::Same => entry.age.renew(look.began),
                Found::View => views.push(key.clone()),
                Found::Different => {
                    changed = true;
                    return false;
                }
            }
            true
        });
        if changed {
            self.new_generation();
        }
        Some(views)
    }

    /// Whether nothing but foreign keys, or what a view shows, makes a table what an enforced
    /// wildcard wants.
    fn rests_on_references(&self, table: &Table) -> bool {
        let refers = |column: &Column| column.refers_to_plaintext;
        !table.is_protected()
            && table.columns.iter().any(refers)
            && self.rules.policy.enforces_in(&table.database, &table.name)
    }

    /// What the account has used of late. If that is much, of it what is in the databases of these
    /// names: no statement waits for the tables of a hundred databases that it does not name.
    fn wanted(&self, now: u64, names: &[TableName]) -> Wanted {
        let lists = self.lists.read();
        let tables = self.tables.read();
        let used = |(name, list): &(&String, &Names)| !name.is_empty() && list.age.is_used(now);
        let used: Vec<_> = lists.iter().filter(used).collect();
        let used_tables = || {
            let real = tables
                .iter()
                .filter(|(key, entry)| entry.age.is_used(now) && !key.name.starts_with(COLLATION));
            real.filter_map(|(_, entry)| Some((entry, entry.table.as_deref()?)))
        };
        let names_in_all: usize = used.iter().map(|(_, list)| list.real.len()).sum();
        let is_much = names_in_all + TABLE_WEIGHS * used_tables().count() > AT_ONCE;
        let databases = names
            .iter()
            .flat_map(|name| lists.databases(&name.database));
        let as_written = names.iter().map(|name| &name.database);
        let here: HashSet<&String> = databases.flatten().chain(as_written).collect();
        let is_wanted = |database: &String| !is_much || here.contains(database);

        let used = used.into_iter().map(|(name, _)| name);
        let mut wanted = Wanted::lists(used.filter(|name| is_wanted(name)).cloned().collect());
        for (entry, table) in used_tables().filter(|(_, table)| is_wanted(&table.database)) {
            // the scratch engine gets plain tables as they are known here
            let is_enforced = self.rules.policy.enforces_in(&table.database, &table.name);
            let kind = match table.is_protected() || entry.is_whole() || is_enforced {
                true => &mut wanted.whole,
                false => &mut wanted.others,
            };
            let names = kind.entry(table.database.clone()).or_default();
            names.insert(table.name.clone());
        }
        wanted
    }

    /// Reads the lists of names that tell about these names, all of them or those that are not
    /// known yet.
    pub fn renew_lists(
        &self,
        server: &mut Server,
        names: &[TableName],
        all: bool,
    ) -> Outcome<bool> {
        let mut changed = false;
        let moment = Moment::of(self);
        // which databases there are has to be known before one is asked about
        for _ in 0..2 {
            let Moment { epoch, began } = moment.of_question(self, server);
            let (wanted, is_known) = {
                let lists = self.lists.read();
                let asked: HashSet<&str> = names.iter().map(|n| n.database.as_str()).collect();
                let is_wanted = |name: &&String| {
                    all || lists
                        .get(name)
                        .is_none_or(|l| l.age.is_old(began, u64::MAX))
                };
                let real = asked
                    .iter()
                    .flat_map(|d| lists.databases(d).unwrap_or_default());
                let wanted: HashSet<String> = real.filter(is_wanted).cloned().collect();
                let databases = lists.get(DATABASES);
                let is_new = databases.is_some_and(|l| !l.age.is_old(began, u64::MAX) && !all);
                (wanted, databases.is_some().then_some(is_new))
            };
            if is_known == Some(true) && wanted.is_empty() {
                break;
            }
            let wanted = Wanted::lists(wanted.into_iter().collect());
            let rows = server.rows(question(&wanted, Family::MySql).as_bytes())?;
            let lists = names_of(rows, &wanted.lists)?;
            changed |= self.put_lists(lists, began, epoch);
            if is_known.is_some() {
                // of a database that is new, the list is not there yet
                let lists = self.lists.read();
                let is_missing = |table: &TableName| {
                    let real = lists.databases(&table.database).unwrap_or_default();
                    real.iter().any(|name| lists.get(name).is_none())
                };
                if !names.iter().any(is_missing) {
                    break;
                }
            }
        }
        Ok(changed)
    }

    /// Takes over lists that were read. What is known of names that have come or gone is forgotten.
    fn put_lists(&self, read: Vec<(String, Vec<String>)>, began: u64, epoch: u64) -> bool {
        let mut lists = self.lists.write();
        if self.epoch() != epoch {
            return true;
        }
        let mut changed: HashMap<String, HashSet<String>> = HashMap::new();
        let mut databases = HashSet::new();
        for (of, names) in read {
            let differs = lists.put(&of, names, began);
            match of.as_str() {
                DATABASES => databases = differs,
                _ if differs.is_empty() => {}
                _ => changed.entry(fold(&of)).or_default().extend(differs),
            }
        }
        if databases.is_empty() && changed.is_empty() {
            return false;
        }
        if !databases.is_empty() {
            lists.forget(&databases);
        }
        let mut tables = self.tables.write();
        let before = tables.len();
        tables.retain(|table, _| {
            let database = fold(&table.database);
            let is_changed = || {
                changed
                    .get(&database)
                    .is_some_and(|c| c.contains(&fold(&table.name)))
            };
            !databases.contains(&database) && !is_changed()
        });
        let differs = tables.len() != before || !databases.is_empty();
        if differs {
            tracing::debug!(?databases, ?changed, began, epoch, "other names are listed");
            self.new_generation();
        }
        differs
    }
}

#[cfg(test)]
mod tests;
