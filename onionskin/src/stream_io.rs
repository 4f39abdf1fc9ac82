//! Where streams come from and go to: files, pipes, terminals.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, IsTerminal, SeekFrom, Write},
    os::{fd::AsFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use onionskin_backup::{
    source::Program,
    store::{Opened, Unfinished},
};

use crate::{error::CommandError, place, termination::Termination, tied};

/// As large as an unprivileged process may make a pipe: fewer system calls and wake-ups.
const PIPE_LEN: usize = 1 << 20;

/// An opened input.
pub struct Input {
    /// The file, an object of a bucket, or standard input.
    pub file: Opened,
    /// For messages.
    pub name: String,
    /// Length in bytes if it is known.
    pub len: Option<u64>,
}

impl Input {
    /// A file; standard input for none and for `-`.
    pub fn open(path: Option<&Path>) -> Result<Self, CommandError> {
        if let Some(path) = path
            && let Some(mut file) = place::open_remote(path)?
        {
            let len = file.seek(SeekFrom::End(0)).and_then(|len| {
                file.rewind()?;
                Ok(len)
            });
            return Ok(Self {
                len: Some(len.map_err(|source| file_error(path, source))?),
                file,
                name: path.display().to_string(),
            });
        }
        let (file, name): (File, String) = match path {
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
            file: Box::new(file),
            name,
        })
    }
}

/// An output that is to become whole.
pub enum Output {
    /// Standard output.
    Pipe(File),
    /// A new file.
    File(PathBuf, Box<dyn Unfinished>),
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
        Self::create_watched(path, &watch_signals()?)
    }

    /// The same for a program that has more to remove, with what [`watch_signals`] gave it.
    pub fn create_watched(path: &Path, termination: &Termination) -> Result<Self, CommandError> {
        let file = place::create(path)?;
        let abandon = file.abandon();
        termination.on_signal(move || {
            abandon();
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

/// From now on signals end the program only through what [`Output`] and
/// [`also_remove_at_signal`] set up.
pub fn watch_signals() -> Result<Termination, CommandError> {
    Termination::watch().map_err(|source| CommandError::System {
        doing: "watching for signals",
        source,
    })
}

/// At a signal, removes a folder with all its content before the program ends.
pub fn also_remove_at_signal(termination: &Termination, folder: &Path) {
    let folder = folder.to_owned();
    termination.on_signal(move || drop(fs::remove_dir_all(folder)));
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

/// Starts a program whose output is sealed. It gets our environment without our secrets, and
/// `variable`. It gets SIGTERM when this program ends, however that happens: one that stays silent
/// would not notice that nobody reads it any more.
///
/// To be called by the main thread, see [`tied::command`].
pub fn start_source(
    program: &OsStr,
    arguments: &[OsString],
    variable: Option<(&str, OsString)>,
) -> Result<Program, CommandError> {
    let failed = |error| {
        let program = program.to_string_lossy();
        CommandError::Arguments(format!("{program} cannot be started: {error}"))
    };
    let path = executable(program).map_err(failed)?;
    let mut command = tied::command(path);
    command
        .args(arguments)
        .env_remove("ONIONSKIN_PASSPHRASE")
        .env_remove("ONIONSKIN_PASSPHRASE_FILE")
        .env_remove("CREDENTIALS_DIRECTORY")
        .envs(variable);
    let program = Program::start(&program.to_string_lossy(), command).map_err(failed)?;
    widen(program.output());
    Ok(program)
}

/// The file that would be executed.
fn executable(program: &OsStr) -> io::Result<PathBuf> {
    let may_execute = |path: &Path| match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(io::ErrorKind::PermissionDenied.into()),
        Ok(_) => Ok(rustix::fs::access(path, rustix::fs::Access::EXEC_OK)?),
        Err(error) => Err(error),
    };
    let path = Path::new(program);
    if program.as_bytes().contains(&b'/') {
        return may_execute(path).map(|()| path.to_owned());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut missing = io::Error::from(io::ErrorKind::NotFound);
    for folder in std::env::split_paths(&folders) {
        let path = folder.join(program);
        match may_execute(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => missing = error,
        }
    }
    Err(missing)
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
