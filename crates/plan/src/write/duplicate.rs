//! `ON DUPLICATE KEY UPDATE`: constants, and `VALUES(k)` or `new.k` as the new value of `k`.

use std::sync::Arc;

use onionskin_schema::Table;
use sqlparser::ast::{Assignment, Expr};

use super::update::assigned_twice;
use super::{Target, is_default, physical};
use crate::errors::{self, Refusal};
use crate::plan::{ColumnUse, Piece, Purpose, Slot, Source, Upsert};
use crate::planner::{Planned, Planner, quoted, refuse};
use crate::scope::{self, Scope};

impl Planner<'_> {
    pub(crate) fn on_duplicate(
        &mut self,
        list: &[Assignment],
        scope: &Scope,
        table: &Arc<Table>,
        alias: Option<&str>,
        upsert: &mut Upsert,
    ) -> Planned<()> {
        let from = self
            .tokens
            .iter()
            .rposition(|t| t.is_word(self.sql(), "duplicate"))
            .ok_or_else(|| Refusal::new(&errors::NOT_UNDERSTOOD, "ON DUPLICATE KEY UPDATE"))?;
        let end = self
            .tokens
            .iter()
            .rposition(|t| !t.is(b';'))
            .map_or(0, |i| i + 1);
        let parts = self.split_commas(from + 3..end);
        if parts.len() != list.len() || from < 2 {
            return refuse(&errors::NOT_UNDERSTOOD, "ON DUPLICATE KEY UPDATE");
        }
        let (mut has_constants, mut assigned) = (false, Vec::new());
        for (assignment, tokens) in list.iter().zip(&parts) {
            let name = self.assigned_name(assignment)?;
            let column = match self.target(&name, table)? {
                Target::Protected(column) => column,
                Target::Plain(_) => {
                    if is_default(&assignment.value) {
                        self.note_assigned_default(table, &name);
                    }
                    self.duplicate_value(&assignment.value, scope, alias)?;
                    continue;
                }
            };
            if assigned.contains(&column.index) {
                return refuse(&errors::NOT_UNDERSTOOD, assigned_twice(&column));
            }
            assigned.push(column.index);
            let exact = column
                .column()
                .sql_type
                .as_ref()
                .is_some_and(|t| t.weight_is_exact())
                && column.column().equality_column().is_some();
            let range = self.bytes_of(tokens);
            if let Some(new_row) = self.new_row(&assignment.value, &column, alias)? {
                let index = self.column_index(&column);
                let is_left_out = |piece: &Piece| matches!(piece, Piece::Slot(slot) if slot.column == index && matches!(slot.source, Source::Omitted { .. }));
                let mut given = upsert.rows.iter().flatten().flat_map(|(_, text)| text);
                if column.column().is_required() && given.any(is_left_out) {
                    // servers take the column for given then, and store what they store without strict mode
                    return refuse(&errors::VALUE, column.path());
                }
                let token = column.column().equality_column().map(|(n, _)| quoted(n));
                let mut text = String::new();
                let mut calls = 0;
                let mut new_row = |name: &str| {
                    calls += 1;
                    new_row(name)
                };
                for (i, (name, purpose)) in physical(&column).into_iter().enumerate() {
                    let name = quoted(name);
                    if i > 0 {
                        text.push_str(", ");
                    }
                    match (&token, purpose) {
                        (Some(token), Purpose::Seal) if exact => text.push_str(&format!(
                            "{name} = IF({token} <=> {}, {name}, {})",
                            new_row(token),
                            new_row(&name)
                        )),
                        _ => text.push_str(&format!("{name} = {}", new_row(&name))),
                    }
                }
                if matches!(assignment.value, Expr::Function(_)) {
                    self.surplus_values += calls - 1;
                }
                self.edit_sql(range, text);
                if !exact {
                    upsert.columns.push(self.column_index(&column));
                }
                continue;
            }
            let value = self.value_tokens(tokens)?;
            let source = self
                .cell_source(&value, 0)
                .or_else(|| self.present_call(&value, &column))
                .ok_or_else(|| Refusal::new(&errors::NOT_CONSTANT, column.path()))?;
            let source = self.settled(&column, source);
            has_constants = true;
            let mut text = self.assign_text(&column, source, exact);
            if !exact {
                // the text begins with the assignment of the cell
                let name = quoted(column.sealed());
                let slot = Slot {
                    column: self.column_index(&column),
                    purpose: Purpose::Seal,
                    source,
                    among: None,
                };
                let kept = Piece::Slot(Slot {
                    purpose: Purpose::Kept,
                    ..slot
                });
                let head = [
                    Piece::Sql(format!("{name} = IF(LOCATE(HEX({name}), ").into_bytes()),
                    kept,
                    Piece::Sql(format!(") > 0, {name}, ").into_bytes()),
                    Piece::Slot(slot),
                    Piece::Sql(b")".to_vec()),
                ];
                text.splice(..2, head);
                upsert.constants.push(slot);
            }
            self.edit(range, text);
        }
        self.note_changes(table, |index| assigned.contains(&index));
        self.note_own_times(table, |_| false);
        if has_constants {
            self.insert_only = Some(self.render(0..self.tokens[from - 2].end)?);
        }
        Ok(())
    }

    /// A plain column's new value; the new row's plain columns may be read in it.
    fn duplicate_value(&mut self, e: &Expr, scope: &Scope, alias: Option<&str>) -> Planned<()> {
        if is_default(e) {
            return Ok(());
        }
        let Some(alias) = alias else {
            return self.scan(e, scope);
        };
        let mut with_alias = Scope::inside(None);
        with_alias.sources = scope.sources.clone();
        for source in &scope.sources {
            with_alias.sources.push(scope::Source {
                name: alias.to_string(),
                ..source.clone()
            });
        }
        // bare names mean the old row's columns, which the first source resolves
        if let Expr::CompoundIdentifier(_) = e {
            self.scan(e, &with_alias)
        } else {
            self.scan(e, scope)
        }
    }

    /// `VALUES(k)` or `alias.k` as the new value of `k` itself: how to name the new row's
    /// physical columns.
    #[allow(clippy::type_complexity)] // a formatter of one argument
    fn new_row(
        &mut self,
        e: &Expr,
        column: &ColumnUse,
        alias: Option<&str>,
    ) -> Planned<Option<Box<dyn Fn(&str) -> String>>> {
        let named =
            |ident: &sqlparser::ast::Ident| ident.value.eq_ignore_ascii_case(&column.column().name);
        match e {
            Expr::Function(f) if matches!(Self::function_name(f).as_str(), "values" | "value") => {
                match Self::single_argument(f) {
                    Some((Expr::Identifier(ident), false)) if named(ident) => {
                        let call = Self::function_name(f);
                        Ok(Some(Box::new(move |name| format!("{call}({name})"))))
                    }
                    _ => refuse(&errors::NOT_CONSTANT, column.path()),
                }
            }
            Expr::CompoundIdentifier(parts) => match (parts.as_slice(), alias) {
                ([row, ident], Some(alias))
                    if row.value.eq_ignore_ascii_case(alias.trim_matches('`')) && named(ident) =>
                {
                    let row = quoted(&row.value);
                    Ok(Some(Box::new(move |name| format!("{row}.{name}"))))
                }
                _ => refuse(&errors::NOT_CONSTANT, column.path()),
            },
            _ => Ok(None),
        }
    }
}
