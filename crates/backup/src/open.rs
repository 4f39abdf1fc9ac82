//! Opening: from a stream to its plaintext.

use std::{
    io::{self, Read, Write},
    sync::Arc,
};

use onionskin_crypt::{FRAME_TAG_LEN, StreamKey};
use zstd::bulk::Decompressor;

use crate::{
    Footer, Header, Progress, StreamError,
    footer::{END_MARK, TRAILER_LEN, Tally, check_head},
    frame::{Encoding, FRAME_HEAD_LEN, FrameCrypt, FrameHead, Kind},
    header::{HEADER_LEN, MAGIC},
    pipeline::{self, Worker, jobs_for},
};

/// A stream whose header was read.
pub struct SealedStream<R> {
    input: Counted<R>,
    header: Header,
}

impl<R: Read + Send + 'static> SealedStream<R> {
    /// Reads the header, which says what key is needed.
    pub fn begin(input: R) -> Result<Self, StreamError> {
        let mut input = Counted { input, at: 0 };
        let header = read_header(&mut input)?;
        Ok(Self { input, header })
    }

    /// The header. It is authentic once it has given a key.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Writes the plaintext to `output`, and flushes it.
    ///
    /// Frames leave in order, each once its tag was verified; the last one once the footer and the
    /// end of the stream were, too. On an error the frames before it have left.
    pub fn open(
        self,
        key: StreamKey,
        mut output: impl Write,
        threads: usize,
        progress: &Progress,
    ) -> Result<Footer, StreamError> {
        let Self { input, header } = self;
        let (key, threads) = (Arc::new(key), threads.max(1));
        let workers = (0..threads)
            .map(|_| worker(&header, Arc::clone(&key)))
            .collect::<Result<_, _>>()?;
        let jobs = (0..jobs_for(threads)).map(|_| Job::new(&header)).collect();
        let mut reader = Reader {
            input,
            tally: Some(Tally::new(&header)),
            header,
            key,
            progress: progress.clone(),
        };
        let mut footer = None;
        pipeline::run(
            jobs,
            move |job| reader.next(job),
            workers,
            |job| {
                let content = job.content();
                output.write_all(content).map_err(StreamError::Write)?;
                progress.add_written(content.len());
                footer = job.footer.take();
                Ok(())
            },
        )?;
        output.flush().map_err(StreamError::Write)?;
        footer.ok_or(StreamError::Lost)
    }
}

/// Reads the header of a stream.
pub(crate) fn read_header<R: Read>(input: &mut Counted<R>) -> Result<Header, StreamError> {
    let mut bytes = [0; HEADER_LEN];
    let read = input.fill(&mut bytes)?;
    if read < HEADER_LEN {
        // What is there decides whether it is a stream that was cut, or something else.
        let known = read.min(MAGIC.len());
        return Err(match read > 0 && bytes[..known] == MAGIC[..known] {
            true => input.truncated("in its header"),
            false => StreamError::NotSealed,
        });
    }
    let mut header = Header::parse(&bytes)?;
    let mut stanzas = vec![0; header.stanzas_len()];
    input.exact(&mut stanzas, "in its header")?;
    header.stanzas = stanzas.into();
    Ok(header)
}

/// A frame on its way.
struct Job {
    head: FrameHead,
    /// Body and tag; then, where nothing was compressed, the content.
    sealed: Vec<u8>,
    /// The content, where it was compressed.
    unpacked: Vec<u8>,
    /// With the last frame.
    footer: Option<Footer>,
}

impl Job {
    fn new(header: &Header) -> Self {
        let size = header.frame_size.bytes();
        Self {
            head: FrameHead {
                kind: Kind::Data,
                encoding: Encoding::Stored,
                mark: [0; 4],
                number: 0,
                content_len: 0,
                body_len: 0,
            },
            sealed: vec![0; size + FRAME_TAG_LEN],
            // Made at the first compressed frame.
            unpacked: Vec::new(),
            footer: None,
        }
    }

    fn content(&self) -> &[u8] {
        let buffer = match self.head.encoding {
            Encoding::Stored => &self.sealed,
            Encoding::Zstd => &self.unpacked,
        };
        &buffer[..self.head.content_len as usize]
    }
}

/// Takes a stream apart into frames.
struct Reader<R> {
    input: Counted<R>,
    header: Header,
    key: Arc<StreamKey>,
    /// Gone at the end.
    tally: Option<Tally>,
    progress: Progress,
}

impl<R: Read> Reader<R> {
    fn next(&mut self, job: &mut Job) -> Result<bool, StreamError> {
        let Some(mut tally) = self.tally.take() else {
            return Ok(false);
        };
        let before = self.input.at;
        let number = tally.frames();
        let mut head_bytes = [0; FRAME_HEAD_LEN];
        self.input.exact(&mut head_bytes, "before its last frame")?;
        let head = FrameHead::parse(&head_bytes)
            .map_err(|what| StreamError::FrameHead { number, what })?;
        head.check(&self.header, number)?;
        let sealed = &mut job.sealed[..head.body_len as usize + FRAME_TAG_LEN];
        self.input.exact(sealed, "inside a frame")?;
        let tag = sealed.last_chunk().expect("there is room for it");
        tally.add(&head, &head_bytes, tag);
        job.head = head;
        if head.kind == Kind::Last {
            let footer = self.footer(tally.frames())?;
            tally.compare(&footer)?;
            job.footer = Some(footer);
        } else {
            self.tally = Some(tally);
        }
        self.progress.add_read((self.input.at - before) as usize);
        Ok(true)
    }

    /// All that follows the last frame, up to the end of the input.
    fn footer(&mut self, frames: u64) -> Result<Footer, StreamError> {
        let offset = self.input.at;
        let mut head = [0; FRAME_HEAD_LEN];
        self.input.exact(&mut head, "before its footer")?;
        let head = FrameHead::parse(&head).map_err(StreamError::Footer)?;
        check_head(&head, &self.header)?;
        if head.number != frames {
            return Err(StreamError::FooterDisagrees("it counts other frames"));
        }
        let mut body = vec![0; head.body_len as usize];
        self.input.exact(&mut body, "in its footer")?;
        let mut tag = [0; FRAME_TAG_LEN];
        self.input.exact(&mut tag, "in its footer")?;
        let footer = Footer::open(&self.header, &self.key, &head, &mut body, &tag)?;
        let mut trailer = [0; TRAILER_LEN];
        self.input.exact(&mut trailer, "behind its footer")?;
        if trailer[..8] != offset.to_be_bytes() || trailer[8..] != END_MARK {
            return Err(StreamError::Trailer);
        }
        match self.input.fill(&mut [0])? {
            0 => Ok(footer),
            _ => Err(StreamError::TrailingBytes),
        }
    }
}

/// Decrypts and decompresses.
fn worker(header: &Header, key: Arc<StreamKey>) -> Result<Worker<Job, StreamError>, StreamError> {
    let mut decompressor = Decompressor::new().map_err(|_| StreamError::Library("compression"))?;
    let mut crypt = FrameCrypt::new(header, key);
    let frame_size = header.frame_size.bytes();
    Ok(Box::new(move |job| {
        let (body, rest) = job.sealed.split_at_mut(job.head.body_len as usize);
        let tag = rest.first_chunk().expect("there is room for it");
        crypt.open(&job.head, body, tag)?;
        if job.head.encoding == Encoding::Zstd {
            job.unpacked.resize(frame_size, 0);
            let unpacked = &mut job.unpacked[..job.head.content_len as usize];
            let damaged = StreamError::Decompress(job.head.number);
            match decompressor.decompress_to_buffer(body, unpacked) {
                Ok(len) if len == job.head.content_len as usize => {}
                _ => return Err(damaged),
            }
        }
        Ok(())
    }))
}

/// Input that knows how far it was read.
pub(crate) struct Counted<R> {
    pub(crate) input: R,
    pub(crate) at: u64,
}

impl<R: Read> Counted<R> {
    /// Reads until `buf` is full or the input ends; returns how much.
    fn fill(&mut self, buf: &mut [u8]) -> Result<usize, StreamError> {
        let mut len = 0;
        while len < buf.len() {
            match self.input.read(&mut buf[len..]) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(StreamError::Read(error)),
            }
        }
        self.at += len as u64;
        Ok(len)
    }

    fn exact(&mut self, buf: &mut [u8], within: &'static str) -> Result<(), StreamError> {
        match self.fill(buf)? == buf.len() {
            true => Ok(()),
            false => Err(self.truncated(within)),
        }
    }

    fn truncated(&self, within: &'static str) -> StreamError {
        StreamError::Truncated {
            at: self.at,
            within,
        }
    }
}
