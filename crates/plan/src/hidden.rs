//! Indexes that the statements of an account must not read by ([`Table::hidden_indexes`]): the
//! server is told so behind each name of their table.

use onionskin_schema::Table;
use sqlparser::ast::{Ident, ObjectName};

use crate::errors;
use crate::lex::TokenKind;
use crate::planner::{Planned, Planner, refuse};
use crate::text::quoted;

/// The index that rows lie in the order of: a server cannot read without it.
pub const PRIMARY: &str = "PRIMARY";

/// ` IGNORE INDEX (…)`, which stands behind a table's name and alias; `None` if nothing is hidden.
pub fn index_hint(table: &Table) -> Option<String> {
    if table.hidden_indexes.is_empty() {
        return None;
    }
    let names: Vec<String> = table.hidden_indexes.iter().map(|n| quoted(n)).collect();
    Some(format!(" IGNORE INDEX ({})", names.join(",")))
}

impl Planner<'_> {
    /// The hint for a table; nothing if no index of it is hidden. It is refused where no hint would
    /// be enough.
    pub(crate) fn hint_for(&self, table: &Table) -> Planned<String> {
        let Some(hint) = index_hint(table) else {
            return Ok(String::new());
        };
        let about = |what: &str| format!("{}.{}, with {what}", table.database, table.name);
        // one that the client writes goes before this one
        if self.tells_of_indexes() {
            return refuse(&errors::MASKED, about("a hint"));
        }
        if table.hidden_indexes.iter().any(|name| name == PRIMARY) {
            return refuse(&errors::MASKED, about("a masked primary key"));
        }
        Ok(hint)
    }

    /// Writes the hint behind a table in FROM, or in UPDATE.
    pub(crate) fn hide_indexes(
        &mut self,
        table: &Table,
        name: &ObjectName,
        alias: Option<&Ident>,
        has_partitions: bool,
    ) -> Planned<()> {
        if self.takes_no_hints || index_hint(table).is_none() {
            return Ok(());
        }
        let hint = self.hint_for(table)?;
        if has_partitions {
            let about = format!("{}.{}, with PARTITION", table.database, table.name);
            return refuse(&errors::MASKED, about);
        }
        let last = match alias {
            Some(alias) => Some(alias),
            None => name.0.last().and_then(|part| part.as_ident()),
        };
        let Some(last) = last else {
            return refuse(&errors::INTERNAL, "a table without a name");
        };
        let end = self.tokens[self.token_at(self.offset(last.span))?].end;
        self.edit_sql(end..end, hint);
        Ok(())
    }

    /// Whether the statement has hints for the optimizer, of either form.
    fn tells_of_indexes(&self) -> bool {
        let mut places = 0..self.tokens.len();
        places.any(|at| self.begins_index_hint(at))
            || self.tokens.iter().any(|t| t.kind == TokenKind::Hint)
    }
}
