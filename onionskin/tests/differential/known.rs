//! Differences that are known and stay: each pattern with its reason.
//!
//! They are printed in every run, with their count, and do not fail it. `known_differences.rs`
//! shows for each that a plain server makes it by itself, where it gets what the proxy sends.

/// A part of a kind of difference, and why it is there.
pub const KNOWN: &[(&str, &str)] = &[
    ("replace: affected rows", REPLACED),
    ("replace (binary): affected rows", REPLACED),
    ("replace: info", REPLACED),
    ("replace (binary): info", REPLACED),
    ("insert of a query: affected rows", REPLACED),
    ("insert of a query (binary): affected rows", REPLACED),
    ("insert of a query: info", REPLACED),
    ("insert of a query (binary): info", REPLACED),
    (
        "alter a table: fails through the proxy only, with 1292",
        COPIED,
    ),
    (
        "alter a table (binary): fails through the proxy only, with 1292",
        COPIED,
    ),
    (
        "alter a table: fails through the proxy only, with 3819",
        COPIED,
    ),
    (
        "alter a table (binary): fails through the proxy only, with 3819",
        COPIED,
    ),
    ("insert: info", SAYS_ONE_ROW),
    ("insert (binary): info", SAYS_ONE_ROW),
    ("insert ignore: info", SAYS_ONE_ROW),
    ("insert ignore (binary): info", SAYS_ONE_ROW),
    ("insert on duplicate: info", SAYS_ONE_ROW),
    ("insert on duplicate (binary): info", SAYS_ONE_ROW),
    ("insert of odd constants: info", SAYS_ONE_ROW),
    ("insert of odd constants (binary): info", SAYS_ONE_ROW),
    (
        "update: fails on the plain server only, with 1292",
        SEEN_TO_BE_IMPOSSIBLE,
    ),
    (
        "update narrowed: fails on the plain server only, with 1292",
        NO_ROW_TO_LOOK_AT,
    ),
    ("update: info", FINDS_NONE),
    ("update (binary): info", FINDS_NONE),
    ("temporary table (binary): warnings", PREPARED_DEFINITION),
    (
        "(binary): fails on the plain server only, with 3988",
        NOT_SEEN,
    ),
];

const COPIED: &str = "MySQL: the new column comes with a CHECK, for which the server copies the rows; zero dates in them do not pass, nor do rows that a CHECK compares with a text that is no number";
const SAYS_ONE_ROW: &str = "under sql_warnings, servers tell in words of one row that was stored with a warning; the proxy's warnings do not count there";
const FINDS_NONE: &str = "MariaDB tells nothing of an UPDATE that its optimizer sees to find no row; it sees other conditions here";
const SEEN_TO_BE_IMPOSSIBLE: &str = "MariaDB: an UPDATE converts the constants of a condition and fails; a SELECT that looks for the rows sees that the \
                                     condition is impossible and converts none";
const NO_ROW_TO_LOOK_AT: &str = "MariaDB: an UPDATE converts the constants of a condition, and fails, where there is a row to look at; tokens may have \
                                 found none";
const PREPARED_DEFINITION: &str = "MySQL warns of DECIMAL UNSIGNED when the definition is prepared; a definition is sent as a text here";

const NOT_SEEN: &str = "MySQL: a parameter beside a plain column that cannot be converted is an error before any row is looked for; where the proxy \
                        looks for rows and finds none, the server does not see it";

/// A sealed cell never looks the same twice.
const REPLACED: &str = "REPLACE counts a row that is replaced by an equal one once, and twice if it has protected columns";

/// Why a kind of difference is known; `None` if it is not. With `ONIONSKIN_KNOWN=0` none is, so
/// that each gets its script.
pub fn reason(kind: &str) -> Option<&'static str> {
    if std::env::var("ONIONSKIN_KNOWN").is_ok_and(|value| value == "0") {
        return None;
    }
    KNOWN
        .iter()
        .find(|(part, _)| kind.contains(part))
        .map(|(_, reason)| *reason)
}
