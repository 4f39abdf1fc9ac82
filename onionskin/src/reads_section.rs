//! `[reads]`: what holds for the sessions of `listen_read`.

use std::time::Duration;

use onionskin_proxy::{Backend, ListenAddress};
use serde::Deserialize;

use crate::config_file::some_time;
use crate::members::ReadSettings;

/// How far behind a replica may be unless the configuration says otherwise.
const MAX_LAG: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadsSection {
    #[serde(default, deserialize_with = "some_time")]
    max_lag_seconds: Option<Duration>,
    #[serde(default)]
    without_replica: WithoutReplica,
    /// How long a statement waits for what was written before; without it, none does.
    #[serde(default, deserialize_with = "some_time")]
    pub causal_seconds: Option<Duration>,
}

/// Where sessions go while no replica is near enough to the primary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WithoutReplica {
    /// To the primary.
    #[default]
    Primary,
    /// They are refused.
    Refuse,
}

impl ReadsSection {
    /// For whoever asks the members.
    pub fn settings(&self) -> ReadSettings {
        ReadSettings {
            max_lag: self.max_lag_seconds.unwrap_or(MAX_LAG),
            falls_back: self.without_replica == WithoutReplica::Primary,
            waits: self.causal_seconds.is_some(),
        }
    }
}

/// Why they do not go together.
pub fn fits(
    (listen_read, section): (&[ListenAddress], Option<&ReadsSection>),
    listen: &[ListenAddress],
    backends: &[Backend],
) -> Result<(), &'static str> {
    match listen_read {
        [] if section.is_some() => {
            Err("[reads] is for the sessions of listen_read, which is not set")
        }
        [] => Ok(()),
        _ if backends.len() < 2 => Err(
            "listen_read needs several servers in backend: one of them is the primary, and the others are read from",
        ),
        read if read.iter().any(|address| listen.contains(address)) => {
            Err("listen_read and listen are different addresses")
        }
        _ => Ok(()),
    }
}
