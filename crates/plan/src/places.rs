//! Where things stand: ranges of tokens and of bytes.
//!
//! The syntax tree tells what a statement means; edits need to know where its parts are written.
//! Parts are found by counting: the n-th item of the tree is the n-th stretch of tokens between
//! commas outside of parentheses. Callers compare the counts and refuse where they differ.

use std::ops::Range;

use sqlparser::ast::{Expr, ObjectName};

use crate::errors::NotUnderstood;
use crate::planner::{Planned, Planner};

impl Planner<'_> {
    pub(crate) fn judge_name(&mut self, name: &ObjectName) -> Planned<Vec<String>> {
        let mut parts = Vec::new();
        for part in &name.0 {
            let Some(ident) = part.as_ident() else {
                return NotUnderstood::Name.refuse();
            };
            self.judge(ident)?;
            parts.push(ident.value.clone());
        }
        Ok(parts)
    }

    pub(crate) fn bytes_of(&self, tokens: &Range<usize>) -> Range<usize> {
        match (
            self.tokens.get(tokens.start),
            self.tokens.get(tokens.end.wrapping_sub(1)),
        ) {
            (Some(first), Some(last)) if tokens.start < tokens.end => first.start..last.end,
            _ => 0..0,
        }
    }

    /// Cuts a range of tokens at commas outside of parentheses.
    pub(crate) fn split_commas(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let (mut depth, mut from) = (0usize, range.start);
        for at in range.clone() {
            let token = &self.tokens[at];
            if token.is(b'(') {
                depth += 1;
            } else if token.is(b')') {
                depth = depth.saturating_sub(1);
            } else if token.is(b',') && depth == 0 {
                parts.push(from..at);
                from = at + 1;
            }
        }
        parts.push(from..range.end);
        parts
    }

    /// The token that closes the parenthesis at `open`.
    pub(crate) fn closing(&self, open: usize) -> Planned<usize> {
        let mut depth = 0usize;
        for (i, token) in self.tokens.iter().enumerate().skip(open) {
            if token.is(b'(') {
                depth += 1;
            } else if token.is(b')') {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Ok(i);
                }
            }
            if depth == 0 {
                break;
            }
        }
        NotUnderstood::Parentheses.refuse()
    }
}

/// From the first part of a qualified name to its last.
pub(crate) fn bytes_of_expr(planner: &Planner, expr: &Expr, last: &Range<usize>) -> Range<usize> {
    match expr {
        Expr::Nested(inner) => bytes_of_expr(planner, inner, last),
        Expr::CompoundIdentifier(parts) => {
            let start = parts.first().map_or(last.start, |p| planner.offset(p.span));
            start..last.end
        }
        _ => last.clone(),
    }
}
