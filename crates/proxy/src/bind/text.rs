//! The text or the parameters that the server gets, with every slot filled.

use onionskin_plan::{
    ColumnUse, LexMode, LiteralKind, Piece, PlainTime, Purpose, Slot, Source, errors,
};
use onionskin_schema::GramForm;
use onionskin_value::{Family, Kind, SqlType};
use onionskin_wire::messages::ExecuteWriter;
use onionskin_wire::{BinaryValue, ColumnType, ParamType};

use super::rules::no_default;
use super::{Binder, Filled, PlainParameters, Values};
use crate::error::{Failure, Outcome};
use crate::hex::put_hex;
use crate::state::State;

impl Binder<'_> {
    /// Raises what the server would raise first: a column that has no value and no default.
    fn check_defaults(&self, pieces: &[Piece]) -> Outcome<()> {
        let late = self.state.family == Family::MySql;
        if !self.state.sql_mode.is_strict() || self.mode.ignore || late {
            return Ok(());
        }
        for piece in pieces {
            match piece {
                Piece::Rows { row, .. } => self.check_defaults(row)?,
                Piece::Slot(Slot {
                    column,
                    source: Source::Default | Source::Omitted { .. },
                    ..
                }) => {
                    let column = self.keyed.plan.columns[*column].column();
                    let is_enum = |t: &SqlType| matches!(t.kind, Kind::Enum(_));
                    if column.default.is_none()
                        && !column.nullable
                        && !column.sql_type.as_ref().is_some_and(is_enum)
                    {
                        return Err(Failure::Value(no_default(&column.name)));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Appends the text for the server.
    pub fn text(&mut self, pieces: &[Piece], rows: usize, out: &mut Vec<u8>) -> Outcome<()> {
        if let Err(failure) = self.check_defaults(pieces) {
            self.buffers.before_refused.clear();
            self.buffers.refused_times = 1;
            // the server would have looked at the values before it
            self.buffers.refused_among_others =
                !self.updates() && self.others_may_warn(Source::Default);
            return Err(failure);
        }
        self.mode.lenient_nulls |= rows > 1;
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
            Piece::Sql(sql) => {
                check_sql(sql, self.state)?;
                out.extend_from_slice(sql);
            }
            Piece::Literal(index) => {
                self.plain_may_warn |= self.may_warn(index + base);
                if self.checks_moments {
                    self.check_moment(index + base)?;
                }
                if !self.put_parameter(index + base, out)? {
                    self.must_be_held(index + base)?;
                    self.values.put_literal(index + base, self.state, out)?;
                }
            }
            Piece::Slot(slot) => {
                let used = &self.keyed.plan.columns[slot.column];
                let mut mode = self.state.lex_mode();
                // within another text there are no bytes that are no characters
                mode.no_backslash_escapes |=
                    matches!(self.plain_parameters, PlainParameters::Kept(_));
                match self.fill(slot, base, row)? {
                    Filled::Null => out.extend_from_slice(b"NULL"),
                    Filled::Bytes(bytes) => put_filled(used, slot.purpose, bytes, mode, out),
                }
            }
            Piece::Present(time) => {
                out.push(b'\'');
                out.extend_from_slice(self.told(*time)?);
                out.push(b'\'');
            }
            Piece::Tenant { column, value } => self.note_tenant(*column, value, base, row),
            Piece::Indexed(inner) if self.indexed => self.pieces(inner, base, row, out)?,
            Piece::Indexed(_) => {}
            Piece::Rows { .. } => {
                return Err(Failure::refused(&errors::INTERNAL, "rows inside of rows"));
            }
        }
        Ok(())
    }

    /// The statement's time, as a text for a plain column.
    fn told(&self, time: PlainTime) -> Outcome<&[u8]> {
        let Some(present) = &self.buffers.present else {
            return Err(Failure::refused(&errors::INTERNAL, "the statement's time"));
        };
        let about = "the present time in the hour that clocks repeat";
        let text = present.text(time);
        text.ok_or_else(|| Failure::refused(&errors::VALUE, about))
    }

    /// Appends the parameters for the server's prepared statement.
    pub fn params(
        &mut self,
        pieces: &[Piece],
        rows: usize,
        writer: &mut ExecuteWriter,
        out: &mut Vec<u8>,
    ) -> Outcome<()> {
        self.must_mean_the_same(pieces)?;
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
                    self.plain_may_warn |= self.may_warn(index + base);
                    return Ok(());
                };
                self.plain_may_warn |= !self.values.is_integer(n);
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
            Piece::Present(time) => {
                let text = BinaryValue::Bytes(self.told(*time)?);
                writer
                    .param(out, ParamType::new(ColumnType::VAR_STRING), &text)
                    .map_err(misfit)
            }
            Piece::Tenant { column, value } => {
                self.note_tenant(*column, value, base, row);
                Ok(())
            }
            Piece::Indexed(inner) if self.indexed => inner
                .iter()
                .try_for_each(|piece| self.param(piece, base, row, writer, out)),
            Piece::Indexed(_) => Ok(()),
            Piece::Rows { .. } => Err(Failure::refused(&errors::INTERNAL, "rows inside of rows")),
        }
    }
}

/// Refuses a text of the proxy's own that the server would read as something else. Names are kept
/// in UTF-8. In a character set like gbk, the end of such a character and the quote behind it may
/// be one character.
fn check_sql(sql: &[u8], state: &State) -> Outcome<()> {
    if state.lex_mode().hides_ascii() && !sql.is_ascii() {
        let about = "character_set_client, with names beyond ASCII";
        return Err(Failure::refused(&errors::CHARACTER_SET, about));
    }
    Ok(())
}

/// The same of the pieces of a text.
pub(crate) fn check_pieces(pieces: &[Piece], state: &State) -> Outcome<()> {
    pieces.iter().try_for_each(|piece| match piece {
        Piece::Sql(sql) => check_sql(sql, state),
        Piece::Rows { row: inner, .. } | Piece::Indexed(inner) => check_pieces(inner, state),
        Piece::Literal(_) | Piece::Slot(_) | Piece::Present(_) | Piece::Tenant { .. } => Ok(()),
    })
}

/// Appends what a slot was filled with, as a constant for the server.
pub(crate) fn put_filled(
    used: &ColumnUse,
    purpose: Purpose,
    bytes: &[u8],
    mode: LexMode,
    out: &mut Vec<u8>,
) {
    match purpose {
        // letters, digits and commas, as a text: neither a full-text search nor a JSON column takes
        // a binary string
        Purpose::StoreGrams | Purpose::CandidateGrams(_) => {
            if purpose == Purpose::StoreGrams && stores_json(used) {
                out.extend_from_slice(b"_utf8mb4");
            }
            out.push(b'\'');
            out.extend_from_slice(bytes);
            out.push(b'\'');
        }
        Purpose::CandidateGram(..) => out.extend_from_slice(bytes),
        _ => put_bytes(bytes, mode, out),
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
        Piece::Present(_) => {
            out.extend_from_slice(b"?");
            count += 1;
        }
        Piece::Literal(index) => {
            let literal = values.literals.get(index + base);
            if literal.is_some_and(|l| l.kind == LiteralKind::Parameter) {
                count += 1;
            }
            out.extend_from_slice(literal.map_or(b"", |l| l.text(values.sql)));
        }
        Piece::Rows { .. } | Piece::Indexed(_) | Piece::Tenant { .. } => {}
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

/// Appends a text of the client's character set in quotes. Where that hides ASCII in characters, it
/// must have no backslash.
pub(crate) fn put_quoted(text: &[u8], mode: LexMode, out: &mut Vec<u8>) {
    out.push(b'\'');
    for &byte in text {
        match byte {
            b'\'' => out.extend_from_slice(b"''"),
            b'\\' if !mode.no_backslash_escapes => out.extend_from_slice(b"\\\\"),
            _ => out.push(byte),
        }
    }
    out.push(b'\'');
}

/// From this length on digits cost more than escapes.
const LONG: usize = 1024;

/// Appends bytes as a binary constant: as hexadecimal digits, which double its length. If the bytes
/// are many and the session's settings allow it, they are written with escapes instead. What the
/// servers' own clients escape is escaped, so that the text can go through them.
pub(crate) fn put_bytes(bytes: &[u8], mode: LexMode, out: &mut Vec<u8>) {
    if bytes.len() < LONG || mode.no_backslash_escapes || mode.hides_ascii() {
        return put_hex(bytes, out);
    }
    let escape = |byte: &u8| match byte {
        0 => Some(b'0'),
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        0x1a => Some(b'Z'),
        b'\'' | b'\\' => Some(*byte),
        _ => None,
    };
    out.reserve(bytes.len() + bytes.len() / 32);
    out.extend_from_slice(b"_binary'");
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|b| escape(b).is_some()) {
        out.extend_from_slice(&rest[..at]);
        out.push(b'\\');
        out.extend(escape(&rest[at]));
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'\'');
}
