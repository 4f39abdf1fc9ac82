//! What would give rows of a table with KEY BY another tenant, past the proxy.

use onionskin_rowstream::checkpoint::{ForeignKey, State, Trigger};
use onionskin_schema::{Capabilities, same_name};

use crate::error::{MigrateError, Result};
use crate::facts::Facts;
use crate::foreign_catalog::same;
use crate::operation::Operation;
use crate::statement::{Token, read};

/// An error if rows of a table with KEY BY get another tenant by the server: by a foreign key, or
/// by a trigger. Their cells would stay the earlier one's.
pub(crate) fn must_be_kept(state: &State, operation: &Operation, old: &Facts) -> Result<()> {
    let mut after = Capabilities::default();
    let words = operation.protected_after(&old.logical)?.into_values();
    let words = words.flatten().filter(|word| word.starts_with("key_by:"));
    for word in words {
        after.tenant = None;
        after.take_word(&word);
    }
    let Some(tenant) = after.tenant else {
        return Ok(());
    };
    let refused = |by: String| {
        Err(MigrateError::Refused {
            table: old.table.clone(),
            reason: format!(
                "KEY BY {}, to which {by} may give another value: rows have to keep their tenants",
                tenant.column
            ),
        })
    };
    let is_tenant = |name: &String| same_name(name, &tenant.column);
    let changes = |key: &&ForeignKey| {
        let is_own = same(&key.database, &key.table, &old.database, &old.table);
        let moves = !matches!(key.on_update.as_str(), "RESTRICT" | "NO ACTION");
        is_own && moves && key.columns.iter().any(is_tenant)
    };
    if let Some(key) = state.foreign_keys.iter().find(changes) {
        return refused(format!("the foreign key {} (ON UPDATE)", key.name));
    }
    let gives = |trigger: &&Trigger| {
        let (tokens, _) = read(&String::from_utf8_lossy(&trigger.statement));
        let calls = tokens.iter().any(|t| t.is("call"));
        tokens.windows(4).any(|w| {
            let is_row = w[0].is("new") && w[1] == Token::Sign('.') && w[2].names(&tenant.column);
            is_row && (calls || matches!(w[3], Token::Sign('=' | ':')))
        })
    };
    match state.triggers.iter().find(gives) {
        Some(trigger) => refused(format!("the trigger {}", trigger.name)),
        None => Ok(()),
    }
}
