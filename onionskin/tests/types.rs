//! Every type as a protected column, in each of its forms (sealed only, `eq`, `range`), against a
//! plain server: what INSERT and UPDATE take and refuse under which `sql_mode`, what SELECT shows
//! in both protocols, what conditions, ORDER BY and GROUP BY find, and how SHOW and
//! information_schema describe it. Character sets of the connection and of the results are among
//! the dimensions.

#[path = "types/members.rs"]
mod members;

#[path = "types/bits.rs"]
mod bits;

#[path = "types/documents.rs"]
mod documents;

#[path = "types/edges.rs"]
mod edges;

#[path = "types/connections.rs"]
mod connections;

#[path = "types/digits.rs"]
mod digits;

#[path = "types/protocol.rs"]
mod protocol;

#[path = "types/fixed_binary.rs"]
mod fixed_binary;

#[path = "types/extended_metadata.rs"]
mod extended_metadata;

#[path = "types/wildcards.rs"]
mod wildcards;

use ::mysql::Value;
use bits::bits;
use connections::{
    announced_collations, character_sets_of_connections,
    character_sets_that_stand_for_other_collations, conversions_are_the_servers,
};
use digits::real_numbers_with_digits;
use documents::documents;
use edges::{numbers_and_dates_at_their_edges, signed_zeros};
use extended_metadata::{definitions_have_no_extension_on_mysql, what_mariadb_tells_besides};
use fixed_binary::{
    uuid_and_inet_are_defined, uuid_and_inet_are_found, uuid_and_inet_are_moved,
    uuid_and_inet_are_stored, uuid_and_inet_name_rows, uuid_and_inet_without_an_engine,
    uuids_of_mixed_versions,
};
use members::{members_of_bytes_are_defined, members_of_enum_and_set};
use onionskin_testkit::*;
use protocol::{cursors_and_long_data, statements_in_texts};
use wildcards::a_wildcard_gives_what_a_type_can_have;

on_both_servers!(
    definitions_have_no_extension_on_mysql,
    what_mariadb_tells_besides,
    members_of_enum_and_set,
    members_of_bytes_are_defined,
    bits,
    documents,
    numbers_and_dates_at_their_edges,
    character_sets_of_connections,
    definitions_are_shown,
    cursors_and_long_data,
    statements_in_texts,
    conversions_are_the_servers,
    announced_collations,
    character_sets_that_stand_for_other_collations,
    signed_zeros,
    real_numbers_with_digits,
    a_wildcard_gives_what_a_type_can_have,
    uuid_and_inet_are_stored,
    uuid_and_inet_are_found,
    uuid_and_inet_are_defined,
    uuid_and_inet_are_moved,
    uuids_of_mixed_versions,
    uuid_and_inet_without_an_engine,
    uuid_and_inet_name_rows,
);

/// Runs a statement that writes, through the proxy first. One that it refuses is spared the plain
/// server; otherwise both answer alike, and hold the same rows afterwards.
fn write(pair: &mut Pair, refused: &mut Vec<String>, table: &str, sql: &str, parameters: &[Value]) {
    let run = |session: &mut Session| {
        let answer = match parameters {
            [] => session.run(sql),
            values => session.execute(sql, values.to_vec()),
        };
        answer.map(|o| (o.affected, o.warnings))
    };
    let protected = run(&mut pair.protected);
    if let Err(failure) = &protected
        && failure.message.starts_with("OS")
    {
        refused.push(format!("{sql} {parameters:?}: {failure}"));
        return;
    }
    let plain = run(&mut pair.plain);
    let code = |failure: Failure| (failure.code, failure.state);
    assert_eq!(
        plain.map_err(code),
        protected.map_err(code),
        "{sql} {parameters:?}"
    );
    pair.compare_text(&format!("SELECT * FROM {table} ORDER BY id"));
}

/// No more was refused than that.
fn at_most(refused: &[String], count: usize) {
    assert!(
        refused.len() <= count,
        "{} refused: {refused:#?}",
        refused.len()
    );
}

/// Compares rows alone, in both protocols: how the columns of groups are described depends on how
/// the plain server's optimizer groups.
fn same_rows(pair: &mut Pair, sql: &str, refused: &mut Vec<String>) {
    let rows = |session: &mut Session, prepared: bool| {
        let answer = match prepared {
            true => session.execute(sql, ()),
            false => session.run(sql),
        };
        answer.map(|outcome| {
            (
                outcome.sets.into_iter().next().map(|s| s.rows),
                outcome.warnings,
            )
        })
    };
    for prepared in [false, true] {
        let (a, b) = (
            rows(&mut pair.plain, prepared),
            rows(&mut pair.protected, prepared),
        );
        if let Err(failure) = &b
            && failure.message.starts_with("OS")
        {
            refused.push(format!("{sql}: {failure}"));
            continue;
        }
        assert_eq!(
            a.map_err(|f| f.code),
            b.map_err(|f| f.code),
            "prepared {prepared}: {sql}"
        );
    }
}

/// Numbers of rows: a value that the proxy refuses leaves no gap in, one that the server refuses
/// does.
struct Ids(u32);

impl Ids {
    fn insert(&mut self, table: &str, column: &str, value: &str) -> String {
        self.0 += 1;
        format!(
            "INSERT INTO {table} (id, {column}) VALUES ({}, {value})",
            self.0
        )
    }
}

const MODES: [&str; 2] = ["STRICT_TRANS_TABLES", ""];

fn definitions_are_shown(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(
        kind,
        "CREATE TABLE t (id INT PRIMARY KEY, s ENUM('red','Green','it''s') DEFAULT 'GREEN' COMMENT 'colour' {}, q ENUM('a','é') CHARACTER SET latin1 NOT NULL {eq}, \
         st SET('x','y z') NOT NULL DEFAULT 'x,y z' {range}, b BIT(5) DEFAULT b'00101' {eq}, c BIT NOT NULL {}, d BIT(3) DEFAULT 7 {}, j JSON {}, k JSON NOT NULL COMMENT 'k' {}, \
         flag BOOL DEFAULT TRUE {}, z INT(7) ZEROFILL {eq}, y YEAR DEFAULT '2020' {}, m DECIMAL(65,30) {})",
    ) else {
        return;
    };
    for sql in [
        "SHOW CREATE TABLE t",
        "DESCRIBE t",
        "SHOW FULL COLUMNS FROM t",
        "SELECT COLUMN_NAME, ORDINAL_POSITION, COLUMN_DEFAULT, IS_NULLABLE, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH, CHARACTER_OCTET_LENGTH, NUMERIC_PRECISION, NUMERIC_SCALE, \
         DATETIME_PRECISION, CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_TYPE, COLUMN_KEY, COLUMN_COMMENT FROM information_schema.columns WHERE table_schema = 'app' \
         AND table_name = 't' ORDER BY ORDINAL_POSITION",
    ] {
        let (a, b) = (pair.plain.must(sql), pair.protected.must(sql));
        assert_eq!(a.text(), b.text(), "{sql}");
    }
    pair.both("INSERT INTO t (id, q, c, k) VALUES (1, DEFAULT, 1, '[]')");
    pair.compare("SELECT * FROM t", &[]);
    for statement in [
        "CREATE TABLE r (id INT PRIMARY KEY, e ENUM('a','A') {})",
        "CREATE TABLE r (id INT PRIMARY KEY, e ENUM('a','b') DEFAULT 'c' {})",
        "CREATE TABLE r (id INT PRIMARY KEY, e ENUM('a','b') {join:g})",
        "CREATE TABLE r (id INT PRIMARY KEY, b BIT(3) DEFAULT b'1000' {})",
        "CREATE TABLE r (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET swe7 {eq})",
        "CREATE TABLE r (id INT PRIMARY KEY, v VARCHAR(9) COLLATE utf8mb4_czech_ci {eq})",
    ] {
        let (text, rest) = statement.split_once('{').expect("a place");
        let (words, tail) = rest.split_once('}').expect("a place");
        let protected = format!("{text}ENCRYPTED FOR ({words}){tail}");
        let refused = pair.protected.run(&protected).expect_err("a refusal");
        assert!(refused.message.starts_with("OS"), "{protected}: {refused}");
    }
    pair.conclude(0);
}
