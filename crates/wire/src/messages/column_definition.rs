//! The description of one column of a result, of one parameter, or of one column of a table
//! (COM_FIELD_LIST).

use std::borrow::Cow;

use crate::binary_value::ColumnType;
use crate::capabilities::{ColumnFlags, DefinitionForm};
use crate::codec::{NULL_CELL, PutWire, Reader};
use crate::error::{WireError, WireResult};

/// Length of the numbers behind the names.
const FIXED_LENGTH: u64 = 12;

/// A column definition of protocol 4.1, or of MariaDB's extension of it.
///
/// Names borrow from the packet until they are replaced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ColumnDefinition<'a> {
    /// Always `def`.
    pub catalog: Cow<'a, [u8]>,
    /// Database.
    pub schema: Cow<'a, [u8]>,
    /// Table, or its alias.
    pub table: Cow<'a, [u8]>,
    /// Table, before any alias.
    pub org_table: Cow<'a, [u8]>,
    /// Column, or its alias.
    pub name: Cow<'a, [u8]>,
    /// Column, before any alias.
    pub org_name: Cow<'a, [u8]>,
    /// What MariaDB tells besides of the type: pairs of a number (0 type, 1 format) and a
    /// length-encoded name. `None` in the standard form.
    pub extended: Option<Cow<'a, [u8]>>,
    /// Id of the collation; 63 for bytes and numbers.
    pub charset: u16,
    /// Longest value in bytes, as shown.
    pub length: u32,
    /// Type.
    pub column_type: ColumnType,
    /// Flags.
    pub flags: ColumnFlags,
    /// Digits behind the point; 31 or 0x27 where it does not apply.
    pub decimals: u8,
    /// The default, in answers to COM_FIELD_LIST.
    pub default: ColumnDefault<'a>,
}

/// The default of a column; only answers to COM_FIELD_LIST have one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ColumnDefault<'a> {
    /// Not part of the message.
    #[default]
    Absent,
    /// NULL.
    Null,
    /// A value, as text.
    Value(Cow<'a, [u8]>),
}

impl<'a> ColumnDefinition<'a> {
    /// Reads a definition of this form.
    pub fn decode(payload: &'a [u8], form: DefinitionForm) -> WireResult<Self> {
        let mut r = Reader::new(payload);
        let mut name = || r.lenenc_bytes().map(Cow::Borrowed);
        let (catalog, schema, table) = (name()?, name()?, name()?);
        let (org_table, name, org_name) = (name()?, name()?, name()?);
        let extended = match form {
            DefinitionForm::Standard => None,
            DefinitionForm::Extended => Some(Cow::Borrowed(r.lenenc_bytes()?)),
        };
        if r.lenenc_int()? != FIXED_LENGTH {
            return Err(WireError::Malformed("column definition of an unknown form"));
        }
        let charset = r.u16()?;
        let length = r.u32()?;
        let column_type = ColumnType(r.u8()?);
        let flags = ColumnFlags::from_bits_retain(r.u16()?);
        let decimals = r.u8()?;
        r.skip(2)?;
        let default = if r.is_empty() {
            ColumnDefault::Absent
        } else {
            match r.lenenc_bytes_or_null()? {
                None => ColumnDefault::Null,
                Some(text) => ColumnDefault::Value(Cow::Borrowed(text)),
            }
        };
        Ok(Self {
            catalog,
            schema,
            table,
            org_table,
            name,
            org_name,
            extended,
            charset,
            length,
            column_type,
            flags,
            decimals,
            default,
        })
    }

    /// Appends the definition.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for name in [
            &self.catalog,
            &self.schema,
            &self.table,
            &self.org_table,
            &self.name,
            &self.org_name,
        ] {
            out.put_lenenc_bytes(name);
        }
        if let Some(extended) = &self.extended {
            out.put_lenenc_bytes(extended);
        }
        out.put_lenenc_int(FIXED_LENGTH);
        out.put_u16(self.charset);
        out.put_u32(self.length);
        out.put_u8(self.column_type.0);
        out.put_u16(self.flags.bits());
        out.put_u8(self.decimals);
        out.put_u16(0);
        match &self.default {
            ColumnDefault::Absent => {}
            ColumnDefault::Null => out.put_u8(NULL_CELL),
            ColumnDefault::Value(text) => out.put_lenenc_bytes(text),
        }
    }

    /// Says of the type what MariaDB tells besides, where the form has a place for it.
    pub fn extend(&mut self, about: &'a [u8]) {
        if let Some(extended) = &mut self.extended {
            *extended = Cow::Borrowed(about);
        }
    }

    /// The type as a binary row's cells are decoded with it.
    pub fn param_type(&self) -> crate::ParamType {
        crate::ParamType {
            kind: self.column_type,
            unsigned: self.flags.contains(ColumnFlags::UNSIGNED),
        }
    }

    /// The same definition, independent of the packet it came from.
    pub fn into_owned(self) -> ColumnDefinition<'static> {
        let own = |name: Cow<'a, [u8]>| Cow::Owned(name.into_owned());
        ColumnDefinition {
            catalog: own(self.catalog),
            schema: own(self.schema),
            table: own(self.table),
            org_table: own(self.org_table),
            name: own(self.name),
            org_name: own(self.org_name),
            extended: self.extended.map(own),
            charset: self.charset,
            length: self.length,
            column_type: self.column_type,
            flags: self.flags,
            decimals: self.decimals,
            default: match self.default {
                ColumnDefault::Absent => ColumnDefault::Absent,
                ColumnDefault::Null => ColumnDefault::Null,
                ColumnDefault::Value(text) => ColumnDefault::Value(own(text)),
            },
        }
    }
}
