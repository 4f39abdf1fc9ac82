//! What stands behind DEFAULT and ON UPDATE in the definition of a protected column.
//!
//! A constant is read here and the proxy fills it in by itself. Anything else is kept as the text
//! of an expression: no part of a row may be read in it, and every function must return the same on
//! the scratch engine, which computes it. The server's own spelling of the expression, which is
//! what is shown, is asked for when the definition is carried out.

use std::ops::Range;

use onionskin_schema::{DefaultLiteral, present_time, time_fraction};
use onionskin_value::{Family, SqlType};

use super::constant::{bit_default, canonical, default_literal};
use super::reader::Reader;
use crate::errors::{self, Refusal};
use crate::lex::{LiteralKind, TokenKind};
use crate::planner::{Planned, Request, refuse};

/// A default as it is written.
pub(super) enum Given {
    /// A constant.
    Literal(DefaultLiteral),
    /// CURRENT_TIMESTAMP with so many digits of a fraction, and the text of it.
    Now(u8, String),
    /// The text of an expression: with its parentheses on MariaDB, and without them on MySQL, where
    /// they belong to DEFAULT.
    Expression(String),
}

/// Words for the present time that MariaDB takes for a function of its own since 11.7: a DATETIME,
/// where NOW() is a TIMESTAMP.
const LOCAL: [&str; 2] = ["localtime", "localtimestamp"];

/// Whether the server may be one of those; the scratch engine tells how it prints them.
/// `character_set_collations` came with 11.2.
fn may_have_local_time(r: &Reader) -> bool {
    let settings = &r.request.settings;
    settings.family == Family::MariaDb && !settings.charset_collations.is_empty()
}

/// Reads what stands behind DEFAULT. `None`: it is not understood.
pub(super) fn given(r: &mut Reader, column: &str, is_bit: bool) -> Planned<Option<Given>> {
    let start = r.at;
    let local = LOCAL.iter().any(|word| r.is(word));
    if let Some(fraction) = present(r) {
        if local && may_have_local_time(r) {
            return expression(r, start..r.at, column).map(Some);
        }
        let text = text(r, start..r.at, column)?;
        return Ok(Some(Given::Now(fraction, text)));
    }
    if r.token().is_some_and(|t| t.is(b'(')) {
        let Some(inside) = r.parenthesized() else {
            return Ok(None);
        };
        return match r.request.settings.family {
            Family::MariaDb => {
                // to MariaDB, a constant in parentheses is one without them
                let constant = constant_within(r, inside, is_bit);
                match constant {
                    Some(literal) => Ok(Some(Given::Literal(literal))),
                    None => expression(r, start..r.at, column).map(Some),
                }
            }
            Family::MySql => expression(r, inside, column).map(Some),
        };
    }
    let literal = match is_bit {
        true => bit_default(r),
        false => default_literal(r),
    };
    if let Some(literal) = literal {
        return Ok(Some(Given::Literal(literal)));
    }
    r.at = start;
    // MariaDB's calls need no parentheses around them
    let is_call = r.name().is_some() && r.parenthesized().is_some();
    if is_call && r.request.settings.family == Family::MariaDb {
        return expression(r, start..r.at, column).map(Some);
    }
    r.at = start;
    Ok(None)
}

/// `CURRENT_TIMESTAMP`, `NOW(6)` and their like: the digits of the fraction.
pub(super) fn present(r: &mut Reader) -> Option<u8> {
    const BARE: [&str; 3] = ["current_timestamp", "localtime", "localtimestamp"];
    let start = r.at;
    let bare = BARE.iter().any(|word| r.eat(word));
    if !bare && !r.eat("now") {
        return None;
    }
    let digits = match r.parenthesized() {
        None if bare => Some(0),
        None => None,
        Some(inside) if inside.is_empty() => Some(0),
        Some(inside) => std::str::from_utf8(r.text(inside))
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .filter(|digits| *digits <= 6),
    };
    if digits.is_none() {
        r.at = start;
    }
    digits
}

/// A constant that stands alone, in parentheses; in more of them than anybody writes it is an
/// expression.
fn constant_within(r: &Reader, inside: Range<usize>, is_bit: bool) -> Option<DefaultLiteral> {
    const MAX_PARENTHESES: usize = 32;
    let mut inner = Reader::over(r.request, r.tokens, inside);
    for _ in 0..MAX_PARENTHESES {
        if !inner.token()?.is(b'(') {
            break;
        }
        let inside = inner.parenthesized()?;
        if !inner.done() {
            return None;
        }
        inner = Reader::over(r.request, r.tokens, inside);
    }
    let found = match is_bit {
        true => bit_default(&mut inner),
        false => default_literal(&mut inner),
    };
    found.filter(|_| inner.done())
}

fn text(r: &Reader, tokens: Range<usize>, column: &str) -> Planned<String> {
    String::from_utf8(r.text(tokens).to_vec()).map_err(|_| {
        Refusal::new(
            &errors::DEFINITION,
            format!("column {column}: a DEFAULT that is not UTF-8"),
        )
    })
}

/// The text of an expression, if the scratch engine can compute it for a row by itself.
fn expression(r: &Reader, tokens: Range<usize>, column: &str) -> Planned<Given> {
    let sql = r.sql();
    let bad = |what: &str| {
        refuse(
            &errors::DEFINITION,
            format!("column {column}: {what} in its DEFAULT"),
        )
    };
    let parts = r.tokens.get(tokens.clone()).unwrap_or_default();
    for token in parts {
        match token.kind {
            TokenKind::Variable => return bad("a variable"),
            TokenKind::Literal(LiteralKind::Parameter) => return bad("a parameter"),
            _ if ["current_user", "current_role"]
                .iter()
                .any(|word| token.is_word(sql, word)) =>
            {
                return bad("the session's user");
            }
            _ => {}
        }
    }
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
        return bad("nothing");
    };
    let readable = crate::planner::parse_text(sql, r.tokens, r.request.template);
    let readable = readable
        .as_deref()
        .and_then(|t| t.get(first.start..last.end));
    if !readable.is_some_and(crate::scratch::is_constant_for_a_row) {
        return bad("another column, a query or a function that the scratch engine cannot compute");
    }
    Ok(Given::Expression(text(r, tokens, column)?))
}

/// The default as it is kept for a column of this type.
pub(super) fn kept(
    given: Given,
    sql_type: &SqlType,
    column: &str,
    request: &Request,
) -> Planned<DefaultLiteral> {
    let family = request.settings.family;
    Ok(match given {
        Given::Literal(literal) => canonical(&literal, sql_type, column, request)?,
        Given::Expression(text) => DefaultLiteral::Expression(text),
        Given::Now(fraction, text) => match time_fraction(sql_type) {
            Some(digits) if digits == fraction => {
                DefaultLiteral::Expression(present_time(fraction, family))
            }
            None if family == Family::MariaDb => DefaultLiteral::Expression(text),
            _ => return refuse(&errors::DEFINITION, of_another_type(column, "DEFAULT")),
        },
    })
}

/// Checks ON UPDATE CURRENT_TIMESTAMP with so many digits.
pub(super) fn check_on_update(fraction: u8, sql_type: &SqlType, column: &str) -> Planned<()> {
    match time_fraction(sql_type) == Some(fraction) {
        true => Ok(()),
        false => refuse(&errors::DEFINITION, of_another_type(column, "ON UPDATE")),
    }
}

fn of_another_type(column: &str, what: &str) -> String {
    format!(
        "column {column}: {what} CURRENT_TIMESTAMP of another precision than the column's, or of another type"
    )
}
