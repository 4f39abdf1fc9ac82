//! This machine: its time, its own addresses, and the authorities that it trusts.

use std::{
    net::IpAddr,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use chrono::{DateTime, Utc};
use url::{Host, Url};

/// The authorities of this system: of Debian and Alpine, of Fedora, of SUSE, of BSDs.
const AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The file of the authorities that this system trusts, if it has one.
pub fn system_authorities() -> Option<&'static Path> {
    let paths = AUTHORITIES.iter().map(Path::new);
    paths.into_iter().find(|path| path.exists())
}

/// This machine's time, in whole seconds.
pub fn now() -> DateTime<Utc> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.map_or(0, |since| since.as_secs());
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    DateTime::from_timestamp(seconds, 0).unwrap_or_default()
}

/// Whether this machine is meant.
pub fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}
