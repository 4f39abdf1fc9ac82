//! Patterns, and which values match them.

use std::borrow::Cow;

use super::key::{Key, Rule};
use crate::charset::Charset;
use crate::context::{CompareError, Input};
use crate::types::{Kind, SqlType};
use crate::weight::WeightError;

/// A part of a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Element {
    /// `_`
    One,
    /// `%`
    Many,
    Character(Key),
}

/// What stands behind ESCAPE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// Nothing: the backslash, unless `sql_mode` says otherwise.
    Backslash,
    /// This character.
    Character(char),
}

/// A pattern as it is compared with the values of a column. Made once for a statement.
pub struct LikePattern {
    rule: Rule,
    pub(crate) elements: Vec<Element>,
}

/// What a pattern in a statement comes to.
pub enum Pattern {
    /// NULL: LIKE and NOT LIKE are true of nothing.
    Null,
    /// A pattern.
    Like(LikePattern),
}

const fn unsupported<T>(reason: &'static str) -> Result<T, CompareError> {
    Err(CompareError::Unsupported(reason))
}

/// Bytes. A pattern takes some dozen times its length in memory, before the server could refuse it.
const LONGEST_PATTERN: usize = 64 << 10;

impl LikePattern {
    /// Reads what stands behind LIKE beside a column of this type. Where the server would compare
    /// under another collation than the column's, or read the pattern otherwise, the result is
    /// [`CompareError::Unsupported`].
    pub fn read(ty: &SqlType, input: Input<'_>, escape: Escape) -> Result<Pattern, CompareError> {
        let escape = escape_character(escape)?;
        let Some(Text { bytes, charset }) = text_of(ty, input)? else {
            return Ok(Pattern::Null);
        };
        if bytes.len() > LONGEST_PATTERN {
            return unsupported("a pattern of more than 64 KiB");
        }
        if charset == Charset::Binary && ty.is_character() {
            return unsupported("a binary pattern for a text");
        }
        if matches!(ty.kind, Kind::Float | Kind::Double) {
            return unsupported("a pattern for a FLOAT or DOUBLE");
        }
        if ty.is_fixed_binary() {
            // whose letters count by the pattern's collation
            return unsupported("a pattern for UUID, INET6 or INET4");
        }
        let rule = Rule::of(ty).map_err(|_| {
            CompareError::Unsupported("a pattern under a collation that is not known")
        })?;
        let target = rule.charset();
        if target == Charset::Ascii && !bytes.is_ascii() {
            return unsupported("a pattern that is not ASCII, for a number or date");
        }
        let text = converted(&bytes, charset, target)?;
        match Self::compile(rule, &text, escape) {
            Ok(pattern) => Ok(Pattern::Like(pattern)),
            Err(_) => unsupported("a pattern that is not well-formed in its character set"),
        }
    }

    fn compile(rule: Rule, mut text: &[u8], escape: char) -> Result<Self, WeightError> {
        let mut elements = Vec::with_capacity(text.len());
        while let Some((mut key, mut length)) = rule.first(text)? {
            let (code, _) = rule.charset().decode(text).ok_or(WeightError::Malformed)?;
            let escaped = text
                .get(length..)
                .filter(|rest| code == u32::from(escape) && !rest.is_empty());
            let element = match (char::from_u32(code), escaped) {
                (_, Some(rest)) => {
                    text = rest;
                    (key, length) = rule.first(text)?.ok_or(WeightError::Malformed)?;
                    Element::Character(key)
                }
                (Some('%'), None) => Element::Many,
                (Some('_'), None) => Element::One,
                _ => Element::Character(key),
            };
            text = &text[length..];
            if element != Element::Many || elements.last() != Some(&Element::Many) {
                elements.push(element);
            }
        }
        Ok(LikePattern { rule, elements })
    }

    /// Whether a value is LIKE the pattern: the payload of a text or binary column, the shown text
    /// of any other.
    pub fn matches(&self, value: &[u8]) -> Result<bool, WeightError> {
        let elements = self.elements.as_slice();
        let (mut element, mut at) = (0, 0);
        // behind the last `%`: the next element, and the first byte that it has not been tried on
        let mut again: Option<(usize, usize)> = None;
        loop {
            let fits = match (elements.get(element), self.rule.first(&value[at..])?) {
                (None, None) => return Ok(true),
                (Some(Element::Many), _) => {
                    element += 1;
                    again = Some((element, at));
                    if element == elements.len() {
                        return Ok(true);
                    }
                    continue;
                }
                // more is wanted than is left, and would be wherever `%` ends
                (Some(_), None) => return Ok(false),
                (Some(Element::One), Some((_, length))) => Some(length),
                (Some(Element::Character(wanted)), Some((key, length))) => {
                    (*wanted == key).then_some(length)
                }
                (None, Some(_)) => None,
            };
            match (fits, again) {
                (Some(length), _) => {
                    element += 1;
                    at += length;
                }
                (None, None) => return Ok(false),
                (None, Some((behind, tried))) => {
                    let skipped = self.rule.first(&value[tried..])?.map_or(1, |(_, l)| l);
                    let mut next = tried + skipped;
                    if let Some(Element::Character(wanted)) = elements.get(behind) {
                        match self.rule.find(value, next, *wanted)? {
                            Some(found) => next = found,
                            None => return Ok(false),
                        }
                    }
                    again = Some((behind, next));
                    (element, at) = (behind, next);
                }
            }
        }
    }
}

/// The character that takes the meaning from the wildcard behind it.
fn escape_character(escape: Escape) -> Result<char, CompareError> {
    match escape {
        Escape::Backslash => Ok('\\'),
        // which of its two meanings comes first depends on the character set
        Escape::Character('%' | '_') => unsupported("a wildcard behind ESCAPE"),
        // to a binary pattern, a byte
        Escape::Character(c) if !c.is_ascii() => {
            unsupported("a character behind ESCAPE that is not ASCII")
        }
        Escape::Character(c) => Ok(c),
    }
}

/// What stands behind LIKE, before it is converted.
struct Text<'i> {
    bytes: Cow<'i, [u8]>,
    charset: Charset,
}

/// The text of a pattern; `None` for NULL.
fn text_of<'i>(ty: &SqlType, input: Input<'i>) -> Result<Option<Text<'i>>, CompareError> {
    let text = |bytes: &'i [u8], charset| {
        Ok(Some(Text {
            bytes: Cow::Borrowed(bytes),
            charset,
        }))
    };
    match input {
        Input::Null => Ok(None),
        Input::Text { bytes, charset } => text(bytes, charset),
        Input::Bytes(bytes) | Input::Hex(bytes) if ty.is_binary() => text(bytes, Charset::Binary),
        Input::Bool(true) => text(b"1", Charset::Ascii),
        Input::Bool(false) => text(b"0", Charset::Ascii),
        Input::Integer {
            negative,
            magnitude,
        } => {
            let sign = if negative && magnitude > 0 { "-" } else { "" };
            Ok(Some(Text {
                bytes: Cow::Owned(format!("{sign}{magnitude}").into_bytes()),
                charset: Charset::Ascii,
            }))
        }
        _ => unsupported("a pattern that is no text"),
    }
}

/// A pattern in the character set of the column.
fn converted(
    bytes: &[u8],
    charset: Charset,
    target: Charset,
) -> Result<Cow<'_, [u8]>, CompareError> {
    if charset.same_bytes(target, bytes) {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut converted = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match charset.decode(&bytes[at..]) {
            Some((code, length)) if target.encode(code, &mut converted) => at += length,
            _ => {
                return unsupported(
                    "a pattern with characters that the column's character set lacks",
                );
            }
        }
    }
    Ok(Cow::Owned(converted))
}
