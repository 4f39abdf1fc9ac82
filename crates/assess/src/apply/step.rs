//! One thing that there is to do.

use std::{fmt, path::PathBuf};

use crate::text::{count, shown};

/// One thing that there is to do, or that is left as it is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// MariaDB's key file, encrypted, with the file that opens it.
    MakeKeyFile { folder: PathBuf },
    /// A folder for MySQL's keyring.
    MakeKeyringFolder { folder: PathBuf },
    /// A manifest of MySQL's, or the settings of its component.
    WriteManifest {
        path: PathBuf,
        text: String,
        for_server: bool,
    },
    /// Our lines in a file of options; without lines they are taken away.
    WriteOptions { path: PathBuf, lines: Vec<String> },
    /// Somebody has to restart the server.
    Restart { why: String },
    /// A setting of the running server, kept by MySQL over restarts.
    Set { name: &'static str, value: String },
    /// Whether new tables of a database are encrypted.
    Database { name: String, on: bool },
    /// A general tablespace, while its tables are read and written.
    Tablespace { name: String, on: bool },
    /// A table that the server rewrites.
    Table {
        database: String,
        name: String,
        bytes: u64,
        on: bool,
    },
    /// MariaDB's threads encrypt or decrypt.
    Background { left: usize, on: bool },
    /// A new file of the binary log.
    RotateLogs,
    /// The oldest files of the binary log.
    PurgeLogs { files: usize },
    /// Nothing is done, though something stays as it should not, and why.
    Leave { what: String, why: String },
    /// Something to know.
    Note { text: String },
}

impl Step {
    /// Whether we do it, and not somebody else or nobody.
    pub(super) fn is_done_here(&self) -> bool {
        !matches!(
            self,
            Self::Restart { .. } | Self::Leave { .. } | Self::Note { .. }
        )
    }
}

fn word(on: bool) -> &'static str {
    match on {
        true => "encrypt",
        false => "decrypt",
    }
}

impl fmt::Display for Step {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MakeKeyFile { folder } => {
                write!(to, "make an encrypted key file in {}", folder.display())
            }
            Self::MakeKeyringFolder { folder } => {
                write!(to, "make the folder {} for the keyring", folder.display())
            }
            Self::WriteManifest { path, text, .. } => {
                write!(to, "write {}: {}", path.display(), text.trim())
            }
            Self::WriteOptions { path, lines } if lines.is_empty() => {
                write!(to, "take our options out of {}", path.display())
            }
            Self::WriteOptions { path, lines } => {
                write!(to, "write into {}: {}", path.display(), lines.join(", "))
            }
            Self::Restart { why } => write!(to, "restart the server: {why}"),
            Self::Set { name, value } => write!(to, "set {name} = {value}"),
            Self::Database { name, on } => write!(
                to,
                "new tables of the database {}: {} them",
                shown(name),
                word(*on)
            ),
            Self::Tablespace { name, on } => {
                write!(to, "{} the tablespace {}", word(*on), shown(name))
            }
            Self::Table {
                database,
                name,
                bytes,
                on,
            } => write!(
                to,
                "{} {}.{} ({} MiB); its writers wait meanwhile",
                word(*on),
                shown(database),
                shown(name),
                bytes.div_ceil(1 << 20)
            ),
            Self::Background { left, on } => write!(
                to,
                "have the server {} {}, while they are read and written",
                word(*on),
                count(*left, "tablespace")
            ),
            Self::RotateLogs => to.write_str("begin a new file of the binary log"),
            Self::PurgeLogs { files } => write!(
                to,
                "remove the oldest {} of the binary log, for good",
                count(*files, "file")
            ),
            Self::Leave { what, why } => write!(to, "{what}: {why}"),
            Self::Note { text } => to.write_str(text),
        }
    }
}
