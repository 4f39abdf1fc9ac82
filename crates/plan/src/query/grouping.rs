//! Keys of `GROUP BY` and `ORDER BY`: columns named directly, by an alias, or by position.
//!
//! The rules of SQL differ: in ORDER BY an alias hides a column of the same name, in GROUP BY the
//! column hides the alias.

use onionskin_schema::same_name;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use sqlparser::ast::{
    BinaryOperator, Expr, Function, GroupByExpr, Ident, JoinOperator, SelectItem, TableFactor,
    TableWithJoins, UnaryOperator,
};

use crate::comparable::{equality, exact_order, goes_by_name, no_order};
use crate::errors::{self, NotUnderstood};
use crate::finishing::Aggregate;
use crate::lex::LiteralKind;
use crate::plan::{ColumnUse, GroupedColumn, Grouping, ResultItem, Source};
use crate::planner::{Planned, Planner, quoted, refuse};
use crate::query::finish::aggregate_of;
use crate::scope::{Resolved, Scope};
use crate::visit::visit_expressions;

impl Planner<'_> {
    /// `GROUP BY`; returns the protected columns in it.
    pub(super) fn group_by(
        &mut self,
        group_by: &GroupByExpr,
        projection: &[SelectItem],
        scope: &Scope,
    ) -> Planned<Vec<ColumnUse>> {
        let GroupByExpr::Expressions(keys, modifiers) = group_by else {
            return NotUnderstood::Clause("GROUP BY ALL").refuse();
        };
        let mut grouped = Vec::new();
        for key in keys {
            if let Some((range, column)) = self.key_column(key, projection, scope, false)? {
                let name = equality(&column)?.0.to_string();
                let text = self.physical_key(key, &column, projection, scope, &name);
                self.edit_sql(range, text);
                grouped.push(column);
            } else {
                self.scan_key(key, scope)?;
            }
        }
        if !modifiers.is_empty() && !grouped.is_empty() {
            return refuse(&errors::GROUPING, "WITH ROLLUP");
        }
        Ok(grouped)
    }

    /// A key of `GROUP BY` or `ORDER BY` that means a protected column: directly, by alias, or
    /// by position.
    pub(super) fn key_column(
        &mut self,
        key: &Expr,
        projection: &[SelectItem],
        scope: &Scope,
        alias_first: bool,
    ) -> Planned<Option<(Range<usize>, ColumnUse)>> {
        if let Expr::Identifier(ident) = key {
            if alias_first {
                one_item(ident, projection, scope)?;
            }
            let by_alias = scope.alias(&ident.value).map(|c| c.cloned());
            let direct = if alias_first && by_alias.is_some() {
                None
            } else {
                self.column_of(key, scope)?
            };
            if let Some((_, column)) = &direct {
                // the server takes the column, and warns
                let other = |c: &ColumnUse| {
                    !Arc::ptr_eq(&c.table, &column.table) || c.index != column.index
                };
                if !alias_first && by_alias.is_some_and(|c| c.as_ref().is_none_or(other)) {
                    let about = format!("column {} in GROUP BY, and an alias", ident.value);
                    return refuse(&errors::AMBIGUOUS, about);
                }
                return Ok(direct);
            }
            let range = self.judge(ident)?;
            let in_tables = !alias_first && self.is_known_column(ident, scope);
            if let Some(Some(column)) = by_alias
                && !in_tables
            {
                return Ok(Some((range, column)));
            }
            return Ok(None);
        }
        if let Some((
            range,
            Source::Literal {
                index,
                negative: false,
            },
        )) = self.constant(key)
        {
            let literal = self.request.template.literals[index];
            if literal.kind == LiteralKind::Integer {
                self.pin(index);
                let text = std::str::from_utf8(literal.text(self.sql())).unwrap_or_default();
                let position: usize = text.parse().unwrap_or(0);
                let item = position.checked_sub(1).and_then(|i| projection.get(i));
                let has_wildcard = projection.iter().any(|i| {
                    matches!(
                        i,
                        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
                    )
                });
                if has_wildcard {
                    return NotUnderstood::Beside("a position", "*").refuse();
                }
                if let Some(SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. }) =
                    item
                    && let Some((_, column)) = self.column_of(e, scope)?
                {
                    return Ok(Some((range, column)));
                }
            }
            return Ok(None);
        }
        self.column_of(key, scope)
    }

    pub(super) fn is_known_column(&self, ident: &Ident, scope: &Scope) -> bool {
        scope.sources.iter().any(|s| {
            s.table
                .as_ref()
                .is_some_and(|t| t.column(&ident.value).is_some())
                || s.exports
                    .as_ref()
                    .is_some_and(|e| e.iter().any(|n| n.eq_ignore_ascii_case(&ident.value)))
        })
    }

    /// Walks a key that is no protected column; a bare alias is fine.
    pub(super) fn scan_key(&mut self, key: &Expr, scope: &Scope) -> Planned<()> {
        if let Expr::Identifier(ident) = key
            && scope.alias(&ident.value).is_some()
        {
            self.judge(ident)?;
            return Ok(());
        }
        self.scan(key, scope)
    }

    /// A physical column, qualified by the source that the column comes from when there are
    /// several.
    pub(super) fn reference(&self, column: &ColumnUse, scope: &Scope, physical: &str) -> String {
        let mut owners = scope.sources.iter().filter(|s| {
            s.table
                .as_ref()
                .is_some_and(|t| Arc::ptr_eq(t, &column.table))
        });
        match (owners.next(), owners.next(), scope.sources.len()) {
            (Some(owner), None, 2..) => format!("{}.{}", quoted(&owner.name), quoted(physical)),
            _ => quoted(physical),
        }
    }

    /// What stands in the place of a key's last name, or of its position: the physical column, from
    /// the source that the key means. A table that is joined to itself has two, and an alias or a
    /// position stands for one of them.
    fn physical_key(
        &self,
        key: &Expr,
        column: &ColumnUse,
        projection: &[SelectItem],
        scope: &Scope,
        physical: &str,
    ) -> String {
        let by_name = |name: &Ident| {
            projection.iter().find_map(|item| match item {
                SelectItem::ExprWithAlias { expr, alias }
                    if same_name(&alias.value, &name.value) =>
                {
                    Some(expr)
                }
                _ => None,
            })
        };
        let meant = match key {
            // a name that the statement qualified stays qualified
            Expr::CompoundIdentifier(_) => return quoted(physical),
            Expr::Identifier(name) => by_name(name),
            // a position: the parser sees no numbers
            _ => match self.constant(key) {
                Some((_, Source::Literal { index, .. })) => {
                    let literal = self.request.template.literals[index];
                    let text = std::str::from_utf8(literal.text(self.sql())).unwrap_or_default();
                    let position = text.parse::<usize>().ok().and_then(|p| p.checked_sub(1));
                    match position.and_then(|i| projection.get(i)) {
                        Some(
                            SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. },
                        ) => Some(e),
                        _ => None,
                    }
                }
                _ => None,
            },
        };
        match meant {
            Some(Expr::CompoundIdentifier(parts)) => {
                let source = parts[..parts.len() - 1].iter().map(|p| quoted(&p.value));
                let source: Vec<String> = source.collect();
                format!("{}.{}", source.join("."), quoted(physical))
            }
            _ => self.reference(column, scope, physical),
        }
    }

    /// `HAVING`. Servers look its names up in the select list and in GROUP BY, where a protected
    /// column goes by another name: what it says of one, outside of aggregates, must be about the
    /// very token that is grouped by.
    pub(super) fn having(
        &mut self,
        condition: &Expr,
        grouped: &[ColumnUse],
        scope: &Scope,
    ) -> Planned<()> {
        self.having_names(condition, grouped, scope)?;
        self.scan(condition, scope)
    }

    fn having_names(
        &mut self,
        condition: &Expr,
        grouped: &[ColumnUse],
        scope: &Scope,
    ) -> Planned<()> {
        let (one, physical): (&Expr, fn(&ColumnUse) -> Option<&str>) = match condition {
            Expr::Nested(e)
            | Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr: e,
            } => return self.having_names(e, grouped, scope),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::And | BinaryOperator::Or,
                right,
            } => {
                self.having_names(left, grouped, scope)?;
                return self.having_names(right, grouped, scope);
            }
            Expr::BinaryOp { left, op, right } => {
                let by_equality = matches!(
                    op,
                    BinaryOperator::Eq | BinaryOperator::NotEq | BinaryOperator::Spaceship
                );
                let column = match protected_names(right, scope).is_empty() {
                    true => left,
                    false => right,
                };
                let physical: fn(&ColumnUse) -> Option<&str> = match by_equality {
                    true => |c| equality(c).ok().map(|e| e.0),
                    false => exact_order,
                };
                (column, physical)
            }
            Expr::InList { expr, .. } => (expr, |c| equality(c).ok().map(|e| e.0)),
            Expr::Between { expr, .. } => (expr, exact_order),
            _ => (condition, |_| None),
        };
        let names = protected_names(condition, scope);
        let Some(first) = names.first() else {
            return Ok(());
        };
        let is_column = matches!(one, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        let is_grouped = grouped.iter().any(|g| {
            Arc::ptr_eq(&g.table, &first.table)
                && g.index == first.index
                && physical(g).is_some_and(|p| equality(g).is_ok_and(|e| e.0 == p))
        });
        if names.len() > 1 || !is_column || !is_grouped {
            let about = format!("{} in HAVING, which does not group by it so", first.path());
            return refuse(&errors::GROUPING, about);
        }
        Ok(())
    }

    pub(super) fn order_key(
        &mut self,
        key: &Expr,
        projection: &[SelectItem],
        scope: &Scope,
    ) -> Planned<()> {
        if let Some((range, column)) = self.key_column(key, projection, scope, true)? {
            let name = exact_order(&column)
                .ok_or_else(|| no_order(&column))?
                .to_string();
            let text = self.physical_key(key, &column, projection, scope, &name);
            self.edit_sql(range, text);
            return Ok(());
        }
        if let Expr::Function(function) = key
            && let Some((range, column)) = self.extremum(function, scope)?
        {
            if goes_by_name(&column) {
                return refuse(&errors::GROUPING, column.path());
            }
            let name = exact_order(&column)
                .ok_or_else(|| no_order(&column))?
                .to_string();
            self.replace(range, &name);
            return Ok(());
        }
        self.scan_key(key, scope)
    }

    /// `MIN(k)` or `MAX(k)` of a protected column.
    pub(super) fn extremum(
        &mut self,
        function: &Function,
        scope: &Scope,
    ) -> Planned<Option<(Range<usize>, ColumnUse)>> {
        if !matches!(Self::function_name(function).as_str(), "min" | "max")
            || function.over.is_some()
        {
            return Ok(None);
        }
        if let Some(ident) = function.name.0.last().and_then(|p| p.as_ident()) {
            self.judge(ident)?;
        }
        match Self::single_argument(function) {
            Some((argument, _)) => self.column_of(argument, scope),
            None => Ok(None),
        }
    }
}

/// A key of ORDER BY that two items of the select list go by is ambiguous, unless they are the same
/// column. The server finds that out by names, of which protected columns have others there. Items
/// that are no columns end its search.
fn one_item(name: &Ident, projection: &[SelectItem], scope: &Scope) -> Planned<()> {
    let mut found: Option<(&Expr, Option<ColumnUse>)> = None;
    for item in projection {
        let (expr, shown) = match item {
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
            SelectItem::UnnamedExpr(expr) => (expr, None),
            _ => continue,
        };
        let parts: &[Ident] = match expr {
            Expr::Identifier(name) => std::slice::from_ref(name),
            Expr::CompoundIdentifier(parts) => parts,
            _ => &[],
        };
        let shown = shown.or(parts.last());
        if !shown.is_some_and(|s| same_name(&s.value, &name.value)) {
            continue;
        }
        if parts.is_empty() {
            break;
        }
        let column = match scope.resolve(parts) {
            Ok(Resolved::Protected(column)) => Some(column),
            _ => None,
        };
        let same = match (&found, &column) {
            (None, _) | (Some((_, None)), None) => true,
            (Some((first, Some(one))), Some(other)) => {
                Arc::ptr_eq(&one.table, &other.table)
                    && one.index == other.index
                    && scope.source_of(first, one) == scope.source_of(expr, other)
            }
            _ => false,
        };
        if !same {
            return refuse(&errors::AMBIGUOUS, format!("column {}", name.value));
        }
        found = found.or(Some((expr, column)));
    }
    Ok(())
}

/// The protected columns that an expression names outside of aggregates.
fn protected_names(expr: &Expr, scope: &Scope) -> Vec<ColumnUse> {
    let named = |expr: &Expr, found: &mut Vec<ColumnUse>| {
        let parts: &[Ident] = match expr {
            Expr::Identifier(name) => std::slice::from_ref(name),
            Expr::CompoundIdentifier(parts) => parts,
            _ => return,
        };
        if let Ok(Resolved::Protected(column)) = scope.resolve(parts) {
            found.push(column);
        }
    };
    let (mut all, mut within) = (Vec::new(), 0);
    let _ = visit_expressions(expr, |e: &Expr| {
        named(e, &mut all);
        if aggregate_of(e).is_some() {
            let mut inside = Vec::new();
            let _ = visit_expressions(e, |e: &Expr| {
                named(e, &mut inside);
                ControlFlow::<()>::Continue(())
            });
            within += inside.len();
        }
        ControlFlow::<()>::Continue(())
    });
    match all.len() == within {
        true => Vec::new(),
        false => all,
    }
}

/// The protected column that an item of the select list is computed from. A count is a number like
/// any other.
pub(crate) fn computed_from(expr: &Expr, scope: &Scope) -> Option<ColumnUse> {
    if aggregate_of(expr).is_some_and(|call| matches!(call.function, Aggregate::Count)) {
        return None;
    }
    let mut found = None;
    let _ = visit_expressions(expr, |e: &Expr| {
        let parts: &[Ident] = match e {
            Expr::Identifier(name) => std::slice::from_ref(name),
            Expr::CompoundIdentifier(parts) => parts,
            _ => return ControlFlow::Continue(()),
        };
        match scope.resolve(parts) {
            Ok(Resolved::Protected(column)) => {
                found = Some(column);
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    });
    found
}

/// Which columns of the result are grouped protected ones, and whose.
pub(super) fn grouping(
    projection: &[SelectItem],
    items: &[ResultItem],
    columns: &[ColumnUse],
    scope: &Scope,
) -> Grouping {
    let mut found = Grouping::default();
    for (item, (shown, given)) in projection.iter().zip(items).enumerate() {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = shown else {
            // `*` over protected columns is no grouped item
            return Grouping::default();
        };
        let (Some((index, _)), false) = (given.open, given.computed) else {
            continue;
        };
        let column = &columns[index];
        let qualifier = match expr {
            Expr::CompoundIdentifier(parts) => parts.iter().nth_back(1).map(|p| p.value.as_str()),
            _ => None,
        };
        let source = scope.sources.iter().find(|s| {
            let same = |t: &Arc<_>| Arc::ptr_eq(t, &column.table);
            s.table.as_ref().is_some_and(same) && qualifier.is_none_or(|q| same_name(&s.name, q))
        });
        found.columns.push(GroupedColumn {
            item,
            source: source.map_or(column.table.name.clone(), |s| s.name.clone()),
        });
    }
    found
}

/// Whether rows of one side may be missing.
pub(super) fn has_outer_join(item: &TableWithJoins) -> bool {
    let nested = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin {
            table_with_joins, ..
        } => has_outer_join(table_with_joins),
        _ => false,
    };
    nested(&item.relation)
        || item.joins.iter().any(|join| {
            nested(&join.relation)
                || matches!(
                    join.join_operator,
                    JoinOperator::Left(_)
                        | JoinOperator::LeftOuter(_)
                        | JoinOperator::Right(_)
                        | JoinOperator::RightOuter(_)
                )
        })
}
