//! What of a statement is made from protected columns, so that it must not come to lie in a plain one.
//!
//! Rows that a statement computes are open on the scratch engine. Where they are stored, a protected column seals them; a plain
//! column would show the server, its logs and its backups what another column hides. That is refused: who wants it selects the value
//! and stores it in a statement of its own.
//!
//! The question is decided by names, and can only err by taking too much for protected: a name counts if any table that the statement
//! reads has a protected column of that name, or if it is the alias of an expression with such a name. A column that is qualified
//! with a table of the statement is looked up there. What a condition tells about a value (which rows there are, and how many) counts
//! for nothing, as on the other tiers.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use onionskin_schema::Table;
use sqlparser::ast::{
    Expr, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableFactor, TableWithJoins, Visit, Visitor,
};

/// A column of a query's result.
#[derive(Clone)]
struct Output {
    name: Option<String>,
    handed: bool,
    /// It stands for any number of columns.
    many: bool,
}

/// See the module.
pub(super) struct Handed {
    /// Names of protected columns and of what is made from them, in lower case.
    names: HashSet<String>,
    /// Something that is made from them has a name that is not known.
    all: bool,
    /// The tables of the statement by the names that qualify columns; `None` where there are several.
    tables: HashMap<String, Option<Arc<Table>>>,
}

impl Handed {
    /// Of a statement that refers to these tables, each with the name that qualifies its columns.
    pub fn of(statement: &impl Visit, references: &[(String, Arc<Table>)]) -> Self {
        let mut handed = Handed {
            names: HashSet::new(),
            all: false,
            tables: HashMap::new(),
        };
        for (name, table) in references {
            let protected = table.protected_columns();
            handed
                .names
                .extend(protected.map(|(c, _)| c.name.to_lowercase()));
            let known = handed.tables.entry(name.to_lowercase());
            known
                .and_modify(|known| {
                    if !known.as_ref().is_some_and(|t| Arc::ptr_eq(t, table)) {
                        *known = None;
                    }
                })
                .or_insert_with(|| Some(Arc::clone(table)));
        }
        let mut derived = Derived(Vec::new());
        let _ = statement.visit(&mut derived);
        for (name, ..) in &derived.0 {
            // what a name of a table and of a derived one means depends on where it stands
            if handed.tables.contains_key(name) {
                handed.tables.insert(name.clone(), None);
            }
        }
        if handed.names.is_empty() {
            return handed;
        }
        loop {
            let before = (handed.names.len(), handed.all);
            let mut found = Aliases {
                handed: &handed,
                names: HashSet::new(),
                all: false,
            };
            let _ = statement.visit(&mut found);
            let Aliases {
                mut names, mut all, ..
            } = found;
            for (_, columns, body) in &derived.0 {
                let outputs = handed.outputs(body);
                let positional = columns.len() == outputs.len() && !outputs.iter().any(|o| o.many);
                for (n, output) in outputs.iter().enumerate().filter(|(_, o)| o.handed) {
                    match (&output.name, output.many) {
                        _ if positional => {
                            names.insert(columns[n].clone());
                        }
                        _ if !columns.is_empty() => names.extend(columns.iter().cloned()),
                        (Some(name), false) => {
                            names.insert(name.clone());
                        }
                        // the names stay what they are, unless another part of a union names them
                        (_, true) if matches!(body, SetExpr::Select(_)) => {}
                        _ => all = true,
                    }
                }
            }
            handed.names.extend(names);
            handed.all |= all;
            if (handed.names.len(), handed.all) == before {
                return handed;
            }
        }
    }

    /// Whether an expression is made from protected columns.
    pub fn is_handed(&self, expr: &Expr) -> bool {
        !self.names.is_empty() && expr.visit(&mut Mentions(self)).is_break()
    }

    /// Whether each column of a query's result is. The last word counts for those behind it.
    pub fn columns(&self, query: &Query) -> Vec<bool> {
        let outputs = self.outputs(&query.body);
        match outputs.iter().any(|o| o.many) {
            true => vec![outputs.iter().any(|o| o.handed)],
            false => outputs.iter().map(|o| o.handed).collect(),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.all || self.names.contains(&name.to_lowercase())
    }

    fn outputs(&self, body: &SetExpr) -> Vec<Output> {
        let unclear = || {
            vec![Output {
                name: None,
                handed: !self.names.is_empty(),
                many: true,
            }]
        };
        match body {
            SetExpr::Select(select) => select
                .projection
                .iter()
                .flat_map(|item| self.item(item, select))
                .collect(),
            SetExpr::Query(query) => self.outputs(&query.body),
            SetExpr::SetOperation { left, right, .. } => {
                let (mut left, right) = (self.outputs(left), self.outputs(right));
                if left.len() != right.len() || left.iter().chain(&right).any(|o| o.many) {
                    return match left.iter().chain(&right).any(|o| o.handed) {
                        true => unclear(),
                        false => left,
                    };
                }
                for (left, right) in left.iter_mut().zip(right) {
                    left.handed |= right.handed;
                }
                left
            }
            SetExpr::Values(values) => {
                let rows = values.rows.iter().map(|row| &row.content);
                let width = rows.clone().map(Vec::len).max().unwrap_or_default();
                (0..width)
                    .map(|n| Output {
                        name: None,
                        handed: rows
                            .clone()
                            .any(|row| row.get(n).is_some_and(|e| self.is_handed(e))),
                        many: false,
                    })
                    .collect()
            }
            _ => unclear(),
        }
    }

    fn item(&self, item: &SelectItem, select: &Select) -> Vec<Output> {
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let name = match expr {
                    Expr::Identifier(name) => Some(name.value.to_lowercase()),
                    Expr::CompoundIdentifier(parts) => parts.last().map(|p| p.value.to_lowercase()),
                    _ => None,
                };
                vec![Output {
                    name,
                    handed: self.is_handed(expr),
                    many: false,
                }]
            }
            SelectItem::ExprWithAlias { expr, alias } => vec![Output {
                name: Some(alias.value.to_lowercase()),
                handed: self.is_handed(expr),
                many: false,
            }],
            SelectItem::Wildcard(_) => self.wildcard(select, None),
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                self.wildcard(select, Some(name))
            }
            _ => self.any_columns(),
        }
    }

    fn any_columns(&self) -> Vec<Output> {
        vec![Output {
            name: None,
            handed: !self.names.is_empty(),
            many: true,
        }]
    }

    /// `*`, or `t.*`: the columns of known tables, if nothing else stands there.
    fn wildcard(&self, select: &Select, of: Option<&ObjectName>) -> Vec<Output> {
        let of = of.map(|name| {
            let last = name.0.last().and_then(|p| p.as_ident());
            last.map_or(String::new(), |i| i.value.to_lowercase())
        });
        let mut factors = Vec::new();
        for item in &select.from {
            if merges(item) && of.is_none() {
                return self.any_columns();
            }
            factors.push(&item.relation);
            factors.extend(item.joins.iter().map(|j| &j.relation));
        }
        let mut columns = Vec::new();
        for factor in factors {
            let TableFactor::Table { name, alias, .. } = factor else {
                return self.any_columns();
            };
            let last = name.0.last().and_then(|p| p.as_ident());
            let name = match (alias, last) {
                (Some(alias), _) => alias.name.value.to_lowercase(),
                (None, Some(name)) => name.value.to_lowercase(),
                (None, None) => return self.any_columns(),
            };
            if of.as_ref().is_some_and(|of| *of != name) {
                continue;
            }
            let Some(Some(table)) = self.tables.get(&name) else {
                return self.any_columns();
            };
            let shown = table.columns.iter().filter(|c| !c.invisible);
            columns.extend(shown.map(|c| Output {
                name: Some(c.name.to_lowercase()),
                handed: c.protection.is_some(),
                many: false,
            }));
        }
        columns
    }
}

/// Whether a join shows columns of both sides as one.
fn merges(item: &TableWithJoins) -> bool {
    item.joins.iter().any(|join| {
        let constraint = match &join.join_operator {
            JoinOperator::Join(c)
            | JoinOperator::Inner(c)
            | JoinOperator::Left(c)
            | JoinOperator::LeftOuter(c)
            | JoinOperator::Right(c)
            | JoinOperator::RightOuter(c)
            | JoinOperator::CrossJoin(c)
            | JoinOperator::StraightJoin(c) => c,
            _ => return true,
        };
        !matches!(constraint, JoinConstraint::On(_) | JoinConstraint::None)
    })
}

/// Queries whose results have names: derived tables and parts of WITH.
struct Derived(Vec<(String, Vec<String>, SetExpr)>);

impl Visitor for Derived {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for part in query.with.iter().flat_map(|w| &w.cte_tables) {
            let columns = part.alias.columns.iter();
            self.0.push((
                part.alias.name.value.to_lowercase(),
                columns.map(|c| c.name.value.to_lowercase()).collect(),
                (*part.query.body).clone(),
            ));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Derived {
            subquery, alias, ..
        } = factor
        {
            let columns = alias.iter().flat_map(|a| &a.columns);
            self.0.push((
                alias
                    .as_ref()
                    .map_or(String::new(), |a| a.name.value.to_lowercase()),
                columns.map(|c| c.name.value.to_lowercase()).collect(),
                (*subquery.body).clone(),
            ));
        }
        ControlFlow::Continue(())
    }
}

/// Aliases of what is made from protected columns.
struct Aliases<'h> {
    handed: &'h Handed,
    names: HashSet<String>,
    all: bool,
}

impl Visitor for Aliases<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { expr, alias } = item
                && self.handed.is_handed(expr)
            {
                self.names.insert(alias.value.to_lowercase());
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::JsonTable { json_expr, .. } = factor {
            self.all |= self.handed.is_handed(json_expr);
        }
        ControlFlow::Continue(())
    }
}

/// Stops at a name that counts.
struct Mentions<'h>(&'h Handed);

impl Visitor for Mentions<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let star = |item: &SelectItem| {
            matches!(
                item,
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
            )
        };
        match select.projection.iter().any(star) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let counts = match expr {
            Expr::Identifier(name) => !name.value.starts_with('@') && self.0.has(&name.value),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [.., table, column] => match self.0.tables.get(&table.value.to_lowercase()) {
                    Some(Some(known)) => match known.column(&column.value) {
                        Some(column) => column.protection.is_some(),
                        None => self.0.has(&column.value),
                    },
                    _ => self.0.has(&column.value),
                },
                _ => true,
            },
            Expr::CompoundFieldAccess { .. } | Expr::QualifiedWildcard(..) => true,
            _ => false,
        };
        match counts {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
