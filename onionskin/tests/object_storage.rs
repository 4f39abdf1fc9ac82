//! Backups in object stores: real ones, SeaweedFS and moto, on this machine. What goes up comes
//! back byte for byte; what fails on the way is repeated or told, and leaves nothing that looks
//! like a backup.

#[path = "object_storage/desk.rs"]
mod desk;
#[path = "object_storage/outages.rs"]
mod outages;
#[path = "object_storage/relay.rs"]
mod relay;
#[path = "object_storage/servers.rs"]
mod servers;
#[path = "object_storage/setup.rs"]
mod setup;
#[path = "object_storage/whole_servers.rs"]
mod whole_servers;

use std::io::Write;
use std::time::Duration;

use desk::{Desk, noise};
use onionskin_testkit::*;
use servers::{S3, Which};

const MIB: usize = 1 << 20;

/// Files in the list of a place.
fn listed(desk: &Desk, place: &str) -> usize {
    let said = desk.must(&["backup", "list", "--to", place]);
    let last = said.lines().last().expect("a line");
    let count = last.split(' ').next().expect("a word");
    count.parse().expect("a number")
}

/// How many uploads a prune ends that nobody has finished.
fn ended_uploads(desk: &Desk, place: &str) -> usize {
    let prune = [
        "backup",
        "prune",
        "--keep",
        "9",
        "--unfinished",
        "now",
        "--to",
        place,
    ];
    let said = desk.must(&prune);
    let line = said
        .lines()
        .find(|line| line.ends_with("unfinished uploads were ended"));
    line.map_or(0, |line| {
        line.split(' ')
            .next()
            .expect("a word")
            .parse()
            .expect("a number")
    })
}

fn what_goes_up_comes_back(which: Which) {
    let Some(s3) = S3::start(which) else { return };
    let desk = Desk::of(&s3, "backups");
    // One request; one part and a bit; several parts.
    for (name, len) in [
        ("empty", 0),
        ("small", 70_000),
        ("more", 17 * MIB),
        ("large", 50 * MIB + 1),
    ] {
        let content = noise(len, 7);
        let to = format!("s3://backups/in/here/{name}.sealed");
        let backup = [
            "backup", "-q", "--source", "stdin", "--level", "0", "--to", &to,
        ];
        assert_eq!(desk.must_with(&backup, &content).trim(), to);
        let opened = desk.bytes(&["open", "-q", &to]);
        assert!(opened == content, "{name} comes back");
        let said = desk.must(&["verify", "-q", &to]);
        assert!(said.contains("it is what was written"), "{said}");
        let said = desk.must(&["verify", "-q", "--footer", &to]);
        assert!(said.contains(&format!("{len} bytes")), "{said}");
        // It is there, so it stays.
        desk.fails_with(&backup, b"other", 2, "exists and is not overwritten");
        assert!(desk.bytes(&["open", "-q", &to]) == content);
    }
    let said = desk.must(&["backup", "list", "--to", "s3://backups/in/here"]);
    assert_eq!(said.matches("footer checked, full").count(), 4, "{said}");
    assert!(said.contains("large.sealed"), "{said}");
    assert_eq!(
        listed(&desk, "s3://backups/in/"),
        0,
        "what lies deeper is not in it"
    );
    // `seal` and `open -o` go there, too, and a name is made where none is given.
    desk.must_with(&["seal", "-q", "-o", "s3://backups/x.sealed"], b"content");
    assert_eq!(
        desk.bytes(&["open", "-q", "s3://backups/x.sealed"]),
        b"content"
    );
    let named = desk.must_with(
        &[
            "backup",
            "-q",
            "--source",
            "stdin",
            "--to",
            "s3://backups/n",
        ],
        b"c",
    );
    assert!(
        named.starts_with("s3://backups/n/20") && named.ends_with("-stdin.sealed\n"),
        "{named}"
    );
    desk.fails(
        &["verify", "s3://backups/not-there.sealed"],
        1,
        "no such object",
    );
    assert_eq!(ended_uploads(&desk, "s3://backups/in/here"), 0);
}

#[test]
fn what_goes_up_to_seaweedfs_comes_back() {
    what_goes_up_comes_back(Which::SeaweedFs);
}

#[test]
fn what_goes_up_to_moto_comes_back() {
    what_goes_up_comes_back(Which::Moto);
}

/// Over more than one answer of the server's.
#[test]
fn long_lists_are_whole() {
    let Some(s3) = S3::start(Which::Moto) else {
        return;
    };
    let desk = Desk::of(&s3, "backups");
    desk.must_with(&["seal", "-q", "-o", "one.sealed"], b"content");
    let content = std::fs::read(desk.path("one.sealed")).expect("sealed");
    let count = 1010;
    for number in 0..count {
        s3.raw(
            "PUT",
            &format!("/backups/many/{number:05}.sealed"),
            "",
            &content,
        );
    }
    s3.raw("PUT", "/backups/many/notes.txt", "", b"no backup");
    assert_eq!(listed(&desk, "s3://backups/many"), count);
}

#[test]
fn a_killed_backup_is_never_listed() {
    let Some(s3) = S3::start(Which::SeaweedFs) else {
        return;
    };
    let desk = Desk::of(&s3, "backups");
    let place = "s3://backups/killed";
    let begin = |signal_name: &str| {
        let mut child = desk.start(&[
            "backup", "-q", "--source", "stdin", "--level", "0", "--to", place,
        ]);
        let mut input = child.stdin.take().expect("piped");
        input.write_all(&noise(40 * MIB, 3)).expect("read");
        // Two parts are there, and a third one would be.
        wait_until("an upload is there", Duration::from_secs(20), || {
            s3.has_uploads("backups")
        });
        signal(signal_name, child.id());
        let status = child.wait().expect("it ends");
        assert!(!status.success());
        drop(input);
    };
    begin("KILL");
    assert_eq!(listed(&desk, place), 0);
    // Another backup may be going on, so a younger upload stays by itself.
    desk.must_with(
        &["backup", "-q", "--source", "stdin", "--to", place],
        b"next",
    );
    assert_eq!(listed(&desk, place), 1);
    assert!(s3.has_uploads("backups"));
    assert_eq!(ended_uploads(&desk, place), 1);
    assert!(!s3.has_uploads("backups"));
    // Asked to end, it leaves nothing. Names tell seconds.
    std::thread::sleep(Duration::from_millis(1100));
    begin("TERM");
    assert_eq!(listed(&desk, place), 1);
    assert!(!s3.has_uploads("backups"));
    assert_eq!(ended_uploads(&desk, place), 0);
}

#[test]
fn what_the_store_retains_stays_and_says_until_when() {
    let Some(s3) = S3::start(Which::Moto) else {
        return;
    };
    let desk = Desk::of(&s3, "backups");
    s3.raw(
        "PUT",
        "/locked",
        "x-amz-bucket-object-lock-enabled: true\r\n",
        b"",
    );
    let place = "s3://locked/there";
    let mut names = Vec::new();
    for n in 0..3 {
        let name = format!("{place}/{n}.sealed");
        desk.must_with(
            &["backup", "-q", "--source", "stdin", "--to", &name],
            b"content",
        );
        names.push(format!("/locked/there/{n}.sealed"));
        // Times of backups are in seconds.
        std::thread::sleep(Duration::from_millis(1100));
    }
    let retention = b"<Retention><Mode>COMPLIANCE</Mode><RetainUntilDate>2099-01-02T03:04:05Z</RetainUntilDate></Retention>";
    s3.raw("PUT", &format!("{}?retention", names[0]), "", retention);
    let prune = ["backup", "prune", "--keep", "1", "--to", place];
    let dry = [&prune[..], &["--dry-run"]].concat();
    for arguments in [&dry[..], &prune[..]] {
        let said = desk.must(arguments);
        let line = |name: &str| {
            let mut lines = said.lines().filter(|line| line.starts_with(name));
            lines.next().unwrap_or_else(|| panic!("{name}: {said}"))
        };
        let retained = "not kept by any rule, but retained until 2099-01-02 03:04:05 UTC";
        assert!(line("0.sealed").ends_with(retained), "{said}");
        assert!(line("1.sealed").ends_with("  remove"), "{said}");
        assert!(line("2.sealed").ends_with("  keep"), "{said}");
    }
    assert_eq!(listed(&desk, place), 2);
    // A bucket with locks keeps versions.
    let hold = b"<LegalHold><Status>ON</Status></LegalHold>";
    s3.raw("PUT", &format!("{}?legal-hold", names[2]), "", hold);
    desk.must_with(
        &[
            "backup",
            "-q",
            "--source",
            "stdin",
            "--to",
            &format!("{place}/3.sealed"),
        ],
        b"c",
    );
    let said = desk.must(&prune);
    assert!(said.contains("but under a legal hold"), "{said}");
    assert!(said.contains("0 files"), "{said}");
    s3.raw(
        "PUT",
        &format!("{}?legal-hold", names[2]),
        "",
        b"<LegalHold><Status>OFF</Status></LegalHold>",
    );
    let said = desk.must(&prune);
    assert!(
        said.contains("1 of them are kept by the bucket as older versions"),
        "{said}"
    );
}

/// Several at once into one place, and two of one name, of which one wins.
#[test]
fn backups_at_once_do_not_disturb_each_other() {
    let Some(s3) = S3::start(Which::SeaweedFs) else {
        return;
    };
    let desk = Desk::of(&s3, "backups");
    let backup = |name: &str| {
        let to = format!("s3://backups/{name}.sealed");
        desk.start(&[
            "backup", "-q", "--source", "stdin", "--level", "0", "--to", &to,
        ])
    };
    let mut children = Vec::new();
    for (name, seed) in [("a", 1), ("b", 2), ("same", 3), ("same", 4)] {
        children.push((backup(name), noise(18 * MIB, seed)));
    }
    // All have begun before one ends.
    for (child, content) in &mut children {
        let input = child.stdin.as_mut().expect("piped");
        input.write_all(content).expect("read");
    }
    let mut ended = Vec::new();
    for (mut child, content) in children {
        drop(child.stdin.take());
        let output = child.wait_with_output().expect("it ends");
        ended.push((output, content));
    }
    let opened = |name: &str| desk.bytes(&["open", "-q", &format!("s3://backups/{name}.sealed")]);
    for (name, (output, content)) in ["a", "b"].iter().zip(&ended) {
        assert!(output.status.success(), "{output:?}");
        assert!(opened(name) == *content, "{name}");
    }
    let won: Vec<_> = ended[2..]
        .iter()
        .filter(|(output, _)| output.status.success())
        .collect();
    assert_eq!(won.len(), 1, "{:?} {:?}", ended[2].0, ended[3].0);
    assert!(opened("same") == won[0].1);
    let lost = ended[2..]
        .iter()
        .find(|(output, _)| !output.status.success());
    let said = String::from_utf8_lossy(&lost.expect("one has lost").0.stderr).into_owned();
    assert!(said.contains("exists, and is not replaced"), "{said}");
    assert!(!s3.has_uploads("backups"));
}

/// Neither what is made nor what is read lies in memory.
#[test]
fn memory_does_not_grow_with_the_backup() {
    let Some(s3) = S3::start(Which::SeaweedFs) else {
        return;
    };
    let desk = Desk::of(&s3, "backups");
    let len = if long_run() { 2048 * MIB } else { 192 * MIB };
    let to = "s3://backups/large.sealed";
    let backup = [
        "backup",
        "-q",
        "--threads",
        "2",
        "--source",
        "stdin",
        "--level",
        "0",
        "--to",
        to,
    ];
    let up = desk.peak(&backup, |input| {
        let piece = noise(MIB, 1);
        for _ in 0..len / MIB {
            // A program that has failed does not read on, and says why.
            if input.write_all(&piece).is_err() {
                break;
            }
        }
    });
    let down = desk.peak(&["verify", "-q", "--threads", "2", to], |_| {});
    announce(&format!(
        "{} MiB to a bucket in {} MiB of memory, and back in {} MiB",
        len / MIB,
        up / MIB,
        down / MIB
    ));
    // Five parts of 16 MiB; four pieces of 8 MiB, and those that come and go.
    assert!(up < 160 * MIB, "{up}");
    assert!(down < 120 * MIB, "{down}");
}
