//! How long things took, in bounded memory: buckets that grow by 2 % from a microsecond to more
//! than five minutes.

const BUCKETS: usize = 1000;
const FIRST: f64 = 1e-6;
const GROWTH: f64 = 1.02;

/// Counts of durations. Percentiles are exact to 2 %.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    sum: f64,
    longest: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS],
            sum: 0.0,
            longest: 0.0,
        }
    }
}

impl Histogram {
    /// Counts one, in seconds.
    pub fn add(&mut self, seconds: f64) {
        let bucket = (seconds / FIRST).max(1.0).ln() / GROWTH.ln();
        self.counts[(bucket as usize).min(BUCKETS - 1)] += 1;
        self.sum += seconds;
        self.longest = self.longest.max(seconds);
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.sum += other.sum;
        self.longest = self.longest.max(other.longest);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Mean in seconds; 0 of none.
    pub fn mean(&self) -> f64 {
        self.sum / (self.count().max(1)) as f64
    }

    /// The longest in seconds.
    pub fn longest(&self) -> f64 {
        self.longest
    }

    /// The duration in seconds that `share` of all do not exceed: the middle of its bucket.
    pub fn percentile(&self, share: f64) -> f64 {
        let wanted = (self.count() as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return (FIRST * GROWTH.powf(bucket as f64 + 0.5)).min(self.longest);
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_right_to_two_percent() {
        let (mut a, mut b) = (Histogram::default(), Histogram::default());
        for n in 1..=1000 {
            let half = if n % 2 == 0 { &mut a } else { &mut b };
            half.add(f64::from(n) * 1e-3);
        }
        a.merge(&b);
        assert_eq!(a.count(), 1000);
        for (share, expected) in [(0.5, 0.5), (0.95, 0.95), (0.99, 0.99)] {
            let found = a.percentile(share);
            assert!((found / expected - 1.0).abs() < 0.02, "{share}: {found}");
        }
        assert!((a.mean() - 0.5005).abs() < 1e-9);
        assert_eq!(a.longest(), 1.0);
        assert!(a.percentile(1.0) <= 1.0);
        assert_eq!(Histogram::default().percentile(0.95), 0.0);
    }
}
