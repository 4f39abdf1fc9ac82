//! Cryptographic functions that the proxy computes, with `[functions] evaluate`.
//!
//! A command of the client's is exchanged here for one without keys and texts, before anything else
//! looks at it (`onionskin_plan::functions` says how). Results take the place of calls in the text;
//! in a prepared statement a parameter does, which each execution gets anew. So neither the planner
//! nor the server can meet what was cut out.
//!
//! `kept.rs` says what a session keeps, `evaluate.rs` computes, `prepared.rs` exchanges the
//! commands of prepared statements, `open.rs` opens columns of results.

mod evaluate;
pub(crate) mod kept;
pub(crate) mod open;
mod prepared;

use std::cell::Cell;

use onionskin_plan::functions::{self, Call, CallError, Calls, Opening, Piece};
use onionskin_plan::{Action, Template, errors};
use onionskin_wire::messages::Command;
use zeroize::Zeroizing;

use self::evaluate::{Bytes, Evaluator, wrong_count};
use self::open::Ready;
use crate::bind::Values;
use crate::error::{Failure, Outcome};
use crate::exchange::Question;
use crate::hex::{put_hex, unhex};
use crate::open::Opener;
use crate::session::{Execution, Protocol, Session};

impl Session {
    /// Exchanges a text for one without calls that the proxy computes.
    pub(crate) fn compute_calls(&mut self) -> Outcome<()> {
        self.functions.openings.clear();
        let Some(calls) = self.calls()? else {
            return Ok(());
        };
        let sql = self
            .client
            .last_payload()
            .get(1..)
            .unwrap_or_default()
            .to_vec();
        let literals = self.literals_of(&sql)?;
        let values = Values::of_text(&sql, &literals.literals);
        let mut text = vec![Command::Query.to_byte()];
        let asked = self.ask_variables(&calls)?;
        let evaluator = self.evaluator(values, &asked)?;
        for piece in &calls.pieces {
            match piece {
                Piece::Sql(sql) => text.extend_from_slice(sql),
                Piece::Parameter(_) => text.push(b'?'),
                Piece::Computed(call) => {
                    let computed = evaluator.call(call)?;
                    put_constant(call, computed.as_deref(), &mut text);
                }
            }
        }
        let openings = ready(&evaluator, &calls.openings)?;
        let mut kept = Vec::new();
        for (name, term) in &calls.assigned {
            evaluator.must_not_be_number(term)?;
            kept.push((name.clone(), evaluator.term(term)?.map(Zeroizing::new)));
        }
        self.functions.openings = openings;
        self.functions.assigned = kept;
        self.client.replace_last_payload(text);
        Ok(())
    }

    /// The statement that has set variables was done, or was not.
    pub(crate) fn keep_assigned(&mut self, is_done: bool) {
        let assigned = std::mem::take(&mut self.functions.assigned);
        if is_done && !self.current.sent_error {
            self.functions.secrets.extend(assigned);
        }
    }

    /// Refuses the text of a statement that is prepared in SQL, if it has calls.
    pub(crate) fn must_not_call(&self, text: &[u8]) -> Outcome<()> {
        let Some(config) = &self.shared.config.functions else {
            return Ok(());
        };
        let lex = self.state.lex_mode();
        let has_none = !functions::may_call(text, &config.secrets)
            || matches!(functions::read(text, lex, &config.secrets), Ok(None));
        match has_none {
            true => Ok(()),
            false => {
                let about = "in the text of a statement that is prepared in SQL";
                Err(Failure::refused(&errors::FUNCTION, about))
            }
        }
    }

    /// The calls in the client's command, a text or a preparation.
    fn calls(&self) -> Outcome<Option<Calls>> {
        let Some(config) = &self.shared.config.functions else {
            return Ok(None);
        };
        let sql = self.client.last_payload().get(1..).unwrap_or_default();
        if !functions::may_call(sql, &config.secrets) {
            return Ok(None);
        }
        if !self.state.tracked || !self.state.mode_is_read || self.state.client_charset.is_none() {
            let about = "a text that cannot be read";
            return Err(Failure::refused(&errors::FUNCTION, about));
        }
        let calls = functions::read(sql, self.state.lex_mode(), &config.secrets);
        calls.map_err(|error| match error {
            CallError::Refused(refusal) => refusal.into(),
            CallError::ArgumentCount(name) => wrong_count(&name),
        })
    }

    fn literals_of(&self, sql: &[u8]) -> Outcome<Template> {
        let mut template = Template::default();
        match template.read_unfolded(sql, self.state.lex_mode()) {
            Ok(()) => Ok(template),
            Err(_) => Err(Failure::refused(&errors::INTERNAL, "literals")),
        }
    }

    fn evaluator<'a>(
        &'a self,
        values: Values<'a>,
        asked: &'a [(Vec<u8>, Option<Vec<u8>>)],
    ) -> Outcome<Evaluator<'a>> {
        let config = self.shared.config.functions.as_ref();
        Ok(Evaluator {
            state: &self.state,
            config: config.ok_or_else(|| Failure::refused(&errors::INTERNAL, "functions"))?,
            secrets: &self.functions.secrets,
            values,
            asked,
            made: Cell::new(0),
        })
    }

    /// Asks the server for the variables that calls need: initialization vectors, salts and the
    /// like.
    fn ask_variables(&mut self, calls: &Calls) -> Outcome<Vec<(Vec<u8>, Bytes)>> {
        let mut names: Vec<&[u8]> = Vec::new();
        for piece in &calls.pieces {
            if let Piece::Computed(call) = piece {
                call.variables(&mut names);
            }
        }
        let opened = calls.openings.iter().filter_map(|o| o.call.as_ref());
        opened
            .flat_map(|call| &call.rest)
            .for_each(|term| term.variables(&mut names));
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let asked: Vec<Vec<u8>> = names
            .iter()
            .map(|n| [b"HEX(CAST(", *n, b" AS BINARY))"].concat())
            .collect();
        let question = [b"SELECT ".as_slice(), &asked.join(b", ".as_slice())].concat();
        let rows = self.server.rows(&question)?;
        let row = rows.into_iter().next().unwrap_or_default();
        let mut all = Vec::with_capacity(names.len());
        for (name, cell) in names.iter().zip(row) {
            let value = match cell {
                None => None,
                Some(digits) => Some(unhex(&digits).ok_or_else(|| {
                    Failure::refused(&errors::FUNCTION, "the value of a variable")
                })?),
            };
            all.push((name.to_vec(), value));
        }
        Ok(all)
    }

    /// Does what the plan says of a statement with columns that functions open.
    pub(crate) fn run_opening(&mut self, execution: &Execution) -> Outcome<Option<Opener>> {
        let keyed = execution.keyed;
        self.must_open_here(&keyed.plan.action)?;
        let (question, items) = match &keyed.plan.action {
            Action::Refuse(refusal) => return Err(refusal.clone().into()),
            Action::Server { text, result } => {
                let question = self.send(execution, text, false)?;
                (question, result.as_deref())
            }
            _ => (self.put_relayed(execution)?, None),
        };
        self.open_result(question, keyed, items, execution.is_binary())
    }

    /// Sends a statement that is relayed.
    fn put_relayed(&mut self, execution: &Execution) -> Outcome<Question> {
        self.check_temporary(execution.keyed)?;
        if let Protocol::Binary {
            statement, payload, ..
        } = execution.protocol
        {
            return self.put_renumbered(statement, payload);
        }
        self.say_next_transaction()?;
        let question = self.server.put_query(execution.values.sql)?;
        self.server.flush()?;
        Ok(question)
    }

    /// Refuses what does not show a result's columns as the server sends them: cells would not be
    /// opened.
    pub(crate) fn must_open_here(&self, action: &Action) -> Outcome<()> {
        match action {
            Action::Relay
            | Action::Server {
                result: Some(_), ..
            }
            | Action::Refuse(_) => Ok(()),
            _ => {
                let about = "in a statement that the proxy or the scratch engine finishes";
                Err(Failure::refused(&errors::FUNCTION, about))
            }
        }
    }
}

/// What the openings need to open cells.
fn ready(evaluator: &Evaluator, openings: &[Opening]) -> Outcome<Vec<Ready>> {
    let each = openings.iter().map(|opening| {
        let call = opening.call.as_ref();
        let key = call.map(|call| evaluator.key(call)).transpose()?;
        Ready::new(opening, key, evaluator.state)
    });
    each.collect()
}

/// Writes what a call gives as a literal.
fn put_constant(call: &Call, value: Option<&[u8]>, out: &mut Vec<u8>) {
    match value {
        // no word beside it becomes a part of it
        None => out.extend_from_slice(b" NULL "),
        Some(text) if call.function.gives_text() => {
            // digits, letters and an asterisk
            out.push(b'\'');
            out.extend_from_slice(text);
            out.push(b'\'');
        }
        Some(bytes) => {
            out.extend_from_slice(b"_binary ");
            put_hex(bytes, out);
        }
    }
}
