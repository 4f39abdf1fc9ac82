//! Where a replay stops, and what it has done.

use onionskin_rowstream::binlog::Gtid;

use crate::manifest::BinlogPosition;

/// Where to stop.
#[derive(Debug, Clone, PartialEq)]
pub enum Point {
    /// Before the first transaction that was committed at this time or later; microseconds since
    /// 1970.
    Time(u64),
    /// Behind this transaction.
    Gtid(Gtid),
    /// Before the first transaction that begins at this place or later.
    Place(BinlogPosition),
    /// At the end of the archive.
    End,
}

/// What was replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// How many transactions.
    pub transactions: u64,
    /// Where the last of them ends; the beginning if there was none.
    pub end: BinlogPosition,
    /// The last of them.
    pub last: Option<Done>,
    /// The first that was left out. `None` at the end of the archive.
    pub next: Option<Done>,
}

/// A transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// Its identity, where the server gives one.
    pub gtid: Option<Gtid>,
    /// When it was committed, in microseconds since 1970.
    pub time: u64,
}
