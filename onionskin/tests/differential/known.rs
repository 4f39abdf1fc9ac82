//! Differences that are known and not mended yet: each pattern with its reason.
//!
//! They are printed in every run, with their count, and do not fail it. Whoever mends one takes
//! its line out. Rows of plain queries, affected rows and errors of the proxy are not in here,
//! except where a line says exactly which.

/// A part of a kind of difference, and why it is there.
pub const KNOWN: &[(&str, &str)] = &[
    (
        ": warnings",
        "warnings of coercions: counted once a value here, once a row or a statement there",
    ),
    (": info", "the same, in the text of the answer"),
    (
        "about the last statement",
        "ROW_COUNT(), @@warning_count and SHOW WARNINGS behind a statement that the proxy did or refused itself",
    ),
    (": column flag", "flags of computed columns"),
    (": prepared column flag", "flags of computed columns"),
    (
        ": column origin",
        "GROUP BY on tokens: the column comes out of MIN()",
    ),
    (
        ": prepared column origin",
        "GROUP BY on tokens: the column comes out of MIN()",
    ),
    (": column length", "lengths of computed texts"),
    (": prepared column length", "lengths of computed texts"),
    (": decimals", "decimals of computed texts"),
    (": prepared decimals", "decimals of computed texts"),
    (
        "describe: values",
        "defaults of TIMESTAMP are shown in the time zone that they were defined in",
    ),
    (
        "information_schema.columns: values",
        "the same; and characters beyond the BMP, which servers print as ?",
    ),
    ("show create table: values", "the same"),
    (
        "insert on duplicate: fails through the proxy only",
        "constants behind ON DUPLICATE KEY UPDATE are checked although no row is a duplicate",
    ),
    (
        "insert on duplicate (binary): fails through the proxy only",
        "the same",
    ),
    (
        "fails on the plain server only, with 1292",
        "truncations in conditions on other columns that the proxy's statement does not evaluate",
    ),
    (
        "fails on the plain server only, with 1364",
        "SET column = DEFAULT without a default and without a row",
    ),
    (
        "fails on the plain server only, with 1525",
        "wrong dates in conditions that are not evaluated",
    ),
    (
        "fails through the proxy only, with 1300",
        "ill-formed UTF-8 in an UPDATE",
    ),
    (
        "error 1061 (42000) instead of 1167",
        "which of several errors is raised",
    ),
    (
        "error 1366 (HY000) instead of 3988",
        "which of several errors is raised",
    ),
    (
        "fails on the plain server only, with 1918",
        "defaults that the column's character set cannot hold",
    ),
    (
        "fails on the plain server only, with 3988",
        "texts that the column's character set cannot hold",
    ),
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
