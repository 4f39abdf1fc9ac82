//! `CREATE VIEW` and `ALTER VIEW` over protected tables.
//!
//! The server keeps a view of physical columns: sealed cells under the names that follow from the
//! client's, and behind all columns of the client's the companions, and what says how the table
//! calls a column that has another name in the view ([`Alias`]). A server shows the comments of a
//! view's columns, which are those of the table's; so every proxy reads the view's logical columns
//! from the view itself, as it does for tables, and what tiers 1 to 3 do with a table they do with
//! the view. A constant that a protected column is compared with is a token there, as it is in a
//! query's text; beside it stands, sealed, what the client wrote ([`DdlPiece::Constant`]).
//!
//! What a view can be is what the server does alone, and with protected columns in its result,
//! without groups. What is written through it is looked at in `write/view.rs`. A view that shows
//! plain columns and counts only is the server's own.

use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::{
    Alias, Default as ColumnDefault, DefaultLiteral, PhysicalNames, SchemaError, Table, same_name,
};
use onionskin_value::Kind;
use sqlparser::ast::{
    Expr, GroupByExpr, Select, SelectItem, SetExpr, Statement, TableFactor, TableWithJoins,
};

use super::Decided;
use crate::ddl::{AliasMarks, Ddl, DdlPiece};
use crate::errors::{self, NotUnderstood, Refusal};
use crate::lex::Token;
use crate::plan::{
    Action, ColumnUse, Described, OpenFrom, Piece, Purpose, ResultItem, Slot, Source, Text,
};
use crate::planner::{Known, Planned, Planner, Request, identifier, quoted, refuse};
use crate::query::Mode;

/// The name that an item of a select list gives its column, where it is not the item's text.
fn name_of(item: &SelectItem) -> Option<&str> {
    Some(match item {
        SelectItem::ExprWithAlias { alias, .. } => alias.value.as_str(),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => name.value.as_str(),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last()?.value.as_str(),
        _ => return None,
    })
}

/// `CREATE … VIEW name [(a, b)] AS SELECT …`, `ALTER … VIEW name AS SELECT …`.
pub(super) fn create_view<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    // No view is the scratch engine's, which the errors of queries name as a way out.
    let of_queries = [
        &errors::EXPRESSION,
        &errors::EXPORT,
        &errors::GROUPING,
        &errors::UNION_OF_SEALED,
    ];
    defined(request, tokens, near).map_err(|refusal| match refusal.is_any(&of_queries) {
        true => refusal.under(&errors::VIEW),
        false => refusal,
    })
}

fn defined<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let sql = request.sql;
    let word = |w: &str| tokens.iter().position(|t| t.is_word(sql, w));
    crate::tenant::check_view(sql, &tokens, &near)?;
    let (Some(view), Some(at)) = (word("view"), word("as")) else {
        return NotUnderstood::View.refuse();
    };
    let list = column_list(sql, &tokens, view..at)?;
    let select = at + 1;
    if !tokens.get(select).is_some_and(|t| t.is_word(sql, "select")) {
        return refuse(&errors::VIEW, "a view of another form than AS SELECT");
    }
    let blank = tokens[select].start;
    let mut planner = Planner::new(request, tokens[select..].to_vec(), near)?;
    if !planner.parse_text.get(..blank).is_some_and(str::is_ascii) {
        return NotUnderstood::BeyondAscii("a view's name").refuse();
    }
    planner
        .parse_text
        .replace_range(..blank, &" ".repeat(blank));
    let query = physical(
        &mut planner,
        list.as_ref().map(|(_, names)| names.as_slice()),
    )?;
    let mut pieces = Vec::new();
    match (list, query.list) {
        (Some((place, _)), Some(named)) => {
            pieces.push(DdlPiece::Sql(sql[..place.start].to_vec()));
            pieces.push(DdlPiece::Sql(format!("({}", named.join(", ")).into_bytes()));
            pieces.extend(query.added.iter().map(|added| added.listed()));
            let rest = [b")", &sql[place.end..blank]].concat();
            pieces.push(DdlPiece::Sql(rest));
        }
        _ => pieces.push(DdlPiece::Sql(sql[..blank].to_vec())),
    }
    pieces.extend(text(&planner, query.items)?);
    pieces.extend(query.added.iter().map(|added| added.selected()));
    pieces.extend(text(&planner, query.rest)?);
    let ddl = Ddl {
        pieces,
        new_columns: Vec::new(),
        table: None,
        references: Vec::new(),
        temporary: None,
        rests_on_keys: false,
        kept_plain: Vec::new(),
        of_database: None,
    };
    // without constants, nothing of the plan is asked for its columns
    let has_constants = ddl
        .pieces
        .iter()
        .any(|p| matches!(p, DdlPiece::Constant(_)));
    Ok((
        Action::Define(Box::new(ddl)),
        has_constants.then_some(planner),
    ))
}

/// The list of column names behind a view's name: where it stands, and the names.
fn column_list(
    sql: &[u8],
    tokens: &[Token],
    head: Range<usize>,
) -> Planned<Option<(Range<usize>, Vec<String>)>> {
    let head = &tokens[head];
    let Some(open) = head.iter().position(|t| t.is(b'(')) else {
        return Ok(None);
    };
    let bad = || Refusal::from(NotUnderstood::PartOf("the column list", "a view"));
    let Some((close, inside)) = head[open + 1..].split_last() else {
        return Err(bad());
    };
    if !close.is(b')') {
        return Err(bad());
    }
    let mut names = Vec::new();
    for part in inside.split(|t| t.is(b',')) {
        let [name] = part else { return Err(bad()) };
        names.push(identifier(sql, name).ok_or_else(bad)?);
    }
    Ok(Some((head[open].start..close.end, names)))
}

/// A part of a view's text.
fn text(planner: &Planner, pieces: Text) -> Planned<Vec<DdlPiece>> {
    let request = planner.request;
    let mut out = Vec::new();
    for piece in pieces {
        out.push(match piece {
            Piece::Sql(part) => DdlPiece::Sql(part),
            Piece::Literal(index) => {
                let literal = &request.template.literals[index];
                DdlPiece::Sql(literal.text(request.sql).to_vec())
            }
            Piece::Slot(slot) if may_stand(&planner.columns[slot.column], &slot) => {
                DdlPiece::Constant(slot)
            }
            Piece::Slot(_)
            | Piece::Present(_)
            | Piece::Tenant { .. }
            | Piece::Rows { .. }
            | Piece::Indexed(_) => {
                let about = "a constant that a protected column is compared with";
                return refuse(&errors::VIEW, about);
            }
        });
    }
    Ok(out)
}

/// Whether a constant means the same for every session that reads the view. A text is a moment in
/// the time zone of whoever reads.
fn may_stand(column: &ColumnUse, slot: &Slot) -> bool {
    let kind = column.column().sql_type.map(|ty| ty.kind);
    let is_moment = matches!(kind, Some(Kind::Timestamp { .. }));
    let is_compared = matches!(
        slot.purpose,
        Purpose::CompareEquality | Purpose::CompareOrder
    );
    !is_moment
        && is_compared
        && matches!(slot.source, Source::Literal { .. } | Source::Moment { .. })
}

/// A column that stands behind the client's.
enum Added {
    /// A companion: its name in the table, and in the view.
    Companion(String, String),
    /// What says how the table calls a column.
    Marks(AliasMarks),
}

impl Added {
    fn selected(&self) -> DdlPiece {
        match self {
            Added::Companion(name, alias) if name == alias => {
                DdlPiece::Sql(format!(", {}", quoted(name)).into_bytes())
            }
            Added::Companion(name, alias) => {
                let text = format!(", {} AS {}", quoted(name), quoted(alias));
                DdlPiece::Sql(text.into_bytes())
            }
            Added::Marks(marks) => DdlPiece::AliasMarks(marks.clone()),
        }
    }

    fn listed(&self) -> DdlPiece {
        match self {
            Added::Companion(_, alias) => {
                DdlPiece::Sql(format!(", {}", quoted(alias)).into_bytes())
            }
            Added::Marks(marks) => DdlPiece::AliasMarks(AliasMarks {
                listed: true,
                ..marks.clone()
            }),
        }
    }
}

/// A view's query for the server, in two parts: what is added stands between them.
struct Physical {
    items: Text,
    added: Vec<Added>,
    rest: Text,
    /// The list of columns, as far as they are the client's; `None` leaves it as it is.
    list: Option<Vec<String>>,
}

/// The columns of a view that are opened.
struct Opened {
    /// Each with its name, as the client knows it.
    columns: Vec<(ColumnUse, String)>,
    /// The view's list of columns, if it has one, with physical names.
    listed: Vec<String>,
}

impl Opened {
    /// `list` are the names in the view's list of columns, `names` those of its query.
    fn of(
        planner: &Planner,
        items: &[ResultItem],
        list: Option<&[String]>,
        names: &[Option<String>],
    ) -> Planned<Self> {
        let refused = |about: &str| Refusal::new(&errors::VIEW, about.to_owned());
        let (mut columns, mut listed) = (Vec::new(), Vec::new());
        for (n, item) in items.iter().enumerate() {
            let of_list = list.and_then(|list| list.get(n));
            let Some((index, from)) = item.open else {
                if item.name.is_some() {
                    // the server would name the column after physical ones
                    return Err(refused(
                        "an expression over a protected column without an alias",
                    ));
                }
                listed.extend(of_list.map(|name| quoted(name)));
                continue;
            };
            if from != OpenFrom::Sealed || item.computed {
                return Err(refused("an aggregate"));
            }
            let name = of_list.or(names[n].as_ref());
            let name = name.ok_or_else(|| refused("an alias between several stars"))?;
            listed.push(quoted(&format!("{name}$enc")));
            columns.push((planner.columns[index].clone(), name.clone()));
        }
        let others = (0..items.len()).filter(|&n| items[n].open.is_none());
        let others: Vec<&str> = others
            .filter_map(|n| list.map_or(names[n].as_deref(), |list| Some(list.get(n)?.as_str())))
            .collect();
        for (n, (_, name)) in columns.iter().enumerate() {
            let twice = columns[..n].iter().any(|(_, other)| same_name(other, name))
                || others.iter().any(|other| same_name(other, name));
            if twice {
                return Err(refused("two columns of one name"));
            }
        }
        Ok(Opened { columns, listed })
    }
}

/// Refuses protected columns of several tables, and of one that FROM names more than once.
fn check_one_table(
    planner: &Planner,
    from: &[TableWithJoins],
    columns: &[(ColumnUse, String)],
) -> Planned<()> {
    let Some((first, _)) = columns.first() else {
        return Ok(());
    };
    let id = first.table.table_id;
    if columns.iter().any(|(c, _)| c.table.table_id != id) {
        return refuse(&errors::VIEW, "protected columns of two tables");
    }
    let mut times = 0;
    for item in from {
        times += count(planner, item, id)?;
    }
    match times {
        1 => Ok(()),
        _ => refuse(&errors::VIEW, "a protected table joined with itself"),
    }
}

/// The view's query with physical columns and, behind all others, companions.
fn physical(planner: &mut Planner, list: Option<&[String]>) -> Planned<Physical> {
    let refused = |about: &str| Refusal::new(&errors::VIEW, about.to_string());
    let Statement::Query(query) = crate::parse::statement(&planner.parse_text)? else {
        return NotUnderstood::View.refuse();
    };
    let SetExpr::Select(select) = query.body.as_ref() else {
        return Err(refused("a set operation"));
    };
    let grouped = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
        GroupByExpr::All(_) => true,
    };
    let grouped = select.distinct.is_some() || grouped || select.having.is_some();
    let given = planner.query(&query, None, Mode::Top)?;
    if given.finish.is_some() || !planner.computed.is_empty() {
        return Err(refused("what the server cannot do alone"));
    }
    let is_shown = given
        .items
        .iter()
        .any(|item| item.open.is_some() || matches!(item.described, Described::Aggregate { .. }));
    if grouped && is_shown {
        return Err(refused(
            "DISTINCT, GROUP BY or HAVING with a protected column in the result",
        ));
    }
    let start = planner.token_at(planner.offset(select.select_token.0.span))?;
    let clauses = planner.clauses(start)?;
    let Some(last) = clauses.items.last() else {
        return NotUnderstood::SelectList.refuse();
    };
    let end = planner.bytes_of(last).end;
    let origins = origins(&select.projection, given.items.len());
    let names = names(planner, select, &clauses.items, &given.items, &origins)?;
    if list.is_none() {
        name_as_written(planner, &clauses.items, &given.items, &origins, &names)?;
    }
    if let Some(list) = list.filter(|_| is_shown)
        && list.len() != names.len()
    {
        return refuse(&errors::COLUMN_COUNT, "a view's list of columns");
    }
    let Opened { columns, listed } = Opened::of(planner, &given.items, list, &names)?;
    if columns.is_empty() {
        // no server takes a row for a view of groups
        if !grouped && !counts(select) {
            check_defaults(&planner.near, &columns)?;
        }
        return parts(planner, end, Vec::new(), None);
    }
    check_one_table(planner, &select.from, &columns)?;
    let mut added = Vec::new();
    for (n, (column, name)) in columns.iter().enumerate() {
        if columns[..n].iter().any(|(c, _)| c.index == column.index) {
            return Err(refused("a protected column under two names"));
        }
        add(column, name, &mut added)?;
    }
    if added.is_empty() {
        check_defaults(&planner.near, &columns)?;
    }
    parts(planner, end, added, list.map(|_| listed))
}

/// Whether all rows are one group.
fn counts(select: &Select) -> bool {
    const AGGREGATES: [&str; 5] = ["count", "sum", "min", "max", "avg"];
    select.projection.iter().any(|item| {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            return false;
        };
        let Expr::Function(call) = expr else {
            return false;
        };
        let name = call.name.to_string();
        call.over.is_none() && AGGREGATES.iter().any(|a| name.eq_ignore_ascii_case(a))
    })
}

/// The text up to the end of the select list, and what stands behind it.
fn parts(
    planner: &mut Planner,
    end: usize,
    added: Vec<Added>,
    list: Option<Vec<String>>,
) -> Planned<Physical> {
    planner.check_judged()?;
    let stop = planner.tokens.iter().rev().find(|t| !t.is(b';'));
    let stop = stop.map_or(end, |t| t.end);
    let start = planner.tokens.first().map_or(0, |t| t.start);
    Ok(Physical {
        items: planner.render(start..end)?,
        added,
        rest: planner.render(end..stop)?,
        list,
    })
}

/// Which item of the select list each column of the result comes from; `None` where that is a star,
/// or lies between two of them.
fn origins(projection: &[SelectItem], columns: usize) -> Vec<Option<usize>> {
    let is_star = |item: &SelectItem| {
        matches!(
            item,
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
        )
    };
    let first = projection.iter().position(is_star);
    let last = projection.iter().rposition(is_star);
    (0..columns)
        .map(|n| match (first, last) {
            (None, _) | (_, None) => Some(n),
            (Some(first), _) if n < first => Some(n),
            (_, Some(last)) => {
                // counted from the end
                let item = (n + projection.len()).checked_sub(columns)?;
                (item > last).then_some(item)
            }
        })
        .collect()
}

/// What the client calls each column; `None` where that is not known. Aliases of protected columns
/// become those of their sealed ones.
fn names(
    planner: &mut Planner,
    select: &Select,
    places: &[Range<usize>],
    items: &[ResultItem],
    origins: &[Option<usize>],
) -> Planned<Vec<Option<String>>> {
    let mut names = Vec::new();
    for (item, origin) in items.iter().zip(origins) {
        let written = origin.and_then(|at| Some((select.projection.get(at)?, places.get(at)?)));
        let name = match (&item.name, written) {
            (Some(name), _) => Some(name.clone()),
            (None, Some((written, _))) => name_of(written).map(str::to_owned),
            (None, None) => None,
        };
        if let (Some(_), Some((SelectItem::ExprWithAlias { alias, .. }, place))) =
            (item.open, written)
        {
            let at = place.end.checked_sub(1);
            let token = at.and_then(|at| planner.tokens.get(at)).copied();
            let is_alias = |t: &Token| planner.name_of(t).as_deref() == Some(&alias.value);
            let Some(token) = token.filter(is_alias) else {
                return refuse(&errors::VIEW, "an alias in this form");
            };
            if orders_by(planner, &alias.value) {
                return refuse(
                    &errors::VIEW,
                    "ORDER BY the alias of a protected column; name the column there",
                );
            }
            planner.edit_sql(
                token.start..token.end,
                quoted(&format!("{}$enc", alias.value)),
            );
        }
        names.push(name);
    }
    Ok(names)
}

/// A view's column has the letters in which its item names it, and not the table's. The server sees
/// the sealed column's name, so that gets an alias where the letters differ.
fn name_as_written(
    planner: &mut Planner,
    places: &[Range<usize>],
    items: &[ResultItem],
    origins: &[Option<usize>],
    names: &[Option<String>],
) -> Planned<()> {
    for ((item, origin), name) in items.iter().zip(origins).zip(names) {
        let (Some((index, _)), Some(_), Some(name)) = (item.open, &item.name, name) else {
            continue;
        };
        let sealed = format!("{name}$enc");
        if planner.columns[index].sealed() == sealed {
            continue;
        }
        let place = origin.and_then(|at| places.get(at)).cloned();
        let end = place.map(|place| planner.bytes_of(&place).end);
        let alias = format!(" AS {}", quoted(&sealed));
        if !end.is_some_and(|end| planner.append_to_edit(end, alias)) {
            return refuse(
                &errors::VIEW,
                "a protected column in other letters than the table's; give it an alias",
            );
        }
    }
    Ok(())
}

/// Whether the server would look for this name in ORDER BY.
fn orders_by(planner: &Planner, name: &str) -> bool {
    let sql = planner.sql();
    let order = planner
        .tokens
        .iter()
        .skip_while(|t| !t.is_word(sql, "order"));
    let left = order.filter(|t| !planner.edited(&(t.start..t.end)));
    left.filter_map(|t| planner.name_of(t))
        .any(|found| same_name(&found, name))
}

/// Adds what goes with a protected column under this name.
fn add(column: &ColumnUse, name: &str, added: &mut Vec<Added>) -> Planned<()> {
    let of_table = column.column();
    let (Some(protection), Some(table_id)) = (&of_table.protection, column.table.table_id) else {
        return refuse(&errors::INTERNAL, column.path());
    };
    let (sql_type, capabilities) = (&protection.sql_type, &protection.capabilities);
    let names = PhysicalNames::new(name, protection.column_id, sql_type, capabilities);
    let companions = protection.names.companions().zip(names.companions());
    added.extend(
        companions
            .map(|(of_table, of_view)| Added::Companion(of_table.to_owned(), of_view.to_owned())),
    );
    let original = protection.names.original();
    if original != name {
        let alias = Alias {
            name,
            original,
            ids: (table_id, protection.column_id),
        };
        let refused = |e: SchemaError| Refusal::new(&errors::VIEW, e.to_string());
        alias.check(&names).map_err(refused)?;
        added.push(Added::Marks(AliasMarks {
            name: name.to_owned(),
            original: original.to_owned(),
            ids: alias.ids,
            listed: false,
        }));
    }
    Ok(())
}

/// A view without companions is not known as one, so rows can be inserted through it: columns that
/// it leaves out must not have a default that the proxy would have to fill in.
fn check_defaults(near: &[Arc<Table>], selected: &[(ColumnUse, String)]) -> Planned<()> {
    for table in near {
        for (column, _) in table.protected_columns() {
            let is_selected = selected
                .iter()
                .any(|(s, _)| Arc::ptr_eq(&s.table, table) && s.column().name == column.name);
            let filled = matches!(
                &column.default,
                Some(ColumnDefault::Literal(
                    DefaultLiteral::Value(_) | DefaultLiteral::Expression(_)
                ))
            ) || column.on_update;
            if filled && !is_selected {
                let about = format!("a view without column {}, which has a default", column.name);
                return refuse(&errors::VIEW, about);
            }
        }
    }
    Ok(())
}

/// How often a part of FROM names the table with this id.
fn count(planner: &Planner, item: &TableWithJoins, id: Option<[u8; 8]>) -> Planned<usize> {
    let mut times = 0;
    let factors = std::iter::once(&item.relation).chain(item.joins.iter().map(|j| &j.relation));
    for factor in factors {
        times += match factor {
            TableFactor::Table { name, .. } => {
                let parts: Vec<&str> = name
                    .0
                    .iter()
                    .filter_map(|part| part.as_ident())
                    .map(|ident| ident.value.as_str())
                    .collect();
                let known = match parts.as_slice() {
                    [database, table] => planner.request.catalog.table(database, table),
                    [table] => match planner.request.settings.database.as_deref() {
                        Some(database) => planner.request.catalog.table(database, table),
                        None => Known::Absent,
                    },
                    _ => Known::Absent,
                };
                usize::from(matches!(known, Known::Table(t) if t.table_id == id))
            }
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => count(planner, table_with_joins, id)?,
            _ => return refuse(&errors::VIEW, "a derived table"),
        };
    }
    Ok(times)
}
