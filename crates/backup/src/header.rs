//! What a sealed stream begins with: 96 bytes, and the stanzas of its recipients if it has any.
//!
//! | offset | length | content |
//! |---|---|---|
//! | 0 | 8 | `0x89 "ONION" 0x0d 0x0a` |
//! | 8 | 1 | format version: 1, or 2 with recipients |
//! | 9 | 1 | suite id |
//! | 10 | 1 | base-2 logarithm of the frame size, 12 to 22 |
//! | 11 | 1 | base-2 logarithm of the number of frames under one subkey; with the former at most 36 (64 GiB) |
//! | 12 | 1 | source of the key: 1 key file, 2 passphrase, 3 recipients |
//! | 13 | 1 | 0 |
//! | 14 | 2 | key file: key id; passphrase: 0; recipients: n, how many there are, 1 to 256 |
//! | 16 | 12 | passphrase: memory in KiB (4), passes (4), lanes (4) of Argon2id; else zeros |
//! | 28 | 4 | 0 |
//! | 32 | 32 | random; also the salt of Argon2id |
//! | 64 | 32 | commitment to the key, to the bytes before, and to the stanzas |
//! | 96 | n × 64 or 113 | recipients: a stanza for each, see [`onionskin_crypt::recipient`] |
//!
//! The stream's keys are derived from the first 64 bytes and all stanzas, so a header that was
//! changed gives other keys, and the commitment shows it. A program from before recipients says of
//! version 2 that it does not know it.

use std::sync::Arc;

use onionskin_crypt::{FileKey, STREAM_COMMITMENT_LEN, recipient::stanza_len};
use onionskin_keys::{
    Identity, KeyId, KeySet, MAX_RECIPIENTS, PassphraseCost, Recipient, StreamKey, Suite,
    stream_key_from_passphrase,
};

use crate::StreamError;

/// Length of a header in bytes, without stanzas.
pub const HEADER_LEN: usize = 96;
/// What a sealed stream begins with. Like PNG's: no text, and broken by whatever changes line ends
/// or cuts the eighth bit.
pub const MAGIC: [u8; 8] = *b"\x89ONION\r\n";
/// The format version of streams without recipients.
pub const FORMAT_VERSION: u8 = 1;
/// The format version of streams to recipients.
pub const RECIPIENTS_VERSION: u8 = 2;

const START_LEN: usize = HEADER_LEN - STREAM_COMMITMENT_LEN;
pub(crate) const RANDOM_LEN: usize = 32;
const BY_KEY_FILE: u8 = 1;
const BY_PASSPHRASE: u8 = 2;
const BY_RECIPIENTS: u8 = 3;
/// A subkey protects at most 2^36 bytes.
const SUBKEY_LOG2: u8 = 36;

/// What a stream to recipients says where there is no identity.
pub const TO_RECIPIENTS: &str = "to recipients: keys and passphrases do not open it, the identity of one of them does (--identity FILE)";
const WITH_KEYS: &str = "with a key file, and not to recipients: name the keys with -c or --keys";
const WITH_PASSPHRASE: &str = "under a passphrase, and not to recipients: leave --identity out";

/// Bytes of input in a frame, a power of two from 4 KiB to 4 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameSize {
    log2: u8,
}

impl FrameSize {
    /// What `seal` uses: 1 MiB. Larger frames compress a percent better and take more memory.
    pub const DEFAULT: Self = Self { log2: 20 };

    /// 2 to the power of `log2`, which is 12 to 22.
    pub const fn from_log2(log2: u8) -> Option<Self> {
        match log2 {
            12..=22 => Some(Self { log2 }),
            _ => None,
        }
    }

    /// In bytes.
    pub const fn bytes(self) -> usize {
        1 << self.log2
    }
}

/// Where the key of a stream comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySource {
    /// The data key of this number in a key file.
    KeyFile(KeyId),
    /// A passphrase, by Argon2id at this cost.
    Passphrase(PassphraseCost),
    /// A key of its own, wrapped to so many recipients.
    Recipients(u16),
}

/// A stream's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The ciphers.
    pub suite: Suite,
    /// Input bytes of every frame but the last.
    pub frame_size: FrameSize,
    /// Base-2 logarithm of the number of frames under one subkey.
    pub(crate) subkey_log2: u8,
    /// Where the key comes from.
    pub key_source: KeySource,
    /// Tells streams apart.
    pub(crate) random: [u8; RANDOM_LEN],
    /// What the header on the wire says; checked against the key when there is one.
    pub(crate) commitment: [u8; STREAM_COMMITMENT_LEN],
    /// The wrapped key, for each recipient once; empty without recipients. Not read yet in a header
    /// that [`Header::parse`] gives.
    pub(crate) stanzas: Arc<[u8]>,
}

impl Header {
    /// A new stream's, not yet committed to a key.
    pub(crate) fn new(
        suite: Suite,
        frame_size: FrameSize,
        key_source: KeySource,
        random: [u8; RANDOM_LEN],
    ) -> Self {
        Self {
            suite,
            frame_size,
            subkey_log2: SUBKEY_LOG2 - frame_size.log2,
            key_source,
            random,
            commitment: [0; STREAM_COMMITMENT_LEN],
            stanzas: Arc::default(),
        }
    }

    /// Reads a header up to its stanzas. Nothing is authenticated yet: that takes the key.
    pub fn parse(bytes: &[u8; HEADER_LEN]) -> Result<Self, StreamError> {
        let mut fields = Fields(bytes);
        if fields.take() != MAGIC {
            return Err(StreamError::NotSealed);
        }
        let [version, suite, frame_log2, subkey_log2] = fields.take();
        if version != FORMAT_VERSION && version != RECIPIENTS_VERSION {
            return Err(StreamError::UnknownVersion(version));
        }
        let suite = Suite::from_id(suite).ok_or(StreamError::Header("unknown suite"))?;
        let frame_size =
            FrameSize::from_log2(frame_log2).ok_or(StreamError::Header("unknown frame size"))?;
        if subkey_log2 > SUBKEY_LOG2 - frame_log2 {
            return Err(StreamError::Header("too many frames under one key"));
        }
        let [source, zero] = fields.take();
        let key_id = KeyId::from_be_bytes(fields.take());
        let [memory_kib, passes, lanes, zeros] =
            [(); 4].map(|()| u32::from_be_bytes(fields.take()));
        if zero != 0 || zeros != 0 {
            return Err(StreamError::Header("reserved bytes are set"));
        }
        let cost = PassphraseCost {
            memory_kib,
            passes,
            lanes,
        };
        let no_cost = (memory_kib, passes, lanes) == (0, 0, 0);
        let key_source = match (version, source) {
            (FORMAT_VERSION, BY_KEY_FILE) if no_cost => KeySource::KeyFile(key_id),
            (FORMAT_VERSION, BY_PASSPHRASE) if key_id == 0 && cost.is_acceptable() => {
                KeySource::Passphrase(cost)
            }
            (RECIPIENTS_VERSION, BY_RECIPIENTS)
                if no_cost && (1..=MAX_RECIPIENTS).contains(&usize::from(key_id)) =>
            {
                KeySource::Recipients(key_id)
            }
            (FORMAT_VERSION, BY_KEY_FILE | BY_PASSPHRASE) | (RECIPIENTS_VERSION, BY_RECIPIENTS) => {
                return Err(StreamError::Header("impossible parameters of the key"));
            }
            _ => return Err(StreamError::Header("unknown source of the key")),
        };
        Ok(Self {
            suite,
            frame_size,
            subkey_log2,
            key_source,
            random: fields.take(),
            commitment: fields.take(),
            stanzas: Arc::default(),
        })
    }

    /// Length of the stanzas that belong to it, in bytes.
    pub(crate) fn stanzas_len(&self) -> usize {
        match self.key_source {
            KeySource::Recipients(count) => usize::from(count) * stanza_len(self.suite),
            KeySource::KeyFile(_) | KeySource::Passphrase(_) => 0,
        }
    }

    /// Length of the whole header in bytes.
    #[expect(clippy::len_without_is_empty, reason = "no header is empty")]
    pub fn len(&self) -> usize {
        HEADER_LEN + self.stanzas_len()
    }

    /// The header as it is written.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.start().to_vec();
        bytes.extend_from_slice(&self.commitment);
        bytes.extend_from_slice(&self.stanzas);
        bytes
    }

    /// What comes before the commitment.
    fn start(&self) -> [u8; START_LEN] {
        let mut bytes = [0; START_LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8] = match self.key_source {
            KeySource::KeyFile(_) | KeySource::Passphrase(_) => FORMAT_VERSION,
            KeySource::Recipients(_) => RECIPIENTS_VERSION,
        };
        bytes[9] = self.suite.id();
        bytes[10] = self.frame_size.log2;
        bytes[11] = self.subkey_log2;
        match self.key_source {
            KeySource::KeyFile(id) => {
                bytes[12] = BY_KEY_FILE;
                bytes[14..16].copy_from_slice(&id.to_be_bytes());
            }
            KeySource::Passphrase(cost) => {
                bytes[12] = BY_PASSPHRASE;
                bytes[16..20].copy_from_slice(&cost.memory_kib.to_be_bytes());
                bytes[20..24].copy_from_slice(&cost.passes.to_be_bytes());
                bytes[24..28].copy_from_slice(&cost.lanes.to_be_bytes());
            }
            KeySource::Recipients(count) => {
                bytes[12] = BY_RECIPIENTS;
                bytes[14..16].copy_from_slice(&count.to_be_bytes());
            }
        }
        bytes[32..].copy_from_slice(&self.random);
        bytes
    }

    /// A name for the stream that no other one has: the first half of its random bytes,
    /// hexadecimal. Not secret.
    pub fn id(&self) -> String {
        let bytes = self.random[..RANDOM_LEN / 2].iter();
        bytes.map(|byte| format!("{byte:02x}")).collect()
    }

    /// What the keys are derived from besides the secret: all of the header but the commitment.
    pub(crate) fn context(&self) -> Vec<u8> {
        [&self.start()[..], &self.stanzas].concat()
    }

    /// The salt of Argon2id.
    pub(crate) fn salt(&self) -> &[u8] {
        &self.random
    }

    /// The stream's key from a key set. [`StreamError::WrongKey`] if it is not the one that the
    /// stream was sealed with.
    pub fn key(&self, keys: &KeySet) -> Result<StreamKey, StreamError> {
        let id = match self.key_source {
            KeySource::KeyFile(id) => id,
            KeySource::Passphrase(_) => {
                return Err(StreamError::OtherKeySource(
                    "under a passphrase, and not with a key file",
                ));
            }
            KeySource::Recipients(_) => return Err(StreamError::OtherKeySource(TO_RECIPIENTS)),
        };
        self.checked(keys.stream_key(self.suite, id, &self.context())?, "key")
    }

    /// The stream's key from a passphrase. [`StreamError::WrongKey`] if it is another one.
    pub fn key_from_passphrase(&self, passphrase: &str) -> Result<StreamKey, StreamError> {
        let cost = match self.key_source {
            KeySource::Passphrase(cost) => cost,
            KeySource::KeyFile(_) => {
                return Err(StreamError::OtherKeySource(
                    "with a key file, and not under a passphrase",
                ));
            }
            KeySource::Recipients(_) => return Err(StreamError::OtherKeySource(TO_RECIPIENTS)),
        };
        let (salt, context) = (self.salt(), self.context());
        let key = stream_key_from_passphrase(self.suite, passphrase, cost, salt, &context)?;
        self.checked(key, "passphrase")
    }

    /// Makes the stream's key, and wraps it to recipients: a header that is complete but for its
    /// commitment.
    pub(crate) fn wrap_key(&mut self, recipients: &[Recipient]) -> Result<StreamKey, StreamError> {
        let file_key = FileKey::generate();
        let mut stanzas = Vec::with_capacity(self.stanzas_len());
        for recipient in recipients {
            let stanza = recipient.wrap(&file_key);
            stanzas.extend(stanza.map_err(|_| StreamError::Library("cryptographic"))?);
        }
        self.stanzas = stanzas.into();
        Ok(StreamKey::from_file_key(
            self.suite,
            &file_key,
            &self.context(),
        ))
    }

    /// The stream's key from identities. [`StreamError::NoIdentity`] if it was sealed to none of
    /// them, [`StreamError::HeaderChanged`] if it was, and something of the header is not as it was
    /// written.
    pub fn key_from_identities<'a>(
        &self,
        identities: impl IntoIterator<Item = &'a Identity>,
    ) -> Result<StreamKey, StreamError> {
        let recipients = match self.key_source {
            KeySource::Recipients(count) => count,
            KeySource::KeyFile(_) => return Err(StreamError::OtherKeySource(WITH_KEYS)),
            KeySource::Passphrase(_) => return Err(StreamError::OtherKeySource(WITH_PASSPHRASE)),
        };
        let suite = self.suite;
        let mut error = StreamError::NoIdentity { recipients, suite };
        for identity in identities {
            // A stanza does not say whose it is: that is for nobody to see.
            for stanza in self.stanzas.chunks_exact(stanza_len(suite)) {
                let Some(file_key) = identity.unwrap(stanza) else {
                    continue;
                };
                let key = StreamKey::from_file_key(suite, &file_key, &self.context());
                if key.is_committed_to(&self.commitment) {
                    return Ok(key);
                }
                error = StreamError::HeaderChanged;
            }
        }
        Err(error)
    }

    fn checked(&self, key: StreamKey, what: &'static str) -> Result<StreamKey, StreamError> {
        match key.is_committed_to(&self.commitment) {
            true => Ok(key),
            false => Err(StreamError::WrongKey(what)),
        }
    }

    /// Number of the subkey that a frame is under.
    pub(crate) fn subkey_of(&self, frame: u64) -> u32 {
        // The format has no room for 2^32 subkeys: see `frame::MAX_FRAMES`.
        (frame >> self.subkey_log2) as u32
    }
}

/// Takes fields off the front of bytes that are long enough.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    /// The next `N` bytes.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    pub(crate) fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().expect("fields of fixed length");
        self.0 = rest;
        *field
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers() -> [Header; 5] {
        let cost = PassphraseCost::DEFAULT;
        [
            (Suite::Aes, 12, KeySource::KeyFile(1)),
            (Suite::Sm, 20, KeySource::KeyFile(0xfedc)),
            (Suite::Sm, 22, KeySource::Passphrase(cost)),
            (Suite::Aes, 20, KeySource::Recipients(2)),
            (Suite::Sm, 20, KeySource::Recipients(1)),
        ]
        .map(|(suite, log2, source)| {
            let size = FrameSize::from_log2(log2).unwrap();
            let mut header = Header::new(suite, size, source, [7; RANDOM_LEN]);
            header.commitment = [9; STREAM_COMMITMENT_LEN];
            header.stanzas = vec![5; header.stanzas_len()].into();
            header
        })
    }

    fn parse(bytes: &[u8]) -> Result<Header, StreamError> {
        let (start, stanzas) = bytes.split_first_chunk().unwrap();
        let mut header = Header::parse(start)?;
        match header.stanzas_len() == stanzas.len() {
            true => header.stanzas = stanzas.into(),
            false => return Err(StreamError::Header("another number of stanzas")),
        }
        Ok(header)
    }

    #[test]
    fn there_and_back() {
        for header in headers() {
            assert_eq!(header.to_bytes().len(), header.len());
            assert_eq!(parse(&header.to_bytes()).unwrap(), header);
        }
    }

    #[test]
    fn a_header_has_one_form() {
        // Whatever parses is written the same way again, so nothing in it is ignored.
        for header in headers() {
            let good = header.to_bytes();
            for bit in 0..8 * header.len() {
                let mut bytes = good.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                if let Ok(parsed) = parse(&bytes) {
                    assert_eq!(parsed.to_bytes(), bytes, "bit {bit}");
                }
            }
        }
    }

    #[test]
    fn subkeys_change_with_the_frames() {
        let [mut header, ..] = headers();
        header.subkey_log2 = 2;
        let numbers: Vec<_> = (0..9).map(|frame| header.subkey_of(frame)).collect();
        assert_eq!(numbers, [0, 0, 0, 0, 1, 1, 1, 1, 2]);
    }
}
