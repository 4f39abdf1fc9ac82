//! Tier 2 for rows that an `UPDATE` or `DELETE` means and the server cannot tell: candidates are
//! read under locks, the proxy picks, and what it picked is written by primary key.
//!
//! Outside of a transaction of the client's, reading and deleting are one of ours. Inside of one,
//! a savepoint undoes earlier chunks when a later one fails, as a single statement would.

use onionskin_plan::{ResultItem, RowDelete, RowFilter};
use onionskin_wire::Step;

use crate::bind::{Binder, PlainParameters, Values};
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::exchange::{Done, Question, Rows};
use crate::finish::{Arena, Asked, Binding, Decision};
use crate::open::{self, Opener};
use crate::part::killed;
use crate::row_update::{COMMIT, key_kind, key_literal};
use crate::session::Session;

/// Rows deleted by one statement.
const CHUNK: usize = 256;

/// Tells which of the candidates are meant.
pub(crate) struct Picker {
    decision: Decision,
    arena: Arena,
}

impl Session {
    /// Binds the test of a statement's candidates.
    pub fn picker(
        &mut self,
        keyed: &KeyedPlan,
        filter: Option<&RowFilter>,
        values: Values,
    ) -> Outcome<Option<Picker>> {
        let Some(filter) = filter else {
            return Ok(None);
        };
        let binding = Binding {
            keyed,
            state: &self.state,
            values,
            fetch: &filter.fetch,
            calls: &[],
        };
        Ok(Some(Picker {
            decision: binding.bind(&filter.test, &mut self.buffers)?,
            arena: Arena::new(filter.fetch.len(), self.kept()),
        }))
    }

    /// Deletes the rows that are meant and answers the client.
    pub fn row_delete(
        &mut self,
        keyed: &KeyedPlan,
        delete: &RowDelete,
        values: Values,
    ) -> Outcome<()> {
        self.must_not_be_safe()?;
        self.server.renew_status()?;
        let own = !self.server.in_transaction() && !self.locked_tables;
        let mut select = Vec::new();
        let indexed = self.grams_of_all(keyed, &delete.select, values)?;
        let mut binder = Binder::new(keyed, &self.state, values, &mut self.buffers);
        binder.indexed = indexed;
        binder.plain_parameters = PlainParameters::Kept(Vec::new());
        binder.checks_moments = true;
        binder.text(&delete.select, 1, &mut select)?;
        let parameters = binder.take_parameters();
        let question = self.lock_rows(select, &parameters, own, false)?;
        match self.pick_and_delete(question, keyed, delete, values, own) {
            Ok(done) => self.write_done(&done),
            Err(failure) => Err(self.undo(failure, own)?),
        }
    }

    fn pick_and_delete(
        &mut self,
        question: Question,
        keyed: &KeyedPlan,
        delete: &RowDelete,
        values: Values,
        own: bool,
    ) -> Outcome<Done> {
        let rows = self.picked_keys(question, keyed, delete, values)?;
        let of_condition = self.warnings_of_condition()?;
        if of_condition > 0 {
            self.keep_warnings(of_condition)?;
        }
        let chunk = self.chunk(CHUNK, rows.len(), own)?;
        let chunks: Vec<&[Vec<u8>]> = rows.chunks(chunk).collect();
        if !own && chunks.len() > 1 {
            return self.in_part(|session| session.delete_all(delete, &chunks, false));
        }
        // what earlier chunks did must not be committed with a last one that fails
        let commits = own && chunks.len() == 1;
        let done = self.delete_all(delete, &chunks, commits)?;
        if own && !commits {
            self.server.run(COMMIT)?;
        }
        Ok(done)
    }

    /// Deletes the rows, a statement for each chunk of them.
    fn delete_all(
        &mut self,
        delete: &RowDelete,
        chunks: &[&[Vec<u8>]],
        commits: bool,
    ) -> Outcome<Done> {
        let mut total = Done::default();
        for chunk in chunks {
            let target = delete.target.as_bytes();
            let mut keys = Vec::new();
            for (i, condition) in chunk.iter().enumerate() {
                keys.extend_from_slice(if i > 0 { b" OR (" } else { b" WHERE (" });
                keys.extend_from_slice(condition);
                keys.push(b')');
            }
            let sql = [b"DELETE FROM ", target, &keys].concat();
            let (done, list) = match commits {
                true => self.run_and_commit(&sql)?,
                false => (self.server.run(&sql), Rows::new()),
            };
            let done = done?;
            if chunks.len() > 1 && done.warnings == 0 && done.affected_rows < chunk.len() as u64 {
                self.must_be_gone(target, &keys)?;
            }
            total.affected_rows += done.affected_rows;
            self.keep_warnings_of(&done, list, commits)?;
        }
        Ok(total)
    }

    /// Looks for rows that were to be deleted, where fewer were than there are in the chunk: a
    /// foreign key may have taken some along. MariaDB says OK of a DELETE that was killed while it
    /// looked for a range of an index, and finds no row with a SELECT that was. Without an index it
    /// says that it was killed.
    pub(crate) fn must_be_gone(&mut self, target: &[u8], keys: &[u8]) -> Outcome<()> {
        let one = [
            b"SELECT 1 FROM ",
            target,
            b" USE INDEX ()",
            keys,
            b" LIMIT 1",
        ]
        .concat();
        match self.server.rows(&one)?.is_empty() {
            true => Ok(()),
            false => Err(killed()),
        }
    }

    /// Reads the candidates; returns the conditions that name those that are meant by their keys.
    fn picked_keys(
        &mut self,
        question: Question,
        keyed: &KeyedPlan,
        delete: &RowDelete,
        values: Values,
    ) -> Outcome<Vec<Vec<u8>>> {
        self.server.begin(question)?;
        let count = match self.server.step()? {
            Step::ColumnCount(count) => usize::from(count),
            Step::Err => return Err(self.server.error()),
            _ => return Err(Failure::Stale),
        };
        let keys = delete.key.len();
        if count != keys + delete.filter.fetch.len() {
            return Err(Failure::Stale);
        }
        let mut definitions = Vec::new();
        for _ in 0..count {
            if self.server.step()? != Step::ColumnDef {
                return Err(self.server.error());
            }
            definitions.push(self.server.payload().to_vec());
        }
        let mut items: Vec<ResultItem> = delete.key.iter().map(|_| ResultItem::plain()).collect();
        items.extend(delete.filter.fetch.iter().cloned());
        let kinds = definitions[..keys]
            .iter()
            .map(|packet| key_kind(packet, self.state.form))
            .collect::<Outcome<Vec<_>>>()?;
        // keys may be tokens, which are physical names by intent
        let (_, mut opener) =
            open::definitions_of(keyed, &items, &definitions, &self.state, false, true)?;
        let Some(mut picker) = self.picker(keyed, Some(&delete.filter), values)? else {
            return Err(Failure::Stale);
        };
        let charset = self.state.results_charset;
        let shared = std::sync::Arc::clone(&self.shared);
        let mut rows = Vec::new();
        let (mut kept, mut size) = (self.kept(), 0);
        while !self.server.tracker.is_complete() {
            match self.server.step()? {
                Step::Row => {}
                Step::Err => return Err(self.server.error()),
                _ => continue,
            }
            kept.row()?;
            if !picker.picks(self, &mut opener, keys)? {
                continue;
            }
            let mut condition = Vec::new();
            let packet = self.server.connection.last_payload();
            opener.cells(packet, &shared.config.keys, |n, cell| {
                let (Some(name), Some(kind)) = (delete.key.get(n), kinds.get(n)) else {
                    return Ok(());
                };
                if n > 0 {
                    condition.extend_from_slice(b" AND ");
                }
                condition.extend_from_slice(name.as_bytes());
                condition.extend_from_slice(b" = ");
                let needs_key = &onionskin_plan::errors::NEEDS_KEY;
                let cell = cell.ok_or_else(|| Failure::refused(needs_key, ""))?;
                key_literal(cell, *kind, charset, &mut condition)
            })?;
            size += condition.len() + 32;
            kept.hold(size)?;
            rows.push(condition);
        }
        Ok(rows)
    }
}

impl Picker {
    /// Whether the row that was read last is meant; its tested columns come after `skipped` others.
    pub fn picks(
        &mut self,
        session: &Session,
        opener: &mut Opener,
        skipped: usize,
    ) -> Outcome<bool> {
        let arena = &mut self.arena;
        let packet = session.server.connection.last_payload();
        opener.cells(packet, &session.shared.config.keys, |n, cell| {
            if n < skipped {
                return Ok(());
            }
            arena.push(cell)
        })?;
        let picked = self.decision.holds(&Asked {
            arena: &self.arena,
            row: 0,
            running: &[],
            family: session.state.family,
            increment: session.increment(),
        });
        self.arena.pop();
        picked
    }
}
