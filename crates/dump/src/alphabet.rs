//! What the characters of a text are to a collation: letters of an alphabet, signs, or blanks.
//!
//! Texts that are equal to the server have to stay equal, and others different. So characters are
//! told apart by their weights: `É` is the letter `e` where the collation says so, and a letter of
//! its own where it does not.

use std::collections::HashMap;

use onionskin_value::{Charset, Collation, Kind, SqlType, weight};

/// Number of an alphabet in [`ALPHABETS`].
pub(crate) type Alphabet = u8;

/// Blanks stay.
pub(crate) const BLANKS: Alphabet = 0;
/// Signs of ASCII.
pub(crate) const SIGNS: Alphabet = 1;
/// Digits.
pub(crate) const DIGITS: Alphabet = 2;
/// Small Latin letters; capital ones as well where these are equal.
pub(crate) const LETTERS: Alphabet = 3;
/// Han characters.
const IDEOGRAPHS: Alphabet = 13;

/// Ranges of characters that may take each other's place. What an earlier one has counts as that.
const ALPHABETS: [&[(u32, u32)]; 15] = [
    &[(0x20, 0x20), (0x09, 0x0A), (0x0D, 0x0D)],
    &[(0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)],
    &[(0x30, 0x39)],
    &[(0x61, 0x7A)],
    &[(0x41, 0x5A)],
    &[(0xDF, 0xF6), (0xF8, 0xFF)],
    &[(0xC0, 0xD6), (0xD8, 0xDE)],
    &[(0x100, 0x17F)],
    &[(0x3B1, 0x3C1), (0x3C3, 0x3C9)],
    &[(0x391, 0x3A1), (0x3A3, 0x3A9)],
    &[(0x430, 0x45F)],
    &[(0x400, 0x42F)],
    &[(0x3041, 0x3096), (0x30A1, 0x30FA)],
    &[(0x4E00, 0x9FA5)],
    &[(0xAC00, 0xD7A3)],
];

/// Other characters that may take each other's place: controls, signs of Latin-1, punctuation and
/// pictures. All characters of an alphabet have the same number of bytes in UTF-8.
const OTHERS: [&[(u32, u32)]; 5] = [
    &[(0x00, 0x08), (0x0B, 0x0C), (0x0E, 0x1F), (0x7F, 0x7F)],
    &[(0xA0, 0xBF), (0xD7, 0xD7), (0xF7, 0xF7)],
    &[(0x2010, 0x2027), (0x20A0, 0x20BF), (0x3001, 0x3002)],
    &[(0x2600, 0x27BF)],
    &[(0x1F300, 0x1F64F), (0x1F680, 0x1F6FF), (0x1F900, 0x1F9FF)],
];

/// A symbol: the place of a character in an alphabet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Symbol {
    pub alphabet: Alphabet,
    pub place: u32,
}

/// What a character is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A symbol.
    One(Symbol),
    /// Several of them: `ß` where it equals `ss`.
    Several(Vec<Symbol>),
    /// It does not count in comparisons.
    Ignored,
    /// No alphabet has it.
    Unknown,
}

/// The alphabets of a collation.
pub(crate) struct Alphabets {
    /// `None`: characters are compared as bytes.
    collation: Option<Collation>,
    charset: Charset,
    letters: Vec<Vec<char>>,
    /// Bytes of a letter's weight.
    unit: usize,
    by_weight: HashMap<Vec<u8>, Symbol>,
    known: HashMap<char, Meaning>,
    /// The same of ASCII.
    ascii: Vec<Meaning>,
}

impl Alphabets {
    /// Of a column's collation.
    pub fn of(collation: Collation) -> Self {
        let mut made = Self {
            collation: Some(collation).filter(|c| c.is_searchable()),
            charset: collation.charset(),
            letters: Vec::new(),
            unit: 1,
            by_weight: HashMap::new(),
            known: HashMap::new(),
            ascii: Vec::new(),
        };
        made.unit = made.weigh('a').map_or(1, |weight| weight.len()).max(1);
        made.letters = vec![Vec::new(); ALPHABETS.len() + OTHERS.len()];
        // What weighs as much as several others together is these others, whatever its alphabet: so
        // characters of one unit are known first.
        for is_single in [true, false] {
            for (alphabet, ranges) in ALPHABETS.iter().chain(&OTHERS).enumerate() {
                let codes = ranges.iter().flat_map(|(from, to)| *from..=*to);
                for letter in codes.filter_map(char::from_u32) {
                    made.add(alphabet as Alphabet, letter, is_single);
                }
            }
        }
        made.ascii = (0..128).map(|byte: u8| made.meaning(byte.into())).collect();
        made
    }

    fn add(&mut self, alphabet: Alphabet, letter: char, is_single: bool) {
        let Some(weight) = self.weigh(letter).filter(|weight| !weight.is_empty()) else {
            return;
        };
        let is_known = self.by_weight.contains_key(&weight);
        if is_known || (weight.len() <= self.unit) != is_single {
            return;
        }
        // Other characters of several units may be equal to rows of characters that are not known:
        // syllables of Hangul, to their parts.
        if !is_single && (alphabet != IDEOGRAPHS || self.parts(&weight).is_some()) {
            return;
        }
        let letters = &mut self.letters[usize::from(alphabet)];
        let place = letters.len() as u32;
        letters.push(letter);
        self.by_weight.insert(weight, Symbol { alphabet, place });
    }

    /// The symbols that weigh as much together.
    fn parts(&self, weight: &[u8]) -> Option<Vec<Symbol>> {
        let parts = weight
            .chunks(self.unit)
            .map(|part| self.by_weight.get(part).copied());
        parts.collect()
    }

    /// The weight of a character, behind which another one stands: alone, a blank would be taken
    /// for the padding at a text's end. `None`: the character set does not have it, or its weight
    /// depends on its neighbours.
    fn weigh(&self, letter: char) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        if !self.charset.encode(letter as u32, &mut text) {
            return None;
        }
        let Some(collation) = self.collation else {
            return Some(text);
        };
        let ty = text_type(collation);
        let mut sentinel = Vec::new();
        self.charset.encode(u32::from(b'z'), &mut sentinel);
        text.extend_from_slice(&sentinel);
        let (mut both, mut behind) = (Vec::new(), Vec::new());
        weight(&ty, &text, &mut both).ok()?;
        weight(&ty, &sentinel, &mut behind).ok()?;
        both.strip_suffix(behind.as_slice()).map(<[u8]>::to_vec)
    }

    /// What a character is.
    pub fn meaning(&mut self, letter: char) -> Meaning {
        if let Some(known) = self.ascii.get(letter as usize) {
            return known.clone();
        }
        if let Some(known) = self.known.get(&letter) {
            return known.clone();
        }
        let meaning = match self.weigh(letter) {
            None => Meaning::Unknown,
            Some(weight) if weight.is_empty() => Meaning::Ignored,
            Some(weight) => match self.by_weight.get(&weight) {
                Some(symbol) => Meaning::One(*symbol),
                None => self
                    .parts(&weight)
                    .map_or(Meaning::Unknown, Meaning::Several),
            },
        };
        self.known.insert(letter, meaning.clone());
        meaning
    }

    /// The character that stands for a symbol.
    pub fn letter(&self, symbol: Symbol) -> char {
        self.letters[usize::from(symbol.alphabet)][symbol.place as usize]
    }

    /// How many symbols an alphabet has.
    pub fn size(&self, alphabet: Alphabet) -> u32 {
        self.letters[usize::from(alphabet)].len() as u32
    }

    /// The capital letter of a symbol, if it is the same symbol.
    pub fn capital(&mut self, symbol: Symbol) -> char {
        let letter = self.letter(symbol);
        let mut upper = letter.to_uppercase();
        match (upper.next(), upper.next()) {
            (Some(upper), None) if self.meaning(upper) == Meaning::One(symbol) => upper,
            _ => letter,
        }
    }

    /// What two texts have in common exactly if the server calls them equal. `None`: weights of
    /// characters in the text depend on their neighbours, so that this is not known.
    pub fn weight_of(&self, text: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        if !text
            .chars()
            .all(|letter| self.charset.encode(letter as u32, &mut bytes))
        {
            return None;
        }
        let Some(collation) = self.collation else {
            return Some(bytes);
        };
        let mut out = Vec::new();
        weight(&text_type(collation), &bytes, &mut out).ok()?;
        Some(out)
    }

    /// Whether blanks at the end count.
    pub fn pads(&self) -> bool {
        self.collation.is_some_and(Collation::pad_space)
    }
}

fn text_type(collation: Collation) -> SqlType {
    SqlType {
        collation: Some(collation),
        ..SqlType::plain(Kind::LongText)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(collation: &str) -> Alphabets {
        Alphabets::of(Collation::from_name(collation).expect("a collation"))
    }

    #[test]
    fn letters_are_those_of_the_collation() {
        let mut ci = of("utf8mb4_general_ci");
        assert_eq!(ci.meaning('É'), ci.meaning('e'));
        assert_eq!(ci.size(4), 0, "capital letters are the small ones");
        let mut bin = of("utf8mb4_bin");
        assert_ne!(bin.meaning('E'), bin.meaning('e'));
        assert_ne!(bin.meaning('é'), bin.meaning('e'));
        assert_eq!(
            (bin.size(LETTERS), bin.size(DIGITS), bin.size(SIGNS)),
            (26, 10, 32)
        );
        let mut uca = of("utf8mb4_unicode_ci");
        let s = match uca.meaning('s') {
            Meaning::One(s) => s,
            other => panic!("{other:?}"),
        };
        assert_eq!(uca.meaning('ß'), Meaning::Several(vec![s, s]));
        let dot = uca.meaning('.');
        assert!(
            matches!(uca.meaning('…'), Meaning::Several(three) if three.len() == 3 && dot == Meaning::One(three[0]))
        );
        let mut latin = of("latin1_swedish_ci");
        assert_eq!(latin.meaning('中'), Meaning::Unknown);
    }
}
