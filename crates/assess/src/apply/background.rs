//! MariaDB's threads, which encrypt and decrypt tablespaces while they are used.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::state::State;
use crate::{AssessError, reader::Reader, server, text::count};

/// How long nothing may happen at all.
const STALLED: Duration = Duration::from_secs(600);
/// Bytes of a page.
const PAGE: u32 = 16 << 10;
const SPEED: &str = "innodb_encryption_rotation_iops";
const THREADS: &str = "innodb_encryption_threads";

/// Waits until all is done. The pace is the server's own.
pub(super) fn wait(
    reader: &mut Reader,
    state: &State,
    on: bool,
    pace: u32,
    tell: &mut dyn FnMut(&str),
) -> Result<(), AssessError> {
    let before = state.facts.variable(SPEED).unwrap_or("100").to_owned();
    let pages = pace.saturating_mul((1 << 20) / PAGE);
    reader.must_run(&format!("SET GLOBAL {SPEED} = {pages}"))?;
    if state.facts.variable(THREADS) == Some("0") {
        reader.must_run(&format!("SET GLOBAL {THREADS} = 4"))?;
    }
    let waited = until_done(reader, state, on, tell);
    reader.must_run(&format!("SET GLOBAL {SPEED} = {before}"))?;
    waited
}

fn until_done(
    reader: &mut Reader,
    state: &State,
    on: bool,
    tell: &mut dyn FnMut(&str),
) -> Result<(), AssessError> {
    let mut last = (usize::MAX, 0);
    let mut changed = Instant::now();
    loop {
        let spaces = server::tablespaces(reader)?;
        let Some(spaces) = spaces.known() else {
            return Err(AssessError::State("the tablespaces are not visible".into()));
        };
        let left = state.others_than(on, spaces);
        if left == 0 {
            return Ok(());
        }
        let pages = pages_done(reader)?;
        if (left, pages) != last {
            if left != last.0 {
                tell(&format!("{} left", count(left, "tablespace")));
            }
            last = (left, pages);
            changed = Instant::now();
        }
        if changed.elapsed() > STALLED {
            return Err(AssessError::State(format!(
                "the server has done nothing for {} minutes, and {} are left: look into its error log",
                STALLED.as_secs() / 60,
                count(left, "tablespace")
            )));
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// Pages of the tablespaces that are worked on.
fn pages_done(reader: &mut Reader) -> Result<u64, AssessError> {
    let sql = "SELECT COALESCE(SUM(KEY_ROTATION_PAGE_NUMBER), 0) \
               FROM information_schema.INNODB_TABLESPACES_ENCRYPTION";
    let rows = reader.rows(sql)?.unwrap_or_default();
    let number = rows.into_iter().flatten().flatten().next();
    Ok(number.and_then(|n| n.parse().ok()).unwrap_or_default())
}
