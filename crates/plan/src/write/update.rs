//! `UPDATE`: by the server where assigned tokens show what changes, else row by row.

use std::ops::Range;
use std::sync::Arc;

use sqlparser::ast::{AssignmentTarget, BinaryOperator, Expr, Update};

use super::{is_default, view};
use crate::errors;
use crate::plan::{Action, ColumnUse, NewValue, Text};
use crate::planner::{Planned, Planner, TextBuilder, refuse};
use crate::scope::{self, Scope};

impl Planner<'_> {
    pub(crate) fn update(&mut self, update: &Update) -> Planned<Action> {
        let Update {
            update_token: _,
            optimizer_hints: _,
            table,
            assignments,
            from,
            selection,
            returning,
            output,
            or,
            order_by,
            limit,
        } = update;
        if from.is_some() || returning.is_some() || output.is_some() || or.is_some() {
            return refuse(&errors::NOT_UNDERSTOOD, "a clause of UPDATE");
        }
        let mut scope = Scope::inside(None);
        self.factor(&table.relation, &mut scope, None)?;
        for join in &table.joins {
            self.factor(&join.relation, &mut scope, None)?;
        }
        self.joins(table, &scope)?;
        self.updated_views(&scope)?;
        let ordered = !order_by.is_empty() || limit.is_some();
        let filter = self.row_condition(selection.as_ref(), &scope, ordered)?;
        for key in order_by {
            self.order_by_key(&key.expr, &scope)?;
        }
        if let Some(limit) = limit
            && self.constant(limit).is_none()
        {
            return refuse(&errors::NOT_UNDERSTOOD, "LIMIT");
        }

        let parts = self.assignment_tokens(assignments.len())?;
        let mut protected: Vec<(ColumnUse, NewValue, usize)> = Vec::new();
        let (mut plain, mut plain_names) = (Vec::new(), Vec::new());
        for (i, assignment) in assignments.iter().enumerate() {
            let AssignmentTarget::ColumnName(name) = &assignment.target else {
                return refuse(&errors::NOT_UNDERSTOOD, "an assignment to several columns");
            };
            let idents: Vec<_> = name
                .0
                .iter()
                .filter_map(|p| p.as_ident().cloned())
                .collect();
            self.judge_name(name)?;
            match scope.resolve(&idents)? {
                scope::Resolved::Unknown => {
                    let name = idents.last().map(|i| i.value.as_str()).unwrap_or_default();
                    return refuse(&errors::UNKNOWN_COLUMN, format!("'{name}'"));
                }
                scope::Resolved::Plain => {
                    if idents.len() == 1 {
                        self.column_of(&Expr::Identifier(idents[0].clone()), &scope)?;
                    }
                    let name = idents.last().map(|i| i.value.clone());
                    let name = name.unwrap_or_default();
                    if is_default(&assignment.value) {
                        for table in scope.sources.iter().filter_map(|s| s.table.as_ref()) {
                            self.note_assigned_default(table, &name);
                        }
                    } else {
                        self.scan(&assignment.value, &scope)?;
                        self.plain_time(&parts[i], &name, &scope)?;
                    }
                    plain_names.push(name);
                    plain.push(i);
                }
                scope::Resolved::Protected(column) => {
                    let is_same = |(other, ..): &(ColumnUse, NewValue, usize)| {
                        other.index == column.index && Arc::ptr_eq(&other.table, &column.table)
                    };
                    if protected.iter().any(is_same) {
                        return refuse(&errors::NOT_UNDERSTOOD, assigned_twice(&column));
                    }
                    let value = self.new_value(&assignment.value, &parts[i], &column, &scope)?;
                    protected.push((column, value, i));
                }
            }
        }
        view::check_assigned(&scope, &plain_names)?;
        if let [source] = scope.sources.as_slice()
            && let Some(table) = &source.table
            && plain.is_empty()
        {
            let assigned: Vec<usize> = protected.iter().map(|(c, ..)| c.index).collect();
            let changed = self.on_change(table, |index| assigned.contains(&index));
            let changed = changed.into_iter();
            // which part of the statement it is, nobody asks
            protected.extend(changed.map(|(c, time)| (c, NewValue::OnChange(time), 0)));
        }
        for source in &scope.sources {
            if let Some(table) = &source.table {
                self.note_changes(table, |index| {
                    protected
                        .iter()
                        .any(|(c, ..)| c.index == index && Arc::ptr_eq(&c.table, table))
                });
                self.note_own_times(table, |c| {
                    let mut names = plain_names.iter();
                    names.any(|name| name.eq_ignore_ascii_case(&c.name))
                });
            }
        }
        if let Some(filter) = filter {
            let relation = table;
            let Some(table) = scope.sources.first().and_then(|s| s.table.clone()) else {
                return refuse(&errors::NOT_UNDERSTOOD, "the target of UPDATE");
            };
            let filter = Some(filter);
            return self.row_update(
                &relation.relation,
                &table,
                protected,
                &plain,
                &parts,
                false,
                filter,
            );
        }
        if protected.is_empty() {
            return Ok(Action::Server {
                text: self.assemble()?,
                result: None,
            });
        }
        if !table.joins.is_empty() {
            return refuse(&errors::NOT_UNDERSTOOD, "an UPDATE of several tables");
        }
        let found_rows = self.request.settings.found_rows;
        let simple = protected.iter().all(|(column, value, _)| {
            let exact = column
                .column()
                .sql_type
                .as_ref()
                .is_some_and(|t| t.weight_is_exact())
                && column.column().equality_column().is_some();
            matches!(value, NewValue::Constant(_)) && (found_rows || exact)
        });
        // an ON UPDATE column must not notice an assignment that changes nothing
        let watched = protected.iter().any(|(c, ..)| {
            let behind = c.table.base.as_ref().is_some_and(|base| base.on_update);
            behind || c.table.columns.iter().any(|c| c.on_update)
        });
        let all_exact = protected.iter().all(|(column, ..)| {
            column
                .column()
                .sql_type
                .as_ref()
                .is_some_and(|t| t.weight_is_exact())
                && column.column().equality_column().is_some()
        });
        if simple && (all_exact || !watched) {
            self.probe = Some(self.update_probe(&parts, limit.is_some())?);
            for (column, value, i) in &protected {
                let NewValue::Constant(source) = value else {
                    return refuse(&errors::INTERNAL, "an assignment");
                };
                let range = self.bytes_of(&parts[*i]);
                let text = self.assign_text(column, *source, all_exact);
                self.edit(range, text);
            }
            return Ok(Action::Server {
                text: self.assemble()?,
                result: None,
            });
        }
        let single = limit.is_none()
            && order_by.is_empty()
            && selection
                .as_ref()
                .is_some_and(|c| self.pins_key(c, &protected[0].0, &scope));
        let target = Arc::clone(&protected[0].0.table);
        let relation = &table.relation;
        self.row_update(relation, &target, protected, &plain, &parts, single, None)
    }

    /// `plain = NOW()` beside a protected column that gets the time: the statement has one.
    fn plain_time(&mut self, assignment: &Range<usize>, name: &str, scope: &Scope) -> Planned<()> {
        let [source] = scope.sources.as_slice() else {
            return Ok(());
        };
        let value = self.value_tokens(assignment)?;
        let column = source.table.as_ref().and_then(|table| table.column(name));
        let time = column.and_then(|column| self.plain_call(&value, column));
        if let Some(piece) = time {
            self.edit(self.bytes_of(&value), vec![piece]);
        }
        Ok(())
    }

    /// `SELECT 1 FROM target WHERE … LIMIT 1`, or with the statement's own limit.
    fn update_probe(&mut self, parts: &[Range<usize>], limited: bool) -> Planned<Text> {
        let sql = self.sql();
        let set = self
            .tokens
            .iter()
            .position(|t| t.is_word(sql, "set"))
            .unwrap_or(0);
        let first = 1 + self.tokens[1..set]
            .iter()
            .take_while(|t| is_update_modifier(sql, t))
            .count();
        let mut text = TextBuilder::default();
        text.sql(b"SELECT 1 FROM ");
        let target = self.tokens[first].start..self.tokens[set].start;
        self.copy(target, &mut text, 0);
        text.sql(b" ");
        let tail = parts.last().map_or(0, |p| p.end);
        let end = self
            .tokens
            .iter()
            .rposition(|t| !t.is(b';'))
            .map_or(0, |i| i + 1);
        if tail < end {
            let range = self.tokens[tail].start..self.tokens[end - 1].end;
            for piece in self.render(range)? {
                text.piece(piece);
            }
        }
        if !limited {
            text.sql(b" LIMIT 1");
        }
        Ok(text.finish())
    }

    /// What an assignment to a protected column makes of it.
    fn new_value(
        &mut self,
        value: &Expr,
        tokens: &Range<usize>,
        column: &ColumnUse,
        scope: &Scope,
    ) -> Planned<NewValue> {
        let value_tokens = self.value_tokens(tokens)?;
        let source = self
            .cell_source(&value_tokens, 0)
            .or_else(|| self.present_call(&value_tokens, column));
        if let Some(source) = source {
            return Ok(NewValue::Constant(self.settled(column, source)));
        }
        if let Expr::BinaryOp { left, op, right } = value {
            let operator = match op {
                BinaryOperator::Plus => Some(b'+'),
                BinaryOperator::Minus => Some(b'-'),
                BinaryOperator::Multiply => Some(b'*'),
                _ => None,
            };
            let same = |found: &Option<(Range<usize>, ColumnUse)>| {
                found.as_ref().is_some_and(|(_, c)| {
                    c.index == column.index && Arc::ptr_eq(&c.table, &column.table)
                })
            };
            let left_is = self.column_of(left, scope)?;
            let right_is = self.column_of(right, scope)?;
            let other = match operator {
                Some(_) if same(&left_is) => Some(right),
                Some(b'+' | b'*') if same(&right_is) => Some(left),
                _ => None,
            };
            if let (Some(operator), Some(other)) = (operator, other)
                && let Some((_, operand)) = self.constant(other)
            {
                return Ok(NewValue::Arithmetic { operator, operand });
            }
        }
        match self.computed(&value_tokens, column, false) {
            Some(source) => Ok(NewValue::Constant(source)),
            None => refuse(&errors::NOT_CONSTANT, column.path()),
        }
    }
}

/// Servers assign from left to right, and count a row as changed if it differs in the end: no two assignments of sealed values are that.
pub(super) fn assigned_twice(column: &ColumnUse) -> String {
    format!("a second assignment to {}", column.path())
}

pub(super) fn is_update_modifier(sql: &[u8], token: &crate::lex::Token) -> bool {
    token.is_word(sql, "ignore") || token.is_word(sql, "low_priority")
}
