//! Logical dumps by mariadb-dump and mysqldump, and what their comments say.
//!
//! Both programs write SQL with comments: which server it was, the position of the binlog at which
//! the rows were read (if they were asked for it), before each table its name, and at the very end
//! that the dump is complete. The comments are followed while the dump goes by. Only a line that
//! begins with `-- ` or with a `SET` of GTIDs is kept, and only its beginning; rows stand on lines
//! of their own, in which both programs escape line breaks. The body of a routine may hold a line
//! that looks like such a comment: the list of tables is there to be read by people, nothing is
//! decided by it. The position and GTIDs are taken from where the programs write them, before the
//! first table and behind the last.

use std::io;

use crate::{
    Manifest,
    manifest::{BinlogPosition, Server, Table},
    source::{Program, Source},
};

/// A logical dump.
pub struct Dump {
    program: Program,
    comments: Comments,
    /// What is known of the server besides what its dump says.
    server: Option<Server>,
}

impl Dump {
    /// The program, which must write comments.
    pub fn new(program: Program) -> Self {
        Self {
            program,
            comments: Comments::default(),
            server: None,
        }
    }

    /// Notes in the manifest what the server said of itself when it was asked.
    pub fn of(self, server: Option<Server>) -> Self {
        Self { server, ..self }
    }
}

impl Source for Dump {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.program.read(buf)?;
        self.comments.feed(&buf[..read]);
        Ok(read)
    }

    fn finish(&mut self) -> Result<Manifest, String> {
        self.program.finish()?;
        let comments = std::mem::take(&mut self.comments);
        let mut manifest = comments.finish().ok_or_else(|| {
            format!(
                "{} did not write that its dump is complete",
                self.program.name
            )
        })?;
        let known_as = |server: Server| server.known_as(self.server.as_ref());
        manifest.server = manifest.server.map(known_as);
        Ok(manifest)
    }
}

/// Follows the comments of a dump.
#[derive(Default)]
struct Comments {
    /// The beginning of the line that has not ended yet, up to [`Comments::LINE_LEN`].
    line: Vec<u8>,
    /// The line has gone on past that, or is none to look at.
    skipping: bool,
    /// A statement that began in an earlier line: a GTID set has one for each server.
    set: Option<String>,
    server: Option<Server>,
    binlog: Option<BinlogPosition>,
    gtid: Option<String>,
    database: String,
    tables: Vec<Table>,
    complete: bool,
}

impl Comments {
    /// Longer names and positions there are not.
    const LINE_LEN: usize = 1024;
    /// A GTID set of thousands of servers is not kept.
    const SET_LEN: usize = 1 << 20;
    const BEGINNINGS: [&str; 3] = [
        "-- ",
        "/* SET @@GLOBAL.GTID_PURGED",
        "SET @@GLOBAL.GTID_PURGED",
    ];

    fn feed(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.keep(&bytes[..end]);
            self.end_of_line();
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
    }

    fn keep(&mut self, part: &[u8]) {
        if self.skipping {
            return;
        }
        let room = Self::LINE_LEN - self.line.len();
        self.line.extend_from_slice(&part[..part.len().min(room)]);
        let is_comment = Self::BEGINNINGS.iter().any(|beginning| {
            let known = beginning.len().min(self.line.len());
            beginning.as_bytes()[..known] == self.line[..known]
        });
        self.skipping = part.len() > room || !(is_comment || self.set.is_some());
    }

    fn end_of_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if !std::mem::take(&mut self.skipping) {
            self.line(&String::from_utf8_lossy(&line));
        }
        // its memory serves the next one
        self.line = line;
        self.line.clear();
    }

    fn line(&mut self, line: &str) {
        if self.set.is_some() || line.contains("SET @@GLOBAL.GTID_PURGED") {
            return self.gtid_purged(line);
        }
        let Some(comment) = line.strip_prefix("-- ") else {
            return;
        };
        // behind this nothing follows
        self.complete = comment.starts_with("Dump completed");
        if let Some(name) = comment.strip_prefix("Table structure for table ") {
            self.tables.push(Table {
                database: self.database.clone(),
                name: unquoted(name),
                size: None,
                digest: None,
            });
        } else if let Some(name) = comment.strip_prefix("Current Database: ") {
            self.database = unquoted(name);
        } else if let Some(version) = comment.strip_prefix("Server version") {
            let version = version.trim();
            // mariadb-dump can be pointed at a MySQL server.
            let family = match version.contains("MariaDB") {
                true => "mariadb",
                false => "mysql",
            };
            self.server
                .get_or_insert_with(|| Server::new(family, version));
        } else if let Some(names) = comment.strip_prefix("Host: ")
            && let Some((_, database)) = names.split_once("Database: ")
        {
            // a dump of a single database does not name it again
            self.database = database.trim().to_owned();
        } else if comment.starts_with("CHANGE ") && self.tables.is_empty() {
            self.binlog = self.binlog.take().or_else(|| position(comment));
        } else if let Some(set) = comment.strip_prefix("SET GLOBAL gtid_slave_pos=") {
            self.gtid = quoted(set).map(str::to_owned);
        }
    }

    /// MySQL's GTID set, which may go on over several lines.
    fn gtid_purged(&mut self, line: &str) {
        let mut set = self.set.take().unwrap_or_default();
        set.push_str(line.trim());
        if !set.contains(';') && set.len() < Self::SET_LEN {
            self.set = Some(set);
            return;
        }
        // `= /*!80000 '+'*/ 'SET'`: a '+' adds to what the reader has
        let sets = set.split('\'').skip(1).step_by(2);
        if let Some(found) = sets.filter(|set| *set != "+").last()
            && self.tables.is_empty()
        {
            self.gtid = Some(found.trim_start_matches('+').to_owned());
        }
    }

    /// `None` if the dump does not say that it is complete.
    fn finish(mut self) -> Option<Manifest> {
        self.end_of_line();
        self.complete.then(|| Manifest {
            server: self.server,
            binlog: self.binlog,
            gtid: self.gtid,
            tables: self.tables,
            ..Manifest::new("dump")
        })
    }
}

/// `CHANGE MASTER TO MASTER_LOG_FILE='b.000001', MASTER_LOG_POS=767;` and MySQL's words for it.
fn position(comment: &str) -> Option<BinlogPosition> {
    let behind = |what: &str| comment.split_once(what).map(|(_, rest)| rest);
    let file = quoted(behind("_LOG_FILE=")?)?.to_owned();
    let digits = behind("_LOG_POS=")?;
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    let position = digits[..end].parse().ok()?;
    Some(BinlogPosition { file, position })
}

/// What stands between the first two quotes.
fn quoted(text: &str) -> Option<&str> {
    text.split('\'').nth(1)
}

/// A name without the backticks around it.
fn unquoted(name: &str) -> String {
    let name = name.trim();
    match name.strip_prefix('`').and_then(|n| n.strip_suffix('`')) {
        Some(inner) => inner.replace("``", "`"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, step: usize) -> Option<Manifest> {
        let mut comments = Comments::default();
        for part in text.as_bytes().chunks(step) {
            comments.feed(part);
        }
        comments.finish()
    }

    const MARIADB: &str = "/*M!999999\\- enable the sandbox mode */ \n\
        -- MariaDB dump 10.19  Distrib 10.11.19-MariaDB, for debian-linux-gnu (x86_64)\n--\n\
        -- Host: localhost    Database: \n-- Server version\t10.11.19-MariaDB-0+deb12u1-log\n\n\
        -- CHANGE MASTER TO MASTER_LOG_FILE='b.000001', MASTER_LOG_POS=767;\n\n\
        -- Current Database: `app`\n--\n-- Table structure for table `t``1`\n--\n\
        INSERT INTO `t``1` VALUES\n(1,'x\\n-- Table structure for table `no`'),\n(2,'-- y');\n\
        -- CHANGE MASTER TO MASTER_LOG_FILE='forged', MASTER_LOG_POS=1;\n\
        -- SET GLOBAL gtid_slave_pos='0-1-3,1-2-4';\n-- Dump completed on 2026-11-21 23:55:13\n";

    #[test]
    fn comments_of_mariadb() {
        for step in [1, 2, 7, 100, 100_000] {
            let manifest = read(MARIADB, step).expect("complete");
            let server = manifest.server.expect("a server");
            assert_eq!(server.family, "mariadb");
            assert_eq!(server.version, "10.11.19-MariaDB-0+deb12u1-log");
            let binlog = manifest.binlog.expect("a position");
            assert_eq!((binlog.file.as_str(), binlog.position), ("b.000001", 767));
            assert_eq!(manifest.gtid.as_deref(), Some("0-1-3,1-2-4"));
            assert_eq!(manifest.tables.len(), 1);
            assert_eq!(manifest.tables[0].database, "app");
            assert_eq!(manifest.tables[0].name, "t`1");
        }
    }

    #[test]
    fn comments_of_mysql() {
        let text = "-- MySQL dump 10.13  Distrib 9.7.4\n-- Host: localhost    Database: app\n\
            -- Server version\t9.7.4\n\
            /* SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5,\n\
            4e11fa47-71ca-11e1-9e33-c80aa9429562:1-7';*/\n\
            -- CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='binlog.000002', SOURCE_LOG_POS=157;\n\
            -- Table structure for table `t`\n-- Dump completed on 2026-11-21";
        for step in [1, 5, 1000] {
            let manifest = read(text, step).expect("complete");
            assert_eq!(manifest.server.expect("a server").family, "mysql");
            let binlog = manifest.binlog.expect("a position");
            assert_eq!(
                (binlog.file.as_str(), binlog.position),
                ("binlog.000002", 157)
            );
            let set =
                "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5,4e11fa47-71ca-11e1-9e33-c80aa9429562:1-7";
            assert_eq!(manifest.gtid.as_deref(), Some(set));
            assert_eq!(manifest.tables[0].database, "app");
        }
    }

    #[test]
    fn a_dump_that_ends_early_is_not_complete() {
        let end = MARIADB.find("-- Dump").expect("its end");
        assert!(read(&MARIADB[..end], 10).is_none());
        assert!(read("", 1).is_none());
        assert!(read(&format!("{MARIADB}-- one more\n"), 10).is_none());
        assert!(read("INSERT INTO t VALUES ('-- Dump completed')", 3).is_none());
    }
}
