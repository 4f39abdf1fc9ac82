//! How a statement changes rows: with IGNORE, several at once, to computed values.

use super::words::Words;
use crate::lex::TokenKind;

impl Words<'_> {
    /// IGNORE among the modifiers behind the verb.
    pub(super) fn says_ignore(&self) -> bool {
        let head = self.all.iter().take(4);
        let mut head = head.take_while(|w| !w.is_sign(b'('));
        head.any(|w| w.is("ignore"))
    }

    /// `), (` outside of all parentheses.
    pub(super) fn has_several_rows(&self) -> bool {
        let mut depth = 0usize;
        self.all.iter().enumerate().any(|(at, word)| {
            depth += usize::from(word.is_sign(b'('));
            if !word.is_sign(b')') {
                return false;
            }
            depth = depth.saturating_sub(1);
            depth == 0 && self.is_sign(at + 1, b',') && self.is_sign(at + 2, b'(')
        })
    }

    /// A parenthesis or SET before the rows.
    pub(super) fn lists_columns(&self) -> bool {
        const ROWS: [&str; 5] = ["values", "value", "select", "with", "table"];
        let mut head = self.all.iter();
        let found =
            head.find(|w| w.is_sign(b'(') || w.is("set") || ROWS.iter().any(|rows| w.is(rows)));
        found.is_some_and(|w| w.is_sign(b'(') || w.is("set"))
    }

    /// Whether several assignments stand behind SET, and one is more than a constant.
    pub(super) fn computes_among_others(&self) -> bool {
        const ENDS: [&str; 3] = ["where", "order", "limit"];
        let from = self.all.iter().position(|w| w.is("set"));
        let from = from.unwrap_or(self.all.len());
        let (mut depth, mut several, mut computes) = (0usize, false, false);
        for (at, word) in self.all.iter().enumerate().skip(from) {
            if depth == 0 && ENDS.iter().any(|end| word.is(end)) {
                break;
            }
            // behind it, a minus is a constant's
            let is_begun = !self.is_sign(at - usize::from(at > 0), b'=');
            depth += usize::from(word.is_sign(b'('));
            depth = depth.saturating_sub(usize::from(word.is_sign(b')')));
            several |= depth == 0 && word.is_sign(b',');
            computes |= match word.kind {
                TokenKind::Punct(b'+' | b'-') => is_begun,
                TokenKind::Punct(b'*' | b'/' | b'%' | b'(') => true,
                TokenKind::Word => ["default", "div", "mod"].iter().any(|w| word.is(w)),
                _ => false,
            };
        }
        several && computes
    }

    /// Where `ON DUPLICATE` stands.
    fn duplicate_clause(&self) -> Option<usize> {
        let mut all = 0..self.all.len();
        all.find(|at| self.is(*at, "on") && self.is(at + 1, "duplicate"))
    }

    /// Whether rows that are met may be changed: `ON DUPLICATE KEY UPDATE`.
    pub(super) fn updates_met_rows(&self) -> bool {
        self.duplicate_clause().is_some()
    }

    /// How often `VALUES(` stands behind `ON DUPLICATE`.
    pub(super) fn values_calls(&self) -> usize {
        let end = self.all.len();
        let is_call = |at: &usize| self.is(*at, "values") && self.is_sign(at + 1, b'(');
        let clause = self.duplicate_clause().unwrap_or(end);
        (clause..end).filter(is_call).count()
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
    fn rows_are_counted_outside_of_parentheses() {
        for (sql, several) in [
            ("INSERT INTO t VALUES ( ? )", false),
            ("INSERT INTO t (a, b) VALUES (LOWER(?), ?)", false),
            ("INSERT INTO t VALUES (?, (?), (?))", false),
            ("INSERT INTO t VALUES (?), (LOWER(?))", true),
            ("/* app */ INSERT INTO t VALUES(?)\n,(?)", true),
            ("INSERT INTO `a),(b` VALUES (?)", false),
            ("INSERT INTO t VALUES ('), (')", false),
            (
                "INSERT INTO t VALUES (?) ON DUPLICATE KEY UPDATE a = (?), b = (?)",
                false,
            ),
        ] {
            assert_eq!(facts(sql).several_rows, several, "{sql}");
            assert_eq!(facts(sql).is_lenient(None), several, "{sql}");
        }
        assert!(facts("UPDATE t SET a = NULL").is_lenient(None));
    }

    #[test]
    fn columns_are_listed_before_the_rows() {
        for (sql, listed) in [
            ("INSERT INTO t VALUES (1, 2)", false),
            ("INSERT t (a) VALUES (1)", true),
            ("REPLACE INTO db.`t`(a, b) VALUE (1, 2)", true),
            ("INSERT INTO t SET a = 1", true),
            ("INSERT INTO `set` VALUES (1)", false),
            ("INSERT INTO t SELECT (1)", false),
            ("UPDATE t SET a = 1", false),
        ] {
            assert_eq!(facts(sql).lists_columns, listed, "{sql}");
        }
    }

    #[test]
    fn rows_that_are_met() {
        for (sql, updates) in [
            ("INSERT IGNORE INTO t VALUES (1)", false),
            (
                "INSERT IGNORE INTO t VALUES ('on duplicate key update')",
                false,
            ),
            ("INSERT IGNORE INTO t (duplicate) VALUES (1)", false),
            (
                "INSERT IGNORE INTO t VALUES (1) ON/**/DUPLICATE KEY UPDATE a = 1",
                true,
            ),
            (
                "INSERT INTO t VALUES (1) /*!50000 ON DUPLICATE KEY UPDATE a = 1 */",
                true,
            ),
        ] {
            assert_eq!(facts(sql).updates_met_rows, updates, "{sql}");
        }
    }

    #[test]
    fn assignments_that_are_computed() {
        for (sql, computes) in [
            ("UPDATE t SET a = 1, b = -2 WHERE c = d + 1", false),
            ("UPDATE t SET a = a + 1 WHERE b = 2", false),
            ("UPDATE t SET a = 1, b = b * 2", true),
            ("UPDATE t SET a = DEFAULT, b = 'x'", true),
            ("UPDATE t SET a = 'a + b', b = 2", false),
            ("UPDATE t SET a = b - 1, b = 2", true),
            ("INSERT INTO t SET a = 1, b = 1 + 1", false),
        ] {
            assert_eq!(facts(sql).computes_among_others, computes, "{sql}");
        }
    }
}
