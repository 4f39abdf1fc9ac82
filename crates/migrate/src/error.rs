//! Why a table is not changed, or not yet.

use onionskin_rowstream::RowError;
use onionskin_rowstream::binlog::BinlogError;
use onionskin_rowstream::session::SqlError;

/// What a migration ends with when it cannot go on. Unless the text says otherwise, the table is as
/// it was, and `--resume` goes on or `--abort` cleans up.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// It was refused before anything was touched.
    #[error("{table} cannot be migrated: {reason}")]
    Refused {
        /// The table.
        table: String,
        /// What is in the way, and the way out.
        reason: String,
    },
    /// What was asked for makes no sense.
    #[error("{0}")]
    Request(String),
    /// The server refused a statement, or the connection broke.
    #[error("{doing}: {source}")]
    Sql {
        /// What was attempted.
        doing: &'static str,
        /// What the server said.
        source: SqlError,
    },
    /// Rows could not be copied, written or compared.
    #[error(transparent)]
    Rows(#[from] RowError),
    /// The binary log cannot be followed.
    #[error("the binary log: {0}")]
    Binlog(#[from] BinlogError),
    /// The old table's definition was changed meanwhile.
    #[error(
        "the table was changed by another statement while it was migrated ({0}): clean up with --abort and begin again"
    )]
    Changed(String),
    /// A table is not the one that the migration began with or made.
    #[error(
        "{table} is not the table that this migration knows: {what}; somebody has changed or exchanged it on the server. \
         Nothing is written to it: clean up with --abort and begin again"
    )]
    Exchanged {
        /// The table.
        table: String,
        /// What is different.
        what: String,
    },
    /// The table is not the one that was pinned. The words are those of the proxy's refusal.
    #[error(
        "OS1109: {table} is not the table that was pinned: {what}. Nothing was done. Find out who changed the table. If the change was wanted, \
         run onionskin pin --accept; otherwise restore the table from a backup"
    )]
    NotPinned {
        /// The table.
        table: String,
        /// What is different.
        what: String,
    },
    /// The command line does not say that the server may learn so much.
    #[error("{0}")]
    NotAllowed(String),
    /// The new table cannot hold the rows of the old one.
    #[error(
        "the new table does not take a row of the old one: {message}; change the rows or the new definition, and begin again after --abort"
    )]
    Conflict {
        /// What the server said, with the key.
        message: String,
    },
    /// Rows differ although they were written again.
    #[error(
        "{count} rows differ between the old and the new table though they were written again, first of all those with the keys {keys}: \
         nothing was switched; clean up with --abort and report this"
    )]
    Differs {
        /// How many.
        count: usize,
        /// Some of them.
        keys: String,
    },
    /// The tables could not be locked in time, again and again.
    #[error(
        "the table could not be switched within {attempts} attempts, because {reason}: nothing is lost; look for long transactions and try --resume"
    )]
    NoSwitch {
        /// How often it was tried.
        attempts: u32,
        /// What happened at the last attempt.
        reason: String,
    },
    /// The tables cannot be exchanged, however often it is tried.
    #[error(
        "the table cannot be switched: {0}; nothing is lost: mend it and --resume, or give it up with --abort"
    )]
    CannotSwitch(String),
    /// Between two renames nothing could be done any more.
    #[error(
        "{table} was renamed to {old}, and there is no table {table} now, because the server could not be reached or does not give the name \
         back ({reason}): no row is lost; --resume and --abort give the table its name back"
    )]
    Nameless {
        /// The table.
        table: String,
        /// What it is called meanwhile.
        old: String,
        /// What happened last.
        reason: String,
    },
    /// Another migration of this table runs.
    #[error(
        "another process is migrating {0}, or its sessions have not ended yet: try again in a moment"
    )]
    Busy(String),
    /// A transaction keeps a snapshot in which rows of the new table are missing.
    #[error(
        "session {session} has a transaction open since {since}, in which a part of the new table's rows could not be seen: nothing is lost; \
         end it, and --resume goes on"
    )]
    OldSnapshot {
        /// The session's number.
        session: String,
        /// When it began, by the server's clock.
        since: String,
    },
    /// The old table cannot be kept up to date any more.
    #[error(
        "there is no way back to the old table any more, because {0}; the new table is in place and right: --finish ends this"
    )]
    NoWayBack(String),
    /// The connection broke while something was on its way.
    #[error(
        "the connection to the server broke ({0}): no row is lost; --status tells whether a migration has begun, and --resume goes on with it"
    )]
    Lost(String),
    /// Nothing came from the binary log for too long.
    #[error(
        "the binary log does not bring what was written {0} s ago: --resume goes on from the last checkpoint"
    )]
    Silent(u64),
}

impl MigrateError {
    /// Gives an error of the server its context.
    pub(crate) fn sql(doing: &'static str) -> impl Fn(SqlError) -> Self {
        move |source| Self::Sql { doing, source }
    }

    /// Whether a statement waited for somebody else's lock for too long.
    pub(crate) fn waited_in_vain(&self) -> bool {
        match self {
            Self::Sql { source, .. } | Self::Rows(RowError::Sql(source)) => source.waited_in_vain(),
            _ => false,
        }
    }

    /// Says of a broken connection what it means here.
    pub(crate) fn of_lost_connection(self) -> Self {
        match self {
            Self::Rows(RowError::Sql(source)) if source.code == 0 => Self::Lost(source.message),
            Self::Sql { doing, source } if source.code == 0 => {
                Self::Lost(format!("{doing}: {}", source.message))
            }
            Self::Binlog(error) if error.is_disconnect() => Self::Lost(error.to_string()),
            other => other,
        }
    }

    /// Whether trying again without another request cannot help.
    pub fn is_about_the_request(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. } | Self::Request(_) | Self::NotAllowed(_) | Self::NotPinned { .. }
        )
    }
}

impl From<SqlError> for MigrateError {
    fn from(source: SqlError) -> Self {
        Self::Rows(RowError::Sql(source))
    }
}

pub(crate) type Result<T> = std::result::Result<T, MigrateError>;
