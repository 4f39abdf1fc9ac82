//! The scratch engine that a proxy has for itself: `[scratch] engine = "auto"`, `serve --scratch`.
//!
//! It lives in a folder that is made at the start and removed at the end, beside those of other
//! proxies. Which program it needs, the server behind is asked: so it may come after the first
//! clients, and a proxy without one still serves. A proxy that is killed leaves its folder behind;
//! the next one removes those that nobody holds the lock of.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use onionskin_proxy::{EnginePlace, ServerKind, ServerQuestion, Whereabouts};
use parking_lot::{Condvar, Mutex};
use rustix::fs::statvfs;
use tempfile::TempDir;

use super::{
    Family, Installation, PrivateError, PrivateServer, ServerProgram,
    installation::{at, end_leftover, lock},
    memory::{in_memory, is_ours, remove_noted},
    program::numbers,
};
use crate::termination::Termination;

/// What the names of the folders begin with.
const PREFIX: &str = "onionskin-engine-";
/// Pauses before it is tried again to start one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often a pause is looked up from, in case the program ends.
const LOOK: Duration = Duration::from_millis(100);

/// An engine that is there or will be. Dropping it ends it.
pub struct OwnEngine {
    /// Ends a start that is under way.
    starting: Termination,
    end: Arc<End>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Default)]
struct End {
    requested: Mutex<bool>,
    changed: Condvar,
}

/// Starts the engine.
struct Starter {
    /// Where its folder is to be; in memory if nobody says.
    base: Option<PathBuf>,
    place: EnginePlace,
    question: ServerQuestion,
    starting: Termination,
}

/// Why there is none yet.
enum Fault {
    /// The server behind does not answer, and why.
    NoServer(String),
    Engine(PrivateError),
}

impl OwnEngine {
    /// Begins to start it, and returns at once. `place` tells where it is.
    pub fn begin(
        base: Option<PathBuf>,
        place: EnginePlace,
        question: ServerQuestion,
        termination: &Termination,
    ) -> io::Result<Self> {
        let starting = Termination::default();
        let signalled = starting.clone();
        termination.on_signal(move || {
            signalled.request();
        });
        let starter = Starter {
            base,
            place,
            question,
            starting: starting.clone(),
        };
        let end = Arc::<End>::default();
        let awaited = end.clone();
        let thread = thread::Builder::new()
            .name("scratch engine".into())
            .spawn(move || {
                if let Some(server) = starter.run() {
                    let mut requested = awaited.requested.lock();
                    while !*requested {
                        awaited.changed.wait(&mut requested);
                    }
                    server.stop();
                }
            })?;
        Ok(Self {
            starting,
            end,
            thread: Some(thread),
        })
    }
}

impl Drop for OwnEngine {
    fn drop(&mut self) {
        self.starting.request();
        *self.end.requested.lock() = true;
        self.end.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Starter {
    /// Tries until an engine answers. `None`: the program ends.
    fn run(self) -> Option<PrivateServer> {
        let mut pause = FIRST_PAUSE;
        let mut told = String::new();
        let mut had_server = true;
        loop {
            let fault = match self.start(had_server) {
                Ok(server) => return Some(server),
                Err(_) if self.starting.requested() => return None,
                Err(fault) => fault,
            };
            had_server = matches!(fault, Fault::Engine(_));
            let why = fault.for_clients();
            self.place.set(Whereabouts::Nowhere(why.clone()));
            // whoever looks after the server says that it is gone
            if let Fault::Engine(error) = &fault
                && why != told
            {
                tracing::warn!(
                    "there is no scratch engine: {}. Statements that need it are refused until there is one; it is tried again",
                    in_one_line(&error.to_string())
                );
                told = why;
            }
            let until = Instant::now() + pause;
            while Instant::now() < until {
                if self.starting.requested() {
                    return None;
                }
                thread::sleep(LOOK);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn start(&self, had_server: bool) -> Result<PrivateServer, Fault> {
        let server = self.question.server().map_err(Fault::NoServer)?;
        if !had_server {
            // whoever comes with it waits, as at the start
            self.place.set(Whereabouts::Starting);
        }
        let (program, version) =
            ServerProgram::nearest(Family::of(server.family), &server.version)?;
        let base = match &self.base {
            Some(base) => base.clone(),
            None => in_memory()?,
        };
        remove_leftovers(&base);
        let folder = new_folder(&base)?;
        must_have_room(folder.path(), program.family)?;
        let installation = Installation::open_own(program.clone(), folder.path(), &self.starting)?;
        // from here on it is the installation's to remove
        let _ = folder.keep();
        let started = PrivateServer::start_at(installation, &self.starting, self.place.clone())?;
        tell_difference(&server, &program, &version);
        Ok(started)
    }
}

impl From<PrivateError> for Fault {
    fn from(error: PrivateError) -> Self {
        Fault::Engine(error)
    }
}

impl Fault {
    /// Part of a sentence. It is the same one as long as nothing has changed.
    fn for_clients(&self) -> String {
        match self {
            Fault::NoServer(why) => {
                format!("the server, which is asked for its version, does not answer: {why}")
            }
            Fault::Engine(error) => in_one_line(&error.without_details()),
        }
    }
}

fn in_one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.join(" ")
}

/// What an engine takes before it has any tables, in MiB.
fn room_for(family: Family) -> u64 {
    match family {
        Family::MariaDb => 48,
        Family::MySql => 192,
    }
}

/// What the engine has in another way than the server.
fn tell_difference(server: &ServerKind, program: &ServerProgram, version: &str) {
    let (there, here) = (numbers(&server.version), numbers(version));
    let (path, family) = (program.path.display(), program.family);
    if there[..2] != here[..2] {
        tracing::warn!(
            "the scratch engine {path} is {family} {version}, and the server is {}: statements that need it are refused where the server is not of the \
             version that it says. Install {family} {}.{}, or set ONIONSKIN_MYSQLD",
            server.version,
            there[0],
            there[1]
        );
    } else if there != here {
        tracing::info!(
            "the scratch engine {path} is {family} {version}, and the server is {}",
            server.version
        );
    }
}

/// A folder for a new engine.
fn new_folder(base: &Path) -> Result<TempDir, PrivateError> {
    use std::os::unix::fs::DirBuilderExt;
    let mut missing = fs::DirBuilder::new();
    let made = missing.recursive(true).mode(0o711).create(base);
    made.map_err(at(base))?;
    // mode 0700
    let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(base);
    made.map_err(at(base))
}

/// Says beforehand what servers say in many lines.
fn must_have_room(folder: &Path, family: Family) -> Result<(), PrivateError> {
    let found = statvfs(folder).map_err(|error| at(folder)(error.into()))?;
    let free = found.f_bavail.saturating_mul(found.f_frsize) >> 20;
    let needed = room_for(family);
    match free < needed {
        true => Err(PrivateError::NoRoom {
            folder: folder.parent().unwrap_or(folder).to_owned(),
            free,
            needed,
            family,
        }),
        false => Ok(()),
    }
}

/// Removes the folders of engines whose proxies are gone, and ends those that outlived them.
fn remove_leftovers(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let folder = entry.path();
        let is_named_so = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // of other users nobody knows whether they are in use
        if !is_named_so || !is_ours(&folder) {
            continue;
        }
        // held as long as its proxy runs, and from now on by this one
        let Ok(_held) = lock(&folder) else {
            continue;
        };
        let removed = end_leftover(&folder).and_then(|()| {
            remove_noted(&folder);
            fs::remove_dir_all(&folder).map_err(at(&folder))
        });
        match removed {
            Ok(()) => tracing::info!(
                "removed {}, left by a proxy that was killed",
                folder.display()
            ),
            Err(error) => tracing::warn!("what a proxy has left stays: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_holds_is_removed() {
        let base = tempfile::tempdir().expect("a folder");
        let make = |name: &str| {
            let folder = base.path().join(name);
            fs::create_dir_all(folder.join("server/data")).expect("made");
            folder
        };
        let (left, held) = (make("onionskin-engine-a"), make("onionskin-engine-b"));
        let others = make("onionskin-scratch-c");
        let link = base.path().join("onionskin-engine-d");
        std::os::unix::fs::symlink(&others, &link).expect("linked");
        let lock = lock(&held).expect("free");
        remove_leftovers(base.path());
        assert!(!left.exists());
        assert!(held.exists() && others.exists() && link.exists());
        drop(lock);
        // what another test starts holds all files of this process for a moment
        let begun = std::time::Instant::now();
        while held.exists() && begun.elapsed().as_secs() < 5 {
            remove_leftovers(base.path());
        }
        assert!(!held.exists() && others.exists() && link.exists());
    }
}
