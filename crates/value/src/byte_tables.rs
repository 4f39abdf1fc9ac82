//! Weights of collations of character sets that are not Unicode, measured on servers
//! (`charsets/generate.py`).
//!
//! In the simple ones each byte has one weight ([`Bytes`]). In those of East Asian sets a character
//! has a weight of as many bytes as it has itself, one or two ([`Pairs`]); weights of one byte are
//! below the first bytes of all others, so that the order of the weights in a row is the order of
//! the texts. Collations that weigh several characters together are in neither; nor are
//! big5_chinese_ci and euckr_korean_ci, in which texts are unequal whose WEIGHT_STRING() is the
//! same (MySQL and MariaDB), or equal though it differs (MySQL).

use std::sync::OnceLock;

use crate::charset::Charset;
use crate::weight::WeightError;

static LATIN1_SWEDISH: &[u8; 256] = include_bytes!("../weights/latin1_swedish_ci.bin");
static OTHERS: &str = include_str!("../charsets/weights.tsv");

/// A collation in which each byte has one weight, by its place among the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bytes(u8);

fn all_bytes() -> &'static [(&'static str, [u8; 256])] {
    static READ: OnceLock<Vec<(&str, [u8; 256])>> = OnceLock::new();
    READ.get_or_init(|| {
        let line = |line: &'static str| {
            let (name, digits) = line.split_once('\t')?;
            let mut weights = [0; 256];
            for (at, weight) in weights.iter_mut().enumerate() {
                *weight = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
            }
            Some((name, weights))
        };
        let swedish = ("latin1_swedish_ci", *LATIN1_SWEDISH);
        let others = OTHERS.lines().filter_map(line);
        std::iter::once(swedish).chain(others).collect()
    })
}

/// The weights of this collation; `None` where bytes do not have one each.
pub(crate) fn bytes(collation: &str) -> Option<Bytes> {
    let at = all_bytes()
        .iter()
        .position(|(name, _)| *name == collation)?;
    Some(Bytes(u8::try_from(at).ok()?))
}

impl Bytes {
    /// A weight for each byte.
    pub(crate) fn table(self) -> &'static [u8; 256] {
        &all_bytes()[usize::from(self.0)].1
    }

    /// The weight of the space.
    pub(crate) fn space(self) -> &'static [u8] {
        &self.table()[0x20..0x21]
    }
}

/// A collation in which characters of one and of two bytes have weights of their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pairs {
    GbkChinese,
    Gb2312Chinese,
}

struct PairTable {
    one: [u8; 256],
    /// By the two bytes. Most weigh what they are.
    two: Vec<u16>,
}

const PAIRS: [(Pairs, &str, &[u8]); 2] = [
    (
        Pairs::GbkChinese,
        "gbk_chinese_ci",
        include_bytes!("../charsets/gbk_chinese_ci.bin"),
    ),
    (
        Pairs::Gb2312Chinese,
        "gb2312_chinese_ci",
        include_bytes!("../charsets/gb2312_chinese_ci.bin"),
    ),
];

/// The weights of this collation, if it is one of them.
pub(crate) fn pairs(collation: &str) -> Option<Pairs> {
    let (pairs, ..) = PAIRS.iter().find(|(_, name, _)| *name == collation)?;
    Some(*pairs)
}

impl PairTable {
    /// 256 weights of one byte; then stretches of pairs in 16-bit numbers, the higher byte first:
    /// the first pair, how many, a weight for each. Pairs that are not there weigh what they are.
    fn read(data: &[u8]) -> Option<PairTable> {
        let (one, rest) = data.split_first_chunk()?;
        let mut two: Vec<u16> = (0..=u16::MAX).collect();
        let (numbers, _) = rest.as_chunks::<2>();
        let mut numbers = numbers.iter().map(|pair| u16::from_be_bytes(*pair));
        while let Some(first) = numbers.next() {
            let count = numbers.next()?;
            for pair in (usize::from(first)..).take(usize::from(count)) {
                *two.get_mut(pair)? = numbers.next()?;
            }
        }
        Some(PairTable { one: *one, two })
    }
}

impl Pairs {
    fn table(self) -> Option<&'static PairTable> {
        static READ: [OnceLock<Option<PairTable>>; PAIRS.len()] =
            [const { OnceLock::new() }; PAIRS.len()];
        let at = self as usize;
        READ[at]
            .get_or_init(|| PairTable::read(PAIRS[at].2))
            .as_ref()
    }

    /// The weight of the first character of a text that is not empty, and the character's length;
    /// the weight is in the last bytes of the array, as many as the character has.
    pub(crate) fn first(
        self,
        charset: Charset,
        text: &[u8],
    ) -> Result<([u8; 2], usize), WeightError> {
        let table = self.table().ok_or(WeightError::UnknownCollation)?;
        let (_, length) = charset.decode(text).ok_or(WeightError::Malformed)?;
        match *text {
            [byte, ..] if length == 1 => Ok(([0, table.one[usize::from(byte)]], 1)),
            [first, second, ..] if length == 2 => {
                let pair = u16::from_be_bytes([first, second]);
                Ok((table.two[usize::from(pair)].to_be_bytes(), 2))
            }
            _ => Err(WeightError::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_table() {
        assert_eq!(all_bytes().len(), OTHERS.lines().count() + 1);
        assert!(all_bytes().len() < 256);
        for (name, weights) in all_bytes() {
            let at = bytes(name).expect(name);
            assert_eq!(at.table(), weights);
            assert_eq!(weights[usize::from(b'a')], weights[usize::from(b'a')]);
        }
        assert_eq!(bytes("latin1_german2_ci"), None);
        let swedish = bytes("latin1_swedish_ci").expect("a table").table();
        assert_eq!(swedish[usize::from(b'a')], swedish[usize::from(b'A')]);
    }

    /// What `PairTable` says of weights: the order of texts follows from it, and that spaces at the
    /// end can be cut off the text.
    #[test]
    fn weights_of_one_byte_come_before_all_of_two() {
        for (at, (pairs, name, _)) in PAIRS.iter().enumerate() {
            assert_eq!(*pairs as usize, at);
            let table = pairs.table().expect(name);
            let ones = &table.one[..0x80];
            let most = ones.iter().max().expect("weights");
            let least = table.two[0x8100..].iter().min().expect("weights");
            assert!(u16::from(*most) < least >> 8, "{name}");
            assert_eq!(ones[0x20], 0x20, "{name}");
            assert_eq!(ones.iter().filter(|w| **w == 0x20).count(), 1, "{name}");
        }
    }
}
