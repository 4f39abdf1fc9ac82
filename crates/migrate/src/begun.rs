//! Which migration it is: told when it begins, when it goes on, when it ends, and by `--status`.
//!
//! The server can put back a checkpoint of an earlier migration of the same table, which is
//! authentic. So every command says what it went on with, and `--resume=ID` refuses another one.

use std::fmt;

use onionskin_rowstream::checkpoint::{COMMENT, State};
use onionskin_rowstream::session::Session;

use crate::error::{MigrateError, Result};
use crate::facts;
use crate::job::Job;
use crate::operation::Operation;
use crate::preflight::Names;

/// What tells a migration from others of the same table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Random digits.
    pub id: String,
    /// What it does to the table.
    pub operation: String,
    /// Seconds since 1970; 0 if it is not known.
    pub began: u64,
}

impl Begun {
    pub(crate) fn of(state: &State) -> Result<Self> {
        Ok(Self {
            id: state.id.clone(),
            operation: Operation::of(state)?.shown(),
            began: state.began,
        })
    }
}

impl fmt::Display for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without keys it is what the server says: nothing that a terminal would obey.
        let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
        let id: String = self.id.chars().map(plain).collect();
        let operation: String = self.operation.chars().map(plain).collect();
        write!(f, "migration {id}")?;
        if self.began > 0 {
            write!(f, ", begun {} UTC", utc(self.began))?;
        }
        write!(f, ": {operation}")
    }
}

impl Job {
    /// An error if no migration of the table has begun.
    pub(crate) fn must_be_begun(&self, control: &mut Session, names: &Names) -> Result<()> {
        let comment = facts::comment(control, &names.checkpoint)?;
        match comment.as_deref() {
            Some(COMMENT) => Ok(()),
            None => Err(MigrateError::Request(format!(
                "no migration of {}.{} has begun",
                self.database, self.table
            ))),
            Some(_) => Err(MigrateError::Request(format!(
                "the table {} is no migration's, and neither is what has a name like it: rename it, for that is a helper's name",
                names.checkpoint
            ))),
        }
    }

    /// An error if another migration was asked for than the one that has begun.
    pub(crate) fn must_be_meant(&self, state: &State) -> Result<()> {
        match &self.id {
            Some(id) if *id != state.id => Err(MigrateError::Request(format!(
                "what has begun with {}.{} is not migration {id}, but {}: the checkpoint may be one of an earlier migration that was put \
                 back; --abort, and begin again",
                self.database,
                self.table,
                Begun::of(state)?
            ))),
            _ => Ok(()),
        }
    }
}

/// `2026-11-23 19:51:15`. Days become a date as in Howard Hinnant's `civil_from_days`.
fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_migration_is_told_by_its_id_its_time_and_what_it_does() {
        let begun = Begun {
            id: "00ff\n".into(),
            operation: "encrypt name (eq)".into(),
            began: 1_795_463_475,
        };
        let told = "migration 00ff\u{fffd}, begun 2026-11-23 19:51:15 UTC: encrypt name (eq)";
        assert_eq!(begun.to_string(), told);
        assert_eq!(utc(951_782_399), "2000-02-28 23:59:59");
        assert_eq!(utc(951_868_799), "2000-02-29 23:59:59");
        assert_eq!(utc(0), "1970-01-01 00:00:00");
    }
}
