//! The words of a text that cannot be cut into tokens: the session's character set is not known
//! here, the text breaks off within a string, or it is a stored program.
//!
//! Nothing is told apart here: a word of a string or a comment counts like any other. So it is
//! found in them whatever a server may take for a name, and sometimes more.

use onionskin_schema::Policy;

pub(super) struct Words {
    /// The text in small letters.
    text: Vec<u8>,
}

impl Words {
    pub(super) fn of(sql: &[u8]) -> Self {
        Words {
            text: sql.to_ascii_lowercase(),
        }
    }

    /// Whether it may ask about the statement before it.
    pub(super) fn ask(&self) -> bool {
        const WORDS: [&[u8]; 7] = [
            b"row_count",
            b"found_rows",
            b"warning_count",
            b"error_count",
            b"warnings",
            b"errors",
            b"diagnostics",
        ];
        const VERBS: [&[u8]; 3] = [b"show", b"select", b"get"];
        let mut words = self.list().filter(|word| !word.is_empty());
        let asks = words.next().is_some_and(|first| VERBS.contains(&first));
        asks && words.any(|word| WORDS.contains(&word))
    }

    /// Whether nothing stands in it but such a question: no word that could be a table's.
    pub(super) fn only_ask(&self) -> bool {
        const WORDS: [&[u8]; 12] = [
            b"show",
            b"select",
            b"count",
            b"limit",
            b"session",
            b"local",
            b"row_count",
            b"found_rows",
            b"warning_count",
            b"error_count",
            b"warnings",
            b"errors",
        ];
        let is_number = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
        self.text.is_ascii()
            && self
                .list()
                .all(|word| word.is_empty() || is_number(word) || WORDS.contains(&word))
    }

    /// What stands between blanks, punctuation and letters beyond ASCII: in some character sets the
    /// bytes of those are blanks.
    fn list(&self) -> impl Iterator<Item = &[u8]> {
        let is_word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$');
        self.text
            .split(move |b| !is_word(b))
            .filter(|word| !word.is_empty())
    }

    /// Whether a text may be prepared here that nobody reads, or BINLOG gives rows. Privileges have
    /// the words as well, and stored programs are the server's own.
    pub(super) fn prepares(&self) -> bool {
        const PROGRAMS: [&[u8]; 5] = [b"procedure", b"function", b"trigger", b"event", b"package"];
        let is_version = |word: &&[u8]| *word == b"m" || word.iter().all(u8::is_ascii_digit);
        let mut words = self.list().filter(|word| !is_version(word));
        let is_other = match words.next().unwrap_or_default() {
            b"grant" | b"revoke" => !self.goes_on(),
            b"create" => words.take(12).any(|word| PROGRAMS.contains(&word)),
            _ => false,
        };
        !is_other
            && self
                .list()
                .any(|word| matches!(word, b"prepare" | b"execute" | b"binlog"))
    }

    /// Whether a column may be meant to be protected: no server knows these words.
    pub(super) fn protects(&self) -> bool {
        let mut before = b"".as_slice();
        self.list().any(|word| {
            let protects = before == b"encrypted" && word == b"for";
            before = word;
            protects
        })
    }

    /// Whether another statement may follow the first.
    fn goes_on(&self) -> bool {
        let end = memchr::memchr(b';', &self.text);
        end.is_some_and(|end| self.text[end..].iter().any(u8::is_ascii_alphanumeric))
    }

    /// Whether the table's name may stand in the text.
    pub(super) fn may_name(&self, name: &str) -> bool {
        if !name.is_ascii() {
            return !self.text.is_ascii();
        }
        let name = name.to_ascii_lowercase();
        let stands = |name: &str| memchr::memmem::find(&self.text, name.as_bytes()).is_some();
        match name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$'))
        {
            true => self.list().any(|word| word == name.as_bytes()),
            // one that needs quotes
            false => ["", "`", "\""]
                .iter()
                .any(|quote| stands(&name.replace(quote, &quote.repeat(2)))),
        }
    }

    /// Whether the text may have values for a table that the policy concerns, be it there or not.
    /// `database` is the current one.
    pub(super) fn may_fill(&self, policy: &Policy, database: Option<&str>) -> bool {
        const OTHERS: [&[u8]; 9] = [
            b"set",
            b"use",
            b"show",
            b"begin",
            b"start",
            b"commit",
            b"rollback",
            b"kill",
            b"release",
        ];
        if policy.is_empty() {
            return false;
        }
        let names: Vec<&str> = self
            .list()
            .filter_map(|w| std::str::from_utf8(w).ok())
            .collect();
        let is_other = names
            .first()
            .is_some_and(|word| OTHERS.contains(&word.as_bytes()));
        let databases = names.iter().copied().chain(database);
        (!is_other || self.goes_on()) && policy.concerns_any(databases, names.iter().copied())
    }

    /// Whether the text may make or change a table that the policy concerns. `database` is the
    /// current one.
    pub(super) fn may_define(&self, policy: &Policy, database: Option<&str>) -> bool {
        const BETWEEN: [&[u8]; 6] = [
            b"or",
            b"replace",
            b"temporary",
            b"ignore",
            b"online",
            b"offline",
        ];
        if policy.is_empty() {
            return false;
        }
        let words: Vec<&[u8]> = self.list().collect();
        // the version of an executable comment may stand between them
        let is_between =
            |word: &[u8]| BETWEEN.contains(&word) || word[0].is_ascii_digit() || word == b"m";
        let defines = (0..words.len()).any(|at| {
            // only behind these: the text is passed once, whatever is in it
            if !matches!(words[at], b"create" | b"alter" | b"rename") {
                return false;
            }
            let behind = words[at + 1..].iter().find(|word| !is_between(word));
            let behind: &[u8] = behind.copied().unwrap_or_default();
            behind == b"table" || words[at] == b"rename" && behind == b"tables"
        });
        if !defines || !self.text.is_ascii() {
            return defines;
        }
        let text = |word| std::str::from_utf8(word).unwrap_or_default();
        let quoted = self.text.split(|b| matches!(b, b'`' | b'"'));
        let names: Vec<&str> = words.iter().copied().chain(quoted).map(text).collect();
        let databases = names.iter().copied().chain(database);
        policy.concerns_any(databases, names.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn names_in_texts_of_any_kind() {
        let names = |sql: &[u8], name: &str| Words::of(sql).may_name(name);
        assert!(names(b"SELECT * FROM Users WHERE a = 'it", "users"));
        // a blank in latin1
        assert!(names(b"SELECT * FROM\xa0users", "users"));
        assert!(names(b"SELECT 'users", "USERS"));
        assert!(!names(b"SELECT * FROM users_2", "users"));
        assert!(names(b"SELECT * FROM `my Table`", "My table"));
        assert!(names(b"SELECT * FROM `a``b`", "a`b"));
        assert!(!names(b"SELECT * FROM `ab`", "a`b"));
        assert!(names(b"SELECT * FROM stra\xdfe", "stra\u{df}e"));
        assert!(!names(b"SELECT * FROM other", "stra\u{df}e"));
    }

    #[test]
    fn statements_for_prepare() {
        let prepares = |sql: &[u8]| Words::of(sql).prepares();
        assert!(prepares(b"/* app */ EXECUTE IMMEDIATE CONCAT('a', 'b"));
        assert!(prepares(b"SELECT 1; PREPARE s FROM @q; '"));
        assert!(!prepares(b"GRANT EXECUTE ON x TO '; "));
        assert!(prepares(b"GRANT ALL ON x TO y; EXECUTE s; '"));
        assert!(prepares(
            b"CREATE TABLE x (a INT); IF 1 THEN EXECUTE s; END IF"
        ));
        assert!(!prepares(b"SELECT executed FROM t WHERE a = '"));
        assert!(!prepares(
            b"/*!50003 CREATE*/ /*!50003 PROCEDURE p() EXECUTE s; */"
        ));
        assert!(prepares(b"/*!50003 IF 1 THEN EXECUTE s; END IF */"));
    }

    #[test]
    fn definitions_that_the_policy_concerns() {
        let columns = BTreeMap::from([("*".to_owned(), vec!["eq".to_owned()])]);
        let sections = BTreeMap::from([
            ("app.users".to_owned(), columns.clone()),
            ("hr.*".to_owned(), columns),
        ]);
        let policy = Policy::parse(&sections).unwrap();
        let defines =
            |sql: &str, database| Words::of(sql.as_bytes()).may_define(&policy, Some(database));
        assert!(defines(
            "CREATE PROCEDURE p() CREATE TABLE users (a INT)",
            "app"
        ));
        assert!(defines(
            "/*!50000 CREATE /*!50000 TABLE hr.x (a INT",
            "other"
        ));
        assert!(defines("ALTER IGNORE TABLE `x` ADD b INT 'a", "hr"));
        assert!(defines("IF 1 THEN RENAME TABLE x TO users; END IF", "app"));
        assert!(!defines("IF 1 THEN RENAME TABLE x TO y; END IF", "app"));
        assert!(!defines(
            "CREATE PROCEDURE p() CREATE TEMPORARY TABLE tmp (a INT)",
            "app"
        ));
        assert!(!defines("CREATE PROCEDURE p() TRUNCATE TABLE users", "app"));
        let empty = Policy::default();
        assert!(!Words::of(b"CREATE TABLE x").may_define(&empty, None));
    }
}
