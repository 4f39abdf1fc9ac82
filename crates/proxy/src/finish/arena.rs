//! Rows that are kept, in one buffer with one bound.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use onionskin_plan::errors;
use onionskin_value::{SqlType, WeightError, weight};

use super::kept::Kept;
use crate::error::{Failure, Outcome};

/// Rows of equal width: their cells lie one behind the other.
pub(crate) struct Arena {
    width: usize,
    bytes: Vec<u8>,
    /// Where each cell begins in `bytes` and how long it is; [`NULL`] in the place of a length.
    cells: Vec<(u32, u32)>,
    /// Bytes kept elsewhere on behalf of these rows.
    charged: usize,
    /// What all of it takes, and what may be read.
    pub kept: Kept,
}

const NULL: u32 = u32::MAX;

impl Arena {
    pub fn new(width: usize, kept: Kept) -> Self {
        Arena {
            width,
            bytes: Vec::new(),
            cells: Vec::new(),
            charged: 0,
            kept,
        }
    }

    /// With no other statement beside it.
    #[cfg(test)]
    pub fn alone(width: usize) -> Self {
        let limits = crate::config::FinishLimits::default();
        Arena::new(width, Kept::new(&std::sync::Arc::default(), &limits))
    }

    /// Appends a cell to the last row.
    pub fn push(&mut self, cell: Option<&[u8]>) -> Outcome<()> {
        let more = cell.map_or(0, <[u8]>::len) + 8;
        self.kept.hold(self.size() + more)?;
        // the bound keeps both numbers far below the mark
        let start = self.bytes.len() as u32;
        match cell {
            None => self.cells.push((start, NULL)),
            Some(bytes) => {
                self.bytes.extend_from_slice(bytes);
                self.cells.push((start, bytes.len() as u32));
            }
        }
        Ok(())
    }

    fn size(&self) -> usize {
        self.bytes.len() + self.cells.len() * 8 + self.charged
    }

    /// Counts bytes that are kept elsewhere against the bound.
    pub fn charge(&mut self, bytes: usize) -> Outcome<()> {
        self.charged += bytes;
        self.kept.hold(self.size())
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.cells.len().checked_div(self.width).unwrap_or(0)
    }

    /// Forgets the last row.
    pub fn pop(&mut self) {
        let first = self.cells.len().saturating_sub(self.width);
        if let Some((start, _)) = self.cells.get(first) {
            self.bytes.truncate(*start as usize);
        }
        self.cells.truncate(first);
    }

    /// A cell; `None` is NULL.
    pub fn cell(&self, row: usize, column: usize) -> Option<&[u8]> {
        let (start, length) = *self.cells.get(row * self.width + column)?;
        if length == NULL {
            return None;
        }
        self.bytes
            .get(start as usize..start as usize + length as usize)
    }
}

/// Appends a cell's part of a key: equal parts mean values that are equal to SQL, or both NULL.
/// Cells that were not opened are taken for their bytes.
pub(super) fn put_key(
    key: &mut Vec<u8>,
    ty: Option<&SqlType>,
    cell: Option<&[u8]>,
) -> Result<(), WeightError> {
    let Some(cell) = cell else {
        key.push(0);
        return Ok(());
    };
    key.push(1);
    let at = key.len();
    key.extend_from_slice(&[0; 8]);
    match ty {
        Some(ty) => weight(ty, cell, key)?,
        None => key.extend_from_slice(cell),
    }
    let length = (key.len() - at - 8) as u64;
    key[at..at + 8].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Keeps the first of rows that are equal to SQL in these columns.
pub(super) fn distinct(
    arena: &mut Arena,
    order: &mut Vec<u32>,
    columns: &[usize],
    types: &[Option<SqlType>],
) -> Outcome<()> {
    let mut seen = SeenKeys::default();
    let mut kept = Vec::new();
    for &row in order.iter() {
        for &column in columns {
            let cell = arena.cell(row as usize, column);
            put_key(&mut seen.bytes, types[column].as_ref(), cell)
                .map_err(|e| Failure::refused(&errors::VALUE, e.to_string()))?;
        }
        if let Some(length) = seen.end_key() {
            arena.charge(length + 48)?;
            kept.push(row);
        }
    }
    *order = kept;
    Ok(())
}

/// A set of keys that lie one behind the other in one buffer, so that a key costs no allocation of
/// its own.
#[derive(Default)]
struct SeenKeys {
    bytes: Vec<u8>,
    /// Where each key ends; the first begins at 0.
    ends: Vec<usize>,
    hash: ahash::RandomState,
    /// The last key with a hash.
    last: HashMap<u64, usize, ahash::RandomState>,
    /// For each key the one before it with the same hash.
    before: Vec<Option<usize>>,
}

impl SeenKeys {
    /// Takes what was appended to `bytes` for a key. Its length if it is new; else it is dropped.
    fn end_key(&mut self) -> Option<usize> {
        let start = self.ends.last().copied().unwrap_or(0);
        let key = &self.bytes[start..];
        let length = key.len();
        let place = self.last.entry(self.hash.hash_one(key));
        let before = match &place {
            Entry::Occupied(found) => Some(*found.get()),
            Entry::Vacant(_) => None,
        };
        let mut other = before;
        while let Some(number) = other {
            let from = number.checked_sub(1).map_or(0, |n| self.ends[n]);
            if self.bytes[from..self.ends[number]] == *key {
                self.bytes.truncate(start);
                return None;
            }
            other = self.before[number];
        }
        place.insert_entry(self.ends.len());
        self.before.push(before);
        self.ends.push(self.bytes.len());
        Some(length)
    }
}

#[cfg(test)]
mod tests {
    use super::super::kept::MOST_KEPT;
    use super::*;

    fn arena(rows: &[[Option<&[u8]>; 2]]) -> Arena {
        let mut arena = Arena::alone(2);
        for cell in rows.iter().flatten() {
            arena.push(*cell).unwrap();
        }
        arena
    }

    #[test]
    fn rows_are_kept_and_forgotten() {
        let mut a = arena(&[[Some(b"ab"), None], [Some(b""), Some(b"cde")]]);
        assert_eq!(a.rows(), 2);
        assert_eq!(a.cell(0, 0), Some(b"ab".as_slice()));
        assert_eq!(a.cell(0, 1), None);
        assert_eq!(a.cell(1, 0), Some(b"".as_slice()));
        assert_eq!(a.cell(1, 1), Some(b"cde".as_slice()));
        a.pop();
        assert_eq!((a.rows(), a.bytes.len()), (1, 2));
        a.pop();
        a.pop();
        assert_eq!((a.rows(), a.bytes.len()), (0, 0));
    }

    #[test]
    fn past_the_bound_is_an_error() {
        let mut a = Arena::alone(1);
        let half = vec![0; MOST_KEPT / 2];
        a.push(Some(&half)).unwrap();
        assert!(a.push(Some(&half)).is_err());
        assert!(a.charge(MOST_KEPT / 2).is_err());
    }

    #[test]
    fn equal_to_sql_is_one_row() {
        let ty = SqlType::parse("varchar(10)", Some("utf8mb4_general_ci")).unwrap();
        let mut a = arena(&[
            [Some(b"Ab"), Some(b"1")],
            [Some(b"aB "), Some(b"1")],
            [Some(b"ab"), Some(b"2")],
            [None, Some(b"1")],
            [None, Some(b"1")],
        ]);
        let mut order = vec![0, 1, 2, 3, 4];
        let types = [Some(ty), None];
        distinct(&mut a, &mut order, &[0, 1], &types).unwrap();
        assert_eq!(order, [0, 2, 3]);
        let mut order = vec![4, 2, 1];
        distinct(&mut a, &mut order, &[0], &types).unwrap();
        assert_eq!(order, [4, 2]);
    }

    #[test]
    fn keys_with_one_hash_are_told_apart() {
        let mut seen = SeenKeys::default();
        for (key, new) in [
            ("a", true),
            ("a", false),
            ("", true),
            ("", false),
            ("ab", true),
        ] {
            seen.bytes.extend_from_slice(key.as_bytes());
            assert_eq!(seen.end_key().is_some(), new, "{key}");
        }
        assert_eq!((&*seen.ends, &*seen.bytes), (&[1, 1, 3][..], &b"aab"[..]));
        // three keys, as if they had one hash
        let mut seen = SeenKeys::default();
        for (number, key) in [b"one", b"two", b"six"].iter().enumerate() {
            seen.bytes.extend_from_slice(*key);
            seen.ends.push(seen.bytes.len());
            seen.before.push(number.checked_sub(1));
        }
        for (key, new) in [(b"one", false), (b"six", false), (b"ten", true)] {
            seen.last.insert(seen.hash.hash_one(key.as_slice()), 2);
            seen.bytes.extend_from_slice(key);
            assert_eq!(seen.end_key().is_some(), new);
        }
    }

    #[test]
    fn keys_of_neighbouring_cells_do_not_run_together() {
        let key = |cells: [Option<&[u8]>; 2]| {
            let mut key = Vec::new();
            cells
                .iter()
                .for_each(|c| put_key(&mut key, None, *c).unwrap());
            key
        };
        assert_ne!(
            key([Some(b"ab"), Some(b"c")]),
            key([Some(b"a"), Some(b"bc")])
        );
        assert_ne!(key([None, Some(b"")]), key([Some(b""), None]));
    }
}
