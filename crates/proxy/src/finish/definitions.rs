//! The column definitions of a finished result: those of the fetched columns, made logical, and
//! those that the server would send for aggregates.

use onionskin_plan::{Aggregate, AggregateCall, Finish, Output, ResultItem, errors};
use onionskin_value::{SqlType, Sum, WireType};
use onionskin_wire::messages::ColumnDefinition;
use onionskin_wire::{ColumnFlags, ColumnType};

use crate::catalog::Prepared;
use crate::error::{Failure, Outcome};
use crate::session::Session;

impl Session {
    /// The column definitions of the finished result.
    pub fn output_definitions(
        &self,
        prepared: &Prepared,
        finish: &Finish,
        shown: &[Vec<u8>],
    ) -> Outcome<Vec<Vec<u8>>> {
        finish
            .output
            .iter()
            .map(|output| match output {
                Output::Cell { fetch } => shown
                    .get(*fetch)
                    .cloned()
                    .ok_or_else(|| Failure::refused(&errors::INTERNAL, "a fetched column")),
                Output::Aggregate { call, name } => {
                    let call = finish.groups.as_ref().and_then(|g| g.calls.get(*call));
                    let call =
                        call.ok_or_else(|| Failure::refused(&errors::INTERNAL, "an aggregate"))?;
                    self.aggregate_definition(prepared, finish, call, name)
                }
            })
            .collect()
    }

    fn aggregate_definition(
        &self,
        prepared: &Prepared,
        finish: &Finish,
        call: &AggregateCall,
        name: &str,
    ) -> Outcome<Vec<u8>> {
        let family = self.state.family;
        // what is counted need not be protected
        let ty = match call.fetch {
            Some(fetch) if call.function != Aggregate::Count => {
                Some(fetched_type(prepared, &finish.fetch, fetch)?)
            }
            _ => None,
        };
        let mut flags = ColumnFlags::BINARY;
        let wire = match (call.function, ty) {
            (Aggregate::Sum, Some(ty)) => Sum::sum_wire(ty, family),
            (Aggregate::Avg, Some(ty)) => {
                Sum::avg_wire(ty, family, self.state.div_precision_increment)
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
        let definition = ColumnDefinition {
            catalog: b"def".as_slice().into(),
            schema: b"".as_slice().into(),
            table: b"".as_slice().into(),
            org_table: b"".as_slice().into(),
            name: name.as_bytes().into(),
            org_name: b"".as_slice().into(),
            charset: wire.charset,
            length: wire.length,
            column_type: ColumnType(wire.column_type),
            flags,
            decimals: wire.decimals,
            default: onionskin_wire::messages::ColumnDefault::Absent,
        };
        let mut out = Vec::new();
        definition.encode(&mut out);
        Ok(out)
    }
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
    prepared: &'p Prepared,
    fetch: &[ResultItem],
    at: usize,
) -> Outcome<&'p SqlType> {
    fetch
        .get(at)
        .and_then(|item| item.open)
        .and_then(|(index, _)| prepared.plan.columns.get(index))
        .and_then(|used| used.column().sql_type.as_ref())
        .ok_or_else(|| Failure::refused(&errors::INTERNAL, "a fetched column's type"))
}

/// Distinction compares plain cells as bytes, which is right for numbers and binary strings only.
pub(super) fn check_distinct(finish: &Finish, definitions: &[Vec<u8>]) -> Outcome<()> {
    for at in finish.output.iter().filter_map(shown_cell) {
        let (item, packet) = (&finish.fetch[at], &definitions[at]);
        let definition = ColumnDefinition::decode(packet).map_err(Failure::Backend)?;
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
