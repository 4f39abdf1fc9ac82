//! The values of one execution: literals of the text, and bound parameters.

use onionskin_plan::{ColumnUse, Literal, LiteralKind, errors};
use onionskin_value::{Charset, DateTimeParts, Family, Input, SqlType, TemporalKind};
use onionskin_wire::binary_value::{DateTime, Time};
use onionskin_wire::messages::Param;
use onionskin_wire::{BinaryValue, ColumnType};

use super::{FromVariable, put_quoted};
use crate::error::{Failure, Outcome};
use crate::hex::put_hex;
use crate::state::State;

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
    /// Literals that stand for user variables.
    pub from_variables: &'a [FromVariable],
}

impl<'a> Values<'a> {
    /// Of a text with these literals.
    pub fn of_text(sql: &'a [u8], literals: &'a [Literal]) -> Self {
        Self {
            sql,
            literals,
            ..Self::none()
        }
    }

    /// Of a text that has none.
    pub fn none() -> Self {
        Self {
            sql: &[],
            literals: &[],
            params: &[],
            long_data: &[],
            from_variables: &[],
        }
    }

    /// The user variable that a literal stands for.
    pub(super) fn variable(&self, literal: &Literal) -> Option<&'a FromVariable> {
        let starts = |v: &&FromVariable| v.start == literal.start;
        self.from_variables.iter().find(starts)
    }

    /// Which bound parameter a literal is.
    pub(super) fn param_number(&self, index: usize) -> Option<usize> {
        let literal = self.literals.get(index)?;
        (literal.kind == LiteralKind::Parameter).then(|| {
            self.literals[..index]
                .iter()
                .filter(|l| l.kind == LiteralKind::Parameter)
                .count()
        })
    }

    /// Whether a literal is a parameter.
    pub fn is_parameter(&self, index: usize) -> bool {
        let literal = self.literals.get(index);
        literal.is_some_and(|l| l.kind == LiteralKind::Parameter)
    }

    /// Whether a literal is a parameter or a variable's value.
    pub(super) fn is_bound(&self, index: usize) -> bool {
        let literal = self.literals.get(index);
        literal.is_some_and(|l| l.kind == LiteralKind::Parameter || self.variable(l).is_some())
    }

    /// Whether a parameter is bound to an integer.
    pub(super) fn is_integer(&self, n: usize) -> bool {
        let value = self.params.get(n).map(|param| &param.value);
        matches!(value, Some(BinaryValue::Int(_) | BinaryValue::UInt(_)))
    }

    /// Whether a literal is a parameter that was bound as a text.
    pub fn is_text_parameter(&self, index: usize) -> bool {
        self.param_number(index).is_some_and(|n| {
            let bytes = |p: &Param| matches!(p.value, BinaryValue::Bytes(_));
            self.long(n).is_some() || self.params.get(n).is_some_and(bytes)
        })
    }

    /// Whether a literal is `0x41` or `b'1'`: to MariaDB these are numbers where a number is
    /// wanted, unlike `x'41'`.
    pub(super) fn is_hybrid(&self, index: usize) -> bool {
        self.literals.get(index).is_some_and(|l| match l.kind {
            LiteralKind::Hex => l.text(self.sql).starts_with(b"0"),
            kind => kind == LiteralKind::Bits,
        })
    }

    pub(super) fn long(&self, n: usize) -> Option<&'a [u8]> {
        self.long_data.get(n)?.as_deref()
    }

    /// A literal's or parameter's value, where no column of bytes takes it.
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
        self.input_for(None, index, negative, state, scratch, about)
    }

    /// A literal's or parameter's value, for a column of this type.
    pub fn input_for<'s>(
        &self,
        ty: Option<&SqlType>,
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
            let input = match self.long(n) {
                Some(bytes) => match self.params.get(n).map(|p| p.ty.kind) {
                    Some(kind) if is_blob(kind) => Input::Bytes(bytes),
                    _ => Input::Text {
                        bytes,
                        charset: client,
                    },
                },
                None => {
                    let param = self.params.get(n).ok_or_else(unclear)?;
                    param_input(param, client).ok_or_else(unclear)?
                }
            };
            return match input {
                Input::Text { bytes, .. }
                    if client != charset
                        && client != Charset::Binary
                        && charset != Charset::Binary
                        && !bytes.is_ascii() =>
                {
                    let converted = converted(bytes, client, charset, scratch);
                    let stays_bytes = ty.is_some_and(SqlType::is_binary);
                    match (converted, state.family) {
                        (None, _) => Err(unclear()),
                        // MySQL converts to the column's set, if it has one
                        (Some(_), Family::MySql) if !stays_bytes => Ok(input),
                        (Some(converted), _) => Ok(converted),
                    }
                }
                input => Ok(input),
            };
        }
        if self.variable(&literal).is_some() && ty.is_some_and(SqlType::is_binary) {
            let mut text = Vec::new();
            let sql = literal.text(self.sql);
            let mode = state.lex_mode();
            let input = onionskin_plan::literal::decode(
                sql,
                literal.kind,
                negative,
                mode,
                charset,
                &mut text,
            );
            // MySQL makes it the connection's before it takes the bytes
            if let Some(Input::Text {
                bytes,
                charset: own,
            }) = input
                && own != charset
                && own != Charset::Binary
            {
                return converted(bytes, own, charset, scratch).ok_or_else(unclear);
            }
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
            let mut text = Vec::new();
            let input = onionskin_plan::literal::decode(
                literal.text(self.sql),
                literal.kind,
                negative,
                state.lex_mode(),
                client,
                &mut text,
            );
            let Some(Input::Text { bytes, .. }) = input else {
                return Err(unclear());
            };
            return converted(bytes, client, charset, scratch).ok_or_else(unclear);
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

    /// The texts of these literals and parameters one behind the other, as `CONCAT` has them: in
    /// the connection's character set, NULL if one of them is. `used` is the column that they are
    /// compared with.
    pub fn joined<'s>(
        &self,
        range: std::ops::Range<usize>,
        state: &State,
        scratch: &'s mut Vec<u8>,
        used: &ColumnUse,
    ) -> Outcome<Input<'s>> {
        let unclear = || Failure::refused(&errors::VALUE, format!("{} (CONCAT)", used.path()));
        scratch.clear();
        let mut part = Vec::new();
        for index in range {
            match self.input(index, false, state, &mut part, used)? {
                Input::Null => return Ok(Input::Null),
                Input::Integer {
                    negative,
                    magnitude,
                } => {
                    let sign = if negative { "-" } else { "" };
                    scratch.extend_from_slice(format!("{sign}{magnitude}").as_bytes());
                }
                Input::Text { bytes, .. } => scratch.extend_from_slice(bytes),
                _ => return Err(unclear()),
            }
        }
        let Some(charset) = state.connection_charset else {
            return Err(unclear());
        };
        // What servers do about other character sets depends on where the texts come from.
        let column = used.column().sql_type.map(|ty| ty.charset());
        let is_own = state.client_charset == Some(charset) && column == Some(charset);
        let is_whole = charset.valid_prefix(scratch) == scratch.len();
        if !(is_own || charset.has_ascii() && scratch.is_ascii()) || !is_whole {
            return Err(unclear());
        }
        Ok(Input::Text {
            bytes: scratch,
            charset,
        })
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
            // servers take it for the double of the same value
            BinaryValue::Float(v) => {
                out.extend_from_slice(format!("{:e}", f64::from(v)).as_bytes());
            }
            BinaryValue::Double(v) => out.extend_from_slice(format!("{v:e}").as_bytes()),
            BinaryValue::Bytes(bytes) if is_decimal(param.ty.kind, bytes) => {
                out.extend_from_slice(bytes);
                if !bytes.contains(&b'.') {
                    out.push(b'.');
                }
            }
            // a number to servers, whatever stands in it
            BinaryValue::Bytes(_) if is_decimal_type(param.ty.kind) => return Err(unclear()),
            BinaryValue::Bytes(bytes) => {
                return put_string(bytes, Some(param.ty.kind), state, out);
            }
            BinaryValue::DateTime(d) => put_date_time(&d, param.ty.kind, out),
            BinaryValue::Time(t) => put_time(&t, out)?,
            BinaryValue::LongData => return Err(unclear()),
        }
        Ok(())
    }
}

/// Appends a date, with its time of day unless it is a DATE.
fn put_date_time(d: &DateTime, kind: ColumnType, out: &mut Vec<u8>) {
    // a string of its own collation would not go with other strings
    let word = match (d.month, d.day) {
        (0, _) | (_, 0) => "",
        _ if kind == ColumnType::DATE => "DATE",
        _ => "TIMESTAMP",
    };
    let mut text = format!("{word}'{:04}-{:02}-{:02}", d.year, d.month, d.day);
    if kind != ColumnType::DATE {
        text += &format!(" {:02}:{:02}:{:02}", d.hour, d.minute, d.second);
        text += &fraction(d.microsecond);
    }
    out.extend_from_slice(text.as_bytes());
    out.push(b'\'');
}

/// Appends a time, which is more than a string beside numbers and years.
fn put_time(t: &Time, out: &mut Vec<u8>) -> Outcome<()> {
    const MAX_HOURS: u64 = 838;
    let sign = if t.negative { "-" } else { "" };
    let hours = u64::from(t.days) * 24 + u64::from(t.hours);
    if hours > MAX_HOURS {
        return Err(Failure::refused(&errors::VALUE, "a parameter"));
    }
    let (minutes, seconds) = (t.minutes, t.seconds);
    let text = format!("TIME'{sign}{hours:02}:{minutes:02}:{seconds:02}");
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(fraction(t.microseconds).as_bytes());
    out.push(b'\'');
    Ok(())
}

/// A fraction of a second. Servers make none of a parameter without one when they store it as text.
fn fraction(microseconds: u32) -> String {
    match microseconds {
        0 => String::new(),
        _ => format!(".{microseconds:06}"),
    }
}

/// A text in another character set, as the server makes it; `None` where that would lose something.
pub(crate) fn converted<'s>(
    bytes: &[u8],
    from: Charset,
    to: Charset,
    scratch: &'s mut Vec<u8>,
) -> Option<Input<'s>> {
    scratch.clear();
    let mut at = 0;
    while at < bytes.len() {
        let (code, length) = from.decode(&bytes[at..])?;
        if !to.encode(code, scratch) {
            return None;
        }
        at += length;
    }
    Some(Input::Text {
        bytes: scratch,
        charset: to,
    })
}

fn is_blob(kind: ColumnType) -> bool {
    matches!(
        kind,
        ColumnType::BLOB | ColumnType::TINY_BLOB | ColumnType::MEDIUM_BLOB | ColumnType::LONG_BLOB
    )
}

fn is_decimal_type(kind: ColumnType) -> bool {
    matches!(kind, ColumnType::DECIMAL | ColumnType::NEWDECIMAL)
}

/// Whether a parameter is a decimal number that is written as a literal would be.
fn is_decimal(kind: ColumnType, bytes: &[u8]) -> bool {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    is_decimal_type(kind)
        && digits.first().is_some_and(u8::is_ascii_digit)
        && digits.iter().all(|b| b.is_ascii_digit() || *b == b'.')
        && digits.iter().filter(|b| **b == b'.').count() <= 1
}

/// A string parameter as a literal. It stands without the name of a character set, because such a
/// text would have that set's own collation, and a parameter has the connection's.
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
        let mode = state.lex_mode();
        let may_end_it = charset.hides_ascii() || mode.no_backslash_escapes;
        if may_end_it && bytes.contains(&b'\\') {
            // It may be a half of a character. And if it is not written twice, it would escape the
            // last quote in a session that a program has given another sql_mode unseen.
            return Err(Failure::refused(&errors::VALUE, "a parameter"));
        }
        put_quoted(bytes, mode, out);
        return Ok(());
    }
    // without the name of its set it would be a number beside numbers
    out.extend_from_slice(b"_binary ");
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

/// The number that `0x41` means; `None` if it has more than 64 bits.
pub(super) fn number_of_hybrid(bytes: &[u8]) -> Option<Input<'static>> {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
    (bytes.len() <= 8).then(|| Input::Integer {
        negative: false,
        magnitude: number(bytes),
    })
}
