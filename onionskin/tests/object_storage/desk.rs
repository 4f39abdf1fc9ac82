//! A folder with keys, from which the program reaches a store.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::Arc;

use onionskin_testkit::*;

use super::servers::S3;

/// See the module.
#[derive(Clone)]
pub struct Desk {
    home: Arc<tempfile::TempDir>,
    /// Environment of the program.
    pub environment: Vec<(String, String)>,
}

/// Bytes that do not compress.
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Takes out of a command's environment what this machine says of stores.
pub fn alone(command: &mut Command) {
    for (name, _) in std::env::vars() {
        let upper = name.to_uppercase();
        if upper.starts_with("AWS_") || upper.starts_with("ONIONSKIN_") || upper.ends_with("_PROXY")
        {
            command.env_remove(name);
        }
    }
}

impl Desk {
    /// A desk that uses this store, in which a bucket of this name is made.
    pub fn of(s3: &S3, bucket: &str) -> Desk {
        s3.make_bucket(bucket);
        Desk::at(&s3.endpoint())
    }

    /// The same with another address of it.
    pub fn at(endpoint: &str) -> Desk {
        let home = Arc::new(tempfile::tempdir().expect("a folder"));
        let desk = Desk {
            home,
            environment: [
                ("AWS_ENDPOINT_URL", endpoint),
                ("AWS_ACCESS_KEY_ID", "KEY1"),
                ("AWS_SECRET_ACCESS_KEY", "SECRET1"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        };
        desk.must(&["init"]);
        desk
    }

    /// With a variable that says something else, or nothing.
    pub fn with(mut self, name: &str, value: &str) -> Desk {
        self.environment.retain(|(known, _)| known != name);
        if !value.is_empty() {
            self.environment.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = tied_command(env!("CARGO_BIN_EXE_onionskin"));
        alone(&mut command);
        command
            .args(arguments)
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            // Nobody looks for an instance's service.
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .envs(self.environment.clone())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().expect("onionskin starts")
    }

    pub fn run(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut child = self.start(arguments);
        let mut stdin = child.stdin.take().expect("piped");
        std::thread::scope(|scope| {
            // A program that has failed does not read on.
            scope.spawn(move || drop(stdin.write_all(input)));
            child.wait_with_output().expect("onionskin ends")
        })
    }

    pub fn must_with(&self, arguments: &[&str], input: &[u8]) -> String {
        let output = self.run(arguments, input);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    pub fn must(&self, arguments: &[&str]) -> String {
        self.must_with(arguments, b"")
    }

    pub fn bytes(&self, arguments: &[&str]) -> Vec<u8> {
        let output = self.run(arguments, b"");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        output.stdout
    }

    /// It must end with this code and say this; what it said.
    pub fn fails_with(&self, arguments: &[&str], input: &[u8], code: i32, text: &str) -> String {
        let output = self.run(arguments, input);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(text), "{text:?} is not in: {said}");
        for secret in ["SECRET1", "X-Amz-", "panicked"] {
            assert!(!said.contains(secret), "{said}");
        }
        said
    }

    pub fn fails(&self, arguments: &[&str], code: i32, text: &str) -> String {
        self.fails_with(arguments, b"", code, text)
    }

    /// Runs it, and returns how much memory it has had at most, in bytes.
    pub fn peak(&self, arguments: &[&str], give: impl FnOnce(&mut ChildStdin) + Send) -> usize {
        let mut child = self.start(arguments);
        let status = format!("/proc/{}/status", child.id());
        let mut input = child.stdin.take().expect("piped");
        let mut peak = 0;
        let ended = std::thread::scope(|scope| {
            scope.spawn(move || {
                give(&mut input);
            });
            loop {
                if let Some(ended) = child.try_wait().expect("waited for") {
                    return ended;
                }
                let text = fs::read_to_string(&status).unwrap_or_default();
                let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
                let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
                peak = peak.max(kib.unwrap_or(0) << 10);
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        });
        let mut said = String::new();
        let stderr = child.stderr.as_mut().expect("piped");
        stderr.read_to_string(&mut said).expect("UTF-8");
        assert!(ended.success(), "{arguments:?}: {said}");
        assert!(peak > 0);
        peak
    }
}
