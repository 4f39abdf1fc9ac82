//! Computations of the login methods.
//!
//! A relayed login needs none of them: the client answers the server's own scramble, and the proxy
//! passes the answer on. They are needed where the two legs differ (the client's leg has no TLS,
//! the server's has: the server wants the password itself, the client will only encrypt it under an
//! RSA key, so the proxy shows a key of its own), and where the proxy logs in by itself.

use std::sync::Arc;

use aws_lc_rs::digest;
use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rsa::{
    KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey,
    PrivateDecryptingKey, PublicEncryptingKey,
};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use zeroize::Zeroizing;

use crate::error::{WireError, WireResult};
use crate::stream::Transport;

/// Name of the method of MySQL before 8.0 and of MariaDB.
pub const MYSQL_NATIVE_PASSWORD: &str = "mysql_native_password";
/// Name of the method of MySQL since 8.0.
pub const CACHING_SHA2_PASSWORD: &str = "caching_sha2_password";
/// Name of the method that sends the password itself; only for secure connections.
pub const MYSQL_CLEAR_PASSWORD: &str = "mysql_clear_password";

fn sha1(parts: &[&[u8]]) -> digest::Digest {
    hash(&digest::SHA1_FOR_LEGACY_USE_ONLY, parts)
}

fn sha256(parts: &[&[u8]]) -> digest::Digest {
    hash(&digest::SHA256, parts)
}

fn hash(algorithm: &'static digest::Algorithm, parts: &[&[u8]]) -> digest::Digest {
    let mut context = digest::Context::new(algorithm);
    for part in parts {
        context.update(part);
    }
    context.finish()
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// Answer of `mysql_native_password`: `SHA1(password) ⊕ SHA1(scramble ‖ SHA1(SHA1(password)))`.
/// Empty for an empty password.
pub fn native_password(password: &[u8], scramble: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = sha1(&[password]);
    let twice = sha1(&[once.as_ref()]);
    let mask = sha1(&[scramble, twice.as_ref()]);
    xor(once.as_ref(), mask.as_ref())
}

/// First answer of `caching_sha2_password`:
/// `SHA256(password) ⊕ SHA256(SHA256(SHA256(password)) ‖ scramble)`. Empty for an empty password.
pub fn caching_sha2_password(password: &[u8], scramble: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = sha256(&[password]);
    let twice = sha256(&[once.as_ref()]);
    let mask = sha256(&[twice.as_ref(), scramble]);
    xor(once.as_ref(), mask.as_ref())
}

/// The password as full authentication sends it over a secure connection: with a closing zero byte.
pub fn cleartext_password(password: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(password.len() + 1);
    out.extend_from_slice(password);
    out.push(0);
    out
}

/// Masks bytes with the scramble, repeated as often as needed. Its own inverse.
fn mask_with_scramble(bytes: &mut [u8], scramble: &[u8]) {
    for (byte, mask) in bytes.iter_mut().zip(scramble.iter().cycle()) {
        *byte ^= mask;
    }
}

/// Encrypts a password for a server's RSA key, as full authentication without a secure connection
/// does: the password and a zero byte, masked with the scramble, under OAEP with SHA-1.
/// `public_key` is the PEM text the server sent.
///
/// Whoever made that key reads the password. Ask [`LinkTrust`] first.
pub fn encrypt_password(
    password: &[u8],
    scramble: &[u8],
    public_key: &[u8],
) -> WireResult<Vec<u8>> {
    ServerKey::from_pem(public_key)?.encrypt_password(password, scramble)
}

/// The RSA key of a server, which it decrypts passwords with.
pub struct ServerKey {
    key: OaepPublicEncryptingKey,
    der: Vec<u8>,
}

impl ServerKey {
    /// Reads it as servers send it, and as they write it to `public_key.pem`.
    pub fn from_pem(text: &[u8]) -> WireResult<Self> {
        const BAD_KEY: WireError = WireError::Malformed("the server's RSA key");
        let der = SubjectPublicKeyInfoDer::from_pem_slice(text).map_err(|_| BAD_KEY)?;
        let key = PublicEncryptingKey::from_der(der.as_ref()).map_err(|_| BAD_KEY)?;
        Ok(Self {
            key: OaepPublicEncryptingKey::new(key).map_err(|_| BAD_KEY)?,
            der: der.as_ref().to_vec(),
        })
    }

    /// Whether `text` is this key in PEM.
    pub fn is(&self, text: &[u8]) -> bool {
        SubjectPublicKeyInfoDer::from_pem_slice(text).is_ok_and(|der| der.as_ref() == self.der)
    }

    /// See [`encrypt_password`].
    pub fn encrypt_password(&self, password: &[u8], scramble: &[u8]) -> WireResult<Vec<u8>> {
        let mut clear = Zeroizing::new(cleartext_password(password));
        mask_with_scramble(&mut clear, scramble);
        let mut out = vec![0; self.key.ciphertext_size()];
        let length = self
            .key
            .encrypt(&OAEP_SHA1_MGF1SHA1, &clear, &mut out, None)
            .map_err(|_| WireError::Malformed("password too long for the RSA key"))?
            .len();
        out.truncate(length);
        Ok(out)
    }
}

impl std::fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerKey(..)")
    }
}

/// Why the server at the other end of a link is the right one, so that it may be given a password.
///
/// A Unix socket is, because nobody is between. TLS is if the certificate was verified: encryption
/// alone may end at anybody. A plain connection is not, but a password can go over it under an RSA
/// key that is known beforehand.
#[derive(Clone, Debug, Default)]
pub struct LinkTrust {
    /// Under TLS the server's certificate is verified.
    pub tls_verifies: bool,
    /// The server's RSA key, from the server's administrator and not from the link.
    pub rsa_key: Option<Arc<ServerKey>>,
}

impl LinkTrust {
    /// Whether the password itself, or a secret that is as good, may be sent over this transport.
    pub fn covers(&self, transport: &Transport) -> bool {
        match transport {
            Transport::Unix(_) => true,
            Transport::TlsClient(_) => self.tls_verifies,
            Transport::Tcp(_) | Transport::TlsServer(_) | Transport::Closed => false,
        }
    }
}

/// An RSA key of the proxy's own, to which a client without TLS encrypts its password.
///
/// It gives what a server's own key gives: protection from those who only listen. Making one takes
/// some tenths of a second; make one for the whole process, when it is first needed.
pub struct PasswordKey {
    key: OaepPrivateDecryptingKey,
    public_pem: String,
}

impl PasswordKey {
    /// Makes a key of 2048 bits.
    pub fn generate() -> WireResult<Self> {
        const FAILED: WireError = WireError::Malformed("no RSA key could be made");
        let key = PrivateDecryptingKey::generate(KeySize::Rsa2048).map_err(|_| FAILED)?;
        let der: PublicKeyX509Der<'_> = key.public_key().as_der().map_err(|_| FAILED)?;
        let public_pem = pem("PUBLIC KEY", der.as_ref());
        let key = OaepPrivateDecryptingKey::new(key).map_err(|_| FAILED)?;
        Ok(Self { key, public_pem })
    }

    /// The public half, as the client is sent it.
    pub fn public_pem(&self) -> &str {
        &self.public_pem
    }

    /// The password that a client encrypted with [`encrypt_password`], without its zero byte.
    pub fn decrypt_password(&self, encrypted: &[u8], scramble: &[u8]) -> WireResult<Vec<u8>> {
        const REFUSED: WireError = WireError::Malformed("encrypted password");
        let mut out = vec![0; self.key.min_output_size()];
        let length = self
            .key
            .decrypt(&OAEP_SHA1_MGF1SHA1, encrypted, &mut out, None)
            .map_err(|_| REFUSED)?
            .len();
        out.truncate(length);
        mask_with_scramble(&mut out, scramble);
        match out.pop() {
            Some(0) => Ok(out),
            _ => Err(REFUSED),
        }
    }
}

impl std::fmt::Debug for PasswordKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordKey(..)")
    }
}

/// PEM armour around DER, in lines of 64.
fn pem(label: &str, der: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in der.chunks(48) {
        for group in line.chunks(3) {
            let bits = group
                .iter()
                .chain([0, 0].iter())
                .take(3)
                .fold(0usize, |bits, &byte| bits << 8 | usize::from(byte));
            for i in 0..4 {
                text.push(if i <= group.len() {
                    ALPHABET[bits >> (18 - 6 * i) & 63].into()
                } else {
                    '='
                });
            }
        }
        text.push('\n');
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
            .collect()
    }

    /// Twenty printable bytes, as servers send them.
    const SCRAMBLE: &[u8; 20] = b"!\"#$%&'()*+,-./01234";

    /// Computed with another implementation of SHA-1 (Python's hashlib).
    #[test]
    fn native_password_matches_a_known_answer() {
        assert_eq!(
            native_password(b"correct horse", SCRAMBLE),
            hex("5844e9d152ef53699c991004ce68beccaa51440a")
        );
        assert!(native_password(b"", SCRAMBLE).is_empty());
    }

    /// Computed with another implementation of SHA-256 (Python's hashlib).
    #[test]
    fn caching_sha2_password_matches_a_known_answer() {
        assert_eq!(
            caching_sha2_password(b"correct horse", SCRAMBLE),
            hex("743c091ccf60a0480e3171e12beb54c8353dde7638baa0ed6f5c7776980352a2")
        );
        assert!(caching_sha2_password(b"", SCRAMBLE).is_empty());
    }

    #[test]
    fn pem_pads_like_base64() {
        assert!(pem("X", b"f").contains("\nZg==\n"));
        assert!(pem("X", b"fo").contains("\nZm8=\n"));
        assert!(pem("X", b"foobar").contains("\nZm9vYmFy\n"));
    }

    #[test]
    fn an_encrypted_password_opens_under_its_scramble_only() {
        let key = PasswordKey::generate().unwrap();
        let scramble = b"0123456789abcdefghij";
        let password = b"a password longer than the scramble";
        let encrypted = encrypt_password(password, scramble, key.public_pem().as_bytes()).unwrap();
        assert_eq!(encrypted.len(), 256);
        assert_eq!(
            key.decrypt_password(&encrypted, scramble).unwrap(),
            password
        );
        assert!(
            key.decrypt_password(&encrypted, b"another scramble....")
                .is_err()
        );
        let mut damaged = encrypted.clone();
        damaged[7] ^= 1;
        assert!(key.decrypt_password(&damaged, scramble).is_err());
        assert!(encrypt_password(password, scramble, b"not a key").is_err());
        assert!(encrypt_password(&[1; 300], scramble, key.public_pem().as_bytes()).is_err());
    }

    /// Bytes that OpenSSL encrypted are covered by the servers' own logins; here the mask is
    /// pinned.
    #[test]
    fn the_mask_covers_the_closing_zero_byte() {
        let mut clear = cleartext_password(b"abc");
        mask_with_scramble(&mut clear, &[1, 2]);
        assert_eq!(clear, [b'a' ^ 1, b'b' ^ 2, b'c' ^ 1, 2]);
    }
}
