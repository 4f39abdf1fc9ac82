//! One way through the syntax tree: every reference to a table, every call, every condition that
//! may be pushed to the server.

use std::collections::{HashMap, HashSet};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use onionskin_schema::{Table, folded};
use onionskin_value::Family;
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArguments, JoinOperator, LockType, NonBlock,
    ObjectName, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins,
};

use super::functions::is_carried;
use super::pushable;
use super::write::{FOR_UPDATE, SHARED};
use crate::errors::{self, NotUnderstood, Refusal};
use crate::lex::{Token, TokenKind};
use crate::plan::Text;
use crate::planner::{Known, Planned, Planner, refuse};
use crate::scope::{Scope, Source};
use crate::visit::{Visit, Visitor, visit};

/// Databases of the server's own.
pub(super) const SYSTEM: [&str; 4] = ["information_schema", "mysql", "performance_schema", "sys"];

/// A reference to a base table.
pub(super) struct Reference {
    pub table: Arc<Table>,
    pub alias: Option<String>,
    /// The tokens of the name.
    pub name: Range<usize>,
    /// Conditions for the server.
    pub conditions: Vec<Text>,
    /// The tokens of index hints. The server gets them, with the rows that it is asked for; the
    /// engine has no such index.
    pub hints: Option<Range<usize>>,
    /// How its query locks rows.
    pub lock: &'static str,
    /// It stands in a derived table.
    pub in_derived: bool,
    /// An outer join may put NULLs in the place of its rows.
    optional: bool,
    /// Its name stands in an item of a select list that has no name of its own: the text is the
    /// column's name.
    pub names_column: bool,
    /// The column is one of the result.
    pub names_result: bool,
    /// Columns that the statement writes without naming them.
    pub written: Vec<usize>,
}

impl Reference {
    /// Somewhere in a statement.
    pub(super) fn anywhere(table: Arc<Table>) -> Self {
        Reference {
            table,
            alias: None,
            name: 0..0,
            conditions: Vec::new(),
            hints: None,
            lock: "",
            in_derived: false,
            optional: false,
            names_column: false,
            names_result: false,
            written: Vec::new(),
        }
    }
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
    /// Derived tables around it.
    derived: usize,
    /// Table names that were met, for a check.
    factors: usize,
    /// Those of them that name common table expressions, or nothing.
    of_named: usize,
    /// The common table expressions that were referred to.
    met: HashSet<String>,
    /// One of them was referred to again.
    repeats: bool,
    /// How the queries around the present place lock rows; `None` in a statement that changes
    /// tables, which locks what it reads in a way of its own.
    locks: Option<Vec<&'static str>>,
    /// The common table expressions of the queries around the present place.
    visible: Vec<HashSet<String>>,
    /// The FROM clause holds more than base tables, so that a bare name may be another's column.
    opaque: bool,
    /// `<=>` between rows around the present place.
    row_comparisons: usize,
    /// First tokens of table names in items without names.
    in_names: HashSet<usize>,
    /// Those of them in items of the result.
    in_result: HashSet<usize>,
}

/// Finds the references to tables in a query that changes nothing. `around`: how it locks rows by
/// `LOCK IN SHARE MODE` at its end, which the tree does not have.
pub(super) fn walk(
    planner: &mut Planner<'_>,
    query: &Query,
    around: &'static str,
) -> Planned<Found> {
    through(planner, query, Some(vec![around]), |_| Ok(()))
}

/// The same in the query of a statement that changes tables.
pub(super) fn walk_source(planner: &mut Planner<'_>, query: &Query) -> Planned<Found> {
    through(planner, query, None, |_| Ok(()))
}

/// How a query locks rows by its last clause.
fn lock_of(query: &Query, family: Family) -> Planned<&'static str> {
    match query.locks.as_slice() {
        [] => Ok(""),
        [one] if one.of.is_none() => Ok(lock(one.lock_type, one.nonblock, family)),
        _ => NotUnderstood::LockClause.refuse(),
    }
}

/// The clause that locks rows so, in the words of the family.
pub(crate) fn lock(kind: LockType, nonblock: Option<NonBlock>, family: Family) -> &'static str {
    let is_mysql = family == Family::MySql;
    match (kind, nonblock) {
        (LockType::Update, None) => FOR_UPDATE,
        (LockType::Update, Some(NonBlock::Nowait)) => " FOR UPDATE NOWAIT",
        (LockType::Update, Some(NonBlock::SkipLocked)) => " FOR UPDATE SKIP LOCKED",
        (LockType::Share, None) => SHARED,
        (LockType::Share, Some(NonBlock::Nowait)) if is_mysql => " FOR SHARE NOWAIT",
        (LockType::Share, Some(NonBlock::SkipLocked)) if is_mysql => " FOR SHARE SKIP LOCKED",
        (LockType::Share, Some(NonBlock::Nowait)) => " LOCK IN SHARE MODE NOWAIT",
        (LockType::Share, Some(NonBlock::SkipLocked)) => " LOCK IN SHARE MODE SKIP LOCKED",
    }
}

/// The same in a statement that changes tables: those of its own list come first, then those of its
/// subqueries. The condition may narrow the former.
pub(super) fn walk_change(
    planner: &mut Planner<'_>,
    statement: &impl Visit,
    tables: &[TableWithJoins],
    condition: Option<&Expr>,
) -> Planned<Found> {
    let mut own = 0;
    let mut found = through(planner, statement, None, |walk| {
        for item in tables {
            walk.item(item, false)?;
        }
        own = walk.found.len();
        match condition {
            Some(condition) => {
                let place = walk.planner.where_tokens();
                walk.conditions(condition, place, 0);
                Ok(())
            }
            None => Ok(()),
        }
    })?;
    found.own = own;
    Ok(found)
}

fn through(
    planner: &mut Planner<'_>,
    statement: &impl Visit,
    locks: Option<Vec<&'static str>>,
    first: impl FnOnce(&mut Walk) -> Planned<()>,
) -> Planned<Found> {
    let mut names = Names::default();
    let _ = visit(statement, &mut names);
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
        derived: 0,
        factors: 0,
        of_named: 0,
        met: HashSet::new(),
        repeats: false,
        locks,
        visible: Vec::new(),
        opaque: false,
        row_comparisons: 0,
        in_names: HashSet::new(),
        in_result: HashSet::new(),
    };
    first(&mut walk)?;
    if let ControlFlow::Break(refusal) = visit(statement, &mut walk) {
        return Err(refusal);
    }
    if walk.factors != walk.found.len() + walk.of_named {
        return NotUnderstood::UnusualTable.refuse();
    }
    Ok(Found {
        references: walk.found,
        repeats: walk.repeats,
        own: 0,
    })
}

/// What a query refers to.
pub(super) struct Found {
    pub references: Vec<Reference>,
    /// A common table expression that reads base tables is referred to more than once.
    pub repeats: bool,
    /// How many of the references, the first, stand in the list of tables of a statement that
    /// changes them.
    pub own: usize,
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
            [part] => part.as_ident().map_or(String::new(), |i| folded(&i.value)),
            _ => String::new(),
        });
        ControlFlow::Continue(())
    }
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for cte in query.with.iter().flat_map(|w| &w.cte_tables) {
            let name = folded(&cte.alias.name.value);
            let mut tables = Tables(Vec::new());
            let _ = visit(&cte.query, &mut tables);
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
        let family = self.planner.request.settings.family;
        let lock = match &mut self.locks {
            Some(locks) => lock_of(query, family).map(|lock| {
                let shares = self.depth == 1 && lock.is_empty();
                locks.push(if shares { locks[0] } else { lock });
            }),
            None if self.depth > 1 && !query.locks.is_empty() => NotUnderstood::InnerLock.refuse(),
            None => Ok(()),
        };
        flow(
            lock.and_then(|()| body(&query.body))
                .and_then(|()| self.parts_of_with(query)),
        )
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Refusal> {
        self.depth -= 1;
        self.visible.pop();
        self.locks.as_mut().map(Vec::pop);
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
            TableFactor::Derived { .. } => {
                self.derived += 1;
                Ok(())
            }
            TableFactor::NestedJoin { .. } | TableFactor::JsonTable { .. } => Ok(()),
            _ => NotUnderstood::PartOf("a part", "FROM").refuse(),
        })
    }

    fn post_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Refusal> {
        let is_derived = matches!(factor, TableFactor::Derived { .. });
        self.derived -= usize::from(is_derived);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Refusal> {
        flow(match expr {
            // `reads` looks at the columns
            Expr::Function(function) if Planner::function_name(function) == "default" => Ok(()),
            Expr::Function(function) => is_call_allowed(function),
            Expr::MatchAgainst { .. } => NotUnderstood::Clause("MATCH").refuse(),
            _ => {
                self.row_comparisons += usize::from(compares_rows(expr));
                Ok(())
            }
        })
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Refusal> {
        self.row_comparisons -= usize::from(compares_rows(expr));
        ControlFlow::Continue(())
    }
}

/// `(a, b) <=> (SELECT …)`
fn compares_rows(expr: &Expr) -> bool {
    let Expr::BinaryOp {
        left,
        op: BinaryOperator::Spaceship,
        right,
    } = expr
    else {
        return false;
    };
    let is_row = |e: &Expr| {
        let mut inner = e;
        while let Expr::Nested(e) = inner {
            inner = e;
        }
        matches!(inner, Expr::Tuple(_) | Expr::Subquery(_))
            || matches!(inner, Expr::Function(call) if Planner::function_name(call) == "row")
    };
    is_row(left) && is_row(right)
}

/// `TABLE t` names a table that the visitor does not see; other statements are none.
fn body(expr: &SetExpr) -> Planned<()> {
    match expr {
        SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => Ok(()),
        SetExpr::SetOperation { left, right, .. } => {
            body(left)?;
            body(right)
        }
        _ => NotUnderstood::Within("TABLE, or a statement", "a query").refuse(),
    }
}

/// Names of tables, as they are written.
pub(super) struct Written(pub Vec<ObjectName>);

impl Visitor for Written {
    type Break = ();

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        self.0.push(name.clone());
        ControlFlow::Continue(())
    }
}

pub(super) fn is_call_allowed(function: &Function) -> Planned<()> {
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

/// The tokens of the index hints behind a table's name and its alias: so many of them.
fn hints_behind(planner: &Planner<'_>, table: &Reference, count: usize) -> Planned<Range<usize>> {
    let tokens = &planner.tokens;
    let mut at = table.name.end;
    let has_as = tokens
        .get(at)
        .is_some_and(|t| t.is_word(planner.sql(), "as"));
    at += usize::from(has_as);
    at += usize::from(table.alias.is_some());
    let start = at;
    for _ in 0..count {
        if !planner.begins_index_hint(at) {
            return NotUnderstood::IndexHint.refuse();
        }
        let place = |punct: u8| (at..tokens.len()).find(|at| tokens[*at].is(punct));
        let (Some(open), Some(close)) = (place(b'('), place(b')')) else {
            return NotUnderstood::IndexHint.refuse();
        };
        // nothing else goes to the server as it is
        let is_name =
            |t: &Token| matches!(t.kind, TokenKind::Word | TokenKind::Quoted) || t.is(b',');
        if !tokens[at..open].iter().all(is_name) || !tokens[open + 1..close].iter().all(is_name) {
            return NotUnderstood::IndexHint.refuse();
        }
        at = close + 1;
    }
    Ok(start..at)
}

impl Walk<'_, '_> {
    /// The names that a query's WITH adds. A part that names a later one, or itself without
    /// RECURSIVE, means another table.
    fn parts_of_with(&mut self, query: &Query) -> Planned<()> {
        let parts = query.with.iter().flat_map(|w| &w.cte_tables);
        let names: Vec<String> = parts.clone().map(|c| folded(&c.alias.name.value)).collect();
        let recursive = query.with.as_ref().is_some_and(|w| w.recursive);
        // the last part of each name
        let last: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
        for (n, part) in parts.enumerate() {
            let mut tables = Tables(Vec::new());
            let _ = visit(&part.query, &mut tables);
            let first_later = n + usize::from(recursive);
            let is_later = |t: &String| last.get(t.as_str()).is_some_and(|at| *at >= first_later);
            if tables.0.iter().any(is_later) {
                return refuse(
                    &errors::AMBIGUOUS,
                    format!("{}, a part of WITH that names a later one", names[n]),
                );
            }
        }
        self.visible.push(names.into_iter().collect());
        Ok(())
    }

    fn select(&mut self, select: &Select) -> Planned<()> {
        if select.into.is_some() {
            return NotUnderstood::Clause("INTO").refuse();
        }
        for item in &select.projection {
            if let SelectItem::UnnamedExpr(item) = item {
                let mut written = Written(Vec::new());
                let _ = visit(item, &mut written);
                for name in &written.0 {
                    let place = self.place(name)?;
                    self.in_names.insert(place.start);
                    if self.depth == 1 {
                        self.in_result.insert(place.start);
                    }
                }
            }
        }
        let first = self.found.len();
        self.opaque = false;
        for item in &select.from {
            self.item(item, false)?;
        }
        let Some(condition) = &select.selection else {
            return Ok(());
        };
        // MySQL's answer is another one if the table is empty than if no row is met
        if self.row_comparisons > 0 {
            return Ok(());
        }
        let offset = self.planner.offset(select.select_token.0.span);
        let start = self.planner.token_at(offset)?;
        let clauses = self.planner.clauses(start)?;
        let place = clauses.behind(clauses.filter);
        self.conditions(condition, place, first);
        Ok(())
    }

    /// Gives the conditions that stand alone beside AND to the references that they are about, of
    /// those from `first` on.
    fn conditions(&mut self, condition: &Expr, place: Range<usize>, first: usize) {
        if self.planner.reads_otherwise(place.clone()) {
            return;
        }
        let Ok(conjuncts) = self.planner.conjuncts(condition, place) else {
            return;
        };
        let (tokens, sql) = (&self.planner.tokens, self.planner.sql());
        let merges = |t: &Token| t.is_word(sql, "using") || t.is_word(sql, "natural");
        self.opaque |= tokens.iter().any(merges);
        for (conjunct, place) in conjuncts {
            for at in first..self.found.len() {
                if !self.found[at].optional
                    && let Some(text) = self.pushed(conjunct, &place, first, at)
                {
                    self.found[at].conditions.push(text);
                    break;
                }
            }
        }
    }

    /// A condition for the server, if it is about this reference alone and the server can decide
    /// it.
    fn pushed(
        &mut self,
        conjunct: &Expr,
        place: &Range<usize>,
        first: usize,
        at: usize,
    ) -> Option<Text> {
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
        // a bare name has to be this reference's, and nobody else's
        let bare = |name: &str| {
            let holders = self.found[first..].iter();
            let has = |r: &&Reference| r.table.column(name).is_some();
            !self.opaque && holders.filter(has).count() == 1
        };
        if !pushable::is_pushable(self.planner, conjunct, &scope, &bare) {
            return None;
        }
        self.planner.tried(|planner| {
            if planner.narrows(conjunct, &scope)? {
                // the candidates: the engine has the whole condition
                let text = planner.candidates(conjunct, place.clone(), &scope)?;
                planner.check_judged_in(place.clone())?;
                return Ok(text);
            }
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
                if !partitions.is_empty() {
                    return NotUnderstood::Clause("PARTITION").refuse();
                }
                let alias = alias.as_ref().map(|a| a.name.value.clone());
                let at = self.found.len();
                self.reference(name, alias, optional)?;
                if index_hints.is_empty() {
                    return Ok(());
                }
                // a part of WITH has no index
                let Some(found) = self.found.get_mut(at) else {
                    return NotUnderstood::IndexHint.refuse();
                };
                found.hints = Some(hints_behind(self.planner, found, index_hints.len())?);
                Ok(())
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => self.item(table_with_joins, optional),
            TableFactor::Table { .. } | TableFactor::NestedJoin { .. } => {
                NotUnderstood::PartOf("a part", "FROM").refuse()
            }
            // others are walked through by themselves
            _ => {
                self.opaque = true;
                Ok(())
            }
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
            _ => return NotUnderstood::NameOf("a table").refuse(),
        };
        let known = match &database {
            Some(database) => self.planner.request.catalog.table(database, table),
            None => Known::Absent,
        };
        let lower = folded(table);
        let is_named = parts.len() == 1 && self.named.contains(&lower);
        if is_named && !self.visible.iter().any(|names| names.contains(&lower)) {
            return refuse(
                &errors::AMBIGUOUS,
                format!("{table}, a part of WITH somewhere else"),
            );
        }
        match known {
            Known::Table(_) if is_named => refuse(
                &errors::AMBIGUOUS,
                format!("{table}, a table and a part of WITH"),
            ),
            _ if is_named || (parts.len() == 1 && table.eq_ignore_ascii_case("dual")) => {
                self.of_named += 1;
                self.opaque = true;
                let name = folded(table);
                self.repeats |= self.opens.contains(&name) && !self.met.insert(name);
                Ok(())
            }
            Known::Table(table) => {
                let system = |s: &str| table.database.eq_ignore_ascii_case(s);
                if SYSTEM.iter().any(|s| system(s)) {
                    return NotUnderstood::SystemTable.refuse();
                }
                if let Some(reason) = &table.damaged {
                    let about = format!("{}.{} ({reason})", table.database, table.name);
                    return refuse(&errors::DAMAGED, about);
                }
                let names_column = self.in_names.contains(&place.start);
                let names_result = self.in_result.contains(&place.start);
                self.found.push(Reference {
                    names_column,
                    names_result,
                    table,
                    alias,
                    name: place,
                    conditions: Vec::new(),
                    in_derived: self.derived > 0,
                    hints: None,
                    lock: self
                        .locks
                        .as_ref()
                        .and_then(|locks| locks.last().copied())
                        .unwrap_or(""),
                    optional,
                    written: Vec::new(),
                });
                Ok(())
            }
            _ => NotUnderstood::UnknownTable(table.clone()).refuse(),
        }
    }

    /// The tokens of a name.
    fn place(&self, name: &ObjectName) -> Planned<Range<usize>> {
        let mut tokens = Vec::new();
        for part in &name.0 {
            let Some(ident) = part.as_ident() else {
                return NotUnderstood::Name.refuse();
            };
            tokens.push(self.planner.token_at(self.planner.offset(ident.span))?);
        }
        match (tokens.first(), tokens.last()) {
            (Some(first), Some(last)) => Ok(*first..last + 1),
            _ => NotUnderstood::Name.refuse(),
        }
    }
}
