//! What a statement may be about: every word of it that may be a table's name.

use onionskin_schema::TableName;

use super::nested::{holds_names, holds_query};
use super::words::{
    asks_about_the_last, first_words, flattened, is_by_name, is_one_of, keeps_diagnostics, word_is,
};
use crate::lex::executable;
use crate::lex::{LexError, LexMode, LiteralKind, Token, TokenKind};
use crate::named::{NamedTable, tables_named, tables_of_rows};
use crate::native::is_reserved;
use crate::planner::{Known, Planner, Request, identifier};
use crate::request::COLLATION;

/// Whether no word of the statement is meant for a table.
fn names_nothing(request: &Request, tokens: &[Token], words: &[&str]) -> bool {
    if word_is(words, 0, "show") && keeps_diagnostics(words) && !may_query(request.sql, tokens) {
        return true;
    }
    // transactions are named by strings; while one is prepared, servers answer no question about
    // tables
    if word_is(words, 0, "xa") {
        return true;
    }
    // a question about tables would be the transaction that SET TRANSACTION means
    if tokens.iter().all(|t| ends_or_begins(request.sql, t))
        || is_about_savepoint(request.sql, tokens)
    {
        return true;
    }
    // without autocommit the question would begin a transaction, in which it is an error
    let sets_transaction = (1..3).any(|at| word_is(words, at, "transaction"));
    if word_is(words, 0, "set") && sets_transaction {
        return true;
    }
    // a question about tables would end the list of warnings, which MariaDB keeps over these
    if names_no_table(request.sql, tokens, words) {
        return true;
    }
    // names of statements; what is in their texts is planned for itself
    if is_by_name(words) {
        return true;
    }
    // a question about tables would be the statement that these ask about
    asks_about_the_last(request.sql, tokens, words)
}

/// Every table's name that an identifier of the statement may mean, in the statement's own letters.
/// Servers on file systems that tell `T` from `t` tell the tables apart, too.
pub(crate) fn candidates(request: &Request, tokens: &[Token]) -> Result<Vec<TableName>, LexError> {
    let mut found = Vec::new();
    let database = request.settings.database.as_deref();
    let words = first_words(request.sql, tokens, 3);
    // a query or a condition in such a statement is an error to every server, and its constants are
    // the table's
    if names_nothing(request, tokens, &words)
        && !holds_query(request.sql, tokens, request.settings.lex)
        && !holds_names(request.sql, tokens, request.settings.lex)
    {
        return Ok(found);
    }
    collect(request, tokens, database, &mut found)?;
    joined(request.sql, tokens, request.settings.lex, &mut found)?;
    if word_is(&words, 0, "show") {
        found.extend(shown_from(request.sql, tokens));
    }
    let may_define = |t: &Token| {
        t.kind == TokenKind::Executable || is_one_of(request.sql, t, &["create", "alter"])
    };
    if tokens.iter().any(may_define)
        && let Some(all) = flattened(request.sql, tokens, request.settings.lex)
    {
        let mut databases = program_databases(request.sql, &all);
        let is_comment = |t: &Token| t.kind == TokenKind::Executable;
        let is_kind = |t: &Token| is_one_of(request.sql, t, &PROGRAMS);
        if tokens.iter().any(is_comment) && all.iter().any(is_kind) {
            databases = qualifiers(request.sql, &all);
        }
        if databases.len() > MAX_DATABASES {
            return Err(LexError::TooManyNames(MAX_NAMES));
        }
        for database in databases {
            names(request, request.sql, &all, Some(&database), &mut found)?;
        }
    }
    if word_is(&words, 0, "create") || word_is(&words, 0, "alter") {
        // what new columns take their collation from
        let named = crate::ddl::target(request, tokens).and_then(|(d, t)| Some((d?, t)));
        if let Some((database, table)) = named {
            found.push(TableName::new(&database, COLLATION));
            found.push(TableName::new(database, format!("{COLLATION}{table}")));
        }
    }
    found.sort();
    found.dedup();
    if found.len() > MAX_NAMES {
        return Err(LexError::TooManyNames(MAX_NAMES));
    }
    Ok(found)
}

/// `SHOW COLUMNS FROM table FROM db`
fn shown_from(sql: &[u8], tokens: &[Token]) -> Vec<TableName> {
    let named = |three: &[Token]| match three {
        [table, from, database] if is_one_of(sql, from, &["from", "in"]) => {
            let database = identifier(sql, database)?;
            Some(TableName::new(database, identifier(sql, table)?))
        }
        _ => None,
    };
    tokens.windows(3).filter_map(named).collect()
}

/// Kinds of stored programs.
const PROGRAMS: [&str; 5] = ["procedure", "function", "trigger", "event", "package"];
/// Databases that a text's programs may be of.
const MAX_DATABASES: usize = 64;
/// Tokens before the program's name, or its trigger's table.
const PROGRAM_HEAD: usize = 40;

/// The databases that names without one may be of in a stored program, besides the session's: its
/// own, or that of its trigger's table. What the text is need not be certain: each database counts
/// that stands where a program's may.
pub(super) fn program_databases(sql: &[u8], all: &[Token]) -> Vec<String> {
    const BETWEEN: [&str; 4] = ["body", "if", "not", "exists"];
    let defines = |t: &Token| is_one_of(sql, t, &["create", "alter"]);
    let Some(first) = all.iter().position(defines) else {
        return Vec::new();
    };
    let qualifier = |at: usize| {
        let name = identifier(sql, all.get(at)?)?;
        all.get(at + 1)?.is(b'.').then_some(name)
    };
    let mut found = Vec::new();
    for kind in (first..all.len()).filter(|at| is_one_of(sql, &all[*at], &PROGRAMS)) {
        // a database may have the name of any of these words
        let is_between = |at: &usize| all.get(*at).is_some_and(|t| is_one_of(sql, t, &BETWEEN));
        let words = (kind + 1..).take_while(is_between).count();
        let behind = (kind + 1..=kind + 1 + words).chain(table_behind(sql, all, kind));
        found.extend(behind.filter_map(qualifier));
    }
    found.sort();
    found.dedup();
    found
}

/// All names that stand before a dot: of executable comments it is not known which ones a server
/// reads, and so not which name is the program's.
fn qualifiers(sql: &[u8], all: &[Token]) -> Vec<String> {
    let pairs = all.windows(2).filter(|pair| pair[1].is(b'.'));
    let mut found: Vec<String> = pairs.filter_map(|pair| identifier(sql, &pair[0])).collect();
    found.sort();
    found.dedup();
    found
}

/// Where the name of a trigger's own table stands in CREATE TRIGGER. `None` of other programs.
pub(super) fn trigger_table(sql: &[u8], all: &[Token]) -> Option<usize> {
    // an account may have the name of a kind of program
    let is_account = |at: usize| at > 0 && all[at - 1].is(b'=');
    let is_kind = |at: &usize| is_one_of(sql, &all[*at], &PROGRAMS) && !is_account(*at);
    let kind = (0..all.len().min(PROGRAM_HEAD)).find(is_kind)?;
    table_behind(sql, all, kind)
}

/// Where the name stands that is behind ON in a trigger's head.
fn table_behind(sql: &[u8], all: &[Token], kind: usize) -> Option<usize> {
    let mut behind = (kind..all.len()).take(PROGRAM_HEAD);
    let on = behind.find(|at| all[*at].is_word(sql, "on"));
    on.filter(|_| all[kind].is_word(sql, "trigger"))
        .map(|on| on + 1)
}

/// The tables that a statement names; `None` where it is not understood. The tree is made of the
/// text as the session's settings have it read: a backslash or a double quote may mean two things.
pub(super) fn tables_in_tree(request: &Request, tokens: &[Token]) -> Option<Vec<NamedTable>> {
    let planner = Planner::new(request, tokens.to_vec(), Vec::new()).ok()?;
    tables_named(&planner.parse_text)
}

/// The same of a statement that reads or changes rows; `None` for all others, too.
pub(super) fn rows_in_tree(request: &Request, tokens: &[Token]) -> Option<Vec<NamedTable>> {
    let planner = Planner::new(request, tokens.to_vec(), Vec::new()).ok()?;
    tables_of_rows(&planner.parse_text)
}

/// Whether a word stands in statements that begin or end a transaction. A statement of such words
/// alone names no table.
fn ends_or_begins(sql: &[u8], token: &Token) -> bool {
    const WORDS: [&str; 16] = [
        "start",
        "transaction",
        "begin",
        "work",
        "commit",
        "rollback",
        "and",
        "no",
        "chain",
        "release",
        "with",
        "consistent",
        "snapshot",
        "read",
        "only",
        "write",
    ];
    token.is(b',') || WORDS.iter().any(|w| token.is_word(sql, w))
}

/// Whether the statement names a savepoint and nothing else. Applications make ever new names for
/// savepoints. Each would be looked up as a table's.
fn is_about_savepoint(sql: &[u8], tokens: &[Token]) -> bool {
    const FORMS: [&[&str]; 6] = [
        &["savepoint"],
        &["release", "savepoint"],
        &["rollback", "to"],
        &["rollback", "to", "savepoint"],
        &["rollback", "work", "to"],
        &["rollback", "work", "to", "savepoint"],
    ];
    let Some((name, words)) = tokens.split_last() else {
        return false;
    };
    let is_form = |form: &[&str]| {
        form.len() == words.len() && words.iter().zip(form).all(|(t, w)| t.is_word(sql, w))
    };
    matches!(name.kind, TokenKind::Word | TokenKind::Quoted) && FORMS.iter().any(|f| is_form(f))
}

/// Whether a query may stand in the statement. Servers take one in the condition of
/// `SHOW STATUS WHERE …`.
fn may_query(sql: &[u8], tokens: &[Token]) -> bool {
    const BEGIN: [&str; 4] = ["select", "table", "values", "with"];
    let begins = |t: &Token| BEGIN.iter().any(|w| t.is_word(sql, w));
    tokens
        .iter()
        .any(|t| t.kind == TokenKind::Executable || begins(t))
}

/// Functions that tell about the statement before them, when called.
fn is_diagnostic_call(sql: &[u8], tokens: &[Token], at: usize) -> bool {
    const FUNCTIONS: [&str; 10] = [
        "row_count",
        "found_rows",
        "last_insert_id",
        "database",
        "version",
        "connection_id",
        "user",
        "session_user",
        "system_user",
        "schema",
    ];
    tokens.get(at + 1).is_some_and(|t| t.is(b'('))
        && FUNCTIONS.iter().any(|f| tokens[at].is_word(sql, f))
        && at.checked_sub(1).is_some_and(|before| {
            let t = &tokens[before];
            t.is_word(sql, "select") || t.is(b',') || t.is(b'(') || t.is(b'=')
        })
}

/// Whether nothing in the statement is a table's name: `SET a = b`, `UNLOCK TABLES`, and
/// `SELECT 1, @a` or `DO 1` of literals and variables alone.
fn names_no_table(sql: &[u8], tokens: &[Token], words: &[&str]) -> bool {
    // what another statement begins with, or a table stands behind
    const OTHERS: [&str; 12] = [
        "select",
        "insert",
        "update",
        "delete",
        "replace",
        "values",
        "table",
        "from",
        "statement",
        "for",
        "into",
        "call",
    ];
    let sets = word_is(words, 0, "set");
    let may_name = |t: &Token| match t.kind {
        TokenKind::Executable | TokenKind::Hint => true,
        TokenKind::Word if sets => OTHERS.iter().any(|word| t.is_word(sql, word)),
        TokenKind::Word | TokenKind::Quoted => !sets,
        _ => t.is(b'('),
    };
    let unlocks = word_is(words, 0, "unlock")
        && (word_is(words, 1, "tables") || word_is(words, 1, "table"))
        && tokens.len() == 2;
    let drops = word_is(words, 0, "drop")
        && ["procedure", "function", "trigger", "event"]
            .iter()
            .any(|kind| word_is(words, 1, kind));
    let computes = sets || word_is(words, 0, "select") || word_is(words, 0, "do");
    // a program may have the name of a table
    unlocks
        || drops
        || calls_with_values(sql, tokens, words)
        || computes && !tokens.iter().skip(1).any(may_name)
}

/// Whether this is `CALL p(…)` or `CALL d.p(…)` of literals and variables alone.
fn calls_with_values(sql: &[u8], tokens: &[Token], words: &[&str]) -> bool {
    const VALUES: [&str; 3] = ["null", "true", "false"];
    let is_name = |at: usize| {
        let kind = tokens.get(at).map(|t| t.kind);
        matches!(kind, Some(TokenKind::Word | TokenKind::Quoted))
    };
    let is_dot = |at: usize| tokens.get(at).is_some_and(|t| t.is(b'.'));
    if !word_is(words, 0, "call") || !tokens[0].is_word(sql, "call") || !is_name(1) {
        return false;
    }
    let behind = if is_dot(2) && is_name(3) { 4 } else { 2 };
    let rest = tokens.get(behind..).unwrap_or_default();
    let may_name = |t: &Token| match t.kind {
        TokenKind::Word => !VALUES.iter().any(|value| t.is_word(sql, value)),
        TokenKind::Quoted | TokenKind::Executable | TokenKind::Hint => true,
        _ => t.is(b'(') || t.is(b'.'),
    };
    match rest {
        [] => true,
        [open, values @ ..] => open.is(b'(') && !values.iter().any(may_name),
    }
}

/// The names of a text and of its executable comments. Comments within each other have no tokens.
fn collect(
    request: &Request,
    tokens: &[Token],
    database: Option<&str>,
    found: &mut Vec<TableName>,
) -> Result<(), LexError> {
    let (sql, mode) = (request.sql, request.settings.lex);
    names(request, sql, tokens, database, found)?;
    let is_comment = |t: &Token| t.kind == TokenKind::Executable;
    for comment in tokens.iter().filter(|t| is_comment(t)) {
        let (body, version) = executable(comment.text(sql));
        // of six digits, MySQL takes five where no blank follows
        for skipped in [0, version.min(5), version] {
            let inner = &body[skipped..];
            let tokens = crate::lex::tokens(inner, mode)?;
            if tokens.iter().any(is_comment) {
                return Err(LexError::Ambiguous);
            }
            names(request, inner, &tokens, database, found)?;
        }
    }
    Ok(())
}

/// How many different names a statement may have. The servers' own limits on tables and columns are
/// lower.
const MAX_NAMES: usize = 16_384;

fn names(
    request: &Request,
    sql: &[u8],
    tokens: &[Token],
    database: Option<&str>,
    found: &mut Vec<TableName>,
) -> Result<(), LexError> {
    for (i, token) in tokens.iter().enumerate() {
        // one name a million times takes no more room than twice as many as there may be
        if found.len() >= 2 * MAX_NAMES {
            found.sort();
            found.dedup();
            if found.len() > MAX_NAMES {
                return Err(LexError::TooManyNames(MAX_NAMES));
            }
        }
        if let Some(database) = database
            && let Some(name) = unquoted(request, sql, tokens, i, database)
        {
            found.push(TableName::new(database, name));
        }
        let Some(name) = identifier(sql, token) else {
            continue;
        };
        if is_diagnostic_call(sql, tokens, i) {
            continue;
        }
        let qualifier = match (i.checked_sub(2), i.checked_sub(1)) {
            (Some(q), Some(dot)) if tokens[dot].is(b'.') => identifier(sql, &tokens[q]),
            _ => None,
        };
        if let Some(qualifier) = qualifier {
            // `FROM .t`: to MariaDB a table of the current database
            if let Some(database) = database
                && (tokens[i - 2].end != tokens[i - 1].start || is_reserved(&qualifier))
            {
                found.push(TableName::new(database, &name));
            }
            found.push(TableName::new(qualifier, name));
        } else if let Some(database) = database
            && name.len() <= 256
            && !(token.kind == TokenKind::Word && is_reserved(&name))
        {
            found.push(TableName::new(database, name));
        }
    }
    Ok(())
}

/// A table's name that no server takes without quotes: a reserved word, a number. With such a name
/// the statement is a syntax error, and its values are in the server's log.
fn unquoted(
    request: &Request,
    sql: &[u8],
    tokens: &[Token],
    at: usize,
    database: &str,
) -> Option<String> {
    // in front of a table's name
    const BEFORE: [&str; 15] = [
        "delayed",
        "describe",
        "from",
        "high_priority",
        "ignore",
        "insert",
        "into",
        "join",
        "low_priority",
        "replace",
        "straight_join",
        "table",
        "tables",
        "update",
        "view",
    ];
    // what else stands there
    const GRAMMAR: [&str; 4] = ["from", "if", "ignore", "into"];
    let token = &tokens[at];
    let written = std::str::from_utf8(token.text(sql)).ok()?;
    // `5.id`
    let text = written.strip_suffix('.').unwrap_or(written);
    let is_candidate = match token.kind {
        TokenKind::Word => is_reserved(text),
        TokenKind::Literal(LiteralKind::Integer | LiteralKind::Float) => true,
        TokenKind::Literal(LiteralKind::Decimal) => text != written,
        _ => false,
    };
    if !is_candidate || text.len() > 256 {
        return None;
    }
    let is_before = |token: &Token| BEFORE.iter().any(|word| token.is_word(sql, word));
    let is_behind = at.checked_sub(1).is_some_and(|at| is_before(&tokens[at]));
    let is_qualifier = tokens.get(at + 1).is_some_and(|t| t.is(b'.'));
    let is_grammar = || GRAMMAR.iter().any(|word| token.is_word(sql, word));
    let is_meant = match request.catalog.table(database, text) {
        Known::Table(_) => true,
        Known::Absent => false,
        Known::Unknown => is_qualifier || is_behind && !is_grammar(),
    };
    is_meant.then(|| text.to_owned())
}

/// How many parts of comments are looked at, beyond some for each part of the text.
const MAX_STEPS: usize = 1_000_000;

/// A token of a text with executable comments.
struct Part {
    name: Option<String>,
    is_dot: bool,
    /// The comment that it stands in, counted from 1.
    comment: usize,
}

/// Qualified names of which a part stands in an executable comment: `app /*!50000 . */ users`. A
/// server reads all of a comment, or nothing.
fn joined(
    sql: &[u8],
    tokens: &[Token],
    mode: LexMode,
    found: &mut Vec<TableName>,
) -> Result<(), LexError> {
    let is_comment = |t: &Token| t.kind == TokenKind::Executable;
    if !tokens.iter().any(is_comment) {
        return Ok(());
    }
    let part = |text: &[u8], token: &Token, comment| Part {
        name: identifier(text, token),
        is_dot: token.is(b'.'),
        comment,
    };
    let mut parts = Vec::with_capacity(tokens.len());
    for (n, token) in tokens.iter().enumerate() {
        if !is_comment(token) {
            parts.push(part(sql, token, 0));
            continue;
        }
        let (body, version) = executable(token.text(sql));
        let inner = &body[version..];
        for token in crate::lex::tokens(inner, mode)? {
            parts.push(part(inner, &token, n + 1));
        }
    }
    // many comments behind each other would be read again for each of them
    let mut steps = MAX_STEPS + parts.len() * 4;
    for (at, part) in parts.iter().enumerate() {
        let Some(name) = &part.name else {
            continue;
        };
        let dots = before(&parts, at, &mut steps)?;
        for dot in dots.into_iter().filter(|dot| parts[*dot].is_dot) {
            for qualifier in before(&parts, dot, &mut steps)? {
                if let Some(qualifier) = &parts[qualifier].name {
                    found.push(TableName::new(qualifier, name));
                }
            }
        }
    }
    Ok(())
}

/// What a server may read before a part. That is the part before it. If that one stands in another
/// comment, what stands before the comment counts, too.
fn before(parts: &[Part], at: usize, steps: &mut usize) -> Result<Vec<usize>, LexError> {
    let mut found = Vec::new();
    let mut next = at;
    while let Some(before) = next.checked_sub(1) {
        found.push(before);
        let comment = parts[before].comment;
        if comment == 0 || comment == parts[at].comment {
            break;
        }
        let others = parts[..before].iter().rev();
        let passed = others.take_while(|p| p.comment == comment).count();
        *steps = steps.checked_sub(passed + 1).ok_or(LexError::Ambiguous)?;
        next = before - passed;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_joined_across_comments() {
        let names = |sql: &str| {
            let mode = LexMode::default();
            let mut found = Vec::new();
            let tokens = crate::lex::tokens(sql.as_bytes(), mode).unwrap();
            joined(sql.as_bytes(), &tokens, mode, &mut found).unwrap();
            found
        };
        for sql in [
            "INSERT INTO app /*!50000 . */ users VALUES (1)",
            "INSERT INTO app /*!50000 .users */ VALUES (1)",
            "INSERT INTO /*!50000 app */ . users VALUES (1)",
            "INSERT INTO /*!50000 app. */ users VALUES (1)",
            "INSERT INTO app /*!99999 x */ /*!50000 . */ users VALUES (1)",
            "INSERT INTO `app` . /*!99999 x.y */ users VALUES (1)",
            "INSERT INTO app /*!50000 . */ /*!50000 users */ VALUES (1)",
        ] {
            let wanted = TableName::new("app", "users");
            assert!(names(sql).contains(&wanted), "{sql}: {:?}", names(sql));
        }
        assert!(names("SELECT app, users /*!50000 , x */ . y").len() < 3);
        assert!(names("SELECT app.users").is_empty());
    }
}
