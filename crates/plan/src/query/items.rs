//! The select list at tier 1: what each item becomes on the server and how its cells open.

use std::ops::Range;
use std::sync::Arc;

use sqlparser::ast::{Expr, SelectItem, SelectItemQualifiedWildcardKind};

use super::Given;
use super::extremum::Extremes;
use crate::errors;
use crate::places::bytes_of_expr;
use crate::plan::{ColumnUse, Described, OpenFrom, Piece, ResultItem};
use crate::planner::{Planned, Planner, quoted, refuse};
use crate::predicate::{equality, no_order, opening_order, same_tokens};
use crate::query::Mode;
use crate::scope::{Scope, Source};

/// What becomes of rows on their way into the result, as far as column definitions show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// They are the client's as they are.
    Rows,
    /// A temporary table that plaintext would not have needed, or that shows the same columns in another way.
    Gathered {
        /// Rows of a source may be missing: there is an outer join.
        outer: bool,
        /// Plaintext would have been sorted there, too, so that the server's definitions of plain columns are right.
        sorted: bool,
    },
}

impl Shape {
    /// How a column of a known table is described.
    pub fn describes(self, column: ColumnUse) -> Described {
        match self {
            Shape::Rows => Described::AsSent,
            Shape::Gathered { outer, sorted } => Described::Column {
                column,
                outer,
                sorted,
            },
        }
    }

    /// How an expression without protected columns is described.
    pub fn of(self, expr: &Expr, scope: &Scope) -> Described {
        if let Shape::Gathered { sorted: true, .. } = self {
            return Described::AsSent;
        }
        let column = scope.plain_column(expr);
        column.map_or(Described::AsSent, |column| self.describes(column))
    }
}

impl Planner<'_> {
    #[allow(clippy::too_many_arguments)] // one call site; a struct would only rename them
    pub(super) fn item(
        &mut self,
        item: &SelectItem,
        tokens: &Range<usize>,
        scope: &Scope,
        mode: Mode,
        distinct: bool,
        grouped: &[ColumnUse],
        merges: bool,
        shape: Shape,
        extremes: &Extremes,
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
                let items = self.wildcard(&sources, shape)?;
                if let Some(text) = spelled_out(&sources) {
                    let bytes = self.bytes_of(tokens);
                    self.edit_sql(bytes, text);
                }
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
        let shown = self.shown_name(expr, alias, tokens)?;
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
                described: shape.describes(column),
                ..ResultItem::opened(index, from, name)
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
            if opening_order(&column).is_none() {
                return Err(no_order(&column));
            }
            let Some((argument, _)) = Self::single_argument(function) else {
                return refuse(&errors::NOT_UNDERSTOOD, column.path());
            };
            let greatest = Self::function_name(function) == "max";
            let index = self.column_index(&column);
            let (from, renamed) =
                self.ask_extremum(extremes, bytes, argument, range, &column, greatest);
            let name = name.or(renamed.then_some(shown));
            let open = Some((index, from));
            given.items.push(ResultItem {
                open,
                name,
                computed: true,
                described: match shape {
                    Shape::Gathered { sorted: true, .. } => shape.describes(column),
                    _ => Described::AsSent,
                },
            });
            return Ok(());
        }
        self.scan(expr, scope)?;
        let name = name.filter(|_| self.edited(&bytes));
        if name.is_some() {
            self.pin_within(&bytes);
        }
        given.items.push(ResultItem {
            computed: name.is_some(),
            name,
            described: shape.of(expr, scope),
            ..ResultItem::plain()
        });
        Ok(())
    }

    /// The list behind RETURNING, among these tokens: the new or deleted rows' columns.
    pub(crate) fn returned(
        &mut self,
        list: &[SelectItem],
        tokens: Range<usize>,
        scope: &Scope,
    ) -> Planned<Vec<ResultItem>> {
        let parts = self.split_commas(tokens);
        if parts.len() != list.len() {
            return refuse(&errors::NOT_UNDERSTOOD, "RETURNING");
        }
        let mut given = Given {
            names: Some(Vec::new()),
            ..Given::default()
        };
        for (item, tokens) in list.iter().zip(&parts) {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.judge(alias)?;
            }
            let shape = Shape::Rows;
            self.item(
                item,
                tokens,
                scope,
                Mode::Top,
                false,
                &[],
                false,
                shape,
                &Extremes::Groups,
                &mut given,
            )?;
        }
        Ok(given.items)
    }

    /// The columns of `*` over these sources.
    pub(super) fn wildcard(
        &mut self,
        sources: &[&Source],
        shape: Shape,
    ) -> Planned<Vec<ResultItem>> {
        let mut items = Vec::new();
        for source in sources {
            match (&source.table, &source.exports) {
                (Some(table), _) => {
                    for (index, column) in table.columns.iter().enumerate() {
                        if column.invisible {
                            continue;
                        }
                        let used = ColumnUse {
                            table: Arc::clone(table),
                            index,
                        };
                        items.push(match &column.protection {
                            Some(_) => {
                                let name = Some(column.name.clone());
                                let index = self.column_index(&used);
                                ResultItem {
                                    described: shape.describes(used),
                                    ..ResultItem::opened(index, OpenFrom::Sealed, name)
                                }
                            }
                            None => ResultItem {
                                described: shape.describes(used),
                                ..ResultItem::plain()
                            },
                        });
                    }
                }
                (None, Some(names)) => items.extend(names.iter().map(|_| ResultItem::plain())),
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

    pub(super) fn wildcard_sources<'s>(
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
}

/// The columns of `*`, where a view is among the sources: its companions are not invisible.
pub(super) fn spelled_out(sources: &[&Source]) -> Option<String> {
    let is_view = |s: &&Source| s.table.as_ref().is_some_and(|t| t.view);
    if !sources.iter().any(is_view) {
        return None;
    }
    let mut columns = Vec::new();
    for source in sources {
        let of = quoted(&source.name);
        match (&source.table, &source.exports) {
            (Some(table), _) => columns.extend(
                table
                    .columns
                    .iter()
                    .filter(|c| !c.invisible)
                    .map(|c| format!("{of}.{}", quoted(c.enc_name().unwrap_or(&c.name)))),
            ),
            (None, Some(names)) => {
                columns.extend(names.iter().map(|name| format!("{of}.{}", quoted(name))));
            }
            (None, None) => {}
        }
    }
    Some(columns.join(", "))
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
