//! Statements told apart by their first words.

use crate::lex::{LexMode, Token, TokenKind, executable};
use crate::plan::Defines;
use crate::planner::{Request, identifier};
use onionskin_schema::{TableName, same_name};
use onionskin_value::Family;

pub(super) fn first_words<'a>(sql: &'a [u8], tokens: &[Token], count: usize) -> Vec<&'a str> {
    tokens
        .iter()
        .take(count)
        .map(|t| match t.kind {
            TokenKind::Word => std::str::from_utf8(t.text(sql)).unwrap_or(""),
            _ => "",
        })
        .collect()
}

pub(super) fn word_is(words: &[&str], at: usize, word: &str) -> bool {
    words.get(at).is_some_and(|w| w.eq_ignore_ascii_case(word))
}

/// `SHOW` statements that name no table outside of a condition; looking their words up would clear
/// what they show.
pub(super) fn keeps_diagnostics(words: &[&str]) -> bool {
    const KINDS: [&str; 8] = [
        "warnings",
        "errors",
        "count",
        "status",
        "variables",
        "processlist",
        "session",
        "global",
    ];
    KINDS.iter().any(|w| word_is(words, 1, w))
}

/// Statements that are prepared by their names, in SQL.
pub(super) fn is_by_name(words: &[&str]) -> bool {
    let is = |at, w| word_is(words, at, w);
    is(0, "prepare")
        || is(0, "execute")
        || (is(1, "prepare") && (is(0, "deallocate") || is(0, "drop")))
}

/// Whether one of them begins in or behind a comment that servers read, or behind MariaDB's SET
/// STATEMENT: its text is a string, which nobody would read.
pub(super) fn hides_by_name(sql: &[u8], tokens: &[Token], mode: LexMode) -> bool {
    let (comments, rest) = behind_comments(tokens);
    let is_behind = !comments.is_empty() && is_by_name(&first_words(sql, rest, 2));
    is_behind || hides_verb(sql, tokens, mode, &VERBS)
}

/// Whether the statement is BINLOG, whose rows are in no words, wherever that begins.
pub(super) fn gives_events(sql: &[u8], tokens: &[Token], mode: LexMode) -> bool {
    const EVENTS: [&str; 1] = ["binlog"];
    word_is(&first_words(sql, tokens, 1), 0, EVENTS[0]) || hides_verb(sql, tokens, mode, &EVENTS)
}

/// A statement behind the comments that servers read in front of it.
fn behind_comments(tokens: &[Token]) -> (&[Token], &[Token]) {
    tokens.split_at(tokens.iter().take_while(|t| hides_words(t)).count())
}

/// Whether a statement with one of these verbs begins in or behind a comment that servers read, or
/// behind MariaDB's SET STATEMENT.
fn hides_verb(sql: &[u8], tokens: &[Token], mode: LexMode, verbs: &[&str]) -> bool {
    let (comments, rest) = behind_comments(tokens);
    let is_verb = |words: &[&str]| verbs.iter().any(|w| word_is(words, 0, w));
    if !comments.is_empty() && is_verb(&first_words(sql, rest, 1)) {
        return true;
    }
    let mut executable = comments.iter().filter(|t| t.kind == TokenKind::Executable);
    let begins = executable.any(|t| {
        let (body, version) = crate::lex::executable(t.text(sql));
        let inner = &body[version..];
        // a text that does not end as it began is not read either
        crate::lex::tokens(inner, mode).map_or(true, |all| is_verb(&first_words(inner, &all, 1)))
    });
    let words = first_words(sql, rest, 2);
    let sets = word_is(&words, 0, "set") && word_is(&words, 1, "statement");
    let behind_for = |pair: &[Token]| {
        let is_hidden = hides_words(&pair[1]) || is_verb(&first_words(sql, &pair[1..], 1));
        pair[0].is_word(sql, "for") && is_hidden
    };
    begins || (sets && rest.windows(2).any(behind_for))
}

/// Words that begin a statement about statements prepared by name.
const VERBS: [&str; 3] = ["prepare", "execute", "deallocate"];

/// Whether the statement is `CREATE VIEW` or `ALTER VIEW`.
pub(super) fn defines_view(sql: &[u8], tokens: &[Token], words: &[&str]) -> bool {
    let mut head = tokens.iter().take_while(|t| !t.is_word(sql, "as"));
    (word_is(words, 0, "create") || word_is(words, 0, "alter"))
        && head.any(|t| t.is_word(sql, "view"))
}

/// The view that a statement makes, or puts into the place of one which is there. `None` if its
/// name stands in the statement once more: the definition may then read the view that is there.
pub(super) fn made_view(request: &Request, tokens: &[Token], words: &[&str]) -> Option<TableName> {
    let sql = request.sql;
    if !defines_view(sql, tokens, words) || tokens.iter().any(hides_words) {
        return None;
    }
    let mut at = tokens.iter().position(|t| t.is_word(sql, "view"))? + 1;
    let follows = |word: &(usize, &str)| {
        tokens
            .get(at + word.0)
            .is_some_and(|t| t.is_word(sql, word.1))
    };
    if [(0, "if"), (1, "not"), (2, "exists")].iter().all(follows) {
        at += 3;
    }
    let made = named(sql, tokens, at, request.settings.database.as_deref())?;
    let names = |t: &&Token| identifier(sql, t).is_some_and(|name| same_name(&name, &made.name));
    (tokens.iter().filter(names).count() == 1).then_some(made)
}

/// Whether words that the server may read are hidden in the token.
fn hides_words(token: &Token) -> bool {
    matches!(token.kind, TokenKind::Executable | TokenKind::Hint)
}

/// Words of statements that change what a name means.
const DEFINITIONS: [&str; 5] = ["create", "alter", "drop", "rename", "truncate"];

/// Whether the statement may change what a name means.
pub(super) fn defines(sql: &[u8], tokens: &[Token]) -> Defines {
    let words = first_words(sql, tokens, 2);
    let first = |w: &&str| word_is(&words, 0, w);
    if word_is(&words, 0, "set") && word_is(&words, 1, "role") {
        return Defines::Role;
    }
    if DEFINITIONS.iter().chain(&VERBS).any(first) {
        return Defines::Names;
    }
    let has_comment = tokens.iter().any(|t| t.kind == TokenKind::Executable);
    if !has_comment && !word_is(&words, 0, "call") {
        return Defines::Nothing;
    }
    // which word an executable comment makes the first one is not looked at
    let is_definition = |t: &Token| match t.kind {
        TokenKind::Executable => DEFINITIONS.iter().any(|w| {
            let mut places = t.text(sql).windows(w.len());
            places.any(|place| place.eq_ignore_ascii_case(w.as_bytes()))
        }),
        _ => DEFINITIONS.iter().any(|w| t.is_word(sql, w)),
    };
    match has_comment && tokens.iter().any(is_definition) {
        true => Defines::Names,
        false => Defines::Perhaps,
    }
}

/// Statements that name tables and nothing inside of them.
pub(super) fn relayed_by_table_name(words: &[&str]) -> bool {
    let is = |at, w| word_is(words, at, w);
    (is(0, "drop") && (is(1, "table") || is(1, "tables")))
        || (is(0, "drop") && is(1, "temporary"))
        || (is(0, "drop") && is(1, "view"))
        || is(0, "truncate")
        || (is(0, "rename") && (is(1, "table") || is(1, "tables")))
        || (is(0, "lock") && (is(1, "tables") || is(1, "table")))
        || (["analyze", "optimize", "check", "repair"]
            .iter()
            .any(|w| is(0, w))
            && (is(1, "table")
                || (is(2, "table") && (is(1, "local") || is(1, "no_write_to_binlog")))))
        || is(0, "flush")
        || is(0, "use")
        || is(0, "kill")
        || (is(0, "drop") && (is(1, "database") || is(1, "schema")))
        || (is(0, "create") && (is(1, "database") || is(1, "schema")))
        || (is(0, "show") && !shows_columns(words))
        || is(0, "commit")
        || is(0, "rollback")
        || is(0, "savepoint")
        || is(0, "release")
}

/// Statements about accounts: the word USER may be a table's name.
pub(super) fn manages_accounts(words: &[&str]) -> bool {
    let is = |at, w| word_is(words, at, w);
    ["create", "alter", "drop", "rename"]
        .iter()
        .any(|w| is(0, w))
        && (is(1, "user") || is(1, "role"))
}

/// Whether a statement about whole tables holds nothing else: no query and no condition, whose
/// constants would be sent.
pub(super) fn only_names(sql: &[u8], tokens: &[Token]) -> bool {
    const QUERIES: [&str; 9] = [
        "select", "insert", "update", "delete", "replace", "where", "values", "with", "set",
    ];
    !tokens
        .iter()
        .any(|t| QUERIES.iter().any(|w| t.is_word(sql, w)))
}

/// `SHOW` statements whose result names physical columns or shows definitions.
fn shows_columns(words: &[&str]) -> bool {
    let columns = |at| {
        [
            "create", "columns", "fields", "index", "indexes", "keys", "full", "extended",
        ]
        .iter()
        .any(|w| word_is(words, at, w))
    };
    columns(1)
}

/// MariaDB's `ANALYZE [FORMAT=JSON] SELECT …`, which runs the query and says how that went, as
/// opposed to `ANALYZE TABLE`.
pub(super) fn is_analyze(request: &Request, tokens: &[Token]) -> bool {
    const BEHIND: [&str; 3] = ["select", "with", "format"];
    let is_word = |at: usize, word| {
        tokens
            .get(at)
            .is_some_and(|t: &Token| t.is_word(request.sql, word))
    };
    request.settings.family == Family::MariaDb
        && is_word(0, "analyze")
        && (BEHIND.iter().any(|word| is_word(1, word)) || tokens.get(1).is_some_and(|t| t.is(b'(')))
}

/// `DESCRIBE table [column]`, as opposed to `EXPLAIN statement`.
pub(super) fn is_describe(sql: &[u8], tokens: &[Token]) -> bool {
    match tokens.get(1) {
        Some(t) if t.kind == TokenKind::Quoted => true,
        Some(t) if t.kind == TokenKind::Word => {
            const STATEMENTS: [&str; 14] = [
                "select",
                "insert",
                "update",
                "delete",
                "replace",
                "with",
                "table",
                "values",
                "extended",
                "partitions",
                "format",
                "analyze",
                "for",
                "into",
            ];
            !STATEMENTS.iter().any(|w| t.is_word(sql, w))
        }
        _ => false,
    }
}

/// An executable comment that may as well be left out: `/*!40001 SQL_NO_CACHE */`, and in
/// `LOCK TABLES t READ /*!32311 LOCAL */`.
pub(super) fn is_idle_comment(sql: &[u8], token: &Token) -> bool {
    const IDLE: [&str; 10] = [
        "delayed",
        "high_priority",
        "local",
        "low_priority",
        "quick",
        "sql_big_result",
        "sql_buffer_result",
        "sql_no_cache",
        "sql_small_result",
        "straight_join",
    ];
    if token.kind != TokenKind::Executable {
        return false;
    }
    let text = String::from_utf8_lossy(token.text(sql)).to_ascii_lowercase();
    let inner = text.trim_start_matches("/*!").trim_end_matches("*/");
    let words = inner.trim_start_matches(|c: char| c.is_ascii_digit());
    IDLE.contains(&words.trim())
}

/// Whether a token is one of these words.
pub(crate) fn is_one_of(sql: &[u8], token: &Token, words: &[&str]) -> bool {
    words.iter().any(|word| token.is_word(sql, word))
}

/// The table that is named here; `database` is that of one that names none.
pub(super) fn named(
    sql: &[u8],
    all: &[Token],
    at: usize,
    database: Option<&str>,
) -> Option<TableName> {
    let first = identifier(sql, all.get(at)?)?;
    match all.get(at + 1).is_some_and(|t| t.is(b'.')) {
        true => {
            let name = identifier(sql, all.get(at + 2)?)?;
            Some(TableName::new(first, name))
        }
        false => Some(TableName::new(database?, first)),
    }
}

/// The tokens, with those of executable comments in their places; `None` if these have none.
pub(crate) fn flattened(sql: &[u8], outer: &[Token], mode: LexMode) -> Option<Vec<Token>> {
    let mut all = Vec::with_capacity(outer.len());
    for token in outer {
        if token.kind != TokenKind::Executable {
            all.push(*token);
            continue;
        }
        let (body, version) = executable(token.text(sql));
        let inner = &body[version..];
        let begin = inner.as_ptr() as usize - sql.as_ptr() as usize;
        for inside in crate::lex::tokens(inner, mode).ok()? {
            all.push(Token {
                start: begin + inside.start,
                end: begin + inside.end,
                ..inside
            });
        }
    }
    Some(all)
}

/// Whether two names may be one to a server. It knows more about letters: `é` is `E`.
pub(super) fn may_be_one_name(a: &str, b: &str) -> bool {
    let is_same =
        |(a, b): (char, char)| !a.is_ascii() || !b.is_ascii() || a.eq_ignore_ascii_case(&b);
    a.chars().count() == b.chars().count() && a.chars().zip(b.chars()).all(is_same)
}

/// Whether the statement asks about the one before it, and reads no table for that.
pub(super) fn asks_about_the_last(sql: &[u8], tokens: &[Token], words: &[&str]) -> bool {
    const ASKED: [&str; 2] = ["row_count", "found_rows"];
    const READ: [&str; 3] = ["from", "join", "table"];
    const ROWS: [&str; 6] = ["select", "insert", "update", "delete", "replace", "values"];
    let holds = |list: &[&str]| tokens.iter().any(|t| is_one_of(sql, t, list));
    if word_is(words, 0, "get") {
        return !holds(&ROWS);
    }
    ["select", "set", "do"].iter().any(|w| word_is(words, 0, w))
        && !word_is(words, 1, "statement")
        && holds(&ASKED)
        && !holds(&READ)
        && !tokens.iter().any(|t| t.kind == TokenKind::Executable)
}
/// A word that the parser knows in the place of one that it does not: of `a MOD b`, and of units of
/// two parts such as `YEAR_MONTH`.
pub(super) fn known_word(sql: &[u8], tokens: &[Token], at: usize) -> Option<&'static str> {
    const UNITS: [&str; 11] = [
        "day_hour",
        "day_microsecond",
        "day_minute",
        "day_second",
        "hour_microsecond",
        "hour_minute",
        "hour_second",
        "minute_microsecond",
        "minute_second",
        "second_microsecond",
        "year_month",
    ];
    let token = &tokens[at];
    let is_call = tokens.get(at + 1).is_some_and(|t| t.is(b'('));
    // behind a dot any word is a column's name
    if at > 0 && tokens[at - 1].is(b'.') {
        return None;
    }
    match () {
        () if token.is_word(sql, "mod") && !is_call => Some("%"),
        () if UNITS.iter().any(|u| token.is_word(sql, u)) => Some("year"),
        () => None,
    }
}
