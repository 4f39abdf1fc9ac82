//! What a plain column of a unique key holds once a value is stored in it.
//!
//! Two rows of one statement may spell a key otherwise: `'a'` and `'A'`, `1` and `'1.00'`. And what
//! is stored may be another value than was given: `1.001` in a `DECIMAL(8,2)`. The server finds
//! that out when it stores the row. Here it has to be known before.

use onionskin_plan::Piece;
use onionskin_value::{
    Charset, FormatContext, Input, Kind, SqlMode, SqlType, Stored, TimeZone, format_text, store,
    weight,
};

use super::Binder;
use crate::error::Failure;
use crate::hex::put_hex;

/// A value that a plain column gets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PlainValue {
    /// NULL, or one that the server refuses: no row is met by it.
    MeetsNothing,
    /// A value.
    Known {
        /// The same for two values where the key takes them for equal.
        weight: Vec<u8>,
        /// The stored value as a literal, where a comparison with what was given would find others.
        literal: Option<Vec<u8>>,
    },
    /// The server makes of it what it will.
    Unknown,
}

/// A plain column of a key.
pub(crate) struct PlainColumn<'c> {
    pub name: &'c str,
    pub ty: &'c SqlType,
    pub nullable: bool,
    pub auto_increment: bool,
    /// The key covers so many characters or bytes.
    pub prefix: Option<usize>,
}

/// How a constant of a statement is written.
struct Written {
    literal: usize,
    negative: bool,
    /// Behind DATE, TIME or TIMESTAMP.
    temporal: bool,
}

impl Binder<'_> {
    /// What the column holds once the value of these pieces is stored.
    pub fn plain_value(
        &mut self,
        column: &PlainColumn,
        pieces: &[Piece],
        base: usize,
        row: u64,
    ) -> PlainValue {
        let mut scratch = Vec::new();
        match self.given_plain(column, pieces, base, &mut scratch) {
            Some(input) => self.plain_input(column, input, row),
            None => PlainValue::Unknown,
        }
    }

    /// What these pieces give the column; `None` where that is more than a constant.
    fn given_plain<'s>(
        &'s self,
        column: &PlainColumn,
        pieces: &[Piece],
        base: usize,
        scratch: &'s mut Vec<u8>,
    ) -> Option<Input<'s>> {
        match word_of(pieces).as_deref() {
            Some(b"null") => return Some(Input::Null),
            Some(b"true") => return Some(Input::Bool(true)),
            Some(b"false") => return Some(Input::Bool(false)),
            Some(_) => return None,
            None => {}
        }
        let written = written(pieces)?;
        if written.temporal && !is_temporal(column.ty) {
            return None;
        }
        let input = self.values.input_for(
            Some(column.ty),
            written.literal + base,
            written.negative,
            self.state,
            scratch,
            column.name,
        );
        input.ok()
    }

    /// The text of the value that the column holds then, as a result in UTF-8 shows it. `None`
    /// where it is NULL, or another value than was given, or not known before it is stored.
    pub(super) fn plain_text(
        &self,
        column: &PlainColumn,
        pieces: &[Piece],
        base: usize,
        row: u64,
    ) -> Option<Vec<u8>> {
        let mut scratch = Vec::new();
        let input = self.given_plain(column, pieces, base, &mut scratch)?;
        let mut ctx = self.context(0, row);
        ctx.column = column.name;
        let (mut payload, mut warnings) = (Vec::new(), Vec::new());
        let stored = store(column.ty, input, &ctx, &mut payload, &mut warnings);
        if !matches!(stored, Ok(Stored::Value)) || !warnings.is_empty() {
            return None;
        }
        let text = self.text_of(column.ty, &payload)?;
        // the next number
        let makes_number = !self.state.sql_mode.contains(SqlMode::NO_AUTO_VALUE_ON_ZERO);
        let is_made = column.auto_increment && makes_number && text == b"0";
        (!is_made).then_some(text)
    }

    fn plain_input(&self, column: &PlainColumn, input: Input<'_>, row: u64) -> PlainValue {
        let ty = column.ty;
        // comparisons with it find others
        if ty.kind == Kind::Float {
            return PlainValue::Unknown;
        }
        let mut ctx = self.context(0, row);
        ctx.column = column.name;
        let (mut payload, mut warnings) = (Vec::new(), Vec::new());
        let stored = store(ty, input, &ctx, &mut payload, &mut warnings);
        match stored.map_err(|error| Failure::store(error, column.name)) {
            Ok(Stored::Null) if column.nullable || column.auto_increment => {
                return PlainValue::MeetsNothing;
            }
            Ok(Stored::Value) => {}
            // what it then is depends on more
            Ok(Stored::Null | Stored::NullOrValue) => return PlainValue::Unknown,
            Err(Failure::Value(_)) => return PlainValue::MeetsNothing,
            Err(_) => return PlainValue::Unknown,
        }
        let Some(text) = self.text_of(ty, &payload) else {
            return PlainValue::Unknown;
        };
        let makes_number = !self.state.sql_mode.contains(SqlMode::NO_AUTO_VALUE_ON_ZERO);
        if column.auto_increment && makes_number && text == b"0" {
            return PlainValue::MeetsNothing;
        }
        if let Some(prefix) = column.prefix
            && payload.len() > prefix
        {
            // elsewhere a character may have several bytes, as with zeros in UTF-16
            if !payload.is_ascii() || payload.contains(&0) {
                return PlainValue::Unknown;
            }
            payload.truncate(prefix);
        }
        let mut weights = Vec::new();
        if weight(ty, &payload, &mut weights).is_err() {
            return PlainValue::Unknown;
        }
        let is_as_given = matches!(input, Input::Text { .. }) && warnings.is_empty();
        PlainValue::Known {
            weight: weights,
            literal: literal(ty, &payload, &text, is_as_given),
        }
    }

    /// The value as a result in UTF-8 shows it.
    fn text_of(&self, ty: &SqlType, payload: &[u8]) -> Option<Vec<u8>> {
        let ctx = FormatContext {
            time_zone: &TimeZone::UTC,
            family: self.state.family,
            results_charset: Charset::Utf8mb4,
            pad_char: false,
        };
        let mut text = Vec::new();
        format_text(ty, payload, &ctx, &mut text).ok()?;
        Some(text)
    }
}

/// The stored value as a literal. `None`: what was given finds it.
fn literal(ty: &SqlType, payload: &[u8], text: &[u8], is_as_given: bool) -> Option<Vec<u8>> {
    let mut literal = Vec::new();
    match ty.kind {
        _ if ty.is_integer() => literal.extend_from_slice(text),
        Kind::Decimal { .. } => literal.extend_from_slice(text),
        Kind::Date | Kind::Time { .. } | Kind::DateTime { .. } | Kind::Year => {
            literal.push(b'\'');
            literal.extend_from_slice(text);
            literal.push(b'\'');
        }
        Kind::Bit { .. } | Kind::Enum(_) | Kind::Set(_) => {
            let number = payload.iter().try_fold(0u64, |number, byte| {
                let number = number.checked_mul(256)?;
                Some(number + u64::from(*byte))
            })?;
            literal.extend_from_slice(number.to_string().as_bytes());
        }
        _ if is_as_given => return None,
        Kind::Binary { .. }
        | Kind::VarBinary { .. }
        | Kind::TinyBlob
        | Kind::Blob
        | Kind::MediumBlob
        | Kind::LongBlob => put_hex(text, &mut literal),
        Kind::Char { .. }
        | Kind::VarChar { .. }
        | Kind::TinyText
        | Kind::Text
        | Kind::MediumText
        | Kind::LongText => {
            literal.extend_from_slice(b"_utf8mb4 ");
            put_hex(text, &mut literal);
        }
        _ => return None,
    }
    Some(literal)
}

fn is_temporal(ty: &SqlType) -> bool {
    matches!(
        ty.kind,
        Kind::Date | Kind::Time { .. } | Kind::DateTime { .. } | Kind::Timestamp { .. }
    )
}

/// The one word that the pieces are, in small letters.
fn word_of(pieces: &[Piece]) -> Option<Vec<u8>> {
    match pieces {
        [Piece::Sql(sql)] => Some(sql.trim_ascii().to_ascii_lowercase()),
        _ => None,
    }
}

fn written(pieces: &[Piece]) -> Option<Written> {
    let mut written = Written {
        literal: 0,
        negative: false,
        temporal: false,
    };
    let (literal, before) = pieces.split_last()?;
    let Piece::Literal(literal) = literal else {
        return None;
    };
    written.literal = *literal;
    match word_of(before).as_deref() {
        None if before.is_empty() => {}
        Some(b"" | b"+") => {}
        Some(b"-") => written.negative = true,
        Some(b"date" | b"time" | b"timestamp") => written.temporal = true,
        _ => return None,
    }
    Some(written)
}
