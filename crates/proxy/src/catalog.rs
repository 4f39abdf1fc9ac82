//! The snapshot of the schema and the plans made from it, for each account.
//!
//! Accounts see different tables and columns, so snapshots are not shared between them. A table
//! is looked up over the session's own connection when a statement first names it, again when
//! the server's answer shows that the snapshot is old (unknown column, our CHECK constraint, a
//! sealed column where none was expected), and again when it was last looked at more than
//! [`RECHECK`] ago. Any real difference moves the generation on and with it every cached plan.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use ahash::RandomState;
use onionskin_crypt::ColumnCipher;
use onionskin_crypt::ColumnId;
use onionskin_keys::{KeySet, Suite};
use onionskin_plan::{Action, COLLATION, Catalog, ColumnUse, Known, Plan, Settings, errors};
use onionskin_schema::{
    Base, ColumnRow, Table, catalog_query, same_name, tables_from_rows, view_source,
};
use parking_lot::RwLock;

use crate::error::{Failure, Outcome};
use crate::exchange::{ALL_ROWS, Server};
use crate::open::Shown;
use crate::temporary::folded;

/// How old what is known of a table may be.
const RECHECK: Duration = Duration::from_secs(1);
/// Names that are kept for one account: tables, and identifiers of statements that turned out to be none.
const NAMES: usize = 16_384;
/// Plans kept for one combination of settings.
const PLANS: usize = 4096;
/// Statements with longer shapes are planned every time.
const LONGEST_SHAPE: usize = 16 * 1024;

/// All accounts of the proxy.
#[derive(Default)]
pub(crate) struct Accounts {
    shared: RwLock<HashMap<String, Arc<Account>>>,
    /// Those of single sessions: see [`Account::private`].
    private: RwLock<Vec<Weak<Account>>>,
}

impl Accounts {
    pub fn get(&self, name: &str) -> Arc<Account> {
        if let Some(found) = self.shared.read().get(name) {
            return Arc::clone(found);
        }
        Arc::clone(
            self.shared
                .write()
                .entry(name.to_string())
                .or_insert_with(|| Arc::new(Account::new())),
        )
    }

    /// A snapshot for one session, which lives as long as the session holds it.
    pub fn private(&self) -> Arc<Account> {
        let account = Arc::new(Account::private());
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

struct Entry {
    /// `None`: there is no such table.
    table: Option<Arc<Table>>,
    /// Milliseconds since the account's beginning.
    checked: AtomicU64,
}

/// One account's view of the schema.
pub(crate) struct Account {
    began: Instant,
    tables: RwLock<HashMap<(String, String), Arc<Entry>>>,
    generation: AtomicU64,
    spaces: RwLock<HashMap<Vec<u8>, Arc<PlanSpace>>>,
    /// Temporary tables of the one session whose account this is; `None` for accounts that sessions share.
    temporary: Option<RwLock<Temporaries>>,
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
    /// Errors of its rows become warnings.
    pub ignores: bool,
    entries: Vec<Arc<Entry>>,
}

/// The plans made under one combination of settings.
pub(crate) struct PlanSpace {
    pub settings: Settings,
    plans: RwLock<HashMap<Vec<u8>, Arc<Prepared>, RandomState>>,
}

impl Account {
    fn new() -> Self {
        Account {
            began: Instant::now(),
            tables: RwLock::default(),
            generation: AtomicU64::new(1),
            spaces: RwLock::default(),
            temporary: None,
        }
    }

    /// The snapshot of one session that has temporary tables with protected columns. Generations begin far from those of
    /// shared snapshots: no statement that was planned before counts as fresh.
    fn private() -> Self {
        Account {
            generation: AtomicU64::new(1 << 62),
            temporary: Some(RwLock::default()),
            ..Account::new()
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

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub fn space(&self, key: Vec<u8>, settings: Settings) -> Arc<PlanSpace> {
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
            })
        }))
    }

    /// Looks tables up at the server. Returns whether anything is different from before.
    ///
    /// Each name is asked for as it stands and in lower case, because `lower_case_table_names` decides which of them the server
    /// means: a table in exactly these letters comes first, any other that differs in case alone counts as well. So a table
    /// may be taken for a protected one whose name it nearly has, and never the other way round.
    pub fn look_up(
        &self,
        server: &mut Server,
        keys: &KeySet,
        names: &[(String, String)],
    ) -> Outcome<bool> {
        let mut by_database: HashMap<&str, Vec<&str>> = HashMap::new();
        let mut changed = self.make_room();
        for (database, name) in names {
            by_database.entry(database).or_default().push(name);
        }
        for (database, names) in by_database {
            let (collations, real): (Vec<&str>, Vec<&str>) =
                names.iter().partition(|n| n.starts_with(COLLATION));
            let mut found = Vec::new();
            if !real.is_empty() {
                for (database, real) in spellings(database, &real) {
                    let real: Vec<&str> = real.iter().map(|n| &**n).collect();
                    let question = catalog_query(&database, &real) + ALL_ROWS;
                    let rows = server.rows(question.as_bytes())?;
                    let warned = server.warnings_at_end()? > 0;
                    let mut these = tables(&rows, keys)?;
                    if warned {
                        let missing = |n: &&str| !these.iter().any(|t| t.name == **n);
                        let missing: Vec<&str> = real.iter().copied().filter(missing).collect();
                        these.extend(broken_views(server, &database, &missing)?);
                    }
                    for view in these.iter_mut().filter(|t| t.view && t.damaged.is_none()) {
                        view.base = base(server, keys, view, &rows)?;
                    }
                    found.append(&mut these);
                }
            }
            let mut defaults = HashMap::new();
            for name in collations {
                if let Some(table) = default_collation(server, database, name)? {
                    defaults.insert(name, table);
                }
            }
            let now = self.now();
            let mut tables = self.tables.write();
            for name in names {
                let table = defaults.get(name).or_else(|| {
                    let exact = |t: &&Table| t.name == name && t.database == database;
                    let nearly = |t: &&Table| same_name(&t.name, name);
                    found.iter().find(exact).or(found.iter().find(nearly))
                });
                let key = (database.to_string(), name.to_string());
                if let Some(entry) = tables.get(&key)
                    && entry.table.as_deref() == table
                {
                    entry.checked.store(now, Ordering::Relaxed);
                    continue;
                }
                let known_before = tables.contains_key(&key);
                let entry = Entry {
                    table: table.cloned().map(Arc::new),
                    checked: AtomicU64::new(now),
                };
                tables.insert(key, Arc::new(entry));
                if known_before {
                    changed = true;
                }
            }
        }
        if changed {
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
        Ok(changed)
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
        self.generation.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// Forgets everything known of these names, as tables and as databases, and every plan.
    fn forget(&self, names: &[(String, String)]) {
        self.tables.write().retain(|(database, table), entry| {
            // what is known of a view may be about one of these tables
            let is_view = entry.table.as_ref().is_some_and(|table| table.view);
            let is_meant = names.iter().any(|(d, name)| {
                (same_name(d, database) && same_name(name, table)) || same_name(name, database)
            });
            !is_view && !is_meant
        });
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Takes a table, or that there is none, for known, and for never in need of another look: on the stage of
    /// [`crate::hot_path`] there is no server to ask.
    pub fn know(&self, database: &str, name: &str, table: Option<Table>) {
        let entry = Entry {
            table: table.map(Arc::new),
            checked: AtomicU64::new(u64::MAX),
        };
        let key = (database.to_string(), name.to_string());
        self.tables.write().insert(key, Arc::new(entry));
    }

    /// Makes a plan ready for execution. `ignores`: see [`Prepared`].
    pub fn prepare(
        &self,
        plan: Plan,
        keys: &KeySet,
        generation: u64,
        ignores: bool,
    ) -> Outcome<Arc<Prepared>> {
        let ciphers = plan
            .columns
            .iter()
            .map(|column| cipher(keys, column))
            .collect::<Outcome<Vec<_>>>()?;
        let tables = self.tables.read();
        // the scratch engine gets plain tables as they are known here
        let all = matches!(plan.action, Action::Scratch(_) | Action::ScratchWrite(_));
        let entries = plan
            .names
            .iter()
            .filter_map(|n| tables.get(n))
            .filter(|e| e.table.as_ref().is_some_and(|t| all || t.is_protected()))
            .cloned()
            .collect();
        drop(tables);
        Ok(Arc::new(Prepared {
            plan,
            ciphers,
            generation,
            shown: RwLock::default(),
            ignores,
            entries,
        }))
    }

    /// Whether a table of the plan should be looked up again; the first who asks does it.
    pub fn recheck_due(&self, prepared: &Prepared) -> bool {
        if prepared.entries.is_empty() {
            return false;
        }
        let now = self.now();
        let limit = u64::try_from(RECHECK.as_millis()).unwrap_or(u64::MAX);
        prepared.entries.iter().any(|e| {
            let checked = e.checked.load(Ordering::Relaxed);
            now.saturating_sub(checked) > limit
                && e.checked
                    .compare_exchange(checked, now, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
        })
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
        match self.tables.read().get(&key) {
            None => Known::Unknown,
            Some(entry) => match &entry.table {
                Some(table) => Known::Table(Arc::clone(table)),
                None => Known::Absent,
            },
        }
    }
}

impl PlanSpace {
    pub fn get(&self, shape: &[u8]) -> Option<Arc<Prepared>> {
        self.plans.read().get(shape).cloned()
    }

    pub fn put(&self, shape: &[u8], prepared: &Arc<Prepared>) {
        if shape.len() > LONGEST_SHAPE {
            return;
        }
        let mut plans = self.plans.write();
        if plans.len() >= PLANS {
            plans.clear();
        }
        plans.insert(shape.to_vec(), Arc::clone(prepared));
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
    let suite = Suite::from_id(protection.suite)
        .ok_or_else(|| Failure::refused(&errors::DAMAGED, column.path()))?;
    let id = ColumnId {
        table,
        column: protection.column_id,
    };
    keys.column_cipher(suite, key_id, id, protection.capabilities.join.as_deref())
        .map_err(|e| Failure::key(&e, &column.path()))
}

fn tables(rows: &crate::exchange::Rows, keys: &KeySet) -> Outcome<Vec<Table>> {
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

/// Views whose columns the server does not show, because what they select is gone (it warns of that). One over sealed columns is no unprotected table: a
/// statement that names it must not go through with its constants.
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
        if ours || definition.is_empty() {
            found.push(Table {
                database: database.to_string(),
                name: text(row.first()),
                columns: Vec::new(),
                table_id: None,
                view: true,
                base: None,
                damaged: Some("a view of columns that are gone".into()),
            });
        }
    }
    Ok(found)
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
    let found = tables(&server.rows(question.as_bytes())?, keys)?;
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
        let account = Account::new();
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
