//! `onionskin keys`: the data keys of a key file, and what opens it.
//!
//! A new key is added first and used later, because every proxy must know it before anybody writes
//! under it: added, the file is given to all of them; then it is made the active one, and given to
//! them again. Files of `keys/`:
//!
//! | file | what it is |
//! |---|---|
//! | `usage` | what is under which key |
//! | `life` | `usage`, and the steps to a key's end |
//! | `roll` | a new key for everything |
//! | `proxy` | the proxy that runs here, told of a change |
//! | `account` | the server that these look at |

use chrono::DateTime;
use clap::{Args, Subcommand, ValueEnum};
use onionskin_keys::{KeyChange, KeyEntry, RootAccess, RootKeeper};

use crate::{
    error::CommandError,
    key_place::{KeyPlace, about_leftover},
    passphrase,
    provider_section::ProviderName,
    stream_keys::KeyArguments,
};

mod account;
mod life;
mod proxy;
mod roll;
mod usage;

pub use proxy::{Told, tell};

/// The variable of a passphrase that is going to be.
const NEW_PASSPHRASE: &str = "ONIONSKIN_NEW_PASSPHRASE";

/// List, add, roll and retire data keys, or change what opens the key file
///
/// ONIONSKIN_PASSPHRASE, or the file that ONIONSKIN_PASSPHRASE_FILE names, opens a file that is
/// under a passphrase; the provider that the configuration names one whose root key it wraps.
/// Programs that run keep the keys that they have read; a proxy reads them anew with onionskin
/// reload.
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
    /// Show the data keys: number, when it was made, its state
    List,
    /// Add a data key, which is not used yet
    Add,
    /// Make a data key the active one: what is made or migrated from now on is sealed under it
    Use {
        /// Its number
        number: u16,
    },
    /// A new data key for everything: makes it, makes it the active one, and rotates every
    /// protected table, one after the other, while the application writes. Once more the same
    /// command goes on where it was
    Roll(Box<roll::Roll>),
    /// Say which tables and sealed files are under which data key
    Usage(life::Show),
    /// Have nothing sealed under a data key any more; what is under it still opens. Also takes a
    /// retired key back
    ReadOnly(life::Step),
    /// Have a read-only data key open nothing any more. It stays in the file
    Retire(life::Step),
    /// Remove the bytes of a retired data key for good. Its number stays
    Destroy(life::Step),
    /// Put the file under the passphrase in ONIONSKIN_NEW_PASSPHRASE, instead of the one that it
    /// had, if any
    Passphrase {
        /// Under none: then the file's mode is its only protection
        #[arg(long)]
        remove: bool,
    },
    /// Have another one open the file: a provider of the configuration, a passphrase, or nobody
    ///
    /// The data keys stay the same, so no data is touched. What opens the file now is asked once
    /// more.
    Rewrap {
        /// Who: a provider with a section under [provider]; the passphrase in
        /// ONIONSKIN_NEW_PASSPHRASE; or the file's mode alone
        #[arg(long, value_name = "WHO")]
        to: Target,
    },
}

/// What is to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// The program under [provider.exec]
    Exec,
    /// The transit engine under [provider.vault]
    Vault,
    /// The token under [provider.pkcs11]
    Pkcs11,
    /// The key in AWS KMS under [provider.aws-kms]
    AwsKms,
    /// The passphrase in ONIONSKIN_NEW_PASSPHRASE
    Passphrase,
    /// Nobody: the file's mode is its only protection
    File,
}

impl Target {
    fn provider(self) -> Option<ProviderName> {
        match self {
            Target::Exec => Some(ProviderName::Exec),
            Target::Vault => Some(ProviderName::Vault),
            Target::Pkcs11 => Some(ProviderName::Pkcs11),
            Target::AwsKms => Some(ProviderName::AwsKms),
            Target::Passphrase | Target::File => None,
        }
    }
}

impl Keys {
    /// Does it, and says what comes next.
    pub fn run(self) -> Result<(), CommandError> {
        let place = self.file.place()?;
        let same_file = self.file.words();
        let same_config = self.file.config_words();
        if let Some(leftover) = place.leftover() {
            eprintln!("onionskin: {}", about_leftover(&leftover));
        }
        match self.action {
            Action::List => show(&place.entries()?),
            Action::Add => {
                let keys = change(&place, KeyChange::Add)?;
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
                show(&change(&place, KeyChange::Activate(number))?);
                println!(
                    "
New tables and streams are sealed under key {number}. Next:
  1. Copy the key file to a safe place, give it to all proxies of the server, and run onionskin reload for each.
  2. onionskin keys{same_config} roll, which rotates every protected table that is under another key.
  3. Make new backups. The other keys stay in the file: older backups and binary logs are read with them."
                );
            }
            Action::Passphrase { remove } => {
                if let RootKeeper::Provider(name) = place.keeper()? {
                    return Err(CommandError::Arguments(format!(
                        "the key file is under no passphrase: the provider {name} unwraps its root key. To end that: \
                         onionskin keys{same_file} rewrap --to passphrase, or --to file"
                    )));
                }
                let new = new_passphrase(remove)?;
                change(&place, KeyChange::Passphrase(new.as_deref()))?;
                println!(
                    "The key file is {}.
Older copies of it still open as before: replace them, and destroy them where they are not needed.",
                    match remove {
                        true => "readable by its owner only, and under no passphrase",
                        false => "under the new passphrase",
                    }
                );
            }
            Action::Rewrap { to } => rewrap(&place, to)?,
            Action::Roll(roll) => roll.run(&self.file.config_file()?, &place, &same_config)?,
            Action::Usage(show) => show.run(&self.file.config_file()?, &place)?,
            Action::ReadOnly(step) => {
                show(&step.make_read_only(&self.file.config_file()?, &place)?);
                println!("{}", step.next(&same_config));
            }
            Action::Retire(step) => {
                show(&step.retire(&self.file.config_file()?, &place)?);
                println!("{}", step.next(&same_config));
            }
            Action::Destroy(step) => {
                show(&step.destroy(&self.file.config_file()?, &place)?);
                println!("{}", step.next(&same_config));
            }
        }
        Ok(())
    }
}

fn change(place: &KeyPlace, what: KeyChange<'_>) -> Result<Vec<KeyEntry>, CommandError> {
    place.change(&place.opening()?, what)
}

/// Has another one open the file.
fn rewrap(place: &KeyPlace, to: Target) -> Result<(), CommandError> {
    let before = place.keeper()?;
    let opening = place.opening_of(&before)?;
    let new = match to {
        Target::Passphrase => new_passphrase(false)?,
        _ => None,
    };
    match to.provider() {
        Some(name) => {
            let next = place.opening_by(name)?;
            let RootAccess::Provider(provider) = next.access() else {
                return Err(CommandError::Arguments(format!("{name} is no provider")));
            };
            place.change(&opening, KeyChange::Wrap(provider))?;
        }
        None => {
            place.change(&opening, KeyChange::Passphrase(new.as_deref()))?;
        }
    }
    let after = place.keeper()?;
    println!(
        "The root key of {} was {before}; a new one is {after}. The data keys are the same.
Next:",
        place.path()?.display()
    );
    match (to.provider(), place.provider()) {
        (to, now) if to == now => println!("  1. The configuration says so already."),
        (Some(name), _) => println!("  1. Set keys_provider = \"{name}\" in the configuration."),
        (None, _) => println!("  1. Take keys_provider out of the configuration."),
    }
    println!(
        "  2. Give both files to all proxies of the server, and run onionskin reload for each. A proxy that runs goes on as it is until then.
  3. Try the file: onionskin keys list. Then replace copies of the old one: they still open as before ({before}), and destroy them where they are not needed."
    );
    Ok(())
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
        let since = key
            .rests_since
            .map(|since| format!(" since {}", day(since)));
        println!(
            "{:>5}  {}  {}{}",
            key.id,
            day(key.created),
            key.state,
            since.unwrap_or_default()
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
