//! Columns that keep fewer bits of their tokens and order keys: `eq:N` and `range:N`. The server
//! finds candidates by them, and what the proxy answers is what a plain server answers.

use onionskin_testkit::*;

on_both_servers!(
    everyday_conditions_need_no_engine,
    rows_are_changed_and_deleted,
    random_conditions_answer_as_on_a_plain_server,
    an_index_finds_the_candidates,
    an_engine_does_the_rest,
    what_needs_whole_tokens_is_refused,
    definitions_show_how_many_bits_there_are,
    wildcards_give_what_a_type_can_have,
    the_server_sees_so_many_tokens,
    tables_are_migrated_to_fewer_bits_and_back,
);

const PEOPLE: &str = "CREATE TABLE people (
    id INT PRIMARY KEY,
    name VARCHAR(60) COLLATE utf8mb4_general_ci {eq:4},
    born DATE {range:17},
    pay DECIMAL(10,2) {eq:3, range:26},
    mail VARCHAR(80) {eq, range:12},
    note TEXT {range:8},
    n BIGINT {range:56},
    at DATETIME(3) {eq:9},
    KEY (name), KEY (born), KEY (pay, id), KEY (at))";

const NAMES: [&str; 9] = [
    "Ada",
    "ADA ",
    "Bob",
    "bob",
    "Çelik",
    "celik",
    "",
    "Zoë",
    "Grace Hopper",
];

/// The same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// A value of a column, as a literal.
    fn value(&mut self, column: &str) -> String {
        if self.below(12) == 0 {
            return "NULL".into();
        }
        match column {
            "born" => format!(
                "'19{:02}-{:02}-{:02}'",
                self.below(100),
                1 + self.below(12),
                1 + self.below(28)
            ),
            "pay" => format!("{}.{:02}", self.below(9000), self.below(4) * 25),
            "mail" => format!(
                "'{}{}@example.net'",
                NAMES[self.below(3) as usize].trim(),
                self.below(20)
            ),
            "note" => format!("'{} of {}'", NAMES[self.below(9) as usize], self.below(5)),
            "n" => format!("{}", self.below(1 << 20) as i64 - (1 << 19)),
            "at" => format!(
                "'2026-01-{:02} 10:00:{:02}.{:03}'",
                1 + self.below(28),
                self.below(3),
                self.below(2) * 500
            ),
            _ => format!("'{}'", NAMES[self.below(9) as usize]),
        }
    }
}

const COLUMNS: [&str; 7] = ["name", "born", "pay", "mail", "note", "n", "at"];

fn filled(pair: &mut Pair, rows: u64, random: &mut Random) {
    for first in (0..rows).step_by(50) {
        let row = |id: u64, random: &mut Random| {
            let values = COLUMNS.map(|column| random.value(column));
            format!("({id}, {})", values.join(", "))
        };
        let values: Vec<String> = (first..first + 50).map(|id| row(id, random)).collect();
        pair.both(&format!("INSERT INTO people VALUES {}", values.join(", ")));
    }
}

fn people(kind: Kind, with_engine: bool) -> Option<(Pair, Random)> {
    let mut pair = Pair::of(kind, with_engine, &[PEOPLE])?;
    let mut random = Random(11);
    filled(&mut pair, 300, &mut random);
    Some((pair, random))
}

fn everyday_conditions_need_no_engine(kind: Kind) {
    let Some((mut pair, _)) = people(kind, false) else {
        return;
    };
    for sql in [
        "SELECT id, name FROM people WHERE name = 'ada'",
        "SELECT id FROM people WHERE 'BOB' = name AND id < 200",
        "SELECT id, name FROM people WHERE name IN ('ada', 'zoe', 'nobody')",
        "SELECT id FROM people WHERE name NOT IN ('ada', 'bob')",
        "SELECT id FROM people WHERE name <> 'ada'",
        "SELECT id FROM people WHERE name = '' OR id = 7",
        "SELECT COUNT(*), MIN(born), SUM(pay) FROM people WHERE name = 'Grace Hopper'",
        "SELECT name, COUNT(*) FROM people WHERE name = 'bob' GROUP BY name",
        "SELECT id FROM people WHERE born BETWEEN '1920-03-05' AND '1950-01-01'",
        "SELECT id FROM people WHERE born > '1990-05-05' AND pay <= 4000.50",
        "SELECT id, pay FROM people WHERE pay = 25 OR pay = 1000.25",
        "SELECT id FROM people WHERE NOT (pay < 100 OR pay > 8000)",
        "SELECT id, mail FROM people WHERE mail = 'Ada3@example.net'",
        "SELECT id FROM people WHERE mail >= 'Bob'",
        "SELECT id FROM people WHERE note = 'Bob of 2' OR note < 'B'",
        "SELECT id, n FROM people WHERE n BETWEEN -1000 AND 100000",
        "SELECT id, n FROM people WHERE n = -1 OR n > 500000",
        "SELECT id FROM people WHERE at = '2026-01-05 10:00:01.5'",
        "SELECT id FROM people WHERE at IS NULL AND name IS NOT NULL",
        "SELECT id, born FROM people WHERE born IS NOT NULL ORDER BY born DESC, id LIMIT 5",
        "SELECT name, COUNT(*) FROM people GROUP BY name",
        "SELECT DISTINCT pay FROM people WHERE pay < 100",
        "SELECT MIN(n), MAX(n), MIN(pay), MAX(name) FROM people",
        "SELECT id FROM people WHERE name LIKE 'b%'",
        "SELECT id, name FROM people WHERE name = 'bob' FOR UPDATE",
    ] {
        pair.same_rows_in_any_order(sql, &[]);
    }
    for (sql, parameters) in [
        ("SELECT id FROM people WHERE name = ?", &["ADA"][..]),
        ("SELECT id FROM people WHERE name IN (?, ?)", &["bob", "x"]),
        ("SELECT id FROM people WHERE born < ?", &["1950-06-01"]),
        (
            "SELECT id FROM people WHERE born BETWEEN ? AND ?",
            &["1950-06-01", "1960-01-01"],
        ),
        (
            "SELECT id FROM people WHERE mail > ? AND mail <> ?",
            &["B", "Bob1@example.net"],
        ),
    ] {
        pair.same_rows_in_any_order(sql, parameters);
    }
}

fn rows_are_changed_and_deleted(kind: Kind) {
    let Some((mut pair, _)) = people(kind, false) else {
        return;
    };
    let mut changed = 0;
    for sql in [
        "UPDATE people SET pay = 12.25 WHERE name = 'ada'",
        "UPDATE people SET name = 'Eve', born = '2001-02-03' WHERE name IN ('bob', 'celik')",
        "UPDATE people SET name = 'Eve' WHERE name = 'eve' AND id < 100",
        "UPDATE people SET pay = pay + 1 WHERE born > '1980-01-01'",
        "DELETE FROM people WHERE n < -300000",
        "UPDATE people SET note = 'x' WHERE note = 'Bob of 2' OR mail = 'Ada3@example.net'",
        "INSERT INTO people (id, name, pay) VALUES (1, 'x', 1), (900, 'ada', 2) \
         ON DUPLICATE KEY UPDATE name = 'met'",
        "REPLACE INTO people (id, name, at) VALUES (2, 'ada', '2026-01-05 10:00:01.5')",
        "INSERT IGNORE INTO people (id, name) VALUES (2, 'y'), (901, 'z')",
        "DELETE FROM people WHERE pay = 12.25",
    ] {
        changed += pair.both(sql);
        pair.same_rows("SELECT * FROM people ORDER BY id", &[]);
    }
    assert!(changed > 100, "{changed}");
}

/// Conditions of any form, with constants that some rows have.
fn random_conditions_answer_as_on_a_plain_server(kind: Kind) {
    let Some((mut pair, mut random)) = people(kind, false) else {
        return;
    };
    let mut found = 0;
    for _ in 0..400 {
        let mut condition = String::new();
        for n in 0..1 + random.below(3) {
            if n > 0 {
                condition += ["\nAND ", "\nOR "][random.below(2) as usize];
            }
            let column = COLUMNS[random.below(7) as usize];
            let (a, b) = (random.value(column), random.value(column));
            let form = match random.below(if matches!(column, "name" | "at") {
                5
            } else {
                9
            }) {
                // MySQL: a date beside NULL in a list or range is refused
                _ if a == "NULL" || b == "NULL" => format!("{column} <> {a}"),
                0 | 1 => format!("{column} = {a}"),
                2 => format!("{column} IN ({a}, {b})"),
                3 => format!("{column} <> {a}"),
                4 => format!("NOT ({column} = {a})"),
                5 => format!("{column} < {a}"),
                6 => format!("{column} BETWEEN {a} AND {b}"),
                7 => format!("{column} NOT BETWEEN {a} AND {b}"),
                _ => format!("{a} <= {column}"),
            };
            condition += &form;
        }
        let sql = format!("SELECT id FROM people WHERE {condition}");
        found += pair.same_rows_in_any_order(&sql, &[]);
    }
    assert!(found > 1000, "{found}");
}

fn an_index_finds_the_candidates(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &[PEOPLE]) else {
        return;
    };
    filled(&mut pair, 3000, &mut Random(5));
    pair.protected.must("ANALYZE TABLE people");
    // the server knows no more than the physical statement: what it reads for it is counted
    let mut read = |sql: &str| -> u64 {
        pair.protected.must("FLUSH STATUS");
        pair.protected.must(sql);
        let status = pair
            .protected
            .must("SHOW SESSION STATUS LIKE 'Handler_read%'");
        let sum = status.sets[0].rows.iter().map(|row| {
            let value: String = ::mysql::from_value(row[1].clone());
            value.parse::<u64>().expect("a number")
        });
        sum.sum()
    };
    let by_moment = read("SELECT id FROM people WHERE at = '2026-01-05 10:00:01.5'");
    assert!((5..200).contains(&by_moment), "{by_moment}");
    let by_day = read("SELECT id FROM people WHERE born BETWEEN '1950-01-01' AND '1950-12-31'");
    assert!(by_day < 200, "{by_day}");
    let by_pay = read("SELECT id FROM people WHERE pay BETWEEN 100 AND 110");
    assert!(by_pay < 200, "{by_pay}");
}

fn an_engine_does_the_rest(kind: Kind) {
    let Some((mut pair, _)) = people(kind, true) else {
        return;
    };
    for sql in [
        "SELECT a.id, b.id FROM people a JOIN people b ON a.name = b.name AND a.id < b.id WHERE a.id < 40",
        "SELECT id FROM people WHERE name <=> 'ada'",
        "SELECT id FROM people WHERE UPPER(name) = 'BOB' AND name = 'bob'",
        "SELECT name, (SELECT COUNT(*) FROM people q WHERE q.name = p.name) FROM people p WHERE p.id < 9",
        "SELECT id FROM people WHERE born > (SELECT AVG(id) FROM people) OR name = 'ada'",
        "SELECT pay FROM people WHERE name = 'ada' UNION SELECT n FROM people WHERE pay < 50",
        "SELECT id FROM people WHERE EXISTS (SELECT 1 FROM people q WHERE q.name = 'bob' AND q.id = people.id)",
        "SELECT id FROM people WHERE name < 'c'",
        "SELECT id FROM people WHERE at > '2026-01-15'",
    ] {
        pair.same_rows_in_any_order(sql, &[]);
    }
    for sql in [
        "UPDATE people SET note = CONCAT(name, '!') WHERE name = 'ada'",
        "INSERT INTO people (id, name, born) SELECT id + 1000, UPPER(name), born FROM people WHERE name = 'bob'",
        "DELETE FROM people WHERE name = 'bob' AND CHAR_LENGTH(mail) > 5",
    ] {
        pair.both(sql);
        pair.same_rows("SELECT * FROM people ORDER BY id", &[]);
    }
}

fn what_needs_whole_tokens_is_refused(kind: Kind) {
    let Some((mut pair, _)) = people(kind, false) else {
        return;
    };
    let definitions = [
        "CREATE TABLE x (a INT PRIMARY KEY ENCRYPTED FOR (eq:8))",
        "CREATE TABLE x (id INT, a INT ENCRYPTED FOR (eq:8) UNIQUE)",
        "CREATE TABLE x (id INT, a INT ENCRYPTED FOR (range:8), UNIQUE KEY (id, a))",
        "CREATE TABLE x (a ENUM('x') ENCRYPTED FOR (eq:8))",
        "CREATE TABLE x (a BIT(4) ENCRYPTED FOR (range:2))",
        "CREATE TABLE x (a INT ENCRYPTED FOR (eq:8, join:g))",
        "CREATE TABLE x (a INT ENCRYPTED FOR (eq:0))",
        "CREATE TABLE x (a INT ENCRYPTED FOR (eq:08))",
        "CREATE TABLE x (a INT ENCRYPTED FOR (eq:33))",
        "CREATE TABLE x (a INT ENCRYPTED FOR (eq:-8))",
        "CREATE TABLE x (a INT ENCRYPTED FOR (eq:8.0))",
        "CREATE TABLE x (a INT ENCRYPTED FOR (eq:'8'))",
        "CREATE TABLE x (a INT ENCRYPTED FOR (eq:))",
        "CREATE TABLE x (a INT ENCRYPTED FOR (eq, eq:8))",
        "CREATE TABLE x (a TEXT ENCRYPTED FOR (like:8))",
        "CREATE TABLE x (a INT ENCRYPTED FOR (range:128))",
        "CREATE TABLE x (a INT ENCRYPTED FOR (range:999))",
        "CREATE UNIQUE INDEX u ON people (name)",
        "ALTER TABLE people ADD UNIQUE (born)",
        "ALTER TABLE people ADD FOREIGN KEY (name) REFERENCES people (name)",
    ];
    for sql in definitions {
        pair.protected.must_fail(sql);
    }
    let statements = [
        "SELECT id FROM people WHERE name < 'c'",
        "SELECT a.id FROM people a JOIN people b ON a.name = b.name",
        "SELECT id FROM people WHERE name IN (SELECT name FROM people)",
        "SELECT id FROM people WHERE name = (SELECT 'ada')",
        "SELECT a.id FROM people a JOIN people b ON a.id = b.id AND a.name = 'ada'",
        "DELETE FROM people WHERE name = 'zoe' LIMIT 3",
        "CREATE VIEW v AS SELECT id FROM people WHERE name = 'ada'",
    ];
    for sql in statements {
        pair.protected.must_fail(sql);
    }
    assert_eq!(pair.protected.text("SHOW TABLES").unwrap(), "people");
}

fn definitions_show_how_many_bits_there_are(kind: Kind) {
    let Some((mut pair, _)) = people(kind, false) else {
        return;
    };
    // the logical definition is the plain one, and LIKE and dumps keep what there is
    pair.same("SHOW CREATE TABLE people");
    pair.same("SHOW COLUMNS FROM people");
    pair.protected.must("CREATE TABLE twin LIKE people");
    pair.plain.must("CREATE TABLE twin LIKE people");
    pair.both(
        "INSERT INTO twin (id, name, born) VALUES (1, 'Ada', '1949-12-31'), (2, 'b', '1950-01-01')",
    );
    pair.same_rows("SELECT * FROM twin ORDER BY id", &[]);
    pair.same_rows_in_any_order(
        "SELECT id FROM twin WHERE name = 'ada' OR born < '1950-01-01'",
        &[],
    );
    let mut admin = pair.behind.connect();
    let widths = "SELECT GROUP_CONCAT(CONCAT(LEFT(column_name, LENGTH(column_name) - 5), ' ', column_type) \
                  ORDER BY ordinal_position) FROM information_schema.columns \
                  WHERE table_schema = DATABASE() AND table_name = 'people' \
                  AND (column_name LIKE '%$eq%' OR column_name LIKE '%$ord%')";
    admin.must("USE app");
    let expected = "name$eq binary(1),born$ord binary(12),pay$eq binary(1),pay$ord binary(16),\
                    mail$eq binary(16),mail$ord binary(8),note$ord binary(4),n$ord binary(28),at$eq binary(2)";
    assert_eq!(admin.text(widths).unwrap(), expected);
    pair.both("ALTER TABLE people ADD COLUMN extra INT, DROP COLUMN note");
    pair.both("ALTER TABLE people ADD KEY (n, at), DROP KEY born");
    pair.same_rows_in_any_order(
        "SELECT id FROM people WHERE at = '2026-01-05 10:00:01.5'",
        &[],
    );
}

fn wildcards_give_what_a_type_can_have(kind: Kind) {
    let settings = "[protect.\"app.*\"]\n\"*\" = [\"eq:6\", \"range:20\"]\n\"id\" = \"plain\"\n";
    let Some(mut pair) = Pair::with_settings(kind, "", settings) else {
        return;
    };
    pair.same(
        "CREATE TABLE w (id INT PRIMARY KEY, t TINYINT, e ENUM('a', 'b'), j JSON, v VARCHAR(20), f DOUBLE, KEY (v))",
    );
    pair.both("INSERT INTO w VALUES (1, 5, 'a', '{}', 'x', 1.5), (2, -5, 'b', NULL, 'X ', -0.0)");
    for sql in [
        "SELECT id FROM w WHERE t > -6",
        "SELECT id FROM w WHERE v = 'x'",
        "SELECT id FROM w WHERE f <= 0",
        "SELECT id FROM w WHERE e = 'a'",
    ] {
        pair.same_rows_in_any_order(sql, &[]);
    }
    // a unique key cannot be had by a wildcard of fewer bits
    pair.protected
        .must_fail("CREATE TABLE u (id INT PRIMARY KEY, v VARCHAR(20) UNIQUE)");
}

fn the_server_sees_so_many_tokens(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, a INT {eq:4}, b INT {eq:4}, c INT {range:24}, d INT NOT NULL {eq:3})";
    let Some(mut pair) = Pair::of(kind, false, &[table]) else {
        return;
    };
    let rows: Vec<String> = (0..1000)
        .map(|n| format!("({n}, {n}, {n}, {n}, {n})"))
        .collect();
    pair.both(&format!("INSERT INTO t VALUES {}", rows.join(", ")));
    let mut admin = pair.behind.connect();
    admin.must("USE app");
    let mut column = |like: &str| {
        admin
            .text(&format!(
                "SELECT column_name FROM information_schema.columns \
                 WHERE table_name = 't' AND table_schema = 'app' AND column_name LIKE '{like}'"
            ))
            .unwrap()
    };
    let [a, b, c, d] = ["a$eq%", "b$eq%", "c$ord%", "d$eq%"].map(&mut column);
    let mut number = |sql: String| -> u64 { admin.text(&sql).unwrap().parse().unwrap() };
    let mut distinct = |column: &str| number(format!("SELECT COUNT(DISTINCT `{column}`) FROM t"));
    assert_eq!([distinct(&a), distinct(&b), distinct(&d)], [16, 16, 8]);
    // 0 to 999 in steps of 256
    assert_eq!(distinct(&c), 4);
    // tokens of other columns are others: rows that share one in `a` do not share one in `b`
    let pairs = number(format!("SELECT COUNT(DISTINCT `{a}`, `{b}`) FROM t"));
    assert!(pairs > 150, "{pairs}");
    // no token is zero
    assert_eq!(
        number(format!(
            "SELECT COUNT(*) FROM t WHERE `{d}` = x'00' OR `{a}` = x'00'"
        )),
        0
    );
    pair.same_rows("SELECT * FROM t WHERE a = 77", &[]);
    pair.same_rows_in_any_order("SELECT * FROM t WHERE c BETWEEN 250 AND 260", &[]);
}

fn tables_are_migrated_to_fewer_bits_and_back(kind: Kind) {
    let options = PairOptions {
        tables: &["CREATE TABLE m (id INT PRIMARY KEY, v VARCHAR(30) {eq}, n INT {range})"],
        server: ServerOptions {
            binlog: Some(Binlog::Row),
            ..ServerOptions::default()
        },
        ..PairOptions::default()
    };
    let Some(mut pair) = Pair::start_with(kind, options) else {
        return;
    };
    let rows: Vec<String> = (0..500)
        .map(|n| format!("({n}, 'name {}', {})", n % 50, n * 7))
        .collect();
    pair.both(&format!("INSERT INTO m VALUES {}", rows.join(", ")));
    let conditions = [
        "SELECT id FROM m WHERE v = 'NAME 7'",
        "SELECT id FROM m WHERE n BETWEEN 100 AND 200",
        "SELECT id FROM m WHERE v IN ('name 1', 'name 2') AND n > 1000",
    ];
    let length = |pair: &mut Pair, column: &str| -> String {
        let mut admin = pair.behind.connect();
        let sql = format!(
            "SELECT GROUP_CONCAT(column_type) FROM information_schema.columns WHERE table_schema = 'app' \
             AND table_name = 'm' AND column_name LIKE '{column}%'"
        );
        admin.text(&sql).unwrap()
    };
    for (operation, columns, v, n) in [
        ("--add", "v: eq:5; n: range:22", "binary(1)", "binary(12)"),
        ("--add", "v: eq", "binary(16)", "binary(12)"),
        ("--drop", "n: range:22", "binary(16)", "NULL"),
        ("--add", "n: eq:10 range:30", "binary(16)", "binary(16)"),
        ("--drop", "v: eq", "NULL", "binary(16)"),
        ("--add", "v: eq:12", "binary(2)", "binary(16)"),
    ] {
        must_migrate(
            &pair.behind,
            Some(&pair.proxy),
            &["app.m", operation, columns, "--drop-old"],
        );
        assert_eq!(length(&mut pair, "v$eq"), v, "{columns}");
        assert_eq!(length(&mut pair, "n$ord"), n, "{columns}");
        for sql in conditions {
            if n == "NULL" && sql.contains("n ") || v == "NULL" && sql.contains("v ") {
                continue;
            }
            assert!(pair.same_rows_in_any_order(sql, &[]) > 0, "{sql}");
        }
        pair.both("UPDATE m SET v = 'name 7' WHERE id = 3");
    }
}
