//! LIKE: which values a pattern matches, and the grams by which values that may match are found.
//!
//! The servers compare LIKE **character by character**. So it differs from `=`: nothing is padded (`'a '` is not LIKE `'a'`), a
//! character that weighs as two others do is not LIKE them (`'ß'` is not LIKE `'ss'`), and a character without weight counts (the
//! value must have one in its place). Two characters are LIKE each other if
//!
//! | collations | |
//! |---|---|
//! | `…_bin`, binary types | they are the same, in the sets of tables (gbk, cp1251, …) byte for byte |
//! | `…_general_ci`, `latin1_swedish_ci` and what else weighs byte by byte | they have the same weight |
//! | `gbk_chinese_ci` and the like | they have the same weight if they are ASCII; others are the same |
//! | `…_unicode_ci`, `…_uca1400_ai_ci`, `utf8mb4_0900_ai_ci` | the collation's table lists both, with the same weights; or they are the same. Ideographs, Hangul syllables and, in `…_unicode_ci`, whatever is outside of the basic plane are not listed |
//!
//! Measured on MariaDB 10.11 and MySQL 9.7; `onionskin/tests/like.rs` compares every character of the basic plane and random
//! patterns with both servers.
//!
//! Numbers and dates are matched as the texts that servers show.
//!
//! # Grams
//!
//! A gram is three characters of a value in a row, as LIKE compares them; its beginning and its end count as characters. Every
//! value that a pattern matches has the grams of each stretch of the pattern between its wildcards. So an index over
//! grams finds candidates and loses none.

use std::sync::OnceLock;

use crate::byte_tables::Pairs;
use crate::charset::Charset;
use crate::collation::Weights;
use crate::context::{CompareError, Input};
use crate::tables::{self, Table};
use crate::types::{Kind, SqlType};
use crate::weight::WeightError;

/// Characters of a gram.
const GRAM_CHARACTERS: usize = 3;
/// Bytes of a gram.
pub const GRAM_BYTES: usize = GRAM_CHARACTERS * 16;

/// What LIKE compares of a character: equal keys mean characters that are LIKE each other.
///
/// A character's weights, in their order from the most significant bits on (none of them is zero); or, where its code counts, that
/// number and [`BY_CODE`].
type Key = u128;

const BY_CODE: Key = 1 << 32;
/// Stands before the first character of a value; no character's key.
const BEGINNING: Key = Key::MAX;
/// Stands behind the last one.
const END: Key = Key::MAX - 1;

type AsciiKeys = OnceLock<[Key; 128]>;

/// How characters get their keys.
#[derive(Clone, Copy)]
enum Rule {
    /// By their codes in this character set.
    Code(Charset),
    /// By their bytes in this character set, some of whose characters have more than one code.
    Encoded(Charset),
    /// By a table of bytes.
    Bytes(&'static [u8; 256], Charset),
    /// ASCII by a table, others by their bytes.
    Pairs(Pairs, Charset),
    /// By a table of weights, as far as it lists them.
    Weights {
        table: Table,
        charset: Charset,
        /// The last code that the table lists.
        last: u32,
        /// The upper bytes of codes that count as listed all, though some follow from their codes.
        page: u32,
        ascii: &'static AsciiKeys,
    },
}

impl Rule {
    fn of(ty: &SqlType) -> Result<Rule, WeightError> {
        static GENERAL: AsciiKeys = OnceLock::new();
        static UNICODE: AsciiKeys = OnceLock::new();
        static UCA_0900: AsciiKeys = OnceLock::new();
        static UCA_1400: AsciiKeys = OnceLock::new();
        let Some(collation) = ty.collation else {
            return Ok(Rule::Code(match ty.is_binary() {
                true => Charset::Binary,
                // numbers and dates, as text
                false => Charset::Ascii,
            }));
        };
        let charset = collation.charset();
        let page = match collation.weights() {
            // for the hexagrams at its end, MariaDB lists the page of the last ideographs of extension A
            Weights::Uca1400AiCi => 0x4D,
            _ => u32::MAX,
        };
        let weights = |table, last, ascii| Rule::Weights {
            table,
            charset,
            last,
            page,
            ascii,
        };
        Ok(match collation.weights() {
            Weights::Unknown => return Err(WeightError::UnknownCollation),
            Weights::Bytes if charset.is_measured() => Rule::Encoded(charset),
            Weights::Bytes | Weights::CodePoints => Rule::Code(charset),
            Weights::Single(table) => Rule::Bytes(table.table(), charset),
            Weights::Pairs(pairs) => Rule::Pairs(pairs, charset),
            Weights::GeneralCi => weights(tables::general_ci(), u32::MAX, &GENERAL),
            Weights::UnicodeCi => weights(tables::unicode_ci(), 0xFFFF, &UNICODE),
            Weights::Uca0900AiCi => weights(tables::uca_0900_ai_ci(), u32::MAX, &UCA_0900),
            Weights::Uca1400AiCi => weights(tables::uca_1400_ai_ci(), u32::MAX, &UCA_1400),
        })
    }

    fn charset(self) -> Charset {
        match self {
            Rule::Code(charset)
            | Rule::Encoded(charset)
            | Rule::Bytes(_, charset)
            | Rule::Pairs(_, charset)
            | Rule::Weights { charset, .. } => charset,
        }
    }

    /// The key of a character.
    fn of_code(self, code: u32) -> Key {
        let Rule::Weights {
            table, last, page, ..
        } = self
        else {
            return BY_CODE | Key::from(code);
        };
        let listed = match code >> 8 == page {
            true => Some(table.of_code(code)),
            false => table.listed(code).filter(|_| code <= last),
        };
        match listed {
            Some(weights) => {
                let mut key = [0; 16];
                key[..weights.bytes().len()].copy_from_slice(weights.bytes());
                Key::from_be_bytes(key)
            }
            None => BY_CODE | Key::from(code),
        }
    }

    /// The key of the first character of a text, and its length; `None` at the end.
    fn first(self, text: &[u8]) -> Result<Option<(Key, usize)>, WeightError> {
        let Some(&byte) = text.first() else {
            return Ok(None);
        };
        match self {
            Rule::Bytes(table, _) => {
                let weight = table[usize::from(byte)];
                return Ok(Some((BY_CODE | Key::from(weight), 1)));
            }
            Rule::Pairs(pairs, charset) if byte < 128 => {
                let (weight, length) = pairs.first(charset, text)?;
                return Ok(Some((BY_CODE | Key::from(weight[1]), length)));
            }
            Rule::Weights { ascii, charset, .. } if byte < 128 && charset.has_ascii() => {
                let keys = ascii.get_or_init(|| std::array::from_fn(|c| self.of_code(c as u32)));
                return Ok(Some((keys[usize::from(byte)], 1)));
            }
            _ => {}
        }
        let (code, length) = self.charset().decode(text).ok_or(WeightError::Malformed)?;
        if let Rule::Encoded(_) | Rule::Pairs(..) = self {
            // four at most, so that no key is another kind's
            let bytes = &text[..length];
            let number = bytes.iter().fold(0, |n, b| n << 8 | Key::from(*b));
            return Ok(Some((BY_CODE | number, length)));
        }
        Ok(Some((self.of_code(code), length)))
    }

    /// The first byte, from `at` on, of a character with this key. Most of what LIKE does with a value is to look for it.
    fn find(self, text: &[u8], mut at: usize, wanted: Key) -> Result<Option<usize>, WeightError> {
        let rest = text.get(at..).unwrap_or_default();
        // bytes that are a character each, which is not this one
        at += match self {
            Rule::Bytes(table, _) => match u8::try_from(wanted ^ BY_CODE) {
                Ok(weight) => count_while(rest, |byte| table[usize::from(byte)] != weight),
                Err(_) => rest.len(),
            },
            Rule::Code(charset) if charset.has_ascii() => {
                // what is left of a code without the mark, which no byte is if the key is not a code's
                let code = u32::try_from(wanted ^ BY_CODE).unwrap_or(u32::MAX);
                count_while(rest, |byte| byte < 128 && u32::from(byte) != code)
            }
            Rule::Weights { ascii, charset, .. } if charset.has_ascii() => match ascii.get() {
                Some(keys) => {
                    count_while(rest, |byte| byte < 128 && keys[usize::from(byte)] != wanted)
                }
                None => 0,
            },
            _ => 0,
        };
        while let Some((key, length)) = self.first(text.get(at..).unwrap_or_default())? {
            if key == wanted {
                return Ok(Some(at));
            }
            at += length;
        }
        Ok(None)
    }
}

/// How many bytes there are before the first that is not so.
fn count_while(bytes: &[u8], mut is: impl FnMut(u8) -> bool) -> usize {
    bytes.iter().take_while(|&&byte| is(byte)).count()
}

/// A part of a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Element {
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
    elements: Vec<Element>,
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
    /// Reads what stands behind LIKE beside a column of this type. Where the server would compare under another collation than the
    /// column's, or read the pattern otherwise, the result is [`CompareError::Unsupported`].
    pub fn read(ty: &SqlType, input: Input<'_>, escape: Escape) -> Result<Pattern, CompareError> {
        let escape = match escape {
            Escape::Backslash => '\\',
            // which of its two meanings comes first depends on the character set
            Escape::Character('%' | '_') => return unsupported("a wildcard behind ESCAPE"),
            // to a binary pattern, a byte
            Escape::Character(c) if !c.is_ascii() => {
                return unsupported("a character behind ESCAPE that is not ASCII");
            }
            Escape::Character(c) => c,
        };
        let number;
        let (bytes, charset) = match input {
            Input::Null => return Ok(Pattern::Null),
            Input::Text { bytes, charset } => (bytes, charset),
            Input::Bytes(bytes) | Input::Hex(bytes) if ty.is_binary() => (bytes, Charset::Binary),
            Input::Bool(truth) => (if truth { b"1".as_slice() } else { b"0" }, Charset::Ascii),
            Input::Integer {
                negative,
                magnitude,
            } => {
                let sign = if negative && magnitude > 0 { "-" } else { "" };
                number = format!("{sign}{magnitude}").into_bytes();
                (number.as_slice(), Charset::Ascii)
            }
            _ => return unsupported("a pattern that is no text"),
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
        let rule = Rule::of(ty).map_err(|_| {
            CompareError::Unsupported("a pattern under a collation that is not known")
        })?;
        let target = rule.charset();
        if target == Charset::Ascii && !bytes.is_ascii() {
            return unsupported("a pattern that is not ASCII, for a number or date");
        }
        let mut converted = Vec::new();
        let text = if charset.same_bytes(target, bytes) {
            bytes
        } else {
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
            &converted
        };
        match Self::compile(rule, text, escape) {
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

    /// Whether a value is LIKE the pattern: the payload of a text or binary column, the shown text of any other.
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

    /// Hands the grams out that every value has that the pattern matches: at most about `most`, evenly taken; none if all
    /// stretches between its wildcards are too short.
    pub fn grams(&self, most: usize, mut each: impl FnMut(&[u8; GRAM_BYTES])) {
        let mut found = Vec::new();
        let mut stretch = vec![BEGINNING];
        for element in &self.elements {
            match element {
                Element::Character(key) => stretch.push(*key),
                Element::One | Element::Many => {
                    found.extend(stretch.windows(GRAM_CHARACTERS).map(gram));
                    stretch.clear();
                }
            }
        }
        stretch.push(END);
        // a pattern without wildcards has its beginning and its end in one stretch
        found.extend(stretch.windows(GRAM_CHARACTERS).map(gram));
        let step = found.len().div_ceil(most.max(1)).max(1);
        found.iter().step_by(step).for_each(&mut each);
    }
}

fn gram(keys: &[Key]) -> [u8; GRAM_BYTES] {
    let mut bytes = [0; GRAM_BYTES];
    for (place, key) in bytes.chunks_exact_mut(16).zip(keys) {
        place.copy_from_slice(&key.to_be_bytes());
    }
    bytes
}

/// Hands out the grams of a value of a text column, in its order and as often as they are there.
pub fn grams(
    ty: &SqlType,
    payload: &[u8],
    mut each: impl FnMut(&[u8; GRAM_BYTES]),
) -> Result<(), WeightError> {
    let rule = Rule::of(ty)?;
    let mut window = [0, 0, BEGINNING];
    let mut characters = 1;
    let mut add = |key: Key| {
        window = [window[1], window[2], key];
        characters += 1;
        if characters >= GRAM_CHARACTERS {
            each(&gram(&window));
        }
    };
    let mut rest = payload;
    while let Some((key, length)) = rule.first(rest)? {
        add(key);
        rest = &rest[length..];
    }
    add(END);
    Ok(())
}

/// Whether values of this type have grams: texts under a collation whose characters are known.
pub fn has_grams(ty: &SqlType) -> bool {
    ty.is_character() && ty.collation.is_some_and(|c| c.is_searchable())
}

/// The most grams that a value of this type has.
pub fn most_grams(ty: &SqlType) -> u64 {
    let characters = match ty.kind {
        Kind::Char { chars } | Kind::VarChar { chars } => u64::from(chars),
        _ => ty.payload_max(),
    };
    characters.saturating_add(2) - (GRAM_CHARACTERS as u64 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn text(collation: &str) -> SqlType {
        SqlType::parse("varchar(60)", Some(collation)).unwrap()
    }

    fn pattern(ty: &SqlType, pattern: &str) -> LikePattern {
        let input = Input::Text {
            bytes: pattern.as_bytes(),
            charset: Charset::Utf8mb4,
        };
        match LikePattern::read(ty, input, Escape::Backslash).unwrap() {
            Pattern::Like(pattern) => pattern,
            Pattern::Null => panic!("not NULL"),
        }
    }

    fn like(collation: &str, value: &str, wanted: &str) -> bool {
        pattern(&text(collation), wanted)
            .matches(value.as_bytes())
            .unwrap()
    }

    #[test]
    fn wildcards_and_escapes() {
        let is = |value, wanted| like("utf8mb4_general_ci", value, wanted);
        for (value, wanted) in [
            ("", ""),
            ("", "%"),
            ("a", "_"),
            ("aé", "__"),
            ("abcabd", "%abd"),
            ("abcabd", "a%b%d"),
            ("mississippi", "%iss%ip%i"),
            ("100%", "100\\%"),
            ("a_b", "a\\_b"),
            ("a\\", "a\\"),
            ("a\\b", "a\\\\b"),
            ("Ä", "a"),
            ("ab", "%%ab%%"),
            ("a\\", "%\\"),
        ] {
            assert!(is(value, wanted), "{value} LIKE {wanted}");
        }
        for (value, wanted) in [
            ("", "_"),
            ("a", ""),
            ("a ", "a"),
            ("a", "a "),
            ("axb", "a\\_b"),
            ("abc", "ab"),
            ("ab", "%abc"),
            ("1000", "100\\%"),
            ("abcabc", "%abd"),
        ] {
            assert!(!is(value, wanted), "{value} NOT LIKE {wanted}");
        }
    }

    #[test]
    fn characters_are_compared_one_by_one() {
        assert!(!like("utf8mb4_unicode_ci", "ß", "ss"));
        assert!(like("utf8mb4_unicode_ci", "ß", "_"));
        assert!(!like("utf8mb4_unicode_ci", "a\u{301}", "a"));
        assert!(like("utf8mb4_unicode_ci", "a\u{301}", "a_"));
        assert!(like("utf8mb4_unicode_ci", "a\u{301}", "a\u{300}"));
        assert!(!like("utf8mb4_bin", "A", "a"));
        assert!(like("utf8mb4_0900_ai_ci", "É", "e"));
        assert!(!like("utf8mb4_unicode_ci", "😀", "😁"));
        assert!(like("utf8mb4_general_ci", "😀", "😁"));
    }

    fn like_in(collation: &str, value: &str, wanted: &str) -> bool {
        let ty = text(collation);
        let mut bytes = Vec::new();
        for character in value.chars() {
            assert!(ty.charset().encode(character.into(), &mut bytes), "{value}");
        }
        pattern(&ty, wanted).matches(&bytes).unwrap()
    }

    #[test]
    fn characters_of_several_bytes_are_kept_together() {
        // what is known of ASCII in UTF-8 is no help in UTF-16: 0x6100 is no letter a behind half a character
        assert!(like("utf8mb4_general_ci", "xa", "%A"));
        for collation in ["utf16_general_ci", "utf16le_general_ci", "utf16_unicode_ci"] {
            assert!(like_in(collation, "ba\u{100}xaß", "%XA_"), "{collation}");
            assert!(
                !like_in(collation, "\u{6100}\u{6200}", "%a%"),
                "{collation}"
            );
            assert!(!like_in(collation, "\u{61}\u{6261}", "%b%"), "{collation}");
        }
        assert!(like_in("gbk_bin", "縗x", "_x"));
        assert!(!like_in("gbk_bin", "縗x", "%\\\\x"));
        assert!(like_in("gbk_chinese_ci", "縗X\\", "縗x\\\\"));
        assert!(like_in("cp1251_general_ci", "Жук", "жУ_"));
    }

    /// Two characters of cp932 mean U+2252.
    #[test]
    fn what_means_the_same_is_not_like_it_in_another_form() {
        let matches = |collation, wanted: &[u8]| {
            let ty = text(collation);
            let input = Input::Text {
                bytes: wanted,
                charset: ty.charset(),
            };
            match LikePattern::read(&ty, input, Escape::Backslash).unwrap() {
                Pattern::Like(pattern) => pattern.matches(b"\x87\x90").unwrap(),
                Pattern::Null => panic!("not NULL"),
            }
        };
        assert!(matches("cp932_bin", b"\x87\x90"));
        assert!(!matches("cp932_bin", b"\x81\xe0"));
    }

    /// Numbers below `n`, the same for the same seed.
    fn numbers(mut seed: u64) -> impl FnMut(usize) -> usize {
        move |n| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % n
        }
    }

    /// LIKE as it is defined: `%` is any number of characters.
    fn by_definition(value: &[char], wanted: &[char]) -> bool {
        match (value, wanted) {
            ([], []) => true,
            (_, ['%', rest @ ..]) => (0..=value.len()).any(|n| by_definition(&value[n..], rest)),
            ([_, value @ ..], ['_', rest @ ..]) => by_definition(value, rest),
            ([v, value @ ..], [w, rest @ ..]) => v == w && by_definition(value, rest),
            _ => false,
        }
    }

    #[test]
    fn random_patterns_match_by_definition() {
        let mut random = numbers(11);
        let mut matched = 0;
        for _ in 0..20_000 {
            let mut word = |of: &[char], longest: usize| -> Vec<char> {
                let length = random(longest + 1);
                (0..length).map(|_| of[random(of.len())]).collect()
            };
            let value = word(&['a', 'b', 'é', '😀'], 9);
            let wanted = word(&['a', 'b', 'é', '😀', '%', '%', '_'], 7);
            let expected = by_definition(&value, &wanted);
            let (value, wanted): (String, String) =
                (value.iter().collect(), wanted.iter().collect());
            for collation in ["utf8mb4_bin", "utf8mb4_0900_ai_ci", "utf8mb4_general_ci"] {
                assert_eq!(
                    like(collation, &value, &wanted),
                    expected,
                    "{value} LIKE {wanted}"
                );
            }
            let (value, wanted) = (value.replace('😀', "ß"), wanted.replace('😀', "ß"));
            for collation in ["latin1_swedish_ci", "latin1_bin", "utf16_general_ci"] {
                assert_eq!(
                    like_in(collation, &value, &wanted),
                    expected,
                    "{value} LIKE {wanted}, {collation}"
                );
            }
            matched += usize::from(expected);
        }
        assert!((2_000..18_000).contains(&matched), "{matched}");
    }

    #[test]
    fn what_matches_has_the_patterns_grams() {
        let mut random = numbers(7);
        let mut selective = 0;
        for collation in [
            "utf8mb4_general_ci",
            "utf8mb4_unicode_ci",
            "utf8mb4_0900_ai_ci",
            "utf8mb4_bin",
            "latin1_swedish_ci",
        ] {
            let ty = text(collation);
            for _ in 0..4000 {
                let letters = ["a", "A", "b", "%", "_", "é", " "];
                let mut make = |most: usize, wild: usize| -> String {
                    let length = random(most);
                    (0..length).map(|_| letters[random(wild)]).collect()
                };
                let (value, wanted) = (make(9, 3), make(7, 5));
                let compiled = pattern(&ty, &wanted);
                let mut of_value = HashSet::new();
                grams(&ty, value.as_bytes(), |g| {
                    of_value.insert(*g);
                })
                .unwrap();
                let mut missing = false;
                compiled.grams(12, |g| missing |= !of_value.contains(g));
                if compiled.matches(value.as_bytes()).unwrap() {
                    assert!(!missing, "{value:?} LIKE {wanted:?}, {collation}");
                } else {
                    selective += usize::from(missing);
                }
            }
        }
        assert!(selective > 2000, "{selective}");
    }

    #[test]
    fn a_value_has_a_gram_for_each_character() {
        let count = |value: &str| {
            let mut n = 0;
            grams(&text("utf8mb4_bin"), value.as_bytes(), |_| n += 1).unwrap();
            n
        };
        assert_eq!(
            [count(""), count("a"), count("ab"), count("äöü")],
            [0, 1, 2, 3]
        );
        assert_eq!(most_grams(&text("utf8mb4_bin")), 60);
        let count = |wanted: &str, most| {
            let mut n = 0;
            pattern(&text("utf8mb4_bin"), wanted).grams(most, |_| n += 1);
            n
        };
        assert_eq!(count("ab%", 12), 1);
        assert_eq!(count("%ab%", 12), 0);
        assert_eq!(count("%abc%", 12), 1);
        assert_eq!(count("a_b", 12), 0);
        assert_eq!(count("abc", 12), 3);
        assert!(count(&"x".repeat(60), 12) <= 12);
    }
}
