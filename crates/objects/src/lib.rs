//! Object storage that speaks S3, as a place for sealed files.
//!
//! A bucket is a [`Store`](onionskin_backup::store::Store), as a folder is one. Commands know
//! nothing else of it.
//!
//! | module | what it is |
//! |---|---|
//! | [`address`] | `s3://bucket/prefix` taken apart |
//! | [`settings`] | region, endpoint, authorities: from the environment and the shared profile |
//! | `client` | one request: signed, sent, read, repeated |
//! | `xml` | what the server says, as far as it is needed |
//! | `upload` | a stream of unknown length, in parts |
//! | `object` | an object that is read from anywhere, ahead of its reader |
//! | [`bucket`] | all of it as a store |
//! | [`fault`] | what can go wrong, and the way out |
//!
//! # What is promised
//!
//! - An object is there whole or not at all, and replaces none. What a killed process leaves is an
//!   unfinished upload, which no list shows.
//! - Memory is bounded: four parts of 16 MiB and one that is being filled, or four pieces of 8 MiB
//!   that are read ahead. Parts grow with objects of more than 62 GiB; see `upload`.
//! - Every request ends: each read and write has a time, and so has the whole. Requests are
//!   repeated with growing pauses, and not for ever.
//! - An object that is replaced while it is read is an error, not a mixture.
//!
//! All I/O blocks. No asynchronous runtime is used.

pub mod address;
pub mod bucket;
mod client;
pub mod fault;
mod object;
pub mod settings;
mod upload;
mod xml;

pub use address::Address;
pub use bucket::Bucket;
pub use fault::Fault;
pub use settings::Settings;
