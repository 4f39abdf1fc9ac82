//! `COM_QUERY`: one statement or several, planned, run, and run once more where the snapshot was stale.

use std::sync::Arc;

use onionskin_plan::{Action, errors};
use onionskin_value::{Charset, Family};
use onionskin_wire::Capabilities;

use super::texts::{in_logical_terms, logical_list};
use super::values::{is_call, runs_once};
use super::words::Words;
use super::{Planned, Session};
use crate::bind::unhex;
use crate::catalog::{Prepared, is_locked};
use crate::diagnostics::{self, Diagnostics, Finds, tells_of};
use crate::error::{Failure, Outcome};
use crate::exchange::Rows;
use crate::next_transaction::says_next;
use crate::scratch::is_not_known;

/// How often a definition is planned anew because another one has changed its table.
const TURNS: u32 = 16;

fn is_definition(prepared: &Prepared) -> bool {
    matches!(prepared.plan.action, Action::Define(_))
}

impl Session {
    pub(super) fn query(&mut self) -> Outcome<()> {
        self.keep_found();
        let mode = self.space.settings.lex;
        let sql = self.client.last_payload().get(1..).unwrap_or_default();
        if self.template.read(sql, mode).is_err() || !self.reads_names() {
            let sql = sql.to_vec();
            return self.unreadable(&sql);
        }
        if self.template.multiple {
            let sql = sql.to_vec();
            return self.several(&sql);
        }
        if self.diagnostics.any() || self.asks_found(&self.template.key) {
            let sql = sql.to_vec();
            return match self.ask(&sql)? {
                true => Ok(()),
                false => self.statement(&sql, true),
            };
        }
        // nothing is kept, but how to count what the server says may still be that of the last statement
        self.diagnostics.clear();
        // the common case: a plan is at hand and nothing protected is near
        if let Some(found) = self.space.get(&self.template.key)
            && found.generation == self.account.generation()
            && matches!(found.plan.action, Action::Relay)
            && !self.account.is_due(&found)
        {
            let locks = locks_tables(&self.template.key);
            self.statements.finds = diagnostics::finds(&self.template.key);
            let done = self.relay_query(&found, locks);
            let done = self.relayed_again(&found, done);
            if self.has_next_transaction() || says_next(&self.template.key) {
                let key = std::mem::take(&mut self.template.key);
                let sql = self.client.last_payload().get(1..).unwrap_or_default();
                let sql = sql.to_vec();
                self.learn_next_transaction(&key, &sql, !found.plan.names.is_empty(), &done);
                self.template.key = key;
            }
            return done;
        }
        let sql = sql.to_vec();
        self.statement(&sql, true)
    }

    /// After a relayed statement: if it failed because a table has become a protected one (a migration puts another in its
    /// place), it is planned and run once more.
    pub(super) fn relayed_again(&mut self, relayed: &Prepared, done: Outcome<()>) -> Outcome<()> {
        if done.is_ok() {
            return done;
        }
        let sql = self.client.last_payload().get(1..).unwrap_or_default();
        let sql = sql.to_vec();
        if !self.failed_stale(&sql, relayed, &done)? {
            return done;
        }
        self.statement(&sql, true)
    }

    /// Whether a relayed statement failed because its tables are no longer what they were when it was planned. They are looked up.
    pub(crate) fn failed_stale(
        &mut self,
        text: &[u8],
        relayed: &Prepared,
        done: &Outcome<()>,
    ) -> Outcome<bool> {
        let is_stale = match done {
            Err(Failure::Stale) => true,
            Err(Failure::Server { code, message, .. }) => {
                looks_stale(*code, message) && !is_call(text)
            }
            _ => false,
        };
        if !is_stale {
            return Ok(false);
        }
        self.server.settle()?;
        self.looks_different(relayed, done)
    }

    /// Looks up the tables of a statement that failed: whether they are no longer what they were when it was planned. That ends the server's list of
    /// warnings, so it is read before.
    pub(crate) fn looks_different<T>(
        &mut self,
        prepared: &Prepared,
        done: &Outcome<T>,
    ) -> Outcome<bool> {
        let list = match done {
            Err(failure @ Failure::Server { .. }) => {
                let list = self.server.rows(b"SHOW WARNINGS")?;
                Some(list).filter(|list| tells_of(list, failure))
            }
            _ => None,
        };
        // another session may have been faster to see the change
        let changed =
            self.look_up(&prepared.plan.names)? || self.account.generation() != prepared.generation;
        if !changed && !matches!(done, Err(Failure::Stale)) {
            self.statements.interfered = true;
            if let Some(list) = list {
                self.statements.list = Some(logical_list(list, prepared));
            }
        }
        Ok(changed)
    }

    /// Keeps what the server shows of an error, before it runs another statement.
    pub(crate) fn keep_list_of(&mut self, failure: &Failure, prepared: &Prepared) -> Outcome<()> {
        if let Failure::Server { .. } = failure {
            let list = self.server.rows(b"SHOW WARNINGS")?;
            self.statements.list = Some(logical_list(list, prepared));
        }
        Ok(())
    }

    /// Keeps what was said before a statement of several parts failed.
    pub(crate) fn keep_list_before(&mut self, said: &Diagnostics, failure: &Failure) {
        if let Failure::Server { code, message, .. } = failure
            && !said.warnings.is_empty()
        {
            self.statements.list = said.list_with(*code, message, self.state.family);
            self.statements.unclear = self.statements.list.is_none();
        }
    }

    /// Whether the names in the statement of `self.template` are read here as the server reads them. Beyond ASCII that takes
    /// UTF-8: in latin1, for one, a byte of 0xA0 is a blank. In a text of several statements the names are not looked at yet.
    pub(crate) fn reads_names(&self) -> bool {
        let key = &self.template.key;
        self.state.tracked
            && self.state.mode_is_read
            && match self.state.client_charset {
                None => false,
                Some(_) if self.template.multiple || key.is_ascii() => true,
                Some(Charset::Utf8mb4 | Charset::Utf8mb3) => std::str::from_utf8(key).is_ok(),
                Some(_) => false,
            }
    }

    /// A text that cannot be lexed, or a session whose character set cannot: it goes through if
    /// no word of it is the name of a protected table. Words may be values here, so the server
    /// is asked for all protected tables, not for the words.
    pub(super) fn unreadable(&mut self, sql: &[u8]) -> Outcome<()> {
        let entry = match self.state.client_charset {
            Some(_) => &errors::NOT_UNDERSTOOD,
            None => &errors::CHARACTER_SET,
        };
        // in letters that no character set for results changes
        let (names, warnings) = self.server.rows_and_warnings(
            "SELECT DISTINCT HEX(CONVERT(TABLE_NAME USING utf8mb4)) FROM information_schema.COLUMNS WHERE COLUMN_NAME LIKE '%$enc'",
        )?;
        // a table that a definition has locked is left out in a transaction, with a warning
        let hides = |shown: &Rows| shown.is_empty() || is_locked(shown);
        if warnings > 0 && hides(&self.server.rows(b"SHOW WARNINGS")?) {
            return Err(Failure::refused(
                entry,
                "while a table's definition changes",
            ));
        }
        let mut protected = Vec::new();
        for cell in names.into_iter().flatten() {
            let name = cell.as_deref().and_then(unhex);
            let name = name.and_then(|name| String::from_utf8(name).ok());
            protected.push(name.ok_or_else(|| Failure::refused(entry, "the names of tables"))?);
        }
        let temporary = self.account.temporary_names();
        protected.extend(temporary.into_iter().map(|(_, name)| name));
        let words = Words::of(sql);
        protected.extend(self.names_to_guard(entry)?);
        let database = self.state.database.as_deref();
        if protected.iter().any(|name| words.may_name(name)) {
            return Err(Failure::refused(entry, ""));
        }
        if words.may_define(&self.shared.config.policy, database) {
            return Err(Failure::refused(
                entry,
                "a table's definition, by a name that [protect] matches",
            ));
        }
        if words.protects() {
            return Err(Failure::refused(entry, "ENCRYPTED FOR"));
        }
        // what a text for PREPARE does is in none of these words
        if words.prepares() {
            return Err(Failure::refused(&errors::DYNAMIC, "a statement text"));
        }
        self.diagnostics.clear();
        self.statements.finds = Finds::Unknown;
        let scoped = match self.state.family {
            Family::MariaDb => onionskin_plan::scoped(sql, self.space.settings.lex)?,
            Family::MySql => None,
        };
        let question = match scoped {
            Some(text) => {
                let question = self.server.put_query(&text)?;
                self.server.flush()?;
                question
            }
            None => self.put_client_command()?,
        };
        self.relay_answer(question, &[])
    }

    /// Several statements in one text: relayed as they are if nothing protected is near any of
    /// them, else run one after the other.
    pub(super) fn several(&mut self, sql: &[u8]) -> Outcome<()> {
        let mode = self.space.settings.lex;
        let parts = onionskin_plan::lex::split(sql, mode)
            .map_err(|_| Failure::refused(&errors::NOT_UNDERSTOOD, "its words"))?;
        let allowed = self
            .server
            .capabilities
            .contains(Capabilities::MULTI_STATEMENTS);
        let Some(parts) = parts.filter(|_| allowed) else {
            // a stored program: its semicolons belong to it
            return self.unreadable(sql);
        };
        let mut all_relay = true;
        let mut plans = Vec::with_capacity(parts.len());
        for range in &parts {
            let part = &sql[range.clone()];
            self.template
                .read(part, mode)
                .map_err(|_| Failure::refused(&errors::NOT_UNDERSTOOD, "its words"))?;
            if !self.reads_names() {
                return self.unreadable(sql);
            }
            let planned = self.plan(part)?;
            all_relay &=
                matches!(planned.plan.action, Action::Relay) && !planned.plan.defines.any();
            all_relay &= !planned.ignores || planned.plan.names.is_empty();
            all_relay &= !changes_meaning(&self.template.key);
            all_relay &= locks_tables(&self.template.key).is_none();
            all_relay &= !(self.diagnostics.any() && diagnostics::asks(&self.template.key));
            all_relay &= !self.asks_found(&self.template.key);
            all_relay &= !self.has_next_transaction() && !says_next(&self.template.key);
            plans.push(planned);
        }
        // all of them go out at once: what was planned for the first is of now when the last one is
        for planned in plans.iter().filter(|_| all_relay) {
            if !self.is_of_now(planned)? {
                all_relay = false;
                break;
            }
        }
        if all_relay {
            self.diagnostics.clear();
            self.statements.finds = Finds::Unknown;
            let question = self.put_client_command()?;
            return self.relay_answer(question, &[]);
        }
        for (i, range) in parts.iter().enumerate() {
            let part = sql[range.clone()].to_vec();
            self.template
                .read(&part, self.space.settings.lex)
                .map_err(|_| Failure::refused(&errors::NOT_UNDERSTOOD, "its words"))?;
            if self.template.multiple || !self.reads_names() {
                // one before it has changed how texts are read
                let about = "a statement that ends elsewhere by the settings before it";
                return Err(Failure::refused(&errors::NOT_UNDERSTOOD, about));
            }
            let last = i + 1 == parts.len();
            if !self.one_of_several(&part, last)? {
                break;
            }
            self.after_command();
            self.learn_untold()?;
            self.learn_collation()?;
        }
        Ok(())
    }

    /// Runs one of several statements. `Ok(false)`: it failed, the others are not run.
    pub(super) fn one_of_several(&mut self, sql: &[u8], last: bool) -> Outcome<bool> {
        self.statements.more_results = !last;
        let before = self.statements.errors_sent;
        self.keep_found();
        let done = match self.ask(sql) {
            Ok(false) => self.statement(sql, false),
            answered => answered.map(|_| ()),
        };
        self.statements.more_results = false;
        done?;
        Ok(self.statements.errors_sent == before)
    }

    /// Plans and runs one statement; `whole` says that it is the client's packet.
    pub fn statement(&mut self, sql: &[u8], whole: bool) -> Outcome<()> {
        // of this statement and of no other
        let mut from_variables = std::mem::take(&mut self.statements.from_variables);
        let mut prepared = self.plan(sql)?;
        self.statements.finds = diagnostics::finds(&self.template.key);
        if let Action::ByName(statement) = &prepared.plan.action {
            let done = self.by_name(statement, sql, whole);
            self.learn_next_transaction(&self.template.key.clone(), sql, false, &done);
            done?;
            self.has_found();
            return Ok(());
        }
        if let Action::Refuse(refusal) = &prepared.plan.action
            && (refusal.entry == &errors::EXECUTABLE_COMMENT || refusal.entry == &errors::TRACKING)
            && from_variables.is_empty()
            && let Some(inner) = unwrapped(sql)
            && self.template.read(inner, self.space.settings.lex).is_ok()
            && !self.template.multiple
        {
            return self.statement(inner, false);
        }
        let mut template = std::mem::take(&mut self.template);
        let mut attempts = 0;
        self.statements.wrote = false;
        self.statements.begin();
        let done = loop {
            let planned = Planned {
                sql: sql.to_vec(),
                template,
                prepared: Arc::clone(&prepared),
                from_variables,
            };
            let done = self.run(&planned, whole);
            template = planned.template;
            from_variables = planned.from_variables;
            let retry = match &done {
                // a value may be wrong for what the table was, and right for what it is
                Err(Failure::Stale | Failure::Value(_)) => true,
                Err(Failure::Server { code, message, .. }) => {
                    looks_stale(*code, message) && !is_call(&template.key)
                }
                Err(Failure::Refused(r)) => {
                    (does_not_open(r) || is_not_known(r))
                        && !self.statements.wrote
                        && !runs_once(&template.key)
                }
                _ => false,
            };
            if let Err(Failure::Refused(refusal)) = &done
                && attempts < 2
                && self.scratch_may_do(&prepared, refusal)
            {
                attempts = 2;
                self.server.settle()?;
                if let Some(other) = self.scratch_plan(sql, &template)? {
                    prepared = other;
                    continue;
                }
            }
            // of definitions that change one table, the others may have been faster more than once
            let turns = matches!(done, Err(Failure::Stale)) && is_definition(&prepared);
            let most = if turns { TURNS } else { 1 };
            if !retry || attempts >= most {
                break done;
            }
            attempts += 1;
            self.server.settle()?;
            if !self.looks_different(&prepared, &done)? && !matches!(done, Err(Failure::Stale)) {
                break done;
            }
            self.template = template;
            prepared = self.make_plan(sql, true)?;
            template = std::mem::take(&mut self.template);
        };
        let names = !prepared.plan.names.is_empty();
        self.learn_next_transaction(&template.key, sql, names, &done);
        self.template = template;
        self.diagnostics.shows_tokens |= prepared.warns_of_tokens();
        if done.is_ok() {
            self.has_found_by(&prepared.plan.action);
        }
        done.map_err(|failure| in_logical_terms(failure, &prepared))
    }

    pub(super) fn run(&mut self, planned: &Planned, whole: bool) -> Outcome<()> {
        let prepared = &planned.prepared;
        self.must_begin_at_once(&prepared.plan)?;
        self.tell_time(prepared)?;
        match &prepared.plan.action {
            Action::Relay => {
                let locks = locks_tables(&planned.template.key);
                if whole {
                    self.relay_query(prepared, locks)
                } else {
                    if prepared.plan.defines.any() && self.account.is_private() {
                        self.check_temporary(&planned.sql, prepared)?;
                    }
                    self.say_next_transaction()?;
                    let found = self.server.found;
                    let question = self.server.put_query(&planned.sql)?;
                    self.server.found = found;
                    self.server.flush()?;
                    self.relay_planned(question, prepared, &[])?;
                    self.locked_tables = locks.unwrap_or(self.locked_tables);
                    self.after_relay(prepared)
                }
            }
            Action::Refuse(refusal) => Err(self.refused(&planned.sql, refusal)),
            Action::ByName(statement) => self.by_name(statement, &planned.sql, whole),
            Action::Server { text, result } => {
                if let Some(upsert) = &prepared.plan.upsert {
                    let rows = planned.template.rows.map_or(1, |r| r.count);
                    let ignore = planned.is_ignore();
                    self.keep_cells(prepared, upsert, planned.values(), rows, ignore)?;
                }
                let question = match self.send_text(planned, text, false) {
                    Err(Failure::Value(error)) => {
                        let rows = planned.template.rows.map_or(1, |r| r.count);
                        let flags = (planned.is_ignore(), planned.is_lenient());
                        let of_text =
                            diagnostics::deprecated_calls(&planned.template.key, self.state.family);
                        let values = planned.values();
                        return self.not_looked_at(prepared, values, rows, flags, of_text, error);
                    }
                    sent => sent?,
                };
                match result {
                    None => self.relay_answer(question, &[]),
                    Some(items) => self
                        .open_result(question, prepared, items, false)
                        .map(|_| ()),
                }
            }
            Action::Finish(finish) => self.finish_query(planned, finish),
            Action::Compute { .. } => self.compute_and_run(prepared, planned.values()),
            Action::Scratch(scratch) => {
                self.scratch_query(prepared, scratch, planned.values(), None)
            }
            Action::ScratchWrite(write) => {
                self.scratch_write(prepared, write, planned.values(), None)
            }
            Action::Update(update) => {
                let values = planned.values();
                self.row_update(prepared, update, values)
            }
            Action::Delete(delete) => self.row_delete(prepared, delete, planned.values()),
            Action::Define(ddl) => {
                self.check_temporary(&planned.sql, prepared)?;
                self.define(ddl, prepared)?;
                self.after_relay(prepared)
            }
            Action::Copy(copied) => {
                self.copy_table(copied, prepared)?;
                self.after_relay(prepared)
            }
            Action::Show { what, text, table } => self.show(planned, what, text, table, false),
        }
    }
}

/// Whether a statement begins or ends `LOCK TABLES`.
pub(crate) fn locks_tables(key: &[u8]) -> Option<bool> {
    let begins = |word: &[u8]| {
        key.get(..word.len())
            .is_some_and(|k| k.eq_ignore_ascii_case(word))
    };
    if begins(b"lock t") {
        Some(true)
    } else if begins(b"unlock t") || begins(b"begin") || begins(b"start t") {
        Some(false)
    } else {
        None
    }
}

/// Errors that an outdated snapshot can cause.
fn looks_stale(code: u16, message: &[u8]) -> bool {
    match code {
        // unknown column, column count, no default, no such key column
        1054 | 1136 | 1364 | 1072 | 1091 | 1146 => true,
        // a CHECK constraint, if it is ours
        3819 | 4025 => memchr::memmem::find(message, b"onionskin_").is_some(),
        _ => false,
    }
}

/// Whether a cell did not open, which an outdated snapshot can cause.
pub(crate) fn does_not_open(refusal: &onionskin_plan::Refusal) -> bool {
    refusal.entry == &errors::TAMPERED || refusal.entry == &errors::UNKNOWN_KEY
}

/// The statement of a text that is one executable comment, as dumps have them: `/*!40000 ALTER TABLE t DISABLE KEYS */`. Both servers execute what was
/// meant for versions before 5.7.
fn unwrapped(sql: &[u8]) -> Option<&[u8]> {
    let trimmed = sql.trim_ascii();
    let trimmed = trimmed.strip_suffix(b";").unwrap_or(trimmed).trim_ascii();
    let body = trimmed.strip_prefix(b"/*!")?.strip_suffix(b"*/")?;
    let digits = body.iter().take_while(|b| b.is_ascii_digit()).count();
    let (version, inner) = body.split_at(digits);
    let version: u32 = std::str::from_utf8(version).ok()?.parse().ok()?;
    let nested = memchr::memmem::find(inner, b"/*").or(memchr::memmem::find(inner, b"*/"));
    (digits == 5 && version < 50_700 && nested.is_none()).then_some(inner)
}

/// Whether what follows in the same text may mean other tables, or be read otherwise: `USE`, `SET`, and comments that are run.
fn changes_meaning(key: &[u8]) -> bool {
    let key = key.trim_ascii_start();
    let word = key
        .iter()
        .position(|b| !b.is_ascii_alphabetic())
        .unwrap_or(key.len());
    let first = &key[..word];
    first.is_empty() || first.eq_ignore_ascii_case(b"use") || first.eq_ignore_ascii_case(b"set")
}

#[cfg(test)]
mod tests {
    use super::unwrapped;

    #[test]
    fn a_comment_that_is_a_statement() {
        for (sql, inner) in [
            (
                "/*!40000 ALTER TABLE `t` DISABLE KEYS */;",
                Some(" ALTER TABLE `t` DISABLE KEYS "),
            ),
            (" /*!50003 x*/ ", Some(" x")),
            ("/*!50700 x */", None),
            ("/*! x */", None),
            ("/*!400001 x */", None),
            ("/*!40000 x /* y */ */", None),
            ("/*!40000 x */ y", None),
            ("/*!40000 x */ y /*!40000 z */", None),
        ] {
            assert_eq!(unwrapped(sql.as_bytes()), inner.map(str::as_bytes), "{sql}");
        }
    }
}
