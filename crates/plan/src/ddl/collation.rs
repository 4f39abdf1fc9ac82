//! Which collation a new column gets where its definition names none.

use onionskin_value::{Charset, Collation};

use crate::planner::{Known, Request, Settings};
use crate::request::COLLATION;

/// The collation that a character set stands for in the session. `None`: not one that is known.
pub(super) fn default_collation(charset: &str, settings: &Settings) -> Option<&'static str> {
    let charset = Charset::from_name(charset)?;
    let mut pairs = settings.charset_collations.split(',');
    let given = pairs.find_map(|pair| {
        let (name, collation) = pair.split_once('=')?;
        (Charset::from_name(name.trim()) == Some(charset)).then(|| collation.trim())
    });
    match given {
        Some(name) => Collation::from_name(name).filter(|c| c.charset() == charset),
        None => Collation::default_of(charset, settings.family),
    }
    .map(Collation::name)
}

/// The default collation of a table or of a database.
pub(super) fn default_of(request: &Request, database: &str, table: Option<&str>) -> String {
    let name = format!("{COLLATION}{}", table.unwrap_or_default());
    match request.catalog.table(database, &name) {
        Known::Table(found) => found.name.clone(),
        _ => request.settings.default_collation.clone(),
    }
}
