//! Where a statement ends in a text of several.

use std::ops::Range;

use super::{LexError, LexMode, Lexer, Token, TokenKind};

/// The database of `USE database`, where a text of several statements goes on in another one.
pub fn used_database(sql: &str) -> Option<String> {
    let mut words = sql.trim().trim_end_matches(';').split_whitespace();
    let is_use = words.next()?.eq_ignore_ascii_case("use");
    let name = words.next().filter(|_| is_use)?;
    words
        .next()
        .is_none()
        .then(|| name.trim_matches('`').to_owned())
}

/// The statements of a text.
#[derive(Debug, PartialEq, Eq)]
pub struct Statements {
    /// Where each stands. The last one may be nothing but a comment.
    pub parts: Vec<Range<usize>>,
    /// The first empty statement before the end. To servers it is a syntax error: they run what
    /// stands before it, and nothing behind it.
    pub empty: Option<Empty>,
    /// Where a compound statement begins (a stored program, or one of MariaDB's on its own), to
    /// the end of the text: its semicolons are not boundaries, so what is behind it is not cut.
    pub compound: Option<Range<usize>>,
}

/// An empty statement, as servers quote it.
#[derive(Debug, PartialEq, Eq)]
pub struct Empty {
    /// How many statements stand before it.
    pub before: usize,
    /// Its semicolon and all behind it.
    pub near: Range<usize>,
    /// The line of the semicolon, from 1, counted from the statement's beginning.
    pub line: usize,
}

/// Cuts a text into its statements at `;`, up to a compound statement.
///
/// Servers take spaces and semicolons off the end first.
pub fn split(sql: &[u8], mode: LexMode) -> Result<Statements, LexError> {
    let ends = |b: &u8| *b == b';' || is_space(*b);
    let text = &sql[..sql
        .iter()
        .rposition(|b| !ends(b))
        .map_or(0, |last| last + 1)];
    let mut parts = Vec::new();
    let mut empty = None;
    let mut lexer = Lexer::new(text, mode);
    // what tells of a part whether it is a statement: its first two tokens and its first words
    let (mut head, mut begin, mut end): (Vec<Token>, usize, usize) = (Vec::new(), 0, 0);
    loop {
        let token = lexer.next_token()?;
        if let Some(token) = token
            && !token.is(b';')
        {
            end = token.end;
            if head.len() < 2 || (head.len() < 14 && token.kind == TokenKind::Word) {
                head.push(token);
            }
            continue;
        }
        let is_empty = head.is_empty();
        let part = head
            .first()
            .map_or(begin..text.len(), |first| first.start..end);
        if !is_empty && is_compound(sql, &head) {
            return Ok(Statements {
                parts,
                empty,
                compound: Some(part.start..text.len()),
            });
        }
        head.clear();
        match token {
            Some(semicolon) if is_empty => {
                empty = empty.or_else(|| {
                    let before = text[begin..semicolon.start].iter();
                    let lines = before
                        .skip_while(|b| is_space(**b))
                        .filter(|b| **b == b'\n');
                    Some(Empty {
                        before: parts.len(),
                        near: semicolon.start..text.len(),
                        line: 1 + lines.count(),
                    })
                });
            }
            // a comment behind the last semicolon is a statement that does nothing
            None if is_empty && text[begin..].iter().all(|b| is_space(*b)) => {}
            _ => parts.push(part),
        }
        match token {
            Some(semicolon) => begin = semicolon.end,
            None => {
                return Ok(Statements {
                    parts,
                    empty,
                    compound: None,
                });
            }
        }
    }
}

/// What servers take for a space.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// Whether a piece that begins so is one of a compound statement, cut at its semicolons. Each of
/// those has a piece that begins with END, UNTIL or ELSE, and most begin with a word that begins
/// nothing else.
pub(crate) fn is_compound(sql: &[u8], head: &[Token]) -> bool {
    const PIECES: [&str; 14] = [
        "case",
        "declare",
        "else",
        "elseif",
        "elsif",
        "end",
        "exception",
        "for",
        "if",
        "loop",
        "repeat",
        "until",
        "when",
        "while",
    ];
    const PROGRAMS: [&str; 5] = ["procedure", "function", "trigger", "event", "package"];
    let is = |token: &Token, words: &[&str]| words.iter().any(|w| token.is_word(sql, w));
    let mut words = head.iter().filter(|t| t.kind == TokenKind::Word);
    let Some(first) = words.next() else {
        return false;
    };
    let second = head.get(1);
    // `label: LOOP`, and `<<label>>` in Oracle's way
    let has_label = second.is_some_and(|t| t.is(b':')) || head[0].is(b'<');
    let is_block = is(&head[0], &["begin"]) && second.is_some_and(|t| !is(t, &["work"]));
    let is_program =
        is(first, &["create", "alter"]) && words.take(11).any(|word| is(word, &PROGRAMS));
    is(first, &PIECES) || has_label || is_block || is_program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_cut_at_semicolons_outside_of_quotes_and_programs() {
        let cut = |sql: &str| {
            let cut = split(sql.as_bytes(), LexMode::default()).unwrap();
            assert_eq!(cut.empty, None, "{sql}");
            if cut.compound.is_some() {
                return None;
            }
            let parts = cut.parts.into_iter().map(|r| sql[r].to_string());
            Some(parts.collect::<Vec<_>>())
        };
        assert_eq!(cut("a ';'; b; ;").unwrap(), ["a ';'", "b"]);
        assert_eq!(cut("a; /* c */ ;").unwrap(), ["a", " /* c */"]);
        assert_eq!(cut(" ; ").unwrap(), [""; 0]);
        for compound in [
            "create or replace procedure p() begin a; b; end",
            "if 1 then a; end if",
            "begin not atomic a; b; end",
            "begin a; b; end",
            "begin work; a; end",
            "begin /*!50000 not atomic */ a; end",
            "/* c */ while 1 do a; end while",
            "l: loop a; leave l; end loop",
            "<<l>> loop a; end loop",
            "repeat a; until 1 end repeat",
            "case when 1 then a; else b; end case",
            "for i in 1..2 do a; end for",
            "declare x int; begin a; end",
            "x; set statement a = 1 for begin not atomic b; end",
        ] {
            assert_eq!(cut(compound), None, "{compound}");
        }
        let text = "a; b; create procedure p() begin c; end; ;";
        let behind = split(text.as_bytes(), LexMode::default()).unwrap();
        assert_eq!(behind.parts, [0..1, 3..4]);
        assert_eq!(
            &text[behind.compound.unwrap()],
            "create procedure p() begin c; end"
        );
        assert_eq!(cut("begin work; a; begin").unwrap().len(), 3);
        assert_eq!(
            cut("create table a(x int); begin; commit").unwrap().len(),
            3
        );
    }

    #[test]
    fn an_empty_statement_is_told_with_what_is_behind_it() {
        let empty = |sql: &str| {
            let cut = split(sql.as_bytes(), LexMode::default()).unwrap();
            let empty = cut.empty.expect(sql);
            (empty.before, sql[empty.near].to_owned(), empty.line)
        };
        let told = |parts: usize, near: &str, line: usize| (parts, near.to_owned(), line);
        assert_eq!(empty("a;; b;"), told(1, "; b", 1));
        assert_eq!(empty("a;\n; b; c;; d"), told(1, "; b; c;; d", 1));
        assert_eq!(empty("-- c\n;b"), told(0, ";b", 2));
        assert_eq!(empty(" ; b"), told(0, "; b", 1));
        assert_eq!(empty("a; /* c */; b"), told(1, "; b", 1));
        assert_eq!(empty("a;; -- x"), told(1, "; -- x", 1));
    }
}
