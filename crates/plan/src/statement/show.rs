//! `SHOW` and `DESCRIBE` of a protected table.

use std::sync::Arc;

use onionskin_schema::{Table, TableName, same_name};

use super::Decided;
use super::words::is_one_of;
use crate::errors::{self, NotUnderstood};
use crate::lex::{Token, TokenKind};
use crate::plan::{Action, Piece, Show};
use crate::planner::{Planned, Request, identifier, quoted, refuse};

/// `SHOW CREATE TABLE`, `SHOW COLUMNS`, `SHOW INDEX`, `DESCRIBE` of one protected table.
pub(super) fn show<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let end = tokens
        .iter()
        .rposition(|t| !t.is(b';'))
        .map_or(0, |i| i + 1);
    let named = shown_table(request, &tokens[..end]);
    let table = match (&named, near.as_slice()) {
        (Some((named, behind)), near) => match near.iter().find(|table| is_it(named, table)) {
            Some(table) => table,
            // it shows another one, and those of this name are of other databases
            None if *behind == end => return Ok((Action::Relay, None)),
            // a condition may be about any of them
            None => return NotUnderstood::Clause("SHOW").refuse(),
        },
        (None, [table]) => table,
        (None, _) => return NotUnderstood::ShowSeveral.refuse(),
    };
    let statement = Statement {
        request,
        tokens: &tokens[..end],
        table,
    };
    let Shown { what, text } = if !statement.is(0, "show") {
        statement.describe()?
    } else if statement.is(1, "create") {
        statement.show_create()?
    } else {
        statement.show_rows(named.map(|(_, behind)| behind))?
    };
    let action = Action::Show {
        what,
        text: vec![Piece::Sql(text)],
        table: Arc::clone(table),
    };
    Ok((action, None))
}

fn is_it(named: &TableName, table: &Table) -> bool {
    same_name(&named.database, &table.database) && same_name(&named.name, &table.name)
}

/// The table of which `SHOW COLUMNS` and `SHOW INDEX` show something, where they say it in one of
/// the ways that are known: `table`, `db.table` or `table FROM db`; and which token comes behind.
fn shown_table(request: &Request, tokens: &[Token]) -> Option<(TableName, usize)> {
    let sql = request.sql;
    let is = |at: usize, words: &[&str]| tokens.get(at).is_some_and(|t| is_one_of(sql, t, words));
    let name = |at: usize| identifier(sql, tokens.get(at)?);
    let at = if is(1, &["full"]) { 2 } else { 1 };
    let shows = ["columns", "fields", "index", "indexes", "keys"];
    if !is(0, &["show"]) || !is(at, &shows) || !is(at + 1, &["from", "in"]) {
        return None;
    }
    let first = name(at + 2)?;
    if tokens.get(at + 3).is_some_and(|t| t.is(b'.')) {
        return Some((TableName::new(first, name(at + 4)?), at + 5));
    }
    if is(at + 3, &["from", "in"]) {
        return Some((TableName::new(name(at + 4)?, first), at + 5));
    }
    let database = request.settings.database.clone()?;
    Some((TableName::new(database, first), at + 3))
}

/// What a statement shows, and the text that the server gets.
struct Shown {
    what: Show,
    text: Vec<u8>,
}

struct Statement<'a> {
    request: &'a Request<'a>,
    tokens: &'a [Token],
    table: &'a Table,
}

impl Statement<'_> {
    fn is(&self, at: usize, word: &str) -> bool {
        let token = self.tokens.get(at);
        token.is_some_and(|t| t.is_word(self.request.sql, word))
    }

    fn is_end(&self, at: usize) -> bool {
        at == self.tokens.len()
    }

    /// Which of the statement's literals stands here.
    fn literal(&self, at: usize) -> Option<usize> {
        literal(self.request, self.tokens.get(at)?)
    }

    fn quoted_table(&self) -> String {
        let Table { database, name, .. } = self.table;
        format!("{}.{}", quoted(database), quoted(name))
    }

    /// `SHOW CREATE TABLE`, `SHOW CREATE VIEW`.
    fn show_create(&self) -> Planned<Shown> {
        // that a table without protected columns is a view is known by the answer
        let has_marks = super::may_have_marks(self.request, self.table);
        let may_be_view = self.table.view || !(self.table.is_protected() || has_marks);
        let what = match (self.is(2, "table"), self.is(2, "view")) {
            (true, _) if !may_be_view => Show::CreateTable,
            (true, _) | (_, true) => Show::CreateView,
            _ => {
                return refuse(
                    &errors::STATEMENT,
                    "SHOW CREATE of something that uses a protected table",
                );
            }
        };
        let text = self.request.sql.to_vec();
        Ok(Shown { what, text })
    }

    /// `DESCRIBE [db.]table [column | 'pattern']`
    fn describe(&self) -> Planned<Shown> {
        let is_qualified = self.tokens.get(2).is_some_and(|t| t.is(b'.'));
        let at = if is_qualified { 4 } else { 2 };
        let (mut like, mut column) = (None, None);
        match self.tokens.get(at..) {
            Some([]) => {}
            Some([only]) => match only.kind {
                TokenKind::Literal(_) => like = self.literal(at),
                _ => match identifier(self.request.sql, only) {
                    Some(name) => column = Some(name),
                    None => return NotUnderstood::Clause("DESCRIBE").refuse(),
                },
            },
            _ => return NotUnderstood::Clause("DESCRIBE").refuse(),
        }
        let what = Show::Columns {
            like,
            column,
            named: Vec::new(),
        };
        let text = format!("SHOW COLUMNS FROM {}", self.quoted_table()).into_bytes();
        Ok(Shown { what, text })
    }

    /// `SHOW [FULL] COLUMNS FROM …`, `SHOW INDEX FROM …`. `behind` is where LIKE or WHERE would
    /// stand, if the table was found.
    fn show_rows(&self, behind: Option<usize>) -> Planned<Shown> {
        let full = self.is(1, "full");
        let at = if full { 2 } else { 1 };
        let is_columns = self.is(at, "columns") || self.is(at, "fields");
        match behind {
            Some(behind) if is_columns => self.show_columns(full, behind),
            Some(behind) if !full => self.show_index(behind),
            _ => NotUnderstood::Clause("SHOW").refuse(),
        }
    }

    /// `at` is where LIKE or WHERE would stand.
    fn show_columns(&self, full: bool, at: usize) -> Planned<Shown> {
        let (mut like, mut named) = (None, Vec::new());
        if let Some(pattern) = self.last_pattern(at) {
            like = self.literal(pattern);
            if like.is_none() {
                return NotUnderstood::Clause("SHOW COLUMNS … LIKE").refuse();
            }
        } else if let Some(found) = self.values_of("field", at) {
            named = found;
        } else if !self.is_end(at) {
            return NotUnderstood::Clause("SHOW COLUMNS … WHERE").refuse();
        }
        let what = Show::Columns {
            like,
            column: None,
            named,
        };
        let full = if full { "FULL " } else { "" };
        let text = format!("SHOW {full}COLUMNS FROM {}", self.quoted_table()).into_bytes();
        Ok(Shown { what, text })
    }

    /// `at` is where WHERE would stand.
    fn show_index(&self, at: usize) -> Planned<Shown> {
        let mut text = format!("SHOW INDEX FROM {}", self.quoted_table()).into_bytes();
        let mut named = Vec::new();
        if let Some(found) = self.values_of("column_name", at) {
            named = found;
        } else if !self.is_end(at) {
            let sql = self.request.sql;
            match self.tokens.get(at..) {
                Some([first, condition @ ..])
                    if first.is_word(sql, "where") && names_no_column(sql, condition) =>
                {
                    let end = condition.last().unwrap_or(first).end;
                    text.push(b' ');
                    text.extend_from_slice(&sql[first.start..end]);
                }
                _ => return NotUnderstood::Clause("SHOW INDEX … WHERE").refuse(),
            }
        }
        let what = Show::Index { named };
        Ok(Shown { what, text })
    }

    /// Where the pattern stands in `LIKE 'a'` or `WHERE field LIKE 'a'`, if it is the last word.
    fn last_pattern(&self, at: usize) -> Option<usize> {
        let pattern = if self.is(at, "like") {
            at + 1
        } else if self.is(at, "where") && self.is(at + 1, "field") && self.is(at + 2, "like") {
            at + 3
        } else {
            return None;
        };
        self.is_end(pattern + 1).then_some(pattern)
    }

    /// `WHERE field = 'a'` or `WHERE field IN ('a', 'b')` up to the end: the literals.
    fn values_of(&self, field: &str, at: usize) -> Option<Vec<usize>> {
        let sql = self.request.sql;
        let [word, name, comparison @ ..] = self.tokens.get(at..)? else {
            return None;
        };
        let is_field = identifier(sql, name).is_some_and(|n| n.eq_ignore_ascii_case(field));
        if !word.is_word(sql, "where") || !is_field {
            return None;
        }
        let values: &[Token] = match comparison {
            [equals, value] if equals.is(b'=') => std::slice::from_ref(value),
            [word, open, values @ .., close]
                if word.is_word(sql, "in") && open.is(b'(') && close.is(b')') =>
            {
                values
            }
            _ => return None,
        };
        let mut found = Vec::new();
        for (n, token) in values.iter().enumerate() {
            if n % 2 == 0 {
                found.push(literal(self.request, token)?);
            } else if !token.is(b',') {
                return None;
            }
        }
        Some(found)
    }
}

/// Which of the statement's literals a token is.
fn literal(request: &Request, token: &Token) -> Option<usize> {
    let mut literals = request.template.literals.iter();
    literals.position(|l| l.start == token.start)
}

/// Whether a condition on the rows of SHOW INDEX speaks of what is the same for the physical table.
fn names_no_column(sql: &[u8], tokens: &[Token]) -> bool {
    const FINE: [&str; 13] = [
        "key_name",
        "non_unique",
        "seq_in_index",
        "index_type",
        "table",
        "and",
        "or",
        "not",
        "in",
        "like",
        "is",
        "null",
        "between",
    ];
    tokens.iter().all(|t| match t.kind {
        TokenKind::Literal(_) | TokenKind::Punct(_) => true,
        TokenKind::Word | TokenKind::Quoted => {
            identifier(sql, t).is_some_and(|name| FINE.iter().any(|w| name.eq_ignore_ascii_case(w)))
        }
        _ => false,
    })
}
