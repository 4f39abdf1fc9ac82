//! Conditions that the proxy decides, wholly or in part.
//!
//! A condition is taken apart at AND, OR and NOT. Negations are pushed down to the leaves (which
//! SQL's three-valued logic allows), so that the condition is true exactly if enough leaves are
//! true, and a leaf may be replaced by one that is true of more rows: the whole is then true of
//! more rows as well, never of fewer. That makes the text for the server a condition for
//! *candidates*, and the [`Test`] beside it the one that decides.
//!
//! The tree tells what the parts mean, the tokens where they stand; both are walked in step.

use std::ops::Range;

use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};

use crate::errors::NotUnderstood;
use crate::finishing::{Comparison, Test};
use crate::lex::{Token, TokenKind};
use crate::plan::{Piece, Text};
use crate::planner::{Planned, Planner, TextBuilder};

/// What a leaf of a condition becomes: a text that is true of all rows of which the leaf is true,
/// and the test that decides.
pub(crate) type Leaf<'l> =
    dyn FnMut(&mut Planner<'_>, &Expr, Range<usize>, bool) -> Planned<(Text, Test)> + 'l;

/// The comparison that an operator makes.
pub(crate) fn comparison_of(op: &BinaryOperator) -> Option<Comparison> {
    Some(match op {
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        _ => return None,
    })
}

/// The sides of a comparison with constants: `k BETWEEN 1 AND 2` is `k >= 1` and `k <= 2`.
pub(crate) struct Comparisons<'e> {
    /// What is compared.
    pub subject: &'e Expr,
    /// With what, and how.
    pub with: Vec<(Comparison, &'e Expr)>,
    /// One of them suffices.
    pub any: bool,
}

impl<'e> Comparisons<'e> {
    /// Reads `a < b`, BETWEEN and IN; the left side is the subject.
    pub fn of(expr: &'e Expr) -> Option<Self> {
        Some(match expr {
            Expr::BinaryOp { left, op, right } => Comparisons {
                subject: left,
                with: vec![(comparison_of(op)?, right)],
                any: false,
            },
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let inside = Comparisons {
                    subject: expr,
                    with: vec![
                        (Comparison::GreaterOrEqual, low),
                        (Comparison::LessOrEqual, high),
                    ],
                    any: false,
                };
                if *negated { inside.negated() } else { inside }
            }
            Expr::InList {
                expr,
                list,
                negated,
            } => {
                let inside = Comparisons {
                    subject: expr,
                    with: list.iter().map(|e| (Comparison::Equal, e)).collect(),
                    any: true,
                };
                if *negated { inside.negated() } else { inside }
            }
            _ => return None,
        })
    }

    /// The same of `5 > k`: the right side becomes the subject.
    pub fn mirrored(self) -> Option<Self> {
        match self.with.as_slice() {
            [(comparison, other)] if !self.any => Some(Comparisons {
                subject: other,
                with: vec![(comparison.mirrored(), self.subject)],
                any: false,
            }),
            _ => None,
        }
    }

    /// What is true exactly where this is false.
    pub fn negated(self) -> Self {
        Comparisons {
            subject: self.subject,
            with: self
                .with
                .into_iter()
                .map(|(comparison, e)| (comparison.negated(), e))
                .collect(),
            any: !self.any,
        }
    }
}

/// The operands of a row of ANDs or ORs.
fn chain<'e>(expr: &'e Expr, wanted: &BinaryOperator, out: &mut Vec<&'e Expr>) {
    match expr {
        Expr::BinaryOp { left, op, right } if op == wanted => {
            chain(left, wanted, out);
            chain(right, wanted, out);
        }
        other => out.push(other),
    }
}

impl Planner<'_> {
    /// The conjuncts of a condition, with their tokens.
    pub(crate) fn conjuncts<'e>(
        &self,
        condition: &'e Expr,
        tokens: Range<usize>,
    ) -> Planned<Vec<(&'e Expr, Range<usize>)>> {
        self.operands(condition, &BinaryOperator::And, tokens)
    }

    fn operands<'e>(
        &self,
        expr: &'e Expr,
        op: &BinaryOperator,
        tokens: Range<usize>,
    ) -> Planned<Vec<(&'e Expr, Range<usize>)>> {
        let mut operands = Vec::new();
        chain(expr, op, &mut operands);
        if operands.len() > 1 && self.reads_otherwise(tokens.clone()) {
            return NotUnderstood::Beside("XOR, || or &&", "AND or OR").refuse();
        }
        let word = if *op == BinaryOperator::And {
            "and"
        } else {
            "or"
        };
        let places = if operands.len() > 1 {
            self.split_words(tokens, word)
        } else {
            std::iter::once(tokens).collect()
        };
        if places.len() != operands.len() || places.iter().any(Range::is_empty) {
            return NotUnderstood::Condition.refuse();
        }
        Ok(operands.into_iter().zip(places).collect())
    }

    /// Whether XOR, `||`, `&&` or `:=` stands among the tokens: the parser binds them tighter than
    /// AND, the server does not, so that the tree is not the server's.
    pub(crate) fn reads_otherwise(&self, tokens: Range<usize>) -> bool {
        let (sql, tokens) = (self.sql(), &self.tokens[tokens]);
        let pairs = [(b'|', b'|'), (b'&', b'&'), (b':', b'=')];
        let is_pair = |t: &[Token]| pairs.iter().any(|(a, b)| t[0].is(*a) && t[1].is(*b));
        tokens.iter().any(|t| t.is_word(sql, "xor")) || tokens.windows(2).any(is_pair)
    }

    /// Cuts tokens at AND or OR outside of parentheses, CASE and BETWEEN.
    fn split_words(&self, range: Range<usize>, word: &str) -> Vec<Range<usize>> {
        let sql = self.sql();
        let mut parts = Vec::new();
        let (mut depth, mut between, mut from) = (0usize, 0usize, range.start);
        for at in range.clone() {
            let token = &self.tokens[at];
            if token.is(b'(') || token.is_word(sql, "case") {
                depth += 1;
            } else if token.is(b')') || (depth > 0 && token.is_word(sql, "end")) {
                depth = depth.saturating_sub(1);
            } else if depth > 0 || token.kind != TokenKind::Word {
                continue;
            } else if token.is_word(sql, "between") {
                between += 1;
            } else if between > 0 && token.is_word(sql, "and") {
                between -= 1;
            } else if token.is_word(sql, word) {
                parts.push(from..at);
                from = at + 1;
            }
        }
        parts.push(from..range.end);
        parts
    }

    /// Walks a condition down to its leaves.
    pub(crate) fn formula(
        &mut self,
        expr: &Expr,
        tokens: Range<usize>,
        negated: bool,
        leaf: &mut Leaf<'_>,
    ) -> Planned<(Text, Test)> {
        match expr {
            Expr::Nested(inner) => {
                let close = self.closing(tokens.start)?;
                if close + 1 != tokens.end || !self.tokens[tokens.start].is(b'(') {
                    return NotUnderstood::Parentheses.refuse();
                }
                self.formula(inner, tokens.start + 1..close, negated, leaf)
            }
            Expr::UnaryOp {
                op: UnaryOperator::Not | UnaryOperator::BangNot,
                expr: inner,
            } => {
                // without parentheses, how far NOT reaches depends on the session's sql_mode
                if !matches!(inner.as_ref(), Expr::Nested(_)) {
                    return NotUnderstood::Without("NOT", "parentheses").refuse();
                }
                self.formula(inner, tokens.start + 1..tokens.end, !negated, leaf)
            }
            Expr::BinaryOp {
                op: op @ (BinaryOperator::And | BinaryOperator::Or),
                ..
            } => {
                let all = (*op == BinaryOperator::And) != negated;
                let mut text = TextBuilder::default();
                let mut tests = Vec::new();
                text.sql(b"(");
                for (i, (operand, place)) in
                    self.operands(expr, op, tokens)?.into_iter().enumerate()
                {
                    if i > 0 {
                        text.sql(if all { b" AND " } else { b" OR " });
                    }
                    let (part, test) = self.formula(operand, place, negated, leaf)?;
                    part.into_iter().for_each(|piece| text.piece(piece));
                    tests.push(test);
                }
                text.sql(b")");
                let test = if all {
                    Test::All(tests)
                } else {
                    Test::Any(tests)
                };
                Ok((text.finish(), test))
            }
            _ => leaf(self, expr, tokens, negated),
        }
    }
}

/// `(text)`, or `(NOT (text))`.
pub(crate) fn parenthesized(text: Text, negated: bool) -> Text {
    let (open, close) = if negated {
        ("(NOT (", "))")
    } else {
        ("(", ")")
    };
    let mut out = TextBuilder::default();
    out.sql(open.as_bytes());
    text.into_iter().for_each(|piece: Piece| out.piece(piece));
    out.sql(close.as_bytes());
    out.finish()
}
