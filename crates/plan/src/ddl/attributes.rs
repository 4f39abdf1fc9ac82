//! What stands behind a column's type, attribute by attribute.
//!
//! A definition's words are names, keywords or options, depending on their place: `comment` may be
//! a column, and stands in `COMMENT 'x'` of another. So no question about a definition is answered
//! by looking for a word in it. Here each attribute is read with what belongs to it, and only
//! expressions are said to name columns. From the first token on that is not understood, the rest
//! counts as an expression.

use std::ops::Range;

use super::column_type::type_words;
use super::options::versioned;
use super::reader::Reader;
use crate::errors;
use crate::lex::{LiteralKind, TokenKind};
use crate::planner::{Planned, identifier, refuse};

/// The attributes of a column, plain or protected, of either family.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    /// AUTO_INCREMENT, or SERIAL.
    pub(super) auto_increment: bool,
    /// The expression of a generated column. It is empty for the start and end of a row's time.
    pub(super) generated: Option<Range<usize>>,
    /// Where names of columns may stand: in DEFAULT, ON UPDATE, CHECK and generated columns.
    pub(super) expressions: Vec<Range<usize>>,
    /// `WITH SYSTEM VERSIONING`, which makes a table keep versions of its rows.
    pub(super) is_versioned: bool,
    /// `REFERENCES` and what belongs to it.
    pub(super) reference: Option<Range<usize>>,
    /// The first token that is not understood.
    pub(super) unknown: Option<usize>,
}

/// Attributes of one word.
const SINGLE: [&str; 17] = [
    "null",
    "unsigned",
    "signed",
    "zerofill",
    "binary",
    "ascii",
    "unicode",
    "byte",
    "invisible",
    "visible",
    "virtual",
    "stored",
    "persistent",
    "enforced",
    "enable",
    "precision",
    "varying",
];

/// Attributes with a name, a number or a text behind them, perhaps after `=`.
const WITH_VALUE: [&str; 9] = [
    "comment",
    "collate",
    "column_format",
    "storage",
    "engine_attribute",
    "secondary_engine_attribute",
    "srid",
    "ref_system_id",
    "charset",
];

impl Attributes {
    /// Reads a definition, which begins with the column's name.
    pub(super) fn read(reader: &Reader, definition: Range<usize>) -> Self {
        let mut r = Reader::over(reader.request, reader.tokens, definition);
        let mut found = Attributes::default();
        let Some((word, _)) = r.name().and_then(|_| type_words(&mut r).ok()) else {
            return found.unknown_from(&r);
        };
        found.auto_increment = word == "serial";
        while !r.done() {
            let start = r.at;
            if !found.attribute(&mut r) {
                r.at = start;
                return found.unknown_from(&r);
            }
        }
        found
    }

    fn unknown_from(mut self, r: &Reader) -> Self {
        if !r.done() {
            self.unknown = Some(r.at);
            self.expressions.push(r.at..r.end);
        }
        self
    }

    /// Reads one attribute. `false`: it is not understood.
    fn attribute(&mut self, r: &mut Reader) -> bool {
        if SINGLE.iter().any(|word| r.eat(word)) {
            return true;
        }
        if WITH_VALUE.iter().any(|word| r.eat(word)) {
            r.eat_punct(b'=');
            return value(r);
        }
        if r.eat("not") {
            return r.eat("null") || r.eat("enforced") || r.eat("secondary");
        }
        if r.eat("auto_increment") {
            self.auto_increment = true;
            return true;
        }
        if r.eat("serial") {
            self.auto_increment = true;
            return r.eat("default") && r.eat("value");
        }
        if r.eat("primary") {
            r.eat("key");
            return true;
        }
        if r.eat("unique") {
            r.eat("key");
            return true;
        }
        if r.eat("key") {
            return true;
        }
        if r.eat("character") || r.eat("char") {
            return r.eat("set") && value(r);
        }
        if r.eat("compressed") {
            return !r.eat_punct(b'=') || value(r);
        }
        if r.eat_words(&["with", "system", "versioning"]) {
            self.is_versioned = true;
            return true;
        }
        if r.eat_words(&["without", "system", "versioning"]) {
            return true;
        }
        if r.eat("encrypted") {
            return r.eat("for") && r.parenthesized().is_some();
        }
        if r.eat("default") {
            return self.value_of_default(r);
        }
        if r.eat("on") {
            return r.eat("update") && self.value_of_default(r);
        }
        if r.is("references") && self.reference.is_none() {
            let start = r.at;
            r.at += 1;
            let is_read = references(r);
            self.reference = Some(start..r.at);
            return is_read;
        }
        self.expression(r) || engine_option(r)
    }

    /// Reads what stands behind DEFAULT or ON UPDATE.
    fn value_of_default(&mut self, r: &mut Reader) -> bool {
        let start = r.at;
        while r.eat_punct(b'-') || r.eat_punct(b'+') {}
        let read = match r.token().map(|token| token.kind) {
            Some(TokenKind::Literal(_) | TokenKind::Variable) => {
                r.at += 1;
                true
            }
            Some(TokenKind::Punct(b'(')) => r.parenthesized().is_some(),
            Some(TokenKind::Word | TokenKind::Quoted) => call(r),
            _ => false,
        };
        if read {
            self.expressions.push(start..r.at);
        }
        read
    }

    /// Reads `[CONSTRAINT [name]] CHECK (…)` and `[GENERATED ALWAYS] AS (…)`.
    fn expression(&mut self, r: &mut Reader) -> bool {
        if r.eat("generated") {
            if !r.eat("always") {
                return false;
            }
            if r.is("as") && r.word_at(1, "row") {
                r.at += 2;
                self.generated = Some(r.at..r.at);
                return r.eat("start") || r.eat("end");
            }
        }
        if r.eat("as") {
            let Some(inside) = r.parenthesized() else {
                return false;
            };
            self.generated = Some(inside.clone());
            self.expressions.push(inside);
            return true;
        }
        if r.eat("constraint") && !r.is("check") && r.name().is_none() {
            return false;
        }
        let inside = match r.eat("check") {
            true => r.parenthesized(),
            false => None,
        };
        let read = inside.is_some();
        self.expressions.extend(inside);
        read
    }
}

/// Refuses a plain column whose expressions read one that is protected.
pub(super) fn check_expressions(
    reader: &Reader,
    definition: Range<usize>,
    is_protected: impl Fn(&str) -> bool,
) -> Planned<()> {
    let attributes = Attributes::read(reader, definition);
    if attributes.is_versioned {
        return versioned(&errors::DEFINITION);
    }
    for expression in &attributes.expressions {
        let tokens = reader.tokens[expression.clone()].iter();
        let mut names = tokens.filter_map(|token| identifier(reader.sql(), token));
        let Some(name) = names.find(|name| is_protected(name)) else {
            continue;
        };
        let about = match attributes.generated {
            Some(_) => format!(
                "a generated column reads column {name}; compute it in queries, or in an ordinary column that the application fills"
            ),
            None => format!("an expression reads column {name}"),
        };
        return refuse(&errors::DEFINITION, about);
    }
    Ok(())
}

/// A name, a number or a text.
fn value(r: &mut Reader) -> bool {
    let is_value = r.token().is_some_and(|token| {
        matches!(
            token.kind,
            TokenKind::Word | TokenKind::Quoted | TokenKind::Literal(_)
        )
    });
    r.at += usize::from(is_value);
    is_value
}

/// A constant's word, a column, or a call; a bare CASE ends with END.
fn call(r: &mut Reader) -> bool {
    if r.is("case") {
        while !r.done() && !r.eat("end") {
            r.at += 1;
        }
        return true;
    }
    // NEXT VALUE FOR a sequence
    if r.eat("next") || r.eat("previous") {
        return r.eat("value") && r.eat("for") && path(r);
    }
    if !path(r) {
        return false;
    }
    // DATE '2026-01-01'
    let is_text = |kind| matches!(kind, TokenKind::Literal(LiteralKind::String));
    if r.token().is_some_and(|token| is_text(token.kind)) {
        r.at += 1;
        return true;
    }
    !r.token().is_some_and(|token| token.is(b'(')) || r.parenthesized().is_some()
}

/// `[database.]name`
fn path(r: &mut Reader) -> bool {
    while r.name().is_some() {
        if !r.eat_punct(b'.') {
            return true;
        }
    }
    false
}

/// Reads what stands behind REFERENCES.
fn references(r: &mut Reader) -> bool {
    if !path(r) {
        return false;
    }
    r.parenthesized();
    loop {
        if r.eat("match") {
            r.at += 1;
            continue;
        }
        let is_action = r.is("on") && (r.word_at(1, "delete") || r.word_at(1, "update"));
        let names_action = is_action
            && ["restrict", "cascade", "set", "no"]
                .iter()
                .any(|word| r.word_at(2, word));
        if !names_action {
            return true;
        }
        let words = if r.word_at(2, "set") || r.word_at(2, "no") {
            4
        } else {
            3
        };
        r.at = (r.at + words).min(r.end);
    }
}

/// MariaDB's `name = value`, which storage engines define.
fn engine_option(r: &mut Reader) -> bool {
    r.name().is_some() && r.eat_punct(b'=') && value(r)
}
