//! Changing a table while the application writes to it: encrypt, decrypt, other capabilities, other
//! keys, any ALTER.
//!
//! A new table is made beside the old one, filled, kept up to date from the binary log, compared
//! with the old one row by row, and put in its place. No trigger, no lock but for the last moment;
//! a kill at any time costs time and no row.
//!
//! | phase | what happens | after a kill |
//! |---|---|---|
//! | prepare | checkpoint, new table, position in the binary log | begins again |
//! | copy | rows in the order of the key; changes in between | goes on from the last chunk |
//! | check | both tables are compared; differences are mended once | compares again |
//! | switch | lock, last changes, rename | done, or goes on as before |
//! | reverse | on request the old table is kept up to date for a way back | goes on |
//!
//! | file | what it is |
//! |---|---|
//! | `job`, `operation` | what is asked for, of which table and how |
//! | `begin`, `forward` | the phases up to the switch |
//! | `resume`, `abort` | going on after a kill; giving up |
//! | `phase`, `locks`, `setup` | how far a migration has come; one at a time; what its rounds need |
//! | `facts`, `preflight` | what the server says of the table, and what is refused |
//! | `privileges` | what the account may do |
//! | `definition`, `sealing`, `tenants` | the new table; values on their way into it; whose rows stay whose |
//! | `imprint`, `pinned`, `consent` | that the tables are the ones that are meant; what the server may learn |
//! | `engine` | rounds of changes, with copying and comparing between them |
//! | `specifications`, `modify` | what stands in `--alter` and `--modify` |
//! | `statement` | what a statement in the binary log means |
//! | `snapshots` | transactions that would see a part of the rows |
//! | `switch` | the last moment |
//! | `cluster`, `others`, `everywhere` | Galera: what its nodes must be like; the other ones; the last moment there |
//! | `stragglers` | what was written to the old table behind it |
//! | `foreign_keys`, `foreign_catalog`, `foreign_mending`, `neighbours` | keys of the table and to it, which change places with it |
//! | `triggers`, `trigger_catalog`, `trigger_reach`, `trigger_text` | triggers, which go with it |
//! | `conflict` | rows that the new table does not take |
//! | `reverse` | after it: the old table is fed, and the way back |
//! | `throttle`, `replicas`, `brake` | waiting for others; making writers wait that never would |
//! | `begun`, `progress`, `status`, `done` | telling what happens |

mod abort;
mod begin;
mod begun;
mod brake;
mod cluster;
mod conflict;
mod consent;
mod definition;
mod done;
mod engine;
mod error;
mod everywhere;
mod facts;
mod foreign_catalog;
mod foreign_keys;
mod foreign_mending;
mod forward;
mod imprint;
mod job;
mod locks;
mod modify;
mod neighbours;
mod operation;
mod others;
mod phase;
mod pinned;
mod preflight;
mod prepared;
mod privileges;
mod progress;
mod replicas;
mod resume;
mod reverse;
mod sealing;
mod setup;
mod snapshots;
mod specifications;
mod statement;
mod status;
mod stragglers;
mod switch;
mod tenants;
mod throttle;
mod trigger_catalog;
mod trigger_reach;
mod trigger_text;
mod triggers;

pub use begun::Begun;
pub use consent::Consent;
pub use definition::Keys;
pub use done::Done;
pub use error::MigrateError;
pub use job::Job;
pub use locks::MAX_THREADS;
pub use operation::{Operation, parse_columns};
pub use preflight::Names;
pub use progress::Progress;
pub use status::{Running, status};
pub use stragglers::Stragglers;
pub use switch::Switched;
pub use throttle::{Limits, parse_load};
