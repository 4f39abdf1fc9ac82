//! What still lies open.
//!
//! Encrypting columns closes one door. This crate looks at the others, and says what it has seen as
//! a checklist: `onionskin assess server` goes through the layers of a server and of its
//! surroundings, `onionskin assess data` through the columns of a database, and `onionskin assess
//! queries` through what an application asks of it. `onionskin assess leaks` attacks what
//! capabilities show of columns.
//!
//! | module | what it is |
//! |---|---|
//! | [`apply`] | the server's own encryption turned on and off |
//! | [`data`] | kinds of personal data, what columns hold, and the reader that samples |
//! | [`leaks`] | attacks on equality tokens, order keys, grams and lengths, played on a database's own rows |
//! | [`queries`] | statements, the planner asked what becomes of them, and the smallest policy |
//! | [`server`] | facts about a server, checks over them, and the reader that asks |
//! | [`finding`] | what a check says |
//! | [`document`] | the report as sections and entries, as HTML, Markdown and text |
//! | [`files`] | the three files of a report |
//! | [`reader`] | a connection that reads, with bounds |
//! | [`text`] | words of the server, made harmless |
//!
//! # Rules
//!
//! - A check is a function from facts to a verdict. It asks nobody, so it is tested with facts that
//!   were written down.
//! - What cannot be seen is never said to be fine. It is a finding of its own, with the privilege
//!   that is missing.
//! - The server is not trusted. Its answers are bounded, its names are escaped wherever they are
//!   shown, and of files that it names only counts are told.

pub mod apply;
pub mod data;
pub mod document;
mod error;
pub mod files;
pub mod finding;
mod html;
pub mod leaks;
mod markdown;
pub mod queries;
pub mod reader;
pub mod server;
mod terminal;
pub mod text;

pub use error::AssessError;
