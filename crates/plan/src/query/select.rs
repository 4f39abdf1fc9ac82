//! One `SELECT`: its steps, and the choice of the tier.

use std::sync::Arc;

use sqlparser::ast::{Distinct, Expr, GroupByExpr, Select, SelectFlavor, SelectItem, TableFactor};

use super::Given;
use super::extremum::Extremes;
use super::finish::{Call, Finishing, aggregate_of, expression_of};
use super::grouping::{grouping, has_outer_join};
use super::items::Shape;
use crate::errors;
use crate::finishing::{Aggregate, Limit};
use crate::plan::ColumnUse;
use crate::planner::{Planned, Planner, refuse};
use crate::predicate::{exact_order, opening_order};
use crate::query::Mode;
use crate::scope::Scope;

/// Columns of a result, as many as servers take.
const MOST_COLUMNS: usize = 4_096;

impl Planner<'_> {
    pub(super) fn select(
        &mut self,
        select: &Select,
        order: &[sqlparser::ast::OrderByExpr],
        limit: Option<Limit>,
        parent: Option<&Scope>,
        mode: Mode,
    ) -> Planned<Given> {
        let Select {
            select_token,
            optimizer_hints: _,
            distinct,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having,
            named_window,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        if into.is_some() {
            return refuse(&errors::NOT_UNDERSTOOD, "INTO");
        }
        if top.is_some()
            || exclude.is_some()
            || !lateral_views.is_empty()
            || prewhere.is_some()
            || !connect_by.is_empty()
            || !cluster_by.is_empty()
            || !distribute_by.is_empty()
            || !sort_by.is_empty()
            || !named_window.is_empty()
            || qualify.is_some()
            || value_table_mode.is_some()
            || *flavor != SelectFlavor::Standard
        {
            return refuse(&errors::NOT_UNDERSTOOD, "a clause of SELECT");
        }
        let distinct = match distinct {
            None | Some(Distinct::All) => false,
            Some(Distinct::Distinct) => true,
            Some(Distinct::On(_)) => return refuse(&errors::NOT_UNDERSTOOD, "DISTINCT ON"),
        };
        if projection.len() > MOST_COLUMNS {
            let about = format!("more than {MOST_COLUMNS} columns");
            return refuse(&errors::NOT_UNDERSTOOD, about);
        }
        let start = self.token_at(self.offset(select_token.0.span))?;
        let clauses = self.clauses(start)?;
        if clauses.items.len() != projection.len() {
            return refuse(&errors::NOT_UNDERSTOOD, "the select list");
        }
        let named = self.named_by_strings(projection, &clauses.items)?;
        let projection = named.as_deref().unwrap_or(projection);

        let mut scope = Scope::inside(parent);
        for item in from {
            self.add_item(item, &mut scope, parent)?;
        }
        let mut merges = false;
        for item in from {
            merges |= self.joins(item, &scope)?;
        }
        let mut narrowed = false;
        if let Some(condition) = selection {
            narrowed = matches!(mode, Mode::Top) && self.narrows(condition, &scope)?;
            if !narrowed {
                self.scan(condition, &scope)?;
            }
        }
        for item in projection {
            if let SelectItem::ExprWithAlias { expr, alias } = item {
                self.judge(alias)?;
                let column = self.column_of(expr, &scope)?.map(|(_, c)| c);
                if column.is_none()
                    && let Some(from) = super::grouping::computed_from(expr, &scope)
                {
                    scope.computed.push((alias.value.clone(), from));
                }
                scope.aliases.push((alias.value.clone(), column));
            }
        }
        let GroupByExpr::Expressions(keys, modifiers) = group_by else {
            return refuse(&errors::NOT_UNDERSTOOD, "GROUP BY ALL");
        };
        let unfinished = self.needs_finish(
            projection,
            distinct,
            keys,
            having.as_ref(),
            order,
            &scope,
            matches!(mode, Mode::Top),
        )?;
        let outer = from.iter().any(has_outer_join);
        if narrowed || unfinished.is_some() {
            let about = unfinished.map_or(String::new(), |column| column.path());
            if !matches!(mode, Mode::Top) {
                return refuse(&errors::GROUPING, about);
            }
            if select_modifiers
                .as_ref()
                .is_some_and(|m| m.sql_calc_found_rows)
                || merges
            {
                return refuse(&errors::NOT_UNDERSTOOD, "SQL_CALC_FOUND_ROWS or USING");
            }
            let hinted = |f: &TableFactor| matches!(f, TableFactor::Table { index_hints, .. } if !index_hints.is_empty());
            if from
                .iter()
                .any(|i| hinted(&i.relation) || i.joins.iter().any(|j| hinted(&j.relation)))
            {
                return refuse(
                    &errors::NOT_UNDERSTOOD,
                    "an index hint on rows that the proxy finishes",
                );
            }
            let finishing = Finishing {
                projection,
                clauses: &clauses,
                scope: &scope,
                shape: Shape::Gathered {
                    outer,
                    sorted: false,
                },
                distinct,
                filter: selection.as_ref().filter(|_| narrowed),
                keys,
                having: having.as_ref(),
                order,
                limit,
            };
            let aggregates = projection.iter().any(|item| match item {
                SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. } => {
                    aggregate_of(e).is_some()
                }
                _ => false,
            });
            if !aggregates && keys.is_empty() && having.is_none() {
                return self.finish_rows(&finishing);
            }
            if distinct || !modifiers.is_empty() {
                return refuse(&errors::GROUPING, "DISTINCT or WITH ROLLUP with groups");
            }
            return self.finish_groups(&finishing);
        }
        let grouped = self.group_by(group_by, projection, &scope)?;
        if let Some(condition) = having {
            self.having(condition, &grouped, &scope)?;
        }

        let mut given = Given {
            names: Some(Vec::new()),
            ..Given::default()
        };
        let sorted = !keys.is_empty() && order.iter().any(|key| aggregate_of(&key.expr).is_some());
        let mut by_tokens = sorted || !grouped.is_empty();
        if distinct {
            for (expr, _) in projection.iter().filter_map(expression_of) {
                by_tokens |= self.column_of(expr, &scope)?.is_some();
            }
        }
        let shape = match matches!(mode, Mode::Top) && by_tokens {
            true => Shape::Gathered { outer, sorted },
            false => Shape::Rows,
        };
        let extremes = Extremes::of(self, &clauses, from, !keys.is_empty(), start);
        for (item, tokens) in projection.iter().zip(&clauses.items) {
            self.item(
                item, tokens, &scope, mode, distinct, &grouped, merges, shape, &extremes,
                &mut given,
            )?;
        }
        for key in order {
            self.order_key(&key.expr, projection, &scope)?;
        }
        if matches!(mode, Mode::Top) && !keys.is_empty() {
            self.grouping = Some(grouping(projection, &given.items, &self.columns, &scope));
        }
        Ok(given)
    }

    /// Whether the proxy has to finish this select, because of which column.
    #[allow(clippy::too_many_arguments)] // the clauses of one select
    fn needs_finish(
        &mut self,
        projection: &[SelectItem],
        distinct: bool,
        keys: &[Expr],
        having: Option<&Expr>,
        order: &[sqlparser::ast::OrderByExpr],
        scope: &Scope,
        top: bool,
    ) -> Planned<Option<ColumnUse>> {
        for item in projection {
            match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                    if let Some((_, column)) = self.column_of(expr, scope)? {
                        if distinct && opening_order(&column).is_none() {
                            return Ok(Some(column));
                        }
                    } else if let Some(column) = self.unfinished_aggregate(expr, scope)? {
                        return Ok(Some(column));
                    }
                }
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) if distinct => {
                    for table in scope.sources.iter().filter_map(|s| s.table.as_ref()) {
                        if let Some(index) =
                            table.columns.iter().position(|c| c.protection.is_some())
                        {
                            return Ok(Some(ColumnUse {
                                table: Arc::clone(table),
                                index,
                            }));
                        }
                    }
                }
                _ => {}
            }
        }
        let pinned = self.pinned.len();
        let found = self.unfinished_keys(projection, keys, having, order, scope, top);
        // the keys are read again by the rule that plans them
        self.pinned.truncate(pinned);
        found
    }

    fn unfinished_keys(
        &mut self,
        projection: &[SelectItem],
        keys: &[Expr],
        having: Option<&Expr>,
        order: &[sqlparser::ast::OrderByExpr],
        scope: &Scope,
        top: bool,
    ) -> Planned<Option<ColumnUse>> {
        for key in keys {
            if let Some((_, column)) = self.key_column(key, projection, scope, false)?
                && top
                && column.column().equality_column().is_none()
            {
                return Ok(Some(column));
            }
        }
        if let Some(condition) = having
            && top
            && let Some(column) = self.aggregate_within(condition, projection, scope)?
        {
            return Ok(Some(column));
        }
        for key in order {
            if top && let Some(column) = self.unfinished_aggregate(&key.expr, scope)? {
                return Ok(Some(column));
            }
            if !keys.is_empty() && !top {
                continue;
            }
            if let Some((_, column)) = self.key_column(&key.expr, projection, scope, true)?
                && exact_order(&column).is_none()
            {
                return Ok(Some(column));
            }
        }
        Ok(None)
    }

    /// The protected column of an aggregate that the server cannot compute.
    fn unfinished_aggregate(&mut self, expr: &Expr, scope: &Scope) -> Planned<Option<ColumnUse>> {
        let Some(Call {
            function,
            argument: Some(argument),
            distinct,
        }) = aggregate_of(expr)
        else {
            return Ok(None);
        };
        let Some((_, column)) = self.column_of(argument, scope)? else {
            return Ok(None);
        };
        let server = match function {
            Aggregate::Sum | Aggregate::Avg => false,
            Aggregate::Min | Aggregate::Max => opening_order(&column).is_some(),
            Aggregate::Count => !distinct || column.column().equality_column().is_some(),
        };
        Ok((!server).then_some(column))
    }

    /// The protected column of an aggregate in a condition that the server cannot decide. What
    /// an alias stands for counts.
    fn aggregate_within(
        &mut self,
        expr: &Expr,
        projection: &[SelectItem],
        scope: &Scope,
    ) -> Planned<Option<ColumnUse>> {
        let parts: Vec<&Expr> = match expr {
            Expr::Nested(e)
            | Expr::UnaryOp { expr: e, .. }
            | Expr::IsNull(e)
            | Expr::IsNotNull(e) => vec![e],
            Expr::BinaryOp { left, right, .. } => vec![left, right],
            Expr::Between {
                expr, low, high, ..
            } => vec![expr, low, high],
            Expr::InList { expr, list, .. } => std::iter::once(expr.as_ref()).chain(list).collect(),
            Expr::Identifier(ident) => {
                let named = projection.iter().find_map(|item| match item {
                    SelectItem::ExprWithAlias { expr, alias }
                        if alias.value.eq_ignore_ascii_case(&ident.value) =>
                    {
                        Some(expr)
                    }
                    _ => None,
                });
                match named {
                    Some(item @ Expr::Function(_)) => vec![item],
                    _ => return Ok(None),
                }
            }
            Expr::Function(_) => {
                return match aggregate_of(expr) {
                    Some(Call {
                        function: Aggregate::Count,
                        ..
                    }) => self.unfinished_aggregate(expr, scope),
                    Some(Call {
                        argument: Some(argument),
                        ..
                    }) => Ok(self.column_of(argument, scope)?.map(|(_, column)| column)),
                    _ => Ok(None),
                };
            }
            _ => return Ok(None),
        };
        for part in parts {
            if let Some(column) = self.aggregate_within(part, projection, scope)? {
                return Ok(Some(column));
            }
        }
        Ok(None)
    }
}
