//! Several tables, read by one statement.
//!
//! In a transaction below REPEATABLE READ each statement has a snapshot of its own: two reads could
//! see two states of the tables, which the client's statement would not. So the reads become the
//! parts of one UNION ALL. A part fills its own columns, behind its number; the others are NULL.
//! The columns of a union have no origin. So each read is asked for without rows before, and its
//! definitions are checked; the transaction keeps the tables as they are until its end.

use std::sync::Arc;

use onionskin_plan::{Scratch, ScratchRead, errors};
use onionskin_wire::rows::TextRow;
use onionskin_wire::{Step, WireError};

use super::as_a_parameter_fails;
use super::engine::{Engine, ours};
use super::tables::{self, Loader};
use crate::bind::Values;
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::open::Opener;
use crate::session::Session;

impl Session {
    /// Reads all tables of a query and loads them.
    pub(super) fn read_united(
        &mut self,
        engine: &mut Engine,
        keyed: &KeyedPlan,
        scratch: &Scratch,
        values: Values,
    ) -> Outcome<()> {
        if self.server.select_limit.is_some() {
            let about = "several tables below REPEATABLE READ, with sql_select_limit";
            return Err(Failure::refused(&errors::SCRATCH_FUNCTION, about));
        }
        let mut asked = Vec::new();
        for read in &scratch.reads {
            let text = self.read_text(keyed, read, values, Some(0))?;
            let definitions = self.server.put_query(&text)?;
            let columns = match tables::is_checked(read) {
                true => Some(self.server.put_select(tables::question(read).as_bytes())?),
                false => None,
            };
            asked.push((definitions, columns));
        }
        let text = self.united_text(keyed, scratch, values)?;
        let united = self.server.put_read(&text)?;
        self.server.flush()?;
        let mut openers = Vec::new();
        for (read, (definitions, columns)) in scratch.reads.iter().zip(asked) {
            self.server.begin(definitions)?;
            let mut definitions = Vec::new();
            while !self.server.tracker.is_complete() {
                match self.server.step()? {
                    Step::Err => return Err(as_a_parameter_fails(self.server.error(), values)),
                    Step::ColumnDef => definitions.push(self.server.payload().to_vec()),
                    _ => {}
                }
            }
            if let Some(columns) = columns {
                let columns = self.server.read_rows(columns)?;
                if !tables::are_columns(read, &columns) {
                    return Err(Failure::Stale);
                }
            }
            openers.push(self.opener(keyed, read, &definitions)?);
        }
        self.server.begin(united)?;
        let loaded = self.load_parts(engine, scratch, &mut openers, values)?;
        for (read, count) in scratch.reads.iter().zip(loaded) {
            if let Some(sql) = tables::uncounted(read, self.state.family, count, values.sql) {
                engine.put(sql.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Brings the rows of a union to the engine. Returns how many each part has.
    fn load_parts(
        &mut self,
        engine: &mut Engine,
        scratch: &Scratch,
        openers: &mut [Opener],
        values: Values,
    ) -> Outcome<Vec<u64>> {
        let shared = Arc::clone(&self.shared);
        let family = self.state.family;
        let (rows, memory) = {
            let bounds = self.bounds()?;
            (bounds.rows, bounds.memory)
        };
        let reads = scratch.reads.iter();
        let mut loaders: Vec<Loader> = reads.map(|read| Loader::new(read, family)).collect();
        let mut loaded = vec![0; loaders.len()];
        let (mut count, mut bytes) = (0, 0);
        while !self.server.tracker.is_complete() {
            match self.server.step()? {
                Step::Err => return Err(as_a_parameter_fails(self.server.error(), values)),
                Step::Row => {}
                _ => continue,
            }
            let packet = self.server.connection.last_payload();
            let (part, cells) = part_of(packet, &scratch.reads)?;
            let (loader, opener) = (&mut loaders[part], &mut openers[part]);
            loader.begin_row();
            opener.cells(cells, &shared.config.keys, |n, cell| loader.cell(n, cell))?;
            loaded[part] += 1;
            count += 1;
            bytes += std::mem::take(&mut loader.bytes);
            if count > rows || bytes > memory {
                let table = &scratch.reads[part].table;
                let about = format!("{}.{}", table.database, table.name);
                return Err(Failure::refused(&errors::SCRATCH_BOUND, about));
            }
            if loader.end_row() {
                engine.put(&std::mem::take(&mut loader.sql))?;
                engine.server.flush().map_err(ours)?;
            }
        }
        if self.server.warnings_at_end()? > 0 {
            let about = "a condition with a warning";
            return Err(Failure::refused(&errors::VALUE, about));
        }
        for loader in loaders.iter().filter(|loader| !loader.sql.is_empty()) {
            engine.put(&loader.sql)?;
        }
        Ok(loaded)
    }

    fn united_text(
        &mut self,
        keyed: &KeyedPlan,
        scratch: &Scratch,
        values: Values,
    ) -> Outcome<Vec<u8>> {
        let limit = self.bounds()?.rows.saturating_add(1);
        let mut sql = Vec::new();
        for (n, read) in scratch.reads.iter().enumerate() {
            let begin = if n == 0 { "WITH " } else { ", " };
            let columns: Vec<String> = (0..read.fetch.len()).map(|c| format!("c{c}")).collect();
            let head = format!("{begin}onionskin_{n} ({}) AS (", columns.join(", "));
            sql.extend_from_slice(head.as_bytes());
            sql.extend_from_slice(&self.read_text(keyed, read, values, None)?);
            sql.push(b')');
        }
        let widths: Vec<usize> = scratch.reads.iter().map(|read| read.fetch.len()).collect();
        for n in 0..widths.len() {
            let begin = if n == 0 {
                " SELECT"
            } else {
                " UNION ALL SELECT"
            };
            let mut items = vec![n.to_string()];
            for (other, &width) in widths.iter().enumerate() {
                items.extend((0..width).map(|c| match other == n {
                    true => format!("c{c}"),
                    false => "NULL".to_owned(),
                }));
            }
            let part = format!("{begin} {} FROM onionskin_{n}", items.join(", "));
            sql.extend_from_slice(part.as_bytes());
        }
        sql.extend_from_slice(format!(" LIMIT {limit}").as_bytes());
        Ok(sql)
    }
}

/// Which read a row of a union is of, and that read's cells, with those of later ones behind them.
fn part_of<'p>(packet: &'p [u8], reads: &[ScratchRead]) -> Outcome<(usize, &'p [u8])> {
    let unclear = || Failure::Backend(WireError::Malformed("a row of a union"));
    let mut row = TextRow::new(packet);
    let number = row.cell().map_err(Failure::Backend)?;
    let number = number.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    let part: usize = number
        .filter(|part| *part < reads.len())
        .ok_or_else(unclear)?;
    let before = reads[..part].iter().map(|read| read.fetch.len()).sum();
    row.raw_cells(before).map_err(Failure::Backend)?;
    Ok((part, row.raw_rest()))
}
