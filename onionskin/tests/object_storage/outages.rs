//! What goes wrong on the way: a store that fails, is cut off, changes bytes, or says nothing.

use std::time::{Duration, Instant};

use onionskin_testkit::*;

use super::desk::{Desk, noise};
use super::relay::{Relay, Spoil};
use super::servers::{S3, Which};
use super::{MIB, ended_uploads, listed};

const TO: &str = "s3://backups/spoiled.sealed";
const BACKUP: [&str; 8] = [
    "backup", "-q", "--source", "stdin", "--level", "0", "--to", TO,
];
const PART: [&str; 2] = ["PUT /", "partNumber="];
const BEGIN: [&str; 2] = ["POST /", "uploads="];
const END: [&str; 2] = ["POST /", "uploadId="];

/// A store, a relay before it, and a desk that knows the relay.
fn scene() -> Option<(S3, Relay, Desk)> {
    let s3 = S3::start(Which::SeaweedFs)?;
    s3.make_bucket("backups");
    let relay = Relay::to(s3.port);
    let desk = Desk::at(&relay.endpoint());
    Some((s3, relay, desk))
}

#[test]
fn what_can_pass_is_tried_again() {
    let Some((s3, relay, desk)) = scene() else {
        return;
    };
    let content = noise(20 * MIB, 5);
    let head = ["GET /", "spoiled.sealed"];
    for (case, texts, spoil, after, times) in [
        ("a storm", &PART[..], Spoil::Answer(503, "SlowDown"), 0, 6),
        (
            "at the beginning",
            &BEGIN,
            Spoil::Answer(500, "InternalError"),
            0,
            2,
        ),
        (
            "at the end",
            &END,
            Spoil::Answer(500, "InternalError"),
            0,
            2,
        ),
        ("no code", &PART, Spoil::Answer(502, ""), 1, 1),
        // A 200 that is none.
        ("late", &END, Spoil::Answer(200, "InternalError"), 0, 1),
        ("cut while it is sent", &PART, Spoil::LoseAnswer, 0, 2),
        // The upload is an object, and nobody knows it.
        ("the end is lost", &END, Spoil::LoseAnswer, 0, 1),
        ("the end is lost for good", &END, Spoil::LoseAnswer, 0, 99),
        ("a changed part", &PART, Spoil::ChangeRequest, 1, 1),
        ("a slow store", &PART, Spoil::Slow(700), 0, 2),
        (
            "a list that is cut",
            &["GET /", "list-type"],
            Spoil::CutAnswer(200),
            0,
            1,
        ),
        (
            "a part of the object that is cut",
            &head,
            Spoil::CutAnswer(60_000),
            1,
            3,
        ),
        (
            "an object that cannot be read for a while",
            &head,
            Spoil::Answer(503, "SlowDown"),
            2,
            3,
        ),
    ] {
        let desk = desk.clone().with("AWS_MAX_ATTEMPTS", "8");
        relay.mend();
        relay.spoil(texts, spoil, after, times);
        let is_lost = times == 99;
        let desk = match is_lost {
            true => desk.with("AWS_MAX_ATTEMPTS", "3"),
            false => desk,
        };
        desk.must_with(&BACKUP, &content);
        assert!(desk.bytes(&["open", "-q", TO]) == content, "{case}");
        let wanted = if is_lost { 3 } else { after + times.min(3) };
        assert!(
            relay.count(texts) >= wanted,
            "{case}: {}",
            relay.count(texts)
        );
        assert!(!s3.has_uploads("backups"), "{case}");
        s3.remove("backups", "spoiled.sealed");
    }
}

#[test]
fn what_cannot_pass_is_told_and_leaves_nothing() {
    let Some((s3, relay, desk)) = scene() else {
        return;
    };
    let content = noise(36 * MIB, 5);
    let desk = desk.with("AWS_MAX_ATTEMPTS", "3");
    for (texts, spoil, after, text) in [
        // In the middle of it.
        (
            &PART[..],
            Spoil::Answer(403, "AccessDenied"),
            2,
            "refuses storing a part (AccessDenied)",
        ),
        (
            &PART,
            Spoil::Answer(503, "SlowDown"),
            2,
            "fails storing a part with 503 SlowDown (3 tries)",
        ),
        (&PART, Spoil::LoseAnswer, 1, "the connection was lost"),
        (
            &PART,
            Spoil::ChangeRequest,
            0,
            "fails storing a part with 400 BadDigest (3 tries)",
        ),
        (
            &PART,
            Spoil::Answer(404, "NoSuchUpload"),
            1,
            "somebody has aborted this upload",
        ),
        (
            &PART,
            Spoil::Answer(507, "InsufficientCapacity"),
            1,
            "has no room left",
        ),
        (
            &BEGIN,
            Spoil::Answer(403, "AccessDenied"),
            0,
            "refuses beginning an upload",
        ),
        (
            &END,
            Spoil::Answer(500, "InternalError"),
            0,
            "fails ending an upload with 500 InternalError (3 tries)",
        ),
        (
            &["GET /", "list-type"],
            Spoil::Answer(301, "PermanentRedirect"),
            0,
            "is not in region us-east-1",
        ),
        (
            &["GET /", "list-type"],
            Spoil::Answer(403, "RequestTimeTooSkewed"),
            0,
            "minutes ahead of the store's; set it",
        ),
    ] {
        relay.mend();
        relay.spoil(texts, spoil, after, 999);
        let begun = Instant::now();
        desk.fails_with(&BACKUP, &content, 1, text);
        assert!(begun.elapsed() < Duration::from_secs(20), "{text}");
        relay.mend();
        assert_eq!(listed(&desk, "s3://backups"), 0, "{text}");
        // What was aborted by somebody else is not there either, in truth.
        assert!(!s3.has_uploads("backups"), "{text}");
        assert_eq!(ended_uploads(&desk, "s3://backups"), 0, "{text}");
    }
    // Nobody there at all.
    let gone = desk.clone().with(
        "AWS_ENDPOINT_URL",
        &format!("http://127.0.0.1:{}", free_port()),
    );
    gone.fails_with(&BACKUP, b"x", 1, "(3 tries)");
}

/// Nothing that a store makes of an object is taken for it.
#[test]
fn a_store_that_changes_objects_is_found_out() {
    let Some((s3, relay, desk)) = scene() else {
        return;
    };
    let desk = desk.with("AWS_MAX_ATTEMPTS", "3");
    let content = noise(20 * MIB, 5);
    desk.must_with(&BACKUP, &content);
    let read = ["GET /", "spoiled.sealed"];
    // The header, the footer, and what lies between.
    for after in [0, 1, 3] {
        relay.mend();
        relay.spoil(&read, Spoil::ChangeAnswer, after, 999);
        let output = desk
            .command(&["verify", "-q", TO])
            .output()
            .expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(1..=3)), "{output:?}");
        assert!(
            said.starts_with("onionskin: s3://backups/spoiled.sealed"),
            "{said}"
        );
    }
    relay.mend();
    relay.spoil(&read, Spoil::CutAnswer(30_000), 0, 999);
    desk.fails(&["open", "-q", TO], 1, "onionskin: ");
    relay.mend();
    // Another object in its place, whole as it is: an older backup, in the middle of reading.
    desk.must_with(
        &[
            "backup",
            "-q",
            "--source",
            "stdin",
            "--level",
            "0",
            "--to",
            "s3://backups/old.sealed",
        ],
        &noise(20 * MIB, 6),
    );
    relay.spoil(&read, Spoil::Slow(1500), 2, 2);
    let child = desk.start(&["verify", "-q", TO]);
    wait_until("it reads", Duration::from_secs(10), || {
        relay.count(&read) > 2
    });
    s3.copy_over("backups", "old.sealed", "spoiled.sealed");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("was replaced or removed while it was read"),
        "{said}"
    );
}

/// A store that takes the connection and says nothing, and a cable that is pulled and put back.
#[test]
fn silence_ends_and_a_pulled_cable_may_be_put_back() {
    let Some(s3) = S3::start(Which::SeaweedFs) else {
        return;
    };
    s3.make_bucket("backups");
    let cable = Cable::to(s3.port);
    let content = noise(40 * MIB, 8);
    let desk = Desk::at(&format!("http://{}", cable.address()));
    cable.cut_at("partNumber=2", 1, When::After);
    std::thread::scope(|scope| {
        let made = scope.spawn(|| desk.must_with(&BACKUP, &content));
        wait_until("it is cut", Duration::from_secs(20), || cable.is_cut());
        std::thread::sleep(Duration::from_secs(2));
        cable.mend();
        made.join().expect("it is made");
    });
    assert!(desk.bytes(&["open", "-q", TO]) == content);
    if !long_run() {
        return announce("a silent store ... skipped: ONIONSKIN_TEST_LONG is not set");
    }
    s3.remove("backups", "spoiled.sealed");
    let desk = desk.with("AWS_MAX_ATTEMPTS", "2");
    cable.freeze_at("partNumber=2", 1, When::Before);
    let begun = Instant::now();
    desk.fails_with(&BACKUP, &content, 1, "it is silent, or too slow (2 tries)");
    let took = begun.elapsed().as_secs();
    // Each try has 30 seconds for a read or a write, and five minutes for a part in all.
    assert!((30..640).contains(&took), "{took} s");
    cable.freeze(false);
    assert_eq!(listed(&desk, "s3://backups"), 0);
}

/// A bucket on a disk that fills up.
#[test]
fn a_full_store_is_told() {
    if !long_run() {
        return announce("a_full_store_is_told ... skipped: ONIONSKIN_TEST_LONG is not set");
    }
    let arguments = ["-volume.max=8", "-volume.preStopSeconds=0"];
    let Some(s3) = S3::start_with(Which::SeaweedFs, &arguments) else {
        return;
    };
    let desk = Desk::of(&s3, "backups").with("AWS_MAX_ATTEMPTS", "3");
    // Eight volumes of 64 MiB, some of which are of others.
    let begun = Instant::now();
    desk.fails_with(&BACKUP, &noise(900 * MIB, 2), 1, "storing a part");
    assert!(begun.elapsed() < Duration::from_secs(120));
    assert_eq!(listed(&desk, "s3://backups"), 0);
}
