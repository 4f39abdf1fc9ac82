//! `[audit]`: who has read and written protected columns, in files whose change is found.

use std::{
    num::NonZeroU64,
    path::{Path, PathBuf},
    time::Duration,
};

use onionskin_audit::{Settings, SyslogAddress};
use serde::Deserialize;

use crate::config_file::some_parsed;

/// Bytes of a file, unless something else is said.
const FILE_SIZE: u64 = 64 << 20;
/// Less is no file, with what a line may be.
const LEAST: u64 = 1 << 20;
/// Time between sealed heads.
const HEADS: Duration = Duration::from_secs(60);

/// The section.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditSection {
    folder: PathBuf,
    heads: Option<PathBuf>,
    #[serde(default, deserialize_with = "some_parsed")]
    syslog: Option<SyslogAddress>,
    file_size: Option<NonZeroU64>,
    #[serde(default)]
    when_full: WhenFull,
}

/// `when_full`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WhenFull {
    /// Statements on protected columns are refused.
    #[default]
    Stop,
    /// They run, and are counted.
    Count,
}

impl AuditSection {
    /// Where the log is; relative paths start from `base`.
    pub fn settings(&self, base: &Path) -> Settings {
        Settings {
            folder: base.join(&self.folder),
            heads: self.heads.as_ref().map(|heads| base.join(heads)),
            part_bytes: self.file_size.map_or(FILE_SIZE, NonZeroU64::get).max(LEAST),
            every: HEADS,
            syslog: self.syslog.clone(),
        }
    }

    /// Whether statements on protected columns are refused while there is no room.
    pub fn stops(&self) -> bool {
        self.when_full == WhenFull::Stop
    }
}
