//! The provider whose root key comes out of a key file.
//!
//! ```text
//! PRK      = HKDF-SHA-256-Extract(salt = "onionskin/1 key file", IKM = root key)
//! wrap key = HKDF-Expand(PRK, "wrap", 32)      mac key = HKDF-Expand(PRK, "mac", 32)
//! wrapped  = nonce (12, random) ‖ AES-256-GCM-SIV(wrap key, nonce, key) (32) ‖ tag (16)
//!            associated data: "onionskin/1 wrapped key" ‖ purpose (1) ‖ key id (2, big-endian)
//! ```

use aws_lc_rs::{
    aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf, hmac,
};
use onionskin_crypt::{DATA_KEY_LEN, DataKey, dangerous_bytes};
use rand::{CryptoRng, Rng};
use zeroize::{Zeroize, Zeroizing};

use crate::{KeyContext, KeyError, KeyProvider, WrappedKey};

pub(crate) const ROOT_KEY_LEN: usize = 32;
const TAG_LEN: usize = 16;
const BOX_LEN: usize = NONCE_LEN + ROOT_KEY_LEN + TAG_LEN;
const MAC_LEN: usize = 32;

/// The raw root key, on its way between a file and a [`FileRoot`]. Wiped when dropped.
pub(crate) type RootKey = Zeroizing<[u8; ROOT_KEY_LEN]>;

pub(crate) fn generate_root_key(rng: &mut impl CryptoRng) -> RootKey {
    let mut root = Zeroizing::new([0; ROOT_KEY_LEN]);
    rng.fill_bytes(&mut root[..]);
    root
}

/// What a root key is expanded to.
pub(crate) struct FileRoot {
    wrap: LessSafeKey,
    mac: hmac::Key,
}

impl FileRoot {
    pub(crate) fn new(root: &RootKey) -> Self {
        let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, b"onionskin/1 key file").extract(&root[..]);
        let expand = |label: &[u8]| {
            let mut key = Zeroizing::new([0; 32]);
            prk.expand(&[label], hkdf::HKDF_SHA256)
                .and_then(|expanded| expanded.fill(&mut key[..]))
                .expect("HKDF gives one hash");
            key
        };
        Self {
            wrap: box_key(&expand(b"wrap")),
            mac: hmac::Key::new(hmac::HMAC_SHA256, &expand(b"mac")[..]),
        }
    }

    /// Authenticates the key file as a whole.
    pub(crate) fn mac(&self, content: &[u8]) -> [u8; MAC_LEN] {
        let mut mac = [0; MAC_LEN];
        mac.copy_from_slice(hmac::sign(&self.mac, content).as_ref());
        mac
    }

    /// Constant-time check of [`FileRoot::mac`].
    pub(crate) fn verify(&self, content: &[u8], mac: &[u8]) -> Result<(), KeyError> {
        hmac::verify(&self.mac, content, mac).map_err(|_| KeyError::Tampered)
    }
}

impl KeyProvider for FileRoot {
    fn wrap(&self, plain: &DataKey, context: KeyContext) -> Result<WrappedKey, KeyError> {
        let aad = wrap_aad(context);
        seal_key(
            &self.wrap,
            dangerous_bytes::bytes_of_data_key(plain),
            &aad,
            &mut rand::rng(),
        )
        .map(WrappedKey)
    }

    fn unwrap(&self, wrapped: &WrappedKey, context: KeyContext) -> Result<DataKey, KeyError> {
        let key = open_key(&self.wrap, &wrapped.0, &wrap_aad(context)).ok_or(KeyError::Tampered)?;
        Ok(dangerous_bytes::data_key_from_bytes(*key))
    }

    fn name(&self) -> &str {
        "file"
    }
}

fn wrap_aad(context: KeyContext) -> Vec<u8> {
    let mut aad = b"onionskin/1 wrapped key".to_vec();
    aad.push(context.purpose.id());
    aad.extend_from_slice(&context.id.to_be_bytes());
    aad
}

/// A key that boxes other keys.
pub(crate) fn box_key(key: &[u8; 32]) -> LessSafeKey {
    let unbound =
        UnboundKey::new(&AES_256_GCM_SIV, key).expect("an AES-256-GCM-SIV key has 32 bytes");
    LessSafeKey::new(unbound)
}

/// A 32-byte key in a box: nonce, ciphertext, tag.
pub(crate) fn seal_key(
    under: &LessSafeKey,
    key: &[u8; DATA_KEY_LEN],
    aad: &[u8],
    rng: &mut impl Rng,
) -> Result<Vec<u8>, KeyError> {
    let mut nonce = [0; NONCE_LEN];
    rng.fill_bytes(&mut nonce);
    let mut body = Zeroizing::new(*key);
    let tag = under
        .seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(aad),
            &mut body[..],
        )
        .map_err(|_| KeyError::WrapFailed)?;
    Ok([&nonce, &body[..], tag.as_ref()].concat())
}

/// The key in a box, if the box was sealed under this key and associated data.
pub(crate) fn open_key(
    under: &LessSafeKey,
    sealed: &[u8],
    aad: &[u8],
) -> Option<Zeroizing<[u8; DATA_KEY_LEN]>> {
    let sealed: &[u8; BOX_LEN] = sealed.try_into().ok()?;
    let (nonce, rest) = sealed.split_first_chunk::<NONCE_LEN>()?;
    let (body, tag) = rest.split_last_chunk::<TAG_LEN>()?;
    let mut key = Zeroizing::new(<[u8; DATA_KEY_LEN]>::try_from(body).ok()?);
    let nonce = Nonce::assume_unique_for_key(*nonce);
    match under.open_in_place_separate_tag(nonce, Aad::from(aad), tag, &mut key[..]) {
        Ok(_) => Some(key),
        Err(_) => {
            key.zeroize();
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyPurpose;

    fn context(purpose: KeyPurpose, id: u16) -> KeyContext {
        KeyContext { purpose, id }
    }

    #[test]
    fn a_wrapped_key_opens_only_in_its_own_place() {
        let root = FileRoot::new(&Zeroizing::new([5; 32]));
        let key = DataKey::generate(&mut rand::rng());
        let wrapped = root.wrap(&key, context(KeyPurpose::Data, 1)).unwrap();
        assert_eq!(wrapped.0.len(), BOX_LEN);
        let back = root.unwrap(&wrapped, context(KeyPurpose::Data, 1)).unwrap();
        assert_eq!(
            dangerous_bytes::bytes_of_data_key(&back),
            dangerous_bytes::bytes_of_data_key(&key)
        );
        for elsewhere in [
            context(KeyPurpose::Data, 2),
            context(KeyPurpose::Metadata, 1),
        ] {
            assert!(matches!(
                root.unwrap(&wrapped, elsewhere),
                Err(KeyError::Tampered)
            ));
        }
        let other = FileRoot::new(&Zeroizing::new([6; 32]));
        assert!(
            other
                .unwrap(&wrapped, context(KeyPurpose::Data, 1))
                .is_err()
        );
        for len in 0..BOX_LEN {
            let cut = WrappedKey(wrapped.0[..len].to_vec());
            assert!(root.unwrap(&cut, context(KeyPurpose::Data, 1)).is_err());
        }
    }
}
