//! What other programs may know of ours.

use std::{env, process::Command};

/// Takes everything that is ours out of the environment of `command`: the passphrase of the keys
/// may be in it, or the folder in which systemd keeps it, or the password of another server.
pub fn without_ours(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("ONIONSKIN_") || text == "CREDENTIALS_DIRECTORY" || text == "MYSQL_PWD"
        {
            command.env_remove(name);
        }
    }
}
