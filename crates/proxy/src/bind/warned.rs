//! Whether other values of a statement may have raised warnings before one that is refused. The
//! server would show those, and the proxy does not know them.

use onionskin_plan::{Action, Literal, LiteralKind, Piece, Source, Verb};
use onionskin_value::Family;

use super::Binder;

impl Binder<'_> {
    /// Whether the statement has plain values, which the server has not seen, that may have raised
    /// warnings before this one. New rows are looked at value by value, in the order of the text.
    pub(super) fn others_may_warn(&self, refused: Source) -> bool {
        let refused = match refused {
            Source::Literal { index, .. } => Some(index),
            _ => None,
        };
        let facts = &self.keyed.plan.facts;
        // its own word is the one that is allowed for; how many rows are folded is not known here
        let is_only = refused.is_none() && facts.defaults == 1 && !self.keyed.plan.folds_rows();
        if facts.defaults > 0 && !is_only {
            return true;
        }
        if refused.is_none() && self.state.family == Family::MariaDb {
            // where in the statement it stands is not known here
            return !self
                .values
                .literals
                .iter()
                .all(|l| l.kind == LiteralKind::Integer);
        }
        if matches!(facts.verb, Verb::Insert | Verb::Replace) {
            let from = refused.map_or(0, |index| index + 1);
            // MariaDB looks at the row's other values all the same
            let behind = match self.state.family {
                Family::MariaDb => from..self.end_of_row(from),
                Family::MySql => 0..0,
            };
            return self.plain_may_warn || behind.into_iter().any(|index| self.may_warn(index));
        }
        let mut others = self.values.literals.iter().enumerate();
        !self.warnings.is_empty()
            || others.any(|(index, literal)| {
                let is_refused = Some(index) == refused && literal.kind != LiteralKind::Integer;
                !is_refused && self.may_warn(index)
            })
    }

    /// How many literals stand before the end of the new row with the literal before this one.
    fn end_of_row(&self, behind: usize) -> usize {
        let plan = &self.keyed.plan;
        if let Some(end) = plan.row_ends.iter().find(|end| **end >= behind) {
            return *end;
        }
        let text = match &plan.action {
            Action::Server { text, .. } => text.as_slice(),
            _ => &[],
        };
        let folded = text.iter().find_map(|piece| match piece {
            Piece::Rows {
                first_literal,
                per_row,
                ..
            } => Some((*first_literal, *per_row)),
            _ => None,
        });
        match folded {
            Some((first, per_row)) if per_row > 0 && behind > first => {
                first + (behind - first).div_ceil(per_row) * per_row
            }
            _ => self.values.literals.len(),
        }
    }

    /// Whether storing a literal in a plain column may raise a warning: anything but whole numbers.
    /// One that fits no integer type is warned of by itself.
    pub(super) fn may_warn(&self, index: usize) -> bool {
        let whole = |l: &Literal| match l.kind {
            LiteralKind::Integer => l.end - l.start < 19,
            LiteralKind::Parameter => {
                let number = self.values.param_number(index);
                number.is_some_and(|n| self.values.is_integer(n))
            }
            _ => false,
        };
        !self.values.literals.get(index).is_some_and(whole)
    }
}
