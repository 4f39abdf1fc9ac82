//! Which two rows meet on a unique key of the new table.
//!
//! A server that refuses a row says which value of which key is there already, cut to a length and
//! with dashes between its parts, and not whose it is. So what failed is done once more, in a
//! transaction that is taken back, by a statement that fails no more: where a row meets another
//! one, it leaves the keys of both in a variable of the session. Types, collations and what is
//! computed are the server's own that way.

use crate::RowError;
use crate::key::{Key, column_of};
use crate::route::{Meeting, Route};
use crate::session::Session;

/// The session's variable in which the keys of two rows that met are left.
const MET: &str = "@onionskin_met";
/// After so many rows the search is given up.
const MAX_ROWS: usize = 20_000;

/// Two rows that cannot both be in the new table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met {
    /// The one that is there.
    pub there: Key,
    /// The one that came.
    pub came: Key,
}

impl Route {
    /// What [`Meeting::Tell`] does with a row that meets another one. `first` is a column of the
    /// key, qualified.
    pub(crate) fn telling(&self, first: &str) -> String {
        let key = |table: &str| {
            let parts = self.key.columns.iter().map(|column| {
                // Of a number HEX alone would be another number.
                format!("HEX(CONCAT({}))", column_of(table, &column.name))
            });
            format!("CONCAT_WS(',', {})", parts.collect::<Vec<_>>().join(", "))
        };
        format!(
            " ON DUPLICATE KEY UPDATE {first} = IF({MET} IS NULL AND ({MET} := CONCAT({}, '/', {})) IS NULL, {first}, {first})",
            key(&self.target),
            key(&self.source)
        )
    }
}

/// The first two rows that meet when the rows with these keys are written anew; `None` where none
/// do, or not any more. Nothing is changed.
pub fn find(session: &mut Session, route: &Route, keys: &[Key]) -> Result<Option<Met>, RowError> {
    session.run(&format!("SET {MET} = NULL"))?;
    session.in_vain(|session| look(session, route, keys))?
}

fn look(session: &mut Session, route: &Route, keys: &[Key]) -> Result<Option<Met>, RowError> {
    for batch in keys.chunks(route.key.batch()) {
        route.delete(session, batch)?;
    }
    let size = route.key.batch().min(route.most_rows);
    for batch in keys[..keys.len().min(MAX_ROWS)].chunks(size) {
        let condition = route.key.among(&route.source, batch);
        route.write(session, &condition, Meeting::Tell)?;
        let met = session.text(&format!("SELECT {MET}"))?;
        if !met.is_empty() {
            return Ok(read(&met, route));
        }
    }
    Ok(None)
}

/// Reads `31,61/32,62`.
fn read(text: &str, route: &Route) -> Option<Met> {
    let key = |text: &str| {
        let parts: Option<Vec<Vec<u8>>> = text.split(',').map(bytes_of_hex).collect();
        let mut parts = parts.filter(|parts| parts.len() == route.key.columns.len())?;
        for (part, column) in parts.iter_mut().zip(&route.key.columns) {
            column.strip_zeros(part);
        }
        Some(Key(parts))
    };
    let (there, came) = text.split_once('/')?;
    Some(Met {
        there: key(there)?,
        came: key(came)?,
    })
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|c| c.to_digit(16).map(|digit| digit as u8))
        .collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(
        digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{KeyColumn, KeyDefinition, KeyKind};

    fn route() -> Route {
        let column = |name: &str, kind| KeyColumn {
            name: name.into(),
            kind,
            ordinal: 0,
            unsigned: false,
            column_type: String::new(),
        };
        Route {
            database: "d".into(),
            source: "t".into(),
            target: "n".into(),
            key: KeyDefinition {
                index: "PRIMARY".into(),
                columns: vec![column("a", KeyKind::Integer), column("b", KeyKind::Binary)],
            },
            copied: Vec::new(),
            transform: None,
            sealed: Vec::new(),
            replaces: false,
            most_rows: 10,
        }
    }

    #[test]
    fn the_keys_of_two_rows_are_read() {
        let route = route();
        assert_eq!(
            read("303037,FF00/38,", &route),
            Some(Met {
                there: Key(vec![b"7".to_vec(), vec![0xff, 0]]),
                came: Key(vec![b"8".to_vec(), Vec::new()]),
            })
        );
        for damaged in ["", "37,00", "37/38", "3,00/38,00", "3x,00/38,00"] {
            assert_eq!(read(damaged, &route), None, "{damaged}");
        }
    }

    #[test]
    fn both_keys_are_told_and_nothing_is_changed() {
        assert_eq!(
            route().telling("`n`.`a`"),
            " ON DUPLICATE KEY UPDATE `n`.`a` = IF(@onionskin_met IS NULL AND (@onionskin_met := CONCAT(\
             CONCAT_WS(',', HEX(CONCAT(`n`.`a`)), HEX(CONCAT(`n`.`b`))), '/', \
             CONCAT_WS(',', HEX(CONCAT(`t`.`a`)), HEX(CONCAT(`t`.`b`))))) IS NULL, `n`.`a`, `n`.`a`)"
        );
    }
}
