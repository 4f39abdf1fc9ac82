//! Statements that are prepared by name, in SQL: `PREPARE s FROM 'text'`, `EXECUTE s USING @a`,
//! `DEALLOCATE PREPARE s`, and MariaDB's `EXECUTE IMMEDIATE 'text'`.
//!
//! Here is only what they say. The proxy keeps the texts that touch something protected, and
//! executes them as the statements that they are, with the values in the places of the `?`:
//! [`parameters`] tells where these are, and where a value that is written down would mean
//! something else than a parameter does.

use onionskin_value::Charset;

use crate::errors;
use crate::lex::{LexMode, LiteralKind, Token, TokenKind, tokens};
pub use crate::plan::{Argument, Around, ByName, Parameter, StatementText};
use crate::planner::{Planned, identifier, refuse};

/// Reads a statement. `None`: it is none of these, or in no form that is known.
pub(crate) fn read(sql: &[u8], mode: LexMode, all: &[Token]) -> Option<ByName> {
    let all: Vec<Token> = all.iter().copied().filter(|t| !t.is(b';')).collect();
    if all.iter().any(|t| t.kind == TokenKind::Executable) {
        return None;
    }
    let word = |at: usize, w: &str| all.get(at).is_some_and(|t| t.is_word(sql, w));
    let name = |at: usize| identifier(sql, all.get(at)?);
    if (word(0, "deallocate") || word(0, "drop")) && word(1, "prepare") {
        return (all.len() == 3).then_some(ByName::Deallocate { name: name(2)? });
    }
    if word(0, "prepare") && word(2, "from") {
        let text = statement_text(sql, mode, all.get(3..)?);
        return Some(ByName::Prepare {
            name: name(1)?,
            text,
        });
    }
    if !word(0, "execute") {
        return None;
    }
    if word(1, "immediate") && all.len() > 2 && !word(2, "using") {
        let mut depth = 0usize;
        let using = (2..all.len()).find(|&at| {
            depth += usize::from(all[at].is(b'('));
            depth = depth.saturating_sub(usize::from(all[at].is(b')')));
            depth == 0 && word(at, "using")
        });
        let text = statement_text(sql, mode, &all[2..using.unwrap_or(all.len())]);
        let using = match using {
            None => Some(Vec::new()),
            Some(at) => arguments(sql, &all[at + 1..]),
        };
        return Some(ByName::Immediate { text, using });
    }
    let using = match all.get(2..)? {
        [] => Some(Vec::new()),
        [first, rest @ ..] if first.is_word(sql, "using") => arguments(sql, rest),
        _ => return None,
    };
    Some(ByName::Execute {
        name: name(1)?,
        using,
    })
}

/// The name of the statement that this one executes, if it executes one by its name.
pub fn executed(sql: &[u8], mode: LexMode) -> Option<String> {
    name_behind(sql, mode, "execute")
}

/// The name under which this statement prepares one.
pub fn prepared_name(sql: &[u8], mode: LexMode) -> Option<String> {
    name_behind(sql, mode, "prepare")
}

/// The second word of a statement that begins with `verb`, if it is a name.
fn name_behind(sql: &[u8], mode: LexMode, verb: &str) -> Option<String> {
    let all = tokens(sql, mode).ok()?;
    let first: &Token = all.first()?;
    if !first.is_word(sql, verb) {
        return None;
    }
    identifier(sql, all.get(1)?)
}

/// Whether a text is one of these statements by its first words: none can be prepared itself.
pub fn is_by_name(sql: &[u8], mode: LexMode) -> bool {
    let Ok(all) = tokens(sql, mode) else {
        return false;
    };
    let word = |at: usize, w: &str| all.get(at).is_some_and(|t: &Token| t.is_word(sql, w));
    ["prepare", "execute", "deallocate"]
        .iter()
        .any(|w| word(0, w))
        || (word(0, "drop") && word(1, "prepare"))
}

/// Where the second of several strings begins that stand in a row as the text of a PREPARE: MySQL
/// takes one there.
pub fn second_string(sql: &[u8], mode: LexMode) -> Option<usize> {
    let all = tokens(sql, mode).ok()?;
    let word = |at: usize, w: &str| all.get(at).is_some_and(|t: &Token| t.is_word(sql, w));
    let text = all
        .get(3)
        .filter(|_| word(0, "prepare") && word(2, "from"))?;
    if text.kind != TokenKind::Literal(LiteralKind::String) {
        return None;
    }
    let bytes = text.text(sql);
    let quote = *bytes.first()?;
    let mut at = 1;
    let end = loop {
        match bytes.get(at)? {
            b'\\' if !mode.no_backslash_escapes => at += 2,
            b if *b == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            b if *b == quote => break at + 1,
            _ => at += 1,
        }
    };
    let quotes = |b: &u8| matches!(b, b'\'' | b'"');
    let next = bytes[end..].iter().position(quotes)?;
    Some(text.start + end + next)
}

fn statement_text(sql: &[u8], mode: LexMode, text: &[Token]) -> StatementText {
    match text {
        [t] if t.kind == TokenKind::Variable && !t.text(sql).starts_with(b"@@") => {
            StatementText::Variable(t.text(sql).to_vec())
        }
        [t] if t.kind == TokenKind::Literal(LiteralKind::String) => {
            let mut scratch = Vec::new();
            let kind = LiteralKind::String;
            let text = t.text(sql);
            match crate::literal::decode(text, kind, false, mode, Charset::Utf8mb4, &mut scratch) {
                Some(_) => StatementText::Literal(scratch),
                None => StatementText::Unclear,
            }
        }
        _ => StatementText::Unclear,
    }
}

fn arguments(sql: &[u8], rest: &[Token]) -> Option<Vec<Argument>> {
    let argument = |tokens: &[Token]| match tokens {
        [t] if t.kind == TokenKind::Variable && !t.text(sql).starts_with(b"@@") => {
            Some(Argument::Variable(t.text(sql).to_vec()))
        }
        [t] if t.is_word(sql, "null") => Some(Argument::Literal(b"NULL".to_vec())),
        [t] | [_, t] => {
            let signed = tokens.len() == 2;
            let fits = match t.kind {
                TokenKind::Literal(
                    LiteralKind::Integer | LiteralKind::Decimal | LiteralKind::Float,
                ) => true,
                TokenKind::Literal(LiteralKind::String) => !signed,
                // a number or a text, as the place asks
                _ => false,
            };
            let fits = fits && (!signed || tokens[0].is(b'-'));
            let sign: &[u8] = if signed { b"-" } else { b"" };
            fits.then(|| Argument::Literal([sign, t.text(sql)].concat()))
        }
        _ => None,
    };
    rest.split(|t| t.is(b',')).map(argument).collect()
}

/// A clause, as far as it matters to parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clause {
    SelectList,
    By,
    Limit,
    /// A list of values: `IN (…)`, `VALUES (…)`.
    List,
    Other,
}

/// The places of a text's parameters.
///
/// A literal that takes the place of a `?` would name a column of the result, or count a column in
/// ORDER BY or GROUP BY, as the parameter does not: such statements are refused.
pub fn parameters(sql: &[u8], mode: LexMode) -> Planned<Vec<Parameter>> {
    let Ok(all) = tokens(sql, mode) else {
        return refuse(&errors::DYNAMIC, "a statement text");
    };
    let shows = all
        .iter()
        .find(|t| !t.is(b'('))
        .is_some_and(|t| ["select", "with"].iter().any(|w| t.is_word(sql, w)));
    let is_returning = !shows && all.iter().any(|t| t.is_word(sql, "returning"));
    let mut found = Vec::new();
    // the clause, and whether it is within a select list at any depth
    let mut open = vec![(Clause::Other, false)];
    for (at, token) in all.iter().enumerate() {
        let before = at.checked_sub(1).map(|i| all[i]);
        let before_is = |w: &str| before.is_some_and(|t| t.is_word(sql, w));
        let depth = open.len() - 1;
        let (clause, named) = open[depth];
        if token.is(b'(') {
            let is_list = ["in", "values", "value"].iter().any(|w| before_is(w))
                || (clause == Clause::List && before.is_some_and(|t| t.is(b',')));
            let clause = match is_list {
                true => Clause::List,
                false => Clause::Other,
            };
            open.push((clause, named || open[depth].0 == Clause::SelectList));
        } else if token.is(b')') {
            if open.len() > 1 {
                open.pop();
            }
        } else if token.kind == TokenKind::Word {
            open[depth].0 = match () {
                () if token.is_word(sql, "select") => Clause::SelectList,
                () if token.is_word(sql, "by") => Clause::By,
                () if token.is_word(sql, "limit") => Clause::Limit,
                () if token.is_word(sql, "values") => Clause::List,
                () if [
                    "from",
                    "where",
                    "having",
                    "set",
                    "on",
                    "union",
                    "except",
                    "intersect",
                    "for",
                    "into",
                    "window",
                    "rows",
                    "range",
                    "returning",
                ]
                .iter()
                .any(|w| token.is_word(sql, w)) =>
                {
                    Clause::Other
                }
                () => clause,
            };
            if token.is_word(sql, "returning") {
                open[depth].0 = Clause::SelectList;
            }
        } else if token.kind == TokenKind::Literal(LiteralKind::Parameter) {
            let returned = clause == Clause::SelectList || named;
            if returned && (shows || is_returning) {
                return refuse(
                    &errors::DYNAMIC,
                    "a parameter among the columns of a result",
                );
            }
            // the servers take `(1)` and `+1` for positions, too
            let signs = |t: &&Token| t.is(b'(') || t.is(b'+') || t.is(b'-');
            let before_it: Vec<&Token> = all[..at].iter().rev().take_while(signs).collect();
            let wraps = before_it.iter().filter(|t| t.is(b'(')).count();
            let key = at.checked_sub(before_it.len() + 1).map(|i| all[i]);
            let around = depth.checked_sub(wraps).map(|d| open[d].0);
            if around == Some(Clause::By) && key.is_some_and(|t| t.is(b',') || t.is_word(sql, "by"))
            {
                return refuse(&errors::DYNAMIC, "a parameter in ORDER BY or GROUP BY");
            }
            let end = all.get(at + 1);
            let begins = before.is_some_and(|t| t.is(b'(') || t.is(b','));
            let around = match clause {
                Clause::Limit => Around::Limit,
                Clause::List if begins && ends_value(sql, end) => Around::Compared,
                _ if is_compared(sql, &all, at) && ends_value(sql, end) => Around::Compared,
                _ => Around::Expression,
            };
            found.push(Parameter {
                start: token.start,
                end: token.end,
                around,
            });
        }
    }
    Ok(found)
}

/// Whether a value may end before this token: what follows is no operator.
fn ends_value(sql: &[u8], next: Option<&Token>) -> bool {
    const WORDS: [&str; 13] = [
        "and", "or", "order", "group", "limit", "having", "for", "union", "where", "on", "lock",
        "then", "escape",
    ];
    next.is_none_or(|t| {
        t.is(b',') || t.is(b')') || t.is(b';') || WORDS.iter().any(|w| t.is_word(sql, w))
    })
}

/// Whether what stands before this token is a column and a comparison: `name =`, `t.name >=`,
/// `name LIKE`, `name BETWEEN`.
fn is_compared(sql: &[u8], all: &[Token], at: usize) -> bool {
    let mut before = at;
    let mut comparison = false;
    while before > 0 {
        let t = &all[before - 1];
        let sign = [b'=', b'<', b'>', b'!'].iter().any(|s| t.is(*s));
        let word = ["like", "between", "not"].iter().any(|w| t.is_word(sql, w));
        if !sign && !word {
            break;
        }
        comparison = true;
        before -= 1;
    }
    // `BETWEEN ? AND ?`
    if !comparison && before > 2 && all[before - 1].is_word(sql, "and") {
        let first = all[before - 2].kind == TokenKind::Literal(LiteralKind::Parameter);
        return first && all[before - 3].is_word(sql, "between") && is_compared(sql, all, at - 2);
    }
    let column = before.checked_sub(1).map(|i| &all[i]);
    comparison
        && column.is_some_and(|t| {
            let keyword = ["where", "and", "or", "not", "on", "select", "is"];
            t.kind == TokenKind::Quoted
                || (t.kind == TokenKind::Word && !keyword.iter().any(|w| t.is_word(sql, w)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(sql: &str) -> Option<ByName> {
        let mode = LexMode::default();
        read(sql.as_bytes(), mode, &tokens(sql.as_bytes(), mode).unwrap())
    }

    #[test]
    fn statements_are_told_apart() {
        let text = |s: &str| StatementText::Literal(s.as_bytes().to_vec());
        let variable = |s: &str| Argument::Variable(s.as_bytes().to_vec());
        let literal = |s: &str| Argument::Literal(s.as_bytes().to_vec());
        assert_eq!(
            say("prepare `a b` from 'SELECT ''x'''"),
            Some(ByName::Prepare {
                name: "a b".into(),
                text: text("SELECT 'x'")
            })
        );
        assert_eq!(
            say("PREPARE s FROM @q;"),
            Some(ByName::Prepare {
                name: "s".into(),
                text: StatementText::Variable(b"@q".to_vec())
            })
        );
        assert_eq!(
            say("PREPARE s FROM CONCAT('a', 'b')"),
            Some(ByName::Prepare {
                name: "s".into(),
                text: StatementText::Unclear
            })
        );
        assert_eq!(
            say("EXECUTE s USING @a, @`b c`, -1.5, 'x', NULL"),
            Some(ByName::Execute {
                name: "s".into(),
                using: Some(vec![
                    variable("@a"),
                    variable("@`b c`"),
                    literal("-1.5"),
                    literal("'x'"),
                    literal("NULL")
                ])
            })
        );
        for unclear in ["1 + 1", "@@x", "-'x'", "x'41'", "DEFAULT", "", "@a,", "?"] {
            let sql = format!("EXECUTE s USING {unclear}");
            let using = None;
            let name = "s".into();
            assert_eq!(say(&sql), Some(ByName::Execute { name, using }), "{sql}");
        }
        assert_eq!(
            say("EXECUTE IMMEDIATE 'SELECT ?' USING @a"),
            Some(ByName::Immediate {
                text: text("SELECT ?"),
                using: Some(vec![variable("@a")])
            })
        );
        for sql in ["DROP PREPARE s", "DEALLOCATE PREPARE s ;"] {
            assert_eq!(say(sql), Some(ByName::Deallocate { name: "s".into() }));
        }
        for sql in [
            "PREPARE s",
            "PREPARE s FROM /*!50000 'x' */",
            "DROP TABLE s",
            "EXECUTE s WITH @a",
            "SELECT 1",
        ] {
            assert_eq!(say(sql), None, "{sql}");
        }
    }

    #[test]
    fn places_of_parameters_are_judged() {
        use Around::{Compared, Expression, Limit};
        let around = |sql: &str| -> Planned<Vec<Around>> {
            let found = parameters(sql.as_bytes(), LexMode::default())?;
            Ok(found.iter().map(|p| p.around).collect())
        };
        for (sql, expected) in [
            (
                "SELECT a FROM t WHERE a = ? AND t.b >= ? LIMIT ?, ?",
                vec![Compared, Compared, Limit, Limit],
            ),
            (
                "SELECT a FROM t WHERE a + ? = b OR ? = a",
                vec![Expression, Expression],
            ),
            (
                "SELECT a FROM t WHERE a = ? + 1 AND a = f(?)",
                vec![Expression, Expression],
            ),
            (
                "SELECT a FROM t WHERE a IN (?, ?, 3) AND b BETWEEN ? AND ?",
                vec![Compared; 4],
            ),
            (
                "INSERT INTO t (a, b) VALUES (?, ?), (?, f(?))",
                vec![Compared, Compared, Compared, Expression],
            ),
            (
                "UPDATE t SET a = ?, b = b + ? WHERE id = ?",
                vec![Compared, Expression, Compared],
            ),
            (
                "SELECT a FROM t WHERE NOT a <> ? ORDER BY a + ?",
                vec![Compared, Expression],
            ),
            ("INSERT INTO t SELECT ?, a FROM u", vec![Expression]),
            (
                "SELECT COUNT(*) FROM t WHERE a LIKE ? GROUP BY a HAVING MAX(b) > ?",
                vec![Compared, Expression],
            ),
        ] {
            assert_eq!(around(sql), Ok(expected), "{sql}");
        }
        for sql in [
            "SELECT ?, a FROM t",
            "SELECT a, (SELECT b FROM u WHERE b = ?) FROM t",
            "SELECT a FROM t ORDER BY ?",
            "SELECT a FROM t GROUP BY a, ?",
            "SELECT a FROM t GROUP BY (?)",
            "SELECT a FROM t ORDER BY +?",
            "SELECT a FROM t ORDER BY a, (-(?))",
            "SELECT a FROM t ORDER BY a, ((?)) DESC",
            "(SELECT IF(a = ?, 1, 2) FROM t)",
            "INSERT INTO t VALUES (1) RETURNING ?",
        ] {
            assert!(around(sql).is_err(), "{sql}");
        }
    }
}
