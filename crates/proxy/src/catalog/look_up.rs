//! Looking tables up at the server.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use onionskin_keys::KeySet;
use onionskin_plan::{COLLATION, errors};
use onionskin_schema::{Table, TableName, catalog_query, mark_references, same_name};

use super::names::{is_virtual, literal, spellings};
use super::rows::{hidden, is_locked, tables};
use super::views::{base, broken_views};
use super::{Account, Entry};
use crate::age::now;
use crate::error::{Failure, Outcome};
use crate::exchange::{Definition, Rows, Server};
use crate::mask::settle_indexes;
use crate::parts::settle_parts;
use crate::renewal::{DATABASES, Moment, is_shown};

/// As often, and after such a time each, a table is looked up again that a definition has locked.
const LOCKED: (u32, Duration) = (50, Duration::from_millis(100));

/// When a look-up began, and what it is held against.
pub(crate) struct LookUp<'a> {
    pub began: u64,
    /// The account's epoch at that time. What is found in another one is not taken over.
    pub epoch: u64,
    /// The definitions as they are now, where look-ups show older ones: what differs from them is
    /// not taken over.
    pub current: Option<&'a HashMap<TableName, Definition>>,
}

/// What the lists of names say of names.
#[derive(Default)]
struct Listed {
    /// Tables that have to be looked up.
    real: Vec<TableName>,
    absent: Vec<TableName>,
    /// Another session has made the lists unknown again.
    is_unclear: bool,
}

/// What was found in one database.
struct Found<'n> {
    tables: Vec<Table>,
    /// The server has warned of nothing.
    is_whole: bool,
    /// Default collations by names that ask for them.
    collations: HashMap<&'n str, Table>,
    /// What is listed, and is no longer there.
    dropped: Vec<String>,
}

impl Account {
    /// Looks names up at the server, all of them. Returns whether anything is different from
    /// before.
    pub fn look_up(
        &self,
        server: &mut Server,
        keys: &KeySet,
        names: &[TableName],
    ) -> Outcome<bool> {
        self.read_names(server, keys, names, true)
    }

    /// Looks up what is not known of these names.
    pub fn learn(&self, server: &mut Server, keys: &KeySet, names: &[TableName]) -> Outcome<bool> {
        self.read_names(server, keys, names, false)
    }

    /// Words that are no tables stay here: those that are are found in the lists of names.
    fn read_names(
        &self,
        server: &mut Server,
        keys: &KeySet,
        names: &[TableName],
        all: bool,
    ) -> Outcome<bool> {
        let mut changed = self.make_room();
        changed |= self.refresh_pins(keys);
        let moment = Moment::of(self);
        let past = match server.sees_the_past() {
            // of the present, and nothing is asked
            true if !all && self.lists_answer(names) => None,
            true => Some(self.tables_of_the_past(server, names)?),
            false => {
                changed |= self.renew_lists(server, names, all)?;
                None
            }
        };
        let Moment { began, epoch } = moment.of_question(self, server);
        let listed = self.listed(names, all, past.as_ref());
        changed |= listed.is_unclear;
        // whether there is one by now, a transaction that sees the past cannot tell
        let checked = if past.is_some() { 0 } else { began };
        changed |= self.know_absent(listed.absent, checked, epoch);
        let current = match past {
            Some(_) => Some(self.current_definitions(server, &listed.real)?),
            None => None,
        };
        let look = LookUp {
            began,
            epoch,
            current: current.as_ref(),
        };
        changed |= self.look_up_tables(server, keys, &listed.real, &look)?;
        if changed {
            self.new_generation();
        }
        Ok(changed)
    }

    /// Whether what is known of these names is whole and new: they have not to be asked about.
    pub fn lists_answer(&self, names: &[TableName]) -> bool {
        let began = now();
        let lists = self.lists.read();
        let is_new = |of: &str| {
            let list = lists.get(of);
            list.is_some_and(|list| !list.age.is_old(began, u64::MAX))
        };
        let are_new = |name: &TableName| {
            let databases = lists.databases(&name.database);
            databases.is_some_and(|all| all.iter().all(|of| is_new(of)))
        };
        let answer = is_new(DATABASES) && names.iter().all(are_new);
        drop(lists);
        if !answer {
            return false;
        }
        let listed = self.listed(names, false, None);
        listed.real.is_empty() && !listed.is_unclear
    }

    /// Sorts names by what the lists say of them, or the tables that a transaction sees in the
    /// past. Not `all`: those that are known already are left out.
    fn listed(&self, names: &[TableName], all: bool, past: Option<&HashSet<TableName>>) -> Listed {
        let lists = self.lists.read();
        let tables = self.tables.read();
        let mut listed = Listed::default();
        for name in names {
            let database = &name.database;
            let is_there = match name.name.strip_prefix(COLLATION) {
                _ if let Some(past) = past => Some(past.contains(name)),
                None => lists.has(database, &name.name),
                Some("") => lists.has_database(database),
                Some(table) => lists.has(database, table),
            };
            match is_there {
                Some(true) if all || !tables.contains_key(name) => listed.real.push(name.clone()),
                Some(true) => {}
                Some(false) => listed.absent.push(name.clone()),
                None => listed.is_unclear = true,
            }
        }
        listed
    }

    /// Takes names for those of no tables. Returns whether one was known as a table's, or names
    /// were forgotten meanwhile.
    fn know_absent(&self, names: Vec<TableName>, checked: u64, epoch: u64) -> bool {
        let mut changed = false;
        let mut tables = self.tables.write();
        if self.epoch() != epoch {
            return true;
        }
        for name in names {
            match tables.get(&name) {
                Some(known) if known.table.is_none() => {}
                // somebody has found it there since
                Some(known) if known.age.is_newer_than(checked) => changed = true,
                Some(_) => {
                    tracing::debug!(%name, "a table is no longer listed");
                    changed = true;
                    tables.insert(name, Entry::new(None, checked));
                }
                None => {
                    tables.insert(name, Entry::new(None, checked));
                }
            }
        }
        changed
    }

    /// The definitions of tables as they are now, for a transaction that sees the past.
    fn current_definitions(
        &self,
        server: &mut Server,
        names: &[TableName],
    ) -> Outcome<HashMap<TableName, Definition>> {
        let tables = names.iter().filter(|name| self.can_be_confirmed(name));
        let tables: Vec<_> = tables.cloned().collect();
        let shown = server.present_definitions(&tables)?;
        Ok(tables.into_iter().zip(shown).collect())
    }

    /// Looks up tables by their names. Returns whether anything is different from before.
    ///
    /// Each name is asked for as it stands and in lower case, because `lower_case_table_names`
    /// decides which of them the server means: a table in exactly these letters comes first, any
    /// other that differs in case alone counts as well. So a table may be taken for a protected one
    /// whose name it nearly has, and never the other way round.
    pub fn look_up_tables(
        &self,
        server: &mut Server,
        keys: &KeySet,
        names: &[TableName],
        look: &LookUp<'_>,
    ) -> Outcome<bool> {
        let mut by_database: HashMap<&str, Vec<&str>> = HashMap::new();
        let mut changed = false;
        for TableName { database, name } in names {
            by_database.entry(database).or_default().push(name);
        }
        for (database, names) in by_database {
            let mut found = look_into(server, keys, database, &names)?;
            if look.current.is_none() {
                self.look_again(server, keys, &mut found, database, &names)?;
            }
            for table in &mut found.tables {
                let tag = |bytes: &[u8]| keys.metadata_key().tag(bytes);
                mark_references(&self.rules.policy, table, |sql| texts(server, sql), tag)?;
            }
            settle_indexes(server, found.tables.iter_mut(), &self.masks)?;
            match self.take_found(database, &names, found, look)? {
                Some(differs) => changed |= differs,
                None => return Ok(true),
            }
        }
        if changed {
            self.new_generation();
        }
        Ok(changed)
    }

    /// A table that is listed and shows no columns is hidden from the account, or was dropped
    /// after the list was read. The server knows which; a table that was made again meanwhile is
    /// looked up once more.
    fn look_again<'n>(
        &self,
        server: &mut Server,
        keys: &KeySet,
        found: &mut Found<'n>,
        database: &str,
        names: &[&'n str],
    ) -> Outcome<()> {
        let missing: Vec<&str> = {
            let lists = self.lists.read();
            let is_listed = |name: &str| lists.has(database, name) == Some(true);
            let names = names.iter().copied();
            names
                .filter(|name| found.lacks(database, name) && is_listed(name))
                .collect()
        };
        if missing.is_empty() {
            return Ok(());
        }
        let asked: Vec<_> = missing
            .iter()
            .map(|n| TableName::new(database, *n))
            .collect();
        let mut shown = Vec::new();
        for (name, definition) in missing.iter().zip(server.definitions(&asked)?) {
            match definition {
                // nobody writes to what is hidden
                Definition::Hidden | Definition::Columns(_) | Definition::Unsaid(_) => {}
                Definition::Absent => found.dropped.push((*name).to_owned()),
                Definition::Table(_) | Definition::View(..) => shown.push(*name),
            }
        }
        if !shown.is_empty() {
            let (mut these, warned) = look_at(server, keys, database, &shown)?;
            found.tables.append(&mut these);
            found.is_whole &= !warned;
        }
        Ok(())
    }

    /// Takes over what was found in a database. Returns whether anything is different from before;
    /// `None` if names were forgotten meanwhile.
    fn take_found(
        &self,
        database: &str,
        names: &[&str],
        mut found: Found<'_>,
        look: &LookUp<'_>,
    ) -> Outcome<Option<bool>> {
        let mut changed = false;
        let lists = self.lists.read();
        let mut tables = self.tables.write();
        if self.epoch() != look.epoch {
            return Ok(None);
        }
        for name in names.iter().copied() {
            let key = TableName::new(database, name);
            let shown = look.current.and_then(|current| current.get(&key));
            let is_there = || match shown {
                Some(shown) => matches!(shown, Definition::Hidden),
                None => lists.has(database, name) == Some(true),
            };
            // A table that has nearly this name is not it where the server knows of none.
            let is_spelled = |table: &Table| table.name == name && table.database == database;
            let is_absent = matches!(shown, Some(Definition::Absent));
            let table = found.table(database, name, is_there);
            let table = table.filter(|table| !is_absent || is_spelled(table));
            if shown.is_some_and(|shown| !is_shown(table.as_ref(), shown)) {
                let about = key.to_string();
                return Err(Failure::refused(&errors::SNAPSHOT, about));
            }
            if let Some(entry) = tables.get(&key) {
                if entry.table.as_deref() == table.as_ref() {
                    entry.age.renew(look.began);
                    continue;
                }
                // what somebody has found since holds
                if entry.age.is_newer_than(look.began) {
                    changed = true;
                    continue;
                }
            }
            let entry = self.entry(table, look.began);
            changed |= tables.insert(key, entry).is_some();
        }
        Ok(Some(changed))
    }
}

/// The rows that the server answers a query with.
pub(crate) fn texts(server: &mut Server, sql: &str) -> Outcome<Vec<Vec<Option<String>>>> {
    let text = |cell: Vec<u8>| String::from_utf8_lossy(&cell).into_owned();
    let rows = server.rows(sql.as_bytes())?.into_iter();
    Ok(rows
        .map(|row| row.into_iter().map(|cell| cell.map(text)).collect())
        .collect())
}

/// Asks for what a database has under these names.
fn look_into<'n>(
    server: &mut Server,
    keys: &KeySet,
    database: &str,
    names: &[&'n str],
) -> Outcome<Found<'n>> {
    let mut found = Found {
        tables: Vec::new(),
        is_whole: true,
        collations: HashMap::new(),
        dropped: Vec::new(),
    };
    let (collations, real): (Vec<&str>, Vec<&str>) =
        names.iter().partition(|n| n.starts_with(COLLATION));
    for (database, real) in spellings(database, &real) {
        let real: Vec<&str> = real.iter().map(|n| &**n).collect();
        let (mut these, warned) = look_at(server, keys, &database, &real)?;
        found.tables.append(&mut these);
        found.is_whole &= !warned;
    }
    for name in collations {
        if let Some(table) = default_collation(server, database, name)? {
            found.collations.insert(name, table);
        }
    }
    Ok(found)
}

/// The tables of a database that have one of these names, and whether the server warned of
/// others. While a definition has one of them locked, a transaction is not told of it.
fn look_at(
    server: &mut Server,
    keys: &KeySet,
    database: &str,
    names: &[&str],
) -> Outcome<(Vec<Table>, bool)> {
    for _ in 0..LOCKED.0 {
        let (rows, warnings) = server.rows_and_warnings(&catalog_query(database, names))?;
        let warned = warnings > 0;
        let mut these = tables(&rows, keys)?;
        if warned {
            let shown = server.rows(b"SHOW WARNINGS")?;
            // with max_error_count = 0 the server counts what it does not show
            if shown.is_empty() || is_locked(&shown) {
                std::thread::sleep(LOCKED.1);
                continue;
            }
            let missing = |n: &&str| !these.iter().any(|t| t.name == **n);
            let missing: Vec<&str> = names.iter().copied().filter(missing).collect();
            these.extend(broken_views(server, database, &missing)?);
        }
        settle_parts(server, these.iter_mut())?;
        for view in these.iter_mut().filter(|t| t.view && t.damaged.is_none()) {
            view.base = base(server, keys, view, &rows)?;
        }
        return Ok((these, warned));
    }
    tracing::debug!(database, ?names, "a definition keeps tables locked");
    Err(Failure::Stale)
}

impl Found<'_> {
    /// Whether nothing was found under a name, and the server has warned of nothing.
    fn lacks(&self, database: &str, name: &str) -> bool {
        let is_found = |t: &Table| same_name(&t.name, name);
        let is_table = !name.starts_with(COLLATION) && !is_virtual(database);
        self.is_whole && is_table && !self.tables.iter().any(is_found)
    }

    /// What a name stands for. `is_there`: there is a table of this name, according to the lists.
    fn table(
        &mut self,
        database: &str,
        name: &str,
        is_there: impl FnOnce() -> bool,
    ) -> Option<Table> {
        let exact = |t: &&Table| t.name == name && t.database == database;
        let nearly = |t: &&Table| same_name(&t.name, name);
        if let Some(collation) = self.collations.remove(name) {
            return Some(collation);
        }
        if name.starts_with(COLLATION) {
            return None;
        }
        let found = self.tables.iter().find(exact);
        let found = found.or(self.tables.iter().find(nearly)).cloned();
        found.or_else(|| {
            // a view that shows nothing of ours any more is warned of
            let is_there = self.lacks(database, name)
                && !self.dropped.iter().any(|dropped| dropped == name)
                && is_there();
            is_there.then(|| hidden(database, name))
        })
    }
}

/// The default collation of a database or of a table, as [`COLLATION`] says.
fn default_collation(server: &mut Server, database: &str, name: &str) -> Outcome<Option<Table>> {
    let rows = server.rows(collation_query(database, name).as_bytes())?;
    Ok(collation_in(database, rows))
}

/// The same of several names, in one exchange: what stands under each.
pub(crate) fn default_collations(
    server: &mut Server,
    names: &[&TableName],
) -> Outcome<Vec<Option<Table>>> {
    let mut questions = Vec::with_capacity(names.len());
    for name in names {
        let sql = collation_query(&name.database, &name.name);
        questions.push(server.put_select(sql.as_bytes())?);
    }
    server.flush()?;
    let mut found = Vec::with_capacity(names.len());
    for (name, question) in names.iter().zip(questions) {
        found.push(collation_in(&name.database, server.read_rows(question)?));
    }
    Ok(found)
}

fn collation_query(database: &str, name: &str) -> String {
    let table = name.strip_prefix(COLLATION).unwrap_or_default();
    let database_is = literal(database);
    if table.is_empty() {
        format!(
            "SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = {database_is}"
        )
    } else {
        format!(
            "SELECT TABLE_COLLATION FROM information_schema.TABLES WHERE TABLE_SCHEMA = {database_is} AND TABLE_NAME = {}",
            literal(table)
        )
    }
}

fn collation_in(database: &str, rows: Rows) -> Option<Table> {
    let first = rows.into_iter().next();
    let name = first.and_then(|row| row.into_iter().next().flatten());
    name.map(|name| Table::named(database, String::from_utf8_lossy(&name)))
}
