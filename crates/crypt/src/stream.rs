//! Keys of a sealed stream: the ciphers of its frames and of its footer, and a commitment to its
//! key.
//!
//! ```text
//! PRK        = HKDF-Extract(salt = "onionskin/1 sealed stream", IKM = data key or file key)
//! commitment = HKDF-Expand(PRK, "commitment" ‖ 0x00 ‖ suite id ‖ context, 32)
//! frame key  = HKDF-Expand(PRK, "frames"     ‖ 0x00 ‖ suite id ‖ context ‖ number of the subkey (4), 32 or 16)
//! footer key = HKDF-Expand(PRK, "footer"     ‖ 0x00 ‖ suite id ‖ context, 32 or 16)
//! ```
//!
//! The hash is SHA-256 in suite `aes`, whose frames are under AES-256-GCM, and SM3 in suite `sm`,
//! whose frames are under SM4-GCM. The context is the stream's header, which holds 32 random bytes:
//! no two streams share a key, and a stream whose header was changed has other keys. So nonces may
//! be plain counters.
//!
//! GCM does not commit to its key: somebody who knows two keys can make a message that opens under
//! both. The commitment does (it is a hash of the key), and it tells a wrong key from a damaged
//! stream.

use std::fmt;

use aws_lc_rs::digest;
use sm3::{Digest, Sm3};
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use crate::{
    DataKey, FileKey, OpenError, SealError, Suite,
    aead::{Aead, TAG_LEN},
    derive::Secret,
    nonce::NONCE_LEN,
};

const SALT: &[u8] = b"onionskin/1 sealed stream";

/// Length of a stream's commitment in bytes.
pub const STREAM_COMMITMENT_LEN: usize = 32;
/// Length of a frame's tag in bytes.
pub const FRAME_TAG_LEN: usize = TAG_LEN;
/// Length of a frame's nonce in bytes.
pub const FRAME_NONCE_LEN: usize = NONCE_LEN;
/// Length of a [`StreamDigest`] in bytes, in both suites.
pub const STREAM_DIGEST_LEN: usize = 32;

/// The source of one stream's keys. Building it and deriving from it costs microseconds.
pub struct StreamKey {
    secret: Secret,
    context: Box<[u8]>,
}

impl StreamKey {
    /// The keys of the stream that `context` identifies: its header, which must hold random bytes
    /// of its own.
    pub fn new(suite: Suite, data_key: &DataKey, context: &[u8]) -> Self {
        Self::of_secret(suite, data_key.bytes(), context)
    }

    /// The same from a file key, which the context holds wrapped. A data key is longer, and a
    /// header says which of the two it is: no stream has keys from both.
    pub fn from_file_key(suite: Suite, file_key: &FileKey, context: &[u8]) -> Self {
        Self::of_secret(suite, file_key.bytes(), context)
    }

    fn of_secret(suite: Suite, secret: &[u8], context: &[u8]) -> Self {
        Self {
            secret: Secret::extract(suite, SALT, secret),
            context: context.into(),
        }
    }

    /// Which ciphers it derives keys for.
    pub fn suite(&self) -> Suite {
        self.secret.suite()
    }

    /// Shows nothing of the key, and belongs to no other key and no other context.
    pub fn commitment(&self) -> [u8; STREAM_COMMITMENT_LEN] {
        self.expand(b"commitment\0", &[])
    }

    /// Whether `commitment` is this key's; takes the same time for every wrong one.
    pub fn is_committed_to(&self, commitment: &[u8; STREAM_COMMITMENT_LEN]) -> bool {
        self.commitment()[..].ct_eq(&commitment[..]).into()
    }

    /// The cipher of the frames under the subkey of this number.
    pub fn frames(&self, subkey: u32) -> FrameCipher {
        self.cipher(b"frames\0", &subkey.to_be_bytes())
    }

    /// The cipher of the footer.
    pub fn footer(&self) -> FrameCipher {
        self.cipher(b"footer\0", &[])
    }

    fn cipher(&self, label: &[u8], scope: &[u8]) -> FrameCipher {
        FrameCipher(match self.suite() {
            Suite::Aes => Aead::aes_gcm(&mut self.expand(label, scope)),
            Suite::Sm => Aead::sm(&mut self.expand(label, scope)),
        })
    }

    fn expand<const N: usize>(&self, label: &[u8], scope: &[u8]) -> [u8; N] {
        self.secret
            .expand(&[label, &[self.suite().id()], &self.context, scope])
    }
}

impl Drop for StreamKey {
    fn drop(&mut self) {
        // No secret; but a handle that is gone should leave nothing.
        self.context.zeroize();
    }
}

impl fmt::Debug for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamKey")
            .field("suite", &self.suite())
            .finish_non_exhaustive()
    }
}

/// AES-256-GCM or SM4-GCM under one subkey of a stream. Can be used by many threads at once.
///
/// **A nonce must never be used for two messages under one cipher**: GCM gives away its
/// authentication key then.
pub struct FrameCipher(Aead);

impl FrameCipher {
    /// Encrypts `buf` in place. `buf` is at most 64 GiB.
    pub fn seal_in_place(
        &self,
        nonce: &[u8; FRAME_NONCE_LEN],
        aad: &[u8],
        buf: &mut [u8],
    ) -> Result<[u8; FRAME_TAG_LEN], SealError> {
        self.0.seal_in_place(nonce, aad, buf)
    }

    /// Decrypts `buf` in place; on error it is wiped.
    pub fn open_in_place(
        &self,
        nonce: &[u8; FRAME_NONCE_LEN],
        aad: &[u8],
        buf: &mut [u8],
        tag: &[u8; FRAME_TAG_LEN],
    ) -> Result<(), OpenError> {
        self.0.open_in_place(nonce, aad, buf, tag)
    }
}

impl fmt::Debug for FrameCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameCipher").finish_non_exhaustive()
    }
}

/// The suite's hash, for what a stream's footer says of its frames: SHA-256 or SM3.
pub enum StreamDigest {
    /// Of suite `aes`.
    Sha256(Box<digest::Context>),
    /// Of suite `sm`.
    Sm3(Box<Sm3>),
}

impl StreamDigest {
    /// Of nothing yet.
    pub fn new(suite: Suite) -> Self {
        match suite {
            Suite::Aes => Self::Sha256(Box::new(digest::Context::new(&digest::SHA256))),
            Suite::Sm => Self::Sm3(Box::default()),
        }
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(context) => context.update(bytes),
            Self::Sm3(hash) => hash.update(bytes),
        }
    }

    /// The digest of all that was added.
    pub fn finish(self) -> [u8; STREAM_DIGEST_LEN] {
        let mut out = [0; STREAM_DIGEST_LEN];
        match self {
            Self::Sha256(context) => out.copy_from_slice(context.finish().as_ref()),
            Self::Sm3(hash) => out.copy_from_slice(&hash.finalize()),
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::hex;

    const NONCE: [u8; FRAME_NONCE_LEN] = [9; FRAME_NONCE_LEN];

    fn key(suite: Suite, byte: u8, context: &[u8]) -> StreamKey {
        StreamKey::new(suite, &DataKey::from_bytes([byte; 32]), context)
    }

    #[test]
    fn every_key_and_context_is_committed_to_apart() {
        let mut commitments = Vec::new();
        for suite in [Suite::Aes, Suite::Sm] {
            for byte in [1, 2] {
                for context in [&b"a"[..], b"b", b"", b"a\0"] {
                    let key = key(suite, byte, context);
                    assert!(key.is_committed_to(&key.commitment()));
                    commitments.push(key.commitment());
                }
            }
        }
        for (at, commitment) in commitments.iter().enumerate() {
            for suite in [Suite::Aes, Suite::Sm] {
                let accepted = key(suite, 1, b"a").is_committed_to(commitment);
                assert_eq!(accepted, at == if suite == Suite::Aes { 0 } else { 8 });
            }
        }
    }

    #[test]
    fn a_message_opens_under_its_own_subkey_only() {
        for suite in [Suite::Aes, Suite::Sm] {
            let stream = key(suite, 1, b"a");
            let mut sealed = *b"what is sealed";
            let tag = stream
                .frames(0)
                .seal_in_place(&NONCE, b"aad", &mut sealed)
                .unwrap();
            let others = [
                stream.frames(1),
                stream.footer(),
                key(suite, 2, b"a").frames(0),
                key(suite, 1, b"b").frames(0),
            ];
            for other in others {
                let mut buf = sealed;
                assert!(other.open_in_place(&NONCE, b"aad", &mut buf, &tag).is_err());
                assert_eq!(buf, [0; 14], "unverified plaintext stays");
            }
            let mut buf = sealed;
            let own = stream.frames(0);
            own.open_in_place(&NONCE, b"aad", &mut buf, &tag).unwrap();
            assert_eq!(&buf, b"what is sealed");
        }
    }

    // FIPS 180-4 and GB/T 32905, "abc".
    #[test]
    fn digests() {
        for (suite, expected) in [
            (
                Suite::Aes,
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
            (
                Suite::Sm,
                "66c7f0f462eeedd9d1f2d46bdc10e4e24167c4875cf2f7a2297da02b8f4ba8e0",
            ),
        ] {
            let mut digest = StreamDigest::new(suite);
            digest.update(b"a");
            digest.update(b"bc");
            assert_eq!(&digest.finish()[..], hex(expected));
        }
    }
}
