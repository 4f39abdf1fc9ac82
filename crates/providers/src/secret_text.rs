//! Text that is wiped.

use serde::Deserialize;
use zeroize::Zeroize;

/// Text of an answer that may be a key. Wiped when dropped.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct SecretText(String);

impl SecretText {
    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl Drop for SecretText {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}
