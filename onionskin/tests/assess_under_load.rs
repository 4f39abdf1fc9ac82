//! The recommendations of `onionskin assess queries`, applied by `onionskin migrate` under the load
//! that they were made from.
//!
//! An application works on plain tables, through a proxy that observes it. The policy that comes
//! out is the one that was made by hand. Then the recommended commands run as they are printed, one
//! after the other, while the application goes on. What it reads and changes by values of its own
//! is compared with a plain twin of its database, and so are all rows at the end. Nothing is
//! refused, before, meanwhile or afterwards. Deadlocks that clients of plain servers try again as
//! well are counted. A join of two columns that become protected one after the other needs a
//! scratch engine between the commands, as the report says.

#[path = "assess_queries/applications.rs"]
mod applications;
#[path = "assess_under_load/load.rs"]
mod load;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::{Command, Stdio},
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use applications::{ACCOUNTS, Application, BENCHMARK, SHOP, filled};
use load::{BEFORE, Client, LATER, Load, PLACE, PLAIN};
use onionskin_assess::queries::QueriesReport;
use onionskin_testkit::*;

on_both_servers!(accounts_and_sessions, a_benchmark, a_shop);

/// Rows of each large table, before anything happens.
const ROWS: i64 = 1_500;
const CLIENTS: u64 = 3;

/// Rows that are there before: a table's columns, and one of many rows.
type Seeds = &'static [(&'static str, &'static str)];

fn accounts_and_sessions(kind: Kind) {
    let seeds: Seeds = &[
        (
            "auth_user",
            "({n}, CONCAT('password-', {n}, '.@@'), NULL, 0, CONCAT('user-', {n}, '.@@'), CONCAT('first-', {n}, '.@@'), \
             CONCAT('last-', {n}, '.@@'), CONCAT('mail-', {n}, '@example.org@@'), 0, {n} % 2, '2025-01-01')",
        ),
        (
            "django_admin_log",
            "({n}, '2025-01-01', {n}, CONCAT('user-', {n}, '.@@'), 1, '', 1, {n})",
        ),
        (
            "django_session",
            "(CONCAT('key-', {n}, '.@@'), CONCAT('data-', {n}, '.@@'), '2035-01-01')",
        ),
    ];
    UnderLoad::of(kind, &ACCOUNTS, seeds).run();
}

fn a_benchmark(kind: Kind) {
    let seeds: Seeds = &[(
        "sbtest1",
        "({n}, {n}, CONCAT('c-', {n}, '.@@'), CONCAT('pad-', {n}, '.@@'))",
    )];
    let mut benchmark = UnderLoad::of(kind, &BENCHMARK, seeds);
    benchmark.has_sysbench = true;
    benchmark.run();
}

fn a_shop(kind: Kind) {
    let seeds: Seeds = &[
        (
            "customers",
            "({n}, CONCAT('name-', {n}, '.@@'), CONCAT('mail-', {n}, '@example.org@@'), \
             '1950-01-01' + INTERVAL {n} DAY, 'Ulm')",
        ),
        (
            "orders",
            "({n}, CONCAT('mail-', {n}, '@example.org@@'), '2025-01-01', {n} / 10, CONCAT('note-', {n}, '.@@'))",
        ),
    ];
    UnderLoad::of(kind, &SHOP, seeds).run();
}

struct UnderLoad {
    kind: Kind,
    application: &'static Application,
    seeds: Seeds,
    /// The real one works beside it, on rows of its own.
    has_sysbench: bool,
}

impl UnderLoad {
    fn of(kind: Kind, application: &'static Application, seeds: Seeds) -> Self {
        Self {
            kind,
            application,
            seeds,
            has_sysbench: false,
        }
    }

    fn run(&self) {
        if direct_mode() {
            return;
        }
        let Some(mut server) = logging_server(self.kind, &[]) else {
            return;
        };
        self.fill(&server);
        self.plaintext_is_found(&server);
        let load = Load::default();
        let mut clients = Clients::new(&load, self);

        let folder = tempfile::Builder::new().prefix("os-load-").tempdir();
        let folder = folder.expect("a temporary folder");
        let observed = folder.path().join("observed.json");
        self.observe(&server, &mut clients, &observed);
        let report = self.recommended(&server, &observed);

        // What is refused between the commands runs on a scratch engine.
        let engine = report.between().next().and_then(|_| self.engine());
        let engine_at = engine.as_ref().map(|engine| {
            let socket = engine.socket();
            format!("\n[scratch]\nsocket = \"{}\"\n", socket.display())
        });
        let options = ProxyOptions {
            settings: "like_index = true\ncontrol = \"control.sock\"".into(),
            tables: report.policy.join("\n") + &engine_at.unwrap_or_default(),
            ..ProxyOptions::default()
        };
        let mut proxy = Proxy::start_with(&server, options);
        clients.connect(&server, &proxy);
        self.beside(&load, clients, &proxy, || {
            for command in &report.commands {
                self.is_done_under_load(&load, &proxy, command);
            }
            self.plaintext_goes(&server, &proxy, &report.commands);
            load.is_later.store(true, Ordering::Relaxed);
            let before = load.count();
            wait_until("the application goes on", Duration::from_secs(30), || {
                load.count() > before + 300
            });
        });

        protected_as_recommended(&report, &proxy);
        self.rows_are_the_twins(&server, &proxy);
        proxy.assert_healthy();
        proxy.terminate();
        server.shutdown();
        server.assert_no_trace_of(&[LATER]);
        let tables = in_tables(&server, BEFORE);
        assert!(tables.is_empty(), "plaintext in {tables:?}");
    }

    fn engine(&self) -> Option<Server> {
        Server::start(self.kind, ServerOptions::default())
    }

    /// Both databases, with the same rows.
    fn fill(&self, server: &Server) {
        let mut root = server.connect();
        for (database, marker) in [("app", BEFORE), ("twin", PLAIN)] {
            root.must(&format!("CREATE DATABASE {database}"));
            root.must(&format!("USE {database}"));
            for sql in self.application.tables.iter().chain(self.application.rows) {
                root.must(sql);
            }
            for (table, row) in self.seeds {
                let numbers: Vec<i64> = (10..10 + ROWS).collect();
                for numbers in numbers.chunks(500) {
                    let rows = numbers.iter().map(|n| filled(row, |_| n.to_string()));
                    let rows: Vec<String> = rows.collect();
                    let insert = format!("INSERT INTO {table} VALUES {}", rows.join(", "));
                    root.must(&insert.replace(PLACE, marker));
                }
            }
            for table in self.application.names() {
                root.must(&format!("ANALYZE TABLE {table}"));
            }
        }
    }

    /// What is looked for in the end can be found.
    fn plaintext_is_found(&self, server: &Server) {
        let mut root = server.connect();
        for (table, _) in self.seeds {
            root.must(&format!("FLUSH TABLES app.{table} FOR EXPORT"));
            root.must("UNLOCK TABLES");
        }
        assert_eq!(in_tables(server, BEFORE).len(), self.seeds.len());
    }

    /// The application works through a proxy that protects nothing.
    fn observe(&self, server: &Server, clients: &mut Clients<'_>, file: &Path) {
        let options = ProxyOptions {
            arguments: vec!["--observe".into(), file.to_str().expect("text").into()],
            ..ProxyOptions::default()
        };
        let mut proxy = Proxy::start_with(server, options);
        clients.connect(server, &proxy);
        // Some pieces are done each fifth time, each as a text and prepared.
        for _ in 0..10 {
            clients.all.iter_mut().for_each(Client::work_once);
        }
        clients.all.clear();
        if self.has_sysbench {
            for (script, is_prepared) in SYSBENCH {
                sysbench(&proxy, script, is_prepared).events(20).run("run");
            }
        }
        proxy.terminate();
    }

    /// The policy is the one that was made by hand, and each statement is carried.
    fn recommended(&self, server: &Server, observed: &Path) -> QueriesReport {
        let out = observed.with_file_name("report");
        let output = Command::new(onionskin_program())
            .args(["assess", "queries", "--database", "app", "--small", "0"])
            .args(["--backend", &format!("unix:{}", server.socket().display())])
            .args(["--like-index", "--without-engine"])
            .args(["--columns", self.application.columns])
            .arg("--statements")
            .arg(observed)
            .arg("--out")
            .arg(&out)
            .env_remove("ONIONSKIN_PASSWORD")
            .stdin(Stdio::null())
            .output()
            .expect("onionskin runs");
        let json = fs::read_to_string(out.join("report.json"));
        let json = json.unwrap_or_else(|_| panic!("{output:?}"));
        let report: QueriesReport = serde_json::from_str(&json).expect("a report");
        assert_eq!(report.policy, self.application.policy, "{json}");
        assert_eq!(report.refused().count(), 0);
        let different: BTreeSet<_> = report.shapes.iter().map(|shape| &shape.shape).collect();
        assert!(different.len() >= self.application.statements(self.kind).len());
        let wide: BTreeSet<_> = report.wide().map(|shape| &shape.shape).collect();
        assert_eq!(wide.len(), self.application.wide, "{wide:?}");
        let between: BTreeSet<_> = report.between().map(|(shape, _)| &*shape.shape).collect();
        assert!(between.iter().eq(self.application.between), "{between:?}");
        let adds_keys = |command: &&String| command.contains("onionskin_key");
        let keys: Vec<_> = report.commands.iter().filter(adds_keys).collect();
        let is_expected = |command: &&String| command.contains("`django_session` ADD COLUMN ");
        assert_eq!(keys.len(), self.application.keys_added, "{keys:?}");
        assert!(keys.iter().all(is_expected), "{keys:?}");
        let not_read = (&report.skipped, &report.left_out);
        assert_eq!(not_read, (&vec![], &vec![]));
        report
    }

    /// Runs `work` while the application does, on this thread: programs end with the thread that
    /// has started them.
    fn beside(&self, load: &Load, clients: Clients<'_>, proxy: &Proxy, work: impl FnOnce()) {
        thread::scope(|scope| {
            let mut at_work = Vec::new();
            for mut client in clients.all {
                at_work.push(scope.spawn(move || client.work()));
            }
            let scripts = SYSBENCH.iter().filter(|_| self.has_sysbench);
            for (script, is_prepared) in scripts {
                at_work.push(scope.spawn(|| {
                    let mut transactions = 0;
                    while !load.is_over.load(Ordering::Relaxed) {
                        let run = sysbench(proxy, script, *is_prepared).seconds(1);
                        transactions += run.run("run").transactions;
                    }
                    transactions
                }));
            }
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            load.is_over.store(true, Ordering::Relaxed);
            let done: Vec<_> = at_work.into_iter().map(|thread| thread.join()).collect();
            let done: Result<Vec<u64>, _> = done.into_iter().collect();
            let done = done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            if let Err(panic) = ended {
                std::panic::resume_unwind(panic);
            }
            announce(&format!(
                "{}: rounds {done:?}, {} statements, {} transactions again",
                self.kind.name(),
                load.count(),
                load.again.load(Ordering::Relaxed)
            ));
            assert!(done.iter().all(|done| *done > 0));
        });
    }

    /// As it is printed: programs in the configuration's folder, statements through the proxy.
    fn is_done_under_load(&self, load: &Load, proxy: &Proxy, command: &str) {
        let (begun, before) = (Instant::now(), load.count());
        match command.starts_with("onionskin ") {
            false => drop(proxy.connect_to("app").must(command)),
            true => {
                let program = onionskin_program();
                let programs = program.parent().expect("a folder").display();
                let path = std::env::var("PATH").unwrap_or_default();
                let output = Command::new("sh")
                    .args(["-c", command])
                    .current_dir(proxy.folder())
                    .env("PATH", format!("{programs}:{path}"))
                    .env_remove("ONIONSKIN_PASSWORD")
                    .stdin(Stdio::null())
                    .output()
                    .expect("a shell runs");
                let said = [output.stdout, output.stderr].concat();
                let said = String::from_utf8_lossy(&said);
                assert!(output.status.success(), "{command}\n{said}");
                assert!(
                    said.contains(" 0 repaired"),
                    "rows differed: {command}\n{said}"
                );
            }
        }
        // One of each client may have begun before.
        let meanwhile = load.count() - before;
        let time = begun.elapsed().as_secs_f64();
        announce(&format!(
            "{}: {meanwhile} statements in {time:.2} s of {command}",
            self.kind.name()
        ));
        if command.starts_with("onionskin ") {
            assert!(
                meanwhile > CLIENTS,
                "nothing ran meanwhile: {command} ({time} s)"
            );
        }
    }

    /// The old tables are dropped, and from now on [protect] holds.
    fn plaintext_goes(&self, server: &Server, proxy: &Proxy, commands: &[String]) {
        let mut root = server.connect();
        let old = root.text(
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'app' \
             AND TABLE_NAME LIKE '%\\_onionskin\\_old'",
        );
        let old = old.expect("a list");
        let migrated = commands.iter().filter(|c| c.starts_with("onionskin "));
        assert_eq!(old.lines().count(), migrated.count());
        for table in old.lines() {
            root.must(&format!("DROP TABLE app.{table}"));
        }
        let path = proxy.folder().join("onionskin.toml");
        let config = fs::read_to_string(&path).expect("a configuration");
        fs::write(&path, format!("enforce = true\n{config}")).expect("written");
        let (succeeded, said) = proxy.command(&["reload"]);
        assert!(succeeded, "{said}");
    }

    /// Read through the proxy, rows and definitions are what they are at the twin.
    fn rows_are_the_twins(&self, server: &Server, proxy: &Proxy) {
        let mut later = 0;
        let (mut app, mut twin) = (proxy.connect_to("app"), server.connect());
        twin.must("USE twin");
        for table in self.application.names() {
            // sysbench works on those of few digits, and puts back what it deletes
            let own = match self.has_sysbench {
                true => " WHERE id > 900000",
                false => "",
            };
            let select = format!("SELECT * FROM {table}{own}");
            let [is, should] = [&mut app, &mut twin].map(|session| {
                let rows = session.text(&select).expect("rows").replace(BEFORE, PLAIN);
                later += rows.matches(LATER).count();
                let rows = rows.replace(LATER, PLAIN);
                let mut rows: Vec<&str> = rows.lines().collect();
                rows.sort_unstable();
                rows.join("\n")
            });
            assert!(!should.is_empty());
            assert_same_rows(&is, &should, table);
            let [is, should] = [&mut app, &mut twin].map(|session| definition(session, table));
            assert_eq!(is, should, "{table}");
        }
        assert!(later > 0, "nothing was written after the last command");
        if self.has_sysbench {
            let rows = "SELECT COUNT(*) FROM sbtest1 WHERE id BETWEEN 10 AND 900000";
            assert_eq!(app.text(rows).expect("a number"), ROWS.to_string());
        }
    }
}

/// A table's definition, without the next number and the order of its lines.
fn definition(session: &mut Session, table: &str) -> Vec<String> {
    let shown = session.must(&format!("SHOW CREATE TABLE {table}")).text();
    let without = |line: &str| {
        let words = line.trim_end_matches(',').split_whitespace();
        let words: Vec<&str> = words
            .filter(|w| !w.starts_with("AUTO_INCREMENT="))
            .collect();
        words.join(" ")
    };
    let mut lines: Vec<String> = shown.lines().map(without).collect();
    // what a migration finds rows by, where the table has no plain key
    lines.retain(|line| !line.contains("`onionskin_key`"));
    lines.sort_unstable();
    lines
}

/// Tables of the application in whose files a text stands.
fn in_tables(server: &Server, text: &str) -> Vec<String> {
    let patterns = Pattern::of_text(text);
    let files = fs::read_dir(server.data_dir().join("app")).expect("a folder");
    let files = files.flatten().map(|file| file.path());
    files
        .filter(|file| !find_all(&patterns, &written_in(file)).is_empty())
        .map(|file| file.display().to_string())
        .collect()
}

/// By what the proxy says of them, the columns have the capabilities of the policy and no others.
fn protected_as_recommended(report: &QueriesReport, proxy: &Proxy) {
    type Columns = BTreeMap<String, Vec<String>>;
    let words = |list: &[String]| {
        let mut words = list.to_vec();
        words.sort_unstable();
        words
    };
    let policy: toml::Table = report.policy.join("\n").parse().expect("TOML");
    let mut should: BTreeMap<String, Columns> = BTreeMap::new();
    for (table, columns) in policy["protect"].as_table().expect("tables") {
        let columns: Columns = columns.clone().try_into().expect("lists of capabilities");
        should.insert(table.clone(), columns);
    }
    let output = proxy.output(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut is: BTreeMap<String, Columns> = BTreeMap::new();
    for table in status["protected"].as_array().expect("tables") {
        let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
        let columns = table["columns"].as_array().expect("columns").iter();
        let columns = columns.map(|column| {
            let list = column["capabilities"].as_array().expect("a list").iter();
            (text(&column["name"]), list.map(text).collect())
        });
        let name = format!("{}.{}", text(&table["database"]), text(&table["name"]));
        is.insert(name, columns.collect());
    }
    for columns in should.values_mut().chain(is.values_mut()) {
        columns.values_mut().for_each(|list| *list = words(list));
    }
    assert_eq!(is, should);
    let refused = status["refused"].as_array().expect("a list");
    assert!(refused.is_empty(), "{refused:?}");
}

/// Real sysbench: a script, and whether its statements are prepared.
const SYSBENCH: [(&str, bool); 3] = [
    ("oltp_read_write", true),
    ("oltp_read_write", false),
    ("select_random_ranges", false),
];

fn sysbench(proxy: &Proxy, script: &str, is_prepared: bool) -> Sysbench {
    Sysbench::new(proxy.port(), script)
        .database("app")
        .tables(1, ROWS as u32)
        .threads(1)
        .prepared(is_prepared)
}

/// All clients.
struct Clients<'a> {
    load: &'a Load,
    of: &'a UnderLoad,
    all: Vec<Client<'a>>,
    /// How often they were connected: each time they begin with rounds of their own.
    times: u64,
}

impl<'a> Clients<'a> {
    fn new(load: &'a Load, of: &'a UnderLoad) -> Self {
        Self {
            load,
            of,
            all: Vec::new(),
            times: 0,
        }
    }

    /// New sessions through a proxy, and at the twin.
    fn connect(&mut self, server: &Server, proxy: &Proxy) {
        let client = |number| {
            let mut twin = server.connect();
            twin.must("USE twin");
            Client {
                load: self.load,
                application: self.of.application,
                kind: self.of.kind,
                number,
                app: proxy.connect_to("app"),
                twin,
                round: self.times * 1_000,
                marker: BEFORE,
                ids: BTreeMap::new(),
            }
        };
        self.all = (0..CLIENTS).map(client).collect();
        self.times += 1;
    }
}
