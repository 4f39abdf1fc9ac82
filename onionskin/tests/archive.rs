//! `onionskin archive` and `restore --binlogs`: sealed segments that are binlog files, without gaps
//! through kills, and a server brought to a named transaction.

#[path = "archive/gaps.rs"]
mod gaps;

#[path = "archive/recovery.rs"]
mod recovery;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use gaps::gaps_are_named;
use onionskin_testkit::*;
use tempfile::TempDir;

on_both_servers!(
    segments_are_binlog_files_without_plaintext,
    a_killed_archiver_loses_and_repeats_nothing,
    a_signal_seals_what_there_is,
    gaps_are_named,
    a_file_that_its_server_did_not_finish_is_cut_and_passed,
    a_server_that_is_killed_under_load_only_interrupts,
);

/// A server with a binlog, and a folder with keys and a configuration for it.
struct Scenery {
    server: Server,
    home: TempDir,
}

impl Scenery {
    fn build(kind: Kind, extra: &[String]) -> Option<Self> {
        let mut extra = extra.to_vec();
        if kind == Kind::MySql {
            extra.extend(["--gtid-mode=ON", "--enforce-gtid-consistency=ON"].map(String::from));
        }
        let options = ServerOptions {
            binlog: Some(Binlog::Row),
            extra,
            ..ServerOptions::default()
        };
        let server = Server::start(kind, options)?;
        let home = tempfile::tempdir().expect("a folder");
        let scenery = Scenery { server, home };
        let backend = format!("unix:{}", scenery.server.socket().display());
        scenery.must(&["init", "--backend", &backend]);
        Some(scenery)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onionskin"));
        command
            .args(arguments)
            .current_dir(self.home.path())
            .env_remove("ONIONSKIN_PASSPHRASE")
            .env_remove("ONIONSKIN_PASSWORD");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("onionskin runs")
    }

    fn must(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn fails(&self, arguments: &[&str], code: i32, text: &str) {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(text), "{text:?} is not in: {said}");
    }

    /// An archiver that runs until it is told to end.
    fn archiver(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(&["archive", "--to", "log"]);
        command.args(arguments).stdout(Stdio::null());
        command.spawn().expect("onionskin runs")
    }

    /// The segments in order; their names sort.
    fn segments(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.home.path().join("log")).expect("the archive");
        let mut paths: Vec<PathBuf> = entries
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|e| e == "sealed"))
            .collect();
        paths.sort();
        paths
    }

    /// The segments as binlog files.
    fn opened(&self) -> Vec<PathBuf> {
        self.segments()
            .iter()
            .map(|path| {
                let opened = path.with_extension("opened");
                let _ = fs::remove_file(&opened);
                let path = path.to_str().expect("UTF-8");
                self.must(&["open", "-q", "-o", opened.to_str().expect("UTF-8"), path]);
                opened
            })
            .collect()
    }

    fn data(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }
}

/// The family's reader of binlogs.
fn binlog_tool(kind: Kind) -> Command {
    match kind {
        Kind::MariaDb => Command::new("mariadb-binlog"),
        Kind::MySql => Command::new(checkout().join("scripts/mysqlbinlog97")),
    }
}

/// What the family's own tool makes of binlog files.
fn statements(kind: Kind, files: &[PathBuf], options: &[&str]) -> Vec<u8> {
    let output = binlog_tool(kind)
        .args(["--no-defaults", "--verify-binlog-checksum"])
        .args(options)
        .args(files)
        .output()
        .expect("the tool runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    output.stdout
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

fn segments_are_binlog_files_without_plaintext(kind: Kind) {
    let secrets = tempfile::tempdir().expect("a folder");
    let key = secrets.path().join("keys.txt");
    fs::write(&key, format!("1;{}\n", "0123456789abcdef".repeat(4))).expect("a key");
    let mut extra = Vec::new();
    if kind == Kind::MariaDb {
        extra.push("--plugin-load-add=file_key_management".into());
        extra.push(format!("--file-key-management-filename={}", key.display()));
        extra.push("--encrypt-binlog=ON".into());
    }
    let Some(scenery) = Scenery::build(kind, &extra) else {
        return;
    };
    let mut session = scenery.server.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id INT PRIMARY KEY, v VARCHAR(100))");
    session.must("INSERT INTO app.t VALUES (1, 'the canary sings at dawn')");
    session.must("FLUSH BINARY LOGS");
    session.must("UPDATE app.t SET v = 'the canary sleeps at noon'");
    if kind == Kind::MariaDb {
        // The server's own file is encrypted: the archive read it through the server.
        let file = fs::read(scenery.server.data_dir().join("binlog.000002")).expect("a binlog");
        assert!(!contains(&file, "canary"));
    }
    for suite in ["aes", "sm"] {
        let folder = scenery.home.path().join("log");
        let _ = fs::remove_dir_all(&folder);
        scenery.must(&["archive", "--to", "log", "--once", "--suite", suite]);
        let mut canaries = Vec::new();
        for path in scenery.segments() {
            let sealed = fs::read(&path).expect("a segment");
            assert!(!contains(&sealed, "canary") && !contains(&sealed, "app"));
            let said = scenery.must(&["verify", "-q", path.to_str().expect("UTF-8")]);
            assert!(said.contains("source    binlog"), "{said}");
        }
        for path in scenery.opened() {
            let text = statements(kind, &[path], &["-vv", "--base64-output=decode-rows"]);
            for line in text.split(|byte| *byte == b'\n') {
                if contains(line, "@2=") {
                    let line = String::from_utf8_lossy(line).into_owned();
                    canaries.push(line.split('\'').nth(1).expect("a text").to_owned());
                }
            }
        }
        let (dawn, noon) = ("the canary sings at dawn", "the canary sleeps at noon");
        assert_eq!(canaries, [dawn, dawn, noon]);
        let list = scenery.must(&["archive", "--to", "log", "--list"]);
        assert!(list.contains("no gap; of "), "{list}");
    }
}

/// Sends opened segments to a new server and compares all rows.
fn compare_by_replay(scenery: &Scenery, tables: &[&str]) {
    let kind = scenery.server.kind();
    let options: &[&str] = match kind {
        Kind::MySql => &["--skip-gtids"],
        Kind::MariaDb => &[],
    };
    let text = statements(kind, &scenery.opened(), options);
    let copy = Server::start(kind, ServerOptions::default()).expect("the same kind");
    let mut client = match kind {
        Kind::MariaDb => Command::new("mariadb"),
        Kind::MySql => Command::new(checkout().join("scripts/mysql97")),
    };
    let mut child = client
        .args(["--no-defaults", "--user=root", "--binary-mode"])
        .arg(format!("--socket={}", copy.socket().display()))
        .stdin(Stdio::piped())
        .spawn()
        .expect("the client runs");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(&text)
        .expect("statements");
    assert!(child.wait().expect("the client").success());
    let (mut original, mut copied) = (scenery.server.connect(), copy.connect());
    for table in tables {
        let sum = |session: &mut Session| session.text(&format!("CHECKSUM TABLE {table}")).unwrap();
        let (here, there) = (sum(&mut original), sum(&mut copied));
        let sessions = [&mut original, &mut copied];
        let ids = sessions.map(|session| {
            session.must("SET SESSION group_concat_max_len = 1000000");
            let sql = format!("SELECT GROUP_CONCAT(id, ':', LENGTH(v) ORDER BY id) FROM {table}");
            session.text(&sql)
        });
        assert!(here == there, "{here} {there} {ids:#?}");
        assert!(!sum(&mut copied).ends_with("NULL"));
    }
}

fn a_killed_archiver_loses_and_repeats_nothing(kind: Kind) {
    let Some(scenery) = Scenery::build(kind, &[]) else {
        return;
    };
    let mut session = scenery.server.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id INT PRIMARY KEY, v VARCHAR(2000))");
    let port = scenery.server.port();
    let writer = std::thread::spawn(move || {
        let mut session = Session::open(port, "root", "", None);
        for id in 0..600 {
            session.must("BEGIN");
            session.must(&format!(
                "INSERT INTO app.t VALUES ({id}, REPEAT('x', {id}))"
            ));
            session.must(&format!(
                "UPDATE app.t SET v = CONCAT(v, 'y') WHERE id = {}",
                id / 2
            ));
            session.must("COMMIT");
            if id % 150 == 149 {
                session.must("FLUSH BINARY LOGS");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let mut kills = 0;
    while !writer.is_finished() {
        let mut archiver = scenery.archiver(&["--segment-age", "1"]);
        std::thread::sleep(Duration::from_millis(rand::random_range(100..2200)));
        archiver.kill().expect("kill -9");
        archiver.wait().expect("it ends");
        kills += 1;
    }
    writer.join().expect("the writer");
    scenery.must(&["archive", "--to", "log", "--once"]);
    assert!(kills >= 2 && scenery.segments().len() > 4, "{kills}");
    // Nothing unfinished is left behind.
    for entry in fs::read_dir(scenery.data("log")).expect("the archive") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_str().expect("UTF-8");
        assert!(name.ends_with(".sealed") || name == ".lock", "{name}");
    }
    let list = scenery.must(&["archive", "--to", "log", "--list"]);
    let all = match kind {
        Kind::MariaDb => "SELECT @@gtid_binlog_pos",
        Kind::MySql => "SELECT @@gtid_executed",
    };
    let all = session.text(all).expect("GTIDs");
    assert!(list.contains(&format!("GTIDs {all}")), "{all}: {list}");
    compare_by_replay(&scenery, &["app.t"]);
}

fn a_signal_seals_what_there_is(kind: Kind) {
    let Some(scenery) = Scenery::build(kind, &[]) else {
        return;
    };
    let mut session = scenery.server.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id INT PRIMARY KEY)");
    let mut archiver = scenery.archiver(&["--segment-age", "3600"]);
    wait_until("an unfinished segment", Duration::from_secs(20), || {
        fs::read_dir(scenery.data("log")).is_ok_and(|entries| {
            entries
                .flatten()
                .any(|entry| entry.path().extension().is_some_and(|e| e == "partial"))
        })
    });
    // Nobody else may write into the folder.
    scenery.fails(&["archive", "--to", "log", "--once"], 2, "another archiver");
    session.must("INSERT INTO app.t VALUES (1)");
    std::thread::sleep(Duration::from_millis(300));
    signal("TERM", archiver.id());
    assert!(archiver.wait().expect("it ends").success());
    assert_eq!(scenery.segments().len(), 1);
    compare_by_replay(&scenery, &["app.t"]);
    // A server that restarts in between only interrupts it.
    let mut scenery = scenery;
    let mut archiver = scenery.archiver(&["--segment-age", "3600"]);
    std::thread::sleep(Duration::from_millis(500));
    scenery.server.shutdown();
    scenery.server.restart();
    scenery
        .server
        .connect()
        .must("INSERT INTO app.t VALUES (2)");
    wait_until("the next segment", Duration::from_secs(30), || {
        let list = scenery.run(&["archive", "--to", "log", "--list"]);
        String::from_utf8_lossy(&list.stdout).contains("binlog.000002:4 ")
            || fs::read_dir(scenery.data("log")).is_ok_and(|entries| {
                entries.flatten().any(|entry| {
                    entry
                        .file_name()
                        .to_string_lossy()
                        .starts_with(".binlog.000002")
                })
            })
    });
    std::thread::sleep(Duration::from_millis(500));
    signal("TERM", archiver.id());
    assert!(archiver.wait().expect("it ends").success());
    compare_by_replay(&scenery, &["app.t"]);
}

/// The file that the server writes to.
fn latest(session: &mut Session) -> String {
    let files = session.text("SHOW BINARY LOGS").expect("files");
    let last = files.lines().last().expect("a file");
    last.split('\t').next().expect("a name").to_owned()
}

/// The binlog file that the server writes.
fn present_file(scenery: &Scenery) -> PathBuf {
    let files = scenery.server.connect().text("SHOW BINARY LOGS");
    let files = files.expect("files");
    let last = files.lines().last().expect("a file");
    let name = last.split('\t').next().expect("a name");
    scenery.server.data_dir().join(name)
}

fn a_file_that_its_server_did_not_finish_is_cut_and_passed(kind: Kind) {
    let Some(mut scenery) = Scenery::build(kind, &[]) else {
        return;
    };
    let mut session = scenery.server.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id INT PRIMARY KEY, v VARCHAR(100))");
    // The event that commits has 31 bytes. Without it the file ends between two events, or within
    // one.
    for (round, cut) in [31, 10, 50, 31].into_iter().enumerate() {
        session.must(&format!(
            "INSERT INTO app.t VALUES ({round}, 'before {round}')"
        ));
        if round == 3 {
            // The archive ends where the torn transaction begins.
            scenery.must(&["archive", "--to", "log", "--once"]);
        }
        session.must(&format!(
            "INSERT INTO app.t VALUES ({round} + 100, 'torn {round}')"
        ));
        let file = present_file(&scenery);
        scenery.server.kill9();
        let length = fs::metadata(&file).expect("a binlog").len();
        let opened = fs::OpenOptions::new().write(true).open(&file);
        opened
            .expect("a binlog")
            .set_len(length - cut)
            .expect("cut");
        scenery.server.restart();
        session = scenery.server.connect();
        session.must(&format!(
            "INSERT INTO app.t VALUES ({round} + 200, 'after {round}')"
        ));
        if round > 0 {
            scenery.must(&["archive", "--to", "log", "--once"]);
        }
    }
    scenery.must(&["archive", "--to", "log", "--once"]);
    let list = scenery.must(&["archive", "--to", "log", "--list"]);
    assert!(list.contains("no gap; of "), "{list}");
    let text = statements(
        kind,
        &scenery.opened(),
        &["-vv", "--base64-output=decode-rows"],
    );
    for round in 0..4 {
        assert!(contains(&text, &format!("'before {round}'")), "{round}");
        assert!(contains(&text, &format!("'after {round}'")), "{round}");
        assert!(!contains(&text, &format!("'torn {round}'")), "{round}");
    }
}

fn a_server_that_is_killed_under_load_only_interrupts(kind: Kind) {
    let Some(mut scenery) = Scenery::build(kind, &[]) else {
        return;
    };
    let mut session = scenery.server.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id BIGINT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT)");
    let mut archiver = scenery.archiver(&["--segment-age", "1"]);
    for _ in 0..2 {
        let port = scenery.server.port();
        let writers: Vec<_> = (0..3)
            .map(|_| {
                std::thread::spawn(move || {
                    let mut session = Session::open(port, "root", "", None);
                    while session
                        .run("INSERT INTO app.t (v) VALUES (REPEAT('x', 300000))")
                        .is_ok()
                    {}
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(rand::random_range(700..1500)));
        scenery.server.kill9();
        writers
            .into_iter()
            .for_each(|writer| writer.join().expect("a writer"));
        scenery.server.restart();
    }
    let mut session = scenery.server.connect();
    session.must("INSERT INTO app.t (v) VALUES ('the last')");
    let rows = session
        .text("SELECT COUNT(*) FROM app.t")
        .expect("a number");
    std::thread::sleep(Duration::from_millis(1500));
    assert!(
        archiver.try_wait().expect("its state").is_none(),
        "it goes on"
    );
    signal("TERM", archiver.id());
    assert!(archiver.wait().expect("it ends").success());
    scenery.must(&["archive", "--to", "log", "--once"]);
    let list = scenery.must(&["archive", "--to", "log", "--list"]);
    assert!(list.contains("no gap; of "), "{list}");
    assert!(rows.parse::<u32>().is_ok_and(|rows| rows > 10), "{rows}");
    compare_by_replay(&scenery, &["app.t"]);
}
