//! `onionskin tenants`: whose cells can be read, and who was forgotten.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use chrono::DateTime;
use clap::{Args, Subcommand};
use onionskin_keys::{KeyError, KeySet, TenantId, Tenants};
use serde_json::json;

use crate::{
    config_file::ConfigFile,
    error::CommandError,
    home,
    key_place::{KeyPlace, Patience, about_tenants_leftover},
    keys::{Told, tell},
};

/// Forget a tenant: what was sealed for it cannot be read again, by anybody
///
/// Columns that are keyed by tenant have a secret for each tenant, in the file that `tenants` in
/// the configuration names. A tenant's secret can be taken out of that file for good: its values
/// cannot be read then, in no table, replica, backup and binary log.
#[derive(Args)]
#[command(mut_args = |argument| argument.global(true))]
pub struct TenantsCommand {
    /// The configuration
    #[arg(short = 'c', value_name = "FILE", default_value = home::CONFIG)]
    config: PathBuf,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Make the file, with secrets for all tenants that will ever be. Overwrites nothing
    Init,
    /// Forget tenants, for good
    Forget(Forget),
    /// Show who was forgotten: ids, and when
    List(List),
    /// Say whether tenants were forgotten, and which ids they have
    Check(Check),
}

/// Tenants by their names.
#[derive(Args)]
struct Named {
    /// Tenants. NAME is the one behind AS in KEY BY … AS NAME; VALUE is the tenant's: a number in
    /// decimal digits, a text as it is, without spaces at the end, a binary value as 0x and small
    /// hexadecimal digits
    #[arg(value_name = "NAME=VALUE")]
    names: Vec<String>,
    /// Also those in this file, one on a line; - is standard input. Arguments of a command can be
    /// seen by others on the machine
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

#[derive(Args)]
struct Forget {
    #[command(flatten)]
    named: Named,
    /// Do it. I know that nobody can bring it back, and that these are the right ones
    #[arg(long)]
    i_know: bool,
}

#[derive(Args)]
struct List {
    /// As JSON, in one line
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Check {
    #[command(flatten)]
    named: Named,
}

/// A tenant that was named.
struct Tenant {
    /// As it was written.
    text: String,
    id: TenantId,
}

impl Named {
    /// All of them, each once.
    fn tenants(&self, keys: &KeySet) -> Result<Vec<Tenant>, CommandError> {
        let mut texts = self.names.clone();
        if let Some(from) = &self.from {
            texts.extend(lines(from)?);
        }
        let (mut tenants, mut seen) = (Vec::new(), BTreeSet::new());
        for text in texts {
            let tenant = tenant(&text, keys)?;
            if seen.insert(tenant.id) {
                tenants.push(tenant);
            }
        }
        match tenants.is_empty() {
            true => Err(CommandError::Arguments(
                "name tenants: NAME=VALUE, or --from FILE".into(),
            )),
            false => Ok(tenants),
        }
    }
}

/// The lines of a file that are not empty.
fn lines(from: &Path) -> Result<Vec<String>, CommandError> {
    let read = match from == Path::new("-") {
        true => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map(|_| text)
        }
        false => fs::read_to_string(from),
    };
    let text = read.map_err(|source| CommandError::File {
        path: from.to_owned(),
        source,
    })?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    Ok(lines.map(str::to_owned).collect())
}

fn tenant(text: &str, keys: &KeySet) -> Result<Tenant, CommandError> {
    let parts = text.split_once('=').filter(|(space, _)| !space.is_empty());
    let Some((space, value)) = parts else {
        return Err(CommandError::Arguments(format!(
            "{text:?} is no tenant: write NAME=VALUE, as customers=4711"
        )));
    };
    let value = value.trim_end_matches(' ');
    if let Some(other) = of_a_number(value) {
        eprintln!(
            "onionskin: {text}: if the tenants are numbers, this one is written {space}={other}"
        );
    }
    Ok(Tenant {
        text: text.to_owned(),
        id: keys.tenant_id(space, value.as_bytes()),
    })
}

/// How a value is written if it is one of a number, where that is in another way.
fn of_a_number(value: &str) -> Option<String> {
    let (sign, rest) = match value.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", value.strip_prefix('+').unwrap_or(value)),
    };
    if rest.is_empty() || !rest.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits = match rest.trim_start_matches('0') {
        "" => "0".to_owned(),
        digits => format!("{sign}{digits}"),
    };
    (digits != value).then_some(digits)
}

/// Where the keys and the tenants are.
struct Place {
    file: ConfigFile,
    locator: String,
    keys: KeySet,
}

impl Place {
    fn of(config: &Path) -> Result<Place, CommandError> {
        let file = ConfigFile::read(config)?;
        let Some(locator) = file.keys.tenants.clone() else {
            return Err(CommandError::Arguments(format!(
                "{} does not say where the tenants file is: write tenants = \"file:tenants.keys\" before its first [section]",
                config.display()
            )));
        };
        for leftover in KeySet::tenants_leftovers(&locator, file.folder()) {
            eprintln!("onionskin: {}", about_tenants_leftover(&leftover));
        }
        let keys = KeyPlace::of(&file).load_data_keys(&Patience::AsConfigured)?;
        Ok(Place {
            file,
            locator,
            keys,
        })
    }

    fn path(&self) -> Result<PathBuf, CommandError> {
        Ok(KeySet::tenants_path_of(&self.locator, self.file.folder())?)
    }

    fn tenants(&self) -> Result<Tenants, CommandError> {
        let found = self.keys.tenants_of_file(&self.locator, self.file.folder());
        found.map_err(|error| match error {
            KeyError::TenantsIo { path, source } if source.kind() == io::ErrorKind::NotFound => {
                CommandError::Arguments(format!(
                    "there is no {}: onionskin tenants init makes it. If there was one, bring a copy back: no value of a tenant can be read without it",
                    path.display()
                ))
            }
            other => other.into(),
        })
    }
}

impl TenantsCommand {
    /// Does it, and says what comes next.
    pub fn run(self) -> Result<(), CommandError> {
        let place = Place::of(&self.config)?;
        match self.action {
            Action::Init => init(&place),
            Action::Forget(forget) => forget.run(&place),
            Action::List(list) => list.run(&place),
            Action::Check(check) => check.run(&place),
        }
    }
}

fn init(place: &Place) -> Result<(), CommandError> {
    let made = place
        .keys
        .create_tenants_file(&place.locator, place.file.folder());
    made.map_err(|error| match error {
        KeyError::Exists { path } => CommandError::TenantsExist(path),
        other => other.into(),
    })?;
    let path = place.path()?;
    println!(
        "Wrote {path}. It has a secret for every tenant that will ever be, so it does not change when tenants come.
Next:
  1. Copy it to a safe place. Without it no value of a tenant can be read again. Note where copies are: whoever is forgotten can be
     read with every copy that was made before.
  2. Give it to all proxies of the server, with the same setting, and run onionskin reload for each.",
        path = path.display()
    );
    Ok(())
}

impl Forget {
    fn run(&self, place: &Place) -> Result<(), CommandError> {
        let named = self.named.tenants(&place.keys)?;
        let before = place.tenants()?;
        let path = place.path()?;
        if !self.i_know {
            for Tenant { text, id } in &named {
                let how = match before.is_forgotten(*id) {
                    true => "forgotten already",
                    false => "would be forgotten",
                };
                println!("{text}: tenant {id}, {how}");
            }
            return Err(CommandError::Arguments(
                "nothing was forgotten: it cannot be undone, so say --i-know if these are the right ones".into(),
            ));
        }
        let ids: Vec<TenantId> = named.iter().map(|tenant| tenant.id).collect();
        let folder = place.file.folder();
        let done = place.keys.forget_tenants(&place.locator, folder, &ids)?;
        for (Tenant { text, id }, is_new) in named.iter().zip(&done.is_new) {
            let how = match is_new {
                true => "forgotten",
                false => "was forgotten already",
            };
            println!("{text}: tenant {id}, {how}");
        }
        println!(
            "{}: {} tenants are forgotten, generation {}.",
            path.display(),
            done.forgotten,
            done.generation
        );
        if let Some(error) = &done.not_overwritten {
            eprintln!(
                "onionskin: the bytes of the old file could not be written over ({error}): they may still lie on the disk"
            );
        }
        let told = tell(&place.file);
        let here = match &told {
            Ok(Told::Reloaded) => {
                "The proxy here has read the file. Statements that it began before may still end with what they knew."
                    .to_owned()
            }
            Ok(Told::Nobody(why)) => {
                format!("No proxy was told ({why}): run onionskin reload for each one.")
            }
            Err(_) => "The proxy here goes on with the file that it had.".to_owned(),
        };
        println!(
            "{here}
Next:
  1. Copy {path} to all other proxies of the server, or run the same command there, and run onionskin reload for each.
  2. Replace the copies of the file. Every older copy still opens what was forgotten: destroy them (shred -u), also in
     backups of this machine.",
            path = path.display()
        );
        told.map(drop)
    }
}

impl List {
    fn run(&self, place: &Place) -> Result<(), CommandError> {
        let tenants = place.tenants()?;
        let file_id: String = tenants
            .file_id()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        if self.json {
            let forgotten = tenants.forgotten();
            let forgotten: Vec<_> = forgotten
                .map(|(id, time)| json!({ "tenant": id.to_string(), "forgotten": time }))
                .collect();
            let all = json!({
                "file": file_id,
                "generation": tenants.generation(),
                "forgotten": forgotten,
            });
            println!("{all}");
            return Ok(());
        }
        println!(
            "{}: file {file_id}, generation {}, {} tenants are forgotten",
            place.path()?.display(),
            tenants.generation(),
            tenants.forgotten().len()
        );
        for (id, time) in tenants.forgotten() {
            println!("{id}  {}", moment(time));
        }
        Ok(())
    }
}

impl Check {
    fn run(&self, place: &Place) -> Result<(), CommandError> {
        let named = self.named.tenants(&place.keys)?;
        let tenants = place.tenants()?;
        for Tenant { text, id } in named {
            match tenants.forgotten_at(id) {
                Some(time) => println!("{text}: tenant {id}, forgotten {}", moment(time)),
                None => println!("{text}: tenant {id}, not forgotten"),
            }
        }
        Ok(())
    }
}

/// A moment by UTC.
fn moment(seconds: u64) -> String {
    i64::try_from(seconds)
        .ok()
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
        .map_or_else(
            || "at an unknown time".into(),
            |time| time.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_one_way() {
        for (value, other) in [
            ("007", Some("7")),
            ("+7", Some("7")),
            ("-07", Some("-7")),
            ("-0", Some("0")),
            ("00", Some("0")),
            ("0", None),
            ("7", None),
            ("-7", None),
            ("7a", None),
            ("0x07", None),
            ("", None),
            ("-", None),
        ] {
            assert_eq!(of_a_number(value).as_deref(), other, "{value}");
        }
    }
}
