//! The server's error texts in logical terms.

use std::sync::Arc;

use onionskin_plan::Action;

use crate::catalog::Prepared;

/// An error text of the server's with logical names.
pub(crate) fn logical_text(message: &[u8], prepared: &Prepared) -> Vec<u8> {
    let mut text = String::from_utf8_lossy(message).into_owned();
    let mut tables: Vec<_> = prepared
        .plan
        .columns
        .iter()
        .map(|c| Arc::clone(&c.table))
        .collect();
    if let Action::Define(ddl) = &prepared.plan.action {
        tables.extend(ddl.table.clone());
    }
    tables.dedup_by(|a, b| Arc::ptr_eq(a, b));
    let touched = !tables.is_empty();
    for table in tables {
        for (column, protection) in table.protected_columns() {
            for name in protection.names.all() {
                if text.contains(name) {
                    text = text.replace(name, &column.name);
                }
            }
        }
    }
    // a duplicate's value is printed as bytes of a token
    if touched
        && text.starts_with("Duplicate entry '")
        && let Some(end) = text.rfind("' for key ")
    {
        let value = &text["Duplicate entry '".len()..end];
        let binary =
            value.contains("\\x") || value.chars().any(|c| c.is_control() || c == '\u{fffd}');
        if binary {
            text = format!(
                "Duplicate entry '(protected)' for key {}",
                &text[end + "' for key ".len()..]
            );
        }
    }
    text.into_bytes()
}
