//! The same statement at a plain server and through the proxy.
//!
//! [`Pair`] holds a session at each. What both say is compared in one of three ways:
//!
//! - at once, with every word that a client reads: `same`, `same_or_refused`, `same_error`;
//! - at once, without words, as a text and prepared: `same_result`, `same_rows`;
//! - with whole definitions of columns, and all that differs is told in the end: `compare` and
//!   `conclude`.

mod compare;

use self::compare::Findings;
use crate::{
    Binlog, Failure, Kind, Lent, Outcome, Pattern, Proxy, ProxyOptions, ResultSet, Server,
    ServerOptions, Session, direct_mode, find_all, written_in,
};
use ::mysql::prelude::Queryable;
use ::mysql::{Params, Value};

/// In every text that must not be found anywhere.
pub const SECRET: &str = "Hb4YqMz7";

/// A database on a plain server and a protected one behind the proxy, both called `app`.
pub struct Pair {
    /// On the plain server.
    pub plain: Session,
    /// Through the proxy.
    pub protected: Session,
    /// The proxy.
    pub proxy: Proxy,
    /// The server behind it.
    pub behind: Server,
    beside: Option<Lent>,
    engine: Option<Lent>,
    findings: Findings,
}

/// The scratch engine of the proxy.
#[derive(Clone, Copy, PartialEq)]
pub enum Engine {
    /// There is none.
    Missing,
    /// The plain server is the engine, too.
    Plain,
    /// A third server, which a test may look at or kill.
    Own,
}

/// What [`Pair::start_with`] starts.
pub struct PairOptions<'a> {
    /// Definitions; `{words}` stands for the protection of a column.
    pub tables: &'a [&'a str],
    /// Settings of the proxy. Behind them may stand tables of its configuration.
    pub settings: &'a str,
    /// The scratch engine.
    pub engine: Engine,
    /// The plain tables lie in a database `bare` of the server behind the proxy.
    pub on_one_server: bool,
    /// What follows the name in CREATE DATABASE.
    pub database: &'a str,
    /// The server behind the proxy.
    pub server: ServerOptions,
}

impl Default for PairOptions<'_> {
    fn default() -> Self {
        PairOptions {
            tables: &[],
            settings: "",
            engine: Engine::Missing,
            on_one_server: false,
            database: "DEFAULT CHARSET utf8mb4",
            server: ServerOptions::default(),
        }
    }
}

/// A server that writes all that it is told into its files.
fn talkative() -> ServerOptions {
    ServerOptions {
        general_log: true,
        binlog: Some(Binlog::Row),
        flush_log_at_commit: 1,
        ..ServerOptions::default()
    }
}

/// What both say to a statement.
#[derive(Clone, Debug)]
pub struct Said {
    /// The plain server.
    pub plain: String,
    /// The proxy.
    pub protected: String,
}

impl Said {
    /// The proxy has refused it.
    pub fn is_refused(&self) -> bool {
        self.protected.contains(" OS1")
    }
}

impl Pair {
    /// With the plain server as the scratch engine, and tables whose texts are equal in any case.
    pub fn start(kind: Kind, tables: &[&str]) -> Option<Pair> {
        let options = PairOptions {
            tables,
            engine: Engine::Plain,
            database: "DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
            server: talkative(),
            ..PairOptions::default()
        };
        Self::start_with(kind, options)
    }

    /// With or without a scratch engine of its own, and tables that are created in the same words.
    pub fn of(kind: Kind, with_engine: bool, tables: &[&str]) -> Option<Pair> {
        let options = PairOptions {
            engine: match with_engine {
                true => Engine::Own,
                false => Engine::Missing,
            },
            ..PairOptions::default()
        };
        let mut pair = Self::start_with(kind, options)?;
        for table in tables {
            pair.same(table);
        }
        Some(pair)
    }

    /// With a scratch engine of its own. Semicolons end the definitions.
    pub fn with_engine(kind: Kind, tables: &str) -> Option<Pair> {
        Self::with_settings(kind, tables, "")
    }

    /// The same, with settings of the proxy.
    pub fn with_settings(kind: Kind, tables: &str, settings: &str) -> Option<Pair> {
        let tables = tables.split(';').filter(|table| !table.trim().is_empty());
        let options = PairOptions {
            tables: &tables.collect::<Vec<_>>(),
            settings,
            engine: Engine::Own,
            server: ServerOptions {
                flush_log_at_commit: 2,
                ..talkative()
            },
            ..PairOptions::default()
        };
        Self::start_with(kind, options)
    }

    /// A plain table and a protected one on one server, in databases `bare` and `app`.
    pub fn on_one_server(kind: Kind, table: &str, settings: &str) -> Option<Pair> {
        let options = PairOptions {
            tables: &[table],
            settings,
            on_one_server: true,
            database: "",
            server: ServerOptions {
                binlog: Some(Binlog::Row),
                ..ServerOptions::default()
            },
            ..PairOptions::default()
        };
        Self::start_with(kind, options)
    }

    /// `None`: there is no such server, or no proxy between.
    pub fn start_with(kind: Kind, options: PairOptions<'_>) -> Option<Pair> {
        if direct_mode() {
            return None;
        }
        let behind = Server::start(kind, options.server)?;
        let beside = match options.on_one_server {
            true => None,
            false => Some(Lent::of(kind)?),
        };
        let own = match options.engine {
            Engine::Own => Some(Lent::of(kind)?),
            _ => None,
        };
        let plain_server: &Server = beside.as_deref().unwrap_or(&behind);
        let engine = match options.engine {
            Engine::Missing => None,
            Engine::Plain => Some(plain_server),
            Engine::Own => own.as_deref(),
        };
        let engine = engine.map(|server| {
            let socket = server.socket().display().to_string();
            format!("[scratch]\nsocket = \"{socket}\"\n")
        });
        let settings = options.settings;
        let (settings, sections) = settings.split_at(settings.find('[').unwrap_or(settings.len()));
        let proxy = Proxy::start_with(
            &behind,
            ProxyOptions {
                settings: settings.into(),
                tables: engine.unwrap_or_default() + sections,
                ..ProxyOptions::default()
            },
        );
        let bare = if beside.is_some() { "app" } else { "bare" };
        for (server, name) in [(plain_server, bare), (&behind, "app")] {
            let create = format!("CREATE DATABASE {name} {}", options.database);
            server.connect().must(&create);
        }
        let mut pair = Pair {
            plain: Session::open(plain_server.port(), "root", "", Some(bare)),
            protected: proxy.connect_to("app"),
            proxy,
            behind,
            beside,
            engine: own,
            findings: Findings::default(),
        };
        for table in options.tables {
            pair.create(table);
        }
        Some(pair)
    }

    /// The plain server.
    pub fn beside(&self) -> &Server {
        self.beside.as_deref().unwrap_or(&self.behind)
    }

    /// The scratch engine, where it is a server of its own.
    pub fn engine(&self) -> &Server {
        self.engine.as_deref().expect("an engine of its own")
    }

    /// To end it and to start it anew.
    pub fn engine_mut(&mut self) -> &mut Server {
        self.engine.as_deref_mut().expect("an engine of its own")
    }

    /// Both sessions, the plain one first.
    pub fn sessions(&mut self) -> [&mut Session; 2] {
        [&mut self.plain, &mut self.protected]
    }

    /// Creates a table on both. `{words}` stands for the protection of a column.
    pub fn create(&mut self, table: &str) {
        let (definition, bare) = with_and_without_protection(table);
        self.plain.must(&bare);
        self.protected.must(&definition);
    }

    /// With rows in the tables.
    pub fn filled(mut self, rows: &[&str]) -> Self {
        for row in rows {
            self.run(row);
        }
        self
    }

    /// Runs statements that must succeed on both, whatever they answer.
    pub fn run(&mut self, sql: &str) {
        for session in self.sessions() {
            session.must(sql);
        }
    }

    /// Runs a statement that must succeed on both, with the same counts; returns how many rows it
    /// has changed.
    pub fn both(&mut self, sql: &str) -> u64 {
        let (a, b) = (self.plain.must(sql), self.protected.must(sql));
        let seen = |o: &Outcome| (o.affected, o.insert_id, o.warnings);
        assert_eq!(seen(&a), seen(&b), "{sql}");
        a.affected
    }

    /// Fails on both, with the same number, which is returned.
    pub fn same_error(&mut self, sql: &str) -> u16 {
        let (a, b) = (self.plain.must_fail(sql), self.protected.must_fail(sql));
        assert_eq!(a, b, "{sql}");
        a
    }

    /// Nothing of the secret is in the server's files, logs among them.
    pub fn nothing_leaked(&mut self) {
        let patterns = Pattern::of_text(SECRET);
        self.behind.shutdown();
        for file in self.behind.data_files() {
            let bytes = written_in(&file);
            let found = find_all(&patterns, &bytes);
            assert!(found.is_empty(), "{}: {found:?}", file.display());
        }
        self.proxy.assert_healthy();
    }

    /// Ends the server behind the proxy. None of the texts is in its files or in the proxy's log.
    pub fn assert_no_trace_of(&mut self, texts: &[&str]) {
        let log = self.proxy.log();
        self.behind.shutdown();
        self.behind.assert_no_trace_of(texts);
        for text in texts {
            assert!(!log.contains(text), "{text} in the proxy's log");
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.proxy.assert_healthy();
            assert!(self.findings.are_told(), "compared, and not concluded");
        }
    }
}

/// With every word that a client reads.
impl Pair {
    /// What both say. `{words}` stands for the protection of a column.
    pub fn say(&mut self, sql: &str) -> Said {
        let (protected, plain) = with_and_without_protection(sql);
        Said {
            plain: words_of(self.plain.run(&plain)),
            protected: words_of(self.protected.run(&protected)),
        }
    }

    /// What both say to a prepared statement of the binary protocol.
    pub fn execute(&mut self, sql: &str) -> Said {
        Said {
            plain: words_of_rows(self.plain.conn().exec(sql, ())),
            protected: words_of_rows(self.protected.conn().exec(sql, ())),
        }
    }

    /// Both say the same, which is returned.
    pub fn same(&mut self, sql: &str) -> String {
        let said = self.say(sql);
        assert_eq!(said.plain, said.protected, "{sql}");
        said.protected
    }

    /// Both say the same, or it is refused: `false`.
    pub fn same_or_refused(&mut self, sql: &str) -> bool {
        let said = self.say(sql);
        if !said.is_refused() {
            assert_eq!(said.plain, said.protected, "{sql}");
        }
        !said.is_refused()
    }

    /// Both say the same, or it is refused, `false`, and the plain server is spared it.
    pub fn same_if_done(&mut self, sql: &str) -> bool {
        let (protected, plain) = with_and_without_protection(sql);
        let protected = words_of(self.protected.run(&protected));
        let said = Said {
            plain: String::new(),
            protected,
        };
        if said.is_refused() {
            return false;
        }
        assert_eq!(words_of(self.plain.run(&plain)), said.protected, "{sql}");
        true
    }

    /// The same of a statement of the binary protocol.
    pub fn same_if_done_with(&mut self, sql: &str, parameters: &[Value]) -> bool {
        let params = || Params::Positional(parameters.to_vec());
        let said = Said {
            plain: String::new(),
            protected: words_of_rows(self.protected.conn().exec(sql, params())),
        };
        if said.is_refused() {
            return false;
        }
        let plain = words_of_rows(self.plain.conn().exec(sql, params()));
        assert_eq!(plain, said.protected, "{sql} {parameters:?}");
        true
    }
}

/// Without words.
impl Pair {
    /// Rows, names, types and counts are the same; in the binary protocol, too.
    pub fn same_result(&mut self, sql: &str) {
        self.same_result_with(sql, &[]);
        self.same_result_of_text(sql);
    }

    /// The same in the text protocol alone.
    pub fn same_result_of_text(&mut self, sql: &str) {
        let (a, b) = (self.plain.must(sql), self.protected.run(sql));
        let b = b.unwrap_or_else(|e| panic!("{sql}\n→ {e}"));
        assert_same_result(sql, &a, &b);
    }

    /// The same with parameters.
    pub fn same_result_with(&mut self, sql: &str, parameters: &[Value]) {
        let params = || match parameters {
            [] => Params::Empty,
            values => Params::Positional(values.to_vec()),
        };
        let a = self.plain.execute(sql, params()).expect(sql);
        let b = self.protected.execute(sql, params());
        let b = b.unwrap_or_else(|e| panic!("prepared: {sql}\n→ {e}"));
        assert_same_result(sql, &a, &b);
    }

    /// Rows, names and types are the same with parameters, and rows with the same words in the
    /// text. Returns how many rows there are.
    pub fn same_rows(&mut self, sql: &str, parameters: &[&str]) -> usize {
        self.compare_rows(sql, parameters, false)
    }

    /// The same, in any order unless the statement sorts them.
    pub fn same_rows_in_any_order(&mut self, sql: &str, parameters: &[&str]) -> usize {
        self.compare_rows(sql, parameters, !sql.contains("ORDER BY"))
    }

    fn compare_rows(&mut self, sql: &str, parameters: &[&str], in_any_order: bool) -> usize {
        let rows = |outcome: &Outcome| -> Vec<Vec<Vec<Value>>> {
            let mut sets = rows_of(outcome);
            if in_any_order {
                let sorted = |rows: &mut Vec<Vec<Value>>| rows.sort_by_key(|r| format!("{r:?}"));
                sets.iter_mut().for_each(sorted);
            }
            sets
        };
        let values: Vec<Value> = parameters.iter().map(|p| Value::from(*p)).collect();
        let params = || Params::Positional(values.clone());
        let a = self.plain.execute(sql, params()).expect(sql);
        let b = self.protected.execute(sql, params());
        let b = b.unwrap_or_else(|e| panic!("{sql} {parameters:?}: {e}"));
        assert_eq!(shape_of(&a), shape_of(&b), "{sql}");
        assert_eq!(rows(&a), rows(&b), "{sql} {parameters:?}");
        let count = a.sets.last().map_or(0, |set| set.rows.len());
        let mut parts = sql.split('?');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for (part, value) in parts.zip(parameters) {
            let quoted = value.replace('\\', "\\\\").replace('\'', "''");
            text += &format!("'{quoted}'{part}");
        }
        let (a, b) = (self.plain.must(&text), self.protected.must(&text));
        assert_eq!(rows(&a), rows(&b), "{text}");
        count
    }
}

fn shape_of(outcome: &Outcome) -> Vec<(String, ::mysql::consts::ColumnType)> {
    let columns = outcome.sets.iter().flat_map(|set| &set.columns);
    columns.map(|c| (c.0.clone(), c.1)).collect()
}

fn rows_of(outcome: &Outcome) -> Vec<Vec<Vec<Value>>> {
    outcome.sets.iter().map(|set| set.rows.clone()).collect()
}

fn assert_same_result(sql: &str, a: &Outcome, b: &Outcome) {
    assert_eq!(shape_of(a), shape_of(b), "{sql}");
    assert_eq!(rows_of(a), rows_of(b), "{sql}");
    assert_eq!((a.affected, a.warnings), (b.affected, b.warnings), "{sql}");
}

fn words_of(done: Result<Outcome, Failure>) -> String {
    match done {
        Ok(done) => {
            let names = |set: &ResultSet| {
                let names = set.columns.iter().map(|(name, ..)| name.as_str());
                names.collect::<Vec<_>>().join(", ")
            };
            let names: Vec<String> = done.sets.iter().map(names).collect();
            format!(
                "[{}] {:?} {} rows, {} warnings",
                names.join("; "),
                done.text(),
                done.affected,
                done.warnings
            )
        }
        Err(failure) => format!("{} {}", failure.code, failure.message),
    }
}

fn words_of_rows(rows: ::mysql::Result<Vec<::mysql::Row>>) -> String {
    match rows {
        Ok(rows) => {
            let rows = rows.into_iter().map(::mysql::Row::unwrap);
            format!("{:?}", rows.collect::<Vec<Vec<Value>>>())
        }
        Err(error) => {
            let failure = Failure::from(error);
            format!("{} {}", failure.code, failure.message)
        }
    }
}

/// The definition for the proxy and the one for a plain server: `{eq}`, or with a tenant
/// `{eq| KEY BY column}`.
pub fn with_and_without_protection(create: &str) -> (String, String) {
    let (mut definition, mut bare) = (String::new(), String::new());
    for part in create.split_inclusive('}') {
        let (text, words) = part.split_once('{').unwrap_or((part, ""));
        definition += text;
        bare += text;
        if let Some(words) = words.strip_suffix('}') {
            let (words, tenant) = words.split_once('|').unwrap_or((words, ""));
            definition += &format!("ENCRYPTED FOR ({words}){tenant}");
        }
    }
    (definition, bare)
}
