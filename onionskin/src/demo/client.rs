//! Sessions of the demonstration.

use std::{collections::BTreeSet, net::SocketAddr, path::Path};

use mysql::{Conn, OptsBuilder, Params, Value, prelude::Queryable};

use super::failed;
use crate::error::CommandError;

/// A cell as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Null,
    Bytes(Vec<u8>),
}

impl Cell {
    /// Whether it reads so; `NULL` is NULL.
    pub fn is(&self, text: &str) -> bool {
        match self {
            Self::Null => text == "NULL",
            Self::Bytes(bytes) => bytes == text.as_bytes(),
        }
    }
}

impl From<Value> for Cell {
    fn from(value: Value) -> Self {
        match value {
            Value::NULL => Self::Null,
            Value::Bytes(bytes) => Self::Bytes(bytes),
            // Only prepared statements answer with these.
            other => Self::Bytes(other.as_sql(true).trim_matches('\'').as_bytes().to_vec()),
        }
    }
}

/// Rows with the names of their columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub names: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Done { affected: u64 },
    Rows(Table),
    Refused { code: u16, text: String },
}

/// The password of `root`. Whoever is on the machine can reach the proxy's port while the
/// demonstration runs.
pub struct Password(String);

impl Password {
    /// Sets one that nobody can guess on a new server, whose `root` has none, and removes all other
    /// accounts that have none.
    pub fn set(socket: &Path) -> Result<Self, CommandError> {
        let mut conn = Conn::new(past(socket)).map_err(broken)?;
        let others: Vec<(String, String)> = conn
            .query("SELECT user, host FROM mysql.user WHERE user = '' OR user = 'root' AND host <> 'localhost'")
            .map_err(broken)?;
        let password = format!("{:032x}", rand::random::<u128>());
        let own = format!("ALTER USER root@localhost IDENTIFIED BY '{password}'");
        let drop = others.iter();
        let drop = drop.map(|(user, host)| format!("DROP USER '{user}'@'{host}'"));
        for sql in drop.chain([own]) {
            conn.query_drop(sql).map_err(broken)?;
        }
        Ok(Self(password))
    }
}

/// Past the proxy, as `root`.
fn past(socket: &Path) -> OptsBuilder {
    OptsBuilder::new()
        .socket(Some(socket.to_string_lossy()))
        .user(Some("root"))
}

/// A connection past the proxy to a server whose `root` has no password, which nobody else can
/// reach.
pub fn direct(socket: &Path) -> Result<Conn, CommandError> {
    Conn::new(past(socket)).map_err(broken)
}

/// A session of `root`.
pub struct Client(Conn);

impl Client {
    /// As an application.
    pub fn through_the_proxy(
        address: SocketAddr,
        password: &Password,
    ) -> Result<Self, CommandError> {
        let options = OptsBuilder::new()
            .ip_or_hostname(Some(address.ip().to_string()))
            .tcp_port(address.port())
            .prefer_socket(false)
            .user(Some("root"))
            .pass(Some(&password.0));
        Conn::new(options).map(Self).map_err(broken)
    }

    /// As somebody with access to the server.
    pub fn past_the_proxy(socket: &Path, password: &Password) -> Result<Self, CommandError> {
        let options = past(socket).pass(Some(&password.0));
        Conn::new(options).map(Self).map_err(broken)
    }

    /// At a socket of a proxy or of a server, without a password, in a database.
    pub fn at(socket: &Path, database: &str) -> Result<Self, CommandError> {
        let options = past(socket).db_name(Some(database));
        Conn::new(options).map(Self).map_err(broken)
    }

    /// The session's id at the server, which the proxy leaves as it is.
    pub fn id(&self) -> u32 {
        self.0.connection_id()
    }

    /// Name and version.
    pub fn server(&mut self) -> Result<String, CommandError> {
        let version: Option<String> = self.0.query_first("SELECT VERSION()").map_err(broken)?;
        let version = version.unwrap_or_default();
        let number = version.split('-').next().unwrap_or_default();
        Ok(match version.contains("MariaDB") {
            true => format!("MariaDB {number}"),
            false => format!("MySQL {number}"),
        })
    }

    /// A statement as text.
    pub fn run(&mut self, sql: &str) -> Result<Reply, CommandError> {
        let result = self.0.query_iter(sql).and_then(collect);
        reply(result)
    }

    /// A prepared statement.
    pub fn execute(&mut self, sql: &str, parameters: &[&str]) -> Result<Reply, CommandError> {
        let values = parameters
            .iter()
            .map(|text| {
                text.parse::<i64>()
                    .map_or_else(|_| Value::from(*text), Value::from)
            })
            .collect();
        self.execute_with(sql, values)
    }

    /// The same with values of any kind.
    pub fn execute_with(&mut self, sql: &str, values: Vec<Value>) -> Result<Reply, CommandError> {
        let result = self
            .0
            .exec_iter(sql, Params::Positional(values))
            .and_then(collect);
        reply(result)
    }

    /// The rows of a statement that must succeed.
    pub fn rows(&mut self, sql: &str) -> Result<Table, CommandError> {
        match self.run(sql)? {
            Reply::Rows(table) => Ok(table),
            Reply::Done { .. } => Err(failed(format!("{sql} → no rows"))),
            Reply::Refused { code, text } => Err(failed(format!("{sql} → {code}: {text}"))),
        }
    }

    /// All columns of a table, those included that `*` leaves out.
    pub fn columns(&mut self, database: &str, table: &str) -> Result<Vec<String>, CommandError> {
        self.0
            .exec(
                "SELECT column_name FROM information_schema.columns \
                 WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position",
                (database, table),
            )
            .map_err(broken)
    }
}

/// Reads along at the server, in its log of statements.
pub struct Listener {
    session: u32,
}

impl Listener {
    /// Begins to log, into a table for reading along and into a file that is searched at the end.
    pub fn start(direct: &mut Client, session: u32) -> Result<Self, CommandError> {
        for sql in [
            "SET GLOBAL log_output = 'TABLE,FILE'",
            "SET GLOBAL general_log = ON",
        ] {
            direct.0.query_drop(sql).map_err(broken)?;
        }
        Ok(Self { session })
    }

    /// What was said so far is of no interest.
    pub fn forget(&mut self, direct: &mut Client) -> Result<(), CommandError> {
        direct
            .0
            .query_drop("TRUNCATE TABLE mysql.general_log")
            .map_err(broken)
    }

    /// The statements that the session has sent since, without the proxy's own questions about
    /// tables.
    pub fn heard(&mut self, direct: &mut Client) -> Result<Vec<Vec<u8>>, CommandError> {
        let statements: Vec<Vec<u8>> = direct
            .0
            .exec(
                "SELECT argument FROM mysql.general_log WHERE thread_id = ? AND command_type IN ('Query', 'Prepare', 'Init DB')",
                (self.session,),
            )
            .map_err(broken)?;
        let mut seen = BTreeSet::new();
        Ok(statements
            .into_iter()
            .filter(|sql| memchr::memmem::find(sql, b"information_schema").is_none())
            .filter(|sql| seen.insert(sql.clone()))
            .collect())
    }
}

fn collect<P: mysql::prelude::Protocol>(
    mut result: mysql::QueryResult<'_, '_, '_, P>,
) -> mysql::Result<Reply> {
    let names: Vec<String> = result
        .columns()
        .as_ref()
        .iter()
        .map(|column| column.name_str().into_owned())
        .collect();
    if names.is_empty() {
        return Ok(Reply::Done {
            affected: result.affected_rows(),
        });
    }
    let mut rows = Vec::new();
    for row in result.by_ref() {
        rows.push(row?.unwrap().into_iter().map(Cell::from).collect());
    }
    Ok(Reply::Rows(Table { names, rows }))
}

/// An error of the server or the proxy is an answer; one of the connection is not.
fn reply(result: mysql::Result<Reply>) -> Result<Reply, CommandError> {
    match result {
        Err(mysql::Error::MySqlError(error)) => Ok(Reply::Refused {
            code: error.code,
            text: error.message,
        }),
        other => other.map_err(broken),
    }
}

/// A connection that failed, or a statement that must not.
pub fn broken(error: mysql::Error) -> CommandError {
    failed(error.to_string())
}
