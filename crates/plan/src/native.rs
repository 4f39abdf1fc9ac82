//! Words of the servers' own: those that are no names, and functions that are no stored ones.

use onionskin_value::Family;

use crate::scratch::{carried, is_carried};

/// Words that cannot be a table's name without quotes, in either family.
const RESERVED: [&str; 73] = [
    "add",
    "all",
    "alter",
    "and",
    "as",
    "asc",
    "before",
    "between",
    "by",
    "case",
    "change",
    "character",
    "check",
    "collate",
    "column",
    "constraint",
    "create",
    "cross",
    "default",
    "delete",
    "desc",
    "describe",
    "distinct",
    "drop",
    "else",
    "exists",
    "explain",
    "false",
    "for",
    "force",
    "foreign",
    "from",
    "group",
    "having",
    "if",
    "ignore",
    "in",
    "index",
    "inner",
    "insert",
    "into",
    "is",
    "join",
    "key",
    "left",
    "like",
    "limit",
    "lock",
    "not",
    "null",
    "on",
    "or",
    "order",
    "primary",
    "procedure",
    "rename",
    "replace",
    "right",
    "select",
    "set",
    "show",
    "table",
    "then",
    "to",
    "true",
    "union",
    "unique",
    "update",
    "use",
    "using",
    "values",
    "when",
    "where",
];
/// Other words that MySQL reserves, and that stand before a parenthesis.
const OF_MYSQL: [&str; 19] = [
    "binary",
    "database",
    "decimal",
    "dense_rank",
    "first_value",
    "grouping",
    "json_table",
    "lag",
    "last_value",
    "lateral",
    "lead",
    "nth_value",
    "ntile",
    "over",
    "partition",
    "rank",
    "row_number",
    "varchar",
    "with",
];

/// Functions that are not carried: they tell of the session, or act.
const NOT_CARRIED: [&str; 12] = [
    "cast",
    "connection_id",
    "found_rows",
    "get_lock",
    "last_insert_id",
    "release_lock",
    "row_count",
    "schema",
    "sleep",
    "sysdate",
    "user",
    "version",
];

/// Functions of MariaDB that some versions of MySQL do not have: there a stored function may be
/// called so, and a column.
const OF_MARIADB: [&str; 26] = [
    "chr",
    "crc32c",
    "decode",
    "encode",
    "encrypt",
    "json_compact",
    "json_detailed",
    "json_equals",
    "json_exists",
    "json_loose",
    "json_normalize",
    "json_query",
    "lengthb",
    "md5",
    "median",
    "natural_sort_key",
    "nvl",
    "nvl2",
    "old_password",
    "password",
    "percentile_cont",
    "percentile_disc",
    "sformat",
    "sha",
    "sha1",
    "to_char",
];

/// Whether the word cannot be a table's name without quotes.
pub(crate) fn is_reserved(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    RESERVED.binary_search(&word.as_str()).is_ok()
}

/// Whether the server has a function of this name, or a word of its language.
pub(crate) fn is_native(name: &str, family: Family) -> bool {
    let name = name.to_ascii_lowercase();
    is_reserved(&name)
        || is_carried(&name) && !(family == Family::MySql && OF_MARIADB.contains(&name.as_str()))
}

/// Whether MySQL calls no stored function where this word stands before a parenthesis. Between a
/// function's name and its parenthesis there must be no space, `is_apart`: then it may be a stored
/// one.
pub(crate) fn calls_no_program(name: &str, is_apart: bool) -> bool {
    let is_one_of = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(name));
    let is_function = || is_native(name, Family::MySql) || is_one_of(&NOT_CARRIED);
    is_reserved(name) || is_one_of(&OF_MYSQL) || !is_apart && is_function()
}

/// All words of which [`calls_no_program`] says so where nothing stands between them and the
/// parenthesis.
pub fn own_words() -> impl Iterator<Item = &'static str> {
    let all = [&RESERVED[..], &OF_MYSQL, &NOT_CARRIED, carried()].concat();
    all.into_iter().filter(|name| calls_no_program(name, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_are_sorted() {
        assert!(RESERVED.is_sorted());
        for word in ["add", "limit", "WHERE", "using"] {
            assert!(is_reserved(word), "{word}");
        }
        assert!(!is_reserved("email"));
    }
}
