//! Foreign keys.
//!
//! The server compares equality tokens, so both columns need a join group in common. A row that is
//! deleted takes those that refer to it along as rows, which is sound. What would write the token
//! of a column and leave its sealed cell alone (ON UPDATE CASCADE, SET NULL) is left out: the
//! server refuses the change instead, and the column's definition keeps the word (`KeyActions`).

use std::ops::Range;
use std::sync::Arc;

use onionskin_schema::{
    Capabilities, KeyAction, KeyActions, NewColumn, Surrogate, Table, TableName, TokenKind,
    same_name,
};
use onionskin_value::SqlType;

use super::reader::Reader;
use super::{DdlPiece, Pieces, Reference};
use crate::comparable::makes_same_tokens;
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
#[derive(Clone)]
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
            && makes_same_tokens(&self.ty, &other.ty, self.kind)
            && same_key
            && self.kind.is_some()
            && self.kind == other.kind
    }

    /// Why the tokens of the two cannot be compared, as far as the error's words do not say it.
    fn why_not(&self, other: &Side, name: &str) -> String {
        match () {
            () if other.ty.is_enumerated() => ": ENUM and SET have no join group".to_owned(),
            () if other.group.is_none() => format!(": {name} has no join group"),
            () if self.group == other.group
                && !makes_same_tokens(&self.ty, &other.ty, self.kind) =>
            {
                ": their types make other tokens".to_owned()
            }
            () => String::new(),
        }
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
    referred_in(reader, (key.database.as_deref()?, &key.table), this, name)
}

/// Whether the other table is not there, as the server will say.
fn is_missing(reader: &Reader, key: &ForeignKey, this: &ThisTable) -> bool {
    let Some(database) = key.database.as_deref() else {
        return false;
    };
    let catalog = reader.request.catalog;
    !is_same((database, &key.table), this.names)
        && matches!(catalog.table(database, &key.table), Known::Absent)
}

/// The same of a table by its names.
fn referred_in(reader: &Reader, other: (&str, &str), this: &ThisTable, name: &str) -> Option<Side> {
    if is_same(other, this.names) {
        return (this.column)(name);
    }
    match reader.request.catalog.table(other.0, other.1) {
        Known::Table(t) => Side::existing(&t, position(&t, name)?),
        _ => None,
    }
}

fn is_same(a: (&str, &str), b: (&str, &str)) -> bool {
    same_name(a.0, b.0) && same_name(a.1, b.1)
}

/// A column of a foreign key, and the one that it refers to.
pub(super) struct Link {
    /// This table's column.
    column: String,
    /// The other table.
    pub(super) table: TableName,
    /// Its column.
    other: String,
}

impl Link {
    fn table(&self) -> (&str, &str) {
        (&self.table.database, &self.table.name)
    }
}

/// The pairs of columns of all foreign keys among `elements`. What cannot be read is left out here,
/// and refused where it is written.
pub(super) fn links(reader: &Reader, elements: impl Iterator<Item = Range<usize>>) -> Vec<Link> {
    let name_at =
        |range: &Range<usize>| Reader::over(reader.request, reader.tokens, range.clone()).name();
    let mut links = Vec::new();
    // IF NOT EXISTS may leave a key out
    let is_made =
        |element: &Range<usize>| begins(reader, element) && !reader.says(element.clone(), "if");
    for element in elements.filter(is_made) {
        let Ok(key) = read(reader, &element) else {
            continue;
        };
        for (own, other) in key.columns.iter().zip(&key.others) {
            if let (Some(column), Some(other), Some(database)) =
                (name_at(own), name_at(other), key.database.as_deref())
            {
                links.push(Link {
                    column,
                    table: TableName::new(database, &key.table),
                    other,
                });
            }
        }
    }
    links
}

/// Whether a column of this name and type stays plaintext where only a wildcard of `[protect]`
/// matches it: by one of the links it refers to a plaintext column of the same type, which is so by
/// right. `names` are those of this table; `plain` says what type such a column of it has.
pub(super) fn refers_to_plaintext(
    reader: &Reader,
    links: &[Link],
    names: (&str, &str),
    (column, ty): (&str, Option<&SqlType>),
    plain: impl Fn(&str) -> Option<SqlType>,
) -> bool {
    let mut own = links.iter().filter(|link| same_name(&link.column, column));
    own.any(|link| {
        let (database, table) = link.table();
        let other = if is_same((database, table), names) {
            plain(&link.other)
        } else {
            match reader.request.catalog.table(database, table) {
                Known::Table(table) => plain_by_right(reader, &table, &link.other),
                _ => None,
            }
        };
        // where the types differ, no server keeps the key
        let same_type = |a: &SqlType, b: &SqlType| {
            let (a, b) = (a.without_width(), b.without_width());
            a.kind == b.kind && a.unsigned == b.unsigned
        };
        other.is_some_and(|other| ty.is_some_and(|ty| same_type(ty, &other)))
    })
}

/// Whether one of the links can be made if a protected column joins another group than it is in.
pub(super) fn has_to_join(reader: &Reader, links: &[Link], this: &ThisTable, column: &str) -> bool {
    let Some(own) = (this.column)(column) else {
        return false;
    };
    let mut links = links.iter().filter(|link| same_name(&link.column, column));
    links.any(|link| {
        let other = referred_in(reader, link.table(), this, &link.other);
        other.is_some_and(|other| {
            let joined = Side {
                group: other.group.clone(),
                key: None,
                ..own.clone()
            };
            own.group != other.group && joined.fits(&other)
        })
    })
}

/// The type of a table's column that is plaintext because the server makes its values, or those of
/// what it refers to; `None` of any other.
pub(super) fn plain_by_right(reader: &Reader, table: &Table, column: &str) -> Option<SqlType> {
    let (database, name) = (&table.database, &table.name);
    let column = table.column(column)?;
    let policy = reader.request.policy;
    let found = policy.capabilities(database, name, &column.name, column.surrogate());
    let is_sound = table.damaged.is_none() && !table.view && column.protection.is_none();
    let is_surrogate = column.surrogate() != Surrogate::No;
    let is_right = is_sound && is_surrogate && found.is_ok_and(|found| found.is_none());
    column.sql_type.filter(|_| is_right)
}

/// The group of what a new column refers to by the first link that has one.
pub(super) fn group_of_other(
    reader: &Reader,
    links: &[Link],
    this: &ThisTable,
    column: &str,
) -> Option<String> {
    let mut own = links.iter().filter(|link| same_name(&link.column, column));
    own.find_map(|link| referred_in(reader, link.table(), this, &link.other)?.group)
}

/// New columns with `eq` join the group of the columns that they refer to, unless they name one.
pub(super) fn inherit_groups(
    reader: &Reader,
    links: &[Link],
    names: (&str, &str),
    new_columns: &mut [NewColumn],
) {
    // one may refer to a column of this table that joins a group itself, by a key further down
    for _ in 0..new_columns.len() {
        let before: Vec<_> = groups_of(new_columns);
        for link in links {
            inherit_group(reader, link, names, new_columns);
        }
        if before == groups_of(new_columns) {
            break;
        }
    }
}

fn groups_of(columns: &[NewColumn]) -> Vec<Option<String>> {
    columns
        .iter()
        .map(|c| c.capabilities.join.clone())
        .collect()
}

fn inherit_group(reader: &Reader, link: &Link, names: (&str, &str), new_columns: &mut [NewColumn]) {
    let this = ThisTable {
        names,
        column: &|name| {
            let index = position_of(new_columns, name)?;
            Some(Side::new(&new_columns[index], index))
        },
    };
    let other = referred_in(reader, link.table(), &this, &link.other);
    let group = other.and_then(|other| other.group);
    if let (Some(column), Some(group)) = (position_of(new_columns, &link.column), group) {
        join(&mut new_columns[column].capabilities, group);
    }
}

fn position_of(columns: &[NewColumn], name: &str) -> Option<usize> {
    columns.iter().position(|c| same_name(&c.name, name))
}

/// Puts a new column into the group of what it refers to, unless its definition names another.
pub(super) fn join(capabilities: &mut Capabilities, group: String) {
    let is_free = capabilities.join.is_none() || capabilities.joins_key();
    if capabilities.has_whole_tokens() && is_free {
        capabilities.join = Some(group);
    }
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
            (Some(a), Some(b)) => {
                let why = a.why_not(b, &other);
                return refuse(&errors::OTHER_KEY, format!("{column} and {other}{why}"));
            }
            (Some(_), None) => {
                let about = format!(
                    "from the protected column {column} to {other}, which is not protected"
                );
                if !is_missing(reader, &key, this) {
                    return refuse(&errors::FOREIGN_KEY, about);
                }
                out.0.push(DdlPiece::MissingReference(about));
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
    let tail = key.other_list.end..element.end;
    match sides.iter().any(|(a, _)| a.is_some()) {
        true => put_tail(reader, tail, out)?,
        false => out.sql(reader.text(tail)),
    }
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

/// The columns of a foreign key, and its actions that the server cannot do over protected columns.
pub(super) struct Actions {
    pub(super) columns: Vec<String>,
    pub(super) actions: KeyActions,
    words: String,
}

impl Actions {
    /// Of an element that is a foreign key.
    pub(super) fn of(reader: &Reader, element: &Range<usize>) -> Planned<Self> {
        let key = read(reader, element)?;
        let name_at = |range: &Range<usize>| {
            Reader::over(reader.request, reader.tokens, range.clone()).name()
        };
        let columns: Option<Vec<String>> = key.columns.iter().map(name_at).collect();
        let tail = key.other_list.end..element.end;
        let words = String::from_utf8_lossy(reader.text(tail.clone())).into_owned();
        Ok(Self {
            columns: columns.ok_or(NotUnderstood::Clause("FOREIGN KEY"))?,
            actions: skipped(reader, tail)?.0,
            words: words.trim_start_matches([')', ' ']).to_ascii_uppercase(),
        })
    }

    /// Refuses actions that nothing can keep. `nullable`: whether each column is a protected one
    /// that allows NULL; `None` of one that is not protected.
    pub(super) fn check(&self, nullable: &[Option<bool>]) -> Planned<()> {
        let sets_null =
            self.actions.update == KeyAction::SetNull || self.actions.delete == KeyAction::SetNull;
        let why = match () {
            () if !self.actions.any() => return Ok(()),
            () if nullable.iter().any(Option::is_none) => "over unprotected columns as well",
            () if sets_null && nullable.contains(&Some(false)) => "over a column that is NOT NULL",
            () => return Ok(()),
        };
        self.refuse(why)
    }

    /// Refuses them.
    pub(super) fn refuse<T>(&self, why: &str) -> Planned<T> {
        refuse(
            &errors::CASCADE,
            format!("{} of a foreign key {why}", self.words),
        )
    }
}

/// The actions that the server cannot do, and where they stand. `range` begins behind the list of
/// the other table's columns.
fn skipped(reader: &Reader, range: Range<usize>) -> Planned<(KeyActions, Vec<Range<usize>>)> {
    let mut r = Reader::over(reader.request, reader.tokens, range);
    let (mut actions, mut places) = (KeyActions::default(), Vec::new());
    while !r.done() {
        let begin = r.at;
        if !r.eat("on") {
            r.at += 1;
            continue;
        }
        let update = r.eat("update");
        if !update && !r.eat("delete") {
            return NotUnderstood::Clause("FOREIGN KEY … ON").refuse();
        }
        let action = if r.eat("restrict") || (r.eat("no") && r.eat("action")) {
            KeyAction::Server
        } else if r.eat("cascade") {
            match update {
                true => KeyAction::Cascade,
                false => KeyAction::Server,
            }
        } else if r.eat("set") && r.eat("null") {
            KeyAction::SetNull
        } else {
            let what = if update { "UPDATE" } else { "DELETE" };
            return refuse(
                &errors::CASCADE,
                format!("ON {what} of a foreign key with another action"),
            );
        };
        match update {
            true => actions.update = action,
            false => actions.delete = action,
        }
        if action != KeyAction::Server {
            places.push(begin..r.at);
        }
    }
    Ok((actions, places))
}

/// What stands behind the columns, without the actions that the server cannot do.
fn put_tail(reader: &Reader, range: Range<usize>, out: &mut Pieces) -> Planned<()> {
    let (_, places) = skipped(reader, range.clone())?;
    let mut from = range.start;
    for place in places {
        out.sql(reader.text(from..place.start));
        out.sql(b" ");
        from = place.end;
    }
    if from < range.end {
        out.sql(reader.text(from..range.end));
    }
    Ok(())
}

/// `REFERENCES other (column)` in the definition of a column that is not protected, and that ADD
/// COLUMN IF NOT EXISTS may leave out.
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
