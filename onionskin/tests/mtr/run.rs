//! One test file on three lanes: a plain server, another plain server, and the proxy.
//!
//! Each statement runs through the proxy first. If it is refused, the plain servers are spared it, so that the data stay the
//! same. The second plain server tells what no two servers agree on. Conditions and variables of the test's language
//! are evaluated on the first.

use super::definitions::{self, Creation, Level};
use super::language::{self, Node};
use super::report::{Difference, Report};
use super::seen::{self, Certain, Seen};
use ::mysql::Conn;
use ::mysql::prelude::Queryable;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Ports of the three lanes, and of a proxy with the same keys that protects only what statements ask for.
#[derive(Clone, Debug)]
pub struct Ports {
    pub plain: u16,
    pub control: u16,
    pub proxy: u16,
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
    home: &'a Path,
    lanes: HashMap<String, Lanes>,
    /// Connections that could not be made, and why: their statements are not run.
    dead: HashMap<String, String>,
    current: String,
    variables: HashMap<String, String>,
    /// What was sent on a connection and is not yet reaped.
    sent: HashMap<String, String>,
    /// The error of the last statement on the plain server.
    last_error: u16,
    started: Instant,
    /// What `--error` said of the next statement.
    expects_error: bool,
    sorted: bool,
    /// Names of tables, in lower case: those with protected columns, and those that differ since a difference.
    protected: HashSet<String>,
    tainted: HashSet<String>,
    /// A statement that would have changed something was refused.
    lost: bool,
    /// The last statement was refused, so nothing can be asked about it.
    just_refused: bool,
    /// Names of statements whose PREPARE was refused.
    unprepared: HashSet<String>,
    /// In a later round of a loop: what is equal is not counted again.
    again: bool,
    executed: usize,
    depth: usize,
    /// For the files that statements write.
    scratch: tempfile::TempDir,
    report: Report,
}

/// Runs a file in new sessions and a new database `test`; `home` is the folder that holds `include` and `main`.
pub fn file(ports: &Ports, home: &Path, name: &str) -> Report {
    let mut runner = Runner {
        ports,
        home,
        lanes: HashMap::new(),
        dead: HashMap::new(),
        current: "default".into(),
        variables: HashMap::new(),
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
        again: false,
        executed: 0,
        depth: 0,
        scratch: tempfile::tempdir().expect("a temporary folder"),
        report: Report::new(name),
    };
    let path = home.join("main").join(format!("{name}.test"));
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

impl Runner<'_> {
    fn open(&mut self, name: &str, user: &str, password: &str, database: &str) -> Step {
        let open = |port| {
            let mut conn = seen::connect(port, user, password, database)
                .map_err(|e| format!("a connection that fails ({})", e.code))?;
            let _ = conn.query_drop(CLOCK);
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

    fn command(&mut self, name: &str, rest: &str) -> Step {
        match name {
            "error" => self.expects_error = true,
            "sorted_result" => self.sorted = true,
            "eval" | "evalp" => {
                let sql = self.substituted(rest)?;
                return self.statement(&sql);
            }
            "query" | "query_vertical" | "query_horizontal" => {
                let sql = self.substituted(rest)?;
                return self.statement(&sql);
            }
            "let" => return self.assign(rest),
            "inc" | "dec" => {
                let variable = rest.trim_start_matches('$').trim();
                let value: i64 = self.variable(variable)?.trim().parse().unwrap_or(0);
                let value = value + if name == "inc" { 1 } else { -1 };
                self.variables.insert(variable.into(), value.to_string());
            }
            "source" => return self.include(rest),
            "connect" => return self.connect(rest),
            "connection" => {
                let name = self.substituted(rest)?;
                if !self.lanes.contains_key(&name) && !self.dead.contains_key(&name) {
                    return stop(format!("no connection {name}"));
                }
                self.current = name;
            }
            "disconnect" | "dirty_close" => {
                let name = self.substituted(rest)?;
                self.lanes.remove(&name);
                self.dead.remove(&name);
            }
            "reset_connection" => {
                let lanes = self.lanes()?;
                for conn in [&mut lanes.plain, &mut lanes.control, &mut lanes.proxy] {
                    let reset = conn.reset().and_then(|()| conn.query_drop(CLOCK));
                    reset.map_err(|_| Stop("a connection that is not reset".into()))?;
                }
            }
            // as a new session
            "change_user" => {
                let rest = self.substituted(rest)?;
                let parts: Vec<&str> = rest.split(',').map(str::trim).collect();
                let part = |i: usize| parts.get(i).copied().unwrap_or_default();
                let user = if part(0).is_empty() { "root" } else { part(0) };
                let name = self.current.clone();
                return self.open(&name, user, part(1), part(2));
            }
            // Such a statement waits, as a rule, for what other connections do before it is reaped: it runs then.
            "send" | "send_eval" => {
                let sql = self.substituted(rest)?;
                self.sent.insert(self.current.clone(), sql);
            }
            "reap" => {
                if let Some(sql) = self.sent.remove(&self.current) {
                    return self.statement(&sql);
                }
            }
            "shutdown_server" | "send_shutdown" | "send_quit" | "exec_in_background" => {
                return stop("a server that is shut down");
            }
            "exit" | "die" | "skip" => return stop(format!("`{name}` of the file")),
            // Files, programs, and the form of the output.
            _ => {}
        }
        Ok(())
    }

    /// `name [,] host, user, password, database, …`, in parentheses or not.
    fn connect(&mut self, rest: &str) -> Step {
        let rest = self.substituted(rest)?;
        let rest = rest.trim().trim_start_matches('(').trim_end_matches(')');
        let trimmed = |part: &'_ str| part.trim().trim_matches(['"', '\'']).to_owned();
        let parts: Vec<String> = rest.split(',').map(trimmed).collect();
        let part = |i: usize| parts.get(i).map_or("", String::as_str);
        let user = if part(2).is_empty() { "root" } else { part(2) };
        let database = match part(4) {
            "" => "test",
            "*NO-ONE*" => "",
            given => given,
        };
        if std::mem::take(&mut self.expects_error) {
            // it shall fail: the one before goes on
            return Ok(());
        }
        self.open(part(0), user, part(3), database)
    }

    fn include(&mut self, rest: &str) -> Step {
        let name = self.substituted(rest)?;
        let base = Path::new(&name).file_name().unwrap_or_default();
        let base = base.to_string_lossy();
        // What these ask for is there; what they wait for has happened, because nothing runs at the same time.
        const NEEDLESS: &[&str] = &[
            "have_innodb.inc",
            "have_sequence.inc",
            "have_partition.inc",
            "have_compress.inc",
            "have_crypt.inc",
            "have_normal_zlib.inc",
            "have_ssl_crypto_functs.inc",
            "have_ucs2.inc",
            "have_utf8.inc",
            "have_utf8mb4.inc",
            "have_collation.inc",
            "default_optimizer_switch.inc",
            "default_charset.inc",
            "no_valgrind_without_big.inc",
            "no_msan_without_big.inc",
            "not_valgrind.inc",
            "not_embedded.inc",
            "no_view_protocol.inc",
            "long_test.inc",
            "big_test.inc",
            "protocol.inc",
            "count_sessions.inc",
            "wait_until_count_sessions.inc",
            "wait_until_disconnected.inc",
            "wait_condition.inc",
            "have_metadata_lock_info.inc",
            "have_profiling.inc",
        ];
        if NEEDLESS.contains(&&*base) {
            return Ok(());
        }
        if base.starts_with("have_")
            || base.starts_with("is_embedded")
            || base.starts_with("windows")
        {
            return stop(format!("it needs what {base} asks for"));
        }
        // it looks for words in the server's own files
        if base.starts_with("search_pattern") {
            return Ok(());
        }
        if base.starts_with("restart") {
            return stop(format!("{base} restarts the server"));
        }
        let places = [self.home.join(&name), self.home.join("main").join(&name)];
        let found: Option<&PathBuf> = places.iter().find(|p| p.exists());
        let Some(text) = found.and_then(|p| std::fs::read(p).ok()) else {
            return stop(format!("{base} is not there"));
        };
        self.depth += 1;
        if self.depth > 8 {
            return stop("files that include each other");
        }
        let result = self.nodes(&language::read(&text));
        self.depth -= 1;
        result
    }

    fn variable(&self, name: &str) -> Result<String, Stop> {
        if name == "mysql_errno" {
            return Ok(self.last_error.to_string());
        }
        let known = match name {
            "MYSQL_TEST_DIR" => self.home.to_str(),
            "MYSQLTEST_VARDIR" | "MYSQL_TMP_DIR" => self.scratch.path().to_str(),
            "MASTER_MYPORT" | "MASTER_MYSOCK" => Some("1"),
            "PS_PROTOCOL" | "CURSOR_PROTOCOL" | "VIEW_PROTOCOL" | "SP_PROTOCOL" | "EMBEDDED"
            | "VALGRIND_TEST" | "BIG_TEST" | "LOW_MEMORY" => Some("0"),
            _ => None,
        };
        let own = self.variables.get(name).cloned();
        own.or(known.map(str::to_owned))
            .ok_or_else(|| Stop(format!("the variable ${name}")))
    }

    /// The text with its variables replaced.
    fn substituted(&self, text: &str) -> Result<String, Stop> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let (before, after) = rest.split_at(at);
            let name: String = after[1..]
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect();
            if let Some(before) = before.strip_suffix('\\') {
                out += before;
                out.push('$');
                rest = &after[1..];
            } else if name.is_empty() {
                out += before;
                out.push('$');
                rest = &after[1..];
            } else {
                out += before;
                out += &self.variable(&name)?;
                rest = &after[1 + name.len()..];
            }
        }
        Ok(out + rest)
    }

    fn assign(&mut self, rest: &str) -> Step {
        let Some((name, value)) = rest.split_once('=') else {
            return stop("a `let` without a value");
        };
        let name = name.trim().trim_start_matches('$').to_owned();
        let value = self.value(value.trim())?;
        self.variables.insert(name, value);
        Ok(())
    }

    /// A text, a query in backticks, or `query_get_value(query, column, row)`.
    fn value(&mut self, text: &str) -> Result<String, Stop> {
        if let Some(query) = text.strip_prefix('`').and_then(|t| t.strip_suffix('`')) {
            let query = self.substituted(query)?;
            let answer = seen::run(&mut self.lanes()?.plain, &query);
            if answer.problem.is_some() {
                return Err(Stop("a query for a variable that fails".into()));
            }
            let row = answer.sets.first().and_then(|s| s.rows.first());
            let cells: Vec<String> = row.iter().flat_map(|r| r.iter()).map(plain_text).collect();
            return Ok(cells.join("\t"));
        }
        if let Some(call) = text.strip_prefix("query_get_value") {
            return self.cell(call.trim());
        }
        self.substituted(text)
    }

    /// `(query, column, row)`: a cell of an answer; rows are counted from 1.
    fn cell(&mut self, call: &str) -> Result<String, Stop> {
        let inside = call.strip_prefix('(').and_then(|c| c.strip_suffix(')'));
        let mut parts = inside.unwrap_or_default().rsplitn(3, ',').map(str::trim);
        let (Some(row), Some(column), Some(query)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(Stop("query_get_value without three arguments".into()));
        };
        let query = self.substituted(query.trim_matches(['"', '\'']))?;
        let row: usize = self.substituted(row)?.parse().unwrap_or(1);
        let answer = seen::run(&mut self.lanes()?.plain, &query);
        let Some(set) = answer.sets.first() else {
            return Err(Stop("a query for a variable that fails".into()));
        };
        let place = set
            .columns
            .iter()
            .position(|c| c.0.eq_ignore_ascii_case(column));
        let cell = place.and_then(|at| set.rows.get(row.wrapping_sub(1))?.get(at));
        Ok(cell.map_or("No such row".into(), plain_text))
    }

    /// A condition of `if` and `while`: a value, its negation, or a comparison.
    fn holds(&mut self, condition: &str) -> Result<bool, Stop> {
        let condition = condition.trim();
        if !condition.starts_with('`') && !condition.starts_with("!`") {
            for sign in ["==", "!=", "<=", ">=", "<", ">"] {
                if let Some((left, right)) = condition.split_once(sign) {
                    let left = self.value(left.trim())?;
                    let right = self.value(right.trim().trim_matches(['\'', '"']))?;
                    let numbers = left
                        .trim()
                        .parse::<i64>()
                        .ok()
                        .zip(right.trim().parse::<i64>().ok());
                    let order = numbers.map_or_else(|| left.cmp(&right), |(l, r)| l.cmp(&r));
                    return Ok(match sign {
                        "==" => order.is_eq(),
                        "!=" => order.is_ne(),
                        "<=" => order.is_le(),
                        ">=" => order.is_ge(),
                        "<" => order.is_lt(),
                        _ => order.is_gt(),
                    });
                }
            }
        }
        let (negated, text) = match condition.strip_prefix('!') {
            Some(rest) => (true, rest.trim()),
            None => (false, condition),
        };
        // A variable that nothing has set is no error in a condition.
        let value = match text.strip_prefix('$') {
            Some(name) if !self.variables.contains_key(name) => {
                self.variable(name).unwrap_or_default()
            }
            _ => self.value(text)?,
        };
        let value = value.trim();
        let truth = !(value.is_empty() || value.parse::<f64>().is_ok_and(|n| n == 0.0));
        Ok(truth != negated)
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
        if let Some(reason) = not_comparable(verb, second, &words) {
            self.report.not_run(reason, 1);
            return Ok(());
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
            self.report
                .not_run("a question about a statement that was refused", 1);
            return Ok(());
        }
        self.just_refused = false;
        let runs_prepared = matches!(verb, "execute" | "deallocate" | "drop");
        let of_prepared = if verb == "execute" {
            second
        } else {
            words.last().map_or("", |w| w)
        };
        if runs_prepared && self.unprepared.contains(of_prepared) {
            self.report.not_run("follows from a refusal", 1);
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
        // Two plain servers have the same rows in the same order, and so agree even where nothing promises it.
        if seen::difference(&plain, &control, Certain::Rows, false).is_some() {
            self.report
                .not_run("another answer on a second plain server", 1);
            return Ok(());
        }
        // of rows with equal keys, LIMIT may keep any
        let limited = words.iter().any(|w| w == "limit");
        match seen::difference(&plain, &proxied, certain, gathered) {
            Some((kind, _))
                if (kind == "order of rows" || kind == "rows" && limited)
                    && certain == Certain::Order
                    && seen::differs_in_ties_only(sql, &plain, &proxied) =>
            {
                self.report.equal(near);
            }
            Some((kind, detail)) => {
                if let Some(reason) = self.uncertain(sql, &words, &kind, &plain, &proxied) {
                    self.report.not_run(reason, 1);
                } else {
                    self.differs(sql, kind, detail, &words);
                }
            }
            None if self.again => {}
            None if plain.problem.is_some() && !expects_error && self.lost => {
                self.report.not_run("follows from a refusal", 1);
            }
            None => self.report.equal(near),
        }
        Ok(())
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

    /// Counts a refusal. A table that cannot be protected as a whole is made with as many protected columns as possible.
    fn refused(
        &mut self,
        sql: &str,
        verb: &str,
        message: &str,
        creation: Option<Creation>,
    ) -> Step {
        self.report.refused(sql, message);
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
