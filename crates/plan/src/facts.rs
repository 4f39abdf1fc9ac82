//! What the words of a statement say about how it is run and answered.
//!
//! Planning decides what becomes of a statement's tables and values. Whoever runs it has further
//! questions: may it be run a second time, does it begin a transaction, does it ask about the
//! statement before it? They are answered here, once, from the tokens. So a comment in front of a
//! statement, or a word inside a literal, changes no answer. The answers are a part of the plan.
//!
//! Words in executable comments count like others. Whether a server executes them is not known, so
//! each fact is named such that a wrong "yes" does no harm; see [`Facts`].

use crate::lex::{LexMode, LiteralKind, Token, TokenKind, tokens};

/// The facts of one statement. The default is that of a statement without words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The first word.
    pub verb: Verb,
    /// `INSERT IGNORE`, `UPDATE IGNORE` and the like: errors of values become warnings.
    pub ignore: bool,
    /// `INSERT`, `REPLACE` with several rows behind `VALUES`. Of folded rows, see [`Self::is_lenient`].
    pub several_rows: bool,
    /// It calls a program, or may do so. What a program has done stays done if it fails.
    pub calls: bool,
    /// It changes rows and shows them.
    pub returns: bool,
    /// A function may be called: a parenthesis stands in it.
    pub has_parenthesis: bool,
    /// How often the word `DEFAULT` stands in it.
    pub defaults: usize,
    /// The word `COLLATE` stands in it.
    pub says_collate: bool,
    /// It may set `collation_connection`, which servers do not track.
    pub sets_collation: bool,
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
    /// Without a table in it, it begins no transaction, even where it fails.
    pub begins_none: bool,
    /// `true`: it makes a savepoint, or may do so. `false`: it ends all of them.
    pub savepoints: Option<bool>,
    /// What it does to `FOUND_ROWS()`.
    pub finds: Finds,
    /// What it asks about the statement before it.
    pub question: Question,
    /// `FOUND_ROWS` stands in it.
    pub says_found_rows: bool,
    /// An UPDATE of several columns of which one is computed or gets its default. Servers go on computing behind a value that
    /// does not fit, and say what they find.
    pub computes_among_others: bool,
    /// Calls of `VALUES()` behind `ON DUPLICATE KEY UPDATE`.
    pub values_calls: usize,
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

/// What a statement does to `FOUND_ROWS()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finds {
    /// It is a query.
    Anew,
    /// It finds nothing, and leaves it.
    Keeps,
    /// That depends on the server.
    #[default]
    Unknown,
}

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
        !matches!(self, Question::None | Question::Keeps)
    }
}

impl Facts {
    /// Reads a statement that there is no plan of. What cannot be read says nothing.
    pub fn read(sql: &[u8], mode: LexMode) -> Self {
        tokens(sql, mode).map_or_else(|_| Facts::default(), |all| Facts::of(sql, &all, mode))
    }

    /// The facts of a statement of these tokens.
    pub fn of(sql: &[u8], tokens: &[Token], mode: LexMode) -> Self {
        let words = Words::new(sql, tokens, mode);
        let is_hidden = tokens.first().is_some_and(|t| t.kind != TokenKind::Word);
        let is = |word: &str| words.is(0, word);
        let one_of = |list: &[&str]| list.iter().any(|word| is(word));
        let verb = match () {
            () if is_hidden => Verb::Hidden,
            () if is("select") => Verb::Select,
            () if is("insert") => Verb::Insert,
            () if is("replace") => Verb::Replace,
            () if is("update") => Verb::Update,
            () if is("delete") => Verb::Delete,
            () if is("execute") => Verb::Execute,
            () if is("load") => Verb::Load,
            () if is("use") => Verb::Use,
            () => Verb::Other,
        };
        let has_parenthesis = words.has_parenthesis();
        Facts {
            verb,
            ignore: words.says_ignore(),
            several_rows: matches!(verb, Verb::Insert | Verb::Replace) && words.has_several_rows(),
            // MariaDB: SET STATEMENT … FOR CALL
            calls: is("call") || (is_hidden || is("set")) && words.says("call"),
            returns: verb != Verb::Select && words.says("returning"),
            has_parenthesis,
            defaults: words.count("default"),
            says_collate: words.says("collate"),
            sets_collation: (is_hidden || is("set")) && words.says("collation_connection"),
            about_definitions: matches!(
                tokens.first().map(|t| t.kind),
                Some(TokenKind::Executable)
            ) || one_of(&[
                "show", "describe", "desc", "explain", "alter", "create", "rename",
            ]) || is("set") && words.is(1, "statement"),
            renames: one_of(&["alter", "rename"]) && words.says("rename")
                || words.has_executable && words.says("rename"),
            changes_meaning: is_hidden || one_of(&["use", "set"]),
            locks_tables: match () {
                () if is("lock") && (words.is(1, "tables") || words.is(1, "table")) => Some(true),
                () if is("unlock") || is("begin") => Some(false),
                () if is("start") && words.is(1, "transaction") => Some(false),
                () => None,
            },
            next_transaction: is("set") && words.says_next_transaction(),
            bounds_transaction: is_hidden
                || one_of(&[
                    "begin", "start", "commit", "rollback", "xa", "call", "execute", "lock",
                ]),
            begins_none: one_of(&[
                "set",
                "use",
                "rollback",
                "release",
                "savepoint",
                "deallocate",
                "unlock",
            ]),
            savepoints: match () {
                () if is_hidden || words.has_executable || one_of(&["savepoint", "call"]) => {
                    Some(true)
                }
                () if one_of(&["begin", "start", "commit"]) => Some(false),
                () if is("rollback") && !words.says("to") => Some(false),
                () => None,
            },
            finds: words.finds(has_parenthesis),
            question: words.question(),
            says_found_rows: words.says("found_rows"),
            computes_among_others: verb == Verb::Update && words.computes_among_others(),
            values_calls: words.values_calls(),
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

/// A word or sign, and the literal's number if it is one.
#[derive(Clone, Copy)]
struct Word<'a> {
    kind: TokenKind,
    text: &'a [u8],
    literal: Option<usize>,
}

/// A statement's words and signs, those within executable comments among them.
struct Words<'a> {
    all: Vec<Word<'a>>,
    has_executable: bool,
}

impl<'a> Words<'a> {
    fn new(sql: &'a [u8], outer: &[Token], mode: LexMode) -> Self {
        let mut words = Words {
            all: Vec::with_capacity(outer.len()),
            has_executable: false,
        };
        let mut literals = 0;
        for token in outer {
            let text = token.text(sql);
            if token.kind == TokenKind::Executable {
                words.has_executable = true;
                let (body, version) = crate::lex::executable(text);
                // the lexer has read it once to find its end
                for inner in tokens(&body[version..], mode).unwrap_or_default() {
                    words.all.push(Word {
                        kind: inner.kind,
                        text: inner.text(&body[version..]),
                        literal: None,
                    });
                }
                continue;
            }
            let is_literal = matches!(token.kind, TokenKind::Literal(_));
            words.all.push(Word {
                kind: token.kind,
                text,
                literal: is_literal.then_some(literals),
            });
            literals += usize::from(is_literal);
        }
        words
    }

    /// Whether this bare word stands at this place.
    fn is(&self, at: usize, word: &str) -> bool {
        self.all.get(at).is_some_and(|w| w.is(word))
    }

    fn is_sign(&self, at: usize, sign: u8) -> bool {
        self.all.get(at).is_some_and(|w| w.is_sign(sign))
    }

    fn count(&self, word: &str) -> usize {
        self.all.iter().filter(|w| w.is(word)).count()
    }

    fn says(&self, word: &str) -> bool {
        self.all.iter().any(|w| w.is(word))
    }

    fn has_parenthesis(&self) -> bool {
        self.all.iter().any(|w| w.is_sign(b'('))
    }

    /// IGNORE among the modifiers behind the verb.
    fn says_ignore(&self) -> bool {
        let head = self.all.iter().take(4);
        let mut head = head.take_while(|w| !w.is_sign(b'('));
        head.any(|w| w.is("ignore"))
    }

    /// `), (` outside of all parentheses.
    fn has_several_rows(&self) -> bool {
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

    /// `SET TRANSACTION …`, and the variables that are of the next transaction only where they are
    /// set without a scope.
    fn says_next_transaction(&self) -> bool {
        const VARIABLES: [&str; 4] = [
            "transaction_isolation",
            "transaction_read_only",
            "tx_isolation",
            "tx_read_only",
        ];
        let is_one = |name: &[u8]| {
            let bare = name.strip_prefix(b"`").unwrap_or(name);
            let bare = bare.strip_suffix(b"`").unwrap_or(bare);
            VARIABLES
                .iter()
                .any(|variable| bare.eq_ignore_ascii_case(variable.as_bytes()))
        };
        let names_one = |at: usize| match self.all[at].system_variable() {
            // a blank stands behind the signs
            Some(b"") => self.all.get(at + 1).is_some_and(|w| is_one(w.text)),
            Some(name) => is_one(name),
            None => false,
        };
        self.is(1, "transaction") || (0..self.all.len()).any(names_one)
    }

    fn finds(&self, has_parenthesis: bool) -> Finds {
        let is = |list: &[&str]| list.iter().any(|word| self.is(0, word));
        let writes = is(&["insert", "replace"]);
        let finds_nothing = is(&[
            "begin",
            "start",
            "commit",
            "rollback",
            "savepoint",
            "release",
            "use",
            "set",
        ]);
        match () {
            () if self.has_executable => Finds::Unknown,
            () if self.is(0, "show") && (self.is(1, "warnings") || self.is(1, "errors")) => {
                Finds::Keeps
            }
            () if self.is_sign(0, b'(') || is(&["select", "with"]) => Finds::Anew,
            () if writes && !self.says("select") => Finds::Keeps,
            // a subquery finds rows
            () if finds_nothing && !has_parenthesis => Finds::Keeps,
            () => Finds::Unknown,
        }
    }

    /// Whether several assignments stand behind SET, and one is more than a constant.
    fn computes_among_others(&self) -> bool {
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

    /// The names behind FROM, JOIN, INTO, UPDATE and the like, and in lists of them. There may be others among them, such as
    /// `created` of `EXTRACT(YEAR FROM created)`.
    fn table_words(&self) -> Vec<String> {
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
                let text = String::from_utf8_lossy(word.text).to_lowercase();
                found.push(text.trim_matches(['`', '"']).to_owned());
                // `database.table`
                is_next = self.is_sign(at + 1, b'.');
            } else if !word.is_sign(b'.') {
                is_next = in_list && word.is_sign(b',');
            }
        }
        found
    }

    /// How often `VALUES(` stands behind `ON DUPLICATE`.
    fn values_calls(&self) -> usize {
        let all = 0..self.all.len();
        let is_clause = |at: &usize| self.is(*at, "on") && self.is(at + 1, "duplicate");
        let is_call = |at: &usize| self.is(*at, "values") && self.is_sign(at + 1, b'(');
        let clause = all.clone().find(is_clause).unwrap_or(all.end);
        (clause..all.end).filter(is_call).count()
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

    /// What the statement asks about the one before.
    fn question(&self) -> Question {
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
            let keeps = self.is(0, "unlock") || self.is_tableless_verb() && !has_tables;
            return match keeps {
                true => Question::Keeps,
                false => Question::None,
            };
        }
        match self.is(0, "select") && !self.has_executable && !has_tables {
            true => self.cells().unwrap_or(Question::Unclear),
            false => Question::Unclear,
        }
    }

    /// Whether it begins as statements do that need no tables. MariaDB keeps its warnings over them.
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
        !self.has_executable && VERBS.iter().any(|verb| self.is(0, verb))
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

impl<'a> Word<'a> {
    fn is(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word.as_bytes())
    }

    fn is_sign(&self, sign: u8) -> bool {
        self.kind == TokenKind::Punct(sign)
    }

    /// The name behind `@@`.
    fn system_variable(&self) -> Option<&'a [u8]> {
        match self.kind {
            TokenKind::Variable => self.text.strip_prefix(b"@@"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_scope_makes_it_of_all_transactions() {
        for (sql, says) in [
            ("set transaction read only", true),
            ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", true),
            ("/* app */ set @@transaction_isolation = 's'", true),
            ("set @a = 1, @@`tx_read_only` = 1", true),
            ("set /*!50000 transaction */ read only", true),
            ("set session transaction read only", false),
            ("set @@session.transaction_isolation = 's'", false),
            ("set transaction_isolation = 's'", false),
            ("select @@tx_isolation", false),
            ("set @a = '@@tx_isolation'", false),
            ("set", false),
        ] {
            assert_eq!(facts(sql).next_transaction, says, "{sql}");
        }
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
        assert_eq!(facts("START TRANSACTION").locks_tables, Some(false));
        assert_eq!(facts("START SLAVE").locks_tables, None);
        let calls =
            facts("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = VALUES(a), b = VALUES (b)");
        assert_eq!(calls.values_calls, 2);
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

    #[test]
    fn what_is_found() {
        for (sql, finds) in [
            ("SELECT 1", Finds::Anew),
            ("(SELECT 1)", Finds::Anew),
            ("/* a */ WITH x AS (SELECT 1) SELECT * FROM x", Finds::Anew),
            ("INSERT INTO t VALUES ('select')", Finds::Keeps),
            ("INSERT INTO t SELECT 1", Finds::Unknown),
            ("SET @a = 1", Finds::Keeps),
            ("SET @a = (SELECT 1)", Finds::Unknown),
            ("SHOW WARNINGS", Finds::Keeps),
            ("SHOW TABLES", Finds::Unknown),
            ("UPDATE t SET a = 1", Finds::Unknown),
            ("/*!50000 SELECT 1 */", Finds::Unknown),
        ] {
            assert_eq!(facts(sql).finds, finds, "{sql}");
        }
    }
}
