//! Between the client that replays and the server: what is sent is looked at once more, as the
//! server gets it.
//!
//! The client takes statements from a text in which the server's tool has put together what binlogs
//! hold. Whoever wrote the binlog knows both programs, and may end a statement early, so that its
//! rest is sent as another one. Here it is one again, whole and without ways to misread it. Three
//! things are held:
//!
//! - A statement must be one of [`statements`](onionskin_backup::archive::statements), and one
//!   alone: the client is not allowed several in one text.
//! - A file that the server asks the client for must be one that the tool has just written, from a
//!   LOAD DATA in the binlog.
//! - Other commands than statements are not passed on.
//!
//! The first that does not hold ends the connection, and with it the replay.

use std::{
    io::{self, BufReader, BufWriter, Read, Write},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use onionskin_backup::archive::statements::{Author, check};
use parking_lot::Mutex;

use super::staging::WorkFolder;
use crate::error::CommandError;

/// The longest packet; a longer message goes on in the next one.
const PACKET_MAX: usize = 0xff_ffff;

/// What neither side may agree upon: several statements in one text, and all that hides statements
/// or changes how they are written.
const WITHHELD: u32 = 1 << 16 // CLIENT_MULTI_STATEMENTS
    | 1 << 11 // CLIENT_SSL
    | 1 << 5 // CLIENT_COMPRESS
    | 1 << 26 // CLIENT_ZSTD_COMPRESSION_ALGORITHM
    | 1 << 27; // CLIENT_QUERY_ATTRIBUTES

/// A relay that runs until it is dropped.
pub struct Relay {
    /// Where the client connects.
    pub socket: PathBuf,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    server: PathBuf,
    /// Where the tool writes files of LOAD DATA, under both of its names.
    files: Vec<PathBuf>,
    /// Whether the binlog held a LOAD DATA.
    loads: AtomicBool,
    refused: Mutex<Option<String>>,
    ended: AtomicBool,
}

impl Relay {
    /// Listens in the folder, for a server behind a socket.
    pub fn start(folder: &WorkFolder, server: &Path) -> Result<Self, CommandError> {
        let failed = |source| CommandError::System {
            doing: "listening for the client that replays",
            source,
        };
        let socket = folder.short().join("c");
        let listener = UnixListener::bind(&socket).map_err(failed)?;
        let mut files = vec![folder.files().to_owned()];
        files.extend(folder.files().canonicalize());
        let shared = Arc::new(Shared {
            server: server.to_owned(),
            files,
            loads: AtomicBool::new(false),
            refused: Mutex::new(None),
            ended: AtomicBool::new(false),
        });
        let accepting = shared.clone();
        let acceptor = thread::Builder::new()
            .name("relay".into())
            .spawn(move || {
                for client in listener.incoming() {
                    if accepting.ended.load(Ordering::SeqCst) {
                        break;
                    }
                    let Ok(client) = client else { continue };
                    // One client, one connection: nobody else waits.
                    let _ = accepting.serve(client);
                }
            })
            .map_err(failed)?;
        Ok(Self {
            socket,
            shared,
            acceptor: Some(acceptor),
        })
    }

    /// To be told when the binlog holds a LOAD DATA.
    pub fn loads(&self) -> &AtomicBool {
        &self.shared.loads
    }

    /// What was not passed on.
    pub fn refused(&self) -> Option<CommandError> {
        let what = self.shared.refused.lock().clone()?;
        Some(CommandError::Replay(format!(
            "the archive makes the client send {what}, and no server writes that to its binlog: somebody has changed the \
             archived files at the server, and nothing was restored; look at the segments with `onionskin open` and mariadb-binlog \
             or mysqlbinlog, and restore what comes before that with --until"
        )))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        // Wakes the thread. What it serves has ended: the client has.
        let _ = UnixStream::connect(&self.socket);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// What both directions know of a connection.
struct Turn {
    /// The server has let the client in.
    entered: AtomicBool,
    /// The next packet of the server's is the first of an answer.
    asked: AtomicBool,
    /// The client sends a file.
    sends_file: AtomicBool,
}

impl Shared {
    /// One connection, to its end.
    fn serve(&self, client: UnixStream) -> io::Result<()> {
        let server = UnixStream::connect(&self.server)?;
        let turn = Turn {
            entered: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            sends_file: AtomicBool::new(false),
        };
        let both = (client.try_clone()?, server.try_clone()?);
        let end = || {
            let _ = both.0.shutdown(Shutdown::Both);
            let _ = both.1.shutdown(Shutdown::Both);
        };
        let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
        thread::scope(|scope| {
            scope.spawn(|| {
                let _ = self.answers(server, client, &turn);
                end();
            });
            let _ = self.commands(from_client, to_server, &turn);
            end();
        });
        Ok(())
    }

    /// Keeps what was refused first.
    fn refuse(&self, what: String) -> io::Error {
        self.refused.lock().get_or_insert(what);
        io::ErrorKind::PermissionDenied.into()
    }

    fn commands(&self, from: UnixStream, to: UnixStream, turn: &Turn) -> io::Result<()> {
        let mut from = BufReader::with_capacity(1 << 16, from);
        let mut to = BufWriter::with_capacity(1 << 16, to);
        let mut packet = Packet::default();
        let mut first = true;
        while packet.begin(&mut from)? {
            if turn.sends_file.load(Ordering::SeqCst) {
                if packet.len == 0 {
                    turn.sends_file.store(false, Ordering::SeqCst);
                }
                packet.pass(&mut from, &mut to)?;
                continue;
            }
            packet.read(&mut from)?;
            if first {
                packet.withhold(0, 2)?;
                first = false;
            } else if turn.entered.load(Ordering::SeqCst) {
                self.check_command(&packet)?;
                turn.asked.store(true, Ordering::SeqCst);
            }
            packet.send(&mut to)?;
            while packet.len == PACKET_MAX && packet.begin(&mut from)? {
                packet.pass(&mut from, &mut to)?;
            }
        }
        Ok(())
    }

    fn check_command(&self, packet: &Packet) -> io::Result<()> {
        const QUIT: u8 = 1;
        const INIT_DB: u8 = 2;
        const QUERY: u8 = 3;
        const PING: u8 = 14;
        match packet.body.split_first() {
            Some((&(QUIT | INIT_DB | PING), _)) => Ok(()),
            Some((&QUERY, text)) => {
                check(text, Author::Tool).map_err(|what| self.refuse(what))?;
                let word = text.iter().position(|byte| !byte.is_ascii_whitespace());
                let word = text.get(word.unwrap_or_default()..).unwrap_or_default();
                // What goes on has not been looked at; rows do not matter.
                let is_long = packet.len == PACKET_MAX;
                let is_rows = |verb: &&[u8]| {
                    let begin = word.get(..verb.len());
                    begin.is_some_and(|begin| begin.eq_ignore_ascii_case(verb))
                };
                let rows: [&[u8]; 5] = [b"BINLOG", b"INSERT", b"REPLACE", b"UPDATE", b"DELETE"];
                match is_long && !rows.iter().any(is_rows) && !is_user_variable(word) {
                    true => {
                        Err(self
                            .refuse("a statement of more than 16 MiB that is none of rows".into()))
                    }
                    false => Ok(()),
                }
            }
            Some((command, _)) => Err(self.refuse(format!("the command {command}"))),
            None => Err(self.refuse("an empty command".into())),
        }
    }

    fn answers(&self, from: UnixStream, to: UnixStream, turn: &Turn) -> io::Result<()> {
        const OK: u8 = 0;
        const LOCAL_INFILE: u8 = 0xfb;
        let mut from = BufReader::with_capacity(1 << 16, from);
        let mut to = BufWriter::with_capacity(1 << 16, to);
        let mut packet = Packet::default();
        let mut first = true;
        while packet.begin(&mut from)? {
            let entered = turn.entered.load(Ordering::SeqCst);
            let asked = turn.asked.swap(false, Ordering::SeqCst);
            if entered && !asked {
                packet.pass(&mut from, &mut to)?;
            } else {
                packet.read(&mut from)?;
                if first {
                    packet.withhold_greeting()?;
                    first = false;
                } else if !entered && packet.body.first() == Some(&OK) {
                    turn.entered.store(true, Ordering::SeqCst);
                } else if entered && packet.body.first() == Some(&LOCAL_INFILE) {
                    self.check_file(&packet.body[1..])?;
                    turn.sends_file.store(true, Ordering::SeqCst);
                }
                packet.send(&mut to)?;
            }
            // The client may be waiting for what is there.
            if from.buffer().is_empty() {
                to.flush()?;
            }
        }
        Ok(())
    }

    /// Whether the file is one of the tool's.
    fn check_file(&self, name: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(name).into_owned();
        let path = Path::new(&text);
        let is_ours = path.file_name().is_some()
            && self.files.iter().any(|files| path.parent() == Some(files));
        match is_ours && self.loads.load(Ordering::SeqCst) {
            true => Ok(()),
            false => Err(self.refuse(format!("the file {text:?} of this machine"))),
        }
    }
}

/// Whether this is how the tool writes a user's variable, whose value may be long.
fn is_user_variable(text: &[u8]) -> bool {
    text.starts_with(b"SET @`")
}

/// A packet: its head, and as much of it as was read.
#[derive(Default)]
struct Packet {
    head: [u8; 4],
    len: usize,
    body: Vec<u8>,
}

impl Packet {
    /// Reads the head; false at the end.
    fn begin(&mut self, from: &mut impl Read) -> io::Result<bool> {
        let mut got = 0;
        while got < self.head.len() {
            match from.read(&mut self.head[got..]) {
                Ok(0) if got == 0 => return Ok(false),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => got += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let [a, b, c, _] = self.head;
        self.len = u32::from_le_bytes([a, b, c, 0]) as usize;
        self.body.clear();
        Ok(true)
    }

    /// Reads the rest.
    fn read(&mut self, from: &mut impl Read) -> io::Result<()> {
        let got = from.take(self.len as u64).read_to_end(&mut self.body)?;
        match got == self.len {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Hands on what was read.
    fn send(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.head)?;
        to.write_all(&self.body)?;
        match self.len == PACKET_MAX {
            true => Ok(()),
            false => to.flush(),
        }
    }

    /// Hands on the rest without looking at it.
    fn pass(&self, from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.head)?;
        let copied = io::copy(&mut from.take(self.len as u64), to)?;
        if copied != self.len as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match self.len == PACKET_MAX {
            true => Ok(()),
            false => to.flush(),
        }
    }

    /// Takes capabilities out of the two halves at these places.
    fn withhold(&mut self, low: usize, high: usize) -> io::Result<()> {
        for (at, shift) in [(low, 0), (high, 16)] {
            let half = self.body.get_mut(at..at + 2);
            let half = half.ok_or(io::ErrorKind::InvalidData)?;
            for (byte, shift) in half.iter_mut().zip([shift, shift + 8]) {
                *byte &= !(WITHHELD >> shift) as u8;
            }
        }
        Ok(())
    }

    /// The same of the server's greeting: version, its name, number of the connection, 8 bytes of
    /// the scramble and a zero; the lower half, character set, status, the upper half.
    fn withhold_greeting(&mut self) -> io::Result<()> {
        if self.body.first() != Some(&10) {
            // An error, which the client shows.
            return Ok(());
        }
        let name = self.body.iter().skip(1).position(|byte| *byte == 0);
        let low = 1 + name.ok_or(io::ErrorKind::InvalidData)? + 1 + 4 + 8 + 1;
        self.withhold(low, low + 5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_withheld() {
        let mut packet = Packet {
            body: vec![0xff; 40],
            ..Packet::default()
        };
        packet.withhold(0, 2).unwrap();
        let flags = u32::from_le_bytes(packet.body[..4].try_into().unwrap());
        assert_eq!(flags, !WITHHELD);
        assert!(packet.body[4..].iter().all(|byte| *byte == 0xff));

        let mut greeting = vec![10];
        greeting.extend_from_slice(b"10.11\0");
        let low = greeting.len() + 13;
        greeting.resize(low + 40, 0xff);
        packet.body = greeting;
        packet.withhold_greeting().unwrap();
        let at = |at: usize| u32::from(packet.body[at]);
        let low = at(low) | at(low + 1) << 8 | at(low + 5) << 16 | at(low + 6) << 24;
        assert_eq!(low, !WITHHELD);
    }

    #[test]
    fn commands_and_files_that_are_not_the_tools_are_refused() {
        let shared = Shared {
            server: "/x".into(),
            files: vec!["/tmp/a/files".into()],
            loads: AtomicBool::new(true),
            refused: Mutex::new(None),
            ended: AtomicBool::new(false),
        };
        let command = |bytes: &[u8]| {
            let packet = Packet {
                len: bytes.len(),
                body: bytes.to_vec(),
                ..Packet::default()
            };
            shared.check_command(&packet)
        };
        command(b"\x03INSERT INTO t VALUES (1)").unwrap();
        command(b"\x01").unwrap();
        for bytes in [
            &b"\x03SET GLOBAL x=1"[..],
            b"\x1b\0\0",
            b"\x16SELECT ?",
            b"",
        ] {
            command(bytes).unwrap_err();
        }
        shared
            .check_file(b"/tmp/a/files/SQL_LOAD-1-2-3.data")
            .unwrap();
        for name in [
            "/etc/passwd",
            "/tmp/a/files/../x",
            "/tmp/a/files/b/x",
            "x",
            "",
        ] {
            shared.check_file(name.as_bytes()).expect_err(name);
        }
        shared.loads.store(false, Ordering::SeqCst);
        shared
            .check_file(b"/tmp/a/files/SQL_LOAD-1-2-3.data")
            .unwrap_err();
        assert!(
            shared
                .refused
                .lock()
                .as_ref()
                .is_some_and(|what| what.contains("SET GLOBAL"))
        );
    }
}
