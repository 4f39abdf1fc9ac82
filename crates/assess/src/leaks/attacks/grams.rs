//! Gram tokens against the grams of known texts.
//!
//! A language has few frequent grams, and which ones go together is known from any text in it. The
//! attack begins with the ranks of the most frequent ones and matches again by company, with more
//! and more of them as anchors.

use std::collections::HashMap;

use super::{
    Guesses, frequency,
    together::{Together, rematch},
};

/// Most grams that are matched: the most frequent ones. The cost grows with the third power.
pub const MOST: usize = 256;
/// Anchors of the first round; each round has twice as many.
const FIRST_ANCHORS: usize = 16;
/// Rounds after all are anchors.
const LAST_ROUNDS: usize = 3;

/// The grams of texts: of how many rows, and which.
pub struct Texts<'a> {
    /// Rows, and different grams by number.
    pub texts: Vec<(f64, &'a [u32])>,
}

impl Texts<'_> {
    fn rows(&self) -> f64 {
        self.texts.iter().map(|(rows, _)| rows).sum()
    }

    /// In how many rows each gram is.
    pub fn frequencies(&self) -> HashMap<u32, f64> {
        let mut found: HashMap<u32, f64> = HashMap::new();
        for (rows, grams) in &self.texts {
            for gram in *grams {
                *found.entry(*gram).or_default() += rows;
            }
        }
        found
    }

    /// The most frequent grams, the first the most frequent; equal ones by their number, which
    /// tells nothing of a token.
    fn most(&self) -> Vec<u32> {
        let mut all: Vec<(u32, f64)> = self.frequencies().into_iter().collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all.into_iter().take(MOST).map(|(gram, _)| gram).collect()
    }

    fn together(&self, most: &[u32]) -> Together {
        let places: HashMap<u32, usize> = most.iter().copied().zip(0..).collect();
        let mut counted = Together::new(most.len(), most.len());
        let share = 1.0 / self.rows().max(1.0);
        for (rows, grams) in &self.texts {
            let known: Vec<usize> = grams
                .iter()
                .filter_map(|g| places.get(g).copied())
                .collect();
            for first in &known {
                counted.alone[*first] += rows * share;
                for second in known.iter().filter(|second| *second != first) {
                    counted.with[*first][*second] += rows * share;
                }
            }
        }
        counted
    }
}

/// Pairs of a token and the gram that it is taken for, of the most frequent ones.
pub fn guess(seen: &Texts<'_>, known: &Texts<'_>) -> Vec<(u32, u32)> {
    let (tokens, grams) = (seen.most(), known.most());
    if tokens.is_empty() || grams.is_empty() {
        return Vec::new();
    }
    let (of_tokens, of_grams) = (seen.together(&tokens), known.together(&grams));
    let mut guesses = frequency::by_rank(&of_tokens.alone, &of_grams.alone);
    let mut anchors = FIRST_ANCHORS;
    let mut after = 0;
    while after < LAST_ROUNDS {
        let sure: Guesses = guesses
            .iter()
            .enumerate()
            .map(|(place, guess)| guess.filter(|_| place < anchors))
            .collect();
        let next = rematch(&of_tokens, &of_grams, &sure);
        let is_whole = anchors >= tokens.len();
        if is_whole && next == guesses {
            break;
        }
        guesses = next;
        after += usize::from(is_whole);
        anchors *= 2;
    }
    let pairs = tokens.into_iter().zip(guesses);
    pairs
        .filter_map(|(token, gram)| Some((token, grams[gram?])))
        .collect()
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};

    use super::*;

    /// Texts of a small language: words of a few letters, some frequent; grams by number.
    fn language(seed: u64, texts: usize) -> Vec<Vec<u32>> {
        let mut rng = StdRng::seed_from_u64(seed);
        let text = |_| {
            let mut grams: Vec<u32> = (0..4)
                .flat_map(|_| {
                    let luck: f64 = rng.random();
                    let word = (30.0 * luck * luck * luck) as u32;
                    // neighbours share grams, and no two grams are in the same words
                    [word, word + 1, word + 2]
                })
                .collect();
            grams.sort_unstable();
            grams.dedup();
            grams
        };
        (0..texts).map(text).collect()
    }

    fn texts(grams: &[Vec<u32>]) -> Texts<'_> {
        Texts {
            texts: grams.iter().map(|g| (1.0, g.as_slice())).collect(),
        }
    }

    fn share(seen: &[Vec<u32>], known: &[Vec<u32>], tokens: &[u32]) -> f64 {
        let guessed = guess(&texts(seen), &texts(known));
        let right = guessed.iter().filter(|(t, g)| tokens[*g as usize] == *t);
        right.count() as f64 / texts(seen).frequencies().len() as f64
    }

    #[test]
    fn a_language_is_read_by_company() {
        let mut tokens: Vec<u32> = (0..32).collect();
        tokens.shuffle(&mut StdRng::seed_from_u64(7));
        let encrypted = |grams: Vec<Vec<u32>>| -> Vec<Vec<u32>> {
            let token = |text: Vec<u32>| text.iter().map(|g| tokens[*g as usize]).collect();
            grams.into_iter().map(token).collect()
        };
        let known = language(1, 4_000);
        // the same texts: all of it
        assert_eq!(share(&encrypted(known.clone()), &known, &tokens), 1.0);
        // other texts of the language: most of it, and more than by rank alone
        let seen = encrypted(language(2, 4_000));
        let by_company = share(&seen, &known, &tokens);
        let ranks = texts(&seen).most().into_iter().zip(texts(&known).most());
        let by_rank = ranks.filter(|(t, g)| tokens[*g as usize] == *t).count() as f64 / 32.0;
        assert!(
            by_company > 0.7 && by_company > by_rank + 0.1,
            "{by_company} {by_rank}"
        );
        // of a language in which other grams are frequent: about nothing
        let turned = |text: Vec<u32>| text.iter().map(|gram| 31 - gram).collect();
        let other: Vec<Vec<u32>> = language(3, 4_000).into_iter().map(turned).collect();
        assert!(share(&seen, &other, &tokens) < 0.2);
    }
}
