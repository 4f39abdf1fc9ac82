//! What can go wrong with a sealed stream. No text holds content or a key.

use std::io;

use onionskin_keys::{KeyError, RecipientError, Suite};

use crate::pipeline::Lost;

/// Why a stream was not sealed, opened or verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The input could not be read.
    #[error("reading the input: {0}")]
    Read(#[source] io::Error),
    /// The output could not be written. What was written does not look whole.
    #[error("writing the output: {0}")]
    Write(#[source] io::Error),
    /// The source of a backup says that it has failed, so nothing was finished.
    #[error("the source failed: {0}")]
    Source(String),
    /// No keys, or not the stream's.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Not the beginning of a sealed stream.
    #[error(
        "this is not a sealed stream: it begins with something else \
         (what `openssl enc` wrote opens with --format openssl)"
    )]
    NotSealed,
    /// A format version that this program does not know.
    #[error(
        "the stream has the format version {0}, which this program does not know: a newer onionskin opens it"
    )]
    UnknownVersion(u8),
    /// The header holds what no writer puts there.
    #[error("the header is damaged: {0}")]
    Header(&'static str),
    /// The stream was sealed with another kind of key than was given.
    #[error("the stream was sealed {0}")]
    OtherKeySource(&'static str),
    /// The key or the passphrase is not the stream's, or its header was changed: the two cannot be
    /// told apart.
    #[error("wrong {0} for this stream (or its header was changed)")]
    WrongKey(&'static str),
    /// It was sealed to other recipients, or its stanzas were changed: the two cannot be told
    /// apart.
    #[error(
        "none of these identities opens the stream: it is sealed to {recipients} other recipient{} of suite {suite} (or its header was changed)",
        if *recipients == 1 { "" } else { "s" }
    )]
    NoIdentity {
        /// How many there are.
        recipients: u16,
        /// Of which kind.
        suite: Suite,
    },
    /// The key of an identity fits, and the header around it is not what was written.
    #[error(
        "the header was changed: it is sealed to one of these identities, but not all of it is what was written"
    )]
    HeaderChanged,
    /// No stream can be sealed to these recipients.
    #[error(transparent)]
    Recipients(#[from] RecipientError),
    /// The stream ends where it must not.
    #[error("the stream is truncated: it ends at byte {at}, {within}")]
    Truncated {
        /// Length of what is there.
        at: u64,
        /// The part of the stream in which it ends.
        within: &'static str,
    },
    /// A frame of this stream stands in another place: frames were exchanged, repeated or left out.
    #[error("frames are out of order: frame {found} stands where frame {expected} belongs")]
    OutOfOrder {
        /// The number of the place.
        expected: u64,
        /// The number in the frame's head.
        found: u64,
    },
    /// A frame bears the mark of another stream.
    #[error("frame {0} belongs to another stream, or its head was changed")]
    OtherStream(u64),
    /// The footer comes before a frame that is marked as the last.
    #[error("frames are missing: the footer follows frame {0}, which is not the last one")]
    LastFrameMissing(u64),
    /// A frame's head holds what no writer puts there.
    #[error("the head of frame {number} is damaged: {what}")]
    FrameHead {
        /// The frame.
        number: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// A frame's tag does not verify.
    #[error("frame {0} was changed: its authentication fails")]
    Frame(u64),
    /// A frame is authentic, but its content does not decompress: its writer was faulty.
    #[error("frame {0} is authentic, but it does not decompress to its stated length")]
    Decompress(u64),
    /// The footer's tag does not verify, or it is no footer.
    #[error("the footer was changed: {0}")]
    Footer(&'static str),
    /// The footer is authentic, but it does not belong to the frames before it.
    #[error("the footer does not belong to the frames before it: {0}")]
    FooterDisagrees(&'static str),
    /// The bytes behind the footer are not what a writer puts there.
    #[error(
        "the stream does not end as it must: it was cut, its end was changed, or bytes follow it"
    )]
    Trailer,
    /// Something follows the end of the stream.
    #[error("bytes follow the end of the stream")]
    TrailingBytes,
    /// More frames than the format has room for.
    #[error("the input is too long for one stream")]
    TooLong,
    /// The manifest is larger than [`MAX_MANIFEST_LEN`](crate::manifest::MAX_MANIFEST_LEN).
    #[error("the manifest is too large")]
    ManifestTooLarge,
    /// The cryptographic or the compression library refused.
    #[error("the {0} library refused")]
    Library(&'static str),
    /// A thread ended early.
    #[error("a thread could not be started, or ended early")]
    Lost,
    /// Not what `openssl enc` writes.
    #[error(
        "this was not written by `openssl enc` with a passphrase: it does not begin with \"Salted__\""
    )]
    NotOpenssl,
    /// CBC without whole blocks.
    #[error("the ciphertext is truncated: it is not made of whole blocks")]
    PartialBlock,
    /// CBC whose padding is wrong.
    #[error(
        "the padding is wrong: wrong passphrase, cipher, digest or iterations, or the end was changed or cut"
    )]
    Padding,
}

impl StreamError {
    /// The stream itself is at fault: it was damaged, cut, or is none. Trying again cannot help;
    /// another copy may.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::NotSealed
            | Self::UnknownVersion(_)
            | Self::Header(_)
            | Self::HeaderChanged
            | Self::Truncated { .. }
            | Self::OutOfOrder { .. }
            | Self::OtherStream(_)
            | Self::LastFrameMissing(_)
            | Self::FrameHead { .. }
            | Self::Frame(_)
            | Self::Decompress(_)
            | Self::Footer(_)
            | Self::FooterDisagrees(_)
            | Self::Trailer
            | Self::TrailingBytes
            | Self::NotOpenssl
            | Self::PartialBlock
            | Self::Padding => true,
            Self::Read(_)
            | Self::Write(_)
            | Self::Source(_)
            | Self::Key(_)
            | Self::OtherKeySource(_)
            | Self::WrongKey(_)
            | Self::NoIdentity { .. }
            | Self::Recipients(_)
            | Self::TooLong
            | Self::ManifestTooLarge
            | Self::Library(_)
            | Self::Lost => false,
        }
    }
}

impl From<Lost> for StreamError {
    fn from(Lost: Lost) -> Self {
        Self::Lost
    }
}
