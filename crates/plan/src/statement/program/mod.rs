//! Stored programs near protected tables: CREATE TRIGGER, PROCEDURE, FUNCTION, EVENT.
//!
//! A program that goes through goes as it is written. So it may name what the server has: plain
//! columns. The rule is one of words, as the one for "near" is: no identifier of the text is the
//! name of a protected column of a table that the text may name. So whatever a name means to the
//! server, it is no protected column, and no constant is meant for one.
//!
//! What reads or writes columns without naming them is what the words do not show: `*`, INSERT
//! without a list of columns, NATURAL JOIN, variables of a row's type, SHOW, definitions, texts
//! that are prepared. So the program is read as well, statement by statement: `head.rs` reads to
//! the body, `body.rs` the blocks, `part.rs` what stands between semicolons, `reader.rs` is the
//! place in the text. What none of them knows is refused.
//!
//! `names.rs` says what names mean: those behind NEW and OLD are the trigger's table's, and those
//! in an INSERT's list are its target's.

mod body;
mod head;
mod names;
mod part;
mod reader;

use std::sync::Arc;

use onionskin_schema::Table;

use self::head::Kind;
use self::reader::Reader;
use crate::errors::NotUnderstood;
use crate::lex::{LexMode, Token, tokens};
use crate::planner::{Planned, Request};

/// Whether a text defines a stored program.
pub(super) fn is_program(sql: &[u8], tokens: &[Token]) -> bool {
    let mut reader = Reader::new(sql, tokens);
    matches!(head::kind(&mut reader), Ok(Some(_)))
}

/// Whether a text is one stored program that is read to its end: its semicolons belong to it.
pub fn reads_program(sql: &[u8], mode: LexMode) -> bool {
    let Ok(tokens) = tokens(sql, mode) else {
        return false;
    };
    read(&mut Reader::new(sql, &tokens)).is_ok()
}

/// Reads a program to its end.
fn read(reader: &mut Reader) -> Planned<Kind> {
    let kind = head::head(reader)?;
    body::statement(reader, 0)?;
    reader.takes_sign(b';');
    match reader.is_at_end() {
        true => Ok(kind),
        false => NotUnderstood::TextBehind("a stored program").refuse(),
    }
}

/// Refuses a program that does not stay with plain columns.
pub(super) fn check(request: &Request, tokens: &[Token], near: &[Arc<Table>]) -> Planned<()> {
    let mut reader = Reader::new(request.sql, tokens);
    let table = match read(&mut reader)? {
        Kind::Trigger { table } => Some(table),
        Kind::Other => None,
    };
    names::check(request, &reader, table, near)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_read(sql: &str) -> bool {
        reads_program(sql.as_bytes(), LexMode::default())
    }

    #[test]
    fn programs_are_told_by_their_first_words() {
        let is = |sql: &str| {
            let tokens = tokens(sql.as_bytes(), LexMode::default()).unwrap();
            is_program(sql.as_bytes(), &tokens)
        };
        for sql in [
            "CREATE TRIGGER t",
            "create definer = root@localhost procedure p",
            "CREATE OR REPLACE DEFINER=`a`@'%' FUNCTION f",
            "CREATE DEFINER = CURRENT_ROLE EVENT e",
        ] {
            assert!(is(sql), "{sql}");
        }
        for sql in [
            "CREATE INDEX trigger_of ON t (a)",
            "CREATE TABLE event (a INT)",
            "CREATE VIEW procedure AS SELECT 1",
            "DROP TRIGGER t",
            "CREATE",
        ] {
            assert!(!is(sql), "{sql}");
        }
    }

    #[test]
    fn blocks_are_read_to_a_depth() {
        let deep = |levels: usize| {
            let (begin, end) = ("BEGIN ".repeat(levels), "END; ".repeat(levels - 1));
            format!("CREATE PROCEDURE p() {begin}{end}END")
        };
        assert!(is_read(&deep(60)));
        assert!(!is_read(&deep(70)));
        assert!(!is_read(&deep(100_000)));
    }

    #[test]
    fn a_star_multiplies_or_counts() {
        for sql in [
            "SELECT a * b",
            "SELECT 2 * (3), 'x' * @y, f(a) * -1, a * CASE b WHEN 1 THEN 2 END",
            "SELECT COUNT(*), COUNT( * )",
            "SET @a = NEW.a * f(1)",
        ] {
            let body = match sql.starts_with("SET") {
                true => format!("CREATE TRIGGER t AFTER INSERT ON t FOR EACH ROW {sql}"),
                false => format!("CREATE PROCEDURE p() {sql}"),
            };
            assert!(is_read(&body), "{sql}");
        }
        for sql in [
            "SELECT * FROM t",
            "SELECT *",
            "SELECT DISTINCT * FROM t",
            "SELECT SQL_NO_CACHE * FROM t",
            "SELECT a, * FROM t",
            "SELECT t . * FROM t",
            "SELECT * , a FROM t",
            "SELECT a FROM (SELECT * FROM t) x",
            "SELECT * UNION SELECT 1",
            "SELECT * EXCEPT SELECT 1",
            "SELECT * LIMIT 1",
            "SELECT * INTO @a FROM t",
            "BEGIN IF EXISTS (SELECT *) THEN SELECT 1; END IF; END",
        ] {
            assert!(!is_read(&format!("CREATE PROCEDURE p() {sql}")), "{sql}");
        }
    }
}
