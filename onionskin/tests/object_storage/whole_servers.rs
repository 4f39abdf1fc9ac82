//! Whole servers: from their backups and archives in a bucket they come back as they were.

use std::fs;
use std::process::{Child, Stdio};
use std::time::Duration;

use onionskin_testkit::*;

use super::desk::alone;
use super::servers::{S3, Which};

on_both_servers!(
    a_server_comes_back_from_a_bucket,
    an_archive_in_a_bucket_goes_on
);

/// What is in the server.
const SUM: &str = "SELECT COUNT(*), SUM(id), SUM(CRC32(c)) FROM app.one";

fn scenery(kind: Kind) -> Option<Scenery> {
    let extra: &[&str] = match kind {
        Kind::MariaDb => &[],
        Kind::MySql => &[
            "--plugin-load-add=mysql_clone.so",
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
        ],
    };
    let options = ServerOptions {
        binlog: Some(Binlog::Row),
        extra: extra.iter().map(|text| (*text).to_owned()).collect(),
        ..ServerOptions::default()
    };
    let server = Server::start(kind, options)?;
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.one (id INT PRIMARY KEY AUTO_INCREMENT, c VARCHAR(100))");
    grow(&mut session, 12);
    Some(Scenery::around(server))
}

/// Doubles the table so many times, from one row on.
fn grow(session: &mut Session, times: usize) {
    session.must("USE app");
    session.must("INSERT INTO app.one (c) VALUES (SHA2('seed', 256))");
    for _ in 0..times {
        session.must("INSERT INTO app.one (c) SELECT SHA2(CONCAT(c, id), 256) FROM app.one");
    }
}

/// The program at the scenery, with a store.
struct Stage<'a> {
    scenery: &'a Scenery,
    endpoint: String,
    path: String,
}

impl<'a> Stage<'a> {
    fn new(scenery: &'a Scenery, s3: &S3) -> Self {
        let path = match scenery.server.kind() {
            Kind::MySql => scenery.path_of_mysql(),
            Kind::MariaDb => std::env::var("PATH").unwrap_or_default(),
        };
        Stage {
            scenery,
            endpoint: s3.endpoint(),
            path,
        }
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.scenery.command(arguments);
        let server = self.scenery.server.kind().server_program();
        alone(&mut command);
        command
            .env("AWS_ENDPOINT_URL", &self.endpoint)
            .env("AWS_ACCESS_KEY_ID", "KEY1")
            .env("AWS_SECRET_ACCESS_KEY", "SECRET1")
            .env("ONIONSKIN_MYSQLD", server)
            .env("PATH", &self.path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().expect("onionskin starts")
    }

    fn must(&self, arguments: &[&str]) -> String {
        let output = self.start(arguments).wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn fails(&self, arguments: &[&str], code: i32, text: &str) {
        let output = self.start(arguments).wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(text), "{text:?} is not in: {said}");
    }

    /// What a server says that runs on a restored directory, which is removed then.
    fn asked(&self, name: &str, sql: &str) -> String {
        let data = self.scenery.home.path().join(name);
        let kind = self.scenery.server.kind();
        let options = ServerOptions {
            tls: false,
            ..ServerOptions::default()
        };
        let restored = Server::start_on(kind, options, &data);
        let said = restored.connect().text(sql).expect("rows");
        drop(restored);
        fs::remove_dir_all(data).expect("removed");
        said
    }
}

fn source(kind: Kind) -> &'static str {
    match kind {
        Kind::MariaDb => "mariadb-backup",
        Kind::MySql => "clone",
    }
}

fn a_server_comes_back_from_a_bucket(kind: Kind) {
    let Some(s3) = S3::start(Which::SeaweedFs) else {
        return;
    };
    if kind == Kind::MariaDb && !has_mariadb_backup() {
        return;
    }
    let Some(scenery) = scenery(kind) else { return };
    s3.make_bucket("backups");
    let stage = Stage::new(&scenery, &s3);
    let mut session = scenery.server.connect();
    let place = "s3://backups/db1";
    // Not compressed, so that it has several parts.
    let backup = [
        "backup",
        "-q",
        "--level",
        "0",
        "--source",
        source(kind),
        "--to",
        place,
    ];
    let full = stage.must(&backup);
    let before = session.text(SUM).expect("rows");
    grow(&mut session, 1);
    let after = session.text(SUM).expect("rows");
    std::thread::sleep(Duration::from_millis(1100));
    let newest = match kind {
        Kind::MariaDb => stage.must(&[&backup[..], &["--incremental", place]].concat()),
        Kind::MySql => stage.must(&backup),
    };
    let said = stage.must(&["backup", "list", "--to", place]);
    assert_eq!(said.matches("footer checked").count(), 2, "{said}");
    if kind == Kind::MariaDb {
        assert!(said.contains("footer checked, incremental on "), "{said}");
    }
    for (file, state) in [(full.trim(), &before), (newest.trim(), &after)] {
        let said = stage.must(&["verify", "-q", file]);
        assert!(said.contains("all have their checksums"), "{said}");
        stage.must(&["restore", "-q", file, "--to", "data"]);
        assert_eq!(stage.asked("data", SUM), *state);
    }
    // A base stays as long as it is needed.
    let said = stage.must(&["backup", "prune", "--keep", "1", "--to", place]);
    match kind {
        Kind::MariaDb => {
            assert!(said.contains("keep, an incremental backup"), "{said}");
            s3.remove("backups", full.trim().trim_start_matches("s3://backups/"));
            let restore = ["restore", "-q", newest.trim(), "--to", "data"];
            stage.fails(&restore, 2, "put the missing file back");
        }
        Kind::MySql => assert!(said.contains("1 files"), "{said}"),
    }
}

fn an_archive_in_a_bucket_goes_on(kind: Kind) {
    let Some(s3) = S3::start(Which::SeaweedFs) else {
        return;
    };
    if kind == Kind::MariaDb && !has_mariadb_backup() {
        return;
    }
    let Some(scenery) = scenery(kind) else { return };
    s3.make_bucket("backups");
    let stage = Stage::new(&scenery, &s3);
    let mut session = scenery.server.connect();
    let (file, log) = ("s3://backups/base.sealed", "s3://backups/log");
    stage.must(&["backup", "-q", "--source", source(kind), "--to", file]);
    let archive = ["archive", "--to", log, "--once"];
    for _ in 0..2 {
        grow(&mut session, 1);
        session.must("FLUSH BINARY LOGS");
        let said = stage.must(&archive);
        assert!(
            said.lines()
                .all(|line| line.starts_with("s3://backups/log/")),
            "{said}"
        );
    }
    // Killed in the middle, it goes on; a second one beside it ends.
    let mut killed = stage.start(&["archive", "--to", log, "--segment-age", "1"]);
    grow(&mut session, 1);
    std::thread::sleep(Duration::from_millis(1500));
    killed.kill().expect("killed");
    killed.wait().expect("it ends");
    grow(&mut session, 1);
    stage.must(&archive);
    let said = stage.must(&["archive", "--to", log, "--list"]);
    assert!(said.contains("no gap; of "), "{said}");
    let state = session.text(SUM).expect("rows");
    stage.must(&["restore", "-q", file, "--binlogs", log, "--to", "data"]);
    assert_eq!(stage.asked("data", SUM), state);

    // To recipients, a note beside the newest segment says where it ends.
    let output = stage.must(&["identity", "-o", "identity"]);
    drop(output);
    let recipient = stage.must(&["identity", "--of", "identity"]);
    let to_recipient = [
        "archive",
        "--to",
        "s3://backups/other",
        "--once",
        "--recipient",
        recipient.trim(),
    ];
    for _ in 0..2 {
        stage.must(&to_recipient);
        grow(&mut session, 1);
        session.must("FLUSH BINARY LOGS");
    }
    let said = stage.must(&[
        "archive",
        "--to",
        "s3://backups/other",
        "--list",
        "--identity",
        "identity",
    ]);
    assert!(said.contains("no gap; of "), "{said}");

    // A segment that is not there is a gap.
    let names: Vec<String> = s3.names("backups", "log");
    s3.remove("backups", &format!("log/{}", names[1]));
    stage.fails(
        &["archive", "--to", log, "--list"],
        3,
        "the archive has a gap",
    );
}
