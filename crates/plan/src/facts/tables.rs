//! The words of a statement that may name a table.

use super::words::{Word, Words};
use crate::lex::TokenKind;
use onionskin_schema::folded;

impl Words<'_> {
    /// The names behind FROM, JOIN, INTO, UPDATE and the like, and in lists of them. There may be
    /// others among them, such as `created` of `EXTRACT(YEAR FROM created)`.
    pub(super) fn table_words(&self) -> Vec<String> {
        const BEFORE: [&str; 10] = [
            "from",
            "join",
            "straight_join",
            "into",
            "update",
            "insert",
            "replace",
            "table",
            "tables",
            "using",
        ];
        const BETWEEN: [&str; 7] = [
            "low_priority",
            "high_priority",
            "delayed",
            "quick",
            "ignore",
            "only",
            "lateral",
        ];
        const ENDS: [&str; 10] = [
            "where", "set", "on", "group", "order", "limit", "having", "values", "value", "select",
        ];
        let is_one = |word: &Word, list: &[&str]| list.iter().any(|w| word.is(w));
        let mut found: Vec<String> = Vec::new();
        let (mut is_next, mut in_list) = (false, false);
        for (at, word) in self.all.iter().enumerate() {
            let is_name = matches!(word.kind, TokenKind::Word | TokenKind::Quoted);
            if is_one(word, &BEFORE) {
                (is_next, in_list) = (true, true);
            } else if is_one(word, &ENDS) {
                (is_next, in_list) = (false, false);
            } else if word.is_sign(b'(') {
                // a list of columns, unless tables are still to come
                in_list &= is_next;
            } else if is_one(word, &BETWEEN) {
                // a modifier
            } else if is_next && is_name {
                let text = folded(&String::from_utf8_lossy(word.text));
                found.push(text.trim_matches(['`', '"']).to_owned());
                // `database.table`
                is_next = self.is_sign(at + 1, b'.');
            } else if !word.is_sign(b'.') {
                is_next = in_list && word.is_sign(b',');
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use crate::facts::Facts;
    use crate::lex::LexMode;

    fn facts(sql: &str) -> Facts {
        Facts::read(sql.as_bytes(), LexMode::default())
    }

    #[test]
    fn where_tables_stand() {
        for (sql, words) in [
            (
                "SELECT a, b FROM t, d.u AS x, `V` WHERE c = 'w'",
                vec!["t", "d", "u", "v"],
            ),
            ("INSERT IGNORE INTO t (a, y) VALUES ('x', y)", vec!["t"]),
            ("INSERT t VALUES (1)", vec!["t"]),
            ("UPDATE LOW_PRIORITY t SET a = b, c = d", vec!["t"]),
            ("DELETE FROM t WHERE a IN (SELECT b FROM u)", vec!["t", "u"]),
            (
                "SELECT 1 FROM (a LEFT JOIN b ON a.c = b.c), e",
                vec!["a", "b"],
            ),
            ("SELECT 'x'", vec![]),
        ] {
            assert_eq!(facts(sql).table_words, words, "{sql}");
        }
    }
}
