//! Constants of a statement: where they stand, and what their values come from.

use std::ops::Range;

use sqlparser::ast::{Expr, ObjectNamePart, TypedString, UnaryOperator, Value};

use crate::lex::LiteralKind;
use crate::plan::{ColumnUse, Source};
use crate::planner::Planner;

impl Planner<'_> {
    /// A constant: where it stands and what it is. Signs and parentheses are looked through.
    pub fn constant(&self, expr: &Expr) -> Option<(Range<usize>, Source)> {
        match expr {
            Expr::Nested(inner) => self.constant(inner),
            Expr::Value(v) => {
                let token = self.tokens[self.token_at(self.offset(v.span)).ok()?];
                let range = token.start..token.end;
                match &v.value {
                    Value::Null => Some((range, Source::Null)),
                    Value::Boolean(b) => Some((range, Source::Bool(*b))),
                    _ => {
                        let index = self.literal_index(token.start)?;
                        Some((
                            range,
                            Source::Literal {
                                index,
                                negative: false,
                            },
                        ))
                    }
                }
            }
            Expr::UnaryOp {
                op: op @ (UnaryOperator::Minus | UnaryOperator::Plus),
                expr,
            } => {
                let Expr::Value(v) = expr.as_ref() else {
                    return None;
                };
                let at = self.token_at(self.offset(v.span)).ok()?;
                let (sign, token) = (self.tokens.get(at.checked_sub(1)?)?, self.tokens[at]);
                let minus = *op == UnaryOperator::Minus;
                if !sign.is(if minus { b'-' } else { b'+' }) {
                    return None;
                }
                let index = self.literal_index(token.start)?;
                let kind = self.request.template.literals[index].kind;
                let number = matches!(
                    kind,
                    LiteralKind::Integer | LiteralKind::Decimal | LiteralKind::Float
                );
                number.then_some((
                    sign.start..token.end,
                    Source::Literal {
                        index,
                        negative: minus,
                    },
                ))
            }
            Expr::TypedString(typed) => self.moment(typed),
            _ => None,
        }
    }

    /// `DATE '2020-01-31'`, `TIMESTAMP'2020-01-31 10:00:00'`.
    fn moment(&self, typed: &TypedString) -> Option<(Range<usize>, Source)> {
        let at = self.token_at(self.offset(typed.value.span)).ok()?;
        let (word, token) = (self.tokens.get(at.checked_sub(1)?)?, self.tokens[at]);
        let (date, timestamp) = match typed.uses_odbc_syntax {
            true => ("d", "ts"),
            false => ("date", "timestamp"),
        };
        let is_date = word.is_word(self.sql(), date);
        if !(is_date || word.is_word(self.sql(), timestamp)) {
            return None;
        }
        let range = match typed.uses_odbc_syntax {
            true => {
                let (open, close) = (
                    self.tokens.get(at.checked_sub(2)?)?,
                    self.tokens.get(at + 1)?,
                );
                (open.is(b'{') && close.is(b'}')).then_some(open.start..close.end)?
            }
            false => word.start..token.end,
        };
        let index = self.literal_index(token.start)?;
        let is_text = self.request.template.literals[index].kind == LiteralKind::String;
        is_text.then_some((range, Source::Moment { index, is_date }))
    }

    /// What a column may be compared with: a constant, or for a text `CONCAT` of constants.
    pub fn comparand(&self, expr: &Expr, column: &ColumnUse) -> Option<(Range<usize>, Source)> {
        self.constant(expr).or_else(|| {
            let ty = column.column().sql_type?;
            let is_text = ty.is_character() && !ty.is_enumerated() && !ty.is_json_value();
            self.joined(expr).filter(|_| is_text)
        })
    }

    /// `CONCAT('%', ?, '%')`: texts and parameters, and nothing else.
    fn joined(&self, expr: &Expr) -> Option<(Range<usize>, Source)> {
        let function = match expr {
            Expr::Nested(inner) => return self.joined(inner),
            Expr::Function(function) => function,
            _ => return None,
        };
        let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else {
            return None;
        };
        let at = self.token_at(self.offset(name.span)).ok()?;
        let mut tokens = self.tokens[at..].iter();
        let word = tokens.next()?;
        if !word.is_word(self.sql(), "concat") || !tokens.next()?.is(b'(') {
            return None;
        }
        let mut found: Option<Range<usize>> = None;
        loop {
            let index = self.literal_index(tokens.next()?.start)?;
            let kind = self.request.template.literals[index].kind;
            if !matches!(kind, LiteralKind::String | LiteralKind::Parameter) {
                return None;
            }
            let start = found.map_or(index, |found| found.start);
            found = Some(start..index + 1);
            match tokens.next()? {
                token if token.is(b',') => {}
                token if token.is(b')') => {
                    let found = found?;
                    let source = Source::Joined {
                        first: found.start,
                        count: u16::try_from(found.len()).ok()?,
                    };
                    return Some((word.start..token.end, source));
                }
                _ => return None,
            }
        }
    }
}
