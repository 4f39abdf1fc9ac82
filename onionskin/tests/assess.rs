//! `onionskin assess` on real servers: what it finds open, what encryption closes, what an account
//! with few rights is told, and what hostile names and answers make of it.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use onionskin_assess::{
    data::{
        ColumnFinding, DataReport,
        kind::{Confidence, Kind as Holds},
    },
    finding::{Finding, Severity, State},
    server::ServerReport,
};
use onionskin_rowstream::client::{Address, Client, ClientError, ConnectOptions};
use onionskin_testkit::*;
use tempfile::TempDir;

on_both_servers!(
    a_plain_server_lies_open,
    encryption_closes_what_it_covers,
    an_account_with_few_rights_is_told_so,
    large_answers_end_the_connection,
    lies_end_in_a_report_or_an_error,
    personal_data_is_found_and_its_policy_protects_it,
    many_tables_take_little_memory,
);

fn folder() -> TempDir {
    tempfile::Builder::new()
        .prefix("os-assess-")
        .tempdir()
        .expect("a temporary folder")
}

fn program(what: &str, backend: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onionskin"));
    command
        .args(["assess", what, "--backend", backend])
        .env_remove("ONIONSKIN_PASSWORD")
        .current_dir("/")
        .stdin(Stdio::null());
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// Through the Unix socket, where passwords need no TLS.
fn socket(server: &Server) -> String {
    format!("unix:{}", server.socket().display())
}

/// Runs it with a folder for its report.
fn reported(mut command: Command) -> (TempDir, PathBuf, Output) {
    let folder = folder();
    let out = folder.path().join("report");
    command.arg("--out").arg(&out);
    let output = command.output().expect("onionskin runs");
    (folder, out, output)
}

/// A report, by the codes of its findings.
struct Assessed {
    findings: BTreeMap<String, Finding>,
    report: ServerReport,
    out: PathBuf,
    _folder: TempDir,
}

impl Assessed {
    fn of(server: &Server, arguments: &[&str], password: Option<&str>) -> Assessed {
        let mut command = program("server", &socket(server));
        command.args(["--pace", "2000"]).args(arguments);
        if let Some(password) = password {
            command.env("ONIONSKIN_PASSWORD", password);
        }
        let (_folder, out, output) = reported(command);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        let json = fs::read_to_string(out.join("report.json")).expect("a report");
        let report: ServerReport = serde_json::from_str(&json).expect("JSON as it is documented");
        assert_eq!(
            (report.format.as_str(), report.version),
            ("onionskin-assess-server", 1)
        );
        let findings = report
            .findings
            .iter()
            .map(|f| (f.code.clone(), f.clone()))
            .collect();
        Assessed {
            findings,
            report,
            out,
            _folder,
        }
    }

    fn get(&self, code: &str) -> &Finding {
        self.findings
            .get(code)
            .unwrap_or_else(|| panic!("no finding {code}"))
    }

    fn assert(&self, state: State, codes: &[&str]) {
        for code in codes {
            let finding = self.get(code);
            assert_eq!(finding.state, state, "{finding:#?}");
        }
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.out.join(name)).expect("a file of the report")
    }
}

const HOSTILE: &str = "<script>alert(1)</script>";

/// The report has no value in it, and its page loads nothing.
fn files_tell_no_value(found: &Assessed) {
    for name in ["report.html", "report.md", "report.json"] {
        let text = found.file(name);
        assert!(!text.contains("Wilhelmina"), "{name} tells a value");
        assert!(!text.contains('\u{1b}'), "{name} has an escape");
    }
    let page = found.file("report.html");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    for forbidden in [
        "<script", "http://", "https://", "src=", "url(", "@import", "<link",
    ] {
        assert!(!page.contains(forbidden), "the page has {forbidden}");
    }
}

fn a_plain_server_lies_open(kind: Kind) {
    let options = ServerOptions {
        general_log: true,
        binlog: Some(Binlog::Row),
        ..ServerOptions::default()
    };
    let Some(server) = Server::start(kind, options) else {
        return;
    };
    let mut root = server.connect();
    root.must("CREATE DATABASE app");
    let proxy = Proxy::start(&server, "");
    let mut client = proxy.connect_to("app");
    client.must(
        "CREATE TABLE patients (id INT PRIMARY KEY, name VARCHAR(40) ENCRYPTED FOR (eq), note TEXT ENCRYPTED FOR (), city VARCHAR(40))",
    );
    root.must("CREATE TABLE app.patients_onionskin_old (id INT PRIMARY KEY, name VARCHAR(40))");
    root.must("INSERT INTO app.patients_onionskin_old VALUES (1, 'Wilhelmina Canary')");
    root.must(&format!(
        "CREATE TABLE app.`{HOSTILE}` (id INT) ENGINE=MyISAM"
    ));
    root.must("CREATE TABLE app.`a\u{1b}[2J` (id INT) ENGINE=MyISAM");
    root.must("CREATE USER open@'%' IDENTIFIED BY ''");
    root.must("FLUSH TABLES app.patients_onionskin_old FOR EXPORT");
    root.must("UNLOCK TABLES");
    let values = folder();
    let file = values.path().join("values");
    fs::write(&file, "Wilhelmina Canary\nnobody has this\n").expect("written");
    let file = file.to_str().expect("text");

    let backups = folder();
    fs::write(backups.path().join("dump.sql"), "-- MySQL dump\n").expect("written");
    fs::write(backups.path().join("sealed"), b"\x89ONION\r\n and more").expect("written");
    let of_backups = backups.path().to_str().expect("text");

    let looks = [
        "--plant",
        "os_planted",
        "--search",
        file,
        "--backups",
        of_backups,
    ];
    let found = Assessed::of(&server, &looks, None);
    let open = &found.get("backups").evidence;
    assert_eq!(open, &["dump.sql: a dump, not encrypted"]);
    found.assert(
        State::Open,
        &[
            "tablespaces",
            "new-tables",
            "other-engines",
            "redo",
            "undo",
            "binary-log",
            "old-binary-logs",
            "general-log",
            "no-keys",
            "accounts-without-password",
            "accounts-from-anywhere",
            "accounts-definitions",
            "tls-optional",
            "plain-columns",
            "leftovers",
            "planted-text",
            "given-values",
        ],
    );
    found.assert(
        State::Closed,
        &[
            "no-protected-columns",
            "slow-log",
            "audit-plugins",
            "tls-this-connection",
        ],
    );
    found.assert(State::NotHere, &["key-file", "replication-tls"]);
    let tables = &found.get("tablespaces").evidence;
    assert!(
        tables
            .iter()
            .any(|line| line == "app/patients: not encrypted"),
        "{tables:?}"
    );
    assert_eq!(found.get("leftovers").severity, Some(Severity::High));
    assert_eq!(found.report.tables.len(), 1);
    let table = &found.report.tables[0];
    assert_eq!(table.name, "app.patients");
    assert_eq!(table.sealed, ["name (eq)", "note"]);
    assert_eq!(table.plain, ["id", "city"]);

    let places = found.get("planted-text").evidence.join("\n");
    for place in ["os_planted/planted.ibd", "binlog.000001", "general.log"] {
        assert!(places.contains(place), "{place}: {places}");
    }
    let left = "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'os_planted'";
    assert_eq!(root.text(left).expect("a count"), "0", "it was dropped");
    let values = found.get("given-values").evidence.join("\n");
    assert!(
        values.contains("patients_onionskin_old.ibd: the value of line 1"),
        "{values}"
    );
    assert!(!values.contains("line 2"), "{values}");

    files_tell_no_value(&found);

    // It is not planted over what is there, and nothing of that is dropped.
    let mut again = program("server", &socket(&server));
    let output = again
        .args(["--plant", "app"])
        .output()
        .expect("onionskin runs");
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    assert_eq!(
        root.text("SELECT COUNT(*) FROM app.patients_onionskin_old")
            .expect("there"),
        "1"
    );
}

#[test]
fn exit_codes_tell_errors_apart() {
    let folder = folder();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onionskin"));
        command
            .args(["assess", "server"])
            .args(arguments)
            .current_dir(folder.path());
        command
            .stdin(Stdio::null())
            .output()
            .expect("onionskin runs")
            .status
            .code()
    };
    assert_eq!(run(&[]), Some(2), "no server is named");
    assert_eq!(
        run(&["--backend", "127.0.0.1:1"]),
        Some(4),
        "nobody answers"
    );
    fs::write(folder.path().join("report.json"), "{}").expect("written");
    let out = folder.path().to_str().expect("text");
    assert_eq!(
        run(&["--backend", "127.0.0.1:1", "--out", out]),
        Some(2),
        "a report is there"
    );
}

/// What a server needs to encrypt everything that it can.
fn with_keys(kind: Kind, folder: &Path) -> ServerOptions {
    let mut options = ServerOptions {
        binlog: Some(Binlog::Row),
        ..ServerOptions::default()
    };
    let mut extra = |option: String| options.extra.push(option);
    match kind {
        Kind::MariaDb => {
            let keys = folder.join("keys");
            fs::write(&keys, format!("1;{}\n", "5a".repeat(32))).expect("written");
            fs::set_permissions(&keys, PermissionsExt::from_mode(0o600)).expect("permissions");
            extra("--plugin-load-add=file_key_management".into());
            extra(format!("--file-key-management-filename={}", keys.display()));
            for setting in [
                "innodb-encrypt-tables=FORCE",
                "innodb-encryption-threads=4",
                "innodb-encrypt-log=ON",
                "innodb-encrypt-temporary-tables=ON",
                "encrypt-tmp-disk-tables=ON",
                "encrypt-tmp-files=ON",
                "aria-encrypt-tables=ON",
                "encrypt-binlog=ON",
            ] {
                extra(format!("--{setting}"));
            }
        }
        Kind::MySql => {
            let (bin, plugins) = (folder.join("bin"), folder.join("plugin"));
            fs::create_dir(&bin).expect("a folder");
            fs::create_dir(&plugins).expect("a folder");
            let installed = checkout().join(".servers/mysql/usr");
            let name = "component_keyring_file.so";
            symlink(
                installed.join("lib/mysql/plugin").join(name),
                plugins.join(name),
            )
            .expect("a link");
            fs::write(
                bin.join("mysqld.my"),
                "{ \"components\": \"file://component_keyring_file\" }",
            )
            .expect("written");
            let keyring = folder.join("keys");
            let config = format!(
                "{{ \"path\": \"{}\", \"read_only\": false }}",
                keyring.display()
            );
            fs::write(plugins.join("component_keyring_file.cnf"), config).expect("written");
            let linked = bin.join("mysqld");
            symlink(installed.join("sbin/mysqld"), &linked).expect("a link");
            extra(format!("--plugin-dir={}", plugins.display()));
            for setting in [
                "default-table-encryption=ON",
                "innodb-redo-log-encrypt=ON",
                "innodb-undo-log-encrypt=ON",
                "binlog-encryption=ON",
            ] {
                extra(format!("--{setting}"));
            }
            let linked = linked.to_str().expect("text").to_owned();
            options.environment.push(("MYSQLD_PROGRAM".into(), linked));
        }
    }
    options
}

fn encryption_closes_what_it_covers(kind: Kind) {
    if kind == Kind::MySql && !checkout().join(".servers/mysql/.complete").exists() {
        return announce("skipped: MySQL could not be installed");
    }
    let keys = folder();
    let Some(server) = Server::start(kind, with_keys(kind, keys.path())) else {
        return;
    };
    let mut root = server.connect();
    root.must("CREATE DATABASE app");
    root.must("CREATE TABLE app.users (id INT PRIMARY KEY, name VARCHAR(40))");
    let found = Assessed::of(&server, &["--plant", "os_planted"], None);
    found.assert(
        State::Closed,
        &[
            "no-keys",
            "new-tables",
            "redo",
            "undo",
            "binary-log",
            "old-binary-logs",
            "planted-text",
        ],
    );
    let tables = found.get("tablespaces").evidence.join("\n");
    assert!(!tables.contains("app/users: not"), "{tables}");
    let place = found.get("key-file");
    assert_eq!(place.severity, Some(Severity::Low), "{place:#?}");
    assert!(place.evidence[0].contains("is a file"), "{place:#?}");

    // The same file, for everybody.
    let key = keys.path().join("keys");
    fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).expect("permissions");
    let found = Assessed::of(&server, &[], None);
    let place = found.get("key-file");
    assert_eq!(place.severity, Some(Severity::High), "{place:#?}");
    assert!(place.evidence[0].ends_with("644"), "{place:#?}");

    if kind == Kind::MySql {
        // The server's default is for new databases: this one had its own before.
        root.must("ALTER DATABASE app ENCRYPTION='N'");
        let open = Assessed::of(&server, &[], None);
        let found = open.get("new-tables");
        assert_eq!(found.state, State::Open, "{found:#?}");
        assert!(
            found.evidence[1].starts_with("database app: "),
            "{found:#?}"
        );
        root.must("CREATE TABLE app.later (id INT PRIMARY KEY)");
        let mend = found.mend.clone().expect("what closes it");
        root.must(&mend);
        let closed = Assessed::of(&server, &[], None);
        closed.assert(State::Closed, &["new-tables"]);
        let tables = closed.get("tablespaces").evidence.join("\n");
        assert!(tables.contains("app/later: not encrypted"), "{tables}");
    }

    // One table without encryption is told by its name.
    match kind {
        Kind::MariaDb => {
            root.must("SET GLOBAL innodb_encrypt_tables = OFF");
            root.must("CREATE TABLE app.plain (id INT PRIMARY KEY) ENCRYPTED=NO");
        }
        Kind::MySql => {
            root.must("CREATE TABLE app.plain (id INT PRIMARY KEY) ENCRYPTION='N'");
        }
    }
    let found = Assessed::of(&server, &[], None);
    let tables = found.get("tablespaces").evidence.join("\n");
    assert!(tables.contains("app/plain: not encrypted"), "{tables}");
}

/// Whatever is open stays open or becomes not visible. Nothing becomes fine by being hidden.
fn an_account_with_few_rights_is_told_so(kind: Kind) {
    let options = ServerOptions {
        binlog: Some(Binlog::Row),
        ..ServerOptions::default()
    };
    let Some(server) = Server::start(kind, options) else {
        return;
    };
    let mut root = server.connect();
    root.must("CREATE DATABASE app");
    root.must("CREATE DATABASE other");
    root.must("CREATE TABLE app.users (id INT PRIMARY KEY)");
    root.must("CREATE TABLE other.users_bak (id INT PRIMARY KEY) ENGINE=MyISAM");
    root.must("CREATE USER few@'%' IDENTIFIED BY 'few rights'");
    root.must("GRANT SELECT ON app.* TO few@'%'");
    let all = Assessed::of(&server, &[], None);
    let few = Assessed::of(&server, &["--user", "few"], Some("few rights"));
    for (code, finding) in &all.findings {
        let seen = few.get(code);
        let is_told = seen.state == finding.state || seen.state == State::NotVisible;
        assert!(
            is_told || finding.state == State::Closed && seen.state != State::Closed,
            "{code}: {:?} with all rights, {:?} with few",
            finding.state,
            seen.state
        );
    }
    few.assert(
        State::NotVisible,
        &[
            "tablespaces",
            "other-engines",
            "leftovers",
            "accounts-without-password",
            "accounts-definitions",
            "old-binary-logs",
            "replicas",
        ],
    );
    let needs = few
        .get("tablespaces")
        .needs
        .clone()
        .expect("what is missing");
    assert_eq!(needs, "GRANT PROCESS ON *.*");
    assert_eq!(
        few.get("leftovers").needs.as_deref(),
        Some("GRANT SELECT ON *.*")
    );
}

/// A server that is not trusted cannot fill this side's memory.
fn large_answers_end_the_connection(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let options = ConnectOptions {
        address: Address::Unix(server.socket()),
        user: "root".into(),
        password: String::new(),
        tls: None,
        trust: Default::default(),
        identity: None,
    };
    let connect = || {
        let mut client = Client::connect(&options).expect("logged in");
        client.set_largest_answer(10, 1 << 16);
        client
    };
    let rows = "SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 \
                UNION SELECT 8 UNION SELECT 9 UNION SELECT 10";
    let mut client = connect();
    assert_eq!(client.query(rows).expect("ten rows").len(), 10);
    let one_more = format!("{rows} UNION SELECT 11");
    assert!(matches!(
        client.query(&one_more),
        Err(ClientError::TooMuch { rows: 10, .. })
    ));
    assert!(
        client.query("SELECT 1").is_err(),
        "the connection has ended"
    );
    let half = "SELECT REPEAT('x', 40000)";
    assert!(connect().query(half).is_ok());
    for too_much in [
        format!("{half} UNION ALL {half}"),
        "SELECT REPEAT('x', 70000)".into(),
    ] {
        assert!(connect().query(&too_much).is_err(), "{too_much}");
    }
}

fn lies_end_in_a_report_or_an_error(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let rounds = if long_run() { 200 } else { 8 };
    for seed in 0..rounds {
        let liar = Liar::tcp(seed, server.port());
        liar.lie(20);
        let what = if seed % 2 == 0 { "server" } else { "data" };
        let mut command = program(what, &liar.address());
        if what == "data" {
            command.args(["--database", "mysql", "--pace", "100000"]);
        }
        let output = command.output().expect("onionskin runs");
        let code = output.status.code();
        assert!(
            matches!(code, Some(0 | 1 | 2 | 4)),
            "seed {seed}: {code:?}: {}",
            text(&output)
        );
        assert!(
            !text(&output).contains("panicked"),
            "seed {seed}: {}",
            text(&output)
        );
        assert!(!output.stdout.contains(&0x1b), "seed {seed}");
    }
}

/// A report of `assess data`, and its files as text.
fn personal(server: &Server, arguments: &[&str]) -> (Option<i32>, DataReport, String) {
    let mut command = program("data", &socket(server));
    command.args(["--pace", "1000"]).args(arguments);
    let (_folder, out, output) = reported(command);
    let file = |name: &str| {
        fs::read_to_string(out.join(name))
            .unwrap_or_else(|e| panic!("{name}: {e}: {}", text(&output)))
    };
    let report: DataReport =
        serde_json::from_str(&file("report.json")).expect("JSON as it is documented");
    assert_eq!(
        (report.format.as_str(), report.version),
        ("onionskin-assess-data", 1)
    );
    let all = [
        text(&output),
        file("report.html"),
        file("report.md"),
        file("report.json"),
    ]
    .concat();
    (output.status.code(), report, all)
}

fn find<'a>(report: &'a DataReport, column: &str, path: Option<&str>) -> &'a ColumnFinding {
    let is_it = |f: &&ColumnFinding| f.column == column && f.path.as_deref() == path;
    report
        .findings
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("{column} {path:?}: {:#?}", report.findings))
}

fn personal_data_is_found_and_its_policy_protects_it(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let mut root = server.connect();
    root.must("CREATE DATABASE app");
    let columns = "id INT AUTO_INCREMENT PRIMARY KEY, c1 VARCHAR(100), c2 BIGINT, `e\"mail` VARCHAR(100), doc JSON, \
                   amount INT, note TEXT, vorname VARCHAR(40)";
    root.must(&format!("CREATE TABLE app.users ({columns})"));
    // More rows than are read, so that they are read at several places.
    for _ in 0..40 {
        let row = "(NULL, 'wilhelmina.canary@example.org', 11144477735, 'x@example.org', \
                   '{\"contact\": {\"phones\": [\"+49 30 1234567\"]}, \"n\": 3}', 7, 'ok', 'Wilhelmina')";
        root.must(&format!(
            "INSERT INTO app.users VALUES {}",
            [row; 10].join(", ")
        ));
    }
    root.must(&format!("CREATE TABLE app.`{HOSTILE}` (email VARCHAR(40))"));
    root.must(
        "CREATE TABLE app.things (id INT PRIMARY KEY, status VARCHAR(10), amount DECIMAL(10,2))",
    );
    root.must("INSERT INTO app.things VALUES (1, 'new', 2.5), (2, 'paid', 7), (3, 'new', 1), (4, 'new', 2), (5, 'old', 3)");

    let (code, report, all) = personal(&server, &["--database", "app"]);
    assert_eq!(code, Some(1));
    assert_eq!(report.tables, 3);
    for (column, path, holds, confidence) in [
        ("c1", None, Holds::Email, Confidence::Certain),
        ("c2", None, Holds::National, Confidence::Certain),
        ("e\"mail", None, Holds::Email, Confidence::Certain),
        (
            "doc",
            Some("$.contact.phones[*]"),
            Holds::Phone,
            Confidence::Likely,
        ),
        ("vorname", None, Holds::Name, Confidence::Likely),
        ("email", None, Holds::Email, Confidence::Likely),
        ("note", None, Holds::FreeText, Confidence::Possible),
    ] {
        let found = find(&report, column, path);
        assert_eq!(
            (found.kind, found.confidence),
            (holds, confidence),
            "{found:#?}"
        );
    }
    assert_eq!(report.findings.len(), 7, "{:#?}", report.findings);
    assert!(
        (90..=110).contains(&(report.rows - 5)),
        "{} rows were read",
        report.rows
    );
    for value in ["canary", "11144477735", "1234567", "Wilhelmina"] {
        assert!(!all.contains(value), "the report tells {value}");
    }
    let page = all
        .split("<!DOCTYPE html>")
        .nth(1)
        .and_then(|page| page.split("</html>").next());
    let page = page.expect("the page is among the files");
    assert!(!page.contains("<script"), "a name is HTML");
    assert!(page.contains("&lt;script"), "the name is told");

    // The policy is one: with it, the same table is protected when it is made anew.
    let policy = report.policy();
    let of_users = policy.iter().skip_while(|line| !line.contains("app.users"));
    let policy: Vec<&str> = of_users.map(String::as_str).collect();
    let proxy = Proxy::start(&server, &policy.join("\n"));
    root.must("DROP TABLE app.users");
    proxy
        .connect_to("app")
        .must(&format!("CREATE TABLE users ({columns})"));
    let (_, again, _) = personal(&server, &["--database", "app"]);
    assert_eq!(again.sealed, 5, "{policy:#?}");
    assert!(
        (again.findings.iter()).all(|f| f.table != "app.users" || f.column == "note"),
        "{:#?}",
        again.findings
    );

    // A database that is not there, or not visible, is not one without personal data.
    let mut missing = program("data", &socket(&server));
    let output = missing
        .args(["--database", "absent"])
        .output()
        .expect("onionskin runs");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
}

/// In the long run ten thousand tables, else some hundred.
fn many_tables_take_little_memory(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let tables = if long_run() { 10_000 } else { 100 };
    let mut root = server.connect();
    root.must("CREATE DATABASE app");
    root.must("USE app");
    for n in 0..tables {
        root.must(&format!("CREATE TABLE t{n} (id INT PRIMARY KEY, a VARCHAR(20), b INT, c DATE, email VARCHAR(20))"));
    }
    let mut command = program("data", &socket(&server));
    command
        .args(["--database", "app", "--pace", "100000"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("onionskin runs");
    let mut most = 0;
    let status = loop {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        most = most.max(kib.unwrap_or_default());
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            break status;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    assert_eq!(status.code(), Some(1));
    announce(&format!("{tables} tables: {} MiB at most", most >> 10));
    assert!(most < 128 << 10, "{most} KiB");
}
