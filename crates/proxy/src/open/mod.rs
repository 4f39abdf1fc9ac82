//! Results on their way to the client: definitions made logical, cells opened.
//!
//! Nothing of a result is written before all of its column definitions were checked against the
//! plan; a difference means that the snapshot is stale. Cells that are not protected are copied
//! as bytes, in runs; sealed cells are opened straight into the client's buffer.

mod definitions;
mod held;

use std::sync::Arc;

use onionskin_crypt::{ColumnCipher, cell_header, order_key_len};
use onionskin_keys::KeySet;
use onionskin_physical::companions::order_key;
use onionskin_plan::{ColumnUse, OpenFrom, ResultItem, errors};
use onionskin_schema::Capabilities;
use onionskin_value::{
    Charset, FormatContext, Kind, SqlType, format_binary, format_text, payload_from_order,
};
use onionskin_wire::ParamType;
use onionskin_wire::rows::{
    BinaryRow, BinaryRowWriter, TextRow, begin_text_cell, end_text_cell, put_text_cell,
};

pub(crate) use self::definitions::{
    column_flags, definitions, definitions_of, logical_definition, names_physical, shown,
};
pub(crate) use self::held::HeldRows;
use crate::catalog::{KeyedPlan, cipher_of};
use crate::error::{Failure, Outcome};
use crate::functions::open::ResultOpener;
use crate::mask::Show;
use crate::state::State;
use crate::touched;

/// How the cells of one result open.
pub(crate) struct Opener {
    columns: Vec<Option<OpenColumn>>,
    /// The server's types, which tell the layout of binary rows.
    pub types: Vec<ParamType>,
    pub binary: bool,
    /// Opens columns by functions, behind the others.
    pub functions: Option<Box<ResultOpener>>,
    payload: Vec<u8>,
    order: Vec<u8>,
}

struct OpenColumn {
    used: ColumnUse,
    cipher: Arc<ColumnCipher>,
    /// Ciphers under other keys, met in cells.
    others: Vec<Arc<ColumnCipher>>,
    from: OpenFrom,
    form: Form,
    /// How many of its cells have opened. The first proves that the column is the one that the
    /// snapshot knows.
    opened: u64,
    /// How many of them were told: see [`Opener::tell`].
    told: u64,
}

/// What becomes of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// It is shown as it is.
    Plain,
    /// `MIN` or `MAX` of the whole table.
    Extremum,
    /// The account does not see it so.
    Masked(Show),
}

/// The settings that cells are formatted under.
pub(crate) fn format_context(state: &State) -> Outcome<FormatContext<'_>> {
    let results_charset = state
        .results_charset
        .ok_or_else(|| Failure::refused(&errors::CHARACTER_SET, "character_set_results"))?;
    let pad = onionskin_value::SqlMode::PAD_CHAR_TO_FULL_LENGTH;
    Ok(FormatContext {
        time_zone: &state.time_zone,
        family: state.family,
        results_charset: match results_charset {
            Charset::Binary => Charset::Binary,
            other => other,
        },
        pad_char: state.sql_mode.contains(pad),
    })
}

impl OpenColumn {
    fn new(keyed: &KeyedPlan, index: usize, item: &ResultItem, from: OpenFrom) -> Self {
        let (cipher, show) = keyed.keys.for_client(index);
        OpenColumn {
            form: match show {
                Show::Clear if item.computed && keyed.plan.grouping.is_none() => Form::Extremum,
                Show::Clear => Form::Plain,
                masked => Form::Masked(masked),
            },
            used: keyed.plan.columns[index].clone(),
            cipher: Arc::clone(cipher),
            others: Vec::new(),
            from,
            opened: 0,
            told: 0,
        }
    }

    #[inline(always)]
    fn format(
        &self,
        payload: &[u8],
        ctx: &FormatContext,
        out: &mut Vec<u8>,
        binary: bool,
    ) -> Outcome<()> {
        match self.form {
            Form::Extremum => format_extremum(&self.used, payload, ctx, out, binary),
            Form::Plain | Form::Masked(_) => format(&self.used, payload, ctx, out, binary),
        }
    }

    /// Leaves of an opened value what the account sees. `false`: it sees NULL.
    #[inline(always)]
    fn mask(&self, payload: &mut Vec<u8>) -> Outcome<bool> {
        match self.form {
            Form::Masked(show) => self.mask_as(show, payload),
            Form::Plain | Form::Extremum => Ok(true),
        }
    }

    #[cold]
    fn mask_as(&self, show: Show, payload: &mut Vec<u8>) -> Outcome<bool> {
        let fits = |ty: &&SqlType| show.fits(ty);
        match (show, self.used.column().sql_type.as_ref().filter(fits)) {
            (Show::Null, _) => Ok(false),
            (Show::First(_) | Show::Last(_), Some(ty)) => {
                show.cut(ty.charset(), payload);
                Ok(true)
            }
            _ => Err(Failure::refused(&errors::MASKED, self.used.path())),
        }
    }

    /// Whether NULL stands for its values.
    fn may_be_hidden(&self) -> bool {
        self.form == Form::Masked(Show::Null)
    }

    /// Refuses to open a masked column for anything but rows of the client's.
    #[inline]
    fn must_be_clear(&self) -> Outcome<()> {
        match self.form {
            Form::Masked(_) => Err(Failure::refused(&errors::MASKED, self.used.path())),
            Form::Plain | Form::Extremum => Ok(()),
        }
    }

    /// Opens a cell; the payload is appended. `false`: its tenant is forgotten, and it is shown as
    /// NULL.
    fn open_or_null(
        &mut self,
        keys: &KeySet,
        cell: &[u8],
        order: &mut Vec<u8>,
        payload: &mut Vec<u8>,
    ) -> Outcome<bool> {
        match self.open(keys, cell, order, payload) {
            Ok(()) => Ok(true),
            Err(Failure::Refused(refusal))
                if refusal.is(&errors::FORGOTTEN) && keys.shows_forgotten_as_null() =>
            {
                Ok(false)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Opens a cell; the payload is appended.
    fn open(
        &mut self,
        keys: &KeySet,
        cell: &[u8],
        order: &mut Vec<u8>,
        payload: &mut Vec<u8>,
    ) -> Outcome<()> {
        let failed =
            |used: &ColumnUse, e: &onionskin_crypt::OpenError| Failure::open(e, &used.path());
        match self.from {
            OpenFrom::OrderKey => {
                order.clear();
                self.cipher
                    .open_order_key(cell, order)
                    .map_err(|e| failed(&self.used, &e))?;
                let ty = self.used.column().sql_type.as_ref();
                let Some(ty) = ty else {
                    return Err(Failure::refused(&errors::INTERNAL, self.used.path()));
                };
                payload_from_order(ty, order, payload)
                    .map_err(|_| Failure::refused(&errors::TAMPERED, self.used.path()))
            }
            OpenFrom::Sealed => self.open_sealed(keys, cell, payload),
            OpenFrom::Keyed => {
                let tampered = |used: &ColumnUse| Failure::refused(&errors::TAMPERED, used.path());
                let internal = || Failure::refused(&errors::INTERNAL, self.used.path());
                let ty = self.used.column().sql_type.ok_or_else(internal)?;
                // the keys of such a column are whole
                let capabilities = &Capabilities::default();
                let length = ty.order_width().map(|width| order_key_len(width.bytes));
                let (key, cell) = length
                    .and_then(|length| cell.split_at_checked(length))
                    .ok_or_else(|| tampered(&self.used))?;
                let start = payload.len();
                self.open_sealed(keys, cell, payload)?;
                order.clear();
                // One value of a statement, not one of each row.
                let mut weights = Vec::new();
                let made = order_key(
                    &self.cipher,
                    &ty,
                    capabilities,
                    &payload[start..],
                    &mut weights,
                    order,
                );
                // The server knows both keys: nothing is to be hidden by the time this takes.
                match made.is_ok() && *order == key {
                    true => Ok(()),
                    false => {
                        payload.truncate(start);
                        Err(tampered(&self.used))
                    }
                }
            }
        }
    }

    /// Opens a sealed cell, under whichever data key it names.
    fn open_sealed(&mut self, keys: &KeySet, cell: &[u8], payload: &mut Vec<u8>) -> Outcome<()> {
        let failed =
            |used: &ColumnUse, e: &onionskin_crypt::OpenError| Failure::open(e, &used.path());
        let header = cell_header(cell).map_err(|e| failed(&self.used, &e))?;
        if header.key_id == self.cipher.key_id() {
            return self
                .cipher
                .open(cell, payload)
                .map_err(|e| failed(&self.used, &e));
        }
        if let Some(other) = self.others.iter().find(|c| c.key_id() == header.key_id) {
            return other
                .open(cell, payload)
                .map_err(|e| failed(&self.used, &e));
        }
        let other = cipher_of(keys, &self.used, header.key_id)?;
        other
            .open(cell, payload)
            .map_err(|e| failed(&self.used, &e))?;
        self.others.push(other);
        Ok(())
    }
}

impl Opener {
    fn new(columns: Vec<Option<OpenColumn>>, types: Vec<ParamType>, binary: bool) -> Self {
        Opener {
            columns,
            types,
            binary,
            functions: None,
            payload: Vec::new(),
            order: Vec::new(),
        }
    }

    /// Opens the rows of a result with these columns.
    pub fn of_items(
        keyed: &KeyedPlan,
        items: impl Iterator<Item = ResultItem>,
        types: Vec<ParamType>,
        binary: bool,
    ) -> Opener {
        let columns = items.map(|item| {
            let (index, from) = item.open?;
            Some(OpenColumn::new(keyed, index, &item, from))
        });
        Opener::new(columns.collect(), types, binary)
    }

    /// Opens sealed cells of these columns of the plan, without a result of the server's.
    pub fn of_sealed(keyed: &KeyedPlan, columns: impl Iterator<Item = usize>) -> Opener {
        let item = ResultItem::plain();
        let columns =
            columns.map(|index| Some(OpenColumn::new(keyed, index, &item, OpenFrom::Sealed)));
        Opener::new(columns.collect(), Vec::new(), false)
    }

    /// Counts the cells that have opened since this was called last: a cursor's are fetched in
    /// turns.
    pub fn tell(&mut self) {
        for column in self.columns.iter_mut().flatten() {
            let new = column.opened - std::mem::replace(&mut column.told, column.opened);
            if new > 0 {
                touched::opened(&column.used, new);
            }
        }
    }

    /// Whether a cell of every protected column has opened; see [`HeldRows`].
    pub fn is_proven(&self) -> bool {
        self.columns
            .iter()
            .flatten()
            .all(|column| column.opened > 0)
    }

    /// Appends the row that the client gets.
    pub fn row(
        &mut self,
        packet: &[u8],
        keys: &KeySet,
        ctx: &FormatContext,
        out: &mut Vec<u8>,
    ) -> Outcome<()> {
        let start = out.len();
        if self.binary {
            self.binary_row(packet, keys, ctx, out)?;
        } else {
            self.text_row(packet, keys, ctx, out)?;
        }
        match &mut self.functions {
            None => Ok(()),
            Some(functions) => functions.row(out, start, self.binary),
        }
    }

    fn text_row(
        &mut self,
        packet: &[u8],
        keys: &KeySet,
        ctx: &FormatContext,
        out: &mut Vec<u8>,
    ) -> Outcome<()> {
        let mut row = TextRow::new(packet);
        let mut plain = 0;
        for column in &mut self.columns {
            let Some(column) = column else {
                plain += 1;
                continue;
            };
            if plain > 0 {
                out.extend_from_slice(row.raw_cells(plain).map_err(Failure::Backend)?);
                plain = 0;
            }
            match row.cell().map_err(Failure::Backend)? {
                None => put_text_cell(out, None),
                Some(cell) => {
                    self.payload.clear();
                    let shown =
                        column.open_or_null(keys, cell, &mut self.order, &mut self.payload)?;
                    column.opened += 1;
                    if !shown || !column.mask(&mut self.payload)? {
                        put_text_cell(out, None);
                        continue;
                    }
                    let start = begin_text_cell(out);
                    column.format(&self.payload, ctx, out, false)?;
                    end_text_cell(out, start);
                }
            }
        }
        out.extend_from_slice(row.raw_rest());
        Ok(())
    }

    fn binary_row(
        &mut self,
        packet: &[u8],
        keys: &KeySet,
        ctx: &FormatContext,
        out: &mut Vec<u8>,
    ) -> Outcome<()> {
        let row = BinaryRow::new(packet, &self.types).map_err(Failure::Backend)?;
        let mut writer = BinaryRowWriter::begin(out, self.columns.len());
        for (cell, column) in row.zip(&mut self.columns) {
            let cell = cell.map_err(Failure::Backend)?;
            let Some(column) = column else {
                writer.raw(out, cell.raw).map_err(Failure::Backend)?;
                continue;
            };
            match cell.bytes().map_err(Failure::Backend)? {
                None => writer.null(out).map_err(Failure::Backend)?,
                Some(bytes) => {
                    self.payload.clear();
                    let shown =
                        column.open_or_null(keys, bytes, &mut self.order, &mut self.payload)?;
                    column.opened += 1;
                    if !shown || !column.mask(&mut self.payload)? {
                        writer.null(out).map_err(Failure::Backend)?;
                        continue;
                    }
                    writer.start_cell().map_err(Failure::Backend)?;
                    column.format(&self.payload, ctx, out, true)?;
                }
            }
        }
        writer.finish().map_err(Failure::Backend)
    }

    /// The cells of a row for tier 2: payloads where they open, raw cells elsewhere. `each` gets
    /// the column's number and `None` for NULL. A cell whose tenant is forgotten is an error,
    /// whatever is shown of it: no change is to rest on a NULL that is none.
    pub fn cells(
        &mut self,
        packet: &[u8],
        keys: &KeySet,
        each: impl FnMut(usize, Option<&[u8]>) -> Outcome<()>,
    ) -> Outcome<()> {
        self.each_cell(packet, keys, false, each)
    }

    /// The same for rows that the client is shown: cells whose tenants are forgotten may be NULL.
    pub fn shown_cells(
        &mut self,
        packet: &[u8],
        keys: &KeySet,
        each: impl FnMut(usize, Option<&[u8]>) -> Outcome<()>,
    ) -> Outcome<()> {
        self.each_cell(packet, keys, true, each)
    }

    #[inline]
    fn each_cell(
        &mut self,
        packet: &[u8],
        keys: &KeySet,
        may_be_null: bool,
        mut each: impl FnMut(usize, Option<&[u8]>) -> Outcome<()>,
    ) -> Outcome<()> {
        let Opener {
            columns,
            types,
            binary,
            payload,
            order,
            functions: _,
        } = self;
        let mut take =
            |n: usize, column: &mut Option<OpenColumn>, cell: Option<&[u8]>, raw: Option<&[u8]>| {
                match (column, cell) {
                    (Some(column), Some(cell)) => {
                        column.must_be_clear()?;
                        payload.clear();
                        let shown = match may_be_null {
                            true => column.open_or_null(keys, cell, order, payload)?,
                            false => column.open(keys, cell, order, payload).map(|()| true)?,
                        };
                        column.opened += 1;
                        each(n, shown.then_some(payload.as_slice()))
                    }
                    (Some(_), None) => each(n, None),
                    (None, _) => each(n, raw),
                }
            };
        if *binary {
            let row = BinaryRow::new(packet, types).map_err(Failure::Backend)?;
            for (n, (cell, column)) in row.zip(columns).enumerate() {
                let cell = cell.map_err(Failure::Backend)?;
                let bytes = if column.is_some() {
                    cell.bytes().map_err(Failure::Backend)?
                } else {
                    None
                };
                take(n, column, bytes, cell.raw)?;
            }
        } else {
            let row = TextRow::new(packet);
            for (n, (cell, column)) in row.zip(columns).enumerate() {
                let cell = cell.map_err(Failure::Backend)?;
                take(n, column, cell, cell)?;
            }
        }
        Ok(())
    }
}

/// However its rows came to an end, what was opened is counted.
impl Drop for Opener {
    fn drop(&mut self) {
        self.tell();
    }
}

/// Appends a payload as a cell's content: text without its length, or a whole binary value.
#[inline]
pub(crate) fn format(
    used: &ColumnUse,
    payload: &[u8],
    ctx: &FormatContext,
    out: &mut Vec<u8>,
    binary: bool,
) -> Outcome<()> {
    let Some(ty) = used.column().sql_type.as_ref() else {
        return Err(Failure::refused(&errors::INTERNAL, used.path()));
    };
    format_as(ty, used, payload, ctx, out, binary)
}

/// The same for `MIN` or `MAX` of a whole table. Servers print these as numbers without zeros
/// before them.
#[cold]
pub(crate) fn format_extremum(
    used: &ColumnUse,
    payload: &[u8],
    ctx: &FormatContext,
    out: &mut Vec<u8>,
    binary: bool,
) -> Outcome<()> {
    let Some(ty) = used.column().sql_type.as_ref() else {
        return Err(Failure::refused(&errors::INTERNAL, used.path()));
    };
    let ty = SqlType {
        zerofill: false,
        ..*ty
    };
    let start = out.len();
    format_as(&ty, used, payload, ctx, out, binary)?;
    if ty.kind == Kind::Year && !binary && out[start..] == *b"0000" {
        out.truncate(start + 1);
    }
    Ok(())
}

#[inline(always)] // a part of both, once for each cell
fn format_as(
    ty: &SqlType,
    used: &ColumnUse,
    payload: &[u8],
    ctx: &FormatContext,
    out: &mut Vec<u8>,
    binary: bool,
) -> Outcome<()> {
    let done = if binary {
        format_binary(ty, payload, ctx, out)
    } else {
        format_text(ty, payload, ctx, out)
    };
    done.map_err(|e| match e {
        onionskin_value::FormatError::TimeZone => Failure::refused(&errors::TIME_ZONE, used.path()),
        onionskin_value::FormatError::Malformed => Failure::refused(&errors::TAMPERED, used.path()),
    })
}
