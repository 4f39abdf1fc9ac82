//! Differences that are known, with the reason for each. They count as differences, and stand in docs/sql.md; only others fail
//! the test.

/// File, a part of the statement, and why the answers differ.
const KNOWN: &[(&str, &str, &str)] = &[
    (
        "select",
        "where key1 <= 0.6158",
        "MIN and MAX of a FLOAT beside a decimal constant: with an index the server rounds the constant to FLOAT, without one it compares exactly",
    ),
    (
        "select",
        "where key2 <= 1.6158",
        "MIN and MAX of a FLOAT beside a decimal constant, as above",
    ),
    (
        "select",
        "where key1 >= 0.3762",
        "MIN and MAX of a FLOAT beside a decimal constant, as above",
    ),
    (
        "select",
        "where key2 >= 1.3762",
        "MIN and MAX of a FLOAT beside a decimal constant, as above",
    ),
    (
        "select",
        "show table status",
        "the version of the table's definition file is another one because the table has a CHECK constraint",
    ),
    (
        "select",
        "GROUP_CONCAT(c ORDER BY",
        "a position in GROUP_CONCAT's ORDER BY is an error of the server only with sql_buffer_result",
    ),
    (
        "select",
        "wrong-date-value",
        "warnings of a range that the optimizer looks at in an index; the scratch engine has no index and meets no row",
    ),
    (
        "having",
        "HAVING MAX(t1.b) <> 6",
        "without rows, the server's answer depends on whether its tables are constant to the optimizer",
    ),
    (
        "order_by",
        "select a from t1 order by a",
        "max_sort_length is 4 bytes there: the server sorts by the beginning only, the proxy by the whole",
    ),
    (
        "order_by",
        "select col1 as col, col from t1 order by col",
        "an alias that is also the name of a plain item: the server calls it ambiguous",
    ),
    (
        "order_by",
        "select * from t1 order by b",
        "Out of sort memory, with a sort buffer that is too small on purpose: the proxy sorts itself",
    ),
    (
        "order_by",
        "SELECT * FROM t1 ORDER BY a,b",
        "Out of sort memory, with a sort buffer that is too small on purpose: order keys are longer",
    ),
    (
        "subselect",
        "show warnings",
        "an error that aborts a sort raises a second one, which the proxy does not see",
    ),
    (
        "ctype_utf8",
        "GROUP BY aa",
        "VARCHAR or CHAR: the type of a subquery's column depends on the temporary table that the optimizer takes",
    ),
    (
        "ctype_utf8",
        "VARCHAR(2184",
        "a VARCHAR that is too long becomes a TEXT outside of strict mode, which the proxy does not imitate",
    ),
];

/// Why this difference is known.
pub fn reason(file: &str, sql: &str) -> Option<&'static str> {
    KNOWN
        .iter()
        .find(|(f, part, _)| *f == file && sql.contains(part))
        .map(|(_, _, reason)| *reason)
}
