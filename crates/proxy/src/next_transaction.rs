//! `SET TRANSACTION …` without a scope: what it says is of the next transaction only.
//!
//! The proxy's own statements, look-ups of tables above all, go over the same connection, and the
//! first of them would be that transaction. So what the client said is kept until a statement of
//! its own has used it, and said again in front of that statement if the proxy has asked something
//! in between.

use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{Action, Facts, Plan, Verb};
use onionskin_value::Family;
use onionskin_wire::StatusFlags;

use crate::error::{Failure, Outcome};
use crate::session::Session;

/// What was said of the next transaction.
#[derive(Default)]
pub(crate) struct NextTransaction {
    /// The client's statements, in their order.
    said: Vec<Vec<u8>>,
    /// How many questions the server had been asked when it heard them last.
    asked: u64,
    /// A statement has failed since, and only the server knows whether that was the transaction.
    is_unclear: bool,
    /// Without autocommit, a statement has failed that the server has not seen. It would have begun
    /// a transaction with it.
    would_have_begun: bool,
    /// Without autocommit, a question of the proxy's has begun a transaction, which cannot be ended
    /// because the client has a savepoint outside of one.
    pub begun_aside: bool,
}

/// Nothing was looked for: the grammar is wrong, a variable, a character set or a prepared
/// statement is unknown, or the transaction only reads.
const UNREAD: [u16; 5] = [1064, 1115, 1193, 1243, 1792];
/// The tables were not opened: no privilege, no such database or table, a name twice, not locked.
const UNOPENED: [u16; 9] = [1044, 1045, 1046, 1049, 1066, 1100, 1142, 1143, 1146];
/// A name or an expression means nothing: a column, a function, an aggregate, a collation, a number
/// of columns. MariaDB has opened the tables by then, and begun the transaction.
const UNRESOLVED: [u16; 19] = [
    1052, 1054, 1055, 1056, 1109, 1110, 1111, 1136, 1140, 1191, 1210, 1222, 1241, 1247, 1248, 1267,
    1270, 1271, 1305,
];

/// A value could not be computed: too many rows of a subquery, a number out of range, a division by
/// zero, a text that is no number. MariaDB computes constants before it begins the transaction.
const UNCOMPUTED: [u16; 4] = [1242, 1292, 1365, 1690];

/// Whether a statement met this error before it began a transaction, so that what was said of that
/// one still holds. `names` is whether it names tables.
fn is_before_it_begins(code: u16, facts: &Facts, names: bool, family: Family) -> bool {
    let is_resolved_first = family == Family::MySql || !names;
    UNREAD.contains(&code)
        || !facts.commits_first
            && (UNOPENED.contains(&code) || is_resolved_first && UNRESOLVED.contains(&code))
}

impl Session {
    /// Whether something was said of the next transaction.
    pub(crate) fn has_next_transaction(&self) -> bool {
        !self.next_transaction.said.is_empty()
    }

    /// Notes how a transaction begins, behind the client's statement that was relayed.
    #[inline]
    pub(crate) fn note_begun(&mut self, facts: &Facts, sql: &[u8], done: &Outcome<()>) {
        if facts.begins_transaction && done.is_ok() {
            self.fresh_transaction
                .note(sql, &self.next_transaction.said, &self.server);
        }
    }

    /// Says again what the client said, in front of its statement.
    #[inline]
    pub(crate) fn say_next_transaction(&mut self) -> Outcome<()> {
        match self.has_next_transaction() {
            true => self.say_again(),
            false => Ok(()),
        }
    }

    /// The same, whatever was said before: that may have been taken back with a statement whose
    /// values could not be bound.
    pub(crate) fn repeat_next_transaction(&mut self) -> Outcome<()> {
        self.next_transaction.asked = u64::MAX;
        self.say_next_transaction()
    }

    #[cold]
    fn say_again(&mut self) -> Outcome<()> {
        if self.server.asked() == self.next_transaction.asked {
            return Ok(());
        }
        if self.next_transaction.is_unclear {
            // the server has forgotten it in any case
            self.next_transaction = NextTransaction::default();
            return Err(NotUnderstood::TransactionForgotten.into());
        }
        let found = self.server.found;
        for sql in &self.next_transaction.said {
            // its answer is read with that to the next question
            let _ = self.server.put_query(sql)?;
        }
        self.server.found = found;
        self.next_transaction.asked = self.server.asked();
        Ok(())
    }

    /// `SET autocommit = 1` ends a transaction that only reads, and the servers keep to that in the
    /// next one.
    pub(crate) fn may_stay_read_only(&mut self) {
        let ended = !self.server.status.contains(StatusFlags::IN_TRANS);
        if self.current.reads_only && ended && !self.has_next_transaction() {
            self.next_transaction = NextTransaction {
                said: vec![b"SET TRANSACTION READ ONLY".to_vec()],
                asked: self.server.asked(),
                ..NextTransaction::default()
            };
        }
    }

    /// The client gets an error that the server has not raised.
    #[cold]
    pub(crate) fn may_have_begun(&mut self, failure: &Failure) {
        let begins = match failure {
            Failure::Value(_) => true,
            // MySQL resolves names first
            Failure::Refused(refusal) => {
                self.state.family == Family::MariaDb && refusal.coded().is_some()
            }
            _ => false,
        };
        let known = StatusFlags::AUTOCOMMIT | StatusFlags::IN_TRANS;
        if begins && !self.server.status.intersects(known) {
            self.next_transaction.would_have_begun = true;
        }
    }

    /// Refuses `SET TRANSACTION` where a server may be in a transaction that it has not begun here:
    /// it would say so.
    #[inline]
    pub(crate) fn must_know_transaction(&self, facts: &Facts) -> Outcome<()> {
        let next = &self.next_transaction;
        match facts.next_transaction && (next.would_have_begun || next.begun_aside) {
            true => Err(NotUnderstood::TransactionUnclear.into()),
            false => Ok(()),
        }
    }

    /// Takes over whether there are savepoints. Outside of a transaction, with autocommit, one is
    /// gone with its statement.
    #[inline]
    pub(crate) fn learn_savepoints(&mut self, facts: &Facts, is_done: bool) {
        let is_known = StatusFlags::AUTOCOMMIT | StatusFlags::IN_TRANS;
        if facts.bounds_transaction || self.server.status.intersects(is_known) {
            self.next_transaction.would_have_begun = false;
        }
        let is_within = self.server.status.contains(StatusFlags::IN_TRANS);
        self.next_transaction.begun_aside &= is_within && !facts.bounds_transaction;
        if let Some(savepoints) = facts.savepoints {
            let ends_at_once = StatusFlags::AUTOCOMMIT | StatusFlags::IN_TRANS;
            let is_kept = self.server.status & ends_at_once != StatusFlags::AUTOCOMMIT;
            self.has_savepoints = savepoints && is_kept;
        }
        // a definition commits
        self.has_savepoints &= !(facts.commits_first && is_done);
    }

    /// Refuses what takes several statements before its transaction begins.
    #[inline]
    pub(crate) fn must_begin_at_once(&self, plan: &Plan) -> Outcome<()> {
        match self.has_next_transaction() {
            true => begins_at_once(plan),
            false => Ok(()),
        }
    }

    /// Takes over what a statement of the client's says of the next transaction, or that it was
    /// this one. `names` is whether it names tables.
    #[inline]
    pub(crate) fn learn_next_transaction(
        &mut self,
        facts: &Facts,
        sql: &[u8],
        names: bool,
        done: &Outcome<()>,
    ) {
        self.learn_savepoints(facts, done.is_ok());
        self.note_begun(facts, sql, done);
        let says = facts.next_transaction;
        if !says && !self.has_next_transaction() {
            return;
        }
        // a database is no table
        let names = names && facts.verb != Verb::Use;
        let family = self.state.family;
        let next = &mut self.next_transaction;
        match done {
            Ok(()) if says => {
                next.said.push(sql.to_vec());
                next.asked = self.server.asked();
            }
            Ok(()) if names || facts.bounds_transaction => *next = NextTransaction::default(),
            Ok(()) => {}
            // the proxy has not asked anything since: the server knows by itself
            Err(Failure::Server { code, .. })
                if UNCOMPUTED.contains(code) && names && family == Family::MariaDb =>
            {
                next.asked = self.server.asked();
                next.is_unclear = true;
            }
            Err(Failure::Server { code, .. })
                if !is_before_it_begins(*code, facts, names, family)
                    && !says
                    && (names || !facts.begins_none) =>
            {
                *next = NextTransaction::default();
            }
            // what was said again may have been taken back with a statement that was not sent
            Err(_) => next.asked = u64::MAX,
        }
    }
}

#[cold]
fn begins_at_once(plan: &Plan) -> Outcome<()> {
    let at_once = match &plan.action {
        Action::Server { .. } => plan.upsert.is_none(),
        Action::Scratch(_)
        | Action::ScratchWrite(_)
        | Action::Compute { .. }
        | Action::Define(_)
        | Action::Copy(_)
        | Action::Refit(_) => false,
        _ => true,
    };
    match at_once {
        true => Ok(()),
        false => Err(NotUnderstood::TransactionAtOnce.into()),
    }
}
