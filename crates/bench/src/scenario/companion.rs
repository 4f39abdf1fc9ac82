//! A command of ours that runs beside a server while that is loaded, such as the archive of its
//! binary log.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use crate::{
    error::BenchError,
    process::Running,
    relay::home,
    report::Proof,
    server::{Address, Workshop},
};

/// How long a command may take to write what it has been given.
const PATIENCE: Duration = Duration::from_secs(10);
/// A command that has written nothing for so long has nothing more to write.
const STILL: Duration = Duration::from_millis(300);

/// A command of ours that follows the server, and where it writes.
pub struct Companion {
    _running: Running,
    folder: PathBuf,
}

impl Companion {
    /// Starts it with `{folder}`, `{home}` and `{user}` filled in; the password comes in the
    /// environment.
    pub fn start(
        workshop: &Workshop,
        server: &Address,
        arguments: &str,
    ) -> Result<Self, BenchError> {
        let home = home(workshop, server, None)?;
        let folder = workshop.new_folder("c")?;
        let arguments: Vec<String> = arguments
            .split_whitespace()
            .map(|word| {
                word.replace("{folder}", &folder.display().to_string())
                    .replace("{home}", &home.display().to_string())
                    .replace("{user}", &server.user)
            })
            .collect();
        let running = Running::start(
            workshop.tie,
            &workshop.onionskin,
            &arguments,
            &BTreeMap::from([("ONIONSKIN_PASSWORD".into(), server.password.clone())]),
            None,
            &home.join("companion.log"),
        )?;
        Ok(Self {
            _running: running,
            folder,
        })
    }

    /// What it has written once it has taken in all that came before: the bytes that stand still,
    /// waited for within ten seconds.
    pub fn settled(&self) -> u64 {
        let begin = Instant::now();
        let mut bytes = self.bytes();
        let mut since = Instant::now();
        while (bytes == 0 || since.elapsed() < STILL) && begin.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(50));
            let now = self.bytes();
            if now != bytes {
                bytes = now;
                since = Instant::now();
            }
        }
        bytes
    }

    /// What it has written.
    fn bytes(&self) -> u64 {
        let mut open = vec![self.folder.clone()];
        let mut bytes = 0;
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(found) if found.is_dir() => open.push(entry.path()),
                    Ok(found) => bytes += found.len(),
                    Err(_) => {}
                }
            }
        }
        bytes
    }

    /// Whether it follows: it has written more than before, within ten seconds.
    pub fn proof(&self, before: u64) -> Proof {
        let begin = Instant::now();
        while self.bytes() <= before && begin.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(50));
        }
        let grown = self.bytes().saturating_sub(before);
        Proof {
            what: "after: bytes that the command beside the server has written".into(),
            expected: "more than none".into(),
            found: grown.to_string(),
            holds: grown > 0,
        }
    }
}
