//! Which collation a new column gets where its definition names none.

use std::ops::Range;

use onionskin_value::{Charset, Collation};

use super::reader::Reader;
use crate::errors::{self, Refusal};
use crate::lex::Token;
use crate::planner::{Known, Planned, Request, Settings};
use crate::request::COLLATION;

/// The collation that a character set stands for in the session. `None`: not one that is known.
pub(super) fn default_collation(charset: &str, settings: &Settings) -> Option<&'static str> {
    let charset = Charset::from_name(charset)?;
    let mut pairs = settings.charset_collations.split(',');
    let given = pairs.find_map(|pair| {
        let (name, collation) = pair.split_once('=')?;
        (Charset::from_name(name.trim()) == Some(charset)).then(|| collation.trim())
    });
    match given {
        Some(name) => Collation::from_name(name).filter(|c| c.charset() == charset),
        None => Collation::default_of(charset, settings.family),
    }
    .map(Collation::name)
}

/// The collation that a table's options name.
pub(super) fn table_collation(
    request: &Request,
    tokens: &[Token],
    options: Range<usize>,
) -> Planned<Option<String>> {
    let mut r = Reader::over(request, tokens, options);
    let (mut charset, mut collation) = (None, None);
    let bad = || Refusal::new(&errors::DEFINITION, "the name of its character set");
    while !r.done() {
        if r.eat("charset")
            || (r.is("character") && {
                r.at += 1;
                r.eat("set")
            })
        {
            r.eat_punct(b'=');
            charset = Some(r.name_or_string().ok_or_else(bad)?);
        } else if r.eat("collate") {
            r.eat_punct(b'=');
            collation = Some(r.name_or_string().ok_or_else(bad)?);
        } else {
            r.at += 1;
        }
    }
    Ok(match (collation, charset) {
        (Some(collation), _) => Some(collation.to_ascii_lowercase()),
        (None, Some(charset)) => Some(
            default_collation(&charset, request.settings)
                .ok_or_else(|| {
                    Refusal::new(&errors::DEFINITION, format!("CHARACTER SET {charset}"))
                })?
                .to_string(),
        ),
        (None, None) => None,
    })
}

/// The default collation of a table or of a database.
pub(super) fn default_of(request: &Request, database: &str, table: Option<&str>) -> String {
    let name = format!("{COLLATION}{}", table.unwrap_or_default());
    match request.catalog.table(database, &name) {
        Known::Table(found) => found.name.clone(),
        _ => request.settings.default_collation.clone(),
    }
}
