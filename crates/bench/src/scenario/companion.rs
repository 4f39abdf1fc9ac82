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

    /// What it has written.
    pub fn bytes(&self) -> u64 {
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
        while self.bytes() <= before && begin.elapsed() < Duration::from_secs(10) {
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
