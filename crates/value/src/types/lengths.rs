//! What the payloads, weights and order keys of a type take.

use super::{Kind, SqlType};
use crate::collation::{Collation, Weights};
use crate::{decimal, inet, uuid};

/// The order key of a type, see [`crate::order_bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderWidth {
    /// Length of the order bytes, always the same for one type.
    pub bytes: usize,
    /// Equal order bytes mean equal values (in the sense of SQL `=`), so that the key also answers
    /// equality. Otherwise equal order bytes only make values candidates.
    pub exact: bool,
    /// [`crate::payload_from_order`] gives back the stored value. False for strings and for FLOAT
    /// and DOUBLE, whose negative zero has the order bytes of zero.
    pub invertible: bool,
}

/// Bytes of a string's weights that its order key covers.
pub const STRING_ORDER_BYTES: usize = 16;

impl SqlType {
    /// Whether a key over the whole column needs a length: TEXT, BLOB and JSON of any size.
    pub fn is_unbounded(&self) -> bool {
        matches!(
            self.kind,
            Kind::TinyText
                | Kind::TinyBlob
                | Kind::Text
                | Kind::Blob
                | Kind::MediumText
                | Kind::MediumBlob
                | Kind::LongText
                | Kind::LongBlob
                | Kind::Json
        )
    }

    /// The bytes that the column, or as many of its characters, takes in a server's key.
    pub fn key_bytes(&self, prefix: Option<u32>) -> u64 {
        let of_fraction = |fsp: u8| u64::from(fsp.div_ceil(2));
        let width = u64::from(self.charset().max_bytes());
        match (prefix, self.kind) {
            (Some(chars), _) => u64::from(chars) * width,
            // servers take the length in bytes for one in characters
            (None, _) if self.is_unbounded() => self.payload_max() * width,
            (None, Kind::Enum(members)) => member_bytes(members.count(), false),
            (None, Kind::Set(members)) => member_bytes(members.count(), true),
            (None, Kind::Time { fsp }) => 3 + of_fraction(fsp),
            (None, Kind::DateTime { fsp }) => 5 + of_fraction(fsp),
            (None, Kind::Timestamp { fsp }) => 4 + of_fraction(fsp),
            (None, _) => self.payload_max(),
        }
    }

    /// Bytes of an integer payload; 0 for other kinds.
    pub fn int_bytes(&self) -> usize {
        match self.kind {
            Kind::TinyInt(_) => 1,
            Kind::SmallInt(_) => 2,
            Kind::MediumInt(_) => 3,
            Kind::Int(_) => 4,
            Kind::BigInt(_) => 8,
            _ => 0,
        }
    }

    /// Bytes of the longest canonical payload.
    pub fn payload_max(&self) -> u64 {
        let most = u64::from(self.charset().max_bytes());
        match self.kind {
            Kind::TinyInt(_)
            | Kind::SmallInt(_)
            | Kind::MediumInt(_)
            | Kind::Int(_)
            | Kind::BigInt(_) => self.int_bytes() as u64,
            Kind::Decimal { precision, .. } => decimal::payload_bytes(precision) as u64,
            Kind::Float => 4,
            Kind::Double => 8,
            Kind::Char { chars } | Kind::VarChar { chars } => u64::from(chars) * most,
            Kind::Binary { len } | Kind::VarBinary { len } => u64::from(len),
            Kind::TinyText | Kind::TinyBlob => 0xFF,
            Kind::Text | Kind::Blob => 0xFFFF,
            Kind::MediumText | Kind::MediumBlob => 0xFF_FFFF,
            Kind::LongText | Kind::LongBlob | Kind::Json => 0xFFFF_FFFF,
            Kind::Bit { bits } => u64::from(bits.div_ceil(8)),
            Kind::Enum(_) => 2,
            Kind::Set(_) => 8,
            Kind::Date => 3,
            Kind::Time { .. } | Kind::DateTime { .. } | Kind::Timestamp { .. } => 8,
            Kind::Year => 1,
            Kind::Uuid => uuid::BYTES as u64,
            Kind::Inet6 => inet::BYTES_6 as u64,
            Kind::Inet4 => inet::BYTES_4 as u64,
        }
    }

    /// The length of every payload, where the type fixes it.
    pub fn payload_fixed(&self) -> Option<usize> {
        match self.kind {
            Kind::Char { .. } | Kind::VarChar { .. } | Kind::VarBinary { .. } => None,
            Kind::Binary { len } => Some(len as usize),
            _ if self.is_large() => None,
            _ => Some(self.payload_max() as usize),
        }
    }

    /// Equal weights mean equal stored bytes and the other way round, so that a value found by its
    /// weight needs no second look. False where the collation folds case or accents, where trailing
    /// spaces do not count, and for FLOAT and DOUBLE, which hold two zeros.
    pub fn weight_is_exact(&self) -> bool {
        match (self.kind, self.collation) {
            (Kind::Float | Kind::Double, _) => false,
            (Kind::Enum(_) | Kind::Set(_), _) => true,
            (Kind::Json, None) => false,
            (Kind::Char { .. }, Some(collation)) => has_exact_weights(collation),
            (_, Some(collation)) => has_exact_weights(collation) && !collation.pad_space(),
            (_, None) => true,
        }
    }

    /// The order key of this type; `None` where the type cannot have the range capability.
    pub fn order_width(&self) -> Option<OrderWidth> {
        if self.is_json_value() {
            return None;
        }
        if self.is_character() || self.is_binary() {
            return self.string_order_width();
        }
        let invertible = !matches!(self.kind, Kind::Float | Kind::Double);
        Some(OrderWidth {
            bytes: self.payload_max() as usize,
            exact: true,
            invertible,
        })
    }

    /// The order key of a text or binary type: the beginning of its weights, or all of them.
    fn string_order_width(&self) -> Option<OrderWidth> {
        let (per_character, pad_space) = match self.collation {
            None => (Some(1), false),
            Some(collation) if matches!(collation.weights(), Weights::Unknown) => return None,
            Some(collation) => (bytes_per_character(collation), collation.pad_space()),
        };
        let fixed = matches!(self.kind, Kind::Binary { .. });
        let chars = match self.kind {
            Kind::Char { chars } | Kind::VarChar { chars } => Some(chars as usize),
            Kind::Binary { len } | Kind::VarBinary { len } => Some(len as usize),
            _ => None,
        };
        // Without padding 'a' and 'a\0' differ, so a last byte holds the length.
        let suffix = usize::from(!pad_space && !fixed);
        let whole = per_character
            .zip(chars)
            .map(|(each, chars)| each * chars + suffix);
        Some(match whole {
            Some(bytes) if bytes <= STRING_ORDER_BYTES => OrderWidth {
                bytes: bytes.max(1),
                exact: true,
                invertible: false,
            },
            _ => OrderWidth {
                bytes: STRING_ORDER_BYTES,
                exact: false,
                invertible: false,
            },
        })
    }
}

/// The most bytes of weights that a character has; `None` if one character may have many.
fn bytes_per_character(collation: Collation) -> Option<usize> {
    match collation.weights() {
        Weights::Bytes => Some(collation.charset().max_bytes() as usize),
        Weights::Single(_) => Some(1),
        Weights::GeneralCi | Weights::Pairs(_) => Some(2),
        Weights::CodePoints => Some(3),
        Weights::UnicodeCi
        | Weights::Unicode520Ci
        | Weights::Uca0900AiCi
        | Weights::Uca1400AiCi
        | Weights::Unknown => None,
    }
}

/// Whether two texts that are not the same have different weights, spaces at the end aside.
fn has_exact_weights(collation: Collation) -> bool {
    matches!(collation.weights(), Weights::Bytes | Weights::CodePoints)
}

/// The bytes that servers store a member of an ENUM or SET with so many members in.
pub fn member_bytes(count: usize, is_set: bool) -> u64 {
    match (is_set, count) {
        (false, 0..=255) | (true, 0..=8) => 1,
        (false, _) | (true, 9..=16) => 2,
        (true, 17..=24) => 3,
        (true, 25..=32) => 4,
        (true, _) => 8,
    }
}
