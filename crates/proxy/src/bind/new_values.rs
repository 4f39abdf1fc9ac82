//! The values that a statement stores, with the tokens that the server has of them.

use onionskin_plan::{NewValue as Assigned, Piece, Purpose, RowUpdate, Slot};

use super::{Binder, Filled};
use crate::catalog::KeyedPlan;
use crate::error::Outcome;

/// A value that a statement stores in a protected column.
pub(crate) struct NewValue {
    /// Index into the plan's columns.
    pub column: usize,
    /// The row of the statement's text, from 0.
    pub row: usize,
    /// It is the order key that the server has. Otherwise it is the equality token.
    pub is_order: bool,
    /// The bytes that the server has for it.
    pub token: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Binder<'_> {
    /// The values of a text that was sent, those that are not NULL.
    pub fn new_values(&mut self, pieces: &[Piece], rows: usize) -> Outcome<Vec<NewValue>> {
        self.mode.lenient_nulls |= rows > 1;
        let mut found = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Rows {
                    row,
                    first_literal,
                    per_row,
                } => {
                    for n in 0..rows {
                        let base = first_literal + n * per_row;
                        for slot in row.iter().filter_map(slot_of) {
                            self.new_value(slot, base, n, &mut found)?;
                        }
                    }
                }
                other => {
                    if let Some(slot) = slot_of(other) {
                        self.new_value(slot, 0, 0, &mut found)?;
                    }
                }
            }
        }
        Ok(found)
    }

    fn new_value(
        &mut self,
        slot: &Slot,
        base: usize,
        row: usize,
        found: &mut Vec<NewValue>,
    ) -> Outcome<()> {
        let token = match self.fill(slot, base, row as u64 + 1)? {
            Filled::Null => return Ok(()),
            Filled::Bytes(bytes) => bytes.to_vec(),
        };
        found.push(NewValue {
            column: slot.column,
            row,
            is_order: slot.purpose == Purpose::StoreOrder,
            token,
            payload: self.buffers.payload.clone(),
        });
        Ok(())
    }
}

/// The slot of a token by which a new value is compared.
fn slot_of(piece: &Piece) -> Option<&Slot> {
    match piece {
        Piece::Slot(slot)
            if matches!(slot.purpose, Purpose::StoreEquality | Purpose::StoreOrder) =>
        {
            Some(slot)
        }
        _ => None,
    }
}

/// What an `UPDATE` that goes row by row assigns to all of them alike, as pieces of a text.
pub(crate) fn assigned_constants(keyed: &KeyedPlan, update: &RowUpdate) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for assign in &update.assign {
        let Assigned::Constant(source) = assign.value else {
            continue;
        };
        let column = keyed.plan.columns[assign.column].column();
        let purposes = [
            column.eq_name().map(|_| Purpose::StoreEquality),
            column.ord_name().map(|_| Purpose::StoreOrder),
        ];
        pieces.extend(purposes.into_iter().flatten().map(|purpose| {
            Piece::Slot(Slot {
                column: assign.column,
                purpose,
                source,
                among: None,
            })
        }));
    }
    pieces
}

/// The columns that a text stores values in, as indexes into the plan's.
pub(crate) fn stored_columns(text: &[Piece]) -> Vec<usize> {
    let mut found = Vec::new();
    for piece in text {
        match piece {
            Piece::Slot(slot) if slot.purpose.stores() => found.push(slot.column),
            Piece::Rows { row, .. } => found.extend(stored_columns(row)),
            _ => {}
        }
    }
    found
}
