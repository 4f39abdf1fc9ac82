//! What of a statement is made from protected columns, so that it must not come to lie in a plain
//! one.
//!
//! Rows that a statement computes are open on the scratch engine. Where they are stored, a
//! protected column seals them; a plain column would show the server, its logs and its backups what
//! another column hides. That is refused: who wants it selects the value and stores it in a
//! statement of its own.
//!
//! The question is decided by names, and can only err by taking too much for protected: a name
//! counts if any table that the statement reads has a protected column of that name, or if it is
//! the alias of an expression with such a name. A column that is qualified with a table of the
//! statement is looked up there. What a condition tells about a value (which rows there are, and
//! how many) counts for nothing, as on the other tiers.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use onionskin_schema::{Table, folded};
use sqlparser::ast::{
    Expr, Function, Ident, JoinConstraint, ObjectName, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableFactor, TableWithJoins, WindowType,
};

use crate::visit::{Visit, Visitor, visit};

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
    /// A window that has a name is made from them.
    windows: bool,
    /// The tables of the statement by the names that qualify columns; `None` where there are
    /// several.
    tables: HashMap<String, Option<Arc<Table>>>,
}

impl Handed {
    /// Of a statement that refers to these tables, each with the name that qualifies its columns.
    pub fn of(statement: &impl Visit, references: &[(String, Arc<Table>)]) -> Self {
        let mut handed = Handed {
            names: HashSet::new(),
            all: false,
            windows: false,
            tables: HashMap::new(),
        };
        for (name, table) in references {
            let protected = table.protected_columns();
            handed.names.extend(protected.map(|(c, _)| folded(&c.name)));
            let known = handed.tables.entry(folded(name));
            known
                .and_modify(|known| {
                    if !known.as_ref().is_some_and(|t| Arc::ptr_eq(t, table)) {
                        *known = None;
                    }
                })
                .or_insert_with(|| Some(Arc::clone(table)));
        }
        let mut derived = Derived::default();
        let _ = visit(statement, &mut derived);
        let Derived { queries, others } = derived;
        for name in queries.iter().map(|(name, ..)| name).chain(&others) {
            // what a name of a table and of a derived one means depends on where it stands
            if handed.tables.contains_key(name) {
                handed.tables.insert(name.clone(), None);
            }
        }
        if handed.names.is_empty() {
            return handed;
        }
        loop {
            let before = (handed.names.len(), handed.all, handed.windows);
            let mut found = Aliases {
                handed: &handed,
                names: HashSet::new(),
                all: false,
                windows: false,
            };
            let _ = visit(statement, &mut found);
            let Aliases {
                mut names,
                mut all,
                windows,
                ..
            } = found;
            for (_, columns, body) in &queries {
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
            handed.windows |= windows;
            if (handed.names.len(), handed.all, handed.windows) == before {
                return handed;
            }
        }
    }

    /// Whether an expression is made from protected columns.
    pub fn is_handed(&self, expr: &Expr) -> bool {
        !self.names.is_empty() && visit(expr, &mut Mentions(self)).is_break()
    }

    /// Whether each column of a query's result is. The last word counts for those behind it.
    pub fn columns(&self, query: &Query) -> Vec<bool> {
        let outputs = self.outputs(&query.body);
        match outputs.iter().any(|o| o.many) {
            true => vec![outputs.iter().any(|o| o.handed)],
            false => outputs.iter().map(|o| o.handed).collect(),
        }
    }

    /// The same, and whether the query has so many columns. If not, the only word is about all of
    /// them.
    pub fn counted(&self, query: &Query) -> (Vec<bool>, bool) {
        let counted = !self.outputs(&query.body).iter().any(|o| o.many);
        (self.columns(query), counted)
    }

    fn has(&self, name: &str) -> bool {
        self.all || self.names.contains(&folded(name))
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
                    Expr::Identifier(name) => Some(folded(&name.value)),
                    Expr::CompoundIdentifier(parts) => parts.last().map(|p| folded(&p.value)),
                    _ => None,
                };
                vec![Output {
                    name,
                    handed: self.is_handed(expr),
                    many: false,
                }]
            }
            SelectItem::ExprWithAlias { expr, alias } => vec![Output {
                name: (!is_string(alias)).then(|| folded(&alias.value)),
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
            last.map_or(String::new(), |i| folded(&i.value))
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
                (Some(alias), _) => folded(&alias.name.value),
                (None, Some(name)) => folded(&name.value),
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
                name: Some(folded(&c.name)),
                handed: c.protection.is_some(),
                many: false,
            }));
        }
        columns
    }
}

/// Whether an alias is written as a string: the parser does not see what it says.
fn is_string(alias: &Ident) -> bool {
    matches!(alias.quote_style, Some('\'' | '"'))
}

/// Whether a join shows columns of both sides as one.
fn merges(item: &TableWithJoins) -> bool {
    item.joins.iter().any(|join| {
        let constraint = crate::scope::join_constraint(&join.join_operator);
        !matches!(
            constraint,
            Some(JoinConstraint::On(_) | JoinConstraint::None)
        )
    })
}

/// What has a name in FROM, and is no table.
#[derive(Default)]
struct Derived {
    /// Derived tables and parts of WITH.
    queries: Vec<(String, Vec<String>, SetExpr)>,
    /// The names of anything else.
    others: Vec<String>,
}

impl Visitor for Derived {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for part in query.with.iter().flat_map(|w| &w.cte_tables) {
            let columns = part.alias.columns.iter();
            self.queries.push((
                folded(&part.alias.name.value),
                columns.map(|c| folded(&c.name.value)).collect(),
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
            self.queries.push((
                alias
                    .as_ref()
                    .map_or(String::new(), |a| folded(&a.name.value)),
                columns.map(|c| folded(&c.name.value)).collect(),
                (*subquery.body).clone(),
            ));
        }
        if let TableFactor::JsonTable {
            alias: Some(alias), ..
        } = factor
        {
            self.others.push(folded(&alias.name.value));
        }
        ControlFlow::Continue(())
    }
}

/// Aliases of what is made from protected columns.
struct Aliases<'h> {
    handed: &'h Handed,
    names: HashSet<String>,
    all: bool,
    windows: bool,
}

impl Visitor for Aliases<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for window in &select.named_window {
            self.windows |= visit(window, &mut Mentions(self.handed)).is_break();
        }
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { expr, alias } = item
                && self.handed.is_handed(expr)
            {
                match is_string(alias) {
                    true => self.all = true,
                    false => {
                        self.names.insert(folded(&alias.value));
                    }
                }
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

/// Whether a function is computed over a window that is defined somewhere else.
fn names_window(function: &Function) -> bool {
    match &function.over {
        None => false,
        Some(WindowType::NamedWindow(_)) => true,
        Some(WindowType::WindowSpec(spec)) => spec.window_name.is_some(),
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
            // a variable; in quotes it is a column
            Expr::Identifier(name) if name.quote_style.is_none() && name.value.starts_with('@') => {
                false
            }
            Expr::Identifier(name) => self.0.has(&name.value),
            Expr::Function(function) => self.0.windows && names_window(function),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [.., table, column] => match self.0.tables.get(&folded(&table.value)) {
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
