//! Definitions and new names of tables in places where no rule reads them: in executable comments,
//! stored programs and texts for PREPARE.
//!
//! The policy says which columns of new tables are to be protected. A definition that is not read
//! would make them in plaintext. So it is refused if the policy has something to say of any name
//! that stands in it.

use onionskin_schema::TableName;

use crate::ddl::{alters_table, creates_table, target};
use crate::errors;
use crate::lex::{LexError, LexMode, Token, TokenKind};
use crate::plan::Protects;
use crate::planner::{Planned, Request, refuse};
use crate::request::COLLATION;

/// Refuses a statement that goes to the server as it is, if it may make or change a table that the
/// policy concerns. `names` are all that its identifiers may mean.
pub(super) fn check(request: &Request, tokens: &[Token], names: &[TableName]) -> Planned<()> {
    if request.policy.is_empty() || was_read(request.sql, tokens) {
        return Ok(());
    }
    if !concern(request, names) || !defines_table(request.sql, tokens, request.settings.lex) {
        return Ok(());
    }
    if tokens.iter().any(|t| t.kind == TokenKind::Executable) {
        return refuse(&errors::EXECUTABLE_COMMENT, "");
    }
    refuse(
        &errors::STATEMENT,
        "a table's definition inside of another statement, by a name that [protect] matches",
    )
}

/// The table that a definition would protect, were it to succeed. `is_near`: the statement names a
/// protected table, which it may take columns from.
pub(super) fn protects(request: &Request, tokens: &[Token], is_near: bool) -> Option<Protects> {
    let sql = request.sql;
    let first = tokens.first()?;
    let creates = first.is_word(sql, "create") && creates_table(sql, tokens);
    let alters = first.is_word(sql, "alter") && alters_table(sql, tokens);
    if !creates && !alters {
        return None;
    }
    let is_clause =
        |pair: &[Token]| pair[0].is_word(sql, "encrypted") && pair[1].is_word(sql, "for");
    let takes = creates && is_near;
    if !takes && !tokens.windows(2).any(is_clause) {
        return None;
    }
    let (database, name) = target(request, tokens)?;
    Some(Protects {
        table: TableName::new(database?, name),
        temporary: creates && tokens.iter().take(4).any(|t| t.is_word(sql, "temporary")),
    })
}

/// Whether the policy has something to say of one of these.
pub(super) fn concern(request: &Request, names: &[TableName]) -> bool {
    names
        .iter()
        .filter(|table| !table.name.starts_with(COLLATION))
        .any(|table| request.policy.concerns(&table.database, &table.name))
}

/// Whether the rules for definitions have read all parts of the statement that can say which table
/// it defines.
fn was_read(sql: &[u8], tokens: &[Token]) -> bool {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|t| t.is_word(sql, word));
    let head = tokens.iter().take_while(|t| !t.is(b'('));
    let whole = match (is(0, "create"), is(0, "alter")) {
        (true, _) => creates_table(sql, tokens),
        (_, true) => alters_table(sql, tokens),
        // `SHOW CREATE TABLE` only asks, and of RENAME TABLE, `renames.rs` reads all
        _ => is(0, "show") || is(0, "rename"),
    };
    whole && head.into_iter().all(|t| t.kind != TokenKind::Executable)
}

/// Whether one of these words stands anywhere in a text, executable comments taken as text.
pub(super) fn holds_word(request: &Request, tokens: &[Token], wanted: &[&str]) -> bool {
    let mut words = Vec::new();
    let is = |word: &[u8], what: &&str| word.eq_ignore_ascii_case(what.as_bytes());
    flattened(request.sql, tokens, request.settings.lex, 0, &mut words).is_err()
        || words.iter().any(|word| wanted.iter().any(|w| is(word, w)))
}

/// Whether CREATE TABLE, ALTER TABLE or RENAME TABLE stands anywhere in a text. Executable comments
/// count as text.
pub(super) fn defines_table(sql: &[u8], tokens: &[Token], mode: LexMode) -> bool {
    let mut words = Vec::new();
    // what cannot be cut into words may hold these two as well
    flattened(sql, tokens, mode, 0, &mut words).is_err() || in_words(&words)
}

fn in_words(words: &[&[u8]]) -> bool {
    const BETWEEN: [&str; 6] = ["or", "replace", "temporary", "ignore", "online", "offline"];
    let is = |word: &[u8], what: &str| word.eq_ignore_ascii_case(what.as_bytes());
    // those that begin a definition are looked at first: whatever stands behind one is passed once
    let begins = |word: &[u8]| ["create", "alter", "rename"].iter().any(|w| is(word, w));
    let mut begin = (0..words.len()).filter(|at| begins(words[*at]));
    begin.any(|at| {
        let mut behind = words[at + 1..].iter();
        let behind = behind.find(|word| !BETWEEN.iter().any(|between| is(word, between)));
        behind
            .is_some_and(|word| is(word, "table") || is(words[at], "rename") && is(word, "tables"))
    })
}

/// The words of a text in their order, with those of executable comments in their places. `depth`
/// counts comments inside of comments, which the lexer does not read.
fn flattened<'a>(
    sql: &'a [u8],
    tokens: &[Token],
    mode: LexMode,
    depth: usize,
    words: &mut Vec<&'a [u8]>,
) -> Result<(), LexError> {
    for token in tokens {
        match token.kind {
            TokenKind::Word => words.push(token.text(sql)),
            TokenKind::Executable if depth > 0 => return Err(LexError::Ambiguous),
            TokenKind::Executable => {
                let (body, version) = crate::lex::executable(token.text(sql));
                let inner = &body[version..];
                flattened(inner, &crate::lex::tokens(inner, mode)?, mode, 1, words)?;
            }
            _ => words.push(b""),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_anywhere() {
        let mode = LexMode::default();
        let defines = |sql: &str| {
            let tokens = crate::lex::tokens(sql.as_bytes(), mode).unwrap();
            defines_table(sql.as_bytes(), &tokens, mode)
        };
        for sql in [
            "CREATE TABLE t (a INT)",
            "create or replace temporary table t (a int)",
            "ALTER IGNORE TABLE t ADD b INT",
            "/*!50000 CREATE TABLE t (a INT) */",
            "CREATE /*!32302 TEMPORARY */ TABLE t (a INT)",
            "/*!50000 CREATE */ /*M!100100 TABLE */ t (a INT)",
            "CREATE PROCEDURE p() BEGIN SELECT 1; CREATE TABLE t (a INT); END",
            "SET STATEMENT max_statement_time = 1 FOR RENAME TABLE s TO t",
            "RENAME /*!50000 TABLES */ s TO t",
        ] {
            assert!(defines(sql), "{sql}");
        }
        for sql in [
            "CREATE PROCEDURE p() BEGIN TRUNCATE TABLE t; END",
            "DROP TABLE t",
            "CREATE INDEX i ON `table` (a)",
            "SHOW CREATE PROCEDURE p",
            "/*!40000 SELECT */ 1",
        ] {
            assert!(!defines(sql), "{sql}");
        }
    }
}
