//! Of which servers a backup and an archive are.

use onionskin_rowstream::binlog::{Gtid, GtidPosition};

use crate::{
    Manifest,
    archive::{ArchiveError, Segment},
};

/// What is known of the servers of a backup and an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// They are one.
    Same,
    /// They are two.
    Other,
    /// The backup does not say.
    Unknown,
}

/// MySQL has UUIDs. Of MariaDB's servers, those that replicate from each other have different ids.
pub(super) fn relation(backup: &Manifest, segment: &Segment) -> Result<Relation, ArchiveError> {
    let family = match segment.server_uuid {
        Some(_) => "mysql",
        None => "mariadb",
    };
    let Some(server) = &backup.server else {
        return Ok(Relation::Unknown);
    };
    if server.family != family {
        return Err(ArchiveError::OtherBackup(format!(
            "the one is of {family}, the other of {}",
            server.family
        )));
    }
    let same = match &segment.server_uuid {
        Some(archived) => (server.uuid.as_ref()).map(|uuid| uuid.eq_ignore_ascii_case(archived)),
        None => server.server_id.map(|id| id == segment.server_id),
    };
    Ok(match same {
        Some(true) => Relation::Same,
        Some(false) => Relation::Other,
        None => Relation::Unknown,
    })
}

/// GTIDs of the segment's family.
pub(super) fn parse(segment: &Segment, text: &str) -> Result<GtidPosition, ArchiveError> {
    Ok(match segment.server_uuid {
        Some(_) => GtidPosition::parse_mysql(text)?,
        None => GtidPosition::parse_mariadb(text)?,
    })
}

/// Whether the archive of the backup's server can continue it: what it begins behind is in the
/// backup, and what is in the backup it has come to.
pub(super) fn check_range(
    held: &GtidPosition,
    first: &Segment,
    last: &Segment,
) -> Result<(), ArchiveError> {
    let other = |what: String| Err(ArchiveError::OtherBackup(what));
    let reaches = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(before) = reaches(&first.gtid_before)
        && !begins_within(held, &parse(first, &before)?, first.server_id)
    {
        return other(format!(
            "the archive begins behind the GTIDs {before}, and the backup holds {held}"
        ));
    }
    if let Some(after) = reaches(&last.gtid_after)
        && !holds(&parse(last, &after)?, held, first.server_uuid.as_deref())
    {
        return other(format!(
            "the archive holds GTIDs up to {after}, and the backup holds {held}"
        ));
    }
    Ok(())
}

/// As [`holds`], but mariadb-backup leaves out what the server neither committed nor replicates.
fn begins_within(held: &GtidPosition, before: &GtidPosition, server_id: u32) -> bool {
    let (GtidPosition::MariaDb(all), GtidPosition::MariaDb(begins)) = (held, before) else {
        return holds(held, before, None);
    };
    let mut begins = begins.clone();
    begins.retain(|domain, (server, _)| all.contains_key(domain) || *server == server_id);
    holds(held, &GtidPosition::MariaDb(begins), None)
}

/// Whether all of `inner` is in `outer`. `own` is the UUID of the MySQL server that alone matters:
/// what others committed may be known to a server, by its own cloning for example, without being in
/// its binlog.
fn holds(outer: &GtidPosition, inner: &GtidPosition, own: Option<&str>) -> bool {
    match (outer, inner) {
        (GtidPosition::MySql(outer), GtidPosition::MySql(inner)) => {
            let own: Option<String> = own.map(|own| own.replace('-', "").to_ascii_lowercase());
            let matters = |uuid: &[u8; 16]| {
                let text: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
                own.as_ref().is_none_or(|own| *own == text)
            };
            let within = |source, (from, to): &(u64, u64)| {
                let all: Option<&Vec<(u64, u64)>> = outer.get(source);
                all.is_some_and(|all| all.iter().any(|(a, b)| a <= from && to <= b))
            };
            inner
                .iter()
                .filter(|((uuid, _), _)| matters(uuid))
                .all(|(source, intervals)| intervals.iter().all(|part| within(source, part)))
        }
        (outer, GtidPosition::MariaDb(inner)) => {
            inner.iter().all(|(domain, (server, sequence))| {
                outer.contains(&Gtid::MariaDb {
                    domain: *domain,
                    server: *server,
                    sequence: *sequence,
                })
            })
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::segment;
    use super::*;
    use crate::manifest::Server;

    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const OTHER: &str = "4e11fa47-71ca-11e1-9e33-c80aa9429562";

    #[test]
    fn a_backup_and_an_archive_are_of_one_server() {
        let backup = |family: &str, uuid: Option<&str>, gtid: &str| Manifest {
            server: Some(Server {
                uuid: uuid.map(str::to_owned),
                ..Server::new(family, "9")
            }),
            gtid: (!gtid.is_empty()).then(|| gtid.into()),
            ..Manifest::new("clone")
        };
        let check = |backup: &Manifest, segment: &Segment| {
            let found = relation(backup, segment).map_err(|error| error.to_string())?;
            if found == Relation::Other {
                return Err("not of the server: GTIDs draw the border then".to_owned());
            }
            let held = parse(segment, backup.gtid.as_deref().unwrap_or_default()).unwrap();
            check_range(&held, segment, segment).map_err(|error| error.to_string())
        };
        let mysql = segment(
            Some(UUID),
            &format!("{UUID}:1-5"),
            &format!("{UUID}:1-20,{OTHER}:7-8"),
        );
        for (uuid, gtid) in [
            (Some(UUID), format!("{UUID}:1-7")),
            (None, format!("{UUID}:1-20")),
            // What it was provisioned with is in no binlog.
            (None, format!("{UUID}:1-7,{OTHER}:1-8")),
        ] {
            check(&backup("mysql", uuid, &gtid), &mysql).unwrap();
        }
        for (family, uuid, gtid) in [
            ("mariadb", None, String::new()),
            ("mysql", Some(OTHER), format!("{UUID}:1-7")),
            // Without GTIDs a backup cannot hold those that the archive begins behind.
            ("mysql", Some(UUID), String::new()),
            ("mysql", None, format!("{UUID}:1-4")),
            ("mysql", None, format!("{UUID}:1-21")),
            ("mysql", None, format!("{OTHER}:1-7")),
        ] {
            let error = check(&backup(family, uuid, &gtid), &mysql).unwrap_err();
            assert!(error.contains("not of the server"), "{error}");
        }
        let maria = segment(None, "0-1-5", "0-1-20,3-1-2");
        for gtid in ["0-1-5", "0-1-20", "0-1-7,3-1-1"] {
            check(&backup("mariadb", None, gtid), &maria).unwrap();
        }
        for gtid in ["0-1-4", "0-1-21", "1-1-7", "0-1-7,4-1-1"] {
            check(&backup("mariadb", None, gtid), &maria).unwrap_err();
        }
        check(&backup("mysql", None, ""), &maria).unwrap_err();
    }
}
