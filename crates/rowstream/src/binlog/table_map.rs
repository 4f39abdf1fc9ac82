//! TABLE_MAP events: which table the row events behind them belong to, and the types of its
//! columns.

use onionskin_schema::TableName;
use onionskin_wire::Reader;

use super::error::{BinlogError, BinlogResult};

/// Numbers of column types as the binlog has them.
#[allow(missing_docs)]
pub mod column_type {
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const OLD_TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const OLD_TIME: u8 = 11;
    pub const OLD_DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const NEWDATE: u8 = 14;
    pub const VARCHAR: u8 = 15;
    pub const BIT: u8 = 16;
    pub const TIMESTAMP2: u8 = 17;
    pub const DATETIME2: u8 = 18;
    pub const TIME2: u8 = 19;
    pub const MARIA_BLOB_COMPRESSED: u8 = 140;
    pub const MARIA_VARCHAR_COMPRESSED: u8 = 141;
    pub const VECTOR: u8 = 242;
    pub const JSON: u8 = 245;
    pub const NEWDECIMAL: u8 = 246;
    pub const ENUM: u8 = 247;
    pub const SET: u8 = 248;
    pub const TINY_BLOB: u8 = 249;
    pub const MEDIUM_BLOB: u8 = 250;
    pub const LONG_BLOB: u8 = 251;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
    pub const GEOMETRY: u8 = 255;
}

/// Type of a column in a row event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedColumn {
    /// See [`column_type`]; ENUM and SET stand here, although the event hides them behind STRING.
    pub ty: u8,
    /// Length, precision and scale, digits of fraction: by type.
    pub meta: u16,
    /// What the event says of the sign, if it says anything.
    pub unsigned: Option<bool>,
}

/// A TABLE_MAP event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableMap {
    /// The number by which row events name the table.
    pub id: u64,
    /// Which table.
    pub table: TableName,
    /// Its columns.
    pub columns: Vec<MappedColumn>,
}

impl TableMap {
    /// Reads only number and names.
    pub fn decode_names(body: &[u8]) -> BinlogResult<(u64, TableName)> {
        names(&mut Reader::new(body))
    }

    /// Reads all of it.
    pub fn decode(body: &[u8]) -> BinlogResult<Self> {
        let mut r = Reader::new(body);
        let (id, table) = names(&mut r)?;
        let count = usize::try_from(r.lenenc_int()?).unwrap_or(usize::MAX);
        let types = r.bytes(count)?;
        let mut metadata = Reader::new(r.lenenc_bytes()?);
        let mut columns = Vec::with_capacity(count);
        for &ty in types {
            columns.push(column(ty, &mut metadata)?);
        }
        // Which columns may be NULL.
        r.skip(count.div_ceil(8))?;
        while !r.is_empty() {
            let field = r.u8()?;
            let value = r.lenenc_bytes()?;
            // Signs of the numeric columns, the first in the highest bit. Other fields are names,
            // sets, keys: the catalogue has them.
            if field == 1 {
                let numeric = columns.iter_mut().filter(|column| is_numeric(column.ty));
                for (i, column) in numeric.enumerate() {
                    let byte = value
                        .get(i / 8)
                        .ok_or(BinlogError::Malformed("list of signs"))?;
                    column.unsigned = Some(byte & (0x80 >> (i % 8)) != 0);
                }
            }
        }
        Ok(Self { id, table, columns })
    }
}

fn names(r: &mut Reader<'_>) -> BinlogResult<(u64, TableName)> {
    let id = id48(r)?;
    r.skip(2)?;
    let mut name = || -> BinlogResult<String> {
        let length = usize::from(r.u8()?);
        let name = r.bytes(length)?;
        r.skip(1)?;
        String::from_utf8(name.to_vec()).map_err(|_| BinlogError::Malformed("name of a table"))
    };
    let database = name()?;
    let name = name()?;
    Ok((id, TableName { database, name }))
}

/// A table's number, in six bytes.
pub(crate) fn id48(r: &mut Reader<'_>) -> BinlogResult<u64> {
    Ok(u64::from(r.u32()?) | u64::from(r.u16()?) << 32)
}

/// The types whose signs are listed. YEAR is one of them, and has none.
fn is_numeric(ty: u8) -> bool {
    use column_type::*;
    matches!(
        ty,
        TINY | SHORT | INT24 | LONG | LONGLONG | NEWDECIMAL | FLOAT | DOUBLE | YEAR
    )
}

fn column(ty: u8, metadata: &mut Reader<'_>) -> BinlogResult<MappedColumn> {
    use column_type::*;
    let plain = |ty, meta| MappedColumn {
        ty,
        meta,
        unsigned: None,
    };
    Ok(match ty {
        TINY | SHORT | LONG | LONGLONG | INT24 | DATE | NEWDATE | YEAR | OLD_TIMESTAMP
        | OLD_TIME | OLD_DATETIME => plain(ty, 0),
        FLOAT
        | DOUBLE
        | TIMESTAMP2
        | DATETIME2
        | TIME2
        | TINY_BLOB
        | MEDIUM_BLOB
        | LONG_BLOB
        | BLOB
        | GEOMETRY
        | JSON
        | VECTOR
        | MARIA_BLOB_COMPRESSED => plain(ty, metadata.u8()?.into()),
        VARCHAR | VAR_STRING | MARIA_VARCHAR_COMPRESSED => plain(ty, metadata.u16()?),
        // Precision and scale.
        NEWDECIMAL => plain(ty, metadata.u16()?),
        // Bits beyond whole bytes, and whole bytes.
        BIT => plain(ty, metadata.u16()?),
        STRING | ENUM | SET => {
            let (high, low) = (metadata.u8()?, metadata.u8()?);
            // Lengths beyond 255 borrow two bits of the type, inverted.
            match high & 0x30 {
                0x30 if high == ENUM || high == SET => plain(high, low.into()),
                0x30 => plain(STRING, low.into()),
                bits => plain(STRING, u16::from(low) | u16::from(bits ^ 0x30) << 4),
            }
        }
        _ => {
            return Err(BinlogError::Unsupported {
                what: format!("the binlog holds a column of type {ty}, which is not known here"),
                way_out: "leave the table out",
            });
        }
    })
}
