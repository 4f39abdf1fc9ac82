//! A conversation with a child process: what it gets, what it says, and how long it may take.
//!
//! One thread does it, with pipes that do not block. So a child that reads nothing, says too much
//! or leaves its pipes to another process costs its time limit at most, and no thread stays behind.

use std::{
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::process::CommandExt,
    },
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    process::{Pid, Signal, kill_process_group},
};
use zeroize::Zeroizing;

/// How often it is looked whether the child has ended, while nothing is to be read.
const LOOK: Duration = Duration::from_millis(20);
/// Bytes that are read at a time.
const PIECE: usize = 4096;
/// Variables of ours begin so. Passphrases and passwords are in some of them.
const OURS: &str = "ONIONSKIN_";

/// What a child has said.
pub(crate) struct Said {
    /// How it has ended.
    pub status: ExitStatus,
    pub out: Zeroizing<Vec<u8>>,
    /// The beginning of it.
    pub error: Zeroizing<Vec<u8>>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// It cannot be started.
    NotStarted(io::Error),
    /// The operating system.
    System(io::Error),
    /// It was killed: its time was over. What it had said on standard error.
    TooSlow(Vec<u8>),
    /// It was killed: it said too much.
    TooLong,
}

/// A child that is killed with its process group unless it has ended.
struct Group {
    child: Child,
    has_ended: bool,
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts `command`, gives it `input`, and returns what it has said when it has ended. It gets a
/// process group of its own, and both are killed after `time`, or when standard output is longer
/// than `most_out` bytes. Of standard error, `most_error` bytes are kept.
pub(crate) fn talk(
    mut command: Command,
    input: &[u8],
    time: Duration,
    (most_out, most_error): (usize, usize),
) -> Result<Said, NoAnswer> {
    let until = Instant::now() + time;
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let child = command.spawn().map_err(NoAnswer::NotStarted)?;
    let mut group = Group {
        child,
        has_ended: false,
    };
    let child = &mut group.child;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        return Err(NoAnswer::System(io::Error::other("a pipe is missing")));
    };
    for pipe in [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()] {
        does_not_block(pipe).map_err(NoAnswer::System)?;
    }
    let mut rest = Some((stdin, input));
    let mut out = Heard::new(stdout, most_out + 1);
    let mut error = Heard::new(stderr, most_error);
    loop {
        let status = group.child.try_wait().map_err(NoAnswer::System)?;
        group.has_ended |= status.is_some();
        // Before the wait: what was said before the end is in the pipes by now.
        if let Some((pipe, bytes)) = &mut rest
            && give(pipe, bytes)
        {
            rest = None;
        }
        out.hear();
        error.hear();
        if out.text.len() > most_out {
            return Err(NoAnswer::TooLong);
        }
        if let Some(status) = status {
            return Ok(Said {
                status,
                out: out.text,
                error: error.text,
            });
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(NoAnswer::TooSlow(error.text.to_vec()));
        }
        let stdin = rest.as_ref().map(|(pipe, _)| pipe.as_fd());
        wait(stdin, [out.pipe(), error.pipe()], left.min(LOOK));
    }
}

/// Hands none of our own environment variables on.
pub(crate) fn hide_ours(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with(OURS) {
            command.env_remove(name);
        }
    }
}

/// What is heard from a pipe, in a buffer that does not grow: no copies of a key are left behind.
struct Heard<R> {
    pipe: Option<R>,
    text: Zeroizing<Vec<u8>>,
    most: usize,
}

impl<R: Read + AsFd> Heard<R> {
    fn new(pipe: R, most: usize) -> Self {
        Heard {
            pipe: Some(pipe),
            text: Zeroizing::new(Vec::with_capacity(most)),
            most,
        }
    }

    /// Reads what is there. What there is no room for is read, too: the child shall not wait.
    fn hear(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut piece = Zeroizing::new([0; PIECE]);
        loop {
            match pipe.read(&mut piece[..]) {
                Ok(0) => break self.pipe = None,
                Ok(length) => {
                    let room = self.most - self.text.len();
                    self.text.extend_from_slice(&piece[..length.min(room)]);
                    // Whoever says too much would be heard for ever.
                    if self.text.len() == self.most {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => break self.pipe = None,
            }
        }
    }

    fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }
}

/// Writes what there is room for. True if that was all, or nobody reads.
fn give(pipe: &mut impl Write, bytes: &mut &[u8]) -> bool {
    while !bytes.is_empty() {
        match pipe.write(bytes) {
            Ok(0) => return true,
            Ok(length) => *bytes = &bytes[length..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(_) => return true,
        }
    }
    true
}

/// Waits until one of the pipes is ready, and not for long.
fn wait(stdin: Option<BorrowedFd<'_>>, from: [Option<BorrowedFd<'_>>; 2], time: Duration) {
    let mut pipes: Vec<PollFd<'_>> = Vec::with_capacity(3);
    pipes.extend(stdin.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)));
    for fd in from.into_iter().flatten() {
        pipes.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
    }
    if pipes.is_empty() {
        return std::thread::sleep(time);
    }
    let time = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    let _ = poll(&mut pipes, Some(&time));
}

fn does_not_block(pipe: BorrowedFd<'_>) -> io::Result<()> {
    let flags = fcntl_getfl(pipe)?;
    Ok(fcntl_setfl(pipe, flags | OFlags::NONBLOCK)?)
}
