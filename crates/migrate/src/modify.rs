//! What stands in `--modify`: a protected column's new definition, as behind MODIFY in ALTER TABLE.
//!
//! It takes the place of the column's old definition in the text from which the new table is made.
//! The planner of CREATE TABLE reads it there, so what may stand in a protected column's definition
//! is decided in one place. Here is only looked that it is one definition and no more.

use onionskin_schema::{Table, identifier, same_name};

use crate::error::{MigrateError, Result};
use crate::statement::{Token, read};

/// Words of a column's definition that make or belong to something else, and what does that.
const ELSEWHERE: [(&str, &str); 10] = [
    ("FIRST", "the column's place"),
    ("AFTER", "the column's place"),
    ("UNIQUE", "an index"),
    ("KEY", "an index"),
    ("PRIMARY", "an index"),
    ("REFERENCES", "a foreign key"),
    ("CHECK", "a constraint"),
    ("CONSTRAINT", "a constraint"),
    ("GENERATED", "a generated column"),
    (
        "ENCRYPTED",
        "the capabilities, which --add and --drop change",
    ),
];

/// A new definition of a column.
pub(crate) struct Definition<'a> {
    /// The column, as it is spelt there.
    pub name: String,
    text: &'a str,
}

impl<'a> Definition<'a> {
    /// Reads `name VARCHAR(200) NOT NULL`.
    pub fn read(text: &'a str) -> Result<Self> {
        let refused = |reason: String| {
            Err(MigrateError::Request(format!(
                "--modify wants a column and its new definition, such as \"name VARCHAR(200) NOT NULL\": {reason}"
            )))
        };
        let text = text.trim();
        let (tokens, is_unclear) = read(text);
        // A comment would hide what follows it in the table's definition.
        if is_unclear
            || ["/*", "--", "#", "\n"]
                .iter()
                .any(|mark| text.contains(mark))
        {
            return refused("no comment, line end or backslash may stand there".into());
        }
        let Some(Token::Word(name) | Token::Quoted(name)) = tokens.first() else {
            return refused("it begins with no name".into());
        };
        let rest = &tokens[1..];
        if rest.is_empty() {
            return refused("there is no definition".into());
        }
        let mut depth = 0usize;
        for token in rest {
            match token {
                Token::Sign('(') => depth += 1,
                Token::Sign(')') if depth == 0 => {
                    return refused("its parentheses do not match".into());
                }
                Token::Sign(')') => depth -= 1,
                Token::Sign(',') if depth == 0 => {
                    return refused("give --modify once for every column".into());
                }
                Token::Sign(';') => return refused("a semicolon stands there".into()),
                _ => {}
            }
        }
        if depth > 0 {
            return refused("its parentheses do not match".into());
        }
        let other = ELSEWHERE
            .iter()
            .find(|(word, _)| rest.iter().any(|token| token.is(word)));
        if let Some((word, what)) = other {
            return refused(format!(
                "{word} is of {what}; the proxy takes it in ALTER TABLE"
            ));
        }
        let name = name.clone();
        Ok(Self { name, text })
    }

    /// Puts it into the place of the column's definition among the `elements` of a CREATE TABLE, of
    /// which each has a line.
    pub fn put(&self, table: &Table, elements: &str) -> Result<String> {
        let refused = |what: &str| MigrateError::Refused {
            table: table.name.clone(),
            reason: format!("the definition of column {} {what}", self.name),
        };
        let column = table.column(&self.name);
        let column = column.ok_or_else(|| refused("is not there"))?;
        // each value would have to be judged anew
        if column.protection.as_ref().is_some_and(|p| p.is_checked()) {
            return Err(refused(
                "has a CHECK constraint over it: drop the constraint first",
            ));
        }
        let head = format!("{} ", identifier(&column.name));
        let mut found = 0;
        let lines = elements.lines().map(|line| {
            if !line.trim_start().starts_with(&head) {
                return line.to_owned();
            }
            found += 1;
            let comma = if line.ends_with(',') { "," } else { "" };
            format!("  {}{comma}", self.text)
        });
        let elements = lines.collect::<Vec<_>>().join("\n");
        match found {
            1 => Ok(elements),
            _ => Err(refused("is not understood")),
        }
    }
}

/// The definitions of different columns.
pub(crate) fn read_all(texts: &[String]) -> Result<Vec<Definition<'_>>> {
    let mut definitions: Vec<Definition<'_>> = Vec::new();
    for text in texts {
        let new = Definition::read(text)?;
        if definitions
            .iter()
            .any(|old| same_name(&old.name, &new.name))
        {
            let name = new.name;
            return Err(MigrateError::Request(format!(
                "--modify names {name} twice"
            )));
        }
        definitions.push(new);
    }
    Ok(definitions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_definition_is_read() {
        for (text, name) in [
            ("name VARCHAR(200) NOT NULL", "name"),
            ("`a b` DECIMAL(9,2) DEFAULT -1", "a b"),
            (" e ENUM('a,b;c)','d') COMMENT 'first, after'", "e"),
        ] {
            assert_eq!(Definition::read(text).unwrap().name, name);
        }
        for wrong in [
            "",
            "name",
            "(a INT)",
            "a INT, b INT",
            "a INT; DROP TABLE t",
            "a INT) ENGINE=MyISAM",
            "a VARCHAR(9",
            "a INT -- x",
            "a INT /* x */",
            "a INT # x",
            "a INT\n, b INT",
            r"a VARCHAR(9) DEFAULT '\'",
            "a INT UNIQUE",
            "a INT PRIMARY KEY",
            "a INT FIRST",
            "a INT AFTER b",
            "a INT REFERENCES b (c)",
            "a INT CHECK (a > 1)",
            "a INT ENCRYPTED FOR (eq)",
        ] {
            assert!(Definition::read(wrong).is_err(), "{wrong}");
        }
    }
}
