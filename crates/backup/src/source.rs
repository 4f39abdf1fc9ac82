//! Where the bytes of a backup come from.
//!
//! The end of a source's output says nothing of its success: a dump that failed half-way ends like
//! one that did not. So a source has a second say, when everything was read and before the last
//! frame is sealed: [`Source::finish`]. If that fails, the stream never gets its last-frame mark.

use std::{
    io::{self, Read},
    process::{Child, ChildStdout, Command, Stdio},
};

pub use crate::dump::Dump;
use crate::{
    Manifest,
    manifest::{Base, Server},
    mbstream::Scanner,
};

/// Something that gives bytes, and then says whether they were all.
pub trait Source: Send + 'static {
    /// Like [`Read::read`]: 0 is the end.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize>;

    /// Called once, at the end of the bytes: what they were, or in one sentence why they cannot be
    /// trusted.
    fn finish(&mut self) -> Result<Manifest, String>;
}

/// Bytes whose end is trusted.
pub struct Plain<R> {
    input: R,
    kind: &'static str,
}

impl<R: Read> Plain<R> {
    /// Standard input, or whatever takes its place.
    pub fn stdin(input: R) -> Self {
        Self {
            input,
            kind: "stdin",
        }
    }

    /// A file.
    pub fn file(input: R) -> Self {
        Self {
            input,
            kind: "file",
        }
    }
}

impl<R: Read + Send + 'static> Source for Plain<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.input.read(buf)
    }

    fn finish(&mut self) -> Result<Manifest, String> {
        Ok(Manifest::new(self.kind))
    }
}

/// The standard output of a program, which must end with exit code 0.
pub struct Program {
    pub(crate) name: String,
    child: Child,
    output: ChildStdout,
}

impl Program {
    /// Starts it. Its standard input and error are ours. `name` is what errors call it.
    pub fn start(name: &str, mut command: Command) -> io::Result<Self> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let output = child
            .stdout
            .take()
            .ok_or_else(|| io::Error::other("it has no standard output"))?;
        Ok(Self {
            name: name.to_owned(),
            child,
            output,
        })
    }

    /// The reading end of the pipe, for making it larger.
    pub fn output(&self) -> &ChildStdout {
        &self.output
    }
}

impl Source for Program {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.output.read(buf)
    }

    fn finish(&mut self) -> Result<Manifest, String> {
        match self.child.wait() {
            Ok(status) if status.success() => Ok(Manifest::new("command")),
            Ok(status) => Err(format!("{} ended with {status}", self.name)),
            Err(error) => Err(format!("waiting for {}: {error}", self.name)),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // After `finish` there is nothing left to kill; before, nobody will read what it writes.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A physical backup by mariadb-backup, whose stream is followed: a stream that lacks the end of a
/// file is no backup, whatever the exit code says.
pub struct MariadbBackup {
    program: Program,
    /// What the backup continues, and the LSN from which it must do so.
    base: Option<(Base, u64)>,
    /// What is known of the server besides what its backup says.
    server: Option<Server>,
    /// Taken at the end.
    scanner: Option<Scanner>,
}

impl MariadbBackup {
    /// The program, which must have been started with `--stream=mbstream`.
    pub fn new(program: Program) -> Self {
        Self {
            program,
            base: None,
            server: None,
            scanner: Some(Scanner::new()),
        }
    }

    /// Notes in the manifest what the server said of itself when it was asked.
    pub fn of(self, server: Option<Server>) -> Self {
        Self { server, ..self }
    }

    /// An incremental one, started with `--incremental-lsn`.
    pub fn incremental(program: Program, base: Base, lsn: u64) -> Self {
        Self {
            base: Some((base, lsn)),
            ..Self::new(program)
        }
    }

    /// Whether the backup begins where it was told to.
    fn continued(&self, mut manifest: Manifest) -> Result<Manifest, String> {
        let begins = manifest.lsn.map(|lsn| lsn.from);
        let wanted = self.base.as_ref().map_or(0, |(_, lsn)| *lsn);
        match begins {
            // An older mariadb-backup may not say.
            None if self.base.is_none() => Ok(manifest),
            Some(begins) if begins == wanted => {
                manifest.base = self.base.as_ref().map(|(base, _)| base.clone());
                Ok(manifest)
            }
            _ => Err(format!(
                "{} says that its backup begins at the log sequence number {begins:?} and not at {wanted}",
                self.program.name
            )),
        }
    }
}

impl Source for MariadbBackup {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.program.read(buf)?;
        if let Some(scanner) = &mut self.scanner {
            scanner.feed(&buf[..read], |_| {});
        }
        Ok(read)
    }

    fn finish(&mut self) -> Result<Manifest, String> {
        self.program.finish()?;
        let scanner = self.scanner.take().ok_or("it was asked twice")?;
        let mut manifest = scanner
            .finish(Manifest::new("mariadb-backup"))
            .map_err(|reason| format!("{}: {reason}", self.program.name))?;
        let known_as = |server: Server| server.known_as(self.server.as_ref());
        manifest.server = manifest.server.map(known_as);
        self.continued(manifest)
    }
}
