//! `UPDATE`: by the server where assigned tokens show what changes, else row by row.

use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::{Table, same_name};
use sqlparser::ast::{Assignment, AssignmentTarget, BinaryOperator, Expr, Ident, Update};

use super::{Old, has_exact_tokens, is_default, view};
use crate::errors::{self, NotUnderstood};
use crate::plan::{Action, ColumnUse, NewValue, RowFilter, Text};
use crate::planner::{Planned, Planner, TextBuilder, refuse};
use crate::scope::{Resolved, Scope};
use crate::tenant;

/// The assignments of an `UPDATE`.
#[derive(Default)]
pub(super) struct Assigned {
    /// Protected columns, what each becomes, and which assignment says so.
    pub protected: Vec<(ColumnUse, NewValue, usize)>,
    /// The assignments to plain columns.
    pub plain: Vec<usize>,
    /// The names of those.
    pub plain_names: Vec<String>,
    /// The tokens of all assignments.
    pub tokens: Vec<Range<usize>>,
}

impl Assigned {
    fn has(&self, table: &Arc<Table>, index: usize) -> bool {
        let mut protected = self.protected.iter();
        protected.any(|(c, ..)| c.index == index && Arc::ptr_eq(&c.table, table))
    }

    /// Whether all protected columns have exact tokens.
    fn is_exact(&self) -> bool {
        let mut protected = self.protected.iter();
        protected.all(|(column, ..)| has_exact_tokens(column))
    }

    /// Whether an ON UPDATE column watches the rows, which must not notice an assignment that
    /// changes nothing.
    fn is_watched(&self) -> bool {
        self.protected.iter().any(|(c, ..)| {
            let behind = c.table.base.as_ref().is_some_and(|base| base.on_update);
            behind || c.table.columns.iter().any(|c| c.on_update)
        })
    }

    /// Whether the server can assign: all values are constants, and it counts the rows as it
    /// would count those of plaintext. `found_rows`: it counts the rows that are found.
    fn is_for_server(&self, found_rows: bool) -> bool {
        let mut protected = self.protected.iter();
        let is_simple = protected.all(|(column, value, _)| {
            let has_tenant = column.table.tenant().is_some();
            !has_tenant
                && matches!(value, NewValue::Constant(_))
                && (found_rows || has_exact_tokens(column))
        });
        is_simple && (self.is_exact() || !self.is_watched())
    }
}

impl Planner<'_> {
    /// Plans an `UPDATE`.
    pub(crate) fn update(&mut self, update: &Update) -> Planned<Action> {
        check_clauses(update)?;
        let table = &update.table;
        let mut scope = Scope::inside(None);
        self.factor(&table.relation, &mut scope, None)?;
        for join in &table.joins {
            self.factor(&join.relation, &mut scope, None)?;
        }
        self.joins(table, &scope)?;
        self.updated_views(&scope)?;
        let filter = self.updated_rows(update, &scope)?;

        let mut assigned = self.assigned(&update.assignments, &scope)?;
        view::check_assigned(&scope, &assigned.plain_names)?;
        tenant::check_assigned(&scope, &assigned.plain_names)?;
        self.assign_on_change(&scope, &mut assigned);
        self.note_unassigned(&scope, &assigned);

        if let Some(filter) = filter {
            let Some(target) = scope.sources.first().and_then(|s| s.table.clone()) else {
                return NotUnderstood::PartOf("the target", "UPDATE").refuse();
            };
            return self.row_update(&table.relation, &target, assigned, false, Some(filter));
        }
        let Some((first, ..)) = assigned.protected.first() else {
            return Ok(Action::Server {
                text: self.assemble()?,
                result: None,
            });
        };
        if !table.joins.is_empty() {
            return NotUnderstood::UpdateOfSeveral.refuse();
        }
        if assigned.is_for_server(self.request.settings.found_rows) {
            return self.update_on_server(&assigned, update.limit.is_some());
        }
        let condition = update.selection.as_ref();
        let single = update.limit.is_none()
            && update.order_by.is_empty()
            && condition.is_some_and(|c| self.pins_key(c, first, &scope));
        let target = Arc::clone(&first.table);
        self.row_update(&table.relation, &target, assigned, single, None)
    }

    /// Plans WHERE, ORDER BY and LIMIT. Returns the condition where the server can only narrow the
    /// rows by it, see [`Planner::row_condition`].
    fn updated_rows(
        &mut self,
        update: &Update,
        scope: &Scope,
    ) -> Planned<Option<(RowFilter, Vec<Text>)>> {
        let ordered = !update.order_by.is_empty() || update.limit.is_some();
        let filter = self.row_condition(update.selection.as_ref(), scope, ordered)?;
        for key in &update.order_by {
            self.order_by_key(&key.expr, scope)?;
        }
        match &update.limit {
            Some(limit) if self.constant(limit).is_none() => {
                NotUnderstood::Clause("LIMIT").refuse()
            }
            _ => Ok(filter),
        }
    }

    /// Reads the assignments behind SET.
    fn assigned(&mut self, assignments: &[Assignment], scope: &Scope) -> Planned<Assigned> {
        let tokens = self.assignment_tokens(assignments.len())?;
        let mut assigned = Assigned::default();
        for (i, assignment) in assignments.iter().enumerate() {
            let AssignmentTarget::ColumnName(name) = &assignment.target else {
                return NotUnderstood::AssignmentTo("several columns").refuse();
            };
            let idents = name.0.iter().filter_map(|p| p.as_ident().cloned());
            let idents: Vec<Ident> = idents.collect();
            self.judge_name(name)?;
            let name = idents.last().map(|i| i.value.clone()).unwrap_or_default();
            match scope.resolve(&idents)? {
                Resolved::Unknown => {
                    return Err(self.unknown_column(&idents, scope));
                }
                Resolved::Plain => {
                    if let [ident] = idents.as_slice() {
                        self.column_of(&Expr::Identifier(ident.clone()), scope)?;
                    }
                    self.assigned_plain(&name, &assignment.value, &tokens[i], scope)?;
                    assigned.plain_names.push(name);
                    assigned.plain.push(i);
                }
                Resolved::Protected(column) => {
                    if assigned.has(&column.table, column.index) {
                        return assigned_twice(&column).refuse();
                    }
                    self.note_rewritten(&column);
                    let value = self.new_value(&assignment.value, &tokens[i], &column, scope)?;
                    assigned.protected.push((column, value, i));
                }
            }
        }
        assigned.tokens = tokens;
        Ok(assigned)
    }

    /// `plain = …`
    fn assigned_plain(
        &mut self,
        name: &str,
        value: &Expr,
        assignment: &Range<usize>,
        scope: &Scope,
    ) -> Planned<()> {
        if !is_default(value) {
            self.scan(value, scope)?;
            return self.plain_time(assignment, name, scope);
        }
        for table in scope.sources.iter().filter_map(|s| s.table.as_ref()) {
            self.note_assigned_default(table, name);
        }
        Ok(())
    }

    /// Adds the protected columns of a single table that get the present time by ON UPDATE, unless
    /// plain columns are assigned, too.
    fn assign_on_change(&mut self, scope: &Scope, assigned: &mut Assigned) {
        let [source] = scope.sources.as_slice() else {
            return;
        };
        let Some(table) = source.table.as_ref().filter(|_| assigned.plain.is_empty()) else {
            return;
        };
        let indexes: Vec<usize> = assigned.protected.iter().map(|(c, ..)| c.index).collect();
        let changed = self.on_change(table, |index| indexes.contains(&index));
        let changed = changed.into_iter();
        // which part of the statement it is, nobody asks
        let changed = changed.map(|(c, time)| (c, NewValue::OnChange(time), 0));
        assigned.protected.extend(changed);
    }

    /// Takes notice of columns that get the present time without being assigned.
    fn note_unassigned(&mut self, scope: &Scope, assigned: &Assigned) {
        for table in scope.sources.iter().filter_map(|s| s.table.as_ref()) {
            self.note_changes(table, |index| assigned.has(table, index));
            self.note_own_times(table, |c| {
                let mut names = assigned.plain_names.iter();
                names.any(|name| same_name(name, &c.name))
            });
        }
    }

    /// Assigns cells and tokens on the server. `limited`: the statement has a LIMIT.
    fn update_on_server(&mut self, assigned: &Assigned, limited: bool) -> Planned<Action> {
        self.probe = Some(self.update_probe(&assigned.tokens, limited)?);
        let exact = assigned.is_exact();
        for (column, value, i) in &assigned.protected {
            let NewValue::Constant(source) = value else {
                return refuse(&errors::INTERNAL, "an assignment");
            };
            let range = self.bytes_of(&assigned.tokens[*i]);
            let text = self.assign_text(column, *source, exact, &Old::BARE);
            self.edit(range, text);
        }
        Ok(Action::Server {
            text: self.assemble()?,
            result: None,
        })
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

/// Refuses clauses that are not understood.
fn check_clauses(update: &Update) -> Planned<()> {
    let Update {
        update_token: _,
        optimizer_hints: _,
        table: _,
        assignments: _,
        from,
        selection: _,
        returning,
        output,
        or,
        order_by: _,
        limit: _,
    } = update;
    if from.is_some() || returning.is_some() || output.is_some() || or.is_some() {
        return NotUnderstood::ClauseOf("UPDATE").refuse();
    }
    Ok(())
}

/// Servers assign from left to right, and count a row as changed if it differs in the end: no two
/// assignments of sealed values are that.
pub(super) fn assigned_twice(column: &ColumnUse) -> NotUnderstood {
    NotUnderstood::AssignedTwice(column.path())
}

pub(super) fn is_update_modifier(sql: &[u8], token: &crate::lex::Token) -> bool {
    token.is_word(sql, "ignore") || token.is_word(sql, "low_priority")
}
