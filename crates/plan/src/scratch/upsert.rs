//! `INSERT … ON DUPLICATE KEY UPDATE` whose assignments are expressions over protected columns:
//! `c = CONCAT(c, VALUES(c))`, `k = k + 1`.
//!
//! Rows are taken one after the other. A row's unique keys tell which rows of the table it may
//! meet; these are read under a lock and brought to a temporary table with the same unique keys,
//! where the client's own clause runs for this one row. So which of several rows is met, the order
//! of assignments, conversions and what counts as a change are the engine's doing. The server then
//! gets an `INSERT … ON DUPLICATE KEY UPDATE` with constants: numbers of AUTO_INCREMENT, triggers
//! and affected rows are its own.
//!
//! The clause may name columns of the table and of the new row, and nothing else. A plain column
//! gets nothing that is made from a protected one (`handed.rs`).

use std::ops::ControlFlow;
use std::sync::Arc;

use onionskin_schema::{Column, Table, same_name};
use onionskin_value::{Family, Kind, SqlType};
use sqlparser::ast::{
    Assignment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Insert, OnInsert,
    Query, Select, SetExpr, TableFactor, TableObject,
};

use super::handed::Handed;
use super::load::Checked;
use super::row_names::met_names;
use super::walk::{Reference, is_call_allowed};
use super::write::{
    Effect, NewRows, Own, ScratchWrite, WrittenColumn, assigned_column, defaulted,
    has_simple_default, lock_by_key, written_column,
};
use super::{Scratch, reads};
use crate::errors::{self, NotUnderstood, Refusal};
use crate::plan::{Action, Upsert};
pub(super) use crate::plan::{MetRows, NewValues};
use crate::planner::{Known, Planned, Planner, refuse};
use crate::scope::{self, Scope, position};
use crate::unknown::Place;
use crate::visit::{Visitor, visit};
use crate::write::check_new_rows;

/// What is said of `INSERT IGNORE` with such a clause.
pub(super) const IGNORED: NotUnderstood =
    NotUnderstood::Beside("IGNORE", "expressions in ON DUPLICATE KEY UPDATE");

/// Plans an `INSERT … VALUES` or `INSERT … SET` with such a clause.
pub(super) fn of_values(planner: &mut Planner<'_>, insert: &Insert) -> Planned<Action> {
    let (TableObject::TableName(name), Some(OnInsert::DuplicateKeyUpdate(list))) =
        (&insert.table, &insert.on)
    else {
        return NotUnderstood::PartOf("the target", "INSERT").refuse();
    };
    if insert.ignore {
        return IGNORED.refuse();
    }
    if insert.returning.is_some()
        || insert.table_alias.is_some()
        || insert.partitioned.is_some()
        || insert.overwrite
        || insert.replace_into
        || insert.has_table_keyword
    {
        return NotUnderstood::ClauseOf("INSERT").refuse();
    }
    let (_, table_name, known) = planner.table(name)?;
    let Known::Table(table) = known else {
        return NotUnderstood::UnknownTable(table_name).refuse();
    };
    if !table.is_protected() {
        return NotUnderstood::InsertIntoPlain.refuse();
    }
    if let Some(reason) = &table.damaged {
        let about = format!("{}.{} ({reason})", table.database, table.name);
        return refuse(&errors::DAMAGED, about);
    }
    let Some(last) = name.0.last().and_then(|p| p.as_ident()) else {
        return NotUnderstood::PartOf("the target", "INSERT").refuse();
    };
    let head = planner.token_at(planner.offset(last.span))? + 1;
    let (clause, end) = clause(planner)?;
    let (alias, clause) = row_alias(planner, insert, clause)?;
    check_new_rows(insert, list)?;
    let (indexes, values, rows) = match &insert.source {
        None => set(planner, insert, &table, clause)?,
        Some(query) => rows(planner, insert, query, &table, (head, clause))?,
    };
    let (mut columns, asked) = given_columns(planner, &table, &indexes, &rows)?;
    for value in rows.iter().flatten() {
        if !crate::write::is_default(value) {
            check_value(value)?;
        }
    }
    let given = columns.len();
    columns.extend(defaulted(planner, &table, &columns, asked)?);
    columns.extend(not_missed(planner, list, &table, &columns)?);
    let variables = reads::variables(planner)?;
    let mut met = met(
        planner,
        list,
        &table,
        alias.as_deref(),
        &columns,
        end - clause,
    )?;
    met.values = Some(values);
    let new = NewRows {
        table,
        columns,
        given,
        head: (0, head),
        query: (clause, clause),
        tail: (clause, end),
        ignore: false,
        replaces: false,
        load: None,
        met: Some(Box::new(met)),
        values: None,
    };
    Ok(Action::ScratchWrite(Box::new(ScratchWrite {
        scratch: Scratch {
            reads: Vec::new(),
            variables,
            renamed: Vec::new(),
            finds_more: false,
        },
        effect: Effect::Insert(Box::new(new)),
    })))
}

/// The new row's alias, and the first token of what follows the rows: the alias, or the clause that
/// begins at the token `clause`.
fn row_alias(
    planner: &Planner<'_>,
    insert: &Insert,
    clause: usize,
) -> Planned<(Option<String>, usize)> {
    let Some(alias) = &insert.insert_alias else {
        return Ok((None, clause));
    };
    if alias.col_aliases.as_ref().is_some_and(|c| !c.is_empty()) {
        return NotUnderstood::PartOf("column aliases", "the new row").refuse();
    }
    let at = clause.saturating_sub(2);
    let begins = |t: &crate::lex::Token| t.is_word(planner.sql(), "as");
    if !planner.tokens.get(at).is_some_and(begins) {
        return NotUnderstood::AliasOf("the new row").refuse();
    }
    let alias = alias.row_alias.to_string();
    Ok((Some(alias.trim_matches('`').to_string()), at))
}

/// The columns that the rows give. Returns also whether one of them is asked for a default that the
/// temporary table computes.
fn given_columns(
    planner: &mut Planner<'_>,
    table: &Arc<Table>,
    indexes: &[usize],
    rows: &[Vec<Expr>],
) -> Planned<(Vec<WrittenColumn>, bool)> {
    let (mut columns, mut asked) = (Vec::new(), false);
    for (n, &index) in indexes.iter().enumerate() {
        let column = &table.columns[index];
        if column.generated {
            return NotUnderstood::GeneratedValue.refuse();
        }
        let mut of_column = rows.iter().filter_map(|row| row.get(n));
        let is_default = of_column.any(crate::write::is_default);
        asked |= is_default && column.computed_default().is_some();
        if is_default && !column.auto_increment && !has_simple_default(planner, table, index) {
            let path = format!("{}.{}.{}", table.database, table.name, column.name);
            return refuse(&errors::NOT_CONSTANT, path);
        }
        columns.push(written_column(planner, table, index)?);
    }
    Ok((columns, asked))
}

/// The columns that are given, where their values stand, and the values.
pub(super) type Given = (Vec<usize>, NewValues, Vec<Vec<Expr>>);

/// `(a, b) VALUES (1, 2), (3, 4)`, between the table's name and the clause.
pub(super) fn rows(
    planner: &Planner<'_>,
    insert: &Insert,
    query: &Query,
    table: &Arc<Table>,
    (mut at, clause): (usize, usize),
) -> Planned<Given> {
    let SetExpr::Values(values) = query.body.as_ref() else {
        return NotUnderstood::Clause("VALUES").refuse();
    };
    if values.explicit_row
        || query.with.is_some()
        || query.order_by.is_some()
        || query.limit_clause.is_some()
        || !query.locks.is_empty()
    {
        return NotUnderstood::Clause("VALUES ROW").refuse();
    }
    let mut indexes = Vec::new();
    if insert.columns.is_empty() {
        let shown = |i: &usize| !table.columns[*i].invisible;
        indexes.extend((0..table.columns.len()).filter(shown));
    }
    for column in &insert.columns {
        let column = column.0.last().and_then(|p| p.as_ident());
        let name = column.map_or("", |c| c.value.as_str());
        let index = position(table, name);
        indexes.push(index.ok_or_else(|| planner.unknown_in(name, Place::InsertInto))?);
    }
    if planner.tokens.get(at).is_some_and(|t| t.is(b'(')) {
        at = planner.closing(at)? + 1;
    }
    let word = |w: &str| {
        let token = planner.tokens.get(at);
        token.is_some_and(|t| t.is_word(planner.sql(), w))
    };
    if at >= clause || !(word("values") || word("value")) {
        return NotUnderstood::Clause("VALUES").refuse();
    }
    let rows: Vec<Vec<Expr>> = values.rows.iter().map(|r| r.content.clone()).collect();
    if insert.columns.is_empty() && rows.first().is_some_and(Vec::is_empty) {
        // every column gets its default
        indexes.clear();
    }
    if let Some(n) = rows.iter().position(|row| row.len() != indexes.len()) {
        return Err(Refusal::column_count(n + 1));
    }
    Ok((indexes, NewValues::Rows(at), rows))
}

/// `SET a = 1, b = 2`
pub(super) fn set(
    planner: &Planner<'_>,
    insert: &Insert,
    table: &Arc<Table>,
    clause: usize,
) -> Planned<Given> {
    let sql = planner.sql();
    let from = planner.tokens.iter().position(|t| t.is_word(sql, "set"));
    let Some(from) = from.filter(|from| *from < clause) else {
        return NotUnderstood::Clause("SET").refuse();
    };
    let parts = planner.split_commas(from + 1..clause);
    if parts.len() != insert.assignments.len() {
        return NotUnderstood::Clause("SET").refuse();
    }
    let own = own(table);
    let (mut indexes, mut places, mut row) = (Vec::new(), Vec::new(), Vec::new());
    for (assignment, part) in insert.assignments.iter().zip(parts) {
        let (_, index) = assigned_column(planner, assignment, &own, Place::InsertInto)?;
        let tokens = planner.tokens.get(part.clone()).unwrap_or_default();
        let equals = tokens.iter().position(|t| t.is(b'='));
        let Some(equals) = equals.filter(|_| !indexes.contains(&index)) else {
            return NotUnderstood::Assignment.refuse();
        };
        indexes.push(index);
        places.push((part.start + equals + 1, part.end));
        row.push(assignment.value.clone());
    }
    Ok((indexes, NewValues::Set(places), vec![row]))
}

fn own(table: &Arc<Table>) -> [Own; 1] {
    [Own {
        name: table.name.clone(),
        aliased: false,
        table: Arc::clone(table),
    }]
}

fn index_of(table: &Table, name: &str) -> Planned<usize> {
    position(table, name).ok_or_else(|| Refusal::new(&errors::UNKNOWN_COLUMN, format!("'{name}'")))
}

/// The first token of the statement's own ON DUPLICATE KEY UPDATE, and the end of the statement.
fn clause(planner: &Planner<'_>) -> Planned<(usize, usize)> {
    let sql = planner.sql();
    let words = ["on", "duplicate", "key", "update"];
    let found = planner.tokens.windows(words.len()).rposition(|tokens| {
        let mut pairs = tokens.iter().zip(words);
        pairs.all(|(token, word)| token.is_word(sql, word))
    });
    let end = planner.tokens.iter().rposition(|t| !t.is(b';'));
    match (found, end) {
        (Some(clause), Some(end)) => Ok((clause, end + 1)),
        _ => NotUnderstood::Clause("ON DUPLICATE KEY UPDATE").refuse(),
    }
}

/// A value of a new row: no column, no query.
pub(super) fn check_value(value: &Expr) -> Planned<()> {
    struct Columns;
    impl Visitor for Columns {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let is_column = match expr {
                Expr::Identifier(name) => {
                    name.quote_style.is_some() || !name.value.starts_with('@')
                }
                Expr::CompoundIdentifier(_) | Expr::CompoundFieldAccess { .. } => true,
                _ => false,
            };
            match is_column {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    check_calls(value)?;
    match visit(value, &mut Columns).is_break() {
        true => NotUnderstood::Within("a column", "a new row's values").refuse(),
        false => Ok(()),
    }
}

/// Only functions that may run on the engine, and no query.
fn check_calls(expr: &Expr) -> Planned<()> {
    let mut checked = Checked { refused: None };
    let _ = visit(expr, &mut checked);
    checked.refused.map_or(Ok(()), Err)
}

/// Whether tiers 1 and 2 can do the clause for rows of literals.
pub(super) fn is_simple(
    planner: &mut Planner<'_>,
    list: &[Assignment],
    table: &Arc<Table>,
) -> bool {
    if !table.is_protected() {
        return true;
    }
    let mut scope = Scope::inside(None);
    scope.sources.push(scope::Source {
        name: table.name.clone(),
        database: Some(table.database.clone()),
        table: Some(Arc::clone(table)),
        exports: None,
    });
    let mut upsert = Upsert {
        target: String::new(),
        rows: Vec::new(),
        folded: None,
        columns: Vec::new(),
        constants: Vec::new(),
        assigned: Vec::new(),
    };
    let tried = planner.tried(|p| p.on_duplicate(list, &scope, table, None, false, &mut upsert));
    // nothing of the trial stays
    planner.insert_only = None;
    planner.surplus_values = 0;
    planner.unfilled.take().is_none() && tried.is_some()
}

/// Refuses names that the query's own tables may have, too: servers take them for ambiguous. The
/// name in `VALUES(c)` is the target's.
pub(super) fn refuse_ambiguous(
    list: &[Assignment],
    query: &Query,
    references: &[Reference],
) -> Planned<()> {
    /// Whether there is something else than a base table.
    struct Others(bool);
    impl Visitor for Others {
        type Break = ();
        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            for item in &select.from {
                let joined = item.joins.iter().map(|j| &j.relation);
                self.0 |= std::iter::once(&item.relation)
                    .chain(joined)
                    .any(|f| !matches!(f, TableFactor::Table { .. }));
            }
            ControlFlow::Continue(())
        }
    }
    let mut others = Others(query.with.is_some());
    let _ = visit(query, &mut others);
    struct Bare<'r>(&'r [Reference], bool);
    impl Visitor for Bare<'_> {
        type Break = String;
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
            match expr {
                Expr::Identifier(name)
                    if !name.value.starts_with('@')
                        && (self.1
                            || self.0.iter().any(|r| r.table.column(&name.value).is_some())) =>
                {
                    ControlFlow::Break(name.value.clone())
                }
                Expr::CompoundIdentifier(parts) => {
                    let table = parts.len().checked_sub(2).and_then(|n| parts.get(n));
                    let is_of_query = |r: &Reference| {
                        let name = r.alias.as_ref().unwrap_or(&r.table.name);
                        table.is_some_and(|t| same_name(&t.value, name))
                    };
                    match self.0.iter().any(is_of_query) {
                        true => ControlFlow::Break(
                            parts
                                .iter()
                                .map(|p| p.value.as_str())
                                .collect::<Vec<_>>()
                                .join("."),
                        ),
                        false => ControlFlow::Continue(()),
                    }
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    for assignment in list {
        let value = without_new_values(&assignment.value);
        let mut bare = Bare(references, others.0);
        if let ControlFlow::Break(name) = visit(&value, &mut bare) {
            let about = format!(
                "column {name} (write the table's name before it, and give the query's table another)"
            );
            return refuse(&errors::AMBIGUOUS, about);
        }
    }
    Ok(())
}

/// The expression with NULL for each `VALUES(c)`.
fn without_new_values(expr: &Expr) -> Expr {
    use sqlparser::ast::{Value, VisitMut, VisitorMut};
    struct Remover;
    impl VisitorMut for Remover {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if let Expr::Function(function) = expr
                && new_value(function).is_some()
            {
                *expr = Expr::value(Value::Null);
            }
            ControlFlow::Continue(())
        }
    }
    let mut expr = expr.clone();
    let _ = VisitMut::visit(&mut expr, &mut Remover);
    expr
}

/// The column in `VALUES(c)`.
fn new_value(function: &Function) -> Option<&str> {
    if !matches!(
        Planner::function_name(function).as_str(),
        "values" | "value"
    ) {
        return None;
    }
    sole_name(function)
}

fn sole_name(function: &Function) -> Option<&str> {
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(name)))] => Some(&name.value),
        _ => None,
    }
}

/// What an expression of the clause reads.
struct Clause<'t> {
    table: &'t Table,
    alias: Option<&'t str>,
    /// Columns whose values nobody knows before the server has stored the row.
    unknown: &'t [usize],
    given: Vec<usize>,
}

impl Clause<'_> {
    fn of_new_row(&mut self, name: &str) -> Planned<()> {
        let index = self.known(name)?;
        let column = &self.table.columns[index];
        if column.auto_increment {
            return NotUnderstood::NewNumber.refuse();
        }
        if column.protection.is_none() && !self.given.contains(&index) {
            self.given.push(index);
        }
        Ok(())
    }

    fn known(&self, name: &str) -> Planned<usize> {
        let index = index_of(self.table, name)?;
        let column = &self.table.columns[index];
        if column.generated || self.unknown.contains(&index) {
            return NotUnderstood::ComputedColumn(column.name.clone()).refuse();
        }
        Ok(index)
    }

    fn expression(&mut self, expr: &Expr) -> Planned<()> {
        let is = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
        match expr {
            Expr::Identifier(name) if name.quote_style.is_none() && name.value.starts_with('@') => {
                Ok(())
            }
            Expr::Identifier(name) => self.known(&name.value).map(|_| ()),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [row, column] if self.alias.is_some_and(|a| is(a, &row.value)) => {
                    self.of_new_row(&column.value)
                }
                [table, column] if is(&table.value, &self.table.name) => {
                    self.known(&column.value).map(|_| ())
                }
                [database, table, column]
                    if is(&database.value, &self.table.database)
                        && is(&table.value, &self.table.name) =>
                {
                    self.known(&column.value).map(|_| ())
                }
                _ => NotUnderstood::Within("a column of another table", "ON DUPLICATE KEY UPDATE")
                    .refuse(),
            },
            Expr::Function(function) => match new_value(function) {
                Some(name) => self.of_new_row(name),
                None => is_call_allowed(function),
            },
            Expr::CompoundFieldAccess { .. } => NotUnderstood::Name.refuse(),
            Expr::MatchAgainst { .. } => NotUnderstood::Clause("MATCH").refuse(),
            _ => Ok(()),
        }
    }
}

impl Visitor for Clause<'_> {
    type Break = Refusal;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Refusal> {
        ControlFlow::Break(Refusal::from(NotUnderstood::Within(
            "a query",
            "ON DUPLICATE KEY UPDATE",
        )))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Refusal> {
        match self.expression(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(refusal) => ControlFlow::Break(refusal),
        }
    }
}

/// The columns without a default that a new row leaves out and the clause assigns. MariaDB does not
/// miss their values, unless rows come from a query: a row that meets none gets 0 or an empty text.
/// A date would be a zero date, which depends on the SQL mode: there the server is left to miss it.
fn not_missed(
    planner: &mut Planner<'_>,
    list: &[Assignment],
    table: &Arc<Table>,
    given: &[WrittenColumn],
) -> Planned<Vec<WrittenColumn>> {
    if planner.request.settings.family != Family::MariaDb {
        return Ok(Vec::new());
    }
    let own = own(table);
    let mut columns = Vec::new();
    for assignment in list {
        let (_, index) = assigned_column(planner, assignment, &own, Place::Update)?;
        let is_new = |c: &WrittenColumn| c.index != index;
        if is_missed(&table.columns[index]) && given.iter().chain(&columns).all(is_new) {
            columns.push(written_column(planner, table, index)?);
        }
    }
    Ok(columns)
}

/// Whether a row must name a value, other than a date, for the column.
fn is_missed(column: &Column) -> bool {
    let given = column.auto_increment || column.generated;
    let simple = |ty: &SqlType| {
        !ty.is_temporal() && !matches!(ty.kind, Kind::Enum(_) | Kind::Json | Kind::Year)
    };
    column.is_required() && !given && column.sql_type.as_ref().is_some_and(simple)
}

/// Plans the clause. `given` are the columns of the new rows, `tail` the number of the clause's
/// tokens.
pub(super) fn met(
    planner: &mut Planner<'_>,
    list: &[Assignment],
    table: &Arc<Table>,
    alias: Option<&str>,
    given: &[WrittenColumn],
    tail: usize,
) -> Planned<MetRows> {
    let is_unknown = |i: &usize| {
        let column = &table.columns[*i];
        let left_out = !given.iter().any(|c| c.index == *i);
        let plain = !column.generated && !column.auto_increment;
        plain && left_out && !has_simple_default(planner, table, *i)
    };
    let unknown: Vec<usize> = (0..table.columns.len()).filter(is_unknown).collect();
    let mut names = vec![(table.name.clone(), Arc::clone(table))];
    if let Some(alias) = alias {
        if same_name(alias, &table.name) {
            return refuse(&errors::AMBIGUOUS, format!("table {alias}"));
        }
        names.push((alias.to_string(), Arc::clone(table)));
    }
    let mut clause = Clause {
        table,
        alias,
        unknown: &unknown,
        given: Vec::new(),
    };
    let own = own(table);
    let (mut indexes, mut told) = (Vec::new(), None);
    for assignment in list {
        let (_, index) = assigned_column(planner, assignment, &own, Place::Update)?;
        let column = &table.columns[index];
        let path = format!("{}.{}.{}", table.database, table.name, column.name);
        if indexes.contains(&index) || told == Some(index) {
            return NotUnderstood::AssignedTwice(path).refuse();
        }
        if column.generated {
            return NotUnderstood::AssignmentTo("a generated column").refuse();
        }
        if column.protection.is_none() && is_told(&assignment.value, &column.name) {
            told = Some(index);
            continue;
        }
        if crate::write::is_default(&assignment.value) {
            if !has_simple_default(planner, table, index) {
                return refuse(&errors::NOT_CONSTANT, path);
            }
        } else if let ControlFlow::Break(refusal) = visit(&assignment.value, &mut clause) {
            return Err(refusal);
        }
        let handed = Handed::of(&assignment.value, &names);
        if column.protection.is_none() && handed.is_handed(&assignment.value) {
            return refuse(&errors::HANDED_ON, path);
        }
        indexes.push(index);
    }
    let by_itself = crate::write::set_by_change(table, |index| indexes.contains(&index));
    indexes.extend(by_itself);
    let given = clause.given;
    let mut read = reads::whole(planner, table)?;
    let names = met_names(planner, table, &indexes)?;
    lock_by_key(&mut read, names)?;
    let columns = indexes
        .into_iter()
        .map(|index| written_column(planner, table, index))
        .collect::<Planned<Vec<_>>>()?;
    Ok(MetRows {
        read,
        columns,
        told,
        given,
        tail,
        unknown,
        values: None,
    })
}

/// `LAST_INSERT_ID(id)` as the new value of `id`.
fn is_told(expr: &Expr, column: &str) -> bool {
    match expr {
        Expr::Function(function) => {
            Planner::function_name(function) == "last_insert_id"
                && sole_name(function).is_some_and(|name| same_name(name, column))
        }
        _ => false,
    }
}
