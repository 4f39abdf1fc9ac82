//! `SELECT`: scopes, select lists, grouping, order; tier 1 where tokens suffice, else tier 2.

use std::ops::Range;
use std::sync::Arc;

use sqlparser::ast::{
    Distinct, Expr, Function, GroupByExpr, Ident, JoinConstraint, JoinOperator, LimitClause,
    ObjectName, OrderByKind, Query, Select, SelectFlavor, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableFactor, TableWithJoins,
};

use crate::errors::{self, Refusal};
use crate::lex::{LiteralKind, TokenKind};
use crate::plan::{
    Aggregate, ColumnUse, Finish, GroupedColumn, Grouping, Limit, OpenFrom, Output, Piece,
    ResultItem, SortKey,
};
use crate::planner::{Known, Planned, Planner, TextBuilder, quoted, refuse};
use crate::predicate::{equality, exact_order, opening_order, same_tokens};
use crate::scope::{Scope, Source};

/// What a query's rows are for.
#[derive(Clone, Copy)]
pub(crate) enum Mode<'c> {
    /// The client reads them.
    Top,
    /// Another query reads them: no protected column may be among them.
    Nested,
    /// Only whether there are any.
    Exists,
    /// They are compared with this column: one item, of the same tokens.
    Tokens(&'c ColumnUse),
}

/// What a query gives.
#[derive(Default)]
pub(crate) struct Given {
    /// Its columns, for the client.
    pub items: Vec<ResultItem>,
    /// The names of its columns, where known.
    pub names: Option<Vec<String>>,
    /// Set when the proxy has to finish the rows.
    pub finish: Option<Finish>,
}

/// The places of a select's clauses, as token indexes.
struct Clauses {
    /// Ranges of tokens, one for each item.
    items: Vec<Range<usize>>,
    /// Where `DISTINCT` stands.
    distinct: Option<usize>,
    /// The first token of the select list.
    list: usize,
    /// One past the select list.
    list_end: usize,
    order: Option<usize>,
    limit: Option<usize>,
    lock: Option<usize>,
    end: usize,
}

impl Planner<'_> {
    pub(crate) fn query(
        &mut self,
        query: &Query,
        parent: Option<&Scope>,
        mode: Mode,
    ) -> Planned<Given> {
        let Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        if with.is_some() {
            return refuse(&errors::NOT_UNDERSTOOD, "WITH");
        }
        if fetch.is_some()
            || for_clause.is_some()
            || settings.is_some()
            || format_clause.is_some()
            || !pipe_operators.is_empty()
        {
            return refuse(&errors::NOT_UNDERSTOOD, "a clause of SELECT");
        }
        for lock in locks {
            if let Some(of) = &lock.of {
                self.judge_name(of)?;
            }
        }
        if let Some(order) = order_by
            && order.interpolate.is_some()
        {
            return refuse(&errors::NOT_UNDERSTOOD, "a clause of ORDER BY");
        }
        let order: &[_] = match order_by.as_ref().map(|o| &o.kind) {
            None => &[],
            Some(OrderByKind::Expressions(list)) => list,
            Some(OrderByKind::All(_)) => return refuse(&errors::NOT_UNDERSTOOD, "ORDER BY ALL"),
        };
        let limit = match limit_clause {
            None => None,
            Some(clause) => Some(self.limit(clause)?),
        };
        match body.as_ref() {
            SetExpr::Select(select) => self.select(select, order, limit, parent, mode),
            SetExpr::Query(inner) if order.is_empty() && limit.is_none() => {
                // `(SELECT …)`: tokens of the clauses are found inside of the parentheses
                match mode {
                    Mode::Top => {
                        let given = self.query(inner, parent, mode)?;
                        if given.finish.is_some() {
                            return refuse(&errors::NOT_UNDERSTOOD, "a parenthesized SELECT");
                        }
                        Ok(given)
                    }
                    _ => self.query(inner, parent, mode),
                }
            }
            SetExpr::SetOperation {
                op: _,
                set_quantifier: _,
                left,
                right,
            } => {
                let given = self.set_operand(left, parent)?;
                self.set_operand(right, parent)?;
                let scope = Scope::inside(parent);
                for key in order {
                    self.scan(&key.expr, &scope)?;
                }
                Ok(Given {
                    items: given.items,
                    names: given.names,
                    finish: None,
                })
            }
            _ => refuse(&errors::NOT_UNDERSTOOD, "the body of a query"),
        }
    }

    /// A part of a `UNION`: no protected columns.
    fn set_operand(&mut self, body: &SetExpr, parent: Option<&Scope>) -> Planned<Given> {
        let given = match body {
            SetExpr::Select(select) => self.select(select, &[], None, parent, Mode::Nested),
            SetExpr::Query(query) => self.query(query, parent, Mode::Nested),
            SetExpr::SetOperation {
                op: _,
                set_quantifier: _,
                left,
                right,
            } => {
                self.set_operand(left, parent)?;
                self.set_operand(right, parent)
            }
            _ => return refuse(&errors::NOT_UNDERSTOOD, "a part of a set operation"),
        };
        given.map_err(|r| {
            if r.entry == &errors::EXPORT {
                Refusal::new(&errors::UNION_OF_SEALED, r.about)
            } else {
                r
            }
        })
    }

    fn limit(&mut self, clause: &LimitClause) -> Planned<Limit> {
        let (count, offset) = match clause {
            LimitClause::LimitOffset {
                limit: Some(limit),
                offset,
                limit_by,
            } => {
                if !limit_by.is_empty() {
                    return refuse(&errors::NOT_UNDERSTOOD, "LIMIT BY");
                }
                (limit, offset.as_ref().map(|o| &o.value))
            }
            LimitClause::OffsetCommaLimit { offset, limit } => (limit, Some(offset)),
            _ => return refuse(&errors::NOT_UNDERSTOOD, "LIMIT"),
        };
        let source = |e: &Expr| match self.constant(e) {
            Some((_, source)) => Ok(source),
            None => refuse(&errors::NOT_UNDERSTOOD, "LIMIT"),
        };
        Ok(Limit {
            count: source(count)?,
            offset: offset.map(source).transpose()?,
        })
    }

    fn judge_name(&mut self, name: &ObjectName) -> Planned<Vec<String>> {
        let mut parts = Vec::new();
        for part in &name.0 {
            let Some(ident) = part.as_ident() else {
                return refuse(&errors::NOT_UNDERSTOOD, "a name");
            };
            self.judge(ident)?;
            parts.push(ident.value.clone());
        }
        Ok(parts)
    }

    /// The table that a name means: database, name, what is known.
    pub(crate) fn table(&mut self, name: &ObjectName) -> Planned<(Option<String>, String, Known)> {
        let parts = self.judge_name(name)?;
        let (database, table) = match parts.as_slice() {
            [table] => (self.request.settings.database.clone(), table.clone()),
            [database, table] => (Some(database.clone()), table.clone()),
            _ => {
                return refuse(
                    &errors::NOT_UNDERSTOOD,
                    "a table name of more than two parts",
                );
            }
        };
        let known = match &database {
            Some(database) => self.request.catalog.table(database, &table),
            None => Known::Absent,
        };
        if let Known::Table(t) = &known
            && let Some(reason) = &t.damaged
        {
            return refuse(
                &errors::DAMAGED,
                format!("{}.{} ({reason})", t.database, t.name),
            );
        }
        Ok((database, table, known))
    }

    /// Adds a table factor to a scope.
    pub(crate) fn factor(
        &mut self,
        factor: &TableFactor,
        scope: &mut Scope,
        parent: Option<&Scope>,
    ) -> Planned<()> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                with_hints,
                version: None,
                with_ordinality: false,
                partitions: _,
                json_path: None,
                sample: None,
                index_hints: _,
            } if with_hints.is_empty() => {
                let (database, table, known) = self.table(name)?;
                if let Some(alias) = alias {
                    if !alias.columns.is_empty() || alias.at.is_some() {
                        return refuse(&errors::NOT_UNDERSTOOD, "a table alias");
                    }
                    self.judge(&alias.name)?;
                }
                scope.sources.push(Source {
                    name: alias.as_ref().map_or(table, |a| a.name.value.clone()),
                    database: if alias.is_some() { None } else { database },
                    table: match known {
                        Known::Table(t) => Some(t),
                        _ => None,
                    },
                    exports: None,
                });
                Ok(())
            }
            TableFactor::Derived {
                lateral: false,
                subquery,
                alias: Some(alias),
                sample: None,
            } => {
                if !alias.columns.is_empty() || alias.at.is_some() {
                    return refuse(&errors::NOT_UNDERSTOOD, "a derived table's alias");
                }
                self.judge(&alias.name)?;
                let given = self.query(subquery, parent, Mode::Nested)?;
                scope.sources.push(Source {
                    name: alias.name.value.clone(),
                    database: None,
                    table: None,
                    exports: given.names,
                });
                Ok(())
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => self.add_item(table_with_joins, scope, parent),
            _ => refuse(&errors::NOT_UNDERSTOOD, "a part of FROM"),
        }
    }

    /// Adds a table and its joins to a scope; the conditions are walked by [`Self::joins`].
    fn add_item(
        &mut self,
        item: &TableWithJoins,
        scope: &mut Scope,
        parent: Option<&Scope>,
    ) -> Planned<()> {
        self.factor(&item.relation, scope, parent)?;
        for join in &item.joins {
            self.factor(&join.relation, scope, parent)?;
        }
        Ok(())
    }

    /// Walks the conditions of joins. Returns whether columns are merged (`USING`).
    pub(crate) fn joins(&mut self, item: &TableWithJoins, scope: &Scope) -> Planned<bool> {
        let mut merges = false;
        if let TableFactor::NestedJoin {
            table_with_joins, ..
        } = &item.relation
        {
            merges |= self.joins(table_with_joins, scope)?;
        }
        for join in &item.joins {
            if let TableFactor::NestedJoin {
                table_with_joins, ..
            } = &join.relation
            {
                merges |= self.joins(table_with_joins, scope)?;
            }
            let constraint = match &join.join_operator {
                JoinOperator::Join(c)
                | JoinOperator::Inner(c)
                | JoinOperator::Left(c)
                | JoinOperator::LeftOuter(c)
                | JoinOperator::Right(c)
                | JoinOperator::RightOuter(c)
                | JoinOperator::CrossJoin(c)
                | JoinOperator::StraightJoin(c) => c,
                _ => return refuse(&errors::NOT_UNDERSTOOD, "a kind of join"),
            };
            match constraint {
                JoinConstraint::None => {}
                JoinConstraint::On(e) => self.scan(e, scope)?,
                JoinConstraint::Natural => {
                    // sealed cells of two tables would be compared with each other
                    return refuse(&errors::NOT_UNDERSTOOD, "NATURAL JOIN");
                }
                JoinConstraint::Using(names) => {
                    merges = true;
                    for name in names {
                        let parts = self.judge_name(name)?;
                        let column = parts.last().map(String::as_str).unwrap_or_default();
                        for table in scope.sources.iter().filter_map(|s| s.table.as_ref()) {
                            if table.column(column).is_some_and(|c| c.protection.is_some()) {
                                let about = format!("USING ({column})");
                                return refuse(&errors::EXPRESSION, about);
                            }
                        }
                    }
                }
            }
        }
        Ok(merges)
    }

    fn select(
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
        if matches!(mode, Mode::Top) && is_grouped {
            let outer = from.iter().any(has_outer_join);
            self.grouping = Some(grouping(
                projection,
                &given.items,
                &self.columns,
                &scope,
                outer,
            ));
        }
        Ok(given)
    }

    /// Finds the clauses of the select whose first token is `start`.
    fn clauses(&self, start: usize) -> Planned<Clauses> {
        const MODIFIERS: [&str; 10] = [
            "all",
            "distinct",
            "distinctrow",
            "high_priority",
            "straight_join",
            "sql_small_result",
            "sql_big_result",
            "sql_buffer_result",
            "sql_no_cache",
            "sql_calc_found_rows",
        ];
        let sql = self.sql();
        let mut at = start + 1;
        let mut distinct = None;
        while let Some(t) = self.tokens.get(at) {
            let modifier = t.kind == TokenKind::Word && MODIFIERS.iter().any(|m| t.is_word(sql, m));
            if !modifier && t.kind != TokenKind::Hint {
                break;
            }
            if t.is_word(sql, "distinct") || t.is_word(sql, "distinctrow") {
                distinct = Some(at);
            }
            at += 1;
        }
        let list = at;
        let mut found = Clauses {
            items: Vec::new(),
            distinct,
            list,
            list_end: 0,
            order: None,
            limit: None,
            lock: None,
            end: self.tokens.len(),
        };
        let mut depth = 0usize;
        let mut item = list;
        let mut in_list = true;
        let mut after_dot = false;
        while let Some(t) = self.tokens.get(at) {
            let word = t.kind == TokenKind::Word && !after_dot && depth == 0;
            after_dot = t.is(b'.');
            let close_list = |found: &mut Clauses, item: usize| {
                found.items.push(item..at);
                found.list_end = at;
            };
            if t.is(b'(') {
                depth += 1;
            } else if t.is(b')') {
                if depth == 0 {
                    found.end = at;
                    break;
                }
                depth -= 1;
            } else if t.is(b';') {
                found.end = at;
                break;
            } else if t.is(b',') && depth == 0 && in_list {
                found.items.push(item..at);
                item = at + 1;
            } else if word {
                let is = |w: &str| t.is_word(sql, w);
                if in_list
                    && [
                        "from", "where", "group", "having", "order", "limit", "union", "into",
                    ]
                    .iter()
                    .any(|w| is(w))
                {
                    close_list(&mut found, item);
                    in_list = false;
                }
                if is("union") || is("intersect") || is("except") {
                    found.end = at;
                    break;
                }
                if is("order") {
                    found.order.get_or_insert(at);
                } else if is("limit") {
                    found.limit.get_or_insert(at);
                } else if !in_list && (is("for") || is("lock")) {
                    found.lock.get_or_insert(at);
                }
            }
            at += 1;
        }
        if in_list {
            found.items.push(item..found.end);
            found.list_end = found.end;
        }
        Ok(found)
    }

    fn bytes_of(&self, tokens: &Range<usize>) -> Range<usize> {
        match (
            self.tokens.get(tokens.start),
            self.tokens.get(tokens.end.wrapping_sub(1)),
        ) {
            (Some(first), Some(last)) if tokens.start < tokens.end => first.start..last.end,
            _ => 0..0,
        }
    }

    /// `GROUP BY`; returns the protected columns in it.
    fn group_by(
        &mut self,
        group_by: &GroupByExpr,
        projection: &[SelectItem],
        scope: &Scope,
    ) -> Planned<Vec<ColumnUse>> {
        let GroupByExpr::Expressions(keys, modifiers) = group_by else {
            return refuse(&errors::NOT_UNDERSTOOD, "GROUP BY ALL");
        };
        let mut grouped = Vec::new();
        for key in keys {
            if let Some((range, column)) = self.key_column(key, projection, scope, false)? {
                let name = equality(&column)?.0.to_string();
                self.edit_sql(range, self.reference(&column, scope, &name));
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
    fn key_column(
        &mut self,
        key: &Expr,
        projection: &[SelectItem],
        scope: &Scope,
        alias_first: bool,
    ) -> Planned<Option<(Range<usize>, ColumnUse)>> {
        if let Expr::Identifier(ident) = key {
            let by_alias = scope.alias(&ident.value).map(|c| c.cloned());
            let direct = if alias_first && by_alias.is_some() {
                None
            } else {
                self.column_of(key, scope)?
            };
            if direct.is_some() {
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
            crate::plan::Source::Literal {
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
                    return refuse(&errors::NOT_UNDERSTOOD, "a position together with *");
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

    fn is_known_column(&self, ident: &Ident, scope: &Scope) -> bool {
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
    fn scan_key(&mut self, key: &Expr, scope: &Scope) -> Planned<()> {
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
    fn reference(&self, column: &ColumnUse, scope: &Scope, physical: &str) -> String {
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

    fn having(&mut self, condition: &Expr, scope: &Scope) -> Planned<()> {
        self.scan(condition, scope)
    }

    fn order_key(&mut self, key: &Expr, projection: &[SelectItem], scope: &Scope) -> Planned<()> {
        if let Some((range, column)) = self.key_column(key, projection, scope, true)? {
            let name = exact_order(&column)
                .ok_or_else(|| Refusal::new(&errors::NO_RANGE, column.path()))?
                .to_string();
            // a name that the statement qualified stays qualified
            let qualified = matches!(key, Expr::CompoundIdentifier(_));
            let text = if qualified {
                quoted(&name)
            } else {
                self.reference(&column, scope, &name)
            };
            self.edit_sql(range, text);
            return Ok(());
        }
        if let Expr::Function(function) = key
            && let Some((range, column)) = self.extremum(function, scope)?
        {
            let name = exact_order(&column)
                .ok_or_else(|| Refusal::new(&errors::NO_RANGE, column.path()))?
                .to_string();
            self.replace(range, &name);
            return Ok(());
        }
        self.scan_key(key, scope)
    }

    /// `MIN(k)` or `MAX(k)` of a protected column.
    fn extremum(
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

    /// The columns of `*` over these sources.
    fn wildcard(&mut self, sources: &[&Source]) -> Planned<Vec<ResultItem>> {
        let mut items = Vec::new();
        for source in sources {
            match (&source.table, &source.exports) {
                (Some(table), _) => {
                    for (index, column) in table.columns.iter().enumerate() {
                        if column.invisible {
                            continue;
                        }
                        items.push(match &column.protection {
                            Some(_) => {
                                let used = ColumnUse {
                                    table: Arc::clone(table),
                                    index,
                                };
                                ResultItem {
                                    open: Some((self.column_index(&used), OpenFrom::Sealed)),
                                    name: Some(column.name.clone()),
                                    computed: false,
                                }
                            }
                            None => plain_item(),
                        });
                    }
                }
                (None, Some(names)) => items.extend(names.iter().map(|_| plain_item())),
                (None, None) => {
                    return refuse(
                        &errors::NOT_UNDERSTOOD,
                        format!("* over {}, whose columns are not known", source.name),
                    );
                }
            }
        }
        Ok(items)
    }

    fn wildcard_sources<'s>(
        &mut self,
        item: &SelectItem,
        scope: &'s Scope,
    ) -> Planned<Vec<&'s Source>> {
        match item {
            SelectItem::Wildcard(options) => {
                check_wildcard(options)?;
                Ok(scope.sources.iter().collect())
            }
            SelectItem::QualifiedWildcard(kind, options) => {
                check_wildcard(options)?;
                let SelectItemQualifiedWildcardKind::ObjectName(name) = kind else {
                    return refuse(&errors::NOT_UNDERSTOOD, "a qualified *");
                };
                let parts = self.judge_name(name)?;
                let table = parts.last().map(String::as_str).unwrap_or_default();
                let found: Vec<_> = scope
                    .sources
                    .iter()
                    .filter(|s| s.name.eq_ignore_ascii_case(table))
                    .collect();
                match found.len() {
                    1 => Ok(found),
                    _ => refuse(&errors::NOT_UNDERSTOOD, format!("{table}.*")),
                }
            }
            _ => refuse(&errors::INTERNAL, "not a wildcard"),
        }
    }

    #[allow(clippy::too_many_arguments)] // one call site; a struct would only rename them
    fn item(
        &mut self,
        item: &SelectItem,
        tokens: &Range<usize>,
        scope: &Scope,
        mode: Mode,
        distinct: bool,
        grouped: &[ColumnUse],
        merges: bool,
        given: &mut Given,
    ) -> Planned<()> {
        let (expr, alias) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => {
                let sources = self.wildcard_sources(item, scope)?;
                if merges {
                    return refuse(&errors::NOT_UNDERSTOOD, "* over a join with USING");
                }
                let items = self.wildcard(&sources)?;
                match mode {
                    Mode::Exists => {}
                    Mode::Top if grouped.is_empty() => {}
                    _ => {
                        if let Some((index, _)) = items.iter().find_map(|i| i.open) {
                            let about = self.columns[index].path();
                            return refuse(&errors::EXPORT, about);
                        }
                    }
                }
                if let Some(names) = &mut given.names {
                    for source in &sources {
                        match (&source.table, &source.exports) {
                            (Some(t), _) => names.extend(
                                t.columns
                                    .iter()
                                    .filter(|c| !c.invisible)
                                    .map(|c| c.name.clone()),
                            ),
                            (None, Some(exports)) => names.extend(exports.iter().cloned()),
                            (None, None) => {}
                        }
                    }
                }
                given.items.extend(items);
                return Ok(());
            }
            SelectItem::ExprWithAliases { .. } => {
                return refuse(&errors::NOT_UNDERSTOOD, "an item with several aliases");
            }
        };
        let bytes = self.bytes_of(tokens);
        let typed = match expr {
            Expr::Identifier(ident) => ident.value.clone(),
            Expr::CompoundIdentifier(parts) => {
                parts.last().map(|p| p.value.clone()).unwrap_or_default()
            }
            _ => String::from_utf8_lossy(&self.sql()[bytes.clone()]).into_owned(),
        };
        let shown = alias.map_or(typed, |a| a.value.clone());
        if let Some(names) = &mut given.names {
            names.push(shown.clone());
        }

        let name = alias.is_none().then(|| shown.clone());
        if let Some((range, column)) = self.column_of(expr, scope)? {
            match mode {
                Mode::Nested => return refuse(&errors::EXPORT, column.path()),
                Mode::Exists => {
                    let enc = column.sealed().to_string();
                    self.replace(range, &enc);
                    return Ok(());
                }
                Mode::Tokens(wanted) => {
                    if !same_tokens(wanted, &column) {
                        let about = format!("{} and {}", wanted.path(), column.path());
                        return refuse(&errors::OTHER_KEY, about);
                    }
                    let token = equality(&column)?.0.to_string();
                    self.replace(range, &token);
                    return Ok(());
                }
                Mode::Top => {}
            }
            let index = self.column_index(&column);
            let in_group = grouped
                .iter()
                .any(|g| Arc::ptr_eq(&g.table, &column.table) && g.index == column.index);
            let order = opening_order(&column).map(str::to_string);
            let from = match order {
                Some(order) if distinct || in_group => {
                    self.replace(range, &order);
                    OpenFrom::OrderKey
                }
                _ if in_group => {
                    // any cell of the group will do: they are equal to SQL
                    let enc = quoted(column.sealed());
                    let whole = bytes_of_expr(self, expr, &range);
                    let qualifier = self.original(whole.start..range.start);
                    let mut text = vec![Piece::Sql(b"MIN(".to_vec())];
                    text.extend(qualifier);
                    text.push(Piece::Sql(format!("{enc})").into_bytes()));
                    self.edit(whole, text);
                    OpenFrom::Sealed
                }
                _ => {
                    let enc = column.sealed().to_string();
                    self.replace(range, &enc);
                    OpenFrom::Sealed
                }
            };
            given.items.push(ResultItem {
                open: Some((index, from)),
                name,
                computed: false,
            });
            return Ok(());
        }
        if let Mode::Tokens(wanted) = mode {
            return refuse(&errors::EXPRESSION, wanted.path());
        }
        if let Expr::Function(function) = expr
            && let Some((range, column)) = self.extremum(function, scope)?
        {
            if !matches!(mode, Mode::Top) {
                return refuse(&errors::EXPORT, column.path());
            }
            let order = opening_order(&column)
                .ok_or_else(|| Refusal::new(&errors::NO_RANGE, column.path()))?
                .to_string();
            self.replace(range, &order);
            let index = self.column_index(&column);
            let open = Some((index, OpenFrom::OrderKey));
            given.items.push(ResultItem {
                open,
                name,
                computed: true,
            });
            return Ok(());
        }
        self.scan(expr, scope)?;
        let name = if self.edited(&bytes) { name } else { None };
        given.items.push(ResultItem {
            open: None,
            name,
            computed: false,
        });
        Ok(())
    }

    /// Tier 2: asks for the cells, leaves aggregates, distinction, order and limit to the proxy.
    fn finish(
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

    /// The token ranges of the keys of `ORDER BY`.
    fn order_keys(&self, clauses: &Clauses, count: usize) -> Planned<Vec<Range<usize>>> {
        let Some(order) = clauses.order else {
            return Ok(Vec::new());
        };
        let stop = [clauses.limit, clauses.lock, Some(clauses.end)]
            .into_iter()
            .flatten()
            .filter(|&i| i > order)
            .min()
            .unwrap_or(clauses.end);
        let keys = self.split_commas(order + 2..stop);
        if keys.len() == count {
            Ok(keys)
        } else {
            refuse(&errors::NOT_UNDERSTOOD, "ORDER BY")
        }
    }

    /// Cuts a range of tokens at commas outside of parentheses.
    pub(crate) fn split_commas(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let (mut depth, mut from) = (0usize, range.start);
        for at in range.clone() {
            let token = &self.tokens[at];
            if token.is(b'(') {
                depth += 1;
            } else if token.is(b')') {
                depth = depth.saturating_sub(1);
            } else if token.is(b',') && depth == 0 {
                parts.push(from..at);
                from = at + 1;
            }
        }
        parts.push(from..range.end);
        parts
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

/// Which columns of the result are grouped protected ones, and whose.
fn grouping(
    projection: &[SelectItem],
    items: &[ResultItem],
    columns: &[ColumnUse],
    scope: &Scope,
    outer: bool,
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
            s.table.as_ref().is_some_and(same)
                && qualifier.is_none_or(|q| s.name.eq_ignore_ascii_case(q))
        });
        found.columns.push(GroupedColumn {
            item,
            source: source.map_or(column.table.name.clone(), |s| s.name.clone()),
            nullable: column.column().nullable || outer,
        });
    }
    found
}

fn has_outer_join(item: &TableWithJoins) -> bool {
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

fn plain_item() -> ResultItem {
    ResultItem {
        open: None,
        name: None,
        computed: false,
    }
}

/// From the first part of a qualified name to its last.
fn bytes_of_expr(planner: &Planner, expr: &Expr, last: &Range<usize>) -> Range<usize> {
    match expr {
        Expr::Nested(inner) => bytes_of_expr(planner, inner, last),
        Expr::CompoundIdentifier(parts) => {
            let start = parts.first().map_or(last.start, |p| planner.offset(p.span));
            start..last.end
        }
        _ => last.clone(),
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

fn check_wildcard(options: &sqlparser::ast::WildcardAdditionalOptions) -> Planned<()> {
    if options.opt_ilike.is_some()
        || options.opt_exclude.is_some()
        || options.opt_except.is_some()
        || options.opt_replace.is_some()
        || options.opt_rename.is_some()
        || options.opt_alias.is_some()
    {
        return refuse(&errors::NOT_UNDERSTOOD, "an option of *");
    }
    Ok(())
}
