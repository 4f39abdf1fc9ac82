//! A histogram of durations, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::add;

/// Upper bounds of the buckets, in nanoseconds: 100 µs to 10 s.
const BOUNDS: [u64; 15] = [
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    10_000_000_000,
];

/// How many durations there were, by their length, and their sum.
#[derive(Default)]
pub(crate) struct Latency {
    /// The last one has no bound.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum: AtomicU64,
}

/// What a histogram held at some moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reading {
    /// Each with its upper bound in seconds; a bucket counts what it alone holds.
    pub buckets: Vec<(f64, u64)>,
    pub count: u64,
    pub seconds: f64,
}

impl Latency {
    /// One more, in nanoseconds.
    pub fn observe(&self, time: u64) {
        // Most are short.
        let bucket = BOUNDS.iter().position(|bound| time <= *bound);
        let bucket = bucket.unwrap_or(BOUNDS.len());
        add(&self.buckets[bucket], 1);
        add(&self.sum, time);
    }

    /// What there is. One that is observed meanwhile may be in the count and not in the sum.
    pub fn read(&self) -> Reading {
        let seconds = |nanos: u64| Duration::from_nanos(nanos).as_secs_f64();
        let bounds = BOUNDS.iter().map(|bound| seconds(*bound));
        let counts = self.buckets.iter().map(|b| b.load(Ordering::Relaxed));
        let buckets: Vec<_> = bounds.chain([f64::INFINITY]).zip(counts).collect();
        Reading {
            count: buckets.iter().map(|(_, count)| count).sum(),
            buckets,
            seconds: seconds(self.sum.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_the_bucket_that_bounds_it() {
        let latency = Latency::default();
        for micros in [0, 100, 101, 250, 9_999_999, 10_000_000, 10_000_001] {
            latency.observe(micros * 1000);
        }
        let reading = latency.read();
        assert_eq!(reading.count, 7);
        let held: Vec<u64> = reading.buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!(held, [2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1]);
        assert!((reading.seconds - 30.000_451).abs() < 1e-6, "{reading:?}");
    }
}
