//! The column definition that a server sends for a column of a type.

use crate::charset::Charset;
use crate::types::{Family, Kind, SqlType};

/// What a column definition packet says about a column, without names and without the flags for keys and NOT NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireType {
    /// `MYSQL_TYPE_…`.
    pub column_type: u8,
    /// Number of the collation whose charset the cells are in; 63 for numbers, dates and binary strings.
    pub charset: u16,
    /// Longest cell in bytes.
    pub length: u32,
    /// UNSIGNED, ZEROFILL, BINARY, BLOB and the like.
    pub flags: u16,
    /// Digits after the point; 31 where they are not fixed.
    pub decimals: u8,
}

/// BLOB_FLAG
pub const FLAG_BLOB: u16 = 16;
/// UNSIGNED_FLAG
pub const FLAG_UNSIGNED: u16 = 32;
/// ZEROFILL_FLAG
pub const FLAG_ZEROFILL: u16 = 64;
/// BINARY_FLAG
pub const FLAG_BINARY: u16 = 128;
/// NUM_FLAG is not sent; TIMESTAMP_FLAG marks TIMESTAMP columns that update themselves.
pub const FLAG_TIMESTAMP: u16 = 1024;

const BINARY_CHARSET: u16 = 63;

impl SqlType {
    /// The column definition that this family sends for such a column. `results_charset` is the number of the
    /// collation of `character_set_results`; 0 where that is NULL, which means no conversion, 63 where it is binary.
    pub fn wire(&self, family: Family, results_charset: u16) -> WireType {
        let mut flags = 0;
        if self.unsigned {
            flags |= FLAG_UNSIGNED;
        }
        if self.zerofill {
            flags |= FLAG_ZEROFILL;
        }
        let number = |column_type, length, decimals| WireType {
            column_type,
            charset: BINARY_CHARSET,
            length,
            flags,
            decimals,
        };
        let point = |fsp: u8| if fsp == 0 { 0 } else { u32::from(fsp) + 1 };
        match self.kind {
            Kind::TinyInt(_) => number(1, u32::from(self.display_width()), 0),
            Kind::SmallInt(_) => number(2, u32::from(self.display_width()), 0),
            Kind::MediumInt(_) => number(9, u32::from(self.display_width()), 0),
            Kind::Int(_) => number(3, u32::from(self.display_width()), 0),
            Kind::BigInt(_) => number(8, u32::from(self.display_width()), 0),
            Kind::Decimal { precision, scale } => {
                let length =
                    u32::from(precision) + u32::from(scale > 0) + u32::from(!self.unsigned);
                number(246, length, scale)
            }
            Kind::Float => number(4, 12, 31),
            Kind::Double => number(5, 22, 31),
            Kind::Year => WireType {
                flags: FLAG_UNSIGNED | FLAG_ZEROFILL,
                ..number(13, 4, 0)
            },
            Kind::Date => WireType {
                flags: FLAG_BINARY,
                ..number(10, 10, 0)
            },
            Kind::Time { fsp } => WireType {
                flags: FLAG_BINARY,
                ..number(11, 10 + point(fsp), fsp)
            },
            Kind::DateTime { fsp } => WireType {
                flags: FLAG_BINARY,
                ..number(12, 19 + point(fsp), fsp)
            },
            Kind::Timestamp { fsp } => WireType {
                // MariaDB's is unsigned.
                flags: FLAG_BINARY
                    | if family == Family::MariaDb {
                        FLAG_UNSIGNED
                    } else {
                        0
                    },
                ..number(7, 19 + point(fsp), fsp)
            },
            _ => self.wire_string(results_charset),
        }
    }

    fn wire_string(&self, results_charset: u16) -> WireType {
        let collation = self.collation;
        // Lengths are told for the charset that the cells are in, even for types that count bytes.
        let (charset, most) = match (collation, results_charset) {
            (None, _) | (Some(_), BINARY_CHARSET) => (BINARY_CHARSET, 1),
            (Some(collation), 0) => (collation.id(), collation.charset().max_bytes()),
            (Some(collation), results) => {
                let charset = Charset::from_collation_id(results).unwrap_or(collation.charset());
                (results, charset.max_bytes())
            }
        };
        let is_bin = collation.is_none_or(|collation| collation.name().ends_with("_bin"));
        let mut flags = if is_bin { FLAG_BINARY } else { 0 };
        if self.is_large() {
            flags |= FLAG_BLOB;
        }
        let (column_type, length) = match self.kind {
            Kind::Char { chars } => (254, chars.saturating_mul(most)),
            Kind::Binary { len } => (254, len),
            Kind::VarChar { chars } => (253, chars.saturating_mul(most)),
            Kind::VarBinary { len } => (253, len),
            _ => {
                let each = if results_charset == 0 { 1 } else { most };
                let length = self.payload_max() * u64::from(each);
                (252, u32::try_from(length).unwrap_or(u32::MAX))
            }
        };
        WireType {
            column_type,
            charset,
            length,
            flags,
            decimals: 0,
        }
    }
}
