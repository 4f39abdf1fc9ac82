//! Values of a column that gets another type: what ALTER TABLE would make of them.
//!
//! A payload of the old type becomes what an application could have written, a number or a text,
//! and that is stored into the new type as the proxy stores it, in strict mode. So the rules of
//! both servers stand in one place, `onionskin_value::store`. A value that would change on its way,
//! with a warning or an error, is an error here: the table stays as it was.

use onionskin_value::{
    Charset, Context, Family, FormatContext, Input, Kind, LATEST_TIMESTAMP_UNSIGNED, SqlMode,
    SqlType, StoreError, Stored, TimeZone, format_text, store,
};

/// From one type to another.
pub struct Retyping {
    from: SqlType,
    to: SqlType,
    family: Family,
    way: Way,
}

/// As what a value goes from one type to the other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Number,
    Text(Charset),
    Bytes,
}

/// How a value of a column is stored that another one holds already: nothing may change it, and
/// whatever stands in a column could be written into it.
pub fn strict(column: &str, family: Family) -> Context<'_> {
    Context {
        sql_mode: SqlMode::parse("STRICT_ALL_TABLES,ALLOW_INVALID_DATES"),
        time_zone: &TimeZone::UTC,
        family,
        latest_timestamp: LATEST_TIMESTAMP_UNSIGNED,
        // one that stands in a column was kept
        signed_zero: true,
        enum_takes_zero: false,
        ignore: false,
        row: 1,
        column,
        database: "",
        table: "",
    }
}

impl Retyping {
    /// `None` where it is not certain that values become what ALTER TABLE would make of them.
    pub fn new(from: SqlType, to: SqlType, family: Family) -> Option<Self> {
        let is_exact = |ty: &SqlType| ty.is_integer() || matches!(ty.kind, Kind::Decimal { .. });
        let is_text =
            |ty: &SqlType| ty.is_character() && !ty.is_json_value() && !ty.is_enumerated();
        let is_clock = |ty: &SqlType| {
            matches!(
                ty.kind,
                Kind::Date | Kind::Time { .. } | Kind::DateTime { .. }
            )
        };
        let same_kind = std::mem::discriminant(&from.kind) == std::mem::discriminant(&to.kind);
        let way = if is_exact(&from) && is_exact(&to) {
            Way::Number
        } else if is_exact(&from) && is_text(&to) || is_clock(&from) && is_text(&to) {
            Way::Text(Charset::Utf8mb4)
        } else if is_text(&from) && (is_text(&to) || to.is_fixed_binary()) {
            Way::Text(from.charset())
        } else if is_clock(&from) && same_kind
            || matches!((from.kind, to.kind), (Kind::Date, Kind::DateTime { .. }))
            || from.is_enumerated() && (same_kind || is_text(&to))
            || from.is_fixed_binary() && is_text(&to)
        {
            Way::Text(Charset::Utf8mb4)
        } else if from.is_binary() && (to.is_binary() || to.is_fixed_binary()) {
            Way::Bytes
        } else {
            return None;
        };
        Some(Self {
            from,
            to,
            family,
            way,
        })
    }

    /// Whether the new type has no room for digits behind a second. Servers cut or round them, by
    /// the session's `sql_mode`, and MariaDB does not warn.
    fn cuts_seconds(&self, text: &[u8]) -> bool {
        let (Kind::Time { fsp } | Kind::DateTime { fsp }) = self.to.kind else {
            return false;
        };
        let mut parts = text.splitn(2, |b| *b == b'.');
        let digits = parts.nth(1).unwrap_or_default();
        let lost = digits.get(usize::from(fsp)..).unwrap_or_default();
        lost.iter().any(|digit| *digit != b'0')
    }

    /// Appends the payload that a payload of the old type becomes. Errors hold no value.
    pub fn convert(&self, payload: &[u8], column: &str, out: &mut Vec<u8>) -> Result<(), String> {
        let results_charset = match self.way {
            Way::Text(charset) if !self.from.is_character() || self.from.is_enumerated() => charset,
            // as it is stored
            _ => Charset::Binary,
        };
        let context = FormatContext {
            time_zone: &TimeZone::UTC,
            family: self.family,
            results_charset,
            pad_char: false,
        };
        let mut text = Vec::new();
        format_text(&self.from, payload, &context, &mut text).map_err(|error| error.to_string())?;
        let would_change = || {
            // another's text would hold the value
            format!(
                "a row holds a value of column {column} that the new definition would change or refuse: change it first"
            )
        };
        if self.cuts_seconds(&text) {
            return Err(would_change());
        }
        let input = match self.way {
            Way::Number => Input::Decimal(&text),
            Way::Text(charset) => Input::Text {
                bytes: &text,
                charset,
            },
            Way::Bytes => Input::Bytes(&text),
        };
        let context = strict(column, self.family);
        let mut warnings = Vec::new();
        match store(&self.to, input, &context, out, &mut warnings) {
            Ok(Stored::Value) if warnings.is_empty() => Ok(()),
            Ok(_) | Err(StoreError::Server(_)) => Err(would_change()),
            Err(StoreError::Unsupported(what)) => Err(format!(
                "a row holds a value of column {column} that cannot be converted: not supported: {what}"
            )),
        }
    }
}
