//! Statements that stand in executable comments, as dumps have them.

use std::borrow::Cow;

use super::{LexMode, Lexer, Token, TokenKind, executable, tokens};

/// What is meant for versions before this one, both servers execute: MariaDB leaves out what is
/// meant for MySQL 5.7 and later.
const NOT_EXECUTED_BY_ALL: u32 = 50_700;

/// The statement of a text that consists of executable comments that both servers execute, with
/// blanks in the place of their marks: `/*!40000 ALTER TABLE t DISABLE KEYS */`, or a view in three
/// of them. Semicolons may stand in one: a trigger's body has them. `None`: there is something
/// else, or one is of another kind or holds comments itself.
pub fn unwrapped(sql: &[u8], mode: LexMode) -> Option<Vec<u8>> {
    let mut out = sql.to_vec();
    let mut lexer = Lexer::new(sql, mode);
    let mut has_comment = false;
    while let Some(begin) = next_mark(&mut lexer)? {
        let text = sql.get(begin..)?.strip_prefix(b"/*!")?;
        let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
        let version: u32 = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
        if digits != 5 || version >= NOT_EXECUTED_BY_ALL {
            return None;
        }
        let body = begin + 3 + digits;
        let end = body_end(sql, body, mode)?;
        if memchr::memmem::find(&sql[body..end], b"/*").is_some() {
            return None;
        }
        out[begin..body].fill(b' ');
        out[end..end + 2].fill(b' ');
        lexer.at = end + 2;
        has_comment = true;
    }
    // and nothing has become a comment, or ends elsewhere
    let is_comment = |token: &Token| token.kind == TokenKind::Executable;
    let is_whole = has_comment && !tokens(&out, mode).ok()?.iter().any(is_comment);
    is_whole.then_some(out)
}

/// A definition that a server has shown, with the contents of executable comments in their places:
/// the same server reads it so. It writes what older versions do not know into such comments
/// (`/*!80023 INVISIBLE */`). Of a text that cannot be cut into words nothing changes.
pub fn spelled_out(definition: &str, mode: LexMode) -> Cow<'_, str> {
    let sql = definition.as_bytes();
    let Ok(all) = tokens(sql, mode) else {
        return definition.into();
    };
    let mut out = String::new();
    let mut at = 0;
    for comment in all.iter().filter(|t| t.kind == TokenKind::Executable) {
        let (body, version) = executable(comment.text(sql));
        let begin = body.as_ptr() as usize - sql.as_ptr() as usize;
        let parts = [
            definition.get(at..comment.start),
            definition.get(begin + version..begin + body.len()),
        ];
        for part in parts {
            out.push_str(part.unwrap_or_default());
        }
        at = comment.end;
    }
    match at {
        0 => definition.into(),
        _ => (out + definition.get(at..).unwrap_or_default()).into(),
    }
}

/// Where the next comment begins, behind blanks; `Some(None)` where none follows, but for a
/// semicolon.
fn next_mark(lexer: &mut Lexer) -> Option<Option<usize>> {
    lexer.skip_blank().ok()?;
    let rest = lexer.sql.get(lexer.at..)?;
    match rest.first() {
        None => Some(None),
        Some(b';') => {
            lexer.at += 1;
            lexer.skip_blank().ok()?;
            (lexer.at == lexer.sql.len()).then_some(None)
        }
        Some(_) => Some(Some(lexer.at)),
    }
}

/// Where the end of an executable comment stands, as servers see it that execute what is inside.
fn body_end(sql: &[u8], body: usize, mode: LexMode) -> Option<usize> {
    let mut inner = Lexer {
        at: body,
        within: true,
        ..Lexer::new(sql, mode)
    };
    loop {
        inner.skip_blank().ok()?;
        if sql.get(inner.at..)?.starts_with(b"*/") {
            return Some(inner.at);
        }
        inner.next_token().ok()??;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_spelled_out() {
        let out = |sql: &str| spelled_out(sql, LexMode::default()).into_owned();
        for (shown, meant) in [
            (
                "`h` int DEFAULT '5' /*!80023 INVISIBLE */,",
                "`h` int DEFAULT '5'  INVISIBLE ,",
            ),
            ("`s` text /*M!100301 COMPRESSED*/,", "`s` text  COMPRESSED,"),
            (
                "KEY `iv` (`n`) /*!80000 INVISIBLE */)",
                "KEY `iv` (`n`)  INVISIBLE )",
            ),
            (
                "`s` text COMMENT '/*!80023 x */'",
                "`s` text COMMENT '/*!80023 x */'",
            ),
        ] {
            assert_eq!(out(shown), meant);
        }
    }

    #[test]
    fn what_both_servers_execute_is_a_statement() {
        for (sql, inner) in [
            (
                "/*!40000 ALTER TABLE `t` DISABLE KEYS */;",
                Some("ALTER TABLE `t` DISABLE KEYS ;"),
            ),
            (" /*!50003 x*/ ", Some("x")),
            (
                "/*!50001 CREATE */\n/*!50013 DEFINER=a@b */ /*!50001 VIEW v AS SELECT '*' */",
                Some("CREATE DEFINER=a@b VIEW v AS SELECT '*'"),
            ),
            (
                "/*!50003 CREATE*/ /*!50017 DEFINER=a@b*/ /*!50003 TRIGGER t BEGIN SET @a = '*/;'; END */;",
                Some("CREATE DEFINER=a@b TRIGGER t BEGIN SET @a = '*/;'; END ;"),
            ),
            ("/*!50003 x; y */ /*!50003 z */", Some("x; y z")),
            ("/*!50003 x */; /*!50003 y */", None),
            ("/*!50003 x; /* y */ */", None),
            ("/*!50003 x; -- y */", None),
            ("/*!40000 x */ y", None),
            ("SELECT 1 /*!40000 + 1 */", None),
            (";", None),
            ("SELECT '/*!40000 x */'", None),
            ("SELECT 1 /* /*!40000 x */", None),
            ("/*!50001 VIEW v AS SELECT '/*' */", None),
            ("/*!50700 x */", None),
            ("/*! x */", None),
            ("/*!400001 x */", None),
            ("/*M!40000 x */", None),
            ("/*!40000 x /* y */ */", None),
            ("/*!40000 x */ /*!80000 y */", None),
            ("/*!40000 'x */ y'", None),
            ("/*!40000 x", None),
        ] {
            let words = |text: Vec<u8>| {
                let text = String::from_utf8(text).expect("a text");
                text.split_whitespace().collect::<Vec<_>>().join(" ")
            };
            let got = unwrapped(sql.as_bytes(), LexMode::default()).map(words);
            assert_eq!(got.as_deref(), inner, "{sql}");
        }
    }
}
