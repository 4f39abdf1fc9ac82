//! MySQL's `EXPLAIN … FOR SCHEMA app SELECT …`: names without a database are of the one that it
//! names, and not of the session's.

use onionskin_value::Family;

use super::words::{flattened, is_one_of};
use crate::errors::{self, NotUnderstood};
use crate::lex::{Token, TokenKind};
use crate::planner::{Planned, Request, identifier, refuse};

/// The database that the tables of an EXPLAIN are of, if it says one. Refused where a server may
/// read it elsewhere: in an executable comment, or in a stored program.
pub(super) fn of_explain(request: &Request, tokens: &[Token]) -> Planned<Option<String>> {
    if request.settings.family != Family::MySql {
        return Ok(None);
    }
    let sql = request.sql;
    let has_comment = tokens.iter().any(|t| t.kind == TokenKind::Executable);
    let flat = match has_comment {
        true => flattened(sql, tokens, request.settings.lex),
        false => None,
    };
    let Some(at) = places(sql, flat.as_deref().unwrap_or(tokens)).next() else {
        return Ok(None);
    };
    if has_comment {
        return refuse(&errors::EXECUTABLE_COMMENT, "");
    }
    match at == head(sql, tokens) {
        true => match tokens.get(at + 2).and_then(|t| identifier(sql, t)) {
            Some(database) => Ok(Some(database)),
            None => NotUnderstood::Clause("EXPLAIN").refuse(),
        },
        false => NotUnderstood::Clause("EXPLAIN … FOR SCHEMA").refuse(),
    }
}

/// Whether an EXPLAIN says the database of its tables.
pub(super) fn is_said(sql: &[u8], tokens: &[Token]) -> bool {
    places(sql, tokens).next().is_some()
}

/// Where FOR SCHEMA and FOR DATABASE stand.
fn places<'t>(sql: &'t [u8], tokens: &'t [Token]) -> impl Iterator<Item = usize> + 't {
    let is_one = |pair: &[Token]| {
        pair[0].is_word(sql, "for") && is_one_of(sql, &pair[1], &["schema", "database"])
    };
    let pairs = tokens.windows(2).enumerate();
    pairs
        .filter(move |(_, pair)| is_one(pair))
        .map(|(at, _)| at)
}

/// Where the options of an EXPLAIN have the first FOR.
fn head(sql: &[u8], tokens: &[Token]) -> usize {
    const EXPLAINS: [&str; 3] = ["explain", "describe", "desc"];
    const BEGIN: [&str; 8] = [
        "select", "insert", "update", "delete", "replace", "with", "table", "values",
    ];
    let explains = tokens.first().is_some_and(|t| is_one_of(sql, t, &EXPLAINS));
    let options = tokens
        .iter()
        .skip(1)
        .take_while(|t| !is_one_of(sql, t, &BEGIN) && !t.is(b'('));
    let mut options = options.take_while(|_| explains);
    options
        .position(|t| t.is_word(sql, "for"))
        .map_or(usize::MAX, |at| at + 1)
}
