//! Tables that are shown in part.

use onionskin_schema::{Table, identifier, is_rightly_part};

use crate::error::{Failure, Outcome};
use crate::exchange::Server;

/// Errors by which a server says that an account has no privilege on a database, a table, or a
/// table's columns.
const DENIED: [u16; 3] = [1044, 1142, 1143];

/// Takes tables of which protected columns are missing for sound where that is no fault: see
/// [`is_rightly_part`].
pub(crate) fn settle_parts<'t>(
    server: &mut Server,
    tables: impl Iterator<Item = &'t mut Table>,
) -> Outcome<()> {
    for table in tables.filter(|table| table.is_part()) {
        let sql = format!(
            "SHOW CREATE TABLE {}.{}",
            identifier(&table.database),
            identifier(&table.name)
        );
        let shown = match server.rows(sql.as_bytes()) {
            Ok(rows) => {
                let cell = rows.first().and_then(|row| row.get(1)?.as_deref());
                Some(String::from_utf8_lossy(cell.unwrap_or_default()).into_owned())
            }
            Err(Failure::Server { code, .. }) if DENIED.contains(&code) => {
                server.settle()?;
                None
            }
            Err(failure) if failure.ends_transaction() => return Err(failure),
            Err(Failure::Server { .. }) => {
                server.settle()?;
                continue;
            }
            Err(failure) => return Err(failure),
        };
        if is_rightly_part(table, shown.as_deref()) {
            table.damaged = None;
        }
    }
    Ok(())
}
