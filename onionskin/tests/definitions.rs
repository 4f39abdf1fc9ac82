//! Definitions are read part by part: a word is a name, a keyword or an option by its place, and
//! what is refused is named.

#[path = "definitions/generated.rs"]
mod generated;
#[path = "definitions/partitions.rs"]
mod partitions;
#[path = "definitions/rows.rs"]
mod rows;

use generated::{generated_columns_over_plain_columns, generated_columns_over_protected_columns};
use onionskin_testkit::*;
use partitions::{
    comments_are_not_ours, options_stand_behind_each_other, partitions_are_changed,
    partitions_stand_behind_the_columns, rows_do_not_move_between_tables, versions_are_refused,
};
use rows::{
    a_default_is_sealed_for_rows, cells_of_new_columns_are_their_tables,
    filled_columns_are_ordinary, rows_that_need_values_of_their_own,
};

on_both_servers!(
    words_are_no_names,
    keywords_are_columns,
    generated_columns_under_a_wildcard,
    generated_columns_over_plain_columns,
    generated_columns_over_protected_columns,
    names_are_exchanged,
    places_beside_protected_columns,
    parts_that_are_not_understood_are_named,
    rows_are_added_to_parents,
    keys_between_texts_of_other_lengths,
    new_rows_have_names,
    prefixes_as_long_as_values_are_unique,
    full_text_beside_protected_columns,
    partitions_stand_behind_the_columns,
    partitions_are_changed,
    rows_do_not_move_between_tables,
    versions_are_refused,
    options_stand_behind_each_other,
    comments_are_not_ours,
    a_default_is_sealed_for_rows,
    filled_columns_are_ordinary,
    rows_that_need_values_of_their_own,
    cells_of_new_columns_are_their_tables,
);

const WILDCARD: &str = "[protect.\"app.w*\"]\n\"*\" = [\"eq\", \"range\"]\n";

/// Tables whose names begin with `w` are protected by a wildcard.
fn pair(kind: Kind) -> Option<Pair> {
    Pair::start_with(
        kind,
        PairOptions {
            settings: WILDCARD,
            database: "DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
            ..PairOptions::default()
        },
    )
}

/// Both say the same, and nothing is refused.
fn same(pair: &mut Pair, statements: &[&str]) {
    for sql in statements {
        let said = pair.same(sql);
        assert!(!said.contains(" OS1"), "{sql}\n{said}");
    }
}

/// A definition that both take. Servers may count rows that they copy.
fn define(pair: &mut Pair, sql: &str) {
    let (definition, bare) = with_and_without_protection(sql);
    pair.plain.must(&bare);
    let done = pair.protected.run(&definition);
    done.unwrap_or_else(|e| panic!("{sql}\n→ {e}"));
}

/// The proxy's words.
fn refused(pair: &mut Pair, sql: &str, words: &[&str]) {
    let (definition, _) = with_and_without_protection(sql);
    let failure = pair.protected.run(&definition).expect_err(sql);
    for word in words {
        assert!(failure.message.contains(word), "{sql}\n{failure}\n{word}");
    }
}

fn is_protected(pair: &Pair, table: &str, column: &str) -> bool {
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'app' \
         AND TABLE_NAME = '{table}' AND COLUMN_NAME = '{column}$enc'"
    );
    pair.behind.connect().text(&sql).unwrap() == "1"
}

/// Keywords of options and attributes are names of protected columns elsewhere.
fn words_are_no_names(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    for sql in [
        "CREATE TABLE a (id INT PRIMARY KEY COMMENT 'the id', comment VARCHAR(20) {eq}, engine VARCHAR(20) {eq}) \
         ENGINE = InnoDB COMMENT = 'x'",
        "CREATE TABLE b (id INT AUTO_INCREMENT PRIMARY KEY COMMENT 'y', `default` VARCHAR(20) {eq}, \
         btree VARCHAR(10) {eq}, KEY i USING BTREE (id))",
        // a key's name is not its column
        "CREATE TABLE c (id INT, pk VARCHAR(10) {eq}, CONSTRAINT pk PRIMARY KEY (id))",
        "CREATE TABLE d (id INT, k VARCHAR(10) {eq}, n INT, UNIQUE KEY k (id, n) COMMENT 'k')",
        "CREATE TABLE wa (id INT AUTO_INCREMENT PRIMARY KEY COMMENT 'the id', comment VARCHAR(20)) COMMENT 'x'",
        "CREATE TABLE e (id INT, type VARCHAR(10), name VARCHAR(10) {eq}) PARTITION BY LIST COLUMNS (type) \
         (PARTITION name VALUES IN ('a') COMMENT 'name')",
    ] {
        define(&mut pair, sql);
    }
    for table in ["a", "b", "c", "d", "wa", "e"] {
        pair.same(&format!("SHOW CREATE TABLE {table}"));
    }
    for sql in [
        "ALTER TABLE a ADD COLUMN n INT COMMENT 'n'",
        "ALTER TABLE a MODIFY n BIGINT NOT NULL COMMENT 'm'",
        "ALTER TABLE a CHANGE n m BIGINT COMMENT 'm'",
        "ALTER TABLE a COMMENT = 'y'",
        "ALTER TABLE a ADD KEY comment (m) COMMENT 'z'",
        "ALTER TABLE c DROP PRIMARY KEY, ADD CONSTRAINT pk PRIMARY KEY (id)",
    ] {
        define(&mut pair, sql);
    }
    same(
        &mut pair,
        &[
            "INSERT INTO c VALUES (1, NULL)",
            "SELECT * FROM c WHERE pk IS NULL",
            "INSERT INTO a (id, m, comment, engine) VALUES (1, 2, 'Hb4YqMz7', 'Hb4YqMz7')",
            "SELECT * FROM a WHERE comment = 'hb4yqmz7'",
            "SHOW CREATE TABLE a",
            "SHOW CREATE TABLE c",
        ],
    );
    // what reads a protected column is refused as before
    for sql in [
        "CREATE TABLE z (comment INT {eq}, n INT AS (comment + 1))",
        "CREATE TABLE z (comment INT {eq}, n INT DEFAULT (comment + 1))",
        "ALTER TABLE a ADD COLUMN o VARCHAR(40) AS (CONCAT(comment, 'x'))",
        "ALTER TABLE a MODIFY m BIGINT DEFAULT (LENGTH(comment))",
    ] {
        refused(&mut pair, sql, &["comment"]);
    }
    pair.nothing_leaked();
}

/// Words that are no reserved ones are columns, which a wildcard protects like any other.
fn keywords_are_columns(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    for sql in [
        "CREATE TABLE wk (id INT PRIMARY KEY, period VARCHAR(10), auto_increment VARCHAR(10), vector VARCHAR(10), \
         serial VARCHAR(10), encrypted VARCHAR(10))",
        "ALTER TABLE wk ADD COLUMN (versioning VARCHAR(10), enforced VARCHAR(10))",
        "ALTER TABLE wk ADD COLUMN n INT, ADD COLUMN start VARCHAR(10)",
    ] {
        define(&mut pair, sql);
    }
    let columns = [
        "period",
        "auto_increment",
        "vector",
        "serial",
        "encrypted",
        "versioning",
        "enforced",
        "n",
        "start",
    ];
    for column in columns {
        assert!(is_protected(&pair, "wk", column), "{column}");
    }
    same(
        &mut pair,
        &[
            "INSERT INTO wk VALUES (1, 'Hb4YqMz7', 'Hb4YqMz7', 'Hb4YqMz7', 'Hb4YqMz7', 'Hb4YqMz7', 'Hb4YqMz7', 'Hb4YqMz7', 5, 'Hb4YqMz7')",
            "SELECT * FROM wk WHERE period = 'hb4yqmz7' AND auto_increment = 'Hb4YqMz7'",
            "SHOW CREATE TABLE wk",
        ],
    );
    // the server alone lists a temporary table, and it is judged as any other
    for sql in [
        "CREATE TEMPORARY TABLE wt (id INT AUTO_INCREMENT PRIMARY KEY)",
        "ALTER TABLE wt ADD COLUMN auto_increment VARCHAR(10)",
        "ALTER TABLE wt ADD COLUMN n VARCHAR(20) DEFAULT 'auto_increment'",
        "ALTER TABLE wt ADD COLUMN (period INT)",
    ] {
        pair.run(sql);
    }
    same(
        &mut pair,
        &[
            "INSERT INTO wt (auto_increment, period) VALUES ('Hb4YqMz7', 5)",
            "SELECT * FROM wt WHERE auto_increment = 'hb4yqmz7' AND period = 5",
            "SHOW CREATE TABLE wt",
        ],
    );
    pair.nothing_leaked();
}

/// What the server computes of plaintext stays plaintext, and the table is protected all the same.
fn generated_columns_under_a_wildcard(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    for sql in [
        "CREATE TABLE wg (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20), twice INT AS (7 * 2) VIRTUAL)",
        "ALTER TABLE wg ADD COLUMN more BIGINT GENERATED ALWAYS AS (twice + 1) STORED AFTER twice",
    ] {
        define(&mut pair, sql);
    }
    assert!(is_protected(&pair, "wg", "name"));
    same(
        &mut pair,
        &[
            "INSERT INTO wg (name) VALUES ('Hb4YqMz7')",
            "SELECT * FROM wg WHERE twice = 14 AND name = 'Hb4YqMz7'",
            "UPDATE wg SET name = 'x' WHERE more = 15",
            "SHOW CREATE TABLE wg",
        ],
    );
    // one that becomes an ordinary column would be plaintext
    refused(&mut pair, "ALTER TABLE wg MODIFY more BIGINT", &["more"]);
    for (sql, word) in [
        (
            "CREATE TABLE wx (id INT PRIMARY KEY, n INT, m INT AS (n + 1))",
            "a generated column reads column n",
        ),
        (
            "CREATE TABLE wx (id INT AUTO_INCREMENT PRIMARY KEY, t VARCHAR(20) AS ('x'))",
            "\"t\" = \"plain\"",
        ),
        (
            "CREATE TABLE x (id INT, n INT AS (id + 1) {eq})",
            "column n: a generated column",
        ),
        (
            "ALTER TABLE wg ADD COLUMN o VARCHAR(30) AS (CONCAT(name, 'x'))",
            "column o: a generated column",
        ),
    ] {
        refused(&mut pair, sql, &[word]);
    }
    pair.nothing_leaked();
}

/// Columns take each other's names in one statement.
fn names_are_exchanged(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10) {eq}, b VARCHAR(10) {eq, range}, c INT, KEY (a), KEY (b))";
    let Some(mut pair) = pair(kind) else { return };
    pair.create(table);
    pair.run("INSERT INTO t VALUES (1, 'anna', 'bert', 3), (2, 'ann', NULL, 4)");
    for sql in [
        "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a",
        "ALTER TABLE t CHANGE a b VARCHAR(10), CHANGE b a VARCHAR(10)",
        "ALTER TABLE t RENAME COLUMN a TO c, RENAME COLUMN c TO a",
        "ALTER TABLE t RENAME COLUMN c TO a, RENAME COLUMN a TO c",
        "ALTER TABLE t RENAME COLUMN a TO z, RENAME COLUMN b TO a",
        "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN z TO a",
    ] {
        define(&mut pair, sql);
        same(
            &mut pair,
            &[
                "SHOW CREATE TABLE t",
                "SELECT * FROM t ORDER BY id",
                "SELECT id FROM t WHERE id = 1",
            ],
        );
    }
    same(
        &mut pair,
        &[
            "SELECT id FROM t WHERE a = 'ANNA'",
            "SELECT id FROM t WHERE b >= 'a'",
        ],
    );
    // a name that stays taken
    for sql in [
        "ALTER TABLE t RENAME COLUMN a TO b",
        "ALTER TABLE t RENAME COLUMN a TO c",
        "ALTER TABLE t RENAME COLUMN c TO a",
        "ALTER TABLE t CHANGE a b VARCHAR(10), CHANGE b b VARCHAR(10)",
        "ALTER TABLE t CHANGE c b INT, CHANGE b b VARCHAR(10)",
    ] {
        assert_eq!(pair.same_error(sql), 1060, "{sql}");
    }
    pair.nothing_leaked();
}

fn places_beside_protected_columns(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.create("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10) {eq, like}, n INT)");
    for sql in [
        "ALTER TABLE t MODIFY n BIGINT AFTER id",
        "ALTER TABLE t MODIFY n BIGINT NOT NULL DEFAULT 5 AFTER a",
        "ALTER TABLE t CHANGE n m INT FIRST",
        "ALTER TABLE t CHANGE m n INT COMMENT 'a' AFTER a",
    ] {
        define(&mut pair, sql);
        same(&mut pair, &["SHOW CREATE TABLE t"]);
    }
}

/// The error tells which part is not understood, and shows no constant.
fn parts_that_are_not_understood_are_named(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.create("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10) {eq}, b INT {eq})");
    for (sql, words) in [
        (
            "CREATE TABLE x (a INT {eq}) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1))",
            "PARTITION BY reads column a",
        ),
        (
            "CREATE TABLE x (a INT NOT NULL {eq}, PRIMARY KEY (a)) PARTITION BY KEY ()",
            "PARTITION BY KEY ()",
        ),
        (
            "CREATE TABLE x (a INT {eq}) PARTITION BY MAGIC (a)",
            "MAGIC in PARTITION BY",
        ),
        (
            "CREATE TABLE x (a INT {eq}) ENGINE InnoDB = 5",
            "= in the table's options",
        ),
        (
            "CREATE TABLE x (a INT {eq}) AS TABLE t",
            "CREATE TABLE … SELECT",
        ),
        (
            "CREATE TABLE x (a INT {eq}, c INT, CHECK (a > c))",
            "it reads c as well",
        ),
        ("ALTER TABLE t ADD CHECK (b > id)", "CHECK over column b"),
        ("ALTER TABLE t SECONDARY_LOAD", "SECONDARY_LOAD"),
    ] {
        refused(&mut pair, sql, &[words]);
    }
    refused(
        &mut pair,
        "CREATE TABLE x (a INT {eq}) PARTITION BY KEY (id) 'Hb4YqMz7'",
        &["a constant in PARTITION BY"],
    );
    pair.nothing_leaked();
}

/// A new row takes nothing from rows that refer to others, with IGNORE as well.
fn rows_are_added_to_parents(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.create("CREATE TABLE parent (id INT PRIMARY KEY {eq, join:g}, name VARCHAR(20) {eq})");
    pair.create(
        "CREATE TABLE child (id INT PRIMARY KEY, parent INT {eq, join:g}, \
         FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE SET NULL)",
    );
    same(
        &mut pair,
        &[
            "INSERT IGNORE INTO parent VALUES (1, 'a'), (2, 'b')",
            "INSERT INTO child VALUES (1, 1)",
            "INSERT IGNORE INTO parent VALUES (1, 'x'), (3, 'c')",
            "SELECT * FROM parent ORDER BY id",
            "SELECT * FROM child",
        ],
    );
    for sql in [
        "INSERT IGNORE INTO parent VALUES (1, 'x') ON DUPLICATE KEY UPDATE id = 9",
        "UPDATE IGNORE parent SET id = 9 WHERE id = 1",
        "DELETE IGNORE FROM parent WHERE id = 1",
    ] {
        refused(&mut pair, sql, &["OS1"]);
    }
    same(&mut pair, &["SELECT * FROM child"]);
}

/// The tokens of texts do not depend on how long a column may be.
fn keys_between_texts_of_other_lengths(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    for sql in [
        "CREATE TABLE p (mail VARCHAR(50) PRIMARY KEY {eq, join:g}, code VARBINARY(8) NOT NULL {eq, join:h}, UNIQUE (code))",
        "CREATE TABLE c (id INT PRIMARY KEY, mail VARCHAR(100) {eq}, code VARBINARY(20) {eq}, \
         FOREIGN KEY (mail) REFERENCES p (mail) ON DELETE CASCADE, FOREIGN KEY (code) REFERENCES p (code))",
        "CREATE TABLE wp (k VARCHAR(50) PRIMARY KEY)",
        "CREATE TABLE wc (id INT AUTO_INCREMENT PRIMARY KEY, k VARCHAR(200), FOREIGN KEY (k) REFERENCES wp (k))",
    ] {
        define(&mut pair, sql);
    }
    same(
        &mut pair,
        &[
            "INSERT INTO p VALUES ('Hb4YqMz7', 'x'), ('é@b', 'y')",
            "INSERT INTO c VALUES (1, 'hb4yqmz7', 'x'), (2, 'E@B', NULL), (3, NULL, 'y')",
            "SELECT c.id, p.mail FROM c JOIN p ON c.mail = p.mail ORDER BY c.id",
            "INSERT INTO wp VALUES ('Hb4YqMz7')",
            "INSERT INTO wc (k) VALUES ('HB4YQMZ7'), (NULL)",
            "SELECT * FROM wc ORDER BY id",
            "SHOW CREATE TABLE c",
            "SHOW CREATE TABLE wc",
        ],
    );
    let long = format!("INSERT INTO c VALUES (4, '{}', NULL)", "z".repeat(90));
    assert_eq!(pair.same_error(&long), 1452);
    assert_eq!(pair.same_error("INSERT INTO wc (k) VALUES ('other')"), 1452);
    assert_eq!(pair.same_error("DELETE FROM p WHERE code = 'y'"), 1451);
    same(
        &mut pair,
        &[
            "DELETE FROM p WHERE mail = 'é@b' AND code = 'z'",
            "UPDATE c SET code = NULL",
            "DELETE FROM p WHERE mail = 'e@b'",
            "SELECT * FROM c ORDER BY id",
        ],
    );
    for (sql, words) in [
        (
            "CREATE TABLE x (mail CHAR(50) {eq}, FOREIGN KEY (mail) REFERENCES p (mail))",
            "their types make other tokens",
        ),
        ("CREATE TABLE we (e ENUM('a', 'b') PRIMARY KEY)", ""),
        (
            "CREATE TABLE wf (id INT PRIMARY KEY, e ENUM('a', 'b'), FOREIGN KEY (e) REFERENCES we (e))",
            "ENUM and SET have no join group",
        ),
    ] {
        match words {
            "" => define(&mut pair, sql),
            words => refused(&mut pair, sql, &[words]),
        }
    }
    pair.nothing_leaked();
}

/// A prefix that leaves nothing out is the column, as in MediaWiki's tables.
fn prefixes_as_long_as_values_are_unique(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    for (n, column) in [
        "a TINYBLOB NOT NULL",
        "a TINYTEXT CHARACTER SET latin1",
        "a TINYTEXT CHARACTER SET ascii COLLATE ascii_bin",
    ]
    .iter()
    .enumerate()
    {
        let table = format!("w{n}");
        define(
            &mut pair,
            &format!(
                "CREATE TABLE {table} (id INT PRIMARY KEY, {column}, b TINYINT, UNIQUE KEY both_of_them (a(255), b))"
            ),
        );
        assert!(is_protected(&pair, &table, "a"));
        let long = "l".repeat(254);
        let statements = [
            format!(
                "INSERT INTO {table} VALUES (1, '{long}a', 1), (2, '{long}b', 1), (3, '{long}a', 2)"
            ),
            format!("INSERT INTO {table} VALUES (4, '{long}a', 1)"),
            format!("INSERT INTO {table} VALUES (5, 'short', 1) ON DUPLICATE KEY UPDATE b = 7"),
            format!("INSERT INTO {table} VALUES (6, 'short', 1) ON DUPLICATE KEY UPDATE b = 7"),
            format!("INSERT INTO {table} VALUES (7, 'SHORT', 7)"),
            format!("SELECT id, a, b FROM {table} ORDER BY id"),
        ];
        same(&mut pair, &statements.each_ref().map(String::as_str));
        let shown = pair
            .protected
            .text(&format!("SHOW CREATE TABLE {table}"))
            .unwrap();
        assert!(
            shown.contains("UNIQUE KEY `both_of_them` (`a`(255),`b`)"),
            "{shown}"
        );
    }
    refused(
        &mut pair,
        "CREATE TABLE w9 (id INT PRIMARY KEY, a TINYBLOB, UNIQUE KEY (a(254)))",
        &["a prefix of column a that is to be unique"],
    );
    refused(
        &mut pair,
        "CREATE TABLE w9 (id INT PRIMARY KEY, a TINYTEXT CHARACTER SET utf8mb4, UNIQUE KEY (a(63)))",
        &["a prefix of column a that is to be unique"],
    );
    pair.nothing_leaked();
}

/// MATCH over columns that stay plaintext.
fn full_text_beside_protected_columns(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.create(
        "CREATE TABLE t (id INT PRIMARY KEY, title VARCHAR(60), body TEXT, owner VARCHAR(30) {eq}, FULLTEXT KEY words (title, body))",
    );
    same(
        &mut pair,
        &[
            "INSERT INTO t VALUES (1, 'unicorns', 'a searchable text', 'Hb4YqMz7'), (2, 'horses', 'another text of unicorns', 'bob'), (3, 'cats', 'none', 'bob')",
            "SELECT id, owner FROM t WHERE MATCH (title, body) AGAINST ('unicorns') AND owner = 'bob'",
            "SELECT id, owner FROM t WHERE MATCH (t.title, t.body) AGAINST ('+unicorns -horses' IN BOOLEAN MODE) ORDER BY id",
            "SELECT owner FROM t WHERE owner IN ('bob', 'Hb4YqMz7') ORDER BY MATCH (title, body) AGAINST ('searchable' IN NATURAL LANGUAGE MODE) DESC, id",
            "SELECT id, MATCH (title, body) AGAINST ('unicorns') > 0 AS found FROM t WHERE owner = 'bob' ORDER BY id",
            "UPDATE t SET owner = 'eve' WHERE MATCH (title, body) AGAINST ('searchable')",
            "SELECT id, owner FROM t ORDER BY id",
        ],
    );
    for sql in [
        "SELECT id FROM t WHERE MATCH (owner) AGAINST ('bob')",
        "SELECT id FROM t WHERE MATCH (title, t.owner) AGAINST ('bob')",
    ] {
        refused(&mut pair, sql, &["OS1004 app.t.owner"]);
    }
    pair.nothing_leaked();
}

/// MySQL's names for the columns of a new row.
fn new_rows_have_names(kind: Kind) {
    if kind == Kind::MariaDb {
        return;
    }
    let Some(mut pair) = pair(kind) else { return };
    pair.create("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20) {eq, range}, n INT {eq}, k INT DEFAULT 5)");
    same(
        &mut pair,
        &[
            "INSERT INTO t VALUES (1, 'a', 1, 1), (2, 'b', 2, 2)",
            "INSERT INTO t (id, name, n) VALUES (1, 'Hb4YqMz7', 7), (3, 'c', 3) AS excluded (a, b, c) \
             ON DUPLICATE KEY UPDATE name = excluded.b, n = c",
            "INSERT INTO t (n, name, id) VALUES (8, 'x', 2) AS excluded (x, y, z) ON DUPLICATE KEY UPDATE name = y",
            "INSERT INTO t VALUES (2, 'q', 9, 11) AS `new` (a, b, c, d) ON DUPLICATE KEY UPDATE n = `new`.c, k = d",
            "INSERT INTO t VALUES (2, 'q', 9, 12) AS new (a, b, c, d) ON DUPLICATE KEY UPDATE k = new.d, name = 'w'",
            "INSERT INTO t VALUES (4, 'r', 9, 12) AS new (a, b, c, d)",
            // names of other columns
            "INSERT INTO t (name, n, id) VALUES ('s', 5, 4) AS new (k, id, name) ON DUPLICATE KEY UPDATE name = new.k, n = new.id",
            "SELECT * FROM t ORDER BY id",
        ],
    );
    for sql in [
        "INSERT INTO t VALUES (1, 'a', 1, 1) AS new (a, b, c) ON DUPLICATE KEY UPDATE n = new.c",
        "INSERT INTO t VALUES (1, 'a', 1, 1) AS new (a, b, b, d) ON DUPLICATE KEY UPDATE n = new.d",
        "INSERT INTO t VALUES (1, 'a', 1, 1) AS new (a, b, c, d) ON DUPLICATE KEY UPDATE k = new.c",
        "INSERT INTO t VALUES (1, 'a', 1, 1) AS new (a, b, c, d) ON DUPLICATE KEY UPDATE k = new.d + 1",
        "INSERT INTO t VALUES (1, 'a', 1, 1) AS new (a, b, c, d) ON DUPLICATE KEY UPDATE name = new.c",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.contains("OS1"), "{sql}: {failure}");
    }
    same(&mut pair, &["SELECT * FROM t ORDER BY id"]);
    pair.nothing_leaked();
}
