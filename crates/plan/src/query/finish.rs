//! Selects at tier 2: what rows and groups have in common.
//!
//! The server's text is the client's with another select list, without DISTINCT, GROUP BY, HAVING
//! and LIMIT, and with as much of ORDER BY as the server shall still do.

use std::ops::Range;

use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, OrderByExpr, OrderBySort, SelectItem,
};

use super::Given;
use super::clauses::Clauses;
use super::items::Shape;
use crate::candidates::goes_unnoticed;
use crate::errors::{self, NotUnderstood, Refusal};
use crate::fetch::{Fetched, unnested};
use crate::finishing::{Aggregate, Finish, Limit, Output, SortBy, Test};
use crate::lex::{LiteralKind, TokenKind};
use crate::plan::{Source, Text};
use crate::planner::{Planned, Planner, TextBuilder, refuse};
use crate::scope::Scope;

/// A select that the proxy finishes.
pub(super) struct Finishing<'s> {
    pub projection: &'s [SelectItem],
    pub clauses: &'s Clauses,
    pub scope: &'s Scope<'s>,
    pub shape: Shape,
    pub distinct: bool,
    /// The condition, if the server can only narrow it; else it is planned already.
    pub filter: Option<&'s Expr>,
    /// `GROUP BY`
    pub keys: &'s [Expr],
    pub having: Option<&'s Expr>,
    pub order: &'s [OrderByExpr],
    pub limit: Option<Limit>,
}

/// An aggregate as it is written.
pub(super) struct Call<'e> {
    pub function: Aggregate,
    /// `None` for `COUNT(*)`.
    pub argument: Option<&'e Expr>,
    pub distinct: bool,
}

/// The aggregate that an expression calls.
pub(super) fn aggregate_of(expr: &Expr) -> Option<Call<'_>> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let kind = match Planner::function_name(function).as_str() {
        "sum" => Aggregate::Sum,
        "avg" => Aggregate::Avg,
        "count" => Aggregate::Count,
        "min" => Aggregate::Min,
        "max" => Aggregate::Max,
        _ => return None,
    };
    if function.over.is_some() || function.filter.is_some() {
        return None;
    }
    if let Some((argument, distinct)) = Planner::single_argument(function) {
        // the least of different values is the least of all
        let distinct = distinct && !matches!(kind, Aggregate::Min | Aggregate::Max);
        return Some(Call {
            function: kind,
            argument: Some(argument),
            distinct,
        });
    }
    match &function.args {
        FunctionArguments::List(list)
            if kind == Aggregate::Count
                && matches!(
                    list.args.as_slice(),
                    [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]
                ) =>
        {
            Some(Call {
                function: kind,
                argument: None,
                distinct: false,
            })
        }
        _ => None,
    }
}

/// The expression of an item of the select list, and its alias.
pub(super) fn expression_of(item: &SelectItem) -> Option<(&Expr, Option<&sqlparser::ast::Ident>)> {
    match item {
        SelectItem::UnnamedExpr(e) => Some((e, None)),
        SelectItem::ExprWithAlias { expr, alias } => Some((expr, Some(alias))),
        _ => None,
    }
}

/// What a key of GROUP BY or ORDER BY means.
pub(super) struct KeyMeaning<'s> {
    pub expr: &'s Expr,
    /// The item of the select list, if the key names one.
    pub item: Option<usize>,
    /// The tokens of the expression, there or here.
    pub place: Range<usize>,
}

/// Whether a key is sorted descending.
pub(super) fn descending(key: &OrderByExpr) -> Planned<bool> {
    if key.options.nulls_first.is_some() || key.with_fill.is_some() {
        return NotUnderstood::ClauseOf("ORDER BY").refuse();
    }
    match key.options.sort {
        None | Some(OrderBySort::Asc) => Ok(false),
        Some(OrderBySort::Desc) => Ok(true),
        Some(OrderBySort::Using(_)) => NotUnderstood::Clause("ORDER BY … USING").refuse(),
    }
}

impl Planner<'_> {
    /// The name that a column of the result gets: its alias, or what is written. Servers name a
    /// column in parentheses as the column.
    pub(super) fn shown_name(
        &self,
        expr: &Expr,
        alias: Option<&sqlparser::ast::Ident>,
        place: &Range<usize>,
    ) -> Planned<String> {
        if let Some(alias) = alias {
            return Ok(alias.value.clone());
        }
        Ok(match unnested(expr) {
            Expr::Identifier(ident) => ident.value.clone(),
            Expr::CompoundIdentifier(parts) => {
                parts.last().map(|p| p.value.clone()).unwrap_or_default()
            }
            _ => self.written_name(self.bytes_of(place))?,
        })
    }

    /// A part of the statement as the name of a column of the result.
    pub(super) fn written_name(&self, bytes: Range<usize>) -> Planned<String> {
        let charset = self.request.settings.lex.charset;
        let name = charset.to_utf8(&self.sql()[bytes]);
        name.and_then(|name| String::from_utf8(name).ok())
            .ok_or_else(|| Refusal::from(NotUnderstood::ResultName))
    }

    /// An item's tokens without its alias.
    pub(super) fn item_tokens(&self, f: &Finishing, item: usize) -> Planned<Range<usize>> {
        let mut place = f.clauses.items[item].clone();
        if let SelectItem::ExprWithAlias { alias, .. } = &f.projection[item] {
            place.end = self.token_at(self.offset(alias.span))?;
            if self
                .tokens
                .get(place.end.wrapping_sub(1))
                .is_some_and(|t| t.is_word(self.sql(), "as"))
            {
                place.end -= 1;
            }
        }
        Ok(place)
    }

    /// Whether two stretches of tokens are written alike. With constants in them they are not,
    /// because the plan is for statements with other constants as well.
    pub(super) fn same_words(&self, a: &Range<usize>, b: &Range<usize>) -> bool {
        let texts = |place: &Range<usize>| {
            let tokens = self.tokens.get(place.clone()).unwrap_or_default();
            tokens.iter().map(|t| t.text(self.sql()))
        };
        let constants = self
            .tokens
            .get(a.clone())
            .unwrap_or_default()
            .iter()
            .any(|t| matches!(t.kind, TokenKind::Literal(_)));
        !a.is_empty() && !constants && texts(a).eq(texts(b))
    }

    /// Looks through aliases and positions. In ORDER BY an alias hides a column, in GROUP BY the
    /// other way round.
    pub(super) fn key_meaning<'s>(
        &mut self,
        f: &Finishing<'s>,
        key: &'s Expr,
        tokens: Range<usize>,
        alias_first: bool,
    ) -> Planned<KeyMeaning<'s>> {
        let mut item = None;
        if let Expr::Identifier(ident) = key {
            let alias = f.projection.iter().position(|i| {
                matches!(i, SelectItem::ExprWithAlias { alias, .. }
                    if onionskin_schema::same_name(&alias.value, &ident.value))
            });
            if alias.is_some() && (alias_first || !self.is_known_column(ident, f.scope)) {
                self.judge(ident)?;
                item = alias;
            }
        } else if let Some((
            _,
            Source::Literal {
                index,
                negative: false,
            },
        )) = self.constant(key)
            && self.request.template.literals[index].kind == LiteralKind::Integer
        {
            self.pin(index);
            let text = self.request.template.literals[index].text(self.sql());
            let position: usize = std::str::from_utf8(text)
                .ok()
                .and_then(|t| t.parse().ok())
                .unwrap_or(0);
            if f.projection.iter().any(|i| expression_of(i).is_none()) {
                return NotUnderstood::Beside("a position", "*").refuse();
            }
            item = position.checked_sub(1).filter(|&i| i < f.projection.len());
            if item.is_none() {
                return NotUnderstood::PositionBeyond.refuse();
            }
        }
        let Some(at) = item else {
            return Ok(KeyMeaning {
                expr: key,
                item: None,
                place: tokens,
            });
        };
        let Some((expr, _)) = expression_of(&f.projection[at]) else {
            return refuse(&errors::INTERNAL, "an item");
        };
        Ok(KeyMeaning {
            expr,
            item,
            place: self.item_tokens(f, at)?,
        })
    }

    /// Plans an expression of the server's own. Beside a condition that it can only narrow, it is
    /// computed for more rows than are meant, which nobody may notice.
    pub(super) fn server_expression(&mut self, f: &Finishing, expr: &Expr) -> Planned<()> {
        if f.filter.is_some() && !goes_unnoticed(expr) {
            return refuse(
                &errors::CANDIDATES,
                "beside an expression that may warn, fail or act on rows that are not meant",
            );
        }
        self.scan(expr, f.scope)
    }

    /// The text of a key of the server's own, for a rank.
    pub(super) fn key_text(&mut self, f: &Finishing, key: &KeyMeaning) -> Planned<Text> {
        if self.constant(key.expr).is_some() {
            return NotUnderstood::UsedAs("a constant", "a key").refuse();
        }
        // a part of the select list has been planned with it
        if key.item.is_none() {
            self.server_expression(f, key.expr)?;
        }
        let range = self.bytes_of(&key.place);
        self.render(range)
    }

    /// The tokens of a key without ASC and DESC.
    pub(super) fn without_direction(&self, mut tokens: Range<usize>) -> Range<usize> {
        if let Some(last) = tokens.end.checked_sub(1).and_then(|i| self.tokens.get(i))
            && (last.is_word(self.sql(), "asc") || last.is_word(self.sql(), "desc"))
            && tokens.len() > 1
        {
            tokens.end -= 1;
        }
        tokens
    }

    /// The test of a condition that the server can only narrow.
    pub(super) fn finish_filter(
        &mut self,
        f: &Finishing,
        fetched: &mut Fetched,
    ) -> Planned<Option<Test>> {
        match f.filter {
            None => Ok(None),
            Some(condition) => {
                self.locks = f.clauses.lock.is_some();
                let tokens = f.clauses.behind(f.clauses.filter);
                self.filter(condition, tokens, f.scope, fetched).map(Some)
            }
        }
    }

    /// Puts the server's text together, around what `finish` has decided.
    /// Refuses sorting and DISTINCT of values that cannot be compared here.
    fn check_comparable(&self, fetched: &Fetched, finish: &Finish) -> Planned<()> {
        let sorted = finish.sort.iter().filter_map(|key| match key.by {
            SortBy::Cell(at) => Some(at),
            _ => None,
        });
        let shown = finish.output.iter().filter_map(|output| match output {
            Output::Cell { fetch } if finish.distinct => Some(*fetch),
            _ => None,
        });
        for at in sorted.chain(shown) {
            let open = fetched.items.get(at).and_then(|item| item.open);
            let Some((index, _)) = open else { continue };
            let column = &self.columns[index];
            if column
                .column()
                .sql_type
                .is_some_and(|ty| !ty.is_comparable())
            {
                return refuse(&errors::NO_EQUALITY, column.path());
            }
        }
        Ok(())
    }

    pub(super) fn finished(
        &mut self,
        f: &Finishing,
        fetched: Fetched,
        order: &[Text],
        mut finish: Finish,
    ) -> Planned<Given> {
        let clauses = f.clauses;
        self.check_judged()?;
        self.check_comparable(&fetched, &finish)?;
        let mut text = TextBuilder::default();
        for (i, token) in self.tokens[..clauses.list].iter().enumerate() {
            if Some(i) == clauses.distinct {
                continue;
            }
            text.sql(token.text(self.sql()));
            text.sql(b" ");
        }
        fetched.list(&mut text);
        let tail_start = self
            .tokens
            .get(clauses.list_end)
            .map_or(self.sql().len(), |t| t.start);
        let stops = [
            clauses.group,
            clauses.having,
            clauses.order,
            clauses.limit,
            clauses.lock,
            Some(clauses.end),
        ];
        let body_end = stops.iter().flatten().min().copied().unwrap_or(clauses.end);
        let body_stop = self.tokens[..body_end].last().map_or(0, |t| t.end);
        text.sql(b" ");
        if tail_start < body_stop {
            for piece in self.render(tail_start..body_stop)? {
                text.piece(piece);
            }
        }
        for (i, key) in order.iter().enumerate() {
            text.sql(if i > 0 { b", " } else { b" ORDER BY " });
            key.iter().for_each(|piece| text.piece(piece.clone()));
        }
        if let Some(lock) = clauses.lock {
            if clauses.order.is_some_and(|o| o > lock) || clauses.limit.is_some_and(|l| l > lock) {
                return NotUnderstood::ClauseOrder.refuse();
            }
            text.sql(b" ");
            let range = self.bytes_of(&(lock..clauses.end));
            for piece in self.original(range) {
                text.piece(piece);
            }
        }
        if clauses.end < self.tokens.iter().filter(|t| !t.is(b';')).count() {
            return NotUnderstood::TextBehind("the SELECT").refuse();
        }
        finish.text = text.finish();
        finish.fetch = fetched.items;
        finish.limit = f.limit;
        Ok(Given {
            items: Vec::new(),
            names: None,
            finish: Some(finish),
        })
    }
}

/// Whether two expressions are the same plain column.
pub(super) fn same_name(a: &Expr, b: &Expr) -> bool {
    let parts = |e: &Expr| -> Option<(Option<String>, String)> {
        match unnested(e) {
            Expr::Identifier(i) => Some((None, i.value.to_ascii_lowercase())),
            Expr::CompoundIdentifier(p) => match p.as_slice() {
                [.., source, column] => Some((
                    Some(source.value.to_ascii_lowercase()),
                    column.value.to_ascii_lowercase(),
                )),
                _ => None,
            },
            _ => None,
        }
    };
    match (parts(a), parts(b)) {
        (Some((source_a, a)), Some((source_b, b))) => {
            a == b && (source_a.is_none() || source_b.is_none() || source_a == source_b)
        }
        _ => false,
    }
}
