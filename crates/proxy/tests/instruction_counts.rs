//! The instructions that the hot paths take, counted by callgrind and compared with
//! `tests/instruction_counts.txt`.
//!
//! Time depends on the machine's mood, counts do not: one that rises by more than 5 % is a change
//! of the code. Then either the change is mended, or it is worth its price and is recorded:
//!
//! ```text
//! ONIONSKIN_UPDATE=1 cargo test --locked --profile ci --workspace --test instruction_counts
//! ```
//!
//! A count that falls by as much is told, so that it can be recorded and what was won stays won.
//!
//! Counts of another compiler, profile, C library, valgrind or processor are other counts: the file
//! begins with what it was recorded with, and elsewhere nothing is compared, which is said. What
//! the kernel does for a system call is not counted.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

/// Figures may rise by so many parts of a thousand.
const ALLOWED: u64 = 50;
const RECORD: &str =
    "ONIONSKIN_UPDATE=1 cargo test --locked --profile ci --workspace --test instruction_counts";

/// Counts with what they hold for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Words by kind: compiler, valgrind, …
    environment: BTreeMap<String, String>,
    /// Instructions of one run, by path.
    paths: BTreeMap<String, u64>,
}

impl Counts {
    fn parse(text: &str) -> Counts {
        let mut counts = Counts::default();
        for line in text.lines().filter(|l| !l.starts_with('#')) {
            if let Some((kind, words)) = line.split_once(": ") {
                counts.environment.insert(kind.into(), words.into());
            } else if let Some((path, count)) = line.split_once(' ') {
                let count = count.trim().parse().expect("a count");
                counts.paths.insert(path.into(), count);
            }
        }
        counts
    }

    fn print(&self) -> String {
        let mut text = String::from(
            "# Instructions of one run of each hot path: instruction_counts.rs compares and records them.\n",
        );
        for (kind, words) in &self.environment {
            writeln!(text, "{kind}: {words}").unwrap();
        }
        text.push('\n');
        for (path, count) in &self.paths {
            writeln!(text, "{path:<32} {count:>9}").unwrap();
        }
        text
    }
}

/// What a comparison says.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Recorded under other circumstances: no statement about the code.
    NotComparable(String),
    Compared {
        /// Lines about figures that are wrong.
        wrong: Vec<String>,
        /// Lines about figures that have become better.
        better: Vec<String>,
    },
}

fn compare(recorded: &Counts, now: &Counts) -> Verdict {
    if recorded.environment != now.environment {
        let differs = now.environment.iter().filter_map(|(kind, words)| {
            let before = recorded.environment.get(kind);
            let before = before.map_or("nothing", String::as_str);
            (before != words).then(|| format!("{kind}: recorded with {before}, here is {words}"))
        });
        return Verdict::NotComparable(differs.collect::<Vec<_>>().join("; "));
    }
    let (mut wrong, mut better) = (Vec::new(), Vec::new());
    for (path, &count) in &now.paths {
        let Some(&before) = recorded.paths.get(path) else {
            wrong.push(format!("{path}: {count} instructions, not recorded yet"));
            continue;
        };
        let change = (count as f64 / before as f64 - 1.0) * 100.0;
        let line = format!("{path}: {before} instructions before, {count} now ({change:+.1} %)");
        if count * 1000 > before * (1000 + ALLOWED) {
            wrong.push(line);
        } else if count * 1000 < before * (1000 - ALLOWED) {
            better.push(line);
        }
    }
    for path in recorded.paths.keys() {
        if !now.paths.contains_key(path) {
            wrong.push(format!("{path}: recorded, and not counted any more"));
        }
    }
    Verdict::Compared { wrong, better }
}

/// Says what failed and what to do; `None` if nothing did.
fn complaint(verdict: &Verdict) -> Option<String> {
    match verdict {
        Verdict::Compared { wrong, .. } if !wrong.is_empty() => Some(format!(
            "hot paths do not take what was recorded (5 % more instructions are allowed):\n  {}\nIf that is meant, \
             record them anew and say why in the commit:\n  {RECORD}",
            wrong.join("\n  ")
        )),
        _ => None,
    }
}

/// Tells whoever runs the tests, whether they pass or not.
fn announce(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The program that runs the paths, an example of this crate. Cargo builds it beside all tests, but
/// not beside this one if it is named alone; so it is asked for here. It is asked for as one of the
/// whole workspace: for this crate alone, 74 crates would be built once more, with other features.
fn program() -> PathBuf {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        let built = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--locked",
                "--offline",
                "--profile",
                "ci",
            ])
            .args(["--workspace", "--example", "hot_paths"])
            .arg("--target-dir")
            .arg(profile().parent().expect("target"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo runs");
        let errors = String::from_utf8_lossy(&built.stderr);
        assert!(built.status.success(), "{errors}");
    });
    profile().join("examples/hot_paths")
}

/// `target/PROFILE`, where this test lies in `deps`.
fn profile() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    test.ancestors()
        .nth(2)
        .expect("target/PROFILE")
        .to_path_buf()
}

fn profile_name() -> Option<String> {
    Some(profile().file_name()?.to_string_lossy().into_owned())
}

fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(str::to_string)
}

/// Runs the paths under callgrind, which writes a file for each call of `measured`.
fn count(arguments: &[&str]) -> Counts {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("counts");
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg("--toggle-collect=hot_paths::measured")
        .arg("--dump-after=hot_paths::measured")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program())
        .args(arguments)
        .output()
        .expect("valgrind runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{errors}");
    let mut numbers = (1..).map(|n| instructions(&folder.path().join(format!("counts.{n}"))));
    let mut counts = Counts::default();
    for line in said.lines() {
        match line.split_once(' ') {
            Some(("environment", words)) => {
                counts.environment.insert("processor".into(), words.into());
            }
            Some((path, runs)) => {
                let runs: u64 = runs.parse().expect("a number of runs");
                let sum: u64 = (0..runs).map(|_| numbers.next().expect("endless")).sum();
                counts.paths.insert(path.into(), sum / runs);
            }
            None => panic!("{said}"),
        }
    }
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    for (kind, words) in [
        ("compiler", first_line(&compiler, &["--version"])),
        ("valgrind", first_line("valgrind", &["--version"])),
        ("library", first_line("getconf", &["GNU_LIBC_VERSION"])),
        ("profile", profile_name()),
    ] {
        let words = words.unwrap_or_else(|| "unknown".into());
        counts.environment.insert(kind.into(), words);
    }
    counts
}

/// The total of one of callgrind's files.
fn instructions(file: &Path) -> u64 {
    let text = std::fs::read_to_string(file)
        .unwrap_or_else(|e| panic!("callgrind wrote no {}: {e}", file.display()));
    let total = text.lines().find_map(|l| l.strip_prefix("totals: "));
    total
        .and_then(|t| t.trim().parse().ok())
        .expect("a total of instructions")
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/instruction_counts.txt")
}

fn recorded() -> Counts {
    Counts::parse(&std::fs::read_to_string(file()).expect("recorded counts"))
}

/// Valgrind is there, and this is the build whose counts are kept.
fn can_count() -> bool {
    if first_line("valgrind", &["--version"]).is_none() {
        announce("SKIPPED: valgrind is not installed; run scripts/install-deps.sh tests");
        return false;
    }
    if profile_name().is_none_or(|name| name != "ci") {
        announce("SKIPPED: instructions are counted in the profile ci");
        return false;
    }
    true
}

#[test]
fn hot_paths_take_no_more_instructions_than_recorded() {
    if !can_count() {
        return;
    }
    let now = count(&[]);
    if std::env::var_os("ONIONSKIN_UPDATE").is_some() {
        std::fs::write(file(), now.print()).expect("recorded");
        return;
    }
    let verdict = compare(&recorded(), &now);
    match &verdict {
        Verdict::NotComparable(why) => announce(&format!(
            "NOT COMPARED: instruction counts hold for one environment only. {why}. To record those of this one: {RECORD}"
        )),
        Verdict::Compared { better, .. } if !better.is_empty() => announce(&format!(
            "hot paths take fewer instructions than recorded; record them, so that what was won stays won:\n  {}\n  \
             {RECORD}",
            better.join("\n  ")
        )),
        Verdict::Compared { .. } => {}
    }
    if let Some(complaint) = complaint(&verdict) {
        panic!("{complaint}");
    }
}

/// Another statement's shape, read in vain, is noticed in the path where it happens.
#[test]
fn work_that_is_planted_into_a_path_is_noticed() {
    if !can_count() {
        return;
    }
    let path = "point-select";
    let before = count(&["--only", path]);
    let again = count(&["--only", path]);
    assert_eq!(complaint(&compare(&before, &again)), None, "counts repeat");
    let planted = count(&["--only", path, "--plant", path]);
    let complaint = complaint(&compare(&before, &planted)).expect("a complaint");
    assert!(complaint.contains("point-select: "), "{complaint}");
    assert!(complaint.contains(RECORD), "{complaint}");
}

fn counts(rustc: &str, paths: &[(&str, u64)]) -> Counts {
    Counts {
        environment: [("compiler".to_string(), rustc.to_string())].into(),
        paths: paths.iter().map(|(p, n)| (p.to_string(), *n)).collect(),
    }
}

#[test]
fn five_percent_are_allowed() {
    let before = counts("rustc 1", &[("a", 1000), ("b", 1000)]);
    let verdict = |a, b| compare(&before, &counts("rustc 1", &[("a", a), ("b", b)]));
    let nothing = Verdict::Compared {
        wrong: vec![],
        better: vec![],
    };
    assert_eq!(verdict(1050, 950), nothing);
    let Verdict::Compared { wrong, better } = verdict(1051, 949) else {
        panic!("comparable");
    };
    assert_eq!(wrong, ["a: 1000 instructions before, 1051 now (+5.1 %)"]);
    assert_eq!(better, ["b: 1000 instructions before, 949 now (-5.1 %)"]);
}

#[test]
fn paths_that_come_or_go_have_to_be_recorded() {
    let before = counts("rustc 1", &[("gone", 5)]);
    let verdict = compare(&before, &counts("rustc 1", &[("new", 5)]));
    let complaint = complaint(&verdict).expect("a complaint");
    assert!(complaint.contains("new: 5 instructions, not recorded yet"));
    assert!(complaint.contains("gone: recorded, and not counted any more"));
}

#[test]
fn counts_of_another_compiler_are_not_compared() {
    let recorded = counts("rustc 1", &[("a", 1)]);
    let verdict = compare(&recorded, &counts("rustc 2", &[("a", 9)]));
    let why = "compiler: recorded with rustc 1, here is rustc 2".to_string();
    assert_eq!(complaint(&verdict), None);
    assert_eq!(verdict, Verdict::NotComparable(why));
}

#[test]
fn what_is_recorded_can_be_read() {
    let counts = counts("rustc 1", &[("a", 1), ("b", 22)]);
    assert_eq!(Counts::parse(&counts.print()), counts);
    assert!(recorded().paths.len() > 10);
}
