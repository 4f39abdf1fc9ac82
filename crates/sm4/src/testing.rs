//! Random inputs for the unit tests, from a seed that they print.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A small generator of good statistical quality (Vigna's SplitMix64); secrets never come from it.
pub struct Random(u64);

impl Random {
    /// Seeds the generator from the clock's randomness, or from `ONIONSKIN_TEST_SEED` to repeat a
    /// run.
    pub fn new(test: &str) -> Self {
        let seed = match std::env::var("ONIONSKIN_TEST_SEED") {
            Ok(seed) => seed.parse().expect("ONIONSKIN_TEST_SEED is a number"),
            Err(_) => RandomState::new().build_hasher().finish(),
        };
        println!("{test}: ONIONSKIN_TEST_SEED={seed}");
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.next() as u8)
    }
}
