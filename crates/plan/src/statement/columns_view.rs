//! `information_schema.columns` as the client shall see it.

use onionskin_schema::information_schema_columns;

use crate::errors;
use crate::lex::{Token, TokenKind};
use crate::plan::Action;
use crate::planner::{Planned, Planner, Request, TextBuilder, identifier, quoted, refuse};

/// `information_schema.columns` becomes a derived table that shows the logical columns.
pub(super) fn columns_view(request: &Request, tokens: &[Token]) -> Planned<Option<Action>> {
    let sql = request.sql;
    let named =
        |t: &Token, what: &str| identifier(sql, t).is_some_and(|n| n.eq_ignore_ascii_case(what));
    let inside = request
        .settings
        .database
        .as_deref()
        .is_some_and(|d| d.eq_ignore_ascii_case("information_schema"));
    let mut places = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        if !named(token, "columns") {
            continue;
        }
        let qualified =
            i >= 2 && tokens[i - 1].is(b'.') && named(&tokens[i - 2], "information_schema");
        let bare = inside
            && i.checked_sub(1).is_some_and(|before| {
                ["from", "join"]
                    .iter()
                    .any(|w| tokens[before].is_word(sql, w))
            });
        if qualified || bare {
            let first = if qualified { i - 2 } else { i };
            places.push((first, i));
        }
    }
    if places.is_empty() || !tokens[0].is_word(sql, "select") {
        return Ok(None);
    }
    let view = information_schema_columns(request.settings.family);
    let planner = Planner::new(request, tokens.to_vec(), Vec::new())?;
    let mut out = TextBuilder::default();
    let mut at = 0;
    for (first, last) in places {
        if tokens.get(last + 1).is_some_and(|t| t.is(b'.')) {
            return refuse(
                &errors::NOT_UNDERSTOOD,
                "information_schema.columns in a column's name",
            );
        }
        planner.copy(at..tokens[first].start, &mut out, 0);
        out.sql(view.as_bytes());
        let next = tokens.get(last + 1);
        let aliased = next.is_some_and(|t| {
            t.kind == TokenKind::Quoted
                || t.is_word(sql, "as")
                || (t.kind == TokenKind::Word && !is_clause(t.text(sql)))
        });
        if !aliased {
            // names in information_schema have no case, those of derived tables do
            let qualifier = tokens.windows(2).enumerate().find(|(i, pair)| {
                named(&pair[0], "columns")
                    && pair[1].is(b'.')
                    && i.checked_sub(1)
                        .is_none_or(|before| !tokens[before].is(b'.'))
            });
            let name = qualifier.and_then(|(_, pair)| identifier(sql, &pair[0]));
            let name = name.unwrap_or_else(|| "COLUMNS".into());
            out.sql(format!(" AS {}", quoted(&name)).as_bytes());
        }
        at = tokens[last].end;
    }
    planner.copy(at..sql.len(), &mut out, 0);
    Ok(Some(Action::Server {
        text: out.finish(),
        result: None,
    }))
}

fn is_clause(word: &[u8]) -> bool {
    const WORDS: [&str; 17] = [
        "where",
        "join",
        "inner",
        "left",
        "right",
        "cross",
        "straight_join",
        "natural",
        "on",
        "using",
        "order",
        "group",
        "having",
        "limit",
        "union",
        "for",
        "lock",
    ];
    WORDS
        .iter()
        .any(|w| word.eq_ignore_ascii_case(w.as_bytes()))
}
