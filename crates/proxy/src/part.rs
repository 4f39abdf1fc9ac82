//! Several statements of the proxy's that are one to the client, within a transaction of the
//! client's: whole, or not at all.
//!
//! Any of them may fail, and `KILL QUERY` may hit any of them: the last one, when all is done, and
//! the one that takes back what was done. So a savepoint is never set by hand. Whoever works under
//! one leaves it through [`Session::keep_part`] or [`Session::take_back_part`], and what can be
//! neither kept nor taken back ends the session, with which the server ends the transaction.

use onionskin_wire::{StatusFlags, WireError};

use crate::error::{Failure, Outcome};
use crate::exchange::{Done, Question, Server};
use crate::server_errors::{KILLED, OUT_OF_TIME, ROLLED_BACK};
use crate::session::Session;

/// Begins a part.
pub(crate) const BEGIN_PART: &[u8] = b"SAVEPOINT `onionskin$part`";
const KEEP: &[u8] = b"RELEASE SAVEPOINT `onionskin$part`";
const TAKE_BACK: &[u8] = b"ROLLBACK TO `onionskin$part`";
pub(crate) const ROLLBACK: &[u8] = b"ROLLBACK AND NO CHAIN NO RELEASE";

/// `ER_SP_DOES_NOT_EXIST`, of a savepoint.
const NO_SAVEPOINT: u16 = 1305;
/// `ER_LOCK_WAIT_TIMEOUT`
const IN_VAIN: u16 = 1205;
/// How often a statement that has to be done is tried, where others end it.
const TRIES: usize = 100;

/// What a server says of a statement that was killed.
pub(crate) fn killed() -> Failure {
    Failure::Server {
        code: KILLED,
        state: *b"70100",
        message: b"Query execution was interrupted".to_vec(),
    }
}

impl Session {
    /// Does some work as one statement.
    pub(crate) fn in_part<T>(&mut self, work: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.server.run(BEGIN_PART)?;
        match work(self).and_then(|done| self.keep_part().map(|()| done)) {
            Ok(done) => Ok(done),
            Err(failure) => Err(self.take_back_part(failure)),
        }
    }

    /// The work is done. Whoever ends the statement now comes too late: the savepoint stays, which
    /// nobody sees.
    pub(crate) fn keep_part(&mut self) -> Outcome<()> {
        match self.server.run(KEEP) {
            Err(failure) if failure.is_interrupted() => self.server.settle(),
            kept => kept.map(|_| ()),
        }
    }

    /// The work has failed. Returns the failure for the client.
    pub(crate) fn take_back_part(&mut self, failure: Failure) -> Failure {
        if failure.is_fatal() {
            return failure;
        }
        match self.server.run_to_its_end(TAKE_BACK) {
            Ok(_) => {}
            // without the savepoint there is no transaction either: a deadlock has ended it, or
            // error 1020
            Err(Failure::Server {
                code: NO_SAVEPOINT, ..
            }) if matches!(failure, Failure::Server { .. }) => {
                self.server.status.remove(StatusFlags::IN_TRANS);
                return failure;
            }
            Err(other) if other.ends_transaction() => return other,
            Err(other) => return unknown(other),
        }
        match self.server.run_to_its_end(KEEP) {
            Err(other) if other.is_fatal() || other.ends_transaction() => other,
            _ => failure,
        }
    }

    /// Ends a transaction of the proxy's that has failed.
    pub(crate) fn roll_back_own(&mut self) -> Outcome<()> {
        self.server
            .run_to_its_end(ROLLBACK)
            .map_err(unknown)
            .map(|_| ())
    }
}

impl Server {
    /// Runs what has to be done, whoever ends it on the way: what ends a transaction or a lock of
    /// the proxy's, or gives a setting back to the client.
    pub fn run_to_its_end(&mut self, sql: &[u8]) -> Outcome<Done> {
        let mut tries = TRIES;
        let told_state = self.told_state;
        loop {
            self.settle()?;
            tries -= 1;
            match self.run(sql) {
                Err(failure) if failure.is_interrupted() && tries > 0 => {}
                done => {
                    // of what the client's statements do
                    self.told_state = told_state;
                    return done;
                }
            }
        }
    }

    /// Reads the answer to a statement that was to open a table as a later one does. If the account
    /// may not, or the table is not there, the later one says so in the client's words. Who has
    /// waited in vain, or was ended, does not go on.
    pub fn hear_claim(&mut self, question: Question) -> Outcome<()> {
        let goes_on = |code| {
            let has_ended = ROLLED_BACK.contains(&code) || code == IN_VAIN;
            !has_ended && code != KILLED && !OUT_OF_TIME.contains(&code)
        };
        match self.read_rows(question) {
            Err(Failure::Server { code, .. }) if goes_on(code) => Ok(()),
            heard => heard.map(|_| ()),
        }
    }
}

/// It is not known what of a change stands, as where the server is lost: the session ends, and the
/// transaction with it. A node that has lost its cluster takes back nothing.
fn unknown(failure: Failure) -> Failure {
    if failure.is_fatal() {
        return failure;
    }
    tracing::warn!(
        ?failure,
        "a change could not be taken back: the session ends"
    );
    Failure::Backend(WireError::Closed)
}
