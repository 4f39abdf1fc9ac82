//! How a statement begins, read in every way that servers may read it.
//!
//! Servers read `/*!50001 … */` as statements or as comments, depending on their version, and dumps
//! begin statements with it. Here every such comment is read both ways.

use std::collections::BTreeSet;

/// So many ways to read a statement's beginning, or the gap between two words, are looked at.
pub const MAX_READINGS: usize = 64;
/// As far as a reading goes.
const TOKENS: usize = 6;

/// A piece of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// A keyword, a name or a number, in upper case; and where it begins.
    Word(String, usize),
    /// In quotes of any kind. `None` if it holds what could end it in another place for another
    /// reader.
    Quoted(Option<u8>),
    /// Anything else.
    Sign(u8),
    End,
}

impl Token {
    pub fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word, _) => Some(word),
            _ => None,
        }
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

/// The next run of characters of words, at this place or behind it.
pub fn next_word(text: &[u8], at: usize) -> Option<(usize, usize)> {
    let from = at + text.get(at..)?.iter().position(|byte| is_of_word(*byte))?;
    let length = text[from..].iter().position(|byte| !is_of_word(*byte));
    Some((from, length.map_or(text.len(), |length| from + length)))
}

/// Where code may go on behind white space and comments, for every way to read them.
pub fn gaps(text: &[u8], at: usize) -> Result<Vec<usize>, String> {
    let (mut found, mut seen, mut open) = (Vec::new(), BTreeSet::new(), vec![at]);
    while let Some(at) = open.pop() {
        if !seen.insert(at) {
            continue;
        }
        if seen.len() > MAX_READINGS {
            return Err("a statement with too many comments in a row".into());
        }
        match skip(text, at) {
            Gap::Code(at) => found.push(at),
            Gap::Either { inside, behind } => {
                open.push(inside);
                open.extend(behind);
            }
            Gap::End | Gap::Open => {}
        }
    }
    Ok(found)
}

/// What lies at a place behind white space and comments that are comments for every server.
enum Gap {
    Code(usize),
    /// A comment that a server may run, or not.
    Either {
        inside: usize,
        behind: Vec<usize>,
    },
    /// A comment without an end.
    Open,
    End,
}

fn skip(text: &[u8], mut at: usize) -> Gap {
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let line = || {
            rest.iter()
                .position(|b| *b == b'\n')
                .map_or(rest.len(), |end| end + 1)
        };
        match rest {
            [] => return Gap::End,
            [b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, ..] => at += 1,
            [b'#', ..] | [b'-', b'-'] => at += line(),
            [b'-', b'-', c, ..] if *c <= b' ' => at += line(),
            // The end of one that was entered.
            [b'*', b'/', ..] => at += 2,
            [b'/', b'*', b'!', ..] | [b'/', b'*', b'M', b'!', ..] => {
                let sign = if rest[2] == b'!' { 3 } else { 4 };
                let digits = rest[sign..]
                    .iter()
                    .take_while(|b| b.is_ascii_digit())
                    .count();
                return Gap::Either {
                    inside: at + sign + digits,
                    behind: ends_of_comment(text, at),
                };
            }
            [b'/', b'*', ..] => match memchr::memmem::find(&rest[2..], b"*/") {
                Some(end) => at += end + 4,
                None => return Gap::Open,
            },
            _ => return Gap::Code(at),
        }
    }
}

/// Where a comment that begins here ends: MariaDB counts one level of comments in it, MySQL does as
/// well in some versions.
fn ends_of_comment(text: &[u8], at: usize) -> Vec<usize> {
    let find = |from: usize, what: &[u8]| {
        let rest = text.get(from..)?;
        memchr::memmem::find(rest, what).map(|found| from + found)
    };
    let Some(first) = find(at + 2, b"*/") else {
        return Vec::new();
    };
    let mut ends = vec![first + 2];
    let (mut level, mut from) = (1, at + 2);
    while level > 0 {
        match (find(from, b"/*"), find(from, b"*/")) {
            (Some(begin), Some(end)) if begin < end => {
                level += 1;
                from = begin + 2;
            }
            (_, Some(end)) => {
                level -= 1;
                from = end + 2;
            }
            (_, None) => return ends,
        }
    }
    if from != first + 2 {
        ends.push(from);
    }
    ends
}

/// All readings of a statement's beginning; more than [`MAX_READINGS`] if there are too many.
pub fn readings(text: &[u8]) -> Vec<Vec<Token>> {
    let mut readings = Vec::new();
    let mut open = vec![(Vec::new(), 0)];
    while let Some((mut tokens, at)) = open.pop() {
        if readings.len() + open.len() > MAX_READINGS {
            readings.resize(MAX_READINGS + 1, Vec::new());
            return readings;
        }
        match skip(text, at) {
            _ if tokens.len() == TOKENS => readings.push(tokens),
            Gap::Code(at) => {
                let (token, next) = token(text, at);
                tokens.push(token);
                open.push((tokens, next));
            }
            Gap::Either { inside, behind } => {
                open.push((tokens.clone(), inside));
                open.extend(behind.into_iter().map(|at| (tokens.clone(), at)));
            }
            Gap::End => {
                tokens.push(Token::End);
                readings.push(tokens);
            }
            Gap::Open => {
                tokens.push(Token::Sign(b'/'));
                readings.push(tokens);
            }
        }
    }
    readings
}

/// The token that begins here.
fn token(text: &[u8], at: usize) -> (Token, usize) {
    let Some(first) = text.get(at).copied() else {
        return (Token::End, at);
    };
    if is_of_word(first) {
        let (from, to) = next_word(text, at).unwrap_or((at, at + 1));
        let word = String::from_utf8_lossy(&text[from..to]).to_ascii_uppercase();
        return (Token::Word(word, from), to);
    }
    if matches!(first, b'\'' | b'"' | b'`') {
        let rest = &text[at + 1..];
        let Some(end) = rest.iter().position(|byte| *byte == first) else {
            return (Token::Quoted(None), text.len());
        };
        let is_plain = !rest[..end].contains(&b'\\') && rest.get(end + 1) != Some(&first);
        return (Token::Quoted(is_plain.then_some(first)), at + end + 2);
    }
    (Token::Sign(first), at + 1)
}

/// The token at a place, and where it ends. Comments that a server might run are signs.
pub fn plain(text: &[u8], at: usize) -> (Token, usize) {
    match skip(text, at) {
        Gap::Code(at) => token(text, at),
        Gap::End => (Token::End, text.len()),
        Gap::Either { .. } | Gap::Open => (Token::Sign(b'/'), at),
    }
}
