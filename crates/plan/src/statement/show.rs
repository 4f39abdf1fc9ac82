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
        if !is(2, "table") {
            return refuse(
                &errors::STATEMENT,
                "SHOW CREATE of something that uses a protected table",
            );
        }
        return done(Show::CreateTable, sql.to_vec());
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
        return done(Show::Columns { like, column }, text);
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
    if what_index {
        if at != end {
            return refuse(&errors::NOT_UNDERSTOOD, "SHOW INDEX … WHERE");
        }
        return done(
            Show::Index,
            format!("SHOW INDEX FROM {quoted_table}").into_bytes(),
        );
    }
    let mut like = None;
    if is(at, "like") && at + 2 == end {
        let start = tokens[at + 1].start;
        like = request
            .template
            .literals
            .iter()
            .position(|l| l.start == start);
        if like.is_none() {
            return refuse(&errors::NOT_UNDERSTOOD, "SHOW COLUMNS … LIKE");
        }
    } else if at != end {
        return refuse(&errors::NOT_UNDERSTOOD, "SHOW COLUMNS … WHERE");
    }
    let full = if full { "FULL " } else { "" };
    let text = format!("SHOW {full}COLUMNS FROM {quoted_table}").into_bytes();
    done(Show::Columns { like, column: None }, text)
}
