//! Statements that are deep, long or lean to the left: one statement of any account must not end
//! the process. Each is answered with an error in time, in each way in which a text can come, and a
//! session that was open before still works.

use std::time::{Duration, Instant};

use onionskin_testkit::*;

on_both_servers!(
    deep_statements_are_errors,
    long_statements_are_answered_in_time,
);

/// How long an answer may take, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// Statements that no server executes. The first four were found by an attacker.
fn deep() -> Vec<(&'static str, String)> {
    let chain = |link: &str, count| format!("SELECT id FROM t WHERE 1{}", link.repeat(count));
    let default = |count| format!("{}'x'{}", "(".repeat(count), ")".repeat(count));
    vec![
        (
            "executable comments within each other",
            format!("SELECT {}", "/*!".repeat(1_000_000)),
        ),
        ("OVERLAPS", chain(" OVERLAPS 1", 100_000)),
        ("MEMBER OF", chain(" MEMBER OF (1)", 100_000)),
        ("AT TIME ZONE", chain(" AT TIME ZONE 'x'", 100_000)),
        (
            "comparisons between operators that bind tighter",
            chain(&(" = 1".repeat(50) + " + 1"), 9_000),
        ),
        ("COLLATE", chain(" COLLATE utf8mb4_bin", 100_000)),
        ("casts", chain("::int", 100_000)),
        ("subscripts", chain("[1]", 100_000)),
        ("additions", chain(" + 1", 200_000)),
        (
            "parentheses around a default",
            format!(
                "CREATE TABLE made (id INT PRIMARY KEY, c VARCHAR(20) ENCRYPTED DEFAULT {}) + 1",
                default(500_000)
            ),
        ),
        (
            "an operator in a default",
            format!(
                "CREATE TABLE made (id INT PRIMARY KEY, c VARCHAR(20) ENCRYPTED DEFAULT (1{}))",
                " OVERLAPS 1".repeat(100_000)
            ),
        ),
        (
            "an operator in a view",
            format!(
                "CREATE VIEW made AS SELECT id FROM t WHERE 1{}",
                " OVERLAPS 1".repeat(100_000)
            ),
        ),
        (
            "an operator in what is explained",
            format!("EXPLAIN {}", chain(" OVERLAPS 1", 100_000)),
        ),
    ]
}

fn deep_statements_are_errors(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    for (name, sql) in deep() {
        let begun = Instant::now();
        let as_text = |text: &str| scene.proxy.connect_to("app").run(text);
        let quoted = sql.replace('\'', "''");
        let answers = [
            ("text", as_text(&sql)),
            ("prepared", scene.proxy.connect_to("app").execute(&sql, ())),
            ("PREPARE", as_text(&format!("PREPARE s FROM '{quoted}'"))),
            (
                "one of several",
                as_text(&format!("SELECT 1; {sql}; SELECT 2")),
            ),
        ];
        for (way, answer) in answers {
            // a server that reads more of it than the parser may answer with an error of its own
            let failure = answer.expect_err(&format!("{name}, {way}"));
            assert!(!failure.is_disconnect(), "{name}, {way}: {failure:.200}");
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "{name} takes {:?}",
            begun.elapsed()
        );
        scene.others_still_work(name);
    }
}

/// Texts of megabytes, none of them deep. What a server answers is what it answers without the
/// proxy; here it only has to come, and soon.
fn long_statements_are_answered_in_time(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    let fill = |item: &str| item.repeat((2 << 20) / item.len());
    for (name, sql) in [
        (
            "a list",
            format!("SELECT id FROM t WHERE k IN (1{})", fill(", 12345")),
        ),
        (
            "negative numbers",
            format!("SELECT id FROM t WHERE k IN (1{})", fill(", -12345")),
        ),
        (
            "strings",
            format!("SELECT id FROM t WHERE v IN ('x'{})", fill(", 'abcdef'")),
        ),
        (
            "empty executable comments",
            format!("SELECT id FROM t {}", fill("/*!.*/")),
        ),
        (
            "hints behind a long word",
            format!("SELECT {} FROM t", fill("x") + &fill("/*+*/")),
        ),
        ("words around a definition", format!("{} 'x", fill("or 1 "))),
        (
            "views of columns",
            format!("SELECT 1 FROM {} x", fill("information_schema.columns, ")),
        ),
        (
            "patterns",
            format!("SHOW COLUMNS FROM t LIKE '{}x'", fill("%_")),
        ),
        ("blanks", format!("SELECT id {} FROM t", fill(" "))),
        ("comments", format!("SELECT id {} FROM t", fill("/**/"))),
        ("semicolons", format!("SELECT id FROM t {}", fill(";"))),
        ("names", format!("SELECT {} id FROM t", fill("id, "))),
    ] {
        let begun = Instant::now();
        let answer = scene.proxy.connect_to("app").run(&sql);
        let took = begun.elapsed();
        println!(
            "{name}: {took:?}, {:?}",
            answer.as_ref().err().map(|e| e.code)
        );
        let is_lost = matches!(&answer, Err(failure) if failure.is_disconnect());
        assert!(!is_lost, "{name}: the connection is lost");
        assert!(took < PATIENCE, "{name} takes {took:?}");
    }
    scene.others_still_work("long statements");
}
