//! `backend` as a list, and `[health]`: who asks its members what they are, and how often.

use std::path::PathBuf;
use std::time::Duration;

use onionskin_proxy::Backend;
use serde::{Deserialize, Deserializer, de::Error};

use crate::config_file::{Given, some_time};

/// Servers that `backend` names, at most.
const MOST_MEMBERS: usize = 9;

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

/// One server, or several.
pub fn backends<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Backend>, D::Error> {
    let texts = match Given::read(from)? {
        Given::One(text) => vec![text],
        Given::Several(texts) if (2..=MOST_MEMBERS).contains(&texts.len()) => texts,
        Given::Several(_) => {
            return Err(D::Error::custom(format!(
                "a list names 2 to {MOST_MEMBERS} servers; one stands without brackets"
            )));
        }
    };
    let mut all: Vec<Backend> = Vec::new();
    for text in texts {
        let backend = text.parse().map_err(D::Error::custom)?;
        if all.contains(&backend) {
            return Err(D::Error::custom(format!("{text:?} stands there twice")));
        }
        all.push(backend);
    }
    Ok(all)
}

/// Why the two do not go together.
pub fn fits(backends: &[Backend], health: Option<&HealthSection>) -> Result<(), &'static str> {
    match (backends.len(), health) {
        (..=1, Some(_)) => Err("[health] is for a list of servers in backend"),
        (2.., None) => Err(
            "backend names several servers: [health] has to name the account that asks them which is the primary",
        ),
        _ => Ok(()),
    }
}
