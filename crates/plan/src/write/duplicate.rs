//! `ON DUPLICATE KEY UPDATE`: constants, and `VALUES(k)` or `new.k` as the new value of `k`.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use onionskin_schema::Table;
use sqlparser::ast::{Assignment, Expr, Function, Ident, visit_expressions};

use super::update::assigned_twice;
use super::{Old, Target, has_exact_tokens, is_default, physical};
use crate::errors::{self, NotUnderstood, Refusal};
use crate::plan::{Assigned, ColumnUse, Piece, Purpose, Slot, Source, Upsert};
use crate::planner::{Planned, Planner, quoted, refuse};
use crate::scope::{self, Scope};
use crate::unknown::Place;

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

impl Planner<'_> {
    /// Plans the clause. `alias` is the new row's; `returns`: RETURNING stands behind it.
    pub(crate) fn on_duplicate(
        &mut self,
        list: &[Assignment],
        scope: &Scope,
        table: &Arc<Table>,
        alias: Option<&str>,
        returns: bool,
        upsert: &mut Upsert,
    ) -> Planned<()> {
        let clause = self.duplicate_tokens(list.len(), returns)?;
        // beside the new row's, a bare name is ambiguous
        let old = Old(alias.map(|_| upsert.target.clone()));
        let (mut has_constants, mut assigned) = (false, Vec::new());
        for (assignment, tokens) in list.iter().zip(&clause.assignments) {
            let name = self.assigned_name(assignment)?;
            let column = match self.target(&name, table, Place::Update)? {
                Target::Protected(column) => column,
                Target::Plain(column) => {
                    let as_new = is_new_rows(&assignment.value, &column, alias);
                    upsert.assigned.push(Assigned { column, as_new });
                    if is_default(&assignment.value) {
                        self.note_assigned_default(table, &name);
                    }
                    if alias.is_some() {
                        check_bare_names(&assignment.value, upsert)?;
                    }
                    self.duplicate_value(&assignment.value, scope, alias)?;
                    continue;
                }
            };
            if assigned.contains(&column.index) {
                return assigned_twice(&column).refuse();
            }
            assigned.push(column.index);
            self.note_rewritten(&column);
            let new_row = self.new_row(&assignment.value, &column, alias)?;
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
        // a bare name means a column of the old row that the new row does not have
        let mut is_bare = false;
        let mut is_named = false;
        let _ = visit_expressions(e, |e: &Expr| {
            is_bare |= matches!(e, Expr::Identifier(_));
            is_named |= match e {
                Expr::CompoundIdentifier(parts) => parts.first().is_some_and(|row| {
                    row.value.eq_ignore_ascii_case(alias.trim_matches('`')) && parts.len() == 2
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

    /// How the new row is named, if the value is its column of the same name: `VALUES(k)` or
    /// `alias.k`.
    fn new_row(
        &self,
        value: &Expr,
        column: &ColumnUse,
        alias: Option<&str>,
    ) -> Planned<Option<NewRow>> {
        let named = |ident: &Ident| ident.value.eq_ignore_ascii_case(&column.column().name);
        match value {
            Expr::Function(f) if is_values(f) => match Self::single_argument(f) {
                Some((Expr::Identifier(ident), false)) if named(ident) => {
                    Ok(Some(NewRow::Call(Self::function_name(f))))
                }
                _ => refuse(&errors::NOT_CONSTANT, column.path()),
            },
            Expr::CompoundIdentifier(parts) => match (parts.as_slice(), alias) {
                ([row, ident], Some(alias))
                    if row.value.eq_ignore_ascii_case(alias.trim_matches('`')) && named(ident) =>
                {
                    Ok(Some(NewRow::Alias(quoted(&row.value))))
                }
                _ => refuse(&errors::NOT_CONSTANT, column.path()),
            },
            _ => Ok(None),
        }
    }
}

/// Whether the new value of a plain column is the new row's of the same column.
fn is_new_rows(value: &Expr, column: &str, alias: Option<&str>) -> bool {
    let is_column = |ident: &Ident| ident.value.eq_ignore_ascii_case(column);
    match value {
        Expr::Function(f) if is_values(f) => matches!(
            Planner::single_argument(f),
            Some((Expr::Identifier(ident), false)) if is_column(ident)
        ),
        Expr::CompoundIdentifier(parts) => match (parts.as_slice(), alias) {
            ([row, ident], Some(alias)) => {
                row.value.eq_ignore_ascii_case(alias.trim_matches('`')) && is_column(ident)
            }
            _ => false,
        },
        _ => false,
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
