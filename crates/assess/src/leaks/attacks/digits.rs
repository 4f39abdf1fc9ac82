//! What our order keys show by themselves, and what an attacker makes of it.
//!
//! A key is a row of cells, one for each 4-bit digit: `cell = r + digit`, where r depends on the
//! digits before it (`onionskin_crypt::order_key`). Keys that agree in their first cells have the
//! same r in the next one, so they form a tree, and at each branch the differences between the
//! digits are plain. Only one number is left to guess there: the least digit. It has 16 minus the
//! span of the digits possibilities, and fewer at the ends of a cell's range. A branch with the
//! digits 0 and 15 has none left: all of its digits are read.

use super::Guesses;

/// How many values a digit has.
const BASE: u16 = 16;
/// The greatest r: 2^16 − 16.
const LAST_MASK: u16 = u16::MAX - BASE + 1;
/// What a digit that nobody knows of counts for, in rows.
const UNKNOWN: f64 = 0.01;

/// The cells of a key.
pub fn cells(key: &[u8]) -> Vec<u16> {
    let (cells, _) = key.as_chunks::<2>();
    cells.iter().map(|cell| u16::from_be_bytes(*cell)).collect()
}

/// The digits of a value's order bytes.
pub fn digits(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|b| [b >> 4, b & 15]).collect()
}

/// The digits that the least of these cells may have; they share their r, and ascend.
fn possible(first: u16, last: u16) -> std::ops::RangeInclusive<u16> {
    let span = last - first;
    let most = first.min((BASE - 1).saturating_sub(span));
    // the last cell is r + its digit, and r is at most LAST_MASK
    let least = first.saturating_sub(LAST_MASK);
    least..=most.max(least)
}

/// Ranges of equal cells at a depth, in a sorted slice.
fn groups(keys: &[Vec<u16>], depth: usize) -> Vec<(u16, std::ops::Range<usize>)> {
    let mut found: Vec<(u16, std::ops::Range<usize>)> = Vec::new();
    for (at, key) in keys.iter().enumerate() {
        let Some(cell) = key.get(depth).copied() else {
            continue;
        };
        match found.last_mut() {
            Some((last, range)) if *last == cell => range.end = at + 1,
            _ => found.push((cell, at..at + 1)),
        }
    }
    found
}

/// Bits of a key that nobody can tell from the keys alone, for each key. The keys are sorted and
/// differ.
pub fn bits_left(keys: &[Vec<u16>]) -> Vec<f64> {
    let mut left = vec![0.0; keys.len()];
    descend(keys, 0, 0, &mut left);
    left
}

fn descend(keys: &[Vec<u16>], start: usize, depth: usize, left: &mut [f64]) {
    let groups = groups(keys, depth);
    let (Some((first, _)), Some((last, _))) = (groups.first(), groups.last()) else {
        return;
    };
    let bits = (possible(*first, *last).count() as f64).log2();
    for (_, range) in groups {
        for key in range.clone() {
            left[start + key] += bits;
        }
        descend(&keys[range.clone()], start + range.start, depth + 1, left);
    }
}

/// A value that is known: its digits, and about how many rows have it.
pub struct Expected {
    /// See [`digits`].
    pub digits: Vec<u8>,
    /// Its weight.
    pub weight: f64,
}

/// Guesses the digits of all keys from the first to the last: at each branch the least digit that
/// makes the rows below it most likely, as the known values with these digits before go. Both lists
/// are sorted.
pub fn guess_digits(keys: &[Vec<u16>], rows: &[f64], known: &[Expected]) -> Vec<Vec<u8>> {
    let mut guesses: Vec<Vec<u8>> = keys.iter().map(|k| Vec::with_capacity(k.len())).collect();
    guess_branch(keys, rows, known, 0, &mut guesses);
    guesses
}

fn guess_branch(
    keys: &[Vec<u16>],
    rows: &[f64],
    known: &[Expected],
    depth: usize,
    guesses: &mut [Vec<u8>],
) {
    let groups = groups(keys, depth);
    let (Some((first, _)), Some((last, _))) = (groups.first(), groups.last()) else {
        return;
    };
    let (first, possible) = (*first, possible(*first, *last));
    let mut expected = [UNKNOWN; BASE as usize];
    for value in known {
        if let Some(digit) = value.digits.get(depth) {
            expected[usize::from(*digit)] += value.weight;
        }
    }
    let likelihood = |least: u16| -> f64 {
        let of_group = |(cell, range): &(u16, std::ops::Range<usize>)| {
            let digit = usize::from(least + (cell - first)).min(15);
            rows[range.clone()].iter().sum::<f64>() * expected[digit].ln()
        };
        groups.iter().map(of_group).sum()
    };
    let least = possible
        .max_by(|a, b| likelihood(*a).total_cmp(&likelihood(*b)))
        .unwrap_or_default();
    for (cell, range) in groups {
        let digit = (least + (cell - first)).min(15) as u8;
        guesses[range.clone()]
            .iter_mut()
            .for_each(|guess| guess.push(digit));
        let of = |value: &Expected| value.digits.get(depth).copied();
        let below = known.partition_point(|v| of(v) < Some(digit));
        let above = known.partition_point(|v| of(v) <= Some(digit));
        guess_branch(
            &keys[range.clone()],
            &rows[range.clone()],
            &known[below..above],
            depth + 1,
            &mut guesses[range],
        );
    }
}

/// The known values that have the guessed digits.
pub fn values_of(guessed: &[Vec<u8>], known: &[Expected]) -> Guesses {
    let find = |digits: &Vec<u8>| {
        known
            .binary_search_by(|value| value.digits.as_slice().cmp(digits))
            .ok()
    };
    guessed.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use onionskin_crypt::{ColumnCipher, ColumnId, DataKey, Suite};
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    fn keys(values: impl IntoIterator<Item = u16>, seed: u64) -> Vec<Vec<u16>> {
        let id = ColumnId {
            table: [1; 8],
            column: [2; 4],
        };
        let key = DataKey::generate(&mut StdRng::seed_from_u64(seed));
        let cipher = ColumnCipher::new(Suite::Aes, 1, &key, id, None);
        let key = |value: u16| {
            let mut key = Vec::new();
            cipher.order_key(&value.to_be_bytes(), &mut key);
            cells(&key)
        };
        values.into_iter().map(key).collect()
    }

    fn expected(values: &[(u16, f64)]) -> Vec<Expected> {
        let one = |(value, weight): &(u16, f64)| Expected {
            digits: digits(&value.to_be_bytes()),
            weight: *weight,
        };
        values.iter().map(one).collect()
    }

    #[test]
    fn one_key_alone_keeps_all_of_its_bits() {
        // Four digits; a cell at an end of its range is one in 4,368.
        assert_eq!(bits_left(&keys([0x1234], 1)), [16.0]);
    }

    #[test]
    fn a_full_branch_is_read_and_an_open_one_keeps_what_its_span_leaves() {
        // 0x3000 to 0x300f: three digits nobody knows, the last one plain.
        assert_eq!(bits_left(&keys(0x3000..=0x300f, 2)), [12.0; 16]);
        // Digits that differ by 7 have nine places: log2 9 bits.
        let left = bits_left(&keys([0x3001, 0x3008], 2));
        assert!((left[0] - (12.0 + 9f64.log2())).abs() < 1e-9, "{left:?}");
        // Every value of the domain: nothing is left.
        assert_eq!(bits_left(&keys(0..=u16::MAX, 3)), [0.0; 1 << 16]);
    }

    #[test]
    fn cells_at_the_ends_of_their_range_say_more() {
        assert_eq!(possible(3, 5), 0..=3);
        assert_eq!(possible(u16::MAX, u16::MAX), 15..=15);
        assert_eq!(possible(30_000, 30_004), 0..=11);
    }

    #[test]
    fn digits_are_guessed_by_what_is_known() {
        let values = [0x1003, 0x1007, 0x2001, 0x200f];
        let rows = [5.0, 60.0, 30.0, 5.0];
        let known = expected(&[
            (0x0001, 1.0),
            (0x1003, 4.0),
            (0x1007, 62.0),
            (0x2001, 28.0),
            (0x200f, 5.0),
        ]);
        let guessed = guess_digits(&keys(values, 4), &rows, &known);
        assert_eq!(
            values_of(&guessed, &known),
            [Some(1), Some(2), Some(3), Some(4)]
        );
    }

    #[test]
    fn without_knowledge_only_what_is_plain_is_right() {
        let keys = keys(0x3000..=0x300f, 5);
        let guessed = guess_digits(&keys, &[1.0; 16], &[]);
        let last: Vec<u8> = guessed.iter().map(|digits| digits[3]).collect();
        assert_eq!(last, (0..16).collect::<Vec<u8>>());
        assert_eq!(values_of(&guessed, &[]), [None; 16]);
    }
}
