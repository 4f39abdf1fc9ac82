//! Values as prepared statements carry them: parameters of COM_STMT_EXECUTE and cells of binary
//! rows.

use crate::codec::{PutWire, Reader};
use crate::error::{WireError, WireResult};

/// A column or parameter type. A number rather than an enumeration, because servers may add some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ColumnType(pub u8);

#[allow(missing_docs)] // the names are the server's own, `MYSQL_TYPE_` left out
impl ColumnType {
    pub const DECIMAL: Self = Self(0x00);
    pub const TINY: Self = Self(0x01);
    pub const SHORT: Self = Self(0x02);
    pub const LONG: Self = Self(0x03);
    pub const FLOAT: Self = Self(0x04);
    pub const DOUBLE: Self = Self(0x05);
    pub const NULL: Self = Self(0x06);
    pub const TIMESTAMP: Self = Self(0x07);
    pub const LONGLONG: Self = Self(0x08);
    pub const INT24: Self = Self(0x09);
    pub const DATE: Self = Self(0x0a);
    pub const TIME: Self = Self(0x0b);
    pub const DATETIME: Self = Self(0x0c);
    pub const YEAR: Self = Self(0x0d);
    pub const NEWDATE: Self = Self(0x0e);
    pub const VARCHAR: Self = Self(0x0f);
    pub const BIT: Self = Self(0x10);
    pub const TIMESTAMP2: Self = Self(0x11);
    pub const DATETIME2: Self = Self(0x12);
    pub const TIME2: Self = Self(0x13);
    pub const VECTOR: Self = Self(0xf2);
    pub const JSON: Self = Self(0xf5);
    pub const NEWDECIMAL: Self = Self(0xf6);
    pub const ENUM: Self = Self(0xf7);
    pub const SET: Self = Self(0xf8);
    pub const TINY_BLOB: Self = Self(0xf9);
    pub const MEDIUM_BLOB: Self = Self(0xfa);
    pub const LONG_BLOB: Self = Self(0xfb);
    pub const BLOB: Self = Self(0xfc);
    pub const VAR_STRING: Self = Self(0xfd);
    pub const STRING: Self = Self(0xfe);
    pub const GEOMETRY: Self = Self(0xff);
}

/// How a type's values lie in the binary protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Nothing,
    Fixed(usize),
    /// One length byte, then that many.
    Temporal,
    Lenenc,
}

impl ColumnType {
    #[inline]
    fn layout(self) -> WireResult<Layout> {
        Ok(match self {
            Self::NULL => Layout::Nothing,
            Self::TINY => Layout::Fixed(1),
            Self::SHORT | Self::YEAR => Layout::Fixed(2),
            Self::LONG | Self::INT24 | Self::FLOAT => Layout::Fixed(4),
            Self::LONGLONG | Self::DOUBLE => Layout::Fixed(8),
            Self::DATE
            | Self::NEWDATE
            | Self::DATETIME
            | Self::TIMESTAMP
            | Self::TIME
            | Self::TIMESTAMP2
            | Self::DATETIME2
            | Self::TIME2 => Layout::Temporal,
            Self::DECIMAL
            | Self::NEWDECIMAL
            | Self::VARCHAR
            | Self::BIT
            | Self::VECTOR
            | Self::JSON
            | Self::ENUM
            | Self::SET
            | Self::TINY_BLOB
            | Self::MEDIUM_BLOB
            | Self::LONG_BLOB
            | Self::BLOB
            | Self::VAR_STRING
            | Self::STRING
            | Self::GEOMETRY => Layout::Lenenc,
            _ => return Err(WireError::Malformed("unknown column type")),
        })
    }

    /// True when values are bytes behind a length-encoded length.
    pub fn is_length_encoded(self) -> bool {
        matches!(self.layout(), Ok(Layout::Lenenc))
    }

    /// Takes one non-NULL value off the reader, its length prefix included, without looking into
    /// it.
    #[inline]
    pub fn raw_value<'a>(self, reader: &mut Reader<'a>) -> WireResult<&'a [u8]> {
        let start = reader.as_slice();
        match self.layout()? {
            Layout::Nothing => {}
            Layout::Fixed(n) => reader.skip(n)?,
            Layout::Temporal => {
                let n = reader.u8()?;
                reader.skip(n.into())?;
            }
            Layout::Lenenc => {
                reader.lenenc_bytes()?;
            }
        }
        Ok(&start[..start.len() - reader.remaining()])
    }
}

/// Type of a parameter as COM_STMT_EXECUTE sends it: the type and whether integers are unsigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ParamType {
    /// The type.
    pub kind: ColumnType,
    /// Integers are unsigned.
    pub unsigned: bool,
}

impl ParamType {
    /// A signed or non-integer type.
    pub const fn new(kind: ColumnType) -> Self {
        Self {
            kind,
            unsigned: false,
        }
    }

    /// An unsigned integer type.
    pub const fn unsigned(kind: ColumnType) -> Self {
        Self {
            kind,
            unsigned: true,
        }
    }

    /// Reads the two bytes.
    pub fn decode(reader: &mut Reader<'_>) -> WireResult<Self> {
        let kind = ColumnType(reader.u8()?);
        let unsigned = reader.u8()? & 0x80 != 0;
        Ok(Self { kind, unsigned })
    }

    /// The two bytes.
    pub fn to_bytes(self) -> [u8; 2] {
        [self.kind.0, if self.unsigned { 0x80 } else { 0 }]
    }
}

/// A decoded value that borrows its bytes from the packet.
///
/// `Debug` tells the kind and, for bytes, the length; never the content.
#[derive(Clone, Copy, PartialEq)]
pub enum BinaryValue<'a> {
    /// NULL.
    Null,
    /// A parameter whose value came before, in COM_STMT_SEND_LONG_DATA packets.
    LongData,
    /// A signed integer of any width.
    Int(i64),
    /// An unsigned integer of any width, or YEAR.
    UInt(u64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// Everything that is sent as bytes: strings, BLOBs, DECIMAL (its text), JSON, BIT, ENUM, SET,
    /// GEOMETRY.
    Bytes(&'a [u8]),
    /// DATE, DATETIME, TIMESTAMP.
    DateTime(DateTime),
    /// TIME.
    Time(Time),
}

/// A date with an optional time of day, as sent; not checked for being a real date.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct DateTime {
    pub year: u16,
    pub month: u8,
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub microsecond: u32,
}

/// A signed duration, as sent.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Time {
    pub negative: bool,
    pub days: u32,
    pub hours: u8,
    pub minutes: u8,
    pub seconds: u8,
    pub microseconds: u32,
}

impl std::fmt::Debug for DateTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DateTime(..)")
    }
}

impl std::fmt::Debug for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Time(..)")
    }
}

impl std::fmt::Debug for BinaryValue<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            Self::LongData => f.write_str("LongData"),
            Self::Int(_) => f.write_str("Int(..)"),
            Self::UInt(_) => f.write_str("UInt(..)"),
            Self::Float(_) => f.write_str("Float(..)"),
            Self::Double(_) => f.write_str("Double(..)"),
            Self::Bytes(b) => write!(f, "Bytes({} bytes)", b.len()),
            Self::DateTime(_) => f.write_str("DateTime(..)"),
            Self::Time(_) => f.write_str("Time(..)"),
        }
    }
}

impl<'a> BinaryValue<'a> {
    /// Reads one non-NULL value of the given type.
    pub fn decode(reader: &mut Reader<'a>, ty: ParamType) -> WireResult<Self> {
        let integer = |signed: i64, unsigned: u64| {
            if ty.unsigned {
                Self::UInt(unsigned)
            } else {
                Self::Int(signed)
            }
        };
        Ok(match ty.kind {
            ColumnType::NULL => Self::Null,
            ColumnType::TINY => {
                let v = reader.u8()?;
                integer((v as i8).into(), v.into())
            }
            ColumnType::SHORT => {
                let v = reader.u16()?;
                integer((v as i16).into(), v.into())
            }
            ColumnType::YEAR => Self::UInt(reader.u16()?.into()),
            ColumnType::LONG | ColumnType::INT24 => {
                let v = reader.u32()?;
                integer((v as i32).into(), v.into())
            }
            ColumnType::LONGLONG => {
                let v = reader.u64()?;
                integer(v as i64, v)
            }
            ColumnType::FLOAT => Self::Float(f32::from_le_bytes(reader.array()?)),
            ColumnType::DOUBLE => Self::Double(f64::from_le_bytes(reader.array()?)),
            ColumnType::TIME | ColumnType::TIME2 => Self::Time(decode_time(reader)?),
            kind => match kind.layout()? {
                Layout::Temporal => Self::DateTime(decode_datetime(reader)?),
                _ => Self::Bytes(reader.lenenc_bytes()?),
            },
        })
    }

    /// Appends the value in the layout of `ty`. NULL and long data append nothing: the first is a
    /// bit in the null bitmap, the second was sent before.
    ///
    /// Fails when the value does not fit the type.
    pub fn encode(&self, out: &mut Vec<u8>, ty: ParamType) -> WireResult<()> {
        const MISFIT: WireError = WireError::Malformed("value does not fit its declared type");
        if matches!(self, Self::Null | Self::LongData) {
            return Ok(());
        }
        match (*self, ty.kind.layout()?) {
            (Self::Float(v), Layout::Fixed(4)) if ty.kind == ColumnType::FLOAT => {
                out.put_bytes(&v.to_le_bytes());
            }
            (Self::Double(v), Layout::Fixed(8)) if ty.kind == ColumnType::DOUBLE => {
                out.put_bytes(&v.to_le_bytes());
            }
            (Self::Int(v), Layout::Fixed(n)) if ty.kind.is_integer() => {
                let in_range = if ty.unsigned {
                    u64::try_from(v).is_ok_and(|v| fits_unsigned(v, n))
                } else {
                    n == 8 || (v >= -(1i64 << (n * 8 - 1)) && v < (1i64 << (n * 8 - 1)))
                };
                if !in_range {
                    return Err(MISFIT);
                }
                out.put_bytes(&v.to_le_bytes()[..n]);
            }
            (Self::UInt(v), Layout::Fixed(n)) if ty.kind.is_integer() => {
                let in_range = if ty.unsigned || ty.kind == ColumnType::YEAR {
                    fits_unsigned(v, n)
                } else {
                    v < 1u64 << (n * 8 - 1)
                };
                if !in_range {
                    return Err(MISFIT);
                }
                out.put_bytes(&v.to_le_bytes()[..n]);
            }
            (Self::Bytes(v), Layout::Lenenc) => out.put_lenenc_bytes(v),
            (Self::DateTime(v), Layout::Temporal) if !ty.kind.is_time() => encode_datetime(&v, out),
            (Self::Time(v), Layout::Temporal) if ty.kind.is_time() => encode_time(&v, out),
            _ => return Err(MISFIT),
        }
        Ok(())
    }
}

impl ColumnType {
    fn is_integer(self) -> bool {
        matches!(
            self,
            Self::TINY | Self::SHORT | Self::YEAR | Self::LONG | Self::INT24 | Self::LONGLONG
        )
    }

    fn is_time(self) -> bool {
        matches!(self, Self::TIME | Self::TIME2)
    }
}

fn fits_unsigned(v: u64, bytes: usize) -> bool {
    bytes == 8 || v < 1u64 << (bytes * 8)
}

fn decode_datetime(reader: &mut Reader<'_>) -> WireResult<DateTime> {
    let length = reader.u8()?;
    let mut value = DateTime::default();
    if !matches!(length, 0 | 4 | 7 | 11) {
        return Err(WireError::Malformed("length of a date"));
    }
    if length >= 4 {
        value.year = reader.u16()?;
        [value.month, value.day] = reader.array()?;
    }
    if length >= 7 {
        [value.hour, value.minute, value.second] = reader.array()?;
    }
    if length == 11 {
        value.microsecond = reader.u32()?;
    }
    Ok(value)
}

fn encode_datetime(v: &DateTime, out: &mut Vec<u8>) {
    let has_time = v.hour != 0 || v.minute != 0 || v.second != 0;
    let length = match v {
        DateTime { microsecond, .. } if *microsecond != 0 => 11,
        _ if has_time => 7,
        _ if v.year != 0 || v.month != 0 || v.day != 0 => 4,
        _ => 0,
    };
    out.put_u8(length);
    if length >= 4 {
        out.put_u16(v.year);
        out.put_bytes(&[v.month, v.day]);
    }
    if length >= 7 {
        out.put_bytes(&[v.hour, v.minute, v.second]);
    }
    if length == 11 {
        out.put_u32(v.microsecond);
    }
}

fn decode_time(reader: &mut Reader<'_>) -> WireResult<Time> {
    let length = reader.u8()?;
    let mut value = Time::default();
    if !matches!(length, 0 | 8 | 12) {
        return Err(WireError::Malformed("length of a time"));
    }
    if length >= 8 {
        value.negative = reader.u8()? != 0;
        value.days = reader.u32()?;
        [value.hours, value.minutes, value.seconds] = reader.array()?;
    }
    if length == 12 {
        value.microseconds = reader.u32()?;
    }
    Ok(value)
}

fn encode_time(v: &Time, out: &mut Vec<u8>) {
    let length = if v.microseconds != 0 {
        12
    } else if *v
        != (Time {
            negative: v.negative,
            ..Time::default()
        })
    {
        8
    } else {
        0
    };
    out.put_u8(length);
    if length >= 8 {
        out.put_u8(v.negative.into());
        out.put_u32(v.days);
        out.put_bytes(&[v.hours, v.minutes, v.seconds]);
    }
    if length == 12 {
        out.put_u32(v.microseconds);
    }
}
