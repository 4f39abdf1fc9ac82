//! Protected columns that are made anew because a foreign key is added.
//!
//! Frameworks make a table first and its foreign keys afterwards. When the table is made, nobody
//! can tell that `user_id` will refer to an AUTO_INCREMENT column, or to a key with a join group.
//! So a wildcard of `[protect]` protects it like any other. If the table is still empty when the
//! key is added, the column becomes what it would have been had CREATE TABLE named the key:
//! plaintext, or in the group of what it refers to. The proxy looks for rows, and makes the
//! statement anew from the table's definition.

use std::sync::Arc;

use onionskin_schema::{Column, KeyRole, TableName, possible, same_name};

use super::add::split_place;
use super::alteration::Target;
use super::specs::{Specification, guard};
use crate::ddl::attributes::Attributes;
use crate::ddl::column_type::plain_type;
use crate::ddl::foreign_key::{Link, ThisTable, has_to_join};
use crate::ddl::reader::Reader;
use crate::errors::Refusal;
use crate::plan::{Refit, Refitted};
use crate::planner::quoted;

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
        otherwise: None,
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
    Some(Refitted::Joined(capabilities.clause()))
}

/// What is made anew where MODIFY or CHANGE gives protected columns definitions that need other
/// cells, which an empty table has none of. `otherwise` is what is said of a table with rows.
pub(super) fn redefined(target: &Target, otherwise: &Refusal) -> Option<Refit> {
    let (database, name) = target.names;
    let table = &target.table;
    if table.view || target.r.request.catalog.pinned(database, name).is_some() {
        return None;
    }
    let (mut columns, mut rest) = (Vec::new(), Vec::new());
    for spec in &target.specs.list {
        let s = Reader::over(target.r.request, target.r.tokens, spec.tokens.clone());
        if s.is("modify") || s.is("change") {
            match definition(target, spec)? {
                Some(found) => columns.push(found),
                None => rest.push(spec),
            }
        } else if spec.is_element || s.is("add") {
            rest.push(spec);
        } else {
            return None;
        }
    }
    let mut specifications = Vec::new();
    for (at, spec) in rest.iter().enumerate() {
        specifications.extend_from_slice(if at > 0 { b", " } else { b"" });
        specifications.extend_from_slice(if spec.is_element { b"ADD " } else { b"" });
        specifications.extend_from_slice(target.r.text(spec.tokens.clone()));
    }
    let mut indexes: Vec<usize> = columns.iter().map(|(index, _)| *index).collect();
    indexes.sort_unstable();
    indexes.dedup();
    (!columns.is_empty() && indexes.len() == columns.len()).then(|| Refit {
        table: Arc::clone(table),
        columns,
        head: target.r.text(0..target.r.at).to_vec(),
        specifications,
        locked: vec![TableName::new(&table.database, &table.name)],
        otherwise: Some(otherwise.clone()),
    })
}

/// The new definition of a protected column that keeps its name. `Some(None)`: it is not protected.
fn definition(target: &Target, spec: &Specification) -> Option<Option<(usize, Refitted)>> {
    let mut s = Reader::over(target.r.request, target.r.tokens, spec.tokens.clone());
    let is_change = s.eat("change");
    if !is_change {
        s.eat("modify");
    }
    s.eat("column");
    guard(&mut s).ok()?;
    let column = s.name()?;
    let mut written = column.clone();
    let Some(protected) = target.protected(&column) else {
        return Some(None);
    };
    if is_change {
        written = s.name()?;
    }
    if !same_name(&written, &column) {
        return None;
    }
    let protection = protected.protection;
    let is_own_key = target.is_in_own_group(protected);
    let is_free = !protection.is_checked()
        && (is_own_key || !protection.capabilities.joins_key())
        && !protection.actions.any()
        && !protected.column.invisible;
    // its keys are made anew as they were
    let (attributes, None) = split_place(&s, s.at..s.end).ok()? else {
        return None;
    };
    if !is_free || s.says(attributes.clone(), "unique") || s.says(attributes.clone(), "key") {
        return None;
    }
    // as a definition, with the name before it
    let ty = plain_type(&s, s.at - 1..s.end, &target.collation);
    let (database, name) = target.names;
    let found = target.r.request.policy.find(database, name, &column);
    // as a definition, with the name before it
    let is_auto = Attributes::read(&s, s.at - 1..s.end).auto_increment;
    let words = match is_auto {
        true if found.as_ref().is_some_and(|found| !found.named) => String::new(),
        true => return None,
        // other capabilities are asked for by name: the command is the answer
        false if s.says(attributes.clone(), "encrypted") => return None,
        // a wildcard gives the key a group once more
        false if is_own_key => {
            let wanted = found.filter(|found| !found.named)?.capabilities;
            let has = &protection.capabilities;
            if !has.show_no_more_than(wanted) || !wanted.show_no_more_than(has) {
                return None;
            }
            String::new()
        }
        false => {
            let capabilities = possible(&protection.capabilities, &ty?);
            format!(" {}", capabilities.clause())
        }
    };
    let is_bare = protected.column.key == KeyRole::Primary && !s.says(attributes.clone(), "null");
    let text = String::from_utf8(target.r.text(attributes).to_vec()).ok()?;
    let text = format!(
        "{} {text}{}{words}",
        // perhaps in other letters
        quoted(&written),
        if is_bare { " NOT NULL" } else { "" }
    );
    Some(Some((protected.index, Refitted::Redefined(text))))
}
