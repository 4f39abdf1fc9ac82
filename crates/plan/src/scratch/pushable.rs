//! Which conditions go to the server: comparisons of one table's columns with constants of their
//! own kind.
//!
//! Every constant of a condition that is sent stands beside a column of the table. Beside a
//! protected column it becomes a token; beside a plain one the server holds the values that it is
//! compared with. Nothing that warns, fails or tells the time is sent: no functions, no arithmetic,
//! no conversions between numbers and texts.

use onionskin_value::SqlType;
use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};

use crate::formula::comparison_of;
use crate::lex::LiteralKind;
use crate::plan::Source;
use crate::planner::Planner;
use crate::scope::{Resolved, Scope};

/// What a column takes part with.
enum Subject {
    Protected,
    Plain(SqlType),
}

/// Whether a condition may be sent. `scope` holds the one table; `bare` says whether a name without
/// a table can only be its.
pub(super) fn is_pushable(
    planner: &Planner<'_>,
    expr: &Expr,
    scope: &Scope,
    bare: &dyn Fn(&str) -> bool,
) -> bool {
    let subject = |e: &Expr| subject(e, scope, bare);
    let again = |e: &Expr| is_pushable(planner, e, scope, bare);
    match expr {
        Expr::Nested(inner) => again(inner),
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr,
        } => matches!(expr.as_ref(), Expr::Nested(_)) && again(expr),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And | BinaryOperator::Or,
            right,
        } => again(left) && again(right),
        Expr::BinaryOp { left, op, right } => {
            (comparison_of(op).is_some() || *op == BinaryOperator::Spaceship)
                && (subject(left).is_some_and(|s| fits(planner, right, &s))
                    || subject(right).is_some_and(|s| fits(planner, left, &s)))
        }
        Expr::Between {
            expr, low, high, ..
        } => subject(expr).is_some_and(|s| fits(planner, low, &s) && fits(planner, high, &s)),
        Expr::InList { expr, list, .. } => {
            subject(expr).is_some_and(|s| list.iter().all(|e| fits(planner, e, &s)))
        }
        Expr::IsNull(e) | Expr::IsNotNull(e) => subject(e).is_some(),
        Expr::Like {
            any: false,
            expr,
            pattern,
            escape_char: None,
            ..
        } => match subject(expr) {
            Some(s @ Subject::Plain(ty)) => ty.is_character() && fits(planner, pattern, &s),
            _ => false,
        },
        _ => false,
    }
}

/// A column of the table.
fn subject(expr: &Expr, scope: &Scope, bare: &dyn Fn(&str) -> bool) -> Option<Subject> {
    let parts = match expr {
        Expr::Identifier(name) if bare(&name.value) => std::slice::from_ref(name),
        Expr::CompoundIdentifier(parts) => parts.as_slice(),
        _ => return None,
    };
    match scope.resolve(parts).ok()? {
        Resolved::Protected(_) => Some(Subject::Protected),
        Resolved::Plain => scope.plain_type(expr).map(Subject::Plain),
        Resolved::Unknown => None,
    }
}

/// Whether a constant is compared with such a column as it is. What a protected column makes of it
/// is known to the proxy.
fn fits(planner: &Planner<'_>, expr: &Expr, subject: &Subject) -> bool {
    let Some((_, source)) = planner.constant(expr) else {
        return false;
    };
    let (ty, index) = match (subject, source) {
        (Subject::Protected, _) | (_, Source::Null) => return true,
        (Subject::Plain(ty), Source::Bool(_)) => return ty.is_numeric(),
        (Subject::Plain(ty), Source::Literal { index, .. }) => (ty, index),
        _ => return false,
    };
    match planner.request.template.literals[index].kind {
        LiteralKind::Integer | LiteralKind::Decimal => ty.is_numeric(),
        LiteralKind::String => ty.is_character() || ty.is_temporal(),
        LiteralKind::Parameter => ty.is_numeric() || ty.is_character() || ty.is_temporal(),
        _ => false,
    }
}
