//! From values to what the server gets: sealed cells, equality tokens, order keys, gram tokens.
//!
//! A [`Binder`] fills the slots of one execution. The same value usually fills two or three slots
//! in a row (cell, token, key), so the coerced payload of the last one is kept.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | the binder: values are coerced to the columns' types, sealed, weighed |
//! | `text` | the text or the parameters that the server gets |
//! | `values` | literals and bound parameters |
//! | `parameters` | parameters beside plain columns, which are more than literals to MySQL |
//! | `together` | what constants mean beside others, in IN and BETWEEN |
//! | `rules` | what servers say of values before they store them, and what they take in their place |

mod buffers;
mod parameters;
mod present_time;
mod rules;
mod text;
mod together;
mod values;

use onionskin_physical::companions;
use onionskin_plan::grams::most_numbers;
use onionskin_plan::{
    Action, Among, Escape, Facts, Literal, LiteralKind, Piece, Purpose, Slot, Source, Verb, errors,
};
use onionskin_schema::{Default as ColumnDefault, DefaultLiteral, GramForm, bits_of_default};
use onionskin_value::{
    Charset, Comparand, Context, Family, Input, Kind, Level, LikePattern, Pattern, SqlMode, Stored,
    TimeZone, Warning, WeightError, compare, store,
};

pub(crate) use self::buffers::{Buffers, Kept, LookedUp};
pub(crate) use self::parameters::{FromVariable, PlainParameters};
pub(crate) use self::present_time::PresentTime;
pub(crate) use self::rules::is_early;
use self::rules::{
    NOT_NULL, OUT_OF_RANGE, TRUNCATED, cannot_be_null, check_conversion, implicit_default,
    implicit_value, is_misread, is_number_beyond, is_time, is_told_otherwise, no_default,
    no_default_warning, null_warning, out_of_range, times_out_of_range,
};
pub(crate) use self::text::{check_pieces, prepared_text, put_bytes, put_filled};
use self::together::{Together, together};
pub(crate) use self::values::Values;
use self::values::number_of_hybrid;
use crate::catalog::Prepared;
use crate::error::{Failure, Outcome};
use crate::server_errors::ILL_FORMED;
use crate::server_errors::NO_DEFAULT;
use crate::state::State;

/// What a slot's value turned out to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Null,
    Exact,
    Between,
    BelowAll,
    AboveAll,
}

/// A filled slot's bytes lie in the binder's buffer.
pub(crate) enum Filled<'b> {
    Null,
    Bytes(&'b [u8]),
}

/// How a statement takes values that do not fit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StoreMode {
    /// Errors become warnings: `INSERT IGNORE`, `UPDATE IGNORE`.
    pub ignore: bool,
    /// NULL for a NOT NULL column is no error outside of strict mode: all but inserts of one row.
    pub lenient_nulls: bool,
}

impl StoreMode {
    /// That of a statement; `folded` is how many rows its shape has folded into one.
    pub fn of(facts: &Facts, folded: Option<usize>) -> Self {
        StoreMode {
            ignore: facts.ignore,
            lenient_nulls: facts.is_lenient(folded),
        }
    }
}

/// Fills the slots of one execution.
pub(crate) struct Binder<'a> {
    pub prepared: &'a Prepared,
    pub state: &'a State,
    pub values: Values<'a>,
    pub mode: StoreMode,
    /// Indexes over grams are used: see [`Piece::Indexed`].
    pub indexed: bool,
    pub warnings: Vec<Warning>,
    /// The server may have warned of a plain value before the one that is bound.
    plain_may_warn: bool,
    buffers: &'a mut Buffers,
    last: Option<(usize, Source, bool, u64, Bound)>,
    /// The list or range that was looked at last, and its column.
    among: Option<(usize, Among)>,
    /// What follows from it for its constants.
    together: Together,
    /// The number that is compared stands beside a double, or beside a text that is read as one.
    as_doubles: bool,
    pub plain_parameters: PlainParameters,
}

impl<'a> Binder<'a> {
    pub fn new(
        prepared: &'a Prepared,
        state: &'a State,
        values: Values<'a>,
        buffers: &'a mut Buffers,
    ) -> Self {
        Binder {
            prepared,
            state,
            values,
            mode: StoreMode::default(),
            plain_may_warn: false,
            indexed: false,
            warnings: Vec::new(),
            buffers,
            last: None,
            among: None,
            together: Together::Alike,
            as_doubles: false,
            plain_parameters: PlainParameters::Literals,
        }
    }

    /// Fills a slot. `base` is added to literal indexes; `row` counts from 1 for messages.
    pub fn fill(&mut self, slot: &Slot, base: usize, row: u64) -> Outcome<Filled<'_>> {
        let stores = slot.purpose.stores();
        let source = slot.source.behind(base);
        let upserts = self.prepared.plan.upsert.is_some();
        if slot.purpose == Purpose::Kept {
            let Buffers { kept, filled, .. } = &mut *self.buffers;
            filled.clear();
            for byte in kept.constants.get(&slot.column).into_iter().flatten() {
                const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                filled.push(DIGITS[usize::from(byte >> 4)]);
                filled.push(DIGITS[usize::from(byte & 15)]);
            }
            return Ok(Filled::Bytes(filled));
        }
        if let Purpose::CandidateGrams(escape) = slot.purpose {
            let found = self.pattern(slot.column, source, escape)?;
            let filled = &mut self.buffers.filled;
            filled.clear();
            if let Pattern::Like(pattern) = found {
                let cipher = &self.prepared.ciphers[slot.column];
                companions::gram_search(cipher, &pattern, filled);
            }
            return Ok(Filled::Bytes(filled));
        }
        if let Purpose::CandidateGram(escape, nth) = slot.purpose {
            let Buffers {
                looked_up, filled, ..
            } = &mut *self.buffers;
            let decided = looked_up
                .iter()
                .find(|l| (l.column, l.pattern, l.escape) == (slot.column, source, escape))
                .and_then(|l| l.number(nth));
            let Some(number) = decided else {
                return Err(Failure::refused(&errors::INTERNAL, "a pattern's grams"));
            };
            filled.clear();
            filled.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            return Ok(Filled::Bytes(filled));
        }
        let bound = match self.last {
            Some((column, last, as_stored, last_row, bound))
                if column == slot.column
                    && last == source
                    && as_stored == stores
                    && last_row == row =>
            {
                bound
            }
            _ => {
                let bound = match slot.among {
                    None => self.coerce(slot.column, source, stores, row)?,
                    Some(among) => self.coerce_among(slot.column, source, among, row)?,
                };
                self.last = Some((slot.column, source, stores, row, bound));
                bound
            }
        };
        let place = (slot.column, source, row);
        if upserts
            && slot.purpose == Purpose::Seal
            && bound != Bound::Null
            && self.buffers.kept.cells.contains_key(&place)
        {
            let Buffers { kept, filled, .. } = &mut *self.buffers;
            filled.clear();
            filled.extend_from_slice(kept.cells.get(&place).map_or(b"", Vec::as_slice));
            return Ok(Filled::Bytes(filled));
        }
        self.make(slot, bound)
    }

    /// Whether the statement has plain values, which the server has not seen, that may have raised warnings before this one. New rows are looked at value
    /// by value, in the order of the text.
    fn others_may_warn(&self, refused: Source) -> bool {
        let refused = match refused {
            Source::Literal { index, .. } => Some(index),
            _ => None,
        };
        let facts = &self.prepared.plan.facts;
        // its own word is the one that is allowed for; how many rows are folded is not known here
        let is_only = refused.is_none() && facts.defaults == 1 && !self.prepared.plan.folds_rows();
        if facts.defaults > 0 && !is_only {
            return true;
        }
        if refused.is_none() && self.state.family == Family::MariaDb {
            // where in the statement it stands is not known here
            return !self
                .values
                .literals
                .iter()
                .all(|l| l.kind == LiteralKind::Integer);
        }
        if matches!(facts.verb, Verb::Insert | Verb::Replace) {
            let from = refused.map_or(0, |index| index + 1);
            // MariaDB looks at the row's other values all the same
            let behind = match self.state.family {
                Family::MariaDb => from..self.end_of_row(from),
                Family::MySql => 0..0,
            };
            return self.plain_may_warn || behind.into_iter().any(|index| self.may_warn(index));
        }
        let mut others = self.values.literals.iter().enumerate();
        !self.warnings.is_empty()
            || others.any(|(index, literal)| {
                let is_refused = Some(index) == refused && literal.kind != LiteralKind::Integer;
                !is_refused && self.may_warn(index)
            })
    }

    /// How many literals stand before the end of the new row with the literal before this one.
    fn end_of_row(&self, behind: usize) -> usize {
        let plan = &self.prepared.plan;
        if let Some(end) = plan.row_ends.iter().find(|end| **end >= behind) {
            return *end;
        }
        let text = match &plan.action {
            Action::Server { text, .. } => text.as_slice(),
            _ => &[],
        };
        let folded = text.iter().find_map(|piece| match piece {
            Piece::Rows {
                first_literal,
                per_row,
                ..
            } => Some((*first_literal, *per_row)),
            _ => None,
        });
        match folded {
            Some((first, per_row)) if per_row > 0 && behind > first => {
                first + (behind - first).div_ceil(per_row) * per_row
            }
            _ => self.values.literals.len(),
        }
    }

    /// Whether storing a literal in a plain column may raise a warning: anything but whole numbers. One that fits no integer type is warned of by itself.
    fn may_warn(&self, index: usize) -> bool {
        let whole = |l: &Literal| match l.kind {
            LiteralKind::Integer => l.end - l.start < 19,
            LiteralKind::Parameter => {
                let number = self.values.param_number(index);
                number.is_some_and(|n| self.values.is_integer(n))
            }
            _ => false,
        };
        !self.values.literals.get(index).is_some_and(whole)
    }

    fn make(&mut self, slot: &Slot, bound: Bound) -> Outcome<Filled<'_>> {
        if bound == Bound::Null {
            return Ok(Filled::Null);
        }
        let used = &self.prepared.plan.columns[slot.column];
        let cipher = &self.prepared.ciphers[slot.column];
        let Some(ty) = used.column().sql_type.as_ref() else {
            return Err(Failure::refused(&errors::INTERNAL, used.path()));
        };
        let Buffers {
            payload,
            weight: weights,
            filled,
            ..
        } = &mut *self.buffers;
        let weighed =
            |e: WeightError| Failure::refused(&errors::VALUE, format!("{} ({e})", used.path()));
        filled.clear();
        match slot.purpose {
            Purpose::Kept | Purpose::CandidateGrams(_) | Purpose::CandidateGram(..) => {
                return Err(Failure::refused(&errors::INTERNAL, used.path()));
            }
            Purpose::StoreGrams => {
                let form = used
                    .column()
                    .grams()
                    .map_or(GramForm::Words, |(_, form)| form);
                let most = most_numbers(&used.table);
                companions::gram_tokens(cipher, ty, form, most, payload, filled)
                    .map_err(weighed)?;
            }
            Purpose::Seal => cipher
                .seal(payload, filled)
                .map_err(|e| Failure::seal(&e, &used.path()))?,
            Purpose::StoreEquality | Purpose::CompareEquality => {
                if bound == Bound::Exact {
                    companions::equality_token(cipher, ty, payload, weights, filled)
                        .map_err(weighed)?;
                } else {
                    // no value of the column is equal: a text that no token is
                    filled.push(0);
                }
            }
            Purpose::StoreOrder | Purpose::CompareOrder | Purpose::CandidateOrder => match bound {
                // below every key, or above it; between two keys by one byte more than the lower
                Bound::BelowAll => {}
                Bound::AboveAll => {
                    let width = ty.order_width().map_or(0, |w| w.bytes);
                    filled.resize(onionskin_crypt::order_key_len(width) + 1, 0xff);
                }
                _ => {
                    companions::order_key(cipher, ty, payload, weights, filled).map_err(weighed)?;
                    // behind the beginning that the key covers a candidate may still be greater
                    if bound == Bound::Between && slot.purpose != Purpose::CandidateOrder {
                        filled.push(0);
                    }
                }
            },
        }
        Ok(Filled::Bytes(filled))
    }

    fn context<'c>(&'c self, column: usize, row: u64) -> Context<'c>
    where
        'a: 'c,
    {
        let used = &self.prepared.plan.columns[column];
        Context {
            sql_mode: self.state.sql_mode,
            time_zone: &self.state.time_zone,
            family: self.state.family,
            latest_timestamp: self.state.latest_timestamp,
            signed_zero: self.state.signed_zero,
            enum_takes_zero: self.state.is_mariadb_118,
            ignore: self.mode.ignore,
            row,
            column: &used.column().name,
            database: &used.table.database,
            table: &used.table.name,
        }
    }

    /// The number of the row in which a value stands; `row` for one in the rows that the text folds, or in none.
    fn row_of(&self, source: Source, row: u64) -> u64 {
        let ends = &self.prepared.plan.row_ends;
        match source {
            Source::Literal { index, .. } if ends.last().is_some_and(|end| index < *end) => {
                ends.partition_point(|end| *end <= index) as u64 + 1
            }
            _ => row,
        }
    }

    /// Coerces a constant that the server compares together with others.
    fn coerce_among(
        &mut self,
        column: usize,
        source: Source,
        among: Among,
        row: u64,
    ) -> Outcome<Bound> {
        let used = &self.prepared.plan.columns[column];
        let Some(ty) = used.column().sql_type.as_ref() else {
            return Err(Failure::refused(&errors::INTERNAL, used.path()));
        };
        if self.among != Some((column, among)) {
            self.together = together(among, ty, &self.values, self.state.family);
            self.among = Some((column, among));
        }
        let unlike = |why| Failure::refused(&errors::VALUE, format!("{} ({why})", used.path()));
        if self.together == Together::Unlike {
            return Err(unlike("constants of several kinds in IN or BETWEEN"));
        }
        self.as_doubles = self.together == Together::AsDoubles;
        let bound = self.coerce(column, source, false, row);
        self.as_doubles = false;
        // MySQL stores each of several constants in a DATE before it compares, which loses the time, or is an error
        let is_date = ty.kind == Kind::Date && self.state.family == Family::MySql;
        if is_date && !among.range && matches!(bound, Ok(Bound::Between)) {
            return Err(unlike("a time of day in a list of dates"));
        }
        bound
    }

    /// Coerces a value; the payload lies in the scratch buffer.
    fn coerce(&mut self, column: usize, source: Source, stores: bool, row: u64) -> Outcome<Bound> {
        let bound = self.coerced(column, source, stores, self.row_of(source, row));
        if let Err(failure) = &bound {
            // before such an error nothing is looked at; MariaDB misses a default there only in an UPDATE
            let at_once = self.state.family == Family::MySql || self.updates();
            let early =
                at_once && matches!(failure, Failure::Value(e) if is_early(e, self.state.family));
            self.buffers.refused_among_others = !early && self.others_may_warn(source);
            self.buffers.before_refused.clone_from(&self.warnings);
        }
        bound
    }

    fn coerced(&mut self, column: usize, source: Source, stores: bool, row: u64) -> Outcome<Bound> {
        let prepared = self.prepared;
        let used = &prepared.plan.columns[column];
        let Some(ty) = used.column().sql_type.as_ref() else {
            return Err(Failure::refused(&errors::INTERNAL, used.path()));
        };
        let mut payload = std::mem::take(&mut self.buffers.payload);
        let mut literal = std::mem::take(&mut self.buffers.literal);
        let mut warnings = Vec::new();
        let mut times = 1;
        payload.clear();
        let result = (|| {
            let default;
            let mut implicit = false;
            let mut is_parameter = false;
            let input = match source {
                Source::Default | Source::Omitted { .. } => match &used.column().default {
                    // which takes its first member, and says nothing
                    None if !used.column().nullable
                        && matches!(ty.kind, Kind::Enum(_))
                        && !(self.updates() && self.state.family == Family::MariaDb) =>
                    {
                        implicit_value(ty)
                    }
                    None if !used.column().nullable => {
                        if self.updates() && self.state.family == Family::MariaDb {
                            return Err(no_default(&used.column().name));
                        }
                        let strict = self.state.sql_mode.is_strict() && !self.mode.ignore;
                        if strict {
                            return Err(no_default(&used.column().name));
                        }
                        implicit = true;
                        warnings.push(no_default_warning(&used.column().name));
                        implicit_default(ty)
                    }
                    Some(ColumnDefault::Literal(DefaultLiteral::Value(bytes))) => {
                        default = bytes.clone();
                        // the text form of the definition, in the column's own terms
                        if let (true, Some(magnitude)) = (ty.is_bit(), bits_of_default(&default)) {
                            Input::Integer {
                                negative: false,
                                magnitude,
                            }
                        } else if ty.is_binary() {
                            Input::Bytes(&default)
                        } else {
                            Input::Text {
                                bytes: &default,
                                charset: Charset::Utf8mb4,
                            }
                        }
                    }
                    // the plan has it computed
                    Some(ColumnDefault::Literal(DefaultLiteral::Expression(_))) => {
                        return Err(Failure::refused(&errors::COMPUTED_DEFAULT, used.path()));
                    }
                    Some(ColumnDefault::Literal(DefaultLiteral::Null)) | None
                        if used.column().nullable =>
                    {
                        Input::Null
                    }
                    _ => implicit_default(ty),
                },
                Source::Implicit if matches!(ty.kind, Kind::Json) => {
                    // an empty text, which the column's own condition does not take
                    return Err(Failure::refused(&errors::VALUE, used.path()));
                }
                Source::Implicit => implicit_value(ty),
                Source::Present { digits, asked } => {
                    let Some(time) = self.buffers.present else {
                        return Err(Failure::refused(&errors::INTERNAL, "the statement's time"));
                    };
                    let parts = time.for_column(&ty.kind, digits, asked);
                    let about = || Failure::refused(&errors::VALUE, used.path());
                    Input::Temporal(parts.ok_or_else(about)?)
                }
                Source::Null => Input::Null,
                Source::Bool(b) => Input::Bool(b),
                Source::Literal { index, negative } => {
                    let input =
                        self.values
                            .input(index, negative, self.state, &mut literal, used)?;
                    is_parameter = self.values.param_number(index).is_some();
                    let input = match input {
                        Input::Hex(bytes)
                            if stores
                                && self.state.family == Family::MariaDb
                                && ty.is_numeric()
                                && self.values.is_hybrid(index) =>
                        {
                            number_of_hybrid(bytes).unwrap_or(input)
                        }
                        // as a text, and so as the number that stands in it, if there is one
                        Input::Hex(_)
                            if !stores
                                && self.state.family == Family::MariaDb
                                && ty.is_bit()
                                && !self.values.is_hybrid(index) =>
                        {
                            let about = format!("{} (a text compared with BIT)", used.path());
                            return Err(Failure::refused(&errors::VALUE, about));
                        }
                        _ => input,
                    };
                    if is_parameter && self.state.family == Family::MySql {
                        check_conversion(ty, input)?;
                        if is_misread(ty, input) {
                            return Err(Failure::refused(&errors::VALUE, used.path()));
                        }
                        if stores && is_number_beyond(ty, input) {
                            let strict = self.state.sql_mode.is_strict() && !self.mode.ignore;
                            // in an INSERT, the other parameters decide whether it is a number or the bytes of a text
                            return Err(match strict && self.updates() {
                                true => Failure::Value(out_of_range(&used.column().name, row)),
                                false => Failure::refused(&errors::VALUE, used.path()),
                            });
                        }
                    }
                    input
                }
            };
            let mut ctx = self.context(column, row);
            if implicit && matches!(ty.kind, Kind::Timestamp { .. } | Kind::Json) {
                // depending on its settings, the server takes the present time
                return Err(Failure::refused(&errors::VALUE, used.path()));
            }
            if implicit || matches!(source, Source::Implicit) {
                ctx.sql_mode = SqlMode::empty();
            }
            if matches!(source, Source::Present { .. }) && matches!(ty.kind, Kind::Timestamp { .. })
            {
                // that is how it was asked for
                ctx.time_zone = &TimeZone::UTC;
            }
            if !stores {
                // a text with the same digits is looked at both ways
                let digits;
                let input = match input {
                    Input::Integer {
                        negative,
                        magnitude,
                    } if self.as_doubles => {
                        let sign = if negative { "-" } else { "" };
                        digits = format!("{sign}{magnitude}");
                        text_of(digits.as_bytes())
                    }
                    Input::Decimal(written) if self.as_doubles => text_of(written),
                    other => other,
                };
                return match compare(ty, input, &ctx, &mut payload) {
                    Ok(Comparand::Null) => Ok(Bound::Null),
                    Ok(Comparand::Exact) => Ok(Bound::Exact),
                    Ok(Comparand::Between) => Ok(Bound::Between),
                    Ok(Comparand::BelowAll) => Ok(Bound::BelowAll),
                    Ok(Comparand::AboveAll) => Ok(Bound::AboveAll),
                    Err(e) => Err(Failure::refused(
                        &errors::VALUE,
                        format!("{} ({e})", used.path()),
                    )),
                };
            }
            let stored = store(ty, input, &ctx, &mut payload, &mut warnings);
            if is_parameter && self.state.family == Family::MySql {
                let complained = stored.is_err() || !warnings.is_empty();
                let named = warnings.iter().any(|w| w.code == TRUNCATED) || stored.is_err();
                if is_told_otherwise(ty, input, complained, named) {
                    return Err(Failure::refused(&errors::VALUE, used.path()));
                }
            }
            let stored = stored.map_err(|e| {
                times = times_out_of_range(ty, input, &ctx, is_parameter);
                Failure::store(e, &used.path())
            })?;
            if is_parameter && self.state.family == Family::MySql && is_time(ty) {
                // which takes the time of day out of a date, and says nothing
                warnings.retain(|w| w.level != Level::Note);
            }
            if is_parameter {
                // it is literals of which the parser says that they are ill-formed
                warnings.retain(|w| w.code != ILL_FORMED);
                let is_text = matches!(input, Input::Text { .. });
                let too_great = warnings.iter().any(|w| w.code == OUT_OF_RANGE);
                if is_text && too_great && self.state.family == Family::MySql && ty.is_integer() {
                    // MySQL warns of such a parameter once more
                    return Err(Failure::refused(&errors::VALUE, used.path()));
                }
            }
            match stored {
                Stored::Null if !used.column().nullable => {
                    if self.state.family == Family::MariaDb
                        && matches!(ty.kind, Kind::Timestamp { .. })
                    {
                        // MariaDB takes the present time, which is known only where the plan asks for it
                        return Err(Failure::refused(&errors::VALUE, used.path()));
                    }
                    // several rows, or IGNORE: NULL becomes the type's own default
                    let lenient = self.mode.ignore
                        || (self.mode.lenient_nulls && !self.state.sql_mode.is_strict());
                    if !lenient {
                        return Err(Failure::Value(cannot_be_null(&used.column().name)));
                    }
                    if matches!(ty.kind, Kind::Timestamp { .. } | Kind::Json) {
                        return Err(Failure::refused(&errors::VALUE, used.path()));
                    }
                    if let Kind::Enum(_) = ty.kind {
                        // its first member, or the value that stands for errors
                        let number = u8::from(self.state.family == Family::MariaDb);
                        payload.extend_from_slice(&[0, number]);
                        warnings.push(null_warning(&used.column().name));
                        return Ok(Bound::Exact);
                    }
                    warnings.push(null_warning(&used.column().name));
                    let plain = Context {
                        sql_mode: SqlMode::empty(),
                        ..ctx
                    };
                    store(
                        ty,
                        implicit_default(ty),
                        &plain,
                        &mut payload,
                        &mut warnings,
                    )
                    .map_err(|e| Failure::store(e, &used.path()))?;
                    Ok(Bound::Exact)
                }
                Stored::Null => Ok(Bound::Null),
                Stored::Value => Ok(Bound::Exact),
            }
        })();
        self.buffers.payload = payload;
        self.buffers.literal = literal;
        self.buffers.refused_times = times;
        for warning in warnings {
            if warning.level == Level::Note && !self.state.keeps_notes() {
                continue;
            }
            // the missing default of a column that is left out is reported once for a statement, on MySQL also that of one that
            // is asked for by the word, and so are MySQL's NULLs in an INSERT
            let once = (warning.code == NO_DEFAULT
                && (self.state.family == Family::MySql || source != Source::Default))
                || (warning.code == NOT_NULL
                    && self.state.family == Family::MySql
                    && !self.updates());
            let known = once && self.warnings.iter().any(|w| w.message == warning.message);
            if !known {
                self.warnings.push(warning);
            }
        }
        result
    }

    /// Whether the statement is an `UPDATE`.
    fn updates(&self) -> bool {
        let plan = &self.prepared.plan;
        plan.probe.is_some() || matches!(plan.action, Action::Update(_))
    }

    /// The payload of a stored value, for tier 2. `None` is NULL.
    pub fn stored_payload(&mut self, column: usize, source: Source) -> Outcome<Option<&[u8]>> {
        self.stored_payload_of(column, source, 1)
    }

    /// The same for the row with this number.
    pub fn stored_payload_of(
        &mut self,
        column: usize,
        source: Source,
        row: u64,
    ) -> Outcome<Option<&[u8]>> {
        self.last = None;
        match self.coerce(column, source, true, row)? {
            Bound::Null => Ok(None),
            _ => Ok(Some(&self.buffers.payload)),
        }
    }

    /// A constant that tier 2 compares a column with: where it stands, and its payload.
    pub fn compared(&mut self, column: usize, source: Source) -> Outcome<(Bound, Vec<u8>)> {
        self.last = None;
        let bound = self.coerce(column, source, false, 1)?;
        Ok((bound, self.buffers.payload.clone()))
    }

    /// A pattern that tier 2 matches a column with.
    pub fn pattern(&mut self, column: usize, source: Source, escape: Escape) -> Outcome<Pattern> {
        let used = &self.prepared.plan.columns[column];
        let unclear =
            |why: &str| Failure::refused(&errors::VALUE, format!("{} ({why})", used.path()));
        let Some(ty) = used.column().sql_type.as_ref() else {
            return Err(Failure::refused(&errors::INTERNAL, used.path()));
        };
        let pads = self
            .state
            .sql_mode
            .contains(SqlMode::PAD_CHAR_TO_FULL_LENGTH);
        if pads && matches!(ty.kind, Kind::Char { .. }) {
            return Err(unclear("LIKE under PAD_CHAR_TO_FULL_LENGTH"));
        }
        let mut buffer = Vec::new();
        let escape = match escape {
            Escape::Backslash => onionskin_value::Escape::Backslash,
            Escape::Literal(index) => {
                let path = used.path();
                let input = self
                    .values
                    .input(index, false, self.state, &mut buffer, &path)?;
                let Input::Text { bytes, .. } = input else {
                    return Err(unclear("ESCAPE"));
                };
                match *bytes {
                    [byte] if byte.is_ascii() => {
                        onionskin_value::Escape::Character(char::from(byte))
                    }
                    _ => return Err(unclear("ESCAPE with more or less than one ASCII character")),
                }
            }
        };
        let mut buffer = Vec::new();
        let input = match source {
            Source::Null => Input::Null,
            Source::Bool(truth) => Input::Bool(truth),
            Source::Literal { index, negative } => {
                let path = used.path();
                self.values
                    .input(index, negative, self.state, &mut buffer, &path)?
            }
            Source::Default
            | Source::Omitted { .. }
            | Source::Implicit
            | Source::Present { .. } => {
                return Err(unclear("LIKE"));
            }
        };
        // the server converts a text to the connection's character set, and then compares its bytes
        if let Input::Text { bytes, .. } = input
            && ty.is_binary()
            && !bytes.is_ascii()
            && self.state.client_charset != self.state.connection_charset
        {
            return Err(unclear("LIKE with a text that the server converts"));
        }
        LikePattern::read(ty, input, escape).map_err(|e| unclear(&e.to_string()))
    }

    /// Whether every pattern of a text has grams, so that its indexes over grams can be used.
    pub fn can_index(&mut self, pieces: &[Piece]) -> Outcome<bool> {
        for piece in pieces {
            let Piece::Indexed(inner) = piece else {
                continue;
            };
            for piece in inner {
                if let Piece::Slot(slot) = piece
                    && let Filled::Bytes(b"") = self.fill(slot, 0, 1)?
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Fills slots with a payload that tier 2 computed.
    pub fn fill_payload(&mut self, slot: &Slot, payload: &[u8]) -> Outcome<Filled<'_>> {
        self.last = None;
        self.buffers.payload.clear();
        self.buffers.payload.extend_from_slice(payload);
        self.make(slot, Bound::Exact)
    }
}

/// The digits of a number as a text.
fn text_of(digits: &[u8]) -> Input<'_> {
    Input::Text {
        bytes: digits,
        charset: Charset::Utf8mb4,
    }
}
