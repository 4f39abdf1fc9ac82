//! The column definitions of a finished result: those of the fetched columns, made logical, and
//! those that the server would send for aggregates.

use onionskin_plan::{Aggregate, AggregateCall, Described, Finish, Output, ResultItem, errors};
use onionskin_schema::Column;
use onionskin_value::{Family, Kind, SqlType, Sum, WireType};
use onionskin_wire::messages::ColumnDefinition;
use onionskin_wire::{ColumnFlags, ColumnType, DefinitionForm};

use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::open::column_flags;
use crate::session::Session;
use crate::state::State;

impl Session {
    /// The column definitions of the finished result; `temporary`: as they come out of a temporary
    /// table.
    pub fn output_definitions(
        &self,
        keyed: &KeyedPlan,
        finish: &Finish,
        shown: &[Vec<u8>],
        temporary: bool,
    ) -> Outcome<Vec<Vec<u8>>> {
        finish
            .output
            .iter()
            .map(|output| match output {
                Output::Cell { fetch } => {
                    let cell = shown.get(*fetch).zip(finish.fetch.get(*fetch));
                    let (packet, item) = cell
                        .ok_or_else(|| Failure::refused(&errors::INTERNAL, "a fetched column"))?;
                    match temporary {
                        true => out_of_temporary(packet, item, finish, &self.state),
                        false => Ok(packet.clone()),
                    }
                }
                Output::Aggregate { call, name } => {
                    let call = finish.groups.as_ref().and_then(|g| g.calls.get(*call));
                    let call =
                        call.ok_or_else(|| Failure::refused(&errors::INTERNAL, "an aggregate"))?;
                    self.aggregate_definition(keyed, finish, call, name, temporary)
                }
            })
            .collect()
    }

    fn aggregate_definition(
        &self,
        keyed: &KeyedPlan,
        finish: &Finish,
        call: &AggregateCall,
        name: &str,
        temporary: bool,
    ) -> Outcome<Vec<u8>> {
        let family = self.state.family;
        // what is counted need not be protected
        let ty = match call.fetch {
            Some(fetch) if call.function != Aggregate::Count => {
                Some(fetched_type(keyed, &finish.fetch, fetch)?)
            }
            _ => None,
        };
        // an average is computed of what is in the temporary table, unless rows are sorted by it
        // there, or it was computed of sorted rows whose different values are counted
        let computed =
            call.function == Aggregate::Avg && !finish.sorts_by(call) && !finish.counts_differing();
        let stored = temporary && !computed;
        let mut flags = match stored {
            true => ColumnFlags::empty(),
            false => ColumnFlags::BINARY,
        };
        let wire = match (call.function, ty) {
            (Aggregate::Sum, Some(ty)) => Sum::sum_wire(ty, family),
            (Aggregate::Avg, Some(ty)) => Sum::avg_wire(ty, family, self.increment()),
            (Aggregate::Min | Aggregate::Max, Some(ty)) if temporary => {
                // a copy of the column's own
                let column = call
                    .fetch
                    .and_then(|fetch| used_column(keyed, finish, fetch));
                flags = column.map_or(ColumnFlags::empty(), |column| {
                    column_flags(column, ty, family) & ColumnFlags::NO_DEFAULT_VALUE
                });
                ty.wire(family, self.state.results_collation)
            }
            (Aggregate::Min | Aggregate::Max, Some(ty)) => {
                // a text is binary only where its collation is
                flags = ColumnFlags::empty();
                ty.wire_of_extremum(family, self.state.results_collation)
            }
            _ => {
                flags |= ColumnFlags::NOT_NULL;
                WireType {
                    column_type: ColumnType::LONGLONG.0,
                    charset: 63,
                    length: 21,
                    flags: 0,
                    decimals: 0,
                }
            }
        };
        flags |= ColumnFlags::from_bits_retain(wire.flags);
        if stored && matches!(call.function, Aggregate::Sum | Aggregate::Avg) {
            flags.remove(ColumnFlags::BINARY);
        }
        let mut definition = ColumnDefinition {
            catalog: b"def".as_slice().into(),
            schema: b"".as_slice().into(),
            table: b"".as_slice().into(),
            org_table: b"".as_slice().into(),
            name: self.state.shown_name(name),
            org_name: match temporary && family == Family::MySql && finish.counts_differing() {
                // MySQL gathers different values in sorted rows and names the columns that it puts
                // them into
                true => self.state.shown_name(name),
                false => b"".as_slice().into(),
            },
            extended: self.state.extended(),
            charset: wire.charset,
            length: wire.length,
            column_type: ColumnType(wire.column_type),
            flags,
            decimals: wire.decimals,
            default: onionskin_wire::messages::ColumnDefault::Absent,
        };
        if let (Aggregate::Min | Aggregate::Max, Some(ty)) = (call.function, ty) {
            definition.extend(ty.extended_metadata());
        }
        let mut out = Vec::new();
        definition.encode(&mut out);
        Ok(out)
    }
}

/// The width of a column whose numbers have zeros before them, where the item is its least or
/// greatest value. The server computes those of plain columns with window functions, which leave
/// the zeros out; a temporary table keeps them. In a binary row a DECIMAL alone is a text.
pub(super) fn zeros_kept(item: &ResultItem, state: &State, binary: bool) -> Option<usize> {
    let Described::Aggregate {
        function: Aggregate::Min | Aggregate::Max,
        column: Some(column),
    } = &item.described
    else {
        return None;
    };
    let ty = column.column().sql_type.as_ref()?;
    let wire = ty.wire(state.family, state.results_collation);
    let is_text = !binary || wire.column_type == ColumnType::NEWDECIMAL.0;
    (is_text && (ty.zerofill || ty.kind == Kind::Year)).then_some(wire.length as usize)
}

/// A definition as if the column came out of a temporary table. What makes a column's own values is
/// not copied there.
fn out_of_temporary(
    packet: &[u8],
    item: &ResultItem,
    finish: &Finish,
    state: &State,
) -> Outcome<Vec<u8>> {
    let family = state.family;
    let mut definition = ColumnDefinition::decode(packet, state.form).map_err(Failure::Backend)?;
    definition
        .flags
        .remove(ColumnFlags::AUTO_INCREMENT | ColumnFlags::TIMESTAMP | ColumnFlags::ON_UPDATE_NOW);
    match item.described {
        Described::Aggregate {
            function,
            ref column,
        } => {
            let number =
                !definition.column_type.is_length_encoded() && !is_moment(definition.column_type);
            let decimal = definition.column_type == ColumnType::NEWDECIMAL;
            let stored = function != Aggregate::Avg || finish.counts_differing();
            if stored && (number || decimal) {
                definition.flags.remove(ColumnFlags::BINARY);
            }
            if matches!(function, Aggregate::Min | Aggregate::Max)
                && let Some(column) = column.as_ref().map(|used| used.column())
                && let Some(ty) = &column.sql_type
            {
                // a copy of the column's own
                let wire = ty.wire(family, state.results_collation);
                definition.column_type = ColumnType(wire.column_type);
                definition.length = wire.length;
                definition.decimals = wire.decimals;
                definition.flags |= ColumnFlags::from_bits_retain(wire.flags);
                definition.flags |=
                    column_flags(column, ty, family) & ColumnFlags::NO_DEFAULT_VALUE;
            }
            if family == Family::MySql && finish.counts_differing() {
                definition.org_name = definition.name.clone();
            }
        }
        Described::AsSent | Described::Column { .. } => {
            let is_bit = definition.column_type == ColumnType::BIT;
            if is_bit && family == Family::MySql {
                definition.flags.remove(ColumnFlags::NO_DEFAULT_VALUE);
            }
        }
    }
    let mut out = Vec::new();
    definition.encode(&mut out);
    Ok(out)
}

fn is_moment(ty: ColumnType) -> bool {
    matches!(
        ty,
        ColumnType::DATE | ColumnType::TIME | ColumnType::DATETIME | ColumnType::TIMESTAMP
    )
}

/// The protected column that a fetched one is.
fn used_column<'p>(keyed: &'p KeyedPlan, finish: &Finish, fetch: usize) -> Option<&'p Column> {
    let (index, _) = finish.fetch.get(fetch)?.open?;
    keyed.plan.columns.get(index).map(|used| used.column())
}

/// The fetched column that an output column is.
pub(super) fn shown_cell(output: &Output) -> Option<usize> {
    match output {
        Output::Cell { fetch } => Some(*fetch),
        Output::Aggregate { .. } => None,
    }
}

/// The type of a fetched protected column.
pub(super) fn fetched_type<'p>(
    keyed: &'p KeyedPlan,
    fetch: &[ResultItem],
    at: usize,
) -> Outcome<&'p SqlType> {
    fetch
        .get(at)
        .and_then(|item| item.open)
        .and_then(|(index, _)| keyed.plan.columns.get(index))
        .and_then(|used| used.column().sql_type.as_ref())
        .ok_or_else(|| Failure::refused(&errors::INTERNAL, "a fetched column's type"))
}

/// Distinction compares plain cells as bytes, which is right for numbers and binary strings only.
pub(super) fn check_distinct(
    finish: &Finish,
    definitions: &[Vec<u8>],
    form: DefinitionForm,
) -> Outcome<()> {
    for at in finish.output.iter().filter_map(shown_cell) {
        let (item, packet) = (&finish.fetch[at], &definitions[at]);
        let definition = ColumnDefinition::decode(packet, form).map_err(Failure::Backend)?;
        if item.open.is_none()
            && definition.column_type.is_length_encoded()
            && definition.charset != 63
        {
            return Err(Failure::refused(
                &errors::GROUPING,
                "DISTINCT with a string column",
            ));
        }
    }
    Ok(())
}
