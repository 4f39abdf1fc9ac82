//! Gram tokens: what stands in a column `c$gram`.
//!
//! A text's grams are short runs of its characters, each given as three blocks of 16 bytes by the
//! caller (crate `value`). Every gram becomes a number below 30^6, or the same number as a word of
//! six characters that a full-text index takes as it is:
//!
//! ```text
//! T     = E(E(E(block_1) ⊕ block_2) ⊕ block_3)            AES-256 or SM4 under the column's key
//! token = floor(first 8 bytes of T, big-endian · 30^6 / 2^64)
//! word  = token in base 30, six digits, the most significant first, of 0123456789bcdfghjklmnpqrstvwxz
//! ```
//!
//! CBC-MAC is a pseudo-random function for messages of one length (Bellare, Kilian and Rogaway,
//! JCSS 2000), which these are.
//!
//! Six characters lie between the shortest and the longest words that servers index
//! (`innodb_ft_min_token_size` is 3, `innodb_ft_max_token_size` is at least 10). Without vowels no
//! token is a word of any list of stopwords. Two different grams have the same token with a
//! probability of 30^-6, one in 729 million; that makes a candidate more, never one less.
//!
//! # What tokens show
//!
//! Which values share a gram, how many different grams each has, in how many values a gram occurs,
//! and which grams occur together. Tokens are a set and sorted, so neither the place of a gram nor
//! how often it recurs in a value is in them. With public statistics of a language, frequencies of
//! grams and of their neighbourhoods give much of a text away; see docs/threat-model.md before
//! giving this to a column.

use crate::block_prf::{BLOCK_LEN, Block, BlockPrf};

/// Bytes of a gram.
pub const GRAM_LEN: usize = 3 * BLOCK_LEN;
/// Characters of a token.
pub const GRAM_TOKEN_LEN: usize = 6;

const DIGITS: &[u8; 30] = b"0123456789bcdfghjklmnpqrstvwxz";

/// A number that no token is: all are below it.
pub const NO_GRAM_TOKEN: u32 = 729_000_000;

/// What stands for a gram. Words have the order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GramToken(u32);

impl GramToken {
    /// As a number, below [`NO_GRAM_TOKEN`].
    pub fn number(self) -> u32 {
        self.0
    }

    /// As a word.
    pub fn word(self) -> [u8; GRAM_TOKEN_LEN] {
        let mut rest = self.0 as usize;
        let mut word = [0; GRAM_TOKEN_LEN];
        for place in word.iter_mut().rev() {
            *place = DIGITS[rest % DIGITS.len()];
            rest /= DIGITS.len();
        }
        word
    }
}

/// The token of a gram.
pub(crate) fn token(prf: &BlockPrf, gram: &[u8; GRAM_LEN]) -> GramToken {
    let mut state: [Block; 1] = [[0; BLOCK_LEN]];
    for block in gram.as_chunks::<BLOCK_LEN>().0 {
        for (byte, more) in state[0].iter_mut().zip(block) {
            *byte ^= more;
        }
        prf.encrypt(&mut state);
    }
    let mut first = [0; 8];
    first.copy_from_slice(&state[0][..8]);
    let wide = u128::from(u64::from_be_bytes(first)) * u128::from(NO_GRAM_TOKEN);
    GramToken((wide >> 64) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn tokens_are_words_for_an_index() {
        assert_eq!(
            u64::from(NO_GRAM_TOKEN),
            (DIGITS.len() as u64).pow(GRAM_TOKEN_LEN as u32)
        );
        assert!(DIGITS.windows(2).all(|pair| pair[0] < pair[1]));
        let prf = BlockPrf::aes(&mut [7; 32]);
        let mut gram = [0; GRAM_LEN];
        let mut seen = HashSet::new();
        let mut first = HashSet::new();
        for n in 0..20_000u32 {
            gram[44..].copy_from_slice(&n.to_be_bytes());
            let token = super::token(&prf, &gram);
            assert!(token.number() < NO_GRAM_TOKEN);
            assert!(token.word().iter().all(|c| DIGITS.contains(c)));
            first.insert(token.word()[0]);
            seen.insert(token);
        }
        // two of 20,000 meet with a probability of a quarter
        assert!(seen.len() > 19_990, "{}", seen.len());
        assert_eq!(first.len(), DIGITS.len());
    }

    #[test]
    fn every_block_counts() {
        for prf in [BlockPrf::aes(&mut [7; 32]), BlockPrf::sm(&mut [7; 16])] {
            let mut seen = HashSet::new();
            for place in 0..GRAM_LEN {
                let mut gram = [0; GRAM_LEN];
                gram[place] = 1;
                assert!(seen.insert(token(&prf, &gram)));
            }
        }
    }
}
