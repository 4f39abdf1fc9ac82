//! Storing: what INSERT and UPDATE do to a value on its way into a column.

mod bit;
mod enumerated;
mod fixed_binary;
mod json;
mod number;
mod string;
mod temporal;
pub(crate) mod temporal_text;

use crate::charset::Charset;
use crate::context::{Context, Input, Level, Report, StoreError, Stored, Warning};
use crate::types::{Family, Kind, SqlType};

pub(crate) use enumerated::{hides_number, number_text};
pub(crate) use number::{RealPrefix, real_prefix};

/// Whether a text that is no string's has to be read, for a number or a date, in a character set
/// whose rules for that are not reproduced: which bytes are blanks, and how the rest is shown in
/// errors.
pub(crate) fn is_foreign(ty: &SqlType, input: Input<'_>) -> bool {
    let Input::Text { bytes, charset } = input else {
        return false;
    };
    if !charset.is_measured() {
        return false;
    }
    // members are looked for in the column's character set
    if charset.has_ascii() && (bytes.is_ascii() || ty.is_enumerated()) {
        return false;
    }
    let is_string = (ty.is_character() || ty.is_binary()) && ty.kind != Kind::Json;
    !is_string
}

/// Coerces a value to the column's type as the server's INSERT or UPDATE does and appends the
/// canonical payload to `out`.
///
/// Under strict mode a value that does not fit is the server's error; without it, or with IGNORE,
/// the value is clipped and the server's warning added to `warnings`. Where the server's behaviour
/// is not reproduced exactly the result is [`StoreError::Unsupported`]: the statement must then be
/// refused. On an error nothing is appended.
pub fn store(
    ty: &SqlType,
    input: Input<'_>,
    ctx: &Context<'_>,
    out: &mut Vec<u8>,
    warnings: &mut Vec<Warning>,
) -> Result<Stored, StoreError> {
    let start = out.len();
    let mut report = Report { ctx, warnings };
    let input = match input {
        Input::Null => return Ok(Stored::Null),
        Input::Bool(truth) => Input::Integer {
            negative: false,
            magnitude: u64::from(truth),
        },
        other => other,
    };
    if is_foreign(ty, input) {
        return Err(StoreError::Unsupported(
            "a text in this character set, for a column that is no string",
        ));
    }
    if let Input::Text { bytes, charset } = input
        && ctx.family == Family::MySql
        && matches!(charset, Charset::Utf8mb4 | Charset::Utf8mb3)
    {
        // MySQL's parser warns of string literals that are not well-formed, wherever they go.
        let valid = charset.valid_prefix(bytes);
        if valid < bytes.len() {
            let mut message = format!("Invalid {} character string: '", charset.name());
            for byte in bytes[valid..].iter().take(3) {
                message.push_str(&format!("{byte:02X}"));
            }
            message.push('\'');
            report.warnings.push(Warning {
                level: Level::Warning,
                code: 1300,
                message,
            });
        }
    }
    let stored = match ty.kind {
        Kind::TinyInt(_)
        | Kind::SmallInt(_)
        | Kind::MediumInt(_)
        | Kind::Int(_)
        | Kind::BigInt(_) => {
            number::store_integer(ty, input, &mut report, out).map(|()| Stored::Value)
        }
        Kind::Decimal { precision, scale } => {
            number::store_decimal(ty, precision, scale, input, &mut report, out)
                .map(|()| Stored::Value)
        }
        Kind::Float | Kind::Double => {
            number::store_real(ty, input, &mut report, out).map(|()| Stored::Value)
        }
        Kind::Date
        | Kind::Time { .. }
        | Kind::DateTime { .. }
        | Kind::Timestamp { .. }
        | Kind::Year => temporal::store_temporal(ty, input, &mut report, out),
        Kind::Bit { bits } => bit::store_bit(bits, input, &mut report, out).map(|()| Stored::Value),
        Kind::Enum(members) => {
            enumerated::store_enum(members, ty.charset(), input, &mut report, out)
                .map(|()| Stored::Value)
        }
        Kind::Set(members) => enumerated::store_set(members, ty.charset(), input, &mut report, out)
            .map(|()| Stored::Value),
        Kind::Json => json::store_json(ty, input, &mut report, out).map(|()| Stored::Value),
        Kind::Uuid | Kind::Inet6 | Kind::Inet4 => {
            fixed_binary::store_fixed_binary(ty, input, &mut report, out)
        }
        _ => string::store_string(ty, input, &mut report, out).map(|()| Stored::Value),
    };
    if stored.is_err() {
        out.truncate(start);
    }
    stored
}
