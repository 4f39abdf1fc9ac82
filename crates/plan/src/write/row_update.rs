//! `UPDATE` at tier 2: the rows' keys and cells are read, new values computed, what changed
//! written.

use onionskin_schema::{Table, same_name};
use onionskin_value::Family;
use sqlparser::ast::{BinaryOperator, Expr, TableFactor};

use super::update::{Assigned, is_update_modifier};
use crate::errors::{self, NotUnderstood};
use crate::lex::{LiteralKind, TokenKind};
use crate::plan::{Action, ColumnUse, Piece, RowAssign, RowFilter, RowUpdate, Text};
use crate::planner::{Planned, Planner, TextBuilder, quoted, refuse};
use crate::scope::Scope;

impl Planner<'_> {
    /// Whether a condition compares every column of the primary key with a constant.
    pub(super) fn pins_key(&self, condition: &Expr, column: &ColumnUse, scope: &Scope) -> bool {
        fn conjuncts<'e>(e: &'e Expr, out: &mut Vec<&'e Expr>) {
            match e {
                Expr::Nested(inner) => conjuncts(inner, out),
                Expr::BinaryOp {
                    left,
                    op: BinaryOperator::And,
                    right,
                } => {
                    conjuncts(left, out);
                    conjuncts(right, out);
                }
                other => out.push(other),
            }
        }
        if self.reads_otherwise(0..self.tokens.len()) {
            return false;
        }
        let mut parts = Vec::new();
        conjuncts(condition, &mut parts);
        let mut keys = column.table.primary_key().peekable();
        keys.peek().is_some()
            && keys.all(|key| {
                parts.iter().any(|part| {
                    let Expr::BinaryOp {
                        left,
                        op: BinaryOperator::Eq,
                        right,
                    } = part
                    else {
                        return false;
                    };
                    let named = |e: &Expr| match e {
                        Expr::Identifier(i) => same_name(&i.value, &key.name),
                        Expr::CompoundIdentifier(p) => {
                            p.last().is_some_and(|i| same_name(&i.value, &key.name))
                        }
                        _ => false,
                    };
                    let one_table = scope.sources.len() == 1;
                    one_table
                        && ((named(left) && self.constant(right).is_some())
                            || (named(right) && self.constant(left).is_some()))
                })
            })
    }

    /// MySQL changes no table that a subquery of the statement reads (1093). It would not notice
    /// where the proxy reads the rows first and changes them then.
    pub(super) fn check_own_reads(&self, table: &Table) -> Planned<()> {
        let sql = self.sql();
        let mut names = (0..self.tokens.len()).filter(|&at| {
            let name = self.name_of(&self.tokens[at]);
            // `x.i` in a subquery is of the row that is changed
            let is_qualifier = self.tokens.get(at + 1).is_some_and(|t| t.is(b'.'));
            !is_qualifier && name.is_some_and(|name| same_name(&name, &table.name))
        });
        let first_select = self.tokens.iter().position(|t| t.is_word(sql, "select"));
        // columns of the name are refused as well
        let is_read = first_select.is_some_and(|select| names.any(|at| at > select));
        match is_read && self.request.settings.family == Family::MySql {
            true => NotUnderstood::ChangedAndRead.refuse(),
            false => Ok(()),
        }
    }

    /// Plans an UPDATE row by row. `single`: the condition leaves one row at most. `filter`: the
    /// condition that the proxy decides, and the texts of what it fetches for that.
    pub(super) fn row_update(
        &mut self,
        relation: &TableFactor,
        table: &Table,
        assigned: Assigned,
        single: bool,
        filter: Option<(RowFilter, Vec<Text>)>,
    ) -> Planned<Action> {
        self.check_own_reads(table)?;
        let mut key = self.key_columns(table)?;
        let mut tenant = None;
        if let Some(found) = table.tenant() {
            // it is read with the key, and the row is written if it still has it
            tenant = Some(key.len());
            key.push(quoted(&found.column));
        }
        self.check_key_stays(table, &assigned)?;
        self.check_plain_kinds(table, &assigned)?;
        let target = self.row_target(relation)?;
        self.check_judged()?;

        let mut select = TextBuilder::default();
        select.sql(b"SELECT ");
        select.sql(key.join(",").as_bytes());
        let mut assign = Vec::new();
        for (column, value, _) in &assigned.protected {
            select.sql(format!(",{}", quoted(column.sealed())).as_bytes());
            assign.push(RowAssign {
                column: self.column_index(column),
                value: *value,
            });
        }
        let filter = filter.map(|(filter, texts)| {
            for text in texts {
                select.sql(b",");
                text.into_iter().for_each(|piece| select.piece(piece));
            }
            filter
        });
        let hint = self.hint_for(table)?;
        select.sql(format!(" FROM {target}{hint} ").as_bytes());
        let sql = self.sql();
        let tail = assigned.tokens.last().map_or(0, |p| p.end);
        let end = self.tokens.iter().rposition(|t| !t.is(b';'));
        let end = end.map_or(0, |i| i + 1);
        let mut single_row = None;
        if tail < end {
            let range = self.tokens[tail].start..self.tokens[end - 1].end;
            let condition = self.render(range)?;
            for piece in &condition {
                select.piece(piece.clone());
            }
            single_row = (single && tenant.is_none()).then_some(condition);
        }
        let behind = self.tokens.get(tail..end).unwrap_or_default();
        let ordered = behind.iter().any(|t| t.is_word(sql, "order"));
        Ok(Action::Update(Box::new(RowUpdate {
            target,
            select: select.finish(),
            ordered,
            single_row,
            key,
            tenant,
            assign,
            plain: self.plain_assignments(&assigned)?,
            filter,
        })))
    }

    /// Refuses to assign a column of the key by which rows are found again.
    fn check_key_stays(&self, table: &Table, assigned: &Assigned) -> Planned<()> {
        let is_key = |name: &str| table.row_key().any(|c| same_name(&c.name, name));
        for (column, ..) in &assigned.protected {
            if is_key(&column.column().name) {
                return refuse(&errors::NEEDS_KEY, column.path());
            }
        }
        for i in &assigned.plain {
            let tokens = &assigned.tokens[*i];
            let first = self.token_at(self.bytes_of(tokens).start)?;
            let equals = self.value_tokens(tokens)?.start - 1;
            if let Some(name) = self.name_of(&self.tokens[equals - 1])
                && equals > first
                && is_key(&name)
            {
                return refuse(&errors::NEEDS_KEY, name);
            }
        }
        Ok(())
    }

    /// Refuses what a plain UUID, INET6 or INET4 may not take by its kind. That is an error of the
    /// server's whatever rows there are, and without a row it is not asked.
    fn check_plain_kinds(&self, table: &Table, assigned: &Assigned) -> Planned<()> {
        let is_one = |name: &str| {
            let ty = table.column(name).and_then(|column| column.sql_type);
            ty.is_some_and(|ty| ty.is_fixed_binary())
        };
        for i in &assigned.plain {
            let value = self.value_tokens(&assigned.tokens[*i])?;
            let name = self.name_of(&self.tokens[value.start.saturating_sub(2)]);
            let fits = match self.tokens.get(value).unwrap_or_default() {
                [only] => {
                    matches!(only.kind, TokenKind::Literal(LiteralKind::String))
                        || only.is_word(self.sql(), "null")
                        || only.is_word(self.sql(), "default")
                }
                _ => false,
            };
            if !fits && name.is_some_and(|name| is_one(&name)) {
                let what = "a plain UUID, INET6 or INET4 that is given no text";
                return NotUnderstood::Beside(what, "rows that are changed one by one").refuse();
            }
        }
        Ok(())
    }

    /// The table of an UPDATE as the statement names it, with its alias.
    fn row_target(&self, relation: &TableFactor) -> Planned<String> {
        if !matches!(relation, TableFactor::Table { .. }) {
            return NotUnderstood::PartOf("the target", "UPDATE").refuse();
        }
        let sql = self.sql();
        let first = self.tokens.get(1);
        if first.is_some_and(|t| is_update_modifier(sql, t)) {
            return NotUnderstood::EitherClause("UPDATE IGNORE", "LOW_PRIORITY").refuse();
        }
        let set = self.tokens.iter().position(|t| t.is_word(sql, "set"));
        let begin = first.map_or(0, |t| t.start);
        let end = self.tokens[set.unwrap_or(0)].start;
        match self.original(begin..end).as_slice() {
            [Piece::Sql(text)] => Ok(String::from_utf8_lossy(text).trim().to_string()),
            _ => NotUnderstood::PartOf("the target", "UPDATE").refuse(),
        }
    }

    /// The assignments to plain columns, which the server makes beside.
    fn plain_assignments(&mut self, assigned: &Assigned) -> Planned<Text> {
        let mut text = TextBuilder::default();
        for (n, i) in assigned.plain.iter().enumerate() {
            if n > 0 {
                text.sql(b", ");
            }
            let range = self.bytes_of(&assigned.tokens[*i]);
            for piece in self.render(range)? {
                text.piece(piece);
            }
        }
        Ok(text.finish())
    }
}
