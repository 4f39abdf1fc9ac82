//! Sessions of our own on the server, set up so that values arrive and leave as they are stored.

use std::time::{Duration, Instant};

use onionskin_wire::Socket;

use crate::client::{Client, ClientError};

pub use crate::client::{Address, ConnectOptions as Login};

/// A statement that failed, or a connection that did.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SqlError {
    /// The server's error number; 0 where the connection broke, so that the outcome is not known.
    pub code: u16,
    /// What the server said.
    pub message: String,
}

impl SqlError {
    /// Whether the statement waited for a lock for too long. It was rolled back.
    pub fn waited_in_vain(&self) -> bool {
        const LOCK_WAIT: u16 = 1205;
        self.code == LOCK_WAIT
    }

    /// Whether it fails in the same way however often it is sent: the account lacks a privilege, a
    /// table is not there, or a foreign key and the table that it points at do not fit.
    pub fn is_lasting(&self) -> bool {
        const PRIVILEGES: [u16; 6] = [1044, 1045, 1142, 1143, 1227, 1370];
        const TABLES: [u16; 7] = [1005, 1146, 1215, 1822, 1824, 3780, 6125];
        PRIVILEGES.contains(&self.code) || TABLES.contains(&self.code)
    }

    /// Whether the statement was rolled back for another transaction's sake and may simply be sent
    /// again.
    pub fn is_deadlock(&self) -> bool {
        const DEADLOCK: u16 = 1213;
        self.code == DEADLOCK
    }

    /// Whether a row's counterpart by a foreign key is missing. It may have gone with the row, a
    /// moment ago.
    pub fn lacks_parent(&self) -> bool {
        const NO_REFERENCED_ROW: u16 = 1452;
        self.code == NO_REFERENCED_ROW
    }

    /// Whether two rows met on a unique key.
    pub fn is_duplicate(&self) -> bool {
        const DUPLICATE: u16 = 1062;
        self.code == DUPLICATE
    }
}

impl From<ClientError> for SqlError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Server { code, message } => Self { code, message },
            ClientError::Wire(error) if error.is_timeout() => Self {
                code: 0,
                message: "the server has not answered in time".into(),
            },
            other => Self {
                code: 0,
                message: other.to_string(),
            },
        }
    }
}

/// A value as the text protocol sends it; `None` is NULL.
pub type Cell = Option<Vec<u8>>;
/// A row of them.
pub type Row = Vec<Cell>;
/// A row as text, with the names of its columns.
pub type NamedRow = Vec<(String, Option<String>)>;

/// How long a statement of ours waits for a lock on a row.
const ROW_LOCK_WAIT: u32 = 10;
/// How long a statement of ours waits for a lock on a table's definition or on the whole server, in
/// seconds, before it is given up or sent again: two parties that wait for each other must end some
/// time.
const TABLE_LOCK_WAIT: u32 = 10;
/// How often a statement that met a deadlock is sent again.
const ATTEMPTS: u32 = 12;
/// How often a statement may find rows without counterparts before it locks what it reads.
const UNLOCKED: u32 = 2;
/// For how long a statement that waited for a lock in vain is sent again: backups hold all writers
/// up for minutes.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long a statement of ours may take to be answered. Copying is cut into pieces of parts of a
/// second, and whoever waits for locks is sent home after ten; but a server may stand still for
/// minutes, and a table's removal or statistics may take as long.
const LONGEST_ANSWER: Duration = Duration::from_secs(900);

/// "You need a privilege for this operation".
const ACCESS_DENIED: u16 = 1227;
/// "Unknown system variable".
const UNKNOWN_VARIABLE: u16 = 1193;

/// One connection.
///
/// Times are in UTC; strings come in the bytes of their column's own character set; zeros stay
/// zeros in AUTO_INCREMENT columns; values that do not fit are errors, while any date that may
/// stand in a column can be written again; reads inside of writes take no locks (READ COMMITTED).
pub struct Session {
    client: Client,
    patience: Duration,
    /// Several statements are one transaction: after a deadlock all of them have to be sent again.
    is_one_transaction: bool,
}

impl Session {
    /// Connects and sets the session up.
    pub fn connect(login: &Login) -> Result<Self, SqlError> {
        let client = Client::connect(login)?;
        client.set_read_timeout(Some(LONGEST_ANSWER))?;
        let mut session = Self {
            client,
            patience: PATIENCE,
            is_one_transaction: false,
        };
        session.run(&format!(
            "SET NAMES utf8mb4, character_set_results = NULL, time_zone = '+00:00', \
             sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION', \
             innodb_lock_wait_timeout = {ROW_LOCK_WAIT}, lock_wait_timeout = {TABLE_LOCK_WAIT}, wait_timeout = 86400, net_read_timeout = 600, \
             net_write_timeout = 600, sql_safe_updates = 0, autocommit = 1, sql_auto_is_null = 0, \
             sql_select_limit = 18446744073709551615"
        ))?;
        session.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
        let is_mariadb = session.is_mariadb()?;
        session.run(if is_mariadb {
            // A list of keys is to be looked up in the index, not joined as a table; a statement
            // may take its time.
            "SET in_predicate_conversion_threshold = 0, max_statement_time = 0, check_constraint_checks = 1"
        } else {
            "SET range_optimizer_max_mem_size = 0, max_execution_time = 0, information_schema_stats_expiry = 0"
        })?;
        if is_mariadb {
            // On by default since 11.6, where a statement that reads one table and writes another
            // fails (1020) if another session has written the same row meanwhile. What counts here
            // is the latest row. Older versions do not have it.
            match session.run("SET innodb_snapshot_isolation = OFF") {
                Err(error) if error.code != UNKNOWN_VARIABLE => return Err(error),
                _ => {}
            }
        } else {
            // For tables that have had none since before it was required. It takes a privilege that
            // few accounts have.
            match session.run("SET sql_require_primary_key = 0") {
                Err(error) if error.code != ACCESS_DENIED => return Err(error),
                _ => {}
            }
        }
        Ok(session)
    }

    /// Whether the server is MariaDB and not MySQL.
    pub fn is_mariadb(&mut self) -> Result<bool, SqlError> {
        Ok(self.text("SELECT VERSION()")?.contains("MariaDB"))
    }

    /// What tells the server from its replicas.
    pub fn identity(&mut self) -> Result<String, SqlError> {
        Ok(self.client.identity()?)
    }

    /// The connection's number on the server.
    pub fn id(&self) -> u32 {
        self.client.id()
    }

    /// How long an answer may take from now on, if not as long as usual. A connection that did not
    /// answer in time is of no further use.
    pub fn set_longest_answer(&self, limit: Option<Duration>) -> Result<(), SqlError> {
        Ok(self
            .client
            .set_read_timeout(Some(limit.unwrap_or(LONGEST_ANSWER)))?)
    }

    /// A handle with which another thread can end this connection.
    pub fn closer(&self) -> Result<Socket, SqlError> {
        Ok(self.client.closer()?)
    }

    /// Runs a statement; returns how many rows it affected.
    pub fn run(&mut self, sql: &str) -> Result<u64, SqlError> {
        Ok(self.client.run(sql)?.affected)
    }

    /// The same with a statement in the bytes of the session's character set.
    pub fn run_bytes(&mut self, sql: &[u8]) -> Result<u64, SqlError> {
        Ok(self.client.run_bytes(sql)?.affected)
    }

    /// For this long statements that wait for locks in vain are sent again; with zero they never
    /// are.
    pub fn set_patience(&mut self, patience: Option<Duration>) -> Result<(), SqlError> {
        self.patience = patience.unwrap_or(PATIENCE);
        // Whole seconds are what servers take.
        let wait = patience.map_or(TABLE_LOCK_WAIT, |_| 2);
        self.run(&format!("SET lock_wait_timeout = {wait}"))?;
        Ok(())
    }

    /// Runs statements as one transaction, once more where a deadlock undid it. START TRANSACTION
    /// would give the locks of LOCK TABLES back.
    pub fn in_one_transaction<E: From<SqlError>>(
        &mut self,
        mut run: impl FnMut(&mut Self) -> Result<(), E>,
        is_deadlock: impl Fn(&E) -> bool,
    ) -> Result<(), E> {
        self.run("SET autocommit = 0")?;
        self.is_one_transaction = true;
        let mut attempt = 1;
        let done = loop {
            let done = match run(self) {
                Ok(()) => self.run("COMMIT").map(|_| ()).map_err(E::from),
                Err(error) => {
                    let _ = self.run("ROLLBACK");
                    Err(error)
                }
            };
            match &done {
                Err(error) if is_deadlock(error) && attempt < ATTEMPTS => attempt += 1,
                _ => break done,
            }
        };
        self.is_one_transaction = false;
        match done {
            Ok(()) => Ok(self.run("SET autocommit = 1").map(|_| ())?),
            Err(error) => {
                let _ = self.run("SET autocommit = 1");
                Err(error)
            }
        }
    }

    /// Runs statements in a transaction of which nothing stays.
    pub fn in_vain<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> Result<T, SqlError> {
        self.run("SET autocommit = 0")?;
        self.is_one_transaction = true;
        let done = run(self);
        self.is_one_transaction = false;
        self.run("ROLLBACK")?;
        self.run("SET autocommit = 1")?;
        Ok(done)
    }

    /// Runs a statement that commits by itself; again if the server undid it because of a deadlock,
    /// if it waited for a lock in vain, or if rows that it has read from another table went while
    /// it wrote them.
    pub fn run_until_done(&mut self, sql: &str) -> Result<u64, SqlError> {
        let begun = Instant::now();
        let mut attempt = 1;
        let mut orphans = 0;
        loop {
            if orphans >= UNLOCKED && !self.is_one_transaction {
                // The rows that the statement reads are locked, and so cannot go by a foreign key
                // while it writes them.
                self.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
            }
            match self.run(sql) {
                Err(error)
                    if error.waited_in_vain() && begun.elapsed() < self.patience
                        || error.is_deadlock()
                            && !self.is_one_transaction
                            && attempt < ATTEMPTS
                        || error.lacks_parent() && attempt < ATTEMPTS =>
                {
                    orphans += u32::from(error.lacks_parent());
                    std::thread::sleep(Duration::from_millis(u64::from(attempt.min(ATTEMPTS)) * 5));
                    attempt += 1;
                }
                done => return done,
            }
        }
    }

    /// All rows of a query.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Row>, SqlError> {
        Ok(self.client.query(sql)?)
    }

    /// All rows as text; what is not UTF-8 is replaced.
    pub fn texts(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, SqlError> {
        let text = |cell: Cell| cell.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let rows = self.rows(sql)?;
        Ok(rows
            .into_iter()
            .map(|row| row.into_iter().map(text).collect())
            .collect())
    }

    /// The first cell of the first row as text; empty if there is none.
    pub fn text(&mut self, sql: &str) -> Result<String, SqlError> {
        let mut rows = self.texts(sql)?;
        Ok(rows
            .drain(..)
            .next()
            .and_then(|row| row.into_iter().next().flatten())
            .unwrap_or_default())
    }

    /// Rows with the names of their columns, for SHOW statements whose columns differ between
    /// versions.
    pub fn named(&mut self, sql: &str) -> Result<Vec<NamedRow>, SqlError> {
        let answer = self.client.run(sql)?;
        let text = |cell: Cell| cell.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let rows = answer.rows.into_iter().map(|row| {
            let names = answer.names.iter().cloned();
            names.zip(row.into_iter().map(text)).collect()
        });
        Ok(rows.collect())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.client.quit();
    }
}
