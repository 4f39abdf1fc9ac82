//! Comparing ENUM, SET and BIT columns with constants.
//!
//! With numbers they are compared as numbers. With texts ENUM and SET are compared as texts by the
//! collation, so the outcome for a text says only whether it equals a value: where it stands among
//! the others (`<`) does not follow from the numbers, and the planner must not ask.

use std::borrow::Cow;

use super::{Comparand, Outcome, integer, number, unsupported};
use crate::collation::{Collation, Weights};
use crate::context::{CompareError, Input};
use crate::format::all_bits;
use crate::members::Members;
use crate::store::{hides_number, number_text};
use crate::types::{Family, Kind, SqlType};
use crate::weight;

const INDEX: SqlType = SqlType {
    unsigned: true,
    ..SqlType::plain(Kind::SmallInt(None))
};
const WORD: SqlType = SqlType {
    unsigned: true,
    ..SqlType::plain(Kind::BigInt(None))
};

/// Where a number stands among the numbers from 0 to `most`, appended in the width of `ty`.
fn place(ty: &SqlType, most: u64, input: Input<'_>, out: &mut Vec<u8>) -> Outcome {
    let start = out.len();
    let comparand = integer(ty, number(input)?, out)?;
    let value = out[start..]
        .iter()
        .fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    if out.len() > start && (value > most || (value == most && comparand == Comparand::Between)) {
        out.truncate(start);
        return Ok(Comparand::AboveAll);
    }
    Ok(comparand)
}

pub(super) fn bit(bits: u8, input: Input<'_>, out: &mut Vec<u8>) -> Outcome {
    let most = u64::MAX >> (64 - u32::from(bits));
    let magnitude;
    let input = match input {
        Input::Hex(bytes) if bytes.len() <= 8 => {
            magnitude = bytes
                .iter()
                .fold(0u64, |value, byte| value << 8 | u64::from(*byte));
            Input::Integer {
                negative: false,
                magnitude,
            }
        }
        Input::Integer { .. } | Input::Decimal(_) => input,
        _ => return unsupported("anything but an exact number compared with BIT"),
    };
    let start = out.len();
    let comparand = place(&WORD, most, input, out)?;
    if out.len() > start {
        let width = usize::from(bits.div_ceil(8));
        out.drain(start..out.len() - width);
    }
    Ok(comparand)
}

/// The constant in the column's charset, without the spaces at its end that the collation does not
/// count.
fn text_of<'v>(ty: &SqlType, input: Input<'v>) -> Result<Cow<'v, [u8]>, CompareError> {
    let Input::Text { bytes, charset } = input else {
        return Err(CompareError::Unsupported(
            "a binary string or a date compared with ENUM or SET",
        ));
    };
    let target = ty.charset();
    if charset.valid_prefix(bytes) < bytes.len() {
        return Err(CompareError::Unsupported(
            "a string that is not well-formed in its character set",
        ));
    }
    if charset.same_bytes(target, bytes) {
        if target.valid_prefix(bytes) < bytes.len() {
            return Err(CompareError::Unsupported(
                "a string that is not well-formed in its character set",
            ));
        }
        return Ok(trimmed(ty, bytes).into());
    }
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match charset.decode(&bytes[at..]) {
            Some((code, length)) if target.encode(code, &mut out) => at += length,
            _ => {
                return Err(CompareError::Unsupported(
                    "a string with characters that the column's character set lacks",
                ));
            }
        }
    }
    out.truncate(trimmed(ty, &out).len());
    Ok(out.into())
}

fn trimmed<'t>(ty: &SqlType, text: &'t [u8]) -> &'t [u8] {
    if !ty.collation.is_some_and(|collation| collation.pad_space()) {
        return text;
    }
    let end = text.iter().rposition(|byte| *byte != b' ');
    &text[..end.map_or(0, |at| at + 1)]
}

const NO_WEIGHT: CompareError =
    CompareError::Unsupported("a string without weights compared with ENUM or SET");

pub(super) fn of_enum(
    members: Members,
    ty: &SqlType,
    input: Input<'_>,
    family: Family,
    out: &mut Vec<u8>,
) -> Outcome {
    if !matches!(input, Input::Text { .. } | Input::Bytes(_) | Input::Hex(_)) {
        return place(&INDEX, members.count() as u64, input, out);
    }
    let text = text_of(ty, input)?;
    let found = match text.is_empty() {
        // The value of an error is the empty text.
        true => Some(0),
        false => members.find(&text).map_err(|()| NO_WEIGHT)?,
    };
    match found {
        Some(number) => {
            out.extend_from_slice(&number.to_be_bytes());
            Ok(Comparand::Exact)
        }
        None if !is_plain(ty, &text) => {
            unsupported("a string of rare characters compared with ENUM")
        }
        // In an index MySQL looks such a text up as it would store it: '2' finds the second member.
        None if family == Family::MySql
            && (number_text(&text).is_some() || hides_number(ty.charset(), &text)) =>
        {
            unsupported("a string that is a number and no member, compared with ENUM")
        }
        None => Ok(Comparand::AboveAll),
    }
}

pub(super) fn of_set(
    members: Members,
    ty: &SqlType,
    input: Input<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    if !matches!(input, Input::Text { .. } | Input::Bytes(_) | Input::Hex(_)) {
        return place(&WORD, all_bits(members), input, out);
    }
    let text = text_of(ty, input)?;
    // Other characters may weigh what the comma does, or nothing.
    if !is_plain(ty, &text) {
        return unsupported("a string of rare characters compared with SET");
    }
    let (mut chosen, mut last) = (0u64, 0);
    for part in text
        .split(|byte| *byte == b',')
        .filter(|_| !text.is_empty())
    {
        match members.find(part).map_err(|()| NO_WEIGHT)? {
            // Values name their members in the order of the definition, each once.
            Some(number) if number > last => {
                chosen |= 1 << (number - 1);
                last = number;
            }
            _ => return Ok(Comparand::AboveAll),
        }
    }
    out.extend_from_slice(&chosen.to_be_bytes());
    Ok(Comparand::Exact)
}

/// Whether every character has a weight that is not nothing, and none but the space and the comma
/// weighs what these do, or what several do.
fn is_plain(ty: &SqlType, text: &[u8]) -> bool {
    let charset = ty.charset();
    let by_characters = ty
        .collation
        .filter(|collation| weighs_characters(*collation));
    let mut at = 0;
    while at < text.len() {
        let Some((code, length)) = charset.decode(&text[at..]) else {
            return false;
        };
        let is_apart = match (code, by_characters) {
            (0x20 | 0x2C, _) => true,
            (_, Some(collation)) => is_apart(collation, &text[at..at + length]),
            // printable ASCII, Latin letters with accents
            (0x20..=0x7E | 0xA1..=0xAC | 0xAE..=0x24F, None) => true,
            _ => false,
        };
        if !is_apart {
            return false;
        }
        at += length;
    }
    true
}

/// Whether each character has one weight, whatever stands beside it.
fn weighs_characters(collation: Collation) -> bool {
    match collation.weights() {
        Weights::Bytes
        | Weights::CodePoints
        | Weights::Single(_)
        | Weights::Pairs(_)
        | Weights::GeneralCi => true,
        Weights::UnicodeCi
        | Weights::Unicode520Ci
        | Weights::Uca0900AiCi
        | Weights::Uca1400AiCi
        | Weights::Unknown => false,
    }
}

/// Whether the character is another to the collation than the space and the comma.
fn is_apart(collation: Collation, character: &[u8]) -> bool {
    [b" ", b","].iter().all(|other| {
        let order = weight::compare_unpadded(collation, character, *other);
        order.is_ok_and(std::cmp::Ordering::is_ne)
    })
}
