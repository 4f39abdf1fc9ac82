//! What the server sees of a column: stand-ins of values, and how often each is there.
//!
//! Stand-ins are equality tokens, order keys, gram sets, or lengths alone. Beside each stands the
//! length of the sealed cell, which the server sees as well.

use std::collections::{BTreeMap, HashMap};

/// A stand-in.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// As it is stored.
    pub bytes: Vec<u8>,
    /// Rows that have it.
    pub rows: u64,
    /// The length of the sealed cell in most of them; 0 where all values of the type have one.
    pub length: u32,
}

/// All of a column, sorted by their bytes: of order keys that is their order, and of pseudo-random
/// tokens an order that tells nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// The stand-ins.
    pub tokens: Vec<Token>,
}

impl Seen {
    /// Rows with a value.
    pub fn rows(&self) -> u64 {
        self.tokens.iter().map(|token| token.rows).sum()
    }

    /// Rows of each token.
    pub fn counts(&self) -> Vec<f64> {
        self.tokens.iter().map(|token| token.rows as f64).collect()
    }

    /// The length beside each token.
    pub fn lengths(&self) -> Vec<u32> {
        self.tokens.iter().map(|token| token.length).collect()
    }
}

/// Counts rows.
#[derive(Default)]
pub struct Counting {
    found: HashMap<Vec<u8>, BTreeMap<u32, u64>>,
    bytes: usize,
}

impl Counting {
    /// Counts `rows` rows with this stand-in and length.
    pub fn add(&mut self, bytes: &[u8], length: u32, rows: u64) {
        if let Some(lengths) = self.found.get_mut(bytes) {
            *lengths.entry(length).or_default() += rows;
            return;
        }
        self.bytes += bytes.len() + 64;
        self.found
            .insert(bytes.to_vec(), BTreeMap::from([(length, rows)]));
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What was counted.
    pub fn finish(self) -> Seen {
        let token = |(bytes, lengths): (Vec<u8>, BTreeMap<u32, u64>)| Token {
            bytes,
            rows: lengths.values().sum(),
            length: lengths
                .into_iter()
                .max_by_key(|(length, rows)| (*rows, *length))
                .map_or(0, |(length, _)| length),
        };
        let mut tokens: Vec<Token> = self.found.into_iter().map(token).collect();
        tokens.sort_by(|a, b| a.bytes.cmp(&b.bytes));
        Seen { tokens }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_by_stand_in() {
        let mut counting = Counting::default();
        counting.add(b"b", 40, 2);
        counting.add(b"a", 38, 1);
        counting.add(b"b", 41, 3);
        let seen = counting.finish();
        let found: Vec<_> = seen
            .tokens
            .iter()
            .map(|t| (t.bytes.as_slice(), t.rows, t.length))
            .collect();
        assert_eq!(found, [(b"a".as_slice(), 1, 38), (b"b", 5, 41)]);
        assert_eq!(seen.rows(), 6);
    }
}
