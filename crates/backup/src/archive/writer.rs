//! Seals one segment after the other.

use std::{
    io,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use onionskin_rowstream::{
    binlog::{
        BinlogError, EventStream, GtidPosition, Position, StreamOptions, event::is_file_name,
        requirements,
    },
    client::{Client, ClientError, ConnectOptions, Family},
};

use super::{
    ArchiveError, Segment,
    folder::{Found, Keys, failed, place_text, read_segment, segments},
    note,
    reader::{Identity, Limits, Reader, Torn},
};
use crate::{
    Manifest, Progress, SealKey, SealOptions, SealedStream, StreamError,
    header::TO_RECIPIENTS,
    manifest::BinlogPosition,
    seal,
    source::Source,
    store::{Claim, Store},
};

/// The server's error for a place that its binlog does not have.
pub(super) const NOT_IN_BINLOG: u16 = 1236;
/// Pauses before connecting again.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// After so long nobody goes on with an upload.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// How a binlog is archived.
#[derive(Debug, Clone)]
pub struct ArchiveOptions {
    /// How segments are sealed.
    pub seal: SealOptions,
    /// Bytes after which a segment ends, between two transactions.
    pub size: u64,
    /// Time after which it does.
    pub age: Duration,
    /// The id under which we register.
    pub server_id: u32,
    /// Where a new archive begins; at the oldest file that the server has if it is left out.
    pub begin: Option<BinlogPosition>,
    /// End at the end of the binlog instead of waiting for more.
    pub once: bool,
}

/// The keys of an archive.
#[derive(Clone, Copy)]
pub struct ArchiveKeys<'a> {
    /// What segments are sealed with.
    pub seal: SealKey<'a>,
    /// Opens the last segment. Not needed with recipients: a note beside it says where it ends.
    pub open: Keys<'a>,
}

/// Archives into `store`, from where its last segment ends, until `stop` is set (what was read
/// until then is sealed) or, if that was asked for, to the end of the log. Connects again when the
/// connection breaks. `sealed` is told of every segment, `trouble` of every lost connection.
pub fn archive(
    connect: &ConnectOptions,
    store: &dyn Store,
    keys: ArchiveKeys<'_>,
    options: &ArchiveOptions,
    stop: &Arc<AtomicBool>,
    mut sealed: impl FnMut(&Path, &Segment),
    mut trouble: impl FnMut(&ArchiveError),
) -> Result<(), ArchiveError> {
    let _claim = claim(store)?;
    // We hold the claim, so nobody writes them.
    let is_segment = |name: &str| Segment::place_of(name).is_some();
    let cleared = store.clear_unfinished(ABANDONED, &is_segment);
    cleared.map_err(|source| failed(store, "", source))?;
    let found = segments(store)?.pop();
    let mut last = match &found {
        Some(found) => Some(last_segment(store, found, keys)?),
        None => None,
    };
    let newest = found.as_ref().map(|found| found.file.name.as_str());
    note::remove_old(store, newest)?;
    let mut archiver = Archiver {
        connect,
        store,
        note: newest.map(note::name_of),
        key: keys.seal,
        options,
        stop,
    };
    let mut pause = FIRST_PAUSE;
    let mut connected = false;
    let mut torn = None;
    loop {
        let begun = Instant::now();
        match archiver.run(&mut last, &mut torn, &mut connected, &mut sealed) {
            Ok(End::TornFile) => {
                torn = None;
                continue;
            }
            // The connection ended between two transactions, or it is the end.
            Ok(End::Log) if options.once => return Ok(()),
            Ok(End::Log) => torn = None,
            // Once more, up to there.
            Err(ArchiveError::Torn(begins)) if torn.as_ref() != Some(&begins) => {
                torn = Some(begins);
                continue;
            }
            // What never worked will not begin to by itself.
            Err(error) if error.is_disconnect() && connected && !options.once => trouble(&error),
            Err(error) => return Err(error),
        }
        if begun.elapsed() > LONGEST_PAUSE {
            pause = FIRST_PAUSE;
        }
        let until = Instant::now() + pause;
        while Instant::now() < until {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Where a connection has come to.
enum End {
    /// All that there is, or a lost connection.
    Log,
    /// A file behind which the server did not go on by itself.
    TornFile,
}

/// What all connections have in common.
struct Archiver<'a> {
    connect: &'a ConnectOptions,
    store: &'a dyn Store,
    /// Beside the newest segment, if there is one.
    note: Option<String>,
    key: SealKey<'a>,
    options: &'a ArchiveOptions,
    stop: &'a Arc<AtomicBool>,
}

impl Archiver<'_> {
    /// One connection: from the end of the last segment until it breaks, or until the end.
    fn run(
        &mut self,
        last: &mut Option<Segment>,
        torn: &mut Option<BinlogPosition>,
        connected: &mut bool,
        sealed: &mut impl FnMut(&Path, &Segment),
    ) -> Result<End, ArchiveError> {
        let Self {
            connect,
            store,
            ref mut note,
            key,
            options,
            stop,
        } = *self;
        let mut client = Client::connect(connect)?;
        requirements::check_binlog(&mut client)?;
        let identity = identity(&mut client)?;
        let (place, gtid, created) = match last {
            Some(last) => {
                check_server(last, &identity)?;
                let gtid = last
                    .gtid_after
                    .as_deref()
                    .map(|text| parse(text, &identity));
                let created = (last.next.file == last.first.file).then_some(last.file_created);
                (last.next.clone(), gtid.transpose()?, created)
            }
            None => match &options.begin {
                Some(begin) => (begin.clone(), None, None),
                None => (oldest(&mut client)?, None, None),
            },
        };
        let torn = match torn {
            Some(begins) => match file_after(&mut client, &begins.file)? {
                Some(next) => Some(Torn {
                    begins: begins.clone(),
                    next,
                }),
                // The server still writes it.
                None => return Err(ArchiveError::Torn(begins.clone())),
            },
            None => None,
        };
        drop(client);
        let stream_options = StreamOptions {
            stop_at_end: options.once,
            annotations: true,
            ..StreamOptions::new(options.server_id)
        };
        let from = Position::new(&place.file, place.position);
        let purged = |error: BinlogError| match error {
            BinlogError::Client(ClientError::Server { code, message }) if code == NOT_IN_BINLOG => {
                ArchiveError::Purged(place_text(&place), message)
            }
            other => other.into(),
        };
        let stream = EventStream::open(connect, &stream_options, &from).map_err(purged)?;
        *connected = true;
        let limits = Limits {
            size: options.size,
            age: options.age,
        };
        let reader = Reader::new(
            stream,
            identity,
            limits,
            Arc::clone(stop),
            place.clone(),
            gtid,
            created,
        )
        .without(torn);
        let reader = Arc::new(Mutex::new(reader));
        loop {
            let first = match locked(&reader).begin() {
                Ok(Some(first)) => first,
                Ok(None) => return Ok(End::Log),
                Err(ArchiveError::Binlog(error)) => return Err(purged(error)),
                Err(error) => return Err(error),
            };
            if !is_file_name(&first.file) {
                return Err(BinlogError::Malformed("file name").into());
            }
            let name = Segment::file_name(&first);
            let path = store.path(&name);
            let failed = |source| written(store, &name, source);
            let mut file = store.create(&name).map_err(failed)?;
            let source = SegmentSource(Arc::clone(&reader));
            let result = seal(source, &mut file, key, &options.seal, &Progress::new());
            let done = match result {
                Ok(done) => done,
                Err(source) => {
                    return Err(match (locked(&reader).failed.take(), source) {
                        (Some(error), _) => error,
                        (None, StreamError::Write(source)) => failed(source),
                        (None, source) => ArchiveError::Stream {
                            name: path.display().to_string(),
                            source,
                        },
                    });
                }
            };
            let segment = done.footer.manifest.segment;
            if let (SealKey::Recipients(_), Some(segment)) = (key, &segment) {
                note::write(store, &name, &done.header, segment)?;
            }
            file.finish().map_err(failed)?;
            if let Some(old) = note.replace(note::name_of(&name)) {
                note::remove(store, &old)?;
            }
            if let Some(segment) = segment {
                sealed(&path, &segment);
                *last = Some(segment);
            }
            let reader = locked(&reader);
            if reader.ended {
                return Ok(match reader.cut_off {
                    true => End::TornFile,
                    false => End::Log,
                });
            }
        }
    }
}

/// An error about a segment that was to be written. Segments are named by where they begin, so one
/// that is there by now is of somebody who archives the same.
fn written(store: &dyn Store, name: &str, source: io::Error) -> ArchiveError {
    match source.kind() {
        io::ErrorKind::AlreadyExists => ArchiveError::InUse(store.path("")),
        _ => failed(store, name, source),
    }
}

/// What the newest segment says: its own footer, or, where nobody here can open it, its note.
fn last_segment(
    store: &dyn Store,
    found: &Found,
    keys: ArchiveKeys<'_>,
) -> Result<Segment, ArchiveError> {
    let name = &found.file.name;
    if let SealKey::Recipients(_) = keys.seal {
        let file = store.open(name);
        let file = file.map_err(|source| failed(store, name, source))?;
        let stream = SealedStream::begin(file).map_err(|source| ArchiveError::Stream {
            name: store.path(name).display().to_string(),
            source,
        })?;
        if let Some(segment) = note::read(store, found, stream.header())? {
            return Ok(segment);
        }
    }
    read_segment(store, found, keys.open).map_err(|error| match (keys.seal, error) {
        (
            SealKey::Recipients(_),
            ArchiveError::Stream {
                source: StreamError::OtherKeySource(TO_RECIPIENTS),
                ..
            },
        ) => ArchiveError::NoNote {
            segment: store.path(name),
            note: store.path(&note::name_of(name)),
        },
        (_, error) => error,
    })
}

/// The reader as the source of one segment after the other.
struct SegmentSource(Arc<Mutex<Reader>>);

impl Source for SegmentSource {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        locked(&self.0).read(buf)
    }

    fn finish(&mut self) -> Result<Manifest, String> {
        locked(&self.0).finish()
    }
}

fn locked(reader: &Mutex<Reader>) -> std::sync::MutexGuard<'_, Reader> {
    reader.lock().unwrap_or_else(PoisonError::into_inner)
}

fn identity(client: &mut Client) -> Result<Identity, ArchiveError> {
    let server_id = client.query_text("SELECT @@server_id")?.unwrap_or_default();
    let server_uuid = match client.family() {
        Family::MySql => client.query_text("SELECT @@server_uuid")?,
        Family::MariaDb => None,
    };
    let gtid_purged = match client.family() {
        Family::MySql => client.query_text("SELECT @@GLOBAL.gtid_purged")?,
        Family::MariaDb => None,
    };
    Ok(Identity {
        family: client.family(),
        version: client.query_text("SELECT @@version")?.unwrap_or_default(),
        server_id: server_id.parse().unwrap_or(0),
        server_uuid,
        gtid_purged: gtid_purged.map(|set| set.split_whitespace().collect()),
    })
}

fn check_server(last: &Segment, identity: &Identity) -> Result<(), ArchiveError> {
    let present = Segment {
        server_id: identity.server_id,
        server_uuid: identity.server_uuid.clone(),
        ..last.clone()
    };
    match last.server() == present.server() {
        true => Ok(()),
        false => Err(ArchiveError::OtherServer {
            archived: last.server(),
            server: present.server(),
        }),
    }
}

fn parse(text: &str, identity: &Identity) -> Result<GtidPosition, BinlogError> {
    match identity.family {
        Family::MySql => GtidPosition::parse_mysql(text),
        Family::MariaDb => GtidPosition::parse_mariadb(text),
    }
}

/// The beginnings of the files that the server has, the oldest first.
fn files(client: &mut Client) -> Result<Vec<BinlogPosition>, ArchiveError> {
    const BAD: BinlogError = BinlogError::Malformed("list of files");
    let rows = client.query("SHOW BINARY LOGS")?;
    let place = |row: Vec<Option<Vec<u8>>>| {
        let name = row.into_iter().next().flatten().ok_or(BAD)?;
        let file = String::from_utf8(name).map_err(|_| BAD)?;
        Ok(BinlogPosition { file, position: 4 })
    };
    rows.into_iter().map(place).collect()
}

/// The beginning of the oldest file that the server has.
fn oldest(client: &mut Client) -> Result<BinlogPosition, ArchiveError> {
    let first = files(client)?.into_iter().next();
    Ok(first.ok_or(BinlogError::Malformed("list of files"))?)
}

/// The beginning of the file after this one; `None` if it is the last.
fn file_after(client: &mut Client, file: &str) -> Result<Option<BinlogPosition>, ArchiveError> {
    let mut files = files(client)?.into_iter();
    files.find(|place| place.file == file);
    Ok(files.next())
}

/// Held while this process archives into the folder.
fn claim(store: &dyn Store) -> Result<Claim, ArchiveError> {
    store.claim().map_err(|source| match source.kind() {
        io::ErrorKind::WouldBlock => ArchiveError::InUse(store.path("")),
        _ => failed(store, ".lock", source),
    })
}
