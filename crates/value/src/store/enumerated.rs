//! Storing into ENUM and SET columns.
//!
//! A text is a member by the column's collation; one that is no member is read as a number. What is
//! neither becomes the value 0 (an empty text) without strict mode, and is error 1265 with it.

use std::borrow::Cow;

use crate::charset::Charset;
use crate::context::{Condition, Input, Report, StoreError};
use crate::decimal;
use crate::format::all_bits;
use crate::members::Members;
use crate::types::Family;

/// Texts from this length on are no numbers of members: as many digits as no ENUM needs.
const ENUM_DIGITS: usize = 6;
/// The same for a SET: more digits than 64 bits have.
const SET_DIGITS: usize = 22;

/// Doubles below this have all integers beneath them.
const EXACT: f64 = 9_007_199_254_740_992.0;

const NO_WEIGHT: StoreError = StoreError::Unsupported("a text without weights, for ENUM or SET");
const HIDDEN_NUMBER: StoreError =
    StoreError::Unsupported("a number behind a blank beyond ASCII, for ENUM or SET");

/// A value as the servers hand it to the column.
enum Given<'v> {
    /// Text in the column's charset.
    Text(Cow<'v, [u8]>),
    /// An integer in 64 bits, of either sign.
    Number(u64),
}

fn given(input: Input<'_>, target: Charset) -> Result<Given<'_>, StoreError> {
    Ok(match input {
        Input::Text { bytes, charset } => Given::Text(converted(bytes, charset, target)?),
        Input::Bytes(bytes) | Input::Hex(bytes) => {
            if target.valid_prefix(bytes) < bytes.len() {
                return Err(StoreError::Unsupported(
                    "a binary string that is not well-formed, for ENUM or SET",
                ));
            }
            Given::Text(bytes.into())
        }
        Input::Integer {
            negative,
            magnitude,
        } => {
            if negative && magnitude > 1 << 63 {
                return Err(StoreError::Unsupported("a number below BIGINT"));
            }
            Given::Number(if negative {
                magnitude.wrapping_neg()
            } else {
                magnitude
            })
        }
        Input::Decimal(text) => match decimal::parse(text) {
            Ok(parsed) if parsed.end == text.len() => {
                let number = parsed.number.to_f64().filter(|n| n.abs() < EXACT);
                let number = number.ok_or(StoreError::Unsupported(
                    "a number of so many digits for ENUM or SET",
                ))?;
                // The fraction is cut off.
                Given::Number(number as i64 as u64)
            }
            _ => {
                return Err(StoreError::Unsupported(
                    "a number that cannot be read exactly",
                ));
            }
        },
        // The fraction is cut off.
        Input::Double(value) if value.abs() < EXACT => Given::Number(value as i64 as u64),
        Input::Double(_) | Input::Temporal(_) | Input::Null | Input::Bool(_) => {
            return Err(StoreError::Unsupported(
                "this kind of value for ENUM or SET",
            ));
        }
    })
}

/// Text in the column's charset, with a question mark for what that lacks.
fn converted(bytes: &[u8], source: Charset, target: Charset) -> Result<Cow<'_, [u8]>, StoreError> {
    let malformed = StoreError::Unsupported("a text that is not well-formed, for ENUM or SET");
    if source != Charset::Binary && source.valid_prefix(bytes) < bytes.len() {
        return Err(malformed);
    }
    if source.same_bytes(target, bytes) {
        if target.valid_prefix(bytes) < bytes.len() {
            return Err(malformed);
        }
        return Ok(bytes.into());
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let Some((code, length)) = source.decode(&bytes[at..]) else {
            return Err(malformed);
        };
        if !target.encode(code, &mut out) {
            out.push(b'?');
        }
        at += length;
    }
    Ok(out.into())
}

/// The text without spaces at its end, which no collation counts here but that of bytes.
fn trimmed(text: &[u8], charset: Charset) -> &[u8] {
    if charset == Charset::Binary {
        return text;
    }
    let end = text.iter().rposition(|byte| *byte != b' ');
    &text[..end.map_or(0, |at| at + 1)]
}

/// A whole number, white space and a sign before it, as `strtoull` reads it; `None` where the text
/// is more or less than that, or too great for 64 bits.
pub(crate) fn number_text(text: &[u8]) -> Option<u64> {
    let start = text
        .iter()
        .position(|byte| !(*byte == b' ' || (9..=13).contains(byte)))?;
    let (negative, digits) = match &text[start..] {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// Whether a number stands behind bytes beyond ASCII that may be blanks to a server: in most sets
/// of one byte for a character the no-break space is one.
pub(crate) fn hides_number(charset: Charset, text: &[u8]) -> bool {
    let is_blank = |byte: &u8| !byte.is_ascii() || *byte == b' ' || (9..=13).contains(byte);
    let blanks = text.iter().take_while(|byte| is_blank(byte)).count();
    let (blanks, rest) = text.split_at(blanks);
    charset.max_bytes() == 1 && !blanks.is_ascii() && number_text(rest).is_some()
}

pub(super) fn store_enum(
    members: Members,
    charset: Charset,
    input: Input<'_>,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let most = members.count() as u64;
    let number = match given(input, charset)? {
        Given::Number(number) if (1..=most).contains(&number) => number,
        Given::Number(_) => {
            report.warn(Condition::Truncated)?;
            0
        }
        Given::Text(text) => {
            let text = trimmed(&text, charset);
            match members.find(text).map_err(|()| NO_WEIGHT)? {
                Some(number) => u64::from(number),
                None if hides_number(charset, text) => return Err(HIDDEN_NUMBER),
                None => {
                    let number = Some(text)
                        .filter(|text| text.len() < ENUM_DIGITS)
                        .and_then(number_text)
                        .filter(|number| *number <= most)
                        .filter(|number| *number > 0 || report.ctx.takes_zero_for_an_error());
                    if number.is_none() {
                        report.warn(Condition::Truncated)?;
                    }
                    number.unwrap_or(0)
                }
            }
        }
    };
    let number = u16::try_from(number).unwrap_or(0);
    out.extend_from_slice(&number.to_be_bytes());
    Ok(())
}

pub(super) fn store_set(
    members: Members,
    charset: Charset,
    input: Input<'_>,
    report: &mut Report<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let most = all_bits(members);
    let chosen = match given(input, charset)? {
        Given::Number(number) => {
            if number & !most != 0 {
                report.warn(Condition::Truncated)?;
            }
            number & most
        }
        Given::Text(text) => {
            let listed = trimmed(&text, charset);
            let (mut chosen, mut unknown) = (0u64, 0);
            for part in listed
                .split(|byte| *byte == b',')
                .filter(|_| !listed.is_empty())
            {
                match members.find(part).map_err(|()| NO_WEIGHT)? {
                    Some(number) => chosen |= 1 << (number - 1),
                    None => unknown += 1,
                }
            }
            if chosen == 0 && !text.is_empty() && text.len() < SET_DIGITS {
                if hides_number(charset, &text) {
                    return Err(HIDDEN_NUMBER);
                }
                match number_text(&text) {
                    Some(number) if number & !most == 0 => chosen = number,
                    given => {
                        report.warn(Condition::Truncated)?;
                        if report.ctx.family == Family::MariaDb
                            && let Some(number) = given
                        {
                            chosen = number & most;
                        }
                    }
                }
            } else if unknown > 0 {
                report.warn(Condition::Truncated)?;
                if unknown > 1 {
                    return Err(StoreError::Unsupported(
                        "several texts that are no members, for SET",
                    ));
                }
            }
            chosen
        }
    };
    out.extend_from_slice(&chosen.to_be_bytes());
    Ok(())
}
