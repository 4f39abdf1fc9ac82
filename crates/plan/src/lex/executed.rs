//! What a server reads of the executable comments in a statement.

use onionskin_value::Family;

use super::{Token, TokenKind, is_space};

/// MariaDB leaves out what is meant for these versions, which are MySQL's, unless `/*M!` says that
/// they are its own.
const SKIPPED_BY_MARIADB: std::ops::RangeInclusive<u32> = 50_700..=99_999;

/// What becomes of an executable comment.
enum Fate {
    /// It is read, but for a mark of so many bytes.
    Executed(usize),
    Skipped,
    /// That depends on the server's version, or the form is an unusual one.
    Unknown,
}

/// The text as a server reads it that is at least of this version: with blanks in the place of what
/// makes a comment of words that it executes, and of all that it skips. Everything else stays where
/// it is. Comments for later versions stay as they are. `None`: nothing changes.
pub(crate) fn as_executed(
    sql: &[u8],
    all: &[Token],
    family: Family,
    version: u32,
) -> Option<Vec<u8>> {
    let mut out = sql.to_vec();
    let mut changes = false;
    for comment in all.iter().filter(|t| t.kind == TokenKind::Executable) {
        let (start, end) = (comment.start, comment.end);
        match fate(comment.text(sql), family, version) {
            Fate::Executed(mark) => {
                out[start..start + mark].fill(b' ');
                out[end - 2..end].fill(b' ');
            }
            Fate::Skipped => out[start..end].fill(b' '),
            Fate::Unknown => continue,
        }
        changes = true;
    }
    changes.then_some(out)
}

fn fate(comment: &[u8], family: Family, version: u32) -> Fate {
    let is_mariadbs = comment.get(2) == Some(&b'M');
    if is_mariadbs && family == Family::MySql {
        return Fate::Skipped;
    }
    let mark = if is_mariadbs { 4 } else { 3 };
    let body = &comment[mark..];
    let digits = body.iter().take_while(|b| b.is_ascii_digit()).count();
    let number = std::str::from_utf8(&body[..digits]).unwrap_or_default();
    let meant: u32 = match (digits, number.parse()) {
        (0, _) => return Fate::Executed(mark),
        // servers differ in how many digits belong to the version where more follow at once
        (5 | 6, Ok(meant)) if body.get(digits).copied().is_some_and(is_space) => meant,
        _ => return Fate::Unknown,
    };
    match () {
        () if family == Family::MariaDb && !is_mariadbs && SKIPPED_BY_MARIADB.contains(&meant) => {
            Fate::Skipped
        }
        () if meant <= version => Fate::Executed(mark + digits),
        () => Fate::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lex::{LexMode, tokens};

    fn read(sql: &str, family: Family, version: u32) -> Option<String> {
        let all = tokens(sql.as_bytes(), LexMode::default()).expect("tokens");
        let text = as_executed(sql.as_bytes(), &all, family, version)?;
        assert_eq!(text.len(), sql.len(), "{sql}");
        let text = String::from_utf8(text).expect("a text");
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn servers_execute_what_is_meant_for_them() {
        for (sql, mysql, mariadb) in [
            (
                "a /*!80023 INVISIBLE */, b",
                Some("a INVISIBLE , b"),
                Some("a , b"),
            ),
            (
                "a /*!50606 STORAGE DISK */",
                Some("a STORAGE DISK"),
                Some("a STORAGE DISK"),
            ),
            ("a /*! x */", Some("a x"), Some("a x")),
            (
                "a /*M!100301 COMPRESSED */",
                Some("a"),
                Some("a COMPRESSED"),
            ),
            ("a /*!100301 x */", None, Some("a x")),
            ("a /*!80024 x */", None, Some("a")),
            ("a /*!99999 x */", None, Some("a")),
            ("a /*!50100 '*/' */ b", None, None),
            ("a /*!5010 x */", None, None),
            ("a /*!50100x */", None, None),
            ("a /*!5010000 x */", None, None),
            ("a /*M!120000 x */", Some("a"), None),
            ("a /* x */ '/*!50100 x */'", None, None),
        ] {
            // an end that is none to a server that skips the comment
            if tokens(sql.as_bytes(), LexMode::default()).is_err() {
                assert!(mysql.is_none() && mariadb.is_none(), "{sql}");
                continue;
            }
            assert_eq!(read(sql, Family::MySql, 80_023).as_deref(), mysql, "{sql}");
            assert_eq!(
                read(sql, Family::MariaDb, 100_500).as_deref(),
                mariadb,
                "{sql}"
            );
        }
    }
}
