//! Expressions that are constants, though not literals: `NOW()`, `CONCAT('a', 'b')`, `1 + 2`.
//!
//! Where one is meant for a protected column, the scratch engine computes it, and the statement is
//! planned again with a literal in its place: what the column makes of the value is then the
//! proxy's affair, as of any other literal.

use onionskin_schema::folded;
use std::ops::{ControlFlow, Range};

use sqlparser::ast::{Expr, Function, Query};

use super::functions::is_carried;
use crate::errors;
use crate::lex::{Token, TokenKind};
pub(super) use crate::plan::Computed;
use crate::plan::{ColumnUse, Source};
use crate::planner::{Planned, Planner, UseScratch, refuse};
use crate::visit::{Visitor, visit};

/// Functions of many rows.
const OF_ROWS: [&str; 37] = [
    "any_value",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "count",
    "cume_dist",
    "dense_rank",
    "first_value",
    "group_concat",
    "grouping",
    "json_arrayagg",
    "json_objectagg",
    "lag",
    "last_value",
    "lead",
    "max",
    "median",
    "min",
    "nth_value",
    "ntile",
    "percent_rank",
    "percentile_cont",
    "percentile_disc",
    "rank",
    "row",
    "row_number",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "sum",
    "updatexml",
    "var_pop",
    "var_samp",
    "variance",
    "weight_string",
];

/// Functions that return something else every time.
const FRESH: [&str; 3] = ["rand", "random_bytes", "uuid"];

/// Functions of the time.
pub(crate) const CLOCK: [&str; 12] = [
    "curdate",
    "current_date",
    "current_time",
    "current_timestamp",
    "curtime",
    "localtime",
    "localtimestamp",
    "now",
    "unix_timestamp",
    "utc_date",
    "utc_time",
    "utc_timestamp",
];

struct Constant {
    once: bool,
}

impl Constant {
    fn allows(&self, function: &Function) -> bool {
        let name = Planner::function_name(function);
        let fresh = FRESH.contains(&name.as_str());
        function.name.0.len() == 1
            && function.over.is_none()
            && is_carried(&name)
            && OF_ROWS.binary_search(&name.as_str()).is_err()
            && (self.once || !fresh)
    }
}

impl Visitor for Constant {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let fine = match expr {
            // a user variable
            Expr::Identifier(name) => {
                name.quote_style.is_none()
                    && name.value.starts_with('@')
                    && !name.value.starts_with("@@")
            }
            Expr::CompoundIdentifier(_)
            | Expr::CompoundFieldAccess { .. }
            | Expr::MatchAgainst { .. }
            | Expr::Wildcard(_)
            | Expr::QualifiedWildcard(..) => false,
            Expr::Function(function) => self.allows(function),
            _ => true,
        };
        match fine {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}

/// Whether a text for the parser is an expression that the scratch engine can compute for a row of
/// which it knows nothing.
pub(crate) fn is_constant_for_a_row(text: &str) -> bool {
    is_constant(text, true)
}

/// Whether a text for the parser is a constant expression; with `once`, it is computed for one row
/// only.
fn is_constant(text: &str, once: bool) -> bool {
    let expr = crate::parse::expression(text);
    expr.is_ok_and(|expr| visit(&expr, &mut Constant { once }).is_continue())
}

impl Planner<'_> {
    /// Notes a constant expression that is meant for a protected column; `None` if it is none, or
    /// nothing can compute it. What is returned stands for the value until there is one.
    pub(crate) fn computed(
        &mut self,
        tokens: &Range<usize>,
        column: &ColumnUse,
        once: bool,
    ) -> Option<Source> {
        let range = self.bytes_of(tokens);
        let sql = self.sql();
        let assigns = self.tokens.get(tokens.clone())?.iter().any(|t| t.is(b':'));
        let text = self.parse_text.get(range.clone())?;
        if self.request.settings.scratch == UseScratch::Never || assigns || !is_constant(text, once)
        {
            return None;
        }
        for token in &self.tokens[tokens.clone()] {
            if token.is_word(sql, "current_user") || token.is_word(sql, "current_role") {
                return None;
            }
            if token.kind == TokenKind::Variable && self.may_assign() {
                return None;
            }
        }
        self.computed.push(Computed {
            place: (range.start, range.end),
            column: column.clone(),
        });
        Some(Source::Null)
    }

    /// Whether a user variable may get another value while the statement runs, as far as its text
    /// tells.
    pub(crate) fn may_assign(&self) -> bool {
        // these are followed by parentheses, too
        const NO_CALLS: [&str; 8] = ["values", "value", "in", "and", "or", "not", "when", "on"];
        let (sql, tokens) = (self.sql(), &self.tokens);
        let rows = |t: &Token| ["values", "value", "set"].iter().any(|w| t.is_word(sql, w));
        // what stands before is a table and its columns
        let start = tokens.iter().position(rows).unwrap_or(0);
        tokens.windows(2).enumerate().any(|(at, pair)| {
            let assigns = pair[0].is(b':') && pair[1].is(b'=');
            let calls = at >= start
                && pair[1].is(b'(')
                && match pair[0].kind {
                    TokenKind::Quoted => true,
                    TokenKind::Word => {
                        let name = folded(&String::from_utf8_lossy(pair[0].text(sql)));
                        !is_carried(&name) && !NO_CALLS.contains(&name.as_str())
                    }
                    _ => false,
                };
            assigns || calls
        })
    }

    /// Refuses if the engine would tell the time for some values, and the server, a moment later,
    /// for others.
    pub(crate) fn one_clock(&self, computed: &[Computed]) -> Planned<()> {
        let sql = self.sql();
        let is_inside = |t: &Token| {
            let covers = |c: &Computed| c.place.0 <= t.start && t.end <= c.place.1;
            computed.iter().any(covers)
        };
        let tells = |t: &&Token| CLOCK.iter().any(|w| t.is_word(sql, w));
        let inside = self.first_rows_tokens().filter(tells).any(is_inside);
        let outside = self
            .first_rows_tokens()
            .filter(tells)
            .any(|t| !is_inside(t));
        match inside && outside {
            true => refuse(
                &errors::SCRATCH_FUNCTION,
                "the time for protected columns and others in one statement",
            ),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_told_from_other_expressions() {
        assert!(OF_ROWS.windows(2).all(|w| w[0] < w[1]));
        for text in ["NOW()", "1 + 1", "CONCAT('x', @a)", "-(1)", "UUID()"] {
            assert!(is_constant(text, true), "{text}");
        }
        for text in [
            "a",
            "t.a + 1",
            "(SELECT 1)",
            "SLEEP(1)",
            "COUNT(1)",
            "@@x",
            "`@x`",
        ] {
            assert!(!is_constant(text, true), "{text}");
        }
        assert!(!is_constant("UUID()", false));
    }
}
