//! Whether a backup and an archive are of one server.

use onionskin_rowstream::binlog::{Gtid, GtidPosition};

use crate::{
    Manifest,
    archive::{ArchiveError, Segment},
};

/// Whether the archive continues this backup. Positions alone do not say so: every server begins
/// with the same ones.
pub(super) fn check_origin(
    backup: &Manifest,
    first: &Segment,
    last: &Segment,
) -> Result<(), ArchiveError> {
    let other = |what: String| Err(ArchiveError::OtherBackup(what));
    let family = match first.server_uuid {
        Some(_) => "mysql",
        None => "mariadb",
    };
    if let Some(server) = &backup.server {
        if server.family != family {
            return other(format!(
                "the one is of {family}, the other of {}",
                server.family
            ));
        }
        if let (Some(archived), Some(uuid)) = (&first.server_uuid, &server.uuid)
            && archived != uuid
        {
            return other(format!(
                "the one is of server {archived}, the other of {uuid}"
            ));
        }
    }
    let Some(held) = &backup.gtid else {
        return Ok(());
    };
    let parse = |text: &str| match first.server_uuid {
        Some(_) => GtidPosition::parse_mysql(text),
        None => GtidPosition::parse_mariadb(text),
    };
    let reaches = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(before) = reaches(&first.gtid_before)
        && !holds(&parse(held)?, &parse(&before)?, None)
    {
        return other(format!(
            "the archive begins behind the GTIDs {before}, and the backup holds {held}"
        ));
    }
    if let Some(after) = reaches(&last.gtid_after)
        && !holds(&parse(&after)?, &parse(held)?, first.server_uuid.as_deref())
    {
        return other(format!(
            "the archive holds GTIDs up to {after}, and the backup holds {held}"
        ));
    }
    Ok(())
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
            check_origin(backup, segment, segment).map_err(|error| error.to_string())
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
            (None, String::new()),
        ] {
            check(&backup("mysql", uuid, &gtid), &mysql).unwrap();
        }
        for (family, uuid, gtid) in [
            ("mariadb", None, String::new()),
            ("mysql", Some(OTHER), format!("{UUID}:1-7")),
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
