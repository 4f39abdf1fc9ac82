//! How a key file keeps its root key: in the clear, under a passphrase, or wrapped by a provider.
//!
//! The file says which of the three it is, and never where a provider is or how it is reached: that
//! is for whoever opens it to know. Who can write the file cannot have another program run, or
//! another address asked.

use base64::{Engine, engine::general_purpose::STANDARD};
use onionskin_crypt::dangerous_bytes;
use rand::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

use crate::{
    KeyContext, KeyError, KeyProvider, WrappedKey,
    file_root::{ROOT_KEY_LEN, RootKey},
    keeper::RootKeeper,
    passphrase::{self, PassphraseCost, SALT_LEN},
};

/// A wrapped root key is some hundred bytes; a provider that needs more is none of ours.
const MOST_WRAPPED: usize = 16 << 10;
/// Longest name of a provider.
const LONGEST_NAME: usize = 32;

/// What opens the root key of a key file, or is to protect it.
#[derive(Clone, Copy)]
pub enum RootAccess<'a> {
    /// A passphrase; without one the file's mode is the only protection.
    Passphrase(Option<&'a str>),
    /// Whoever wraps it.
    Provider(&'a dyn KeyProvider),
}

/// The field `root`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) enum Root {
    Clear(String),
    Passphrase(SealedRoot),
    Provider(WrappedRoot),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SealedRoot {
    kdf: Kdf,
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    salt: String,
    sealed: String,
}

#[derive(Serialize, Deserialize)]
enum Kdf {
    #[serde(rename = "argon2id")]
    Argon2id,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrappedRoot {
    name: String,
    wrapped: String,
}

// Root does not derive Debug: with the root key in the clear, the text would be the key.
impl Drop for Root {
    fn drop(&mut self) {
        if let Root::Clear(text) = self {
            text.zeroize();
        }
    }
}

impl Root {
    /// Protects a root key.
    pub(crate) fn protect(
        root_key: &RootKey,
        access: RootAccess<'_>,
        cost: PassphraseCost,
        rng: &mut impl CryptoRng,
    ) -> Result<Root, KeyError> {
        let passphrase = match access {
            RootAccess::Provider(provider) => return wrap(root_key, provider),
            RootAccess::Passphrase(None) => {
                return Ok(Root::Clear(STANDARD.encode(&root_key[..])));
            }
            RootAccess::Passphrase(Some("")) => return Err(KeyError::EmptyPassphrase),
            RootAccess::Passphrase(Some(given)) => given,
        };
        let mut salt = [0; SALT_LEN];
        rng.fill_bytes(&mut salt);
        let sealed = passphrase::seal_root(passphrase, cost, &salt, root_key, rng)?;
        Ok(Root::Passphrase(SealedRoot {
            kdf: Kdf::Argon2id,
            memory_kib: cost.memory_kib,
            passes: cost.passes,
            lanes: cost.lanes,
            salt: STANDARD.encode(salt),
            sealed: STANDARD.encode(sealed),
        }))
    }

    /// The root key. The file has to be protected in just the way that `access` is of: another one
    /// may have been put in its place.
    pub(crate) fn open(&self, access: RootAccess<'_>) -> Result<RootKey, KeyError> {
        let passphrase = match access {
            RootAccess::Provider(provider) => return self.unwrap_by(provider),
            // An environment variable that is set to nothing is as good as unset.
            RootAccess::Passphrase(given) => given.filter(|passphrase| !passphrase.is_empty()),
        };
        match (self, passphrase) {
            (Root::Provider(_), Some(_)) | (Root::Clear(_), Some(_)) => {
                Err(KeyError::NotUnderPassphrase)
            }
            (Root::Provider(root), None) => Err(KeyError::ProviderNeeded(root.checked_name()?)),
            (Root::Clear(text), None) => {
                let bytes = Zeroizing::new(decode("root", text)?);
                let key = <[u8; ROOT_KEY_LEN]>::try_from(&bytes[..]).map_err(|_| {
                    KeyError::Malformed("the root key has a wrong length".to_owned())
                })?;
                Ok(Zeroizing::new(key))
            }
            (Root::Passphrase(_), None) => Err(KeyError::PassphraseNeeded),
            (Root::Passphrase(root), Some(passphrase)) => {
                let Kdf::Argon2id = root.kdf;
                let cost = PassphraseCost {
                    memory_kib: root.memory_kib,
                    passes: root.passes,
                    lanes: root.lanes,
                };
                let salt = decode("salt", &root.salt)?
                    .try_into()
                    .map_err(|_| KeyError::Malformed("the salt has a wrong length".to_owned()))?;
                passphrase::open_root(passphrase, cost, &salt, &decode("sealed", &root.sealed)?)
            }
        }
    }

    /// Whether a provider wraps it.
    pub(crate) fn is_wrapped(&self) -> bool {
        matches!(self, Root::Provider(_))
    }

    /// How it is kept.
    pub(crate) fn keeper(&self) -> Result<RootKeeper, KeyError> {
        Ok(match self {
            Root::Clear(_) => RootKeeper::Mode,
            Root::Passphrase(_) => RootKeeper::Passphrase,
            Root::Provider(root) => RootKeeper::Provider(root.checked_name()?),
        })
    }

    /// Bytes of its text, at most.
    pub(crate) fn room(&self) -> usize {
        match self {
            Root::Provider(root) => root.wrapped.len(),
            Root::Clear(_) | Root::Passphrase(_) => 0,
        }
    }

    fn unwrap_by(&self, provider: &dyn KeyProvider) -> Result<RootKey, KeyError> {
        let name = provider.name();
        let Root::Provider(root) = self else {
            return Err(KeyError::NotUnderProvider {
                name: name.to_owned(),
                found: self.keeper()?,
            });
        };
        let found = root.checked_name()?;
        if found != name {
            return Err(KeyError::OtherProvider {
                name: name.to_owned(),
                found,
            });
        }
        let wrapped = decode("wrapped", &root.wrapped)?;
        if wrapped.is_empty() || wrapped.len() > MOST_WRAPPED {
            let fault = "the wrapped root key has a wrong length";
            return Err(KeyError::Malformed(fault.to_owned()));
        }
        let key = provider.unwrap(&WrappedKey(wrapped), KeyContext::ROOT)?;
        Ok(Zeroizing::new(*dangerous_bytes::bytes_of_data_key(&key)))
    }
}

impl WrappedRoot {
    /// The name is shown in errors: whoever wrote the file chooses no more of them than a word.
    fn checked_name(&self) -> Result<String, KeyError> {
        match is_name(&self.name) {
            true => Ok(self.name.clone()),
            false => Err(KeyError::Malformed("no provider has such a name".into())),
        }
    }
}

fn is_name(text: &str) -> bool {
    let is_of_names = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(is_of_names)
}

fn wrap(root_key: &RootKey, provider: &dyn KeyProvider) -> Result<Root, KeyError> {
    let fault = |why: &str| KeyError::Provider {
        name: provider.name().to_owned(),
        why: why.to_owned(),
        may_pass: false,
    };
    let key = dangerous_bytes::data_key_from_bytes(**root_key);
    let WrappedKey(wrapped) = provider.wrap(&key, KeyContext::ROOT)?;
    if wrapped.is_empty() || wrapped.len() > MOST_WRAPPED {
        return Err(fault("the wrapped key that it gave has a wrong length"));
    }
    // A provider that is being set up gives back what it got more often than one would think.
    let text = Zeroizing::new(STANDARD.encode(&root_key[..]));
    let unpadded = text.trim_end_matches('=');
    if holds(&wrapped, &root_key[..]) || holds(&wrapped, unpadded.as_bytes()) {
        return Err(fault(
            "what it gave as the wrapped key holds the key in the clear",
        ));
    }
    Ok(Root::Provider(WrappedRoot {
        name: provider.name().to_owned(),
        wrapped: STANDARD.encode(wrapped),
    }))
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// A binary field.
pub(crate) fn decode(field: &str, text: &str) -> Result<Vec<u8>, KeyError> {
    STANDARD
        .decode(text)
        .map_err(|_| KeyError::Malformed(format!("field {field} is not base64")))
}
