//! Ciphers that authenticate nothing: **what they decrypt may be anything**. Only for reading what
//! other programs wrote.
//!
//! `openssl enc -pbkdf2` writes `"Salted__" ‖ salt (8) ‖ ciphertext`, where
//!
//! ```text
//! key ‖ IV (16) = PBKDF2-HMAC(digest, passphrase, salt, iterations)
//! ```
//!
//! CBC pads the plaintext to whole blocks (PKCS #7); CTR counts a 128-bit big-endian number up from
//! the IV. In both, any part can be decrypted by itself: a part of CBC needs the block of
//! ciphertext before it, a part of CTR its place. That is what [`LegacyCipher::decrypt_part`] is
//! for.

use std::{fmt, num::NonZeroU32, str::FromStr};

use aws_lc_rs::{
    cipher::{AES_128, AES_192, AES_256, DecryptingKey, DecryptionContext, UnboundCipherKey},
    iv::FixedLength,
    pbkdf2,
};
use onionskin_sm4::Sm4;
use zeroize::Zeroizing;

/// Length of a block, and of an IV, in bytes.
pub const BLOCK_LEN: usize = 16;

/// A cipher of `openssl enc`, by its name there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum LegacyAlgorithm {
    Aes128Cbc,
    Aes192Cbc,
    Aes256Cbc,
    Aes128Ctr,
    Aes192Ctr,
    Aes256Ctr,
    Sm4Cbc,
}

impl LegacyAlgorithm {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Self); 7] = [
        ("aes-128-cbc", Self::Aes128Cbc),
        ("aes-192-cbc", Self::Aes192Cbc),
        ("aes-256-cbc", Self::Aes256Cbc),
        ("aes-128-ctr", Self::Aes128Ctr),
        ("aes-192-ctr", Self::Aes192Ctr),
        ("aes-256-ctr", Self::Aes256Ctr),
        ("sm4-cbc", Self::Sm4Cbc),
    ];

    /// Whether the last block ends with padding.
    pub const fn is_padded(self) -> bool {
        !matches!(self, Self::Aes128Ctr | Self::Aes192Ctr | Self::Aes256Ctr)
    }

    const fn key_len(self) -> usize {
        match self {
            Self::Aes128Cbc | Self::Aes128Ctr | Self::Sm4Cbc => 16,
            Self::Aes192Cbc | Self::Aes192Ctr => 24,
            Self::Aes256Cbc | Self::Aes256Ctr => 32,
        }
    }
}

/// The name is none of [`LegacyAlgorithm::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown cipher: expected aes-128-cbc, aes-192-cbc, aes-256-cbc, aes-128-ctr, aes-192-ctr, aes-256-ctr or sm4-cbc"
)]
pub struct UnknownAlgorithm;

impl FromStr for LegacyAlgorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, algorithm)| *algorithm)
            .ok_or(UnknownAlgorithm)
    }
}

/// The digest of PBKDF2: `-md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum LegacyDigest {
    Sha256,
    Sha384,
    Sha512,
}

impl FromStr for LegacyDigest {
    type Err = UnknownDigest;

    fn from_str(name: &str) -> Result<Self, UnknownDigest> {
        match name {
            "sha256" => Ok(Self::Sha256),
            "sha384" => Ok(Self::Sha384),
            "sha512" => Ok(Self::Sha512),
            _ => Err(UnknownDigest),
        }
    }
}

/// The name is no digest that PBKDF2 is offered with here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown digest: expected sha256, sha384 or sha512")]
pub struct UnknownDigest;

/// Decrypts what `openssl enc` encrypted under one passphrase and salt. Can be used by many threads
/// at once.
pub struct LegacyCipher {
    key: Key,
    iv: [u8; BLOCK_LEN],
}

enum Key {
    Cbc(DecryptingKey),
    Ctr(DecryptingKey),
    Sm4Cbc(Box<Sm4>),
}

impl LegacyCipher {
    /// Derives key and IV, which takes `iterations` times two to six hashes.
    pub fn derive(
        algorithm: LegacyAlgorithm,
        passphrase: &str,
        salt: &[u8; 8],
        digest: LegacyDigest,
        iterations: NonZeroU32,
    ) -> Self {
        let digest = match digest {
            LegacyDigest::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
            LegacyDigest::Sha384 => pbkdf2::PBKDF2_HMAC_SHA384,
            LegacyDigest::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
        };
        let mut derived = Zeroizing::new([0; 32 + BLOCK_LEN]);
        let derived = &mut derived[..algorithm.key_len() + BLOCK_LEN];
        pbkdf2::derive(digest, iterations, salt, passphrase.as_bytes(), derived);
        let (key, iv) = derived.split_last_chunk().expect("longer than a block");
        Self {
            key: Key::new(algorithm, key),
            iv: *iv,
        }
    }

    /// Decrypts a part of the ciphertext in place. `block` is the number of its first block in the
    /// whole, `previous` the block of ciphertext before it (`None` for the first part).
    ///
    /// Nothing is verified, and padding is not taken off.
    ///
    /// # Panics
    ///
    /// In CBC, if `part` is not made of whole blocks.
    pub fn decrypt_part(&self, block: u64, previous: Option<&[u8; BLOCK_LEN]>, part: &mut [u8]) {
        let before = *previous.unwrap_or(&self.iv);
        match &self.key {
            Key::Cbc(key) => decrypt_aes(key, before, part),
            Key::Ctr(key) => {
                let counter = u128::from_be_bytes(self.iv).wrapping_add(u128::from(block));
                decrypt_aes(key, counter.to_be_bytes(), part);
            }
            Key::Sm4Cbc(key) => {
                let (blocks, rest) = part.as_chunks_mut::<BLOCK_LEN>();
                assert!(rest.is_empty(), "whole blocks");
                key.decrypt_cbc(&mut { before }, blocks);
            }
        }
    }
}

impl Key {
    fn new(algorithm: LegacyAlgorithm, bytes: &[u8]) -> Self {
        if algorithm == LegacyAlgorithm::Sm4Cbc {
            let key = bytes.try_into().expect("an SM4 key has 16 bytes");
            return Key::Sm4Cbc(Box::new(Sm4::new(key)));
        }
        let cipher = match bytes.len() {
            16 => &AES_128,
            24 => &AES_192,
            _ => &AES_256,
        };
        let unbound = UnboundCipherKey::new(cipher, bytes).expect("the key has its length");
        if algorithm.is_padded() {
            Key::Cbc(DecryptingKey::cbc(unbound).expect("AES has CBC"))
        } else {
            Key::Ctr(DecryptingKey::ctr(unbound).expect("AES has CTR"))
        }
    }
}

fn decrypt_aes(key: &DecryptingKey, iv: [u8; BLOCK_LEN], part: &mut [u8]) {
    if part.is_empty() {
        return;
    }
    key.decrypt(part, DecryptionContext::Iv128(FixedLength::from(iv)))
        .expect("whole blocks");
}

impl fmt::Debug for LegacyCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LegacyCipher").finish_non_exhaustive()
    }
}

/// The length of `plain` without its PKCS #7 padding, if it ends with one: the only sign of a wrong
/// passphrase that CBC gives, and a weak one (one time in 256 it fails to show).
pub fn unpadded_len(plain: &[u8]) -> Option<usize> {
    let pad = usize::from(*plain.last()?);
    let body = plain.len().checked_sub(pad)?;
    let padding = &plain[body..];
    let valid = (1..=BLOCK_LEN).contains(&pad) && padding.iter().all(|&b| usize::from(b) == pad);
    valid.then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::hex;

    /// `printf 'the quick brown fox jumps over the lazy dog' |
    /// openssl enc -<name> -pbkdf2 -iter 3 -md <digest> -S 0102030405060708 -pass pass:secret`
    const OF_OPENSSL: &[(&str, LegacyDigest, &str)] = &[
        (
            "aes-128-cbc",
            LegacyDigest::Sha256,
            "ae61afcddf021519412e063c12e65f33fa66d3fb3658ffc411065a49486c0bddbad76e612fad9f821471c6c514d68b3c",
        ),
        (
            "aes-192-cbc",
            LegacyDigest::Sha512,
            "908970d49c062b2b4bd55ec5277f8c2dfe091271a585d2b67f140ad9036e01989ced85decd61c4a174600c6e356b5456",
        ),
        (
            "aes-256-cbc",
            LegacyDigest::Sha256,
            "00f0e55d848a0b0db9113dc1dabfd0902a6e65a0cc1c06a32e18696049d89d29af624a9db6748688814a7b8457f01a76",
        ),
        (
            "aes-128-ctr",
            LegacyDigest::Sha256,
            "0ce207232e3b28fe3edbb6df949a70fc894ad1b74ddcb3908c9affce732a126c7cf1d1ea90c19e10a03c2d",
        ),
        (
            "aes-192-ctr",
            LegacyDigest::Sha256,
            "905305eef131d65b9ee26b25c1fd11e27646c349d2de427d01c92736efa855698105d755964a868ff59471",
        ),
        (
            "aes-256-ctr",
            LegacyDigest::Sha384,
            "196482ffa336e6ed504fa223a4775540f9c05b850d9d047b9cb332bf4c079252c56d345777ca061a4ecc6a",
        ),
        (
            "sm4-cbc",
            LegacyDigest::Sha256,
            "0bc467fe07da1bc0e02de93bc95f3eeed5fcb6139825ac26e31c1337526ae410be44acca0f769b9f2df72ef8eb69a497",
        ),
    ];

    #[test]
    fn what_openssl_wrote_in_one_part_and_in_many() {
        for (name, digest, text) in OF_OPENSSL {
            let algorithm: LegacyAlgorithm = name.parse().unwrap();
            let salt = [1, 2, 3, 4, 5, 6, 7, 8];
            let iterations = NonZeroU32::new(3).unwrap();
            let cipher = LegacyCipher::derive(algorithm, "secret", &salt, *digest, iterations);
            let sealed = hex(text);
            let mut whole = sealed.clone();
            cipher.decrypt_part(0, None, &mut whole);
            let len = match algorithm.is_padded() {
                true => unpadded_len(&whole).expect("padding"),
                false => whole.len(),
            };
            assert_eq!(
                &whole[..len],
                b"the quick brown fox jumps over the lazy dog"
            );

            let mut parts = sealed.clone();
            for (number, part) in (0u64..).zip(parts.chunks_mut(BLOCK_LEN)) {
                let at = number as usize * BLOCK_LEN;
                let previous = sealed[..at].last_chunk();
                cipher.decrypt_part(number, previous, part);
            }
            assert_eq!(parts, whole, "{name}");
        }
    }

    #[test]
    fn padding() {
        assert_eq!(unpadded_len(&[]), None);
        assert_eq!(unpadded_len(&[16; 16]), Some(0));
        assert_eq!(unpadded_len(&[1; 16]), Some(15));
        assert_eq!(unpadded_len(&[0; 16]), None);
        assert_eq!(unpadded_len(&[17; 32]), None);
        let mut block = [3; 16];
        block[14] = 2;
        assert_eq!(unpadded_len(&block), None);
    }

    #[test]
    fn names() {
        for (name, algorithm) in LegacyAlgorithm::ALL {
            assert_eq!(name.parse(), Ok(algorithm));
        }
        assert_eq!(
            "aes-256-gcm".parse::<LegacyAlgorithm>(),
            Err(UnknownAlgorithm)
        );
    }
}
