//! How many sessions there may be, in all, of an account, from an address.

use onionskin_wire::messages::ErrPacket;

/// Which limit another session would exceed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TooMany {
    /// `max_sessions`
    InAll,
    /// `max_sessions_per_account`, and the account.
    OfAccount(String),
    /// `max_sessions_per_address`
    FromAddress,
}

impl TooMany {
    /// The setting that says so.
    pub fn setting(&self) -> &'static str {
        match self {
            TooMany::InAll => "max_sessions",
            TooMany::OfAccount(_) => "max_sessions_per_account",
            TooMany::FromAddress => "max_sessions_per_address",
        }
    }

    /// What the client is told, with the numbers and the words of a server with such a limit:
    /// ER_CON_COUNT_ERROR and ER_TOO_MANY_USER_CONNECTIONS.
    pub fn packet(&self) -> ErrPacket<'static> {
        match self {
            TooMany::InAll | TooMany::FromAddress => {
                ErrPacket::new(1040, *b"08004", b"Too many connections".to_vec())
            }
            TooMany::OfAccount(account) => {
                let setting = self.setting();
                let text =
                    format!("User {account} already has more than '{setting}' active connections");
                ErrPacket::new(1203, *b"42000", text.into_bytes())
            }
        }
    }
}
