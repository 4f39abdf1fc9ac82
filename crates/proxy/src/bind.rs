//! From values to what the server gets: sealed cells, equality tokens, order keys, gram tokens.
//!
//! A [`Binder`] fills the slots of one execution. The same value usually fills two or three slots
//! in a row (cell, token, key), so the coerced payload of the last one is kept.

use onionskin_plan::grams::most_numbers;
use onionskin_plan::{
    Action, ColumnUse, Escape, Literal, LiteralKind, Piece, Purpose, Slot, Source, errors,
};
use onionskin_schema::{Default as ColumnDefault, DefaultLiteral, GramForm, bits_of_default};
use onionskin_value::{
    Charset, Comparand, Context, DateTimeParts, Family, Input, Kind, Level, LikePattern, Pattern,
    SqlMode, SqlType, Stored, TemporalKind, ValueError, Warning, WeightError, compare, store,
};
use onionskin_wire::messages::{ExecuteWriter, Param};
use onionskin_wire::{BinaryValue, ColumnType, ParamType};

use crate::catalog::Prepared;
use crate::error::{Failure, Outcome};
use crate::rarest::LookedUp;
use crate::sealing;
use crate::state::State;
use crate::upsert::Kept;

const NOT_NULL: u16 = 1048;
const OUT_OF_RANGE: u16 = 1264;
const NO_DEFAULT: u16 = 1364;
const IMPOSSIBLE_CONVERSION: u16 = 3988;
/// Of a text that its character set does not allow.
pub(crate) const ILL_FORMED: u16 = 1300;

/// The values of one execution.
#[derive(Clone, Copy)]
pub(crate) struct Values<'a> {
    /// The statement's text.
    pub sql: &'a [u8],
    /// Its literals.
    pub literals: &'a [Literal],
    /// Bound parameters, in order; empty for text statements.
    pub params: &'a [Param<'a>],
    /// Parameters that came as long data.
    pub long_data: &'a [Option<Vec<u8>>],
}

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

/// Fills the slots of one execution.
pub(crate) struct Binder<'a> {
    pub prepared: &'a Prepared,
    pub state: &'a State,
    pub values: Values<'a>,
    pub ignore: bool,
    /// NULL for a NOT NULL column is no error outside of strict mode (all but one-row inserts).
    pub lenient_nulls: bool,
    /// Indexes over grams are used: see [`Piece::Indexed`].
    pub indexed: bool,
    pub warnings: Vec<Warning>,
    scratch: &'a mut Scratch,
    last: Option<(usize, Source, bool, u64, Bound)>,
}

/// Buffers that live as long as the session.
#[derive(Default)]
pub(crate) struct Scratch {
    literal: Vec<u8>,
    pub payload: Vec<u8>,
    weight: Vec<u8>,
    filled: Vec<u8>,
    /// Cells that an upsert sends again.
    pub kept: Kept,
    /// By which grams the patterns of the statement are looked up.
    pub looked_up: Vec<LookedUp>,
    /// A value was refused beside others that may have raised warnings before it.
    pub refused_among_others: bool,
}

impl<'a> Binder<'a> {
    pub fn new(
        prepared: &'a Prepared,
        state: &'a State,
        values: Values<'a>,
        scratch: &'a mut Scratch,
    ) -> Self {
        Binder {
            prepared,
            state,
            values,
            ignore: false,
            lenient_nulls: false,
            indexed: false,
            warnings: Vec::new(),
            scratch,
            last: None,
        }
    }

    /// Fills a slot. `base` is added to literal indexes; `row` counts from 1 for messages.
    pub fn fill(&mut self, slot: &Slot, base: usize, row: u64) -> Outcome<Filled<'_>> {
        let stores = slot.purpose.stores();
        let source = slot.source.behind(base);
        let upserts = self.prepared.plan.upsert.is_some();
        if slot.purpose == Purpose::Kept {
            let Scratch { kept, filled, .. } = &mut *self.scratch;
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
            let filled = &mut self.scratch.filled;
            filled.clear();
            if let Pattern::Like(pattern) = found {
                let cipher = &self.prepared.ciphers[slot.column];
                sealing::gram_search(cipher, &pattern, filled);
            }
            return Ok(Filled::Bytes(filled));
        }
        if let Purpose::CandidateGram(escape, nth) = slot.purpose {
            let Scratch {
                looked_up, filled, ..
            } = &mut *self.scratch;
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
                let bound = self.coerce(slot.column, source, stores, row)?;
                self.last = Some((slot.column, source, stores, row, bound));
                bound
            }
        };
        let place = (slot.column, source, row);
        if upserts
            && slot.purpose == Purpose::Seal
            && bound != Bound::Null
            && self.scratch.kept.cells.contains_key(&place)
        {
            let Scratch { kept, filled, .. } = &mut *self.scratch;
            filled.clear();
            filled.extend_from_slice(kept.cells.get(&place).map_or(b"", Vec::as_slice));
            return Ok(Filled::Bytes(filled));
        }
        self.make(slot, bound)
    }

    /// Whether the statement has values besides this one, which the server has not seen, that may raise
    /// warnings: anything but whole numbers.
    fn others_may_warn(&self, refused: Source) -> bool {
        let refused = match refused {
            Source::Literal { index, .. } => Some(index),
            _ => None,
        };
        let default = memchr::memmem::find(&self.values.sql.to_ascii_lowercase(), b"default");
        let others = self.values.literals.iter().enumerate();
        !self.warnings.is_empty()
            || (default.is_some() && refused.is_some())
            || others.into_iter().any(|(index, literal)| {
                // a number that fits no integer type is warned of by itself
                let whole = literal.kind == LiteralKind::Integer
                    && literal.text(self.values.sql).len() < 19;
                !whole && (Some(index) != refused || literal.kind == LiteralKind::Integer)
            })
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
        let Scratch {
            payload,
            weight: weights,
            filled,
            ..
        } = &mut *self.scratch;
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
                sealing::gram_tokens(cipher, ty, form, most, payload, filled).map_err(weighed)?;
            }
            Purpose::Seal => cipher
                .seal(payload, filled)
                .map_err(|e| Failure::seal(&e, &used.path()))?,
            Purpose::StoreEquality | Purpose::CompareEquality => {
                if bound == Bound::Exact {
                    sealing::equality_token(cipher, ty, payload, weights, filled)
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
                    sealing::order_key(cipher, ty, payload, weights, filled).map_err(weighed)?;
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
            ignore: self.ignore,
            row,
            column: &used.column().name,
            database: &used.table.database,
            table: &used.table.name,
        }
    }

    /// Coerces a value; the payload lies in the scratch buffer.
    fn coerce(&mut self, column: usize, source: Source, stores: bool, row: u64) -> Outcome<Bound> {
        let bound = self.coerced(column, source, stores, row);
        if bound.is_err() {
            self.scratch.refused_among_others = self.others_may_warn(source);
        }
        bound
    }

    fn coerced(&mut self, column: usize, source: Source, stores: bool, row: u64) -> Outcome<Bound> {
        let prepared = self.prepared;
        let used = &prepared.plan.columns[column];
        let Some(ty) = used.column().sql_type.as_ref() else {
            return Err(Failure::refused(&errors::INTERNAL, used.path()));
        };
        let mut payload = std::mem::take(&mut self.scratch.payload);
        let mut literal = std::mem::take(&mut self.scratch.literal);
        let mut warnings = Vec::new();
        payload.clear();
        let result = (|| {
            let default;
            let mut implicit = false;
            let mut is_parameter = false;
            let input = match source {
                Source::Default => match &used.column().default {
                    // which takes its first member, and says nothing
                    None if !used.column().nullable
                        && matches!(ty.kind, Kind::Enum(_))
                        && !(self.updates() && self.state.family == Family::MariaDb) =>
                    {
                        Input::Integer {
                            negative: false,
                            magnitude: 1,
                        }
                    }
                    None if !used.column().nullable => {
                        if self.updates() && self.state.family == Family::MariaDb {
                            return Err(no_default(&used.column().name));
                        }
                        let strict = self.state.sql_mode.is_strict() && !self.ignore;
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
                    Some(ColumnDefault::Literal(DefaultLiteral::Null)) | None
                        if used.column().nullable =>
                    {
                        Input::Null
                    }
                    _ => implicit_default(ty),
                },
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
                        _ => input,
                    };
                    if is_parameter && self.state.family == Family::MySql {
                        check_conversion(ty, input)?;
                    }
                    input
                }
            };
            let mut ctx = self.context(column, row);
            if implicit && matches!(ty.kind, Kind::Timestamp { .. } | Kind::Json) {
                // depending on its settings, the server takes the present time
                return Err(Failure::refused(&errors::VALUE, used.path()));
            }
            if implicit {
                ctx.sql_mode = SqlMode::empty();
            }
            if !stores {
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
            let stored = store(ty, input, &ctx, &mut payload, &mut warnings)
                .map_err(|e| Failure::store(e, &used.path()))?;
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
                    // several rows, or IGNORE: NULL becomes the type's own default
                    let lenient =
                        self.ignore || (self.lenient_nulls && !self.state.sql_mode.is_strict());
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
        self.scratch.payload = payload;
        self.scratch.literal = literal;
        for warning in warnings {
            // a missing default is reported once for a statement, and so are MySQL's NULLs in an INSERT
            let once = warning.code == NO_DEFAULT
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
            _ => Ok(Some(&self.scratch.payload)),
        }
    }

    /// A constant that tier 2 compares a column with: where it stands, and its payload.
    pub fn compared(&mut self, column: usize, source: Source) -> Outcome<(Bound, Vec<u8>)> {
        self.last = None;
        let bound = self.coerce(column, source, false, 1)?;
        Ok((bound, self.scratch.payload.clone()))
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
            Source::Default => return Err(unclear("LIKE")),
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
        self.scratch.payload.clear();
        self.scratch.payload.extend_from_slice(payload);
        self.make(slot, Bound::Exact)
    }

    /// Raises what the server would raise first: a column that has no value and no default.
    fn check_defaults(&self, pieces: &[Piece]) -> Outcome<()> {
        let late = self.state.family == Family::MySql;
        if !self.state.sql_mode.is_strict() || self.ignore || late {
            return Ok(());
        }
        for piece in pieces {
            match piece {
                Piece::Rows { row, .. } => self.check_defaults(row)?,
                Piece::Slot(Slot {
                    column,
                    source: Source::Default,
                    ..
                }) => {
                    let column = self.prepared.plan.columns[*column].column();
                    let is_enum = |t: &SqlType| matches!(t.kind, Kind::Enum(_));
                    if column.default.is_none()
                        && !column.nullable
                        && !column.sql_type.as_ref().is_some_and(is_enum)
                    {
                        return Err(no_default(&column.name));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Appends the text for the server.
    pub fn text(&mut self, pieces: &[Piece], rows: usize, out: &mut Vec<u8>) -> Outcome<()> {
        self.check_defaults(pieces)?;
        self.lenient_nulls |= rows > 1;
        for piece in pieces {
            match piece {
                Piece::Rows {
                    row,
                    first_literal,
                    per_row,
                } => {
                    for n in 0..rows {
                        if n > 0 {
                            out.push(b',');
                        }
                        let base = first_literal + n * per_row;
                        for piece in row {
                            self.piece(piece, base, n as u64 + 1, out)?;
                        }
                    }
                }
                // literals behind folded rows are counted in the whole statement
                other => self.piece(other, 0, 1, out)?,
            }
        }
        Ok(())
    }

    /// Appends pieces of a row.
    pub fn pieces(
        &mut self,
        pieces: &[Piece],
        base: usize,
        row: u64,
        out: &mut Vec<u8>,
    ) -> Outcome<()> {
        pieces
            .iter()
            .try_for_each(|piece| self.piece(piece, base, row, out))
    }

    fn piece(&mut self, piece: &Piece, base: usize, row: u64, out: &mut Vec<u8>) -> Outcome<()> {
        match piece {
            // names are kept in UTF-8, in which such a character set may find a quote less
            Piece::Sql(sql) if self.state.lex_mode().hides_ascii() && !sql.is_ascii() => {
                return Err(Failure::refused(
                    &errors::CHARACTER_SET,
                    "character_set_client",
                ));
            }
            Piece::Sql(sql) => out.extend_from_slice(sql),
            Piece::Literal(index) => self.values.put_literal(index + base, self.state, out)?,
            Piece::Slot(slot) => {
                let used = &self.prepared.plan.columns[slot.column];
                match self.fill(slot, base, row)? {
                    Filled::Null => out.extend_from_slice(b"NULL"),
                    Filled::Bytes(bytes) => put_filled(used, slot.purpose, bytes, out),
                }
            }
            Piece::Indexed(inner) if self.indexed => self.pieces(inner, base, row, out)?,
            Piece::Indexed(_) => {}
            Piece::Rows { .. } => {
                return Err(Failure::refused(&errors::INTERNAL, "rows inside of rows"));
            }
        }
        Ok(())
    }

    /// Appends the parameters for the server's prepared statement.
    pub fn params(
        &mut self,
        pieces: &[Piece],
        rows: usize,
        writer: &mut ExecuteWriter,
        out: &mut Vec<u8>,
    ) -> Outcome<()> {
        for piece in pieces {
            match piece {
                Piece::Rows {
                    row,
                    first_literal,
                    per_row,
                } => {
                    for n in 0..rows {
                        let base = first_literal + n * per_row;
                        for piece in row {
                            self.param(piece, base, n as u64 + 1, writer, out)?;
                        }
                    }
                }
                other => self.param(other, 0, 1, writer, out)?,
            }
        }
        Ok(())
    }

    fn param(
        &mut self,
        piece: &Piece,
        base: usize,
        row: u64,
        writer: &mut ExecuteWriter,
        out: &mut Vec<u8>,
    ) -> Outcome<()> {
        let blob = ParamType::new(ColumnType::BLOB);
        let misfit = |_| Failure::refused(&errors::MALFORMED, "a parameter");
        match piece {
            Piece::Sql(_) => Ok(()),
            Piece::Literal(index) => {
                let Some(n) = self.values.param_number(index + base) else {
                    return Ok(());
                };
                match self.values.long(n) {
                    Some(bytes) => {
                        let ty = self.values.params.get(n).map_or(blob, |p| p.ty);
                        let ty = if ty.kind.is_length_encoded() {
                            ty
                        } else {
                            blob
                        };
                        writer
                            .param(out, ty, &BinaryValue::Bytes(bytes))
                            .map_err(misfit)
                    }
                    None => {
                        let param = self.values.params.get(n).ok_or_else(|| {
                            Failure::refused(&errors::MALFORMED, "a parameter is missing")
                        })?;
                        writer.param(out, param.ty, &param.value).map_err(misfit)
                    }
                }
            }
            Piece::Slot(slot) => {
                let text = ParamType::new(ColumnType::VAR_STRING);
                let is_text = matches!(
                    slot.purpose,
                    Purpose::StoreGrams | Purpose::CandidateGrams(_) | Purpose::CandidateGram(..)
                );
                match self.fill(slot, base, row)? {
                    Filled::Null => writer.param(out, blob, &BinaryValue::Null).map_err(misfit),
                    Filled::Bytes(bytes) => writer
                        .param(
                            out,
                            if is_text { text } else { blob },
                            &BinaryValue::Bytes(bytes),
                        )
                        .map_err(misfit),
                }
            }
            Piece::Indexed(inner) if self.indexed => inner
                .iter()
                .try_for_each(|piece| self.param(piece, base, row, writer, out)),
            Piece::Indexed(_) => Ok(()),
            Piece::Rows { .. } => Err(Failure::refused(&errors::INTERNAL, "rows inside of rows")),
        }
    }
}

/// Appends what a slot was filled with, as a constant for the server.
pub(crate) fn put_filled(used: &ColumnUse, purpose: Purpose, bytes: &[u8], out: &mut Vec<u8>) {
    match purpose {
        // letters, digits and commas: of a binary string neither a full-text search nor a JSON column wants to know
        Purpose::StoreGrams | Purpose::CandidateGrams(_) => {
            if purpose == Purpose::StoreGrams && stores_json(used) {
                out.extend_from_slice(b"_utf8mb4");
            }
            out.push(b'\'');
            out.extend_from_slice(bytes);
            out.push(b'\'');
        }
        Purpose::CandidateGram(..) => out.extend_from_slice(bytes),
        _ => put_hex(bytes, out),
    }
}

fn stores_json(used: &ColumnUse) -> bool {
    matches!(used.column().grams(), Some((_, GramForm::Numbers)))
}

/// The statement text for the server's COM_STMT_PREPARE: every slot and parameter a `?`.
pub(crate) fn prepared_text(
    pieces: &[Piece],
    columns: &[ColumnUse],
    rows: usize,
    values: &Values,
    indexed: bool,
    out: &mut Vec<u8>,
) -> usize {
    let mut count = 0;
    let mut put = |piece: &Piece, base: usize, out: &mut Vec<u8>| match piece {
        Piece::Sql(sql) => out.extend_from_slice(sql),
        Piece::Slot(slot) => {
            // a session of the character set binary would send what no JSON is made of
            let json = slot.purpose == Purpose::StoreGrams
                && columns.get(slot.column).is_some_and(stores_json);
            out.extend_from_slice(if json {
                b"CONVERT(? USING utf8mb4)"
            } else {
                b"?"
            });
            count += 1;
        }
        Piece::Literal(index) => {
            let literal = values.literals.get(index + base);
            if literal.is_some_and(|l| l.kind == LiteralKind::Parameter) {
                count += 1;
            }
            out.extend_from_slice(literal.map_or(b"", |l| l.text(values.sql)));
        }
        Piece::Rows { .. } | Piece::Indexed(_) => {}
    };
    for piece in pieces {
        if let Piece::Indexed(inner) = piece {
            let inner = inner.iter().filter(|_| indexed);
            inner.for_each(|p| put(p, 0, out));
            continue;
        }
        if let Piece::Rows {
            row,
            first_literal,
            per_row,
        } = piece
        {
            for n in 0..rows {
                if n > 0 {
                    out.push(b',');
                }
                row.iter()
                    .for_each(|p| put(p, first_literal + n * per_row, out));
            }
        } else {
            put(piece, 0, out);
        }
    }
    count
}

impl<'a> Values<'a> {
    /// Which bound parameter a literal is.
    fn param_number(&self, index: usize) -> Option<usize> {
        let literal = self.literals.get(index)?;
        (literal.kind == LiteralKind::Parameter).then(|| {
            self.literals[..index]
                .iter()
                .filter(|l| l.kind == LiteralKind::Parameter)
                .count()
        })
    }

    /// Whether a literal is a parameter that was bound as a text.
    pub fn is_text_parameter(&self, index: usize) -> bool {
        self.param_number(index).is_some_and(|n| {
            let bytes = |p: &Param| matches!(p.value, BinaryValue::Bytes(_));
            self.long(n).is_some() || self.params.get(n).is_some_and(bytes)
        })
    }

    /// Whether a literal is `0x41` or `b'1'`: to MariaDB these are numbers where a number is wanted, unlike `x'41'`.
    fn is_hybrid(&self, index: usize) -> bool {
        self.literals.get(index).is_some_and(|l| match l.kind {
            LiteralKind::Hex => l.text(self.sql).starts_with(b"0"),
            kind => kind == LiteralKind::Bits,
        })
    }

    fn long(&self, n: usize) -> Option<&'a [u8]> {
        self.long_data.get(n)?.as_deref()
    }

    /// A literal's or parameter's value.
    pub fn input<'s>(
        &self,
        index: usize,
        negative: bool,
        state: &State,
        scratch: &'s mut Vec<u8>,
        about: impl std::fmt::Display,
    ) -> Outcome<Input<'s>>
    where
        'a: 's,
    {
        let unknown = || Failure::refused(&errors::CHARACTER_SET, about.to_string());
        let charset = state.connection_charset.ok_or_else(unknown)?;
        let client = state.client_charset.ok_or_else(unknown)?;
        let literal = *self
            .literals
            .get(index)
            .ok_or_else(|| Failure::refused(&errors::INTERNAL, "a literal's index"))?;
        let unclear = || Failure::refused(&errors::VALUE, about.to_string());
        if let Some(n) = self.param_number(index) {
            if negative {
                return Err(unclear());
            }
            if let Some(bytes) = self.long(n) {
                let ty = self.params.get(n).map(|p| p.ty.kind);
                return Ok(match ty {
                    Some(kind) if is_blob(kind) => Input::Bytes(bytes),
                    _ => Input::Text {
                        bytes,
                        charset: client,
                    },
                });
            }
            let param = self.params.get(n).ok_or_else(unclear)?;
            let input = param_input(param, client).ok_or_else(unclear)?;
            if client != charset && loses(input, charset) {
                return Err(unclear());
            }
            return Ok(input);
        }
        if literal.kind == LiteralKind::String
            && client != charset
            && !literal.text(self.sql).is_ascii()
        {
            // the server converts literals from the client's to the connection's character set;
            // what that loses is not reproduced
            if client == Charset::Binary || charset == Charset::Binary {
                return Err(unclear());
            }
            let input = onionskin_plan::literal::decode(
                literal.text(self.sql),
                literal.kind,
                negative,
                state.lex_mode(),
                client,
                scratch,
            );
            return input
                .filter(|input| !loses(*input, charset))
                .ok_or_else(unclear);
        }
        onionskin_plan::literal::decode(
            literal.text(self.sql),
            literal.kind,
            negative,
            state.lex_mode(),
            charset,
            scratch,
        )
        .ok_or_else(unclear)
    }

    /// Appends a literal as it stands, or a bound parameter as a literal.
    pub fn put_literal(&self, index: usize, state: &State, out: &mut Vec<u8>) -> Outcome<()> {
        let Some(literal) = self.literals.get(index) else {
            return Err(Failure::refused(&errors::INTERNAL, "a literal's index"));
        };
        let Some(n) = self.param_number(index) else {
            out.extend_from_slice(literal.text(self.sql));
            return Ok(());
        };
        let unclear = || Failure::refused(&errors::VALUE, "a parameter");
        if let Some(bytes) = self.long(n) {
            return put_string(bytes, self.params.get(n).map(|p| p.ty.kind), state, out);
        }
        let param = self.params.get(n).ok_or_else(unclear)?;
        match param.value {
            BinaryValue::Null => out.extend_from_slice(b"NULL"),
            BinaryValue::Int(v) => out.extend_from_slice(v.to_string().as_bytes()),
            BinaryValue::UInt(v) => out.extend_from_slice(v.to_string().as_bytes()),
            BinaryValue::Float(v) => out.extend_from_slice(format!("{v:e}").as_bytes()),
            BinaryValue::Double(v) => out.extend_from_slice(format!("{v:e}").as_bytes()),
            BinaryValue::Bytes(bytes) => {
                return put_string(bytes, Some(param.ty.kind), state, out);
            }
            BinaryValue::DateTime(d) => {
                // a string of its own collation would not go with other strings
                let word = match (d.month, d.day) {
                    (0, _) | (_, 0) => "",
                    _ if param.ty.kind == ColumnType::DATE => "DATE",
                    _ => "TIMESTAMP",
                };
                out.extend_from_slice(word.as_bytes());
                let text = format!(
                    "'{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}'",
                    d.year, d.month, d.day, d.hour, d.minute, d.second, d.microsecond
                );
                let text = if param.ty.kind == ColumnType::DATE {
                    format!("{}'", text.get(..11).unwrap_or_default())
                } else {
                    text
                };
                out.extend_from_slice(text.as_bytes());
            }
            BinaryValue::Time(t) => {
                let sign = if t.negative { "-" } else { "" };
                let hours = u64::from(t.days) * 24 + u64::from(t.hours);
                let text = format!(
                    "'{sign}{hours:02}:{:02}:{:02}.{:06}'",
                    t.minutes, t.seconds, t.microseconds
                );
                out.extend_from_slice(text.as_bytes());
            }
            BinaryValue::LongData => return Err(unclear()),
        }
        Ok(())
    }
}

/// Whether the server would lose something of a text when it makes it the connection's.
fn loses(input: Input<'_>, connection: Charset) -> bool {
    match input {
        Input::Text { bytes, charset } => {
            connection != Charset::Binary && !charset.fits(connection, bytes)
        }
        _ => false,
    }
}

fn is_blob(kind: ColumnType) -> bool {
    matches!(
        kind,
        ColumnType::BLOB | ColumnType::TINY_BLOB | ColumnType::MEDIUM_BLOB | ColumnType::LONG_BLOB
    )
}

/// A string parameter as a literal that means the same under every `sql_mode`.
fn put_string(
    bytes: &[u8],
    kind: Option<ColumnType>,
    state: &State,
    out: &mut Vec<u8>,
) -> Outcome<()> {
    if !kind.is_some_and(is_blob)
        && let Some(charset) = state.client_charset.filter(|&c| c != Charset::Binary)
    {
        if charset.valid_prefix(bytes) < bytes.len() {
            // a parameter may be ill-formed, a literal may not
            return Err(Failure::refused(&errors::VALUE, "a parameter"));
        }
        out.push(b'_');
        out.extend_from_slice(charset.name().as_bytes());
        out.push(b' ');
    }
    put_hex(bytes, out);
    Ok(())
}

fn param_input<'p>(param: &Param<'p>, client: Charset) -> Option<Input<'p>> {
    Some(match param.value {
        BinaryValue::Null => Input::Null,
        BinaryValue::Int(v) => Input::Integer {
            negative: v < 0,
            magnitude: v.unsigned_abs(),
        },
        BinaryValue::UInt(v) => Input::Integer {
            negative: false,
            magnitude: v,
        },
        BinaryValue::Float(v) => Input::Double(f64::from(v)),
        BinaryValue::Double(v) => Input::Double(v),
        BinaryValue::Bytes(bytes) => match param.ty.kind {
            ColumnType::DECIMAL | ColumnType::NEWDECIMAL => Input::Decimal(bytes),
            kind if is_blob(kind) => Input::Bytes(bytes),
            ColumnType::STRING | ColumnType::VAR_STRING | ColumnType::VARCHAR => Input::Text {
                bytes,
                charset: client,
            },
            _ => return None,
        },
        BinaryValue::DateTime(d) => Input::Temporal(DateTimeParts {
            kind: if param.ty.kind == ColumnType::DATE {
                TemporalKind::Date
            } else {
                TemporalKind::DateTime
            },
            negative: false,
            year: d.year,
            month: d.month,
            day: d.day,
            hour: u32::from(d.hour),
            minute: d.minute,
            second: d.second,
            micros: d.microsecond,
        }),
        BinaryValue::Time(t) => Input::Temporal(DateTimeParts {
            kind: TemporalKind::Time,
            negative: t.negative,
            year: 0,
            month: 0,
            day: 0,
            hour: t.days.checked_mul(24)?.checked_add(u32::from(t.hours))?,
            minute: t.minutes,
            second: t.seconds,
            micros: t.microseconds,
        }),
        BinaryValue::LongData => return None,
    })
}

/// What a NOT NULL column without a default gets where the server is not strict.
fn implicit_default(ty: &SqlType) -> Input<'static> {
    let number = ty.is_numeric() || ty.is_bit() || matches!(ty.kind, Kind::Set(_) | Kind::Year);
    if ty.is_temporal() || number {
        Input::Integer {
            negative: false,
            magnitude: 0,
        }
    } else if ty.is_binary() {
        Input::Bytes(b"")
    } else {
        Input::Text {
            bytes: b"",
            charset: Charset::Utf8mb4,
        }
    }
}

/// MySQL converts a parameter to the character set of the column that it is for before anything
/// else, and does not where that would lose characters.
fn check_conversion(ty: &SqlType, input: Input<'_>) -> Outcome<()> {
    let (Input::Text { bytes, charset }, Some(collation)) = (input, ty.collation) else {
        return Ok(());
    };
    let target = collation.charset();
    if charset == target || charset.same_bytes(target, bytes) {
        return Ok(());
    }
    let mut rest = bytes;
    let mut converted = Vec::new();
    while !rest.is_empty() {
        match charset.decode(rest) {
            Some((code, length)) if target.encode(code, &mut converted) => rest = &rest[length..],
            _ => {
                return Err(Failure::Value(ValueError {
                    code: IMPOSSIBLE_CONVERSION,
                    sqlstate: *b"HY000",
                    message: format!(
                        "Conversion from collation {} into {} impossible for parameter",
                        charset.name(),
                        collation.name()
                    ),
                }));
            }
        }
    }
    Ok(())
}

/// The number that `0x41` means; `None` if it has more than 64 bits.
fn number_of_hybrid(bytes: &[u8]) -> Option<Input<'static>> {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
    (bytes.len() <= 8).then(|| Input::Integer {
        negative: false,
        magnitude: number(bytes),
    })
}

/// Whether the server raises an error of a value before it looks for rows.
pub(crate) fn is_early(error: &ValueError, family: Family) -> bool {
    match family {
        Family::MySql => error.code == IMPOSSIBLE_CONVERSION,
        Family::MariaDb => error.code == NO_DEFAULT,
    }
}

fn cannot_be_null(column: &str) -> ValueError {
    ValueError {
        code: NOT_NULL,
        sqlstate: *b"23000",
        message: format!("Column '{column}' cannot be null"),
    }
}

fn null_warning(column: &str) -> Warning {
    Warning {
        level: Level::Warning,
        code: NOT_NULL,
        message: format!("Column '{column}' cannot be null"),
    }
}

fn no_default(column: &str) -> Failure {
    Failure::Value(ValueError {
        code: NO_DEFAULT,
        sqlstate: *b"HY000",
        message: format!("Field '{column}' doesn't have a default value"),
    })
}

fn no_default_warning(column: &str) -> Warning {
    Warning {
        level: Level::Warning,
        code: 1364,
        message: format!("Field '{column}' doesn't have a default value"),
    }
}

/// `x'0a0b'`
pub(crate) fn put_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"x'");
    let start = out.len();
    // with the quote, so that room is made once
    out.resize(start + bytes.len() * 2 + 1, b'\'');
    let (digits, _) = out[start..].as_chunks_mut::<2>();
    for (two, b) in digits.iter_mut().zip(bytes) {
        *two = [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]];
    }
}

/// The bytes that HEX() made digits of; `None` if these are none.
pub(crate) fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |b: u8| {
        char::from(b)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_hexadecimal_literals() {
        let mut out = Vec::new();
        put_hex(&[0, 0xff, 0x1a], &mut out);
        assert_eq!(out, b"x'00ff1a'");
    }
    #[test]
    fn digits_become_bytes() {
        assert_eq!(unhex(b"00fF5c"), Some(vec![0, 255, 0x5c]));
        assert_eq!(unhex(b""), Some(Vec::new()));
        assert_eq!(unhex(b"0"), None);
        assert_eq!(unhex(b"0g"), None);
    }
}
