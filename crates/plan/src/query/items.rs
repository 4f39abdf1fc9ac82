//! The select list at tier 1: what each item becomes on the server and how its cells open.

use onionskin_schema::same_name;
use std::ops::Range;
use std::sync::Arc;

use sqlparser::ast::{Expr, SelectItem, SelectItemQualifiedWildcardKind};

use super::Given;
use super::extremum::Extremes;
use crate::comparable::{equality, no_order, opening_order, same_tokens};
use crate::errors::{self, NotUnderstood};
use crate::places::bytes_of_expr;
use crate::plan::{ColumnUse, Described, OpenFrom, Piece, ResultItem};
use crate::planner::{Planned, Planner, quoted, refuse};
use crate::query::Mode;
use crate::scope::{Scope, Source};

/// What becomes of rows on their way into the result, as far as column definitions show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// They are the client's as they are.
    Rows,
    /// A temporary table that plaintext would not have needed, or that shows the same columns in
    /// another way.
    Gathered {
        /// Rows of a source may be missing: there is an outer join.
        outer: bool,
        /// Plaintext would have been sorted there, too, so that the server's definitions of plain
        /// columns are right.
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

/// What the items of one select list have in common.
pub(super) struct SelectList<'s> {
    pub scope: &'s Scope<'s>,
    pub mode: Mode<'s>,
    pub distinct: bool,
    /// The columns that rows are grouped by.
    pub grouped: &'s [ColumnUse],
    /// A join merges columns (`USING`).
    pub merges: bool,
    pub shape: Shape,
    pub extremes: Extremes,
}

/// An item that is an expression.
struct Item<'i> {
    expr: &'i Expr,
    /// Its place in the text, alias included.
    bytes: Range<usize>,
    /// What its column in the result is called.
    shown: String,
    has_alias: bool,
}

impl Item<'_> {
    /// The name that its column gets from the proxy. An alias is the server's to give.
    fn name(&self) -> Option<String> {
        (!self.has_alias).then(|| self.shown.clone())
    }
}

impl Planner<'_> {
    /// Plans one item: its text on the server, and how the client's columns come of it.
    pub(super) fn item(
        &mut self,
        item: &SelectItem,
        tokens: &Range<usize>,
        list: &SelectList,
        given: &mut Given,
    ) -> Planned<()> {
        let (expr, alias) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => {
                return self.wildcard_item(item, tokens, list, given);
            }
            SelectItem::ExprWithAliases { .. } => {
                return NotUnderstood::SeveralAliases.refuse();
            }
        };
        let item = Item {
            expr,
            bytes: self.bytes_of(tokens),
            shown: self.shown_name(expr, alias, tokens)?,
            has_alias: alias.is_some(),
        };
        if let Some(names) = &mut given.names {
            names.push(item.shown.clone());
        }
        if let Some((range, column)) = self.column_of(expr, list.scope)? {
            given
                .items
                .extend(self.column_item(&item, range, column, list)?);
            return Ok(());
        }
        if let Mode::Tokens(wanted) = list.mode {
            return refuse(&errors::EXPRESSION, wanted.path());
        }
        let shown = match self.extremum_item(&item, list)? {
            Some(extremum) => extremum,
            None => self.expression_item(&item, list)?,
        };
        given.items.push(shown);
        Ok(())
    }

    /// `*` and `t.*`: all columns of tables.
    fn wildcard_item(
        &mut self,
        item: &SelectItem,
        tokens: &Range<usize>,
        list: &SelectList,
        given: &mut Given,
    ) -> Planned<()> {
        if let Mode::Tokens(wanted) = list.mode {
            // what it stands for would be compared with tokens
            return refuse(&errors::EXPRESSION, wanted.path());
        }
        let sources = self.wildcard_sources(item, list.scope)?;
        if list.merges {
            return NotUnderstood::StarOverUsing.refuse();
        }
        let items = self.wildcard(&sources, list.shape)?;
        if let Some(text) = spelled_out(&sources) {
            let bytes = self.bytes_of(tokens);
            self.edit_sql(bytes, text);
        }
        let may_open = match list.mode {
            Mode::Exists => true,
            Mode::Top => list.grouped.is_empty(),
            Mode::Nested | Mode::Tokens(_) => false,
        };
        if !may_open && let Some((index, _)) = items.iter().find_map(|i| i.open) {
            return refuse(&errors::EXPORT, self.columns[index].path());
        }
        if let Some(names) = &mut given.names {
            sources
                .iter()
                .for_each(|source| names.extend(shown_names(source)));
        }
        given.items.extend(items);
        Ok(())
    }

    /// A protected column by itself. `None` where no client reads it.
    fn column_item(
        &mut self,
        item: &Item,
        range: Range<usize>,
        column: ColumnUse,
        list: &SelectList,
    ) -> Planned<Option<ResultItem>> {
        match list.mode {
            Mode::Nested => refuse(&errors::EXPORT, column.path()),
            Mode::Exists => {
                self.replace(range, column.sealed());
                Ok(None)
            }
            Mode::Tokens(wanted) => {
                if !same_tokens(wanted, &column) {
                    let about = format!("{} and {}", wanted.path(), column.path());
                    return refuse(&errors::OTHER_KEY, about);
                }
                self.replace(range, equality(&column)?.0);
                Ok(None)
            }
            Mode::Top => {
                let index = self.column_index(&column);
                let from = self.opened_from(item.expr, range, &column, list);
                // a view's column is called as the view calls it, whatever letters name it here
                let name = match column.table.view {
                    true => item.name().map(|_| column.column().name.clone()),
                    false => item.name(),
                };
                Ok(Some(ResultItem {
                    described: list.shape.describes(column),
                    ..ResultItem::opened(index, from, name)
                }))
            }
        }
    }

    /// Puts what a protected column opens from in its place: its sealed cell, or its order key
    /// where the server tells values apart by that.
    fn opened_from(
        &mut self,
        expr: &Expr,
        range: Range<usize>,
        column: &ColumnUse,
        list: &SelectList,
    ) -> OpenFrom {
        let in_group = list
            .grouped
            .iter()
            .any(|g| Arc::ptr_eq(&g.table, &column.table) && g.index == column.index);
        match opening_order(column) {
            Some(order) if list.distinct || in_group => {
                self.replace(range, order);
                return OpenFrom::OrderKey;
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
            }
            _ => self.replace(range, column.sealed()),
        }
        OpenFrom::Sealed
    }

    /// `MIN(k)` or `MAX(k)` of a protected column, if the item is that.
    fn extremum_item(&mut self, item: &Item, list: &SelectList) -> Planned<Option<ResultItem>> {
        let Expr::Function(function) = item.expr else {
            return Ok(None);
        };
        let Some((range, column)) = self.extremum(function, list.scope)? else {
            return Ok(None);
        };
        if !matches!(list.mode, Mode::Top) {
            return refuse(&errors::EXPORT, column.path());
        }
        if opening_order(&column).is_none() {
            return Err(no_order(&column));
        }
        let Some((argument, _)) = Self::single_argument(function) else {
            return NotUnderstood::Column(column.path()).refuse();
        };
        let greatest = Self::function_name(function) == "max";
        let index = self.column_index(&column);
        let (from, renamed) = self.ask_extremum(
            &list.extremes,
            item.bytes.clone(),
            argument,
            range,
            &column,
            greatest,
        );
        let name = item.name().or(renamed.then(|| item.shown.clone()));
        Ok(Some(ResultItem {
            open: Some((index, from)),
            name,
            computed: true,
            described: match list.shape {
                Shape::Gathered { sorted: true, .. } => list.shape.describes(column),
                _ => Described::AsSent,
            },
        }))
    }

    /// An expression that the server computes. Where its text changes, the proxy gives the name.
    fn expression_item(&mut self, item: &Item, list: &SelectList) -> Planned<ResultItem> {
        self.scan(item.expr, list.scope)?;
        let name = item.name().filter(|_| self.edited(&item.bytes));
        if name.is_some() {
            self.pin_within(&item.bytes);
        }
        Ok(ResultItem {
            computed: name.is_some(),
            name,
            described: list.shape.of(item.expr, list.scope),
            ..ResultItem::plain()
        })
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
            return NotUnderstood::Clause("RETURNING").refuse();
        }
        let returned = SelectList {
            scope,
            mode: Mode::Top,
            distinct: false,
            grouped: &[],
            merges: false,
            shape: Shape::Rows,
            extremes: Extremes::Groups,
        };
        let mut given = Given {
            names: Some(Vec::new()),
            ..Given::default()
        };
        for (item, tokens) in list.iter().zip(&parts) {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.judge(alias)?;
            }
            self.item(item, tokens, &returned, &mut given)?;
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
                    return NotUnderstood::StarOverUnknown(source.name.clone()).refuse();
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
                    return NotUnderstood::QualifiedStar.refuse();
                };
                let parts = self.judge_name(name)?;
                let table = parts.last().map(String::as_str).unwrap_or_default();
                let found: Vec<_> = scope
                    .sources
                    .iter()
                    .filter(|s| same_name(&s.name, table))
                    .collect();
                match found.len() {
                    1 => Ok(found),
                    _ => NotUnderstood::StarOf(table.to_owned()).refuse(),
                }
            }
            _ => refuse(&errors::INTERNAL, "not a wildcard"),
        }
    }
}

/// The names of the columns that `*` shows of a source.
fn shown_names(source: &Source) -> Vec<String> {
    match (&source.table, &source.exports) {
        (Some(table), _) => {
            let shown = table.columns.iter().filter(|c| !c.invisible);
            shown.map(|c| c.name.clone()).collect()
        }
        (None, Some(exports)) => exports.clone(),
        (None, None) => Vec::new(),
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
        return NotUnderstood::PartOf("an option", "*").refuse();
    }
    Ok(())
}
