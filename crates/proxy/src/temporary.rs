//! Temporary tables with protected columns, and those that should have some.
//!
//! They belong to one session, and `information_schema` does not show them. A session that makes
//! one leaves the snapshot that it shares with other sessions of its account. It goes on with a
//! snapshot and plans of its own, in which the temporary tables stand before all others. That
//! begins before the server hears of the table: in between, nothing may be planned as if the name
//! were free or another table's.
//!
//! After anything that may define or drop tables, the session looks again at all its temporary
//! tables. A name is given up if the server shows no protected table under it, or one with other
//! ids than before. Should the two ever disagree, a statement fails: physical names end in digits
//! of the column's id, and cells are bound to it.
//!
//! Others make temporary tables, too: a program, the server's `init_connect`, or the client with a
//! statement that has no protected column. Where `[protect]` is about the name, such a table is
//! judged as any other in plaintext, and may hide one that is known. What makes one is a statement
//! that says so or calls a program, or the server has told that something was made
//! ([`crate::state::tracking`]), or it failed, of which the server tells nothing. After that
//! ([`Unseen`](crate::unseen::Unseen)) the server is asked in this session, once for each name, and
//! so it is where a name is no table's, and the server has one all the same.

use std::sync::Arc;

use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{COLLATION, Catalog, Known, Refusal, errors};
use onionskin_schema::{
    ColumnRow, Table, TableName, identifier, is_hidden_column, tables_from_rows,
};
use onionskin_value::Family;
use onionskin_wire::messages::OkPacket;

use crate::catalog::{KeyedPlan, folded, hidden};
use crate::error::{Failure, Outcome};
use crate::exchange::Rows;
use crate::server_errors::{IS_HIDDEN, NO_SUCH_DATABASE, NO_SUCH_TABLE};
use crate::session::Session;
use crate::state::{Purpose, tracking};

/// "Unknown table".
const IS_NO_TABLE: u16 = 1051;

/// What the server says of a temporary table.
enum Shown {
    /// One that is protected, or that `[protect]` is about; or none of that name.
    Table(Option<Arc<Table>>),
    /// It has no columns that the account may see. MySQL hides those of temporary tables from
    /// accounts without privileges on tables.
    Hidden,
}

impl Session {
    /// From now on this session's snapshot is its own, and this name is to be looked at.
    /// Returns what was known under it.
    pub(crate) fn expect_temporary(&mut self, name: &TableName) -> Option<Arc<Table>> {
        self.have_own_snapshot();
        self.account.expect_temporary(name)
    }

    fn have_own_snapshot(&mut self) {
        if self.account.is_private() {
            return;
        }
        self.account = self.shared.accounts.private(&self.state.account);
        let tier3 = self.shared.use_scratch();
        let (key, settings) = (self.state.settings_key(), self.state.settings(tier3));
        self.space = self.account.space(key, settings);
    }

    /// Whether one of these may be a temporary table of which nobody has told.
    #[inline]
    pub(crate) fn may_be_unseen(&self, names: &[TableName]) -> bool {
        match &self.unseen.asked {
            None => false,
            Some(asked) => {
                !self.shared.config.policy.is_empty() && !names.iter().all(|n| asked.contains(n))
            }
        }
    }

    /// Asks the server for those of these names that it was not asked about yet. `asks`: the
    /// statement asks about the one before it. Returns whether anything is different from before.
    #[cold]
    pub(crate) fn see_temporary(&mut self, names: &[TableName], asks: bool) -> Outcome<bool> {
        let asked = self.unseen.asked.as_ref();
        let is_new = |name: &&TableName| asked.is_none_or(|asked| !asked.contains(*name));
        let names: Vec<TableName> = names.iter().filter(is_new).cloned().collect();
        let changed = self.see_temporary_in_doubt(&names, asks)?;
        if let Some(asked) = &mut self.unseen.asked {
            asked.extend(names);
        }
        Ok(changed)
    }

    /// The same for all of these names, whatever was asked before.
    #[cold]
    pub(crate) fn see_temporary_in_doubt(
        &mut self,
        names: &[TableName],
        asks: bool,
    ) -> Outcome<bool> {
        let policy = &self.shared.config.policy;
        let is_meant = |name: &&TableName| {
            !name.name.starts_with(COLLATION) && policy.concerns(&name.database, &name.name)
        };
        let meant: Vec<TableName> = names.iter().filter(is_meant).cloned().collect();
        if meant.is_empty() {
            return Ok(false);
        }
        if asks {
            return Err(NotUnderstood::CountsBesideLookUp.into());
        }
        let generation = (Arc::clone(&self.account), self.account.generation());
        // what tells of the next one may have been turned off
        let tracking = self.unseen.hears_less.then(|| self.tracking());
        let shown = self.aside(|s| s.server.are_temporary(&meant, tracking.as_deref()))?;
        self.unseen.hears_less = false;
        for (name, is_one) in meant.iter().zip(shown) {
            let is_known = self.names_temporary(std::slice::from_ref(name));
            let seen = match is_one {
                Some(true) => self.outside(|s| s.read_temporary(name, Some(true)))?,
                Some(false) if is_known => Shown::Table(None),
                Some(false) => continue,
                // MySQL hides it from narrow accounts, as it hides other tables
                None if is_known || self.is_a_table(name) => continue,
                None => {
                    let look = |s: &mut Self| match s.read_temporary(name, None) {
                        Err(Failure::Server { code, .. }) if IS_HIDDEN.contains(&code) => {
                            s.server.settle()?;
                            Ok(Shown::Table(None))
                        }
                        shown => shown,
                    };
                    self.outside(look)?
                }
            };
            match seen {
                Shown::Table(Some(table)) => {
                    self.have_own_snapshot();
                    self.account.take_temporary(name, table);
                }
                Shown::Table(None) if is_known => self.account.set_temporary(name, None),
                Shown::Table(None) => {}
                Shown::Hidden => {
                    self.have_own_snapshot();
                    self.account.take_temporary(name, out_of_sight(name));
                }
            }
        }
        let (account, before) = generation;
        Ok(!Arc::ptr_eq(&account, &self.account) || before != self.account.generation())
    }

    /// Whether one of these is a table's.
    pub(crate) fn names_a_table(&self, names: &[TableName]) -> bool {
        let mut names = names.iter().filter(|n| !n.name.starts_with(COLLATION));
        names.any(|name| self.is_a_table(name))
    }

    /// Whether one of these is a table's that `[protect]` is about.
    pub(crate) fn may_be_hidden(&self, names: &[TableName]) -> bool {
        let policy = &self.shared.config.policy;
        let mut meant = names
            .iter()
            .filter(|n| policy.concerns(&n.database, &n.name));
        !policy.is_empty() && meant.any(|name| self.is_a_table(name))
    }

    fn is_a_table(&self, name: &TableName) -> bool {
        let known = self.account.table(&name.database, &name.name);
        matches!(known, Known::Table(_))
    }

    /// Looks at all temporary tables of the session again, after a statement that may have changed
    /// them. What the client may ask about that statement is kept first, because the server forgets
    /// it.
    pub(crate) fn refresh_temporary(&mut self) -> Outcome<()> {
        let names = self.account.temporary_names();
        if names.is_empty() {
            return Ok(());
        }
        // what the server shows is of the questions below
        self.diagnostics.hides_servers = true;
        if self.diagnostics.row_count.is_none()
            && let Ok(ok) = OkPacket::decode(self.server.payload(), self.server.capabilities)
        {
            self.diagnostics.row_count = i64::try_from(ok.affected_rows).ok();
            let count = ok.warnings;
            if count > 0 {
                let shown = self.server.rows(b"SHOW WARNINGS")?;
                self.diagnostics.keep(&shown, count);
            }
        }
        for name in names {
            let was_plain = self.account.is_plain_temporary(&name);
            match self.read_temporary(&name, None) {
                Ok(Shown::Table(Some(table))) if !table.is_protected() => {
                    self.account.take_temporary(&name, table);
                }
                Ok(Shown::Table(Some(table))) if was_plain => {
                    // it has got protected columns, or a table that it has hidden is seen again
                    match self.is_temporary(&name)? {
                        true => self.account.take_temporary(&name, table),
                        false => self.account.set_temporary(&name, None),
                    }
                }
                Ok(Shown::Table(table)) => {
                    self.account.set_temporary(&name, table);
                }
                Ok(Shown::Hidden) => {
                    let table = Some(out_of_sight(&name));
                    self.account.set_temporary(&name, table);
                }
                // the client has its answer: what was known stays, or the name stays unusable
                Err(Failure::Server { .. }) => self.server.settle()?,
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// What has the server tell of what changes in the session.
    fn tracking(&self) -> String {
        let purpose = Purpose::of(&self.shared.leading, self.shared.written.is_some());
        tracking(self.state.family, &self.client_tracking, purpose)
    }

    fn is_temporary(&mut self, name: &TableName) -> Outcome<bool> {
        let shown = self
            .server
            .are_temporary(std::slice::from_ref(name), None)?;
        self.server.settle()?;
        Ok(shown.first() == Some(&Some(true)))
    }

    /// `is_one`: the server says that it is a temporary table.
    fn read_temporary(&mut self, name: &TableName, is_one: Option<bool>) -> Outcome<Shown> {
        let Some(rows) = self.shown_columns(name)? else {
            return Ok(Shown::Table(None));
        };
        if rows.is_empty() {
            return Ok(Shown::Hidden);
        }
        let Some(table) = self.table_of(name, &rows) else {
            return Ok(Shown::Table(None));
        };
        let counts = match table.is_protected() {
            true => is_one.is_none_or(|is_one| is_one),
            // one that is gone shows the table that it has hidden
            false => {
                let policy = &self.shared.config.policy;
                policy.concerns(&name.database, &name.name)
                    && match is_one {
                        Some(is_one) => is_one,
                        None => self.is_temporary(name)?,
                    }
            }
        };
        Ok(Shown::Table(counts.then(|| Arc::new(table))))
    }

    /// The table that this session sees under a name, temporary ones before others.
    pub(crate) fn shown_table(&mut self, name: &TableName) -> Outcome<Option<Table>> {
        let rows = self.shown_columns(name)?;
        Ok(rows.and_then(|rows| self.table_of(name, &rows)))
    }

    /// What SHOW COLUMNS says of a table; `None` if there is none.
    fn shown_columns(&mut self, TableName { database, name }: &TableName) -> Outcome<Option<Rows>> {
        let ask = format!(
            "SHOW FULL COLUMNS FROM {}.{}",
            identifier(database),
            identifier(name)
        );
        match self.server.rows(ask.as_bytes()) {
            Ok(rows) => Ok(Some(rows)),
            Err(Failure::Server {
                code: NO_SUCH_TABLE | NO_SUCH_DATABASE | IS_NO_TABLE,
                ..
            }) => {
                self.server.settle()?;
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    /// The table of such rows.
    fn table_of(&self, TableName { database, name }: &TableName, rows: &Rows) -> Option<Table> {
        let mut decoded: Vec<Vec<Option<String>>> = Vec::with_capacity(rows.len());
        for row in rows {
            let text = |cell: &Option<Vec<u8>>| {
                cell.as_ref()
                    .map(|b| String::from_utf8_lossy(b).into_owned())
            };
            decoded.push(row.iter().map(text).collect());
        }
        if self.state.family == Family::MySql {
            // columns of indexes over expressions belong to no `*`
            decoded.retain(|cells| {
                let cell = |at: usize| cells.get(at).and_then(Option::as_deref);
                !is_hidden_column(cell(0).unwrap_or_default(), cell(6).unwrap_or_default())
            });
        }
        let words: Vec<Option<String>> = decoded
            .iter()
            .map(|cells| default_words(cells, self.state.family))
            .collect();
        let columns = decoded.iter().enumerate().map(|(n, cells)| {
            // Field, Type, Collation, Null, Key, Default, Extra, Privileges, Comment
            let get = |at: usize| cells.get(at).and_then(Option::as_deref);
            let text = |at: usize| get(at).unwrap_or_default();
            let collation = get(2);
            ColumnRow {
                table_schema: database,
                table_name: name,
                column_name: text(0),
                ordinal_position: n as u64 + 1,
                column_default: words[n].as_deref(),
                is_nullable: text(3),
                data_type: text(1).split(['(', ' ']).next().unwrap_or_default(),
                column_type: text(1),
                collation,
                character_set: collation.and_then(|c| c.split('_').next()),
                column_key: text(4),
                extra: text(6),
                column_comment: text(8),
                generation_expression: None,
            }
        });
        let keys = &self.shared.config.keys;
        let verify = |bytes: &[u8], tag: &[u8; 16]| keys.metadata_key().verify(bytes, tag);
        tables_from_rows(columns, verify).into_iter().next()
    }

    /// Whether one of these may be a temporary table with protected columns.
    pub(crate) fn names_temporary(&self, names: &[TableName]) -> bool {
        if !self.account.is_private() {
            return false;
        }
        let temporary: Vec<_> = self.account.temporary_names().iter().map(folded).collect();
        names
            .iter()
            .map(folded)
            .any(|name| temporary.contains(&name))
    }

    /// Statements that would give a temporary table another name: it would not be known under that.
    pub(crate) fn check_temporary(&self, keyed: &KeyedPlan) -> Outcome<()> {
        if !keyed.plan.defines.any() || !self.account.is_private() {
            return Ok(());
        }
        // the server is asked for one in plaintext when its new name is used
        let is_protected = |name: &&TableName| {
            self.names_temporary(std::slice::from_ref(*name))
                && !self.account.is_plain_temporary(name)
        };
        let about = keyed.plan.names.iter().any(|name| is_protected(&name));
        if keyed.plan.facts.renames && about {
            let refusal = Refusal::new(
                &errors::STATEMENT,
                "renaming a temporary table or its columns",
            );
            return Err(refusal.into());
        }
        Ok(())
    }
}

/// A temporary table whose columns the account does not see. It can be dropped, and nothing else.
fn out_of_sight(name: &TableName) -> Arc<Table> {
    Arc::new(Table {
        damaged: Some("a temporary table whose columns are not shown".into()),
        ..hidden(&name.database, &name.name)
    })
}

/// COLUMN_DEFAULT for a row of SHOW COLUMNS. MariaDB's `information_schema` has SQL there, SHOW has
/// the value.
fn default_words(cells: &[Option<String>], family: Family) -> Option<String> {
    let cell = |at: usize| cells.get(at).and_then(Option::as_deref);
    let (ty, value) = (cell(1)?.to_ascii_lowercase(), cell(5)?);
    const TEXTS: [&str; 9] = [
        "char",
        "varchar",
        "tinytext",
        "text",
        "mediumtext",
        "longtext",
        "date",
        "time",
        "enum",
    ];
    let is_text = TEXTS.iter().any(|t| ty.starts_with(t)) || ty.starts_with("set(");
    let is_value = !value.contains('(') && !value.eq_ignore_ascii_case("current_timestamp");
    Some(match family {
        Family::MariaDb if is_text && is_value => format!("'{}'", value.replace('\'', "''")),
        _ => value.to_owned(),
    })
}
