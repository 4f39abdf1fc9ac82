//! A folder of backups: listed, continued by incremental ones, pruned.

use onionskin_testkit::*;
use std::fs;

/// Makes a backup in `backups`, and returns the name of its file. Names tell times, so they are
/// changed to `name`.
fn backup(scenery: &Scenery, arguments: &[&str], name: &str) -> String {
    let to = format!("backups/{name}");
    let arguments = [
        &["backup", "-q", "--level", "1", "--to", &to][..],
        arguments,
    ]
    .concat();
    assert_eq!(scenery.must(&arguments).trim(), to);
    to
}

fn list(scenery: &Scenery) -> Vec<String> {
    let said = scenery.must(&["backup", "list", "--to", "backups"]);
    said.lines().map(str::to_owned).collect()
}

/// A file's authenticated time of making is not its name's or its inode's, so it cannot be set
/// back: time must pass.
fn next_second() {
    std::thread::sleep(std::time::Duration::from_millis(1100));
}

fn checks(session: &mut Session) {
    for table in TABLES {
        let check = session.text(&format!("CHECK TABLE {table}"));
        let check = check.expect("checked");
        assert!(check.ends_with("status\tOK"), "{check}");
    }
}

const PRUNE: [&str; 6] = ["backup", "prune", "--to", "backups", "--keep", "1"];

/// Names of the files in the folder of backups.
fn left(scenery: &Scenery) -> Vec<String> {
    let entries = fs::read_dir(scenery.home.path().join("backups")).expect("there");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = names
        .map(|name| name.into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

#[test]
fn incremental_backups_are_listed_restored_and_pruned() {
    if !has_mariadb_backup() {
        return;
    }
    let scenery = Scenery::build();
    let mut session = scenery.server.connect();
    fs::create_dir(scenery.home.path().join("backups")).expect("made");
    let mut states = Vec::new();
    // full ← first ← second, and another full one.
    backup(&scenery, &[], "full");
    states.push(("full", checksums(&mut session)));
    session.must("DELETE FROM app.one WHERE id <= 1000");
    session.must("UPDATE app.one SET c = 'changed' WHERE id % 7 = 0");
    session.must("INSERT INTO app.parted SELECT seq FROM mysql.seq_5001_to_6000");
    next_second();
    backup(&scenery, &["--incremental", "backups/full"], "first");
    states.push(("first", checksums(&mut session)));
    session.must("UPDATE app.two SET c = 'in Aria' WHERE id = 5");
    session.must("ALTER TABLE `odd-name`.`t t` ADD COLUMN more INT DEFAULT 7");
    session.must("CREATE TABLE app.later (id INT PRIMARY KEY)");
    session.must("INSERT INTO app.later VALUES (42)");
    let gtid = session
        .text("SELECT @@gtid_binlog_pos")
        .expect("a position");
    next_second();
    // Of a folder, the newest that can be continued.
    backup(
        &scenery,
        &["--incremental", "backups", "--suite", "sm"],
        "second",
    );
    states.push(("second", checksums(&mut session)));
    next_second();
    backup(
        &scenery,
        &["--source", "dump", "--", "--databases", "app"],
        "dump",
    );

    backups_are_listed_with_what_they_continue(&scenery, &gtid);
    each_state_comes_back_as_it_was(&scenery, &states);
    what_the_newest_needs_stays(&scenery);
    a_backup_without_its_base_is_refused(&scenery);
    nothing_is_judged_without_its_keys(&scenery);
}

fn backups_are_listed_with_what_they_continue(scenery: &Scenery, gtid: &str) {
    let lines = list(scenery);
    let line = |name: &str| {
        let mut lines = lines.iter().filter(|line| line.starts_with(name));
        lines
            .next()
            .unwrap_or_else(|| panic!("{name}: {lines:?}"))
            .clone()
    };
    assert_eq!(lines.len(), 6, "{lines:?}");
    for (name, ends) in [
        ("full ", "footer checked, full"),
        ("first ", "footer checked, incremental on full"),
        ("second ", "footer checked, incremental on first"),
        ("dump ", "footer checked, full"),
        ("4 sealed files", "onionskin verify FILE"),
    ] {
        assert!(line(name).ends_with(ends), "{}", line(name));
    }
    assert!(
        line("first ").contains("  mariadb-backup  mariadb 1"),
        "{lines:?}"
    );
    assert!(
        line("dump ").contains("  dump            mariadb 1"),
        "{lines:?}"
    );
    let said = scenery.must(&["verify", "backups/second"]);
    assert!(said.contains(&format!("gtid      {gtid}")), "{said}");
    assert!(said.contains("base      first"), "{said}");
}

fn each_state_comes_back_as_it_was(scenery: &Scenery, states: &[(&str, Vec<String>)]) {
    for (name, before) in states {
        scenery.must(&["restore", "-q", &format!("backups/{name}"), "--to", name]);
        let data = scenery.home.path().join(name);
        let options = ServerOptions {
            tls: false,
            ..ServerOptions::default()
        };
        let restored = Server::start_on(Kind::MariaDb, options, &data);
        let mut session = restored.connect();
        assert_eq!(&checksums(&mut session), before, "{name}");
        checks(&mut session);
        let later = session.text("SELECT id FROM app.later");
        assert_eq!(later.is_ok_and(|rows| rows == "42"), *name == "second");
        drop(restored);
        fs::remove_dir_all(data).expect("removed");
    }
    // Nothing is left beside the restored ones.
    assert_eq!(scenery.files(), ["backups"]);
}

fn what_the_newest_needs_stays(scenery: &Scenery) {
    // The newest of all is a dump, which nothing physical gives way to.
    let said = scenery.must(&PRUNE);
    assert!(said.contains("0 files, 0 B removed"), "{said}");
    let port = scenery.server.port();
    assert!(said.contains("(dump of mariadb, "), "{said}");
    let data = scenery.server.data_dir();
    let is_told = said.contains(&format!(":{port} {}", data.display()));
    assert!(is_told, "{said}");
    assert_eq!(left(scenery), ["dump", "first", "full", "second"]);
    fs::remove_file(scenery.home.path().join("backups/dump")).expect("removed");
    let said = scenery.must(&PRUNE);
    assert!(said.contains("0 files, 0 B removed"), "{said}");
    assert_eq!(left(scenery), ["first", "full", "second"]);
    next_second();
    backup(scenery, &[], "new");
    let dry = [&PRUNE[..], &["--dry-run"]].concat();
    let said = scenery.must(&dry);
    assert!(
        said.contains("3 files") && said.contains("would be removed"),
        "{said}"
    );
    assert_eq!(left(scenery), ["first", "full", "new", "second"]);
    let two = ["backup", "prune", "--to", "backups", "--keep", "2"];
    let said = scenery.must(&two);
    assert!(said.contains("0 files"), "{said}");
    assert!(
        said.contains("keep, an incremental backup that is kept needs it"),
        "{said}"
    );
}

/// It is left alone, and so is a file that was damaged.
fn a_backup_without_its_base_is_refused(scenery: &Scenery) {
    fs::rename(
        scenery.home.path().join("backups/first"),
        scenery.home.path().join("away"),
    )
    .expect("moved");
    scenery.fails(
        &["restore", "backups/second", "--to", "data"],
        2,
        "second continues first",
    );
    scenery.fails(
        &["backup", "--incremental", "backups/second", "--to", "x"],
        2,
        "continues first",
    );
    let lines = list(scenery);
    assert!(
        lines.iter().any(|line| line.contains("CANNOT BE RESTORED")),
        "{lines:?}"
    );
    // A file that was damaged is one that does not verify.
    let path = scenery.home.path().join("backups/full");
    let mut damaged = fs::read(&path).expect("there");
    damaged.truncate(damaged.len() / 2);
    fs::write(&path, damaged).expect("written");
    scenery.fails(
        &["backup", "list", "--to", "backups"],
        3,
        "1 of the streams",
    );
    let said = scenery.must(&PRUNE);
    assert!(said.contains("left alone"), "{said}");
    assert_eq!(left(scenery), ["full", "new", "second"]);
    fs::rename(
        scenery.home.path().join("away"),
        scenery.home.path().join("backups/first"),
    )
    .expect("moved");
    fs::remove_file(&path).expect("removed");
    fs::remove_file(scenery.home.path().join("backups/new")).expect("removed");
    scenery.fails(
        &["backup", "--incremental", "backups", "--to", "x"],
        2,
        "make a full one first",
    );
}

fn nothing_is_judged_without_its_keys(scenery: &Scenery) {
    scenery.must(&["init", "--dir", "other", "--backend", "127.0.0.1:1"]);
    let foreign = [
        "backup",
        "prune",
        "--keys",
        "other/keys.json",
        "--to",
        "backups",
        "--keep",
        "1",
    ];
    scenery.fails(&foreign, 2, "do not verify");
    assert_eq!(left(scenery), ["first", "second"]);
}

#[test]
fn what_cannot_be_continued_is_refused() {
    if !has_mariadb_backup() {
        return;
    }
    let scenery = Scenery::build();
    scenery.must(&["backup", "--source", "dump", "--to", "dump", "--", "app"]);
    for source in ["dump", "stdin"] {
        let backup = [
            "backup",
            "--source",
            source,
            "--incremental",
            "dump",
            "--to",
            "x",
        ];
        scenery.fails(&backup, 2, "always copies everything");
    }
    let backup = ["backup", "--incremental", "dump", "--to", "x"];
    scenery.fails(
        &backup,
        2,
        "only backups by mariadb-backup can be continued",
    );
    // Pages of another server do not fit, whatever the numbers say.
    let other = Scenery::around(Server::mariadb());
    let keys = |scenery: &Scenery| scenery.home.path().join("keys.json");
    fs::copy(keys(&scenery), keys(&other)).expect("keys");
    other.must(&["backup", "--to", "full"]);
    let folder = other.home.path().to_str().expect("UTF-8");
    let full = format!("{folder}/full");
    for (base, text) in [
        (full.as_str(), "is of another server"),
        (folder, "holds no backup of this server"),
    ] {
        scenery.fails(&["backup", "--incremental", base, "--to", "x"], 2, text);
    }
    scenery.fails(&["backup", "prune", "--to", "."], 2, "--keep");
    scenery.fails(
        &["backup", "prune", "--to", ".", "--keep", "0"],
        2,
        "write 7",
    );
    scenery.fails(&["backup"], 2, "--to");
    assert_eq!(scenery.files(), ["dump"]);
}

#[test]
fn a_server_starts_on_what_is_verified() {
    if !has_mariadb_backup() {
        return;
    }
    let scenery = Scenery::build();
    let mut session = scenery.server.connect();
    // It would run once the copy does.
    session.must("CREATE EVENT app.purge ON SCHEDULE EVERY 1 SECOND DO DELETE FROM app.one");
    session.must("CREATE VIEW app.seen AS SELECT id FROM app.one");
    fs::create_dir(scenery.home.path().join("work")).expect("made");
    let verify = |name: &str| {
        let said = scenery.must(&["verify", "--start", "--work", "work", name]);
        let line = said.lines().find(|line| line.starts_with("started"));
        let line = line.unwrap_or_else(|| panic!("{said}")).to_owned();
        assert!(
            line.contains("started   1") && line.ends_with("tables pass CHECK TABLE"),
            "{said}"
        );
        assert_eq!(
            fs::read_dir(scenery.home.path().join("work"))
                .expect("there")
                .count(),
            0
        );
        let count = line
            .split_whitespace()
            .rev()
            .nth(4)
            .and_then(|count| count.parse::<usize>().ok());
        count.unwrap_or_else(|| panic!("{line}"))
    };
    scenery.must(&["backup", "--to", "full"]);
    session.must("CREATE TABLE app.more (id INT PRIMARY KEY)");
    scenery.must(&["backup", "--incremental", "full", "--to", "increment"]);
    let all = "SELECT COUNT(*) FROM information_schema.tables WHERE table_type <> 'VIEW' AND table_type <> 'SYSTEM VIEW' \
        AND table_schema NOT IN ('information_schema', 'performance_schema')";
    let count: usize = session
        .text(all)
        .expect("a count")
        .parse()
        .expect("a number");
    assert_eq!((verify("full"), verify("increment")), (count - 1, count));
    scenery.must(&[
        "backup",
        "--source",
        "dump",
        "--to",
        "dump",
        "--",
        "--databases",
        "app",
        "odd-name",
    ]);
    assert!(verify("dump") >= 5);

    // A table that was damaged before the backup was made. (Of other engines' pages, mariadb-backup
    // itself would complain.)
    session.must("CREATE TABLE app.old (id INT PRIMARY KEY, c VARCHAR(50)) ENGINE=MyISAM");
    session.must("INSERT INTO app.old SELECT seq, MD5(seq) FROM mysql.seq_1_to_5000");
    session.must("FLUSH TABLES app.old");
    let path = scenery.server.data_dir().join("app/old.MYD");
    let mut content = fs::read(&path).expect("there");
    content[20_000..60_000].fill(0x55);
    fs::write(&path, content).expect("written");
    scenery.must(&["backup", "--to", "faulty"]);
    let output = scenery.onionskin(&["verify", "--start", "faulty"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(said.contains("FAULTY: app.old: "), "{said}");
    assert_eq!(said.matches("FAULTY").count(), 1, "{said}");
    scenery.must(&["backup", "--source", "stdin", "--to", "text"]);
    scenery.fails(
        &["verify", "--start", "text"],
        2,
        "no server starts on that",
    );
}
