//! The rows that were there at the beginning, chunk by chunk in the order of the key.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use onionskin_schema::identifier;
use parking_lot::Mutex;

use crate::RowError;
use crate::key::Key;
use crate::route::{Meeting, Route, split};
use crate::session::Session;

/// How long a chunk should take: short enough that changes never wait long for it.
const CHUNK: Duration = Duration::from_millis(150);
const FIRST_ROWS: u64 = 1000;
const FEWEST_ROWS: u64 = 50;
const MAX_ROWS: u64 = 50_000;

/// Where the copy stands. Several threads take chunks from it.
pub struct Cursor {
    place: Mutex<Place>,
    rows: AtomicU64,
    chunk_rows: AtomicU64,
}

/// How far a walk over the table has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nothing is done.
    Start,
    /// Everything up to and with this key.
    Behind(Key),
    /// Everything.
    End,
}

/// A piece of the table.
pub struct Chunk {
    /// Rows behind this key.
    pub from: Option<Key>,
    /// Up to and with this one; to the end if there is none.
    pub to: Option<Key>,
}

impl Cursor {
    /// A walk that begins at `place`, of which `rows` are done.
    pub fn at(place: Place, rows: u64) -> Self {
        Self {
            place: Mutex::new(place),
            rows: AtomicU64::new(rows),
            chunk_rows: AtomicU64::new(FIRST_ROWS),
        }
    }

    /// How far it has come. Only where no chunk is in flight does that mean that all of it is
    /// written.
    pub fn place(&self) -> Place {
        self.place.lock().clone()
    }

    /// Rows that were copied.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// The next chunk of `table`; `None` at the end.
    pub fn take(&self, session: &mut Session, route: &Route) -> Result<Option<Chunk>, RowError> {
        let mut place = self.place.lock();
        let from = match &*place {
            Place::Start => None,
            Place::Behind(key) => Some(key.clone()),
            Place::End => return Ok(None),
        };
        let to = boundary(
            session,
            route,
            from.as_ref(),
            self.chunk_rows
                .load(Ordering::Relaxed)
                .min(route.most_rows as u64),
        )?;
        *place = to.clone().map_or(Place::End, Place::Behind);
        Ok(Some(Chunk { from, to }))
    }

    /// Adapts the size of chunks to how long one took.
    pub fn took(&self, rows: u64, time: Duration) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        let size = self.chunk_rows.load(Ordering::Relaxed);
        if rows * 2 < size && time < CHUNK {
            return;
        }
        let fitting = rows as f64 * CHUNK.as_secs_f64() / time.as_secs_f64().max(1e-4);
        // Half of the way, so that one slow chunk does not decide.
        let next = (size + fitting as u64) / 2;
        self.chunk_rows
            .store(next.clamp(FEWEST_ROWS, MAX_ROWS), Ordering::Relaxed);
    }

    /// Copies chunks until `until`, or until the end or an error elsewhere (`stop`).
    pub fn copy(
        &self,
        session: &mut Session,
        route: &Route,
        until: Instant,
    ) -> Result<(), RowError> {
        while Instant::now() < until {
            let Some(chunk) = self.take(session, route)? else {
                break;
            };
            let condition = route
                .key
                .range(&route.source, chunk.from.as_ref(), chunk.to.as_ref());
            let begun = Instant::now();
            let rows = route.write(session, &condition, Meeting::Keep)?;
            self.took(rows, begun.elapsed());
        }
        Ok(())
    }
}

/// The key of the row that is `rows` rows behind `from`; `None` if there are fewer.
fn boundary(
    session: &mut Session,
    route: &Route,
    from: Option<&Key>,
    rows: u64,
) -> Result<Option<Key>, RowError> {
    let list = route.key.select_list(&route.source);
    let sql = format!(
        "SELECT {list} FROM {} FORCE INDEX ({}) WHERE {} ORDER BY {list} LIMIT 1 OFFSET {}",
        identifier(&route.source),
        identifier(&route.key.index),
        route.key.range(&route.source, from, None),
        rows.saturating_sub(1),
    );
    let row = session.rows(&sql)?.into_iter().next();
    row.map(|row| Ok(split(row, &route.key)?.0)).transpose()
}
