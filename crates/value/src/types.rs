//! Column types: parsing, printing as each server family prints them, and what follows from a type alone.

use crate::charset::Charset;
use crate::collation::{Collation, Weights};
use crate::decimal;
use crate::members::{BadMembers, Members};

/// The server family behind the proxy. Texts, limits and some coercions differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// MariaDB, as of 10.11.
    MariaDb,
    /// MySQL, as of 9.7.
    MySql,
}

/// The kind of a column's type with its lengths.
///
/// Integers carry the display width that the definition gave; it shows in the output of zerofill columns and in
/// result metadata, never in the value.
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
    /// The collation of CHAR, VARCHAR, TEXT, ENUM and SET types, and of JSON where that is text (MariaDB); `None` for
    /// all others.
    pub collation: Option<Collation>,
}

/// Why a column type cannot be handled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// The type exists but values of it are not reproduced here.
    #[error("columns of type {0} cannot be protected")]
    Unsupported(String),
    /// Not a column type.
    #[error("'{0}' is not a column type")]
    Malformed(String),
    /// Lengths beyond what a server accepts.
    #[error("the length, precision or scale of '{0}' is out of range")]
    Length(String),
    /// A collation of a charset that cannot be converted exactly.
    #[error("the collation {0} belongs to a character set that is not supported")]
    Collation(String),
    /// A character type without a collation.
    #[error("a collation is needed for the type {0}")]
    CollationMissing(String),
}

/// The order key of a type, see [`crate::order_bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderWidth {
    /// Length of the order bytes, always the same for one type.
    pub bytes: usize,
    /// Equal order bytes mean equal values (in the sense of SQL `=`), so that the key also answers equality.
    /// Otherwise equal order bytes only make values candidates.
    pub exact: bool,
    /// [`crate::payload_from_order`] gives back the stored value. False for strings and for FLOAT and DOUBLE, whose
    /// negative zero has the order bytes of zero.
    pub invertible: bool,
}

/// Bytes of a string's weights that its order key covers.
pub const STRING_ORDER_BYTES: usize = 16;

impl SqlType {
    /// A type without UNSIGNED, ZEROFILL or collation.
    pub const fn plain(kind: Kind) -> SqlType {
        SqlType {
            kind,
            unsigned: false,
            zerofill: false,
            collation: None,
        }
    }

    /// Reads text such as `int(11) unsigned`, `decimal(10,2)`, `varchar(20)` or `datetime(6)`, as found in
    /// `COLUMN_TYPE` or in a column definition; the collation is given apart from it. A character type with the
    /// collation `binary` is the binary type of the same length, as on the server.
    pub fn parse(column_type: &str, collation: Option<&str>) -> Result<SqlType, TypeError> {
        if let Some((is_set, members)) = members_of(column_type) {
            return Self::enumerated(column_type, is_set, members?, collation);
        }
        let lower = column_type.trim().to_ascii_lowercase();
        let malformed = || TypeError::Malformed(column_type.to_owned());
        let out_of_range = || TypeError::Length(column_type.to_owned());
        let (head, arguments, tail) = match lower.find('(') {
            Some(open) => {
                let close = lower
                    .find(')')
                    .filter(|close| *close > open)
                    .ok_or_else(malformed)?;
                (
                    lower[..open].trim_end(),
                    Some(&lower[open + 1..close]),
                    &lower[close + 1..],
                )
            }
            None => (lower.as_str(), None, ""),
        };
        let mut words = head
            .split_ascii_whitespace()
            .chain(tail.split_ascii_whitespace())
            .peekable();
        let name = words.next().ok_or_else(malformed)?;
        let name = match (name, words.peek().copied()) {
            ("double", Some("precision")) => {
                words.next();
                "double"
            }
            ("char" | "character", Some("varying")) => {
                words.next();
                "varchar"
            }
            _ => name,
        };
        let (mut unsigned, mut zerofill) = (false, false);
        for word in words {
            match word {
                "unsigned" => unsigned = true,
                "signed" => {}
                "zerofill" => (unsigned, zerofill) = (true, true),
                _ => return Err(malformed()),
            }
        }
        let mut numbers = [None::<u32>; 2];
        if let Some(arguments) = arguments {
            let mut rest = arguments.split(',');
            for slot in &mut numbers {
                match rest.next() {
                    Some(text) => *slot = Some(text.trim().parse().map_err(|_| malformed())?),
                    None => break,
                }
            }
            if rest.next().is_some() {
                return Err(malformed());
            }
        }
        let [first, second] = numbers;
        let one = || {
            if second.is_some() {
                Err(malformed())
            } else {
                Ok(first)
            }
        };
        let none = || {
            if first.is_some() {
                Err(malformed())
            } else {
                Ok(())
            }
        };
        let within = |value: u32, most: u32| {
            if value > most {
                Err(out_of_range())
            } else {
                Ok(value)
            }
        };
        let width = || -> Result<Option<u8>, TypeError> {
            match one()? {
                Some(width) => Ok(Some(within(width, 255)? as u8).filter(|width| *width > 0)),
                None => Ok(None),
            }
        };
        let fsp = || -> Result<u8, TypeError> { Ok(within(one()?.unwrap_or(0), 6)? as u8) };
        let kind = match name {
            "tinyint" | "int1" => Kind::TinyInt(width()?),
            "bool" | "boolean" => {
                none()?;
                Kind::TinyInt(Some(1))
            }
            "smallint" | "int2" => Kind::SmallInt(width()?),
            "mediumint" | "int3" | "middleint" => Kind::MediumInt(width()?),
            "int" | "integer" | "int4" => Kind::Int(width()?),
            "bigint" | "int8" => Kind::BigInt(width()?),
            "decimal" | "dec" | "numeric" | "fixed" => {
                let precision = match first {
                    None | Some(0) => 10,
                    Some(precision) => within(precision, 65)?,
                };
                let scale = within(second.unwrap_or(0), 30.min(precision))?;
                Kind::Decimal {
                    precision: precision as u8,
                    scale: scale as u8,
                }
            }
            "float" | "float4" if second.is_none() && first.is_none_or(|bits| bits <= 24) => {
                Kind::Float
            }
            "float" if second.is_none() && first.is_some_and(|bits| bits <= 53) => Kind::Double,
            "double" | "real" | "float8" if first.is_none() => Kind::Double,
            // FLOAT(M,D) and DOUBLE(M,D) round to D places on the way in by rules of their own.
            "float" | "float4" | "double" | "real" | "float8" => {
                return Err(TypeError::Unsupported(lower));
            }
            "char" | "character" => Kind::Char {
                chars: within(one()?.unwrap_or(1), 255)?,
            },
            "varchar" => Kind::VarChar {
                chars: within(one()?.ok_or_else(malformed)?, 65_535)?,
            },
            "tinytext" | "text" | "mediumtext" | "longtext" | "tinyblob" | "blob"
            | "mediumblob" | "longblob" => {
                let named = match name {
                    "tinytext" => Kind::TinyText,
                    "text" => Kind::Text,
                    "mediumtext" => Kind::MediumText,
                    "longtext" => Kind::LongText,
                    "tinyblob" => Kind::TinyBlob,
                    "blob" => Kind::Blob,
                    "mediumblob" => Kind::MediumBlob,
                    _ => Kind::LongBlob,
                };
                match (name, one()?) {
                    (_, None) => named,
                    // TEXT(n) and BLOB(n) mean the smallest type that holds n characters.
                    ("text", Some(chars)) => {
                        let most = collation
                            .and_then(Collation::from_name)
                            .map_or(4, |known| known.charset().max_bytes());
                        match u64::from(chars) * u64::from(most) {
                            0 => Kind::Text,
                            1..=0xFF => Kind::TinyText,
                            0x100..=0xFFFF => Kind::Text,
                            0x10000..=0xFF_FFFF => Kind::MediumText,
                            _ => Kind::LongText,
                        }
                    }
                    ("blob", Some(len)) => match len {
                        0 => Kind::Blob,
                        1..=0xFF => Kind::TinyBlob,
                        0x100..=0xFFFF => Kind::Blob,
                        0x10000..=0xFF_FFFF => Kind::MediumBlob,
                        _ => Kind::LongBlob,
                    },
                    _ => return Err(malformed()),
                }
            }
            "binary" => Kind::Binary {
                len: within(one()?.unwrap_or(1), 255)?,
            },
            "varbinary" => Kind::VarBinary {
                len: within(one()?.ok_or_else(malformed)?, 65_535)?,
            },
            "date" => {
                none()?;
                Kind::Date
            }
            "time" => Kind::Time { fsp: fsp()? },
            "datetime" => Kind::DateTime { fsp: fsp()? },
            "timestamp" => Kind::Timestamp { fsp: fsp()? },
            "year" => match one()? {
                None | Some(4) => Kind::Year,
                Some(_) => return Err(TypeError::Unsupported(lower)),
            },
            "bit" => {
                let bits = one()?.unwrap_or(1).max(1);
                Kind::Bit {
                    bits: within(bits, 64)? as u8,
                }
            }
            "json" => {
                none()?;
                Kind::Json
            }
            "enum" | "set" | "geometry" | "point" | "linestring" | "polygon" | "multipoint"
            | "multilinestring" | "multipolygon" | "geometrycollection" | "geomcollection"
            | "uuid" | "inet4" | "inet6" | "vector" | "serial" | "xmltype" => {
                return Err(TypeError::Unsupported(name.to_owned()));
            }
            _ => return Err(malformed()),
        };
        let mut ty = SqlType {
            kind,
            unsigned,
            zerofill,
            collation: None,
        };
        if (unsigned || zerofill) && !ty.is_numeric() && kind != Kind::Year {
            return Err(malformed());
        }
        if kind == Kind::Year {
            (ty.unsigned, ty.zerofill) = (false, false);
        }
        if ty.is_character() {
            let name = collation.ok_or_else(|| TypeError::CollationMissing(lower.clone()))?;
            let known =
                Collation::from_name(name).ok_or_else(|| TypeError::Collation(name.to_owned()))?;
            if known.charset() == Charset::Binary {
                ty.kind = ty.binary_twin();
            } else {
                ty.collation = Some(known);
            }
        }
        Ok(ty)
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

    /// An ENUM or SET.
    fn enumerated(
        column_type: &str,
        is_set: bool,
        members: &str,
        collation: Option<&str>,
    ) -> Result<SqlType, TypeError> {
        let name = collation.ok_or_else(|| TypeError::CollationMissing(column_type.to_owned()))?;
        let known =
            Collation::from_name(name).ok_or_else(|| TypeError::Collation(name.to_owned()))?;
        let word = if is_set { "set" } else { "enum" };
        if known.charset() == Charset::Binary {
            return Err(TypeError::Unsupported(format!("{word} of binary strings")));
        }
        // commas, blanks and digits are looked for as bytes
        if !known.charset().has_ascii() {
            return Err(TypeError::Unsupported(format!(
                "{word} in the character set {}",
                known.charset().name()
            )));
        }
        let members = Members::parse(members, known, is_set).map_err(|bad| match bad {
            BadMembers::Malformed => TypeError::Malformed(column_type.to_owned()),
            BadMembers::Unsupported(why) => TypeError::Unsupported(format!("{word} {why}")),
        })?;
        Ok(SqlType {
            collation: Some(known),
            ..SqlType::plain(if is_set {
                Kind::Set(members)
            } else {
                Kind::Enum(members)
            })
        })
    }

    fn binary_twin(&self) -> Kind {
        match self.kind {
            Kind::Char { chars } => Kind::Binary { len: chars },
            Kind::VarChar { chars } => Kind::VarBinary { len: chars },
            Kind::TinyText => Kind::TinyBlob,
            Kind::Text => Kind::Blob,
            Kind::MediumText => Kind::MediumBlob,
            Kind::LongText => Kind::LongBlob,
            other => other,
        }
    }

    /// The type as this family prints it in SHOW CREATE TABLE and `COLUMN_TYPE`, without charset and collation.
    pub fn to_sql(&self, family: Family) -> String {
        let mut text = match self.kind {
            Kind::TinyInt(_)
            | Kind::SmallInt(_)
            | Kind::MediumInt(_)
            | Kind::Int(_)
            | Kind::BigInt(_) => {
                let name = match self.kind {
                    Kind::TinyInt(_) => "tinyint",
                    Kind::SmallInt(_) => "smallint",
                    Kind::MediumInt(_) => "mediumint",
                    Kind::Int(_) => "int",
                    _ => "bigint",
                };
                let width = self.display_width();
                let shown = match family {
                    Family::MariaDb => true,
                    Family::MySql => {
                        self.zerofill
                            || (matches!(self.kind, Kind::TinyInt(Some(1))) && !self.unsigned)
                    }
                };
                if shown {
                    format!("{name}({width})")
                } else {
                    name.to_owned()
                }
            }
            Kind::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
            Kind::Float => "float".to_owned(),
            Kind::Double => "double".to_owned(),
            Kind::Char { chars } => format!("char({chars})"),
            Kind::VarChar { chars } => format!("varchar({chars})"),
            Kind::TinyText => "tinytext".to_owned(),
            Kind::Text => "text".to_owned(),
            Kind::MediumText => "mediumtext".to_owned(),
            Kind::LongText => "longtext".to_owned(),
            Kind::Binary { len } => format!("binary({len})"),
            Kind::VarBinary { len } => format!("varbinary({len})"),
            Kind::TinyBlob => "tinyblob".to_owned(),
            Kind::Blob => "blob".to_owned(),
            Kind::MediumBlob => "mediumblob".to_owned(),
            Kind::LongBlob => "longblob".to_owned(),
            Kind::Date => "date".to_owned(),
            Kind::Time { fsp } => with_fsp("time", fsp),
            Kind::DateTime { fsp } => with_fsp("datetime", fsp),
            Kind::Timestamp { fsp } => with_fsp("timestamp", fsp),
            Kind::Year => match family {
                Family::MariaDb => "year(4)".to_owned(),
                Family::MySql => "year".to_owned(),
            },
            Kind::Bit { bits } => format!("bit({bits})"),
            Kind::Enum(members) => format!("enum({})", members.definition()),
            Kind::Set(members) => format!("set({})", members.definition()),
            Kind::Json => match family {
                Family::MariaDb => "longtext".to_owned(),
                Family::MySql => "json".to_owned(),
            },
        };
        if self.unsigned {
            text.push_str(" unsigned");
        }
        if self.zerofill {
            text.push_str(" zerofill");
        }
        text
    }

    /// The display width of an integer type, given or by default.
    pub(crate) fn display_width(&self) -> u8 {
        // MySQL and MariaDB alike: room for the longest value and its sign. Values of MEDIUMINT and BIGINT UNSIGNED
        // are wider than the signed ones by the sign's place, so those two do not differ.
        match self.kind {
            Kind::TinyInt(width) => width.unwrap_or(if self.unsigned { 3 } else { 4 }),
            Kind::SmallInt(width) => width.unwrap_or(if self.unsigned { 5 } else { 6 }),
            Kind::MediumInt(width) => width.unwrap_or(if self.unsigned { 8 } else { 9 }),
            Kind::Int(width) => width.unwrap_or(if self.unsigned { 10 } else { 11 }),
            Kind::BigInt(width) => width.unwrap_or(20),
            _ => 0,
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
    /// The servers sort them by their numbers and compare them with texts by their names, so that `<`, MIN and MAX have
    /// little to do with ORDER BY.
    pub fn is_enumerated(&self) -> bool {
        matches!(self.kind, Kind::Enum(_) | Kind::Set(_))
    }

    /// Characters and bytes of the longest text that a value of an ENUM or SET is shown as; zeros for other types.
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

    /// Equal weights mean equal stored bytes and the other way round, so that a value found by its weight needs no
    /// second look. False where the collation folds case or accents, where trailing spaces do not count, and for
    /// FLOAT and DOUBLE, which hold two zeros.
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
            let (per_character, pad_space) = match self.collation {
                None => (Some(1), false),
                Some(collation) => {
                    let per_character = match collation.weights() {
                        Weights::Unknown => return None,
                        Weights::Bytes => Some(collation.charset().max_bytes() as usize),
                        Weights::Single(_) => Some(1),
                        Weights::GeneralCi | Weights::Pairs(_) => Some(2),
                        Weights::CodePoints => Some(3),
                        // One character may have many weights.
                        Weights::UnicodeCi | Weights::Uca0900AiCi | Weights::Uca1400AiCi => None,
                    };
                    (per_character, collation.pad_space())
                }
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
            return Some(match whole {
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
            });
        }
        let invertible = !matches!(self.kind, Kind::Float | Kind::Double);
        Some(OrderWidth {
            bytes: self.payload_max() as usize,
            exact: true,
            invertible,
        })
    }
}

/// Whether two texts that are not the same have different weights, spaces at the end aside.
fn has_exact_weights(collation: Collation) -> bool {
    matches!(collation.weights(), Weights::Bytes | Weights::CodePoints)
}

/// Whether a type is SET rather than ENUM, and what stands between its parentheses; `None` for other types.
fn members_of(column_type: &str) -> Option<(bool, Result<&str, TypeError>)> {
    let text = column_type.trim();
    let (word, rest) = text.split_at(text.find('(')?);
    let is_set = match word.trim_end().to_ascii_lowercase().as_str() {
        "enum" => false,
        "set" => true,
        _ => return None,
    };
    let inside = rest
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
        .ok_or_else(|| TypeError::Malformed(column_type.to_owned()));
    Some((is_set, inside))
}

fn with_fsp(name: &str, fsp: u8) -> String {
    if fsp == 0 {
        name.to_owned()
    } else {
        format!("{name}({fsp})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_each_family_does() {
        for (given, mariadb, mysql) in [
            ("int(11)", "int(11)", "int"),
            ("INT", "int(11)", "int"),
            ("int unsigned", "int(10) unsigned", "int unsigned"),
            ("tinyint(1)", "tinyint(1)", "tinyint(1)"),
            ("bool", "tinyint(1)", "tinyint(1)"),
            (
                "tinyint(1) unsigned",
                "tinyint(1) unsigned",
                "tinyint unsigned",
            ),
            ("tinyint", "tinyint(4)", "tinyint"),
            (
                "mediumint unsigned",
                "mediumint(8) unsigned",
                "mediumint unsigned",
            ),
            ("bigint unsigned", "bigint(20) unsigned", "bigint unsigned"),
            (
                "int(5) zerofill",
                "int(5) unsigned zerofill",
                "int(5) unsigned zerofill",
            ),
            (
                "int zerofill",
                "int(10) unsigned zerofill",
                "int(10) unsigned zerofill",
            ),
            ("decimal", "decimal(10,0)", "decimal(10,0)"),
            (
                "numeric(12,3) unsigned",
                "decimal(12,3) unsigned",
                "decimal(12,3) unsigned",
            ),
            ("float(24)", "float", "float"),
            ("float(25)", "double", "double"),
            ("double precision", "double", "double"),
            ("datetime(6)", "datetime(6)", "datetime(6)"),
            ("time(0)", "time", "time"),
            ("year(4)", "year(4)", "year"),
            ("blob(100)", "tinyblob", "tinyblob"),
        ] {
            let ty = SqlType::parse(given, None).expect(given);
            assert_eq!(ty.to_sql(Family::MariaDb), mariadb);
            assert_eq!(ty.to_sql(Family::MySql), mysql);
        }
        let text = |sql: &str, collation| {
            SqlType::parse(sql, Some(collation))
                .expect(sql)
                .to_sql(Family::MySql)
        };
        assert_eq!(text("text(100)", "utf8mb4_bin"), "text");
        assert_eq!(text("text(100)", "latin1_swedish_ci"), "tinytext");
        assert_eq!(text("character varying (20)", "utf8mb4_bin"), "varchar(20)");
        assert_eq!(text("varchar(20)", "binary"), "varbinary(20)");
        assert_eq!(text("char", "latin1_swedish_ci"), "char(1)");
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for bad in [
            "",
            "(",
            "int(",
            "int(x)",
            "int(1,2)",
            "bit(65)",
            "bit(1,2)",
            "enum('a'",
            "enum(a)",
            "enum()",
            "set('a,b')",
            "enum('a') unsigned",
            "float(5,2)",
            "double(5,2)",
            "float(54)",
            "decimal(66,0)",
            "decimal(10,31)",
            "decimal(5,6)",
            "datetime(7)",
            "date(3)",
            "varchar",
            "date unsigned",
            "int foo",
            "json(3)",
            "char(256)",
        ] {
            assert!(SqlType::parse(bad, Some("utf8mb4_bin")).is_err(), "{bad}");
        }
        assert_eq!(
            SqlType::parse("char(3)", None),
            Err(TypeError::CollationMissing("char(3)".to_owned()))
        );
        assert!(matches!(
            SqlType::parse("char(3)", Some("swe7_bin")),
            Err(TypeError::Collation(_))
        ));
    }

    #[test]
    fn order_widths() {
        let width = |sql: &str, collation| {
            let width = SqlType::parse(sql, collation)
                .expect(sql)
                .order_width()
                .expect(sql);
            (width.bytes, width.exact)
        };
        assert_eq!(width("int", None), (4, true));
        assert_eq!(width("binary(16)", None), (16, true));
        assert_eq!(width("varbinary(15)", None), (16, true));
        assert_eq!(width("varbinary(16)", None), (16, false));
        assert_eq!(width("varchar(8)", Some("utf8mb4_general_ci")), (16, true));
        assert_eq!(width("varchar(9)", Some("utf8mb4_general_ci")), (16, false));
        assert_eq!(width("char(1)", Some("utf8mb4_unicode_ci")), (16, false));
        assert_eq!(
            SqlType::parse("char(1)", Some("utf8mb4_czech_ci"))
                .expect("known")
                .order_width(),
            None
        );
    }
}
