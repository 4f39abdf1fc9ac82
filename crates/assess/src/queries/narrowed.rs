//! Whether the server narrows the rows that it sends, or sends all of a table.

use onionskin_plan::lex::{Token, TokenKind, tokens};
use onionskin_plan::{LexMode, Piece};

/// Whether a text narrows the rows: a query by its WHERE or LIMIT, otherwise a condition. What
/// cannot be read does not.
pub(super) fn narrows(text: &[Piece], is_query: bool) -> bool {
    let mut sql = Vec::new();
    put(text, &mut sql);
    let Ok(tokens) = tokens(&sql, LexMode::default()) else {
        return false;
    };
    let sql = &sql[..];
    if !is_query {
        return condition(sql, &tokens);
    }
    let mut depth = 0_usize;
    let mut from = None;
    for (at, token) in tokens.iter().enumerate() {
        depth = next_depth(depth, token);
        if depth > 0 {
            continue;
        }
        match from {
            None if token.is_word(sql, "where") => from = Some(at + 1),
            None if token.is_word(sql, "limit") => return true,
            Some(start) if ends_where(sql, token) => {
                let limits = tokens[at..].iter().any(|t| t.is_word(sql, "limit"));
                return limits || condition(sql, &tokens[start..at]);
            }
            _ => {}
        }
    }
    from.is_some_and(|start| condition(sql, &tokens[start..]))
}

fn ends_where(sql: &[u8], token: &Token) -> bool {
    ["group", "order", "having", "limit", "for", "lock"]
        .iter()
        .any(|word| token.is_word(sql, word))
}

/// With a mark for each value.
fn put(text: &[Piece], out: &mut Vec<u8>) {
    for piece in text {
        match piece {
            Piece::Sql(sql) => out.extend_from_slice(sql),
            Piece::Literal(_) | Piece::Slot(_) | Piece::Present(_) => out.extend_from_slice(b" ? "),
            Piece::Tenant { .. } => {}
            Piece::Indexed(inner) => put(inner, out),
            Piece::Rows { row, .. } => put(row, out),
        }
    }
}

fn next_depth(depth: usize, token: &Token) -> usize {
    match token.kind {
        TokenKind::Punct(b'(') => depth + 1,
        TokenKind::Punct(b')') => depth.saturating_sub(1),
        _ => depth,
    }
}

/// Parts of a condition between these words, outside of parentheses. The AND of a BETWEEN is none.
fn parts<'t>(sql: &[u8], tokens: &'t [Token], word: &str) -> Vec<&'t [Token]> {
    let (mut parts, mut start, mut depth, mut between) = (Vec::new(), 0, 0, false);
    for (at, token) in tokens.iter().enumerate() {
        depth = next_depth(depth, token);
        if depth > 0 {
            continue;
        }
        if token.is_word(sql, "between") {
            between = true;
        } else if token.is_word(sql, "and") && between {
            between = false;
        } else if token.is_word(sql, word) {
            parts.push(&tokens[start..at]);
            start = at + 1;
        }
    }
    parts.push(&tokens[start..]);
    parts
}

/// Without the parentheses around the whole of it.
fn inner(mut tokens: &[Token]) -> &[Token] {
    while let [first, middle @ .., last] = tokens {
        let mut depth = 1;
        let closes_early = first.is(b'(')
            && middle.iter().any(|token| {
                depth = next_depth(depth, token);
                depth == 0
            });
        if !first.is(b'(') || !last.is(b')') || closes_early {
            break;
        }
        tokens = middle;
    }
    tokens
}

/// Whether a condition excludes rows by a value. `x IS NOT NULL` and `a.x = b.y` alone do not.
fn condition(sql: &[u8], tokens: &[Token]) -> bool {
    let tokens = inner(tokens);
    let any = parts(sql, tokens, "or");
    if any.len() > 1 {
        return any.iter().all(|part| condition(sql, part));
    }
    let all = parts(sql, tokens, "and");
    if all.len() > 1 {
        return all.iter().any(|part| condition(sql, part));
    }
    let words = |tail: &[&str]| {
        tokens.len() >= tail.len()
            && tokens[tokens.len() - tail.len()..]
                .iter()
                .zip(tail)
                .all(|(token, word)| token.is_word(sql, word))
    };
    match tokens {
        [] => false,
        [one] => {
            matches!(one.kind, TokenKind::Word | TokenKind::Quoted) && !one.is_word(sql, "true")
        }
        _ if words(&["is", "not", "null"]) => false,
        _ if words(&["is", "null"]) => true,
        several => several.iter().any(|token| {
            let is_value = matches!(token.kind, TokenKind::Literal(_) | TokenKind::Variable);
            is_value || token.is(b'?') || token.is_word(sql, "select")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(sql: &str) -> bool {
        narrows(&[Piece::Sql(sql.into())], true)
    }

    #[test]
    fn a_value_in_the_condition_narrows() {
        for (sql, wanted) in [
            ("SELECT a FROM t", false),
            ("SELECT a FROM t WHERE (`a$enc` IS NOT NULL)", false),
            (
                "SELECT a FROM t WHERE (`a$enc` IS NOT NULL AND (b = ?)) FOR UPDATE",
                true,
            ),
            (
                "SELECT a FROM t WHERE (`a$enc` IS NOT NULL) OR b = 5",
                false,
            ),
            ("SELECT a FROM t WHERE b BETWEEN ? AND ? ORDER BY a", true),
            ("SELECT a FROM t, u WHERE t.id = u.id", false),
            (
                "SELECT a FROM t, u WHERE t.id = u.id AND (t.x IN (?, ?))",
                true,
            ),
            ("SELECT a, (SELECT 1 FROM u WHERE u.id = 5) FROM t", false),
            ("SELECT a FROM t LIMIT 5", true),
            ("SELECT a FROM t WHERE active", true),
            ("SELECT a FROM t WHERE TRUE", false),
            ("SELECT a FROM t WHERE b IS NULL GROUP BY a", true),
            ("SELECT a FROM t WHERE id IN (SELECT id FROM u)", true),
        ] {
            assert_eq!(query(sql), wanted, "{sql}");
        }
    }
}
