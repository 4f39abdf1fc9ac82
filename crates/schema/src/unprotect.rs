//! What ALTER TABLE says so that protected columns of an empty table become plaintext.
//!
//! A column is dropped and added again, in its place and with its keys. Both are ordinary
//! specifications, which are planned like those of a client.

use onionskin_value::Family;

use crate::{
    errors::SchemaError,
    show_create::{Statement, Token, logical, tokens},
    table::{Table, same_name},
};

/// The specifications for these columns of `table`, whose physical `SHOW CREATE TABLE` is
/// `physical_sql`. An error where a foreign key has one of the columns already.
pub fn unprotect_specifications(
    physical_sql: &str,
    table: &Table,
    columns: &[usize],
    family: Family,
) -> Result<Vec<String>, SchemaError> {
    let names: Vec<&str> = columns
        .iter()
        .filter_map(|index| Some(table.columns.get(*index)?.name.as_str()))
        .collect();
    logical(physical_sql, table, family.into(), false)
        .and_then(|text| specifications(&text, &names))
        .ok_or_else(|| SchemaError::DefinitionNotUnderstood {
            table: table.name.clone(),
        })
}

fn specifications(logical_sql: &str, names: &[&str]) -> Option<Vec<String>> {
    let statement = Statement::cut(logical_sql)?;
    let is_ours = |token: &Token| names.iter().any(|name| same_name(name, &token.name()));
    let mut found = Vec::new();
    let mut place = "FIRST".to_owned();
    let mut columns = 0;
    for element in statement.elements {
        let element = element.trim();
        let first = Token::first(element)?;
        if first.is_identifier() {
            if is_ours(&first) {
                columns += 1;
                found.push(format!("DROP COLUMN {}", first.text()));
                found.push(format!("ADD COLUMN {element} {place}"));
            }
            place = format!("AFTER {}", first.text());
            continue;
        }
        let (before, list) = key_parts(element);
        let mut names = list.iter().filter(|token| token.is_identifier());
        if !names.any(is_ours) {
            continue;
        }
        match before.as_slice() {
            ["PRIMARY", "KEY"] => found.push("DROP PRIMARY KEY".to_owned()),
            ["UNIQUE", "KEY", name] | ["KEY", name] => found.push(format!("DROP KEY {name}")),
            ["CONSTRAINT", _, "CHECK"] => continue,
            _ => return None,
        }
        found.push(format!("ADD {element}"));
    }
    (columns == names.len()).then_some(found)
}

/// The words of an element up to its first parenthesis, and what stands in that.
fn key_parts(element: &str) -> (Vec<&str>, Vec<Token<'_>>) {
    let (mut before, mut list) = (Vec::new(), Vec::new());
    let mut is_open = false;
    for token in tokens(element) {
        match token.text() {
            "(" if !is_open => is_open = true,
            ")" if is_open => break,
            _ if matches!(token, Token::Space(_)) => {}
            text if !is_open => before.push(text),
            _ => list.push(token),
        }
    }
    (before, list)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "CREATE TABLE `t` (\n  `id` int(11) NOT NULL AUTO_INCREMENT,\n  `a` int(11) DEFAULT NULL,\n  \
                         `b` int(11) NOT NULL COMMENT 'KEY (`a`)',\n  PRIMARY KEY (`id`),\n  UNIQUE KEY `u` (`a`,`b`),\n  KEY `b` (`b`),\n  \
                         KEY `c` (`id`),\n  CONSTRAINT `f` FOREIGN KEY (`id`) REFERENCES `o` (`a`)\n) ENGINE=InnoDB";

    #[test]
    fn columns_keep_their_place_and_their_keys() {
        let found = specifications(TABLE, &["a", "B"]);
        let expected = [
            "DROP COLUMN `a`",
            "ADD COLUMN `a` int(11) DEFAULT NULL AFTER `id`",
            "DROP COLUMN `b`",
            "ADD COLUMN `b` int(11) NOT NULL COMMENT 'KEY (`a`)' AFTER `a`",
            "DROP KEY `u`",
            "ADD UNIQUE KEY `u` (`a`,`b`)",
            "DROP KEY `b`",
            "ADD KEY `b` (`b`)",
        ];
        assert_eq!(found, Some(expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn a_column_of_another_foreign_key_is_left_alone() {
        assert_eq!(specifications(TABLE, &["id"]), None);
        assert_eq!(specifications(TABLE, &["missing"]), None);
    }
}
