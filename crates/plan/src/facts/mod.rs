//! What the words of a statement say about how it is run and answered.
//!
//! Planning decides what becomes of a statement's tables and values. Whoever runs it has further
//! questions: may it be run a second time, does it begin a transaction, does it ask about the
//! statement before it? They are answered here, once, from the tokens. So a comment in front of a
//! statement, or a word inside a literal, changes no answer. The answers are a part of the plan.
//!
//! Words in executable comments count like others. Whether a server executes them is not known, so
//! each fact is named such that a wrong "yes" does no harm; see [`Facts`].
//!
//! `words.rs` holds the words. Each of the other files answers questions of one kind.

mod changes;
mod finds;
mod question;
mod tables;
mod transactions;
mod words;

use self::words::Words;
use crate::lex::{LexMode, Token, tokens};

pub use self::finds::Finds;
pub use self::question::{Item, Question, ShownRows};

/// The facts of one statement. The default is that of a statement without words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The first word.
    pub verb: Verb,
    /// `INSERT IGNORE`, `UPDATE IGNORE` and the like: errors of values become warnings.
    pub ignore: bool,
    /// `INSERT`, `REPLACE` with several rows behind `VALUES`. Of folded rows, see
    /// [`Self::is_lenient`].
    pub several_rows: bool,
    /// `INSERT`, `REPLACE` that name the columns of their rows.
    pub lists_columns: bool,
    /// It calls a program, or may do so. What a program has done stays done if it fails.
    pub calls: bool,
    /// It changes rows and shows them.
    pub returns: bool,
    /// It may call a stored function, if MySQL runs it, or is a program or the call of one.
    pub runs_programs: bool,
    /// It may leave temporary tables behind of which its plan says nothing: it makes one, gives one
    /// another name, or runs a program.
    pub leaves_temporary: bool,
    /// What a table's definition names may run with it: triggers, and functions that views call.
    pub touches: bool,
    /// It may take on another role: the word `ROLE` stands in it.
    pub says_role: bool,
    /// How often the word `DEFAULT` stands in it.
    pub defaults: usize,
    /// The word `COLLATE` stands in it.
    pub says_collate: bool,
    /// It says `ON DUPLICATE KEY UPDATE`, or may do so.
    pub updates_met_rows: bool,
    /// It may set `collation_connection`, which servers do not track.
    pub sets_collation: bool,
    /// It may set one of the variables by which the server tells of changes in the session.
    pub sets_tracking: bool,
    /// It shows or changes what tables look like, or may do so.
    pub about_definitions: bool,
    /// It gives a table or a column another name, or may do so.
    pub renames: bool,
    /// What follows in the same text may mean other tables, or be read otherwise.
    pub changes_meaning: bool,
    /// `true`: `LOCK TABLES`. `false`: what ends that.
    pub locks_tables: Option<bool>,
    /// It says something of the next transaction only.
    pub next_transaction: bool,
    /// It begins or ends a transaction, or runs statements that may.
    pub bounds_transaction: bool,
    /// It begins a transaction and does nothing else.
    pub begins_transaction: bool,
    /// Without a table in it, it begins no transaction, even where it fails.
    pub begins_none: bool,
    /// It ends the transaction before it, and does so even where it fails.
    pub commits_first: bool,
    /// It changes what a database says of new tables.
    pub alters_database: bool,
    /// `true`: it makes a savepoint, or may do so. `false`: it ends all of them.
    pub savepoints: Option<bool>,
    /// What it does to `FOUND_ROWS()`.
    pub finds: Finds,
    /// What it asks about the statement before it.
    pub question: Question,
    /// `FOUND_ROWS` stands in it.
    pub says_found_rows: bool,
    /// An UPDATE of several columns of which one is computed or gets its default. Servers go on
    /// computing behind a value that does not fit, and say what they find.
    pub computes_among_others: bool,
    /// Calls of `VALUES()` behind `ON DUPLICATE KEY UPDATE`.
    pub values_calls: usize,
    /// `ON DUPLICATE KEY UPDATE` stands in it, or at least its second word.
    pub says_duplicate: bool,
    /// Words where the name of a table stands, in small letters: behind FROM, INTO and the like.
    pub table_words: Vec<String>,
}

/// First words that are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verb {
    /// `SELECT`
    Select,
    /// `INSERT`
    Insert,
    /// `REPLACE`
    Replace,
    /// `UPDATE`
    Update,
    /// `DELETE`
    Delete,
    /// `EXECUTE`
    Execute,
    /// `LOAD`
    Load,
    /// `USE`
    Use,
    /// No word stands first, or one in an executable comment.
    Hidden,
    /// Another word.
    #[default]
    Other,
}

impl Facts {
    /// Reads a statement that there is no plan of. What cannot be read says nothing.
    pub fn read(sql: &[u8], mode: LexMode) -> Self {
        tokens(sql, mode).map_or_else(|_| Facts::default(), |all| Facts::of(sql, &all, mode))
    }

    /// Whether MariaDB keeps its list of warnings over the statement.
    pub fn keeps_list(&self) -> bool {
        self.question == Question::Keeps
    }

    /// Whether it may: what the statement prepares or executes is not known yet.
    pub fn may_keep_list(&self) -> bool {
        matches!(self.question, Question::Keeps | Question::ByName)
    }

    /// The facts of a statement of these tokens.
    pub fn of(sql: &[u8], tokens: &[Token], mode: LexMode) -> Self {
        let words = Words::new(sql, tokens, mode);
        let verb = Verb::of(&words);
        Facts {
            verb,
            ignore: words.says_ignore(),
            several_rows: matches!(verb, Verb::Insert | Verb::Replace) && words.has_several_rows(),
            lists_columns: matches!(verb, Verb::Insert | Verb::Replace) && words.lists_columns(),
            calls: words.calls(),
            returns: verb != Verb::Select && words.says("returning"),
            runs_programs: words.calls_functions() || words.calls() || words.is_compound(),
            leaves_temporary: words.leaves_temporary(),
            touches: words.touches(),
            says_role: words.says("role"),
            defaults: words.count("default"),
            updates_met_rows: words.updates_met_rows(),
            says_collate: words.says("collate"),
            sets_collation: words.sets_collation(),
            sets_tracking: words.sets_tracking(),
            about_definitions: words.is_about_definitions(),
            renames: words.renames(),
            changes_meaning: words.is_hidden() || words.begins(&["use", "set"]),
            locks_tables: words.locks_tables(),
            next_transaction: words.says_next_transaction(),
            bounds_transaction: words.bounds_transaction(),
            begins_transaction: words.begins_transaction(),
            begins_none: words.begins_none(),
            commits_first: words.commits_first(),
            alters_database: words.alters_database(),
            savepoints: words.savepoints(),
            finds: words.finds(),
            question: words.question(),
            says_found_rows: words.says("found_rows"),
            computes_among_others: verb == Verb::Update && words.computes_among_others(),
            values_calls: words.values_calls(),
            says_duplicate: words.says("duplicate"),
            table_words: words.table_words(),
        }
    }

    /// Whether it must not be run again: it has sent the rows that it has changed, or a program
    /// may have done a part of its work.
    pub fn runs_once(&self) -> bool {
        self.calls || self.returns
    }

    /// Whether it takes NULL for a NOT NULL column leniently. Everything does but an insert of one
    /// row. `folded` is how many rows the shape has folded into one, if it has.
    pub fn is_lenient(&self, folded: Option<usize>) -> bool {
        match self.verb {
            Verb::Insert | Verb::Replace => folded.map_or(self.several_rows, |n| n > 1),
            _ => true,
        }
    }

    /// Whether it changes rows, by its first word.
    pub fn writes(&self) -> bool {
        matches!(
            self.verb,
            Verb::Insert | Verb::Replace | Verb::Update | Verb::Delete | Verb::Load
        )
    }

    /// Whether errors may become warnings: of values, and of rows of a file that do not fit.
    pub fn may_ignore(&self) -> bool {
        self.ignore || self.verb == Verb::Load
    }
}

impl Verb {
    fn of(words: &Words) -> Self {
        match () {
            () if words.is_hidden() => Verb::Hidden,
            () if words.is(0, "select") => Verb::Select,
            () if words.is(0, "insert") => Verb::Insert,
            () if words.is(0, "replace") => Verb::Replace,
            () if words.is(0, "update") => Verb::Update,
            () if words.is(0, "delete") => Verb::Delete,
            () if words.is(0, "execute") => Verb::Execute,
            () if words.is(0, "load") => Verb::Load,
            () if words.is(0, "use") => Verb::Use,
            () => Verb::Other,
        }
    }
}

impl Words<'_> {
    /// Whether it calls a program, or may do so. MariaDB: `SET STATEMENT … FOR CALL …`.
    fn calls(&self) -> bool {
        self.is(0, "call") || (self.is_hidden() || self.is(0, "set")) && self.says("call")
    }

    /// Whether it is a program, or executes what is not known here. `BEGIN` without a body is none.
    fn is_compound(&self) -> bool {
        const VERBS: [&str; 7] = ["execute", "if", "case", "loop", "while", "repeat", "for"];
        self.is_hidden()
            || self.begins(&VERBS)
            || self.is(0, "begin") && self.is(1, "not")
            || self.is(0, "set") && self.is(1, "statement")
            || self.is_sign(1, b':')
    }

    /// Whether temporary tables may be there behind it, by a name that its plan does not tell.
    fn leaves_temporary(&self) -> bool {
        let makes = self.says("temporary") && !self.is(0, "drop");
        makes || self.renames() || self.calls_functions() || self.calls() || self.is_compound()
    }

    /// Whether it may read or change rows. Settings, names of databases and texts that are prepared
    /// do not, and no table that is dropped is read.
    fn touches(&self) -> bool {
        const OTHERS: [&str; 5] = ["set", "use", "prepare", "deallocate", "drop"];
        self.is_hidden()
            || self.has_executable
            || !self.begins(&OTHERS)
            || self.is(0, "set") && self.is(1, "statement")
            || ["select", "table", "values"]
                .iter()
                .any(|word| self.says(word))
                && !self.is(0, "drop")
    }

    /// Whether it may set `collation_connection`.
    fn sets_collation(&self) -> bool {
        (self.is_hidden() || self.is(0, "set")) && self.says("collation_connection")
    }

    /// Whether it may set one of the variables by which the server tells of changes.
    fn sets_tracking(&self) -> bool {
        (self.is_hidden() || self.has_executable || self.is(0, "set"))
            && self.mentions("session_track_")
    }

    /// Whether it shows or changes what tables look like, or may do so.
    fn is_about_definitions(&self) -> bool {
        const VERBS: [&str; 7] = [
            "show", "describe", "desc", "explain", "alter", "create", "rename",
        ];
        self.begins_executable()
            || self.begins(&VERBS)
            || self.is(0, "set") && self.is(1, "statement")
    }

    /// Whether it gives a table or a column another name, or may do so.
    fn renames(&self) -> bool {
        (self.begins(&["alter", "rename"]) || self.has_executable) && self.says("rename")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn facts(sql: &str) -> Facts {
        Facts::read(sql.as_bytes(), LexMode::default())
    }

    #[test]
    fn definitions_behind_comments() {
        for sql in [
            "ALTER TABLE t ADD a INT",
            "/* job 7 */ ALTER TABLE t ADD a INT",
            "-- job 7\n show create table t",
            "/*!50000 ALTER TABLE t ADD a INT */",
            "SET /* x */ STATEMENT max_statement_time = 1 FOR SHOW COLUMNS FROM t",
        ] {
            assert!(facts(sql).about_definitions, "{sql}");
        }
        for sql in [
            "SELECT 1",
            "/* alter */ SELECT 1",
            "SET statement_x = 1",
            "(SELECT 1)",
        ] {
            assert!(!facts(sql).about_definitions, "{sql}");
        }
    }

    #[test]
    fn comments_and_literals_change_no_fact() {
        let same = |left: &str, right: &str| assert_eq!(facts(left), facts(right), "{left}");
        same(
            "/* app */ INSERT IGNORE INTO t VALUES (1)",
            "INSERT IGNORE INTO t VALUES (1)",
        );
        same(
            "INSERT INTO t VALUES ('default returning rename call')",
            "INSERT INTO t VALUES (1)",
        );
        same(
            "-- x\nALTER TABLE t RENAME TO u",
            "ALTER TABLE t RENAME TO u",
        );
        assert!(facts("/* app */ ALTER TABLE t RENAME TO u").renames);
        assert!(facts("# x\nCALL p()").runs_once());
        assert!(facts("/*!50000 CALL p() */").calls);
        assert!(facts("DELETE FROM t RETURNING a").returns);
        assert_eq!(facts("/* a */ LOCK TABLES t READ").locks_tables, Some(true));
        for flush in [
            "FLUSH TABLES t WITH READ LOCK",
            "FLUSH LOCAL TABLE a, b FOR EXPORT",
        ] {
            assert_eq!(facts(flush).locks_tables, Some(true), "{flush}");
        }
        for flush in [
            "FLUSH TABLES WITH READ LOCK",
            "FLUSH TABLES",
            "FLUSH TABLES t",
        ] {
            assert_eq!(facts(flush).locks_tables, None, "{flush}");
        }
        assert_eq!(facts("START TRANSACTION").locks_tables, Some(false));
        assert_eq!(facts("START SLAVE").locks_tables, None);
        let calls =
            facts("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = VALUES(a), b = VALUES (b)");
        assert_eq!(calls.values_calls, 2);
        assert!(calls.says_duplicate);
        assert!(!facts("INSERT INTO t VALUES ('on duplicate')").says_duplicate);
    }
}
