//! FLOAT(m,d) and DOUBLE(m,d) beside numbers.

use super::{Comparand, Outcome, compare};
use crate::context::{CompareError, Context, Input};
use crate::payload;
use crate::types::{Digits, Kind, SqlType};

/// As [`compare`], where the constant stands alone beside the column, as in `=` and `<`.
///
/// There servers take two numbers for equal that differ by less than half of a unit of the last
/// place that one of them has, if the places of both are known (`compare_real_fixed` of MySQL,
/// `compare_e_real_fixed` of MariaDB). Those of FLOAT and DOUBLE without digits, of texts and of
/// numbers with an exponent are not.
pub fn compare_by_digits(
    ty: &SqlType,
    input: Input<'_>,
    ctx: &Context<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    let known = ty.digits.zip(written(input));
    let Some((digits, (value, decimals))) = known else {
        return compare(ty, input, ctx, out);
    };
    let held = match ty.kind {
        Kind::Float => f64::from(ty.rounded(value).0 as f32),
        _ => ty.rounded(value).0,
    };
    let is_near = (held - value).abs() < tolerance(digits, decimals);
    // MySQL makes a FLOAT of some constants first
    let may_be_near = (held - value).abs() < tolerance(digits, 0);
    if ty.kind == Kind::Float && is_near != may_be_near {
        return Err(CompareError::Unsupported(
            "a number with more decimal places than FLOAT(m,d)",
        ));
    }
    match ty.kind {
        _ if !is_near => return compare(ty, input, ctx, out),
        Kind::Float => payload::write_f32(held as f32, out),
        _ => payload::write_f64(held, out),
    }
    Ok(Comparand::Exact)
}

/// A number whose decimal places are known, and these.
fn written(input: Input<'_>) -> Option<(f64, u8)> {
    /// What has more has no known number of them.
    const MOST: usize = 30;
    match input {
        Input::Integer {
            negative,
            magnitude,
        } => {
            let value = magnitude as f64;
            Some((if negative { -value } else { value }, 0))
        }
        Input::Decimal(text) => {
            let text = std::str::from_utf8(text).ok()?;
            let decimals = text.split_once('.').map_or(0, |(_, behind)| behind.len());
            let value = text.parse::<f64>().ok()?;
            (decimals <= MOST).then_some((value + 0.0, decimals as u8))
        }
        _ => None,
    }
}

fn tolerance(digits: Digits, decimals: u8) -> f64 {
    let places = digits.decimals.max(decimals);
    5.0 / crate::types::power_of_ten(i32::from(places) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Family, SqlMode, TimeZone};

    fn both(ty: &str, number: &str) -> (Comparand, Comparand) {
        let ty = SqlType::parse(ty, None).expect(ty);
        let input = match number.contains('.') {
            true => Input::Decimal(number.as_bytes()),
            false => Input::Integer {
                negative: false,
                magnitude: number.parse().expect(number),
            },
        };
        let ctx = context();
        let alone = compare_by_digits(&ty, input, &ctx, &mut Vec::new());
        let among = compare(&ty, input, &ctx, &mut Vec::new());
        (alone.expect(number), among.expect(number))
    }

    fn context() -> Context<'static> {
        Context {
            sql_mode: SqlMode::empty(),
            time_zone: &TimeZone::UTC,
            family: Family::MySql,
            latest_timestamp: crate::LATEST_TIMESTAMP,
            signed_zero: true,
            enum_takes_zero: true,
            ignore: false,
            row: 1,
            column: "c",
            database: "d",
            table: "t",
        }
    }

    #[test]
    fn how_near_is_equal_has_to_be_clear() {
        let ty = SqlType::parse("float(8,2)", None).expect("a type");
        let ctx = context();
        for number in ["3.1400000", "3.144"] {
            let input = Input::Decimal(number.as_bytes());
            let compared = compare_by_digits(&ty, input, &ctx, &mut Vec::new());
            assert!(compared.is_err(), "{number}");
        }
    }

    #[test]
    fn what_is_near_is_equal_where_the_places_are_known() {
        use Comparand::{Between, Exact};
        for (ty, number, expected) in [
            ("float(8,2)", "3.14", (Exact, Between)),
            ("double(8,2)", "3.144", (Exact, Exact)),
            ("float(8,2)", "3", (Exact, Exact)),
            ("float", "3.14", (Between, Between)),
            ("double(8,2)", "3.14", (Exact, Exact)),
        ] {
            assert_eq!(both(ty, number), expected, "{ty} {number}");
        }
    }
}
