//! An object that is read as a file is: from anywhere, and ahead of whoever reads on.
//!
//! After a jump, 64 KiB are fetched: a header, or the end of the object, where footers are. Who
//! reads on has pieces of 8 MiB fetched for him by several requests at a time, in threads of their
//! own. All are of one state of the object: its tag stands in each request.

use std::{
    collections::BTreeMap,
    io::{self, Read, Seek, SeekFrom},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use parking_lot::{Condvar, Mutex};
use rusty_s3::Method;

use crate::{
    Fault,
    client::{Ask, Client},
};

/// Fetched after a jump.
const LOOK: u64 = 64 << 10;
/// Fetched at a time for who reads on.
const PIECE: u64 = 8 << 20;
/// Pieces on their way, or waiting for the reader.
const AHEAD: u64 = 4;

/// What all requests for an object have in common.
struct Source {
    client: Arc<Client>,
    key: String,
    len: u64,
    tag: String,
}

/// Bytes of the object, from a place on.
struct Window {
    from: u64,
    bytes: Vec<u8>,
}

impl Window {
    fn end(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }

    /// What it has from a place on.
    fn at(&self, place: u64) -> Option<&[u8]> {
        let skipped = usize::try_from(place.checked_sub(self.from)?).ok()?;
        self.bytes.get(skipped..).filter(|rest| !rest.is_empty())
    }
}

/// An opened object.
pub(crate) struct Object {
    source: Arc<Source>,
    at: u64,
    /// Its beginning and its end, when they were fetched.
    ends: Vec<Window>,
    current: Option<Window>,
    ahead: Option<Ahead>,
}

impl Object {
    /// An object in the state that has this tag. Nothing is fetched yet.
    pub(crate) fn new(client: Arc<Client>, key: String, len: u64, tag: String) -> Self {
        Self {
            source: Arc::new(Source {
                client,
                key,
                len,
                tag,
            }),
            at: 0,
            ends: Vec::new(),
            current: None,
            ahead: None,
        }
    }

    /// Looks the object up.
    pub(crate) fn find(client: Arc<Client>, key: String) -> Result<Self, Fault> {
        let ask = Ask::new(Method::Head, "looking at an object", Some(&key));
        let answer = client.ask(&ask, None)?;
        let len = answer
            .header("content-length")
            .and_then(|len| len.parse().ok());
        let tag = answer.header("etag").map(str::to_owned);
        match (len, tag) {
            (Some(len), Some(tag)) => Ok(Self::new(client, key, len, tag)),
            _ => Err(client.odd(&ask, "it has no length or no tag")),
        }
    }

    /// Fetches beginning and end, which tell what a sealed stream holds.
    pub(crate) fn fetch_ends(&mut self) -> Result<(), Fault> {
        let len = self.source.len;
        for from in [0, len.saturating_sub(LOOK)] {
            if self.ends.iter().all(|window| window.at(from).is_none()) && from < len {
                let window = self.source.fetch(from, LOOK.min(len - from))?;
                self.ends.push(window);
            }
        }
        Ok(())
    }

    /// Makes the bytes at the current place ready.
    fn load(&mut self, wanted: usize) -> Result<(), Fault> {
        let (at, len) = (self.at, self.source.len);
        let reads_on = self
            .current
            .as_ref()
            .is_some_and(|window| window.end() == at)
            || self
                .ends
                .first()
                .is_some_and(|window| window.from == 0 && window.end() == at);
        if reads_on {
            let fits = |ahead: &&mut Ahead| ahead.next == at;
            if self.ahead.as_mut().filter(fits).is_none() {
                self.ahead = Some(Ahead::new(Arc::clone(&self.source), at));
            }
            if let Some(ahead) = &mut self.ahead {
                self.current = Some(ahead.take()?);
            }
            return Ok(());
        }
        self.ahead = None;
        // Near the end, all of the end: a trailer is read before the footer before it.
        let from = at.min(len.saturating_sub(LOOK));
        let size = LOOK.max(wanted as u64 + (at - from)).min(PIECE);
        self.current = Some(self.source.fetch(from, size.min(len - from))?);
        Ok(())
    }
}

impl Source {
    /// Bytes of the object, as many as are asked for, in its one state.
    fn fetch(&self, from: u64, size: u64) -> Result<Window, Fault> {
        let last = from + size - 1;
        let mut ask = Ask::new(Method::Get, "reading an object", Some(&self.key));
        ask.headers = vec![
            ("if-match", self.tag.clone()),
            ("range", format!("bytes={from}-{last}")),
        ];
        ask.wanted = usize::try_from(size).ok();
        let answer = self.client.ask(&ask, None)?;
        let whole = size == self.len;
        let range = format!("bytes {from}-{last}/{}", self.len);
        let is_it = match answer.status {
            206 => answer.header("content-range") == Some(&range),
            200 => whole,
            _ => false,
        };
        if !is_it {
            return Err(self
                .client
                .odd(&ask, "it is not the range that was asked for"));
        }
        if answer.header("etag").is_some_and(|tag| tag != self.tag) {
            return Err(Fault::Changed);
        }
        Ok(Window {
            from,
            bytes: answer.body,
        })
    }
}

impl Read for Object {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() || self.at >= self.source.len {
            return Ok(0);
        }
        loop {
            let windows = self.current.iter().chain(&self.ends);
            let found = windows.filter_map(|window| window.at(self.at)).next();
            if let Some(bytes) = found {
                let taken = bytes.len().min(buf.len());
                buf[..taken].copy_from_slice(&bytes[..taken]);
                self.at += taken as u64;
                return Ok(taken);
            }
            self.load(buf.len())?;
        }
    }
}

impl Seek for Object {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::End(by) => self.source.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = place.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// Pieces that are fetched ahead of the reader.
struct Ahead {
    source: Arc<Source>,
    /// Where the next piece for the reader begins.
    next: u64,
    /// Where the next piece to be fetched begins.
    begun: u64,
    shared: Arc<Fetched>,
}

/// What threads and reader have in common.
#[derive(Default)]
struct Fetched {
    pieces: Mutex<BTreeMap<u64, Result<Window, Fault>>>,
    came: Condvar,
    stop: AtomicBool,
}

impl Ahead {
    fn new(source: Arc<Source>, from: u64) -> Self {
        Self {
            source,
            next: from,
            begun: from,
            shared: Arc::default(),
        }
    }

    /// The next piece. Has those behind it fetched.
    fn take(&mut self) -> Result<Window, Fault> {
        while self.begun < self.source.len && self.begun < self.next + AHEAD * PIECE {
            let from = self.begun;
            let size = PIECE.min(self.source.len - from);
            let (source, shared) = (Arc::clone(&self.source), Arc::clone(&self.shared));
            let fetch = move || {
                let fetched = match shared.stop.load(Ordering::Relaxed) {
                    false => source.fetch(from, size),
                    true => return,
                };
                shared.pieces.lock().insert(from, fetched);
                shared.came.notify_all();
            };
            let thread = thread::Builder::new().name("download".into());
            thread.spawn(fetch).map_err(|_| Fault::Lost)?;
            self.begun += size;
        }
        let mut pieces = self.shared.pieces.lock();
        loop {
            match pieces.remove(&self.next) {
                Some(piece) => {
                    let piece = piece?;
                    self.next = piece.end();
                    return Ok(piece);
                }
                None => self.shared.came.wait(&mut pieces),
            }
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}
