//! Parameters beside plain columns, on MySQL.
//!
//! To MySQL a parameter is no constant. Before it compares a column with a literal, it converts the
//! literal to the column's type, which rounds fractions of seconds and takes the time off a date.
//! It compares a parameter as it is. So a text of the proxy's in which a literal stands for a
//! parameter can mean other rows. Such values go to the server as parameters again, by `PREPARE`
//! and `EXECUTE` in SQL, whose rows are texts like those of any statement. Values that mean the
//! same in both forms stay literals.

use onionskin_plan::{LiteralKind, Piece, errors};
use onionskin_schema::Column;
use onionskin_value::{Charset, Family, Input, Kind, SqlType};
use onionskin_wire::BinaryValue;

use super::rules::check_conversion;
use super::{Binder, Values};
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::state::State;

/// What becomes of a value beside a plain column that is a parameter to the client.
pub(crate) enum PlainParameters {
    /// A literal.
    Literals,
    /// `?`, if a literal may mean something else. Here are the expressions with the values, in the
    /// order of the `?`.
    Kept(Vec<Vec<u8>>),
    /// The text is refused, if a literal may mean something else.
    Refused,
}

/// A literal that stands for a user variable, in a text that MySQL's `EXECUTE … USING` runs.
#[derive(Debug)]
pub(crate) struct FromVariable {
    /// The literal's first byte in the text, behind a sign.
    pub start: usize,
    /// The variable, as written: `@name`.
    pub name: Vec<u8>,
    /// Its value's collation.
    pub collation: String,
}

/// Texts with more digits are not read exactly as doubles.
const DIGITS_OF_DOUBLES: usize = 15;

/// In which company a parameter may mean something else than the literal with its value.
#[derive(Clone, Copy, PartialEq)]
enum Rounded {
    Never,
    /// Beside columns of dates, times and years.
    ByMoments,
    Always,
}

/// Of a decimal, of a double, and of a text.
fn of_text(text: &[u8]) -> Rounded {
    let digits = text.iter().filter(|b| b.is_ascii_digit()).count();
    let first = text.iter().find(|b| !b.is_ascii_whitespace());
    match first {
        // no number and no moment
        Some(b) if !b.is_ascii_digit() && !b"+-.".contains(b) => Rounded::Never,
        None => Rounded::Never,
        Some(_) if digits > DIGITS_OF_DOUBLES => Rounded::Always,
        Some(_) => Rounded::ByMoments,
    }
}

/// Whether a literal is a date, a time, or both, in the form in which servers write them.
fn is_moment(literal: &[u8]) -> bool {
    let inner = literal
        .strip_prefix(b"'")
        .and_then(|l| l.strip_suffix(b"'"));
    inner.is_some_and(is_moment_text)
}

/// The same of a text.
pub(super) fn is_moment_text(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else {
        return false;
    };
    let (date, time) = match text.split_once([' ', 'T']) {
        Some((date, time)) => (Some(date), Some(time)),
        None if text.contains(':') => (None, Some(text)),
        None => (Some(text), None),
    };
    date.is_none_or(is_date) && time.is_none_or(|time| is_time(time, date.is_some()))
}

fn numbers<const N: usize>(text: &str, separator: char) -> Option<[u32; N]> {
    let number = |part: &str| match part.bytes().all(|b| b.is_ascii_digit()) {
        true => part.parse::<u32>().ok(),
        false => None,
    };
    let all: Option<Vec<u32>> = text.split(separator).map(number).collect();
    all?.try_into().ok()
}

pub(super) fn is_date(text: &str) -> bool {
    let Some([year, month, day]) = numbers(text, '-') else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return false,
    };
    (1000..=9999).contains(&year) && (1..=days).contains(&day)
}

pub(super) fn is_time(text: &str, of_day: bool) -> bool {
    let text = text.strip_prefix('-').filter(|_| !of_day).unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let hours = if of_day { 23 } else { 838 };
    numbers(whole, ':').is_some_and(|[h, m, s]: [u32; 3]| h <= hours && m < 60 && s < 60)
        && (1..=6).contains(&fraction.len())
        && fraction.bytes().all(|b| b.is_ascii_digit())
}

impl Values<'_> {
    fn rounds(&self, n: usize) -> Rounded {
        if self.long(n).is_some() {
            return Rounded::Always;
        }
        match self.params.get(n).map(|param| param.value) {
            None | Some(BinaryValue::Null) => Rounded::Never,
            Some(BinaryValue::Int(_) | BinaryValue::UInt(_)) => Rounded::ByMoments,
            Some(BinaryValue::Bytes(text)) => of_text(text),
            Some(BinaryValue::Float(v)) => of_text(v.to_string().as_bytes()),
            Some(BinaryValue::Double(v)) => of_text(v.to_string().as_bytes()),
            Some(_) => Rounded::Always,
        }
    }

    /// Whether literals stand for variables that may mean something else to a MySQL that has all
    /// columns in the clear. Beside a moment, a text that is none is NULL as a parameter, and a
    /// text as a literal.
    pub fn has_rounded_variables(&self, keyed: &KeyedPlan) -> bool {
        let in_the_clear = |_: &Column| true;
        let by_moments =
            !self.from_variables.is_empty() && names_moments(keyed, self.sql, in_the_clear);
        self.from_variables.iter().any(|variable| {
            let mut literals = self.literals.iter();
            let literal = literals.find(|l| l.start == variable.start);
            literal.is_none_or(|literal| {
                let text = literal.text(self.sql);
                let rounded = match literal.kind {
                    LiteralKind::String => match of_text(text.get(1..).unwrap_or_default()) {
                        Rounded::Never => Rounded::ByMoments,
                        other => other,
                    },
                    _ => Rounded::ByMoments,
                };
                rounded == Rounded::Always || rounded == Rounded::ByMoments && by_moments
            })
        })
    }
}

impl Binder<'_> {
    /// Appends `?` in the place of a parameter beside a plain column, if that is needed. `false`: a
    /// literal will do.
    pub(super) fn put_parameter(&mut self, index: usize, out: &mut Vec<u8>) -> Outcome<bool> {
        if matches!(self.plain_parameters, PlainParameters::Literals)
            || self.state.family != Family::MySql
        {
            return Ok(false);
        }
        let Some(literal) = self.values.literals.get(index) else {
            return Ok(false);
        };
        if self.may_read_otherwise(index) {
            return Err(super::company::read_otherwise());
        }
        let mut value = Vec::new();
        let mut is_negative = false;
        match (
            self.values.variable(literal),
            self.values.param_number(index),
        ) {
            (Some(variable), _) => {
                let text = literal.text(self.values.sql);
                if literal.kind == LiteralKind::String
                    && of_text(text.get(1..).unwrap_or_default()) != Rounded::Never
                    && !is_moment(text)
                    && names_plain_moments(self.keyed, self.values.sql)
                {
                    // what the server makes of it depends on the types of the other parameters
                    let about = "a text behind USING that is no date or time";
                    return Err(Failure::refused(&errors::DYNAMIC, about));
                }
                value.extend_from_slice(&variable.name);
                let before = literal.start.checked_sub(1);
                is_negative = before.and_then(|at| self.values.sql.get(at)) == Some(&b'-');
            }
            (None, Some(n)) if self.is_rounded(self.values.rounds(n)) => {
                self.values.put_literal(index, self.state, &mut value)?;
            }
            _ => return Ok(false),
        }
        let PlainParameters::Kept(kept) = &mut self.plain_parameters else {
            let about = "a parameter beside a plain column that may be rounded";
            return Err(Failure::refused(&errors::VALUE, about));
        };
        // the variable has the sign
        if is_negative && out.pop() != Some(b'-') {
            return Err(Failure::refused(&errors::INTERNAL, "a number's sign"));
        }
        kept.push(value);
        out.push(b'?');
        Ok(true)
    }

    /// A parameter whose characters a plain column lacks has no literal in its place.
    pub(super) fn must_be_held(&self, index: usize) -> Outcome<()> {
        is_held(self.keyed, self.values, self.state, index, is_plain)
    }

    /// All parameters of a text that is not made yet are held by the plain columns.
    pub fn must_all_be_held(&self, pieces: &[Piece]) -> Outcome<()> {
        pieces.iter().try_for_each(|piece| match piece {
            Piece::Literal(index) => self.must_be_held(*index),
            _ => Ok(()),
        })
    }

    fn is_rounded(&self, rounded: Rounded) -> bool {
        match rounded {
            Rounded::Never => false,
            Rounded::ByMoments => names_plain_moments(self.keyed, self.values.sql),
            Rounded::Always => true,
        }
    }

    /// The expressions for the `?` of the text that was made.
    pub fn take_parameters(&mut self) -> Vec<Vec<u8>> {
        match std::mem::replace(&mut self.plain_parameters, PlainParameters::Literals) {
            PlainParameters::Kept(kept) => kept,
            PlainParameters::Literals | PlainParameters::Refused => Vec::new(),
        }
    }
}

/// MySQL converts a parameter to the character set of the column beside it before anything else,
/// and ends the statement where that loses characters. In their place a literal would be stored
/// with other ones, or not be found.
fn is_held(
    keyed: &KeyedPlan,
    values: Values,
    state: &State,
    index: usize,
    counts: fn(&Column) -> bool,
) -> Outcome<()> {
    let literal = values.literals.get(index);
    let is_bound = literal.is_some_and(|literal| {
        literal.kind == LiteralKind::Parameter || values.variable(literal).is_some()
    });
    if !is_bound || state.family != Family::MySql {
        return Ok(());
    }
    let mut scratch = Vec::new();
    let input = values.input(index, false, state, &mut scratch, "a parameter");
    let Ok(input @ Input::Text { bytes, charset }) = input else {
        return Ok(());
    };
    // a column of bytes gets those of the connection's character set
    let is_foreign = literal.is_some_and(|literal| values.variable(literal).is_some())
        && charset != Charset::Binary
        && Some(charset) != state.connection_charset;
    let takes_bytes =
        |column: &Column| counts(column) && column.sql_type.as_ref().is_none_or(SqlType::is_binary);
    if is_foreign && !bytes.is_ascii() && may_name(keyed, values.sql, takes_bytes) {
        let about = "a text of another character set beside a column of bytes";
        return Err(Failure::refused(&errors::VALUE, about));
    }
    let loses = |ty: &SqlType| check_conversion(ty, input, None).is_err();
    let may_lose = |column: &Column| counts(column) && column.sql_type.as_ref().is_none_or(loses);
    if bytes.is_ascii() || !may_name(keyed, values.sql, may_lose) {
        return Ok(());
    }
    let about = "a parameter that the character set of a column cannot hold";
    Err(Failure::refused(&errors::VALUE, about))
}

/// Refuses parameters that such columns cannot hold, where literals take their place.
pub(crate) fn check_letters(
    keyed: &KeyedPlan,
    values: Values,
    state: &State,
    counts: fn(&Column) -> bool,
) -> Outcome<()> {
    let mut all = 0..values.literals.len();
    all.try_for_each(|index| is_held(keyed, values, state, index, counts))
}

fn is_plain(column: &Column) -> bool {
    column.protection.is_none()
}

/// Whether the statement may name a plain column of dates, times or years.
fn names_plain_moments(keyed: &KeyedPlan, sql: &[u8]) -> bool {
    names_moments(keyed, sql, is_plain)
}

/// Whether the statement may name such a column of dates, times or years.
fn names_moments(keyed: &KeyedPlan, sql: &[u8], counts: impl Fn(&Column) -> bool) -> bool {
    let is_moment = |ty: &SqlType| ty.is_temporal() || matches!(ty.kind, Kind::Year);
    may_name(keyed, sql, |column| {
        counts(column) && column.sql_type.as_ref().is_none_or(is_moment)
    })
}

/// Whether the statement may name such a column.
fn may_name(keyed: &KeyedPlan, sql: &[u8], counts: impl Fn(&Column) -> bool) -> bool {
    let columns = &keyed.plan.columns;
    let text = sql.to_ascii_lowercase();
    let may_be_named = |name: &str| {
        let plain = name.is_ascii() && !name.contains('`');
        let lower = name.to_ascii_lowercase();
        !plain || memchr::memmem::find(&text, lower.as_bytes()).is_some()
    };
    let mut all = columns.iter().flat_map(|used| &used.table.columns);
    columns.is_empty() || all.any(|column| counts(column) && may_be_named(&column.name))
}

#[cfg(test)]
mod tests {
    use super::is_moment;

    #[test]
    fn moments_as_servers_write_them() {
        for text in [
            "2020-02-29",
            "2020-01-01 23:59:59",
            "2020-01-01T00:00:00.123456",
            "-838:59:59.5",
            "00:00:00",
        ] {
            assert!(is_moment(format!("'{text}'").as_bytes()), "{text}");
        }
        for text in [
            "",
            "2021-02-29",
            "9999999999999999999999",
            "20200101",
            "2020-13-01",
            "2020-01-01 24:00:00",
            "2020-01-01 -1:00:00",
            "1:2",
            "2020-01-01 00:00:00.",
            "0000-00-00",
        ] {
            assert!(!is_moment(format!("'{text}'").as_bytes()), "{text}");
        }
    }
}
