//! Why nothing can be written or read.

use std::{io, path::PathBuf};

/// Why nothing can be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// A file or the folder.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// There is no room for what the next statements would have to be recorded as.
    #[error("{}: no room is left for the audit log: {source}", path.display())]
    NoRoom {
        /// The part that is written.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}
