//! Definitions: `CREATE TABLE`, `ALTER TABLE`, `CREATE INDEX`.
//!
//! These are read from tokens, not from a syntax tree: only the parts that concern protected
//! columns need to be understood, and `ENCRYPTED FOR (…)` is ours alone. What is not understood
//! near a protected column is refused. Ids and authentication tags are made when the plan is
//! carried out, so the text has pieces for them.
//!
//! `reader.rs` walks over tokens, `column.rs` reads a protected column's definition, `default.rs` its default, `index.rs` the
//! indexes over it, `foreign_key.rs` its references, `collation.rs` tells which collation it gets; `copy.rs` is
//! `CREATE TABLE … LIKE`, `select.rs` finds the parts of `CREATE TABLE … SELECT`.

mod alter;
mod collation;
mod column;
mod copy;
mod create;
mod default;
mod foreign_key;
mod index;
mod key_length;
mod migration;
mod reader;
mod select;
mod specs;

pub(crate) use alter::alter_table;
pub(crate) use create::create_table;
pub(crate) use index::index;

use std::sync::Arc;

use onionskin_schema::{DefaultLiteral, NewColumn, SchemaError, Table};

use crate::errors::{self, Refusal};
use crate::lex::{Token, TokenKind};
use crate::plan::Action;
use crate::planner::{Planned, Planner, Request, identifier, refuse};

pub(crate) use self::reader::Reader;

/// A definition with places for what only its execution knows.
#[derive(Clone, Debug)]
pub struct Ddl {
    /// Its text.
    pub pieces: Vec<DdlPiece>,
    /// New protected columns; their ids are still zero.
    pub new_columns: Vec<NewColumn>,
    /// The table, when it exists already and has protected columns.
    pub table: Option<Arc<Table>>,
    /// Columns of other tables whose tokens those of new columns are compared with.
    pub references: Vec<Reference>,
    /// `CREATE TEMPORARY TABLE`: database and name.
    pub temporary: Option<(String, String)>,
}

/// A foreign key's column that is new, and the protected one that it refers to.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// Which of the new columns.
    pub column: usize,
    /// The other table.
    pub table: Arc<Table>,
    /// Its column.
    pub index: usize,
}

/// `CREATE TABLE … LIKE`.
#[derive(Clone, Debug)]
pub struct Copied {
    /// The statement up to the new table's name.
    pub head: Vec<u8>,
    /// The table whose definition is taken.
    pub source: Arc<Table>,
}

/// A part of a definition's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DdlPiece {
    /// Text as it is.
    Sql(Vec<u8>),
    /// The physical definitions of a new column, in `CREATE TABLE`.
    Definitions(usize),
    /// The specifications that add a new column, in `ALTER TABLE`.
    Add {
        /// Which of the new columns.
        column: usize,
        /// Where: `None` at the end, `Some(None)` first, `Some(Some(name))` after a column.
        place: Option<Option<String>>,
    },
    /// The column that an index on a new column is built on.
    IndexColumn(usize),
    /// The comment of an index over prefixes of protected columns: which columns it is built on, and how long the prefixes are.
    PrefixLengths(Vec<(Prefixed, u32)>),
    /// New comments for the protected columns that the statement does not change otherwise, each with a comma behind it:
    /// the mark of all of them changes.
    Renew,
    /// The specifications that drop a protected column, by its index in [`Ddl::table`].
    Drop(usize),
    /// The specifications that rename a protected column.
    Rename(usize, String),
    /// The specifications that change a protected column's default.
    SetDefault(usize, Option<DefaultLiteral>),
    /// The name of an index that has none: as the server would make it up from the column's, beside the indexes that the table has.
    IndexName {
        /// The column's.
        base: String,
        /// Names that stand before it in the statement.
        taken: Vec<String>,
        /// Indexes that the statement drops.
        freed: Vec<String>,
    },
    /// A note about a column that is there already; no text.
    Present(String),
    /// MariaDB's note about an index that would be too long over the whole of a protected column; no text.
    KeyTooLong,
    /// The columns of a view that say how the table calls one of its columns.
    AliasMarks(AliasMarks),
}

/// What an index over a protected column's prefix is built on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prefixed {
    /// A column of the server's table.
    Existing(String),
    /// One of the new columns.
    New(usize),
}

/// A view's own name for a protected column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasMarks {
    /// The view's.
    pub name: String,
    /// The table's.
    pub original: String,
    /// The ids of the table and of the column.
    pub ids: ([u8; 8], [u8; 4]),
    /// In the view's list of columns; else in its query.
    pub listed: bool,
}

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

/// Refuses names of the form that physical columns have: an index or a foreign key over one would be made behind the back of
/// the protected column that it belongs to.
fn check_names(sql: &[u8], tokens: &[Token]) -> Planned<()> {
    let mut names = tokens.iter().filter_map(|t| identifier(sql, t));
    match names.find(|n| onionskin_schema::is_reserved_name(n)) {
        Some(name) => refuse(
            &errors::DEFINITION,
            format!("{name} is a name as physical columns have it"),
        ),
        None => Ok(()),
    }
}

fn has_encrypted(sql: &[u8], tokens: &[Token]) -> bool {
    tokens
        .windows(2)
        .any(|w| w[0].is_word(sql, "encrypted") && w[1].is_word(sql, "for"))
}

fn define<'a>(ddl: Ddl) -> Planned<Decided<'a>> {
    Ok((Action::Define(Box::new(ddl)), None))
}
