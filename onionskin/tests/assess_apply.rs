//! `onionskin assess server --apply` on servers with files of options and a command that restarts
//! them: encryption at rest on and off under a load, with texts looked for in the server's files;
//! runs that are killed; and states in which nothing is changed.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::{fs::MetadataExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use onionskin_assess::apply::{ApplyReport, Outcome};
use onionskin_testkit::*;

#[path = "assess_apply/site.rs"]
mod site;

use site::{PATIENCE, Site, Writer};

on_both_servers!(
    encryption_comes_and_goes_under_a_load,
    what_is_not_understood_is_refused,
    logs_that_somebody_reads_stay,
    what_it_costs_stands_beside_it,
);

const CANARY: &str = "a canary that nobody has encrypted yet";
fn made(site: &Site) {
    site.must(&[
        "CREATE DATABASE app",
        "CREATE TABLE app.t (id INT PRIMARY KEY, v VARCHAR(100) NOT NULL)",
        &format!("INSERT INTO app.t VALUES (1, '{CANARY}')"),
        "CREATE TABLE app.`we-ïrd ``name` (id INT PRIMARY KEY) PARTITION BY HASH(id) PARTITIONS 2",
        "CREATE TABLE app.child (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES app.t (id))",
    ]);
    if site.kind == Kind::MySql {
        site.must(&[
            "CREATE TABLESPACE shared ADD DATAFILE 'shared.ibd'",
            "CREATE TABLE app.within (id INT PRIMARY KEY) TABLESPACE shared",
        ]);
    }
}

/// Begins a run, kills it in the middle, and hands out what it said.
fn killed(site: &Site, arguments: &[&str]) -> Vec<String> {
    let pid = fs::read_to_string(site.at("pid")).expect("a process");
    let mut command = site.program("10", arguments);
    let mut child: Child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("onionskin runs");
    let lines = BufReader::new(child.stderr.take().expect("its words")).lines();
    let mut seen = Vec::new();
    for line in lines.map_while(Result::ok) {
        // MariaDB's threads may be done before anybody looks: there the restart is the middle.
        let is_work = match site.kind {
            Kind::MariaDb => line.contains("restart the server"),
            Kind::MySql => line.contains("onionskin: encrypt "),
        };
        seen.push(line);
        if is_work {
            break;
        }
    }
    child.kill().expect("killed");
    let status = child.wait().expect("ended");
    assert_eq!(status.signal(), Some(9), "it was too fast: {seen:?}");
    if site.kind == Kind::MariaDb {
        // The command goes on without it, if it had begun.
        let begun = Instant::now();
        let is_same = || fs::read_to_string(site.at("pid")).is_ok_and(|now| now == pid);
        while is_same() && begun.elapsed() < Duration::from_secs(8) {
            thread::sleep(Duration::from_millis(50));
        }
        site.client();
    }
    seen
}

fn report(folder: &Path) -> ApplyReport {
    let json = fs::read_to_string(folder.join("report.json")).expect("a report");
    serde_json::from_str(&json).expect("JSON as it is documented")
}

/// What MySQL leaves of old pages in files that it writes over in time.
fn written_over_in_time(file: &str) -> bool {
    file.starts_with("#innodb_redo/") || file.ends_with(".dblwr")
}

const APPLY: [&str; 3] = ["--apply", "tde,binlog", "--yes"];

fn encryption_comes_and_goes_under_a_load(kind: Kind) {
    let Some(site) = Site::start(kind) else {
        return;
    };
    let site = Arc::new(site);
    made(&site);
    let before = site.files_with(CANARY);
    assert!(before.contains(&"app/t.ibd".into()), "{before:?}");
    assert!(before.contains(&"binlog.000001".into()), "{before:?}");
    let writer = Writer::start(&site);
    the_plan_changes_nothing(&site);
    nobody_restarts_it_unasked(&site);
    killed_in_the_middle_and_run_again(&site);
    nothing_is_found_any_more(&site);
    let keys = site.keys();
    off_again(&site);
    let confirmed = writer.stop();
    assert!(confirmed > 100, "{confirmed} rows were written meanwhile");
    assert!(site.files_with(CANARY).contains(&"app/t.ibd".into()));
    let now = site.keys();
    for (path, text) in &keys {
        assert!(path.exists(), "a key is gone");
        // MySQL adds keys to its file.
        assert!(kind == Kind::MySql || now.get(path) == Some(text));
    }
    // It starts without what was taken away.
    site.run("restart.sh");
    let there =
        site.text("SELECT COUNT(*) FROM app.t WHERE id > 1000 AND v = CONCAT('row ', id - 1000)");
    assert_eq!(there, confirmed.to_string(), "rows that were confirmed");
    let again = site.ends(&["--revert", "--yes"], 0);
    assert!(again.contains("0 done, 0 to do, 0 left"), "{again}");
}

fn the_plan_changes_nothing(site: &Site) {
    let untouched = site.beside();
    let plan = site.ends(&["--apply", "tde,binlog"], 0);
    assert!(plan.contains("nothing was changed"), "{plan}");
    assert!(plan.contains("restart the server"), "{plan}");
    assert_eq!(site.beside(), untouched);
    assert!(site.files_with(CANARY).contains(&"app/t.ibd".into()));
    if site.kind == Kind::MySql {
        let plan = site.ends(&["--apply", "tde", "--writers-wait", "0"], 0);
        assert!(plan.contains("onionskin migrate app.t --alter"), "{plan}");
    }
}

fn nobody_restarts_it_unasked(site: &Site) {
    let pid = fs::read_to_string(site.at("pid")).expect("a process");
    let asked = site.ends(&APPLY, 1);
    assert!(asked.contains("restart the server"), "{asked}");
    let again = site.ends(&APPLY, 1);
    assert!(again.contains("0 done"), "{again}");
    assert_eq!(fs::read_to_string(site.at("pid")).expect("a process"), pid);
}

fn killed_in_the_middle_and_run_again(site: &Site) {
    let prepared = site.keys();
    assert_eq!(prepared.is_empty(), site.kind == Kind::MySql);
    let restart = site.restart_command();
    let goes_on = [
        &APPLY[..],
        &["--restart-with", &restart, "--plant", "os_planted"],
    ]
    .concat();
    let told = killed(site, &goes_on).join("\n");
    assert!(told.contains("os_planted/planted.ibd"), "{told}");
    assert!(told.contains("binlog.0"), "{told}");
    let keys = site.keys();
    for (path, text) in &prepared {
        assert_eq!(keys.get(path), Some(text), "a key was written over");
    }
    for path in keys.keys() {
        let mode = fs::metadata(path).expect("there").mode() & 0o777;
        assert_eq!(mode & 0o137, 0, "{}: {mode:03o}", path.display());
    }

    // All but the old logs, which nobody has allowed to remove.
    let out = site.at("first");
    let reported = [&goes_on[..], &["--out", out.to_str().expect("text")]].concat();
    let kept = site.ends(&reported, 1);
    assert!(kept.contains("--purge-logs"), "{kept}");
    let told = report(&out);
    assert!(!told.is_complete(), "{told:#?}");
    assert_eq!(told.count(Outcome::ToDo), 0, "{told:#?}");
    let behind = told.planted.clone().expect("planted").behind.join("\n");
    assert!(behind.contains("binlog.0"), "{told:#?}");
    assert!(!behind.contains("planted.ibd"), "{told:#?}");
    assert!(site.files_with(CANARY).contains(&"binlog.000001".into()));

    let out = site.at("second");
    let purge = ["--purge-logs", "--out", out.to_str().expect("text")];
    site.ends(&[&goes_on[..], &purge].concat(), 0);
    let told = report(&out);
    assert!(told.is_complete(), "{told:#?}");
    assert!(told.count(Outcome::Done) > 0, "{told:#?}");
    let planted = told.planted.expect("planted");
    assert!(planted.complete && planted.later.is_empty(), "{planted:#?}");
    let now = site.keys();
    assert!(now.keys().eq(keys.keys()), "files of keys");
}

fn nothing_is_found_any_more(site: &Site) {
    let is_left = |file: &String| site.kind == Kind::MariaDb || !written_over_in_time(file);
    let found = || -> Vec<String> {
        let files = site.files_with(CANARY).into_iter();
        files.filter(is_left).collect()
    };
    assert_eq!(found(), Vec::<String>::new());
    // A table that is made now.
    site.must(&[
        "CREATE TABLE app.later (v VARCHAR(100)) SELECT v FROM app.t WHERE id = 1",
        "FLUSH TABLES app.later FOR EXPORT",
    ]);
    assert_eq!(found(), Vec::<String>::new());
    let nothing = site.ends(&APPLY, 0);
    assert!(nothing.contains("0 done, 0 to do, 0 left"), "{nothing}");
}

fn off_again(site: &Site) {
    let plan = site.ends(&["--revert"], 0);
    assert!(plan.contains("nothing was changed"), "{plan}");
    let restart = site.restart_command();
    let revert = ["--revert", "--yes", "--purge-logs", "--restart-with"];
    site.ends(&[&revert[..], &[&restart]].concat(), 0);
    let mut options = fs::read_dir(site.at("conf.d")).expect("a folder");
    assert!(options.next().is_none(), "our options are gone");
    let settings = match site.kind {
        Kind::MariaDb => [
            "innodb_encrypt_tables",
            "encrypt_binlog",
            "innodb_encrypt_log",
        ],
        Kind::MySql => [
            "default_table_encryption",
            "binlog_encryption",
            "innodb_redo_log_encrypt",
        ],
    };
    for setting in settings {
        let value = site.text(&format!("SELECT @@{setting}"));
        assert!(["OFF", "0"].contains(&value.as_str()), "{setting}: {value}");
    }
}

fn what_is_not_understood_is_refused(kind: Kind) {
    let Some(site) = Site::start(kind) else {
        return;
    };
    made(&site);
    let untouched = site.beside();
    let refused = |arguments: &[&str], why: &str| {
        let said = site.ends(&[&APPLY[..], arguments].concat(), 4);
        assert!(said.contains(why), "{why}: {said}");
        assert_eq!(site.beside(), untouched, "{why}");
    };
    site.must(&["SET GLOBAL read_only = ON"]);
    refused(&[], "read_only is on");
    site.must(&["SET GLOBAL read_only = OFF"]);
    let (source, reset) = match kind {
        Kind::MariaDb => (
            "CHANGE MASTER TO MASTER_HOST = 'nowhere.invalid'",
            "RESET SLAVE ALL",
        ),
        Kind::MySql => (
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'nowhere.invalid'",
            "RESET REPLICA ALL",
        ),
    };
    site.must(&[source]);
    refused(&[], "the server is a replica");
    site.must(&[reset]);
    site.must(&[
        "CREATE USER few@localhost",
        "GRANT SELECT, PROCESS ON *.* TO few@localhost",
    ]);
    refused(&["--user", "few"], "needs GRANT");
    let within = site.at("data/keys").display().to_string();
    refused(&["--keys", &within], "lies in the data directory");

    // Somebody else has the lock.
    let mut other = site.client();
    other
        .run("SELECT GET_LOCK('onionskin_apply', 0)")
        .expect("locked");
    refused(&[], "another --apply or --revert runs");
    other
        .run("DO RELEASE_LOCK('onionskin_apply')")
        .expect("released");

    match kind {
        Kind::MariaDb => {
            // A key file of which nobody knows what opens it, and one that it does not open.
            fs::create_dir(site.at("data-keys")).expect("a folder");
            let keys = site.at("data-keys/onionskin-keys.enc");
            fs::write(&keys, "Salted__12345678 and more").expect("written");
            let said = site.ends(&APPLY, 4);
            assert!(said.contains("put it back"), "{said}");
            fs::write(site.at("data-keys/onionskin-keys.secret"), "secret").expect("written");
            let said = site.ends(&APPLY, 4);
            assert!(said.contains("does not open"), "{said}");
            assert_eq!(
                fs::read(&keys).expect("there"),
                b"Salted__12345678 and more"
            );
            assert!(
                fs::read_dir(site.at("conf.d"))
                    .expect("a folder")
                    .next()
                    .is_none()
            );
        }
        Kind::MySql => {
            let manifest = site.at("data/mysqld.my");
            let text = r#"{ "components": "file://component_keyring_kmip" }"#;
            fs::write(&manifest, text).expect("written");
            let said = site.ends(&APPLY, 4);
            assert!(
                said.contains("is there, and the keyring is not active"),
                "{said}"
            );
            assert_eq!(fs::read_to_string(&manifest).expect("there"), text);
            assert!(!site.at("bin/mysqld.my").exists() && !site.at("data-keys").exists());
        }
    }
    // What was refused has changed nothing.
    assert_eq!(site.text("SELECT COUNT(*) FROM app.t"), "1");
}

/// Somebody who reads the binary log and stops in the middle, as a slow replica does.
fn logs_that_somebody_reads_stay(kind: Kind) {
    let Some(site) = Site::start(kind) else {
        return;
    };
    made(&site);
    // More than the buffers on the way hold.
    let long = format!("'{}'", "x".repeat(1_000_000));
    site.must(&["CREATE TABLE app.large (v LONGTEXT)"]);
    for _ in 0..8 {
        site.must(&[&format!("INSERT INTO app.large VALUES ({long})")]);
    }
    let restart = site.restart_command();
    let apply = ["--apply", "binlog", "--yes", "--restart-with", &restart];
    site.ends(&apply, 1);
    let reader = match kind {
        Kind::MariaDb => PathBuf::from("mysqlbinlog"),
        Kind::MySql => checkout().join("scripts/mysqlbinlog97"),
    };
    let mut reader = Command::new(reader)
        .args([
            "--no-defaults",
            "--read-from-remote-server",
            "--stop-never",
            "--user=root",
        ])
        .arg(format!("--socket={}", site.at("s").display()))
        .arg("binlog.000001")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("mysqlbinlog runs");
    let readers =
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'";
    let begun = Instant::now();
    while site.text(readers) != "1" {
        assert!(begun.elapsed() < PATIENCE, "nobody reads the log");
        thread::sleep(Duration::from_millis(50));
    }
    let purge = [&apply[..], &["--purge-logs"]].concat();
    let said = site.ends(&purge, 4);
    assert!(said.contains("nothing was removed"), "{said}");
    assert!(site.at("data/binlog.000001").exists());
    if kind == Kind::MySql {
        let plan = site.ends(&["--apply", "tde"], 0);
        assert!(
            plan.contains("whether new tables are encrypted stays"),
            "{plan}"
        );
    }
    // It reads on.
    let mut rest = reader.stdout.take().expect("what it prints");
    let drain = thread::spawn(move || std::io::copy(&mut rest, &mut std::io::sink()));
    site.ends(&purge, 0);
    assert!(!site.at("data/binlog.000001").exists());
    reader.kill().expect("killed");
    reader.wait().expect("ended");
    drain.join().expect("drained").expect("read");
}

/// `--measure`: figures in the report of what was turned on, with what shows that it was in force
/// while they were taken.
fn what_it_costs_stands_beside_it(kind: Kind) {
    let Some(site) = Site::start(kind) else {
        return;
    };
    made(&site);
    let out = site.at("measured");
    let out_of = |name: &str| fs::read_to_string(out.join(name)).expect(name);
    let restart = site.restart_command();
    let apply = [
        &APPLY[..],
        &["--restart-with", &restart, "--purge-logs"],
        &["--measure", "--tiny", "--out", out.to_str().expect("text")],
    ]
    .concat();
    let said = site.ends(&apply, 0);
    let told = report(&out);
    assert!(told.is_complete(), "{told:#?}");
    let cost = told.cost.join("\n");
    let bench = onionskin_bench::report::Report::read(&out.join("bench/report.json"));
    let bench = bench.expect("a report of its own");
    let names: Vec<&str> = bench.scenarios.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["binlog", "tde"]);
    // The server's word, its files, and a figure; off and on.
    let (tables, log) = match kind {
        Kind::MariaDb => ("innodb_encrypt_tables: ", "encrypt_binlog: "),
        Kind::MySql => ("default_table_encryption: ", "binlog_encryption: "),
    };
    for setting in [tables, log] {
        let found: Vec<&str> = cost.lines().filter(|line| line.contains(setting)).collect();
        let off_and_on = ["OFF", "ON", "0", "1"].map(|value| {
            let value = format!("{setting}{value} (");
            found.iter().any(|line| line.contains(&value))
        });
        let is_both = |values: [bool; 2]| values == [true, true];
        let [off, on, zero, one] = off_and_on;
        assert!(is_both([off || zero, on || one]), "{setting}\n{cost}");
    }
    for file in ["sbtest_canary.ibd", "binlog"] {
        for found in ["readable", "not readable"] {
            let proof = format!("a planted text in {file}: {found} (");
            assert!(cost.contains(&proof), "{proof}\n{cost}");
        }
    }
    for figure in [
        "compared with files in plaintext",
        "compared with binary log in plaintext",
    ] {
        assert!(cost.contains(figure), "{figure}\n{cost}");
    }
    assert!(
        !cost.contains(" 0 runs count") && !cost.contains("VOID"),
        "{cost}"
    );
    // It is there for people, too.
    for text in [said.as_str(), &out_of("report.html"), &out_of("report.md")] {
        assert!(text.contains("files encrypted by the server"), "{text}");
        assert!(text.contains("sbtest_canary.ibd: not readable"), "{text}");
    }

    // What fails behind it loses nothing of what was done.
    let out = site.at("again");
    fs::create_dir_all(out.join("bench")).expect("a folder");
    fs::write(out.join("bench/report.json"), "{}").expect("written");
    let again = [
        &APPLY[..],
        &["--measure", "--tiny", "--out", out.to_str().expect("text")],
    ]
    .concat();
    let said = site.ends(&again, 2);
    assert!(said.contains("0 done, 0 to do, 0 left"), "{said}");
    let told = report(&out);
    assert!(told.cost[0].starts_with("not measured: "), "{told:#?}");
}
