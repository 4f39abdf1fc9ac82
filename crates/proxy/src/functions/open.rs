//! Columns of results that a function opens.

use onionskin_plan::errors;
use onionskin_plan::functions::{OPENED, Opening};
use onionskin_value::Charset;
use onionskin_wire::messages::ColumnDefinition;
use onionskin_wire::rows::{
    BinaryRow, BinaryRowWriter, TextRow, begin_text_cell, end_text_cell, put_text_cell,
};
use onionskin_wire::{ColumnFlags, DefinitionForm, ParamType};

use super::evaluate::CellKey;
use crate::error::{Failure, Outcome};
use crate::state::State;

/// An opening with what it needs.
#[derive(Clone)]
pub(crate) struct Ready {
    name: Vec<u8>,
    /// `None`: the name alone is another, or the statement is being prepared.
    key: Option<CellKey>,
    /// It is a call, not only a name.
    opens: bool,
    text: Option<Text>,
}

/// A text that CAST or CONVERT makes of a cell, as results show it.
#[derive(Clone, Copy)]
struct Text {
    collation: u16,
    /// Bytes of a character.
    most: u32,
    /// Bytes of a character that the text may have.
    has: usize,
}

impl Ready {
    pub fn new(opening: &Opening, key: Option<CellKey>, state: &State) -> Outcome<Self> {
        Ok(Ready {
            name: shown_name(&opening.name, state)?,
            key,
            opens: opening.call.is_some(),
            text: match &opening.call {
                Some(call) if call.as_text => Some(Text::of(call.is_short, state)?),
                _ => None,
            },
        })
    }
}

impl Text {
    /// A text in the session's character set of results, if that is UTF-8. A short one has no
    /// character of four bytes.
    fn of(is_short: bool, state: &State) -> Outcome<Text> {
        let most = match state.results_charset {
            Some(Charset::Utf8mb4) => 4,
            Some(Charset::Utf8mb3) => 3,
            _ => {
                let about = "CAST or CONVERT, where character_set_results is not UTF-8";
                return Err(Failure::refused(&errors::FUNCTION, about));
            }
        };
        let connection = state.connection_charset;
        if !matches!(connection, Some(Charset::Utf8mb4 | Charset::Utf8mb3)) {
            let about = "CAST or CONVERT, where character_set_connection is not UTF-8";
            return Err(Failure::refused(&errors::FUNCTION, about));
        }
        let three = is_short || most == 3 || connection != Some(Charset::Utf8mb4);
        Ok(Text {
            collation: state.results_collation,
            most,
            has: if three { 3 } else { 4 },
        })
    }
}

/// Opens columns of one result, in the rows that the client would get without.
pub(crate) struct ResultOpener {
    columns: Vec<Option<Column>>,
    types: Vec<ParamType>,
    row: Vec<u8>,
}

#[derive(Clone)]
struct Column {
    key: CellKey,
    text: Option<Text>,
}

impl ResultOpener {
    /// Finds the columns by their names. Definitions become those that the client sees. `None`: no
    /// column is opened.
    pub(crate) fn new(
        openings: &[Ready],
        definitions: &mut [Vec<u8>],
        form: DefinitionForm,
    ) -> Outcome<Option<ResultOpener>> {
        let mut columns = Vec::with_capacity(definitions.len());
        let mut types = Vec::with_capacity(definitions.len());
        let mut found = 0;
        for packet in definitions.iter_mut() {
            let mut definition =
                ColumnDefinition::decode(packet, form).map_err(Failure::Backend)?;
            types.push(definition.param_type());
            let Some(ready) = number(&definition.name).and_then(|n| openings.get(n)) else {
                columns.push(None);
                continue;
            };
            found += 1;
            columns.push(ready.key.as_ref().map(|key| Column {
                key: key.clone(),
                text: ready.text,
            }));
            definition.name = ready.name.as_slice().into();
            if !definition.org_name.is_empty() {
                definition.org_name = ready.name.as_slice().into();
            }
            if ready.opens {
                definition.flags.remove(ColumnFlags::NOT_NULL);
            }
            if let Some(text) = ready.text {
                definition.charset = text.collation;
                definition.length = definition.length.saturating_mul(text.most);
                definition.flags.remove(ColumnFlags::BINARY);
            }
            let mut shown = Vec::new();
            definition.encode(&mut shown);
            *packet = shown;
        }
        if found != openings.len() {
            let about = "a column that a function opens is not in the result";
            return Err(Failure::refused(&errors::INTERNAL, about));
        }
        let opens = columns.iter().any(Option::is_some);
        Ok(opens.then_some(ResultOpener {
            columns,
            types,
            row: Vec::new(),
        }))
    }

    /// Opens the row that stands in `out` from `start`.
    pub fn row(&mut self, out: &mut Vec<u8>, start: usize, binary: bool) -> Outcome<()> {
        self.row.clear();
        self.row.extend_from_slice(&out[start..]);
        out.truncate(start);
        match binary {
            true => self.binary_row(out),
            false => self.text_row(out),
        }
    }

    fn text_row(&mut self, out: &mut Vec<u8>) -> Outcome<()> {
        let mut row = TextRow::new(&self.row);
        for column in &self.columns {
            let Some(column) = column else {
                out.extend_from_slice(row.raw_cells(1).map_err(Failure::Backend)?);
                continue;
            };
            let cell = row.cell().map_err(Failure::Backend)?;
            match column.open(cell)? {
                None => put_text_cell(out, None),
                Some(bytes) => {
                    let start = begin_text_cell(out);
                    out.extend_from_slice(&bytes);
                    end_text_cell(out, start);
                }
            }
        }
        Ok(())
    }

    fn binary_row(&mut self, out: &mut Vec<u8>) -> Outcome<()> {
        let row = BinaryRow::new(&self.row, &self.types).map_err(Failure::Backend)?;
        let mut writer = BinaryRowWriter::begin(out, self.columns.len());
        for (cell, column) in row.zip(&self.columns) {
            let cell = cell.map_err(Failure::Backend)?;
            let Some(column) = column else {
                writer.raw(out, cell.raw).map_err(Failure::Backend)?;
                continue;
            };
            match column.open(cell.bytes().map_err(Failure::Backend)?)? {
                None => writer.null(out).map_err(Failure::Backend)?,
                Some(bytes) => {
                    writer.start_cell().map_err(Failure::Backend)?;
                    let start = begin_text_cell(out);
                    out.extend_from_slice(&bytes);
                    end_text_cell(out, start);
                }
            }
        }
        writer.finish().map_err(Failure::Backend)
    }
}

impl Column {
    fn open(&self, cell: Option<&[u8]>) -> Outcome<Option<Vec<u8>>> {
        let opened = self.key.apply(cell)?;
        if let (Some(bytes), Some(text)) = (&opened, self.text) {
            let is_text = std::str::from_utf8(bytes)
                .is_ok_and(|opened| opened.chars().all(|c| c.len_utf8() <= text.has));
            if !is_text {
                let about =
                    "a cell that is no such text when it is opened (select it without CAST)";
                return Err(Failure::refused(&errors::FUNCTION, about));
            }
        }
        Ok(opened)
    }
}

/// The name of a column, as servers show it: no longer than they make it, in the character set of
/// results.
fn shown_name(name: &[u8], state: &State) -> Outcome<Vec<u8>> {
    /// Bytes.
    const MOST: usize = 255;
    let is_utf8 = matches!(
        state.client_charset,
        Some(Charset::Utf8mb4 | Charset::Utf8mb3)
    );
    let name = std::str::from_utf8(name).ok();
    let name = name
        .filter(|name| is_utf8 || name.is_ascii())
        .ok_or_else(|| {
            let about = "a column's name beyond ASCII, in this character set";
            Failure::refused(&errors::FUNCTION, about)
        })?;
    let end = (0..=MOST.min(name.len()))
        .rev()
        .find(|at| name.is_char_boundary(*at));
    let end = end.unwrap_or_default();
    Ok(state.shown_name(&name[..end]).into_owned())
}

/// The number in a name of ours.
fn number(name: &[u8]) -> Option<usize> {
    std::str::from_utf8(name.strip_prefix(OPENED.as_bytes())?)
        .ok()?
        .parse()
        .ok()
}
