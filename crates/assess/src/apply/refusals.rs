//! States in which nothing is changed.

use super::{request::Request, state::State};
use crate::server::facts::Seen;

/// What a MariaDB account needs on everything.
const MARIADB: [&str; 6] = [
    "SELECT",
    "PROCESS",
    "SUPER",
    "RELOAD",
    "BINLOG MONITOR",
    "BINLOG ADMIN",
];
/// What a MySQL account needs on everything.
const MYSQL: [&str; 11] = [
    "SELECT",
    "INSERT",
    "CREATE",
    "ALTER",
    "RELOAD",
    "PROCESS",
    "REPLICATION CLIENT",
    "CREATE TABLESPACE",
    "SYSTEM_VARIABLES_ADMIN",
    "BINLOG_ADMIN",
    "BINLOG_ENCRYPTION_ADMIN",
];

/// Every reason, so that they need not be found one by one.
pub(super) fn of(state: &State, request: &Request) -> Vec<String> {
    let facts = &state.facts;
    let mut refused = Vec::new();
    let mut refuse = |reason: String| refused.push(reason);
    let oldest = match state.is_mariadb() {
        true => (10, 11, 0),
        // The first one with components that are told by performance_schema.
        false => (8, 0, 24),
    };
    match version(&facts.version) {
        Some(version) if version >= oldest => {}
        _ => refuse(format!("version {} is not known here", facts.version)),
    }
    let needed: &[&str] = match state.is_mariadb() {
        true => &MARIADB,
        false => &MYSQL,
    };
    let missing: Vec<&str> = needed
        .iter()
        .copied()
        .filter(|word| !state.grants.contains(*word) && !state.grants.contains("ALL PRIVILEGES"))
        .collect();
    if !missing.is_empty() {
        refuse(format!(
            "{} needs GRANT {} ON *.*",
            facts.account,
            missing.join(", ")
        ));
    }
    if state.restricted {
        refuse(format!(
            "{} has privileges that are taken away for some databases",
            facts.account
        ));
    }
    if let Err(reason) = &state.process {
        refuse(reason.clone());
    }
    for name in ["read_only", "super_read_only", "innodb_read_only"] {
        if facts.is_on(name) {
            refuse(format!("{name} is on: this server does not write"));
        }
    }
    match &facts.channels {
        Seen::Known(channels) if channels.is_empty() => {}
        Seen::Known(_) => refuse(
            "the server is a replica: stop and reset its replication first, or make a new replica \
             from an encrypted server"
                .into(),
        ),
        Seen::Hidden(needs) => refuse(format!("whether it is a replica is not visible: {needs}")),
        Seen::Absent => {}
    }
    if facts.is_on("wsrep_on") {
        refuse("the server is a node of a Galera cluster".into());
    }
    if facts
        .variable("group_replication_group_name")
        .is_some_and(|name| !name.is_empty())
    {
        refuse("the server is a member of a replication group".into());
    }
    if facts
        .variable("innodb_force_recovery")
        .is_some_and(|level| level != "0")
    {
        refuse("innodb_force_recovery is set".into());
    }
    if facts.is_on("binlog_encryption") && state.active_keys().is_empty() {
        refuse("the binary log is encrypted, and no keyring is active".into());
    }
    refused.extend(about_keys(state, request));
    refused
}

fn about_keys(state: &State, request: &Request) -> Vec<String> {
    let facts = &state.facts;
    let mut refused = Vec::new();
    let known = match state.is_mariadb() {
        true => "file_key_management",
        false => "component_keyring_file",
    };
    match &facts.keys {
        Seen::Hidden(needs) => refused.push(format!("the keys are not visible: {needs}")),
        Seen::Absent => {}
        Seen::Known(keys) => {
            // Functions over a keyring are none.
            for key in keys.iter().filter(|key| key.name != "keyring_udf") {
                if key.name != known {
                    refused.push(format!(
                        "keys come from {}, and only {known} is known here",
                        key.name
                    ));
                } else if !key.active {
                    refused.push(format!("{} is there and does not work", key.name));
                }
            }
        }
    }
    if state.keyring_read_only {
        refused.push("the keyring takes no new keys: read_only is true".into());
    }
    match state.is_mariadb() {
        true => {
            if let Some(id) = facts.variable("innodb_default_encryption_key_id")
                && id != "1"
            {
                refused.push(format!(
                    "innodb_default_encryption_key_id is {id}, and only key 1 is known here"
                ));
            }
        }
        false => {
            if !facts.is_on("persisted_globals_load") {
                refused.push("persisted_globals_load is off: settings would be lost".into());
            }
        }
    }
    let folder = state.keys_folder(request);
    let data = state.data();
    if !folder.is_absolute() {
        refused.push(format!(
            "--keys: {} is not an absolute path",
            folder.display()
        ));
    }
    let real = std::fs::canonicalize(&folder).unwrap_or_else(|_| folder.clone());
    let data = std::fs::canonicalize(data).unwrap_or_else(|_| data.to_owned());
    if real.starts_with(&data) {
        refused.push(format!(
            "--keys: {} lies in the data directory, and is copied with it",
            folder.display()
        ));
    }
    if let Ok(owner) = super::files::Owner::of(&folder)
        && owner.uid != state.owner.uid
    {
        refused.push(format!(
            "--keys: {} does not belong to the server's user",
            folder.display()
        ));
    }
    refused
}

/// `10.11.6-MariaDB` as three numbers.
fn version(text: &str) -> Option<(u32, u32, u32)> {
    let mut numbers = text.split(['.', '-']).map(str::parse::<u32>);
    Some((
        numbers.next()?.ok()?,
        numbers.next()?.ok()?,
        numbers.next()?.ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("10.11.6-MariaDB-0+deb12u1"), Some((10, 11, 6)));
        assert_eq!(version("9.7.4-2"), Some((9, 7, 4)));
        assert!(version("10.2.1") < Some((10, 11, 0)));
        assert_eq!(version("none"), None);
    }
}
