//! Columns that become plaintext because a foreign key is added.
//!
//! Frameworks make a table first and its foreign keys afterwards. When the table is made, nobody
//! can tell that `user_id` will refer to an AUTO_INCREMENT column, so a wildcard of `[protect]`
//! protects it. If the table is still empty when the key is added, the column becomes what it would
//! have been had CREATE TABLE named the key: plaintext. The rows are counted by the proxy, which
//! makes the statement anew from the table's definition.

use std::sync::Arc;

use onionskin_schema::{TableName, same_name};

use super::alteration::Target;
use crate::ddl::foreign_key::is_plain_by_right;
use crate::ddl::foreign_key::{others, refers_to_plaintext};
use crate::ddl::reader::Reader;
use crate::plan::Unprotected;

/// What becomes plaintext, if anything does.
pub(super) fn unprotected(target: &Target) -> Option<Unprotected> {
    let (database, name) = target.names;
    let request = target.r.request;
    let table = &target.table;
    if table.view || request.catalog.pinned(database, name).is_some() {
        return None;
    }
    let elements = || {
        target.specs.list.iter().map(|spec| {
            let mut s = Reader::over(request, target.r.tokens, spec.tokens.clone());
            s.eat("add");
            s.at..s.end
        })
    };
    let is_plain = |name: &str| is_plain_by_right(&target.r, table, name);
    let becomes_plain = |index: &usize| {
        let column = &table.columns[*index];
        let Some(protection) = &column.protection else {
            return false;
        };
        let by_wildcard = request.policy.find(database, name, &column.name);
        let by_wildcard = by_wildcard.is_some_and(|found| {
            // one that said more itself was protected on purpose
            !found.named && *found.capabilities == protection.capabilities
        });
        by_wildcard
            && !protection.is_checked()
            && !target.specs.drops(&column.name)
            && refers_to_plaintext(&target.r, elements(), target.names, &column.name, is_plain)
    };
    let columns: Vec<usize> = (0..table.columns.len()).filter(becomes_plain).collect();
    if columns.is_empty() {
        return None;
    }
    let mut locked = vec![TableName::new(&table.database, &table.name)];
    for other in others(&target.r, elements()) {
        if !locked
            .iter()
            .any(|l| same_name(&l.database, &other.database) && same_name(&l.name, &other.name))
        {
            locked.push(other);
        }
    }
    Some(Unprotected {
        table: Arc::clone(table),
        columns,
        head: target.r.text(0..target.r.at).to_vec(),
        specifications: target.r.text(target.r.at..target.r.end).to_vec(),
        locked,
    })
}
