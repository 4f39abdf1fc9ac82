//! `ENCODE` and `DECODE`: a scrambler of MySQL's first years, in MySQL up to 5.7 and in MariaDB.
//!
//! A generator of pseudo-random numbers, seeded by the [`OLD_PASSWORD`](crate::old_password) hash
//! of the key, shuffles the 256 bytes. Each byte of the text is replaced by that permutation, and
//! XORed with a running mask, into which the generator and the plain bytes go. The result is as
//! long as the text.
//!
//! The generator has two numbers below `2^30 - 1`. A step makes `a = 3a + b` and `b = a + b + 33`,
//! both modulo `2^30 - 1`, and gives `a / (2^30 - 1)`: a floating-point number of 64 bits, which is
//! multiplied by 255 and cut, so 255 itself never comes.
//!
//! Source: the MySQL 5.7 manual says what it promises; the algorithm is known from public
//! descriptions of MySQL's first versions, and was checked against the behaviour of MariaDB
//! 10.11.19. It is not a cipher that keeps anything secret.

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::old_password::halves;

const MODULUS: u32 = 0x3fff_ffff;

#[derive(Zeroize, ZeroizeOnDrop)]
struct Generator {
    a: u32,
    b: u32,
}

impl Generator {
    /// A number from 0 to 254.
    fn next(&mut self) -> u8 {
        // Below 2^32: 3 * (2^30 - 2) + (2^30 - 2).
        self.a = (3 * self.a + self.b) % MODULUS;
        self.b = (self.a + self.b + 33) % MODULUS;
        (f64::from(self.a) / f64::from(MODULUS) * 255.0) as u8
    }
}

struct Scrambler {
    generator: Generator,
    /// What a plain byte is found at.
    permutation: Zeroizing<[u8; 256]>,
    mask: u8,
}

impl Scrambler {
    fn new(key: &[u8]) -> Self {
        let [a, b] = halves(key).map(|half| half % MODULUS);
        let mut generator = Generator { a, b };
        let mut permutation = Zeroizing::new([0; 256]);
        for (byte, at) in (0..=255).zip(permutation.iter_mut()) {
            *at = byte;
        }
        for at in 0..256 {
            permutation.swap(at, usize::from(generator.next()));
        }
        Scrambler {
            generator,
            permutation,
            mask: 0,
        }
    }
}

/// `ENCODE(text, key)`.
pub fn encode(text: &[u8], key: &[u8]) -> Vec<u8> {
    let mut scrambler = Scrambler::new(key);
    let mut place = Zeroizing::new([0_u8; 256]);
    for (at, &byte) in (0..=255).zip(scrambler.permutation.iter()) {
        place[usize::from(byte)] = at;
    }
    text.iter()
        .map(|&plain| {
            scrambler.mask ^= scrambler.generator.next();
            let scrambled = place[usize::from(plain)] ^ scrambler.mask;
            scrambler.mask ^= plain;
            scrambled
        })
        .collect()
}

/// `DECODE(text, key)`. Every text has an answer.
pub fn decode(text: &[u8], key: &[u8]) -> Vec<u8> {
    let mut scrambler = Scrambler::new(key);
    text.iter()
        .map(|&scrambled| {
            scrambler.mask ^= scrambler.generator.next();
            let plain = scrambler.permutation[usize::from(scrambled ^ scrambler.mask)];
            scrambler.mask ^= plain;
            plain
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// From a public tutorial (sqliz.com, "How the ENCODE() function works in Mariadb?").
    #[test]
    fn equals_a_published_vector() {
        let scrambled = encode(b"Hello World", b"secret");
        assert_eq!(crate::hex::upper(&scrambled), "78EA3607EAF4984C7F54F1");
    }

    proptest! {
        #[test]
        fn round_trips(
            text in proptest::collection::vec(any::<u8>(), 0..300),
            key in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            prop_assert_eq!(decode(&encode(&text, &key), &key), &*text);
            prop_assert_eq!(encode(&decode(&text, &key), &key), text);
        }
    }
}
