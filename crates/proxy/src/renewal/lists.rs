//! Lists of names: which databases there are, and which tables each of them has.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use onionskin_schema::TableName;

use crate::age::Age;

/// A list of names: of the databases, or of the tables of one.
pub(crate) struct Names {
    pub age: Arc<Age>,
    /// The names as the server has them, by their letters without case.
    pub real: HashMap<String, Vec<String>>,
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

    /// The databases that a name may mean; `None` if they are not known.
    pub fn databases(&self, name: &str) -> Option<&[String]> {
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

    /// Takes these databases for known, and what they hold for out of date: whoever uses a list
    /// reads it first. Plans rest on lists.
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

    /// Puts a list that was read in the place of the one before. Returns the names, without case,
    /// that are in one of the two only.
    pub fn put(&mut self, of: &str, names: Vec<String>, checked: u64) -> HashSet<String> {
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
