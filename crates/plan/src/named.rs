//! The tables that a statement names, for explanations.
//!
//! Planning needs no such list: it looks up every word that may be a table's name.

use std::ops::ControlFlow;

use sqlparser::ast::{Cte, ObjectName, Query, SetExpr, Statement, TableFactor};

use crate::parse;
use crate::visit::{Visitor, visit};

/// A table as it is written: its database, if that is said, and its name.
pub type NamedTable = (Option<String>, String);

/// The tables that a statement names; `None` where it is not understood.
pub fn tables_named(sql: &str) -> Option<Vec<NamedTable>> {
    Some(tables_of(&parse::statement(sql).ok()?))
}

/// The tables that a statement names which reads or changes rows; `None` for any other, whose tree
/// may have tables in places that are not visited.
pub(crate) fn tables_of_rows(sql: &str) -> Option<Vec<NamedTable>> {
    let statement = parse::statement(sql).ok()?;
    let mut tables = tables_of(&statement);
    match &statement {
        Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) => {}
        // of several tables, it names those that lose rows by their aliases
        Statement::Delete(_) => {
            let mut aliases = Aliases::default();
            let _ = visit(&statement, &mut aliases);
            let is_alias = |name: &str| aliases.0.iter().any(|a| a.eq_ignore_ascii_case(name));
            tables.retain(|(database, name)| database.is_some() || !is_alias(name));
        }
        _ => return None,
    }
    Some(tables)
}

fn tables_of(statement: &Statement) -> Vec<NamedTable> {
    let mut names = Names::default();
    let _ = visit(statement, &mut names);
    names.tables
}

#[derive(Default)]
struct Names {
    tables: Vec<NamedTable>,
    /// The queries that are open, the outermost first.
    open: Vec<Definitions>,
}

/// What WITH defines for a query.
struct Definitions {
    /// Names, with the addresses of their queries.
    all: Vec<(String, *const Query)>,
    /// So many of them are seen where the visitor is. Without RECURSIVE, a definition sees those
    /// before it.
    seen: usize,
    recursive: bool,
}

impl Names {
    fn is_own(&self, name: &str) -> bool {
        let seen = self.open.iter().flat_map(|d| &d.all[..d.seen]);
        seen.into_iter()
            .any(|(own, _)| own.eq_ignore_ascii_case(name))
    }

    fn add(&mut self, found: NamedTable) {
        let is_own = found.0.is_none() && self.is_own(&found.1);
        if !is_own && !self.tables.contains(&found) {
            self.tables.push(found);
        }
    }

    /// `TABLE t`, which is visited as no relation.
    fn add_bare(&mut self, body: &SetExpr) {
        match body {
            SetExpr::Table(table) => {
                if let Some(name) = &table.table_name {
                    self.add((table.schema_name.clone(), name.clone()));
                }
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.add_bare(left);
                self.add_bare(right);
            }
            _ => {}
        }
    }

    /// Where a query stands among the definitions of the one around it.
    fn place(&mut self, query: &Query) -> Option<(&mut Definitions, usize)> {
        let around = self.open.last_mut()?;
        let at = around
            .all
            .iter()
            .position(|(_, own)| std::ptr::eq(*own, query))?;
        Some((around, at))
    }
}

#[derive(Default)]
struct Aliases(Vec<String>);

impl Visitor for Aliases {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table {
            alias: Some(alias), ..
        }
        | TableFactor::Derived {
            alias: Some(alias), ..
        } = factor
        {
            self.0.push(alias.name.value.clone());
        }
        ControlFlow::Continue(())
    }
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if let Some((around, at)) = self.place(query)
            && !around.recursive
        {
            around.seen = at;
        }
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        let name = |table: &Cte| (table.alias.name.value.clone(), &raw const *table.query);
        let all: Vec<_> = tables.map(name).collect();
        let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        self.open.push(Definitions {
            seen: all.len(),
            all,
            recursive,
        });
        self.add_bare(&query.body);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.open.pop();
        if let Some((around, _)) = self.place(query) {
            around.seen = around.all.len();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let parts: Option<Vec<_>> = relation.0.iter().map(|part| part.as_ident()).collect();
        let found = match parts.as_deref() {
            Some([name]) => (None, name.value.clone()),
            Some([database, name]) => (Some(database.value.clone()), name.value.clone()),
            _ => return ControlFlow::Continue(()),
        };
        self.add(found);
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
        for (sql, tables) in [
            ("WITH w AS (SELECT 1) SELECT * FROM app.w", "app.w"),
            ("WITH w AS (SELECT * FROM w) SELECT * FROM w", "w"),
            (
                "WITH v AS (SELECT 1), w AS (SELECT * FROM v) SELECT * FROM w",
                "",
            ),
            (
                "WITH RECURSIVE w AS (SELECT 1 UNION SELECT * FROM w) SELECT * FROM w",
                "",
            ),
            (
                "SELECT * FROM w WHERE 1 IN (WITH w AS (SELECT 1) SELECT * FROM w)",
                "w",
            ),
            (
                "SELECT * FROM t, (u JOIN v ON 1) WHERE 1 = (SELECT 1 FROM x)",
                "t u v x",
            ),
        ] {
            assert_eq!(named(sql).as_deref(), Some(tables), "{sql}");
        }
        assert_eq!(named("SELEC 1"), None);
    }
}
