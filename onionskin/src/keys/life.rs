//! `keys usage`, and the steps to a key's end: `read-only`, `retire`, `destroy`. Each looks first
//! whether something still needs the key.

use std::path::PathBuf;

use clap::Args;
use onionskin_keys::{KeyChange, KeyEntry, KeyId};

use crate::{
    config_file::ConfigFile,
    definitions::Definitions,
    error::CommandError,
    key_place::{self, KeyPlace},
    keys::{account::Account, usage::Usage},
};

/// Where it is looked for what is under a key.
#[derive(Args)]
struct Where {
    #[command(flatten)]
    account: Account,
    /// A folder with sealed files: backups, the archive of the binary log. May be given several
    /// times
    #[arg(long, value_name = "FOLDER")]
    folder: Vec<PathBuf>,
    /// Also look at the key that every sealed cell names, which reads all rows
    #[arg(long)]
    cells: bool,
}

impl Where {
    fn look(&self, file: &ConfigFile, place: &KeyPlace) -> Result<Usage, CommandError> {
        let mut usage = Usage::of(&place.entries()?);
        let keys = key_place::load_at_start(file)?;
        let login = self.account.login(file)?;
        let mut definitions = Definitions::connect(&login).map_err(CommandError::Explain)?;
        usage.look_at_server(&mut definitions, (file, &keys), self.cells)?;
        for folder in &self.folder {
            usage.look_into(folder, &keys)?;
        }
        Ok(usage)
    }
}

/// `keys usage`
#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    places: Where,
    /// As JSON, in one line
    #[arg(long)]
    json: bool,
}

impl Show {
    /// Prints it.
    pub fn run(&self, file: &ConfigFile, place: &KeyPlace) -> Result<(), CommandError> {
        let usage = self.places.look(file, place)?;
        match self.json {
            true => println!("{}", serde_json::to_string(&usage).unwrap_or_default()),
            false => usage.print(),
        }
        Ok(())
    }
}

/// A step to a key's end.
#[derive(Args)]
pub struct Step {
    /// The key's number
    number: u16,
    #[command(flatten)]
    places: Where,
    /// There are no sealed files to look for: no backup and no archive is needed any more
    #[arg(long, conflicts_with = "folder")]
    no_folders: bool,
    /// Do it without looking: I know that nothing under the key is needed
    #[arg(long)]
    i_know: bool,
}

impl Step {
    /// `keys read-only`: no table is under the key.
    pub fn make_read_only(
        &self,
        file: &ConfigFile,
        place: &KeyPlace,
    ) -> Result<Vec<KeyEntry>, CommandError> {
        if !self.i_know && !self.is_at_rest(place)? {
            let usage = self.places.look(file, place)?;
            self.must_be_unused(&usage, true)?;
        }
        self.change(place, KeyChange::MakeReadOnly(self.number))
    }

    /// `keys retire`: nothing is.
    pub fn retire(
        &self,
        file: &ConfigFile,
        place: &KeyPlace,
    ) -> Result<Vec<KeyEntry>, CommandError> {
        self.must_be_needless(file, place)?;
        self.change(place, KeyChange::Retire(self.number))
    }

    /// `keys destroy`: nothing is, still.
    pub fn destroy(
        &self,
        file: &ConfigFile,
        place: &KeyPlace,
    ) -> Result<Vec<KeyEntry>, CommandError> {
        self.must_be_needless(file, place)?;
        self.change(place, KeyChange::Destroy(self.number))
    }

    /// What to do next.
    pub fn next(&self, same_config: &str) -> String {
        format!(
            "
Next:
  1. Copy the key file to a safe place, give it to all proxies of the server, and run onionskin reload for each.
  2. onionskin keys{same_config} list shows the states; docs/keys.md says what each allows."
        )
    }

    /// A retired key that is taken back seals nothing before and after.
    fn is_at_rest(&self, place: &KeyPlace) -> Result<bool, CommandError> {
        let entries = place.entries()?;
        let entry = entries.iter().find(|entry| entry.id == self.number);
        Ok(entry.is_some_and(|entry| !entry.state.seals()))
    }

    fn must_be_needless(&self, file: &ConfigFile, place: &KeyPlace) -> Result<(), CommandError> {
        if self.i_know {
            return Ok(());
        }
        if self.places.folder.is_empty() && !self.no_folders {
            return Err(CommandError::Arguments(format!(
                "say where sealed files are that may need key {}: --folder FOLDER, several times if there are several; \
                 or --no-folders, if none is needed any more; or --i-know, to look nowhere",
                self.number
            )));
        }
        let usage = self.places.look(file, place)?;
        self.must_be_unused(&usage, false)
    }

    fn must_be_unused(&self, usage: &Usage, tables_alone: bool) -> Result<(), CommandError> {
        let number: KeyId = self.number;
        let in_use = |why: String| Err(CommandError::KeyInUse(why));
        if !usage.has_tables() {
            return in_use(format!(
                "no table of this server is under any key of this file: is it the right server (--backend), and does the account see all tables (--user)? \
                 Key {number} is left as it was"
            ));
        }
        if let Some(first) = usage.unknown.first() {
            return in_use(format!(
                "it cannot be told of everything whether it is under key {number}, which is left as it was: {} things, the first is {first}",
                usage.unknown.len()
            ));
        }
        let Some(key) = usage.key(number) else {
            return Ok(());
        };
        let words = match tables_alone {
            true if key.tables.is_empty() => return Ok(()),
            true => format!("{} tables", key.tables.len()),
            false => key.words(),
        };
        match words.is_empty() {
            true => Ok(()),
            false => in_use(format!(
                "key {number} is still needed, and left as it was: {words}. onionskin keys usage lists them; \
                 onionskin keys roll moves tables to the active key"
            )),
        }
    }

    fn change(&self, place: &KeyPlace, what: KeyChange<'_>) -> Result<Vec<KeyEntry>, CommandError> {
        place.change(&place.opening()?, what)
    }
}
