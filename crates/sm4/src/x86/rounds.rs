//! The cipher's rounds on interleaved groups of blocks, and the key schedule.

use super::Words;
use crate::KEY_LEN;
use crate::sbox::IN;
use crate::schedule::{self, RoundKeys};

/// The constant of the S-box's inner map in each byte of a word; it is added to the round keys.
const INNER_CONSTANT: u32 = 0x0101_0101 * IN.constant as u32;

/// `substitute` gives V = IN·R·S(x). This takes R back, a rotation of each byte to the right by two
/// bits.
#[inline(always)]
fn rotate_bytes_back(word: u32) -> u32 {
    word >> 2 & 0x3f3f_3f3f | word << 6 & 0xc0c0_c0c0
}

/// The key schedule, with round keys for [`crypt`]: times `IN`, plus its constant.
///
/// # Safety
///
/// The processor has the instructions of `W`.
#[inline(always)]
pub(super) unsafe fn expand<W: Words>(key: &[u8; KEY_LEN]) -> RoundKeys {
    // Closures may take the instructions only through functions that are always inlined.
    // SAFETY: as promised by the caller
    schedule::expand(
        key,
        |word| unsafe { sub_word::<W>(word) },
        |word| unsafe { to_round_key::<W>(word) },
    )
}

/// # Safety
///
/// The processor has the instructions of `W`.
#[inline(always)]
unsafe fn to_round_key<W: Words>(word: u32) -> u32 {
    // SAFETY: as promised by the caller
    unsafe { W::splat(word) }.enter().first() ^ INNER_CONSTANT
}

/// The S-box on each byte.
///
/// # Safety
///
/// The processor has the instructions of `W`.
#[inline(always)]
unsafe fn sub_word<W: Words>(word: u32) -> u32 {
    // SAFETY: as promised by the caller
    let input = unsafe { W::splat(to_round_key::<W>(word)) };
    rotate_bytes_back(input.substitute().0.leave().first())
}

/// All 32 rounds on `G` groups: the four words of each, in and out of the form that
/// [`Words::enter`] makes. The words come out in the order of the result, that is, reversed.
#[inline(always)]
pub(super) fn crypt<W: Words, const G: usize, const DECRYPT: bool>(
    groups: [[W; 4]; G],
    round_keys: &RoundKeys,
) -> [[W; 4]; G] {
    let mut x = groups;
    let mut input = [x[0][0]; G];
    let first_key = round_key::<W, DECRYPT>(x[0][0], round_keys, 0);
    for g in 0..G {
        input[g] = x[g][1].xor3(x[g][2], x[g][3]).xor(first_key);
    }
    for i in 0..8 {
        // Four rounds, after which every word is in its old place again.
        for j in 0..4 {
            let [w0, w2, w3] = [j, (j + 2) % 4, (j + 3) % 4];
            let next_key = round_key::<W, DECRYPT>(x[0][0], round_keys, 4 * i + j + 1);
            for g in 0..G {
                let (v, w) = input[g].substitute();
                let a = x[g][w0].xor3(v, w);
                let b = v.rotate::<8>().xor3(v.rotate::<16>(), w.rotate::<24>());
                let sum = a.xor(b);
                x[g][w0] = sum;
                let others = x[g][w2].xor3(x[g][w3], next_key);
                input[g] = W::next_input(others, a, b, sum);
            }
        }
    }
    for words in &mut x {
        *words = [words[3], words[2], words[1], words[0]];
    }
    x
}

/// The key of round `i` in all words. Behind the last round there is one more input, which nobody
/// uses: any key will do.
#[inline(always)]
fn round_key<W: Words, const DECRYPT: bool>(_proof: W, round_keys: &RoundKeys, i: usize) -> W {
    let i = i & 31;
    // SAFETY: the value proves the processor
    unsafe { W::splat(round_keys[if DECRYPT { 31 - i } else { i }]) }
}
