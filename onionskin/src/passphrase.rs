//! Where a passphrase comes from: the environment, a file, or a credential of systemd's.
//!
//! | place | |
//! |---|---|
//! | `ONIONSKIN_PASSPHRASE` | the passphrase itself; who may read the process's environment reads it |
//! | `ONIONSKIN_PASSPHRASE_FILE` | a file that has it, for its owner only |
//! | `$CREDENTIALS_DIRECTORY/onionskin-passphrase` | systemd's `LoadCredential=` or `LoadCredentialEncrypted=` |
//!
//! The first two exclude each other; either goes before a credential. One line break at a file's
//! end does not count. What logs in to a provider of the root key comes from such places, too:
//! `ONIONSKIN_VAULT_TOKEN`, `ONIONSKIN_VAULT_SECRET_ID` and `ONIONSKIN_PKCS11_PIN`, with the
//! credentials `onionskin-vault-token`, `onionskin-vault-secret-id` and `onionskin-pkcs11-pin`.

use std::{
    mem,
    ops::DerefMut,
    path::{Path, PathBuf},
    sync::Arc,
};

use onionskin_keys::{read_private_file, read_secret_file};

use onionskin_providers::Secret;
use zeroize::Zeroizing;

use crate::error::CommandError;

/// The variable that holds a passphrase.
pub const PASSPHRASE: &str = "ONIONSKIN_PASSPHRASE";
/// The variable that holds a token of Vault's.
pub const VAULT_TOKEN: &str = "ONIONSKIN_VAULT_TOKEN";
/// The variable that holds the secret id of a role of Vault's.
pub const VAULT_SECRET_ID: &str = "ONIONSKIN_VAULT_SECRET_ID";
/// The variable that holds the PIN of a token.
pub const PKCS11_PIN: &str = "ONIONSKIN_PKCS11_PIN";
/// Longest file of a passphrase, in bytes.
const LIMIT: u64 = 4096;

/// The passphrase of the key file, if there is one.
pub fn passphrase() -> Result<Option<String>, CommandError> {
    from_anywhere(PASSPHRASE)
}

/// What logs in to a provider, looked for when it is needed.
pub fn secret(name: &'static str) -> Secret {
    Arc::new(move || match from_anywhere(name) {
        Ok(Some(text)) => Ok(Zeroizing::new(text)),
        Ok(None) => Err(format!(
            "it needs a login: set {name}_FILE to the file that has it, or {name}, or give the credential {}",
            credential(name)
        )),
        Err(error) => Err(error.to_string()),
    })
}

/// The credential of a variable: `onionskin-passphrase` of `ONIONSKIN_PASSPHRASE`.
fn credential(name: &str) -> String {
    name.to_lowercase().replace('_', "-")
}

fn from_anywhere(name: &str) -> Result<Option<String>, CommandError> {
    if let Some(given) = given(name)? {
        return Ok(Some(given));
    }
    let Some(folder) = std::env::var_os("CREDENTIALS_DIRECTORY") else {
        return Ok(None);
    };
    let path = Path::new(&folder).join(credential(name));
    // systemd sees to the folder, and gives the file a mode of its own choice.
    match read_secret_file(&path, LIMIT) {
        Ok(text) => one_line(&path, text).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(CommandError::File { path, source }),
    }
}

/// What the variable `name` holds, or the file that `name` with `_FILE` behind it names.
pub fn given(name: &str) -> Result<Option<String>, CommandError> {
    let named = format!("{name}_FILE");
    let text = std::env::var(name).ok().filter(|text| !text.is_empty());
    let path = std::env::var_os(&named).filter(|path| !path.is_empty());
    match (text, path.map(PathBuf::from)) {
        (Some(_), Some(_)) => Err(CommandError::Arguments(format!(
            "{name} and {named} are both set: leave one of them out"
        ))),
        (None, Some(path)) => {
            let text = read_private_file(&path, LIMIT)
                .map_err(|error| CommandError::Secret(error.to_string()))?;
            one_line(&path, text).map(Some)
        }
        (text, None) => Ok(text),
    }
}

/// The text without the line break at its end, in the buffer that it was read into.
fn one_line(
    path: &Path,
    mut text: impl DerefMut<Target = Vec<u8>>,
) -> Result<String, CommandError> {
    let wrong = |what: &str| CommandError::Secret(format!("{}: {what}", path.display()));
    if str::from_utf8(&text).is_err() {
        return Err(wrong("not text in UTF-8"));
    }
    let mut text = String::from_utf8(mem::take(&mut *text)).map_err(|_| wrong("not text"))?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    match text.is_empty() {
        true => Err(wrong("the secret in it is empty")),
        false => Ok(text),
    }
}
