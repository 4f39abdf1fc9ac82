//! What the files of a folder are, by their first bytes.

use std::{
    fs::{self, File},
    io::Read,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use super::facts::{BackupFile, BackupKind};
use crate::{AssessError, text::shown};

/// Most files that are looked at.
const MAX_FILES: usize = 100_000;
/// Deepest folder below the one that was named.
const MAX_DEPTH: usize = 16;
/// Bytes that tell what a file is: tar has its mark at 257.
const HEAD: usize = 512;

/// Every file below the folder.
pub(super) fn look(folder: &Path) -> Result<Vec<BackupFile>, AssessError> {
    let mut found = Vec::new();
    let mut open = vec![(folder.to_owned(), 0)];
    while let Some((place, depth)) = open.pop() {
        let entries = match fs::read_dir(&place) {
            Ok(entries) => entries,
            Err(source) if depth == 0 => return Err(AssessError::file(place)(source)),
            Err(error) => {
                found.push(file(
                    folder,
                    &place,
                    BackupKind::Unreadable(error.to_string()),
                ));
                continue;
            }
        };
        for entry in entries.flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => open.push((path, depth + 1)),
                Ok(kind) if kind.is_file() => {
                    let kind = head(&path).map_or_else(
                        |error| BackupKind::Unreadable(error.to_string()),
                        |head| kind_of(&head),
                    );
                    found.push(file(folder, &path, kind));
                }
                _ => found.push(file(
                    folder,
                    &path,
                    BackupKind::Unreadable("not a file".into()),
                )),
            }
            if found.len() >= MAX_FILES {
                return Err(AssessError::Request(format!(
                    "--backups: there are more than {MAX_FILES} files below {}",
                    folder.display()
                )));
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

fn file(folder: &Path, path: &Path, kind: BackupKind) -> BackupFile {
    let name = path.strip_prefix(folder).unwrap_or(path);
    BackupFile {
        name: shown(&name.to_string_lossy()),
        kind,
    }
}

fn head(path: &Path) -> std::io::Result<Vec<u8>> {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let mut head = Vec::new();
    file.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// By magic bytes: what encrypts, and what only packs.
fn kind_of(head: &[u8]) -> BackupKind {
    const FOREIGN: [(&[u8], &str); 5] = [
        (b"age-encryption.org/", "encrypted by age"),
        (
            b"Salted__",
            "encrypted by openssl enc, which does not authenticate",
        ),
        (b"-----BEGIN PGP MESSAGE", "encrypted by PGP"),
        (b"\x84\x5e", "encrypted by PGP, by its first bytes"),
        (b"\x85\x02\x0c", "encrypted by PGP, by its first bytes"),
    ];
    const PLAIN: [(&[u8], &str); 12] = [
        (b"\x28\xb5\x2f\xfd", "zstd, not encrypted"),
        (b"\x1f\x8b", "gzip, not encrypted"),
        (b"\xfd7zXZ", "xz, not encrypted"),
        (b"BZh", "bzip2, not encrypted"),
        (b"\x04\x22\x4d\x18", "lz4, not encrypted"),
        (b"PK\x03\x04", "zip, taken as plain"),
        (
            b"XBSTCK01",
            "a stream of xtrabackup or mariadb-backup, not encrypted",
        ),
        (b"-- MySQL dump", "a dump, not encrypted"),
        (b"-- MariaDB dump", "a dump, not encrypted"),
        (b"/*M!999999", "a dump, not encrypted"),
        (b"\xfebin", "a binary log, not encrypted"),
        (b"SQLite format 3", "a database, not encrypted"),
    ];
    if head.is_empty() {
        return BackupKind::Plain("an empty file");
    }
    if head.starts_with(&onionskin_backup::header::MAGIC) {
        return BackupKind::Sealed;
    }
    let begins = |(magic, _): &&(&[u8], &'static str)| head.starts_with(magic);
    if let Some((_, what)) = FOREIGN.iter().find(begins) {
        return BackupKind::Foreign(what);
    }
    if let Some((_, what)) = PLAIN.iter().find(begins) {
        return BackupKind::Plain(what);
    }
    if head.get(257..262) == Some(b"ustar") {
        return BackupKind::Plain("tar, not encrypted");
    }
    match std::str::from_utf8(head) {
        Ok(text) if text.chars().all(|c| !c.is_control() || c.is_whitespace()) => {
            BackupKind::Plain("text")
        }
        _ => BackupKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_first_bytes() {
        let folder = tempfile::tempdir().expect("a folder");
        let below = folder.path().join("2024");
        fs::create_dir(&below).expect("a folder");
        let sealed = [&onionskin_backup::header::MAGIC[..], &[1; 40]].concat();
        fs::write(below.join("a.sealed"), sealed).expect("written");
        fs::write(below.join("b.sql"), "CREATE TABLE t (id INT);\n").expect("written");
        fs::write(folder.path().join("c.gz"), b"\x1f\x8b\x08\0\0").expect("written");
        fs::write(folder.path().join("d"), [0x93; 64]).expect("written");
        fs::write(folder.path().join("e.age"), b"age-encryption.org/v1\n").expect("written");
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("f")).expect("a link");
        let found = look(folder.path()).expect("looked at");
        let kinds: Vec<(&str, &BackupKind)> =
            found.iter().map(|f| (f.name.as_str(), &f.kind)).collect();
        assert_eq!(kinds[0], ("2024/a.sealed", &BackupKind::Sealed));
        assert_eq!(kinds[1], ("2024/b.sql", &BackupKind::Plain("text")));
        assert!(matches!(kinds[2], ("c.gz", BackupKind::Plain(_))));
        assert_eq!(kinds[3], ("d", &BackupKind::Unknown));
        assert!(matches!(kinds[4], ("e.age", BackupKind::Foreign(_))));
        assert!(
            matches!(kinds[5], ("f", BackupKind::Unreadable(_))),
            "links are not followed"
        );
        assert!(look(&folder.path().join("g")).is_err());
    }
}
