//! Selects of rows that the proxy finishes: a condition is looked at again, rows are sorted by
//! opened values, equal ones dropped, the limit applied.
//!
//! The server sorts where it can. If the last keys are its own, it sorts by them and the proxy's
//! stable sort keeps that order among equals; a key of the server's before one of the proxy's is
//! fetched as a rank.

use sqlparser::ast::{Expr, SelectItem};

use super::Given;
use super::finish::{Finishing, KeyMeaning, aggregate_of, descending, expression_of, same_name};
use super::items::spelled_out;
use crate::candidates::goes_unnoticed;
use crate::comparable::exact_order;
use crate::errors;
use crate::fetch::{Fetched, aliased};
use crate::finishing::{Finish, Output, SortBy, SortKey};
use crate::plan::{OpenFrom, Piece, ResultItem, Text};
use crate::planner::{Planned, Planner, refuse};

/// A key of ORDER BY and who sorts by it.
enum Key<'s> {
    Proxy(SortBy),
    Server(KeyMeaning<'s>),
}

impl Planner<'_> {
    pub(super) fn finish_rows(&mut self, f: &Finishing) -> Planned<Given> {
        if f.order.iter().any(|key| aggregate_of(&key.expr).is_some()) {
            return refuse(
                &errors::GROUPING,
                "ORDER BY an aggregate of rows without groups",
            );
        }
        let mut fetched = Fetched::default();
        let mut output = Vec::new();
        // of each item of the select list: the fetched column that shows a protected one
        let mut sealed = vec![None; f.projection.len()];
        for (n, (item, place)) in f.projection.iter().zip(&f.clauses.items).enumerate() {
            let Some((expr, alias)) = expression_of(item) else {
                self.fetch_wildcard(f, item, place, &mut fetched, &mut output)?;
                continue;
            };
            let at = self.fetch_item(f, expr, alias, place, &mut fetched)?;
            if fetched.items[at].open.is_some() {
                sealed[n] = Some(at);
            }
            output.push(Output::Cell { fetch: at });
        }
        let filter = self.finish_filter(f, &mut fetched)?;
        let (sort, order) = self.sort_of_rows(f, &sealed, &mut fetched)?;
        let finish = Finish {
            text: Vec::new(),
            fetch: Vec::new(),
            filter,
            groups: None,
            output,
            distinct: f.distinct,
            sort,
            limit: None,
        };
        self.finished(f, fetched, &order, finish)
    }

    fn fetch_wildcard(
        &mut self,
        f: &Finishing,
        item: &SelectItem,
        place: &std::ops::Range<usize>,
        fetched: &mut Fetched,
        output: &mut Vec<Output>,
    ) -> Planned<()> {
        let sources = self.wildcard_sources(item, f.scope)?;
        for source in &sources {
            for found in self.wildcard(&[source], f.shape)? {
                let at = fetched.items.len();
                if let Some((index, _)) = found.open {
                    let column = self.columns[index].clone();
                    fetched.shows(&column, source.name.clone(), at);
                }
                output.push(Output::Cell { fetch: at });
                fetched.items.push(found);
            }
        }
        let text = match spelled_out(&sources) {
            Some(text) => vec![Piece::Sql(text.into_bytes())],
            None => {
                let bytes = self.bytes_of(place);
                self.original(bytes)
            }
        };
        fetched.texts.push(text);
        Ok(())
    }

    /// Fetches an item of the select list: a sealed cell, or what the server computes.
    pub(super) fn fetch_item(
        &mut self,
        f: &Finishing,
        expr: &Expr,
        alias: Option<&sqlparser::ast::Ident>,
        place: &std::ops::Range<usize>,
        fetched: &mut Fetched,
    ) -> Planned<usize> {
        let name = self.shown_name(expr, alias, place)?;
        if let Some((range, column)) = self.column_of(expr, f.scope)? {
            let open = Some((self.column_index(&column), OpenFrom::Sealed));
            let text = self.physical(expr, &range, column.sealed());
            let item = ResultItem {
                open,
                name: Some(name),
                described: f.shape.describes(column.clone()),
                ..ResultItem::plain()
            };
            let at = fetched.push(item, text);
            fetched.shows(&column, f.scope.source_of(expr, &column), at);
            return Ok(at);
        }
        self.server_expression(f, expr)?;
        let bytes = self.bytes_of(place);
        let changed = self.edited(&bytes);
        let name = (changed && alias.is_none()).then_some(name);
        if name.is_some() {
            self.pin_within(&bytes);
        }
        let text = self.render(bytes)?;
        let text = if name.is_some() { aliased(text) } else { text };
        let item = ResultItem {
            computed: name.is_some(),
            name,
            described: f.shape.of(expr, f.scope),
            ..ResultItem::plain()
        };
        Ok(fetched.push(item, text))
    }

    /// The keys of ORDER BY: those of the proxy, and the texts of those of the server.
    fn sort_of_rows(
        &mut self,
        f: &Finishing,
        sealed: &[Option<usize>],
        fetched: &mut Fetched,
    ) -> Planned<(Vec<SortKey>, Vec<Text>)> {
        let places = self.order_keys(f.clauses, f.order.len())?;
        if self.server_sorts(f)? {
            let mut order = Vec::new();
            for (key, place) in f.order.iter().zip(places) {
                descending(key)?;
                if !goes_unnoticed(&key.expr) {
                    return refuse(&errors::CANDIDATES, "sorted by what may warn, fail or act");
                }
                self.order_key(&key.expr, f.projection, f.scope)?;
                let bytes = self.bytes_of(&place);
                order.push(self.render(bytes)?);
            }
            return Ok((Vec::new(), order));
        }
        let mut keys = Vec::new();
        for (key, place) in f.order.iter().zip(&places) {
            let tokens = self.without_direction(place.clone());
            let meaning = self.key_meaning(f, &key.expr, tokens, true)?;
            let by = match meaning.item.and_then(|n| sealed[n]) {
                Some(at) => Some(at),
                None => match self.column_of(meaning.expr, f.scope)? {
                    None => None,
                    Some((range, column)) => {
                        let source = f.scope.source_of(meaning.expr, &column);
                        if f.distinct && fetched.find(&column, &source).is_none() {
                            return refuse(&errors::GROUPING, column.path());
                        }
                        Some(fetched.cell(self, meaning.expr, &range, &column, f.scope))
                    }
                },
            };
            keys.push((
                match by {
                    Some(at) => Key::Proxy(SortBy::Cell(at)),
                    None => Key::Server(meaning),
                },
                descending(key)?,
            ));
        }
        let ours = keys
            .iter()
            .rposition(|(key, _)| matches!(key, Key::Proxy(_)))
            .map_or(0, |last| last + 1);
        let mut sort = Vec::new();
        let mut order = Vec::new();
        for (n, ((key, descending), place)) in keys.into_iter().zip(places).enumerate() {
            let by = match key {
                Key::Proxy(by) => by,
                Key::Server(meaning) if n < ours => {
                    let listed = meaning.item.is_some()
                        || f.projection.iter().any(|item| {
                            expression_of(item).is_none_or(|(e, _)| same_name(e, meaning.expr))
                        });
                    if f.distinct && !listed {
                        return refuse(&errors::GROUPING, "DISTINCT sorted by another column");
                    }
                    let text = self.key_text(f, &meaning)?;
                    SortBy::Rank(fetched.rank(text))
                }
                Key::Server(meaning) => {
                    if meaning.item.is_none() {
                        self.server_expression(f, meaning.expr)?;
                    }
                    let bytes = self.bytes_of(&place);
                    order.push(self.render(bytes)?);
                    continue;
                }
            };
            sort.push(SortKey { by, descending });
        }
        Ok((sort, order))
    }

    /// Whether order keys answer the whole of ORDER BY.
    fn server_sorts(&mut self, f: &Finishing) -> Planned<bool> {
        let pinned = self.pinned.len();
        let mut all = true;
        for key in f.order {
            if let Some((_, column)) = self.key_column(&key.expr, f.projection, f.scope, true)? {
                all &= exact_order(&column).is_some();
            }
        }
        self.pinned.truncate(pinned);
        Ok(all && f.filter.is_some() && !f.distinct)
    }
}
