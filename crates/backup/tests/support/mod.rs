//! What the tests of this crate share.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::{
    io::{self, Cursor},
    ops::Range,
};

use onionskin_backup::{
    Footer, FrameSize, Level, Progress, SealKey, SealOptions, SealedStream, StreamError, Verified,
    footer::TRAILER_LEN,
    frame::{FRAME_HEAD_LEN, FRAME_OVERHEAD, FrameHead, Kind},
    header::HEADER_LEN,
    seal,
    source::Plain,
    verify,
};
use onionskin_keys::{KeySet, Suite};

/// The smallest frames there are, in bytes.
pub const SMALL: usize = 4096;
/// Both suites.
pub const SUITES: [Suite; 2] = [Suite::Aes, Suite::Sm];

/// A new key set.
pub fn new_keys() -> KeySet {
    let folder = tempfile::tempdir().unwrap();
    KeySet::create_file(&folder.path().join("keys.json"), None, &mut rand::rng()).unwrap();
    KeySet::load("file:keys.json", folder.path(), None).unwrap()
}

/// Small frames.
pub fn small_frames(suite: Suite, level: u8) -> SealOptions {
    SealOptions {
        level: Level::new(level).unwrap(),
        threads: 2,
        frame_size: FrameSize::from_log2(12).unwrap(),
        ..SealOptions::new(suite)
    }
}

/// Seals bytes.
pub fn sealed(keys: &KeySet, options: &SealOptions, plain: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    let source = Plain::stdin(Cursor::new(plain.to_vec()));
    let key = SealKey::KeySet(keys);
    let sealed = seal(source, &mut stream, key, options, &Progress::new()).unwrap();
    assert_eq!(sealed.stream_len, stream.len() as u64);
    assert_eq!(sealed.footer.plain_len, plain.len() as u64);
    stream
}

/// Opens a stream: what came out, and how it ended.
pub fn opened(keys: &KeySet, stream: &[u8]) -> (Vec<u8>, Result<Footer, StreamError>) {
    let mut plain = Vec::new();
    let result = SealedStream::begin(Cursor::new(stream.to_vec())).and_then(|stream| {
        let key = stream.header().key(keys)?;
        stream.open(key, &mut plain, 2, &Progress::new())
    });
    (plain, result)
}

/// Verifies a stream.
pub fn verified(keys: &KeySet, stream: &[u8], deep: bool) -> Result<Verified, StreamError> {
    verify(
        Cursor::new(stream.to_vec()),
        |header| header.key(keys),
        deep.then_some(2),
        &Progress::new(),
    )
}

/// A stream that must not open, and of which nothing may come out that was not sealed: whole frames
/// from the beginning, and never the last one. Returns the error.
pub fn refused(
    keys: &KeySet,
    stream: &[u8],
    plain: &[u8],
    frame: usize,
    what: &str,
) -> StreamError {
    let (out, result) = opened(keys, stream);
    let error = match result {
        Ok(_) => panic!("{what}: it opens"),
        Err(error) => error,
    };
    assert!(plain.starts_with(&out), "{what}: other plaintext comes out");
    let whole_frames = out.len().is_multiple_of(frame);
    assert!(
        whole_frames && (out.is_empty() || out.len() < plain.len()),
        "{what}: {}",
        out.len()
    );
    assert!(verified(keys, stream, true).is_err(), "{what}: it verifies");
    error
}

/// Where the frames of a stream are.
pub fn frames(stream: &[u8]) -> Vec<Range<usize>> {
    let mut frames = Vec::new();
    let mut at = HEADER_LEN;
    loop {
        let head = stream[at..].first_chunk::<FRAME_HEAD_LEN>().unwrap();
        let head = FrameHead::parse(head).unwrap();
        if head.kind == Kind::Footer {
            assert_eq!(
                at + FRAME_OVERHEAD + head.body_len as usize + TRAILER_LEN,
                stream.len()
            );
            return frames;
        }
        let end = at + FRAME_OVERHEAD + head.body_len as usize;
        frames.push(at..end);
        at = end;
    }
}

/// Text that compresses well.
pub fn lines(len: usize) -> Vec<u8> {
    let mut text: Vec<u8> = (0..)
        .flat_map(|n: u32| format!("INSERT INTO t VALUES ({n}, 'the same again');\n").into_bytes())
        .take(len)
        .collect();
    text.truncate(len);
    text
}

/// Bytes that do not compress, the same in every run.
pub fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        // xorshift64*
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        bytes.extend(state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// A reader that gives a few bytes at a time, as pipes do.
pub struct Dribble<R>(pub R, pub usize);

impl<R: io::Read> io::Read for Dribble<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = buf.len().min(self.1);
        self.0.read(&mut buf[..len])
    }
}
