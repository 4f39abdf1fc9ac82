//! Cells of row events as typed values.
//!
//! A value is exact: what it says, and nothing else, is what the server stored. Numbers know their
//! sign, decimals keep their digits, times their fraction; TIMESTAMP is a moment, not a text in
//! some time zone; texts are bytes in the column's character set; ENUM and SET are numbers (0 is
//! the empty text of a wrong value).

use onionskin_wire::Reader;

use super::columns::Column;
use super::error::{BinlogError, BinlogResult};
use super::json::Json;
use super::table_map::{MappedColumn, column_type::*};

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The image does not hold the column: it is virtual, and the server computes it.
    Absent,
    /// NULL.
    Null,
    /// A number with sign.
    Int(i64),
    /// A number without sign.
    UInt(u64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL, with all digits of its scale: `-0.50`.
    Decimal(String),
    /// BIT, right-aligned.
    Bit(u64),
    /// Index from 1 of an ENUM's member.
    Enum(u16),
    /// Bits of a SET's members.
    Set(u64),
    /// YEAR, 0 or 1901 to 2155.
    Year(u16),
    /// DATE; all parts may be zero.
    Date(Date),
    /// DATETIME, and the microseconds.
    DateTime(Date, Time),
    /// TIMESTAMP: seconds since 1970 in UTC and microseconds; 0 and 0 is `0000-00-00 00:00:00`.
    Timestamp(u32, u32),
    /// TIME.
    Time {
        /// Below zero.
        negative: bool,
        /// Hours to 838.
        time: Time,
    },
    /// CHAR, VARCHAR and TEXT in the column's character set; BINARY, VARBINARY, BLOB; GEOMETRY with
    /// its SRID as the server stores it; VECTOR; MariaDB's UUID, INET4 and INET6 as the bytes that
    /// a cast to BINARY gives.
    Bytes(Vec<u8>),
    /// MySQL's JSON. MariaDB's is a text.
    Json(Json),
}

/// A day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Date {
    pub year: u16,
    pub month: u8,
    pub day: u8,
}

/// A time of day, or a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Time {
    pub hour: u16,
    pub minute: u8,
    pub second: u8,
    pub microsecond: u32,
}

/// Reads one cell.
pub fn decode(r: &mut Reader<'_>, mapped: &MappedColumn, column: &Column) -> BinlogResult<Value> {
    let meta = mapped.meta;
    let unsigned = column.unsigned;
    let integer = |signed: i64, plain: u64| match unsigned {
        true => Value::UInt(plain),
        false => Value::Int(signed),
    };
    Ok(match mapped.ty {
        TINY => {
            let n = r.u8()?;
            integer((n as i8).into(), n.into())
        }
        SHORT => {
            let n = r.u16()?;
            integer((n as i16).into(), n.into())
        }
        INT24 => {
            let n = r.u24()?;
            integer((((n << 8) as i32) >> 8).into(), n.into())
        }
        LONG => {
            let n = r.u32()?;
            integer((n as i32).into(), n.into())
        }
        LONGLONG => {
            let n = r.u64()?;
            integer(n as i64, n)
        }
        FLOAT => Value::Float(f32::from_bits(r.u32()?)),
        DOUBLE => Value::Double(f64::from_bits(r.u64()?)),
        NEWDECIMAL => Value::Decimal(decimal(r, meta & 0xff, meta >> 8)?),
        YEAR => match r.u8()? {
            0 => Value::Year(0),
            n => Value::Year(1900 + u16::from(n)),
        },
        DATE | NEWDATE => {
            let n = r.u24()?;
            Value::Date(Date {
                year: (n >> 9) as u16,
                month: (n >> 5 & 15) as u8,
                day: (n & 31) as u8,
            })
        }
        TIMESTAMP2 => {
            let seconds = big_endian(r, 4)? as u32;
            Value::Timestamp(seconds, fraction(r, meta)?)
        }
        DATETIME2 => {
            let packed = big_endian(r, 5)?
                .checked_sub(0x80_0000_0000)
                .ok_or(BinlogError::Malformed("DATETIME"))?;
            let microsecond = fraction(r, meta)?;
            let (date, time) = unpack_datetime(packed, microsecond);
            Value::DateTime(date, time)
        }
        TIME2 => time(r, meta)?,
        BIT => {
            let bytes = usize::from(meta >> 8) + usize::from(meta & 0xff != 0);
            if bytes > 8 {
                return Err(BinlogError::Malformed("BIT"));
            }
            Value::Bit(big_endian(r, bytes)?)
        }
        ENUM => match meta {
            1 => Value::Enum(r.u8()?.into()),
            2 => Value::Enum(r.u16()?),
            _ => return Err(BinlogError::Malformed("ENUM")),
        },
        SET if meta <= 8 => Value::Set(little_endian(r, meta.into())?),
        VARCHAR | VAR_STRING => {
            let length = if meta > 255 {
                r.u16()?.into()
            } else {
                r.u8()?.into()
            };
            Value::Bytes(text(r.bytes(length)?, column, meta))
        }
        STRING => {
            let length = if meta > 255 {
                r.u16()?.into()
            } else {
                r.u8()?.into()
            };
            Value::Bytes(text(r.bytes(length)?, column, meta))
        }
        TINY_BLOB | BLOB | MEDIUM_BLOB | LONG_BLOB | GEOMETRY | VECTOR => {
            Value::Bytes(blob(r, meta)?.to_vec())
        }
        JSON => Value::Json(Json::decode(blob(r, meta)?)?),
        OLD_TIMESTAMP | OLD_TIME | OLD_DATETIME => {
            return Err(unsupported(
                column,
                "is stored in the format of servers before 5.6",
                "run ALTER TABLE … FORCE with mysql56_temporal_format=ON",
            ));
        }
        MARIA_BLOB_COMPRESSED | MARIA_VARCHAR_COMPRESSED => {
            return Err(unsupported(
                column,
                "is a COMPRESSED column",
                "ALTER it to a plain one, or leave the table out",
            ));
        }
        _ => return Err(BinlogError::Malformed("type of a column")),
    })
}

fn unsupported(column: &Column, what: &str, way_out: &'static str) -> BinlogError {
    BinlogError::Unsupported {
        what: format!("column {} {what}", column.name),
        way_out,
    }
}

/// Bytes as the server gives them out: row events leave out the zeros that end values of fixed
/// length.
fn text(bytes: &[u8], column: &Column, length: u16) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    match column.data_type.as_str() {
        "binary" | "uuid" | "inet6" | "inet4" => bytes.resize(length.into(), 0),
        _ => {}
    }
    bytes
}

fn blob<'a>(r: &mut Reader<'a>, length_bytes: u16) -> BinlogResult<&'a [u8]> {
    if length_bytes > 4 {
        return Err(BinlogError::Malformed("BLOB"));
    }
    let length = little_endian(r, length_bytes.into())?;
    Ok(r.bytes(usize::try_from(length).unwrap_or(usize::MAX))?)
}

fn big_endian(r: &mut Reader<'_>, bytes: usize) -> BinlogResult<u64> {
    let bytes = r.bytes(bytes)?;
    Ok(bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
}

fn little_endian(r: &mut Reader<'_>, bytes: usize) -> BinlogResult<u64> {
    let bytes = r.bytes(bytes)?;
    Ok(bytes
        .iter()
        .rev()
        .fold(0, |n, byte| n << 8 | u64::from(*byte)))
}

/// Microseconds of a fraction of so many digits, stored in hundreds, ten thousands or millions.
fn fraction(r: &mut Reader<'_>, digits: u16) -> BinlogResult<u32> {
    let bytes = usize::from(digits.div_ceil(2));
    if bytes > 3 {
        return Err(BinlogError::Malformed("fraction of a second"));
    }
    let stored = big_endian(r, bytes)? as u32;
    Ok(stored * [0, 10_000, 100, 1][bytes])
}

fn unpack_datetime(packed: u64, microsecond: u32) -> (Date, Time) {
    let (days, seconds) = (packed >> 17, packed & 0x1_ffff);
    let months = days >> 5;
    (
        Date {
            year: (months / 13) as u16,
            month: (months % 13) as u8,
            day: (days & 31) as u8,
        },
        unpack_time(seconds, microsecond),
    )
}

fn unpack_time(seconds: u64, microsecond: u32) -> Time {
    Time {
        hour: (seconds >> 12 & 0x3ff) as u16,
        minute: (seconds >> 6 & 63) as u8,
        second: (seconds & 63) as u8,
        microsecond,
    }
}

/// TIME is one number, biased so that bytes sort; below zero the fraction counts up from the next
/// lower second.
fn time(r: &mut Reader<'_>, digits: u16) -> BinlogResult<Value> {
    let bytes = usize::from(digits.div_ceil(2));
    if bytes > 3 {
        return Err(BinlogError::Malformed("TIME"));
    }
    let bits = 8 * bytes as u32;
    let stored = big_endian(r, 3 + bytes)? as i64 - (0x80_0000i64 << bits);
    let negative = stored < 0;
    let stored = stored.unsigned_abs();
    let fraction = (stored & ((1 << bits) - 1)) as u32 * [0, 10_000, 100, 1][bytes];
    Ok(Value::Time {
        negative,
        time: unpack_time(stored >> bits, fraction),
    })
}

/// Bytes that hold 0 to 9 decimal digits.
const DIGIT_BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// A DECIMAL: groups of nine digits in four bytes, the incomplete groups outside; the first bit
/// inverted, all bits inverted below zero.
pub(super) fn decimal(r: &mut Reader<'_>, precision: u16, scale: u16) -> BinlogResult<String> {
    const BAD: BinlogError = BinlogError::Malformed("DECIMAL");
    let (scale, whole) = (
        usize::from(scale),
        usize::from(precision.checked_sub(scale).ok_or(BAD)?),
    );
    let groups = |digits: usize| digits / 9 * 4 + DIGIT_BYTES[digits % 9];
    let mut bytes = r.bytes(groups(whole) + groups(scale))?.to_vec();
    let first = bytes.first_mut().ok_or(BAD)?;
    let negative = *first & 0x80 == 0;
    *first ^= 0x80;
    if negative {
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    }
    let mut r = Reader::new(&bytes);
    let mut digits = String::new();
    let group = |r: &mut Reader<'_>, count: usize, digits: &mut String| -> BinlogResult<()> {
        let n = big_endian(r, DIGIT_BYTES[count])?;
        let text = format!("{n:0count$}");
        match text.len() == count {
            true => digits.push_str(&text),
            false => return Err(BAD),
        }
        Ok(())
    };
    if whole % 9 > 0 {
        group(&mut r, whole % 9, &mut digits)?;
    }
    for _ in 0..whole / 9 {
        group(&mut r, 9, &mut digits)?;
    }
    let zeros = digits.bytes().take_while(|digit| *digit == b'0').count();
    digits.drain(..zeros);
    if digits.is_empty() {
        digits.push('0');
    }
    if scale > 0 {
        digits.push('.');
        for _ in 0..scale / 9 {
            group(&mut r, 9, &mut digits)?;
        }
        if scale % 9 > 0 {
            group(&mut r, scale % 9, &mut digits)?;
        }
    }
    if negative {
        digits.insert(0, '-');
    }
    Ok(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_the_manual() {
        // The example in the server's decimal.c: 1234567890.1234 as DECIMAL(14,4).
        let stored = [0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2];
        let read = |bytes: &[u8]| decimal(&mut Reader::new(bytes), 14, 4).unwrap();
        assert_eq!(read(&stored), "1234567890.1234");
        assert_eq!(read(&stored.map(|b| !b)), "-1234567890.1234");
        assert_eq!(decimal(&mut Reader::new(&[0x80]), 2, 2).unwrap(), "0.00");
        assert!(decimal(&mut Reader::new(&[0xff]), 2, 2).is_err());
    }

    #[test]
    fn times_below_zero_keep_their_fraction() {
        // -00:00:01.10 as TIME(2): one second and a tenth below zero.
        let read = |bytes: &[u8], digits| time(&mut Reader::new(bytes), digits).unwrap();
        let second = |negative, second, microsecond| Value::Time {
            negative,
            time: Time {
                hour: 0,
                minute: 0,
                second,
                microsecond,
            },
        };
        assert_eq!(read(&[0x7f, 0xff, 0xfe, 0xf6], 2), second(true, 1, 100_000));
        assert_eq!(read(&[0x80, 0, 1, 10], 2), second(false, 1, 100_000));
        assert_eq!(read(&[0x7f, 0xff, 0xff], 0), second(true, 1, 0));
    }
}
