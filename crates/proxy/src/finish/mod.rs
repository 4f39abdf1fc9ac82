//! Tier 2 for results: the server has narrowed the rows, the proxy opens them, decides which count,
//! gathers, sorts and cuts them.
//!
//! Rows pass through one by one: `decide.rs` drops those that only looked like matches, `groups.rs`
//! adds what is left to its group. Rows that need neither sorting nor comparing with each other
//! go on to the client at once; others are kept in one arena (`arena.rs`). What it takes, alone
//! and beside all others, is bounded (`kept.rs`): beyond, the statement is an error, never a slow
//! death.

mod arena;
mod decide;
mod definitions;
mod groups;
mod kept;
mod limits;
mod sorting;

use onionskin_plan::{Action, Described, Finish, Groups, Output, errors};
use onionskin_value::{Family, SqlType};
use onionskin_wire::rows::{BinaryRowWriter, begin_text_cell, end_text_cell, put_text_cell};
use onionskin_wire::{PutWire, Step, WireError};

use self::arena::distinct;
use self::definitions::{check_distinct, fetched_type, shown_cell, zeros_kept};
use self::groups::{Computed, Group, Grouping};
use self::limits::limits;
use self::sorting::{cut, sort};
use crate::bind::Values;
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::exchange::Question;
use crate::open::{self, Opener};
use crate::session::{Execution, Session};

pub(crate) use self::arena::Arena;
pub(crate) use self::decide::{Asked, Binding, Decision};
pub(crate) use self::kept::{Kept, MOST_KEPT, Pool};

/// Whether an error says that a full-text search cannot be done: there is no index (1191, 1214), or
/// its result is too large (1030).
pub(crate) fn lacks_index(code: u16) -> bool {
    matches!(code, 1030 | 1191 | 1214)
}

/// What a finishing statement has at hand while its rows come.
struct Work<'w> {
    keyed: &'w KeyedPlan,
    finish: &'w Finish,
    /// The types of the fetched columns that open.
    types: Vec<Option<SqlType>>,
    heads: Vec<Vec<u8>>,
    limit: (u64, u64),
    binary: bool,
}

/// What the server sends next.
enum Next {
    /// A row, now the arena's last.
    Row,
    /// The packet behind the definitions.
    Definitions(Vec<u8>),
    End(Step),
}

impl Session {
    /// Does work for which the server returns all rows, whatever `sql_select_limit` says. The proxy
    /// cuts the rows after it has finished them.
    pub fn with_all_rows(&mut self, work: impl FnOnce(&mut Self) -> Outcome<()>) -> Outcome<()> {
        let Some(limit) = self.server.select_limit.clone() else {
            return work(self);
        };
        self.server.set_select_limit(&u64::MAX.to_string())?;
        self.after_command()?;
        self.server.select_limit = None;
        self.lifted_limit = limit.parse().ok();
        let done = work(self);
        self.lifted_limit = None;
        if done.as_ref().is_err_and(Failure::is_fatal) {
            return done;
        }
        // the client has its answer: with another limit than it knows of the session cannot go on
        let lost = |_| Failure::Client(WireError::Closed);
        self.server.settle().map_err(lost)?;
        // what the client may ask about its statement, which is not the server's last one any more
        match &done {
            Ok(()) => {
                let count = self.server.warnings_at_end().map_err(lost)?;
                if count > 0 {
                    self.keep_warnings(count).map_err(lost)?;
                }
                self.diagnostics.row_count = Some(-1);
            }
            Err(_) => self.current.interfered = true,
        }
        self.server.set_select_limit(&limit).map_err(lost)?;
        self.after_command()?;
        self.server.select_limit = Some(limit);
        done
    }

    /// Runs and finishes a query, by full-text indexes where they can narrow its rows.
    pub fn finish_query(&mut self, execution: &Execution, finish: &Finish) -> Outcome<()> {
        let (keyed, values) = (execution.keyed, execution.values);
        let binary = execution.is_binary();
        if self.ready(keyed, values)? && self.prepare_indexed(execution, &finish.text)? {
            let question = self.send(execution, &finish.text, true)?;
            match self.finish_rows(question, keyed, finish, values, binary) {
                Err(Failure::Server { code, .. }) if lacks_index(code) && !self.current.wrote => {
                    self.server.settle()?;
                    self.forget_indexed(execution)?;
                }
                done => return done,
            }
        }
        let question = self.send(execution, &finish.text, false)?;
        self.finish_rows(question, keyed, finish, values, binary)
    }

    /// Binds what the proxy decides by, so that it is known what cannot be bound before the server
    /// is asked. Returns whether indexes over grams can narrow the rows.
    ///
    /// MySQL's are those of InnoDB, part of every snapshot. A full-text index (MariaDB) holds the
    /// words of committed rows only. A transaction does not find its own rows in it, nor the rows
    /// of its snapshot that others have changed since. So only statements outside of transactions
    /// use it.
    pub fn ready(&mut self, keyed: &KeyedPlan, values: Values) -> Outcome<bool> {
        let Action::Finish(finish) = &keyed.plan.action else {
            return Ok(false);
        };
        limits(finish.limit, &values, self)?;
        let bind = Binding {
            keyed,
            state: &self.state,
            values,
            fetch: &finish.fetch,
            calls: &[],
        };
        if let Some(test) = &finish.filter {
            bind.bind(test, &mut self.buffers)?;
        }
        if !finish.uses_index() {
            return Ok(false);
        }
        if self.state.family == Family::MySql {
            return self.grams_of_all(keyed, &finish.text, values);
        }
        // MariaDB's index misses rows while others are written
        let outside = !self.server.in_transaction() && !self.locked_tables;
        Ok(outside
            && self.shared.config.like_index
            && self.grams_of_all(keyed, &finish.text, values)?
            && self.indexes_tokens()?)
    }

    /// Whether the server's full-text indexes take words of a token's length. The server is asked
    /// once in a session.
    fn indexes_tokens(&mut self) -> Outcome<bool> {
        if let Some(known) = self.indexes_tokens {
            return Ok(known);
        }
        let lengths = self.server.rows(
            b"SELECT GREATEST(@@innodb_ft_min_token_size, @@ft_min_word_len), \
              LEAST(@@innodb_ft_max_token_size, @@ft_max_word_len)",
        )?;
        let number = |n: usize| -> Option<usize> {
            let cell = lengths.first()?.get(n)?.as_ref()?;
            std::str::from_utf8(cell).ok()?.parse().ok()
        };
        let length = onionskin_crypt::GRAM_TOKEN_LEN;
        let fits = number(0).is_some_and(|least| least <= length)
            && number(1).is_some_and(|most| most >= length);
        if !fits {
            tracing::warn!(
                "the server's full-text indexes do not take words of {length} characters: LIKE opens all rows; \
                 see docs/formats.md"
            );
        }
        self.indexes_tokens = Some(fits);
        Ok(fits)
    }

    /// What the statement may take of the proxy from now on.
    pub fn kept(&self) -> Kept {
        Kept::new(&self.shared.pool, &self.shared.config.finish)
    }

    /// Reads the rows of a finish plan and writes what becomes of them.
    pub fn finish_rows(
        &mut self,
        question: Question,
        keyed: &KeyedPlan,
        finish: &Finish,
        values: Values,
        binary: bool,
    ) -> Outcome<()> {
        let limit = limits(finish.limit, &values, self)?;
        self.server.begin(question)?;
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
        let (shown, mut opener) =
            open::definitions(keyed, &finish.fetch, &definitions, &self.state, binary)?;
        open::format_context(&self.state)?;
        if finish.distinct {
            check_distinct(finish, &definitions, self.state.form)?;
        }
        let work = Work {
            keyed,
            finish,
            types: (0..finish.fetch.len())
                .map(|f| fetched_type(keyed, &finish.fetch, f).ok().copied())
                .collect(),
            heads: self.output_definitions(
                keyed,
                finish,
                &shown,
                finish.sorts_by_aggregates() && limit.1 > 0,
            )?,
            limit,
            binary,
        };
        let bind = Binding {
            keyed,
            state: &self.state,
            values,
            fetch: &finish.fetch,
            calls: finish.groups.as_ref().map_or(&[], |g| &g.calls),
        };
        let filter = finish.filter.as_ref();
        let filter = filter
            .map(|test| bind.bind(test, &mut self.buffers))
            .transpose()?;
        let opened = &mut opener;
        match &finish.groups {
            Some(groups) => {
                let having = groups.having.as_ref();
                let having = having
                    .map(|test| bind.bind(test, &mut self.buffers))
                    .transpose()?;
                self.grouped(&work, groups, opened, filter.as_ref(), having.as_ref())
            }
            None if finish.sort.is_empty() && !finish.distinct => {
                self.streamed(&work, opened, filter.as_ref())
            }
            None => self.sorted(&work, opened, filter.as_ref()),
        }
    }

    fn write_heads(&mut self, heads: &[Vec<u8>], eof: Option<&Vec<u8>>) -> Outcome<()> {
        self.current.wrote = true;
        let mut count = Vec::new();
        count.put_lenenc_int(heads.len() as u64);
        self.write(&count)?;
        for head in heads {
            self.write(head)?;
        }
        if let Some(eof) = eof {
            self.write_columns_end(eof)?;
        }
        Ok(())
    }

    /// Reads the next row into the arena.
    fn next_row(&mut self, opener: &mut Opener, arena: &mut Arena) -> Outcome<Next> {
        let step = self.server.step()?;
        match step {
            Step::Row => {
                arena.kept.row()?;
                opener.shown_cells(
                    self.server.connection.last_payload(),
                    &self.shared.config.keys,
                    |_, cell| arena.push(cell),
                )?;
                Ok(Next::Row)
            }
            Step::EofAfterColumns { .. } => Ok(Next::Definitions(self.server.payload().to_vec())),
            Step::EndOfRows { .. } => Ok(Next::End(step)),
            Step::Err => Err(self.server.error()),
            _ => Err(Failure::Backend(WireError::Malformed("not a row"))),
        }
    }

    /// Refuses a result with warnings if the proxy drops rows. The server has computed those rows,
    /// too, and its warnings may be about them alone.
    fn check_warnings(&self, filter: Option<&Decision>) -> Outcome<()> {
        if filter.is_some() && self.server.warnings_at_end()? > 0 {
            let about = "an expression with a warning beside a range of texts";
            return Err(Failure::refused(&errors::VALUE, about));
        }
        Ok(())
    }

    /// Whether the arena's last row counts.
    fn counts(&self, filter: Option<&Decision>, arena: &Arena) -> Outcome<bool> {
        match filter {
            None => Ok(true),
            Some(filter) => filter.holds(&Asked {
                arena,
                row: arena.rows() - 1,
                running: &[],
                family: self.state.family,
                increment: self.increment(),
            }),
        }
    }

    /// Notes what `FOUND_ROWS()` is. A server does not look for more rows than those that it skips
    /// and shows.
    fn note_found(&mut self, matching: u64, (skip, take): (u64, u64)) {
        let found = match take == 0 && self.state.family == Family::MariaDb {
            // it does not look for any
            true => 0,
            false => matching.min(skip.saturating_add(take)),
        };
        self.diagnostics.found_rows = Some(found);
    }

    /// Rows that go on to the client as they come.
    fn streamed(
        &mut self,
        work: &Work,
        opener: &mut Opener,
        filter: Option<&Decision>,
    ) -> Outcome<()> {
        let mut arena = Arena::new(work.finish.fetch.len(), self.kept());
        let (mut skip, mut take) = work.limit;
        let mut matching = 0;
        let mut behind = None;
        let mut begun = false;
        loop {
            match self.next_row(opener, &mut arena)? {
                Next::Definitions(packet) => behind = Some(packet),
                Next::Row => {
                    if self.counts(filter, &arena)? {
                        matching += 1;
                        if skip > 0 {
                            skip -= 1;
                        } else if take > 0 {
                            take -= 1;
                            if !std::mem::replace(&mut begun, true) {
                                self.write_heads(&work.heads, behind.as_ref())?;
                            }
                            self.write_row(work, &arena, 0, &[])?;
                        }
                    }
                    arena.pop();
                }
                Next::End(step) => {
                    self.check_warnings(filter)?;
                    if !begun {
                        self.write_heads(&work.heads, behind.as_ref())?;
                    }
                    self.note_found(matching, work.limit);
                    return self.write_end(step);
                }
            }
        }
    }

    /// Rows that have to be compared with each other.
    fn sorted(
        &mut self,
        work: &Work,
        opener: &mut Opener,
        filter: Option<&Decision>,
    ) -> Outcome<()> {
        let mut arena = Arena::new(work.finish.fetch.len(), self.kept());
        let mut behind = None;
        let step = loop {
            match self.next_row(opener, &mut arena)? {
                Next::Definitions(packet) => behind = Some(packet),
                Next::Row if self.counts(filter, &arena)? => {}
                Next::Row => arena.pop(),
                Next::End(step) => {
                    self.check_warnings(filter)?;
                    break step;
                }
            }
        };
        let mut order: Vec<u32> = (0..u32::try_from(arena.rows()).unwrap_or(u32::MAX)).collect();
        if work.finish.distinct {
            let columns: Vec<usize> = work.finish.output.iter().filter_map(shown_cell).collect();
            distinct(&mut arena, &mut order, &columns, &work.types)?;
        }
        sort(&mut order, work, &arena, &[])?;
        self.write_heads(&work.heads, behind.as_ref())?;
        let shown = cut(&order, work.limit);
        self.note_found(order.len() as u64, work.limit);
        for row in shown {
            self.write_row(work, &arena, *row as usize, &[])?;
        }
        self.write_end(step)
    }

    /// Rows that are gathered into groups.
    fn grouped(
        &mut self,
        work: &Work,
        groups: &Groups,
        opener: &mut Opener,
        filter: Option<&Decision>,
        having: Option<&Decision>,
    ) -> Outcome<()> {
        let mut arena = Arena::new(work.finish.fetch.len(), self.kept());
        let mut grouping = Grouping::new(groups.keys.as_deref(), &groups.calls, &work.types);
        let mut behind = None;
        let step = loop {
            match self.next_row(opener, &mut arena)? {
                Next::Definitions(packet) => behind = Some(packet),
                Next::Row if self.counts(filter, &arena)? => grouping.add(&mut arena)?,
                Next::Row => arena.pop(),
                Next::End(step) => {
                    self.check_warnings(filter)?;
                    break step;
                }
            }
        };
        grouping.end()?;
        check_windows(work.finish, &arena, grouping.groups.len())?;
        let (family, increment) = (self.state.family, self.increment());
        let mut order = Vec::new();
        let mut computed = Vec::new();
        for (row, Group { running }) in grouping.groups.iter().enumerate() {
            let asked = Asked {
                arena: &arena,
                row,
                running,
                family,
                increment,
            };
            if having.map_or(Ok(true), |test| test.holds(&asked))? {
                order.push(u32::try_from(row).unwrap_or(u32::MAX));
            }
            let values = running
                .iter()
                .map(|r| r.computed(family, increment))
                .collect::<Outcome<Vec<_>>>()?;
            computed.push(values);
        }
        sort(&mut order, work, &arena, &computed)?;
        self.write_heads(&work.heads, behind.as_ref())?;
        let shown = cut(&order, work.limit);
        self.note_found(order.len() as u64, work.limit);
        for row in shown {
            let row = *row as usize;
            self.write_row(work, &arena, row, &computed[row])?;
        }
        self.write_end(step)
    }

    /// Writes a row of the result; `computed` are its group's aggregates.
    fn write_row(
        &mut self,
        work: &Work,
        arena: &Arena,
        row: usize,
        computed: &[Computed],
    ) -> Outcome<()> {
        let ctx = open::format_context(&self.state)?;
        let out = self.client.begin_payload();
        let finish = work.finish;
        let mut writer = work
            .binary
            .then(|| BinaryRowWriter::begin(out, finish.output.len()));
        let columns = &work.keyed.plan.columns;
        // a temporary table keeps the zeros before numbers
        let temporary = finish.sorts_by_aggregates();
        let zeros = |fetch: Option<usize>| {
            let item = finish.fetch.get(fetch.filter(|_| temporary)?)?;
            zeros_kept(item, &self.state, work.binary)
        };
        for output in &finish.output {
            let format = match output {
                Output::Aggregate { .. } if !temporary => open::format_extremum,
                _ => open::format,
            };
            let (fetch, cell) = match output {
                Output::Cell { fetch } => (Some(*fetch), arena.cell(row, *fetch)),
                Output::Aggregate { call, .. } => {
                    let call_fetch = finish.groups.as_ref().and_then(|g| g.calls.get(*call));
                    match computed.get(*call) {
                        Some(Computed::Value(payload)) => {
                            (call_fetch.and_then(|c| c.fetch), Some(payload.as_slice()))
                        }
                        Some(value) => {
                            write_number(value, out, &mut writer)?;
                            continue;
                        }
                        None => {
                            return Err(Failure::refused(&errors::INTERNAL, "an aggregate"));
                        }
                    }
                }
            };
            let open = fetch.and_then(|f| finish.fetch.get(f)).and_then(|i| i.open);
            match (&mut writer, cell, open) {
                (None, None, _) => put_text_cell(out, None),
                (None, Some(cell), None) => match zeros(fetch) {
                    Some(width) => put_with_zeros(out, cell, width),
                    None => put_text_cell(out, Some(cell)),
                },
                (None, Some(cell), Some((index, _))) => {
                    let start = begin_text_cell(out);
                    format(&columns[index], cell, &ctx, out, false)?;
                    end_text_cell(out, start);
                }
                (Some(writer), None, _) => writer.null(out).map_err(Failure::Backend)?,
                (Some(writer), Some(cell), None) => match (zeros(fetch), cell) {
                    // so short a text has one byte of length before it
                    (Some(width), [_, text @ ..]) => {
                        writer.start_cell().map_err(Failure::Backend)?;
                        put_with_zeros(out, text, width);
                    }
                    _ => writer.raw(out, Some(cell)).map_err(Failure::Backend)?,
                },
                (Some(writer), Some(cell), Some((index, _))) => {
                    writer.start_cell().map_err(Failure::Backend)?;
                    format(&columns[index], cell, &ctx, out, true)?;
                }
            }
        }
        if let Some(writer) = writer {
            writer.finish().map_err(Failure::Backend)?;
        }
        self.client.end_payload().map_err(Failure::Client)
    }
}

/// Writes a number with zeros before it, up to its column's width.
fn put_with_zeros(out: &mut Vec<u8>, cell: &[u8], width: usize) {
    let start = begin_text_cell(out);
    out.resize(out.len() + width.saturating_sub(cell.len()), b'0');
    out.extend_from_slice(cell);
    end_text_cell(out, start);
}

/// Writes a count, sum or average as a cell.
fn write_number(
    value: &Computed,
    out: &mut Vec<u8>,
    writer: &mut Option<BinaryRowWriter>,
) -> Outcome<()> {
    let Some(writer) = writer else {
        match value {
            Computed::Null => put_text_cell(out, None),
            Computed::Count(count) => put_text_cell(out, Some(count.to_string().as_bytes())),
            Computed::Exact(text) | Computed::Real(_, text) | Computed::Value(text) => {
                put_text_cell(out, Some(text));
            }
        }
        return Ok(());
    };
    if *value == Computed::Null {
        return writer.null(out).map_err(Failure::Backend);
    }
    writer.start_cell().map_err(Failure::Backend)?;
    // a DOUBLE is eight bytes, a DECIMAL its text
    match value {
        Computed::Count(count) => out.extend_from_slice(&count.to_le_bytes()),
        Computed::Real(real, _) => out.extend_from_slice(&real.to_le_bytes()),
        Computed::Exact(text) | Computed::Value(text) => out.put_lenenc_bytes(text),
        Computed::Null => {}
    }
    Ok(())
}

/// The greatest and the least DOUBLE, as text and in the protocol of prepared statements.
const GREATEST_DOUBLES: [&[u8]; 4] = [
    b"1.7976931348623157e308",
    b"-1.7976931348623157e308",
    &f64::MAX.to_le_bytes(),
    &f64::MIN.to_le_bytes(),
];

/// Refuses values of window functions that may have been cut. Such a value comes from a temporary
/// table. The table keeps 65 digits of a DECIMAL, and as many nines of a greater one. It keeps the
/// greatest DOUBLE in the place of one beyond it. The aggregate itself has more digits under some
/// plans, and is 0 beyond.
fn check_windows(finish: &Finish, arena: &Arena, groups: usize) -> Outcome<()> {
    let saturated = |cell: &[u8]| {
        let digits = || cell.iter().filter(|b| b.is_ascii_digit());
        let is_greatest = GREATEST_DOUBLES.contains(&cell);
        is_greatest || cell.len() >= 65 && digits().count() >= 65 && digits().all(|b| *b == b'9')
    };
    for (at, item) in finish.fetch.iter().enumerate() {
        let is_aggregate = matches!(item.described, Described::Aggregate { .. });
        let mut rows = 0..groups;
        if is_aggregate && rows.any(|row| arena.cell(row, at).is_some_and(saturated)) {
            let about = "an aggregate of more than 65 digits, or at the end of DOUBLE";
            return Err(Failure::refused(&errors::VALUE, about));
        }
    }
    Ok(())
}
