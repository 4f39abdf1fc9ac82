//! From segments to a server: the transactions from where a backup ends up to a point in time.
//!
//! The server's own tools do what they are made for: `mariadb-binlog` or `mysqlbinlog` turns events
//! into statements, with the session settings that each needs, and the client sends them. They are
//! not trusted with what to replay: the border is drawn here, between two transactions of the
//! opened segment, before the tool sees it. Nor are texts trusted because a server is said to have
//! written them: see [`statements`](super::statements). No opened segment is written to a file; it
//! goes through pipes.
//!
//! | file | holds |
//! |---|---|
//! | `point` | where to stop, and what was replayed |
//! | `plan` | which segments are needed, and whether they reach the point |
//! | `origin` | of which servers backup and archive are |
//! | `border` | what the backup holds already, and what comes behind it |
//! | `run` | segment by segment through the tool into the client |
//! | `filter` | an opened segment without the transactions that are not wanted |
//! | `cut` | which transactions are wanted |
//! | `texts` | the statements within events |
//! | `times` | what is said of points in time |

mod border;
mod cut;
mod filter;
mod origin;
mod plan;
mod point;
mod run;
#[cfg(test)]
mod samples;
mod texts;
mod times;

pub use plan::Plan;
pub use point::{Done, Point, Replayed};
