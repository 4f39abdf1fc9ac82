//! The column definition that a server sends for a column of a type.

use crate::charset::Charset;
use crate::fixed_binary;
use crate::types::{Family, Kind, SqlType};

/// What a column definition packet says about a column, without names and without the flags for
/// keys and NOT NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireType {
    /// `MYSQL_TYPE_…`.
    pub column_type: u8,
    /// Number of the collation whose charset the cells are in; 63 for numbers, dates and binary
    /// strings.
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
/// ENUM_FLAG
pub const FLAG_ENUM: u16 = 256;
/// SET_FLAG
pub const FLAG_SET: u16 = 2048;
/// BINARY_FLAG
pub const FLAG_BINARY: u16 = 128;
/// NUM_FLAG is not sent; TIMESTAMP_FLAG marks TIMESTAMP columns that update themselves.
pub const FLAG_TIMESTAMP: u16 = 1024;

const BINARY_CHARSET: u16 = 63;

impl SqlType {
    /// The column definition that this family sends for such a column. `results_charset` is the
    /// number of the collation of `character_set_results`; 0 where that is NULL, which means no
    /// conversion, 63 where it is binary.
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
            Kind::Float => number(4, self.real_width(), self.real_decimals()),
            Kind::Double => number(5, self.real_width(), self.real_decimals()),
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
            Kind::Bit { bits } => WireType {
                flags: FLAG_UNSIGNED,
                ..number(16, u32::from(bits), 0)
            },
            Kind::Json if self.is_json_value() => WireType {
                column_type: 245,
                charset: BINARY_CHARSET,
                length: u32::MAX,
                flags: FLAG_BLOB | FLAG_BINARY,
                decimals: 0,
            },
            Kind::Uuid | Kind::Inet6 | Kind::Inet4 => self.wire_fixed_binary(results_charset),
            _ => self.wire_string(results_charset),
        }
    }

    /// What MariaDB tells besides of such a column, and of `MIN` and `MAX` of it, to clients that
    /// ask for extended metadata: a number (0 for a type, 1 for a format), a length and a name.
    pub fn extended_metadata(&self) -> &'static [u8] {
        match self.kind {
            Kind::Json => b"\x01\x04json",
            Kind::Uuid => b"\x00\x04uuid",
            Kind::Inet6 => b"\x00\x05inet6",
            Kind::Inet4 => b"\x00\x05inet4",
            _ => b"",
        }
    }

    /// The column definition that this family sends for `MIN` or `MAX` of such a column.
    pub fn wire_of_extremum(&self, family: Family, results_charset: u16) -> WireType {
        let natural = SqlType {
            kind: match self.kind {
                Kind::TinyInt(_) => Kind::TinyInt(None),
                Kind::SmallInt(_) => Kind::SmallInt(None),
                Kind::MediumInt(_) => Kind::MediumInt(None),
                Kind::Int(_) => Kind::Int(None),
                Kind::BigInt(_) => Kind::BigInt(None),
                other => other,
            },
            zerofill: false,
            ..*self
        };
        let mut wire = natural.wire(family, results_charset);
        wire.flags &= !(FLAG_ZEROFILL | FLAG_BLOB);
        match self.is_fixed_binary() {
            true => wire.flags &= !FLAG_BINARY,
            false if !self.is_character() => wire.flags |= FLAG_BINARY,
            false => {}
        }
        if self.is_large() {
            // The bytes of the column are taken for characters.
            let each = self.collation.map_or(1, |c| c.charset().max_bytes());
            wire.length = wire.length.saturating_mul(each);
        }
        let is_string = self.is_character() || self.is_binary();
        match family {
            Family::MySql if is_string => wire.decimals = 31,
            Family::MySql => {}
            Family::MariaDb => {
                if is_string {
                    wire.decimals = 39;
                }
                match self.kind {
                    // digits of a double, a sign and a point
                    Kind::Float | Kind::Double => {
                        wire.length = self.digits.map_or(23, |d| 17 + u32::from(d.decimals));
                    }
                    // seven digits and a sign, but not less than what the definition says
                    Kind::MediumInt(Some(width)) if !self.unsigned => {
                        wire.length = u32::from(width).max(8);
                    }
                    Kind::TinyText | Kind::TinyBlob => wire.column_type = 249,
                    Kind::MediumText | Kind::MediumBlob => wire.column_type = 250,
                    Kind::LongText | Kind::LongBlob => wire.column_type = 251,
                    _ => {}
                }
            }
        }
        wire
    }

    /// The texts of UUID, INET6 and INET4, which are ASCII.
    fn wire_fixed_binary(&self, results_charset: u16) -> WireType {
        const LATIN1_SWEDISH_CI: u16 = 8;
        let (charset, most) = match results_charset {
            0 => (LATIN1_SWEDISH_CI, 1),
            BINARY_CHARSET => (BINARY_CHARSET, 1),
            results => {
                let known = Charset::from_collation_id(results);
                (results, known.map_or(1, |charset| charset.max_bytes()))
            }
        };
        WireType {
            column_type: 254,
            charset,
            length: fixed_binary::characters(self.kind) * most,
            flags: FLAG_UNSIGNED | FLAG_BINARY,
            decimals: 0,
        }
    }

    fn wire_string(&self, results_charset: u16) -> WireType {
        // members of bytes are sent as they are
        let collation = self.collation.filter(|c| c.charset() != Charset::Binary);
        // Lengths are told for the charset that the cells are in, even for types that count bytes.
        let (charset, most) = match (collation, results_charset) {
            (None, _) | (Some(_), BINARY_CHARSET) => (BINARY_CHARSET, 1),
            (Some(collation), 0) => (collation.announced_id(), collation.charset().max_bytes()),
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
        let characters = |members: u64| {
            u32::try_from(members.saturating_mul(u64::from(most))).unwrap_or(u32::MAX)
        };
        match self.kind {
            Kind::Enum(_) => flags |= FLAG_ENUM,
            Kind::Set(_) => flags |= FLAG_SET,
            _ => {}
        }
        let (column_type, length) = match self.kind {
            Kind::Enum(_) | Kind::Set(_) => (254, characters(self.text_lengths().0)),
            Kind::Char { chars } => (254, chars.saturating_mul(most)),
            Kind::Binary { len } => (254, len),
            Kind::VarChar { chars } => (253, chars.saturating_mul(most)),
            Kind::VarBinary { len } => (253, len),
            _ => {
                // of the shortest characters, as many as fit
                let least = collation.map_or(1, |c| c.charset().min_bytes());
                let length = match results_charset {
                    0 => self.payload_max(),
                    _ => self.payload_max() / u64::from(least) * u64::from(most),
                };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from MariaDB 10.11 and MySQL 9.7 under `SET NAMES utf8mb4`.
    #[test]
    fn extremes_have_definitions_of_their_own() {
        let wire = |text: &str, collation, family| {
            let ty = SqlType::parse(text, collation).expect("a type");
            let wire = ty.wire_of_extremum(family, 45);
            (wire.column_type, wire.length, wire.decimals, wire.flags)
        };
        let general = Some("utf8mb4_general_ci");
        for (text, collation, mariadb, mysql) in [
            ("float", None, (4, 23, 31, 128), (4, 12, 31, 128)),
            ("year(4)", None, (13, 4, 0, 160), (13, 4, 0, 160)),
            (
                "tinyint(3) unsigned zerofill",
                None,
                (1, 3, 0, 160),
                (1, 3, 0, 160),
            ),
            ("tinytext", general, (249, 4080, 39, 0), (252, 4080, 31, 0)),
            (
                "text",
                general,
                (252, 1_048_560, 39, 0),
                (252, 1_048_560, 31, 0),
            ),
            (
                "text",
                Some("latin1_swedish_ci"),
                (252, 262_140, 39, 0),
                (252, 262_140, 31, 0),
            ),
            ("int(5)", None, (3, 11, 0, 128), (3, 11, 0, 128)),
            ("mediumint(2)", None, (9, 8, 0, 128), (9, 9, 0, 128)),
            ("mediumint(9)", None, (9, 9, 0, 128), (9, 9, 0, 128)),
            ("blob", None, (252, 65_535, 39, 128), (252, 65_535, 31, 128)),
            ("char(4)", general, (254, 16, 39, 0), (254, 16, 31, 0)),
            ("binary(4)", None, (254, 4, 39, 128), (254, 4, 31, 128)),
            ("timestamp(2)", None, (7, 22, 2, 160), (7, 22, 2, 128)),
        ] {
            assert_eq!(wire(text, collation, Family::MariaDb), mariadb, "{text}");
            assert_eq!(wire(text, collation, Family::MySql), mysql, "{text}");
        }
    }
}
