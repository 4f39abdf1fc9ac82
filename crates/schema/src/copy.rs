//! `CREATE TABLE … LIKE`: the definition of a table like another one.
//!
//! A server would copy the physical columns with their comments, and with them the ids that bind
//! cells to their table and column: cells could then be exchanged between the two tables unnoticed,
//! and MySQL gives CHECK constraints other names than a protected column's must have. So the proxy
//! makes a definition of its own, from the logical one of the table that is copied, with new ids.

use onionskin_value::Family;

use crate::{
    errors::SchemaError,
    show_create::{Statement, Token, logical, table_collation, tokens},
    table::Table,
};

/// The statement that makes a table like `table`, whose physical `SHOW CREATE TABLE` is
/// `physical_sql`: logical columns, marked with what they are `ENCRYPTED FOR`. `head` is what
/// stands before the list: `CREATE TABLE name`.
///
/// As servers do it, foreign keys and the counter of AUTO_INCREMENT stay behind, and MySQL names
/// CHECK constraints anew.
pub fn copy_definition(
    physical_sql: &str,
    table: &Table,
    head: &str,
    family: Family,
) -> Result<String, SchemaError> {
    if let Some(reason) = &table.damaged {
        return Err(SchemaError::DamagedTable {
            table: table.name.clone(),
            reason: reason.clone(),
        });
    }
    let text = match table.is_protected() {
        true => logical(physical_sql, table, family.into(), true),
        false => Some(physical_sql.to_owned()),
    };
    text.and_then(|text| copied(&text, head, family))
        .ok_or_else(|| SchemaError::DefinitionNotUnderstood {
            table: table.name.clone(),
        })
}

/// A definition without its foreign keys, and these as they stand there, in the order of their
/// text. A text that cannot be cut stays as it is.
pub fn split_foreign_keys(sql: &str) -> (String, Vec<String>) {
    let whole = || (sql.to_owned(), Vec::new());
    let Some(statement) = Statement::cut(sql) else {
        return whole();
    };
    let (foreign, others): (Vec<&str>, Vec<&str>) = statement
        .elements
        .iter()
        .partition(|element| words(element).any(|word| word == "FOREIGN"));
    if foreign.is_empty() {
        return whole();
    }
    let mut foreign: Vec<String> = foreign.iter().map(|key| key.trim().to_owned()).collect();
    foreign.sort();
    let rest = format!("{}{}{}", statement.head, others.join(","), statement.tail);
    (rest, foreign)
}

/// The columns of a definition as MySQL shows it that allow NULL and have no default, not even
/// NULL: `ALTER COLUMN … DROP DEFAULT` makes them. MySQL shows `DEFAULT NULL` of all others but of
/// long texts and their like, of which the definition does not tell.
pub fn lost_defaults(sql: &str) -> Vec<String> {
    const HAVE_ONE: [&str; 4] = ["DEFAULT", "NOT", "GENERATED", "AS"];
    const TELL_NOTHING: [&str; 4] = ["text", "blob", "geometry", "vector"];
    let Some(statement) = Statement::cut(sql) else {
        return Vec::new();
    };
    let lost = |element: &&str| {
        let element = element.trim_start();
        let name = Token::first(element).filter(Token::is_identifier)?;
        let behind = &element[name.text().len()..];
        let is_long = |word: &str| TELL_NOTHING.iter().any(|ty| word.ends_with(ty));
        let has_one = words(behind).any(|word| HAVE_ONE.contains(&word))
            || words(behind).next().is_none_or(is_long);
        (!has_one).then(|| name.name())
    };
    statement.elements.iter().filter_map(lost).collect()
}

fn copied(logical_sql: &str, head: &str, family: Family) -> Option<String> {
    let statement = Statement::cut(logical_sql)?;
    let collation = table_collation(statement.tail, family);
    let elements: Vec<String> = statement
        .elements
        .iter()
        .filter(|element| !words(element).any(|word| word == "FOREIGN"))
        .map(|element| match family {
            Family::MySql => without_collation(unnamed_check(element), collation.as_deref()),
            Family::MariaDb => (*element).to_owned(),
        })
        .collect();
    let mut tail = String::new();
    for token in tokens(statement.tail) {
        match token {
            // where the files of a table lie is not copied, and parts of it would not be understood
            // here
            Token::Word("DIRECTORY") => return None,
            Token::Word(word) if word.starts_with("DIRECTORY=") => return None,
            Token::Word(word) if word.starts_with("AUTO_INCREMENT=") => {}
            other => tail.push_str(other.text()),
        }
    }
    Some(format!("{head} ({}{tail}", elements.join(",")))
}

pub(crate) fn words(element: &str) -> impl Iterator<Item = &str> {
    tokens(element).filter_map(|token| match token {
        Token::Word(word) => Some(word),
        _ => None,
    })
}

/// `CONSTRAINT name CHECK (…)` without its name.
pub(crate) fn unnamed_check(element: &str) -> &str {
    let trimmed = element.trim_start();
    if !trimmed.starts_with("CONSTRAINT ") {
        return element;
    }
    let mut at = element.len() - trimmed.len();
    let mut names = 0;
    for token in tokens(trimmed) {
        match token {
            Token::Word("CONSTRAINT") | Token::Space(_) => {}
            Token::Word("CHECK") if names == 1 => return &element[at..],
            _ => names += 1,
        }
        if names > 1 {
            return element;
        }
        at += token.text().len();
    }
    element
}

/// A column without the collation that MySQL shows though it is the table's: written in a
/// definition, it would count as the column's own.
pub(crate) fn without_collation(element: &str, of_table: Option<&str>) -> String {
    let is_column = tokens(element.trim_start())
        .next()
        .is_some_and(|first| first.is_identifier());
    if !is_column || words(element).any(|word| word == "CHARACTER") {
        return element.to_owned();
    }
    let (mut out, mut depth, mut after) = (String::new(), 0usize, false);
    for token in tokens(element) {
        match token {
            Token::Word("(") => depth += 1,
            Token::Word(")") => depth = depth.saturating_sub(1),
            Token::Word("COLLATE") if depth == 0 => after = true,
            Token::Word(name) if after && Some(name) == of_table => {
                after = false;
                let kept = out.trim_end().trim_end_matches("COLLATE").trim_end().len();
                out.truncate(kept);
                continue;
            }
            Token::Space(_) => {}
            _ => after = false,
        }
        out.push_str(token.text());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Table {
        Table::named("d", "t")
    }

    #[test]
    fn foreign_keys_are_cut_out_whole() {
        let sql = "CREATE TABLE `t` (\n  `a` int COMMENT 'x, FOREIGN KEY (',\n  PRIMARY KEY (`a`),\n  \
             CONSTRAINT `g` FOREIGN KEY (`a`, `b`) REFERENCES `u` (`a`, `b`),\n  \
             CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `u` (`a`)\n) ENGINE=InnoDB";
        let (rest, keys) = split_foreign_keys(sql);
        assert_eq!(
            rest,
            "CREATE TABLE `t` (\n  `a` int COMMENT 'x, FOREIGN KEY (',\n  PRIMARY KEY (`a`)\n) ENGINE=InnoDB"
        );
        assert_eq!(
            keys,
            [
                "CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `u` (`a`)",
                "CONSTRAINT `g` FOREIGN KEY (`a`, `b`) REFERENCES `u` (`a`, `b`)"
            ]
        );
        assert_eq!(split_foreign_keys(&rest), (rest.clone(), Vec::new()));
    }

    #[test]
    fn columns_without_any_default() {
        let sql = "CREATE TABLE `t` (\n  `id` int NOT NULL AUTO_INCREMENT,\n  `a` varchar(9),\n  `b` int DEFAULT NULL,\n  \
             `c,``d` enum('a','DEFAULT') COMMENT 'DEFAULT NULL',\n  `e` text,\n  `f` longtext COLLATE utf8mb4_bin,\n  \
             `g` int GENERATED ALWAYS AS ((`b` + 1)) VIRTUAL,\n  `h` datetime(6),\n  `i` timestamp NULL,\n  \
             `j` int DEFAULT (rand()),\n  PRIMARY KEY (`id`),\n  KEY `k` (`a`),\n  CONSTRAINT `c` CHECK ((`id` > 0))\n) ENGINE=InnoDB";
        assert_eq!(lost_defaults(sql), ["a", "c,`d", "h", "i"]);
    }

    #[test]
    fn foreign_keys_and_counters_stay_behind() {
        let sql = "CREATE TABLE `t` (\n  `id` int NOT NULL AUTO_INCREMENT,\n  `FOREIGN` int DEFAULT '5',\n  PRIMARY KEY (`id`),\n  \
             CONSTRAINT `f` FOREIGN KEY (`id`) REFERENCES `u` (`id`) ON DELETE CASCADE,\n  \
             CONSTRAINT `c` CHECK ((`id` > 0))\n) ENGINE=InnoDB AUTO_INCREMENT=17 DEFAULT CHARSET=utf8mb4";
        let copy = |family| copy_definition(sql, &plain(), "CREATE TABLE `u`", family).unwrap();
        let common = "CREATE TABLE `u` (\n  `id` int NOT NULL AUTO_INCREMENT,\n  `FOREIGN` int DEFAULT '5',\n  PRIMARY KEY (`id`),";
        let options = "\n) ENGINE=InnoDB  DEFAULT CHARSET=utf8mb4";
        assert_eq!(
            copy(Family::MySql),
            format!("{common}CHECK ((`id` > 0)){options}")
        );
        assert_eq!(
            copy(Family::MariaDb),
            format!("{common}\n  CONSTRAINT `c` CHECK ((`id` > 0)){options}")
        );
    }

    #[test]
    fn a_collation_that_is_the_tables_is_not_the_columns_own() {
        for (element, want) in [
            (
                "  `a` text COLLATE utf8mb4_bin NOT NULL COMMENT 'COLLATE utf8mb4_bin'",
                "  `a` text NOT NULL COMMENT 'COLLATE utf8mb4_bin'",
            ),
            (
                "`a` text COLLATE utf8mb4_general_ci",
                "`a` text COLLATE utf8mb4_general_ci",
            ),
            (
                "`a` text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
                "`a` text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            ),
            (
                "`a` int GENERATED ALWAYS AS ((`b` COLLATE utf8mb4_bin))",
                "`a` int GENERATED ALWAYS AS ((`b` COLLATE utf8mb4_bin))",
            ),
            ("KEY `COLLATE` (`a`)", "KEY `COLLATE` (`a`)"),
        ] {
            assert_eq!(without_collation(element, Some("utf8mb4_bin")), want);
        }
    }

    #[test]
    fn what_lies_elsewhere_is_not_copied() {
        let sql = "CREATE TABLE `t` (`a` int) ENGINE=InnoDB DATA DIRECTORY='/elsewhere/'";
        assert!(copy_definition(sql, &plain(), "CREATE TABLE `u`", Family::MariaDb).is_err());
    }
}
