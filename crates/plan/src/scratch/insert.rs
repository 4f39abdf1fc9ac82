//! Tier 3 for `INSERT`: rows of a query here, rows of the statement in `given.rs` and `upsert.rs`.
//!
//! The rows of `INSERT … SELECT` go into a temporary table with the target's columns, which
//! converts them. From there they come back as literals, and `INSERT … VALUES` of them is planned
//! and run like a client's.

use std::sync::Arc;

use onionskin_schema::Table;
use onionskin_value::Family;
use sqlparser::ast::{Insert, ObjectName, OnInsert, Query, SetExpr, TableObject};

use super::Scratch;
use super::given::given;
use super::handed::Handed;
use super::reads;
use super::upsert;
use super::walk::{Found, walk_source};
use super::write::{SHARED, by_name, defaulted, written_column};
use crate::errors::{self, NotUnderstood};
use crate::plan::{Action, Effect, MetRows, NewRows, ScratchWrite, WrittenColumn};
use crate::planner::{Known, Planned, Planner, refuse};
use crate::scope::position;
use crate::unknown::Place;

/// Plans an `INSERT`. `None`: its target is no table.
pub(crate) fn insert(planner: &mut Planner<'_>, insert: &Insert) -> Planned<Option<Action>> {
    let TableObject::TableName(name) = &insert.table else {
        return Ok(None);
    };
    let changes_met = matches!(insert.on, Some(OnInsert::DuplicateKeyUpdate(_)));
    let planned = match &insert.source {
        Some(query) if !matches!(query.body.as_ref(), SetExpr::Values(_)) => {
            insert_select(planner, insert, name, query)
        }
        Some(_) if changes_met => upsert::of_values(planner, insert),
        None if changes_met && !insert.assignments.is_empty() => upsert::of_values(planner, insert),
        _ => given(planner, insert),
    };
    planned.map(Some)
}

/// The parts of an `INSERT … SELECT`: the first token of each, and one past the last.
struct Places {
    head: (usize, usize),
    query: (usize, usize),
    tail: (usize, usize),
}

fn insert_select(
    planner: &mut Planner<'_>,
    insert: &Insert,
    name: &ObjectName,
    query: &Query,
) -> Planned<Action> {
    check_clauses(planner, insert, query)?;
    let (_, table_name, known) = planner.table(name)?;
    let Known::Table(table) = known else {
        return NotUnderstood::UnknownTable(table_name).refuse();
    };
    let Some(last) = name.0.last().and_then(|p| p.as_ident()) else {
        return NotUnderstood::PartOf("the target", "INSERT").refuse();
    };
    let head = planner.token_at(planner.offset(last.span))? + 1;
    let (indexes, from) = column_list(planner, insert, &table, head)?;
    let places = places(planner, insert, head, from)?;
    let variables = reads::variables(planner)?;
    let found = walk_source(planner, query)?;
    if found.repeats && planner.request.settings.family == Family::MySql {
        return NotUnderstood::UsedTwice("a part of WITH").refuse();
    }
    let handed = Handed::of(query, &by_name(&found)).columns(query);
    let mut columns = filled_columns(planner, &table, indexes, &handed)?;
    let given = columns.len();
    columns.extend(defaulted(planner, &table, &columns, false)?);
    let mut new = NewRows {
        table,
        columns,
        given,
        head: places.head,
        query: places.query,
        tail: places.tail,
        ignore: insert.ignore,
        replaces: insert.replace_into,
        load: None,
        met: None,
        values: None,
    };
    new.met = met_rows(planner, insert, query, &found, &new)?.map(Box::new);
    let (from, to) = places.query;
    let (mut reads, renamed) = reads::reads(planner, found.references, from..to)?;
    for read in &mut reads {
        read.lock = SHARED;
    }
    Ok(Action::ScratchWrite(Box::new(ScratchWrite {
        scratch: Scratch {
            reads,
            variables,
            renamed,
            finds_more: false,
        },
        effect: Effect::Insert(Box::new(new)),
    })))
}

/// Refuses clauses that are not understood.
fn check_clauses(planner: &Planner<'_>, insert: &Insert, query: &Query) -> Planned<()> {
    if insert.returning.is_some() {
        return NotUnderstood::Beside("RETURNING", "INSERT … SELECT").refuse();
    }
    if insert.insert_alias.is_some()
        || insert.table_alias.is_some()
        || insert.partitioned.is_some()
        || insert.overwrite
        || insert.has_table_keyword
        || !query.locks.is_empty()
    {
        return NotUnderstood::ClauseOf("INSERT … SELECT").refuse();
    }
    // beside SELECT it means nothing; beside VALUES, an error for most engines
    let sql = planner.sql();
    let mut words = planner.tokens.iter().take(4);
    if words.any(|t| t.is_word(sql, "delayed")) {
        return NotUnderstood::Clause("INSERT DELAYED … SELECT").refuse();
    }
    match &insert.on {
        None | Some(OnInsert::DuplicateKeyUpdate(_)) => Ok(()),
        Some(_) => NotUnderstood::Clause("ON CONFLICT").refuse(),
    }
}

/// The columns that the query's go into, and the token behind the list of them. `head`: the token
/// behind the table's name.
fn column_list(
    planner: &Planner<'_>,
    insert: &Insert,
    table: &Table,
    head: usize,
) -> Planned<(Vec<usize>, usize)> {
    if insert.columns.is_empty() {
        let is = |at: usize, byte: u8| planner.tokens.get(at).is_some_and(|t| t.is(byte));
        let is_empty_list = is(head, b'(') && is(head + 1, b')');
        let behind = if is_empty_list { head + 2 } else { head };
        let shown = |i: &usize| !table.columns[*i].invisible;
        return Ok(((0..table.columns.len()).filter(shown).collect(), behind));
    }
    let mut indexes = Vec::new();
    for column in &insert.columns {
        let column = column.0.last().and_then(|p| p.as_ident());
        let name = column.map_or("", |c| c.value.as_str());
        match position(table, name) {
            Some(index) => indexes.push(index),
            None => return Err(planner.unknown_in(name, Place::InsertInto)),
        }
    }
    Ok((indexes, planner.closing(head)? + 1))
}

/// Finds the query, which begins at the token `from`, and what stands behind it.
fn places(planner: &Planner<'_>, insert: &Insert, head: usize, from: usize) -> Planned<Places> {
    let sql = planner.sql();
    let end = planner.tokens.iter().rposition(|t| !t.is(b';'));
    let end = end.map_or(0, |i| i + 1);
    let mut words = planner.tokens.iter();
    let tail = match insert.on {
        None => end,
        // ON stands before it
        Some(_) => words
            .rposition(|t| t.is_word(sql, "duplicate"))
            .and_then(|i| i.checked_sub(1))
            .unwrap_or(end),
    };
    if tail < from || from >= end {
        return NotUnderstood::PartOf("the query", "INSERT … SELECT").refuse();
    }
    Ok(Places {
        head: (0, head),
        query: (from, tail),
        tail: (tail, end),
    })
}

/// The columns that the query fills. `handed` says which of the query's columns are made from
/// protected ones: those may not be stored in plain columns.
fn filled_columns(
    planner: &mut Planner<'_>,
    table: &Arc<Table>,
    indexes: Vec<usize>,
    handed: &[bool],
) -> Planned<Vec<WrittenColumn>> {
    let mut columns = Vec::new();
    for (n, index) in indexes.into_iter().enumerate() {
        let is_handed = handed.get(n).or(handed.last()).is_some_and(|h| *h);
        let column = &table.columns[index];
        if is_handed && column.protection.is_none() {
            let path = format!("{}.{}.{}", table.database, table.name, column.name);
            return refuse(&errors::HANDED_ON, path);
        }
        columns.push(written_column(planner, table, index)?);
    }
    Ok(columns)
}

/// What becomes of rows that have a new row's key. `None`: the server can do that by itself, or
/// there is no ON DUPLICATE KEY UPDATE.
fn met_rows(
    planner: &mut Planner<'_>,
    insert: &Insert,
    query: &Query,
    found: &Found,
    new: &NewRows,
) -> Planned<Option<MetRows>> {
    let Some(OnInsert::DuplicateKeyUpdate(list)) = &insert.on else {
        return Ok(None);
    };
    let table = &new.table;
    upsert::refuse_ambiguous(list, query, &found.references)?;
    if upsert::is_simple(planner, list, table) {
        return Ok(None);
    }
    let mut indexes = new.columns.iter().map(|c| c.index);
    if indexes.any(|i| table.columns[i].generated) {
        return NotUnderstood::GeneratedValue.refuse();
    }
    if insert.ignore {
        return upsert::IGNORED.refuse();
    }
    let (tail, end) = new.tail;
    upsert::met(planner, list, table, None, &new.columns, end - tail).map(Some)
}
