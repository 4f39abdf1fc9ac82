//! The snapshot of the schema and the plans made from it, for each account.
//!
//! Accounts see different tables and columns, so snapshots are not shared between them. A table
//! is looked up over the session's own connection when a statement first names it, again when
//! the server's answer shows that the snapshot is old (unknown column, our CHECK constraint, a
//! sealed column where none was expected), and again, along with all others that are in use, a
//! second after the last look ([`crate::renewal`]). Any real difference moves the generation on
//! and with it every cached plan.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use ahash::RandomState;
use onionskin_crypt::{CellFormat, ColumnCipher, ColumnId};
use onionskin_keys::KeySet;
use onionskin_plan::{
    Action, COLLATION, Catalog, ColumnUse, HIDDEN, Known, Plan, Settings, errors,
};
use onionskin_schema::{
    Base, ColumnRow, PinnedTable, Table, catalog_query, same_name, tables_from_rows, view_source,
};
use parking_lot::RwLock;

use crate::age::{Age, now};
use crate::error::{Failure, Outcome};
use crate::exchange::{ALL_ROWS, Definition, Server};
use crate::parts::settle_parts;
use crate::pins::PinFile;
use crate::renewal::{Lists, Turns, is_shown};
use crate::shown::Shown;

/// As often, and after such a time each, a table is looked up again that a definition has locked.
const LOCKED: (u32, Duration) = (50, Duration::from_millis(100));
/// Names that are kept for one account: tables, and identifiers of statements that turned out to be none.
const NAMES: usize = 16_384;
/// Plans kept for one combination of settings.
const PLANS: usize = 4096;
/// Bytes that the plans of one account may take, about.
const PLANS_WEIGH: usize = 128 << 20;
/// Statements with longer shapes are planned every time.
const LONGEST_SHAPE: usize = 16 * 1024;

/// All accounts of the proxy.
#[derive(Default)]
pub(crate) struct Accounts {
    shared: RwLock<HashMap<String, Arc<Account>>>,
    /// Those of single sessions: see [`Account::private`].
    private: RwLock<Vec<Weak<Account>>>,
    pins: Option<Arc<PinFile>>,
}

impl Accounts {
    pub fn new(pins: Option<Arc<PinFile>>) -> Self {
        Accounts {
            pins,
            ..Accounts::default()
        }
    }

    pub fn get(&self, name: &str) -> Arc<Account> {
        if let Some(found) = self.shared.read().get(name) {
            return Arc::clone(found);
        }
        Arc::clone(
            self.shared
                .write()
                .entry(name.to_string())
                .or_insert_with(|| Arc::new(Account::new(self.pins.clone()))),
        )
    }

    /// A snapshot for one session, which lives as long as the session holds it.
    pub fn private(&self) -> Arc<Account> {
        let account = Arc::new(Account::private(self.pins.clone()));
        let mut private = self.private.write();
        private.retain(|a| a.strong_count() > 0);
        private.push(Arc::downgrade(&account));
        account
    }

    /// Forgets what any account knows of these names: a definition has changed.
    pub fn forget(&self, names: &[(String, String)]) {
        for account in self.shared.read().values() {
            account.forget(names);
        }
        for account in self.private.read().iter().filter_map(Weak::upgrade) {
            account.forget(names);
        }
    }
}

pub(crate) struct Entry {
    /// `None`: there is no such table.
    pub table: Option<Arc<Table>>,
    pub age: Arc<Age>,
    /// All of it counts, though it may not be protected.
    whole: AtomicBool,
}

impl Entry {
    fn new(table: Option<Table>, checked: u64) -> Arc<Entry> {
        Arc::new(Entry {
            table: table.map(Arc::new),
            age: Age::of(checked),
            whole: AtomicBool::new(false),
        })
    }

    pub fn is_whole(&self) -> bool {
        self.whole.load(Ordering::Relaxed)
    }
}

/// One account's view of the schema.
pub(crate) struct Account {
    /// The names that there are.
    pub lists: RwLock<Lists>,
    /// What is known of the names that statements have. Taken after `lists`, where both are.
    pub tables: RwLock<HashMap<(String, String), Arc<Entry>>>,
    pub turns: Turns,
    generation: AtomicU64,
    /// How often names were forgotten: what was asked before that is not taken over.
    epoch: AtomicU64,
    spaces: RwLock<HashMap<Vec<u8>, Arc<PlanSpace>>>,
    /// How many bytes the plans of all spaces take.
    plans_weigh: Arc<AtomicUsize>,
    /// Temporary tables of the one session whose account this is; `None` for accounts that sessions share.
    temporary: Option<RwLock<Temporaries>>,
    pins: Option<Arc<PinFile>>,
    /// See [`PinFile::refresh`].
    pins_seen: AtomicU64,
}

/// The temporary tables of a session: by their names without letter case, which a server may or may not count, the names as they were given.
type Temporaries = HashMap<(String, String), ((String, String), Temporary)>;

/// What is known of a temporary table.
#[derive(Clone)]
enum Temporary {
    /// It is being made.
    Expected,
    /// It exists.
    Known(Arc<Table>),
}

/// A plan with what executing it needs.
pub(crate) struct Prepared {
    pub plan: Plan,
    /// One for each of the plan's columns.
    pub ciphers: Vec<Arc<ColumnCipher>>,
    pub generation: u64,
    /// What the result's definitions were the last time.
    pub shown: RwLock<Option<Arc<Shown>>>,
    /// What it rests on.
    pub basis: Vec<Arc<Age>>,
}

/// The plans made under one combination of settings.
pub(crate) struct PlanSpace {
    pub settings: Settings,
    plans: RwLock<Kept>,
    /// Of all the account's spaces.
    weigh: Arc<AtomicUsize>,
}

/// Plans by their shapes.
#[derive(Default)]
struct Kept {
    plans: HashMap<Vec<u8>, Arc<Prepared>, RandomState>,
    /// Their bytes.
    weight: usize,
}

/// The letters of a name by which tables are told apart here.
pub(crate) fn folded((database, name): &(String, String)) -> (String, String) {
    (database.to_lowercase(), name.to_lowercase())
}

impl Account {
    fn new(pins: Option<Arc<PinFile>>) -> Self {
        // plans that this account makes rest on the pins as they are now
        let seen = pins.as_ref().map_or(0, |pins| pins.version());
        Account {
            pins,
            pins_seen: AtomicU64::new(seen),
            plans_weigh: Arc::default(),
            lists: RwLock::default(),
            tables: RwLock::default(),
            turns: Turns::default(),
            generation: AtomicU64::new(1),
            epoch: AtomicU64::new(0),
            spaces: RwLock::default(),
            temporary: None,
        }
    }

    /// The snapshot of one session that has temporary tables with protected columns. Generations begin far from those of
    /// shared snapshots: no statement that was planned before counts as fresh.
    fn private(pins: Option<Arc<PinFile>>) -> Self {
        Account {
            generation: AtomicU64::new(1 << 62),
            temporary: Some(RwLock::default()),
            ..Account::new(pins)
        }
    }

    pub fn is_private(&self) -> bool {
        self.temporary.is_some()
    }

    /// The session's temporary tables.
    pub fn temporary_names(&self) -> Vec<(String, String)> {
        let names = |t: &RwLock<Temporaries>| t.read().values().map(|(n, _)| n.clone()).collect();
        self.temporary.as_ref().map(names).unwrap_or_default()
    }

    /// A temporary table is about to be made. Until it is known, its name cannot be used. Returns what was known under the
    /// name before.
    pub fn expect_temporary(&self, name: &(String, String)) -> Option<Arc<Table>> {
        let temporary = self.temporary.as_ref()?;
        let expected = (name.clone(), Temporary::Expected);
        match temporary.write().insert(folded(name), expected) {
            Some((_, Temporary::Known(table))) => Some(table),
            _ => None,
        }
    }

    /// The temporary table was not made: what was known before still holds.
    pub fn give_up_temporary(&self, name: &(String, String), before: Option<Arc<Table>>) {
        if let Some(temporary) = &self.temporary {
            let mut temporary = temporary.write();
            match before {
                Some(table) => {
                    let known = (name.clone(), Temporary::Known(table));
                    temporary.insert(folded(name), known)
                }
                None => temporary.remove(&folded(name)),
            };
        }
    }

    /// What the server shows under the name of a temporary table. One with other ids is another table.
    pub fn set_temporary(&self, name: &(String, String), table: Option<Arc<Table>>) {
        let Some(temporary) = &self.temporary else {
            return;
        };
        let mut temporary = temporary.write();
        let same = match (temporary.get(&folded(name)), &table) {
            (Some((_, Temporary::Known(old))), Some(new)) => old.table_id == new.table_id,
            (_, Some(_)) => true,
            (_, None) => false,
        };
        match table {
            Some(table) if same => {
                temporary.insert(folded(name), (name.clone(), Temporary::Known(table)))
            }
            _ => temporary.remove(&folded(name)),
        };
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub fn new_generation(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    pub fn space(&self, key: Vec<u8>, settings: Settings) -> Arc<PlanSpace> {
        if self.plans_weigh.load(Ordering::Relaxed) > PLANS_WEIGH / 2 {
            for space in self.spaces.read().values() {
                space.empty(&mut space.plans.write());
            }
        }
        if let Some(found) = self.spaces.read().get(&key) {
            return Arc::clone(found);
        }
        let mut spaces = self.spaces.write();
        if spaces.len() >= 1024 {
            spaces.clear();
        }
        Arc::clone(spaces.entry(key).or_insert_with(|| {
            Arc::new(PlanSpace {
                settings,
                plans: RwLock::default(),
                weigh: Arc::clone(&self.plans_weigh),
            })
        }))
    }

    /// Reads the pins again if their file has changed. Returns whether there are others than this account has seen.
    pub fn refresh_pins(&self, keys: &KeySet) -> bool {
        let Some(pins) = &self.pins else {
            return false;
        };
        let version = pins.refresh(keys);
        self.pins_seen.swap(version, Ordering::AcqRel) != version
    }

    /// Looks names up at the server, all of them. Returns whether anything is different from before.
    pub fn look_up(
        &self,
        server: &mut Server,
        keys: &KeySet,
        names: &[(String, String)],
    ) -> Outcome<bool> {
        self.read_names(server, keys, names, true)
    }

    /// Looks up what is not known of these names.
    pub fn learn(
        &self,
        server: &mut Server,
        keys: &KeySet,
        names: &[(String, String)],
    ) -> Outcome<bool> {
        self.read_names(server, keys, names, false)
    }

    /// Words that are no tables stay here: those that are are found in the lists of names.
    fn read_names(
        &self,
        server: &mut Server,
        keys: &KeySet,
        names: &[(String, String)],
        all: bool,
    ) -> Outcome<bool> {
        let mut changed = self.make_room();
        changed |= self.refresh_pins(keys);
        let past = match server.sees_the_past() {
            true => Some(self.tables_of_the_past(server, names)?),
            false => {
                changed |= self.renew_lists(server, names, all)?;
                None
            }
        };
        let (epoch, began) = (self.epoch(), now());
        let mut real = Vec::new();
        let mut absent = Vec::new();
        {
            let lists = self.lists.read();
            let tables = self.tables.read();
            for name in names {
                let (database, table) = name;
                let is_there = match table.strip_prefix(COLLATION) {
                    _ if let Some(past) = &past => Some(past.contains(name)),
                    None => lists.has(database, table),
                    Some("") => lists.has_database(database),
                    Some(table) => lists.has(database, table),
                };
                match is_there {
                    Some(true) if all || !tables.contains_key(name) => real.push(name.clone()),
                    Some(true) => {}
                    Some(false) => absent.push(name.clone()),
                    // another session has made the lists unknown again
                    None => changed = true,
                }
            }
        }
        {
            let mut tables = self.tables.write();
            for name in absent {
                if tables.get(&name).is_some_and(|e| e.table.is_none()) {
                    continue;
                }
                // whether there is one by now, a transaction that sees the past cannot tell
                let checked = if past.is_some() { 0 } else { began };
                changed |= tables.insert(name, Entry::new(None, checked)).is_some();
            }
        }
        let current = match past {
            Some(_) => {
                let tables = real.iter().filter(|name| self.can_be_confirmed(name));
                let tables: Vec<_> = tables.cloned().collect();
                let shown = server.definitions(&tables)?;
                Some(tables.into_iter().zip(shown).collect())
            }
            None => None,
        };
        changed |= self.look_up_tables(server, keys, &real, began, epoch, current.as_ref())?;
        if changed {
            self.new_generation();
        }
        Ok(changed)
    }

    /// Whether `SHOW CREATE TABLE` tells whether a name is what is known of it: temporary tables hide others, and are known by
    /// themselves.
    pub fn can_be_confirmed(&self, name: &(String, String)) -> bool {
        let hides = |temporary: &RwLock<Temporaries>| temporary.read().contains_key(&folded(name));
        !name.1.starts_with(COLLATION)
            && !is_virtual(&name.0)
            && !self.temporary.as_ref().is_some_and(hides)
    }

    /// Looks up tables by their names, for what began when the account was in this epoch. `current` are their definitions as they are
    /// now, where look-ups show older ones: what differs is not taken over.
    ///
    /// Each name is asked for as it stands and in lower case, because `lower_case_table_names` decides which of them the server
    /// means: a table in exactly these letters comes first, any other that differs in case alone counts as well. So a table
    /// may be taken for a protected one whose name it nearly has, and never the other way round.
    pub fn look_up_tables(
        &self,
        server: &mut Server,
        keys: &KeySet,
        names: &[(String, String)],
        began: u64,
        epoch: u64,
        current: Option<&HashMap<(String, String), Definition>>,
    ) -> Outcome<bool> {
        let mut by_database: HashMap<&str, Vec<&str>> = HashMap::new();
        let mut changed = false;
        for (database, name) in names {
            by_database.entry(database).or_default().push(name);
        }
        for (database, names) in by_database {
            let (collations, real): (Vec<&str>, Vec<&str>) =
                names.iter().partition(|n| n.starts_with(COLLATION));
            let (mut found, mut is_whole) = (Vec::new(), true);
            for (database, real) in spellings(database, &real) {
                let real: Vec<&str> = real.iter().map(|n| &**n).collect();
                let (mut these, warned) = self.look_at(server, keys, &database, &real)?;
                found.append(&mut these);
                is_whole &= !warned;
            }
            let mut defaults = HashMap::new();
            for name in collations {
                if let Some(table) = default_collation(server, database, name)? {
                    defaults.insert(name, table);
                }
            }
            let lists = self.lists.read();
            let mut tables = self.tables.write();
            if self.epoch() != epoch {
                return Ok(true);
            }
            for name in names {
                // a view that shows nothing of ours any more is warned of
                let key = (database.to_string(), name.to_string());
                let shown = current.and_then(|current| current.get(&key));
                let hidden = || {
                    let is_there = match shown {
                        Some(shown) => matches!(shown, Definition::Hidden),
                        None => lists.has(database, name) == Some(true),
                    };
                    let is_listed = is_whole && !is_virtual(database) && is_there;
                    is_listed.then(|| hidden(database, name))
                };
                let exact = |t: &&Table| t.name == name && t.database == database;
                let nearly = |t: &&Table| same_name(&t.name, name);
                let table = match defaults.remove(name) {
                    Some(collation) => Some(collation),
                    None if name.starts_with(COLLATION) => None,
                    None => found
                        .iter()
                        .find(exact)
                        .or(found.iter().find(nearly))
                        .cloned()
                        .or_else(hidden),
                };
                if shown.is_some_and(|shown| !is_shown(table.as_ref(), shown)) {
                    let about = format!("{database}.{name}");
                    return Err(Failure::refused(&errors::SNAPSHOT, about));
                }
                if let Some(entry) = tables.get(&key)
                    && entry.table.as_deref() == table.as_ref()
                {
                    entry.age.renew(began);
                    continue;
                }
                changed |= tables.insert(key, Entry::new(table, began)).is_some();
            }
        }
        if changed {
            self.new_generation();
        }
        Ok(changed)
    }

    /// The tables of a database that have one of these names, and whether the server warned of others. While a definition has
    /// one of them locked, a transaction is not told of it.
    fn look_at(
        &self,
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

    /// Forgets names if there are many, and then every plan: one whose tables are no longer in the snapshot would not see them change.
    /// Those that are no tables go first. Returns whether it did.
    fn make_room(&self) -> bool {
        if self.tables.read().len() < NAMES {
            return false;
        }
        let mut tables = self.tables.write();
        tables.retain(|_, entry| entry.table.is_some());
        if tables.len() > NAMES / 2 {
            tables.clear();
        }
        drop(tables);
        self.new_generation();
        true
    }

    /// Forgets everything known of these names, as tables and as databases, and every plan.
    fn forget(&self, names: &[(String, String)]) {
        let mut lists = self.lists.write();
        self.epoch.fetch_add(1, Ordering::AcqRel);
        lists.clear();
        self.tables.write().retain(|(database, table), entry| {
            // what is known of a view may be about one of these tables
            let is_view = entry.table.as_ref().is_some_and(|table| table.view);
            let is_meant = names.iter().any(|(d, name)| {
                (same_name(d, database) && same_name(name, table)) || same_name(name, database)
            });
            !is_view && !is_meant
        });
        self.new_generation();
    }

    /// Takes a table, or that there is none, for known, and for never in need of another look: on the stage of
    /// [`crate::hot_path`] there is no server to ask.
    pub fn know(&self, database: &str, name: &str, table: Option<Table>) {
        let listed = table.is_some().then_some(name);
        self.lists.write().know(database, listed);
        let key = (database.to_string(), name.to_string());
        let entry = Entry::new(table, u64::MAX);
        self.tables.write().insert(key, entry);
    }

    /// Makes a plan ready for execution.
    pub fn prepare(&self, plan: Plan, keys: &KeySet, generation: u64) -> Outcome<Arc<Prepared>> {
        let ciphers = plan
            .columns
            .iter()
            .map(|column| cipher(keys, column))
            .collect::<Outcome<Vec<_>>>()?;
        let lists = self.lists.read();
        let tables = self.tables.read();
        // what the server keeps for itself never changes
        let may_change = |(database, _): &&(String, String)| !is_virtual(database);
        let names: Vec<_> = plan.names.iter().filter(may_change).cloned().collect();
        let mut basis = match names.is_empty() {
            true => Vec::new(),
            false => lists.ages(&names),
        };
        // the scratch engine gets plain tables as they are known here
        let all = matches!(plan.action, Action::Scratch(_) | Action::ScratchWrite(_));
        for key in &names {
            let (database, name) = key;
            let Some(entry) = tables.get(key).filter(|_| !name.starts_with(COLLATION)) else {
                continue;
            };
            // some that are there show nothing
            if entry.table.is_some() || lists.has(database, name) == Some(true) {
                entry.whole.fetch_or(all, Ordering::Relaxed);
                basis.push(Arc::clone(&entry.age));
            }
        }
        drop((tables, lists));
        Ok(Arc::new(Prepared {
            plan,
            ciphers,
            generation,
            shown: RwLock::default(),
            basis,
        }))
    }
}

impl Catalog for Account {
    fn table(&self, database: &str, name: &str) -> Known {
        let key = (database.to_owned(), name.to_owned());
        if let Some(temporary) = &self.temporary
            && let Some((_, found)) = temporary.read().get(&folded(&key))
        {
            return match found {
                Temporary::Known(table) => Known::Table(Arc::clone(table)),
                Temporary::Expected => Known::Unknown,
            };
        }
        // what a plan rests on has to be there when it is made
        let lists = self.lists.read();
        let is_known = match name.starts_with(COLLATION) {
            true => lists.has_database(database).is_some(),
            false => lists.has(database, name).is_some(),
        };
        if !is_known {
            return Known::Unknown;
        }
        match self.tables.read().get(&key) {
            None => Known::Unknown,
            Some(entry) => match &entry.table {
                Some(table) => Known::Table(Arc::clone(table)),
                None => Known::Absent,
            },
        }
    }

    fn pinned(&self, database: &str, name: &str) -> Option<Arc<PinnedTable>> {
        let pinned = self.pins.as_ref()?.get(database, name)?;
        // a temporary table is the session's own
        let key = folded(&(database.to_owned(), name.to_owned()));
        let hides = |t: &RwLock<Temporaries>| t.read().contains_key(&key);
        (!self.temporary.as_ref().is_some_and(hides)).then_some(pinned)
    }
}

impl PlanSpace {
    pub fn get(&self, shape: &[u8]) -> Option<Arc<Prepared>> {
        self.plans.read().plans.get(shape).cloned()
    }

    pub fn put(&self, shape: &[u8], prepared: &Arc<Prepared>) {
        if shape.len() > LONGEST_SHAPE {
            return;
        }
        let weight = prepared.weight(shape);
        let mut kept = self.plans.write();
        let is_full = |kept: &Kept| {
            kept.plans.len() >= PLANS || self.weigh.load(Ordering::Relaxed) + weight > PLANS_WEIGH
        };
        if is_full(&kept) {
            self.empty(&mut kept);
        }
        // what other spaces hold goes when the next session asks for a space
        if is_full(&kept) {
            return;
        }
        if let Some(before) = kept.plans.insert(shape.to_vec(), Arc::clone(prepared)) {
            let before = before.weight(shape);
            kept.weight -= before;
            self.weigh.fetch_sub(before, Ordering::Relaxed);
        }
        kept.weight += weight;
        self.weigh.fetch_add(weight, Ordering::Relaxed);
    }

    fn empty(&self, kept: &mut Kept) {
        let kept = std::mem::take(kept);
        self.weigh.fetch_sub(kept.weight, Ordering::Relaxed);
    }
}

impl Drop for PlanSpace {
    fn drop(&mut self) {
        let mut kept = std::mem::take(&mut *self.plans.write());
        self.empty(&mut kept);
    }
}

impl Prepared {
    /// Whether the server's warnings may be about tokens: of rows with duplicates that are left out.
    pub fn warns_of_tokens(&self) -> bool {
        self.plan.facts.may_ignore() && !self.plan.columns.is_empty()
    }

    /// About as many bytes as the plan takes under its shape.
    fn weight(&self, shape: &[u8]) -> usize {
        let name = |(database, name): &(String, String)| 64 + database.len() + name.len();
        let names: usize = self.plan.names.iter().map(name).sum();
        // the text is there once more as the server gets it
        2048 + 4 * shape.len() + names + 512 * self.plan.columns.len()
    }
}

/// The cipher of a column under the key that its definition names.
pub(crate) fn cipher(keys: &KeySet, column: &ColumnUse) -> Outcome<Arc<ColumnCipher>> {
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

pub(crate) fn tables(rows: &crate::exchange::Rows, keys: &KeySet) -> Outcome<Vec<Table>> {
    let bad = || Failure::refused(&errors::INTERNAL, "the schema's rows");
    let mut decoded = Vec::with_capacity(rows.len());
    for row in rows {
        let mut cells = Vec::with_capacity(row.len());
        for cell in row {
            cells.push(
                cell.as_ref()
                    .map(|b| String::from_utf8_lossy(b).into_owned()),
            );
        }
        decoded.push(cells);
    }
    let mut parsed = Vec::with_capacity(decoded.len());
    for cells in &decoded {
        if cells.len() < 14 {
            return Err(bad());
        }
        let row = ColumnRow::of(cells);
        // a name in another character set would be taken for another table's
        if row.table_name.contains(char::REPLACEMENT_CHARACTER) {
            return Err(Failure::refused(
                &errors::CHARACTER_SET,
                "character_set_results",
            ));
        }
        // they are counted from 1
        if row.ordinal_position == 0 {
            return Err(bad());
        }
        parsed.push(row);
    }
    let verify = |bytes: &[u8], tag: &[u8; 16]| keys.metadata_key().verify(bytes, tag);
    Ok(tables_from_rows(parsed, verify))
}

/// Views whose columns the server does not show, because what they select is gone (it warns of that). They are no unprotected tables: what they select may
/// be protected by now, so a statement that names one must not go through with its constants.
fn broken_views(server: &mut Server, database: &str, names: &[&str]) -> Outcome<Vec<Table>> {
    let each: Vec<String> = names
        .iter()
        .map(|name| {
            format!(
                "SELECT TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
                literal(database),
                literal(name)
            )
        })
        .collect();
    if each.is_empty() {
        return Ok(Vec::new());
    }
    let rows = server.rows(each.join(" UNION ALL ").as_bytes())?;
    let text = |cell: Option<&Option<Vec<u8>>>| {
        let bytes = cell.and_then(Option::as_deref).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    };
    let mut found = Vec::new();
    for row in &rows {
        let definition = text(row.get(1));
        // an account without SHOW VIEW does not see what it is about
        let ours = ["$enc", "$eq_", "$ord_", "$gram_"]
            .iter()
            .any(|s| definition.contains(s));
        let damage = match ours || definition.is_empty() {
            true => "a view of columns that are gone",
            false => HIDDEN,
        };
        found.push(Table {
            view: true,
            damaged: Some(damage.into()),
            ..hidden(database, &text(row.first()))
        });
    }
    Ok(found)
}

/// A database of the servers' own whose tables hold nothing that a client has stored. MySQL does not show all their columns.
fn is_virtual(database: &str) -> bool {
    ["information_schema", "performance_schema"]
        .iter()
        .any(|name| name.eq_ignore_ascii_case(database))
}

/// A table of which the account sees that it is there, and none of its columns: they may be protected.
fn hidden(database: &str, name: &str) -> Table {
    Table {
        database: database.to_string(),
        name: name.to_string(),
        columns: Vec::new(),
        table_id: None,
        view: false,
        base: None,
        damaged: Some(HIDDEN.into()),
    }
}

/// Whether the server has left out a table because its definition is changing: in the words of either server.
pub(crate) fn is_locked(warnings: &crate::exchange::Rows) -> bool {
    let code = |row: &Vec<Option<Vec<u8>>>| row.get(1).cloned().flatten().unwrap_or_default();
    let mut codes = warnings.iter().map(code);
    codes.any(|code| matches!(code.as_slice(), b"1205" | b"1684"))
}

/// What writing through a view has to know of the table behind it, if the account may see that. `columns` are the rows that the view was
/// read from.
fn base(
    server: &mut Server,
    keys: &KeySet,
    view: &Table,
    columns: &crate::exchange::Rows,
) -> Outcome<Option<Base>> {
    let question = format!(
        "SELECT CAST(VIEW_DEFINITION AS BINARY) FROM information_schema.VIEWS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} \
         AND IS_UPDATABLE = 'YES'",
        literal(&view.database),
        literal(&view.name)
    );
    let rows = server.rows((question + ALL_ROWS).as_bytes())?;
    let definition = rows.first().and_then(|row| row.first()?.as_deref());
    let source = definition
        .and_then(|text| std::str::from_utf8(text).ok())
        .and_then(view_source);
    let Some(mut source) = source else {
        return Ok(None);
    };
    // a view that was made with a list of names may have others in its text
    let mut names = physical_names(columns, view);
    names.sort_unstable();
    if names.len() != source.columns.len() {
        return Ok(None);
    }
    for ((name, _), (_, listed)) in source.columns.iter_mut().zip(names) {
        *name = listed;
    }
    let question = catalog_query(&source.database, &[&source.table]) + ALL_ROWS;
    let mut found = tables(&server.rows(question.as_bytes())?, keys)?;
    settle_parts(server, found.iter_mut())?;
    Ok(match found.as_slice() {
        [table] => Base::of(view, &source, table),
        _ => None,
    })
}

/// The names of a view's columns on the server, and their places.
fn physical_names(rows: &crate::exchange::Rows, view: &Table) -> Vec<(u64, String)> {
    let mut names = Vec::new();
    for row in rows {
        let cells: Vec<Option<String>> = row
            .iter()
            .map(|cell| Some(String::from_utf8_lossy(cell.as_deref()?).into_owned()))
            .collect();
        let row = ColumnRow::of(&cells);
        if row.table_schema == view.database && row.table_name == view.name {
            names.push((row.ordinal_position, row.column_name.to_owned()));
        }
    }
    names
}

/// A text in a query whose meaning no setting of the session changes.
fn literal(text: &str) -> String {
    let hex: String = text.bytes().map(|b| format!("{b:02x}")).collect();
    format!("CONVERT(x'{hex}' USING utf8mb4)")
}

/// What to ask for: the names as they stand, and in lower case where that is something else.
fn spellings<'a>(database: &'a str, names: &[&'a str]) -> Vec<(Cow<'a, str>, Vec<Cow<'a, str>>)> {
    let has_upper = |text: &str| text.chars().any(char::is_uppercase);
    let lower = || {
        let names = names.iter().filter(|n| has_upper(n));
        names.map(|n| Cow::Owned(n.to_lowercase()))
    };
    let as_given = names.iter().map(|n| Cow::Borrowed(*n));
    let mut asked: Vec<(Cow<str>, Vec<Cow<str>>)> =
        vec![(Cow::Borrowed(database), as_given.chain(lower()).collect())];
    if has_upper(database) {
        let all = names.iter().map(|n| Cow::Owned(n.to_lowercase())).collect();
        asked.push((Cow::Owned(database.to_lowercase()), all));
    }
    // Names of databases and tables are in the basic plane; servers refuse to compare others with them.
    let possible = |name: &str| name.chars().all(|c| c <= '\u{ffff}');
    for (_, names) in &mut asked {
        names.retain(|n| possible(n));
        names.sort_unstable();
        names.dedup();
    }
    asked.retain(|(database, names)| possible(database) && !names.is_empty());
    asked
}

/// The default collation of a database or of a table, as [`COLLATION`] says.
fn default_collation(server: &mut Server, database: &str, name: &str) -> Outcome<Option<Table>> {
    let table = name.strip_prefix(COLLATION).unwrap_or_default();
    let database_is = literal(database);
    let sql = if table.is_empty() {
        format!(
            "SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = {database_is}"
        )
    } else {
        format!(
            "SELECT TABLE_COLLATION FROM information_schema.TABLES WHERE TABLE_SCHEMA = {database_is} AND TABLE_NAME = {}",
            literal(table)
        )
    };
    let rows = server.rows(sql.as_bytes())?;
    let name = rows
        .into_iter()
        .next()
        .and_then(|r| r.into_iter().next().flatten());
    Ok(name.map(|n| Table {
        database: database.to_string(),
        name: String::from_utf8_lossy(&n).into_owned(),
        columns: Vec::new(),
        table_id: None,
        view: false,
        base: None,
        damaged: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(account: &Account, name: &str) -> bool {
        !matches!(account.table("app", name), Known::Unknown)
    }

    #[test]
    fn names_that_are_no_tables_are_forgotten_first() {
        let account = Account::new(None);
        let table = Table {
            database: "app".into(),
            name: "t".into(),
            columns: Vec::new(),
            table_id: None,
            view: false,
            damaged: None,
            base: None,
        };
        account.know("app", "t", Some(table.clone()));
        for n in 0..NAMES - 2 {
            account.know("app", &format!("none{n}"), None);
        }
        let generation = account.generation();
        assert!(!account.make_room() && account.generation() == generation);
        account.know("app", "one_more", None);
        assert!(account.make_room() && account.generation() > generation);
        assert!(known(&account, "t") && !known(&account, "none0"));

        for n in 0..NAMES {
            account.know("app", &format!("t{n}"), Some(table.clone()));
        }
        assert!(account.make_room());
        assert!(!known(&account, "t0"));
    }
}
