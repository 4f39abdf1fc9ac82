//! Rounds: changes are read up to a mark, written, and the checkpoint is moved. Between rounds,
//! rows are copied or compared.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use onionskin_rowstream::RowError;
use onionskin_rowstream::apply::{ONE_TRANSACTION, apply, on_all};
use onionskin_rowstream::checkpoint::{Checkpoint, State};
use onionskin_rowstream::checksum::{compare, compare_keys};
use onionskin_rowstream::copy::{Cursor, Place};
use onionskin_rowstream::feed::{Delivery, Event, Feed, position_from_text};
use onionskin_rowstream::key::Key;
use onionskin_rowstream::pending::{Pending, Work};
use onionskin_rowstream::route::{Meeting, Route};
use onionskin_rowstream::session::Session;
use parking_lot::Mutex;

use crate::brake::Brake;
use crate::conflict::{conflict, explained, is_duplicate};
use crate::error::{MigrateError, Result};
use crate::others::Others;
use crate::phase::{CHECK, COPY, is_reverse};
use crate::preflight::{self, log_end};
use crate::progress::{COMPARING, COPYING, Progress};
use crate::statement::{Judged, Tables, judge, mark};
use crate::throttle::Throttle;
use crate::triggers::Triggers;

/// Most keys that wait in memory. Beyond, they are written before more is read.
const MAX_PENDING: usize = 300_000;
/// How often changes are written whose rows meet on a unique key that the old table does not have.
const MEETINGS: u32 = 20;
/// How long a mark may take to come back through the binary log when nothing else comes either. A
/// stream that breaks is made again within a minute.
const SILENCE: Duration = Duration::from_secs(90);
/// How often the server is asked for a sign of life while nothing comes from its log, not even a
/// heartbeat.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);
/// For how long it is taken for known which views, triggers and routines there are.
const LED_TO_HOLDS: Duration = Duration::from_secs(5);
/// How long a session may be silent before it is used for the sake of being used.
const REST: Duration = Duration::from_secs(600);
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
    pub brake: Brake,
    /// The other nodes of a cluster.
    pub others: Others,
    /// Whether writers may be held back.
    pub may_brake: bool,
    pub progress: Progress,
    /// Set when the rename of the tables has come through the binary log.
    pub renamed: bool,
    /// The text of a rename of ours that is waited for, where it is none of both tables at once.
    pub awaited: Option<String>,
    /// Whether views, triggers or routines lead to the table, and when that was asked.
    pub led_to: Option<(Instant, bool)>,
    /// Whether there may be snapshots that have seen a part of what was written at once.
    pub is_torn: bool,
    /// How many rows a round writes in one transaction at most.
    pub one_transaction: usize,
    /// The greatest mark that has come through the binary log.
    pub seen: u64,
    /// The end of what was delivered.
    pub position: String,
    /// When all sessions were last heard of.
    pub heard: Instant,
}

/// What a round did.
pub(crate) struct Round {
    pub rows: u64,
    pub time: Duration,
}

impl Engine {
    /// Ends all sessions but the one for the checkpoint, and the reading of the log. What is left:
    /// that session, the checkpoint, what it should say, and the end of what was delivered.
    pub fn end(self) -> (Session, Checkpoint, State, String) {
        (self.control, self.checkpoint, self.state, self.position)
    }

    /// Takes the other nodes of a cluster in, if there is one. Their writers cannot be held back by
    /// a lock, and they say themselves when they cannot follow.
    pub fn join(&mut self, others: Others) {
        self.may_brake &= !others.is_cluster();
        self.throttle.heed_flow_control(others.is_cluster());
        self.others = others;
    }

    /// Reads the binary log up to a mark that is written now. Afterwards every change that was
    /// committed before is either pending or written, and can be read.
    pub fn drain(&mut self) -> Result<()> {
        let mark = self.checkpoint.mark(&mut self.control)?;
        let mut patience = Instant::now() + SILENCE;
        while self.seen < mark {
            self.absorb(SILENCE)?;
            if self.pending.len() > MAX_PENDING {
                // All of it was committed before the mark.
                self.write_pending()?;
                self.save()?;
            }
            if Instant::now() > patience {
                self.must_be_behind()?;
                patience = Instant::now() + SILENCE;
            }
        }
        Ok(())
    }

    /// Like [`Self::drain`], but writes nothing, and gives up at `deadline` or when more than
    /// `most` keys wait: false. What was read stays pending.
    pub fn drain_until(&mut self, deadline: Instant, most: usize) -> Result<bool> {
        let mark = self.checkpoint.mark(&mut self.control)?;
        while self.seen < mark {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.pending.len() > most {
                return Ok(false);
            }
            match self.absorb(left) {
                Ok(()) => {}
                Err(MigrateError::Silent(_)) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(self.pending.len() <= most)
    }

    /// An error if the log was read to its end although something that stands in it did not come.
    pub fn must_be_behind(&mut self) -> Result<()> {
        let end = log_end(&mut self.control)?;
        match is_before(&self.position, &end) {
            true => Ok(()),
            false => Err(MigrateError::Silent(SILENCE.as_secs())),
        }
    }

    /// Moves the checkpoint to what was delivered, all of which is written.
    fn save(&mut self) -> Result<()> {
        self.state.position.clone_from(&self.position);
        self.checkpoint.write(&mut self.control, &self.state)?;
        Ok(())
    }

    /// Takes in the next delivery.
    pub fn absorb(&mut self, limit: Duration) -> Result<()> {
        let until = Instant::now() + limit;
        let delivery = loop {
            let left = until.saturating_duration_since(Instant::now());
            if let Some(delivery) = self.feed.next(left.min(SIGN_OF_LIFE))? {
                break delivery;
            }
            if left <= SIGN_OF_LIFE {
                return Err(MigrateError::Silent(limit.as_secs()));
            }
            // The reader of the log may be looking for a server that has gone.
            self.control.run("DO 0")?;
        };
        let Delivery {
            events,
            position,
            committed,
        } = delivery;
        for event in events {
            match event {
                Event::Changes(changes) => {
                    changes
                        .into_iter()
                        .for_each(|change| self.pending.absorb(change));
                }
                Event::Mark(number) => self.seen = self.seen.max(number),
                Event::Statement { database, sql } => self.statement(&database, &sql)?,
                Event::Mended(reason) => self.progress.note(format!(
                    "the stream of the binary log broke and goes on where it was: {reason}"
                )),
            }
        }
        self.position = position;
        if committed > 0 {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |now| now.as_secs());
            self.progress.set_lag(now.saturating_sub(committed));
        }
        Ok(())
    }

    /// A definition, or a change of rows that came as a statement.
    fn statement(&mut self, database: &str, sql: &str) -> Result<()> {
        if self.awaited.as_deref() == Some(sql) {
            self.renamed = true;
            return Ok(());
        }
        let tables = Tables {
            database: &self.route.database,
            table: &self.route.source,
            new: &self.route.target,
            mark: &mark(&self.state.id),
        };
        match judge(sql, database, &tables) {
            Judged::Foreign => Ok(()),
            Judged::Unnamed(verb) => match self.is_led_to()? {
                true => Err(MigrateError::Changed(format!(
                    "{verb}, logged as a statement, maybe through a view, a trigger or a routine"
                ))),
                false => Ok(()),
            },
            Judged::Renamed => {
                self.renamed = true;
                Ok(())
            }
            Judged::Changes(verb) => Err(MigrateError::Changed(verb)),
            // It may be of the switch, or of another table. What counts is what there is.
            Judged::Triggers(verb) => {
                let triggers = Triggers {
                    noted: &self.state.triggers,
                    database: &self.route.database,
                    table: &self.route.source,
                    new: &self.route.target,
                    old: "",
                    id: &self.state.id,
                };
                match triggers.are_as_noted(&mut self.control)? {
                    true => Ok(()),
                    false => Err(MigrateError::Changed(format!("{verb} TRIGGER"))),
                }
            }
        }
    }

    /// Whether statements that do not name the table may change it.
    fn is_led_to(&mut self) -> Result<bool> {
        if let Some((asked, is_led_to)) = self.led_to
            && asked.elapsed() < LED_TO_HOLDS
        {
            return Ok(is_led_to);
        }
        let is_led_to = preflight::is_led_to(&mut self.control, &self.route.source)?;
        self.led_to = Some((Instant::now(), is_led_to));
        Ok(is_led_to)
    }

    fn write_pending(&mut self) -> Result<u64> {
        let limit = match self.state.place() {
            Place::End => None,
            Place::Behind(key) => self.route.key.number(&key),
            // Not even the first row was copied: numbers are left to the copy, all of them.
            Place::Start => Some(i128::MIN),
        };
        let mut attempt = 1;
        loop {
            let work = self.pending.take(&self.route.key, limit);
            let rows = (work.deletions.len() + work.replacements.len()) as u64;
            match apply(&self.route, &mut self.sessions, &work, self.one_transaction) {
                Ok(is_torn) => {
                    self.is_torn |= is_torn;
                    self.state.changes += rows;
                    self.progress.set_changes(self.state.changes);
                    return Ok(rows);
                }
                Err(error) if is_duplicate(&error) && attempt < MEETINGS => {
                    // One of the two rows may have changed again: its event is on the way.
                    attempt += 1;
                    self.pending.give_back(work);
                    self.read_on()?;
                }
                Err(error) => return Err(self.explained(error, &work.replacements)),
            }
        }
    }

    fn explained(&mut self, error: RowError, keys: &[Key]) -> MigrateError {
        explained(&mut self.sessions[0], &self.route, keys, error)
    }

    /// Reads up to a new mark, whatever waits already.
    fn read_on(&mut self) -> Result<()> {
        let deadline = Instant::now() + SILENCE;
        match self.drain_until(deadline, usize::MAX)? {
            true => Ok(()),
            false => Err(MigrateError::Silent(SILENCE.as_secs())),
        }
    }

    /// Drains, writes what is pending, and moves the checkpoint.
    pub fn round(&mut self) -> Result<Round> {
        let begun = Instant::now();
        if self.heard.elapsed() > REST {
            // Where nothing is written for a day, servers end the sessions that were to write it.
            on_all(&mut self.sessions, |session| {
                session.run("DO 0")?;
                Ok(())
            })?;
            self.heard = begun;
        }
        self.drain()?;
        let rows = self.write_pending()?;
        self.save()?;
        let time = begun.elapsed();
        // Changes may take half of the time. Where they take more, their writers are faster than we
        // are.
        match time {
            _ if time > LONGEST_SLICE => self.press_brake(),
            _ if time < LONGEST_SLICE / 4 && self.brake.share() > 0 => self.brake.ease(),
            _ => {}
        }
        Ok(Round { rows, time })
    }

    /// Holds writers back for a greater share of the time.
    pub fn press_brake(&mut self) {
        if !self.may_brake {
            return;
        }
        if self.brake.share() == 0 {
            self.progress.note(
                "rows change faster than they can be written again: writers are held back".into(),
            );
        }
        self.brake.press();
    }

    /// Copies all rows, and writes changes in between.
    pub fn copy(&mut self) -> Result<()> {
        self.progress.set_phase(COPYING);
        self.state.phase = COPY.into();
        let cursor = Cursor::at(self.state.place(), self.state.rows);
        self.progress.set_rows(cursor.rows(), self.state.estimate);
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
        self.progress.set_phase(COMPARING);
        // on a way back the phase is what tells the commands so
        if !is_reverse(&self.state) {
            self.state.phase = CHECK.into();
        }
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

    /// Of keys that differed just now, those to which nothing has happened that is still to be
    /// written.
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
        // Rows go before they come back.
        self.is_torn = true;
        apply(&self.route, &mut self.sessions, &work, ONE_TRANSACTION)?;
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
                            ONE_TRANSACTION,
                        )?;
                    }
                    Err(error) => return Err(self.explained(error, batch)),
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

/// Whether a position in the binary log lies before another. Files are numbered, with more digits
/// when they run out.
pub(crate) fn is_before(position: &str, other: &str) -> bool {
    match (position_from_text(position), position_from_text(other)) {
        (Ok(a), Ok(b)) => (a.file.len(), &a.file, a.offset) < (b.file.len(), &b.file, b.offset),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_compared_by_file_and_offset() {
        assert!(is_before("binlog.000009:900", "binlog.000010:4"));
        assert!(is_before("binlog.999999:900", "binlog.1000000:4"));
        assert!(is_before("binlog.000009:900", "binlog.000009:1000"));
        assert!(!is_before("binlog.000009:900", "binlog.000009:900"));
        assert!(!is_before("", "binlog.000009:900"));
    }
}
