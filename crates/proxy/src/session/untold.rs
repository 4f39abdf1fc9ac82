//! What the server's answers tell of the session, and what is asked for because no answer tells it.
//!
//! The session's settings, database, roles and transaction decide what a statement means. Answers
//! tell of their changes, with exceptions: each is named where [`Session::note_untold`] sees to
//! it. Whoever adds a statement that may change the session adds it there.

use onionskin_plan::Facts;
use onionskin_value::Family;
use onionskin_wire::messages::Command;

use super::Session;
use crate::error::{Failure, Outcome};
use crate::state::{ClientTracking, Purpose, State};
use crate::unseen::Unseen;

/// What is asked for in front of the next statement that rests on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unsure {
    #[default]
    Nothing,
    /// What MySQL tells with its next answer. MariaDB never tells it.
    Told,
    /// All settings, and the role.
    All,
}

impl Session {
    /// In front of a command: learns what the statement before it may have changed, if the command
    /// rests on that.
    #[inline]
    pub(super) fn be_certain(&mut self, command: Command) -> Outcome<()> {
        match self.unsure == Unsure::Nothing || !self.needs_certainty(command) {
            true => Ok(()),
            false => self.learn_untold(),
        }
    }

    /// The same in front of a statement of a text that holds several.
    pub(super) fn be_certain_for(&mut self, sql: &[u8]) -> Outcome<()> {
        let asks = || !self.shared.leading.only_reads() && self.asks_of_the_last(sql);
        match self.unsure == Unsure::Nothing || asks() {
            true => Ok(()),
            false => self.learn_untold(),
        }
    }

    /// Notes what an answer could not say has changed: stored programs may set variables, begin and
    /// end transactions, and take on roles. It is asked for in front of the next statement, not
    /// here: the client may ask about the one that is done, and of that the server would know
    /// nothing any more.
    ///
    /// - The end of rows of MySQL's is silent; the next answer tells. MariaDB's has a flag.
    /// - An error tells neither changes nor whether there is a transaction.
    /// - What a program has told within its answer, the server may have taken back at its end.
    /// - Nobody tells of roles.
    /// - That a temporary table was made is told by a sign that has other meanings as well. Behind
    ///   a statement that reads or changes rows it means that a program has run.
    /// - A session that only reads is READ ONLY again in front of whatever comes next.
    pub fn note_untold(&mut self) -> Outcome<()> {
        let silent_end = std::mem::take(&mut self.server.silent_end);
        let failed = std::mem::take(&mut self.server.failed);
        let told_within = std::mem::take(&mut self.server.told_within);
        let told_state = std::mem::take(&mut self.server.told_state);
        if std::mem::take(&mut self.current.leaves_temporary) {
            self.unseen.may_be_there();
        }
        let mut unheard = false;
        if self.may_have_called() {
            if told_state && self.current.touches != Some(false) {
                self.unseen.may_be_there();
            }
            let runs = self.current.may_run_programs();
            let masks = !self.shared.config.masks.is_empty();
            let is_silent = runs && silent_end && self.state.family == Family::MySql;
            unheard = is_silent || failed && (runs || self.current.may_trigger);
            if unheard {
                self.unsure = self.unsure.max(Unsure::Told);
            }
            self.server.untold |= told_within || (runs || self.current.says_role) && masks;
            // where a function has set it to READ WRITE, the next one could write
            self.server.untold |= runs && self.shared.leading.only_reads();
        }
        let sets_tracking = std::mem::take(&mut self.current.sets_tracking);
        if sets_tracking {
            self.track_as_wanted()?;
        }
        self.tell_gtids()?;
        if std::mem::take(&mut self.server.untold) {
            self.unsure = Unsure::All;
        }
        // MariaDB never tells it, and of several questions it is not known which one was told of
        if unheard && (self.state.family == Family::MariaDb || self.unsure == Unsure::All) {
            self.unseen.may_be_there();
        }
        match sets_tracking {
            // whatever comes next, the server has to tell of it
            true => self.learn_untold(),
            false => Ok(()),
        }
    }

    /// If it fails, the next statement begins with it again.
    #[cold]
    fn learn_untold(&mut self) -> Outcome<()> {
        match self.unsure == Unsure::Told && self.state.family == Family::MySql {
            true => self.ping()?,
            false => self.learn_all()?,
        }
        self.unsure = Unsure::Nothing;
        Ok(())
    }

    fn learn_all(&mut self) -> Outcome<()> {
        // MariaDB keeps its list over statements that set variables
        self.current.keeps_list = self.server.may_hold_list && self.state.family == Family::MariaDb;
        let before = self.state.account.clone();
        self.aside(Self::read_state)?;
        self.server.untold = false;
        // another role sees other tables, and other columns masked
        match self.account.is_private() {
            false => self.account = self.shared.accounts.get(&self.state.account),
            true if self.state.account != before => {
                let accounts = &self.shared.accounts;
                self.account = accounts.private_after(&self.account, &self.state.account);
            }
            true => {}
        }
        self.after_command()
    }

    /// Whether this command rests on what the statement before it may have changed: not where it
    /// asks about that statement, of which another question would leave nothing.
    #[cold]
    fn needs_certainty(&self, command: Command) -> bool {
        let only_reads = self.shared.leading.only_reads();
        let payload = self.client.last_payload();
        match command {
            Command::Query | Command::StmtPrepare => {
                let sql = payload.get(1..).unwrap_or_default();
                only_reads || !self.asks_of_the_last(sql) && !ends_transaction(sql)
            }
            Command::StmtExecute => only_reads || !self.statements.asks_about_the_last(payload),
            // a piece may go to the server at once
            Command::StmtSendLongData => true,
            Command::StmtFetch | Command::FieldList | Command::InitDb => true,
            _ => false,
        }
    }

    /// Whether a text asks about the statement before it, and holds nothing else.
    fn asks_of_the_last(&self, sql: &[u8]) -> bool {
        let facts = Facts::read(sql, self.space.settings.lex);
        // behind a question in the same text anything may stand
        let sql = sql.trim_ascii_end();
        let is_one = !sql.strip_suffix(b";").unwrap_or(sql).contains(&b';');
        is_one && facts.question.asks()
    }

    /// Whether the client's command runs statements.
    fn may_have_called(&self) -> bool {
        let command = Command::of(self.client.last_payload());
        matches!(
            command,
            Ok(Command::Query | Command::StmtExecute | Command::StmtFetch)
        )
    }

    /// Has the server tell what it has not told yet.
    fn ping(&mut self) -> Outcome<()> {
        let question = self.server.put_command(&[Command::Ping.to_byte()])?;
        self.server.flush()?;
        self.server.read_ok(question)?;
        // the ping has made nothing
        if std::mem::take(&mut self.server.told_state) {
            self.unseen.may_be_there();
        }
        // the server would speak of the ping
        self.diagnostics.row_count.get_or_insert(-1);
        self.after_command()
    }

    fn read_state(&mut self) -> Outcome<()> {
        let State {
            family, found_rows, ..
        } = self.state;
        let purpose = Purpose::of(&self.shared.leading, self.shared.written.is_some());
        let tracking = &self.client_tracking;
        let state = State::read(&mut self.server, family, found_rows, tracking, purpose)?;
        let before = std::mem::replace(&mut self.state, state);
        self.state.unusual.keep_unreadable(before.unusual);
        let told = std::mem::replace(&mut self.state.database, before.database);
        self.state.told_database = Some(told);
        Ok(())
    }

    /// Asks the server for the session's settings again, after everything was reset.
    pub(super) fn refresh_state(&mut self) -> Outcome<()> {
        self.read_state()?;
        self.account = self.shared.accounts.get(&self.state.account);
        self.unseen = Unseen::at_login(&self.state);
        Ok(())
    }

    /// Learns what the client wants to be told of. What the proxy has to know is told as well, from
    /// now on.
    fn track_as_wanted(&mut self) -> Outcome<()> {
        let list = match self.server.rows(b"SELECT @@session_track_system_variables") {
            // a server without the variable has told the client so
            Err(Failure::Server { .. }) => {
                self.server.settle()?;
                Vec::new()
            }
            list => list?,
        };
        let value = list.first().and_then(|row| row.first()?.as_deref());
        self.client_tracking =
            ClientTracking::parse(&String::from_utf8_lossy(value.unwrap_or_default()));
        self.server.untold = true;
        // the server would speak of the question
        self.diagnostics.row_count.get_or_insert(0);
        Ok(())
    }

    /// Asks the server what it announces strings with, if that may have changed. The client has its
    /// answer already.
    pub fn learn_collation(&mut self) -> Outcome<()> {
        if std::mem::take(&mut self.current.sets_collation) {
            self.collations_set += 1;
        }
        if !self.state.asks_collation {
            return Ok(());
        }
        // MySQL announces the set's default, unless SET NAMES says another
        if self.state.family == Family::MySql && !self.current.says_collate {
            self.state.asks_collation = false;
            return Ok(());
        }
        match self.server.announced_collation() {
            Ok(id) => self.state.learn_collation(id),
            // as many statements are prepared as the server allows: the set's default is announced
            Err(Failure::Server { code, .. }) => {
                self.state.asks_collation = false;
                tracing::debug!(code, "the collation of results is not known");
            }
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// Takes over what the server reported during a command. [`Failure::OutOfStep`] of a database
    /// that nobody has asked for.
    pub fn after_command(&mut self) -> Outcome<()> {
        if !self.server.changes.is_empty() {
            let changes = std::mem::take(&mut self.server.changes);
            let was_tracked = self.state.tracked;
            self.state.observe(&changes);
            // a program has set what the server tells of
            self.current.sets_tracking |= was_tracked && !self.state.tracked;
            if let Some(limit) = State::select_limit(&changes) {
                self.server.select_limit = limit;
            }
            if let Some(bounds) = State::bounds_joins(&changes) {
                self.server.bounds_joins = bounds;
            }
            self.server.changes = changes;
            self.server.changes.clear();
        }
        self.take_database()?;
        if self.state.changed {
            self.state.changed = false;
            self.server.bound.lex = self.state.lex_mode();
            let tier3 = self.shared.use_scratch();
            self.space = self
                .account
                .space(self.state.settings_key(), self.state.settings(tier3));
        }
        Ok(())
    }
}

/// Whether a text is COMMIT or ROLLBACK and nothing else. They mean the same under all settings,
/// and behind MySQL's `CREATE TABLE … START TRANSACTION` the server takes nothing else.
fn ends_transaction(sql: &[u8]) -> bool {
    let sql = sql.trim_ascii();
    let sql = sql.strip_suffix(b";").unwrap_or(sql).trim_ascii_end();
    [&b"commit"[..], b"rollback"]
        .iter()
        .any(|end| sql.eq_ignore_ascii_case(end))
}
