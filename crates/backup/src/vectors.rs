//! The format, byte by byte: streams that `tests/reader/sealed.py` wrote, an independent
//! implementation.

use std::{fs, io, os::unix::fs::PermissionsExt, path::Path};

use onionskin_crypt::{StreamDigest, dangerous_bytes};
use onionskin_keys::{KeySet, PassphraseCost, Suite};

use crate::{
    FrameSize, KeySource, Level, Manifest, Progress, SealKey, SealOptions, SealedStream,
    header::RANDOM_LEN, seal::seal_with, source::Source,
};

const PASSPHRASE: &str = "correct horse ✓ battery";

/// Gives its bytes and a manifest without the time of day.
struct Fixed(io::Cursor<Vec<u8>>);

impl Source for Fixed {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        io::Read::read(&mut self.0, buf)
    }

    fn finish(&mut self) -> Result<Manifest, String> {
        Ok(Manifest {
            created: 1_767_225_600,
            ..Manifest::new("stdin")
        })
    }
}

fn keys() -> KeySet {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.json");
    let text = include_str!("../../keys/tests/vectors/clear.json");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    KeySet::load("file:keys.json", folder.path(), None).unwrap()
}

fn noise(len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in 0..=len as u64 / 32 {
        let mut digest = StreamDigest::new(Suite::Aes);
        digest.update(&number.to_be_bytes());
        bytes.extend(digest.finish());
    }
    bytes.truncate(len);
    bytes
}

fn lines() -> Vec<u8> {
    let lines = (0..300).map(|n| format!("INSERT INTO t VALUES ({n}, 'the same again');\n"));
    lines.collect::<String>().into_bytes()[..9000].to_vec()
}

fn vector(suite: Suite, kind: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    fs::read(path.join(format!("{suite}-{kind}.sealed"))).unwrap()
}

/// Plaintext, frame size and rhythm of the subkeys, each as the generator has it.
fn kinds() -> [(&'static str, Vec<u8>, u8, u8); 6] {
    [
        ("stored", noise(4 * 4096 + 100), 12, 1),
        ("full", noise(2 * 4096), 12, 24),
        ("empty", Vec::new(), 20, 16),
        ("passphrase", b"under a passphrase".to_vec(), 20, 16),
        ("zstd", lines(), 12, 0),
        ("recipients", noise(2 * 4096 + 7), 12, 1),
    ]
}

#[test]
fn pinned_streams_open() {
    let keys = keys();
    for suite in [Suite::Aes, Suite::Sm] {
        for (kind, plain, frame_log2, subkey_log2) in kinds() {
            let stream = SealedStream::begin(io::Cursor::new(vector(suite, kind))).unwrap();
            let header = stream.header().clone();
            assert_eq!((header.suite, header.subkey_log2), (suite, subkey_log2));
            assert_eq!(header.frame_size, FrameSize::from_log2(frame_log2).unwrap());
            let key = match header.key_source {
                KeySource::KeyFile(7) => header.key(&keys).unwrap(),
                KeySource::Recipients(2) => {
                    // Each of the two opens it.
                    let [one, other] = [[0x11; 32], [0x22; 32]]
                        .map(|bytes| dangerous_bytes::identity_from_bytes(suite, &bytes).unwrap());
                    header.key_from_identities([&other]).unwrap();
                    header.key_from_identities([&one]).unwrap()
                }
                _ => header.key_from_passphrase(PASSPHRASE).unwrap(),
            };
            let mut opened = Vec::new();
            let footer = stream.open(key, &mut opened, 2, &Progress::new()).unwrap();
            assert_eq!(opened, plain, "{suite}-{kind}");
            assert_eq!(footer.plain_len, plain.len() as u64);
            assert_eq!(footer.manifest.source, "stdin");
        }
    }
}

#[test]
fn sealing_gives_the_pinned_bytes() {
    // But for compression, whose output changes with zstd's version.
    let keys = keys();
    for suite in [Suite::Aes, Suite::Sm] {
        for (kind, plain, frame_log2, subkey_log2) in kinds() {
            // And for stanzas, whose ephemeral secrets are drawn.
            if kind == "zstd" || kind == "recipients" {
                continue;
            }
            let options = SealOptions {
                level: Level::STORED,
                threads: 2,
                frame_size: FrameSize::from_log2(frame_log2).unwrap(),
                ..SealOptions::new(suite)
            };
            let key = match kind {
                "passphrase" => SealKey::Passphrase {
                    passphrase: PASSPHRASE,
                    cost: PassphraseCost {
                        memory_kib: 64,
                        passes: 2,
                        lanes: 1,
                    },
                },
                _ => SealKey::KeySet(&keys),
            };
            let mut random = [0; RANDOM_LEN];
            (0u8..).zip(&mut random).for_each(|(n, byte)| *byte = n);
            let mut stream = Vec::new();
            let sealed = seal_with(
                Fixed(io::Cursor::new(plain)),
                &mut stream,
                key,
                &options,
                &Progress::new(),
                random,
                Some(subkey_log2),
            )
            .unwrap();
            assert_eq!(stream, vector(suite, kind), "{suite}-{kind}");
            assert_eq!(sealed.stream_len, stream.len() as u64);
        }
    }
}
