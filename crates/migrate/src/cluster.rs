//! Galera clusters, all nodes of which write to the table.
//!
//! A migration works at one node. What all of them write stands in that node's binary log, in the
//! order in which every node carries it out. This is what the node has to be like; what is asked of
//! the others is in `others.rs`.

use onionskin_rowstream::checkpoint::State;
use onionskin_rowstream::session::Session;

use crate::error::{MigrateError, Result};
use crate::facts::Facts;

/// What one transaction of ours writes at most, with room: see `MAX_WHOLE` of the switch.
const MOST_ROWS: u64 = 100_000;
/// The same in bytes. The server's own limit, and its default, is 2 GiB.
const MOST_BYTES: u64 = 1 << 30;
/// States of a node that has what the others have: as a donor, and usually.
const JOINED: [&str; 2] = ["2", "4"];
/// Waits until the node has carried out what was committed at any node before.
const CATCH_UP: &str = "SELECT COUNT(*) FROM information_schema.SCHEMATA";

pub(crate) fn refused(reason: String) -> MigrateError {
    MigrateError::Refused {
        table: "the server's tables".into(),
        reason,
    }
}

/// Variables or the status, by their names in small letters.
pub(crate) fn values(session: &mut Session, what: &str, names: &[&str]) -> Result<Vec<String>> {
    let list: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    let rows = session
        .texts(&format!(
            "SHOW {what} WHERE Variable_name IN ({})",
            list.join(", ")
        ))
        .map_err(MigrateError::sql("reading the server's settings"))?;
    let value = |name: &&str| {
        let row = rows.iter().find(|row| {
            let found = row.first().and_then(Option::as_deref);
            found.is_some_and(|found| found.eq_ignore_ascii_case(name))
        });
        row.and_then(|row| row.get(1)?.clone()).unwrap_or_default()
    };
    Ok(names.iter().map(value).collect())
}

/// Whether the server is a node of a Galera cluster.
pub(crate) fn is_galera(session: &mut Session) -> Result<bool> {
    let provider = values(session, "GLOBAL VARIABLES", &["wsrep_provider"])?;
    Ok(!["", "none"].contains(&&*provider[0].to_ascii_lowercase()))
}

/// An error if the server is a node at which no migration can work.
pub(crate) fn check(session: &mut Session) -> Result<()> {
    if !is_galera(session)? {
        return Ok(());
    }
    let musts = [
        (
            "wsrep_on",
            "ON",
            "what is written at this node would stay here",
        ),
        (
            "wsrep_osu_method",
            "TOI",
            "the tables would be renamed at this node alone",
        ),
        (
            "log_slave_updates",
            "ON",
            "what the other nodes write would not stand in this node's binary log",
        ),
    ];
    let names = musts.map(|(name, ..)| name);
    let found = values(session, "SESSION VARIABLES", &names)?;
    for ((name, must, reason), is) in musts.iter().zip(found) {
        if !is.eq_ignore_ascii_case(must) {
            return Err(refused(format!(
                "{name} is {is} at this node of a Galera cluster, so that {reason}: it has to be {must}"
            )));
        }
    }
    let limits = ["wsrep_max_ws_rows", "wsrep_max_ws_size"];
    let found = values(session, "GLOBAL VARIABLES", &limits)?;
    let numbers = found.iter().map(|text| text.parse().unwrap_or(0));
    for ((name, is), least) in limits.iter().zip(numbers).zip([MOST_ROWS, MOST_BYTES]) {
        if is != 0 && is < least {
            return Err(refused(format!(
                "{name} is {is}, so that the cluster may not take what is written at once: \
                 SET GLOBAL {name} = DEFAULT while this runs"
            )));
        }
    }
    must_be_whole(session, "this node")
}

/// An error if a node is not a whole part of its cluster.
pub(crate) fn must_be_whole(session: &mut Session, node: &str) -> Result<()> {
    let names = ["wsrep_ready", "wsrep_cluster_status", "wsrep_local_state"];
    let found = values(session, "GLOBAL STATUS", &names)?;
    let is_ready = found[0].eq_ignore_ascii_case("ON");
    let is_primary = found[1].eq_ignore_ascii_case("Primary");
    match is_ready && is_primary && JOINED.contains(&&*found[2]) {
        true => Ok(()),
        false => Err(refused(format!(
            "{node} is not synced with its Galera cluster (wsrep_ready {}, wsrep_cluster_status {}, wsrep_local_state {}): \
             try again when it is",
            found[0], found[1], found[2]
        ))),
    }
}

/// An error if a table cannot be exchanged on all nodes of a cluster.
pub(crate) fn must_suit(
    session: &mut Session,
    state: &State,
    table: &Facts,
    is_reverse: bool,
) -> Result<()> {
    if !is_galera(session)? {
        return Ok(());
    }
    let refused = |reason: &str| {
        Err(MigrateError::Refused {
            table: format!("{}.{}", table.database, table.table),
            reason: format!("{reason}, which is not supported on Galera clusters"),
        })
    };
    if is_reverse {
        return refused("--reverse was asked for");
    }
    if !state.triggers.is_empty() {
        return refused("it has triggers");
    }
    if !state.foreign_keys.is_empty() {
        return refused("it has foreign keys, or others point at it");
    }
    match has_primary_key(&table.definition) {
        true => Ok(()),
        false => Err(without_primary_key(table)),
    }
}

/// The cluster cannot tell the rows of such a table apart.
pub(crate) fn without_primary_key(table: &Facts) -> MigrateError {
    MigrateError::Refused {
        table: format!("{}.{}", table.database, table.table),
        reason: "it has no primary key, which tables on Galera clusters need".into(),
    }
}

/// Whether a definition has one, as SHOW CREATE TABLE writes it. Line breaks of texts are escaped
/// there.
pub(crate) fn has_primary_key(definition: &str) -> bool {
    definition
        .lines()
        .any(|line| line.starts_with("  PRIMARY KEY ("))
}

/// Waits until this node has what was committed at the others before.
pub(crate) fn catch_up(session: &mut Session) -> Result<()> {
    if !is_galera(session)? {
        return Ok(());
    }
    let doing = MigrateError::sql("waiting for what the other nodes have written");
    session
        .run("SET SESSION wsrep_sync_wait = 1")
        .map_err(&doing)?;
    session.text(CATCH_UP).map_err(&doing)?;
    session
        .run("SET SESSION wsrep_sync_wait = 0")
        .map_err(&doing)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primary_keys_are_seen_in_definitions() {
        assert!(has_primary_key(
            "CREATE TABLE `t` (\n  `a` int,\n  PRIMARY KEY (`a`)\n)"
        ));
        assert!(!has_primary_key(
            "CREATE TABLE `t` (\n  `a` int COMMENT '\\n  PRIMARY KEY (`a`)',\n  UNIQUE KEY `a` (`a`)\n)"
        ));
    }
}
