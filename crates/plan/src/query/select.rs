//! One `SELECT`: its steps, and the choice of the tier.

use onionskin_schema::same_name;
use std::sync::Arc;

use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, OrderByExpr, Select, SelectFlavor, SelectItem, TableFactor,
};

use super::Given;
use super::clauses::Clauses;
use super::extremum::Extremes;
use super::finish::{Call, Finishing, aggregate_of, expression_of};
use super::grouping::{grouping, has_outer_join};
use super::items::{SelectList, Shape};
use crate::comparable::{exact_order, opening_order};
use crate::errors::{self, NotUnderstood};
use crate::finishing::{Aggregate, Limit};
use crate::plan::ColumnUse;
use crate::planner::{Planned, Planner, refuse};
use crate::query::Mode;
use crate::scope::Scope;

/// Columns of a result, as many as servers take.
const MAX_COLUMNS: usize = 4_096;

/// A select whose tables, condition and aliases are read.
#[derive(Clone, Copy)]
struct Parts<'s> {
    select: &'s Select,
    /// The select list, with aliases that are strings.
    projection: &'s [SelectItem],
    /// The keys of GROUP BY.
    keys: &'s [Expr],
    /// GROUP BY says WITH ROLLUP or the like.
    rolls_up: bool,
    order: &'s [OrderByExpr],
    distinct: bool,
    clauses: &'s Clauses,
    scope: &'s Scope<'s>,
    mode: Mode<'s>,
    /// A join merges columns (`USING`).
    merges: bool,
}

impl Parts<'_> {
    /// Whether the client reads the rows.
    fn is_top(&self) -> bool {
        matches!(self.mode, Mode::Top)
    }

    /// The shape of rows that go through a temporary table.
    fn gathered(&self, sorted: bool) -> Shape {
        let outer = self.select.from.iter().any(has_outer_join);
        Shape::Gathered { outer, sorted }
    }
}

/// Refuses clauses that are not understood. Returns whether it says DISTINCT.
fn check_clauses(select: &Select) -> Planned<bool> {
    let Select {
        select_token: _,
        optimizer_hints: _,
        distinct,
        select_modifiers: _,
        top,
        top_before_distinct: _,
        projection,
        exclude,
        into,
        from: _,
        lateral_views,
        prewhere,
        selection: _,
        connect_by,
        group_by: _,
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window,
        qualify,
        window_before_qualify: _,
        value_table_mode,
        flavor,
    } = select;
    if into.is_some() {
        return NotUnderstood::Clause("INTO").refuse();
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
        return NotUnderstood::ClauseOf("SELECT").refuse();
    }
    let distinct = match distinct {
        None | Some(Distinct::All) => false,
        Some(Distinct::Distinct) => true,
        Some(Distinct::On(_)) => return NotUnderstood::Clause("DISTINCT ON").refuse(),
    };
    if projection.len() > MAX_COLUMNS {
        return NotUnderstood::TooMany(MAX_COLUMNS, "columns").refuse();
    }
    Ok(distinct)
}

/// Refuses to finish what only the server can do: to count the rows without LIMIT, to merge
/// columns, to follow index hints.
fn check_finishable(parts: &Parts) -> Planned<()> {
    let modifiers = parts.select.select_modifiers.as_ref();
    if parts.merges || modifiers.is_some_and(|m| m.sql_calc_found_rows) {
        return NotUnderstood::EitherClause("SQL_CALC_FOUND_ROWS", "USING").refuse();
    }
    let hinted = |factor: &TableFactor| match factor {
        TableFactor::Table { index_hints, .. } => !index_hints.is_empty(),
        _ => false,
    };
    let mut from = parts.select.from.iter();
    if from.any(|i| hinted(&i.relation) || i.joins.iter().any(|j| hinted(&j.relation))) {
        return NotUnderstood::FinishedIndexHint.refuse();
    }
    Ok(())
}

impl Planner<'_> {
    /// Plans a select. `order` and `limit` are those of the query around it.
    pub(super) fn select(
        &mut self,
        select: &Select,
        order: &[OrderByExpr],
        limit: Option<Limit>,
        parent: Option<&Scope>,
        mode: Mode,
    ) -> Planned<Given> {
        let distinct = check_clauses(select)?;
        let start = self.token_at(self.offset(select.select_token.0.span))?;
        let clauses = self.clauses(start)?;
        if clauses.items.len() != select.projection.len() {
            return NotUnderstood::SelectList.refuse();
        }
        let named = self.named_by_strings(&select.projection, &clauses.items)?;
        let projection = named.as_deref().unwrap_or(&select.projection);

        let mut scope = Scope::inside(parent);
        let merges = self.tables(&select.from, &mut scope, parent)?;
        let filter = self.filter_left(select.selection.as_ref(), &scope, mode)?;
        self.note_aliases(projection, &mut scope)?;
        let GroupByExpr::Expressions(keys, modifiers) = &select.group_by else {
            return NotUnderstood::Clause("GROUP BY ALL").refuse();
        };
        let parts = Parts {
            select,
            projection,
            keys,
            rolls_up: !modifiers.is_empty(),
            order,
            distinct,
            clauses: &clauses,
            scope: &scope,
            mode,
            merges,
        };
        let unfinished = self.needs_finish(&parts)?;
        match filter.is_some() || unfinished.is_some() {
            true => self.finish(&parts, filter, unfinished, limit),
            false => self.on_server(&parts, start),
        }
    }

    /// Plans WHERE. Returns the condition where the server can only narrow the rows by it, so that
    /// the proxy has to decide it.
    fn filter_left<'e>(
        &mut self,
        condition: Option<&'e Expr>,
        scope: &Scope,
        mode: Mode,
    ) -> Planned<Option<&'e Expr>> {
        let Some(condition) = condition else {
            return Ok(None);
        };
        if matches!(mode, Mode::Top) && self.narrows(condition, scope)? {
            return Ok(Some(condition));
        }
        self.scan(condition, scope)?;
        Ok(None)
    }

    /// Plans a select that the proxy finishes: for a condition that is left to it, or for the sake
    /// of this column.
    fn finish(
        &mut self,
        parts: &Parts,
        filter: Option<&Expr>,
        unfinished: Option<ColumnUse>,
        limit: Option<Limit>,
    ) -> Planned<Given> {
        if !parts.is_top() {
            let about = unfinished.map_or(String::new(), |column| column.path());
            return refuse(&errors::GROUPING, about);
        }
        check_finishable(parts)?;
        let having = parts.select.having.as_ref();
        let finishing = Finishing {
            projection: parts.projection,
            clauses: parts.clauses,
            scope: parts.scope,
            shape: parts.gathered(false),
            distinct: parts.distinct,
            filter,
            keys: parts.keys,
            having,
            order: parts.order,
            limit,
        };
        let aggregates = parts.projection.iter().any(|item| match item {
            SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. } => {
                aggregate_of(e).is_some()
            }
            _ => false,
        });
        if !aggregates && parts.keys.is_empty() && having.is_none() {
            return self.finish_rows(&finishing);
        }
        if parts.distinct || parts.rolls_up {
            return refuse(&errors::GROUPING, "DISTINCT or WITH ROLLUP with groups");
        }
        self.finish_groups(&finishing)
    }

    /// Plans the rest of a select whose rows the server finishes.
    fn on_server(&mut self, parts: &Parts, start: usize) -> Planned<Given> {
        let &Parts {
            select,
            projection,
            keys,
            clauses,
            scope,
            ..
        } = parts;
        let grouped = self.group_by(&select.group_by, projection, scope)?;
        if let Some(condition) = &select.having {
            self.having(condition, &grouped, scope)?;
        }
        let list = SelectList {
            scope,
            mode: parts.mode,
            distinct: parts.distinct,
            grouped: &grouped,
            merges: parts.merges,
            shape: self.shape(parts, &grouped)?,
            extremes: Extremes::of(self, clauses, &select.from, !keys.is_empty(), start),
        };
        let mut given = Given {
            names: Some(Vec::new()),
            ..Given::default()
        };
        let around = self.grouped.len();
        self.grouped.extend(grouped.iter().cloned());
        for (item, tokens) in projection.iter().zip(&clauses.items) {
            self.item(item, tokens, &list, &mut given)?;
        }
        for key in parts.order {
            self.order_key(&key.expr, projection, scope)?;
        }
        self.grouped.truncate(around);
        if parts.is_top() && !keys.is_empty() {
            self.grouping = Some(grouping(projection, &given.items, &self.columns, scope));
        }
        Ok(given)
    }

    /// Which shape the client's rows have: whether they are told apart, grouped or sorted by
    /// tokens where plaintext would have been.
    fn shape(&mut self, parts: &Parts, grouped: &[ColumnUse]) -> Planned<Shape> {
        let mut order = parts.order.iter();
        let sorted = !parts.keys.is_empty() && order.any(|key| aggregate_of(&key.expr).is_some());
        let mut by_tokens = sorted || !grouped.is_empty();
        if parts.distinct {
            for (expr, _) in parts.projection.iter().filter_map(expression_of) {
                by_tokens |= self.column_of(expr, parts.scope)?.is_some();
            }
        }
        Ok(match parts.is_top() && by_tokens {
            true => parts.gathered(sorted),
            false => Shape::Rows,
        })
    }

    /// Whether the proxy has to finish this select, because of which column.
    fn needs_finish(&mut self, parts: &Parts) -> Planned<Option<ColumnUse>> {
        for item in parts.projection {
            if let Some(column) = self.unfinished_item(item, parts)? {
                return Ok(Some(column));
            }
        }
        let pinned = self.pinned.len();
        let found = self.unfinished_keys(parts);
        // the keys are read again by the rule that plans them
        self.pinned.truncate(pinned);
        found
    }

    /// The protected column of an item that the server cannot compute, or not tell apart.
    fn unfinished_item(&mut self, item: &SelectItem, parts: &Parts) -> Planned<Option<ColumnUse>> {
        match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                match self.column_of(expr, parts.scope)? {
                    Some((_, column)) => {
                        let is_unfinished = parts.distinct && opening_order(&column).is_none();
                        Ok(is_unfinished.then_some(column))
                    }
                    None => self.unfinished_aggregate(expr, parts.scope),
                }
            }
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) if parts.distinct => {
                Ok(first_protected(parts.scope))
            }
            _ => Ok(None),
        }
    }

    /// The protected column of GROUP BY, HAVING or ORDER BY that the server cannot group, decide
    /// or sort by.
    fn unfinished_keys(&mut self, parts: &Parts) -> Planned<Option<ColumnUse>> {
        let &Parts {
            projection,
            keys,
            scope,
            ..
        } = parts;
        let top = parts.is_top();
        for key in keys {
            if let Some((_, column)) = self.key_column(key, projection, scope, false)?
                && top
                && column.column().equality_column().is_none()
            {
                return Ok(Some(column));
            }
        }
        if let Some(condition) = &parts.select.having
            && top
            && let Some(column) = self.aggregate_within(condition, projection, scope)?
        {
            return Ok(Some(column));
        }
        for key in parts.order {
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
                        if same_name(&alias.value, &ident.value) =>
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

/// The first protected column of the tables that are read.
fn first_protected(scope: &Scope) -> Option<ColumnUse> {
    let mut tables = scope.sources.iter().filter_map(|s| s.table.as_ref());
    tables.find_map(|table| {
        let mut columns = table.columns.iter();
        Some(ColumnUse {
            table: Arc::clone(table),
            index: columns.position(|c| c.protection.is_some())?,
        })
    })
}
