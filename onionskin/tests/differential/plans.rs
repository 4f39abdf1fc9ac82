//! What a plain server says of a result under other plans of its own.
//!
//! Column definitions are no function of the statement: a column that has gone through a temporary
//! table of the server's has lost flags, an aggregate in one has other decimals (and on MariaDB a
//! YEAR of 0 is printed as `0000` there, as `0` elsewhere, and a BIT that makes rows distinct is a
//! number there, bytes elsewhere). Which plan it is depends on indexes, on the number of rows, on
//! the version. `SQL_BIG_RESULT`, `SQL_SMALL_RESULT` and `SQL_BUFFER_RESULT` make a server choose
//! the other one. A definition is right if the plain server gives it under any of its plans; that
//! it does give several is what this asks it each time.
//!
//! In strict mode, a conversion in the condition of an UPDATE or DELETE is an error where the plan
//! has to look at a row by it. An index can spare that. So a change that fails for such a condition
//! may succeed under another plan of the same server, and one that finds no row may fail.

use mysql::prelude::Queryable;

use super::answers::{self, Answer};
use super::comparison::{self, Difference};
use super::script::{Piece, Statement};

/// What is put behind which words. The last hides from the optimizer that no row can meet a
/// condition.
const VARIANTS: [&[(&str, &str)]; 12] = [
    &[("SELECT ", "SQL_BIG_RESULT ")],
    &[("SELECT ", "SQL_SMALL_RESULT ")],
    &[("SELECT ", "SQL_BUFFER_RESULT ")],
    &[("SELECT ", "STRAIGHT_JOIN ")],
    &[("SELECT ", "STRAIGHT_JOIN SQL_BIG_RESULT ")],
    &[(" FROM t0", " USE INDEX ()")],
    &[(" FROM t1", " USE INDEX ()")],
    &[(" FROM t2", " USE INDEX ()")],
    &[
        ("SELECT ", "SQL_BIG_RESULT "),
        (" FROM t0", " USE INDEX ()"),
    ],
    &[
        ("SELECT ", "SQL_BIG_RESULT "),
        (" FROM t1", " USE INDEX ()"),
    ],
    &[
        ("SELECT ", "SQL_BIG_RESULT "),
        (" FROM t2", " USE INDEX ()"),
    ],
    &[(" WHERE ", "RAND() > 2 OR ")],
];

/// What is put behind which words of a change. USE INDEX is for UPDATE only.
const VARIANTS_OF_CHANGES: [&[(&str, &str)]; 7] = [
    &[("UPDATE t0", " USE INDEX ()")],
    &[("UPDATE t1", " USE INDEX ()")],
    &[("UPDATE t2", " USE INDEX ()")],
    &[("UPDATE t0", " USE INDEX (PRIMARY)")],
    &[("UPDATE t1", " USE INDEX (PRIMARY)")],
    &[("UPDATE t2", " USE INDEX (PRIMARY)")],
    &[(" WHERE ", "RAND() > 2 OR ")],
];

/// Drops the differences that are none under another plan. `plain` is left as after the statements,
/// if they end in a SELECT; returns whether it is.
pub fn drop_plan_dependent(
    plain: &mut mysql::Conn,
    statements: &[Statement],
    proxied: &Answer,
    differences: &mut Vec<Difference>,
    from: usize,
) -> bool {
    drop_failures(plain, statements, proxied, differences, from);
    if !differences[from..].iter().any(depends_on_plan) {
        return true;
    }
    drop_by_variants(plain, statements, proxied, differences, from);
    // a limit takes plans away from the optimizer
    let limit: Option<Option<u64>> = plain.query_first("SELECT @@sql_select_limit").ok();
    if let Some(Some(limit)) = limit.filter(|limit| *limit != Some(u64::MAX)) {
        answers::must(plain, "SET sql_select_limit = DEFAULT");
        drop_by_variants(plain, statements, proxied, differences, from);
        answers::must(plain, &format!("SET sql_select_limit = {limit}"));
    }
    match statements {
        [.., last] if is_select(last) => {
            answers::answer(plain, std::slice::from_ref(last));
            true
        }
        _ => false,
    }
}

/// Drops the failure of a change on the plain server only, if it does the same as through the proxy
/// under another plan. It has done so then. And drops the failure through the proxy of a change
/// that has changed nothing on the plain server, if that fails with it under another plan, too.
fn drop_failures(
    plain: &mut mysql::Conn,
    statements: &[Statement],
    proxied: &Answer,
    differences: &mut Vec<Difference>,
    from: usize,
) {
    const OF_CONDITIONS: &str = ": fails on the plain server only, with 1292";
    const OF_OTHER_ROWS: &str = ": fails through the proxy only, with 1292";
    let ([statement], [difference]) = (statements, &differences[from..]) else {
        return;
    };
    let is_change = ["UPDATE ", "DELETE "]
        .iter()
        .any(|verb| statement.text().starts_with(verb));
    let looks_at_others =
        difference.kind.ends_with(OF_OTHER_ROWS) && !difference.diverged && is_change;
    if !looks_at_others && !difference.kind.ends_with(OF_CONDITIONS) {
        return;
    }
    for variant in VARIANTS_OF_CHANGES {
        let Some(other) = edited(statement, variant) else {
            continue;
        };
        let other = [other];
        let expected = answers::answer(plain, &other);
        if looks_at_others {
            if expected.problem.is_some_and(|p| p.code == 1292) {
                differences.truncate(from);
                return;
            }
            continue;
        }
        if expected.problem.is_none() {
            let mut left = Vec::new();
            comparison::differences(&other, &expected, proxied, &mut left);
            if left.is_empty() {
                differences.truncate(from);
            }
            return;
        }
    }
}

fn drop_by_variants(
    plain: &mut mysql::Conn,
    statements: &[Statement],
    proxied: &Answer,
    differences: &mut Vec<Difference>,
    from: usize,
) {
    for (statement, set) in statements.iter().zip(&proxied.sets) {
        for variant in VARIANTS {
            let Some(other) = with(statement, variant) else {
                continue;
            };
            let other = [other];
            let expected = answers::answer(plain, &other);
            if expected.problem.is_some() {
                continue;
            }
            let one = Answer {
                sets: vec![set.clone()],
                problem: None,
                prepared: proxied.prepared.clone(),
            };
            let mut left = Vec::new();
            comparison::differences(&other, &expected, &one, &mut left);
            let about = differences.split_off(from);
            differences.extend(about.into_iter().filter(|difference| {
                !depends_on_plan(difference)
                    || !difference.kind.starts_with(statement.label)
                    || left.iter().any(|l| same_finding(l, difference))
            }));
        }
    }
}

/// Column definitions, and what rows there are and what is in them: an index of MySQL's finds an
/// ENUM's empty value by a word that is no member, and a BINARY by its beginning.
fn depends_on_plan(difference: &Difference) -> bool {
    difference.is_metadata
        || difference.kind.contains(": values of ")
        || difference.kind.ends_with(": number of rows")
}

/// The same property of the same column.
fn same_finding(a: &Difference, b: &Difference) -> bool {
    let column = |difference: &Difference| {
        let detail = &difference.detail;
        detail[..detail.find("): plain").unwrap_or(0)].to_owned()
    };
    a.kind == b.kind && column(a) == column(b)
}

fn is_select(statement: &Statement) -> bool {
    matches!(statement.pieces.first(), Some(Piece::Sql(sql)) if sql.starts_with("SELECT "))
}

fn with(statement: &Statement, edits: &[(&str, &str)]) -> Option<Statement> {
    match is_select(statement) {
        true => edited(statement, edits),
        false => None,
    }
}

fn edited(statement: &Statement, edits: &[(&str, &str)]) -> Option<Statement> {
    let mut other = statement.clone();
    for (word, addition) in edits {
        let (sql, at) = other.pieces.iter_mut().find_map(|piece| match piece {
            Piece::Sql(sql) => sql.find(word).map(|at| (sql, at)),
            Piece::Constant(..) => None,
        })?;
        sql.insert_str(at + word.len(), addition);
    }
    Some(other)
}
