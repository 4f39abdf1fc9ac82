//! Values that stand where a definition has no place for them.
//!
//! Definitions of tables and indexes are read by their words, and a reader passes over what it does
//! not know: a type, an option, a clause of another product such as `CREATE INDEX … WHERE name =
//! 'x'`. The server refuses it, and has its constants in its log by then. So near protected tables
//! each value has to stand where values do: behind DEFAULT, COMMENT and the like, as an option's
//! value, among the members of an ENUM, as a number in parentheses, or in an expression.
//!
//! An expression with values has to be one: of `CHECK (<> 'x')`, where the column was forgotten, no
//! rule can say that it is about a protected one. So it has to be whole to the parser, and a
//! condition or a key has to name something.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::Table;

use super::end_query::in_definition;
use super::words::{is_one_of, known_word, may_be_one_name};
use crate::lex::{LiteralKind, Token, TokenKind};
use crate::native::is_reserved;
use crate::observed::with_values;
use crate::parse;
use crate::planner::identifier;

/// Words right behind which a value may stand.
const BEFORE: [&str; 40] = [
    "algorithm",
    "auto_increment",
    "avg_row_length",
    "charset",
    "checksum",
    "collate",
    "comment",
    "compression",
    "connection",
    "date",
    "default",
    "delay_key_write",
    "directory",
    "encryption",
    "engine",
    "engine_attribute",
    "increment",
    "insert_method",
    "interval",
    "key_block_size",
    "limit",
    "max_rows",
    "min_rows",
    "pack_keys",
    "partition",
    "partitions",
    "password",
    "row_format",
    "secondary_engine_attribute",
    "set",
    "srid",
    "starts",
    "stats_auto_recalc",
    "stats_persistent",
    "stats_sample_pages",
    "subpartitions",
    "tablespace",
    "time",
    "timestamp",
    "wait",
];

/// Words of types whose members are texts.
const MEMBERS: [&str; 2] = ["enum", "set"];

/// Words behind which parentheses hold expressions, or values of partitions.
const EXPRESSIONS: [&str; 4] = ["as", "check", "default", "than"];

/// The same behind PARTITION BY.
const PARTITIONED: [&str; 5] = ["columns", "hash", "key", "list", "range"];

/// Words of clauses that no definition has.
const NO_CLAUSES: [&str; 2] = ["where", "having"];

/// What stands in a pair of parentheses.
#[derive(Clone, Copy, PartialEq)]
enum Inside {
    /// Columns, or parts of a definition.
    Parts,
    /// The members of an ENUM or SET.
    Members,
    /// What other rules read.
    Expression,
    /// What an index is made over.
    Indexed,
}

/// Whether a value stands in a definition of a table or an index where none has its place.
/// `protected` are tables near it.
pub(super) fn has_stray_value(sql: &[u8], all: &[Token], protected: &[Arc<Table>]) -> bool {
    if !is_of_table(sql, all) {
        return false;
    }
    let all = in_definition(sql, all);
    let is = |at: usize, words: &[&str]| all.get(at).is_some_and(|t| is_one_of(sql, t, words));
    let is_protected = |token: &Token| {
        let name = identifier(sql, token).unwrap_or_default();
        let mut columns = protected.iter().flat_map(|table| table.protected_columns());
        columns.any(|(column, _)| may_be_one_name(&column.name, &name))
    };
    let mut open: Vec<Inside> = Vec::new();
    let mut has_clause = false;
    // an index over a protected column is one over its name alone
    let (mut computes, mut names_protected) = (false, false);
    for at in 0..all.len() {
        let token = &all[at];
        has_clause |= is(at, &NO_CLAUSES) && token.kind == TokenKind::Word;
        has_clause |= checks_without_type(sql, all, at);
        if token.is(b'(') {
            open.push(inside(sql, all, at, open.last().copied()));
        } else if token.is(b')') {
            open.pop();
        }
        names_protected |= open.last() == Some(&Inside::Indexed) && is_protected(token);
        let TokenKind::Literal(kind) = token.kind else {
            continue;
        };
        computes |= open.last() == Some(&Inside::Indexed);
        if has_clause {
            return true;
        }
        let Some(before) = (0..at)
            .rev()
            .find(|n| !all[*n].is(b'-') && !all[*n].is(b'+'))
        else {
            return true;
        };
        let has_place = match open.last() {
            Some(Inside::Expression | Inside::Indexed) => true,
            _ if is(before, &BEFORE) => true,
            // an option of any name, which is no column's
            _ if all[before].is(b'=') => {
                let name = before.checked_sub(1).map(|n| &all[n]);
                name.is_some_and(|t| t.kind == TokenKind::Word && !is_protected(t))
                    || name.is_some_and(|t| is_one_of(sql, t, &BEFORE))
            }
            Some(Inside::Members) => is_listed(all, before, at),
            // ENCRYPTED FOR (eq:8)
            Some(Inside::Parts) if all[before].is(b':') => {
                kind == LiteralKind::Integer && counts_bits(sql, all, before)
            }
            Some(Inside::Parts) if kind == LiteralKind::Integer => {
                is_listed(all, before, at) && !is_operand(sql, all, at)
            }
            _ => false,
        };
        let is_expression = matches!(open.last(), Some(Inside::Expression | Inside::Indexed));
        if !has_place || !is_expression && goes_on(sql, all, at) {
            return true;
        }
    }
    computes && names_protected || !expressions(sql, all).iter().all(|e| e.is_whole(sql, all))
}

/// An expression in a definition, or a list of them.
struct Written {
    /// Its tokens, without the parentheses around them.
    tokens: Range<usize>,
    /// It is one, and no list.
    is_single: bool,
    /// Without a name in it, it says nothing: a condition, a key, what rows are spread by.
    names: bool,
}

/// The expressions of a definition that no other one is around.
fn expressions(sql: &[u8], all: &[Token]) -> Vec<Written> {
    let is = |at: usize, words: &[&str]| all.get(at).is_some_and(|t| is_one_of(sql, t, words));
    let mut open: Vec<Inside> = Vec::new();
    // where the outermost expression began, and how many parentheses were open around it
    let mut begun: Option<(usize, usize)> = None;
    let mut found = Vec::new();
    for at in 0..all.len() {
        if all[at].is(b'(') {
            let inside = inside(sql, all, at, open.last().copied());
            if begun.is_none() && matches!(inside, Inside::Expression | Inside::Indexed) {
                begun = Some((at, open.len()));
            }
            open.push(inside);
        }
        if !all[at].is(b')') {
            continue;
        }
        open.pop();
        let Some((start, _)) = begun.filter(|(_, around)| *around == open.len()) else {
            continue;
        };
        begun = None;
        let before = start.saturating_sub(1);
        // DEFAULT CONCAT('a', 'b'), whose name belongs to it
        let is_call = before > 0 && is(before - 1, &["default"]);
        let is_bound = is(before, &["than", "in"]);
        found.push(Written {
            tokens: if is_call {
                before..at + 1
            } else {
                start + 1..at
            },
            is_single: is_call || is(before, &["as", "check", "default"]),
            names: !is_call && !is_bound && !is(before, &["as", "default"]),
        });
    }
    // what is not closed is nothing
    found.extend(begun.map(|(start, _)| Written {
        tokens: start..all.len(),
        is_single: true,
        names: true,
    }));
    found
}

impl Written {
    /// Whether each of its parts with a value is an expression to the parser.
    fn is_whole(&self, sql: &[u8], all: &[Token]) -> bool {
        let is_value = |t: &Token| matches!(t.kind, TokenKind::Literal(_));
        let tokens = &all[self.tokens.clone()];
        if !tokens.iter().any(is_value) {
            return true;
        }
        if self.names && !(0..tokens.len()).any(|at| is_name(sql, tokens, at)) {
            return false;
        }
        let mut depth = 0usize;
        let is_between = |token: &Token| {
            match token.kind {
                TokenKind::Punct(b'(') => depth += 1,
                TokenKind::Punct(b')') => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && token.is(b',')
        };
        let parts: Vec<&[Token]> = match self.is_single {
            true => vec![tokens],
            false => tokens.split(is_between).collect(),
        };
        let mut parts = parts.into_iter();
        parts.all(|part| !part.iter().any(is_value) || is_expression(sql, part))
    }
}

/// Whether a name stands here that is no function's, and no other word of the language.
fn is_name(sql: &[u8], tokens: &[Token], at: usize) -> bool {
    let is_call = tokens.get(at + 1).is_some_and(|t| t.is(b'('));
    match tokens[at].kind {
        TokenKind::Quoted => true,
        TokenKind::Word if is_call => false,
        TokenKind::Word => identifier(sql, &tokens[at]).is_some_and(|name| !is_reserved(&name)),
        _ => false,
    }
}

/// Whether these are an expression to the parser.
fn is_expression(sql: &[u8], tokens: &[Token]) -> bool {
    let levels = parse::levels(sql, tokens);
    if levels > parse::MAX_LEVELS {
        return false;
    }
    let value = |token: &Token, before: Option<&Token>| -> Cow<'static, [u8]> {
        let is_behind = |word: &str| before.is_some_and(|t| t.is_word(sql, word));
        Cow::Borrowed(match token.kind {
            TokenKind::Literal(LiteralKind::Integer) => b"1",
            TokenKind::Literal(LiteralKind::Decimal) => b"1.5",
            TokenKind::Literal(LiteralKind::Float) => b"1e0",
            _ if is_behind("date") => b"'2000-01-01'",
            _ => b"'a'",
        })
    };
    let (mut text, mut from) = (Vec::new(), 0);
    for at in 0..tokens.len() {
        if let Some(word) = known_word(sql, tokens, at) {
            text.extend(with_values(sql, &tokens[from..at], value));
            text.extend_from_slice(format!(" {word} ").as_bytes());
            from = at + 1;
        }
    }
    text.extend(with_values(sql, &tokens[from..], value));
    let text = String::from_utf8(text);
    text.is_ok_and(|text| parse::with_room(levels, || parse::expression(&text).is_ok()))
}

/// Whether the colon stands behind a word of `ENCRYPTED FOR (…)`.
fn counts_bits(sql: &[u8], all: &[Token], colon: usize) -> bool {
    let words = &all[..colon];
    let is_word = words
        .last()
        .is_some_and(|t| is_one_of(sql, t, &["eq", "range"]));
    let Some(open) = words.iter().rposition(|t| t.is(b'(')) else {
        return false;
    };
    let is = |back: usize, word: &str| {
        let at = open.checked_sub(back).map(|at| &all[at]);
        at.is_some_and(|t| t.is_word(sql, word))
    };
    let is_closed = words[open..].iter().any(|t| t.is(b')'));
    is_word && !is_closed && is(1, "for") && is(2, "encrypted")
}

/// Whether the parentheses around a value stand behind an operator.
fn is_operand(sql: &[u8], all: &[Token], at: usize) -> bool {
    const OPERATORS: [&str; 14] = [
        "and", "between", "div", "exists", "in", "is", "like", "mod", "not", "or", "regexp",
        "rlike", "sounds", "xor",
    ];
    let mut depth = 0usize;
    let open = (0..at).rev().find(|n| {
        match all[*n].kind {
            TokenKind::Punct(b')') => depth += 1,
            TokenKind::Punct(b'(') if depth == 0 => return true,
            TokenKind::Punct(b'(') => depth -= 1,
            _ => {}
        }
        false
    });
    let before = open.and_then(|open| open.checked_sub(1)).map(|n| &all[n]);
    before.is_none_or(|t| match t.kind {
        TokenKind::Punct(_) => true,
        _ => is_one_of(sql, t, &OPERATORS),
    })
}

/// Whether a CHECK stands in the place of a column's type: `ADD name CHECK (…)`.
fn checks_without_type(sql: &[u8], all: &[Token], at: usize) -> bool {
    let is = |at: usize, words: &[&str]| is_one_of(sql, &all[at], words);
    let Some(name) = at.checked_sub(1).filter(|_| is(at, &["check"])) else {
        return false;
    };
    let is_name =
        identifier(sql, &all[name]).is_some() && !is(name, &["add", "alter", "constraint", "drop"]);
    is_name
        && name.checked_sub(1).is_some_and(|before| {
            let token = &all[before];
            token.is(b'(') || token.is(b',') || is(before, &["add", "column"])
        })
}

/// Whether an operator stands behind a value.
fn goes_on(sql: &[u8], all: &[Token], at: usize) -> bool {
    const OPERATORS: [&str; 12] = [
        "and", "between", "div", "in", "is", "like", "mod", "or", "regexp", "rlike", "sounds",
        "xor",
    ];
    /// Before numbers that parentheses may follow.
    const COUNTS: [&str; 4] = ["algorithm", "limit", "partitions", "subpartitions"];
    let word = match at.checked_sub(1) {
        Some(sign) if all[sign].is(b'=') => sign.checked_sub(1),
        before => before,
    };
    let counts = word.is_some_and(|word| is_one_of(sql, &all[word], &COUNTS));
    all.get(at + 1).is_some_and(|t| match t.kind {
        TokenKind::Punct(b'(') if counts => false,
        TokenKind::Punct(sign) => !b",);".contains(&sign),
        _ => is_one_of(sql, t, &OPERATORS),
    })
}

/// Whether a value stands alone between parentheses and commas.
fn is_listed(all: &[Token], before: usize, at: usize) -> bool {
    let ends = |t: &Token| t.is(b',') || t.is(b')');
    (all[before].is(b'(') || all[before].is(b',')) && all.get(at + 1).is_some_and(ends)
}

/// What stands in the parentheses that open here, within others of such a kind.
fn inside(sql: &[u8], all: &[Token], at: usize, outer: Option<Inside>) -> Inside {
    let is = |at: usize, words: &[&str]| all.get(at).is_some_and(|t| is_one_of(sql, t, words));
    let Some(before) = at.checked_sub(1) else {
        return Inside::Parts;
    };
    let is_partitioned = || {
        let mut words = before.saturating_sub(3)..before;
        is(before, &PARTITIONED) && words.any(|at| is(at, &["by"]))
    };
    match () {
        () if matches!(outer, Some(Inside::Expression | Inside::Indexed)) => {
            outer.unwrap_or(Inside::Parts)
        }
        // DEFAULT CONCAT('a', 'b')
        () if is(before, &EXPRESSIONS)
            || is(before, &["in"]) && before > 0 && is(before - 1, &["values"])
            || is_partitioned()
            || before > 0 && is(before - 1, &["default"]) =>
        {
            Inside::Expression
        }
        () if all[before].is(b'(') || outer == Some(Inside::Parts) && all[before].is(b',') => {
            Inside::Indexed
        }
        () if is(before, &MEMBERS) => Inside::Members,
        () => Inside::Parts,
    }
}

/// Whether it is a definition of a table or an index.
fn is_of_table(sql: &[u8], all: &[Token]) -> bool {
    const HEADS: [&str; 10] = [
        "or",
        "replace",
        "temporary",
        "online",
        "ignore",
        "unique",
        "fulltext",
        "spatial",
        "vector",
        "offline",
    ];
    let is = |at: usize, words: &[&str]| all.get(at).is_some_and(|t| is_one_of(sql, t, words));
    if !is(0, &["create", "alter"]) {
        return false;
    }
    let behind = (1..all.len()).find(|at| !is(*at, &HEADS));
    behind.is_some_and(|at| is(at, &["table", "index"]))
}

/// Whether an expression names a column of a protected table by the table's name, in a definition
/// of another one.
pub(super) fn names_another(sql: &[u8], all: &[Token], protected: &[Arc<Table>]) -> bool {
    let is_table = |token: &Token| {
        let name = identifier(sql, token).unwrap_or_default();
        let mut tables = protected.iter();
        !name.is_empty() && tables.any(|table| may_be_one_name(&table.name, &name))
    };
    is_of_table(sql, all) && {
        let all = in_definition(sql, all);
        let qualifies = |t: &[Token]| is_table(&t[0]) && t[1].is(b'.');
        let is_value = |t: &Token| matches!(t.kind, TokenKind::Literal(_));
        all.windows(2).skip(2).any(qualifies) && all.iter().any(is_value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lex::{LexMode, tokens};

    fn is_stray(sql: &str) -> bool {
        let all = tokens(sql.as_bytes(), LexMode::default()).unwrap();
        has_stray_value(sql.as_bytes(), &all, &[])
    }

    #[test]
    fn values_have_their_places() {
        for sql in [
            "CREATE TABLE t (id INT(11) NOT NULL DEFAULT '5' COMMENT 'a', e ENUM('a','b') DEFAULT 'a', d DECIMAL(10,2) DEFAULT -1.5)",
            "CREATE TABLE t (a VARCHAR(20) CHARACTER SET utf8mb4 DEFAULT _utf8mb4'x', KEY k (a(10), id) COMMENT 'x' KEY_BLOCK_SIZE=8)",
            "CREATE TABLE t (a INT AS (b + 5) STORED, CHECK (a > 5 AND b IN (1, 2)), KEY ((CONCAT(a, 'x'))), KEY (id, (a + 1)))",
            "CREATE TABLE t (a INT) ENGINE=InnoDB COMMENT='x' AUTO_INCREMENT=5 DATA DIRECTORY '/x' FOO='bar' PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (5) COMMENT='x', PARTITION q VALUES LESS THAN MAXVALUE)",
            "CREATE TABLE t (a INT DEFAULT (5 + 1), b DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), c VARCHAR(9) DEFAULT CONCAT('a', 'b'))",
            "CREATE TABLE t (a INT) PARTITION BY LIST COLUMNS (a) (PARTITION p VALUES IN ('a', 'b'))",
            "CREATE TABLE t (a INT) PARTITION BY KEY (a) PARTITIONS 4",
            "CREATE TABLE t (a INT ENCRYPTED FOR (eq:8, range:20), b INT ENCRYPTED FOR (like, range:9))",
            "CREATE TABLE t (a INT) PARTITION BY KEY ALGORITHM = 2 (a) PARTITIONS 2 (PARTITION p, PARTITION q)",
            "CREATE TABLE t (a INT) SELECT 'x' AS a FROM u WHERE n = 'y'",
            "ALTER TABLE t ADD COLUMN a INT DEFAULT 5 AFTER b, ALTER c SET DEFAULT 'x', ALGORITHM=INPLACE, COMMENT 'a'",
            "ALTER TABLE t COALESCE PARTITION 2",
            "CREATE UNIQUE INDEX i USING BTREE ON t (a(10), b) COMMENT 'x'",
            "CREATE PROCEDURE p() SELECT 1 WHERE 'a' = 'b'",
            "CREATE TABLE t (a INT, d JSON, CHECK (a NOT BETWEEN -1 AND +5), CHECK (NOT (a LIKE _utf8mb4'x%' COLLATE utf8mb4_bin ESCAPE '|')), CHECK (d->>'$.a' <> 'x' OR a IS NULL))",
            "CREATE TABLE t (a INT DEFAULT (RAND() * 5), b DATE DEFAULT (CURRENT_DATE + INTERVAL 1 YEAR), c DATE AS (DATE_ADD(b, INTERVAL 1 DAY)) VIRTUAL, CHECK (b > DATE'2020-01-01'))",
            "CREATE TABLE t (a INT, v VARCHAR(9) AS (CASE a WHEN 1 THEN 'x' ELSE CONCAT_WS('-', a, 'y') END), KEY ((CAST(a AS CHAR(9)))), KEY k (v(5), (a + 1) DESC))",
            "CREATE TABLE t (a VARCHAR(9) DEFAULT CAST('x' AS CHAR), b INT DEFAULT IF(1 > 2, 3, 4), c VARCHAR(9) AS (TRIM(BOTH 'x' FROM a)), d INT AS (EXTRACT(YEAR FROM '2020-01-01')))",
            "CREATE TABLE t (a INT, CHECK (a REGEXP '^x'), CHECK (a RLIKE 'y' AND a DIV 5 = 2), CHECK (a MOD 3 << 1 XOR 2), CHECK (BINARY a = 'x'), CHECK (a <=> 5))",
            "CREATE TABLE t (a DATE, b INT) PARTITION BY RANGE (YEAR(a) * 100) SUBPARTITION BY HASH (b + 1) (PARTITION p VALUES LESS THAN (TO_DAYS('2020-01-01')), PARTITION q VALUES LESS THAN (MAXVALUE))",
            "CREATE TABLE t (a INT, b INT) PARTITION BY LIST COLUMNS (a, b) (PARTITION p VALUES IN ((1, 2), (NULL, -3)), PARTITION q VALUES IN ((5, 6)))",
            "CREATE TABLE t (a VARCHAR(9), b VARCHAR(9) AS (CONVERT(a USING latin1)), c INT AS (CONVERT('5', SIGNED)), KEY ((SUBSTRING(a FROM 1 FOR 5))), CHECK (JSON_VALID(a) AND a IN ('x', 'y')))",
            "CREATE TABLE t (j JSON, KEY ((CAST(j->'$.a' AS UNSIGNED ARRAY))), CHECK (JSON_VALUE(j, '$.a') > 5), CHECK (5 MEMBER OF (j)))",
        ] {
            assert!(!is_stray(sql), "{sql}");
        }
    }

    #[test]
    fn others_are_strays() {
        for sql in [
            "ALTER TABLE t ADD COLUMN a INT ENCRYPTED FOR (eq:'x')",
            "ALTER TABLE t ADD COLUMN (eq:5)",
            "ALTER TABLE t ADD COLUMN a INT ENCRYPTED (eq:5)",
            "ALTER TABLE t ADD COLUMN a INT ENCRYPTED FOR (eq) , (eq:5)",
            "ALTER TABLE t ADD COLUMN a INT ENCRYPTED FOR (a:5)",
            "CREATE INDEX i ON t (a) WHERE n = 'x'",
            "CREATE INDEX i ON t (a) FOO n > 'x'",
            "ALTER TABLE t ADD x FOO(n LIKE 'x')",
            "ALTER TABLE t ADD x ENUM(n > 'x')",
            "ALTER TABLE t ADD x FOO('x')",
            "ALTER TABLE t ADD x INT 'x'",
            "ALTER TABLE t ADD x INT DEFAULT 5 OR n > 'x'",
            "CREATE TABLE t (id INT) n IN ('x')",
            "CREATE TABLE t (id INT) WHERE n = 5",
            "ALTER TABLE t DROP PARTITION n > 'x'",
            "CREATE INDEX i ON t (a) COMMENT 'x' > n",
            "ALTER TABLE t ADD x INT DEFAULT 'x' LIKE n",
            // an operator without its column
            "ALTER TABLE t ADD CHECK (<> 'x')",
            "ALTER TABLE t ADD CHECK (= 5)",
            "ALTER TABLE t ADD CHECK ('x' <>)",
            "ALTER TABLE t ADD CHECK (LIKE 'x')",
            "ALTER TABLE t ADD CHECK (IN ('x', 'y'))",
            "ALTER TABLE t ADD CHECK (NOT IN ('x'))",
            "ALTER TABLE t ADD CHECK (BETWEEN 'x' AND 'y')",
            "ALTER TABLE t ADD CHECK (NOT REGEXP 'x')",
            "ALTER TABLE t ADD CHECK (id > 5 AND <> 'x')",
            "ALTER TABLE t ADD CHECK (id > 5 AND (<> 'x'))",
            "ALTER TABLE t ADD CHECK (id > 5, <> 'x')",
            "ALTER TABLE t ADD CHECK (id > 5, 'x')",
            "ALTER TABLE t ADD CHECK (id 'x')",
            "ALTER TABLE t ADD CHECK (id IN (5, <> 'x'))",
            "ALTER TABLE t ADD CHECK (<> 'x'",
            "ALTER TABLE t ADD CHECK (id) <> (5)",
            "ALTER TABLE t ADD CHECK (id) IN (5)",
            "ALTER TABLE t ADD CHECK ('x')",
            "ALTER TABLE t ADD CHECK (NOT 'x')",
            "ALTER TABLE t ADD CONSTRAINT c CHECK (STRCMP('x'))",
            "CREATE TABLE t (a INT CHECK (<> 'x'))",
            "CREATE TABLE t (a INT DEFAULT (<> 'x'))",
            "CREATE TABLE t (a INT DEFAULT CONCAT('x' <>))",
            "CREATE TABLE t (a INT AS (<> 'x'))",
            "CREATE TABLE t (a INT GENERATED ALWAYS AS (a AND LIKE 'x') STORED)",
            "CREATE TABLE t (a INT, KEY ((<> 'x')))",
            "CREATE TABLE t (a INT, KEY (a, (= 5) DESC))",
            "CREATE INDEX i ON t ((<> 'x'))",
            "CREATE INDEX i ON t (('x'))",
            "CREATE TABLE t (a INT) PARTITION BY RANGE (<> 'x') (PARTITION p VALUES LESS THAN (5))",
            "CREATE TABLE t (a INT) PARTITION BY HASH ('x')",
            "CREATE TABLE t (a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (> 'x'))",
            "CREATE TABLE t (a INT) PARTITION BY LIST (a) (PARTITION p VALUES IN (5, <> 'x'))",
            "ALTER TABLE t ALTER a SET DEFAULT (<> 'x')",
        ] {
            assert!(is_stray(sql), "{sql}");
        }
    }
}
