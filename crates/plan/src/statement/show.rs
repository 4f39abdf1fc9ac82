//! `SHOW` and `DESCRIBE` of a protected table.

use std::sync::Arc;

use onionskin_schema::Table;

use super::Decided;
use crate::errors;
use crate::lex::{Token, TokenKind};
use crate::plan::{Action, Piece, Show};
use crate::planner::{Planned, Request, identifier, quoted, refuse};

/// `SHOW CREATE TABLE`, `SHOW COLUMNS`, `SHOW INDEX`, `DESCRIBE` of one protected table.
pub(super) fn show<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let sql = request.sql;
    let [table] = near.as_slice() else {
        return refuse(&errors::NOT_UNDERSTOOD, "SHOW with several tables");
    };
    let is = |at: usize, w: &str| tokens.get(at).is_some_and(|t: &Token| t.is_word(sql, w));
    let done = |what, text: Vec<u8>| {
        let text = vec![Piece::Sql(text)];
        Ok((
            Action::Show {
                what,
                text,
                table: Arc::clone(table),
            },
            None,
        ))
    };
    let end = tokens
        .iter()
        .rposition(|t| !t.is(b';'))
        .map_or(0, |i| i + 1);
    if is(0, "show") && is(1, "create") {
        return match (is(2, "table"), is(2, "view"), table.view) {
            (true, _, false) => done(Show::CreateTable, sql.to_vec()),
            (true, _, true) | (_, true, _) => done(Show::CreateView, sql.to_vec()),
            _ => refuse(
                &errors::STATEMENT,
                "SHOW CREATE of something that uses a protected table",
            ),
        };
    }
    let name = |at: usize| tokens.get(at).and_then(|t| identifier(sql, t));
    let quoted_table = format!("{}.{}", quoted(&table.database), quoted(&table.name));
    if !is(0, "show") {
        // DESCRIBE [db.]table [column | 'pattern']
        let mut at = 2;
        if tokens.get(at).is_some_and(|t| t.is(b'.')) {
            at += 2;
        }
        let (mut like, mut column) = (None, None);
        if at < end {
            match tokens[at].kind {
                TokenKind::Literal(_) => {
                    let literals = &request.template.literals;
                    like = literals.iter().position(|l| l.start == tokens[at].start);
                }
                _ => column = name(at),
            }
            at += 1;
        }
        if at != end {
            return refuse(&errors::NOT_UNDERSTOOD, "DESCRIBE");
        }
        let text = format!("SHOW COLUMNS FROM {quoted_table}").into_bytes();
        let named = Vec::new();
        return done(
            Show::Columns {
                like,
                column,
                named,
            },
            text,
        );
    }
    let mut at = 1;
    let full = is(at, "full");
    if full {
        at += 1;
    }
    let what_columns = is(at, "columns") || is(at, "fields");
    let what_index = is(at, "index") || is(at, "indexes") || is(at, "keys");
    at += 1;
    if !(what_columns || what_index) || !(is(at, "from") || is(at, "in")) {
        return refuse(&errors::NOT_UNDERSTOOD, "SHOW");
    }
    at += 2;
    // `db.table`, or `table FROM db`
    if tokens.get(at).is_some_and(|t| t.is(b'.')) || is(at, "from") || is(at, "in") {
        at += 2;
    }
    let list = |at: usize, field: &str| literals_of(request, &tokens[..end], at, field);
    if what_index {
        let named = match list(at, "column_name") {
            Some(named) => named,
            None if at == end => Vec::new(),
            None if is(at, "where") && names_no_column(sql, &tokens[at + 1..end]) => {
                let mut text = format!("SHOW INDEX FROM {quoted_table} ").into_bytes();
                text.extend_from_slice(&sql[tokens[at].start..tokens[end - 1].end]);
                return done(Show::Index { named: Vec::new() }, text);
            }
            None => return refuse(&errors::NOT_UNDERSTOOD, "SHOW INDEX … WHERE"),
        };
        return done(
            Show::Index { named },
            format!("SHOW INDEX FROM {quoted_table}").into_bytes(),
        );
    }
    let (mut like, mut named) = (None, Vec::new());
    let pattern = match () {
        () if is(at, "like") => Some(at + 1),
        () if is(at, "where") && is(at + 1, "field") && is(at + 2, "like") => Some(at + 3),
        () => None,
    };
    if let Some(pattern) = pattern.filter(|p| p + 1 == end) {
        let start = tokens[pattern].start;
        like = request
            .template
            .literals
            .iter()
            .position(|l| l.start == start);
        if like.is_none() {
            return refuse(&errors::NOT_UNDERSTOOD, "SHOW COLUMNS … LIKE");
        }
    } else if let Some(found) = list(at, "field") {
        named = found;
    } else if at != end {
        return refuse(&errors::NOT_UNDERSTOOD, "SHOW COLUMNS … WHERE");
    }
    let full = if full { "FULL " } else { "" };
    let text = format!("SHOW {full}COLUMNS FROM {quoted_table}").into_bytes();
    done(
        Show::Columns {
            like,
            column: None,
            named,
        },
        text,
    )
}

/// `WHERE field = 'a'` or `WHERE field IN ('a', 'b')` up to the end: the literals.
fn literals_of(request: &Request, tokens: &[Token], at: usize, field: &str) -> Option<Vec<usize>> {
    let sql = request.sql;
    let named = |t: &Token| identifier(sql, t).is_some_and(|n| n.eq_ignore_ascii_case(field));
    if !tokens.get(at)?.is_word(sql, "where") || !named(tokens.get(at + 1)?) {
        return None;
    }
    let values: &[Token] = match tokens.get(at + 2..)? {
        [equals, value] if equals.is(b'=') => std::slice::from_ref(value),
        [word, open, values @ .., close]
            if word.is_word(sql, "in") && open.is(b'(') && close.is(b')') =>
        {
            values
        }
        _ => return None,
    };
    let mut found = Vec::new();
    for (n, token) in values.iter().enumerate() {
        if n % 2 == 1 {
            if !token.is(b',') {
                return None;
            }
            continue;
        }
        let literals = &request.template.literals;
        found.push(literals.iter().position(|l| l.start == token.start)?);
    }
    Some(found)
}

/// Whether a condition on the rows of SHOW INDEX speaks of what is the same for the physical table.
fn names_no_column(sql: &[u8], tokens: &[Token]) -> bool {
    const FINE: [&str; 13] = [
        "key_name",
        "non_unique",
        "seq_in_index",
        "index_type",
        "table",
        "and",
        "or",
        "not",
        "in",
        "like",
        "is",
        "null",
        "between",
    ];
    tokens.iter().all(|t| match t.kind {
        TokenKind::Literal(_) | TokenKind::Punct(_) => true,
        TokenKind::Word | TokenKind::Quoted => {
            identifier(sql, t).is_some_and(|name| FINE.iter().any(|w| name.eq_ignore_ascii_case(w)))
        }
        _ => false,
    })
}
