//! One way through the syntax tree: every reference to a table, every call, every condition that may be pushed to the server.

use std::collections::HashSet;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use onionskin_schema::Table;
use sqlparser::ast::{
    Expr, Function, FunctionArguments, JoinOperator, ObjectName, Query, Select, TableFactor,
    TableWithJoins, Visit, Visitor,
};

use super::functions::is_carried;
use crate::candidates::goes_unnoticed;
use crate::errors::{self, Refusal};
use crate::plan::Text;
use crate::planner::{Known, Planned, Planner, refuse};
use crate::scope::{Scope, Source};

/// Databases of the server's own.
const SYSTEM: [&str; 4] = ["information_schema", "mysql", "performance_schema", "sys"];

/// A reference to a base table.
pub(super) struct Reference {
    pub table: Arc<Table>,
    pub alias: Option<String>,
    /// The tokens of the name.
    pub name: Range<usize>,
    /// Conditions for the server.
    pub conditions: Vec<Text>,
    /// It stands in the FROM clause of the outermost select.
    pub outermost: bool,
    /// An outer join may put NULLs in the place of its rows.
    optional: bool,
}

struct Walk<'w, 'a> {
    planner: &'w mut Planner<'a>,
    /// Names of common table expressions.
    named: HashSet<String>,
    /// Those of them that read base tables.
    opens: HashSet<String>,
    found: Vec<Reference>,
    /// Queries around the present place.
    depth: usize,
    /// Table names that were met, for a check.
    factors: usize,
    /// Those of them that name common table expressions, or nothing.
    of_named: usize,
    /// The common table expressions that were referred to.
    met: HashSet<String>,
    /// One of them was referred to again.
    repeats: bool,
    locks: bool,
}

/// Finds the references to tables in a query; `locks`: it locks the rows that it reads.
pub(super) fn walk(planner: &mut Planner<'_>, query: &Query, locks: bool) -> Planned<Found> {
    let mut names = Names::default();
    let _ = query.visit(&mut names);
    let opens: HashSet<String> = names
        .reads
        .iter()
        .filter(|(_, tables)| tables.iter().any(|t| !names.named.contains(t)))
        .map(|(name, _)| name.clone())
        .collect();
    let mut walk = Walk {
        planner,
        named: names.named,
        opens,
        found: Vec::new(),
        depth: 0,
        factors: 0,
        of_named: 0,
        met: HashSet::new(),
        repeats: false,
        locks,
    };
    if let ControlFlow::Break(refusal) = query.visit(&mut walk) {
        return Err(refusal);
    }
    if walk.factors != walk.found.len() + walk.of_named {
        return refuse(&errors::NOT_UNDERSTOOD, "a table in an unusual place");
    }
    Ok(Found {
        references: walk.found,
        repeats: walk.repeats,
    })
}

/// What a query refers to.
pub(super) struct Found {
    pub references: Vec<Reference>,
    /// A common table expression that reads base tables is referred to more than once.
    pub repeats: bool,
}

/// The names of all common table expressions, and of the tables that each reads.
#[derive(Default)]
struct Names {
    named: HashSet<String>,
    reads: Vec<(String, Vec<String>)>,
}

/// The names of tables.
struct Tables(Vec<String>);

impl Visitor for Tables {
    type Break = ();

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        self.0.push(match name.0.as_slice() {
            [part] => part
                .as_ident()
                .map_or(String::new(), |i| i.value.to_lowercase()),
            _ => String::new(),
        });
        ControlFlow::Continue(())
    }
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for cte in query.with.iter().flat_map(|w| &w.cte_tables) {
            let name = cte.alias.name.value.to_lowercase();
            let mut tables = Tables(Vec::new());
            let _ = cte.query.visit(&mut tables);
            self.reads.push((name.clone(), tables.0));
            self.named.insert(name);
        }
        ControlFlow::Continue(())
    }
}

fn flow(done: Planned<()>) -> ControlFlow<Refusal> {
    match done {
        Ok(()) => ControlFlow::Continue(()),
        Err(refusal) => ControlFlow::Break(refusal),
    }
}

impl Visitor for Walk<'_, '_> {
    type Break = Refusal;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Refusal> {
        self.depth += 1;
        let nested = self.depth > 1 && !query.locks.is_empty();
        flow(match nested {
            true => refuse(&errors::NOT_UNDERSTOOD, "rows locked by an inner query"),
            false => Ok(()),
        })
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Refusal> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Refusal> {
        flow(self.select(select))
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Refusal> {
        flow(match factor {
            TableFactor::Table { .. } => {
                self.factors += 1;
                Ok(())
            }
            TableFactor::Derived { .. }
            | TableFactor::NestedJoin { .. }
            | TableFactor::JsonTable { .. } => Ok(()),
            _ => refuse(&errors::NOT_UNDERSTOOD, "a part of FROM"),
        })
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Refusal> {
        flow(match expr {
            Expr::Function(function) => called(function),
            Expr::MatchAgainst { .. } => refuse(&errors::NOT_UNDERSTOOD, "MATCH"),
            _ => Ok(()),
        })
    }
}

fn called(function: &Function) -> Planned<()> {
    let name = Planner::function_name(function);
    if name == "last_insert_id" {
        // with an argument it sets what later calls return
        let bare = match &function.args {
            FunctionArguments::None => true,
            FunctionArguments::List(list) => list.args.is_empty(),
            FunctionArguments::Subquery(_) => false,
        };
        if bare {
            return Ok(());
        }
    }
    if function.name.0.len() == 1 && is_carried(&name) {
        return Ok(());
    }
    refuse(&errors::SCRATCH_FUNCTION, format!("{name}()"))
}

impl Walk<'_, '_> {
    fn select(&mut self, select: &Select) -> Planned<()> {
        if select.into.is_some() {
            return refuse(&errors::NOT_UNDERSTOOD, "INTO");
        }
        let first = self.found.len();
        for item in &select.from {
            self.item(item, false)?;
        }
        let Some(condition) = &select.selection else {
            return Ok(());
        };
        let offset = self.planner.offset(select.select_token.0.span);
        let start = self.planner.token_at(offset)?;
        let clauses = self.planner.clauses(start)?;
        let place = clauses.behind(clauses.filter);
        let Ok(conjuncts) = self.planner.conjuncts(condition, place) else {
            return Ok(());
        };
        for (conjunct, place) in conjuncts {
            for at in first..self.found.len() {
                if !self.found[at].optional
                    && let Some(text) = self.pushed(conjunct, &place, at)
                {
                    self.found[at].conditions.push(text);
                    break;
                }
            }
        }
        Ok(())
    }

    /// A condition for the server, if it is about this reference alone and the server can decide it.
    fn pushed(&mut self, conjunct: &Expr, place: &Range<usize>, at: usize) -> Option<Text> {
        if !is_pure(conjunct) {
            return None;
        }
        let reference = &self.found[at];
        let table = Arc::clone(&reference.table);
        let mut scope = Scope::inside(None);
        scope.sources.push(Source {
            name: reference.alias.clone().unwrap_or(table.name.clone()),
            database: match reference.alias {
                Some(_) => None,
                None => Some(table.database.clone()),
            },
            table: Some(table),
            exports: None,
        });
        self.planner.tried(|planner| {
            planner.scan(conjunct, &scope)?;
            planner.check_judged_in(place.clone())?;
            let range = planner.bytes_of(place);
            planner.take_text(range)
        })
    }

    fn item(&mut self, item: &TableWithJoins, optional: bool) -> Planned<()> {
        let is_right = |o: &JoinOperator| {
            matches!(
                o,
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_)
            )
        };
        let is_left = |o: &JoinOperator| {
            matches!(
                o,
                JoinOperator::Left(_) | JoinOperator::LeftOuter(_) | JoinOperator::FullOuter(_)
            )
        };
        let right_behind = |n: usize| item.joins[n..].iter().any(|j| is_right(&j.join_operator));
        self.factor(&item.relation, optional || right_behind(0))?;
        for (n, join) in item.joins.iter().enumerate() {
            let optional = optional || is_left(&join.join_operator) || right_behind(n + 1);
            self.factor(&join.relation, optional)?;
        }
        Ok(())
    }

    fn factor(&mut self, factor: &TableFactor, optional: bool) -> Planned<()> {
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
                index_hints,
            } if with_hints.is_empty() => {
                if !partitions.is_empty() || !index_hints.is_empty() {
                    return refuse(&errors::NOT_UNDERSTOOD, "an index hint or PARTITION");
                }
                let alias = alias.as_ref().map(|a| a.name.value.clone());
                self.reference(name, alias, optional)
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => self.item(table_with_joins, optional),
            TableFactor::Table { .. } | TableFactor::NestedJoin { .. } => {
                refuse(&errors::NOT_UNDERSTOOD, "a part of FROM")
            }
            // others are walked through by themselves
            _ => Ok(()),
        }
    }

    fn reference(
        &mut self,
        name: &ObjectName,
        alias: Option<String>,
        optional: bool,
    ) -> Planned<()> {
        let place = self.place(name)?;
        let parts = self.planner.judge_name(name)?;
        let current = self.planner.request.settings.database.clone();
        let (database, table) = match parts.as_slice() {
            [table] => (current, table),
            [database, table] => (Some(database.clone()), table),
            _ => return refuse(&errors::NOT_UNDERSTOOD, "a table's name"),
        };
        let known = match &database {
            Some(database) => self.planner.request.catalog.table(database, table),
            None => Known::Absent,
        };
        let is_named = parts.len() == 1 && self.named.contains(&table.to_lowercase());
        match known {
            Known::Table(_) if is_named => refuse(
                &errors::AMBIGUOUS,
                format!("{table}, a table and a part of WITH"),
            ),
            _ if is_named || (parts.len() == 1 && table.eq_ignore_ascii_case("dual")) => {
                self.of_named += 1;
                let name = table.to_lowercase();
                self.repeats |= self.opens.contains(&name) && !self.met.insert(name);
                Ok(())
            }
            Known::Table(table) => {
                let system = |s: &str| table.database.eq_ignore_ascii_case(s);
                if SYSTEM.iter().any(|s| system(s)) {
                    return refuse(&errors::NOT_UNDERSTOOD, "a system table");
                }
                if let Some(reason) = &table.damaged {
                    let about = format!("{}.{} ({reason})", table.database, table.name);
                    return refuse(&errors::DAMAGED, about);
                }
                self.found.push(Reference {
                    table,
                    alias,
                    name: place,
                    conditions: Vec::new(),
                    outermost: self.depth == 1 && self.locks,
                    optional,
                });
                Ok(())
            }
            _ => refuse(
                &errors::NOT_UNDERSTOOD,
                format!("table {table}, which is not known"),
            ),
        }
    }

    /// The tokens of a name.
    fn place(&self, name: &ObjectName) -> Planned<Range<usize>> {
        let mut tokens = Vec::new();
        for part in &name.0 {
            let Some(ident) = part.as_ident() else {
                return refuse(&errors::NOT_UNDERSTOOD, "a name");
            };
            tokens.push(self.planner.token_at(self.planner.offset(ident.span))?);
        }
        match (tokens.first(), tokens.last()) {
            (Some(first), Some(last)) => Ok(*first..last + 1),
            _ => refuse(&errors::NOT_UNDERSTOOD, "a name"),
        }
    }
}

/// Whether a condition can be decided twice, here and there: nobody notices the second time.
fn is_pure(expr: &Expr) -> bool {
    match expr {
        Expr::Like {
            expr,
            pattern,
            escape_char,
            ..
        } => {
            goes_unnoticed(expr)
                && goes_unnoticed(pattern)
                && escape_char.iter().all(|e| goes_unnoticed(e))
        }
        other => goes_unnoticed(other),
    }
}
