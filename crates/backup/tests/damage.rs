//! Whatever is done to a stream is an error, and the error says what was done where that can be
//! known.

mod support;

use onionskin_backup::{
    StreamError,
    footer::TRAILER_LEN,
    frame::{FRAME_HEAD_LEN, FrameHead, Kind},
    header::HEADER_LEN,
};
use onionskin_keys::Suite;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use support::*;

#[test]
fn every_bit_and_every_length_of_small_streams() {
    let keys = new_keys();
    for suite in SUITES {
        for (level, plain) in [(3, lines(2 * SMALL + 100)), (0, noise(60)), (0, Vec::new())] {
            let stream = sealed(&keys, &small_frames(suite, level), &plain);
            let frames = frames(&stream);
            let what = |what: &str, at| format!("{suite}, level {level}, {what} {at}");
            for bit in 0..8 * stream.len() {
                let mut changed = stream.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                refused(&keys, &changed, &plain, SMALL, &what("bit", bit));
                // The quick look sees everything but the frames.
                let in_frame = frames.iter().any(|frame| frame.contains(&(bit / 8)));
                assert_eq!(
                    verified(&keys, &changed, false).is_ok(),
                    in_frame,
                    "bit {bit}"
                );
            }
            for len in 0..stream.len() {
                let error = refused(&keys, &stream[..len], &plain, SMALL, &what("length", len));
                match error {
                    StreamError::NotSealed => assert_eq!(len, 0),
                    StreamError::Truncated { at, .. } => assert_eq!(at, len as u64),
                    other => panic!("length {len}: {other}"),
                }
                assert!(
                    verified(&keys, &stream[..len], false).is_err(),
                    "length {len}"
                );
            }
            for tail in [&b"\0"[..], b"more", &stream] {
                let longer = [&stream[..], tail].concat();
                let error = refused(&keys, &longer, &plain, SMALL, "bytes behind the end");
                assert!(matches!(error, StreamError::TrailingBytes));
                assert!(verified(&keys, &longer, false).is_err());
            }
        }
    }
}

#[test]
fn random_damage_in_a_large_stream() {
    let keys = new_keys();
    let seed = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let plain = [lines(2 << 20), noise(1 << 20), lines(1 << 19)].concat();
    for suite in SUITES {
        let options = onionskin_backup::SealOptions::new(suite);
        let stream = sealed(&keys, &options, &plain);
        for _ in 0..60 {
            let mut changed = stream.clone();
            let at = rng.random_range(0..stream.len());
            match rng.random_range(0..4) {
                0 => changed.truncate(at),
                1 => changed[at] ^= 1 << rng.random_range(0..8),
                2 => drop(changed.remove(at)),
                _ => changed.insert(at, rng.random()),
            }
            let what = format!("seed {seed}, at {at}");
            if changed != stream {
                refused(&keys, &changed, &plain, 1 << 20, &what);
            }
        }
    }
}

/// A stream in its parts.
struct Parts {
    header: Vec<u8>,
    frames: Vec<Vec<u8>>,
    end: Vec<u8>,
}

impl Parts {
    fn of(stream: &[u8]) -> Self {
        let frames = frames(stream);
        let end = frames.last().unwrap().end;
        Self {
            header: stream[..HEADER_LEN].into(),
            frames: frames
                .into_iter()
                .map(|frame| stream[frame].into())
                .collect(),
            end: stream[end..].into(),
        }
    }

    fn with(&self, frames: &[&Vec<u8>], end: &[u8]) -> Vec<u8> {
        let frames: Vec<u8> = frames.iter().copied().flatten().copied().collect();
        [&self.header[..], &frames, end].concat()
    }
}

#[test]
fn frames_exchanged_repeated_left_out_and_spliced() {
    let keys = new_keys();
    for suite in SUITES {
        for level in [0, 3] {
            let plain = lines(4 * SMALL + 7);
            let options = small_frames(suite, level);
            let one = Parts::of(&sealed(&keys, &options, &plain));
            let other = Parts::of(&sealed(&keys, &options, &plain));
            let f: Vec<&Vec<u8>> = one.frames.iter().collect();
            let g: Vec<&Vec<u8>> = other.frames.iter().collect();
            let check = |frames: &[&Vec<u8>], end: &[u8], what: &str| {
                refused(&keys, &one.with(frames, end), &plain, SMALL, what)
            };
            let end = &one.end[..];

            let error = check(&[f[0], f[2], f[1], f[3], f[4]], end, "exchanged");
            assert!(
                matches!(
                    error,
                    StreamError::OutOfOrder {
                        expected: 1,
                        found: 2
                    }
                ),
                "{error}"
            );
            let error = check(&[f[0], f[1], f[1], f[2], f[3], f[4]], end, "repeated");
            assert!(
                matches!(
                    error,
                    StreamError::OutOfOrder {
                        expected: 2,
                        found: 1
                    }
                ),
                "{error}"
            );
            let error = check(&[f[0], f[1], f[3], f[4]], end, "left out");
            assert!(
                matches!(
                    error,
                    StreamError::OutOfOrder {
                        expected: 2,
                        found: 3
                    }
                ),
                "{error}"
            );
            let error = check(&[f[0], f[1], f[2], f[3]], end, "without the last");
            assert!(matches!(error, StreamError::LastFrameMissing(3)), "{error}");
            let error = check(&[], end, "without any");
            assert!(matches!(error, StreamError::Footer(_)), "{error}");
            let error = check(&[f[0], f[1], g[2], f[3], f[4]], end, "spliced");
            assert!(matches!(error, StreamError::OtherStream(2)), "{error}");
            let error = check(&[f[0], f[1], f[2], f[3], f[4]], &other.end, "other footer");
            assert!(matches!(error, StreamError::Footer(_)), "{error}");
            let error = check(
                &[f[0], f[1], f[2], f[3], f[4], f[4]],
                end,
                "last frame twice",
            );
            assert!(matches!(error, StreamError::Footer(_)), "{error}");
            let error = check(&f, &[], "without the footer");
            assert!(matches!(error, StreamError::Truncated { .. }), "{error}");
            let error = check(&f, &[end, end].concat(), "two footers");
            assert!(matches!(error, StreamError::TrailingBytes), "{error}");

            // An attacker sets the heads right; then the tags decide.
            let relabelled = |frame: &Vec<u8>, number: u64, kind: Kind| {
                let mut frame = frame.clone();
                frame[0] = kind as u8;
                frame[4..8].copy_from_slice(&f[0][4..8]);
                frame[8..16].copy_from_slice(&number.to_be_bytes());
                frame
            };
            let two = relabelled(f[2], 1, Kind::Data);
            let error = check(
                &[f[0], &two, f[2], f[3], f[4]],
                end,
                "exchanged, relabelled",
            );
            assert!(matches!(error, StreamError::Frame(1)), "{error}");
            let foreign = relabelled(g[1], 1, Kind::Data);
            let error = check(
                &[f[0], &foreign, f[2], f[3], f[4]],
                end,
                "spliced, relabelled",
            );
            assert!(matches!(error, StreamError::Frame(1)), "{error}");
            // Shortened by a frame, with the frame before made the last: the footer does not agree,
            // and if there were one that does, the frame's nonce would not.
            let last = relabelled(f[3], 3, Kind::Last);
            let error = check(&[f[0], f[1], f[2], &last], end, "made the last");
            assert!(matches!(error, StreamError::FooterDisagrees(_)), "{error}");
            let error = check(
                &[f[0], f[1], f[2], f[3], &relabelled(f[4], 4, Kind::Data)],
                end,
                "no last",
            );
            assert!(
                matches!(error, StreamError::FrameHead { number: 4, .. }),
                "{error}"
            );
        }
    }
}

#[test]
fn the_header_of_another_stream() {
    let keys = new_keys();
    let plain = noise(SMALL + 1);
    let options = small_frames(Suite::Aes, 0);
    let one = sealed(&keys, &options, &plain);
    let mut other = sealed(&keys, &options, &plain);
    other[..HEADER_LEN].copy_from_slice(&one[..HEADER_LEN]);
    let error = refused(&keys, &other, &plain, SMALL, "another header");
    assert!(matches!(error, StreamError::OtherStream(0)), "{error}");
    // The suite is part of what the keys are derived from.
    let mut other_suite = one.clone();
    other_suite[9] = Suite::Sm.id();
    let error = refused(&keys, &other_suite, &plain, SMALL, "another suite");
    assert!(matches!(error, StreamError::WrongKey(_)), "{error}");
}

#[test]
fn a_footer_that_lies_about_its_length_is_not_believed() {
    let keys = new_keys();
    let plain = noise(100);
    let stream = sealed(&keys, &small_frames(Suite::Aes, 0), &plain);
    let footer_at = frames(&stream).last().unwrap().end;
    let head = stream[footer_at..].first_chunk::<FRAME_HEAD_LEN>().unwrap();
    assert_eq!(FrameHead::parse(head).unwrap().kind, Kind::Footer);
    for (number, len) in [
        (1u64, u32::MAX),
        (u64::MAX, u32::MAX),
        (1, 17 << 20),
        (1 << 29, 1 << 31),
    ] {
        let mut changed = stream.clone();
        changed[footer_at + 8..][..8].copy_from_slice(&number.to_be_bytes());
        changed[footer_at + 16..][..4].copy_from_slice(&len.to_be_bytes());
        changed[footer_at + 20..][..4].copy_from_slice(&len.to_be_bytes());
        let error = refused(&keys, &changed, &plain, SMALL, "a long footer");
        let seen = matches!(
            error,
            StreamError::Footer(_)
                | StreamError::FooterDisagrees(_)
                | StreamError::Truncated { .. }
        );
        assert!(seen, "{error}");
    }
    for offset in [0, HEADER_LEN as u64, footer_at as u64 + 1, u64::MAX] {
        let mut changed = stream.clone();
        let at = changed.len() - TRAILER_LEN;
        changed[at..at + 8].copy_from_slice(&offset.to_be_bytes());
        let error = refused(&keys, &changed, &plain, SMALL, "another offset");
        assert!(matches!(error, StreamError::Trailer), "{error}");
        assert!(verified(&keys, &changed, false).is_err());
    }
}
