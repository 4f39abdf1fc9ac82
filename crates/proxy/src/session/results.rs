//! Results with their cells opened, and the packets that end an answer.

use std::sync::Arc;

use onionskin_plan::ResultItem;
use onionskin_wire::messages::{EofPacket, OkPacket, SessionChange, SessionChanges};
use onionskin_wire::{Capabilities, StatusFlags, Step, WireError};

use super::Session;
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::exchange::{Done, Question};
use crate::open::{self, Opener};
use crate::row_update::matched_rows;
use crate::rows_end::RowsEnd;

impl Session {
    /// Writes the packet behind a result's definitions. It tells already whether another result
    /// follows: clients go by that where they do not read this one.
    pub fn write_columns_end(&mut self, eof: &[u8]) -> Outcome<()> {
        if !self.current.more_results {
            return self.write(eof);
        }
        let mut eof = EofPacket::decode(eof).map_err(Failure::Backend)?;
        eof.status |= StatusFlags::MORE_RESULTS;
        let mut out = Vec::new();
        eof.encode(&mut out);
        self.write(&out)
    }

    /// Writes the end of rows of the proxy's own.
    pub fn write_rows_end(&mut self, end: RowsEnd) -> Outcome<()> {
        let RowsEnd { status, warnings } = end;
        let told = of_transaction(&self.server.changes);
        let mut out = Vec::new();
        match self
            .client_capabilities
            .contains(Capabilities::DEPRECATE_EOF)
        {
            true => OkPacket {
                ends_rows: true,
                status: with_told(status, &told),
                warnings,
                session_changes: SessionChanges(&told),
                ..OkPacket::default()
            }
            .encode(&mut out, self.client_capabilities),
            false => EofPacket { status, warnings }.encode(&mut out),
        }
        self.write(&out)
    }

    /// Reads the rows of a question of the proxy's own, whose columns are these items. `each` gets
    /// a row as it came, and its cells, those of sealed columns opened.
    pub fn opened_rows(
        &mut self,
        question: Question,
        keyed: &KeyedPlan,
        items: &[ResultItem],
        mut each: impl FnMut(&[u8], Vec<Option<Vec<u8>>>) -> Outcome<()>,
    ) -> Outcome<()> {
        self.server.begin(question)?;
        let Step::ColumnCount(count) = self.server.step()? else {
            return Err(self.server.error());
        };
        let mut definitions = Vec::new();
        for _ in 0..count {
            if self.server.step()? != Step::ColumnDef {
                return Err(self.server.error());
            }
            definitions.push(self.server.payload().to_vec());
        }
        let (_, mut opener) = open::definitions(keyed, items, &definitions, &self.state, false)?;
        let shared = Arc::clone(&self.shared);
        while !self.server.tracker.is_complete() {
            match self.server.step()? {
                Step::Row => {}
                Step::Err => return Err(self.server.error()),
                _ => continue,
            }
            let packet = self.server.connection.last_payload();
            let mut cells = Vec::new();
            opener.cells(packet, &shared.config.keys, |_, cell| {
                cells.push(cell.map(<[u8]>::to_vec));
                Ok(())
            })?;
            each(packet, cells)?;
        }
        Ok(())
    }

    /// Reads a result and writes it with its protected columns opened.
    /// Without `items`, no column is. Returns what opens its rows, for a cursor; `None` if there is
    /// no result.
    pub fn open_result(
        &mut self,
        question: Question,
        keyed: &KeyedPlan,
        items: Option<&[ResultItem]>,
        binary: bool,
    ) -> Outcome<Option<Opener>> {
        self.server.begin(question)?;
        let count = match self.server.step()? {
            Step::ColumnCount(count) => count,
            Step::Err => return Err(self.server.error()),
            Step::Ok { .. } => return self.nothing_returned(),
            _ => return Err(Failure::Stale),
        };
        let mut definitions = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            match self.server.step()? {
                Step::ColumnDef => definitions.push(self.server.payload().to_vec()),
                Step::Err => return Err(self.server.error()),
                _ => return Err(Failure::Stale),
            }
        }
        let plain;
        let items = match items {
            Some(items) => items,
            None => {
                plain = vec![ResultItem::plain(); definitions.len()];
                &plain
            }
        };
        let (shown, mut opener) = open::shown(keyed, items, &mut definitions, &self.state, binary)?;
        let mut named = Vec::new();
        if self.functions.opens() {
            named.extend_from_slice(shown.client());
            opener.functions = self
                .functions
                .opener(&mut named, self.state.form)?
                .map(Box::new);
        }
        let shown = match named.is_empty() {
            true => shown.client(),
            false => &named,
        };
        open::format_context(&self.state)?;
        let mut head = Vec::new();
        onionskin_wire::PutWire::put_lenenc_int(&mut head, u64::from(count));
        let mut behind = Vec::new();
        let mut step = self.server.step()?;
        if let Step::EofAfterColumns { .. } = step {
            behind.push(self.server.payload().to_vec());
            if !self.server.tracker.is_complete() {
                step = self.server.step()?;
            }
        }
        let mut held = open::HeldRows::default();
        while step == Step::Row {
            let ctx = open::format_context(&self.state)?;
            let (payload, keys) = (self.server.payload(), &self.shared.config.keys);
            held.add(|row| opener.row(payload, keys, &ctx, row))?;
            if opener.is_proven() || held.is_full() {
                break;
            }
            step = self.server.step()?;
        }
        if step == Step::Err {
            return Err(self.server.error());
        }
        self.current.wrote = true;
        for packet in std::iter::once(&head).chain(shown) {
            self.write(packet)?;
        }
        for eof in &behind {
            self.write_columns_end(eof)?;
        }
        for row in held.rows() {
            self.write(row)?;
        }
        if let Step::EndOfRows { .. } = step {
            self.write_end(step)?;
        }
        let opener = self.open_rows(opener)?;
        self.has_found();
        Ok(Some(opener))
    }

    /// MariaDB answers `DELETE … RETURNING` without a result where the condition cannot hold.
    fn nothing_returned(&mut self) -> Outcome<Option<Opener>> {
        let payload = self.server.payload();
        let ok = OkPacket::decode(payload, self.server.capabilities).map_err(Failure::Backend)?;
        if ok.affected_rows > 0 {
            return Err(Failure::Stale);
        }
        let done = Done {
            affected_rows: 0,
            last_insert_id: ok.last_insert_id,
            warnings: ok.warnings,
            info: ok.info.to_vec(),
        };
        self.write_done(&done).map(|()| None)
    }

    /// Reads rows up to their end and writes them opened. Returns the opener, for a cursor.
    pub fn open_rows(&mut self, mut opener: Opener) -> Outcome<Opener> {
        let shared = Arc::clone(&self.shared);
        while !self.server.tracker.is_complete() {
            let step = self.server.step()?;
            match step {
                Step::Row => {
                    let ctx = open::format_context(&self.state)?;
                    let out = self.client.begin_payload();
                    let payload = self.server.connection.last_payload();
                    opener.row(payload, &shared.config.keys, &ctx, out)?;
                    self.client.end_payload().map_err(Failure::Client)?;
                }
                Step::Err => return Err(self.server.error()),
                Step::EndOfRows { .. } | Step::EofAfterColumns { .. } => self.write_end(step)?,
                _ => return Err(Failure::Backend(WireError::Malformed("not a row"))),
            }
        }
        opener.tell();
        Ok(opener)
    }

    /// Writes the end of a result: the client may not track the session, and more results of
    /// ours may follow.
    pub fn write_end(&mut self, step: Step) -> Outcome<()> {
        let kept = self.current.kept.take();
        let payload = match &kept {
            Some(kept) => kept.as_slice(),
            None => self.server.connection.last_payload(),
        };
        let more = self.current.more_results && self.server.tracker.is_complete();
        let same = self
            .client_capabilities
            .contains(Capabilities::SESSION_TRACK)
            || !self
                .server
                .capabilities
                .contains(Capabilities::SESSION_TRACK);
        let is_eof = matches!(step, Step::EofAfterColumns { .. })
            || (matches!(step, Step::EndOfRows { .. })
                && (!self
                    .server
                    .capabilities
                    .contains(Capabilities::DEPRECATE_EOF)
                    || payload.len() < 7));
        if self.diagnostics.of_earlier {
            let raised = warnings_of(payload, is_eof, self.server.capabilities)?;
            self.diagnostics.server_raised(raised);
        }
        if matches!(step, Step::EofAfterColumns { .. }) {
            let payload = payload.to_vec();
            return self.write_columns_end(&payload);
        }
        if (same || is_eof) && !more && self.diagnostics.adds_nothing() {
            return self.client.write_payload(payload).map_err(Failure::Client);
        }
        let mut out = Vec::new();
        if is_eof {
            let mut eof = EofPacket::decode(payload).map_err(Failure::Backend)?;
            if more {
                eof.status |= StatusFlags::MORE_RESULTS;
            }
            eof.warnings = self.diagnostics.sum(eof.warnings);
            eof.encode(&mut out);
        } else {
            let mut ok =
                OkPacket::decode(payload, self.server.capabilities).map_err(Failure::Backend)?;
            if more {
                ok.status |= StatusFlags::MORE_RESULTS;
            }
            // MariaDB tells nothing of an UPDATE that it sees to find no row
            let rows = matched_rows(ok.info).unwrap_or(ok.affected_rows);
            self.diagnostics.found(rows);
            self.diagnostics.inserted(ok.affected_rows == 1);
            ok.warnings = self.diagnostics.sum(ok.warnings);
            let info = self.diagnostics.info(ok.info);
            ok.info = &info;
            ok.encode(&mut out, self.client_capabilities);
        }
        self.client.write_payload(&out).map_err(Failure::Client)
    }

    /// Forwards an OK packet of the server's that was kept.
    pub(super) fn write_ok_payload(&mut self, payload: &[u8]) -> Outcome<()> {
        let ok = OkPacket::decode(payload, self.server.capabilities).map_err(Failure::Backend)?;
        let mut out = Vec::new();
        ok.encode(&mut out, self.client_capabilities);
        self.client.write_payload(&out).map_err(Failure::Client)
    }

    /// Answers the client with an OK packet of our own.
    pub fn write_done(&mut self, done: &Done) -> Outcome<()> {
        let told = of_transaction(&self.server.changes);
        let mut status = with_told(self.server.status, &told);
        status.set(StatusFlags::MORE_RESULTS, self.current.more_results);
        let warnings = self.diagnostics.sum(done.warnings);
        let info = self.diagnostics.info(&done.info);
        self.diagnostics.row_count = i64::try_from(done.affected_rows).ok();
        let ok = OkPacket {
            affected_rows: done.affected_rows,
            last_insert_id: done.last_insert_id,
            warnings,
            info: &info,
            status,
            session_changes: SessionChanges(&told),
            ..OkPacket::default()
        };
        let mut out = Vec::new();
        ok.encode(&mut out, self.client_capabilities);
        self.client.write_payload(&out).map_err(Failure::Client)
    }
}

/// Of what the answers to statements of the proxy's own have told, what a client may have asked to
/// be told of its transaction: the last change of each kind, as the server sends it.
fn of_transaction(changes: &[u8]) -> Vec<u8> {
    let mut last = [None; 3];
    for change in SessionChanges(changes).flatten() {
        let kind = match change {
            SessionChange::Gtids { .. } => 0,
            SessionChange::TransactionCharacteristics(_) => 1,
            SessionChange::TransactionState(_) => 2,
            _ => continue,
        };
        last[kind] = Some(change);
    }
    let mut told = Vec::new();
    for change in last.iter().flatten() {
        change.encode(&mut told);
    }
    told
}

/// The status of an answer of the proxy's own with these changes.
fn with_told(mut status: StatusFlags, told: &[u8]) -> StatusFlags {
    status.set(StatusFlags::SESSION_STATE_CHANGED, !told.is_empty());
    status
}

/// How many warnings the end of an answer counts.
fn warnings_of(payload: &[u8], is_eof: bool, capabilities: Capabilities) -> Outcome<u16> {
    let warnings = match is_eof {
        true => EofPacket::decode(payload).map(|eof| eof.warnings),
        false => OkPacket::decode(payload, capabilities).map(|ok| ok.warnings),
    };
    warnings.map_err(Failure::Backend)
}
