//! Reading what `openssl enc -pbkdf2` wrote, on many threads.
//!
//! **That format authenticates nothing.** What comes out may have been changed by whoever held the
//! file; a wrong passphrase shows, in CBC, by its padding at the very end, and in CTR not at all.

use std::{
    io::{self, Read, Write},
    num::NonZeroU32,
    sync::Arc,
};

use onionskin_crypt::unauthenticated::{BLOCK_LEN, LegacyCipher, unpadded_len};
pub use onionskin_crypt::unauthenticated::{LegacyAlgorithm, LegacyDigest};

use crate::{
    Progress, StreamError,
    chunk::Chunks,
    pipeline::{self, Worker, jobs_for},
};

/// Decrypted at a time by one thread, in bytes.
const PART_LEN: usize = 1 << 20;
const MAGIC: &[u8; 8] = b"Salted__";

/// How the file was written: what `openssl enc` was told, none of which stands in the file.
#[derive(Debug, Clone, Copy)]
pub struct OpensslOptions {
    /// The cipher.
    pub algorithm: LegacyAlgorithm,
    /// `-md`
    pub digest: LegacyDigest,
    /// `-iter`
    pub iterations: NonZeroU32,
}

/// Decrypts `input` to `output`. Returns the length of the plaintext.
pub fn open_openssl(
    mut input: impl Read + Send + 'static,
    mut output: impl Write,
    passphrase: &str,
    options: OpensslOptions,
    threads: usize,
    progress: &Progress,
) -> Result<u64, StreamError> {
    let salt = read_salt(&mut input)?;
    progress.add_read(MAGIC.len() + salt.len());
    let OpensslOptions {
        algorithm,
        digest,
        iterations,
    } = options;
    let padded = algorithm.is_padded();
    let cipher = LegacyCipher::derive(algorithm, passphrase, &salt, digest, iterations);
    let cipher = Arc::new(cipher);
    let threads = threads.max(1);
    let workers = (0..threads)
        .map(|_| worker(Arc::clone(&cipher), padded))
        .collect();
    let jobs = (0..jobs_for(threads)).map(|_| Job::new()).collect();
    let mut written = 0;
    let producer = producer(input, padded, progress.clone());
    pipeline::run(jobs, producer, workers, |job| {
        let plain = &job.bytes[..job.len];
        output.write_all(plain).map_err(StreamError::Write)?;
        progress.add_written(plain.len());
        written += plain.len() as u64;
        Ok(())
    })?;
    output.flush().map_err(StreamError::Write)?;
    Ok(written)
}

fn read_salt(input: &mut impl Read) -> Result<[u8; 8], StreamError> {
    let mut head = [0; 16];
    input
        .read_exact(&mut head)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => StreamError::NotOpenssl,
            _ => StreamError::Read(error),
        })?;
    let (magic, salt) = head.split_first_chunk().expect("longer");
    match magic == MAGIC {
        true => Ok(*salt.first_chunk().expect("eight are left")),
        false => Err(StreamError::NotOpenssl),
    }
}

/// A part on its way.
struct Job {
    /// A part, and the byte that is read ahead.
    bytes: Vec<u8>,
    len: usize,
    /// Number of its first block.
    block: u64,
    /// The block of ciphertext before it.
    previous: Option<[u8; BLOCK_LEN]>,
    last: bool,
}

impl Job {
    fn new() -> Self {
        Self {
            bytes: vec![0; PART_LEN + 1],
            len: 0,
            block: 0,
            previous: None,
            last: false,
        }
    }
}

fn producer(
    mut input: impl Read + Send + 'static,
    padded: bool,
    progress: Progress,
) -> impl FnMut(&mut Job) -> Result<bool, StreamError> + Send + 'static {
    let mut ahead = None;
    let mut block = 0;
    let mut previous = None;
    let mut ended = false;
    move |job| {
        if ended {
            return Ok(false);
        }
        let mut chunks = Chunks::resume(|buf: &mut [u8]| input.read(buf), ahead);
        let (len, last) = chunks.next(&mut job.bytes).map_err(StreamError::Read)?;
        ahead = chunks.ahead();
        progress.add_read(len);
        if padded && (len == 0 || !len.is_multiple_of(BLOCK_LEN)) {
            return Err(StreamError::PartialBlock);
        }
        (job.len, job.block, job.previous, job.last) = (len, block, previous, last);
        previous = job.bytes[..len].last_chunk().copied();
        block += (len / BLOCK_LEN) as u64;
        ended = last;
        Ok(true)
    }
}

fn worker(cipher: Arc<LegacyCipher>, padded: bool) -> Worker<Job, StreamError> {
    Box::new(move |job| {
        let part = &mut job.bytes[..job.len];
        cipher.decrypt_part(job.block, job.previous.as_ref(), part);
        if job.last && padded {
            job.len = unpadded_len(part).ok_or(StreamError::Padding)?;
        }
        Ok(())
    })
}
