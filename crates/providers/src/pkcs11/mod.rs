//! A token that speaks PKCS#11 and has a key that it gives to nobody.
//!
//! The token's library is code of others. It is loaded by a child process, which is this program
//! again, and asked there: a crash or a library that hangs costs one answer, and the memory of the
//! proxy is out of its reach. The child lives for one question.
//!
//! | file | holds |
//! |---|---|
//! | `question` | what is said between the two |
//! | `token` | the child: the library, the session, the key |

mod question;
mod token;

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    path::PathBuf,
    process::Command,
    sync::{LazyLock, Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use onionskin_crypt::{DATA_KEY_LEN, DataKey, dangerous_bytes};
use onionskin_keys::{KeyContext, KeyError, KeyProvider, WrappedKey};
use zeroize::{Zeroize, Zeroizing};

use crate::{
    Secret,
    fault::Fault,
    owners::check_code,
    shown::behind,
    talk::{NoAnswer, Said, hide_ours, talk},
};
use question::{Answer, Operation, Question};

pub use token::answer_one_question;

/// The provider's name.
const NAME: &str = "pkcs11";
/// Longest answer, in bytes.
const MOST_OUT: usize = 64 << 10;
/// Of standard error, so many bytes are read.
const MOST_ERROR: usize = 4 << 10;

/// Which key of which token, and how it is reached.
#[derive(Clone)]
pub struct Pkcs11Settings {
    /// The library of the token, by its absolute path.
    pub module: PathBuf,
    /// Which token. At least one of the three is said.
    pub token: Option<String>,
    /// Its serial number.
    pub serial: Option<String>,
    /// The number of its slot.
    pub slot: Option<u64>,
    /// The key's label.
    pub key: Option<String>,
    /// The key's id, in hexadecimal. At least one of the two is said.
    pub key_id: Option<String>,
    /// The user's PIN.
    pub pin: Secret,
    /// For each question.
    pub time: Duration,
    /// This program, told to call [`answer_one_question`].
    pub child: fn() -> Command,
}

/// See the module.
pub struct Pkcs11Provider(Pkcs11Settings);

/// PINs that a token has refused, as hashes that only this process can make. A token locks itself
/// after a few wrong ones, and whoever watches for an answer would ask for ever.
static REFUSED: Mutex<Vec<u64>> = Mutex::new(Vec::new());
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl Pkcs11Provider {
    /// Nobody is asked yet, and no file is read.
    pub fn new(settings: Pkcs11Settings) -> Result<Self, String> {
        let Pkcs11Settings {
            module,
            token,
            serial,
            slot,
            key,
            key_id,
            ..
        } = &settings;
        if !module.is_absolute() {
            return Err(format!(
                "module = {module:?} is no absolute path: write for example /usr/lib/softhsm/libsofthsm2.so"
            ));
        }
        if token.is_none() && serial.is_none() && slot.is_none() {
            return Err("it names no token: set token (its label), serial or slot".into());
        }
        if key.is_none() && key_id.is_none() {
            return Err("it names no key: set key (its label) or key_id".into());
        }
        if key_id.as_ref().is_some_and(|id| question::id(id).is_none()) {
            return Err("key_id is not hexadecimal: write for example \"01a7\"".into());
        }
        Ok(Pkcs11Provider(settings))
    }

    fn ask(&self, operation: Operation, context: &str, value: &[u8]) -> Result<Vec<u8>, Fault> {
        let settings = &self.0;
        let module = settings.module.display();
        check_code(&settings.module)?;
        let pin = (settings.pin)().map_err(Fault::lasting)?;
        let attempt = self.attempt(&pin);
        if refused().contains(&attempt) {
            return Err(Fault::lasting(
                "the token has refused this PIN before, and the program does not try it again, since tokens lock themselves: give another PIN, or start the program anew",
            ));
        }
        let value = Zeroizing::new(STANDARD.encode(value));
        let question = Question {
            module: &settings.module.to_string_lossy(),
            token: settings.token.as_deref(),
            serial: settings.serial.as_deref(),
            slot: settings.slot,
            key: settings.key.as_deref(),
            key_id: settings.key_id.as_deref(),
            pin: &pin,
            operation,
            context,
            value: &value,
        };
        // Sized beforehand: by growing, a buffer leaves copies of the key behind.
        let mut input = Zeroizing::new(Vec::with_capacity(MOST_OUT));
        serde_json::to_writer(&mut *input, &question)
            .map_err(|_| Fault::lasting("the question cannot be written as JSON"))?;
        let mut command = (settings.child)();
        hide_ours(&mut command);
        let said = talk(command, &input, settings.time, (MOST_OUT, MOST_ERROR));
        let said = said.map_err(|no_answer| match no_answer {
            NoAnswer::NotStarted(error) => {
                Fault::lasting(format!("a child process cannot be started: {error}"))
            }
            NoAnswer::System(error) => Fault::passing(format!("the child process: {error}")),
            NoAnswer::TooSlow(text) => Fault::passing(format!(
                "{module} did not answer within {} seconds, and its process was killed{}",
                settings.time.as_secs_f64(),
                behind(&text)
            )),
            NoAnswer::TooLong => Fault::lasting(format!(
                "the process of {module} said more than {MOST_OUT} bytes, and was killed"
            )),
        })?;
        match self.read(&said)? {
            Answer::Done(value) => {
                let bytes = STANDARD.decode(value.text());
                bytes.map_err(|_| Fault::lasting("the child process answered with no base64"))
            }
            Answer::Fault {
                why,
                may_pass,
                pin_refused,
            } => {
                if pin_refused {
                    refused().push(attempt);
                }
                Err(Fault { why, may_pass })
            }
        }
    }

    /// The last line that is an answer. It counts however the process has ended: libraries print,
    /// and crash while they are unloaded.
    fn read(&self, said: &Said) -> Result<Answer, Fault> {
        let lines = said.out.rsplit(|byte| *byte == b'\n');
        let found = lines
            .filter_map(|line| serde_json::from_slice(line).ok())
            .next();
        found.ok_or_else(|| {
            Fault::passing(format!(
                "the process of {} ended without an answer ({}){}",
                self.0.module.display(),
                said.status,
                behind(&said.error)
            ))
        })
    }

    /// One PIN at one token.
    fn attempt(&self, pin: &str) -> u64 {
        let Pkcs11Settings {
            module,
            token,
            serial,
            slot,
            ..
        } = &self.0;
        HASHER.hash_one((module, token, serial, slot, pin))
    }

    fn unwrapped(&self, wrapped: &[u8], context: &str) -> Result<DataKey, Fault> {
        let bytes = Zeroizing::new(self.ask(Operation::Unwrap, context, wrapped)?);
        let mut key = <[u8; DATA_KEY_LEN]>::try_from(&bytes[..]).map_err(|_| {
            Fault::lasting(format!(
                "what the token has unwrapped is no key of {DATA_KEY_LEN} bytes"
            ))
        })?;
        let made = dangerous_bytes::data_key_from_bytes(key);
        key.zeroize();
        Ok(made)
    }
}

impl KeyProvider for Pkcs11Provider {
    fn wrap(&self, plain: &DataKey, context: KeyContext) -> Result<WrappedKey, KeyError> {
        let key = dangerous_bytes::bytes_of_data_key(plain);
        let wrapped = self.ask(Operation::Wrap, &context.words(), key);
        wrapped.map(WrappedKey).map_err(|fault| fault.of(NAME))
    }

    fn unwrap(&self, wrapped: &WrappedKey, context: KeyContext) -> Result<DataKey, KeyError> {
        let key = self.unwrapped(&wrapped.0, &context.words());
        key.map_err(|fault| fault.of(NAME))
    }

    fn name(&self) -> &str {
        NAME
    }
}

fn refused() -> std::sync::MutexGuard<'static, Vec<u64>> {
    REFUSED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
