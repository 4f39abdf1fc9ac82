//! Settings: which may be replayed, and what `SET STATEMENT … FOR` runs.

use super::readings::{Token, next_word, plain, readings};

/// The statement of `SET STATEMENT name = value, … FOR statement`, with plain values only: so it is
/// sure where it begins.
pub fn inner_statement<'a>(text: &'a [u8], tokens: &[Token]) -> Result<&'a [u8], String> {
    let odd = || Err("a statement SET STATEMENT with values that are not plain".to_owned());
    let Some(Token::Word(word, at)) = tokens.get(1) else {
        return odd();
    };
    let mut at = at + word.len();
    loop {
        let (name, next) = plain(text, at);
        let (equals, next) = plain(text, next);
        if name.word().is_none() || equals != Token::Sign(b'=') {
            return odd();
        }
        match behind_value(text, next) {
            Some((Token::Sign(b','), behind)) => at = behind,
            Some((Token::Word(word, _), behind)) if word == "FOR" => {
                let inner = text.get(behind..).unwrap_or_default();
                // Once is enough.
                let is_set =
                    |tokens: &Vec<Token>| tokens.iter().find_map(Token::word) == Some("SET");
                return match readings(inner).iter().any(is_set) {
                    true => odd(),
                    false => Ok(inner),
                };
            }
            _ => return odd(),
        }
    }
}

/// The token behind a plain value, and where it ends; `None` if the value is not plain. A number
/// may have a sign, and a point.
fn behind_value(text: &[u8], at: usize) -> Option<(Token, usize)> {
    let (mut value, mut next) = plain(text, at);
    if value == Token::Sign(b'-') {
        (value, next) = plain(text, next);
    }
    if !matches!(value, Token::Word(..) | Token::Quoted(Some(b'\''))) {
        return None;
    }
    let (follows, behind) = plain(text, next);
    if follows != Token::Sign(b'.') {
        return Some((follows, behind));
    }
    let (fraction, next) = plain(text, behind);
    fraction.word()?;
    Some(plain(text, next))
}

/// The first word that settings may not hold, wherever it stands. Texts in quotes are not told from
/// others, because where they end depends on the session.
pub fn forbidden_setting(text: &[u8]) -> Option<String> {
    const FORBIDDEN: [&[u8]; 5] = [
        b"GLOBAL",
        b"PERSIST",
        b"PERSIST_ONLY",
        b"DEBUG",
        b"DEBUG_DBUG",
    ];
    let mut at = user_variable(text);
    while let Some((from, to)) = next_word(text, at) {
        at = to;
        let word = text[from..to].to_ascii_uppercase();
        if FORBIDDEN.contains(&word.as_slice()) {
            return Some(String::from_utf8_lossy(&word).into_owned());
        }
    }
    None
}

/// Behind the name in the tool's SET @`name`:=…, or else the beginning.
fn user_variable(text: &[u8]) -> usize {
    let Some(name) = text.strip_prefix(b"SET @`") else {
        return 0;
    };
    let ends = memchr::memchr2(b'`', b'\\', name);
    match ends.filter(|end| name[*end..].starts_with(b"`:=")) {
        Some(end) => 6 + end,
        None => 0,
    }
}
