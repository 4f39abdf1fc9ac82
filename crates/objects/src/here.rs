//! This machine: its time, and its own addresses.

use std::{
    net::IpAddr,
    time::{SystemTime, UNIX_EPOCH},
};

use chrono::{DateTime, Utc};
use url::{Host, Url};

/// This machine's time, in whole seconds.
pub(crate) fn now() -> DateTime<Utc> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.map_or(0, |since| since.as_secs());
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    DateTime::from_timestamp(seconds, 0).unwrap_or_default()
}

/// Whether this machine is meant.
pub(crate) fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}
