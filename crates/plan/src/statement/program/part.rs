//! What stands between the semicolons of a stored program: statements that hold no others, and
//! expressions.
//!
//! No tree is made of them. Which columns they name is judged by words (`names.rs`), so here it
//! is about what has columns without naming them.

use super::reader::{Insert, Reader, unsafe_part};
use crate::lex::{LiteralKind, TokenKind};
use crate::native::is_reserved;
use crate::planner::Planned;

/// A statement that holds no other one.
pub(super) fn simple(r: &mut Reader) -> Planned<()> {
    const KNOWN: [&str; 18] = [
        "call",
        "close",
        "commit",
        "delete",
        "do",
        "fetch",
        "get",
        "iterate",
        "leave",
        "open",
        "release",
        "resignal",
        "return",
        "rollback",
        "savepoint",
        "select",
        "signal",
        "with",
    ];
    let word = r.word();
    match word.as_str() {
        "insert" | "replace" => insert(r),
        "set" => assignments(r),
        "update" => {
            r.updates = true;
            r.step();
            run(r, &[], false)
        }
        "start" if r.is_word_at(r.at + 1, "transaction") => {
            r.step();
            run(r, &[], false)
        }
        "select" | "with" => run(r, &[], false),
        known if KNOWN.contains(&known) => {
            r.step();
            run(r, &[], false)
        }
        _ => r.not_understood(),
    }
}

/// An INSERT or REPLACE. Without the names of its columns it would fill all of them, by their
/// places.
fn insert(r: &mut Reader) -> Planned<()> {
    const MANNERS: [&str; 4] = ["low_priority", "high_priority", "delayed", "ignore"];
    const ROWS: [&str; 4] = ["values", "value", "select", "with"];
    r.step();
    while r.is_one_of(&MANNERS) {
        r.step();
    }
    r.takes("into");
    let target = r.at;
    r.path()?;
    let mut columns = Vec::new();
    if !r.is_word("set") {
        let is_list = r.takes_sign(b'(') && r.name_at(r.at).is_some();
        if !is_list {
            return unsafe_part("INSERT without a list of columns");
        }
        loop {
            columns.push(r.path()?);
            if !r.takes_sign(b',') {
                break;
            }
        }
        r.must_sign(b')')?;
        if !r.is_one_of(&ROWS) && !r.is_sign_at(r.at, b'(') {
            return r.not_understood();
        }
    }
    r.inserts.push(Insert { target, columns });
    run(r, &[], false)
}

/// SET of the program's variables, of the client's, and of the new row.
fn assignments(r: &mut Reader) -> Planned<()> {
    r.step();
    loop {
        let Some(token) = r.token() else {
            return r.not_understood();
        };
        let is_variable = token.kind == TokenKind::Variable;
        if is_variable && token.text(r.sql).starts_with(b"@@") {
            return unsafe_part("SET of a variable of the server");
        } else if is_variable {
            r.step();
        } else if r.is_trigger && r.is_word("new") && r.is_sign_at(r.at + 1, b'.') {
            r.path()?;
        } else {
            let name = r.name()?;
            if !r.is_declared(&name) {
                return unsafe_part("SET of something else than NEW and declared variables");
            }
        }
        r.takes_sign(b':');
        r.must_sign(b'=')?;
        run(r, &[], true)?;
        if !r.takes_sign(b',') {
            return Ok(());
        }
    }
}

/// A part without other statements: up to a semicolon, to one of these words or to a comma, all
/// of them outside of parentheses.
pub(super) fn run(r: &mut Reader, ends: &[&str], at_comma: bool) -> Planned<()> {
    let (mut depth, mut cases) = (0usize, 0usize);
    while let Some(token) = r.token() {
        let is_column = r.at > 0 && r.is_sign_at(r.at - 1, b'.');
        if depth == 0 && (token.is(b';') || at_comma && token.is(b',')) {
            break;
        }
        if depth == 0 && cases == 0 && !is_column && r.is_one_of(ends) {
            break;
        }
        match token.kind {
            TokenKind::Executable
            | TokenKind::Hint
            | TokenKind::Literal(LiteralKind::Parameter)
            | TokenKind::Punct(b';') => return r.not_understood(),
            TokenKind::Punct(b'(') => depth += 1,
            TokenKind::Punct(b')') if depth == 0 => return r.not_understood(),
            TokenKind::Punct(b')') => depth -= 1,
            TokenKind::Punct(b'*') if !is_count(r) && !is_product(r) => {
                return unsafe_part("*");
            }
            TokenKind::Word if is_column || r.is_sign_at(r.at + 1, b'(') => {}
            TokenKind::Word => match r.word().as_str() {
                "case" => cases += 1,
                "end" if cases > 0 => cases -= 1,
                word => bare_word(r, word, cases > 0)?,
            },
            _ => {}
        }
        r.step();
    }
    match depth == 0 && cases == 0 {
        true => Ok(()),
        false => r.not_understood(),
    }
}

/// A word that is no name behind a dot, and calls nothing.
fn bare_word(r: &mut Reader, word: &str, in_case: bool) -> Planned<()> {
    /// They begin statements that are not read, or belong to the blocks around.
    const OTHERS: [&str; 35] = [
        "alter",
        "analyze",
        "begin",
        "call",
        "checksum",
        "create",
        "declare",
        "delete",
        "describe",
        "do",
        "drop",
        "elseif",
        "elsif",
        "end",
        "execute",
        "explain",
        "grant",
        "handler",
        "if",
        "immediate",
        "insert",
        "load",
        "loop",
        "optimize",
        "prepare",
        "procedure",
        "rename",
        "repair",
        "repeat",
        "replace",
        "revoke",
        "show",
        "truncate",
        "until",
        "while",
    ];
    match word {
        "natural" => unsafe_part("NATURAL JOIN"),
        "table" => unsafe_part("TABLE"),
        "outfile" | "dumpfile" => unsafe_part("INTO OUTFILE"),
        "when" | "then" | "else" if !in_case => r.not_understood(),
        "update" => {
            let is_behind = |word| r.at > 0 && r.is_word_at(r.at - 1, word);
            match (is_behind("key"), is_behind("for")) {
                (true, _) => r.updates = true,
                (_, true) => {}
                _ => return r.not_understood(),
            }
            Ok(())
        }
        _ if OTHERS.contains(&word) => r.not_understood(),
        _ => Ok(()),
    }
}

/// Whether the star here is that of `COUNT(*)`.
fn is_count(r: &Reader) -> bool {
    r.at >= 2
        && r.is_word_at(r.at - 2, "count")
        && r.is_sign_at(r.at - 1, b'(')
        && r.is_sign_at(r.at + 1, b')')
}

/// Whether the star here multiplies. Behind that of a select list stands a comma, a parenthesis, a
/// clause, or nothing.
fn is_product(r: &Reader) -> bool {
    const CLAUSES: [&str; 12] = [
        "as",
        "do",
        "end",
        "except",
        "fetch",
        "intersect",
        "lock",
        "minus",
        "offset",
        "returning",
        "then",
        "window",
    ];
    const BEFORE: [&str; 8] = [
        "all",
        "distinct",
        "distinctrow",
        "high_priority",
        "returning",
        "select",
        "straight_join",
        "sql_no_cache",
    ];
    let begins = match r.tokens.get(r.at + 1) {
        Some(next) => match next.kind {
            TokenKind::Literal(_) | TokenKind::Variable | TokenKind::Quoted => true,
            TokenKind::Punct(b'(' | b'-' | b'+' | b'~') => true,
            TokenKind::Word => {
                let word = r.word_at(r.at + 1);
                let is_call = r.is_sign_at(r.at + 2, b'(');
                let is_value = ["case", "null", "true", "false"].contains(&word.as_str());
                is_value || !CLAUSES.contains(&word.as_str()) && (is_call || !is_reserved(&word))
            }
            _ => false,
        },
        None => false,
    };
    let ends = match r.at.checked_sub(1).and_then(|at| r.tokens.get(at)) {
        Some(before) => match before.kind {
            TokenKind::Literal(_) | TokenKind::Variable | TokenKind::Quoted => true,
            TokenKind::Punct(b')') => true,
            TokenKind::Word => !BEFORE.contains(&r.word_at(r.at - 1).as_str()),
            _ => false,
        },
        None => false,
    };
    begins && ends
}
