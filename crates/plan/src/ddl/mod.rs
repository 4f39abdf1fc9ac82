//! Definitions: `CREATE TABLE`, `ALTER TABLE`, `CREATE INDEX`.
//!
//! These are read from tokens, not from a syntax tree: only the parts that concern protected
//! columns need to be understood, and `ENCRYPTED FOR (…)` is ours alone. What is not understood
//! near a protected column is refused. Ids and authentication tags are made when the plan is
//! carried out, so the text has pieces for them.
//!
//! One file for each statement: `create.rs` with the table's `body.rs`, `copy.rs` for
//! `CREATE TABLE … LIKE`, `select.rs` for `CREATE TABLE … SELECT`, `alter/`, `create_index.rs`.
//!
//! What they share: `reader.rs` walks over tokens. `options.rs` reads what stands behind a table's
//! columns, `attributes.rs` what stands behind a column's type: no question is answered by a word
//! that stands anywhere. `column.rs` reads a protected column's
//! definition, with `column_type.rs` for types, `collation.rs` for the collation of columns that
//! name none, `default.rs` for what stands behind DEFAULT, and `constant.rs` for constants there.
//! `check.rs` reads CHECK constraints over protected columns.
//! `index.rs` reads indexes as elements, `key_parts.rs` their columns, `key_length.rs` adds these
//! up. `foreign_key.rs` reads foreign keys, and `inline_reference.rs` makes elements of those that
//! stand in the definitions of columns.

mod alter;
mod attributes;
mod body;
mod check;
mod collation;
mod column;
mod column_type;
mod constant;
mod copy;
mod create;
mod create_index;
mod default;
mod deprecated;
mod foreign_key;
mod index;
mod inline_reference;
mod key_length;
mod key_parts;
mod options;
mod reader;
mod select;
mod tenant;

pub(crate) use alter::{added_keys, alter_table};
pub(crate) use create::create_table;
pub(crate) use create_index::index;

use onionskin_schema::{COMMENT_MARK, SchemaError};

use crate::errors::{self, NotUnderstood, Refusal};
use crate::lex::{LiteralKind, Token, TokenKind, tokens};
use crate::plan::Action;
pub(crate) use crate::plan::{AliasMarks, Copied, Ddl, DdlPiece, Prefixed, Redefined, Reference};
use crate::planner::{Planned, Planner, Request, identifier, refuse};

pub(crate) use self::reader::Reader;

/// Builds a definition's text.
#[derive(Default)]
struct Pieces(Vec<DdlPiece>);

type Decided<'a> = (Action, Option<Planner<'a>>);

impl Pieces {
    fn sql(&mut self, text: &[u8]) {
        match self.0.last_mut() {
            Some(DdlPiece::Sql(last)) => last.extend_from_slice(text),
            _ => self.0.push(DdlPiece::Sql(text.to_vec())),
        }
    }
}

fn schema_refusal(error: &SchemaError) -> Refusal {
    let entry = match error {
        SchemaError::IndexWithoutCapability { .. } => &errors::INDEX,
        _ => &errors::DEFINITION,
    };
    Refusal::new(entry, error.to_string())
}

/// Whether the statement is `CREATE [OR REPLACE] [TEMPORARY] TABLE`.
pub(crate) fn creates_table(sql: &[u8], tokens: &[Token]) -> bool {
    tokens
        .iter()
        .take(5)
        .take_while(|t| t.kind == TokenKind::Word)
        .any(|t| t.is_word(sql, "table"))
}

/// Whether the statement is `ALTER [ONLINE] [IGNORE] TABLE`.
pub(crate) fn alters_table(sql: &[u8], tokens: &[Token]) -> bool {
    let head = |t: &&Token| t.is_word(sql, "online") || t.is_word(sql, "ignore");
    let behind = 1 + tokens.iter().skip(1).take_while(head).count();
    tokens.get(behind).is_some_and(|t| t.is_word(sql, "table"))
}

/// The table that a `CREATE TABLE` or `ALTER TABLE` is about.
pub(crate) fn target(request: &Request, tokens: &[Token]) -> Option<(Option<String>, String)> {
    let mut r = Reader::over(request, tokens, 0..tokens.len());
    while r.at < 5 && !r.is("table") {
        r.at += 1;
    }
    if !r.eat("table") {
        return None;
    }
    if r.eat("if") {
        r.eat("not");
        r.eat("exists");
    }
    r.table()
}

/// Refuses names of the form that physical columns have, and that constraints and indexes on them
/// have: an index or a foreign key over one would be made behind the back of the protected column
/// that it belongs to, and a guard could be taken away. A comment as protected columns have it
/// would make one of a plain column, which nobody could read.
fn check_names(sql: &[u8], tokens: &[Token]) -> Planned<()> {
    let is_string = |t: &&Token| {
        let strings = [LiteralKind::String, LiteralKind::Introduced];
        matches!(t.kind, TokenKind::Literal(kind) if strings.contains(&kind))
    };
    // in pieces, or with escapes, it is the same
    let is_letter = |b: &u8| !matches!(b, b'\'' | b'"' | b'\\' | b' ' | b'\t' | b'\n' | b'\r');
    let is_ours = |t: &Token| {
        let text: Vec<u8> = t.text(sql).iter().copied().filter(is_letter).collect();
        memchr::memmem::find(&text, COMMENT_MARK.as_bytes()).is_some()
    };
    if tokens.iter().filter(is_string).any(is_ours) {
        return refuse(
            &errors::DEFINITION,
            "a comment as protected columns have it",
        );
    }
    for name in tokens.iter().filter_map(|t| identifier(sql, t)) {
        if onionskin_schema::is_reserved_name(&name) {
            let about = format!("{name} is a name as physical columns have it");
            return refuse(&errors::DEFINITION, about);
        }
        if onionskin_schema::may_be_ours(&name) {
            let about = format!("{name}, a constraint that belongs to a protected column");
            return refuse(&errors::ALTERATION, about);
        }
    }
    Ok(())
}

fn has_encrypted(sql: &[u8], tokens: &[Token]) -> bool {
    tokens
        .windows(2)
        .any(|w| w[0].is_word(sql, "encrypted") && w[1].is_word(sql, "for"))
}

/// Plans another text in the place of the statement's.
fn planned_anew(
    request: &Request,
    text: &[u8],
    plan: impl FnOnce(&Request, Vec<Token>) -> Planned<Action>,
) -> Planned<Action> {
    let tokens = tokens(text, request.settings.lex).map_err(NotUnderstood::from)?;
    let request = Request {
        sql: text,
        ..*request
    };
    plan(&request, tokens)
}

fn define<'a>(ddl: Ddl) -> Planned<Decided<'a>> {
    Ok((Action::Define(Box::new(ddl)), None))
}
