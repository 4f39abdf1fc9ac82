//! What a statement does to `FOUND_ROWS()`.

use super::words::Words;

/// What a statement does to `FOUND_ROWS()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finds {
    /// It is a query.
    Anew,
    /// It is a query of one row of aggregates. Where MariaDB sees before it looks that no row can
    /// be found, it leaves it.
    AnewOrKeeps,
    /// It finds nothing, and leaves it.
    Keeps,
    /// That depends on the server.
    #[default]
    Unknown,
}

/// Functions that make one row of many.
const AGGREGATES: [&str; 22] = [
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "count",
    "group_concat",
    "json_arrayagg",
    "json_objectagg",
    "max",
    "min",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "st_collect",
    "sum",
    "any_value",
    "var_pop",
    "var_samp",
    "variance",
    "cume_dist",
    "median",
];

impl Words<'_> {
    /// Whether it may be a query whose rows become one, without GROUP BY. Of several queries in one
    /// statement it is not known which of them groups.
    fn may_aggregate_all(&self) -> bool {
        let queries = self.all.iter().filter(|word| word.is("select")).count();
        (queries > 1 || !self.says("group")) && AGGREGATES.iter().any(|name| self.says(name))
    }

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
        let is_query = self.is_sign(0, b'(') || self.begins(&["select", "with"]);
        match () {
            () if self.has_executable => Finds::Unknown,
            () if self.is(0, "show") && (self.is(1, "warnings") || self.is(1, "errors")) => {
                Finds::Keeps
            }
            () if is_query && self.may_aggregate_all() => Finds::AnewOrKeeps,
            () if is_query => Finds::Anew,
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
            ("SELECT MAX(a) FROM t WHERE b = 1", Finds::AnewOrKeeps),
            ("(SELECT MAX(a) FROM t)", Finds::AnewOrKeeps),
            ("SELECT MAX(a) FROM t GROUP BY b", Finds::Anew),
            (
                "SELECT MAX(a) FROM t WHERE b IN (SELECT b FROM t GROUP BY b)",
                Finds::AnewOrKeeps,
            ),
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
