//! `[functions]`: cryptographic functions that the proxy computes in the server's place.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use onionskin_keys::read_private_file;
use onionskin_proxy::FunctionsConfig;
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::error::CommandError;

/// Bytes of a file with a key.
const MAX_KEY_FILE: u64 = 1 << 16;

/// The section.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionsSection {
    /// Whether the proxy computes them.
    evaluate: bool,
    /// Variables whose values stay with the proxy.
    #[serde(default)]
    secrets: Vec<String>,
    /// Files with keys, by the names that `KEY('name')` has for them.
    #[serde(default)]
    keys: BTreeMap<String, PathBuf>,
}

impl FunctionsSection {
    /// The files of keys, by their settings.
    pub fn files(&self) -> impl Iterator<Item = (String, &PathBuf)> {
        let keys = self.keys.iter();
        keys.map(|(name, path)| (format!("functions.keys.{name}"), path))
    }

    /// What the proxy is told; `None` if it does not compute them. Relative paths start from
    /// `folder`.
    pub fn load(&self, folder: &Path) -> Result<Option<FunctionsConfig>, CommandError> {
        if !self.evaluate {
            return Ok(None);
        }
        let mut config = FunctionsConfig::default();
        for name in &self.secrets {
            let name = name.strip_prefix('@').unwrap_or(name).to_lowercase();
            // servers fold letters beyond ASCII in ways of their own
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
            if name.is_empty() || !name.chars().all(is_plain) {
                let text =
                    format!("[functions] secrets: {name:?} is no variable's name in plain ASCII");
                return Err(CommandError::Secret(text));
            }
            config.secrets.push(name);
        }
        for (name, path) in &self.keys {
            let path = folder.join(path);
            let content = read_private_file(&path, MAX_KEY_FILE)?;
            let key = key_of(&content).ok_or_else(|| {
                CommandError::Secret(format!(
                    "{}: a key begins with \"text:\", or with \"hex:\" and has an even number of digits behind it",
                    path.display()
                ))
            })?;
            config.keys.insert(name.clone(), key);
        }
        Ok(Some(config))
    }
}

/// A key from its file: `text:` or `hex:` stands before it, and a line break may stand behind it.
fn key_of(content: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let line = content.strip_suffix(b"\n").unwrap_or(content);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if let Some(text) = line.strip_prefix(b"text:") {
        return Some(Zeroizing::new(text.to_vec()));
    }
    let digits = line.strip_prefix(b"hex:")?;
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
        _ => None,
    });
    let key: Option<Vec<u8>> = pairs.collect();
    key.map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_say_their_form() {
        let key = |content: &[u8]| key_of(content).map(|key| key.to_vec());
        assert_eq!(key(b"text:a b\n"), Some(b"a b".to_vec()));
        assert_eq!(key(b"text:\r\n"), Some(Vec::new()));
        assert_eq!(key(b"text:a\n\n"), Some(b"a\n".to_vec()));
        assert_eq!(key(b"hex:00fF"), Some(vec![0, 255]));
        for wrong in ["", "secret", "hex:0", "hex:0g", "hex: 00", "HEX:00"] {
            assert_eq!(key(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
