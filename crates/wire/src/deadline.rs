//! When a connection's reads and writes end, whatever arrives meanwhile.
//!
//! A socket's time limit begins anew with each byte: a peer that sends one in time, again and
//! again, is never too slow. A deadline is a moment, and holds below TLS as well.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a flag is looked at that brings a deadline forward.
const TICK: Duration = Duration::from_millis(250);

/// A moment, and perhaps an earlier one that holds as soon as somebody says so.
#[derive(Clone, Debug)]
pub struct Deadline {
    at: Instant,
    hurried: Option<(Arc<AtomicBool>, Instant)>,
}

impl Deadline {
    /// A moment.
    pub fn at(at: Instant) -> Self {
        Self { at, hurried: None }
    }

    /// Brings the deadline forward to `earlier`, once `flag` is set. It is noticed within a quarter
    /// of a second.
    pub fn or_if(mut self, flag: Arc<AtomicBool>, earlier: Instant) -> Self {
        self.hurried = Some((flag, earlier));
        self
    }

    /// How long a system call may wait now. An error if the moment has passed.
    fn wait(&self) -> io::Result<Duration> {
        let now = Instant::now();
        let mut left = self.at.saturating_duration_since(now);
        if let Some((flag, earlier)) = &self.hurried {
            if flag.load(Ordering::Relaxed) {
                left = left.min(earlier.saturating_duration_since(now));
            } else {
                left = left.min(TICK);
            }
        }
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // A limit that rounds to zero would mean none.
        Ok(left.max(Duration::from_millis(1)))
    }

    /// Repeats a system call until it has done something or the moment has passed. `limit` sets the
    /// socket's time limit.
    pub(crate) fn keep<S, T>(
        &self,
        socket: &mut S,
        limit: impl Fn(&S, Duration) -> io::Result<()>,
        mut call: impl FnMut(&mut S) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            limit(socket, self.wait()?)?;
            match call(socket) {
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) => {}
                done => return done,
            }
        }
    }
}
