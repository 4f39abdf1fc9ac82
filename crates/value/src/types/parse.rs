//! The type that a text means, as it stands in a column definition.

use super::written::Written;
use super::{Digits, Kind, SqlType, TypeError};
use crate::charset::Charset;
use crate::collation::Collation;
use crate::members::{BadMembers, Members};

impl SqlType {
    /// Reads text such as `int(11) unsigned`, `decimal(10,2)`, `varchar(20)` or `datetime(6)`, as
    /// found in `COLUMN_TYPE` or in a column definition; the collation is given apart from it. A
    /// character type with the collation `binary` is the binary type of the same length, as on the
    /// server.
    pub fn parse(column_type: &str, collation: Option<&str>) -> Result<SqlType, TypeError> {
        if let Some((is_set, members)) = members_of(column_type) {
            return enumerated(column_type, is_set, members?, collation);
        }
        let lower = column_type.trim().to_ascii_lowercase();
        let written = Written::read(column_type, &lower)?;
        let ty = with_attributes(kind(&written, collation)?, &written)?;
        if !ty.is_character() {
            return Ok(ty);
        }
        let known = known_collation(&lower, collation)?;
        Ok(match known.charset() {
            Charset::Binary => SqlType {
                kind: binary_twin(ty.kind),
                ..ty
            },
            _ => SqlType {
                collation: Some(known),
                ..ty
            },
        })
    }
}

/// The kind that a name means, with its lengths.
fn kind(written: &Written<'_>, collation: Option<&str>) -> Result<Kind, TypeError> {
    let without_numbers = |kind| written.no_numbers().map(|()| kind);
    Ok(match written.name {
        "tinyint" | "int1" => Kind::TinyInt(display_width(written)?),
        "smallint" | "int2" => Kind::SmallInt(display_width(written)?),
        "mediumint" | "int3" | "middleint" => Kind::MediumInt(display_width(written)?),
        "int" | "integer" | "int4" => Kind::Int(display_width(written)?),
        "bigint" | "int8" => Kind::BigInt(display_width(written)?),
        "bool" | "boolean" => without_numbers(Kind::TinyInt(Some(1)))?,
        "decimal" | "dec" | "numeric" | "fixed" => decimal(written)?,
        "float" | "float4" | "double" | "real" | "float8" => floating(written)?,
        "bit" => bit(written)?,

        "char" | "character" => Kind::Char {
            chars: length_or_one(written)?,
        },
        "varchar" => Kind::VarChar {
            chars: longest_length(written)?,
        },
        "tinytext" => without_numbers(Kind::TinyText)?,
        "text" => text(written, collation)?,
        "mediumtext" => without_numbers(Kind::MediumText)?,
        "longtext" => without_numbers(Kind::LongText)?,
        "binary" => Kind::Binary {
            len: length_or_one(written)?,
        },
        "varbinary" => Kind::VarBinary {
            len: longest_length(written)?,
        },
        "tinyblob" => without_numbers(Kind::TinyBlob)?,
        "blob" => blob(written)?,
        "mediumblob" => without_numbers(Kind::MediumBlob)?,
        "longblob" => without_numbers(Kind::LongBlob)?,

        "date" => without_numbers(Kind::Date)?,
        "time" => Kind::Time { fsp: fsp(written)? },
        "datetime" => Kind::DateTime { fsp: fsp(written)? },
        "timestamp" => Kind::Timestamp { fsp: fsp(written)? },
        "year" => year(written)?,

        "json" => without_numbers(Kind::Json)?,
        "uuid" => without_numbers(Kind::Uuid)?,
        "inet6" => without_numbers(Kind::Inet6)?,
        "inet4" => without_numbers(Kind::Inet4)?,
        "enum" | "set" | "geometry" | "point" | "linestring" | "polygon" | "multipoint"
        | "multilinestring" | "multipolygon" | "geometrycollection" | "geomcollection"
        | "vector" | "serial" | "xmltype" => {
            return Err(TypeError::Unsupported(written.name.to_owned()));
        }
        _ => return Err(written.malformed()),
    })
}

/// The width of an integer type. Zero means what none means.
fn display_width(written: &Written<'_>) -> Result<Option<u8>, TypeError> {
    let Some(width) = written.at_most_one_number()? else {
        return Ok(None);
    };
    let width = written.within(width, 255)? as u8;
    Ok(Some(width).filter(|width| *width > 0))
}

/// Precision and scale. A precision of zero means what none means.
fn decimal(written: &Written<'_>) -> Result<Kind, TypeError> {
    let [precision, scale] = written.numbers;
    let precision = match precision {
        None | Some(0) => 10,
        Some(precision) => written.within(precision, 65)?,
    };
    let scale = written.within(scale.unwrap_or(0), 30.min(precision))?;
    Ok(Kind::Decimal {
        precision: precision as u8,
        scale: scale as u8,
    })
}

/// FLOAT and DOUBLE. One number is that of bits, and decides between the two.
fn floating(written: &Written<'_>) -> Result<Kind, TypeError> {
    let [bits, places] = written.numbers;
    match (written.name, bits, places) {
        ("float" | "float4", None | Some(..=24), None) => Ok(Kind::Float),
        ("float", Some(..=53), None) => Ok(Kind::Double),
        ("float" | "float4", Some(_), Some(_)) => Ok(Kind::Float),
        ("double" | "real" | "float8", None, _) => Ok(Kind::Double),
        ("double" | "real" | "float8", Some(_), Some(_)) => Ok(Kind::Double),
        _ => Err(written.unsupported()),
    }
}

/// The digits of FLOAT(m,d) and DOUBLE(m,d).
fn digits(kind: Kind, written: &Written<'_>) -> Result<Option<Digits>, TypeError> {
    let (Kind::Float | Kind::Double, [Some(all), Some(decimals)]) = (kind, written.numbers) else {
        return Ok(None);
    };
    let all = written.within(all, 255)?;
    Ok(Some(Digits {
        all: all as u8,
        decimals: written.within(decimals, 30.min(all))? as u8,
    }))
}

/// BIT, of one bit unless more are given.
fn bit(written: &Written<'_>) -> Result<Kind, TypeError> {
    let bits = written.at_most_one_number()?.unwrap_or(1).max(1);
    Ok(Kind::Bit {
        bits: written.within(bits, 64)? as u8,
    })
}

/// The length of CHAR and BINARY.
fn length_or_one(written: &Written<'_>) -> Result<u32, TypeError> {
    written.within(written.at_most_one_number()?.unwrap_or(1), 255)
}

/// The length of VARCHAR and VARBINARY, which has to be given.
fn longest_length(written: &Written<'_>) -> Result<u32, TypeError> {
    let length = written.at_most_one_number()?;
    written.within(length.ok_or_else(|| written.malformed())?, 65_535)
}

/// TEXT, and TEXT(n): the smallest type that holds n characters.
fn text(written: &Written<'_>, collation: Option<&str>) -> Result<Kind, TypeError> {
    let Some(chars) = written.at_most_one_number()? else {
        return Ok(Kind::Text);
    };
    let most = collation
        .and_then(Collation::from_name)
        .map_or(4, |known| known.charset().max_bytes());
    Ok(match u64::from(chars) * u64::from(most) {
        0 => Kind::Text,
        1..=0xFF => Kind::TinyText,
        0x100..=0xFFFF => Kind::Text,
        0x10000..=0xFF_FFFF => Kind::MediumText,
        _ => Kind::LongText,
    })
}

/// BLOB, and BLOB(n): the smallest type that holds n bytes.
fn blob(written: &Written<'_>) -> Result<Kind, TypeError> {
    Ok(match written.at_most_one_number()? {
        None | Some(0) => Kind::Blob,
        Some(1..=0xFF) => Kind::TinyBlob,
        Some(0x100..=0xFFFF) => Kind::Blob,
        Some(0x10000..=0xFF_FFFF) => Kind::MediumBlob,
        Some(_) => Kind::LongBlob,
    })
}

/// The digits of fractions of a second.
fn fsp(written: &Written<'_>) -> Result<u8, TypeError> {
    let digits = written.at_most_one_number()?.unwrap_or(0);
    Ok(written.within(digits, 6)? as u8)
}

/// YEAR, whose only width is 4.
fn year(written: &Written<'_>) -> Result<Kind, TypeError> {
    match written.at_most_one_number()? {
        None | Some(4) => Ok(Kind::Year),
        Some(_) => Err(written.unsupported()),
    }
}

/// UNSIGNED and ZEROFILL are for numbers. YEAR may have them, and they mean nothing there.
fn with_attributes(kind: Kind, written: &Written<'_>) -> Result<SqlType, TypeError> {
    let plain = SqlType::plain(kind);
    let is_allowed = plain.is_numeric() || kind == Kind::Year;
    if (written.unsigned || written.zerofill) && !is_allowed {
        return Err(written.malformed());
    }
    if kind == Kind::Year {
        return Ok(plain);
    }
    Ok(SqlType {
        unsigned: written.unsigned,
        zerofill: written.zerofill,
        digits: digits(kind, written)?,
        ..plain
    })
}

/// The collation of a type that has to have one.
fn known_collation(column_type: &str, collation: Option<&str>) -> Result<Collation, TypeError> {
    let name = collation.ok_or_else(|| TypeError::CollationMissing(column_type.to_owned()))?;
    Collation::from_name(name).ok_or_else(|| TypeError::Collation(name.to_owned()))
}

/// The binary type of the same length as a character type.
fn binary_twin(kind: Kind) -> Kind {
    match kind {
        Kind::Char { chars } => Kind::Binary { len: chars },
        Kind::VarChar { chars } => Kind::VarBinary { len: chars },
        Kind::TinyText => Kind::TinyBlob,
        Kind::Text => Kind::Blob,
        Kind::MediumText => Kind::MediumBlob,
        Kind::LongText => Kind::LongBlob,
        other => other,
    }
}

/// Whether a type is SET rather than ENUM, and what stands between its parentheses; `None` for
/// other types.
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

/// An ENUM or SET.
fn enumerated(
    column_type: &str,
    is_set: bool,
    members: &str,
    collation: Option<&str>,
) -> Result<SqlType, TypeError> {
    // catalogs name no collation of those of bytes
    let known = known_collation(column_type, collation.or(Some("binary")))?;
    let word = if is_set { "set" } else { "enum" };
    // which bytes other members are depends on the session that defines them
    let may_differ = !members.is_ascii() || members.contains(" '");
    if known.charset() == Charset::Binary && may_differ {
        return Err(TypeError::Unsupported(format!(
            "{word} of binary strings beyond ASCII, or with spaces at their ends"
        )));
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
