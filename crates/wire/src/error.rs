//! What can go wrong between two peers.

use std::io;

/// Result of everything that touches the wire.
pub type WireResult<T> = Result<T, WireError>;

/// An error of the connection or of the bytes on it.
///
/// The texts name what was wrong, never what was in the message.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The socket failed. A read that timed out arrives here as well ([`WireError::is_timeout`])
    /// and may be repeated.
    #[error("connection failed: {0}")]
    Io(#[from] io::Error),
    /// The peer closed the connection between two packets.
    #[error("connection closed by the peer")]
    Closed,
    /// The bytes are not the message they should be.
    #[error("malformed packet: {0}")]
    Malformed(&'static str),
    /// A packet was lost, repeated or reordered.
    #[error("packet out of order: sequence number {got} instead of {expected}")]
    SequenceMismatch {
        /// The number that should have come.
        expected: u8,
        /// The number that came.
        got: u8,
    },
    /// A payload is larger than the connection accepts.
    #[error("packet larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// TLS could not be set up or failed.
    #[error("TLS failed: {0}")]
    Tls(#[from] rustls::Error),
}

impl WireError {
    /// True when a read only ran into the socket's read timeout; nothing is lost and the read may
    /// be repeated.
    pub fn is_timeout(&self) -> bool {
        matches!(
            self,
            Self::Io(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
        )
    }

    /// True when the peer is gone, politely or not, as opposed to having sent something wrong.
    pub fn is_disconnect(&self) -> bool {
        match self {
            Self::Closed => true,
            Self::Io(e) => matches!(
                e.kind(),
                io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::NotConnected
            ),
            _ => false,
        }
    }
}
