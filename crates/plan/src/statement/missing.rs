//! Tables that are not there, of names that `[protect]` is about, or that were protected before.
//!
//! A statement that names such a table fails. Its values belong into protected columns all the
//! same: the CREATE TABLE before it may have been refused, or the account does not see the table.
//! So the server is asked for the table before it gets the statement, which would stand in its log:
//! see [`Doubt`].
//!
//! The tree of a statement tells whether a table may be missing. Executable comments count as text.
//! Of a definition that ends in a query, and of a statement behind SET STATEMENT or EXPLAIN, that
//! part is parsed. If there is such a table or no tree, the server is asked to prepare the same
//! text with other values: it knows which words are tables. If it does not say, because it prepares
//! no such statement or wants other values, the words have to do. A stored program is not looked at
//! by a server until it runs, so one that names a table that is missing is refused.

use std::collections::HashMap;
use std::ops::Range;

use onionskin_schema::TableName;

use super::near::{flattened, is_reserved, program_databases, rows_in_tree};
use crate::errors;
use crate::lex::{LexMode, LiteralKind, Token, TokenKind, is_compound, tokens};
use crate::named::NamedTable;
use crate::parse;
use crate::plan::Doubt;
use crate::planner::{Known, Planned, Request, identifier, refuse};
use crate::request::COLLATION;

/// What the server has to be asked before it gets this statement.
/// `asks`: it asks about the statement before it.
pub(super) fn doubt(
    request: &Request,
    tokens: &[Token],
    names: &[TableName],
    asks: bool,
) -> Planned<Doubt> {
    let sql = request.sql;
    if !names.iter().any(|name| is_missing(request, name)) {
        return Ok(Doubt::None);
    }
    let Some(all) = flattened(sql, tokens, request.settings.lex) else {
        // their names could not be collected either
        return Ok(Doubt::None);
    };
    let stands_by_words = || {
        let read = &all[behind_made_table(sql, &all)..];
        let database = request.settings.database.as_deref();
        let named = tables_in_program(sql, read, request.settings.lex, database);
        named.iter().any(|name| is_missing(request, name))
    };
    if let Some(target) = table_of_trigger(request, &all)
        && is_missing(request, &target)
    {
        return Ok(Doubt::Table(target));
    }
    if is_compound(sql, &all) {
        return match stands_by_words() {
            false => Ok(Doubt::None),
            true => refuse(
                &errors::STATEMENT,
                "a statement in a stored program, by a name that [protect] matches",
            ),
        };
    }
    let is_value = |token: &Token| matches!(token.kind, TokenKind::Literal(_));
    if !all.iter().any(is_value) {
        return Ok(Doubt::None);
    }
    if let Some(target) = only_table(request, &all) {
        return Ok(match is_missing(request, &target) {
            true => Doubt::Table(target),
            false => Doubt::None,
        });
    }
    let part = rows_part(sql, &all);
    let read = without_manners(sql, part);
    let levels = parse::levels(sql, &read);
    let tree = match levels > parse::MAX_LEVELS {
        true => None,
        false => parse::with_room(levels, || rows_in_tree(request, &read)),
    };
    let is_named = match tree {
        None => false,
        Some(tables) => {
            let current = request.settings.database.as_deref();
            let is_missing = |(database, name): NamedTable| {
                let is_dual = database.is_none() && name.eq_ignore_ascii_case("dual");
                let database = database.or_else(|| current.map(str::to_owned));
                let name = database.map(|database| TableName::new(database, name));
                !is_dual && name.is_some_and(|name| is_missing(request, &name))
            };
            if !tables.into_iter().any(is_missing) {
                return Ok(Doubt::None);
            }
            true
        }
    };
    let stands = is_named || stands_by_words();
    if asks && !stands {
        // another question in between would change the answer
        return Ok(Doubt::None);
    }
    Ok(Doubt::Text {
        text: with_other_values(sql, part),
        is_named,
        stands,
    })
}

/// Whether no such table is known, and it would be protected. What no word of the text has shown to
/// be a name was not looked up: `app.1e` is one to a parser.
fn is_missing(request: &Request, name: &TableName) -> bool {
    /// Nothing is protected in the servers' own databases.
    const SYSTEM: [&str; 4] = ["information_schema", "performance_schema", "mysql", "sys"];
    let (database, table) = (&name.database, &name.name);
    let is_system = SYSTEM
        .iter()
        .any(|system| database.eq_ignore_ascii_case(system));
    !table.starts_with(COLLATION)
        && !is_system
        && !matches!(request.catalog.table(database, table), Known::Table(_))
        && (request.policy.concerns(database, table)
            || request.catalog.was_protected(database, table))
}

fn is_one_of(sql: &[u8], token: &Token, words: &[&str]) -> bool {
    words.iter().any(|word| token.is_word(sql, word))
}

/// The table of a statement that names no other: an INSERT without a query, and what servers
/// prepare without looking for the table.
fn only_table(request: &Request, all: &[Token]) -> Option<TableName> {
    /// Words that a query begins with.
    const QUERIES: [&str; 4] = ["select", "table", "values", "with"];
    const BETWEEN: [&str; 6] = [
        "low_priority",
        "high_priority",
        "delayed",
        "concurrent",
        "ignore",
        "into",
    ];
    let sql = request.sql;
    let is = |at: usize, words: &[&str]| all.get(at).is_some_and(|t| is_one_of(sql, t, words));
    let behind = |word: &str| {
        let at = all.iter().position(|t| t.is_word(sql, word))?;
        Some(at + 1)
    };
    let has_query = |from: usize| {
        let rest = all.get(from..).unwrap_or_default().iter();
        let is_query = |(at, token): (usize, &Token)| {
            let is_call = all.get(from + at + 1).is_some_and(|t| t.is(b'('));
            is_one_of(sql, token, &QUERIES) && !(token.is_word(sql, "values") && is_call)
        };
        rest.enumerate().any(is_query)
    };
    let at = if is(0, &["insert", "replace"]) && !has_query(1) {
        let mut at = 1;
        while is(at, &BETWEEN) {
            at += 1;
        }
        at
    } else if is(0, &["load"]) {
        behind("table")?
    } else if is(0, &["handler"]) {
        1
    } else if is(0, &["alter"]) && all.iter().take(4).any(|t| t.is_word(sql, "table")) {
        let at = behind("table")?;
        match is(at, &["if"]) {
            true => at + 2,
            false => at,
        }
    } else if is(0, &["create"]) && all.iter().take(4).any(|t| t.is_word(sql, "index")) {
        behind("on")?
    } else {
        return None;
    };
    named(sql, all, at, request.settings.database.as_deref())
}

/// The table of a CREATE TRIGGER. Servers look for it first.
fn table_of_trigger(request: &Request, all: &[Token]) -> Option<TableName> {
    /// Words before the trigger's name, of which a definer may have several.
    const HEAD: usize = 16;
    let sql = request.sql;
    let is_create = all.first().is_some_and(|t| t.is_word(sql, "create"));
    let head = all.iter().take(HEAD);
    let trigger = head
        .clone()
        .position(|t| t.is_word(sql, "trigger"))
        .filter(|_| is_create)?;
    let on = all[trigger..].iter().position(|t| t.is_word(sql, "on"))?;
    let at = trigger + on + 1;
    named(sql, all, at, request.settings.database.as_deref())
}

/// The token behind the name that CREATE TABLE gives to a table, which is missing before: what
/// follows may read another one of the same name. 0 of other statements.
fn behind_made_table(sql: &[u8], all: &[Token]) -> usize {
    let is = |at: usize, word: &str| all.get(at).is_some_and(|t| t.is_word(sql, word));
    let mut head = 1..all.len().min(5);
    let Some(table) = head.find(|at| is(*at, "table")).filter(|_| is(0, "create")) else {
        return 0;
    };
    let name = if is(table + 1, "if") {
        table + 4
    } else {
        table + 1
    };
    let is_qualified = all.get(name + 1).is_some_and(|t| t.is(b'.'));
    let behind = if is_qualified { name + 3 } else { name + 1 };
    behind.min(all.len())
}

/// The table that is named here; `database` is that of one that names none.
fn named(sql: &[u8], all: &[Token], at: usize, database: Option<&str>) -> Option<TableName> {
    let first = identifier(sql, all.get(at)?)?;
    match all.get(at + 1).is_some_and(|t| t.is(b'.')) {
        true => {
            let name = identifier(sql, all.get(at + 2)?)?;
            Some(TableName::new(first, name))
        }
        false => Some(TableName::new(database?, first)),
    }
}

/// The part of a statement that reads or changes rows: of a definition the query at its end, of
/// SET STATEMENT and EXPLAIN the statement behind. Otherwise the whole.
fn rows_part<'t>(sql: &[u8], all: &'t [Token]) -> &'t [Token] {
    const BEGIN: [&str; 7] = [
        "select", "with", "insert", "replace", "update", "delete", "table",
    ];
    const OTHERS: [&str; 7] = [
        "create", "alter", "set", "explain", "describe", "desc", "analyze",
    ];
    let Some(first) = all.first() else { return all };
    if !is_one_of(sql, first, &OTHERS) {
        return all;
    }
    let defines = is_one_of(sql, first, &["create", "alter"]);
    let mut depth = 0usize;
    let begins = |(at, token): (usize, &Token)| {
        if token.is(b'(') {
            depth += 1;
        } else if token.is(b')') {
            depth = depth.saturating_sub(1);
        }
        let (Some(before), Some(next)) = (at.checked_sub(1).map(|b| &all[b]), all.get(at)) else {
            return false;
        };
        // CREATE OR REPLACE, CREATE TABLE, and what stands between a table's options
        let is_own = is_one_of(
            sql,
            before,
            &["or", "create", "temporary", "alter", "ignore"],
        ) && is_one_of(sql, next, &["replace", "table"]);
        // behind AS, or in CREATE TABLE in the place of its columns
        let in_query = token.is(b'(')
            && (before.is_word(sql, "as") || (defines && depth == 1))
            && all
                .get(at + 1)
                .is_some_and(|t| is_one_of(sql, t, &BEGIN) || t.is(b'('));
        in_query || (depth == 0 && is_one_of(sql, token, &BEGIN) && !is_own)
    };
    let Some(at) = all.iter().enumerate().position(begins) else {
        return all;
    };
    let mut part = &all[at..];
    if defines {
        part = without_check_option(sql, part);
    }
    part
}

/// The tokens without LOW_PRIORITY, IGNORE and so on behind a verb, which the parser may take for
/// names. No table is called so without quotes.
fn without_manners(sql: &[u8], part: &[Token]) -> Vec<Token> {
    const MANNERS: [&str; 4] = ["low_priority", "high_priority", "delayed", "ignore"];
    const VERBS: [&str; 5] = ["insert", "replace", "update", "delete", "quick"];
    let mut read: Vec<Token> = Vec::with_capacity(part.len());
    let mut is_behind = false;
    for token in part {
        let is_manner = is_behind && is_one_of(sql, token, &MANNERS);
        is_behind = is_manner || is_one_of(sql, token, &VERBS);
        if !is_manner {
            read.push(*token);
        }
    }
    read
}

/// A view's query without WITH CHECK OPTION behind it.
fn without_check_option<'t>(sql: &[u8], part: &'t [Token]) -> &'t [Token] {
    let [rest @ .., check, option] = part else {
        return part;
    };
    if !check.is_word(sql, "check") || !option.is_word(sql, "option") {
        return part;
    }
    match rest.iter().rposition(|t| t.is_word(sql, "with")) {
        Some(with) => &part[..with],
        None => part,
    }
}

/// The statement with values that say nothing, and without comments.
fn with_other_values(sql: &[u8], all: &[Token]) -> Vec<u8> {
    let mut out = Vec::with_capacity(sql.len());
    let mut before: Option<&Token> = None;
    for token in all {
        if before.is_some_and(|before| before.end < token.start) {
            out.push(b' ');
        }
        let is_behind = |word: &str| before.is_some_and(|t| t.is_word(sql, word));
        let other: &[u8] = match token.kind {
            TokenKind::Literal(LiteralKind::Integer) => b"0",
            TokenKind::Literal(LiteralKind::Decimal) => b"0.0",
            TokenKind::Literal(LiteralKind::Float) => b"0e0",
            TokenKind::Literal(LiteralKind::Parameter) => b"?",
            // these are looked at by the parser
            TokenKind::Literal(_) if is_behind("date") => b"'2000-01-01'",
            TokenKind::Literal(_) if is_behind("time") => b"'00:00:00'",
            TokenKind::Literal(_) if is_behind("timestamp") => b"'2000-01-01 00:00:00'",
            // as a path in a document it is the whole document
            TokenKind::Literal(_) => b"'$'",
            TokenKind::Hint => b" ",
            _ => token.text(sql),
        };
        out.extend_from_slice(other);
        before = Some(token);
    }
    out
}

/// The tables that a stored program names and does not make itself; `None` if the text is none, or
/// cannot be read. `database` is the session's.
pub fn tables_of_program(
    sql: &[u8],
    mode: LexMode,
    database: Option<&str>,
) -> Option<Vec<TableName>> {
    let all = flattened(sql, &tokens(sql, mode).ok()?, mode)?;
    is_compound(sql, &all).then(|| tables_in_program(sql, &all, mode, database))
}

/// The tables that texts name which a stored program prepares.
pub(super) fn in_prepared_texts(request: &Request, tokens: &[Token]) -> Vec<TableName> {
    let (sql, mode) = (request.sql, request.settings.lex);
    let may_define = tokens.first().is_some_and(|t| {
        t.kind == TokenKind::Executable || is_one_of(sql, t, &["create", "alter"])
    });
    let all = may_define.then(|| flattened(sql, tokens, mode)).flatten();
    let Some(all) = all.filter(|all| is_compound(sql, all)) else {
        return Vec::new();
    };
    let mut databases = program_databases(sql, &all);
    databases.extend(request.settings.database.clone());
    tables_in_texts(sql, &all, mode, &databases)
}

/// No parser reads these: what stands where a table may counts as one.
fn tables_in_program(
    sql: &[u8],
    all: &[Token],
    mode: LexMode,
    database: Option<&str>,
) -> Vec<TableName> {
    let mut databases = program_databases(sql, all);
    databases.extend(database.map(str::to_owned));
    tables_by_place(sql, all, mode, &databases)
}

/// What stands where a table may, each in these databases if it names none.
fn tables_by_place(
    sql: &[u8],
    all: &[Token],
    mode: LexMode,
    databases: &[String],
) -> Vec<TableName> {
    let own = defined(sql, all);
    let mut places = Places::default();
    let mut tables = Vec::new();
    for (at, token) in all.iter().enumerate() {
        if !places.stands(sql, all, at) {
            continue;
        }
        let Some(word) = identifier(sql, token) else {
            continue;
        };
        let is_keyword = token.kind == TokenKind::Word && is_reserved(&word);
        if !is_keyword && !own.hides(&word, at) {
            let of = |database: &String| named(sql, all, at, Some(database));
            tables.extend(databases.iter().filter_map(of));
            // TYPE OF has a column behind the table
            let is_type = at > 0 && all[at - 1].is_word(sql, "of");
            let of = |database: &String| Some(TableName::new(database, &word));
            tables.extend(databases.iter().filter(|_| is_type).filter_map(of));
        }
    }
    tables.extend(tables_in_texts(sql, all, mode, databases));
    tables.sort();
    tables.dedup();
    tables
}

/// The tables in texts that a program prepares, as far as such a text stands in it: in one literal,
/// or in the pieces that an expression puts together.
fn tables_in_texts(
    sql: &[u8],
    all: &[Token],
    mode: LexMode,
    databases: &[String],
) -> Vec<TableName> {
    let is = |at: usize, word: &str| all.get(at).is_some_and(|t| t.is_word(sql, word));
    let is_prepared = |at: usize| at.checked_sub(2).is_some_and(|at| is(at, "prepare"));
    let begins = |at: usize| is(at, "immediate") || (is(at, "from") && is_prepared(at));
    let mut tables = Vec::new();
    let mut at = 0;
    while at < all.len() {
        if !begins(at) {
            at += 1;
            continue;
        }
        let rest = &all[at..];
        let end = rest.iter().position(|t| t.is(b';')).unwrap_or(rest.len());
        at += end;
        let mut text = Vec::new();
        for token in &rest[..end] {
            if matches!(token.kind, TokenKind::Literal(LiteralKind::String)) {
                text.extend_from_slice(token.text(sql));
                text.push(b' ');
            }
        }
        // where the values in it end does not matter
        for byte in &mut text {
            if matches!(byte, b'\'' | b'"' | b'\\') {
                *byte = b' ';
            }
        }
        if let Ok(tokens) = tokens(&text, mode)
            && !tokens.is_empty()
        {
            tables.extend(tables_by_place(&text, &tokens, mode, databases));
        }
    }
    tables
}

/// Where a table may stand in the tokens of a program.
struct Places {
    /// For each open parenthesis: whether tables stand between commas in it, and whether it is a
    /// call's, which has a FROM of its own.
    open: Vec<(bool, bool)>,
}

impl Default for Places {
    fn default() -> Places {
        Places {
            open: vec![(false, false)],
        }
    }
}

impl Places {
    /// Whether a table may stand at this token. Asked for each token in its turn.
    fn stands(&mut self, sql: &[u8], all: &[Token], at: usize) -> bool {
        const LISTS: [&str; 4] = ["from", "join", "straight_join", "update"];
        const CHANGES: [&str; 9] = [
            "insert",
            "replace",
            "ignore",
            "low_priority",
            "high_priority",
            "delayed",
            "quick",
            "delete",
            "truncate",
        ];
        const ENDS: [&str; 12] = [
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
            "values",
            "select",
        ];
        let word = |at: usize, words: &[&str]| is_one_of(sql, &all[at], words);
        let token = &all[at];
        let Some(before) = at.checked_sub(1) else {
            return false;
        };
        let list = self.open.last().copied().unwrap_or_default();
        if token.is(b')') {
            self.open.pop();
            if self.open.is_empty() {
                self.open.push((false, false));
            }
            return false;
        }
        // what the token before it began
        let mut stands = list.0 && (all[before].is(b',') || all[before].is(b'('));
        if word(before, &LISTS) {
            let is_event =
                before > 0 && word(before - 1, &["for", "before", "after", "or", "key", "on"]);
            let is_fetch = before > 0 && word(before - 1, &["fetch", "next"]);
            let is_part = list.1 && word(before, &["from"]);
            let is_no_table = is_fetch || is_part || (word(before, &["update"]) && is_event);
            stands = !is_no_table;
            if let Some(last) = self.open.last_mut() {
                last.0 |= stands;
            }
        } else if word(before, &["into"]) {
            stands = before > 0 && word(before - 1, &CHANGES);
        } else if word(before, &["on"]) {
            stands = is_of_definition(sql, &all[..before]);
        } else if word(before, &["of"]) {
            // MariaDB: a variable of the type of a column or a row
            stands = before > 0 && word(before - 1, &["type"]);
        } else if word(before, &["table", "handler"]) || word(before, &CHANGES) {
            stands = true;
        }
        if token.is(b'(') {
            let is_call = matches!(all[before].kind, TokenKind::Word)
                && !is_reserved(&String::from_utf8_lossy(all[before].text(sql)));
            self.open.push((stands, is_call));
            return false;
        }
        if is_one_of(sql, token, &ENDS)
            && let Some(last) = self.open.last_mut()
        {
            *last = (false, false);
        }
        stands
    }
}

/// Whether ON behind these tokens is that of CREATE INDEX or CREATE TRIGGER.
fn is_of_definition(sql: &[u8], before: &[Token]) -> bool {
    /// Tokens from CREATE to the ON of a trigger with a definer and a database.
    const HEAD: usize = 24;
    let ends = |t: &&Token| t.is(b';') || t.is(b')') || t.is(b'(');
    let part = before.iter().rev().take(HEAD).take_while(|t| !ends(t));
    let words: Vec<&Token> = part.collect();
    let says = |word| words.iter().any(|t| t.is_word(sql, word));
    says("create") && (says("index") || says("trigger"))
}

/// The names that a program makes itself, in small letters, and the tokens in which they are meant.
#[derive(Default)]
struct Own(HashMap<String, Vec<Range<usize>>>);

impl Own {
    fn hides(&self, name: &str, at: usize) -> bool {
        let places = self.0.get(&name.to_ascii_lowercase());
        places.is_some_and(|places| places.iter().any(|place| place.contains(&at)))
    }

    fn add(&mut self, name: &str, place: Range<usize>) {
        let places = self.0.entry(name.to_ascii_lowercase()).or_default();
        if places.last() != Some(&place) {
            places.push(place);
        }
    }
}

/// Names in WITH, for the statement that has it, and of temporary tables.
fn defined(sql: &[u8], all: &[Token]) -> Own {
    let mut own = Own::default();
    let mut from = 0;
    for part in all.split(|token| token.is(b';')) {
        let place = from..from + part.len();
        from = place.end + 1;
        for at in 0..part.len() {
            let Some(name) = identifier(sql, &part[at]) else {
                continue;
            };
            let before = &part[at.saturating_sub(5)..at];
            let is_temporary = before
                .windows(2)
                .any(|pair| pair[0].is_word(sql, "temporary") && pair[1].is_word(sql, "table"));
            if is_temporary {
                own.add(&name, 0..all.len());
            } else if is_common_table(sql, part, at) {
                own.add(&name, place.clone());
            }
        }
    }
    own
}

/// Whether this is the name of a common table: `WITH name [(columns)] AS (`.
fn is_common_table(sql: &[u8], all: &[Token], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| all.get(before));
    if !before.is_some_and(|t| t.is(b',') || is_one_of(sql, t, &["with", "recursive"])) {
        return false;
    }
    let mut behind = at + 1;
    if all.get(behind).is_some_and(|t| t.is(b'(')) {
        // a list of names has no parentheses within
        let end = all[behind + 1..]
            .iter()
            .position(|t| t.is(b'(') || t.is(b')'));
        match end.map(|end| behind + 1 + end) {
            Some(end) if all[end].is(b')') => behind = end + 1,
            _ => return false,
        }
    }
    all.get(behind).is_some_and(|t| t.is_word(sql, "as"))
        && all.get(behind + 1).is_some_and(|t| t.is(b'('))
}
