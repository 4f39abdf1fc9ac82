//! What can be said of stand-ins without the truth: their histogram, and what of it is alike.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{attacks::digits, capability::Capability, seen::Seen};

/// Shape of what the server sees.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Rows with a value.
    pub rows: u64,
    /// Different stand-ins.
    pub tokens: u64,
    /// Entropy of the stand-in of a row, in bits: what a value tells that cannot be guessed, as far
    /// as stand-ins tell values apart.
    pub bits: f64,
    /// Bits of it that are left to somebody who knows exactly how frequent each value is: stand-ins
    /// that look alike are not told apart, nor values that share one. `None` where stand-ins are no
    /// values.
    pub bits_left: Option<f64>,
    /// The share of rows whose stand-in looks like no other one.
    pub alone: f64,
    /// Of order keys: how many bits a key is made of, and how many of them keys alone leave open,
    /// on average over the rows.
    pub key_bits: Option<[f64; 2]>,
    /// The share of rows that a histogram of the auxiliary knowledge differs by, if both are
    /// sorted.
    pub apart: Option<f64>,
    /// The share of rows of which all attacks guess the same, where there are several.
    pub agree: Option<f64>,
    /// With fewer bits: how many rows a search for a value returns beside those that have it.
    pub beside: Option<f64>,
}

/// The entropy of a histogram, in bits.
pub fn entropy(counts: &[f64]) -> f64 {
    let sum: f64 = counts.iter().sum();
    let shares = counts.iter().filter(|count| **count > 0.0);
    shares
        .map(|count| count / sum)
        .map(|share| -share * share.log2())
        .sum()
}

/// How much two histograms differ, if both are sorted: half of the sum of the differences of
/// shares. 0: they have one shape; 1: they have nothing in common.
pub fn apart(tokens: &[f64], values: &[f64]) -> f64 {
    let sorted = |counts: &[f64]| {
        let sum: f64 = counts.iter().sum();
        let mut shares: Vec<f64> = counts
            .iter()
            .map(|c| c / sum.max(f64::MIN_POSITIVE))
            .collect();
        shares.sort_by(|a, b| b.total_cmp(a));
        shares
    };
    let (one, other) = (sorted(tokens), sorted(values));
    let at = |shares: &[f64], place: usize| shares.get(place).copied().unwrap_or(0.0);
    let places = 0..one.len().max(other.len());
    places
        .map(|p| (at(&one, p) - at(&other, p)).abs())
        .sum::<f64>()
        / 2.0
}

impl Figures {
    /// Of what the server sees.
    pub fn of(capability: Capability, seen: &Seen) -> Self {
        let counts = seen.counts();
        let rows = seen.rows();
        let mut figures = Self {
            rows,
            tokens: seen.tokens.len() as u64,
            bits: entropy(&counts),
            ..Self::default()
        };
        if rows == 0 || capability == Capability::Sealed {
            return figures;
        }
        // The order tells all keys apart, for who knows the values; the others go by frequency,
        // length and number of grams.
        let look = |at: usize| -> (u64, u32, usize) {
            let token = &seen.tokens[at];
            match capability {
                Capability::Range | Capability::CoarseRange(_) => (at as u64, 0, 0),
                Capability::Like => (token.rows, token.length, words(&token.bytes)),
                _ => (token.rows, token.length, 0),
            }
        };
        let mut alike: HashMap<(u64, u32, usize), u64> = HashMap::new();
        for at in 0..seen.tokens.len() {
            *alike.entry(look(at)).or_default() += 1;
        }
        let (mut left, mut alone) = (0.0, 0);
        for (at, token) in seen.tokens.iter().enumerate() {
            let alike = alike[&look(at)];
            left += token.rows as f64 * (alike as f64).log2();
            alone += if alike == 1 { token.rows } else { 0 };
        }
        figures.bits_left = Some(left / rows as f64);
        figures.alone = alone as f64 / rows as f64;
        if capability == Capability::Range {
            figures.key_bits = Some(key_bits(seen));
        }
        figures
    }
}

/// Words of a set of grams.
pub fn words(bytes: &[u8]) -> usize {
    bytes
        .split(|b| *b == b' ')
        .filter(|w| !w.is_empty())
        .count()
}

fn key_bits(seen: &Seen) -> [f64; 2] {
    let keys: Vec<Vec<u16>> = seen
        .tokens
        .iter()
        .map(|t| digits::cells(&t.bytes))
        .collect();
    let all = keys.first().map_or(0, Vec::len) as f64 * 4.0;
    let left = digits::bits_left(&keys);
    let weighted: f64 = left
        .iter()
        .zip(seen.counts())
        .map(|(l, rows)| l * rows)
        .sum();
    [all, weighted / (seen.rows() as f64).max(1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaks::seen::Counting;

    fn seen(counts: &[u64]) -> Seen {
        let mut counting = Counting::default();
        for (at, rows) in counts.iter().enumerate() {
            counting.add(&[at as u8], 0, *rows);
        }
        counting.finish()
    }

    #[test]
    fn entropies_are_what_the_textbook_says() {
        assert_eq!(entropy(&[5.0; 8]), 3.0);
        assert_eq!(entropy(&[3.0, 0.0]), 0.0);
        assert_eq!(entropy(&[]), 0.0);
        assert!((entropy(&[1.0, 3.0]) - 0.811_278).abs() < 1e-6);
    }

    #[test]
    fn frequencies_that_are_alike_keep_their_bits() {
        let figures = Figures::of(Capability::Eq, &seen(&[1, 1, 1, 1]));
        assert_eq!(
            (figures.bits, figures.bits_left, figures.alone),
            (2.0, Some(2.0), 0.0)
        );
        let figures = Figures::of(Capability::Eq, &seen(&[1, 2, 4, 1]));
        assert_eq!((figures.bits_left, figures.alone), (Some(2.0 / 8.0), 0.75));
        // beside different lengths they are told apart
        let mut counting = Counting::default();
        counting.add(b"a", 4, 1);
        counting.add(b"b", 6, 1);
        assert_eq!(Figures::of(Capability::Eq, &counting.finish()).alone, 1.0);
    }

    #[test]
    fn histograms_of_one_shape_are_not_apart() {
        assert_eq!(apart(&[1.0, 2.0], &[20.0, 10.0]), 0.0);
        assert_eq!(apart(&[1.0], &[1.0, 1.0]), 0.5);
    }
}
