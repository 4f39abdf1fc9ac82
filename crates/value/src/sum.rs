//! SUM and AVG over opened values, with the types and scales that the server's have.

use std::cmp::Ordering;

use crate::decimal::{self, Decimal, Wide};
use crate::format::write_double;
use crate::payload;
use crate::types::{Family, Kind, SqlType};
use crate::wire_type::{FLAG_BINARY, WireType};

/// Why a sum is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SumError {
    /// The server sums values of this type in a way that is not reproduced.
    #[error("SUM and AVG are supported on numeric columns only")]
    Unsupported,
    /// The bytes are no payload of the type.
    #[error("a stored value does not belong to the column's type")]
    Malformed,
    /// The sum, or the average, has more digits than are handled.
    #[error("the sum has too many digits")]
    Overflow,
}

#[derive(Clone, Copy)]
enum Total {
    /// Of integers: 2^64 of the longest ones fit.
    Whole(i128),
    Exact(Decimal),
    Real(f64),
}

impl Total {
    /// The same, with a sum of integers as a number of any kind.
    fn exact(self) -> Total {
        match self {
            Total::Whole(total) => Total::Exact(Decimal::from_i128(total)),
            other => other,
        }
    }
}

/// Accumulates SUM and AVG of one column: exactly for integers and DECIMAL, in doubles for FLOAT
/// and DOUBLE.
///
/// ```
/// # use onionskin_value::{Family, Kind, SqlType, Sum};
/// let ty = SqlType::plain(Kind::TinyInt(None));
/// let mut sum = Sum::new(ty)?;
/// sum.add(&[0x80 + 1])?;
/// sum.add(&[0x80 + 2])?;
/// let mut text = Vec::new();
/// assert!(sum.finish_avg(Family::MySql, 4, &mut text)?);
/// assert_eq!(text, b"1.5000");
/// # Ok::<(), onionskin_value::SumError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Sum {
    ty: SqlType,
    total: Total,
    count: u64,
}

impl Sum {
    /// An empty sum of a numeric column.
    pub fn new(ty: SqlType) -> Result<Sum, SumError> {
        let total = match ty.kind {
            Kind::Decimal { scale, .. } => Total::Exact(Decimal {
                scale: u32::from(scale),
                ..Decimal::from_i128(0)
            }),
            // with its digits, a sum is shown by rules of its own
            Kind::Float | Kind::Double if ty.digits.is_some() => {
                return Err(SumError::Unsupported);
            }
            Kind::Float | Kind::Double => Total::Real(0.0),
            _ if ty.is_integer() => Total::Whole(0),
            _ => return Err(SumError::Unsupported),
        };
        Ok(Sum {
            ty,
            total,
            count: 0,
        })
    }

    /// Adds a value; NULLs are not to be added.
    pub fn add(&mut self, payload: &[u8]) -> Result<(), SumError> {
        match &mut self.total {
            Total::Real(total) => {
                *total += payload::read_real(&self.ty, payload).ok_or(SumError::Malformed)?
            }
            Total::Whole(total) => {
                let value = payload::read_int(&self.ty, payload).ok_or(SumError::Malformed)?;
                *total = total.checked_add(value).ok_or(SumError::Overflow)?;
            }
            Total::Exact(total) => {
                let value = match self.ty.kind {
                    Kind::Decimal { precision, scale } => {
                        decimal::read_payload(payload, precision, scale)
                    }
                    _ => None,
                };
                *total = total
                    .add(value.ok_or(SumError::Malformed)?)
                    .ok_or(SumError::Overflow)?;
                // A server that gathers groups in a temporary table keeps 65 digits of each sum on
                // its way.
                within_decimal(total)?;
            }
        }
        self.count += 1;
        Ok(())
    }

    /// Number of values added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Appends the text of SUM; false where it is NULL because nothing was added.
    pub fn finish_sum(&self, out: &mut Vec<u8>) -> Result<bool, SumError> {
        if self.count == 0 {
            return Ok(false);
        }
        match self.total.exact() {
            Total::Real(total) if total.is_finite() => write_double(total, out),
            Total::Real(_) | Total::Whole(_) => return Err(SumError::Overflow),
            Total::Exact(total) => {
                within_decimal(&total)?;
                total.write(out);
            }
        }
        Ok(true)
    }

    /// Appends the text of AVG; false where it is NULL. `increment` is the session's
    /// `div_precision_increment`.
    pub fn finish_avg(
        &self,
        family: Family,
        increment: u8,
        out: &mut Vec<u8>,
    ) -> Result<bool, SumError> {
        if self.count == 0 {
            return Ok(false);
        }
        match self.total.exact() {
            Total::Real(total) if total.is_finite() => write_double(total / self.count as f64, out),
            Total::Real(_) | Total::Whole(_) => return Err(SumError::Overflow),
            Total::Exact(total) => {
                let scale = average_scale(&self.ty, family, increment);
                let average =
                    average(&total, self.count, scale, increment).ok_or(SumError::Overflow)?;
                // With more digits, it depends on the server's plan whether it is the average.
                within_decimal(&average)?;
                average.write(out);
            }
        }
        Ok(true)
    }

    /// SUM of a FLOAT or DOUBLE column, for the binary protocol.
    pub fn sum_f64(&self) -> Option<f64> {
        match self.total {
            Total::Real(total) if self.count > 0 => Some(total),
            _ => None,
        }
    }

    /// AVG of a FLOAT or DOUBLE column, for the binary protocol.
    pub fn avg_f64(&self) -> Option<f64> {
        self.sum_f64().map(|total| total / self.count as f64)
    }

    /// The column definition of SUM.
    pub fn sum_wire(ty: &SqlType, _family: Family) -> WireType {
        match numeric_shape(ty) {
            None => real_wire(23),
            Some((precision, scale)) => decimal_wire((u32::from(precision) + 22).min(65), scale),
        }
    }

    /// The column definition of AVG.
    pub fn avg_wire(ty: &SqlType, family: Family, increment: u8) -> WireType {
        match numeric_shape(ty) {
            // MariaDB widens the column's length by the increment.
            None if family == Family::MariaDb => {
                let own = if ty.kind == Kind::Float { 12 } else { 22 };
                real_wire((own + u32::from(increment)).min(23))
            }
            None => real_wire(23),
            Some((precision, _)) => {
                let wide = u32::from(precision) + u32::from(increment);
                let precision = if family == Family::MySql {
                    wide.min(65)
                } else {
                    wide
                };
                decimal_wire(precision, average_scale(ty, family, increment))
            }
        }
    }
}

/// The order of two numbers in text form, such as the texts of two sums; `None` where one cannot be
/// read exactly.
pub fn compare_numbers(left: &[u8], right: &[u8]) -> Option<Ordering> {
    let read = |text: &[u8]| {
        let parsed = decimal::parse(text).ok()?;
        (parsed.end == text.len()).then_some(parsed.number)
    };
    let (left, right) = (read(left)?, read(right)?);
    let scale = left.scale.max(right.scale);
    let digits = |number: &Decimal| number.digits.scale_up(scale - number.scale);
    let (a, b) = (digits(&left)?, digits(&right)?);
    let is_negative = |number: &Decimal| number.negative && !number.digits.is_zero();
    Some(match (is_negative(&left), is_negative(&right)) {
        (false, false) => a.cmp(&b),
        (true, true) => b.cmp(&a),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    })
}

/// Precision and scale of an exact type; `None` for FLOAT and DOUBLE.
fn numeric_shape(ty: &SqlType) -> Option<(u8, u8)> {
    Some(match ty.kind {
        Kind::Decimal { precision, scale } => (precision, scale),
        Kind::TinyInt(_) => (3, 0),
        Kind::SmallInt(_) => (5, 0),
        Kind::MediumInt(_) => (8, 0),
        Kind::Int(_) => (10, 0),
        Kind::BigInt(_) => (if ty.unsigned { 20 } else { 19 }, 0),
        _ => return None,
    })
}

fn average_scale(ty: &SqlType, family: Family, increment: u8) -> u8 {
    let most = match family {
        Family::MariaDb => 38,
        Family::MySql => 30,
    };
    numeric_shape(ty).map_or(0, |(_, scale)| scale.saturating_add(increment).min(most))
}

fn within_decimal(total: &Decimal) -> Result<(), SumError> {
    if total.digits < Wide::BEYOND_DECIMAL {
        Ok(())
    } else {
        Err(SumError::Overflow)
    }
}

/// The quotient as the server's decimal division makes it: its fraction grows in groups of nine
/// digits and is cut off, then rounded half away from zero to the scale of the result.
fn average(total: &Decimal, count: u64, scale: u8, increment: u8) -> Option<Decimal> {
    let group = |digits: u32| digits.div_ceil(9) * 9;
    let own = group(total.scale);
    let wanted = u32::from(increment).saturating_sub(own - total.scale);
    let scale_cut = group(own + wanted).max(u32::from(scale));
    // The server computes in nine groups of nine digits and shortens the fraction where that is not
    // enough.
    let whole = total
        .digits
        .split(total.scale)
        .0
        .digits(&mut [0; 116])
        .len() as u32;
    if whole.div_ceil(9) + scale_cut.div_ceil(9) > 9 {
        return None;
    }
    let (quotient, _) = total
        .digits
        .scale_up(scale_cut - total.scale)?
        .div_rem_small(count);
    let cut = Decimal {
        negative: total.negative,
        digits: quotient,
        scale: scale_cut,
    };
    let (digits, _) = cut.at_scale(u32::from(scale))?;
    Some(Decimal {
        negative: total.negative && !digits.is_zero(),
        digits,
        scale: u32::from(scale),
    })
}

fn decimal_wire(precision: u32, scale: u8) -> WireType {
    let length = precision + u32::from(scale > 0) + 1;
    WireType {
        column_type: 246,
        charset: 63,
        length,
        flags: FLAG_BINARY,
        decimals: scale,
    }
}

fn real_wire(length: u32) -> WireType {
    WireType {
        column_type: 5,
        charset: 63,
        length,
        flags: FLAG_BINARY,
        decimals: 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_text_form_are_ordered_by_value() {
        for (left, right, order) in [
            ("1", "1.00", Ordering::Equal),
            ("-0", "0", Ordering::Equal),
            ("10", "9.99", Ordering::Greater),
            ("-10", "-9.99", Ordering::Less),
            ("-1", "1", Ordering::Less),
            (".5", "0.49", Ordering::Greater),
        ] {
            let got = compare_numbers(left.as_bytes(), right.as_bytes());
            assert_eq!(got, Some(order), "{left} {right}");
        }
        assert_eq!(compare_numbers(b"1x", b"1"), None);
        assert_eq!(compare_numbers(b"", b"1"), None);
    }
}
