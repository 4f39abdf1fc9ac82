//! Rows that the new table does not take, told so that somebody can mend them.
//!
//! Two rows with one value of a unique key are shown as they are in the old table: plain columns
//! with their values, long ones cut; of columns that are protected in one of the tables nothing but
//! that they are there, for what is printed ends in logs.

use onionskin_rowstream::RowError;
use onionskin_rowstream::key::{Key, column_of};
use onionskin_rowstream::meeting;
use onionskin_rowstream::route::Route;
use onionskin_rowstream::session::Session;
use onionskin_schema::identifier;

use crate::error::MigrateError;
use crate::facts::{OF_TABLE, names_table};

/// So many characters, or bytes in hexadecimal digits, of a value are shown.
const MAX_SHOWN: usize = 40;
/// And so many columns of a row.
const MAX_COLUMNS: usize = 30;

/// Whether two rows met on a unique key.
pub(crate) fn is_duplicate(error: &RowError) -> bool {
    matches!(error, RowError::Sql(error) if error.is_duplicate())
}

/// An error of the server about a value is the new definition's.
pub(crate) fn conflict(error: RowError) -> MigrateError {
    // NULL, too long, out of range, wrong, truncated, CHECK, duplicate, foreign key, no partition.
    const ABOUT_VALUES: [u16; 12] = [
        1048, 1062, 1264, 1265, 1292, 1366, 1406, 1452, 1526, 3140, 3819, 4025,
    ];
    match error {
        RowError::Sql(error) if ABOUT_VALUES.contains(&error.code) => MigrateError::Conflict {
            message: error.message,
        },
        other => other.into(),
    }
}

/// The same; where two of the rows with these keys met, or one of them met another row, with both.
pub(crate) fn explained(
    session: &mut Session,
    route: &Route,
    keys: &[Key],
    error: RowError,
) -> MigrateError {
    let both = match is_duplicate(&error) {
        true => both_rows(session, route, keys),
        false => None,
    };
    match (conflict(error), both) {
        (MigrateError::Conflict { message }, Some(both)) => MigrateError::Conflict {
            message: format!("{message}: {both}"),
        },
        (other, _) => other,
    }
}

/// What cannot be found out is not worth another error.
fn both_rows(session: &mut Session, route: &Route, keys: &[Key]) -> Option<String> {
    let met = meeting::find(session, route, keys).ok().flatten()?;
    let mut row = |key: &Key| {
        let shown = shown(session, route, key).ok().flatten();
        shown.unwrap_or_else(|| format!("with the key {}", key.shown(&route.key)))
    };
    let (there, came) = (row(&met.there), row(&met.came));
    Some(format!("the rows {there} and {came} meet"))
}

/// A row of the old table as `(id = 7, name = 'ann', note = <sealed>)`; `None` if it is not there
/// any more.
fn shown(session: &mut Session, route: &Route, key: &Key) -> Result<Option<String>, RowError> {
    let types = session.texts(&format!(
        "SELECT COLUMN_NAME, DATA_TYPE, CHARACTER_SET_NAME FROM information_schema.COLUMNS \
         WHERE {}",
        names_table(OF_TABLE, &route.database, &route.source)
    ))?;
    let mut names: Vec<&str> = Vec::new();
    for name in route
        .copied
        .iter()
        .filter_map(|copied| copied.source.as_deref())
    {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let is_long = names.len() > MAX_COLUMNS;
    names.truncate(MAX_COLUMNS);
    let mut ways = Vec::new();
    let mut list = Vec::new();
    for name in &names {
        let found = types.iter().find(|row| row[0].as_deref() == Some(*name));
        let cell = |at: usize| found.and_then(|row| row.get(at)?.as_deref());
        let way = Way::of(
            &cell(1).unwrap_or_default().to_lowercase(),
            cell(2).is_some(),
        );
        list.push(way.expression(&column_of(&route.source, name)));
        ways.push(way);
    }
    if list.is_empty() {
        return Ok(None);
    }
    let rows = session.texts(&format!(
        "SELECT {} FROM {} WHERE {}",
        list.join(", "),
        identifier(&route.source),
        route.key.among(&route.source, std::slice::from_ref(key))
    ))?;
    let Some(row) = rows.into_iter().next() else {
        return Ok(None);
    };
    let values = names.iter().zip(ways).zip(row);
    let mut parts: Vec<String> = values
        .map(|((name, way), value)| format!("{name} = {}", way.shown(value)))
        .collect();
    if is_long {
        parts.push("…".into());
    }
    parts.extend(route.sealed.iter().map(|name| format!("{name} = <sealed>")));
    Ok(Some(format!("({})", parts.join(", "))))
}

/// How the values of a type are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// Numbers and times.
    Plain,
    /// In quotes.
    Text,
    /// In hexadecimal digits.
    Bytes,
    /// As the number that they are.
    Bits,
    /// Shapes and vectors say nothing in a line.
    Not,
}

impl Way {
    fn of(data_type: &str, is_text: bool) -> Self {
        match data_type {
            "bit" => Self::Bits,
            "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Self::Bytes,
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "float"
            | "double" | "date" | "datetime" | "timestamp" | "time" | "year" | "inet4"
            | "inet6" | "uuid" => Self::Plain,
            "json" => Self::Text,
            _ if is_text => Self::Text,
            _ => Self::Not,
        }
    }

    fn expression(self, column: &str) -> String {
        // One more, which tells that there are more.
        let most = MAX_SHOWN + 1;
        match self {
            Self::Plain => format!("CAST({column} AS CHAR)"),
            Self::Text => format!("CONVERT(LEFT({column}, {most}) USING utf8mb4)"),
            Self::Bytes => format!("HEX(LEFT({column}, {most}))"),
            Self::Bits => format!("CAST({column} + 0 AS CHAR)"),
            Self::Not => format!("IF({column} IS NULL, NULL, '')"),
        }
    }

    fn shown(self, value: Option<String>) -> String {
        let Some(value) = value else {
            return "NULL".into();
        };
        let digits = match self {
            Self::Bytes => 2,
            _ => 1,
        };
        let is_long = value.chars().count() > MAX_SHOWN * digits;
        let value: String = value.chars().take(MAX_SHOWN * digits).collect();
        let more = if is_long { "…" } else { "" };
        match self {
            Self::Plain | Self::Bits => value,
            Self::Text => format!("'{}{more}'", value.escape_debug()),
            Self::Bytes => format!("0x{value}{more}"),
            Self::Not => "<a value>".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_cut_and_stay_in_their_line() {
        let show = |data_type: &str, is_text, value: &str| {
            Way::of(data_type, is_text).shown(Some(value.to_owned()))
        };
        assert_eq!(show("int", false, "-7"), "-7");
        assert_eq!(show("varchar", true, "it's\na line"), r"'it\'s\na line'");
        assert_eq!(
            show("text", true, &"ä".repeat(41)),
            format!("'{}…'", "ä".repeat(40))
        );
        assert_eq!(
            show("text", true, &"x".repeat(40)),
            format!("'{}'", "x".repeat(40))
        );
        assert_eq!(show("blob", false, "00FF"), "0x00FF");
        assert_eq!(
            show("blob", false, &"AB".repeat(41)),
            format!("0x{}…", "AB".repeat(40))
        );
        assert_eq!(show("point", false, ""), "<a value>");
        assert_eq!(Way::of("json", false), Way::Text);
        assert_eq!(Way::Text.shown(None), "NULL");
    }
}
