//! What `[protect]` says about tables that are there: enforcing, and telling where the two do not
//! agree.
//!
//! A policy is for new tables. An enforced section of it holds for the tables that the server
//! shows, too: a statement near one in which a column is plaintext that the section protects, or
//! shows the server more than the section allows, is refused; where the section names one table, so
//! is one near its name while the table or a column that the section names is missing.

use crate::{
    pattern::folded,
    policy::{Policy, Rule},
    protection::Capabilities,
    set::Whole,
    surrogate::Surrogate,
    table::Table,
};

/// Databases of the servers' own.
const SYSTEM: [&str; 4] = ["information_schema", "performance_schema", "mysql", "sys"];

/// The columns of a sequence, which MariaDB shows as a table.
const SEQUENCE: [&str; 8] = [
    "next_not_cached_value",
    "minimum_value",
    "maximum_value",
    "start_value",
    "increment",
    "cache_size",
    "cycle_option",
    "cycle_count",
];

/// A column as far as enforcing looks at it.
#[derive(Clone, Copy, Debug)]
pub struct SeenColumn<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its capabilities; `None` if it is plaintext.
    pub capabilities: Option<&'a Capabilities>,
    /// Of a surrogate key only a section that names the column means it.
    pub surrogate: Surrogate,
}

impl<'a> SeenColumn<'a> {
    /// The columns of a table.
    pub fn of(table: &'a Table) -> Vec<Self> {
        let columns = table.columns.iter();
        columns
            .map(|column| SeenColumn {
                name: &column.name,
                capabilities: column.protection.as_ref().map(|p| &p.capabilities),
                surrogate: column.surrogate(),
            })
            .collect()
    }
}

impl Policy {
    /// Whether any section is enforced.
    pub fn enforces(&self) -> bool {
        self.rules.iter().any(|rule| rule.enforced)
    }

    /// Names of tables, of any database, near which statements are refused where the table is
    /// missing or plaintext.
    pub fn enforced_names(&self) -> impl Iterator<Item = &str> {
        let rules = self
            .rules
            .iter()
            .filter(|rule| rule.enforced && rule.is_exact());
        rules.map(|rule| rule.pattern.table())
    }

    /// Whether an enforced section is about this table.
    pub fn enforces_in(&self, database: &str, name: &str) -> bool {
        self.enforced(database, name).next().is_some()
    }

    /// In what an enforced section is not met by the table that the server shows under this name,
    /// if in anything. A damaged table is not judged here.
    pub fn unmet(&self, database: &str, name: &str, table: Option<&Table>) -> Option<String> {
        let mut rules = self.enforced(database, name).peekable();
        rules.peek()?;
        let Some(table) = table else {
            let mut exact = rules.filter(|rule| rule.is_exact() && rule.named().next().is_some());
            return exact.next().map(|_| "there is no such table".to_owned());
        };
        if table.damaged.is_some() {
            return None;
        }
        let mut protected = table.protected_columns();
        let sees_part = protected.any(|(_, p)| matches!(p.whole, Whole::Part(_)));
        self.unmet_by(database, name, &SeenColumn::of(table), sees_part)
    }

    /// The same for columns. With `sees_part` there are others that the account does not see, and
    /// cannot write.
    pub fn unmet_by(
        &self,
        database: &str,
        name: &str,
        columns: &[SeenColumn<'_>],
        sees_part: bool,
    ) -> Option<String> {
        let is_there = |wanted: &str| columns.iter().any(|c| folded(c.name) == wanted);
        let exact = self.enforced(database, name).filter(|rule| rule.is_exact());
        if !sees_part
            && let Some(missing) = exact.flat_map(Rule::named).find(|wanted| !is_there(wanted))
        {
            return Some(format!("it has no column {missing}"));
        }
        let is_sequence = columns.iter().map(|column| column.name).eq(SEQUENCE);
        columns.iter().find_map(|column| {
            let (rule, found) = self.deciding(database, name, column.name)?;
            if !rule.enforced {
                return None;
            }
            match column.capabilities {
                None if !found.named && (is_sequence || column.surrogate != Surrogate::No) => None,
                None => Some(format!("column {} is not protected", column.name)),
                Some(has) if !has.show_no_more_than(found.capabilities) => Some(format!(
                    "column {} has the capabilities [{}], and [protect] allows [{}]",
                    column.name,
                    has.list().join(", "),
                    found.capabilities.list().join(", ")
                )),
                Some(_) => None,
            }
        })
    }

    /// What `[protect]` names that is not so: columns that the table does not have, and plaintext
    /// ones. A line for each.
    pub fn findings(&self, database: &str, name: &str, table: Option<&Table>) -> Vec<String> {
        let path = format!("{database}.{name}");
        let mut rules = self.matching(database, name).peekable();
        if rules.peek().is_none() {
            return Vec::new();
        }
        let mut exact = rules.filter(|rule| rule.is_exact()).peekable();
        let Some(table) = table else {
            let named = exact.peek().is_some();
            let line = format!("[protect] names {path}, and there is no such table");
            return named.then_some(line).into_iter().collect();
        };
        if table.damaged.is_some() {
            return Vec::new();
        }
        let mut findings = Vec::new();
        for wanted in exact.flat_map(Rule::named) {
            if table.column(wanted).is_none() {
                findings.push(format!(
                    "[protect] names {path}.{wanted}, and the table has no such column"
                ));
            }
        }
        for column in SeenColumn::of(table) {
            if let Some((_, found)) = self.deciding(database, name, column.name)
                && column.capabilities.is_none()
                && (found.named || column.surrogate == Surrogate::No)
            {
                findings.push(format!(
                    "[protect] protects {path}.{}, and the table has it in plaintext: onionskin migrate {path} --encrypt",
                    column.name
                ));
            }
        }
        findings
    }

    /// Columns that `[protect]` names in a table that it names, by database, table and column.
    pub fn named_columns(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let exact = self.rules.iter().filter(|rule| rule.is_exact());
        exact.flat_map(|rule| {
            let names = rule.named();
            names.map(move |column| (rule.pattern.database(), rule.pattern.table(), column))
        })
    }

    fn enforced(&self, database: &str, name: &str) -> impl Iterator<Item = &Rule> {
        self.matching(database, name).filter(|rule| rule.enforced)
    }

    fn matching(&self, database: &str, name: &str) -> impl Iterator<Item = &Rule> {
        let (database, name) = (folded(database), folded(name));
        let is_ours = !SYSTEM.contains(&database.as_str());
        let rules = self.rules.iter().filter(move |_| is_ours);
        rules.filter(move |rule| rule.matches(&database, &name))
    }
}
