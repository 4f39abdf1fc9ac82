//! Text that is wiped.

use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

/// Text of an answer that may be a key. Wiped when dropped.
#[derive(Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct SecretText(String);

impl SecretText {
    /// Takes a text.
    pub fn of(text: String) -> Self {
        SecretText(text)
    }

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

/// Wipes the texts of a question.
pub(crate) fn wipe(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => text.zeroize(),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(wipe),
        _ => {}
    }
}
