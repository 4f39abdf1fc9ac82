//! Masks of texts.
//!
//! A text is read as symbols ([`crate::alphabet`]): which alphabet each character is of is its
//! shape, and blanks are part of it. The symbols are permuted among all texts of one shape, so
//! length, character set and equality hold. `generate` leaves signs where they are, and knows three
//! kinds of texts that applications look at: e-mail addresses, UUIDs and card numbers.

use crate::{
    alphabet::{Alphabets, BLANKS, DIGITS, LETTERS, Meaning, SIGNS, Symbol},
    permute::{Permuter, Stream},
};

/// The domain that is reserved for examples (RFC 2606).
const DOMAIN: &str = ".example";
/// Domain of an address that has no room for its own: no other one has a single name before
/// [`DOMAIN`].
const SHORT_DOMAIN: &str = "@x.example";
/// Letters by which two texts are told apart that have no shape.
const ENOUGH: usize = 12;
/// Letters of a text without a shape, if there is room.
const PLENTY: usize = 20;
/// Digits that test cards begin with: no issuer gives them out.
const TEST_CARD: [u32; 6] = [4, 0, 0, 0, 0, 0];

/// What is done to a column's texts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Manner {
    /// Signs stay, and kinds of texts are known.
    pub looks_alike: bool,
    /// Different texts must become different: the column is in a unique key, or joined.
    pub exact: bool,
    /// Most characters.
    pub chars: usize,
}

/// A character as it is replaced.
#[derive(Clone, Copy)]
struct Place {
    symbol: Symbol,
    is_capital: bool,
}

/// Replaces the texts of a column.
pub(crate) struct Texts {
    alphabets: Alphabets,
    manner: Manner,
}

impl Texts {
    pub fn new(alphabets: Alphabets, manner: Manner) -> Self {
        Self { alphabets, manner }
    }

    /// The text in the place of `text`. The error says why there is none.
    pub fn replace(&mut self, permuter: &mut Permuter, text: &str) -> Result<String, String> {
        let blanks = match self.alphabets.pads() {
            true => text.len() - text.trim_end_matches(' ').len(),
            false => 0,
        };
        let (text, padding) = text.split_at(text.len() - blanks);
        let mut out = match self.read(text) {
            Some(places) => match self.of_a_kind(permuter, &places)? {
                Some(done) => done,
                None => self.by_shape(permuter, places),
            },
            None => self.without_shape(permuter, text)?,
        };
        out.push_str(padding);
        Ok(out)
    }

    /// The symbols of a text; `None` if it has no shape.
    fn read(&mut self, text: &str) -> Option<Vec<Place>> {
        let mut places = Vec::with_capacity(text.len());
        for letter in text.chars() {
            let is_capital = letter.is_uppercase();
            let place = |symbol| Place { symbol, is_capital };
            match self.alphabets.meaning(letter) {
                Meaning::One(symbol) => places.push(place(symbol)),
                Meaning::Several(symbols) => places.extend(symbols.into_iter().map(place)),
                Meaning::Ignored => {}
                Meaning::Unknown => return None,
            }
        }
        // weights of letters that depend on their neighbours
        let is_plain = text.is_ascii() || self.alphabets.weight_of(text).is_some();
        (places.len() <= self.manner.chars && is_plain).then_some(places)
    }

    fn write(&mut self, places: &[Place]) -> String {
        let letter = |place: &Place| match place.is_capital {
            true => self.alphabets.capital(place.symbol),
            false => self.alphabets.letter(place.symbol),
        };
        places.iter().map(letter).collect()
    }

    /// The text by which kinds are known: what is equal to the server is one.
    fn plain(&self, places: &[Place]) -> String {
        let letters = places
            .iter()
            .map(|place| self.alphabets.letter(place.symbol));
        letters.collect()
    }

    fn by_shape(&mut self, permuter: &mut Permuter, mut places: Vec<Place>) -> String {
        loop {
            self.permute(permuter, &mut places);
            let plain = self.plain(&places);
            // these are the images of others
            let is_taken = self.manner.looks_alike && (is_uuid(&plain) || is_card(&plain));
            if !is_taken {
                return self.write(&places);
            }
        }
    }

    fn permute(&self, permuter: &mut Permuter, places: &mut [Place]) {
        let is_word = |place: &Place| ![BLANKS, SIGNS].contains(&place.symbol.alphabet);
        let signs_stay = self.manner.looks_alike && places.iter().any(is_word);
        let stays = |place: &Place| match place.symbol.alphabet {
            BLANKS => true,
            SIGNS => signs_stay,
            _ => false,
        };
        let moved: Vec<usize> = (0..places.len())
            .filter(|at| !stays(&places[*at]))
            .collect();
        let of = |at: &usize| places[*at].symbol;
        let mut symbols: Vec<u32> = moved.iter().map(|at| of(at).place).collect();
        let sizes: Vec<u32> = moved
            .iter()
            .map(|at| self.alphabets.size(of(at).alphabet))
            .collect();
        permuter.symbols(&mut symbols, &sizes);
        for (at, place) in moved.into_iter().zip(symbols) {
            places[at].symbol.place = place;
        }
    }

    /// What an application would take for something.
    fn of_a_kind(
        &mut self,
        permuter: &mut Permuter,
        places: &[Place],
    ) -> Result<Option<String>, String> {
        if !self.manner.looks_alike {
            return Ok(None);
        }
        let plain = self.plain(places);
        if let Some(at) = address(&plain) {
            return self.address(permuter, places, at).map(Some);
        }
        if is_uuid(&plain) {
            return Ok(Some(self.uuid(permuter, places, &plain)));
        }
        Ok(is_card(&plain).then(|| self.card(permuter, places)))
    }

    /// An address of a domain that nobody has. Both halves are permuted, so addresses of one domain
    /// stay together.
    fn address(
        &mut self,
        permuter: &mut Permuter,
        places: &[Place],
        at: usize,
    ) -> Result<String, String> {
        if places.len() + DOMAIN.len() <= self.manner.chars {
            let mut places = places.to_vec();
            let (local, domain) = places.split_at_mut(at);
            self.permute(permuter, local);
            self.permute(permuter, &mut domain[1..]);
            return Ok(self.write(&places) + DOMAIN);
        }
        let room = self.manner.chars.saturating_sub(SHORT_DOMAIN.len());
        if room < ENOUGH && self.manner.exact {
            return Err("an e-mail address for which the column is too short".into());
        }
        let plain = self.plain(places);
        if room == 0 {
            // no address at all: it might be somebody's
            return Ok(self.letters(permuter, plain.as_bytes(), places.len()));
        }
        Ok(self.letters(permuter, plain.as_bytes(), room.min(PLENTY)) + SHORT_DOMAIN)
    }

    /// Another UUID of the same version and variant.
    fn uuid(&mut self, permuter: &mut Permuter, places: &[Place], plain: &str) -> String {
        let is_capital = places.iter().any(|place| place.is_capital)
            || plain.chars().any(|c| c.is_ascii_uppercase());
        let moves = |at: &usize| ![8, 13, 14, 18, 19, 23].contains(at);
        let letters: Vec<char> = plain.chars().collect();
        let moved: Vec<usize> = (0..letters.len()).filter(moves).collect();
        let digit = |at: &usize| letters[*at].to_digit(16).unwrap_or_default();
        let mut digits: Vec<u32> = moved.iter().map(digit).collect();
        permuter.symbols(&mut digits, &vec![16; moved.len()]);
        let mut out = letters.clone();
        for (at, digit) in moved.into_iter().zip(digits) {
            out[at] = char::from_digit(digit, 16).unwrap_or('0');
        }
        let out: String = out.into_iter().collect();
        match is_capital {
            true => out.to_ascii_uppercase(),
            false => out.to_ascii_lowercase(),
        }
    }

    /// A card number whose check digit is right: of the range of test cards, or, where numbers must
    /// stay different, any.
    fn card(&mut self, permuter: &mut Permuter, places: &[Place]) -> String {
        let mut places = places.to_vec();
        let is_digit = |at: &usize| places[*at].symbol.alphabet == DIGITS;
        let at: Vec<usize> = (0..places.len()).filter(is_digit).collect();
        let mut digits: Vec<u32> = at.iter().map(|at| places[*at].symbol.place).collect();
        digits.pop();
        match self.manner.exact {
            true => {
                let sizes = vec![10; digits.len()];
                permuter.symbols(&mut digits, &sizes);
            }
            false => {
                let bytes: Vec<u8> = digits.iter().map(|d| *d as u8).collect();
                let mut stream = Stream::new(&permuter.key().derive("card", &bytes));
                digits
                    .iter_mut()
                    .for_each(|digit| *digit = stream.below(10));
                digits[..TEST_CARD.len()].copy_from_slice(&TEST_CARD);
            }
        }
        digits.push(check_digit(&digits));
        for (at, digit) in at.into_iter().zip(digits) {
            places[at].symbol.place = digit;
        }
        self.write(&places)
    }

    /// Letters made from what the text is equal to.
    fn without_shape(&mut self, permuter: &Permuter, text: &str) -> Result<String, String> {
        let weight = match self.alphabets.weight_of(text) {
            Some(weight) => weight,
            None if self.manner.exact => {
                return Err("a text of which it is not known what it is equal to".into());
            }
            None => text.as_bytes().to_vec(),
        };
        if self.manner.chars < ENOUGH && self.manner.exact {
            return Err("a text of rare characters in a short column".into());
        }
        let length = self.manner.chars.min(PLENTY);
        Ok(self.letters(permuter, &weight, length))
    }

    fn letters(&self, permuter: &Permuter, input: &[u8], length: usize) -> String {
        let mut stream = Stream::new(&permuter.key().derive("letters", input));
        let size = self.alphabets.size(LETTERS);
        let mut letter = || Symbol {
            alphabet: LETTERS,
            place: stream.below(size),
        };
        (0..length)
            .map(|_| self.alphabets.letter(letter()))
            .collect()
    }
}

/// Where the `@` of an e-mail address stands. Which letters and digits it has does not count.
fn address(text: &str) -> Option<usize> {
    if !text.is_ascii() {
        return None;
    }
    let (local, domain) = text.split_once('@')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let is_local = |c: char| is_name(c) || "._%+'".contains(c);
    let labels: Vec<&str> = domain.split('.').collect();
    let are_labels = labels.len() > 1
        && labels
            .iter()
            .all(|label| !label.is_empty() && label.chars().all(is_name));
    (!local.is_empty() && local.chars().all(is_local) && are_labels).then_some(local.len())
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
        && !(text.bytes().any(|b| b.is_ascii_uppercase())
            && text.bytes().any(|b| b.is_ascii_lowercase()))
}

/// Thirteen to nineteen digits with a right check digit, with blanks or hyphens between.
fn is_card(text: &str) -> bool {
    if !text
        .bytes()
        .all(|b| b.is_ascii_digit() || b == b' ' || b == b'-')
    {
        return false;
    }
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    match digits.split_last() {
        Some((last, before)) if (12..19).contains(&before.len()) => check_digit(before) == *last,
        _ => false,
    }
}

/// The check digit behind digits, after Luhn.
fn check_digit(digits: &[u32]) -> u32 {
    let doubled = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| match at % 2 {
            0 if *digit > 4 => digit * 2 - 9,
            0 => digit * 2,
            _ => *digit,
        });
    (10 - doubled.sum::<u32>() % 10) % 10
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use onionskin_value::Collation;
    use proptest::prelude::*;

    use super::*;
    use crate::key::MaskKey;

    const LOOKS_ALIKE: Manner = Manner {
        looks_alike: true,
        exact: true,
        chars: 60,
    };

    fn texts(collation: &str, manner: Manner) -> (Texts, Permuter) {
        let collation = Collation::from_name(collation).expect("a collation");
        let texts = Texts::new(Alphabets::of(collation), manner);
        (texts, Permuter::new(MaskKey::new([7; 32])))
    }

    #[test]
    fn kinds_stay_kinds() {
        let (mut texts, mut permuter) = texts("utf8mb4_general_ci", LOOKS_ALIKE);
        let mut of = |text: &str| texts.replace(&mut permuter, text).expect("a text");
        let mail = of("Alice.Smith@mail.corp.com");
        assert_eq!(address(&mail), Some(11));
        assert!(mail.ends_with(".example") && mail.len() == 25 + 8, "{mail}");
        let other = of("bob@mail.corp.com");
        assert_eq!(mail.split('@').nth(1), other.split('@').nth(1));
        assert_eq!(
            of("ALICE.smith@MAIL.corp.com").to_lowercase(),
            mail.to_lowercase()
        );
        let card = of("4111 1111 1111 1111");
        assert!(is_card(&card) && card.len() == 19, "{card}");
        let uuid = of("123e4567-e89b-12d3-a456-426614174000");
        assert!(is_uuid(&uuid) && &uuid[14..15] == "1", "{uuid}");
        let phone = of("+41 (0)44 668-18-00");
        let shape = |t: &str| t.replace(|c: char| c.is_ascii_digit(), "0");
        assert_eq!(shape(&phone), shape("+41 (0)44 668-18-00"));
        assert_ne!(of("--"), "--");
        assert_eq!(of(""), "");
        assert_eq!(of("a b").len(), 3);
    }

    #[test]
    fn test_cards_where_numbers_may_meet() {
        let manner = Manner {
            exact: false,
            ..LOOKS_ALIKE
        };
        let (mut texts, mut permuter) = texts("latin1_swedish_ci", manner);
        let card = texts
            .replace(&mut permuter, "5500005555555559")
            .expect("a text");
        assert!(card.starts_with("400000") && is_card(&card), "{card}");
    }

    #[test]
    fn what_has_no_room_is_told() {
        let manner = Manner {
            chars: 20,
            ..LOOKS_ALIKE
        };
        let (mut short, mut permuter) = texts("utf8mb4_bin", manner);
        assert!(short.replace(&mut permuter, "someone@host.com").is_err());
        assert!(short.replace(&mut permuter, "a@b.c").is_ok());
        // Hebrew letters are in no alphabet
        assert_eq!(
            short.replace(&mut permuter, "שלום").expect("letters").len(),
            20
        );
        let manner = Manner {
            chars: 5,
            ..LOOKS_ALIKE
        };
        let (mut shorter, mut permuter) = texts("utf8mb4_bin", manner);
        assert!(shorter.replace(&mut permuter, "שלום").is_err());
    }

    /// All texts of a small shape.
    #[test]
    fn small_shapes_are_permuted() {
        for looks_alike in [true, false] {
            let manner = Manner {
                looks_alike,
                ..LOOKS_ALIKE
            };
            let (mut texts, mut permuter) = texts("utf8mb4_unicode_ci", manner);
            let mut seen = HashSet::new();
            for a in 'a'..='z' {
                for d in '0'..='9' {
                    let out = texts
                        .replace(&mut permuter, &format!("{a}-{d}"))
                        .expect("a text");
                    assert!(seen.insert(out));
                }
            }
            assert_eq!(seen.len(), 260);
        }
    }

    const COLLATIONS: [&str; 9] = [
        "utf8mb4_general_ci",
        "utf8mb4_unicode_ci",
        "utf8mb4_unicode_520_ci",
        "utf8mb4_0900_ai_ci",
        "utf8mb4_uca1400_ai_ci",
        "utf8mb4_bin",
        "utf8mb4_0900_bin",
        "latin1_swedish_ci",
        "latin1_german2_ci",
    ];

    /// The text with other characters that some collations call equal.
    fn like(text: &str, variant: &[usize]) -> String {
        const EQUAL: [[&str; 3]; 9] = [
            ["e", "É", "é"],
            ["ß", "ss", "sS"],
            ["æ", "ae", "Æ"],
            ["…", "...", "…"],
            ["²", "2", "²"],
            ["ж", "Ж", "ж"],
            ["ǆ", "dz", "dž"],
            ["각", "\u{1100}\u{1161}\u{11a8}", "각"],
            ["b", "B", "b\u{200d}"],
        ];
        let mut out = text.to_owned();
        for (equal, number) in EQUAL.iter().zip(variant.iter().cycle().skip(1)) {
            for one in equal {
                out = out.replace(one, equal[*number]);
            }
        }
        out
    }

    thread_local! {
        /// They take long to make.
        static TEXTS: std::cell::RefCell<Vec<Option<Texts>>> = COLLATIONS
            .iter()
            .map(|name| {
                let collation = Collation::from_name(name).filter(|c| c.is_searchable())?;
                Some(Texts::new(Alphabets::of(collation), LOOKS_ALIKE))
            })
            .collect::<Vec<_>>()
            .into();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]
        /// Equal to the server before, equal afterwards; different before, different afterwards.
        #[test]
        fn equality_holds(
            which in 0..COLLATIONS.len(),
            looks_alike in any::<bool>(),
            a in "[a-cA-CsSéÉßæ…²½1 .@ñжЖΩω中ǆ각\u{1100}\u{1161}\u{11a8}\u{200d}-]{0,7}",
            variant in prop::collection::vec(0..3_usize, 7),
            b in "[a-cA-CsSéÉßæ…²½1 .@ñжЖΩω中ǆ각\u{1100}\u{1161}\u{11a8}\u{200d}-]{0,7}",
        ) {
            // now and then a text that may be equal
            let b = match variant[0] {
                0 => b,
                _ => like(&a, &variant),
            };
            TEXTS.with_borrow_mut(|all| {
            let Some(texts) = &mut all[which] else { return Ok(()) };
            let weights = [&a, &b].map(|t| texts.alphabets.weight_of(t));
            let [Some(wa), Some(wb)] = weights else { return Ok(()) };
            texts.manner = Manner { looks_alike, exact: true, chars: 40 };
            let mut permuter = Permuter::new(MaskKey::new([7; 32]));
            let [ma, mb] = [&a, &b].map(|t| texts.replace(&mut permuter, t));
            let (ma, mb) = (ma.expect("a text"), mb.expect("a text"));
            let weights = [&ma, &mb].map(|t| texts.alphabets.weight_of(t).expect("a weight"));
            prop_assert_eq!(wa == wb, weights[0] == weights[1], "{:?} {:?} -> {:?} {:?}", a, b, ma, mb);
            prop_assert!(ma.chars().count() <= 40);
            Ok(())
            })?;
        }
    }
}
