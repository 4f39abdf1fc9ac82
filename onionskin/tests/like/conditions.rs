//! Conditions and writes with LIKE answer as on a plain server.

use super::*;

const PATTERNS: &[&str] = &[
    "%",
    "",
    "a",
    "al",
    "al%",
    "alic%",
    "%lice",
    "%LIC%",
    "%lice ",
    "_lice",
    "al_ce",
    "%l_c%",
    "100\\%",
    "a\\_b",
    "a_b",
    "a\\\\b",
    "%ß%",
    "%ss%",
    "stra_e",
    "it's",
    "%中文%",
    "中文__",
    "aaaa%",
    "%aaa",
    "%one%two%",
    "%two%one%",
    "ünal",
    "%two %",
    "zoe alice",
    "nothing at all",
    "%x|%",
    "_",
    "__",
    "%\\",
];

pub fn conditions_answer_as_on_a_plain_server(kind: Kind) {
    let Some(mut pair) = Pair::on_one_server(kind, PEOPLE, "") else {
        return;
    };
    people(&mut pair);
    every_kind_of_text_is_matched(&mut pair);
    other_types_and_other_clauses_beside(&mut pair);

    writes_look_at_the_rows_themselves(&mut pair);
    // what the proxy does not decide itself, and what nobody can without a scratch engine
    for sql in [
        "SELECT id FROM people WHERE name LIKE note",
        "SELECT id FROM people WHERE name LIKE 'a%' COLLATE utf8mb4_bin",
        "SELECT id FROM people WHERE name LIKE '%a' ESCAPE '%'",
        "SELECT id FROM people WHERE name REGEXP '^a'",
        "SELECT name LIKE 'a%' FROM people",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS10"), "{sql}: {failure}");
    }
    pair.proxy.assert_healthy();
}

fn every_kind_of_text_is_matched(pair: &mut Pair) {
    let mut found = 0;
    for column in ["sealed", "name", "note", "code", "raw"] {
        for pattern in PATTERNS {
            if column == "code" && !pattern.chars().all(|c| u32::from(c) < 256) {
                continue;
            }
            found += pair.same_rows_in_any_order(
                &format!("SELECT id, {column} FROM people WHERE {column} LIKE ?"),
                &[pattern],
            );
            pair.same_rows_in_any_order(
                &format!("SELECT id FROM people WHERE {column} NOT LIKE ?"),
                &[pattern],
            );
        }
        pair.same_rows_in_any_order(
            &format!("SELECT id FROM people WHERE {column} LIKE ? ESCAPE '|'"),
            &["%x||y%"],
        );
        pair.same_rows_in_any_order(
            &format!("SELECT id FROM people WHERE {column} LIKE NULL"),
            &[],
        );
        pair.same_rows_in_any_order(
            &format!("SELECT id FROM people WHERE {column} NOT LIKE NULL"),
            &[],
        );
    }
    assert!(found > 250, "{found}");
}

fn other_types_and_other_clauses_beside(pair: &mut Pair) {
    for (sql, parameters) in [
        ("SELECT id FROM people WHERE born LIKE ?", "2003-%"),
        ("SELECT id FROM people WHERE n LIKE ?", "-%3%"),
        ("SELECT id FROM people WHERE n NOT LIKE ?", "%1%"),
        ("SELECT id FROM people WHERE price LIKE ?", "%.50"),
        ("SELECT id FROM people WHERE at LIKE ?", "_1:20:30.25"),
        (
            "SELECT id, note FROM people WHERE name LIKE ? AND kind = 1 ORDER BY id",
            "%al%",
        ),
        (
            "SELECT id FROM people WHERE name LIKE '%lic%' AND note LIKE ?",
            "Al%",
        ),
        (
            "SELECT id FROM people WHERE name LIKE '%lic%' OR city LIKE ?",
            "%two%",
        ),
        (
            "SELECT id FROM people WHERE NOT (name LIKE '%lic%' OR kind = 1) AND note LIKE ?",
            "%o%",
        ),
        (
            "SELECT p.name, q.id FROM people p JOIN people q ON p.n = q.n WHERE p.name LIKE ? ORDER BY q.id",
            "%lice%",
        ),
        (
            "SELECT kind, COUNT(*), MIN(name) FROM people WHERE name LIKE ? GROUP BY kind ORDER BY kind",
            "%a%",
        ),
        (
            "SELECT DISTINCT name FROM people WHERE name LIKE ? ORDER BY name",
            "alice%",
        ),
        (
            "SELECT id FROM people WHERE name LIKE ? ORDER BY id LIMIT 2 OFFSET 1",
            "%al%",
        ),
        (
            "SELECT COUNT(*) FROM people WHERE name LIKE ? LOCK IN SHARE MODE",
            "%lice%",
        ),
        (
            "SELECT id FROM people WHERE code LIKE ? AND code >= 'b' ORDER BY id",
            "%ali%",
        ),
    ] {
        pair.same_rows_in_any_order(sql, &[parameters]);
    }
    assert_eq!(
        pair.same_rows_in_any_order("SELECT id FROM people WHERE n LIKE 52", &[]),
        1
    );
    assert_eq!(
        pair.same_rows_in_any_order("SELECT id FROM people WHERE name LIKE 100", &[]),
        0
    );
}

fn writes_look_at_the_rows_themselves(pair: &mut Pair) {
    for sql in [
        "UPDATE people SET name = 'Alice Cooper' WHERE name LIKE '%alice%'",
        "UPDATE people SET kind = kind + 1 WHERE note LIKE '%lic%'",
        "UPDATE people SET note = NULL WHERE sealed LIKE 'a%' AND kind < 3",
        "UPDATE people SET n = n + 1 WHERE code NOT LIKE '%a%'",
        "DELETE FROM people WHERE name LIKE '%Coop_r'",
        "DELETE FROM people WHERE code LIKE 'Str%' OR sealed LIKE '%three%'",
        "REPLACE INTO people (id, name, code) VALUES (2, 'a new Alice', 'x'), (700, 'malice', 'y')",
        "INSERT INTO people (id, name, code) VALUES (2, 'other', 'z') ON DUPLICATE KEY UPDATE name = 'yet another alice'",
        "INSERT INTO people (id, name, code) VALUES (2, 'mice', 'z') ON DUPLICATE KEY UPDATE name = VALUES(name)",
    ] {
        pair.both(sql);
        pair.same_rows_in_any_order("SELECT * FROM people ORDER BY id", &[]);
        for pattern in ["%alice%", "%lic%", "%coop%", "%mice", "%new%"] {
            pair.same_rows_in_any_order("SELECT id FROM people WHERE name LIKE ?", &[pattern]);
            pair.same_rows_in_any_order("SELECT id FROM people WHERE note LIKE ?", &[pattern]);
        }
    }
}
