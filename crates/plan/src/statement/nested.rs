//! Queries inside of statements that have no place for one.
//!
//! A definition, a statement about accounts or `KILL` is told by a few of its words, and goes to
//! the server. A query may stand in it all the same: `ALTER TABLE p ADD CHECK (v <> (SELECT …))`.
//! The server refuses it, and has its constants in its log by then. So what is read by a few words
//! may hold no query with values, as long as any of its names is that of a protected table. Neither
//! may it hold a value and the name of a protected column: `GRANT … TO app WHERE name = 'x'`.

use std::sync::Arc;

use onionskin_schema::Table;
use onionskin_value::Family;

use super::end_query::{BEGIN_QUERIES, in_definition, query_at_end};
use super::stray;
use super::words::{asks_about_the_last, first_words, flattened, is_one_of, may_be_one_name};
use crate::errors;
use crate::lex::{LexMode, Token, TokenKind};
use crate::native::is_native;
use crate::plan::{Action, Show};
use crate::planner::{Known, Planned, Request, identifier, refuse};

/// Words that conditions and rows of values begin with.
const CONDITIONS: [&str; 4] = ["where", "having", "values", "value"];

/// Words that statements with values begin with.
const CHANGES: [&str; 5] = ["insert", "replace", "update", "delete", "where"];

/// Words of statements that are read as a whole where they are near protected tables, their queries
/// too.
const READ: [&str; 16] = [
    "select", "insert", "replace", "update", "delete", "with", "values", "table", "do", "call",
    "set", "explain", "describe", "desc", "analyze", "load",
];

/// What stands in a statement beside what it is told by: which statements are refused for it, and
/// in which words.
pub(super) struct Hidden {
    is_near: bool,
    found: Vec<(Refused, &'static str)>,
}

/// Which statements are refused for something that stands in them.
#[derive(Clone, Copy)]
enum Refused {
    All,
    /// Those that no rule has refused already.
    Decided,
    /// The same without what shows definitions, whose conditions are read.
    NotShown,
    /// `SHOW CREATE`.
    ShowCreate,
    /// Definitions of tables with protected columns.
    Defined,
    /// Those that go to the server as they are.
    Relayed,
    /// The same, if a table is missing that would be protected.
    OfMissing,
    /// Those that go to the server as they are near a protected table, or show a definition or are
    /// prepared near one or near a missing one.
    Sent,
}

impl Hidden {
    /// `near`: the protected tables that it may name.
    pub(super) fn of(request: &Request, tokens: &[Token], near: &[Arc<Table>]) -> Self {
        let (sql, mode) = (request.sql, request.settings.lex);
        let is_near = !near.is_empty();
        let holds = |what: &dyn Fn(&[Token]) -> bool| in_all(sql, tokens, mode, what);
        let mut hidden = Hidden {
            is_near,
            found: Vec::new(),
        };
        if holds(&|all| reads_by_alias(request, all)) {
            let about = "HANDLER by another name than the table's";
            hidden.found.push((Refused::All, about));
        }
        if !holds(&|all| all.iter().any(is_value)) {
            return hidden;
        }
        let family = request.settings.family;
        let out_of_place = "a value where a definition has no place for one";
        for (holds, refused, about) in [
            (
                asks_with_columns(sql, tokens, mode),
                Refused::All,
                "a table's column beside a question about the last statement",
            ),
            (
                holds_query(sql, tokens, mode),
                Refused::Sent,
                "a query in a statement of this kind",
            ),
            (
                holds(&|all| stray::has_stray_value(sql, all, near)),
                // of a new table with protected columns, too
                if is_near {
                    Refused::Decided
                } else {
                    Refused::Defined
                },
                out_of_place,
            ),
            (
                is_near && holds(&|all| stray::names_another(sql, all, near)),
                Refused::Relayed,
                out_of_place,
            ),
            (
                holds(&|all| has_clause(sql, all)),
                Refused::OfMissing,
                "a condition in a statement of this kind, by a name that [protect] matches",
            ),
            (
                is_near && holds(&|all| calls_column(sql, all, near, family)),
                Refused::Decided,
                "a value in parentheses behind a protected column, as if it were a function",
            ),
            (true, Refused::ShowCreate, "a value in SHOW CREATE"),
            (
                is_near && holds_condition(sql, tokens, mode, near),
                Refused::NotShown,
                "a value beside a protected column in a statement of this kind",
            ),
        ] {
            if holds {
                hidden.found.push((refused, about));
            }
        }
        hidden
    }

    /// Refuses a statement that would go to the server with it.
    pub(super) fn check(&self, action: &Action, names_missing: impl Fn() -> bool) -> Planned<()> {
        let is_relayed = matches!(action, Action::Relay);
        let is_decided = !matches!(action, Action::Refuse(_));
        let is_refused = |refused: &Refused| match refused {
            Refused::All => true,
            Refused::Decided => is_decided,
            Refused::NotShown => is_decided && !matches!(action, Action::Show { .. }),
            Refused::ShowCreate => match action {
                Action::Show { what, .. } => matches!(what, Show::CreateTable | Show::CreateView),
                _ => false,
            },
            Refused::Defined => {
                matches!(
                    action,
                    Action::Define(_) | Action::Refit(_) | Action::Copy(_)
                )
            }
            Refused::Relayed => is_relayed,
            Refused::OfMissing => is_relayed && names_missing(),
            Refused::Sent => match action {
                Action::Relay => self.is_near,
                Action::ByName(_) | Action::Show { .. } => self.is_near || names_missing(),
                _ => false,
            },
        };
        match self.found.iter().find(|(refused, _)| is_refused(refused)) {
            Some((_, about)) => refuse(&errors::STATEMENT, *about),
            None => Ok(()),
        }
    }
}

/// [`has_query`] of a statement that may have executable comments.
pub(super) fn holds_query(sql: &[u8], tokens: &[Token], mode: LexMode) -> bool {
    in_all(sql, tokens, mode, |all| has_query(sql, all))
}

/// Whether a query with values stands in a statement that is told by a few words.
pub(super) fn has_query(sql: &[u8], all: &[Token]) -> bool {
    is_told_by_words(sql, all)
        && all.iter().any(is_value)
        && opens_query(sql, in_definition(sql, all))
}

/// Whether a statement is told by a few words, whatever else stands in it.
fn is_told_by_words(sql: &[u8], all: &[Token]) -> bool {
    let Some(first) = all.first() else {
        return false;
    };
    let is = |at: usize, words: &[&str]| all.get(at).is_some_and(|t| is_one_of(sql, t, words));
    let is_read = is_one_of(sql, first, &READ) || first.is(b'(');
    let is_about_words = (is(0, &["set"])
        && all.iter().take(4).any(|t| t.is_word(sql, "transaction")))
        || (is(0, &["analyze"]) && all.iter().take(3).any(|t| t.is_word(sql, "table")));
    !is_read || is_about_words
}

/// Whether a value stands beside the name of a protected column of these tables, or beside a word
/// that conditions and rows begin with, in a statement that is told by a few words.
pub(super) fn holds_condition(
    sql: &[u8],
    tokens: &[Token],
    mode: LexMode,
    near: &[Arc<Table>],
) -> bool {
    in_all(sql, tokens, mode, |all| has_condition(sql, all, near))
}

/// Whether a value stands in a statement, and a name behind a table's name or a word that begins
/// another statement.
pub(super) fn holds_names(sql: &[u8], tokens: &[Token], mode: LexMode) -> bool {
    let is_name = |token: &Token| matches!(token.kind, TokenKind::Word | TokenKind::Quoted);
    let is_qualified = |t: &[Token]| is_name(&t[0]) && t[1].is(b'.') && is_name(&t[2]);
    // REPLACE( is a function
    let changes = |t: &[Token]| is_one_of(sql, &t[0], &CHANGES) && !t[1].is(b'(');
    in_all(sql, tokens, mode, |all| {
        all.iter().any(is_value)
            && (all.windows(3).any(is_qualified) || all.windows(2).skip(1).any(changes))
    })
}

/// Whether a value and a table's column stand in a question about the last statement, which reads
/// no table: an error to every server.
pub(super) fn asks_with_columns(sql: &[u8], tokens: &[Token], mode: LexMode) -> bool {
    let is_name = |token: &Token| matches!(token.kind, TokenKind::Word | TokenKind::Quoted);
    in_all(sql, tokens, mode, |all| {
        let is_column = |at: usize| {
            let call = all.get(at + 3).is_some_and(|t| t.is(b'('));
            is_name(&all[at]) && all[at + 1].is(b'.') && is_name(&all[at + 2]) && !call
        };
        asks_about_the_last(sql, all, &first_words(sql, all, 2))
            && all.iter().any(is_value)
            && (0..all.len().saturating_sub(2)).any(is_column)
    })
}

/// What is so of a statement's tokens, those of executable comments in their places.
fn in_all(sql: &[u8], tokens: &[Token], mode: LexMode, is: impl Fn(&[Token]) -> bool) -> bool {
    let is_comment = |token: &Token| token.kind == TokenKind::Executable;
    match tokens.iter().any(is_comment) {
        true => flattened(sql, tokens, mode).is_some_and(|all| is(&all)),
        false => is(tokens),
    }
}

fn is_value(token: &Token) -> bool {
    matches!(token.kind, TokenKind::Literal(_))
}

fn has_condition(sql: &[u8], all: &[Token], near: &[Arc<Table>]) -> bool {
    let mut all = all;
    let is = |at: usize, words: &[&str]| all.get(at).is_some_and(|t| is_one_of(sql, t, words));
    // definitions have readers of their own, but for those of accounts and databases
    let is_definition =
        is(0, &["create", "alter"]) && !is(1, &["user", "role", "database", "schema"]);
    let is_told = is_told_by_words(sql, all) && !is_definition;
    if !is_told && !asks_about_the_last(sql, all, &first_words(sql, all, 2)) {
        return false;
    }
    // these name columns before ON
    if all
        .first()
        .is_some_and(|t| is_one_of(sql, t, &["grant", "revoke"]))
    {
        let on = all.iter().position(|t| t.is_word(sql, "on"));
        all = on.map_or(all, |on| &all[on..]);
    }
    if !all.iter().any(is_value) {
        return false;
    }
    let begins = |token: &Token| is_one_of(sql, token, &CONDITIONS);
    let is_protected = |token: &Token| {
        let is_name = matches!(token.kind, TokenKind::Word | TokenKind::Quoted);
        let name = identifier(sql, token).filter(|_| is_name);
        name.is_some_and(|name| {
            let mut columns = near.iter().flat_map(|table| table.protected_columns());
            columns.any(|(column, _)| may_be_one_name(&column.name, &name))
        })
    };
    all.iter().any(|token| begins(token) || is_protected(token))
}

/// Whether a condition stands in a statement that is told by its first words, and is no definition.
fn has_clause(sql: &[u8], all: &[Token]) -> bool {
    let is_definition = all
        .first()
        .is_some_and(|t| is_one_of(sql, t, &["create", "alter", "show", "grant", "revoke"]));
    is_told_by_words(sql, all)
        && !is_definition
        && all
            .iter()
            .skip(1)
            .any(|t| is_one_of(sql, t, &["where", "having"]))
}

/// Whether HANDLER opens a table under another name, or reads one that is no table's with values.
/// Servers go on under that name when the table has become another one.
fn reads_by_alias(request: &Request, all: &[Token]) -> bool {
    let sql = request.sql;
    if !all.first().is_some_and(|t| is_one_of(sql, t, &["handler"])) {
        return false;
    }
    // a table may be called OPEN
    let is_verb = |at: &usize| is_one_of(sql, &all[*at], &["open", "read", "close"]);
    let Some(open) = (2..all.len()).find(is_verb) else {
        return false;
    };
    let behind = &all[open + 1..];
    match () {
        () if is_one_of(sql, &all[open], &["open"]) => behind
            .iter()
            .any(|t| !t.is(b';') && t.kind != TokenKind::Executable),
        () if is_one_of(sql, &all[open], &["read"]) => {
            let name = all
                .get(1)
                .and_then(|t| identifier(sql, t))
                .unwrap_or_default();
            let database = request.settings.database.as_deref().unwrap_or_default();
            let is_table = matches!(request.catalog.table(database, &name), Known::Table(_));
            let is_qualified = all.get(2).is_some_and(|t| t.is(b'.'));
            !is_table && !is_qualified && behind.iter().any(is_value)
        }
        () => false,
    }
}

/// Whether a value stands in parentheses behind the name of a protected column, where servers see a
/// call: a forgotten IN. What a server knows as a function of its own is one.
fn calls_column(sql: &[u8], all: &[Token], near: &[Arc<Table>], family: Family) -> bool {
    const NO_CALLS: [&str; 8] = [
        "into", "table", "insert", "replace", "ignore", "key", "index", "with",
    ];
    let is_definition = all
        .first()
        .is_some_and(|t| is_one_of(sql, t, &["create", "alter", "drop"]));
    let all = match query_at_end(sql, all) {
        Some(at) => &all[at..],
        None if is_definition => return false,
        None => all,
    };
    (0..all.len().saturating_sub(1)).any(|at| {
        let is_name = matches!(all[at].kind, TokenKind::Word | TokenKind::Quoted);
        if !is_name || !all[at + 1].is(b'(') {
            return false;
        }
        let before = at.checked_sub(1).map(|n| &all[n]);
        let is_qualified = before.is_some_and(|t| t.is(b'.'));
        let name = identifier(sql, &all[at]).unwrap_or_default();
        let is_own = !is_qualified && all[at].kind == TokenKind::Word && is_native(&name, family);
        if is_own || before.is_some_and(|t| is_one_of(sql, t, &NO_CALLS)) {
            return false;
        }
        let mut columns = near.iter().flat_map(|table| table.protected_columns());
        columns.any(|(column, _)| may_be_one_name(&column.name, &name))
            && within(all, at + 1).iter().any(is_value)
    })
}

/// What stands in the parentheses that open here.
fn within(all: &[Token], open: usize) -> &[Token] {
    let mut depth = 0usize;
    for at in open..all.len() {
        if all[at].is(b'(') {
            depth += 1;
        } else if all[at].is(b')') {
            depth -= 1;
            if depth == 0 {
                return &all[open + 1..at];
            }
        }
    }
    &all[open + 1..]
}

/// Whether a query in parentheses begins among these words.
pub(super) fn opens_query(sql: &[u8], all: &[Token]) -> bool {
    let mut pairs = all.windows(2);
    pairs.any(|pair| pair[0].is(b'(') && is_one_of(sql, &pair[1], &BEGIN_QUERIES))
}
