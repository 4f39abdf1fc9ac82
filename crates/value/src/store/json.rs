//! Storing into JSON columns.

use crate::charset::Charset;
use crate::context::{Input, Report, StoreError, ValueError};
use crate::json::{BadJson, normalize};
use crate::store::string;
use crate::types::{Family, SqlType};

/// Of a document that MariaDB's CHECK refuses.
const CONSTRAINT: u16 = 4025;
/// Of a text that is no JSON.
const INVALID: u16 = 3140;
/// Of a document that is nested too deeply.
const TOO_DEEP: u16 = 3157;
/// Levels that MariaDB's parser follows; what lies deeper is not valid to it.
const MARIADB_DEPTH: usize = 30;

pub(super) fn store_json(
    ty: &SqlType,
    input: Input<'_>,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    match report.ctx.family {
        Family::MySql => store_value(input, report, out),
        Family::MariaDb => store_text(ty, input, report, out),
    }
}

fn store_value(
    input: Input<'_>,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let Input::Text { bytes, charset } = input else {
        return Err(StoreError::Unsupported(
            "anything but a text for JSON (CAST it on the way, or send a text)",
        ));
    };
    let mut utf8 = Vec::new();
    let text = match charset {
        Charset::Utf8mb4 | Charset::Utf8mb3 if std::str::from_utf8(bytes).is_ok() => bytes,
        _ => {
            let mut at = 0;
            while at < bytes.len() {
                match charset.decode(&bytes[at..]) {
                    Some((code, length))
                        if charset != Charset::Binary
                            && Charset::Utf8mb4.encode(code, &mut utf8) =>
                    {
                        at += length;
                    }
                    _ => {
                        return Err(StoreError::Unsupported(
                            "a text that is not well-formed, for JSON",
                        ));
                    }
                }
            }
            &utf8
        }
    };
    let refused = match normalize(text, out) {
        Ok(()) => return Ok(()),
        Err(BadJson::Number) => {
            return Err(StoreError::Unsupported("a number or a name in JSON"));
        }
        Err(refused) => refused,
    };
    if report.ctx.ignore {
        return Err(StoreError::Unsupported(
            "a text that is no JSON, with IGNORE",
        ));
    }
    let (code, message) = match refused {
        BadJson::Invalid(what, at) => (
            INVALID,
            format!(
                "Invalid JSON text: \"{what}\" at position {at} in value for column '{}.{}'.",
                report.ctx.table, report.ctx.column
            ),
        ),
        _ => (
            TOO_DEEP,
            "The JSON document exceeds the maximum depth.".to_owned(),
        ),
    };
    Err(StoreError::Server(ValueError {
        code,
        sqlstate: *b"22032",
        message,
    }))
}

fn store_text(
    ty: &SqlType,
    input: Input<'_>,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let start = out.len();
    let warnings = report.warnings.len();
    string::store_string(ty, input, report, out)?;
    if report.warnings.len() > warnings {
        return Err(StoreError::Unsupported("a text that is cut, for JSON"));
    }
    let text = &out[start..];
    // What the two parsers may take differently is refused: control characters, escapes of half a
    // surrogate pair, deep nesting.
    if text
        .iter()
        .any(|byte| *byte < b' ' && !b"\t\n\r".contains(byte))
        || has_half_surrogates(text)
        || depth(text) > MARIADB_DEPTH
    {
        return Err(StoreError::Unsupported("an unusual text for JSON"));
    }
    match normalize(text, &mut Vec::new()) {
        Ok(()) => Ok(()),
        // What MariaDB lets pass for a number or an escape is more than the grammar does.
        Err(BadJson::Invalid(what, at))
            if !report.ctx.ignore && !is_lenient(what, text.get(at.wrapping_sub(1)).copied()) =>
        {
            Err(StoreError::Server(ValueError {
                code: CONSTRAINT,
                sqlstate: *b"23000",
                message: format!(
                    "CONSTRAINT `{}.{}` failed for `{}`.`{}`",
                    report.ctx.table, report.ctx.column, report.ctx.database, report.ctx.table
                ),
            }))
        }
        Err(_) => Err(StoreError::Unsupported("a text that is no JSON")),
    }
}

/// Whether MariaDB may take for JSON what the grammar does not, `before` being the byte before the
/// place.
fn is_lenient(what: &str, before: Option<u8>) -> bool {
    what.contains("number")
        || what.contains("Number")
        || what.contains("escape")
        || before == Some(b'-')
}

/// Whether an escape `\uD…` stands in the text that is not one of a pair, as characters beyond
/// U+FFFF are written.
fn has_half_surrogates(text: &[u8]) -> bool {
    let mut at = 0;
    while let Some(found) = text[at..].iter().position(|byte| *byte == b'\\') {
        at += found;
        at += match (
            escaped_unit(&text[at..]),
            text.get(at + 6..).and_then(escaped_unit),
        ) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => return true,
            (Some(_), _) => 6,
            // another escape, `\\` for one
            (None, _) => 2,
        };
        if at >= text.len() {
            break;
        }
    }
    false
}

/// The number behind `\u`, if the text begins with that and four hexadecimal digits.
fn escaped_unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
    u32::from_str_radix(digits, 16).ok()
}

/// Brackets that are open at once, at most; those in strings count too.
fn depth(text: &[u8]) -> usize {
    let (mut open, mut most) = (0usize, 0);
    for byte in text {
        match byte {
            b'{' | b'[' => open += 1,
            b'}' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}
