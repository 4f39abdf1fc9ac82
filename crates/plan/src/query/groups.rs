//! Groups and aggregates that the proxy computes.
//!
//! Rows are gathered by the values of protected keys, which are opened, and by what the server
//! says of plain ones: the bytes of a number or a date, the rank of anything else. Aggregates over
//! protected columns and COUNT are the proxy's; another aggregate over plain columns is fetched as
//! a window function over the group, as long as every row that the server sends counts.

use std::ops::Range;

use onionskin_value::{Family, Kind, Sum};
use sqlparser::ast::Expr;

use super::Given;
use super::finish::{
    Call, Finishing, KeyMeaning, aggregate_of, descending, expression_of, same_name,
};
use crate::comparable::{equality, goes_by_name};
use crate::errors::{self, NotUnderstood};
use crate::fetch::{Fetched, aliased};
use crate::finishing::{
    Aggregate, AggregateCall, Compared, Finish, Groups, Operand, Output, SortBy, SortKey, Test,
};
use crate::formula::{Comparisons, parenthesized};
use crate::plan::{Described, ResultItem, Source, Text};
use crate::planner::{Planned, Planner, TextBuilder, refuse};

/// What the fetched column of a key holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    /// Cells that open.
    Sealed,
    /// Plain values.
    Bytes,
    Rank,
}

/// A key of GROUP BY.
struct Key<'s> {
    meaning: KeyMeaning<'s>,
    /// The fetched column that rows are gathered by.
    fetch: usize,
    kind: KeyKind,
    /// The key as the server's expression.
    text: Text,
}

impl Planner<'_> {
    pub(super) fn finish_groups(&mut self, f: &Finishing) -> Planned<Given> {
        let mut fetched = Fetched::default();
        let mut groups = Groups::default();
        // the client's columns stand first
        let mut shown: Vec<Option<usize>> = Vec::new();
        for (item, place) in f.projection.iter().zip(&f.clauses.items) {
            let Some((expr, alias)) = expression_of(item) else {
                return refuse(&errors::GROUPING, "* with groups");
            };
            shown.push(match aggregate_of(expr) {
                Some(_) => None,
                None => Some(self.fetch_item(f, expr, alias, place, &mut fetched)?),
            });
        }
        let keys = self.keys_of_groups(f, &shown, &mut fetched)?;
        let mut output = Vec::new();
        let places = &f.clauses.items;
        for (n, ((item, place), shown)) in f.projection.iter().zip(places).zip(shown).enumerate() {
            let Some((expr, alias)) = expression_of(item) else {
                return refuse(&errors::INTERNAL, "an item");
            };
            if let Some(fetch) = shown {
                let place = self.item_tokens(f, n)?;
                if self.key_of(f, expr, &place, &keys)?.is_none() {
                    return refuse(
                        &errors::GROUPING,
                        "an item that is neither a key nor an aggregate",
                    );
                }
                output.push(Output::Cell { fetch });
                continue;
            }
            let name = self.shown_name(expr, alias, place)?;
            if alias.is_none() {
                let bytes = self.bytes_of(place);
                self.pin_within(&bytes);
            }
            output.push(match self.call(f, expr, &mut groups.calls, &mut fetched)? {
                Some(call) => Output::Aggregate { call, name },
                None => Output::Cell {
                    fetch: self.window(f, expr, name, &keys, &mut fetched)?,
                },
            });
        }
        let filter = self.finish_filter(f, &mut fetched)?;
        if let Some(condition) = f.having {
            let tokens = f.clauses.behind(f.clauses.having);
            let (_, test) =
                self.formula(condition, tokens, false, &mut |p, leaf, place, negated| {
                    let calls = &mut groups.calls;
                    p.having_leaf(f, leaf, place, negated, &keys, calls, &mut fetched)
                        .map(|test| (Text::new(), test))
                })?;
            groups.having = Some(test);
        }
        let sort = self.sort_of_groups(f, &keys, &mut groups.calls, &mut fetched)?;
        if !f.keys.is_empty() {
            groups.keys = Some(keys.iter().map(|key| key.fetch).collect());
        }
        if fetched.texts.is_empty() {
            // something has to come for each row that is counted
            fetched.plain(vec![crate::plan::Piece::Sql(b"1".to_vec())]);
        }
        let finish = Finish {
            text: Vec::new(),
            fetch: Vec::new(),
            filter,
            groups: Some(groups),
            output,
            distinct: false,
            sort,
            limit: None,
        };
        self.finished(f, fetched, &[], finish)
    }

    fn keys_of_groups<'s>(
        &mut self,
        f: &Finishing<'s>,
        shown: &[Option<usize>],
        fetched: &mut Fetched,
    ) -> Planned<Vec<Key<'s>>> {
        let places = self.group_keys(f.clauses, f.keys.len())?;
        let mut keys = Vec::new();
        for (key, place) in f.keys.iter().zip(places) {
            let meaning = self.key_meaning(f, key, place, false)?;
            if aggregate_of(meaning.expr).is_some() {
                return NotUnderstood::UsedAs("an aggregate", "a key").refuse();
            }
            if let Some((range, column)) = self.column_of(meaning.expr, f.scope)? {
                if column
                    .column()
                    .sql_type
                    .is_some_and(|ty| !ty.is_comparable())
                {
                    return refuse(&errors::NO_EQUALITY, column.path());
                }
                let fetch = fetched.cell(self, meaning.expr, &range, &column, f.scope);
                let text = match equality(&column) {
                    Ok((name, _)) => self.physical(meaning.expr, &range, name),
                    Err(_) => Text::new(),
                };
                keys.push(Key {
                    meaning,
                    fetch,
                    kind: KeyKind::Sealed,
                    text,
                });
                continue;
            }
            let text = self.key_text(f, &meaning)?;
            // the bytes of these tell them apart
            let plain = f.scope.plain_type(meaning.expr);
            let bytes = plain.is_some_and(|ty| {
                !ty.is_character()
                    && !ty.is_binary()
                    && !ty.is_json_value()
                    && !matches!(ty.kind, Kind::Float | Kind::Double)
            });
            let short = |kind| {
                matches!(
                    kind,
                    Kind::Char { .. }
                        | Kind::VarChar { .. }
                        | Kind::Binary { .. }
                        | Kind::VarBinary { .. }
                )
            };
            if plain.is_some_and(|ty| (ty.is_character() || ty.is_binary()) && !short(ty.kind)) {
                // the server ranks by max_sort_length bytes only
                return refuse(&errors::GROUPING, "a plain TEXT or BLOB column as a key");
            }
            let same = f.projection.iter().zip(shown).find_map(|(item, shown)| {
                let (expr, _) = expression_of(item)?;
                shown.filter(|_| same_name(expr, meaning.expr))
            });
            let fetch = match (bytes, same) {
                (true, Some(fetch)) => fetch,
                (true, None) => fetched.plain(text.clone()),
                (false, _) => fetched.rank(text.clone()),
            };
            keys.push(Key {
                meaning,
                fetch,
                kind: if bytes { KeyKind::Bytes } else { KeyKind::Rank },
                text,
            });
        }
        Ok(keys)
    }

    /// The key that an expression is: the same column, or written in the same words.
    fn key_of<'k, 's>(
        &mut self,
        f: &Finishing,
        expr: &Expr,
        place: &Range<usize>,
        keys: &'k [Key<'s>],
    ) -> Planned<Option<&'k Key<'s>>> {
        let column = self.column_of(expr, f.scope)?;
        for key in keys {
            if std::ptr::eq(key.meaning.expr, expr) {
                return Ok(Some(key));
            }
            let same = match (&column, self.column_of(key.meaning.expr, f.scope)?) {
                (Some((_, a)), Some((_, b))) => {
                    std::sync::Arc::ptr_eq(&a.table, &b.table)
                        && a.index == b.index
                        && f.scope
                            .source_of(expr, a)
                            .eq_ignore_ascii_case(&f.scope.source_of(key.meaning.expr, &b))
                }
                (None, None) => {
                    same_name(expr, key.meaning.expr) || self.same_words(place, &key.meaning.place)
                }
                _ => false,
            };
            if same {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// Registers an aggregate that the proxy computes; `None` for one over plain columns that it
    /// does not.
    fn call(
        &mut self,
        f: &Finishing,
        expr: &Expr,
        calls: &mut Vec<AggregateCall>,
        fetched: &mut Fetched,
    ) -> Planned<Option<usize>> {
        let Some(Call {
            function,
            argument,
            distinct,
        }) = aggregate_of(expr)
        else {
            return refuse(&errors::INTERNAL, "an aggregate");
        };
        if let Expr::Function(function) = expr
            && let Some(ident) = function.name.0.last().and_then(|p| p.as_ident())
        {
            self.judge(ident)?;
        }
        let fetch = match argument {
            None => None,
            Some(argument) => match self.column_of(argument, f.scope)? {
                Some((range, column)) => {
                    let ty = column.column().sql_type;
                    // servers sum moments as numbers, each type by a rule of its own
                    let adds = matches!(function, Aggregate::Sum | Aggregate::Avg);
                    let refused = match function {
                        Aggregate::Count => distinct && ty.is_some_and(|ty| !ty.is_comparable()),
                        _ if adds && ty.is_some_and(|ty| Sum::new(ty).is_err()) => true,
                        _ => goes_by_name(&column) || ty.is_some_and(|ty| ty.is_json_value()),
                    };
                    if refused {
                        // by name or as a number, each aggregate by rules of its own
                        return refuse(&errors::GROUPING, column.path());
                    }
                    let real = column
                        .column()
                        .sql_type
                        .is_some_and(|ty| matches!(ty.kind, Kind::Float | Kind::Double));
                    if distinct && real && function != Aggregate::Count {
                        // its last digits depend on the order in which the server adds
                        return refuse(&errors::GROUPING, "SUM(DISTINCT …) of FLOAT or DOUBLE");
                    }
                    Some(fetched.cell(self, argument, &range, &column, f.scope))
                }
                None if function == Aggregate::Count && !distinct => {
                    self.server_expression(f, argument)?;
                    let place = self.argument_tokens(expr)?;
                    let range = self.bytes_of(&place);
                    let text = self.render(range)?;
                    Some(fetched.plain(text))
                }
                None => return Ok(None),
            },
        };
        let call = AggregateCall {
            function,
            fetch,
            distinct,
        };
        let known = calls.iter().position(|c| *c == call);
        Ok(Some(known.unwrap_or_else(|| {
            calls.push(call);
            calls.len() - 1
        })))
    }

    /// The tokens between the parentheses of a call.
    fn argument_tokens(&self, call: &Expr) -> Planned<Range<usize>> {
        let Expr::Function(function) = call else {
            return refuse(&errors::INTERNAL, "a call");
        };
        let Some(name) = function.name.0.last().and_then(|p| p.as_ident()) else {
            return NotUnderstood::NameOf("a function").refuse();
        };
        let open = self.token_at(self.offset(name.span))? + 1;
        Ok(open + 1..self.closing(open)?)
    }

    /// An aggregate over plain columns, computed by the server beside every row of the group.
    fn window(
        &mut self,
        f: &Finishing,
        expr: &Expr,
        name: String,
        keys: &[Key],
        fetched: &mut Fetched,
    ) -> Planned<usize> {
        let Some(Call {
            function,
            distinct,
            argument,
        }) = aggregate_of(expr)
        else {
            return refuse(&errors::INTERNAL, "an aggregate");
        };
        let extreme = matches!(function, Aggregate::Min | Aggregate::Max);
        // MySQL widens the types of MIN and MAX as window functions
        let widened = extreme && self.request.settings.family == Family::MySql;
        if widened || f.filter.is_some() || distinct || keys.iter().any(|key| key.text.is_empty()) {
            return refuse(
                &errors::GROUPING,
                "aggregates of protected and other columns",
            );
        }
        self.scan(expr, f.scope)?;
        let inside = self.argument_tokens(expr)?;
        let call = self.render(self.bytes_of(&(inside.start - 2..inside.end + 1)))?;
        let mut text = TextBuilder::default();
        if function == Aggregate::Avg && self.request.settings.family == Family::MySql {
            // of one row that it knows before it runs, MySQL makes 0 of AVG(NULL) as a window
            // function
            text.sql(b"IF(COUNT(");
            let argument = self.render(self.bytes_of(&inside))?;
            argument.into_iter().for_each(|piece| text.piece(piece));
            text.sql(b")");
            put_window(keys, &mut text);
            text.sql(b" = 0, NULL, ");
            call.into_iter().for_each(|piece| text.piece(piece));
            put_window(keys, &mut text);
            text.sql(b")");
        } else {
            call.into_iter().for_each(|piece| text.piece(piece));
            put_window(keys, &mut text);
        }
        let item = ResultItem {
            name: Some(name),
            computed: true,
            described: Described::Aggregate {
                function,
                column: argument.and_then(|a| f.scope.plain_column(a)),
            },
            ..ResultItem::plain()
        };
        Ok(fetched.push(item, aliased(text.finish())))
    }

    /// A leaf of HAVING: an aggregate beside constants, or a condition on keys, which the server
    /// decides row by row.
    #[allow(clippy::too_many_arguments)] // the state of one select
    fn having_leaf(
        &mut self,
        f: &Finishing,
        leaf: &Expr,
        place: Range<usize>,
        negated: bool,
        keys: &[Key],
        calls: &mut Vec<AggregateCall>,
        fetched: &mut Fetched,
    ) -> Planned<Test> {
        let mut turns = Vec::new();
        turns.extend(Comparisons::of(leaf));
        turns.extend(Comparisons::of(leaf).and_then(Comparisons::mirrored));
        for found in turns {
            let subject = match found.subject {
                name @ Expr::Identifier(_) => self.key_meaning(f, name, 0..0, true)?.expr,
                other => other,
            };
            if aggregate_of(subject).is_none() {
                continue;
            }
            let Some(call) = self.call(f, subject, calls, fetched)? else {
                return refuse(&errors::GROUPING, "HAVING over aggregates of other columns");
            };
            let found = if negated { found.negated() } else { found };
            let mut tests = Vec::new();
            for (comparison, other) in &found.with {
                let Some((_, source)) = self.constant(other) else {
                    return refuse(&errors::GROUPING, "HAVING over more than an aggregate");
                };
                tests.push(Test::Compare {
                    left: Operand::Aggregate(call),
                    comparison: *comparison,
                    right: Compared::Constant(source, None),
                });
            }
            return Ok(if found.any {
                Test::Any(tests)
            } else {
                Test::All(tests)
            });
        }
        let subject = match leaf {
            Expr::IsNull(e) | Expr::IsNotNull(e) => Some(e.as_ref()),
            _ => Comparisons::of(leaf).and_then(|found| {
                let others = found.with.iter().all(|(_, e)| self.constant(e).is_some());
                others.then_some(found.subject)
            }),
        };
        if let Some(subject) = subject
            && self.constant(subject).is_none()
            && self.key_of(f, subject, &(0..0), keys)?.is_some()
        {
            if let Expr::Identifier(name) = subject
                && f.scope.alias(&name.value).is_some()
            {
                return refuse(&errors::GROUPING, "HAVING over an alias");
            }
            self.scan(leaf, f.scope)?;
            let range = self.bytes_of(&place);
            let text = parenthesized(self.render(range)?, negated);
            return Ok(Test::Fetched(fetched.plain(text)));
        }
        refuse(
            &errors::GROUPING,
            "HAVING over more than aggregates and keys",
        )
    }

    fn sort_of_groups(
        &mut self,
        f: &Finishing,
        keys: &[Key],
        calls: &mut Vec<AggregateCall>,
        fetched: &mut Fetched,
    ) -> Planned<Vec<SortKey>> {
        let places = self.order_keys(f.clauses, f.order.len())?;
        let mut sort = Vec::new();
        for (key, place) in f.order.iter().zip(places) {
            let descending = descending(key)?;
            if let Some((_, Source::Null)) = self.constant(&key.expr) {
                continue;
            }
            let tokens = self.without_direction(place);
            let meaning = self.key_meaning(f, &key.expr, tokens, true)?;
            if aggregate_of(meaning.expr).is_some() {
                let Some(call) = self.call(f, meaning.expr, calls, fetched)? else {
                    return refuse(&errors::GROUPING, "ORDER BY an aggregate of other columns");
                };
                let by = SortBy::Aggregate(call);
                sort.push(SortKey { by, descending });
                continue;
            }
            if f.keys.is_empty() {
                // one row has no order
                if let Some((_, column)) = self.column_of(meaning.expr, f.scope)? {
                    return refuse(&errors::GROUPING, column.path());
                }
                self.scan_key(&key.expr, f.scope)?;
                continue;
            }
            let Some(found) = self.key_of(f, meaning.expr, &meaning.place, keys)? else {
                return refuse(&errors::GROUPING, "ORDER BY something that is no key");
            };
            let by = match found.kind {
                KeyKind::Sealed => SortBy::Cell(found.fetch),
                KeyKind::Rank => SortBy::Rank(found.fetch),
                KeyKind::Bytes => SortBy::Rank(fetched.rank(found.text.clone())),
            };
            sort.push(SortKey { by, descending });
        }
        Ok(sort)
    }
}

/// Appends ` OVER (PARTITION BY …)`: over the rows of the group.
fn put_window(keys: &[Key], text: &mut TextBuilder) {
    text.sql(b" OVER (");
    for (i, key) in keys.iter().enumerate() {
        text.sql(if i > 0 { b", " } else { b"PARTITION BY " });
        key.text.iter().for_each(|piece| text.piece(piece.clone()));
    }
    text.sql(b")");
}
