//! Whether a statement only reads, for sessions of `listen_read`.
//!
//! The server refuses writes there by itself: the session is READ ONLY. But an account may set it
//! back, and one with privileges on the whole server writes past `read_only`, too. So a statement
//! has to be one of those that are known here. These cannot write in a session that is READ ONLY,
//! and cannot end that: whatever a query calls, the server locks its tables before it begins, and
//! refuses if one is to be written to. A procedure runs statement by statement, and may set the
//! session back first; so `CALL` is not among them.
//!
//! Values do not count: the answer holds for all statements of a shape.

use crate::lex::{LexMode, Token, TokenKind, tokens, unwrapped};

/// Queries. In a session that is READ ONLY their locks, calls and files are the server's affair.
const QUERIES: [&str; 4] = ["select", "with", "table", "values"];
/// Statements that may have anything behind their first word.
const HARMLESS: [&str; 15] = [
    "show",
    "desc",
    "describe",
    "explain",
    "help",
    "use",
    "do",
    "commit",
    "rollback",
    "savepoint",
    "release",
    "checksum",
    "prepare",
    "deallocate",
    "kill",
];
/// Variables that a session may not set, beside those of [`PREFIXES`].
const VARIABLES: [&str; 3] = ["tx_read_only", "transaction_read_only", "server_id"];
/// A GTID of one's own makes a transaction without a statement; a Galera node has to wait.
const PREFIXES: [&str; 2] = ["gtid_", "wsrep_"];
/// Words before a variable that make it another one than the session's.
const SCOPES: [&str; 4] = ["global", "persist", "persist_only", "password"];

/// `Err`: it is not known to, and about what that is. Never a value.
pub fn only_reads(sql: &[u8], mode: LexMode) -> Result<(), &'static str> {
    let inner = unwrapped(sql, mode);
    let sql = inner.as_deref().unwrap_or(sql);
    let Ok(mut all) = tokens(sql, mode) else {
        return Err("a text that cannot be read");
    };
    while all.last().is_some_and(|token| token.is(b';')) {
        all.pop();
    }
    judge(sql, &all)
}

fn judge(sql: &[u8], all: &[Token]) -> Result<(), &'static str> {
    let blanks = all.iter().take_while(|token| token.is(b'(')).count();
    let all = all.get(blanks..).unwrap_or_default();
    let Some(first) = all.first() else {
        return Ok(());
    };
    let is = |at: usize, words: &[&str]| {
        let is_it = |token: &Token| words.iter().any(|word| token.is_word(sql, word));
        all.get(at).is_some_and(is_it)
    };
    let has = |word: &str| all.iter().any(|token| token.is_word(sql, word));
    let mut comments = all.iter().filter(|t| t.kind == TokenKind::Executable);
    if let Some(comment) = comments.next() {
        // of a query, some of its words; of a transaction, how it begins
        let text = comment.text(sql).to_ascii_lowercase();
        let holds = |bad: &[u8]| memchr::memmem::find(&text, bad).is_some();
        let fits = is(0, &QUERIES) || is(0, &["show", "start"]);
        if !fits || comments.next().is_some() || holds(b";") || holds(b"write") {
            return Err("an executable comment");
        }
    }
    let ok = |is_so: bool, about| if is_so { Ok(()) } else { Err(about) };
    if blanks > 0 {
        return ok(is(0, &QUERIES), "a statement in parentheses");
    }
    if is(0, &["with"]) {
        return ok(with_reads(sql, all), "WITH, and a change behind it");
    }
    if is(0, &QUERIES) || is(0, &HARMLESS) {
        return Ok(());
    }
    if is(0, &["execute"]) {
        // what is executed is looked at by itself
        return Ok(());
    }
    if is(0, &["set"]) {
        return set(sql, all);
    }
    if is(0, &["begin"]) {
        return ok(
            all.len() == 1 || all.len() == 2 && is(1, &["work"]),
            "BEGIN",
        );
    }
    if is(0, &["start"]) {
        return ok(is(1, &["transaction"]) && !has("write"), "START");
    }
    if is(0, &["lock"]) {
        return ok(is(1, &["table", "tables"]) && !has("write"), "LOCK");
    }
    if is(0, &["unlock"]) {
        return ok(is(1, &["table", "tables"]), "UNLOCK");
    }
    if is(0, &["drop"]) {
        return ok(is(1, &["prepare"]), "DROP");
    }
    if is(0, &["get"]) {
        return Ok(());
    }
    if is(0, &["analyze"]) {
        // MariaDB's runs what is behind it
        let format = is(1, &["format"]) && all.get(2).is_some_and(|t| t.is(b'='));
        let at = if format { 4 } else { 1 };
        return ok(is(at, &["select", "with"]), "ANALYZE");
    }
    Err(about(sql, first))
}

/// Whether a query stands behind the parts of a WITH.
fn with_reads(sql: &[u8], all: &[Token]) -> bool {
    const CHANGES: [&str; 4] = ["insert", "replace", "update", "delete"];
    let mut depth = 0_usize;
    for token in all {
        if token.is(b'(') {
            depth += 1;
        } else if token.is(b')') {
            depth = depth.saturating_sub(1);
        } else if depth == 0 {
            let is_one = |words: &[&str]| words.iter().any(|word| token.is_word(sql, word));
            if is_one(&QUERIES[..1]) || is_one(&QUERIES[2..]) {
                return true;
            }
            if is_one(&CHANGES) {
                return false;
            }
        }
    }
    // a query in parentheses
    true
}

/// The statement's name, if it is a usual one.
fn about(sql: &[u8], first: &Token) -> &'static str {
    const NAMES: [&str; 24] = [
        "INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "CREATE", "ALTER", "TRUNCATE",
        "RENAME", "GRANT", "REVOKE", "OPTIMIZE", "REPAIR", "FLUSH", "RESET", "XA", "HANDLER",
        "IMPORT", "INSTALL", "BINLOG", "CHANGE", "STOP", "PURGE",
    ];
    let is_it = |name: &&&str| first.is_word(sql, name);
    NAMES
        .iter()
        .find(is_it)
        .copied()
        .unwrap_or("another statement")
}

/// `SET`, and MariaDB's `SET STATEMENT … FOR` another statement.
fn set(sql: &[u8], all: &[Token]) -> Result<(), &'static str> {
    const READ_WRITE: &str = "SET, of what makes the session one that writes";
    let rest = all.get(1..).unwrap_or_default();
    let (assigned, behind) = match rest.first() {
        Some(token) if token.is_word(sql, "statement") => {
            let Some(at) = rest.iter().position(|token| token.is_word(sql, "for")) else {
                return Err("SET STATEMENT");
            };
            (&rest[1..at], Some(&rest[at + 1..]))
        }
        _ => (rest, None),
    };
    let mut depth = 0_usize;
    let mut is_left = true;
    for token in assigned {
        match token.kind {
            TokenKind::Punct(b'(') => depth += 1,
            TokenKind::Punct(b')') => depth = depth.saturating_sub(1),
            TokenKind::Punct(b',') if depth == 0 => is_left = true,
            TokenKind::Punct(b'=' | b':') if depth == 0 => is_left = false,
            TokenKind::Word | TokenKind::Quoted | TokenKind::Variable
                if is_left && !may_be_set(token.text(sql)) =>
            {
                return Err(READ_WRITE);
            }
            _ => {}
        }
    }
    match behind {
        None => Ok(()),
        // it is a statement of its own, and the first words were looked at
        Some(behind) => judge(sql, behind),
    }
}

/// Whether a word may stand on the left side of an assignment, or in a SET without one.
fn may_be_set(word: &[u8]) -> bool {
    let text = String::from_utf8_lossy(word).to_ascii_lowercase();
    // of `@@global.x`, `a`.`b` and their like each name counts
    let mut names = text.split(['@', '.', '`', '"']).map(str::trim);
    names.all(|name| {
        name != "write"
            && !SCOPES.contains(&name)
            && !VARIABLES.contains(&name)
            && !PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(sql: &str) -> bool {
        only_reads(sql.as_bytes(), LexMode::default()).is_ok()
    }

    #[test]
    fn statements_that_read_are_known() {
        for sql in [
            "SELECT 1",
            " select * from a where b = 'x' for update",
            "(SELECT 1) UNION (SELECT 2)",
            "WITH x AS (SELECT 1) SELECT * FROM x",
            "TABLE a",
            "VALUES ROW(1)",
            "SHOW TABLES;",
            "EXPLAIN SELECT 1",
            "ANALYZE SELECT 1",
            "ANALYZE FORMAT=JSON SELECT 1",
            "BEGIN",
            "BEGIN WORK",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
            "START TRANSACTION /*!40100 WITH CONSISTENT SNAPSHOT */",
            "SELECT /*!40001 SQL_NO_CACHE */ * FROM t",
            "COMMIT",
            "ROLLBACK TO a",
            "SET NAMES utf8mb4",
            "SET SESSION TRANSACTION READ ONLY",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET autocommit = 1, sql_mode = @@GLOBAL.sql_mode",
            "SET @a = (SELECT 1), @b := 2",
            "/*!40101 SET NAMES utf8 */",
            "SET STATEMENT max_statement_time = 1 FOR SELECT 1",
            "PREPARE s FROM 'SELECT 1'",
            "EXECUTE s USING @a",
            "DROP PREPARE s",
            "LOCK TABLES a READ",
            "",
        ] {
            assert!(reads(sql), "{sql}");
        }
    }

    #[test]
    fn whatever_else_there_is_does_not() {
        for sql in [
            "INSERT INTO a VALUES (1)",
            "CALL p()",
            "BEGIN NOT ATOMIC INSERT INTO a VALUES (1); END",
            "START TRANSACTION READ WRITE",
            "START SLAVE",
            "START /*! TRANSACTION READ WRITE */",
            "START TRANSACTION /*! READ WRITE */",
            "SELECT 1 /*! ; DROP TABLE a */",
            "SET SESSION TRANSACTION READ WRITE",
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE",
            "/*!40101 SET SESSION TRANSACTION READ WRITE */",
            "SET /*! SESSION */ TRANSACTION READ WRITE",
            "SET tx_read_only = 0",
            "SET @@session.transaction_read_only = OFF",
            "SET @@`transaction_read_only` = 0",
            "SET sql_mode = '', SESSION `tx_read_only` = 0",
            "SET @a = 1, @@local.tx_read_only := 0",
            "SET @a = (SELECT 1, 2), transaction_read_only = 0",
            "SET GLOBAL read_only = 0",
            "SET @@global.read_only = 0",
            "SET PERSIST read_only = 0",
            "SET @@persist_only.read_only = 0",
            "SET PASSWORD = 'x'",
            "SET gtid_next = 'x'",
            "SET wsrep_sync_wait = 0",
            "SET STATEMENT tx_read_only = 0 FOR INSERT INTO a VALUES (1)",
            "SET STATEMENT max_statement_time = 1 FOR INSERT INTO a VALUES (1)",
            "SET STATEMENT tx_read_only = 0 FOR SELECT 1",
            "ANALYZE TABLE a",
            "ANALYZE UPDATE a SET b = 1",
            "ANALYZE FORMAT=JSON DELETE FROM a",
            "LOCK TABLES a WRITE",
            "LOCK INSTANCE FOR BACKUP",
            "DROP TABLE a",
            "CREATE TEMPORARY TABLE a (b INT)",
            "(INSERT INTO a VALUES (1))",
            "XA START 'a'",
            "WITH x AS (SELECT 1) DELETE FROM a",
            "WITH RECURSIVE x (b) AS (SELECT 1), y AS (SELECT 2) UPDATE a SET b = 1",
            "FLUSH TABLES",
            "LOAD DATA INFILE 'a' INTO TABLE a",
            "'not a statement",
        ] {
            assert!(!reads(sql), "{sql}");
        }
    }
}
