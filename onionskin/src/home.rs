//! A folder with `onionskin.toml` and `keys.json`.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use onionskin_keys::{KeyError, KeySet};

use crate::{config_template::template, error::CommandError, passphrase::passphrase};

/// Name of the configuration in its folder.
pub const CONFIG: &str = "onionskin.toml";
/// Name of the keys beside it.
pub const KEYS: &str = "keys.json";

/// Makes both files; overwrites neither. The folder is made for its owner only if it is not there.
pub fn create(folder: &Path, backend: &str, has_engine: bool) -> Result<(), CommandError> {
    create_folder(folder)?;
    let (config, keys) = (folder.join(CONFIG), folder.join(KEYS));
    for path in [&config, &keys] {
        if fs::symlink_metadata(path).is_ok() {
            return Err(CommandError::Exists(path.clone()));
        }
    }
    write_config(&config, backend, has_engine)?;
    if let Err(error) = create_keys(&keys) {
        // Ours, and of no use without the keys.
        let _ = fs::remove_file(&config);
        return Err(error);
    }
    Ok(())
}

/// The folder, for its owner only, unless it is there.
pub fn create_folder(folder: &Path) -> Result<(), CommandError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|source| CommandError::File {
            path: folder.to_owned(),
            source,
        })
}

/// Other users may pass through a folder to what is theirs; they cannot list it.
pub fn let_others_pass(folder: &Path) -> Result<(), CommandError> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o711)).map_err(|source| {
        CommandError::File {
            path: folder.to_owned(),
            source,
        }
    })
}

/// A new configuration file.
pub fn write_config(path: &Path, backend: &str, has_engine: bool) -> Result<(), CommandError> {
    let written = File::create_new(path).and_then(|mut file| {
        file.write_all(template(backend, has_engine).as_bytes())?;
        file.sync_all()
    });
    written.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => CommandError::Exists(path.to_owned()),
        _ => CommandError::File {
            path: path.to_owned(),
            source,
        },
    })
}

/// A new key file.
pub fn create_keys(path: &Path) -> Result<(), CommandError> {
    let passphrase = passphrase()?;
    KeySet::create_file(path, passphrase.as_deref(), &mut rand::rng()).map_err(
        |error| match error {
            KeyError::Exists { path } => CommandError::Exists(path),
            other => other.into(),
        },
    )
}

/// The configuration that a command uses when it is not told.
pub fn default_config() -> PathBuf {
    PathBuf::from(CONFIG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_are_made_and_never_overwritten() {
        let outer = tempfile::tempdir().expect("a folder");
        let folder = outer.path().join("a/b");
        create(&folder, "127.0.0.1:1", false).expect("made");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join(KEYS))), (0o700, 0o600));
        KeySet::load("file:keys.json", &folder, None).expect("sound keys");

        let before = fs::read(folder.join(KEYS)).expect("there");
        assert!(matches!(
            create(&folder, "127.0.0.1:1", false),
            Err(CommandError::Exists(_))
        ));
        fs::remove_file(folder.join(CONFIG)).expect("removed");
        assert!(
            matches!(create(&folder, "127.0.0.1:1", false), Err(CommandError::Exists(path)) if path.ends_with(KEYS))
        );
        assert!(!folder.join(CONFIG).exists(), "nothing is left behind");
        assert_eq!(fs::read(folder.join(KEYS)).expect("there"), before);
    }
}
