//! A backup and an archive are brought to a named transaction or time.

use super::*;

/// A server on a copy of what was restored, in which no certificates are.
fn start_on(datadir: &Path) -> Server {
    let options = ServerOptions {
        tls: false,
        ..ServerOptions::default()
    };
    Server::start_on(Kind::MariaDb, options, datadir)
}

/// Rows of the table that the recovery is about.
fn ids(datadir: &Path) -> String {
    let server = start_on(datadir);
    let mut session = server.connect();
    session
        .text("SELECT GROUP_CONCAT(id ORDER BY id) FROM app.t")
        .expect("rows")
}

/// The server's time.
fn utc(session: &mut Session) -> String {
    session
        .text("SELECT DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%d %H:%i:%s')")
        .expect("a time")
}

#[test]
fn a_backup_is_brought_to_a_named_transaction_or_time() {
    if Command::new("mariadb-backup")
        .arg("--version")
        .output()
        .is_err()
    {
        announce(
            "archive tests ... SKIPPED: mariadb-backup is not installed; run scripts/install-deps.sh tests",
        );
        return;
    }
    let scenery = Scenery::build(Kind::MariaDb, &[]).expect("MariaDB is never skipped");
    let mut session = scenery.server.connect();
    session.must("CREATE DATABASE app");
    session.must("CREATE TABLE app.t (id INT PRIMARY KEY, v VARCHAR(100) CHARACTER SET latin1, at TIMESTAMP(6))");
    session.must("INSERT INTO app.t VALUES (1, 'old', NOW(6))");
    let too_early = session.text("SELECT @@gtid_binlog_pos").expect("a GTID");
    std::thread::sleep(Duration::from_millis(1100));
    let before_the_backup = utc(&mut session);
    session.must("INSERT INTO app.t VALUES (2, 'in the backup', NOW(6))");
    scenery.must(&["backup", "-q", "--to", "base.sealed"]);

    session.must("INSERT INTO app.t VALUES (3, 'after', NOW(6))");
    let third = session.text("SELECT @@gtid_binlog_pos").expect("a GTID");
    let place = session.text("SHOW MASTER STATUS").expect("a place");
    let place: Vec<&str> = place.split('\t').collect();
    let place = format!("{}:{}", place[0], place[1]);
    // What a statement is, a definition, an account, a change of the session's settings, and bytes
    // of every kind.
    for statement in [
        "SET SESSION sql_mode = 'ANSI_QUOTES', time_zone = '+05:00', NAMES latin1",
        "BEGIN",
        "INSERT INTO app.t VALUES (4, 0x00275c0aff, NOW(6))",
        "UPDATE app.t SET v = CONCAT(v, ' changed') WHERE id = 2",
        "COMMIT",
        "CREATE TABLE \"app\".\"u\" (id INT PRIMARY KEY, d DATETIME DEFAULT NOW())",
        "FLUSH BINARY LOGS",
        "SET SESSION binlog_format = 'STATEMENT'",
        "INSERT INTO app.u (id, d) VALUES (1, '2026-01-02'), (2, NOW())",
        "CREATE USER late@localhost IDENTIFIED BY 'x'",
        "GRANT SELECT ON app.* TO late@localhost",
        "SET SESSION binlog_format = 'ROW', sql_mode = DEFAULT",
    ] {
        session.must(statement);
    }
    std::thread::sleep(Duration::from_millis(1100));
    let noon = utc(&mut session);
    std::thread::sleep(Duration::from_millis(1100));
    session.must("INSERT INTO app.t VALUES (5, 'too much', NOW(6))");
    session.must("DELETE FROM app.t WHERE id < 4");
    scenery.must(&["archive", "--to", "log", "--once", "--segment-size", "1"]);

    a_restore_ends_where_it_was_told(&scenery, &mut session, &third, &place, &noon);
    refuse(&scenery, &too_early, 1, "restore an older backup");
    refuse(&scenery, "0-1-999999", 1, "is not in the archive");
    refuse(&scenery, "binlog.000001:4", 1, "lies before the backup");
    refuse(&scenery, "tomorrow", 2, "write a time");
    refuse(
        &scenery,
        &before_the_backup,
        1,
        "lies before the end of the backup",
    );
    the_end_of_the_archive_is_known(&scenery, &mut session);
    the_archive_of_another_server_is_refused(&scenery);
    what_a_killed_restore_left_is_named(&scenery, &third);
    pruning_backups_leaves_segments_alone(&scenery);
    damaged_and_missing_segments_are_named(&scenery, &third);
}

/// Restores the backup and replays the archive; what the command says.
fn restore(scenery: &Scenery, to: &str, until: &[&str]) -> String {
    let mut arguments = vec![
        "restore",
        "-q",
        "base.sealed",
        "--to",
        to,
        "--binlogs",
        "log",
    ];
    arguments.extend(until);
    scenery.must(&arguments)
}

/// A point that cannot be reached leaves nothing behind.
fn refuse(scenery: &Scenery, until: &str, code: i32, text: &str) {
    let arguments = [
        "restore",
        "-q",
        "base.sealed",
        "--to",
        "no",
        "--binlogs",
        "log",
        "--until",
        until,
    ];
    scenery.fails(&arguments, code, text);
    assert!(!scenery.data("no").exists());
}

fn a_restore_ends_where_it_was_told(
    scenery: &Scenery,
    session: &mut Session,
    third: &str,
    place: &str,
    noon: &str,
) {
    let said = restore(scenery, "by-gtid", &["--until", third]);
    assert!(said.contains("replayed  1 transactions"), "{said}");
    assert!(
        said.contains(&format!("last      {third}, committed at ")),
        "{said}"
    );
    assert_eq!(ids(&scenery.data("by-gtid")), "1,2,3");
    let said = restore(scenery, "by-place", &["--until", place]);
    assert!(said.contains(&format!("ends at {place}")), "{said}");
    assert_eq!(ids(&scenery.data("by-place")), "1,2,3");
    let said = restore(scenery, "by-time", &["--until", noon]);
    assert!(said.contains("stopped   before 0-1-"), "{said}");
    let said = restore(scenery, "to-the-end", &[]);
    assert!(said.contains("at the end of the archive"), "{said}");
    assert_eq!(ids(&scenery.data("to-the-end")), "4,5");
    {
        let server = start_on(&scenery.data("by-time"));
        let mut copy = server.connect();
        let rows = "SELECT id, HEX(v) FROM app.t ORDER BY id";
        let rows = copy.text(rows).expect("rows");
        assert!(
            rows.contains("4\t00275C0AFF") && rows.lines().count() == 4,
            "{rows}"
        );
        let u = "SELECT * FROM app.u ORDER BY id";
        assert_eq!(copy.text(u).expect("rows"), session.text(u).expect("rows"));
        let grants = copy.text("SHOW GRANTS FOR late@localhost").expect("grants");
        assert!(grants.contains("GRANT SELECT"), "{grants}");
    }
}

/// A moment behind the last file may lack transactions; a file that begins later shows that nothing
/// is missing.
fn the_end_of_the_archive_is_known(scenery: &Scenery, session: &mut Session) {
    std::thread::sleep(Duration::from_millis(1100));
    let behind = utc(session);
    refuse(scenery, &behind, 1, "it may lack transactions");
    session.must("FLUSH BINARY LOGS");
    scenery.must(&["archive", "--to", "log", "--once"]);
    let said = restore(scenery, "to-the-last-second", &["--until", &behind]);
    assert!(said.contains("at the end of the archive"), "{said}");
    fs::remove_dir_all(scenery.data("to-the-last-second")).expect("removed");
}

/// Another server begins with the same file and the same positions, and has come as far.
fn the_archive_of_another_server_is_refused(scenery: &Scenery) {
    let other = Scenery::build(Kind::MariaDb, &[]).expect("MariaDB is never skipped");
    fs::copy(scenery.data("keys.json"), other.data("keys.json")).expect("keys");
    let mut elsewhere = other.server.connect();
    elsewhere.must("CREATE DATABASE app");
    elsewhere.must("SET GLOBAL gtid_domain_id = 5");
    let mut elsewhere = other.server.connect();
    elsewhere.must("CREATE TABLE app.other (id INT PRIMARY KEY, v TEXT)");
    elsewhere.must("INSERT INTO app.other VALUES (1, REPEAT('x', 5000))");
    other.must(&["archive", "--to", "log", "--once"]);
    let foreign = other.data("log");
    let arguments = ["restore", "-q", "base.sealed", "--to", "no", "--binlogs"];
    let arguments = [&arguments[..], &[foreign.to_str().expect("UTF-8")]].concat();
    scenery.fails(&arguments, 2, "not of the server");
}

fn what_a_killed_restore_left_is_named(scenery: &Scenery, third: &str) {
    let left = scenery.data("no.0123456789abcdef.replaying");
    fs::create_dir(&left).expect("made");
    let arguments = [
        "restore",
        "-q",
        "base.sealed",
        "--to",
        "no",
        "--binlogs",
        "log",
    ];
    let arguments = [&arguments[..], &["--until", third]].concat();
    let output = scenery.run(&arguments);
    let warned = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success()
            && warned.contains("0123456789abcdef.replaying holds the opened data"),
        "{warned}"
    );
    fs::remove_dir(&left).expect("removed");
    fs::remove_dir_all(scenery.data("no")).expect("removed");
}

/// Segments beside backups are none of the business of those who prune backups.
fn pruning_backups_leaves_segments_alone(scenery: &Scenery) {
    fs::copy(scenery.data("base.sealed"), scenery.data("log/base.sealed")).expect("a copy");
    let count = scenery.segments().len();
    let listed = scenery.must(&["backup", "list", "--to", "log"]);
    assert!(listed.contains("  binlog "), "{listed}");
    let said = scenery.must(&["backup", "prune", "--to", "log", "--keep", "1"]);
    assert!(
        said.contains("not a backup of a server (binlog)") && said.contains("0 files"),
        "{said}"
    );
    assert_eq!(scenery.segments().len(), count);
    fs::remove_file(scenery.data("log/base.sealed")).expect("removed");
}

fn damaged_and_missing_segments_are_named(scenery: &Scenery, third: &str) {
    let segments = scenery.segments();
    let mut sealed = fs::read(&segments[0]).expect("a segment");
    let middle = sealed.len() / 2;
    sealed[middle] ^= 1;
    fs::write(&segments[0], &sealed).expect("damaged");
    refuse(scenery, third, 3, "binlog.0");
    fs::remove_file(&segments[0]).expect("removed");
    refuse(scenery, third, 3, "has a gap");
    let left: Vec<_> = fs::read_dir(scenery.home.path())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.starts_with('.') || name.ends_with(".replaying"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
