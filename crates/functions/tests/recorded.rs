//! What real servers answered, recorded in `fixtures/*.txt`, has to be what this crate computes.
//!
//! The head of each file says how its lines read and with which SQL they were made.

use std::fmt;

use onionskin_functions::{
    AesFunction, Argument, Cipher, DesFunction, FunctionError, Server, Warning, decode,
    des_decrypt, des_encrypt, encode, mariadb, md5, mysql, old_password, password, sha1, sha2,
};

/// An argument or a result, as the files write it.
#[derive(Clone, PartialEq, Eq)]
enum Value {
    Null,
    Integer(i128),
    Bytes(Vec<u8>),
}

impl Value {
    fn parse(word: &str) -> Self {
        if word == "NULL" {
            Value::Null
        } else if let Some(number) = word.strip_prefix('#') {
            Value::Integer(number.parse().expect("an integer"))
        } else {
            let digits = word.strip_prefix('x').expect("x, # or NULL");
            let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
            Value::Bytes((0..digits.len()).step_by(2).map(byte).collect())
        }
    }

    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Null => None,
            Value::Bytes(bytes) => Some(bytes),
            Value::Integer(_) => panic!("a string is expected"),
        }
    }

    fn integer(&self) -> Option<i128> {
        match self {
            Value::Null => None,
            Value::Integer(number) => Some(*number),
            Value::Bytes(_) => panic!("an integer is expected"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("NULL"),
            Value::Integer(number) => write!(f, "#{number}"),
            Value::Bytes(bytes) => {
                f.write_str("x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

/// What stands behind the equals sign.
fn answer(result: Option<Vec<u8>>, warnings: &[Warning]) -> String {
    let value = result.map_or(Value::Null, Value::Bytes);
    warnings.iter().fold(value.to_string(), |line, warning| {
        format!("{line} | {} {warning}", warning.number())
    })
}

fn error(error: FunctionError) -> String {
    format!("error {} {} {error}", error.number(), error.sqlstate())
}

/// Computes every line's call with `compute`, which gets the words before the equals sign.
fn replay(file: &str, compute: impl Fn(&[&str]) -> String) {
    let mut wrong = Vec::new();
    let mut lines = 0;
    for (number, line) in file.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (call, recorded) = line.split_once(" = ").expect("a call and its answer");
        let words: Vec<&str> = call.split(' ').collect();
        let computed = compute(&words);
        lines += 1;
        if computed != recorded {
            wrong.push(format!(
                "line {}: {line}\n  computed: {computed}",
                number + 1
            ));
        }
    }
    assert!(lines > 200, "the file is not whole");
    assert!(
        wrong.is_empty(),
        "{} of {lines} lines differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn argument(values: &[Value], at: usize) -> Argument<'_> {
    values
        .get(at)
        .map_or(Argument::Absent, |value| Argument::from(value.bytes()))
}

fn mysql_aes(words: &[&str]) -> String {
    let cipher = Cipher::named(Server::MySql, words[0].as_bytes()).expect("a mode of MySQL's");
    let values: Vec<Value> = words[2..].iter().map(|word| Value::parse(word)).collect();
    let text = values[0].bytes().expect("texts are not NULL here");
    let key = values[1].bytes().expect("keys are not NULL here");
    let iv = argument(&values, 2);
    let kdf = mysql::KdfArguments {
        name: argument(&values, 3),
        salt: argument(&values, 4),
        option: argument(&values, 5),
    };
    let (function, result) = match words[1] {
        "aes_encrypt" => (
            AesFunction::Encrypt,
            mysql::aes_encrypt(cipher, text, key, iv, kdf).map(Some),
        ),
        "aes_decrypt" => (
            AesFunction::Decrypt,
            mysql::aes_decrypt(cipher, text, key, iv, kdf),
        ),
        other => panic!("{other} is no function of this file"),
    };
    match result {
        Ok(result) => answer(result, &mysql::warnings(function, cipher, key, iv, kdf)),
        Err(refusal) => error(refusal),
    }
}

/// A mode of MariaDB's: the argument, or the default of the setting.
fn mariadb_cipher(argument: Option<&Value>) -> Option<Cipher> {
    match argument {
        Some(name) => mariadb::mode_argument(name.bytes()?),
        None => Some(Cipher::default()),
    }
}

fn mariadb_kdf(values: &[Value]) -> Result<Option<Vec<u8>>, Warning> {
    let (Some(key), Some(salt)) = (values[0].bytes(), values[1].bytes()) else {
        return Ok(None);
    };
    let name = match values.get(3).map(Value::bytes) {
        Some(None) => return Ok(None),
        Some(Some(name)) => mariadb::KdfName::from_argument(name)?,
        None => mariadb::KdfName::default(),
    };
    let width = match values.get(4).map(Value::integer) {
        Some(None) => return Ok(None),
        Some(Some(bits)) => mariadb::Width::Bits(bits),
        None => mariadb::Width::Of(Cipher::default().bits),
    };
    let kdf = match name {
        mariadb::KdfName::Hkdf => mariadb::Kdf::Hkdf {
            info: values.get(2).and_then(Value::bytes).unwrap_or_default(),
        },
        mariadb::KdfName::Pbkdf2Hmac => match values.get(2).map(Value::integer) {
            Some(None) => {
                width.bytes()?;
                return Ok(None);
            }
            Some(Some(iterations)) => mariadb::Kdf::Pbkdf2Hmac { iterations },
            None => mariadb::Kdf::Pbkdf2Hmac {
                iterations: mariadb::DEFAULT_ITERATIONS,
            },
        },
    };
    mariadb::kdf(key, salt, kdf, width)
}

fn mariadb_function(words: &[&str]) -> String {
    let values: Vec<Value> = words[1..].iter().map(|word| Value::parse(word)).collect();
    if words[0] == "kdf" {
        return match mariadb_kdf(&values) {
            Ok(result) => answer(result, &[]),
            Err(warning) => answer(None, &[warning]),
        };
    }
    let text = values[0].bytes().expect("texts are not NULL here");
    if words[0] == "sha2" {
        let bits = values[1].integer().expect("no NULL here");
        let bits = i64::try_from(bits).expect("within 64 bits");
        let digest = sha2(text, bits);
        // When it warns, MariaDB looks at the lowest 32 bits of a constant, for the result at all.
        let warned = sha2(text, i64::from(bits as i32)).is_none();
        let warnings = warned.then_some(Warning::Sha2Parameters);
        return answer(digest.map(String::into_bytes), warnings.as_slice());
    }
    let key = || values[1].bytes().expect("keys are not NULL here");
    let iv = values.get(2).and_then(Value::bytes);
    let cipher = mariadb_cipher(values.get(3));
    let result = match words[0] {
        "aes_encrypt" => cipher.and_then(|cipher| mariadb::aes_encrypt(cipher, text, key(), iv)),
        "aes_decrypt" => cipher.and_then(|cipher| mariadb::aes_decrypt(cipher, text, key(), iv)),
        "des_encrypt" => Some(des_encrypt(text, key())),
        "des_decrypt" => des_decrypt(text, key()),
        "encode" => Some(encode(text, key())),
        "decode" => Some(decode(text, key())),
        "md5" => Some(md5(text).into_bytes()),
        "sha1" => Some(sha1(text).into_bytes()),
        "password" => Some(password(text).into_bytes()),
        "old_password" => Some(old_password(text).into_bytes()),
        other => panic!("{other} is no function of this file"),
    };
    answer(result, &[])
}

#[test]
fn mysql_aes_in_every_mode() {
    replay(include_str!("fixtures/mysql_aes.txt"), mysql_aes);
}

#[test]
fn mysql_aes_with_derived_keys() {
    replay(include_str!("fixtures/mysql_kdf.txt"), mysql_aes);
}

#[test]
fn mariadb_10_11() {
    replay(include_str!("fixtures/mariadb_10_11.txt"), mariadb_function);
}

#[test]
fn mariadb_11_8() {
    replay(include_str!("fixtures/mariadb_11_8.txt"), mariadb_function);
}

/// Texts that no recorded line has, because they name what this crate does not compute.
#[test]
fn the_other_texts_are_the_servers() {
    for (warning, number, text) in [
        (
            Warning::DesParameters(DesFunction::Encrypt),
            1108,
            "Incorrect parameters to procedure 'des_encrypt'",
        ),
        (
            Warning::Deprecated(DesFunction::Decrypt),
            1287,
            "'des_decrypt' is deprecated and will be removed in a future release",
        ),
    ] {
        assert_eq!(warning.number(), number);
        assert_eq!(warning.to_string(), text);
    }
    assert_eq!(AesFunction::Encrypt.to_string(), "aes_encrypt");
}
