//! Which operators bind more tightly: what the planner's tests take for the servers' way is asked
//! of real servers here.

use std::collections::BTreeSet;

use ::mysql::prelude::Queryable;
use onionskin_testkit::*;

on_both_servers!(
    operators_bind_as_the_planner_takes_it,
    conditions_are_taken_apart_as_servers_read_them,
);

/// Pairs of an expression and the same with parentheses, one a line.
const ASSOCIATIONS: &str = include_str!("../../crates/plan/tests/associations.txt");

fn operators_bind_as_the_planner_takes_it(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let mut conn = server.connect();
    for sql in [
        "CREATE DATABASE binds",
        "USE binds",
        "SET sql_mode = ''",
        "CREATE TABLE v (v INT)",
        "INSERT INTO v VALUES (0), (1), (2), (3), (4), (NULL)",
        "CREATE TABLE t (a INT, b INT, c INT)",
        "INSERT INTO t SELECT x.v, y.v, z.v FROM v x, v y, v z",
    ] {
        conn.conn().query_drop(sql).expect(sql);
    }
    let mut ask = |expression: &str| -> Option<Vec<Option<String>>> {
        conn.conn()
            .query(format!(
                "SELECT CAST({expression} AS CHAR) FROM t ORDER BY a, b, c"
            ))
            .ok()
    };
    let (mut equal, mut wrong) = (0, Vec::new());
    for line in ASSOCIATIONS.lines() {
        let (flat, nested) = line.split_once('\t').expect("two columns");
        // some chains are errors of one family
        let Some(answer) = ask(flat) else { continue };
        match ask(nested) {
            Some(other) if other == answer => equal += 1,
            _ => wrong.push(line),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(equal > 700, "{equal}");
}

/// With an engine, the proxy reads the rows that the conditions leave which the server can apply.
/// What is no AND at the top must not narrow them.
fn conditions_are_taken_apart_as_servers_read_them(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(
        kind,
        "CREATE TABLE o (id INT PRIMARY KEY, s VARCHAR(10) {eq, range}, n INT {}, p INT)",
    ) else {
        return;
    };
    pair.both("INSERT INTO o VALUES (1, 'a', 1, 1), (2, 'b', 2, 0), (3, 'c', NULL, 1)");
    pair.both("INSERT INTO o VALUES (4, 'd', 0, 2), (5, NULL, 5, 0)");
    // the first can be applied by the server, the second wants the engine
    let parts = [
        "s = 'a'",
        "UPPER(s) = 'B'",
        "p = 1",
        "n + 1 > 2",
        "BINARY s = 'c'",
    ];
    let operators = ["AND", "OR", "XOR", "&&", "||"];
    let mut texts = BTreeSet::new();
    for (i, a) in parts.iter().enumerate() {
        for (j, b) in parts.iter().enumerate() {
            let c = parts[(i + j + 1) % parts.len()];
            for first in operators {
                for second in operators {
                    texts.insert(format!("{a} {first} {b} {second} {c}"));
                    texts.insert(format!("{a} {first} NOT {b} {second} {c}"));
                }
            }
        }
    }
    let (mut all, mut same) = (0, 0);
    for text in texts {
        all += 1;
        let sql = format!("SELECT id FROM o WHERE {text} ORDER BY id");
        same += usize::from(pair.same_or_refused(&sql));
    }
    announce(&format!("{same} of {all} are the same, the others refused"));
    assert!(same * 10 > all * 9, "{same} of {all}");
}
