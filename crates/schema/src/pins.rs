//! What is protected, kept beside the keys and not at the server: `onionskin pin`.
//!
//! Each definition at the server is authentic. But whoever administers the server chooses which
//! table stands under a name, and can bring back what was authentic once. Pins are the proxy's own
//! memory: tables and their protected columns, by names, ids, capabilities and types, in a text
//! under the metadata key:
//!
//! ```text
//! onionskin pins 1
//! table|DATABASE|TABLE|TABLE ID|GENERATION
//! column|NAME|COLUMN ID|CAPABILITIES|COLUMN_TYPE|COLLATION
//! …
//! mac|MAC
//! ```
//!
//! Fields are as in the comments of columns. The MAC covers every byte before its own line.

use std::{collections::BTreeMap, fmt::Write, sync::Arc};

use crate::{
    comment::{push_text, text_field},
    folding::same_name,
    protection::Capabilities,
    quote::{hex, unhex},
    set::Whole,
    table::{Column, Table},
    table_name::TableName,
};

const HEAD: &str = "onionskin pins 1";
const ANY_HEAD: &str = "onionskin pins ";
/// What stands before the bytes that the MAC covers. Comments, aliases and sets begin in another
/// way.
const PURPOSE: &str = "onionskin:pins|";

/// Why a file of pins cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PinsError {
    /// It does not begin as ours do.
    #[error("it holds no pins")]
    NotOurs,
    /// A newer version wrote it.
    #[error("a newer version wrote it")]
    UnknownVersion,
    /// A line cannot be read.
    #[error("line {0} is malformed")]
    Malformed(usize),
    /// The MAC is wrong.
    #[error("it was changed, or written under other keys")]
    NotAuthentic,
}

/// Tables and what is protected of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    /// By database and table, letter case ignored.
    tables: BTreeMap<TableName, Arc<PinnedTable>>,
}

/// One table, or view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedTable {
    /// Its database.
    pub database: String,
    /// Its name.
    pub name: String,
    /// Its id.
    pub table_id: [u8; 8],
    /// How often its protected columns had been changed: fewer changes are an older definition.
    pub generation: u64,
    /// Its protected columns, in its order.
    pub columns: Vec<PinnedColumn>,
}

/// A protected column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedColumn {
    /// Its name.
    pub name: String,
    /// Its id.
    pub column_id: [u8; 4],
    /// Its capabilities.
    pub capabilities: Capabilities,
    /// Its logical type, as `information_schema.columns` writes it.
    pub type_text: String,
    /// Its collation; empty if it has none.
    pub collation: String,
}

impl Pins {
    /// Pins of these tables; those without protected columns are left out.
    pub fn of<'t>(tables: impl IntoIterator<Item = &'t Table>) -> Self {
        let mut pins = Self::default();
        for table in tables {
            pins.set(&table.database, &table.name, Some(table));
        }
        pins
    }

    /// Pins one table as it is now, or nothing under its name if it has no protected columns.
    pub fn set(&mut self, database: &str, name: &str, table: Option<&Table>) {
        match table.and_then(PinnedTable::of) {
            Some(pinned) => self.insert(pinned),
            None => {
                self.tables.remove(&TableName::folded(database, name));
            }
        }
    }

    fn insert(&mut self, pinned: PinnedTable) {
        let key = TableName::folded(&pinned.database, &pinned.name);
        self.tables.insert(key, Arc::new(pinned));
    }

    /// Keeps what was pinned before under the table's name.
    pub fn keep(&mut self, pinned: &Arc<PinnedTable>) {
        let key = TableName::folded(&pinned.database, &pinned.name);
        self.tables.insert(key, Arc::clone(pinned));
    }

    /// What is pinned under a name.
    pub fn get(&self, database: &str, name: &str) -> Option<&Arc<PinnedTable>> {
        if self.tables.is_empty() {
            return None;
        }
        self.tables.get(&TableName::folded(database, name))
    }

    /// All tables.
    pub fn tables(&self) -> impl Iterator<Item = &PinnedTable> {
        self.tables.values().map(|pinned| &**pinned)
    }

    /// The file. `tag` authenticates bytes.
    pub fn text(&self, tag: impl Fn(&[u8]) -> [u8; 16]) -> String {
        let mut text = format!("{HEAD}\n");
        for table in self.tables() {
            text.push_str("table");
            push_text(&mut text, &table.database);
            push_text(&mut text, &table.name);
            let _ = writeln!(text, "|{}|{}", hex(&table.table_id), table.generation);
            for column in &table.columns {
                text.push_str("column");
                push_text(&mut text, &column.name);
                let _ = write!(text, "|{}", hex(&column.column_id));
                push_text(&mut text, &column.capabilities.to_field());
                push_text(&mut text, &column.type_text);
                push_text(&mut text, &column.collation);
                text.push('\n');
            }
        }
        let mac = hex(&tag(&tagged_bytes(&text)));
        let _ = writeln!(text, "mac|{mac}");
        text
    }

    /// Reads the file. `verify` tells whether a tag is that of the bytes.
    pub fn parse(text: &str, verify: impl Fn(&[u8], &[u8; 16]) -> bool) -> Result<Self, PinsError> {
        if !text.starts_with(ANY_HEAD) {
            return Err(PinsError::NotOurs);
        }
        if text.lines().next() != Some(HEAD) {
            return Err(PinsError::UnknownVersion);
        }
        let cut = text.rfind("mac|").unwrap_or(text.len());
        let (front, mac) = text.split_at(cut);
        let mac = mac.strip_prefix("mac|").and_then(|m| m.strip_suffix('\n'));
        let mac = mac.and_then(unhex::<16>).ok_or(PinsError::NotAuthentic)?;
        if !front.ends_with('\n') || !verify(&tagged_bytes(front), &mac) {
            return Err(PinsError::NotAuthentic);
        }
        let mut pins = Self::default();
        let mut open: Option<PinnedTable> = None;
        for (number, line) in front.lines().enumerate().skip(1) {
            let malformed = || PinsError::Malformed(number + 1);
            let fields: Vec<&str> = line.split('|').collect();
            match (fields.as_slice(), &mut open) {
                (["table", fields @ ..], _) => {
                    let table = table_of(fields).ok_or_else(malformed)?;
                    if let Some(before) = open.replace(table) {
                        pins.insert(before);
                    }
                }
                (["column", fields @ ..], Some(table)) => {
                    table.columns.push(column_of(fields).ok_or_else(malformed)?);
                }
                _ => return Err(malformed()),
            }
        }
        if let Some(last) = open {
            pins.insert(last);
        }
        Ok(pins)
    }

    /// What these pins hold and `new` does not: a line for each loss of protection, and for each
    /// table that is another one.
    pub fn losses(&self, new: &Pins) -> Vec<String> {
        let mut losses = Vec::new();
        for old in self.tables() {
            let path = format!("{}.{}", old.database, old.name);
            let Some(now) = new.get(&old.database, &old.name) else {
                losses.push(format!("{path} has no protected columns, or is gone"));
                continue;
            };
            if now.table_id != old.table_id {
                losses.push(format!("{path} is another table"));
            } else if now.generation < old.generation {
                losses.push(format!("{path} has an older definition"));
            }
            for column in &old.columns {
                let about = |what: &str| format!("{path}: column {} {what}", column.name);
                match now
                    .columns
                    .iter()
                    .find(|c| same_name(&c.name, &column.name))
                {
                    None => losses.push(about("is not protected, or is gone")),
                    Some(c) if c.capabilities != column.capabilities => {
                        let words = c.capabilities.list().join(", ");
                        losses.push(about(&format!("has the capabilities [{words}]")));
                    }
                    Some(c)
                        if (&c.type_text, &c.collation)
                            != (&column.type_text, &column.collation) =>
                    {
                        losses.push(about(&format!("is a {} {}", c.type_text, c.collation)));
                    }
                    Some(_) => {}
                }
            }
        }
        losses
    }
}

fn tagged_bytes(text: &str) -> Vec<u8> {
    [PURPOSE, text].concat().into_bytes()
}

fn table_of(fields: &[&str]) -> Option<PinnedTable> {
    let [database, name, table_id, generation] = fields else {
        return None;
    };
    Some(PinnedTable {
        database: text_field(database).ok()?,
        name: text_field(name).ok()?,
        table_id: unhex(table_id)?,
        generation: generation.parse().ok()?,
        columns: Vec::new(),
    })
}

fn column_of(fields: &[&str]) -> Option<PinnedColumn> {
    let [name, column_id, capabilities, type_text, collation] = fields else {
        return None;
    };
    Some(PinnedColumn {
        name: text_field(name).ok()?,
        column_id: unhex(column_id)?,
        capabilities: Capabilities::from_field(&text_field(capabilities).ok()?)?,
        type_text: text_field(type_text).ok()?,
        collation: text_field(collation).ok()?,
    })
}

impl PinnedTable {
    fn of(table: &Table) -> Option<Self> {
        let columns: Vec<PinnedColumn> = table
            .protected_columns()
            .map(|(column, protection)| PinnedColumn {
                name: column.name.clone(),
                column_id: protection.column_id,
                capabilities: protection.capabilities.clone(),
                type_text: column.type_text.clone(),
                collation: collation_of(column),
            })
            .collect();
        Some(Self {
            database: table.database.clone(),
            name: table.name.clone(),
            table_id: table.table_id.filter(|_| !columns.is_empty())?,
            generation: table.generation(),
            columns,
        })
    }

    /// How the table that the server shows under the name differs from the pinned one; `None` if it
    /// does not. A damaged table is not judged here. More protected columns than were pinned are no
    /// difference.
    pub fn difference(&self, table: Option<&Table>) -> Option<String> {
        let Some(table) = table else {
            return Some("there is no such table".into());
        };
        if table.damaged.is_some() {
            return None;
        }
        match table.table_id {
            None => return Some("it is a plaintext table".into()),
            Some(id) if id != self.table_id => return Some("it is another table".into()),
            Some(_) => {}
        }
        if table.generation() < self.generation {
            return Some("its definition is an older one".into());
        }
        self.columns
            .iter()
            .find_map(|column| column.difference(table))
    }

    /// Whether a table with these protected columns is no weaker than the one that was pinned,
    /// whatever its ids.
    pub fn is_met_by(&self, columns: &[(&str, &Capabilities)]) -> bool {
        self.columns.iter().all(|pinned| {
            let found = columns
                .iter()
                .find(|(name, _)| same_name(name, &pinned.name));
            found.is_some_and(|(_, capabilities)| {
                capabilities.show_no_more_than(&pinned.capabilities)
            })
        })
    }
}

impl PinnedColumn {
    fn difference(&self, table: &Table) -> Option<String> {
        let about = |what: &str| Some(format!("column {} {what}", self.name));
        let Some(column) = table.column(&self.name) else {
            // an account that sees a part of the table cannot write what it does not see
            let sees_part = table
                .protected_columns()
                .any(|(_, p)| matches!(p.whole, Whole::Part(_)));
            return if sees_part { None } else { about("is gone") };
        };
        let Some(protection) = &column.protection else {
            return about("is not protected");
        };
        if protection.column_id != self.column_id {
            return about("is another one");
        }
        if protection.capabilities != self.capabilities {
            return about("has other capabilities");
        }
        if column.type_text != self.type_text || collation_of(column) != self.collation {
            return about("has another type");
        }
        None
    }
}

fn collation_of(column: &Column) -> String {
    let collation = column.sql_type.as_ref().and_then(|ty| ty.collation);
    collation.map_or(String::new(), |collation| collation.name().to_owned())
}
