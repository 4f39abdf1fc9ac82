//! Tables that a statement names and nobody knows: see [`Doubt`].
//!
//! The server is asked for them before it gets the statement. Its error is the client's.

use std::sync::Arc;

use onionskin_plan::{Catalog, Doubt, Known};
use onionskin_schema::{TableName, identifier};
use onionskin_wire::messages::{Command, encode_statement_command};

use super::Session;
use crate::error::{Failure, Outcome};
use crate::exchange::Server;
use crate::server_errors::{
    COLUMN_COUNT, KILLED, NO_SUCH_DATABASE, NO_SUCH_TABLE, NOT_LOCKED, OUT_OF_TIME, READ_ONLY,
    SYNTAX, UNKNOWN_COLUMN,
};

/// Errors of a text whatever its values are: it cannot be read, a table or its database is missing
/// or is not said, the account has no privilege on it or its columns, or nothing may be written.
const BEFORE_VALUES: [u16; 8] = [
    1044,
    1046,
    1142,
    1143,
    NO_SUCH_DATABASE,
    NO_SUCH_TABLE,
    READ_ONLY,
    SYNTAX,
];

/// Whether the server has not got to reading the text: as many statements are prepared as it
/// allows, the account has asked as often as it may, somebody has ended the question, or a lock was
/// waited for in vain.
fn is_unread(code: u16) -> bool {
    const TOO_MANY: [u16; 3] = [1226, 1461, 1205];
    code == KILLED || OUT_OF_TIME.contains(&code) || TOO_MANY.contains(&code)
}

/// How many tables of one stored program are looked up. One that names more is taken for one that
/// names a missing table.
const MAX_LOOKED_UP: usize = 1000;

/// What the server makes of a doubt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// All tables are there, or the words name none.
    There,
    /// All tables are there, and have other columns: somebody has made one meanwhile.
    OtherColumns,
    /// It does not say.
    Unclear,
}

impl Session {
    /// Ends in the server's error if a table or a column is missing that the statement names. The
    /// server gets no value of the statement for that. `looked_up`: what is known of the tables is
    /// not old.
    pub(super) fn ask_about(
        &mut self,
        doubt: &Doubt,
        sql: &[u8],
        looked_up: bool,
    ) -> Outcome<Asked> {
        match doubt {
            Doubt::None => Ok(Asked::There),
            Doubt::Table(name) => self.aside(|s| {
                let (database, table) = (identifier(&name.database), identifier(&name.name));
                let question = format!("SELECT 1 FROM {database}.{table} LIMIT 0");
                match s.server.rows(question.as_bytes()) {
                    // in a transaction that only reads, a change fails before its tables do
                    Err(
                        failure @ Failure::Server {
                            code: NO_SUCH_TABLE | NOT_LOCKED,
                            ..
                        },
                    ) if !is_query(sql) => {
                        let earlier = s.read_only_error_at(&name.database, &name.name)?;
                        Err(earlier.unwrap_or(failure))
                    }
                    asked => {
                        let is_there = asked.map(|_| Asked::There);
                        is_there.map_err(|failure| denied_to(sql, failure))
                    }
                }
            }),
            Doubt::Text {
                text,
                stands,
                column,
                ..
            } => {
                let ends = |code: u16| {
                    let is_lost = *column && looked_up && code == UNKNOWN_COLUMN;
                    is_lost || BEFORE_VALUES.contains(&code)
                };
                self.aside(|s| {
                    // in a transaction that only reads, a change fails before its tables do
                    s.say_next_transaction()?;
                    match s.server.prepare_in_vain(text) {
                        // what else the server says may be about the other values
                        Err(failure) if failure.ends_transaction() => Err(failure),
                        Err(Failure::Server { code, .. }) if !ends(code) && !is_unread(code) => {
                            s.server.settle()?;
                            Ok(match (code, stands) {
                                // it has opened the tables by then
                                (UNKNOWN_COLUMN, _) if *column => Asked::OtherColumns,
                                (UNKNOWN_COLUMN | COLUMN_COUNT, true) => Asked::OtherColumns,
                                (_, true) => Asked::Unclear,
                                (_, false) => Asked::There,
                            })
                        }
                        done => done.map(|()| Asked::There),
                    }
                })
            }
        }
    }

    /// Whether one of these is no table yet, and would be a protected one.
    pub(super) fn may_be_protected_later(&mut self, names: &[TableName]) -> Outcome<bool> {
        let shared = Arc::clone(&self.shared);
        let policy = &shared.config.policy;
        let mut names = names.to_vec();
        names.retain(|name| {
            let (database, name) = (&name.database, &name.name);
            policy.concerns(database, name) || self.account.was_protected(database, name)
        });
        if names.is_empty() || names.len() > MAX_LOOKED_UP {
            return Ok(!names.is_empty());
        }
        self.look_up(&names)?;
        let is_table = |name: &TableName| {
            let known = self.account.table(&name.database, &name.name);
            matches!(known, Known::Table(_))
        };
        Ok(!names.iter().all(is_table))
    }
}

impl Server {
    /// Prepares a text, and closes the statement.
    fn prepare_in_vain(&mut self, text: &[u8]) -> Outcome<()> {
        let statement = self.prepare_text(text, None)?;
        let mut close = Vec::new();
        encode_statement_command(&mut close, Command::StmtClose, statement);
        self.put_silent(&close)?;
        self.flush()
    }
}

/// Whether it begins as one: others may change something.
fn is_query(sql: &[u8]) -> bool {
    let word = sql.trim_ascii_start().get(..6);
    word.is_some_and(|word| word.eq_ignore_ascii_case(b"SELECT"))
}

/// The verb of an error about privileges is that of the client's statement. The question had
/// another.
fn denied_to(sql: &[u8], failure: Failure) -> Failure {
    const SELECT: &[u8] = b"SELECT command denied";
    let Failure::Server {
        code,
        state,
        message,
    } = failure
    else {
        return failure;
    };
    let verb = sql
        .trim_ascii_start()
        .get(..6)
        .map(<[u8]>::to_ascii_uppercase);
    let message = match (message.strip_prefix(SELECT), verb.as_deref()) {
        (Some(rest), Some(verb @ (b"INSERT" | b"UPDATE" | b"DELETE"))) => {
            [verb, b" command denied", rest].concat()
        }
        _ => message,
    };
    Failure::Server {
        code,
        state,
        message,
    }
}
