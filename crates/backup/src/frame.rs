//! Frames: a head of 24 bytes, a body, and a tag of 16 bytes.
//!
//! | offset | length | head |
//! |---|---|---|
//! | 0 | 1 | kind: 0 data, 1 the last data, 2 footer |
//! | 1 | 1 | encoding of the content: 0 as it is, 1 zstd |
//! | 2 | 2 | 0 |
//! | 4 | 4 | the stream's mark: the first bytes of its commitment |
//! | 8 | 8 | number, from 0; of the footer: how many data frames there are |
//! | 16 | 4 | length of the content |
//! | 20 | 4 | length of the body |
//!
//! The nonce is kind (1) ‖ zeros (3) ‖ number (8). Associated data: commitment (32) ‖ head (24).
//! Mark and number are in the head to tell what is wrong, not to protect anything: keys, nonce and
//! tag do.
//!
//! Every stream has one form. All frames are full but the last, which is empty only if it is also
//! the first; content is compressed only where that makes it shorter.

use std::borrow::Borrow;

use onionskin_crypt::{
    FRAME_NONCE_LEN, FRAME_TAG_LEN, FrameCipher, STREAM_COMMITMENT_LEN, StreamKey,
};

use crate::{Header, StreamError, header::Fields};

/// Length of a frame's head in bytes.
pub const FRAME_HEAD_LEN: usize = 24;
/// What a frame adds to its body.
pub const FRAME_OVERHEAD: usize = FRAME_HEAD_LEN + FRAME_TAG_LEN;
/// Frames of one stream; the seek table's length must fit into four bytes.
pub const MAX_FRAMES: u64 = 1 << 29;

const MARK_LEN: usize = 4;
const AAD_LEN: usize = STREAM_COMMITMENT_LEN + FRAME_HEAD_LEN;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Data, and more follows.
    Data = 0,
    /// The last data.
    Last = 1,
    /// The footer.
    Footer = 2,
}

/// How the content of a frame is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As it is.
    Stored = 0,
    /// One zstd frame.
    Zstd = 1,
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    /// What it is.
    pub kind: Kind,
    /// How its content is written down.
    pub encoding: Encoding,
    /// The stream's mark.
    pub mark: [u8; MARK_LEN],
    /// Its place.
    pub number: u64,
    /// Length of its content in bytes.
    pub content_len: u32,
    /// Length of its body in bytes.
    pub body_len: u32,
}

impl FrameHead {
    /// Reads a head; says what is wrong with it. Nothing is authenticated yet.
    pub fn parse(bytes: &[u8; FRAME_HEAD_LEN]) -> Result<Self, &'static str> {
        let mut fields = Fields(bytes);
        let [kind, encoding, zero, zero_too] = fields.take();
        if zero != 0 || zero_too != 0 {
            return Err("reserved bytes are set");
        }
        Ok(Self {
            kind: match kind {
                0 => Kind::Data,
                1 => Kind::Last,
                2 => Kind::Footer,
                _ => return Err("unknown kind"),
            },
            encoding: match encoding {
                0 => Encoding::Stored,
                1 => Encoding::Zstd,
                _ => return Err("unknown encoding"),
            },
            mark: fields.take(),
            number: u64::from_be_bytes(fields.take()),
            content_len: u32::from_be_bytes(fields.take()),
            body_len: u32::from_be_bytes(fields.take()),
        })
    }

    /// The head as it is written.
    pub fn to_bytes(self) -> [u8; FRAME_HEAD_LEN] {
        let mut bytes = [0; FRAME_HEAD_LEN];
        bytes[0] = self.kind as u8;
        bytes[1] = self.encoding as u8;
        bytes[4..8].copy_from_slice(&self.mark);
        bytes[8..16].copy_from_slice(&self.number.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.content_len.to_be_bytes());
        bytes[20..].copy_from_slice(&self.body_len.to_be_bytes());
        bytes
    }

    /// Checks a head in its place: frame `number` of the stream with this header.
    pub(crate) fn check(&self, header: &Header, number: u64) -> Result<(), StreamError> {
        let damaged = |what| Err(StreamError::FrameHead { number, what });
        if self.mark != mark(header) {
            return Err(StreamError::OtherStream(number));
        }
        if self.kind == Kind::Footer {
            return Err(match number.checked_sub(1) {
                Some(before) => StreamError::LastFrameMissing(before),
                None => StreamError::Footer("it comes before any frame"),
            });
        }
        if self.number != number {
            return Err(StreamError::OutOfOrder {
                expected: number,
                found: self.number,
            });
        }
        let size = header.frame_size.bytes() as u32;
        let fits = match self.kind {
            Kind::Data => self.content_len == size,
            _ => self.content_len <= size && (self.content_len > 0 || number == 0),
        };
        if !fits {
            return damaged("impossible length of the content");
        }
        match self.encoding {
            Encoding::Stored if self.body_len != self.content_len => {
                damaged("impossible length of the body")
            }
            Encoding::Zstd if self.body_len >= self.content_len => {
                damaged("impossible length of the body")
            }
            _ => Ok(()),
        }
    }

    fn nonce(&self) -> [u8; FRAME_NONCE_LEN] {
        let mut nonce = [0; FRAME_NONCE_LEN];
        nonce[0] = self.kind as u8;
        nonce[4..].copy_from_slice(&self.number.to_be_bytes());
        nonce
    }
}

/// The mark in the heads of a stream's frames.
pub(crate) fn mark(header: &Header) -> [u8; MARK_LEN] {
    *header
        .commitment
        .first_chunk()
        .expect("a commitment is longer")
}

/// Seals and opens the frames of one stream, one after the other. Every thread has its own.
pub(crate) struct FrameCrypt<K> {
    header: Header,
    key: K,
    /// The subkey that was needed last, and its cipher.
    current: Option<(u32, FrameCipher)>,
    aad: [u8; AAD_LEN],
}

impl<K: Borrow<StreamKey>> FrameCrypt<K> {
    pub(crate) fn new(header: &Header, key: K) -> Self {
        let mut aad = [0; AAD_LEN];
        aad[..STREAM_COMMITMENT_LEN].copy_from_slice(&header.commitment);
        Self {
            header: header.clone(),
            key,
            current: None,
            aad,
        }
    }

    /// Encrypts `body` in place.
    pub(crate) fn seal(
        &mut self,
        head: &FrameHead,
        body: &mut [u8],
    ) -> Result<[u8; FRAME_TAG_LEN], StreamError> {
        self.prepare(head);
        let (_, cipher) = self.current.as_ref().expect("prepared");
        cipher
            .seal_in_place(&head.nonce(), &self.aad, body)
            .map_err(|_| StreamError::Library("cryptographic"))
    }

    /// Decrypts `body` in place if the tag is right; wipes it if not.
    pub(crate) fn open(
        &mut self,
        head: &FrameHead,
        body: &mut [u8],
        tag: &[u8; FRAME_TAG_LEN],
    ) -> Result<(), StreamError> {
        self.prepare(head);
        let (_, cipher) = self.current.as_ref().expect("prepared");
        cipher
            .open_in_place(&head.nonce(), &self.aad, body, tag)
            .map_err(|_| match head.kind {
                Kind::Footer => StreamError::Footer("its authentication fails"),
                _ => StreamError::Frame(head.number),
            })
    }

    fn prepare(&mut self, head: &FrameHead) {
        /// Not the number of a subkey: `MAX_FRAMES` keeps those below.
        const FOOTER: u32 = u32::MAX;
        let subkey = match head.kind {
            Kind::Footer => FOOTER,
            _ => self.header.subkey_of(head.number),
        };
        if self.current.as_ref().is_none_or(|(at, _)| *at != subkey) {
            let key = self.key.borrow();
            let cipher = match head.kind {
                Kind::Footer => key.footer(),
                _ => key.frames(subkey),
            };
            self.current = Some((subkey, cipher));
        }
        self.aad[STREAM_COMMITMENT_LEN..].copy_from_slice(&head.to_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_one_form() {
        let good = FrameHead {
            kind: Kind::Last,
            encoding: Encoding::Zstd,
            mark: [1, 2, 3, 4],
            number: 0x0102_0304_0506_0708,
            content_len: 0x0a0b_0c0d,
            body_len: 0x0102_0304,
        };
        assert_eq!(FrameHead::parse(&good.to_bytes()), Ok(good));
        for bit in 0..8 * FRAME_HEAD_LEN {
            let mut bytes = good.to_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(parsed) = FrameHead::parse(&bytes) {
                assert_eq!(parsed.to_bytes(), bytes, "bit {bit}");
            }
        }
    }
}
