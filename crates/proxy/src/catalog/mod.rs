//! The snapshot of the schema and the plans made from it, for each account.
//!
//! Accounts see different tables and columns, so snapshots are not shared between them. A table
//! is looked up over the session's own connection when a statement first names it, again when
//! the server's answer shows that the snapshot is old (unknown column, our CHECK constraint, a
//! sealed column where none was expected), and again, along with all others that are in use, a
//! second after the last look ([`crate::renewal`]). Any real difference moves the generation on
//! and with it every cached plan.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | accounts: what each knows of the schema, and how it is forgotten |
//! | `look_up` | tables are looked up at the server |
//! | `names`, `rows` | what a look-up asks for, and the tables in its answer |
//! | `views` | views that are broken, and what is behind others |
//! | `once` | the names that were protected once |
//! | `temporary` | the temporary tables of one session |
//! | `plans` | the plans that are kept |
//! | `keyed_plan` | a plan gets its ciphers, and is told what it rests on |

mod keyed_plan;
mod look_up;
mod names;
mod once;
mod plans;
mod rows;
mod temporary;
mod views;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use onionskin_keys::KeySet;
use onionskin_plan::{COLLATION, Catalog, Known, Settings};
use onionskin_schema::{PinnedTable, Policy, Table, TableName, same_name};
use parking_lot::RwLock;

use crate::age::Age;
use crate::mask::{AccountMasks, Masks};
use crate::pins::PinFile;
use crate::renewal::{Lists, Turns};
use names::is_virtual;
pub(crate) use once::OnceProtected;
use temporary::{Temporary, TemporaryTables};

pub(crate) use keyed_plan::{MAX_PLANS, PlanOrigin, cipher_of};
pub(crate) use look_up::{LookUp, default_collations, texts};
pub(crate) use names::literal;
pub(crate) use plans::{KeyedPlan, PlanSpace, PlanSpaces};
pub(crate) use rows::{hidden, is_locked, tables};
pub(crate) use temporary::folded;

/// Names that are kept for one account: tables, and identifiers of statements that turned out to be
/// none.
const NAMES: usize = 16_384;

/// The next snapshot's number.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// All accounts of the proxy.
#[derive(Default)]
pub(crate) struct Accounts {
    shared: RwLock<HashMap<String, Arc<Account>>>,
    /// Those of single sessions: see [`Account::private`].
    private: RwLock<Vec<Weak<Account>>>,
    rules: Rules,
}

/// What an account's plans rest on beside the schema.
#[derive(Clone, Default)]
pub(crate) struct Rules {
    pub pins: Option<Arc<PinFile>>,
    pub policy: Arc<Policy>,
    pub masks: Arc<Masks>,
    /// The same for every configuration of the running proxy.
    pub once: Arc<OnceProtected>,
    /// Which configuration of the running proxy they belong to: the first is 0.
    pub edition: u64,
}

impl Rules {
    /// Where the generations of shared snapshots begin: no plan that was made under other rules
    /// counts as fresh under these.
    fn first_generation(&self) -> u64 {
        (self.edition << 32) + 1
    }
}

impl Accounts {
    pub fn new(rules: Rules) -> Self {
        Accounts {
            rules,
            ..Accounts::default()
        }
    }

    /// The names that were protected once, for the accounts of another configuration.
    pub fn once_protected(&self) -> Arc<OnceProtected> {
        Arc::clone(&self.rules.once)
    }

    /// How many plans there are.
    pub fn plans(&self) -> usize {
        let shared: Vec<_> = self.shared.read().values().cloned().collect();
        let private: Vec<_> = self.private.read().clone();
        let private = private.iter().filter_map(Weak::upgrade);
        shared
            .into_iter()
            .chain(private)
            .map(|a| a.spaces.plans())
            .sum()
    }

    /// Whether any account knows a protected table.
    pub fn knows_protected(&self) -> bool {
        let is_protected = |entry: &Arc<Entry>| {
            let table = entry.table.as_ref();
            table.is_some_and(|table| table.is_protected())
        };
        let accounts: Vec<_> = self.shared.read().values().cloned().collect();
        let mut accounts = accounts.iter();
        accounts.any(|account| account.tables.read().values().any(is_protected))
    }

    /// The protected tables that accounts know; one may be there more than once.
    pub fn protected(&self) -> Vec<Arc<Table>> {
        let accounts: Vec<_> = self.shared.read().values().cloned().collect();
        let mut protected = Vec::new();
        for account in accounts {
            let tables = account.tables.read();
            let tables = tables.values().filter_map(|entry| entry.table.as_ref());
            protected.extend(tables.filter(|t| t.is_protected() && !t.view).cloned());
        }
        protected
    }

    /// Whether any account has found a table plain by a look-up that began after that time.
    pub fn found_plain(&self, name: &TableName, after: u64) -> bool {
        let accounts: Vec<_> = self.shared.read().values().cloned().collect();
        accounts.iter().any(|account| {
            let tables = account.tables.read();
            let entry = tables.get(name);
            entry.is_some_and(|entry| {
                let table = entry.table.as_ref();
                let is_plain = table.is_some_and(|table| !table.view && !table.is_protected());
                is_plain && entry.age.is_newer_than(after)
            })
        })
    }

    pub fn get(&self, name: &str) -> Arc<Account> {
        if let Some(found) = self.shared.read().get(name) {
            return Arc::clone(found);
        }
        Arc::clone(
            self.shared
                .write()
                .entry(name.to_string())
                .or_insert_with(|| Arc::new(Account::new(self.rules.clone(), name))),
        )
    }

    /// A snapshot for one session of this account, which lives as long as the session holds it.
    pub fn private(&self, name: &str) -> Arc<Account> {
        self.keep_private(Account::private(self.rules.clone(), name))
    }

    /// A session's snapshot goes on under these rules, or with other roles: its temporary tables
    /// are what they were.
    pub fn private_after(&self, before: &Account, name: &str) -> Arc<Account> {
        let mut account = Account::private(self.rules.clone(), name);
        account.temporary = before.temporary.as_ref().map(TemporaryTables::copy);
        self.keep_private(account)
    }

    fn keep_private(&self, account: Account) -> Arc<Account> {
        let account = Arc::new(account);
        let mut private = self.private.write();
        private.retain(|a| a.strong_count() > 0);
        private.push(Arc::downgrade(&account));
        account
    }

    /// Forgets what any account knows of these names: a definition has changed.
    pub fn forget(&self, names: &[TableName]) {
        for account in self.shared.read().values() {
            account.forget(names);
        }
        for account in self.private.read().iter().filter_map(Weak::upgrade) {
            account.forget(names);
        }
    }
}

/// What is known of a name.
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
    /// No other snapshot of this program has it: another account, or the same with other roles,
    /// may be in the same generation.
    number: u64,
    /// The names that there are.
    pub lists: RwLock<Lists>,
    /// What is known of the names that statements have. Taken after `lists`, where both are.
    pub tables: RwLock<HashMap<TableName, Arc<Entry>>>,
    pub turns: Turns,
    generation: AtomicU64,
    /// How often names were forgotten: what was asked before that is not taken over.
    epoch: AtomicU64,
    spaces: PlanSpaces,
    /// Temporary tables of the one session whose account this is; `None` for accounts that sessions
    /// share.
    temporary: Option<TemporaryTables>,
    pub rules: Rules,
    /// What the account sees of protected columns.
    pub masks: AccountMasks,
    /// See [`PinFile::refresh`].
    pins_seen: AtomicU64,
    /// Which names were protected once when plans were made: see [`Self::heed_protected`].
    once_seen: AtomicU64,
}

impl Account {
    fn new(rules: Rules, name: &str) -> Self {
        // plans that this account makes rest on the pins as they are now
        let seen = rules.pins.as_ref().map_or(0, |pins| pins.version());
        Account {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            generation: AtomicU64::new(rules.first_generation()),
            masks: rules.masks.of(name),
            rules,
            pins_seen: AtomicU64::new(seen),
            once_seen: AtomicU64::new(0),
            lists: RwLock::default(),
            tables: RwLock::default(),
            turns: Turns::default(),
            epoch: AtomicU64::new(0),
            spaces: PlanSpaces::default(),
            temporary: None,
        }
    }

    #[cfg(test)]
    pub fn for_tests() -> Account {
        Account::new(Rules::default(), "")
    }

    /// The snapshot of one session that has temporary tables with protected columns. Generations
    /// begin far from those of shared snapshots: no statement that was planned before counts as
    /// fresh.
    fn private(rules: Rules, name: &str) -> Self {
        Account {
            generation: AtomicU64::new((1 << 62) + rules.first_generation()),
            temporary: Some(TemporaryTables::default()),
            ..Account::new(rules, name)
        }
    }

    pub fn is_private(&self) -> bool {
        self.temporary.is_some()
    }

    /// The session's temporary tables.
    pub fn temporary_names(&self) -> Vec<TableName> {
        let tables = self.temporary.as_ref();
        tables.map(TemporaryTables::names).unwrap_or_default()
    }

    /// A temporary table is about to be made. Until it is known, its name cannot be used. Returns
    /// what was known under the name before.
    pub fn expect_temporary(&self, name: &TableName) -> Option<Arc<Table>> {
        self.rules.once.note_temporary(name);
        self.temporary.as_ref()?.expect(name)
    }

    /// The temporary table was not made: what was known before still holds.
    pub fn give_up_temporary(&self, name: &TableName, before: Option<Arc<Table>>) {
        if let Some(temporary) = &self.temporary {
            temporary.give_up(name, before);
        }
    }

    /// What the server shows of a temporary table, which it says is one.
    pub fn take_temporary(&self, name: &TableName, table: Arc<Table>) {
        let is_protected = table.is_protected();
        if is_protected {
            self.rules.once.note_columns_of(&table);
        }
        if let Some(temporary) = &self.temporary
            && temporary.take(name, table)
        {
            self.new_generation();
        }
    }

    /// Whether what is known under this name is a temporary table in plaintext.
    pub fn is_plain_temporary(&self, name: &TableName) -> bool {
        let tables = self.temporary.as_ref();
        let found = tables.and_then(|tables| tables.get(name));
        matches!(found, Some(Temporary::Known(table)) if !table.is_protected())
    }

    /// What the server shows under the name of a temporary table. One with other ids is another
    /// table.
    pub fn set_temporary(&self, name: &TableName, table: Option<Arc<Table>>) {
        if let Some(table) = &table {
            self.rules.once.note_columns_of(table);
        }
        if let Some(temporary) = &self.temporary {
            temporary.set(name, table);
            self.new_generation();
        }
    }

    fn is_temporary(&self, name: &TableName) -> bool {
        let tables = self.temporary.as_ref();
        tables.is_some_and(|tables| tables.hide(name))
    }

    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub fn new_generation(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Where a table has become a protected one at any server, no plan from before counts.
    pub fn heed_protected(&self) {
        let version = self.rules.once.version();
        if self.once_seen.load(Ordering::Acquire) != version {
            // in this order: whoever finds it heeded finds no plan from before
            self.new_generation();
            self.once_seen.fetch_max(version, Ordering::Release);
        }
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Whether a plan was made from this snapshot, and nothing is known that it does not know.
    #[inline]
    pub fn is_fresh(&self, keyed: &KeyedPlan) -> bool {
        keyed.snapshot == self.number && keyed.generation == self.generation()
    }

    /// Whether a plan was made under the rules of this snapshot.
    pub fn made(&self, keyed: &KeyedPlan) -> bool {
        keyed.edition == self.rules.edition
    }

    /// The plans under one combination of settings, which has this key.
    pub fn space(&self, key: Vec<u8>, settings: Settings) -> Arc<PlanSpace> {
        self.spaces.get(key, settings)
    }

    /// Reads the pins again if their file has changed. Returns whether there are others than this
    /// account has seen.
    pub fn refresh_pins(&self, keys: &KeySet) -> bool {
        let Some(pins) = &self.rules.pins else {
            return false;
        };
        let version = pins.refresh(keys);
        let changed = self.pins_seen.swap(version, Ordering::AcqRel) != version;
        if changed {
            self.rules.once.note_pinned(&pins.pins());
        }
        changed
    }

    /// Whether `SHOW CREATE TABLE` tells whether a name is what is known of it: temporary tables
    /// hide others, and are known by themselves.
    pub fn can_be_confirmed(&self, name: &TableName) -> bool {
        !name.name.starts_with(COLLATION) && !is_virtual(&name.database) && !self.is_temporary(name)
    }

    /// Forgets names if there are many, and then every plan: one whose tables are no longer in the
    /// snapshot would not see them change. Those that are no tables go first. Returns whether it
    /// did.
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
    fn forget(&self, names: &[TableName]) {
        let mut lists = self.lists.write();
        self.epoch.fetch_add(1, Ordering::AcqRel);
        lists.clear();
        self.tables.write().retain(|known, entry| {
            // what is known of a view may be about one of these tables
            let is_view = entry.table.as_ref().is_some_and(|table| table.view);
            let is_meant = names
                .iter()
                .any(|meant| known.is_same(meant) || same_name(&known.database, &meant.name));
            !is_view && !is_meant
        });
        self.new_generation();
    }

    /// Takes a table, or that there is none, for known, and for never in need of another look: on
    /// the stage of [`crate::hot_path`] there is no server to ask.
    pub fn know(&self, database: &str, name: &str, table: Option<Table>) {
        let listed = table.is_some().then_some(name);
        self.lists.write().know(database, listed);
        let key = TableName::new(database, name);
        let entry = self.entry(table, u64::MAX);
        self.tables.write().insert(key, entry);
    }

    /// What is found under a name.
    fn entry(&self, table: Option<Table>, checked: u64) -> Arc<Entry> {
        if let Some(table) = &table {
            self.rules.once.note(table);
        }
        Entry::new(table, checked)
    }
}

impl Catalog for Account {
    fn table(&self, database: &str, name: &str) -> Known {
        let key = TableName::new(database, name);
        let temporary = self.temporary.as_ref();
        if let Some(found) = temporary.and_then(|tables| tables.get(&key)) {
            return match found {
                Temporary::Known(table) => Known::Table(table),
                Temporary::Expected => Known::Unknown,
            };
        }
        // what a plan rests on has to be there when it is made
        let lists = self.lists.read();
        if !lists.carry(database) {
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
        let pinned = self.rules.pins.as_ref()?.get(database, name)?;
        // a temporary table is the session's own, if it was made here
        let key = TableName::new(database, name);
        let is_own = self.is_temporary(&key) && !self.is_plain_temporary(&key);
        (!is_own).then_some(pinned)
    }

    fn was_protected(&self, database: &str, name: &str) -> bool {
        let key = TableName::new(database, name);
        self.rules.once.has(&key) || self.pinned(database, name).is_some()
    }

    fn was_protected_somewhere(&self, name: &str) -> bool {
        let is_pinned = |pins: &Arc<PinFile>| {
            let pins = pins.pins();
            pins.tables().any(|table| same_name(&table.name, name))
        };
        self.rules.once.has_somewhere(name) || self.rules.pins.as_ref().is_some_and(is_pinned)
    }

    fn names_protected(&self, column: &str) -> bool {
        self.rules.once.has_column(column)
    }
}

#[cfg(test)]
mod tests;
