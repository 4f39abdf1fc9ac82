//! Which statements ask about the statement before them.

/// A cell of an answer that the proxy knows better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    RowCount,
    FoundRows,
    WarningCount,
    ErrorCount,
    Other,
}

/// How a statement relates to the one before.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// It does not ask.
    None,
    /// It does not ask, and MariaDB keeps the warnings: a `SELECT` without tables.
    Keeps,
    /// `SHOW WARNINGS`, `SHOW ERRORS`
    Conditions {
        errors_only: bool,
        limit: Option<Limit>,
    },
    /// `SHOW COUNT(*) WARNINGS`, `SHOW COUNT(*) ERRORS`
    Count(Item),
    /// `SELECT ROW_COUNT(), @@warning_count`
    Cells(Vec<Item>),
    /// In another form.
    Unclear,
}

/// Behind `LIMIT`: which of the statement's literals is the number of rows, and which the number of those before them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Limit {
    pub count: usize,
    pub offset: Option<usize>,
}

/// Whether the shape may ask anything, or keep what was asked about: for most statements one look at their underscores tells that
/// they do not.
fn may_ask(key: &[u8]) -> bool {
    let begins = |word: &[u8]| {
        key.get(..word.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(word))
    };
    let is_part = |at: usize| {
        let behind = key.get(at + 1..at + 5).unwrap_or_default();
        behind.eq_ignore_ascii_case(b"coun") || behind.eq_ignore_ascii_case(b"rows")
    };
    begins(b"select ")
        || begins(b"show ")
        || begins(b"get ")
        || memchr::memchr_iter(b'_', key).any(is_part)
}

/// Whether `FOUND_ROWS` stands in a statement of this shape.
pub(crate) fn names_found_rows(key: &[u8]) -> bool {
    const WORD: &[u8] = b"found_rows";
    let ends = |at: usize| {
        let begin = at.checked_sub(5)?;
        Some(
            key.get(begin..begin + WORD.len())?
                .eq_ignore_ascii_case(WORD),
        )
    };
    memchr::memchr_iter(b'_', key).any(|at| ends(at) == Some(true))
}

/// What a statement does to `FOUND_ROWS()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Finds {
    /// It is a query.
    Anew,
    /// It finds nothing, and leaves it.
    Keeps,
    /// That depends on the server.
    #[default]
    Unknown,
}

/// Whether the word stands anywhere in the shape.
fn has_select(key: &[u8]) -> bool {
    const WORD: &[u8] = b"select";
    key.windows(WORD.len())
        .any(|part| part.eq_ignore_ascii_case(WORD))
}

/// What a statement of this shape does to `FOUND_ROWS()`.
pub(crate) fn finds(key: &[u8]) -> Finds {
    let end = key.iter().position(|b| !b.is_ascii_alphabetic());
    let word = &key[..end.unwrap_or(key.len())];
    let is = |other: &&[u8]| word.eq_ignore_ascii_case(other);
    const QUERIES: [&[u8]; 2] = [b"select", b"with"];
    const WRITES: [&[u8]; 2] = [b"insert", b"replace"];
    const OTHERS: [&[u8]; 8] = [
        b"begin",
        b"start",
        b"commit",
        b"rollback",
        b"savepoint",
        b"release",
        b"use",
        b"set",
    ];
    const QUESTIONS: [&[u8]; 2] = [b"show warnings", b"show errors"];
    let begins = |words: &&[u8]| {
        key.get(..words.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(words))
    };
    match () {
        () if QUESTIONS.iter().any(begins) => Finds::Keeps,
        () if key.first() == Some(&b'(') || QUERIES.iter().any(is) => Finds::Anew,
        () if WRITES.iter().any(is) && !has_select(key) => Finds::Keeps,
        // a subquery finds rows
        () if OTHERS.iter().any(is) && !key.contains(&b'(') => Finds::Keeps,
        () => Finds::Unknown,
    }
}

/// What a statement of this shape asks.
pub(super) fn question(key: &[u8]) -> Question {
    const CALLS: [&str; 6] = [
        "row_count(",
        "row_count (",
        "found_rows(",
        "found_rows (",
        "warning_count",
        "error_count",
    ];
    if !may_ask(key) {
        return Question::None;
    }
    let text = String::from_utf8_lossy(key).to_ascii_lowercase();
    let begins = |words: &str| text.starts_with(words);
    if begins("show warnings") || begins("show errors") || begins("show count") {
        return shown(&text);
    }
    if begins("get ") && text.contains("diagnostics") {
        return Question::Unclear;
    }
    let reads_tables = text.contains(" from ");
    // a variable, not a column of that name
    let variables = text.contains("@@");
    let asks = |call: &&str| text.contains(*call) && (variables || call.contains('('));
    if !CALLS.iter().any(asks) {
        return match begins("select ") && !reads_tables {
            true => Question::Keeps,
            false => Question::None,
        };
    }
    let Some(list) = text.strip_prefix("select ").filter(|_| !reads_tables) else {
        return Question::Unclear;
    };
    let mut items = Vec::new();
    for item in list.split(',') {
        let item = item.trim();
        // a call ends with its parenthesis, a variable with a space; an alias may follow
        let end = item.find([')', ' ']).map_or(item.len(), |at| at + 1);
        let end = if item[..end].ends_with(' ') && item[end..].starts_with('(') {
            item.find(')').map_or(item.len(), |at| at + 1)
        } else {
            end
        };
        let bare: String = item[..end].chars().filter(|&c| c != ' ').collect();
        let alias = item[end..].trim();
        let alias = alias.strip_prefix("as ").unwrap_or(alias);
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '`');
        items.push(match bare.as_str() {
            _ if !alias.chars().all(is_name) => return Question::Unclear,
            "row_count()" => Item::RowCount,
            "found_rows()" => Item::FoundRows,
            "@@warning_count" | "@@session.warning_count" | "@@local.warning_count" => {
                Item::WarningCount
            }
            "@@error_count" | "@@session.error_count" | "@@local.error_count" => Item::ErrorCount,
            other if CALLS.iter().any(|call| other.contains(call.trim_end())) => {
                return Question::Unclear;
            }
            // a comma inside of a call is none between items
            other if other.contains('(') != other.contains(')') => return Question::Unclear,
            _ => Item::Other,
        });
    }
    Question::Cells(items)
}

/// What a statement of this shape, in small letters, asks to be shown.
fn shown(text: &str) -> Question {
    let compact = |text: &str| text.replace(' ', "");
    match compact(text).as_str() {
        "showcount(*)warnings" => return Question::Count(Item::WarningCount),
        "showcount(*)errors" => return Question::Count(Item::ErrorCount),
        _ => {}
    }
    let errors = text.strip_prefix("show errors");
    let Some(behind) = errors.or(text.strip_prefix("show warnings")) else {
        return Question::Unclear;
    };
    let (offset, count) = match compact(behind).as_str() {
        "" => (None, None),
        "limit\x01i" => (None, Some(0)),
        "limit\x01i,\x01i" => (Some(0), Some(1)),
        "limit\x01ioffset\x01i" => (Some(1), Some(0)),
        _ => return Question::Unclear,
    };
    Question::Conditions {
        errors_only: errors.is_some(),
        limit: count.map(|count| Limit { count, offset }),
    }
}

/// Whether a statement of this shape asks about the one before.
pub(crate) fn asks(key: &[u8]) -> bool {
    !matches!(question(key), Question::None | Question::Keeps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_told_from_other_statements() {
        assert_eq!(question(b"SELECT a FROM t"), Question::None);
        assert_eq!(question(b"UPDATE t SET row_count = \x01i"), Question::None);
        assert_eq!(question(b"SELECT error_count FROM jobs"), Question::None);
        assert_eq!(
            question(b"UPDATE jobs SET warning_count = \x01i"),
            Question::None
        );
        assert_eq!(question(b"SELECT \x01i"), Question::Keeps);
        let conditions = |errors_only, limit: Option<(usize, Option<usize>)>| {
            let limit = limit.map(|(count, offset)| Limit { count, offset });
            Question::Conditions { errors_only, limit }
        };
        for (text, asked) in [
            ("SHOW WARNINGS", conditions(false, None)),
            ("show errors", conditions(true, None)),
            (
                "SHOW WARNINGS LIMIT \x01i",
                conditions(false, Some((0, None))),
            ),
            (
                "SHOW ERRORS LIMIT \x01i , \x01i",
                conditions(true, Some((1, Some(0)))),
            ),
            (
                "SHOW WARNINGS LIMIT \x01i OFFSET \x01i",
                conditions(false, Some((0, Some(1)))),
            ),
            (
                "SHOW COUNT(*) WARNINGS",
                Question::Count(Item::WarningCount),
            ),
            ("SHOW COUNT( * ) ERRORS", Question::Count(Item::ErrorCount)),
            ("SHOW WARNINGS LIMIT \x01?", Question::Unclear),
            ("SHOW WARNINGS LIKE \x01s", Question::Unclear),
            ("SHOW WARNINGS LIMIT ROWS EXAMINED \x01i", Question::Unclear),
            ("SHOW COUNT(*)", Question::Unclear),
        ] {
            assert_eq!(question(text.as_bytes()), asked, "{text}");
        }
        assert_eq!(
            question(b"SELECT ROW_COUNT(), LAST_INSERT_ID()"),
            Question::Cells(vec![Item::RowCount, Item::Other])
        );
        assert_eq!(
            question(b"select @@warning_count , @@session.error_count e"),
            Question::Cells(vec![Item::WarningCount, Item::ErrorCount])
        );
        assert_eq!(
            question(b"select row_count () as `n`, found_rows() f"),
            Question::Cells(vec![Item::RowCount, Item::FoundRows])
        );
        for unclear in [
            b"SELECT IF(ROW_COUNT() > \x01i, \x01i, \x01i)".as_slice(),
            b"SELECT ROW_COUNT() + \x01i",
            b"SELECT @@warning_count > \x01i",
            b"SELECT ROW_COUNT() FROM t",
            b"INSERT INTO log VALUES (ROW_COUNT())",
            b"SET @n = ROW_COUNT()",
            b"GET DIAGNOSTICS @n = NUMBER",
        ] {
            assert_eq!(question(unclear), Question::Unclear);
        }
    }
}
