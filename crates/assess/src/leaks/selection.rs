//! Which columns are attacked, and for which capabilities.

use std::cell::Cell;

use onionskin_schema::pattern::{folded, matches};

use super::capability::Capability;
use crate::{AssessError, text::shown};

/// What `--columns` says.
#[derive(Debug, Default)]
pub struct Selection {
    items: Vec<Item>,
}

#[derive(Debug)]
struct Item {
    text: String,
    /// `None`: any table.
    table: Option<String>,
    column: String,
    /// Empty: all that the type can have.
    capabilities: Vec<Capability>,
    is_found: Cell<bool>,
}

impl Selection {
    /// Reads `patients.age: eq range; *.note`. Without a text all columns are selected.
    pub fn read(text: Option<&str>) -> Result<Self, AssessError> {
        let Some(text) = text else {
            return Ok(Self::default());
        };
        let mut items = Vec::new();
        for part in text.split(';').map(str::trim).filter(|p| !p.is_empty()) {
            // join:GROUP has a colon, too, but not before the first one
            let (name, words) = part.split_once(':').unwrap_or((part, ""));
            let capability = |word: &str| {
                Capability::of_word(word).ok_or_else(|| {
                    AssessError::Request(format!(
                        "--columns: {} is no capability: write for example \"patients.age: eq range; notes.text: like\"",
                        shown(word)
                    ))
                })
            };
            let words = words.split([' ', ',', '\t']).filter(|w| !w.is_empty());
            let name = folded(&name.trim().replace('`', ""));
            let (table, column) = match name.rsplit_once('.') {
                Some((table, column)) => (Some(table.to_owned()), column.to_owned()),
                None => (None, name.clone()),
            };
            items.push(Item {
                text: part.to_owned(),
                table,
                column,
                capabilities: words.map(capability).collect::<Result<_, _>>()?,
                is_found: Cell::new(false),
            });
        }
        match items.is_empty() {
            true => Err(AssessError::Request("--columns names no column".into())),
            false => Ok(Self { items }),
        }
    }

    /// The capabilities that a column is attacked for; `None` if it is not selected. An empty list
    /// stands for all that its type can have.
    pub fn of(&self, table: &str, column: &str) -> Option<Vec<Capability>> {
        if self.items.is_empty() {
            return Some(Vec::new());
        }
        let (table, column) = (folded(table), folded(column));
        let mut found: Option<Vec<Capability>> = None;
        for item in &self.items {
            let is_table = item.table.as_deref().is_none_or(|t| matches(t, &table));
            if is_table && matches(&item.column, &column) {
                item.is_found.set(true);
                found.get_or_insert_default().extend(&item.capabilities);
            }
        }
        found
    }

    /// Whether a column was named, and not by way of a `*`.
    pub fn names(&self, column: &str) -> bool {
        let column = folded(column);
        self.items.iter().any(|item| item.column == column)
    }

    /// An error if a part of it met no column.
    pub fn check(&self) -> Result<(), AssessError> {
        match self.items.iter().find(|item| !item.is_found.get()) {
            Some(item) => Err(AssessError::Request(format!(
                "--columns: {} is no column that was looked at",
                shown(&item.text)
            ))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_selected_with_their_capabilities() {
        let text = "patients.age: eq, range; note; *.Code: join:g";
        let selection = Selection::read(Some(text)).expect("readable");
        let (eq, range) = (Capability::Eq, Capability::Range);
        assert_eq!(selection.of("Patients", "AGE"), Some(vec![eq, range]));
        assert_eq!(selection.of("visits", "age"), None);
        assert_eq!(selection.of("visits", "note"), Some(vec![]));
        assert!(selection.check().is_err(), "no code yet");
        assert_eq!(selection.of("t", "code"), Some(vec![eq]));
        assert!(selection.check().is_ok() && selection.names("Note"));
        let all = Selection::read(None).expect("all");
        assert_eq!(all.of("t", "x"), Some(vec![]));
        assert!(Selection::read(Some("age: order")).is_err());
        assert!(Selection::read(Some(" ; ")).is_err());
    }
}
