//! What the account may do, by what SHOW GRANTS tells: for what would be missed without a word, or
//! is needed under the lock only.

use onionskin_rowstream::session::Session;
use onionskin_schema::is_granted;

use crate::error::{MigrateError, Result};

/// An error if the account lacks one of these privileges on a table; `why` says what it is for.
pub(crate) fn must_have(
    session: &mut Session,
    privileges: &[&str],
    (database, table): (&str, &str),
    why: &str,
) -> Result<()> {
    // A server without accounts refuses the statement.
    let Ok(grants) = session.texts("SHOW GRANTS") else {
        return Ok(());
    };
    let grants: Vec<String> = grants.into_iter().flatten().flatten().collect();
    let missing = privileges
        .iter()
        .find(|privilege| !is_granted(&grants, privilege, database, table));
    match missing {
        None => Ok(()),
        Some(privilege) => Err(MigrateError::Refused {
            table: format!("{database}.{table}"),
            reason: format!("this account has not the privilege {privilege} on it, {why}"),
        }),
    }
}
