//! The SM2 recipient: public-key encryption of GM/T 0003.4 (GB/T 32918.4) in the form C1 ‖ C3 ‖ C2.
//!
//! ```text
//! k          = random, 1 to n - 1                  C1 = [k]G, uncompressed: 0x04 ‖ x ‖ y (65)
//! (x2, y2)   = [k]recipient
//! C2         = file key ⊕ KDF(x2 ‖ y2, 16)         KDF: SM3 with a counter of 4 bytes, GM/T 0003.4, 5.4.3
//! C3         = SM3(x2 ‖ file key ‖ y2)             (32)
//! stanza     = C1 (65) ‖ C3 (32) ‖ C2 (16)
//! ```

use std::convert::Infallible;

use rand::{TryCryptoRng, TryRng};
use sm2::{
    elliptic_curve::sec1::ToSec1Point,
    pke::{Cipher, DecryptingKey, EncryptingKey, Mode},
};
use sm3::Sm3;
use zeroize::Zeroizing;

use super::{IDENTITY_LEN, KeyBytesError, SM2_RECIPIENT_LEN};
use crate::{FILE_KEY_LEN, FileKey, SealError, fresh_bytes};

const POINT_LEN: usize = 65;
const HASH_LEN: usize = 32;
/// Length of a stanza in bytes.
pub const STANZA_LEN: usize = POINT_LEN + HASH_LEN + FILE_KEY_LEN;
/// What an uncompressed point begins with.
const UNCOMPRESSED: u8 = 4;

/// An SM2 public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(sm2::PublicKey);

impl PublicKey {
    /// Reads a compressed point; refuses what is not on the curve.
    pub fn from_bytes(bytes: &[u8; SM2_RECIPIENT_LEN]) -> Result<Self, KeyBytesError> {
        let key = sm2::PublicKey::from_sec1_bytes(bytes).map_err(|_| KeyBytesError)?;
        Ok(Self(key))
    }

    /// As it is written.
    pub fn to_bytes(&self) -> [u8; SM2_RECIPIENT_LEN] {
        let point = self.0.to_sec1_point(true);
        let mut bytes = [0; SM2_RECIPIENT_LEN];
        bytes.copy_from_slice(point.as_bytes());
        bytes
    }

    /// Wraps a file key.
    pub fn wrap(&self, file_key: &FileKey) -> Result<[u8; STANZA_LEN], SealError> {
        self.wrap_with(file_key, &mut Fresh)
    }

    /// With a given source of the secret k.
    pub(super) fn wrap_with(
        &self,
        file_key: &FileKey,
        random: &mut impl TryCryptoRng,
    ) -> Result<[u8; STANZA_LEN], SealError> {
        let mut body = [0; FILE_KEY_LEN];
        let mut stanza = [0; STANZA_LEN];
        EncryptingKey::new(self.0)
            .encrypt_cipher_with_buf::<_, Sm3>(random, file_key.bytes(), &mut body)
            .and_then(|cipher| {
                cipher
                    .to_slice(Mode::C1C3C2, &mut stanza, false)
                    .map(|_| ())
            })
            .map_err(|_| SealError::Failed)?;
        Ok(stanza)
    }
}

/// An SM2 secret key. Wiped when dropped.
pub struct SecretKey(sm2::SecretKey);

impl SecretKey {
    /// A number from 1 to n - 1, the highest byte first.
    pub(super) fn from_bytes(bytes: &[u8; IDENTITY_LEN]) -> Result<Self, KeyBytesError> {
        let key = sm2::SecretKey::from_slice(bytes).map_err(|_| KeyBytesError)?;
        Ok(Self(key))
    }

    pub(super) fn secret_bytes(&self) -> Zeroizing<[u8; IDENTITY_LEN]> {
        let mut secret = self.0.to_bytes();
        let bytes = Zeroizing::new(secret.into());
        zeroize::Zeroize::zeroize(&mut secret[..]);
        bytes
    }

    /// Its public half.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.public_key())
    }

    /// The file key of a stanza that was wrapped to it.
    pub fn unwrap(&self, stanza: &[u8; STANZA_LEN]) -> Option<FileKey> {
        if stanza[0] != UNCOMPRESSED {
            return None;
        }
        let cipher = Cipher::<sm2::Sm2, Sm3>::from_slice(stanza, Mode::C1C3C2).ok()?;
        let scalar = Zeroizing::new(self.0.to_nonzero_scalar());
        let key = DecryptingKey::new_with_mode(*scalar, Mode::C1C3C2);
        let mut body = Zeroizing::new([0; FILE_KEY_LEN]);
        let len = key.decrypt_cipher_with_buf(&cipher, &mut body[..]).ok()?;
        (len == FILE_KEY_LEN).then(|| FileKey::from_bytes(*body))
    }
}

/// A generator that copies of this process do not share: see [`fresh_bytes`].
struct Fresh;

impl TryRng for Fresh {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_be_bytes(fresh_bytes()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_be_bytes(fresh_bytes()))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(32) {
            let fresh = Zeroizing::new(fresh_bytes::<32>());
            chunk.copy_from_slice(&fresh[..chunk.len()]);
        }
        Ok(())
    }
}

impl TryCryptoRng for Fresh {}
