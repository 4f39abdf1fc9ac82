//! `SET @@x = …`: a change of a setting that MariaDB does not tell of.
//!
//! The proxy knows a session's `sql_mode`, character sets and time zone from the server's session
//! tracking. MariaDB (10.11) reports changes by `SET x`, `SET SESSION x` and `SET @@session.x`, and
//! is silent about `SET @@x`, which does the same. So the third form is sent in the place of the
//! last: in statements, and in the bodies of programs when they are made.

use std::ops::Range;

use onionskin_value::Family;

use crate::errors;
use crate::errors::Refusal;
use crate::lex::{self, LexMode, Token, TokenKind};
use crate::plan::Action;
use crate::planner::{Planned, Planner, Request, TextBuilder, refuse};

/// The statement with `@@session.x` for `@@x`, if it sets such a variable.
pub(super) fn with_scope(request: &Request, tokens: &[Token]) -> Planned<Option<Action>> {
    const VERBS: [&str; 4] = ["set", "create", "alter", "begin"];
    let sql = request.sql;
    let starts = |w: &&str| tokens.first().is_some_and(|t| t.is_word(sql, w));
    let hidden = tokens
        .first()
        .is_some_and(|t| t.kind == TokenKind::Executable);
    if request.settings.family != Family::MariaDb || !(hidden || VERBS.iter().any(starts)) {
        return Ok(None);
    }
    let in_comment = |t: &Token| t.kind == TokenKind::Executable && sets_in_text(t.text(sql));
    if tokens.iter().any(in_comment) {
        return refuse(&errors::TRACKING, "SET @@… in a comment");
    }
    let places = places(sql, tokens);
    if places.is_empty() {
        return Ok(None);
    }
    let planner = Planner::new(request, tokens.to_vec(), Vec::new())?;
    let mut out = TextBuilder::default();
    let mut at = 0;
    for place in places {
        planner.copy(at..place.start, &mut out, 0);
        out.sql(b"@@session.");
        out.sql(&sql[place.start + 2..place.end]);
        at = place.end;
    }
    planner.copy(at..sql.len(), &mut out, 0);
    Ok(Some(Action::Server {
        text: out.finish(),
        result: None,
    }))
}

/// The same for a text that is not planned, a program's or several statements: what to send in its
/// place, if anything. MariaDB only.
pub fn scoped(sql: &[u8], mode: LexMode) -> Result<Option<Vec<u8>>, Refusal> {
    let hidden = |about: &str| Err(Refusal::new(&errors::TRACKING, about.to_owned()));
    let Ok(tokens) = lex::tokens(sql, mode) else {
        return match sets_in_text(sql) {
            true => hidden("SET @@… in a text that is not understood"),
            false => Ok(None),
        };
    };
    let in_comment = |t: &Token| t.kind == TokenKind::Executable && sets_in_text(t.text(sql));
    if tokens.iter().any(in_comment) {
        return hidden("SET @@… in a comment");
    }
    let places = places(sql, &tokens);
    if places.is_empty() {
        return Ok(None);
    }
    let mut text = Vec::with_capacity(sql.len() + 16);
    let mut at = 0;
    for place in places {
        text.extend_from_slice(&sql[at..place.start]);
        text.extend_from_slice(b"@@session.");
        text.extend_from_slice(&sql[place.start + 2..place.end]);
        at = place.end;
    }
    text.extend_from_slice(&sql[at..]);
    Ok(Some(text))
}

/// The places of variables `@@x` without a scope that are assigned.
pub(super) fn places(sql: &[u8], tokens: &[Token]) -> Vec<Range<usize>> {
    let assigned = |i: usize| {
        let next = |n: usize, sign: u8| tokens.get(i + n).is_some_and(|t| t.is(sign));
        let target = i
            .checked_sub(1)
            .is_some_and(|before| tokens[before].is(b',') || tokens[before].is_word(sql, "set"));
        target && (next(1, b'=') || (next(1, b':') && next(2, b'=')))
    };
    let bare = |(i, token): (usize, &Token)| {
        let name = token.text(sql).strip_prefix(b"@@")?;
        let scoped = ["session.", "global.", "local."].iter().any(|scope| {
            name.get(..scope.len())
                .is_some_and(|n| n.eq_ignore_ascii_case(scope.as_bytes()))
        });
        // without a scope these are of the next transaction only
        let transaction = [
            "transaction_isolation",
            "transaction_read_only",
            "tx_isolation",
            "tx_read_only",
        ]
        .iter()
        .any(|variable| name.eq_ignore_ascii_case(variable.as_bytes()));
        let bare = token.kind == TokenKind::Variable && !scoped && !transaction && assigned(i);
        bare.then_some(token.start..token.end)
    };
    tokens.iter().enumerate().filter_map(bare).collect()
}

/// What mariadb-dump (11.8) sets in a comment. The server is asked for it when it matters.
const UNTRACKED: &[u8] = b"max_statement_time";

/// Whether a text that only the server reads may assign `@@x`, and that is something to know.
fn sets_in_text(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = memchr::memmem::find(rest, b"@@") {
        rest = &rest[at + 2..];
        let name = rest
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'`'))
            .count();
        let behind = rest[name..].trim_ascii_start();
        let sets = behind.starts_with(b"=") || behind.starts_with(b":=");
        if sets && !rest[..name].eq_ignore_ascii_case(UNTRACKED) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lex::LexMode;

    #[test]
    fn only_assignments_without_a_scope_count() {
        let count = |sql: &str| {
            let tokens = crate::lex::tokens(sql.as_bytes(), LexMode::default()).unwrap();
            places(sql.as_bytes(), &tokens).len()
        };
        assert_eq!(count("SET @@sql_mode = 'x', @@time_zone := @y"), 2);
        assert_eq!(count("SET @@`sql_mode`='x'"), 1);
        assert_eq!(count("SET @@SESSION.sql_mode = 'x', @@global.a = 1"), 0);
        assert_eq!(count("SET @a = @@sql_mode, sql_mode = @@sql_mode"), 0);
        let sent = |sql: &str| scoped(sql.as_bytes(), LexMode::default());
        assert_eq!(
            sent("CREATE PROCEDURE p() BEGIN SET @@time_zone = 'x'; END").unwrap(),
            Some(b"CREATE PROCEDURE p() BEGIN SET @@session.time_zone = 'x'; END".to_vec())
        );
        assert_eq!(sent("IF @@a = 1 THEN SET b = 2; END IF").unwrap(), None);
        assert!(sent("BEGIN NOT ATOMIC /*! SET @@a = 1; */ END").is_err());
        assert!(sent("SET @@a = 'x").is_err());
        assert!(sets_in_text(b"/*!40101 SET @@sql_mode = 'x' */"));
        let dump = b"/*M!100100 SET @@MAX_STATEMENT_TIME=0.000000 */";
        assert!(!sets_in_text(dump));
        assert!(sets_in_text(
            b"/*M!100100 SET @@MAX_STATEMENT_TIME=0, @@sql_mode='' */"
        ));
        assert!(!sets_in_text(
            b"/*!40101 SET @a=@@sql_mode, sql_mode='x' */"
        ));
    }
}
