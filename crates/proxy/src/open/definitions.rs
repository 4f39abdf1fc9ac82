//! Column definitions on their way to the client. What the server says of physical columns becomes
//! what it would say of logical ones.
//!
//! A name that the plan does not expect means that the snapshot is stale. A statement that runs
//! again gets the same definitions, which are then recalled ([`Shown`]).

use std::sync::Arc;

use onionskin_plan::{ColumnUse, Described, OpenFrom, ResultItem, errors};
use onionskin_schema::{
    Column, Default as ColumnDefault, DefaultLiteral, KeyRole, is_present_time,
};
use onionskin_value::{Family, Kind, SqlType};
use onionskin_wire::messages::ColumnDefinition;
use onionskin_wire::{ColumnFlags, ColumnType};

use super::{OpenColumn, Opener};
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::shown::Shown;
use crate::state::State;

/// The collation of what is no text.
const BINARY_COLLATION: u16 = 63;
/// Its name.
const BINARY: &str = "binary";

/// Whether a packet with a column definition names a sealed column or a companion.
pub(crate) fn names_physical(definition: &[u8]) -> bool {
    // a search for each of them would look at every byte again
    memchr::memchr_iter(b'$', definition).any(|at| {
        let behind = &definition[at + 1..];
        let marks: [&[u8]; 4] = [b"enc", b"ord_", b"eq_", b"gram_"];
        marks.iter().any(|mark| behind.starts_with(mark))
    })
}

/// Checks the definitions of a statement's result and makes them logical, or recalls them.
pub(crate) fn shown(
    keyed: &KeyedPlan,
    items: &[ResultItem],
    server: &mut Vec<Vec<u8>>,
    state: &State,
    binary: bool,
) -> Outcome<(Arc<Shown>, Opener)> {
    let recalled = keyed.shown.read().clone();
    if let Some(shown) = recalled.filter(|s| s.holds(server, state, binary)) {
        let columns = items.iter().map(|item| {
            let (index, from) = item.open?;
            Some(OpenColumn::new(keyed, index, item, from))
        });
        let opener = Opener::new(columns.collect(), shown.types.clone(), binary);
        return Ok((shown, opener));
    }
    let (client, opener) = definitions(keyed, items, server, state, binary)?;
    let shown = Arc::new(Shown {
        server: std::mem::take(server),
        client,
        types: opener.types.clone(),
        results_collation: state.results_collation,
        binary,
    });
    *keyed.shown.write() = Some(Arc::clone(&shown));
    Ok((shown, opener))
}

/// Checks a result's definitions and makes them logical.
pub(crate) fn definitions(
    keyed: &KeyedPlan,
    items: &[ResultItem],
    server: &[Vec<u8>],
    state: &State,
    binary: bool,
) -> Outcome<(Vec<Vec<u8>>, Opener)> {
    definitions_of(keyed, items, server, state, binary, false)
}

/// The same; with `tokens`, columns that are not opened may be tokens.
pub(crate) fn definitions_of(
    keyed: &KeyedPlan,
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
        let mut definition =
            ColumnDefinition::decode(packet, state.form).map_err(Failure::Backend)?;
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
        let used = &keyed.plan.columns[index];
        let expected = match from {
            OpenFrom::Sealed | OpenFrom::Keyed => used.sealed(),
            OpenFrom::OrderKey => used.column().ord_name().unwrap_or_default(),
        };
        let expected = state.shown_name(expected);
        let named = definition.org_name.eq_ignore_ascii_case(&expected);
        let grouped = keyed
            .plan
            .grouping
            .as_ref()
            .and_then(|g| g.columns.iter().find(|c| c.item == n));
        // MIN of a group's cells: MySQL calls it by its text if it comes out of a temporary table,
        // or by its alias
        let has_alias = definition.org_table.is_empty() && definition.org_name == definition.name;
        let around = (item.computed || grouped.is_some())
            && (has_alias || memchr::memmem::find(&definition.org_name, &expected).is_some());
        if !definition.org_name.is_empty() && !named && !around {
            return Err(Failure::Stale);
        }
        if let Some(grouped) = grouped {
            // the server's is an aggregate, which has no origin
            definition.schema = state.shown_name(&used.table.database);
            definition.org_table = state.shown_name(&used.table.name);
            definition.table = state.shown_name(&grouped.source);
        }
        if let Described::Column { outer: false, .. } = &item.described {
            let required = !used.column().nullable;
            definition.flags.set(ColumnFlags::NOT_NULL, required);
        }
        let column = OpenColumn::new(keyed, index, item, from);
        if column.may_be_hidden() {
            definition.flags.remove(ColumnFlags::NOT_NULL);
        }
        shown.push(logical_definition(&definition, item, used, state)?);
        columns.push(Some(column));
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
        definition.name = state.shown_name(name);
        if item.computed && !definition.org_name.is_empty() {
            definition.org_name = state.shown_name(name);
        }
    }
    match &item.described {
        Described::AsSent => {}
        Described::Column { column, outer, .. } => {
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
        Described::Aggregate { column, .. } => {
            definition.org_name = b"".as_slice().into();
            // a text that is shown as bytes is none of bytes
            let ty = column.as_ref().and_then(|c| c.column().sql_type.as_ref());
            let is_text = ty
                .and_then(|ty| ty.collation)
                .is_some_and(|c| c.name() != BINARY);
            if definition.charset == BINARY_COLLATION && !is_text {
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
    } else if column.default.is_none() && (!column.nullable || column.protection.is_some()) {
        flags |= ColumnFlags::NO_DEFAULT_VALUE;
    }
    let timestamp = matches!(ty.kind, Kind::Timestamp { .. });
    let now = match &column.default {
        Some(ColumnDefault::Server(words)) => {
            words.to_ascii_lowercase().starts_with("current_timestamp")
        }
        Some(ColumnDefault::Literal(DefaultLiteral::Expression(text))) => {
            is_present_time(text, family)
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
        shown.name = state.shown_name(name);
    }
    // a temporary table of groups has a copy of the column; there is none where LIMIT is 0
    let through_temporary = ![31, 39].contains(&server.decimals);
    let copied =
        item.computed && matches!(item.described, Described::Column { .. }) && through_temporary;
    let wire = match item.computed && !copied {
        true => ty.wire_of_extremum(state.family, state.results_collation),
        false => ty.wire(state.family, state.results_collation),
    };
    shown.extend(ty.extended_metadata());
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
        // MySQL gathers different values in sorted rows and names the columns that it puts them
        // into
        shown.org_name = match server.org_name.is_empty() {
            true => b"".as_slice().into(),
            false => shown.name.clone(),
        };
    } else {
        shown.org_name = state.shown_name(&column.name);
        let mut kept = ColumnFlags::NOT_NULL;
        kept |= ColumnFlags::NUM;
        flags |= server.flags & kept;
        flags |= column_flags(column, ty, state.family);
        let sorted = matches!(item.described, Described::Column { sorted: true, .. });
        if sorted && ty.is_bit() && state.family == Family::MySql {
            // the temporary table has a number in its place
            flags.remove(ColumnFlags::NO_DEFAULT_VALUE);
        }
    }
    shown.flags = flags;
    let mut out = Vec::new();
    shown.encode(&mut out);
    Ok(out)
}
