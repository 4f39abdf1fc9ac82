//! Tables that get other names: `RENAME TABLE`, `ALTER TABLE … RENAME`, and MariaDB's
//! `ALTER TABLE … CONVERT PARTITION … TO TABLE`.
//!
//! `[protect]` goes by names. A plain column may get a name under which the policy protects it. The
//! table would then look like one that was made under the policy, and take values in plaintext. So
//! the new name is refused, unless the policy protects the column under the old name as well. In
//! that case the table was made before the policy, and the new name changes nothing.

use onionskin_schema::{Surrogate, TableName};

use super::definitions;
use super::words::{first_words, word_is};
use crate::ddl::{Reader, alters_table};
use crate::errors;
use crate::lex::{Token, TokenKind};
use crate::planner::{Known, Planned, Request, refuse};

/// How many tables may get new names in one statement: each is looked for among those before it.
const MAX_TABLES: usize = 1_000;

/// A statement's new names.
#[derive(Default)]
struct Renames {
    /// Old and new, in their order.
    tables: Vec<(TableName, TableName)>,
    /// Other words of the statement, of which some may name new columns.
    words: Vec<String>,
}

/// Refuses new names that would make plain columns look protected. `names` are all that the
/// statement's identifiers may mean.
pub(super) fn check(request: &Request, tokens: &[Token], names: &[TableName]) -> Planned<()> {
    let words = first_words(request.sql, tokens, 2);
    let is_rename = word_is(&words, 0, "rename")
        && (word_is(&words, 1, "table") || word_is(&words, 1, "tables"));
    let is_alter = word_is(&words, 0, "alter") && alters_table(request.sql, tokens);
    if request.policy.is_empty() || !(is_rename || is_alter) {
        return Ok(());
    }
    if !definitions::concern(request, names) {
        return Ok(());
    }
    if tokens.iter().any(|t| t.kind == TokenKind::Executable) {
        return match definitions::holds_word(request, tokens, &["rename", "convert"]) {
            true => refuse(&errors::EXECUTABLE_COMMENT, ""),
            false => Ok(()),
        };
    }
    let end = tokens
        .iter()
        .rposition(|t| !t.is(b';'))
        .map_or(0, |i| i + 1);
    let reader = Reader::over(request, tokens, 0..end);
    let found = match is_rename {
        true => by_rename(reader),
        false => by_alter(reader),
    };
    let Some(found) = found else {
        return refuse(&errors::ALTERATION, "a table's new name in this form");
    };
    if found.tables.len() > MAX_TABLES {
        let about = format!("new names for more than {MAX_TABLES} tables");
        return refuse(&errors::ALTERATION, about);
    }
    // `RENAME TABLE a TO c, b TO a, c TO b`: only which table has which name in the end matters
    let mut moved: Vec<(TableName, TableName)> = Vec::new();
    for (old, new) in found.tables {
        let exact = moved.iter().position(|(_, now)| *now == old);
        let nearly = || moved.iter().position(|(_, now)| now.is_same(&old));
        let first = match exact.or_else(nearly) {
            Some(at) => moved.remove(at).0,
            None => old,
        };
        moved.push((first, new));
    }
    for (old, new) in &moved {
        renamed(request, old, new, &found.words)?;
    }
    Ok(())
}

fn renamed(request: &Request, old: &TableName, new: &TableName, words: &[String]) -> Planned<()> {
    let policy = request.policy;
    if old.is_same(new) || !policy.concerns(&new.database, &new.name) {
        return Ok(());
    }
    let Known::Table(table) = request.catalog.table(&old.database, &old.name) else {
        let about = format!(
            "the name {new}, which [protect] matches, for a table whose columns are not known"
        );
        return refuse(&errors::ALTERATION, about);
    };
    let claims = |name: &TableName, column: &str, surrogate: Surrogate| {
        let found = policy.capabilities(&name.database, &name.name, column, surrogate);
        // what cannot be read is no reason to let it pass
        found.map_or(true, |c| c.is_some())
    };
    let plain = table.columns.iter().filter(|c| c.protection.is_none());
    let plain = plain.map(|c| (c.name.as_str(), c.surrogate()));
    let mut columns = plain.chain(words.iter().map(|w| (w.as_str(), Surrogate::No)));
    let changes =
        |(column, s): &(&str, Surrogate)| claims(new, column, *s) && !claims(old, column, *s);
    match columns.find(changes) {
        None => Ok(()),
        Some((column, _)) => {
            let about = format!(
                "the name {new}, under which [protect] protects column {column}; encrypt it first: onionskin migrate {old} --encrypt"
            );
            refuse(&errors::ALTERATION, about)
        }
    }
}

/// `RENAME TABLE [IF EXISTS] a [WAIT n | NOWAIT] TO b, …`
fn by_rename(mut r: Reader) -> Option<Renames> {
    let mut found = Renames::default();
    r.at += 2;
    guard(&mut r);
    loop {
        let old = full(&mut r)?;
        no_wait(&mut r);
        if !r.eat("to") {
            return None;
        }
        found.tables.push((old, full(&mut r)?));
        if r.done() {
            return Some(found);
        }
        if !r.eat_punct(b',') {
            return None;
        }
    }
}

/// `ALTER [ONLINE] [IGNORE] TABLE [IF EXISTS] a [WAIT n | NOWAIT] …, RENAME [TO] b, …`
fn by_alter(mut r: Reader) -> Option<Renames> {
    let mut found = Renames::default();
    while !r.eat("table") {
        r.at += 1;
    }
    guard(&mut r);
    let table = full(&mut r)?;
    no_wait(&mut r);
    for spec in r.split(r.at..r.end) {
        let mut s = Reader::over(r.request, r.tokens, spec.clone());
        let is_table = s.eat("rename") && !["column", "index", "key"].iter().any(|w| s.is(w));
        if is_table {
            let _ = s.eat("to") || s.eat("as") || s.eat_punct(b'=');
            found.tables.push((table.clone(), full(&mut s)?));
            continue;
        }
        let mut s = Reader::over(r.request, r.tokens, spec.clone());
        if s.eat("convert") && s.eat("partition") {
            s.name()?;
            if !s.eat("to") || !s.eat("table") {
                return None;
            }
            found.tables.push((table.clone(), full(&mut s)?));
            continue;
        }
        let words = r.tokens[spec].iter();
        let words = words.filter_map(|t| crate::planner::identifier(r.sql(), t));
        found.words.extend(words);
    }
    Some(found)
}

/// A name with its database.
fn full(r: &mut Reader) -> Option<TableName> {
    let (database, name) = r.table()?;
    Some(TableName::new(database?, name))
}

fn guard(r: &mut Reader) {
    if r.eat("if") {
        r.eat("exists");
    }
}

fn no_wait(r: &mut Reader) {
    if r.eat("wait") {
        r.at += 1;
    } else {
        r.eat("nowait");
    }
}
