//! What LIKE compares of a character.

use std::sync::OnceLock;

use crate::byte_tables::Pairs;
use crate::charset::Charset;
use crate::collation::Weights;
use crate::tables::{self, Table};
use crate::types::SqlType;
use crate::weight::WeightError;

/// What LIKE compares of a character: equal keys mean characters that are LIKE each other.
///
/// A character's weights, in their order from the most significant bits on (none of them is zero);
/// or, where its code counts, that number and [`BY_CODE`].
pub(crate) type Key = u128;

const BY_CODE: Key = 1 << 32;
/// Stands before the first character of a value; no character's key.
pub(crate) const BEGINNING: Key = Key::MAX;
/// Stands behind the last one.
pub(crate) const END: Key = Key::MAX - 1;

type AsciiKeys = OnceLock<[Key; 128]>;

/// How characters get their keys.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
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
    /// That of a column.
    pub fn of(ty: &SqlType) -> Result<Rule, WeightError> {
        static GENERAL: AsciiKeys = OnceLock::new();
        static UNICODE: AsciiKeys = OnceLock::new();
        static UNICODE_520: AsciiKeys = OnceLock::new();
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
            // for the hexagrams at its end, MariaDB lists the page of the last ideographs of
            // extension A
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
            Weights::Unicode520Ci => weights(tables::unicode_520_ci(), u32::MAX, &UNICODE_520),
            Weights::Uca0900AiCi => weights(tables::uca_0900_ai_ci(), u32::MAX, &UCA_0900),
            Weights::Uca1400AiCi => weights(tables::uca_1400_ai_ci(), u32::MAX, &UCA_1400),
        })
    }

    /// The character set of the column's values.
    #[inline]
    pub fn charset(self) -> Charset {
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
    #[inline]
    pub fn first(self, text: &[u8]) -> Result<Option<(Key, usize)>, WeightError> {
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

    /// The first byte, from `at` on, of a character with this key. Most of what LIKE does with a
    /// value is to look for it.
    #[inline]
    pub fn find(
        self,
        text: &[u8],
        mut at: usize,
        wanted: Key,
    ) -> Result<Option<usize>, WeightError> {
        let rest = text.get(at..).unwrap_or_default();
        // bytes that are a character each, which is not this one
        at += match self {
            Rule::Bytes(table, _) => match u8::try_from(wanted ^ BY_CODE) {
                Ok(weight) => count_while(rest, |byte| table[usize::from(byte)] != weight),
                Err(_) => rest.len(),
            },
            Rule::Code(charset) if charset.has_ascii() => {
                // what is left of a code without the mark, which no byte is if the key is not a
                // code's
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
