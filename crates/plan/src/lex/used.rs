//! What a text asks the server to do with the session and the client: `USE name` and
//! `LOAD DATA LOCAL INFILE 'file'`. A server that does so unasked lies.

use onionskin_value::{Charset, Input};

use super::{LexMode, LiteralKind, Token, TokenKind, tokens};
use crate::literal::decode;
use crate::planner::identifier;
use crate::statement::{flattened, is_one_of};

/// What the statements of a text ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// The databases behind USE.
    pub databases: Vec<String>,
    /// The databases that are dropped: if the session's is among them, it has none.
    pub dropped: Vec<String>,
    /// The client's files behind LOCAL INFILE.
    pub files: Vec<Vec<u8>>,
}

/// Looks at all statements of a text in UTF-8, those in executable comments too. Of a text that
/// cannot be cut into words nothing is known, so it asks for nothing.
pub fn used(sql: &[u8], mode: LexMode) -> Used {
    let mut used = Used::default();
    let all = tokens(sql, mode).ok();
    let Some(all) = all.and_then(|outer| flattened(sql, &outer, mode)) else {
        return used;
    };
    let begins = |at: usize| at == 0 || all[at - 1].is(b';');
    for (at, token) in all.iter().enumerate() {
        if token.kind != TokenKind::Word || !begins(at) {
            continue;
        }
        if token.is_word(sql, "use") {
            let name = all.get(at + 1).and_then(|t| identifier(sql, t));
            used.databases.extend(name);
        }
        if token.is_word(sql, "load") {
            used.files.extend(local_file(sql, mode, &all[at..]));
        }
        used.dropped.extend(dropped(sql, &all[at..]));
    }
    used
}

/// The database that a statement drops: DROP DATABASE, CREATE OR REPLACE DATABASE.
fn dropped(sql: &[u8], all: &[Token]) -> Option<String> {
    let is = |at: usize, words: &[&str]| all.get(at).is_some_and(|t| is_one_of(sql, t, words));
    let database = match () {
        () if is(0, &["drop"]) => 1,
        () if is(0, &["create"]) && is(1, &["or"]) && is(2, &["replace"]) => 3,
        () => return None,
    };
    if !is(database, &["database", "schema"]) {
        return None;
    }
    let name = match is(database + 1, &["if"]) && is(database + 2, &["exists"]) {
        true => database + 3,
        false => database + 1,
    };
    identifier(sql, all.get(name)?)
}

/// The file of a statement that begins with LOAD.
fn local_file(sql: &[u8], mode: LexMode, all: &[Token]) -> Option<Vec<u8>> {
    let of_one = all.iter().take_while(|t| !t.is(b';'));
    let mut behind = of_one.skip_while(|t| !t.is_word(sql, "local")).skip(1);
    if !behind.next()?.is_word(sql, "infile") {
        return None;
    }
    let name = behind.next()?;
    let kind = LiteralKind::String;
    if name.kind != TokenKind::Literal(kind) {
        return None;
    }
    let mut scratch = Vec::new();
    let text = name.text(sql);
    match decode(text, kind, false, mode, Charset::Utf8mb4, &mut scratch) {
        Some(Input::Text { bytes, .. }) => Some(bytes.to_vec()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_are_those_of_statements() {
        let used = |sql: &str| used(sql.as_bytes(), LexMode::default());
        for (sql, names) in [
            ("USE app", &["app"] as &[&str]),
            ("/* c */ use `a b`;", &["a b"]),
            ("DO 1; USE app; SELECT 1; USE other", &["app", "other"]),
            ("/*!40000 USE app */", &["app"]),
            ("SELECT 'USE app'", &[]),
            ("SELECT * FROM t USE INDEX (i)", &[]),
            ("INSERT INTO t VALUES ('x; USE app')", &[]),
        ] {
            assert_eq!(used(sql).databases, names, "{sql}");
            assert!(used(sql).dropped.is_empty(), "{sql}");
        }
        for sql in [
            "DROP DATABASE app",
            "drop schema if exists app",
            "CREATE OR REPLACE DATABASE app",
        ] {
            assert_eq!(used(sql).dropped, ["app"], "{sql}");
        }
        for sql in ["DROP TABLE `database`", "CREATE DATABASE app"] {
            assert!(used(sql).dropped.is_empty(), "{sql}");
        }
    }

    #[test]
    fn files_are_those_of_load() {
        let files = |sql: &str| used(sql.as_bytes(), LexMode::default()).files;
        for (sql, file) in [
            ("LOAD DATA LOCAL INFILE 'a.csv' INTO TABLE t", Some("a.csv")),
            (
                "load xml concurrent local infile 'it''s' replace into table t",
                Some("it's"),
            ),
            (
                "DO 1; LOAD DATA LOCAL INFILE \"b\" INTO TABLE t (a, b)",
                Some("b"),
            ),
            ("LOAD DATA INFILE 'a.csv' INTO TABLE t", None),
            ("SELECT 'LOAD DATA LOCAL INFILE ''a'''", None),
            (
                "LOAD DATA INFILE 'x' INTO TABLE t; DO local infile 'y'",
                None,
            ),
        ] {
            let expected: Vec<&[u8]> = file.iter().map(|f| f.as_bytes()).collect();
            assert_eq!(files(sql), expected, "{sql}");
        }
    }
}
