//! `CREATE TABLE … SELECT`: where its parts stand.
//!
//! What columns the table gets is not known here: the scratch engine runs the statement and shows
//! it (`scratch/create.rs`). So a column list is only looked through for what concerns protection,
//! and for what a temporary table cannot have.

use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::Table;

use super::collation::default_of;
use super::column::take_encrypted;
use super::index::is_key_element;
use super::options::{Options, partitions_within, versioned};
use super::reader::Reader;
use super::{Decided, has_encrypted};
use crate::errors::{self, NotUnderstood, Refusal};
use crate::lex::{LexMode, LiteralKind, Token, TokenKind};
use crate::plan::NewTable;
use crate::planner::{Planned, Planner, Request, UseScratch, identifier, refuse};

/// The parts of the statement behind the table's name, as ranges of tokens.
pub(super) struct Parts {
    /// What stands in the parentheses of the column list.
    list: Option<Range<usize>>,
    /// Options and partitions.
    options: Range<usize>,
    /// IGNORE or REPLACE stands before the query.
    ignore: bool,
    replaces: bool,
    query: Range<usize>,
}

/// The new table's name and what stands before it.
pub(super) struct Head {
    pub database: String,
    pub name: String,
    pub or_replace: bool,
    pub temporary: bool,
    pub if_absent: bool,
}

/// Whether a query begins with this token.
fn begins_query(sql: &[u8], tokens: &[Token], mut at: usize) -> bool {
    while tokens.get(at).is_some_and(|t| t.is(b'(')) {
        at += 1;
    }
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|t| t.is_word(sql, word));
    // WITH SYSTEM VERSIONING is an option
    is(at, "select") || (is(at, "with") && !is(at + 1, "system"))
}

/// The parts of a `CREATE TABLE` that ends with a query; the reader stands behind the table's name.
/// `None`: it does not.
pub(super) fn parts(mut r: Reader) -> Option<Parts> {
    let (sql, tokens, end) = (r.sql(), r.tokens, r.end);
    let list = match begins_query(sql, tokens, r.at) {
        true => None,
        false => r.parenthesized(),
    };
    let (from, mut depth) = (r.at, 0usize);
    let mut query = None;
    for at in from..end {
        if depth == 0 && begins_query(sql, tokens, at) {
            query = Some(at);
            break;
        }
        if tokens[at].is(b'(') {
            depth += 1;
        } else if tokens[at].is(b')') {
            depth = depth.saturating_sub(1);
        }
    }
    let query = query?;
    let mut before = query;
    let mut takes = |word: &str| {
        let found = before > from && tokens[before - 1].is_word(sql, word);
        before -= usize::from(found);
        found
    };
    takes("as");
    let (ignore, replaces) = (takes("ignore"), takes("replace"));
    Some(Parts {
        list,
        options: from..before,
        ignore,
        replaces,
        query: query..end,
    })
}

/// Words of a column list that a temporary table cannot have, or that act beyond the table.
const BEYOND: [&str; 7] = [
    "foreign",
    "references",
    "fulltext",
    "spatial",
    "period",
    "versioning",
    "nextval",
];

/// Refuses executable comments. Tools write options into them, such as `/*! ENGINE = innodb */`.
pub(super) fn check_comments(r: &Reader, options: &Range<usize>) -> Planned<()> {
    let is_fine = |(at, token): (usize, &Token)| {
        token.kind != TokenKind::Executable
            || (options.contains(&at)
                && (holds_options(r.sql(), token, r.request.settings.lex)
                    || partitions_within(r, token).is_ok_and(|found| found.is_some())))
    };
    match r.tokens.iter().enumerate().all(is_fine) {
        true => Ok(()),
        false => refuse(&errors::EXECUTABLE_COMMENT, ""),
    }
}

/// Whether an executable comment holds nothing but options of a table that say how it is stored.
fn holds_options(sql: &[u8], comment: &Token, mode: LexMode) -> bool {
    const OPTIONS: [&str; 20] = [
        "aria",
        "auto_increment",
        "character",
        "charset",
        "collate",
        "comment",
        "compressed",
        "default",
        "dynamic",
        "engine",
        "innodb",
        "key_block_size",
        "memory",
        "myisam",
        "row_format",
        "set",
        "stats_auto_recalc",
        "stats_persistent",
        "utf8",
        "utf8mb4",
    ];
    let (body, version) = crate::lex::executable(comment.text(sql));
    let inner = &body[version..];
    let fits = |t: &Token| match t.kind {
        TokenKind::Word => OPTIONS.iter().any(|w| t.is_word(inner, w)),
        TokenKind::Literal(_) => true,
        _ => t.is(b'=') || t.is(b','),
    };
    crate::lex::tokens(inner, mode).is_ok_and(|tokens| tokens.iter().all(fits))
}

/// Plans it: the scratch engine runs the statement.
pub(super) fn create_select<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
    head: Head,
    parts: Parts,
) -> Planned<Decided<'a>> {
    let r = Reader::over(request, &tokens, 0..tokens.len());
    check_parts(&r, &head, &parts)?;
    let listed = match &parts.list {
        Some(list) => Listed::read(&r, list.clone())?,
        None => Listed::default(),
    };
    if has_encrypted(request.sql, &tokens[parts.options.start..]) {
        return NotUnderstood::EncryptedForElsewhere.refuse();
    }
    let options = Options::read(Reader::over(request, &tokens, parts.options.clone()))?;
    if options.is_versioned {
        return versioned(&errors::DEFINITION);
    }
    if options.is_union {
        return refuse(&errors::STATEMENT, "a union of tables with a query");
    }
    let collation = match options.collation(&r)? {
        Some(collation) => collation,
        None => default_of(request, &head.database, None),
    };
    let new = NewTable {
        database: head.database,
        name: head.name,
        temporary: head.temporary,
        or_replace: head.or_replace,
        if_absent: head.if_absent,
        ignore: parts.ignore,
        replaces: parts.replaces,
        list: parts.list.map(|l| (l.start, l.end)),
        cut: listed.cut,
        encrypted: listed.encrypted,
        listed: listed.names,
        options: (parts.options.start, parts.options.end),
        query: (parts.query.start, parts.query.end),
        collation,
        handed: Vec::new(),
        called: Vec::new(),
        positional: false,
    };
    let query = tokens[parts.query].to_vec();
    let mut planner = Planner::new(request, tokens, near.clone())?;
    match crate::scratch::create(&mut planner, new.clone()) {
        Ok(action) => Ok((action, Some(planner))),
        Err(refusal) if unclear(&refusal) => {
            let mut planner = Planner::new(request, query, near)?;
            match crate::scratch::create_by_words(&mut planner, new) {
                Ok(action) => Ok((action, Some(planner))),
                Err(_) => Err(refusal),
            }
        }
        Err(refusal) => Err(refusal),
    }
}

/// Refuses what the scratch engine cannot make a table of.
fn check_parts(r: &Reader, head: &Head, parts: &Parts) -> Planned<()> {
    if r.request.settings.scratch == UseScratch::Never {
        return refuse(
            &errors::STATEMENT,
            "CREATE TABLE … SELECT with a protected table and without a scratch engine ([scratch] in the configuration)",
        );
    }
    if head.or_replace && head.if_absent {
        return NotUnderstood::Beside("OR REPLACE", "IF NOT EXISTS").refuse();
    }
    check_comments(r, &parts.options)?;
    let is_parameter = |t: &Token| t.kind == TokenKind::Literal(LiteralKind::Parameter);
    if r.tokens[..parts.query.start].iter().any(is_parameter) {
        return NotUnderstood::Within("a parameter", "a definition").refuse();
    }
    Ok(())
}

/// What a column list says of protection.
#[derive(Default)]
struct Listed {
    /// All columns.
    names: Vec<String>,
    /// Columns with `ENCRYPTED FOR (…)`, and these words.
    encrypted: Vec<(String, String)>,
    /// The tokens of these words.
    cut: Vec<(usize, usize)>,
}

impl Listed {
    fn read(r: &Reader, list: Range<usize>) -> Planned<Self> {
        let sql = r.sql();
        let beyond = |t: &&Token| BEYOND.iter().any(|word| t.is_word(sql, word));
        if let Some(word) = r.tokens[list.clone()].iter().find(beyond) {
            let word = String::from_utf8_lossy(word.text(sql)).to_ascii_uppercase();
            let about = format!("CREATE TABLE … SELECT with {word}; add it afterwards");
            return refuse(&errors::STATEMENT, about);
        }
        let mut listed = Self::default();
        for element in r.split(list) {
            if is_key_element(r, &element) {
                continue;
            }
            let name = r.tokens.get(element.start);
            let Some(name) = name.and_then(|t| identifier(sql, t)) else {
                return NotUnderstood::NameOf("a column").refuse();
            };
            if let Some(found) = take_encrypted(r, element)? {
                let place = found.before.end..found.after.start;
                let words = String::from_utf8_lossy(r.text(place.clone())).into_owned();
                listed.encrypted.push((name.clone(), words));
                listed.cut.push((place.start, place.end));
            }
            listed.names.push(name);
        }
        Ok(listed)
    }
}

/// Whether a query that is refused for this may be planned by its words.
fn unclear(refusal: &Refusal) -> bool {
    refusal.reason().is_some() || refusal.is(&errors::AMBIGUOUS)
}
