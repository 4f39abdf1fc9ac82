//! `ON DUPLICATE KEY UPDATE`: constants, and `VALUES(k)` or `new.k` as the new value of `k`.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use onionskin_schema::{Table, same_name};
use onionskin_value::Family;
use sqlparser::ast::{Assignment, Expr, Function, Ident, Insert, ObjectName};

use super::update::assigned_twice;
use super::{Old, Target, has_exact_tokens, is_default, physical};
use crate::errors::{self, NotUnderstood, Refusal};
use crate::plan::{Assigned, ColumnUse, Piece, Purpose, Slot, Source, Text, Upsert};
use crate::planner::{Planned, Planner, quoted, refuse};
use crate::scope::{self, Scope};
use crate::tenant;
use crate::unknown::Place;
use crate::visit::visit_expressions;

/// How an assignment names the new row's columns.
enum NewRow {
    /// By this call: `VALUES(k)`, `VALUE(k)`.
    Call(String),
    /// By this alias of the row: `new.k`.
    Alias(String),
}

impl NewRow {
    fn column(&self, name: &str) -> String {
        match self {
            NewRow::Call(call) => format!("{call}({name})"),
            NewRow::Alias(alias) => format!("{alias}.{name}"),
        }
    }
}

/// How the statement names the new row: `AS new`, or `AS new (a, b)`.
pub(crate) struct RowAlias {
    name: String,
    /// The names that it gives to the row's columns, with the table's. Empty: they are the table's.
    columns: Vec<(String, String)>,
    /// The columns that the statement lists, if it does: the new row has no others.
    listed: Vec<String>,
}

impl RowAlias {
    /// Whether this is the row's name.
    fn is(&self, ident: &Ident) -> bool {
        ident
            .value
            .eq_ignore_ascii_case(self.name.trim_matches('`'))
    }

    /// The table's column that a name of the new row means.
    fn column<'n>(&'n self, ident: &'n Ident) -> Option<&'n str> {
        if self.columns.is_empty() {
            return Some(&ident.value);
        }
        let mut columns = self.columns.iter();
        let found = columns.find(|(alias, _)| same_name(alias, &ident.value));
        found.map(|(_, column)| column.as_str())
    }

    /// The table's column that a value is, if the value is nothing else: `new.a`, or `a` where only
    /// the new row has such a column.
    fn value_of<'n>(&'n self, value: &'n Expr, table: &Table) -> Option<&'n str> {
        match value {
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [row, ident] if self.is(row) => self.column(ident),
                _ => None,
            },
            Expr::Identifier(ident)
                if !self.columns.is_empty() && table.column(&ident.value).is_none() =>
            {
                self.column(ident)
            }
            _ => None,
        }
    }
}

/// The columns that a statement lists in front of its rows; `None` if one has an odd name.
fn listed(insert: &Insert) -> Option<Vec<String>> {
    let name = |name: &ObjectName| Some(name.0.last()?.as_ident()?.value.clone());
    insert.columns.iter().map(name).collect()
}

/// Refuses columns of the new row that the row does not have, in any of the clause's assignments.
pub(crate) fn check_new_rows(insert: &Insert, list: &[Assignment]) -> Planned<()> {
    let Some(alias) = &insert.insert_alias else {
        return Ok(());
    };
    if alias.col_aliases.as_ref().is_some_and(|c| !c.is_empty()) {
        return Ok(());
    }
    let alias = RowAlias {
        name: alias.row_alias.to_string(),
        columns: Vec::new(),
        listed: listed(insert).unwrap_or_default(),
    };
    let mut values = list.iter().map(|assignment| &assignment.value);
    values.try_for_each(|value| check_new_row(value, &alias))
}

/// Refuses a column of the new row that the row does not have, as MySQL does before it looks at any
/// value.
fn check_new_row(value: &Expr, alias: &RowAlias) -> Planned<()> {
    if alias.listed.is_empty() || !alias.columns.is_empty() {
        return Ok(());
    }
    let missing = visit_expressions(value, |e: &Expr| match e {
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [row, ident] if alias.is(row) => {
                let mut listed = alias.listed.iter();
                match listed.any(|name| same_name(name, &ident.value)) {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(format!("{}.{}", row.value, ident.value)),
                }
            }
            _ => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    });
    match missing {
        ControlFlow::Break(name) => Err(Refusal::unknown_column(&name, "field list")),
        ControlFlow::Continue(()) => Ok(()),
    }
}

impl Planner<'_> {
    /// The new row's name. The names of its columns become those of the physical columns, which
    /// `rows` has.
    pub(super) fn row_alias(
        &mut self,
        insert: &Insert,
        rows: &[Vec<(String, Text)>],
        table: &Arc<Table>,
    ) -> Planned<Option<RowAlias>> {
        let Some(alias) = &insert.insert_alias else {
            return Ok(None);
        };
        let mut found = RowAlias {
            name: alias.row_alias.to_string(),
            columns: Vec::new(),
            listed: listed(insert).unwrap_or_default(),
        };
        let names = alias.col_aliases.as_deref().unwrap_or_default();
        let (Some(first), Some(last)) = (names.first(), names.last()) else {
            return Ok(Some(found));
        };
        let bad = || Refusal::from(NotUnderstood::PartOf("column aliases", "the new row"));
        let columns: Vec<String> = match insert.columns.as_slice() {
            [] => {
                let shown = table.columns.iter().filter(|c| !c.invisible);
                shown.map(|c| c.name.clone()).collect()
            }
            _ => listed(insert).ok_or_else(bad)?,
        };
        let is_twice = |at: usize| {
            let mut before = names[..at].iter();
            before.any(|other| same_name(&other.value, &names[at].value))
        };
        if columns.len() != names.len() || (0..names.len()).any(is_twice) {
            return Err(bad());
        }
        let names = names.iter().map(|ident| ident.value.clone());
        found.columns = names.zip(columns).collect();
        let mut physical = Vec::new();
        for (name, _) in rows.first().into_iter().flatten() {
            let mut columns = found.columns.iter();
            let plain = columns.find(|(_, column)| same_name(column, name));
            // one that the statement leaves out is protected, too
            physical.push(quoted(plain.map_or(name.as_str(), |(alias, _)| alias)));
        }
        let first = self.token_at(self.offset(first.span))?;
        let last = self.token_at(self.offset(last.span))?;
        let place = self.bytes_of(&(first..last + 1));
        self.edit_sql(place, physical.join(", "));
        Ok(Some(found))
    }

    /// Plans the clause. `alias` is the new row's; `returns`: RETURNING stands behind it.
    pub(crate) fn on_duplicate(
        &mut self,
        list: &[Assignment],
        scope: &Scope,
        table: &Arc<Table>,
        alias: Option<&RowAlias>,
        returns: bool,
        upsert: &mut Upsert,
    ) -> Planned<()> {
        let clause = self.duplicate_tokens(list.len(), returns)?;
        // beside the new row's, a bare name is ambiguous
        let old = Old(alias.map(|_| upsert.target.clone()));
        let (mut has_constants, mut assigned) = (false, Vec::new());
        for (assignment, tokens) in list.iter().zip(&clause.assignments) {
            let name = self.assigned_name(assignment)?;
            if let Some(alias) = alias
                && self.request.settings.family == Family::MySql
            {
                check_new_row(&assignment.value, alias)?;
            }
            let column = match self.target(&name, table, Place::Update)? {
                Target::Protected(column) => {
                    tenant::check_met(table, "a change of rows that are met")?;
                    column
                }
                Target::Plain(column) => {
                    if tenant::says_tenant(table, &column) {
                        tenant::check_met(table, "another tenant for rows that are met")?;
                    }
                    let as_new = is_new_rows(&assignment.value, &column, alias, table);
                    upsert.assigned.push(Assigned { column, as_new });
                    if is_default(&assignment.value) {
                        self.note_assigned_default(table, &name);
                    }
                    if alias.is_some_and(|alias| alias.columns.is_empty()) {
                        check_bare_names(&assignment.value, upsert)?;
                    }
                    self.duplicate_value(&assignment.value, scope, alias, table)?;
                    continue;
                }
            };
            if assigned.contains(&column.index) {
                return assigned_twice(&column).refuse();
            }
            assigned.push(column.index);
            self.note_rewritten(&column);
            let new_row = self.new_row(&assignment.value, &column, alias, table)?;
            let as_new = new_row.is_some();
            upsert
                .assigned
                .extend(physical(&column).iter().map(|(name, _)| Assigned {
                    column: (*name).to_owned(),
                    as_new,
                }));
            match new_row {
                Some(new_row) => self.assign_new_row(tokens, &column, &new_row, &old, upsert)?,
                None => {
                    self.assign_constant(tokens, &column, &old, upsert)?;
                    has_constants = true;
                }
            }
        }
        self.note_changes(table, |index| assigned.contains(&index));
        self.note_own_times(table, |_| false);
        if has_constants {
            self.insert_only = Some(self.render(0..clause.start)?);
        }
        Ok(())
    }

    /// Finds the clause, which ends the statement but for RETURNING, and its assignments.
    fn duplicate_tokens(&self, count: usize, returns: bool) -> Planned<Clause> {
        let bad = || Refusal::from(NotUnderstood::Clause("ON DUPLICATE KEY UPDATE"));
        let sql = self.sql();
        let mut words = self.tokens.iter();
        let duplicate = words.rposition(|t| t.is_word(sql, "duplicate"));
        let duplicate = duplicate.ok_or_else(bad)?;
        let end = match returns {
            // behind the word itself
            true => self.returning_tokens()?.start - 1,
            false => self
                .tokens
                .iter()
                .rposition(|t| !t.is(b';'))
                .map_or(0, |i| i + 1),
        };
        let assignments = self.split_commas(duplicate + 3..end);
        if assignments.len() != count || duplicate < 2 {
            return Err(bad());
        }
        Ok(Clause {
            // the token before ON
            start: self.tokens[duplicate - 2].end,
            assignments,
        })
    }

    /// `k = VALUES(k)`: the new row's cell and tokens. Where tokens tell that the value is the
    /// same, the old cell stays.
    fn assign_new_row(
        &mut self,
        tokens: &Range<usize>,
        column: &ColumnUse,
        new_row: &NewRow,
        old: &Old,
        upsert: &mut Upsert,
    ) -> Planned<()> {
        let index = self.column_index(column);
        let is_left_out = |piece: &Piece| match piece {
            Piece::Slot(slot) => {
                slot.column == index && matches!(slot.source, Source::Omitted { .. })
            }
            _ => false,
        };
        let mut given = upsert.rows.iter().flatten().flat_map(|(_, text)| text);
        let is_left_out = given.any(is_left_out);
        if let NewRow::Alias(row) = new_row
            && is_left_out
        {
            // the named row has the columns that the statement gives
            let name = format!("{}.{}", row.trim_matches('`'), column.column().name);
            return Err(self.unknown_in(&name, Place::Select));
        }
        if column.column().is_required() && is_left_out {
            // servers take the column for given then, and store what they store without strict mode
            return refuse(&errors::VALUE, column.path());
        }
        let exact = has_exact_tokens(column);
        let token = column.column().equality_column().map(|(n, _)| quoted(n));
        let mut assignments = Vec::new();
        let mut calls = 0;
        for (name, purpose) in physical(column) {
            let name = quoted(name);
            let new = new_row.column(&name);
            calls += 1;
            assignments.push(match (&token, purpose) {
                (Some(token), Purpose::Seal) if exact => {
                    calls += 1;
                    let (new_token, old_token) = (new_row.column(token), old.column(token));
                    let kept = old.column(&name);
                    format!("{name} = IF({old_token} <=> {new_token}, {kept}, {new})")
                }
                _ => format!("{name} = {new}"),
            });
        }
        if let NewRow::Call(_) = new_row {
            self.surplus_values += calls - 1;
        }
        let range = self.bytes_of(tokens);
        self.edit_sql(range, assignments.join(", "));
        if !exact {
            upsert.columns.push(index);
        }
        Ok(())
    }

    /// `k = 'x'`: every row that is met gets this value. Where tokens do not tell whether it has it
    /// already, the cells are read first and sent again.
    fn assign_constant(
        &mut self,
        tokens: &Range<usize>,
        column: &ColumnUse,
        old: &Old,
        upsert: &mut Upsert,
    ) -> Planned<()> {
        let value = self.value_tokens(tokens)?;
        let source = self
            .cell_source(&value, 0)
            .or_else(|| self.present_call(&value, column))
            .ok_or_else(|| Refusal::new(&errors::NOT_CONSTANT, column.path()))?;
        let source = self.settled(column, source);
        let exact = has_exact_tokens(column);
        let mut text = self.assign_text(column, source, exact, old);
        if !exact {
            // the text begins with the assignment of the cell
            let name = quoted(column.sealed());
            let old_cell = old.column(&name);
            let slot = Slot {
                column: self.column_index(column),
                purpose: Purpose::Seal,
                source,
                among: None,
            };
            let kept = Piece::Slot(Slot {
                purpose: Purpose::Kept,
                ..slot
            });
            let head = [
                Piece::Sql(format!("{name} = IF(LOCATE(HEX({old_cell}), ").into_bytes()),
                kept,
                Piece::Sql(format!(") > 0, {old_cell}, ").into_bytes()),
                Piece::Slot(slot),
                Piece::Sql(b")".to_vec()),
            ];
            text.splice(..2, head);
            upsert.constants.push(slot);
        }
        let range = self.bytes_of(tokens);
        self.edit(range, text);
        Ok(())
    }

    /// A plain column's new value; the new row's plain columns may be read in it.
    fn duplicate_value(
        &mut self,
        e: &Expr,
        scope: &Scope,
        alias: Option<&RowAlias>,
        table: &Table,
    ) -> Planned<()> {
        if is_default(e) {
            return Ok(());
        }
        let Some(alias) = alias else {
            return self.scan(e, scope);
        };
        if !alias.columns.is_empty() {
            return self.renamed_value(e, scope, alias, table);
        }
        let alias = alias.name.as_str();
        let mut with_alias = Scope::inside(None);
        with_alias.sources = scope.sources.clone();
        for source in &scope.sources {
            with_alias.sources.push(scope::Source {
                name: alias.to_string(),
                ..source.clone()
            });
        }
        // a bare name means a column of the old row that the new row does not have
        let mut is_bare = false;
        let mut is_named = false;
        let _ = visit_expressions(e, |e: &Expr| {
            is_bare |= matches!(e, Expr::Identifier(_));
            is_named |= match e {
                Expr::CompoundIdentifier(parts) => parts.first().is_some_and(|row| {
                    same_name(&row.value, alias.trim_matches('`')) && parts.len() == 2
                }),
                _ => false,
            };
            ControlFlow::<()>::Continue(())
        });
        match (is_bare, is_named) {
            (false, _) => self.scan(e, &with_alias),
            (true, false) => self.scan(e, scope),
            (true, true) => {
                NotUnderstood::PartOf("a bare name", "an expression with the new row's").refuse()
            }
        }
    }

    /// A plain column's new value where the new row's columns have names of their own: one of these
    /// alone, or a value that reads none.
    fn renamed_value(
        &mut self,
        e: &Expr,
        scope: &Scope,
        alias: &RowAlias,
        table: &Table,
    ) -> Planned<()> {
        if let Some(column) = alias.value_of(e, table) {
            let known = table.column(column);
            return match known.is_some_and(|c| c.protection.is_none()) {
                true => Ok(()),
                false => {
                    NotUnderstood::UsedAs("a protected column", "the value of a plain one").refuse()
                }
            };
        }
        let reads_new = visit_expressions(e, |e: &Expr| {
            let is_new = match e {
                Expr::CompoundIdentifier(parts) => parts.first().is_some_and(|row| alias.is(row)),
                Expr::Identifier(_) => alias.value_of(e, table).is_some(),
                _ => false,
            };
            match is_new {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        match reads_new.is_break() {
            true => {
                NotUnderstood::Within("column aliases of the new row", "an expression").refuse()
            }
            false => self.scan(e, scope),
        }
    }

    /// How the new row is named, if the value is its column of the same name: `VALUES(k)` or
    /// `alias.k`.
    fn new_row(
        &self,
        value: &Expr,
        column: &ColumnUse,
        alias: Option<&RowAlias>,
        table: &Table,
    ) -> Planned<Option<NewRow>> {
        let named = |ident: &Ident| same_name(&ident.value, &column.column().name);
        match value {
            Expr::Function(f) if is_values(f) => match Self::single_argument(f) {
                Some((Expr::Identifier(ident), false)) if named(ident) => {
                    Ok(Some(NewRow::Call(Self::function_name(f))))
                }
                _ => refuse(&errors::NOT_CONSTANT, column.path()),
            },
            Expr::CompoundIdentifier(_) | Expr::Identifier(_) => {
                let new = alias.and_then(|alias| Some((alias, alias.value_of(value, table)?)));
                match new {
                    Some((alias, name)) if same_name(name, &column.column().name) => {
                        let name = alias.name.trim_matches('`');
                        Ok(Some(NewRow::Alias(quoted(name))))
                    }
                    None if matches!(value, Expr::Identifier(_)) => Ok(None),
                    _ => refuse(&errors::NOT_CONSTANT, column.path()),
                }
            }
            _ => Ok(None),
        }
    }
}

/// Whether the new value of a plain column is the new row's of the same column.
fn is_new_rows(value: &Expr, column: &str, alias: Option<&RowAlias>, table: &Table) -> bool {
    match value {
        Expr::Function(f) if is_values(f) => matches!(
            Planner::single_argument(f),
            Some((Expr::Identifier(ident), false)) if same_name(&ident.value, column)
        ),
        _ => {
            let new = alias.and_then(|alias| alias.value_of(value, table));
            new.is_some_and(|name| same_name(name, column))
        }
    }
}

/// `VALUES(k)`, or `VALUE(k)`.
fn is_values(function: &Function) -> bool {
    let name = Planner::function_name(function);
    matches!(name.as_str(), "values" | "value")
}

/// MySQL's error for a bare name beside a named row that has a column of this name as well. Before
/// it, no value is looked at.
fn check_bare_names(value: &Expr, upsert: &Upsert) -> Planned<()> {
    let given = upsert.rows.first().into_iter().flatten();
    let given: Vec<&str> = given.map(|(name, _)| name.as_str()).collect();
    let is_ambiguous = |ident: &Ident| given.iter().any(|n| n.eq_ignore_ascii_case(&ident.value));
    let found = visit_expressions(value, |e: &Expr| match e {
        Expr::Identifier(ident) if is_ambiguous(ident) => ControlFlow::Break(ident.value.clone()),
        // names in there are another row's
        Expr::Function(f) if is_values(f) => ControlFlow::Break(String::new()),
        Expr::Subquery(_) => ControlFlow::Break(String::new()),
        _ => ControlFlow::Continue(()),
    });
    match found {
        ControlFlow::Break(name) if !name.is_empty() => Err(Refusal::ambiguous_column(&name)),
        _ => Ok(()),
    }
}

/// The places of the clause.
struct Clause {
    /// Where it begins in the text: behind the rows.
    start: usize,
    /// The tokens of its assignments.
    assignments: Vec<Range<usize>>,
}
