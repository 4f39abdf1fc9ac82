//! What servers say of a value before they store it, and what they take in its place.

use onionskin_value::{
    Charset, Context, DateTimeParts, Family, Input, Kind, Level, SqlMode, SqlType, TemporalKind,
    ValueError, Warning, default_collation, store,
};

use super::values::converted;
use crate::error::{Failure, Outcome};
use crate::server_errors::{NO_DEFAULT, NOT_NULL, OUT_OF_RANGE};

const IMPOSSIBLE_CONVERSION: u16 = 3988;

/// What a NOT NULL column without a default gets where the server is not strict.
pub(super) fn implicit_default(ty: &SqlType) -> Input<'static> {
    let number = ty.is_numeric() || ty.is_bit() || matches!(ty.kind, Kind::Set(_) | Kind::Year);
    if ty.is_fixed_binary() {
        let zeros = &[0; 16];
        Input::Bytes(&zeros[..ty.payload_fixed().unwrap_or_default().min(zeros.len())])
    } else if ty.is_temporal() || number {
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

/// What such a column gets without being asked: of an ENUM, the first member.
pub(crate) fn implicit_value(ty: &SqlType) -> Input<'static> {
    match ty.kind {
        Kind::Enum(_) => Input::Integer {
            negative: false,
            magnitude: 1,
        },
        _ => implicit_default(ty),
    }
}

/// MySQL converts a parameter to the character set of the column that it is for before anything
/// else, and does not where that would lose characters. `from` is its collation: `None` for the one
/// that the client's character set has by default.
pub(super) fn check_conversion(ty: &SqlType, input: Input<'_>, from: Option<&str>) -> Outcome<()> {
    let (Input::Text { bytes, charset }, Some(collation)) = (input, ty.collation) else {
        return Ok(());
    };
    let target = collation.charset();
    if charset == target || charset.same_bytes(target, bytes) {
        return Ok(());
    }
    if converted(bytes, charset, target, &mut Vec::new()).is_some() {
        return Ok(());
    }
    let usual = default_collation(charset.name(), Family::MySql);
    Err(Failure::Value(ValueError {
        code: IMPOSSIBLE_CONVERSION,
        sqlstate: *b"HY000",
        message: format!(
            "Conversion from collation {} into {} impossible for parameter",
            from.unwrap_or(&usual),
            collation.name()
        ),
    }))
}

/// Whether a text is a number that no BIT holds. MySQL takes a parameter for one to be an unsigned
/// number; a text that is one within its range is stored byte by byte all the same.
pub(super) fn is_number_beyond(ty: &SqlType, input: Input<'_>) -> bool {
    const RANGE: f64 = 18_446_744_073_709_551_616.0;
    let (true, Input::Text { bytes, .. }) = (ty.is_bit(), input) else {
        return false;
    };
    let text = std::str::from_utf8(bytes).unwrap_or_default().trim();
    let is_number = |b: u8| b.is_ascii_digit() || b"+-.eE".contains(&b);
    match text.parse::<f64>() {
        // what fits is told from what does not exactly where it has no fraction
        Ok(number) if text.bytes().all(is_number) => {
            number < 0.0 || number >= RANGE && text.parse::<u64>().is_err()
        }
        _ => false,
    }
}

pub(super) fn out_of_range(column: &str, row: u64) -> ValueError {
    ValueError {
        code: OUT_OF_RANGE,
        sqlstate: *b"22003",
        message: format!("Out of range value for column '{column}' at row {row}"),
    }
}

/// How often the server says of a value that was refused that it is out of range: it clips some to
/// 64 bits first.
pub(super) fn times_out_of_range(
    ty: &SqlType,
    input: Input<'_>,
    ctx: &Context<'_>,
    is_parameter: bool,
) -> u64 {
    let lenient = Context {
        sql_mode: SqlMode::empty(),
        ..*ctx
    };
    let mut warnings = Vec::new();
    let stored = store(ty, input, &lenient, &mut Vec::new(), &mut warnings);
    let out = warnings.iter().filter(|w| w.code == OUT_OF_RANGE).count() as u64;
    if stored.is_err() || out == 0 {
        return 1;
    }
    // MySQL converts a text that is bound to a parameter to a number beforehand
    let is_beyond = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).unwrap_or_default().trim();
        text.parse::<f64>().is_ok_and(|n| n.abs() >= 9.3e18)
    };
    let clipped = match input {
        Input::Text { bytes, .. } if is_parameter && ty.is_integer() => {
            ty.int_bytes() < 8 && is_beyond(bytes)
        }
        _ => false,
    };
    out + u64::from(clipped && ctx.family == Family::MySql)
}

/// Whether MySQL makes something else of a parameter than of such a literal. It stores a negative
/// time of zero as 2047:63:63, and reads a text for a YEAR as an integer of 64 bits, behind which
/// blanks count.
pub(super) fn is_misread(ty: &SqlType, input: Input<'_>) -> bool {
    match input {
        Input::Temporal(DateTimeParts {
            kind: TemporalKind::Time,
            negative: true,
            hour: 0,
            minute: 0,
            second: 0,
            ..
        }) => true,
        Input::Text { bytes, .. } if ty.kind == Kind::Year => {
            bytes.len() > 18 || bytes.last().is_some_and(u8::is_ascii_whitespace)
        }
        _ => false,
    }
}

/// Whether MySQL's complaint about a date in a parameter would read otherwise: it makes a date of
/// the parameter before it stores that, and complains of the date. `complained` is whether it says
/// anything, and `named` whether it names the value.
pub(super) fn is_told_otherwise(
    ty: &SqlType,
    input: Input<'_>,
    complained: bool,
    named: bool,
) -> bool {
    let digits = match ty.kind {
        Kind::Date => 0,
        Kind::DateTime { fsp } | Kind::Timestamp { fsp } => fsp,
        _ => return false,
    };
    match input {
        Input::Integer { .. } => complained,
        Input::Text { bytes, .. } => {
            let is_part = |b: &u8| b.is_ascii_digit() || b"-: .T".contains(b);
            let is_usual = matches!(bytes.len(), 10 | 19)
                && bytes.get(4) == Some(&b'-')
                && bytes.get(7) == Some(&b'-')
                && bytes.get(10).is_none_or(|b| *b == b' ')
                && digits == 0;
            named && !is_usual && bytes.iter().all(is_part)
        }
        _ => false,
    }
}

/// Whether the column is a TIME.
pub(super) fn is_time(ty: &SqlType) -> bool {
    matches!(ty.kind, Kind::Time { .. })
}

/// Whether the server raises an error of a value before it looks for rows.
pub(crate) fn is_early(error: &ValueError, family: Family) -> bool {
    match family {
        Family::MySql => error.code == IMPOSSIBLE_CONVERSION,
        Family::MariaDb => error.code == NO_DEFAULT,
    }
}

pub(super) fn cannot_be_null(column: &str) -> ValueError {
    ValueError {
        code: NOT_NULL,
        sqlstate: *b"23000",
        message: format!("Column '{column}' cannot be null"),
    }
}

pub(super) fn null_warning(column: &str) -> Warning {
    Warning {
        level: Level::Warning,
        code: NOT_NULL,
        message: format!("Column '{column}' cannot be null"),
    }
}

pub(crate) fn no_default(column: &str) -> ValueError {
    ValueError {
        code: NO_DEFAULT,
        sqlstate: *b"HY000",
        message: format!("Field '{column}' doesn't have a default value"),
    }
}

pub(crate) fn no_default_warning(column: &str) -> Warning {
    Warning {
        level: Level::Warning,
        code: NO_DEFAULT,
        message: format!("Field '{column}' doesn't have a default value"),
    }
}
