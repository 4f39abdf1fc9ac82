//! Protected columns that are made anew because a foreign key is added.
//!
//! Frameworks make a table first and its foreign keys afterwards. When the table is made, nobody
//! can tell that `user_id` will refer to an AUTO_INCREMENT column, or to a key with a join group.
//! So a wildcard of `[protect]` protects it like any other. If the table is still empty when the
//! key is added, the column becomes what it would have been had CREATE TABLE named the key:
//! plaintext, or in the group of what it refers to. The proxy looks for rows, and makes the
//! statement anew from the table's definition.

use std::sync::Arc;

use onionskin_schema::{Column, TableName};

use super::alteration::Target;
use super::specs::Specification;
use crate::ddl::foreign_key::{Link, ThisTable, has_to_join};
use crate::ddl::reader::Reader;
use crate::plan::{Refit, Refitted};

/// What is made anew, if anything is.
pub(super) fn refit(target: &Target) -> Option<Refit> {
    let (database, name) = target.names;
    let table = &target.table;
    // what else is done to the columns would be done to those that are dropped
    let adds = |spec: &Specification| {
        let s = Reader::over(target.r.request, target.r.tokens, spec.tokens.clone());
        spec.is_element || s.is("add")
    };
    if !target.specs.list.iter().all(adds) {
        return None;
    }
    if table.view || target.r.request.catalog.pinned(database, name).is_some() {
        return None;
    }
    let links = target.links();
    let columns: Vec<(usize, Refitted)> = (0..table.columns.len())
        .filter_map(|index| Some((index, refitted(target, &links, &table.columns[index])?)))
        .collect();
    if columns.is_empty() {
        return None;
    }
    let mut locked = vec![TableName::new(&table.database, &table.name)];
    for link in links {
        if !locked.iter().any(|known| known.is_same(&link.table)) {
            locked.push(link.table);
        }
    }
    Some(Refit {
        table: Arc::clone(table),
        columns,
        head: target.r.text(0..target.r.at).to_vec(),
        specifications: target.r.text(target.r.at..target.r.end).to_vec(),
        locked,
    })
}

/// What becomes of a column, if a foreign key needs it.
fn refitted(target: &Target, links: &[Link], column: &Column) -> Option<Refitted> {
    let (database, name) = target.names;
    let protection = column.protection.as_ref()?;
    let found = target.r.request.policy.find(database, name, &column.name)?;
    // one of which more was said was protected on purpose
    let has = &protection.capabilities;
    let as_policy = has.show_no_more_than(found.capabilities)
        && found.capabilities.show_no_more_than(has)
        && (has.join.is_none() || has.joins_key());
    let is_free = !found.named && as_policy && !protection.is_checked();
    if !is_free || target.specs.drops(&column.name) {
        return None;
    }
    if target.refers_to_plaintext(&column.name, column.sql_type.as_ref()) {
        return Some(Refitted::Plaintext);
    }
    let this = ThisTable {
        names: target.names,
        column: &|name| target.side(name),
    };
    if !has_to_join(&target.r, links, &this, &column.name) {
        return None;
    }
    // it gets the group of the key when it is added
    let mut capabilities = has.clone();
    capabilities.join = None;
    Some(Refitted::Joined(capabilities.words()))
}
