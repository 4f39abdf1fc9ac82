//! One test file on three lanes: a plain server, another plain server, and the proxy.
//!
//! Each statement runs through the proxy first. If it is refused, the plain servers are spared it,
//! so that the data stay the same. The second plain server tells what no two servers agree on.
//! Conditions and variables of the test's language are evaluated on the first.

use super::definitions::{self, Creation, Level};
use super::language::{self, Node};
use super::report::{Difference, Report};
use super::seen::{self, Certain, Seen};
use super::suite::Suite;
use ::mysql::Conn;
use ::mysql::prelude::Queryable;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[path = "run/commands.rs"]
mod commands;
#[path = "run/values.rs"]
mod values;

/// Ports of the three lanes, and of a proxy with the same keys that protects only what statements
/// ask for.
#[derive(Clone, Debug)]
pub struct Ports {
    pub plain: u16,
    pub control: u16,
    pub proxy: u16,
    /// The server behind the proxy.
    pub behind: u16,
    pub explicit: u16,
    /// Data directories of the lanes' servers.
    pub data: [PathBuf; 3],
}

/// Rounds of one loop, and statements of one file: what runs longer is not run.
const ROUNDS: usize = 12_000;
/// Rounds of a loop whose statements count: ten thousand alike would hide all others.
const COUNTED: usize = 10;
const STATEMENTS: usize = 30_000;
/// What one file may take. The longest need half of it.
const LIMIT: Duration = Duration::from_secs(240);
/// Functions of named locks.
const NAMED_LOCKS: [&str; 5] = [
    "get_lock",
    "release_lock",
    "release_all_locks",
    "is_free_lock",
    "is_used_lock",
];

/// The time shall be the same on all lanes.
const CLOCK: &str = "SET timestamp = 1700000000";

/// Why a file does not go on.
struct Stop(String);

type Step = Result<(), Stop>;

fn stop(reason: impl Into<String>) -> Step {
    Err(Stop(reason.into()))
}

struct Lanes {
    plain: Conn,
    control: Conn,
    proxy: Conn,
    /// User, password and database of the login.
    login: [String; 3],
}

struct Runner<'a> {
    ports: &'a Ports,
    suite: Suite,
    home: &'a Path,
    lanes: HashMap<String, Lanes>,
    /// Connections that could not be made, and why: their statements are not run.
    dead: HashMap<String, String>,
    current: String,
    variables: HashMap<String, String>,
    /// What every session begins with.
    first_statements: Vec<&'static str>,
    /// What was sent on a connection and is not yet reaped.
    sent: HashMap<String, String>,
    /// The error of the last statement on the plain server.
    last_error: u16,
    started: Instant,
    /// What `--error` said of the next statement.
    expects_error: bool,
    sorted: bool,
    /// Names of tables, in lower case: those with protected columns, and those that differ since a
    /// difference.
    protected: HashSet<String>,
    tainted: HashSet<String>,
    /// A statement that would have changed something was refused.
    lost: bool,
    /// The last statement was refused, so nothing can be asked about it.
    just_refused: bool,
    /// Names of statements whose PREPARE was refused.
    unprepared: HashSet<String>,
    /// A connection ended in the middle of a statement. Its server notices that some time later,
    /// and keeps its named locks until then.
    broken_off: bool,
    /// In a later round of a loop: what is equal or refused is not counted again.
    again: bool,
    executed: usize,
    depth: usize,
    /// For the files that statements write.
    scratch: tempfile::TempDir,
    report: Report,
}

/// Runs a file in new sessions and a new database `test`; `home` is the folder that holds `include`
/// and the files.
pub fn file(ports: &Ports, suite: Suite, home: &Path, name: &str) -> Report {
    let mut runner = Runner {
        ports,
        suite,
        home,
        lanes: HashMap::new(),
        dead: HashMap::new(),
        current: "default".into(),
        variables: HashMap::new(),
        first_statements: vec![CLOCK],
        sent: HashMap::new(),
        last_error: 0,
        started: Instant::now(),
        expects_error: false,
        sorted: false,
        protected: HashSet::new(),
        tainted: HashSet::new(),
        lost: false,
        just_refused: false,
        unprepared: HashSet::new(),
        broken_off: false,
        again: false,
        executed: 0,
        depth: 0,
        scratch: tempfile::tempdir().expect("a temporary folder"),
        report: Report::new(suite, name),
    };
    let path = suite.path(home, name);
    let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let nodes = language::read(&text);
    for port in [ports.plain, ports.control, ports.proxy] {
        let mut conn = seen::connect(port, "root", "", "").expect("a login as root");
        conn.query_drop("CREATE DATABASE test").expect("a database");
    }
    runner.open("default", "root", "", "test").ok();
    for (i, node) in nodes.iter().enumerate() {
        if let Err(Stop(reason)) = runner.node(node) {
            let rest = language::statements(&nodes[i + 1..]);
            runner
                .report
                .not_run(&format!("rest of the file: {reason}"), rest);
            break;
        }
    }
    runner.clean();
    runner.report
}

/// What is known of a statement before it runs.
struct Asked {
    /// It names a table with protected columns.
    near: bool,
    /// Its rows are sorted before they are compared.
    sorted: bool,
    expects_error: bool,
}

impl Runner<'_> {
    fn open(&mut self, name: &str, user: &str, password: &str, database: &str) -> Step {
        let first = self.first_statements.clone();
        let open = |port| {
            let mut conn = seen::connect(port, user, password, database)
                .map_err(|e| format!("a connection that fails ({})", e.code))?;
            for sql in &first {
                let _ = conn.query_drop(sql);
            }
            Ok::<_, String>(conn)
        };
        let ports = [self.ports.plain, self.ports.control, self.ports.proxy];
        self.current = name.into();
        self.lanes.remove(name);
        self.dead.remove(name);
        match ports.map(open) {
            [Ok(plain), Ok(control), Ok(proxy)] => {
                let lanes = Lanes {
                    plain,
                    control,
                    proxy,
                    login: [user.into(), password.into(), database.into()],
                };
                self.lanes.insert(name.into(), lanes);
            }
            others => {
                let reason = others.into_iter().find_map(Result::err);
                self.dead.insert(name.into(), reason.unwrap_or_default());
            }
        }
        Ok(())
    }

    fn lanes(&mut self) -> Result<&mut Lanes, Stop> {
        let name = &self.current;
        self.lanes
            .get_mut(name)
            .ok_or_else(|| Stop(format!("no connection {name}")))
    }

    /// Databases, users and their like do not outlive the file.
    fn clean(&mut self) {
        self.lanes.clear();
        let kept = ["mysql", "information_schema", "performance_schema", "sys"];
        let ports = [self.ports.plain, self.ports.control, self.ports.proxy];
        for (port, data) in ports.into_iter().zip(&self.ports.data) {
            let mut conn = seen::connect(port, "root", "", "").expect("a login as root");
            let _ = conn.query_drop("SET foreign_key_checks = 0");
            let databases: Vec<String> = conn.query("SHOW DATABASES").unwrap_or_default();
            for database in databases.iter().filter(|d| !kept.contains(&d.as_str())) {
                let drop = format!("DROP DATABASE `{}`", database.replace('`', "``"));
                if conn.query_drop(&drop).is_err() {
                    // A file that a statement wrote there keeps the folder.
                    let _ = std::fs::remove_dir_all(data.join(database));
                }
            }
        }
    }

    fn nodes(&mut self, nodes: &[Node]) -> Step {
        nodes.iter().try_for_each(|node| self.node(node))
    }

    fn node(&mut self, node: &Node) -> Step {
        match node {
            Node::Query(sql) => self.statement(sql),
            Node::NotUtf8 => {
                self.report.not_run("a text that is not UTF-8", 1);
                self.lost = true;
                Ok(())
            }
            Node::Command(name, rest) => self.command(name, rest),
            Node::Block {
                repeats,
                condition,
                body,
            } => {
                let mut rounds = 0;
                let outer = self.again;
                while self.holds(condition)? {
                    self.nodes(body)?;
                    rounds += 1;
                    if !repeats {
                        break;
                    }
                    self.again |= rounds >= COUNTED;
                    if rounds > ROUNDS {
                        return stop("a loop with very many rounds");
                    }
                }
                self.again = outer;
                Ok(())
            }
        }
    }

    fn statement(&mut self, sql: &str) -> Step {
        let expects_error = std::mem::take(&mut self.expects_error);
        let sorted = std::mem::take(&mut self.sorted);
        self.executed += 1;
        if self.executed > STATEMENTS {
            return stop("very many statements");
        }
        if self.started.elapsed() > LIMIT {
            return stop("the time of a file is over");
        }
        if let Some(reason) = self.dead.get(&self.current) {
            let reason = reason.clone();
            self.report.not_run(&reason, 1);
            return Ok(());
        }
        let words = seen::words(sql);
        let verb = words.iter().find(|w| *w != "(").map_or("", |w| w.as_str());
        let second = words
            .iter()
            .filter(|w| *w != "(")
            .nth(1)
            .map_or("", |w| w.as_str());
        if let Some(reason) = self.left_out(verb, second, &words) {
            self.report.not_run(reason, 1);
            return Ok(());
        }
        let creation = definitions::creation(sql);
        let named = |set: &HashSet<String>| words.iter().any(|w| set.contains(w));
        let near = named(&self.protected);
        let tainted = named(&self.tainted);

        let proxied = seen::run(&mut self.lanes()?.proxy, sql);
        if let Some(message) = proxied.refusal().map(str::to_owned) {
            if verb == "prepare" {
                self.unprepared.insert(second.to_owned());
            }
            return self.refused(sql, verb, &message, creation);
        }
        if verb == "prepare" {
            self.unprepared.remove(second);
        }
        let lanes = self.lanes()?;
        let plain = seen::run(&mut lanes.plain, sql);
        let control = seen::run(&mut lanes.control, sql);
        self.last_error = plain.code().unwrap_or(0);
        if [&plain, &proxied, &control]
            .iter()
            .any(|s| s.code() == Some(0))
        {
            if plain.code() == Some(0) || control.code() == Some(0) {
                // without its variables and temporary tables on every lane, the connection goes on
                let reason = "a statement that ends the connection or takes too long";
                self.report.not_run(reason, 1);
                self.broken_off = true;
                let name = self.current.clone();
                let [user, password, database] = self.lanes()?.login.clone();
                return self.open(&name, &user, &password, &database);
            }
            let kind = "the connection broke".into();
            self.differs(sql, kind, format!("{:?}", proxied.problem), &words);
            return stop("a statement that ends the connection");
        }
        if let Some(made) = creation.filter(|_| proxied.problem.is_none()) {
            self.report.columns(made.columns.len(), made.columns.len());
            self.tainted.remove(&made.table.to_lowercase());
            self.protected.insert(made.table.to_lowercase());
        }
        if matches!(
            (verb, second),
            ("drop", "table" | "tables" | "view") | ("truncate", _)
        ) && tainted
        {
            self.tainted.retain(|t| !words.contains(t));
            self.report.not_run("follows from a difference", 1);
            return Ok(());
        }
        if tainted {
            self.report.not_run("follows from a difference", 1);
            return Ok(());
        }
        let asked = Asked {
            near,
            sorted,
            expects_error,
        };
        self.judge(sql, &words, [&plain, &proxied, &control], asked);
        Ok(())
    }

    /// Why a statement is not run on any lane.
    fn left_out(&mut self, verb: &str, second: &str, words: &[String]) -> Option<&'static str> {
        if let Some(reason) = not_comparable(verb, second, words) {
            return Some(reason);
        }
        let asks = [
            "warnings",
            "errors",
            "row_count",
            "found_rows",
            "warning_count",
            "error_count",
        ];
        let asks =
            matches!(verb, "show" | "select") && words.iter().any(|w| asks.contains(&w.as_str()));
        if asks && self.just_refused {
            return Some("a question about a statement that was refused");
        }
        self.just_refused = false;
        let of_locks = |w: &String| NAMED_LOCKS.contains(&w.as_str());
        if self.broken_off && words.iter().any(of_locks) {
            return Some("a named lock, perhaps of a session whose end is not noticed yet");
        }
        let runs_prepared = matches!(verb, "execute" | "deallocate" | "drop");
        let of_prepared = if verb == "execute" {
            second
        } else {
            words.last().map_or("", |w| w)
        };
        if runs_prepared && self.unprepared.contains(of_prepared) {
            return Some("follows from a refusal");
        }
        None
    }

    /// Compares the answers of a plain server, the proxy and a second plain server.
    fn judge(&mut self, sql: &str, words: &[String], answers: [&Seen; 3], asked: Asked) {
        let [plain, proxied, control] = answers;
        let Asked {
            near,
            sorted,
            expects_error,
        } = asked;
        let mut certain = seen::certain(sql);
        if sorted && certain == Certain::Order {
            certain = Certain::Rows;
        }
        let gathered = words.iter().any(|w| {
            matches!(
                w.as_str(),
                "group_concat" | "json_arrayagg" | "json_objectagg"
            )
        });
        // Two plain servers have the same rows in the same order, and so agree even where nothing
        // promises it.
        if seen::difference(plain, control, Certain::Rows, false).is_some() {
            self.report
                .not_run("another answer on a second plain server", 1);
            return;
        }
        // of rows with equal keys, LIMIT may keep any
        let limited = words.iter().any(|w| w == "limit");
        match seen::difference(plain, proxied, certain, gathered) {
            Some((kind, _))
                if (kind == "order of rows" || kind == "rows" && limited)
                    && certain == Certain::Order
                    && seen::differs_in_ties_only(sql, plain, proxied) =>
            {
                self.report.equal(near);
            }
            Some((kind, detail)) => {
                if let Some(reason) = self.uncertain(sql, words, &kind, plain, proxied) {
                    self.report.not_run(reason, 1);
                } else {
                    self.differs(sql, kind, detail, words);
                }
            }
            None if self.again => {}
            None if plain.problem.is_some() && !expects_error && self.lost => {
                self.report.not_run("follows from a refusal", 1);
            }
            None => self.report.equal(near),
        }
    }

    /// Why two answers that differ may both be right.
    fn uncertain(
        &mut self,
        sql: &str,
        words: &[String],
        kind: &str,
        plain: &Seen,
        proxied: &Seen,
    ) -> Option<&'static str> {
        let has = |word: &str| words.iter().any(|w| w == word);
        if !matches!(kind, "rows" | "value" | "order of rows") {
            return None;
        }
        // Of values that are equal under a collation, a group shows whichever it met first.
        let groups = has("group") || has("distinct") || has("union") || has("min") || has("max");
        let folded = |seen: &Seen| {
            let mut seen = seen.clone();
            for value in seen.sets.iter_mut().flat_map(|s| &mut s.rows).flatten() {
                if let ::mysql::Value::Bytes(bytes) = value {
                    let text = String::from_utf8_lossy(bytes).to_lowercase();
                    *bytes = text.trim_end().into();
                }
            }
            seen
        };
        if groups
            && seen::difference(&folded(plain), &folded(proxied), Certain::Rows, false).is_none()
        {
            return Some("values of a group that are equal under its collation");
        }
        if !has("group") {
            return None;
        }
        let control = &mut self.lanes().ok()?.control;
        let mode: Option<String> = control.query_first("SELECT @@sql_mode").ok()?;
        let mode = mode.unwrap_or_default();
        control
            .query_drop(format!("SET sql_mode = '{mode},ONLY_FULL_GROUP_BY'"))
            .ok()?;
        let code = seen::run(control, sql).code();
        control
            .query_drop(format!("SET sql_mode = '{mode}'"))
            .ok()?;
        (code == Some(1055)).then_some("columns beside GROUP BY that are not grouped: of any row")
    }

    fn differs(&mut self, sql: &str, kind: String, detail: String, words: &[String]) {
        if !matches!(
            words.first().map(String::as_str),
            Some("select" | "show" | "with" | "(")
        ) {
            self.tainted.extend(
                words
                    .iter()
                    .filter(|w| self.protected.contains(*w))
                    .cloned(),
            );
        }
        self.report.different(Difference {
            sql: sql.into(),
            kind,
            detail,
        });
    }

    /// Counts a refusal. A table that cannot be protected as a whole is made with as many protected
    /// columns as possible.
    fn refused(
        &mut self,
        sql: &str,
        verb: &str,
        message: &str,
        creation: Option<Creation>,
    ) -> Step {
        if !self.again {
            self.report.refused(sql, message);
        }
        self.just_refused = true;
        if !matches!(
            verb,
            "select" | "with" | "show" | "describe" | "desc" | "table" | "values" | "checksum"
        ) {
            self.lost = true;
        }
        if let Some(creation) = creation.filter(|c| !c.temporary && !c.columns.is_empty()) {
            self.make_anyway(sql, &creation)?;
        }
        Ok(())
    }

    fn make_anyway(&mut self, sql: &str, creation: &Creation) -> Step {
        let port = self.ports.explicit;
        let lanes = self.lanes()?;
        let state = "SELECT DATABASE(), @@sql_mode, @@character_set_client, @@collation_connection, @@default_storage_engine, @@time_zone";
        let answer = seen::run(&mut lanes.plain, state);
        let Some(row) = answer.sets.first().and_then(|s| s.rows.first()) else {
            return Ok(());
        };
        let state: Vec<String> = row.iter().map(plain_text).collect();
        let Ok(mut explicit) = seen::connect(port, "root", "", &state[0]) else {
            return Ok(());
        };
        let _ = explicit.query_drop(format!(
            "SET sql_mode = '{}', character_set_client = '{}', collation_connection = '{}', default_storage_engine = '{}', time_zone = '{}'",
            state[1], state[2], state[3], state[4], state[5]
        ));
        let mut levels = vec![Level::Searchable; creation.columns.len()];
        for _ in 0..=2 * levels.len() {
            let text = definitions::with_levels(sql, creation, &levels);
            let answer = seen::run(&mut explicit, &text);
            let Some(message) = answer.refusal() else {
                let failed = answer.problem.is_some();
                let plain = seen::run(&mut self.lanes()?.plain, sql);
                seen::run(&mut self.lanes()?.control, sql);
                if plain.problem.is_some() != failed {
                    let kind = "a table made on one side only".to_owned();
                    self.differs(
                        sql,
                        kind,
                        format!("{text}\n{:?}\n{:?}", plain.problem, answer.problem),
                        &[],
                    );
                } else if !failed {
                    let protected = levels.iter().filter(|l| **l != Level::Plain).count();
                    self.report.columns(levels.len(), protected);
                    let table = creation.table.to_lowercase();
                    self.tainted.remove(&table);
                    if protected > 0 {
                        self.protected.insert(table);
                    } else {
                        self.protected.remove(&table);
                    }
                }
                return Ok(());
            };
            // The first column that the message names is protected less; if it names none, all are.
            let about = message.split(": ").next().unwrap_or(message);
            let named = |name: &str| {
                about
                    .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))
                    .any(|w| w.eq_ignore_ascii_case(name))
            };
            let less = |level: Level| match level {
                Level::Searchable => Level::Sealed,
                _ => Level::Plain,
            };
            let found = (0..levels.len())
                .find(|&i| levels[i] != Level::Plain && named(&creation.columns[i].name));
            match found {
                Some(i) => levels[i] = less(levels[i]),
                None if levels.iter().all(|l| *l == Level::Plain) => return Ok(()),
                None => levels.fill(Level::Plain),
            }
        }
        Ok(())
    }
}

/// A cell as mysqltest would put it into a variable.
fn plain_text(value: &::mysql::Value) -> String {
    match value {
        ::mysql::Value::NULL => "NULL".into(),
        ::mysql::Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => other.as_sql(true).trim_matches('\'').to_owned(),
    }
}

/// Why no two servers need to agree on the answer to a statement.
fn not_comparable(verb: &str, second: &str, words: &[String]) -> Option<&'static str> {
    let has = |word: &str| words.iter().any(|w| w == word);
    match (verb, second) {
        ("explain" | "analyze" | "desc" | "describe", _)
            if verb == "explain" || second != "table" && has("select") =>
        {
            Some("a question about the server's plan")
        }
        ("analyze", "format") => Some("a question about the server's plan"),
        (
            "show",
            "status" | "profiles" | "profile" | "processlist" | "engine" | "open" | "binlog"
            | "explain",
        )
        | ("flush", "status") => Some("counters of the server"),
        ("show", "session" | "global" | "local") if has("status") => Some("counters of the server"),
        ("check" | "analyze" | "optimize" | "repair", "table" | "tables" | "local") => {
            Some("maintenance of tables")
        }
        ("handler" | "kill" | "shutdown", _) => Some("HANDLER, KILL, SHUTDOWN"),
        _ if has("session_status") || has("global_status") || has("innodb_metrics") => {
            Some("counters of the server")
        }
        _ if has("benchmark") => Some("a function that takes long"),
        _ => None,
    }
}
