//! Aliases of a select list.
//!
//! Some are written as strings: `SELECT a AS 'the name'`. The parser sees no string's contents and
//! keeps no place for such an alias, so all of them would be alike to the rules: what ORDER BY says
//! of one would not be found, and the proxy would show a wrong name. Their own texts are put into
//! the select list, and the plan is pinned to them.

use std::ops::Range;

use sqlparser::ast::SelectItem;

use super::grouping::computed_from;
use crate::errors::{NotUnderstood, Refusal};
use crate::lex::{LiteralKind, TokenKind};
use crate::planner::{Planned, Planner};
use crate::scope::Scope;

impl Planner<'_> {
    /// The select list with the text and the place of each alias that is a string; `None` if there
    /// is none. `items` are the tokens of the list's items.
    pub(super) fn named_by_strings(
        &mut self,
        projection: &[SelectItem],
        items: &[Range<usize>],
    ) -> Planned<Option<Vec<SelectItem>>> {
        let by_string = |item: &SelectItem| {
            matches!(item, SelectItem::ExprWithAlias { alias, .. }
                if matches!(alias.quote_style, Some('\'' | '"')))
        };
        if !projection.iter().any(by_string) {
            return Ok(None);
        }
        let mut named = projection.to_vec();
        for (item, tokens) in named.iter_mut().zip(items) {
            let SelectItem::ExprWithAlias { alias, .. } = item else {
                continue;
            };
            let Some(token) = tokens.end.checked_sub(1).and_then(|i| self.tokens.get(i)) else {
                continue;
            };
            if token.kind == TokenKind::Literal(LiteralKind::String) {
                let start = token.start;
                alias.value = self.text_of_string(start)?;
                alias.span = self.span_at(start);
            }
        }
        Ok(Some(named))
    }

    /// Adds the aliases of a select list to the scope, with what they stand for.
    pub(super) fn note_aliases(
        &mut self,
        projection: &[SelectItem],
        scope: &mut Scope,
    ) -> Planned<()> {
        for item in projection {
            let SelectItem::ExprWithAlias { expr, alias } = item else {
                continue;
            };
            self.judge(alias)?;
            let column = self.column_of(expr, scope)?.map(|(_, c)| c);
            if column.is_none()
                && let Some(from) = computed_from(expr, scope)
            {
                scope.computed.push((alias.value.clone(), from));
            }
            scope.aliases.push((alias.value.clone(), column));
        }
        Ok(())
    }

    fn text_of_string(&mut self, offset: usize) -> Planned<String> {
        let bad = || Refusal::from(NotUnderstood::UsedAs("a string", "an alias"));
        let index = self.literal_index(offset).ok_or_else(bad)?;
        let text = self.request.template.literals[index].text(self.sql());
        let inner = std::str::from_utf8(text).ok();
        let inner = inner.and_then(|t| t.get(1..t.len().checked_sub(1)?));
        let quote = text.first().map_or('\'', |&b| char::from(b));
        match inner {
            Some(inner) if !inner.contains(['\\', quote]) => {
                let inner = inner.to_owned();
                self.pin(index);
                Ok(inner)
            }
            _ => Err(bad()),
        }
    }
}
