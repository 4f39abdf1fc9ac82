//! What two peers agree on at login, and the flags that travel with every answer.
//!
//! A capability holds for a session only when both sides set its bit. The proxy offers a client the
//! intersection of what the server offers with [`Capabilities::SUPPORTED`]: what it cannot read, it
//! does not agree to.
//!
//! MariaDB reuses the lowest bit. MySQL always sets it (`CLIENT_LONG_PASSWORD`, now without
//! meaning); a MariaDB server clears it, and then the last four of the reserved bytes of its
//! greeting, and of a client's answer, hold [`MariaDbCapabilities`]. The proxy passes the bit
//! through and offers those of [`MariaDbCapabilities::SUPPORTED`].

use bitflags::bitflags;

bitflags! {
    /// The `CLIENT_*` bits.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Capabilities: u32 {
        /// `CLIENT_LONG_PASSWORD`, `CLIENT_MYSQL` for MariaDB: the peer is not MariaDB with
        /// extended capabilities.
        const LONG_PASSWORD = 1;
        /// Affected rows of UPDATE count rows found rather than rows changed.
        const FOUND_ROWS = 1 << 1;
        /// Longer flags in column definitions.
        const LONG_FLAG = 1 << 2;
        /// The login names a database.
        const CONNECT_WITH_DB = 1 << 3;
        /// `database.table.column` is refused.
        const NO_SCHEMA = 1 << 4;
        /// zlib compression.
        const COMPRESS = 1 << 5;
        /// No meaning since 3.22.
        const ODBC = 1 << 6;
        /// `LOAD DATA LOCAL INFILE`.
        const LOCAL_FILES = 1 << 7;
        /// Spaces before the parenthesis of a function call (sets `IGNORE_SPACE` in `sql_mode`).
        const IGNORE_SPACE = 1 << 8;
        /// The protocol of version 4.1, the only one understood here.
        const PROTOCOL_41 = 1 << 9;
        /// `interactive_timeout` instead of `wait_timeout`.
        const INTERACTIVE = 1 << 10;
        /// TLS after the first packet.
        const SSL = 1 << 11;
        /// Client-side only.
        const IGNORE_SIGPIPE = 1 << 12;
        /// Status flags tell about transactions.
        const TRANSACTIONS = 1 << 13;
        /// Old name of the 4.1 protocol.
        const RESERVED = 1 << 14;
        /// Scrambles of 20 bytes, authentication data with a length byte.
        const SECURE_CONNECTION = 1 << 15;
        /// Several statements in one COM_QUERY.
        const MULTI_STATEMENTS = 1 << 16;
        /// Several results for one COM_QUERY.
        const MULTI_RESULTS = 1 << 17;
        /// Several results for one COM_STMT_EXECUTE.
        const PS_MULTI_RESULTS = 1 << 18;
        /// Named login methods.
        const PLUGIN_AUTH = 1 << 19;
        /// Connection attributes in the login.
        const CONNECT_ATTRS = 1 << 20;
        /// The login's authentication data has a length-encoded length.
        const PLUGIN_AUTH_LENENC_CLIENT_DATA = 1 << 21;
        /// An account with an expired password may log in to change it.
        const CAN_HANDLE_EXPIRED_PASSWORDS = 1 << 22;
        /// OK packets carry changes of the session's state.
        const SESSION_TRACK = 1 << 23;
        /// Rows end with an OK packet; column definitions are not followed by an EOF packet.
        const DEPRECATE_EOF = 1 << 24;
        /// Column definitions may be left out of results.
        const OPTIONAL_RESULTSET_METADATA = 1 << 25;
        /// Zstandard compression.
        const ZSTD_COMPRESSION = 1 << 26;
        /// Parameters in COM_QUERY.
        const QUERY_ATTRIBUTES = 1 << 27;
        /// More than one login method in a row.
        const MULTI_FACTOR_AUTHENTICATION = 1 << 28;
        /// Client-side only; MariaDB used it for progress reports.
        const CAPABILITY_EXTENSION = 1 << 29;
        /// Client-side only.
        const SSL_VERIFY_SERVER_CERT = 1 << 30;
        /// Client-side only.
        const REMEMBER_OPTIONS = 1 << 31;
    }
}

impl Capabilities {
    /// Everything the proxy can read, and therefore all that it may offer to a client or ask of a
    /// server.
    ///
    /// Not in it, on purpose: compression (unreadable), query attributes (they move the text of
    /// COM_QUERY), optional metadata (results without column definitions), login by several
    /// factors, expired passwords (behind such a login the server answers no question of the
    /// proxy's).
    pub const SUPPORTED: Self = Self::LONG_PASSWORD
        .union(Self::FOUND_ROWS)
        .union(Self::LONG_FLAG)
        .union(Self::CONNECT_WITH_DB)
        .union(Self::ODBC)
        .union(Self::LOCAL_FILES)
        .union(Self::IGNORE_SPACE)
        .union(Self::PROTOCOL_41)
        .union(Self::INTERACTIVE)
        .union(Self::SSL)
        .union(Self::IGNORE_SIGPIPE)
        .union(Self::TRANSACTIONS)
        .union(Self::RESERVED)
        .union(Self::SECURE_CONNECTION)
        .union(Self::MULTI_STATEMENTS)
        .union(Self::MULTI_RESULTS)
        .union(Self::PS_MULTI_RESULTS)
        .union(Self::PLUGIN_AUTH)
        .union(Self::CONNECT_ATTRS)
        .union(Self::PLUGIN_AUTH_LENENC_CLIENT_DATA)
        .union(Self::SESSION_TRACK)
        .union(Self::DEPRECATE_EOF);

    /// True when the greeting or login carrying these bits also carries [`MariaDbCapabilities`].
    pub fn has_mariadb_extension(self) -> bool {
        !self.contains(Self::LONG_PASSWORD)
    }
}

bitflags! {
    /// MariaDB's own capabilities (bits 32 and up in its sources), in the last four reserved bytes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct MariaDbCapabilities: u32 {
        /// Progress reports inside error packets.
        const PROGRESS = 1;
        /// COM_MULTI, withdrawn.
        const COM_MULTI = 1 << 1;
        /// COM_STMT_BULK_EXECUTE.
        const STMT_BULK_OPERATIONS = 1 << 2;
        /// Extended type information in column definitions.
        const EXTENDED_METADATA = 1 << 3;
        /// Column definitions are left out when a prepared statement is executed again.
        const CACHE_METADATA = 1 << 4;
        /// One result for each row of a bulk execution.
        const BULK_UNIT_RESULTS = 1 << 5;
    }
}

impl MariaDbCapabilities {
    /// What the proxy can read. Each of the others changes packets in ways that it would have to
    /// follow.
    pub const SUPPORTED: Self = Self::EXTENDED_METADATA;
}

/// The form of column definitions on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DefinitionForm {
    /// That of protocol 4.1.
    #[default]
    Standard,
    /// With what MariaDB tells besides of a type: `EXTENDED_METADATA` was agreed.
    Extended,
}

impl From<MariaDbCapabilities> for DefinitionForm {
    fn from(agreed: MariaDbCapabilities) -> Self {
        match agreed.contains(MariaDbCapabilities::EXTENDED_METADATA) {
            true => DefinitionForm::Extended,
            false => DefinitionForm::Standard,
        }
    }
}

bitflags! {
    /// The server's status flags in OK and EOF packets.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct StatusFlags: u16 {
        /// A transaction is open.
        const IN_TRANS = 1;
        /// `autocommit` is on.
        const AUTOCOMMIT = 1 << 1;
        /// Another result follows.
        const MORE_RESULTS = 1 << 3;
        /// The statement used no good index.
        const NO_GOOD_INDEX_USED = 1 << 4;
        /// The statement used no index.
        const NO_INDEX_USED = 1 << 5;
        /// COM_STMT_EXECUTE opened a cursor; rows come with COM_STMT_FETCH.
        const CURSOR_EXISTS = 1 << 6;
        /// COM_STMT_FETCH sent the last row.
        const LAST_ROW_SENT = 1 << 7;
        /// The current database was dropped.
        const DB_DROPPED = 1 << 8;
        /// `NO_BACKSLASH_ESCAPES` is in `sql_mode`.
        const NO_BACKSLASH_ESCAPES = 1 << 9;
        /// The columns of a prepared statement changed since it was prepared.
        const METADATA_CHANGED = 1 << 10;
        /// Slower than `long_query_time`.
        const QUERY_WAS_SLOW = 1 << 11;
        /// The result holds the OUT parameters of a CALL.
        const PS_OUT_PARAMS = 1 << 12;
        /// The open transaction is read only.
        const IN_TRANS_READONLY = 1 << 13;
        /// The OK packet carries changes of the session's state.
        const SESSION_STATE_CHANGED = 1 << 14;
        /// MariaDB: `ANSI_QUOTES` is in `sql_mode`.
        const ANSI_QUOTES = 1 << 15;
    }
}

bitflags! {
    /// Flags of a column definition.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ColumnFlags: u16 {
        /// NOT NULL.
        const NOT_NULL = 1;
        /// Part of the primary key.
        const PRI_KEY = 1 << 1;
        /// Part of a unique key.
        const UNIQUE_KEY = 1 << 2;
        /// Part of another key.
        const MULTIPLE_KEY = 1 << 3;
        /// A BLOB or TEXT.
        const BLOB = 1 << 4;
        /// UNSIGNED.
        const UNSIGNED = 1 << 5;
        /// ZEROFILL.
        const ZEROFILL = 1 << 6;
        /// Binary collation.
        const BINARY = 1 << 7;
        /// ENUM.
        const ENUM = 1 << 8;
        /// AUTO_INCREMENT.
        const AUTO_INCREMENT = 1 << 9;
        /// TIMESTAMP.
        const TIMESTAMP = 1 << 10;
        /// SET.
        const SET = 1 << 11;
        /// NOT NULL without a default.
        const NO_DEFAULT_VALUE = 1 << 12;
        /// Set to the current time by UPDATE.
        const ON_UPDATE_NOW = 1 << 13;
        /// Part of some key (internal to the server).
        const PART_KEY = 1 << 14;
        /// Shown as a number.
        const NUM = 1 << 15;
    }
}
