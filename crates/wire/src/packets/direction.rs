//! Which way a payload goes.

/// Which way a payload went, seen from this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the peer.
    Received,
    /// To the peer.
    Sent,
}
