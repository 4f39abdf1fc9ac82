//! Tier 3 for UPDATE and DELETE, and what all statements that change tables share: the change is
//! made on the scratch engine, and what it made of the rows is written.
//!
//! The tables are read as for a query, but with locks: those that are written to FOR UPDATE, the
//! others as the server itself reads them in such a statement, LOCK IN SHARE MODE. The temporary
//! tables of those that are written to have two more columns, which no `*` shows: the number of the
//! row, by which the proxy knows its key, and a mark that the engine sets on rows that change
//! (`ON UPDATE CURRENT_TIMESTAMP`). The statement runs there as it stands, so that everything about
//! it is the server's own doing: the order of assignments, conversions and their warnings, ORDER BY
//! and LIMIT, how many rows it finds and changes. Then rows with the mark are sealed and written by
//! their keys, rows that are gone are deleted by theirs.
//!
//! Nothing that is made from a protected column may be stored in a plain one (`handed.rs`).

use std::collections::HashMap;
use std::sync::Arc;

use onionskin_schema::{Column, Default, KeyRole, Table, same_name};
use onionskin_value::Family;
use sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr, FromTable, Ident, JoinConstraint, ObjectName,
    TableFactor, TableWithJoins, Update,
};

use super::handed::Handed;
use super::reads::{self, in_the_clear};
use super::row_names::{RowNames, row_names};
use super::walk::{Found, Reference, Written as Names, walk_change};
use super::{Carried, NamedBy, Scratch, ScratchRead};
use crate::errors::{self, NotUnderstood};
use crate::lex::TokenKind;
use crate::plan::{Action, ColumnUse};
pub(super) use crate::plan::{Effect, NewRows, ScratchWrite, Written, WrittenColumn};
use crate::planner::{Planned, Planner, TextBuilder, quoted, refuse};
use crate::scope::{join_constraint, position};
use crate::unknown::Place;
use crate::visit::{Visit, visit};

pub(super) const FOR_UPDATE: &str = " FOR UPDATE";
pub(super) const SHARED: &str = " LOCK IN SHARE MODE";

/// A table of the statement's own list.
pub(super) struct Own {
    pub name: String,
    /// It has an alias, so that its database does not qualify it.
    pub aliased: bool,
    pub table: Arc<Table>,
}

fn qualifier(reference: &Reference) -> String {
    let alias = reference.alias.clone();
    alias.unwrap_or_else(|| reference.table.name.clone())
}

pub(super) fn by_name(found: &Found) -> Vec<(String, Arc<Table>)> {
    let references = found.references.iter();
    references
        .map(|r| (qualifier(r), Arc::clone(&r.table)))
        .collect()
}

fn own(found: &Found) -> Vec<Own> {
    let own = found.references.iter().take(found.own);
    own.map(|r| Own {
        name: qualifier(r),
        aliased: r.alias.is_some(),
        table: Arc::clone(&r.table),
    })
    .collect()
}

/// Plans an `UPDATE`.
pub(crate) fn update(planner: &mut Planner<'_>, update: &Update) -> Planned<Action> {
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
        limit: _,
    } = update;
    if from.is_some() || returning.is_some() || output.is_some() || or.is_some() {
        return NotUnderstood::ClauseOf("UPDATE").refuse();
    }
    let variables = reads::variables(planner)?;
    let tables = std::slice::from_ref(table);
    let mut found = walk_change(planner, update, tables, selection.as_ref())?;
    let handed = Handed::of(update, &by_name(&found));
    let own = own(&found);
    let ignores = planner.tokens.iter().take(4).any(|t| {
        let sql = planner.sql();
        t.is_word(sql, "ignore")
    });
    let mut assigned: Vec<(usize, Vec<usize>)> = Vec::new();
    for assignment in assignments {
        let (place, index) = assigned_column(planner, assignment, &own, Place::Set)?;
        let table = Arc::clone(&own[place].table);
        let column = &table.columns[index];
        let path = format!("{}.{}.{}", table.database, table.name, column.name);
        if column.protection.is_none() && handed.is_handed(&assignment.value) {
            return refuse(&errors::HANDED_ON, path);
        }
        if crate::write::is_default(&assignment.value)
            && !has_simple_default(planner, &table, index)
        {
            return refuse(&errors::NOT_CONSTANT, path);
        }
        if ignores && column.key != KeyRole::None {
            return NotUnderstood::IgnoreOfKey.refuse();
        }
        match assigned.iter_mut().find(|(n, _)| *n == place) {
            Some((_, columns)) if columns.contains(&index) => {}
            Some((_, columns)) => columns.push(index),
            None => assigned.push((place, vec![index])),
        }
    }
    // of several tables, the rows that go together are found first and written then, in no such
    // order
    let order = match order_by.is_empty() || own.len() > 1 {
        true => None,
        false => order_tokens(planner),
    };
    let mut written = Vec::new();
    for (place, mut columns) in assigned {
        let table = Arc::clone(&own[place].table);
        let by_itself = crate::write::set_by_change(&table, |index| columns.contains(&index));
        columns.extend(&by_itself);
        found.references[place].written = by_itself;
        let moves = columns
            .iter()
            .any(|&c| table.columns[c].key != KeyRole::None);
        let columns = columns
            .into_iter()
            .map(|index| written_column(planner, &table, index))
            .collect::<Planned<Vec<_>>>()?;
        written.push(Written {
            read: place,
            columns,
            moves,
            order,
            ignores,
        });
    }
    let targets: Vec<usize> = written.iter().map(|w| w.read).collect();
    if own.len() > 1 {
        check_read(assignments, &own, &targets)?;
        check_read(selection, &own, &targets)?;
    }
    let scratch = change(planner, found, variables, &targets, false)?;
    Ok(Action::ScratchWrite(Box::new(ScratchWrite {
        scratch,
        effect: Effect::Update(written),
    })))
}

/// Plans a `DELETE`.
pub(crate) fn delete(planner: &mut Planner<'_>, delete: &Delete) -> Planned<Action> {
    let Delete {
        delete_token: _,
        optimizer_hints: _,
        tables,
        from,
        using,
        selection,
        returning,
        output,
        order_by: _,
        limit: _,
    } = delete;
    if returning.is_some() || output.is_some() || using.is_some() {
        return NotUnderstood::ClauseOf("DELETE").refuse();
    }
    let variables = reads::variables(planner)?;
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = from;
    let found = walk_change(planner, delete, from, selection.as_ref())?;
    let own = own(&found);
    let mut targets = Vec::new();
    for name in tables {
        targets.push(deleted_table(name, &own)?);
    }
    if targets.is_empty() {
        if own.len() != 1 {
            return NotUnderstood::PartOf("the target", "DELETE").refuse();
        }
        targets.push(0);
    }
    targets.sort_unstable();
    targets.dedup();
    if own.len() > 1 || !tables.is_empty() {
        check_read(selection, &own, &targets)?;
        check_read(&conditions(from)?, &own, &targets)?;
    }
    let scratch = change(planner, found, variables, &targets, true)?;
    let written = targets.into_iter().map(|read| Written {
        read,
        columns: Vec::new(),
        moves: false,
        order: None,
        ignores: false,
    });
    Ok(Action::ScratchWrite(Box::new(ScratchWrite {
        scratch,
        effect: Effect::Delete(written.collect()),
    })))
}

/// Servers do not change a table that a subquery reads in a statement over several tables (1093).
/// The engine would not notice: other references to the table have names of their own there.
fn check_read(expressions: &impl Visit, own: &[Own], targets: &[usize]) -> Planned<()> {
    let mut read = Names(Vec::new());
    let _ = visit(expressions, &mut read);
    let names = read.0.iter().filter_map(|name| name.0.last()?.as_ident());
    for name in names {
        let is = |n: &usize| same_name(&own[*n].table.name, &name.value);
        if targets.iter().any(is) {
            return NotUnderstood::ChangedAndRead.refuse();
        }
    }
    Ok(())
}

/// The conditions of joins.
fn conditions(from: &[TableWithJoins]) -> Planned<Vec<Expr>> {
    let mut found = Vec::new();
    for item in from {
        let relations = item.joins.iter().map(|join| &join.relation);
        for relation in std::iter::once(&item.relation).chain(relations) {
            if let TableFactor::NestedJoin {
                table_with_joins, ..
            } = relation
            {
                found.extend(conditions(std::slice::from_ref(table_with_joins))?);
            }
        }
        for join in &item.joins {
            let Some(constraint) = join_constraint(&join.join_operator) else {
                return NotUnderstood::JoinKind.refuse();
            };
            if let JoinConstraint::On(condition) = constraint {
                found.push(condition.clone());
            }
        }
    }
    Ok(found)
}

/// The reads of a statement that changes these tables of its own list. `takes_twice`: one table
/// may be changed by two names.
fn change(
    planner: &mut Planner<'_>,
    found: Found,
    variables: Vec<Vec<u8>>,
    targets: &[usize],
    takes_twice: bool,
) -> Planned<Scratch> {
    let mysql = planner.request.settings.family == Family::MySql;
    if found.repeats && mysql {
        return NotUnderstood::UsedTwice("a part of WITH").refuse();
    }
    let mut keys = HashMap::new();
    for &target in targets {
        let table = Arc::clone(&found.references[target].table);
        let names = row_names(planner, &table)?;
        for (n, other) in found.references.iter().enumerate() {
            let same = n != target
                && same_name(&other.table.database, &table.database)
                && same_name(&other.table.name, &table.name);
            // a row that is deleted by two names is found again by its key
            let is_found = takes_twice && names.by == NamedBy::Key;
            // MySQL has an error of its own (1093) for these. What a derived table reads it keeps
            // aside before it changes anything.
            let is_read_alone = mysql && n >= found.own && !other.in_derived;
            if same && (targets.contains(&n) && !is_found || is_read_alone) {
                return NotUnderstood::ChangedAndRead.refuse();
            }
        }
        keys.insert(target, names);
    }
    let all = 0..planner.tokens.len();
    let (mut reads, renamed) = reads::reads(planner, found.references, all)?;
    for (n, read) in reads.iter_mut().enumerate() {
        read.lock = SHARED;
        if let Some(key) = keys.remove(&n) {
            lock_by_key(read, key)?;
        }
    }
    Ok(Scratch {
        reads,
        variables,
        renamed,
        finds_more: false,
    })
}

/// Makes of a read one of a table that is written to.
pub(super) fn lock_by_key(read: &mut ScratchRead, names: RowNames) -> Planned<()> {
    read.lock = FOR_UPDATE;
    read.key = names.parts;
    read.named_by = names.by;
    // the key comes behind the columns
    let mut text = TextBuilder::default();
    text.sql(b"SELECT ");
    for c in &read.columns {
        let column = &read.table.columns[c.index];
        let sql = match (column.enc_name(), in_the_clear(column)) {
            (Some(sealed), _) => quoted(sealed),
            (None, Some((_, sql))) => sql,
            (None, None) => return refuse(&errors::INTERNAL, "a column that was read"),
        };
        text.sql(sql.as_bytes());
        text.sql(b", ");
    }
    text.sql(read.key.join(", ").as_bytes());
    text.sql(format!(" FROM {}", read.source).as_bytes());
    read.text = text.finish();
    read.fetch.truncate(read.columns.len());
    let plain = crate::plan::ResultItem::plain;
    read.fetch.extend(read.key.iter().map(|_| plain()));
    Ok(())
}

/// Which table of the statement's list, and which of its columns, an assignment means.
pub(super) fn assigned_column(
    planner: &Planner<'_>,
    assignment: &Assignment,
    own: &[Own],
    place: Place,
) -> Planned<(usize, usize)> {
    let AssignmentTarget::ColumnName(name) = &assignment.target else {
        return NotUnderstood::AssignmentTo("several columns").refuse();
    };
    let parts: Vec<&Ident> = name.0.iter().filter_map(|p| p.as_ident()).collect();
    let (tables, column): (Vec<usize>, &Ident) = match parts.as_slice() {
        [column] => ((0..own.len()).collect(), column),
        [table, column] => (named(own, None, &table.value), column),
        [database, table, column] => (named(own, Some(&database.value), &table.value), column),
        _ => return NotUnderstood::Assignment.refuse(),
    };
    let with: Vec<(usize, usize)> = tables
        .into_iter()
        .filter_map(|n| Some((n, position(&own[n].table, &column.value)?)))
        .collect();
    match with.as_slice() {
        [one] => Ok(*one),
        [] => {
            let written: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
            Err(planner.unknown_in(&written.join("."), place))
        }
        _ => refuse(&errors::AMBIGUOUS, format!("column {}", column.value)),
    }
}

/// The tables of the list with this name.
fn named(own: &[Own], database: Option<&str>, name: &str) -> Vec<usize> {
    let is = |o: &Own| {
        same_name(&o.name, name)
            && database.is_none_or(|d| !o.aliased && same_name(&o.table.database, d))
    };
    (0..own.len()).filter(|&n| is(&own[n])).collect()
}

fn deleted_table(name: &ObjectName, own: &[Own]) -> Planned<usize> {
    let parts: Vec<&Ident> = name.0.iter().filter_map(|p| p.as_ident()).collect();
    let found = match parts.as_slice() {
        [table] => named(own, None, &table.value),
        [database, table] => named(own, Some(&database.value), &table.value),
        _ => Vec::new(),
    };
    match found.as_slice() {
        [one] => Ok(*one),
        _ => NotUnderstood::PartOf("the target", "DELETE").refuse(),
    }
}

pub(super) fn written_column(
    planner: &mut Planner<'_>,
    table: &Arc<Table>,
    index: usize,
) -> Planned<WrittenColumn> {
    let column = &table.columns[index];
    let used = ColumnUse {
        table: Arc::clone(table),
        index,
    };
    let Some((carried, text)) = in_the_clear(column) else {
        return refuse(&errors::SCRATCH_TYPE, used.path());
    };
    let sql = planner.sql();
    if column.has_lost_default() && planner.tokens.iter().any(|t| t.is_word(sql, "default")) {
        // it would be NULL there, and is an error or an empty value
        let about = format!("{}, which has no default", used.path());
        return refuse(&errors::VALUE, about);
    }
    if column.protection.is_none() {
        return Ok(WrittenColumn {
            index,
            sealed: None,
            text,
            carried,
        });
    }
    let (carried, text) = match carried {
        // it is shown in UTC there
        Carried::Epoch => (Carried::Quoted, quoted(&column.name)),
        other => (other, text),
    };
    Ok(WrittenColumn {
        index,
        sealed: Some(planner.column_index(&used)),
        text,
        carried,
    })
}

/// Whether the temporary table can have the column's default.
pub(super) fn has_simple_default(planner: &Planner<'_>, table: &Table, index: usize) -> bool {
    let column = &table.columns[index];
    if column.auto_increment || column.generated {
        return false;
    }
    let family = planner.request.settings.family;
    match &column.default {
        // the server shows these otherwise than they are
        Some(Default::Server(text)) if is_shown_inexactly(column, text, family) => false,
        Some(Default::Server(text)) => match family {
            Family::MariaDb => !text.to_ascii_lowercase().contains("nextval"),
            Family::MySql => {
                !text.contains('(') || text.to_ascii_lowercase().starts_with("current_timestamp")
            }
        },
        _ => true,
    }
}

/// Whether the text of a default may not be the default: of a FLOAT some digits are shown, and on
/// MariaDB bytes that are no characters as `?`.
fn is_shown_inexactly(column: &Column, text: &str, family: Family) -> bool {
    column.sql_type.is_none_or(|ty| {
        let lossy = family == Family::MariaDb && text.contains(['?', '\u{fffd}']);
        ty.is_shown_inexactly() || ty.is_binary() && lossy
    })
}

/// The columns that new rows leave out and that the temporary table computes: protected ones whose
/// default is an expression, and beside these plain ones that take the present time, so that a
/// statement has one. `asked`: the rows ask for such a default by its word.
pub(super) fn defaulted(
    planner: &mut Planner<'_>,
    table: &Arc<Table>,
    given: &[WrittenColumn],
    asked: bool,
) -> Planned<Vec<WrittenColumn>> {
    let left_out = |i: &usize| !given.iter().any(|c| c.index == *i);
    let mut lost = (0..table.columns.len()).filter(|i| table.columns[*i].has_lost_default());
    if let Some(index) = lost.find(|i| asked || left_out(i)) {
        let about = format!("column {}, which has no default", table.columns[index].name);
        return refuse(&errors::VALUE, about);
    }
    let computed = |i: &usize| table.columns[*i].computed_default().is_some();
    let mut indexes: Vec<usize> = (0..table.columns.len())
        .filter(left_out)
        .filter(computed)
        .collect();
    if asked || !indexes.is_empty() {
        let present = |i: &usize| match &table.columns[*i].default {
            Some(Default::Server(text)) => {
                text.to_ascii_lowercase().starts_with("current_timestamp")
            }
            _ => false,
        };
        indexes.extend((0..table.columns.len()).filter(left_out).filter(present));
    }
    indexes
        .into_iter()
        .map(|index| written_column(planner, table, index))
        .collect()
}

/// The tokens of the statement's own ORDER BY, which stands outside of all parentheses.
fn order_tokens(planner: &Planner<'_>) -> Option<(usize, usize)> {
    let sql = planner.sql();
    let (mut depth, mut from) = (0usize, None);
    for (at, token) in planner.tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Punct(b'(') => depth += 1,
            TokenKind::Punct(b')') => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            _ if token.is_word(sql, "order") => from = Some(at),
            _ if token.is_word(sql, "limit") || token.is(b';') => {
                return from.map(|from| (from, at));
            }
            _ => {}
        }
    }
    from.map(|from| (from, planner.tokens.len()))
}
