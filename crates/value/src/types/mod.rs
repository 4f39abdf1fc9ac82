//! Column types.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | the type: its kind, and which kinds it is one of |
//! | `family` | MariaDB and MySQL |
//! | `written` | a type's text as name, numbers and attributes |
//! | `parse` | the type that such a text means |
//! | `error` | why it means none that can be handled |
//! | `digits` | the digits of FLOAT(m,d) and DOUBLE(m,d) |
//! | `print` | the text that each family of servers shows |
//! | `lengths` | the lengths of payloads, weights and order keys |

mod digits;
mod error;
mod family;
mod lengths;
mod parse;
mod print;
mod written;

use crate::charset::Charset;
use crate::collation::Collation;
use crate::members::Members;

pub use digits::Digits;
pub(crate) use digits::power_of_ten;
pub use error::TypeError;
pub use family::Family;
pub use lengths::{OrderWidth, STRING_ORDER_BYTES, member_bytes};

/// The kind of a column's type with its lengths.
///
/// Integers carry the display width that the definition gave; it shows in the output of zerofill
/// columns and in result metadata, never in the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    TinyInt(Option<u8>),
    SmallInt(Option<u8>),
    MediumInt(Option<u8>),
    Int(Option<u8>),
    BigInt(Option<u8>),
    Decimal { precision: u8, scale: u8 },
    Float,
    Double,
    Char { chars: u32 },
    VarChar { chars: u32 },
    TinyText,
    Text,
    MediumText,
    LongText,
    Binary { len: u32 },
    VarBinary { len: u32 },
    TinyBlob,
    Blob,
    MediumBlob,
    LongBlob,
    Date,
    Time { fsp: u8 },
    DateTime { fsp: u8 },
    Timestamp { fsp: u8 },
    Year,
    Bit { bits: u8 },
    Enum(Members),
    Set(Members),
    Json,
    Uuid,
    Inet6,
    Inet4,
}

/// A column's logical type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SqlType {
    /// Kind and lengths.
    pub kind: Kind,
    /// UNSIGNED, for numbers; implied by `zerofill`.
    pub unsigned: bool,
    /// ZEROFILL, for numbers.
    pub zerofill: bool,
    /// The digits of FLOAT(m,d) and DOUBLE(m,d); `None` for all others.
    pub digits: Option<Digits>,
    /// The collation of CHAR, VARCHAR, TEXT, ENUM and SET types, and of JSON where that is text
    /// (MariaDB); `None` for all others.
    pub collation: Option<Collation>,
}

impl SqlType {
    /// A type without UNSIGNED, ZEROFILL or collation.
    pub const fn plain(kind: Kind) -> SqlType {
        SqlType {
            kind,
            unsigned: false,
            zerofill: false,
            digits: None,
            collation: None,
        }
    }

    /// The type without the width that its numbers are shown in. Values do not depend on it, and
    /// MariaDB adds one where none is said.
    pub fn without_width(self) -> SqlType {
        let kind = match self.kind {
            Kind::TinyInt(_) => Kind::TinyInt(None),
            Kind::SmallInt(_) => Kind::SmallInt(None),
            Kind::MediumInt(_) => Kind::MediumInt(None),
            Kind::Int(_) => Kind::Int(None),
            Kind::BigInt(_) => Kind::BigInt(None),
            other => other,
        };
        SqlType { kind, ..self }
    }

    /// JSON: a value of its own in MySQL, and text in utf8mb4_bin that a CHECK looks at in MariaDB.
    pub fn json(family: Family) -> SqlType {
        SqlType {
            collation: match family {
                Family::MariaDb => Collation::from_name("utf8mb4_bin"),
                Family::MySql => None,
            },
            ..SqlType::plain(Kind::Json)
        }
    }

    /// Whether this is an integer type (YEAR is not).
    pub fn is_integer(&self) -> bool {
        self.int_bytes() != 0
    }

    /// Whether this is an integer, DECIMAL, FLOAT or DOUBLE.
    pub fn is_numeric(&self) -> bool {
        self.is_integer() || matches!(self.kind, Kind::Decimal { .. } | Kind::Float | Kind::Double)
    }

    /// Whether this is CHAR, VARCHAR or a TEXT type, or JSON that is text.
    pub fn is_character(&self) -> bool {
        if self.kind == Kind::Json {
            return self.collation.is_some();
        }
        matches!(
            self.kind,
            Kind::Char { .. }
                | Kind::VarChar { .. }
                | Kind::TinyText
                | Kind::Text
                | Kind::MediumText
                | Kind::LongText
        )
    }

    /// Whether values are members of a list, of which the number is kept: ENUM and SET.
    ///
    /// The servers sort them by their numbers and compare them with texts by their names, so that
    /// `<`, MIN and MAX have little to do with ORDER BY.
    pub fn is_enumerated(&self) -> bool {
        matches!(self.kind, Kind::Enum(_) | Kind::Set(_))
    }

    /// Characters and bytes of the longest text that a value of an ENUM or SET is shown as; zeros
    /// for other types.
    pub fn text_lengths(&self) -> (u64, u64) {
        let characters = match self.kind {
            Kind::Enum(members) => members.lengths().max().unwrap_or(0),
            Kind::Set(members) => members.lengths().sum::<u64>() + members.count() as u64 - 1,
            _ => 0,
        };
        (
            characters,
            characters * u64::from(self.charset().max_bytes()),
        )
    }

    /// Whether this is MariaDB's UUID, INET6 or INET4: a few bytes that are written as texts.
    pub fn is_fixed_binary(&self) -> bool {
        matches!(self.kind, Kind::Uuid | Kind::Inet6 | Kind::Inet4)
    }

    /// Whether this is BIT.
    pub fn is_bit(&self) -> bool {
        matches!(self.kind, Kind::Bit { .. })
    }

    /// Whether this is JSON as MySQL keeps it, which has an order of its own. MariaDB's is text.
    pub fn is_json_value(&self) -> bool {
        self.kind == Kind::Json && self.collation.is_none()
    }

    /// Whether two values can be told apart, and put in order, by their weights.
    pub fn is_comparable(&self) -> bool {
        !self.is_json_value() && self.collation.is_none_or(Collation::is_searchable)
    }

    /// Whether this is BINARY, VARBINARY or a BLOB type.
    pub fn is_binary(&self) -> bool {
        matches!(
            self.kind,
            Kind::Binary { .. }
                | Kind::VarBinary { .. }
                | Kind::TinyBlob
                | Kind::Blob
                | Kind::MediumBlob
                | Kind::LongBlob
        )
    }

    /// Whether this is DATE, TIME, DATETIME or TIMESTAMP (YEAR is not).
    pub fn is_temporal(&self) -> bool {
        matches!(
            self.kind,
            Kind::Date | Kind::Time { .. } | Kind::DateTime { .. } | Kind::Timestamp { .. }
        )
    }

    /// Whether this is one of the TEXT or BLOB types.
    pub(crate) fn is_large(&self) -> bool {
        self.is_json_value()
            || (self.is_character() || self.is_binary())
                && !matches!(
                    self.kind,
                    Kind::Char { .. }
                        | Kind::VarChar { .. }
                        | Kind::Binary { .. }
                        | Kind::VarBinary { .. }
                )
    }

    /// The charset of the payload: the column's for character types, binary for all others.
    pub fn charset(&self) -> Charset {
        self.collation.map_or(Charset::Binary, Collation::charset)
    }
}

#[cfg(test)]
mod tests;
