//! Answers in which the scratch engine's own tables differ from InnoDB's: unless it is told not to
//! optimize, and where MySQL cannot open a temporary table twice.

use onionskin_testkit::*;

on_both_servers!(
    conditions_within_an_index,
    columns_are_named_by_their_texts_where_a_table_is_used_twice,
);

const TABLES: &str = "
CREATE TABLE k (id INT PRIMARY KEY, s VARCHAR(20) {eq}, n INT {}, KEY (s)) COLLATE utf8mb4_general_ci;
CREATE TABLE b (id INT PRIMARY KEY, s VARCHAR(20) COLLATE utf8mb4_bin {eq}, n INT {}, KEY (s)) COLLATE utf8mb4_general_ci
";

fn conditions_within_an_index(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(kind, TABLES) else {
        return;
    };
    for table in ["k", "b"] {
        pair.run(&format!(
            "INSERT INTO {table} VALUES (1,'ABC',1),(2,'abc',2),(3,'x',1),(4,'y',2),(5,'b',3),(6,'c',4),(7,'abc ',5),(8,'Abc',6)"
        ));
    }
    for sql in [
        "SELECT n FROM k WHERE s = 'abc' AND BINARY s = 'abc'",
        "SELECT n + 1 FROM k WHERE s LIKE 'abc'",
        "SELECT n + 1 FROM k WHERE s = 'abc' AND s LIKE BINARY 'abc' ORDER BY id",
        "SELECT n + 1 FROM k WHERE s = 'abc' AND HEX(s) = '616263' ORDER BY id",
        "SELECT n FROM k WHERE s = 'abc' AND LENGTH(s) = 3 ORDER BY id",
        "SELECT n FROM k WHERE s >= 'abc' AND s < 'c' AND BINARY s <> 'ABC' ORDER BY id",
        "SELECT n FROM k WHERE s = 'ABC' AND s COLLATE utf8mb4_bin = 'abc' ORDER BY id",
        "SELECT k.n, b.n FROM k JOIN b ON k.s COLLATE utf8mb4_bin = b.s ORDER BY k.id, b.id",
        "SELECT k.n, b.n FROM k JOIN b ON k.s = b.s COLLATE utf8mb4_general_ci ORDER BY k.id, b.id",
        "SELECT k.n, COUNT(*) FROM k JOIN b ON CONCAT(k.s, '') = b.s COLLATE utf8mb4_general_ci GROUP BY k.id, k.n ORDER BY k.id",
        "SELECT n FROM k WHERE s IN ('abc', 'x') AND BINARY s IN ('abc', 'x') ORDER BY id",
    ] {
        pair.compare(sql, &[]);
    }
    pair.compare_text("INSERT INTO b (id, s, n) SELECT id + 10, s, n + 1 FROM k WHERE s = 'abc' AND BINARY s = 'abc'");
    pair.compare_text("SELECT * FROM b ORDER BY id");
    pair.conclude(0);
}

/// A table that is used a second time has another name on the engine, and stands in the text that
/// names a column.
fn columns_are_named_by_their_texts_where_a_table_is_used_twice(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(kind, TABLES) else {
        return;
    };
    pair.run("INSERT INTO k VALUES (1,'ABC',1),(2,'abd',2),(3,'x',1)");
    pair.run("INSERT INTO b VALUES (1,'abc',1),(2,'abd',2)");
    for (n, sql) in [
        "SELECT id, (SELECT MAX(UPPER(s)) FROM k), (SELECT MIN(LOWER(s)) FROM k) FROM k ORDER BY id",
        "SELECT id,(SELECT COUNT(*)  FROM k AS x WHERE x.n <= k.n) FROM k ORDER BY UPPER(s)",
        "SELECT (SELECT MAX(LENGTH(k.s)) FROM k)+(SELECT COUNT(*) FROM k z) FROM k ORDER BY UPPER(s)",
        "SELECT CASE WHEN EXISTS (SELECT 1 FROM k x WHERE x.n > k.n) THEN UPPER(k.s) END, \
         (SELECT COUNT(*) FROM k x WHERE x.n < k.n) FROM k ORDER BY k.id",
        "SELECT DISTINCT UPPER(s), (SELECT COUNT(*) FROM k y) FROM k ORDER BY 1",
        "SELECT EXISTS (SELECT 1 FROM k WHERE UPPER(s) = 'X'), NOT EXISTS (SELECT 1 FROM k y WHERE s = 'none')",
        "SELECT id, n IN (SELECT n + 0 FROM k AS y WHERE y.id > 1) FROM k WHERE UPPER(s) <> 'Q' ORDER BY id",
        "SELECT (SELECT s FROM k AS y WHERE y.id = k.id) = 'abc' FROM k ORDER BY id",
        "SELECT (SELECT MAX(UPPER(s)) FROM k AS y) AS z, (SELECT MAX(LOWER(s)) FROM k AS y) FROM k",
        "SELECT `k`.`id`, (SELECT CONCAT(s, '`') FROM k `y z` WHERE `y z`.id = 1) FROM k WHERE UPPER(s) <> 'Q' ORDER BY id",
        "SELECT id, (SELECT MAX(UPPER(s)) FROM k) FROM k GROUP BY id HAVING COUNT(*) = 1 ORDER BY id LIMIT 2",
        "SELECT (SELECT MAX(UPPER(k.s)) FROM k JOIN b ON k.id = b.id), (SELECT COUNT(*) FROM b) FROM b ORDER BY b.id",
    ]
    .iter()
    .enumerate()
    {
        assert!(pair.same_if_done(sql), "{n}: {sql}");
        pair.same_if_done_with(sql, &[]);
    }
    for sql in [
        "SELECT id, (SELECT MAX(UPPER(s)) FROM k WHERE s <> ?), ? FROM k ORDER BY id",
        "SELECT id, (SELECT\n MAX(UPPER(s)) FROM k) FROM k ORDER BY id",
        "SELECT id, (SELECT /* c */ MAX(UPPER(s)) FROM k) FROM k ORDER BY id",
        "SELECT id, (SELECT CONCAT('ä', MAX(s)) FROM k) FROM k ORDER BY id",
        "SELECT (SELECT MAX(UPPER(s)) FROM k) FROM k UNION SELECT (SELECT MIN(UPPER(s)) FROM k) FROM k",
        "SELECT * FROM (SELECT id, (SELECT MAX(UPPER(s)) FROM k) FROM k) AS d ORDER BY id",
        "WITH w AS (SELECT UPPER(s) u FROM k) SELECT (SELECT COUNT(*) FROM w), (SELECT COUNT(*) FROM k) FROM w",
        "INSERT INTO b SELECT id + 10, s, (SELECT COUNT(*) FROM k AS y WHERE UPPER(s) > '') FROM k",
        "SELECT * FROM b ORDER BY id",
    ] {
        pair.same_if_done_with(sql, &["q".into(), 1.into()][..sql.matches('?').count()]);
    }
}
