//! Statements that change tables by way of the scratch engine (`onionskin_plan::ScratchWrite`).
//! Rows are read under locks, the engine runs the statement on its temporary tables, and the rows
//! that come of it are sealed and written.
//!
//! All of it is one unit: a transaction of its own if the client has none, otherwise what lies
//! behind a savepoint. The client is told what the engine says of affected rows, info and warnings,
//! because the engine has run the very statement.
//!
//! | file | holds |
//! |---|---|
//! | `create` | `CREATE TABLE … SELECT` |
//! | `changes` | rows that an `UPDATE` has changed, or a `DELETE` has taken away |
//! | `file` | the file of `LOAD DATA LOCAL`, on its way through the engine |
//! | `rows` | rows of `INSERT … SELECT`, which become an `INSERT … VALUES` |
//! | `upsert` | rows that are there already and get values computed from both |
//! | `values` | cells of temporary tables, as payloads and as literals |

mod changes;
mod create;
mod file;
mod rows;
mod upsert;
mod values;

use changes::GoneTwice;
use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{Effect, ScratchRead, ScratchWrite, errors};
use onionskin_schema::Table;
use onionskin_value::Family;
use onionskin_wire::StatusFlags;

use super::engine::{Engine, ours};
use super::tables::quoted;
use super::{Parameters, renamed_text};

use crate::bind::Values;
use crate::catalog::KeyedPlan;
use crate::diagnostics::Diagnostics;
use crate::error::{Failure, Outcome};
use crate::exchange::Done;
use crate::part::BEGIN_PART;
use crate::row_update::{COMMIT, changed_rows};
use crate::server_errors::NO_DEFAULT;
use crate::session::Session;

/// A key that is there already.
const DUPLICATE: u16 = 1062;
/// A deadlock.
const DEADLOCK: u16 = 1213;
/// What it says, as the server does.
const ENDED: &str = "Deadlock found when trying to get lock; try restarting transaction";
/// MariaDB's error under `innodb_snapshot_isolation` (on by default since 11.6): a row has changed
/// since the transaction's snapshot.
const CHANGED_SINCE: u16 = 1020;
/// How often a statement that is a transaction of its own is run again after one.
const RETRIES: usize = 10;

/// What begins before the rows of a statement are read, and ends when all is written.
pub(super) struct Change {
    frame: Frame,
    /// Its beginning was sent.
    pub begun: bool,
    /// For each read, the conditions that name its rows.
    pub keys: Vec<Vec<Vec<u8>>>,
    /// What is asked in front of the reads: see [`Change::claims`].
    pub claims: Vec<String>,
}

/// What makes several statements of the server's one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// A transaction of the proxy's.
    Transaction,
    /// A part of the client's transaction.
    Savepoint,
    /// The same where a savepoint may hide that the transaction has ended. What fails behind a
    /// first change ends the transaction.
    Bare,
}

impl Change {
    fn new(session: &mut Session) -> Outcome<Self> {
        session.server.renew_status()?;
        let frame = match session.server.in_transaction() {
            true if session.savepoints_hide()? => Frame::Bare,
            true => Frame::Savepoint,
            false => Frame::Transaction,
        };
        session.server.has_written = false;
        Ok(Change {
            frame,
            begun: false,
            keys: Vec::new(),
            claims: Vec::new(),
        })
    }

    /// Statements that touch no row, and open each table that will be written to as the writing
    /// does.
    ///
    /// A statement of a plain server opens all its tables for what it does with them before it
    /// locks a row. Here the rows come first, by reading. A definition that waits for the table
    /// lets no new writer in; if it waits for a session that waits for rows of ours, and our
    /// writing waits behind the definition, no server sees the circle.
    ///
    /// They are left out where another node may have ended the transaction: the first statement
    /// behind that has to say so, and an EXPLAIN says nothing.
    fn claims(&self, write: &ScratchWrite) -> Vec<String> {
        let reads = &write.scratch.reads;
        match &write.effect {
            _ if self.frame == Frame::Bare => Vec::new(),
            Effect::Insert(new) => {
                let (database, name) = (quoted(&new.table.database), quoted(&new.table.name));
                vec![format!(
                    "EXPLAIN INSERT INTO {database}.{name} () VALUES ()"
                )]
            }
            Effect::Update(_) | Effect::Delete(_) if reads.len() > 1 => {
                let written = reads.iter().filter(|read| !read.lock.is_empty());
                let claim = |read: &ScratchRead| {
                    format!("SELECT 1 FROM {} WHERE FALSE{}", read.source, read.lock)
                };
                written.map(claim).collect()
            }
            Effect::Update(_) | Effect::Delete(_) | Effect::Create(_) => Vec::new(),
        }
    }

    pub(super) fn begin(&self) -> &'static [u8] {
        match self.frame {
            Frame::Transaction => b"BEGIN",
            Frame::Savepoint => BEGIN_PART,
            Frame::Bare => b"DO 0",
        }
    }
}

/// What a statement has done, and what there is to say about it.
struct Finished {
    done: Done,
    diagnostics: Diagnostics,
}

impl Session {
    /// Runs a statement that changes tables and answers the client.
    pub fn scratch_write(
        &mut self,
        keyed: &KeyedPlan,
        write: &ScratchWrite,
        values: Values,
        parameters: Option<Parameters>,
    ) -> Outcome<()> {
        self.must_mean_the_same(keyed, values)?;
        if let Effect::Create(new) = &write.effect {
            return self.create_select(keyed, write, new, values, parameters);
        }
        if self.server.status.contains(StatusFlags::IN_TRANS_READONLY)
            && let Effect::Insert(new) = &write.effect
            && let Some(failure) = self.read_only_error_of(&new.table)?
        {
            // a query that finds no row would change nothing
            return Err(failure);
        }
        // a transaction of ours would end the locks, and without one a failure leaves a part of the
        // rows changed; and servers want a second lock for a table that is read and written at once
        if self.locked_tables && (!self.server.in_transaction() || write.inserts_its_own_rows()) {
            return Err(
                NotUnderstood::Under("a change by the scratch engine", "LOCK TABLES").into(),
            );
        }
        let mut tries = 0;
        let finished = loop {
            // what was said of a try before is not of this one
            self.current.begin();
            let mut change = Change::new(self)?;
            change.claims = change.claims(write);
            // a look at the tables must not end the transaction that the savepoint begins
            let had_savepoints = self.has_savepoints;
            self.has_savepoints |= change.frame == Frame::Savepoint;
            let done = self.with_engine(&write.scratch, |session, engine| {
                let done = session.by_engine(engine, keyed, write, values, parameters, &mut change);
                match done.and_then(|done| session.keep_change(&change).map(|()| done)) {
                    Ok(finished) => Ok(finished),
                    Err(failure) => Err(session.take_back(failure, &change)?),
                }
            });
            self.has_savepoints = had_savepoints;
            match done {
                // other sessions can come between looking for rows and writing them, which is one
                // statement at a server
                Err(Failure::Server { code, .. })
                    if change.frame == Frame::Transaction
                        && tries < RETRIES
                        && match code {
                            DEADLOCK => write.upserts(),
                            CHANGED_SINCE => !write.loads(),
                            _ => false,
                        } =>
                {
                    tries += 1;
                }
                Err(Failure::Server {
                    code: NO_DEFAULT,
                    message,
                    ..
                }) if self.state.family == Family::MariaDb
                    && write.changed_if_met().any(|name| quotes(&message, name)) =>
                {
                    // to MariaDB a column is given that only the clause assigns, which is not sent
                    let about = "a column without a value, beside ON DUPLICATE KEY UPDATE";
                    return Err(Failure::refused(&errors::VALUE, about));
                }
                done => break done.map_err(Failure::before_a_change)?,
            }
        };
        self.diagnostics = finished.diagnostics;
        // the server's are those of the reads
        self.diagnostics.hides_servers = true;
        self.write_done(&finished.done)
    }

    fn by_engine(
        &mut self,
        engine: &mut Engine,
        keyed: &KeyedPlan,
        write: &ScratchWrite,
        values: Values,
        parameters: Option<Parameters>,
        change: &mut Change,
    ) -> Outcome<Finished> {
        let targets = match &write.effect {
            Effect::Insert(new) => {
                if let Some(load) = &new.load {
                    return self.load_file(engine, keyed, write, new, load, values, change);
                }
                return self.insert_query(engine, keyed, write, new, values, parameters, change);
            }
            Effect::Update(targets) | Effect::Delete(targets) => targets,
            Effect::Create(_) => return Err(Failure::refused(&errors::INTERNAL, "a definition")),
        };
        let scratch = &write.scratch;
        let settings = self.read_tables(engine, keyed, scratch, values, Some(change))?;
        engine.share(&settings)?;
        let ranks = self.ranks(engine, write, targets, values)?;
        let mut sql = renamed_text(values.sql, scratch, self.state.lex_mode())?;
        if let Effect::Update(targets) = &write.effect {
            self.look_for_rows_first(scratch, targets, &mut sql)?;
        }
        let names = names_of(write);
        let (mut done, mut diagnostics) = run_there(engine, &sql, parameters, &names)?;
        engine.load_again()?;
        let updates = matches!(write.effect, Effect::Update(_));
        let mut written = 0;
        let mut gone_twice = GoneTwice::new(scratch, targets);
        for (target, ranks) in targets.iter().zip(&ranks) {
            written += match updates {
                true => self.write_changed(engine, keyed, scratch, target, change, ranks)?,
                false => {
                    let gone =
                        self.delete_missing(engine, scratch, target, change, &mut gone_twice);
                    gone.map_err(|failure| match failure {
                        // the server would leave such rows, and delete the others
                        Failure::Server { code, .. } if keyed.plan.facts.ignore => {
                            NotUnderstood::IgnoreMeetsError(code).into()
                        }
                        failure => failure,
                    })?
                }
            };
        }
        let counted = match updates {
            true => changed_rows(&done),
            false => done.affected_rows,
        };
        if written != counted {
            let about = "the engine counts other rows than were written";
            return Err(Failure::refused(&errors::INTERNAL, about));
        }
        if !updates {
            done.affected_rows -= gone_twice.again;
        }
        diagnostics.hides_servers = true;
        if updates && done.info.is_empty() {
            // the engine says nothing of a table without rows; a server does not know beforehand
            // that there are none
            done.info = b"Rows matched: 0  Changed: 0  Warnings: 0".to_vec();
        }
        // warnings are counted where all are known
        let info = String::from_utf8_lossy(&done.info).into_owned();
        if let Some((head, _)) = info.split_once("Warnings: ") {
            done.info = format!("{head}Warnings: 0").into_bytes();
        }
        done.warnings = 0;
        done.last_insert_id = 0;
        Ok(Finished { done, diagnostics })
    }

    /// Makes what was written last.
    fn keep_change(&mut self, change: &Change) -> Outcome<()> {
        match change.frame {
            Frame::Transaction => self.server.run(COMMIT).map(|_| ()),
            Frame::Savepoint => self.keep_part(),
            Frame::Bare => Ok(()),
        }
    }

    /// Takes back what a statement has written before it failed. Returns the failure, for the
    /// client.
    fn take_back(&mut self, failure: Failure, change: &Change) -> Outcome<Failure> {
        self.current.interfered = true;
        if failure.is_fatal() || !change.begun {
            return Ok(failure);
        }
        match change.frame {
            Frame::Savepoint => return Ok(self.take_back_part(failure)),
            Frame::Bare if !self.server.has_written => {
                self.server.settle()?;
                return Ok(failure);
            }
            Frame::Bare | Frame::Transaction => self.roll_back_own()?,
        }
        Ok(match change.frame {
            // what every client of such a group has to be ready for
            Frame::Bare => Failure::Server {
                code: DEADLOCK,
                state: *b"40001",
                message: ENDED.into(),
            },
            _ => failure,
        })
    }
}

/// Names that only the engine knows, and what stands for them to the client.
fn names_of(write: &ScratchWrite) -> Vec<(String, String)> {
    let reads = write.scratch.reads.iter();
    let mut names: Vec<_> = reads
        .filter(|r| r.name != r.table.name)
        .map(|r| (r.name.clone(), r.table.name.clone()))
        .collect();
    match &write.effect {
        Effect::Insert(new) => names.push((rows::NEW.to_string(), new.table.name.clone())),
        Effect::Create(new) => names.push((rows::NEW.to_string(), new.name.clone())),
        _ => {}
    }
    names
}

/// Runs the client's statement on the engine's tables. Returns what it says, and its warnings.
fn run_there(
    engine: &mut Engine,
    sql: &[u8],
    parameters: Option<Parameters>,
    names: &[(String, String)],
) -> Outcome<(Done, Diagnostics)> {
    let done = engine.run(sql, parameters);
    told(engine, done, names)
}

/// What the engine says to a statement, for the client.
fn told(
    engine: &mut Engine,
    done: Outcome<Done>,
    names: &[(String, String)],
) -> Outcome<(Done, Diagnostics)> {
    let client_text = |text: &[u8]| {
        let mut text = String::from_utf8_lossy(text).into_owned();
        for (there, here) in names {
            text = text.replace(there, here);
        }
        text.into_bytes()
    };
    let done = match done {
        Ok(done) => done,
        Err(Failure::Server {
            code,
            state,
            message,
        }) => {
            let message = client_text(&message);
            return Err(Failure::Server {
                code,
                state,
                message,
            });
        }
        Err(other) => return Err(other),
    };
    let mut diagnostics = Diagnostics::default();
    if done.warnings > 0 {
        let mut shown = engine.server.rows(b"SHOW WARNINGS").map_err(ours)?;
        for row in &mut shown {
            if let Some(Some(message)) = row.get_mut(2) {
                *message = client_text(message);
            }
        }
        diagnostics.keep(&shown, done.warnings);
    }
    Ok((done, diagnostics))
}

/// Appends a table's full name.
fn put_name_of(table: &Table, out: &mut Vec<u8>) {
    let name = format!("{}.{}", quoted(&table.database), quoted(&table.name));
    out.extend_from_slice(name.as_bytes());
}

/// Whether a server's error is about this name.
fn quotes(message: &[u8], name: &str) -> bool {
    memchr::memmem::find(message, format!("'{name}'").as_bytes()).is_some()
}
