//! `CREATE TABLE … SELECT`: the definition that a server makes of a query's columns.

use onionskin_value::Family;

use crate::{
    copy::{unnamed_check, without_collation, words},
    errors::SchemaError,
    folding::same_name,
    show_create::{Statement, Token, table_collation, tokens},
};

/// What `SHOW CREATE TABLE` shows of a temporary table, made into a definition of another table.
#[derive(Debug)]
pub struct SelectedDefinition {
    /// The statement, with logical columns.
    pub sql: String,
    /// All columns, in their order.
    pub columns: Vec<String>,
    /// The one that counts rows by itself.
    pub counter: Option<String>,
    /// Those that are shown with a character set and without a collation. MySQL shows so what it
    /// has taken from an expression; written in a definition, a character set counts as the
    /// column's own, and its collation is shown.
    pub derived_charset: Vec<String>,
}

/// The statement that makes a table with the columns and keys of the one that `shown`, a
/// `SHOW CREATE TABLE`, is about. `head` is what stands before the list: `CREATE TABLE name`;
/// `encrypted` names columns with their ENCRYPTED FOR (…); `options` is what stands behind the
/// list. `name` is that of the table that is shown: constraints that are called after it are left
/// to be named anew.
pub fn selected_definition(
    shown: &str,
    name: &str,
    head: &str,
    encrypted: &[(String, String)],
    options: &str,
    family: Family,
) -> Result<SelectedDefinition, SchemaError> {
    let bad = || SchemaError::DefinitionNotUnderstood { table: name.into() };
    let statement = Statement::cut(shown).ok_or_else(bad)?;
    let collation = table_collation(statement.tail, family);
    let (mut columns, mut counter, mut elements) = (Vec::new(), None, Vec::new());
    let mut derived_charset = Vec::new();
    for element in &statement.elements {
        let element = element.trim();
        let first = tokens(element).next().ok_or_else(bad)?;
        let Token::Quoted(_) = first else {
            // a key that is too long for the temporary table's engine, not for the server's
            if words(element).any(|word| word == "HASH") {
                return Err(bad());
            }
            let called_after = |t: Token<'_>| {
                matches!(t, Token::Quoted(_)) && t.name().starts_with(&format!("{name}_chk_"))
            };
            elements.push(match tokens(element).any(called_after) {
                true => unnamed_check(element).to_owned(),
                false => element.to_owned(),
            });
            continue;
        };
        let column = first.name();
        if words(element).any(|word| word == "AUTO_INCREMENT") {
            counter = Some(column.clone());
        }
        let has = |wanted: &str| words(element).any(|word| word == wanted);
        if family == Family::MySql && has("CHARACTER") && !has("COLLATE") {
            derived_charset.push(column.clone());
        }
        let mut text = match family {
            Family::MySql => without_collation(element, collation.as_deref()),
            Family::MariaDb => element.to_owned(),
        };
        if let Some((_, words)) = encrypted.iter().find(|(n, _)| same_name(n, &column)) {
            text.push(' ');
            text.push_str(words);
        }
        elements.push(text);
        columns.push(column);
    }
    if columns.is_empty() {
        return Err(bad());
    }
    Ok(SelectedDefinition {
        sql: format!("{head} ({}) {options}", elements.join(", ")),
        columns,
        counter,
        derived_charset,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_keys_and_words() {
        let shown = "CREATE TEMPORARY TABLE `n$` (\n  `id` int NOT NULL AUTO_INCREMENT,\n  `a b` varchar(5) DEFAULT 'x,)',\n  PRIMARY KEY (`id`),\n  \
             CONSTRAINT `n$_chk_1` CHECK ((`id` > 0)),\n  CONSTRAINT `own` CHECK ((`id` > 1))\n) ENGINE=InnoDB AUTO_INCREMENT=4 DEFAULT CHARSET=utf8mb4";
        let encrypted = [("A B".to_owned(), "ENCRYPTED FOR (eq)".to_owned())];
        let made = selected_definition(
            shown,
            "n$",
            "CREATE TABLE `d`.`t`",
            &encrypted,
            "COMMENT 'c'",
            Family::MySql,
        )
        .expect("it is understood");
        assert_eq!(
            made.sql,
            "CREATE TABLE `d`.`t` (`id` int NOT NULL AUTO_INCREMENT, `a b` varchar(5) DEFAULT 'x,)' ENCRYPTED FOR (eq), PRIMARY KEY (`id`), \
             CHECK ((`id` > 0)), CONSTRAINT `own` CHECK ((`id` > 1))) COMMENT 'c'"
        );
        assert_eq!(made.columns, ["id", "a b"]);
        assert_eq!(made.counter.as_deref(), Some("id"));
    }

    #[test]
    fn keys_by_hash_are_not_taken() {
        let shown = "CREATE TEMPORARY TABLE `n` (\n  `a` varchar(300) DEFAULT NULL,\n  UNIQUE KEY `a` (`a`) USING HASH\n) ENGINE=MyISAM";
        assert!(
            selected_definition(shown, "n", "CREATE TABLE t", &[], "", Family::MariaDb).is_err()
        );
    }
}
