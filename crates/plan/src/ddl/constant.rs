//! Constants in the definition of a protected column: what stands behind DEFAULT and COMMENT.

use onionskin_schema::DefaultLiteral;
use onionskin_value::{
    Charset, Context, Family, Input, Kind, LATEST_TIMESTAMP_UNSIGNED, SqlMode, SqlType, TimeZone,
    store,
};

use super::reader::Reader;
use super::schema_refusal;
use crate::errors;
use crate::lex::{LiteralKind, TokenKind};
use crate::planner::{Planned, Request, refuse};

/// A constant after `DEFAULT` of a BIT column, as `b'…'`. A text would count as bytes; it is not
/// taken.
pub(super) fn bit_default(r: &mut Reader) -> Option<DefaultLiteral> {
    if r.eat("null") {
        return Some(DefaultLiteral::Null);
    }
    let number = if r.eat("true") {
        1
    } else if r.eat("false") {
        0
    } else {
        let token = r.token()?;
        let TokenKind::Literal(kind @ (LiteralKind::Integer | LiteralKind::Bits)) = token.kind
        else {
            return None;
        };
        r.at += 1;
        let mut scratch = Vec::new();
        let text = token.text(r.sql());
        let mode = r.request.settings.lex;
        match crate::literal::decode(text, kind, false, mode, Charset::Utf8mb4, &mut scratch)? {
            Input::Integer { magnitude, .. } => magnitude,
            // MySQL has no such number
            Input::Hex([]) if r.request.settings.family == Family::MySql => return None,
            Input::Hex(bytes) if bytes.len() <= 8 => bytes
                .iter()
                .fold(0, |number, byte| number << 8 | u64::from(*byte)),
            _ => return None,
        }
    };
    Some(DefaultLiteral::Value(format!("b'{number:b}'").into_bytes()))
}

/// A constant that is a text.
pub(super) fn string(r: &mut Reader) -> Option<String> {
    match default_literal(r)? {
        DefaultLiteral::Value(bytes) => String::from_utf8(bytes).ok(),
        DefaultLiteral::Null | DefaultLiteral::Expression(_) => None,
    }
}

/// A constant after `DEFAULT`, in text form.
pub(super) fn default_literal(r: &mut Reader) -> Option<DefaultLiteral> {
    if r.eat("null") {
        return Some(DefaultLiteral::Null);
    }
    if r.eat("true") {
        return Some(DefaultLiteral::Value(b"1".to_vec()));
    }
    if r.eat("false") {
        return Some(DefaultLiteral::Value(b"0".to_vec()));
    }
    let negative = r.eat_punct(b'-');
    let token = r.token()?;
    let TokenKind::Literal(kind) = token.kind else {
        return None;
    };
    r.at += 1;
    let text = token.text(r.sql());
    let mut scratch = Vec::new();
    let mode = r.request.settings.lex;
    let value =
        match crate::literal::decode(text, kind, negative, mode, mode.charset, &mut scratch)? {
            Input::Text {
                bytes,
                charset: Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Ascii,
            } => bytes.to_vec(),
            // a name's character set is the client's, and what it says is kept in UTF-8
            Input::Text { bytes, charset } if kind == LiteralKind::String => {
                charset.to_utf8(bytes)?
            }
            Input::Integer { .. } | Input::Decimal(_) | Input::Double(_) => {
                let mut number = if negative { b"-".to_vec() } else { Vec::new() };
                number.extend_from_slice(text);
                number
            }
            Input::Bytes(bytes) => bytes.to_vec(),
            _ => return None,
        };
    Some(DefaultLiteral::Value(value))
}

/// What a constant in a column's definition depends on.
pub(super) fn context(column: &str, family: Family) -> Context<'_> {
    Context {
        sql_mode: SqlMode::STRICT,
        time_zone: &TimeZone::UTC,
        family,
        // A default that the server does not take, it refuses itself.
        latest_timestamp: LATEST_TIMESTAMP_UNSIGNED,
        signed_zero: false,
        enum_takes_zero: false,
        ignore: false,
        row: 1,
        column,
        database: "",
        table: "",
    }
}

/// A default as the server would keep and print it.
pub(super) fn canonical(
    default: &DefaultLiteral,
    sql_type: &SqlType,
    column: &str,
    request: &Request,
) -> Planned<DefaultLiteral> {
    let refused = |what: &str| refuse(&errors::DEFINITION, format!("column {column}: {what}"));
    let family = request.settings.family;
    let text = match default {
        DefaultLiteral::Value(text) => Some(text.as_slice()),
        DefaultLiteral::Null | DefaultLiteral::Expression(_) => None,
    };
    if let Some(what) = text.and_then(|text| unfit(text, sql_type.kind, family)) {
        return refused(what);
    }
    let mut context = context(column, family);
    context.sql_mode |= request.settings.forbidden_dates;
    let printed = onionskin_schema::canonical_default(default, sql_type, &context)
        .map_err(|e| schema_refusal(&e))?;
    if !sql_type.is_bit() && text.is_some_and(|text| raises_warnings(text, sql_type, &context)) {
        // the server keeps what is left of it, and warns
        return refused("a DEFAULT that the column would change");
    }
    // six digits are printed of a FLOAT; a default that loses some of its own would be another
    let is_real = matches!(sql_type.kind, Kind::Float | Kind::Double);
    let stored = |default| stored(default, sql_type, &context);
    if is_real && stored(default) != stored(&printed) {
        return refused("a DEFAULT of more digits than are shown");
    }
    Ok(printed)
}

/// Why a constant cannot be the default of a column of this kind.
fn unfit(text: &[u8], kind: Kind, family: Family) -> Option<&'static str> {
    match kind {
        // the server keeps an instant, and shows it in each session's time zone
        Kind::Timestamp { .. } => Some("TIMESTAMP with a DEFAULT"),
        // MariaDB converts it to the character set of the table, of all things
        Kind::TinyBlob | Kind::Blob | Kind::MediumBlob | Kind::LongBlob
            if family == Family::MariaDb && !text.is_ascii() =>
        {
            Some("BLOB with a DEFAULT that is not ASCII")
        }
        // the number 0 is the year 0, the text '0' is 2000
        Kind::Year if text.len() != 4 => Some("YEAR with a DEFAULT that is not of four digits"),
        _ => None,
    }
}

/// Whether a value is not stored as it stands.
fn raises_warnings(text: &[u8], ty: &SqlType, context: &Context<'_>) -> bool {
    let input = match ty.is_binary() {
        true => Input::Bytes(text),
        false => Input::Text {
            bytes: text,
            charset: Charset::Utf8mb4,
        },
    };
    let mut warnings = Vec::new();
    let stored = store(ty, input, context, &mut Vec::new(), &mut warnings);
    stored.is_ok() && !warnings.is_empty()
}

/// What is stored of a default that is given as a text.
fn stored(default: &DefaultLiteral, ty: &SqlType, context: &Context<'_>) -> Option<Vec<u8>> {
    let DefaultLiteral::Value(text) = default else {
        return None;
    };
    let input = Input::Text {
        bytes: text,
        charset: Charset::Utf8mb4,
    };
    let mut out = Vec::new();
    store(ty, input, context, &mut out, &mut Vec::new()).ok()?;
    Some(out)
}
