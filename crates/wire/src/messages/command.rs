//! The first byte of what a client sends once it is logged in.

use crate::error::{WireError, WireResult};

/// A client's command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the protocol's own, `COM_` left out
pub enum Command {
    Sleep,
    Quit,
    InitDb,
    Query,
    FieldList,
    CreateDb,
    DropDb,
    Refresh,
    Shutdown,
    Statistics,
    ProcessInfo,
    Connect,
    ProcessKill,
    Debug,
    Ping,
    Time,
    DelayedInsert,
    ChangeUser,
    BinlogDump,
    TableDump,
    ConnectOut,
    RegisterSlave,
    StmtPrepare,
    StmtExecute,
    StmtSendLongData,
    StmtClose,
    StmtReset,
    SetOption,
    StmtFetch,
    Daemon,
    BinlogDumpGtid,
    ResetConnection,
    Clone,
    SubscribeGroupReplicationStream,
    /// MariaDB's COM_STMT_BULK_EXECUTE.
    StmtBulkExecute,
    /// A byte without a meaning here.
    Unknown(u8),
}

/// Byte and name of every command; the one table from which all conversions are made.
const COMMANDS: &[(u8, Command, &str)] = &[
    (0x00, Command::Sleep, "COM_SLEEP"),
    (0x01, Command::Quit, "COM_QUIT"),
    (0x02, Command::InitDb, "COM_INIT_DB"),
    (0x03, Command::Query, "COM_QUERY"),
    (0x04, Command::FieldList, "COM_FIELD_LIST"),
    (0x05, Command::CreateDb, "COM_CREATE_DB"),
    (0x06, Command::DropDb, "COM_DROP_DB"),
    (0x07, Command::Refresh, "COM_REFRESH"),
    (0x08, Command::Shutdown, "COM_SHUTDOWN"),
    (0x09, Command::Statistics, "COM_STATISTICS"),
    (0x0a, Command::ProcessInfo, "COM_PROCESS_INFO"),
    (0x0b, Command::Connect, "COM_CONNECT"),
    (0x0c, Command::ProcessKill, "COM_PROCESS_KILL"),
    (0x0d, Command::Debug, "COM_DEBUG"),
    (0x0e, Command::Ping, "COM_PING"),
    (0x0f, Command::Time, "COM_TIME"),
    (0x10, Command::DelayedInsert, "COM_DELAYED_INSERT"),
    (0x11, Command::ChangeUser, "COM_CHANGE_USER"),
    (0x12, Command::BinlogDump, "COM_BINLOG_DUMP"),
    (0x13, Command::TableDump, "COM_TABLE_DUMP"),
    (0x14, Command::ConnectOut, "COM_CONNECT_OUT"),
    (0x15, Command::RegisterSlave, "COM_REGISTER_SLAVE"),
    (0x16, Command::StmtPrepare, "COM_STMT_PREPARE"),
    (0x17, Command::StmtExecute, "COM_STMT_EXECUTE"),
    (0x18, Command::StmtSendLongData, "COM_STMT_SEND_LONG_DATA"),
    (0x19, Command::StmtClose, "COM_STMT_CLOSE"),
    (0x1a, Command::StmtReset, "COM_STMT_RESET"),
    (0x1b, Command::SetOption, "COM_SET_OPTION"),
    (0x1c, Command::StmtFetch, "COM_STMT_FETCH"),
    (0x1d, Command::Daemon, "COM_DAEMON"),
    (0x1e, Command::BinlogDumpGtid, "COM_BINLOG_DUMP_GTID"),
    (0x1f, Command::ResetConnection, "COM_RESET_CONNECTION"),
    (0x20, Command::Clone, "COM_CLONE"),
    (
        0x21,
        Command::SubscribeGroupReplicationStream,
        "COM_SUBSCRIBE_GROUP_REPLICATION_STREAM",
    ),
    (0xfa, Command::StmtBulkExecute, "COM_STMT_BULK_EXECUTE"),
];

impl Command {
    /// The command a byte stands for.
    #[inline]
    pub fn from_byte(byte: u8) -> Self {
        // The table is dense up to the last MySQL command, so its index is the byte.
        match COMMANDS.get(usize::from(byte)) {
            Some(&(b, command, _)) if b == byte => command,
            _ => COMMANDS
                .iter()
                .find(|(b, ..)| *b == byte)
                .map_or(Self::Unknown(byte), |&(_, command, _)| command),
        }
    }

    /// The command of a payload; empty payloads have none.
    #[inline]
    pub fn of(payload: &[u8]) -> WireResult<Self> {
        payload
            .first()
            .map(|&b| Self::from_byte(b))
            .ok_or(WireError::Malformed("empty command"))
    }

    /// The byte that stands for the command.
    pub fn to_byte(self) -> u8 {
        if let Self::Unknown(byte) = self {
            return byte;
        }
        COMMANDS
            .iter()
            .find(|(_, command, _)| *command == self)
            .map_or(0xff, |(b, ..)| *b)
    }

    /// The protocol's name of the command.
    pub fn name(self) -> &'static str {
        COMMANDS
            .iter()
            .find(|(_, command, _)| *command == self)
            .map_or("unknown command", |(.., name)| name)
    }

    /// True when the server never answers it.
    pub fn has_no_response(self) -> bool {
        matches!(self, Self::Quit | Self::StmtClose | Self::StmtSendLongData)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_the_round_trip() {
        for byte in 0..=u8::MAX {
            assert_eq!(Command::from_byte(byte).to_byte(), byte);
        }
        assert_eq!(Command::from_byte(0x17), Command::StmtExecute);
        assert_eq!(Command::from_byte(0xfa), Command::StmtBulkExecute);
        assert_eq!(Command::from_byte(0x99), Command::Unknown(0x99));
        assert_eq!(Command::Query.name(), "COM_QUERY");
    }
}
