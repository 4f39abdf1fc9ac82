//! What can go wrong while the binlog is followed.

use std::io::ErrorKind;

use onionskin_schema::TableName;
use onionskin_wire::WireError;

use crate::client::ClientError;

/// Why the binlog cannot be followed, or not any further.
#[derive(Debug, thiserror::Error)]
pub enum BinlogError {
    /// The connection failed or the server refused. [`BinlogError::is_disconnect`] tells whether
    /// connecting again may help.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// The server was silent for longer than three heartbeats.
    #[error("the server has sent nothing for {0} s, not even a heartbeat")]
    Silent(u64),
    /// The bytes of an event are not what its type says.
    #[error("the binlog's {0} is not understood")]
    Malformed(&'static str),
    /// The checksum of an event is wrong.
    #[error("an event of {file} before position {offset} has a wrong checksum")]
    Checksum {
        /// Binlog file.
        file: String,
        /// Where the event ends.
        offset: u64,
    },
    /// An event of a type that is not known here and must not be ignored.
    #[error("the binlog holds an event of type {0}, which is not known here")]
    UnknownEvent(u8),
    /// Something that is known but cannot be followed.
    #[error("{what}; {way_out}")]
    Unsupported {
        /// What was met.
        what: String,
        /// What to do about it.
        way_out: &'static str,
    },
    /// The server's settings do not allow it.
    #[error("{variable} is {is}, but must be {must}")]
    Setting {
        /// The server's variable.
        variable: &'static str,
        /// Its value.
        is: String,
        /// What is needed.
        must: &'static str,
    },
    /// The table's columns in the binlog are not those that the catalogue described.
    #[error("the definition of {table} has changed: {detail}")]
    TableChanged {
        /// Which table.
        table: TableName,
        /// In what.
        detail: String,
    },
    /// The server writes an incident: its binlog has lost events.
    #[error("the server reports that its binlog has a gap")]
    Incident,
}

impl BinlogError {
    /// Whether only the connection broke, so that following again from the last position may
    /// succeed.
    pub fn is_disconnect(&self) -> bool {
        match self {
            Self::Silent(_) => true,
            Self::Client(ClientError::Wire(error)) => error.is_disconnect() || error.is_timeout(),
            _ => false,
        }
    }

    /// Whether nobody listens where the server should, as while it starts.
    pub fn is_unanswered(&self) -> bool {
        match self {
            Self::Client(ClientError::Wire(WireError::Io(error))) => matches!(
                error.kind(),
                ErrorKind::ConnectionRefused | ErrorKind::NotFound
            ),
            _ => false,
        }
    }
}

impl From<WireError> for BinlogError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Malformed(what) => Self::Malformed(what),
            other => Self::Client(other.into()),
        }
    }
}

/// Result of following the binlog.
pub type BinlogResult<T> = Result<T, BinlogError>;
