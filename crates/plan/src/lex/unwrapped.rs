//! Statements that stand in executable comments, as dumps have them.

use super::{LexMode, Token, TokenKind, tokens};

/// What is meant for versions before this one, both servers execute: MariaDB leaves out what is
/// meant for MySQL 5.7 and later.
const NOT_EXECUTED_BY_ALL: u32 = 50_700;

/// The statement of a text that consists of executable comments that both servers execute, with
/// blanks in the place of their marks: `/*!40000 ALTER TABLE t DISABLE KEYS */`, or a view in three
/// of them. `None`: there is something else, or one is of another kind or holds comments itself.
pub fn unwrapped(sql: &[u8], mode: LexMode) -> Option<Vec<u8>> {
    let all = tokens(sql, mode).ok()?;
    let comments = match all.split_last() {
        Some((last, others)) if last.is(b';') => others,
        _ => &all,
    };
    let is_comment = |token: &Token| token.kind == TokenKind::Executable;
    if comments.is_empty() || !comments.iter().all(is_comment) {
        return None;
    }
    let mut out = sql.to_vec();
    for token in comments {
        let text = sql.get(token.start..token.end)?;
        let inner = text.strip_prefix(b"/*!")?.strip_suffix(b"*/")?;
        let digits = inner.iter().take_while(|b| b.is_ascii_digit()).count();
        let (version, body) = inner.split_at(digits);
        let version: u32 = std::str::from_utf8(version).ok()?.parse().ok()?;
        let is_nested = memchr::memmem::find(body, b"/*").is_some();
        if digits != 5 || version >= NOT_EXECUTED_BY_ALL || is_nested {
            return None;
        }
        out.get_mut(token.start..token.start + 3 + digits)?
            .fill(b' ');
        out.get_mut(token.end - 2..token.end)?.fill(b' ');
    }
    // and nothing has become a comment, or ends elsewhere
    (!tokens(&out, mode).ok()?.iter().any(is_comment)).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

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
