//! `CREATE TABLE … LIKE`.
//!
//! The definition of the other table is not known here as a text, so the plan only says whose it
//! is; the proxy asks for it and plans the definition that it makes of it.

use onionskin_schema::same_name;

use super::Copied;
use super::reader::Reader;
use crate::errors::{self, NotUnderstood};
use crate::lex::TokenKind;
use crate::plan::Action;
use crate::planner::{Known, Planned, refuse};

/// `LIKE other` or `(LIKE other)` behind the new table's name, where the reader stands. `hides`
/// says that the new table is a temporary one that hides a protected table; `concerned` that the
/// policy may protect columns of it.
pub(super) fn like(
    mut r: Reader,
    hides: bool,
    concerned: bool,
    is_near: bool,
) -> Planned<Option<Action>> {
    let behind_name = r.at;
    let enclosed = r.eat_punct(b'(');
    if !r.eat("like") {
        return Ok(None);
    }
    let Some((Some(database), name)) = r.table() else {
        return Ok(None);
    };
    if enclosed && !r.eat_punct(b')') {
        return Ok(None);
    }
    if is_same(&r, &database, &name) {
        // an error on every server; there is no value in it
        return Ok(Some(Action::Relay));
    }
    let known = r.request.catalog.table(&database, &name);
    let source = match known {
        Known::Table(table) if table.is_protected() || concerned => table,
        Known::Table(_) if !hides => return Ok(None),
        _ if !concerned && !is_near => return Ok(None),
        _ => {
            return refuse(
                &errors::STATEMENT,
                "CREATE TABLE … LIKE with a table whose columns are not known, or to hide a protected one",
            );
        }
    };
    if let Some(reason) = &source.damaged {
        return refuse(&errors::DAMAGED, format!("{database}.{name} ({reason})"));
    }
    if hides && !source.is_protected() {
        return refuse(
            &errors::STATEMENT,
            "a temporary table without protected columns that hides a protected one",
        );
    }
    if !r.done() {
        return NotUnderstood::TextBehind("LIKE").refuse();
    }
    let head = &r.tokens[..behind_name];
    if head.iter().any(|t| t.kind == TokenKind::Executable) {
        return refuse(&errors::EXECUTABLE_COMMENT, "");
    }
    let head = r.text(0..behind_name).to_vec();
    Ok(Some(Action::Copy(Box::new(Copied { head, source }))))
}

/// Whether the table is its own model.
fn is_same(r: &Reader, database: &str, name: &str) -> bool {
    let target = super::target(r.request, r.tokens);
    target.is_some_and(|(d, n)| d.is_some_and(|d| same_name(&d, database)) && same_name(&n, name))
}
