//! The MySQL wire protocol, as MySQL and MariaDB speak it, over blocking sockets.
//!
//! The crate knows bytes, not meaning: it reads and writes packets, decodes and encodes every
//! message the proxy takes part in, walks rows without copying cells, and follows a response from
//! its first packet to its last. It knows nothing about SQL, keys or encryption, and imports no
//! other crate of the project.
//!
//! From the bottom up:
//!
//! - [`stream`]: a socket, TCP or Unix, plain or under TLS; [`tls`] builds the TLS configurations.
//! - [`deadline`]: until when reads and writes may take.
//! - [`packets`]: [`Connection`], which frames payloads, counts sequence numbers and buffers both
//!   ways, so that a relayed statement costs four system calls.
//! - [`codec`]: the integers and strings from which all messages are made.
//! - [`messages`]: one file for each message, decode beside encode.
//! - [`binary_value`] and [`rows`]: parameters and cells of both protocols.
//! - [`response`]: [`ResponseTracker`], which says what each packet of a response is and which is
//!   the last.
//! - [`auth`]: the computations of the login methods that a relay cannot pass on as they are.
//! - [`trace`]: one readable line for each packet, never a value.
//!
//! # Promises
//!
//! No decoder panics, whatever the bytes; a message that cannot be understood is a
//! [`WireError::Malformed`]. Memory grows with the bytes that arrive, never with a length that a
//! header claims. Neither `Debug` output nor errors contain passwords, scrambles, statement text or
//! cell contents.

pub mod auth;
pub mod binary_value;
pub mod capabilities;
pub mod codec;
pub mod deadline;
mod error;
pub mod messages;
pub mod packets;
pub mod response;
pub mod rows;
pub mod stream;
pub mod tls;
pub mod trace;

pub use binary_value::{BinaryValue, ColumnType, ParamType};
pub use capabilities::{
    Capabilities, ColumnFlags, DefinitionForm, MariaDbCapabilities, StatusFlags,
};
pub use codec::{PutWire, Reader};
pub use deadline::Deadline;
pub use error::{WireError, WireResult};
pub use packets::{Connection, Direction};
pub use response::{ResponseTracker, Step};
pub use stream::{Socket, Transport};
