//! Archives that a restore must bring to their end: transactions with GTIDs of every kind and
//! without, LOAD DATA in a binlog of statements, a data directory that is a mount point, a
//! failover; and those that it must refuse.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use onionskin_testkit::*;

#[path = "point_in_time/other_logs.rs"]
mod other_logs;

use other_logs::{
    a_log_that_was_begun_anew_is_refused, the_log_of_a_promoted_replica_goes_on_behind_a_backup,
};

on_both_servers!(
    files_of_load_data_lie_beside_the_data_and_go,
    the_log_of_a_promoted_replica_goes_on_behind_a_backup,
    a_log_that_was_begun_anew_is_refused,
);

/// A server with a binlog that can be backed up.
fn scenery(kind: Kind, binlog: Binlog) -> Option<Scenery> {
    // GTIDs are the default of new versions.
    scenery_with(
        kind,
        binlog,
        match kind {
            Kind::MySql => &["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"],
            Kind::MariaDb => &[],
        },
    )
}

/// The same with more options.
fn scenery_with(kind: Kind, binlog: Binlog, extra: &[&str]) -> Option<Scenery> {
    if kind == Kind::MariaDb && !has_mariadb_backup() {
        return None;
    }
    let mut options = ServerOptions {
        binlog: Some(binlog),
        ..ServerOptions::default()
    };
    options.extra = extra.iter().map(|option| option.to_string()).collect();
    if kind == Kind::MySql {
        let clone = "--plugin-load-add=mysql_clone.so";
        options.extra.push(clone.into());
    }
    Some(Scenery::around(Server::start(kind, options)?))
}

fn back_up(scenery: &Scenery, to: &str) {
    let source = match scenery.server.kind() {
        Kind::MariaDb => "mariadb-backup",
        Kind::MySql => "clone",
    };
    scenery.must(&["backup", "-q", "--source", source, "--to", to]);
}

/// The command that restores; server and tools are of the family.
fn restore(scenery: &Scenery, path: &str, arguments: [&str; 3]) -> Command {
    let [backup, binlogs, to] = arguments;
    let mut command = scenery.command(&["restore", "-q", backup]);
    command.args(["--binlogs", binlogs, "--to", to]);
    command.env("PATH", path);
    command
}

fn succeeds(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// A server on a copy of what was restored.
fn start_on(scenery: &Scenery, data: &str) -> Server {
    let kind = scenery.server.kind();
    let options = ServerOptions {
        tls: kind == Kind::MySql,
        ..ServerOptions::default()
    };
    Server::start_on(kind, options, &scenery.home.path().join(data))
}

#[test]
fn transactions_of_every_gtid_mode_are_replayed() {
    let Some(scenery) = scenery(Kind::MySql, Binlog::Row) else {
        return;
    };
    let mut session = scenery.server.connect();
    let insert = |session: &mut Session, id: u32| {
        session.must(&format!("INSERT INTO app.t VALUES ({id})"));
    };
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id INT PRIMARY KEY)");
    insert(&mut session, 1);
    back_up(&scenery, "anonymous.sealed");
    insert(&mut session, 2);
    // The usual way to GTIDs, while everything runs.
    session.must("SET GLOBAL enforce_gtid_consistency = ON");
    for (mode, id) in [("OFF_PERMISSIVE", 3), ("ON_PERMISSIVE", 4), ("ON", 5)] {
        // In the last mode the server no longer sends what has no GTID.
        scenery.must(&["archive", "--to", "log", "--once"]);
        session.must(&format!("SET GLOBAL gtid_mode = {mode}"));
        insert(&mut session, id);
    }
    // And to tags, of which the next file's list of GTIDs is full.
    session.must("SET gtid_next = 'AUTOMATIC:blue'");
    insert(&mut session, 6);
    session.must("SET gtid_next = 'AUTOMATIC'");
    session.must("FLUSH BINARY LOGS");
    back_up(&scenery, "tagged.sealed");
    insert(&mut session, 7);
    session.must("SET gtid_next = 'AUTOMATIC:blue'");
    insert(&mut session, 8);
    let executed = session.text("SELECT @@gtid_executed").expect("a set");
    assert!(executed.contains(":blue:1-2"), "{executed}");
    scenery.must(&["archive", "--to", "log", "--once"]);
    let list = scenery.must(&["archive", "--to", "log", "--list"]);
    assert!(list.contains(&format!("GTIDs {executed}")), "{list}");
    // An archive in which no list of GTIDs is without tags.
    let files = session.text("SHOW BINARY LOGS").expect("files");
    let last = files
        .lines()
        .last()
        .and_then(|line| line.split('\t').next());
    let from = format!("{}:4", last.expect("a file"));
    scenery.must(&["archive", "--to", "late", "--once", "--from", &from]);

    let path = scenery.path_of_mysql();
    for (backup, log, to) in [
        ("anonymous.sealed", "log", "all"),
        ("tagged.sealed", "late", "tagged"),
    ] {
        let restored = restore(&scenery, &path, [backup, log, to]).output();
        succeeds(&restored.expect("onionskin runs"));
        let server = start_on(&scenery, to);
        let mut session = server.connect();
        let rows = "SELECT GROUP_CONCAT(id ORDER BY id) FROM app.t";
        assert_eq!(session.text(rows).expect("rows"), "1,2,3,4,5,6,7,8", "{to}");
        let has = format!("SELECT GTID_SUBSET('{executed}', @@gtid_executed)");
        assert_eq!(session.text(&has).expect("a number"), "1", "{to}");
    }
}

/// A file system of its own, for as long as this lives.
struct Mounted(PathBuf);

impl Mounted {
    /// `None` where nothing can be mounted.
    fn at(folder: PathBuf) -> Option<Self> {
        fs::create_dir(&folder).expect("made");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=512m", "tmpfs"])
            .arg(&folder)
            .output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            announce("restoring into a mount point ... skipped: no tmpfs can be mounted here");
            return None;
        }
        fs::create_dir(folder.join("lost+found")).expect("made");
        Some(Self(folder))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// All files below a folder. Links are not followed.
fn below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => below(&entry.path(), found),
            _ => found.push(entry.path()),
        }
    }
}

fn files_of_load_data_lie_beside_the_data_and_go(kind: Kind) {
    let Some(scenery) = scenery(kind, Binlog::Statement) else {
        return;
    };
    let mut session = scenery.server.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id INT PRIMARY KEY, v VARCHAR(200))");
    back_up(&scenery, "base.sealed");
    // More than one event can hold.
    let row = |id: u32| format!("{id}\tcanary {id} {}\n", "x".repeat(60));
    let file = scenery.home.path().join("rows");
    fs::write(&file, (0..4000).map(row).collect::<String>()).expect("written");
    session.must(&format!(
        "LOAD DATA INFILE '{}' INTO TABLE app.t",
        file.display()
    ));
    session.must("UPDATE app.t SET v = CONCAT(v, ' later') WHERE id < 10");
    let events = session.text("SHOW BINLOG EVENTS").expect("events");
    assert!(events.contains("Begin_load_query"), "{events}");
    assert!(events.contains("Append_block"), "{events}");
    scenery.must(&["archive", "--to", "log", "--once"]);

    let path = match kind {
        Kind::MariaDb => std::env::var("PATH").expect("a PATH"),
        Kind::MySql => scenery.path_of_mysql(),
    };
    let temporary = scenery.home.path().join("tmp");
    fs::create_dir(&temporary).expect("made");
    // One of the two is enough for the mount point.
    let _mounted = match kind {
        Kind::MariaDb => Mounted::at(scenery.home.path().join("data")),
        Kind::MySql => None,
    };
    let before = scenery.files();
    let mut child = restore(&scenery, &path, ["base.sealed", "log", "data"])
        .env("TMPDIR", &temporary)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("onionskin runs");
    let mut seen = Vec::new();
    while child.try_wait().expect("its state").is_none() {
        below(&temporary, &mut seen);
        std::thread::sleep(Duration::from_millis(2));
    }
    succeeds(&child.wait_with_output().expect("it has ended"));
    let names: BTreeSet<_> = seen.iter().filter_map(|path| path.file_name()).collect();
    assert!(names.iter().any(|name| *name == "log"), "{names:?}");
    let loaded = |name: &&std::ffi::OsStr| name.to_string_lossy().contains("SQL_LOAD");
    assert!(!names.iter().any(loaded), "{names:?}");
    // Nothing is left.
    let mut left = Vec::new();
    below(&temporary, &mut left);
    assert!(left.is_empty(), "{left:?}");
    let after: Vec<_> = scenery.files();
    let new: Vec<_> = after.iter().filter(|name| !before.contains(name)).collect();
    assert!(new.is_empty() || new == ["data"], "{new:?}");
    let data = scenery.home.path().join("data");
    let odd = fs::read_dir(&data).expect("there").flatten().find(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.contains("replaying") || name.contains("partial")
    });
    assert!(odd.is_none(), "{odd:?}");

    let server = start_on(&scenery, "data");
    let sum = |session: &mut Session| session.text("CHECKSUM TABLE app.t").expect("a sum");
    assert_eq!(sum(&mut server.connect()), sum(&mut session));
}
