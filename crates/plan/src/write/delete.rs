//! `DELETE`: by the server where tokens decide, else by the keys of the rows that the proxy picks.

use sqlparser::ast::{Delete, FromTable, ObjectName, TableFactor, TableWithJoins};

use crate::errors::{self, NotUnderstood};
use crate::hidden::index_hint;
use crate::plan::{Action, Piece, RowDelete, RowFilter, Text};
use crate::planner::{Planned, Planner, TextBuilder, refuse};
use crate::scope::{Scope, Source};

impl Planner<'_> {
    pub(crate) fn delete(&mut self, delete: &Delete) -> Planned<Action> {
        let Delete {
            delete_token: _,
            optimizer_hints: _,
            tables,
            from,
            using,
            selection,
            returning,
            output,
            order_by,
            limit,
        } = delete;
        if output.is_some() || using.is_some() {
            return NotUnderstood::ClauseOf("DELETE").refuse();
        }
        for name in tables {
            self.judge_name(name)?;
        }
        let (FromTable::WithFromKeyword(list) | FromTable::WithoutKeyword(list)) = from;
        self.takes_no_hints = tables.is_empty();
        let mut scope = Scope::inside(None);
        for item in list {
            self.factor(&item.relation, &mut scope, None)?;
            for join in &item.joins {
                self.factor(&join.relation, &mut scope, None)?;
            }
        }
        for item in list {
            self.joins(item, &scope)?;
        }
        let ordered = !order_by.is_empty() || limit.is_some();
        let takes_no_hints = std::mem::take(&mut self.takes_no_hints);
        let is_hidden = |source: &Source| {
            let table = source.table.as_ref().filter(|t| index_hint(t).is_some());
            table.map(|table| format!("{}.{}", table.database, table.name))
        };
        // which rows are met first cannot be kept from telling
        if takes_no_hints
            && (ordered || returning.is_some())
            && let Some(table) = scope.sources.iter().find_map(is_hidden)
        {
            return refuse(
                &errors::MASKED,
                format!("{table} in a DELETE with an order"),
            );
        }
        let filter = self.row_condition(selection.as_ref(), &scope, ordered)?;
        for key in order_by {
            self.order_by_key(&key.expr, &scope)?;
        }
        if let Some(limit) = limit
            && self.constant(limit).is_none()
        {
            return NotUnderstood::Clause("LIMIT").refuse();
        }
        let result = match returning {
            None => None,
            Some(list) => {
                let tokens = self.returning_tokens()?;
                Some(self.returned(list, tokens, &scope)?)
            }
        };
        if let Some((filter, texts)) = filter {
            if result.is_some() {
                return refuse(
                    &errors::CANDIDATES,
                    "RETURNING of rows that the proxy picks",
                );
            }
            return self.row_delete(list, tables, &scope, filter, texts);
        }
        Ok(Action::Server {
            text: self.assemble()?,
            result,
        })
    }

    /// Tier 2: `SELECT key…, cells… FROM t WHERE candidates`, then a deletion by keys.
    fn row_delete(
        &mut self,
        list: &[TableWithJoins],
        tables: &[ObjectName],
        scope: &Scope,
        filter: RowFilter,
        texts: Vec<Text>,
    ) -> Planned<Action> {
        let ([item], [source], []) = (list, scope.sources.as_slice(), tables) else {
            return refuse(&errors::CANDIDATES, "a DELETE of several tables");
        };
        let (TableFactor::Table { alias: None, .. }, Some(table)) =
            (&item.relation, source.table.clone())
        else {
            return refuse(&errors::CANDIDATES, "a DELETE with an alias");
        };
        let sql = self.sql();
        let plain = self.tokens.get(1).is_some_and(|t| t.is_word(sql, "from"));
        if !plain {
            return NotUnderstood::PartOf("a modifier", "DELETE").refuse();
        }
        self.check_own_reads(&table)?;
        let key = self.key_columns(&table)?;
        self.check_judged()?;
        let place = self.where_tokens();
        let target = match self
            .original(self.tokens[2].start..self.tokens[place.start - 1].start)
            .as_slice()
        {
            [Piece::Sql(text)] => String::from_utf8_lossy(text).trim().to_string(),
            _ => return NotUnderstood::PartOf("the target", "DELETE").refuse(),
        };
        let mut select = TextBuilder::default();
        select.sql(b"SELECT ");
        select.sql(key.join(",").as_bytes());
        for text in texts {
            select.sql(b",");
            text.into_iter().for_each(|piece| select.piece(piece));
        }
        let hint = self.hint_for(&table)?;
        select.sql(format!(" FROM {target}{hint} WHERE ").as_bytes());
        let range = self.bytes_of(&place);
        for piece in self.render(range)? {
            select.piece(piece);
        }
        Ok(Action::Delete(Box::new(RowDelete {
            target,
            select: select.finish(),
            key,
            filter,
        })))
    }
}
