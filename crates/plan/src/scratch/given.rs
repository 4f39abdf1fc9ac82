//! `INSERT … VALUES` and `INSERT … SET` whose values the scratch engine stores first.
//!
//! A literal in a form that the proxy does not convert (`'2001-1-1T1:01:01'` for a DATETIME, `1e+`
//! for an INT), an expression whose value is not of the column's type, the time for protected
//! columns and for others: the statement's rows go into a temporary table with the target's
//! columns, as those of `INSERT … SELECT` do, and come back as values of the columns' own types.

use sqlparser::ast::{Insert, TableObject};

use super::upsert::{check_value, rows, set};
use super::write::{Effect, NewRows, ScratchWrite, defaulted, has_simple_default, written_column};
use super::{Scratch, reads};
use crate::errors::{self, NotUnderstood};
use crate::plan::Action;
use crate::planner::{Known, Planned, Planner, refuse};

/// Plans one.
pub(super) fn given(planner: &mut Planner<'_>, insert: &Insert) -> Planned<Action> {
    let TableObject::TableName(name) = &insert.table else {
        return NotUnderstood::PartOf("the target", "INSERT").refuse();
    };
    let sql = planner.sql();
    let delayed = |t: &crate::lex::Token| t.is_word(sql, "delayed");
    if insert.returning.is_some()
        || insert.insert_alias.is_some()
        || insert.table_alias.is_some()
        || insert.partitioned.is_some()
        || insert.overwrite
        || insert.has_table_keyword
        || insert.on.is_some()
        || planner.tokens.iter().take(4).any(delayed)
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
    let end = planner.tokens.iter().rposition(|t| !t.is(b';'));
    let end = end.map_or(0, |i| i + 1);
    let (indexes, values, given) = match &insert.source {
        None => set(planner, insert, &table, end)?,
        Some(query) => rows(planner, insert, query, &table, (head, end))?,
    };
    let (mut columns, mut asked) = (Vec::new(), false);
    for (n, &index) in indexes.iter().enumerate() {
        let column = &table.columns[index];
        if column.generated {
            return NotUnderstood::GeneratedValue.refuse();
        }
        let mut of_column = given.iter().filter_map(|row| row.get(n));
        let is_default = of_column.any(crate::write::is_default);
        asked |= is_default && column.computed_default().is_some();
        if is_default && !column.auto_increment && !has_simple_default(planner, &table, index) {
            let path = format!("{}.{}.{}", table.database, table.name, column.name);
            return refuse(&errors::NOT_CONSTANT, path);
        }
        if columns
            .iter()
            .any(|c: &crate::plan::WrittenColumn| c.index == index)
        {
            return NotUnderstood::NamedTwice.refuse();
        }
        columns.push(written_column(planner, &table, index)?);
    }
    let count = columns.len();
    columns.extend(defaulted(planner, &table, &columns, asked)?);
    if columns.is_empty() {
        return NotUnderstood::Without("INSERT", "values").refuse();
    }
    for value in given.iter().flatten() {
        if !crate::write::is_default(value) {
            check_value(value)?;
        }
    }
    let scratch = Scratch {
        variables: reads::variables(planner)?,
        ..Scratch::default()
    };
    let new = NewRows {
        table,
        columns,
        given: count,
        head: (0, head),
        query: (0, 0),
        tail: (0, 0),
        ignore: insert.ignore,
        replaces: insert.replace_into,
        load: None,
        met: None,
        values: Some(values),
    };
    Ok(Action::ScratchWrite(Box::new(ScratchWrite {
        scratch,
        effect: Effect::Insert(Box::new(new)),
    })))
}
