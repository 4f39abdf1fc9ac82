//! A stream of unknown length that becomes an object: whole, or not at all.
//!
//! What fits into one part is sent with one request at the end. What is longer becomes a multipart
//! upload: parts go out while the next one is filled, each with its checksum, and the object
//! appears when the last one is there and all are put together. Nothing is written to a disk.
//!
//! # Whose object it is
//!
//! The object is made under the condition that there is none of its name. Where the answer to that
//! is lost, nobody knows what came of it, and asking again says that there is one: ours, or
//! somebody else's. So an object bears a random mark in its metadata, and is asked for it.
//!
//! # Parts
//!
//! S3 has room for 10,000 parts, and each is held in memory until it is stored, since it may have
//! to be sent again. So they grow:
//!
//! | the stream is longer than | parts in MiB | at once |
//! |---|---|---|
//! | | 16 | 4 |
//! | 62 GiB | 64 | 2 |
//! | 187 GiB | 256 | 1 |
//! | 687 GiB | 1024 | 1 |
//! | 2.6 TiB | an error | |

use std::{
    fmt::Write as _,
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use onionskin_backup::store::Unfinished;
use parking_lot::{Condvar, Mutex};
use rand::RngExt;
use rusty_s3::Method;

use crate::{
    Fault,
    client::{Answer, Ask, Client, LONG_IDLE},
    xml::Element,
};

const MIB: usize = 1 << 20;
/// Up to which number parts have which size, and how many are on their way at once.
const PARTS: [(usize, usize, usize); 4] = [
    (4000, 16 * MIB, 4),
    (6000, 64 * MIB, 2),
    (8000, 256 * MIB, 1),
    (10_000, 1024 * MIB, 1),
];
/// How long an aborted upload waits for what is on its way.
const ABORT_TIME: Duration = Duration::from_secs(5);
/// The mark of an object, in its metadata.
const MARK: &str = "x-amz-meta-onionskin-upload";
const CHECKSUM: &str = "x-amz-checksum-crc32";

/// Size in bytes of the part with this number, from 1 on, and how many go at once.
fn part(number: usize) -> Option<(usize, usize)> {
    let fits = PARTS.iter().find(|(last, ..)| number <= *last);
    fits.map(|(_, size, at_once)| (*size, *at_once))
}

/// CRC-32 as S3 writes it.
fn checksum(bytes: &[u8]) -> String {
    STANDARD.encode(crc32fast::hash(bytes).to_be_bytes())
}

/// An object that is being written. Dropped without [`Unfinished::finish`], it is aborted.
pub(crate) struct Upload {
    shared: Arc<Shared>,
    buffer: Vec<u8>,
    /// Bytes that parts have taken.
    sent: u64,
    /// Number of the part that is filled.
    number: usize,
}

/// What the threads of an upload have in common.
struct Shared {
    client: Arc<Client>,
    key: String,
    mark: String,
    state: Mutex<State>,
    changed: Condvar,
    /// Nobody waits for it any more.
    stop: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The multipart upload, once there is one.
    id: Option<String>,
    /// Tags and checksums of the parts that are stored, by number.
    stored: Vec<Option<(String, String)>>,
    on_way: usize,
    failed: Option<Fault>,
    /// Buffers to be filled again.
    free: Vec<Vec<u8>>,
    ended: bool,
}

impl Upload {
    pub(crate) fn new(client: Arc<Client>, key: String) -> Self {
        let mark = format!("{:032x}", rand::rng().random::<u128>());
        Self {
            shared: Arc::new(Shared {
                client,
                key,
                mark,
                state: Mutex::default(),
                changed: Condvar::new(),
                stop: AtomicBool::new(false),
            }),
            buffer: Vec::new(),
            sent: 0,
            number: 1,
        }
    }

    /// Sends what was collected, in a thread of its own.
    fn send_part(&mut self) -> Result<(), Fault> {
        let (_, at_once) = part(self.number).ok_or(Fault::TooLong)?;
        let shared = &self.shared;
        shared.begin()?;
        let mut state = shared.state.lock();
        while state.on_way >= at_once && state.failed.is_none() {
            shared.changed.wait(&mut state);
        }
        if let Some(fault) = &state.failed {
            return Err(fault.clone());
        }
        state.on_way += 1;
        state.stored.push(None);
        let next = state.free.pop().unwrap_or_default();
        drop(state);
        let bytes = std::mem::replace(&mut self.buffer, next);
        self.sent += bytes.len() as u64;
        let (shared, number) = (Arc::clone(shared), self.number);
        self.number += 1;
        let work = move || shared.store_part(number, bytes);
        let spawned = thread::Builder::new().name("upload".into()).spawn(work);
        spawned.map(drop).map_err(|_| {
            // Nobody will say that this part has come to its end.
            self.shared.state.lock().on_way -= 1;
            Fault::Lost
        })
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (size, _) = part(self.number).ok_or(Fault::TooLong)?;
        // Only when more comes: what fits into one part shall need one request.
        if self.buffer.len() == size {
            self.send_part()?;
            return self.write(bytes);
        }
        if self.buffer.capacity() < size && self.buffer.len() + bytes.len() > MIB {
            self.buffer.reserve_exact(size - self.buffer.len());
        }
        let taken = bytes.len().min(size - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Unfinished for Upload {
    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let whole = self.sent + self.buffer.len() as u64;
        if self.number == 1 {
            self.shared.store_whole(&self.buffer)?;
        } else {
            if !self.buffer.is_empty() {
                self.send_part()?;
            }
            self.shared.put_together(whole)?;
        }
        self.shared.state.lock().ended = true;
        Ok(())
    }

    fn abandon(&self) -> Box<dyn FnOnce() + Send> {
        let shared = Arc::clone(&self.shared);
        Box::new(move || shared.abort())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.shared.abort();
    }
}

impl Shared {
    /// Begins the multipart upload unless it was begun.
    fn begin(&self) -> Result<(), Fault> {
        if self.state.lock().id.is_some() {
            return Ok(());
        }
        let mut ask = Ask::new(Method::Post, "beginning an upload", Some(&self.key));
        ask.query = vec![("uploads", "")];
        ask.headers = vec![
            ("x-amz-checksum-algorithm", "CRC32".into()),
            (MARK, self.mark.clone()),
        ];
        let answer = self.client.ask(&ask, Some(&self.stop))?;
        let root = Element::parse(&answer.body);
        let id = root.as_ref().and_then(|root| root.text_of("UploadId"));
        let id = id.filter(|id| !id.is_empty() && id.len() < 2048);
        let id = id.ok_or_else(|| self.client.odd(&ask, "it has no id"))?;
        self.state.lock().id = Some(id.to_owned());
        Ok(())
    }

    /// Stores one part, and says so.
    fn store_part(&self, number: usize, mut bytes: Vec<u8>) {
        let id = self.state.lock().id.clone().unwrap_or_default();
        let text = number.to_string();
        let sum = checksum(&bytes);
        let mut ask = Ask::new(Method::Put, "storing a part", Some(&self.key));
        ask.query = vec![("partNumber", &text), ("uploadId", &id)];
        ask.headers = vec![(CHECKSUM, sum.clone())];
        ask.body = &bytes;
        let stored = match self.client.ask(&ask, Some(&self.stop)) {
            Ok(answer) => match answer.header("etag").map(str::to_owned) {
                Some(tag) if tag.len() < 256 => Ok((tag, sum)),
                _ => Err(self.client.odd(&ask, "it has no tag")),
            },
            Err(fault) => Err(fault),
        };
        bytes.clear();
        let mut state = self.state.lock();
        state.on_way -= 1;
        state.free.push(bytes);
        match stored {
            Ok(stored) => state.stored[number - 1] = Some(stored),
            Err(fault) => {
                state.failed.get_or_insert(fault);
                self.stop.store(true, Ordering::Relaxed);
            }
        }
        self.changed.notify_all();
    }

    /// The object with one request.
    fn store_whole(&self, bytes: &[u8]) -> Result<(), Fault> {
        let mut ask = Ask::new(Method::Put, "storing an object", Some(&self.key));
        ask.headers = vec![
            ("if-none-match", "*".into()),
            (CHECKSUM, checksum(bytes)),
            (MARK, self.mark.clone()),
        ];
        ask.body = bytes;
        let stored = self.client.ask(&ask, Some(&self.stop));
        self.settle(stored, bytes.len() as u64)
    }

    /// Waits for all parts and makes the object of them.
    fn put_together(&self, whole: u64) -> Result<(), Fault> {
        let mut state = self.state.lock();
        while state.on_way > 0 {
            self.changed.wait(&mut state);
        }
        if let Some(fault) = &state.failed {
            return Err(fault.clone());
        }
        let id = state.id.clone().ok_or(Fault::Lost)?;
        let mut body = String::from(
            "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">",
        );
        for (number, stored) in (1..).zip(&state.stored) {
            let (tag, sum) = stored.as_ref().ok_or(Fault::Lost)?;
            let tag = quick_xml::escape::escape(tag.as_str());
            // Writing to a text does not fail.
            let _ = write!(
                body,
                "<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag><ChecksumCRC32>{sum}</ChecksumCRC32></Part>"
            );
        }
        body.push_str("</CompleteMultipartUpload>");
        drop(state);
        let mut ask = Ask::new(Method::Post, "ending an upload", Some(&self.key));
        ask.query = vec![("uploadId", &id)];
        ask.headers = vec![("if-none-match", "*".into())];
        ask.body = body.as_bytes();
        ask.idle = LONG_IDLE;
        let stored = self.client.ask(&ask, Some(&self.stop));
        self.settle(stored, whole)
    }

    /// Whether our object is there, in its length. Where nobody may look at objects, what the
    /// server has said counts.
    fn settle(&self, stored: Result<Answer, Fault>, whole: u64) -> Result<(), Fault> {
        let lost = match stored {
            Ok(_) => None,
            // An earlier attempt, whose answer was lost, may have made it.
            Err(fault @ (Fault::Changed | Fault::Exists | Fault::Aborted)) => Some(fault),
            Err(fault @ (Fault::Unreachable { .. } | Fault::Failing { .. })) => Some(fault),
            Err(fault) => return Err(fault),
        };
        let said = |fault| match fault {
            Fault::Changed | Fault::Exists => Fault::Exists,
            other => other,
        };
        let ask = Ask::new(Method::Head, "looking at an object", Some(&self.key));
        match (self.client.ask(&ask, None), lost) {
            (Ok(answer), lost) => {
                let is_ours = answer.header(MARK) == Some(&self.mark);
                let len = answer
                    .header("content-length")
                    .and_then(|len| len.parse().ok());
                match (is_ours, len == Some(whole), lost) {
                    (true, true, _) => Ok(()),
                    (_, _, Some(fault)) if !is_ours => Err(said(fault)),
                    // Another one has come over it: the store knows no conditions.
                    (false, _, _) => Err(Fault::Exists),
                    (true, false, _) => Err(self
                        .client
                        .odd(&ask, "the object has another length than was sent")),
                }
            }
            (Err(Fault::Refused { .. }), None) => Ok(()),
            (Err(_), Some(fault)) => Err(said(fault)),
            (Err(fault), None) => Err(fault),
        }
    }

    /// Ends the upload, if there is one that has not become an object.
    fn abort(&self) {
        self.stop.store(true, Ordering::Relaxed);
        let mut state = self.state.lock();
        let until = Instant::now() + ABORT_TIME;
        // What arrives behind the abort would stay.
        while state.on_way > 0 && !self.changed.wait_until(&mut state, until).timed_out() {}
        if std::mem::replace(&mut state.ended, true) {
            return;
        }
        let Some(id) = state.id.take() else { return };
        drop(state);
        let mut ask = Ask::new(Method::Delete, "aborting an upload", Some(&self.key));
        ask.query = vec![("uploadId", &id)];
        ask.idle = ABORT_TIME;
        // The next run does it, if need be.
        let _ = self.client.ask_once(&ask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_grow_within_what_s3_has_room_for() {
        let mut whole = 0;
        for number in 1..=10_000 {
            let (size, at_once) = part(number).unwrap();
            assert!((5 * MIB..=5120 * MIB).contains(&size) && at_once > 0);
            whole += size as u64;
        }
        assert_eq!(part(10_001), None);
        assert!(whole > 2_600 << 30, "{whole}");
    }

    #[test]
    fn checksums_are_those_of_s3() {
        // CRC-32 of "123456789" is cbf43926.
        assert_eq!(checksum(b"123456789"), "y/Q5Jg==");
    }
}
