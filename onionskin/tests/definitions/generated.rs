//! Columns that the server generates from plain ones, in tables with protected columns.

use onionskin_testkit::*;

const TABLE: &str = "CREATE TABLE made (id INT PRIMARY KEY, name VARCHAR(40) {eq, range}, n INT, city VARCHAR(20), twice INT \
     GENERATED ALWAYS AS (n * 2) VIRTUAL, big VARCHAR(30) AS (UPPER(city)) STORED, age INT {range}, KEY kt (twice), UNIQUE KEY \
     kb (big), CHECK (twice <> 14))";

const QUESTIONS: [&str; 8] = [
    "SELECT * FROM made ORDER BY id",
    "SELECT name, twice, big FROM made WHERE twice = 10 OR big = 'OSLO' ORDER BY name",
    "SELECT twice, COUNT(*), SUM(age), MAX(name) FROM made GROUP BY twice ORDER BY twice",
    "SELECT id FROM made WHERE name = 'Hb4YqMz7' AND twice > 1 ORDER BY big",
    "SELECT UPPER(name), twice + age, CONCAT(big, name) FROM made ORDER BY id",
    "SELECT a.name, b.big FROM made a JOIN made b ON a.twice = b.n ORDER BY 1, 2",
    "SELECT name, big FROM made WHERE name LIKE 'H%' ORDER BY big, id",
    "SHOW CREATE TABLE made",
];

/// By keys, of which a generated column is one.
const BY_KEY: [&str; 2] = [
    "INSERT INTO made (id, name, city, n) VALUES (9, 'Gil', 'oslo', 8) ON DUPLICATE KEY UPDATE name = VALUES(name), n = 9",
    "REPLACE INTO made (id, name, city, n) VALUES (9, 'Hb4YqMz7', 'ROME', 3)",
];

pub fn generated_columns_over_plain_columns(kind: Kind) {
    for with_engine in [true, false] {
        let Some(mut pair) = Pair::of(kind, with_engine, &[]) else {
            return;
        };
        pair.same(TABLE);
        let mut refused = Vec::new();
        for sql in [
            "INSERT INTO made (id, name, n, city, age) VALUES (1, 'Hb4YqMz7', 5, 'Oslo', 30), (2, 'Bob', 6, 'Rome', 40)",
            "INSERT INTO made VALUES (3, 'Carl', 2, 'Bern', DEFAULT, DEFAULT, 50), (4, NULL, NULL, NULL, DEFAULT, DEFAULT, NULL)",
            "INSERT INTO made (id, n, twice) VALUES (5, 1, 2)",
            "INSERT INTO made (id, name, n) VALUES (5, 'Eve', 7)",
            "INSERT INTO made (id, name, city) VALUES (5, 'Eve', 'oslo')",
            "INSERT IGNORE INTO made (id, name, city) VALUES (5, 'Eve', 'oslo'), (6, 'Fay', 'Paris')",
            BY_KEY[0],
            BY_KEY[1],
            "INSERT INTO made (id, name, city, n) VALUES (9, 'Hb4YqMz7', 'Bonn', 3)",
            "UPDATE made SET n = n + 1 WHERE name = 'Carl'",
            "UPDATE made SET name = 'Dan', city = 'Nice' WHERE twice = 6",
            "UPDATE made SET age = age + 1 WHERE big = 'NICE'",
            "UPDATE made SET name = CONCAT(name, big) WHERE id = 9",
            "UPDATE made SET name = big WHERE id = 9",
            "UPDATE made SET twice = 4 WHERE id = 9",
            "UPDATE made SET n = 7 WHERE age = 31",
            "INSERT INTO made (id, name, n, city) SELECT id + 20, name, n, CONCAT(city, 'x') FROM made WHERE twice > 1",
            "INSERT INTO made (id, name, twice) SELECT 50, 'x', 1",
            "DELETE FROM made WHERE twice IS NULL AND name = 'Fay'",
            "DELETE FROM made WHERE big = 'ROMEX' OR UPPER(name) = 'BOB'",
        ] {
            if !pair.same_if_done(sql) {
                refused.push(sql);
            }
            for question in QUESTIONS {
                assert!(pair.same_or_refused(question) || !with_engine, "{question}");
            }
        }
        // which row has the value that is to be generated is not known before
        if with_engine {
            assert_eq!(refused, BY_KEY);
        }
        for sql in [
            "ALTER TABLE made ADD COLUMN half INT AS (twice / 4) VIRTUAL AFTER n, ADD KEY (half)",
            "ALTER TABLE made ADD COLUMN kept INT AS (n + 1) STORED INVISIBLE",
            "ALTER TABLE made MODIFY COLUMN half INT AS (twice DIV 2)",
            "ALTER TABLE made ADD UNIQUE KEY both_ways (twice, name, id)",
            "ALTER TABLE made DROP KEY kt, ADD KEY kt (twice, age)",
            "ALTER TABLE made CHANGE COLUMN kept held BIGINT AS (n + 2) STORED",
            "ALTER TABLE made RENAME COLUMN held TO kept",
            "ALTER TABLE made ADD COLUMN more VARCHAR(9) {eq} DEFAULT 'm'",
            "ALTER TABLE made DROP COLUMN half",
            "ALTER TABLE made DROP COLUMN city",
            "ALTER TABLE made MODIFY COLUMN name VARCHAR(40) COMMENT 'who'",
            "CREATE TABLE alike LIKE made",
            "CREATE VIEW seen AS SELECT id, name, twice FROM made",
            "RENAME TABLE made TO other, other TO made",
            "ALTER TABLE made MODIFY COLUMN twice INT",
        ] {
            let said = pair.say(sql);
            // how many rows a definition copies is the server's own
            let is_done = |said: &str| said.starts_with('[');
            assert_eq!(
                is_done(&said.plain),
                is_done(&said.protected),
                "{sql}: {said:?}"
            );
            assert!(
                is_done(&said.plain) || said.plain == said.protected,
                "{sql}: {said:?}"
            );
            for question in QUESTIONS {
                assert!(pair.same_or_refused(question) || !with_engine, "{question}");
            }
        }
        pair.same("SHOW CREATE TABLE alike");
        pair.same("SELECT * FROM seen ORDER BY id");
        pair.nothing_leaked();
    }
}

/// What would have to be generated from a protected column is refused, and what to change is said.
pub fn generated_columns_over_protected_columns(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, true, &[]) else {
        return;
    };
    pair.create("CREATE TABLE base (id INT PRIMARY KEY, name VARCHAR(40) {eq}, city VARCHAR(20))");
    for sql in [
        "CREATE TABLE bad (id INT, name VARCHAR(40) ENCRYPTED FOR (eq), big VARCHAR(40) AS (UPPER(name)))",
        "CREATE TABLE bad (id INT, name VARCHAR(40) ENCRYPTED FOR (eq), big VARCHAR(40) AS (UPPER(name)) STORED)",
        "CREATE TABLE bad (id INT, city VARCHAR(40), big VARCHAR(40) AS (UPPER(city)) STORED ENCRYPTED FOR (eq))",
        "CREATE TABLE bad (id INT, name VARCHAR(40) ENCRYPTED FOR (eq), big VARCHAR(40) AS (UPPER(name)) STORED ENCRYPTED FOR \
             ())",
        "ALTER TABLE base ADD COLUMN big VARCHAR(40) AS (UPPER(name)) STORED",
        "ALTER TABLE base ADD COLUMN big VARCHAR(40) AS (UPPER(city)) STORED ENCRYPTED FOR (eq)",
        "ALTER TABLE base MODIFY COLUMN city VARCHAR(40) AS (name)",
    ] {
        let refused = pair.protected.run(sql).expect_err("refused").message;
        assert!(refused.contains("OS101"), "{sql}: {refused}");
        println!("{refused}");
    }
    pair.same("SHOW CREATE TABLE base");
}
