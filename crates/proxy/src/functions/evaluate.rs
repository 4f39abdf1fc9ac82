//! What calls give, by the values of a statement.

use std::cell::Cell;

use ahash::AHashMap;
use base64::Engine;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use onionskin_functions::{self as computed, Argument, Cipher, mariadb, mysql};
use onionskin_plan::errors;
use onionskin_plan::functions::{Call, Function, OpenCall, Term};
use onionskin_value::{Family, Input, Kind, SqlType};
use rand::Rng;
use zeroize::Zeroizing;

use crate::bind::Values;
use crate::config::FunctionsConfig;
use crate::error::{Failure, Outcome};
use crate::hex::unhex;
use crate::state::State;

/// Bytes that the calls of a statement may make.
const MOST_MADE: usize = 64 << 20;

/// What one iteration of PBKDF2 costs, in bytes that are made meanwhile.
const ITERATION: usize = 16;

/// Bytes of a value, as the server's function sees them; `None`: NULL.
pub(crate) type Bytes = Option<Vec<u8>>;

/// Computes calls of one statement.
pub(crate) struct Evaluator<'a> {
    pub state: &'a State,
    pub config: &'a FunctionsConfig,
    pub secrets: &'a AHashMap<String, Option<Zeroizing<Vec<u8>>>>,
    pub values: Values<'a>,
    /// Variables of the server's.
    pub asked: &'a [(Vec<u8>, Bytes)],
    /// What the statement's calls have cost, in bytes that they have made.
    pub made: Cell<usize>,
}

/// What opens cells: a function and its arguments behind the cell.
#[derive(Clone)]
pub(crate) struct CellKey {
    function: Function,
    family: Family,
    cipher: Option<Cipher>,
    rest: Vec<Option<Zeroizing<Vec<u8>>>>,
    vector_in_cell: bool,
    /// It stands for AES_DECRYPT in a condition, which errors are about.
    compares: bool,
}

impl Evaluator<'_> {
    /// The value of a constant.
    pub fn term(&self, term: &Term) -> Outcome<Bytes> {
        match term {
            Term::Null => Ok(None),
            Term::Bool(truth) => Ok(Some(vec![if *truth { b'1' } else { b'0' }])),
            Term::Value { index, negative } => self.value(*index, *negative),
            Term::Secret(name) => Ok(match self.secrets.get(name) {
                Some(Some(value)) => Some(value.to_vec()),
                // as of a variable that was never set
                Some(None) | None => None,
            }),
            Term::Variable(name) => {
                let found = self.asked.iter().find(|(asked, _)| asked == name);
                let found = found.ok_or_else(|| refused("a variable of the server's"))?;
                Ok(found.1.clone())
            }
            Term::Call(call) => self.call(call),
        }
    }

    /// A literal or a parameter, as the text that functions take it for.
    fn value(&self, index: usize, negative: bool) -> Outcome<Bytes> {
        let mut scratch = Vec::new();
        let about = "an argument";
        let input = self
            .values
            .input(index, negative, self.state, &mut scratch, about)?;
        if let Input::Text { bytes, charset } = input {
            // their bytes are taken as they are; which those of a parameter are is not clear
            let is_bound = self.values.is_parameter(index);
            let same = Some(charset) == self.state.connection_charset || bytes.is_ascii();
            return match same || !is_bound {
                true => Ok(Some(bytes.to_vec())),
                false => Err(refused("a text in another character set")),
            };
        }
        // numbers are written as a binary column would hold them
        let ty = SqlType::plain(Kind::LongBlob);
        let context = self.state.context("", "", "");
        let (mut bytes, mut warnings) = (Vec::new(), Vec::new());
        match onionskin_value::store(&ty, input, &context, &mut bytes, &mut warnings) {
            Ok(onionskin_value::Stored::Null) => Ok(None),
            Ok(_) if warnings.is_empty() => Ok(Some(bytes)),
            _ => Err(refused("an argument of this type")),
        }
    }

    /// What a call gives.
    pub fn call(&self, call: &Call) -> Outcome<Bytes> {
        let arguments = call.arguments.iter().map(|term| self.term(term));
        let arguments = arguments.collect::<Outcome<Vec<Bytes>>>()?;
        let first = arguments.first().and_then(Option::as_deref);
        match call.function {
            Function::AesEncrypt | Function::AesDecrypt => self.aes(call, &arguments),
            Function::Password if first.is_none() => Ok(Some(Vec::new())),
            Function::Concat => {
                let parts = arguments.into_iter().collect::<Option<Vec<_>>>();
                let Some(parts) = parts else { return Ok(None) };
                self.charge(parts.iter().map(Vec::len).sum())?;
                Ok(Some(parts.concat()))
            }
            function => {
                let Some(first) = first else { return Ok(None) };
                self.of_text(function, first, &arguments, call)
            }
        }
    }

    /// The other functions, of a text that is not NULL.
    fn of_text(
        &self,
        function: Function,
        text: &[u8],
        arguments: &[Bytes],
        call: &Call,
    ) -> Outcome<Bytes> {
        let second = arguments.get(1).and_then(Option::as_deref);
        Ok(match function {
            Function::DesEncrypt | Function::DesDecrypt
                if !self.has_key(call.arguments.get(1))? =>
            {
                return Err(refused("a key of the server's key file"));
            }
            Function::DesEncrypt => second.map(|key| computed::des_encrypt(text, key)),
            Function::DesDecrypt => second.and_then(|key| computed::des_decrypt(text, key)),
            Function::Encode => second.map(|key| computed::encode(text, key)),
            Function::Decode => second.map(|key| computed::decode(text, key)),
            Function::Md5 => Some(computed::md5(text).into_bytes()),
            Function::Sha1 => Some(computed::sha1(text).into_bytes()),
            Function::Sha2 => match second {
                // as 0
                None if self.is_mariadb() => computed::sha2(text, 0).map(String::into_bytes),
                None => None,
                Some(bits) => {
                    let bits = number(bits)?;
                    computed::sha2(text, bits).map(String::into_bytes)
                }
            },
            Function::Password if self.state.old_passwords => {
                Some(computed::old_password(text).into_bytes())
            }
            Function::Password => Some(computed::password(text).into_bytes()),
            Function::OldPassword => Some(computed::old_password(text).into_bytes()),
            Function::RandomBytes => {
                let count = usize::try_from(number(text)?).ok();
                let count = count.filter(|count| (1..=1024).contains(count));
                let count = count.ok_or_else(|| refused("the number of RANDOM_BYTES"))?;
                let mut bytes = vec![0; count];
                rand::rng().fill_bytes(&mut bytes);
                Some(bytes)
            }
            Function::Hex => {
                self.must_be_text(call)?;
                self.charge(text.len().saturating_mul(2))?;
                Some(hex(text))
            }
            Function::Unhex => match text.len() % 2 {
                0 => unhex(text),
                // as if a zero stood before it
                _ => unhex(&[b"0", text].concat()),
            },
            Function::Repeat => match second {
                None => None,
                Some(count) => {
                    let count = usize::try_from(number(count)?).unwrap_or(0);
                    self.charge(text.len().saturating_mul(count))?;
                    Some(text.repeat(count))
                }
            },
            Function::ToBase64 => {
                self.charge(text.len().saturating_mul(2))?;
                Some(to_base64(text))
            }
            Function::FromBase64 => from_base64(text),
            Function::Key => Some(self.named_key(text)?),
            Function::AesEncrypt
            | Function::AesDecrypt
            | Function::Concat
            | Function::Crypt
            | Function::Kdf => return Err(refused(function.name())),
        })
    }

    /// Counts what a call makes, before it makes it.
    fn charge(&self, bytes: usize) -> Outcome<()> {
        let made = self.made.get().saturating_add(bytes);
        self.made.set(made);
        match made <= MOST_MADE {
            true => Ok(()),
            false => Err(Failure::refused(&errors::MEMORY, "cryptographic functions")),
        }
    }

    /// Refuses a number for a variable that is kept: it would be a text afterwards.
    pub fn must_not_be_number(&self, term: &Term) -> Outcome<()> {
        match self.is_number(term)? {
            true => Err(refused("a number as the value of a variable that is kept")),
            false => Ok(()),
        }
    }

    /// `HEX` of a number is another function.
    fn must_be_text(&self, call: &Call) -> Outcome<()> {
        match call.arguments.first() {
            Some(term) if self.is_number(term)? => Err(refused("HEX of a number")),
            _ => Ok(()),
        }
    }

    /// Whether a call of DES functions has a key. A number is that of a key in the server's file.
    fn has_key(&self, argument: Option<&Term>) -> Outcome<bool> {
        match argument {
            None => Ok(false),
            Some(term) => self.is_number(term).map(|number| !number),
        }
    }

    fn is_number(&self, term: &Term) -> Outcome<bool> {
        let Term::Value { index, negative } = term else {
            return Ok(matches!(term, Term::Bool(_)));
        };
        let mut scratch = Vec::new();
        let input =
            self.values
                .input(*index, *negative, self.state, &mut scratch, "an argument")?;
        Ok(!matches!(
            input,
            Input::Text { .. } | Input::Bytes(_) | Input::Hex(_) | Input::Null
        ))
    }

    fn named_key(&self, name: &[u8]) -> Outcome<Vec<u8>> {
        let key = std::str::from_utf8(name)
            .ok()
            .and_then(|name| self.config.keys.get(name));
        let key =
            key.ok_or_else(|| refused("KEY of a name that [functions.keys] does not have"))?;
        Ok(key.to_vec())
    }

    fn aes(&self, call: &Call, arguments: &[Bytes]) -> Outcome<Bytes> {
        if call.compares && self.is_number(&call.arguments[0])? {
            return Err(refused(
                "a condition that compares AES_DECRYPT with a number",
            ));
        }
        let mut key = self.aes_key(call.function, &call.name, &arguments[1..], false)?;
        key.compares = call.compares;
        let text = arguments[0].as_ref().map_or(0, Vec::len);
        self.charge(text.saturating_add(key.cost()))?;
        key.apply(arguments[0].as_deref())
    }

    /// What opens cells by a call.
    pub fn key(&self, call: &OpenCall) -> Outcome<CellKey> {
        let mut rest = Vec::new();
        for term in &call.rest {
            rest.push(self.term(term)?);
        }
        if call.function == Function::AesDecrypt {
            return self.aes_key(call.function, &call.name, &rest, call.vector_in_cell);
        }
        if !self.has_key(call.rest.first())? {
            return Err(refused("a key of the server's key file"));
        }
        Ok(self.cell_key(call.function, &rest, None, false))
    }

    fn aes_key(
        &self,
        function: Function,
        name: &str,
        rest: &[Bytes],
        vector_in_cell: bool,
    ) -> Outcome<CellKey> {
        let session = self.state.block_cipher;
        // before 11.2, MariaDB has one mode
        if session.is_none() && rest.len() > 1 || self.is_mariadb() && rest.len() > 3 {
            return Err(wrong_count(name));
        }
        let cipher = match rest.get(2) {
            Some(mode) if self.is_mariadb() => mode.as_deref().and_then(mariadb::mode_argument),
            _ => Some(session.unwrap_or_default()),
        };
        Ok(self.cell_key(function, rest, cipher, vector_in_cell))
    }

    fn cell_key(
        &self,
        function: Function,
        rest: &[Bytes],
        cipher: Option<Cipher>,
        vector_in_cell: bool,
    ) -> CellKey {
        CellKey {
            function,
            family: self.state.family,
            cipher,
            rest: rest.iter().map(|r| r.clone().map(Zeroizing::new)).collect(),
            vector_in_cell,
            compares: false,
        }
    }

    fn is_mariadb(&self) -> bool {
        self.state.family == Family::MariaDb
    }
}

impl CellKey {
    /// What the key's derivation costs, in bytes that are made meanwhile.
    fn cost(&self) -> usize {
        let is_slow = matches!(self.rest.get(2), Some(Some(name)) if name.starts_with(b"pbkdf2"));
        let given = self.rest.get(4).and_then(Option::as_deref);
        let iterations = given.and_then(|n| std::str::from_utf8(n).ok()?.trim().parse().ok());
        match is_slow {
            true => ITERATION.saturating_mul(iterations.unwrap_or(usize::from(u16::MAX))),
            false => 0,
        }
    }

    /// What the function gives for this text.
    pub fn apply(&self, text: Option<&[u8]>) -> Outcome<Bytes> {
        let (text, in_cell) = match (text, self.vector_in_cell) {
            (Some(text), true) => {
                let (vector, text) = split_vector(text)?;
                (Some(text), Some(Argument::from(vector)))
            }
            (text, _) => (text, None),
        };
        let argument = |n: usize| match self.rest.get(n) {
            None => Argument::Absent,
            Some(None) => Argument::Null,
            Some(Some(bytes)) => Argument::Bytes(bytes),
        };
        let key = self
            .rest
            .first()
            .and_then(Option::as_deref)
            .map(|key| key.as_slice());
        match self.function {
            Function::DesDecrypt => {
                Ok(both(text, key).and_then(|(t, k)| computed::des_decrypt(t, k)))
            }
            Function::Decode => Ok(both(text, key).map(|(t, k)| computed::decode(t, k))),
            Function::AesEncrypt | Function::AesDecrypt => {
                let vector = in_cell.unwrap_or_else(|| argument(1));
                let kdf = mysql::KdfArguments {
                    name: argument(2),
                    salt: argument(3),
                    option: argument(4),
                };
                self.aes(text, key, vector, kdf)
            }
            _ => Err(Failure::refused(&errors::INTERNAL, self.function.name())),
        }
    }

    fn aes(
        &self,
        text: Option<&[u8]>,
        key: Option<&[u8]>,
        vector: Argument,
        kdf: mysql::KdfArguments,
    ) -> Outcome<Bytes> {
        let encrypts = self.function == Function::AesEncrypt;
        let Some(cipher) = self.cipher else {
            // the name of no mode
            return Ok(None);
        };
        if self.family == Family::MariaDb {
            let vector = match vector {
                Argument::Bytes(bytes) => Some(bytes),
                _ => None,
            };
            return Ok(both(text, key).and_then(|(text, key)| match encrypts {
                true => mariadb::aes_encrypt(cipher, text, key, vector),
                false => mariadb::aes_decrypt(cipher, text, key, vector),
            }));
        }
        let function = match encrypts && !self.compares {
            true => computed::AesFunction::Encrypt,
            false => computed::AesFunction::Decrypt,
        };
        let done = mysql::check_parameter_count(function, cipher, vector).and_then(|()| {
            let Some((text, key)) = both(text, key) else {
                return Ok(None);
            };
            match encrypts {
                true => mysql::aes_encrypt(cipher, text, key, vector, kdf).map(Some),
                false => mysql::aes_decrypt(cipher, text, key, vector, kdf),
            }
        });
        done.map_err(|error| {
            let mut state = [b'0'; 5];
            state.copy_from_slice(error.sqlstate().as_bytes());
            Failure::Server {
                code: error.number(),
                state,
                message: error.to_string().into_bytes(),
            }
        })
    }
}

/// The servers' error for a call with too few or too many arguments.
pub(crate) fn wrong_count(name: &str) -> Failure {
    let message = format!("Incorrect parameter count in the call to native function '{name}'");
    Failure::Server {
        code: 1582,
        state: *b"42000",
        message: message.into_bytes(),
    }
}

fn both<'t>(text: Option<&'t [u8]>, key: Option<&'t [u8]>) -> Option<(&'t [u8], &'t [u8])> {
    Some((text?, key?))
}

/// The initialization vector that a cell begins with, and the rest. The length of NULL is 255.
fn split_vector(cell: &[u8]) -> Outcome<(Option<&[u8]>, &[u8])> {
    const NULL: u8 = 255;
    let split = match cell.split_first() {
        Some((&NULL, rest)) => Some((None, rest)),
        Some((&length, rest)) => rest
            .split_at_checked(length.into())
            .map(|(vector, rest)| (Some(vector), rest)),
        None => None,
    };
    split.ok_or_else(|| refused("a cell with its initialization vector"))
}

fn number(text: &[u8]) -> Outcome<i64> {
    let number = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    number.ok_or_else(|| refused("an argument that is no integer"))
}

fn hex(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |nibble: u8| DIGITS[usize::from(nibble)];
    let digits = bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]);
    digits.collect()
}

/// With a line break behind each 76 letters, as the servers write it.
fn to_base64(bytes: &[u8]) -> Vec<u8> {
    let letters = base64::engine::general_purpose::STANDARD.encode(bytes);
    let lines: Vec<&[u8]> = letters.as_bytes().chunks(76).collect();
    lines.join(b"\n".as_slice())
}

/// Blanks and line breaks do not count. `None`: it is not Base64.
fn from_base64(text: &[u8]) -> Bytes {
    // servers do not look at bits that are left over
    let config = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    let engine = GeneralPurpose::new(&base64::alphabet::STANDARD, config);
    let letters: Vec<u8> = text
        .iter()
        .copied()
        .filter(|b| !b.is_ascii_whitespace())
        .collect();
    engine.decode(letters).ok()
}

fn refused(about: &str) -> Failure {
    Failure::refused(&errors::FUNCTION, about)
}
