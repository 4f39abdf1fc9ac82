//! Writes a run.
//!
//! A statement's line is in the kernel's hands before the session reads its client's next command:
//! it outlives the program. Room for the lines of statements that are under way is reserved on the
//! disk beforehand, so that a full disk is known before a statement runs and not behind it. Once a
//! minute the run gets a sealed head, and its files are synced.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use onionskin_crypt::AuditKey;
use parking_lot::{Condvar, Mutex};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::Errno;

use crate::error::AuditError;
use crate::folder::{name_of, runs};
use crate::line::{
    FoundEnd, Link, NO_LINK, Noted, Parsed, Record, Statement, digest_of, hex, now, put,
};
use crate::syslog::{Copies, SyslogAddress};

/// Where and how a run is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The folder of all runs. It must be there.
    pub folder: PathBuf,
    /// A file to which heads are appended: better on another disk than the folder.
    pub heads: Option<PathBuf>,
    /// A part that has so many bytes goes on in another one.
    pub part_bytes: u64,
    /// Time between heads.
    pub every: Duration,
    /// A daemon that gets a copy of every line.
    pub syslog: Option<SyslogAddress>,
}

/// So much room is reserved ahead, and so much at least has to be left for statements to begin.
const RESERVE: u64 = 2 << 20;
const LOW: u64 = 1 << 20;

/// Where there was no room, it is looked for again so often.
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// Texts of shapes that are known at once; with another one, they are told anew. Applications have
/// some hundreds.
const MOST_SHAPES: usize = 10_000;

/// The longest end of a part in which its last line is looked for.
const TAIL: u64 = 4 << 20;

/// What a seal says of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The run.
    pub run: String,
    /// The number of the line.
    pub n: u64,
    /// Its link, as hexadecimal digits.
    pub link: String,
}

/// A run that is written. Its last line is written when it is dropped.
pub struct AuditLog {
    settings: Settings,
    key: Arc<AuditKey>,
    run: String,
    chain: Mutex<Chain>,
    /// There is room for the lines of what is under way.
    has_room: AtomicBool,
    /// Statements that have no line.
    lost: AtomicU64,
    written: AtomicU64,
    copies: Option<Copies>,
    end: Arc<End>,
}

/// Wakes the thread of heads at the end of the run.
#[derive(Default)]
struct End {
    has_come: Mutex<bool>,
    comes: Condvar,
}

/// The part that is written, and the end of the chain.
struct Chain {
    file: File,
    path: PathBuf,
    part: u32,
    size: u64,
    reserved: u64,
    /// The size at which another part is begun.
    turn_at: u64,
    n: u64,
    link: Link,
    /// Digests by text.
    shapes: HashMap<String, String>,
    buffer: Vec<u8>,
    /// Lost statements that no line tells yet.
    untold: u64,
    /// The number of the last line that the file of heads knows, heads left out.
    noted: u64,
    tried: Instant,
    is_closed: bool,
}

impl AuditLog {
    /// Begins a run.
    pub fn begin(settings: Settings, key: Arc<AuditKey>) -> Result<Arc<AuditLog>, AuditError> {
        let found = found_ends(&settings.folder)?;
        let copies = settings.syslog.clone().map(Copies::begin).transpose();
        let copies = copies.map_err(|source| AuditError::File {
            path: settings.folder.clone(),
            source,
        })?;
        let run = hex(&rand::random::<[u8; 8]>());
        let (file, path) = create(&settings.folder, &run, 1)?;
        let chain = Chain {
            file,
            path,
            part: 1,
            size: 0,
            reserved: 0,
            turn_at: settings.part_bytes,
            n: 0,
            link: NO_LINK,
            shapes: HashMap::new(),
            buffer: Vec::new(),
            untold: 0,
            noted: 0,
            tried: Instant::now(),
            is_closed: false,
        };
        let log = Arc::new(AuditLog {
            settings,
            key,
            run,
            chain: Mutex::new(chain),
            has_room: AtomicBool::new(true),
            lost: AtomicU64::new(0),
            written: AtomicU64::new(0),
            copies,
            end: Arc::default(),
        });
        {
            let mut chain = log.chain.lock();
            let path = chain.path.clone();
            let failed = |source| AuditError::File { path, source };
            chain.reserve().map_err(failed.clone())?;
            log.open_part(&mut chain, &found).map_err(failed.clone())?;
            chain.file.sync_all().map_err(failed)?;
            log.note(&mut chain, false)?;
        }
        log.begin_heads()?;
        Ok(log)
    }

    /// Statements that have a line, and statements that could not be given one.
    pub fn counts(&self) -> (u64, u64) {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        (read(&self.written), read(&self.lost))
    }

    /// Lines that the syslog daemon has not got.
    pub fn copies_lost(&self) -> u64 {
        self.copies.as_ref().map_or(0, Copies::lost)
    }

    /// Whether the statements that begin now will find room for their lines. Where there was none,
    /// it is looked for, now and then.
    pub fn find_room(&self) -> Result<(), AuditError> {
        if self.has_room.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut chain = self.chain.lock();
        let no_room = |chain: &Chain, source| AuditError::NoRoom {
            path: chain.path.clone(),
            source,
        };
        if chain.tried.elapsed() < TRY_AGAIN {
            return Err(no_room(&chain, io::ErrorKind::StorageFull.into()));
        }
        chain.tried = Instant::now();
        let told = match chain.reserve() {
            Ok(()) => self.tell_lost(&mut chain),
            Err(error) => Err(error),
        };
        told.map_err(|error| no_room(&chain, error))?;
        self.has_room_again();
        Ok(())
    }

    /// Says so once.
    fn has_no_room(&self, error: &io::Error) {
        if self.has_room.swap(false, Ordering::Relaxed) {
            let folder = self.settings.folder.display();
            tracing::error!(%folder, %error, "the audit log has no room");
        }
    }

    fn has_room_again(&self) {
        if !self.has_room.swap(true, Ordering::Relaxed) {
            tracing::info!("the audit log has room again");
        }
    }

    /// Writes a statement's line; `text` is its shape. If that fails, the statement is counted as
    /// lost.
    pub fn statement(&self, mut statement: Statement, text: &str) -> Result<(), AuditError> {
        let mut chain = self.chain.lock();
        let known = chain.shapes.get(text).cloned();
        let is_new = known.is_none();
        statement.shape = known.unwrap_or_else(|| digest_of(text));
        let shape = Record::Shape {
            shape: &statement.shape,
            text,
        };
        let line = Record::Statement(&statement);
        let done = self.tell_lost(&mut chain).and_then(|()| match is_new {
            true => self.append(&mut chain, &[shape, line]),
            false => self.append(&mut chain, &[line]),
        });
        if let Err(source) = done {
            chain.untold += 1;
            self.lost.fetch_add(1, Ordering::Relaxed);
            self.has_no_room(&source);
            let path = chain.path.clone();
            return Err(AuditError::File { path, source });
        }
        self.written.fetch_add(1, Ordering::Relaxed);
        if is_new {
            if chain.shapes.len() >= MOST_SHAPES {
                chain.shapes.clear();
            }
            chain.shapes.insert(text.to_owned(), statement.shape);
        }
        if chain.reserved.saturating_sub(chain.size) < LOW {
            match chain.reserve() {
                Ok(()) => self.has_room_again(),
                Err(error) => self.has_no_room(&error),
            }
        }
        if chain.size >= chain.turn_at {
            self.turn(&mut chain);
        }
        Ok(())
    }

    /// Writes a sealed head, syncs the part, and tells the file of heads, if something has happened
    /// since it was told last. `None` behind the end of the run.
    pub fn head(&self) -> Result<Option<Head>, AuditError> {
        let mut chain = self.chain.lock();
        if chain.is_closed {
            return Ok(None);
        }
        let path = chain.path.clone();
        let failed = |source| AuditError::File { path, source };
        self.append(&mut chain, &[Record::Head])
            .and_then(|()| chain.file.sync_data())
            .map_err(failed)?;
        self.note(&mut chain, false)?;
        let head = self.head_of(&chain);
        if !chain.is_in_place() {
            let file = chain.path.display();
            tracing::error!(%file, "the audit log's file was taken away: another one is begun");
            self.turn(&mut chain);
        }
        Ok(Some(head))
    }

    /// Ends the run. What comes behind has no line.
    pub fn close(&self) -> Result<Head, AuditError> {
        *self.end.has_come.lock() = true;
        self.end.comes.notify_all();
        let mut chain = self.chain.lock();
        if !chain.is_closed {
            let path = chain.path.clone();
            let failed = |source| AuditError::File { path, source };
            self.tell_lost(&mut chain)
                .and_then(|()| self.append(&mut chain, &[Record::Closed]))
                .and_then(|()| chain.finish())
                .map_err(failed)?;
            chain.is_closed = true;
            self.note(&mut chain, true)?;
        }
        if let Some(copies) = &self.copies {
            copies.end();
        }
        Ok(self.head_of(&chain))
    }

    fn head_of(&self, chain: &Chain) -> Head {
        Head {
            run: self.run.clone(),
            n: chain.n,
            link: hex(&chain.link),
        }
    }

    /// The thread of heads. It ends with the run.
    fn begin_heads(self: &Arc<Self>) -> Result<(), AuditError> {
        let (log, end) = (Arc::downgrade(self), Arc::clone(&self.end));
        let every = self.settings.every;
        let thread = std::thread::Builder::new().name("audit heads".into());
        let begun = thread.spawn(move || {
            loop {
                let mut has_come = end.has_come.lock();
                if !*has_come {
                    end.comes.wait_for(&mut has_come, every);
                }
                let is_over = *has_come;
                drop(has_come);
                match log.upgrade() {
                    Some(log) if !is_over => log.write_head(),
                    _ => return,
                }
            }
        });
        begun.map(drop).map_err(|source| AuditError::File {
            path: self.settings.folder.clone(),
            source,
        })
    }

    fn write_head(&self) {
        match self.head() {
            Ok(None) => {}
            Ok(Some(head)) => {
                tracing::info!(run = head.run, n = head.n, link = head.link, "audit head");
            }
            Err(error) => tracing::error!(%error, "no audit head is written"),
        }
    }

    /// Appends lines, all or none.
    fn append(&self, chain: &mut Chain, records: &[Record]) -> io::Result<()> {
        if chain.is_closed {
            return Err(io::Error::other("the audit log is closed"));
        }
        let mut buffer = std::mem::take(&mut chain.buffer);
        buffer.clear();
        let (mut n, mut link) = (chain.n, chain.link);
        for record in records {
            n += 1;
            link = put(&mut buffer, &self.key, &link, &self.run, n, now(), record);
        }
        let done = chain.file.write_all(&buffer);
        match &done {
            Ok(()) => {
                (chain.n, chain.link) = (n, link);
                chain.size += buffer.len() as u64;
                if let Some(copies) = &self.copies {
                    copies.send(&buffer);
                }
            }
            // Half a line would be the end of what can be verified. Behind this, room has to be
            // reserved anew.
            Err(_) => {
                chain.file.set_len(chain.size)?;
                chain.file.seek(SeekFrom::Start(chain.size))?;
                chain.reserved = chain.size;
            }
        }
        chain.buffer = buffer;
        done
    }

    fn tell_lost(&self, chain: &mut Chain) -> io::Result<()> {
        if chain.untold > 0 {
            let lost = Record::Lost {
                statements: chain.untold,
            };
            self.append(chain, &[lost])?;
            chain.untold = 0;
        }
        Ok(())
    }

    fn open_part(&self, chain: &mut Chain, found: &[FoundEnd]) -> io::Result<()> {
        let after = hex(&chain.link);
        let opened = Record::Opened {
            part: chain.part,
            after: &after,
            version: env!("CARGO_PKG_VERSION"),
            found,
        };
        self.append(chain, &[opened])
    }

    /// Goes on in another part. If that fails, this one goes on.
    fn turn(&self, chain: &mut Chain) {
        if let Err(error) = self.try_turn(chain) {
            tracing::error!(%error, "the audit log stays in its file");
            chain.turn_at = chain.size + self.settings.part_bytes / 8;
        }
    }

    fn try_turn(&self, chain: &mut Chain) -> Result<(), AuditError> {
        let part = chain.part + 1;
        let (file, path) = create(&self.settings.folder, &self.run, part)?;
        let failed = |source| AuditError::File {
            path: path.clone(),
            source,
        };
        let old = (chain.size, chain.n, chain.link);
        let mut next = Chain {
            file,
            path: path.clone(),
            part,
            size: 0,
            reserved: 0,
            turn_at: self.settings.part_bytes,
            shapes: HashMap::new(),
            buffer: Vec::new(),
            ..*chain
        };
        let turned = self.append(chain, &[Record::Turned]);
        let begun = turned.and_then(|()| {
            (next.n, next.link) = (chain.n, chain.link);
            next.reserve()?;
            self.open_part(&mut next, &[])
        });
        if let Err(source) = begun {
            // as if it had not been tried
            (chain.size, chain.n, chain.link) = old;
            chain.file.set_len(chain.size).map_err(failed)?;
            chain
                .file
                .seek(SeekFrom::Start(chain.size))
                .map_err(failed)?;
            fs::remove_file(&path).map_err(failed)?;
            return Err(failed(source));
        }
        let mut old = std::mem::replace(chain, next);
        old.finish().map_err(failed)
    }

    /// Tells the file of heads where the chain ends.
    fn note(&self, chain: &mut Chain, closed: bool) -> Result<(), AuditError> {
        let Some(path) = &self.settings.heads else {
            return Ok(());
        };
        // heads alone are nothing new
        if !closed && chain.noted > 0 && chain.n <= chain.noted + 1 {
            chain.noted = chain.n;
            return Ok(());
        }
        let noted = Noted {
            run: self.run.clone(),
            n: chain.n,
            time: now(),
            link: hex(&chain.link),
            closed,
        };
        let mut line = Vec::new();
        noted.put(&mut line, &self.key);
        let failed = |source| AuditError::File {
            path: path.clone(),
            source,
        };
        // One write: others may append to the file as well.
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o640)
            .open(path)
            .map_err(failed)?;
        file.write_all(&line).map_err(failed)?;
        file.sync_data().map_err(failed)?;
        chain.noted = chain.n;
        Ok(())
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "the audit log has no last line");
        }
    }
}

impl Chain {
    /// Reserves room behind the end.
    fn reserve(&mut self) -> io::Result<()> {
        match fallocate(&self.file, FallocateFlags::KEEP_SIZE, self.size, RESERVE) {
            Ok(()) => self.reserved = self.size + RESERVE,
            // Not every file system can: there a full disk is known behind the statement.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.reserved = u64::MAX,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Whether the file is still there under its name. Lines in one that was removed are gone with
    /// the program.
    fn is_in_place(&self) -> bool {
        let file = self.file.metadata();
        let named = fs::metadata(&self.path);
        let id = |data: fs::Metadata| (data.dev(), data.ino());
        // what cannot be looked at is no reason to begin another one each time
        match (file, named) {
            (Ok(file), Ok(named)) => id(file) == id(named),
            (_, Err(error)) => error.kind() != io::ErrorKind::NotFound,
            (Err(_), _) => true,
        }
    }

    /// Gives back what was reserved: nothing is written any more.
    fn finish(&mut self) -> io::Result<()> {
        self.file.set_len(self.size)?;
        self.file.sync_all()
    }
}

/// A new part, which no other program takes for one that was left.
fn create(folder: &Path, run: &str, part: u32) -> Result<(File, PathBuf), AuditError> {
    let path = folder.join(name_of(now(), run, part));
    let failed = |source| AuditError::File {
        path: path.clone(),
        source,
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o640);
    let file = options.open(&path).map_err(failed)?;
    // another program that begins may look at it for a moment
    flock(&file, FlockOperation::LockExclusive).map_err(|e| failed(e.into()))?;
    Ok((file, path))
}

/// Where runs end that have no last line, that nobody writes, and that no other run has found.
fn found_ends(folder: &Path) -> Result<Vec<FoundEnd>, AuditError> {
    let runs = runs(folder)?;
    let mut known = HashSet::new();
    let mut found = Vec::new();
    for (run, parts) in &runs {
        let failed = |path: &Path, source| AuditError::File {
            path: path.to_owned(),
            source,
        };
        if let Some(path) = parts.get(&1)
            && let Some(first) = first_line(path).map_err(|e| failed(path, e))?
            && let Some(line) = Parsed::read(&first)
        {
            known.extend(line.says.found.into_iter().map(|end| end.run));
        }
        if let Some((_, path)) = parts.last_key_value()
            && let Some(end) = found_end(run, path).map_err(|e| failed(path, e))?
        {
            found.push(end);
        }
    }
    found.retain(|end| !known.contains(&end.run));
    Ok(found)
}

fn first_line(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    BufReader::new(File::open(path)?.take(TAIL)).read_until(b'\n', &mut line)?;
    Ok((line.pop() == Some(b'\n')).then_some(line))
}

fn found_end(run: &str, path: &Path) -> io::Result<Option<FoundEnd>> {
    let mut file = File::open(path)?;
    if flock(&file, FlockOperation::NonBlockingLockShared).is_err() {
        return Ok(None);
    }
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail)?;
    // what stands behind the last end of a line is half a line
    let lines = tail.iter().rposition(|&byte| byte == b'\n');
    let lines = &tail[..lines.unwrap_or_default()];
    let start = lines
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1);
    let Some(last) = Parsed::read(&lines[start..]) else {
        return Ok(None);
    };
    let is_closed = last.says.record == "closed";
    Ok((!is_closed).then(|| FoundEnd {
        run: run.to_owned(),
        n: last.says.n,
        link: hex(&last.link),
    }))
}
