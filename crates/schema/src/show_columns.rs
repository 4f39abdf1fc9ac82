//! Rows of SHOW COLUMNS (DESCRIBE) and SHOW INDEX.

use std::borrow::Cow;

use onionskin_value::Family;

use crate::{
    computed::{extra, time_fraction},
    ddl::gram_index_name,
    display::{Dialect, default_cell},
    folding::same_name,
    prefix::{self, prefix_length},
    show_create::{is_gram, literal_default, logical_name, names_gram},
    table::Table,
};

/// How MySQL begins the names of the columns that it makes for indexes over expressions. Of
/// temporary tables it shows them.
const HIDDEN: &str = "!hidden!";

/// Whether this row of SHOW COLUMNS is about a column that MySQL has made for an index over an
/// expression. Nobody can name it in a statement.
pub fn is_hidden_column(name: &str, extra: &str) -> bool {
    name.starts_with(HIDDEN) && extra.contains("GENERATED")
}

/// Whether MySQL has made a column of this name for the index on a protected column's grams:
/// `!hidden!index!part!number`.
fn is_of_gram_index(name: &str, table: &Table) -> bool {
    let index = name
        .strip_prefix(HIDDEN)
        .and_then(|rest| rest.split_once('!'));
    let mut protected = table.protected_columns();
    index.is_some_and(|(index, _)| {
        protected.any(|(_, protection)| gram_index_name(protection.column_id) == index)
    })
}

/// A cell of a row, NULL as `None`.
pub type Cell<'a> = Option<Cow<'a, str>>;

/// The logical row for a row of SHOW COLUMNS (`Field, Type, Null, Key, Default, Extra`) or SHOW
/// FULL COLUMNS (`Field, Type, Collation, Null, Key, Default, Extra, Privileges, Comment`); `None`
/// if it is to be left out.
pub fn show_columns_row<'a>(
    row: Vec<Cell<'a>>,
    table: &Table,
    dialect: impl Into<Dialect>,
) -> Option<Vec<Cell<'a>>> {
    let dialect = dialect.into();
    let field = row.first().and_then(|cell| cell.as_deref());
    let Some(column) = field.and_then(|name| table.owner_of(name)) else {
        return (!field.is_some_and(|name| is_of_gram_index(name, table))).then_some(row);
    };
    let is_sealed = field
        .zip(column.enc_name())
        .is_some_and(|(field, enc)| same_name(field, enc));
    if !is_sealed {
        return None;
    }
    let full = row.len() > 6;
    // The columns behind Type move by one for Collation.
    let shift = usize::from(full);
    let sql_type = column.sql_type.as_ref()?;
    let mut cells = vec![
        (0, Some(column.name.clone())),
        (1, Some(column.type_text.clone())),
        (3 + shift, Some(column.key.as_column_key().to_owned())),
        (
            4 + shift,
            default_cell(literal_default(column), sql_type, dialect),
        ),
    ];
    let shown_extra = row.get(5 + shift).and_then(|cell| cell.as_deref());
    let extra = extra(
        column.computed_default().is_some(),
        time_fraction(sql_type).filter(|_| column.on_update),
        shown_extra.unwrap_or_default(),
        dialect.family,
    );
    // of a temporary table, MySQL shows NULL in the place of nothing, as a word
    if !extra.is_empty() || !matches!(shown_extra, None | Some("NULL")) {
        cells.push((5 + shift, Some(extra)));
    }
    if full {
        cells.push((
            2,
            sql_type
                .collation
                .map(|collation| collation.name().to_owned())
                .filter(|name| name != "binary" || dialect.family == Family::MariaDb),
        ));
        cells.push((8, Some(column.comment.clone())));
    }
    let mut row = row;
    for (at, text) in cells {
        if let Some(cell) = row.get_mut(at) {
            *cell = text.map(Cow::Owned);
        }
    }
    Some(row)
}

/// The logical row for a row of SHOW INDEX; `None` if it is to be left out: the index on a column's
/// grams is ours, all others stand for one of the user's.
pub fn show_index_row<'a>(mut row: Vec<Cell<'a>>, table: &Table) -> Option<Vec<Cell<'a>>> {
    const KEY_NAME: usize = 2;
    const COLUMN_NAME: usize = 4;
    const SUB_PART: usize = 7;
    const INDEX_COMMENT: usize = 12;
    /// MySQL's alone. MariaDB has IGNORED in its place.
    const EXPRESSION: usize = 14;
    let cell = |at: usize| row.get(at).and_then(|cell| cell.as_deref());
    let ours = match cell(COLUMN_NAME) {
        Some(name) => is_gram(name, table),
        None => cell(EXPRESSION).is_some_and(|text| names_gram(text, table)),
    };
    if ours {
        return None;
    }
    if let Some(comment) = cell(INDEX_COMMENT)
        && comment.starts_with(prefix::MARK)
    {
        let length = cell(COLUMN_NAME).and_then(|name| prefix_length(comment, name));
        if let Some(length) = length {
            row[SUB_PART] = Some(Cow::Owned(length.to_string()));
        }
        row[INDEX_COMMENT] = Some(Cow::Borrowed(""));
    }
    for at in [KEY_NAME, COLUMN_NAME] {
        if let Some(cell) = row.get_mut(at) {
            let logical = cell
                .as_deref()
                .and_then(|name| logical_name(name, false, table));
            if let Some(name) = logical {
                *cell = Some(Cow::Owned(name));
            }
        }
    }
    Some(row)
}
