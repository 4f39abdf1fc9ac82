//! What ALTER TABLE says so that protected columns of an empty table are made anew.
//!
//! A column is dropped and added again, in its place and with its keys. Both are ordinary
//! specifications, which are planned like those of a client.

use onionskin_value::Family;

use crate::{
    copy::without_collation,
    errors::SchemaError,
    folding::same_name,
    show_create::{Statement, Token, logical, table_collation, tokens},
    table::Table,
};

/// What becomes of a column that is made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remade<'a> {
    /// It is plaintext.
    Plaintext,
    /// It is `ENCRYPTED FOR` these words.
    Protected(&'a str),
    /// It has this definition.
    Defined(&'a str),
}

/// The specifications for these columns of `table`, whose physical `SHOW CREATE TABLE` is
/// `physical_sql`. An error where a foreign key has one of the columns already.
pub fn refit_specifications(
    physical_sql: &str,
    table: &Table,
    columns: &[(usize, Remade<'_>)],
    family: Family,
) -> Result<Vec<String>, SchemaError> {
    let names: Vec<Named<'_>> = columns
        .iter()
        .filter_map(|(index, remade)| Some((table.columns.get(*index)?.name.as_str(), *remade)))
        .collect();
    logical(physical_sql, table, family.into(), false)
        .and_then(|text| specifications(&text, &names, family))
        .ok_or_else(|| SchemaError::DefinitionNotUnderstood {
            table: table.name.clone(),
        })
}

/// A column's name, and what it becomes.
type Named<'a> = (&'a str, Remade<'a>);

fn specifications(logical_sql: &str, columns: &[Named<'_>], family: Family) -> Option<Vec<String>> {
    let statement = Statement::cut(logical_sql)?;
    let collation = table_collation(statement.tail, family);
    let ours = |token: &Token| {
        let mut columns = columns.iter();
        columns.find(|(name, _)| same_name(name, &token.name()))
    };
    // what MySQL puts into comments for its own versions is read without them
    let bare = |element: &str| -> String {
        let kept = tokens(element).map(|token| match token {
            Token::Word(word) if word.starts_with("/*!") || word == "*/" => "",
            token => token.text(),
        });
        kept.collect()
    };
    let (mut found, mut adds) = (Vec::new(), Vec::new());
    let mut place = "FIRST".to_owned();
    // where the columns that stand together begin: each is put behind the last that stays
    let mut run = 0;
    let mut met = 0;
    let mut keys = Vec::new();
    let is_defined = |(_, remade): &Named<'_>| matches!(remade, Remade::Defined(_));
    let keeps_order = columns.iter().all(is_defined);
    for element in statement.elements {
        let element = bare(element.trim());
        let element = element.as_str();
        let first = Token::first(element)?;
        if first.is_identifier() {
            if let Some((_, remade)) = ours(&first) {
                met += 1;
                let words = match remade {
                    Remade::Protected(clause) => format!(" {clause}"),
                    Remade::Plaintext | Remade::Defined(_) => String::new(),
                };
                found.push(format!("DROP COLUMN {}", first.text()));
                // MySQL remembers that a definition names the table's collation
                let definition = match family {
                    Family::MySql => without_collation(element, collation.as_deref()),
                    Family::MariaDb => element.to_owned(),
                };
                let definition = match remade {
                    Remade::Defined(definition) => (*definition).to_owned(),
                    Remade::Plaintext | Remade::Protected(_) => definition,
                };
                adds.insert(run, format!("ADD COLUMN {definition}{words} {place}"));
            } else {
                place = format!("AFTER {}", first.text());
                run = adds.len();
            }
            continue;
        }
        let (before, list) = key_parts(element);
        let mut names = list.iter().filter(|token| token.is_identifier());
        let is_ours = names.any(|token| ours(token).is_some());
        // where a definition is all that changes, keys stay in their order
        let is_behind = keeps_order && !keys.is_empty() && is_plain_key(&before);
        if !is_ours && !is_behind {
            continue;
        }
        match before.as_slice() {
            ["PRIMARY", "KEY"] => keys.push("DROP PRIMARY KEY".to_owned()),
            ["UNIQUE", "KEY", name] | ["KEY", name] => keys.push(format!("DROP KEY {name}")),
            ["CONSTRAINT", _, "CHECK"] => continue,
            _ => return None,
        }
        keys.push(format!("ADD {element}"));
    }
    found.extend(adds);
    found.extend(keys);
    (met == columns.len()).then_some(found)
}

/// Whether this is how a key begins that has a name.
fn is_plain_key(before: &[&str]) -> bool {
    matches!(before, ["UNIQUE", "KEY", _] | ["KEY", _])
}

/// The words of an element up to its first parenthesis, and what stands in that.
fn key_parts(element: &str) -> (Vec<&str>, Vec<Token<'_>>) {
    let (mut before, mut list) = (Vec::new(), Vec::new());
    let mut depth = 0usize;
    for token in tokens(element) {
        match token.text() {
            "(" => depth += 1,
            ")" if depth <= 1 => break,
            ")" => depth -= 1,
            _ if matches!(token, Token::Space(_)) => {}
            text if depth == 0 => before.push(text),
            _ => list.push(token),
        }
    }
    (before, list)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "CREATE TABLE `t` (\n  `id` int(11) NOT NULL AUTO_INCREMENT,\n  `a` int(11) DEFAULT NULL,\n  \
                         `b` int(11) NOT NULL COMMENT 'KEY (`a`)',\n  PRIMARY KEY (`id`),\n  UNIQUE KEY `u` (`n`(10),`a`,`b`),\n  KEY `b` (`b`),\n  \
                         KEY `c` (`id`),\n  CONSTRAINT `f` FOREIGN KEY (`id`) REFERENCES `o` (`a`)\n) ENGINE=InnoDB";

    #[test]
    fn columns_keep_their_place_and_their_keys() {
        let found = specifications(
            TABLE,
            &[
                ("a", Remade::Plaintext),
                ("B", Remade::Protected("ENCRYPTED FOR (eq)")),
            ],
            Family::MariaDb,
        );
        let expected = [
            "DROP COLUMN `a`",
            "DROP COLUMN `b`",
            "ADD COLUMN `b` int(11) NOT NULL COMMENT 'KEY (`a`)' ENCRYPTED FOR (eq) AFTER `id`",
            "ADD COLUMN `a` int(11) DEFAULT NULL AFTER `id`",
            "DROP KEY `u`",
            "ADD UNIQUE KEY `u` (`n`(10),`a`,`b`)",
            "DROP KEY `b`",
            "ADD KEY `b` (`b`)",
        ];
        assert_eq!(found, Some(expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn a_column_of_another_foreign_key_is_left_alone() {
        assert_eq!(
            specifications(TABLE, &[("id", Remade::Plaintext)], Family::MariaDb),
            None
        );
        assert_eq!(
            specifications(TABLE, &[("missing", Remade::Plaintext)], Family::MariaDb),
            None
        );
    }
}
