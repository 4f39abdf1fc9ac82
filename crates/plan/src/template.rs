//! The shape of a statement: its text with the literals taken out.
//!
//! A repeated statement differs from the last one in its literals only, so the plan is cached under
//! the shape and found again after one pass over the text. White space and comments do not matter
//! to the shape; the kind of each literal does (a plan for `k = 5` is not a plan for `k = 'five'`),
//! and so do the digits in `NOW(6)`, which say what value that is. The rows of
//! `INSERT … VALUES (…),(…),…` that look alike are folded into one, so that one plan serves any
//! number of rows, unless literals follow them.

use crate::lex::{LexError, LexMode, Lexer, LiteralKind, Token, TokenKind};

/// The time of a statement, with digits of a fraction in parentheses. Such digits are a part of a
/// statement's shape.
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
    /// A comment stands behind the statement's semicolon. Where several statements may be sent, it
    /// is one that does nothing.
    pub trailed: bool,
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
        self.clear();
        let mut lexer = Lexer::new(sql, mode);
        let mut previous_end = 0;
        let mut ended = None;
        let mut folding = Folding::default();
        while let Some(token) = lexer.next_token()? {
            if token.is(b';') {
                ended = ended.or(Some(token.end));
                continue;
            }
            if ended.is_some() {
                self.multiple = true;
            }
            let key_before = self.key.len();
            if key_before > 0 && token.start > previous_end {
                self.key.push(b' ');
            }
            previous_end = token.end;
            self.push_token(sql, &token);
            if fold && !self.fold_token(&mut folding, sql, &token, key_before) {
                return Ok(false);
            }
        }
        if folding.is_within_rows() {
            return Ok(false);
        }
        if let Fold::Between(_) = folding.state {
            self.key.push(ROWS);
        }
        let is_more = |b: &u8| *b != b';' && !b.is_ascii_whitespace();
        self.trailed = ended.is_some_and(|at| sql[at..].iter().any(is_more));
        self.tell_count();
        Ok(true)
    }

    /// The shape for people to read: `?` in the place of literals, and `…` in that of more of them
    /// or more rows. No literal is in it; names are. It ends at `most` characters, and before a
    /// comment that servers execute: its text may hold literals.
    pub fn shown(&self, most: usize) -> String {
        let comment = self.key.windows(2).position(|two| two == b"/*");
        let key = &self.key[..comment.unwrap_or(self.key.len())];
        let mut shown: Vec<u8> = Vec::with_capacity(key.len());
        let mut bytes = key.iter().copied().enumerate().peekable();
        while let Some((at, byte)) = bytes.next() {
            match byte {
                LITERAL => {
                    bytes.next(); // its kind
                    if !begins_time(&key[..at]) {
                        put_mark(&mut shown);
                    }
                }
                ROWS => {
                    // in the end, the number of rows
                    let mut is_number = false;
                    while bytes.next_if(|(_, b)| b.is_ascii_digit()).is_some() {
                        is_number = true;
                    }
                    if !is_number {
                        shown.extend_from_slice(", …".as_bytes());
                    }
                }
                b'?' => put_mark(&mut shown),
                byte => shown.push(byte),
            }
        }
        if comment.is_some() {
            shown.extend_from_slice("/*…".as_bytes());
        }
        let text = String::from_utf8_lossy(&shown);
        match text.char_indices().nth(most) {
            None => text.into_owned(),
            Some((cut, _)) => format!("{}…", &text[..cut]),
        }
    }

    fn clear(&mut self) {
        self.key.clear();
        self.literals.clear();
        self.rows = None;
        self.multiple = false;
        self.trailed = false;
    }

    /// Adds a token to the key: a literal as the mark of its kind, anything else as it stands.
    #[inline]
    fn push_token(&mut self, sql: &[u8], token: &Token) {
        let TokenKind::Literal(kind) = token.kind else {
            self.key.extend_from_slice(token.text(sql));
            return;
        };
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

    /// Folds rows by the token that was just added to the key. `key_before` is the key's length
    /// without it. `false`: the rows are not alike.
    #[inline]
    fn fold_token(
        &mut self,
        folding: &mut Folding,
        sql: &[u8],
        token: &Token,
        key_before: usize,
    ) -> bool {
        let Folding { state, depth } = folding;
        match *state {
            Fold::Never | Fold::Done => {}
            Fold::Before => {
                let is_first = key_before == 0;
                if is_first && !(token.is_word(sql, "insert") || token.is_word(sql, "replace")) {
                    *state = Fold::Never;
                } else if token.is_word(sql, "values") || token.is_word(sql, "value") {
                    *state = Fold::Keyword;
                }
            }
            Fold::Keyword => {
                *state = Fold::Never;
                if token.is(b'(') {
                    *depth = 1;
                    *state = Fold::First {
                        // the shape of a row begins with its parenthesis, without the gap
                        key: self.key.len() - 1,
                        start: token.start,
                        literal: self.literals.len(),
                    };
                }
            }
            Fold::First {
                key,
                start,
                literal,
            } => {
                track(depth, token.kind);
                if *depth == 0 {
                    self.rows = Some(Rows {
                        first: (start, token.end),
                        end: token.end,
                        count: 1,
                        first_literal: literal,
                        per_row: self.literals.len() - literal,
                    });
                    let end = self.key.len();
                    *state = Fold::Between(RowShape { start: key, end });
                }
            }
            Fold::Between(first) => {
                if token.is(b',') {
                    self.key.truncate(key_before);
                    *state = Fold::Comma(first);
                } else {
                    let tail = self.key.split_off(key_before);
                    self.key.push(ROWS);
                    self.key.extend_from_slice(&tail);
                    *state = Fold::Done;
                }
            }
            Fold::Comma(first) => {
                if !token.is(b'(') {
                    return false;
                }
                *depth = 1;
                // without the gap, as in the first row
                self.key.truncate(key_before);
                self.key.push(b'(');
                let from = key_before;
                *state = Fold::Next { first, from };
            }
            Fold::Next { first, from } => {
                track(depth, token.kind);
                if *depth == 0 {
                    if !self.ends_alike(first, from, token.end) {
                        return false;
                    }
                    *state = Fold::Between(first);
                }
            }
        }
        true
    }

    /// Takes a row that has ended out of the key again if it is like the first one.
    fn ends_alike(&mut self, first: RowShape, from: usize, end: usize) -> bool {
        if self.key[first.start..first.end] != self.key[from..] {
            return false;
        }
        self.key.truncate(from);
        if let Some(rows) = &mut self.rows {
            rows.end = end;
            rows.count += 1;
        }
        true
    }

    /// Puts the number of rows into the key where literals follow them. A plan counts those from
    /// the first literal of the statement, so it serves one number of rows.
    fn tell_count(&mut self) {
        let Some(rows) = self.rows else { return };
        if self.literals.len() <= rows.first_literal + rows.per_row * rows.count {
            return;
        }
        self.key.push(ROWS);
        let mut count = rows.count;
        while count > 0 {
            self.key.push(b'0' + (count % 10) as u8);
            count /= 10;
        }
    }
}

/// Adds the mark of a literal, or of one more in a list of them.
fn put_mark(shown: &mut Vec<u8>) {
    let list = shown.trim_ascii_end().strip_suffix(b",");
    let list = list.map(<[u8]>::trim_ascii_end);
    let more = "?, …".as_bytes();
    match list.map(|list| (list.len(), list.ends_with(b"?"), list.ends_with(more))) {
        Some((end, true, _)) => {
            shown.truncate(end);
            shown.extend_from_slice(", …".as_bytes());
        }
        Some((end, _, true)) => shown.truncate(end),
        _ => shown.push(b'?'),
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

/// The first row's place in the key.
#[derive(Clone, Copy)]
struct RowShape {
    start: usize,
    end: usize,
}

/// Where in an `INSERT` the pass is.
#[derive(Clone, Copy, Default)]
enum Fold {
    /// Before `VALUES`.
    #[default]
    Before,
    /// Behind `VALUES`.
    Keyword,
    /// In the first row: where it begins in the key, in the text, and among the literals.
    First {
        key: usize,
        start: usize,
        literal: usize,
    },
    /// Behind a row.
    Between(RowShape),
    /// Behind the comma after a row.
    Comma(RowShape),
    /// In a later row, which begins here in the key.
    Next { first: RowShape, from: usize },
    /// Behind the rows.
    Done,
    /// The statement has none.
    Never,
}

/// The state of folding rows.
#[derive(Default)]
struct Folding {
    state: Fold,
    /// Open parentheses within a row.
    depth: usize,
}

impl Folding {
    /// Whether a row is still to end, or to come.
    fn is_within_rows(&self) -> bool {
        let state = self.state;
        matches!(
            state,
            Fold::First { .. } | Fold::Comma(_) | Fold::Next { .. }
        )
    }
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
    fn a_shape_is_shown_without_literals() {
        let shown = |sql: &str| read(sql).shown(80);
        for (sql, wanted) in [
            (
                "SELECT a /* 7 */ FROM t WHERE b = 'x' AND c IN (1,2 , 3)",
                "SELECT a FROM t WHERE b = ? AND c IN (?, …)",
            ),
            ("SELECT b+1, -2.5, x'00', 5", "SELECT b+?, -?, …"),
            (
                "SELECT NOW(6), `a b`, c IN (?,?)",
                "SELECT NOW(6), `a b`, c IN (?, …)",
            ),
            (
                "INSERT INTO t VALUES (1,'a'),(2,'b') ON DUPLICATE KEY UPDATE a = 5",
                "INSERT INTO t VALUES (?, …), … ON DUPLICATE KEY UPDATE a = ?",
            ),
        ] {
            assert_eq!(shown(sql), wanted);
        }
        assert_eq!(read("SELECT ä, bc").shown(8), "SELECT ä…");
        assert_eq!(
            shown("SELECT a /*!50000 , 'secret' */ FROM t"),
            "SELECT a /*…"
        );
        // the number of rows is in the key and is not shown
        let sql = "INSERT INTO t VALUES (1),(2) ON DUPLICATE KEY UPDATE a = a";
        assert!(!shown(sql).contains('2'));
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
        assert!(read("a; -- b").trailed && !read("a; -- b").multiple);
        assert!(read("a; /* b */;").trailed && read("a;; -- b").trailed);
        assert!(!read("a; ;").trailed && !read("/* b */ a").trailed);
    }
}
