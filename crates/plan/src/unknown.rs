//! Names that no column has: the server's error for them, which tells the clause.

use onionskin_value::Family;
use sqlparser::ast::Ident;

use crate::errors::{self, NotUnderstood, Refusal};
use crate::lex::Token;
use crate::planner::Planner;
use crate::scope::Scope;

/// Where a name stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Select,
    Where,
    On,
    GroupBy,
    Having,
    OrderBy,
    /// The columns of new rows.
    InsertInto,
    Values,
    Set,
    /// What ON DUPLICATE KEY UPDATE assigns.
    Update,
}

/// Words with which a clause begins.
const CLAUSES: [(&str, Place); 10] = [
    ("select", Place::Select),
    ("where", Place::Where),
    ("on", Place::On),
    ("group", Place::GroupBy),
    ("having", Place::Having),
    ("order", Place::OrderBy),
    ("into", Place::InsertInto),
    ("values", Place::Values),
    ("set", Place::Set),
    // MariaDB looks the values up as if they were selected
    ("update", Place::Select),
];

impl Place {
    /// As the servers call it: MySQL 9.7 and MariaDB 10.11.19. Older MariaDB has MySQL's words.
    pub(crate) fn name(self, family: Family) -> &'static str {
        let (mysql, mariadb) = match self {
            Self::Select => ("field list", "SELECT"),
            Self::Where => ("where clause", "WHERE"),
            Self::On => ("on clause", "ON"),
            Self::GroupBy => ("group statement", "GROUP BY"),
            Self::Having => ("having clause", "HAVING"),
            Self::OrderBy => ("order clause", "ORDER BY"),
            Self::InsertInto => ("field list", "INSERT INTO"),
            Self::Values => ("field list", "VALUES"),
            Self::Set => ("field list", "SET"),
            Self::Update => ("field list", "UPDATE"),
        };
        match family {
            Family::MySql => mysql,
            Family::MariaDb => mariadb,
        }
    }
}

impl Planner<'_> {
    /// The error for a name that no column has, as it is written: the server's, where it is certain
    /// that it would have one. In a subquery the name may be an alias of the query around it, and
    /// in new rows on MariaDB that of a value.
    pub(crate) fn unknown_column(&self, parts: &[Ident], scope: &Scope) -> Refusal {
        let name: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
        let is_certain = scope.parent.is_none() && !scope.sources.is_empty() && !scope.is_open();
        if !is_certain {
            let name = name.last().copied().unwrap_or_default();
            return Refusal::new(&errors::UNKNOWN_COLUMN, format!("'{name}'"));
        }
        let at = parts.first().and_then(|part| {
            let offset = self.offset(part.span);
            self.token_at(offset).ok()
        });
        let before = &self.tokens[..at.unwrap_or_default()];
        if let Some(function) = self.reads_sequence(before) {
            return NotUnderstood::Within("a sequence", function).into();
        }
        self.unknown_in(&name.join("."), place_behind(self.sql(), before))
    }

    /// The function of MariaDB's whose first argument is a sequence, if it begins here.
    fn reads_sequence(&self, before: &[Token]) -> Option<&'static str> {
        const FUNCTIONS: [&str; 3] = ["NEXTVAL", "LASTVAL", "SETVAL"];
        let [.., name, open] = before else {
            return None;
        };
        let is_mariadb = self.request.settings.family == Family::MariaDb && open.is(b'(');
        let called = FUNCTIONS.iter().find(|f| name.is_word(self.sql(), f));
        called.filter(|_| is_mariadb).copied()
    }

    /// The same for a name of which it is known where it stands.
    pub(crate) fn unknown_in(&self, name: &str, place: Place) -> Refusal {
        Refusal::unknown_column(name, place.name(self.request.settings.family))
    }
}

/// The clause that goes on behind these tokens: the last one that begins in brackets that are still
/// open.
fn place_behind(sql: &[u8], before: &[Token]) -> Place {
    let mut closed = 0usize;
    for token in before.iter().rev() {
        if token.is(b')') {
            closed += 1;
        } else if token.is(b'(') {
            closed = closed.saturating_sub(1);
        } else if closed == 0 {
            let found = CLAUSES.iter().find(|(word, _)| token.is_word(sql, word));
            if let Some((_, place)) = found {
                return *place;
            }
        }
    }
    Place::Select
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lex::{LexMode, tokens};

    #[test]
    fn the_clause_is_the_last_one_that_is_open() {
        let clause = |sql: &str| {
            let tokens = tokens(sql.as_bytes(), LexMode::default()).expect("tokens");
            place_behind(sql.as_bytes(), &tokens).name(Family::MySql)
        };
        for (sql, name) in [
            ("SELECT", "field list"),
            ("SELECT a, f(b,", "field list"),
            ("SELECT a FROM t WHERE f(a) = 1 AND g(", "where clause"),
            ("SELECT a FROM t WHERE a IN (SELECT", "field list"),
            (
                "SELECT a FROM t WHERE a IN (SELECT b FROM u WHERE c = 1) AND",
                "where clause",
            ),
            ("SELECT a FROM t JOIN u ON", "on clause"),
            ("SELECT a FROM t WHERE a = 1 GROUP BY", "group statement"),
            ("SELECT a FROM t GROUP BY a HAVING", "having clause"),
            ("SELECT a FROM t GROUP BY a ORDER BY a,", "order clause"),
            ("UPDATE t SET", "field list"),
            ("UPDATE t SET a = 1 WHERE", "where clause"),
            ("INSERT INTO t (", "field list"),
            (
                "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE",
                "field list",
            ),
            ("DELETE FROM t WHERE", "where clause"),
        ] {
            assert_eq!(clause(sql), name, "{sql}");
        }
    }
}
