//! What other programs may know of ours.

use std::{env, process::Command};

/// Secrets whose names are not ours.
const OURS: [&str; 5] = [
    "CREDENTIALS_DIRECTORY",
    "MYSQL_PWD",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
];

/// Takes everything that is ours out of the environment of `command`: the passphrase of the keys
/// may be in it, or the folder in which systemd keeps it, or the password of another server, or
/// what opens an object store.
pub fn without_ours(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("ONIONSKIN_") || OURS.contains(&&*text) {
            command.env_remove(name);
        }
    }
}
