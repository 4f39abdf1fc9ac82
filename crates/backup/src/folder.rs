//! The files of a folder as a source, for backups that are made as files: those of MySQL's clone
//! plugin.
//!
//! They are put into the form of mariadb-backup's streams, one file after the other, with CRC-32s
//! of their pieces.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    vec,
};

use crate::{
    Manifest,
    manifest::{Member, Table},
    mbstream::{MAX_PATH_LEN, end_chunk, piece_head},
    source::Source,
};

/// Content of a piece.
const PIECE: usize = 1 << 20;

/// Files that nobody writes to any more.
pub struct Folder {
    root: PathBuf,
    manifest: Manifest,
    /// Names of those that are still to come.
    names: vec::IntoIter<String>,
    open: Option<Open>,
    /// Bytes of the stream that were not taken yet, from `taken` on.
    ready: Vec<u8>,
    taken: usize,
}

struct Open {
    name: String,
    file: File,
    at: u64,
}

impl Folder {
    /// All files below `root` but those for which `skip` is true, which is called with names
    /// relative to it. `manifest` says what they are; files and tables are added.
    pub fn new(
        root: &Path,
        mut manifest: Manifest,
        skip: impl Fn(&str) -> bool,
    ) -> io::Result<Self> {
        let mut names = Vec::new();
        let mut folders = Vec::new();
        walk(root, "", &skip, &mut names, &mut folders)?;
        names.sort();
        folders.sort();
        manifest.members = folders
            .into_iter()
            .map(|folder| member(folder + "/", 0))
            .collect();
        Ok(Self {
            root: root.to_owned(),
            manifest,
            names: names.into_iter(),
            open: None,
            ready: Vec::new(),
            taken: 0,
        })
    }

    /// Makes the next bytes ready; false at the end.
    fn advance(&mut self) -> io::Result<bool> {
        self.taken = 0;
        self.ready.clear();
        let Some(mut open) = self.open.take() else {
            let Some(name) = self.names.next() else {
                return Ok(false);
            };
            let file = File::open(self.root.join(&name)).map_err(|error| named(&name, &error))?;
            self.open = Some(Open { name, file, at: 0 });
            return self.advance();
        };
        let mut content = Vec::with_capacity(PIECE);
        let read = (&mut open.file)
            .take(PIECE as u64)
            .read_to_end(&mut content)
            .map_err(|error| named(&open.name, &error))?;
        if read > 0 {
            self.ready = piece_head(&open.name, open.at, &content);
            self.ready.append(&mut content);
            open.at += read as u64;
            self.open = Some(open);
        } else {
            self.ready = end_chunk(&open.name);
            self.manifest.members.push(member(open.name, open.at));
        }
        Ok(true)
    }
}

fn member(name: String, size: u64) -> Member {
    Member {
        name,
        size,
        offset: None,
        digest: None,
    }
}

fn named(name: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

/// Names of files, and of folders that are empty.
fn walk(
    folder: &Path,
    prefix: &str,
    skip: &impl Fn(&str) -> bool,
    names: &mut Vec<String>,
    folders: &mut Vec<String>,
) -> io::Result<()> {
    let mut empty = true;
    for entry in fs::read_dir(folder).map_err(|error| named(&folder.to_string_lossy(), &error))? {
        let entry = entry?;
        let name = entry.file_name().into_string().ok();
        let name = name.map(|name| match prefix {
            "" => name,
            _ => format!("{prefix}/{name}"),
        });
        let Some(name) = name.filter(|name| name.len() <= MAX_PATH_LEN) else {
            let error = io::Error::other("its name is too long, or not UTF-8");
            return Err(named(&entry.path().to_string_lossy(), &error));
        };
        if skip(&name) {
            continue;
        }
        empty = false;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), &name, skip, names, folders)?;
        } else if kind.is_file() {
            names.push(name);
        } else {
            let error = io::Error::other("neither a file nor a folder");
            return Err(named(&name, &error));
        }
    }
    if empty && !prefix.is_empty() {
        folders.push(prefix.to_owned());
    }
    Ok(())
}

impl Source for Folder {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.ready.len() {
            if !self.advance()? {
                return Ok(0);
            }
        }
        let ready = &self.ready[self.taken..];
        let len = ready.len().min(buf.len());
        buf[..len].copy_from_slice(&ready[..len]);
        self.taken += len;
        Ok(len)
    }

    fn finish(&mut self) -> Result<Manifest, String> {
        let mut manifest = self.manifest.clone();
        manifest.tables = tables(&manifest.members);
        manifest.stamp();
        Ok(manifest)
    }
}

/// Every table of a MySQL server that has a tablespace of its own, with its size.
fn tables(members: &[Member]) -> Vec<Table> {
    let mut sizes: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for member in members {
        let Some((database, file)) = member.name.split_once('/') else {
            continue;
        };
        let Some(stem) = file.strip_suffix(".ibd") else {
            continue;
        };
        // A partition's file is named table#p#partition.ibd.
        let table = stem.split_once("#p#").map_or(stem, |(table, _)| table);
        *sizes.entry((database, table)).or_default() += member.size;
    }
    let tables = sizes.into_iter();
    let tables = tables.map(|((database, name), size)| Table {
        database: database.to_owned(),
        name: name.to_owned(),
        size: Some(size),
        digest: None,
    });
    tables.collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::unpack::Unpacker;

    #[test]
    fn files_come_back() {
        let from = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| {
            let path = from.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        let long: Vec<u8> = (0..2 * PIECE + 5).map(|n| (n / 7) as u8).collect();
        write("app/t#p#a.ibd", &long);
        write("app/t#p#b.ibd", b"b");
        write("ibdata1", &long[..PIECE]);
        write("empty", b"");
        write("auto.cnf", b"skipped");
        write("mysql/x.sdi", b"skipped");
        fs::create_dir(from.path().join("hollow")).unwrap();

        let skip = |name: &str| name == "auto.cnf" || name.ends_with(".sdi");
        let mut source = Folder::new(from.path(), Manifest::new("clone"), skip).unwrap();
        let to = tempfile::tempdir().unwrap();
        let mut unpacker = Unpacker::new(to.path());
        let mut buf = vec![0; 70_001];
        loop {
            let read = source.read(&mut buf).unwrap();
            if read == 0 {
                break;
            }
            unpacker.write_all(&buf[..read]).unwrap();
        }
        assert_eq!(unpacker.missing(), None);
        let manifest = source.finish().unwrap();
        let members: Vec<_> = (manifest.members.iter())
            .map(|member| (member.name.as_str(), member.size))
            .collect();
        let whole = long.len() as u64;
        assert_eq!(
            members,
            [
                ("hollow/", 0),
                ("mysql/", 0),
                ("app/t#p#a.ibd", whole),
                ("app/t#p#b.ibd", 1),
                ("empty", 0),
                ("ibdata1", PIECE as u64)
            ]
        );
        assert_eq!(manifest.tables.len(), 1);
        assert_eq!(manifest.tables[0].name, "t");
        assert_eq!(manifest.tables[0].size, Some(whole + 1));
        let read = |name: &str| fs::read(to.path().join(name)).unwrap();
        assert!(read("app/t#p#a.ibd") == long);
        assert_eq!(read("empty"), b"");
        assert!(!to.path().join("auto.cnf").exists());
    }

    #[test]
    fn a_file_that_is_gone_is_an_error() {
        let from = tempfile::tempdir().unwrap();
        fs::write(from.path().join("a"), "x").unwrap();
        let mut source = Folder::new(from.path(), Manifest::new("clone"), |_| false).unwrap();
        fs::remove_file(from.path().join("a")).unwrap();
        assert!(source.read(&mut [0; 9]).is_err());
    }
}
