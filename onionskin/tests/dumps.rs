//! Dumps of a plain server, as each family's own program makes them, are loaded through a proxy
//! that protects every column: what is in them is there afterwards, and answers alike.

use onionskin_testkit::*;

on_both_servers!(
    a_plain_schema_is_loaded,
    the_proxys_own_dump_is_loaded,
    tables_of_many_forms_are_loaded,
);

/// What an application has: keys over tables, views of views, defaults, comments.
const SCHEMA: [&str; 12] = [
    "CREATE TABLE city (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) NOT NULL, UNIQUE (name)) COMMENT 'it''s'",
    "CREATE TABLE person (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) NOT NULL DEFAULT 'x', born DATE, \
         city INT, note TEXT, blob_ BLOB, KEY (name), CONSTRAINT lives FOREIGN KEY (city) REFERENCES city (id))",
    "CREATE TABLE `odd ``name` (id INT PRIMARY KEY, `a b` VARCHAR(9))",
    "CREATE VIEW a_view AS SELECT name, born FROM person WHERE city IS NOT NULL",
    "CREATE VIEW b_view AS SELECT name FROM a_view",
    "CREATE ALGORITHM=MERGE SQL SECURITY INVOKER VIEW c_view (n) AS SELECT name FROM city",
    "CREATE VIEW `d view` AS SELECT `a b` FROM `odd ``name`",
    "INSERT INTO city (name) VALUES ('Bern'), ('Rome')",
    "INSERT INTO person (name, born, city, note, blob_) VALUES ('Alice', '1990-05-01', 1, 'Hb4YqMz7', x'00c3a927')",
    "INSERT INTO person (name, born, city) VALUES ('bob', NULL, NULL), ('O''Hara', '2000-02-29', 2)",
    "INSERT INTO `odd ``name` VALUES (1, '/*!50001'), (2, '*/;')",
    "INSERT INTO city (id, name) VALUES (9, 'Zürich')",
];

const QUESTIONS: [&str; 8] = [
    "SELECT * FROM city ORDER BY id",
    "SELECT id, name, born, city, note, HEX(blob_) FROM person ORDER BY id",
    "SELECT * FROM `odd ``name` ORDER BY id",
    "SELECT * FROM a_view ORDER BY name",
    "SELECT * FROM b_view ORDER BY name",
    "SELECT n FROM c_view WHERE n = 'rome'",
    "SELECT * FROM `d view` ORDER BY 1",
    "SELECT name FROM person WHERE name = 'ALICE'",
];

fn options() -> PairOptions<'static> {
    PairOptions {
        engine: Engine::Own,
        settings: "enforce = true\n[protect.\"app.*\"]\n\"*\" = [\"eq\", \"range\"]\n",
        ..PairOptions::default()
    }
}

fn dump(kind: Kind, port: u16) -> String {
    let user = kind.users()[0];
    Cli::dump(kind, port, user.name, user.password, &["app"])
}

fn load(kind: Kind, port: u16, dump: &str) {
    let user = kind.users()[0];
    Cli::tcp(kind, port, user.name, user.password)
        .option("app")
        .must(dump);
}

fn a_plain_schema_is_loaded(kind: Kind) {
    let Some(mut pair) = Pair::start_with(kind, options()) else {
        return;
    };
    for sql in SCHEMA {
        pair.plain.must(sql);
    }
    let made = dump(kind, pair.beside().port());
    load(kind, pair.proxy.port(), &made);
    for sql in QUESTIONS {
        pair.same_rows(sql, &[]);
    }
    pair.nothing_leaked();
}

fn the_proxys_own_dump_is_loaded(kind: Kind) {
    let Some(mut pair) = Pair::start_with(kind, options()) else {
        return;
    };
    for sql in SCHEMA {
        pair.same(sql);
    }
    let made = dump(kind, pair.proxy.port());
    for session in pair.sessions() {
        session.must("DROP DATABASE app");
        session.must("CREATE DATABASE app");
        session.must("USE app");
    }
    // onto a plain server, and where it came from
    for port in [pair.beside().port(), pair.proxy.port()] {
        load(kind, port, &made);
    }
    for sql in QUESTIONS {
        pair.same_rows(sql, &[]);
    }
}

/// Tables as both families take them. Columns whose names begin with `p_` stay plain.
const FORMS: [&str; 10] = [
    "CREATE TABLE hidden (id INT PRIMARY KEY AUTO_INCREMENT, p_a INT INVISIBLE DEFAULT 5, s VARCHAR(20) INVISIBLE \
         DEFAULT 'x', t VARCHAR(20)) AUTO_INCREMENT=7",
    "CREATE TABLE numbers (id INT PRIMARY KEY, a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT, d BIGINT(20) ZEROFILL, \
         e DECIMAL(20,4) DEFAULT -1.5, f FLOAT, g DOUBLE DEFAULT 1.25, h BIT(7) DEFAULT b'101', i YEAR DEFAULT 1999, \
         p_a TINYINT(1) NOT NULL DEFAULT 1, p_b BIT(3) DEFAULT b'1', p_c DECIMAL(5,2) UNSIGNED)",
    "CREATE TABLE texts (id INT PRIMARY KEY, a CHAR(5) CHARACTER SET latin1, b VARCHAR(9) COLLATE utf8mb4_bin NOT NULL \
         DEFAULT 'it''s', c TINYTEXT, d MEDIUMTEXT CHARACTER SET latin1, e BINARY(3), f VARBINARY(9), g BLOB, \
         h ENUM('a','b''c') DEFAULT 'a', i SET('x','y'), j JSON, p_a TEXT, p_b ENUM('a','b') NOT NULL DEFAULT 'b', \
         p_c VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_bin COMMENT '/*!80023 INVISIBLE */')",
    "CREATE TABLE moments (id INT PRIMARY KEY, a DATE, b TIME(3), c DATETIME(6) DEFAULT '2001-02-03 04:05:06.5', \
         d TIMESTAMP NULL DEFAULT NULL, e DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, \
         p_a TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, p_b DATETIME(3) DEFAULT \
         CURRENT_TIMESTAMP(3), p_c DATE DEFAULT '2001-02-03')",
    "CREATE TABLE keyed (id INT, p_a INT, p_b VARCHAR(40), a VARCHAR(40), b INT, p_c TEXT, PRIMARY KEY (id) USING BTREE, \
         UNIQUE KEY ua (a) COMMENT 'one', KEY kb (b, p_a) USING BTREE, KEY (p_b(5)), KEY ka (a(3)), FULLTEXT KEY (p_c), \
         KEY down (p_a DESC, b))",
    "CREATE TABLE checked (id INT PRIMARY KEY, p_a INT CHECK (p_a > 0), p_b INT, a INT, CONSTRAINT pos CHECK (p_b <> 3), \
         CONSTRAINT small CHECK (a < 100))",
    "CREATE TABLE ranged (id INT, p_a INT NOT NULL, a VARCHAR(9), PRIMARY KEY (id, p_a)) COMMENT='parts' PARTITION BY RANGE \
         (p_a) SUBPARTITION BY HASH (p_a) SUBPARTITIONS 2 (PARTITION low VALUES LESS THAN (10) COMMENT = 'l', \
         PARTITION high VALUES LESS THAN MAXVALUE)",
    "CREATE TABLE listed (p_id INT, p_a VARCHAR(5) NOT NULL, a VARCHAR(9), PRIMARY KEY (p_id, p_a)) PARTITION BY LIST COLUMNS \
         (p_a) (PARTITION x VALUES IN ('a','b'), PARTITION y VALUES IN ('c'))",
    "CREATE TABLE options (id INT PRIMARY KEY, a VARCHAR(9)) ROW_FORMAT=DYNAMIC STATS_PERSISTENT=0 STATS_AUTO_RECALC=1 \
         STATS_SAMPLE_PAGES=9 MAX_ROWS=1000 AVG_ROW_LENGTH=50 DEFAULT CHARSET=latin1 COMMENT='it''s \\\\ `odd`'",
    "CREATE TABLE placed (id INT PRIMARY KEY, p_a POINT NOT NULL, p_b GEOMETRY, a VARCHAR(9), SPATIAL KEY (p_a))",
];

/// Tables that only this family takes.
fn own_forms(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::MySql => &[
            "CREATE TABLE own_storage (id INT PRIMARY KEY, p_a INT COLUMN_FORMAT DYNAMIC STORAGE DISK, p_b INT STORAGE \
                 MEMORY, p_c INT COLUMN_FORMAT FIXED, s VARCHAR(20))",
            "CREATE TABLE own_made (id INT PRIMARY KEY, p_a INT, p_b INT GENERATED ALWAYS AS (p_a + 1) VIRTUAL, p_c INT \
                 GENERATED ALWAYS AS (p_a * 2) STORED NOT NULL INVISIBLE, p_d VARCHAR(40) DEFAULT (UUID()), a VARCHAR(9))",
            "INSERT INTO own_storage VALUES (1, 2, 3, 4, 'Hb4YqMz7'), (2, NULL, NULL, NULL, NULL)",
            "INSERT INTO own_made (id, p_a, a) VALUES (1, 5, 'Hb4YqMz7')",
            "CREATE TABLE own_key (my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE PRIMARY KEY, a VARCHAR(9))",
            "CREATE TABLE own_checks (id INT PRIMARY KEY, p_a INT, CONSTRAINT never CHECK (p_a > 5) NOT ENFORCED, p_b INT \
                 CHECK (p_b > 5) NOT ENFORCED, a VARCHAR(9) CHECK (a <> 'no') NOT ENFORCED)",
            "INSERT INTO own_checks VALUES (1, 2, 3, 'no')",
            "CREATE TABLE own_keys (id INT PRIMARY KEY, p_a INT, a VARCHAR(9), b INT, p_b TEXT, KEY ia (p_a) INVISIBLE, \
                 KEY ib (a) INVISIBLE, UNIQUE KEY ic (b) USING BTREE INVISIBLE COMMENT 'c', KEY fa ((p_a + 1)), \
                 FULLTEXT KEY ft (p_b) WITH PARSER ngram)",
            "CREATE TABLE own_places (id INT PRIMARY KEY, p_a POINT NOT NULL SRID 4326, a VARCHAR(9), SPATIAL KEY (p_a))",
            "CREATE TABLE own_options (id INT PRIMARY KEY, a VARCHAR(9)) AUTOEXTEND_SIZE=4194304",
            "CREATE TABLE own_space (id INT PRIMARY KEY, a VARCHAR(9)) TABLESPACE=innodb_system",
            "CREATE TABLE own_defaults (id INT PRIMARY KEY, p_a JSON DEFAULT (JSON_OBJECT()), p_b INT DEFAULT (1 + 2), a \
                 VARCHAR(40) DEFAULT (UUID()), b INT DEFAULT (1 + 2), p_c VECTOR(3))",
        ],
        Kind::MariaDb => &[
            "CREATE TABLE own_made (id INT PRIMARY KEY, p_a INT, p_b INT AS (p_a + 1) VIRTUAL INVISIBLE, p_c INT AS (p_a * 2) \
                 PERSISTENT, p_d VARCHAR(40) DEFAULT UUID(), a VARCHAR(9))",
            "INSERT INTO own_made (id, p_a, a) VALUES (1, 5, 'Hb4YqMz7')",
            "CREATE TABLE own_packed (id INT PRIMARY KEY, p_a TEXT COMPRESSED, p_b VARCHAR(40) COMPRESSED=zlib DEFAULT 'x', a \
                 VARCHAR(9))",
            "CREATE TABLE own_keys (id INT PRIMARY KEY, p_a INT, a VARCHAR(9), p_b TEXT, UNIQUE KEY (p_b), KEY ia (p_a) \
                 IGNORED, KEY ib (a) IGNORED)",
            "CREATE TABLE own_types (id INT PRIMARY KEY, p_a UUID DEFAULT UUID(), p_b INET6, a UUID, b INET6, c INET4)",
            "CREATE TABLE own_options (id INT PRIMARY KEY, a VARCHAR(9)) PAGE_CHECKSUM=1 PACK_KEYS=1 CHECKSUM=1 \
                 DELAY_KEY_WRITE=1",
            "CREATE TABLE own_engine (id INT PRIMARY KEY, a VARCHAR(9)) ENGINE=Aria TRANSACTIONAL=1",
            "CREATE TABLE own_defaults (id INT PRIMARY KEY, p_a INT DEFAULT (1 + 2), a VARCHAR(40) DEFAULT UUID(), b INT \
                 DEFAULT (1 + 2), p_b VARCHAR(9) DEFAULT CONCAT('a', 'b'))",
            "CREATE SEQUENCE own_numbers START WITH 5",
        ],
    }
}

/// Rows of these tables.
const ROWS: [&str; 9] = [
    "INSERT INTO hidden (id, p_a, s, t) VALUES (1, 2, 'Hb4YqMz7', 'b'), (2, NULL, NULL, 'c')",
    "INSERT INTO numbers VALUES (1, -5, 6, 7, 8, 9.25, 1.5, -2.5, b'1010101', 2026, 0, b'11', 1.25)",
    "INSERT INTO numbers (id) VALUES (2)",
    "INSERT INTO texts VALUES (1, 'é', 'Hb4YqMz7', 'c', 'd', x'0041', x'00ff27', x'5c27', 'b''c', 'x,y', '{\"a\": 1}', 'p', 'a', \
         'é')",
    "INSERT INTO moments VALUES (1, '2001-02-03', '-01:02:03.004', '2001-02-03 04:05:06.789', '2001-02-03 04:05:06', \
         '2001-02-03', '2001-02-03', '2001-02-03 04:05:06.789', NULL)",
    "INSERT INTO keyed VALUES (1, 2, 'abcdefg', 'Hb4YqMz7', 3, 'some words'), (2, NULL, NULL, NULL, NULL, NULL)",
    "INSERT INTO checked VALUES (1, 5, 4, 99), (2, NULL, NULL, NULL)",
    "INSERT INTO ranged VALUES (1, 5, 'Hb4YqMz7'), (2, 50, NULL)",
    "INSERT INTO listed VALUES (1, 'a', 'Hb4YqMz7'), (2, 'c', NULL)",
];

fn tables_of_many_forms_are_loaded(kind: Kind) {
    let plain =
        "enforce = true\n[protect.\"app.*\"]\n\"p_*\" = \"plain\"\n\"*\" = [\"eq\", \"range\"]\n";
    let options = PairOptions {
        settings: plain,
        ..options()
    };
    let Some(mut pair) = Pair::start_with(kind, options) else {
        return;
    };
    for sql in FORMS.iter().chain(own_forms(kind)).chain(&ROWS) {
        pair.plain.must(sql);
    }
    let user = kind.users()[0];
    for more in [
        &["app"][..],
        &[
            "--hex-blob",
            "--complete-insert",
            "--skip-extended-insert",
            "--databases",
            "app",
        ],
    ] {
        let port = pair.beside().port();
        let made = Cli::dump(kind, port, user.name, user.password, more);
        for session in pair.sessions() {
            session.must("DROP DATABASE app");
            session.must("CREATE DATABASE app");
        }
        for port in [pair.beside().port(), pair.proxy.port()] {
            load(kind, port, &made);
        }
        for session in pair.sessions() {
            session.must("USE app");
        }
        let tables = tables(&mut pair.plain);
        assert_eq!(tables.len(), FORMS.len() + own_tables(kind));
        for table in tables {
            pair.same(&format!("SHOW CREATE TABLE {table}"));
            pair.same(&format!("SELECT * FROM {table}"));
        }
    }
    pair.nothing_leaked();
}

/// How many tables are of one family.
fn own_tables(kind: Kind) -> usize {
    let creates = |sql: &&&str| sql.starts_with("CREATE");
    own_forms(kind).iter().filter(creates).count()
}

fn tables(session: &mut Session) -> Vec<String> {
    let found = session.must("SHOW TABLES");
    found.text().lines().map(str::to_owned).collect()
}
