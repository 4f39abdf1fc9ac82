//! LIKE by an index over grams: the condition that leaves the candidates.
//!
//! A row that the pattern matches has every gram of the pattern (crate `value`, module `like`). So
//!
//! ```text
//! MariaDB    c LIKE '%needle%'    MATCH (c$gram) AGAINST ('+token +token +token' IN BOOLEAN MODE)
//! MySQL      c LIKE '%needle%'    token MEMBER OF (c$gram) AND token MEMBER OF (c$gram) AND …
//! ```
//!
//! is true of every row that is wanted, and the proxy matches the candidates.
//!
//! # How many numbers
//!
//! When a row changes, InnoDB writes the values that indexes over expressions have and had to one
//! undo page, and refuses the change if they do not fit (ER_UNDO_RECORD_TOO_BIG). On pages of 16
//! KiB there is room for about 400 numbers before and 400 after the change, 264 if two columns of
//! 3,900 bytes change as well. So all cells of a row together have at most 256. A text with more
//! grams than its share is kept under one number for all such texts ([`TOO_MANY`]); they are
//! candidates of every pattern.

use std::ops::Range;

use onionskin_schema::{Column, GramForm, Table};
use onionskin_value::Family;
use sqlparser::ast::Expr;

use crate::plan::{ColumnUse, Escape, Piece, Purpose, Source};
use crate::planner::{Planner, TextBuilder};

/// Grams of a pattern that MySQL looks up.
pub const LOOKED_UP: u8 = 3;

/// The number of texts that have too many grams: one that no token is.
pub const TOO_MANY: u32 = 729_000_000;

/// The most numbers in a row.
const IN_ROW: usize = 256;

/// The most grams of a text that are kept as numbers in a cell of a table.
pub fn most_numbers(table: &Table) -> usize {
    let numbers = |column: &&Column| matches!(column.grams(), Some((_, GramForm::Numbers)));
    IN_ROW / table.columns.iter().filter(numbers).count().max(1)
}

impl Planner<'_> {
    /// The further condition by which an index over the column's grams finds the candidates of
    /// LIKE, if it has one that can be trusted.
    pub(crate) fn gram_condition(
        &mut self,
        subject: &Expr,
        place: &Range<usize>,
        column: &ColumnUse,
        pattern: Source,
        escape: Escape,
    ) -> Option<Piece> {
        let (gram, form) = column.column().grams()?;
        if column.table.view {
            return None;
        }
        let named = self.physical(subject, place, gram);
        let mut text = TextBuilder::default();
        match (form, self.request.settings.family) {
            (GramForm::Words, Family::MariaDb) if !self.locks => {
                text.sql(b" AND MATCH(");
                named.into_iter().for_each(|piece| text.piece(piece));
                text.sql(b") AGAINST (");
                text.piece(self.slot(column, Purpose::CandidateGrams(escape), pattern));
                text.sql(b" IN BOOLEAN MODE)");
            }
            (GramForm::Numbers, Family::MySql) => {
                text.sql(format!(" AND ({TOO_MANY} MEMBER OF(").as_bytes());
                named.iter().cloned().for_each(|piece| text.piece(piece));
                text.sql(b") OR ");
                for nth in 0..LOOKED_UP {
                    text.sql(if nth == 0 { b"" } else { b" AND " });
                    text.sql(b"CAST(");
                    text.piece(self.slot(column, Purpose::CandidateGram(escape, nth), pattern));
                    text.sql(b" AS UNSIGNED) MEMBER OF(");
                    named.iter().cloned().for_each(|piece| text.piece(piece));
                    text.sql(b")");
                }
                text.sql(b")");
            }
            _ => return None,
        }
        Some(Piece::Indexed(text.finish()))
    }
}
