//! The shape of a statement: its text with the literals taken out.
//!
//! A repeated statement differs from the last one in its literals only, so the plan is cached
//! under the shape and found again after one pass over the text. White space and comments do
//! not matter to the shape; the kind of each literal does (a plan for `k = 5` is not a plan for
//! `k = 'five'`), and so do the digits in `NOW(6)`, which say what value that is. The rows of `INSERT … VALUES (…),(…),…` that look alike are folded into one,
//! so that one plan serves any number of rows, unless literals follow them.

use crate::lex::{LexError, LexMode, Lexer, LiteralKind, TokenKind};

/// The time of a statement, with digits of a fraction in parentheses. Such digits are a part of a statement's shape.
pub(crate) const MOMENTS: [&str; 4] = ["now", "current_timestamp", "localtime", "localtimestamp"];

/// A literal and its place in the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Literal {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// What its text says that it is.
    pub kind: LiteralKind,
}

impl Literal {
    /// Its bytes as they stand in the statement.
    pub fn text<'a>(&self, sql: &'a [u8]) -> &'a [u8] {
        sql.get(self.start..self.end).unwrap_or_default()
    }
}

/// The folded rows of an `INSERT … VALUES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The first row, parentheses included.
    pub first: (usize, usize),
    /// One past the last byte of the last row.
    pub end: usize,
    /// How many rows.
    pub count: usize,
    /// Index of the first literal of the first row.
    pub first_literal: usize,
    /// Literals in each row.
    pub per_row: usize,
}

/// The shape of one statement. Reused from statement to statement: nothing is allocated once
/// the buffers have grown.
#[derive(Debug, Default)]
pub struct Template {
    /// The cache key: the text with literals replaced by marks.
    pub key: Vec<u8>,
    /// All literals, those of folded rows included.
    pub literals: Vec<Literal>,
    /// Folded rows, when the statement has some.
    pub rows: Option<Rows>,
    /// Whether a `;` separates statements: the shape is then of no use.
    pub multiple: bool,
}

/// Introduces a literal in a key. No token contains it: the lexer refuses control characters.
const LITERAL: u8 = 1;
/// Stands after folded rows in a key.
const ROWS: u8 = 2;

impl Template {
    /// Reads a statement. On an error the contents mean nothing.
    pub fn read(&mut self, sql: &[u8], mode: LexMode) -> Result<(), LexError> {
        if !self.read_once(sql, mode, true)? {
            self.read_once(sql, mode, false)?;
        }
        Ok(())
    }

    /// Reads without folding rows.
    pub fn read_unfolded(&mut self, sql: &[u8], mode: LexMode) -> Result<(), LexError> {
        self.read_once(sql, mode, false).map(|_| ())
    }

    /// One pass; `Ok(false)` when rows turned out not to be alike.
    fn read_once(&mut self, sql: &[u8], mode: LexMode, fold: bool) -> Result<bool, LexError> {
        self.key.clear();
        self.literals.clear();
        self.rows = None;
        self.multiple = false;
        let mut lexer = Lexer::new(sql, mode);
        let mut previous_end = 0;
        let mut tokens = 0usize;
        let mut state = Fold::Before;
        let mut depth = 0usize;
        let mut ended = false;
        while let Some(token) = lexer.next_token()? {
            if token.is(b';') {
                ended = true;
                continue;
            }
            if ended {
                self.multiple = true;
            }
            let gap = tokens > 0 && token.start > previous_end;
            previous_end = token.end;
            tokens += 1;
            let key_before = self.key.len();
            if gap {
                self.key.push(b' ');
            }
            match token.kind {
                TokenKind::Literal(kind) => {
                    let is_digits = kind == LiteralKind::Integer && begins_time(&self.key);
                    self.key.extend_from_slice(&[LITERAL, kind.mark()]);
                    if is_digits {
                        self.key.extend_from_slice(token.text(sql));
                    }
                    self.literals.push(Literal {
                        start: token.start,
                        end: token.end,
                        kind,
                    });
                }
                _ => self.key.extend_from_slice(token.text(sql)),
            }
            if !fold {
                continue;
            }
            match &mut state {
                Fold::Never | Fold::Done => {}
                Fold::Before => {
                    if tokens == 1
                        && !(token.is_word(sql, "insert") || token.is_word(sql, "replace"))
                    {
                        state = Fold::Never;
                    } else if token.is_word(sql, "values") || token.is_word(sql, "value") {
                        state = Fold::Keyword;
                    }
                }
                Fold::Keyword => {
                    if token.is(b'(') {
                        depth = 1;
                        state = Fold::First {
                            // the shape of a row begins with its parenthesis, without the gap
                            key: self.key.len() - 1,
                            start: token.start,
                            literal: self.literals.len(),
                        };
                    } else {
                        state = Fold::Never;
                    }
                }
                Fold::First {
                    key,
                    start,
                    literal,
                } => {
                    track(&mut depth, token.kind);
                    if depth == 0 {
                        self.rows = Some(Rows {
                            first: (*start, token.end),
                            end: token.end,
                            count: 1,
                            first_literal: *literal,
                            per_row: self.literals.len() - *literal,
                        });
                        state = Fold::Between {
                            key: *key,
                            key_end: self.key.len(),
                        };
                    }
                }
                Fold::Between { key, key_end } => {
                    if token.is(b',') {
                        self.key.truncate(key_before);
                        state = Fold::Comma {
                            key: *key,
                            key_end: *key_end,
                        };
                    } else {
                        let tail = self.key.split_off(key_before);
                        self.key.push(ROWS);
                        self.key.extend_from_slice(&tail);
                        state = Fold::Done;
                    }
                }
                Fold::Comma { key, key_end } => {
                    if !token.is(b'(') {
                        return Ok(false);
                    }
                    depth = 1;
                    state = Fold::Next {
                        key: *key,
                        key_end: *key_end,
                        from: self.key.len() - 1,
                    };
                    self.key.truncate(key_before);
                    self.key.push(b'(');
                    if let Fold::Next { from, .. } = &mut state {
                        *from = key_before;
                    }
                }
                Fold::Next { key, key_end, from } => {
                    track(&mut depth, token.kind);
                    if depth == 0 {
                        if self.key[*key..*key_end] != self.key[*from..] {
                            return Ok(false);
                        }
                        self.key.truncate(*from);
                        if let Some(rows) = &mut self.rows {
                            rows.end = token.end;
                            rows.count += 1;
                        }
                        state = Fold::Between {
                            key: *key,
                            key_end: *key_end,
                        };
                    }
                }
            }
        }
        match state {
            Fold::Between { .. } => self.key.push(ROWS),
            Fold::First { .. } | Fold::Comma { .. } | Fold::Next { .. } => return Ok(false),
            _ => {}
        }
        if let Some(rows) = self.rows
            && self.literals.len() > rows.first_literal + rows.per_row * rows.count
        {
            // A plan counts the literals behind the rows from the first one of the statement, so it serves one number of rows.
            self.key.push(ROWS);
            let mut count = rows.count;
            while count > 0 {
                self.key.push(b'0' + (count % 10) as u8);
                count /= 10;
            }
        }
        Ok(true)
    }
}

/// Whether a key ends within `NOW(`, so that digits come next.
fn begins_time(key: &[u8]) -> bool {
    let Some(name) = key.trim_ascii_end().strip_suffix(b"(") else {
        return false;
    };
    let start = name
        .iter()
        .rposition(|b| !b.is_ascii_alphanumeric() && *b != b'_');
    let word = &name[start.map_or(0, |at| at + 1)..];
    MOMENTS
        .iter()
        .any(|moment| word.eq_ignore_ascii_case(moment.as_bytes()))
}

/// Where in an `INSERT` the pass is.
enum Fold {
    Before,
    Keyword,
    First {
        key: usize,
        start: usize,
        literal: usize,
    },
    Between {
        key: usize,
        key_end: usize,
    },
    Comma {
        key: usize,
        key_end: usize,
    },
    Next {
        key: usize,
        key_end: usize,
        from: usize,
    },
    Done,
    Never,
}

fn track(depth: &mut usize, kind: TokenKind) {
    match kind {
        TokenKind::Punct(b'(') => *depth += 1,
        TokenKind::Punct(b')') => *depth = depth.saturating_sub(1),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sql: &str) -> Template {
        let mut t = Template::default();
        t.read(sql.as_bytes(), LexMode::default()).unwrap();
        t
    }

    #[test]
    fn statements_that_differ_in_literals_share_a_shape() {
        let a = read("SELECT c FROM t WHERE id=1 /* x */ AND k = 'a'");
        let b = read("SELECT c FROM t  WHERE id=22 AND\nk = 'b''c'");
        assert_eq!(a.key, b.key);
        assert_eq!(a.literals.len(), 2);
        assert_ne!(a.key, read("SELECT c FROM t WHERE id='1' AND k = 'a'").key);
        assert_ne!(read("SELECT count (1)").key, read("SELECT count(1)").key);
    }

    #[test]
    fn rows_that_look_alike_are_folded() {
        let one = read("INSERT INTO t(a,b) VALUES (1,'x')");
        let many = read("INSERT INTO t(a,b) VALUES (1,'x'),(2,'y') , (3,'z')");
        assert_eq!(one.key, many.key);
        let rows = many.rows.unwrap();
        assert_eq!((rows.count, rows.first_literal, rows.per_row), (3, 0, 2));
        assert_eq!(many.literals.len(), 6);
        let tail =
            read("INSERT INTO t VALUES (1,(2)),(3,(4)) ON DUPLICATE KEY UPDATE a=VALUES(a)+7");
        assert_eq!(tail.rows.unwrap().count, 2);
        assert_eq!(tail.literals.len(), 5);
        assert_eq!(
            tail.key,
            read("INSERT INTO t VALUES (1,(2)),(5,(6)) ON DUPLICATE KEY UPDATE a=VALUES(a)+9").key
        );
    }

    #[test]
    fn literals_behind_rows_tell_their_number() {
        let with = |rows: &str, tail: &str| read(&format!("INSERT INTO t VALUES {rows}{tail}")).key;
        let tail = " ON DUPLICATE KEY UPDATE a = 5";
        assert_eq!(with("(1)", ""), with("(1), (2)", ""));
        assert_ne!(with("(1)", tail), with("(1), (2)", tail));
        assert_ne!(with("(1), (2), (3)", tail), with("(1), (2)", tail));
        assert_eq!(with("(3), (4)", tail), with("(1), (2)", tail));
    }

    #[test]
    fn rows_of_different_shape_are_not_folded() {
        let t = read("INSERT INTO t VALUES (1,NULL),(2,'y')");
        assert!(t.rows.is_none());
        assert_eq!(t.literals.len(), 3);
        assert_ne!(t.key, read("INSERT INTO t VALUES (1,NULL)").key);
    }

    #[test]
    fn the_digits_of_a_time_belong_to_the_shape() {
        let rows = |rows: &str| read(&format!("INSERT INTO t VALUES {rows}"));
        assert_eq!(
            rows("(1, NOW(6))").key,
            rows("(2, NOW(6)), (3, NOW(6))").key
        );
        assert_ne!(rows("(1, NOW(6))").key, rows("(1, NOW(3))").key);
        assert!(rows("(1, NOW(6)), (2, NOW(3))").rows.is_none());
        assert_ne!(rows("(1, now( 6 ))").key, rows("(1, now( 3 ))").key);
        assert_eq!(rows("(1, YEAR(6)), (2, YEAR(3))").rows.unwrap().count, 2);
        assert_eq!(rows("(1, KNOW(6)), (2, KNOW(3))").rows.unwrap().count, 2);
    }

    #[test]
    fn several_statements_are_noticed() {
        assert!(read("a; b").multiple);
        assert!(!read("a;").multiple);
    }
}
