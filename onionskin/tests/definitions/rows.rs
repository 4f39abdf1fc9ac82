//! Columns that are added to tables with rows: all rows get one sealed constant.

use super::{define, pair, refused, same};
use onionskin_testkit::*;

const TABLE: &str =
    "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20) {eq}) DEFAULT CHARSET = utf8mb4";

fn with_rows(kind: Kind) -> Option<Pair> {
    let mut pair = pair(kind)?;
    pair.create(TABLE);
    pair.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')");
    Some(pair)
}

pub fn a_default_is_sealed_for_rows(kind: Kind) {
    let Some(mut pair) = with_rows(kind) else {
        return;
    };
    for sql in [
        "ALTER TABLE t ADD COLUMN a VARCHAR(20) NOT NULL DEFAULT 'Default7' {eq, range}",
        "ALTER TABLE t ADD COLUMN b INT NOT NULL DEFAULT 42 {range} FIRST",
        "ALTER TABLE t ADD COLUMN c VARCHAR(30) DEFAULT 'Default7 more' {like} AFTER id, ADD COLUMN n INT NOT NULL DEFAULT 3",
        "ALTER TABLE t ADD COLUMN d DATETIME(3) NOT NULL DEFAULT '2026-01-02 03:04:05.678' {eq}",
        "ALTER TABLE t ADD COLUMN e ENUM('x', 'y') NOT NULL {eq}",
        "ALTER TABLE t ADD COLUMN f DECIMAL(10,2) NOT NULL {eq}, ADD COLUMN g VARBINARY(10) NOT NULL {}",
        "ALTER TABLE t ADD COLUMN h VARCHAR(20) NOT NULL {}, ADD COLUMN i BIT(9) NOT NULL DEFAULT b'101' {eq}, ADD KEY (a)",
        "ALTER TABLE t ADD (j TEXT NOT NULL {}, k VARCHAR(5000) DEFAULT 'k' {eq})",
        "ALTER TABLE t ADD COLUMN l CHAR(4) NOT NULL DEFAULT 'l' INVISIBLE {eq}",
    ] {
        define(&mut pair, sql);
        same(
            &mut pair,
            &["SHOW CREATE TABLE t", "SELECT * FROM t ORDER BY id"],
        );
    }
    same(
        &mut pair,
        &[
            "SELECT id, l FROM t WHERE l = 'L' ORDER BY id",
            "SELECT id FROM t WHERE a = 'DEFAULT7' ORDER BY id",
            "SELECT id FROM t WHERE a > 'd' AND b BETWEEN 41 AND 43 ORDER BY id",
            "SELECT id FROM t WHERE c LIKE '%aul%' ORDER BY id",
            "SELECT COUNT(*) FROM t WHERE d = '2026-01-02 03:04:05.678'",
            "SELECT e, COUNT(*) FROM t GROUP BY e",
            "UPDATE t SET a = 'Hb4YqMz7' WHERE id = 2",
            "UPDATE t SET a = 'Default7' WHERE id = 3",
            "UPDATE t SET c = NULL, h = 'h' WHERE id = 1",
            "SELECT * FROM t ORDER BY id",
            "DESCRIBE t",
        ],
    );
    pair.nothing_leaked();
}

/// Afterwards nothing tells such a column from one that was there from the beginning.
pub fn filled_columns_are_ordinary(kind: Kind) {
    let Some(mut pair) = with_rows(kind) else {
        return;
    };
    let columns = "a VARCHAR(20) NOT NULL DEFAULT 'Default7' {eq, range, like}, b TEXT NOT NULL {}, \
                   c VARCHAR(20) DEFAULT 'Default7' {eq, like}";
    define(&mut pair, &format!("ALTER TABLE t ADD ({columns})"));
    // whoever does not know the columns stores what the definition says
    let mut server = pair.behind.connect();
    let stale = "INSERT INTO app.t (id, `name$enc`) VALUES (9, NULL)";
    server.must(stale);
    pair.plain.must("INSERT INTO t (id, b) VALUES (9, '')");
    same(
        &mut pair,
        &[
            "SELECT * FROM t ORDER BY id",
            "INSERT INTO t (id, b) VALUES (4, 'x')",
        ],
    );
    let other = "ALTER TABLE t ALTER COLUMN a SET DEFAULT 'z', ALTER COLUMN c SET DEFAULT 'y'";
    define(&mut pair, other);
    same(
        &mut pair,
        &[
            "INSERT INTO t (id, b) VALUES (5, 'Hb4YqMz7')",
            "SELECT * FROM t ORDER BY id",
        ],
    );
    // another default has not been sealed there
    assert!(server.run(&stale.replace("(9", "(10")).is_err());
    for sql in [
        "ALTER TABLE t CHANGE a aa VARCHAR(20) NOT NULL DEFAULT 'w'",
        "ALTER TABLE t DROP COLUMN c",
        "CREATE TABLE v LIKE t",
    ] {
        define(&mut pair, sql);
        same(
            &mut pair,
            &["SHOW CREATE TABLE t", "SELECT * FROM t ORDER BY id"],
        );
    }
    // what the server has said of the definition is still told
    pair.same("SHOW WARNINGS");
    pair.nothing_leaked();
}

/// The refusal names the way.
pub fn rows_that_need_values_of_their_own(kind: Kind) {
    let Some(mut pair) = with_rows(kind) else {
        return;
    };
    for (column, definition) in [
        ("a", "DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP {}"),
        ("a", "DATE NOT NULL {}"),
        ("a", "INT NOT NULL DEFAULT 5 CHECK (a > 1) {}"),
        ("a", "JSON NOT NULL {}"),
    ] {
        refused(
            &mut pair,
            &format!("ALTER TABLE t ADD COLUMN {column} {definition}"),
            &["OS1"],
        );
    }
    refused(
        &mut pair,
        "ALTER TABLE t ADD COLUMN at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP {eq}",
        &[
            "OS1040",
            "as NULL without DEFAULT",
            "onionskin migrate app.t --modify \"at datetime NOT NULL\"",
        ],
    );
    same(
        &mut pair,
        &["SELECT * FROM t ORDER BY id", "SHOW CREATE TABLE t"],
    );
    // an empty table has no rows to fill
    pair.run("DELETE FROM t");
    define(&mut pair, "ALTER TABLE t ADD COLUMN at DATE NOT NULL {}");
    pair.nothing_leaked();
}

/// Each table has a cell of its own for the same default.
pub fn cells_of_new_columns_are_their_tables(kind: Kind) {
    let Some(mut pair) = with_rows(kind) else {
        return;
    };
    let add = "ALTER TABLE t ADD COLUMN a VARCHAR(20) NOT NULL DEFAULT 'Default7' {}";
    define(&mut pair, add);
    pair.create("CREATE TABLE u (id INT PRIMARY KEY)");
    pair.run("INSERT INTO u VALUES (1)");
    define(&mut pair, &add.replace("TABLE t", "TABLE u"));
    let mut server = pair.behind.connect();
    let cell = |table: &str| format!("SELECT HEX(MAX(`a$enc`)) FROM app.{table}");
    let (one, other) = (server.text(&cell("t")), server.text(&cell("u")));
    assert!(one.unwrap() != other.unwrap());
    // a cell is bound to its table
    server.must("UPDATE app.u SET `a$enc` = `a$enc`");
    pair.nothing_leaked();
}
