//! In which roles a column stands in a statement, told from the words around its name.

use std::collections::BTreeSet;

use onionskin_plan::LexMode;
use onionskin_plan::lex::{LiteralKind, Token, TokenKind, tokens};

/// The roles of a column. `others` says whether a name is another protected column's.
pub fn roles(sql: &str, column: &str, others: &dyn Fn(&str) -> bool) -> BTreeSet<&'static str> {
    let bytes = sql.as_bytes();
    let Ok(tokens) = tokens(bytes, LexMode::default()) else {
        return BTreeSet::new();
    };
    let mut roles = BTreeSet::new();
    let mut clause = "result";
    for (at, token) in tokens.iter().enumerate() {
        if let Some(next) = clause_of(bytes, token) {
            clause = next;
        }
        if name(bytes, token).is_some_and(|n| n.eq_ignore_ascii_case(column)) {
            roles.insert(role(bytes, &tokens, at, clause, others));
        }
    }
    roles
}

/// A clause that begins with a word.
fn clause_of(sql: &[u8], token: &Token) -> Option<&'static str> {
    const CLAUSES: [(&str, &str); 12] = [
        ("select", "result"),
        ("from", "condition"),
        ("where", "condition"),
        ("on", "condition"),
        ("having", "condition"),
        ("using", "join"),
        ("group", "GROUP BY"),
        ("order", "ORDER BY"),
        ("set", "stored"),
        ("values", "stored"),
        ("into", "stored"),
        ("replace", "stored"),
    ];
    let found = CLAUSES.iter().find(|(word, _)| token.is_word(sql, word));
    found.map(|(_, clause)| *clause)
}

fn name<'s>(sql: &'s [u8], token: &Token) -> Option<&'s str> {
    let text = std::str::from_utf8(token.text(sql)).ok()?;
    match token.kind {
        TokenKind::Word => Some(text),
        TokenKind::Quoted => Some(text.trim_matches('`')),
        _ => None,
    }
}

fn role(
    sql: &[u8],
    tokens: &[Token],
    at: usize,
    clause: &'static str,
    others: &dyn Fn(&str) -> bool,
) -> &'static str {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|t| t.is_word(sql, word));
    let punct = |at: usize, byte: u8| tokens.get(at).is_some_and(|t| t.is(byte));
    // before the name, without its table's
    let mut first = at;
    while first >= 2 && punct(first - 1, b'.') {
        first -= 2;
    }
    let is_argument = first >= 2
        && punct(first - 1, b'(')
        && tokens[first - 2].kind == TokenKind::Word
        && !OPENS.iter().any(|word| is(first - 2, word));
    if is_argument && clause != "stored" && clause != "join" {
        return match AGGREGATES.iter().any(|word| is(first - 2, word)) {
            true => "aggregate",
            false => "function",
        };
    }
    let next = at + 1 + usize::from(is(at + 1, "not"));
    match () {
        () if is(next, "like") => return pattern(sql, tokens.get(next + 1)),
        () if is(next, "in") => return "IN",
        () if is(next, "between") => return "<",
        () if is(next, "is") => return "IS NULL",
        () if is(next, "regexp") || is(next, "rlike") => return "REGEXP",
        () if clause == "stored" && !punct(next, b'+') && !punct(next, b'-') => return "stored",
        () => {}
    }
    let compares = |byte: u8| punct(next, byte) || first > 0 && punct(first - 1, byte);
    let is_equal = compares(b'=') || punct(next, b'!');
    let is_order =
        (compares(b'<') || compares(b'>')) && !(punct(next, b'<') && punct(next + 1, b'>'));
    if is_equal && !punct(next, b'<') && !punct(next, b'>') {
        // what it is compared with, behind its table's name; what follows that is another condition
        let mut beside = next + 1;
        while punct(beside + 1, b'.') {
            beside += 2;
        }
        let partner = tokens.get(beside).and_then(|token| name(sql, token));
        let partner = partner.is_some_and(others);
        return if partner || clause == "join" {
            "join"
        } else {
            "="
        };
    }
    match () {
        () if is_order => "<",
        () if clause == "condition" => "in a condition",
        () => clause,
    }
}

/// Words before a parenthesis that is no function's.
const OPENS: [&str; 9] = [
    "in", "and", "or", "not", "where", "on", "values", "by", "using",
];
const AGGREGATES: [&str; 6] = ["sum", "avg", "min", "max", "count", "group_concat"];

/// LIKE by where its wildcards stand.
fn pattern(sql: &[u8], token: Option<&Token>) -> &'static str {
    let Some(token) = token else { return "LIKE" };
    if !matches!(token.kind, TokenKind::Literal(LiteralKind::String)) {
        return "LIKE ?";
    }
    let text = token.text(sql);
    let inner = text
        .get(1..text.len().saturating_sub(1))
        .unwrap_or_default();
    match (inner.starts_with(b"%"), inner.ends_with(b"%")) {
        (true, true) => "LIKE %…%",
        (true, false) => "LIKE %…",
        (false, true) => "LIKE …%",
        (false, false) => "LIKE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_told_from_the_words_around() {
        for (sql, wanted) in [
            ("SELECT a FROM t WHERE b = 1", vec!["result"]),
            (
                "SELECT b FROM t WHERE t.a = 'x' ORDER BY `a`",
                vec!["=", "ORDER BY"],
            ),
            ("SELECT b FROM t WHERE a LIKE '%x%'", vec!["LIKE %…%"]),
            (
                "SELECT b FROM t WHERE a NOT LIKE 'x%' AND a IN (1, 2)",
                vec!["IN", "LIKE …%"],
            ),
            (
                "SELECT MAX(a), UPPER(t.a) FROM t GROUP BY a",
                vec!["GROUP BY", "aggregate", "function"],
            ),
            ("SELECT b FROM t JOIN u ON t.a = u.other", vec!["join"]),
            ("SELECT b FROM t JOIN u ON t.a = d.u.other", vec!["join"]),
            ("SELECT b FROM t WHERE a = 'x' AND other > 7", vec!["="]),
            (
                "UPDATE t SET a = 5 WHERE a BETWEEN 1 AND 2",
                vec!["<", "stored"],
            ),
            ("INSERT INTO t (a, b) VALUES (1, 2)", vec!["stored"]),
            (
                "SELECT b FROM t WHERE a >= 5 AND a IS NOT NULL",
                vec!["<", "IS NULL"],
            ),
        ] {
            let found: Vec<_> = roles(sql, "a", &|name| name == "other")
                .into_iter()
                .collect();
            assert_eq!(found, wanted, "{sql}");
        }
    }
}
