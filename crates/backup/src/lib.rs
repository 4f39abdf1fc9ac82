//! Sealed streams: backups that are encrypted, authenticated, compressed and verifiable, in one
//! pass and on all cores.
//!
//! A sealed stream is a header, independent frames of at most 4 MiB of input each, a footer and a
//! trailer. It needs no seeking to be written or read, so it goes through any pipe; where it can be
//! sought in, the footer tells what is inside without opening a frame. The format, byte by byte, is
//! in `docs/formats.md`.
//!
//! | module | what it is |
//! |---|---|
//! | [`header`] | suite, frame size and key of a stream, and how the key is found again |
//! | [`frame`] | one frame: its head, its nonce, what its tag covers |
//! | [`footer`] | seek table, totals, digest, manifest |
//! | [`manifest`] | what the stream holds: server, positions, tables |
//! | [`seal`](mod@seal), [`open`](mod@open), [`verify`](mod@verify) | the three things one does |
//! | [`innodb`] | page checksums of a physical backup, on the way |
//! | [`source`] | where the bytes come from, and how it tells that it has failed |
//! | [`restore`] | from a sealed physical backup to a data directory |
//! | [`folder`] | the files of a folder as a source: those of the clone plugin |
//! | [`catalogue`], [`retention`] | a folder of backups: what is in it, which continue which, which to keep |
//! | [`archive`] | the binlog, followed as a replica does and sealed in segments; replaying them |
//! | [`settings`] | what a server must be told to read another's files, and nothing else |
//! | [`environment`] | what other programs may know of ours |
//! | [`openssl`] | reading what `openssl enc` wrote |
//! | [`store`] | where sealed files lie: a folder, or what can do as much |
//! | [`whole_file`] | files that are there whole or not at all |
//! | [`whole_folder`] | directories of that kind, mount points among them |
//!
//! # What is promised
//!
//! - No byte of plaintext is handed on before its tag has been verified.
//! - A stream that was cut, reordered, spliced, prolonged or changed in any bit is an error. A
//!   reader that writes to a pipe has handed on the frames before the damage, never the last frame:
//!   that one waits for the footer.
//! - A source that fails, a full disk or a kill leaves a stream without its last-frame mark and
//!   footer, which opens as "truncated" and nothing else.
//! - Memory is bounded by the number of threads and the frame size, and four bytes for each frame.
//!
//! ```
//! use onionskin_backup::{Level, Progress, SealKey, SealOptions, SealedStream, seal, source::Plain};
//! use onionskin_keys::{PassphraseCost, Suite};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let cost = PassphraseCost { memory_kib: 64, passes: 1, lanes: 1 };
//! let key = SealKey::Passphrase { passphrase: "correct horse", cost };
//! let options = SealOptions { level: Level::new(3).unwrap(), ..SealOptions::new(Suite::Aes) };
//! let mut sealed = Vec::new();
//! seal(Plain::stdin(&b"what must not be read"[..]), &mut sealed, key, &options, &Progress::new())?;
//!
//! let stream = SealedStream::begin(std::io::Cursor::new(sealed))?;
//! let key = stream.header().key_from_passphrase("correct horse")?;
//! let mut opened = Vec::new();
//! stream.open(key, &mut opened, options.threads, &Progress::new())?;
//! assert_eq!(opened, b"what must not be read");
//! # Ok(()) }
//! ```

pub mod archive;
pub mod catalogue;
mod chunk;
mod dump;
pub mod environment;
mod error;
pub mod folder;
pub mod footer;
pub mod frame;
pub mod header;
pub mod innodb;
pub mod manifest;
mod mbstream;
pub mod open;
pub mod openssl;
mod pipeline;
mod progress;
pub mod restore;
pub mod retention;
pub mod seal;
pub mod settings;
pub mod source;
pub mod store;
mod unpack;
#[cfg(test)]
mod vectors;
pub mod verify;
pub mod whole_file;
pub mod whole_folder;

pub use error::StreamError;
pub use footer::Footer;
pub use header::{FrameSize, Header, KeySource};
pub use manifest::Manifest;
pub use open::SealedStream;
pub use progress::Progress;
pub use seal::{Level, SealKey, SealOptions, Sealed, seal};
pub use verify::{Verified, verify};
pub use whole_file::WholeFile;

/// How many threads to use: one for each processor that this process may use.
pub fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
