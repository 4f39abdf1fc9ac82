//! What is under which data key: tables and views of a server, sealed files of folders.
//!
//! A sealed file counts in two ways. Its stream is under the key that its header names. And it may
//! hold rows of tables that were under a key when it was made: every backup and every segment of
//! the archive does, whatever the stream itself is sealed under, unless it is known to be older
//! than the key, or newer than the moment since when nothing is sealed under it.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use onionskin_backup::{
    Header, KeySource, Progress, StreamError,
    header::{HEADER_LEN, MAGIC},
    verify,
};
use onionskin_keys::{KeyEntry, KeyId, KeySet, KeyState, Rest, cell_header};
use onionskin_rowstream::session::SqlError;
use onionskin_schema::{Table, TableName, identifier, show_view_constants};
use serde::Serialize;

use crate::{
    config_file::ConfigFile,
    definitions::{Definitions, is_of_migration},
    error::CommandError,
};

/// As many names are printed of each kind.
const TOLD: usize = 20;

/// What was found.
#[derive(Debug, Serialize)]
pub struct Usage {
    /// Every data key of the file.
    pub keys: Vec<OfKey>,
    /// Tables and files of which it cannot be told, with the reason.
    pub unknown: Vec<String>,
    /// Folders that were looked through.
    pub folders: Vec<PathBuf>,
    /// Sealed files in them.
    pub sealed_files: usize,
}

/// What is under one data key.
#[derive(Debug, Serialize)]
pub struct OfKey {
    /// Its number.
    pub number: KeyId,
    /// Where it stands in its life.
    pub state: &'static str,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// Since when nothing is sealed under it, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rests_since: Option<u64>,
    /// Tables with columns under it.
    pub tables: BTreeSet<String>,
    /// Views with constants that were sealed under it.
    pub views: BTreeSet<String>,
    /// Sealed files whose streams are under it.
    pub files: BTreeSet<PathBuf>,
    /// Sealed files that may hold rows which are.
    pub may_hold: BTreeSet<PathBuf>,
    #[serde(skip)]
    entry: KeyEntry,
}

impl Usage {
    /// Nothing yet.
    pub fn of(entries: &[KeyEntry]) -> Usage {
        let keys = entries.iter().map(|&entry| OfKey {
            number: entry.id,
            state: entry.state.word(),
            created: entry.created,
            rests_since: entry.rests_since,
            tables: BTreeSet::new(),
            views: BTreeSet::new(),
            files: BTreeSet::new(),
            may_hold: BTreeSet::new(),
            entry,
        });
        Usage {
            keys: keys.collect(),
            unknown: Vec::new(),
            folders: Vec::new(),
            sealed_files: 0,
        }
    }

    /// What is under a key.
    pub fn key(&self, number: KeyId) -> Option<&OfKey> {
        self.keys.iter().find(|key| key.number == number)
    }

    /// Whether any table is under a key of the file.
    pub fn has_tables(&self) -> bool {
        self.keys.iter().any(|key| !key.tables.is_empty())
    }

    fn note(&mut self, number: KeyId, what: &str, note: impl FnOnce(&mut OfKey)) {
        match self.keys.iter_mut().find(|key| key.number == number) {
            Some(key) => note(key),
            None => self.unknown.push(format!(
                "{what} is under key {number}, which is not in the key file"
            )),
        }
    }

    /// Adds what is on a server. With `cells` the keys that stand in the cells count, too, which
    /// takes a look at every row.
    pub fn look_at_server(
        &mut self,
        definitions: &mut Definitions,
        (file, keys): (&ConfigFile, &KeySet),
        cells: bool,
    ) -> Result<(), CommandError> {
        let tables = protected_tables(definitions, file, keys)?;
        for table in tables.iter().filter(|table| !table.view) {
            let name = format!("{}.{}", table.database, table.name);
            if let Some(reason) = &table.damaged {
                self.unknown.push(format!("{name}: {reason}"));
                continue;
            }
            for (_, protection) in table.protected_columns() {
                self.note(protection.key_id, &name, |key| {
                    key.tables.insert(name.clone());
                });
                if cells {
                    let column = &protection.names.enc;
                    for number in keys_of_cells(definitions, table, column).map_err(asked)? {
                        self.note(number, &name, |key| {
                            key.tables.insert(name.clone());
                        });
                    }
                }
            }
        }
        for (view, number) in keys_of_views(definitions).map_err(asked)? {
            self.note(number, &format!("a constant in {view}"), |key| {
                key.views.insert(view.clone());
            });
        }
        Ok(())
    }

    /// Adds the sealed files of a folder and of those in it. Files that are being written have
    /// names that begin with a dot, and do not count.
    pub fn look_into(&mut self, folder: &Path, keys: &KeySet) -> Result<(), CommandError> {
        self.folders.push(folder.to_owned());
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            let of_folder = |source| CommandError::File {
                path: folder.clone(),
                source,
            };
            for found in fs::read_dir(&folder).map_err(of_folder)? {
                let found = found.map_err(of_folder)?;
                let path = found.path();
                if found.file_name().as_encoded_bytes().starts_with(b".") {
                    continue;
                }
                if found.file_type().map_err(of_folder)?.is_dir() {
                    folders.push(path);
                } else if fs::metadata(&path).is_ok_and(|data| data.is_file()) {
                    self.look_at_file(path, keys)?;
                }
            }
        }
        Ok(())
    }

    fn look_at_file(&mut self, path: PathBuf, keys: &KeySet) -> Result<(), CommandError> {
        let of_file = |source| CommandError::File {
            path: path.clone(),
            source,
        };
        let file = File::open(&path).map_err(of_file)?;
        let mut head = Vec::new();
        let mut beginning = (&file).take(HEADER_LEN as u64);
        beginning.read_to_end(&mut head).map_err(of_file)?;
        if !head.starts_with(&MAGIC) {
            return Ok(());
        }
        self.sealed_files += 1;
        let header = <&[u8; HEADER_LEN]>::try_from(head.as_slice());
        let header = header.map_err(|_| StreamError::Header("cut off"));
        let header = match header.and_then(Header::parse) {
            Ok(header) => header,
            Err(error) => {
                self.unknown.push(format!("{}: {error}", path.display()));
                return Ok(());
            }
        };
        let mut created = None;
        if let KeySource::KeyFile(number) = header.key_source {
            let verified = verify(file, |header| header.key(keys), None, &Progress::new());
            match verified {
                // of another key file, which has keys of the same numbers
                Err(StreamError::WrongKey(_)) => return Ok(()),
                Ok(verified) => created = Some(verified.footer.manifest.created),
                Err(_) => {}
            }
            let name = path.display().to_string();
            self.note(number, &name, |key| {
                key.files.insert(path.clone());
            });
        }
        for key in &mut self.keys {
            if key.entry.may_be_in(created) && !key.files.contains(&path) {
                key.may_hold.insert(path.clone());
            }
        }
        Ok(())
    }

    /// Prints it for people.
    pub fn print(&self) {
        for key in &self.keys {
            println!("key {}, {}", key.number, key.state);
            print_names("tables", key.tables.iter().cloned());
            print_names("views with constants under it", key.views.iter().cloned());
            let shown = |paths: &BTreeSet<PathBuf>| -> Vec<String> {
                paths
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect()
            };
            print_names("sealed files", shown(&key.files).into_iter());
            if key.state != KeyState::Active.word() {
                let may_hold = shown(&key.may_hold).into_iter();
                print_names("sealed files that may hold rows under it", may_hold);
            }
        }
        print_names("cannot be told", self.unknown.iter().cloned());
        match self.folders.len() {
            0 => println!("No folder was looked through: --folder names those with sealed files."),
            _ => println!("{} sealed files are in the folders.", self.sealed_files),
        }
    }
}

impl OfKey {
    /// All that is under it, as words; empty if there is nothing.
    pub fn words(&self) -> String {
        let of = [
            (self.tables.len(), "tables", self.tables.first().cloned()),
            (self.views.len(), "views", self.views.first().cloned()),
            (self.files.len(), "sealed files", shown(self.files.first())),
            (
                self.may_hold.len(),
                "sealed files that may hold rows under it",
                shown(self.may_hold.first()),
            ),
        ];
        let found = of.into_iter().filter(|(count, ..)| *count > 0);
        let words: Vec<String> = found
            .map(|(count, what, first)| format!("{count} {what} ({}…)", first.unwrap_or_default()))
            .collect();
        words.join(", ")
    }
}

fn shown(path: Option<&PathBuf>) -> Option<String> {
    path.map(|path| path.display().to_string())
}

trait MayBeIn {
    fn may_be_in(&self, created: Option<u64>) -> bool;
}

impl MayBeIn for KeyEntry {
    /// Whether a file of that time may hold rows that are under the key.
    fn may_be_in(&self, created: Option<u64>) -> bool {
        if matches!(self.state, KeyState::Next | KeyState::At(Rest::Destroyed)) {
            return false;
        }
        let Some(created) = created else {
            return true;
        };
        self.created <= created && self.rests_since.is_none_or(|since| created <= since)
    }
}

fn print_names(what: &str, names: impl ExactSizeIterator<Item = String>) {
    let count = names.len();
    if count == 0 {
        return;
    }
    println!("  {what}: {count}");
    for name in names.take(TOLD) {
        println!("    {name}");
    }
    if count > TOLD {
        println!("    …");
    }
}

fn asked(error: SqlError) -> CommandError {
    CommandError::Explain(format!("what is under the keys cannot be told: {error}"))
}

/// All protected tables and views that the account sees, those of migrations among them.
pub fn protected_tables(
    definitions: &mut Definitions,
    file: &ConfigFile,
    keys: &KeySet,
) -> Result<Vec<Table>, CommandError> {
    let names = definitions.protected_names().map_err(asked)?;
    let tables = definitions.tables(&names, keys, &file.policy);
    tables.map_err(asked)
}

/// Of each table that is to stay, those that have columns under another key than this one.
pub fn tables_to_rotate(tables: &[Table], active: KeyId) -> Vec<TableName> {
    let is_behind = |table: &&Table| {
        let mut columns = table.protected_columns();
        !table.view && table.damaged.is_none() && columns.any(|(_, p)| p.key_id != active)
    };
    let behind = tables.iter().filter(is_behind);
    let names = behind.map(|table| TableName::new(&table.database, &table.name));
    names.filter(|name| !is_of_migration(name)).collect()
}

/// The keys that cells of a column name.
fn keys_of_cells(
    definitions: &mut Definitions,
    table: &Table,
    column: &str,
) -> Result<BTreeSet<KeyId>, SqlError> {
    let rows = definitions.texts(&format!(
        "SELECT DISTINCT HEX(SUBSTR({column}, 2, 2)) FROM {}.{} WHERE {column} IS NOT NULL",
        identifier(&table.database),
        identifier(&table.name),
        column = identifier(column),
    ))?;
    let cells = rows.into_iter().flatten().flatten();
    let numbers = cells.filter_map(|cell| KeyId::from_str_radix(&cell, 16).ok());
    // zeros are in cells that a CHECK refuses
    Ok(numbers.filter(|number| *number > 0).collect())
}

/// Views with constants, and the keys that these were sealed under.
fn keys_of_views(definitions: &mut Definitions) -> Result<Vec<(String, KeyId)>, SqlError> {
    let rows = definitions.texts(
        "SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS \
         WHERE VIEW_DEFINITION LIKE '%left(%'",
    )?;
    let mut found = Vec::new();
    for row in rows {
        let [Some(database), Some(name), Some(text)] = &row[..] else {
            continue;
        };
        let numbers = std::cell::RefCell::new(BTreeSet::new());
        show_view_constants(text, |bytes, length| {
            let header = bytes.get(length..).map(cell_header);
            if let Some(Ok(header)) = header
                && header.column == *b"view"
            {
                numbers.borrow_mut().insert(header.key_id);
            }
            None
        });
        for number in numbers.into_inner() {
            found.push((format!("{database}.{name}"), number));
        }
    }
    Ok(found)
}
