//! `KEY BY`: the plain column that says whose a row is.
//!
//! The proxy seals a row's cells under a key of its tenant, so it has to know the tenant of every
//! row that it writes, and nobody else may give the row another one: the server computes no such
//! column, and no foreign key changes it.

use std::ops::Range;

use onionskin_schema::{NewColumn, Table, Tenant, same_name};
use onionskin_value::SqlType;

use super::reader::Reader;
use crate::errors::{self, Refusal};
use crate::planner::{Planned, identifier, refuse};

/// What is known of the column that KEY BY names.
pub(super) struct TenantColumn {
    pub(super) is_protected: bool,
    pub(super) is_generated: bool,
    pub(super) ty: Option<SqlType>,
}

/// Whose rows are, as new columns and those of the table say it. Refuses two answers, and a column
/// that cannot say it. `column` finds it by its name.
pub(super) fn tenant<'c>(
    new: &'c [NewColumn],
    table: Option<&'c Table>,
    column: impl Fn(&str) -> Option<TenantColumn>,
) -> Planned<Option<&'c Tenant>> {
    let said = new.iter().filter_map(|c| c.capabilities.tenant.as_ref());
    let mut said = said.chain(table.and_then(Table::tenant));
    let Some(tenant) = said.next() else {
        return Ok(None);
    };
    if said.any(|other| other != tenant) {
        return refuse(&errors::DEFINITION, "KEY BY of one column, and of another");
    }
    let about = match column(&tenant.column) {
        None => "which the table does not have",
        Some(found) if found.is_protected => "which is protected",
        Some(found) if found.is_generated => "which is generated",
        Some(found) if !found.ty.is_some_and(|ty| Tenant::can_be(&ty)) => {
            "which is no whole number, CHAR, VARCHAR, BINARY or VARBINARY"
        }
        Some(_) => return Ok(Some(tenant)),
    };
    refuse(
        &errors::DEFINITION,
        format!("KEY BY {}, {about}", tenant.column),
    )
}

/// Refuses a foreign key in this element of a definition that changes the tenant of rows.
pub(super) fn check_element(r: &Reader, element: Range<usize>, tenant: &Tenant) -> Planned<()> {
    let tokens = &r.tokens[element];
    let names = tokens.iter().filter_map(|t| identifier(r.sql(), t));
    let is_named = names
        .into_iter()
        .any(|name| same_name(&name, &tenant.column));
    let changes = tokens.windows(3).any(|w| {
        let is = |at: usize, word| w[at].is_word(r.sql(), word);
        is(0, "on") && is(1, "update") && (is(2, "cascade") || is(2, "set"))
    });
    match is_named && changes {
        true => refuse(
            &errors::DEFINITION,
            format!(
                "KEY BY {}, which a foreign key changes ON UPDATE",
                tenant.column
            ),
        ),
        false => Ok(()),
    }
}

/// Refuses to change the column that KEY BY names: all that is not an index or a constraint.
pub(super) fn unchangeable(tenant: &Tenant) -> Refusal {
    Refusal::new(
        &errors::ALTERATION,
        format!("the column {}, which KEY BY names", tenant.column),
    )
}
