//! The tables that a stored program names.
//!
//! No parser reads stored programs. So what stands where a table may counts as one, and what the
//! program makes itself does not: common tables, and temporary ones. A text that the program
//! prepares is read for tables as well.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use onionskin_schema::TableName;

use super::near::program_databases;
use super::words::flattened;
use super::words::{is_one_of, named};
use crate::lex::{LexMode, LiteralKind, Token, TokenKind, is_compound, tokens};
use crate::native::is_reserved;
use crate::planner::{Request, identifier};

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

/// The tables of a program that has been read; `database` is the session's.
pub(super) fn tables_in_program(
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
        // no table: the reserved word for none
        let is_dual = word.eq_ignore_ascii_case("dual")
            && all[at - 1].is_word(sql, "from")
            && !all.get(at + 1).is_some_and(|t| t.is(b'.'));
        let is_keyword = token.kind == TokenKind::Word && (is_reserved(&word) || is_dual);
        let is_changed =
            at > 0 && (all[at - 1].is_word(sql, "into") || is_one_of(sql, &all[at - 1], &CHANGES));
        if !is_keyword && !own.hides(&word, at, is_changed) {
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

/// Words that the table stands behind which a statement changes, or INTO.
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
        } else if word(before, &["oj"]) {
            // ODBC's {oj t LEFT JOIN …}
            stands = before > 0 && all[before - 1].is(b'{');
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
struct Own {
    temporary: HashSet<String>,
    common: HashMap<String, Vec<Range<usize>>>,
}

impl Own {
    /// Whether a name means what the program makes. What is changed is no common table.
    fn hides(&self, name: &str, at: usize, is_changed: bool) -> bool {
        let name = name.to_ascii_lowercase();
        let places = self.common.get(&name).filter(|_| !is_changed);
        self.temporary.contains(&name)
            || places.is_some_and(|places| places.iter().any(|place| place.contains(&at)))
    }

    fn add_common(&mut self, name: &str, place: Range<usize>) {
        let places = self.common.entry(name.to_ascii_lowercase()).or_default();
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
            let before = &part[at.saturating_sub(6)..at];
            let is_temporary = before.windows(3).any(|three| {
                is_one_of(sql, &three[0], &["create", "replace"])
                    && three[1].is_word(sql, "temporary")
                    && three[2].is_word(sql, "table")
            });
            if is_temporary {
                own.temporary.insert(name.to_ascii_lowercase());
            } else if is_common_table(sql, part, at) {
                own.add_common(&name, place.clone());
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
