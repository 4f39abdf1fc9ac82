//! `FROM`: which tables a query reads, and the conditions of its joins.

use sqlparser::ast::{JoinConstraint, ObjectName, TableFactor, TableWithJoins};

use crate::errors::{self, NotUnderstood};
use crate::planner::{Known, Planned, Planner, refuse};
use crate::query::Mode;
use crate::scope::{Scope, Source, join_constraint};

impl Planner<'_> {
    /// The table that a name means: database, name, what is known.
    pub(crate) fn table(&mut self, name: &ObjectName) -> Planned<(Option<String>, String, Known)> {
        let parts = self.judge_name(name)?;
        let (database, table) = match parts.as_slice() {
            [table] => (self.request.settings.database.clone(), table.clone()),
            [database, table] => (Some(database.clone()), table.clone()),
            _ => {
                return NotUnderstood::NameParts("a table name", "two").refuse();
            }
        };
        let known = match &database {
            Some(database) => self.request.catalog.table(database, &table),
            None => Known::Absent,
        };
        if let Known::Table(t) = &known
            && let Some(reason) = &t.damaged
        {
            return refuse(
                &errors::DAMAGED,
                format!("{}.{} ({reason})", t.database, t.name),
            );
        }
        Ok((database, table, known))
    }

    /// Adds a table factor to a scope.
    pub(crate) fn factor(
        &mut self,
        factor: &TableFactor,
        scope: &mut Scope,
        parent: Option<&Scope>,
    ) -> Planned<()> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                with_hints,
                version: None,
                with_ordinality: false,
                partitions,
                json_path: None,
                sample: None,
                index_hints: _,
            } if with_hints.is_empty() => {
                let (database, table, known) = self.table(name)?;
                if let Some(alias) = alias {
                    if !alias.columns.is_empty() || alias.at.is_some() {
                        return NotUnderstood::AliasOf("a table").refuse();
                    }
                    self.judge(&alias.name)?;
                }
                if let Known::Table(table) = &known {
                    let alias = alias.as_ref().map(|alias| &alias.name);
                    self.hide_indexes(table, name, alias, !partitions.is_empty())?;
                }
                scope.sources.push(Source {
                    name: alias.as_ref().map_or(table, |a| a.name.value.clone()),
                    database: if alias.is_some() { None } else { database },
                    table: match known {
                        Known::Table(t) => Some(t),
                        _ => None,
                    },
                    exports: None,
                });
                Ok(())
            }
            TableFactor::Derived {
                lateral: false,
                subquery,
                alias: Some(alias),
                sample: None,
            } => {
                if !alias.columns.is_empty() || alias.at.is_some() {
                    return NotUnderstood::AliasOf("a derived table").refuse();
                }
                self.judge(&alias.name)?;
                let given = self.query(subquery, parent, Mode::Nested)?;
                scope.sources.push(Source {
                    name: alias.name.value.clone(),
                    database: None,
                    table: None,
                    exports: given.names,
                });
                Ok(())
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => self.add_item(table_with_joins, scope, parent),
            _ => NotUnderstood::PartOf("a part", "FROM").refuse(),
        }
    }

    /// Adds the tables of FROM to a scope, then walks the conditions of their joins. Returns
    /// whether columns are merged (`USING`).
    pub(super) fn tables(
        &mut self,
        from: &[TableWithJoins],
        scope: &mut Scope,
        parent: Option<&Scope>,
    ) -> Planned<bool> {
        for item in from {
            self.add_item(item, scope, parent)?;
        }
        let mut merges = false;
        for item in from {
            merges |= self.joins(item, scope)?;
        }
        Ok(merges)
    }

    /// Adds a table and its joins to a scope; the conditions are walked by [`Self::joins`].
    fn add_item(
        &mut self,
        item: &TableWithJoins,
        scope: &mut Scope,
        parent: Option<&Scope>,
    ) -> Planned<()> {
        self.factor(&item.relation, scope, parent)?;
        for join in &item.joins {
            self.factor(&join.relation, scope, parent)?;
        }
        Ok(())
    }

    /// Walks the conditions of joins. Returns whether columns are merged (`USING`).
    pub(crate) fn joins(&mut self, item: &TableWithJoins, scope: &Scope) -> Planned<bool> {
        let mut merges = false;
        if let TableFactor::NestedJoin {
            table_with_joins, ..
        } = &item.relation
        {
            merges |= self.joins(table_with_joins, scope)?;
        }
        for join in &item.joins {
            if let TableFactor::NestedJoin {
                table_with_joins, ..
            } = &join.relation
            {
                merges |= self.joins(table_with_joins, scope)?;
            }
            let Some(constraint) = join_constraint(&join.join_operator) else {
                return NotUnderstood::JoinKind.refuse();
            };
            match constraint {
                JoinConstraint::None => {}
                JoinConstraint::On(e) => self.scan(e, scope)?,
                JoinConstraint::Natural => {
                    // sealed cells of two tables would be compared with each other
                    return NotUnderstood::Clause("NATURAL JOIN").refuse();
                }
                JoinConstraint::Using(names) => {
                    merges = true;
                    for name in names {
                        let parts = self.judge_name(name)?;
                        let column = parts.last().map(String::as_str).unwrap_or_default();
                        for table in scope.sources.iter().filter_map(|s| s.table.as_ref()) {
                            if table.column(column).is_some_and(|c| c.protection.is_some()) {
                                let about = format!("USING ({column})");
                                return refuse(&errors::EXPRESSION, about);
                            }
                        }
                    }
                }
            }
        }
        Ok(merges)
    }
}
