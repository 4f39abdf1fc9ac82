//! SHOW CREATE VIEW: the text of a view over a protected table, with logical names.

use crate::errors::SchemaError;
use crate::protection::{split_companion, split_enc};
use crate::show_create::{Token, tokens};
use crate::table::{Table, same_name};

/// `SHOW CREATE VIEW` of a view over a protected table: without the companions, under the logical
/// names.
pub fn show_create_view(physical_sql: &str, table: &Table) -> Result<String, SchemaError> {
    logical_view(physical_sql, table).ok_or_else(|| SchemaError::DefinitionNotUnderstood {
        table: table.name.clone(),
    })
}

fn logical_view(physical_sql: &str, table: &Table) -> Option<String> {
    let (mut at, mut depth) = (0, 0usize);
    // where the column list begins and ends, if the text has one, and where the query's items begin
    let (mut list, mut query) = (None, None);
    let mut listed: Vec<(&str, Option<String>)> = Vec::new();
    let mut items: Vec<(&str, Option<String>)> = Vec::new();
    let (mut from, mut name) = (0, None);
    for token in tokens(physical_sql) {
        let end = at + token.text().len();
        match (query, token) {
            (None, Token::Word("(")) if list.is_none() => (list, from) = (Some((end, end)), end),
            (None, Token::Word("," | ")")) => {
                let (begin, stop) = list.as_mut()?;
                listed.push((physical_sql.get(from..at)?, name.take()));
                (*stop, from) = (at.max(*begin), end);
            }
            (None, Token::Word("select")) => (query, from, name) = (Some(end), end, None),
            (Some(_), Token::Word("(")) => depth += 1,
            (Some(_), Token::Word(")")) => depth = depth.checked_sub(1)?,
            (Some(begin), Token::Word("," | "from")) if depth == 0 => {
                items.push((physical_sql.get(from..at)?, name.take()));
                from = end;
                if token.text() == "from" {
                    let head = match list {
                        None => physical_sql.get(..begin)?.to_owned(),
                        Some((opened, closed)) => format!(
                            "{}{}{}",
                            physical_sql.get(..opened)?,
                            clients(&listed, table).join(","),
                            physical_sql.get(closed..begin)?
                        ),
                    };
                    let last = items.last().and_then(|(_, name)| name.as_deref());
                    let space = match last.is_some_and(|name| is_the_proxys(name, table)) {
                        true => " ",
                        false => "",
                    };
                    let kept = clients(&items, table).join(",");
                    let text = format!("{head}{kept}{space}{}", physical_sql.get(at..)?);
                    return Some(with_names_by_form(&text));
                }
            }
            (_, token) if token.is_identifier() => name = Some(token.name()),
            _ => {}
        }
        at = end;
    }
    None
}

/// The elements of a view's list that are the client's own.
fn clients<'t>(elements: &[(&'t str, Option<String>)], table: &Table) -> Vec<&'t str> {
    let is_clients =
        |name: &Option<String>| !name.as_deref().is_some_and(|n| is_the_proxys(n, table));
    let kept = elements.iter().filter(|(_, name)| is_clients(name));
    kept.map(|(text, _)| *text).collect()
}

/// Whether a column of a view has been added to the client's: a companion or a mark. The companion
/// may have the name that the table has for it, which is known by the digits of its column.
fn is_the_proxys(name: &str, table: &Table) -> bool {
    if let Some(column) = table.owner_of(name) {
        return !column.enc_name().is_some_and(|enc| same_name(enc, name));
    }
    let digits = split_companion(name).map(|(_, _, digits)| digits);
    let mut companions = table
        .protected_columns()
        .flat_map(|(_, protection)| protection.names.companions());
    digits.is_some_and(|digits| companions.any(|c| c.ends_with(digits)))
}

/// `text` with logical names for all that have the form of physical ones: those of the view, and of
/// the tables that it reads.
fn with_names_by_form(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for token in tokens(text) {
        let name = token.is_identifier().then(|| token.name());
        let logical = name.as_deref().and_then(|name| {
            let companion = || split_companion(name).map(|(base, ..)| base);
            split_enc(name).or_else(companion)
        });
        match logical {
            Some(name) => out.push_str(&token.quoted(name)),
            None => out.push_str(token.text()),
        }
    }
    out
}
