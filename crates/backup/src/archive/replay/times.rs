//! What is said of points in time.

use chrono::DateTime;

use crate::archive::ArchiveError;

/// What the backup holds already ends before the time.
pub(super) fn check_held(held: u64, limit: u64) -> Result<(), ArchiveError> {
    match held < limit {
        true => Ok(()),
        false => Err(ArchiveError::Point(format!(
            "the backup holds a transaction of {}, which is not before {}: restore an older backup, or name a GTID",
            time_text(held),
            time_text(limit)
        ))),
    }
}

pub(super) fn not_reached(latest: u64, limit: u64) -> ArchiveError {
    ArchiveError::Point(format!(
        "the archive reaches {}, so it may lack transactions before {}: archive what the server has written since (after \
         FLUSH BINARY LOGS the archive knows that it has come so far), or restore all that there is, without --until",
        time_text(latest),
        time_text(limit)
    ))
}

/// In UTC.
pub(super) fn time_text(micros: u64) -> String {
    i64::try_from(micros)
        .ok()
        .and_then(DateTime::from_timestamp_micros)
        .map_or_else(|| "an unknown time".into(), |time| time.to_string())
}
