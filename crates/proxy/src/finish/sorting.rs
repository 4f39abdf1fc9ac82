//! Sorting and cutting of rows, or of groups by their first rows and aggregates.

use std::cmp::Ordering;

use onionskin_plan::{SortBy, SortKey, errors};
use onionskin_value::order_bytes;

use super::Work;
use super::arena::Arena;
use super::decide;
use super::groups::{Computed, order_computed};
use crate::error::{Failure, Outcome};

/// The rows that LIMIT leaves.
pub(super) fn cut(order: &[u32], (skip, take): (u64, u64)) -> &[u32] {
    let skip = usize::try_from(skip).unwrap_or(usize::MAX).min(order.len());
    let rest = &order[skip..];
    let take = usize::try_from(take).unwrap_or(usize::MAX).min(rest.len());
    &rest[..take]
}

/// A rank in either protocol: digits, or eight bytes.
fn rank(cell: Option<&[u8]>, binary: bool) -> Outcome<u64> {
    let odd = || Failure::refused(&errors::INTERNAL, "a rank");
    let cell = cell.ok_or_else(odd)?;
    if binary {
        return Ok(u64::from_le_bytes(cell.try_into().map_err(|_| odd())?));
    }
    std::str::from_utf8(cell)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(odd)
}

/// Sorts rows, or groups by their first rows and aggregates. Equal ones stay as they came.
pub(super) fn sort(
    order: &mut [u32],
    work: &Work,
    arena: &Arena,
    computed: &[Vec<Computed>],
) -> Outcome<()> {
    let mut failed = None;
    let mut by_cells = |a: u32, b: u32| {
        for key in &work.finish.sort {
            match order_by(key, work, arena, computed, a as usize, b as usize) {
                Ok(Ordering::Equal) => {}
                Ok(order) => return directed(key, order),
                Err(failure) => {
                    failed.get_or_insert(failure);
                    return Ordering::Equal;
                }
            }
        }
        Ordering::Equal
    };
    match work.finish.sort.first() {
        Some(first) if let Some(mut rows) = beginnings(first, work, arena, order) => {
            rows.sort_by(|a, b| directed(first, a.0.cmp(&b.0)).then_with(|| by_cells(a.1, b.1)));
            order
                .iter_mut()
                .zip(rows)
                .for_each(|(place, (_, row))| *place = row);
        }
        _ => order.sort_by(|&a, &b| by_cells(a, b)),
    }
    failed.map_or(Ok(()), Err)
}

fn directed(key: &SortKey, order: Ordering) -> Ordering {
    match key.descending {
        true => order.reverse(),
        false => order,
    }
}

/// With each row the beginning of its order bytes by one key, as a number: most rows are told apart
/// by it, without a look at their cells. `None` if the key has no order bytes for all of them.
fn beginnings(key: &SortKey, work: &Work, arena: &Arena, order: &[u32]) -> Option<Vec<(u64, u32)>> {
    const NOT_NULL: u64 = 1 << 63;
    let SortBy::Cell(fetch) = key.by else {
        return None;
    };
    let ty = work.types[fetch].as_ref()?;
    ty.order_width()?;
    let mut bytes = Vec::new();
    let with_beginning = |&row: &u32| {
        let Some(cell) = arena.cell(row as usize, fetch) else {
            return Some((0, row));
        };
        bytes.clear();
        order_bytes(ty, cell, &mut bytes).ok()?;
        bytes.resize(bytes.len().max(8), 0);
        let (head, _) = bytes.split_first_chunk()?;
        Some((NOT_NULL | u64::from_be_bytes(*head) >> 1, row))
    };
    order.iter().map(with_beginning).collect()
}

/// How two rows stand by one key; NULL comes first.
fn order_by(
    key: &SortKey,
    work: &Work,
    arena: &Arena,
    computed: &[Vec<Computed>],
    a: usize,
    b: usize,
) -> Outcome<Ordering> {
    match key.by {
        SortBy::Cell(fetch) => Ok(match (arena.cell(a, fetch), arena.cell(b, fetch)) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(x), Some(y)) => match &work.types[fetch] {
                Some(ty) => decide::order(ty, x, y)?,
                None => return Err(Failure::refused(&errors::INTERNAL, "a sort key")),
            },
        }),
        SortBy::Rank(fetch) => {
            let rank = |row| rank(arena.cell(row, fetch), work.binary);
            Ok(rank(a)?.cmp(&rank(b)?))
        }
        SortBy::Aggregate(call) => {
            let ty = work
                .finish
                .groups
                .as_ref()
                .and_then(|g| g.calls.get(call)?.fetch)
                .and_then(|fetch| work.types[fetch].as_ref());
            order_computed(&computed[a][call], &computed[b][call], ty)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_cuts_anything() {
        let rows = [1, 2, 3, 4];
        assert_eq!(cut(&rows, (0, u64::MAX)), rows);
        assert_eq!(cut(&rows, (1, 2)), [2, 3]);
        assert_eq!(cut(&rows, (3, 9)), [4]);
        assert!(cut(&rows, (9, 9)).is_empty());
        assert!(cut(&rows, (0, 0)).is_empty());
    }

    #[test]
    fn a_rank_comes_in_either_protocol() {
        assert_eq!(rank(Some(b"12"), false).unwrap(), 12);
        assert_eq!(rank(Some(&[12, 0, 0, 0, 0, 0, 0, 0]), true).unwrap(), 12);
        assert!(rank(Some(b"12"), true).is_err());
        assert!(rank(None, false).is_err());
    }
}
