//! The keyed function behind equality tokens and metadata tags: HMAC, cut to 128 bits.

use ::hmac::{Hmac, Mac};
use aws_lc_rs::hmac;
use sm3::Sm3;
use zeroize::Zeroize;

use crate::{Suite, derive::hmac_sm3};

pub(crate) const MAC_LEN: usize = 16;

/// HMAC with the key already absorbed, so that a token of a short input costs two compressions.
pub(crate) enum MacKey {
    Sha256(Box<hmac::Key>),
    Sm3(Box<Hmac<Sm3>>),
}

impl MacKey {
    /// Absorbs `key` and wipes it.
    pub(crate) fn new(suite: Suite, key: &mut [u8; 32]) -> Self {
        let mac = match suite {
            Suite::Aes => MacKey::Sha256(Box::new(hmac::Key::new(hmac::HMAC_SHA256, &key[..]))),
            Suite::Sm => MacKey::Sm3(Box::new(hmac_sm3(&key[..]))),
        };
        key.zeroize();
        mac
    }

    /// The first 16 bytes of the HMAC of `data`.
    pub(crate) fn mac(&self, data: &[u8]) -> [u8; MAC_LEN] {
        let mut cut = [0; MAC_LEN];
        match self {
            MacKey::Sha256(key) => {
                cut.copy_from_slice(&hmac::sign(key, data).as_ref()[..MAC_LEN]);
            }
            MacKey::Sm3(keyed) => {
                let mut mac = (**keyed).clone();
                mac.update(data);
                cut.copy_from_slice(&mac.finalize().into_bytes()[..MAC_LEN]);
            }
        }
        cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::hex;

    // RFC 4231, test cases 1, 2, 3 and 6; the whole HMAC, as aws-lc-rs gives it, and our cut of it.
    #[test]
    fn rfc_4231() {
        let cases: [(Vec<u8>, Vec<u8>, &str); 4] = [
            (
                vec![0x0b; 20],
                b"Hi There".to_vec(),
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe".to_vec(),
                b"what do ya want for nothing?".to_vec(),
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                vec![0xaa; 20],
                vec![0xdd; 50],
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
            ),
            (
                vec![0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First".to_vec(),
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ];
        for (key, data, expected) in cases {
            let key = MacKey::Sha256(Box::new(hmac::Key::new(hmac::HMAC_SHA256, &key)));
            assert_eq!(key.mac(&data)[..], hex(expected)[..MAC_LEN]);
        }
    }

    #[test]
    fn sm3_is_cut_from_the_left() {
        let key = MacKey::Sm3(Box::new(hmac_sm3(b"Jefe")));
        assert_eq!(
            key.mac(b"what do ya want for nothing?")[..],
            hex("2e87f1d16862e6d964b50a5200bf2b10")[..]
        );
    }
}
