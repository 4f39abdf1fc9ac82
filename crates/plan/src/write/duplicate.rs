//! `ON DUPLICATE KEY UPDATE`: constants, and `VALUES(k)` or `new.k` as the new value of `k`.

use std::sync::Arc;

use onionskin_schema::Table;
use sqlparser::ast::{Assignment, Expr};

use super::{Target, is_default, physical};
use crate::errors::{self, Refusal};
use crate::plan::{ColumnUse, Purpose};
use crate::planner::{Planned, Planner, quoted, refuse};
use crate::scope::{self, Scope};

impl Planner<'_> {
    pub(super) fn on_duplicate(
        &mut self,
        list: &[Assignment],
        scope: &Scope,
        table: &Arc<Table>,
        alias: Option<&str>,
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
        if parts.len() != list.len() {
            return refuse(&errors::NOT_UNDERSTOOD, "ON DUPLICATE KEY UPDATE");
        }
        for (assignment, tokens) in list.iter().zip(&parts) {
            let name = self.assigned_name(assignment)?;
            let column = match self.target(&name, table)? {
                Target::Protected(column) => column,
                Target::Plain(_) => {
                    self.duplicate_value(&assignment.value, scope, alias)?;
                    continue;
                }
            };
            let exact = column
                .column()
                .sql_type
                .as_ref()
                .is_some_and(|t| t.weight_is_exact());
            let range = self.bytes_of(tokens);
            if let Some(new_row) = self.new_row(&assignment.value, &column, alias)? {
                let token = column.column().equality_column().map(|(n, _)| quoted(n));
                let mut text = String::new();
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
                self.edit_sql(range, text);
                continue;
            }
            let value = self.value_tokens(tokens)?;
            let source = self
                .cell_source(&value, 0)
                .ok_or_else(|| Refusal::new(&errors::NOT_CONSTANT, column.path()))?;
            let text = self.assign_text(&column, source, exact);
            self.edit(range, text);
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
