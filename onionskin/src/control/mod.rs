//! `control`: a Unix socket of a running proxy's own, for the commands of its operator.
//!
//! A client sends one line and gets lines back. The first is `ok`, `running` (it is done, and
//! statements still run that began before) or `no`; what follows is for people.
//!
//! | line | what is done |
//! |---|---|
//! | `reload` | the configuration is read anew and put in force |
//! | `check PATH` | it is said what a reload with the configuration in this file would do |
//! | `status` | how the proxy is, as JSON |
//! | `take over` | the listening sockets are handed over ([`handover`]) |
//!
//! Who may connect: the socket has mode 0600, unless systemd has made it, and a peer must be of the
//! proxy's own user, or root.
//! Everything is bounded: connections at once, a line's length, the time it takes.

pub mod handover;

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use onionskin_proxy::{Gate, Manner, SocketFile, bind_unix};
use rustix::net::sockopt::socket_peercred;
use socket2::SockRef;

use crate::error::CommandError;
use crate::sockets::{Given, Inherited};

/// Its owner and nobody else.
const MANNER: Manner = Manner {
    backlog: 128,
    mode: 0o600,
};
/// Connections at once.
const ROOM: usize = 8;
/// Longest line, in bytes.
const LINE: usize = 8 << 10;
/// How long a client may take to say what it wants, and to take an answer.
const ASKING: Duration = Duration::from_secs(5);
/// How long a client waits for an answer: longer than the longest work.
const PATIENCE: Duration = Duration::from_secs(90);

/// What a client wants.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// `reload`
    Reload,
    /// `check PATH`
    Check(PathBuf),
    /// `status`
    Status,
    /// `take over`
    TakeOver,
}

impl Request {
    fn parse(line: &str) -> Option<Request> {
        match line.split_once(' ') {
            None if line == "reload" => Some(Request::Reload),
            None if line == "status" => Some(Request::Status),
            Some(("check", path)) => Some(Request::Check(path.into())),
            Some(("take", "over")) => Some(Request::TakeOver),
            _ => None,
        }
    }
}

/// The socket, bound and not served yet.
pub struct Control {
    listener: UnixListener,
    file: SocketFile,
}

/// The socket while it is served.
pub struct Served {
    gate: Arc<Gate>,
    file: SocketFile,
    socket: Option<OwnedFd>,
}

impl Control {
    /// Binds it, or takes the one that another program has bound at this path.
    pub fn bind(path: &Path, given: &mut Given) -> Result<Control, CommandError> {
        let is_there = |socket: &OwnedFd| {
            let address = SockRef::from(socket).local_addr();
            address.is_ok_and(|address| address.as_pathname() == Some(path))
        };
        let (bound, is_systemds) = match given.take("control", is_there) {
            Some(Inherited {
                socket,
                is_systemds,
            }) => (Ok(UnixListener::from(socket)), is_systemds),
            None => (bind_unix(path, MANNER), false),
        };
        let listener = bound.and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = listener.map_err(|source| {
            let path = path.display();
            CommandError::Control(format!(
                "cannot listen on control = \"{path}\": {source}; choose another path, or leave control out"
            ))
        })?;
        Ok(Control {
            listener,
            file: SocketFile::of(path, is_systemds),
        })
    }

    /// Begins to answer: `work` has a connection with its request, and may keep it for as long as
    /// it wants.
    pub fn serve(
        self,
        work: impl Fn(Request, UnixStream) + Send + Sync + 'static,
    ) -> io::Result<Served> {
        let gate = Arc::new(Gate::new()?);
        let socket = self.listener.as_fd().try_clone_to_owned()?;
        let until = gate.clone();
        let (listener, work) = (self.listener, Arc::new(work));
        thread::Builder::new()
            .name("control".into())
            .spawn(move || accept(&listener, &until, &work))?;
        Ok(Served {
            gate,
            file: self.file,
            socket: Some(socket),
        })
    }
}

impl Served {
    /// The socket, for a program that takes over.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    /// Nobody is answered here from now on. The file stays if another program answers by it.
    pub fn close(&mut self, file_stays: bool) {
        if file_stays {
            self.keep_file();
        }
        self.socket = None;
        self.gate.close();
    }

    /// The file stays when the program ends.
    pub fn keep_file(&mut self) {
        self.file.keep();
    }

    /// Whether it stays in any case.
    pub fn file_stays(&self) -> bool {
        self.file.stays()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.file.remove();
    }
}

fn accept<W>(listener: &UnixListener, gate: &Gate, work: &Arc<W>)
where
    W: Fn(Request, UnixStream) + Send + Sync + 'static,
{
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let accepted = match gate.wait(&[listener.as_fd()]) {
            Ok(Some(_)) => listener.accept().map(|(stream, _)| stream),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        let mut stream = match accepted {
            Ok(stream) => stream,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                continue;
            }
            Err(error) => {
                tracing::error!(%error, "the control socket accepts nobody");
                thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        if clients.fetch_add(1, Ordering::SeqCst) >= ROOM {
            clients.fetch_sub(1, Ordering::SeqCst);
            say(&mut stream, Verdict::Refused, "too many connections");
            // what is closed with something unread is reset, and the answer with it
            let _ = stream.set_nonblocking(true);
            let _ = stream.read(&mut [0; LINE]);
            continue;
        }
        let (work, clients) = (work.clone(), clients.clone());
        let leaves = clients.clone();
        let spawned = thread::Builder::new()
            .name("command".into())
            .spawn(move || {
                let _leaves = Leaves(clients);
                serve(stream, &*work);
            });
        if let Err(error) = spawned {
            leaves.fetch_sub(1, Ordering::SeqCst);
            tracing::error!(%error, "no thread for a command");
        }
    }
}

/// Leaves the room, also by a panic.
struct Leaves(Arc<AtomicUsize>);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn serve(mut stream: UnixStream, work: &impl Fn(Request, UnixStream)) {
    if let Err(why) = must_be_ours(&stream) {
        tracing::warn!("control: {why}");
        say(&mut stream, Verdict::Refused, &why);
        return;
    }
    let line = read_line(&mut stream, ASKING);
    match line.ok().as_deref().and_then(Request::parse) {
        Some(request) => work(request, stream),
        None => say(&mut stream, Verdict::Refused, "this is no command"),
    }
}

/// A client must be of the same user, or root: whoever may reload could as well end the program.
fn must_be_ours(stream: &UnixStream) -> Result<(), String> {
    let peer =
        socket_peercred(stream).map_err(|error| format!("who connects is not known: {error}"))?;
    match peer.uid == rustix::process::geteuid() || peer.uid.is_root() {
        true => Ok(()),
        false => Err(format!(
            "user {} is not the one that the proxy runs as",
            peer.uid.as_raw()
        )),
    }
}

/// The client's side: whoever listens must be of its own user, or root. To root, the owner of the
/// socket's file is as good: the proxy runs as another user then.
pub fn must_be_the_proxy(stream: &UnixStream, path: &Path) -> Result<(), String> {
    let peer =
        socket_peercred(stream).map_err(|error| format!("who listens is not known: {error}"))?;
    let own = rustix::process::geteuid();
    let is_owner = || std::fs::metadata(path).is_ok_and(|file| file.uid() == peer.uid.as_raw());
    match peer.uid == own || peer.uid.is_root() || (own.is_root() && is_owner()) {
        true => Ok(()),
        false => Err(format!(
            "user {} listens there, and this is user {}: run it as the proxy's user, or as root",
            peer.uid.as_raw(),
            own.as_raw()
        )),
    }
}

/// How a command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is done.
    Done,
    /// It is done, and statements still run that began before.
    StillRunning,
    /// It is not done, and nothing was changed.
    Refused,
}

impl Verdict {
    const ALL: [Verdict; 3] = [Verdict::Done, Verdict::StillRunning, Verdict::Refused];

    fn word(self) -> &'static str {
        match self {
            Verdict::Done => "ok",
            Verdict::StillRunning => "running",
            Verdict::Refused => "no",
        }
    }
}

/// An answer of one piece.
pub fn say(stream: &mut UnixStream, verdict: Verdict, text: &str) {
    let word = verdict.word();
    let told = stream
        .set_write_timeout(Some(ASKING))
        .and_then(|()| stream.write_all(format!("{word}\n{text}\n").as_bytes()));
    if let Err(error) = told {
        tracing::info!(%error, "a command's answer was not taken");
    }
}

/// A line without its end, within bounds. Nothing behind it is read.
pub fn read_line(stream: &mut UnixStream, limit: Duration) -> io::Result<String> {
    let until = Instant::now() + limit;
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left < Duration::from_millis(1) {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut byte) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) if line.len() >= LINE => return Err(ErrorKind::InvalidData.into()),
            Ok(_) => line.push(byte[0]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    String::from_utf8(line).map_err(|_| ErrorKind::InvalidData.into())
}

/// Asks a running proxy. `Ok(None)`: there is none.
pub fn ask(path: &Path, request: &str) -> Result<Option<(Verdict, String)>, CommandError> {
    let failed = |what: String| CommandError::Control(format!("{}: {what}", path.display()));
    let mut stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(error) => return Err(failed(error.to_string())),
    };
    must_be_the_proxy(&stream, path).map_err(failed)?;
    let mut text = String::new();
    let limited = stream.set_read_timeout(Some(PATIENCE));
    // one that has no room answers without reading
    let asked = limited.and_then(|()| stream.write_all(format!("{request}\n").as_bytes()));
    let answered = stream.read_to_string(&mut text);
    if text.is_empty() {
        let answered = asked.and(answered);
        answered.map_err(|error| failed(error.to_string()))?;
    }
    let answer = text.split_once('\n').and_then(|(word, rest)| {
        let verdict = Verdict::ALL
            .into_iter()
            .find(|known| known.word() == word)?;
        Some((verdict, rest.trim_end().to_owned()))
    });
    match answer {
        Some(answer) => Ok(Some(answer)),
        None => Err(failed("the proxy has ended before it answered".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        assert_eq!(Request::parse("reload"), Some(Request::Reload));
        assert_eq!(Request::parse("take over"), Some(Request::TakeOver));
        assert_eq!(Request::parse("status"), Some(Request::Status));
        let check = Request::Check("/a b/c".into());
        assert_eq!(Request::parse("check /a b/c"), Some(check));
        for wrong in [
            "",
            "reload now",
            "RELOAD",
            "check",
            "take",
            "GET / HTTP/1.1",
        ] {
            assert_eq!(Request::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_line_is_bounded_and_nothing_behind_it_is_read() {
        let (mut ours, mut theirs) = UnixStream::pair().expect("a pair");
        theirs.write_all(b"one\ntwo\n").expect("written");
        let limit = Duration::from_secs(5);
        assert_eq!(read_line(&mut ours, limit).expect("a line"), "one");
        assert_eq!(read_line(&mut ours, limit).expect("a line"), "two");
        theirs.write_all(&[b'x'; LINE + 2]).expect("written");
        let error = read_line(&mut ours, limit).expect_err("too long");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        let late = read_line(&mut UnixStream::pair().expect("a pair").0, Duration::ZERO);
        assert_eq!(late.expect_err("late").kind(), ErrorKind::TimedOut);
    }
}
