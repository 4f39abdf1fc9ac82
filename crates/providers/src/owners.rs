//! Who may change the code that sees the root key.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use rustix::process::geteuid;

use crate::fault::Fault;

/// Refuses a program or a library that others than root and this user may write, or in whose place
/// they may put another one: it sees the root key.
pub(crate) fn check_code(path: &Path) -> Result<(), Fault> {
    let shown = path.display();
    let real = fs::canonicalize(path);
    let real = real.map_err(|error| Fault::lasting(format!("{shown}: {error}")))?;
    check_owner(&real)?;
    // a symbolic link lies in other folders than what it leads to
    let folders = path.ancestors().chain(real.ancestors());
    let is_folder = |folder: &&Path| **folder != *path && **folder != *real;
    let named = |folder: &&Path| !folder.as_os_str().is_empty();
    folders
        .filter(is_folder)
        .filter(named)
        .try_for_each(check_owner)
}

/// Refuses what another user than root and this one may change. In a sticky folder, as `/tmp` is,
/// others cannot replace what they do not own.
fn check_owner(path: &Path) -> Result<(), Fault> {
    const STICKY: u32 = 0o1000;
    let shown = path.display();
    let found = fs::metadata(path).map_err(|error| Fault::lasting(format!("{shown}: {error}")))?;
    let (owner, user) = (found.uid(), geteuid().as_raw());
    let is_sticky = found.is_dir() && found.mode() & STICKY != 0;
    if found.mode() & 0o022 != 0 && !is_sticky {
        return Err(Fault::lasting(format!(
            "{shown} can be written by other users than its owner: run chmod go-w on it"
        )));
    }
    match owner == 0 || owner == user {
        true => Ok(()),
        false => Err(Fault::lasting(format!(
            "{shown} belongs to user {owner}, and this program runs as user {user}: chown it to root"
        ))),
    }
}
