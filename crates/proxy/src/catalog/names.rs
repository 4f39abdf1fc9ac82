//! Names in look-ups.

use onionskin_schema::folded;
use std::borrow::Cow;

/// A database of the servers' own whose tables hold nothing that a client has stored. MySQL does
/// not show all their columns.
pub(crate) fn is_virtual(database: &str) -> bool {
    ["information_schema", "performance_schema"]
        .iter()
        .any(|name| name.eq_ignore_ascii_case(database))
}

/// A text in a query whose meaning no setting of the session changes.
pub(crate) fn literal(text: &str) -> String {
    let hex: String = text.bytes().map(|b| format!("{b:02x}")).collect();
    format!("CONVERT(x'{hex}' USING utf8mb4)")
}

/// What to ask for: the names as they stand, and in lower case where that is something else.
pub(crate) fn spellings<'a>(
    database: &'a str,
    names: &[&'a str],
) -> Vec<(Cow<'a, str>, Vec<Cow<'a, str>>)> {
    let has_upper = |text: &str| text.chars().any(char::is_uppercase);
    let lower = || {
        let names = names.iter().filter(|n| has_upper(n));
        names.map(|n| Cow::Owned(folded(n)))
    };
    let as_given = names.iter().map(|n| Cow::Borrowed(*n));
    let mut asked: Vec<(Cow<str>, Vec<Cow<str>>)> =
        vec![(Cow::Borrowed(database), as_given.chain(lower()).collect())];
    if has_upper(database) {
        let all = names.iter().map(|n| Cow::Owned(folded(n))).collect();
        asked.push((Cow::Owned(folded(database)), all));
    }
    // Names of databases and tables are in the basic plane; servers refuse to compare others with
    // them.
    let possible = |name: &str| name.chars().all(|c| c <= '\u{ffff}');
    for (_, names) in &mut asked {
        names.retain(|n| possible(n));
        names.sort_unstable();
        names.dedup();
    }
    asked.retain(|(database, names)| possible(database) && !names.is_empty());
    asked
}
