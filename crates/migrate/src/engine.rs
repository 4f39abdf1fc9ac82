//! Rounds: changes are read up to a mark, written, and the checkpoint is moved. Between rounds, rows are copied or compared.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use onionskin_rowstream::RowError;
use onionskin_rowstream::apply::{apply, on_all};
use onionskin_rowstream::checkpoint::{Checkpoint, State};
use onionskin_rowstream::checksum::{compare, compare_keys};
use onionskin_rowstream::copy::{Cursor, Place};
use onionskin_rowstream::feed::{Delivery, Event, Feed};
use onionskin_rowstream::key::Key;
use onionskin_rowstream::pending::{Pending, Work};
use onionskin_rowstream::route::{Meeting, Route};
use onionskin_rowstream::session::Session;
use parking_lot::Mutex;

use crate::error::{MigrateError, Result};
use crate::progress::Progress;
use crate::throttle::Throttle;

/// Most keys that wait in memory. Beyond, they are written before more is read.
const MOST_PENDING: usize = 300_000;
/// How long a mark may take to come back through the binary log when nothing else comes either.
const SILENCE: Duration = Duration::from_secs(60);
/// How long rows are copied or compared at least, before changes have their turn.
const SHORTEST_SLICE: Duration = Duration::from_millis(300);
/// And at most.
const LONGEST_SLICE: Duration = Duration::from_secs(2);

/// A table on its way.
pub(crate) struct Engine {
    pub route: Route,
    pub checkpoint: Checkpoint,
    pub state: State,
    pub feed: Feed,
    pub pending: Pending,
    /// For marks and the checkpoint.
    pub control: Session,
    /// For rows; at least one.
    pub sessions: Vec<Session>,
    pub throttle: Throttle,
    pub progress: Progress,
    /// Set when the rename of the tables has come through the binary log.
    pub renamed: bool,
    /// The end of what was delivered.
    pub position: String,
}

/// What a round did.
pub(crate) struct Round {
    pub rows: u64,
    pub time: Duration,
}

impl Engine {
    /// Reads the binary log up to a mark that is written now. Afterwards every change that was committed before is either
    /// pending or written, and can be read.
    pub fn drain(&mut self) -> Result<()> {
        let mark = self.checkpoint.mark(&mut self.control)?;
        loop {
            if self.absorb(SILENCE)? >= mark {
                return Ok(());
            }
            if self.pending.len() > MOST_PENDING {
                // All of it was committed before the mark.
                self.write_pending()?;
            }
        }
    }

    /// Takes in the next delivery; returns the greatest mark in it.
    pub fn absorb(&mut self, limit: Duration) -> Result<u64> {
        let Some(delivery) = self.feed.next(limit)? else {
            return Err(MigrateError::Silent(limit.as_secs()));
        };
        let Delivery {
            events,
            position,
            committed,
        } = delivery;
        let mut mark = 0;
        for event in events {
            match event {
                Event::Changes(changes) => {
                    changes
                        .into_iter()
                        .for_each(|change| self.pending.absorb(change));
                }
                Event::Mark(number) => mark = mark.max(number),
                Event::Statement(sql) => self.statement(&sql)?,
            }
        }
        self.position = position;
        if committed > 0 {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |now| now.as_secs());
            self.progress.set_lag(now.saturating_sub(committed));
        }
        Ok(mark)
    }

    /// A definition, or a change of rows that came as a statement.
    fn statement(&mut self, sql: &str) -> Result<()> {
        match judge(sql, &self.route.source, &self.route.target) {
            Judged::Foreign => Ok(()),
            Judged::Renamed => {
                self.renamed = true;
                Ok(())
            }
            Judged::Changes(verb) => Err(MigrateError::Changed(verb)),
        }
    }

    fn write_pending(&mut self) -> Result<u64> {
        let limit = match self.state.place() {
            Place::End => None,
            Place::Behind(key) => self.route.key.number(&key),
            // Not even the first row was copied; but whether keys are numbers is not known yet.
            Place::Start => None,
        };
        let work = self.pending.take(&self.route.key, limit);
        let rows = (work.deletions.len() + work.replacements.len()) as u64;
        apply(&self.route, &mut self.sessions, &work)?;
        self.state.changes += rows;
        self.progress.set_changes(self.state.changes);
        Ok(rows)
    }

    /// Drains, writes what is pending, and moves the checkpoint.
    pub fn round(&mut self) -> Result<Round> {
        let begun = Instant::now();
        self.drain()?;
        let rows = self.write_pending()?;
        self.state.position.clone_from(&self.position);
        self.checkpoint.write(&mut self.control, &self.state)?;
        Ok(Round {
            rows,
            time: begun.elapsed(),
        })
    }

    /// Copies all rows, and writes changes in between.
    pub fn copy(&mut self) -> Result<()> {
        self.progress.set_phase("copying");
        self.state.phase = "copy".into();
        let cursor = Cursor::at(self.state.place(), self.state.rows);
        let mut slice = SHORTEST_SLICE;
        while self.state.place() != Place::End {
            self.slice(slice, |session, route, until| {
                cursor.copy(session, route, until)
            })?;
            // Nothing is in flight: all before the cursor is written.
            self.state.set_place(&cursor.place());
            self.state.rows = cursor.rows();
            self.progress.set_rows(cursor.rows(), self.state.estimate);
            // Copying gets at least half of the time, whatever else is written.
            slice = self.round()?.time.clamp(SHORTEST_SLICE, LONGEST_SLICE);
        }
        Ok(())
    }

    /// Runs `task` in all sessions for a while, unless the throttle says to wait.
    fn slice(
        &mut self,
        time: Duration,
        task: impl Fn(&mut Session, &Route, Instant) -> std::result::Result<(), RowError> + Sync,
    ) -> Result<()> {
        if self.throttle.waits(&mut self.control, &self.progress)? {
            std::thread::sleep(Duration::from_millis(200));
            return Ok(());
        }
        let until = Instant::now() + time;
        let route = &self.route;
        on_all(&mut self.sessions, |session| task(session, route, until)).map_err(conflict)
    }

    /// Compares all rows of both tables; what is wrong is written once more.
    pub fn verify(&mut self) -> Result<()> {
        self.progress.set_phase("comparing");
        self.state.phase = "check".into();
        let cursor = Cursor::at(Place::Start, 0);
        while cursor.place() != Place::End {
            let time = self.round()?.time.clamp(SHORTEST_SLICE, LONGEST_SLICE);
            let different = Mutex::new(Vec::new());
            self.slice(time, |session, route, until| {
                compare(&cursor, session, route, until, &different)
            })?;
            self.progress.set_rows(cursor.rows(), self.state.estimate);
            let wrong = self.unexplained(different.into_inner())?;
            if !wrong.is_empty() {
                self.repair(wrong)?;
            }
        }
        Ok(())
    }

    /// Of keys that differed just now, those to which nothing has happened that is still to be written.
    fn unexplained(&mut self, mut different: Vec<Key>) -> Result<Vec<Key>> {
        if !different.is_empty() {
            let written = self.state.changes;
            self.drain()?;
            if self.state.changes != written {
                // So much came that some of it was written: what is still different tells itself.
                return self.still_different(&different);
            }
            different.retain(|key| !self.pending.contains(key));
        }
        Ok(different)
    }

    fn still_different(&mut self, keys: &[Key]) -> Result<Vec<Key>> {
        self.round()?;
        let session = &mut self.sessions[0];
        let different = compare_keys(session, &self.route, keys)?;
        self.drain()?;
        Ok(different
            .into_iter()
            .filter(|key| !self.pending.contains(key))
            .collect())
    }

    fn repair(&mut self, keys: Vec<Key>) -> Result<()> {
        let shown = |engine: &Self, keys: &[Key]| {
            let keys = keys.iter().take(5).map(|key| key.shown(&engine.route.key));
            keys.collect::<Vec<_>>().join("; ")
        };
        let work = Work {
            deletions: keys.clone(),
            replacements: Vec::new(),
        };
        self.round()?;
        apply(&self.route, &mut self.sessions, &work)?;
        for batch in keys.chunks(self.route.key.batch()) {
            let condition = self.route.key.among(&self.route.source, batch);
            // Two rows may meet for a moment, while one of them is still to be written.
            let mut attempt = 0;
            loop {
                let session = &mut self.sessions[0];
                match self.route.write(session, &condition, Meeting::Conflict) {
                    Ok(_) => break,
                    Err(error) if is_duplicate(&error) && attempt < 3 => {
                        attempt += 1;
                        self.round()?;
                        apply(
                            &self.route,
                            &mut self.sessions,
                            &Work {
                                deletions: batch.to_vec(),
                                replacements: Vec::new(),
                            },
                        )?;
                    }
                    Err(error) => return Err(conflict(error)),
                }
            }
        }
        let wrong = self.still_different(&keys)?;
        if !wrong.is_empty() {
            return Err(MigrateError::Differs {
                count: wrong.len(),
                keys: shown(self, &wrong),
            });
        }
        self.state.repaired += keys.len() as u64;
        self.progress.note(format!(
            "{} rows differed and were written again: {}",
            keys.len(),
            shown(self, &keys)
        ));
        Ok(())
    }
}

fn is_duplicate(error: &RowError) -> bool {
    const DUPLICATE: u16 = 1062;
    matches!(error, RowError::Sql(error) if error.code == DUPLICATE)
}

/// An error of the server about a value is the new definition's.
pub(crate) fn conflict(error: RowError) -> MigrateError {
    // NULL, too long, out of range, wrong, truncated, CHECK, duplicate, no partition.
    const ABOUT_VALUES: [u16; 11] = [
        1048, 1062, 1264, 1265, 1292, 1366, 1406, 1526, 3140, 3819, 4025,
    ];
    match error {
        RowError::Sql(error) if ABOUT_VALUES.contains(&error.code) => MigrateError::Conflict {
            message: error.message,
        },
        other => other.into(),
    }
}

/// What a statement in the binary log means for the migration.
#[derive(Debug, PartialEq, Eq)]
enum Judged {
    Foreign,
    /// Ours: the new table has taken the old one's place.
    Renamed,
    /// It changes the old table: its first word.
    Changes(String),
}

fn judge(sql: &str, table: &str, new: &str) -> Judged {
    let words: Vec<&str> = sql
        .split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '$') && c.is_ascii())
        .filter(|word| !word.is_empty())
        .collect();
    let names = |name: &str| {
        let whole = name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii());
        match whole {
            true => words.iter().any(|word| word.eq_ignore_ascii_case(name)),
            false => sql.to_lowercase().contains(&name.to_lowercase()),
        }
    };
    let first = words
        .first()
        .map(|word| word.to_ascii_uppercase())
        .unwrap_or_default();
    let changes = [
        "ALTER", "DROP", "RENAME", "TRUNCATE", "CREATE", "INSERT", "UPDATE", "DELETE", "REPLACE",
        "LOAD",
    ];
    if !names(table) || !changes.contains(&first.as_str()) {
        return Judged::Foreign;
    }
    let second = words
        .get(1)
        .map(|word| word.to_ascii_uppercase())
        .unwrap_or_default();
    match first.as_str() {
        "RENAME" if names(new) => Judged::Renamed,
        // Views, procedures and tables that only read it.
        "CREATE" | "DROP" | "ALTER"
            if [
                "VIEW",
                "PROCEDURE",
                "FUNCTION",
                "EVENT",
                "USER",
                "ROLE",
                "TEMPORARY",
            ]
            .contains(&second.as_str()) =>
        {
            Judged::Foreign
        }
        _ => Judged::Changes(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_change_the_table_are_told_from_others() {
        let judged = |sql| judge(sql, "t", "t_onionskin_new");
        let changes = |verb: &str| Judged::Changes(verb.into());
        assert_eq!(judged("ALTER TABLE `t` ADD COLUMN c INT"), changes("ALTER"));
        assert_eq!(judged("truncate d.t"), changes("TRUNCATE"));
        assert_eq!(judged("CREATE UNIQUE INDEX i ON t(a)"), changes("CREATE"));
        assert_eq!(judged("/* x */ INSERT INTO T VALUES (1)"), Judged::Foreign);
        assert_eq!(judged("INSERT INTO T VALUES (1)"), changes("INSERT"));
        assert_eq!(
            judged("ALTER TABLE t_onionskin_new ADD COLUMN c INT"),
            Judged::Foreign
        );
        assert_eq!(judged("CREATE VIEW v AS SELECT * FROM t"), Judged::Foreign);
        assert_eq!(judged("DROP TABLE u"), Judged::Foreign);
        assert_eq!(
            judged("RENAME TABLE `t` TO `t_onionskin_old`, `t_onionskin_new` TO `t`"),
            Judged::Renamed
        );
        assert_eq!(judged("RENAME TABLE t TO u"), changes("RENAME"));
    }
}
