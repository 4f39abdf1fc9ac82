//! What a finishing select asks the server for: the client's columns, then those that only the
//! proxy needs.

use std::ops::Range;
use std::sync::Arc;

use sqlparser::ast::Expr;

use crate::plan::{ColumnUse, OpenFrom, ResultItem, Text};
use crate::planner::{Planner, TextBuilder};
use crate::scope::Scope;

/// The columns to be fetched, in order.
#[derive(Default)]
pub(crate) struct Fetched {
    /// How each of them opens.
    pub items: Vec<ResultItem>,
    /// Their texts; a `*` is one text for several columns.
    pub texts: Vec<Text>,
    /// Which of them are a protected column, and of which source.
    cells: Vec<(ColumnUse, String, usize)>,
}

impl Fetched {
    /// Adds a column.
    pub fn push(&mut self, item: ResultItem, text: Text) -> usize {
        self.items.push(item);
        self.texts.push(text);
        self.items.len() - 1
    }

    /// Adds a column of the server's own that the client does not see.
    pub fn plain(&mut self, text: Text) -> usize {
        self.push(ResultItem::plain(), aliased(text))
    }

    /// Remembers that a fetched column shows a protected one.
    pub fn shows(&mut self, column: &ColumnUse, source: String, at: usize) {
        self.cells.push((column.clone(), source, at));
    }

    /// The fetched column that shows this one, if any does.
    pub fn find(&self, column: &ColumnUse, source: &str) -> Option<usize> {
        self.cells
            .iter()
            .find(|(c, s, _)| {
                Arc::ptr_eq(&c.table, &column.table)
                    && c.index == column.index
                    && s.eq_ignore_ascii_case(source)
            })
            .map(|(_, _, at)| *at)
    }

    /// The fetched sealed cell of a column that stands at `last`, added if it is not there yet.
    pub fn cell(
        &mut self,
        planner: &mut Planner<'_>,
        expr: &Expr,
        last: &Range<usize>,
        column: &ColumnUse,
        scope: &Scope,
    ) -> usize {
        let source = scope.source_of(expr, column);
        if let Some(at) = self.find(column, &source) {
            return at;
        }
        let item = ResultItem::opened(planner.column_index(column), OpenFrom::Sealed, None);
        let text = planner.physical(unnested(expr), last, column.sealed());
        let at = self.push(item, text);
        self.shows(column, source, at);
        at
    }

    /// The rank of each row by an expression: equal where it is equal, in its order.
    pub fn rank(&mut self, expression: Text) -> usize {
        let mut text = TextBuilder::default();
        text.sql(b"DENSE_RANK() OVER (ORDER BY ");
        expression.into_iter().for_each(|piece| text.piece(piece));
        text.sql(b")");
        self.plain(text.finish())
    }

    /// The select list.
    pub fn list(&self, out: &mut TextBuilder) {
        for (i, text) in self.texts.iter().enumerate() {
            if i > 0 {
                out.sql(b", ");
            }
            text.iter().for_each(|piece| out.piece(piece.clone()));
        }
    }
}

/// A text with a name of our own. Without one, MySQL calls what comes out of a temporary table by
/// its text, in which physical names may stand.
pub(crate) fn aliased(text: Text) -> Text {
    let mut out = TextBuilder::default();
    text.into_iter().for_each(|piece| out.piece(piece));
    out.sql(b" AS `onionskin$`");
    out.finish()
}

/// An expression without the parentheses around it.
pub(crate) fn unnested(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => unnested(inner),
        other => other,
    }
}
