//! The reading half: rows with their old values, and what the new ones will be.

use std::sync::Arc;

use onionskin_crypt::{TenantId, cell_tenant};
use onionskin_physical::tenant_id;
use onionskin_plan::{NewValue, OpenFrom, ResultItem, RowUpdate, Source, errors};
use onionskin_value::{Charset, Context, Input, Kind, Operator, Stored, add_sub};
use onionskin_wire::Step;
use onionskin_wire::rows::TextRow;

use super::Row;
use super::key::{key_kind, key_literal};
use crate::bind::{Binder, Values, is_early};
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::exchange::Question;
use crate::open;
use crate::session::Session;

/// A value of a protected column: its payload, or `None` for NULL.
pub(super) type Payload = Option<Vec<u8>>;

impl Session {
    /// Reads the rows and computes their new values. Returns those to be written, and how many
    /// there were.
    pub(super) fn read_rows_to_update(
        &mut self,
        question: Question,
        keyed: &KeyedPlan,
        update: &RowUpdate,
        values: Values,
    ) -> Outcome<(Vec<Row>, u64)> {
        self.server.begin(question)?;
        let count = match self.server.step()? {
            Step::ColumnCount(count) => usize::from(count),
            Step::Err => return Err(self.server.error()),
            _ => return Err(Failure::Stale),
        };
        let tested = update.filter.as_ref().map_or(0, |f| f.fetch.len());
        if count != update.key.len() + update.assign.len() + tested {
            return Err(Failure::Stale);
        }
        let mut definitions = Vec::new();
        for _ in 0..count {
            if self.server.step()? != Step::ColumnDef {
                return Err(self.server.error());
            }
            definitions.push(self.server.payload().to_vec());
        }
        let item = |open| ResultItem {
            open,
            ..ResultItem::plain()
        };
        let keys = update.key.iter().map(|_| item(None));
        let cells = update
            .assign
            .iter()
            .map(|a| item(Some((a.column, OpenFrom::Sealed))));
        let tested = update.filter.iter().flat_map(|f| f.fetch.iter().cloned());
        let items: Vec<ResultItem> = keys.chain(cells).chain(tested).collect();
        let mut picker = self.picker(keyed, update.filter.as_ref(), values)?;
        let key_kinds = definitions[..update.key.len()]
            .iter()
            .map(|p| key_kind(p, self.state.form))
            .collect::<Outcome<Vec<_>>>()?;
        // keys may be tokens, which are physical names by intent
        let (_, mut opener) =
            open::definitions_of(keyed, &items, &definitions, &self.state, false, true)?;
        // what is wrong with a constant matters only if there is a row
        let mut constants = self.constants(keyed, update, values)?;
        let of_constants = self.diagnostics.take_of_rows();
        let charset = self.state.results_charset;
        let shared = Arc::clone(&self.shared);
        let mut rows = Vec::new();
        let (mut kept, mut size) = (self.kept(), 0);
        let mut found = 0u64;
        while !self.server.tracker.is_complete() {
            match self.server.step()? {
                Step::Row => {}
                Step::Err => return Err(self.server.error()),
                _ => continue,
            }
            kept.row()?;
            let assigned = update.key.len() + update.assign.len();
            if let Some(picker) = &mut picker
                && !picker.picks(self, &mut opener, assigned)?
            {
                continue;
            }
            found += 1;
            let constants = match &mut constants {
                Ok(constants) => constants,
                Err(_) => return Err(constants.err().unwrap_or(Failure::Stale)),
            };
            self.diagnostics.add_row(&of_constants, found);
            let mut row = Row::default();
            let mut old: Vec<Payload> = Vec::new();
            let key_columns = update.key.len();
            let packet = self.server.payload();
            opener.cells(packet, &shared.config.keys, |n, cell| {
                if n < key_columns {
                    if n > 0 {
                        row.condition.extend_from_slice(b" AND ");
                    }
                    row.condition.extend_from_slice(update.key[n].as_bytes());
                    row.condition.extend_from_slice(b" = ");
                    let Some(cell) = cell else {
                        return Err(Failure::refused(&errors::NEEDS_KEY, ""));
                    };
                    key_literal(cell, key_kinds[n], charset, &mut row.condition)?;
                    if update.tenant == Some(n) {
                        row.tenant = tenant_of(keyed, update, cell, charset)?;
                    }
                } else if n < assigned {
                    old.push(cell.map(<[u8]>::to_vec));
                }
                Ok(())
            })?;
            if update.tenant.is_some() {
                must_be_of_tenant(keyed, update, &row, packet)?;
            }
            if update.single_row.is_some() {
                let mut cells = TextRow::new(packet);
                cells.raw_cells(key_columns).map_err(Failure::Backend)?;
                let cells = cells.raw_cells(update.assign.len());
                row.cells
                    .extend_from_slice(cells.map_err(Failure::Backend)?);
            }
            row.values = self.new_values(keyed, update, values, constants, &old, found)?;
            if row.changes(update) {
                size += row.size();
                kept.hold(size)?;
                rows.push(row);
            }
        }
        Ok((rows, found))
    }

    /// A row as it is remembered to be, with its new values. `None`: not remembered, or only the
    /// real row can tell what will happen.
    pub(super) fn remembered_row(
        &mut self,
        keyed: &KeyedPlan,
        update: &RowUpdate,
        values: Values,
        memory_key: u64,
    ) -> Option<Row> {
        let mut row = Row::default();
        let shared = Arc::clone(&self.shared);
        if !shared.cell_memory.recall(memory_key, &mut row.cells) {
            return None;
        }
        let columns = update.assign.iter().map(|a| a.column);
        let mut opener = open::Opener::of_sealed(keyed, columns);
        let mut old: Vec<Payload> = Vec::with_capacity(update.assign.len());
        let opened = opener.cells(&row.cells, &shared.config.keys, |_, cell| {
            old.push(cell.map(<[u8]>::to_vec));
            Ok(())
        });
        if opened.is_err() || old.len() != update.assign.len() {
            shared.cell_memory.forget(memory_key);
            return None;
        }
        let constants = self.constants(keyed, update, values).ok()?.ok()?;
        let of_constants = self.diagnostics.take_of_rows();
        self.diagnostics.add_row(&of_constants, 1);
        row.values = self
            .new_values(keyed, update, values, &constants, &old, 1)
            .ok()?;
        row.changes(update).then_some(row)
    }

    /// What each assignment makes of the old values; nothing where that is what they are.
    fn new_values(
        &mut self,
        keyed: &KeyedPlan,
        update: &RowUpdate,
        values: Values,
        constants: &[Payload],
        old: &[Payload],
        row: u64,
    ) -> Outcome<Vec<Option<Payload>>> {
        let mut new_values = Vec::with_capacity(update.assign.len());
        for (i, assign) in update.assign.iter().enumerate() {
            let new = match assign.value {
                NewValue::Constant(_) => constants[i].clone(),
                NewValue::OnChange(_) => match new_values.iter().any(Option::is_some) {
                    true => constants[i].clone(),
                    false => old[i].clone(),
                },
                NewValue::Arithmetic { operator, operand } => {
                    let new = self.computed(
                        keyed,
                        assign.column,
                        operator,
                        operand,
                        old[i].as_deref(),
                        values,
                        row,
                    )?;
                    let used = &keyed.plan.columns[assign.column];
                    if new.is_none() && !used.column().nullable {
                        return Err(Failure::refused(&errors::VALUE, used.path()));
                    }
                    new
                }
            };
            new_values.push((new != old[i]).then_some(new));
        }
        Ok(new_values)
    }

    /// The payloads of constant assignments, or what is wrong with them. An error is one that is
    /// found before any row.
    fn constants(
        &mut self,
        keyed: &KeyedPlan,
        update: &RowUpdate,
        values: Values,
    ) -> Outcome<Outcome<Vec<Payload>>> {
        let mut constants = Vec::with_capacity(update.assign.len());
        let mut binder = Binder::new(keyed, &self.state, values, &mut self.buffers);
        binder.mode.lenient_nulls = true;
        let mut wrong = None;
        for assign in &update.assign {
            let (NewValue::Constant(source) | NewValue::OnChange(source)) = assign.value else {
                constants.push(None);
                continue;
            };
            match binder.stored_payload(assign.column, source) {
                Ok(payload) => constants.push(payload.map(<[u8]>::to_vec)),
                // one that is found before any row comes before another
                Err(Failure::Value(error)) if is_early(&error, self.state.family) => {
                    return Err(Failure::Value(error));
                }
                // a number for a UUID is an error of the server's, whatever rows there are
                Err(failure @ Failure::Refused(_)) if is_fixed_binary(keyed, assign.column) => {
                    return Err(failure);
                }
                Err(failure) => wrong = wrong.or(Some(failure)),
            }
        }
        if let Some(failure) = wrong {
            return Ok(Err(failure));
        }
        self.diagnostics.clear();
        self.diagnostics.warnings = binder.warnings;
        Ok(Ok(constants))
    }

    #[allow(clippy::too_many_arguments)] // the pieces of one row's one assignment
    fn computed(
        &mut self,
        keyed: &KeyedPlan,
        column: usize,
        operator: u8,
        operand: Source,
        old: Option<&[u8]>,
        values: Values,
        row: u64,
    ) -> Outcome<Option<Vec<u8>>> {
        let used = &keyed.plan.columns[column];
        let Some(ty) = used.column().sql_type.as_ref() else {
            return Err(Failure::refused(&errors::INTERNAL, used.path()));
        };
        let mut scratch = Vec::new();
        let input = match operand {
            Source::Literal { index, negative } => {
                values.input(index, negative, &self.state, &mut scratch, used)?
            }
            Source::Null => return Ok(None),
            Source::Bool(b) => Input::Bool(b),
            Source::Moment { .. }
            | Source::Joined { .. }
            | Source::Default
            | Source::Omitted { .. }
            | Source::Implicit
            | Source::Present { .. } => {
                return Err(Failure::refused(&errors::NOT_CONSTANT, used.path()));
            }
        };
        let Some(old) = old else {
            // servers read a text to its end all the same, and say what is wrong with it
            return match input {
                Input::Null
                | Input::Bool(_)
                | Input::Integer { .. }
                | Input::Decimal(_)
                | Input::Double(_) => Ok(None),
                _ => Err(Failure::refused(&errors::VALUE, used.path())),
            };
        };
        let operator = match operator {
            b'+' => Operator::Add,
            b'-' => Operator::Subtract,
            _ => Operator::Multiply,
        };
        let (name, table) = (&used.column().name, &used.table);
        let ctx = Context {
            row,
            ..self.state.context(name, &table.database, &table.name)
        };
        let mut out = Vec::new();
        let stored = add_sub(
            ty,
            old,
            operator,
            input,
            &ctx,
            &mut out,
            &mut self.diagnostics.warnings,
        )
        .map_err(|e| Failure::store(e, &used.path()))?;
        Ok(match stored {
            Stored::Null => None,
            Stored::NullOrValue if used.column().nullable => None,
            Stored::Value | Stored::NullOrValue => Some(out),
        })
    }
}

/// Whose a row is, by the tenant's column. A text has to come in UTF-8.
fn tenant_of(
    keyed: &KeyedPlan,
    update: &RowUpdate,
    cell: &[u8],
    charset: Option<Charset>,
) -> Outcome<Option<TenantId>> {
    let column = update.assign.first().map(|a| &keyed.plan.columns[a.column]);
    let said = column.and_then(|used| {
        let tenant = used.table.tenant()?;
        Some((tenant, used.table.column(&tenant.column)?.sql_type?))
    });
    let Some((tenant, ty)) = said else {
        return Ok(None);
    };
    let is_text = matches!(ty.kind, Kind::Char { .. } | Kind::VarChar { .. });
    let is_utf8 = matches!(charset, Some(Charset::Utf8mb4 | Charset::Utf8mb3));
    if is_text && !is_utf8 {
        let about =
            "character_set_results, which has to be utf8mb4 where a text says whose a row is";
        return Err(Failure::refused(&errors::CHARACTER_SET, about));
    }
    Ok(tenant_id(keyed.keys.tenants(), tenant, &ty, cell))
}

/// Refuses a row whose cells are another tenant's than it says: somebody has moved the row, past
/// the proxy. Its values would live on with the new tenant when theirs is forgotten.
fn must_be_of_tenant(
    keyed: &KeyedPlan,
    update: &RowUpdate,
    row: &Row,
    packet: &[u8],
) -> Outcome<()> {
    let cells = TextRow::new(packet).skip(update.key.len());
    for (cell, assign) in cells.zip(&update.assign) {
        let used = &keyed.plan.columns[assign.column];
        let protection = used.column().protection.as_ref();
        let is_keyed = protection.is_some_and(|p| p.capabilities.tenant.is_some());
        let Some(cell) = cell.map_err(Failure::Backend)?.filter(|_| is_keyed) else {
            continue;
        };
        if cell_tenant(cell) != row.tenant {
            let about = format!("{used}: a cell of another tenant than its row says");
            return Err(Failure::refused(&errors::TENANT, about));
        }
    }
    Ok(())
}

fn is_fixed_binary(keyed: &KeyedPlan, column: usize) -> bool {
    let ty = keyed.plan.columns[column].column().sql_type;
    ty.is_some_and(|ty| ty.is_fixed_binary())
}
