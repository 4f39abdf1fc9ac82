//! What the server's own machine shows, if that is this one.
//!
//! A server may be lying about its paths. So only a folder that is a data directory is listed,
//! links are not followed, nothing but regular files is opened, and of what is read there, and in
//! the logs that it names, only facts leave this module.

use std::{
    fs::{self, File, Metadata},
    io::Read,
    net::ToSocketAddrs,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use onionskin_rowstream::client::Address;
use rustix::fs::OFlags;

use super::{
    facts::{Facts, KeyFile, LogFile, Machine},
    request::Request,
};
use crate::AssessError;

/// Deepest folder of a data directory.
const MAX_DEPTH: usize = 8;
/// Most files of a data directory.
const MAX_FILES: usize = 1_000_000;
/// `f_type` of tmpfs and ramfs.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// Looks, or says what it would take.
pub(super) fn look(
    request: &Request,
    facts: &Facts,
) -> Result<Result<Machine, String>, AssessError> {
    let data = match &request.data {
        Some(data) => {
            let Some(is_it) = is_data_directory(data, facts) else {
                return Err(AssessError::Request(format!(
                    "--datadir: {} is not a data directory that can be read",
                    data.display()
                )));
            };
            if !is_it {
                return Err(AssessError::Request(format!(
                    "--datadir: {} is another server's",
                    data.display()
                )));
            }
            data.clone()
        }
        None => {
            if !is_here(&request.connect.address, facts) {
                return Ok(Err("running on the server's machine, or --datadir".into()));
            }
            let data = PathBuf::from(facts.variable("datadir").unwrap_or_default());
            match is_data_directory(&data, facts) {
                Some(true) => data,
                _ => {
                    return Ok(Err(
                        "running as a user who may read the data directory, or --datadir".into(),
                    ));
                }
            }
        }
    };
    let temporary = facts.variable("tmpdir").unwrap_or_default();
    Ok(Ok(Machine {
        logs: logs(&data, facts),
        keys: keys(&data, facts),
        temporary_in_memory: temporary.split(':').all(is_in_memory),
        readable: readable(&data, facts),
        data,
    }))
}

/// Whether the address leads to this machine, and the server has its name. A container has another.
fn is_here(address: &Address, facts: &Facts) -> bool {
    let is_local = match address {
        Address::Unix(_) => true,
        Address::Tcp { host, port } => (host.as_str(), *port)
            .to_socket_addrs()
            .is_ok_and(|mut all| all.all(|address| address.ip().is_loopback())),
    };
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    is_local && facts.variable("hostname") == Some(name.trim())
}

/// `None` if it is no data directory, or cannot be read; false if it is another server's.
fn is_data_directory(data: &Path, facts: &Facts) -> Option<bool> {
    if !data.is_absolute() || !data.join("ibdata1").is_file() || fs::read_dir(data).is_err() {
        return None;
    }
    let Some(uuid) = facts.variable("server_uuid") else {
        return Some(true);
    };
    let Ok(text) = fs::read_to_string(data.join("auto.cnf")) else {
        return Some(true);
    };
    Some(text.contains(uuid))
}

fn is_in_memory(folder: &str) -> bool {
    rustix::fs::statfs(folder).is_ok_and(|s| IN_MEMORY.contains(&(s.f_type as u64)))
}

/// Opens a regular file for reading, and nothing else: no link, no pipe, no device.
pub(super) fn open(path: &Path) -> std::io::Result<(File, Metadata)> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => Ok((file, metadata)),
        false => Err(std::io::Error::other("not a regular file")),
    }
}

/// Every regular file below the data directory, and what could not be listed.
pub(super) fn files(data: &Path) -> (Vec<PathBuf>, Vec<String>) {
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    let mut folders = vec![(data.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                left_out.push(format!("{}: {error}", folder.display()));
                continue;
            }
        };
        for entry in entries.flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => folders.push((path, depth + 1)),
                Ok(kind) if kind.is_file() && found.len() < MAX_FILES => found.push(path),
                // A server's own socket.
                Ok(kind) if !kind.is_symlink() && !kind.is_dir() && !kind.is_file() => {}
                _ => left_out.push(format!("{}: a link, or too deep", path.display())),
            }
        }
    }
    found.sort();
    (found, left_out)
}

/// Files outside of the data directory that the server names: logs, and the binary log.
pub(super) fn outside(data: &Path, facts: &Facts) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for name in ["general_log_file", "slow_query_log_file", "log_error"] {
        let path = PathBuf::from(facts.variable(name).unwrap_or_default());
        if path.is_absolute() {
            found.push(path);
        }
    }
    for name in ["log_bin_basename", "relay_log_basename"] {
        let base = PathBuf::from(facts.variable(name).unwrap_or_default());
        let (Some(folder), Some(stem)) = (base.parent(), base.file_name()) else {
            continue;
        };
        let stem = format!("{}.", stem.to_string_lossy());
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        found.extend(
            entries
                .filter(|entry| entry.file_name().to_string_lossy().starts_with(&stem))
                .map(|entry| entry.path()),
        );
    }
    found.retain(|path| !path.starts_with(data));
    found.sort();
    found.dedup();
    found
}

fn logs(data: &Path, facts: &Facts) -> Vec<LogFile> {
    let mut found = Vec::new();
    for name in ["log_bin_basename", "relay_log_basename"] {
        let base = PathBuf::from(facts.variable(name).unwrap_or_default());
        let Some(stem) = base.file_name() else {
            continue;
        };
        let folder = match base.parent() {
            Some(folder) if folder.is_absolute() => folder,
            _ => data,
        };
        let stem = format!("{}.", stem.to_string_lossy());
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let number = name.strip_prefix(&stem);
            if number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
                && let Some(file) = log_file(&entry.path(), name)
            {
                found.push(file);
            }
        }
    }
    found
}

/// How a file of the binary log begins. MySQL encrypts whole files, under a mark of their own.
/// MariaDB leaves the first event as it is, and writes another one before the encrypted ones.
fn log_file(path: &Path, name: String) -> Option<LogFile> {
    const START_ENCRYPTION: u8 = 164;
    let (file, _) = open(path).ok()?;
    let mut head = Vec::new();
    file.take(4096).read_to_end(&mut head).ok()?;
    match head.get(..4)? {
        b"\xfdbin" => Some(LogFile {
            name,
            encrypted: true,
            begun: None,
        }),
        b"\xfebin" => {
            let number = |at: usize| {
                let bytes = head.get(at..at + 4)?;
                Some(u32::from_le_bytes(bytes.try_into().ok()?))
            };
            let next = 4 + number(13)? as usize;
            Some(LogFile {
                name,
                encrypted: head.get(next + 4) == Some(&START_ENCRYPTION),
                begun: number(4).map(i64::from),
            })
        }
        _ => None,
    }
}

fn keys(data: &Path, facts: &Facts) -> Vec<KeyFile> {
    let places = facts.keys.known().into_iter().flatten();
    let files = places.filter_map(|place| place.file.as_deref());
    let key = |file: &str| {
        let path = PathBuf::from(file);
        // What a link leads to is what counts.
        let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        let data = fs::canonicalize(data).unwrap_or_else(|_| data.to_owned());
        KeyFile {
            mode: fs::metadata(&path).ok().map(|m| m.mode() & 0o777),
            in_data_directory: real.starts_with(&data),
            path,
        }
    };
    files.map(key).collect()
}

/// The data directory and logs outside of it that every user may read.
fn readable(data: &Path, facts: &Facts) -> Vec<(PathBuf, u32)> {
    let mut places = vec![data.to_owned()];
    places.extend(outside(data, facts));
    let mode = |path: PathBuf| {
        let metadata = fs::symlink_metadata(&path).ok()?;
        let mode = metadata.mode() & 0o777;
        // Who may not pass through the folder reaches nothing in it.
        let may = if metadata.is_dir() { 0o001 } else { 0o004 };
        (mode & may != 0).then_some((path, mode))
    };
    places.into_iter().filter_map(mode).collect()
}

#[cfg(test)]
mod tests {
    use onionskin_rowstream::client::Family;

    use super::*;
    use crate::server::facts::samples::facts;

    /// An event of a binary log: 19 bytes of head, and as many more.
    fn event(kind: u8, at: u32, more: usize) -> Vec<u8> {
        let size = u32::try_from(19 + more).expect("small");
        let mut event = at.to_le_bytes().to_vec();
        event.push(kind);
        event.extend([0; 4]);
        event.extend(size.to_le_bytes());
        event.extend(vec![0; 6 + more]);
        event
    }

    #[test]
    fn the_beginning_of_a_log_tells_whether_it_is_encrypted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("binlog.000001");
        let read = |bytes: &[u8]| {
            fs::write(&path, bytes).expect("written");
            log_file(&path, "binlog.000001".into())
        };
        let plain = [
            b"\xfebin".to_vec(),
            event(15, 1_700_000_000, 80),
            event(163, 0, 10),
        ]
        .concat();
        let file = read(&plain).expect("a log");
        assert!(!file.encrypted);
        assert_eq!(file.begun, Some(1_700_000_000));
        let sealed = [b"\xfebin".to_vec(), event(15, 1, 80), event(164, 0, 17)].concat();
        assert!(read(&sealed).expect("a log").encrypted);
        assert!(read(b"\xfdbin\x01\0\0").expect("a log").encrypted);
        assert!(read(b"text").is_none());
        assert!(read(b"").is_none());
        assert!(read(b"\xfebin\0\0").is_none());
    }

    #[test]
    fn only_a_data_directory_is_looked_at() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut facts = facts(Family::MySql, &[("server_uuid", "abc-1")]);
        assert_eq!(is_data_directory(folder.path(), &facts), None);
        assert_eq!(is_data_directory(Path::new("/etc"), &facts), None);
        fs::write(folder.path().join("ibdata1"), "x").expect("written");
        fs::write(
            folder.path().join("auto.cnf"),
            "[auto]\nserver-uuid=abc-1\n",
        )
        .expect("written");
        assert_eq!(is_data_directory(folder.path(), &facts), Some(true));
        facts.variables.insert("server_uuid".into(), "abc-2".into());
        assert_eq!(is_data_directory(folder.path(), &facts), Some(false));
        // Links are not followed, and not forgotten.
        std::os::unix::fs::symlink("/etc", folder.path().join("etc")).expect("a link");
        let (found, left_out) = files(folder.path());
        assert_eq!(found.len(), 2);
        assert_eq!(left_out.len(), 1);
    }
}
