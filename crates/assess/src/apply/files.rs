//! Files that must be there whole after a crash, or not at all.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown, fchown},
    path::{Path, PathBuf},
};

use crate::AssessError;

/// Whose file it is, and who may read it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Owner {
    pub uid: u32,
    pub gid: u32,
}

impl Owner {
    /// Of a file or folder.
    pub(super) fn of(path: &Path) -> Result<Self, AssessError> {
        let metadata = fs::metadata(path).map_err(AssessError::file(path))?;
        Ok(Self {
            uid: metadata.uid(),
            gid: metadata.gid(),
        })
    }
}

/// Writes a file that is not there yet. One that is there stays as it is, and is an error.
pub(super) fn create(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    owner: Option<Owner>,
) -> Result<(), AssessError> {
    let new = beside(path);
    written(&new, bytes, mode, owner)?;
    // A link never takes the place of another file, as a rename would.
    let linked = fs::hard_link(&new, path).map_err(AssessError::file(path));
    fs::remove_file(&new).map_err(AssessError::file(&new))?;
    linked?;
    sync_folder(path)
}

/// Writes a file anew, with the permissions that it had.
pub(super) fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), AssessError> {
    let (mode, owner) = match fs::metadata(path) {
        Ok(there) => (there.mode() & 0o777, Some(Owner::of(path)?)),
        Err(_) => (mode, None),
    };
    let new = beside(path);
    written(&new, bytes, mode, owner)?;
    fs::rename(&new, path).map_err(AssessError::file(path))?;
    sync_folder(path)
}

/// A copy of a file beside it, made once.
pub(super) fn keep(path: &Path) -> Result<(), AssessError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".before-onionskin");
    let copy = PathBuf::from(name);
    if copy.exists() {
        return Ok(());
    }
    let bytes = fs::read(path).map_err(AssessError::file(path))?;
    let mode = fs::metadata(path).map_err(AssessError::file(path))?.mode() & 0o777;
    create(&copy, &bytes, mode, Some(Owner::of(path)?))
}

/// A folder for one user.
pub(super) fn folder(path: &Path, owner: Owner) -> Result<(), AssessError> {
    if !path.exists() {
        fs::create_dir(path).map_err(AssessError::file(path))?;
        let mode = fs::Permissions::from_mode(0o700);
        fs::set_permissions(path, mode).map_err(AssessError::file(path))?;
        chown(path, Some(owner.uid), Some(owner.gid)).map_err(AssessError::file(path))?;
        sync_folder(path)?;
    }
    Ok(())
}

/// `.name.onionskin-new`: no folder of options takes such a name for one of its files.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.onionskin-new"))
}

fn written(path: &Path, bytes: &[u8], mode: u32, owner: Option<Owner>) -> Result<(), AssessError> {
    let error = || AssessError::file(path);
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode & 0o600)
        .open(path)
        .map_err(error())?;
    file.write_all(bytes).map_err(error())?;
    if let Some(Owner { uid, gid }) = owner {
        // by the open file: the folder's owner could put a link in the place of its name
        fchown(&file, Some(uid), Some(gid)).map_err(error())?;
    }
    file.set_permissions(fs::Permissions::from_mode(mode))
        .map_err(error())?;
    file.sync_all().map_err(error())
}

fn sync_folder(path: &Path) -> Result<(), AssessError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(AssessError::file(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_there_is_never_written_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys");
        create(&path, b"first", 0o600, None).expect("made");
        assert!(create(&path, b"second", 0o600, None).is_err());
        assert_eq!(fs::read(&path).expect("there"), b"first");
        let metadata = fs::metadata(&path).expect("there");
        assert_eq!(metadata.mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn what_was_there_first_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("my.cnf");
        fs::write(&path, "old").expect("written");
        keep(&path).expect("kept");
        replace(&path, b"new", 0o644).expect("written");
        keep(&path).expect("kept already");
        replace(&path, b"newer", 0o644).expect("written");
        assert_eq!(fs::read(&path).expect("there"), b"newer");
        let kept = folder.path().join("my.cnf.before-onionskin");
        assert_eq!(fs::read(kept).expect("kept"), b"old");
    }
}
