//! The tables that a statement names, for explanations.
//!
//! Planning needs no such list: it looks up every word that may be a table's name.

use std::ops::ControlFlow;

use sqlparser::ast::{ObjectName, Query, Visit, Visitor};

use crate::parse;

/// A table as it is written: its database, if that is said, and its name.
pub type NamedTable = (Option<String>, String);

/// The tables that a statement names; `None` where it is not understood.
pub fn tables_named(sql: &str) -> Option<Vec<NamedTable>> {
    let statement = parse::statement(sql).ok()?;
    let mut names = Names::default();
    let _ = statement.visit(&mut names);
    let Names { mut tables, own } = names;
    let is_own = |(database, name): &NamedTable| {
        database.is_none() && own.iter().any(|own| own.eq_ignore_ascii_case(name))
    };
    tables.retain(|table| !is_own(table));
    Some(tables)
}

#[derive(Default)]
struct Names {
    tables: Vec<NamedTable>,
    /// What WITH defines.
    own: Vec<String>,
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let defined = query.with.iter().flat_map(|with| &with.cte_tables);
        self.own
            .extend(defined.map(|table| table.alias.name.value.clone()));
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let parts: Option<Vec<_>> = relation.0.iter().map(|part| part.as_ident()).collect();
        let found = match parts.as_deref() {
            Some([name]) => (None, name.value.clone()),
            Some([database, name]) => (Some(database.value.clone()), name.value.clone()),
            _ => return ControlFlow::Continue(()),
        };
        if !self.tables.contains(&found) {
            self.tables.push(found);
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_named_and_what_with_defines_is_none() {
        let named = |sql| {
            let found = tables_named(sql)?;
            let shown = |(database, name): NamedTable| match database {
                Some(database) => format!("{database}.{name}"),
                None => name,
            };
            Some(found.into_iter().map(shown).collect::<Vec<_>>().join(" "))
        };
        let all = "WITH w AS (SELECT * FROM a.b) SELECT * FROM w JOIN `c` AS d ON w.id = d.id";
        assert_eq!(named(all).as_deref(), Some("a.b c"));
        assert_eq!(named("INSERT INTO t VALUES (?)").as_deref(), Some("t"));
        assert_eq!(named("DELETE FROM t WHERE id = 1").as_deref(), Some("t"));
        assert_eq!(named("SELECT 1").as_deref(), Some(""));
        assert_eq!(named("SELEC 1"), None);
    }
}
