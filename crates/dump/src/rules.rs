//! What was asked for: masks, columns that stay, columns that belong together.

use std::collections::BTreeMap;

use onionskin_schema::pattern::{folded, matches};
use serde::Deserialize;

use crate::{column::Mask, error::DumpError};

/// `database.table.column`, in which `*` stands for any characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnPattern([String; 3]);

impl ColumnPattern {
    /// Reads it. A name with a dot in it cannot be written; `*` stands for it.
    pub fn parse(text: &str) -> Result<Self, DumpError> {
        let parts: Vec<String> = text.split('.').map(|part| folded(part.trim())).collect();
        match parts.try_into() {
            Ok(parts) if parts != [const { String::new() }; 3] => Ok(Self(parts)),
            _ => Err(DumpError::Request(format!(
                "{text:?} names no columns: write DATABASE.TABLE.COLUMN, with * for any characters"
            ))),
        }
    }

    /// Whether the column is meant.
    pub fn matches(&self, column: &ColumnName) -> bool {
        let names = [&column.database, &column.table, &column.column].map(|name| folded(name));
        self.0
            .iter()
            .zip(&names)
            .all(|(pattern, name)| matches(pattern, name))
    }

    fn has_wildcard(&self) -> bool {
        self.0.iter().any(|part| part.contains('*'))
    }
}

impl std::fmt::Display for ColumnPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// A column by its names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnName {
    /// Database.
    pub database: String,
    /// Table.
    pub table: String,
    /// Column.
    pub column: String,
}

impl std::fmt::Display for ColumnName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.database, self.table, self.column)
    }
}

/// Columns with what is done to them.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// `None`: they stay.
    rules: Vec<(ColumnPattern, Option<Mask>)>,
    together: Vec<Vec<ColumnPattern>>,
}

/// A file of rules.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    keep: Vec<String>,
    #[serde(default)]
    together: Vec<Vec<String>>,
    #[serde(default)]
    mask: BTreeMap<String, String>,
}

impl Rules {
    /// `--mask "app.users.note=fixed:x"`
    pub fn mask(&mut self, text: &str) -> Result<(), DumpError> {
        let (column, mask) = text.split_once('=').ok_or_else(|| {
            DumpError::Request(format!(
                "{text:?} is no mask: write DATABASE.TABLE.COLUMN=MASK"
            ))
        })?;
        self.add(column, mask)
    }

    fn add(&mut self, column: &str, mask: &str) -> Result<(), DumpError> {
        let mask = Mask::parse(mask).map_err(DumpError::Request)?;
        self.rules.push((ColumnPattern::parse(column)?, Some(mask)));
        Ok(())
    }

    /// `--keep app.users.city`
    pub fn keep(&mut self, text: &str) -> Result<(), DumpError> {
        self.rules.push((ColumnPattern::parse(text)?, None));
        Ok(())
    }

    /// `--together app.users.mail,app.orders.mail`
    pub fn together<'a>(
        &mut self,
        columns: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), DumpError> {
        let columns = columns.into_iter().map(ColumnPattern::parse);
        self.together.push(columns.collect::<Result<_, _>>()?);
        Ok(())
    }

    /// The text of a file of rules.
    pub fn file(&mut self, text: &str) -> Result<(), DumpError> {
        let file: File =
            toml::from_str(text).map_err(|error| DumpError::Request(error.to_string()))?;
        for (column, mask) in &file.mask {
            self.add(column, mask)?;
        }
        for column in &file.keep {
            self.keep(column)?;
        }
        for columns in &file.together {
            self.together(columns.iter().map(String::as_str))?;
        }
        Ok(())
    }

    /// What is said of a column; `Some(None)`: it stays. Names go before wildcards.
    pub fn of(&self, column: &ColumnName) -> Result<Option<Option<&Mask>>, DumpError> {
        for has_wildcard in [false, true] {
            let mut found = self
                .rules
                .iter()
                .filter(|(p, _)| p.has_wildcard() == has_wildcard && p.matches(column))
                .map(|(_, mask)| mask.as_ref());
            let Some(first) = found.next() else {
                continue;
            };
            return match found.all(|other| other == first) {
                true => Ok(Some(first)),
                false => Err(DumpError::Request(format!(
                    "two rules say different things of {column}"
                ))),
            };
        }
        Ok(None)
    }

    /// The groups that a column is named in, by number.
    pub fn groups_of<'a>(&'a self, column: &'a ColumnName) -> impl Iterator<Item = usize> + 'a {
        let groups = self.together.iter().enumerate();
        groups
            .filter(|(_, group)| group.iter().any(|p| p.matches(column)))
            .map(|(number, _)| number)
    }

    /// What such a group is called: the same whatever else is dumped.
    pub fn group_label(&self, number: usize) -> String {
        let names = self.together[number].iter().map(ColumnPattern::to_string);
        names.min().unwrap_or_default()
    }

    /// Patterns that match none of the columns.
    pub fn unused(&self, columns: &[ColumnName]) -> Vec<String> {
        let rules = self.rules.iter().map(|(pattern, _)| pattern);
        rules
            .chain(self.together.iter().flatten())
            .filter(|pattern| !columns.iter().any(|column| pattern.matches(column)))
            .map(ColumnPattern::to_string)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(text: &str) -> ColumnName {
        let mut parts = text.split('.').map(str::to_owned);
        let mut next = || parts.next().expect("a name");
        ColumnName {
            database: next(),
            table: next(),
            column: next(),
        }
    }

    #[test]
    fn names_go_before_wildcards() {
        let mut rules = Rules::default();
        rules.mask("app.users.*=hash").expect("a mask");
        rules.keep("APP.users.city").expect("a column");
        assert_eq!(
            rules.of(&column("app.users.City")).expect("one"),
            Some(None)
        );
        assert_eq!(
            rules.of(&column("app.users.name")).expect("one"),
            Some(Some(&Mask::Hash))
        );
        assert_eq!(rules.of(&column("app.orders.name")).expect("none"), None);
        rules.mask("app.users.city=null").expect("a mask");
        assert!(rules.of(&column("app.users.city")).is_err());
        rules.keep("app.userz.x").expect("a column");
        assert_eq!(rules.unused(&[column("app.users.city")]), ["app.userz.x"]);
    }

    #[test]
    fn a_file_says_the_same() {
        let mut rules = Rules::default();
        let text = "keep = [\"a.b.c\"]\ntogether = [[\"a.b.d\", \"a.e.d\"]]\n[mask]\n\"a.b.e\" = \"fixed:x=y\"\n";
        rules.file(text).expect("a file");
        let mask = Mask::Fixed("x=y".into());
        assert_eq!(rules.of(&column("a.b.e")).expect("one"), Some(Some(&mask)));
        assert_eq!(rules.of(&column("a.b.c")).expect("one"), Some(None));
        assert_eq!(rules.groups_of(&column("a.e.d")).collect::<Vec<_>>(), [0]);
        assert!(Rules::default().file("masks = 1").is_err());
        assert!(Rules::default().mask("a.b=hash").is_err());
        assert!(Rules::default().mask("a.b.c=rot13").is_err());
        assert!(Rules::default().mask("a.b.c").is_err());
    }
}
