//! Sealing: from a source to a stream.

use std::{io::Write, sync::Arc};

use onionskin_crypt::{FRAME_TAG_LEN, StreamKey, fresh_bytes};
use onionskin_keys::{
    KeySet, PassphraseCost, Recipient, Suite, recipient_file::suite_of, stream_key_from_passphrase,
};
use zstd::{bulk::Compressor, zstd_safe::compress_bound};

use crate::{
    FrameSize, Header, KeySource, Manifest, Progress, StreamError,
    chunk::Chunks,
    default_threads,
    footer::{Footer, Tally},
    frame::{
        Encoding, FRAME_HEAD_LEN, FRAME_OVERHEAD, FrameCrypt, FrameHead, Kind, MAX_FRAMES, mark,
    },
    header::RANDOM_LEN,
    pipeline::{self, Worker, jobs_for},
    source::Source,
};

/// How hard to compress: 0 not at all, else zstd's level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(u8);

impl Level {
    /// No compression.
    pub const STORED: Self = Self(0);
    /// zstd's own default.
    pub const DEFAULT: Self = Self(3);

    /// 0 to 19.
    pub const fn new(level: u8) -> Option<Self> {
        match level {
            0..=19 => Some(Self(level)),
            _ => None,
        }
    }
}

/// How a stream is sealed.
#[derive(Debug, Clone)]
pub struct SealOptions {
    /// The ciphers.
    pub suite: Suite,
    /// Compression.
    pub level: Level,
    /// How many threads compress and encrypt; one more reads, and the caller's writes.
    pub threads: usize,
    /// Input in a frame.
    pub frame_size: FrameSize,
}

impl SealOptions {
    /// The defaults.
    pub fn new(suite: Suite) -> Self {
        Self {
            suite,
            level: Level::DEFAULT,
            threads: default_threads(),
            frame_size: FrameSize::DEFAULT,
        }
    }
}

/// What a stream is sealed with.
#[derive(Clone, Copy)]
pub enum SealKey<'a> {
    /// The active data key of a key set.
    KeySet(&'a KeySet),
    /// A passphrase.
    Passphrase {
        /// Not empty.
        passphrase: &'a str,
        /// What it costs to derive the key.
        cost: PassphraseCost,
    },
    /// Recipients, whose identities open it; of the options' suite.
    Recipients(&'a [Recipient]),
}

/// What was sealed.
#[derive(Debug)]
pub struct Sealed {
    /// The stream's header.
    pub header: Header,
    /// Its footer.
    pub footer: Footer,
    /// Its length in bytes.
    pub stream_len: u64,
}

/// Seals all that `source` gives into `output`, and flushes it. On any error what was written is
/// not a whole stream.
pub fn seal(
    source: impl Source,
    output: impl Write,
    key: SealKey<'_>,
    options: &SealOptions,
    progress: &Progress,
) -> Result<Sealed, StreamError> {
    seal_with(source, output, key, options, progress, fresh_bytes(), None)
}

/// With given random bytes, and at will with another rhythm of the subkeys.
pub(crate) fn seal_with(
    source: impl Source,
    mut output: impl Write,
    key: SealKey<'_>,
    options: &SealOptions,
    progress: &Progress,
    random: [u8; RANDOM_LEN],
    subkey_log2: Option<u8>,
) -> Result<Sealed, StreamError> {
    let mut write = |bytes: &[u8]| {
        output.write_all(bytes).map_err(StreamError::Write)?;
        progress.add_written(bytes.len());
        Ok::<_, StreamError>(())
    };
    let (header, key) = begin(key, options, random, subkey_log2)?;
    write(&header.to_bytes())?;

    let key = Arc::new(key);
    let workers = (0..options.threads.max(1))
        .map(|_| worker(&header, Arc::clone(&key), options.level))
        .collect::<Result<_, _>>()?;
    let jobs = (0..jobs_for(options.threads.max(1)))
        .map(|_| Job::new(options))
        .collect();
    let mut tally = Tally::new(&header);
    let mut manifest = None;
    pipeline::run(jobs, producer(source, progress.clone()), workers, |job| {
        let (head, tag) = job.parts();
        tally.add(&job.head, head, tag);
        write(job.frame())?;
        manifest = job.manifest.take();
        Ok(())
    })?;

    let footer = tally.footer(manifest.ok_or(StreamError::Lost)?);
    let end = footer.seal(&header, &key)?;
    write(&end)?;
    output.flush().map_err(StreamError::Write)?;
    Ok(Sealed {
        stream_len: footer.offset(&header) + end.len() as u64,
        header,
        footer,
    })
}

/// A new stream's header and key.
fn begin(
    key: SealKey<'_>,
    options: &SealOptions,
    random: [u8; RANDOM_LEN],
    subkey_log2: Option<u8>,
) -> Result<(Header, StreamKey), StreamError> {
    let source = match key {
        SealKey::KeySet(keys) => KeySource::KeyFile(keys.active_key()),
        SealKey::Passphrase { cost, .. } => KeySource::Passphrase(cost),
        SealKey::Recipients(recipients) => {
            suite_of(recipients, Some(options.suite))?;
            KeySource::Recipients(recipients.len() as u16)
        }
    };
    let mut header = Header::new(options.suite, options.frame_size, source, random);
    header.subkey_log2 = subkey_log2.unwrap_or(header.subkey_log2);
    let context = header.context();
    let key = match key {
        SealKey::KeySet(keys) => keys.stream_key(options.suite, keys.active_key(), &context)?,
        SealKey::Passphrase { passphrase, cost } => {
            let salt = header.salt();
            stream_key_from_passphrase(options.suite, passphrase, cost, salt, &context)?
        }
        SealKey::Recipients(recipients) => header.wrap_key(recipients)?,
    };
    header.commitment = key.commitment();
    Ok((header, key))
}

/// A frame on its way.
struct Job {
    head: FrameHead,
    /// Room for the head, then the content, then room for the tag.
    plain: Vec<u8>,
    /// The same with compressed content; empty where nothing is compressed.
    packed: Vec<u8>,
    manifest: Option<Manifest>,
}

impl Job {
    fn new(options: &SealOptions) -> Self {
        let size = options.frame_size.bytes();
        let packed = match options.level {
            Level::STORED => 0,
            _ => FRAME_OVERHEAD + compress_bound(size),
        };
        Self {
            head: FrameHead {
                kind: Kind::Data,
                encoding: Encoding::Stored,
                mark: [0; 4],
                number: 0,
                content_len: 0,
                body_len: 0,
            },
            plain: vec![0; FRAME_OVERHEAD + size],
            packed: vec![0; packed],
            manifest: None,
        }
    }

    fn buffer(&mut self) -> &mut [u8] {
        match self.head.encoding {
            Encoding::Stored => &mut self.plain,
            Encoding::Zstd => &mut self.packed,
        }
    }

    /// The finished frame.
    fn frame(&self) -> &[u8] {
        let buffer = match self.head.encoding {
            Encoding::Stored => &self.plain,
            Encoding::Zstd => &self.packed,
        };
        &buffer[..FRAME_OVERHEAD + self.head.body_len as usize]
    }

    /// Head and tag of the finished frame.
    fn parts(&self) -> (&[u8; FRAME_HEAD_LEN], &[u8; FRAME_TAG_LEN]) {
        let frame = self.frame();
        let head = frame.first_chunk().expect("a frame has a head");
        (head, frame.last_chunk().expect("and a tag"))
    }
}

/// Fills jobs with the source's bytes, and hears it at their end.
fn producer(
    mut source: impl Source,
    progress: Progress,
) -> impl FnMut(&mut Job) -> Result<bool, StreamError> + Send + 'static {
    let mut ahead = None;
    let mut number = 0;
    let mut ended = false;
    move |job| {
        if ended {
            return Ok(false);
        }
        if number == MAX_FRAMES {
            return Err(StreamError::TooLong);
        }
        // The byte that is read ahead lands where the tag will be.
        let size = job.plain.len() - FRAME_OVERHEAD;
        let room = &mut job.plain[FRAME_HEAD_LEN..][..size + 1];
        let mut chunks = Chunks::resume(|buf: &mut [u8]| source.read(buf), ahead);
        let (len, last) = chunks.next(room).map_err(StreamError::Read)?;
        ahead = chunks.ahead();
        progress.add_read(len);
        ended = last;
        job.head.kind = if last { Kind::Last } else { Kind::Data };
        job.head.number = number;
        job.head.content_len = len as u32;
        if last {
            job.manifest = Some(source.finish().map_err(StreamError::Source)?);
        }
        number += 1;
        Ok(true)
    }
}

/// Compresses and encrypts.
fn worker(
    header: &Header,
    key: Arc<StreamKey>,
    level: Level,
) -> Result<Worker<Job, StreamError>, StreamError> {
    let mut compressor = match level {
        Level::STORED => None,
        Level(level) => Some(compressor(level)?),
    };
    let mut crypt = FrameCrypt::new(header, key);
    let mark = mark(header);
    Ok(Box::new(move |job| {
        let content_len = job.head.content_len as usize;
        job.head.mark = mark;
        job.head.encoding = Encoding::Stored;
        job.head.body_len = job.head.content_len;
        if let Some(compressor) = &mut compressor {
            let content = &job.plain[FRAME_HEAD_LEN..][..content_len];
            let packed = compressor
                .compress_to_buffer(content, &mut job.packed[FRAME_HEAD_LEN..])
                .map_err(|_| StreamError::Library("compression"))?;
            if packed < content_len {
                job.head.encoding = Encoding::Zstd;
                job.head.body_len = packed as u32;
            }
        }
        let head = job.head;
        let buffer = job.buffer();
        buffer[..FRAME_HEAD_LEN].copy_from_slice(&head.to_bytes());
        let (body, rest) = buffer[FRAME_HEAD_LEN..].split_at_mut(head.body_len as usize);
        let tag = crypt.seal(&head, body)?;
        rest[..FRAME_TAG_LEN].copy_from_slice(&tag);
        Ok(())
    }))
}

fn compressor(level: u8) -> Result<Compressor<'static>, StreamError> {
    Compressor::new(i32::from(level)).map_err(|_| StreamError::Library("compression"))
}
