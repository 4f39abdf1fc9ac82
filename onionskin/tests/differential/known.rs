//! Differences that are known and not mended yet: each pattern with its reason.
//!
//! They are printed in every run, with their count, and do not fail it. Whoever mends one takes
//! its line out. Rows, values, affected rows and errors are not in here, except where a line says
//! exactly which.

/// A part of a kind of difference, and why it is there.
pub const KNOWN: &[(&str, &str)] = &[
    (
        "select groups finished: column",
        "groups that the proxy finishes: plain columns come through window functions",
    ),
    ("select groups finished: prepared column", "the same"),
    ("select groups finished: decimals", "the same"),
    ("select groups finished: prepared decimals", "the same"),
    (
        "select distinct: column flag NOT_NULL_FLAG",
        "DISTINCT on tokens is GROUP BY at the server, whose temporary table forgets it",
    ),
    (
        "select distinct: prepared column flag NOT_NULL_FLAG",
        "the same",
    ),
    (
        "select narrowed: column flag",
        "rows that the proxy finishes: a plain column comes through an expression",
    ),
    ("select, sorted by the proxy: column flag", "the same"),
    (
        "select aggregates: column",
        "an aggregate of a plain column beside one that the proxy computes",
    ),
    ("select aggregates: prepared column", "the same"),
    (
        "select groups: column",
        "GROUP BY on tokens: how the server's temporary table describes columns",
    ),
    ("select groups: prepared column", "the same"),
    ("select groups: decimals", "the same"),
    ("select groups: prepared decimals", "the same"),
    (
        "select groups: values of MYSQL_TYPE_YEAR",
        "MAX of the year 0 in a group, which MariaDB prints as 0 or as 0000",
    ),
    (
        "about the last statement: number of rows",
        "warnings that come before an error of the proxy's own are not listed",
    ),
    (
        "about the last statement: values of MYSQL_TYPE_LONGLONG",
        "the same, counted",
    ),
    (
        "insert on duplicate (binary): affected rows",
        "a new row that meets an earlier one of the same statement: defaults of rows of different shape get a cell each",
    ),
    ("insert on duplicate (binary): info", "the same"),
];

/// Why a kind of difference is known; `None` if it is not. With `ONIONSKIN_KNOWN=0` none is, so that each gets its script.
pub fn reason(kind: &str) -> Option<&'static str> {
    if std::env::var("ONIONSKIN_KNOWN").is_ok_and(|value| value == "0") {
        return None;
    }
    KNOWN
        .iter()
        .find(|(part, _)| kind.contains(part))
        .map(|(_, reason)| *reason)
}
