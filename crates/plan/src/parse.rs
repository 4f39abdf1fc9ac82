//! The only door to the SQL parser, and the bound on what goes through it.
//!
//! A tree is as deep as its brackets are nested and as its chains are long: `1 + 1 + 1` leans to
//! the left, and so does every other operator. The parser reads chains in a loop, so no limit of
//! its own stops them; walking, cloning and dropping the tree is recursion. So the depth is bounded
//! before the parser is called, from tokens alone: [`Levels`] counts everything that could be an
//! operator or a keyword, whatever it is, so that an operator that a later parser learns is counted
//! already. A statement that may be deep is planned on a stack with [`with_room`] for that depth,
//! and [`statement`] and [`expression`] refuse a text for which the stack that is left would not
//! do, wherever they are called.

use std::sync::Mutex;

use sqlparser::ast::{Expr, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserOptions};
use sqlparser::tokenizer::{Token as Theirs, TokenWithSpan, Tokenizer};

use crate::dialect::{self, Servers};
use crate::errors::{NotUnderstood, Refusal};
use crate::lex::{Token, TokenKind};
use crate::planner::Planned;

/// The stack of a thread that plans statements, as sessions do. Memory is used only as far as the
/// stack grows.
pub const SESSION_STACK: usize = 1 << 20;
/// How deep a tree may be. A chain of ten thousand comparisons with OR is less.
pub(crate) const MAX_LEVELS: usize = 32_768;
/// How many `DIV` a statement may have. The parser copies all that stands before each of them, so a
/// chain takes as long as its square: 9,000 take fourteen seconds, a thousand a fifth of one.
const MAX_DIVISIONS: usize = 1_000;
/// Stack for one level: what the largest rule takes in a build without optimization, counted high.
const BYTES_PER_LEVEL: usize = 16 << 10;
/// Stack that planning takes besides.
const BYTES_BESIDES: usize = 256 << 10;
/// Above this, statements are planned one at a time: together they would take what memory there is.
const MANY_LEVELS: usize = 1_000;

/// What a token may mean for the depth of a tree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// A literal, a variable, a name in quotes: never an operator.
    Operand,
    /// A bare word: a name or a keyword.
    Word {
        /// Whether a bracket that begins with it holds a query, not a list.
        begins_query: bool,
    },
    /// Punctuation.
    Mark,
    /// `,`
    Comma,
    /// `(`
    Open,
    /// `)`
    Close,
}

/// Counts how deep a tree may be at most, give or take a factor of two.
///
/// Each token adds a level, with these exceptions. Operands add none. A word before punctuation
/// adds none, as punctuation adds one itself. A bracket behind a comma does not go on with what
/// stands before it. Brackets beside each other are no deeper than the deepest of them; in a
/// bracket that holds no query, nor are the items between commas.
pub(crate) struct Levels {
    open: Vec<Bracket>,
    before: Option<Part>,
}

#[derive(Clone, Copy, Default)]
struct Bracket {
    /// Levels of the tokens since the last comma that counts.
    item: usize,
    /// The most that an item before had.
    longest: usize,
    /// The deepest bracket inside.
    inside: usize,
    /// Whether commas separate items that do not hang together.
    is_list: bool,
    /// Whether its first token was seen.
    begun: bool,
}

impl Bracket {
    fn depth(&self) -> usize {
        self.item.max(self.longest) + self.inside
    }
}

impl Levels {
    fn new() -> Self {
        Levels {
            // a statement is no list
            open: vec![Bracket {
                begun: true,
                ..Bracket::default()
            }],
            before: None,
        }
    }

    /// The levels of these tokens; at most one more than [`MAX_LEVELS`].
    pub fn of(parts: impl Iterator<Item = Part>) -> usize {
        let mut levels = Levels::new();
        for part in parts {
            levels.add(part);
            if levels.open.len() > MAX_LEVELS {
                break;
            }
        }
        levels.end().min(MAX_LEVELS + 1)
    }

    fn add(&mut self, part: Part) {
        let before = self.before.replace(part);
        let Some(bracket) = self.open.last_mut() else {
            return;
        };
        if matches!(before, Some(Part::Word { .. }))
            && matches!(part, Part::Word { .. } | Part::Operand)
        {
            bracket.item += 1;
        }
        if !bracket.begun {
            bracket.begun = true;
            bracket.is_list = !matches!(part, Part::Word { begins_query: true } | Part::Open);
        }
        match part {
            Part::Operand | Part::Word { .. } => {}
            Part::Mark => bracket.item += 1,
            Part::Comma => {
                if bracket.is_list {
                    bracket.longest = bracket.longest.max(bracket.item);
                    bracket.item = 0;
                }
            }
            Part::Open => {
                if !matches!(before, None | Some(Part::Comma | Part::Open)) {
                    bracket.item += 1;
                }
                self.open.push(Bracket::default());
            }
            Part::Close => self.close(),
        }
    }

    fn close(&mut self) {
        if self.open.len() < 2 {
            return;
        }
        if let (Some(closed), Some(around)) = (self.open.pop(), self.open.last_mut()) {
            around.inside = around.inside.max(closed.depth() + 1);
        }
    }

    fn end(mut self) -> usize {
        while self.open.len() > 1 {
            self.close();
        }
        // a word at the very end
        self.open.last().map_or(0, Bracket::depth) + 1
    }
}

/// Whether a bracket that begins with this word holds a query.
fn begins_query(word: &[u8]) -> bool {
    const WORDS: [&str; 5] = ["select", "with", "values", "table", "from"];
    WORDS
        .iter()
        .any(|w| word.eq_ignore_ascii_case(w.as_bytes()))
}

/// How deep the tree of a statement may be.
pub(crate) fn levels(sql: &[u8], tokens: &[Token]) -> usize {
    Levels::of(tokens.iter().map(|token| match token.kind {
        TokenKind::Word => Part::Word {
            begins_query: begins_query(token.text(sql)),
        },
        TokenKind::Punct(b',') => Part::Comma,
        TokenKind::Punct(b'(') => Part::Open,
        TokenKind::Punct(b')') => Part::Close,
        TokenKind::Punct(_) => Part::Mark,
        TokenKind::Quoted
        | TokenKind::Literal(_)
        | TokenKind::Variable
        | TokenKind::Executable
        | TokenKind::Hint => Part::Operand,
    }))
}

/// The same of what the parser makes of a text, which decides.
fn levels_of_theirs(tokens: &[TokenWithSpan]) -> usize {
    Levels::of(tokens.iter().filter_map(|token| {
        Some(match &token.token {
            Theirs::Whitespace(_) | Theirs::EOF => return None,
            Theirs::Word(word) if word.quote_style.is_some() || word.value.starts_with('@') => {
                Part::Operand
            }
            Theirs::Word(word) => Part::Word {
                begins_query: begins_query(word.value.as_bytes()),
            },
            Theirs::Number(..) | Theirs::SingleQuotedString(_) | Theirs::Placeholder(_) => {
                Part::Operand
            }
            Theirs::Comma => Part::Comma,
            Theirs::LParen => Part::Open,
            Theirs::RParen => Part::Close,
            _ => Part::Mark,
        })
    }))
}

/// Does `work` where there is room for a tree with so many levels, or with [`MAX_LEVELS`] if they
/// are more.
pub(crate) fn with_room<R>(levels: usize, work: impl FnOnce() -> R) -> R {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let levels = levels.min(MAX_LEVELS);
    let needed = BYTES_BESIDES + levels * BYTES_PER_LEVEL;
    let _turn = (levels > MANY_LEVELS).then(|| {
        let turn = ONE_AT_A_TIME.lock();
        turn.unwrap_or_else(std::sync::PoisonError::into_inner)
    });
    stacker::maybe_grow(needed, needed + BYTES_BESIDES, work)
}

/// The refusal of a statement that may be deeper than [`MAX_LEVELS`].
pub(crate) fn too_deep() -> Refusal {
    let what = "operators and keywords within each other";
    NotUnderstood::TooMany(MAX_LEVELS, what).into()
}

/// The parser over a text, unless its tree could be deeper than the stack that is left.
fn parser(text: &str) -> Planned<Parser<'static>> {
    static DIALECT: Servers = Servers;
    let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
    let Ok(tokens) = tokens else {
        return NotUnderstood::Words.refuse();
    };
    let levels = levels_of_theirs(&tokens);
    let room = stacker::remaining_stack().unwrap_or_default();
    if levels > MAX_LEVELS || levels * BYTES_PER_LEVEL > room {
        return Err(too_deep());
    }
    let divisions = tokens
        .iter()
        .filter(|t| matches!(&t.token, Theirs::Word(word) if word.keyword == Keyword::DIV));
    if divisions.count() > MAX_DIVISIONS {
        return NotUnderstood::TooMany(MAX_DIVISIONS, "times DIV").refuse();
    }
    let options = ParserOptions::new().with_trailing_commas(false);
    Ok(Parser::new(&DIALECT)
        .with_options(options)
        .with_tokens_with_locations(tokens))
}

fn ended<T>(parser: &Parser, read: T) -> Planned<T> {
    match parser.peek_token_ref().token {
        Theirs::EOF => Ok(read),
        _ => NotUnderstood::TextBehind("its end").refuse(),
    }
}

/// Parses one statement.
pub(crate) fn statement(text: &str) -> Planned<Statement> {
    let mut parser = parser(text)?;
    match parser.parse_statement() {
        Ok(statement) if dialect::is_clear(&statement) => ended(&parser, statement),
        Ok(_) => NotUnderstood::ChainedPredicates.refuse(),
        Err(_) => NotUnderstood::Grammar.refuse(),
    }
}

/// Parses one expression.
pub(crate) fn expression(text: &str) -> Planned<Expr> {
    let mut parser = parser(text)?;
    match parser.parse_expr() {
        Ok(expression) if dialect::is_clear(&expression) => ended(&parser, expression),
        Ok(_) => NotUnderstood::ChainedPredicates.refuse(),
        Err(_) => NotUnderstood::Grammar.refuse(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lex::{LexMode, tokens};

    fn of(sql: &str) -> usize {
        let tokens = tokens(sql.as_bytes(), LexMode::default()).expect("tokens");
        levels(sql.as_bytes(), &tokens)
    }

    #[test]
    fn every_operator_is_a_level_and_no_item_of_a_list_is() {
        let chain =
            |link: &str, count| of(&format!("SELECT a FROM t WHERE 1{}", link.repeat(count)));
        for link in [
            "+1",
            " OVERLAPS 1",
            " MEMBER OF (1)",
            " AT TIME ZONE 'x'",
            "->'$.a'",
            " NEW_OPERATOR 1",
            "::int",
            " IS NULL",
            " COLLATE c",
            ".a",
            "[1]",
            "(1)",
            " UNION SELECT 1",
            " NOT BETWEEN 1 AND 1",
            " + (1)",
            " ISNULL +1",
            " . b",
        ] {
            assert!(chain(link, 500) >= 500, "{link}: {}", chain(link, 500));
        }
        assert!(of(&format!("SELECT {}1", "- ".repeat(500))) >= 500);
        assert!(of(&format!("SELECT {}1", "NOT ".repeat(500))) >= 500);
        assert!(of(&format!("SELECT {}1", "(".repeat(500))) >= 500);
        let list = |item: &str, tail: &str| {
            of(&format!(
                "SELECT a FROM t WHERE a IN (1{}){tail}",
                item.repeat(500)
            ))
        };
        for item in [", 1", ", -1", ", 'a'", ", (1, 2 + 3)", ", f(1 + 2)"] {
            assert!(list(item, "") < 20, "{item}: {}", list(item, ""));
        }
        assert!(
            of(&format!(
                "INSERT INTO t VALUES (1, -2){}",
                ", (3, -4)".repeat(500)
            )) < 20
        );
        assert!(
            of(&format!(
                "SELECT * FROM t WHERE a = 1{}",
                " OR t.a = 2".repeat(500)
            )) < 1600
        );
        assert_eq!(of(&"(".repeat(MAX_LEVELS * 3)), MAX_LEVELS + 1);
        assert_eq!(of(&"+".repeat(MAX_LEVELS * 3)), MAX_LEVELS + 1);
    }
}
