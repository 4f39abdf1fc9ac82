//! What a migration tells while it runs: the bar in a terminal, and `--status` from another one.

use onionskin_testkit::*;

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

on_both_servers!(
    the_bar_and_status_tell_how_far_it_is,
    a_signal_says_how_to_go_on,
    a_dry_run_is_a_plan_to_be_read,
    a_proxy_is_no_server_to_migrate_at,
);

const ROWS: u32 = 60_000;

/// What the bar shows.
#[derive(Debug)]
struct Shown {
    phase: String,
    rows: u64,
    estimate: u64,
    rate: f64,
    eta: String,
    changes: u64,
    lag: u64,
}

/// The bar as it was drawn last, in
/// `copying ███░░ 1500 of 60000 rows, 30,000.5/s, 2s left; 3 changes, lag 0 s`.
fn last_bar(terminal: &str) -> Option<Shown> {
    let line = terminal
        .split(['\r', '\n', '\u{1b}'])
        .rfind(|line| line.contains(" rows, ") && line.contains(", lag "))?;
    let (left, right) = line.split_once(" rows, ")?;
    let mut words = left.split(' ').filter(|word| !word.is_empty());
    // What the terminal was told before the text, such as to clear the line, begins with a bracket.
    let phase = words.next()?.rsplit(['K', 'J', 'G']).next()?.to_owned();
    let mut numbers = left.rsplit(' ');
    let estimate = numbers.next()?.parse().ok()?;
    numbers.next().filter(|word| *word == "of")?;
    let rows = numbers.next()?.parse().ok()?;
    let (rate, right) = right.split_once("/s, ")?;
    let (eta, right) = right.split_once(" left; ")?;
    let (changes, right) = right.split_once(" changes, lag ")?;
    let (lag, _) = right.split_once(" s")?;
    Some(Shown {
        phase,
        rows,
        estimate,
        rate: rate.replace(',', "").parse().ok()?,
        eta: eta.to_owned(),
        changes: changes.parse().ok()?,
        lag: lag.parse().ok()?,
    })
}

fn the_bar_and_status_tell_how_far_it_is(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let proxy = Proxy::start(&server, "");
    let mut session = table_with_rows(&server, ROWS);
    session.must("ANALYZE TABLE t");
    let cable = Cable::to(server.port());
    // Sealing by one thread takes longer than the time after which progress is noted.
    let sealing = [
        "app.t",
        "--encrypt",
        "v: eq range",
        "--threads",
        "1",
        "--drop-old",
    ];
    let command = migrate_at(&cable.address(), Some(&proxy), &sealing);
    let words: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| format!("'{}'", word.to_str().expect("plain words")))
        .collect();
    // `script` runs it in a pseudo terminal, which has no size of its own.
    let line = format!("stty cols 160 rows 30; exec {}", words.join(" "));
    let mut child = Command::new("script")
        .args(["-q", "-e", "-f", "-c", &line, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script of util-linux");
    let mut output = child.stdout.take().expect("piped");
    let terminal = Arc::new(Mutex::new(String::new()));
    let text = || terminal.lock().expect("no thread panics with it").clone();
    let written = Arc::clone(&terminal);
    let reader = thread::spawn(move || {
        let mut buffer = [0; 4096];
        let mut bytes = Vec::new();
        while let Ok(n @ 1..) = output.read(&mut buffer) {
            bytes.extend_from_slice(&buffer[..n]);
            *written.lock().expect("no thread panics with it") =
                String::from_utf8_lossy(&bytes).into_owned();
        }
    });

    let mut noted = || -> u64 {
        let rows =
            session.text("SELECT JSON_EXTRACT(state, '$.rows') FROM t_onionskin WHERE id = 1");
        rows.ok().and_then(|rows| rows.parse().ok()).unwrap_or(0)
    };
    let wait = Duration::from_secs(60);
    wait_until("rows are copied", wait, || {
        noted() > 0 || child.try_wait().unwrap().is_some()
    });
    // Now it stands still, and can be looked at from both sides.
    cable.freeze(true);
    wait_until("the bar shows rows", wait, || {
        last_bar(&text()).is_some_and(|shown| shown.rows > 0) || child.try_wait().unwrap().is_some()
    });
    let shown = last_bar(&text()).unwrap_or_else(|| panic!("{:?}", text()));
    let estimate = u64::from(ROWS);
    assert!(
        ["copying", "comparing"].contains(&shown.phase.as_str()),
        "{shown:?}"
    );
    assert!(shown.rows <= shown.estimate, "{shown:?}");
    assert!(
        (estimate / 2..estimate * 2).contains(&shown.estimate),
        "{shown:?}"
    );
    assert!(
        shown.rate > 0.0 && shown.eta.ends_with(['s', 'm']),
        "{shown:?}"
    );
    assert!(shown.changes == 0 && shown.lag < 60, "{shown:?}");

    let listed = must_migrate(&server, Some(&proxy), &["--status"]);
    let rows = noted();
    let phase = match shown.phase.as_str() {
        "copying" => "copy",
        _ => "check",
    };
    assert!(
        listed.starts_with("app.t  ") && listed.lines().count() == 1,
        "{listed}"
    );
    for word in [
        "encrypt",
        &format!("phase {phase}"),
        &format!("  {rows} of about "),
        "binlog.",
        " UTC",
    ] {
        assert!(listed.contains(word), "{word}: {listed}");
    }
    assert!(rows > 0 && rows <= estimate, "{listed}");

    cable.freeze(false);
    let status = child.wait().expect("script ends");
    reader.join().expect("the terminal is read");
    let text = text();
    assert!(status.success(), "{text}");
    assert!(
        text.contains(&format!("{ROWS} rows copied")) && text.contains(" 0 repaired"),
        "{text}"
    );
    // A rate is one of whole rows, and nothing is shown before it is known.
    assert_eq!(shown.rate.fract(), 0.0, "{shown:?}");
    assert!(!text.contains(" of 0 rows"), "{text}");
    let listed = must_migrate(&server, Some(&proxy), &["--status"]);
    assert!(listed.starts_with("no migration has begun"), "{listed}");
}

/// A migration that waits for a server that is never so idle, with some rows copied.
fn waiting(server: &Server) -> std::process::Child {
    let arguments = ["app.t", "--rebuild", "--max-load", "Threads_connected=0"];
    start_migration(migrate(server, None, &arguments))
}

fn status(server: &Server) -> String {
    must_migrate(server, None, &["--status"])
}

fn a_signal_says_how_to_go_on(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = table_with_rows(&server, ROWS);
    assert!(status(&server).starts_with("no migration has begun"));
    for signal in ["INT", "TERM", "KILL"] {
        let child = waiting(&server);
        let wait = Duration::from_secs(60);
        wait_until("it copies", wait, || status(&server).contains("phase copy"));
        let listed = status(&server);
        assert!(listed.contains("; a process works on it"), "{listed}");
        assert!(
            listed.contains(&format!(" of about {ROWS} rows")),
            "{listed}"
        );
        onionskin_testkit::signal(signal, child.id());
        let (succeeded, text) = end_of_migration(child);
        assert!(!succeeded, "{text}");
        if signal != "KILL" {
            let told = "onionskin migrate app.t --resume goes on where it was, --abort gives it up";
            assert!(text.contains(told), "{text}");
            // the server has the phase a moment before the program knows that it has it
            let is_sure = text.contains("app.t is as it was, and what was made beside it stays. ");
            assert!(is_sure || text.contains("stays as it is"), "{text}");
        }
        wait_until("its sessions have ended", wait, || {
            status(&server).contains("; no process works on it: onionskin migrate app.t --resume")
        });
        // What is killed is begun again.
        must_migrate(&server, None, &["app.t", "--abort"]);
    }
    let child = waiting(&server);
    wait_until("it copies", Duration::from_secs(60), || {
        status(&server).contains("phase copy")
    });
    let mut child = child;
    child.kill().expect("kill -9");
    child.wait().expect("a child");
    // In a terminal, what goes on says at once of how many rows.
    let line = format!(
        "stty cols 160 rows 30; exec '{}' migrate --backend {} app.t --resume --drop-old",
        env!("CARGO_BIN_EXE_onionskin"),
        server.address()
    );
    let output = Command::new("script")
        .args(["-q", "-e", "-f", "-c", &line, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output()
        .expect("script of util-linux");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains(&format!(" of {ROWS} rows")), "{text}");
    assert!(!text.contains(" of 0 rows"), "{text}");
    assert_eq!(
        session.text("SELECT COUNT(*) FROM t").unwrap(),
        ROWS.to_string()
    );
}

fn a_dry_run_is_a_plan_to_be_read(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let proxy = Proxy::start(&server, "");
    let mut session = table_with_rows(&server, 50_000);
    session.must("CREATE TRIGGER told AFTER DELETE ON t FOR EACH ROW SET @id = OLD.id");
    session.must("CREATE VIEW sight AS SELECT id, v FROM t");
    session.must("CREATE PROCEDURE no_matter() SELECT n AS vs FROM t");
    let arguments = ["app.t", "--encrypt", "v: eq range", "--dry-run"];
    let plan = must_migrate(&server, Some(&proxy), &arguments);
    for line in [
        "-- 1. A new table is made beside t:",
        "CREATE TABLE `t_onionskin_new` (",
        "  `n` int(11) DEFAULT NULL,",
        "-- 2. About 50000 rows are copied in the order of PRIMARY, compared, and kept up to date from the binary log.",
        "-- 3. Under a lock the new table takes the old one's place:",
        "RENAME TABLE `t` TO `t_onionskin_old`, `t_onionskin_new` TO `t`;",
        "-- 4. The triggers `told` go with it.",
    ] {
        let line = match kind {
            Kind::MySql => line.replace("int(11)", "int"),
            Kind::MariaDb => line.to_owned(),
        };
        assert!(plan.lines().any(|is| is == line), "{line}: {plan}");
    }
    assert!(plan.lines().all(|line| line.len() < 700), "{plan}");
    let notes: Vec<&str> = plan
        .lines()
        .filter(|line| line.starts_with("-- Note"))
        .collect();
    assert!(
        notes
            .iter()
            .any(|note| note.starts_with("-- Note: the view app.sight names t and a column")),
        "{plan}"
    );
    assert_eq!(session.text("SHOW TABLES").unwrap(), "sight\nt");
    session.must("DROP VIEW sight");
}

fn a_proxy_is_no_server_to_migrate_at(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let proxy = Proxy::start(&server, "");
    let mut session = table_with_rows(&server, 10);
    let address = format!("127.0.0.1:{}", proxy.port());
    for (arguments, keys) in [
        (["app.t", "--rebuild"].as_slice(), None),
        (&["app.t", "--rebuild", "--dry-run"], None),
        (&["app.t", "--encrypt", "v: eq"], Some(&proxy)),
        (&["app.t", "--encrypt", "v: eq", "--dry-run"], Some(&proxy)),
    ] {
        if kind == Kind::MySql && keys.is_some() {
            // Its configuration wants the server's own certificate.
            continue;
        }
        let command = migrate_at(&address, keys, arguments);
        let (succeeded, text) = run_migration(command);
        assert!(!succeeded, "{arguments:?}: {text}");
        assert!(
            text.contains("has to be the server itself and not a proxy"),
            "{text}"
        );
        assert_eq!(session.text("SHOW TABLES").unwrap(), "t");
    }
}
