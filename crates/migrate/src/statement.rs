//! What a statement in the binary log means for a migration.
//!
//! Rows come as rows; what comes as text is a definition, or a change of a session that does not
//! log rows. Texts are read just far enough to tell that a statement does *not* concern the table.
//! Whatever names it and is not known to be harmless ends the migration.

use crate::trigger_text::head;
use onionskin_schema::{folded, same_name};

/// What a statement is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// It does not change the table.
    Foreign,
    /// It changes rows, and does not name the table: a view, a trigger or a routine may lead to it.
    Unnamed(String),
    /// Ours: the new table has taken the old one's place.
    Renamed,
    /// It makes or drops triggers, maybe of the old table: its first word.
    Triggers(String),
    /// It changes the old table, or may: its first word.
    Changes(String),
}

/// Whose statements are looked for.
pub(crate) struct Tables<'a> {
    pub database: &'a str,
    pub table: &'a str,
    pub new: &'a str,
    /// What our own definitions begin with: [`mark`].
    pub mark: &'a str,
}

/// What a migration's own definitions of foreign keys begin with in the binary log, by its id. Who
/// goes on after a kill meets those of the killed process there.
pub(crate) fn mark(id: &str) -> String {
    format!("/* onionskin {id} */ ")
}

/// A piece of a statement. Strings are left out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A word as it stands, in capitals when it is compared.
    Word(String),
    /// In backquotes or double quotes.
    Quoted(String),
    Sign(char),
}

impl Token {
    /// Whether it is this word, in any case and not quoted.
    pub fn is(&self, word: &str) -> bool {
        matches!(self, Token::Word(text) if text.eq_ignore_ascii_case(word))
    }

    /// Whether it is one of these words.
    pub fn is_one_of(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    /// Whether it is this name, quoted or not.
    pub fn names(&self, name: &str) -> bool {
        match self {
            Token::Word(text) | Token::Quoted(text) => same_name(text, name),
            Token::Sign(_) => false,
        }
    }
}

/// Statements that leave the rows and the definition of every table as they are.
const HARMLESS: [&str; 12] = [
    "OPTIMIZE",
    "CHECK",
    "CHECKSUM",
    "REPAIR",
    "FLUSH",
    "GRANT",
    "REVOKE",
    "SET",
    "USE",
    "COMMIT",
    "SAVEPOINT",
    "PURGE",
];

/// Statements that change rows, be it through a routine.
const CHANGES_ROWS: [&str; 9] = [
    "INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "CALL", "SELECT", "WITH", "DO",
];

/// What CREATE, ALTER and DROP make, change and drop.
const KINDS: [&str; 17] = [
    "TABLE",
    "INDEX",
    "TRIGGER",
    "DATABASE",
    "SCHEMA",
    "TEMPORARY",
    "VIEW",
    "PROCEDURE",
    "FUNCTION",
    "PACKAGE",
    "EVENT",
    "USER",
    "ROLE",
    "SERVER",
    "SEQUENCE",
    "TABLESPACE",
    "INSTANCE",
];

/// The tokens of a text, and whether they may be others than the server reads.
pub(crate) fn read(sql: &str) -> (Vec<Token>, bool) {
    let mut reader = Reader::default();
    reader.read(sql);
    (reader.tokens, reader.unclear)
}

/// Judges a statement of a session whose database was `database`.
pub(crate) fn judge(sql: &str, database: &str, tables: &Tables<'_>) -> Judged {
    if sql.starts_with(tables.mark) {
        return Judged::Foreign;
    }
    let mut reader = Reader::default();
    reader.read(sql);
    let mut tokens = reader.tokens.as_slice();
    // MariaDB: settings for one statement, which follows.
    if let [set, statement, ..] = tokens
        && set.is("SET")
        && statement.is("STATEMENT")
    {
        let at = tokens.iter().position(|token| token.is("FOR"));
        tokens = at.map_or(&[][..], |at| &tokens[at + 1..]);
    }
    let verb = match tokens.first() {
        Some(Token::Word(word)) => word.to_ascii_uppercase(),
        _ => String::new(),
    };
    let here = same_name(database, tables.database);
    let names = |name: &str, tokens: &[Token]| match reader.unclear {
        // What is text and what is a name cannot be told, so any text counts.
        true => sql.contains('\u{fffd}') && !name.is_ascii() || folded(sql).contains(&folded(name)),
        false => mentions(tokens, tables.database, name, here),
    };
    let changes = || Judged::Changes(verb.clone());
    let kind = kind(tokens);
    let is_kind = |kinds: &[&str]| kind.is_some_and(|at| tokens[at].is_one_of(kinds));
    if let Some(head) = head(sql.as_bytes()) {
        // The body is none of ours: the server runs it, and logs the rows.
        let is_in = |other: &str| same_name(other, tables.database);
        let is_ours = same_name(&head.table, tables.table)
            && head.database.as_deref().map_or(here, is_in)
            || head.table.contains('\u{fffd}');
        return match is_ours {
            true => Judged::Triggers(verb),
            false => Judged::Foreign,
        };
    }
    let is_definition = ["CREATE", "ALTER", "DROP"].contains(&verb.as_str());
    if verb == "DROP" && is_kind(&["DATABASE", "SCHEMA"]) {
        let is_ours = tokens.iter().any(|token| token.names(tables.database)) || reader.unclear;
        return if is_ours { changes() } else { Judged::Foreign };
    }
    if verb == "DROP" && is_kind(&["TRIGGER"]) {
        return Judged::Triggers(verb);
    }
    if !names(tables.table, tokens) {
        return match CHANGES_ROWS.contains(&verb.as_str()) {
            true => Judged::Unnamed(verb),
            false => Judged::Foreign,
        };
    }
    match verb.as_str() {
        "RENAME" if tokens.get(1).is_some_and(|token| token.is("USER")) => Judged::Foreign,
        "RENAME" if names(tables.new, tokens) => Judged::Renamed,
        "ANALYZE" => {
            let mut words = tokens[1..].iter();
            let next = words.find(|token| !token.is_one_of(&["NO_WRITE_TO_BINLOG", "LOCAL"]));
            match next.is_some_and(|token| token.is_one_of(&["TABLE", "TABLES"])) {
                true => Judged::Foreign,
                // MariaDB runs the statement that it analyzes.
                false => changes(),
            }
        }
        // Views, procedures and tables that only read it. A trigger is bound to it.
        _ if is_definition && kind.is_some() && !is_kind(&["TABLE", "INDEX", "TRIGGER"]) => {
            Judged::Foreign
        }
        "CREATE" | "ALTER" if is_kind(&["TABLE"]) && !reader.unclear => {
            let at = kind.unwrap_or_default() + 1;
            let rest = &tokens[at.min(tokens.len())..];
            let begin = rest
                .iter()
                .position(|token| !token.is_one_of(&["IF", "NOT", "EXISTS"]))
                .unwrap_or(rest.len());
            let rest = &rest[begin..];
            // The name and its database.
            let length = match rest.get(1) {
                Some(Token::Sign('.')) => 3,
                _ => 1,
            };
            let (object, rest) = rest.split_at(length.min(rest.len()));
            let is_about = mentions(object, tables.database, tables.table, here);
            // Foreign keys that point at it; partitions that are exchanged with it; another table
            // takes its name.
            let binds = rest
                .iter()
                .any(|token| token.is_one_of(&["REFERENCES", "EXCHANGE", "RENAME", "UNION"]));
            match is_about || binds {
                true => changes(),
                false => Judged::Foreign,
            }
        }
        verb if HARMLESS.contains(&verb) => Judged::Foreign,
        _ => changes(),
    }
}

/// Whether a table is named, alone in a session of its database or with the database.
fn mentions(tokens: &[Token], database: &str, name: &str, here: bool) -> bool {
    tokens.iter().enumerate().any(|(at, token)| {
        if !token.names(name) {
            return false;
        }
        match at.checked_sub(1).map(|before| &tokens[before]) {
            Some(Token::Sign('.')) => at
                .checked_sub(2)
                .is_none_or(|before| tokens[before].names(database)),
            _ => here,
        }
    })
}

/// Where the word stands that says what is created, altered or dropped.
fn kind(tokens: &[Token]) -> Option<usize> {
    let mut at = 1;
    while let Some(token) = tokens.get(at) {
        match token {
            // ALGORITHM = …, DEFINER = name @ host
            Token::Sign('=') => at += 1,
            Token::Sign('@') => at += 1,
            token if token.is_one_of(&KINDS) => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

#[derive(Default)]
struct Reader {
    tokens: Vec<Token>,
    /// Where strings end depends on a setting that the log does not tell in the text, or a name
    /// cannot be read.
    unclear: bool,
}

impl Reader {
    fn read(&mut self, sql: &str) {
        self.unclear = sql.contains('\u{fffd}');
        let mut rest = sql;
        while let Some(c) = rest.chars().next() {
            let is_comment = rest.starts_with('#')
                || rest
                    .strip_prefix("--")
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
            if is_comment {
                rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
            } else if let Some(inside) = rest
                .strip_prefix("/*!")
                .or_else(|| rest.strip_prefix("/*M!"))
            {
                // Its text is run, by versions from a number on.
                rest = inside.trim_start_matches(|c: char| c.is_ascii_digit());
            } else if let Some(behind) = rest.strip_prefix("*/") {
                rest = behind;
            } else if let Some(inside) = rest.strip_prefix("/*") {
                rest = inside.split_once("*/").map_or("", |(_, rest)| rest);
            } else if matches!(c, '\'' | '"' | '`') {
                rest = self.quoted(&rest[1..], c);
            } else if is_word(c) {
                let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                self.tokens.push(Token::Word(rest[..end].to_owned()));
                rest = &rest[end..];
            } else {
                if !c.is_whitespace() {
                    self.tokens.push(Token::Sign(c));
                }
                rest = &rest[c.len_utf8()..];
            }
        }
    }

    /// What is in quotes; returns what is behind.
    fn quoted<'a>(&mut self, text: &'a str, quote: char) -> &'a str {
        let mut content = String::new();
        let mut rest = text;
        loop {
            let Some(end) = rest.find(quote) else {
                self.unclear = true;
                return "";
            };
            content.push_str(&rest[..end]);
            rest = &rest[end + 1..];
            match rest.strip_prefix(quote) {
                Some(behind) => {
                    content.push(quote);
                    rest = behind;
                }
                None => break,
            }
        }
        // Whether it escapes depends on NO_BACKSLASH_ESCAPES.
        self.unclear |= quote != '`' && content.contains('\\');
        // In double quotes stands a string or, with ANSI_QUOTES, a name.
        if quote != '\'' {
            self.tokens.push(Token::Quoted(content));
        }
        rest
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii() && !c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_database(database: &str, sql: &str) -> Judged {
        let tables = Tables {
            database: "d",
            table: "t",
            new: "t_onionskin_new",
            mark: "/* onionskin 0123456789abcdef */ ",
        };
        judge(sql, database, &tables)
    }

    #[test]
    fn whatever_may_change_the_table_is_a_change() {
        for sql in [
            "ALTER TABLE `t` ADD COLUMN c INT",
            "truncate d.t",
            "CREATE UNIQUE INDEX i ON t(a)",
            "INSERT INTO T VALUES (1)",
            "/* app */ TRUNCATE TABLE t",
            "/* x */ INSERT INTO T VALUES (1)",
            "-- x\nTRUNCATE TABLE t",
            "# x\n\tTRUNCATE `d` . `t`",
            "/*!50000 TRUNCATE t */",
            "/*M!100100 TRUNCATE t */",
            "/*! /* inner */ TRUNCATE */ t",
            "SET STATEMENT max_statement_time=1 FOR TRUNCATE t",
            "WITH x AS (SELECT 1) DELETE FROM t",
            "ALTER TABLE u EXCHANGE PARTITION p WITH TABLE t",
            "ALTER TABLE u RENAME TO t",
            "CREATE TABLE u (a INT REFERENCES t (a))",
            "CREATE OR REPLACE TABLE t (a INT)",
            "CREATE TABLE IF NOT EXISTS t (a INT)",
            "/*!50003 CREATE*/ /*!50003 TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1 */",
            "ANALYZE DELETE FROM t",
            "LOAD DATA INFILE 'x' INTO TABLE \"t\"",
            "DROP TABLE IF EXISTS u, t",
            "DROP DATABASE d",
            "RENAME TABLE t TO u",
            "SELECT f() FROM t",
            "INSERT INTO u VALUES ('\\', t",
            "nonsense t",
        ] {
            let judged = in_database("d", sql);
            assert!(matches!(judged, Judged::Changes(_)), "{sql}: {judged:?}");
        }
        assert!(matches!(
            in_database("other", "UPDATE d.t SET a = 1"),
            Judged::Changes(verb) if verb == "UPDATE"
        ));
    }

    #[test]
    fn what_does_not_concern_the_table_is_let_by() {
        for sql in [
            "ALTER TABLE t_onionskin_new ADD COLUMN c INT",
            "CREATE VIEW v AS SELECT * FROM t",
            "CREATE OR REPLACE ALGORITHM=UNDEFINED DEFINER=`t`@`%` SQL SECURITY DEFINER VIEW v AS SELECT * FROM t",
            "CREATE DEFINER=`root`@`localhost` PROCEDURE p() DELETE FROM t",
            "DROP TABLE u",
            "DROP TEMPORARY TABLE t",
            "CREATE TABLE u LIKE t",
            "CREATE TABLE u (t INT)",
            "ALTER TABLE u ADD COLUMN t INT",
            "ALTER TABLE e.t ADD COLUMN c INT",
            "OPTIMIZE TABLE t",
            "ANALYZE NO_WRITE_TO_BINLOG TABLE t",
            "GRANT SELECT ON t TO u",
            "DROP DATABASE e",
            "TRUNCATE u /* t */",
            "",
        ] {
            assert_eq!(in_database("d", sql), Judged::Foreign, "{sql}");
        }
        for sql in ["TRUNCATE t", "ALTER TABLE t ADD COLUMN c INT"] {
            assert_eq!(in_database("other", sql), Judged::Foreign, "{sql}");
        }
    }

    #[test]
    fn triggers_are_those_of_a_table() {
        for (sql, verb) in [
            (
                "CREATE DEFINER=`root`@`localhost` TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1",
                "CREATE",
            ),
            (
                "CREATE TRIGGER x AFTER INSERT ON `d`.`T` FOR EACH ROW SET @a = '\\''",
                "CREATE",
            ),
            ("DROP TRIGGER IF EXISTS x", "DROP"),
        ] {
            assert_eq!(
                in_database("d", sql),
                Judged::Triggers(verb.into()),
                "{sql}"
            );
        }
        for sql in [
            "CREATE TRIGGER x BEFORE INSERT ON u FOR EACH ROW DELETE FROM t",
            "CREATE TRIGGER x BEFORE INSERT ON e.t FOR EACH ROW SET @a = 1",
            "CREATE TRIGGER x BEFORE INSERT ON t_onionskin_new FOR EACH ROW INSERT INTO a SELECT '\\'' FROM t",
            "/* onionskin 0123456789abcdef */ DROP TRIGGER t",
        ] {
            assert_eq!(in_database("d", sql), Judged::Foreign, "{sql}");
        }
    }

    #[test]
    fn what_changes_rows_may_do_so_through_something_else() {
        for sql in [
            "INSERT INTO u VALUES ('t')",
            "UPDATE u SET u.t = 1",
            "CALL p()",
            "SELECT f()",
            "SET STATEMENT max_statement_time=1 FOR DELETE FROM v",
        ] {
            let judged = in_database("d", sql);
            assert!(matches!(judged, Judged::Unnamed(_)), "{sql}: {judged:?}");
        }
    }

    #[test]
    fn definitions_of_this_migration_are_known_by_its_id() {
        let sql = "ALTER TABLE `d`.`t` DROP FOREIGN KEY `f`";
        let ours = format!("{}{sql}", mark("0123456789abcdef"));
        assert_eq!(in_database("d", &ours), Judged::Foreign);
        let other = format!("{}{sql}", mark("0123456789abcdee"));
        assert_eq!(in_database("d", &other), Judged::Changes("ALTER".into()));
    }

    #[test]
    fn the_rename_is_known_in_its_own_database_only() {
        let sql = "RENAME TABLE `t` TO `t_onionskin_old`, `t_onionskin_new` TO `t`";
        assert_eq!(in_database("d", sql), Judged::Renamed);
        assert_eq!(in_database("other", sql), Judged::Foreign);
    }

    #[test]
    fn names_that_cannot_be_read_are_not_taken_for_others() {
        let tables = Tables {
            database: "d",
            table: "größe",
            new: "größe_onionskin_new",
            mark: "/* onionskin 0123456789abcdef */ ",
        };
        let judged = judge("TRUNCATE gr\u{fffd}\u{fffd}e", "d", &tables);
        assert_eq!(judged, Judged::Changes("TRUNCATE".into()));
    }
}
