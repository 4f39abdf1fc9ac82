//! What a statement asks about the one before it.

use super::words::{Word, Words};
use crate::lex::{LiteralKind, TokenKind};

/// A thing that can be asked about the last statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// `ROW_COUNT()`
    RowCount,
    /// `FOUND_ROWS()`
    FoundRows,
    /// `@@warning_count`
    WarningCount,
    /// `@@error_count`
    ErrorCount,
    /// Something else.
    Other,
}

/// How a statement relates to the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Question {
    /// It does not ask.
    #[default]
    None,
    /// It does not ask, and MariaDB keeps the warnings: `SELECT`, `SET` and others without tables.
    Keeps,
    /// It does not ask. It prepares a text or executes one: MariaDB keeps the warnings if it keeps
    /// them over that text.
    ByName,
    /// `SHOW WARNINGS`, `SHOW ERRORS`
    Conditions {
        /// `SHOW ERRORS`
        errors_only: bool,
        /// Behind `LIMIT`.
        limit: Option<ShownRows>,
    },
    /// `SHOW COUNT(*) WARNINGS`, `SHOW COUNT(*) ERRORS`
    Count(Item),
    /// `SELECT ROW_COUNT(), @@warning_count`
    Cells(Vec<Item>),
    /// In another form.
    Unclear,
}

/// Behind `LIMIT`: which of the statement's literals is the number of rows, and which the number
/// of those before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownRows {
    /// Index of the number of rows.
    pub count: usize,
    /// Index of the number of rows before them.
    pub offset: Option<usize>,
}

impl Question {
    /// Whether it asks anything.
    pub fn asks(&self) -> bool {
        !matches!(self, Question::None | Question::Keeps | Question::ByName)
    }
}

impl Words<'_> {
    /// What the statement asks about the one before.
    pub(super) fn question(&self) -> Question {
        if self.is(0, "show") {
            return self.shown();
        }
        if self.is(0, "get") && self.says("diagnostics") {
            return Question::Unclear;
        }
        let has_tables = ["from", "table", "tables", "statement"]
            .iter()
            .any(|word| self.says(word));
        if !(0..self.all.len()).any(|at| self.item(at).is_some()) {
            let drops_prepared = self.is(0, "drop") && self.is(1, "prepare");
            return match () {
                () if self.begins(&["prepare", "execute"]) => Question::ByName,
                () if self.begins(&["unlock", "deallocate"]) || drops_prepared => Question::Keeps,
                () if self.is_tableless_verb() && !has_tables => Question::Keeps,
                () => Question::None,
            };
        }
        match self.is(0, "select") && !self.has_executable && !has_tables {
            true => self.cells().unwrap_or(Question::Unclear),
            false => Question::Unclear,
        }
    }

    /// What is asked of `ROW_COUNT()` and the like, if the word at this place does so.
    fn item(&self, at: usize) -> Option<Item> {
        let word = self.all.get(at)?;
        let is_call = self.is_sign(at + 1, b'(');
        if word.is("row_count") && is_call {
            return Some(Item::RowCount);
        }
        if word.is("found_rows") && is_call {
            return Some(Item::FoundRows);
        }
        let name = word.system_variable()?.to_ascii_lowercase();
        let scopes: [&[u8]; 2] = [b"session.", b"local."];
        let name = scopes
            .iter()
            .find_map(|scope| name.strip_prefix(*scope))
            .unwrap_or(&name);
        let name = match name {
            [b'`', inner @ .., b'`'] => inner,
            bare => bare,
        };
        match name {
            b"warning_count" => Some(Item::WarningCount),
            b"error_count" => Some(Item::ErrorCount),
            _ => None,
        }
    }

    /// Whether it begins as statements do that need no tables. MariaDB keeps its warnings over
    /// them.
    fn is_tableless_verb(&self) -> bool {
        const VERBS: [&str; 10] = [
            "select",
            "set",
            "do",
            "use",
            "begin",
            "start",
            "commit",
            "rollback",
            "savepoint",
            "release",
        ];
        !self.has_executable && self.begins(&VERBS)
    }

    /// The items of a select list: each one of the things that can be asked about, with a name of
    /// its own or without, or an expression that asks nothing.
    fn cells(&self) -> Option<Question> {
        let mut items = Vec::new();
        let (mut at, mut depth) = (1, 0usize);
        while at < self.all.len() {
            let end = (at..self.all.len())
                .find(|&place| {
                    let word = &self.all[place];
                    depth += usize::from(word.is_sign(b'('));
                    depth = depth.saturating_sub(usize::from(word.is_sign(b')')));
                    depth == 0 && word.is_sign(b',')
                })
                .unwrap_or(self.all.len());
            items.push(match self.item(at) {
                Some(item) => {
                    let is_call = matches!(item, Item::RowCount | Item::FoundRows);
                    let behind = at + if is_call { 3 } else { 1 };
                    let is_whole = !is_call || self.is_sign(at + 2, b')');
                    (is_whole && self.is_alias(behind, end)).then_some(item)?
                }
                None if (at..end).any(|place| self.item(place).is_some()) => return None,
                None => Item::Other,
            });
            at = end + 1;
        }
        Some(Question::Cells(items))
    }

    /// Whether a column's name in the result stands here, or nothing.
    fn is_alias(&self, from: usize, end: usize) -> bool {
        let from = from + usize::from(from < end && self.is(from, "as"));
        let is_name =
            |w: &Word| matches!(w.kind, TokenKind::Word | TokenKind::Quoted) && !w.is("as");
        match self.all.get(from..end) {
            Some([]) => true,
            Some([name]) => is_name(name),
            _ => false,
        }
    }

    /// `SHOW WARNINGS`, `SHOW ERRORS`, and the counts of them.
    fn shown(&self) -> Question {
        if self.is(1, "count") {
            let is_star = self.is_sign(2, b'(') && self.is_sign(3, b'*') && self.is_sign(4, b')');
            return match self.all.get(5) {
                Some(word) if is_star && self.all.len() == 6 && word.is("warnings") => {
                    Question::Count(Item::WarningCount)
                }
                Some(word) if is_star && self.all.len() == 6 && word.is("errors") => {
                    Question::Count(Item::ErrorCount)
                }
                _ => Question::Unclear,
            };
        }
        let errors_only = self.is(1, "errors");
        if !errors_only && !self.is(1, "warnings") {
            return Question::None;
        }
        let number = |at: usize| {
            let word = self.all.get(at)?;
            let is_integer = word.kind == TokenKind::Literal(LiteralKind::Integer);
            word.literal.filter(|_| is_integer)
        };
        let is_limit = self.is(2, "limit");
        let limit = match (self.all.len(), number(3), number(5)) {
            (2, ..) => None,
            (4, Some(count), _) if is_limit => Some((count, None)),
            (6, Some(offset), Some(count)) if is_limit && self.is_sign(4, b',') => {
                Some((count, Some(offset)))
            }
            (6, Some(count), Some(offset)) if is_limit && self.is(4, "offset") => {
                Some((count, Some(offset)))
            }
            _ => return Question::Unclear,
        };
        let limit = limit.map(|(count, offset)| ShownRows { count, offset });
        Question::Conditions { errors_only, limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Facts;
    use crate::lex::LexMode;

    fn facts(sql: &str) -> Facts {
        Facts::read(sql.as_bytes(), LexMode::default())
    }

    #[test]
    fn questions_are_told_from_other_statements() {
        for sql in [
            "SELECT a FROM t",
            "UPDATE t SET row_count = 1",
            "SELECT error_count FROM jobs",
            "UPDATE jobs SET warning_count = 1",
            "SELECT 'ROW_COUNT()' FROM t",
            "SHOW TABLES",
            "SET @a = (SELECT b FROM t)",
            "SET STATEMENT max_statement_time = 1 FOR INSERT INTO t VALUES (1)",
            "COMMIT /*!50000 AND CHAIN */",
        ] {
            assert_eq!(facts(sql).question, Question::None, "{sql}");
        }
        for sql in [
            "SELECT 1",
            "/* app */ SELECT 'from'",
            "SET autocommit = 1",
            "BEGIN",
            "START TRANSACTION",
            "UNLOCK TABLES",
            "USE d",
        ] {
            assert_eq!(facts(sql).question, Question::Keeps, "{sql}");
        }
        let conditions = |errors_only, limit: Option<(usize, Option<usize>)>| {
            let limit = limit.map(|(count, offset)| ShownRows { count, offset });
            Question::Conditions { errors_only, limit }
        };
        for (sql, asked) in [
            ("SHOW WARNINGS", conditions(false, None)),
            ("/* app */ show errors", conditions(true, None)),
            ("SHOW WARNINGS LIMIT 7", conditions(false, Some((0, None)))),
            (
                "SHOW ERRORS LIMIT 7 , 8",
                conditions(true, Some((1, Some(0)))),
            ),
            (
                "SHOW WARNINGS LIMIT 7 OFFSET 8",
                conditions(false, Some((0, Some(1)))),
            ),
            (
                "SHOW COUNT(*) WARNINGS",
                Question::Count(Item::WarningCount),
            ),
            ("SHOW COUNT( * ) ERRORS", Question::Count(Item::ErrorCount)),
            ("SHOW WARNINGS LIMIT ?", Question::Unclear),
            ("SHOW WARNINGS LIKE 'a'", Question::Unclear),
            ("SHOW WARNINGS LIMIT ROWS EXAMINED 7", Question::Unclear),
            ("SHOW COUNT(*)", Question::Unclear),
        ] {
            assert_eq!(facts(sql).question, asked, "{sql}");
        }
        for (sql, items) in [
            (
                "SELECT ROW_COUNT(), LAST_INSERT_ID()",
                vec![Item::RowCount, Item::Other],
            ),
            (
                "select @@warning_count , @@session.error_count e",
                vec![Item::WarningCount, Item::ErrorCount],
            ),
            (
                "select row_count () as `n`, found_rows() f, IF(1, 2, 3)",
                vec![Item::RowCount, Item::FoundRows, Item::Other],
            ),
        ] {
            assert_eq!(facts(sql).question, Question::Cells(items), "{sql}");
        }
        for sql in [
            "SELECT IF(ROW_COUNT() > 1, 2, 3)",
            "SELECT ROW_COUNT() + 1",
            "SELECT @@warning_count > 1",
            "SELECT ROW_COUNT() FROM t",
            "SELECT ROW_COUNT(), f(@@warning_count)",
            "INSERT INTO log VALUES (ROW_COUNT())",
            "SET @n = ROW_COUNT()",
            "GET DIAGNOSTICS @n = NUMBER",
            "SELECT /*!50000 ROW_COUNT() */",
        ] {
            assert_eq!(facts(sql).question, Question::Unclear, "{sql}");
        }
    }
}
