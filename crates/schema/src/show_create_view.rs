//! SHOW CREATE VIEW: the text of a view over a protected table, with logical names.

use crate::alias::is_mark;
use crate::errors::SchemaError;
use crate::folding::same_name;
use crate::protection::{split_companion, split_enc};
use crate::show_create::{Token, tokens};
use crate::table::Table;

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

/// The text of a view with constants as the client wrote them, in the place of `LEFT(X'…', n)`.
/// `shown` gets the bytes and n; `None`: they are no constant of the proxy's.
pub fn show_view_constants(text: &str, shown: impl Fn(&[u8], usize) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(token) = Token::first(rest) {
        let constant = left_of_bytes(rest);
        let known = constant.and_then(|(bytes, n, length)| Some((shown(&bytes, n)?, length)));
        let (piece, length) = match &known {
            Some((piece, length)) => (piece.as_str(), *length),
            None => (token.text(), token.text().len()),
        };
        out.push_str(piece);
        rest = rest.get(length..).unwrap_or_default();
    }
    out
}

/// What a text begins with, if that is `LEFT` of bytes: the bytes, how many of them, and the length
/// of the text.
fn left_of_bytes(text: &str) -> Option<(Vec<u8>, usize, usize)> {
    let mut words = Vec::new();
    let mut length = 0;
    for token in tokens(text) {
        length += token.text().len();
        match token {
            Token::Space(_) if !words.is_empty() => {}
            token => words.push(token),
        }
        if matches!(token, Token::Word(")")) || words.len() > 7 {
            break;
        }
    }
    let is = |token: &Token, word: &str| matches!(token, Token::Word(text) if text.eq_ignore_ascii_case(word));
    let ([left, open], [comma, count, close]) =
        (words.first_chunk::<2>()?, words.last_chunk::<3>()?);
    let digits = match words.get(2..words.len().checked_sub(3)?)? {
        [Token::Word(digits)] => digits.strip_prefix("0x")?,
        [Token::Word("X" | "x"), Token::Literal(digits)] => {
            digits.strip_prefix('\'')?.strip_suffix('\'')?
        }
        _ => return None,
    };
    if !(is(left, "left") && is(open, "(") && is(comma, ",") && is(close, ")")) {
        return None;
    }
    let pairs = digits.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    Some((
        bytes.collect::<Option<Vec<u8>>>()?,
        count.text().parse().ok()?,
        length,
    ))
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
    if table.damaged.is_some() {
        // its columns are not known, and no client's name has one of these forms
        return digits.is_some() || is_mark(name);
    }
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
