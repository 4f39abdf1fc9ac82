//! Whether a statement's text shows certain columns and does nothing else with them.
//!
//! That is known of one form: a single SELECT, without groups, set operations and queries inside,
//! in which the columns are items of their own, and neither their names nor their aliases are
//! anywhere else. A word counts as the name of a column, whatever it means there.

use onionskin_plan::lex::{LexMode, Token, TokenKind, tokens};
use onionskin_schema::same_name;

/// Words of a SELECT that has more to do with its columns than to show them.
const MORE_THAN_SHOWN: [&[u8]; 18] = [
    b"distinct",
    b"distinctrow",
    b"except",
    b"group",
    b"having",
    b"intersect",
    b"into",
    b"minus",
    b"natural",
    b"over",
    b"procedure",
    b"returning",
    b"rollup",
    b"table",
    b"union",
    b"values",
    b"window",
    b"with",
];

/// Words that may stand between SELECT and its items.
const MODIFIERS: [&[u8]; 8] = [
    b"all",
    b"high_priority",
    b"straight_join",
    b"sql_small_result",
    b"sql_big_result",
    b"sql_buffer_result",
    b"sql_no_cache",
    b"sql_cache",
];

/// What a statement does with columns of these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// Nothing in the text names them.
    Unnamed,
    /// It is of the form in which they can only be shown, whether it names them or not.
    Shown,
    /// Anything else.
    Used,
}

/// Reads a statement.
pub(super) fn naming(sql: &[u8], mode: LexMode, names: &[&str]) -> Naming {
    Reader::new(sql, mode, names).map_or(Naming::Used, |reader| reader.naming())
}

struct Reader<'a> {
    sql: &'a [u8],
    tokens: Vec<Token>,
    names: &'a [&'a str],
}

impl<'a> Reader<'a> {
    /// `None`: the text cannot be read for certain.
    fn new(sql: &'a [u8], mode: LexMode, names: &'a [&'a str]) -> Option<Self> {
        let is_unicode = mode.charset.name().starts_with("utf8");
        let tokens = tokens(sql, mode).ok()?;
        let is_plain = !tokens.iter().any(|t| t.kind == TokenKind::Executable);
        let is_read = sql.is_ascii() || is_unicode && std::str::from_utf8(sql).is_ok();
        (is_plain && is_read).then_some(Reader { sql, tokens, names })
    }

    fn naming(&self) -> Naming {
        let all = self.tokens.as_slice();
        match self.is_shown() {
            true => Naming::Shown,
            false if all.iter().any(|token| self.is_named(token)) => Naming::Used,
            false => Naming::Unnamed,
        }
    }

    /// The name that a token is, if it is one.
    fn name(&self, token: &Token) -> Option<String> {
        let text = std::str::from_utf8(token.text(self.sql)).ok()?;
        match token.kind {
            TokenKind::Word => Some(text.to_owned()),
            TokenKind::Quoted => {
                let quote = text.chars().next()?;
                let inside = text.strip_prefix(quote)?.strip_suffix(quote)?;
                Some(inside.replace(&format!("{quote}{quote}"), &quote.to_string()))
            }
            _ => None,
        }
    }

    fn is_named(&self, token: &Token) -> bool {
        let name = self.name(token);
        name.is_some_and(|name| self.names.iter().any(|known| same_name(known, &name)))
    }

    fn is_any(&self, token: &Token, words: &[&[u8]]) -> bool {
        let text = token.text(self.sql);
        token.kind == TokenKind::Word && words.iter().any(|word| text.eq_ignore_ascii_case(word))
    }

    fn is_shown(&self) -> bool {
        let Some((first, mut rest)) = self.tokens.split_first() else {
            return false;
        };
        let says_more = |token: &Token| {
            token.is_word(self.sql, "select") || self.is_any(token, &MORE_THAN_SHOWN)
        };
        if !first.is_word(self.sql, "select") || rest.iter().any(says_more) {
            return false;
        }
        while let Some((modifier, behind)) = rest.split_first()
            && self.is_any(modifier, &MODIFIERS)
        {
            rest = behind;
        }
        let Some(from) = self.end_of_items(rest) else {
            return false;
        };
        let (items, behind) = rest.split_at(from);
        let mut aliases = Vec::new();
        for item in self.items(items) {
            if !item.iter().any(|token| self.is_named(token)) {
                continue;
            }
            match self.bare(item) {
                Some(alias) => aliases.extend(alias),
                None => return false,
            }
        }
        let means_one = |token: &Token| {
            let name = self.name(token);
            name.is_some_and(|name| aliases.iter().any(|alias| same_name(alias, &name)))
        };
        let others = self.items(items).filter(|item| self.bare(item).is_none());
        let mut others = others.flatten().chain(behind);
        !others.any(|token| self.is_named(token) || means_one(token))
    }

    /// The place of FROM behind the items of a SELECT.
    fn end_of_items(&self, tokens: &[Token]) -> Option<usize> {
        let mut depth = 0_usize;
        for (at, token) in tokens.iter().enumerate() {
            match token.kind {
                TokenKind::Punct(b'(') => depth += 1,
                TokenKind::Punct(b')') => depth = depth.checked_sub(1)?,
                _ if depth == 0 && token.is_word(self.sql, "from") => return Some(at),
                _ => {}
            }
        }
        None
    }

    /// The items, which commas part.
    fn items<'t>(&self, tokens: &'t [Token]) -> impl Iterator<Item = &'t [Token]> {
        let mut depth = 0_i64;
        tokens.split(move |token| {
            match token.kind {
                TokenKind::Punct(b'(') => depth += 1,
                TokenKind::Punct(b')') => depth -= 1,
                _ => {}
            }
            depth == 0 && token.is(b',')
        })
    }

    /// Whether an item is one of the columns, perhaps with its table before it and an alias behind
    /// it: that alias.
    fn bare(&self, item: &[Token]) -> Option<Option<String>> {
        let mut at = 0;
        while self.name(item.get(at)?).is_some() && item.get(at + 1).is_some_and(|t| t.is(b'.')) {
            at += 2;
        }
        if !self.is_named(item.get(at)?) {
            return None;
        }
        let mut alias = &item[at + 1..];
        if let Some((word, behind)) = alias.split_first()
            && word.is_word(self.sql, "as")
        {
            alias = behind;
        }
        match alias {
            [] if item.len() == at + 1 => Some(None),
            [alias] => self.name(alias).map(Some),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sql: &str) -> Naming {
        naming(sql.as_bytes(), LexMode::default(), &["email", "name"])
    }

    #[test]
    fn plain_items_are_shown() {
        for sql in [
            "SELECT email FROM users",
            "select `EMAIL` from users where id = 5 order by id limit 3",
            "SELECT u.email AS e, app.u.name n, id FROM users u WHERE id IN (1, 2) FOR UPDATE",
            "SELECT * FROM users",
            "SELECT SQL_NO_CACHE id, UPPER(city), email FROM users JOIN c ON c.id = users.c_id",
            "SELECT 'email', email FROM users WHERE note = 'name'",
            "SELECT id FROM users",
        ] {
            assert_eq!(of(sql), Naming::Shown, "{sql}");
        }
    }

    #[test]
    fn what_a_statement_learns_of_a_value_is_a_use() {
        for sql in [
            "SELECT id FROM users WHERE email = 'a'",
            "SELECT id FROM users WHERE `name` IS NULL",
            "SELECT email FROM users ORDER BY email",
            "SELECT email AS e FROM users ORDER BY e",
            "SELECT email e FROM users ORDER BY E IS NULL",
            "SELECT email AS e, e FROM users",
            "SELECT UPPER(email) FROM users",
            "SELECT email = 'a' FROM users",
            "SELECT email COLLATE utf8mb4_bin FROM users",
            "SELECT email, email LIKE 'a%' FROM users",
            "SELECT MIN(email) FROM users",
            "SELECT COUNT(DISTINCT email) FROM users",
            "SELECT email FROM users GROUP BY 1",
            "SELECT DISTINCT email FROM users",
            "SELECT email FROM users HAVING 1",
            "SELECT email FROM users UNION SELECT 1",
            "SELECT email FROM (SELECT * FROM users) u",
            "SELECT id FROM users JOIN b USING (email)",
            "SELECT 1 FROM a NATURAL JOIN b WHERE name = 1",
            "SELECT email INTO @x FROM users",
            "SELECT @x := email FROM users",
            "SELECT id AS email FROM users",
            "SELECT email.id FROM users email",
            "UPDATE users SET email = 'a'",
            "INSERT INTO users (email) VALUES ('a')",
            "DELETE FROM users WHERE email = 'a'",
            "DELETE FROM users RETURNING email",
            "SELECT /*! email */ id FROM users",
            "SELECT email /*! , 1 */ FROM users",
            "WITH c AS (SELECT email FROM users) SELECT 1",
            "EXPLAIN SELECT email FROM users",
            "SELECT email",
            "SELECT RANK() OVER (ORDER BY email) FROM users",
            "SELECT (email) FROM users",
            "SELECT email 'e' FROM users",
            "SELECT ROW(email, 1) FROM users",
            "HANDLER users READ email = (1)",
        ] {
            assert_eq!(of(sql), Naming::Used, "{sql}");
        }
    }

    #[test]
    fn other_statements_name_nothing() {
        for sql in [
            "DELETE FROM users WHERE id = 5",
            "SELECT COUNT(*) FROM users GROUP BY city",
            "UPDATE users SET city = 'email'",
        ] {
            assert_eq!(of(sql), Naming::Unnamed, "{sql}");
        }
    }
}
