//! A new program takes the place of a running one: it gets the sockets that listen, so that no
//! connection attempt is lost, and the old one goes on with its sessions until they end.
//!
//! 1. The new program connects to the control socket and sends `take over`. It gets `ok`, the old
//!    one's process id, the names of the sockets, and with that line the sockets themselves
//!    (SCM_RIGHTS). Behind the names stands `keep:NAME` for each whose file systemd has made: nobody
//!    removes it. From here on the old one leaves the files of all of them alone if it is ended.
//! 2. It reads its configuration, keys and certificates, and binds what it was not given. Meanwhile
//!    the old one serves. If the new one ends, nothing has happened.
//! 3. It sends `serving` and the names of the sockets that it uses. The old one accepts nobody from
//!    then on, and answers `draining`. Only then the new one accepts.
//!
//! Connections that arrive in between wait in the sockets, which are the same ones all the time.
//! One program takes over at a time; a second one is told so.

use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{must_be_the_proxy, read_line};
use crate::error::CommandError;
use crate::sockets::Inherited;

/// How long a new program may take to be ready.
const READY: Duration = Duration::from_secs(60);
/// How long the old one may take to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// What stands before the name of a socket whose file is systemd's.
const KEEP: &str = "keep:";
/// Sockets that are handed over, at most.
const SOCKETS: usize = 16;

/// The sockets of a program, by their names.
pub type Sockets<T> = Vec<(String, T)>;

/// The old program's side: hands the sockets over and waits until the new one is ready. Returns the
/// names of those that it uses; `let_go` is called before it is answered.
/// `kept` are the names of those whose files systemd has made: nobody removes them.
pub fn give(
    stream: &mut UnixStream,
    sockets: &Sockets<OwnedFd>,
    kept: &[String],
    let_go: impl FnOnce(&[String]),
) -> io::Result<()> {
    let names: Vec<&str> = sockets.iter().map(|(name, _)| name.as_str()).collect();
    // behind the names: a program that does not know of it reads as many names as it gets sockets
    let kept: String = kept.iter().map(|name| format!(" {KEEP}{name}")).collect();
    let line = format!("ok {} {}{kept}\n", std::process::id(), names.join(" "));
    let handles: Vec<BorrowedFd<'_>> = sockets.iter().map(|(_, socket)| socket.as_fd()).collect();
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS))];
    let mut control = SendAncillaryBuffer::new(&mut room);
    if !control.push(SendAncillaryMessage::ScmRights(&handles)) {
        return Err(io::Error::other("too many sockets"));
    }
    let sent = sendmsg(
        &*stream,
        &[IoSlice::new(line.as_bytes())],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    stream.write_all(&line.as_bytes()[sent..])?;
    let answer = read_line(stream, READY)?;
    let Some(used) = answer.strip_prefix("serving") else {
        return Err(io::Error::other("it did not say that it serves"));
    };
    let used: Vec<String> = used.split_whitespace().map(str::to_owned).collect();
    let_go(&used);
    stream.write_all(b"draining\n")
}

/// The new program's side, between its start and its first client.
pub struct TakeOver {
    stream: UnixStream,
    /// The old program, if it can be watched.
    old: Option<OwnedFd>,
    /// Sockets whose files are systemd's.
    kept: Vec<String>,
    sockets: Sockets<OwnedFd>,
    used: Vec<String>,
}

impl TakeOver {
    /// Asks the program that runs for its sockets. `None`: there is none.
    pub fn begin(path: &Path) -> Result<Option<TakeOver>, CommandError> {
        let failed = |what: String| {
            CommandError::Control(format!(
                "{}: {what}; the running program goes on",
                path.display()
            ))
        };
        let mut stream = match UnixStream::connect(path) {
            Ok(stream) => stream,
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(failed(error.to_string())),
        };
        must_be_the_proxy(&stream, path).map_err(failed)?;
        let asked = stream
            .set_read_timeout(Some(ANSWER))
            .and_then(|()| stream.write_all(b"take over\n"));
        asked.map_err(|error| failed(error.to_string()))?;
        let (line, handles) = receive(&stream).map_err(|error| failed(error.to_string()))?;
        let Some(names) = line.strip_prefix("ok ") else {
            let why = line.strip_prefix("no").unwrap_or(&line).trim();
            return Err(failed(match why.is_empty() {
                true => "it does not hand its sockets over".into(),
                false => why.to_owned(),
            }));
        };
        let mut words = names.split_whitespace();
        let pid = words.next().and_then(|pid| pid.parse().ok());
        let (kept, names): (Vec<&str>, Vec<&str>) = words.partition(|w| w.starts_with(KEEP));
        let kept = kept.iter().filter_map(|word| word.strip_prefix(KEEP));
        let kept = kept.map(str::to_owned).collect();
        let names = names.into_iter().map(str::to_owned);
        let sockets: Sockets<OwnedFd> = names.zip(handles).collect();
        // It lives: it has answered just now. A number that is not found is one of another
        // namespace, and says nothing.
        let pid = pid.and_then(Pid::from_raw);
        let old = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Ok(Some(TakeOver {
            stream,
            old,
            kept,
            sockets,
            used: Vec::new(),
        }))
    }

    /// The first of these sockets, which is used from now on.
    pub fn take(&mut self, is_it: impl Fn(&(String, OwnedFd)) -> bool) -> Option<Inherited> {
        let at = self.sockets.iter().position(is_it)?;
        let (name, socket) = self.sockets.swap_remove(at);
        let is_systemds = self.kept.contains(&name);
        self.used.push(name);
        Some(Inherited {
            socket,
            is_systemds,
        })
    }

    /// Whether the old program ends without an answer: it is waited for. The socket cannot tell,
    /// since its peer is whoever has bound it.
    fn dies(&self) -> bool {
        let Some(old) = &self.old else {
            return false;
        };
        let limit = Timespec::try_from(ANSWER).ok();
        let mut polled = [PollFd::new(old, PollFlags::IN)];
        matches!(poll(&mut polled, limit.as_ref()), Ok(1..))
    }

    /// This program is ready: the one before accepts nobody when this returns.
    pub fn finish(mut self) -> Result<(), CommandError> {
        let line = format!("serving {}\n", self.used.join(" "));
        let said = self.stream.write_all(line.as_bytes());
        let answered = said.and_then(|()| read_line(&mut self.stream, ANSWER));
        match answered {
            Ok(word) if word == "draining" => Ok(()),
            // One that has died cannot serve beside this one.
            Err(_) if self.dies() => Ok(()),
            Ok(_) | Err(_) => Err(CommandError::Control(
                "the running program has not handed its sockets over: this one ends, and that one goes on".into(),
            )),
        }
    }
}

/// The first piece of an answer, with what came beside it.
fn receive(stream: &UnixStream) -> io::Result<(String, Vec<OwnedFd>)> {
    let mut bytes = [0; 1024];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let received = recvmsg(
        stream,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut handles = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            handles.extend(rights);
        }
    }
    let text = String::from_utf8_lossy(&bytes[..received.bytes]);
    Ok((text.trim_end().to_owned(), handles))
}
