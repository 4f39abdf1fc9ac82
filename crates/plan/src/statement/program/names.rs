//! What the names of a stored program mean, as far as they could be those of protected columns.

use std::collections::HashSet;
use std::sync::Arc;

use onionskin_schema::{Column, Default, DefaultLiteral, Table};
use onionskin_value::Charset;

use super::reader::{Reader, unsafe_part};
use crate::errors::{self, NotUnderstood, Refusal};
use crate::lex::TokenKind;
use crate::native::is_reserved;
use crate::planner::{Known, Planned, Request, identifier, refuse};
use crate::statement::near::program_databases;
use crate::statement::words::{may_be_one_name, named};
use crate::tenant::says_tenant;

/// Refuses a program that names a protected column, or writes rows that need values for one.
/// `trigger` is where the name of a trigger's table stands.
pub(super) fn check(
    request: &Request,
    r: &Reader,
    trigger: Option<usize>,
    near: &[Arc<Table>],
) -> Planned<()> {
    if let Some(view) = near.iter().find(|table| table.view) {
        return refuse(&errors::PROGRAM, format!("the view {}", view.name));
    }
    let mut judged = HashSet::new();
    if let Some(trigger) = trigger {
        row_names(request, r, trigger, &mut judged)?;
    }
    for insert in &r.inserts {
        let targets = tables_at(request, r, insert.target);
        for target in &targets {
            check_new_rows(target)?;
        }
        if let [target] = &targets[..] {
            for at in &insert.columns {
                // of `table.column` the table's name is looked at like any other
                must_be_plain(r, *at, [target])?;
                judged.insert(*at);
            }
        }
    }
    if r.updates {
        let mut columns = near.iter().flat_map(|table| table.protected_columns());
        if let Some((column, _)) = columns.find(|(column, _)| column.on_update) {
            let about = format!("UPDATE, beside column {} with ON UPDATE", column.name);
            return refuse(&errors::PROGRAM, about);
        }
    }
    must_keep_tenants(r, near)?;
    let is_unicode = matches!(
        request.settings.lex.charset,
        Charset::Utf8mb4 | Charset::Utf8mb3
    );
    for (at, token) in r.tokens.iter().enumerate() {
        if !matches!(token.kind, TokenKind::Word | TokenKind::Quoted) {
            continue;
        }
        let Some(name) = identifier(r.sql, token) else {
            return NotUnderstood::NotUtf8.refuse();
        };
        if !name.is_ascii() && !is_unicode {
            // a server may see a blank where a letter seems to be
            return NotUnderstood::BeyondAscii("a stored program's names").refuse();
        }
        if name.contains('$') {
            return unsafe_part("a name with $, as columns have that the proxy makes");
        }
        if name.eq_ignore_ascii_case("information_schema") {
            return unsafe_part("information_schema");
        }
        let is_behind_dot = at > 0 && r.is_sign_at(at - 1, b'.');
        let is_bare = token.kind == TokenKind::Word && !is_behind_dot;
        let is_no_column = is_bare && (is_reserved(&name) || r.is_sign_at(at + 1, b'('));
        if !is_no_column && !judged.contains(&at) {
            must_be_plain(r, at, near)?;
        }
    }
    Ok(())
}

/// Refuses a program that may give a row another tenant: its cells would stay under the key of the
/// one before. A comparison in a condition looks the same, and is refused beside such a statement.
fn must_keep_tenants(r: &Reader, near: &[Arc<Table>]) -> Planned<()> {
    // a procedure may give its arguments other values
    let calls = r.tokens.iter().any(|t| t.is_word(r.sql, "call"));
    let assigns = |at: usize| {
        let behind_row = at >= 2 && r.is_sign_at(at - 1, b'.');
        let is_given = r.is_sign_at(at + 1, b'=') || r.is_sign_at(at + 1, b':');
        (r.updates || behind_row) && is_given || behind_row && calls
    };
    for (at, token) in r.tokens.iter().enumerate() {
        let Some(name) = identifier(r.sql, token).filter(|_| assigns(at)) else {
            continue;
        };
        let mut tables = near.iter();
        if let Some(table) = tables.find(|table| says_tenant(table, &name)) {
            let about = format!("column {name} of {}, which KEY BY names", table.name);
            return refuse(&errors::PROGRAM, about);
        }
    }
    Ok(())
}

/// Refuses the name at a place if a protected column of these tables may be meant.
fn must_be_plain<'t>(
    r: &Reader,
    at: usize,
    tables: impl IntoIterator<Item = &'t Arc<Table>>,
) -> Planned<()> {
    let Some(name) = r.tokens.get(at).and_then(|token| identifier(r.sql, token)) else {
        return r.not_understood();
    };
    for table in tables {
        let mut columns = table.protected_columns();
        if let Some((column, _)) = columns.find(|(column, _)| may_be_one_name(&column.name, &name))
        {
            let about = format!("column {} of {}", column.name, table.name);
            return refuse(&errors::PROGRAM, about);
        }
    }
    Ok(())
}

/// Names behind NEW and OLD: columns of the trigger's table, whatever else has such a name. A text
/// that gives a table one of these names is refused.
fn row_names(
    request: &Request,
    r: &Reader,
    trigger: usize,
    judged: &mut HashSet<usize>,
) -> Planned<()> {
    let tables = tables_at(request, r, trigger);
    for (at, token) in r.tokens.iter().enumerate() {
        let is_row = identifier(r.sql, token).is_some_and(|name| {
            name.eq_ignore_ascii_case("new") || name.eq_ignore_ascii_case("old")
        });
        if !is_row {
            continue;
        }
        let is_behind_dot = at > 0 && r.is_sign_at(at - 1, b'.');
        if is_behind_dot || !r.is_sign_at(at + 1, b'.') {
            return unsafe_part("a name NEW or OLD that is not the trigger's row");
        }
        if !tables.is_empty() {
            must_be_plain(r, at + 2, &tables)?;
            must_be_there(r, at + 2, &tables)?;
            judged.insert(at + 2);
        }
    }
    Ok(())
}

/// Refuses the name behind NEW or OLD that no column of these tables has, as the server would: with
/// the values of the program in its log.
fn must_be_there(r: &Reader, at: usize, tables: &[Arc<Table>]) -> Planned<()> {
    let name = r.tokens.get(at).and_then(|token| identifier(r.sql, token));
    let (Some(name), Some(row)) = (name, at.checked_sub(2)) else {
        return r.not_understood();
    };
    if name.contains('$') {
        // refused by the rule for such names
        return Ok(());
    }
    let is_there = |table: &Arc<Table>| {
        table.damaged.is_some()
            || table
                .columns
                .iter()
                .any(|c| may_be_one_name(&c.name, &name))
    };
    if tables.iter().any(is_there) {
        return Ok(());
    }
    let row = identifier(r.sql, &r.tokens[row]).unwrap_or_default();
    Err(Refusal::unknown_column(&name, &row.to_ascii_uppercase()))
}

/// The tables that the name at a place may be of: without a database it is one of the program's, or
/// of the session's.
fn tables_at(request: &Request, r: &Reader, at: usize) -> Vec<Arc<Table>> {
    let mut databases = program_databases(r.sql, r.tokens);
    databases.extend(request.settings.database.clone());
    let mut names: Vec<_> = databases
        .iter()
        .filter_map(|database| named(r.sql, r.tokens, at, Some(database)))
        .chain(named(r.sql, r.tokens, at, None))
        .collect();
    names.sort();
    names.dedup();
    let known = |name: &onionskin_schema::TableName| match request
        .catalog
        .table(&name.database, &name.name)
    {
        Known::Table(table) => Some(table),
        _ => None,
    };
    names.iter().filter_map(known).collect()
}

/// Refuses rows that would need a value for a protected column: the server has no default for one
/// that could be opened, and no constraint that judges it.
fn check_new_rows(table: &Table) -> Planned<()> {
    let is_null = |column: &Column| {
        let default = column.default.as_ref();
        column.nullable
            && !column.has_lost_default()
            && default.is_none_or(|d| {
                matches!(d, Default::Literal(DefaultLiteral::Null)) || is_server_null(d)
            })
    };
    let mut columns = table.protected_columns();
    let needs = columns.find(|(column, protection)| {
        !is_null(column) || !protection.checks.is_empty() || column.generated
    });
    match needs {
        Some((column, _)) => {
            let about = format!("rows of {} without a value for {}", table.name, column.name);
            refuse(&errors::PROGRAM, about)
        }
        None => Ok(()),
    }
}

fn is_server_null(default: &Default) -> bool {
    matches!(default, Default::Server(text) if text.eq_ignore_ascii_case("null"))
}
