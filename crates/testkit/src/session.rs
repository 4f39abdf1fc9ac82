//! A client session, and what a statement does to it in a form that two servers can be compared by.

use mysql::consts::{ColumnFlags, ColumnType};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Params, Row, Value};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A session of the `mysql` crate over TCP on 127.0.0.1. A statement without an answer for 60
/// seconds is an error, so that a hanging proxy fails a test instead of stopping it.
pub struct Session {
    conn: Conn,
    /// Behind a server that lies any answer may be another question's.
    is_lied_to: bool,
}

/// All that a client can see of a statement that succeeded.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// One for each statement of the text; empty columns where it returns no rows.
    pub sets: Vec<ResultSet>,
    /// Affected rows of the last statement.
    pub affected: u64,
    /// Insert id of the last statement, 0 when there is none.
    pub insert_id: u64,
    /// Number of warnings of the last statement.
    pub warnings: u16,
}

/// One result set.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ResultSet {
    /// Name, type and flags of every column.
    pub columns: Vec<(String, ColumnType, ColumnFlags)>,
    /// The rows; text values of the text protocol, typed ones of the binary protocol.
    pub rows: Vec<Vec<Value>>,
}

/// A statement that failed.
#[derive(Clone, PartialEq, Debug)]
pub struct Failure {
    /// The server's error number; 0 when the connection broke instead.
    pub code: u16,
    /// SQLSTATE
    pub state: String,
    /// The text.
    pub message: String,
}

impl Failure {
    /// The connection broke; no server error was received.
    pub fn is_disconnect(&self) -> bool {
        self.code == 0
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.code, self.state, self.message)
    }
}

impl From<mysql::Error> for Failure {
    fn from(error: mysql::Error) -> Failure {
        match error {
            mysql::Error::MySqlError(e) => Failure {
                code: e.code,
                state: e.state,
                message: e.message,
            },
            other => Failure {
                code: 0,
                state: String::new(),
                message: other.to_string(),
            },
        }
    }
}

/// The result of a statement.
pub type Answer<T = Outcome> = Result<T, Failure>;

impl Session {
    /// Logs in; panics when that fails.
    pub fn open(port: u16, user: &str, password: &str, database: Option<&str>) -> Session {
        Self::try_open(port, user, password, database)
            .unwrap_or_else(|e| panic!("login as {user}: {e}"))
    }

    /// Logs in.
    pub fn try_open(
        port: u16,
        user: &str,
        password: &str,
        database: Option<&str>,
    ) -> Answer<Session> {
        let address = OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(port)
            .prefer_socket(false);
        Self::by(address, user, password, database)
    }

    /// Logs in over a Unix socket.
    pub fn try_open_at(socket: &Path, user: &str, database: Option<&str>) -> Answer<Session> {
        let socket = socket.to_str().expect("a plain path");
        let address = OptsBuilder::new().socket(Some(socket));
        Self::by(address, user, "", database)
    }

    fn by(
        address: OptsBuilder,
        user: &str,
        password: &str,
        database: Option<&str>,
    ) -> Answer<Session> {
        let limit = Some(Duration::from_secs(60));
        let options = address
            .user(Some(user))
            .pass(Some(password))
            .db_name(database)
            .read_timeout(limit)
            .write_timeout(limit)
            .tcp_connect_timeout(Some(Duration::from_secs(10)))
            // Or else the crate asks the server for it, with a statement that the test did not
            // write.
            .max_allowed_packet(Some(64 << 20));
        Ok(Session {
            is_lied_to: false,
            conn: Conn::new(options)?,
        })
    }

    /// The underlying connection.
    pub fn conn(&mut self) -> &mut Conn {
        &mut self.conn
    }

    /// Runs one or more statements in the text protocol.
    pub fn run(&mut self, sql: &str) -> Answer {
        let outcome = collect(self.conn.query_iter(sql)?)?;
        Ok(Outcome {
            warnings: self.conn.warnings(),
            ..outcome
        })
    }

    /// Runs one statement in the binary protocol.
    pub fn execute(&mut self, sql: &str, parameters: impl Into<Params>) -> Answer {
        let outcome = collect(self.conn.exec_iter(sql, parameters)?)?;
        Ok(Outcome {
            warnings: self.conn.warnings(),
            ..outcome
        })
    }

    /// Runs statements that must succeed.
    pub fn must(&mut self, sql: &str) -> Outcome {
        self.run(sql).unwrap_or_else(|e| panic!("{sql}\n→ {e}"))
    }

    /// Runs a statement that must fail; returns its error number.
    pub fn must_fail(&mut self, sql: &str) -> u16 {
        match self.run(sql) {
            Ok(outcome) => panic!("{sql}\n→ succeeded: {outcome:?}"),
            Err(failure) => failure.code,
        }
    }

    /// The rows of the first result set as text, columns separated by tabs, rows by newlines, NULL
    /// as `NULL`.
    pub fn text(&mut self, sql: &str) -> Answer<String> {
        self.run(sql).map(|outcome| outcome.text())
    }

    /// The rows of the first result set as text, from the binary protocol.
    pub fn execute_text(&mut self, sql: &str, parameters: impl Into<Params>) -> Answer<String> {
        self.execute(sql, parameters).map(|outcome| outcome.text())
    }
}

/// No two questions of a process have the same answer.
static FRESH: AtomicU64 = AtomicU64::new(810_000_000);

impl Session {
    /// Its server lies: which answer is whose is not looked at in the end.
    pub fn is_lied_to(&mut self) {
        self.is_lied_to = true;
    }

    /// Asks for a number that was never asked for; panics if the answer is another question's.
    /// `false`: there is no answer.
    pub fn answers_itself(&mut self) -> bool {
        let number = FRESH.fetch_add(1, Ordering::Relaxed).to_string();
        // of whatever shape it is: behind a peer that lies it may be anything
        let answer: Result<Option<Row>, _> = self.conn.query_first(format!("SELECT {number}"));
        let Ok(row) = answer else {
            return false;
        };
        match row.map(Row::unwrap).as_deref() {
            // a session may see other letters, or no rows at all
            Some([Value::Bytes(got)]) if got.iter().all(u8::is_ascii_digit) => {
                assert_eq!(String::from_utf8_lossy(got), number, "another's answer");
            }
            Some([Value::Int(_)]) => panic!("another's answer"),
            _ => {}
        }
        true
    }
}

impl Drop for Session {
    /// A session whose answers were shifted once is shifted to its end. So the last question of
    /// each is one whose answer is known.
    fn drop(&mut self) {
        if !std::thread::panicking() && !self.is_lied_to {
            self.answers_itself();
        }
    }
}

impl Outcome {
    /// The rows of the first result set as text, columns separated by tabs, rows by newlines, NULL
    /// as `NULL`.
    pub fn text(&self) -> String {
        let rows = self
            .sets
            .first()
            .map(|set| set.rows.as_slice())
            .unwrap_or_default();
        let lines: Vec<String> = rows
            .iter()
            .map(|row| row.iter().map(cell_text).collect::<Vec<_>>().join("\t"))
            .collect();
        lines.join("\n")
    }
}

fn cell_text(value: &Value) -> String {
    match value {
        Value::NULL => "NULL".into(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        // Dates come quoted.
        other => other.as_sql(true).trim_matches('\'').to_owned(),
    }
}

fn collect<P: mysql::prelude::Protocol>(mut result: mysql::QueryResult<'_, '_, '_, P>) -> Answer {
    let mut outcome = Outcome {
        sets: Vec::new(),
        affected: 0,
        insert_id: 0,
        warnings: 0,
    };
    while let Some(set) = result.iter() {
        let columns = set
            .columns()
            .as_ref()
            .iter()
            .map(|column| {
                (
                    column.name_str().into_owned(),
                    column.column_type(),
                    column.flags(),
                )
            })
            .collect();
        let affected = set.affected_rows();
        let insert_id = set.last_insert_id().unwrap_or(0);
        let mut rows = Vec::new();
        for row in set {
            rows.push(row?.unwrap());
        }
        outcome.sets.push(ResultSet { columns, rows });
        outcome.affected = affected;
        outcome.insert_id = insert_id;
    }
    Ok(outcome)
}
