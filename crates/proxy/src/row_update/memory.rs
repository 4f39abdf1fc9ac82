//! The cells that rows were last seen with.
//!
//! `SET k = k + 1` needs the old value, which only a read can tell. But rows that are updated once
//! are often updated again: counters, queues, sessions. If the proxy still has the cell that it
//! wrote, it can compute the new value at once and write it on the condition that the row still
//! has that cell. The condition decides: equal cells hold equal values, so what is remembered here
//! may be as old or wrong as it likes, and costs a statement in vain at most.
//!
//! Only ciphertext is kept. The memory has a fixed number of places; a row takes the place that
//! its key hashes to, whoever was there before.

use ahash::RandomState;
use parking_lot::Mutex;

const SHARDS: usize = 64;
/// Places in each shard, allocated when the first one is used.
const PLACES: usize = 1024;
/// Rows with longer cells are not remembered. At most 20 MiB in all.
const LONGEST: usize = 256;

/// See the module. Shared by all sessions.
pub(crate) struct CellMemory {
    shards: Vec<Mutex<Vec<Place>>>,
    hash: RandomState,
}

#[derive(Clone, Default)]
struct Place {
    key: u64,
    /// As in a text row of the protocol; empty when the place is free.
    cells: Vec<u8>,
}

impl Default for CellMemory {
    fn default() -> Self {
        CellMemory {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hash: RandomState::new(),
        }
    }
}

impl CellMemory {
    /// The key of the row that `select` reads, a statement that names one row of one table by its
    /// primary key.
    pub fn key(&self, table: &[u8], select: &[u8]) -> u64 {
        self.hash.hash_one((table, select))
    }

    fn place(&self, key: u64) -> (&Mutex<Vec<Place>>, usize) {
        let shard = (key >> 32) as usize % SHARDS;
        (&self.shards[shard], key as usize % PLACES)
    }

    /// Appends the cells that the row was last seen with. `false`: it is not remembered.
    pub fn recall(&self, key: u64, cells: &mut Vec<u8>) -> bool {
        let (shard, place) = self.place(key);
        match shard.lock().get(place) {
            Some(found) if found.key == key && !found.cells.is_empty() => {
                cells.extend_from_slice(&found.cells);
                true
            }
            _ => false,
        }
    }

    /// Whether anything is remembered of the row.
    pub fn remembers(&self, key: u64) -> bool {
        self.recall(key, &mut Vec::new())
    }

    /// Remembers a row's cells.
    pub fn keep(&self, key: u64, cells: &[u8]) {
        let (shard, place) = self.place(key);
        let mut places = shard.lock();
        if cells.len() > LONGEST {
            // what is there may be the same row with shorter cells
            if let Some(found) = places.get_mut(place).filter(|p| p.key == key) {
                found.cells.clear();
            }
            return;
        }
        if places.is_empty() {
            places.resize(PLACES, Place::default());
        }
        let found = &mut places[place];
        found.key = key;
        found.cells.clear();
        found.cells.extend_from_slice(cells);
    }

    /// Forgets a row that turned out to have changed.
    pub fn forget(&self, key: u64) {
        let (shard, place) = self.place(key);
        if let Some(found) = shard.lock().get_mut(place).filter(|p| p.key == key) {
            found.cells.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_last_is_recalled() {
        let memory = CellMemory::default();
        let key = memory.key(b"table", b"SELECT 1");
        let mut cells = Vec::new();
        assert!(!memory.recall(key, &mut cells));
        memory.keep(key, b"one");
        memory.keep(key, b"two");
        assert!(memory.recall(key, &mut cells));
        assert_eq!(cells, b"two");
        memory.forget(key);
        assert!(!memory.recall(key, &mut cells));
    }

    #[test]
    fn tables_with_the_same_statement_are_kept_apart() {
        let memory = CellMemory::default();
        assert_ne!(
            memory.key(b"one", b"SELECT 1"),
            memory.key(b"two", b"SELECT 1")
        );
    }

    #[test]
    fn a_row_takes_the_place_of_another() {
        let memory = CellMemory::default();
        let (one, two) = (7, 7 + PLACES as u64);
        memory.keep(one, b"one");
        memory.keep(two, b"two");
        let mut cells = Vec::new();
        assert!(!memory.recall(one, &mut cells));
        memory.forget(one);
        assert!(memory.recall(two, &mut cells));
    }

    #[test]
    fn long_cells_are_not_kept_and_push_out_the_shorter_ones_of_their_row() {
        let memory = CellMemory::default();
        memory.keep(1, b"short");
        memory.keep(2, &[0; LONGEST]);
        memory.keep(1, &[0; LONGEST + 1]);
        let mut cells = Vec::new();
        assert!(!memory.recall(1, &mut cells));
        assert!(memory.recall(2, &mut cells));
    }
}
