//! Sources that lie: a server that `archive` and `migrate` read a binlog and rows from, and that
//! `backup` asks what it is. The generator prints its seed; `ONIONSKIN_SEED` runs it again.
//!
//! Whatever the source says, the program ends by itself, with an error or without, within its
//! bounds of time and memory; and afterwards it works with the same server that tells the truth.

use onionskin_testkit::*;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

on_both_servers!(
    an_archive_of_lies_ends,
    a_migration_among_lies_ends,
    a_backup_among_lies_ends,
);

/// What a program may take of address space at most, in KiB, whatever lengths a source names.
const MEMORY_KIB: u64 = 3 << 20;
/// How long it may take for a few hundred rows.
const PATIENCE: Duration = Duration::from_secs(60);
/// One packet in so many is changed.
const RATES: [u64; 4] = [10, 40, 200, 2000];

fn seed() -> u64 {
    match std::env::var("ONIONSKIN_SEED") {
        Ok(seed) => seed.parse().expect("a number"),
        // each night another one
        Err(_) if long_run() => u64::from(std::process::id()) << 20 | 20_261_123,
        Err(_) => 20_261_123,
    }
}

fn rounds(short: usize) -> usize {
    if long_run() { short * 25 } else { short }
}

/// A server with rows in tables and in its binlog, and a folder whose configuration names the liar
/// before it.
struct Place {
    scenery: Scenery,
    liar: Liar,
}

impl Place {
    fn start(kind: Kind) -> Option<Place> {
        let options = ServerOptions {
            binlog: Some(Binlog::Row),
            ..ServerOptions::default()
        };
        let server = Server::start(kind, options)?;
        let mut session = server.connect();
        session.must("CREATE DATABASE app");
        session.must("USE app");
        session.must("CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR(60), d DECIMAL(9,2), b BLOB, at TIMESTAMP(3) NULL)");
        for id in 0..300 {
            session.must(&format!(
                "INSERT INTO t VALUES ({id}, 'zanzibar {id}', {id}.25, REPEAT('x', {id}), '2026-01-01 10:11:12.5')"
            ));
        }
        let seed = seed();
        announce(&format!("ONIONSKIN_SEED={seed}"));
        let liar = Liar::tcp(seed, server.port());
        let scenery = Scenery::around(server);
        let file = scenery.home.path().join("onionskin.toml");
        let text = std::fs::read_to_string(&file).expect("a configuration");
        let true_address = format!("unix:{}", scenery.server.socket().display());
        assert!(text.contains(&true_address), "{text}");
        let text = text.replace(&true_address, &liar.address());
        std::fs::write(
            scenery.home.path().join("lies.toml"),
            format!("backend_tls = \"never\"\n{text}"),
        )
        .expect("written");
        Some(Place { scenery, liar })
    }

    /// Runs the program against the liar, with bounds of time and memory. It ends by itself.
    fn lied_to(&self, arguments: &[&str], one_in: u64) -> Output {
        let program = self.scenery.command(arguments);
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("ulimit -v {MEMORY_KIB}; exec \"$@\""))
            .arg("sh")
            .arg(program.get_program())
            .args(program.get_args())
            .current_dir(self.scenery.home.path())
            .env(
                "ONIONSKIN_MYSQLD",
                self.scenery.server.kind().server_program(),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        self.liar.lie(one_in);
        let child = command.spawn().expect("it starts");
        let pid = child.id();
        let begun = Instant::now();
        // what hangs is ended, and then seen to have been ended by a signal
        let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let watch = {
            let done = std::sync::Arc::clone(&done);
            std::thread::spawn(move || {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    if begun.elapsed() > PATIENCE {
                        return signal("KILL", pid);
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
            })
        };
        let output = child.wait_with_output().expect("it ends");
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        watch.join().expect("the watch ends");
        self.liar.lie(0);
        let said = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code();
        assert!(
            code.is_some_and(|code| code < 100),
            "{arguments:?} ends with {:?} after {:?}: {said}",
            output.status,
            begun.elapsed()
        );
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
        output
    }

    fn rows(&self) -> String {
        let mut session = self.scenery.server.connect();
        session
            .text("SELECT * FROM app.t ORDER BY id")
            .expect("rows")
    }

    fn conclude(&self) {
        assert!(self.liar.lies() > 0, "nothing was changed");
        announce(&format!("{} packets were changed", self.liar.lies()));
    }
}

fn an_archive_of_lies_ends(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(place) = Place::start(kind) else {
        return;
    };
    let home = &place.scenery;
    for n in 0..rounds(30) {
        let folder = format!("log{n}");
        let archive = ["archive", "-c", "lies.toml", "--to", &folder, "--once"];
        place.lied_to(&archive, RATES[n % RATES.len()]);
        // what it has kept can be looked at, and the archive goes on or says why not
        let shown = home.onionskin(&["archive", "--to", &folder, "--list"]);
        assert!(
            shown.status.code().is_some_and(|code| code < 100),
            "{shown:?}"
        );
        let truth = home.onionskin(&["archive", "--to", &folder, "--once"]);
        assert!(
            truth.status.code().is_some_and(|code| code < 100),
            "{truth:?}"
        );
    }
    home.must(&["archive", "--to", "log", "--once"]);
    place.conclude();
}

fn a_migration_among_lies_ends(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(place) = Place::start(kind) else {
        return;
    };
    let home = &place.scenery;
    let before = place.rows();
    let mut ended = 0;
    for n in 0..rounds(40) {
        let begin = ["migrate", "-c", "lies.toml", "app.t", "--encrypt", "c: eq"];
        let done = place.lied_to(&begin, RATES[n % RATES.len()]);
        if done.status.success() {
            ended += 1;
        } else {
            // it may have left nothing to give up, or have switched the tables already
            let aborted = home.onionskin(&["migrate", "app.t", "--abort"]);
            if !aborted.status.success() {
                home.onionskin(&["migrate", "app.t", "--resume"]);
            }
        }
        let mut session = home.server.connect();
        let columns = session.text("SHOW COLUMNS FROM app.t").expect("columns");
        let mut drop_others = || {
            let tables = session.text("SHOW TABLES FROM app").expect("tables");
            for other in tables.lines().filter(|table| *table != "t") {
                session.must(&format!("DROP TABLE app.{other}"));
            }
        };
        drop_others();
        if columns.contains("c$enc") {
            home.must(&["migrate", "app.t", "--decrypt", "c"]);
            drop_others();
        }
        assert_eq!(place.rows(), before, "round {n}");
    }
    announce(&format!("{ended} migrations came to their end among lies"));
    place.conclude();
}

fn a_backup_among_lies_ends(kind: Kind) {
    if direct_mode() || (kind == Kind::MariaDb && !has_mariadb_backup()) {
        return;
    }
    let Some(place) = Place::start(kind) else {
        return;
    };
    let home = &place.scenery;
    for n in 0..rounds(12) {
        let name = format!("sealed{n}");
        let backup = [
            "backup",
            "-c",
            "lies.toml",
            "--source",
            "dump",
            "--to",
            &name,
        ];
        let done = place.lied_to(&backup, RATES[n % RATES.len()]);
        let is_there = home.home.path().join(&name).exists();
        // nothing is left under the name of a backup that failed
        assert_eq!(is_there, done.status.success(), "{done:?}");
        if is_there {
            home.must(&["verify", &name]);
        }
    }
    home.must(&["backup", "--source", "dump", "--to", "sealed"]);
    home.must(&["verify", "sealed"]);
    place.conclude();
}
