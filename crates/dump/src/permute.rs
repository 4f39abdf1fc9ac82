//! Keyed permutations of small and large sets: the same value in, the same value out, and two
//! values never become one.
//!
//! | size of the set | construction |
//! |---|---|
//! | up to 2^16 | a table, shuffled by Fisher and Yates with numbers of AES-256 in counter mode: any permutation is equally likely |
//! | up to 2^64 | a Feistel network of [`NUMBER_ROUNDS`] rounds over the bits, AES-256 of round and half as round function, walked until the result is in the set |
//! | up to 2^256 | FF1's network of [`SYMBOL_ROUNDS`] rounds over two halves of the symbols (NIST SP 800-38G): CBC-MAC with AES-256, expanded by a counter. Symbols are added one by one modulo their radix, where FF1 adds numbers: radices differ from place to place |
//! | larger | a keyed stream under HMAC-SHA-256 of all symbols: two texts meet with a chance of 2^-128 |
//!
//! A set is all rows of symbols with the same radices. It says nothing about what symbols mean:
//! letters, digits, bytes.

use std::collections::HashMap;

use aes::Aes256;
use cipher::{Array, BlockCipherEncrypt, KeyInit};

use crate::key::MaskKey;

/// Largest set that has a table.
const TABLE: u128 = 1 << 16;
/// Entries of all tables that are kept.
const TABLES: usize = 1 << 20;
/// Shapes that are remembered.
const SHAPES: usize = 1 << 12;
/// Rounds over numbers: more than FF1's ten, since halves may have eight bits only.
const NUMBER_ROUNDS: u8 = 16;
/// Rounds over symbols.
const SYMBOL_ROUNDS: u8 = 10;
/// Bits of the largest set that is permuted exactly.
const EXACT_BITS: f64 = 256.0;

/// Permutations under one key.
pub struct Permuter {
    key: MaskKey,
    aes: Aes256,
    numbers: HashMap<Vec<u8>, Numbers>,
    entries: usize,
    /// What a set of rows of symbols is called in rounds, and where its halves meet; `None`: it is
    /// too large for rounds.
    shapes: HashMap<Vec<u8>, Option<([u8; 16], usize)>>,
}

/// A permutation of `0..size`.
enum Numbers {
    Table(Vec<u32>),
    Network {
        aes: Box<Aes256>,
        bits: u32,
        size: u128,
    },
}

fn cipher_of(key: &MaskKey) -> Aes256 {
    Aes256::new(&Array::from(*key.bytes()))
}

fn encrypt(aes: &Aes256, block: &mut [u8; 16]) {
    let mut array = Array::from(*block);
    aes.encrypt_block(&mut array);
    block.copy_from_slice(&array);
}

/// Numbers of AES in counter mode.
pub(crate) struct Stream {
    aes: Aes256,
    counter: u64,
    block: [u8; 16],
    used: usize,
}

impl Stream {
    pub(crate) fn new(key: &MaskKey) -> Self {
        Self {
            aes: cipher_of(key),
            counter: 0,
            block: [0; 16],
            used: 16,
        }
    }

    fn next(&mut self) -> u64 {
        if self.used == 16 {
            self.block = [0; 16];
            self.block[8..].copy_from_slice(&self.counter.to_be_bytes());
            self.counter += 1;
            encrypt(&self.aes, &mut self.block);
            self.used = 0;
        }
        let mut eight = [0; 8];
        eight.copy_from_slice(&self.block[self.used..self.used + 8]);
        self.used += 8;
        u64::from_be_bytes(eight)
    }

    /// One of `0..bound`, all equally likely to 2^-32 or better.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u32
    }
}

impl Permuter {
    /// Under a key.
    pub fn new(key: MaskKey) -> Self {
        let aes = cipher_of(&key.derive("symbols", &[]));
        Self {
            key,
            aes,
            numbers: HashMap::new(),
            entries: 0,
            shapes: HashMap::new(),
        }
    }

    /// The key.
    pub(crate) fn key(&self) -> &MaskKey {
        &self.key
    }

    /// The image of `value` in `0..size`. Sets of other labels have other permutations.
    ///
    /// # Panics
    /// If the value is not in the set, or the set is larger than 2^64.
    pub fn number(&mut self, label: &[u8], size: u128, value: u128) -> u128 {
        assert!(value < size && size <= 1 << 64, "a number of the set");
        if size == 1 {
            return 0;
        }
        if !self.numbers.contains_key(label) {
            if self.entries > TABLES {
                self.numbers.clear();
                self.entries = 0;
            }
            let made = Numbers::new(&self.key.derive("numbers", label), size);
            self.entries += match &made {
                Numbers::Table(table) => table.len(),
                Numbers::Network { .. } => 256,
            };
            self.numbers.insert(label.to_vec(), made);
        }
        self.numbers[label].image(value)
    }

    /// Replaces a row of symbols, each below the radix of its place, by another one.
    pub fn symbols(&mut self, symbols: &mut [u32], radices: &[u32]) {
        debug_assert_eq!(symbols.len(), radices.len());
        let size = radices
            .iter()
            .try_fold(1_u128, |n, r| n.checked_mul(u128::from(*r)));
        if let Some(size) = size.filter(|size| *size <= 1 << 64) {
            let value = symbols
                .iter()
                .zip(radices)
                .fold(0, |n, (s, r)| n * u128::from(*r) + u128::from(*s));
            let mut image = self.number(&label(radices), size, value);
            for (symbol, radix) in symbols.iter_mut().zip(radices).rev() {
                *symbol = (image % u128::from(*radix)) as u32;
                image /= u128::from(*radix);
            }
            return;
        }
        let label = label(radices);
        if !self.shapes.contains_key(&label) {
            if self.shapes.len() > SHAPES {
                self.shapes.clear();
            }
            let bits: f64 = radices.iter().map(|r| f64::from(*r).log2()).sum();
            let shape = (bits <= EXACT_BITS).then(|| (self.mac(0, &label), middle(radices)));
            self.shapes.insert(label.clone(), shape);
        }
        match self.shapes[&label] {
            Some((shape, middle)) => self.network(symbols, radices, &shape, middle),
            None => self.stream(symbols, radices),
        }
    }

    /// Two halves, each in turn moved by what the other one says.
    fn network(&self, symbols: &mut [u32], radices: &[u32], shape: &[u8; 16], middle: usize) {
        let (left, right) = symbols.split_at_mut(middle);
        let (left_radices, right_radices) = radices.split_at(middle);
        let mut noise = Vec::with_capacity(radices.len());
        for round in 1..=SYMBOL_ROUNDS {
            let (moved, moved_radices, other) = match round % 2 {
                1 => (&mut *left, left_radices, &*right),
                _ => (&mut *right, right_radices, &*left),
            };
            self.noise(round, shape, other, moved_radices, &mut noise);
            for ((symbol, radix), add) in moved.iter_mut().zip(moved_radices).zip(&noise) {
                *symbol = ((u64::from(*symbol) + u64::from(*add)) % u64::from(*radix)) as u32;
            }
        }
    }

    /// What one half says in a round: a number below each of the radices, all of them equally
    /// likely to 2^-48 or better.
    fn noise(
        &self,
        round: u8,
        shape: &[u8; 16],
        half: &[u32],
        radices: &[u32],
        out: &mut Vec<u32>,
    ) {
        let symbols = half
            .iter()
            .flat_map(|symbol| symbol.to_be_bytes().into_iter().skip(1));
        let input = shape.iter().copied().chain(symbols);
        let mac = self.mac_of(round, shape.len() + 3 * half.len(), input);
        out.clear();
        for (number, two) in radices.chunks(2).enumerate() {
            let mut block = mac;
            let number = (number as u64).to_be_bytes();
            block[8..].iter_mut().zip(number).for_each(|(b, n)| *b ^= n);
            encrypt(&self.aes, &mut block);
            for (half, radix) in block.chunks_exact(8).zip(two) {
                let number = u64::from_be_bytes(half.try_into().unwrap_or_default());
                out.push((number % u64::from(*radix)) as u32);
            }
        }
    }

    fn mac(&self, round: u8, input: &[u8]) -> [u8; 16] {
        self.mac_of(round, input.len(), input.iter().copied())
    }

    /// CBC-MAC of a round and an input. Length and round stand in front, so that no input is the
    /// beginning of another one.
    fn mac_of(&self, round: u8, length: usize, input: impl Iterator<Item = u8>) -> [u8; 16] {
        let mut state = [0; 16];
        state[0] = round;
        state[1] = 1;
        state[8..].copy_from_slice(&(length as u64).to_be_bytes());
        encrypt(&self.aes, &mut state);
        let mut at = 0;
        for byte in input {
            state[at % 16] ^= byte;
            at += 1;
            if at % 16 == 0 || at == length {
                encrypt(&self.aes, &mut state);
            }
        }
        state
    }

    fn stream(&self, symbols: &mut [u32], radices: &[u32]) {
        let mut input = label(radices);
        input.extend(symbols.iter().flat_map(|s| s.to_be_bytes()));
        let mut stream = Stream::new(&self.key.derive("stream", &input));
        for (symbol, radix) in symbols.iter_mut().zip(radices) {
            *symbol = stream.below(*radix);
        }
    }
}

/// Where the two halves meet: about half of the bits, and a symbol at least on either side.
fn middle(radices: &[u32]) -> usize {
    let bits = |r: &u32| f64::from(*r).log2();
    let half = radices.iter().map(bits).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let at = radices.iter().position(|r| {
        sum += bits(r);
        sum >= half
    });
    at.map_or(1, |at| at + 1).clamp(1, radices.len() - 1)
}

/// What tells one set of rows from another.
fn label(radices: &[u32]) -> Vec<u8> {
    let radices = radices.iter().flat_map(|radix| radix.to_be_bytes());
    std::iter::once(b'r').chain(radices).collect()
}

impl Numbers {
    fn new(key: &MaskKey, size: u128) -> Self {
        if size > TABLE {
            let bits = 128 - (size - 1).leading_zeros();
            return Self::Network {
                aes: Box::new(cipher_of(key)),
                bits,
                size,
            };
        }
        let mut table: Vec<u32> = (0..size as u32).collect();
        let mut stream = Stream::new(key);
        for last in (1..table.len()).rev() {
            table.swap(last, stream.below(last as u32 + 1) as usize);
        }
        Self::Table(table)
    }

    fn image(&self, value: u128) -> u128 {
        match self {
            Self::Table(table) => u128::from(table[value as usize]),
            Self::Network { aes, bits, size } => {
                let mut image = value;
                loop {
                    image = rounds(aes, *bits, image);
                    if image < *size {
                        return image;
                    }
                }
            }
        }
    }
}

/// A permutation of all numbers of so many bits, at most 64.
fn rounds(aes: &Aes256, bits: u32, value: u128) -> u128 {
    let low = bits / 2;
    let high = bits - low;
    let mask = |bits: u32| (1_u64 << bits) - 1;
    let mut left = (value >> low) as u64 & mask(high);
    let mut right = value as u64 & mask(low);
    for round in 0..NUMBER_ROUNDS {
        let other = if round % 2 == 0 { right } else { left };
        let mut block = [0; 16];
        block[0] = round;
        block[8..].copy_from_slice(&other.to_be_bytes());
        encrypt(aes, &mut block);
        let mut half = [0; 8];
        half.copy_from_slice(&block[..8]);
        let noise = u64::from_be_bytes(half);
        match round % 2 {
            0 => left ^= noise & mask(high),
            _ => right ^= noise & mask(low),
        }
    }
    u128::from(left) << low | u128::from(right)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn permuter(byte: u8) -> Permuter {
        Permuter::new(MaskKey::new([byte; 32]))
    }

    #[test]
    fn numbers_are_permuted() {
        for size in [2_u128, 3, 10, 90, 255, 65_536, 65_537, 70_001] {
            let mut one = permuter(1);
            let images: HashSet<u128> = (0..size).map(|v| one.number(b"x", size, v)).collect();
            assert_eq!(images.len(), size as usize);
            assert!(images.iter().all(|image| *image < size));
        }
    }

    #[test]
    fn rows_of_symbols_are_permuted() {
        // by a table and by a network of numbers
        for radices in [vec![26, 10, 26], vec![26, 26, 10, 20]] {
            let mut seen = HashSet::new();
            let mut one = permuter(2);
            let size: u32 = radices.iter().product();
            for value in 0..size {
                let mut rest = value;
                let mut symbols: Vec<u32> = radices
                    .iter()
                    .map(|r| {
                        let digit = rest % r;
                        rest /= r;
                        digit
                    })
                    .collect();
                one.symbols(&mut symbols, &radices);
                assert!(symbols.iter().zip(&radices).all(|(s, r)| s < r));
                assert!(seen.insert(symbols));
            }
        }
    }

    /// The network of symbols has an inverse: its rounds, taken back one by one.
    fn taken_back(one: &Permuter, symbols: &mut [u32], radices: &[u32]) {
        let middle = middle(radices);
        let shape = one.mac(0, &label(radices));
        for round in (1..=SYMBOL_ROUNDS).rev() {
            let (left, right) = symbols.split_at_mut(middle);
            let (lr, rr) = radices.split_at(middle);
            let (moved, moved_radices, other) = match round % 2 {
                1 => (left, lr, &*right),
                _ => (right, rr, &*left),
            };
            let mut noise = Vec::new();
            one.noise(round, &shape, other, moved_radices, &mut noise);
            for ((symbol, radix), add) in moved.iter_mut().zip(moved_radices).zip(noise) {
                *symbol = (*symbol + radix - add) % radix;
            }
        }
    }

    proptest! {
        #[test]
        fn large_numbers_do_not_meet(a in any::<u64>(), b in any::<u64>()) {
            let mut one = permuter(3);
            let images = [a, b].map(|v| one.number(b"x", 1 << 64, u128::from(v)));
            prop_assert_eq!(a == b, images[0] == images[1]);
        }

        #[test]
        fn the_network_of_symbols_is_a_permutation(
            rows in prop::collection::vec((2_u32..400, any::<u32>()), 15..26)
        ) {
            let one = permuter(4);
            let radices: Vec<u32> = rows.iter().map(|(r, _)| *r).collect();
            let before: Vec<u32> = rows.iter().map(|(r, s)| s % r).collect();
            let mut symbols = before.clone();
            let shape = one.mac(0, &label(&radices));
            one.network(&mut symbols, &radices, &shape, middle(&radices));
            prop_assert!(symbols.iter().zip(&radices).all(|(s, r)| s < r));
            taken_back(&one, &mut symbols, &radices);
            prop_assert_eq!(symbols, before);
        }

        #[test]
        fn long_rows_differ_where_they_differ(at in 0_usize..200) {
            let radices = vec![26; 200];
            let (mut a, mut b) = (vec![0; 200], vec![0; 200]);
            b[at] = 1;
            let mut one = permuter(5);
            one.symbols(&mut a, &radices);
            one.symbols(&mut b, &radices);
            let same = a.iter().zip(&b).filter(|(a, b)| a == b).count();
            prop_assert!(same < 50);
        }
    }

    #[test]
    fn another_key_is_another_permutation() {
        let radices = vec![26; 20];
        let of = |byte| {
            let mut symbols = vec![7; 20];
            permuter(byte).symbols(&mut symbols, &radices);
            symbols
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    /// Numbers that this construction gave when it was made: a file of `--mask-key` must go on
    /// giving the same masks.
    #[test]
    fn the_construction_stays() {
        let mut one = permuter(9);
        let table = one.number(b"a", 100, 42);
        let network = one.number(b"b", 1 << 40, 42);
        let mut symbols = vec![1; 20];
        one.symbols(&mut symbols, &[26; 20]);
        let mut long = vec![1; 60];
        one.symbols(&mut long, &[26; 60]);
        assert_eq!(
            (table, network, symbols, &long[..5]),
            (
                13,
                870_265_211_206,
                vec![
                    1, 17, 9, 5, 0, 25, 10, 1, 6, 15, 25, 19, 21, 5, 13, 14, 7, 2, 16, 6
                ],
                &[20, 5, 9, 18, 2][..]
            )
        );
    }
}
