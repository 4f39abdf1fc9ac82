//! `onionskin pin`: keeps what is protected in a file on this side.
//!
//! A proxy that loads the file refuses statements on a table that is not the one that was pinned:
//! see `schema/src/pins.rs`.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use onionskin_keys::KeySet;
use onionskin_migrate::Consent;
use onionskin_rowstream::session::SqlError;
use onionskin_schema::{PinnedColumn, PinnedTable, Pins, PinsError, Table, TableName, same_name};

use crate::{
    config_file::ConfigFile,
    definitions::{Definitions, is_of_migration},
    error::CommandError,
    home, key_place,
    serve::parse_backend,
    tls,
};

/// Keep in a file what is protected, so that no change at the server goes unnoticed
///
/// The file that `pins` in the configuration names gets all protected tables and views with their
/// columns, ids, capabilities and types, authenticated under the keys. Proxies that load it refuse
/// statements on a table that is another one now, and read it again when it has changed. Run it
/// again after each wanted change.
#[derive(Args)]
pub struct Pin {
    /// The configuration
    #[arg(short = 'c', value_name = "FILE", default_value = home::CONFIG)]
    config: PathBuf,
    /// The server, instead of the configuration's: host:port or unix:/path
    #[arg(long, value_name = "ADDR")]
    backend: Option<String>,
    /// Account that sees the definitions of all tables
    #[arg(long, default_value = "root")]
    user: String,
    /// Environment variable that holds its password; no password if it is not set
    #[arg(long, value_name = "NAME", default_value = "ONIONSKIN_PASSWORD")]
    password_env: String,
    /// Also write it where something that was pinned is not protected any more, or is another table
    #[arg(long)]
    accept: bool,
}

impl Pin {
    /// Writes the file, and says what is in it.
    pub fn run(self) -> Result<(), CommandError> {
        let file = ConfigFile::read(&self.config)?;
        let Some(path) = file.pins_path() else {
            return Err(CommandError::Arguments(format!(
                "{} does not say where: write pins = \"pins\" before its first [section]",
                self.config.display()
            )));
        };
        let keys = key_place::load_at_start(&file)?;
        let backend = match &self.backend {
            Some(given) => parse_backend(given)?,
            None => file.one_backend()?.clone(),
        };
        let password = std::env::var(&self.password_env).unwrap_or_default();
        let login = tls::login(Some(&file), &backend, self.user, password)?;
        let old = read(&path, &keys)?;
        let mut definitions = Definitions::connect(&login).map_err(CommandError::Pin)?;

        let names = protected_names(&mut definitions)?;
        let tables = definitions
            .tables(&names, &keys, &file.policy)
            .map_err(pin_error)?;
        let mut new = Pins::of(tables.iter().filter(|table| table.damaged.is_none()));
        let mut damaged = 0;
        for table in &tables {
            if let Some(reason) = &table.damaged {
                damaged += 1;
                let (database, name) = (&table.database, &table.name);
                println!("damaged   {database}.{name}: {reason}");
                if let Some(pinned) = old.as_ref().and_then(|old| old.get(database, name)) {
                    new.keep(pinned);
                }
            }
        }
        for finding in findings(&mut definitions, &file, &tables, &keys)? {
            println!("warning   {finding}");
        }
        let losses = old.as_ref().map(|old| old.losses(&new)).unwrap_or_default();
        for loss in &losses {
            println!("changed   {loss}");
        }
        if !losses.is_empty() && !self.accept {
            return Err(CommandError::Pin(format!(
                "{} is left as it was: find out who made the changes above; if all of them are wanted, run onionskin pin --accept",
                path.display()
            )));
        }
        write(&path, &new, &keys)?;
        let columns: usize = new.tables().map(|table| table.columns.len()).sum();
        println!(
            "{} tables with {columns} protected columns are pinned in {}",
            new.tables().count(),
            path.display()
        );
        match damaged {
            0 => Ok(()),
            _ => Err(CommandError::Pin(format!(
                "damaged tables keep the pins that they had ({damaged})"
            ))),
        }
    }
}

/// What is pinned under a name: the only table that `migrate` may change.
pub fn pinned(
    file: &ConfigFile,
    keys: &KeySet,
    (database, name): (&str, &str),
) -> Result<Option<Arc<PinnedTable>>, CommandError> {
    let Some(path) = file.pins_path() else {
        return Ok(None);
    };
    let pins = read(&path, keys)?;
    Ok(pins.and_then(|pins| pins.get(database, name).cloned()))
}

/// Pins a table anew that `migrate` has changed. What counts is what `migrate` knows: what the
/// server shows under the name is not asked for. `now` holds that table alone, or nothing if it has
/// no protected columns. Returns whether the table is pinned. It is not if it is not known, or if
/// it has lost more protection than `consent` allows.
pub fn renew(
    file: &ConfigFile,
    keys: &KeySet,
    (database, name): (&str, &str),
    now: Option<&Pins>,
    consent: &Consent,
) -> Result<bool, CommandError> {
    let Some(path) = file.pins_path() else {
        return Ok(true);
    };
    let Some(mut pins) = read(&path, keys)? else {
        return Ok(true);
    };
    let Some(now) = now else {
        return Ok(pins.get(database, name).is_none());
    };
    let now = now.get(database, name);
    let before = pins.get(database, name);
    let mut columns = before.iter().flat_map(|before| &before.columns);
    if columns.any(|column| is_lost(column, now, consent)) {
        return Ok(false);
    }
    match now {
        Some(now) => pins.keep(now),
        None => pins.set(database, name, None),
    }
    write(&path, &pins, keys)?;
    Ok(true)
}

/// Whether a column is less protected than it was, or of another type, and that was not consented
/// to.
fn is_lost(before: &PinnedColumn, now: Option<&Arc<PinnedTable>>, consent: &Consent) -> bool {
    let mut columns = now.iter().flat_map(|now| &now.columns);
    let Some(now) = columns.find(|now| same_name(&now.name, &before.name)) else {
        return !consent.allows_plain(&before.name);
    };
    let gained = consent.gained(&before.name, &before.capabilities, &now.capabilities);
    let lost = consent.lost(&before.name, &before.capabilities, &now.capabilities);
    gained.is_some()
        || lost.is_some()
        || (&now.type_text, &now.collation) != (&before.type_text, &before.collation)
}

/// The pins that are there, if any.
fn read(path: &Path, keys: &KeySet) -> Result<Option<Pins>, CommandError> {
    let of_file = |source| CommandError::File {
        path: path.to_owned(),
        source,
    };
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(of_file(error)),
    };
    let verify = |bytes: &[u8], tag: &[u8; 16]| keys.metadata_key().verify(bytes, tag);
    match Pins::parse(&text, verify) {
        Ok(pins) => Ok(Some(pins)),
        Err(error @ PinsError::NotAuthentic) => Err(CommandError::Pin(format!(
            "{}: {error}; name the right keys, or remove it to begin anew",
            path.display()
        ))),
        Err(error) => Err(CommandError::Pin(format!("{}: {error}", path.display()))),
    }
}

/// Writes a new file and puts it in the place of the old one: a proxy sees one or the other.
fn write(path: &Path, pins: &Pins, keys: &KeySet) -> Result<(), CommandError> {
    let text = pins.text(|bytes| keys.metadata_key().tag(bytes));
    let mut name = path.as_os_str().to_owned();
    // If two processes write at the same time, neither puts the other's half of a file in place. No
    // link that lies there is followed.
    name.push(format!(".{:016x}.new", rand::random::<u64>()));
    let beside = PathBuf::from(name);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&beside)
        .and_then(|mut file| {
            let done = file
                .write_all(text.as_bytes())
                .and_then(|()| file.sync_all())
                .and_then(|()| fs::rename(&beside, path));
            if done.is_err() {
                let _ = fs::remove_file(&beside);
            }
            done
        });
    written.map_err(|source| CommandError::File {
        path: path.to_owned(),
        source,
    })
}

fn pin_error(error: SqlError) -> CommandError {
    CommandError::Pin(error.to_string())
}

/// The names of all tables that look protected, and are there to stay.
fn protected_names(definitions: &mut Definitions) -> Result<Vec<TableName>, CommandError> {
    let names = definitions.protected_names().map_err(pin_error)?;
    let lasting = names.into_iter().filter(|table| !is_of_migration(table));
    Ok(lasting.collect())
}

/// Where `[protect]` and the tables do not agree.
fn findings(
    definitions: &mut Definitions,
    file: &ConfigFile,
    protected: &[Table],
    keys: &KeySet,
) -> Result<Vec<String>, CommandError> {
    let named = file.policy.named_columns();
    let mut names: BTreeSet<TableName> = named.map(|(d, t, _)| TableName::new(d, t)).collect();
    let mut findings = Vec::new();
    for table in protected {
        names.remove(&TableName::folded(&table.database, &table.name));
        findings.extend(
            file.policy
                .findings(&table.database, &table.name, Some(table)),
        );
    }
    for name in names {
        let tables = definitions.tables(std::slice::from_ref(&name), keys, &file.policy);
        let tables = tables.map_err(pin_error)?;
        let TableName { database, name } = &name;
        findings.extend(file.policy.findings(database, name, tables.first()));
    }
    Ok(findings)
}
