//! A place and a segment to test with.

use super::border::Border;
use crate::{
    Manifest,
    archive::Segment,
    manifest::{BinlogPosition, Server},
};

pub(super) fn place(position: u64) -> BinlogPosition {
    BinlogPosition {
        file: "binlog.000001".into(),
        position,
    }
}

pub(super) fn segment(uuid: Option<&str>, before: &str, after: &str) -> Segment {
    Segment {
        server_id: 1,
        server_uuid: uuid.map(str::to_owned),
        first: place(4),
        next: place(1000),
        file_created: 900,
        gtid_before: Some(before.into()),
        gtid_after: Some(after.into()),
        gtid_purged: None,
        transactions: 9,
        first_commit: Some(950 * 1_000_000),
        last_commit: Some(2000 * 1_000_000),
    }
}

/// The border of a backup of the server whose [`segment`] it is, at a place.
pub(super) fn border(backup: &Manifest, from: &BinlogPosition) -> Border {
    let backup = Manifest {
        server: Some(Server {
            server_id: Some(1),
            ..Server::new("mariadb", "10.11")
        }),
        created: 1000,
        ..backup.clone()
    };
    let segment = segment(None, "", "0-1-9");
    Border::new(&backup, from, &segment, &segment).unwrap()
}
