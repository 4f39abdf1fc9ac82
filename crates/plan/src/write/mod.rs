//! `INSERT`, `REPLACE`, `UPDATE`, `DELETE`.
//!
//! A sealed cell is never equal to another one of the same value. Where the server counts
//! changed rows, an assignment that changes nothing must not look like a change: columns with
//! exact tokens are assigned through `IF(token <=> new, old cell, new cell)`, others are read
//! and compared first (tier 2).
//!
//! This file holds what all of them share: a column's physical parts, new values, and the places
//! of assignments.

mod delete;
mod duplicate;
mod insert;
mod new_rows;
mod row_update;
mod update;
mod view;

use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::{Column, Table, TokenKind, same_name};
use sqlparser::ast::{Assignment, AssignmentTarget, Expr};

use crate::comparable::no_order;
use crate::errors::{self, NotUnderstood, Refusal};
use crate::fetch::Fetched;
use crate::lex::TokenKind as LexKind;
use crate::plan::{ColumnUse, Piece, Purpose, RowFilter, Source, Text};
use crate::planner::{Planned, Planner, TextBuilder, quoted, refuse};
use crate::scope::{Scope, position};
use crate::unknown::Place;

pub(crate) use self::duplicate::check_new_rows;

/// A column of an `INSERT`'s list.
enum Target {
    Plain(String),
    Protected(ColumnUse),
}

/// How an assignment names the columns of the row that is there.
struct Old(Option<String>);

impl Old {
    /// By their names alone.
    const BARE: Old = Old(None);

    /// A column by its quoted name.
    fn column(&self, name: &str) -> String {
        match &self.0 {
            Some(table) => format!("{table}.{name}"),
            None => name.to_owned(),
        }
    }
}

impl Planner<'_> {
    fn target(&mut self, column: &str, table: &Arc<Table>, place: Place) -> Planned<Target> {
        let Some(index) = position(table, column) else {
            return Err(self.unknown_in(column, place));
        };
        let found = &table.columns[index];
        Ok(match found.protection {
            Some(_) => Target::Protected(ColumnUse {
                table: Arc::clone(table),
                index,
            }),
            None => Target::Plain(found.name.clone()),
        })
    }

    /// A constant by its tokens: `'x'`, `-5`, `NULL`, `DEFAULT`, `TRUE`.
    fn cell_source(&self, cell: &Range<usize>, base: usize) -> Option<Source> {
        let tokens = self.tokens.get(cell.clone())?;
        let literal = |token: &crate::lex::Token, negative| {
            let index = self.literal_index(token.start)?.checked_sub(base)?;
            Some(Source::Literal { index, negative })
        };
        let sql = self.sql();
        match tokens {
            [t] => match t.kind {
                LexKind::Literal(_) => literal(t, false),
                LexKind::Word if t.is_word(sql, "null") => Some(Source::Null),
                LexKind::Word if t.is_word(sql, "default") => Some(Source::Default),
                LexKind::Word if t.is_word(sql, "true") => Some(Source::Bool(true)),
                LexKind::Word if t.is_word(sql, "false") => Some(Source::Bool(false)),
                _ => None,
            },
            [sign, t] if sign.is(b'-') || sign.is(b'+') => {
                use crate::lex::LiteralKind::{Decimal, Float, Integer};
                match t.kind {
                    LexKind::Literal(Integer | Decimal | Float) => literal(t, sign.is(b'-')),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// `DEFAULT(k)` as the value of `k` itself.
    fn own_default(&self, cell: &Range<usize>, column: &ColumnUse) -> Option<Source> {
        let tokens = self.tokens.get(cell.clone())?;
        let [word, open, name, close] = tokens else {
            return None;
        };
        let c = column.column();
        let is_call = word.is_word(self.sql(), "default") && open.is(b'(') && close.is(b')');
        let is_own = same_name(&self.name_of(name)?, &c.name);
        // without one, it is an error where the bare word may be a warning
        let has_one = c.default.is_some() || c.nullable && !c.has_lost_default();
        (is_call && is_own && has_one).then_some(Source::Default)
    }

    /// `k$enc = …, k$ord = …`. With `keep`, the old cell stays when the value is the same. `old`
    /// says how the old row's columns are named.
    fn assign_text(&mut self, column: &ColumnUse, source: Source, keep: bool, old: &Old) -> Text {
        let mut text = Vec::new();
        let token = column.column().equality_column().map(|(name, kind)| {
            let purpose = match kind {
                TokenKind::Order => Purpose::StoreOrder,
                TokenKind::Equality => Purpose::StoreEquality,
            };
            (quoted(name), purpose)
        });
        for (i, (name, purpose)) in physical(column).into_iter().enumerate() {
            let separator = if i > 0 { ", " } else { "" };
            let slot = self.slot(column, purpose, source);
            match (&token, purpose, keep) {
                (Some((token, token_purpose)), Purpose::Seal, true) => {
                    let token_slot = self.slot(column, *token_purpose, source);
                    let (name, token) = (quoted(name), old.column(token));
                    let kept = old.column(&name);
                    text.push(Piece::Sql(format!("{name} = IF({token} <=> ").into_bytes()));
                    text.push(token_slot);
                    text.push(Piece::Sql(format!(", {kept}, ").into_bytes()));
                    text.push(slot);
                    text.push(Piece::Sql(b")".to_vec()));
                }
                _ => {
                    text.push(Piece::Sql(
                        format!("{separator}{} = ", quoted(name)).into_bytes(),
                    ));
                    text.push(slot);
                }
            }
        }
        text
    }

    /// Takes notice of protected columns of a changed table that get the present time without being
    /// assigned.
    fn note_changes(&mut self, table: &Table, is_assigned: impl Fn(usize) -> bool) {
        let columns = set_by_change(table, is_assigned);
        let mut columns = columns.into_iter().map(|index| &table.columns[index]);
        if let Some(column) = columns.find(|c| c.protection.is_some()) {
            let path = format!("{}.{}.{}", table.database, table.name, column.name);
            self.unfilled.get_or_insert(path);
        }
    }

    fn assigned_name(&mut self, assignment: &Assignment) -> Planned<String> {
        let AssignmentTarget::ColumnName(name) = &assignment.target else {
            return NotUnderstood::AssignmentTo("several columns").refuse();
        };
        let parts = self.judge_name(name)?;
        Ok(parts.last().cloned().unwrap_or_default())
    }

    /// The token ranges of the assignments behind `SET`.
    fn assignment_tokens(&self, count: usize) -> Planned<Vec<Range<usize>>> {
        let sql = self.sql();
        let bad = || Refusal::from(NotUnderstood::Clause("SET"));
        let set = self
            .tokens
            .iter()
            .position(|t| t.is_word(sql, "set"))
            .ok_or_else(bad)?;
        let mut depth = 0usize;
        let mut end = self.tokens.len();
        for (i, t) in self.tokens.iter().enumerate().skip(set + 1) {
            if t.is(b'(') {
                depth += 1;
            } else if t.is(b')') {
                depth = depth.saturating_sub(1);
            } else if depth == 0
                && (t.is(b';')
                    || ["where", "order", "limit", "on", "as", "returning"]
                        .iter()
                        .any(|w| t.is_word(sql, w)))
            {
                end = i;
                break;
            }
        }
        let parts = self.split_commas(set + 1..end);
        if parts.len() == count {
            Ok(parts)
        } else {
            Err(bad())
        }
    }

    /// The tokens behind the first `=` of an assignment.
    fn value_tokens(&self, assignment: &Range<usize>) -> Planned<Range<usize>> {
        let tokens = self.tokens.get(assignment.clone()).unwrap_or_default();
        match tokens.iter().position(|t| t.is(b'=')) {
            Some(i) => Ok(assignment.start + i + 1..assignment.end),
            None => NotUnderstood::Assignment.refuse(),
        }
    }

    /// The tokens behind the statement's own RETURNING.
    pub(super) fn returning_tokens(&self) -> Planned<Range<usize>> {
        let sql = self.sql();
        let end = self.tokens.iter().rposition(|t| !t.is(b';'));
        let end = end.map_or(0, |i| i + 1);
        let at = self
            .tokens
            .iter()
            .rposition(|t| t.is_word(sql, "returning"));
        match at {
            Some(at) if at + 1 < end => Ok(at + 1..end),
            _ => NotUnderstood::Clause("RETURNING").refuse(),
        }
    }

    /// The tokens of the statement's own WHERE.
    pub(crate) fn where_tokens(&self) -> Range<usize> {
        let sql = self.sql();
        let mut depth = 0usize;
        let mut from = None;
        for (i, t) in self.tokens.iter().enumerate() {
            if t.is(b'(') {
                depth += 1;
            } else if t.is(b')') {
                depth = depth.saturating_sub(1);
            } else if depth > 0 {
                continue;
            } else if let Some(from) = from {
                if t.is(b';')
                    || ["order", "limit", "returning"]
                        .iter()
                        .any(|w| t.is_word(sql, w))
                {
                    return from..i;
                }
            } else if t.is_word(sql, "where") {
                from = Some(i + 1);
            }
        }
        from.map_or(0..0, |from| from..self.tokens.len())
    }

    /// Plans the condition of an `UPDATE` or `DELETE`. Where the server can only narrow it, returns
    /// what the proxy fetches and tests, with the texts of the fetched columns.
    fn row_condition(
        &mut self,
        condition: Option<&Expr>,
        scope: &Scope,
        ordered: bool,
    ) -> Planned<Option<(RowFilter, Vec<Text>)>> {
        let Some(condition) = condition else {
            return Ok(None);
        };
        if !self.narrows(condition, scope)? {
            self.scan(condition, scope)?;
            return Ok(None);
        }
        if ordered || scope.sources.len() != 1 {
            return refuse(
                &errors::CANDIDATES,
                "with LIMIT, ORDER BY or several tables",
            );
        }
        let mut fetched = Fetched::default();
        self.locks = true;
        let tokens = self.where_tokens();
        let test = self.filter(condition, tokens, scope, &mut fetched)?;
        let filter = RowFilter {
            fetch: fetched.items,
            test,
        };
        Ok(Some((filter, fetched.texts)))
    }

    /// The physical columns of the primary key, by which rows are found again.
    pub(crate) fn key_columns(&self, table: &Table) -> Planned<Vec<String>> {
        let mut key = Vec::new();
        for column in table.row_key() {
            key.push(match &column.protection {
                None => quoted(&column.name),
                Some(_) => {
                    let (name, _) = column
                        .equality_column()
                        .ok_or_else(|| Refusal::new(&errors::NEEDS_KEY, &table.name))?;
                    quoted(name)
                }
            });
        }
        if key.is_empty() {
            return refuse(
                &errors::NEEDS_KEY,
                format!("{}.{}", table.database, table.name),
            );
        }
        Ok(key)
    }

    fn order_by_key(&mut self, key: &Expr, scope: &Scope) -> Planned<()> {
        if let Some((range, column)) = self.column_of(key, scope)? {
            let name = crate::comparable::exact_order(&column)
                .ok_or_else(|| no_order(&column))?
                .to_string();
            self.replace(range, &name);
            return Ok(());
        }
        self.scan(key, scope)
    }
}

/// What a new row's protected column consists of on the server: the cell, then its tokens.
fn physical(column: &ColumnUse) -> Vec<(&str, Purpose)> {
    let c = column.column();
    let mut parts = vec![(column.sealed(), Purpose::Seal)];
    parts.extend(c.eq_name().map(|n| (n, Purpose::StoreEquality)));
    parts.extend(c.ord_name().map(|n| (n, Purpose::StoreOrder)));
    parts.extend(c.gram_name().map(|n| (n, Purpose::StoreGrams)));
    parts
}

/// Whether the equality tokens of a column differ whenever its values do, in whatever way.
fn has_exact_tokens(column: &ColumnUse) -> bool {
    let ty = column.column().sql_type.as_ref();
    ty.is_some_and(|t| t.weight_is_exact()) && column.column().equality_column().is_some()
}

impl Planner<'_> {
    /// Notes a column that is assigned. Of a text that differs in letter case alone the token
    /// stays, so the server does not see that a key changes.
    pub(super) fn note_rewritten(&mut self, column: &ColumnUse) {
        self.rewritten.extend(inexact_key(column.column()));
    }
}

/// The token column of a column whose tokens say less than its values, and are those of a group.
pub fn inexact_key(column: &Column) -> Option<String> {
    let protection = column.protection.as_ref()?;
    let is_inexact = !protection.sql_type.weight_is_exact();
    let (name, _) = column.equality_column()?;
    let joins = protection.capabilities.join.is_some();
    (is_inexact && joins).then(|| name.to_owned())
}

fn default_text() -> Text {
    vec![Piece::Sql(b"DEFAULT".to_vec())]
}

/// `(a,b,c)`
fn in_parentheses(cells: &[(String, Text)]) -> Text {
    let mut out = TextBuilder::default();
    for (i, (_, text)) in cells.iter().enumerate() {
        out.sql(if i == 0 { b"(" } else { b"," });
        for piece in text {
            out.piece(piece.clone());
        }
    }
    out.sql(if cells.is_empty() { b"()" } else { b")" });
    out.finish()
}

/// The columns that get the present time where the row changes: protected ones, by ON UPDATE, and
/// beside these plain ones too, so that a statement has one time. None where the statement assigns
/// all that are protected.
pub(crate) fn set_by_change(table: &Table, is_assigned: impl Fn(usize) -> bool) -> Vec<usize> {
    let left = |i: &usize| table.columns[*i].on_update && !is_assigned(*i);
    let indexes: Vec<usize> = (0..table.columns.len()).filter(left).collect();
    let is_protected = |i: &usize| table.columns[*i].protection.is_some();
    match indexes.iter().any(is_protected) {
        true => indexes,
        false => Vec::new(),
    }
}

pub(crate) fn is_default(e: &Expr) -> bool {
    matches!(e, Expr::Identifier(i) if i.quote_style.is_none() && i.value.eq_ignore_ascii_case("default"))
}
