//! Which CHECK over a protected column a constraint is, by its name.

use crate::folding::same_name;
use crate::show_create::{Statement, Token, check_of, tokens};
use crate::table::Table;

/// The constraint of this name in a table's definition, if it is a CHECK over a protected column
/// and no part of that column's definition: the column's index, and the condition's number.
pub fn check_named(physical_sql: &str, table: &Table, name: &str) -> Option<(usize, usize)> {
    let statement = Statement::cut(physical_sql)?;
    statement.elements.iter().find_map(|element| {
        let mut words = tokens(element.trim_start()).filter(|t| !matches!(t, Token::Space(_)));
        let is_named = matches!(words.next(), Some(Token::Word("CONSTRAINT")))
            && words.next().is_some_and(|t| same_name(&t.name(), name));
        let (column, number, _) = check_of(element, table).filter(|_| is_named)?;
        let mut columns = table.columns.iter();
        let index = columns.position(|c| same_name(&c.name, &column.name))?;
        Some((index, number))
    })
}
