//! What a statement does to `FOUND_ROWS()`.

use super::words::Words;

/// What a statement does to `FOUND_ROWS()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finds {
    /// It is a query.
    Anew,
    /// It finds nothing, and leaves it.
    Keeps,
    /// That depends on the server.
    #[default]
    Unknown,
}

impl Words<'_> {
    /// By its first words, and whether a subquery may stand in it.
    pub(super) fn finds(&self) -> Finds {
        let writes = self.begins(&["insert", "replace"]);
        let finds_nothing = self.begins(&[
            "begin",
            "start",
            "commit",
            "rollback",
            "savepoint",
            "release",
            "use",
            "set",
        ]);
        match () {
            () if self.has_executable => Finds::Unknown,
            () if self.is(0, "show") && (self.is(1, "warnings") || self.is(1, "errors")) => {
                Finds::Keeps
            }
            () if self.is_sign(0, b'(') || self.begins(&["select", "with"]) => Finds::Anew,
            () if writes && !self.says("select") => Finds::Keeps,
            // a subquery finds rows
            () if finds_nothing && !self.has_parenthesis() => Finds::Keeps,
            () => Finds::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Facts;
    use crate::lex::LexMode;

    fn facts(sql: &str) -> Facts {
        Facts::read(sql.as_bytes(), LexMode::default())
    }

    #[test]
    fn what_is_found() {
        for (sql, finds) in [
            ("SELECT 1", Finds::Anew),
            ("(SELECT 1)", Finds::Anew),
            ("/* a */ WITH x AS (SELECT 1) SELECT * FROM x", Finds::Anew),
            ("INSERT INTO t VALUES ('select')", Finds::Keeps),
            ("INSERT INTO t SELECT 1", Finds::Unknown),
            ("SET @a = 1", Finds::Keeps),
            ("SET @a = (SELECT 1)", Finds::Unknown),
            ("SHOW WARNINGS", Finds::Keeps),
            ("SHOW TABLES", Finds::Unknown),
            ("UPDATE t SET a = 1", Finds::Unknown),
            ("/*!50000 SELECT 1 */", Finds::Unknown),
        ] {
            assert_eq!(facts(sql).finds, finds, "{sql}");
        }
    }
}
