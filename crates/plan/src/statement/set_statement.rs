//! MariaDB's `SET STATEMENT variable = value FOR SELECT …`.
//!
//! A setting for one statement may change what its values mean (`sql_mode`, `time_zone`, character
//! sets), which is known here for the session only. So the variables are those of a list: how long
//! the statement may take, and how the server goes about it. The statement must be a query that the
//! server answers, alone or for tier 2: what is asked of the server besides would not have the
//! settings.

use std::sync::Arc;

use onionskin_schema::Table;
use onionskin_value::Family;

use super::Decided;
use super::rows::planned;
use crate::errors::NotUnderstood;
use crate::lex::{LiteralKind, Token, TokenKind};
use crate::plan::{Action, Text};
use crate::planner::{Planned, Planner, Request, TextBuilder};

/// Variables that change no answer, sorted.
const VARIABLES: [&str; 17] = [
    "eq_range_index_dive_limit",
    "innodb_lock_wait_timeout",
    "join_buffer_size",
    "join_cache_level",
    "lock_wait_timeout",
    "long_query_time",
    "max_heap_table_size",
    "max_statement_time",
    "optimizer_prune_level",
    "optimizer_search_depth",
    "optimizer_switch",
    "optimizer_use_condition_selectivity",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "slow_query_log",
    "sort_buffer_size",
    "tmp_table_size",
];

/// Whether the statement is one.
pub(super) fn is_set_statement(request: &Request, tokens: &[Token]) -> bool {
    let is = |n: usize, word: &str| tokens.get(n).is_some_and(|t| t.is_word(request.sql, word));
    request.settings.family == Family::MariaDb && is(0, "set") && is(1, "statement")
}

/// Plans one.
pub(super) fn set_statement<'a>(
    request: &'a Request<'a>,
    tokens: &[Token],
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let sql = request.sql;
    let Some(end) = tokens.iter().position(|t| t.is_word(sql, "for")) else {
        return NotUnderstood::Clause("SET STATEMENT").refuse();
    };
    for assignment in tokens[2..end].split(|t| t.is(b',')) {
        check(sql, assignment)?;
    }
    let inner = &tokens[end + 1..];
    let begins = |word: &str| inner.first().is_some_and(|t| t.is_word(sql, word));
    let (Some(first), true) = (inner.first(), begins("select") || begins("with")) else {
        return NotUnderstood::SetStatement("for anything but a query").refuse();
    };
    let mut planner = Planner::new(request, inner.to_vec(), near)?;
    // the parser must not see what stands before
    if !planner
        .parse_text
        .get(..first.start)
        .is_some_and(str::is_ascii)
    {
        return NotUnderstood::Clause("SET STATEMENT").refuse();
    }
    let blank = " ".repeat(first.start);
    planner.parse_text.replace_range(..first.start, &blank);
    let all = Planner::new(request, tokens.to_vec(), Vec::new())?;
    let head = all.original(tokens[0].start..first.start);
    let with_head = |text: Text| {
        let mut whole = TextBuilder::default();
        let pieces = head.iter().cloned().chain(text);
        pieces.for_each(|piece| whole.piece(piece));
        whole.finish()
    };
    let action = match planned(&mut planner)? {
        Action::Server { text, result } => Action::Server {
            text: with_head(text),
            result,
        },
        Action::Finish(mut finish) => {
            finish.text = with_head(finish.text);
            Action::Finish(finish)
        }
        _ => {
            return NotUnderstood::SetStatement("for a query that the server does not answer")
                .refuse();
        }
    };
    Ok((action, Some(planner)))
}

/// `variable = value`, of the list, and the value a word or a constant.
fn check(sql: &[u8], assignment: &[Token]) -> Planned<()> {
    let [name, equals, value] = assignment else {
        return NotUnderstood::SetStatement("in this form").refuse();
    };
    let text = String::from_utf8_lossy(name.text(sql)).to_ascii_lowercase();
    if name.kind != TokenKind::Word || VARIABLES.binary_search(&text.as_str()).is_err() {
        return NotUnderstood::SetStatement(
            "with a variable that may change the statement's meaning",
        )
        .refuse();
    }
    let is_value = match value.kind {
        TokenKind::Word => true,
        TokenKind::Literal(kind) => kind != LiteralKind::Parameter,
        _ => false,
    };
    match equals.is(b'=') && is_value {
        true => Ok(()),
        false => NotUnderstood::SetStatement("in this form").refuse(),
    }
}

#[cfg(test)]
mod tests {
    use super::VARIABLES;

    #[test]
    fn the_list_is_sorted() {
        assert!(VARIABLES.windows(2).all(|w| w[0] < w[1]));
    }
}
