//! `onionskin identity`: a new identity, whose recipient streams are sealed to.

use std::{
    fs::{Metadata, Permissions},
    io::{self, IsTerminal, Write},
    os::{
        fd::AsFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::PathBuf,
};

use chrono::Utc;
use clap::Args;
use onionskin_keys::{
    Identity, Suite,
    recipient_file::{identity_file, read_identities, write_private_file},
    recipient_text::recipient_text,
};

use crate::error::CommandError;

/// Make an identity, which opens what is sealed to its recipient
///
/// Prints the identity, and its recipient on standard error. The identity is a secret: keep it away
/// from the machine that makes the backups, in two places. The recipient is none: `seal --to`,
/// `backup --recipient` and `archive --recipient` take it. Those of suite aes are age's, and
/// age-keygen makes them as well.
#[derive(Args)]
pub struct NewIdentity {
    /// What its streams are sealed with: aes (X25519, AES-256-GCM) or sm (SM2, SM4-GCM, SM3)
    #[arg(long, default_value = "aes")]
    suite: Suite,
    /// Write to this new file, for its owner only, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Make nothing: print the recipients of the identities in this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["suite", "output"])]
    of: Option<PathBuf>,
}

impl NewIdentity {
    /// Makes it.
    pub fn run(self) -> Result<(), CommandError> {
        if let Some(path) = &self.of {
            for identity in read_identities(path)? {
                println!("{}", recipient_text(&identity.recipient()));
            }
            return Ok(());
        }
        let identity = Identity::generate(self.suite);
        let created = Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string();
        let text = identity_file(&identity, &created);
        match &self.output {
            Some(path) => write_private_file(path, &text)?,
            None => print(&text)?,
        }
        eprintln!("recipient: {}", recipient_text(&identity.recipient()));
        Ok(())
    }
}

/// Writes to standard output. A file that the shell has made for this is its owner's only from now
/// on, as every command wants it that reads identities.
fn print(text: &str) -> Result<(), CommandError> {
    let failed = |source| CommandError::System {
        doing: "writing the identity to standard output",
        source,
    };
    let stdout = io::stdout();
    let file = stdout.as_fd().try_clone_to_owned().map_err(failed)?;
    let mut file = std::fs::File::from(file);
    let new = |found: &Metadata| found.is_file() && found.len() == 0 && found.mode() & 0o077 != 0;
    if !stdout.is_terminal() && file.metadata().is_ok_and(|found| new(&found)) {
        file.set_permissions(Permissions::from_mode(0o600))
            .map_err(failed)?;
    }
    file.write_all(text.as_bytes()).map_err(failed)
}
