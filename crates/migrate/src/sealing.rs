//! Columns that are sealed, opened or sealed anew on their way from the old table to the new one.
//!
//! Every value passes through its payload, the bytes that the proxy seals: from a plain value by
//! `onionskin_value::store`, from a cell by opening it; to a cell and its companions as the proxy
//! makes them, to a plain value as the proxy shows it. Comparing the tables compares payloads.
//! Where the column gets another type, the payload is converted in between.

use std::sync::Arc;

use onionskin_crypt::{CellFormat, SealError, TenantId, cell_header, cell_tenant};
use onionskin_keys::{ColumnCipher, ColumnId, KeySet};
use onionskin_physical::companions::{equality_token, gram_tokens, most_numbers, order_key};
use onionskin_physical::{Retyping, strict, tenant_id};
use onionskin_rowstream::key::{column_of, push_hex};
use onionskin_rowstream::route::Transform;
use onionskin_rowstream::session::Cell;
use onionskin_schema::{Capabilities, Column, GramForm, PhysicalNames, Table, Tenant};
use onionskin_value::{
    Charset, Context, Family, FormatContext, Input, Kind, SqlType, StoreError, Stored, TimeZone,
    format_text, store,
};

use crate::definition::Keys;
use crate::error::{MigrateError, Result};

type Reason<T> = std::result::Result<T, String>;

/// One logical column in both tables.
pub struct ColumnChange {
    from: Side,
    to: Side,
    name: String,
    family: Family,
    /// Where it gets another type.
    retyping: Option<Retyping>,
    takes_null: bool,
}

/// How a column is stored in one of the tables.
struct Side {
    ty: SqlType,
    form: Form,
}

enum Form {
    /// Under its own name.
    Plain(String),
    /// Sealed.
    Sealed(Box<Sealed>),
}

struct Sealed {
    names: PhysicalNames,
    capabilities: Capabilities,
    grams: GramForm,
    most_numbers: usize,
    keys: Arc<KeySet>,
    id: ColumnId,
    join: Option<String>,
    /// For new cells.
    cipher: Arc<ColumnCipher>,
}

impl Side {
    fn new(table: &Table, column: &Column, keys: Option<&Keys>) -> Result<Self> {
        let refused = |reason: String| MigrateError::Refused {
            table: table.name.clone(),
            reason,
        };
        let ty = column.sql_type.ok_or_else(|| {
            refused(format!(
                "column {} has a type that cannot be protected",
                column.name
            ))
        })?;
        let (Some(protection), Some(table_id)) = (&column.protection, table.table_id) else {
            let form = Form::Plain(column.name.clone());
            return Ok(Self { ty, form });
        };
        let keys = keys.ok_or_else(|| {
            MigrateError::Request(
                "protected columns need keys: name the configuration with -c".into(),
            )
        })?;
        let id = ColumnId {
            table: table_id,
            column: protection.column_id,
        };
        let cells = CellFormat::from_numbers(protection.suite, protection.cell_version)
            .ok_or_else(|| refused("its cipher suite is not known".into()))?;
        let join = protection.capabilities.join.clone();
        let cipher = keys
            .set
            .column_cipher(cells, protection.key_id, id, join.as_deref())
            .map_err(|error| refused(error.to_string()))?;
        let form = Form::Sealed(Box::new(Sealed {
            names: protection.names.clone(),
            capabilities: protection.capabilities.clone(),
            grams: protection.grams,
            most_numbers: most_numbers(table),
            keys: Arc::clone(&keys.set),
            id,
            join,
            cipher,
        }));
        Ok(Self { ty, form })
    }

    /// The physical columns.
    fn names(&self) -> Vec<String> {
        match &self.form {
            Form::Plain(name) => vec![name.clone()],
            Form::Sealed(sealed) => sealed.names.all().map(str::to_owned).collect(),
        }
    }

    /// Whose rows are, if its cells have keys of tenants.
    fn tenant(&self) -> Option<&Tenant> {
        match &self.form {
            Form::Plain(_) => None,
            Form::Sealed(sealed) => sealed.capabilities.tenant.as_ref(),
        }
    }

    /// What is read of it in `table`: a plain value, or all physical columns.
    fn expressions(&self, table: &str) -> Vec<String> {
        match &self.form {
            Form::Plain(name) if self.ty.is_shown_inexactly() => {
                vec![format!("{} * 1e0", column_of(table, name))]
            }
            // Members by their numbers, which are what is sealed.
            Form::Plain(name) if self.ty.is_enumerated() => {
                vec![format!("{} + 0", column_of(table, name))]
            }
            _ => self
                .names()
                .iter()
                .map(|name| column_of(table, name))
                .collect(),
        }
    }

    /// Appends the payload of what was read; false for NULL.
    fn payload(&self, cells: &[Cell], family: Family, out: &mut Vec<u8>) -> Reason<bool> {
        let Some(Some(cell)) = cells.first() else {
            return Ok(false);
        };
        match &self.form {
            Form::Plain(name) => plain_payload(&self.ty, name, cell, family, out)?,
            Form::Sealed(sealed) => sealed.open(cell, out)?,
        }
        Ok(true)
    }

    /// Appends the constants of a payload for all physical columns of a row of this tenant.
    fn constants(
        &self,
        payload: Option<&[u8]>,
        tenant: Option<TenantId>,
        family: Family,
        out: &mut String,
    ) -> Reason<()> {
        match &self.form {
            Form::Plain(_) => match payload {
                None => out.push_str("NULL"),
                Some(payload) => plain_constant(&self.ty, payload, family, out)?,
            },
            Form::Sealed(sealed) => {
                let cells = sealed.cells(&self.ty, payload, tenant)?;
                for (n, cell) in cells.iter().enumerate() {
                    if n > 0 {
                        out.push(',');
                    }
                    // numbers come last, behind binary strings, of which the server makes no JSON
                    let is_json = sealed.has_numbers() && n + 1 == cells.len();
                    match cell {
                        None => out.push_str("NULL"),
                        Some(bytes) => {
                            out.push_str(if is_json { "_utf8mb4 " } else { "" });
                            push_hex(bytes, out);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

impl Sealed {
    /// Whether the last companion is a JSON array.
    fn has_numbers(&self) -> bool {
        self.names.gram.is_some() && self.grams == GramForm::Numbers
    }

    fn open(&self, cell: &[u8], out: &mut Vec<u8>) -> Reason<()> {
        let damaged =
            |error: &dyn std::fmt::Display| format!("a sealed cell does not open: {error}");
        let header = cell_header(cell).map_err(|error| damaged(&error))?;
        if header.key_id == self.cipher.key_id() && header.format.suite() == self.cipher.suite() {
            return self.cipher.open(cell, out).map_err(|error| damaged(&error));
        }
        let other = self
            .keys
            .column_cipher(header.format, header.key_id, self.id, self.join.as_deref())
            .map_err(|error| damaged(&error))?;
        other.open(cell, out).map_err(|error| damaged(&error))
    }

    /// Cell, equality token, order key, gram tokens, as far as the column has them.
    fn cells(
        &self,
        ty: &SqlType,
        payload: Option<&[u8]>,
        tenant: Option<TenantId>,
    ) -> Reason<Vec<Cell>> {
        let mut cells = vec![None; self.names.all().count()];
        let Some(payload) = payload else {
            return Ok(cells);
        };
        let mut sealed = Vec::with_capacity(self.cipher.format().sealed_len(payload.len()));
        match (&self.capabilities.tenant, tenant) {
            (None, _) => self.cipher.seal(payload, &mut sealed),
            (Some(_), Some(tenant)) => self.cipher.seal_for(tenant, payload, &mut sealed),
            (Some(_), None) => Err(SealError::NeedsTenant),
        }
        .map_err(|error| error.to_string())?;
        cells[0] = Some(sealed);
        for (place, token) in cells[1..].iter_mut().zip(self.tokens(ty, payload)?) {
            *place = Some(token);
        }
        Ok(cells)
    }

    /// The companions' values, in the order of their columns.
    fn tokens(&self, ty: &SqlType, payload: &[u8]) -> Reason<Vec<Vec<u8>>> {
        let mut weights = Vec::new();
        let mut tokens = Vec::new();
        if self.names.eq.is_some() {
            let mut token = Vec::new();
            equality_token(
                &self.cipher,
                ty,
                &self.capabilities,
                payload,
                &mut weights,
                &mut token,
            )
            .map_err(|error| error.to_string())?;
            tokens.push(token);
        }
        if self.names.ord.is_some() {
            let mut key = Vec::new();
            order_key(
                &self.cipher,
                ty,
                &self.capabilities,
                payload,
                &mut weights,
                &mut key,
            )
            .map_err(|error| error.to_string())?;
            tokens.push(key);
        }
        if self.names.gram.is_some() {
            let mut words = Vec::new();
            gram_tokens(
                &self.cipher,
                ty,
                self.grams,
                self.most_numbers,
                payload,
                &mut words,
            )
            .map_err(|error| error.to_string())?;
            tokens.push(words);
        }
        Ok(tokens)
    }
}

/// The payload of a plain value as our sessions read it.
fn plain_payload(
    ty: &SqlType,
    name: &str,
    cell: &[u8],
    family: Family,
    out: &mut Vec<u8>,
) -> Reason<()> {
    let text = || std::str::from_utf8(cell).map_err(|_| "a number is not understood".to_owned());
    if ty.is_enumerated() && cell == b"0" && matches!(ty.kind, Kind::Enum(_)) {
        // It could not be written again by a session that checks what it writes.
        return Err(format!(
            "a row of column {name} holds the empty value that stands for an error; give it a member first"
        ));
    }
    let input = match ty.kind {
        _ if ty.is_integer() || ty.is_enumerated() => {
            let number: i128 = text()?
                .parse()
                .map_err(|_| "a number is not understood".to_owned())?;
            Input::Integer {
                negative: number < 0,
                magnitude: u64::try_from(number.unsigned_abs())
                    .map_err(|_| "a number is too great".to_owned())?,
            }
        }
        Kind::Decimal { .. } => Input::Decimal(cell),
        Kind::Float | Kind::Double => {
            let number = text()?.parse();
            let number = number.map_err(|_| "a number is not understood".to_owned())?;
            Input::Double(ty.taken(number))
        }
        _ if ty.is_binary() || ty.is_bit() => Input::Bytes(cell),
        _ if ty.is_json_value() || ty.is_fixed_binary() => Input::Text {
            bytes: cell,
            charset: Charset::Utf8mb4,
        },
        _ => Input::Text {
            bytes: cell,
            charset: ty.charset(),
        },
    };
    let context = Context {
        // members come by their numbers
        enum_takes_zero: true,
        ..strict(name, family)
    };
    let mut warnings = Vec::new();
    let start = out.len();
    match store(ty, input, &context, out, &mut warnings) {
        // A number of more digits than a double has, or the like, would change.
        Ok(Stored::Value) if ty.is_json_value() && out[start..] != *cell => Err(format!(
            "a document of column {name} cannot be sealed exactly"
        )),
        Ok(Stored::Value) if warnings.is_empty() => Ok(()),
        Ok(_) => Err(format!(
            "the value of column {name} cannot be sealed exactly"
        )),
        // The server's text would hold the value.
        Err(StoreError::Server(error)) => Err(format!(
            "the value of column {name} cannot be sealed: the column would refuse it with error {}",
            error.code
        )),
        Err(StoreError::Unsupported(what)) => Err(format!(
            "the value of column {name} cannot be sealed: not supported: {what}"
        )),
    }
}

/// A payload as a constant that the server stores as the same value again.
fn plain_constant(ty: &SqlType, payload: &[u8], family: Family, out: &mut String) -> Reason<()> {
    let context = FormatContext {
        time_zone: &TimeZone::UTC,
        family,
        results_charset: Charset::Binary,
        pad_char: false,
    };
    let mut bytes = Vec::new();
    if ty.is_shown_inexactly() {
        // As a double it keeps all of its digits.
        let number = ty.real(payload).ok_or("a number is not understood")?;
        out.push_str(&format!("{number:e}"));
        return Ok(());
    }
    format_text(ty, payload, &context, &mut bytes).map_err(|error| error.to_string())?;
    if ty.is_enumerated() {
        let number = payload
            .iter()
            .fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        out.push_str(&number.to_string());
    } else if ty.is_binary() || ty.is_bit() {
        push_hex(&bytes, out);
    } else if ty.is_json_value() {
        out.push_str("_utf8mb4 ");
        push_hex(&bytes, out);
    } else if ty.is_character() {
        out.push('_');
        out.push_str(ty.charset().name());
        out.push(' ');
        push_hex(&bytes, out);
    } else {
        // Numbers, dates and times are ASCII without quotes.
        let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
        match ty.is_numeric() {
            true if ty.kind == Kind::Double => {
                let number: f64 = text.parse().map_err(|_| "a number is not understood")?;
                out.push_str(&format!("{number:e}"));
            }
            true => out.push_str(&text),
            false => {
                out.push('\'');
                out.push_str(&text);
                out.push('\'');
            }
        }
    }
    Ok(())
}

impl ColumnChange {
    /// A column of the old table, with that table, and the same column of the new one.
    pub fn new(
        (old, before): (&Table, &Column),
        (new, after): (&Table, &Column),
        keys: Option<&Keys>,
        family: Family,
    ) -> Result<Self> {
        let (from, to) = (Side::new(old, before, keys)?, Side::new(new, after, keys)?);
        let is_same = before.type_text == after.type_text && from.ty.charset() == to.ty.charset();
        let retyping = match is_same {
            true => None,
            false => Some(Retyping::new(from.ty, to.ty, family).ok_or_else(|| {
                MigrateError::Refused {
                    table: old.name.clone(),
                    reason: format!(
                        "column {} cannot become {} from {}: what the server would make of its values is not certain here",
                        before.name,
                        to.ty.to_sql(family),
                        from.ty.to_sql(family),
                    ),
                }
            })?),
        };
        Ok(Self {
            from,
            to,
            name: after.name.clone(),
            family,
            retyping,
            takes_null: after.nullable,
        })
    }

    /// The logical name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether other values may be equal in the new table.
    pub fn is_retyped(&self) -> bool {
        self.retyping.is_some() || self.from.ty.collation != self.to.ty.collation
    }

    /// Appends the payload for the new table of what is in the old one; `false` for NULL.
    fn payload(&self, cells: &[Cell], out: &mut Vec<u8>) -> Reason<bool> {
        let Some(retyping) = &self.retyping else {
            let is_value = self.from.payload(cells, self.family, out)?;
            return self.taken(is_value);
        };
        let mut before = Vec::new();
        let is_value = self.from.payload(cells, self.family, &mut before)?;
        if is_value {
            retyping.convert(&before, &self.name, out)?;
        }
        self.taken(is_value)
    }

    /// An error if the cell that was read is another tenant's than the row: somebody has moved the
    /// row. Its value would live on when the one is forgotten that it was sealed for.
    fn must_be_of(&self, cells: &[Cell], tenant: Option<TenantId>) -> Reason<()> {
        let is_one = self.from.tenant() == self.to.tenant();
        let Some(Some(cell)) = cells.first().filter(|_| is_one) else {
            return Ok(());
        };
        match cell_tenant(cell) == tenant {
            true => Ok(()),
            false => Err(format!(
                "a row's cell in column {} is another tenant's than the row says: find out who has moved it",
                self.name
            )),
        }
    }

    fn taken(&self, is_value: bool) -> Reason<bool> {
        match is_value || self.takes_null {
            true => Ok(is_value),
            false => Err(format!(
                "a row holds NULL in column {}, which is to be NOT NULL: give it a value first",
                self.name
            )),
        }
    }
}

/// Whose the rows are, where cells of the new table have keys of tenants.
pub struct Tenants {
    tenant: Tenant,
    /// The type of the column that says it.
    ty: SqlType,
    keys: Arc<KeySet>,
    family: Family,
}

impl Tenants {
    /// Of the new table; `None` if it has no KEY BY.
    pub fn of(table: &Table, keys: Option<&Keys>, family: Family) -> Result<Option<Self>> {
        let Some(tenant) = table.tenant() else {
            return Ok(None);
        };
        let refused = |reason: String| MigrateError::Refused {
            table: table.name.clone(),
            reason,
        };
        let column = table.column(&tenant.column);
        let ty = column.filter(|c| c.protection.is_none());
        let ty = ty.and_then(|c| c.sql_type).filter(Tenant::can_be);
        let ty = ty.ok_or_else(|| {
            refused(format!(
                "KEY BY {}, which is no plain column of whole numbers, texts or bytes",
                tenant.column
            ))
        })?;
        let keys = keys.filter(|keys| keys.set.tenant_names().is_some());
        let keys = keys.ok_or_else(|| {
            refused(
                "KEY BY needs the file of the tenants' secrets: onionskin tenants init makes one"
                    .into(),
            )
        })?;
        Ok(Some(Self {
            tenant: tenant.clone(),
            ty,
            keys: Arc::clone(&keys.set),
            family,
        }))
    }

    /// Whose a row is, by what our sessions read of that column.
    fn id(&self, cell: &Cell) -> Reason<TenantId> {
        let name = &self.tenant.column;
        let Some(cell) = cell else {
            return Err(format!(
                "a row holds NULL in column {name}, which KEY BY names"
            ));
        };
        let (mut payload, mut text) = (Vec::new(), Vec::new());
        plain_payload(&self.ty, name, cell, self.family, &mut payload)?;
        let context = FormatContext {
            time_zone: &TimeZone::UTC,
            family: self.family,
            results_charset: Charset::Utf8mb4,
            pad_char: false,
        };
        format_text(&self.ty, &payload, &context, &mut text).map_err(|e| e.to_string())?;
        let names = self.keys.tenant_names();
        tenant_id(names.as_deref(), &self.tenant, &self.ty, &text)
            .ok_or_else(|| format!("column {name} of a row names no tenant"))
    }
}

/// All columns of a table that change their form.
pub struct Resealing {
    columns: Vec<ColumnChange>,
    outputs: Vec<String>,
    tenants: Option<Tenants>,
}

impl Resealing {
    /// Of these columns.
    pub fn new(columns: Vec<ColumnChange>, tenants: Option<Tenants>) -> Self {
        let outputs = columns
            .iter()
            .flat_map(|column| column.to.names())
            .collect();
        Self {
            columns,
            outputs,
            tenants,
        }
    }

    /// Whose a row is: what is read of it tells it behind everything else.
    fn tenant(&self, inputs: &[Cell]) -> Reason<Option<TenantId>> {
        match (&self.tenants, inputs.last()) {
            (None, _) => Ok(None),
            (Some(tenants), Some(cell)) => tenants.id(cell).map(Some),
            (Some(_), None) => Err("a row is too short".into()),
        }
    }
}

impl Transform for Resealing {
    fn inputs(&self, source: &str) -> Vec<String> {
        let sides = self
            .columns
            .iter()
            .map(|column| column.from.expressions(source));
        let tenant = self.tenants.iter();
        let tenant = tenant.map(|tenants| column_of(source, &tenants.tenant.column));
        sides.flatten().chain(tenant).collect()
    }

    fn outputs(&self) -> &[String] {
        &self.outputs
    }

    fn compute(&self, mut inputs: &[Cell], out: &mut String) -> Reason<()> {
        let mut payload = Vec::new();
        let row = inputs;
        let mut tenant = None;
        for (n, column) in self.columns.iter().enumerate() {
            let (cells, rest) = inputs
                .split_at_checked(column.from.names().len())
                .ok_or("a row is too short")?;
            inputs = rest;
            payload.clear();
            let is_value = column.payload(cells, &mut payload)?;
            if is_value && column.to.tenant().is_some() {
                // a row without values may be nobody's
                let id = self.tenant(row)?;
                column.must_be_of(cells, id)?;
                tenant = id;
            }
            if n > 0 {
                out.push(',');
            }
            column
                .to
                .constants(is_value.then_some(&payload), tenant, column.family, out)?;
        }
        Ok(())
    }

    fn stored(&self, target: &str) -> Vec<String> {
        let sides = self
            .columns
            .iter()
            .map(|column| column.to.expressions(target));
        sides.flatten().collect()
    }

    fn agrees(&self, mut inputs: &[Cell], mut stored: &[Cell]) -> Reason<bool> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let row = inputs;
        for column in &self.columns {
            let short = "a row is too short";
            let (cells, rest) = inputs
                .split_at_checked(column.from.names().len())
                .ok_or(short)?;
            inputs = rest;
            let (there, rest) = stored
                .split_at_checked(column.to.names().len())
                .ok_or(short)?;
            stored = rest;
            before.clear();
            after.clear();
            let is_value = column.payload(cells, &mut before)?;
            if is_value != column.to.payload(there, column.family, &mut after)? || before != after {
                return Ok(false);
            }
            let Form::Sealed(sealed) = &column.to.form else {
                continue;
            };
            if let (Some(_), Some(cell)) = (&sealed.capabilities.tenant, &there[0])
                && cell_tenant(cell) != self.tenant(row)?
            {
                return Ok(false);
            }
            let agree = match is_value {
                false => there.iter().all(Option::is_none),
                true => {
                    let tokens = sealed.tokens(&column.to.ty, &after)?;
                    there[1..]
                        .iter()
                        .zip(tokens)
                        .all(|(there, token)| there.as_ref() == Some(&token))
                }
            };
            if !agree {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
