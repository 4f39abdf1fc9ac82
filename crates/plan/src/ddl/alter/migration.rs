//! Changes of a column that need every row written anew, as the command that does them.
//!
//! The proxy does not begin a migration by itself: it needs an account that reads the binary log
//! and defines tables, which an application's session seldom is, it outlives the session, and the
//! proxy keeps no state. So the statement is refused with the command.

use onionskin_schema::{Capabilities, Column, DefaultLiteral, NewColumn, Table, same_name};
use onionskin_value::Family;

use crate::errors::{self, Refusal};

/// Refuses a change of `column` to what `wanted` says (`None`: no `ENCRYPTED FOR`), naming the
/// command.
pub(super) fn needed(table: &Table, column: &Column, wanted: Option<&Capabilities>) -> Refusal {
    let name = &column.name;
    let before = column.protection.as_ref().map(|p| p.capabilities.list());
    let after = wanted.map(Capabilities::list);
    let list = |words: &[String]| format!("\"{}\"", format!("{name}: {}", words.join(" ")).trim());
    let without = |words: &[String], others: &[String]| -> Vec<String> {
        let rest = words.iter().filter(|word| !others.contains(word));
        rest.cloned().collect()
    };
    let what = match (&before, &after) {
        (None, Some(after)) => format!("--encrypt {}", list(after)),
        (Some(before), Some(after)) if !without(after, before).is_empty() => {
            format!("--add {}", list(&without(after, before)))
        }
        (Some(before), Some(after)) if !without(before, after).is_empty() => {
            format!("--drop {}", list(&without(before, after)))
        }
        (Some(_), _) | (None, None) => {
            return Refusal::new(&errors::ALTERATION, format!("column {name}"));
        }
    };
    let about = format!("onionskin migrate {}.{} {what}", table.database, table.name);
    Refusal::new(&errors::MIGRATION, about)
}

/// Refuses another definition of `column`, naming the command. The definition is told as far as
/// cells depend on it; DEFAULT and COMMENT are left out, for errors are logged.
pub(super) fn modification(
    table: &Table,
    column: &Column,
    new: &NewColumn,
    has_place: bool,
    family: Family,
) -> Refusal {
    let mut definition = format!("{} {}", column.name, new.sql_type.to_sql(family));
    if let Some(collation) = new.sql_type.collation.filter(|_| new.explicit_collation) {
        definition.push_str(&format!(" COLLATE {}", collation.name()));
    }
    if !new.nullable {
        definition.push_str(" NOT NULL");
    }
    let is_null = matches!(new.default, None | Some(DefaultLiteral::Null));
    let has_more = !is_null || new.on_update || new.comment.is_some() || new.invisible;
    let more = match has_more {
        true => " with the rest of its definition",
        false => "",
    };
    let then = match has_place || !same_name(&column.name, &new.name) {
        true => ", then this statement",
        false => "",
    };
    let about = format!(
        "onionskin migrate {}.{} --modify \"{definition}\"{more}{then}",
        table.database, table.name
    );
    Refusal::new(&errors::MIGRATION, about)
}
