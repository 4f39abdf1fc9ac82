//! `SELECT … INTO @v`, `INTO OUTFILE`, `INTO DUMPFILE`: a result that stays with the server.
//!
//! What goes there is in the clear for whoever looks at the server's memory, its logs or its files.
//! So counts and plain columns may go, as tier 1 finds them; what would have to be opened is
//! refused, and so is what the proxy or the scratch engine would have to finish: the server has no
//! such result.

use crate::errors::{self, Refusal};
use crate::lex::TokenKind;
use crate::plan::{Action, ResultItem, Text};
use crate::planner::{Planned, Planner, refuse};

/// Words behind `OUTFILE 'name'`, beside the name of a character set and literals.
const OPTIONS: [&str; 12] = [
    "character",
    "set",
    "charset",
    "fields",
    "columns",
    "terminated",
    "optionally",
    "enclosed",
    "escaped",
    "by",
    "lines",
    "starting",
];

/// Takes the clause out of the text that the parser reads; the server gets it as it is. Returns
/// whether there is one.
pub(super) fn blank_into(planner: &mut Planner) -> bool {
    let sql = planner.sql();
    let tokens = &planner.tokens;
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|t| t.is_word(sql, word));
    let is_variable = |at: usize| {
        let token = tokens.get(at);
        token.is_some_and(|t| t.kind == TokenKind::Variable && !t.text(sql).starts_with(b"@@"))
    };
    let is_literal = |at: usize| {
        let token = tokens.get(at);
        token.is_some_and(|t| matches!(t.kind, TokenKind::Literal(_)))
    };
    let queries = tokens.iter().find(|t| !t.is(b'('));
    if !queries.is_some_and(|t| t.is_word(sql, "select") || t.is_word(sql, "with")) {
        return false;
    }
    let mut depth = 0usize;
    let found = (0..tokens.len()).find(|&at| {
        depth += usize::from(tokens[at].is(b'('));
        depth = depth.saturating_sub(usize::from(tokens[at].is(b')')));
        let target = is_variable(at + 1) || is(at + 1, "outfile") || is(at + 1, "dumpfile");
        depth == 0 && is(at, "into") && target
    });
    let Some(first) = found else { return false };
    let mut end = first + 2;
    if is_variable(first + 1) {
        while tokens.get(end).is_some_and(|t| t.is(b',')) && is_variable(end + 1) {
            end += 2;
        }
    } else {
        while is_literal(end)
            || OPTIONS.iter().any(|w| is(end, w))
            || ((is(end - 1, "set") || is(end - 1, "charset"))
                && tokens.get(end).is_some_and(|t| t.kind == TokenKind::Word))
        {
            end += 1;
        }
    }
    // without the clause, a word behind it would be the alias of what stands before it
    const BEHIND: [&str; 3] = ["from", "for", "lock"];
    let ends = tokens
        .get(end)
        .is_none_or(|t| t.is(b';') || t.is(b')') || BEHIND.iter().any(|w| t.is_word(sql, w)));
    if !ends {
        return false;
    }
    let clause = tokens[first..end].to_vec();
    for token in &clause {
        planner.pass(token);
    }
    let range = clause[0].start..clause[clause.len() - 1].end;
    let blank = " ".repeat(range.len());
    planner.parse_text.replace_range(range, &blank);
    if !planner.parse_text.is_ascii() {
        let offsets = planner.parse_text.char_indices().map(|(at, _)| at);
        let offsets = offsets.collect();
        planner.count_from(offsets);
    }
    true
}

/// What becomes of a query with such a clause.
pub(super) fn kept_by_the_server(
    planner: &Planner,
    items: &[ResultItem],
    text: Text,
) -> Planned<Action> {
    if let Some((column, _)) = items.iter().find_map(|item| item.open) {
        let about = planner.columns.get(column).map(|c| c.path());
        return refuse(&errors::SERVER_HELD, about.unwrap_or_default());
    }
    Ok(Action::Server { text, result: None })
}

/// Why a query with such a clause is not done by tier 1.
pub(super) fn not_on_the_server(refusal: Refusal) -> Refusal {
    let of_the_client = [
        &errors::UNKNOWN_COLUMN,
        &errors::AMBIGUOUS,
        &errors::COLUMN_COUNT,
    ];
    let other = !crate::scratch::takes_over(&refusal) || refusal.is_any(&of_the_client);
    match other {
        true => refusal,
        false => refusal.under(&errors::SERVER_HELD),
    }
}
