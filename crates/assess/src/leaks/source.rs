//! Reads tables as an application sees them: through the proxy, or plain ones.
//!
//! Rows are read once, at a pace, and at most so many of a table: where it has a whole-numbered
//! primary key and more rows, at eight places of it.

use std::{thread, time::Duration};

use onionskin_schema::{TableName, identifier, same_name, split_foreign_keys};
use onionskin_value::{Family, SqlType};

use crate::{
    AssessError,
    reader::{Reader, Refusal},
    text::shown,
};

/// Places of a primary key at which rows are read.
const PLACES: u32 = 8;
/// Rows after which the pace is kept.
const PAUSE_ROWS: u32 = 500;

/// A column, as the server or the proxy shows it.
#[derive(Clone, Debug)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// As it is shown.
    pub type_text: String,
    /// `None`: it is not understood.
    pub ty: Option<SqlType>,
    /// Why it cannot be protected, if it cannot.
    pub is_generated: bool,
    /// Numbers of the server's own.
    pub auto_increment: bool,
    is_primary: bool,
}

/// A foreign key of one column.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The column that refers.
    pub column: String,
    /// The table that it refers to, if it is of the same database.
    pub parent: String,
    /// Its column there.
    pub parent_column: String,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its name.
    pub name: TableName,
    /// Its columns.
    pub columns: Vec<Described>,
    /// Its foreign keys of one column.
    pub references: Vec<Reference>,
}

/// What the server refused, for lists of what was left out.
pub fn why(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Denied(_) => "not visible: needs GRANT SELECT".into(),
        Refusal::Unknown => "it is not there".into(),
        Refusal::Other(said) => said.clone(),
    }
}

/// The tables of a database, without views.
pub fn tables(reader: &mut Reader, database: &str) -> Result<Vec<String>, AssessError> {
    let sql = format!("SHOW FULL TABLES FROM {}", identifier(database));
    let rows = reader.raw(&sql)?.unwrap_or_default();
    let is_table = |row: &Vec<Option<String>>| {
        row.get(1)
            .is_some_and(|k| k.as_deref() == Some("BASE TABLE"))
    };
    let rows = rows.into_iter().filter(is_table);
    let names: Vec<String> = rows
        .filter_map(|row| row.into_iter().next().flatten())
        .collect();
    match names.is_empty() {
        true => Err(AssessError::Request(format!(
            "{} has no tables that this account sees: GRANT SELECT ON {}.*",
            shown(database),
            identifier(&shown(database))
        ))),
        false => Ok(names),
    }
}

/// Looks at a table's definition.
pub fn describe(
    reader: &mut Reader,
    name: &TableName,
) -> Result<Result<Shown, Refusal>, AssessError> {
    let quoted = quoted(name);
    let definition = match reader.raw(&format!("SHOW CREATE TABLE {quoted}"))? {
        Ok(rows) => rows
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().nth(1).flatten()),
        Err(refusal) => return Ok(Err(refusal)),
    };
    let definition = definition.unwrap_or_default();
    let rows = match reader.raw(&format!("SHOW FULL COLUMNS FROM {quoted}"))? {
        Ok(rows) => rows,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let column = |row: Vec<Option<String>>| {
        let cell = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        let (name, type_text, collation, extra) = (cell(0), cell(1), cell(2), cell(6));
        let collation = Some(collation.as_str()).filter(|c| !c.is_empty());
        // MariaDB's JSON is a text with a CHECK.
        let is_json = definition.contains(&format!("json_valid({})", identifier(&name)));
        Described {
            ty: match is_json {
                true => Some(SqlType::json(Family::MariaDb)),
                false => SqlType::parse(&type_text, collation).ok(),
            },
            is_generated: ["VIRTUAL", "STORED GENERATED", "PERSISTENT"]
                .iter()
                .any(|word| extra.contains(word)),
            auto_increment: extra.contains("auto_increment"),
            is_primary: cell(4) == "PRI",
            name,
            type_text,
        }
    };
    let (_, foreign) = split_foreign_keys(&definition);
    Ok(Ok(Shown {
        name: name.clone(),
        columns: rows.into_iter().map(column).collect(),
        references: foreign.iter().filter_map(|key| reference(key)).collect(),
    }))
}

/// `` … FOREIGN KEY (`a`) REFERENCES `t` (`b`) … ``
fn reference(key: &str) -> Option<Reference> {
    let (own, other) = key
        .split_once("FOREIGN KEY (`")?
        .1
        .split_once("`) REFERENCES `")?;
    let (parent, columns) = other.split_once("` (`")?;
    let (column, _) = columns.split_once("`)")?;
    let is_one = |text: &str| !text.contains('`');
    [own, parent, column]
        .into_iter()
        .all(is_one)
        .then(|| Reference {
            column: own.to_owned(),
            parent: parent.to_owned(),
            parent_column: column.to_owned(),
        })
}

fn quoted(name: &TableName) -> String {
    format!("{}.{}", identifier(&name.database), identifier(&name.name))
}

/// How much is read, and how fast.
#[derive(Clone, Copy)]
pub struct Load {
    /// Rows of a table.
    pub rows: u32,
    /// Rows a second.
    pub pace: u32,
}

/// Hands rows of a table out, with the items that were asked for. Returns how many there were.
pub fn read(
    reader: &mut Reader,
    table: &Shown,
    items: &[String],
    load: Load,
    mut each: impl FnMut(&[Option<&[u8]>]),
) -> Result<Result<u64, Refusal>, AssessError> {
    let from = format!("SELECT {} FROM {}", items.join(", "), quoted(&table.name));
    let mut read = 0_u64;
    for sql in statements(reader, table, &from, load.rows)? {
        let done = reader.each(&sql, |cells| {
            each(cells);
            read += 1;
            if read.is_multiple_of(u64::from(PAUSE_ROWS)) {
                thread::sleep(Duration::from_secs(1) * PAUSE_ROWS / load.pace.max(1));
            }
        })?;
        if let Err(refusal) = done {
            return Ok(Err(refusal));
        }
    }
    Ok(Ok(read))
}

/// Rows at a few places of a whole-numbered primary key, or the first ones.
fn statements(
    reader: &mut Reader,
    table: &Shown,
    from: &str,
    rows: u32,
) -> Result<Vec<String>, AssessError> {
    let first = vec![format!("{from} LIMIT {rows}")];
    let mut keys = table.columns.iter().filter(|c| c.is_primary);
    let (Some(key), None) = (keys.next(), keys.next()) else {
        return Ok(first);
    };
    if !key.ty.is_some_and(|ty| ty.is_integer()) {
        return Ok(first);
    }
    let column = identifier(&key.name);
    let bounds = format!(
        "SELECT MIN({column}), MAX({column}) FROM {}",
        quoted(&table.name)
    );
    // Of a protected key without an order this is refused or slow, and then the first rows do.
    let bounds = reader.raw(&bounds)?.unwrap_or_default();
    let number = |at: usize| -> Option<i128> { bounds.first()?.get(at)?.as_deref()?.parse().ok() };
    let (Some(low), Some(high)) = (number(0), number(1)) else {
        return Ok(first);
    };
    if high - low < i128::from(rows) {
        return Ok(first);
    }
    let each = rows.div_ceil(PLACES);
    let start = |place: u32| low + (high - low) * i128::from(place) / i128::from(PLACES);
    let part = |place: u32| {
        let end = match place + 1 == PLACES {
            true => String::new(),
            false => format!(" AND {column} < {}", start(place + 1)),
        };
        format!(
            "{from} WHERE {column} >= {}{end} ORDER BY {column} LIMIT {each}",
            start(place)
        )
    };
    Ok((0..PLACES).map(part).collect())
}

impl Shown {
    /// A column by its name.
    pub fn column(&self, name: &str) -> Option<&Described> {
        self.columns.iter().find(|c| same_name(&c.name, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_keys_of_one_column_are_read() {
        let key =
            "CONSTRAINT `fk` FOREIGN KEY (`mail`) REFERENCES `users` (`email`) ON DELETE CASCADE";
        let found = reference(key).expect("one column");
        assert_eq!(
            [found.column, found.parent, found.parent_column],
            ["mail", "users", "email"]
        );
        for other in [
            "CONSTRAINT `fk` FOREIGN KEY (`a`, `b`) REFERENCES `t` (`x`, `y`)",
            "CONSTRAINT `fk` FOREIGN KEY (`a`) REFERENCES `d`.`t` (`x`)",
        ] {
            assert_eq!(reference(other), None);
        }
    }
}
