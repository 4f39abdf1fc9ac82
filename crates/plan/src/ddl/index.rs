//! Indexes and constraints as elements of a `CREATE TABLE` or an `ALTER TABLE … ADD`.

use std::ops::Range;

use super::key_length::KeyKind;
use super::key_parts::{Indexed, Key, KeyParts, mentioned};
use super::reader::Reader;
use super::{DdlPiece, Pieces};
use crate::errors::{self, NotUnderstood};
use crate::planner::{Planned, quoted, refuse};

/// Names of a table's indexes, which an index without a name must not get.
pub(super) struct IndexNames {
    /// Those in the statement so far.
    taken: Vec<String>,
    /// Of a table that exists, those that the statement drops; `None` if the table is new.
    freed: Option<Vec<String>>,
}

impl IndexNames {
    pub(super) fn of_new_table() -> Self {
        Self {
            taken: Vec::new(),
            freed: None,
        }
    }

    pub(super) fn of_table(freed: Vec<String>) -> Self {
        Self {
            taken: Vec::new(),
            freed: Some(freed),
        }
    }

    /// Writes the name that the server would make up from the column's: it sees the physical one
    /// only.
    pub(super) fn write_made_up(&mut self, column: String, out: &mut Pieces) {
        if let Some(freed) = &self.freed {
            out.sql(b" ");
            out.0.push(DdlPiece::IndexName {
                base: column,
                taken: self.taken.clone(),
                freed: freed.clone(),
            });
            return;
        }
        let mut candidate = column.clone();
        let mut n = 2;
        while self
            .taken
            .iter()
            .any(|t| t.eq_ignore_ascii_case(&candidate))
        {
            candidate = format!("{column}_{n}");
            n += 1;
        }
        out.sql(format!(" {}", quoted(&candidate)).as_bytes());
        self.taken.push(candidate);
    }
}

/// Whether an element of a `CREATE TABLE` list or an `ADD` specification is no column: an index or
/// a constraint. No column can have the name of a reserved word; PERIOD and VECTOR are none.
pub(super) fn is_key_element(reader: &Reader, range: &Range<usize>) -> bool {
    const RESERVED: [&str; 9] = [
        "key",
        "index",
        "primary",
        "unique",
        "fulltext",
        "spatial",
        "constraint",
        "foreign",
        "check",
    ];
    let r = Reader::over(reader.request, reader.tokens, range.clone());
    RESERVED.iter().any(|word| r.is(word))
        || (r.is("period") && r.word_at(1, "for"))
        || (r.is("vector") && (r.word_at(1, "index") || r.word_at(1, "key")))
}

/// A primary or unique key among the elements of a definition.
pub(super) struct UniqueElement {
    pub(super) is_primary: bool,
    /// Its columns; what is an expression is left out.
    pub(super) columns: Vec<String>,
}

/// Reads an element, if it is such a key.
pub(super) fn unique_element(reader: &Reader, element: Range<usize>) -> Option<UniqueElement> {
    let mut r = Reader::over(reader.request, reader.tokens, element);
    constraint_name(&mut r).ok()?;
    let is_primary = r.is("primary");
    if !is_primary && !r.is("unique") {
        return None;
    }
    while !r.done() && !r.token().is_some_and(|t| t.is(b'(')) {
        r.at += 1;
    }
    let list = r.parenthesized()?;
    let name = |part: Range<usize>| Reader::over(r.request, r.tokens, part).name();
    Some(UniqueElement {
        is_primary,
        columns: reader.split(list).into_iter().filter_map(name).collect(),
    })
}

/// What stands before an index's columns.
struct Head {
    kind: KeyKind,
    /// The index or its constraint has a name.
    is_named: bool,
    /// Where a name stands, or would stand.
    name_at: usize,
}

/// Rewrites an element of [`is_key_element`]: its columns, and its name where the server would take
/// it from a physical column.
pub(super) fn key_element(
    reader: &Reader,
    range: Range<usize>,
    lookup: &dyn Fn(&str) -> Planned<Indexed>,
    names: &mut IndexNames,
    out: &mut Pieces,
) -> Planned<()> {
    let mut r = Reader::over(reader.request, reader.tokens, range.clone());
    let constraint = constraint_name(&mut r)?;
    let is_constrained = constraint.is_some();
    names.taken.extend(constraint);
    let is_other = [
        "foreign", "check", "fulltext", "spatial", "period", "vector",
    ]
    .iter()
    .any(|word| r.is(word));
    if is_other {
        return other_element(&r, range, lookup, out);
    }
    let head = head(&mut r, is_constrained, names)?;
    let list_open = r.at;
    let Some(list) = r.parenthesized() else {
        return NotUnderstood::Without("an index", "columns").refuse();
    };
    let key = Key {
        kind: head.kind,
        is_special: false,
        lookup,
    };
    let mut parts = KeyParts::read(reader, list, &key)?;
    parts.write_notes(out);
    out.sql(reader.text(range.start..head.name_at));
    if !head.is_named
        && let Some(column) = parts.first_protected.take()
    {
        names.write_made_up(column, out);
    }
    out.sql(b" ");
    out.sql(reader.text(head.name_at..list_open));
    out.sql(b" (");
    parts.write(reader, out);
    out.sql(b") ");
    parts.write_options(reader, r.at..range.end, out)
}

/// Writes the key of a column that its own definition says to be UNIQUE, as a specification of its
/// own. `name` is the column's name.
pub(super) fn own_unique(
    reader: &Reader,
    name: Range<usize>,
    lookup: &dyn Fn(&str) -> Planned<Indexed>,
    names: &mut IndexNames,
    out: &mut Pieces,
) -> Planned<()> {
    let key = Key {
        kind: KeyKind::Unique,
        is_special: false,
        lookup,
    };
    let mut parts = KeyParts::read(reader, name, &key)?;
    parts.write_notes(out);
    out.sql(b", ADD UNIQUE KEY");
    if let Some(column) = parts.first_protected.take() {
        names.write_made_up(column, out);
    }
    out.sql(b" (");
    parts.write(reader, out);
    out.sql(b")");
    Ok(())
}

/// Reads `CONSTRAINT [name]`; the name.
fn constraint_name(r: &mut Reader) -> Planned<Option<String>> {
    let has_name = r.eat("constraint")
        && !["primary", "unique", "foreign", "check"]
            .iter()
            .any(|word| r.is(word));
    if !has_name {
        return Ok(None);
    }
    match r.name() {
        Some(name) => Ok(Some(name)),
        None => NotUnderstood::Clause("CONSTRAINT").refuse(),
    }
}

/// A foreign key, CHECK, FULLTEXT, SPATIAL or PERIOD, where the reader stands: it stays as it is
/// over plain columns, and cannot be over protected ones.
fn other_element(
    r: &Reader,
    element: Range<usize>,
    lookup: &dyn Fn(&str) -> Planned<Indexed>,
    out: &mut Pieces,
) -> Planned<()> {
    if let Some(name) = mentioned(r, r.at..element.end, lookup)? {
        let what = r.token().map_or(b"".as_slice(), |t| t.text(r.sql()));
        let what = String::from_utf8_lossy(what);
        return refuse(&errors::INDEX, format!("{what} over column {name}"));
    }
    out.sql(r.text(element));
    Ok(())
}

/// Reads what stands before an index's columns.
fn head(r: &mut Reader, is_constrained: bool, names: &mut IndexNames) -> Planned<Head> {
    let (is_primary, is_unique) = (r.eat("primary"), r.eat("unique"));
    let is_key = r.eat("key") || r.eat("index");
    let kind = if is_primary {
        KeyKind::Primary
    } else if is_unique {
        KeyKind::Unique
    } else if is_key {
        KeyKind::Plain
    } else {
        return NotUnderstood::PartOf("an element", "the definition").refuse();
    };
    for word in ["if", "not", "exists"] {
        r.eat(word);
    }
    let name_at = r.at;
    let has_name = !r.is("using") && !r.token().is_some_and(|t| t.is(b'('));
    if has_name {
        names.taken.extend(r.name());
    }
    while !r.done() && !r.token().is_some_and(|t| t.is(b'(')) {
        r.at += 1;
    }
    Ok(Head {
        kind,
        // a constraint's name is the index's, unless that has one of its own
        is_named: has_name || is_constrained || kind == KeyKind::Primary,
        name_at,
    })
}
