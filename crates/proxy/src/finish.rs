//! Tier 2 for results: the server has narrowed the rows, the proxy opens, aggregates, sorts and
//! cuts them.
//!
//! Aggregates are computed as rows pass by. Sorting and distinction keep rows in one arena; past
//! [`BOUND`] bytes the statement is an error, never a slow death.

use std::collections::HashSet;
use std::sync::Arc;

use onionskin_plan::{Aggregate, Finish, Limit, Output, ResultItem, Source, errors};
use onionskin_value::{SqlType, Sum, SumError, WireType, cmp, weight};
use onionskin_wire::messages::{ColumnDefinition, Command};
use onionskin_wire::rows::{BinaryRowWriter, begin_text_cell, end_text_cell, put_text_cell};
use onionskin_wire::{ColumnFlags, ColumnType, PutWire, Step, WireError};

use crate::bind::Values;
use crate::catalog::Prepared;
use crate::error::{Failure, Outcome};
use crate::open::{self, Opener};
use crate::session::{Planned, Session};

/// Bytes that the rows of one statement may take in the proxy.
const BOUND: usize = 64 << 20;

/// Rows that are kept: their cells lie one behind the other in one buffer.
#[derive(Default)]
struct Arena {
    bytes: Vec<u8>,
    /// Where each cell begins in `bytes` and how long it is; [`NULL`] in the place of a length.
    cells: Vec<(u32, u32)>,
}

const NULL: u32 = u32::MAX;

impl Arena {
    fn push(&mut self, cell: Option<&[u8]>) -> Outcome<()> {
        let size = self.bytes.len() + cell.map_or(0, <[u8]>::len) + (self.cells.len() + 1) * 8;
        if size > BOUND {
            return Err(Failure::refused(&errors::MEMORY, ""));
        }
        // the bound keeps both numbers far below the mark
        let start = self.bytes.len() as u32;
        match cell {
            None => self.cells.push((start, NULL)),
            Some(bytes) => {
                self.bytes.extend_from_slice(bytes);
                self.cells.push((start, bytes.len() as u32));
            }
        }
        Ok(())
    }

    fn cell(&self, at: usize) -> Option<&[u8]> {
        let (start, length) = *self.cells.get(at)?;
        if length == NULL {
            return None;
        }
        self.bytes
            .get(start as usize..start as usize + length as usize)
    }
}

/// An aggregate on its way.
struct Running {
    function: Aggregate,
    fetch: Option<usize>,
    count: u64,
    sum: Option<Sum>,
    best: Option<Vec<u8>>,
}

impl Session {
    /// Runs and finishes a text statement.
    pub fn finish_query(&mut self, planned: &Planned, finish: &Finish) -> Outcome<()> {
        self.send_text(planned, &finish.text)?;
        self.finish_rows(&planned.prepared, finish, planned.values(), false)
    }

    /// Reads the rows of a finish plan and writes what becomes of them.
    pub fn finish_rows(
        &mut self,
        prepared: &Prepared,
        finish: &Finish,
        values: Values,
        binary: bool,
    ) -> Outcome<()> {
        let limit = limits(finish.limit, &values, self)?;
        self.server.begin(if binary {
            Command::StmtExecute
        } else {
            Command::Query
        })?;
        let count = match self.server.step()? {
            Step::ColumnCount(count) => count,
            Step::Err => return Err(self.server.error()),
            _ => return Err(Failure::Stale),
        };
        let mut definitions = Vec::new();
        for _ in 0..count {
            if self.server.step()? != Step::ColumnDef {
                return Err(self.server.error());
            }
            definitions.push(self.server.payload().to_vec());
        }
        let (shown, opener) =
            open::definitions(prepared, &finish.fetch, &definitions, &self.state, binary)?;
        let heads = self.output_definitions(prepared, finish, &shown)?;
        open::format_context(&self.state)?;
        if finish.aggregates() {
            self.aggregate(prepared, finish, opener, &heads, limit, binary)
        } else {
            if finish.distinct {
                check_distinct(&finish.fetch, &definitions)?;
            }
            self.sorted(prepared, finish, opener, &heads, limit, binary)
        }
    }

    /// The column definitions of the finished result.
    pub fn output_definitions(
        &self,
        prepared: &Prepared,
        finish: &Finish,
        shown: &[Vec<u8>],
    ) -> Outcome<Vec<Vec<u8>>> {
        finish
            .output
            .iter()
            .map(|output| match output {
                Output::Cell { fetch } => shown
                    .get(*fetch)
                    .cloned()
                    .ok_or_else(|| Failure::refused(&errors::INTERNAL, "a fetched column")),
                Output::Aggregate {
                    function,
                    fetch,
                    name,
                } => self.aggregate_definition(prepared, finish, *function, *fetch, name),
            })
            .collect()
    }

    fn aggregate_definition(
        &self,
        prepared: &Prepared,
        finish: &Finish,
        function: Aggregate,
        fetch: Option<usize>,
        name: &str,
    ) -> Outcome<Vec<u8>> {
        let family = self.state.family;
        let ty = fetch
            .map(|f| fetched_type(prepared, &finish.fetch, f))
            .transpose()?;
        let mut flags = ColumnFlags::BINARY;
        let wire = match (function, ty) {
            (Aggregate::Sum, Some(ty)) => Sum::sum_wire(ty, family),
            (Aggregate::Avg, Some(ty)) => {
                Sum::avg_wire(ty, family, self.state.div_precision_increment)
            }
            (Aggregate::Min | Aggregate::Max, Some(ty)) => {
                // a text is binary only where its collation is
                flags = ColumnFlags::empty();
                ty.wire_of_extremum(family, self.state.results_collation)
            }
            _ => {
                flags |= ColumnFlags::NOT_NULL;
                WireType {
                    column_type: ColumnType::LONGLONG.0,
                    charset: 63,
                    length: 21,
                    flags: 0,
                    decimals: 0,
                }
            }
        };
        flags |= ColumnFlags::from_bits_retain(wire.flags);
        let definition = ColumnDefinition {
            catalog: b"def".as_slice().into(),
            schema: b"".as_slice().into(),
            table: b"".as_slice().into(),
            org_table: b"".as_slice().into(),
            name: name.as_bytes().into(),
            org_name: b"".as_slice().into(),
            charset: wire.charset,
            length: wire.length,
            column_type: ColumnType(wire.column_type),
            flags,
            decimals: wire.decimals,
            default: onionskin_wire::messages::ColumnDefault::Absent,
        };
        let mut out = Vec::new();
        definition.encode(&mut out);
        Ok(out)
    }

    fn write_heads(&mut self, heads: &[Vec<u8>], eof: Option<&Vec<u8>>) -> Outcome<()> {
        let mut count = Vec::new();
        count.put_lenenc_int(heads.len() as u64);
        self.write(&count)?;
        for head in heads {
            self.write(head)?;
        }
        if let Some(eof) = eof {
            self.write(eof)?;
        }
        Ok(())
    }

    /// Reads all rows; `each` gets the cells of every row one after the other. Returns the
    /// EOF packet behind the definitions, if there is one, and leaves the end packet as the
    /// connection's last payload.
    fn read_cells(
        &mut self,
        opener: &mut Opener,
        mut each: impl FnMut(usize, Option<&[u8]>) -> Outcome<()>,
    ) -> Outcome<(Option<Vec<u8>>, Vec<u8>, Step)> {
        let shared = Arc::clone(&self.shared);
        let mut eof = None;
        loop {
            let step = self.server.step()?;
            match step {
                Step::Row => {
                    opener.cells(
                        self.server.connection.last_payload(),
                        &shared.config.keys,
                        &mut each,
                    )?;
                }
                Step::EofAfterColumns { .. } => eof = Some(self.server.payload().to_vec()),
                Step::EndOfRows { .. } => return Ok((eof, self.server.payload().to_vec(), step)),
                Step::Err => return Err(self.server.error()),
                _ => return Err(Failure::Backend(WireError::Malformed("not a row"))),
            }
        }
    }

    fn aggregate(
        &mut self,
        prepared: &Prepared,
        finish: &Finish,
        mut opener: Opener,
        heads: &[Vec<u8>],
        limit: (u64, u64),
        binary: bool,
    ) -> Outcome<()> {
        let mut running = Vec::new();
        for output in &finish.output {
            let Output::Aggregate {
                function, fetch, ..
            } = output
            else {
                return Err(Failure::refused(&errors::INTERNAL, "an aggregate"));
            };
            let ty = fetch
                .map(|f| fetched_type(prepared, &finish.fetch, f))
                .transpose()?;
            let sum = match (function, ty) {
                (Aggregate::Sum | Aggregate::Avg, Some(ty)) => {
                    Some(Sum::new(*ty).map_err(|e| sum_failure(&e))?)
                }
                _ => None,
            };
            running.push(Running {
                function: *function,
                fetch: *fetch,
                count: 0,
                sum,
                best: None,
            });
        }
        let types: Vec<Option<SqlType>> = (0..finish.fetch.len())
            .map(|f| fetched_type(prepared, &finish.fetch, f).ok().copied())
            .collect();
        // with `COUNT(*)` alone among the fetched columns the first one counts the rows
        let (eof, _, step) = self.read_cells(&mut opener, |column, cell| {
            for aggregate in &mut running {
                match aggregate.fetch {
                    None if column == 0 => aggregate.count += 1,
                    Some(fetch) if fetch == column => {
                        let Some(payload) = cell else { continue };
                        aggregate.count += 1;
                        if let Some(sum) = &mut aggregate.sum {
                            sum.add(payload).map_err(|e| sum_failure(&e))?;
                        }
                        if matches!(aggregate.function, Aggregate::Min | Aggregate::Max) {
                            let Some(ty) = &types[fetch] else { continue };
                            let better = match &aggregate.best {
                                None => true,
                                Some(best) => {
                                    let order = cmp(ty, payload, best).map_err(|e| {
                                        Failure::refused(&errors::VALUE, e.to_string())
                                    })?;
                                    if aggregate.function == Aggregate::Min {
                                        order.is_lt()
                                    } else {
                                        order.is_gt()
                                    }
                                }
                            };
                            if better {
                                aggregate.best = Some(payload.to_vec());
                            }
                        }
                    }
                    _ => {}
                }
            }
            Ok(())
        })?;
        let mut row = Vec::new();
        self.aggregate_row(prepared, finish, &running, binary, &mut row)?;
        self.write_heads(heads, eof.as_ref())?;
        let shown = limit.0 == 0 && limit.1 > 0;
        if shown {
            self.write(&row)?;
        }
        self.diagnostics.found_rows = Some(shown.into());
        self.write_end(step)
    }

    fn aggregate_row(
        &self,
        prepared: &Prepared,
        finish: &Finish,
        running: &[Running],
        binary: bool,
        out: &mut Vec<u8>,
    ) -> Outcome<()> {
        let ctx = open::format_context(&self.state)?;
        let mut writer = binary.then(|| BinaryRowWriter::begin(out, running.len()));
        let increment = self.state.div_precision_increment;
        for aggregate in running {
            let mut text = Vec::new();
            let mut ready = None;
            let present = match (aggregate.function, &aggregate.sum) {
                (Aggregate::Sum, Some(sum)) => {
                    ready = sum.sum_f64();
                    sum.finish_sum(&mut text).map_err(|e| sum_failure(&e))?
                }
                (Aggregate::Avg, Some(sum)) => {
                    ready = sum.avg_f64();
                    sum.finish_avg(self.state.family, increment, &mut text)
                        .map_err(|e| sum_failure(&e))?
                }
                (Aggregate::Min | Aggregate::Max, _) => match (&aggregate.best, aggregate.fetch) {
                    (Some(best), Some(fetch)) => {
                        let index = finish.fetch[fetch].open.map_or(0, |(i, _)| i);
                        let used = &prepared.plan.columns[index];
                        open::format_extremum(used, best, &ctx, &mut text, binary)?;
                        true
                    }
                    _ => false,
                },
                _ => {
                    text.extend_from_slice(aggregate.count.to_string().as_bytes());
                    true
                }
            };
            let Some(writer) = &mut writer else {
                put_text_cell(out, present.then_some(&text));
                continue;
            };
            if !present {
                writer.null(out).map_err(Failure::Backend)?;
                continue;
            }
            writer.start_cell().map_err(Failure::Backend)?;
            match aggregate.function {
                Aggregate::Min | Aggregate::Max => out.extend_from_slice(&text),
                Aggregate::Count => out.extend_from_slice(&aggregate.count.to_le_bytes()),
                // a DOUBLE is eight bytes, a DECIMAL its text
                _ => match ready {
                    Some(value) => out.extend_from_slice(&value.to_le_bytes()),
                    None => out.put_lenenc_bytes(&text),
                },
            }
        }
        if let Some(writer) = writer {
            writer.finish().map_err(Failure::Backend)?;
        }
        Ok(())
    }

    fn sorted(
        &mut self,
        prepared: &Prepared,
        finish: &Finish,
        mut opener: Opener,
        heads: &[Vec<u8>],
        limit: (u64, u64),
        binary: bool,
    ) -> Outcome<()> {
        let width = finish.fetch.len();
        let mut arena = Arena::default();
        let (eof, _, step) = self.read_cells(&mut opener, |_, cell| arena.push(cell))?;
        let types: Vec<Option<SqlType>> = (0..width)
            .map(|f| fetched_type(prepared, &finish.fetch, f).ok().copied())
            .collect();
        let rows = arena.cells.len().checked_div(width).unwrap_or(0);
        let mut order: Vec<u32> = (0..u32::try_from(rows).unwrap_or(u32::MAX)).collect();
        if finish.distinct {
            distinct(&arena, &mut order, width, &types)?;
        }
        let mut failed = None;
        order.sort_by(|&a, &b| {
            for key in &finish.sort {
                let Some(ty) = &types[key.fetch] else {
                    continue;
                };
                let cell = |row: u32| arena.cell(row as usize * width + key.fetch);
                let ordering = match (cell(a), cell(b)) {
                    (None, None) => std::cmp::Ordering::Equal,
                    (None, Some(_)) => std::cmp::Ordering::Less,
                    (Some(_), None) => std::cmp::Ordering::Greater,
                    (Some(x), Some(y)) => match cmp(ty, x, y) {
                        Ok(ordering) => ordering,
                        Err(e) => {
                            failed.get_or_insert(e);
                            std::cmp::Ordering::Equal
                        }
                    },
                };
                let ordering = if key.descending {
                    ordering.reverse()
                } else {
                    ordering
                };
                if ordering.is_ne() {
                    return ordering;
                }
            }
            std::cmp::Ordering::Equal
        });
        if let Some(e) = failed {
            return Err(Failure::refused(&errors::VALUE, e.to_string()));
        }
        self.write_heads(heads, eof.as_ref())?;
        let (offset, count) = limit;
        let skip = usize::try_from(offset).unwrap_or(usize::MAX);
        let take = usize::try_from(count).unwrap_or(usize::MAX);
        self.diagnostics.found_rows = Some(order.len().saturating_sub(skip).min(take) as u64);
        for row in order.into_iter().skip(skip).take(take) {
            let ctx = open::format_context(&self.state)?;
            let out = self.client.begin_payload();
            let base = row as usize * width;
            let mut writer = binary.then(|| BinaryRowWriter::begin(out, finish.output.len()));
            for output in &finish.output {
                let Output::Cell { fetch } = output else {
                    continue;
                };
                let cell = arena.cell(base + fetch);
                let open = finish.fetch[*fetch].open;
                match (&mut writer, cell, open) {
                    (None, None, _) => put_text_cell(out, None),
                    (None, Some(cell), None) => put_text_cell(out, Some(cell)),
                    (None, Some(cell), Some((index, _))) => {
                        let start = begin_text_cell(out);
                        open::format(&prepared.plan.columns[index], cell, &ctx, out, false)?;
                        end_text_cell(out, start);
                    }
                    (Some(writer), None, _) => writer.null(out).map_err(Failure::Backend)?,
                    (Some(writer), Some(cell), None) => {
                        writer.raw(out, Some(cell)).map_err(Failure::Backend)?;
                    }
                    (Some(writer), Some(cell), Some((index, _))) => {
                        writer.start_cell().map_err(Failure::Backend)?;
                        open::format(&prepared.plan.columns[index], cell, &ctx, out, true)?;
                    }
                }
            }
            if let Some(writer) = writer {
                writer.finish().map_err(Failure::Backend)?;
            }
            self.client.end_payload().map_err(Failure::Client)?;
        }
        self.write_end(step)
    }
}

/// The type of a fetched protected column.
fn fetched_type<'p>(
    prepared: &'p Prepared,
    fetch: &[ResultItem],
    at: usize,
) -> Outcome<&'p SqlType> {
    fetch
        .get(at)
        .and_then(|item| item.open)
        .and_then(|(index, _)| prepared.plan.columns.get(index))
        .and_then(|used| used.column().sql_type.as_ref())
        .ok_or_else(|| Failure::refused(&errors::INTERNAL, "a fetched column's type"))
}

fn sum_failure(error: &SumError) -> Failure {
    Failure::refused(&errors::VALUE, error.to_string())
}

/// Distinction compares plain cells as bytes, which is right for numbers and binary strings only.
fn check_distinct(fetch: &[ResultItem], definitions: &[Vec<u8>]) -> Outcome<()> {
    for (item, packet) in fetch.iter().zip(definitions) {
        let definition = ColumnDefinition::decode(packet).map_err(Failure::Backend)?;
        if item.open.is_none()
            && definition.column_type.is_length_encoded()
            && definition.charset != 63
        {
            return Err(Failure::refused(
                &errors::GROUPING,
                "DISTINCT with a string column",
            ));
        }
    }
    Ok(())
}

/// Keeps the first of rows that are equal to SQL.
fn distinct(
    arena: &Arena,
    order: &mut Vec<u32>,
    width: usize,
    types: &[Option<SqlType>],
) -> Outcome<()> {
    let mut seen: HashSet<Vec<u8>, ahash::RandomState> = HashSet::default();
    let mut failed = None;
    let mut used = arena.bytes.len();
    order.retain(|&row| {
        let mut key = Vec::new();
        for (column, ty) in types.iter().enumerate() {
            match arena.cell(row as usize * width + column) {
                None => key.push(0),
                Some(cell) => {
                    key.push(1);
                    let at = key.len();
                    key.extend_from_slice(&[0; 8]);
                    match ty {
                        Some(ty) => {
                            if let Err(e) = weight(ty, cell, &mut key) {
                                failed.get_or_insert(e);
                            }
                        }
                        None => key.extend_from_slice(cell),
                    }
                    let length = (key.len() - at - 8) as u64;
                    key[at..at + 8].copy_from_slice(&length.to_le_bytes());
                }
            }
        }
        used += key.len();
        used <= 2 * BOUND && seen.insert(key)
    });
    if used > 2 * BOUND {
        return Err(Failure::refused(&errors::MEMORY, ""));
    }
    match failed {
        Some(e) => Err(Failure::refused(&errors::VALUE, e.to_string())),
        None => Ok(()),
    }
}

/// Rows to skip and rows to return.
fn limits(limit: Option<Limit>, values: &Values, session: &Session) -> Outcome<(u64, u64)> {
    let Some(limit) = limit else {
        return Ok((0, u64::MAX));
    };
    let number = |source: Source| -> Outcome<u64> {
        let mut scratch = Vec::new();
        match source {
            Source::Literal {
                index,
                negative: false,
            } => match values.input(index, false, &session.state, &mut scratch, "LIMIT")? {
                onionskin_value::Input::Integer {
                    negative: false,
                    magnitude,
                } => Ok(magnitude),
                _ => Err(Failure::refused(&errors::NOT_UNDERSTOOD, "LIMIT")),
            },
            _ => Err(Failure::refused(&errors::NOT_UNDERSTOOD, "LIMIT")),
        }
    };
    Ok((limit.offset.map_or(Ok(0), number)?, number(limit.count)?))
}
