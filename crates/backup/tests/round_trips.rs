//! What is sealed comes back, whatever its size and however it comes.

mod support;

use std::{
    io::{self, Cursor, Read},
    process::Command,
};

use onionskin_backup::{
    KeySource, Level, Manifest, Progress, SealKey, SealOptions, SealedStream, StreamError, seal,
    source::{Plain, Program, Source},
    verify,
};
use onionskin_keys::{KeyError, PassphraseCost, Suite};
use support::*;

const CHEAP: PassphraseCost = PassphraseCost {
    memory_kib: 64,
    passes: 1,
    lanes: 1,
};

#[test]
fn every_size_around_the_borders_of_frames() {
    let keys = new_keys();
    for suite in SUITES {
        for level in [0, 1] {
            let options = small_frames(suite, level);
            for (text, frames_wanted) in [(lines(3 * SMALL + 50), 4), (noise(3 * SMALL + 50), 4)] {
                for border in 0..frames_wanted {
                    for len in (border * SMALL).saturating_sub(20)..=border * SMALL + 20 {
                        let stream = sealed(&keys, &options, &text[..len]);
                        let (out, result) = opened(&keys, &stream);
                        let footer = result.unwrap();
                        assert!(out == text[..len], "{suite} {level} {len}");
                        assert_eq!(footer.body_lens.len(), len.div_ceil(SMALL).max(1));
                        assert_eq!(frames(&stream).len(), footer.body_lens.len());
                        let quick = verified(&keys, &stream, false).unwrap();
                        assert_eq!(quick.footer, footer);
                        assert_eq!(quick.stream_len, stream.len() as u64);
                    }
                }
            }
        }
    }
}

#[test]
fn every_frame_size_level_and_number_of_threads() {
    let keys = new_keys();
    // Compressible and not, in turns.
    let plain = [lines(3 << 20), noise(3 << 20), lines((3 << 20) + 1)].concat();
    for suite in SUITES {
        for (log2, level, threads) in [(12, 3, 8), (16, 19, 3), (20, 0, 1), (20, 3, 2), (22, 1, 4)]
        {
            // The kernels of SM4 and level 19 take their time where they are not fast.
            let plain = if log2 == 16 {
                &plain[..1 << 20]
            } else {
                &plain[..]
            };
            let options = SealOptions {
                frame_size: onionskin_backup::FrameSize::from_log2(log2).unwrap(),
                level: Level::new(level).unwrap(),
                threads,
                ..SealOptions::new(suite)
            };
            let stream = sealed(&keys, &options, plain);
            let (out, result) = opened(&keys, &stream);
            result.unwrap();
            assert!(out == plain, "{suite} {log2} {level} {threads}");
            assert_eq!(stream.len() < plain.len(), level > 0);
            assert!(verified(&keys, &stream, true).unwrap().deep);
        }
    }
}

#[test]
fn input_that_dribbles() {
    let keys = new_keys();
    let plain = noise(3 * SMALL);
    for step in [1, 7, SMALL, SMALL + 1] {
        let source = Plain::stdin(Dribble(Cursor::new(plain.clone()), step));
        let mut stream = Vec::new();
        let options = small_frames(Suite::Aes, 0);
        seal(
            source,
            &mut stream,
            SealKey::KeySet(&keys),
            &options,
            &Progress::new(),
        )
        .unwrap();
        let reader = Dribble(Cursor::new(stream), step);
        let stream = SealedStream::begin(reader).unwrap();
        let key = stream.header().key(&keys).unwrap();
        let mut out = Vec::new();
        stream.open(key, &mut out, 2, &Progress::new()).unwrap();
        assert!(out == plain);
    }
}

#[test]
fn two_streams_of_the_same_bytes_have_nothing_in_common() {
    let keys = new_keys();
    let options = small_frames(Suite::Aes, 0);
    let [one, two] = [(); 2].map(|()| sealed(&keys, &options, &[0; SMALL]));
    let frame = frames(&one)[0].clone();
    let same = one[frame.clone()]
        .iter()
        .zip(&two[frame])
        .filter(|(a, b)| a == b)
        .count();
    assert!(same < SMALL / 64, "{same} bytes are the same");
}

#[test]
fn progress_counts_both_sides() {
    let keys = new_keys();
    let plain = noise(10 * SMALL);
    let progress = Progress::new();
    let mut stream = Vec::new();
    let source = Plain::file(Cursor::new(plain.clone()));
    let options = small_frames(Suite::Aes, 3);
    seal(
        source,
        &mut stream,
        SealKey::KeySet(&keys),
        &options,
        &progress,
    )
    .unwrap();
    assert_eq!(progress.read(), plain.len() as u64);
    assert_eq!(progress.written(), stream.len() as u64);
}

#[test]
fn a_passphrase_opens_its_own_streams_only() {
    let keys = new_keys();
    for suite in SUITES {
        let key = SealKey::Passphrase {
            passphrase: "correct horse",
            cost: CHEAP,
        };
        let mut stream = Vec::new();
        let source = Plain::stdin(&b"plaintext"[..]);
        seal(
            source,
            &mut stream,
            key,
            &SealOptions::new(suite),
            &Progress::new(),
        )
        .unwrap();
        let begun = SealedStream::begin(Cursor::new(stream.clone())).unwrap();
        let header = begun.header();
        assert_eq!(header.key_source, KeySource::Passphrase(CHEAP));
        for wrong in ["correct hors", "correct horse ", "x"] {
            let error = header.key_from_passphrase(wrong).unwrap_err();
            assert!(
                matches!(error, StreamError::WrongKey("passphrase")),
                "{error}"
            );
        }
        let error = header.key_from_passphrase("").unwrap_err();
        assert!(matches!(error, StreamError::Key(KeyError::EmptyPassphrase)));
        let error = header.key(&keys).unwrap_err();
        assert!(matches!(error, StreamError::OtherKeySource(_)));
        let key = header.key_from_passphrase("correct horse").unwrap();
        let mut out = Vec::new();
        begun.open(key, &mut out, 1, &Progress::new()).unwrap();
        assert_eq!(out, b"plaintext");
        // Whoever changes the cost or the salt changes the key.
        for at in [19, 23, 27, 40] {
            let mut changed = stream.clone();
            changed[at] ^= 4;
            let result = SealedStream::begin(Cursor::new(changed))
                .and_then(|stream| stream.header().key_from_passphrase("correct horse"));
            assert!(matches!(
                result,
                Err(StreamError::WrongKey(_) | StreamError::Header(_))
            ));
        }
    }
    let empty = SealKey::Passphrase {
        passphrase: "",
        cost: CHEAP,
    };
    let options = SealOptions::new(Suite::Aes);
    let refused = seal(
        Plain::stdin(io::empty()),
        Vec::new(),
        empty,
        &options,
        &Progress::new(),
    );
    assert!(matches!(
        refused,
        Err(StreamError::Key(KeyError::EmptyPassphrase))
    ));
}

#[test]
fn other_keys_do_not_open() {
    let (keys, others) = (new_keys(), new_keys());
    for suite in SUITES {
        let stream = sealed(&keys, &small_frames(suite, 3), b"plaintext");
        let (out, result) = opened(&others, &stream);
        assert!(matches!(result, Err(StreamError::WrongKey("key"))));
        assert!(out.is_empty());
        // A key that is not there at all.
        let mut changed = stream.clone();
        changed[15] = 9;
        let (_, result) = opened(&keys, &changed);
        assert!(matches!(
            result,
            Err(StreamError::Key(KeyError::UnknownKey(9)))
        ));
    }
}

/// Gives some bytes and then fails, in one way or another.
struct Failing {
    left: usize,
    read_error: bool,
}

impl Source for Failing {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && self.read_error {
            return Err(io::Error::other("the disk is on fire"));
        }
        let len = buf.len().min(self.left);
        buf[..len].fill(b'x');
        self.left -= len;
        Ok(len)
    }

    fn finish(&mut self) -> Result<Manifest, String> {
        Err("it lost its connection".into())
    }
}

#[test]
fn a_failing_source_leaves_no_whole_stream() {
    let keys = new_keys();
    for left in [0, 1, SMALL - 1, SMALL, SMALL + 1, 50 * SMALL] {
        for read_error in [false, true] {
            let mut stream = Vec::new();
            let source = Failing { left, read_error };
            let options = small_frames(Suite::Aes, 0);
            let result = seal(
                source,
                &mut stream,
                SealKey::KeySet(&keys),
                &options,
                &Progress::new(),
            );
            match result {
                Err(StreamError::Source(text)) if !read_error => {
                    assert_eq!(text, "it lost its connection");
                }
                Err(StreamError::Read(_)) if read_error => {}
                other => panic!("{left}: {other:?}"),
            }
            let plain = vec![b'x'; left];
            let error = refused(&keys, &stream, &plain, SMALL, "cut short");
            assert!(matches!(error, StreamError::Truncated { .. }), "{error}");
        }
    }
}

#[test]
fn a_program_must_end_well() {
    let keys = new_keys();
    let seal_output = |script: &str| {
        let program = {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Program::start("sh", command).unwrap()
        };
        let mut stream = Vec::new();
        let options = small_frames(Suite::Aes, 3);
        let result = seal(
            program,
            &mut stream,
            SealKey::KeySet(&keys),
            &options,
            &Progress::new(),
        );
        (stream, result)
    };
    let (stream, result) = seal_output("echo dumped");
    assert_eq!(result.unwrap().footer.manifest.source, "command");
    assert_eq!(opened(&keys, &stream).0, b"dumped\n");
    for script in ["echo dumped; exit 3", "echo dumped; kill -9 $$"] {
        let (stream, result) = seal_output(script);
        assert!(matches!(result, Err(StreamError::Source(_))), "{script}");
        refused(&keys, &stream, b"dumped\n", SMALL, script);
    }
    assert!(Program::start("none", Command::new("/nowhere/at-all")).is_err());
}

/// Takes so many bytes and then refuses.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let len = bytes.len().min(self.0);
        self.0 -= len;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_output_that_is_full_is_an_error_even_if_the_source_never_ends() {
    let keys = new_keys();
    let options = small_frames(Suite::Aes, 0);
    for room in [0, 10, 96, 5000, 100_000] {
        let source = Plain::stdin(io::repeat(1));
        let key = SealKey::KeySet(&keys);
        let result = seal(source, Full(room), key, &options, &Progress::new());
        assert!(matches!(result, Err(StreamError::Write(_))));
    }
    let stream = sealed(&keys, &options, &noise(20 * SMALL));
    let begun = SealedStream::begin(Cursor::new(stream)).unwrap();
    let key = begun.header().key(&keys).unwrap();
    let result = begun.open(key, Full(10_000), 2, &Progress::new());
    assert!(matches!(result, Err(StreamError::Write(_))));
}

#[test]
fn a_file_is_verified_where_it_lies() {
    let keys = new_keys();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup");
    let mut file = onionskin_backup::WholeFile::create(&path).unwrap();
    let options = SealOptions::new(Suite::Sm);
    let source = Plain::stdin(Cursor::new(lines(100_000)));
    seal(
        source,
        &mut file,
        SealKey::KeySet(&keys),
        &options,
        &Progress::new(),
    )
    .unwrap();
    file.finish().unwrap();
    for deep in [None, Some(2)] {
        let file = std::fs::File::open(&path).unwrap();
        let verified = verify(file, |header| header.key(&keys), deep, &Progress::new()).unwrap();
        assert_eq!(verified.footer.plain_len, 100_000);
    }
    let mut bytes = Vec::new();
    std::fs::File::open(&path)
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    assert_eq!(opened(&keys, &bytes).0, lines(100_000));
}
