//! Partitions and MariaDB's versions of rows, over plain columns beside protected ones.

use super::{define, pair, refused, same};
use onionskin_testkit::*;

const RANGES: &str = "CREATE TABLE r (id INT, name VARCHAR(20) {eq, range}, KEY (name)) PARTITION BY RANGE (id) \
     (PARTITION p0 VALUES LESS THAN (10) COMMENT = 'low', PARTITION p1 VALUES LESS THAN MAXVALUE)";

pub fn partitions_stand_behind_the_columns(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    for sql in [
        RANGES,
        "CREATE TABLE l (id INT, name VARCHAR(20) {eq}) ENGINE=InnoDB PARTITION BY LIST (id) (PARTITION p0 VALUES IN (1, 2), PARTITION p1 VALUES IN (3))",
        "CREATE TABLE h (id INT, name VARCHAR(20) {eq}) PARTITION BY LINEAR HASH (id + 1) PARTITIONS 4",
        "CREATE TABLE k (id INT PRIMARY KEY, name VARCHAR(20) {eq}) PARTITION BY KEY () PARTITIONS 2",
        "CREATE TABLE a (id INT PRIMARY KEY, name VARCHAR(20) {eq}) PARTITION BY KEY ALGORITHM = 2 (id) PARTITIONS 2",
        "CREATE TABLE c (id INT, at DATE, name VARCHAR(20) {eq}) DEFAULT CHARSET = utf8mb4, COMMENT 'x' PARTITION BY RANGE COLUMNS (at, id) (PARTITION p0 VALUES LESS THAN ('2026-01-01', 5), PARTITION p1 VALUES LESS THAN (MAXVALUE, MAXVALUE))",
        "CREATE TABLE s (id INT, at DATE, name VARCHAR(20) {eq}) PARTITION BY RANGE (id) SUBPARTITION BY HASH (TO_DAYS(at)) SUBPARTITIONS 2 (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))",
        "CREATE TABLE r2 LIKE r",
        "CREATE TABLE wp (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20)) PARTITION BY HASH (id) PARTITIONS 3",
    ] {
        define(&mut pair, sql);
    }
    for table in ["r", "l", "h", "k", "a", "c", "s", "r2", "wp"] {
        pair.same(&format!("SHOW CREATE TABLE {table}"));
    }
    same(
        &mut pair,
        &[
            "INSERT INTO r VALUES (1, 'Hb4YqMz7'), (20, 'b'), (30, NULL)",
            "INSERT INTO r2 VALUES (5, NULL)",
            "SELECT * FROM r WHERE name = 'hb4yqmz7'",
            "SELECT * FROM r PARTITION (p1) ORDER BY id",
            "UPDATE r SET id = 2 WHERE name = 'b'",
            "SELECT * FROM r PARTITION (p0) ORDER BY id",
            "DELETE FROM r WHERE name = 'b'",
            "INSERT INTO wp (name) VALUES ('Hb4YqMz7')",
            "SELECT * FROM wp",
        ],
    );
    pair.nothing_leaked();
}

pub fn partitions_are_changed(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.create("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20) {eq})");
    pair.run("INSERT INTO t VALUES (1, 'Hb4YqMz7'), (12, 'b'), (17, 'c')");
    for sql in [
        "ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 2",
        "ALTER TABLE t ADD PARTITION PARTITIONS 2",
        "ALTER TABLE t COALESCE PARTITION 1",
        "ALTER TABLE t REBUILD PARTITION ALL",
        "ALTER TABLE t REMOVE PARTITIONING",
        "ALTER TABLE t PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))",
        "ALTER TABLE t ADD PARTITION (PARTITION name VALUES LESS THAN (30))",
        "ALTER TABLE t REORGANIZE PARTITION p1 INTO (PARTITION p1a VALUES LESS THAN (15), PARTITION p1b VALUES LESS THAN (20))",
        "ALTER TABLE t TRUNCATE PARTITION p1a",
        "ALTER TABLE t DROP PARTITION p1b, name",
    ] {
        define(&mut pair, sql);
        same(
            &mut pair,
            &["SHOW CREATE TABLE t", "SELECT * FROM t ORDER BY id"],
        );
    }
    // these answer with rows
    for sql in [
        "ALTER TABLE t ANALYZE PARTITION p0",
        "ALTER TABLE t CHECK PARTITION p0",
        "ALTER TABLE t OPTIMIZE PARTITION p0",
        "ALTER TABLE t REPAIR PARTITION p0",
    ] {
        same(&mut pair, &[sql, "SELECT * FROM t WHERE name = 'Hb4YqMz7'"]);
    }
    for (sql, words) in [
        (
            "ALTER TABLE t PARTITION BY KEY (name)",
            "PARTITION BY reads column name",
        ),
        (
            "ALTER TABLE t PARTITION BY ROUND (id)",
            "ROUND in PARTITION BY",
        ),
    ] {
        refused(&mut pair, sql, &[words]);
    }
    pair.nothing_leaked();
}

/// Cells open in their own table only.
pub fn rows_do_not_move_between_tables(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.create(RANGES);
    pair.create("CREATE TABLE n (id INT, name VARCHAR(20) {eq, range}, KEY (name))");
    pair.create("CREATE TABLE plain (id INT)");
    pair.run("INSERT INTO r VALUES (1, 'Hb4YqMz7')");
    for sql in [
        "ALTER TABLE r EXCHANGE PARTITION p0 WITH TABLE n",
        "ALTER TABLE r EXCHANGE PARTITION p0 WITH TABLE plain WITHOUT VALIDATION",
        "ALTER TABLE r DISCARD PARTITION p0 TABLESPACE",
        "ALTER TABLE r IMPORT PARTITION p0 TABLESPACE",
        "ALTER TABLE n DISCARD TABLESPACE",
        "ALTER TABLE n IMPORT TABLESPACE",
        "ALTER TABLE r CONVERT PARTITION p0 TO TABLE m",
        "ALTER TABLE r CONVERT TABLE n TO PARTITION p2 VALUES LESS THAN (30)",
    ] {
        refused(&mut pair, sql, &["moves rows between tables"]);
    }
    same(&mut pair, &["SELECT * FROM r", "SELECT * FROM n"]);
}

/// MariaDB makes a version of a row that an UPDATE leaves as it is, and counts it.
pub fn versions_are_refused(kind: Kind) {
    if kind == Kind::MySql {
        return;
    }
    let Some(mut pair) = pair(kind) else { return };
    for sql in [
        "CREATE TABLE v (id INT PRIMARY KEY, name VARCHAR(20) {eq}) WITH SYSTEM VERSIONING",
        "CREATE TABLE v (id INT WITH SYSTEM VERSIONING, name VARCHAR(20) {eq})",
        "CREATE TABLE u (id INT PRIMARY KEY, name VARCHAR(20) {eq}, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, \
         e TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING",
        "CREATE TABLE p (id INT, name VARCHAR(20) {eq}) WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME \
         INTERVAL 1 MONTH (PARTITION ph HISTORY, PARTITION pc CURRENT)",
        "CREATE TABLE wv (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20)) WITH SYSTEM VERSIONING",
    ] {
        refused(&mut pair, sql, &["OS1013 SYSTEM VERSIONING"]);
    }
    pair.create("CREATE TABLE n (id INT PRIMARY KEY, name VARCHAR(20) {eq})");
    refused(
        &mut pair,
        "ALTER TABLE n ADD SYSTEM VERSIONING",
        &["OS1014 SYSTEM VERSIONING"],
    );
    refused(
        &mut pair,
        "ALTER TABLE n COMMENT = '' WITH SYSTEM VERSIONING",
        &["OS1014 WITH"],
    );
    // tables without protected columns are the server's
    for sql in [
        "CREATE TABLE wn (id INT AUTO_INCREMENT PRIMARY KEY) WITH SYSTEM VERSIONING",
        "CREATE TABLE o (id INT PRIMARY KEY, n INT)",
        "ALTER TABLE o ADD SYSTEM VERSIONING",
    ] {
        define(&mut pair, sql);
    }
    same(&mut pair, &["SHOW CREATE TABLE o", "SHOW CREATE TABLE wn"]);
}

/// Servers take options behind each other without a comma, and partitions behind the last
/// specification. Each is read.
pub fn options_stand_behind_each_other(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    for table in ["m", "n"] {
        let columns = "(id INT NOT NULL, name VARCHAR(20) {eq}, p INT, KEY (id))";
        pair.create(&format!("CREATE TABLE {table} {columns} ENGINE=MyISAM"));
    }
    for sql in [
        "ALTER TABLE m COMMENT = '' UNION = (n)",
        "ALTER TABLE m ENGINE = MERGE UNION = (m, n) INSERT_METHOD = LAST",
        "ALTER TABLE m COMMENT 'x', ENGINE MERGE UNION (n)",
        "ALTER TABLE m DEFAULT CHARSET utf8mb4 UNION (n)",
        "ALTER TABLE m ROW_FORMAT = DYNAMIC DATA DIRECTORY = '/tmp'",
        "ALTER TABLE m ORDER BY id UNION = (n)",
    ] {
        refused(&mut pair, sql, &["OS1014"]);
    }
    for by in ["HASH (LENGTH(name))", "KEY (name)", "RANGE COLUMNS (name)"] {
        for before in ["ADD q INT", "ENGINE = InnoDB", "DROP COLUMN p"] {
            let sql = format!("ALTER TABLE m {before} PARTITION BY {by}");
            refused(&mut pair, &sql, &["OS1013 PARTITION BY reads column name"]);
        }
    }
    for sql in [
        "ALTER TABLE m ENGINE = InnoDB ROW_FORMAT = DYNAMIC COMMENT 'both' AUTO_INCREMENT = 7",
        "ALTER TABLE m DEFAULT CHARACTER SET = latin1 COLLATE latin1_bin",
        "ALTER TABLE m ADD q INT PARTITION BY HASH (id) PARTITIONS 2",
        "ALTER TABLE m ADD r INT, DROP COLUMN p REMOVE PARTITIONING",
        "ALTER TABLE m ORDER BY id",
        "ALTER TABLE m FORCE",
        "ALTER TABLE m ENABLE KEYS",
    ] {
        define(&mut pair, sql);
        pair.same("SHOW CREATE TABLE m");
    }
}

/// A comment as those of protected columns makes a table that nobody can read.
pub fn comments_are_not_ours(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.create("CREATE TABLE c (id INT PRIMARY KEY, name VARCHAR(20) {eq}, p INT)");
    for sql in [
        "ALTER TABLE c MODIFY p INT COMMENT 'onionskin:1'",
        "ALTER TABLE c ADD q INT COMMENT \"onionskin:2|\"",
        "ALTER TABLE c MODIFY p INT COMMENT 'onion\\skin:1'",
        "CREATE TABLE d (id INT COMMENT 'onionskin:1', name VARCHAR(20) {eq})",
    ] {
        refused(
            &mut pair,
            sql,
            &["OS1013 a comment as protected columns have it"],
        );
    }
    pair.same("SHOW CREATE TABLE c");
}
