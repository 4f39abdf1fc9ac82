//! A program of the operator's own that wraps the root key: for every key store that has a
//! command-line tool.
//!
//! It gets one JSON object on standard input, which ends there, and answers with one on standard
//! output. Binary fields are base64 (standard alphabet, padded).
//!
//! ```json
//! {"onionskin":1,"operation":"wrap","context":"onionskin/1 root key","key":"…"}
//! {"wrapped":"…"}
//!
//! {"onionskin":1,"operation":"unwrap","context":"onionskin/1 root key","wrapped":"…"}
//! {"key":"…"}
//! ```
//!
//! Exit code 0: the answer counts. 2: it cannot be done, and trying again does not help. Any other:
//! not now. What it says on standard error is then a part of the error.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use onionskin_crypt::{DATA_KEY_LEN, DataKey, dangerous_bytes};
use onionskin_keys::{KeyContext, KeyError, KeyProvider, WrappedKey};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

use crate::{
    fault::Fault,
    owners::check_code,
    secret_text::SecretText,
    shown::behind,
    talk::{NoAnswer, Said, hide_ours, talk},
};

/// The provider's name.
const NAME: &str = "exec";
/// The version of the protocol.
const PROTOCOL: u32 = 1;
/// Longest answer, in bytes.
const MOST_OUT: usize = 64 << 10;
/// Of standard error, so many bytes are read.
const MOST_ERROR: usize = 4 << 10;
/// The exit code that says that trying again does not help.
const REFUSED: i32 = 2;

/// See the module.
#[derive(Debug, Clone)]
pub struct ExecProvider {
    program: PathBuf,
    arguments: Vec<String>,
    time: Duration,
}

#[derive(Serialize)]
struct Request<'a> {
    onionskin: u32,
    operation: &'a str,
    context: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wrapped: Option<&'a str>,
}

/// Other fields are allowed: a tool may say more.
#[derive(Deserialize)]
struct Answer {
    key: Option<SecretText>,
    wrapped: Option<SecretText>,
}

impl ExecProvider {
    /// Runs this program with these arguments, without a shell. It may take this time for each
    /// question.
    pub fn new(command: &[String], time: Duration) -> Result<Self, String> {
        let Some((program, arguments)) = command.split_first() else {
            return Err("command names no program".into());
        };
        if !Path::new(program).is_absolute() {
            return Err(format!(
                "command begins with {program:?}, which is no absolute path: PATH is not searched"
            ));
        }
        Ok(Self {
            program: program.into(),
            arguments: arguments.to_vec(),
            time,
        })
    }

    fn ask(&self, request: &Request<'_>) -> Result<Answer, Fault> {
        let program = self.program.display();
        check_code(&self.program)?;
        // Sized beforehand: by growing, a buffer leaves copies of the key behind.
        let room = 512 + request.key.or(request.wrapped).map_or(0, str::len);
        let mut input = Zeroizing::new(Vec::with_capacity(room));
        serde_json::to_writer(&mut *input, request)
            .map_err(|_| Fault::lasting("the question cannot be written as JSON"))?;
        input.push(b'\n');
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        hide_ours(&mut command);
        let said = talk(command, &input, self.time, (MOST_OUT, MOST_ERROR));
        let said = said.map_err(|no_answer| match no_answer {
            NoAnswer::NotStarted(error) => {
                Fault::lasting(format!("{program} cannot be started: {error}"))
            }
            NoAnswer::System(error) => Fault::passing(format!("{program}: {error}")),
            NoAnswer::TooSlow(text) => Fault::passing(format!(
                "{program} did not end within {} seconds and was killed{}",
                self.time.as_secs_f64(),
                behind(&text)
            )),
            NoAnswer::TooLong => Fault::lasting(format!(
                "{program} answered with more than {MOST_OUT} bytes, and was killed"
            )),
        })?;
        self.read(&said, request.operation)
    }

    fn read(&self, said: &Said, operation: &str) -> Result<Answer, Fault> {
        let program = self.program.display();
        if !said.status.success() {
            let text = format!(
                "{program} could not {operation} the root key ({}){}",
                said.status,
                behind(&said.error)
            );
            return Err(match said.status.code() {
                Some(REFUSED) => Fault::lasting(text),
                _ => Fault::passing(text),
            });
        }
        // Serde's own text may quote the content.
        serde_json::from_slice(&said.out).map_err(|error| {
            Fault::lasting(format!(
                "the answer of {program} is not the expected JSON at line {}, column {}{}",
                error.line(),
                error.column(),
                behind(&said.error)
            ))
        })
    }

    fn field(&self, name: &str, text: Option<&str>) -> Result<Zeroizing<Vec<u8>>, Fault> {
        let program = self.program.display();
        let text = text.ok_or_else(|| {
            Fault::lasting(format!("the answer of {program} has no field \"{name}\""))
        })?;
        let bytes = STANDARD.decode(text).map_err(|_| {
            Fault::lasting(format!(
                "the field \"{name}\" in the answer of {program} is not base64"
            ))
        })?;
        Ok(Zeroizing::new(bytes))
    }

    fn wrapped(&self, plain: &DataKey, context: &str) -> Result<Vec<u8>, Fault> {
        let key = dangerous_bytes::bytes_of_data_key(plain);
        let key = Zeroizing::new(STANDARD.encode(key));
        let answer = self.ask(&Request {
            onionskin: PROTOCOL,
            operation: "wrap",
            context,
            key: Some(&key),
            wrapped: None,
        })?;
        let wrapped = answer.wrapped.as_ref().map(SecretText::text);
        Ok(std::mem::take(&mut *self.field("wrapped", wrapped)?))
    }

    fn unwrapped(&self, wrapped: &[u8], context: &str) -> Result<DataKey, Fault> {
        let wrapped = STANDARD.encode(wrapped);
        let answer = self.ask(&Request {
            onionskin: PROTOCOL,
            operation: "unwrap",
            context,
            key: None,
            wrapped: Some(&wrapped),
        })?;
        let key = answer.key.as_ref().map(SecretText::text);
        let bytes = self.field("key", key)?;
        let mut key = <[u8; DATA_KEY_LEN]>::try_from(&bytes[..]).map_err(|_| {
            let program = self.program.display();
            Fault::lasting(format!(
                "the key in the answer of {program} does not have {DATA_KEY_LEN} bytes"
            ))
        })?;
        let made = dangerous_bytes::data_key_from_bytes(key);
        key.zeroize();
        Ok(made)
    }
}

impl KeyProvider for ExecProvider {
    fn wrap(&self, plain: &DataKey, context: KeyContext) -> Result<WrappedKey, KeyError> {
        let wrapped = self.wrapped(plain, &context.words());
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

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, time::Instant};

    use tempfile::TempDir;

    use super::*;

    /// Wraps by XOR with a byte: enough to see which key comes back.
    const SOUND: &str = r#"#!/usr/bin/env python3
import base64, json, os, sys
request = json.load(sys.stdin)
assert request["onionskin"] == 1 and request["context"] == "onionskin/1 root key"
assert not [name for name in os.environ if name.startswith("ONIONSKIN_")]
flip = lambda text: base64.b64encode(bytes(b ^ 0x5a for b in base64.b64decode(text))).decode()
if request["operation"] == "wrap":
    print(json.dumps({"wrapped": flip(request["key"]), "note": "more"}))
else:
    print(json.dumps({"key": flip(request["wrapped"])}))
"#;

    /// A folder with a program in it, and a provider that has `by` run it. (Where other threads
    /// start programs, a file that was just written may be busy for a moment.)
    fn provider(by: &[&str], script: &str, seconds: f64) -> (TempDir, ExecProvider) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wrap");
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        let mut command: Vec<String> = by.iter().map(|&word| word.to_owned()).collect();
        command.push(path.to_str().unwrap().to_owned());
        let time = Duration::from_secs_f64(seconds);
        let provider = ExecProvider::new(&command, time).unwrap();
        (folder, provider)
    }

    fn sh(script: &str, seconds: f64) -> (TempDir, ExecProvider) {
        provider(&["/bin/sh"], script, seconds)
    }

    fn unwrap(provider: &ExecProvider) -> Result<DataKey, KeyError> {
        provider.unwrap(&WrappedKey(vec![1; 60]), KeyContext::ROOT)
    }

    fn fault(provider: &ExecProvider) -> (String, bool) {
        let error = match unwrap(provider) {
            Ok(_) => panic!("it was unwrapped"),
            Err(error) => error,
        };
        (error.to_string(), error.may_pass())
    }

    #[test]
    fn a_key_comes_back() {
        let (_folder, provider) = provider(&["/usr/bin/env", "python3"], SOUND, 20.0);
        let key = DataKey::generate(&mut rand::rng());
        let wrapped = provider.wrap(&key, KeyContext::ROOT).unwrap();
        assert_ne!(
            &wrapped.0[..],
            &dangerous_bytes::bytes_of_data_key(&key)[..]
        );
        let back = provider.unwrap(&wrapped, KeyContext::ROOT).unwrap();
        assert!(back.is_same(&key));
    }

    #[test]
    fn programs_are_named_by_absolute_paths() {
        let time = Duration::from_secs(1);
        assert!(ExecProvider::new(&[], time).is_err());
        for relative in ["wrap", "./wrap", ""] {
            let error = ExecProvider::new(&[relative.to_owned()], time).unwrap_err();
            assert!(error.contains("absolute"), "{error}");
        }
    }

    #[test]
    fn what_hangs_is_killed_with_all_that_it_has_started() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        let script = format!(
            "(sleep 2; echo late >{}) &\necho waiting >&2\nsleep 60",
            mark.display()
        );
        let (_folder, provider) = sh(&script, 0.5);
        let begin = Instant::now();
        let (text, may_pass) = fault(&provider);
        assert!(begin.elapsed() < Duration::from_secs(2), "{text}");
        assert!(may_pass && text.contains("0.5 seconds"), "{text}");
        assert!(text.ends_with(": waiting"), "{text}");
        std::thread::sleep(Duration::from_millis(2000));
        assert!(!mark.exists(), "the group was killed");
    }

    /// One that goes on holds the pipes: nobody waits for it.
    #[test]
    fn what_a_child_leaves_running_is_not_waited_for() {
        let answer = STANDARD.encode([7; 32]);
        let (_folder, provider) = sh(&format!("sleep 5 &\necho '{{\"key\":\"{answer}\"}}'"), 20.0);
        let begin = Instant::now();
        let key = unwrap(&provider).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(3));
        assert_eq!(dangerous_bytes::bytes_of_data_key(&key), &[7; 32]);
    }

    #[test]
    fn answers_are_bounded_and_checked() {
        let short = STANDARD.encode([7; 31]);
        for (script, what, passes) in [
            ("yes", "more than 65536 bytes", false),
            ("echo SECRET", "not the expected JSON at line 1", false),
            ("true", "not the expected JSON", false),
            ("echo '{}'", "no field \"key\"", false),
            ("echo '{\"key\":7}'", "not the expected JSON", false),
            ("echo '{\"key\":\"SECRET!\"}'", "not base64", false),
            (
                &format!("echo '{{\"key\":\"{short}\"}}'"),
                "does not have 32 bytes",
                false,
            ),
            (
                "echo 'no network' >&2; exit 1",
                "(exit status: 1): no network",
                true,
            ),
            (
                "echo 'no such key' >&2; exit 2",
                "(exit status: 2): no such key",
                false,
            ),
            ("kill -9 $$", "signal: 9", true),
        ] {
            let (_folder, provider) = sh(script, 20.0);
            let (text, may_pass) = fault(&provider);
            assert!(text.contains(what), "{script}: {text}");
            assert!(!text.contains("SECRET"), "{text}");
            assert_eq!(may_pass, passes, "{script}: {text}");
        }
    }

    #[test]
    fn what_looks_like_a_key_is_not_shown() {
        let key = STANDARD.encode([0xa7; 32]);
        let hexadecimal = "a7".repeat(32);
        let (_folder, provider) = sh(
            &format!("printf 'bad input: {key}, \\033[1m{hexadecimal}\\n at line 3' >&2; exit 1"),
            20.0,
        );
        let (text, _) = fault(&provider);
        assert!(
            !text.contains(&key[..20]) && !text.contains("a7a7a7a7"),
            "{text}"
        );
        assert!(text.contains("bad input: [44 characters],"), "{text}");
        assert!(
            text.ends_with(" at line 3") && !text.contains('\u{1b}'),
            "{text}"
        );
        let (_folder, provider) = sh("yes long words >&2 | head -c 100000; yes a b >&2", 0.5);
        let (text, _) = fault(&provider);
        assert!(text.len() < 900, "{}", text.len());
    }

    #[test]
    fn a_program_that_others_can_write_is_not_run() {
        let (folder, provider) = provider(&[], "#!/bin/sh\necho run >&2; exit 1", 20.0);
        let path = folder.path().join("wrap");
        for mode in [0o720, 0o702] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let (text, may_pass) = fault(&provider);
            assert!(text.contains("chmod go-w") && !may_pass, "{text}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let mut text = fault(&provider).0;
        while text.contains("Text file busy") {
            text = fault(&provider).0;
        }
        assert!(text.ends_with(": run"), "{text}");
        // nor one in whose place others can put another, also behind a symbolic link
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let (text, may_pass) = fault(&provider);
        assert!(text.contains("chmod go-w") && !may_pass, "{text}");
        let elsewhere = tempfile::tempdir().unwrap();
        let link = elsewhere.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let command = [link.to_str().unwrap().to_owned()];
        let linked = ExecProvider::new(&command, Duration::from_secs(20)).unwrap();
        assert!(fault(&linked).0.contains("chmod go-w"));
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(!fault(&linked).0.contains("chmod go-w"));
        if std::os::unix::fs::chown(&path, Some(12345), None).is_ok() {
            assert!(fault(&provider).0.contains("belongs to user 12345"));
        }
        fs::remove_file(&path).unwrap();
        assert!(fault(&provider).0.contains("No such file"));
    }
}
