//! Constants that the server compares together, in IN or BETWEEN: see [`Among`].
//!
//! MySQL compares a date or a time as such while all constants beside it are texts or moments, or
//! all are numbers in the text. In other lists and ranges it compares all of them as numbers or as
//! texts, or leaves them out. MariaDB looks at each by itself. Numbers are compared as doubles by
//! both, with both ends of a range, as soon as one end is a double, a text or NULL.

use onionskin_plan::{Among, Literal, LiteralKind};
use onionskin_value::{Family, Kind, SqlType};
use onionskin_wire::messages::Param;
use onionskin_wire::{BinaryValue, ColumnType};

use super::Values;

/// What follows for each constant from the others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Together {
    /// Nothing.
    Alike,
    /// A number counts as it is written and as the nearest double, which must come to the same.
    AsDoubles,
    /// It is not known how the server compares them.
    Unlike,
}

/// A constant, as far as the type of a comparison depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Null,
    /// A whole number in the text.
    Whole,
    /// The number 0 in the text: in a list, MySQL finds no zero date by it.
    Zero,
    /// A whole number in a parameter.
    BoundWhole,
    Decimal,
    Double,
    Text,
    /// A date or a time in a parameter.
    Moment,
    Bytes,
}

impl Sort {
    fn of_literal(kind: LiteralKind) -> Sort {
        match kind {
            LiteralKind::Integer => Sort::Whole,
            LiteralKind::Decimal => Sort::Decimal,
            LiteralKind::Float => Sort::Double,
            LiteralKind::String | LiteralKind::Introduced => Sort::Text,
            LiteralKind::Hex | LiteralKind::Bits | LiteralKind::Parameter => Sort::Bytes,
        }
    }

    fn of_parameter(param: &Param<'_>) -> Sort {
        match param.value {
            BinaryValue::Null => Sort::Null,
            BinaryValue::Int(_) | BinaryValue::UInt(_) => Sort::BoundWhole,
            BinaryValue::Float(_) | BinaryValue::Double(_) => Sort::Double,
            BinaryValue::DateTime(_) | BinaryValue::Time(_) => Sort::Moment,
            BinaryValue::Bytes(_) | BinaryValue::LongData => match param.ty.kind {
                ColumnType::DECIMAL | ColumnType::NEWDECIMAL => Sort::Decimal,
                ColumnType::STRING | ColumnType::VAR_STRING | ColumnType::VARCHAR => Sort::Text,
                _ => Sort::Bytes,
            },
        }
    }
}

/// How the constants of a list or a range are compared with a column of this type.
pub(super) fn together(
    among: Among,
    ty: &SqlType,
    values: &Values<'_>,
    family: Family,
) -> Together {
    let temporal = ty.is_temporal();
    if temporal && family == Family::MariaDb {
        return Together::Alike;
    }
    let mut sorts = sorts(among, values);
    if temporal {
        let is_time = matches!(ty.kind, Kind::Time { .. });
        return moments(&mut sorts, among, is_time);
    }
    if !among.range {
        return Together::Alike;
    }
    let mut exact = false;
    let mut inexact = among.keywords;
    for sort in sorts {
        match sort {
            Sort::Whole | Sort::Zero | Sort::BoundWhole | Sort::Decimal => exact = true,
            _ => inexact = true,
        }
    }
    match exact && inexact {
        true => Together::AsDoubles,
        false => Together::Alike,
    }
}

/// Whether the server compares whole numbers of a list with a column of whole numbers bit by bit,
/// so that -1 is the greatest number without a sign: MySQL, where constants of another kind stand
/// beside them.
pub(super) fn forgets_signs(
    among: Among,
    ty: &SqlType,
    values: &Values<'_>,
    family: Family,
) -> bool {
    if family != Family::MySql || among.range || !ty.is_integer() {
        return false;
    }
    let (mut whole, mut others) = (among.keywords, false);
    for sort in sorts(among, values) {
        match sort {
            Sort::Whole | Sort::Zero | Sort::BoundWhole => whole = true,
            Sort::Null => {}
            Sort::Decimal | Sort::Double | Sort::Text | Sort::Moment | Sort::Bytes => others = true,
        }
    }
    whole && others
}

fn sorts<'v>(among: Among, values: &'v Values<'_>) -> impl Iterator<Item = Sort> + use<'v> {
    let is_parameter = |l: &&Literal| l.kind == LiteralKind::Parameter;
    let before = values.literals.iter().take(among.first);
    let mut bound = before.filter(is_parameter).count();
    values
        .literals
        .iter()
        .take(among.end)
        .skip(among.first)
        .map(move |literal| {
            let is_bound = values.variable(literal).is_some();
            if literal.kind == LiteralKind::Integer && is_bound {
                return Sort::BoundWhole;
            }
            if literal.kind == LiteralKind::Integer
                && literal.text(values.sql).iter().all(|b| *b == b'0')
            {
                return Sort::Zero;
            }
            if literal.kind != LiteralKind::Parameter {
                return Sort::of_literal(literal.kind);
            }
            let param = values.params.get(bound);
            bound += 1;
            param.map_or(Sort::Bytes, Sort::of_parameter)
        })
}

/// Those beside a date or a time, on MySQL.
fn moments(sorts: &mut dyn Iterator<Item = Sort>, among: Among, is_time: bool) -> Together {
    let mut first = None;
    let mut null = among.keywords;
    for sort in sorts {
        let sort = match sort {
            Sort::Null => {
                null = true;
                continue;
            }
            Sort::Moment => Sort::Text,
            Sort::Zero if is_time => Sort::Whole,
            Sort::Zero => return Together::Unlike,
            other => other,
        };
        if first.is_some_and(|first| first != sort) {
            return Together::Unlike;
        }
        first = Some(sort);
    }
    let whole = matches!(first, Some(Sort::Whole | Sort::BoundWhole));
    match null && (among.range || whole) {
        true => Together::Unlike,
        false => Together::Alike,
    }
}
