//! `onionskin keys`: the data keys of a key file, and its passphrase.
//!
//! A new key is added first and used later, because every proxy must know it before anybody writes
//! under it: added, the file is given to all of them; then it is made the active one, and given to
//! them again.

use std::path::Path;

use chrono::DateTime;
use clap::{Args, Subcommand};
use onionskin_keys::{KeyChange, KeyEntry, KeySet};

use crate::{error::CommandError, home, passphrase, stream_keys::KeyArguments};

/// The variable of a passphrase that is going to be.
const NEW_PASSPHRASE: &str = "ONIONSKIN_NEW_PASSPHRASE";

/// List, add and choose data keys, or change the passphrase of the key file
///
/// ONIONSKIN_PASSPHRASE, or the file that ONIONSKIN_PASSPHRASE_FILE names, opens a file that is
/// under a passphrase. Programs that run keep the keys that they have read; a proxy reads
/// them anew with onionskin reload.
#[derive(Args)]
#[command(mut_args = |argument| argument.global(true))]
pub struct Keys {
    #[command(flatten)]
    file: KeyArguments,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show the data keys: number, when it was made, which is active
    List,
    /// Add a data key, which is not used yet
    Add,
    /// Make a data key the active one: what is made or migrated from now on is sealed under it
    Use {
        /// Its number
        number: u16,
    },
    /// Put the file under the passphrase in ONIONSKIN_NEW_PASSPHRASE, instead of the one that it
    /// had, if any
    Passphrase {
        /// Under none: then the file's mode is its only protection
        #[arg(long)]
        remove: bool,
    },
}

impl Keys {
    /// Does it, and says what comes next.
    pub fn run(self) -> Result<(), CommandError> {
        let (locator, base) = self.file.locate()?;
        let same_file = self.file.words();
        let same_config = self.file.config_words();
        let passphrase = passphrase::passphrase()?;
        let change = |what: KeyChange<'_>| change(&locator, &base, passphrase.as_deref(), what);
        if let Some(leftover) = KeySet::leftover(&locator, &base) {
            eprintln!("onionskin: {}", home::about_leftover(&leftover));
        }
        match self.action {
            Action::List => show(&KeySet::entries_of_file(
                &locator,
                &base,
                passphrase.as_deref(),
            )?),
            Action::Add => {
                let keys = change(KeyChange::Add)?;
                show(&keys);
                let number = keys.last().map_or(0, |key| key.id);
                println!(
                    "
Key {number} was added, and nothing is sealed under it yet. Next:
  1. Copy the key file to a safe place, beside the older copy: older files do not know key {number}.
  2. Give it to all proxies of the server, and run onionskin reload for each.
  3. onionskin keys{same_file} use {number}"
                );
            }
            Action::Use { number } => {
                show(&change(KeyChange::Activate(number))?);
                println!(
                    "
New tables and streams are sealed under key {number}. Next:
  1. Copy the key file to a safe place, give it to all proxies of the server, and run onionskin reload for each.
  2. onionskin migrate{same_config} DATABASE.TABLE --rotate, for every protected table.
  3. Make new backups. The other keys stay in the file: older backups and binary logs are read with them."
                );
            }
            Action::Passphrase { remove } => {
                let new = new_passphrase(remove)?;
                change(KeyChange::Passphrase(new.as_deref()))?;
                println!(
                    "The key file is {}.
Older copies of it still open as before: replace them, and destroy them where they are not needed.",
                    match remove {
                        true => "readable by its owner only, and under no passphrase",
                        false => "under the new passphrase",
                    }
                );
            }
        }
        Ok(())
    }
}

fn change(
    locator: &str,
    base: &Path,
    passphrase: Option<&str>,
    what: KeyChange<'_>,
) -> Result<Vec<KeyEntry>, CommandError> {
    let changed = KeySet::change_file(locator, base, passphrase, what, &mut rand::rng());
    Ok(changed?)
}

fn new_passphrase(remove: bool) -> Result<Option<String>, CommandError> {
    match (remove, passphrase::given(NEW_PASSPHRASE)?) {
        (true, None) => Ok(None),
        (false, Some(new)) => Ok(Some(new)),
        (true, Some(_)) => Err(CommandError::Arguments(format!(
            "--remove takes the passphrase away, and {NEW_PASSPHRASE} names another: leave one of them out"
        ))),
        (false, None) => Err(CommandError::Arguments(format!(
            "set the environment variable {NEW_PASSPHRASE} to the new passphrase, or {NEW_PASSPHRASE}_FILE to the file that has it, or say --remove"
        ))),
    }
}

fn show(keys: &[KeyEntry]) {
    println!("  key  made on");
    for key in keys {
        println!(
            "{:>5}  {}{}",
            key.id,
            day(key.created),
            if key.is_active { "  active" } else { "" }
        );
    }
}

/// A day by UTC.
fn day(seconds: u64) -> String {
    i64::try_from(seconds)
        .ok()
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
        .map_or_else(
            || "unknown".into(),
            |time| time.format("%Y-%m-%d").to_string(),
        )
}
