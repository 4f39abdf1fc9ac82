//! Strings in the place of a table's name.
//!
//! The server calls such a statement a syntax error, with its values in the log. Its author may
//! have meant a protected table: with ANSI_QUOTES `"t"` is a name, without it is a text.

use super::end_query::BEGIN_QUERIES;
use super::words::is_one_of;
use crate::lex::{LiteralKind, Token, TokenKind};

/// Between these and a name nothing stands but parentheses.
const BEFORE_NAMES: [&str; 4] = ["into", "update", "join", "table"];
/// What may stand between the verb of a change and the name.
const MANNERS: [&str; 5] = [
    "low_priority",
    "high_priority",
    "delayed",
    "ignore",
    "quick",
];
/// Verbs of changes.
const CHANGES: [&str; 4] = ["insert", "replace", "update", "delete"];
/// Statements behind whose FROM accounts, files and servers stand.
const OTHERS: [&str; 3] = ["revoke", "clone", "import"];
/// Words that end a list of tables.
const BEHIND_TABLES: [&str; 14] = [
    "where", "set", "group", "order", "having", "limit", "on", "using", "values", "select",
    "union", "window", "for", "into",
];

/// Between two parentheses, or outside of all.
#[derive(Clone, Copy)]
struct Level {
    /// Queries or tables stand here, and no arguments: `TRIM('x' FROM 'y')` names none.
    reads: bool,
    /// Here is a list of tables.
    lists: bool,
}

/// Whether a string stands where a table's name belongs.
pub(super) fn string_as_name(sql: &[u8], tokens: &[Token]) -> bool {
    let is_first = |words: &[&str]| tokens.first().is_some_and(|t| is_one_of(sql, t, words));
    let (is_other, changes) = (is_first(&OTHERS), is_first(&CHANGES));
    let is = |at: usize, words: &[&str]| tokens.get(at).is_some_and(|t| is_one_of(sql, t, words));
    let behind = |at: usize, by: usize, words| at.checked_sub(by).is_some_and(|at| is(at, words));
    // not `PREPARE one FROM 'text'`, in a stored program, and not MariaDB's periods:
    // `FOR SYSTEM_TIME FROM '2026-01-01'`, `FOR PORTION OF p FROM '2026-01-01'`
    let is_from = |at: usize| {
        let names = !behind(at, 2, &["prepare", "of"]) && !behind(at, 1, &["system_time"]);
        is(at, &["from"]) && !is_other && names
    };
    let outside = Level {
        reads: true,
        lists: false,
    };
    let mut levels = vec![outside];
    // the token behind the parentheses in a row that stand here
    let mut inside = 0;
    for (i, token) in tokens.iter().enumerate() {
        let here = levels.last().copied().unwrap_or(outside);
        if token.is(b'(') {
            if i >= inside {
                // counted once for all parentheses in a row
                inside = i + tokens[i..].iter().take_while(|t| t.is(b'(')).count();
            }
            // behind a word it may be a call, whose first argument begins with a parenthesis
            let behind_word = i > 0 && tokens[i - 1].kind == TokenKind::Word;
            let begins = (inside == i + 1 || !behind_word) && is(inside, &BEGIN_QUERIES);
            let groups = i.checked_sub(1).is_some_and(|at| is(at, &["from", "join"]));
            levels.push(Level {
                reads: here.reads && groups || begins,
                lists: here.reads && groups,
            });
            continue;
        }
        if token.is(b')') {
            levels.pop();
            continue;
        }
        if is_from(i) && here.reads || is(i, &["update"]) {
            set_lists(&mut levels, true);
        } else if is(i, &BEHIND_TABLES) || token.is(b';') {
            set_lists(&mut levels, false);
        }
        if token.kind != TokenKind::Literal(LiteralKind::String) {
            continue;
        }
        let opened = tokens[..i].iter().rev().take_while(|t| t.is(b'(')).count();
        let Some(before) = i.checked_sub(opened + 1) else {
            continue;
        };
        let outer = levels.iter().rev().nth(opened).copied().unwrap_or(outside);
        let names = is(before, &BEFORE_NAMES)
            || outer.reads && is_from(before)
            || here.lists && tokens[before].is(b',') && opened == 0
            || changes && before == 0
            || changes && before < 4 && is(before, &MANNERS)
            || tokens[i - 1].is(b'.')
            || tokens.get(i + 1).is_some_and(|t| t.is(b'.'));
        if names {
            return true;
        }
    }
    false
}

fn set_lists(levels: &mut [Level], lists: bool) {
    if let Some(level) = levels.last_mut() {
        level.lists = lists;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lex::{LexMode, tokens};

    fn found(sql: &str) -> bool {
        let all = tokens(sql.as_bytes(), LexMode::default()).expect("tokens");
        string_as_name(sql.as_bytes(), &all)
    }

    #[test]
    fn strings_stand_for_names() {
        for sql in [
            "INSERT INTO 't' VALUES (1)",
            "INSERT 't' VALUES (1)",
            "INSERT LOW_PRIORITY IGNORE 't' VALUES (1)",
            "REPLACE DELAYED 't' VALUES (1)",
            "UPDATE 't' SET a = 1",
            "UPDATE LOW_PRIORITY IGNORE 't' SET a = 1",
            "UPDATE a, 't' SET a = 1",
            "DELETE 't' FROM a JOIN t",
            "DELETE QUICK FROM 't'",
            "SELECT * FROM 't'",
            "SELECT * FROM ('t')",
            "SELECT * FROM ((('t')))",
            "SELECT * FROM a, 't'",
            "SELECT * FROM (a, 't')",
            "SELECT * FROM a, (b JOIN 't')",
            "SELECT * FROM a STRAIGHT_JOIN b LEFT JOIN ('t') ON 1",
            "SELECT 1 IN (SELECT a FROM 't')",
            "SELECT 1 IN (((SELECT a FROM 't')))",
            "SELECT TRIM('a' FROM (SELECT 1 FROM 't'))",
            "WITH c AS (SELECT 1 FROM 't') SELECT 1",
            "CREATE TABLE 't' (a INT)",
            "TRUNCATE TABLE 't'",
            "SELECT 'app'.t FROM a",
            "SELECT app.'t' FROM a",
        ] {
            assert!(found(sql), "{sql}");
            assert!(found(&sql.replace('\'', "\"")), "{sql}");
        }
    }

    #[test]
    fn strings_stand_where_they_belong() {
        for sql in [
            "SELECT 'a', 'b' AS 'c', 'd' FROM t WHERE a IN ('x', 'y') ORDER BY 'z', 'w'",
            "SELECT TRIM('a' FROM 'b'), SUBSTRING('abc' FROM 2), TRIM(BOTH FROM ('b')) FROM t",
            "SELECT TRIM(('a') FROM 'b'), TRIM((SELECT 'a') FROM 'b'), TRIM(((1)) FROM ('b'))",
            "CREATE PROCEDURE p() BEGIN DELETE FROM t; SIGNAL SQLSTATE '45000', 'x'; END",
            "SELECT INSERT('abc', 1, 2, 'x'), REPLACE('a', 'b', 'c')",
            "SELECT a FROM t GROUP BY 'x', 'y' HAVING a > 'z' LIMIT 3",
            "SELECT a FROM t JOIN u ON a = 'x' AND b IN ('y', 'z')",
            "SELECT a FROM t WHERE a = 'x' UNION SELECT 'a', 'b'",
            "INSERT INTO t VALUES ('a', 'b'), ('c', 'd') ON DUPLICATE KEY UPDATE a = 'x', b = 'y'",
            "INSERT INTO t SET a = 'x', b = 'y'",
            "UPDATE t SET a = 'x', b = 'y' WHERE c = 'z'",
            "UPDATE t, u SET t.a = 'x', u.a = 'y'",
            "SELECT a FROM t FOR UPDATE",
            "SELECT 'x' INTO OUTFILE 'file'",
            "LOAD DATA LOCAL INFILE 'file' INTO TABLE t FIELDS TERMINATED BY ',' (a, @b) SET c = 'x'",
            "CREATE TABLE t (a VARCHAR(3) DEFAULT 'x', b ENUM('y', 'z')) COMMENT = 'c'",
            "CREATE PROCEDURE p() BEGIN PREPARE s FROM 'SELECT 1'; EXECUTE s; END",
            "REVOKE SELECT ON a.* FROM 'u'@'h', 'v'@'h'",
            "CLONE INSTANCE FROM 'u'@'h':3306 IDENTIFIED BY 'p'",
            "IMPORT TABLE FROM '/tmp/t.sdi'",
            "SELECT * FROM t FOR SYSTEM_TIME FROM '2026-01-01' TO '2026-02-01' WHERE a = 'x'",
            "DELETE FROM t FOR PORTION OF p FROM '2026-01-01' TO '2026-02-01'",
            "SELECT EXTRACT(YEAR FROM '2026-01-01') FROM t, JSON_TABLE('[1]', '$' COLUMNS (a INT PATH '$')) j",
            "SHOW FULL COLUMNS FROM t LIKE 'a%'",
            "SHOW TABLES FROM app WHERE Tables_in_app IN ('x', 'y')",
        ] {
            assert!(!found(sql), "{sql}");
        }
    }

    #[test]
    fn many_parentheses_end_soon() {
        let many = "(".repeat(1 << 20);
        let begin = std::time::Instant::now();
        assert!(!found(&format!("SELECT {many}'a'")));
        assert!(found(&format!("SELECT 1 FROM {many}'a'")));
        assert!(found(&format!("SELECT {many}SELECT 1 FROM 'a'")));
        assert!(begin.elapsed() < std::time::Duration::from_secs(20));
    }
}
