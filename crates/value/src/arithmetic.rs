//! `SET k = k + 1` and its like: a new value from the old one and a constant.

use crate::context::{Context, Input, StoreError, Stored, ValueError, Warning};
use crate::decimal::{self, Decimal, Wide};
use crate::mode::SqlMode;
use crate::payload;
use crate::store::store;
use crate::types::{Family, Kind, SqlType};

/// An operator between a column and a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
}

/// Computes `column operator operand` from the column's payload and stores the result into the same
/// column, as `UPDATE … SET k = k + 1` does: errors of the arithmetic (1690) and of storing (1264)
/// are the server's. Combinations that cannot be computed exactly as the server would are refused.
pub fn add_sub(
    ty: &SqlType,
    payload: &[u8],
    operator: Operator,
    operand: Input<'_>,
    ctx: &Context<'_>,
    out: &mut Vec<u8>,
    warnings: &mut Vec<Warning>,
) -> Result<Stored, StoreError> {
    let operand = match operand {
        Input::Null => return Ok(Stored::Null),
        Input::Bool(truth) => Input::Integer {
            negative: false,
            magnitude: u64::from(truth),
        },
        other => other,
    };
    let malformed = StoreError::Unsupported("a stored value that is malformed");
    match (ty.kind, operand) {
        (
            _,
            Input::Integer {
                negative,
                magnitude,
            },
        ) if ty.is_integer() => {
            let left = payload::read_int(ty, payload).ok_or(malformed)?;
            integers(
                ty,
                left,
                operator,
                (negative, magnitude),
                ctx,
                out,
                warnings,
            )
        }
        (_, Input::Decimal(text)) if ty.is_integer() => {
            let left = Decimal::from_i128(payload::read_int(ty, payload).ok_or(malformed)?);
            decimals(ty, left, operator, literal(text)?, ctx, out, warnings)
        }
        (Kind::Decimal { precision, scale }, Input::Integer { .. } | Input::Decimal(_)) => {
            let left = decimal::read_payload(payload, precision, scale).ok_or(malformed)?;
            let right = match operand {
                Input::Integer {
                    negative,
                    magnitude,
                } => Decimal::from_i128(signed(negative, magnitude)),
                Input::Decimal(text) => literal(text)?,
                _ => return Err(OPERAND),
            };
            decimals(ty, left, operator, right, ctx, out, warnings)
        }
        (Kind::Float | Kind::Double, _) => {
            let left = payload::read_real(ty, payload).ok_or(malformed)?;
            reals(ty, left, operator, real(operand)?, ctx, out, warnings)
        }
        (_, Input::Double(right)) if ty.is_integer() => {
            let left = payload::read_int(ty, payload).ok_or(malformed)?;
            reals(ty, left as f64, operator, right, ctx, out, warnings)
        }
        (Kind::Decimal { precision, scale }, Input::Double(right)) => {
            let left = decimal::read_payload(payload, precision, scale)
                .and_then(Decimal::to_f64)
                .ok_or(malformed)?;
            reals(ty, left, operator, right, ctx, out, warnings)
        }
        _ => Err(OPERAND),
    }
}

const OPERAND: StoreError =
    StoreError::Unsupported("arithmetic on this kind of column or with this kind of operand");
const TOO_LONG: StoreError = StoreError::Unsupported("arithmetic with very many digits");

fn signed(negative: bool, magnitude: u64) -> i128 {
    if negative {
        -i128::from(magnitude)
    } else {
        i128::from(magnitude)
    }
}

fn literal(text: &[u8]) -> Result<Decimal, StoreError> {
    match decimal::parse(text) {
        Ok(parsed) if parsed.end == text.len() && !parsed.exponent => Ok(parsed.number),
        _ => Err(TOO_LONG),
    }
}

fn real(operand: Input<'_>) -> Result<f64, StoreError> {
    match operand {
        Input::Integer {
            negative,
            magnitude,
        } => Ok(if negative {
            -(magnitude as f64)
        } else {
            magnitude as f64
        }),
        Input::Decimal(text) => literal(text)?.to_f64().ok_or(TOO_LONG),
        Input::Double(value) => Ok(value),
        _ => Err(OPERAND),
    }
}

/// BIGINT arithmetic, unsigned where one side is.
fn integers(
    ty: &SqlType,
    left: i128,
    operator: Operator,
    (negative, magnitude): (bool, u64),
    ctx: &Context<'_>,
    out: &mut Vec<u8>,
    warnings: &mut Vec<Warning>,
) -> Result<Stored, StoreError> {
    let right = signed(negative, magnitude);
    if negative && magnitude >= 1 << 63 {
        // The literal is a DECIMAL, at its end or beyond it.
        return Err(TOO_LONG);
    }
    // Two numbers of 64 bits: the product alone can exceed 127, and is then out of range anyway.
    let (sign, value) = match operator {
        Operator::Add => ('+', left + right),
        Operator::Subtract => ('-', left - right),
        Operator::Multiply => ('*', left.checked_mul(right).unwrap_or(i128::MAX)),
    };
    // A literal above the signed range is unsigned.
    let unsigned = (ty.unsigned || (!negative && i64::try_from(magnitude).is_err()))
        && !(operator == Operator::Subtract
            && ctx.sql_mode.contains(SqlMode::NO_UNSIGNED_SUBTRACTION));
    let fits = if unsigned {
        u64::try_from(value).is_ok()
    } else {
        i64::try_from(value).is_ok()
    };
    if !fits {
        let kind = if unsigned {
            "BIGINT UNSIGNED"
        } else {
            "BIGINT"
        };
        let Context {
            database,
            table,
            column,
            ..
        } = ctx;
        // As a literal would be shown; MySQL takes its sign for an operator.
        let right = match ctx.family {
            Family::MySql if right < 0 => format!("-({magnitude})"),
            _ => right.to_string(),
        };
        let expression = format!("`{database}`.`{table}`.`{column}` {sign} {right}");
        let message = match ctx.family {
            Family::MariaDb => format!("{kind} value is out of range in '{expression}'"),
            Family::MySql => format!("{kind} value is out of range in '({expression})'"),
        };
        return Err(StoreError::Server(ValueError {
            code: 1690,
            sqlstate: *b"22003",
            message,
        }));
    }
    let result = Input::Integer {
        negative: value < 0,
        magnitude: value.unsigned_abs() as u64,
    };
    store(ty, result, ctx, out, warnings)
}

/// Fractional digits up to which both families compute exactly.
const FRACTION: u32 = 30;

fn decimals(
    ty: &SqlType,
    left: Decimal,
    operator: Operator,
    right: Decimal,
    ctx: &Context<'_>,
    out: &mut Vec<u8>,
    warnings: &mut Vec<Warning>,
) -> Result<Stored, StoreError> {
    let result = match operator {
        Operator::Add => left.add(right),
        Operator::Subtract => left.add(Decimal {
            negative: !right.negative,
            ..right
        }),
        Operator::Multiply => left.mul(right),
    };
    if ty.unsigned && result.is_some_and(|result| result.negative) {
        // An unsigned operand on each side makes the result unsigned, by rules that differ.
        return Err(StoreError::Unsupported(
            "a negative result of arithmetic on an unsigned column",
        ));
    }
    let result =
        result.filter(|result| result.scale <= FRACTION && result.digits < Wide::BEYOND_DECIMAL);
    let mut text = Vec::with_capacity(80);
    result.ok_or(TOO_LONG)?.write(&mut text);
    store(ty, Input::Decimal(&text), ctx, out, warnings)
}

fn reals(
    ty: &SqlType,
    left: f64,
    operator: Operator,
    right: f64,
    ctx: &Context<'_>,
    out: &mut Vec<u8>,
    warnings: &mut Vec<Warning>,
) -> Result<Stored, StoreError> {
    let result = match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
    };
    if !result.is_finite() {
        return Err(StoreError::Unsupported(
            "arithmetic beyond the range of DOUBLE",
        ));
    }
    store(ty, Input::Double(result), ctx, out, warnings)
}
