//! The scratch engine that a proxy starts for itself: `[scratch] engine = "auto"`, and
//! `serve --scratch DIR`.

use onionskin_testkit::*;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

on_both_servers!(
    comes_by_itself_and_again_when_it_dies,
    what_a_killed_proxy_leaves_goes_at_the_next_start,
    says_which_package_is_missing_and_serves,
    comes_when_the_server_does,
    a_new_program_has_one_of_its_own,
    an_engine_that_is_named_is_looked_at,
);

const AUTO: &str = "[scratch]\nengine = \"auto\"\n";
/// What needs an engine.
const QUESTION: &str = "SELECT CONCAT(UPPER(s), id) FROM d.t";
/// Making a data directory takes MySQL some seconds, and more on a machine that is busy.
const SOON: Duration = Duration::from_secs(90);

/// Where the engines of a test are: in memory, and nobody else's.
struct Base(TempDir);

impl Base {
    fn new() -> Base {
        let memory = Path::new("/dev/shm");
        let base = match memory.is_dir() {
            true => tempfile::Builder::new().prefix("ose-").tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        let base = base.expect("a folder");
        // the server's user passes through where the tests run as root
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o711)).expect("passable");
        Base(base)
    }

    fn arguments(&self) -> Vec<String> {
        vec!["--scratch".into(), self.0.path().display().to_string()]
    }

    /// The folders of engines in it.
    fn engines(&self) -> Vec<PathBuf> {
        let found = fs::read_dir(self.0.path()).expect("a folder");
        let mut paths: Vec<_> = found.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }
}

/// The environment in which the proxy finds this program, and no other one.
fn only(program: &Path) -> Vec<(String, String)> {
    vec![("ONIONSKIN_MYSQLD".into(), program.display().to_string())]
}

fn server(kind: Kind) -> Option<Server> {
    if direct_mode() {
        return None;
    }
    Server::start(kind, ServerOptions::default())
}

fn start(server: &Server, options: ProxyOptions) -> Proxy {
    let environment = match options.environment.is_empty() {
        true => only(&server.kind().server_program()),
        false => options.environment.clone(),
    };
    Proxy::start_with(
        server,
        ProxyOptions {
            environment,
            ..options
        },
    )
}

/// What [`QUESTION`] is answered, on a machine where a start may take longer than a statement waits
/// for it.
fn answer(session: &mut Session) -> String {
    let mut answer = String::new();
    wait_until("an answer", SOON, || match session.text(QUESTION) {
        Ok(text) => {
            answer = text;
            true
        }
        Err(failure) => {
            assert!(failure.message.contains("still being started"), "{failure}");
            false
        }
    });
    answer
}

fn fill(proxy: &Proxy) {
    let mut session = proxy.connect();
    session.must("CREATE DATABASE d");
    session.must("CREATE TABLE d.t (id INT PRIMARY KEY, s VARCHAR(20) ENCRYPTED FOR (eq))");
    session.must("INSERT INTO d.t VALUES (1, 'kept')");
}

/// Process ids of the engines that a log speaks of.
fn engine_pids(log: &str) -> Vec<u32> {
    let said = "the scratch engine runs with process id ";
    log.lines()
        .filter_map(|line| line.split_once(said))
        .map(|(_, pid)| pid.trim().parse().expect("a number"))
        .collect()
}

fn lives(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn command_line(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).expect("it runs");
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// The folder of the engine's data.
fn data_of(pid: u32) -> PathBuf {
    let line = command_line(pid);
    let words = line.split_whitespace();
    let mut data = words.filter_map(|word| word.strip_prefix("--datadir="));
    PathBuf::from(data.next_back().expect("a data directory"))
}

fn comes_by_itself_and_again_when_it_dies(kind: Kind) {
    let Some(server) = server(kind) else {
        return;
    };
    let options = ProxyOptions {
        tables: AUTO.into(),
        settings: "control = \"control.sock\"\nscratch_rows = 7".into(),
        ..ProxyOptions::default()
    };
    let mut proxy = start(&server, options);
    fill(&proxy);
    let mut session = proxy.connect();
    // the first statement waits for it
    assert_eq!(answer(&mut session), "KEPT1");
    let [first] = engine_pids(&proxy.log())[..] else {
        panic!("one engine: {}", proxy.log());
    };
    let line = command_line(first);
    for option in ["--skip-networking", "--general-log=OFF", "--skip-log-bin"] {
        assert!(line.contains(option), "{line}");
    }
    let folder = data_of(first);
    let folder = folder.ancestors().nth(2).expect("a folder").to_owned();
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&folder.join("server")), 0o700, "nobody else's");

    // What else is set may change while it runs; the engine may not.
    let file = proxy.folder().join("onionskin.toml");
    let config = fs::read_to_string(&file).expect("a configuration");
    fs::write(
        &file,
        config.replace("scratch_rows = 7", "scratch_rows = 8"),
    )
    .expect("written");
    let (done, said) = proxy.command(&["reload"]);
    assert!(done && said.contains("scratch_rows: 7 → 8"), "{said}");
    let named = config.replace("engine = \"auto\"", "socket = \"elsewhere\"");
    fs::write(&file, named).expect("written");
    let (done, said) = proxy.command(&["reload"]);
    assert!(!done && said.contains("scratch.engine"), "{said}");
    assert_eq!(session.text(QUESTION).expect("the same engine"), "KEPT1");

    signal("KILL", first);
    wait_until("it is noticed", SOON, || {
        proxy
            .log()
            .contains("the scratch engine has ended by itself")
    });
    let mut refusals = 0;
    wait_until("another engine", SOON, || match session.text(QUESTION) {
        Ok(answer) => answer == "KEPT1",
        Err(failure) => {
            assert!(failure.message.starts_with("OS1208"), "{failure}");
            refusals += 1;
            false
        }
    });
    assert!(refusals > 0, "nobody waits for an engine that has died");
    let pids = engine_pids(&proxy.log());
    assert_eq!(pids.len(), 2, "{}", proxy.log());

    // If its files are gone, they are made anew.
    // it still writes
    wait_until("its files are gone", SOON, || {
        fs::remove_dir_all(&folder).is_ok() || !folder.exists()
    });
    signal("KILL", pids[1]);
    wait_until("one from nothing", SOON, || {
        engine_pids(&proxy.log()).len() == 3 && session.text(QUESTION).is_ok()
    });
    let last = engine_pids(&proxy.log())[2];
    drop(session);
    proxy.terminate();
    assert!(!lives(last), "it ends with the proxy");
    assert!(!folder.exists(), "nothing of it stays");
    let log = proxy.log();
    assert!(!log.contains("kept"), "no value in the log: {log}");
}

fn what_a_killed_proxy_leaves_goes_at_the_next_start(kind: Kind) {
    let Some(server) = server(kind) else {
        return;
    };
    let base = Base::new();
    let options = || ProxyOptions {
        arguments: base.arguments(),
        ..ProxyOptions::default()
    };
    let mut killed = start(&server, options());
    fill(&killed);
    assert_eq!(answer(&mut killed.connect()), "KEPT1");
    let [left] = &base.engines()[..] else {
        panic!("one engine: {:?}", base.engines());
    };
    let other = start(
        &server,
        ProxyOptions {
            keys: Some(killed.keys()),
            ..options()
        },
    );
    let mut beside = other.connect();
    assert_eq!(answer(&mut beside), "KEPT1");
    assert_eq!(base.engines().len(), 2, "each has its own");
    assert!(left.exists());

    killed.kill9();
    let engine = engine_pids(&killed.log())[0];
    wait_until("it ends with its proxy", SOON, || !lives(engine));
    assert!(left.exists(), "nobody was there to remove it");
    // what is not a proxy's stays, whatever its name
    let stranger = base.0.path().join("onionskin-engine-of-a-friend");
    File::create(&stranger).expect("made");
    killed.restart();
    assert_eq!(answer(&mut killed.connect()), "KEPT1");
    assert!(!left.exists(), "left by the one before");
    assert!(stranger.exists());
    assert_eq!(beside.text(QUESTION).expect("undisturbed"), "KEPT1");
    fs::remove_file(&stranger).expect("removed");
    assert_eq!(base.engines().len(), 2);
    drop(beside);
    killed.terminate();
    let mut other = other;
    other.terminate();
    assert_eq!(base.engines(), Vec::<PathBuf>::new());
}

/// A program that says that it is a server of this kind and version, and nothing else.
fn pretender(folder: &Path, kind: Kind, version: &str) -> PathBuf {
    let said = match kind {
        Kind::MariaDb => format!("mariadbd  Ver {version}-MariaDB for Linux on x86_64"),
        Kind::MySql => format!("mysqld  Ver {version} for Linux on x86_64 (MySQL)"),
    };
    let path = folder.join(format!("pretender-{version}"));
    fs::write(&path, format!("#!/bin/sh\necho '{said}'\nexit 0\n")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    path
}

fn says_which_package_is_missing_and_serves(kind: Kind) {
    let Some(server) = server(kind) else {
        return;
    };
    let (other, version, package) = match kind {
        Kind::MariaDb => (Kind::MySql, "9.7.0", "mariadb-server-core"),
        Kind::MySql => (Kind::MariaDb, "10.11.14", "mysql-community-server-core"),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let program = pretender(folder.path(), other, version);
    let options = ProxyOptions {
        tables: AUTO.into(),
        environment: only(&program),
        ..ProxyOptions::default()
    };
    let proxy = start(&server, options);
    fill(&proxy);
    let mut session = proxy.connect();
    assert_eq!(
        session.text("SELECT id FROM d.t WHERE s = 'kept'"),
        Ok("1".into())
    );
    let refused = session.text(QUESTION).expect_err("no engine");
    assert!(refused.message.starts_with("OS1208"), "{refused}");
    assert!(refused.message.contains(package), "{refused}");
    let log = proxy.log();
    let lines = log
        .lines()
        .filter(|line| line.contains("there is no scratch engine"));
    let [line] = lines.collect::<Vec<_>>()[..] else {
        panic!("one line: {log}");
    };
    assert!(line.contains(package), "{line}");
    let output = proxy.output(&["explain", QUESTION]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("OS1208") && said.contains(package), "{said}");

    // Without the section the way out is that line.
    let plain = start(
        &server,
        ProxyOptions {
            keys: Some(proxy.keys()),
            ..ProxyOptions::default()
        },
    );
    let refused = plain.connect().text(QUESTION).expect_err("no engine");
    assert!(refused.message.contains("engine = \"auto\""), "{refused}");

    // init writes the section where there is a program, and says what is missing otherwise.
    let init = |program: &Path, name: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_onionskin"))
            .args(["init", "--backend", &server.address(), "--dir"])
            .arg(folder.path().join(name))
            .env("ONIONSKIN_MYSQLD", program)
            .output()
            .expect("onionskin runs");
        assert!(output.status.success(), "{output:?}");
        let file = folder.path().join(name).join("onionskin.toml");
        let text = fs::read_to_string(file).expect("a configuration");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (text.contains(&format!("\n{AUTO}")), said)
    };
    let (written, said) = init(&program, "without");
    assert!(!written && said.contains(package), "{said}");
    let (written, said) = init(&kind.server_program(), "with");
    assert!(written && !said.contains(package), "{said}");

    // A program that does not start is one as well that is told.
    let broken = pretender(folder.path(), kind, "1.2.3");
    let options = ProxyOptions {
        tables: AUTO.into(),
        environment: only(&broken),
        keys: Some(proxy.keys()),
        ..ProxyOptions::default()
    };
    let proxy = start(&server, options);
    let refused = proxy.connect().text(QUESTION).expect_err("no engine");
    assert!(refused.message.starts_with("OS1208"), "{refused}");
    assert!(proxy.log().contains("there is no scratch engine"));
    assert!(
        proxy
            .connect()
            .text("SELECT id FROM d.t WHERE s = 'kept'")
            .is_ok()
    );
}

fn comes_when_the_server_does(kind: Kind) {
    let Some(mut server) = server(kind) else {
        return;
    };
    server.kill9();
    let options = ProxyOptions {
        tables: AUTO.into(),
        ..ProxyOptions::default()
    };
    let mut proxy = start(&server, options);
    wait_until("it is told", SOON, || {
        proxy.log().contains("does not answer: cannot be reached")
    });
    let log = proxy.log();
    assert_eq!(log.matches("does not answer").count(), 1, "{log}");
    server.restart();
    fill(&proxy);
    let mut session = proxy.connect();
    wait_until("an engine", SOON, || {
        session.text(QUESTION) == Ok("KEPT1".into())
    });
    proxy.terminate();
}

fn a_new_program_has_one_of_its_own(kind: Kind) {
    let Some(server) = server(kind) else {
        return;
    };
    let base = Base::new();
    let options = ProxyOptions {
        settings: "control = \"control.sock\"".into(),
        tables: format!("{AUTO}folder = \"{}\"\n", base.0.path().display()),
        ..ProxyOptions::default()
    };
    let mut proxy = start(&server, options);
    fill(&proxy);
    let mut before = proxy.connect();
    assert_eq!(answer(&mut before), "KEPT1");
    let old = engine_pids(&proxy.log())[0];
    let mut successor = take_over(&proxy, kind);
    let log = || fs::read_to_string(proxy.folder().join("new.log")).unwrap_or_default();
    wait_until("the new one serves", SOON, || {
        log().contains("listening on")
    });
    let mut after = proxy.connect();
    assert_eq!(answer(&mut after), "KEPT1");
    let new = engine_pids(&log())[0];
    assert!(new != old && lives(old));
    assert_eq!(before.text(QUESTION).expect("the old one's"), "KEPT1");
    assert_eq!(base.engines().len(), 2);
    drop(before);
    wait_until("the old engine ends with its proxy", SOON, || {
        !lives(old) && base.engines().len() == 1
    });
    assert_eq!(after.text(QUESTION).expect("undisturbed"), "KEPT1");
    drop(after);
    signal("TERM", successor.id());
    assert!(successor.wait().expect("ended").success());
    assert!(!lives(new));
    assert_eq!(base.engines(), Vec::<PathBuf>::new());
    // it has ended already
    proxy.kill9();
}

fn take_over(proxy: &Proxy, kind: Kind) -> Child {
    let log = File::create(proxy.folder().join("new.log")).expect("a log");
    tied_command(env!("CARGO_BIN_EXE_onionskin"))
        .current_dir(proxy.folder())
        .args(["serve", "-c", "onionskin.toml", "--take-over", "--listen"])
        .arg(format!("127.0.0.1:{}", proxy.port()))
        .env("ONIONSKIN_MYSQLD", kind.server_program())
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a handle"))
        .stderr(log)
        .spawn()
        .expect("onionskin starts")
}

fn an_engine_that_is_named_is_looked_at(kind: Kind) {
    let Some(server) = server(kind) else {
        return;
    };
    let dead = ProxyOptions {
        tables: "[scratch]\nsocket = \"nowhere.sock\"\n".into(),
        ..ProxyOptions::default()
    };
    let proxy = start(&server, dead);
    wait_until("it is told", SOON, || {
        proxy
            .log()
            .contains("the scratch engine that [scratch] names does not answer")
    });
    let other = match kind {
        Kind::MariaDb => Kind::MySql,
        Kind::MySql => Kind::MariaDb,
    };
    let Some(other) = Server::start(other, ServerOptions::default()) else {
        return;
    };
    let wrong = ProxyOptions {
        tables: format!("[scratch]\nsocket = \"{}\"\n", other.socket().display()),
        ..ProxyOptions::default()
    };
    let proxy = start(&server, wrong);
    fill(&proxy);
    let refused = proxy.connect().text(QUESTION).expect_err("another family");
    assert!(refused.message.contains("of the other family"), "{refused}");
    wait_until("it is told", SOON, || {
        proxy.log().contains("family and the first two numbers")
    });
}

#[test]
fn a_folder_that_cannot_be_used_is_told() {
    let Some(server) = server(Kind::MariaDb) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    File::create(&file).expect("made");
    let small = folder.path().join("small");
    fs::create_dir(&small).expect("made");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=8m,mode=711", "tmpfs"])
        .arg(&small)
        .output();
    let is_mounted = mounted.is_ok_and(|output| output.status.success());
    let mut cases = vec![
        (file.clone(), "File exists"),
        ("/proc/nowhere".into(), "/proc"),
    ];
    match is_mounted {
        true => cases.push((small.clone(), "MiB free")),
        false => announce("a full folder for an engine ... skipped: no tmpfs can be mounted here"),
    }
    let mut first: Option<Proxy> = None;
    let told = cases.iter().all(|(place, why)| {
        let options = ProxyOptions {
            arguments: vec!["--scratch".into(), place.display().to_string()],
            keys: first.as_ref().map(Proxy::keys),
            ..ProxyOptions::default()
        };
        let proxy = start(&server, options);
        if first.is_none() {
            fill(&proxy);
        }
        let mut session = proxy.connect();
        let refused = session.text(QUESTION).expect_err("no engine");
        let plain = session.text("SELECT id FROM d.t WHERE s = 'kept'");
        let log = proxy.log();
        let said = log.matches("there is no scratch engine").count();
        let sound = refused.message.starts_with("OS1208")
            && plain == Ok("1".into())
            && said == 1
            && log
                .lines()
                .any(|l| l.contains("there is no scratch engine") && l.contains(why));
        if !sound {
            eprintln!("{}: {refused}\n{log}", place.display());
        }
        first.get_or_insert(proxy);
        sound
    });
    let left = fs::read_dir(&small).map(Iterator::count);
    drop(first);
    if is_mounted {
        let unmounted = Command::new("umount").arg(&small).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
    assert!(told);
    assert_eq!(left.expect("a folder"), 0, "nothing is left behind");
}
