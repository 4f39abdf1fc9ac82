//! What one statement may take of the proxy while its rows are finished, and what all of them may
//! hold together.
//!
//! A [`Kept`] is one statement's. It reserves memory in the [`Pool`] that all sessions share and
//! gives it back when it is dropped: however a statement ends, its values go, and so does this.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onionskin_plan::errors;

use crate::age::now;
use crate::config::FinishLimits;
use crate::error::{Failure, Outcome};

/// Bytes that the rows of one statement may take in the proxy.
pub(crate) const MOST_KEPT: usize = 64 << 20;

/// The clock is looked at once for so many rows: it takes longer than all else that is counted.
const ROWS_FOR_A_LOOK: u8 = 4;

/// Memory is reserved in pieces of so many bytes, so that few cells have to ask for it.
const PIECE: usize = 64 << 10;

/// Bytes that are held by all statements that are finished now. Reloads leave it as it is.
#[derive(Default)]
pub(crate) struct Pool {
    held: AtomicU64,
}

impl Pool {
    /// How many there are.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Takes `more`, if all that is held stays within `limit`.
    fn take(&self, more: u64, limit: u64) -> bool {
        let within = |held: u64| held.checked_add(more).filter(|sum| *sum <= limit);
        let taken = self
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, within);
        taken.is_ok()
    }
}

/// What one statement has read and holds. No copy is made of it: what it has reserved is given back
/// once.
pub(crate) struct Kept {
    pool: Arc<Pool>,
    /// That of all statements.
    memory: u64,
    /// Reserved in the pool.
    reserved: usize,
    /// Rows that it may still read.
    rows: u64,
    /// When it has to have read them, in milliseconds of [`now`].
    end: u64,
    /// Rows until the clock is looked at again.
    unlooked: u8,
}

impl Kept {
    /// A statement's, that begins now.
    pub fn new(pool: &Arc<Pool>, limits: &FinishLimits) -> Self {
        Kept {
            pool: pool.clone(),
            memory: limits.memory,
            reserved: 0,
            rows: limits.rows,
            end: now().saturating_add(limits.seconds.saturating_mul(1000)),
            unlooked: 0,
        }
    }

    /// A row has arrived.
    #[inline]
    pub fn row(&mut self) -> Outcome<()> {
        match self.rows.checked_sub(1) {
            Some(left) => self.rows = left,
            None => return Err(Failure::refused(&errors::FINISH_ROWS, "")),
        }
        if let Some(fewer) = self.unlooked.checked_sub(1) {
            self.unlooked = fewer;
            return Ok(());
        }
        self.unlooked = ROWS_FOR_A_LOOK - 1;
        match now() > self.end {
            true => Err(Failure::refused(&errors::FINISH_SECONDS, "")),
            false => Ok(()),
        }
    }

    /// The statement is about to hold so many bytes in all.
    #[inline]
    pub fn hold(&mut self, bytes: usize) -> Outcome<()> {
        match bytes <= self.reserved {
            true => Ok(()),
            false => self.reserve(bytes),
        }
    }

    #[cold]
    fn reserve(&mut self, bytes: usize) -> Outcome<()> {
        if bytes > MOST_KEPT {
            return Err(Failure::refused(&errors::MEMORY, ""));
        }
        let wanted = bytes.next_multiple_of(PIECE);
        if !self.pool.take((wanted - self.reserved) as u64, self.memory) {
            return Err(Failure::refused(&errors::FINISH_MEMORY, ""));
        }
        self.reserved = wanted;
        Ok(())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let reserved = self.reserved as u64;
        if reserved > 0 {
            self.pool.held.fetch_sub(reserved, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(memory: usize) -> FinishLimits {
        FinishLimits {
            memory: memory as u64,
            ..FinishLimits::default()
        }
    }

    fn code(done: Outcome<()>) -> Option<&'static str> {
        done.err().and_then(|failure| failure.code())
    }

    #[test]
    fn all_statements_hold_no_more_than_the_limit() {
        let pool = Arc::new(Pool::default());
        let limits = limits(3 * PIECE);
        let (mut one, mut two) = (Kept::new(&pool, &limits), Kept::new(&pool, &limits));
        one.hold(1).unwrap();
        one.hold(PIECE + 1).unwrap();
        two.hold(PIECE).unwrap();
        assert_eq!(pool.held(), 3 * PIECE as u64);
        assert_eq!(code(two.hold(PIECE + 1)), Some(errors::FINISH_MEMORY.code));
        // what it has it keeps
        two.hold(PIECE).unwrap();
        drop(one);
        two.hold(3 * PIECE).unwrap();
        drop(two);
        assert_eq!(pool.held(), 0);
    }

    #[test]
    fn a_panic_gives_it_back() {
        let pool = Arc::new(Pool::default());
        let shared = pool.clone();
        let ended = std::thread::spawn(move || {
            let mut kept = Kept::new(&shared, &limits(MOST_KEPT));
            kept.hold(PIECE).unwrap();
            assert_eq!(shared.held(), 0, "there is some");
        });
        assert!(ended.join().is_err());
        assert_eq!(pool.held(), 0);
    }

    #[test]
    fn one_statement_has_a_bound_of_its_own() {
        let pool = Arc::new(Pool::default());
        let mut kept = Kept::new(&pool, &limits(2 * MOST_KEPT));
        kept.hold(MOST_KEPT).unwrap();
        assert_eq!(code(kept.hold(MOST_KEPT + 1)), Some(errors::MEMORY.code));
    }

    #[test]
    fn rows_and_seconds_are_bounded() {
        let pool = Arc::new(Pool::default());
        let few = FinishLimits {
            rows: 2,
            ..FinishLimits::default()
        };
        let mut kept = Kept::new(&pool, &few);
        assert!(kept.row().is_ok() && kept.row().is_ok());
        assert_eq!(code(kept.row()), Some(errors::FINISH_ROWS.code));
        let short = FinishLimits {
            seconds: 0,
            ..FinishLimits::default()
        };
        let mut kept = Kept::new(&pool, &short);
        std::thread::sleep(std::time::Duration::from_millis(30));
        assert_eq!(code(kept.row()), Some(errors::FINISH_SECONDS.code));
    }
}
