//! Why a statement is not understood: one variant for each reason, with the words that the client
//! reads. docs/errors.md lists them.
//!
//! A detail is a name, a number, or words of ours. It is never a value of the statement.

use std::fmt;

use crate::lex::LexError;

/// Reasons that have a way out in common.
struct Group {
    subject: &'static str,
    /// Sentences, one a line.
    way_out: &'static [&'static str],
    reasons: &'static [Reason],
}

/// A variant, as docs/errors.md shows it.
struct Reason {
    /// What the client reads; details stand in braces.
    text: &'static str,
    /// Lines.
    meaning: &'static [&'static str],
}

/// Declares the reasons by groups: subject, way out, then for each reason what it means as its
/// documentation, its name, its details, and the text with them.
macro_rules! reasons {
    ($($subject:literal, $($way:literal),+ => {
        $($(#[doc = $meaning:literal])+
        $name:ident $(($($detail:ident: $type:ty),+))? = $text:literal;)+
    })+) => {
        /// Why a statement is not understood.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum NotUnderstood {
            $($($(#[doc = $meaning])+ $name $(($($type),+))?,)+)+
        }

        impl fmt::Display for NotUnderstood {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $($(Self::$name $(($($detail),+))? => write!(f, $text),)+)+
                }
            }
        }

        /// All reasons.
        static GROUPS: &[Group] = &[$(Group {
            subject: $subject,
            way_out: &[$($way),+],
            reasons: &[$(Reason { text: $text, meaning: &[$($meaning),+] }),+],
        }),+];
    };
}

reasons! {
    "Reading the text",
    "Send each statement by itself, in UTF-8, and write it as the server's manual shows it.",
    "Take a long one apart." => {
        /// The end of a string, a quoted name or a comment is missing.
        UnendedQuote = "a quoted text or comment does not end";
        /// No server takes it there.
        ControlCharacter = "a control character stands outside of quotes";
        /// The character may hide a quote, or is none of the character set.
        UnsafeCharacter = "a character stands where this character set does not allow to read it safely";
        /// MySQL and MariaDB, or their versions, see its end in different places.
        ReadInTwoWays = "not all servers read a comment or literal alike";
        /// The text cannot be divided into words.
        Words = "its words";
        /// The proxy's parser does not know the statement in this form.
        Grammar = "its grammar";
        /// Such a one stands beside another: servers disagree about what belongs together.
        ChainedPredicates = "LIKE, IN, BETWEEN or REGEXP of another one without parentheses";
        /// More text follows where the statement or the clause should end.
        TextBehind(what: &'static str) = "text behind {what}";
        /// The proxy and its parser see parentheses in different places.
        Parentheses = "parentheses";
        /// The statement is longer or deeper than the proxy reads: `more than 4096 columns`.
        TooMany(most: usize, what: &'static str) = "more than {most} {what}";
        /// A name has bytes that are no UTF-8.
        NotUtf8 = "an identifier is not UTF-8";
        /// Characters beyond ASCII stand before the part that is parsed.
        BeyondAscii(what: &'static str) = "{what} beyond ASCII";
        /// With `IGNORE_SPACE` it is a call, and without, a name.
        BlankBehindFunction = "a blank between a function's name and its parenthesis";
        /// A `SET` before it, in the same text, has changed where strings end.
        EndsElsewhere = "a statement that ends elsewhere by the settings before it";
    }

    "Texts that cannot be read near protected tables",
    "Use a character set of [charsets.md](charsets.md), and send one statement at a time." => {
        /// The text cannot be read, and a word of it may be a protected table's name.
        MayNameProtected = "a text that may name a protected table";
        /// The text cannot be read, and the server shows table names that cannot be read either.
        TableNames = "the names of tables";
        /// The text cannot be read, and a table of which it is not known whether it is protected
        /// is being defined. Run the statement again.
        ChangingDefinition = "while a table's definition changes";
        /// The text cannot be read, and may define a table that has to be protected.
        MayDefineProtected = "a table's definition, by a name that [protect] matches";
        /// The text cannot be read, and may name a table that is missing and would be protected.
        MayFillProtected = "a text that may name a table, by a name that [protect] matches";
        /// The server was asked, with other values, whether all tables are there, and did not say.
        MayBeMissing = "a table that may be missing, by a name that [protect] matches";
        /// The text cannot be read, and has these words.
        MayEncrypt = "ENCRYPTED FOR";
    }

    "Clauses",
    "Leave out what is named, or say it in another form.",
    "With a scratch engine ([scratch.md](scratch.md)) queries may have more clauses." => {
        /// This clause or statement, such as `WITH`, is not supported, or not in this form.
        Clause(clause: &'static str) = "{clause}";
        /// One of the two is there, and is not supported.
        EitherClause(one: &'static str, other: &'static str) = "{one} or {other}";
        /// The statement has a clause that is not supported.
        ClauseOf(statement: &'static str) = "a clause of {statement}";
        /// This part, such as `a part of FROM`, has a form that is not supported.
        PartOf(part: &'static str, whole: &'static str) = "{part} of {whole}";
        /// Each is understood without the other only: `OR REPLACE beside IF NOT EXISTS`.
        Beside(one: &'static str, other: &'static str) = "{one} beside {other}";
        /// It is understood elsewhere, and may not stand there: `a subquery in LOAD DATA`.
        Within(what: &'static str, place: &'static str) = "{what} in {place}";
        /// One needs the other: `LOAD DATA without a scratch engine`.
        Without(what: &'static str, missing: &'static str) = "{what} without {missing}";
        /// Clauses stand in another order than usual.
        ClauseOrder = "the order of clauses";
        /// The form, the variable or the query does not go with `SET STATEMENT`.
        SetStatement(how: &'static str) = "SET STATEMENT {how}";
        /// Values before the statement that is explained are not looked at.
        ExplainWithLiteral = "EXPLAIN with a literal before the statement";
        /// It would run a statement that writes, or that the server does not run alone.
        Analyze = "ANALYZE of this statement";
        /// It names more than one protected table.
        ShowSeveral = "SHOW with several tables";
    }

    "Queries",
    "Give columns names instead of stars and positions, and tables aliases.",
    "With a scratch engine ([scratch.md](scratch.md)) more queries are understood." => {
        /// There is another statement where a query should stand.
        Query = "a query";
        /// The proxy and its parser do not see the same columns.
        SelectList = "the select list";
        /// A query in parentheses that the proxy would have to finish.
        ParenthesizedSelect = "a parenthesized SELECT";
        /// The join is none of those that both servers have.
        JoinKind = "a kind of join";
        /// The alias has columns or an offset, or stands in an unusual place.
        AliasOf(owner: &'static str) = "{owner}'s alias";
        /// A column of the result has more than one name.
        SeveralAliases = "an item with several aliases";
        /// It is understood, but not for this: `a constant as a key`.
        UsedAs(what: &'static str, role: &'static str) = "{what} as {role}";
        /// The select list has fewer columns than the number in `GROUP BY` or `ORDER BY`.
        PositionBeyond = "a position beyond the select list";
        /// What stands before the star is no table's name.
        QualifiedStar = "a qualified *";
        /// Columns of both sides become one.
        StarOverUsing = "* over a join with USING";
        /// The proxy does not know which columns the star means.
        StarOverUnknown(table: String) = "* over {table}, whose columns are not known";
        /// No table, or more than one, has this name.
        StarOf(table: String) = "{table}.*";
        /// The text that names the column is broken in the session's character set.
        ResultName = "a column of the result named by a text that is not well-formed";
        /// On the scratch engine, rows are locked with `FOR UPDATE` or `LOCK IN SHARE MODE` only.
        LockClause = "a clause that locks rows";
        /// In a statement that changes tables the scratch engine locks rows in a way of its own.
        InnerLock = "rows locked by an inner query";
        /// In its parentheses stands something else than names.
        IndexHint = "an index hint";
        /// The proxy asks the server for these rows in another way, where the hint may not fit.
        FinishedIndexHint = "an index hint on rows that the proxy finishes";
    }

    "Names and tables",
    "Write `table.column`, or `database.table`, and give a table that is used twice an alias." => {
        /// A part of the name is no identifier.
        Name = "a name";
        /// The name is missing or cannot be read.
        NameOf(owner: &'static str) = "{owner}'s name";
        /// Neither server has such names.
        NameParts(name: &'static str, most: &'static str) = "{name} of more than {most} parts";
        /// Without `ANSI_QUOTES` this is a string, and the parser would take it for a name.
        StringAsName = "a name in double quotes without ANSI_QUOTES";
        /// The protected column stands in an expression that cannot be read.
        Column(path: String) = "{path}";
        /// The protected column stands in a place that no rule has looked at.
        UnreadColumn(column: String) = "column {column}";
        /// The server shows no such table to the proxy.
        UnknownTable(table: String) = "table {table}, which is not known";
        /// The server has a table that the proxy has not seen. The proxy looks again by itself.
        MissingOnEngine = "a table that is not known";
        /// Queries that the scratch engine answers cannot read it, or no database is chosen.
        SystemTable = "a system table";
        /// On the scratch engine tables are temporary, and MySQL opens those once in a statement.
        UsedTwice(what: &'static str) = "{what} that is used twice";
        /// The column is called by its text, in which the table would get another name. In a
        /// SELECT that is no part of another statement the proxy names it, unless its text is
        /// long, or has other characters than those of ASCII, line ends or comments in it.
        UsedTwiceUnnamed =
            "a table that is used twice within a column without a name (give it one with AS)";
        /// The proxy would read and write in steps, where the server does it at once or refuses it.
        ChangedAndRead =
            "a table that is changed and read in another place of the statement";
        /// The table that is replaced would be read, or the new one before it is there.
        CreatedAndRead = "a table that is created and read in one statement";
        /// A table stands where the proxy does not look for one.
        UnusualTable = "a table in an unusual place";
        /// It is not clear which of the two the name means.
        WithHidesView = "WITH and a view of information_schema under one name";
    }

    "Conditions and expressions",
    "Put parentheses around the operands of AND, OR and NOT.",
    "With a scratch engine ([scratch.md](scratch.md)) more expressions are understood." => {
        /// The expression is none that the proxy knows.
        Expression = "an expression";
        /// The operator is none that the proxy knows.
        Operator = "an operator";
        /// The proxy and its parser do not see the same operands.
        Condition = "a condition";
    }

    "Statements that write",
    "Write to one table, assign each column once, and name rows by the primary key.",
    "Do the rest in a statement of its own." => {
        /// What stands before or behind the `=` cannot be read.
        Assignment = "an assignment";
        /// An assignment has one column that can be written.
        AssignmentTo(what: &'static str) = "an assignment to {what}";
        /// Servers assign from left to right; the proxy seals one value.
        AssignedTwice(column: String) = "a second assignment to {column}";
        /// The server computes it.
        GeneratedValue = "a value for a generated column";
        /// The list of columns has it more than once.
        NamedTwice = "a column that is named twice";
        /// The server counts it when it stores the row.
        NewNumber = "the number that a new row gets";
        /// The value is not known before the row is stored.
        ComputedColumn(column: String) = "column {column}, which the server computes";
        /// Which rows are left alone is not known before the server writes.
        IgnoreOfKey = "UPDATE IGNORE of a key";
        /// The server found such a row. Nothing was changed.
        IgnoreMeetsKey = "IGNORE where a row would get another's key";
        /// The server would make a warning of such an error. Nothing was changed.
        IgnoreMeetsError(code: u16) = "IGNORE where the server says error {code} of a row";
        /// The scratch engine computes values for protected tables only.
        InsertIntoPlain = "INSERT into a plain table";
        /// A part that the proxy does not know stands there.
        BeforeValues = "a clause between the columns and VALUES";
        /// It assigns protected columns, and joins tables.
        UpdateOfSeveral = "an UPDATE of several tables";
        /// The rows that `ON DUPLICATE KEY UPDATE` meets would be changed in a way that is not
        /// understood.
        MetRows = "what is done with rows that are there already";
        /// The server did something else with the row than the scratch engine has computed.
        ChangesOtherwise =
            "a row that changes in another way than was computed: by a trigger, or meanwhile";
        /// On the scratch engine 0 would ask for a number.
        NumberZero(column: String) = "a row with the number 0 in {column}";
        /// The proxy cannot say beforehand which row the server would meet.
        UniqueKey(key: &'static str, table: String) = "{key} of {table}";
        /// The proxy reads rows first, and changes them by their primary key.
        SafeUpdates = "sql_safe_updates and rows that are not named by their primary key";
    }

    "Definitions",
    "Write the definition as the server shows it, with one column or index after the other." => {
        /// Columns are protected where they are defined.
        EncryptedForElsewhere = "ENCRYPTED FOR outside of the column list";
        /// The query's columns cannot be counted, for instance because of a star.
        QueryColumns = "which columns of CREATE TABLE … SELECT are the query's; name them in it";
        /// The rows would go into the temporary table.
        BehindTemporary = "CREATE TABLE … SELECT behind a temporary table of the same name";
        /// The definition of a view cannot be read.
        View = "a view";
    }

    "The session",
    "Change the setting that is named, or prepare the statement again." => {
        /// The setting or the lock does not go with it: `CREATE TABLE … SELECT under LOCK TABLES`.
        Under(what: &'static str, setting: &'static str) = "{what} under {setting}";
        /// A word of `sql_mode` changes how the text is read, and the proxy does not know how.
        UnreadSqlMode = "sql_mode";
        /// The word changes what values or definitions mean.
        SqlModeHas(word: &'static str) = "sql_mode, which has {word}";
        /// Answers would depend on it ([settings.md](settings.md)).
        UnusualVariable(variable: &'static str) =
            "the session's {variable}, which is not the usual one";
        /// MariaDB goes by the collation that the database had when the session selected it.
        /// Connect again, or USE another database and then this one.
        CollationOfDatabase =
            "the session's collation_database, which is not that of its database";
        /// The proxy reads more rows than the client sees.
        SelectLimit(rows: String) = "sql_select_limit = {rows}";
        /// The proxy's own statements came between. Ask before anything else.
        LastStatement(question: &'static str) = "{question} about the last statement";
        /// The proxy would have to ask the server something before it. Run it again.
        CountsBesideLookUp =
            "ROW_COUNT() or FOUND_ROWS() beside a table that has to be looked up again";
        /// The server has forgotten it.
        TransactionForgotten =
            "what SET TRANSACTION said before a statement that failed; say it again";
        /// An error of the proxy's own came before.
        TransactionUnclear =
            "SET TRANSACTION without autocommit, after a statement that failed; say COMMIT or ROLLBACK before it";
        /// It would hold for a statement of the proxy's own.
        TransactionAtOnce =
            "what SET TRANSACTION says of it; say it with SESSION, or begin a transaction";
        /// Its text would mean something else now.
        PreparedOtherwise =
            "a statement that was prepared in another database, or under another sql_mode, character set, collation or div_precision_increment; prepare it again";
        /// Its quotients would have another number of digits now.
        PreparedIncrement =
            "a statement prepared under another div_precision_increment; prepare it again";
    }
}

impl From<LexError> for NotUnderstood {
    fn from(error: LexError) -> Self {
        match error {
            LexError::Unterminated => NotUnderstood::UnendedQuote,
            LexError::Control => NotUnderstood::ControlCharacter,
            LexError::Character => NotUnderstood::UnsafeCharacter,
            LexError::Ambiguous => NotUnderstood::ReadInTwoWays,
            LexError::TooManyNames(most) => NotUnderstood::TooMany(most, "different names"),
        }
    }
}

impl fmt::Display for LexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        NotUnderstood::from(*self).fmt(f)
    }
}

impl std::error::Error for LexError {}

/// A text with its details in italics, for a cell of a table.
fn cell(text: &str) -> String {
    let mut cell = String::new();
    for c in text.chars() {
        match c {
            '{' | '}' => cell.push('*'),
            '*' | '|' | '[' | ']' => cell.extend(['\\', c]),
            _ => cell.push(c),
        }
    }
    cell
}

/// Their part of docs/errors.md.
pub(super) fn markdown() -> String {
    let mut page = String::from(
        "\n## Reasons of OS1001\n\n\
         Behind the code stands what is not understood. Here is each text, with a clause, a name or a\n\
         number where a word is in italics. `onionskin explain` shows the text without running the\n\
         statement.\n",
    );
    for group in GROUPS {
        page.push_str(&format!(
            "\n### {}\n\n{}\n\n| text | meaning |\n|---|---|\n",
            group.subject,
            group.way_out.join("\n")
        ));
        for reason in group.reasons {
            let meaning: String = reason.meaning.concat();
            page.push_str(&format!("| {} | {} |\n", cell(reason.text), meaning.trim()));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_text_has_one_reason() {
        let texts = GROUPS.iter().flat_map(|g| g.reasons).map(|r| r.text);
        let mut seen = HashSet::new();
        for text in texts {
            assert!(seen.insert(text), "{text}");
        }
    }

    #[test]
    fn texts_have_their_details() {
        let text = NotUnderstood::TooMany(7, "columns").to_string();
        assert_eq!(text, "more than 7 columns");
        assert_eq!(cell("{table}.*"), "*table*.\\*");
    }
}
