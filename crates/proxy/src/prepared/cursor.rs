//! Cursors over rows that the proxy holds.
//!
//! A client may ask for a cursor when it executes a statement: the answer has no rows then, only
//! their definitions, and the client fetches the rows a few at a time. Where the server answers
//! with the rows that the client gets, the server has the cursor. Where the proxy or the engine
//! finishes a statement, there is none, and MariaDB's C library, unlike others, cannot read an
//! answer with rows that it did not expect. So the answer is held back, and its rows are kept for
//! the client.
//!
//! The servers hold the rows of a cursor in the same way: they are those of the moment at which
//! the statement ran, whatever becomes of the table.

use onionskin_plan::{Action, errors};
use onionskin_wire::messages::ColumnDefinition;
use onionskin_wire::packets::{Packets, Released};
use onionskin_wire::{ColumnFlags, ResponseTracker, StatusFlags, Step, WireError};

use super::Cursor;
use crate::error::{Failure, Outcome};
use crate::finish::{Kept, MOST_KEPT};
use crate::rows_end::RowsEnd;
use crate::session::Session;

impl Session {
    /// Whether the rows of a statement may come from elsewhere than from the server's cursor.
    pub(super) fn may_hold_rows(&self, id: u32) -> bool {
        let is_query = |action: &Action| !matches!(action, Action::Show { .. });
        let open = self.statements.open.get(&id);
        self.functions.opens() || open.is_some_and(|s| is_query(&s.keyed.plan.action))
    }

    /// Does work that answers an execution for which a cursor was asked, and gives the client a
    /// cursor if the server does not.
    pub(super) fn with_cursor(
        &mut self,
        id: u32,
        work: impl FnOnce(&mut Self) -> Outcome<()>,
    ) -> Outcome<()> {
        self.client.hold(MOST_KEPT);
        let done = work(self);
        let released = self.client.release();
        done?;
        match released {
            Released::Held(answer) => self.open_cursor(id, answer),
            Released::TooLong => Err(Failure::refused(&errors::MEMORY, "")),
            Released::Sent => Ok(()),
        }
    }

    /// Writes an answer that was held back. If it has rows, they are kept for a cursor.
    fn open_cursor(&mut self, id: u32, mut answer: Vec<u8>) -> Outcome<()> {
        let mut tracker = ResponseTracker::new(self.client_capabilities);
        tracker.begin_cursor();
        let (mut rows, mut end) = (0..0, None);
        let mut written = Vec::new();
        let mut packets = Packets::of(&answer);
        let mut at = 0;
        while let Some(payload) = packets.next() {
            match tracker.step(&payload).map_err(Failure::Client)? {
                // the end of the rows stands in its place
                Step::EofAfterColumns { status } if !has_cursor(status) => {}
                Step::Row if rows.is_empty() => rows = at..packets.place(),
                Step::Row => rows.end = packets.place(),
                Step::EndOfRows { status } if !has_cursor(status) => end = Some(payload),
                Step::Err => written = vec![payload],
                Step::ColumnDef => written.push(self.definition_of_copy(&payload)?.into()),
                _ => written.push(payload),
            }
            at = packets.place();
        }
        let mut kept = Kept::new(&self.shared.pool, &self.shared.config.finish);
        kept.hold(rows.len())?;
        for payload in &written {
            self.write(payload)?;
        }
        let Some(end) = end else { return Ok(()) };
        let mut end = RowsEnd::decode(&end, self.client_capabilities).map_err(Failure::Client)?;
        end.status |= StatusFlags::CURSOR_EXISTS;
        self.write_rows_end(end)?;
        answer.truncate(rows.end);
        let rows = answer.split_off(rows.start);
        let cursor = Cursor {
            rows,
            fetched: 0,
            _kept: kept,
        };
        self.statements.cursors.insert(id, cursor);
        Ok(())
    }

    /// A definition as the servers send it with a cursor: that of a copy, which has no keys.
    fn definition_of_copy(&self, payload: &[u8]) -> Outcome<Vec<u8>> {
        let mut definition =
            ColumnDefinition::decode(payload, self.server.form).map_err(Failure::Backend)?;
        definition.flags -= ColumnFlags::PRI_KEY
            | ColumnFlags::UNIQUE_KEY
            | ColumnFlags::MULTIPLE_KEY
            | ColumnFlags::PART_KEY
            | ColumnFlags::AUTO_INCREMENT;
        let mut out = Vec::new();
        definition.encode(&mut out);
        Ok(out)
    }

    /// Answers COM_STMT_FETCH from rows that are held. `false`: the statement has none.
    pub(super) fn fetch_held(&mut self, id: u32, command: &[u8]) -> Outcome<bool> {
        let Some(mut cursor) = self.statements.cursors.remove(&id) else {
            return Ok(false);
        };
        let malformed = || Failure::Client(WireError::Malformed("COM_STMT_FETCH"));
        let count = command.get(5..9).ok_or_else(malformed)?;
        let count = count
            .iter()
            .rev()
            .fold(0, |n, &byte| n << 8 | usize::from(byte));
        let mut packets = Packets::of(&cursor.rows[cursor.fetched..]);
        let mut fetched = 0;
        for payload in packets.by_ref().take(count) {
            self.client
                .write_payload(&payload)
                .map_err(Failure::Client)?;
            fetched += 1;
        }
        cursor.fetched += packets.place();
        // of the statement, not of this
        let mut status = self.server.status
            - StatusFlags::SESSION_STATE_CHANGED
            - StatusFlags::NO_GOOD_INDEX_USED
            - StatusFlags::NO_INDEX_USED
            - StatusFlags::QUERY_WAS_SLOW;
        // as the servers do: that there are no more is known when one more was looked for
        if fetched < count {
            status |= StatusFlags::LAST_ROW_SENT;
        } else {
            status |= StatusFlags::CURSOR_EXISTS;
            self.statements.cursors.insert(id, cursor);
        }
        self.write_rows_end(RowsEnd {
            status,
            warnings: 0,
        })
        .map(|()| true)
    }

    /// The servers' error for a fetch without a cursor.
    pub(super) fn no_cursor(&self, id: u32) -> Failure {
        Failure::Server {
            code: 1421,
            state: *b"HY000",
            message: format!("The statement ({id}) has no open cursor.").into_bytes(),
        }
    }
}

fn has_cursor(status: StatusFlags) -> bool {
    status.contains(StatusFlags::CURSOR_EXISTS)
}
