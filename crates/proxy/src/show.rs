//! How protected tables are shown: `SHOW CREATE TABLE`, `DESCRIBE`, `SHOW INDEX`, and the field
//! list that old clients ask for.

use std::borrow::Cow;
use std::sync::Arc;

use onionskin_plan::errors::NotUnderstood;
use onionskin_plan::{ColumnUse, Piece, ResultItem, Show, errors};
use onionskin_schema::{
    Dialect, Table, folded, show_columns_row, show_create_table, show_create_view, show_index_row,
};
use onionskin_value::Charset;
use onionskin_wire::messages::ColumnDefinition;
use onionskin_wire::rows::{BinaryRowWriter, TextRow, put_text_cell};
use onionskin_wire::{BinaryValue, ColumnFlags, ParamType, Step, WireError};

use crate::bind::Values;
use crate::error::{Failure, Outcome};
use crate::open::{logical_definition, names_physical};
use crate::session::{Execution, Session};

/// In the text of a table with protected columns.
const PROTECTED: &str = "COMMENT 'onionskin:";

type Row<'a> = Vec<Option<Cow<'a, str>>>;

impl Session {
    /// Runs a `SHOW` and writes its rows with logical names. The server gets a text, of a prepared
    /// one, too.
    pub fn show(
        &mut self,
        execution: &Execution,
        what: &Show,
        text: &[Piece],
        table: &Arc<Table>,
    ) -> Outcome<()> {
        let binary = execution.is_binary();
        let values = execution.values;
        let mut types = Vec::new();
        let (like, only) = match what {
            Show::Columns { like, column, .. } => {
                let pattern = like.map(|i| self.pattern(values, i)).transpose()?;
                (pattern, column.clone())
            }
            _ => (None, None),
        };
        // of a row of SHOW COLUMNS and of SHOW INDEX, the cell with the column's name
        let (named, name_at) = match what {
            Show::Columns { named, .. } => (named.as_slice(), 0),
            Show::Index { named } => (named.as_slice(), 4),
            _ => (&[][..], 0),
        };
        let mut names = Vec::new();
        for &literal in named {
            names.push(folded(&self.pattern(values, literal)?));
        }
        let question = self.send_text(execution, text, false)?;
        self.server.begin(question)?;
        let dialect = self.state.dialect();
        while !self.server.tracker.is_complete() {
            let step = self.server.step()?;
            match step {
                Step::Err => return Err(self.server.error()),
                Step::Row => {
                    let packet = self.server.payload().to_vec();
                    let Some(mut cells) = logical_row(&packet, what, table, dialect)? else {
                        continue;
                    };
                    if let (Show::CreateView, Some(Some(text))) = (what, cells.get_mut(1)) {
                        *text = Cow::Owned(self.show_constants(text));
                    }
                    let name = cells.get(name_at).and_then(|c| c.as_deref());
                    let listed = |name: &str| names.contains(&folded(name));
                    if !names.is_empty() && !name.is_some_and(listed) {
                        continue;
                    }
                    if let Some(name) = cells.first().and_then(|c| c.as_deref()) {
                        let wanted = like.as_deref().is_none_or(|p| like_matches(p, name))
                            && only.as_deref().is_none_or(|o| o.eq_ignore_ascii_case(name));
                        if matches!(what, Show::Columns { .. }) && !wanted {
                            continue;
                        }
                    }
                    let is_utf8 = matches!(
                        self.state.results_charset,
                        Some(Charset::Utf8mb4 | Charset::Utf8mb3)
                    );
                    if !is_utf8 && !cells.iter().flatten().all(|c| c.is_ascii()) {
                        // names and texts are kept in UTF-8
                        return Err(Failure::refused(&errors::CHARACTER_SET, "SHOW"));
                    }
                    let out = self.client.begin_payload();
                    if binary {
                        put_binary_row(&cells, &types, out)?;
                    } else {
                        for cell in &cells {
                            put_text_cell(out, cell.as_deref().map(str::as_bytes));
                        }
                    }
                    self.client.end_payload().map_err(Failure::Client)?;
                }
                Step::Ok { .. } | Step::EndOfRows { .. } | Step::EofAfterColumns { .. } => {
                    self.write_end(step)?;
                }
                Step::LocalInfileRequest => {
                    return Err(Failure::OutOfStep("a request for a file"));
                }
                _ => {
                    let payload = self.server.connection.last_payload();
                    if step == Step::ColumnDef && binary {
                        let definition = ColumnDefinition::decode(payload, self.server.form)
                            .map_err(Failure::Backend)?;
                        types.push(match definition.flags.contains(ColumnFlags::UNSIGNED) {
                            true => ParamType::unsigned(definition.column_type),
                            false => ParamType::new(definition.column_type),
                        });
                    }
                    self.client
                        .write_payload(payload)
                        .map_err(Failure::Client)?;
                }
            }
        }
        Ok(())
    }

    fn pattern(&self, values: Values, literal: usize) -> Outcome<String> {
        let mut scratch = Vec::new();
        let input = values.input(literal, false, &self.state, &mut scratch, "LIKE")?;
        match input {
            onionskin_value::Input::Text { bytes, charset } => {
                let text = charset
                    .to_utf8(bytes)
                    .and_then(|b| String::from_utf8(b).ok());
                text.ok_or_else(|| Failure::refused(&errors::CHARACTER_SET, "LIKE"))
            }
            _ => Err(NotUnderstood::Clause("LIKE").into()),
        }
    }

    /// COM_FIELD_LIST of a protected table.
    pub fn show_field_list(&mut self, command: &[u8], table: &Arc<Table>) -> Outcome<()> {
        let question = self.server.put_command(command)?;
        self.server.flush()?;
        self.server.begin(question)?;
        while !self.server.tracker.is_complete() {
            let step = self.server.step()?;
            match step {
                Step::Err => return Err(self.server.error()),
                Step::ColumnDef => {
                    let packet = self.server.payload().to_vec();
                    let definition = ColumnDefinition::decode(&packet, self.server.form)
                        .map_err(Failure::Backend)?;
                    let name = String::from_utf8_lossy(&definition.org_name).into_owned();
                    if !names_physical(&packet) && table.owner_of(&name).is_none() {
                        self.write(&packet)?;
                        continue;
                    }
                    let Some(index) = table.columns.iter().position(|c| {
                        c.enc_name()
                            .is_some_and(|enc| enc.eq_ignore_ascii_case(&name))
                    }) else {
                        continue;
                    };
                    let used = ColumnUse {
                        table: Arc::clone(table),
                        index,
                    };
                    let item = ResultItem {
                        name: Some(used.column().name.clone()),
                        ..ResultItem::plain()
                    };
                    let shown = logical_definition(&definition, &item, &used, &self.state)?;
                    self.write(&shown)?;
                }
                Step::EndOfRows { .. } | Step::EofAfterColumns { .. } | Step::Ok { .. } => {
                    self.write_end(step)?;
                }
                _ => return Err(Failure::Backend(WireError::Malformed("not a definition"))),
            }
        }
        Ok(())
    }
}

/// A row of texts and whole numbers in the binary protocol.
fn put_binary_row(cells: &Row, types: &[ParamType], out: &mut Vec<u8>) -> Outcome<()> {
    let unclear = || Failure::refused(&errors::INTERNAL, "a row of SHOW");
    if cells.len() != types.len() {
        return Err(unclear());
    }
    let mut writer = BinaryRowWriter::begin(out, cells.len());
    for (cell, ty) in cells.iter().zip(types) {
        let value = match cell.as_deref() {
            None => BinaryValue::Null,
            Some(text) if ty.kind.is_length_encoded() => BinaryValue::Bytes(text.as_bytes()),
            Some(text) if ty.unsigned => BinaryValue::UInt(text.parse().map_err(|_| unclear())?),
            Some(text) => BinaryValue::Int(text.parse().map_err(|_| unclear())?),
        };
        writer.value(out, *ty, &value).map_err(|_| unclear())?;
    }
    writer.finish().map_err(|_| unclear())
}

/// A row as the logical table's server would show it; `None` for rows that it would not show.
fn logical_row<'p>(
    packet: &'p [u8],
    what: &Show,
    table: &Table,
    dialect: Dialect,
) -> Outcome<Option<Row<'p>>> {
    let mut row: Row = Vec::new();
    for cell in TextRow::new(packet) {
        let cell = cell.map_err(Failure::Backend)?;
        row.push(cell.map(String::from_utf8_lossy));
    }
    Ok(match what {
        Show::Columns { .. } => show_columns_row(row, table, dialect),
        Show::Index { .. } => show_index_row(row, table),
        // the answer for a table, which has no text to change
        Show::CreateView if row.len() == 2 => {
            let text = row.get(1).and_then(|c| c.as_deref()).unwrap_or_default();
            match text.contains(PROTECTED) {
                // the definitions of its columns are with the client
                true => return Err(Failure::refused(&errors::STALE, "")),
                false => Some(row),
            }
        }
        Show::CreateView => {
            let text = row.get(1).and_then(|c| c.as_deref()).unwrap_or_default();
            let logical = match show_create_view(text, table) {
                Ok(logical) => logical,
                Err(_) if !table.is_protected() => text.to_owned(),
                Err(e) => return Err(Failure::refused(&errors::DAMAGED, e.to_string())),
            };
            if let Some(cell) = row.get_mut(1) {
                *cell = Some(Cow::Owned(logical));
            }
            Some(row)
        }
        Show::CreateTable => {
            let text = row.get(1).and_then(|c| c.as_deref()).unwrap_or_default();
            let logical = show_create_table(text, table, dialect)
                .map_err(|e| Failure::refused(&errors::DAMAGED, e.to_string()))?;
            if let Some(cell) = row.get_mut(1) {
                *cell = Some(Cow::Owned(logical));
            }
            Some(row)
        }
    })
}

/// `LIKE` on a column's name: `%`, `_`, a backslash before either; letter case ignored.
fn like_matches(pattern: &str, name: &str) -> bool {
    let lower = |s: &str| folded(s).chars().collect::<Vec<_>>();
    let (pattern, name) = (lower(pattern), lower(name));
    // what is tried again if it does not go on: the pattern behind the last `%`, one character
    // later in the name
    let (mut p, mut n, mut again) = (0, 0, None);
    loop {
        match (pattern.get(p), name.get(n)) {
            (Some('%'), _) => {
                p += 1;
                again = Some((p, n));
                continue;
            }
            (None, None) => return true,
            (Some('_'), Some(_)) => {
                (p, n) = (p + 1, n + 1);
                continue;
            }
            // behind a backslash a sign stands for itself
            (Some('\\'), Some(c)) if pattern.get(p + 1) == Some(c) => {
                (p, n) = (p + 2, n + 1);
                continue;
            }
            (Some('\\'), _) if p + 1 < pattern.len() => {}
            (Some(wanted), Some(c)) if wanted == c => {
                (p, n) = (p + 1, n + 1);
                continue;
            }
            _ => {}
        }
        match again {
            Some((behind, from)) if from < name.len() => {
                again = Some((behind, from + 1));
                (p, n) = (behind, from + 1);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::like_matches;

    #[test]
    fn patterns_match_names() {
        assert!(like_matches("k%", "K_1"));
        assert!(like_matches("a\\_b", "a_b"));
        assert!(!like_matches("a\\_b", "axb"));
        assert!(!like_matches("_", ""));
        assert!(like_matches("%a%b_", "xaabbc"));
        assert!(!like_matches("%a%b_", "xaab"));
        assert!(like_matches("a%\\", "ab\\"));
        let long = "a".repeat(64);
        assert!(!like_matches(&format!("{}b", "%a".repeat(40)), &long));
        assert!(like_matches(&"%".repeat(1_000_000), &long));
    }
}
