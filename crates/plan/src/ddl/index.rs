//! Indexes: of a protected column they are built on its order key or equality token, as a whole where the definition names a
//! prefix. An index is a way to rows; a unique one says which rows can be, and there a prefix is another thing than the whole.

use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::Table;
use onionskin_value::{Kind, SqlType};

use super::key_length::{KeyKind, KeyLength};
use super::reader::Reader;
use super::{Ddl, DdlPiece, Decided, Pieces, Prefixed, check_names, define, schema_refusal};
use crate::errors::{self, Refusal};
use crate::lex::Token;
use crate::plan::Action;
use crate::planner::{Known, Planned, Request, identifier, quoted, refuse};

/// The longest prefix that InnoDB takes, in bytes.
const PREFIX_BYTES: u64 = 3072;

/// The column that an index names: existing or new, with its type. That of a plain column is not always known.
pub(super) enum Indexed {
    Plain(Option<SqlType>),
    Existing(String, SqlType),
    New(usize, SqlType),
}

/// Reads `(10)` behind the name of a protected column: how long the prefix is. `None` without one, or where it is the
/// whole column.
fn prefix(r: &mut Reader, name: &str, ty: &SqlType, unique: bool) -> Planned<Option<u32>> {
    if !r.token().is_some_and(|t| t.is(b'(')) {
        return Ok(None);
    }
    let refused = |about: &str| refuse(&errors::INDEX, format!("a prefix of column {name}{about}"));
    let inside = r.parenthesized().unwrap_or_default();
    let digits = std::str::from_utf8(r.text(inside)).unwrap_or_default();
    let Ok(length) = digits.parse::<u32>() else {
        return refused("");
    };
    if !(ty.is_character() || ty.is_binary()) || ty.kind == Kind::Json {
        return refused(", which is no string");
    }
    let whole = match ty.kind {
        Kind::Char { chars } | Kind::VarChar { chars } => Some(chars),
        Kind::Binary { len } | Kind::VarBinary { len } => Some(len),
        _ => None,
    };
    let bytes = u64::from(length) * u64::from(ty.charset().max_bytes());
    match whole {
        _ if length == 0 => refused(" without characters"),
        Some(whole) if length == whole => Ok(None),
        _ if unique => refused(" that is to be unique"),
        Some(whole) if length > whole => refused(", which is shorter"),
        None if bytes > ty.payload_max() => refused(", which is shorter"),
        _ if bytes > PREFIX_BYTES => refused(" of more than 3072 bytes"),
        _ => Ok(Some(length)),
    }
}

/// `(10)` behind the name of a plain column.
fn length_of(r: &mut Reader) -> Option<u32> {
    let inside = r.parenthesized()?;
    std::str::from_utf8(r.text(inside))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// What an element of a `CREATE TABLE` list or an `ADD` specification is.
pub(super) fn is_key_element(reader: &Reader, range: &Range<usize>) -> bool {
    const WORDS: [&str; 10] = [
        "key",
        "index",
        "primary",
        "unique",
        "fulltext",
        "spatial",
        "constraint",
        "foreign",
        "check",
        "period",
    ];
    let sql = reader.sql();
    reader
        .tokens
        .get(range.start)
        .is_some_and(|t| WORDS.iter().any(|w| t.is_word(sql, w)))
}

/// Rewrites an index's element: its columns, and its name where the server would take it from
/// a physical column. `existing` is there if the table is: names of its indexes that the statement drops.
pub(super) fn key_element(
    reader: &Reader,
    range: Range<usize>,
    lookup: &dyn Fn(&str) -> Planned<Indexed>,
    taken: &mut Vec<String>,
    existing: Option<&[String]>,
    out: &mut Pieces,
) -> Planned<()> {
    let sql = reader.sql();
    let mut r = Reader::over(reader.request, reader.tokens, range.clone());
    let start = r.at;
    let mut constrained = false;
    if r.eat("constraint")
        && !(r.is("primary") || r.is("unique") || r.is("foreign") || r.is("check"))
    {
        let name = r
            .name()
            .ok_or_else(|| Refusal::new(&errors::NOT_UNDERSTOOD, "CONSTRAINT"))?;
        taken.push(name);
        constrained = true;
    }
    let mention = |range: Range<usize>| -> Planned<Option<String>> {
        for token in &reader.tokens[range] {
            if let Some(name) = identifier(sql, token)
                && !matches!(lookup(&name)?, Indexed::Plain(_))
            {
                return Ok(Some(name));
            }
        }
        Ok(None)
    };
    if r.is("foreign") || r.is("check") || r.is("fulltext") || r.is("spatial") || r.is("period") {
        if let Some(name) = mention(r.at..range.end)? {
            let what = String::from_utf8_lossy(r.token().map_or(b"", |t| t.text(sql))).into_owned();
            return refuse(&errors::INDEX, format!("{what} over column {name}"));
        }
        out.sql(reader.text(range));
        return Ok(());
    }
    let primary = r.eat("primary");
    let unique = r.eat("unique");
    let keyed = r.eat("key") || r.eat("index");
    if !(keyed || primary || unique) {
        return refuse(&errors::NOT_UNDERSTOOD, "an element of the definition");
    }
    r.eat("if");
    r.eat("not");
    r.eat("exists");
    let before_name = r.at;
    let named = !r.is("using") && !r.token().is_some_and(|t| t.is(b'('));
    if named && let Some(name) = r.name() {
        taken.push(name);
    }
    while !r.done() && !r.token().is_some_and(|t| t.is(b'(')) {
        r.at += 1;
    }
    let list_open = r.at;
    let Some(list) = r.parenthesized() else {
        return refuse(&errors::NOT_UNDERSTOOD, "an index without columns");
    };
    let parts = reader.split(list);
    let kind = match (primary, unique) {
        (true, _) => KeyKind::Primary,
        (false, true) => KeyKind::Unique,
        (false, false) => KeyKind::Plain,
    };
    let mut key = KeyLength::new(reader.request.settings.family, kind);
    let (mut first_protected, mut any_protected) = (None, None);
    let mut notes = Vec::new();
    let mut texts = Vec::new();
    let mut prefixes = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let mut p = Reader::over(reader.request, reader.tokens, part.clone());
        let name = p.name();
        let column = match &name {
            Some(name) => lookup(name)?,
            None => Indexed::Plain(None),
        };
        match (&column, name) {
            (Indexed::Plain(ty), _) => {
                key.add_plain(ty.as_ref(), length_of(&mut p));
                if let Some(name) = mention(part.clone())? {
                    return refuse(&errors::INDEX, format!("an expression over column {name}"));
                }
            }
            (Indexed::Existing(_, ty) | Indexed::New(_, ty), Some(name)) => {
                let length = prefix(&mut p, &name, ty, unique || primary)?;
                let cut = key.add(&name, ty, length)?;
                notes.extend(cut.filter(|cut| cut.is_noted));
                let length = cut.map(|cut| cut.chars).or(length);
                prefixes.extend(length.and_then(|length| prefixed(&column, length)));
                if i == 0 {
                    first_protected = Some(name.clone());
                }
                any_protected = Some(name);
            }
            (_, None) => {}
        }
        texts.push((column, part.clone(), p.at));
    }
    if let Some(name) = any_protected {
        key.check(&name)?;
    }
    out.0
        .extend(notes.into_iter().map(|_| DdlPiece::KeyTooLong));
    out.sql(reader.text(start..before_name));
    // a constraint's name is the index's, unless that has one of its own
    let unnamed = first_protected.filter(|_| !named && !constrained && !primary);
    if let (Some(name), Some(freed)) = (&unnamed, existing) {
        out.sql(b" ");
        out.0.push(DdlPiece::IndexName {
            base: name.clone(),
            taken: taken.clone(),
            freed: freed.to_vec(),
        });
    } else if let Some(name) = &unnamed {
        let mut candidate = name.clone();
        let mut n = 2;
        while taken.iter().any(|t| t.eq_ignore_ascii_case(&candidate)) {
            candidate = format!("{name}_{n}");
            n += 1;
        }
        out.sql(format!(" {}", quoted(&candidate)).as_bytes());
        taken.push(candidate);
    }
    out.sql(b" ");
    out.sql(reader.text(before_name..list_open));
    out.sql(b" (");
    for (i, (column, part, after)) in texts.into_iter().enumerate() {
        if i > 0 {
            out.sql(b",");
        }
        match column {
            Indexed::Plain(_) => out.sql(reader.text(part)),
            Indexed::Existing(name, _) => {
                out.sql(quoted(&name).as_bytes());
                out.sql(b" ");
                out.sql(reader.text(after..part.end));
            }
            Indexed::New(n, _) => {
                out.0.push(DdlPiece::IndexColumn(n));
                out.sql(b" ");
                out.sql(reader.text(after..part.end));
            }
        }
    }
    out.sql(b") ");
    prefix_lengths(&r, r.at..range.end, prefixes, out)?;
    out.sql(reader.text(r.at..range.end));
    Ok(())
}

/// The column of a prefix and its length.
fn prefixed(column: &Indexed, length: u32) -> Option<(Prefixed, u32)> {
    match column {
        Indexed::Plain(_) => None,
        Indexed::Existing(name, _) => Some((Prefixed::Existing(name.clone()), length)),
        Indexed::New(n, _) => Some((Prefixed::New(*n), length)),
    }
}

/// Notes the lengths of prefixes in the index's comment. `options` stand behind its columns.
fn prefix_lengths(
    r: &Reader,
    options: Range<usize>,
    prefixes: Vec<(Prefixed, u32)>,
    out: &mut Pieces,
) -> Planned<()> {
    if prefixes.is_empty() {
        return Ok(());
    }
    let sql = r.sql();
    let mut options = r.tokens[options].iter();
    if options.any(|t| t.is_word(sql, "comment")) {
        let about = "a prefix of a protected column in an index with a COMMENT";
        return refuse(&errors::INDEX, about);
    }
    out.0.push(DdlPiece::PrefixLengths(prefixes));
    Ok(())
}

/// `CREATE [UNIQUE] INDEX i ON t (…)`, `DROP INDEX i ON t`.
pub(crate) fn index<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let sql = request.sql;
    let end = tokens
        .iter()
        .rposition(|t| !t.is(b';'))
        .map_or(0, |i| i + 1);
    let mut r = Reader::over(request, &tokens, 0..end);
    if r.eat("drop") {
        return Ok((Action::Relay, None));
    }
    r.eat("create");
    if r.eat("or") {
        r.eat("replace");
    }
    if r.is("fulltext") || r.is("spatial") {
        // over plain columns it is none of our business
        r.at += 1;
    }
    let special = r.at > 1 && !tokens[r.at - 1].is_word(sql, "create");
    let unique = r.eat("unique");
    if !r.eat("index") {
        return refuse(
            &errors::STATEMENT,
            "CREATE of something that uses a protected table",
        );
    }
    while !r.done() && !r.is("on") {
        r.at += 1;
    }
    r.eat("on");
    let (database, name) = r
        .table()
        .ok_or_else(|| Refusal::new(&errors::NOT_UNDERSTOOD, "CREATE INDEX"))?;
    let known = database.as_deref().map(|d| request.catalog.table(d, &name));
    let (Some(Known::Table(table)), [only]) = (known, near.as_slice()) else {
        return refuse(&errors::NOT_UNDERSTOOD, "CREATE INDEX");
    };
    if !Arc::ptr_eq(&table, only) {
        return refuse(&errors::NOT_UNDERSTOOD, "CREATE INDEX");
    }
    let open = r.at;
    let Some(list) = r.parenthesized() else {
        return refuse(&errors::NOT_UNDERSTOOD, "CREATE INDEX");
    };
    check_names(sql, &tokens)?;
    let lookup = existing_lookup(&table);
    let kind = if unique {
        KeyKind::Unique
    } else {
        KeyKind::Plain
    };
    let mut key = KeyLength::new(request.settings.family, kind);
    let (mut any_protected, mut notes) = (None, Vec::new());
    let mut prefixes = Vec::new();
    let mut out = Pieces::default();
    out.sql(r.text(0..open));
    out.sql(b" (");
    for (i, part) in r.split(list).into_iter().enumerate() {
        if i > 0 {
            out.sql(b",");
        }
        let mut p = Reader::over(request, &tokens, part.clone());
        let named = p.name();
        let column = match &named {
            Some(name) => lookup(name)?,
            None => Indexed::Plain(None),
        };
        match (&column, named) {
            (Indexed::Existing(physical, ty), Some(name)) => {
                if special {
                    let about = format!("FULLTEXT or SPATIAL over column {name}");
                    return refuse(&errors::INDEX, about);
                }
                let length = prefix(&mut p, &name, ty, unique)?;
                let cut = key.add(&name, ty, length)?;
                notes.extend(cut.filter(|cut| cut.is_noted));
                let length = cut.map(|cut| cut.chars).or(length);
                prefixes.extend(length.and_then(|length| prefixed(&column, length)));
                any_protected = Some(name);
                out.sql(quoted(physical).as_bytes());
                out.sql(b" ");
                out.sql(r.text(p.at..part.end));
            }
            _ => {
                if let Indexed::Plain(ty) = &column {
                    key.add_plain(ty.as_ref(), length_of(&mut p));
                }
                for token in &tokens[part.clone()] {
                    if let Some(name) = identifier(sql, token)
                        && !matches!(lookup(&name)?, Indexed::Plain(_))
                    {
                        return refuse(&errors::INDEX, format!("an expression over column {name}"));
                    }
                }
                out.sql(r.text(part));
            }
        }
    }
    if let Some(name) = any_protected {
        key.check(&name)?;
    }
    out.0
        .extend(notes.into_iter().map(|_| DdlPiece::KeyTooLong));
    out.sql(b") ");
    prefix_lengths(&r, r.at..end, prefixes, &mut out)?;
    out.sql(r.text(r.at..end));
    define(Ddl {
        pieces: out.0,
        new_columns: Vec::new(),
        table: Some(table),
        references: Vec::new(),
        temporary: None,
    })
}

pub(super) fn existing_lookup(table: &Arc<Table>) -> impl Fn(&str) -> Planned<Indexed> + use<> {
    let table = Arc::clone(table);
    move |name: &str| {
        let named = table.column(name);
        let Some(column) = named.filter(|c| c.protection.is_some()) else {
            return Ok(Indexed::Plain(named.and_then(|c| c.sql_type)));
        };
        let name = onionskin_schema::index_column_name(column).map_err(|e| schema_refusal(&e))?;
        let Some(ty) = column.sql_type else {
            return refuse(&errors::INTERNAL, &column.name);
        };
        Ok(Indexed::Existing(name.to_string(), ty))
    }
}
