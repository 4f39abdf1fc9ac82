//! A place and a segment to test with.

use crate::{archive::Segment, manifest::BinlogPosition};

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
        transactions: 9,
        first_commit: Some(950 * 1_000_000),
        last_commit: Some(2000 * 1_000_000),
    }
}
