//! The state of one planning run: the statement, its tokens, the edits collected so far.
//!
//! The server's text is the client's text with edits at the places of identifiers and
//! constants; nothing is printed back from a syntax tree, so whatever is not edited arrives as
//! it was written. The tree tells what each identifier means; the tokens tell where it stands.
//!
//! Two nets below the rules keep a gap in them from leaking: [`Planner::assemble`] refuses when
//! a word that names a protected column was never judged by a rule, and what still slipped
//! through would name a column that does not exist on the server.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::Table;
use onionskin_value::SqlType;
use sqlparser::ast::Ident;
use sqlparser::tokenizer::{Location, Span};

use crate::errors::{self, NotUnderstood};
pub(crate) use crate::errors::{Planned, refuse};
use crate::lex::{LiteralKind, Token, TokenKind};
use crate::plan::Computed;
use crate::plan::{ColumnUse, Grouping, Piece, Purpose, Slot, Source, Text, Upsert};
use crate::present::Present;
pub use crate::request::{Catalog, Known, Request, Settings, UseScratch};
use crate::template::{Literal, Template};
pub(crate) use crate::text::{TextBuilder, identifier, quoted};

/// A replacement of a range of the statement.
#[derive(Clone)]
struct Edit {
    range: Range<usize>,
    pieces: Text,
}

pub(crate) struct Planner<'a> {
    pub request: &'a Request<'a>,
    pub tokens: Vec<Token>,
    /// What the parser reads: same length, literals filled, comments and folded rows blank.
    pub parse_text: String,
    /// Byte offset of each character of `parse_text`, when it is not ASCII.
    offsets: Option<Vec<usize>>,
    edits: Vec<Edit>,
    pub columns: Vec<ColumnUse>,
    /// Start offsets of identifiers that a rule has judged.
    judged: HashSet<usize>,
    pub pinned: Vec<(usize, Vec<u8>)>,
    /// See [`crate::plan::Plan::probe`].
    pub probe: Option<Text>,
    /// See [`crate::plan::Plan::insert_only`].
    pub insert_only: Option<Text>,
    /// See [`crate::plan::Plan::grouping`].
    pub grouping: Option<Grouping>,
    /// The protected columns by whose tokens the query around the present place groups its rows.
    pub grouped: Vec<ColumnUse>,
    /// See [`crate::plan::Plan::row_ends`].
    pub row_ends: Vec<usize>,
    /// See [`crate::plan::Plan::surplus_values`].
    pub surplus_values: u64,
    /// See [`crate::plan::Plan::beside_plain`].
    pub beside_plain: Vec<(usize, SqlType)>,
    /// See [`crate::plan::Plan::upsert`].
    pub upsert: Option<Upsert>,
    /// Rows are locked as they are now, so that full-text indexes, which hold what was committed,
    /// cannot be used.
    pub locks: bool,
    /// The statement's tables take no hints about indexes: a DELETE of one table.
    pub takes_no_hints: bool,
    /// Constants that the scratch engine has to compute first.
    pub computed: Vec<Computed>,
    /// A protected column whose value only the scratch engine could compute.
    pub unfilled: Option<String>,
    /// Values that are the present time.
    pub present: Present,
    /// See [`crate::plan::Plan::rewritten`].
    pub rewritten: Vec<String>,
    /// Protected tables of the statement.
    pub near: Vec<Arc<Table>>,
}

/// Names that servers take for functions of their own only where the parenthesis follows at once.
/// With a blank between they look for a stored function. The parser here reads both alike.
const TIED_TO_PARENTHESES: [&str; 34] = [
    "adddate",
    "bit_and",
    "bit_or",
    "bit_xor",
    "cast",
    "count",
    "curdate",
    "curtime",
    "date_add",
    "date_sub",
    "extract",
    "group_concat",
    "json_arrayagg",
    "json_objectagg",
    "max",
    "mid",
    "min",
    "now",
    "position",
    "session_user",
    "st_collect",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "subdate",
    "substr",
    "substring",
    "sum",
    "sysdate",
    "system_user",
    "trim",
    "var_pop",
    "var_samp",
];
/// Words behind which such a name is that of a table or an index.
const BEFORE_OTHER_NAMES: [&str; 15] = [
    "into",
    "table",
    "index",
    "key",
    "update",
    "join",
    "from",
    "unique",
    "references",
    "replace",
    "ignore",
    "insert",
    "constraint",
    "exists",
    "with",
];

/// Whether a blank stands between such a name and its parenthesis. `IGNORE_SPACE` allows blanks,
/// and no comment.
fn calls_with_a_blank(request: &Request, tokens: &[Token]) -> bool {
    let sql = request.sql;
    let is_allowed = |gap: &[u8]| {
        gap.is_empty() || request.settings.lex.ignore_space && gap.trim_ascii().is_empty()
    };
    let is_one_of = |t: &Token, words: &[&str]| words.iter().any(|word| t.is_word(sql, word));
    (1..tokens.len()).any(|at| {
        let (name, next) = (&tokens[at - 1], &tokens[at]);
        next.is(b'(')
            && !is_allowed(sql.get(name.end..next.start).unwrap_or_default())
            && is_one_of(name, &TIED_TO_PARENTHESES)
            && !(at > 1 && {
                let before = &tokens[at - 2];
                before.is(b'.') || is_one_of(before, &BEFORE_OTHER_NAMES)
            })
    })
}

impl<'a> Planner<'a> {
    pub fn new(
        request: &'a Request<'a>,
        tokens: Vec<Token>,
        near: Vec<Arc<Table>>,
    ) -> Planned<Self> {
        // a hint may set for one statement what values were read and are shown by
        let sets = |t: &Token| {
            let text = t.text(request.sql).to_ascii_lowercase();
            t.kind == TokenKind::Hint && memchr::memmem::find(&text, b"set_var").is_some()
        };
        if !near.is_empty() && tokens.iter().any(sets) {
            return NotUnderstood::Within("SET_VAR", "a hint").refuse();
        }
        if !near.is_empty() && calls_with_a_blank(request, &tokens) {
            return NotUnderstood::BlankBehindFunction.refuse();
        }
        if !near.is_empty()
            && tokens
                .windows(2)
                .any(|pair| pair.iter().all(is_quoted_value))
        {
            return NotUnderstood::Grammar.refuse();
        }
        let parse_text =
            parse_text(request.sql, &tokens, request.template).ok_or(NotUnderstood::NotUtf8)?;
        let offsets = (!parse_text.is_ascii()).then(|| {
            parse_text
                .char_indices()
                .map(|(i, _)| i)
                .collect::<Vec<_>>()
        });
        Ok(Planner {
            request,
            tokens,
            parse_text,
            offsets,
            edits: Vec::new(),
            columns: Vec::new(),
            judged: HashSet::new(),
            pinned: Vec::new(),
            probe: None,
            insert_only: None,
            grouping: None,
            grouped: Vec::new(),
            row_ends: Vec::new(),
            surplus_values: 0,
            beside_plain: Vec::new(),
            upsert: None,
            locks: false,
            takes_no_hints: false,
            computed: Vec::new(),
            unfilled: None,
            present: Present::default(),
            rewritten: Vec::new(),
            near,
        })
    }

    /// The parser has read another text than `parse_text`: where each of its characters stands in
    /// the statement.
    pub fn count_from(&mut self, offsets: Vec<usize>) {
        self.offsets = Some(offsets);
    }

    pub fn sql(&self) -> &'a [u8] {
        self.request.sql
    }

    /// The byte offset where a span of the parser begins.
    pub fn offset(&self, span: Span) -> usize {
        let column = (span.start.column as usize).saturating_sub(1);
        match &self.offsets {
            None => column,
            Some(map) => map.get(column).copied().unwrap_or(self.parse_text.len()),
        }
    }

    /// The span that [`Self::offset`] turns into this offset.
    pub fn span_at(&self, offset: usize) -> Span {
        let column = match &self.offsets {
            None => offset,
            Some(map) => map.partition_point(|&at| at < offset),
        };
        let column = column as u64 + 1;
        Span::new(Location::new(1, column), Location::new(1, column))
    }

    /// The index of the token that covers an offset.
    pub fn token_at(&self, offset: usize) -> Planned<usize> {
        let i = self.tokens.partition_point(|t| t.end <= offset);
        match self.tokens.get(i) {
            Some(t) if t.start <= offset => Ok(i),
            _ => refuse(&errors::INTERNAL, "a position has no token"),
        }
    }

    /// The range of an identifier, marked as judged.
    pub fn judge(&mut self, ident: &Ident) -> Planned<Range<usize>> {
        let at = self.offset(ident.span);
        let token = self.tokens[self.token_at(at)?];
        self.judged.insert(token.start);
        Ok(token.start..token.end)
    }

    /// A token that names no column has been judged.
    pub fn pass(&mut self, token: &Token) {
        self.judged.insert(token.start);
    }

    /// The index of a column among the plan's columns.
    pub fn column_index(&mut self, column: &ColumnUse) -> usize {
        let same = |c: &ColumnUse| Arc::ptr_eq(&c.table, &column.table) && c.index == column.index;
        self.columns.iter().position(same).unwrap_or_else(|| {
            self.columns.push(column.clone());
            self.columns.len() - 1
        })
    }

    pub fn edit(&mut self, range: Range<usize>, pieces: Text) {
        self.edits.push(Edit { range, pieces });
    }

    pub fn edit_sql(&mut self, range: Range<usize>, sql: impl Into<Vec<u8>>) {
        self.edit(range, vec![Piece::Sql(sql.into())]);
    }

    /// Adds a text to the edit that ends here. `false`: there is none.
    pub fn append_to_edit(&mut self, end: usize, sql: impl Into<Vec<u8>>) -> bool {
        let edit = self.edits.iter_mut().find(|e| e.range.end == end);
        match edit {
            Some(edit) => edit.pieces.push(Piece::Sql(sql.into())),
            None => return false,
        }
        true
    }

    /// Whether edits were made inside a range.
    pub fn edited(&self, range: &Range<usize>) -> bool {
        self.edits
            .iter()
            .any(|e| e.range.start >= range.start && e.range.end <= range.end)
    }

    /// The literal that covers an offset.
    pub fn literal_index(&self, offset: usize) -> Option<usize> {
        let literals = &self.request.template.literals;
        let i = literals.partition_point(|l| l.end <= offset);
        literals.get(i).filter(|l| l.start <= offset).map(|_| i)
    }

    /// The statement's tokens without those of folded rows behind the first, which look like it.
    pub fn first_rows_tokens(&self) -> impl Iterator<Item = &Token> {
        let repeated = self
            .request
            .template
            .rows
            .map_or(0..0, |r| r.first.1..r.end);
        self.tokens
            .iter()
            .filter(move |t| !repeated.contains(&t.start))
    }

    /// The plan holds only for this value of the literal.
    pub fn pin(&mut self, literal: usize) {
        let text = self.request.template.literals[literal]
            .text(self.sql())
            .to_vec();
        self.pinned.push((literal, text));
    }

    /// The plan shows the client this text, with the constants in it.
    pub fn pin_within(&mut self, range: &Range<usize>) {
        let literals = &self.request.template.literals;
        let inside = |l: &&Literal| range.start <= l.start && l.end <= range.end;
        for index in 0..literals.len() {
            if literals.get(index).filter(inside).is_some() {
                self.pin(index);
            }
        }
    }

    pub fn slot(&mut self, column: &ColumnUse, purpose: Purpose, source: Source) -> Piece {
        let source = match purpose.stores() {
            true => self.settled(column, source),
            false => source,
        };
        let column = self.column_index(column);
        Piece::Slot(Slot {
            column,
            purpose,
            source,
            among: None,
        })
    }

    /// The token of this quoted or bare word's meaning as an identifier.
    pub fn name_of(&self, token: &Token) -> Option<String> {
        identifier(self.sql(), token)
    }

    /// The statement's text between two offsets, edits not applied, literals as pieces.
    pub fn original(&self, range: Range<usize>) -> Text {
        let mut out = TextBuilder::default();
        self.copy(range, &mut out, 0);
        out.finish()
    }

    /// Copies text without comments; literals become pieces, their indexes less `base`.
    pub fn copy(&self, range: Range<usize>, out: &mut TextBuilder, base: usize) {
        let first = self.tokens.partition_point(|t| t.end <= range.start);
        let mut at = range.start;
        for token in &self.tokens[first..] {
            if token.start >= range.end {
                break;
            }
            if token.start > at {
                out.sql(b" ");
            }
            match token.kind {
                TokenKind::Literal(_) => match self.literal_index(token.start) {
                    Some(i) => out.piece(Piece::Literal(i.wrapping_sub(base))),
                    None => out.sql(token.text(self.sql())),
                },
                _ => out.sql(token.text(self.sql())),
            }
            at = token.end;
        }
        if at < range.end {
            out.sql(b" ");
        }
    }

    /// The text of a range with the edits inside of it applied.
    pub fn render(&mut self, range: Range<usize>) -> Planned<Text> {
        self.edits.sort_by_key(|e| (e.range.start, e.range.end));
        let mut out = TextBuilder::default();
        let mut at = range.start;
        for edit in self
            .edits
            .iter()
            .filter(|e| e.range.start >= range.start && e.range.end <= range.end)
        {
            if edit.range.start < at {
                return refuse(&errors::INTERNAL, "two edits overlap");
            }
            self.copy(at..edit.range.start, &mut out, 0);
            for piece in &edit.pieces {
                out.piece(piece.clone());
            }
            at = edit.range.end;
        }
        self.copy(at..range.end, &mut out, 0);
        Ok(out.finish())
    }

    /// The text of a range, which shall come from elsewhere from now on: its edits are forgotten.
    pub fn take_text(&mut self, range: Range<usize>) -> Planned<Text> {
        let text = self.render(range.clone())?;
        self.edits
            .retain(|e| e.range.start < range.start || e.range.end > range.end);
        Ok(text)
    }

    /// The whole statement with the edits applied, after the check that no rule was missed.
    pub fn assemble(&mut self) -> Planned<Text> {
        self.check_judged()?;
        let end = self
            .tokens
            .iter()
            .rev()
            .find(|t| !t.is(b';'))
            .map_or(0, |t| t.end);
        self.render(0..end)
    }

    /// Tries something; what it did to the statement is undone if it is refused.
    pub fn tried<T>(&mut self, attempt: impl FnOnce(&mut Self) -> Planned<T>) -> Option<T> {
        let (edits, pinned) = (self.edits.clone(), self.pinned.len());
        let grouped = self.grouped.len();
        let done = attempt(self).ok();
        if done.is_none() {
            self.edits = edits;
            self.pinned.truncate(pinned);
            self.grouped.truncate(grouped);
        }
        done
    }

    /// Refuses when a word that names a protected column was not judged by any rule.
    pub fn check_judged(&self) -> Planned<()> {
        self.check_judged_in(0..self.tokens.len())
    }

    /// The same for a range of tokens.
    pub fn check_judged_in(&self, tokens: Range<usize>) -> Planned<()> {
        let mut edits: Vec<&Range<usize>> = self.edits.iter().map(|e| &e.range).collect();
        edits.sort_by_key(|range| (range.start, range.end));
        // up to each edit, how far it and those before it reach
        let reaches: Vec<usize> = edits
            .iter()
            .scan(0, |reach, range| {
                *reach = range.end.max(*reach);
                Some(*reach)
            })
            .collect();
        let is_edited = |at: usize| {
            let begun = edits.partition_point(|range| range.start <= at);
            begun.checked_sub(1).is_some_and(|last| at < reaches[last])
        };
        for token in &self.tokens[tokens] {
            if self.judged.contains(&token.start) {
                continue;
            }
            let Some(name) = self.name_of(token) else {
                continue;
            };
            for table in &self.near {
                let protected = table.column(&name).is_some_and(|c| c.protection.is_some());
                if protected && !is_edited(token.start) {
                    let column = format!("{}.{name}", table.name);
                    return NotUnderstood::UnreadColumn(column).refuse();
                }
            }
        }
        Ok(())
    }
}

/// The text that the parser reads.
///
/// Everything that is not a token (comments, white space) becomes blank; string-like literals
/// become `'xxx'` of the same length and numbers become ones, so that the parser never sees values,
/// quotes, escapes or bytes beyond ASCII; double-quoted identifiers get back quotes; folded rows
/// after the first become blank. Offsets in it are offsets in the statement. Long blanks are
/// comments: the parser makes a token of each blank, and half a megabyte of folded rows would
/// become a hundred megabytes.
pub(crate) fn parse_text(sql: &[u8], tokens: &[Token], template: &Template) -> Option<String> {
    let mut out = vec![b' '; sql.len()];
    let mut end = 0;
    for token in tokens {
        if let Some(rows) = template.rows
            && token.start >= rows.first.1
            && token.start < rows.end
        {
            continue;
        }
        if token.is(b';') {
            continue;
        }
        blank(out.get_mut(end..token.start)?);
        end = token.end;
        let target = out.get_mut(token.start..token.end)?;
        match token.kind {
            TokenKind::Literal(
                LiteralKind::String
                | LiteralKind::Introduced
                | LiteralKind::Hex
                | LiteralKind::Bits,
            ) => {
                target.fill(b'x');
                *target.first_mut()? = b'\'';
                *target.last_mut()? = b'\'';
            }
            // the parser logs what it reads: no value may be in it
            TokenKind::Literal(
                LiteralKind::Integer | LiteralKind::Decimal | LiteralKind::Float,
            ) => target.fill(b'1'),
            TokenKind::Quoted => {
                target.copy_from_slice(token.text(sql));
                if target.first() == Some(&b'"') {
                    if target[1..target.len() - 1]
                        .iter()
                        .any(|b| matches!(b, b'"' | b'`'))
                    {
                        return None;
                    }
                    *target.first_mut()? = b'`';
                    *target.last_mut()? = b'`';
                }
            }
            TokenKind::Hint => {}
            _ => target.copy_from_slice(token.text(sql)),
        }
    }
    blank(out.get_mut(end..)?);
    String::from_utf8(out).ok()
}

/// Whether the token is a value in quotes, or one that the parser reads as such. Of two in a row
/// (`'a' N'b'`) the parser makes one, and the second would be sent as it is. What servers take for
/// one text is one token.
fn is_quoted_value(token: &Token) -> bool {
    matches!(
        token.kind,
        TokenKind::Literal(
            LiteralKind::String | LiteralKind::Introduced | LiteralKind::Hex | LiteralKind::Bits
        )
    )
}

/// Makes one token of many blanks.
fn blank(gap: &mut [u8]) {
    const LONG: usize = 16;
    if gap.len() < LONG {
        return;
    }
    if let [first, second, .., last_but_one, last] = gap {
        (*first, *second) = (b'/', b'*');
        (*last_but_one, *last) = (b'*', b'/');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lex::{LexMode, Lexer};

    fn read(sql: &str) -> String {
        let mode = LexMode::default();
        let mut template = Template::default();
        template.read(sql.as_bytes(), mode).expect("it can be read");
        let mut lexer = Lexer::new(sql.as_bytes(), mode);
        let mut tokens = Vec::new();
        while let Some(token) = lexer.next_token().expect("a token") {
            tokens.push(token);
        }
        let text = parse_text(sql.as_bytes(), &tokens, &template).expect("text for the parser");
        assert_eq!(text.len(), sql.len(), "offsets stay");
        text
    }

    #[test]
    fn the_parser_sees_no_value() {
        assert_eq!(
            read("SELECT 'secret', 42 FROM t -- why"),
            "SELECT 'xxxxxx', 11 FROM t       "
        );
    }

    // The parser makes a token of each blank.
    #[test]
    fn many_blanks_are_one_comment() {
        let rows = ", (22, 'two')".repeat(1000);
        let text = read(&format!("INSERT INTO t VALUES (11, 'one'){rows}; "));
        assert!(text.starts_with("INSERT INTO t VALUES (11, 'xxx')/* "));
        assert!(text.ends_with(" */"));
        assert_eq!(text.matches("/*").count(), 1);

        let indented = format!("SELECT{}`a{}b` FROM t", " ".repeat(40), " ".repeat(40));
        let text = read(&indented);
        assert!(text.starts_with("SELECT/* "), "{text}");
        assert!(
            text.ends_with(&format!("*/`a{}b` FROM t", " ".repeat(40))),
            "{text}"
        );
    }
}
