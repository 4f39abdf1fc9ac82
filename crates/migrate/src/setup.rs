//! What rounds need: sessions for rows, and an engine that reads the binary log.

use std::time::{Duration, Instant};

use onionskin_rowstream::apply::ONE_TRANSACTION;
use onionskin_rowstream::checkpoint::{Checkpoint, State};
use onionskin_rowstream::feed::{Feed, FeedOptions};
use onionskin_rowstream::pending::Pending;
use onionskin_rowstream::route::Route;
use onionskin_rowstream::session::Session;
use onionskin_schema::TableName;

use crate::brake::Brake;
use crate::engine::Engine;
use crate::error::Result;
use crate::job::Job;
use crate::locks::MAX_THREADS;
use crate::others::Others;
use crate::preflight::server_id;
use crate::progress::Progress;
use crate::throttle::Throttle;

/// The server may wait this long for the reader of the log. The reader waits for the writer, which
/// is busy with rows. A stream that ended would be made again, but whoever reads it twice falls
/// behind.
pub(crate) const READING_PATIENCE: Duration = Duration::from_secs(3600);

impl Job {
    /// Sessions for rows.
    pub(crate) fn row_sessions(&self, route: &Route) -> Result<Vec<Session>> {
        let mut sessions = Vec::new();
        for number in 1..=self.threads.clamp(1, MAX_THREADS - 1) {
            let mut session = Session::connect(&self.login)?;
            self.register(&mut session, number)?;
            route.prepare(&mut session)?;
            sessions.push(session);
        }
        Ok(sessions)
    }

    /// Everything that rounds need, at the state's position in the binary log.
    pub(crate) fn engine(
        &self,
        control: Session,
        sessions: Vec<Session>,
        route: Route,
        checkpoint: Checkpoint,
        state: State,
        progress: &Progress,
    ) -> Result<Engine> {
        let options = FeedOptions {
            login: self.login.clone(),
            server_id: server_id(control.id()),
            table: TableName::new(&self.database, &self.table),
            columns_of: TableName::new(&self.database, &self.table),
            checkpoint: TableName::new(&self.database, &checkpoint.name),
            key: route.key.clone(),
            patience: READING_PATIENCE,
        };
        let position = state.position.clone();
        progress.set_changes(state.changes);
        progress.set_rows(state.rows, state.estimate);
        Ok(Engine {
            feed: Feed::start(options, &position)?,
            // Where little is done yet, a wrong address can be told of.
            throttle: Throttle::new(self.limits.clone(), !state.copied)?,
            brake: Brake::new(&self.login, &self.database, &self.table)?,
            may_brake: true,
            others: Others::default(),
            route,
            checkpoint,
            state,
            pending: Pending::default(),
            control,
            sessions,
            progress: progress.clone(),
            renamed: false,
            awaited: None,
            led_to: None,
            is_torn: false,
            one_transaction: ONE_TRANSACTION,
            seen: 0,
            position,
            heard: Instant::now(),
        })
    }
}
