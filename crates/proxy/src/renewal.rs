//! How old what is known of the schema may be, and the one look-up that renews it.
//!
//! Whatever is planned rests on three things: which databases there are, which tables each of them has, and what the tables
//! look like that the statement names. Each has an [`Age`]. A plan is used while none of its ages is more than a second, be it
//! one that relays. Then everything that the account has used of late is looked up again with one statement, by the first
//! session that needs it; the others wait for it, and not for long: after a second each of them looks for itself.
//!
//! No word of a statement is sent for that. The names of all tables are asked for, and compared here with the words; only what
//! is the name of a table is then asked about by name. Asking for all sealed columns at once would be simpler, but it costs
//! both servers a tenth of a millisecond for each table of the database, and MariaDB waits there for every
//! table that a definition has locked. Names alone cost a tenth of that, and wait for nobody.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use onionskin_keys::KeySet;
use onionskin_plan::{COLLATION, Catalog, Known};
use onionskin_schema::comment::MARK;
use onionskin_schema::{COLUMNS_QUERY_FIELDS, Protection, Table};
use onionskin_value::Family;
use parking_lot::{Condvar, Mutex};

use super::age::{Age, RECHECK, now};
use super::catalog::{Account, Prepared, tables};
use super::error::{Failure, Outcome};
use super::exchange::{Confirmed, Definition, Rows, Server};
use super::parts::settle_parts;

/// As many tables of a database are asked for one by one. More are asked for in one list, for which MariaDB reads all names.
const ONE_BY_ONE: usize = 4;

/// A list of names: of the databases, or of the tables of one.
pub(crate) struct Names {
    age: Arc<Age>,
    /// The names as the server has them, by their letters without case.
    real: HashMap<String, Vec<String>>,
}

/// The list of the databases stands under this name, which no database has.
const DATABASES: &str = "";

/// All lists of an account.
#[derive(Default)]
pub(crate) struct Lists(HashMap<String, Names>);

impl Lists {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The databases that a name may mean; `None` if they are not known.
    fn databases(&self, name: &str) -> Option<&[String]> {
        let found = self.0.get(DATABASES)?.real.get(&fold(name));
        Some(found.map(Vec::as_slice).unwrap_or_default())
    }

    /// Whether there may be such a table; `None` if that is not known.
    pub fn has(&self, database: &str, name: &str) -> Option<bool> {
        let name = fold(name);
        let mut found = false;
        for database in self.databases(database)? {
            found |= self.0.get(database)?.real.contains_key(&name);
        }
        Some(found)
    }

    /// Whether there may be such a database; `None` if that is not known.
    pub fn has_database(&self, name: &str) -> Option<bool> {
        self.databases(name).map(|found| !found.is_empty())
    }

    /// Takes these databases for known, and what they hold for out of date: whoever uses a list reads it first. Plans rest on lists.
    pub fn suppose(&mut self, databases: &[&str]) {
        let names = || Names {
            age: Age::of(0),
            real: HashMap::new(),
        };
        let all = self.0.entry(DATABASES.into()).or_insert_with(names);
        for database in databases {
            let real = all.real.entry(fold(database)).or_default();
            if real.is_empty() {
                real.push((*database).to_owned());
            }
        }
        for database in databases {
            let is_missing = !self.0.contains_key(*database);
            if is_missing {
                self.0.insert((*database).to_owned(), names());
            }
        }
    }

    /// The ages of the lists that tell about these names.
    pub fn ages(&self, names: &[(String, String)]) -> Vec<Arc<Age>> {
        let mut ages = Vec::new();
        let Some(databases) = self.0.get(DATABASES) else {
            return ages;
        };
        ages.push(Arc::clone(&databases.age));
        let asked: HashSet<&str> = names.iter().map(|(d, _)| d.as_str()).collect();
        for name in asked {
            let real = self.databases(name).unwrap_or_default();
            let lists = real.iter().filter_map(|name| self.0.get(name));
            ages.extend(lists.map(|list| Arc::clone(&list.age)));
        }
        ages
    }

    /// Takes a table for known to be there, or not, for good: see [`Account::know`].
    pub fn know(&mut self, database: &str, name: Option<&str>) {
        let names = || Names {
            age: Age::of(u64::MAX),
            real: HashMap::new(),
        };
        let add = |list: &mut Names, name: &str| {
            let real = list.real.entry(fold(name)).or_default();
            if !real.iter().any(|n| n == name) {
                real.push(name.to_owned());
            }
        };
        add(
            self.0.entry(DATABASES.into()).or_insert_with(names),
            database,
        );
        let list = self.0.entry(database.into()).or_insert_with(names);
        if let Some(name) = name {
            add(list, name);
        }
    }

    /// Puts a list that was read in the place of the one before. Returns the names, without case, that are in one of the two only.
    fn put(&mut self, of: &str, names: Vec<String>, checked: u64) -> HashSet<String> {
        let mut real: HashMap<String, Vec<String>> = HashMap::with_capacity(names.len());
        for name in names {
            real.entry(fold(&name)).or_default().push(name);
        }
        let Some(list) = self.0.get_mut(of) else {
            let age = Age::of(checked);
            self.0.insert(of.to_owned(), Names { age, real });
            return HashSet::new();
        };
        let differs = |a: &HashMap<String, Vec<String>>, b: &HashMap<String, Vec<String>>| {
            let missing = a.iter().filter(|(k, v)| b.get(*k) != Some(v));
            missing.map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        let mut changed: HashSet<String> = differs(&list.real, &real).into_iter().collect();
        changed.extend(differs(&real, &list.real));
        list.real = real;
        list.age.renew(checked);
        changed
    }
}

/// A name without its letters' case. Names that a server takes for one have one; sometimes others, too.
pub(crate) fn fold(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let letters = name.chars().flat_map(char::to_uppercase);
    let letters = letters.flat_map(char::to_lowercase);
    // servers take the capital I with a dot for an i
    letters.filter(|c| *c != '\u{307}').collect()
}

/// Who looks up for the others.
#[derive(Default)]
pub(crate) struct Turns {
    /// How often the turn was taken, and when it was, if somebody has it.
    taken: Mutex<(u64, Option<u64>)>,
    given_back: Condvar,
}

/// The right to look up. It is given back when it is dropped.
struct Turn<'a> {
    turns: &'a Turns,
    number: u64,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut taken = self.turns.taken.lock();
        if taken.0 == self.number {
            taken.1 = None;
        }
        drop(taken);
        self.turns.given_back.notify_all();
    }
}

impl Turns {
    /// Takes the turn, or waits until another has given it back. From one whose server does not answer for a second it is
    /// taken away.
    fn take(&self, patience: Duration) -> Option<Turn<'_>> {
        let mut taken = self.taken.lock();
        let now = now();
        if taken
            .1
            .is_none_or(|since| now.saturating_sub(since) > RECHECK)
        {
            *taken = (taken.0 + 1, Some(now));
            let number = taken.0;
            return Some(Turn {
                turns: self,
                number,
            });
        }
        self.given_back.wait_for(&mut taken, patience);
        None
    }
}

/// What the renewal of an account asks for.
struct Wanted {
    lists: Vec<String>,
    /// Tables of which all is asked for, and others of which only is asked whether they have become protected, by database.
    whole: BTreeMap<String, Vec<String>>,
    others: BTreeMap<String, Vec<String>>,
}

impl Account {
    /// Whether something that the plan rests on is more than a second old. Marks it as used.
    #[inline]
    pub fn is_due(&self, prepared: &Prepared) -> bool {
        if prepared.basis.is_empty() {
            return false;
        }
        let now = now();
        let mut due = false;
        for age in &prepared.basis {
            age.touch(now);
            due |= age.is_old(now, u64::MAX);
        }
        due
    }

    fn is_older(prepared: &Prepared, came: u64) -> bool {
        let now = now();
        prepared.basis.iter().any(|age| age.is_old(now, came))
    }

    /// Sees to it that nothing the plan rests on is too old. The generation tells whether anything is different.
    pub fn renew_for(
        &self,
        server: &mut Server,
        keys: &KeySet,
        family: Family,
        prepared: &Prepared,
    ) -> Outcome<()> {
        if server.sees_the_past() {
            return self.confirm(server, keys, prepared);
        }
        let came = now();
        for age in &prepared.basis {
            age.touch(came);
        }
        while Self::is_older(prepared, came) {
            let waited = now().saturating_sub(came);
            let turn = self
                .turns
                .take(Duration::from_millis(RECHECK.saturating_sub(waited)));
            // one who waits in vain for a server that does not answer another session asks its own
            if turn.is_some() || now().saturating_sub(came) >= RECHECK {
                self.renew(server, keys, family)?;
                break;
            }
        }
        if Self::is_older(prepared, came) && prepared.generation == self.generation() {
            // what the renewal left out, because a definition has it locked
            self.look_up(server, keys, &prepared.plan.names)?;
            if Self::is_older(prepared, came) && prepared.generation == self.generation() {
                tracing::debug!(names = ?prepared.plan.names, "a look-up has renewed too little");
                return Err(Failure::Stale);
            }
        }
        Ok(())
    }

    /// Sees to it within a transaction that sees the past: the definitions of the tables that the statement names are as they
    /// are known. Each is asked for once a second. Of a name that is no table's, that is asked where a table's name stands.
    fn confirm(&self, server: &mut Server, keys: &KeySet, prepared: &Prepared) -> Outcome<()> {
        let (began, generation) = (now(), self.generation());
        if server.confirmed.generation != generation {
            server.confirmed = Confirmed {
                generation,
                ..Confirmed::default()
            };
        }
        let table_words = &prepared.plan.facts.table_words;
        let mut asked = Vec::new();
        let mut known = Vec::new();
        for name in &prepared.plan.names {
            let at = server.confirmed.names.get(name);
            let is_new = at.is_some_and(|at| began.saturating_sub(*at) <= RECHECK);
            if is_new || !self.can_be_confirmed(name) {
                continue;
            }
            let Known::Table(table) = Catalog::table(self, &name.0, &name.1) else {
                if table_words.contains(&name.1.to_lowercase()) {
                    asked.push(name.clone());
                    known.push(None);
                }
                continue;
            };
            asked.push(name.clone());
            known.push(Some(table));
        }
        let shown = server.definitions(&asked)?;
        for ((name, known), shown) in asked.into_iter().zip(known).zip(&shown) {
            if !is_shown(known.as_deref(), shown) {
                // another session may have looked it up meanwhile; what this one is shown has to be confirmed, too
                self.look_up(server, keys, &[name])?;
                self.new_generation();
                return Ok(());
            }
            server.confirmed.names.insert(name, began);
        }
        Ok(())
    }

    /// Which of these names are tables' in a transaction that sees the past, as far as it sees.
    pub(super) fn tables_of_the_past(
        &self,
        server: &mut Server,
        names: &[(String, String)],
    ) -> Outcome<HashSet<(String, String)>> {
        let databases: BTreeSet<&str> = names.iter().map(|(d, _)| d.as_str()).collect();
        let wanted = Wanted {
            lists: databases.iter().map(|d| (*d).to_owned()).collect(),
            whole: BTreeMap::new(),
            others: BTreeMap::new(),
        };
        let rows = server.rows(question(&wanted, Family::MySql).as_bytes())?;
        let lists = names_of(rows, &wanted.lists)?;
        let databases: Vec<&str> = databases.into_iter().collect();
        self.lists.write().suppose(&databases);
        let mut found = HashSet::new();
        for (database, tables) in lists {
            let tables: HashSet<String> = tables.iter().map(|name| fold(name)).collect();
            let here = names.iter().filter(|(d, name)| {
                *d == database && (tables.contains(&fold(name)) || name.starts_with(COLLATION))
            });
            found.extend(here.cloned());
        }
        Ok(found)
    }

    /// Looks up all that the account has used of late, with one statement.
    fn renew(&self, server: &mut Server, keys: &KeySet, family: Family) -> Outcome<()> {
        let epoch = self.epoch();
        let began = now();
        let wanted = self.wanted(began);
        let (rows, warnings) = server.rows_and_warnings(&question(&wanted, family))?;
        let is_whole = warnings == 0;
        let is_list = |row: &Vec<Option<Vec<u8>>>| {
            row.get(2)
                .and_then(Option::as_deref)
                .unwrap_or_default()
                .is_empty()
        };
        let (lists, details): (Rows, Rows) = rows.into_iter().partition(is_list);
        let lists = names_of(lists, &wanted.lists)?;
        let mut changed = self.put_lists(lists, began, epoch);
        // views have tables behind them, about which their own columns do not tell all
        let mut views = Vec::new();
        let found = by_name(&details);
        let asked = |tables: &BTreeMap<String, Vec<String>>| -> HashSet<(String, String)> {
            let each = |(d, names): (&String, &Vec<String>)| {
                let pair = |n: &String| (d.clone(), n.clone());
                names.iter().map(pair).collect::<Vec<_>>()
            };
            tables.iter().flat_map(each).collect()
        };
        let (whole, others) = (asked(&wanted.whole), asked(&wanted.others));
        let mut details = details;
        details.retain(|row| whole.contains(&name_of(row)));
        let mut whole_now = tables(&details, keys)?;
        // views are looked up once more below
        settle_parts(server, whole_now.iter_mut().filter(|table| !table.view))?;
        changed |= self.refresh_pins(keys);
        {
            let mut known = self.tables.write();
            if self.epoch() != epoch {
                return Ok(());
            }
            known.retain(|key, entry| {
                let Some(table) = entry.table.as_deref() else {
                    return true;
                };
                if key.1.starts_with(COLLATION) {
                    return true;
                }
                let name = (table.database.clone(), table.name.clone());
                let same = if whole.contains(&name) {
                    let found = whole_now.iter().find(|t| is_named(t, &name));
                    if found.is_some() && table.view && table.damaged.is_none() {
                        views.push(key.clone());
                        return true;
                    }
                    // one whose columns the account may not see
                    let is_hidden = table.columns.is_empty() && !table.view && is_whole;
                    match found {
                        None if is_hidden => Some(true),
                        found => found.map(|found| found == table),
                    }
                } else if others.contains(&name) {
                    found.get(&name).map(|is_sealed| !is_sealed)
                } else {
                    return true;
                };
                match same {
                    Some(true) => entry.age.renew(began),
                    // a table that is locked by a definition, or a view that has lost what it shows
                    None if !is_whole => {}
                    _ => {
                        changed = true;
                        return false;
                    }
                }
                true
            });
            if changed {
                self.new_generation();
            }
        }
        if !views.is_empty() {
            self.look_up_tables(server, keys, &views, began, epoch, None)?;
        }
        Ok(())
    }

    fn wanted(&self, now: u64) -> Wanted {
        let lists = self.lists.read();
        let used = |(name, list): (&String, &Names)| {
            let is_wanted = !name.is_empty() && list.age.is_used(now);
            is_wanted.then(|| name.clone())
        };
        let mut wanted = Wanted {
            lists: lists.0.iter().filter_map(used).collect(),
            whole: BTreeMap::new(),
            others: BTreeMap::new(),
        };
        drop(lists);
        for ((_, name), entry) in self.tables.read().iter() {
            let is_wanted = entry.age.is_used(now) && !name.starts_with(COLLATION);
            let Some(table) = entry.table.as_deref().filter(|_| is_wanted) else {
                continue;
            };
            // the scratch engine gets plain tables as they are known here
            let kind = match table.is_protected() || entry.is_whole() {
                true => &mut wanted.whole,
                false => &mut wanted.others,
            };
            let names = kind.entry(table.database.clone()).or_default();
            if !names.contains(&table.name) {
                names.push(table.name.clone());
            }
        }
        wanted
    }

    /// Reads the lists of names that tell about these names, all of them or those that are not known yet.
    pub(super) fn renew_lists(
        &self,
        server: &mut Server,
        names: &[(String, String)],
        all: bool,
    ) -> Outcome<bool> {
        let mut changed = false;
        // which databases there are has to be known before one is asked about
        for _ in 0..2 {
            let epoch = self.epoch();
            let began = now();
            let (wanted, is_known) = {
                let lists = self.lists.read();
                let asked: HashSet<&str> = names.iter().map(|(d, _)| d.as_str()).collect();
                let is_wanted = |name: &&String| {
                    all || lists
                        .0
                        .get(*name)
                        .is_none_or(|l| l.age.is_old(began, u64::MAX))
                };
                let real = asked
                    .iter()
                    .flat_map(|d| lists.databases(d).unwrap_or_default());
                let wanted: HashSet<String> = real.filter(is_wanted).cloned().collect();
                let databases = lists.0.get(DATABASES);
                let is_new = databases.is_some_and(|l| !l.age.is_old(began, u64::MAX) && !all);
                (wanted, databases.is_some().then_some(is_new))
            };
            if is_known == Some(true) && wanted.is_empty() {
                break;
            }
            let wanted = Wanted {
                lists: wanted.into_iter().collect(),
                whole: BTreeMap::new(),
                others: BTreeMap::new(),
            };
            let rows = server.rows(question(&wanted, Family::MySql).as_bytes())?;
            let lists = names_of(rows, &wanted.lists)?;
            changed |= self.put_lists(lists, began, epoch);
            if is_known.is_some() {
                // of a database that is new, the list is not there yet
                let lists = self.lists.read();
                let is_missing = |(d, _): &(String, String)| {
                    let real = lists.databases(d).unwrap_or_default();
                    real.iter().any(|name| !lists.0.contains_key(name))
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
            let gone = |of: &str| of != DATABASES && databases.contains(&fold(of));
            lists.0.retain(|of, _| !gone(of));
        }
        let mut tables = self.tables.write();
        let before = tables.len();
        tables.retain(|(database, name), _| {
            let database = fold(database);
            let is_changed = || {
                changed
                    .get(&database)
                    .is_some_and(|c| c.contains(&fold(name)))
            };
            !databases.contains(&database) && !is_changed()
        });
        let differs = tables.len() != before || !databases.is_empty();
        if differs {
            self.new_generation();
        }
        differs
    }
}

/// Whether a table is what is known of it, by its definition as it is now. `None`: no table, or one of which nothing is shown.
pub(super) fn is_shown(known: Option<&Table>, shown: &Definition) -> bool {
    let text = match shown {
        Definition::Absent => return known.is_none(),
        // the account can do nothing with it
        Definition::Hidden => return true,
        Definition::Table(text) => text,
        Definition::View(text, base) => {
            let shows = |table: &Table| match (table.is_protected(), base) {
                (false, _) => !text.contains("$enc"),
                (true, Some(base)) => table.damaged.is_none() && has_ids(base, table),
                (true, None) => false,
            };
            return known.is_some_and(shows);
        }
    };
    let is_sealed = |line: &str| {
        let word = line.trim_start().split(' ').next().unwrap_or_default();
        word.trim_matches(['`', '"']).ends_with("$enc")
    };
    let mark = format!("COMMENT '{MARK}");
    let marks = text.lines().filter(|line| line.contains(&mark)).count();
    let sealed = text.lines().filter(|line| is_sealed(line)).count();
    // one of the session's own stands before others
    if text.starts_with("CREATE TEMPORARY TABLE") {
        return marks == 0 && sealed == 0;
    }
    let Some(table) = known else {
        return false;
    };
    let count = table.protected_columns().count();
    table.damaged.is_none() && (marks, sealed) == (count, count) && has_ids(text, table)
}

/// Whether the ids of a table and of its protected columns stand in a definition, in the comments of sealed columns.
fn has_ids(text: &str, table: &Table) -> bool {
    let ids = |protection: &Protection| {
        let (column, table) = (&protection.column_id, table.table_id.unwrap_or_default());
        format!("|{}|{}|", hex(column), hex(&table))
    };
    let mut columns = table.protected_columns();
    columns.all(|(_, protection)| text.contains(&ids(protection)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn is_named(table: &Table, (database, name): &(String, String)) -> bool {
    table.database == *database && table.name == *name
}

/// The question for lists of names, and for tables.
fn question(wanted: &Wanted, family: Family) -> String {
    let fields: Vec<String> = COLUMNS_QUERY_FIELDS
        .split(", ")
        .map(|field| format!("CAST({field} AS BINARY)"))
        .collect();
    let has_tables = !wanted.whole.is_empty() || !wanted.others.is_empty();
    // what has no column is the name of a table
    let rest = ", x''".repeat(if has_tables { fields.len() - 2 } else { 1 });
    let mut sql = String::new();
    if family == Family::MariaDb {
        // a table whose definition changes at this moment is left out, with a warning
        sql += "SET STATEMENT lock_wait_timeout = 0 FOR ";
    }
    let _ = write!(
        sql,
        "SELECT CAST(SCHEMA_NAME AS BINARY), x''{rest} FROM information_schema.SCHEMATA"
    );
    for database in &wanted.lists {
        let _ = write!(
            sql,
            " UNION ALL SELECT CAST(TABLE_SCHEMA AS BINARY), CAST(TABLE_NAME AS BINARY){rest} \
             FROM information_schema.TABLES WHERE TABLE_SCHEMA = {}",
            literal(database)
        );
    }
    let sealed = format!(
        " AND (ORDINAL_POSITION = 1 OR COLUMN_NAME LIKE '%$enc' OR COLUMN_COMMENT LIKE '{MARK}%')"
    );
    for (tables, condition) in [(&wanted.whole, ""), (&wanted.others, &sealed)] {
        for (database, names) in tables {
            let each = match names.len() <= ONE_BY_ONE {
                true => 1,
                false => names.len(),
            };
            for names in names.chunks(each) {
                let names: Vec<String> = names.iter().map(|n| literal(n)).collect();
                let _ = write!(
                    sql,
                    " UNION ALL SELECT {} FROM information_schema.COLUMNS \
                     WHERE TABLE_SCHEMA = {} AND TABLE_NAME IN ({}){condition}",
                    fields.join(", "),
                    literal(database),
                    names.join(", ")
                );
            }
        }
    }
    sql
}

/// A name in a query whose meaning no setting changes. As a constant of its own character set it is compared in the column's, with
/// the column's index.
fn literal(name: &str) -> String {
    let hex: String = name.bytes().map(|b| format!("{b:02x}")).collect();
    format!("_utf8mb4 X'{hex}'")
}

fn text(cell: Option<&Option<Vec<u8>>>) -> String {
    let bytes = cell.and_then(Option::as_deref).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

fn name_of(row: &[Option<Vec<u8>>]) -> (String, String) {
    (text(row.first()), text(row.get(1)))
}

/// The lists in an answer: that of the databases, and those that were asked for. One without tables is a list as well.
fn names_of(rows: Rows, asked: &[String]) -> Outcome<Vec<(String, Vec<String>)>> {
    let mut lists: HashMap<String, Vec<String>> = asked
        .iter()
        .map(|name| (name.clone(), Vec::new()))
        .collect();
    lists.insert(DATABASES.into(), Vec::new());
    for row in &rows {
        let (database, table) = name_of(row);
        if database.contains(char::REPLACEMENT_CHARACTER)
            || table.contains(char::REPLACEMENT_CHARACTER)
        {
            let about = "a name in another character set";
            return Err(Failure::refused(
                &onionskin_plan::errors::CHARACTER_SET,
                about,
            ));
        }
        let (of, name) = match table.is_empty() {
            true => (DATABASES.to_owned(), database),
            false => (database, table),
        };
        // servers compare names of databases more freely
        if let Some(list) = lists.get_mut(&of) {
            list.push(name);
        }
    }
    for list in lists.values_mut() {
        list.sort_unstable();
    }
    Ok(lists.into_iter().collect())
}

/// The tables of these rows, and whether one of their rows is a sealed column's.
fn by_name(rows: &Rows) -> HashMap<(String, String), bool> {
    let mut found = HashMap::new();
    for row in rows {
        let is_sealed = text(row.get(2)).to_lowercase().ends_with("$enc")
            || text(row.get(12)).starts_with(MARK);
        *found.entry(name_of(row)).or_insert(false) |= is_sealed;
    }
    found
}
