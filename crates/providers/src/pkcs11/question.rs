//! What is said between the program and its child that talks to a token: a JSON object each way, by
//! the child's standard input and output. Binary values are base64.

use serde::{Deserialize, Serialize};

use crate::secret_text::SecretText;

/// What the child is to do. Names are those of [`super::Pkcs11Settings`].
#[derive(Serialize)]
pub(super) struct Question<'a> {
    pub module: &'a str,
    pub token: Option<&'a str>,
    pub serial: Option<&'a str>,
    pub slot: Option<u64>,
    pub key: Option<&'a str>,
    pub key_id: Option<&'a str>,
    pub pin: &'a str,
    pub operation: Operation,
    pub context: &'a str,
    /// The key, or what it was wrapped to.
    pub value: &'a str,
}

/// The same, as the child reads it.
#[derive(Deserialize)]
pub(super) struct Asked {
    pub module: String,
    pub token: Option<String>,
    pub serial: Option<String>,
    pub slot: Option<u64>,
    pub key: Option<String>,
    pub key_id: Option<String>,
    pub pin: SecretText,
    pub operation: Operation,
    pub context: String,
    pub value: SecretText,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Operation {
    Wrap,
    Unwrap,
}

/// What comes of it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Answer {
    /// What the key was wrapped to, or the key.
    Done(SecretText),
    Fault {
        why: String,
        may_pass: bool,
        /// The token has counted a wrong PIN.
        pin_refused: bool,
    },
}

/// The bytes of a key's id.
pub(super) fn id(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| match pair {
        [high, low] => {
            let digit = |letter: u8| char::from(letter).to_digit(16);
            u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
        }
        _ => None,
    };
    let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
    bytes.filter(|bytes| !bytes.is_empty())
}
