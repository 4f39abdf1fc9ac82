//! What a session of `listen_read` may do, and what it waits for.
//!
//! It writes nowhere, at whatever server it is. Its server's session is READ ONLY from the
//! beginning, and again after each reset, and the proxy passes on only what is known to read
//! ([`onionskin_plan::only_reads`]): an account may undo the first, and none can undo the second.
//! A function that a query calls may undo the first, too; so it is done again in front of what
//! comes next.
//!
//! Where `causal_seconds` is set, a statement waits for all that sessions of `listen` have written
//! before it arrived ([`crate::written`]). The server is asked only if there is something that the
//! session has not waited for yet.

use std::sync::Weak;
use std::thread;
use std::time::{Duration, Instant};

use onionskin_plan::{Catalog, Facts, Known, errors, only_reads};
use onionskin_schema::TableName;
use onionskin_value::Family;
use onionskin_wire::messages::Command;

use super::Session;
use crate::error::{Failure, Outcome};
use crate::members::CatchUp;
use crate::state::TRACK_GTIDS;
use crate::written::{Target, Written};

/// How often it is looked whether the primary was asked meanwhile.
const TICK: Duration = Duration::from_millis(5);
/// How much later than it was told to a server may answer that it has waited in vain.
const GRACE: Duration = Duration::from_secs(1);
/// The shortest wait. Servers take none for one without an end.
const LEAST: f64 = 0.01;

impl Session {
    /// Whether a session that only reads may do this, now. Where a table has become a protected one
    /// at any server, no plan from before counts: see [`Self::not_switched`].
    pub(super) fn may_read(&mut self, command: Command) -> Outcome<()> {
        self.account.heed_protected();
        match command {
            Command::Query | Command::StmtExecute => self.catch_up(),
            Command::Refresh | Command::Shutdown | Command::Debug => {
                Err(Failure::refused(&errors::ONLY_READS, command.name()))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what is not known to read, where a session only reads. It is asked for each text
    /// that is planned, and plans are kept for one side alone.
    pub(super) fn must_only_read(&self, sql: &[u8]) -> Outcome<()> {
        if !self.shared.leading.only_reads() {
            return Ok(());
        }
        only_reads(sql, self.space.settings.lex)
            .map_err(|about| Failure::refused(&errors::ONLY_READS, about))
    }

    /// Tables of a plan that are protected at the primary and plain here: the replica is behind the
    /// switch of a migration. It may come at any moment, and values of a statement that was planned
    /// before would go to protected columns in clear text. So nothing is sent until it has come.
    pub(crate) fn not_switched(&self, names: &[TableName]) -> Vec<TableName> {
        let primary = self.shared.primary.as_ref().and_then(Weak::upgrade);
        let Some(primary) = primary else {
            return Vec::new();
        };
        let is_behind = |name: &&TableName| {
            let Some(found) = self.account.rules.once.last_found(name) else {
                return false;
            };
            let known = self.account.table(&name.database, &name.name);
            let is_plain =
                matches!(known, Known::Table(table) if !table.view && !table.is_protected());
            // a migration may have taken the protection back
            is_plain && !primary.current().accounts.found_plain(name, found)
        };
        names.iter().filter(is_behind).cloned().collect()
    }

    /// Has the server tell the GTIDs of transactions again, which the client has switched off.
    pub(super) fn tell_gtids(&mut self) -> Outcome<()> {
        if !std::mem::take(&mut self.state.gtids_lost) || self.server.written.is_none() {
            return Ok(());
        }
        self.aside(|s| match s.server.run(TRACK_GTIDS) {
            // a client that has set it can set it, but in a transaction
            Err(Failure::Server { .. }) => Ok(()),
            done => done.map(|_| ()),
        })
    }

    /// Waits for what was written before.
    #[inline]
    fn catch_up(&mut self) -> Outcome<()> {
        let Some(written) = &self.shared.written else {
            return Ok(());
        };
        let is_there = self.shared.leading.catch_up != CatchUp::Gtids;
        if is_there || written.version() == self.caught_up {
            return Ok(());
        }
        let written = written.clone();
        self.wait_for(&written)
    }

    #[cold]
    fn wait_for(&mut self, written: &Written) -> Outcome<()> {
        let payload = self.client.last_payload();
        let sql = match Command::of(payload) {
            Ok(Command::Query) => payload.get(1..),
            _ => self.statements.text_of(payload),
        };
        let sql = sql.unwrap_or_default().to_vec();
        if reads_nothing(&sql) {
            return Ok(());
        }
        // what it asks of the statement before would be another thing behind a question
        let facts = Facts::read(&sql, self.space.settings.lex);
        if facts.question.asks() || facts.says_found_rows {
            return Ok(());
        }
        self.will_keep_list(&sql);
        let begin = Instant::now();
        let limit = self.shared.config.causal.unwrap_or_default();
        let done = loop {
            let left = limit.saturating_sub(begin.elapsed());
            match written.target() {
                Target::Gtids(version, gtids) => match self.has_gtids(&gtids, left)? {
                    true => {
                        self.caught_up = version;
                        break true;
                    }
                    false => break false,
                },
                Target::Unclear if left.is_zero() => break false,
                Target::Unclear => thread::sleep(TICK.min(left)),
            }
        };
        if let Some(metrics) = &self.shared.metrics {
            metrics.caught_up(done, begin.elapsed());
        }
        match done {
            true => Ok(()),
            false => Err(Failure::refused(&errors::NOT_CAUGHT_UP, "")),
        }
    }

    /// Has the server wait for transactions. `false`: it has waited in vain.
    fn has_gtids(&mut self, gtids: &str, left: Duration) -> Outcome<bool> {
        if gtids.is_empty() {
            return Ok(true);
        }
        let function = match self.state.family {
            Family::MySql => "WAIT_FOR_EXECUTED_GTID_SET",
            Family::MariaDb => "MASTER_GTID_WAIT",
        };
        let seconds = left.as_secs_f64().max(LEAST);
        let sql = format!("SELECT {function}('{gtids}', {seconds:.3})");
        let answer_within = |session: &Session, limit: Option<Duration>| {
            let transport = session.server.connection.transport();
            transport
                .set_read_timeout(limit)
                .map_err(|error| Failure::Backend(error.into()))
        };
        answer_within(self, Some(left + GRACE))?;
        let rows = self.aside(|s| s.server.rows(sql.as_bytes()));
        answer_within(self, None)?;
        let rows = rows?;
        let cell = rows.first().and_then(|row| row.first()?.as_deref());
        // in whatever character set results are
        let mut digits = cell.unwrap_or_default().iter().filter(|byte| **byte != 0);
        Ok(digits.next() == Some(&b'0') && digits.next().is_none())
    }
}

/// Whether a statement reads no rows: it does not wait, and leaves what is known of the statement
/// before as it is.
fn reads_nothing(sql: &[u8]) -> bool {
    const FIRST: [&[u8]; 9] = [
        b"set",
        b"use",
        b"begin",
        b"commit",
        b"rollback",
        b"savepoint",
        b"release",
        b"prepare",
        b"deallocate",
    ];
    let text = sql.trim_ascii_start();
    let word = text.iter().take_while(|byte| byte.is_ascii_alphabetic());
    let first = &text[..word.count()];
    FIRST.iter().any(|known| first.eq_ignore_ascii_case(known))
        && memchr::memchr2(b'(', b';', sql).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_no_rows_does_not_wait() {
        for sql in ["SET NAMES utf8mb4", " begin", "COMMIT", "use a"] {
            assert!(reads_nothing(sql.as_bytes()), "{sql}");
        }
        for sql in [
            "SELECT 1",
            "SET @a = (SELECT 1)",
            "COMMIT; SELECT 1",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            "/* a */ SET @a = 1",
            "",
        ] {
            assert!(!reads_nothing(sql.as_bytes()), "{sql}");
        }
    }
}
