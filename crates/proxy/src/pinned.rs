//! What a table must be before its definition is believed.

use std::sync::Arc;

use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{COLLATION, Catalog, Known};
use onionskin_schema::TableName;

use crate::error::Outcome;
use crate::hex::unhex;
use crate::session::Session;

impl Session {
    /// Names of tables near which a text that cannot be read is refused, whatever the server shows
    /// under them. These are names that are pinned or that an enforced section names, tables that
    /// an enforced pattern matches, and views, because any of these tables may be behind them.
    pub(crate) fn names_to_guard(&mut self) -> Outcome<Vec<String>> {
        let shared = Arc::clone(&self.shared);
        let config = &shared.config;
        let pins = config.pins.as_ref().map(|file| file.pins());
        let pinned = pins.iter().flat_map(|pins| pins.tables());
        let pinned = pinned.map(|table| table.name.clone());
        let enforced = config.policy.enforced_names().map(str::to_owned);
        let mut names: Vec<String> = pinned.chain(enforced).collect();
        if names.is_empty() && !config.policy.enforces() {
            return Ok(names);
        }
        // in letters that no character set for results changes
        let tables = self.server.rows(
            b"SELECT HEX(CONVERT(TABLE_SCHEMA USING utf8mb4)), HEX(CONVERT(TABLE_NAME USING utf8mb4)), TABLE_TYPE = 'VIEW' \
              FROM information_schema.TABLES \
              WHERE TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys')",
        )?;
        for row in &tables {
            let name = |at: usize| {
                let digits = row.get(at).and_then(Option::as_deref);
                let name = digits.and_then(unhex).map(String::from_utf8);
                let unknown = || self.unread(NotUnderstood::TableNames);
                name.and_then(Result::ok).ok_or_else(unknown)
            };
            let (database, table) = (name(0)?, name(1)?);
            let is_view = row.get(2).and_then(Option::as_deref) != Some(b"0");
            if is_view || config.policy.enforces_in(&database, &table) {
                names.push(table);
            }
        }
        Ok(names)
    }

    /// Tells, in the log, where `[protect]` and the tables of a plan do not agree.
    pub(crate) fn tell_findings(&self, names: &[TableName]) {
        let config = &self.shared.config;
        if config.policy.is_empty() {
            return;
        }
        for TableName { database, name } in names {
            let is_concerned = config.policy.concerns(database, name);
            if !is_concerned || name.starts_with(COLLATION) {
                continue;
            }
            let known = match self.account.table(database, name) {
                Known::Table(table) => Some(table),
                Known::Absent => None,
                Known::Unknown => continue,
            };
            let findings = config.policy.findings(database, name, known.as_deref());
            self.shared.told.tell(findings);
        }
    }
}
