//! Comparisons that the server narrows and the proxy decides: ranges over strings, and those with
//! columns that keep fewer bits of their companions (`eq:N`, `range:N`).
//!
//! The order key of a long string covers the beginning of its weight string. Of two values that
//! stand in an order, the keys stand in the same order or are equal, so
//!
//! ```text
//! name <  'x'    is true of no row of which    name$ord <= key('x')    is not
//! ```
//!
//! and so on for the other comparisons (`<>` holds for any value that is not NULL). The same is
//! true of keys that are made of a value's first bits; and of tokens that were cut, `=` of two
//! values is true of no two whose tokens differ. The server returns these candidates with their
//! sealed cells, and the proxy compares the values as the column's collation does. Where a column
//! has equality tokens, `=` and IN are left to them.
//!
//! LIKE is decided by the proxy, too. Without grams its candidates are all rows that are not NULL;
//! with them, an index finds those that have the pattern's grams, where LIKE stands alone beside
//! AND: see [`grams`](crate::grams).
//!
//! Parts of the same condition that the server can decide alone are left to it: beside AND they
//! narrow as they stand; beside OR or below NOT their truth is fetched with each row, provided
//! that they may be computed twice without a second effect.

use std::ops::Range;

use onionskin_value::SqlType;
use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator,
};

use crate::comparable::same_tokens;
use crate::errors;
use crate::fetch::{Fetched, unnested};
use crate::finishing::{Compared, Comparison, Operand, Test};
use crate::formula::{Comparisons, parenthesized};
use crate::lex::LiteralKind;
use crate::plan::{Among, ColumnUse, Escape, Piece, Purpose, Source, Text};
use crate::planner::{Planned, Planner, TextBuilder, quoted, refuse};
use crate::scope::Scope;

/// The columns whose order keys or tokens make candidates of a comparison that nothing else
/// answers, and what a constant becomes beside each. All of them narrow. Empty where something else
/// answers, or nothing does.
fn narrowed_by(column: &ColumnUse, comparison: Comparison) -> Vec<(&str, Purpose)> {
    let column = column.column();
    let ord = column
        .ord_name()
        .map(|name| (name, Purpose::CandidateOrder));
    let names = column.protection.as_ref().map(|p| &p.names);
    match comparison {
        Comparison::Equal | Comparison::NotEqual if column.equality_column().is_some() => vec![],
        Comparison::Equal | Comparison::NotEqual => {
            let token = column
                .eq_name()
                .map(|name| (name, Purpose::CompareEquality));
            ord.into_iter().chain(token).collect()
        }
        _ if names.is_some_and(|names| names.exact_order) => vec![],
        _ => ord.into_iter().collect(),
    }
}

/// Functions that do nothing but return a value, whatever they are given.
const PURE: [&str; 34] = [
    "abs",
    "char_length",
    "coalesce",
    "concat",
    "concat_ws",
    "curdate",
    "current_date",
    "current_timestamp",
    "date",
    "date_format",
    "day",
    "dayofweek",
    "greatest",
    "hex",
    "hour",
    "if",
    "ifnull",
    "least",
    "left",
    "length",
    "lower",
    "ltrim",
    "minute",
    "month",
    "now",
    "nullif",
    "quarter",
    "replace",
    "right",
    "round",
    "rtrim",
    "second",
    "upper",
    "year",
];

/// Whether an expression can be computed for candidates that are dropped later: nobody notices.
/// Subqueries, assignments, conversions and functions that may fail, warn or act are noticed.
pub(crate) fn goes_unnoticed(expr: &Expr) -> bool {
    match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) => true,
        Expr::Nested(e) | Expr::IsNull(e) | Expr::IsNotNull(e) => goes_unnoticed(e),
        Expr::UnaryOp { expr, .. } => goes_unnoticed(expr),
        Expr::BinaryOp { left, op, right } => {
            !matches!(op, BinaryOperator::Assignment)
                && goes_unnoticed(left)
                && goes_unnoticed(right)
        }
        Expr::Between {
            expr, low, high, ..
        } => goes_unnoticed(expr) && goes_unnoticed(low) && goes_unnoticed(high),
        Expr::InList { expr, list, .. } => goes_unnoticed(expr) && list.iter().all(goes_unnoticed),
        Expr::Case {
            operand,
            conditions,
            else_result,
            ..
        } => {
            operand.iter().chain(else_result).all(|e| goes_unnoticed(e))
                && conditions
                    .iter()
                    .all(|w| goes_unnoticed(&w.condition) && goes_unnoticed(&w.result))
        }
        Expr::Function(function) => {
            let name = Planner::function_name(function);
            let arguments = match &function.args {
                FunctionArguments::None => true,
                FunctionArguments::Subquery(_) => false,
                FunctionArguments::List(list) => list.args.iter().all(|argument| {
                    matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) if goes_unnoticed(e))
                }),
            };
            arguments && PURE.binary_search(&name.as_str()).is_ok()
        }
        _ => false,
    }
}

/// A comparison that the server can only narrow, turned so that the column is its subject.
struct Narrowing<'e> {
    subject: &'e Expr,
    place: Range<usize>,
    column: ColumnUse,
    /// What it is compared with, and how.
    with: Vec<(Comparison, Other<'e>)>,
    /// One of them suffices.
    any: bool,
    /// The list or range that the constants are.
    among: Option<Among>,
}

/// What a column is compared with.
enum Other<'e> {
    Constant(Source),
    /// A column with the same tokens.
    Column(&'e Expr, Range<usize>, ColumnUse),
}

impl Narrowing<'_> {
    /// What is true exactly where this is false.
    fn negated(self) -> Self {
        let with = self.with.into_iter();
        Narrowing {
            with: with.map(|(c, other)| (c.negated(), other)).collect(),
            any: !self.any,
            ..self
        }
    }
}

/// Whether what is kept of such values is no text. The letters of UUID and INET6 are ASCII, but
/// whether their case counts is told by the collation of the pattern.
fn is_no_text(ty: &SqlType) -> bool {
    ty.is_enumerated() || ty.is_bit() || ty.is_json_value() || ty.is_fixed_binary()
}

/// `column LIKE constant`.
struct Like<'e> {
    subject: &'e Expr,
    place: Range<usize>,
    column: ColumnUse,
    pattern: Source,
    escape: Escape,
    negated: bool,
}

impl Planner<'_> {
    /// LIKE of a protected column and a constant.
    fn liking<'e>(&mut self, leaf: &'e Expr, scope: &Scope) -> Planned<Option<Like<'e>>> {
        let Expr::Like {
            negated,
            any: false,
            expr: subject,
            pattern,
            escape_char,
        } = leaf
        else {
            return Ok(None);
        };
        let Some((place, column)) = self.column_of(subject, scope)? else {
            return Ok(None);
        };
        if column.column().sql_type.is_some_and(|ty| is_no_text(&ty)) {
            return Ok(None);
        }
        let Some((_, pattern)) = self.comparand(pattern, &column) else {
            return Ok(None);
        };
        let kind = |index: usize| self.request.template.literals[index].kind;
        let escape = match escape_char.as_deref().map(|e| self.constant(e)) {
            None if self.request.settings.lex.no_backslash_escapes => return Ok(None),
            None => Escape::Backslash,
            Some(Some((
                _,
                Source::Literal {
                    index,
                    negative: false,
                },
            ))) if kind(index) == LiteralKind::String => Escape::Literal(index),
            Some(_) => return Ok(None),
        };
        Ok(Some(Like {
            subject,
            place,
            column,
            pattern,
            escape,
            negated: *negated,
        }))
    }

    /// The candidates of LIKE. `alone` says that it stands alone beside AND.
    fn like_candidate(
        &mut self,
        like: &Like,
        negated: bool,
        alone: bool,
        scope: &Scope,
        fetched: &mut Fetched,
    ) -> (Text, Test) {
        let Like {
            subject,
            place,
            column,
            pattern,
            escape,
            ..
        } = like;
        let fetch = fetched.cell(self, subject, place, column, scope);
        let mut text = TextBuilder::default();
        text.sql(b"(");
        let named = self.physical(subject, place, column.sealed());
        named.into_iter().for_each(|piece| text.piece(piece));
        text.sql(b" IS NOT NULL");
        if alone && !negated {
            let found = self.gram_condition(subject, place, column, *pattern, *escape);
            found.into_iter().for_each(|piece| text.piece(piece));
        }
        text.sql(b")");
        let test = Test::Like {
            fetch,
            pattern: *pattern,
            escape: *escape,
            negated,
        };
        (text.finish(), test)
    }

    /// Whether a condition has a comparison that the server can only narrow.
    pub(crate) fn narrows(&mut self, expr: &Expr, scope: &Scope) -> Planned<bool> {
        Ok(match expr {
            Expr::Nested(inner)
            | Expr::UnaryOp {
                op: UnaryOperator::Not | UnaryOperator::BangNot,
                expr: inner,
            } => self.narrows(inner, scope)?,
            Expr::BinaryOp {
                left,
                op: BinaryOperator::And | BinaryOperator::Or,
                right,
            } => self.narrows(left, scope)? || self.narrows(right, scope)?,
            leaf => self.narrowing(leaf, scope)?.is_some() || self.liking(leaf, scope)?.is_some(),
        })
    }

    /// A leaf that the server can only narrow.
    fn narrowing<'e>(&mut self, leaf: &'e Expr, scope: &Scope) -> Planned<Option<Narrowing<'e>>> {
        let mut candidates = Vec::new();
        candidates.extend(Comparisons::of(leaf));
        candidates.extend(Comparisons::of(leaf).and_then(Comparisons::mirrored));
        for found in candidates {
            let Some((place, column)) = self.column_of(found.subject, scope)? else {
                continue;
            };
            let narrows = |(c, _): &(Comparison, _)| !narrowed_by(&column, *c).is_empty();
            if !found.with.iter().all(narrows) {
                continue;
            }
            let among = match leaf {
                Expr::InList { list, .. } => {
                    self.alike(&column, list)?;
                    self.among(&column, &list.iter().collect::<Vec<_>>(), false)?
                }
                Expr::Between { low, high, .. } => self.among(&column, &[low, high], true)?,
                _ => None,
            };
            let count = found.with.len();
            let mut with = Vec::new();
            for (comparison, other) in found.with {
                let other = match self.column_of(other, scope)? {
                    Some((place, named)) => {
                        same_tokens(&column, &named).then_some(Other::Column(other, place, named))
                    }
                    None => {
                        let found = self.comparand(other, &column);
                        found.map(|(_, s)| Other::Constant(s))
                    }
                };
                with.extend(other.map(|other| (comparison, other)));
            }
            if with.len() == count {
                return Ok(Some(Narrowing {
                    subject: found.subject,
                    place,
                    column,
                    with,
                    any: found.any,
                    among,
                }));
            }
        }
        Ok(None)
    }

    /// Rewrites a condition so that the server finds candidates. Returns the test that decides.
    pub(crate) fn filter(
        &mut self,
        condition: &Expr,
        tokens: Range<usize>,
        scope: &Scope,
        fetched: &mut Fetched,
    ) -> Planned<Test> {
        let mut tests = Vec::new();
        for (conjunct, place) in self.conjuncts(condition, tokens)? {
            if !self.narrows(conjunct, scope)? {
                self.scan(conjunct, scope)?;
                continue;
            }
            let range = self.bytes_of(&place);
            let alone = matches!(unnested(conjunct), Expr::Like { .. });
            let (text, test) = self.formula(
                conjunct,
                place,
                false,
                &mut |p, leaf, place, negated| match p.liking(leaf, scope)? {
                    Some(like) => {
                        let negated = like.negated != negated;
                        Ok(p.like_candidate(&like, negated, alone, scope, fetched))
                    }
                    None => p.candidate(leaf, place, negated, scope, fetched),
                },
            )?;
            self.edit(range, text);
            tests.push(test);
        }
        Ok(match <[Test; 1]>::try_from(tests) {
            Ok([one]) => one,
            Err(several) => Test::All(several),
        })
    }

    /// A condition that is true of all rows of which this one is.
    pub(crate) fn candidates(
        &mut self,
        condition: &Expr,
        tokens: Range<usize>,
        scope: &Scope,
    ) -> Planned<Text> {
        let mut fetched = Fetched::default();
        let (text, _) =
            self.formula(condition, tokens, false, &mut |p, leaf, place, negated| {
                p.candidate(leaf, place, negated, scope, &mut fetched)
            })?;
        Ok(text)
    }

    fn candidate(
        &mut self,
        leaf: &Expr,
        place: Range<usize>,
        negated: bool,
        scope: &Scope,
        fetched: &mut Fetched,
    ) -> Planned<(Text, Test)> {
        let Some(found) = self.narrowing(leaf, scope)? else {
            return self.fetched_truth(leaf, place, negated, scope, fetched);
        };
        let Narrowing {
            subject,
            place: range,
            column,
            with,
            any,
            among,
        } = if negated { found.negated() } else { found };
        let left = fetched.cell(self, subject, &range, &column, scope);
        let mut text = TextBuilder::default();
        let mut tests = Vec::new();
        text.sql(b"(");
        for (i, (comparison, other)) in with.into_iter().enumerate() {
            if i > 0 {
                text.sql(if any { b" OR " } else { b" AND " });
            }
            let right = match &other {
                Other::Column(other, place, named) => {
                    Compared::Fetch(fetched.cell(self, other, place, named, scope))
                }
                Other::Constant(source) => Compared::Constant(*source, among),
            };
            if comparison == Comparison::NotEqual {
                let named = self.physical(subject, &range, column.sealed());
                named.into_iter().for_each(|piece| text.piece(piece));
                text.sql(b" IS NOT NULL");
            } else {
                let sides = (subject, &range, &column);
                self.narrow(sides, comparison, &other, among, &mut text);
            }
            tests.push(Test::Compare {
                left: Operand::Fetch(left),
                comparison,
                right,
            });
        }
        text.sql(b")");
        let test = if any {
            Test::Any(tests)
        } else {
            Test::All(tests)
        };
        Ok((text.finish(), test))
    }

    /// Writes what is true of all rows of which a comparison is.
    fn narrow(
        &mut self,
        (subject, range, column): (&Expr, &Range<usize>, &ColumnUse),
        comparison: Comparison,
        other: &Other,
        among: Option<Among>,
        text: &mut TextBuilder,
    ) {
        let others = match other {
            Other::Column(_, _, named) => narrowed_by(named, comparison),
            Other::Constant(_) => Vec::new(),
        };
        for (n, (name, purpose)) in narrowed_by(column, comparison).into_iter().enumerate() {
            if n > 0 {
                text.sql(b" AND ");
            }
            let named = self.physical(subject, range, name);
            named.into_iter().for_each(|piece| text.piece(piece));
            text.sql(match comparison {
                Comparison::Less | Comparison::LessOrEqual => b" <= ",
                Comparison::Greater | Comparison::GreaterOrEqual => b" >= ",
                Comparison::Equal | Comparison::NotEqual => b" = ",
            });
            match other {
                Other::Column(other, place, _) => {
                    // columns with the same tokens have the same companions
                    let name = others.get(n).map_or("", |(name, _)| name);
                    let named = self.physical(other, place, name);
                    named.into_iter().for_each(|piece| text.piece(piece));
                }
                Other::Constant(source) => {
                    let mut slot = self.slot(column, purpose, *source);
                    if let Piece::Slot(slot) = &mut slot {
                        slot.among = among;
                    }
                    text.piece(slot);
                }
            }
        }
    }

    /// A leaf that the server decides, in the condition and once more as a fetched column.
    pub(crate) fn fetched_truth(
        &mut self,
        leaf: &Expr,
        place: Range<usize>,
        negated: bool,
        scope: &Scope,
        fetched: &mut Fetched,
    ) -> Planned<(Text, Test)> {
        self.scan(leaf, scope)?;
        if !self.is_repeatable(leaf, scope)? {
            return refuse(
                &errors::CANDIDATES,
                "beside OR or NOT with a part that may not be computed twice",
            );
        }
        let range = self.bytes_of(&place);
        let text = parenthesized(self.take_text(range)?, negated);
        let index = fetched.plain(text.clone());
        Ok((text, Test::Fetched(index)))
    }

    /// Whether an expression can be computed twice, with the same outcome and without a second
    /// warning: comparisons of columns with constants of their own kind, and tests for NULL.
    fn is_repeatable(&mut self, leaf: &Expr, scope: &Scope) -> Planned<bool> {
        if let Expr::IsNull(e) | Expr::IsNotNull(e) = leaf {
            if self.column_of(e, scope)?.is_some() {
                return Ok(true);
            }
            // in a condition, and only there, a zero date in a NOT NULL column IS NULL
            return Ok(scope.plain_type(e).is_some_and(|ty| !ty.is_temporal()));
        }
        if let Expr::Like {
            any: false,
            expr,
            pattern,
            escape_char: None,
            ..
        } = leaf
        {
            let kind = match self.constant(pattern) {
                Some((_, Source::Literal { index, .. })) => {
                    self.request.template.literals[index].kind
                }
                _ => return Ok(false),
            };
            let text = matches!(kind, LiteralKind::String | LiteralKind::Parameter);
            let is_text = scope.plain_type(expr).is_some_and(|ty| ty.is_character());
            return Ok(text && is_text && self.column_of(expr, scope)?.is_none());
        }
        let Some(found) = Comparisons::of(leaf) else {
            return Ok(false);
        };
        let found = match self.constant(found.subject) {
            None => found,
            Some(_) => match found.mirrored() {
                Some(mirrored) => mirrored,
                None => return Ok(false),
            },
        };
        if self.column_of(found.subject, scope)?.is_some() {
            // tokens are compared with tokens
            return Ok(true);
        }
        let Some(ty) = scope.plain_type(found.subject) else {
            return Ok(false);
        };
        Ok(found.with.iter().all(|(_, e)| match self.constant(e) {
            Some((_, Source::Literal { index, .. })) => {
                let kind = self.request.template.literals[index].kind;
                match kind {
                    LiteralKind::Integer | LiteralKind::Decimal => ty.is_numeric(),
                    LiteralKind::String => ty.is_character(),
                    LiteralKind::Parameter => ty.is_numeric() || ty.is_character(),
                    _ => false,
                }
            }
            Some(_) => true,
            None => false,
        }))
    }

    /// A physical column in the place of a name, qualified as written there.
    pub(crate) fn physical(&self, name: &Expr, last: &Range<usize>, physical: &str) -> Text {
        let whole = crate::places::bytes_of_expr(self, name, last);
        let mut text = self.original(whole.start..last.start);
        text.push(Piece::Sql(quoted(physical).into_bytes()));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pure_functions_are_sorted() {
        assert!(PURE.windows(2).all(|w| w[0] < w[1]));
    }
}
