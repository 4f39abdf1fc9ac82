//! The file of pins.
//!
//! The file of pins is read at the start, and again when it has changed: each look at the server's
//! definitions looks at the file's time and length first, so that `onionskin pin` needs no new
//! start. One that cannot be read leaves those before in force.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use onionskin_keys::KeySet;
use onionskin_schema::{PinnedTable, Pins, PinsError, Policy};
use parking_lot::{Mutex, RwLock};

/// Findings that are remembered, so that each is told once.
const FINDINGS: usize = 4096;

/// Why pins cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The file cannot be read.
    #[error("{}: {source}; onionskin pin makes it", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// It is not what `onionskin pin` has written under these keys.
    #[error("{}: {source}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: PinsError,
    },
}

/// By what a file is known to be another one than before.
type Stamp = Option<(SystemTime, u64)>;

/// A file of pins, and what it held when it was read last.
#[derive(Debug)]
pub struct PinFile {
    path: PathBuf,
    pins: RwLock<(Arc<Pins>, Stamp)>,
    /// How often they have become others.
    version: AtomicU64,
}

impl PinFile {
    /// Reads and verifies it.
    pub fn load(path: &Path, keys: &KeySet) -> Result<Self, PinError> {
        let stamp = stamp(path);
        let pins = Arc::new(read(path, keys)?);
        Ok(Self {
            path: path.to_owned(),
            pins: RwLock::new((pins, stamp)),
            version: AtomicU64::new(0),
        })
    }

    /// How often there have been other pins.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// What it holds.
    pub fn pins(&self) -> Arc<Pins> {
        Arc::clone(&self.pins.read().0)
    }

    pub(crate) fn get(&self, database: &str, name: &str) -> Option<Arc<PinnedTable>> {
        self.pins.read().0.get(database, name).cloned()
    }

    /// Reads it again if it has changed. Returns how often there have been other pins: each account
    /// notices for itself.
    pub(crate) fn refresh(&self, keys: &KeySet) -> u64 {
        let now = stamp(&self.path);
        if self.pins.read().1 != now {
            self.read_again(now, keys);
        }
        self.version.load(Ordering::Acquire)
    }

    fn read_again(&self, now: Stamp, keys: &KeySet) {
        let read = read(&self.path, keys);
        let mut pins = self.pins.write();
        pins.1 = now;
        match read {
            Ok(new) => {
                if *pins.0 != new {
                    pins.0 = Arc::new(new);
                    self.version.fetch_add(1, Ordering::Release);
                }
                tracing::info!("the pins in {} were read again", self.path.display());
            }
            Err(error) => {
                tracing::error!("{error}; the pins that were read before stay in force");
            }
        }
    }
}

fn stamp(path: &Path) -> Stamp {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn read(path: &Path, keys: &KeySet) -> Result<Pins, PinError> {
    let text = fs::read_to_string(path).map_err(|source| PinError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    let verify = |bytes: &[u8], tag: &[u8; 16]| keys.metadata_key().verify(bytes, tag);
    Pins::parse(&text, verify).map_err(|source| PinError::Wrong {
        path: path.to_owned(),
        source,
    })
}

/// Findings about `[protect]` that were told.
#[derive(Default)]
pub(crate) struct Told(Mutex<HashSet<String>>);

impl Told {
    /// Logs what has not been logged before.
    pub fn tell(&self, findings: Vec<String>) {
        for finding in findings {
            let mut told = self.0.lock();
            if told.len() < FINDINGS && told.insert(finding.clone()) {
                tracing::warn!("{finding}");
            }
        }
    }
}

/// What is known at the start: columns that `[protect]` names in a pinned table and that were not
/// pinned.
pub fn findings_at_start(policy: &Policy, pins: &Pins) -> Vec<String> {
    let mut findings = Vec::new();
    for (database, table, column) in policy.named_columns() {
        let Some(pinned) = pins.get(database, table) else {
            findings.push(format!(
                "[protect] names {database}.{table}.{column}, and no table of this name is pinned"
            ));
            continue;
        };
        let mut columns = pinned.columns.iter();
        if !columns.any(|c| onionskin_schema::same_name(&c.name, column)) {
            findings.push(format!(
                "[protect] names {database}.{table}.{column}, and no such column is pinned: it is plaintext, or there is none"
            ));
        }
    }
    findings
}
