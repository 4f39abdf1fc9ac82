//! Sealed streams: their headers, their frames, their footers.

use std::io::Cursor;
use std::sync::LazyLock;

use onionskin_backup::frame::{FRAME_HEAD_LEN, FrameHead};
use onionskin_backup::header::HEADER_LEN;
use onionskin_backup::source::Plain;
use onionskin_backup::{
    Footer, FrameSize, Header, Level, Progress, SealKey, SealOptions, SealedStream, seal, verify,
};
use onionskin_keys::{PassphraseCost, Suite};

const PASSPHRASE: &str = "correct horse";
const FRAME: FrameSize = FrameSize::from_log2(12).expect("a valid size");

/// Genuine streams and their plaintexts. They differ in every run; a corpus of an earlier run does
/// no harm.
static STREAMS: LazyLock<Vec<(Vec<u8>, Vec<u8>)>> = LazyLock::new(|| {
    let text: Vec<u8> = (0..3000u32)
        .flat_map(|n| n.to_string().into_bytes())
        .collect();
    let mut streams = Vec::new();
    for suite in [Suite::Aes, Suite::Sm] {
        for (level, plain) in [(0, &b""[..]), (0, b"some text"), (3, &text[..9000])] {
            let options = SealOptions {
                level: Level::new(level).expect("a valid level"),
                threads: 1,
                frame_size: FRAME,
                ..SealOptions::new(suite)
            };
            let key = SealKey::Passphrase {
                passphrase: PASSPHRASE,
                cost: PassphraseCost {
                    memory_kib: 8,
                    passes: 1,
                    lanes: 1,
                },
            };
            let mut stream = Vec::new();
            let source = Plain::stdin(Cursor::new(plain.to_vec()));
            seal(source, &mut stream, key, &options, &Progress::new()).expect("sealed");
            streams.push((stream, plain.to_vec()));
        }
    }
    streams
});

/// A header that parses is written down the same way again, so that nothing in it is ignored.
pub fn header(input: &[u8]) {
    let Some(bytes) = input.first_chunk::<HEADER_LEN>() else {
        assert!(SealedStream::begin(Cursor::new(input.to_vec())).is_err());
        return;
    };
    match Header::parse(bytes) {
        // Stanzas follow what is parsed here.
        Ok(header) => assert_eq!(header.to_bytes(), bytes),
        Err(error) => drop(error.to_string()),
    }
}

/// The first byte chooses a genuine stream, the rest is added to it byte by byte behind its header
/// (exclusive or), and appended where it is longer. Only the stream itself opens; what comes out
/// before an error is its beginning.
pub fn frames(input: &[u8]) {
    let Some((&choice, masks)) = input.split_first() else {
        return;
    };
    let (genuine, plain) = &STREAMS[usize::from(choice) % STREAMS.len()];
    let mut stream = genuine.clone();
    let body = &mut stream[HEADER_LEN..];
    let len = body.len();
    body.iter_mut()
        .zip(masks)
        .for_each(|(byte, mask)| *byte ^= mask);
    stream.extend(masks.get(len..).unwrap_or_default());
    // Masks that end with 1 cut the stream where the one before says.
    if let &[.., at, 1] = masks {
        stream.truncate(HEADER_LEN + usize::from(at) * len / 256);
    }
    let same = &stream == genuine;
    let begun = SealedStream::begin(Cursor::new(stream.clone())).expect("the header is genuine");
    let key = begun
        .header()
        .key_from_passphrase(PASSPHRASE)
        .expect("and so is the key");
    let mut out = Vec::new();
    let opened = begun.open(key, &mut out, 1, &Progress::new());
    assert_eq!(opened.is_ok(), same, "{opened:?}");
    assert!(plain.starts_with(&out));
    assert!(same || out.is_empty() || out.len() < plain.len());
    let key = |header: &Header| header.key_from_passphrase(PASSPHRASE);
    let verified = verify(Cursor::new(stream), key, None, &Progress::new());
    assert!(verified.is_ok() || !same);
}

/// Heads and the content of footers, as if their tags had verified.
pub fn footer(input: &[u8]) {
    if let Some(bytes) = input.first_chunk::<FRAME_HEAD_LEN>()
        && let Ok(head) = FrameHead::parse(bytes)
    {
        assert_eq!(&head.to_bytes(), bytes);
    }
    match Footer::decode(input, FRAME) {
        Ok(footer) => {
            let frames = footer.body_lens.len() as u64;
            assert!(frames >= 1 && frames <= input.len() as u64 / 4);
            assert!(footer.plain_len <= frames * FRAME.bytes() as u64);
            let (genuine, _) = &STREAMS[0];
            let begun = SealedStream::begin(Cursor::new(genuine.clone())).expect("genuine");
            assert!(footer.offset(begun.header()) >= HEADER_LEN as u64);
        }
        Err(error) => drop(error.to_string()),
    }
}

/// Genuine headers.
pub fn header_seeds() -> Vec<Vec<u8>> {
    let headers = STREAMS
        .iter()
        .map(|(stream, _)| stream[..HEADER_LEN].to_vec());
    let mut seeds: Vec<_> = headers.collect();
    let mut by_key_file = seeds[0].clone();
    by_key_file[12] = 1;
    by_key_file[15] = 7;
    by_key_file[16..28].fill(0);
    seeds.push(by_key_file);
    seeds
}

/// Every stream as it is, with changed bits, and cut.
pub fn frame_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (choice, (stream, _)) in (0u8..).zip(STREAMS.iter()) {
        seeds.push(vec![choice]);
        seeds.push(vec![choice, 0, 1]);
        seeds.push([&[choice][..], &vec![0; stream.len() - HEADER_LEN], b"more"].concat());
        seeds.push(vec![choice, 0, 128, 1]);
    }
    seeds
}

/// Contents of footers as writers make them, and a head.
pub fn footer_seeds() -> Vec<Vec<u8>> {
    let content = |frames: u64, plain_len: u64, manifest: &[u8]| {
        let mut content = [plain_len.to_be_bytes(), frames.to_be_bytes()].concat();
        (0..frames).for_each(|_| content.extend(100u32.to_be_bytes()));
        content.extend([7; 32]);
        content.extend((manifest.len() as u32).to_be_bytes());
        content.extend(manifest);
        content
    };
    let manifest =
        br#"{"version":1,"created":1,"source":"stdin","tables":[{"database":"a","name":"t"}]}"#;
    let mut seeds = vec![
        content(1, 0, br#"{"version":1}"#),
        content(1, 4096, manifest),
        content(3, 9000, manifest),
    ];
    for seed in &seeds {
        assert!(Footer::decode(seed, FRAME).is_ok());
    }
    seeds.push(
        [
            &[1, 1, 0, 0][..],
            &[0; 12],
            &4096u32.to_be_bytes(),
            &100u32.to_be_bytes(),
        ]
        .concat(),
    );
    seeds
}
