//! What was read of a server and of its machine, before anybody judges it.
//!
//! Each piece is [`Seen`]: known, hidden with what it needs, or absent because this server has no
//! such thing. A check cannot take "hidden" for "nothing there".

use std::{collections::BTreeMap, path::PathBuf};

use onionskin_rowstream::client::Family;
use serde::{Deserialize, Serialize};

/// A piece of knowledge.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen<T> {
    /// All of it.
    Known(T),
    /// Not with this account; what would show it.
    Hidden(String),
    /// The server has no such thing.
    Absent,
}

impl<T> Seen<T> {
    /// What is known of it.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            _ => None,
        }
    }
}

/// How the server was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    /// A Unix socket: nobody is between.
    Socket,
    /// TCP without TLS.
    Plain,
    /// TLS, with whoever answered.
    Encrypted,
    /// TLS, with a server whose certificate was verified.
    Verified,
}

/// A file of InnoDB's.
#[derive(Clone, Debug, PartialEq)]
pub struct Tablespace {
    /// `app/users`, as the server names files.
    pub name: String,
    /// What it is for.
    pub kind: SpaceKind,
    /// Whether all its pages are encrypted.
    pub encrypted: bool,
    /// Pages are being encrypted, or decrypted, at the moment.
    pub rotating: bool,
}

/// What a tablespace is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceKind {
    /// Tables.
    Data,
    /// The system tablespace, or MySQL's data dictionary.
    System,
    /// Undo logs.
    Undo,
    /// Temporary tables.
    Temporary,
}

/// A table that InnoDB does not store.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignTable {
    /// `app.users`
    pub name: String,
    /// `MyISAM`, `Aria`, …
    pub engine: String,
}

/// A file of the binary log.
#[derive(Clone, Debug, PartialEq)]
pub struct BinaryLog {
    /// Its name.
    pub name: String,
    /// Whether it is encrypted; MariaDB does not say.
    pub encrypted: Option<bool>,
}

/// Where keys of the server's own encryption lie.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyPlace {
    /// The component or plugin.
    pub name: String,
    /// Whether it works.
    pub active: bool,
    /// The file with the keys, if they are in one.
    pub file: Option<String>,
}

/// An account that can log in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// `app@%`
    pub name: String,
    /// From where.
    pub host: String,
    /// How it logs in.
    pub method: String,
    /// Nothing is asked of it.
    pub without_password: bool,
    /// It may not log in.
    pub locked: bool,
    /// It must be under TLS.
    pub requires_tls: bool,
    /// It is a role.
    pub role: bool,
}

/// A privilege of an account.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// `'app'@'%'`, as the server writes it.
    pub grantee: String,
    /// `SUPER`
    pub privilege: String,
    /// `*.*`, `app.*`, `app.users`
    pub on: String,
}

/// A connection to a source, where the server is a replica.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// Its name, empty for the unnamed one.
    pub name: String,
    /// TLS is used.
    pub tls: bool,
    /// The source's certificate is verified.
    pub verifies: bool,
}

/// A table of which the proxy protects columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtectedTable {
    /// `app.users`
    pub name: String,
    /// Columns that are sealed, each with what the server may do with it.
    pub sealed: Vec<String>,
    /// Columns that lie plain beside them.
    pub plain: Vec<String>,
    /// What is wrong with its metadata.
    pub damaged: Option<String>,
    /// When it was made, in seconds since 1970.
    pub made: Option<i64>,
}

/// What an account of our own may do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rights {
    /// It sees every table of every database.
    pub sees_all_tables: bool,
    /// It sees all accounts.
    pub sees_accounts: bool,
    /// It has PROCESS.
    pub process: bool,
}

/// A file of the binary log, read on the server's machine.
#[derive(Clone, Debug, PartialEq)]
pub struct LogFile {
    /// Its name.
    pub name: String,
    /// Whether its events are encrypted.
    pub encrypted: bool,
    /// When it was begun, in seconds since 1970, if that can be read.
    pub begun: Option<i64>,
}

/// A file with keys, looked at on the server's machine.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its permissions.
    pub mode: Option<u32>,
    /// It lies below the data directory.
    pub in_data_directory: bool,
}

/// What the server's own machine shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// The data directory.
    pub data: PathBuf,
    /// Files of the binary and relay logs.
    pub logs: Vec<LogFile>,
    /// Files with keys.
    pub keys: Vec<KeyFile>,
    /// The folder of temporary files lies in memory.
    pub temporary_in_memory: bool,
    /// Log files, error logs and the data directory that others than the owner may read, with
    /// their permissions.
    pub readable: Vec<(PathBuf, u32)>,
}

/// What was found when files were searched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Searched {
    /// `users.ibd: 5 times`, with which text by its number.
    pub hits: Vec<String>,
    /// How many files.
    pub files: usize,
    /// How many bytes.
    pub bytes: u64,
    /// Files that could not be read, and texts that were too short.
    pub left_out: Vec<String>,
    /// How many texts.
    pub texts: usize,
}

/// A backup in a folder.
#[derive(Clone, Debug, PartialEq)]
pub struct BackupFile {
    /// Below the folder.
    pub name: String,
    /// By its first bytes.
    pub kind: BackupKind,
}

/// What a file is by its first bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupKind {
    /// A stream of ours.
    Sealed,
    /// Another program's encryption.
    Foreign(&'static str),
    /// Readable by anybody who has it.
    Plain(&'static str),
    /// None of those that are known.
    Unknown,
    /// It cannot be read.
    Unreadable(String),
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Whose server it is.
    pub family: Family,
    /// `10.11.6-MariaDB`
    pub version: String,
    /// The account that asked.
    pub account: String,
    /// How the server was reached.
    pub link: Link,
    /// What that account may do.
    pub rights: Rights,
    /// Global variables, by small letters.
    pub variables: BTreeMap<String, String>,
    /// InnoDB's files.
    pub tablespaces: Seen<Vec<Tablespace>>,
    /// MySQL's databases, and whether new tables of each are encrypted.
    pub databases: Seen<Vec<(String, bool)>>,
    /// Tables of other engines.
    pub foreign_tables: Seen<Vec<ForeignTable>>,
    /// The binary log.
    pub binary_logs: Seen<Vec<BinaryLog>>,
    /// Consumers of statement texts that are on.
    pub consumers: Seen<Vec<String>>,
    /// Statements that are kept in `mysql.general_log` and `mysql.slow_log`.
    pub logged_in_tables: Seen<Vec<String>>,
    /// Where keys come from.
    pub keys: Seen<Vec<KeyPlace>>,
    /// Who may log in.
    pub accounts: Seen<Vec<Account>>,
    /// What they may do, as far as it matters here.
    pub grants: Seen<Vec<Grant>>,
    /// Sources of this server.
    pub channels: Seen<Vec<Channel>>,
    /// Replicas that are connected.
    pub replicas: Seen<Vec<String>>,
    /// Sessions over TCP without TLS, by account and host.
    pub plain_sessions: Seen<Vec<String>>,
    /// Names of tables and triggers that changes of tables leave behind.
    pub leftovers: Seen<Vec<String>>,
    /// Plugins that write statements, and are active.
    pub audit_plugins: Seen<Vec<String>>,
    /// Tables with sealed columns.
    pub protected: Seen<Vec<ProtectedTable>>,
    /// Tables that are there at all, without those of the server itself.
    pub tables: Seen<u64>,
    /// The server's machine, if it is this one; else why not.
    pub machine: Result<Machine, String>,
    /// What was planted, and looked for.
    pub planted: Option<Searched>,
    /// Values that were given, and looked for.
    pub searched: Option<Searched>,
    /// Backups of a folder.
    pub backups: Option<Vec<BackupFile>>,
}

impl Facts {
    /// A global variable.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Whether it is on. A word that is not known counts as off.
    pub fn is_on(&self, name: &str) -> bool {
        let value = self.variable(name).unwrap_or_default();
        ["ON", "1", "YES", "FORCE"]
            .iter()
            .any(|on| value.eq_ignore_ascii_case(on))
    }

    /// Whether it is MariaDB.
    pub fn is_mariadb(&self) -> bool {
        self.family == Family::MariaDb
    }

    /// What an account without all rights lacks, for lists that the server shortens in silence.
    pub fn missing_tables(&self) -> Option<String> {
        (!self.rights.sees_all_tables).then(|| "GRANT SELECT ON *.*".to_owned())
    }

    /// What it takes to look at the server's machine.
    pub fn missing_machine(&self) -> Option<String> {
        self.machine.as_ref().err().cloned()
    }
}

#[cfg(test)]
pub(crate) mod samples {
    use super::*;

    /// A server of which nothing is known but its family and variables.
    pub(crate) fn facts(family: Family, variables: &[(&str, &str)]) -> Facts {
        let hidden = || "GRANT SELECT ON *.*".to_owned();
        Facts {
            family,
            version: "10.11.0".into(),
            account: "root@localhost".into(),
            link: Link::Socket,
            rights: Rights {
                sees_all_tables: true,
                sees_accounts: true,
                process: true,
            },
            variables: variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            tablespaces: Seen::Hidden(hidden()),
            databases: Seen::Hidden(hidden()),
            foreign_tables: Seen::Hidden(hidden()),
            binary_logs: Seen::Hidden(hidden()),
            consumers: Seen::Hidden(hidden()),
            logged_in_tables: Seen::Hidden(hidden()),
            keys: Seen::Hidden(hidden()),
            accounts: Seen::Hidden(hidden()),
            grants: Seen::Hidden(hidden()),
            channels: Seen::Hidden(hidden()),
            replicas: Seen::Hidden(hidden()),
            plain_sessions: Seen::Hidden(hidden()),
            leftovers: Seen::Hidden(hidden()),
            audit_plugins: Seen::Hidden(hidden()),
            protected: Seen::Hidden(hidden()),
            tables: Seen::Hidden(hidden()),
            machine: Err("running on the server's machine".into()),
            planted: None,
            searched: None,
            backups: None,
        }
    }
}
