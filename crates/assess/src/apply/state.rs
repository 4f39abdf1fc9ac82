//! What is known of the server before anything is decided.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use onionskin_rowstream::client::Family;

use super::{
    files::Owner,
    process::{self, Process},
    request::Request,
};
use crate::{
    AssessError,
    reader::{MAX_ROWS, Reader, Texts},
    server::{
        facts::{Facts, SpaceKind, Tablespace},
        look,
    },
};

/// A table of MySQL's.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    pub database: String,
    pub name: String,
    pub bytes: u64,
    pub encrypted: bool,
}

/// All of it.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub facts: Facts,
    /// The server's user.
    pub owner: Owner,
    /// Its process, or why that cannot be seen.
    pub process: Result<Process, String>,
    /// When it was started.
    pub started: SystemTime,
    /// Privileges of our account on everything.
    pub grants: BTreeSet<String>,
    /// Privileges were taken away again for parts.
    pub restricted: bool,
    /// MySQL's databases, and whether new tables of them are encrypted.
    pub databases: Vec<(String, bool)>,
    /// MySQL's tables.
    pub tables: Vec<Table>,
    /// MySQL's general tablespaces, and whether they are encrypted.
    pub spaces: Vec<(String, bool)>,
    /// Files of MariaDB's tables that say ENCRYPTED=NO, or YES.
    pub says_no: BTreeSet<String>,
    pub says_yes: BTreeSet<String>,
    /// MySQL's keyring takes no new keys.
    pub keyring_read_only: bool,
}

impl State {
    /// Asks for it.
    pub(super) fn read(request: &Request) -> Result<Self, AssessError> {
        let facts = look(&request.look)?;
        let data = match &facts.machine {
            Ok(machine) => machine.data.clone(),
            Err(needs) => {
                return Err(AssessError::State(format!(
                    "--apply and --revert write the server's files: they need {needs}"
                )));
            }
        };
        let mut reader = Reader::connect(&request.look.connect)?;
        let mut state = Self {
            owner: Owner::of(&data)?,
            process: process::of(&data, facts.variable("pid_file").unwrap_or_default()),
            started: SystemTime::now(),
            facts,
            grants: BTreeSet::new(),
            restricted: false,
            databases: Vec::new(),
            tables: Vec::new(),
            spaces: Vec::new(),
            says_no: BTreeSet::new(),
            says_yes: BTreeSet::new(),
            keyring_read_only: false,
        };
        state.ask(&mut reader)?;
        Ok(state)
    }

    fn ask(&mut self, reader: &mut Reader) -> Result<(), AssessError> {
        let uptime = rows(reader, "SHOW GLOBAL STATUS LIKE 'Uptime'")?;
        let uptime = uptime.first().map(|row| cell(row, 1)).unwrap_or_default();
        let seconds = uptime.parse().unwrap_or_default();
        self.started = SystemTime::now() - Duration::from_secs(seconds);
        for line in rows(reader, "SHOW GRANTS")? {
            let line = cell(&line, 0);
            self.restricted |= line.starts_with("REVOKE ");
            if let Some((list, _)) = line
                .strip_prefix("GRANT ")
                .and_then(|line| line.split_once(" ON *.* TO "))
            {
                self.grants
                    .extend(list.split(',').map(|word| word.trim().to_owned()));
            }
        }
        match self.is_mariadb() {
            true => self.ask_mariadb(reader),
            false => self.ask_mysql(reader),
        }
    }

    fn ask_mariadb(&mut self, reader: &mut Reader) -> Result<(), AssessError> {
        let sql = format!(
            "SELECT CAST(CONCAT(CONVERT(TABLE_SCHEMA USING filename), '/', CONVERT(TABLE_NAME USING filename)) AS BINARY), \
             CREATE_OPTIONS FROM information_schema.TABLES \
             WHERE ENGINE = 'InnoDB' AND CREATE_OPTIONS LIKE '%encrypted%' LIMIT {MAX_ROWS}"
        );
        for row in rows(reader, &sql)? {
            let options = cell(&row, 1).to_lowercase().replace(['`', '\'', '"'], "");
            let file = cell(&row, 0).to_owned();
            if options.split(' ').any(|option| option == "encrypted=no") {
                self.says_no.insert(file);
            } else if options.split(' ').any(|option| option == "encrypted=yes") {
                self.says_yes.insert(file);
            }
        }
        Ok(())
    }

    fn ask_mysql(&mut self, reader: &mut Reader) -> Result<(), AssessError> {
        // Sizes as they are, not as they were when somebody asked last.
        let _ = reader.ask("SET SESSION information_schema_stats_expiry = 0")?;
        let sql = format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, DATA_LENGTH + INDEX_LENGTH + DATA_FREE, CREATE_OPTIONS \
             FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND ENGINE = 'InnoDB' AND \
             TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema') LIMIT {MAX_ROWS}"
        );
        for row in rows(reader, &sql)? {
            let options = cell(&row, 3).replace('"', "'");
            self.tables.push(Table {
                database: cell(&row, 0).to_owned(),
                name: cell(&row, 1).to_owned(),
                bytes: cell(&row, 2).parse().unwrap_or_default(),
                encrypted: options.split(' ').any(|option| option == "ENCRYPTION='Y'"),
            });
        }
        let sql = format!(
            "SELECT SCHEMA_NAME, DEFAULT_ENCRYPTION FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN \
             ('mysql', 'information_schema', 'performance_schema', 'sys') LIMIT {MAX_ROWS}"
        );
        for row in rows(reader, &sql)? {
            self.databases
                .push((cell(&row, 0).to_owned(), cell(&row, 1) == "YES"));
        }
        let sql = format!(
            "SELECT NAME, ENCRYPTION FROM information_schema.INNODB_TABLESPACES \
             WHERE SPACE_TYPE = 'General' LIMIT {MAX_ROWS}"
        );
        for row in rows(reader, &sql)? {
            self.spaces
                .push((cell(&row, 0).to_owned(), cell(&row, 1) == "Y"));
        }
        let sql = "SELECT STATUS_VALUE FROM performance_schema.keyring_component_status \
                   WHERE STATUS_KEY = 'Read_only'";
        let read_only = rows(reader, sql)?;
        self.keyring_read_only = read_only.first().is_some_and(|row| cell(row, 0) == "Yes");
        Ok(())
    }

    /// Whether it is MariaDB.
    pub(super) fn is_mariadb(&self) -> bool {
        self.facts.family == Family::MariaDb
    }

    /// The data directory.
    pub(super) fn data(&self) -> &Path {
        match &self.facts.machine {
            Ok(machine) => &machine.data,
            // `read` has seen to it that there is one.
            Err(_) => Path::new(""),
        }
    }

    /// Where keys of ours lie, or will: outside of the data directory, which is copied more often.
    pub(super) fn keys_folder(&self, request: &Request) -> PathBuf {
        match &request.keys {
            Some(folder) => folder.clone(),
            None => {
                let mut name = self.data().file_name().unwrap_or_default().to_owned();
                name.push("-keys");
                self.data().with_file_name(name)
            }
        }
    }

    /// The names of keyrings and key management that work.
    pub(super) fn active_keys(&self) -> Vec<&str> {
        let keys = self.facts.keys.known().into_iter().flatten();
        keys.filter(|key| key.active && key.name != "keyring_udf")
            .map(|key| key.name.as_str())
            .collect()
    }

    /// Whether the server was started clearly later than a file was written.
    pub(super) fn started_after(&self, path: &Path) -> bool {
        const CLEARLY: Duration = Duration::from_secs(3);
        let written = fs::metadata(path).and_then(|m| m.modified());
        written.is_ok_and(|written| self.started > written + CLEARLY)
    }

    /// Tablespaces of MariaDB's that are not as they shall be, and that the server's threads care
    /// for.
    pub(super) fn others_than(&self, encrypted: bool, spaces: &[Tablespace]) -> usize {
        let says = match encrypted {
            true => &self.says_no,
            false => &self.says_yes,
        };
        let wrong = |space: &&Tablespace| {
            // Partitions have files of their own.
            let table = space.name.split("#P#").next().unwrap_or(&space.name);
            // A file whose pages are being written is encrypted in part.
            let is_so = match encrypted {
                true => space.encrypted && !space.rotating,
                false => !space.encrypted && !space.rotating,
            };
            space.kind != SpaceKind::Temporary && !is_so && !says.contains(table)
        };
        spaces.iter().filter(wrong).count()
    }

    /// Bytes that are free where the data directory lies.
    pub(super) fn room(&self) -> u64 {
        rustix::fs::statvfs(self.data()).map_or(0, |s| s.f_bavail * s.f_frsize)
    }

    /// Those who read the binary log.
    pub(super) fn followers(&self) -> &[String] {
        self.facts.replicas.known().map_or(&[], Vec::as_slice)
    }
}

/// Rows as they are: names are put into statements again.
pub(super) fn rows(reader: &mut Reader, sql: &str) -> Result<Vec<Texts>, AssessError> {
    match reader.raw(sql)? {
        Ok(rows) if rows.len() < MAX_ROWS => Ok(rows),
        Ok(_) => Err(AssessError::State(format!(
            "the server has more than {MAX_ROWS} tables"
        ))),
        Err(refusal) => Err(AssessError::State(format!(
            "the server does not show what is needed: {refusal:?}"
        ))),
    }
}

pub(super) fn cell(row: &Texts, at: usize) -> &str {
    row.get(at).and_then(Option::as_deref).unwrap_or_default()
}
