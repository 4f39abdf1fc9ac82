//! `DELETE`.

use sqlparser::ast::{Delete, FromTable};

use crate::errors;
use crate::plan::Action;
use crate::planner::{Planned, Planner, refuse};
use crate::scope::Scope;

impl Planner<'_> {
    pub(crate) fn delete(&mut self, delete: &Delete) -> Planned<Action> {
        let Delete {
            delete_token: _,
            optimizer_hints: _,
            tables,
            from,
            using,
            selection,
            returning,
            output,
            order_by,
            limit,
        } = delete;
        if returning.is_some() || output.is_some() || using.is_some() {
            return refuse(&errors::NOT_UNDERSTOOD, "a clause of DELETE");
        }
        for name in tables {
            self.judge_name(name)?;
        }
        let (FromTable::WithFromKeyword(list) | FromTable::WithoutKeyword(list)) = from;
        let mut scope = Scope::inside(None);
        for item in list {
            self.factor(&item.relation, &mut scope, None)?;
            for join in &item.joins {
                self.factor(&join.relation, &mut scope, None)?;
            }
        }
        for item in list {
            self.joins(item, &scope)?;
        }
        if let Some(condition) = selection {
            self.scan(condition, &scope)?;
        }
        for key in order_by {
            self.order_by_key(&key.expr, &scope)?;
        }
        if let Some(limit) = limit
            && self.constant(limit).is_none()
        {
            return refuse(&errors::NOT_UNDERSTOOD, "LIMIT");
        }
        Ok(Action::Server {
            text: self.assemble()?,
            result: None,
        })
    }
}
