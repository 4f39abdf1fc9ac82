//! What a stream holds, in the words of its source: JSON inside the sealed footer.
//!
//! All fields but `version` may be missing. Readers ignore fields that they do not know, so that an
//! old program can still open what a newer one has sealed; a change that an old program must not
//! ignore changes `version`.

use std::{
    collections::BTreeMap,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use crate::StreamError;

/// The version of the manifest that this crate reads and writes.
pub const MANIFEST_VERSION: u32 = 1;
/// No footer holds a longer one.
pub const MAX_MANIFEST_LEN: usize = 16 << 20;

/// The record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`MANIFEST_VERSION`]
    pub version: u32,
    /// When the source was read to its end; seconds since 1970.
    #[serde(default)]
    pub created: u64,
    /// What was sealed: `stdin`, `file`, `command`, `mariadb-backup`, `clone`, `dump`, `binlog`.
    #[serde(default)]
    pub source: String,
    /// The server that it was taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Server>,
    /// The state of the data in terms of the binlog: replication from here continues where the
    /// backup ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binlog: Option<BinlogPosition>,
    /// The same as a GTID set, as the server writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gtid: Option<String>,
    /// The part of InnoDB's log that the backup stands for, if its source says so. A full one
    /// begins at 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lsn: Option<LsnRange>,
    /// The backup that this one continues. Without it, it is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    /// Settings without which no server reads the files, by their names without dashes, like
    /// `innodb_page_size`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// What a segment of a binlog archive holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<crate::archive::Segment>,
    /// The files in the stream, if the source knows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
    /// The tables in the stream, if the source knows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<Table>,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// `mariadb` or `mysql`.
    pub family: String,
    /// `@@version`
    pub version: String,
    /// `@@server_uuid` of MySQL, if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// `@@server_id`, if it was asked for. Servers that replicate from each other have different
    /// ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_id: Option<u32>,
    /// Where a server without a UUID runs, as it says itself: `HOST:PORT DATADIR`, if it was asked
    /// for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

impl Server {
    /// A server of which no more is known.
    pub fn new(family: &str, version: impl Into<String>) -> Self {
        Self {
            family: family.to_owned(),
            version: version.into(),
            uuid: None,
            server_id: None,
            place: None,
        }
    }

    /// What tells it from other servers of its family, as far as that is known.
    pub fn identity(&self) -> Option<&str> {
        self.uuid.as_deref().or(self.place.as_deref())
    }

    /// Adds what was learned by asking: a [`Server`] of the same family that knows more of itself.
    pub fn known_as(self, asked: Option<&Server>) -> Self {
        match asked.filter(|asked| asked.family == self.family) {
            Some(asked) => Self {
                uuid: asked.uuid.clone(),
                server_id: asked.server_id,
                place: asked.place.clone(),
                ..self
            },
            None => self,
        }
    }
}

/// A place in a binlog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinlogPosition {
    /// Name of the file.
    pub file: String,
    /// Offset in it.
    pub position: u64,
}

/// Log sequence numbers of InnoDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LsnRange {
    /// Pages that have not changed since are not in the backup.
    pub from: u64,
    /// Where an incremental backup on top of this one begins.
    pub to: u64,
}

/// Another backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// Its [`Header::id`](crate::Header::id).
    pub stream: String,
    /// The name that its file had, for people.
    pub name: String,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Path, relative to the data directory. With a slash at its end, an empty folder.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Where its content begins in the opened stream, if it stands there in one piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Digest of its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Its database.
    pub database: String,
    /// Its name.
    pub name: String,
    /// Bytes of its files, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Digest of its rows, if the source computed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// A digest and how it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// `sha256`, `sm3`, or `checksum-table` (what CHECKSUM TABLE answers).
    pub algorithm: String,
    /// Hexadecimal, or the server's decimal number.
    pub value: String,
}

impl Manifest {
    /// Of a source that knows nothing but its kind, made now.
    pub fn new(source: &str) -> Self {
        Self {
            version: MANIFEST_VERSION,
            created: now(),
            source: source.to_owned(),
            server: None,
            binlog: None,
            gtid: None,
            lsn: None,
            base: None,
            settings: BTreeMap::new(),
            segment: None,
            members: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// Made now.
    pub(crate) fn stamp(&mut self) {
        self.created = now();
    }

    pub(crate) fn to_json(&self) -> Result<Vec<u8>, StreamError> {
        serde_json::to_vec(self)
            .ok()
            .filter(|json| json.len() <= MAX_MANIFEST_LEN)
            .ok_or(StreamError::ManifestTooLarge)
    }

    pub(crate) fn from_json(json: &[u8]) -> Result<Self, StreamError> {
        let manifest: Self = serde_json::from_slice(json)
            .map_err(|_| StreamError::Footer("its manifest is malformed"))?;
        match manifest.version {
            MANIFEST_VERSION => Ok(manifest),
            _ => Err(StreamError::Footer("its manifest has an unknown version")),
        }
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_comes_back_and_the_unknown_is_ignored() {
        let digest = Some(Digest {
            algorithm: "checksum-table".into(),
            value: "12".into(),
        });
        let full = Manifest {
            server: Some(Server {
                uuid: Some("3e11fa47-71ca-11e1-9e33-c80aa9429562".into()),
                server_id: Some(7),
                place: Some("db1:3306 /var/lib/mysql/".into()),
                ..Server::new("mariadb", "10.11.19-MariaDB")
            }),
            binlog: Some(BinlogPosition {
                file: "binlog.000002".into(),
                position: 4711,
            }),
            gtid: Some("0-1-22".into()),
            lsn: Some(LsnRange { from: 7, to: 9 }),
            base: Some(Base {
                stream: "00ff".into(),
                name: "monday.sealed".into(),
            }),
            settings: [("innodb_page_size".to_owned(), "16384".to_owned())].into(),
            members: vec![Member {
                name: "app/t.ibd".into(),
                size: 98304,
                offset: Some(17),
                digest: None,
            }],
            tables: vec![Table {
                database: "app".into(),
                name: "t".into(),
                size: None,
                digest,
            }],
            ..Manifest::new("mariadb-backup")
        };
        assert_eq!(Manifest::from_json(&full.to_json().unwrap()).unwrap(), full);
        let newer = br#"{"version": 1, "source": "stdin", "moon": "full"}"#;
        assert_eq!(Manifest::from_json(newer).unwrap().source, "stdin");
        for wrong in [
            &b"{}"[..],
            b"",
            br#"{"version": 2}"#,
            br#"{"version": 1} x"#,
        ] {
            assert!(Manifest::from_json(wrong).is_err());
        }
    }
}
