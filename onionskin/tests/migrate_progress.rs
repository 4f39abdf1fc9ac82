//! What a migration tells while it runs: the bar in a terminal, and `--status` from another one.

mod support;
use support::*;

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

on_both_servers!(the_bar_and_status_tell_how_far_it_is);

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
    assert_eq!(must_migrate(&server, Some(&proxy), &["--status"]), "");
}
