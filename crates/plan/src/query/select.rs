//! One `SELECT`: its steps, and the choice of the tier.

use std::sync::Arc;

use sqlparser::ast::{Distinct, Expr, GroupByExpr, Select, SelectFlavor, SelectItem, TableFactor};

use super::Given;
use crate::errors;
use crate::plan::{ColumnUse, Limit};
use crate::planner::{Planned, Planner, refuse};
use crate::predicate::{exact_order, opening_order};
use crate::query::Mode;
use crate::scope::Scope;

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
        let start = self.token_at(self.offset(select_token.0.span))?;
        let clauses = self.clauses(start)?;
        if clauses.items.len() != projection.len() {
            return refuse(&errors::NOT_UNDERSTOOD, "the select list");
        }

        let mut scope = Scope::inside(parent);
        for item in from {
            self.add_item(item, &mut scope, parent)?;
        }
        let mut merges = false;
        for item in from {
            merges |= self.joins(item, &scope)?;
        }
        if let Some(condition) = selection {
            self.scan(condition, &scope)?;
        }
        for item in projection {
            if let SelectItem::ExprWithAlias { expr, alias } = item {
                self.judge(alias)?;
                let column = self.column_of(expr, &scope)?.map(|(_, c)| c);
                scope.aliases.push((alias.value.clone(), column));
            }
        }
        let grouped = self.group_by(group_by, projection, &scope)?;
        let is_grouped = !matches!(group_by, GroupByExpr::Expressions(list, _) if list.is_empty());
        if let Some(condition) = having {
            self.having(condition, &scope)?;
        }

        let finish = self.needs_finish(projection, distinct, is_grouped, order, &scope)?;
        if let Some(column) = finish {
            if !matches!(mode, Mode::Top) || is_grouped || having.is_some() {
                return refuse(&errors::GROUPING, column.path());
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
            return self.finish(projection, &clauses, &scope, distinct, order, limit);
        }

        let mut given = Given {
            names: Some(Vec::new()),
            ..Given::default()
        };
        for (item, tokens) in projection.iter().zip(&clauses.items) {
            self.item(
                item, tokens, &scope, mode, distinct, &grouped, merges, &mut given,
            )?;
        }
        for key in order {
            self.order_key(&key.expr, projection, &scope)?;
        }
        Ok(given)
    }

    /// Whether the proxy has to finish this select, because of which column.
    fn needs_finish(
        &mut self,
        projection: &[SelectItem],
        distinct: bool,
        grouped: bool,
        order: &[sqlparser::ast::OrderByExpr],
        scope: &Scope,
    ) -> Planned<Option<ColumnUse>> {
        for item in projection {
            match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                    if let Some((_, column)) = self.column_of(expr, scope)? {
                        if distinct && opening_order(&column).is_none() {
                            return Ok(Some(column));
                        }
                    } else if let Expr::Function(function) = expr {
                        let name = Self::function_name(function);
                        let sums = matches!(name.as_str(), "sum" | "avg");
                        let extreme = matches!(name.as_str(), "min" | "max");
                        if (sums || extreme)
                            && function.over.is_none()
                            && let Some((argument, _)) = Self::single_argument(function)
                            && let Some((_, column)) = self.column_of(argument, scope)?
                            && (sums || opening_order(&column).is_none())
                        {
                            return Ok(Some(column));
                        }
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
        if !grouped {
            for key in order {
                let pinned = self.pinned.len();
                let found = self.key_column(&key.expr, projection, scope, true)?;
                self.pinned.truncate(pinned);
                if let Some((_, column)) = found
                    && exact_order(&column).is_none()
                {
                    return Ok(Some(column));
                }
            }
        }
        Ok(None)
    }
}
