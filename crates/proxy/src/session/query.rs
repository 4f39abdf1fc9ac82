//! `COM_QUERY`: one statement or several, planned, run, and run once more where the snapshot was
//! stale.

use std::ops::Range;
use std::sync::Arc;

use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::lex::{Empty, LexMode, Lexer, Statements, unwrapped};
use onionskin_plan::{
    Action, Doubt, Facts, Finds, Question, Refusal, Template, Verb, errors, in_other_words,
};
use onionskin_value::{Charset, Family};
use onionskin_wire::Capabilities;

use super::execution::{Execution, Way};
use super::texts::{in_logical_terms, logical_list};
use super::words::Words;
use super::{Session, StatementRun};
use crate::by_name::cannot_be_prepared;
use crate::catalog::{KeyedPlan, is_locked};
use crate::diagnostics::{Diagnostics, tells_of};
use crate::error::{Failure, Outcome};
use crate::exchange::{Found, Rows};
use crate::hex::unhex;
use crate::server_errors;

/// The statements of a text.
struct Several {
    parts: Vec<Range<usize>>,
    empty: Option<Empty>,
    /// Whether the last one is a stored program, with semicolons of its own.
    program: bool,
}

impl Session {
    pub(super) fn query(&mut self) -> Outcome<()> {
        match self.shared.config.functions {
            None => self.query_text(),
            Some(_) => self.query_with_calls(),
        }
    }

    /// Takes away a NUL at the end of the command's text, if one is there: servers read up to it,
    /// and programs in C send it where they count it.
    #[cold]
    pub(crate) fn leaves_out_nul(&mut self) -> bool {
        let kept = match self.client.last_payload() {
            [kept @ .., 0] => kept.to_vec(),
            _ => return false,
        };
        // servers see a second one, and a statement of its own
        let text = kept.get(1..).unwrap_or_default().trim_ascii_end();
        if matches!(text.last(), None | Some(0 | b';')) {
            return false;
        }
        self.client.replace_last_payload(kept);
        true
    }

    /// Does a text, without the calls that the proxy computes.
    #[cold] // out of the way of those who have none
    fn query_with_calls(&mut self) -> Outcome<()> {
        self.keep_found();
        if let Err(failure) = self.compute_calls() {
            // a PREPARE that is refused leaves no statement under its name
            let sql = self.client.last_payload().get(1..).unwrap_or_default();
            let sql = sql.to_vec();
            self.not_prepared(&sql);
            return Err(failure);
        }
        let done = self.query_text();
        self.keep_assigned(done.is_ok());
        done
    }

    #[inline(always)] // once for each text
    fn query_text(&mut self) -> Outcome<()> {
        self.keep_found();
        let mode = self.space.settings.lex;
        let sql = self.client.last_payload().get(1..).unwrap_or_default();
        if self.template.read(sql, mode).is_err() || !self.reads_names() {
            if self.leaves_out_nul() {
                return self.query_text();
            }
            let sql = self.client.last_payload().get(1..).unwrap_or_default();
            let sql = sql.to_vec();
            let done = self.program(&sql);
            if matches!(done, Err(Failure::Refused(_))) {
                self.not_prepared(&sql);
            }
            return done;
        }
        if self.template.multiple || (self.template.trailed && self.takes_several()) {
            let sql = sql.to_vec();
            return self.several(&sql);
        }
        let known = self.space.get(&self.template.key);
        if self.diagnostics.any() || self.server.found != Found::Servers {
            let read;
            let facts = match &known {
                Some(keyed) => &keyed.plan.facts,
                None => {
                    read = Facts::read(sql, mode);
                    &read
                }
            };
            if self.diagnostics.any() || self.asks_found(facts) {
                let sql = sql.to_vec();
                return match self.ask(&sql, facts)? {
                    true => Ok(()),
                    false => self.statement(&sql, true),
                };
            }
        }
        // no warnings are kept, but how warnings are counted may still be as the last statement has
        // left it
        self.diagnostics.clear();
        // the common case: a plan is at hand and nothing protected is near
        if let Some(found) = known
            && self.account.is_fresh(&found)
            && matches!(found.plan.action, Action::Relay)
            && !self.account.is_due(&found)
            && !self.may_be_unseen(&found.plan.names)
            && !self.functions.opens()
        {
            let facts = &found.plan.facts;
            self.must_be_recordable(&found)?;
            self.must_know_transaction(facts)?;
            self.must_not_skip(&found.plan)?;
            self.current.note(facts);
            self.meter.recalled();
            self.meter.runs(found.label);
            let done = self.relay_query(&found);
            let done = self.relayed_again(&found, done);
            self.learn_savepoints(facts, done.is_ok());
            if self.has_next_transaction() || facts.next_transaction {
                let sql = self.client.last_payload().get(1..).unwrap_or_default();
                let sql = sql.to_vec();
                self.learn_next_transaction(facts, &sql, !found.plan.names.is_empty(), &done);
            } else if facts.begins_transaction && done.is_ok() {
                let sql = self.client.last_payload().get(1..).unwrap_or_default();
                self.fresh_transaction.note(sql, &[], &self.server);
            }
            return done;
        }
        let sql = sql.to_vec();
        self.statement(&sql, true)
    }

    /// After a relayed statement. If it failed because a table has become a protected one (a
    /// migration puts another in its place), it is planned and run once more.
    pub(super) fn relayed_again(&mut self, relayed: &KeyedPlan, done: Outcome<()>) -> Outcome<()> {
        if done.is_ok() {
            return done;
        }
        let sql = self.client.last_payload().get(1..).unwrap_or_default();
        let sql = sql.to_vec();
        if !self.failed_stale(relayed, &done)? {
            return done;
        }
        self.statement(&sql, true)
    }

    /// Whether a relayed statement failed because its tables are no longer what they were when it
    /// was planned. The tables are looked up.
    pub(crate) fn failed_stale(
        &mut self,
        relayed: &KeyedPlan,
        done: &Outcome<()>,
    ) -> Outcome<bool> {
        let Err(failure) = done else {
            return Ok(false);
        };
        if !self.may_run_again(failure, relayed) {
            return Ok(false);
        }
        self.server.settle()?;
        let is_different = self.looks_different(relayed, done)?;
        match is_different && self.current.read_file {
            // no server asks a client twice for its file
            true => Err(Failure::Stale),
            false => Ok(is_different),
        }
    }

    /// Whether a statement that failed like this may be planned and run once more, if its tables
    /// turn out to be others than was thought.
    pub(crate) fn may_run_again(&self, failure: &Failure, keyed: &KeyedPlan) -> bool {
        let facts = &keyed.plan.facts;
        failure.may_be_stale()
            && match failure {
                Failure::Server { .. } => !facts.calls,
                // found in the answer: what it was the answer to has been done
                Failure::Refused(_) => !self.current.wrote && !facts.runs_once(),
                _ => true,
            }
    }

    /// Looks up the tables of a statement that failed. Returns whether they are no longer what they
    /// were when it was planned. The look-up ends the server's list of warnings, so the list is
    /// read before.
    pub(crate) fn looks_different<T>(
        &mut self,
        keyed: &KeyedPlan,
        done: &Outcome<T>,
    ) -> Outcome<bool> {
        self.current.keeps_list = false;
        let list = match done {
            Err(failure @ Failure::Server { .. }) => {
                let list = self.server.rows(b"SHOW WARNINGS")?;
                // with max_error_count = 0 the server keeps none
                let may_keep_none =
                    !self.state.tracked || self.state.unusual.may_show_no_warnings();
                let keeps_none = may_keep_none && list.is_empty();
                Some(list).filter(|list| keeps_none || tells_of(list, failure))
            }
            _ => None,
        };
        let is_back = match done {
            Err(failure) => self.outlasts_exchange(failure)?,
            Ok(_) => false,
        };
        // another session may have been faster to see the change
        let changed = self.look_up(&keyed.plan.names)? || !self.account.is_fresh(keyed) || is_back;
        tracing::debug!(names = ?keyed.plan.names, changed, "a statement has failed as on other tables");
        if !changed && !matches!(done, Err(Failure::Stale)) {
            self.current.interfered = true;
            if let Some(list) = list {
                self.current.list = Some(logical_list(list, keyed));
            }
        }
        Ok(changed)
    }

    /// Keeps what the server shows of an error, before it runs another statement.
    pub(crate) fn keep_list_of(&mut self, failure: &Failure, keyed: &KeyedPlan) -> Outcome<()> {
        if let Failure::Server { .. } = failure {
            let list = self.server.rows(b"SHOW WARNINGS")?;
            self.keep_this_list(list, failure, keyed);
        }
        Ok(())
    }

    /// The same of a list that was read already.
    pub(crate) fn keep_this_list(&mut self, list: Rows, failure: &Failure, keyed: &KeyedPlan) {
        if let Failure::Server { .. } = failure {
            self.current.list = Some(logical_list(list, keyed));
        }
    }

    /// Keeps what was said before a statement of several parts failed.
    pub(crate) fn keep_list_before(&mut self, said: &Diagnostics, failure: &Failure) {
        if let Failure::Server { code, message, .. } = failure
            && !said.warnings.is_empty()
        {
            self.current.list = said.list_with(*code, message, self.state.family);
            self.current.unclear = self.current.list.is_none();
        }
    }

    /// Whether the names in the statement of `self.template` are read here as the server reads
    /// them. Beyond ASCII that takes UTF-8: in latin1, for one, a byte of 0xA0 is a blank. In a
    /// text of several statements the names are not looked at yet.
    pub(crate) fn reads_names(&self) -> bool {
        self.reads_names_of(&self.template)
    }

    /// The same of another statement.
    pub(crate) fn reads_names_of(&self, template: &Template) -> bool {
        let key = &template.key;
        self.state.tracked
            && self.state.mode_is_read
            && match self.state.client_charset {
                None => false,
                Some(_) if template.multiple || key.is_ascii() => true,
                Some(Charset::Utf8mb4 | Charset::Utf8mb3) => std::str::from_utf8(key).is_ok(),
                Some(_) => false,
            }
    }

    /// Why a text that cannot be read does not go through. Where the session's character set is the
    /// cause, its entry says so.
    pub(crate) fn unread(&self, reason: NotUnderstood) -> Failure {
        let refusal = Refusal::from(reason);
        Failure::Refused(match self.state.client_charset {
            Some(_) => refusal,
            None => refusal.under(&errors::CHARACTER_SET),
        })
    }

    /// A text that cannot be lexed, or a session whose character set cannot: it goes through if
    /// no word of it is the name of a protected table. Words may be values here, so the server
    /// is asked for all protected tables, not for the words.
    pub(super) fn unreadable(&mut self, sql: &[u8]) -> Outcome<()> {
        self.unread_text(sql, None)
    }

    /// Whether a text is a compound statement that is not read here, and nothing else.
    pub(crate) fn is_unread_program(&self, sql: &[u8]) -> bool {
        let mode = self.space.settings.lex;
        let cut = onionskin_plan::lex::split(sql, mode);
        let is_one = cut.is_ok_and(|cut| cut.compound.is_some() && cut.parts.is_empty());
        is_one && !onionskin_plan::reads_program(sql, mode)
    }

    /// Runs a statement that executes such a text, which goes through as a text does that cannot be
    /// read. `whole`: the statement is the client's packet.
    pub(crate) fn unread_program(&mut self, text: &[u8], sql: &[u8], whole: bool) -> Outcome<()> {
        self.unread_text(text, Some((sql, whole)))
    }

    /// `around`: the statement that has the text in it, and whether that is the client's packet.
    fn unread_text(&mut self, sql: &[u8], around: Option<(&[u8], bool)>) -> Outcome<()> {
        if self.shared.leading.only_reads() {
            let about = "a text that cannot be read";
            return Err(Failure::refused(&errors::ONLY_READS, about));
        }
        if self.functions.opens() {
            let about = "in a text that cannot be read";
            return Err(Failure::refused(&errors::FUNCTION, about));
        }
        // look-ups would be what it asks about
        let words = Words::of(sql);
        if words.ask() {
            let can_be_asked =
                around.is_none() && words.only_ask() && self.server.found == Found::Servers;
            if self.diagnostics.any() || !can_be_asked {
                return Err(self.unread(NotUnderstood::LastStatement("a question")));
            }
            let question = self.put_client_command()?;
            return self.relay_answer(question, &[]);
        }
        if self.server.sees_an_old_past() {
            let about = "a text that cannot be read";
            return Err(Failure::refused(&errors::SNAPSHOT, about));
        }
        let is_lost = self.state.family == Family::MariaDb
            && (self.diagnostics.any() || self.server.may_hold_list);
        // in letters that no character set for results changes
        let (names, warnings) = self.server.rows_and_warnings(
            "SELECT DISTINCT HEX(CONVERT(TABLE_NAME USING utf8mb4)) FROM information_schema.COLUMNS WHERE COLUMN_NAME LIKE '%$enc'",
        )?;
        // a table that a definition has locked is left out in a transaction, with a warning
        let hides = |shown: &Rows| shown.is_empty() || is_locked(shown);
        if warnings > 0 && hides(&self.server.rows(b"SHOW WARNINGS")?) {
            return Err(self.unread(NotUnderstood::ChangingDefinition));
        }
        let mut protected = Vec::new();
        for cell in names.into_iter().flatten() {
            let name = cell.as_deref().and_then(unhex);
            let name = name.and_then(|name| String::from_utf8(name).ok());
            protected.push(name.ok_or_else(|| self.unread(NotUnderstood::TableNames))?);
        }
        let database = self.state.database.clone();
        let named =
            onionskin_plan::tables_of_program(sql, self.space.settings.lex, database.as_deref());
        if let Some(names) = &named
            && self.may_be_unseen(names)
        {
            self.see_temporary(names, false)?;
        }
        let temporary = self.account.temporary_names();
        protected.extend(temporary.into_iter().map(|table| table.name));
        protected.extend(self.names_to_guard()?);
        let database = self.state.database.as_deref();
        if protected.iter().any(|name| words.may_name(name)) {
            return Err(self.unread(NotUnderstood::MayNameProtected));
        }
        if words.may_define(&self.shared.config.policy, database) {
            return Err(self.unread(NotUnderstood::MayDefineProtected));
        }
        let may_fill = match named {
            Some(names) => self.may_be_protected_later(&names)?,
            None => words.may_fill(&self.shared.config.policy, database),
        };
        if may_fill {
            return Err(self.unread(NotUnderstood::MayFillProtected));
        }
        if words.protects() {
            return Err(self.unread(NotUnderstood::MayEncrypt));
        }
        // what a text for PREPARE does is in none of these words
        if words.prepares() {
            return Err(Failure::refused(&errors::DYNAMIC, "a statement text"));
        }
        self.diagnostics.clear();
        self.diagnostics.is_lost = is_lost;
        self.diagnostics.of_earlier = is_lost;
        self.current.finds = Finds::Unknown;
        self.current.leaves_temporary = true;
        let scoped = match self.state.family {
            Family::MariaDb => onionskin_plan::scoped(sql, self.space.settings.lex)?,
            Family::MySql => None,
        };
        let question = match scoped {
            // the text is the server's to read, where it stands
            Some(_) if around.is_some() => return Err(self.unread(NotUnderstood::Words)),
            Some(text) => {
                let question = self.server.put_query(&text)?;
                self.server.flush()?;
                question
            }
            None => match around {
                Some((outer, false)) => {
                    let question = self.server.put_query(outer)?;
                    self.server.flush()?;
                    question
                }
                _ => self.put_client_command()?,
            },
        };
        self.relay_answer(question, &[])
    }

    /// A text of which it is not clear where statements end. A stored program that is read to its
    /// end, in a dump's comments too, is one statement.
    fn program(&mut self, sql: &[u8]) -> Outcome<()> {
        let mode = self.space.settings.lex;
        let inner = unwrapped(sql, mode);
        let text = inner.as_deref().unwrap_or(sql);
        let is_read = onionskin_plan::reads_program(text, mode)
            && self.template.read(text, mode).is_ok()
            && self.reads_names()
            && !self.functions.opens();
        match is_read {
            true => self.one_of_several(text, true).map(|_| ()),
            false => self.unreadable(sql),
        }
    }

    /// Cuts a text of several statements. `None`: its semicolons may belong to a stored program.
    fn cut(&self, sql: &[u8]) -> Outcome<Option<Several>> {
        let mode = self.space.settings.lex;
        let cut = onionskin_plan::lex::split(sql, mode).map_err(|_| NotUnderstood::Words)?;
        let Statements {
            mut parts,
            empty,
            compound,
        } = cut;
        let program = compound.is_some();
        if let Some(range) = compound {
            // one that is read to its end can be the last of several
            let is_last = !parts.is_empty()
                && empty.is_none()
                && onionskin_plan::reads_program(&sql[range.clone()], mode);
            if !is_last {
                return Ok(None);
            }
            parts.push(range);
        }
        if self.takes_several() {
            return Ok(Some(Several {
                parts,
                empty,
                program,
            }));
        }
        match near_second(sql, &parts, empty.as_ref(), mode) {
            Some(at) if self.reads_names() => Err(self.syntax_error_at(sql, at)),
            _ => Ok(None),
        }
    }

    /// The error for a text of several statements where one is wanted.
    pub(crate) fn must_be_one(&self, sql: &[u8]) -> Failure {
        let mode = self.space.settings.lex;
        let cut = onionskin_plan::lex::split(sql, mode).ok();
        let second = cut
            .as_ref()
            .and_then(|cut| near_second(sql, &cut.parts, cut.empty.as_ref(), mode));
        // drivers send the text of a stored program where it cannot be prepared
        if second.is_none() && cut.is_some_and(|cut| cut.compound.is_some()) {
            return cannot_be_prepared();
        }
        let semicolon = || sql.iter().position(|b| *b == b';');
        let at = second.or_else(semicolon).unwrap_or(sql.len());
        self.syntax_error_at(sql, at)
    }

    pub(crate) fn syntax_error_at(&self, sql: &[u8], at: usize) -> Failure {
        let before = sql[..at].trim_ascii_start();
        let line = 1 + before.iter().filter(|b| **b == b'\n').count();
        // servers take these off the end first
        let ends = |b: &u8| matches!(b, b';' | 0x0b) || b.is_ascii_whitespace();
        let end = sql
            .iter()
            .rposition(|b| !ends(b))
            .map_or(at, |last| last + 1);
        server_errors::syntax(self.state.family, &sql[at..end.max(at)], line)
    }

    /// Several statements in one text: relayed as they are if nothing protected is near any of
    /// them, else run one after the other.
    pub(super) fn several(&mut self, sql: &[u8]) -> Outcome<()> {
        let mode = self.space.settings.lex;
        let Some(Several {
            mut parts,
            empty,
            program,
        }) = self.cut(sql)?
        else {
            return self.program(sql);
        };
        // what is behind an empty statement is not read
        let mut all_relay = empty.is_none();
        parts.truncate(empty.as_ref().map_or(parts.len(), |empty| empty.before));
        let mut plans = Vec::with_capacity(parts.len());
        let mut leave_temporary = false;
        let (mut reads, mut writes) = (false, false);
        for range in &parts {
            let part = &sql[range.clone()];
            self.current.part = Some(Box::new(range.clone()));
            self.template
                .read(part, mode)
                .map_err(|_| NotUnderstood::Words)?;
            if !self.reads_names() {
                return self.unreadable(sql);
            }
            if plans.is_empty() {
                self.will_keep_list(part);
            }
            // one before it may make its tables
            self.current.plans_ahead = true;
            let planned = self.plan_or_free(part);
            self.current.plans_ahead = false;
            let planned = planned?;
            all_relay &= planned.plan.doubt == Doubt::None;
            all_relay &=
                matches!(planned.plan.action, Action::Relay) && !planned.plan.defines.any();
            let facts = &planned.plan.facts;
            all_relay &= !facts.may_ignore() || planned.plan.names.is_empty();
            all_relay &= !facts.changes_meaning;
            all_relay &= facts.locks_tables.is_none() && facts.savepoints.is_none();
            all_relay &= !self.diagnostics.any() || facts.question == Question::None;
            all_relay &= !self.asks_found(facts);
            all_relay &= !self.has_next_transaction() && !facts.next_transaction;
            // each of them has to begin READ ONLY
            all_relay &= !planned.runs_programs || !self.shared.leading.only_reads();
            // what stands behind it may be about a table that it makes
            let leaves_temporary = planned.plan.facts.leaves_temporary;
            all_relay &= !leaves_temporary || self.shared.config.policy.is_empty();
            leave_temporary |= leaves_temporary;
            // so may what runs with a table before it
            let asks = facts.verb == Verb::Select;
            all_relay &= !(writes || reads && !asks) || !self.may_be_hidden(&planned.plan.names);
            let names_one = self.names_a_table(&planned.plan.names);
            (reads, writes) = (reads || names_one, writes || names_one && !asks);
            plans.push(planned);
        }
        // all of them go out at once: what was planned for the first is of now when the last one is
        for planned in plans.iter().filter(|_| all_relay) {
            if !self.is_of_now(planned)? {
                all_relay = false;
                break;
            }
        }
        self.current.keeps_list = false;
        // each of them has to be judged in its turn
        all_relay &= !self.is_demoted();
        // the server has no list any more
        all_relay &= !self.diagnostics.of_earlier;
        if all_relay {
            self.diagnostics.clear();
            self.current.finds = Finds::Unknown;
            self.current.leaves_temporary = leave_temporary;
            let question = self.put_client_command()?;
            return self.relay_answer(question, &[]);
        }
        for (i, range) in parts.iter().enumerate() {
            // each begins under what holds when its turn comes
            if !self.live.is_current(&self.shared) {
                self.adopt();
            }
            if self.is_demoted() && !self.may_finish() {
                return Err(self.shared.leading.demoted());
            }
            let part = sql[range.clone()].to_vec();
            self.be_certain_for(&part)?;
            self.template
                .read(&part, self.space.settings.lex)
                .map_err(|_| NotUnderstood::Words)?;
            let last = i + 1 == parts.len() && empty.is_none();
            let is_one = !self.template.multiple
                || last && program && onionskin_plan::reads_program(&part, self.space.settings.lex);
            if !is_one || !self.reads_names() {
                // one before it has changed how texts are read
                return Err(NotUnderstood::EndsElsewhere.into());
            }
            // by other settings, a call may be in it
            self.must_not_call(&part)?;
            self.current.executed = Some(Arc::from(part.as_slice()));
            let done = self.one_of_several(&part, last);
            self.current.part = Some(Box::new(range.clone()));
            if !done? {
                return Ok(());
            }
            self.after_command()?;
            self.note_untold()?;
            self.learn_collation()?;
        }
        match empty {
            Some(Empty { near, line, .. }) => {
                Err(server_errors::syntax(self.state.family, &sql[near], line))
            }
            None => Ok(()),
        }
    }

    /// Whether a text may hold several statements.
    fn takes_several(&self) -> bool {
        let capabilities = self.server.capabilities;
        capabilities.contains(Capabilities::MULTI_STATEMENTS)
    }

    /// Runs one of several statements. `Ok(false)`: it failed, the others are not run.
    pub(super) fn one_of_several(&mut self, sql: &[u8], last: bool) -> Outcome<bool> {
        self.keep_row_count();
        self.current = StatementRun {
            more_results: !last,
            ..StatementRun::new(self.server.status)
        };
        self.keep_found();
        let facts = Facts::read(sql, self.space.settings.lex);
        let done = match self.ask(sql, &facts) {
            Ok(false) => self.statement(sql, false),
            answered => answered.map(|_| ()),
        };
        self.current.more_results = false;
        done?;
        Ok(!self.current.sent_error)
    }

    /// Plans and runs one statement; `whole` says that it is the client's packet.
    pub fn statement(&mut self, sql: &[u8], whole: bool) -> Outcome<()> {
        // of this statement and of no other
        let from_variables = std::mem::take(&mut self.current.from_variables);
        self.will_keep_list(sql);
        let mut keyed = self.plan_or_free(sql)?;
        self.must_know_transaction(&keyed.plan.facts)?;
        self.current.note(&keyed.plan.facts);
        if let Action::ByName(statement) = &keyed.plan.action {
            let done = self.by_name(statement, sql, whole);
            self.learn_next_transaction(&keyed.plan.facts, sql, false, &done);
            done?;
            self.has_found();
            return Ok(());
        }
        self.current.keeps_list = false;
        if let Action::Refuse(refusal) = &keyed.plan.action
            && from_variables.is_empty()
            && let Some(inner) = self.in_other_words(sql, refusal)
            && self.template.read(&inner, self.space.settings.lex).is_ok()
            && !self.template.multiple
        {
            return self.statement(&inner, false);
        }
        let mut template = std::mem::take(&mut self.template);
        let mut attempts = 0;
        self.current.begin();
        let done = loop {
            let execution = Execution::of_text(sql, &template, &keyed, &from_variables, whole);
            let done = self.run(&execution).map(|_| ());
            match self.another_way(sql, &template, &keyed, &done, &mut attempts)? {
                None => break done,
                Some(Way::Other(other)) => keyed = other,
                Some(Way::Afresh) => {
                    self.template = template;
                    keyed = self.make_plan(sql, true)?;
                    template = std::mem::take(&mut self.template);
                }
            }
        };
        let names = !keyed.plan.names.is_empty();
        self.learn_next_transaction(&keyed.plan.facts, sql, names, &done);
        self.template = template;
        self.diagnostics.shows_tokens |= keyed.warns_of_tokens();
        if done.is_ok() {
            self.has_found_by(&keyed.plan.action);
        }
        self.concluded(done, &keyed)
    }

    /// A statement that was refused, in words that rules may read.
    pub(crate) fn in_other_words(&self, sql: &[u8], refusal: &Refusal) -> Option<Vec<u8>> {
        in_other_words(sql, refusal, &self.space.settings)
    }

    /// Plans a statement. If it is a PREPARE and is refused, its name has no statement from now on.
    fn plan_or_free(&mut self, sql: &[u8]) -> Outcome<Arc<KeyedPlan>> {
        let planned = self.plan(sql);
        if planned.is_err() {
            self.not_prepared(sql);
        }
        planned
    }

    /// The end of a statement of this plan, as the client hears of it.
    pub(crate) fn concluded(&mut self, done: Outcome<()>, keyed: &KeyedPlan) -> Outcome<()> {
        match done {
            Ok(()) => Ok(()),
            Err(failure) => {
                self.may_have_found();
                let failure = self.or_read_only(failure, keyed)?;
                // the server says more of computed assignments, before and behind
                let is_beside = match failure {
                    Failure::Value(_) => true,
                    Failure::Server { .. } => !self.diagnostics.warnings.is_empty(),
                    _ => false,
                };
                self.current.unclear |= is_beside && keyed.plan.facts.computes_among_others;
                let servers = failure.servers_text();
                let failure = in_logical_terms(failure, keyed);
                let failure = self.with_duplicate(failure, servers.as_deref());
                // what ended within another statement's run may have been reworded there already
                self.current.reworded |= servers != failure.servers_text();
                Err(failure)
            }
        }
    }
}

/// Where a server that takes one statement meets a second one, or an empty one before it.
fn near_second(
    sql: &[u8],
    parts: &[Range<usize>],
    empty: Option<&Empty>,
    mode: LexMode,
) -> Option<usize> {
    let says = |part: &&Range<usize>| {
        let token = Lexer::new(&sql[(*part).clone()], mode).next_token();
        matches!(token, Ok(Some(_)))
    };
    let second = parts.get(1).filter(says).map(|part| part.start);
    match empty {
        Some(empty) if empty.before < 2 => Some(empty.near.start),
        _ => second,
    }
}
