//! What a coercion depends on beside type and value, and what it answers: inputs, errors, warnings.

use crate::charset::Charset;
use crate::mode::SqlMode;
use crate::time_zone::TimeZone;
use crate::types::Family;

/// 2038-01-19 03:14:07 UTC.
pub const LATEST_TIMESTAMP: u64 = i32::MAX as u64;
/// 2106-02-07 06:28:15 UTC.
pub const LATEST_TIMESTAMP_UNSIGNED: u64 = u32::MAX as u64;

/// The session and statement around a value.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The session's `sql_mode`.
    pub sql_mode: SqlMode,
    /// The session's `time_zone`, for TIMESTAMP.
    pub time_zone: &'a TimeZone,
    /// The back end's family.
    pub family: Family,
    /// The last second that a TIMESTAMP of the back end holds: [`LATEST_TIMESTAMP`], or
    /// [`LATEST_TIMESTAMP_UNSIGNED`] in MariaDB from 11.5.
    pub latest_timestamp: u64,
    /// Whether the back end keeps the sign of a zero that a string, a literal with an exponent or a
    /// DOUBLE parameter gives. MySQL does, whatever is said here, and MariaDB 11.8; not 10.11.
    pub signed_zero: bool,
    /// Whether an ENUM takes a text that is the number 0 for the value of an error and says
    /// nothing. MySQL does, whatever is said here, and MariaDB 11.8; not 10.11.
    pub enum_takes_zero: bool,
    /// INSERT IGNORE and the like: errors become warnings and values are clipped as without strict
    /// mode.
    pub ignore: bool,
    /// The row of the statement, from 1, for "at row N".
    pub row: u64,
    /// The column's name, for texts.
    pub column: &'a str,
    /// The table's database, for texts (MariaDB names it in some).
    pub database: &'a str,
    /// The table's name, for texts.
    pub table: &'a str,
}

impl Context<'_> {
    /// Whether the text `0` is the value of an error to an ENUM.
    pub(crate) fn takes_zero_for_an_error(&self) -> bool {
        self.enum_takes_zero || self.family == Family::MySql
    }

    /// A number as the back end reads it: one of them knows no negative zero.
    pub(crate) fn zero(&self, value: f64) -> f64 {
        match self.signed_zero || self.family == Family::MySql {
            true => value,
            false => value + 0.0,
        }
    }
}

/// A value as a statement gives it.
#[derive(Clone, Copy)]
pub enum Input<'a> {
    /// NULL.
    Null,
    /// An integer literal or parameter.
    Integer {
        /// Whether a minus sign stands before it.
        negative: bool,
        /// The number without its sign.
        magnitude: u64,
    },
    /// The text of a number literal with a decimal point and no exponent, or of an integer beyond
    /// `u64`, or a DECIMAL parameter. A minus sign may stand before it.
    Decimal(&'a [u8]),
    /// A literal with an exponent, or a FLOAT or DOUBLE parameter.
    Double(f64),
    /// A string literal, unescaped, or a string parameter.
    Text {
        /// The string.
        bytes: &'a [u8],
        /// The charset that the server takes the string to be in: `character_set_connection` for
        /// literals without introducer and for parameters.
        charset: Charset,
    },
    /// A binary string: `_binary'…'` or a BLOB parameter. Into columns that are no strings it is
    /// refused.
    Bytes(&'a [u8]),
    /// A literal `x'…'`, `0x…` or `b'…'`: bytes for string columns, a number for numeric ones.
    Hex(&'a [u8]),
    /// A date or time parameter of the binary protocol, or a literal `DATE'…'`, `TIME'…'`,
    /// `TIMESTAMP'…'` once parsed.
    Temporal(DateTimeParts),
    /// TRUE or FALSE.
    Bool(bool),
}

/// Which temporal type a [`DateTimeParts`] is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemporalKind {
    /// A date without time.
    Date,
    /// A date with time.
    DateTime,
    /// A time, which may be negative and exceed a day.
    Time,
}

/// The parts of a date, a date with time, or a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DateTimeParts {
    /// Which parts count.
    pub kind: TemporalKind,
    /// Minus sign of a time.
    pub negative: bool,
    /// 0 to 9999.
    pub year: u16,
    /// 0 to 12.
    pub month: u8,
    /// 0 to 31.
    pub day: u8,
    /// 0 to 23; for a time also more, its days included.
    pub hour: u32,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 to 999,999.
    pub micros: u32,
}

/// What [`crate::store`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The value is NULL; nothing was appended.
    Null,
    /// The payload was appended.
    Value,
    /// The payload was appended that a NOT NULL column takes. In a column that allows NULL, the
    /// value is NULL.
    NullOrValue,
}

/// The error that the server gives for a value, with its number and text.
///
/// The text may quote the value. It may go to the client that sent the value and nowhere else, so
/// neither `Debug` nor `Display` shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct ValueError {
    /// The server's error number.
    pub code: u16,
    /// The SQL state.
    pub sqlstate: [u8; 5],
    /// The text, for the client only.
    pub message: String,
}

impl std::fmt::Debug for ValueError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ValueError({})", self.code)
    }
}

impl std::fmt::Display for ValueError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "server error {}", self.code)
    }
}

impl std::error::Error for ValueError {}

/// Why a value was not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The server would give this error.
    #[error(transparent)]
    Server(#[from] ValueError),
    /// The server's answer is not reproduced here, so the statement must be refused.
    #[error("not supported: {0}")]
    Unsupported(&'static str),
}

/// Why a constant cannot be compared with a column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The server's comparison is not reproduced here, so the statement must be refused.
    #[error("not supported: {0}")]
    Unsupported(&'static str),
}

/// The level of a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Shown by SHOW WARNINGS as Note.
    Note,
    /// Shown by SHOW WARNINGS as Warning.
    Warning,
}

/// A warning that the server would keep for SHOW WARNINGS. The text may quote the value, see
/// [`ValueError`].
#[derive(Clone, PartialEq, Eq)]
pub struct Warning {
    /// Note or warning.
    pub level: Level,
    /// The server's number.
    pub code: u16,
    /// The text, for the client only.
    pub message: String,
}

impl std::fmt::Debug for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Warning({:?}, {})", self.level, self.code)
    }
}

/// The conditions that a coercion can raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition<'v> {
    /// 1264
    OutOfRange,
    /// 1265
    Truncated,
    /// 1406; 1265 where it is only a warning.
    TooLong,
    /// 1366 with what was expected and the offending text.
    Incorrect { what: &'static str, value: &'v [u8] },
    /// 1292 with what was expected and the offending text.
    IncorrectTemporal { what: &'static str, value: &'v [u8] },
}

/// Where a coercion reports to: an error where the mode is strict, a warning otherwise.
pub(crate) struct Report<'a, 'w> {
    pub(crate) ctx: &'a Context<'a>,
    pub(crate) warnings: &'w mut Vec<Warning>,
}

impl Report<'_, '_> {
    /// An error in strict mode without IGNORE, else a warning.
    pub(crate) fn warn(&mut self, condition: Condition<'_>) -> Result<(), StoreError> {
        if self.is_strict() {
            return Err(self.error(condition));
        }
        let (code, message) = self.text(condition, false)?;
        self.warnings.push(Warning {
            level: Level::Warning,
            code,
            message,
        });
        Ok(())
    }

    /// A note in every mode.
    pub(crate) fn note(&mut self, condition: Condition<'_>) -> Result<(), StoreError> {
        let (code, message) = self.text(condition, false)?;
        self.warnings.push(Warning {
            level: Level::Note,
            code,
            message,
        });
        Ok(())
    }

    pub(crate) fn error(&self, condition: Condition<'_>) -> StoreError {
        let (code, message) = match self.text(condition, true) {
            Ok(text) => text,
            Err(refusal) => return refusal,
        };
        let sqlstate = match (code, self.ctx.family) {
            (1264, _) => *b"22003",
            (1265, _) => *b"01000",
            (1406, _) => *b"22001",
            (1292, _) => *b"22007",
            (1366, Family::MariaDb) => *b"22007",
            _ => *b"HY000",
        };
        StoreError::Server(ValueError {
            code,
            sqlstate,
            message,
        })
    }

    pub(crate) fn is_strict(&self) -> bool {
        self.ctx.sql_mode.is_strict() && !self.ctx.ignore
    }

    fn text(&self, condition: Condition<'_>, strict: bool) -> Result<(u16, String), StoreError> {
        let Context {
            column,
            database,
            table,
            row,
            family,
            ..
        } = *self.ctx;
        Ok(match condition {
            Condition::OutOfRange => (
                1264,
                format!("Out of range value for column '{column}' at row {row}"),
            ),
            Condition::TooLong if strict => (
                1406,
                format!("Data too long for column '{column}' at row {row}"),
            ),
            Condition::Truncated | Condition::TooLong => (
                1265,
                format!("Data truncated for column '{column}' at row {row}"),
            ),
            Condition::Incorrect { what, value } | Condition::IncorrectTemporal { what, value } => {
                let code = if matches!(condition, Condition::Incorrect { .. }) {
                    1366
                } else {
                    1292
                };
                let value = quoted(value, family).ok_or(StoreError::Unsupported(
                    "a bad value that the server's message distorts",
                ))?;
                let message = match family {
                    Family::MySql => format!(
                        "Incorrect {what} value: '{value}' for column '{column}' at row {row}"
                    ),
                    Family::MariaDb => {
                        format!(
                            "Incorrect {what} value: '{value}' for column `{database}`.`{table}`.`{column}` at row {row}"
                        )
                    }
                };
                (code, message)
            }
        })
    }
}

/// A value as the server's messages quote it, or `None` where they distort it in ways that are not
/// reproduced: bytes that are no characters, control characters, long texts that are not ASCII.
fn quoted(value: &[u8], family: Family) -> Option<String> {
    let text = std::str::from_utf8(value)
        .ok()
        .filter(|text| !text.bytes().any(|byte| byte < b' ' || byte == 0x7F))?;
    if text.len() <= 125 {
        return Some(text.to_owned());
    }
    if !text.is_ascii() {
        return None;
    }
    match family {
        Family::MySql => Some(text[..text.len().min(128)].to_owned()),
        // Up to which length MariaDB shows the whole was not found out.
        Family::MariaDb => (text.len() > 128).then(|| format!("{}...", &text[..125])),
    }
}
