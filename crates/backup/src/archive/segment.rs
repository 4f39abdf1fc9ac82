//! What a segment's manifest says of it.

use serde::{Deserialize, Serialize};

use crate::manifest::BinlogPosition;

/// A piece of a server's binlog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The server's id.
    pub server_id: u32,
    /// MySQL's `@@server_uuid`; MariaDB has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_uuid: Option<String>,
    /// Where the first event stood in the server's file; 4 for the beginning of a file.
    pub first: BinlogPosition,
    /// Where the next segment begins.
    pub next: BinlogPosition,
    /// When the server made the file; seconds since 1970. Tells files of the same name apart.
    pub file_created: u32,
    /// All transactions before this segment, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gtid_before: Option<String>,
    /// All transactions up to its end, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gtid_after: Option<String>,
    /// What MySQL held in none of its binlog files when the archiver connected, `@@gtid_purged`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gtid_purged: Option<String>,
    /// How many transactions it holds.
    pub transactions: u64,
    /// Commit time of the first one, in microseconds since 1970; the server's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_commit: Option<u64>,
    /// Commit time of the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_commit: Option<u64>,
}

impl Segment {
    /// The name of its file: `binlog.000003.0000000004.sealed`. Names sort in the order of the log.
    pub fn file_name(first: &BinlogPosition) -> String {
        format!("{}.{:010}.sealed", first.file, first.position)
    }

    /// The place that a file's name stands for; `None` if it is not that of a segment.
    pub fn place_of(name: &str) -> Option<BinlogPosition> {
        let (file, position) = name.strip_suffix(".sealed")?.rsplit_once('.')?;
        let (_, number) = file.rsplit_once('.')?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        (digits(number) && digits(position) && position.len() >= 10).then(|| BinlogPosition {
            file: file.to_owned(),
            position: position.parse().unwrap_or(u64::MAX),
        })
    }

    /// Who wrote it, for comparing.
    pub fn server(&self) -> String {
        match &self.server_uuid {
            Some(uuid) => format!("UUID {uuid}"),
            None => format!("server id {}", self.server_id),
        }
    }
}

/// The number at the end of a binlog file's name, by which files are ordered.
pub fn file_number(file: &str) -> Option<u64> {
    file.rsplit_once('.')?.1.parse().ok()
}

/// By this, places are in the order of the log.
pub fn order_in_log(place: &BinlogPosition) -> (Option<u64>, u64) {
    (file_number(&place.file), place.position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_where_segments_begin() {
        let place = BinlogPosition {
            file: "my.bin.000003".into(),
            position: 4,
        };
        let name = Segment::file_name(&place);
        assert_eq!(name, "my.bin.000003.0000000004.sealed");
        assert_eq!(Segment::place_of(&name), Some(place));
        for other in [
            "20261121-171736-dump.sealed",
            "x.sealed",
            "b.000001.4.sealed",
            "b.000001",
        ] {
            assert_eq!(Segment::place_of(other), None, "{other}");
        }
    }
}
