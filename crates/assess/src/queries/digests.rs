//! Statements from `performance_schema.events_statements_summary_by_digest`.

use super::asked::Asked;
use crate::{
    AssessError,
    reader::{MAX_ROWS, Reader, Refusal},
    text::shown,
};

/// What a digest has in the place of what it leaves out.
const LEFT_OUT: &str = "...";

/// Reads the digests; those of no database belong to `database`. The error is why there are none.
pub(super) fn read(
    reader: &mut Reader,
    database: &str,
    asked: &mut Asked,
) -> Result<Option<String>, AssessError> {
    let from = format!(
        "FROM performance_schema.events_statements_summary_by_digest \
         WHERE DIGEST_TEXT IS NOT NULL ORDER BY COUNT_STAR DESC LIMIT {MAX_ROWS}"
    );
    let with_sample =
        format!("SELECT SCHEMA_NAME, DIGEST_TEXT, COUNT_STAR, QUERY_SAMPLE_TEXT {from}");
    let without = format!("SELECT SCHEMA_NAME, DIGEST_TEXT, COUNT_STAR, NULL {from}");
    let mut answer = reader.raw(&with_sample)?;
    if matches!(answer, Err(Refusal::Unknown)) {
        answer = reader.raw(&without)?;
    }
    let rows = match answer {
        Ok(rows) => rows,
        Err(Refusal::Denied(_)) => {
            return Ok(Some(
                "the digests are not visible: needs GRANT SELECT ON performance_schema.*".into(),
            ));
        }
        Err(Refusal::Unknown) => return Ok(Some("this server has no digests".into())),
        Err(Refusal::Other(said)) => return Ok(Some(format!("the digests: {}", shown(&said)))),
    };
    if rows.is_empty() {
        return Ok(Some(
            "the server has no digests: is performance_schema on?".into(),
        ));
    }
    for row in rows {
        let cell = |at: usize| row.get(at).and_then(Option::as_deref);
        let count = cell(2).and_then(|c| c.parse().ok()).unwrap_or(1);
        let name = cell(0).unwrap_or(database);
        add(asked, name, cell(1).unwrap_or_default(), count, cell(3));
    }
    Ok(None)
}

/// Counts a digest; by a statement of it, if there is a whole one.
fn add(asked: &mut Asked, database: &str, digest: &str, count: u64, sample: Option<&str>) {
    let sample = sample.filter(|sample| !sample.ends_with(LEFT_OUT));
    match sample {
        Some(sample) => asked.add(sample, database, count),
        None if digest.ends_with(LEFT_OUT) => {
            asked.skip("digests that the server has shortened", count);
        }
        None => match with_whole_rows(statement(digest)) {
            Some(sql) => asked.add(&sql, database, count),
            None => asked.skip("digests of new rows without a list of columns", count),
        },
    }
}

/// A row has as many values as columns are listed. A digest has one mark for all of them.
fn with_whole_rows(sql: String) -> Option<String> {
    const ROW: &str = "VALUES(?)";
    let verb = sql.split_whitespace().next().unwrap_or_default();
    let inserts = ["insert", "replace"].map(|word| verb.eq_ignore_ascii_case(word));
    let (Some(at), true) = (sql.find(ROW), inserts.contains(&true)) else {
        return Some(sql);
    };
    let list = sql[..at].split_once('(').map(|(_, list)| list)?;
    let columns = list.matches(',').count() + 1;
    let row = format!("VALUES({})", vec!["?"; columns].join(", "));
    Some(sql.replacen(ROW, &row, 1))
}

/// A digest as a statement: `( ... )` is a parameter, and functions stand before their parenthesis.
fn statement(digest: &str) -> String {
    let text = digest.replace("(...)", "( ... )");
    let text = text.replace("( ... )", "(?)").replace(LEFT_OUT, "?");
    let mut sql = String::with_capacity(text.len());
    for part in text.split(" (") {
        if !sql.is_empty() {
            sql.push('(');
        }
        sql.push_str(part);
    }
    // `t . a`, `@@ x`
    sql.replace(" . ", ".").replace("@@ ", "@@")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_become_statements() {
        for (digest, sql) in [
            (
                "SELECT COUNT ( * ) FROM `t` WHERE `t` . `a` IN (...) AND `b` = ?",
                "SELECT COUNT( * ) FROM `t` WHERE `t`.`a` IN(?) AND `b` = ?",
            ),
            (
                "INSERT INTO `t` ( `a` , `b` ) VALUES (...)",
                "INSERT INTO `t`( `a` , `b` ) VALUES(?)",
            ),
            ("SELECT @@ `version`", "SELECT @@`version`"),
        ] {
            assert_eq!(statement(digest), sql);
        }
    }

    #[test]
    fn rows_have_as_many_values_as_columns() {
        let whole = |sql: &str| with_whole_rows(statement(sql));
        assert_eq!(
            whole("INSERT INTO `t` ( `a` , `b` ) VALUES (...) /* , ... */").as_deref(),
            Some("INSERT INTO `t`( `a` , `b` ) VALUES(?, ?) /* , ? */")
        );
        assert_eq!(whole("INSERT INTO `t` VALUES (...)"), None);
    }

    #[test]
    fn a_whole_sample_is_taken_and_a_shortened_digest_is_counted() {
        let mut asked = Asked::default();
        add(&mut asked, "app", "SELECT ?", 3, Some("SELECT 'x'"));
        add(
            &mut asked,
            "app",
            "SELECT `a` , ...",
            2,
            Some("SELECT a, ..."),
        );
        add(&mut asked, "app", "SELECT `a` FROM `t`", 1, None);
        let shapes = asked.shapes();
        let texts: Vec<_> = shapes.iter().map(|s| (s.sql.as_str(), s.count)).collect();
        assert_eq!(texts, [("SELECT 'x'", 3), ("SELECT `a` FROM `t`", 1)]);
        assert_eq!(
            asked.skipped(),
            [("digests that the server has shortened".to_owned(), 2)]
        );
    }
}
