//! The select list at tier 2: asks for the cells, leaves aggregates, distinction, order and limit to
//! the proxy.

use std::ops::Range;
use std::sync::Arc;

use sqlparser::ast::{Expr, SelectItem};

use super::Given;
use super::clauses::Clauses;
use crate::errors;
use crate::places::bytes_of_expr;
use crate::plan::{
    Aggregate, ColumnUse, Finish, Limit, OpenFrom, Output, Piece, ResultItem, SortKey,
};
use crate::planner::{Planned, Planner, TextBuilder, quoted, refuse};
use crate::scope::Scope;

impl Planner<'_> {
    /// Tier 2: asks for the cells, leaves aggregates, distinction, order and limit to the proxy.
    pub(super) fn finish(
        &mut self,
        projection: &[SelectItem],
        clauses: &Clauses,
        scope: &Scope,
        distinct: bool,
        order: &[sqlparser::ast::OrderByExpr],
        limit: Option<Limit>,
    ) -> Planned<Given> {
        let mut fetch = Vec::new();
        let mut texts: Vec<crate::plan::Text> = Vec::new();
        let mut output = Vec::new();
        let is_aggregate = projection.iter().any(|i| match i {
            SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. } => {
                aggregate_of(e).is_some()
            }
            _ => false,
        });
        // which fetched column shows each protected column, for the sort
        let mut fetched: Vec<(ColumnUse, usize)> = Vec::new();
        for (item, tokens) in projection.iter().zip(&clauses.items) {
            let (expr, alias) = match item {
                SelectItem::UnnamedExpr(e) => (e, None),
                SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) if !is_aggregate => {
                    let sources = self.wildcard_sources(item, scope)?;
                    let items = self.wildcard(&sources)?;
                    for found in items {
                        if let Some((index, _)) = found.open {
                            fetched.push((self.columns[index].clone(), fetch.len()));
                        }
                        output.push(Output::Cell { fetch: fetch.len() });
                        fetch.push(found);
                    }
                    let bytes = self.bytes_of(tokens);
                    texts.push(self.original(bytes));
                    continue;
                }
                _ => return refuse(&errors::NOT_UNDERSTOOD, "an item of the select list"),
            };
            let bytes = self.bytes_of(tokens);
            let typed = match expr {
                Expr::Identifier(ident) => ident.value.clone(),
                Expr::CompoundIdentifier(parts) => {
                    parts.last().map(|p| p.value.clone()).unwrap_or_default()
                }
                _ => String::from_utf8_lossy(&self.sql()[bytes.clone()]).into_owned(),
            };
            let name = alias.map_or(typed, |a| a.value.clone());
            if is_aggregate {
                let Some((function, argument)) = aggregate_of(expr) else {
                    return refuse(
                        &errors::GROUPING,
                        "an aggregate beside an item that is none",
                    );
                };
                if let Expr::Function(f) = expr
                    && let Some(ident) = f.name.0.last().and_then(|p| p.as_ident())
                {
                    self.judge(ident)?;
                }
                let Some(argument) = argument else {
                    output.push(Output::Aggregate {
                        function,
                        fetch: None,
                        name,
                    });
                    continue;
                };
                let Some((range, column)) = self.column_of(argument, scope)? else {
                    return refuse(
                        &errors::GROUPING,
                        "aggregates of protected and other columns",
                    );
                };
                let text = self.sealed_cell(argument, range, &column);
                output.push(Output::Aggregate {
                    function,
                    fetch: Some(fetch.len()),
                    name,
                });
                let index = self.column_index(&column);
                fetch.push(ResultItem {
                    open: Some((index, OpenFrom::Sealed)),
                    name: None,
                    computed: true,
                });
                texts.push(text);
                continue;
            }
            output.push(Output::Cell { fetch: fetch.len() });
            if let Some((range, column)) = self.column_of(expr, scope)? {
                let text = self.sealed_cell(expr, range, &column);
                let index = self.column_index(&column);
                fetched.push((column, fetch.len()));
                fetch.push(ResultItem {
                    open: Some((index, OpenFrom::Sealed)),
                    name: Some(name),
                    computed: false,
                });
                texts.push(text);
            } else {
                self.scan(expr, scope)?;
                let changed = self.edited(&bytes);
                texts.push(self.render(bytes)?);
                fetch.push(ResultItem {
                    open: None,
                    name: (changed && alias.is_none()).then_some(name),
                    computed: false,
                });
            }
        }

        // ORDER BY: leading protected keys are sorted here, stably, on top of the server's order
        let mut sort = Vec::new();
        let mut server_keys: Vec<crate::plan::Text> = Vec::new();
        let mut hidden = Vec::new();
        let key_tokens = self.order_keys(clauses, order.len())?;
        for (key, tokens) in order.iter().zip(key_tokens) {
            let descending = match key.options.sort {
                None | Some(sqlparser::ast::OrderBySort::Asc) => false,
                Some(sqlparser::ast::OrderBySort::Desc) => true,
                Some(sqlparser::ast::OrderBySort::Using(_)) => {
                    return refuse(&errors::NOT_UNDERSTOOD, "ORDER BY … USING");
                }
            };
            if key.options.nulls_first.is_some() || key.with_fill.is_some() {
                return refuse(&errors::NOT_UNDERSTOOD, "a clause of ORDER BY");
            }
            match self.key_column(&key.expr, projection, scope, true)? {
                Some((_, column)) => {
                    if !server_keys.is_empty() {
                        let about = format!("{} behind another sort key", column.path());
                        return refuse(&errors::NO_RANGE, about);
                    }
                    let same = |(c, _): &&(ColumnUse, usize)| {
                        Arc::ptr_eq(&c.table, &column.table) && c.index == column.index
                    };
                    let at = match fetched.iter().find(same) {
                        Some((_, at)) => *at,
                        None if distinct || is_aggregate => {
                            return refuse(&errors::GROUPING, column.path());
                        }
                        None => {
                            let index = self.column_index(&column);
                            let name = column.sealed().to_string();
                            hidden.push(vec![Piece::Sql(
                                self.reference(&column, scope, &name).into_bytes(),
                            )]);
                            let at = fetch.len();
                            fetch.push(ResultItem {
                                open: Some((index, OpenFrom::Sealed)),
                                name: None,
                                computed: false,
                            });
                            fetched.push((column, at));
                            at
                        }
                    };
                    sort.push(SortKey {
                        fetch: at,
                        descending,
                    });
                }
                None => {
                    if is_aggregate {
                        continue;
                    }
                    self.scan_key(&key.expr, scope)?;
                    let bytes = self.bytes_of(&tokens);
                    server_keys.push(self.render(bytes)?);
                }
            }
        }
        texts.extend(hidden);
        if distinct && texts.len() != projection.len() {
            return refuse(&errors::GROUPING, "DISTINCT");
        }

        self.check_judged()?;
        let mut text = TextBuilder::default();
        for (i, token) in self.tokens[..clauses.list].iter().enumerate() {
            if Some(i) == clauses.distinct {
                continue;
            }
            text.sql(token.text(self.sql()));
            text.sql(b" ");
        }
        for (i, part) in texts.iter().enumerate() {
            if i > 0 {
                text.sql(b", ");
            }
            for piece in part {
                text.piece(piece.clone());
            }
        }
        let tail_start = self
            .tokens
            .get(clauses.list_end)
            .map_or(self.sql().len(), |t| t.start);
        let stops = [
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
        if !server_keys.is_empty() {
            text.sql(b" ORDER BY ");
            for (i, key) in server_keys.iter().enumerate() {
                if i > 0 {
                    text.sql(b", ");
                }
                for piece in key {
                    text.piece(piece.clone());
                }
            }
        }
        if let Some(lock) = clauses.lock {
            if clauses.order.is_some_and(|o| o > lock) || clauses.limit.is_some_and(|l| l > lock) {
                return refuse(&errors::NOT_UNDERSTOOD, "the order of clauses");
            }
            text.sql(b" ");
            let range = self.bytes_of(&(lock..clauses.end));
            for piece in self.original(range) {
                text.piece(piece);
            }
        }
        if clauses.end < self.tokens.iter().filter(|t| !t.is(b';')).count() {
            return refuse(&errors::NOT_UNDERSTOOD, "text behind the SELECT");
        }
        Ok(Given {
            items: Vec::new(),
            names: None,
            finish: Some(Finish {
                text: text.finish(),
                fetch,
                output,
                distinct,
                sort,
                limit,
            }),
        })
    }

    /// The text that fetches a protected column's sealed cell, qualified as written.
    fn sealed_cell(
        &mut self,
        expr: &Expr,
        range: Range<usize>,
        column: &ColumnUse,
    ) -> crate::plan::Text {
        let whole = bytes_of_expr(self, expr, &range);
        let mut text = self.original(whole.start..range.start);
        text.push(Piece::Sql(quoted(column.sealed()).into_bytes()));
        text
    }
}

fn aggregate_of(expr: &Expr) -> Option<(Aggregate, Option<&Expr>)> {
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
    match Planner::single_argument(function) {
        Some((argument, false)) => Some((kind, Some(argument))),
        Some((_, true)) => None,
        None if kind == Aggregate::Count => match &function.args {
            sqlparser::ast::FunctionArguments::List(list)
                if matches!(
                    list.args.as_slice(),
                    [sqlparser::ast::FunctionArg::Unnamed(
                        sqlparser::ast::FunctionArgExpr::Wildcard
                    )]
                ) =>
            {
                Some((kind, None))
            }
            _ => None,
        },
        None => None,
    }
}
