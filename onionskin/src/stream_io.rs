//! Where streams come from and go to: files, pipes, terminals.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, IsTerminal, Write},
    os::fd::AsFd,
    path::{Path, PathBuf},
    process::Command,
};

use onionskin_backup::{WholeFile, source::Program};

use crate::{error::CommandError, termination::Termination};

/// As large as an unprivileged process may make a pipe: fewer system calls and wake-ups.
const PIPE_LEN: usize = 1 << 20;

/// An opened input.
pub struct Input {
    /// The file, or standard input.
    pub file: File,
    /// For messages.
    pub name: String,
    /// Length in bytes if it is known.
    pub len: Option<u64>,
}

impl Input {
    /// A file; standard input for none and for `-`.
    pub fn open(path: Option<&Path>) -> Result<Self, CommandError> {
        let (file, name) = match path {
            Some(path) if path != Path::new("-") => {
                let file = File::open(path).map_err(|source| file_error(path, source))?;
                (file, path.display().to_string())
            }
            _ => {
                let file = io::stdin().as_fd().try_clone_to_owned();
                let file = file.map_err(|source| CommandError::System {
                    doing: "opening standard input",
                    source,
                })?;
                (file.into(), "standard input".into())
            }
        };
        widen(&file);
        let metadata = file.metadata().ok().filter(fs::Metadata::is_file);
        Ok(Self {
            len: metadata.map(|metadata| metadata.len()),
            file,
            name,
        })
    }
}

/// An output that is to become whole.
pub enum Output {
    /// Standard output.
    Pipe(File),
    /// A new file.
    File(PathBuf, WholeFile),
}

impl Output {
    /// A new file, which disappears if the program is asked to end; standard output for none.
    pub fn create(path: Option<&Path>, secret: Secret) -> Result<Self, CommandError> {
        let Some(path) = path else {
            if secret == Secret::Sealed && io::stdout().is_terminal() {
                return Err(CommandError::Arguments(
                    "a sealed stream is nothing for a terminal: redirect it, or name a file with -o".into(),
                ));
            }
            let stdout = io::stdout().as_fd().try_clone_to_owned();
            let stdout = stdout.map_err(|source| CommandError::System {
                doing: "opening standard output",
                source,
            })?;
            let stdout = stdout.into();
            widen(&stdout);
            return Ok(Self::Pipe(stdout));
        };
        let file = WholeFile::create(path).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => {
                CommandError::Arguments(format!("{} exists and is not overwritten", path.display()))
            }
            _ => file_error(path, source),
        })?;
        let partial = file.partial_path().to_owned();
        let termination = Termination::watch().map_err(|source| CommandError::System {
            doing: "watching for signals",
            source,
        })?;
        termination.on_signal(move || {
            let _ = fs::remove_file(&partial);
            eprintln!("onionskin: ended by a signal; the unfinished file was removed");
            std::process::exit(1);
        });
        Ok(Self::File(path.to_owned(), file))
    }

    /// Makes it whole.
    pub fn finish(self) -> Result<(), CommandError> {
        match self {
            Self::Pipe(_) => Ok(()),
            Self::File(path, file) => file.finish().map_err(|source| file_error(&path, source)),
        }
    }
}

/// Whether what is written is for machines only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Secret {
    /// A sealed stream.
    Sealed,
    /// Plaintext.
    Opened,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Pipe(file) => file.write(bytes),
            Self::File(_, file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Pipe(file) => file.flush(),
            Self::File(_, file) => file.flush(),
        }
    }
}

/// Starts a program whose output is sealed. It gets our environment without our secrets, and `variable`.
pub fn start_source(
    program: &OsStr,
    arguments: &[OsString],
    variable: Option<(&str, OsString)>,
) -> Result<Program, CommandError> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_remove("ONIONSKIN_PASSPHRASE")
        .envs(variable);
    let program = Program::start(command).map_err(|error| {
        let program = program.to_string_lossy();
        CommandError::Arguments(format!("{program} cannot be started: {error}"))
    })?;
    widen(program.output());
    Ok(program)
}

/// An error about a file.
pub fn file_error(path: &Path, source: io::Error) -> CommandError {
    CommandError::File {
        path: path.to_owned(),
        source,
    }
}

/// Makes a pipe larger, if it is one.
fn widen(file: &impl AsFd) {
    // No pipe, or the user's pipes take too much memory already: it works as it is.
    let _ = rustix::pipe::fcntl_setpipe_size(file, PIPE_LEN);
}
