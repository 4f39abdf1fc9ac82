//! CHECK constraints over protected columns: which of them a value breaks.
//!
//! The server raises the error. See `check.rs` of `onionskin_schema`.

use std::cmp::Ordering;

use onionskin_plan::{ColumnUse, errors};
use onionskin_schema::{CheckConstant, Comparison, Condition};
use onionskin_value::{
    Comparand, Context, Escape, Kind, LikePattern, Pattern, SqlMode, SqlType, cmp, compare,
};

use super::Binder;
use crate::error::{Failure, Outcome};

impl Binder<'_> {
    /// The numbers of the column's conditions that are false of this payload.
    pub(super) fn violated(&self, column: usize, payload: &[u8]) -> Outcome<Vec<usize>> {
        let used = &self.keyed.plan.columns[column];
        let Some(protection) = &used.column().protection else {
            return Ok(Vec::new());
        };
        let judge = Judge {
            ty: &protection.sql_type,
            context: self.context(column, 1),
            used,
            payload,
        };
        let mut violated = Vec::new();
        for (number, check) in protection.checks.iter().enumerate() {
            if !check.unenforced && !judge.holds(&check.condition)? {
                violated.push(number);
            }
        }
        Ok(violated)
    }
}

/// A value that is no NULL, beside the conditions on its column.
struct Judge<'a> {
    ty: &'a SqlType,
    context: Context<'a>,
    used: &'a ColumnUse,
    payload: &'a [u8],
}

impl Judge<'_> {
    /// Whether a condition is true. Of a value, and without NULL among the constants, it is false
    /// otherwise.
    fn holds(&self, condition: &Condition) -> Outcome<bool> {
        Ok(match condition {
            Condition::All(parts) => {
                for part in parts {
                    if !self.holds(part)? {
                        return Ok(false);
                    }
                }
                true
            }
            Condition::Any(parts) => {
                for part in parts {
                    if self.holds(part)? {
                        return Ok(true);
                    }
                }
                false
            }
            Condition::Null => false,
            Condition::NotNull => true,
            Condition::Compare(operator, constant) => operator.holds(self.beside(constant)?),
            Condition::Reversed(constant, operator) => {
                operator.mirrored().holds(self.beside(constant)?)
            }
            Condition::Between(low, high) => self.is_between(low, high)?,
            Condition::NotBetween(low, high) => !self.is_between(low, high)?,
            Condition::In(list) => self.is_in(list)?,
            Condition::NotIn(list) => !self.is_in(list)?,
            Condition::Like(pattern) => self.is_like(pattern)?,
            Condition::NotLike(pattern) => !self.is_like(pattern)?,
        })
    }

    fn is_between(&self, low: &CheckConstant, high: &CheckConstant) -> Outcome<bool> {
        let is_above = Comparison::GreaterOrEqual.holds(self.beside(low)?);
        Ok(is_above && Comparison::LessOrEqual.holds(self.beside(high)?))
    }

    fn is_in(&self, list: &[CheckConstant]) -> Outcome<bool> {
        for constant in list {
            if self.beside(constant)?.is_eq() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How the value stands to a constant.
    fn beside(&self, constant: &CheckConstant) -> Outcome<Ordering> {
        let mut other = Vec::new();
        let place = compare(self.ty, constant.input(), &self.context, &mut other)
            .map_err(|e| self.unclear(&e.to_string()))?;
        let order = |other: &[u8]| {
            cmp(self.ty, self.payload, other).map_err(|e| self.unclear(&e.to_string()))
        };
        Ok(match place {
            Comparand::Exact => order(&other)?,
            Comparand::Between => match order(&other)? {
                Ordering::Greater => Ordering::Greater,
                _ => Ordering::Less,
            },
            Comparand::BelowAll => Ordering::Greater,
            Comparand::AboveAll => Ordering::Less,
            Comparand::Null => return Err(self.unclear("NULL")),
        })
    }

    fn is_like(&self, pattern: &CheckConstant) -> Outcome<bool> {
        let pads = self
            .context
            .sql_mode
            .contains(SqlMode::PAD_CHAR_TO_FULL_LENGTH);
        if pads && matches!(self.ty.kind, Kind::Char { .. }) {
            return Err(self.unclear("LIKE under PAD_CHAR_TO_FULL_LENGTH"));
        }
        let read = LikePattern::read(self.ty, pattern.input(), Escape::Backslash);
        match read.map_err(|e| self.unclear(&e.to_string()))? {
            Pattern::Like(pattern) => pattern
                .matches(self.payload)
                .map_err(|e| self.unclear(&e.to_string())),
            Pattern::Null => Err(self.unclear("NULL")),
        }
    }

    fn unclear(&self, why: &str) -> Failure {
        let about = format!("{} (CHECK: {why})", self.used.path());
        Failure::refused(&errors::VALUE, about)
    }
}
