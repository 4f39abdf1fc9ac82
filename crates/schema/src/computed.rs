//! Defaults that are computed for each row, and ON UPDATE CURRENT_TIMESTAMP.
//!
//! Such a default is kept as the text in which the server itself prints it behind DEFAULT in SHOW
//! CREATE TABLE, without the parentheses that MySQL puts around every expression. So it can be
//! shown as it stands, and means the same under any session's settings. The present time is an
//! expression like others, but for its words, which need no server to be known:
//! `current_timestamp(6)` on MariaDB, `CURRENT_TIMESTAMP(6)` on MySQL. MySQL prints an expression
//! that tells the time as `now(6)`, so that the two cannot be taken for each other.

use onionskin_value::{Family, Kind, SqlType};

use crate::show_create::{Statement, Token, tokens};

const MYSQL_NOW: &str = "CURRENT_TIMESTAMP";
const MARIADB_NOW: &str = "current_timestamp";
const INVISIBLE: &str = "INVISIBLE";

/// CURRENT_TIMESTAMP for a DATETIME or TIMESTAMP with so many digits of a fraction, as the server
/// prints it.
pub fn present_time(fraction: u8, family: Family) -> String {
    match (family, fraction) {
        (Family::MariaDb, 0) => format!("{MARIADB_NOW}()"),
        (Family::MariaDb, n) => format!("{MARIADB_NOW}({n})"),
        (Family::MySql, 0) => MYSQL_NOW.to_owned(),
        (Family::MySql, n) => format!("{MYSQL_NOW}({n})"),
    }
}

/// Digits of a column's fraction of a second; `None` if it cannot hold the present time.
pub fn time_fraction(sql_type: &SqlType) -> Option<u8> {
    match sql_type.kind {
        Kind::DateTime { fsp } | Kind::Timestamp { fsp } => Some(fsp),
        _ => None,
    }
}

/// Whether a default is the present time, and no other expression.
pub fn is_present_time(text: &str, family: Family) -> bool {
    match family {
        Family::MariaDb => {
            let inside = text
                .strip_prefix(MARIADB_NOW)
                .and_then(|rest| rest.strip_prefix('(')?.strip_suffix(')'));
            inside.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
        }
        Family::MySql => text.starts_with(MYSQL_NOW),
    }
}

/// What stands behind DEFAULT.
pub fn default_sql(text: &str, family: Family) -> String {
    match family {
        Family::MySql if !is_present_time(text, family) => format!("({text})"),
        _ => text.to_owned(),
    }
}

/// The text that SHOW COLUMNS and `information_schema` have of it.
pub(crate) fn shown_default(text: &str, family: Family) -> String {
    match family {
        Family::MySql => text.replace('\\', "\\\\").replace('\'', "\\'"),
        Family::MariaDb => text.to_owned(),
    }
}

/// EXTRA of a column, as SHOW COLUMNS and `information_schema` have it; `others` is what stands
/// there of the sealed column.
pub(crate) fn extra(computed: bool, on_update: Option<u8>, others: &str, family: Family) -> String {
    let mut words = Vec::new();
    if computed && family == Family::MySql {
        words.push("DEFAULT_GENERATED".to_owned());
    }
    if let Some(fraction) = on_update {
        words.push(format!("on update {}", present_time(fraction, family)));
    }
    // a sealed column may have a default of its own
    if others.contains(INVISIBLE) {
        words.push(INVISIBLE.to_owned());
    }
    words.join(match family {
        Family::MariaDb => ", ",
        Family::MySql => " ",
    })
}

/// The default that SHOW CREATE TABLE prints of a table's only column, in the form in which it is
/// kept. `None`: it has none, or the text is not understood.
pub fn computed_default(shown: &str, family: Family) -> Option<String> {
    let statement = Statement::cut(shown)?;
    let [element] = statement.elements.as_slice() else {
        return None;
    };
    let (mut at, mut depth, mut found) = (0, 0usize, None);
    for token in tokens(element) {
        match token {
            Token::Word("(") => depth += 1,
            Token::Word(")") => depth = depth.checked_sub(1)?,
            Token::Word("DEFAULT") if depth == 0 => found = Some(at + token.text().len()),
            // of MariaDB's JSON
            Token::Word("CHECK") if depth == 0 && found.is_some() => break,
            _ => {}
        }
        at += token.text().len();
    }
    let text = element.get(found?..at)?.trim();
    let text = match family {
        Family::MySql => match text.strip_prefix('(') {
            Some(inner) => inner.strip_suffix(')')?,
            None => text,
        },
        Family::MariaDb => text,
    };
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_default_is_taken_from_the_servers() {
        let of = |element: &str, family| {
            let text = format!("CREATE TEMPORARY TABLE `t` (\n  {element}\n) ENGINE=InnoDB");
            computed_default(&text, family)
        };
        assert_eq!(
            of("`c` char(36) DEFAULT (uuid())", Family::MySql).as_deref(),
            Some("uuid()")
        );
        assert_eq!(
            of("`c` int NOT NULL DEFAULT ((1 + 2))", Family::MySql).as_deref(),
            Some("(1 + 2)")
        );
        assert_eq!(
            of("`c` enum('DEFAULT') DEFAULT (1 + 2)", Family::MariaDb).as_deref(),
            Some("(1 + 2)")
        );
        assert_eq!(
            of("`c` char(36) DEFAULT uuid()", Family::MariaDb).as_deref(),
            Some("uuid()")
        );
        assert_eq!(
            of(
                "`c` longtext DEFAULT json_array() CHECK (json_valid(`c`))",
                Family::MariaDb
            )
            .as_deref(),
            Some("json_array()")
        );
        assert_eq!(of("`c` int NOT NULL", Family::MariaDb), None);
    }

    #[test]
    fn the_present_time_is_told_from_expressions() {
        for (family, text, sql) in [
            (
                Family::MySql,
                "CURRENT_TIMESTAMP(3)",
                "CURRENT_TIMESTAMP(3)",
            ),
            (Family::MySql, "now(3)", "(now(3))"),
            (
                Family::MariaDb,
                "current_timestamp()",
                "current_timestamp()",
            ),
            (Family::MariaDb, "(1 + 2)", "(1 + 2)"),
        ] {
            assert_eq!(default_sql(text, family), sql);
        }
        assert!(is_present_time("current_timestamp(6)", Family::MariaDb));
        assert!(!is_present_time(
            "(current_timestamp() + interval 1 day)",
            Family::MariaDb
        ));
        for family in [Family::MySql, Family::MariaDb] {
            for fraction in 0..=6 {
                assert!(is_present_time(&present_time(fraction, family), family));
            }
        }
    }

    #[test]
    fn extra_lists_what_there_is() {
        let shown =
            |computed, on_update, others, family| extra(computed, on_update, others, family);
        assert_eq!(
            shown(true, Some(0), "INVISIBLE", Family::MySql),
            "DEFAULT_GENERATED on update CURRENT_TIMESTAMP INVISIBLE"
        );
        assert_eq!(
            shown(true, Some(6), "INVISIBLE", Family::MariaDb),
            "on update current_timestamp(6), INVISIBLE"
        );
        assert_eq!(shown(true, None, "", Family::MariaDb), "");
    }
}
