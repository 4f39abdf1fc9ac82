//! `information_schema.columns` and its like as the client shall see them.

use std::collections::HashMap;

use onionskin_schema::{LogicalView, logical_views};
use onionskin_value::Family;

use crate::errors::NotUnderstood;
use crate::lex::{Token, TokenKind};
use crate::plan::Action;
use crate::planner::{Planned, Planner, Request, TextBuilder, identifier, quoted};

/// How often views may be named, columns qualified with them included: for each a query of some
/// kilobytes is sent.
const MAX_VIEWS: usize = 1_000;

/// Where a statement names a view: its first token and its last one.
struct Place {
    first: usize,
    last: usize,
    view: LogicalView,
}

/// A view that shows physical columns becomes a derived table that shows the logical ones.
pub(super) fn columns_view(request: &Request, tokens: &[Token]) -> Planned<Option<Action>> {
    let sql = request.sql;
    let places = places(request, tokens);
    let reads = ["select", "with"]
        .iter()
        .any(|w| tokens.first().is_some_and(|t| t.is_word(sql, w)))
        || tokens.first().is_some_and(|t| t.is(b'('));
    if places.is_empty() || !reads {
        return Ok(None);
    }
    if places.len() > MAX_VIEWS {
        let what = "views of information_schema";
        return NotUnderstood::TooMany(MAX_VIEWS, what).refuse();
    }
    if is_hidden_by_with(sql, tokens, &places) {
        return NotUnderstood::WithHidesView.refuse();
    }
    let planner = Planner::new(request, tokens.to_vec(), Vec::new())?;
    let mut out = TextBuilder::default();
    let mut at = 0;
    let mut names: HashMap<&str, String> = HashMap::new();
    let family = request.settings.family;
    let mut titles = match family {
        Family::MySql => titles(sql, tokens, &places, family),
        Family::MariaDb => Vec::new(),
    }
    .into_iter()
    .peekable();
    for Place { first, last, view } in places {
        while let Some((behind, title)) = titles.next_if(|(behind, _)| *behind < first) {
            planner.copy(at..tokens[behind].end, &mut out, 0);
            at = tokens[behind].end;
            out.sql(format!(" AS {title}").as_bytes());
        }
        planner.copy(at..tokens[first].start, &mut out, 0);
        at = tokens[last].end;
        let view_name = view.name();
        let name = names
            .entry(view_name)
            .or_insert_with(|| qualifier(sql, tokens, view_name));
        if tokens.get(last + 1).is_some_and(|t| t.is(b'.')) {
            // a column's name, qualified with the view's: the derived table has no database
            out.sql(quoted(name).as_bytes());
            if let Some((_, title)) = titles.next_if(|(behind, _)| *behind == last + 2) {
                planner.copy(at..tokens[last + 2].end, &mut out, 0);
                at = tokens[last + 2].end;
                out.sql(format!(" AS {title}").as_bytes());
            }
            continue;
        }
        out.sql(view.derived(family).as_bytes());
        if !tokens.get(last + 1).is_some_and(|t| is_alias(sql, t)) {
            out.sql(format!(" AS {}", quoted(name)).as_bytes());
        }
    }
    planner.copy(at..sql.len(), &mut out, 0);
    Ok(Some(Action::Server {
        text: out.finish(),
        result: None,
    }))
}

/// The columns of views that a SELECT lists without an alias, each by its last token, with the
/// name that MySQL gives it in the result: the view's own, in capital letters. That of a derived
/// table's column would be as it is written.
fn titles(
    sql: &[u8],
    tokens: &[Token],
    places: &[Place],
    family: Family,
) -> Vec<(usize, &'static str)> {
    let mut titles = Vec::new();
    for (select, _) in tokens
        .iter()
        .enumerate()
        .filter(|(_, t)| t.is_word(sql, "select"))
    {
        // the list: up to FROM in the same parentheses
        let mut depth = 0_usize;
        let mut items = vec![select + 1];
        let mut from = None;
        for (i, token) in tokens.iter().enumerate().skip(select + 1) {
            match () {
                () if token.is(b'(') => depth += 1,
                () if token.is(b')') && depth == 0 => break,
                () if token.is(b')') => depth -= 1,
                () if depth > 0 => {}
                () if token.is(b',') => items.push(i + 1),
                () if token.is_word(sql, "from") => {
                    from = Some(i);
                    break;
                }
                () => {}
            }
        }
        let Some(from) = from else { continue };
        let views = views_behind(sql, tokens, places, from);
        let ends = items.iter().skip(1).map(|next| next - 1).chain([from]);
        for (start, end) in items.iter().copied().zip(ends.collect::<Vec<_>>()) {
            let skipped = ["distinct", "all"]
                .iter()
                .any(|w| tokens[start].is_word(sql, w));
            let item = start + usize::from(skipped)..end;
            if let Some(title) = title(sql, &tokens[item.clone()], &views, family) {
                titles.push((item.end - 1, title));
            }
        }
    }
    titles.sort_by_key(|(behind, _)| *behind);
    titles
}

/// The views that a FROM lists, not in parentheses behind it, each with what qualifies its columns.
fn views_behind<'a>(
    sql: &'a [u8],
    tokens: &[Token],
    places: &'a [Place],
    from: usize,
) -> Vec<(LogicalView, Option<String>)> {
    let mut views = Vec::new();
    let mut depth = 0_usize;
    for (i, token) in tokens.iter().enumerate().skip(from + 1) {
        match () {
            () if token.is(b'(') => depth += 1,
            () if token.is(b')') && depth == 0 => break,
            () if token.is(b')') => depth -= 1,
            () if depth == 0 && (token.is_word(sql, "select") || token.is_word(sql, "where")) => {
                break;
            }
            () => {}
        }
        let Some(place) = places.iter().find(|p| p.last == i && depth == 0) else {
            continue;
        };
        let mut behind = i + 1;
        behind += usize::from(tokens.get(behind).is_some_and(|t| t.is_word(sql, "as")));
        let alias = tokens.get(behind).filter(|t| is_alias(sql, t));
        views.push((place.view, alias.and_then(|t| identifier(sql, t))));
    }
    views
}

/// The name in the result of an item that is a column of a view, and nothing else.
fn title(
    sql: &[u8],
    item: &[Token],
    views: &[(LogicalView, Option<String>)],
    family: Family,
) -> Option<&'static str> {
    let (column, qualifier) = match item {
        [column] => (column, None),
        [table, dot, column] if dot.is(b'.') => (column, Some(table)),
        [_, first, table, dot, column] if first.is(b'.') && dot.is(b'.') => (column, Some(table)),
        _ => return None,
    };
    let is_meant = |view: LogicalView, alias: &Option<String>| {
        qualifier.is_none_or(|q| is_named(sql, q, alias.as_deref().unwrap_or(view.name())))
    };
    let of_views = views.iter().filter(|(view, alias)| is_meant(*view, alias));
    let mut names = of_views.flat_map(|(view, _)| view.columns(family));
    names.find(|name| is_named(sql, column, name))
}

/// Whether a token is this name, of whatever letter case.
fn is_named(sql: &[u8], token: &Token, name: &str) -> bool {
    identifier(sql, token).is_some_and(|n| n.eq_ignore_ascii_case(name))
}

/// Where the statement names views, also as qualifiers of columns.
fn places(request: &Request, tokens: &[Token]) -> Vec<Place> {
    let sql = request.sql;
    let database = request.settings.database.as_deref();
    let inside = database.is_some_and(|d| d.eq_ignore_ascii_case("information_schema"));
    let mut places = Vec::new();
    let mut skip_to = 0;
    for (i, token) in tokens.iter().enumerate() {
        let Some(view) = logical_views().find(|view| is_named(sql, token, view.name())) else {
            continue;
        };
        let qualified =
            i >= 2 && tokens[i - 1].is(b'.') && is_named(sql, &tokens[i - 2], "information_schema");
        // `a, statistics` behind FROM cannot be told from a column; behind FROM and JOIN it is a
        // view
        let bare = inside
            && i.checked_sub(1).is_some_and(|before| {
                ["from", "join"]
                    .iter()
                    .any(|w| tokens[before].is_word(sql, w))
            });
        if (qualified || bare) && i >= skip_to {
            places.push(Place {
                first: if qualified { i - 2 } else { i },
                last: i,
                view,
            });
            skip_to = i + 1;
        }
    }
    places
}

/// Whether a part of WITH may have the bare name of one of the views, and hides it.
fn is_hidden_by_with(sql: &[u8], tokens: &[Token], places: &[Place]) -> bool {
    if !tokens.iter().any(|t| t.is_word(sql, "with")) {
        return false;
    }
    let is_defined = |view: &str| {
        tokens.windows(3).any(|w| {
            is_named(sql, &w[0], view)
                && (w[1].is(b'(') || w[1].is_word(sql, "as") && w[2].is(b'('))
        })
    };
    let is_bare = |view: &str| {
        let bare = |place: &Place| place.first == place.last && place.view.name() == view;
        places.iter().any(bare)
    };
    // the text is read once for each view, not for each place
    logical_views().any(|view| is_bare(view.name()) && is_defined(view.name()))
}

/// Whether the token behind a view's name is its alias, or AS.
fn is_alias(sql: &[u8], behind: &Token) -> bool {
    behind.kind == TokenKind::Quoted
        || behind.is_word(sql, "as")
        || (behind.kind == TokenKind::Word && !is_clause(behind.text(sql)))
}

/// The view's name as columns are qualified with it, else in capital letters. Names in
/// information_schema have no case, those of derived tables do.
fn qualifier(sql: &[u8], tokens: &[Token], view: &str) -> String {
    let mut pairs = tokens.windows(2).enumerate();
    let qualifies = pairs.find(|(i, pair)| {
        is_named(sql, &pair[0], view)
            && pair[1].is(b'.')
            && i.checked_sub(1)
                .is_none_or(|before| !tokens[before].is(b'.'))
    });
    let name = qualifies.and_then(|(_, pair)| identifier(sql, &pair[0]));
    name.unwrap_or_else(|| view.to_owned())
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
