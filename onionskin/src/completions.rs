//! `onionskin completions` and `onionskin man`: what shells and `man` know of the commands, made of
//! the same definitions as `--help`.

use std::io;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::error::CommandError;

/// Print what completes this program's commands in a shell
///
/// For bash: `onionskin completions bash > /usr/share/bash-completion/completions/onionskin`.
#[derive(Args)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// Prints them for this program.
    pub fn run(self, program: Command) -> Result<(), CommandError> {
        let mut shown = without_hidden(&program);
        clap_complete::generate(self.shell, &mut shown, "onionskin", &mut io::stdout());
        Ok(())
    }
}

/// The program without its hidden commands, which `clap_complete` offers in some shells.
fn without_hidden(program: &Command) -> Command {
    Command::new("onionskin")
        .version(env!("CARGO_PKG_VERSION"))
        .args(program.get_arguments())
        .subcommands(
            program
                .get_subcommands()
                .filter(|command| !command.is_hide_set()),
        )
}

/// Write manual pages, one for each command
#[derive(Args)]
pub struct Man {
    /// Where to; the folder must be there
    folder: PathBuf,
}

impl Man {
    /// Writes those of this program.
    pub fn run(self, program: Command) -> Result<(), CommandError> {
        clap_mangen::generate_to(program, &self.folder).map_err(|source| CommandError::File {
            path: self.folder,
            source,
        })
    }
}
