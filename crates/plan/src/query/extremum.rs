//! `MIN(k)` and `MAX(k)` in a select list: the value comes from a sealed cell where that costs
//! little.
//!
//! An order key opens, but the server can make another valid one of it. So the server is asked for
//! the key together with a sealed cell that stands beside it, and the proxy compares the two
//! ([`OpenFrom::Keyed`]). How, depends on what an index can do:
//!
//! | select | asked for | price, measured on 100,000 rows |
//! |---|---|---|
//! | one item, one whole table | `(SELECT CONCAT(key, cell) FROM t ORDER BY key LIMIT 1)` | 0.1 ms by an index, else × 1.4 to 1.5 |
//! | without groups, no index begins with the column | `MIN(CONCAT(key, cell))` | × 1.0 to 1.6 |
//! | all others: groups, and what an index may answer | the key alone | would be up to × 400 |
//!
//! The last line is the one place, with DISTINCT and the columns of GROUP BY, where a value
//! comes from a token; `docs/threat-model.md` says so.

use std::ops::Range;

use onionskin_schema::KeyRole;
use sqlparser::ast::{Expr, TableFactor, TableWithJoins};

use super::clauses::Clauses;
use crate::places::bytes_of_expr;
use crate::plan::{ColumnUse, OpenFrom, Piece};
use crate::planner::{Planner, quoted};

/// What a select lets its extremes be asked for by.
#[derive(Clone)]
pub(super) enum Extremes {
    /// One item over one whole table, whose text ends here.
    Table(usize),
    /// Over all rows that the conditions leave.
    Rows,
    /// Of each group.
    Groups,
}

impl Extremes {
    /// Of a select with these clauses.
    pub fn of(
        planner: &Planner<'_>,
        clauses: &Clauses,
        from: &[TableWithJoins],
        grouped: bool,
        start: usize,
    ) -> Self {
        if grouped {
            return Self::Groups;
        }
        let later = [
            clauses.filter,
            clauses.group,
            clauses.having,
            clauses.order,
            clauses.limit,
            clauses.lock,
        ];
        // a modifier or a hint stands before the list
        let alone = clauses.items.len() == 1
            && clauses.list == start + 1
            && later.iter().all(Option::is_none);
        let whole_table = match from {
            [item] => {
                item.joins.is_empty()
                    && matches!(&item.relation, TableFactor::Table { index_hints, .. }
                        if index_hints.is_empty())
            }
            _ => false,
        };
        let last = clauses
            .end
            .checked_sub(1)
            .and_then(|n| planner.tokens.get(n));
        match last {
            Some(last) if alone && whole_table => Self::Table(last.end),
            _ => Self::Rows,
        }
    }
}

impl Planner<'_> {
    /// Edits the item `MIN(argument)` or `MAX(argument)`, whose text is `whole` and whose column is
    /// named at `name`. Tells what the cell is, and whether the item's alias is gone.
    pub(super) fn ask_extremum(
        &mut self,
        extremes: &Extremes,
        whole: Range<usize>,
        argument: &Expr,
        name: Range<usize>,
        column: &ColumnUse,
        greatest: bool,
    ) -> (OpenFrom, bool) {
        let order = column.column().ord_name().unwrap_or_default();
        let argument = bytes_of_expr(self, argument, &name);
        let pair = |planner: &Self| {
            let qualifier = planner.original(argument.start..name.start);
            let mut text = vec![Piece::Sql(b"CONCAT(".to_vec())];
            text.extend(qualifier.iter().cloned());
            text.push(Piece::Sql(format!("{}, ", quoted(order)).into_bytes()));
            text.extend(qualifier);
            text.push(Piece::Sql(
                format!("{})", quoted(column.sealed())).into_bytes(),
            ));
            text
        };
        let by_index = column.column().key != KeyRole::None || column.table.view;
        match extremes {
            Extremes::Table(end) => {
                let mut text = vec![Piece::Sql(b"(SELECT ".to_vec())];
                text.extend(pair(self));
                self.edit(whole, text);
                let order = quoted(order);
                let present = match column.column().nullable && !greatest {
                    true => format!(" WHERE {order} IS NOT NULL"),
                    false => String::new(),
                };
                let direction = if greatest { " DESC" } else { "" };
                let rest = format!("{present} ORDER BY {order}{direction} LIMIT 1)");
                self.edit_sql(*end..*end, rest);
                (OpenFrom::Keyed, true)
            }
            Extremes::Rows if !by_index => {
                let text = pair(self);
                self.edit(argument, text);
                (OpenFrom::Keyed, false)
            }
            _ => {
                let order = order.to_string();
                self.replace(name, &order);
                (OpenFrom::OrderKey, false)
            }
        }
    }
}
