//! Weight tables taken from real servers; `weights/generate.py` writes them and describes the
//! format.
//!
//! The families agree on every code point of the collations that both have. A search for pairs of
//! characters that weigh other than one after the other (contractions) found none but in
//! utf8mb4_uca1400_ai_ci, so a text's weights are the weights of its characters in a row. Texts
//! with one of that collation's contractions are refused.

use std::sync::OnceLock;

use crate::charset::Charset;
use crate::weight::WeightError;

/// The weights of a Unicode collation for each character.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    bytes: &'static [u8],
    ascii: &'static OnceLock<Ascii>,
}

/// The weights of ASCII characters, which most texts consist of: a length and as many bytes, or
/// [`LONGER`]. As long as there are bytes, so that none is out of bounds.
type Ascii = [(u8, [u8; 2]); 256];

/// Has more than one weight, or is no ASCII character: found in the table.
const LONGER: u8 = u8::MAX;

static GENERAL_CI: &[u8] = include_bytes!("../weights/utf8mb4_general_ci.bin");
static UNICODE_CI: &[u8] = include_bytes!("../weights/utf8mb4_unicode_ci.bin");
static UNICODE_520_CI: &[u8] = include_bytes!("../weights/utf8mb4_unicode_520_ci.bin");
static UCA_0900_AI_CI: &[u8] = include_bytes!("../weights/utf8mb4_0900_ai_ci.bin");
static UCA_1400_AI_CI: &[u8] = include_bytes!("../weights/utf8mb4_uca1400_ai_ci.bin");
/// Pairs of characters that utf8mb4_uca1400_ai_ci weighs together, or with a third one: two code
/// points of 32 bits each, the highest byte first, in their order.
static UCA_1400_CONTRACTIONS: &[u8] =
    include_bytes!("../weights/utf8mb4_uca1400_ai_ci.contractions.bin");

/// utf8mb4_general_ci: one weight for each character.
pub(crate) fn general_ci() -> Table {
    static ASCII: OnceLock<Ascii> = OnceLock::new();
    Table {
        bytes: GENERAL_CI,
        ascii: &ASCII,
    }
}

/// utf8mb4_unicode_ci: primary weights of UCA 4.0.0.
pub(crate) fn unicode_ci() -> Table {
    static ASCII: OnceLock<Ascii> = OnceLock::new();
    Table {
        bytes: UNICODE_CI,
        ascii: &ASCII,
    }
}

/// utf8mb4_unicode_520_ci: primary weights of UCA 5.2.0.
pub(crate) fn unicode_520_ci() -> Table {
    static ASCII: OnceLock<Ascii> = OnceLock::new();
    Table {
        bytes: UNICODE_520_CI,
        ascii: &ASCII,
    }
}

/// utf8mb4_0900_ai_ci: primary weights of UCA 9.0.0.
pub(crate) fn uca_0900_ai_ci() -> Table {
    static ASCII: OnceLock<Ascii> = OnceLock::new();
    Table {
        bytes: UCA_0900_AI_CI,
        ascii: &ASCII,
    }
}

/// utf8mb4_uca1400_ai_ci: primary weights of UCA 14.0.0, of texts without
/// [contractions](has_contraction).
pub(crate) fn uca_1400_ai_ci() -> Table {
    static ASCII: OnceLock<Ascii> = OnceLock::new();
    Table {
        bytes: UCA_1400_AI_CI,
        ascii: &ASCII,
    }
}

/// Whether utf8mb4_uca1400_ai_ci weighs some characters of the text together. Of a text that is not
/// well-formed, the part before that counts.
pub(crate) fn has_contraction(charset: Charset, text: &[u8]) -> bool {
    if charset.has_ascii() && text.is_ascii() {
        return false;
    }
    let (pairs, _) = UCA_1400_CONTRACTIONS.as_chunks::<8>();
    let mut before = 0;
    let mut rest = text;
    while let Some((code, length)) = charset.decode(rest) {
        let pair = (u64::from(before) << 32 | u64::from(code)).to_be_bytes();
        if pairs.binary_search(&pair).is_ok() {
            return true;
        }
        before = code;
        rest = &rest[length..];
    }
    false
}

const PAGE_NUMBERS: usize = 2;
const PAGES: usize = PAGE_NUMBERS + 0x1100;

/// Characters that room is made for at a time.
const RUN: usize = 128;

impl Table {
    /// The 16-bit number at an index; 0 beyond the table, which a well-made table never asks for.
    fn number(self, at: usize) -> u16 {
        match self.bytes.get(at * 2..at * 2 + 2) {
            Some(pair) => u16::from_be_bytes([pair[0], pair[1]]),
            None => 0,
        }
    }

    /// Appends the weights of UTF-8 text until its end or until at least `enough` bytes were
    /// appended.
    pub(crate) fn append(
        self,
        text: &[u8],
        enough: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), WeightError> {
        let start = out.len();
        let ascii = self.ascii();
        let mut at = 0;
        while at < text.len() && out.len() - start < enough {
            // a run of characters with one weight each, without a look at the buffer's room for
            // each of them
            let left = (enough - (out.len() - start)).div_ceil(2);
            let rest = &text[at..];
            let from = out.len();
            out.resize(from + 2 * left.min(rest.len()).min(RUN), 0);
            let (weights, _) = out[from..].as_chunks_mut::<2>();
            let mut run = 0;
            for (weight, byte) in weights.iter_mut().zip(rest) {
                let (count, only) = ascii[usize::from(*byte)];
                if count != 2 {
                    break;
                }
                *weight = only;
                run += 1;
            }
            out.truncate(from + 2 * run);
            if run > 0 {
                at += run;
                continue;
            }
            if ascii[usize::from(rest[0])].0 == 0 {
                at += 1;
                continue;
            }
            let (weights, length) = self.first(rest)?;
            out.extend_from_slice(weights.bytes());
            at += length;
        }
        Ok(())
    }

    fn ascii(self) -> &'static Ascii {
        self.ascii.get_or_init(|| {
            let mut all = [(LONGER, [0; 2]); 256];
            for (code, entry) in (0..).zip(&mut all[..128]) {
                let mut weights = CharacterWeights::default();
                self.character(code, &mut weights);
                match *weights.bytes() {
                    [] => *entry = (0, [0; 2]),
                    [high, low] => *entry = (2, [high, low]),
                    _ => {}
                }
            }
            all
        })
    }

    /// The only weight of the character that begins with this byte, if it is an ASCII character
    /// with one weight.
    pub(crate) fn single(self, byte: u8) -> Option<[u8; 2]> {
        match self.ascii()[usize::from(byte)] {
            (2, weight) => Some(weight),
            _ => None,
        }
    }

    /// The weights of the first character of a text that is not empty, and the character's length.
    pub(crate) fn first(self, text: &[u8]) -> Result<(CharacterWeights, usize), WeightError> {
        let (code, length) = Charset::Utf8mb4
            .decode(text)
            .ok_or(WeightError::Malformed)?;
        Ok((self.of_code(code), length))
    }

    /// The weights of a character.
    pub(crate) fn of_code(self, code: u32) -> CharacterWeights {
        let mut weights = CharacterWeights::default();
        self.character(code, &mut weights);
        weights
    }

    /// The weights of a character that the collation's own table lists; `None` where they follow
    /// from its code or from other characters.
    pub(crate) fn listed(self, code: u32) -> Option<CharacterWeights> {
        if matches!(self.entry(code), 0xFFF0..=0xFFF4) {
            return None;
        }
        let mut weights = CharacterWeights::default();
        self.character(code, &mut weights);
        Some(weights)
    }

    fn entry(self, code: u32) -> u16 {
        let page = usize::from(self.number(PAGE_NUMBERS + (code >> 8) as usize));
        self.number(PAGES + page * 256 + (code & 0xFF) as usize)
    }

    fn character(self, code: u32, out: &mut CharacterWeights) {
        let entry = self.entry(code);
        let low = (code & 0x7FFF | 0x8000) as u16;
        let high = (code >> 15) as u16;
        match entry {
            // Implicit weights of ideographs and of what has none.
            0xFFF0 => out.push_two(0xFB40 + high, low),
            0xFFF1 => out.push_two(0xFB80 + high, low),
            0xFFF2 => out.push_two(0xFBC0 + high, low),
            // A Hangul syllable weighs what its letters weigh. Letters are never of this kind.
            0xFFF3 => {
                let index = code.wrapping_sub(0xAC00);
                for letter in [0x1100 + index / 588, 0x1161 + index % 588 / 28] {
                    self.character(letter, out);
                }
                if !index.is_multiple_of(28) {
                    self.character(0x11A7 + index % 28, out);
                }
            }
            0xFFF4 => out.push_two(0xFB00, (code.wrapping_sub(0x17000) | 0x8000) as u16),
            0xFFF5 => out.push(code as u16),
            _ => {
                let offsets = PAGES + usize::from(self.number(0)) * 256;
                let weights = offsets + usize::from(self.number(1)) + 1;
                let entry = offsets + usize::from(entry);
                for at in self.number(entry)..self.number(entry + 1) {
                    out.push(self.number(weights + usize::from(at)));
                }
            }
        }
    }
}

/// The weights of one character: at most eight.
#[derive(Clone, Copy, Default)]
pub(crate) struct CharacterWeights {
    bytes: [u8; 16],
    length: usize,
}

impl CharacterWeights {
    fn push(&mut self, weight: u16) {
        if let Some(slot) = self.bytes.get_mut(self.length..self.length + 2) {
            slot.copy_from_slice(&weight.to_be_bytes());
            self.length += 2;
        }
    }

    fn push_two(&mut self, first: u16, second: u16) {
        self.push(first);
        self.push(second);
    }

    /// A weight of other than 16 bits; what is beyond 16 bytes is cut off.
    pub(crate) fn of(weight: &[u8]) -> Self {
        let mut own = CharacterWeights::default();
        own.length = weight.len().min(own.bytes.len());
        own.bytes[..own.length].copy_from_slice(&weight[..own.length]);
        own
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_has_weights_or_none_on_purpose() {
        for (table, ignorable_at_most) in [
            (general_ci(), 0),
            (unicode_ci(), 1500),
            (unicode_520_ci(), 3000),
            (uca_0900_ai_ci(), 3000),
            (uca_1400_ai_ci(), 3000),
        ] {
            let mut ignorable = 0;
            for code in (0..0x11_0000u32).filter_map(char::from_u32) {
                let mut weights = Vec::new();
                table
                    .append(
                        code.encode_utf8(&mut [0; 4]).as_bytes(),
                        usize::MAX,
                        &mut weights,
                    )
                    .expect("a character");
                assert!(weights.len() <= 16 && weights.len() % 2 == 0, "{code:?}");
                ignorable += usize::from(weights.is_empty());
            }
            assert!(
                ignorable <= ignorable_at_most,
                "{ignorable} characters without weight"
            );
        }
    }

    #[test]
    fn ascii_weighs_what_the_table_says() {
        for table in [
            general_ci(),
            unicode_ci(),
            unicode_520_ci(),
            uca_0900_ai_ci(),
            uca_1400_ai_ci(),
        ] {
            for code in 0..128u8 {
                let mut weights = Vec::new();
                table
                    .append(&[code], usize::MAX, &mut weights)
                    .expect("a character");
                let (expected, length) = table.first(&[code]).expect("a character");
                assert_eq!((&*weights, length), (expected.bytes(), 1));
            }
        }
    }

    #[test]
    fn runs_of_ascii_weigh_what_their_characters_weigh() {
        let text = "ab\u{1}-0\u{e9}Zz\u{df}x\u{1f600}\u{4e00}9 \u{ac00}end";
        for table in [
            general_ci(),
            unicode_ci(),
            unicode_520_ci(),
            uca_0900_ai_ci(),
            uca_1400_ai_ci(),
        ] {
            let mut expected = Vec::new();
            for character in text.chars() {
                let (weights, _) = table
                    .first(character.encode_utf8(&mut [0; 4]).as_bytes())
                    .expect("a character");
                expected.extend_from_slice(weights.bytes());
            }
            for enough in (0..=expected.len()).chain([usize::MAX]) {
                let mut weights = vec![7];
                table
                    .append(text.as_bytes(), enough, &mut weights)
                    .expect("a text");
                let weights = &weights[1..];
                assert!(expected.starts_with(weights), "{enough}");
                assert!(weights.len() >= enough.min(expected.len()), "{enough}");
            }
        }
    }

    #[test]
    fn malformed_text_has_none() {
        assert_eq!(
            general_ci().append(b"a\xFF", usize::MAX, &mut Vec::new()),
            Err(WeightError::Malformed)
        );
    }
}
