//! `onionskin token`, not for people: asks a token for one thing, and ends.
//!
//! A token's library is code of others that is loaded into a process. Not into the proxy's: this
//! program starts itself again for it, and kills that if it takes too long.

use std::process::Command;

use clap::Args;

use crate::error::CommandError;

/// Ask a token that speaks PKCS#11, as standard input says
#[derive(Args)]
pub struct Token;

impl Token {
    /// Answers on standard output.
    pub fn run(self) -> Result<(), CommandError> {
        onionskin_providers::answer_one_question().map_err(|source| CommandError::System {
            doing: "asking a token",
            source,
        })
    }
}

/// This program, told to do that: also where its file was replaced by a newer one.
pub fn command() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg("token");
    command
}
