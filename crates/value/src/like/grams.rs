//! Grams: by which values are found that a pattern may match.

use super::key::{BEGINNING, END, Key, Rule};
use super::pattern::{Element, LikePattern};
use crate::types::{Kind, SqlType};
use crate::weight::WeightError;

/// Characters of a gram.
const GRAM_CHARACTERS: usize = 3;
/// Bytes of a gram.
pub const GRAM_BYTES: usize = GRAM_CHARACTERS * 16;

impl LikePattern {
    /// Hands the grams out that every value has that the pattern matches: at most about `most`,
    /// evenly taken; none if all stretches between its wildcards are too short.
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
