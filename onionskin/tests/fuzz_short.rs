//! Every fuzz target for a few seconds, on any compiler: mutations of the seeds, without the
//! guidance of coverage. `make fuzz` runs the same entry points under libFuzzer.
//!
//! The seed of the random numbers is printed when a target fails; `ONIONSKIN_FUZZ_SEED` sets it,
//! and `ONIONSKIN_FUZZ_SECONDS` the time for each target.

#[path = "../../fuzz/src/lib.rs"]
#[allow(dead_code)]
mod entries;

use onionskin_testkit::long_run;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

#[test]
fn packets() {
    run("packets");
}

#[test]
fn splitter() {
    run("splitter");
}

#[test]
fn plans() {
    run("plans");
}

#[test]
fn functions() {
    run("functions");
}

#[test]
fn deep() {
    run("deep");
}

#[test]
fn ciphertext() {
    run("ciphertext");
}

#[test]
fn comments() {
    run("comments");
}

#[test]
fn stream_header() {
    run("stream_header");
}

#[test]
fn stream_frames() {
    run("stream_frames");
}

#[test]
fn stream_footer() {
    run("stream_footer");
}

#[test]
fn recipients() {
    run("recipients");
}

#[test]
fn every_target_is_run() {
    let names: Vec<&str> = entries::TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(
        names,
        [
            "packets",
            "splitter",
            "plans",
            "functions",
            "deep",
            "ciphertext",
            "comments",
            "stream_header",
            "stream_frames",
            "stream_footer",
            "recipients"
        ]
    );
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// How long one input may take.
const LONGEST: Duration = Duration::from_secs(5);

fn run(name: &str) {
    let target = entries::TARGETS
        .iter()
        .find(|target| target.name == name)
        .expect("the target");
    let seconds = number("ONIONSKIN_FUZZ_SECONDS").unwrap_or(if long_run() { 4 } else { 2 });
    let seed = number("ONIONSKIN_FUZZ_SEED").unwrap_or_else(rand::random);
    let mut rng = StdRng::seed_from_u64(seed);
    let mut corpus = (target.seeds)();
    let fails = |input: &[u8]| catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err();
    let failing: Vec<String> = corpus
        .iter()
        .filter(|input| fails(input))
        .map(|input| format!("b\"{}\"", input.escape_ascii()))
        .collect();
    assert!(
        failing.is_empty(),
        "target {name} fails with seeds of its own:\n{}",
        failing.join("\n")
    );
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut count = 0u64;
    while Instant::now() < end {
        for _ in 0..100 {
            let input = mutate(&corpus, &mut rng);
            let begun = Instant::now();
            if fails(&input) {
                let small = shrink(input, &fails);
                panic!(
                    "target {name}, ONIONSKIN_FUZZ_SEED={seed}, fails with the input b\"{}\"",
                    small.escape_ascii()
                );
            }
            let mut took = begun.elapsed();
            if took >= LONGEST {
                // a machine that stood still does not do so twice
                let begun = Instant::now();
                let _ = fails(&input);
                took = took.min(begun.elapsed());
            }
            assert!(
                took < LONGEST,
                "target {name} takes {took:?} for b\"{}\"",
                input.escape_ascii()
            );
            count += 1;
            // What has been mutated is mutated further, now and then.
            if corpus.len() < 2000 && input.len() < 4096 && rng.random_ratio(1, 50) {
                corpus.push(input);
            }
        }
    }
    assert!(
        count >= 100,
        "target {name} ran {count} times in {seconds} s"
    );
    let corpus = corpus.len();
    println!("target {name}: {count} inputs in {seconds} s, corpus of {corpus}");
}

fn mutate(corpus: &[Vec<u8>], rng: &mut StdRng) -> Vec<u8> {
    const WORDS: &[&[u8]] = &[
        b"'",
        b"\"",
        b"`",
        b"\\",
        b"/*",
        b"*/",
        b"--",
        b"#",
        b"\n",
        b";",
        b"(",
        b")",
        b",",
        b".",
        b"?",
        b"@",
        b"secret",
        b"app.",
        b" AS ",
        b" FROM ",
        b" NULL ",
        b"|",
        b"%",
        b"=",
        b"\0",
        b"\xff",
        b"\xfb",
        b"\xfc\xff\xff",
        b"\xfd\xff\xff\xff",
        b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\xff\xff\xff\x7f",
        b"\xc3",
        "ż".as_bytes(),
    ];
    let mut input = corpus.choose(rng).expect("there are seeds").clone();
    for _ in 0..rng.random_range(1..6) {
        let at = rng.random_range(0..=input.len());
        let length = rng.random_range(0..=16.min(input.len() - at));
        match rng.random_range(0..9) {
            0 if at < input.len() => input[at] ^= 1 << rng.random_range(0..8),
            1 if at < input.len() => input[at] = rng.random(),
            2 => input.insert(at, rng.random()),
            3 => drop(input.drain(at..at + length)),
            4 => input.truncate(at),
            5 => {
                let copy = input[at..at + length].to_vec();
                let to = rng.random_range(0..=input.len());
                input.splice(to..to, copy);
            }
            6 => {
                let other = corpus.choose(rng).expect("there are seeds");
                let from = rng.random_range(0..=other.len());
                input.splice(at.., other[from..].iter().copied());
            }
            _ => {
                let word = WORDS.choose(rng).expect("there are words");
                input.splice(at..at, word.iter().copied());
            }
        }
    }
    input
}

/// Leaves out parts as long as the input still fails.
fn shrink(mut input: Vec<u8>, fails: &dyn Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut size = input.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < input.len() {
            let mut shorter = input.clone();
            shorter.drain(at..(at + size).min(input.len()));
            if fails(&shorter) {
                input = shorter;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    input
}
