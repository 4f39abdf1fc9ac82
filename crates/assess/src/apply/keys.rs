//! MariaDB's key file: encrypted as `openssl enc -aes-256-cbc -md sha1` does it, which is what the
//! plugin file_key_management reads. What opens it is a file of its own.

use std::{
    fs,
    path::{Path, PathBuf},
};

use aws_lc_rs::{
    cipher::{
        AES_256, DecryptionContext, EncryptionContext, PaddedBlockDecryptingKey,
        PaddedBlockEncryptingKey, UnboundCipherKey,
    },
    digest::{Context, SHA1_FOR_LEGACY_USE_ONLY},
    iv::FixedLength,
};

use super::files::{self, Owner};
use crate::AssessError;

/// How such a file begins, before its salt of eight bytes.
const MAGIC: &[u8; 8] = b"Salted__";

/// Where the two files are.
pub(super) struct KeyFiles {
    /// The keys, encrypted.
    pub keys: PathBuf,
    /// What opens them.
    pub opens: PathBuf,
}

impl KeyFiles {
    /// In a folder.
    pub(super) fn of(folder: &Path) -> Self {
        Self {
            keys: folder.join("onionskin-keys.enc"),
            opens: folder.join("onionskin-keys.secret"),
        }
    }

    /// Options that lead a server to them.
    pub(super) fn options(&self) -> Vec<String> {
        vec![
            "plugin_load_add = file_key_management".into(),
            format!("file_key_management_filename = {}", self.keys.display()),
            format!(
                "file_key_management_filekey = FILE:{}",
                self.opens.display()
            ),
            "file_key_management_encryption_algorithm = AES_CTR".into(),
        ]
    }

    /// Whether both are there, and the one opens the other. A half is an error, but for a secret
    /// that a run which was killed has left: nothing is encrypted under it yet.
    pub(super) fn are_there(&self) -> Result<bool, AssessError> {
        match (self.keys.exists(), self.opens.exists()) {
            (false, _) => Ok(false),
            (true, false) => Err(AssessError::State(format!(
                "{} is there, and {}, which opens it, is not: put it back",
                self.keys.display(),
                self.opens.display()
            ))),
            (true, true) => {
                let read = |path: &Path| fs::read(path).map_err(AssessError::file(path));
                let (keys, secret) = (read(&self.keys)?, read(&self.opens)?);
                let opened = open(&keys, secret.trim_ascii());
                match opened.is_some_and(|text| has_key_1(&text)) {
                    true => Ok(true),
                    false => Err(AssessError::State(format!(
                        "{} does not open {}, or there is no key 1 in it: they are left as they are",
                        self.opens.display(),
                        self.keys.display()
                    ))),
                }
            }
        }
    }

    /// Makes what is missing. A file that is there is taken.
    pub(super) fn make(&self, owner: Owner) -> Result<(), AssessError> {
        if self.are_there()? {
            return Ok(());
        }
        if !self.opens.exists() {
            files::create(
                &self.opens,
                hex(&random::<32>()).as_bytes(),
                0o600,
                Some(owner),
            )?;
        }
        let secret = fs::read(&self.opens).map_err(AssessError::file(&self.opens))?;
        let text = format!("1;{}\n", hex(&random::<32>()));
        let sealed = seal(text.as_bytes(), secret.trim_ascii())
            .ok_or_else(|| AssessError::State("the key file could not be encrypted".into()))?;
        files::create(&self.keys, &sealed, 0o600, Some(owner))?;
        match self.are_there()? {
            true => Ok(()),
            false => Err(AssessError::State(format!(
                "{} is gone again",
                self.keys.display()
            ))),
        }
    }
}

fn random<const N: usize>() -> [u8; N] {
    rand::random()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn has_key_1(text: &[u8]) -> bool {
    text.split(|b| *b == b'\n').any(|line| {
        let key = line.strip_prefix(b"1;").map(<[u8]>::trim_ascii);
        key.is_some_and(|key| {
            matches!(key.len(), 32 | 48 | 64) && key.iter().all(u8::is_ascii_hexdigit)
        })
    })
}

/// OpenSSL's EVP_BytesToKey with SHA-1 and one round: a key of 32 bytes and 16 more.
fn derived(secret: &[u8], salt: &[u8]) -> ([u8; 32], [u8; 16]) {
    let mut bytes: Vec<u8> = Vec::new();
    let mut last: Vec<u8> = Vec::new();
    while bytes.len() < 48 {
        let mut digest = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        digest.update(&last);
        digest.update(secret);
        digest.update(salt);
        last = digest.finish().as_ref().to_vec();
        bytes.extend(&last);
    }
    let (mut key, mut vector) = ([0; 32], [0; 16]);
    key.copy_from_slice(&bytes[..32]);
    vector.copy_from_slice(&bytes[32..48]);
    (key, vector)
}

fn seal(text: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
    let salt = random::<8>();
    let (key, vector) = derived(secret, &salt);
    let key = UnboundCipherKey::new(&AES_256, &key).ok()?;
    let key = PaddedBlockEncryptingKey::cbc_pkcs7(key).ok()?;
    let mut sealed = text.to_vec();
    let context = EncryptionContext::Iv128(FixedLength::from(vector));
    key.less_safe_encrypt(&mut sealed, context).ok()?;
    Some([&MAGIC[..], &salt, &sealed].concat())
}

fn open(bytes: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
    let (salt, sealed) = bytes.strip_prefix(MAGIC)?.split_at_checked(8)?;
    let (key, vector) = derived(secret, salt);
    let key = UnboundCipherKey::new(&AES_256, &key).ok()?;
    let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).ok()?;
    let mut text = sealed.to_vec();
    let context = DecryptionContext::Iv128(FixedLength::from(vector));
    Some(key.decrypt(&mut text, context).ok()?.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn me(folder: &Path) -> Owner {
        Owner::of(folder).expect("a folder")
    }

    #[test]
    fn keys_are_made_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = KeyFiles::of(folder.path());
        files.make(me(folder.path())).expect("made");
        let first = fs::read(&files.keys).expect("there");
        files.make(me(folder.path())).expect("taken");
        assert_eq!(fs::read(&files.keys).expect("there"), first);
        // Without what opens it, or with another secret, nothing is made anew.
        let secret = fs::read(&files.opens).expect("there");
        fs::write(&files.opens, "another").expect("written");
        assert!(files.make(me(folder.path())).is_err());
        fs::remove_file(&files.opens).expect("removed");
        assert!(files.make(me(folder.path())).is_err());
        assert_eq!(fs::read(&files.keys).expect("there"), first);
        // What a run that was killed has left is taken.
        fs::remove_file(&files.keys).expect("removed");
        fs::write(&files.opens, &secret).expect("written");
        files.make(me(folder.path())).expect("made");
        assert_eq!(fs::read(&files.opens).expect("there"), secret);
    }

    /// What `openssl enc -aes-256-cbc -md sha1 -pass pass:pass` has made of the same text.
    const FROM_OPENSSL: &str = "53616c7465645f5fa41baf3e9ffc2ceb0769d99b4a5d596a35de3ebc2102cca1\
                                7f21aa206057ad4377da183b030926f36eda1f84b7c8e8fd68beba5877ed120e\
                                3a7c8e9a4dec56a6cfb90be4829f90ae5fc6ed79dd7c6535541b545660f274b5";

    #[test]
    fn openssl_s_files_are_opened() {
        let text = format!("1;{}\n", "5a".repeat(32));
        let foreign: Vec<u8> = (0..FROM_OPENSSL.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&FROM_OPENSSL[at..at + 2], 16).expect("hex"))
            .collect();
        assert_eq!(open(&foreign, b"pass").expect("opened"), text.as_bytes());
        let sealed = seal(text.as_bytes(), b"pass").expect("sealed");
        assert_eq!(open(&sealed, b"pass").expect("opened"), text.as_bytes());
        assert!(open(&sealed, b"word").is_none_or(|t| !has_key_1(&t)));
        assert!(open(b"Salted__", b"pass").is_none() && open(b"", b"pass").is_none());
    }
}
