//! `CREATE INDEX` and `DROP INDEX`.

use std::sync::Arc;

use onionskin_schema::Table;

use super::key_length::KeyKind;
use super::key_parts::{Key, KeyParts, existing};
use super::reader::Reader;
use super::{Ddl, Decided, Pieces, check_names, define};
use crate::errors::{self, NotUnderstood, Refusal};
use crate::lex::Token;
use crate::plan::Action;
use crate::planner::{Known, Planned, Request, refuse};

/// `CREATE [UNIQUE] INDEX i ON t (…)`, `DROP INDEX i ON t`.
pub(crate) fn index<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let mut r = Reader::whole(request, &tokens);
    if r.eat("drop") {
        check_names(request.sql, &tokens)?;
        return Ok((Action::Relay, None));
    }
    let kind = index_kind(&mut r)?;
    let table = table(&mut r, &near)?;
    let open = r.at;
    let Some(list) = r.parenthesized() else {
        return Err(not_understood());
    };
    check_names(request.sql, &tokens)?;
    let lookup = |name: &str| existing(&table, name);
    let key = Key {
        kind: kind.key,
        is_special: kind.is_special,
        lookup: &lookup,
    };
    let parts = KeyParts::read(&r, list, &key)?;
    let mut out = Pieces::default();
    out.sql(r.text(0..open));
    out.sql(b" (");
    parts.write(&r, &mut out);
    parts.write_notes(&mut out);
    out.sql(b") ");
    parts.write_options(&r, r.at..r.end, &mut out)?;
    define(Ddl {
        pieces: out.0,
        new_columns: Vec::new(),
        table: Some(table),
        references: Vec::new(),
        temporary: None,
        rests_on_keys: false,
        kept_plain: Vec::new(),
        of_database: None,
    })
}

fn not_understood() -> Refusal {
    Refusal::from(NotUnderstood::Clause("CREATE INDEX"))
}

/// What stands between CREATE and INDEX.
struct IndexKind {
    key: KeyKind,
    /// Something that is not looked into: FULLTEXT, SPATIAL, OR REPLACE.
    is_special: bool,
}

/// Reads `CREATE … INDEX`.
fn index_kind(r: &mut Reader) -> Planned<IndexKind> {
    r.eat("create");
    if r.eat("or") {
        r.eat("replace");
    }
    if r.is("fulltext") || r.is("spatial") {
        // over plain columns it is none of our business
        r.at += 1;
    }
    let is_special = r.at > 1 && !r.tokens[r.at - 1].is_word(r.sql(), "create");
    let is_unique = r.eat("unique");
    if !r.eat("index") {
        return refuse(
            &errors::STATEMENT,
            "CREATE of something that uses a protected table",
        );
    }
    Ok(IndexKind {
        key: match is_unique {
            true => KeyKind::Unique,
            false => KeyKind::Plain,
        },
        is_special,
    })
}

/// Reads up to the table's name. The table is the only one near.
fn table(r: &mut Reader, near: &[Arc<Table>]) -> Planned<Arc<Table>> {
    while !r.done() && !r.is("on") {
        r.at += 1;
    }
    r.eat("on");
    let (database, name) = r.table().ok_or_else(not_understood)?;
    let catalog = r.request.catalog;
    let known = database.map(|database| catalog.table(&database, &name));
    match (known, near) {
        (Some(Known::Table(table)), [only]) if Arc::ptr_eq(&table, only) => Ok(table),
        _ => Err(not_understood()),
    }
}
