//! The keys of cells, and what every cell has behind its header: nonce, ciphertext, tag.

use zeroize::Zeroize;

use crate::{
    OpenError, SealError, Suite,
    aead::{Aead, TAG_LEN},
    derive::{Purpose, hmac_sm3},
    nonce::{NONCE_LEN, Nonces},
};

/// A sealing key, and in suite `sm` the key of its nonces.
pub(crate) struct CellKeys {
    aead: Aead,
    nonces: Nonces,
}

impl CellKeys {
    /// Those that `source` gives for sealing and, in suite `sm`, for nonces.
    pub(crate) fn derive(suite: Suite, source: &impl KeySource) -> Self {
        match suite {
            Suite::Aes => Self {
                aead: Aead::aes(&mut source.key(Purpose::Seal)),
                nonces: Nonces::Random,
            },
            Suite::Sm => {
                let aead = Aead::sm(&mut source.key(Purpose::Seal));
                let mut key: [u8; 32] = source.key(Purpose::Nonce);
                let nonces = Nonces::Synthetic(Box::new(hmac_sm3(&key)));
                key.zeroize();
                Self { aead, nonces }
            }
        }
    }

    /// Appends the cell of `payload`: the header, and what is behind it. On error `out` is
    /// unchanged. All calls have associated data of one length.
    #[inline]
    pub(crate) fn seal<const HEAD: usize>(
        &self,
        header: &[u8; HEAD],
        aad: &[u8],
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        let nonce = self.nonces.next(aad, payload)?;
        self.seal_with_nonce(&nonce, header, aad, payload, out)
    }

    /// The same; the caller answers for the nonce.
    #[inline]
    pub(crate) fn seal_with_nonce<const HEAD: usize>(
        &self,
        nonce: &[u8; NONCE_LEN],
        header: &[u8; HEAD],
        aad: &[u8],
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        let start = out.len();
        out.reserve((HEAD + NONCE_LEN + TAG_LEN).saturating_add(payload.len()));
        out.extend_from_slice(header);
        out.extend_from_slice(nonce);
        out.extend_from_slice(payload);
        let body = &mut out[start + HEAD + NONCE_LEN..];
        match self.aead.seal_in_place(nonce, aad, body) {
            Ok(tag) => {
                out.extend_from_slice(&tag);
                Ok(())
            }
            Err(error) => {
                // The body may still be plaintext; it must not stay in a buffer bound for the
                // server.
                out[start..].zeroize();
                out.truncate(start);
                Err(error)
            }
        }
    }

    /// Appends the payload of a cell, given without its header, or leaves `out` as it was.
    #[inline]
    pub(crate) fn open(
        &self,
        sealed: &[u8],
        aad: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), OpenError> {
        let (body, tag) = sealed
            .split_last_chunk::<TAG_LEN>()
            .ok_or(OpenError::TooShort)?;
        let (nonce, ciphertext) = body
            .split_first_chunk::<NONCE_LEN>()
            .ok_or(OpenError::TooShort)?;
        let start = out.len();
        out.extend_from_slice(ciphertext);
        self.aead
            .open_in_place(nonce, aad, &mut out[start..], tag)
            .inspect_err(|_| out.truncate(start))
    }

    #[cfg(test)]
    pub(crate) fn synthetic_nonce(
        &self,
        fresh: &[u8; 16],
        aad: &[u8],
        payload: &[u8],
    ) -> [u8; NONCE_LEN] {
        match &self.nonces {
            Nonces::Synthetic(key) => crate::nonce::synthetic(key, fresh, aad, payload),
            Nonces::Random => panic!("the suite has random nonces"),
        }
    }
}

/// Where the keys of cells come from.
pub(crate) trait KeySource {
    /// The key for this purpose.
    fn key<const N: usize>(&self, purpose: Purpose) -> [u8; N];
}
