//! Carrying a statement out: the one place where a plan's action meets what does it.
//!
//! A text and a prepared statement are the same statement in two protocols. They differ in how
//! values are bound and sent ([`Session::send`]), in how rows are written
//! ([`Execution::is_binary`]) and in what a relay sends. Everything else is one.

use std::sync::Arc;

use onionskin_plan::{Action, Piece, Template};
use onionskin_wire::messages::CursorType;

use super::Session;
use crate::bind::{Binder, Buffers, FromVariable, StoreMode, Values};
use crate::catalog::KeyedPlan;
use crate::diagnostics::deprecated_calls;
use crate::error::{Failure, Outcome};
use crate::exchange::Question;
use crate::open::Opener;
use crate::prepared::Statement;
use crate::scratch::Parameters;
use crate::server_errors::{CHECK_OF_MARIADB, CHECK_OF_MYSQL, REFERENCED_ROW};
use crate::state::State;

/// How often a definition is planned anew because another one has changed its table.
const MAX_TURNS: u32 = 16;
/// How often another statement is planned anew while definitions change what it was planned for.
/// Nothing of it has been carried out then.
const MAX_STALE: u32 = 4;

/// One statement that is to be carried out: its plan, its values, and how the client sent it.
#[derive(Clone, Copy)]
pub(crate) struct Execution<'a> {
    pub keyed: &'a Arc<KeyedPlan>,
    pub values: Values<'a>,
    /// How many rows the shape has folded into one; 1 if none.
    pub rows: usize,
    /// How values that do not fit are taken.
    pub mode: StoreMode,
    pub protocol: Protocol<'a>,
}

/// How the client sent a statement.
#[derive(Clone, Copy)]
pub(crate) enum Protocol<'a> {
    /// As a text. `whole`: it is all of the client's packet.
    Text { whole: bool },
    /// As an execution of a prepared statement.
    Binary {
        statement: &'a Statement,
        cursor: CursorType,
        /// The client's packet.
        payload: &'a [u8],
    },
}

/// Another way to do a statement that failed.
pub(crate) enum Way {
    /// By the engine.
    Other(Arc<KeyedPlan>),
    /// By a plan that is made of fresh tables.
    Afresh,
}

impl<'a> Execution<'a> {
    /// A text that was read into this template.
    pub fn of_text(
        sql: &'a [u8],
        template: &'a Template,
        keyed: &'a Arc<KeyedPlan>,
        from_variables: &'a [FromVariable],
        whole: bool,
    ) -> Self {
        let folded = template.rows.map(|rows| rows.count);
        Execution {
            keyed,
            values: Values {
                sql,
                literals: &template.literals,
                params: &[],
                long_data: &[],
                from_variables,
            },
            rows: folded.unwrap_or(1),
            mode: StoreMode::of(&keyed.plan.facts, folded),
            protocol: Protocol::Text { whole },
        }
    }

    /// What binds its values, and takes those that do not fit as it does.
    pub fn binder(&self, state: &'a State, buffers: &'a mut Buffers) -> Binder<'a> {
        let mut binder = Binder::new(self.keyed, state, self.values, buffers);
        binder.mode = self.mode;
        binder
    }

    pub fn is_binary(&self) -> bool {
        matches!(self.protocol, Protocol::Binary { .. })
    }

    /// The parameters of a prepared statement; `None` for a text, which has none.
    pub fn parameters(&self) -> Option<Parameters<'a>> {
        self.is_binary().then_some(Parameters {
            params: self.values.params,
            long: self.values.long_data,
        })
    }
}

impl Session {
    /// Does what the plan says, and answers the client. Returns what opens the rows of a cursor.
    pub(crate) fn run(&mut self, execution: &Execution) -> Outcome<Option<Opener>> {
        let Execution { keyed, values, .. } = *execution;
        self.meter.runs(keyed.label);
        self.must_be_recordable(keyed)?;
        self.must_begin_at_once(&keyed.plan)?;
        self.tell_time(keyed)?;
        if !matches!(keyed.plan.action, Action::ByName(_)) {
            self.current.note_programs(keyed);
        }
        self.must_not_cascade(execution)?;
        if self.functions.opens() {
            return self.run_opening(execution);
        }
        match &keyed.plan.action {
            Action::Server { text, result } => {
                if let Some(upsert) = &keyed.plan.upsert {
                    self.keep_cells(execution, upsert)?;
                }
                let question = match self.send(execution, text, false) {
                    Err(Failure::Value(error)) => {
                        let of_text = self.said_of_text(execution);
                        self.not_looked_at(execution, of_text, error)?;
                        return Ok(None);
                    }
                    sent => sent?,
                };
                let done = match result {
                    Some(items) => {
                        self.open_result(question, keyed, Some(items), execution.is_binary())
                    }
                    None => self.relay_answer(question, &[]).map(|()| None),
                };
                if let Err(failure) = &done {
                    self.note_duplicate(execution, text, failure)?;
                }
                return done;
            }
            Action::Finish(finish) => {
                self.with_all_rows(|session| session.finish_query(execution, finish))
            }
            Action::Relay => self.relay_execution(execution),
            Action::Refuse(refusal) => Err(self.refused(values.sql, refusal)),
            Action::ByName(statement) => match execution.protocol {
                Protocol::Text { whole } => self.by_name(statement, values.sql, whole),
                Protocol::Binary { .. } => Err(Failure::Stale),
            },
            Action::Compute { .. } => self.compute_and_run(keyed, values),
            Action::Scratch(scratch) => {
                self.scratch_query(keyed, scratch, values, execution.parameters())
            }
            Action::ScratchWrite(write) => {
                self.scratch_write(keyed, write, values, execution.parameters())
            }
            Action::Update(update) => {
                let done = self.row_update(keyed, update, values);
                if let Err(failure) = &done {
                    self.note_duplicate_of_update(execution, update, failure)?;
                }
                done
            }
            Action::Delete(delete) => self.row_delete(keyed, delete, values),
            Action::Define(ddl) => {
                self.check_temporary(keyed)?;
                self.must_reach_all_nodes()?;
                let bound = self.with_view_constants(execution, ddl)?;
                self.define(bound.as_ref().unwrap_or(ddl), keyed)?;
                self.after_relay(keyed)
            }
            Action::Copy(copied) => {
                self.must_reach_all_nodes()?;
                self.copy_table(copied, keyed)?;
                self.after_relay(keyed)
            }
            Action::Refit(refit) => {
                self.check_temporary(keyed)?;
                self.refit(refit, keyed)
            }
            Action::Show { what, text, table } => self.show(execution, what, text, table),
        }?;
        Ok(None)
    }

    /// Binds the values into a physical text and sends that. `indexed`: full-text indexes are used.
    pub(crate) fn send(
        &mut self,
        execution: &Execution,
        text: &[Piece],
        indexed: bool,
    ) -> Outcome<Question> {
        match execution.protocol {
            Protocol::Text { .. } => self.send_text(execution, text, indexed),
            Protocol::Binary {
                statement, cursor, ..
            } => self.send_execution(execution, statement, cursor, text, indexed),
        }
    }

    /// What the server warns of in a text, whatever its values are. Of a prepared statement it has
    /// warned before.
    fn said_of_text(&self, execution: &Execution) -> Vec<onionskin_value::Warning> {
        match execution.protocol {
            Protocol::Text { .. } => {
                deprecated_calls(&execution.keyed.plan.facts, self.state.family)
            }
            Protocol::Binary { .. } => Vec::new(),
        }
    }

    fn relay_execution(&mut self, execution: &Execution) -> Outcome<()> {
        let keyed = execution.keyed;
        let done = match execution.protocol {
            Protocol::Text { whole: true } => return self.relay_query(keyed),
            Protocol::Text { whole: false } => {
                self.check_temporary(keyed)?;
                if !keyed.plan.facts.question.asks() {
                    self.say_next_transaction()?;
                }
                let found = self.server.found;
                let question = self.server.put_query(execution.values.sql)?;
                self.server.found = found;
                self.server.flush()?;
                self.relay_planned(question, keyed, &[])
            }
            Protocol::Binary {
                statement, payload, ..
            } => {
                self.check_temporary(keyed)?;
                self.execute_renumbered(statement, payload)
            }
        };
        self.end_relay(keyed, done)
    }

    /// Another way to do a statement that failed, if there is one. `attempts` counts the ways that
    /// were taken.
    pub(crate) fn another_way(
        &mut self,
        sql: &[u8],
        template: &Template,
        keyed: &KeyedPlan,
        done: &Outcome<()>,
        attempts: &mut u32,
    ) -> Outcome<Option<Way>> {
        let Err(failure) = done else {
            return Ok(None);
        };
        if let Failure::Server { code, .. } = failure
            && *code == REFERENCED_ROW
            && let Some(refusal) = self.refused_cascade(failure, keyed)?
        {
            return Err(refusal);
        }
        let may_run_again = self.may_run_again(failure, keyed);
        if let Failure::Refused(refusal) = failure
            && *attempts < 2
            && self.scratch_may_do(keyed, refusal)
        {
            *attempts = 2;
            self.server.settle()?;
            if let Some(other) = self.scratch_plan(sql, template)? {
                return Ok(Some(Way::Other(other)));
            }
        }
        let is_foreign_cell = is_foreign_cell(failure);
        let is_stale = matches!(failure, Failure::Stale) || is_foreign_cell;
        // of definitions that change one table, the others may have been faster more than once
        let is_definition = matches!(keyed.plan.action, Action::Define(_) | Action::Refit(_));
        let most = match is_stale && is_definition {
            true => MAX_TURNS,
            false => MAX_STALE,
        };
        if !may_run_again || *attempts >= most {
            return match is_foreign_cell {
                true => Err(Failure::Stale),
                false => Ok(None),
            };
        }
        *attempts += 1;
        self.server.settle()?;
        let afresh = self.looks_different(keyed, done)? || is_stale;
        if afresh && self.current.read_file {
            // no server asks a client twice for its file
            return Err(Failure::Stale);
        }
        Ok(afresh.then_some(Way::Afresh))
    }
}

/// Whether the server has refused a cell for the ids in it: the table was dropped and made anew
/// since it was looked up.
fn is_foreign_cell(failure: &Failure) -> bool {
    let Failure::Server { code, message, .. } = failure else {
        return false;
    };
    let named = |mark: &[u8]| memchr::memmem::find(message, mark).is_some();
    matches!(*code, CHECK_OF_MYSQL | CHECK_OF_MARIADB)
        && (named(b"'onionskin_") || named(b"`onionskin_"))
}
