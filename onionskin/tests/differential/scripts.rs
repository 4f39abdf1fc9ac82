//! Scripts whose answers once differed, each run in a session of its own. None of their statements
//! is refused.

use super::answers;
use super::comparison::{self, Difference};
use super::lane::Lane;
use super::plans;
use super::script::{Check, Order, Piece, Statement, without_protection};
use super::values::Literal;
use onionskin_testkit::direct_mode;

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, a INT ENCRYPTED FOR (eq), b VARCHAR(4) COLLATE \
                     utf8mb4_general_ci ENCRYPTED FOR (), s VARCHAR(8) COLLATE utf8mb4_general_ci ENCRYPTED FOR (eq), \
                     n INT)";
const ROWS: &str = "INSERT INTO t VALUES (1, 10, 'a', 'one', 5), (2, 20, 'b', 'two', 6), (3, NULL, NULL, NULL, NULL)";

/// A parameter.
const NULL: &str = "{NULL}";

/// Title and statements.
const SCRIPTS: &[(&str, &[&str])] = &[
    (
        "every row that an UPDATE finds raises the warnings of its constants",
        &[
            TABLE,
            ROWS,
            "SET sql_mode = ''",
            "UPDATE t SET a = '7x' WHERE id > 1",
            "SHOW WARNINGS",
            "UPDATE t SET a = '7x' WHERE id = 99",
            "SHOW WARNINGS",
            "UPDATE t SET b = 'too long' WHERE id < 3",
            "SELECT @@warning_count, @@error_count",
            "UPDATE t SET b = 'too long', n = 'x'",
            "SHOW WARNINGS",
            "UPDATE t SET a = a + 1, b = 'much too long', n = 'y' WHERE id = 1",
            "SHOW WARNINGS",
        ],
    ),
    (
        "questions about statements that the proxy did",
        &[
            TABLE,
            ROWS,
            "UPDATE t SET b = 'a' WHERE id < 3",
            "SELECT ROW_COUNT(), LAST_INSERT_ID()",
            "UPDATE t SET b = 'a' WHERE id < 3",
            "SELECT ROW_COUNT()",
            "UPDATE t SET a = a + 1",
            "SELECT ROW_COUNT() AS n",
            "SELECT ROW_COUNT()",
            "INSERT INTO t (id, a) VALUES (4, 99999999999)",
            "SELECT ROW_COUNT()",
            "INSERT INTO t (id, a) VALUES (4, 99999999999)",
            "SELECT @@warning_count, @@error_count",
            "INSERT INTO t (id, a) VALUES (4, 99999999999)",
            "SHOW WARNINGS",
            "INSERT INTO t (id, a) VALUES (4, 99999999999)",
            "SHOW ERRORS",
            "SELECT nothing FROM t",
            "SHOW WARNINGS",
            "SELECT SUM(a) FROM t",
            "SELECT FOUND_ROWS()",
            "SELECT DISTINCT b FROM t ORDER BY b LIMIT 1",
            "SELECT FOUND_ROWS()",
            "UPDATE t SET a = a + 1 WHERE id = 1; SELECT ROW_COUNT()",
        ],
    ),
    (
        "a row that is met counts if it changes",
        &[
            TABLE,
            "CREATE UNIQUE INDEX u ON t (s)",
            ROWS,
            "INSERT INTO t VALUES (1, 10, 'a', 'one', 5) ON DUPLICATE KEY UPDATE b = VALUES(b), s = VALUES(s)",
            "INSERT INTO t VALUES (1, 10, 'A', 'ONE', 5) ON DUPLICATE KEY UPDATE b = VALUES(b)",
            "INSERT INTO t VALUES (1, 10, 'A', 'ONE', 5) ON DUPLICATE KEY UPDATE s = VALUES(s)",
            "INSERT INTO t VALUES (9, 10, 'A', 'ONE', 5) ON DUPLICATE KEY UPDATE b = 'A', a = 10",
            "INSERT INTO t VALUES (9, 10, 'A', 'ONE', 5) ON DUPLICATE KEY UPDATE b = 'x', s = 'ONE'",
            "INSERT INTO t VALUES (3, 1, 'c', 'c', 5) ON DUPLICATE KEY UPDATE b = NULL",
            "INSERT INTO t VALUES (3, 1, NULL, 'c', 5) ON DUPLICATE KEY UPDATE b = VALUES(b)",
            "INSERT INTO t VALUES (2, 20, 'b', 'two', 6), (7, 1, 'p', 'q', 1), (7, 1, 'p', 'q', 1), (1, 0, 'x', 'y', 0) \
             ON DUPLICATE KEY UPDATE b = VALUES(b)",
            "INSERT INTO t VALUES (2, 20, 'b', 'two', 6), (8, 1, 'p', 'r', 1), (8, 1, 'p', NULL, 1) \
             ON DUPLICATE KEY UPDATE b = 'p'",
            "INSERT INTO t SET id = 2, b = 'p' ON DUPLICATE KEY UPDATE b = VALUES(b)",
            "SELECT * FROM t ORDER BY id",
            "DROP INDEX u ON t",
            "REPLACE INTO t VALUES (1, 10, 'x', 'ONE', 5)",
            "REPLACE INTO t VALUES (1, 10, 'x', 'ONE', 5)",
            "REPLACE INTO t VALUES (1, 10, 'X', 'ONE', 5), (1, 10, 'X', 'ONE', 5), (2, 20, 'p', 'two', 6)",
            "REPLACE INTO t SET id = 1, a = 10, b = 'X', s = 'ONE', n = 5",
            "SELECT * FROM t ORDER BY id",
        ],
    ),
    (
        "new values are looked at where a row is met",
        &[
            TABLE,
            "INSERT INTO t (id, a) VALUES (1, 1) ON DUPLICATE KEY UPDATE a = 99999999999",
            "INSERT INTO t (id, a) VALUES (1, 1) ON DUPLICATE KEY UPDATE a = 99999999999",
            "INSERT INTO t (id, b) VALUES (2, 'b') ON DUPLICATE KEY UPDATE b = 'too long'",
            "INSERT INTO t (id, b) VALUES (2, 'b') ON DUPLICATE KEY UPDATE b = 'too long'",
            "SET sql_mode = ''",
            "INSERT INTO t (id, b) VALUES (3, 'b') ON DUPLICATE KEY UPDATE b = 'too long'",
            "SHOW WARNINGS",
            "INSERT INTO t (id, b) VALUES (3, 'much too long') ON DUPLICATE KEY UPDATE b = 'too long'",
            "SHOW WARNINGS",
            "SELECT * FROM t ORDER BY id",
        ],
    ),
    (
        "a column that is left out and assigned where a row is met",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL ENCRYPTED FOR (eq), v VARCHAR(8) NOT NULL ENCRYPTED FOR (), \
             e ENUM('x', 'y') COLLATE utf8mb4_general_ci NOT NULL ENCRYPTED FOR (), d DATETIME NOT NULL ENCRYPTED FOR (range), \
             ts TIMESTAMP(3) NOT NULL ENCRYPTED FOR (), n INT)",
            "INSERT INTO t (id) VALUES (1) ON DUPLICATE KEY UPDATE a = 5, v = 'v', e = 'y', d = '2000-01-01', ts = '2000-01-01'",
            "SELECT * FROM t",
            "INSERT INTO t (id) VALUES (1) ON DUPLICATE KEY UPDATE a = 5, v = 'v', e = 'y', d = '2000-01-01', ts = '2000-01-01'",
            "INSERT INTO t SET id = 2 ON DUPLICATE KEY UPDATE a = 6, v = 'w', e = 'y', d = '2000-01-01', ts = '2000-01-01'",
            "INSERT INTO t (id) VALUES (3) ON DUPLICATE KEY UPDATE a = 5, e = 'y', d = '2000-01-01', ts = '2000-01-01'",
            "INSERT INTO t () VALUES () ON DUPLICATE KEY UPDATE id = 1, a = 5, v = 'v', e = 'y', d = '2000-01-01', ts = '2000-01-01'",
            "SELECT * FROM t ORDER BY id",
            "SET sql_mode = ''",
            "INSERT INTO t (id, ts) VALUES (4, '2001-01-01') ON DUPLICATE KEY UPDATE a = 5, v = 'v'",
            "SELECT @@warning_count, @@error_count",
        ],
    ),
    (
        "NULL for a TIMESTAMP that takes none",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP(3) NOT NULL ENCRYPTED FOR (), k TIMESTAMP NOT NULL \
             ENCRYPTED FOR (eq), n INT)",
            "INSERT INTO t VALUES (1, NULL, NULL, 1)",
            "INSERT INTO t VALUES (2, NULL, '2001-01-01', 1), (3, '2001-01-01', NULL, 1)",
            "INSERT INTO t VALUES (1, '2002-01-01', '2002-01-01', 1)",
            "UPDATE t SET ts = NULL, k = NULL",
            "INSERT INTO t VALUES (1, '2002-01-01', '2002-01-01', 1) ON DUPLICATE KEY UPDATE ts = NULL",
            "REPLACE INTO t VALUES (5, NULL, NULL, 1)",
            "SELECT * FROM t ORDER BY id",
            "SELECT * FROM t WHERE k = NULL",
        ],
    ),
    (
        "defaults of rows that are met, and keys that are no dates",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v DECIMAL(9,2) NOT NULL DEFAULT 1.5 ENCRYPTED FOR (), d DATE UNIQUE, n INT)",
            "INSERT INTO t (id, d) VALUES (1, '2024-12-25'), (2, '2024-12-26')",
            "INSERT INTO t (id, n) VALUES (1, {NULL}), (3, {NULL}) ON DUPLICATE KEY UPDATE v = VALUES(v)",
            "INSERT INTO t (id, n) VALUES (1, {NULL}), (2, {NULL}) ON DUPLICATE KEY UPDATE v = VALUES(v)",
            "INSERT INTO t (id, d) VALUES (7, DATE'2024-12-25') ON DUPLICATE KEY UPDATE v = VALUES(v)",
            "REPLACE INTO t (id, d) VALUES (8, '1e2')",
            "SELECT * FROM t ORDER BY id",
        ],
    ),
    (
        "what the server says, after a statement of which the proxy knows more",
        &[
            TABLE,
            "CREATE UNIQUE INDEX u ON t (n)",
            ROWS,
            "UPDATE t SET a = a + 1, n = 'x' WHERE id = 99",
            "SHOW WARNINGS",
            "UPDATE IGNORE t SET n = '8x' WHERE a = 10 ORDER BY id LIMIT 1",
            "SHOW WARNINGS",
            "INSERT IGNORE INTO t (id, n) VALUES (1, 1), (2, 1), (9, 9)",
            "SHOW WARNINGS",
            "INSERT INTO t (id, s) VALUES (31, 'x') ON DUPLICATE KEY UPDATE s = VALUES(s), b = 'much too long'",
            "SHOW WARNINGS",
            "INSERT INTO none (id) VALUES ({NULL})",
            "SHOW WARNINGS",
        ],
    ),
    (
        "groups sorted by an aggregate",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, c SET('red', 'Green', '7') COLLATE utf8mb4_general_ci NOT NULL ENCRYPTED \
             FOR (eq, range), e ENUM('red', 'Green', '7') COLLATE utf8mb4_general_ci ENCRYPTED FOR (), n INT NOT NULL \
             ENCRYPTED FOR (eq), b BIGINT ENCRYPTED FOR ())",
            "INSERT INTO t VALUES (1, 'red', '7', 1, 5), (2, 'red,7', 'red', 1, 6), (3, 'red', 'red', 2, NULL)",
            "SELECT c, SUM(id), SUM(id) FROM t GROUP BY c ORDER BY SUM(id) DESC, c",
            "SELECT n, COUNT(DISTINCT n), SUM(id), AVG(id) FROM t GROUP BY n ORDER BY COUNT(DISTINCT n), n",
            "SELECT e, SUM(b), COUNT(DISTINCT e), AVG(b) FROM t GROUP BY e ORDER BY SUM(b) DESC, e",
        ],
    ),
    (
        "definitions of grouped columns and of extremes",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, e VARCHAR(8) NOT NULL ENCRYPTED FOR (eq), o INT NOT NULL ENCRYPTED FOR \
             (range), f FLOAT ENCRYPTED FOR (), y YEAR ENCRYPTED FOR (range), x TEXT ENCRYPTED FOR (), v VARBINARY(8) \
             ENCRYPTED FOR (range), z INT(5) UNSIGNED ZEROFILL ENCRYPTED FOR (range))",
            "INSERT INTO t VALUES (1, 'e', 1, 1.5, 0, 'x', 'v', 7)",
            "SELECT e, COUNT(*) FROM t GROUP BY e",
            "SELECT k.e AS g, k.o, COUNT(*) FROM t AS k GROUP BY k.e, k.o",
            "SELECT MIN(f), MAX(y), MIN(x), MAX(v), MIN(z), MAX(e), MIN(o) FROM t",
            "SELECT MAX(y) FROM t",
            "SELECT y, z FROM t",
        ],
    ),
    (
        "DEFAULT for a column that has none",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL ENCRYPTED FOR (eq), b VARCHAR(8) NOT NULL ENCRYPTED FOR ())",
            "UPDATE t SET a = DEFAULT",
            "UPDATE t SET b = DEFAULT WHERE id = 1",
            "INSERT INTO t VALUES (1, 2, 'b')",
            "UPDATE t SET a = DEFAULT",
            "UPDATE t SET b = DEFAULT WHERE id = 1",
            "SELECT * FROM t",
            "CREATE TABLE u (id INT PRIMARY KEY, a INT ENCRYPTED FOR (), n INT NOT NULL)",
            "UPDATE u SET a = a + 1, n = DEFAULT",
            "UPDATE u SET a = 1, n = DEFAULT WHERE id = 1",
        ],
    ),
    (
        "NULL for a column that takes none",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, y YEAR NOT NULL ENCRYPTED FOR (eq, range))",
            "INSERT IGNORE INTO t (y) VALUES (NULL)",
            "INSERT IGNORE INTO t (y) VALUES ({NULL})",
            "SHOW WARNINGS",
            "INSERT IGNORE INTO t (y) VALUES ({NULL}), ({NULL})",
        ],
    ),
    (
        "how defaults and deprecated types are shown",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v VARBINARY(8) DEFAULT '' ENCRYPTED FOR (), w VARCHAR(9) DEFAULT 'it''s' \
             ENCRYPTED FOR (), d DECIMAL(5,2) UNSIGNED ENCRYPTED FOR (range))",
            "DESCRIBE t",
            "SHOW CREATE TABLE t",
            "SELECT COLUMN_NAME, COLUMN_DEFAULT FROM information_schema.columns WHERE table_schema = DATABASE() \
             ORDER BY ordinal_position",
        ],
    ),
    (
        "hexadecimal digits and bits are numbers for a column of numbers",
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, a TINYINT UNSIGNED ENCRYPTED FOR (eq), b BIGINT ENCRYPTED FOR (range), \
             d DECIMAL(10,2) ENCRYPTED FOR (), f DOUBLE ENCRYPTED FOR (), s VARBINARY(4) ENCRYPTED FOR ())",
            "INSERT INTO t VALUES (1, 0x41, 0xFF, 0x10, b'1010', 0x41), (2, b'11', 0x7FFFFFFFFFFFFFFF, 0x00, 0x0102, b'11')",
            "UPDATE t SET a = 0x42, s = x'4142' WHERE id = 2",
            "INSERT INTO t (id, a) VALUES (3, 0x0100)",
            "SET sql_mode = ''",
            "INSERT INTO t (id, a) VALUES (3, 0x0100)",
            "INSERT INTO t (id, b) VALUES (4, 0xFFFFFFFFFFFFFFFF)",
            "SHOW WARNINGS",
            "SELECT id, a, b, d, f, HEX(id), s FROM t ORDER BY id",
        ],
    ),
];

/// The differences, behind their scripts' titles.
pub fn differences(lane: Lane) -> Vec<String> {
    let mut all = Vec::new();
    for (number, (title, statements)) in SCRIPTS.iter().enumerate() {
        let (mut plain, mut proxy) = lane.sessions(&format!("s{number}"), false);
        for &text in *statements {
            let unprotected = without_protection(text);
            let protected = if direct_mode() {
                unprotected.as_str()
            } else {
                text
            };
            let proxied = answers::answer(&mut proxy, &in_order(protected));
            let statements = in_order(&unprotected);
            let expected = answers::answer(&mut plain, &statements);
            let mut found: Vec<Difference> = Vec::new();
            comparison::differences(&statements, &expected, &proxied, &mut found);
            plans::drop_plan_dependent(&mut plain, &statements, &proxied, &mut found, 0);
            all.extend(
                found
                    .iter()
                    .map(|d| format!("{title}: {text}\n{}\n{}", d.kind, d.detail)),
            );
        }
    }
    all
}

/// The statements of a text, all that is certain of them.
fn in_order(text: &str) -> Vec<Statement> {
    let parts: Vec<&str> = match text.starts_with("UPDATE") {
        true => text.split("; ").collect(),
        false => vec![text],
    };
    let statement = |text: &&str| {
        if text.contains(NULL) {
            return prepared(text);
        }
        // What is certain of definitions depends on the kind.
        let label = [
            ("GROUP BY", "select groups"),
            ("DISTINCT", "select distinct"),
            ("SHOW CREATE", "show create table"),
            ("information_schema", "information_schema.columns"),
        ]
        .iter()
        .find(|(part, _)| text.contains(part))
        .map_or("script", |(_, label)| *label);
        let mut statement = Statement::fixed(label, *text);
        statement.check = match text.starts_with("SHOW WARNINGS") || text.starts_with("SHOW ERRORS")
        {
            // The texts of conditions may differ, and the order of those of one statement.
            true => Check {
                lookalikes: vec![2],
                ..Check::default()
            },
            false => Check {
                order: Order::Total,
                ..Check::default()
            },
        };
        statement
    };
    parts.iter().map(statement).collect()
}

/// A statement with NULL for its parameters.
fn prepared(text: &str) -> Statement {
    let mut statement = Statement::fixed("script", "");
    statement.prepared = true;
    statement.pieces = Vec::new();
    for (number, part) in text.split(NULL).enumerate() {
        if number > 0 {
            statement
                .pieces
                .push(Piece::Constant(Literal::null(), (0, 0)));
        }
        statement.pieces.push(Piece::Sql(part.to_owned()));
    }
    statement
}
