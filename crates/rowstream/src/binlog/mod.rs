//! The binary log, followed as a replica follows it.
//!
//! ```text
//! server ─ EventStream ─▶ raw events ─ Follower ─▶ transactions of typed rows
//!              └─▶ the archive keeps the events as they are
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`stream`] | registers as a replica, asks for the log from a position, checks checksums |
//! | [`event`] | the head of an event and the bodies that are needed to follow |
//! | [`position`] | files, offsets and GTIDs of both families |
//! | [`table_map`] | what an event says of a table's columns |
//! | [`columns`] | what the server's catalogue says of them: names, signs, generated columns |
//! | [`rows`] | before and after images |
//! | [`value`] | cells, exact for every type |
//! | [`json`] | MySQL's binary JSON as the server would print it |
//! | [`compression`] | MySQL's compressed transactions, MariaDB's compressed events |
//! | [`follower`] | whole transactions of the tables that are wanted |
//! | [`requirements`] | the server's settings without which rows cannot be followed |
//!
//! # What is promised
//!
//! - An event that is not understood and that the server does not mark as ignorable is an error,
//!   never skipped.
//! - Events of tables that nobody asked for are skipped without being decoded.
//! - Memory is bounded by the largest event, not by the largest transaction: a long transaction
//!   comes in pieces ([`Transaction::last`]). A transaction is in the binlog only after it has been
//!   committed, so a piece is never taken back.
//! - [`Position`] of a [`Transaction`] is where to go on after it: nothing is lost, and what was
//!   delivered whole is not repeated.

pub mod columns;
pub mod compression;
pub mod error;
pub mod event;
pub mod follower;
pub mod json;
pub mod position;
pub mod requirements;
pub mod rows;
pub mod stream;
pub mod table_map;
pub mod value;

pub use columns::{Column, TableColumns};
pub use error::BinlogError;
pub use follower::{Change, FollowOptions, Follower, Item, RowKind, Tables, Transaction};
pub use onionskin_schema::TableName;
pub use position::{Gtid, GtidPosition, Position};
pub use rows::{Row, RowImage};
pub use stream::{EventStream, StreamOptions, check_reader};
pub use value::Value;
