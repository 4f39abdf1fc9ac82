//! What binding keeps between statements: memory that is used again, and what was read ahead of a
//! statement for its slots.

use std::collections::HashMap;

use onionskin_plan::{Escape, Source, grams::LOOKED_UP};
use onionskin_value::Warning;

use super::present_time::PresentTime;
use crate::touched::Cells;

/// Buffers that live as long as the session.
#[derive(Default)]
pub(crate) struct Buffers {
    /// Cells that were sealed, to be counted at the end of the statement.
    pub sealed: Cells,
    pub(super) literal: Vec<u8>,
    pub payload: Vec<u8>,
    pub(super) weight: Vec<u8>,
    pub(super) filled: Vec<u8>,
    /// Cells that an upsert sends again.
    pub kept: Kept,
    /// The time of the statement, once it was asked for.
    pub present: Option<PresentTime>,
    /// By which grams the patterns of the statement are looked up.
    pub looked_up: Vec<LookedUp>,
    /// A value was refused beside others that may have raised warnings before it.
    pub refused_among_others: bool,
    /// It is of the only new row, whose columns the statement names.
    pub refused_in_listed_row: bool,
    /// What the values before one that was refused have raised.
    pub before_refused: Vec<Warning>,
    /// How often the server raises the error of the value that was refused: see
    /// [`times_out_of_range`].
    pub refused_times: u64,
}

/// Cells that are sent again.
#[derive(Default)]
pub(crate) struct Kept {
    /// Of a new row, by column, source and row as [`Binder::fill`] is given them.
    pub cells: HashMap<(usize, Source, u64), Vec<u8>>,
    /// For [`Purpose::Kept`], by column: cells one behind the other.
    pub constants: HashMap<usize, Vec<u8>>,
}

/// The numbers that the candidates of one LIKE are looked up by, the rarest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LookedUp {
    pub column: usize,
    pub pattern: Source,
    pub escape: Escape,
    pub numbers: Vec<u32>,
}

impl LookedUp {
    /// The nth of them, or, if there are fewer, one of them again.
    pub fn number(&self, nth: u8) -> Option<u32> {
        let numbers = self.numbers.iter().take(usize::from(LOOKED_UP));
        numbers.cycle().nth(usize::from(nth)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_numbers_are_looked_up_again() {
        let mut looked_up = LookedUp {
            column: 0,
            pattern: Source::Null,
            escape: Escape::Backslash,
            numbers: vec![7, 5],
        };
        let all =
            |l: &LookedUp| -> Vec<Option<u32>> { (0..LOOKED_UP).map(|n| l.number(n)).collect() };
        assert_eq!(all(&looked_up), [Some(7), Some(5), Some(7)]);
        looked_up.numbers = vec![4, 9, 2, 1];
        assert_eq!(all(&looked_up), [Some(4), Some(9), Some(2)]);
        looked_up.numbers.clear();
        assert_eq!(all(&looked_up), [None; 3]);
    }
}
