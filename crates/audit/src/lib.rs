//! The audit log: who read and wrote protected columns, in files whose change is found.
//!
//! A program's **run** writes a chain of lines into files of one folder, the run's **parts**. Each
//! line is a JSON object, and its last field, `link`, is the SHA-256 of the link before it and of
//! the line itself. So no line can be changed, removed or moved without all later ones. Lines that
//! begin and end a part, and one in each minute, also carry a **seal** under a key of the key set,
//! so that the later ones cannot be made anew either. What seals have said can be kept in another
//! place as well, the file of **heads**: then the end of a chain cannot be cut off unnoticed.
//!
//! Several programs may write into one folder, as they do while a new one takes over from an old
//! one. A run that was killed has no last line; the next one to begin says where it found its end.
//!
//! | file | holds |
//! |---|---|
//! | `line` | what lines say, and how they are linked and sealed |
//! | `log` | writes a run: parts, room on the disk, heads |
//! | `syslog` | copies of the lines for a syslog daemon |
//! | `folder` | the files of a folder, by run and part |
//! | `verify` | reads all of it, and tells what is wrong |
//! | `error` | why nothing can be written or read |

mod error;
mod folder;
mod line;
mod log;
mod syslog;
#[cfg(test)]
mod tests;
mod verify;

pub use error::AuditError;
pub use line::{Count, Statement};
pub use log::{AuditLog, Head, Settings};
pub use syslog::SyslogAddress;
pub use verify::{Fault, Report, RunReport, RunState, verify};
