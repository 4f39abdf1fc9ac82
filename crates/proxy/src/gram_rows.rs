//! How many rows grams have, as MySQL has told of late.

use ahash::RandomState;
use parking_lot::Mutex;

use crate::age::now;

/// Grams that are remembered, at most 192 KiB.
const PLACES: usize = 8192;
/// How long they are, in milliseconds. Tables grow and shrink.
const REMEMBERED: u64 = 60_000;
/// To read so many rows more costs less than to ask.
const FEW: u64 = 100;

/// How many rows grams have, as the server has told of late. All sessions share it. Numbers of
/// grams are tokens, which the server sees as well. A gram takes the place that its key hashes to,
/// whoever was there before.
#[derive(Default)]
pub(crate) struct GramRows {
    places: Mutex<Vec<GramRow>>,
    hash: RandomState,
}

#[derive(Clone, Copy, Default)]
struct GramRow {
    key: u64,
    rows: u64,
    /// When the server told, or 0.
    at: u64,
}

impl GramRows {
    pub fn key(&self, table: &[u8], gram: &str, number: u32) -> u64 {
        self.hash.hash_one((table, gram, number))
    }

    pub fn recall(&self, key: u64) -> Option<u64> {
        let places = self.places.lock();
        let found = places.get(key as usize % PLACES)?;
        let is_new = found.at > 0 && now().saturating_sub(found.at) < REMEMBERED;
        (found.key == key && is_new).then_some(found.rows)
    }

    pub fn keep(&self, key: u64, rows: u64) {
        let mut places = self.places.lock();
        if places.is_empty() {
            places.resize(PLACES, GramRow::default());
        }
        let at = now();
        places[key as usize % PLACES] = GramRow { key, rows, at };
    }
}

/// Whether the question can be spared: all are remembered, or one that few rows have.
pub(crate) fn is_known(remembered: &[Option<u64>]) -> bool {
    let few = |rows: &Option<u64>| rows.is_some_and(|rows| rows <= FEW);
    remembered.iter().all(Option::is_some) || remembered.iter().any(few)
}

/// Sorts numbers by their rows; those that nothing is known of come last.
pub(crate) fn sort(numbers: &mut [u32], rows: &[Option<u64>]) {
    let mut sorted: Vec<(u64, u32)> = numbers
        .iter()
        .zip(rows)
        .map(|(number, rows)| (rows.unwrap_or(u64::MAX), *number))
        .collect();
    sorted.sort_unstable();
    for (place, (_, number)) in numbers.iter_mut().zip(sorted) {
        *place = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grams_are_remembered_by_table_and_column() {
        let memory = GramRows::default();
        let key = memory.key(b"table", "c$gram", 7);
        assert_eq!(memory.recall(key), None);
        memory.keep(key, 12);
        assert_eq!(memory.recall(key), Some(12));
        for other in [
            memory.key(b"other", "c$gram", 7),
            memory.key(b"table", "d$gram", 7),
            memory.key(b"table", "c$gram", 8),
        ] {
            assert_eq!(memory.recall(other), None);
        }
    }

    #[test]
    fn one_rare_gram_is_enough() {
        assert!(is_known(&[None, Some(FEW)]));
        assert!(!is_known(&[None, Some(FEW + 1)]));
        assert!(is_known(&[Some(5000), Some(FEW + 1)]));
        let mut numbers = [1, 2, 3];
        sort(&mut numbers, &[None, Some(9), Some(2)]);
        assert_eq!(numbers, [3, 2, 1]);
    }
}
