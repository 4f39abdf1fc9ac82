//! Tables that are not there, of names that `[protect]` is about.
//!
//! A statement that names such a table fails. Its values belong into protected columns all the
//! same: the CREATE TABLE before it may have been refused. So the server is asked for the table
//! before it gets the statement, which would stand in its log.
//!
//! A name counts that stands where the grammar has a table: of a statement that is parsed, one
//! that the tree has as a table, else the one that the statement changes. A temporary table is not
//! listed by any server, and is asked for in vain.

use onionskin_schema::TableName;

use super::near::{is_reserved, tables_in_tree};
use crate::lex::{LiteralKind, Token, TokenKind};
use crate::planner::{Known, Request, identifier};

/// Words behind which a table stands.
const BEFORE: [&str; 5] = ["from", "join", "straight_join", "into", "update"];
/// Words between the first one of a statement and a table.
const BETWEEN: [&str; 6] = [
    "low_priority",
    "high_priority",
    "delayed",
    "ignore",
    "quick",
    "from",
];
/// Words that statements with values begin with.
const VERBS: [&str; 12] = [
    "select", "insert", "replace", "update", "delete", "with", "explain", "describe", "desc",
    "analyze", "do", "set",
];
/// Tokens in front of the table that a statement changes: a verb, two words for how, INTO.
const LEADING: usize = 4;
/// Words that end a list of tables.
const BEHIND: [&str; 14] = [
    "where",
    "set",
    "group",
    "order",
    "having",
    "limit",
    "union",
    "except",
    "intersect",
    "window",
    "on",
    "using",
    "values",
    "select",
];

/// The tables that a statement with values names, that are not there, and whose columns would be
/// protected.
pub(super) fn missing(request: &Request, tokens: &[Token]) -> Vec<TableName> {
    let sql = request.sql;
    let is = |at: usize, words: &[&str]| {
        let token = tokens.get(at);
        token.is_some_and(|t| words.iter().any(|word| t.is_word(sql, word)))
    };
    let has_values = request
        .template
        .literals
        .iter()
        .any(|literal| literal.kind != LiteralKind::Parameter);
    if request.policy.is_empty() || !has_values {
        return Vec::new();
    }
    if !is(0, &VERBS) && !tokens.first().is_some_and(|t| t.is(b'(')) {
        return Vec::new();
    }
    let mut found: Vec<(TableName, bool)> = Vec::new();
    // for each open parenthesis, whether tables stand between commas in it
    let mut lists = vec![false];
    // and whether it is that of a function
    let mut calls = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let stands = if token.is(b'(') {
            lists.push(lists.last() == Some(&true));
            let before = at.checked_sub(1).map(|before| &tokens[before]);
            let is_name = |t: &Token| t.kind == TokenKind::Word && !is_keyword(t.text(sql));
            calls.push(before.is_some_and(is_name));
            continue;
        } else if token.is(b')') {
            lists.pop();
            calls.pop();
            continue;
        } else if is(at, &BEHIND) {
            lists.pop();
            lists.push(false);
            false
        } else {
            let first = at == 0 && is(0, &["insert", "replace", "delete"]);
            let is_list = is(at, &BEFORE);
            if is_list {
                lists.pop();
                lists.push(true);
            }
            first || is_list || (token.is(b',') && lists.last() == Some(&true))
        };
        if !stands {
            continue;
        }
        let mut place = at + 1;
        while is(place, &BETWEEN) {
            place += 1;
        }
        let Some(name) = named(request, tokens, place) else {
            continue;
        };
        let (database, table) = (&name.database, &name.name);
        let is_absent = matches!(request.catalog.table(database, table), Known::Absent);
        if is_absent
            && request.policy.concerns(database, table)
            && !is_defined(request, tokens, table)
        {
            let leads = match () {
                // all that stands in front of SET
                () if is(0, &["update"]) => !tokens[..at].iter().any(|t| t.is_word(sql, "set")),
                () if is(0, &["insert", "replace", "delete"]) => at < LEADING,
                // not behind FOR UPDATE, and not in EXTRACT(YEAR FROM d)
                () => !is(at, &["update", "into"]) && !calls.contains(&true),
            };
            found.push((name, leads));
        }
    }
    if found.is_empty() {
        return Vec::new();
    }
    let parsed = tables_in_tree(request, tokens);
    let mut names: Vec<TableName> = Vec::new();
    for (name, leads) in found {
        let is_table = match &parsed {
            None => leads,
            Some(tables) => tables.iter().any(|(_, table)| *table == name.name),
        };
        if is_table && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The table that is named here.
fn named(request: &Request, tokens: &[Token], at: usize) -> Option<TableName> {
    let first = identifier(request.sql, tokens.get(at)?)?;
    let is = |at: usize, c: u8| tokens.get(at).is_some_and(|t| t.is(c));
    if is(at + 1, b'.') {
        let name = identifier(request.sql, tokens.get(at + 2)?)?;
        return Some(TableName::new(first, name));
    }
    let database = request.settings.database.as_deref()?;
    let is_word = |word: &str| tokens[at].is_word(request.sql, word);
    // INSERT INTO, and what a query stands behind
    let is_other = ["into", "select", "lateral", "dual", "outfile", "dumpfile"]
        .iter()
        .any(|word| is_word(word));
    (!is_other).then(|| TableName::new(database, first))
}

/// Whether a word is none that an alias stands behind.
fn is_keyword(word: &[u8]) -> bool {
    let word = String::from_utf8_lossy(word);
    let mut words = BEFORE.iter().chain(&BETWEEN).chain(&VERBS).chain(&BEHIND);
    (is_reserved(&word) && !word.eq_ignore_ascii_case("as"))
        || words.any(|other| word.eq_ignore_ascii_case(other))
}

/// Whether the statement may define this name: in WITH, or as an alias.
fn is_defined(request: &Request, tokens: &[Token], name: &str) -> bool {
    let sql = request.sql;
    let is = |token: &Token| identifier(sql, token).is_some_and(|n| n.eq_ignore_ascii_case(name));
    let has_with = tokens.iter().any(|t| t.is_word(sql, "with"));
    tokens.windows(2).any(|pair| {
        let [before, behind] = pair else { return false };
        let is_common = is(before) && (behind.is_word(sql, "as") || behind.is(b'('));
        let is_alias = is(behind)
            && match before.kind {
                TokenKind::Quoted => true,
                TokenKind::Word => !is_keyword(before.text(sql)),
                _ => before.is(b')'),
            };
        (has_with && is_common) || is_alias
    })
}
