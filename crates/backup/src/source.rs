//! Where the bytes of a backup come from.
//!
//! The end of a source's output says nothing of its success: a dump that failed half-way ends like one that did not. So a
//! source has a second say, when everything was read and before the last frame is sealed: [`Source::finish`]. If that
//! fails, the stream never gets its last-frame mark.

use std::{
    ffi::OsString,
    io::{self, Read},
    process::{Child, ChildStdout, Command, Stdio},
};

use crate::Manifest;

/// Something that gives bytes, and then says whether they were all.
pub trait Source: Send + 'static {
    /// Like [`Read::read`]: 0 is the end.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize>;

    /// Called once, at the end of the bytes: what they were, or in one sentence why they cannot be trusted.
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
    name: String,
    child: Child,
    output: ChildStdout,
}

impl Program {
    /// Starts it. Its standard input and error are ours.
    pub fn start(program: &OsString, arguments: &[OsString]) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child
            .stdout
            .take()
            .ok_or_else(|| io::Error::other("it has no standard output"))?;
        Ok(Self {
            name: program.to_string_lossy().into_owned(),
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
