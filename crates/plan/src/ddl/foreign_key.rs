//! Foreign keys.
//!
//! The server compares equality tokens, so both columns need a join group in common. A row that is
//! deleted takes those that refer to it along as rows, which is sound. What would write the token
//! of a column and leave its sealed cell alone (ON UPDATE CASCADE, SET NULL) is not.

use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::{NewColumn, Table, TableName, TokenKind, same_name};
use onionskin_value::SqlType;

use super::reader::Reader;
use super::{DdlPiece, Pieces, Reference};
use crate::errors::{self, NotUnderstood, Refusal};
use crate::planner::{Known, Planned, quoted, refuse};
use crate::scope::position;

/// The table that is defined or altered.
pub(super) struct ThisTable<'s> {
    /// The names of the database and of the table.
    pub(super) names: (&'s str, &'s str),
    /// Its protected column of a name.
    pub(super) column: &'s dyn Fn(&str) -> Option<Side>,
}

/// A protected column of a foreign key, on either side.
pub(super) struct Side {
    /// The column of its tokens; `None` if it has none.
    token: Option<String>,
    kind: Option<TokenKind>,
    group: Option<String>,
    ty: SqlType,
    /// Key and suite; those of a new column are chosen later.
    key: Option<(u16, u8)>,
    /// Which of the new columns it is.
    new: Option<usize>,
    reference: Option<(Arc<Table>, usize)>,
}

impl Side {
    /// Of a new column.
    pub(super) fn new(column: &NewColumn, index: usize) -> Self {
        let names = column.names();
        let token = names.equality_column();
        Side {
            token: token.map(|(name, _)| name.to_owned()),
            kind: token.map(|(_, kind)| kind),
            group: column.capabilities.join.clone(),
            ty: column.sql_type,
            key: None,
            new: Some(index),
            reference: None,
        }
    }

    /// Of a column that exists; `None` if it is not protected.
    pub(super) fn existing(table: &Arc<Table>, index: usize) -> Option<Self> {
        let column = &table.columns[index];
        let protection = column.protection.as_ref()?;
        let token = column.equality_column();
        Some(Side {
            token: token.map(|(name, _)| name.to_owned()),
            kind: token.map(|(_, kind)| kind),
            group: protection.capabilities.join.clone(),
            ty: protection.sql_type,
            key: Some((protection.key_id, protection.suite)),
            new: None,
            reference: Some((Arc::clone(table), index)),
        })
    }

    /// Whether the tokens of the two can be compared by the server.
    fn fits(&self, other: &Side) -> bool {
        let same_key = match (self.key, other.key) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        };
        self.group.is_some()
            && self.group == other.group
            && self.ty.without_width() == other.ty.without_width()
            && same_key
            && self.kind.is_some()
            && self.kind == other.kind
    }

    fn piece(&self, out: &mut Pieces) {
        match (self.new, &self.token) {
            (Some(new), _) => out.0.push(DdlPiece::IndexColumn(new)),
            (None, Some(token)) => out.sql(quoted(token).as_bytes()),
            (None, None) => {}
        }
    }
}

/// Whether an element of a definition is a foreign key.
pub(super) fn begins(reader: &Reader, element: &Range<usize>) -> bool {
    let mut r = Reader::over(reader.request, reader.tokens, element.clone());
    if r.eat("constraint") && !r.is("foreign") {
        r.name();
    }
    r.is("foreign")
}

/// A foreign key, read.
struct ForeignKey {
    /// Its columns' tokens, one range for each column.
    columns: Vec<Range<usize>>,
    /// Where their list begins and ends, parentheses left out.
    list: Range<usize>,
    database: Option<String>,
    table: String,
    others: Vec<Range<usize>>,
    other_list: Range<usize>,
}

fn read(reader: &Reader, element: &Range<usize>) -> Planned<ForeignKey> {
    let bad = || Refusal::from(NotUnderstood::Clause("FOREIGN KEY"));
    let mut r = Reader::over(reader.request, reader.tokens, element.clone());
    while !r.done() && !r.token().is_some_and(|t| t.is(b'(')) {
        r.at += 1;
    }
    let list = r.parenthesized().ok_or_else(bad)?;
    if !r.eat("references") {
        return Err(bad());
    }
    let (database, table) = r.table().ok_or_else(bad)?;
    let other_list = r.parenthesized().ok_or_else(bad)?;
    let (columns, others) = (reader.split(list.clone()), reader.split(other_list.clone()));
    if columns.len() != others.len() {
        return Err(bad());
    }
    Ok(ForeignKey {
        columns,
        list,
        database,
        table,
        others,
        other_list,
    })
}

/// The protected column of the other table that a name means.
fn referred(reader: &Reader, key: &ForeignKey, this: &ThisTable, name: &str) -> Option<Side> {
    let other = key.database.as_deref()?;
    let (database, table) = this.names;
    if same_name(other, database) && same_name(&key.table, table) {
        return (this.column)(name);
    }
    match reader.request.catalog.table(other, &key.table) {
        Known::Table(t) => Side::existing(&t, position(&t, name)?),
        _ => None,
    }
}

/// Whether a column stays plaintext where only a wildcard of `[protect]` matches it: a foreign key
/// among `elements` has it refer to a plaintext column, which is so by right. `is_plain` tells that
/// of the columns of this table.
pub(super) fn refers_to_plaintext(
    reader: &Reader,
    elements: impl Iterator<Item = Range<usize>>,
    names: (&str, &str),
    column: &str,
    is_plain: impl Fn(&str) -> bool,
) -> bool {
    let name_at =
        |range: &Range<usize>| Reader::over(reader.request, reader.tokens, range.clone()).name();
    for element in elements.filter(|element| begins(reader, element)) {
        // what cannot be read is refused where it is written
        let Ok(key) = read(reader, &element) else {
            continue;
        };
        for (own, other) in key.columns.iter().zip(&key.others) {
            let (Some(own), Some(other)) = (name_at(own), name_at(other)) else {
                continue;
            };
            let Some(database) = key.database.as_deref().filter(|_| same_name(&own, column)) else {
                continue;
            };
            if same_name(database, names.0) && same_name(&key.table, names.1) {
                if is_plain(&other) {
                    return true;
                }
            } else if let Known::Table(table) = reader.request.catalog.table(database, &key.table)
                && is_plain_by_right(reader, &table, &other)
            {
                return true;
            }
        }
    }
    false
}

/// The tables that foreign keys among `elements` refer to.
pub(super) fn others(
    reader: &Reader,
    elements: impl Iterator<Item = Range<usize>>,
) -> impl Iterator<Item = TableName> {
    let keys = elements.filter(|element| begins(reader, element));
    keys.filter_map(|element| {
        let key = read(reader, &element).ok()?;
        Some(TableName::new(key.database?, key.table))
    })
}

/// Whether a table's column is plaintext, and `[protect]` leaves it so.
pub(super) fn is_plain_by_right(reader: &Reader, table: &Table, column: &str) -> bool {
    let (database, name) = (&table.database, &table.name);
    let Some(column) = table.column(column) else {
        return false;
    };
    let policy = reader.request.policy;
    let found = policy.capabilities(database, name, &column.name, column.surrogate());
    let is_sound = table.damaged.is_none() && !table.view;
    is_sound && column.protection.is_none() && found.is_ok_and(|found| found.is_none())
}

/// New columns with `eq` join the group of the columns that they refer to, unless they name one.
pub(super) fn inherit_groups<'k>(
    reader: &Reader,
    keys: impl Iterator<Item = &'k Range<usize>>,
    names: (&str, &str),
    new_columns: &mut [NewColumn],
) -> Planned<()> {
    let this = ThisTable {
        names,
        column: &|_| None,
    };
    for element in keys {
        let key = read(reader, element)?;
        for (column, other) in key.columns.iter().zip(&key.others) {
            let name = |range: &Range<usize>| {
                Reader::over(reader.request, reader.tokens, range.clone()).name()
            };
            let (Some(name), Some(other)) = (name(column), name(other)) else {
                continue;
            };
            let group = referred(reader, &key, &this, &other).and_then(|o| o.group);
            let found = new_columns
                .iter_mut()
                .find(|c| c.name.eq_ignore_ascii_case(&name));
            if let (Some(column), Some(group)) = (found, group)
                && column.capabilities.eq
                && column.capabilities.join.is_none()
            {
                column.capabilities.join = Some(group);
            }
        }
    }
    Ok(())
}

/// Rewrites a foreign key: protected columns on both sides, or on neither.
pub(super) fn foreign_key(
    reader: &Reader,
    element: &Range<usize>,
    this: &ThisTable,
    references: &mut Vec<Reference>,
    out: &mut Pieces,
) -> Planned<()> {
    let key = read(reader, element)?;
    let name_at =
        |range: &Range<usize>| Reader::over(reader.request, reader.tokens, range.clone()).name();
    let mut sides = Vec::new();
    for (column, other) in key.columns.iter().zip(&key.others) {
        let (Some(column), Some(other)) = (name_at(column), name_at(other)) else {
            return NotUnderstood::Clause("FOREIGN KEY").refuse();
        };
        let pair = ((this.column)(&column), referred(reader, &key, this, &other));
        match &pair {
            (None, None) => {}
            (Some(a), Some(b)) if a.fits(b) => {
                if let (Some(column), Some((table, index))) = (a.new, &b.reference) {
                    references.push(Reference {
                        column,
                        table: Arc::clone(table),
                        index: *index,
                    });
                }
            }
            (Some(_), Some(_)) => {
                return refuse(&errors::OTHER_KEY, format!("{column} and {other}"));
            }
            (Some(_), None) => {
                let about = format!(
                    "from the protected column {column} to {other}, which is not protected"
                );
                return refuse(&errors::FOREIGN_KEY, about);
            }
            (None, Some(_)) => {
                let about = format!(
                    "to the protected column {other} from {column}, which is not protected"
                );
                return refuse(&errors::FOREIGN_KEY, about);
            }
        }
        sides.push(pair);
    }
    if sides.iter().any(|(a, _)| a.is_some()) {
        check_actions(reader, key.other_list.end..element.end)?;
    }
    out.sql(reader.text(element.start..key.list.start));
    list(
        reader,
        &key.columns,
        sides.iter().map(|(a, _)| a.as_ref()),
        out,
    );
    out.sql(reader.text(key.list.end..key.other_list.start));
    list(
        reader,
        &key.others,
        sides.iter().map(|(_, b)| b.as_ref()),
        out,
    );
    out.sql(reader.text(key.other_list.end..element.end));
    Ok(())
}

fn list<'s>(
    reader: &Reader,
    columns: &[Range<usize>],
    sides: impl Iterator<Item = Option<&'s Side>>,
    out: &mut Pieces,
) {
    for (n, (range, side)) in columns.iter().zip(sides).enumerate() {
        if n > 0 {
            out.sql(b", ");
        }
        match side {
            Some(side) => side.piece(out),
            None => out.sql(reader.text(range.clone())),
        }
    }
}

/// What happens to the rows that refer to one: nothing may be written into a protected column.
fn check_actions(reader: &Reader, range: Range<usize>) -> Planned<()> {
    let mut r = Reader::over(reader.request, reader.tokens, range);
    while !r.done() {
        if r.eat("on") {
            let update = r.eat("update");
            if !update && !r.eat("delete") {
                return NotUnderstood::Clause("FOREIGN KEY … ON").refuse();
            }
            let what = if update { "UPDATE" } else { "DELETE" };
            let sound = r.is("restrict") || r.is("no") || (!update && r.is("cascade"));
            if !sound {
                let action = r.name().unwrap_or_default();
                let about = format!("ON {what} {} of a foreign key", action.to_ascii_uppercase());
                return refuse(&errors::CASCADE, about);
            }
        }
        r.at += 1;
    }
    Ok(())
}

/// `REFERENCES other (column)` in the definition of a column that is not protected.
pub(super) fn in_column(reader: &Reader, element: &Range<usize>, this: &ThisTable) -> Planned<()> {
    let mut r = Reader::over(reader.request, reader.tokens, element.clone());
    while !r.done() && !r.eat("references") {
        r.at += 1;
    }
    if r.done() {
        return Ok(());
    }
    let Some((database, table)) = r.table() else {
        return NotUnderstood::Clause("REFERENCES").refuse();
    };
    let list = r.parenthesized().unwrap_or(r.at..r.at);
    let key = ForeignKey {
        columns: Vec::new(),
        list: list.clone(),
        database,
        table,
        others: Vec::new(),
        other_list: list.clone(),
    };
    for part in reader.split(list) {
        let name = Reader::over(reader.request, reader.tokens, part).name();
        if let Some(name) = name
            && referred(reader, &key, this, &name).is_some()
        {
            let about = format!("to the protected column {name} from one that is not");
            return refuse(&errors::FOREIGN_KEY, about);
        }
    }
    Ok(())
}
