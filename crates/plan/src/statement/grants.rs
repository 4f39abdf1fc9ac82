//! `GRANT` and `REVOKE` on protected tables.
//!
//! A privilege on a column is one on all its physical columns. Whoever may read a column may search
//! it, as on a plain server.

use std::sync::Arc;

use onionskin_schema::{Table, same_name};

use super::Decided;
use crate::errors;
use crate::lex::Token;
use crate::plan::{Action, Piece};
use crate::planner::{Planned, Request, identifier, quoted, refuse};

/// Lists of columns become lists of physical columns; everything else stays as it is.
pub(super) fn grant<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let sql = request.sql;
    let Some(on) = tokens.iter().position(|t| t.is_word(sql, "on")) else {
        return Ok((Action::Relay, None));
    };
    let has_columns = tokens[..on].iter().any(|t| t.is(b'('));
    if !has_columns {
        return Ok((Action::Relay, None));
    }
    // ON [TABLE] [db.]t
    let mut at = on + 1;
    if tokens.get(at).is_some_and(|t| t.is_word(sql, "table")) {
        at += 1;
    }
    let first = tokens.get(at).and_then(|t| identifier(sql, t));
    let qualified = tokens.get(at + 1).is_some_and(|t| t.is(b'.'));
    let (database, name) = match (first, qualified) {
        (Some(database), true) => {
            let name = tokens.get(at + 2).and_then(|t| identifier(sql, t));
            (Some(database), name)
        }
        (name, _) => (request.settings.database.clone(), name),
    };
    let table = near.iter().find(|t| {
        database
            .as_deref()
            .is_some_and(|d| same_name(&t.database, d))
            && name.as_deref().is_some_and(|n| same_name(&t.name, n))
    });
    let Some(table) = table else {
        return Ok((Action::Relay, None));
    };
    let mut text = Vec::new();
    let (mut copied, mut depth) = (0, 0usize);
    for token in &tokens[..on] {
        if token.is(b'(') {
            depth += 1;
        } else if token.is(b')') {
            depth = depth.saturating_sub(1);
        }
        let Some(column) = identifier(sql, token).filter(|_| depth > 0) else {
            continue;
        };
        let Some(column) = table.column(&column) else {
            return refuse(&errors::UNKNOWN_COLUMN, format!("'{column}'"));
        };
        let Some(protection) = &column.protection else {
            continue;
        };
        text.extend_from_slice(&sql[copied..token.start]);
        let names: Vec<String> = protection.names.all().map(quoted).collect();
        text.extend_from_slice(names.join(", ").as_bytes());
        copied = token.end;
    }
    text.extend_from_slice(&sql[copied..]);
    Ok((
        Action::Server {
            text: vec![Piece::Sql(text)],
            result: None,
        },
        None,
    ))
}
