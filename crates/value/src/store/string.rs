//! Storing into CHAR, VARCHAR, TEXT, BINARY, VARBINARY and BLOB columns.

use crate::charset::Charset;
use crate::context::{Condition, Input, Report, StoreError};
use crate::decimal;
use crate::format::write_double;
use crate::store::number::is_space;
use crate::types::{Family, Kind, SqlType};

/// Length up to which a double is stored in a string as it is printed.
const DOUBLE_PLAIN: usize = 20;

/// Bytes of a bad string that the server shows before an ellipsis.
const SHOWN: usize = 6;

pub(super) fn store_string(
    ty: &SqlType,
    input: Input<'_>,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let mut number = Vec::new();
    let (bytes, charset) = match input {
        Input::Text { bytes, charset } => (bytes, charset),
        Input::Bytes(bytes) | Input::Hex(bytes) => (bytes, Charset::Binary),
        Input::Integer {
            negative,
            magnitude,
        } => {
            if negative && magnitude != 0 {
                number.push(b'-');
            }
            number.extend_from_slice(itoa::Buffer::new().format(magnitude).as_bytes());
            (number.as_slice(), Charset::Ascii)
        }
        Input::Decimal(text) => match decimal::parse(text) {
            Ok(parsed) if parsed.end == text.len() => {
                parsed.number.write(&mut number);
                (number.as_slice(), Charset::Ascii)
            }
            _ => {
                return Err(StoreError::Unsupported(
                    "a number that cannot be read exactly",
                ));
            }
        },
        Input::Double(value) => {
            write_double(report.ctx.zero(value), &mut number);
            // Where it does not fit, or is long without an exponent, the server prints other
            // digits.
            if number.len() > DOUBLE_PLAIN || limit(ty).is_some_and(|limit| number.len() > limit) {
                return Err(StoreError::Unsupported(
                    "a double for a string column that is too short for it",
                ));
            }
            (number.as_slice(), Charset::Ascii)
        }
        Input::Temporal(_) | Input::Null | Input::Bool(_) => {
            return Err(StoreError::Unsupported(
                "a date or time parameter for a string column",
            ));
        }
    };
    if ty.is_binary() {
        return store_bytes(ty, bytes, report, out);
    }
    let measured = charset.is_measured() || ty.charset().is_measured();
    if measured && charset.valid_prefix(bytes) < bytes.len() {
        return Err(StoreError::Unsupported(
            "a string that is not well-formed in its character set",
        ));
    }
    let said = report.warnings.len();
    let stored = store_characters(ty, bytes, charset, report, out);
    // Errors and warnings show the bytes of the source, and blanks at its end are told by its
    // rules.
    if matches!(charset, Charset::Wide(_)) && (stored.is_err() || report.warnings.len() > said) {
        return Err(StoreError::Unsupported(
            "a text of this character set that does not fit the column",
        ));
    }
    stored
}

/// Most characters (bytes for binary types) where the type counts them; `None` for TEXT and BLOB.
fn limit(ty: &SqlType) -> Option<usize> {
    match ty.kind {
        Kind::Char { chars } | Kind::VarChar { chars } => Some(chars as usize),
        Kind::Binary { len } | Kind::VarBinary { len } => Some(len as usize),
        _ => None,
    }
}

fn store_bytes(
    ty: &SqlType,
    bytes: &[u8],
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let most = usize::try_from(ty.payload_max()).unwrap_or(usize::MAX);
    let kept = &bytes[..bytes.len().min(most)];
    if kept.len() < bytes.len() {
        report.warn(Condition::TooLong)?;
    }
    let start = out.len();
    out.extend_from_slice(kept);
    if let Kind::Binary { len } = ty.kind {
        out.resize(start + len as usize, 0);
    }
    Ok(())
}

fn store_characters(
    ty: &SqlType,
    bytes: &[u8],
    charset: Charset,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let start = out.len();
    let target = ty.charset();
    let byte_limit = usize::try_from(ty.payload_max()).unwrap_or(usize::MAX);
    let character_limit = limit(ty).unwrap_or(usize::MAX);
    if report.ctx.family == Family::MariaDb {
        if target == Charset::Ascii && !bytes.is_ascii() {
            return Err(StoreError::Unsupported(
                "characters beyond ASCII for an ascii column",
            ));
        }
        // MariaDB takes surrogates encoded as UTF-8 for characters.
        if charset != Charset::Latin1
            && !charset.is_measured()
            && bytes.contains(&0xED)
            && bytes
                .windows(2)
                .any(|pair| pair[0] == 0xED && pair[1] >= 0xA0)
        {
            return Err(StoreError::Unsupported("surrogates encoded in UTF-8"));
        }
    }
    if !charset.same_bytes(target, bytes)
        && charset.valid_prefix(bytes) < bytes.len()
        && report.ctx.family == Family::MySql
    {
        return Err(StoreError::Unsupported(
            "a string that is not well-formed, to be converted",
        ));
    }
    let same = charset.same_bytes(target, bytes);
    if same && target.is_measured() && target.valid_prefix(bytes) < bytes.len() {
        // the servers keep pairs of bytes that mean nothing, fill up wide characters, or cut
        return Err(StoreError::Unsupported(
            "a binary string that is not well-formed in the column's character set",
        ));
    }
    let copied = if same {
        copy(
            bytes,
            target,
            character_limit,
            byte_limit,
            report.ctx.family,
            out,
        )
    } else {
        convert(bytes, charset, target, character_limit, byte_limit, out)
    };
    if let Some(bad) = copied.bad {
        let mut shown = Vec::new();
        printable(&bytes[bad..], &mut shown);
        report.warn(Condition::Incorrect {
            what: "string",
            value: &shown,
        })?;
    } else if copied.read < bytes.len() {
        let rest = &bytes[copied.read..];
        if charset.is_measured() || target.is_measured() {
            check_cut(ty, charset, rest)?;
        }
        if report.ctx.family == Family::MariaDb
            && ty.is_large()
            && out.len() - start < byte_limit
            && charset != Charset::Latin1
        {
            // MariaDB cuts at the byte and then finds a part of a character.
            if !report.is_strict() {
                return Err(StoreError::Unsupported("text cut within a character"));
            }
            let mut shown = Vec::new();
            printable(rest, &mut shown);
            return Err(report.error(Condition::Incorrect {
                what: "string",
                value: &shown,
            }));
        }
        let is_blank = |byte: &u8| {
            is_space(*byte)
                || (charset == Charset::Latin1 && target == Charset::Latin1 && *byte == 0xA0)
        };
        // the servers read what is left in the column's character set, in which these are no spaces
        let is_wide = matches!(target, Charset::Wide(_));
        if !is_wide && rest.iter().all(is_blank) {
            if !matches!(ty.kind, Kind::Char { .. }) {
                report.note(Condition::Truncated)?;
            }
        } else {
            report.warn(Condition::TooLong)?;
        }
    }
    if let Kind::Char { .. } = ty.kind {
        let kept = target.without_spaces(&out[start..]).len();
        out.truncate(start + kept);
    }
    Ok(())
}

/// Refuses what depends on more than the number of characters where a text is cut: the place in
/// TEXT, which counts bytes; and bytes beyond ASCII that are blanks in some sets of one byte for
/// each character.
fn check_cut(ty: &SqlType, charset: Charset, rest: &[u8]) -> Result<(), StoreError> {
    let may_be_blank = |byte: &u8| {
        is_space(*byte)
            || (matches!(byte, 0xA0 | 0xFF)
                && matches!(charset, Charset::Single(_) | Charset::Latin1))
    };
    if ty.is_large() || (rest.iter().all(may_be_blank) && !rest.is_ascii()) {
        return Err(StoreError::Unsupported(
            "a text of this character set that is too long for the column",
        ));
    }
    Ok(())
}

struct Copied {
    /// Bytes of the source that were taken.
    read: usize,
    /// Offset of the first bytes that are no character, or of the first character that the column's
    /// charset lacks.
    bad: Option<usize>,
}

/// Copies text whose bytes need no conversion, up to a limit. MySQL stops at bytes that are no
/// character, MariaDB puts a question mark for each.
fn copy(
    bytes: &[u8],
    charset: Charset,
    characters: usize,
    most: usize,
    family: Family,
    out: &mut Vec<u8>,
) -> Copied {
    let valid = charset.valid_prefix(bytes);
    let kept = charset.offset_of(&bytes[..valid], characters);
    if kept == bytes.len() && kept <= most {
        out.extend_from_slice(bytes);
        return Copied {
            read: kept,
            bad: None,
        };
    }
    let start = out.len();
    let (mut read, mut bad, mut left) = (0, None, characters);
    while read < bytes.len() && left > 0 {
        match charset.decode(&bytes[read..]) {
            Some((_, length)) => {
                if out.len() - start + length > most {
                    break;
                }
                out.extend_from_slice(&bytes[read..read + length]);
                read += length;
            }
            None => {
                bad = bad.or(Some(read));
                if family == Family::MySql || out.len() - start + 1 > most {
                    break;
                }
                out.push(b'?');
                read += 1;
            }
        }
        left -= 1;
    }
    Copied { read, bad }
}

/// Converts text; a question mark stands for what the target lacks and for bytes that are no
/// character.
fn convert(
    bytes: &[u8],
    source: Charset,
    target: Charset,
    characters: usize,
    most: usize,
    out: &mut Vec<u8>,
) -> Copied {
    let start = out.len();
    let (mut read, mut left) = (0, characters);
    // Of bytes that are no character and characters that the target lacks the server shows the
    // former.
    let (mut malformed, mut lacking) = (None, None);
    while read < bytes.len() && left > 0 {
        let before = out.len();
        let length = match source.decode(&bytes[read..]) {
            Some((code, length)) => {
                if !target.encode(code, out) {
                    lacking = lacking.or(Some(read));
                    target.encode(u32::from(b'?'), out);
                }
                length
            }
            None => {
                malformed = malformed.or(Some(read));
                target.encode(u32::from(b'?'), out);
                1
            }
        };
        if out.len() - start > most {
            out.truncate(before);
            break;
        }
        read += length;
        left -= 1;
    }
    Copied {
        read,
        bad: malformed.or(lacking),
    }
}

/// The bad bytes as the server shows them in its message.
fn printable(bytes: &[u8], into: &mut Vec<u8>) {
    for byte in bytes.iter().take(SHOWN) {
        match byte {
            // What the servers do with 0x7F differs, and the message is then refused.
            0x20..=0x7F => into.push(*byte),
            _ => into.extend_from_slice(format!("\\x{byte:02X}").as_bytes()),
        }
    }
    if bytes.len() > SHOWN {
        into.extend_from_slice(b"...");
    }
}
