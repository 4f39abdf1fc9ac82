//! Numbers of the servers' errors that are told apart, by the servers' own names for them.
//!
//! MySQL and MariaDB give the older ones the same numbers.

use onionskin_value::Family;

use crate::error::Failure;

/// `ER_QUERY_INTERRUPTED`
pub(crate) const KILLED: u16 = 1317;
/// The same on account of a limit: MariaDB's `max_statement_time`, MySQL's `max_execution_time`.
pub(crate) const OUT_OF_TIME: [u16; 2] = [1969, 3024];

/// Errors with which a server has rolled the whole transaction back: a deadlock, a commit that
/// failed, and what a replication plugin says in the place of a commit.
pub(crate) const ROLLED_BACK: [u16; 4] = [1213, 1180, 3100, 3101];
/// Errors of `LOCK TABLES` behind which the session holds no locks any more: the earlier ones were
/// given up first. Where an account may not lock a table, it keeps them.
pub(crate) const ENDS_LOCKS: [u16; 6] = [NO_SUCH_TABLE, 1205, 1213, 1317, 1356, 1969];
/// `ER_BAD_NULL_ERROR`: NULL for a NOT NULL column.
pub(crate) const NOT_NULL: u16 = 1048;
/// `ER_BAD_DB_ERROR`
pub(crate) const NO_SUCH_DATABASE: u16 = 1049;
/// `ER_BAD_FIELD_ERROR`: no such column.
pub(crate) const UNKNOWN_COLUMN: u16 = 1054;
/// `ER_DUP_ENTRY`
pub(crate) const DUPLICATE: u16 = 1062;
/// `ER_KEY_COLUMN_DOES_NOT_EXIST`
pub(crate) const UNKNOWN_KEY_COLUMN: u16 = 1072;
/// `ER_CANT_DROP_FIELD_OR_KEY`
pub(crate) const UNKNOWN_COLUMN_OR_KEY: u16 = 1091;
/// Errors of `SHOW CREATE TABLE` and the like by which there is no table of this name: names that
/// no table can have, too.
pub(crate) const IS_ABSENT: [u16; 7] = [
    NO_SUCH_DATABASE,
    NO_SUCH_TABLE,
    1059, // ER_TOO_LONG_IDENT
    WRONG_DATABASE_NAME,
    1103, // ER_WRONG_TABLE_NAME
    1109, // ER_UNKNOWN_TABLE, of information_schema
    ILL_FORMED,
];
/// Errors of the same by which it is not shown: the account may not see it, it was not locked by
/// `LOCK TABLES`, it is a view that is broken.
pub(crate) const IS_HIDDEN: [u16; 6] = [1044, 1142, 1143, 1227, NOT_LOCKED, 1356];
/// `ER_TABLE_NOT_LOCKED_FOR_WRITE`
pub(crate) const LOCKED_FOR_READING: u16 = 1099;
/// `ER_TABLE_NOT_LOCKED`
pub(crate) const NOT_LOCKED: u16 = 1100;
/// `ER_WRONG_DB_NAME`
pub(crate) const WRONG_DATABASE_NAME: u16 = 1102;
/// `ER_TOO_BIG_SELECT`
pub(crate) const TOO_BIG_SELECT: u16 = 1104;
/// `ER_UNKNOWN_ERROR`
pub(crate) const UNKNOWN_ERROR: u16 = 1105;
/// `ER_WRONG_VALUE_COUNT_ON_ROW`
pub(crate) const COLUMN_COUNT: u16 = 1136;
/// `ER_NO_SUCH_TABLE`
pub(crate) const NO_SUCH_TABLE: u16 = 1146;
pub(crate) const SYNTAX: u16 = 1064;
/// `ER_WARN_DATA_OUT_OF_RANGE`
pub(crate) const OUT_OF_RANGE: u16 = 1264;
/// `ER_TRUNCATED_WRONG_VALUE`
pub(crate) const TRUNCATED: u16 = 1292;
/// `ER_BINLOG_UNSAFE_STATEMENT`
pub(crate) const UNSAFE_STATEMENT: u16 = 1592;
/// `ER_NO_DEFAULT_FOR_FIELD`
pub(crate) const NO_DEFAULT: u16 = 1364;
/// `ER_UNSUPPORTED_ENGINE_FOR_DEFAULT_EXPRESSION`, as MySQL says it of an engine
pub(crate) const NO_EXPRESSION_AS_DEFAULT: u16 = 3774;
/// `ER_ROW_IS_REFERENCED_2`
pub(crate) const REFERENCED_ROW: u16 = 1451;
/// `ER_NO_REFERENCED_ROW_2`
pub(crate) const NO_REFERENCED_ROW: u16 = 1452;
/// MySQL's `ER_MALFORMED_PACKET`
pub(crate) const MALFORMED_PACKET: u16 = 1835;
/// MySQL's `ER_WRONG_VALUE`, of a constant beside a date or time.
pub(crate) const WRONG_MOMENT: u16 = 1525;
/// `ER_WARN_DEPRECATED_SYNTAX_NO_REPLACEMENT`: a warning.
pub(crate) const DEPRECATED_SYNTAX: u16 = 1681;
/// `ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION`
pub(crate) const READ_ONLY: u16 = 1792;
/// `ER_DUP_INDEX`: a note about an index over the columns of another one.
pub(crate) const DUPLICATE_INDEX: u16 = 1831;
/// MySQL's `ER_CHECK_CONSTRAINT_VIOLATED`
pub(crate) const CHECK_OF_MYSQL: u16 = 3819;
/// MariaDB's `ER_CONSTRAINT_FAILED`
pub(crate) const CHECK_OF_MARIADB: u16 = 4025;
/// Of a text that its character set does not allow.
pub(crate) const ILL_FORMED: u16 = 1300;

/// Whether servers make a warning of this error under IGNORE: a value that the column does not
/// take, or a row that a foreign key or a CHECK forbids.
pub(crate) fn is_ignored(code: u16) -> bool {
    is_check(code)
        || [
            NOT_NULL,
            OUT_OF_RANGE,
            TRUNCATED,
            REFERENCED_ROW,
            NO_REFERENCED_ROW,
        ]
        .contains(&code)
}

/// Whether this is the number of a CHECK that does not hold.
pub(crate) fn is_check(code: u16) -> bool {
    matches!(code, CHECK_OF_MYSQL | CHECK_OF_MARIADB)
}

/// Whether a CHECK of ours does not hold, by the error's or the warning's number and text.
pub(crate) fn is_own_check(code: u16, message: &[u8]) -> bool {
    is_check(code) && memchr::memmem::find(message, b"onionskin_").is_some()
}

/// Whether tables that are not what they were when a statement was planned can cause this error.
pub(crate) fn may_be_stale(code: u16, message: &[u8]) -> bool {
    match code {
        UNKNOWN_COLUMN
        | UNKNOWN_KEY_COLUMN
        | UNKNOWN_COLUMN_OR_KEY
        | COLUMN_COUNT
        | NO_SUCH_TABLE
        | NO_DEFAULT => true,
        _ => is_own_check(code, message),
    }
}

/// `ER_PARSE_ERROR` of a text, as the servers say it: they quote at most 80 bytes of what they do
/// not understand. MariaDB's three last ones are dots if there is more.
pub(crate) fn syntax(family: Family, near: &[u8], line: usize) -> Failure {
    const QUOTED: usize = 80;
    let server = match family {
        Family::MariaDb => "MariaDB",
        Family::MySql => "MySQL",
    };
    let (cut, dots) = match family {
        Family::MariaDb if near.len() > QUOTED => (QUOTED - 3, "..."),
        _ => (near.len().min(QUOTED), ""),
    };
    let near = String::from_utf8_lossy(&near[..cut]);
    let message = format!(
        "You have an error in your SQL syntax; check the manual that corresponds to your {server} server version for the \
         right syntax to use near '{near}{dots}' at line {line}"
    );
    Failure::Server {
        code: SYNTAX,
        state: *b"42000",
        message: message.into_bytes(),
    }
}
