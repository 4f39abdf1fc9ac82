//! Answers in which the scratch engine's own tables differ from InnoDB's unless it is told not to
//! optimize.

mod support;

use support::*;

on_both_servers!(conditions_within_an_index);

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
