//! The values of a column, each once.
//!
//! Rows hold numbers of payloads. Payloads that SQL's `=` takes for equal are of one class: `Ulm`
//! and `ULM` under most collations. What is attacked and what is known share a dictionary, so that
//! their classes can be compared.

use std::collections::HashMap;

use onionskin_value::{
    Charset, Context, Family, Input, SqlMode, SqlType, Stored, TimeZone, WeightError, store, weight,
};

/// Longest value that is taken.
pub const MAX_VALUE: usize = 4_096;

/// The number of a payload.
pub type Payload = u32;
/// The number of a class of equal values.
pub type Class = u32;

/// Why a value has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It is longer than [`MAX_VALUE`].
    TooLong,
    /// It does not fit into the column: it is from elsewhere.
    DoesNotFit,
    /// The column has more different values than there is room for.
    NoRoom,
    /// It has no weight.
    Weight(WeightError),
}

/// The values.
pub struct Dictionary {
    ty: SqlType,
    family: Family,
    numbers: HashMap<Vec<u8>, Payload>,
    payloads: Vec<(Vec<u8>, Class)>,
    by_weight: HashMap<Vec<u8>, Class>,
    first_of: Vec<Payload>,
    bytes: usize,
    most_bytes: usize,
}

impl Dictionary {
    /// An empty one, for so many bytes of values.
    pub fn new(ty: SqlType, family: Family, most_bytes: usize) -> Self {
        Self {
            most_bytes,
            ty,
            family,
            numbers: HashMap::new(),
            payloads: Vec::new(),
            by_weight: HashMap::new(),
            first_of: Vec::new(),
            bytes: 0,
        }
    }

    /// The type of its values.
    pub fn sql_type(&self) -> &SqlType {
        &self.ty
    }

    /// The number of a value, given as a server sends it in a text result in utf8mb4.
    pub fn add_sent(&mut self, cell: &[u8]) -> Result<Payload, Left> {
        if cell.len() > MAX_VALUE {
            return Err(Left::TooLong);
        }
        let input = match () {
            () if self.ty.is_binary() => Input::Bytes(cell),
            () if self.ty.is_bit() => Input::Hex(cell),
            () => Input::Text {
                bytes: cell,
                charset: Charset::Utf8mb4,
            },
        };
        let context = Context {
            sql_mode: SqlMode::STRICT | SqlMode::ALLOW_INVALID_DATES,
            time_zone: &TimeZone::UTC,
            family: self.family,
            latest_timestamp: onionskin_value::LATEST_TIMESTAMP_UNSIGNED,
            signed_zero: true,
            enum_takes_zero: false,
            ignore: false,
            row: 1,
            column: "",
            database: "",
            table: "",
        };
        let mut payload = Vec::new();
        match store(&self.ty, input, &context, &mut payload, &mut Vec::new()) {
            Ok(Stored::Value) => self.add(payload),
            _ => Err(Left::DoesNotFit),
        }
    }

    fn add(&mut self, payload: Vec<u8>) -> Result<Payload, Left> {
        if let Some(number) = self.numbers.get(&payload) {
            return Ok(*number);
        }
        let mut weights = Vec::new();
        weight(&self.ty, &payload, &mut weights).map_err(Left::Weight)?;
        self.bytes += 2 * payload.len() + weights.len();
        if self.bytes > self.most_bytes {
            return Err(Left::NoRoom);
        }
        let number = self.payloads.len() as Payload;
        let next = self.first_of.len() as Class;
        let class = *self.by_weight.entry(weights).or_insert(next);
        if class == next {
            self.first_of.push(number);
        }
        self.numbers.insert(payload.clone(), number);
        self.payloads.push((payload, class));
        Ok(number)
    }

    /// How many payloads there are.
    pub fn payloads(&self) -> usize {
        self.payloads.len()
    }

    /// The bytes of a payload.
    pub fn payload(&self, number: Payload) -> &[u8] {
        &self.payloads[number as usize].0
    }

    /// The class of a payload.
    pub fn class(&self, number: Payload) -> Class {
        self.payloads[number as usize].1
    }

    /// A payload of the class.
    pub fn first_of(&self, class: Class) -> &[u8] {
        self.payload(self.first_of[class as usize])
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.first_of.len()
    }

    /// The class that has this weight, for a value of another column of the same type.
    pub fn class_of_payload(&self, payload: &[u8]) -> Option<Class> {
        let mut weights = Vec::new();
        weight(&self.ty, payload, &mut weights).ok()?;
        self.by_weight.get(&weights).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Dictionary {
        let ty = SqlType::parse("varchar(20)", Some("utf8mb4_general_ci")).expect("a type");
        Dictionary::new(ty, Family::MariaDb, 1_000)
    }

    #[test]
    fn what_is_equal_is_one_class() {
        let mut values = text();
        let numbers: Vec<_> = ["Ulm", "ULM", "Bonn", "Ulm"]
            .iter()
            .map(|value| values.add_sent(value.as_bytes()).expect("it fits"))
            .collect();
        assert_eq!(numbers, [0, 1, 2, 0]);
        assert_eq!((values.payloads(), values.classes()), (3, 2));
        assert_eq!(values.class(1), values.class(0));
        assert_eq!(values.first_of(1), b"Bonn");
        assert_eq!(values.class_of_payload(b"BONN"), Some(1));
        assert_eq!(values.class_of_payload(b"Ahlen"), None);
    }

    #[test]
    fn what_does_not_fit_has_no_number() {
        let mut values = text();
        assert_eq!(values.add_sent(&[b'x'; 21]), Err(Left::DoesNotFit));
        assert_eq!(values.add_sent(&[b'x'; MAX_VALUE + 1]), Err(Left::TooLong));
        let ty = SqlType::parse("int", None).expect("a type");
        let mut numbers = Dictionary::new(ty, Family::MySql, 6);
        assert_eq!(numbers.add_sent(b"twelve"), Err(Left::DoesNotFit));
        // four bytes of payload, twice, and of weight
        assert_eq!(numbers.add_sent(b"-12"), Err(Left::NoRoom));
    }
}
