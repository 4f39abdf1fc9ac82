//! A value as it is shown.

use std::cmp::Reverse;
use std::str::FromStr;

use onionskin_value::{Charset, Kind, SqlType};

/// What stands for letters that are not shown: always as many, so that the length stays unknown.
const HIDDEN: usize = 4;

/// What an account sees of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    /// The value.
    Clear,
    /// So many letters from the beginning.
    First(usize),
    /// So many letters from the end.
    Last(usize),
    /// NULL.
    Null,
    /// Nothing: what asks for it is an error.
    Refuse,
}

impl FromStr for Show {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        let letters = |digits: &str| match digits.parse() {
            Ok(0) | Err(_) => Err(()),
            Ok(letters) => Ok(letters),
        };
        match word {
            "clear" => Ok(Show::Clear),
            "null" => Ok(Show::Null),
            "refuse" => Ok(Show::Refuse),
            _ => match word.split_once(':') {
                Some(("first", digits)) => letters(digits).map(Show::First),
                Some(("last", digits)) => letters(digits).map(Show::Last),
                _ => Err(()),
            },
        }
    }
}

impl Show {
    /// Less shows more: of several roles, the one that shows most counts.
    pub fn rank(self) -> (u8, Reverse<usize>) {
        match self {
            Show::Clear => (0, Reverse(0)),
            Show::First(letters) | Show::Last(letters) => (1, Reverse(letters)),
            Show::Null => (2, Reverse(0)),
            Show::Refuse => (3, Reverse(0)),
        }
    }

    /// Whether values of this type can be shown so: letters are those of texts.
    pub fn fits(self, ty: &SqlType) -> bool {
        match self {
            Show::First(_) | Show::Last(_) => ty.is_character() && ty.kind != Kind::Json,
            _ => true,
        }
    }

    /// Leaves of a text what is shown. A text that has no more letters than that shows none.
    pub fn cut(self, charset: Charset, text: &mut Vec<u8>) {
        let (Show::First(letters) | Show::Last(letters)) = self else {
            return;
        };
        let mut hidden = Vec::with_capacity(HIDDEN * 4);
        for _ in 0..HIDDEN {
            charset.encode(u32::from(b'*'), &mut hidden);
        }
        let all = charset.count(text);
        if all <= letters {
            *text = hidden;
            return;
        }
        match self {
            Show::First(_) => {
                text.truncate(charset.offset_of(text, letters));
                text.append(&mut hidden);
            }
            _ => {
                let start = charset.offset_of(text, all - letters);
                text.splice(..start, hidden);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(word: &str, charset: Charset, text: &str) -> Vec<u8> {
        let mut cell = Vec::new();
        for letter in text.chars() {
            assert!(charset.encode(u32::from(letter), &mut cell));
        }
        word.parse::<Show>().unwrap().cut(charset, &mut cell);
        charset.to_utf8(&cell).unwrap()
    }

    #[test]
    fn letters_are_kept_and_the_length_is_not_shown() {
        let cases = [
            ("first:1", "Alice", "A****"),
            ("first:2", "Élodie", "Él****"),
            ("last:4", "4111111111111111", "****1111"),
            ("last:2", "日本語", "****本語"),
            ("first:1", "", "****"),
            ("first:3", "abc", "****"),
            ("last:3", "ab", "****"),
            ("clear", "abc", "abc"),
        ];
        for (word, text, expected) in cases {
            for charset in ["utf8mb4", "utf16", "utf32", "ucs2"] {
                let charset = Charset::from_name(charset).unwrap();
                let shown = shown(word, charset, text);
                assert_eq!(shown, expected.as_bytes(), "{word} of {text:?}");
            }
        }
        let latin1 = Charset::from_name("latin1").unwrap();
        assert_eq!(shown("first:2", latin1, "Élodie"), "Él****".as_bytes());
    }

    #[test]
    fn other_words_are_none() {
        for word in [
            "", "Clear", "first", "first:", "first:0", "first:-1", "last:x", "middle:1",
        ] {
            assert!(word.parse::<Show>().is_err(), "{word}");
        }
    }
}
