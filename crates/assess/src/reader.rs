//! A connection that reads, and believes nothing.
//!
//! Transactions are READ ONLY, so that a statement of ours could not write even if it were wrong.
//! An answer is bounded in rows and bytes, a statement in time. What the server refuses is told
//! apart: a privilege that is missing, a table or variable that this version does not have, and a
//! connection that broke.

use std::time::Duration;

use onionskin_rowstream::client::{Answer, Client, ClientError, ConnectOptions, Family};

use crate::{error::AssessError, text::shown};

/// Most rows of one answer.
pub const MAX_ROWS: usize = 200_000;
/// Most bytes of one answer.
pub const MAX_BYTES: usize = 64 << 20;
/// Seconds that one statement may take.
const STATEMENT: u32 = 60;

/// "Access denied" in its forms.
const DENIED: [u16; 8] = [1044, 1045, 1141, 1142, 1143, 1227, 1370, 1449];
/// No such table, column, variable, word or plugin.
const UNKNOWN: [u16; 8] = [1054, 1064, 1109, 1146, 1193, 1235, 1286, 1381];

/// A row, as texts.
pub type Texts = Vec<Option<String>>;
/// A row as texts, each with the name of its column; empty for NULL.
pub type Named = Vec<(String, String)>;

/// What the server said instead of rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The account lacks a privilege.
    Denied(String),
    /// This server has no such thing.
    Unknown,
    /// Anything else.
    Other(String),
}

impl Refusal {
    fn of(code: u16, message: &str) -> Self {
        match code {
            code if DENIED.contains(&code) => Self::Denied(shown(message)),
            code if UNKNOWN.contains(&code) => Self::Unknown,
            code => Self::Other(format!("{} (error {code})", shown(message))),
        }
    }
}

/// The connection.
pub struct Reader {
    client: Client,
}

impl Reader {
    /// Connects for reading.
    pub fn connect(options: &ConnectOptions) -> Result<Self, AssessError> {
        let mut reader = Self::connect_for_writing(options)?;
        reader.must("SET SESSION TRANSACTION READ ONLY")?;
        Ok(reader)
    }

    /// The same without READ ONLY, for what is planted.
    pub fn connect_for_writing(options: &ConnectOptions) -> Result<Self, AssessError> {
        let mut client = Client::connect(options).map_err(AssessError::Server)?;
        client.set_largest_answer(MAX_ROWS, MAX_BYTES);
        let patience = Duration::from_secs(u64::from(STATEMENT) + 30);
        client
            .set_read_timeout(Some(patience))
            .map_err(AssessError::Server)?;
        let bound = match client.family() {
            Family::MariaDb => format!("max_statement_time = {STATEMENT}"),
            Family::MySql => format!("max_execution_time = {}", STATEMENT * 1000),
        };
        let mut reader = Self { client };
        reader.must(&format!(
            "SET NAMES utf8mb4, sql_mode = '', lock_wait_timeout = 5, {bound}"
        ))?;
        Ok(reader)
    }

    /// For definitions that take hours. What they change is a server's own, so replicas are not
    /// told.
    pub fn connect_for_changes(options: &ConnectOptions) -> Result<Self, AssessError> {
        let mut reader = Self::connect_for_writing(options)?;
        match reader.client.family() {
            Family::MariaDb => reader.must("SET SESSION max_statement_time = 0")?,
            Family::MySql => {
                reader.must("SET SESSION max_execution_time = 0, SESSION sql_log_bin = 0")?;
            }
        }
        // Nobody may end the session because it waits for the next table.
        reader.must("SET SESSION wait_timeout = 86400")?;
        reader
            .client
            .set_read_timeout(None)
            .map_err(AssessError::Server)?;
        Ok(reader)
    }

    /// Runs a statement that must work.
    pub fn must_run(&mut self, sql: &str) -> Result<(), AssessError> {
        self.ask(sql)?.map(|_| ()).map_err(|refusal| {
            let said = match refusal {
                Refusal::Denied(said) | Refusal::Other(said) => said,
                Refusal::Unknown => "the server does not know this statement".into(),
            };
            AssessError::State(format!("{}: {said}", shown(sql)))
        })
    }

    /// Whose server it is.
    pub fn family(&self) -> Family {
        self.client.family()
    }

    /// Whether the connection is under TLS.
    pub fn is_tls(&self) -> bool {
        self.client.is_tls()
    }

    fn must(&mut self, sql: &str) -> Result<(), AssessError> {
        self.client
            .run(sql)
            .map(|_| ())
            .map_err(AssessError::Server)
    }

    /// Runs a statement. The error is the connection's, the refusal the server's.
    pub fn ask(&mut self, sql: &str) -> Result<Result<Answer, Refusal>, AssessError> {
        match self.client.run(sql) {
            Ok(answer) => Ok(Ok(answer)),
            Err(ClientError::Server { code, message }) => Ok(Err(Refusal::of(code, &message))),
            Err(error) => Err(AssessError::Broken(error)),
        }
    }

    /// Hands rows out as they come, one at a time in memory. How many there are is for the
    /// statement to bound.
    pub fn each(
        &mut self,
        sql: &str,
        mut each: impl FnMut(&[Option<&[u8]>]),
    ) -> Result<Result<(), Refusal>, AssessError> {
        let done = self.client.each_row(sql, |cells| {
            each(cells);
            Ok::<(), ClientError>(())
        });
        match done {
            Ok(()) => Ok(Ok(())),
            Err(ClientError::Server { code, message }) => Ok(Err(Refusal::of(code, &message))),
            Err(error) => Err(AssessError::Broken(error)),
        }
    }

    /// Rows as they are.
    pub fn raw(&mut self, sql: &str) -> Result<Result<Vec<Texts>, Refusal>, AssessError> {
        let text =
            |cell: Option<Vec<u8>>| cell.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let rows = |answer: Answer| {
            let rows = answer.rows.into_iter();
            rows.map(|row| row.into_iter().map(text).collect())
                .collect()
        };
        Ok(self.ask(sql)?.map(rows))
    }

    /// The server's version; empty if it does not say.
    pub fn version(&mut self) -> Result<String, AssessError> {
        let rows = self.rows("SELECT VERSION()")?.unwrap_or_default();
        let version = rows.into_iter().flatten().flatten().next();
        Ok(version.unwrap_or_default())
    }

    /// Rows, made harmless.
    pub fn rows(&mut self, sql: &str) -> Result<Result<Vec<Texts>, Refusal>, AssessError> {
        let harmless = |rows: Vec<Texts>| {
            rows.into_iter()
                .map(|row| row.into_iter().map(|c| c.map(|c| shown(&c))).collect())
                .collect()
        };
        Ok(self.raw(sql)?.map(harmless))
    }

    /// Rows with the names of their columns in small letters, for SHOW statements.
    pub fn named(&mut self, sql: &str) -> Result<Result<Vec<Named>, Refusal>, AssessError> {
        let rows = |answer: Answer| {
            let Answer { names, rows, .. } = answer;
            let row = |row: Vec<Option<Vec<u8>>>| {
                let text =
                    |c: Option<Vec<u8>>| shown(&String::from_utf8_lossy(&c.unwrap_or_default()));
                names
                    .iter()
                    .map(|name| shown(&name.to_lowercase()))
                    .zip(row.into_iter().map(text))
                    .collect()
            };
            rows.into_iter().map(row).collect()
        };
        Ok(self.ask(sql)?.map(rows))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.client.quit();
    }
}
