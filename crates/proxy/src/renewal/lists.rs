//! Lists of names: which databases there are, and which tables each of them has.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock, Weak};

use onionskin_schema::TableName;
use parking_lot::Mutex;

use crate::age::Age;

/// Names as the server has them, by their letters without case.
type Spellings = HashMap<String, Vec<String>>;

/// A list of names: of the databases, or of the tables of one.
pub(crate) struct Names {
    pub age: Arc<Age>,
    /// The server has told all of them. Of a list that is [supposed](Lists::suppose) only, names
    /// are missing, and what it does not have may be there.
    is_whole: bool,
    pub real: Arc<Spellings>,
}

/// The lists that accounts have, by what they are lists of. Most accounts see the same names, and a
/// name takes 200 bytes: each list is kept once, whoever has it.
static COMMON: LazyLock<Mutex<HashMap<String, Vec<Weak<Spellings>>>>> =
    LazyLock::new(Mutex::default);

/// A list, or an equal one that somebody has already.
fn in_common(of: &str, names: Spellings) -> Arc<Spellings> {
    let mut common = COMMON.lock();
    if !common.contains_key(of) {
        // of databases that are gone nobody has one
        common.retain(|_, lists| lists.iter().any(|list| list.strong_count() > 0));
    }
    let lists = common.entry(of.to_owned()).or_default();
    lists.retain(|list| list.strong_count() > 0);
    let mut held = lists.iter().filter_map(Weak::upgrade);
    if let Some(equal) = held.find(|list| **list == names) {
        return equal;
    }
    let names = Arc::new(names);
    lists.push(Arc::downgrade(&names));
    names
}

/// The list of the databases stands under this name, which no database has.
pub(crate) const DATABASES: &str = "";

/// All lists of an account.
#[derive(Default)]
pub(crate) struct Lists(HashMap<String, Names>);

impl Lists {
    /// The list of a database; of [`DATABASES`], that of the databases.
    pub fn get(&self, of: &str) -> Option<&Names> {
        self.0.get(of)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&String, &Names)> {
        self.0.iter()
    }

    /// Forgets the lists of these databases, whose names are given without case.
    pub fn forget(&mut self, databases: &HashSet<String>) {
        let gone = |of: &str| of != DATABASES && databases.contains(&fold(of));
        self.0.retain(|of, _| !gone(of));
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The databases that a name may mean, as far as is known; `None` if nothing is.
    pub fn databases(&self, name: &str) -> Option<&[String]> {
        let found = self.0.get(DATABASES)?.real.get(&fold(name));
        Some(found.map(Vec::as_slice).unwrap_or_default())
    }

    /// Whether there may be such a table; `None` if that is not known.
    pub fn has(&self, database: &str, name: &str) -> Option<bool> {
        let name = fold(name);
        let (mut found, mut is_certain) = (false, self.has_database(database).is_some());
        for database in self.databases(database)? {
            let list = self.0.get(database)?;
            found |= list.real.contains_key(&name);
            is_certain &= list.is_whole;
        }
        (found || is_certain).then_some(found)
    }

    /// Whether there may be such a database; `None` if that is not known.
    pub fn has_database(&self, name: &str) -> Option<bool> {
        let found = !self.databases(name)?.is_empty();
        let is_certain = self.0.get(DATABASES)?.is_whole;
        (found || is_certain).then_some(found)
    }

    /// Whether there are lists, be they supposed, on which a plan with a table of this database can
    /// rest.
    pub fn carry(&self, database: &str) -> bool {
        let databases = self.databases(database);
        databases.is_some_and(|all| all.iter().all(|name| self.0.contains_key(name)))
    }

    /// Takes these databases for known, and what they hold for out of date: whoever uses a list
    /// reads it first. Plans rest on lists.
    pub fn suppose(&mut self, databases: &[&str]) {
        let names = || Names {
            age: Age::of(0),
            is_whole: false,
            real: Arc::default(),
        };
        let all = self.0.entry(DATABASES.into()).or_insert_with(names);
        let all = Arc::make_mut(&mut all.real);
        for database in databases {
            let real = all.entry(fold(database)).or_default();
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
    pub fn ages(&self, names: &[TableName]) -> Vec<Arc<Age>> {
        let mut ages = Vec::new();
        let Some(databases) = self.0.get(DATABASES) else {
            return ages;
        };
        ages.push(Arc::clone(&databases.age));
        let asked: HashSet<&str> = names.iter().map(|n| n.database.as_str()).collect();
        for name in asked {
            let real = self.databases(name).unwrap_or_default();
            let lists = real.iter().filter_map(|name| self.0.get(name));
            ages.extend(lists.map(|list| Arc::clone(&list.age)));
        }
        ages
    }

    /// Takes a table for known to be there, or not, for good: see
    /// [`Account::know`](crate::catalog::Account::know).
    pub fn know(&mut self, database: &str, name: Option<&str>) {
        let names = || Names {
            age: Age::of(u64::MAX),
            is_whole: true,
            real: Arc::default(),
        };
        let add = |list: &mut Names, name: &str| {
            let real = Arc::make_mut(&mut list.real);
            let real = real.entry(fold(name)).or_default();
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

    /// Puts a list that was read in the place of the one before, unless that one is newer. Returns
    /// the names, without case, that are in one of the two only.
    pub fn put(&mut self, of: &str, names: Vec<String>, checked: u64) -> HashSet<String> {
        let mut real = Spellings::with_capacity(names.len());
        for name in names {
            real.entry(fold(&name)).or_default().push(name);
        }
        let Some(list) = self.0.get_mut(of) else {
            let age = Age::of(checked);
            let names = Names {
                age,
                is_whole: true,
                real: in_common(of, real),
            };
            self.0.insert(of.to_owned(), names);
            return HashSet::new();
        };
        // answers come in another order than questions
        if list.age.is_newer_than(checked) {
            return HashSet::new();
        }
        let differs = |a: &Spellings, b: &Spellings| {
            let missing = a.iter().filter(|(k, v)| b.get(*k) != Some(v));
            missing.map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        let mut changed: HashSet<String> = differs(&list.real, &real).into_iter().collect();
        changed.extend(differs(&real, &list.real));
        if !changed.is_empty() {
            list.real = in_common(of, real);
        }
        list.is_whole = true;
        list.age.renew(checked);
        changed
    }
}

/// A name without its letters' case. Names that a server takes for one have one; sometimes others,
/// too.
pub(crate) fn fold(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let letters = name.chars().flat_map(char::to_uppercase);
    let letters = letters.flat_map(char::to_lowercase);
    // servers take the capital I with a dot for an i
    letters.filter(|c| *c != '\u{307}').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_supposed_tells_of_no_absence() {
        let mut lists = Lists::default();
        assert_eq!(lists.has("app", "t"), None);
        lists.suppose(&["other"]);
        assert_eq!(lists.has_database("app"), None);
        assert_eq!(lists.has("app", "t"), None);
        assert_eq!(lists.has_database("other"), Some(true));
        assert_eq!(lists.has("other", "t"), None);
        assert!(lists.carry("other"));
        lists.put(DATABASES, vec!["app".into(), "other".into()], 5);
        lists.put("app", vec!["t".into()], 5);
        assert_eq!(lists.has("app", "t"), Some(true));
        assert_eq!(lists.has("app", "u"), Some(false));
        assert_eq!(lists.has_database("gone"), Some(false));
        assert_eq!(lists.has("other", "t"), None);
    }

    #[test]
    fn accounts_that_see_the_same_names_have_one_list() {
        let names = |more: &[&str]| {
            let all = ["t", "u"].iter().chain(more);
            all.map(|name| (*name).to_owned()).collect::<Vec<_>>()
        };
        let real = |lists: &Lists| lists.get("common").map(|list| Arc::clone(&list.real));
        let are_one = |a: &Lists, b: &Lists| match (real(a), real(b)) {
            (Some(a), Some(b)) => Arc::ptr_eq(&a, &b),
            _ => false,
        };
        let [mut one, mut other, mut less] = [(); 3].map(|()| Lists::default());
        for lists in [&mut one, &mut other, &mut less] {
            lists.put(DATABASES, vec!["common".into()], 5);
        }
        one.put("common", names(&[]), 5);
        other.put("common", names(&[]), 6);
        less.put("common", vec!["t".into()], 6);
        assert!(are_one(&one, &other));
        assert!(!are_one(&one, &less));

        // what one has learnt is not what the other knows
        one.put("common", names(&["v"]), 7);
        assert_eq!(one.has("common", "v"), Some(true));
        assert_eq!(other.has("common", "v"), Some(false));
        assert!(!are_one(&one, &other));
        other.know("common", Some("w"));
        assert_eq!(other.has("common", "w"), Some(true));
        assert_eq!(one.has("common", "w"), Some(false));

        // nor is one that they come to have in the end two
        other.put("common", names(&["v"]), 8);
        less.put("common", names(&["v"]), 8);
        assert!(are_one(&one, &other) && are_one(&one, &less));
    }

    #[test]
    fn an_older_answer_that_comes_late_changes_nothing() {
        let mut lists = Lists::default();
        lists.put(DATABASES, vec!["app".into()], 5);
        lists.put("app", vec!["t".into()], 7);
        assert!(lists.put("app", Vec::new(), 6).is_empty());
        assert_eq!(lists.has("app", "t"), Some(true));
        assert!(lists.put("app", Vec::new(), 8).contains("t"));
        assert_eq!(lists.has("app", "t"), Some(false));
    }
}
