//! Views: those that are broken, and the tables behind others.

use onionskin_keys::KeySet;
use onionskin_plan::{BROKEN_VIEW, HIDDEN};
use onionskin_schema::{Base, ColumnRow, Table, catalog_query, view_source};

use super::names::literal;
use super::rows::{hidden, tables};
use crate::error::Outcome;
use crate::exchange::{ALL_ROWS, Rows, Server};
use crate::parts::settle_parts;

/// Views whose columns the server does not show, because what they select is gone (it warns of
/// that). They are no unprotected tables: what they select may be protected by now, so a statement
/// that names one must not go through with its constants.
pub(crate) fn broken_views(
    server: &mut Server,
    database: &str,
    names: &[&str],
) -> Outcome<Vec<Table>> {
    let each: Vec<String> = names
        .iter()
        .map(|name| {
            format!(
                "SELECT TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
                literal(database),
                literal(name)
            )
        })
        .collect();
    if each.is_empty() {
        return Ok(Vec::new());
    }
    let rows = server.rows(each.join(" UNION ALL ").as_bytes())?;
    let text = |cell: Option<&Option<Vec<u8>>>| {
        let bytes = cell.and_then(Option::as_deref).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    };
    let mut found = Vec::new();
    for row in &rows {
        let definition = text(row.get(1));
        // an account without SHOW VIEW does not see what it is about
        let ours = ["$enc", "$eq_", "$ord_", "$gram_"]
            .iter()
            .any(|s| definition.contains(s));
        let damage = match ours || definition.is_empty() {
            true => BROKEN_VIEW,
            false => HIDDEN,
        };
        found.push(Table {
            view: true,
            damaged: Some(damage.into()),
            ..hidden(database, &text(row.first()))
        });
    }
    Ok(found)
}

/// What writing through a view has to know of the table behind it, if the account may see that.
/// `columns` are the rows that the view was read from.
pub(crate) fn base(
    server: &mut Server,
    keys: &KeySet,
    view: &Table,
    columns: &Rows,
) -> Outcome<Option<Base>> {
    let question = format!(
        "SELECT CAST(VIEW_DEFINITION AS BINARY) FROM information_schema.VIEWS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} \
         AND IS_UPDATABLE = 'YES'",
        literal(&view.database),
        literal(&view.name)
    );
    let rows = server.rows((question + ALL_ROWS).as_bytes())?;
    let definition = rows.first().and_then(|row| row.first()?.as_deref());
    let source = definition
        .and_then(|text| std::str::from_utf8(text).ok())
        .and_then(view_source);
    let Some(mut source) = source else {
        return Ok(None);
    };
    // a view that was made with a list of names may have others in its text
    let mut names = physical_names(columns, view);
    names.sort_unstable();
    if names.len() != source.columns.len() {
        return Ok(None);
    }
    for ((name, _), (_, listed)) in source.columns.iter_mut().zip(names) {
        *name = listed;
    }
    let question = catalog_query(&source.database, &[&source.table]) + ALL_ROWS;
    let mut found = tables(&server.rows(question.as_bytes())?, keys)?;
    settle_parts(server, found.iter_mut())?;
    Ok(match found.as_slice() {
        [table] => Base::of(view, &source, table),
        _ => None,
    })
}

/// The names of a view's columns on the server, and their places.
fn physical_names(rows: &Rows, view: &Table) -> Vec<(u64, String)> {
    let mut names = Vec::new();
    for row in rows {
        let cells: Vec<Option<String>> = row
            .iter()
            .map(|cell| Some(String::from_utf8_lossy(cell.as_deref()?).into_owned()))
            .collect();
        let row = ColumnRow::of(&cells);
        if row.table_schema == view.database && row.table_name == view.name {
            names.push((row.ordinal_position, row.column_name.to_owned()));
        }
    }
    names
}
