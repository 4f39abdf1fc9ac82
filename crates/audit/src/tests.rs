//! Whole runs, and what is made of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use onionskin_crypt::{AuditKey, dangerous_bytes::data_key_from_bytes};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::{AuditLog, Count, Fault, Report, RunState, Settings, Statement, verify};

fn key(byte: u8) -> Arc<AuditKey> {
    Arc::new(AuditKey::new(&data_key_from_bytes([byte; 32])))
}

struct Place {
    folder: TempDir,
    heads: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = || tempfile::tempdir().expect("a folder");
        let (folder, heads) = (folder(), folder());
        Place { folder, heads }
    }

    fn heads(&self) -> PathBuf {
        self.heads.path().join("heads")
    }

    fn settings(&self, part_bytes: u64) -> Settings {
        Settings {
            folder: self.folder.path().to_owned(),
            heads: Some(self.heads()),
            part_bytes,
            every: Duration::from_secs(3600),
            syslog: None,
        }
    }

    fn begin(&self, part_bytes: u64) -> Arc<AuditLog> {
        AuditLog::begin(self.settings(part_bytes), key(1)).expect("begun")
    }

    fn parts(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path()).expect("listed");
        let mut parts: Vec<_> = entries
            .map(|entry| entry.expect("an entry").path())
            .collect();
        parts.sort();
        parts
    }

    fn verified(&self, has_heads: bool) -> Report {
        self.verified_at(has_heads, now(), None)
    }

    fn verified_at(
        &self,
        has_heads: bool,
        now: DateTime<Utc>,
        since: Option<DateTime<Utc>>,
    ) -> Report {
        let heads = self.heads();
        let heads = (has_heads && heads.exists()).then_some(heads);
        verify(self.folder.path(), heads.as_deref(), &key(1), since, now).expect("read")
    }
}

fn now() -> DateTime<Utc> {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .ok()
        .and_then(|since| DateTime::from_timestamp_micros(since.as_micros() as i64))
        .expect("a time")
}

fn later() -> DateTime<Utc> {
    now() + TimeDelta::hours(1)
}

fn add(log: &AuditLog, n: u32) {
    let opened = [Count {
        column: "shop.people.email".into(),
        cells: u64::from(n),
    }];
    let statement = Statement {
        session: n,
        account: "app\"\n",
        client: "10.0.0.1:4000",
        tier: "1",
        kind: "select",
        opened: &opened,
        rows: u64::from(n),
        outcome: "ok",
        ..Statement::default()
    };
    let shape = format!("SELECT email FROM people WHERE id = ? LIMIT {}", n % 3);
    log.statement(statement, &shape).expect("written");
}

/// A run as it stands when its program is killed.
fn kill(log: Arc<AuditLog>, place: &Place) {
    let saved: Vec<_> = place
        .parts()
        .into_iter()
        .map(|path| (fs::read(&path).expect("read"), path))
        .collect();
    let heads = fs::read(place.heads()).ok();
    drop(log);
    for (bytes, path) in saved {
        fs::write(path, bytes).expect("written");
    }
    if let Some(heads) = heads {
        fs::write(place.heads(), heads).expect("written");
    }
}

fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("read");
    text.lines().map(str::to_owned).collect()
}

fn write(path: &Path, lines: &[String]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(path, text).expect("written");
}

#[test]
fn a_file_that_was_taken_away_is_missed_and_followed_by_another() {
    for is_replaced in [false, true] {
        let place = Place::new();
        let log = place.begin(1 << 20);
        add(&log, 1);
        log.head().expect("a head");
        let first = place.parts().remove(0);
        let text = fs::read(&first).expect("read");
        fs::remove_file(&first).expect("removed");
        if is_replaced {
            fs::write(&first, text).expect("written");
        }
        add(&log, 2);
        log.head().expect("a head");
        add(&log, 3);
        drop(log);
        let last = place.parts().pop().expect("another part");
        assert_ne!(last, first);
        let statements = lines(&last)
            .iter()
            .filter(|l| l.contains("\"statement\""))
            .count();
        assert_eq!(statements, 1, "{:?}", lines(&last));
        assert!(!place.verified(true).faults.is_empty());
    }
}

#[test]
fn a_run_of_several_parts_is_whole() {
    let place = Place::new();
    let log = place.begin(3000);
    for n in 0..40 {
        add(&log, n);
        if n % 10 == 9 {
            log.head().expect("a head").expect("still open");
        }
    }
    assert_eq!(log.counts(), (40, 0));
    let report = place.verified(true);
    assert_eq!(report.faults, []);
    assert_eq!(report.runs[0].state, RunState::Running);
    let last = log.close().expect("closed");
    drop(log);
    let report = place.verified_at(true, later(), None);
    assert_eq!(report.faults, []);
    let run = &report.runs[0];
    assert_eq!(
        (run.state, run.statements, run.lost),
        (RunState::Closed, 40, 0)
    );
    assert_eq!((run.last, run.unsealed, run.parts.0), (last.n, 0, 1));
    assert!(run.parts.1 > 2 && place.parts().len() == run.parts.1 as usize);
    // what is reserved is given back
    for part in place.parts() {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(&part).expect("there");
        assert!(
            metadata.blocks() * 512 < metadata.len() + 65_536,
            "{part:?}"
        );
        let shapes = lines(&part)
            .iter()
            .filter(|l| l.contains("\"record\":\"shape\""))
            .count();
        assert!((1..=3).contains(&shapes), "{part:?}: {shapes}");
    }
    // other keys
    let other = verify(place.folder.path(), None, &key(2), None, later()).expect("read");
    assert!(
        matches!(other.faults[..], [Fault::Seal { line: 1, .. }, ..]),
        "{:?}",
        other.faults
    );
}

#[test]
fn every_change_is_found() {
    let place = Place::new();
    let log = place.begin(2500);
    for n in 0..20 {
        add(&log, n);
    }
    drop(log);
    let parts = place.parts();
    assert!(parts.len() > 2);
    let mut tried = 0;
    for path in &parts {
        let right = lines(path);
        for at in 0..right.len() {
            let mut wrongs = vec![];
            for change in 0..5 {
                let mut wrong = right.clone();
                match change {
                    0 => drop(wrong.remove(at)),
                    1 => wrong.insert(at, right[at].clone()),
                    2 => wrong.truncate(at),
                    3 if at > 0 => wrong.swap(at, at - 1),
                    4 => wrong[at] = right[at].replacen("\"n\":", "\"n\": ", 1),
                    _ => continue,
                }
                wrongs.push(wrong);
            }
            for wrong in wrongs {
                write(path, &wrong);
                tried += 1;
                let report = place.verified_at(false, later(), None);
                assert!(!report.faults.is_empty(), "{path:?}, line {at}: {wrong:#?}");
            }
        }
        write(path, &right);
    }
    assert!(tried > 100);
    assert_eq!(place.verified_at(false, later(), None).faults, []);
    // parts that are exchanged, and one that is not there
    let (one, two) = (
        fs::read(&parts[0]).expect("read"),
        fs::read(&parts[1]).expect("read"),
    );
    fs::write(&parts[0], &two).expect("written");
    fs::write(&parts[1], &one).expect("written");
    assert!(!place.verified_at(false, later(), None).faults.is_empty());
    fs::write(&parts[0], &one).expect("written");
    fs::remove_file(&parts[1]).expect("removed");
    let faults = place.verified_at(false, later(), None).faults;
    assert!(
        matches!(faults[..], [Fault::Missing { part: 2, .. }]),
        "{faults:?}"
    );
}

#[test]
fn lines_made_anew_lack_the_seal() {
    let place = Place::new();
    let log = place.begin(1 << 20);
    add(&log, 1);
    drop(log);
    // whoever has no key can link lines, and seal none: a run under another key, taken whole
    let foreign = Place::new();
    let log = AuditLog::begin(foreign.settings(1 << 20), key(9)).expect("begun");
    add(&log, 1);
    drop(log);
    fs::copy(
        &foreign.parts()[0],
        place.folder.path().join("onionskin-x-aa-000001.jsonl"),
    )
    .expect("copied");
    let faults = place.verified_at(false, later(), None).faults;
    assert_eq!(faults.len(), 1, "{faults:?}");
}

#[test]
fn the_end_of_a_killed_run_is_found_by_the_next_start() {
    let place = Place::new();
    let log = place.begin(1 << 20);
    for n in 0..5 {
        add(&log, n);
    }
    kill(log, &place);
    let path = place.parts().remove(0);
    let whole = fs::read(&path).expect("read");
    // killed in the middle of a line
    fs::write(&path, [&whole[..], b"{\"record\":\"sta"].concat()).expect("written");
    let faults = place.verified_at(true, later(), None).faults;
    assert!(matches!(faults[..], [Fault::NoEnd { .. }]), "{faults:?}");
    drop(place.begin(1 << 20));
    let report = place.verified_at(true, later(), None);
    assert_eq!(report.faults, []);
    let killed = report
        .runs
        .iter()
        .find(|run| run.statements == 5)
        .expect("there");
    assert_eq!((killed.state, killed.unsealed), (RunState::Killed, 0));
    // it is told once
    drop(place.begin(1 << 20));
    let told = |path: &PathBuf| lines(path)[0].contains("\"found\"");
    assert_eq!(place.parts().iter().filter(|path| told(path)).count(), 1);
    // afterwards nothing can be taken away, or added
    let all = lines(&path);
    write(&path, &all[..all.len() - 2]);
    let faults = place.verified_at(false, later(), None).faults;
    let expected = matches!(
        faults[..],
        [Fault::Differs {
            witness: "next start",
            ..
        }]
    );
    assert!(expected, "{faults:?}");
}

#[test]
fn heads_in_another_place_tell_what_was_cut_off() {
    let place = Place::new();
    let log = place.begin(1 << 20);
    for n in 0..5 {
        add(&log, n);
    }
    log.head().expect("a head");
    // nothing has happened since
    let length = || fs::metadata(place.heads()).expect("there").len();
    let before = length();
    log.head().expect("a head");
    log.head().expect("a head");
    assert_eq!(length(), before);
    kill(log, &place);
    let path = place.parts().remove(0);
    let all = lines(&path);
    // before the next start finds the end
    write(&path, &all[..5]);
    drop(place.begin(1 << 20));
    assert_eq!(place.verified_at(false, later(), None).faults, []);
    let faults = place.verified_at(true, later(), None).faults;
    assert!(
        matches!(
            faults[..],
            [Fault::Differs {
                witness: "head",
                ..
            }]
        ),
        "{faults:?}"
    );
    fs::remove_file(&path).expect("removed");
    let faults = place.verified_at(true, later(), None).faults;
    assert!(matches!(faults[..], [Fault::Gone { .. }]), "{faults:?}");
    // removed on purpose, as old files are
    assert_eq!(place.verified_at(true, later(), Some(later())).faults, []);
    let mut heads = lines(&place.heads());
    heads[0] = heads[0].replace("\"closed\":false", "\"closed\":true ");
    write(&place.heads(), &heads);
    let faults = place.verified_at(true, later(), None).faults;
    assert!(faults.contains(&Fault::HeadLine { line: 1 }), "{faults:?}");
}

#[test]
fn old_parts_may_be_removed_on_purpose() {
    let place = Place::new();
    let log = place.begin(2500);
    for n in 0..20 {
        add(&log, n);
    }
    log.head().expect("a head");
    drop(log);
    let parts = place.parts();
    fs::remove_file(&parts[0]).expect("removed");
    let faults = place.verified_at(true, later(), None).faults;
    assert!(
        matches!(faults[..], [Fault::Missing { part: 1, .. }]),
        "{faults:?}"
    );
    assert_eq!(place.verified_at(true, later(), Some(later())).faults, []);
    // but nothing behind that time
    let faults = place
        .verified_at(true, later(), Some(DateTime::UNIX_EPOCH))
        .faults;
    assert!(
        matches!(faults[..], [Fault::Missing { part: 1, .. }]),
        "{faults:?}"
    );
}

#[test]
fn several_programs_share_a_folder() {
    let place = Place::new();
    let logs: Vec<_> = (0..4).map(|_| place.begin(5000)).collect();
    std::thread::scope(|scope| {
        for log in &logs {
            for _ in 0..3 {
                scope.spawn(|| (0..50).for_each(|n| add(log, n)));
            }
        }
    });
    // what is written is no run that was left
    let another = place.begin(5000);
    drop((logs, another));
    let report = place.verified_at(true, later(), None);
    assert_eq!(report.faults, []);
    let closed = report
        .runs
        .iter()
        .filter(|run| run.state == RunState::Closed);
    assert_eq!(closed.map(|run| run.statements).sum::<u64>(), 600);
}

proptest! {
    /// Whatever stands in a file: verification ends, with faults unless it is what was written.
    #[test]
    fn damaged_files_are_read(at in 0usize..4000, byte in any::<u8>(), cut in any::<bool>()) {
        let place = Place::new();
        let log = place.begin(1 << 20);
        for n in 0..6 {
            add(&log, n);
        }
        drop(log);
        let path = place.parts().remove(0);
        let mut bytes = fs::read(&path).expect("read");
        let at = at % bytes.len();
        let is_same = !cut && bytes[at] == byte;
        match cut {
            true => bytes.truncate(at),
            false => bytes[at] = byte,
        }
        fs::write(&path, bytes).expect("written");
        let report = place.verified_at(false, later(), None);
        prop_assert_eq!(report.faults.is_empty(), is_same);
    }
}
