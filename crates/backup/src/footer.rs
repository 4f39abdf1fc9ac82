//! The end of a stream: the footer, which is a frame of its own kind under a key of its own, and
//! the trailer.
//!
//! Content of the footer, never compressed:
//!
//! | length | content |
//! |---|---|
//! | 8 | length of the whole plaintext |
//! | 8 | n, the number of data frames |
//! | 4 × n | seek table: the length of every frame's body |
//! | 32 | digest over head ‖ tag of every data frame, in order: SHA-256 or SM3 |
//! | 4 | length of the manifest |
//! | … | manifest: JSON |
//!
//! The trailer is offset of the footer in the stream (8) ‖ `"ONIONEND"` (8). It protects nothing:
//! it is where a reader finds the footer from the end, and it must say what is right.

use onionskin_crypt::{FRAME_TAG_LEN, STREAM_DIGEST_LEN, StreamDigest, StreamKey};

use crate::{
    FrameSize, Header, Manifest, StreamError,
    frame::{
        Encoding, FRAME_HEAD_LEN, FRAME_OVERHEAD, FrameCrypt, FrameHead, Kind, MAX_FRAMES, mark,
    },
    header::Fields,
    manifest::MAX_MANIFEST_LEN,
};

/// Length of the trailer in bytes.
pub const TRAILER_LEN: usize = 16;
/// What a stream ends with.
pub const END_MARK: [u8; 8] = *b"ONIONEND";

const FIXED_LEN: usize = 8 + 8 + STREAM_DIGEST_LEN + 4;

/// What the footer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    /// Length of the whole plaintext in bytes.
    pub plain_len: u64,
    /// Length of every data frame's body in bytes.
    pub body_lens: Vec<u32>,
    /// Over head and tag of every data frame.
    pub digest: [u8; STREAM_DIGEST_LEN],
    /// What the stream holds.
    pub manifest: Manifest,
}

impl Footer {
    /// Length of the whole stream up to the footer in bytes, behind this header.
    pub fn offset(&self, header: &Header) -> u64 {
        let frames = self.body_lens.iter();
        let lens = frames.map(|len| u64::from(*len) + FRAME_OVERHEAD as u64);
        header.len() as u64 + lens.sum::<u64>()
    }

    fn encode(&self) -> Result<Vec<u8>, StreamError> {
        let manifest = self.manifest.to_json()?;
        let mut content = Vec::with_capacity(FIXED_LEN + 4 * self.body_lens.len() + manifest.len());
        content.extend_from_slice(&self.plain_len.to_be_bytes());
        content.extend_from_slice(&(self.body_lens.len() as u64).to_be_bytes());
        for len in &self.body_lens {
            content.extend_from_slice(&len.to_be_bytes());
        }
        content.extend_from_slice(&self.digest);
        content.extend_from_slice(&(manifest.len() as u32).to_be_bytes());
        content.extend_from_slice(&manifest);
        Ok(content)
    }

    /// Reads the content of a footer whose tag was verified.
    pub fn decode(content: &[u8], frame_size: FrameSize) -> Result<Self, StreamError> {
        let damaged = StreamError::Footer("its parts have impossible lengths");
        if content.len() < FIXED_LEN {
            return Err(damaged);
        }
        let mut fields = Fields(content);
        let plain_len = u64::from_be_bytes(fields.take());
        let frames = u64::from_be_bytes(fields.take());
        let room = (content.len() - FIXED_LEN) as u64 / 4;
        if frames == 0 || frames > MAX_FRAMES || frames > room {
            return Err(damaged);
        }
        let body_lens = (0..frames)
            .map(|_| u32::from_be_bytes(fields.take()))
            .collect();
        let digest = fields.take();
        let manifest_len = u32::from_be_bytes(fields.take());
        let size = frame_size.bytes() as u64;
        if fields.0.len() != manifest_len as usize || plain_len.div_ceil(size).max(1) != frames {
            return Err(damaged);
        }
        Ok(Self {
            plain_len,
            body_lens,
            digest,
            manifest: Manifest::from_json(fields.0)?,
        })
    }

    /// The footer's frame and the trailer, as they end a stream.
    pub(crate) fn seal(&self, header: &Header, key: &StreamKey) -> Result<Vec<u8>, StreamError> {
        let mut content = self.encode()?;
        let len = u32::try_from(content.len()).map_err(|_| StreamError::TooLong)?;
        let head = FrameHead {
            kind: Kind::Footer,
            encoding: Encoding::Stored,
            mark: mark(header),
            number: self.body_lens.len() as u64,
            content_len: len,
            body_len: len,
        };
        let tag = FrameCrypt::new(header, key).seal(&head, &mut content)?;
        let offset = self.offset(header).to_be_bytes();
        Ok([&head.to_bytes()[..], &content, &tag, &offset, &END_MARK].concat())
    }

    /// Opens a footer's frame: `body` behind `head`, which [`check_head`] has accepted.
    pub(crate) fn open(
        header: &Header,
        key: &StreamKey,
        head: &FrameHead,
        body: &mut [u8],
        tag: &[u8; FRAME_TAG_LEN],
    ) -> Result<Self, StreamError> {
        FrameCrypt::new(header, key).open(head, body, tag)?;
        let footer = Self::decode(body, header.frame_size)?;
        match footer.body_lens.len() as u64 == head.number {
            true => Ok(footer),
            false => Err(StreamError::Footer("it counts its frames in two ways")),
        }
    }
}

/// Whether `head` can be the footer's of this stream. Its length is bounded by the number of frames
/// that it states.
pub(crate) fn check_head(head: &FrameHead, header: &Header) -> Result<(), StreamError> {
    if head.kind != Kind::Footer {
        return Err(StreamError::Footer("another frame stands in its place"));
    }
    if head.mark != mark(header) {
        return Err(StreamError::Footer("it belongs to another stream"));
    }
    let longest = FIXED_LEN as u64 + 4 * head.number.min(MAX_FRAMES) + MAX_MANIFEST_LEN as u64;
    if head.encoding != Encoding::Stored
        || head.body_len != head.content_len
        || head.number > MAX_FRAMES
        || u64::from(head.body_len) > longest
    {
        return Err(StreamError::Footer("its head is damaged"));
    }
    Ok(())
}

/// Where the trailer says that the footer begins.
pub(crate) fn parse_trailer(trailer: &[u8; TRAILER_LEN]) -> Result<u64, StreamError> {
    let mut fields = Fields(trailer);
    let offset = u64::from_be_bytes(fields.take());
    match fields.take() == END_MARK {
        true => Ok(offset),
        false => Err(StreamError::Trailer),
    }
}

/// Adds up what the footer must say, frame by frame.
pub(crate) struct Tally {
    plain_len: u64,
    body_lens: Vec<u32>,
    digest: StreamDigest,
}

impl Tally {
    pub(crate) fn new(header: &Header) -> Self {
        Self {
            plain_len: 0,
            body_lens: Vec::new(),
            digest: StreamDigest::new(header.suite),
        }
    }

    /// How many frames there were.
    pub(crate) fn frames(&self) -> u64 {
        self.body_lens.len() as u64
    }

    pub(crate) fn add(
        &mut self,
        head: &FrameHead,
        head_bytes: &[u8; FRAME_HEAD_LEN],
        tag: &[u8; FRAME_TAG_LEN],
    ) {
        self.plain_len += u64::from(head.content_len);
        self.body_lens.push(head.body_len);
        self.digest.update(head_bytes);
        self.digest.update(tag);
    }

    pub(crate) fn footer(self, manifest: Manifest) -> Footer {
        Footer {
            plain_len: self.plain_len,
            body_lens: self.body_lens,
            digest: self.digest.finish(),
            manifest,
        }
    }

    /// Whether `footer` says the same.
    pub(crate) fn compare(self, footer: &Footer) -> Result<(), StreamError> {
        let disagrees = StreamError::FooterDisagrees;
        if self.plain_len != footer.plain_len {
            return Err(disagrees("it states another length of the plaintext"));
        }
        if self.body_lens != footer.body_lens {
            return Err(disagrees("its seek table is another one"));
        }
        if self.digest.finish() != footer.digest {
            return Err(disagrees("its digest is of other frames"));
        }
        Ok(())
    }
}
