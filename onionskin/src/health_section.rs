//! `[health]`: who asks the members of `backend` what they are, and how often.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::config_file::some_time;

/// See the module.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealthSection {
    /// An account that every member has.
    pub user: String,
    /// The file of its password; none without a password.
    pub password_file: Option<PathBuf>,
    #[serde(default, deserialize_with = "some_time")]
    interval_seconds: Option<Duration>,
    #[serde(default, deserialize_with = "some_time")]
    timeout_seconds: Option<Duration>,
    #[serde(default, deserialize_with = "some_time")]
    drain_seconds: Option<Duration>,
}

impl HealthSection {
    /// How often each member is asked while one of them is the primary.
    pub fn interval(&self) -> Duration {
        self.interval_seconds.unwrap_or(Duration::from_secs(1))
    }

    /// How long a member may take to answer.
    pub fn timeout(&self) -> Duration {
        self.timeout_seconds.unwrap_or(Duration::from_secs(3))
    }

    /// How long a session may finish its transaction at a server that is no longer the primary, and
    /// how long sessions are left alone at one that does not answer.
    pub fn drain(&self) -> Duration {
        self.drain_seconds.unwrap_or(Duration::from_secs(10))
    }
}
