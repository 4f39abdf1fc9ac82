//! Plans by words: for queries that the parser does not know, and for forms of which `walk.rs` does
//! not say what they read.
//!
//! The places of tables in the text need not be known if nothing has to be renamed. MariaDB opens a
//! temporary table as often as a statement likes. Where MySQL says that it cannot, the statement is
//! refused after all. So every table whose name stands anywhere in the statement is read, without
//! conditions. The scratch engine finds out what the text means. A word that is an alias or a
//! column after all costs a read and changes nothing. Words also tell what must not run there:
//! calls of anything but the listed functions, and clauses that write, lock, wait or mean the
//! server's own objects.

use std::collections::HashSet;

use onionskin_schema::{TableName, folded};

use super::functions::is_carried;
use super::reads;
use super::walk::{Reference, SYSTEM};
use super::{Scratch, finds_more};
use crate::errors::{self, NotUnderstood};
use crate::lex::TokenKind;
use crate::plan::Action;
use crate::planner::{Known, Planned, Planner, refuse};

/// Words with a meaning that another server cannot give, or that do more than read. Locks, the past
/// of a table and numbers of sequences stand behind FOR. LIMIT ROWS EXAMINED counts the server's
/// own work. WITH may begin an UPDATE or DELETE.
const REFUSED: [&str; 11] = [
    "CURRVAL",
    "DELETE",
    "EXAMINED",
    "FOR",
    "INTO",
    "LASTVAL",
    "LOCK",
    "NEXTVAL",
    "PROCEDURE",
    "TABLE",
    "UPDATE",
];

/// Words that a parenthesis may follow and that call nothing; sorted.
const OPENING: [&str; 53] = [
    "all",
    "and",
    "any",
    "as",
    "between",
    "binary",
    "by",
    "case",
    "cast",
    "columns",
    "cross",
    "datetime",
    "dec",
    "decimal",
    "distinct",
    "double",
    "else",
    "except",
    "exists",
    "fixed",
    "float",
    "from",
    "group",
    "having",
    "in",
    "inner",
    "int",
    "integer",
    "intersect",
    "is",
    "join",
    "like",
    "limit",
    "nchar",
    "not",
    "numeric",
    "on",
    "or",
    "outer",
    "over",
    "regexp",
    "rlike",
    "select",
    "separator",
    "some",
    "straight_join",
    "then",
    "union",
    "using",
    "values",
    "varchar",
    "when",
    "where",
];

/// Plans a query for the scratch engine; `names`: what its words may mean.
pub(crate) fn query(planner: &mut Planner<'_>, names: &[TableName]) -> Planned<Action> {
    let current = planner.request.settings.database.as_deref();
    let is_system = |name: &str| SYSTEM.iter().any(|s| name.eq_ignore_ascii_case(s));
    // without a database, the engine's session would still have one
    if current.is_none_or(is_system) {
        return NotUnderstood::SystemTable.refuse();
    }
    check_words(planner)?;
    let variables = reads::variables(planner)?;
    let mut met = HashSet::new();
    let mut references = Vec::new();
    for name in names {
        let catalog = planner.request.catalog;
        let Known::Table(table) = catalog.table(&name.database, &name.name) else {
            continue;
        };
        if SYSTEM
            .iter()
            .any(|s| table.database.eq_ignore_ascii_case(s))
        {
            return NotUnderstood::SystemTable.refuse();
        }
        if let Some(reason) = &table.damaged {
            let about = format!("{}.{} ({reason})", table.database, table.name);
            return refuse(&errors::DAMAGED, about);
        }
        if met.insert(TableName::folded(&table.database, &table.name)) {
            references.push(Reference::anywhere(table));
        }
    }
    let all = 0..planner.tokens.len();
    let (reads, renamed) = reads::reads(planner, references, all)?;
    let finds_more = finds_more(planner);
    Ok(Action::Scratch(Box::new(Scratch {
        reads,
        variables,
        renamed,
        finds_more,
    })))
}

/// Whether nothing but reading can be meant.
fn check_words(planner: &Planner<'_>) -> Planned<()> {
    let sql = planner.sql();
    let tokens = &planner.tokens;
    let end = tokens
        .iter()
        .rposition(|t| !t.is(b';'))
        .map_or(0, |i| i + 1);
    let first = tokens.iter().find(|t| !t.is(b'('));
    if !first.is_some_and(|t| t.is_word(sql, "select") || t.is_word(sql, "with")) {
        return NotUnderstood::Grammar.refuse();
    }
    for (at, token) in tokens[..end].iter().enumerate() {
        if token.is(b';') {
            return NotUnderstood::TextBehind("its end").refuse();
        }
        if !matches!(token.kind, TokenKind::Word | TokenKind::Quoted) {
            continue;
        }
        let behind = |n: usize| tokens.get(at + n);
        // behind a dot any word is a column's name
        let is_member = at > 0 && tokens[at - 1].is(b'.');
        let name = folded(&planner.name_of(token).unwrap_or_default());
        let qualifies = behind(1).is_some_and(|t| t.is(b'.'));
        if qualifies && SYSTEM.contains(&name.as_str()) {
            return NotUnderstood::SystemTable.refuse();
        }
        let is_word = token.kind == TokenKind::Word;
        let refused = REFUSED.iter().find(|w| w.eq_ignore_ascii_case(&name));
        if is_word && let Some(word) = refused {
            return NotUnderstood::Within(word, "a query").refuse();
        }
        if !behind(1).is_some_and(|t| t.is(b'(')) {
            if is_word && !is_member && ["insert", "replace"].contains(&name.as_str()) {
                return NotUnderstood::Within("a statement", "a query").refuse();
            }
            continue;
        }
        let harmless =
            is_word && !is_member && (OPENING.contains(&name.as_str()) || is_carried(&name));
        if !harmless && !names_columns(planner, at) {
            return refuse(&errors::SCRATCH_FUNCTION, format!("{name}()"));
        }
    }
    Ok(())
}

/// `WITH name (a, b) AS (…`
fn names_columns(planner: &Planner<'_>, at: usize) -> bool {
    let sql = planner.sql();
    let Ok(close) = planner.closing(at + 1) else {
        return false;
    };
    let is = |n: usize| planner.tokens.get(close + n);
    is(1).is_some_and(|t| t.is_word(sql, "as")) && is(2).is_some_and(|t| t.is(b'('))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_call_nothing_that_acts() {
        for name in ["sleep", "get_lock", "nextval", "load_file", "row_count"] {
            assert!(!OPENING.contains(&name) && !is_carried(name), "{name}");
        }
    }
}
