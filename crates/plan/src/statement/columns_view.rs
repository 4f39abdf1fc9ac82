//! `information_schema.columns` and its like as the client shall see them.

use std::collections::HashMap;

use onionskin_schema::{LOGICAL_VIEWS, information_schema_view};

use crate::errors;
use crate::lex::{Token, TokenKind};
use crate::plan::Action;
use crate::planner::{Planned, Planner, Request, TextBuilder, identifier, quoted, refuse};

/// How often views may be named, columns qualified with them included: for each a query of some kilobytes is sent.
const MOST_VIEWS: usize = 1_000;

/// A view that shows physical columns becomes a derived table that shows the logical ones.
pub(super) fn columns_view(request: &Request, tokens: &[Token]) -> Planned<Option<Action>> {
    let sql = request.sql;
    let named =
        |t: &Token, what: &str| identifier(sql, t).is_some_and(|n| n.eq_ignore_ascii_case(what));
    let inside = request
        .settings
        .database
        .as_deref()
        .is_some_and(|d| d.eq_ignore_ascii_case("information_schema"));
    // of each view: its first token, its last one, its name
    let mut places = Vec::new();
    let mut skip_to = 0;
    for (i, token) in tokens.iter().enumerate() {
        let Some(view) = LOGICAL_VIEWS.iter().find(|view| named(token, view)) else {
            continue;
        };
        let qualified =
            i >= 2 && tokens[i - 1].is(b'.') && named(&tokens[i - 2], "information_schema");
        // `a, statistics` behind FROM cannot be told from a column; behind FROM and JOIN it is a view
        let bare = inside
            && i.checked_sub(1).is_some_and(|before| {
                ["from", "join"]
                    .iter()
                    .any(|w| tokens[before].is_word(sql, w))
            });
        if (qualified || bare) && i >= skip_to {
            let first = if qualified { i - 2 } else { i };
            places.push((first, i, *view));
            skip_to = i + 1;
        }
    }
    let reads = ["select", "with"]
        .iter()
        .any(|w| tokens.first().is_some_and(|t| t.is_word(sql, w)))
        || tokens.first().is_some_and(|t| t.is(b'('));
    if places.is_empty() || !reads {
        return Ok(None);
    }
    if places.len() > MOST_VIEWS {
        let about = format!("more than {MOST_VIEWS} views of information_schema");
        return refuse(&errors::NOT_UNDERSTOOD, about);
    }
    // a part of WITH may have the view's bare name, and hides it
    let is_with = tokens.iter().any(|t| t.is_word(sql, "with"));
    let defined = |view: &str| {
        tokens.windows(3).any(|w| {
            named(&w[0], view) && (w[1].is(b'(') || w[1].is_word(sql, "as") && w[2].is(b'('))
        })
    };
    // the text is read once for each view, not for each place
    let is_bare = |name: &str| {
        let bare = |(first, last, view): &(usize, usize, &str)| first == last && *view == name;
        places.iter().any(bare)
    };
    let hidden = |view: &&str| is_bare(view) && defined(view);
    if is_with && LOGICAL_VIEWS.iter().any(hidden) {
        return refuse(
            &errors::NOT_UNDERSTOOD,
            "WITH and a view of information_schema under one name",
        );
    }
    let planner = Planner::new(request, tokens.to_vec(), Vec::new())?;
    let mut out = TextBuilder::default();
    let mut at = 0;
    let mut names: HashMap<&str, String> = HashMap::new();
    for (first, last, view) in places {
        planner.copy(at..tokens[first].start, &mut out, 0);
        at = tokens[last].end;
        if tokens.get(last + 1).is_some_and(|t| t.is(b'.')) {
            // a column's name, qualified with the view's: the derived table has no database
            out.sql(format!("`{view}`").as_bytes());
            continue;
        }
        let Some(derived) = information_schema_view(view, request.settings.family) else {
            return refuse(&errors::INTERNAL, view);
        };
        out.sql(derived.as_bytes());
        let next = tokens.get(last + 1);
        let aliased = next.is_some_and(|t| {
            t.kind == TokenKind::Quoted
                || t.is_word(sql, "as")
                || (t.kind == TokenKind::Word && !is_clause(t.text(sql)))
        });
        if !aliased {
            // names in information_schema have no case, those of derived tables do
            let name = names.entry(view).or_insert_with(|| {
                let qualifier = tokens.windows(2).enumerate().find(|(i, pair)| {
                    named(&pair[0], view)
                        && pair[1].is(b'.')
                        && i.checked_sub(1)
                            .is_none_or(|before| !tokens[before].is(b'.'))
                });
                let name = qualifier.and_then(|(_, pair)| identifier(sql, &pair[0]));
                name.unwrap_or_else(|| (*view).to_owned())
            });
            out.sql(format!(" AS {}", quoted(name)).as_bytes());
        }
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
