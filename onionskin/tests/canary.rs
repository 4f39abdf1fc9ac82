//! No plaintext of a protected column is anywhere but in the application: unique values go in
//! through the proxy in every kind of statement, those that succeed and those that fail, and then
//! the data directory, all logs, the server's own memory of statements, the proxy's log, and every
//! byte sent to the server are searched for them.
//!
//! Each place is also searched for a value that *is* there, the content of an unprotected column,
//! which shows that the search works.

#[path = "canary/statements.rs"]
mod statements;

#[path = "canary/hidden.rs"]
mod hidden;
use ::mysql::Value;
use hidden::{blanks_beyond_ascii, read_otherwise_by_servers, statements_by_other_ids};
use onionskin_testkit::*;
use statements::{fail_in_every_way, mangle, write_prepared, write_what_must_succeed};

on_both_servers!(with_statement_binlog, with_row_binlog);

fn with_statement_binlog(kind: Kind) {
    no_plaintext_leaves_the_proxy(kind, Binlog::Statement);
}

fn with_row_binlog(kind: Kind) {
    no_plaintext_leaves_the_proxy(kind, Binlog::Row);
}

/// In every protected text.
const TEXT: &str = "Qz7KwVx9";
/// The leading digits of every protected integer.
const INTEGER: i64 = 7_351_926_400_000_000;
/// The leading digits of every protected decimal.
const DECIMAL: &str = "84620375119";
/// The beginning of every protected date.
const DATE: &str = "2097-03-1";
/// In every unprotected text.
const CONTROL: &str = "Jw5TkRn3";

const PROTECT: &str = r#"
[protect."app.t"]
s = []
e = ["eq"]
n = ["eq", "range"]
d = ["range"]
x = []
b = []
l = ["like"]
"#;

const CREATE: &str = "CREATE TABLE app.t (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    s VARCHAR(60), e VARCHAR(60), n BIGINT, d DATETIME(6), x DECIMAL(24, 4), b VARBINARY(60), l TEXT,
    open VARCHAR(60),
    UNIQUE KEY (e), KEY (n), KEY (d)
) DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_general_ci";

/// Makes values that occur once.
struct Canaries(i64);

impl Canaries {
    fn next(&mut self) -> i64 {
        self.0 += 1;
        self.0
    }
    fn text(&mut self) -> String {
        format!("{TEXT}{:04}", self.next())
    }
    fn integer(&mut self) -> i64 {
        INTEGER + self.next()
    }
    fn decimal(&mut self) -> String {
        format!("{DECIMAL}{:04}.25", self.next())
    }
    fn date(&mut self) -> String {
        let n = self.next();
        format!(
            "{DATE}{} {:02}:{:02}:{:02}.926535",
            n % 10,
            n % 24,
            n / 24 % 60,
            n / 1440 % 60
        )
    }
}

impl Canaries {
    /// A statement with values in the places of `{t}` (text), `{n}`, `{d}` and `{x}`.
    fn filled(&mut self, template: &str) -> String {
        let mut statement = String::new();
        for (i, part) in template.split('{').enumerate() {
            let (value, rest) = match (i, part.split_once('}')) {
                (1.., Some(("t", rest))) => (self.text(), rest),
                (1.., Some(("n", rest))) => (self.integer().to_string(), rest),
                (1.., Some(("d", rest))) => (self.date(), rest),
                (1.., Some(("x", rest))) => (self.decimal(), rest),
                _ => (String::new(), part),
            };
            statement.push_str(&value);
            statement.push_str(rest);
        }
        statement
    }
}

fn secrets() -> Vec<Pattern> {
    let mut patterns = Vec::new();
    for text in [TEXT, &INTEGER.to_string()[..8], DECIMAL, DATE] {
        patterns.extend(Pattern::of_text(text));
    }
    patterns.extend(Pattern::of_integers(INTEGER, 10_000));
    patterns
}

/// Runs statements in the text protocol and counts how many succeeded.
fn run_all(session: &mut Session, statements: &[String]) -> usize {
    statements
        .iter()
        .filter(|statement| session.run(statement).is_ok())
        .count()
}

fn no_plaintext_leaves_the_proxy(kind: Kind, binlog: Binlog) {
    let options = ServerOptions {
        general_log: true,
        slow_log: true,
        binlog: Some(binlog),
        performance_schema: true,
        // What is committed is in the files.
        flush_log_at_commit: 1,
        // A relay cannot look into TLS.
        tls: false,
        ..ServerOptions::default()
    };
    let Some(mut server) = Server::start(kind, options) else {
        return;
    };
    let relay = Relay::start(server.port());
    let options = ProxyOptions {
        // the relay is to read along; MariaDB 11.8 would offer TLS
        settings: "backend_tls = \"never\"\n".into(),
        tables: PROTECT.into(),
        backend: Some(relay.address()),
        log: Some("trace"),
        arguments: vec!["--trace".into()],
        ..ProxyOptions::default()
    };
    let mut proxy = Proxy::start_with(&server, options);
    // In direct mode, the relay stands in for the proxy, and everything must be found.
    let port = if direct_mode() {
        relay.port()
    } else {
        proxy.port()
    };
    let open = || Session::open(port, "root", "", None);
    server.connect().must("CREATE DATABASE app");

    let mut session = open();
    session.must(CREATE);
    let mut make = Canaries(0);
    write_what_must_succeed(&mut session, &mut make);
    write_prepared(&mut session, &mut make);
    fail_in_every_way(&mut session, &mut make);
    mangle(&mut session, &mut make);
    read_otherwise_by_servers(&mut session, &mut make);
    statements_by_other_ids(kind, port, server.port(), &mut make);
    blanks_beyond_ascii(port, &mut make);
    let memory = memory_while_a_statement_waits(kind, &server, open(), &mut make);

    let mut search = Search::new();
    search.bytes("bytes sent to the server", &relay.sent_to_server(), true);
    search.bytes(
        "the server's answers to the proxy",
        &relay.sent_to_client(),
        true,
    );
    search.bytes("the server's memory of statements", &memory, true);
    search.bytes(
        "the server's memory of statements, later",
        &server_memory(&mut server.connect(), kind),
        true,
    );
    let log = std::fs::read(proxy.log_file()).unwrap_or_default();
    assert!(
        direct_mode() || log.len() > 1000,
        "the proxy traces what it does"
    );
    // The log holds no values at all, not even those of unprotected columns.
    search.bytes("the proxy's log", &log, false);
    assert!(
        find_all(&search.controls, &log).is_empty(),
        "an unprotected value is in the proxy's log"
    );
    // Pages reach the table's file some time after the commit.
    server.connect().must("FLUSH TABLES app.t FOR EXPORT");
    search.files("while the server runs", &server);
    drop(session);
    proxy.assert_healthy();
    proxy.terminate();
    server.shutdown();
    search.files("after a shutdown", &server);

    search.conclude();
}

/// A statement that waits for a lock is visible in the process list and in InnoDB's status.
fn memory_while_a_statement_waits(
    kind: Kind,
    server: &Server,
    mut session: Session,
    make: &mut Canaries,
) -> Vec<u8> {
    let mut locker = server.connect();
    locker.must("BEGIN");
    locker.must("SELECT COUNT(*) FROM app.t FOR UPDATE");
    let (s, e) = (make.text(), make.text());
    let waiting = std::thread::spawn({
        session.must("SET innodb_lock_wait_timeout = 50");
        move || {
            session.run(&format!(
                "UPDATE app.t SET s = '{s}' WHERE open <> '{CONTROL}w' AND e <> '{e}'"
            ))
        }
    });
    let mut memory = Vec::new();
    wait_until(
        "a statement waits for the lock",
        std::time::Duration::from_secs(20),
        || {
            memory = server_memory(&mut server.connect(), kind);
            !find_all(&Pattern::of_text(&format!("{CONTROL}w")), &memory).is_empty()
        },
    );
    locker.must("ROLLBACK");
    waiting
        .join()
        .expect("no panic")
        .expect("the update goes on");
    memory
}

/// Looks for protected values, and for an unprotected one, in all that somebody else could read.
struct Search {
    secrets: Vec<Pattern>,
    controls: Vec<Pattern>,
    leaks: Vec<String>,
}

/// Files in which the unprotected value must be found.
const WITH_CONTROL: [&str; 4] = ["general.log", "slow.log", "binlog.000001", "t.ibd"];

impl Search {
    fn new() -> Search {
        Search {
            secrets: secrets(),
            controls: Pattern::of_text(CONTROL),
            leaks: Vec::new(),
        }
    }

    fn bytes(&mut self, place: &str, bytes: &[u8], has_control: bool) {
        self.leaks.extend(
            find_all(&self.secrets, bytes)
                .into_iter()
                .map(|leak| format!("{place}: {leak}")),
        );
        if has_control {
            assert!(
                !find_all(&self.controls, bytes).is_empty(),
                "{place}: the unprotected value is not found"
            );
        }
    }

    fn files(&mut self, when: &str, server: &Server) {
        let mut in_redo = false;
        let mut seen = Vec::new();
        for file in server.data_files() {
            let name = file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let bytes = std::fs::read(&file).unwrap_or_default();
            self.bytes(
                &format!("{} {when}", file.display()),
                &bytes,
                WITH_CONTROL.contains(&name.as_str()),
            );
            in_redo |= (name.starts_with("ib_logfile") || name.starts_with("#ib_redo"))
                && !find_all(&self.controls, &bytes).is_empty();
            seen.push(name);
        }
        for name in WITH_CONTROL {
            assert!(
                seen.iter().any(|other| other == name),
                "{name} was searched"
            );
        }
        assert!(in_redo, "the unprotected value is found in the redo log");
    }

    /// With the proxy nothing was found; without it, the values were.
    fn conclude(self) {
        let leaks = self.leaks;
        if direct_mode() {
            assert!(
                leaks.len() > 20,
                "without the proxy, the values are found: {leaks:?}"
            );
        } else {
            assert!(
                leaks.is_empty(),
                "plaintext of protected columns:\n{}",
                leaks.join("\n")
            );
        }
    }
}

/// What the server remembers of statements and shows to an administrator.
fn server_memory(session: &mut Session, kind: Kind) -> Vec<u8> {
    let mut tables = vec![
        "performance_schema.events_statements_current",
        "performance_schema.events_statements_history",
        "performance_schema.events_statements_history_long",
        "performance_schema.events_statements_summary_by_digest",
        "performance_schema.prepared_statements_instances",
        "performance_schema.threads",
        "performance_schema.table_handles",
        "performance_schema.user_variables_by_thread",
        "information_schema.processlist",
        "information_schema.innodb_trx",
    ];
    if kind == Kind::MySql {
        tables.extend([
            "performance_schema.error_log",
            "performance_schema.data_locks",
        ]);
    }
    let mut memory = Vec::new();
    let statements = tables.iter().map(|table| format!("SELECT * FROM {table}"));
    let more = ["SHOW FULL PROCESSLIST", "SHOW ENGINE INNODB STATUS"].map(String::from);
    for statement in statements.chain(more) {
        let outcome = session
            .run(&statement)
            .unwrap_or_else(|e| panic!("{statement}: {e}"));
        for value in outcome.sets.iter().flat_map(|set| &set.rows).flatten() {
            if let Value::Bytes(bytes) = value {
                memory.extend_from_slice(bytes);
                memory.push(b'\n');
            }
        }
    }
    memory
}
