//! What a command line allows the server to learn.
//!
//! A checkpoint that the server keeps can be one of an earlier migration of the same table,
//! authentic and out of date: one that was to decrypt a column and was given up, for example. So a
//! checkpoint alone never makes a value more readable for the server than it is in the table that
//! it comes from. The command that does it says so.

use std::collections::BTreeMap;

use onionskin_schema::{Capabilities, Column, same_name};

use crate::error::{MigrateError, Result};
use crate::operation::Operation;

/// Columns that may become more readable for the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consent {
    /// They may become plaintext.
    pub plain: Vec<String>,
    /// They may get these capabilities.
    pub more: BTreeMap<String, Vec<String>>,
    /// They may lose these: with KEY BY, a column's cells stay readable when a tenant is forgotten.
    pub fewer: BTreeMap<String, Vec<String>>,
}

impl Consent {
    /// What the beginning of an operation says; with a way back, also of what the old table shows
    /// and the new one does not.
    pub(crate) fn of(operation: &Operation, reverse: bool) -> Self {
        let mut consent = Self::default();
        match operation {
            Operation::Decrypt(columns) => consent.plain.clone_from(columns),
            Operation::Add(columns) => consent.more.clone_from(columns),
            Operation::Encrypt(columns) if reverse => consent.plain.extend(columns.keys().cloned()),
            Operation::Drop(columns) => consent.fewer.clone_from(columns),
            _ => {}
        }
        match operation {
            Operation::Drop(columns) if reverse => consent.more.clone_from(columns),
            Operation::Add(columns) if reverse => consent.fewer.clone_from(columns),
            _ => {}
        }
        consent
    }

    /// Whether a column may become plaintext.
    pub fn allows_plain(&self, column: &str) -> bool {
        self.plain.iter().any(|plain| same_name(plain, column))
    }

    /// A capability that a column would get and that was not allowed.
    pub fn gained(
        &self,
        column: &str,
        before: &Capabilities,
        after: &Capabilities,
    ) -> Option<String> {
        let has = before.list();
        let allowed: Vec<&str> = self
            .more
            .iter()
            .filter(|(other, _)| same_name(other, column))
            .flat_map(|(_, words)| words.iter().map(String::as_str))
            .collect();
        let includes_eq = |word: &&str| *word == "range" || word.starts_with("join:");
        after.list().into_iter().find(|word| {
            let is_included = word == "eq" && allowed.iter().any(includes_eq);
            !has.contains(word) && !allowed.contains(&word.as_str()) && !is_included
        })
    }

    /// The word of KEY BY that a column would lose, or have another one in its place, and that was
    /// not allowed.
    pub fn lost(
        &self,
        column: &str,
        before: &Capabilities,
        after: &Capabilities,
    ) -> Option<String> {
        if before.tenant.is_none() || before.tenant == after.tenant {
            return None;
        }
        let allowed = self.fewer.iter();
        let allowed = allowed.filter(|(other, _)| same_name(other, column));
        let allowed: Vec<&String> = allowed.flat_map(|(_, words)| words).collect();
        let has_now = after.list();
        let lost = before
            .list()
            .into_iter()
            .filter(|word| !has_now.contains(word));
        let mut lost = lost.filter(|word| word.starts_with("key_by:"));
        lost.find(|word| !allowed.contains(&word))
    }

    /// An error if the server could tell more of `after`, in the table `target`, than of `before`,
    /// and that was not allowed.
    pub(crate) fn check(&self, before: &Column, after: &Column, target: &str) -> Result<()> {
        let Some(protected) = &before.protection else {
            return Ok(());
        };
        let name = &after.name;
        let refused = |effect: &str, option: String| {
            Err(MigrateError::NotAllowed(format!(
                "column {name} of {target} would {effect}, and this command line does not say so: add {option} if that is \
                 what you want; if not, the checkpoint may be one of an earlier migration that was put back: --abort, and begin again"
            )))
        };
        let Some(protection) = &after.protection else {
            return match self.allows_plain(name) {
                true => Ok(()),
                false => refused("become plaintext", format!("--decrypt \"{name}\"")),
            };
        };
        let (before, after) = (&protected.capabilities, &protection.capabilities);
        if let Some(word) = self.lost(name, before, after) {
            return refused(
                "stay readable when a tenant is forgotten",
                format!("--drop \"{name}: {word}\""),
            );
        }
        match self.gained(name, before, after) {
            None => Ok(()),
            Some(word) => refused(
                &format!("get the capability {word}"),
                format!("--add \"{name}: {word}\""),
            ),
        }
    }
}
