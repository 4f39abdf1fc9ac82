//! Streams to recipients: each identity opens them, no other one does, and whatever is done to
//! their header is an error.

mod support;

use std::io::Cursor;

use onionskin_backup::{
    Footer, KeySource, Progress, SealKey, SealedStream, StreamError, Verified,
    frame::FRAME_OVERHEAD, header::HEADER_LEN, seal, source::Plain, verify,
};
use onionskin_crypt::recipient::stanza_len;
use onionskin_keys::{Identity, Recipient, RecipientError, Suite};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use support::*;

fn identities(suite: Suite, count: usize) -> Vec<Identity> {
    (0..count).map(|_| Identity::generate(suite)).collect()
}

fn recipients(of: &[Identity]) -> Vec<Recipient> {
    of.iter().map(Identity::recipient).collect()
}

fn try_seal(suite: Suite, to: &[Recipient], plain: &[u8]) -> Result<Vec<u8>, StreamError> {
    let mut stream = Vec::new();
    let source = Plain::stdin(Cursor::new(plain.to_vec()));
    let options = small_frames(suite, 0);
    let key = SealKey::Recipients(to);
    let sealed = seal(source, &mut stream, key, &options, &Progress::new())?;
    assert_eq!(sealed.stream_len, stream.len() as u64);
    Ok(stream)
}

fn sealed_to(of: &[Identity], plain: &[u8]) -> Vec<u8> {
    try_seal(of[0].suite(), &recipients(of), plain).unwrap()
}

fn open_with(identities: &[&Identity], stream: &[u8]) -> (Vec<u8>, Result<Footer, StreamError>) {
    let mut plain = Vec::new();
    let result = SealedStream::begin(Cursor::new(stream.to_vec())).and_then(|stream| {
        let key = stream
            .header()
            .key_from_identities(identities.iter().copied())?;
        stream.open(key, &mut plain, 2, &Progress::new())
    });
    (plain, result)
}

/// The error of a stream of which nothing comes out.
fn refused_to(identities: &[&Identity], stream: &[u8], what: &str) -> StreamError {
    let (plain, result) = open_with(identities, stream);
    assert!(plain.is_empty(), "{what}: plaintext comes out");
    assert!(
        verified_with(identities, stream, Some(2)).is_err(),
        "{what}: it verifies"
    );
    result.expect_err(what)
}

fn verified_with(
    identities: &[&Identity],
    stream: &[u8],
    deep: Option<usize>,
) -> Result<Verified, StreamError> {
    verify(
        Cursor::new(stream.to_vec()),
        |header| header.key_from_identities(identities.iter().copied()),
        deep,
        &Progress::new(),
    )
}

#[test]
fn every_recipient_opens_it_and_nobody_else() {
    let plain = noise(2 * SMALL + 5);
    for suite in SUITES {
        let own = identities(suite, 3);
        let stream = sealed_to(&own, &plain);
        let [other, another] = [Identity::generate(suite), Identity::generate(suite)];
        for identity in &own {
            // alone, and among others
            for given in [&[identity][..], &[&other, identity, &another]] {
                let (opened, result) = open_with(given, &stream);
                assert_eq!(result.unwrap().plain_len, plain.len() as u64);
                assert_eq!(opened, plain);
            }
            let verified = verified_with(&[identity], &stream, Some(2)).unwrap();
            assert_eq!(verified.header.key_source, KeySource::Recipients(3));
            assert_eq!(verified.stream_len, stream.len() as u64);
        }
        for given in [&[][..], &[&other], &[&other, &another]] {
            let error = refused_to(given, &stream, "another identity");
            assert!(!error.is_damage());
            let text = error.to_string();
            assert!(text.contains("none of these identities"), "{text}");
            assert!(text.contains("3 other recipients"), "{text}");
        }
        // Of the other suite
        for wrong in SUITES.into_iter().filter(|other| *other != suite) {
            let error = refused_to(&[&Identity::generate(wrong)], &stream, "another suite");
            assert!(matches!(
                error,
                StreamError::NoIdentity { recipients: 3, .. }
            ));
        }
    }
}

#[test]
fn keys_and_identities_are_told_apart() {
    let keys = new_keys();
    let identity = Identity::generate(Suite::Aes);
    let by_keys = sealed(&keys, &small_frames(Suite::Aes, 0), b"under a data key");
    let error = refused_to(&[&identity], &by_keys, "under keys");
    assert!(matches!(error, StreamError::OtherKeySource(_)));
    assert!(error.to_string().contains("--keys"), "{error}");

    let to_identity = sealed_to(&[identity], b"to a recipient");
    let error = refused(&keys, &to_identity, b"to a recipient", SMALL, "to one");
    assert!(matches!(error, StreamError::OtherKeySource(_)));
    assert!(error.to_string().contains("--identity"), "{error}");
}

#[test]
fn who_cannot_be_sealed_to() {
    let [aes, sm] = SUITES.map(|suite| Identity::generate(suite).recipient());
    let refused = |suite, to: &[Recipient]| match try_seal(suite, to, b"") {
        Err(StreamError::Recipients(error)) => error,
        other => panic!("{other:?}"),
    };
    let mixed = [aes.clone(), sm.clone()];
    assert!(matches!(refused(Suite::Aes, &mixed), RecipientError::Mixed));
    assert!(matches!(refused(Suite::Aes, &[]), RecipientError::None));
    for (suite, other) in [(Suite::Sm, &aes), (Suite::Aes, &sm)] {
        let error = refused(suite, std::slice::from_ref(other));
        assert!(matches!(error, RecipientError::OtherSuite { .. }));
    }
    let many = refused(Suite::Aes, &vec![aes; 257]);
    assert!(matches!(many, RecipientError::TooMany));
}

#[test]
fn as_many_recipients_as_there_may_be() {
    let own = identities(Suite::Aes, 256);
    let stream = sealed_to(&own, b"to all of them");
    for identity in [&own[0], &own[255]] {
        assert_eq!(open_with(&[identity], &stream).0, b"to all of them");
    }
}

#[test]
fn every_bit_and_every_length() {
    for suite in SUITES {
        let own = identities(suite, 2);
        let both: Vec<&Identity> = own.iter().collect();
        let stream = sealed_to(&own, &noise(40));
        let header_len = HEADER_LEN + 2 * stanza_len(suite);
        // Every bit of the header, and one of each byte behind it.
        let behind = (header_len..stream.len()).map(|at| 8 * at + at % 8);
        for bit in (0..8 * header_len).chain(behind) {
            let mut changed = stream.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let (plain, result) = open_with(&both, &changed);
            assert!(plain.is_empty(), "{suite}, bit {bit}: plaintext comes out");
            let error = result.expect_err("it was changed");
            // One of the two stanzas is whole, so that it was changed is certain.
            let stanzas = HEADER_LEN..header_len;
            if stanzas.contains(&(bit / 8)) {
                assert!(matches!(error, StreamError::HeaderChanged), "{error}");
            }
        }
        // A look at header and footer sees all but what is in the frame.
        for at in 0..stream.len() {
            let mut changed = stream.clone();
            changed[at] ^= 0x10;
            let in_frame = (header_len..header_len + FRAME_OVERHEAD + 40).contains(&at);
            let quick = verified_with(&both, &changed, None);
            assert_eq!(quick.is_ok(), in_frame, "{suite}, byte {at}");
        }
        for len in 0..stream.len() {
            let error = refused_to(&both, &stream[..len], &format!("{suite}, length {len}"));
            match error {
                StreamError::NotSealed => assert_eq!(len, 0),
                StreamError::Truncated { at, .. } => assert_eq!(at, len as u64),
                other => panic!("length {len}: {other}"),
            }
        }
    }
}

/// A header taken apart.
struct Parts {
    start: Vec<u8>,
    stanzas: Vec<Vec<u8>>,
    rest: Vec<u8>,
}

impl Parts {
    fn of(stream: &[u8], suite: Suite, count: usize) -> Self {
        let (start, rest) = stream.split_at(HEADER_LEN);
        let (stanzas, rest) = rest.split_at(count * stanza_len(suite));
        Self {
            start: start.into(),
            stanzas: stanzas
                .chunks(stanza_len(suite))
                .map(<[u8]>::to_vec)
                .collect(),
            rest: rest.into(),
        }
    }

    fn stream(&self) -> Vec<u8> {
        let mut start = self.start.clone();
        start[14..16].copy_from_slice(&(self.stanzas.len() as u16).to_be_bytes());
        [&start[..], &self.stanzas.concat(), &self.rest].concat()
    }
}

#[test]
fn stanzas_removed_added_exchanged_and_taken_from_others() {
    let seed = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    for suite in SUITES {
        for round in 0..60 {
            let count = rng.random_range(1..6);
            let own = identities(suite, count);
            let all: Vec<&Identity> = own.iter().collect();
            let stream = sealed_to(&own, b"what is sealed");
            let other = Parts::of(&sealed_to(&own, b"another"), suite, count);
            let mut parts = Parts::of(&stream, suite, count);
            assert_eq!(parts.stream(), stream);
            let at = rng.random_range(0..count);
            let to = rng.random_range(0..count);
            let what = match round % 6 {
                0 => {
                    parts.stanzas.remove(at);
                    "removed"
                }
                1 => {
                    let copy = parts.stanzas[at].clone();
                    parts.stanzas.insert(to, copy);
                    "repeated"
                }
                2 => {
                    let more = Identity::generate(suite).recipient();
                    let more = more.wrap(&onionskin_crypt::FileKey::generate()).unwrap();
                    parts.stanzas.insert(at, more);
                    "added"
                }
                3 => {
                    parts.stanzas.swap(at, to);
                    "exchanged"
                }
                4 => {
                    parts.stanzas[at] = other.stanzas[at].clone();
                    "taken from another stream"
                }
                _ => {
                    // The whole header of another stream before these frames.
                    parts.start = other.start.clone();
                    parts.stanzas = other.stanzas.clone();
                    "another header"
                }
            };
            let changed = parts.stream();
            if changed == stream {
                continue;
            }
            let what = format!("seed {seed}, {suite}, {count}: {what}, {at}, {to}");
            let error = refused_to(&all, &changed, &what);
            assert!(
                error.is_damage() || matches!(error, StreamError::NoIdentity { .. }),
                "{what}: {error}"
            );
        }
    }
}
