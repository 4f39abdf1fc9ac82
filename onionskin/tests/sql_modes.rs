//! Every word of `sql_mode` that a server knows: under each of them statements near protected
//! tables do what they do on a plain server, or are refused.

use onionskin_testkit::*;

on_both_servers!(
    statements_mean_what_they_mean_to_the_server,
    definitions_are_shown_and_copied_whole,
    real_alone_depends_on_real_as_float,
);

const TABLES: &str = "
CREATE TABLE m (id INT PRIMARY KEY, i INT UNSIGNED {eq, range}, s VARCHAR(20) {eq}, c CHAR(5) {eq}, d DATE {eq, range}, t TIME(1) {eq, range},
  r REAL {}, free VARCHAR(20) {}, plain VARCHAR(20));
CREATE TABLE strict (id INT PRIMARY KEY, s VARCHAR(20) NOT NULL {eq}, i TINYINT NOT NULL {eq})
";

/// All words, of both servers. One that a server does not know is left out there.
const WORDS: [&str; 36] = [
    "",
    "REAL_AS_FLOAT",
    "PIPES_AS_CONCAT",
    "ANSI_QUOTES",
    "IGNORE_SPACE",
    "IGNORE_BAD_TABLE_OPTIONS",
    "ONLY_FULL_GROUP_BY",
    "NO_UNSIGNED_SUBTRACTION",
    "NO_DIR_IN_CREATE",
    "POSTGRESQL",
    "ORACLE",
    "MSSQL",
    "DB2",
    "MAXDB",
    "NO_KEY_OPTIONS",
    "NO_TABLE_OPTIONS",
    "NO_FIELD_OPTIONS",
    "MYSQL323",
    "MYSQL40",
    "ANSI",
    "NO_AUTO_VALUE_ON_ZERO",
    "NO_BACKSLASH_ESCAPES",
    "STRICT_TRANS_TABLES",
    "STRICT_ALL_TABLES",
    "NO_ZERO_IN_DATE",
    "NO_ZERO_DATE",
    "ALLOW_INVALID_DATES",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "TRADITIONAL",
    "NO_AUTO_CREATE_USER",
    "HIGH_NOT_PRECEDENCE",
    "NO_ENGINE_SUBSTITUTION",
    "PAD_CHAR_TO_FULL_LENGTH",
    "EMPTY_STRING_IS_NULL",
    "SIMULTANEOUS_ASSIGNMENT",
    "TIME_ROUND_FRACTIONAL",
];

const STATEMENTS: &[&str] = &[
    "INSERT INTO m VALUES (1, 5, 'abc', 'ab', '2020-01-31', '10:11:12.34', 1.5, 'x', 'p')",
    "INSERT INTO m (id, s, free, c) VALUES (2, '', '', '')",
    "INSERT INTO m (id, s, c) VALUES (3, NULL, 'a '), (4, 'a\\\\b', 'b')",
    "INSERT INTO m (id, d) VALUES (5, '2020-02-30')",
    "INSERT INTO m (id, d) VALUES (6, '0000-00-00'), (7, '2020-00-01')",
    "INSERT INTO m (id, t) VALUES (8, '23:59:59.96'), (9, '00:00:00.04')",
    "INSERT INTO m (id, i) VALUES (10, -1)",
    "INSERT INTO m (id, i) VALUES (11, 'x')",
    "INSERT INTO strict (id) VALUES (1)",
    "INSERT INTO strict VALUES (2, NULL, 1), (3, 'a', 300)",
    "INSERT INTO strict VALUES (4, '', 0)",
    "UPDATE m SET s = '' WHERE id = 1",
    "UPDATE m SET i = i - 6 WHERE id = 1",
    "UPDATE m SET i = 1 / 0 WHERE id = 3",
    "UPDATE m SET s = 'q', plain = 'r' WHERE s = ''",
    "UPDATE m SET s = 'w', c = 'v' WHERE NOT id = 3",
    "DELETE FROM m WHERE s = '' AND id = 2",
    "REPLACE INTO m (id, s) VALUES (12, 'a' 'b')",
    "INSERT INTO m (id, s) VALUES (13, 'a' || 'b')",
    "INSERT INTO m (id, s) VALUES (14, \"quoted\")",
];

const QUERIES: &[&str] = &[
    "SELECT id, i, s, c, d, t, r, free, plain FROM m ORDER BY id",
    "SELECT * FROM strict ORDER BY id",
    "SELECT id FROM m WHERE s = '' ORDER BY id",
    "SELECT id FROM m WHERE s <=> '' OR s IS NULL ORDER BY id",
    "SELECT id FROM m WHERE NOT i = 5 ORDER BY id",
    "SELECT id FROM m WHERE s = 'a' || 'b' ORDER BY id",
    "SELECT id, \"s\" FROM m ORDER BY id",
    "SELECT id FROM m WHERE s = \"abc\" ORDER BY id",
    "SELECT id, LENGTH(c), c FROM m ORDER BY id",
    "SELECT COUNT(*), MIN(i), SUM(i) FROM m",
    "SELECT i - 10 FROM m WHERE id = 1",
    "SELECT s, MAX(id), MIN(i) FROM m GROUP BY s ORDER BY s",
    "SELECT s, id FROM m GROUP BY s ORDER BY s",
    "SELECT id FROM m WHERE d >= '2020-01-00' ORDER BY id",
    "SELECT id FROM m WHERE t > '23:59:59.9' ORDER BY id",
    "SELECT id FROM m WHERE s LIKE 'a\\\\%' ORDER BY id",
    "SHOW COLUMNS FROM m",
];

/// What both say, unless the proxy refuses; then the plain server is not asked.
#[derive(Default)]
struct Compared {
    answers: usize,
    refused: Vec<String>,
    different: Vec<String>,
}

impl Compared {
    fn compare(&mut self, pair: &mut Pair, word: &str, sql: &str) {
        let protected = pair.protected.run(sql);
        if let Err(failure) = &protected
            && failure.message.starts_with("OS")
        {
            self.refused.push(format!("{word}: {sql}"));
            return;
        }
        self.answers += 1;
        let plain = pair.plain.run(sql);
        let seen = |answer: Result<Outcome, Failure>| match answer {
            Ok(done) => format!("{:?} {} {}", done.text(), done.affected, done.warnings),
            Err(failure) => format!("error {}", failure.code),
        };
        let (plain, protected) = (seen(plain), seen(protected));
        if plain != protected {
            self.different.push(format!(
                "{word}: {sql}\n  plain     {plain}\n  protected {protected}"
            ));
        }
    }
}

fn definitions(pair: &mut Pair, compared: &mut Compared, word: &str) {
    for column in [
        "REAL",
        "DATE",
        "TIMESTAMP NULL",
        "VARCHAR(5)",
        "DOUBLE PRECISION",
        "CHAR(3)",
    ] {
        let definition = format!("CREATE TABLE made (id INT PRIMARY KEY, c {column} {{}})");
        let (protected, plain) = with_and_without_protection(&definition);
        match pair.protected.run(&protected) {
            Ok(_) => {
                pair.plain.must(&plain);
                for sql in [
                    "SHOW COLUMNS FROM made",
                    "INSERT INTO made VALUES (1, '2020-01-31 10:11:12')",
                    "INSERT INTO made VALUES (2, 0.1)",
                    "INSERT INTO made VALUES (3, '')",
                    "SELECT * FROM made ORDER BY id",
                ] {
                    compared.compare(pair, &format!("{word}, {column}"), sql);
                }
            }
            Err(refused) => {
                // where texts are not read, the server says that it knows no such word
                let is_refused = refused.message.starts_with("OS")
                    || word.starts_with("MSSQL") && refused.code == 1064;
                assert!(is_refused, "{column}: {refused}");
                compared.refused.push(format!("{word}: {protected}"));
            }
        }
        for session in [&mut pair.protected, &mut pair.plain] {
            session.must("DROP TABLE IF EXISTS made");
        }
    }
}

fn statements_mean_what_they_mean_to_the_server(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(kind, TABLES) else {
        return;
    };
    let mut compared = Compared::default();
    let mut known = 0;
    for word in WORDS {
        let set = format!("SET sql_mode = '{word}'");
        if pair.plain.run(&set).is_err() {
            continue;
        }
        known += 1;
        pair.protected.must(&set);
        for sql in STATEMENTS.iter().chain(QUERIES) {
            compared.compare(&mut pair, word, sql);
        }
        definitions(&mut pair, &mut compared, word);
        // under the next word from the beginning
        for sql in [
            "SET sql_mode = ''",
            "TRUNCATE TABLE m",
            "TRUNCATE TABLE strict",
        ] {
            pair.run(sql);
        }
    }
    announce(&format!(
        "{known} words, {} answers compared, {} refused",
        compared.answers,
        compared.refused.len()
    ));
    assert!(
        compared.different.is_empty(),
        "{}\n\nrefused:\n{}",
        compared.different.join("\n"),
        compared.refused.join("\n")
    );
    // what is refused at all is refused under few words
    let few = compared.answers / 4;
    assert!(
        compared.refused.len() < few,
        "{}",
        compared.refused.join("\n")
    );
    assert!(
        known >= if kind == Kind::MariaDb { 34 } else { 17 },
        "{known}"
    );
}

/// Under some words `SHOW CREATE TABLE` leaves out what the definition of a copy would need.
fn definitions_are_shown_and_copied_whole(kind: Kind) {
    let table = "CREATE TABLE m (id INT NOT NULL AUTO_INCREMENT, v VARCHAR(8) COLLATE utf8mb4_bin {eq}, g VARCHAR(9) {eq}, \
                 ts TIMESTAMP(3) NULL ON UPDATE CURRENT_TIMESTAMP(3) {eq}, t TEXT {eq}, plain VARCHAR(8) COLLATE utf8mb4_bin, \
                 PRIMARY KEY (id), KEY p (plain) USING BTREE COMMENT 'words', KEY t (t(10)), UNIQUE KEY (v)) COMMENT 'more'";
    for with_engine in [false, true] {
        let Some(mut pair) = Pair::of(
            kind,
            with_engine,
            &[table, "INSERT INTO m (v) VALUES ('a')"],
        ) else {
            return;
        };
        let mut refused = 0;
        for word in WORDS {
            let set = format!("SET SESSION sql_mode = '{word}'");
            if !pair.say(&set).plain.starts_with('[') {
                continue;
            }
            let shown = pair.same_or_refused("SHOW CREATE TABLE m");
            refused += usize::from(!shown);
            for create in [
                "CREATE TABLE copied LIKE m",
                "CREATE TEMPORARY TABLE copied LIKE m",
                "CREATE TABLE copied (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY) SELECT v, g FROM m",
            ] {
                pair.same(&set);
                // of the plain server's MAXDB and MYSQL40, some definitions are warned of
                let said = pair.say(create);
                pair.same("SET SESSION sql_mode = ''");
                if said.protected.starts_with('[') {
                    let sides = [&mut pair.plain, &mut pair.protected];
                    let shown =
                        sides.map(|session| session.must("SHOW CREATE TABLE copied").text());
                    assert_eq!(shown[0], shown[1], "{word}: {create}");
                } else {
                    assert!(
                        said.is_refused() || !said.plain.starts_with('['),
                        "{word}: {create}\n{said:?}"
                    );
                }
                pair.plain.must("DROP TABLE IF EXISTS copied");
                pair.protected.must("DROP TABLE IF EXISTS copied");
            }
        }
        let least = match kind {
            Kind::MariaDb => 10,
            Kind::MySql => 1,
        };
        assert!(refused >= least, "{refused}");
    }
}

/// ANSI has that word; drivers and their tests set it.
fn real_alone_depends_on_real_as_float(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(kind, TABLES) else {
        return;
    };
    for word in ["REAL_AS_FLOAT", "ANSI"] {
        pair.run(&format!("SET sql_mode = '{word}'"));
        for column in ["VARCHAR(5)", "DOUBLE", "FLOAT", "DATETIME"] {
            let definition = format!("CREATE TABLE made (id INT PRIMARY KEY, c {column} {{}})");
            let (protected, plain) = with_and_without_protection(&definition);
            pair.protected.must(&protected);
            pair.plain.must(&plain);
            pair.same("SHOW COLUMNS FROM made");
            pair.same("ALTER TABLE made ADD COLUMN d INT");
            pair.same("DROP TABLE made");
        }
        for column in ["REAL", "/**/ReAl", "DOUBLE, real_name INT"] {
            let refused = pair.protected.run(&format!(
                "CREATE TABLE made (id INT PRIMARY KEY, c VARCHAR(5) ENCRYPTED FOR (), d {column})"
            ));
            let message = refused.expect_err(column).message;
            assert!(message.contains("REAL_AS_FLOAT"), "{column}: {message}");
        }
    }
}
