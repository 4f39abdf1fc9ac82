//! Recipients: texts and files of keys, stanzas, headers with stanzas.

use std::io::Cursor;
use std::sync::LazyLock;

use onionskin_backup::source::Plain;
use onionskin_backup::{Progress, SealKey, SealOptions, SealedStream, seal};
use onionskin_crypt::FileKey;
use onionskin_keys::recipient_file::{identity_file, parse_identities};
use onionskin_keys::recipient_text::{
    identity_text, parse_identity, parse_recipient, recipient_text,
};
use onionskin_keys::{Identity, Recipient, Suite};

/// An identity of each suite. They differ in every run; a corpus of an earlier run does no harm.
static IDENTITIES: LazyLock<Vec<Identity>> =
    LazyLock::new(|| [Suite::Aes, Suite::Sm].map(Identity::generate).into());

/// A key that is read has the text that it was read from. Stanzas and headers of others open
/// nothing, or to a file key.
pub fn run(input: &[u8]) {
    if let Ok(text) = str::from_utf8(input) {
        if let Ok(recipient) = parse_recipient(text) {
            assert_eq!(recipient_text(&recipient), text.trim());
            assert!(recipient.wrap(&FileKey::generate()).is_ok());
        }
        if let Ok(identity) = parse_identity(text) {
            assert_eq!(*identity_text(&identity), text.trim());
        }
    }
    if let Err(error) = parse_identities("file", input) {
        drop(error.to_string());
    }
    for identity in IDENTITIES.iter() {
        drop(identity.unwrap(input));
    }
    if let Ok(stream) = SealedStream::begin(Cursor::new(input.to_vec()))
        && let Err(error) = stream.header().key_from_identities(IDENTITIES.iter())
    {
        drop(error.to_string());
    }
}

/// Texts, a file, a stanza and a stream of each suite.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for identity in IDENTITIES.iter() {
        let recipient = identity.recipient();
        seeds.push(recipient_text(&recipient).into_bytes());
        seeds.push(identity_text(identity).as_bytes().to_vec());
        seeds.push(identity_file(identity, "2026-11-28").as_bytes().to_vec());
        seeds.push(recipient.wrap(&FileKey::generate()).expect("wrapped"));
        let to: [Recipient; 2] = [recipient, Identity::generate(identity.suite()).recipient()];
        let mut stream = Vec::new();
        seal(
            Plain::stdin(Cursor::new(b"some text".to_vec())),
            &mut stream,
            SealKey::Recipients(&to),
            &SealOptions::new(identity.suite()),
            &Progress::new(),
        )
        .expect("sealed");
        seeds.push(stream);
    }
    seeds
}
