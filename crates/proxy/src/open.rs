//! Results on their way to the client: definitions made logical, cells opened.
//!
//! Nothing of a result is written before all of its column definitions were checked against the
//! plan; a difference means that the snapshot is stale. Cells that are not protected are copied
//! as bytes, in runs; sealed cells are opened straight into the client's buffer.

use std::sync::Arc;

use onionskin_crypt::{ColumnCipher, cell_header};
use onionskin_keys::KeySet;
use onionskin_plan::{ColumnUse, Described, OpenFrom, ResultItem, errors};
use onionskin_schema::{Column, Default as ColumnDefault, KeyRole};
use onionskin_value::{
    Charset, Family, FormatContext, Kind, SqlType, format_binary, format_text, payload_from_order,
};
use onionskin_wire::messages::ColumnDefinition;
use onionskin_wire::rows::{
    BinaryRow, BinaryRowWriter, TextRow, begin_text_cell, end_text_cell, put_text_cell,
};
use onionskin_wire::{ColumnFlags, ColumnType, ParamType};

use crate::catalog::{Prepared, cipher_of};
use crate::error::{Failure, Outcome};
use crate::state::State;

/// The collation of what is no text.
const BINARY_COLLATION: u16 = 63;

/// How the cells of one result open.
pub(crate) struct Opener {
    columns: Vec<Option<OpenColumn>>,
    /// The server's types, which tell the layout of binary rows.
    pub types: Vec<ParamType>,
    pub binary: bool,
    payload: Vec<u8>,
    order: Vec<u8>,
}

struct OpenColumn {
    used: ColumnUse,
    cipher: Arc<ColumnCipher>,
    /// Ciphers under other keys, met in cells.
    others: Vec<Arc<ColumnCipher>>,
    from: OpenFrom,
    /// `MIN` or `MAX` of the whole table.
    extremum: bool,
}

/// The definitions of a statement's result: as the server sent them, and as the client saw them. A
/// statement that runs again gets the same, and need not check and translate them once more.
pub(crate) struct Shown {
    server: Vec<Vec<u8>>,
    client: Vec<Vec<u8>>,
    types: Vec<ParamType>,
    results_collation: u16,
    binary: bool,
}

impl Shown {
    /// Whether the server's definitions, read under this state, are these.
    fn holds(&self, server: &[Vec<u8>], state: &State, binary: bool) -> bool {
        self.binary == binary
            && self.results_collation == state.results_collation
            && self.server == server
    }

    /// What the client is shown.
    pub fn client(&self) -> &[Vec<u8>] {
        &self.client
    }
}

/// Whether a packet with a column definition names a sealed column or a companion.
pub(crate) fn names_physical(definition: &[u8]) -> bool {
    memchr::memmem::find(definition, b"$enc").is_some()
        || memchr::memmem::find(definition, b"$ord_").is_some()
        || memchr::memmem::find(definition, b"$eq_").is_some()
}

/// Checks the definitions of a statement's result and makes them logical, or recalls them.
pub(crate) fn shown(
    prepared: &Prepared,
    items: &[ResultItem],
    server: &mut Vec<Vec<u8>>,
    state: &State,
    binary: bool,
) -> Outcome<(Arc<Shown>, Opener)> {
    let recalled = prepared.shown.read().clone();
    if let Some(shown) = recalled.filter(|s| s.holds(server, state, binary)) {
        let columns = items.iter().map(|item| {
            let (index, from) = item.open?;
            Some(OpenColumn::new(prepared, index, item, from))
        });
        let opener = Opener::new(columns.collect(), shown.types.clone(), binary);
        return Ok((shown, opener));
    }
    let (client, opener) = definitions(prepared, items, server, state, binary)?;
    let shown = Arc::new(Shown {
        server: std::mem::take(server),
        client,
        types: opener.types.clone(),
        results_collation: state.results_collation,
        binary,
    });
    *prepared.shown.write() = Some(Arc::clone(&shown));
    Ok((shown, opener))
}

/// Checks a result's definitions and makes them logical.
pub(crate) fn definitions(
    prepared: &Prepared,
    items: &[ResultItem],
    server: &[Vec<u8>],
    state: &State,
    binary: bool,
) -> Outcome<(Vec<Vec<u8>>, Opener)> {
    definitions_of(prepared, items, server, state, binary, false)
}

/// The same; with `tokens`, columns that are not opened may be tokens.
pub(crate) fn definitions_of(
    prepared: &Prepared,
    items: &[ResultItem],
    server: &[Vec<u8>],
    state: &State,
    binary: bool,
    tokens: bool,
) -> Outcome<(Vec<Vec<u8>>, Opener)> {
    if server.len() != items.len() {
        return Err(Failure::Stale);
    }
    let mut shown = Vec::with_capacity(items.len());
    let mut columns = Vec::with_capacity(items.len());
    let mut types = Vec::with_capacity(items.len());
    for (n, (item, packet)) in items.iter().zip(server).enumerate() {
        let mut definition = ColumnDefinition::decode(packet).map_err(Failure::Backend)?;
        types.push(definition.param_type());
        let Some((index, from)) = item.open else {
            // MySQL calls what comes out of a temporary table by its text
            if !tokens && !item.computed && names_physical(&definition.org_name) {
                return Err(Failure::Stale);
            }
            shown.push(plain_definition(packet, definition, item, state));
            columns.push(None);
            continue;
        };
        let used = &prepared.plan.columns[index];
        let expected = match from {
            OpenFrom::Sealed => used.sealed(),
            OpenFrom::OrderKey => used.column().ord_name().unwrap_or_default(),
        };
        let named = definition
            .org_name
            .eq_ignore_ascii_case(expected.as_bytes());
        let around = item.computed
            && memchr::memmem::find(&definition.org_name, expected.as_bytes()).is_some();
        if !definition.org_name.is_empty() && !named && !around {
            return Err(Failure::Stale);
        }
        let grouped = prepared
            .plan
            .grouping
            .as_ref()
            .and_then(|g| g.columns.iter().find(|c| c.item == n));
        if let Some(grouped) = grouped {
            // the server's is an aggregate, which has no origin
            definition.schema = used.table.database.as_bytes().into();
            definition.org_table = used.table.name.as_bytes().into();
            definition.table = grouped.source.as_bytes().into();
        }
        if let Described::Column { outer: false, .. } = &item.described {
            let required = !used.column().nullable;
            definition.flags.set(ColumnFlags::NOT_NULL, required);
        }
        shown.push(logical_definition(&definition, item, used, state)?);
        columns.push(Some(OpenColumn::new(prepared, index, item, from)));
    }
    Ok((shown, Opener::new(columns, types, binary)))
}

/// The definition of a column that is not opened.
fn plain_definition<'a>(
    packet: &[u8],
    mut definition: ColumnDefinition<'a>,
    item: &'a ResultItem,
    state: &State,
) -> Vec<u8> {
    if item.name.is_none() && matches!(item.described, Described::AsSent) {
        return packet.to_vec();
    }
    if let Some(name) = &item.name {
        definition.name = name.as_bytes().into();
        if item.computed && !definition.org_name.is_empty() {
            definition.org_name = name.as_bytes().into();
        }
    }
    match &item.described {
        Described::AsSent => {}
        Described::Column { column, outer } => {
            let column = column.column();
            if let Some(ty) = &column.sql_type {
                let wire = ty.wire(state.family, state.results_collation);
                let mut flags = ColumnFlags::from_bits_retain(wire.flags);
                flags |= column_flags(column, ty, state.family);
                flags |= match outer {
                    true => definition.flags & ColumnFlags::NOT_NULL,
                    false if column.nullable => ColumnFlags::empty(),
                    false => ColumnFlags::NOT_NULL,
                };
                definition.flags = flags;
            }
        }
        Described::Aggregate { .. } => {
            definition.org_name = b"".as_slice().into();
            if definition.charset == BINARY_COLLATION {
                definition.flags |= ColumnFlags::BINARY;
            }
        }
    }
    let mut out = Vec::new();
    definition.encode(&mut out);
    out
}

/// The flags that follow from a column's definition, apart from those of its type and NOT_NULL.
pub(crate) fn column_flags(column: &Column, ty: &SqlType, family: Family) -> ColumnFlags {
    let mut flags = match column.key {
        KeyRole::None => ColumnFlags::empty(),
        KeyRole::Multiple => ColumnFlags::MULTIPLE_KEY | ColumnFlags::PART_KEY,
        KeyRole::Unique => ColumnFlags::UNIQUE_KEY | ColumnFlags::PART_KEY,
        KeyRole::Primary => ColumnFlags::PRI_KEY | ColumnFlags::PART_KEY,
    };
    if column.auto_increment {
        flags |= ColumnFlags::AUTO_INCREMENT;
    } else if !column.nullable && column.default.is_none() {
        flags |= ColumnFlags::NO_DEFAULT_VALUE;
    }
    let timestamp = matches!(ty.kind, Kind::Timestamp { .. });
    let now = match &column.default {
        Some(ColumnDefault::Server(words)) => {
            words.to_ascii_lowercase().starts_with("current_timestamp")
        }
        _ => false,
    };
    if timestamp && (now || column.on_update) {
        flags |= ColumnFlags::TIMESTAMP;
    }
    // MySQL has no such flag for DATETIME
    if column.on_update && (timestamp || family == Family::MariaDb) {
        flags |= ColumnFlags::ON_UPDATE_NOW;
    }
    flags
}

/// The definition that a server with the logical table would send.
pub(crate) fn logical_definition(
    server: &ColumnDefinition,
    item: &ResultItem,
    used: &ColumnUse,
    state: &State,
) -> Outcome<Vec<u8>> {
    let column = used.column();
    let Some(ty) = column.sql_type.as_ref() else {
        return Err(Failure::refused(&errors::INTERNAL, used.path()));
    };
    let mut shown = server.clone();
    if let Some(name) = &item.name {
        shown.name = name.as_bytes().into();
    }
    // a temporary table of groups has a copy of the column
    let copied = item.computed && matches!(item.described, Described::Column { .. });
    let wire = match item.computed && !copied {
        true => ty.wire_of_extremum(state.family, state.results_collation),
        false => ty.wire(state.family, state.results_collation),
    };
    shown.column_type = ColumnType(wire.column_type);
    shown.charset = wire.charset;
    shown.length = wire.length;
    shown.decimals = wire.decimals;
    let mut flags = ColumnFlags::from_bits_retain(wire.flags);
    if item.computed {
        // the function's result: no table, no key
        flags |= server.flags & ColumnFlags::NUM;
        if copied {
            flags |= column_flags(column, ty, state.family) & ColumnFlags::NO_DEFAULT_VALUE;
        }
        shown.org_name = b"".as_slice().into();
    } else {
        shown.org_name = column.name.as_bytes().into();
        let mut kept = ColumnFlags::NOT_NULL;
        kept |= ColumnFlags::NUM;
        flags |= server.flags & kept;
        flags |= column_flags(column, ty, state.family);
    }
    shown.flags = flags;
    let mut out = Vec::new();
    shown.encode(&mut out);
    Ok(out)
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
    fn new(prepared: &Prepared, index: usize, item: &ResultItem, from: OpenFrom) -> Self {
        OpenColumn {
            extremum: item.computed && prepared.plan.grouping.is_none(),
            used: prepared.plan.columns[index].clone(),
            cipher: Arc::clone(&prepared.ciphers[index]),
            others: Vec::new(),
            from,
        }
    }

    fn format(
        &self,
        payload: &[u8],
        ctx: &FormatContext,
        out: &mut Vec<u8>,
        binary: bool,
    ) -> Outcome<()> {
        match self.extremum {
            true => format_extremum(&self.used, payload, ctx, out, binary),
            false => format(&self.used, payload, ctx, out, binary),
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
            OpenFrom::Sealed => {
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
    }
}

impl Opener {
    fn new(columns: Vec<Option<OpenColumn>>, types: Vec<ParamType>, binary: bool) -> Self {
        Opener {
            columns,
            types,
            binary,
            payload: Vec::new(),
            order: Vec::new(),
        }
    }

    /// Opens sealed cells of these columns of the plan, without a result of the server's.
    pub fn of_sealed(prepared: &Prepared, columns: impl Iterator<Item = usize>) -> Opener {
        let item = ResultItem::plain();
        let columns =
            columns.map(|index| Some(OpenColumn::new(prepared, index, &item, OpenFrom::Sealed)));
        Opener::new(columns.collect(), Vec::new(), false)
    }

    /// Appends the row that the client gets.
    pub fn row(
        &mut self,
        packet: &[u8],
        keys: &KeySet,
        ctx: &FormatContext,
        out: &mut Vec<u8>,
    ) -> Outcome<()> {
        if self.binary {
            self.binary_row(packet, keys, ctx, out)
        } else {
            self.text_row(packet, keys, ctx, out)
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
                    column.open(keys, cell, &mut self.order, &mut self.payload)?;
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
                    column.open(keys, bytes, &mut self.order, &mut self.payload)?;
                    writer.start_cell().map_err(Failure::Backend)?;
                    column.format(&self.payload, ctx, out, true)?;
                }
            }
        }
        writer.finish().map_err(Failure::Backend)
    }

    /// The cells of a row for tier 2: payloads where they open, raw cells elsewhere. `each` gets
    /// the column's number and `None` for NULL.
    pub fn cells(
        &mut self,
        packet: &[u8],
        keys: &KeySet,
        mut each: impl FnMut(usize, Option<&[u8]>) -> Outcome<()>,
    ) -> Outcome<()> {
        let Opener {
            columns,
            types,
            binary,
            payload,
            order,
        } = self;
        let mut take =
            |n: usize, column: &mut Option<OpenColumn>, cell: Option<&[u8]>, raw: Option<&[u8]>| {
                match (column, cell) {
                    (Some(column), Some(cell)) => {
                        payload.clear();
                        column.open(keys, cell, order, payload)?;
                        each(n, Some(payload))
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

/// Appends a payload as a cell's content: text without its length, or a whole binary value.
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

/// The same for `MIN` or `MAX` of a whole table, which servers print as numbers without zeros before them.
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
