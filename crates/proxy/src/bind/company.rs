//! Parameters beside plain columns whose meaning depends on other parameters, on MySQL.
//!
//! MySQL gives each parameter a type when it prepares a statement. If a value of another type is
//! bound to one of them, it prepares the statement again, with the values' types for all of them.
//! Beside a date, a text that is no date is NULL before that, and a text after. Parameters beside
//! protected columns have other types here than at a plain server. So a value that means the same
//! both ways is sent, and another one is refused where such a parameter stands in the statement.

use onionskin_plan::{Piece, Slot, Source, errors};
use onionskin_value::{Kind, SqlType};
use onionskin_wire::BinaryValue;

use super::parameters::{is_date, is_moment_text, is_time};
use super::{Binder, Values};
use crate::error::{Failure, Outcome};

impl Binder<'_> {
    /// Refuses a value that can mean something else to a plain server.
    pub(super) fn must_mean_the_same(&self, pieces: &[Piece]) -> Outcome<()> {
        let mut beside_plain = self.keyed.plan.beside_plain.iter();
        if beside_plain.all(|(index, ty)| self.values.means_the_same(*index, ty))
            || !self.has_other_types(pieces)
        {
            return Ok(());
        }
        Err(read_otherwise())
    }

    /// Whether a parameter beside a plain column may mean something else in a statement with other
    /// parameters.
    pub(super) fn may_read_otherwise(&self, index: usize) -> bool {
        let beside_plain = &self.keyed.plan.beside_plain;
        beside_plain
            .iter()
            .any(|(of, ty)| *of == index && !self.values.means_the_same(index, ty))
    }

    /// Whether a plain server may prepare the statement again where the server here does not.
    fn has_other_types(&self, pieces: &[Piece]) -> bool {
        pieces.iter().any(|piece| match piece {
            Piece::Slot(slot) => self.has_other_type(slot),
            Piece::Rows { row, .. } | Piece::Indexed(row) => self.has_other_types(row),
            Piece::Sql(_) | Piece::Literal(_) | Piece::Present(_) | Piece::Tenant { .. } => false,
        })
    }

    fn has_other_type(&self, slot: &Slot) -> bool {
        let Source::Literal { index, .. } = slot.source else {
            return false;
        };
        let Some(n) = self.values.param_number(index) else {
            return false;
        };
        let ty = self.keyed.plan.columns[slot.column].column().sql_type;
        let is_text = ty.is_some_and(|ty| ty.is_character() || ty.is_binary());
        match self.values.params.get(n).map(|param| param.value) {
            Some(BinaryValue::Null) => false,
            Some(BinaryValue::Bytes(_) | BinaryValue::LongData) => !is_text,
            _ => true,
        }
    }
}

/// The refusal of such a value.
pub(super) fn read_otherwise() -> Failure {
    let about = "a parameter beside a plain column, which MySQL reads by the types of the others";
    Failure::refused(&errors::VALUE, about)
}

impl Values<'_> {
    /// Whether a parameter beside a plain column of this type means the same before and after
    /// MySQL has prepared its statement again.
    fn means_the_same(&self, index: usize, ty: &SqlType) -> bool {
        let Some(n) = self.param_number(index) else {
            return true;
        };
        if let Some(text) = self.long(n) {
            return is_of_type(text, ty);
        }
        match self.params.get(n).map(|param| param.value) {
            None | Some(BinaryValue::Null) => true,
            Some(BinaryValue::Bytes(text)) => is_of_type(text, ty),
            Some(BinaryValue::Int(number)) => is_integer_of_type(i128::from(number), ty),
            Some(BinaryValue::UInt(number)) => is_integer_of_type(i128::from(number), ty),
            Some(BinaryValue::Float(_) | BinaryValue::Double(_)) => !ty.is_temporal(),
            Some(BinaryValue::DateTime(_)) => !matches!(ty.kind, Kind::Time { .. }),
            Some(BinaryValue::Time(_)) => true,
            Some(BinaryValue::LongData) => false,
        }
    }
}

/// Whether a text is what servers read as a value of the type, without a warning. Beside other
/// types than those of numbers, dates and times, every text is.
fn is_of_type(text: &[u8], ty: &SqlType) -> bool {
    let are_digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    match ty.kind {
        Kind::Time { .. } => {
            let text = std::str::from_utf8(text).unwrap_or_default();
            text.contains(':') && is_time(text, false)
        }
        Kind::Year => text.len() <= 4 && are_digits(text),
        Kind::Bit { .. } => are_digits(text),
        _ if ty.is_temporal() => is_moment_text(text),
        _ if ty.is_numeric() => is_number(text),
        _ => true,
    }
}

/// `-1.5e3`: what is read to its end.
fn is_number(text: &[u8]) -> bool {
    let is_part = |b: &u8| b.is_ascii_digit() || b"+-.eE".contains(b);
    let text = std::str::from_utf8(text).unwrap_or_default();
    text.bytes().all(|b| is_part(&b)) && text.parse::<f64>().is_ok()
}

/// Whether a number is a value of the type, such as 20201231 of a date.
fn is_integer_of_type(number: i128, ty: &SqlType) -> bool {
    let clock = |n: i128| format!("{:02}:{:02}:{:02}", n / 10_000, n / 100 % 100, n % 100);
    match ty.kind {
        Kind::Time { .. } => {
            let number = number.abs();
            number < 10_000_000 && is_time(&clock(number), false)
        }
        Kind::Year => number <= 9999,
        _ if ty.is_temporal() => {
            let is_date_alone = number < 100_000_000;
            let (date, time) = match is_date_alone {
                true => (number, 0),
                false => (number / 1_000_000, number % 1_000_000),
            };
            let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
            number == 0
                || (1000..=9999).contains(&year)
                    && is_date(&format!("{year}-{month}-{day}"))
                    && is_time(&clock(time), true)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::{is_integer_of_type, is_of_type};
    use onionskin_value::{Kind, SqlType};

    const DATE: SqlType = SqlType::plain(Kind::Date);
    const TIME: SqlType = SqlType::plain(Kind::Time { fsp: 0 });
    const YEAR: SqlType = SqlType::plain(Kind::Year);
    const INT: SqlType = SqlType::plain(Kind::Int(None));

    #[test]
    fn texts_of_their_type() {
        for (text, ty) in [
            ("2024-12-25", DATE),
            ("2024-12-25 10:11:12.5", DATE),
            ("-10:11:12", TIME),
            ("24", YEAR),
            ("-1.5e3", INT),
        ] {
            assert!(is_of_type(text.as_bytes(), &ty), "{text}");
        }
        for (text, ty) in [
            ("0x10", DATE),
            ("", DATE),
            ("2020-13-01", DATE),
            ("2024-12-25", TIME),
            ("20241", YEAR),
            ("12abc", INT),
            ("inf", INT),
            ("", INT),
        ] {
            assert!(!is_of_type(text.as_bytes(), &ty), "{text}");
        }
    }

    #[test]
    fn numbers_of_their_type() {
        for (number, ty) in [
            (0, DATE),
            (20_241_225, DATE),
            (20_241_225_101_112, DATE),
            (-101_112, TIME),
            (2024, YEAR),
            (i128::from(u64::MAX), INT),
        ] {
            assert!(is_integer_of_type(number, &ty), "{number}");
        }
        for (number, ty) in [
            (20_201_301, DATE),
            (1, DATE),
            (-20_241_225, DATE),
            (20_241_225, TIME),
            (70, TIME),
            (20_241_225, YEAR),
        ] {
            assert!(!is_integer_of_type(number, &ty), "{number}");
        }
    }
}
