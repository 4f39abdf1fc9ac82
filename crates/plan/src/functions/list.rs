//! The select list of a statement: which of its items the proxy opens, and what they are called.

use onionskin_schema::folded;
use std::ops::Range;

use super::call::{Function, Term, between_commas, closing};
use super::{Call, CallError, OPENED, OpenCall, Opening, Piece, Reader, is_parameter, refused};
use crate::lex::{LiteralKind, Token, TokenKind};
use crate::text::identifier;

/// The outermost SELECT that begins a statement.
#[derive(Default)]
pub(super) struct SelectList {
    /// The tokens of its items; none where a statement begins otherwise.
    pub items: Vec<Range<usize>>,
    /// Its result goes into variables or a file, or a procedure.
    pub has_into: bool,
    /// What stands behind the list, if cells of the result may be opened under it.
    behind: Option<Range<usize>>,
}

/// Words between SELECT and the list.
const OPTIONS: [&str; 9] = [
    "all",
    "high_priority",
    "straight_join",
    "sql_small_result",
    "sql_big_result",
    "sql_buffer_result",
    "sql_no_cache",
    "sql_cache",
    "sql_calc_found_rows",
];

/// Words that end the list of a SELECT without FROM.
const ENDS: [&str; 13] = [
    "from",
    "where",
    "order",
    "group",
    "having",
    "limit",
    "into",
    "union",
    "except",
    "intersect",
    "for",
    "lock",
    "procedure",
];

/// Words behind the list, outside of parentheses, under which a cell of the result is not what it
/// is in its row, or is looked at before the proxy opens it.
const NOT_BEHIND: [&str; 9] = [
    "group",
    "having",
    "union",
    "except",
    "intersect",
    "minus",
    "into",
    "procedure",
    "window",
];

/// Words behind which another one is no alias.
const NO_ALIAS_BEHIND: [&str; 17] = [
    "and", "or", "xor", "not", "div", "mod", "like", "rlike", "regexp", "is", "in", "between",
    "collate", "binary", "then", "escape", "else",
];

impl SelectList {
    /// Of a statement that begins with SELECT; empty for others.
    pub fn of(sql: &[u8], tokens: &[Token]) -> SelectList {
        let mut list = SelectList::default();
        if !tokens.first().is_some_and(|t| t.is_word(sql, "select")) {
            return list;
        }
        let is_any = |t: &Token, words: &[&str]| words.iter().any(|w| t.is_word(sql, w));
        let mut start = 1;
        let mut is_distinct = false;
        while let Some(token) = tokens.get(start) {
            let distinct = is_any(token, &["distinct", "distinctrow"]);
            if !distinct && token.kind != TokenKind::Hint && !is_any(token, &OPTIONS) {
                break;
            }
            is_distinct |= distinct;
            start += 1;
        }
        let mut depth = 0usize;
        let outside = tokens
            .iter()
            .enumerate()
            .skip(start)
            .filter(move |(_, token)| {
                depth += usize::from(token.is(b'('));
                let is_outside = depth == 0;
                depth = depth.saturating_sub(usize::from(token.is(b')')));
                is_outside
            });
        let outside: Vec<(usize, &Token)> = outside.collect();
        let ends = |t: &Token| is_any(t, &ENDS) || t.is(b';');
        let end = outside.iter().find(|(_, t)| ends(t));
        let end = end.map_or(tokens.len(), |(at, _)| *at);
        let mut behind = outside.iter().filter(|(at, _)| *at >= end);
        let is_plain = !is_distinct && !behind.any(|(_, t)| is_any(t, &NOT_BEHIND));
        list.has_into = outside
            .iter()
            .any(|(_, t)| is_any(t, &["into", "procedure"]));
        list.behind = is_plain.then_some(end..tokens.len());
        list.items = between_commas(tokens, start..end);
        list
    }
}

/// The parts of an item that is opened.
struct Opened {
    function: Function,
    /// The token of the function's name.
    call: usize,
    as_text: bool,
    is_short: bool,
    /// The token of its alias.
    alias: Option<usize>,
}

impl Reader<'_> {
    /// An item of the select list.
    pub(super) fn item(&mut self, list: &SelectList, item: &Range<usize>) -> Result<(), CallError> {
        if let Some(opened) = self.opened(item) {
            return self.open(list, item, &opened);
        }
        let before = self.calls.pieces.len();
        // As a literal or a parameter it would have another type. Of a call alone, nothing else
        // depends on it.
        let is_alone = self.binary_call(item);
        if let Some(end) = is_alone {
            self.sql_up_to(self.tokens[item.start].start);
            self.push_sql(b"CAST(");
            self.range(item.start..end)?;
            self.push_sql(b" AS BINARY)");
            self.range(end..item.end)?;
        } else {
            self.range(item.clone())?;
        }
        let computed = |piece: &Piece| matches!(piece, Piece::Computed(_));
        let computes = self.calls.pieces[before..].iter().any(computed);
        if computes && !list.has_into && !self.has_alias(item) {
            self.sql_up_to(self.tokens[item.end - 1].end);
            self.name(self.text_of(item), None);
        }
        Ok(())
    }

    /// The end of a call that gives a binary string, if nothing but an alias stands beside it.
    fn binary_call(&self, item: &Range<usize>) -> Option<usize> {
        let function = self.function_at(item.start)?;
        let end = closing(self.tokens, item.start + 1)? + 1;
        let is_alone = end == item.end || self.has_alias(item) && item.end - end <= 2;
        (is_alone && !function.gives_text() && !function.opens()).then_some(end)
    }

    /// Gives the item that was just written a name of ours.
    fn name(&mut self, name: Vec<u8>, call: Option<OpenCall>) {
        let alias = format!(" AS `{OPENED}{}`", self.calls.openings.len());
        self.push_sql(alias.as_bytes());
        self.calls.openings.push(Opening { name, call });
        self.computes = true;
    }

    fn text_of(&self, item: &Range<usize>) -> Vec<u8> {
        let (first, last) = (&self.tokens[item.start], &self.tokens[item.end - 1]);
        self.sql[first.start..last.end].to_vec()
    }

    fn has_alias(&self, item: &Range<usize>) -> bool {
        let is_any = |t: &Token, words: &[&str]| words.iter().any(|w| t.is_word(self.sql, w));
        let mut depth = 0usize;
        for token in &self.tokens[item.clone()] {
            depth += usize::from(token.is(b'('));
            depth = depth.saturating_sub(usize::from(token.is(b')')));
            if depth == 0 && token.is_word(self.sql, "as") {
                return true;
            }
        }
        let [.., before, last] = &self.tokens[item.clone()] else {
            return false;
        };
        let may_be = match last.kind {
            TokenKind::Word => !is_any(last, &["end", "null", "true", "false", "unknown"]),
            TokenKind::Quoted | TokenKind::Literal(LiteralKind::String) => true,
            _ => false,
        };
        let ends_value = match before.kind {
            TokenKind::Punct(byte) => byte == b')',
            TokenKind::Word => !is_any(before, &NO_ALIAS_BEHIND),
            _ => true,
        };
        may_be && ends_value
    }

    /// Whether an item is a call that opens, with nothing but CAST, CONVERT and an alias around it.
    fn opened(&self, item: &Range<usize>) -> Option<Opened> {
        let at = |n: usize| self.tokens.get(n).filter(|_| n < item.end);
        let is_word = |n: usize, word: &str| at(n).is_some_and(|t| t.is_word(self.sql, word));
        let is = |n: usize, byte: u8| at(n).is_some_and(|t| t.is(byte));
        let casts = is_word(item.start, "cast");
        let converts = is_word(item.start, "convert");
        let as_text = (casts || converts) && is(item.start + 1, b'(');
        let call = item.start + if as_text { 2 } else { 0 };
        let function = self.function_at(call).filter(|f| f.opens())?;
        let mut end = closing(self.tokens, call + 1)? + 1;
        let mut is_short = false;
        if as_text {
            is_short = is_word(end + 1, "utf8") || is_word(end + 1, "utf8mb3");
            let is_set = |n: usize| {
                ["utf8mb4", "utf8mb3", "utf8"]
                    .iter()
                    .any(|set| is_word(n, set))
            };
            let fits = match converts {
                false => is_word(end, "as") && is_word(end + 1, "char"),
                true if is(end, b',') => is_word(end + 1, "char"),
                true => is_word(end, "using") && is_set(end + 1),
            };
            if !fits || !is(end + 2, b')') {
                return None;
            }
            end += 3;
        }
        let alias = match item.end - end {
            0 => None,
            1 => Some(end),
            2 if is_word(end, "as") => Some(end + 1),
            _ => return None,
        };
        Some(Opened {
            function,
            call,
            as_text,
            is_short,
            alias,
        })
    }

    /// Writes the cell of an item that is opened.
    fn open(
        &mut self,
        list: &SelectList,
        item: &Range<usize>,
        opened: &Opened,
    ) -> Result<(), CallError> {
        let function = opened.function;
        let Some(behind) = list.behind.clone() else {
            let about = format!(
                "{} beside DISTINCT, groups or a set operation",
                function.name()
            );
            return Err(refused(about));
        };
        let name = match opened.alias {
            None => self.text_of(item),
            Some(alias) => self.alias(alias)?,
        };
        if opened.alias.is_some() {
            self.must_not_sort(&name, behind)?;
        } else {
            self.must_not_count(behind)?;
        }
        let arguments = self.arguments_at(function, opened.call)?;
        let (cell, rest) = arguments
            .split_first()
            .ok_or_else(|| refused(function.name()))?;
        let mut terms = Vec::new();
        let mut vector = None;
        for (n, range) in rest.iter().enumerate() {
            match self.term(range.clone())? {
                Some(term) => terms.push(term),
                // an initialization vector of each row
                None if n == 1 && function == Function::AesDecrypt => {
                    vector = Some(range.clone());
                    terms.push(Term::Null);
                }
                None => {
                    let about = format!("{} with a key that is no constant", function.name());
                    return Err(refused(about));
                }
            }
        }
        let call = Call {
            function,
            name: self.written(opened.call),
            compares: false,
            arguments: std::iter::once(Term::Null).chain(terms).collect(),
        };
        self.must_hide_key(&call)?;
        let mut names = Vec::new();
        call.variables(&mut names);
        if !names.is_empty() && self.said.assigns {
            let about = "a variable of the server's that the statement may set";
            return Err(refused(about));
        }
        self.sql_up_to(self.tokens[item.start].start);
        self.push_sql(b"CAST(");
        if let Some(vector) = &vector {
            self.must_be_repeatable(vector)?;
            // 255 stands for NULL
            self.push_sql(b"CONCAT(CHAR(IFNULL(LEAST(LENGTH(");
            self.within(vector)?;
            self.push_sql(b"), 16), 255)), IFNULL(LEFT(CAST(");
            self.within(vector)?;
            self.push_sql(b" AS BINARY), 16), ''), CAST(");
            self.within(cell)?;
            self.push_sql(b" AS BINARY))");
        } else {
            self.within(cell)?;
        }
        self.push_sql(b" AS BINARY)");
        let call = OpenCall {
            function,
            name: call.name,
            rest: call.arguments.into_iter().skip(1).collect(),
            vector_in_cell: vector.is_some(),
            as_text: opened.as_text,
            is_short: opened.is_short,
        };
        self.name(name, Some(call));
        self.skip_to(item.end);
        Ok(())
    }

    /// Writes an argument, with what is computed in it.
    pub(super) fn within(&mut self, range: &Range<usize>) -> Result<(), CallError> {
        let Some(first) = self.tokens.get(range.start).filter(|_| !range.is_empty()) else {
            return Err(refused("an argument that is missing"));
        };
        if self.tokens[range.clone()].iter().any(is_parameter) {
            return Err(refused("a parameter in what is opened"));
        }
        self.taken = first.start;
        self.range(range.clone())?;
        self.sql_up_to(self.tokens[range.end - 1].end);
        Ok(())
    }

    fn alias(&self, at: usize) -> Result<Vec<u8>, CallError> {
        let token = &self.tokens[at];
        let name = match token.kind {
            TokenKind::Literal(LiteralKind::String) => {
                let text = token.text(self.sql);
                let inner = text.get(1..text.len() - 1).unwrap_or_default();
                let is_plain = !inner.iter().any(|b| matches!(b, b'\\' | b'\'' | b'"'));
                is_plain.then(|| inner.to_vec())
            }
            _ => identifier(self.sql, token).map(String::into_bytes),
        };
        name.ok_or_else(|| refused("an alias"))
    }

    /// Refuses ORDER BY that would sort by a column before it is opened.
    fn must_not_sort(&self, alias: &[u8], behind: Range<usize>) -> Result<(), CallError> {
        self.must_not_count(behind.clone())?;
        let alias = folded(&String::from_utf8_lossy(alias));
        for token in &self.tokens[self.sorting(behind)] {
            // how servers fold letters beyond ASCII is theirs to know
            let is_it =
                |name: String| folded(&name) == alias || !name.is_ascii() && !alias.is_ascii();
            if identifier(self.sql, token).is_some_and(is_it) {
                return Err(refused("ORDER BY what a function opens"));
            }
        }
        Ok(())
    }

    /// Refuses ORDER BY with the number of a column.
    fn must_not_count(&self, behind: Range<usize>) -> Result<(), CallError> {
        let range = self.sorting(behind);
        // a part without a name, whatever stands around the number
        let names = |t: &Token| match t.kind {
            TokenKind::Quoted => true,
            TokenKind::Word => !t.is_word(self.sql, "asc") && !t.is_word(self.sql, "desc"),
            _ => false,
        };
        let by_number = !range.is_empty()
            && between_commas(self.tokens, range)
                .into_iter()
                .any(|part| !self.tokens[part].iter().any(names));
        match by_number {
            true => Err(refused(
                "ORDER BY the number of a column, beside one that is opened",
            )),
            false => Ok(()),
        }
    }

    /// The tokens of ORDER BY, outside of parentheses.
    fn sorting(&self, behind: Range<usize>) -> Range<usize> {
        let mut depth = 0usize;
        let (mut start, mut end) = (behind.end, behind.end);
        for at in behind {
            let token = &self.tokens[at];
            depth += usize::from(token.is(b'('));
            depth = depth.saturating_sub(usize::from(token.is(b')')));
            if depth > 0 {
                continue;
            }
            let is = |word: &str| token.is_word(self.sql, word);
            if is("by") && at > 0 && self.tokens[at - 1].is_word(self.sql, "order") {
                (start, end) = (at + 1, self.tokens.len());
            } else if at >= start && (is("limit") || is("for") || is("lock") || token.is(b';')) {
                end = end.min(at);
            }
        }
        start.min(end)..end
    }
}
