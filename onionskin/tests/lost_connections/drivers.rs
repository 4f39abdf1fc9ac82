//! Pools of drivers whose connections the server closes while they are idle: the next statement
//! goes through the proxy as it goes directly. The drivers come from the registries of their
//! languages; where these cannot be reached, the test says so.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use super::{start, wait_for};
use onionskin_testkit::*;

/// A program with a driver, ready to run; `None` where it cannot be had.
fn program(name: &str, make: impl FnOnce(&Path) -> Option<Vec<String>>) -> Option<Vec<String>> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let home = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("drivers")
        .join(name);
    fs::create_dir_all(&home).expect("a folder");
    let made = make(&home);
    if made.is_none() {
        announce(&format!("SKIPPED: the driver for {name} cannot be had"));
    }
    made
}

fn source(name: &str) -> PathBuf {
    checkout()
        .join("onionskin/tests/lost_connections")
        .join(name)
}

/// Runs a command in a folder; whether it succeeded.
fn succeeds(folder: &Path, words: &[&str]) -> bool {
    let run = Command::new(words[0])
        .args(&words[1..])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output();
    match run {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            eprintln!("{words:?}: {}", String::from_utf8_lossy(&output.stderr));
            false
        }
        Err(error) => {
            eprintln!("{words:?}: {error}");
            false
        }
    }
}

/// What a pool gets behind the end of its connections, by two ways to end them.
fn outcomes(server: &Server, port: u16, program: &[String]) -> Vec<String> {
    let mut admin = server.connect();
    let mut outcomes = Vec::new();
    for by_timeout in [false, true] {
        let seconds = if by_timeout { 5 } else { 28_800 };
        admin.must(&format!("SET GLOBAL wait_timeout = {seconds}"));
        admin.must("SET wait_timeout = 28800");
        let mut child = Command::new(&program[0])
            .args(&program[1..])
            .arg(port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut output = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n", "{program:?}");
        let pooled = "user = 'root' AND db = 'app'";
        if !by_timeout {
            // The server has answered all of them. It may not wait for the next statement yet.
            let ids = admin.text(&format!(
                "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND {pooled}"
            ));
            for id in ids.expect("numbers").lines() {
                admin.must(&format!("KILL {id}"));
            }
        }
        wait_for(&mut admin, "the end of the pool", pooled, "0");
        // the end is on its way to the pool
        std::thread::sleep(Duration::from_secs(1));
        let mut input = child.stdin.take().expect("its input");
        input.write_all(b"go\n").expect("sent");
        let mut said = String::new();
        std::io::Read::read_to_string(&mut output, &mut said).expect("its words");
        assert!(child.wait().expect("it ends").success(), "{said}");
        outcomes.push(said);
    }
    outcomes
}

/// Whether a pool survives as it does directly. `fails` is how many statements fail because the
/// program has asked for no check.
fn survives(kind: Kind, program: &[String], fails: usize) {
    let Some((server, mut proxy)) = start(kind, ProxyOptions::default()) else {
        return;
    };
    let seen = outcomes(&server, proxy.port(), program);
    for said in &seen {
        let failed = said.lines().filter(|line| line.starts_with("lost")).count();
        assert_eq!(failed, fails, "{said}");
        let fine = |line: &str| ["Alice", "Alice <nil>", "1 <nil>", "lost True"].contains(&line);
        assert!(
            said.lines().count() >= 10 && said.lines().all(fine),
            "{said}"
        );
    }
    drop(server);
    // a server without protection, and no proxy: that is what applications are used to
    let server = Server::start(kind, ServerOptions::default()).expect("it was there before");
    let mut admin = server.connect();
    admin.must("CREATE DATABASE app");
    admin.must("CREATE TABLE app.t (id INT PRIMARY KEY, name VARCHAR(40))");
    admin.must("INSERT INTO app.t VALUES (1, 'Alice')");
    assert_eq!(seen, outcomes(&server, server.port(), program));
    proxy.assert_healthy();
}

pub fn pools_of_go(kind: Kind) {
    let made = program("Go", |home| {
        fs::copy(source("pool.go"), home.join("main.go")).expect("copied");
        let module = "module pool\n\ngo 1.21\n\nrequire github.com/go-sql-driver/mysql v1.9.3\n";
        fs::write(home.join("go.mod"), module).expect("written");
        let built = succeeds(home, &["go", "mod", "tidy"])
            && succeeds(home, &["go", "build", "-o", "pool", "."]);
        built.then(|| vec![home.join("pool").display().to_string()])
    });
    if let Some(program) = made {
        survives(kind, &program, 0);
    }
}

pub fn pools_of_node(kind: Kind) {
    let made = program("Node", |home| {
        fs::copy(source("pool.js"), home.join("pool.js")).expect("copied");
        let is_there = home.join("node_modules/mysql2").exists();
        let install = ["npm", "install", "--no-audit", "--no-fund", "mysql2@3.11.5"];
        let made = is_there || succeeds(home, &install);
        made.then(|| vec!["node".into(), home.join("pool.js").display().to_string()])
    });
    if let Some(program) = made {
        survives(kind, &program, 0);
    }
}

pub fn pools_of_python(kind: Kind) {
    let made = program("Python", |home| {
        let python = home.join("venv/bin/python");
        let is_there = home.join("complete").exists();
        let pip = [
            "venv/bin/pip",
            "install",
            "-q",
            "PyMySQL==1.1.1",
            "SQLAlchemy==2.0.36",
        ];
        let made = is_there
            || (succeeds(home, &["python3", "-m", "venv", "venv"]) && succeeds(home, &pip));
        if made {
            fs::write(home.join("complete"), "").expect("written");
        }
        let program = [python, source("pool.py")];
        made.then(|| program.iter().map(|p| p.display().to_string()).collect())
    });
    if let Some(program) = made {
        survives(kind, &program, 1);
    }
}
