//! The X25519 recipient of age v1 (<https://age-encryption.org/v1>), stanza for stanza.
//!
//! ```text
//! e         = 32 random bytes                      share = X25519(e, 9)
//! shared    = X25519(e, recipient)                 refused if it is all zeros
//! wrap key  = HKDF-SHA-256(salt = share ‖ recipient, IKM = shared, info = "age-encryption.org/v1/X25519", 32)
//! stanza    = share (32) ‖ ChaCha20-Poly1305(wrap key, nonce = 12 zeros, file key) (16) ‖ tag (16)
//! ```
//!
//! The wrap key serves once, since the share is random, so the nonce may be a constant.

use aws_lc_rs::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey},
    agreement::{self, PrivateKey, UnparsedPublicKey, X25519},
    error::Unspecified,
    hkdf,
};
use zeroize::{Zeroize, Zeroizing};

use super::{IDENTITY_LEN, KeyBytesError, X25519_RECIPIENT_LEN};
use crate::{FILE_KEY_LEN, FileKey, SealError, aead::TAG_LEN, fresh_bytes, nonce::NONCE_LEN};

const INFO: &[u8] = b"age-encryption.org/v1/X25519";
const SHARE_LEN: usize = 32;
/// Length of a stanza in bytes.
pub const STANZA_LEN: usize = SHARE_LEN + FILE_KEY_LEN + TAG_LEN;

/// The prime of the curve's field, 2^255 - 19, lowest byte first.
const PRIME: [u8; 32] = {
    let mut prime = [0xff; 32];
    prime[0] = 0xed;
    prime[31] = 0x7f;
    prime
};

/// An X25519 public key that leads to a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey([u8; X25519_RECIPIENT_LEN]);

impl PublicKey {
    /// Reads a public key. Refuses points of low order, under which everybody knows the shared
    /// secret, and coordinates beyond the prime: the identity computes the reduced one, and would
    /// not open what was wrapped.
    pub fn from_bytes(bytes: [u8; X25519_RECIPIENT_LEN]) -> Result<Self, KeyBytesError> {
        let below_prime = bytes.iter().rev().lt(PRIME.iter().rev());
        let probe = Zeroizing::new([1; IDENTITY_LEN]);
        match below_prime && agree(&probe, &bytes, &[], |_| ()).is_ok() {
            true => Ok(Self(bytes)),
            false => Err(KeyBytesError),
        }
    }

    /// As it is written.
    pub fn to_bytes(&self) -> [u8; X25519_RECIPIENT_LEN] {
        self.0
    }

    /// Wraps a file key.
    pub fn wrap(&self, file_key: &FileKey) -> Result<[u8; STANZA_LEN], SealError> {
        self.wrap_with(file_key, &Zeroizing::new(fresh_bytes()))
    }

    /// With a given ephemeral secret, which must be random and serve once.
    pub(super) fn wrap_with(
        &self,
        file_key: &FileKey,
        ephemeral: &Zeroizing<[u8; IDENTITY_LEN]>,
    ) -> Result<[u8; STANZA_LEN], SealError> {
        let share = share_of(ephemeral).map_err(|_| SealError::Failed)?;
        let salt = [share, self.0].concat();
        let mut body = *file_key.bytes();
        let tag = agree(ephemeral, &self.0, &salt, |key| {
            key.seal_in_place_separate_tag(zero_nonce(), Aad::empty(), &mut body)
        })
        .and_then(|sealed| sealed);
        let Ok(tag) = tag else {
            body.zeroize();
            return Err(SealError::Failed);
        };
        let mut stanza = [0; STANZA_LEN];
        stanza[..SHARE_LEN].copy_from_slice(&share);
        stanza[SHARE_LEN..][..FILE_KEY_LEN].copy_from_slice(&body);
        stanza[SHARE_LEN + FILE_KEY_LEN..].copy_from_slice(tag.as_ref());
        Ok(stanza)
    }
}

/// An X25519 secret key.
pub struct SecretKey {
    secret: Zeroizing<[u8; IDENTITY_LEN]>,
    public: [u8; X25519_RECIPIENT_LEN],
}

impl SecretKey {
    pub(super) fn from_bytes(bytes: &[u8; IDENTITY_LEN]) -> Result<Self, KeyBytesError> {
        let secret = Zeroizing::new(*bytes);
        let public = share_of(&secret).map_err(|_| KeyBytesError)?;
        Ok(Self { secret, public })
    }

    pub(super) fn secret_bytes(&self) -> Zeroizing<[u8; IDENTITY_LEN]> {
        self.secret.clone()
    }

    /// Its public half.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.public)
    }

    /// The file key of a stanza that was wrapped to it.
    pub fn unwrap(&self, stanza: &[u8; STANZA_LEN]) -> Option<FileKey> {
        let (share, sealed) = stanza.split_first_chunk::<SHARE_LEN>()?;
        let (body, tag) = sealed.split_first_chunk::<FILE_KEY_LEN>()?;
        let salt = [*share, self.public].concat();
        let mut body = Zeroizing::new(*body);
        let opened = agree(&self.secret, share, &salt, |key| {
            let aad = Aad::empty();
            let opened = key.open_in_place_separate_tag(zero_nonce(), aad, tag, &mut body[..]);
            opened.map(|_| ())
        });
        opened.and_then(|opened| opened).ok()?;
        Some(FileKey::from_bytes(*body))
    }
}

/// The public half of a secret.
fn share_of(secret: &Zeroizing<[u8; IDENTITY_LEN]>) -> Result<[u8; SHARE_LEN], Unspecified> {
    let secret = PrivateKey::from_private_key(&X25519, &secret[..]).map_err(|_| Unspecified)?;
    let public = secret.compute_public_key()?;
    public.as_ref().try_into().map_err(|_| Unspecified)
}

/// Hands the wrap key to `with`. An error if the shared secret is all zeros: the peer's point is of
/// low order.
fn agree<T>(
    secret: &Zeroizing<[u8; IDENTITY_LEN]>,
    peer: &[u8; X25519_RECIPIENT_LEN],
    salt: &[u8],
    with: impl FnOnce(LessSafeKey) -> T,
) -> Result<T, Unspecified> {
    let secret = PrivateKey::from_private_key(&X25519, &secret[..]).map_err(|_| Unspecified)?;
    let peer = UnparsedPublicKey::new(&X25519, peer);
    agreement::agree(&secret, peer, Unspecified, |shared| {
        // The library refuses it as well; this is where it must not be missed.
        if shared.iter().all(|byte| *byte == 0) {
            return Err(Unspecified);
        }
        let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(shared);
        let mut key = Zeroizing::new([0; 32]);
        prk.expand(&[INFO], hkdf::HKDF_SHA256)?.fill(&mut key[..])?;
        Ok(with(LessSafeKey::new(UnboundKey::new(
            &CHACHA20_POLY1305,
            &key[..],
        )?)))
    })
}

fn zero_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}
