//! LIMIT and OFFSET of a statement that the proxy finishes, as the servers read them.
//!
//! In a statement's text both are unsigned integers; anything else is a syntax error. A parameter
//! is converted: of a text its leading digits count, NULL is 0, and negative numbers wrap around to
//! ones beyond any table. MySQL refuses numbers that are not integers; MariaDB rounds them.

use onionskin_plan::{Limit, Source};
use onionskin_value::{Family, Input};

use crate::bind::Values;
use crate::error::{Failure, Outcome};
use crate::session::Session;

/// Rows to skip and rows to return.
pub(super) fn limits(
    limit: Option<Limit>,
    values: &Values,
    session: &Session,
) -> Outcome<(u64, u64)> {
    let Some(limit) = limit else {
        return Ok((0, session.lifted_limit.unwrap_or(u64::MAX)));
    };
    let number = |source| number(source, values, session);
    Ok((limit.offset.map_or(Ok(0), number)?, number(limit.count)?))
}

fn number(source: Source, values: &Values, session: &Session) -> Outcome<u64> {
    let family = session.state.family;
    let Source::Literal { index, negative } = source else {
        return Err(syntax_error(family));
    };
    let is_parameter = values.is_parameter(index);
    if negative && !is_parameter {
        return Err(syntax_error(family));
    }
    let mut scratch = Vec::new();
    let input = values.input(index, negative, &session.state, &mut scratch, "LIMIT")?;
    match input {
        Input::Integer {
            negative: false,
            magnitude,
        } => Ok(magnitude),
        _ if !is_parameter => Err(syntax_error(family)),
        parameter => converted(&parameter, family),
    }
}

/// A parameter as a number of rows.
fn converted(parameter: &Input, family: Family) -> Outcome<u64> {
    let is_mysql = family == Family::MySql;
    match parameter {
        Input::Null => Ok(0),
        Input::Bool(value) => Ok(u64::from(*value)),
        Input::Integer { .. } if is_mysql => Err(Failure::Server {
            code: 1690,
            state: *b"22003",
            message: b"SIGNED INTEGER value is out of range in 'mysqld_stmt_execute'".to_vec(),
        }),
        Input::Integer { magnitude, .. } => Ok(magnitude.wrapping_neg()),
        Input::Text { bytes, .. } | Input::Bytes(bytes) => Ok(leading_integer(bytes)),
        _ if is_mysql => Err(Failure::Server {
            code: 1210,
            state: *b"HY000",
            message: b"Incorrect arguments to mysqld_stmt_execute".to_vec(),
        }),
        // negative ones wrap around, as integers do
        Input::Double(value) => Ok(value.round_ties_even() as i64 as u64),
        Input::Decimal(digits) => Ok(rounded(digits)),
        _ => Err(Failure::refused(
            &onionskin_plan::errors::VALUE,
            "LIMIT by a date or a time",
        )),
    }
}

/// The integer that a text begins with: blanks, a sign, digits. None is 0, one that is too large
/// the largest.
fn leading_integer(text: &[u8]) -> u64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let digits = digits.iter().take_while(|b| b.is_ascii_digit());
    let number = digits.fold(0u64, |n, b| {
        n.saturating_mul(10).saturating_add(u64::from(b - b'0'))
    });
    match negative {
        true => number.wrapping_neg(),
        false => number,
    }
}

/// A DECIMAL, rounded half away from zero.
fn rounded(digits: &[u8]) -> u64 {
    let point = digits.iter().position(|b| *b == b'.');
    let rounds_up = point
        .and_then(|at| digits.get(at + 1))
        .is_some_and(|b| (b'5'..=b'9').contains(b));
    let whole = leading_integer(&digits[..point.unwrap_or(digits.len())]);
    match (rounds_up, digits.first() == Some(&b'-')) {
        (false, _) => whole,
        (true, false) => whole.saturating_add(1),
        (true, true) => whole.wrapping_sub(1),
    }
}

/// The number of the servers' own error; the text quotes nothing, as a value may stand there by
/// mistake.
fn syntax_error(family: Family) -> Failure {
    let server = match family {
        Family::MariaDb => "MariaDB",
        Family::MySql => "MySQL",
    };
    let message = format!(
        "You have an error in your SQL syntax; check the manual that corresponds to your {server} server version for the \
         right syntax to use near 'LIMIT', which takes unsigned integers"
    );
    Failure::Server {
        code: 1064,
        state: *b"42000",
        message: message.into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_count_by_their_leading_digits() {
        for (text, number) in [
            ("5", 5),
            (" 5", 5),
            ("5x", 5),
            ("1e1", 1),
            ("", 0),
            ("x", 0),
            ("+7", 7),
            ("-1", u64::MAX),
            ("99999999999999999999", u64::MAX),
        ] {
            assert_eq!(leading_integer(text.as_bytes()), number, "{text}");
        }
    }

    #[test]
    fn decimals_are_rounded() {
        for (text, number) in [
            ("5", 5),
            ("5.4", 5),
            ("5.5", 6),
            ("0.5", 1),
            ("-1.5", u64::MAX - 1),
        ] {
            assert_eq!(rounded(text.as_bytes()), number, "{text}");
        }
    }
}
