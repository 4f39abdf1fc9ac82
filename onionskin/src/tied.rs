//! `onionskin tied`, not for people: becomes another program, one that gets SIGTERM when its parent
//! dies.
//!
//! A private server must not outlive a proxy that was killed: its data directory would be locked,
//! and nobody would stop it. Linux offers a signal for that (PR_SET_PDEATHSIG), but it must be
//! asked for by the child itself, between fork and exec, where Rust allows nothing without
//! `unsafe`; and a change of user takes it back. So the parent starts this program again, already
//! as the server's user, which asks for the signal and then becomes the server. The process id
//! stays the same throughout. The programs whose output is sealed are started in the same way.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::process::CommandExt,
    process::Command,
};

use clap::Args;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::error::CommandError;

/// Run a program that ends together with its parent
#[derive(Args)]
pub struct Tied {
    /// Process id of the parent
    parent: i32,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

impl Tied {
    /// Does not return unless something is wrong.
    pub fn run(self) -> Result<(), CommandError> {
        self.exec().map_err(|source| CommandError::System {
            doing: "starting a program",
            source,
        })
    }

    fn exec(self) -> io::Result<()> {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // It may have died before it could be watched.
        if getppid().map(|parent| parent.as_raw_pid()) != Some(self.parent) {
            return Err(io::Error::other("the parent has ended"));
        }
        let (program, arguments) = self
            .command
            .split_first()
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Err(Command::new(program).args(arguments).exec())
    }
}

/// A command that is killed with the calling *thread*, which therefore must live as long as the
/// program's work lasts.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    // Not the path of the executable: the server's user need not be able to reach the folder in
    // which it lies.
    let mut command = Command::new("/proc/self/exe");
    command
        .arg("tied")
        .arg(std::process::id().to_string())
        .arg("--")
        .arg(program);
    command
}
