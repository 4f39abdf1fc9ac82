//! Two columns of tokens at once: which values of one go with which of the other is known, too.
//!
//! Each column alone may have values that are about as frequent as others. Together with the other
//! column's they differ: a ward has its diagnoses. The columns are matched in turn, each by
//! the company of what the other one is taken for.

use super::{
    Guesses, frequency,
    together::{Together, distance, rematch},
};

/// Most tokens of a column, or values, that are matched.
pub const MOST: usize = 256;
/// Turns of both columns at most.
const ROUNDS: usize = 8;

/// Rows by the pair of their members in both columns, as shares.
pub struct Pairs {
    /// How many members each column has.
    pub members: [usize; 2],
    /// The member in each column, and the rows.
    pub rows: Vec<(usize, usize, f64)>,
}

impl Pairs {
    /// The first column's view of the second, and the other way round.
    fn together(&self) -> [Together; 2] {
        let [firsts, seconds] = self.members;
        let mut views = [
            Together::new(firsts, seconds),
            Together::new(seconds, firsts),
        ];
        let sum: f64 = self.rows.iter().map(|(_, _, rows)| rows).sum();
        for (first, second, rows) in &self.rows {
            let share = rows / sum.max(f64::MIN_POSITIVE);
            let [one, other] = &mut views;
            one.alone[*first] += share;
            one.with[*first][*second] += share;
            other.alone[*second] += share;
            other.with[*second][*first] += share;
        }
        views
    }
}

/// Guesses for both columns. `None` if one has more than [`MOST`] members.
pub fn guess(seen: &Pairs, known: &Pairs) -> Option<[Guesses; 2]> {
    let members = seen.members.iter().chain(&known.members);
    if members
        .copied()
        .any(|members| members > MOST || members == 0)
    {
        return None;
    }
    let (seen, known) = (seen.together(), known.together());
    let ranks = [0, 1].map(|c| frequency::by_rank(&seen[c].alone, &known[c].alone));
    // Which column is surer to begin with is not known beforehand: both are tried.
    let ends = [0, 1].map(|surer| {
        let mut guesses = ranks.clone();
        for _ in 0..ROUNDS {
            let before = guesses.clone();
            for column in [1 - surer, surer] {
                guesses[column] = rematch(&seen[column], &known[column], &guesses[1 - column]);
            }
            if guesses == before {
                break;
            }
        }
        let far = distance(&seen[0], &known[0], &guesses[0], &guesses[1]);
        (far, guesses)
    });
    let [first, second] = ends;
    Some(if first.0 <= second.0 {
        first.1
    } else {
        second.1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four equally frequent diagnoses; each has a ward of its own, and wards differ in size.
    #[test]
    fn a_correlated_column_tells_what_frequencies_do_not() {
        let known = Pairs {
            members: [4, 5],
            rows: vec![
                (0, 0, 20.0),
                (0, 4, 5.0),
                (1, 1, 15.0),
                (1, 4, 10.0),
                (2, 2, 12.0),
                (2, 4, 13.0),
                (3, 3, 9.0),
                (3, 4, 16.0),
            ],
        };
        // tokens: diagnoses in another order (place of the value by token)
        let diagnosis = [2, 0, 3, 1];
        let ward = [4, 1, 3, 0, 2];
        let token = |of: &[usize], value: usize| of.iter().position(|v| *v == value);
        let rows = known.rows.iter().map(|(d, w, rows)| {
            let (d, w) = (token(&diagnosis, *d), token(&ward, *w));
            (d.expect("there"), w.expect("there"), rows * 3.0)
        });
        let seen = Pairs {
            members: [4, 5],
            rows: rows.collect(),
        };
        let alone = frequency::by_rank(&[25.0; 4], &[25.0; 4]);
        let all = |values: &[usize]| -> Guesses { values.iter().copied().map(Some).collect() };
        assert_ne!(alone, all(&diagnosis), "by frequency it is chance");
        let guessed = guess(&seen, &known).expect("few members");
        assert_eq!(guessed, [all(&diagnosis), all(&ward)]);
    }

    #[test]
    fn columns_with_many_members_are_left_alone() {
        let pairs = |members| Pairs {
            members,
            rows: Vec::new(),
        };
        assert!(guess(&pairs([2, MOST + 1]), &pairs([2, 2])).is_none());
        assert!(guess(&pairs([2, 0]), &pairs([2, 2])).is_none());
    }
}
