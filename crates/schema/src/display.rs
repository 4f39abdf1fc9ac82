//! How servers show a column's default.
//!
//! Each place has rules of its own, found by comparing with real servers: SHOW CREATE TABLE, SHOW
//! COLUMNS, and `information_schema` (whose text MariaDB writes as SQL, so that it differs from
//! SHOW COLUMNS).

use onionskin_value::{
    Charset, Comparand, Context, Family, FormatContext, Input, Kind, SqlMode, SqlType, compare,
    format_text, store,
};

use crate::{
    computed::{default_sql, shown_default},
    errors::SchemaError,
    quote::{push_literal_of_expression, push_shown_literal},
    table::DefaultLiteral,
    type_facts::{data_type_of, is_binary, is_long, is_numeric},
};

/// Whose form definitions have.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The server's family.
    pub family: Family,
    /// Whether defaults of BINARY and VARBINARY are shown as `x'…'`: by MariaDB 11.8, not by 10.11.
    /// MySQL has forms of its own.
    pub binary_in_hex: bool,
}

impl From<Family> for Dialect {
    fn from(family: Family) -> Self {
        Dialect {
            family,
            binary_in_hex: false,
        }
    }
}

impl Dialect {
    /// Whether a default of this type, which is not empty, is shown as `x'…'`.
    fn shows_in_hex(self, data_type: &str, value: &[u8]) -> bool {
        let is_short = is_binary(data_type) && !is_long(data_type);
        self.binary_in_hex && self.family == Family::MariaDb && is_short && !value.is_empty()
    }
}

/// `x'616c696365'`
fn hex_literal(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("x'{digits}'")
}

/// Appends the DEFAULT clause of a column in SHOW CREATE TABLE, with a space before it, or nothing.
pub(crate) fn push_default_clause(
    out: &mut String,
    default: Option<&DefaultLiteral>,
    sql_type: &SqlType,
    dialect: Dialect,
) {
    let family = dialect.family;
    let column_type = sql_type.to_sql(family);
    let data_type = data_type_of(&column_type);
    match default {
        None => {}
        // MySQL's long types can have no default and say nothing of it.
        Some(DefaultLiteral::Null)
            if family == Family::MySql && is_long(data_type) && data_type != "json" => {}
        Some(DefaultLiteral::Null) => out.push_str(" DEFAULT NULL"),
        Some(DefaultLiteral::Expression(text)) => {
            out.push_str(" DEFAULT ");
            out.push_str(&default_sql(text, family));
        }
        Some(DefaultLiteral::Value(value)) => {
            out.push_str(" DEFAULT ");
            match std::str::from_utf8(value) {
                _ if dialect.shows_in_hex(data_type, value) => out.push_str(&hex_literal(value)),
                Ok(text) if family == Family::MariaDb && is_numeric(data_type) => {
                    out.push_str(text);
                }
                Ok(text) if family == Family::MariaDb && is_long(data_type) => {
                    push_literal_of_expression(out, &shown(text));
                }
                Ok(text) if family == Family::MariaDb => push_shown_literal(out, &shown(text)),
                Ok(text) if data_type == "bit" => out.push_str(text),
                Ok(text) if text.chars().all(in_basic_plane) => push_shown_literal(out, text),
                // MySQL's own way out. MariaDB prints the bytes as they are, which no text can
                // hold; the literal means the same there.
                _ => {
                    out.push_str("0x");
                    out.extend(value.iter().map(|byte| format!("{byte:02X}")));
                }
            }
        }
    }
}

/// The Default cell of SHOW COLUMNS.
pub(crate) fn default_cell(
    default: Option<&DefaultLiteral>,
    sql_type: &SqlType,
    dialect: Dialect,
) -> Option<String> {
    let family = dialect.family;
    let value = match default {
        Some(DefaultLiteral::Value(value)) => value,
        Some(DefaultLiteral::Expression(text)) => return Some(shown_default(text, family)),
        Some(DefaultLiteral::Null) | None => return None,
    };
    let column_type = sql_type.to_sql(family);
    let data_type = data_type_of(&column_type);
    let has_bytes = sql_type.collation.is_some_and(|c| c.name() == "binary");
    if family == Family::MySql && (is_binary(data_type) || has_bytes) && !value.is_empty() {
        // MySQL prints the bytes as a C string.
        let end = value.iter().position(|&byte| byte == 0);
        let shown = &value[..end.unwrap_or(value.len())];
        return Some(
            shown
                .iter()
                .fold("0x".to_owned(), |text, byte| text + &format!("{byte:02X}")),
        );
    }
    if dialect.shows_in_hex(data_type, value) {
        return Some(hex_literal(value));
    }
    let text = shown(&String::from_utf8_lossy(value));
    if family == Family::MariaDb && is_long(data_type) {
        // Defaults of these types are expressions to MariaDB.
        let mut literal = String::with_capacity(text.len() + 2);
        push_literal_of_expression(&mut literal, &text);
        return Some(literal);
    }
    Some(text)
}

/// The default of a new column in the form in which the server would keep and print it: `1.5` for a
/// `DECIMAL(5,2)` becomes `1.50`. The value is checked as under strict mode, as servers do with
/// defaults in every mode.
///
/// `value` is UTF-8, or bytes for binary types. The default of a TIMESTAMP stays what it was in the
/// session that defined it, where a server would convert it to the time zone of each session.
pub fn canonical_default(
    default: &DefaultLiteral,
    sql_type: &SqlType,
    context: &Context<'_>,
) -> Result<DefaultLiteral, SchemaError> {
    let DefaultLiteral::Value(value) = default else {
        return Ok(default.clone());
    };
    let invalid = || SchemaError::InvalidDefault {
        column: context.column.to_owned(),
    };
    if let Kind::Bit { bits } = sql_type.kind {
        let number = bits_of_default(value).ok_or_else(invalid)?;
        if number > u64::MAX >> (64 - u32::from(bits.max(1))) {
            return Err(invalid());
        }
        return Ok(DefaultLiteral::Value(format!("b'{number:b}'").into_bytes()));
    }
    let (input, results_charset) = if sql_type.is_binary() {
        (Input::Bytes(value), Charset::Binary)
    } else {
        let text = Input::Text {
            bytes: value,
            charset: Charset::Utf8mb4,
        };
        (text, Charset::Utf8mb4)
    };
    let strict = Context {
        sql_mode: context.sql_mode | SqlMode::STRICT,
        ignore: false,
        ..*context
    };
    let mut payload = Vec::new();
    store(sql_type, input, &strict, &mut payload, &mut Vec::new()).map_err(|_| invalid())?;
    // Defaults name members: no numbers, no value that stands for an error.
    if sql_type.is_enumerated() {
        let mut named = Vec::new();
        let compared = compare(sql_type, input, &strict, &mut named).map_err(|_| invalid())?;
        let is_error = matches!(sql_type.kind, Kind::Enum(_)) && payload == [0, 0];
        if compared != Comparand::Exact || named != payload || is_error {
            return Err(invalid());
        }
    }
    let mut shown = Vec::new();
    let look = FormatContext {
        time_zone: context.time_zone,
        family: context.family,
        results_charset,
        pad_char: false,
    };
    format_text(sql_type, &payload, &look, &mut shown).map_err(|_| invalid())?;
    Ok(DefaultLiteral::Value(shown))
}

/// The number of a BIT column's default, `b'101'`.
pub fn bits_of_default(value: &[u8]) -> Option<u64> {
    let digits = value.strip_prefix(b"b'")?.strip_suffix(b"'")?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 2).ok()
}

/// The default as the server would keep it: BINARY values are padded.
pub(crate) fn normalized(default: &DefaultLiteral, sql_type: &SqlType) -> DefaultLiteral {
    match (default, sql_type.kind) {
        (DefaultLiteral::Value(value), Kind::Binary { len }) => {
            let mut value = value.clone();
            // Longer values were refused when the definition was checked.
            let len = usize::try_from(len).unwrap_or(0).max(value.len());
            value.resize(len, 0);
            DefaultLiteral::Value(value)
        }
        _ => default.clone(),
    }
}

/// Text as it comes out of the dictionaries of both families, which keep three-byte UTF-8.
pub(crate) fn shown(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            char::REPLACEMENT_CHARACTER => '?',
            c if in_basic_plane(c) => c,
            _ => '?',
        })
        .collect()
}

fn in_basic_plane(c: char) -> bool {
    c <= '\u{ffff}'
}

#[cfg(test)]
mod tests {
    use onionskin_value::TimeZone;

    use super::*;

    fn canonical(sql_type: &str, collation: Option<&str>, value: &str) -> Option<String> {
        let context = Context {
            sql_mode: SqlMode::empty(),
            time_zone: &TimeZone::UTC,
            family: Family::MariaDb,
            latest_timestamp: onionskin_value::LATEST_TIMESTAMP,
            signed_zero: false,
            enum_takes_zero: false,
            ignore: false,
            row: 1,
            column: "c",
            database: "d",
            table: "t",
        };
        let sql_type = SqlType::parse(sql_type, collation).expect("known");
        let default = DefaultLiteral::Value(value.as_bytes().to_vec());
        match canonical_default(&default, &sql_type, &context) {
            Ok(DefaultLiteral::Value(value)) => Some(String::from_utf8(value).expect("text")),
            Ok(DefaultLiteral::Null | DefaultLiteral::Expression(_)) => None,
            Err(error) => {
                assert_eq!(error, SchemaError::InvalidDefault { column: "c".into() });
                None
            }
        }
    }

    #[test]
    fn defaults_take_the_form_of_their_type() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(canonical("decimal(5,2)", None, "1.5"), some("1.50"));
        assert_eq!(canonical("int", None, "007"), some("7"));
        assert_eq!(canonical("binary(3)", None, "a"), some("a\0\0"));
        assert_eq!(
            canonical("varchar(3)", Some("latin1_swedish_ci"), "äöü"),
            some("äöü")
        );
        assert_eq!(
            canonical("varchar(2)", Some("latin1_swedish_ci"), "äöü"),
            None
        );
        assert_eq!(canonical("tinyint", None, "300"), None);
    }

    #[test]
    fn what_dictionaries_cannot_hold_is_shown_as_a_question_mark() {
        assert_eq!(shown("ä😀\u{fffd}"), "ä??");
    }
}
