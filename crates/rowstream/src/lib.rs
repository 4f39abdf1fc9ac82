//! Rows that move: from the binary log of MySQL and MariaDB, and from tables into other tables.
//!
//! | module | what it is |
//! |---|---|
//! | [`client`] | a connection that logs in by itself, runs statements, and becomes a replica's connection |
//! | [`binlog`] | the stream of events, transactions, rows and typed values |
//! | [`feed`] | from the binary log to changes of keys, in a thread |
//! | [`session`] | a connection on which values arrive as they are stored |
//! | [`key`] | the unique key that rows are found by |
//! | [`pending`] | what has changed: the last thing that happened to each key, and why that is enough |
//! | [`route`] | how rows get from the old table into the new one |
//! | [`copy`], [`apply`] | the rows that were there, and those that have changed |
//! | [`meeting`] | which two rows have one value of a unique key |
//! | [`checksum`] | comparing both tables |
//! | [`checkpoint`] | what it takes to go on after a kill |

pub mod apply;
pub mod binlog;
pub mod checkpoint;
pub mod checksum;
pub mod client;
pub mod copy;
mod error;
pub mod feed;
pub mod key;
mod line;
pub mod meeting;
pub mod pending;
pub mod route;
pub mod session;

pub use error::RowError;
