//! What stands in `--alter`: the specifications of an ALTER TABLE, read just far enough to tell
//! what the new table's definition does not.

use crate::error::{MigrateError, Result};
use crate::statement::{Token, read};

/// Specifications, as tokens.
pub(crate) struct Specifications<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    /// Where its strings end cannot be told.
    is_unclear: bool,
}

impl<'a> Specifications<'a> {
    /// Reads them.
    pub fn read(text: &'a str) -> Self {
        let (tokens, is_unclear) = read(text);
        Self {
            text,
            tokens,
            is_unclear,
        }
    }

    /// Whether a word stands there, outside of strings and quoted names.
    fn has(&self, word: &str) -> bool {
        match self.is_unclear {
            false => self.tokens.iter().any(|token| token.is(word)),
            true => self
                .text
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|other| other.eq_ignore_ascii_case(word)),
        }
    }

    /// Whether the server may read something else than stands in the tokens.
    fn may_hide(&self) -> bool {
        self.is_unclear || self.text.contains("/*")
    }

    /// Refuses what cannot be done by copying rows into another table.
    pub fn check(&self) -> Result<()> {
        let refused = |text: String| Err(MigrateError::Request(text));
        if self.has("FOREIGN") || self.has("REFERENCES") {
            return refused(
                "--alter cannot add foreign keys, which cannot be switched with the tables: \
                 add them on the server afterwards"
                    .into(),
            );
        }
        if self.has("FULLTEXT") {
            return refused(
                "--alter cannot add full-text indexes, of which MySQL's lose rows that are written while a table is copied: \
                 add them on the server afterwards"
                    .into(),
            );
        }
        // Renaming needs no copy, and here it could not be told from dropping one column and adding
        // another.
        for word in ["RENAME", "CHANGE"] {
            if self.has(word) {
                return refused(format!(
                    "--alter cannot {word}: ALTER TABLE … RENAME COLUMN on the server is instant and needs no copy; \
                     use MODIFY for other definitions"
                ));
            }
        }
        if let Some(what) = self.moves_rows() {
            return refused(format!(
                "--alter cannot do {what}: it would be done to the new table, which has no rows yet, or to another table: use ALTER TABLE on the server"
            ));
        }
        if self.has("VERSIONING") {
            return refused(
                "--alter cannot change system versioning: the changes that are written again would be a history that never was".into(),
            );
        }
        if let Some(engine) = self.other_engine() {
            return refused(format!(
                "--alter cannot make a table of {engine}: what was written could be lost in a crash, and be read in no snapshot; InnoDB only"
            ));
        }
        // A column that is wrongly taken for one that is dropped and added again would lose its
        // values.
        if self.may_hide() && self.has("DROP") {
            return refused(
                "what --alter drops cannot be told with a backslash in a string, or beside a comment: write it without them".into(),
            );
        }
        Ok(())
    }

    /// The first specification that moves or deletes rows, or files, instead of saying what the
    /// table is.
    fn moves_rows(&self) -> Option<String> {
        const ROWS: [&str; 4] = ["EXCHANGE", "TRUNCATE", "IMPORT", "DISCARD"];
        if self.may_hide() {
            return ROWS.iter().find(|w| self.has(w)).map(|w| (*w).to_owned());
        }
        let mut depth = 0usize;
        let mut begins = true;
        for (at, token) in self.tokens.iter().enumerate() {
            let next_is =
                |words: &[&str]| self.tokens.get(at + 1).is_some_and(|t| t.is_one_of(words));
            if begins {
                if let Some(word) = ROWS.iter().find(|w| token.is(w)) {
                    return Some((*word).to_owned());
                }
                if token.is("DROP") && next_is(&["PARTITION"]) {
                    return Some("DROP PARTITION".into());
                }
                if token.is("CONVERT") && next_is(&["PARTITION", "TABLE"]) {
                    return Some("CONVERT of partitions".into());
                }
            }
            match token {
                Token::Sign('(') => depth += 1,
                Token::Sign(')') => depth = depth.saturating_sub(1),
                _ => {}
            }
            begins = depth == 0 && matches!(token, Token::Sign(','));
        }
        None
    }

    /// Another storage engine than InnoDB, if the table is to get one.
    fn other_engine(&self) -> Option<String> {
        self.tokens.windows(3).find_map(|three| match three {
            [
                word,
                Token::Sign('='),
                Token::Word(name) | Token::Quoted(name),
            ] if word.is("ENGINE") && !name.eq_ignore_ascii_case("InnoDB") => Some(name.clone()),
            _ => None,
        })
    }

    /// The columns that are dropped; others of the same names may be added.
    pub fn dropped(&self) -> Vec<String> {
        // What else there is to drop.
        const OTHERS: [&str; 8] = [
            "PRIMARY",
            "INDEX",
            "KEY",
            "FOREIGN",
            "CONSTRAINT",
            "CHECK",
            "PARTITION",
            "DEFAULT",
        ];
        let mut names = Vec::new();
        if self.may_hide() {
            // Refused by now.
            return names;
        }
        for (at, _) in self
            .tokens
            .iter()
            .enumerate()
            .filter(|(_, token)| token.is("DROP"))
        {
            let mut behind = self.tokens[at + 1..].iter().peekable();
            let is_column = behind.next_if(|token| token.is("COLUMN")).is_some();
            if !is_column && behind.peek().is_some_and(|token| token.is_one_of(&OTHERS)) {
                continue;
            }
            // words that may name columns as well
            let pair = [("PERIOD", "FOR"), ("SYSTEM", "VERSIONING")];
            let two = self.tokens.get(at + 1).zip(self.tokens.get(at + 2));
            if two.is_some_and(|(a, b)| pair.iter().any(|(x, y)| a.is(x) && b.is(y))) {
                continue;
            }
            let mut behind = behind.skip_while(|token| token.is_one_of(&["IF", "EXISTS"]));
            if let Some(Token::Word(name) | Token::Quoted(name)) = behind.next() {
                names.push(name.clone());
            }
        }
        names
    }

    /// Whether they tell the next number of an AUTO_INCREMENT column.
    pub fn tells_number(&self) -> bool {
        self.tokens.windows(2).any(|pair| {
            let is_number = match &pair[1] {
                Token::Sign('=') => true,
                Token::Word(word) => word.chars().all(|c| c.is_ascii_digit()),
                _ => false,
            };
            pair[0].is("AUTO_INCREMENT") && is_number
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renaming_is_refused() {
        let check = |text| Specifications::read(text).check();
        assert!(check("ADD COLUMN a INT, RENAME COLUMN b TO c").is_err());
        assert!(check("rename as other").is_err());
        assert!(check("change a b INT").is_err());
        assert!(check("ADD COLUMN exchange INT").is_ok());
        assert!(check("EXCHANGE PARTITION p WITH TABLE other").is_err());
        assert!(check("ADD COLUMN a DECIMAL(5,2), truncate partition p").is_err());
        assert!(check("DROP PARTITION p").is_err());
        assert!(check("CONVERT PARTITION p TO TABLE other").is_err());
        assert!(check("CONVERT TO CHARACTER SET utf8mb4").is_ok());
        assert!(check("DISCARD TABLESPACE").is_err());
        assert!(check("ADD SYSTEM VERSIONING").is_err());
        assert!(check("ENGINE = MyISAM").is_err());
        assert!(check("engine=innodb, ROW_FORMAT=DYNAMIC").is_ok());
        assert!(check("ADD COLUMN engine INT").is_ok());
        assert!(check("ADD FOREIGN KEY (a) REFERENCES b (c)").is_err());
        assert!(check("ADD COLUMN a INT references b (c)").is_err());
        assert!(check("ADD FULLTEXT (a)").is_err());
    }

    #[test]
    fn words_in_strings_and_names_are_none() {
        let check = |text| Specifications::read(text).check();
        assert!(check("ADD COLUMN a INT COMMENT 'rename, change: foreign'").is_ok());
        assert!(check("ADD COLUMN `change` INT, ADD INDEX `fulltext` (`change`)").is_ok());
        // Whether that is inside of the string depends on a setting.
        assert!(
            check(r"ADD COLUMN a INT COMMENT 'it\'s', CHANGE b c INT, ADD d INT COMMENT ''")
                .is_err()
        );
        for unclear in [
            r"ADD COLUMN a INT COMMENT 'it\'s', DROP c, ADD c INT COMMENT ''",
            r"MODIFY c INT COMMENT 'it\'s', MODIFY d INT COMMENT 'x, DROP c, y'",
            "ADD COLUMN a INT /*!99999 , DROP c */",
        ] {
            assert!(check(unclear).is_err(), "{unclear}");
        }
        assert!(check(r"ADD COLUMN a INT COMMENT 'it\'s' /* new */").is_ok());
    }

    #[test]
    fn dropped_columns_are_told_from_what_else_is_dropped() {
        let dropped = |text| Specifications::read(text).dropped();
        assert_eq!(
            dropped(
                "DROP COLUMN a, drop b, DROP COLUMN IF EXISTS `c d`, DROP IF EXISTS e, ADD COLUMN a INT"
            ),
            ["a", "b", "c d", "e"]
        );
        assert_eq!(
            dropped(
                "DROP PRIMARY KEY, DROP INDEX i, DROP KEY k, DROP CONSTRAINT x, DROP CHECK y, ALTER COLUMN a DROP DEFAULT, \
                 ADD COLUMN z INT COMMENT 'DROP q'"
            ),
            Vec::<String>::new()
        );
        assert_eq!(
            dropped("DROP period, DROP PERIOD FOR valid, DROP SYSTEM VERSIONING, DROP system"),
            ["period", "system"]
        );
        assert_eq!(
            dropped("DROP COLUMN `index`, DROP COLUMN `key`"),
            ["index", "key"]
        );
    }

    #[test]
    fn the_next_number_is_an_option_and_no_attribute() {
        let tells = |text| Specifications::read(text).tells_number();
        assert!(tells("AUTO_INCREMENT=7"));
        assert!(tells("ADD COLUMN a INT, auto_increment = 7"));
        assert!(tells("AUTO_INCREMENT 7"));
        assert!(!tells("MODIFY id BIGINT AUTO_INCREMENT, ADD COLUMN a INT"));
        assert!(!tells("MODIFY id BIGINT AUTO_INCREMENT"));
    }
}
