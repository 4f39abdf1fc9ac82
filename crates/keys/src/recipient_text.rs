//! Recipients and identities as text: Bech32 (BIP 173), as age has it.
//!
//! | suite | recipient | identity |
//! |---|---|---|
//! | `aes` | `age1…`: the 32 bytes of an X25519 public key | `AGE-SECRET-KEY-1…`: 32 bytes |
//! | `sm` | `sm2pub1…`: the 33 bytes of an SM2 point, compressed | `SM2-SECRET-KEY-1…`: a number of 32 bytes, the highest first |
//!
//! Those of suite `aes` are age's own: what `age-keygen` makes can be used here, and the reverse.
//! Each key has one text. Recipients are lower case, identities upper case.

use bech32::{Bech32, Hrp, primitives::decode::CheckedHrpstring};
use onionskin_crypt::{
    Identity, Recipient, Suite, dangerous_bytes,
    recipient::{IDENTITY_LEN, SM2_RECIPIENT_LEN, X25519_RECIPIENT_LEN, sm2, x25519},
};
use zeroize::Zeroizing;

/// Longest text that there is, with room to spare, in bytes.
const TEXT_LEN: usize = 128;

const X25519_RECIPIENT: &str = "age";
const X25519_IDENTITY: &str = "AGE-SECRET-KEY-";
const SM2_RECIPIENT: &str = "sm2pub";
const SM2_IDENTITY: &str = "SM2-SECRET-KEY-";

/// Why a text is no recipient, or no identity. Never shows the text: it may be a secret that stands
/// in the wrong place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyTextError {
    /// Something else.
    #[error("a recipient is expected: age1… (suite aes) or sm2pub1… (suite sm)")]
    NotARecipient,
    /// Something else.
    #[error(
        "an identity is expected: AGE-SECRET-KEY-1… (suite aes) or SM2-SECRET-KEY-1… (suite sm)"
    )]
    NotAnIdentity,
    /// A secret where a public key belongs.
    #[error(
        "this is an identity, which is secret: name its recipient, which `onionskin identity --of FILE` prints"
    )]
    Secret,
    /// A public key where a secret belongs.
    #[error(
        "this is a recipient, which opens nothing: name the file of the identity that belongs to it"
    )]
    Public,
    /// Of a kind that age has and this program has not.
    #[error(
        "this kind of key is not known here (a plugin's, a post-quantum or an SSH key): use an X25519 one, age1…, or an SM2 one, sm2pub1…"
    )]
    OtherKind,
    /// Mistyped or cut.
    #[error("it is mistyped or cut: its checksum or its length is wrong")]
    Mistyped,
    /// The checksum is right, and it is no key.
    #[error("it is no key that can be used: its point is not on the curve, or of low order")]
    Unusable,
}

/// Reads a recipient.
pub fn parse_recipient(text: &str) -> Result<Recipient, KeyTextError> {
    let text = text.trim();
    match kind(text) {
        Some((X25519_RECIPIENT, _)) => {
            let bytes = decode::<X25519_RECIPIENT_LEN>(X25519_RECIPIENT, text)?;
            let key = x25519::PublicKey::from_bytes(*bytes);
            key.map(Recipient::X25519)
                .map_err(|_| KeyTextError::Unusable)
        }
        Some((SM2_RECIPIENT, _)) => {
            let bytes = decode::<SM2_RECIPIENT_LEN>(SM2_RECIPIENT, text)?;
            let key = sm2::PublicKey::from_bytes(&bytes);
            key.map(Recipient::Sm2).map_err(|_| KeyTextError::Unusable)
        }
        Some(_) => Err(KeyTextError::Secret),
        None if is_foreign(text) => Err(KeyTextError::OtherKind),
        None => Err(KeyTextError::NotARecipient),
    }
}

/// Reads an identity.
pub fn parse_identity(text: &str) -> Result<Identity, KeyTextError> {
    let text = text.trim();
    match kind(text) {
        Some((hrp @ (X25519_IDENTITY | SM2_IDENTITY), suite)) => {
            let bytes = decode::<IDENTITY_LEN>(hrp, text)?;
            dangerous_bytes::identity_from_bytes(suite, &bytes).map_err(|_| KeyTextError::Unusable)
        }
        Some(_) => Err(KeyTextError::Public),
        None if is_foreign(text) => Err(KeyTextError::OtherKind),
        None => Err(KeyTextError::NotAnIdentity),
    }
}

/// A recipient's text.
pub fn recipient_text(recipient: &Recipient) -> String {
    let text = match recipient {
        Recipient::X25519(key) => encode(X25519_RECIPIENT, &key.to_bytes()),
        Recipient::Sm2(key) => encode(SM2_RECIPIENT, &key.to_bytes()),
    };
    text.to_string()
}

/// An identity's text. It is the secret itself.
pub fn identity_text(identity: &Identity) -> Zeroizing<String> {
    let hrp = match identity.suite() {
        Suite::Aes => X25519_IDENTITY,
        Suite::Sm => SM2_IDENTITY,
    };
    encode(hrp, &dangerous_bytes::bytes_of_identity(identity)[..])
}

/// What a text begins with, and whose it is.
fn kind(text: &str) -> Option<(&'static str, Suite)> {
    let kinds = [
        (X25519_RECIPIENT, Suite::Aes),
        (SM2_RECIPIENT, Suite::Sm),
        (X25519_IDENTITY, Suite::Aes),
        (SM2_IDENTITY, Suite::Sm),
    ];
    // Data never have a "1", so what has another one behind the first is of another kind.
    let (before, _) = text.rsplit_once('1')?;
    kinds.into_iter().find(|(hrp, _)| before == *hrp)
}

/// Keys that age or its plugins would take.
fn is_foreign(text: &str) -> bool {
    ["age1", "AGE-", "ssh-", "-----BEGIN"]
        .iter()
        .any(|start| text.starts_with(start))
}

fn decode<const N: usize>(hrp: &str, text: &str) -> Result<Zeroizing<[u8; N]>, KeyTextError> {
    let checked = CheckedHrpstring::new::<Bech32>(text).map_err(|_| KeyTextError::Mistyped)?;
    let mut bytes = Zeroizing::new([0; N]);
    let mut given = checked.byte_iter();
    for byte in bytes.iter_mut() {
        *byte = given.next().ok_or(KeyTextError::Mistyped)?;
    }
    // Bits that fill up the last character, and the case of the letters, are in one way right.
    match given.next().is_none() && encode(hrp, &bytes[..]).as_str() == text {
        true => Ok(bytes),
        false => Err(KeyTextError::Mistyped),
    }
}

fn encode(hrp: &str, bytes: &[u8]) -> Zeroizing<String> {
    // Sized beforehand, so that growing leaves no copies.
    let mut text = Zeroizing::new(String::with_capacity(TEXT_LEN));
    let upper = hrp.starts_with(|first: char| first.is_ascii_uppercase());
    let hrp = Hrp::parse(hrp).expect("ours are well formed");
    match upper {
        true => bech32::encode_upper_to_fmt::<Bech32, _>(&mut *text, hrp, bytes),
        false => bech32::encode_lower_to_fmt::<Bech32, _>(&mut *text, hrp, bytes),
    }
    .expect("a key is short");
    text
}

#[cfg(test)]
mod tests;
