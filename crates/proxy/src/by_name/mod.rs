//! Statements that are prepared by name, in SQL: `PREPARE s FROM 'text'`, `EXECUTE s USING @a`,
//! `DEALLOCATE PREPARE s`, and MariaDB's `EXECUTE IMMEDIATE`.
//!
//! A text that touches nothing protected is prepared at the server, as it is. The proxy remembers
//! it all the same, because a migration, or another session, can put a protected table in the place
//! of one of its tables. Any other text stays in the proxy. The server sees its physical form once,
//! to tell what is wrong with it. At every execution it sees the statement itself, with the
//! variables' values in the places of the `?`. So an execution goes the way of any statement,
//! through all tiers.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | the statements, and what the session has prepared |
//! | `values` | the values of user variables, as literals |
//!
//! A text means what it meant when it was prepared: the database of that time counts. If the
//! session reads texts otherwise by now (`sql_mode`, character sets), the statement has to be
//! prepared again. The server's own routines that prepare statements know physical names only.

mod values;

use std::collections::HashMap;
use std::sync::Arc;

use onionskin_plan::by_name::{executed, is_by_name, parameters, prepared_name, second_string};
use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{
    Action, Argument, ByName, Facts, LexMode, LiteralKind, Refusal, StatementText, Template, errors,
};
use onionskin_schema::{TableName, folded, identifier};
use onionskin_value::Family;
use onionskin_wire::WireError;
use onionskin_wire::messages::Command;

use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::exchange::Done;
use crate::prepared::{Setting, Statement, too_many};
use crate::server_errors::NOT_LOCKED;
use crate::session::{Session, hide_tokens, in_logical_terms};

/// Statements that a session may have: the servers' `max_prepared_stmt_count`.
const MAX_STATEMENTS: usize = 16_382;
/// Bytes of their texts, together.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// The session's statements, by their names in lower case.
#[derive(Default)]
pub(crate) struct Named {
    entries: HashMap<String, Entry>,
    bytes: usize,
}

/// A prepared text.
#[derive(Clone)]
struct Entry {
    text: Arc<[u8]>,
    setting: Setting,
    parameters: usize,
    /// It asks about the statement before it.
    asks: bool,
    /// MariaDB keeps its list of warnings over it.
    keeps_list: bool,
    place: Place,
}

/// Where a text is prepared.
#[derive(Clone)]
enum Place {
    /// At the server. Nothing protected was near.
    Server(Arc<KeyedPlan>),
    /// Here.
    Proxy,
    /// Nowhere: its preparation was refused.
    Nowhere,
}

impl Named {
    pub fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.get(&folded(name))
    }

    fn remove(&mut self, name: &str) -> Option<Entry> {
        let removed = self.entries.remove(&folded(name));
        self.bytes -= removed.as_ref().map_or(0, |e| e.text.len());
        removed
    }

    /// Whether another text of this length may be kept.
    fn has_room(&self, length: usize) -> Outcome<()> {
        if self.entries.len() >= MAX_STATEMENTS {
            return Err(too_many(MAX_STATEMENTS));
        }
        if self.bytes + length > MAX_TEXT_BYTES {
            return Err(Failure::refused(
                &errors::MEMORY,
                "texts of prepared statements",
            ));
        }
        Ok(())
    }

    fn put(&mut self, name: &str, entry: Entry) {
        self.remove(name);
        self.bytes += entry.text.len();
        self.entries.insert(folded(name), entry);
    }
}

impl Session {
    /// Does one of these statements; `whole` says that it is the client's packet.
    pub(crate) fn by_name(&mut self, statement: &ByName, sql: &[u8], whole: bool) -> Outcome<()> {
        self.current.begin();
        match statement {
            ByName::Prepare { name, text } => self.prepare_by_name(name, text, sql, whole),
            ByName::Execute { name, using } => {
                self.execute_by_name(name, using.as_deref(), sql, whole)
            }
            ByName::Immediate { text, using } => {
                self.execute_immediate(text, using.as_deref(), sql, whole)
            }
            ByName::Deallocate { name } => match self.statements.named.remove(name) {
                Some(entry) if matches!(entry.place, Place::Proxy) => {
                    // it ends MySQL's list of the statement before, and the server is not told
                    self.diagnostics.hides_servers |= self.state.family == Family::MySql;
                    self.write_done(&Done::default())
                }
                Some(entry) if matches!(entry.place, Place::Nowhere) => {
                    self.say_that_there_is_none(name, sql, whole)
                }
                _ => self.relay_by_name(sql, whole, &[]),
            },
        }
    }

    /// Whether a statement executes one that asks about the statement before it.
    pub(crate) fn asks_by_name(&self, sql: &[u8]) -> bool {
        let named = &self.statements.named;
        let Some(name) = executed(sql, self.space.settings.lex) else {
            return false;
        };
        if name.eq_ignore_ascii_case("immediate") {
            // a text in a variable may ask anything
            let text = String::from_utf8_lossy(sql).to_ascii_lowercase();
            let words = ["row_count", "found_rows", "warning", "error", "diagnostics"];
            return text.contains('@') || words.iter().any(|w| text.contains(w));
        }
        named.get(&name).is_some_and(|e| e.asks)
    }

    fn relay_by_name(&mut self, sql: &[u8], whole: bool, names: &[TableName]) -> Outcome<()> {
        self.current.keeps_list = false;
        self.say_next_transaction()?;
        let question = if whole {
            let payload = self.client.last_payload();
            self.server.put_command(payload)?
        } else {
            self.server.put_query(sql)?
        };
        self.server.flush()?;
        self.relay_answer(question, names)
    }

    /// A statement was refused before anything of it was done. If it is a PREPARE, its name has no
    /// statement any more: a server forgets the old one before it looks at the new text.
    pub(crate) fn not_prepared(&mut self, sql: &[u8]) {
        let Some(name) = prepared_name(sql, self.space.settings.lex) else {
            return;
        };
        self.statements.named.remove(&name);
        if self.statements.named.has_room(0).is_ok() {
            let entry = self.unprepared();
            self.statements.named.put(&name, entry);
        }
    }

    /// What is known of a statement until its preparation has succeeded.
    fn unprepared(&self) -> Entry {
        Entry {
            text: Arc::from([].as_slice()),
            setting: self.setting(),
            parameters: 0,
            asks: false,
            keeps_list: false,
            place: Place::Nowhere,
        }
    }

    fn prepare_by_name(
        &mut self,
        name: &str,
        source: &StatementText,
        sql: &[u8],
        whole: bool,
    ) -> Outcome<()> {
        // no PREPARE to the server: what has had the name keeps it
        if self.state.family == Family::MySql
            && let Some(at) = second_string(sql, self.space.settings.lex)
        {
            return Err(self.syntax_error_at(sql, at));
        }
        let before = self.statements.named.remove(name);
        self.statements.named.has_room(0)?;
        // until it is known what becomes of it; the servers forget the old statement in any case
        let mut entry = self.unprepared();
        self.statements.named.put(name, entry.clone());
        let Some(mut text) = self.text_of(source)? else {
            // no text: the server says so
            self.statements.named.remove(name);
            return self.relay_by_name(sql, whole, &[]);
        };
        entry.keeps_list = self.facts_of(&text).keeps_list();
        self.leave_last_by(entry.keeps_list);
        let (keyed, template) = self.planned_text(&mut text)?;
        entry.parameters = parameters_of(&template);
        entry.asks = keyed.plan.facts.question.asks();
        entry.text = Arc::from(text.as_slice());
        self.statements.named.has_room(text.len())?;
        if matches!(keyed.plan.action, Action::Relay) {
            self.check_temporary(&keyed)?;
            self.statements.named.remove(name);
            self.relay_by_name(sql, whole, &[])?;
            entry.place = Place::Server(keyed);
            self.statements.named.put(name, entry);
            return Ok(());
        }
        if !name.is_ascii() {
            return Err(Failure::refused(&errors::DYNAMIC, "the statement's name"));
        }
        if !matches!(before.map(|e| e.place), Some(Place::Proxy)) {
            self.forget_at_server(name)?;
        }
        if entry.parameters > 0 {
            parameters(&text, self.space.settings.lex)?;
        }
        self.checked_text(&text, &template, keyed)?;
        entry.place = Place::Proxy;
        self.statements.named.put(name, entry);
        let info = b"Statement prepared".to_vec();
        self.diagnostics.hides_servers = true;
        self.write_done(&Done {
            info,
            ..Done::default()
        })
    }

    /// Under LOCK TABLES, refuses as the server does what names a table that is not locked.
    fn must_be_locked(&mut self, keyed: &KeyedPlan) -> Outcome<()> {
        if !self.locked_tables {
            return Ok(());
        }
        let mut tables: Vec<(String, String)> = keyed
            .plan
            .columns
            .iter()
            .map(|used| (used.table.database.clone(), used.table.name.clone()))
            .collect();
        tables.sort();
        tables.dedup();
        for (database, name) in tables {
            let (database, name) = (identifier(&database), identifier(&name));
            let question = format!("SELECT 1 FROM {database}.{name} LIMIT 0");
            match self.server.rows(question.as_bytes()) {
                Err(
                    failure @ Failure::Server {
                        code: NOT_LOCKED, ..
                    },
                ) => return Err(failure),
                Err(failure) if failure.is_fatal() => return Err(failure),
                _ => self.server.settle()?,
            }
        }
        Ok(())
    }

    fn facts_of(&self, text: &[u8]) -> Facts {
        Facts::read(text, self.space.settings.lex)
    }

    /// The statement's text; `None` where the variable holds nothing that could be one.
    fn text_of(&mut self, source: &StatementText) -> Outcome<Option<Vec<u8>>> {
        let text = self.text_as_given(source)?;
        if let Some(text) = &text {
            self.must_not_call(text)?;
        }
        Ok(text)
    }

    fn text_as_given(&mut self, source: &StatementText) -> Outcome<Option<Vec<u8>>> {
        match source {
            StatementText::Literal(text) => Ok(Some(text.clone())),
            StatementText::Variable(name) => self.text_in_variable(name),
            StatementText::Unclear => Err(Failure::refused(
                &errors::DYNAMIC,
                "a statement text that is an expression",
            )),
        }
    }

    /// The plan of a text, and its shape. The text may become one in other words.
    fn planned_text(&mut self, text: &mut Vec<u8>) -> Outcome<(Arc<KeyedPlan>, Template)> {
        let (mut keyed, mut template) = self.planned_as_it_is(text)?;
        while let Action::Refuse(refusal) = &keyed.plan.action {
            let is_wrapped = refusal.is(&errors::EXECUTABLE_COMMENT);
            match self.in_other_words(text, refusal).filter(|_| !is_wrapped) {
                None => return Err(refusal.clone().into()),
                Some(other) => *text = other,
            }
            (keyed, template) = self.planned_as_it_is(text)?;
        }
        Ok((keyed, template))
    }

    fn planned_as_it_is(&mut self, text: &[u8]) -> Outcome<(Arc<KeyedPlan>, Template)> {
        let mode = self.space.settings.lex;
        let mut template = Template::default();
        if template.read_unfolded(text, mode).is_err() {
            return Err(Failure::refused(&errors::DYNAMIC, "a statement text"));
        }
        if template.multiple && !onionskin_plan::reads_program(text, mode) {
            return Err(self.must_be_one(text));
        }
        if is_by_name(text, mode) {
            return Err(cannot_be_prepared());
        }
        std::mem::swap(&mut self.template, &mut template);
        let planned = match self.reads_names() {
            true => self.plan(text),
            false => Err(Failure::refused(&errors::CHARACTER_SET, "a statement text")),
        };
        std::mem::swap(&mut self.template, &mut template);
        let keyed = planned?;
        // the server may keep the text, and execute it by itself
        self.must_not_skip(&keyed.plan)?;
        match &keyed.plan.action {
            Action::ScratchWrite(write) if write.loads() => Err(cannot_be_prepared()),
            _ => Ok((keyed, template)),
        }
    }

    /// Has the server look at the physical text, and says what it finds wrong with it.
    fn checked_text(
        &mut self,
        text: &[u8],
        template: &Template,
        mut keyed: Arc<KeyedPlan>,
    ) -> Outcome<()> {
        for attempt in 0..2 {
            let pieces = match &keyed.plan.action {
                Action::Server { text, .. } => text,
                Action::Finish(finish) => &finish.text,
                Action::Scratch(scratch) => {
                    return self.scratch_definitions(scratch, text).map(|_| ());
                }
                // of what becomes several statements the server is not shown any
                _ if keyed.plan.facts.writes() => {
                    if let Some(refused) = self.read_only_error(&keyed.plan)? {
                        return Err(refused);
                    }
                    return self.must_be_locked(&keyed);
                }
                _ => return Ok(()),
            };
            let setting = self.setting();
            let statement = Statement::new(text.to_vec(), template, &keyed, 0, setting);
            match self.prepare_at_server(&statement, pieces, false) {
                Ok((id, ..)) => return self.close_at_server(id),
                Err(failure @ Failure::Server { .. }) => {
                    self.server.settle()?;
                    let again = attempt == 0 && self.may_run_again(&failure, &keyed);
                    let failed = Err(failure);
                    if !again || !self.looks_different(&keyed, &failed)? {
                        return failed.map_err(|failure| in_logical_terms(failure, &keyed));
                    }
                    keyed = self.planned_text(&mut text.to_vec())?.0;
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// The server has another statement of this name, perhaps.
    fn forget_at_server(&mut self, name: &str) -> Outcome<()> {
        let sql = format!("DEALLOCATE PREPARE `{}`", name.replace('`', "``"));
        match self.server.run(sql.as_bytes()) {
            Ok(_) => Ok(()),
            // there is none
            Err(Failure::Server { code: 1243, .. }) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Makes the server say that there is no statement of this name. The server may still have the
    /// one before, and must not execute that.
    fn say_that_there_is_none(&mut self, name: &str, sql: &[u8], whole: bool) -> Outcome<()> {
        // in another character set, another name would be forgotten
        if !name.is_ascii() {
            return Err(Failure::refused(&errors::DYNAMIC, "the statement's name"));
        }
        self.forget_at_server(name)?;
        self.statements.named.remove(name);
        self.relay_by_name(sql, whole, &[])
    }

    fn execute_by_name(
        &mut self,
        name: &str,
        using: Option<&[Argument]>,
        sql: &[u8],
        whole: bool,
    ) -> Outcome<()> {
        let Some(entry) = self.statements.named.get(name).cloned() else {
            let is_constant = |argument: &Argument| matches!(argument, Argument::Literal(_));
            // the values may be those of protected columns
            return match using.is_none_or(|using| using.iter().any(is_constant)) {
                true => Err(self.no_such_statement(name, "EXECUTE")),
                false => self.relay_by_name(sql, whole, &[]),
            };
        };
        self.leave_last_by(entry.keeps_list);
        self.current.executed = Some(Arc::clone(&entry.text));
        let keyed = match &entry.place {
            Place::Proxy => return self.execute_here(&entry, using, "EXECUTE"),
            Place::Nowhere => {
                let bare = format!("EXECUTE {}", identifier(name));
                return self.say_that_there_is_none(name, bare.as_bytes(), false);
            }
            Place::Server(keyed) => self.current(&entry, keyed)?,
        };
        if let Some(keyed) = keyed {
            let done = self.execute_at_server(&keyed, sql, whole);
            if !self.failed_stale(&keyed, &done)? {
                if let Some(entry) = self.statements.named.entries.get_mut(&folded(name)) {
                    entry.place = Place::Server(keyed);
                }
                return done;
            }
        }
        // what was prepared at the server stays here from now on
        self.forget_at_server(name)?;
        let kept = self.statements.named.entries.get_mut(&folded(name));
        if let Some(kept) = kept {
            kept.place = Place::Proxy;
        }
        self.execute_here(&entry, using, "EXECUTE")
    }

    /// The plan of a text that is prepared at the server, as of now. `None`: something protected is
    /// near by now.
    fn current(
        &mut self,
        entry: &Entry,
        keyed: &Arc<KeyedPlan>,
    ) -> Outcome<Option<Arc<KeyedPlan>>> {
        if self.names_temporary(&keyed.plan.names) {
            return Ok(None);
        }
        if self.is_of_now(keyed)? {
            return Ok(Some(Arc::clone(keyed)));
        }
        if !self.reads_as_then(&entry.setting) {
            return Err(prepare_again());
        }
        let mut text = entry.text.to_vec();
        let planned = self.in_database_of(&entry.setting, |s| s.planned_text(&mut text));
        let (keyed, _) = planned?;
        Ok(matches!(keyed.plan.action, Action::Relay).then_some(keyed))
    }

    /// Plans as if the session were in another database.
    fn in_database_of<T>(
        &mut self,
        setting: &Setting,
        work: impl FnOnce(&mut Self) -> Outcome<T>,
    ) -> Outcome<T> {
        if self.state.database == setting.database {
            return work(self);
        }
        let tier3 = self.shared.use_scratch();
        let space = Arc::clone(&self.space);
        let database = self.state.database.clone();
        self.state.database.clone_from(&setting.database);
        let (key, settings) = (self.state.settings_key(), self.state.settings(tier3));
        self.space = self.account.space(key, settings);
        let done = work(self);
        self.state.database = database;
        self.space = space;
        done
    }

    fn execute_at_server(
        &mut self,
        keyed: &Arc<KeyedPlan>,
        sql: &[u8],
        whole: bool,
    ) -> Outcome<()> {
        let names: &[TableName] = match keyed.plan.facts.runs_once() {
            true => &[],
            false => &keyed.plan.names,
        };
        self.current.note_programs(keyed);
        let done = self.relay_by_name(sql, whole, names);
        self.end_relay(keyed, done)
    }

    fn execute_immediate(
        &mut self,
        source: &StatementText,
        using: Option<&[Argument]>,
        sql: &[u8],
        whole: bool,
    ) -> Outcome<()> {
        let Some(mut text) = self.text_of(source)? else {
            return self.relay_by_name(sql, whole, &[]);
        };
        let keeps_list = self.facts_of(&text).keeps_list();
        self.leave_last_by(keeps_list);
        self.current.executed = Some(Arc::from(text.as_slice()));
        if self.state.family == Family::MariaDb
            && using.is_some_and(<[Argument]>::is_empty)
            && self.is_unread_program(&text)
        {
            return self.unread_program(&text, sql, whole);
        }
        let (keyed, template) = self.planned_text(&mut text)?;
        if matches!(keyed.plan.action, Action::Relay) {
            self.check_temporary(&keyed)?;
            let done = self.execute_at_server(&keyed, sql, whole);
            if !self.failed_stale(&keyed, &done)? {
                return done;
            }
        } else if self.state.family == Family::MySql {
            return Err(syntax_error("IMMEDIATE"));
        }
        let entry = Entry {
            text: Arc::from(text.as_slice()),
            setting: self.setting(),
            parameters: parameters_of(&template),
            asks: keyed.plan.facts.question.asks(),
            keeps_list,
            place: Place::Proxy,
        };
        self.execute_here(&entry, using, "EXECUTE")
    }

    /// Executes a text that the proxy keeps.
    fn execute_here(
        &mut self,
        entry: &Entry,
        using: Option<&[Argument]>,
        verb: &str,
    ) -> Outcome<()> {
        let Some(using) = using else {
            let about = "an expression behind USING; put its value into a variable";
            return Err(Failure::refused(&errors::DYNAMIC, about));
        };
        let literals = using.iter().any(|a| matches!(a, Argument::Literal(_)));
        if literals && self.state.family == Family::MySql {
            return Err(syntax_error("USING"));
        }
        if using.len() != entry.parameters {
            return Err(Failure::Server {
                code: 1210,
                state: *b"HY000",
                message: format!("Incorrect arguments to {verb}").into_bytes(),
            });
        }
        if !self.reads_as_then(&entry.setting) {
            return Err(prepare_again());
        }
        let mut text = entry.text.to_vec();
        if !using.is_empty() {
            let places = parameters(&text, self.space.settings.lex)?;
            text = self.with_values(&text, &places, using)?;
        }
        let elsewhere = match (&entry.setting.database, &self.state.database) {
            // its names are qualified
            (None, _) => None,
            (Some(then), now) if Some(then) == now.as_ref() => None,
            (Some(then), Some(now)) => Some((then.clone(), now.clone())),
            // nothing leads back to no database
            (Some(_), None) => return Err(prepare_again()),
        };
        match elsewhere {
            None => self.run_text(&text),
            Some((then, now)) => {
                if names_database(&text, self.space.settings.lex) {
                    return Err(prepare_again());
                }
                self.use_database(&then)?;
                let done = self.run_text(&text);
                if done.as_ref().is_err_and(Failure::is_fatal) {
                    return done;
                }
                // the client has its answer: without the way back the session cannot go on
                let lost = |_| Failure::Client(WireError::Closed);
                self.server.settle().map_err(lost)?;
                self.keep_diagnostics(done.is_err()).map_err(lost)?;
                self.use_database(&now).map_err(lost)?;
                done
            }
        }
    }

    fn run_text(&mut self, text: &[u8]) -> Outcome<()> {
        let mode = self.space.settings.lex;
        self.template
            .read(text, mode)
            .map_err(|_| Failure::refused(&errors::DYNAMIC, "a statement text"))?;
        self.statement(text, false)
    }

    fn use_database(&mut self, name: &str) -> Outcome<()> {
        let mut command = vec![Command::InitDb.to_byte()];
        command.extend_from_slice(name.as_bytes());
        let question = self.server.put_command(&command)?;
        self.server.flush()?;
        self.server.read_ok(question)?;
        self.current.own_database = Some(name.to_owned());
        self.after_command()
    }

    /// What the client may ask about the statement before the proxy runs one of its own.
    fn keep_diagnostics(&mut self, failed: bool) -> Outcome<()> {
        use onionskin_wire::messages::OkPacket;
        if failed {
            self.current.interfered = true;
            return Ok(());
        }
        if self.diagnostics.row_count.is_none()
            && let Ok(ok) = OkPacket::decode(self.server.payload(), self.server.capabilities)
        {
            let has_rows = self.server.payload().first() == Some(&0xfe);
            self.diagnostics.row_count = match has_rows {
                true => Some(-1),
                false => i64::try_from(ok.affected_rows).ok(),
            };
            let count = ok.warnings;
            if count > 0 {
                let mut shown = self.server.rows(b"SHOW WARNINGS")?;
                if self.diagnostics.shows_tokens {
                    hide_tokens(&mut shown);
                }
                self.diagnostics.keep(&shown, count);
            }
        }
        Ok(())
    }
}

/// Whether a text asks for the current database. While the text runs, that is another one than the
/// session's.
fn names_database(text: &[u8], mode: LexMode) -> bool {
    onionskin_plan::lex::tokens(text, mode).is_ok_and(|all| {
        ["database", "schema"]
            .iter()
            .any(|w| all.iter().any(|t| t.is_word(text, w)))
    })
}

fn parameters_of(template: &Template) -> usize {
    let is_parameter = |l: &&onionskin_plan::Literal| l.kind == LiteralKind::Parameter;
    template.literals.iter().filter(is_parameter).count()
}

pub(crate) fn cannot_be_prepared() -> Failure {
    Failure::Server {
        code: 1295,
        state: *b"HY000",
        message: b"This command is not supported in the prepared statement protocol yet".to_vec(),
    }
}

fn syntax_error(near: &str) -> Failure {
    Failure::Server {
        code: 1064,
        state: *b"42000",
        message: format!("You have an error in your SQL syntax near '{near}'").into_bytes(),
    }
}

fn prepare_again() -> Failure {
    let refusal = Refusal::from(NotUnderstood::PreparedOtherwise);
    refusal.under(&errors::DYNAMIC).into()
}
