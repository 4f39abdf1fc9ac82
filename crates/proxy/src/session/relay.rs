//! Answers of the server's that go through as they are. None may show a physical column.

use onionskin_plan::{Catalog, Defines, Finds, Known, Verb, errors};
use onionskin_schema::TableName;
use onionskin_wire::messages::OkPacket;
use onionskin_wire::{DefinitionForm, Step, WireError};

use super::Session;
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::exchange::{Held, Question};
use crate::open;
use crate::server_errors::{ENDS_LOCKS, is_own_check};
use crate::unique_keys::UniqueKeys;

impl Session {
    /// Sends the server what the client has sent.
    pub(super) fn put_client_command(&mut self) -> Outcome<Question> {
        let payload = self.client.last_payload();
        let question = self.server.put_command(payload)?;
        self.server.flush()?;
        Ok(question)
    }

    pub(super) fn relay_query(&mut self, keyed: &KeyedPlan) -> Outcome<()> {
        if keyed.plan.defines.any() && self.account.is_private() {
            self.check_temporary(keyed)?;
        }
        if !keyed.plan.facts.question.asks() {
            self.say_next_transaction()?;
        }
        let question = self.put_client_command()?;
        // without names nothing makes it run again
        let names: &[TableName] = match keyed.plan.facts.runs_once() {
            true => &[],
            false => &keyed.plan.names,
        };
        let relayed = self.relay_planned(question, keyed, names);
        self.end_relay(keyed, relayed)
    }

    /// A statement was relayed, in whatever form, and has come to this.
    pub(crate) fn end_relay(&mut self, keyed: &KeyedPlan, done: Outcome<()>) -> Outcome<()> {
        if done.is_err() && keyed.plan.defines == Defines::Names {
            // DROP TABLE a, b drops a, even if there is no b
            self.live.forget(&keyed.plan.names);
        }
        if keyed.plan.facts.locks_tables == Some(true)
            && let Err(Failure::Server { code, .. }) = &done
            && ENDS_LOCKS.contains(code)
        {
            self.locked_tables = false;
        }
        done?;
        self.after_relay(keyed)
    }

    pub(crate) fn after_relay(&mut self, keyed: &KeyedPlan) -> Outcome<()> {
        let locks = keyed.plan.facts.locks_tables;
        self.locked_tables = locks.unwrap_or(self.locked_tables);
        if keyed.plan.facts.alters_database || keyed.plan.facts.verb == Verb::Use {
            self.state.present_collation = None;
        }
        if keyed.plan.facts.changes_meaning {
            self.current.has_chosen = true;
            self.may_stay_read_only();
        }
        if keyed.plan.defines == Defines::Names {
            self.live.forget(&keyed.plan.names);
        }
        // the server does not tell of roles
        self.server.untold |= keyed.plan.defines == Defines::Role;
        if keyed.plan.defines.any() {
            self.unique_keys = UniqueKeys::default();
            if self.account.is_private() {
                self.refresh_temporary()?;
            }
        }
        Ok(())
    }

    /// Relays a command that touches no rows.
    pub(super) fn relay_command(&mut self) -> Outcome<()> {
        self.current.finds = Finds::Keeps;
        let question = self.put_client_command()?;
        self.relay_answer(question, &[])
    }

    /// Relays the answer to a planned statement. It notices if rows are left out with a warning
    /// because their table has become a protected one.
    pub fn relay_planned(
        &mut self,
        question: Question,
        keyed: &KeyedPlan,
        names: &[TableName],
    ) -> Outcome<()> {
        if keyed.plan.facts.may_ignore() {
            self.current.watched.clone_from(&keyed.plan.names);
        }
        self.current.note_programs(keyed);
        self.current.relayed_of = Some(keyed.generation);
        let done = self.relay_answer(question, names);
        self.current.relayed_of = None;
        self.current.watched.clear();
        done
    }

    /// Looks at the warnings of a statement that makes warnings of errors. [`Failure::Stale`]: one
    /// is about a CHECK of ours, so the table has become a protected one, and nothing was written.
    /// The answer is kept for [`Self::write_end`].
    fn look_at_warnings(&mut self, sent_file: bool) -> Outcome<()> {
        let payload = self.server.payload().to_vec();
        let ok = OkPacket::decode(&payload, self.server.capabilities).map_err(Failure::Backend)?;
        let (warnings, affected) = (usize::from(ok.warnings), ok.affected_rows);
        if warnings == 0 || !self.server.tracker.is_complete() {
            return Ok(());
        }
        let shown = self.server.rows(b"SHOW WARNINGS")?;
        self.diagnostics.row_count = i64::try_from(affected).ok();
        let is_ours = |row: &Vec<Option<Vec<u8>>>| {
            let cell = |n: usize| row.get(n).and_then(Option::as_deref).unwrap_or_default();
            let code = std::str::from_utf8(cell(1)).unwrap_or_default().parse();
            code.is_ok_and(|code| is_own_check(code, cell(2)))
        };
        let is_incomplete = shown.len() < warnings;
        let names = std::mem::take(&mut self.current.watched);
        // servers keep the first of them only, and count the others
        if shown.iter().any(is_ours) || (is_incomplete && self.is_one_protected(&names)?) {
            if affected == 0 && !sent_file {
                return Err(Failure::Stale);
            }
            let about = "rows were left out";
            return Err(Failure::refused(&errors::STALE, about));
        }
        self.current.kept = Some(payload);
        Ok(())
    }

    /// Whether one of these tables is protected by now.
    fn is_one_protected(&mut self, names: &[TableName]) -> Outcome<bool> {
        self.look_up(names)?;
        Ok(names.iter().any(|name| {
            let known = self.account.table(&name.database, &name.name);
            matches!(known, Known::Table(table) if table.is_protected())
        }))
    }

    /// Relays an answer. Results that would show physical columns are not relayed: the snapshot
    /// is stale ([`Failure::Stale`], before anything was written), or a view or a program reads
    /// a protected table.
    pub fn relay_answer(&mut self, question: Question, names: &[TableName]) -> Outcome<()> {
        self.server.begin(question)?;
        let mut held: Vec<Vec<u8>> = Vec::new();
        let (mut wrote, mut sent_file) = (false, false);
        while !self.server.tracker.is_complete() {
            let step = self.server.step()?;
            match step {
                Step::Row => {
                    let payload = self.server.connection.last_payload();
                    self.client
                        .write_payload(payload)
                        .map_err(Failure::Client)?;
                }
                Step::ColumnCount(_) => held.push(self.server.payload().to_vec()),
                Step::ColumnDef => {
                    if open::names_physical(self.server.payload())
                        && shows_physical_name(self.server.payload(), self.server.form)
                    {
                        self.server.settle()?;
                        return if wrote || names.is_empty() {
                            Err(Failure::refused(&errors::PHYSICAL, ""))
                        } else {
                            Err(self.stale_or_physical(names))
                        };
                    }
                    if held.is_empty() {
                        let payload = self.server.connection.last_payload();
                        self.client
                            .write_payload(payload)
                            .map_err(Failure::Client)?;
                    } else {
                        held.push(self.server.payload().to_vec());
                    }
                    continue;
                }
                Step::LocalInfileRequest => {
                    if !self.has_asked_for_file() {
                        return Err(Failure::OutOfStep("a request for a file"));
                    }
                    let payload = self.server.connection.last_payload();
                    self.client
                        .write_payload(payload)
                        .map_err(Failure::Client)?;
                    self.current.read_file = true;
                    self.relay_file()?;
                    sent_file = true;
                }
                Step::Err => {
                    for packet in held.drain(..) {
                        self.client
                            .write_payload(&packet)
                            .map_err(Failure::Client)?;
                    }
                    if !wrote {
                        return Err(self.server.error());
                    }
                    self.current.sent_error = true;
                    if self.diagnostics.of_earlier {
                        // MariaDB's list is that of this error now
                        self.diagnostics.clear();
                    }
                    let payload = self.server.connection.last_payload();
                    self.client
                        .write_payload(payload)
                        .map_err(Failure::Client)?;
                }
                Step::Ok { .. } | Step::EndOfRows { .. } | Step::EofAfterColumns { .. } => {
                    if !self.current.watched.is_empty() && matches!(step, Step::Ok { .. }) {
                        self.look_at_warnings(sent_file)?;
                    }
                    for packet in held.drain(..) {
                        self.client
                            .write_payload(&packet)
                            .map_err(Failure::Client)?;
                    }
                    self.write_end(step)?;
                    wrote = true;
                    continue;
                }
                _ => {
                    let payload = self.server.connection.last_payload();
                    self.client
                        .write_payload(payload)
                        .map_err(Failure::Client)?;
                }
            }
            if !held.is_empty() && matches!(step, Step::Row) {
                return Err(Failure::refused(
                    &errors::INTERNAL,
                    "rows before their definitions",
                ));
            }
            wrote |= held.is_empty();
            if matches!(step, Step::ColumnCount(_)) {
                self.release_definitions(&mut held, names)?;
                wrote = true;
            }
        }
        self.has_found();
        Ok(())
    }

    /// Reads a result's definitions, checks all of them, then writes them.
    pub(super) fn release_definitions(
        &mut self,
        held: &mut Vec<Vec<u8>>,
        names: &[TableName],
    ) -> Outcome<()> {
        let count = {
            let mut reader = onionskin_wire::Reader::new(&held[0]);
            reader.lenenc_int().map_err(Failure::Backend)?
        };
        let mut bytes = Held::default();
        for _ in 0..count {
            if self.server.step()? != Step::ColumnDef {
                return Err(Failure::Backend(WireError::Malformed(
                    "a definition is missing",
                )));
            }
            let payload = self.server.payload();
            if open::names_physical(payload) && shows_physical_name(payload, self.server.form) {
                self.server.settle()?;
                return Err(if names.is_empty() {
                    Failure::refused(&errors::PHYSICAL, "")
                } else {
                    self.stale_or_physical(names)
                });
            }
            bytes.add(payload)?;
            held.push(payload.to_vec());
        }
        for packet in held.drain(..) {
            self.client
                .write_payload(&packet)
                .map_err(Failure::Client)?;
        }
        Ok(())
    }

    /// A result shows physical names: if the snapshot was stale, plan again; else a view or a
    /// program shows them, and that is refused.
    pub(crate) fn stale_or_physical(&mut self, names: &[TableName]) -> Failure {
        match self.look_up(names) {
            Ok(true) => Failure::Stale,
            // somebody else may have noticed first
            Ok(false)
                if self
                    .current
                    .relayed_of
                    .is_some_and(|of| of != self.account.generation()) =>
            {
                Failure::Stale
            }
            Ok(false) => Failure::refused(&errors::PHYSICAL, ""),
            Err(failure) => failure,
        }
    }

    /// `LOAD DATA LOCAL`: the client's packets up to the empty one.
    pub(super) fn relay_file(&mut self) -> Outcome<()> {
        self.flush()?;
        self.server.connection.set_sequence(self.client.sequence());
        loop {
            let payload = self.client.read_payload().map_err(Failure::Client)?;
            let end = payload.is_empty();
            self.server
                .connection
                .write_payload(payload)
                .map_err(Failure::Backend)?;
            if end {
                break;
            }
        }
        self.server.flush()?;
        Ok(())
    }

    pub(super) fn field_list(&mut self) -> Outcome<()> {
        let payload = self.client.last_payload().to_vec();
        let list =
            onionskin_wire::messages::ComFieldList::decode(&payload).map_err(Failure::Client)?;
        let table = String::from_utf8_lossy(list.table).into_owned();
        let database = self.state.database.clone().unwrap_or_default();
        let name = TableName::new(database, table);
        self.look_up(std::slice::from_ref(&name))?;
        if let onionskin_plan::Known::Table(found) =
            onionskin_plan::Catalog::table(self.account.as_ref(), &name.database, &name.name)
            && found.is_protected()
        {
            return self.show_field_list(&payload, &found);
        }
        let question = self.put_client_command()?;
        self.relay_answer(question, &[])
    }
}

/// Whether a definition's names, not its table or alias by chance, are physical.
pub(crate) fn shows_physical_name(definition: &[u8], form: DefinitionForm) -> bool {
    onionskin_wire::messages::ColumnDefinition::decode(definition, form)
        .is_ok_and(|d| is_physical(&d.org_name) || (d.org_name.is_empty() && is_physical(&d.name)))
}

pub(super) fn is_physical(name: &[u8]) -> bool {
    let digits = |tail: &[u8]| tail.len() == 4 && tail.iter().all(u8::is_ascii_hexdigit);
    name.ends_with(b"$enc")
        || [b"$ord_".as_slice(), b"$eq_", b"$gram_"]
            .iter()
            .any(|infix| {
                memchr::memmem::rfind(name, infix)
                    .is_some_and(|at| digits(&name[at + infix.len()..]))
            })
}
