//! What a client sees of a text: every result set with all that its column definitions say, and the
//! error.

use super::script::{Command, OTHER, Statement};
use mysql::consts::{ColumnFlags, ColumnType};
use mysql::prelude::{Protocol, Queryable};
use mysql::{ChangeUserOpts, Conn, OptsBuilder, QueryResult, Value};
use onionskin_testkit::announce;
use std::time::Duration;

/// A column definition.
#[derive(Clone, PartialEq, Debug)]
pub struct Definition {
    pub name: String,
    pub origin: [String; 4],
    pub ty: ColumnType,
    pub flags: ColumnFlags,
    pub collation: u16,
    pub decimals: u8,
    pub length: u32,
}

/// The result of one statement that succeeded.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Set {
    pub columns: Vec<Definition>,
    pub rows: Vec<Vec<Value>>,
    pub affected: u64,
    pub insert_id: u64,
    pub warnings: u16,
    pub info: String,
}

/// An error, the last thing in an answer.
#[derive(Clone, PartialEq, Debug)]
pub struct Problem {
    /// 0 when the connection broke.
    pub code: u16,
    pub state: String,
    pub message: String,
}

/// The answer to one text.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Answer {
    pub sets: Vec<Set>,
    pub problem: Option<Problem>,
    /// Number of parameters and the column definitions at the time of preparing.
    pub prepared: Option<(u16, Vec<Definition>)>,
}

impl Problem {
    fn from(error: mysql::Error) -> Problem {
        match error {
            mysql::Error::MySqlError(e) => Problem {
                code: e.code,
                state: e.state,
                message: e.message,
            },
            other => Problem {
                code: 0,
                state: String::new(),
                message: other.to_string(),
            },
        }
    }

    /// `1002` for a message that starts with `OS1002`.
    pub fn refusal_code(&self) -> Option<&str> {
        let digits = self.message.strip_prefix("OS")?.get(..4)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then_some(digits)
    }

    /// The proxy says that it does not do this.
    pub fn is_refusal(&self) -> bool {
        // OS1022 and OS1023 have the server's own error numbers; OS11.. are failures of integrity
        // or of the proxy.
        self.refusal_code()
            .is_some_and(|code| !code.starts_with("11"))
    }
}

impl Answer {
    /// The problem, if it is a refusal.
    pub fn refusal(&self) -> Option<&Problem> {
        self.problem.as_ref().filter(|p| p.is_refusal())
    }
}

/// Logs in as root; panics when that fails.
pub fn connect(port: u16, found_rows: bool) -> Conn {
    let limit = Some(Duration::from_secs(60));
    let mut options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port)
        .user(Some("root"))
        .prefer_socket(false)
        .read_timeout(limit)
        .write_timeout(limit)
        .tcp_connect_timeout(Some(Duration::from_secs(20)))
        // the same statements are kept on both sides, also where one side has refused some
        .stmt_cache_size(Some(1000))
        .max_allowed_packet(Some(64 << 20));
    if found_rows {
        let flags = mysql::consts::CapabilityFlags::CLIENT_FOUND_ROWS;
        options = options.additional_capabilities(flags);
    }
    for _ in 0..2 {
        match Conn::new(options.clone()) {
            Ok(conn) => return conn,
            Err(error) => announce(&format!("login failed, once more: {error}")),
        }
    }
    Conn::new(options).unwrap_or_else(|error| panic!("login: {error}"))
}

/// Whether the server at the other end is a MySQL. (A MariaDB says that it is 5.5.5, and its own
/// version behind that.)
pub fn is_mysql(conn: &Conn) -> bool {
    let version = conn.server_version();
    version != (5, 5, 5) && version.0 < 10
}

/// Runs statements that must succeed and are no part of a case.
pub fn must(conn: &mut Conn, sql: &str) {
    conn.query_drop(sql)
        .unwrap_or_else(|error| panic!("{sql}\n→ {error}"));
}

/// Runs the statements as one text, or a single one as it asks to be run.
pub fn answer(conn: &mut Conn, statements: &[Statement]) -> Answer {
    let mut answer = Answer::default();
    let result = match statements {
        [statement] if statement.prepared => execute(conn, statement, &mut answer),
        _ => {
            let texts: Vec<String> = statements.iter().map(Statement::text).collect();
            conn.query_iter(texts.join("; "))
                .and_then(|result| collect(result, &mut answer))
        }
    };
    answer.problem = result.err().map(Problem::from);
    // the server says behind its rows what reading them has warned of
    if let Some(last) = answer.sets.last_mut()
        && answer.problem.is_none()
        && !last.columns.is_empty()
    {
        last.warnings = conn.warnings();
    }
    answer
}

/// What a column is set to by itself shall be the same on both sides.
pub const CLOCK: &str = "SET timestamp = 1700000000.25";

/// Runs a command of the protocol, and sets the clock again where it sets everything back.
pub fn perform(conn: &mut Conn, command: Command, database: &str) -> Answer {
    let result = match command {
        Command::Reset => conn.reset().and_then(|()| conn.query_drop(CLOCK)),
        Command::ChangeUser => {
            let options = ChangeUserOpts::new()
                .with_user(Some("root".into()))
                .with_db_name(Some(database.into()));
            conn.change_user(options)
                .and_then(|()| conn.query_drop(CLOCK))
        }
        Command::Home => conn.select_db(database),
        Command::Away => conn.select_db(&format!("{database}{OTHER}")),
    };
    Answer {
        problem: result.err().map(Problem::from),
        ..Answer::default()
    }
}

/// Closes the prepared statement of this text, so that the next one is new.
pub fn forget(conn: &mut Conn, text: &str) {
    // What cannot be prepared is not kept, and its error comes when it is run.
    if let Ok(prepared) = conn.prep(text) {
        let _ = conn.close(prepared);
    }
}

fn execute(conn: &mut Conn, statement: &Statement, answer: &mut Answer) -> mysql::Result<()> {
    let (text, values) = statement.parameters();
    // The connection keeps prepared statements by their text: the second time, it is the same one.
    let prepared = conn.prep(text)?;
    // The client notes the columns of an execution, where the server has told none before.
    let columns = match prepared.num_columns() {
        0 => Vec::new(),
        _ => prepared.columns().iter().map(definition).collect(),
    };
    answer.prepared = Some((prepared.num_params(), columns));
    let result = conn.exec_iter(&prepared, mysql::Params::from(values))?;
    collect(result, answer)
}

fn collect<P: Protocol>(
    mut result: QueryResult<'_, '_, '_, P>,
    answer: &mut Answer,
) -> mysql::Result<()> {
    while let Some(set) = result.iter() {
        let mut found = Set {
            columns: set.columns().as_ref().iter().map(definition).collect(),
            affected: set.affected_rows(),
            insert_id: set.last_insert_id().unwrap_or(0),
            warnings: set.warnings(),
            info: set.info_str().into_owned(),
            ..Set::default()
        };
        for row in set {
            found.rows.push(row?.unwrap());
        }
        answer.sets.push(found);
    }
    drop(result);
    Ok(())
}

fn definition(column: &mysql::Column) -> Definition {
    Definition {
        name: column.name_str().into_owned(),
        origin: [
            column.schema_str().into_owned(),
            column.table_str().into_owned(),
            column.org_table_str().into_owned(),
            column.org_name_str().into_owned(),
        ],
        ty: column.column_type(),
        flags: column.flags(),
        collation: column.character_set(),
        decimals: column.decimals(),
        length: column.column_length(),
    }
}
