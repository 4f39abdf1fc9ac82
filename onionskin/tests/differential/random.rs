//! Random choices from a seed. SplitMix64, written out so that a printed seed means the same after
//! any update.

/// A stream of choices.
#[derive(Clone, Debug)]
pub struct Random(u64, bool);

impl Random {
    /// The stream of a seed and of what it is for: a server, a lane, a round.
    pub fn new(seed: u64, purpose: &[u64]) -> Random {
        let mut random = Random(seed, false);
        for word in purpose {
            random.0 = random.next() ^ word.wrapping_mul(0xd6e8_feb8_6659_fd93);
        }
        random.1 = random.0 % 4 == 3;
        random
    }

    /// Whether this stream, one of four, makes rare types in the place of some others.
    pub fn has_rare_types(&self) -> bool {
        self.1
    }

    /// 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A stream of its own that begins here. This one goes on as if nothing had been drawn, so that
    /// cases of a seed stay what they were when something is added to them.
    pub fn aside(&self) -> Random {
        Random::new(self.0, &[0x6173_6964_6500])
    }

    /// Less than `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of them.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// One of them, where it lies.
    pub fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// The index of one of them, as often as its weight says.
    pub fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (index, weight) in weights.iter().enumerate() {
            if left < *weight {
                return index;
            }
            left -= weight;
        }
        0
    }

    /// `count` different indexes below `limit`, in random order.
    pub fn sample(&mut self, limit: usize, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..limit).collect();
        for index in (1..all.len()).rev() {
            all.swap(index, self.below(index + 1));
        }
        all.truncate(count);
        all
    }
}
