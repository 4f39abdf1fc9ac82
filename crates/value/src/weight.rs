//! Weights and order: bytes whose equality is SQL equality and bytes whose memcmp order is SQL
//! order.

use std::cmp::Ordering;

use crate::charset::Charset;
use crate::collation::{Collation, Weights};
use crate::decimal;
use crate::payload;
use crate::tables::{self, CharacterWeights, Table};
use crate::types::{Kind, SqlType};

/// Why a value has no weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeightError {
    /// The collation's weights are not known: the column can be sealed and not searched.
    #[error("the weights of the column's collation are not known")]
    UnknownCollation,
    /// The text has characters whose weight depends on their neighbours in a way that is not
    /// reproduced.
    #[error(
        "the value has characters that the column's collation weighs together, which is not supported"
    )]
    Contraction,
    /// JSON values are not compared here.
    #[error("values of type JSON cannot be compared")]
    Json,
    /// The bytes are no payload of the type.
    #[error("a value does not belong to the column's type")]
    Malformed,
}

/// Appends the weight of a payload. Two payloads of one type have equal weights exactly where SQL's
/// `=` holds.
pub fn weight(ty: &SqlType, payload: &[u8], out: &mut Vec<u8>) -> Result<(), WeightError> {
    if let Some(collation) = text_collation(ty) {
        let start = out.len();
        // Weights of one and of two bytes in a row do not tell where the last one begins,
        // characters do.
        let payload = match collation.weights() {
            Weights::Pairs(_) if collation.pad_space() => {
                collation.charset().without_spaces(payload)
            }
            _ => payload,
        };
        let done = string_weights(collation, payload, usize::MAX, out);
        if done.is_err() {
            out.truncate(start);
            return done;
        }
        if collation.pad_space() && !matches!(collation.weights(), Weights::Pairs(_)) {
            let space = pad_weight(collation);
            while out.len() - start >= space.len() && out.ends_with(space) {
                out.truncate(out.len() - space.len());
            }
        }
        return Ok(());
    }
    scalar(ty, payload, out)
}

/// The collation that payloads are compared by: none where they hold numbers of members.
fn text_collation(ty: &SqlType) -> Option<Collation> {
    ty.collation.filter(|_| ty.is_character())
}

/// Appends the weights of a text, spaces at its end included.
pub(crate) fn unpadded(
    collation: Collation,
    text: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), WeightError> {
    string_weights(collation, text, usize::MAX, out)
}

/// Compares two texts as if no collation padded.
pub(crate) fn compare_unpadded(
    collation: Collation,
    left: &[u8],
    right: &[u8],
) -> Result<Ordering, WeightError> {
    compare_texts(collation, left, right, &[])
}

/// Everything but text: the payload, with one zero instead of two.
fn scalar(ty: &SqlType, payload: &[u8], out: &mut Vec<u8>) -> Result<(), WeightError> {
    match ty.kind {
        Kind::Float => {
            let value = payload::read_f32(payload).ok_or(WeightError::Malformed)?;
            payload::write_f32(value + 0.0, out);
        }
        Kind::Double => {
            let value = payload::read_f64(payload).ok_or(WeightError::Malformed)?;
            payload::write_f64(value + 0.0, out);
        }
        Kind::Json => return Err(WeightError::Json),
        _ => {
            if !ty.is_binary() && ty.payload_fixed() != Some(payload.len()) {
                return Err(WeightError::Malformed);
            }
            out.extend_from_slice(payload);
        }
    }
    Ok(())
}

/// The weight with which comparison pads the shorter string.
fn pad_weight(collation: Collation) -> &'static [u8] {
    match collation.weights() {
        Weights::Bytes | Weights::Unknown | Weights::Pairs(_) => b" ",
        Weights::CodePoints => b"\0\0 ",
        Weights::Single(table) => table.space(),
        Weights::GeneralCi => b"\0 ",
        Weights::UnicodeCi => &[0x02, 0x09],
        Weights::Unicode520Ci => &[0x02, 0x0A],
        Weights::Uca1400AiCi => &[0x02, 0x09],
        Weights::Uca0900AiCi => &[],
    }
}

/// Appends weights of text until its end or until at least `enough` bytes are there.
fn string_weights(
    collation: Collation,
    text: &[u8],
    enough: usize,
    out: &mut Vec<u8>,
) -> Result<(), WeightError> {
    match collation.weights() {
        Weights::Unknown => Err(WeightError::UnknownCollation),
        Weights::Bytes => {
            out.extend_from_slice(&text[..text.len().min(enough)]);
            Ok(())
        }
        Weights::Single(table) => {
            let table = table.table();
            out.extend(
                text.iter()
                    .take(enough)
                    .map(|byte| table[usize::from(*byte)]),
            );
            Ok(())
        }
        Weights::Uca1400AiCi if tables::has_contraction(collation.charset(), text) => {
            Err(WeightError::Contraction)
        }
        weights => match utf8_table(weights, collation.charset()) {
            Some(table) => table.append(text, enough, out),
            None => {
                let start = out.len();
                let mut rest = text;
                while !rest.is_empty() && out.len() - start < enough {
                    let (weights, length) = first_of(collation, rest)?;
                    out.extend_from_slice(weights.bytes());
                    rest = &rest[length..];
                }
                Ok(())
            }
        },
    }
}

/// The table of a collation's weights, if it has one for Unicode.
pub(crate) fn unicode_table(weights: Weights) -> Option<Table> {
    Some(match weights {
        Weights::GeneralCi => tables::general_ci(),
        Weights::UnicodeCi => tables::unicode_ci(),
        Weights::Unicode520Ci => tables::unicode_520_ci(),
        Weights::Uca0900AiCi => tables::uca_0900_ai_ci(),
        Weights::Uca1400AiCi => tables::uca_1400_ai_ci(),
        _ => return None,
    })
}

/// The same, if texts are UTF-8.
fn utf8_table(weights: Weights, charset: Charset) -> Option<Table> {
    unicode_table(weights).filter(|_| charset.has_ascii())
}

/// The weights of the first character of a text that is not empty, and the character's length, by
/// collations that weigh texts other than UTF-8 character by character.
fn first_of(collation: Collation, text: &[u8]) -> Result<(CharacterWeights, usize), WeightError> {
    let charset = collation.charset();
    if let Weights::Pairs(pairs) = collation.weights() {
        let (weight, length) = pairs.first(charset, text)?;
        return Ok((CharacterWeights::of(&weight[2 - length..]), length));
    }
    let (code, length) = charset.decode(text).ok_or(WeightError::Malformed)?;
    let weights = match (collation.weights(), unicode_table(collation.weights())) {
        (Weights::CodePoints, _) => CharacterWeights::of(&code.to_be_bytes()[1..]),
        (_, Some(table)) => table.of_code(code),
        _ => return Err(WeightError::UnknownCollation),
    };
    Ok((weights, length))
}

/// Appends the order bytes of a payload: always [`SqlType::order_width`] bytes, whose memcmp order
/// agrees with SQL's order. For strings they are the first weights, continued with the weight that
/// comparison pads with.
pub fn order_bytes(ty: &SqlType, payload: &[u8], out: &mut Vec<u8>) -> Result<(), WeightError> {
    let width = ty.order_width().ok_or(WeightError::UnknownCollation)?;
    let start = out.len();
    if !ty.is_character() && !ty.is_binary() {
        return scalar(ty, payload, out);
    }
    let pad_space = ty.collation.is_some_and(Collation::pad_space);
    let suffix = width.exact && !pad_space && !matches!(ty.kind, Kind::Binary { .. });
    let weights = width.bytes - usize::from(suffix);
    match ty.collation {
        Some(collation) => {
            if let Err(failure) = string_weights(collation, payload, weights, out) {
                out.truncate(start);
                return Err(failure);
            }
        }
        None => out.extend_from_slice(&payload[..payload.len().min(weights)]),
    }
    let length = out.len() - start;
    out.truncate(start + weights);
    if pad_space && let Some(collation) = ty.collation {
        let pad = pad_weight(collation);
        while out.len() < start + weights {
            out.push(pad[(out.len() - start) % pad.len()]);
        }
    } else {
        out.resize(start + weights, 0);
    }
    if suffix {
        out.push(length.min(255) as u8);
    }
    Ok(())
}

/// The payload that has these order bytes, for types whose order key is
/// [invertible](crate::OrderWidth::invertible); for FLOAT and DOUBLE zero stands for both zeros.
pub fn payload_from_order(
    ty: &SqlType,
    order: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), WeightError> {
    if ty.is_character() || ty.is_binary() || ty.payload_fixed() != Some(order.len()) {
        return Err(WeightError::Malformed);
    }
    if let Kind::Decimal { precision, scale } = ty.kind {
        decimal::read_payload(order, precision, scale).ok_or(WeightError::Malformed)?;
    }
    out.extend_from_slice(order);
    Ok(())
}

/// SQL's order of two payloads of one type, by full weights. Ends in an error where [`weight`]
/// would.
pub fn cmp(ty: &SqlType, left: &[u8], right: &[u8]) -> Result<Ordering, WeightError> {
    let Some(collation) = text_collation(ty) else {
        if ty.is_json_value() {
            return Err(WeightError::Json);
        }
        if matches!(ty.kind, Kind::Float | Kind::Double) {
            let real = |payload| payload::read_real(ty, payload).ok_or(WeightError::Malformed);
            return real(left)?
                .partial_cmp(&real(right)?)
                .ok_or(WeightError::Malformed);
        }
        return Ok(left.cmp(right));
    };
    let pad = if collation.pad_space() {
        pad_weight(collation)
    } else {
        &[]
    };
    compare_texts(collation, left, right, pad)
}

/// Compares two texts; the shorter goes on with the weight `pad`.
fn compare_texts(
    collation: Collation,
    left: &[u8],
    right: &[u8],
    pad: &[u8],
) -> Result<Ordering, WeightError> {
    match collation.weights() {
        Weights::Unknown => Err(WeightError::UnknownCollation),
        Weights::Bytes => Ok(compare_padded(
            left.iter().copied(),
            right.iter().copied(),
            pad,
        )),
        Weights::Single(table) => {
            let table = table.table();
            let weigh = |byte: &u8| table[usize::from(*byte)];
            Ok(compare_padded(
                left.iter().map(weigh),
                right.iter().map(weigh),
                pad,
            ))
        }
        Weights::Uca1400AiCi
            if [left, right]
                .iter()
                .any(|text| tables::has_contraction(collation.charset(), text)) =>
        {
            Err(WeightError::Contraction)
        }
        weights => match utf8_table(weights, collation.charset()) {
            Some(table) => by_table(table, left, right, pad),
            None => by_characters(|text| first_of(collation, text), left, right, pad),
        },
    }
}

/// Compares the weights of two texts character by character, without memory of its own.
fn by_table(table: Table, left: &[u8], right: &[u8], pad: &[u8]) -> Result<Ordering, WeightError> {
    // Equal beginnings weigh alike, so weighing starts at the character in which the texts begin to
    // differ.
    let mut same = left
        .iter()
        .zip(right)
        .take_while(|(left, right)| left == right)
        .count();
    while same > 0 && (continues(left, same) || continues(right, same)) {
        same -= 1;
    }
    // Mostly the first characters that differ decide, and have one weight each.
    while let (Some(l), Some(r)) = (left.get(same), right.get(same)) {
        match (table.single(*l), table.single(*r)) {
            (Some(l), Some(r)) if l == r => same += 1,
            (Some(l), Some(r)) => return Ok(l.cmp(&r)),
            _ => break,
        }
    }
    by_characters(|text| table.first(text), &left[same..], &right[same..], pad)
}

/// The same for texts of any kind, whose first characters `first` weighs.
fn by_characters(
    first: impl Fn(&[u8]) -> Result<(CharacterWeights, usize), WeightError>,
    left: &[u8],
    right: &[u8],
    pad: &[u8],
) -> Result<Ordering, WeightError> {
    let (mut left, mut right) = (Weighed::new(&first, left), Weighed::new(&first, right));
    let order = compare_padded(&mut left, &mut right, pad);
    match left.failed.or(right.failed) {
        Some(failure) => Err(failure),
        None => Ok(order),
    }
}

/// Whether the byte at `at` continues a UTF-8 character.
fn continues(text: &[u8], at: usize) -> bool {
    text.get(at).is_some_and(|byte| byte & 0xC0 == 0x80)
}

/// The bytes of a text's weights.
struct Weighed<'t, F> {
    first: &'t F,
    text: &'t [u8],
    current: CharacterWeights,
    at: usize,
    failed: Option<WeightError>,
}

impl<'t, F> Weighed<'t, F> {
    fn new(first: &'t F, text: &'t [u8]) -> Self {
        Weighed {
            first,
            text,
            current: CharacterWeights::default(),
            at: 0,
            failed: None,
        }
    }
}

impl<F> Iterator for Weighed<'_, F>
where
    F: Fn(&[u8]) -> Result<(CharacterWeights, usize), WeightError>,
{
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        loop {
            if let Some(byte) = self.current.bytes().get(self.at) {
                self.at += 1;
                return Some(*byte);
            }
            if self.text.is_empty() {
                return None;
            }
            match (self.first)(self.text) {
                Ok((weights, length)) => {
                    (self.current, self.at) = (weights, 0);
                    self.text = &self.text[length..];
                }
                Err(failure) => {
                    self.failed = Some(failure);
                    return None;
                }
            }
        }
    }
}

/// Compares two rows of weights; the shorter goes on with `pad` again and again, or ends where that
/// is empty.
fn compare_padded(
    mut left: impl Iterator<Item = u8>,
    mut right: impl Iterator<Item = u8>,
    pad: &[u8],
) -> Ordering {
    let mut place = 0;
    loop {
        let padding = pad.get(place % pad.len().max(1)).copied();
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (left, right) => left.or(padding).cmp(&right.or(padding)),
        };
        if order.is_ne() {
            return order;
        }
        place += 1;
    }
}
