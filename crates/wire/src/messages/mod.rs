//! The messages, one file for each, decode beside encode.
//!
//! Decoders take a whole payload, including its first byte, and borrow from it wherever a message
//! lies on a hot path. Encoders append a payload to a `Vec<u8>`, so they write straight into a
//! connection's output buffer between [`begin_payload`](crate::Connection::begin_payload) and
//! [`end_payload`](crate::Connection::end_payload).

mod auth_more_data;
mod auth_switch;
mod change_user;
mod column_definition;
mod command;
mod eof;
mod err;
mod execute;
mod field_list;
mod handshake;
mod handshake_response;
mod long_data;
mod ok;
mod prepare_ok;
mod ssl_request;
mod statement;

pub use auth_more_data::AuthMoreData;
pub use auth_switch::AuthSwitchRequest;
pub use change_user::ComChangeUser;
pub use column_definition::{ColumnDefault, ColumnDefinition};
pub use command::Command;
pub use eof::EofPacket;
pub use err::ErrPacket;
pub use execute::{ComStmtExecute, CursorType, ExecuteWriter, Param, Params};
pub use field_list::ComFieldList;
pub use handshake::InitialHandshake;
pub use handshake_response::{HandshakeResponse41, attributes};
pub use long_data::ComStmtSendLongData;
pub use ok::{OkPacket, SessionChange, SessionChanges};
pub use prepare_ok::ComStmtPrepareOk;
pub use ssl_request::SslRequest;
pub use statement::{ComStmtFetch, encode_statement_command, statement_id};
