//! `CREATE VIEW` and `ALTER VIEW` over protected tables.
//!
//! The server keeps a view of physical columns: sealed cells under their own names, and behind all columns of the client's the companions. A server shows
//! the comments of a view's columns, which are those of the table's; so every proxy reads the view's logical columns from the view itself, as it does for
//! tables, and what tiers 1 to 3 do with a table they do with the view. No value stands in its text: a constant that a
//! protected column is compared with would be a token there, which nothing could bring up to date when keys change.
//!
//! What a view can be is what the server does alone, and with protected columns in its result, without groups; it is read only. A view that shows plain
//! columns and counts only is the server's own.

use std::sync::Arc;

use onionskin_schema::{Default as ColumnDefault, DefaultLiteral, Table};
use sqlparser::ast::{
    Expr, GroupByExpr, SelectItem, SetExpr, Statement, TableFactor, TableWithJoins,
};

use super::Decided;
use super::rows::parse;
use crate::ddl::{Ddl, DdlPiece};
use crate::errors::{self, Refusal};
use crate::lex::Token;
use crate::plan::{Action, ColumnUse, Described, OpenFrom, Piece};
use crate::planner::{Known, Planned, Planner, Request, quoted, refuse};
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

/// `CREATE … VIEW name AS SELECT …`, `ALTER … VIEW name AS SELECT …`.
pub(super) fn create_view<'a>(
    request: &'a Request<'a>,
    tokens: Vec<Token>,
    near: Vec<Arc<Table>>,
) -> Planned<Decided<'a>> {
    let sql = request.sql;
    let word = |w: &str| tokens.iter().position(|t| t.is_word(sql, w));
    let (Some(view), Some(at)) = (word("view"), word("as")) else {
        return refuse(&errors::NOT_UNDERSTOOD, "a view");
    };
    let names_columns = tokens[view..at].iter().any(|t| t.is(b'('));
    let select = at + 1;
    if !tokens.get(select).is_some_and(|t| t.is_word(sql, "select")) {
        return refuse(&errors::VIEW, "a view of another form than AS SELECT");
    }
    let blank = tokens[select].start;
    let mut planner = Planner::new(request, tokens[select..].to_vec(), near)?;
    if !planner.parse_text.get(..blank).is_some_and(str::is_ascii) {
        return refuse(&errors::NOT_UNDERSTOOD, "a view's name beyond ASCII");
    }
    planner
        .parse_text
        .replace_range(..blank, &" ".repeat(blank));
    let text = physical(&mut planner, names_columns)?;
    let mut out = sql[..blank].to_vec();
    for piece in text {
        match piece {
            Piece::Sql(part) => out.extend_from_slice(&part),
            Piece::Literal(index) => {
                let literal = &request.template.literals[index];
                out.extend_from_slice(literal.text(sql));
            }
            Piece::Slot(_) | Piece::Rows { .. } | Piece::Indexed(_) => {
                let about = "a constant that a protected column is compared with";
                return refuse(&errors::VIEW, about);
            }
        }
    }
    let ddl = Ddl {
        pieces: vec![DdlPiece::Sql(out)],
        new_columns: Vec::new(),
        table: None,
        references: Vec::new(),
        temporary: None,
    };
    Ok((Action::Define(Box::new(ddl)), None))
}

/// The text of the view's query with physical columns and, behind all others, companions.
fn physical(planner: &mut Planner, names_columns: bool) -> Planned<Vec<Piece>> {
    let refused = |about: &str| Refusal::new(&errors::VIEW, about.to_string());
    let Statement::Query(query) = parse(&planner.parse_text)? else {
        return refuse(&errors::NOT_UNDERSTOOD, "a view");
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
    if names_columns && is_shown {
        let about =
            "a list of column names with a protected column in the result; name them in the SELECT";
        return Err(refused(about));
    }
    let mut columns: Vec<ColumnUse> = Vec::new();
    for item in &given.items {
        let Some((index, from)) = item.open else {
            if item.name.is_some() {
                // the server would name the column after physical ones
                return Err(refused(
                    "an expression over a protected column without an alias",
                ));
            }
            continue;
        };
        let column = planner.columns[index].clone();
        if from != OpenFrom::Sealed || item.computed {
            return Err(refused("an aggregate"));
        }
        let keeps_name = item
            .name
            .as_ref()
            .is_some_and(|n| n.eq_ignore_ascii_case(&column.column().name));
        if !keeps_name {
            return Err(refused(&format!(
                "column {} under another name",
                column.path()
            )));
        }
        columns.push(column);
    }
    let shown: Vec<&str> = select.projection.iter().filter_map(name_of).collect();
    let twice = |c: &ColumnUse| {
        let name = &c.column().name;
        let same = shown.iter().filter(|n| n.eq_ignore_ascii_case(name));
        same.count() > 1
    };
    if columns.iter().any(twice) {
        return Err(refused("two columns of one name"));
    }
    let Some(first) = columns.first() else {
        if !grouped {
            check_defaults(&planner.near, &columns)?;
        }
        return planner.assemble();
    };
    if columns
        .iter()
        .any(|c| c.table.table_id != first.table.table_id)
    {
        return Err(refused("protected columns of two tables"));
    }
    let id = first.table.table_id;
    let mut times = 0;
    for item in &select.from {
        times += count(planner, item, id)?;
    }
    if times != 1 {
        return Err(refused("a protected table joined with itself"));
    }
    let companions: Vec<String> = columns
        .iter()
        .filter_map(|c| c.column().protection.as_ref())
        .flat_map(|p| p.names.companions())
        .map(|name| format!(", {}", quoted(name)))
        .collect();
    if companions.is_empty() {
        check_defaults(&planner.near, &columns)?;
    }
    let start = planner.token_at(planner.offset(select.select_token.0.span))?;
    let clauses = planner.clauses(start)?;
    let Some(last) = clauses.items.last() else {
        return refuse(&errors::NOT_UNDERSTOOD, "the select list");
    };
    let end = planner.bytes_of(last).end;
    planner.edit_sql(end..end, companions.concat());
    planner.assemble()
}

/// A view without companions is not known as one, so rows can be inserted through it: columns that it leaves out must not have a default that the
/// proxy would have to fill in.
fn check_defaults(near: &[Arc<Table>], selected: &[ColumnUse]) -> Planned<()> {
    for table in near {
        for (column, _) in table.protected_columns() {
            let is_selected = selected
                .iter()
                .any(|s| Arc::ptr_eq(&s.table, table) && s.column().name == column.name);
            let filled = matches!(
                &column.default,
                Some(ColumnDefault::Literal(DefaultLiteral::Value(_)))
            );
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
