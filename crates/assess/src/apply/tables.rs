//! MySQL's tables: the server rewrites one after the other.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::state::State;
use crate::{
    AssessError,
    reader::{Reader, Refusal},
};

/// How often a table that is in use is asked for.
const ATTEMPTS: u32 = 5;
/// Bytes that have to stay free.
const RESERVE: u64 = 64 << 20;

/// Runs a definition, several times if others have the table. While it waits for them, new
/// statements wait behind it: the connection's lock_wait_timeout bounds that.
pub(super) fn patiently(reader: &mut Reader, sql: &str) -> Result<Result<(), String>, AssessError> {
    for attempt in 1.. {
        match reader.ask(sql)? {
            Ok(_) => break,
            Err(Refusal::Other(said)) if said.contains("(error 1205)") && attempt < ATTEMPTS => {
                thread::sleep(Duration::from_secs(1));
            }
            Err(Refusal::Other(said) | Refusal::Denied(said)) => return Ok(Err(said)),
            Err(Refusal::Unknown) => return Ok(Err("it is gone".into())),
        }
    }
    Ok(Ok(()))
}

/// The same for a table that is written anew, at a pace. Says why it was left.
pub(super) fn rewrite(
    reader: &mut Reader,
    sql: &str,
    bytes: u64,
    state: &State,
    pace: u32,
) -> Result<Option<String>, AssessError> {
    let needed = bytes + bytes / 10 + RESERVE;
    let room = state.room();
    if room < needed {
        return Err(AssessError::State(format!(
            "the server writes the table anew and needs {} MiB for it; {} MiB are free",
            needed >> 20,
            room >> 20
        )));
    }
    let begun = Instant::now();
    if let Err(said) = patiently(reader, sql)? {
        return Ok(Some(said));
    }
    let least = Duration::from_secs_f64(bytes as f64 / f64::from(pace.max(1)) / 1_048_576.0);
    thread::sleep(least.saturating_sub(begun.elapsed()));
    Ok(None)
}
