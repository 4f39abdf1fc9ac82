//! Where a statement ends in a text of several.

use super::{LexError, LexMode, Lexer, Token, TokenKind};

/// Cuts a text into its statements at `;`. Empty statements are left out. `None` when the text
/// holds a compound statement (a stored program's body, or one of MariaDB's on its own), whose
/// semicolons are not boundaries.
pub fn split(sql: &[u8], mode: LexMode) -> Result<Option<Vec<std::ops::Range<usize>>>, LexError> {
    let mut parts = Vec::new();
    let mut lexer = Lexer::new(sql, mode);
    // what tells of a part whether it is a statement: its first two tokens and its first words
    let (mut head, mut end): (Vec<Token>, usize) = (Vec::new(), 0);
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
        if let Some(first) = head.first() {
            if is_compound(sql, &head) {
                return Ok(None);
            }
            parts.push(first.start..end);
            head.clear();
        }
        if token.is_none() {
            return Ok(Some(parts));
        }
    }
}

/// Whether a piece that begins so is one of a compound statement, cut at its semicolons. Each of
/// those has a piece that begins with END, UNTIL or ELSE, and most begin with a word that begins
/// nothing else.
fn is_compound(sql: &[u8], head: &[Token]) -> bool {
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
            split(sql.as_bytes(), LexMode::default()).unwrap().map(|v| {
                v.into_iter()
                    .map(|r| sql[r].to_string())
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(cut("a ';'; ; b;").unwrap(), ["a ';'", "b"]);
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
        assert_eq!(cut("begin work; a; begin").unwrap().len(), 3);
        assert_eq!(
            cut("create table a(x int); begin; commit").unwrap().len(),
            3
        );
    }
}
