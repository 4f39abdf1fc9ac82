//! Row changes from the binary log of MySQL and MariaDB.
//!
//! | module | what it is |
//! |---|---|
//! | [`client`] | a connection that logs in by itself, runs statements, and becomes a replica's connection |
//! | [`binlog`] | the stream of events, transactions, rows and typed values |

pub mod binlog;
pub mod client;
