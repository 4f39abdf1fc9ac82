//! Tables and columns that are not there, of names that `[protect]` is about, or tables that were
//! protected before.
//!
//! A statement that names such a table fails. Its values belong into protected columns all the
//! same: the CREATE TABLE before it may have been refused, or the account does not see the table.
//! So the server is asked for the table before it gets the statement, which would stand in its log:
//! see [`Doubt`]. The same holds for a column: the ALTER TABLE before it was refused, or a view
//! does not show it. Its name may as well be an alias, so the server is asked there, too.
//! Beside the names of `[protect]`, those of protected columns that were seen count: a view shows
//! neither the columns that it leaves out nor the tables behind it.
//!
//! The tree of a statement tells whether a table may be missing. Executable comments count as text.
//! Of a definition that ends in a query, and of a statement behind SET STATEMENT or EXPLAIN, that
//! part is parsed. If there is such a table or no tree, the server is asked to prepare the same
//! text with other values: it knows which words are tables. If it does not say, because it prepares
//! no such statement or wants other values, the words have to do (`program_tables.rs`). A stored
//! program is not looked at by a server until it runs, so one that names a table that is missing is
//! refused.

use std::sync::Arc;

use onionskin_schema::{Table, TableName, same_name};

use super::end_query::query_at_end;
use super::near::{rows_in_tree, trigger_table};
use super::nested::{has_query, opens_query};
use super::program_tables::tables_in_program;
use super::words::{flattened, is_one_of, named};
use crate::errors::{self, Refusal};
use crate::lex::{LiteralKind, Token, TokenKind, is_compound};
use crate::named::NamedTable;
use crate::observed::with_values;
use crate::parse;
use crate::plan::Doubt;
use crate::planner::{Known, Planned, Request, identifier, refuse};
use crate::request::COLLATION;
use crate::unknown::Place;

/// What the server has to be asked before it gets this statement.
/// `asks`: it asks about the statement before it. `is_far`: it names no protected table.
pub(super) fn doubt(
    request: &Request,
    tokens: &[Token],
    names: &[TableName],
    asks: bool,
    is_far: bool,
) -> Planned<Doubt> {
    let sql = request.sql;
    let is_listed = names.iter().any(|name| is_missing(request, name));
    // a table without a database is in none then
    let is_nowhere = request.settings.database.is_none();
    let tables = match is_far {
        true => known_tables(request, names),
        // the columns of protected tables are looked up by the rules
        false => Vec::new(),
    };
    if !is_listed && !is_nowhere && tables.is_empty() {
        return Ok(Doubt::None);
    }
    let Some(all) = flattened(sql, tokens, request.settings.lex) else {
        // their names could not be collected either
        return Ok(Doubt::None);
    };
    let database = request.settings.database.as_deref();
    let missing_by_words = || {
        let read = &all[behind_made_table(sql, &all)..];
        let mut named = tables_in_program(sql, read, request.settings.lex, database);
        named.retain(|name| is_missing(request, name));
        named
    };
    if is_compound(sql, &all) {
        let mut missing = missing_by_words();
        // servers look for a trigger's own table, and for no other
        let own = trigger_table(sql, &all).and_then(|at| named(sql, &all, at, database));
        let own = own.filter(|own| is_missing(request, own));
        missing.retain(|name| own.as_ref().is_none_or(|own| !own.is_same(name)));
        return match (missing.is_empty(), own) {
            (true, Some(own)) => Ok(Doubt::Table(own)),
            (true, None) => Ok(Doubt::None),
            (false, _) => refuse(
                &errors::STATEMENT,
                "a statement in a stored program, by a name that [protect] matches",
            ),
        };
    }
    if !all.iter().any(|t| matches!(t.kind, TokenKind::Literal(_))) {
        return Ok(Doubt::None);
    }
    let is_of_missing = |pair: &[Token]| {
        let table = identifier(sql, &pair[0]).filter(|_| pair[1].is(b'.'));
        let is_it = |name: &TableName, table: &str| {
            same_name(&name.name, table) && is_missing(request, name)
        };
        table.is_some_and(|table| names.iter().any(|name| is_it(name, &table)))
    };
    if asks && all.windows(2).any(is_of_missing) {
        // the server cannot be asked: that would be what the statement asks about
        return refuse(&errors::STATEMENT, "a value beside a table that is missing");
    }
    if has_query(sql, &all) && !missing_by_words().is_empty() {
        return refuse(
            &errors::STATEMENT,
            "a query in a statement of this kind, by a name that [protect] matches",
        );
    }
    // a table that is missing may have any column
    let may_be_others = !tables.is_empty() && missing_by_words().is_empty();
    let lost = lost_columns(request, &all, &tables, may_be_others);
    if !lost.is_empty() && asks {
        return refuse(
            &errors::STATEMENT,
            "a value beside a column that is missing",
        );
    }
    if let Some(target) = only_table(request, &all) {
        let is_prepared = || is_one_of(sql, &all[0], &["insert", "replace"]);
        if is_missing(request, &target) {
            return Ok(Doubt::Table(target));
        }
        if lost.is_empty() {
            return Ok(Doubt::None);
        }
        if !is_prepared() {
            lost.iter()
                .try_for_each(|name| not_prepared(request, &all, name))?;
            return Ok(Doubt::None);
        }
    }
    lost.iter()
        .try_for_each(|name| not_assigned(request, &all, name))?;
    let Some(part) = rows_part(sql, &all) else {
        // whatever it names, its values are not for another table
        return Ok(Doubt::None);
    };
    let read = without_manners(sql, part);
    let levels = parse::levels(sql, &read);
    let tree = match levels > parse::MAX_LEVELS {
        true => None,
        false => parse::with_room(levels, || rows_in_tree(request, &read)),
    };
    let text = |is_named, stands| Doubt::Text {
        text: asked_with(sql, &all, part),
        is_named,
        stands,
        column: !lost.is_empty(),
    };
    let without_tables = match lost.is_empty() {
        true => Doubt::None,
        false => text(false, false),
    };
    let is_named = match tree {
        None if !is_listed => return Ok(without_tables),
        None => false,
        Some(tables) => {
            let is_missing = |(named, name): NamedTable| {
                let is_dual = named.is_none() && name.eq_ignore_ascii_case("dual");
                let database = named.or_else(|| database.map(str::to_owned));
                !is_dual
                    && match database {
                        Some(database) => is_missing(request, &TableName::new(database, name)),
                        None => may_be_missing_somewhere(request, &name),
                    }
            };
            if !tables.into_iter().any(is_missing) {
                return Ok(without_tables);
            }
            true
        }
    };
    let stands = is_named || !missing_by_words().is_empty();
    if asks && !stands {
        // another question in between would change the answer
        return Ok(Doubt::None);
    }
    Ok(text(is_named, stands))
}

/// The tables of these names that are there.
fn known_tables(request: &Request, names: &[TableName]) -> Vec<Arc<Table>> {
    let known = names
        .iter()
        .filter(|name| !name.name.starts_with(COLLATION));
    known
        .filter_map(
            |name| match request.catalog.table(&name.database, &name.name) {
                Known::Table(table) => Some(table),
                _ => None,
            },
        )
        .collect()
}

/// Words of the statement that are names of columns which `[protect]` protects in the database of
/// one of these tables, or which are protected in some other table, if those count, and that none
/// of these has.
fn lost_columns(
    request: &Request,
    all: &[Token],
    tables: &[Arc<Table>],
    others_count: bool,
) -> Vec<String> {
    let is_call = |at: usize| all.get(at + 1).is_some_and(|t| t.is(b'('));
    let may_be_one = |at: usize| match all[at].kind {
        TokenKind::Word if is_call(at) => None,
        TokenKind::Word | TokenKind::Quoted => identifier(request.sql, &all[at]),
        _ => None,
    };
    let is_lost = |name: &String| {
        let mut databases = tables.iter().map(|table| &table.database);
        let is_protected = others_count && request.catalog.names_protected(name)
            || databases.any(|database| request.policy.names_column(database, name));
        is_protected && !tables.iter().any(|table| table.column(name).is_some())
    };
    (0..all.len())
        .filter_map(may_be_one)
        .filter(is_lost)
        .collect()
}

/// Refuses new rows with the column: MariaDB prepares `INSERT … SELECT` without a look at the
/// columns that it fills.
fn not_assigned(request: &Request, all: &[Token], name: &str) -> Planned<()> {
    let sql = request.sql;
    if !is_one_of(sql, &all[0], &["insert", "replace"]) {
        return Ok(());
    }
    let is_it = |token: &Token| identifier(sql, token).is_some_and(|other| same_name(&other, name));
    // lists of columns, and of partitions, before the rows
    let begins = |t: &Token| {
        is_one_of(
            sql,
            t,
            &["select", "set", "values", "value", "with", "table"],
        )
    };
    let rows = all.iter().position(begins).unwrap_or(all.len());
    let head = &all[..rows];
    let listed = head
        .iter()
        .position(|t| t.is(b'('))
        .map(|open| &head[open..]);
    let updated = || {
        let behind = all
            .windows(2)
            .rposition(|pair| pair[0].is_word(sql, "key") && pair[1].is_word(sql, "update"))?;
        Some(&all[behind..])
    };
    let is_set = |tokens: &[Token]| tokens.windows(2).any(|t| is_it(&t[0]) && t[1].is(b'='));
    let place = match () {
        () if listed.is_some_and(|list| list.iter().any(is_it)) => Place::InsertInto,
        () if updated().is_some_and(is_set) => Place::Update,
        () => return Ok(()),
    };
    let place = place.name(request.settings.family);
    Err(Refusal::unknown_column(name, place))
}

/// Of what no server prepares: whether the word is a column's name, whose value would be sent.
fn not_prepared(request: &Request, all: &[Token], name: &str) -> Planned<()> {
    let sql = request.sql;
    let is_it = |token: &Token| identifier(sql, token).is_some_and(|other| same_name(&other, name));
    let is_assigned = || {
        let mut pairs = all.windows(2);
        pairs.any(|pair| is_it(&pair[0]) && pair[1].is(b'='))
    };
    let verb = |word: &str| all[0].is_word(sql, word);
    match verb("handler") || verb("load") && is_assigned() {
        true => Err(Refusal::unknown_column(name, "field list")),
        // definitions have rules of their own
        false => Ok(()),
    }
}

/// Whether any of these names is that of a table that may be missing.
pub(super) fn names_any(request: &Request, names: &[TableName]) -> bool {
    names.iter().any(|name| is_missing(request, name))
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

/// The same where no database is selected: of a table of this name in any.
fn may_be_missing_somewhere(request: &Request, table: &str) -> bool {
    request.policy.concerns_somewhere(table) || request.catalog.was_protected_somewhere(table)
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
    let names_query = |from: usize| {
        let rest = all.get(from..).unwrap_or_default().iter();
        let is_query = |(at, token): (usize, &Token)| {
            let is_call = all.get(from + at + 1).is_some_and(|t| t.is(b'('));
            is_one_of(sql, token, &QUERIES) && !(token.is_word(sql, "values") && is_call)
        };
        rest.enumerate().any(is_query)
    };
    let at = if is(0, &["insert", "replace"]) && !names_query(1) {
        let mut at = 1;
        while is(at, &BETWEEN) {
            at += 1;
        }
        at
    } else if is(0, &["load"]) && !opens_query(sql, all) {
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

/// The part of a statement that reads or changes rows: of a definition the query at its end, of
/// SET STATEMENT and EXPLAIN the statement behind. Otherwise the whole. `None`: there is no such
/// part.
fn rows_part<'t>(sql: &[u8], all: &'t [Token]) -> Option<&'t [Token]> {
    const BEGIN: [&str; 7] = [
        "select", "with", "insert", "replace", "update", "delete", "table",
    ];
    const EXPLAINS: [&str; 4] = ["explain", "describe", "desc", "analyze"];
    let is = |at: usize, words: &[&str]| all.get(at).is_some_and(|t| is_one_of(sql, t, words));
    if is(0, &["create", "alter", "drop"]) {
        let at = query_at_end(sql, all)?;
        return Some(without_check_option(sql, &all[at..]));
    }
    if is(0, &["set"]) && is(1, &["statement"]) {
        let behind = all.iter().position(|t| t.is_word(sql, "for"))? + 1;
        return rows_part(sql, &all[behind..]);
    }
    if !is(0, &EXPLAINS) {
        return Some(all);
    }
    if is(0, &["analyze"]) && all.iter().take(3).any(|t| t.is_word(sql, "table")) {
        return None;
    }
    let mut depth = 0usize;
    let begins = |token: &Token| {
        if token.is(b'(') {
            depth += 1;
        } else if token.is(b')') {
            depth = depth.saturating_sub(1);
        }
        depth == 0 && is_one_of(sql, token, &BEGIN)
    };
    let at = all.iter().position(begins);
    Some(&all[at.unwrap_or(0)..])
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

/// What the server is asked with: a part of the statement, or all of it where that says of which
/// database its tables are.
fn asked_with(sql: &[u8], all: &[Token], part: &[Token]) -> Vec<u8> {
    match super::schema::is_said(sql, all) {
        true => with_other_values(sql, all),
        false => with_other_values(sql, part),
    }
}

/// The statement with values that say nothing, and without comments.
fn with_other_values(sql: &[u8], all: &[Token]) -> Vec<u8> {
    let value = |token: &Token, before: Option<&Token>| -> &'static [u8] {
        let is_behind = |word: &str| before.is_some_and(|t| t.is_word(sql, word));
        match token.kind {
            // a length, a position or a count of rows may not be 0: `WEIGHT_STRING(s AS CHAR(2))`
            TokenKind::Literal(LiteralKind::Integer) => b"1",
            TokenKind::Literal(LiteralKind::Decimal) => b"0.0",
            TokenKind::Literal(LiteralKind::Float) => b"0e0",
            // these are looked at by the parser
            _ if is_behind("date") => b"'2000-01-01'",
            _ if is_behind("time") => b"'00:00:00'",
            _ if is_behind("timestamp") => b"'2000-01-01 00:00:00'",
            // as a path in a document it is the whole document
            _ => b"'$'",
        }
    };
    with_values(sql, all, |token, before| value(token, before).into())
}
