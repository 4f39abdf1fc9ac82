//! Cells of temporary tables on their way back: as payloads to be sealed, and as literals.
//!
//! The engine has stored them in columns of the very types, so that they are values of these types
//! already; they are asked for in a form that loses nothing ([`Carried`]), with the time zone UTC.

use onionskin_plan::{Carried, ColumnUse, TOO_LONG, errors};
use onionskin_value::{
    Charset, Context, Family, FormatContext, Input, Kind, LATEST_TIMESTAMP_UNSIGNED, SqlMode,
    SqlType, Stored, TimeZone, format_text, store,
};

use crate::error::{Failure, Outcome, too_long};
use crate::hex::unhex;
use crate::scratch::tables::put_carried;
use crate::state::State;

/// The payload of a protected column's value.
pub(super) fn payload(
    used: &ColumnUse,
    carried: Carried,
    cell: &[u8],
    family: Family,
) -> Outcome<Vec<u8>> {
    stored(used, carried, cell, family, &TimeZone::parse("+00:00", ""))
}

fn type_of(used: &ColumnUse) -> Outcome<&SqlType> {
    let ty = used.column().sql_type.as_ref();
    ty.ok_or_else(|| unfit(used))
}

/// A value that the engine has stored cannot be wrong; if it is, something else is.
fn unfit(used: &ColumnUse) -> Failure {
    Failure::refused(&errors::SCRATCH_TYPE, used.path())
}

fn stored(
    used: &ColumnUse,
    carried: Carried,
    cell: &[u8],
    family: Family,
    time_zone: &TimeZone,
) -> Outcome<Vec<u8>> {
    let ty = type_of(used)?;
    let bytes;
    let input = match carried {
        Carried::Number if matches!(ty.kind, Kind::Float | Kind::Double) => {
            let text = std::str::from_utf8(cell).map_err(|_| unfit(used))?;
            Input::Double(ty.taken(text.parse().map_err(|_| unfit(used))?))
        }
        Carried::Number => match std::str::from_utf8(cell).map(str::parse::<u64>) {
            Ok(Ok(magnitude)) => Input::Integer {
                negative: false,
                magnitude,
            },
            _ => Input::Decimal(cell),
        },
        Carried::Quoted => Input::Text {
            bytes: cell,
            charset: Charset::Ascii,
        },
        Carried::Hex if cell == TOO_LONG => return Err(too_long()),
        Carried::Hex => {
            bytes = unhex(cell).ok_or_else(|| unfit(used))?;
            match ty.charset() {
                Charset::Binary => Input::Bytes(&bytes),
                charset => Input::Text {
                    bytes: &bytes,
                    charset,
                },
            }
        }
        Carried::Sealed | Carried::Epoch => return Err(unfit(used)),
    };
    let ctx = Context {
        sql_mode: SqlMode::STRICT | SqlMode::ALLOW_INVALID_DATES,
        time_zone,
        family,
        latest_timestamp: LATEST_TIMESTAMP_UNSIGNED,
        // the engine has stored it
        signed_zero: true,
        enum_takes_zero: true,
        ignore: false,
        row: 1,
        column: &used.column().name,
        database: &used.table.database,
        table: &used.table.name,
    };
    let (mut out, mut warnings) = (Vec::new(), Vec::new());
    match store(ty, input, &ctx, &mut out, &mut warnings) {
        Ok(Stored::Value) if warnings.is_empty() => Ok(out),
        _ => Err(unfit(used)),
    }
}

/// Appends a literal that is the value in a statement of the client's session.
pub(super) fn put_literal(
    used: &ColumnUse,
    carried: Carried,
    cell: &[u8],
    state: &State,
    out: &mut Vec<u8>,
) -> Outcome<()> {
    if used.column().protection.is_none() {
        return put_plain(used, carried, cell, state, out);
    }
    let ty = type_of(used)?;
    match ty.kind {
        Kind::Float | Kind::Double if ty.digits.is_some() => {
            let number = std::str::from_utf8(cell)
                .ok()
                .and_then(|text| text.parse().ok());
            let number = ty.taken(number.ok_or_else(|| unfit(used))?);
            out.extend_from_slice(format!("{number:e}").as_bytes());
            Ok(())
        }
        Kind::Float | Kind::Double => {
            put_carried(carried, used, cell, out)?;
            if !cell.contains(&b'e') {
                out.extend_from_slice(b"e0");
            }
            Ok(())
        }
        Kind::Timestamp { .. } => put_moment(used, carried, cell, state, out),
        _ => put_carried(carried, used, cell, out),
    }
}

/// Refuses ENUM's value that stands for errors, which only a column of the same type can hand on.
pub(super) fn check_member(used: &ColumnUse, cell: &[u8]) -> Outcome<()> {
    match type_of(used)?.kind {
        Kind::Enum(members) if cell.is_empty() && !members.has(b"") => Err(unfit(used)),
        _ => Ok(()),
    }
}

/// Appends a plain column's value for the server. A TIMESTAMP passes through the session's time
/// zone.
pub(super) fn put_plain(
    used: &ColumnUse,
    carried: Carried,
    cell: &[u8],
    state: &State,
    out: &mut Vec<u8>,
) -> Outcome<()> {
    if carried == Carried::Epoch {
        let whole = cell.split(|b| *b == b'.').next().unwrap_or_default();
        let seconds = std::str::from_utf8(whole).ok().and_then(|t| t.parse().ok());
        // 0 stands for the zero date
        if seconds != Some(0) && !seconds.is_some_and(|s: i64| state.time_zone.is_plain_at(s)) {
            return Err(repeated(used));
        }
    }
    put_carried(carried, used, cell, out)
}

fn repeated(used: &ColumnUse) -> Failure {
    let about = format!("{}, a time that the clock repeats", used.path());
    Failure::refused(&errors::TIME_ZONE, about)
}

/// A TIMESTAMP, which came in UTC, in the session's time zone. In the hour that a clock repeats, no
/// literal says which is meant.
fn put_moment(
    used: &ColumnUse,
    carried: Carried,
    cell: &[u8],
    state: &State,
    out: &mut Vec<u8>,
) -> Outcome<()> {
    let moment = payload(used, carried, cell, state.family)?;
    let ctx = FormatContext {
        time_zone: &state.time_zone,
        family: state.family,
        results_charset: Charset::Binary,
        pad_char: false,
    };
    let mut text = Vec::new();
    format_text(type_of(used)?, &moment, &ctx, &mut text)
        .map_err(|_| Failure::refused(&errors::TIME_ZONE, used.path()))?;
    let again = stored(used, carried, &text, state.family, &state.time_zone);
    if again.ok().as_ref() != Some(&moment) {
        return Err(repeated(used));
    }
    put_carried(carried, used, &text, out)
}
