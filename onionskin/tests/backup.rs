//! `onionskin backup` and `restore`: a running server into a sealed file, and back into a server
//! with the same rows.

use onionskin_testkit::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn a_physical_backup_comes_back_as_a_server() {
    if !has_mariadb_backup() {
        return;
    }
    let scenery = Scenery::build();
    let mut session = scenery.server.connect();
    let before = checksums(&mut session);
    let position = session.text("SHOW MASTER STATUS").expect("a position");
    let gtid = session
        .text("SELECT @@gtid_binlog_pos")
        .expect("a position");
    for suite in ["aes", "sm"] {
        let file = format!("{suite}.sealed");
        let said = scenery.must(&["backup", "--suite", suite, "--to", &file]);
        assert_eq!(said.trim(), file);
    }
    // What comes later is not in it.
    session.must("DELETE FROM app.one WHERE id > 100");
    let said = scenery.must(&["verify", "aes.sealed"]);
    assert!(
        said.contains("tablespaces: all have their checksums"),
        "{said}"
    );
    // Tables that were made a moment ago come as .new, and may lack their first page.
    let unchecked = said.lines().find(|line| line.contains("NOT checked"));
    assert!(
        unchecked.is_none_or(|line| !line.contains(".ibd") && !line.contains("ibdata1")),
        "{said}"
    );
    let position: Vec<&str> = position.split('\t').collect();
    for text in [
        "source    mariadb-backup".to_owned(),
        "server    mariadb 1".to_owned(),
        format!("binlog    {} at {}", position[0], position[1]),
        format!("gtid      {gtid}"),
    ] {
        assert!(said.contains(&text), "{text:?} is not in: {said}");
    }

    for suite in ["aes", "sm"] {
        let file = format!("{suite}.sealed");
        scenery.must(&["restore", &file, "--to", suite]);
        let options = ServerOptions {
            tls: false,
            ..ServerOptions::default()
        };
        let restored = Server::start_on(Kind::MariaDb, options, &scenery.home.path().join(suite));
        let mut session = restored.connect();
        assert_eq!(checksums(&mut session), before, "{suite}");
        for table in TABLES {
            let check = session
                .text(&format!("CHECK TABLE {table}"))
                .expect("checked");
            assert!(check.ends_with("status\tOK"), "{check}");
        }
    }
}

#[test]
fn restore_refuses_what_it_must_and_leaves_nothing() {
    if !has_mariadb_backup() {
        return;
    }
    let scenery = Scenery::build();
    scenery.must(&["backup", "--level", "1", "--to", "good"]);
    let path = |name: &str| scenery.home.path().join(name);
    fs::create_dir(path("full")).expect("made");
    fs::write(path("full/ibdata1"), "somebody's data").expect("written");
    scenery.fails(&["restore", "good", "--to", "full"], 2, "not empty");
    assert_eq!(
        fs::read(path("full/ibdata1")).expect("there"),
        b"somebody's data"
    );

    let good = fs::read(path("good")).expect("there");
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 1;
    fs::write(path("damaged"), damaged).expect("written");
    scenery.fails(
        &["restore", "damaged", "--to", "data"],
        3,
        "authentication fails",
    );
    fs::write(path("cut"), &good[..good.len() / 2]).expect("written");
    scenery.fails(&["restore", "cut", "--to", "data"], 3, "");

    fs::write(path("text"), "not a backup").expect("written");
    scenery.must(&["seal", "text", "-o", "sealed-text"]);
    scenery.fails(
        &["restore", "sealed-text", "--to", "data"],
        2,
        "not a physical backup",
    );
    assert_eq!(
        scenery.files(),
        ["cut", "damaged", "full", "good", "sealed-text", "text"]
    );
    // An empty directory that is there already.
    fs::create_dir(path("data")).expect("made");
    scenery.must(&["restore", "good", "--to", "data"]);
    assert!(path("data/ibdata1").exists());

    // A mount point cannot be replaced.
    fs::create_dir(path("mounted")).expect("made");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=512m", "tmpfs"])
        .arg(path("mounted"))
        .output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        announce("restoring into a mount point ... skipped: no tmpfs can be mounted here");
        return;
    }
    let refused = scenery.onionskin(&["restore", "damaged", "--to", "mounted"]);
    let left = fs::read_dir(path("mounted")).expect("there").count();
    // As a new file system of the ext family is; then as one that has lost something.
    fs::create_dir(path("mounted/lost+found")).expect("made");
    fs::write(path("mounted/lost+found/#12"), "x").expect("written");
    let lost = scenery.onionskin(&["restore", "good", "--to", "mounted"]);
    fs::remove_file(path("mounted/lost+found/#12")).expect("removed");
    let restored = scenery.onionskin(&["restore", "good", "--to", "mounted"]);
    let stays = fs::remove_dir(path("mounted/lost+found"));
    let names = |folder: &str| {
        let entries = fs::read_dir(path(folder)).expect("there");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    let same = names("mounted") == names("data");
    let unmounted = Command::new("umount").arg(path("mounted")).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    assert_eq!(refused.status.code(), Some(3));
    assert_eq!(left, 0, "something is left behind");
    assert_eq!(lost.status.code(), Some(2), "{lost:?}");
    assert!(restored.status.success(), "{restored:?}");
    assert!(stays.is_ok(), "{stays:?}");
    assert!(same, "the same files in both");
}

#[test]
fn pages_that_were_damaged_before_are_found() {
    if !has_mariadb_backup() {
        return;
    }
    let scenery = Scenery::build();
    scenery.must(&["backup", "--to", "good"]);
    scenery.must(&["open", "good", "-o", "stream"]);
    let path = scenery.home.path().join("stream");
    let mut stream = fs::read(&path).expect("there");
    // The head of a piece: type, length of the path, path, and 20 bytes more. (The path alone is in
    // the redo log as well.) Page 3 is the root of the primary key.
    let heads = [&b"P\x0b\0\0\0app/one.ibd"[..], b"P\x0d\0\0\0./app/one.ibd"];
    let content = heads
        .iter()
        .find_map(|head| memchr::memmem::find(&stream, head).map(|at| at + head.len() + 20));
    let content = content.expect("the tablespace is in the stream");
    stream[content + 3 * 16384 + 100] ^= 1;
    fs::write(&path, &stream).expect("written");
    scenery.must(&["seal", "stream", "-o", "damaged"]);
    scenery.must(&["verify", "--footer", "damaged"]);
    let output = scenery.onionskin(&["verify", "damaged"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("1 DAMAGED"), "{said}");
    assert!(said.contains("damaged: app/one.ibd, page 3\n"), "{said}");
}

#[test]
fn a_source_that_fails_leaves_no_file() {
    if !has_mariadb_backup() {
        return;
    }
    let scenery = Scenery::build();
    for source in ["mariadb-backup", "dump"] {
        let backup = [
            "backup",
            "--source",
            source,
            "--user",
            "nobody-at-all",
            "--to",
            "file",
        ];
        scenery.fails(&backup, 4, "the source failed");
    }
    assert_eq!(scenery.files(), [""; 0]);
}

#[test]
fn the_password_comes_from_the_environment() {
    if !has_mariadb_backup() {
        return;
    }
    let scenery = Scenery::build();
    for source in ["mariadb-backup", "dump"] {
        for (password, code) in [("native secret", 0), ("not it at all", 4)] {
            let output = Command::new(env!("CARGO_BIN_EXE_onionskin"))
                .args([
                    "backup", "--source", source, "--user", "native", "--to", source,
                ])
                .current_dir(scenery.home.path())
                .env("ONIONSKIN_PASSWORD", password)
                .output()
                .expect("onionskin runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{source}: {said}");
            assert!(!said.contains(password), "{said}");
            let _ = fs::remove_file(scenery.home.path().join(source));
        }
    }
}

#[test]
fn a_dump_comes_back() {
    let scenery = Scenery::build();
    let before = checksums(&mut scenery.server.connect());
    fs::create_dir(scenery.home.path().join("backups")).expect("made");
    let arguments = ["--databases", "app", "odd-name"];
    let backup = ["backup", "--source", "dump", "--to", "backups", "--"];
    let status = scenery.server.connect().text("SHOW MASTER STATUS");
    let status = status.expect("a position");
    let status: Vec<&str> = status.split('\t').collect();
    let gtid = scenery.server.connect().text("SELECT @@gtid_current_pos");
    let file = scenery.must(&[&backup[..], &arguments].concat());
    assert!(file.trim().ends_with("-dump.sealed"), "{file}");
    several_begin_at_once(&scenery);
    let said = scenery.must(&["verify", file.trim()]);
    for text in [
        "server    mariadb 1".to_owned(),
        format!("binlog    {} at {}", status[0], status[1]),
        format!("gtid      {}", gtid.expect("a set")),
        format!("tables    {}", TABLES.len()),
    ] {
        assert!(said.contains(&text), "{text}: {said}");
    }
    let sql = scenery.must(&["open", file.trim()]);
    let other = Server::mariadb();
    Cli::tcp(Kind::MariaDb, other.port(), "root", "")
        .without_tls()
        .must(&sql);
    assert_eq!(checksums(&mut other.connect()), before);
    scenery.fails(
        &["restore", file.trim(), "--to", "data"],
        2,
        "not a physical backup",
    );
}

/// Backups of one second into one folder do not meet under one name.
fn several_begin_at_once(scenery: &Scenery) {
    let arguments = ["backup", "-q", "--source", "stdin", "--to", "backups"];
    let start = || {
        let mut command = scenery.command(&arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let started: Vec<_> = (0..8).map(|_| start()).collect();
    let mut names = BTreeSet::new();
    for child in started {
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{output:?}");
        names.insert(output.stdout);
    }
    assert_eq!(names.len(), 8);
}

/// An authority, and a certificate of it for `localhost`: `NAME-ca.pem`, `NAME.pem`, `NAME.key`.
fn authority(folder: &Path, name: &str) {
    let openssl = |arguments: &str| {
        let output = Command::new("openssl")
            .args(arguments.split(' '))
            .current_dir(folder)
            .output()
            .expect("openssl runs");
        assert!(output.status.success(), "{arguments}: {output:?}");
    };
    let new = "-newkey rsa:2048 -nodes -days 30";
    openssl(&format!(
        "req -x509 {new} -subj /CN={name} -keyout {name}-ca.key -out {name}-ca.pem"
    ));
    openssl(&format!(
        "req {new} -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout {name}.key -out {name}.csr"
    ));
    openssl(&format!(
        "x509 -req -in {name}.csr -CA {name}-ca.pem -CAkey {name}-ca.key -CAcreateserial -days 30 -copy_extensions copy -out {name}.pem"
    ));
}

#[test]
fn backups_follow_backend_tls() {
    if !has_mariadb_backup() {
        return;
    }
    let certificates = tempfile::tempdir().expect("a folder");
    authority(certificates.path(), "ours");
    authority(certificates.path(), "theirs");
    let file = |name: &str| certificates.path().join(name).display().to_string();
    let start = |tls: bool, extra: Vec<String>| {
        let options = ServerOptions {
            tls,
            extra,
            ..ServerOptions::default()
        };
        let server = Server::start(Kind::MariaDb, options).expect("MariaDB is never skipped");
        server.connect().must("CREATE DATABASE app");
        server
            .connect()
            .must("CREATE TABLE app.t (id INT PRIMARY KEY)");
        Scenery::around(server)
    };
    let scenery = start(
        true,
        vec![
            format!("--ssl-cert={}", file("ours.pem")),
            format!("--ssl-key={}", file("ours.key")),
        ],
    );
    // No connection over TCP without TLS.
    let mut session = scenery.server.connect();
    session.must("SET GLOBAL require_secure_transport = ON");
    // That of 11.8 takes TLS where it is offered, whatever it is told.
    let version = session.text("SELECT VERSION()").expect("a version");
    let takes_tls = !version.starts_with("10.");
    let with_ca = |mode: &str, name: &str| {
        format!("backend_tls = \"{mode}\"\nbackend_ca = \"{}\"", file(name))
    };
    let alone = |mode: &str| format!("backend_tls = \"{mode}\"");
    for (number, (host, settings, works)) in [
        ("localhost", String::new(), true),
        ("localhost", alone("required"), true),
        ("127.0.0.1", with_ca("required", "ours-ca.pem"), true),
        ("localhost", with_ca("verify", "ours-ca.pem"), true),
        ("localhost", alone("never"), false),
        ("127.0.0.1", with_ca("verify", "ours-ca.pem"), false),
        ("localhost", with_ca("verify", "theirs-ca.pem"), false),
        ("localhost", with_ca("required", "theirs-ca.pem"), false),
    ]
    .into_iter()
    .enumerate()
    {
        let config = scenery.over_tcp(&format!("home{number}"), host, &settings);
        for source in ["mariadb-backup", "dump"] {
            if takes_tls && source == "mariadb-backup" && settings == alone("never") {
                continue;
            }
            scenery.backs_up(&config, source, works.then_some("mariadb 1"));
        }
    }

    let plain = start(false, vec!["--skip-ssl".into()]);
    for (mode, works) in [("preferred", true), ("never", true), ("required", false)] {
        let config = plain.over_tcp(mode, "127.0.0.1", &alone(mode));
        let backup = ["backup", "-c", &config, "--source", "dump", "--to", mode];
        let backup = [&backup[..], &["--", "--databases", "app"]].concat();
        match works {
            true => drop(plain.must(&backup)),
            false => plain.fails(&backup, 4, "the server offers no TLS"),
        }
    }
}
