//! Files of recipients and of identities: a key on each line; empty lines and those that begin with
//! `#` do not count. `age-keygen` writes such files.
//!
//! A file of identities is a secret, and is held to what a key file is held to. A file of
//! recipients is none, but whoever can write to it adds himself to those who read every backup to
//! come: so nobody but its owner may.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use onionskin_crypt::{Identity, Recipient, Suite};
use zeroize::Zeroizing;

use crate::{
    KeyError,
    private_file::{read_owned_file, read_private_file},
    recipient_text::{
        KeyTextError, identity_text, parse_identity, parse_recipient, recipient_text,
    },
};

/// Longest file in bytes.
const LIMIT: u64 = 1 << 20;
/// Most recipients of one stream.
pub const MAX_RECIPIENTS: usize = 256;

/// Why there are no recipients, or no identities.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecipientError {
    /// The file cannot be read, or is somebody else's.
    #[error(transparent)]
    File(#[from] KeyError),
    /// A line is no key.
    #[error("{name}, line {line}: {source}")]
    Line {
        /// The file.
        name: String,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        source: KeyTextError,
    },
    /// An argument is no recipient.
    #[error("recipient {number} of the arguments: {source}")]
    Argument {
        /// Counted from 1.
        number: usize,
        /// What is wrong with it.
        source: KeyTextError,
    },
    /// A file that `age` has encrypted, or another one that is no text.
    #[error(
        "{0} is not a file of identities in the clear: if it is under a passphrase of age's, decrypt it into the program, \
         `age -d {0} | onionskin … --identity -`"
    )]
    NotText(String),
    /// Nothing but comments.
    #[error("{0} holds no key")]
    Empty(String),
    /// None at all.
    #[error("no recipient was named")]
    None,
    /// Of two suites.
    #[error(
        "recipients of suite aes (age1…) and of suite sm (sm2pub1…) cannot be mixed: a stream is as strong as each way \
         into it, and suite sm promises SM2, SM3 and SM4 alone; make two streams"
    )]
    Mixed,
    /// Of another suite than is wanted.
    #[error(
        "the recipients are of suite {recipients}, and suite {wanted} is wanted: name others, or say --suite {recipients}"
    )]
    OtherSuite {
        /// Theirs.
        recipients: Suite,
        /// That of an argument, or of the configuration.
        wanted: Suite,
    },
    /// More than a header has room for.
    #[error("a stream has at most {MAX_RECIPIENTS} recipients")]
    TooMany,
    /// The file that was to be written is there.
    #[error("{} exists and is not overwritten", .0.display())]
    Exists(PathBuf),
}

/// Reads a file of recipients, which nobody but its owner may write: this process's user, or root.
pub fn read_recipients(path: &Path) -> Result<Vec<Recipient>, RecipientError> {
    let text = read_owned_file(path, LIMIT)?;
    keys_of(&path.display().to_string(), &text, parse_recipient)
}

/// Reads a file of identities; see [`read_private_file`](crate::read_private_file).
pub fn read_identities(path: &Path) -> Result<Vec<Identity>, RecipientError> {
    let text = read_private_file(path, LIMIT)?;
    parse_identities(&path.display().to_string(), &text)
}

/// Reads the content of a file of identities of that name.
pub fn parse_identities(name: &str, text: &[u8]) -> Result<Vec<Identity>, RecipientError> {
    keys_of(name, text, parse_identity)
}

fn keys_of<K>(
    name: &str,
    text: &[u8],
    parse: impl Fn(&str) -> Result<K, KeyTextError>,
) -> Result<Vec<K>, RecipientError> {
    let not_text = || RecipientError::NotText(name.to_owned());
    let text = str::from_utf8(text).map_err(|_| not_text())?;
    if text.starts_with("age-encryption.org/") || text.starts_with("-----BEGIN AGE ENCRYPTED FILE")
    {
        return Err(not_text());
    }
    let mut keys = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        keys.push(parse(text).map_err(|source| RecipientError::Line {
            name: name.to_owned(),
            line,
            source,
        })?);
    }
    match keys.is_empty() {
        true => Err(RecipientError::Empty(name.to_owned())),
        false => Ok(keys),
    }
}

/// The suite of a stream to these recipients. `wanted` is what was asked for, if it was.
pub fn suite_of(recipients: &[Recipient], wanted: Option<Suite>) -> Result<Suite, RecipientError> {
    let suite = recipients.first().ok_or(RecipientError::None)?.suite();
    if recipients.iter().any(|other| other.suite() != suite) {
        return Err(RecipientError::Mixed);
    }
    if recipients.len() > MAX_RECIPIENTS {
        return Err(RecipientError::TooMany);
    }
    match wanted {
        Some(wanted) if wanted != suite => Err(RecipientError::OtherSuite {
            recipients: suite,
            wanted,
        }),
        _ => Ok(suite),
    }
}

/// The content of a new identity's file. `created` is the time, for people.
pub fn identity_file(identity: &Identity, created: &str) -> Zeroizing<String> {
    let recipient = recipient_text(&identity.recipient());
    let secret = identity_text(identity);
    // Sized beforehand, so that growing leaves no copies.
    let mut text = Zeroizing::new(String::with_capacity(
        64 + created.len() + recipient.len() + secret.len(),
    ));
    for part in ["# created: ", created, "\n# recipient: ", &recipient, "\n"] {
        text.push_str(part);
    }
    text.push_str(&secret);
    text.push('\n');
    text
}

/// Writes a new file for its owner only (mode 0600), which is on disk when this returns. An
/// existing file is never touched.
pub fn write_private_file(path: &Path, text: &str) -> Result<(), RecipientError> {
    let failed = |source| KeyError::Io {
        path: path.to_owned(),
        source,
    };
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    let mut file = file.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => RecipientError::Exists(path.to_owned()),
        _ => failed(source).into(),
    })?;
    let written = file.write_all(text.as_bytes()).and_then(|()| {
        file.sync_all()?;
        fs::File::open(match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        })?
        .sync_all()
    });
    written.map_err(|source| {
        // Ours, and of no use if it is cut.
        let _ = fs::remove_file(path);
        failed(source).into()
    })
}
