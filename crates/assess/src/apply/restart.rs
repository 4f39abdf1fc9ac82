//! The server is restarted by a command that somebody has given, and by nobody else.

use std::{
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::{process, request::Request, state::State};
use crate::{AssessError, reader::Reader};

/// How long the command may take, and then the server.
const PATIENCE: Duration = Duration::from_secs(300);

/// Runs it, and waits until another process of the server answers.
pub(super) fn with(command: &str, state: &State, request: &Request) -> Result<(), AssessError> {
    let failed = |what: String| {
        AssessError::State(format!(
            "--restart-with: {what}. The server may be down: look into its error log. What was written before \
             stays, and the same command goes on when the server runs"
        ))
    };
    let before = state.process.as_ref().map(|process| process.id).ok();
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(50)),
            Ok(None) => return Err(failed("the command does not end".into())),
            Err(error) => return Err(failed(error.to_string())),
        }
    };
    if !status.success() {
        return Err(failed(format!("the command has failed: {status}")));
    }
    let pid_file = state.facts.variable("pid_file").unwrap_or_default();
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let now = process::of(state.data(), pid_file)
            .map(|process| process.id)
            .ok();
        if now.is_some() && now != before && Reader::connect(&request.look.connect).is_ok() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(100));
    }
    Err(failed("no new process of the server answers".into()))
}
