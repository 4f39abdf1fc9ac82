//! Aliases that are written as strings: `SELECT a AS 'the name'`.
//!
//! The parser sees no string's contents, so all such aliases would be alike to the rules: what ORDER BY says of one would not
//! be found, and the proxy would show a wrong name. Their own texts are put into the tree, and the plan is pinned to them.

use std::ops::ControlFlow;

use sqlparser::ast::{Query, SelectItem, SetExpr, Statement, VisitMut, VisitorMut};

use crate::errors::{self, Refusal};
use crate::lex::{LiteralKind, TokenKind};
use crate::planner::{Planned, Planner};

/// Puts the text of each alias that is a string into the statement.
pub(super) fn name(planner: &mut Planner, statement: &mut Statement) -> Planned<()> {
    match statement.visit(&mut Aliases(planner)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(refusal) => Err(refusal),
    }
}

struct Aliases<'p, 'a>(&'p mut Planner<'a>);

impl VisitorMut for Aliases<'_, '_> {
    type Break = Refusal;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Refusal> {
        match self.of_body(&mut query.body) {
            Ok(()) => ControlFlow::Continue(()),
            Err(refusal) => ControlFlow::Break(refusal),
        }
    }
}

impl Aliases<'_, '_> {
    fn of_body(&mut self, body: &mut SetExpr) -> Planned<()> {
        match body {
            SetExpr::SetOperation { left, right, .. } => {
                self.of_body(left)?;
                self.of_body(right)
            }
            SetExpr::Select(select) => {
                for item in &mut select.projection {
                    if let SelectItem::ExprWithAlias { alias, .. } = item {
                        let at = self.0.offset(alias.span);
                        let token = self.0.tokens[self.0.token_at(at)?];
                        if token.kind == TokenKind::Literal(LiteralKind::String) {
                            alias.value = self.text(token.start)?;
                        }
                    }
                }
                Ok(())
            }
            // a query within has a visit of its own
            _ => Ok(()),
        }
    }

    fn text(&mut self, offset: usize) -> Planned<String> {
        let bad = || Refusal::new(&errors::NOT_UNDERSTOOD, "a string as an alias");
        let index = self.0.literal_index(offset).ok_or_else(bad)?;
        let literals = &self.0.request.template.literals;
        let text = literals[index].text(self.0.sql());
        let inner = std::str::from_utf8(text).ok();
        let inner = inner.and_then(|t| t.get(1..t.len().checked_sub(1)?));
        let quote = text.first().map_or('\'', |&b| char::from(b));
        match inner {
            Some(inner) if !inner.contains(['\\', quote]) => {
                let inner = inner.to_owned();
                self.0.pin(index);
                Ok(inner)
            }
            _ => Err(bad()),
        }
    }
}
