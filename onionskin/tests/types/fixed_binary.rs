//! UUID, INET6 and INET4, which MariaDB has.

use super::*;

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, u UUID {eq, range}, n UUID NOT NULL DEFAULT '123E4567E89B42D3A456426614174000' {eq}, \
     s INET6 {eq, range}, f INET4 {range}, m INET6 NOT NULL DEFAULT '::FFFF:1.2.3.4' {}, KEY (u), KEY (n), KEY (s), KEY (f))";

fn pair(kind: Kind) -> Option<Pair> {
    match kind {
        Kind::MySql => None,
        Kind::MariaDb => Pair::with_engine(kind, TABLE),
    }
}

/// Values for each column, as literals.
const GIVEN: &[(&str, &[&str])] = &[
    (
        "u n",
        &[
            "'123e4567-e89b-12d3-a456-426614174000'",
            "'123E4567E89B42D3A456426614174001'",
            "'1-2-3e4567e89b42d3a4564266141740----02'",
            "x'017f22e279b07cc398c4dc0c0c07398f'",
            "0x017f22e279b07cc398c4dc0c0c073990",
            "'00000000-0000-0000-0000-000000000000'",
            "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
            "'123e4567-e89b-82d3-0056-426614174000'",
            "_binary'0123456789abcdef'",
            "_latin1'123e4567-e89b-12d3-a456-426614174003'",
            "NULL",
            "DEFAULT",
            "' 123e4567-e89b-12d3-a456-426614174000'",
            "'123e4567-e89b-12d3-a456-426614174000 '",
            "'-23e4567-e89b-12d3-a456-426614174000'",
            "'123e4567-e89b-82d3-0456-426614174000'",
            "''",
            "'x'",
            "'0123456789abcdef'",
            "'it''s \\\\ ä'",
            "x''",
            "x'01'",
            "x'80ff0a5c417f'",
            "_binary'123e4567-e89b-12d3-a456-426614174000'",
            "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'",
        ],
    ),
    (
        "s m",
        &[
            "'::'",
            "'::1'",
            "'0:0:1::'",
            "'ABCD::00ff'",
            "'1:0:0:2:0:0:3:4'",
            "'::ffff:1.2.3.4'",
            "'64:ff9b::1.2.3.4'",
            "'1:2:3:4:5:6:7:8'",
            "x'00000000000000000000ffff01020304'",
            "NULL",
            "DEFAULT",
            "'1.2.3.4'",
            "'1::2::3'",
            "'::1 '",
            "''",
            "x'01020304'",
        ],
    ),
    (
        "f",
        &[
            "'1.2.3.4'",
            "'01.002.003.004'",
            "'255.255.255.255'",
            "'0.0.0.0'",
            "x'7f000001'",
            "NULL",
            "DEFAULT",
            "'1.2.3'",
            "'1.2.3.256'",
            "'::ffff:1.2.3.4'",
            "''",
            "x'00000000000000000000ffff01020304'",
        ],
    ),
];

pub fn uuid_and_inet_are_stored(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    let mut id = 0;
    for mode in MODES {
        pair.both(&format!("SET sql_mode = '{mode}'"));
        for ignore in ["", "IGNORE "] {
            for (columns, values) in GIVEN {
                for column in columns.split(' ') {
                    for value in *values {
                        id += 1;
                        let sql =
                            format!("INSERT {ignore}INTO t (id, {column}) VALUES ({id}, {value})");
                        pair.same(&sql);
                        pair.same("SHOW WARNINGS");
                    }
                }
            }
        }
        pair.same("SELECT * FROM t ORDER BY id");
        parameters_are_stored(&mut pair, &mut id);
        updates(&mut pair);
    }
    // the scratch engine tells what the server makes of numbers and dates, and of a binary string
    // that it shows as another
    let others = ["5", "1.5", "1e0", "TRUE", "DATE'2020-01-01'"];
    for value in others
        .into_iter()
        .chain(["x'123e4567e89b82d30456426614174000'"])
    {
        for mode in MODES {
            pair.both(&format!("SET sql_mode = '{mode}'"));
            let sql = format!("UPDATE t SET u = {value} WHERE id = 1");
            assert!(pair.same_if_done(&sql), "{sql}");
            pair.same("SELECT u FROM t WHERE id = 1");
        }
    }
    // an error before any row, and so without one
    pair.both("SET sql_mode = 'STRICT_TRANS_TABLES'");
    for sql in [
        "UPDATE t SET u = 5 WHERE id = 0 ORDER BY id",
        "UPDATE t SET u = 'zz' WHERE id = 0 ORDER BY id",
        "UPDATE t SET f = TRUE, u = '123e4567-e89b-12d3-a456-426614174000' WHERE id = 0",
    ] {
        pair.same_or_refused(sql);
    }
    pair.conclude(0);
}

fn parameters_are_stored(pair: &mut Pair, id: &mut u32) {
    let sixteen = b"\x01\x7f\x22\xe2\x79\xb0\x7c\xc3\x98\xc4\xdc\x0c\x0c\x07\x39\x8f".as_slice();
    for (column, value) in [
        ("u", Value::from("123E4567-e89b-12d3-a456-426614174000")),
        ("u", Value::from(sixteen)),
        ("n", Value::from("x")),
        ("u", Value::from("{123e4567-e89b-12d3-a456-426614174000}")),
        ("u", Value::from("x")),
        ("u", Value::NULL),
        ("s", Value::from("::0001")),
        ("f", Value::from("1.2.3.004")),
        ("f", Value::from("1.2.3.4.5")),
    ] {
        *id += 1;
        let sql = format!("INSERT INTO t (id, {column}) VALUES ({id}, ?)");
        let parameters = std::slice::from_ref(&value);
        assert!(pair.same_if_done_with(&sql, parameters), "{sql} {value:?}");
    }
    pair.same("SELECT * FROM t ORDER BY id DESC LIMIT 9");
}

fn updates(pair: &mut Pair) {
    for sql in [
        "UPDATE t SET u = '123e4567-e89b-42d3-a456-426614174444', f = '9.9.9.9' WHERE id < 4",
        "UPDATE t SET u = 'zz' WHERE id = 3",
        "UPDATE t SET n = 'zz', s = '::z' WHERE id = 3",
        "UPDATE IGNORE t SET u = 'zz', n = 'zz', f = '' WHERE id = 3",
        "UPDATE t SET u = NULL WHERE s = '::0:1'",
        "UPDATE t SET u = n WHERE id = 2",
        "UPDATE t SET n = NULL WHERE id = 2",
        "DELETE FROM t WHERE u = '123e4567e89b42d3a456426614174444' AND id = 1",
        "INSERT INTO t (id, s) VALUES (2, '::5') ON DUPLICATE KEY UPDATE s = VALUES(s), f = '8.8.8.8'",
        "REPLACE INTO t (id, u) VALUES (2, '123e4567-e89b-42d3-a456-426614174009')",
    ] {
        pair.same(sql);
        // of several errors, the proxy knows the first
        pair.same_or_refused("SHOW WARNINGS");
    }
    pair.same("SELECT * FROM t ORDER BY id");
}

/// Rows in which UUIDs are of the versions 1 and 4, with NULL, zeros and ones among them.
fn rows(pair: &mut Pair) {
    let mut values = Vec::new();
    for n in 0..60u32 {
        let node = n * 7919 % 13;
        let uuid = match n {
            5 | 6 => "'00000000-0000-0000-0000-000000000000'".into(),
            7 => "'ffffffff-ffff-ffff-ffff-ffffffffffff'".into(),
            8 => "NULL".into(),
            _ => format!(
                "'{:08x}-{:04x}-{}{:03x}-{:x}{:03x}-{node:012x}'",
                n * 40503 % 17,
                n % 3,
                if n % 2 == 0 { 1 } else { 4 },
                n % 5,
                8 + n % 4,
                n % 7,
            ),
        };
        let inet6 = match n % 11 {
            0 => "NULL".into(),
            1 => format!("'::ffff:1.2.3.{n}'"),
            _ => format!("'{:x}::{:x}'", n * 40503 % 0xFFFF, n % 4),
        };
        let inet4 = match n % 9 {
            0 => "NULL".into(),
            _ => format!("'{}.{}.0.{}'", n * 97 % 256, n % 3, n % 2),
        };
        values.push(format!("({n}, {uuid}, DEFAULT, {inet6}, {inet4}, DEFAULT)"));
    }
    pair.both("DELETE FROM t");
    pair.both(&format!("INSERT INTO t VALUES {}", values.join(", ")));
}

pub fn uuid_and_inet_are_found(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    rows(&mut pair);
    let some = "'00000005-0002-4000-8000-000000000006'";
    for sql in [
        "SELECT * FROM t ORDER BY id",
        "SELECT u, s, f, m FROM t ORDER BY u, id",
        "SELECT id, u FROM t ORDER BY u DESC, id LIMIT 7",
        "SELECT id, m FROM t ORDER BY m, id",
        "SELECT id, n FROM t ORDER BY n, id LIMIT 3",
        "SELECT s, f FROM t ORDER BY s, f, id",
        "SELECT id FROM t WHERE u = '00000000000000000000000000000000' ORDER BY id",
        "SELECT id FROM t WHERE u = x'00000000000000000000000000000000' ORDER BY id",
        "SELECT id FROM t WHERE u <> '00000000000000000000000000000000' ORDER BY id",
        "SELECT id FROM t WHERE u <=> NULL ORDER BY id",
        "SELECT id FROM t WHERE u IS NULL OR s IS NULL ORDER BY id",
        "SELECT id FROM t WHERE u IN ('00000000-0000-0000-0000-000000000000', x'ffffffffffffffffffffffffffffffff', NULL) ORDER BY id",
        "SELECT id FROM t WHERE n = '123e4567-e89b-42d3-a456-426614174000' ORDER BY id LIMIT 4",
        "SELECT id FROM t WHERE s = '::FFFF:1.2.3.12' ORDER BY id",
        "SELECT id, s FROM t WHERE s > '4000::' ORDER BY s, id",
        "SELECT id, s FROM t WHERE s NOT BETWEEN '::1' AND '7::' ORDER BY id",
        "SELECT id, f FROM t WHERE f < '100.0.0.0' ORDER BY f, id",
        "SELECT id, f FROM t WHERE f BETWEEN '50.0.0.0' AND x'ffffffff' ORDER BY f DESC, id",
        "SELECT a.id, b.id FROM t a JOIN t b ON a.u = b.u WHERE a.id < b.id ORDER BY 1, 2",
        "SELECT COUNT(DISTINCT u), COUNT(DISTINCT s), COUNT(f) FROM t",
        "SELECT MIN(u), MAX(u), MIN(s), MAX(s), MIN(f), MAX(f) FROM t",
        "SELECT MAX(s) FROM t WHERE id < 10",
        "SELECT id FROM t WHERE u LIKE '0000000%' ORDER BY id",
        "SELECT CONCAT(u, '/', s, '/', f), HEX(u), LENGTH(s), COALESCE(f, m) FROM t ORDER BY id",
        "SELECT CAST(u AS CHAR), CAST(f AS INET6) FROM t ORDER BY id LIMIT 12",
    ] {
        pair.compare(sql, &[]);
    }
    for sql in [
        format!("SELECT id, u FROM t WHERE u < {some} ORDER BY u, id"),
        format!("SELECT id, u FROM t WHERE u >= {some} ORDER BY id"),
        format!("SELECT id FROM t WHERE NOT (u > {some}) ORDER BY id"),
        format!(
            "SELECT id FROM t WHERE u BETWEEN '00000000000000000000000000000000' AND {some} ORDER BY id"
        ),
    ] {
        pair.compare(&sql, &[]);
    }
    pair.compare(
        "SELECT id, u FROM t WHERE u > ? AND s <> ? ORDER BY id",
        &[
            Value::from("00000005-0002-4000-8000-000000000006"),
            Value::from("::1"),
        ],
    );
    pair.compare(
        "SELECT id FROM t WHERE u = ? ORDER BY id",
        &[Value::from([0u8; 16].as_slice())],
    );
    for sql in [
        "SELECT u, COUNT(*) FROM t GROUP BY u ORDER BY u",
        "SELECT DISTINCT s FROM t ORDER BY s",
        "SELECT f, COUNT(*), MIN(id) FROM t GROUP BY f ORDER BY f DESC",
        "SELECT m, MAX(u) FROM t GROUP BY m",
        "SELECT f, MIN(u), MAX(s) FROM t GROUP BY f HAVING COUNT(*) > 1 ORDER BY f",
    ] {
        pair.same_rows(sql, &[]);
    }
    unreadable_constants(&mut pair);
    under_other_character_sets(&mut pair);
    pair.conclude(0);
}

/// The scratch engine tells what the server says of these.
fn unreadable_constants(pair: &mut Pair) {
    for condition in [
        "u = 'x'",
        "u <=> 'x'",
        "u IN ('x', '00000000000000000000000000000000')",
        "u NOT IN ('x')",
        "s = '1.2.3.4'",
        "f = ''",
        "f = 5",
        "u = 5",
        "u < 'x'",
        "u BETWEEN 'x' AND 'ffffffffffffffffffffffffffffffff'",
        "n = x'01'",
    ] {
        let sql = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
        assert!(pair.same_or_refused(&sql), "{sql}");
    }
}

fn under_other_character_sets(pair: &mut Pair) {
    for names in ["latin1", "utf8mb3", "binary", "gbk", "utf8mb4"] {
        pair.both(&format!("SET NAMES {names}"));
        pair.compare("SELECT * FROM t ORDER BY id LIMIT 3", &[]);
        pair.compare("SELECT MIN(u), MAX(s), MIN(f) FROM t", &[]);
        let sql = "SELECT id FROM t WHERE f = x'00000000' OR f IS NULL ORDER BY id";
        pair.compare(sql, &[]);
    }
    pair.both("SET character_set_results = NULL");
    pair.compare("SELECT * FROM t ORDER BY id LIMIT 3", &[]);
    pair.both("SET NAMES utf8mb4");
}

pub fn uuid_and_inet_are_defined(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    let shown = |pair: &mut Pair, table: &str| {
        for sql in [
            format!("SHOW CREATE TABLE {table}"),
            format!("DESCRIBE {table}"),
            format!("SHOW FULL COLUMNS FROM {table}"),
            format!("SHOW INDEX FROM {table}"),
            format!(
                "SELECT COLUMN_NAME, ORDINAL_POSITION, COLUMN_DEFAULT, IS_NULLABLE, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH, CHARACTER_OCTET_LENGTH, NUMERIC_PRECISION, \
                 NUMERIC_SCALE, DATETIME_PRECISION, CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_TYPE, COLUMN_KEY, COLUMN_COMMENT FROM information_schema.columns \
                 WHERE table_schema = 'app' AND table_name = '{table}' ORDER BY ORDINAL_POSITION"
            ),
        ] {
            pair.same(&sql);
        }
    };
    shown(&mut pair, "t");
    for sql in [
        "CREATE TABLE k (u UUID NOT NULL PRIMARY KEY {eq, join:k}, s INET6 UNIQUE {eq}, f INET4 DEFAULT NULL COMMENT 'where' {eq})",
        "CREATE TABLE c (id INT PRIMARY KEY, u UUID {eq, join:k}, KEY (u), FOREIGN KEY (u) REFERENCES k (u) ON DELETE CASCADE)",
        "INSERT INTO k VALUES ('123e4567e89b42d3a456426614174000', '::1', '1.2.3.4'), ('123e4567-e89b-42d3-a456-426614174001', '::2', NULL)",
        "INSERT INTO c VALUES (1, '123e4567-e89b-42d3-a456-426614174000'), (2, NULL)",
        "SELECT k.u, k.f, c.id FROM k LEFT JOIN c ON c.u = k.u ORDER BY k.u",
        "SELECT id FROM c WHERE u IN (SELECT u FROM k WHERE s = '::1')",
        "DELETE FROM k WHERE u = '123e4567-e89b-42d3-a456-426614174000'",
        "SELECT * FROM c",
        "DELETE FROM c",
        "ALTER TABLE k ADD COLUMN x UUID {eq}, ADD COLUMN y INET6 {} AFTER u",
        "ALTER TABLE c ADD COLUMN x UUID NOT NULL DEFAULT '00000000000000000000000000000001' {eq}, ADD COLUMN z INET4 NOT NULL {}",
        "SELECT * FROM k",
        "ALTER TABLE k ALTER f SET DEFAULT '127.0.0.01', MODIFY s INET6 COMMENT 'from'",
        "INSERT INTO k (u, y) VALUES ('123e4567e89b42d3a456426614174005', '1::')",
        "SELECT * FROM k ORDER BY u",
        "CREATE TABLE l LIKE k",
        "CREATE TABLE v (u UUID NOT NULL DEFAULT uuid() {eq}, d INT)",
        "SHOW CREATE TABLE v",
        "CREATE VIEW w AS SELECT u, s FROM k",
        "SELECT * FROM w ORDER BY s",
        "DESCRIBE w",
    ] {
        match sql.starts_with("ALTER") {
            // rows are counted where a column with a CHECK comes
            true => assert!(!pair.say(sql).protected.contains("OS1"), "{sql}"),
            false => drop(pair.same(sql)),
        }
    }
    for sql in [
        "INSERT INTO k (u) VALUES ('123E4567e89b42d3a456426614174005')",
        "INSERT INTO k (u, s) VALUES ('123e4567e89b42d3a456426614174002', '0::2')",
        "INSERT INTO c (id, u, z) VALUES (3, '123e4567-e89b-42d3-a456-426614174009', '1.1.1.1')",
    ] {
        pair.same_error(sql);
    }
    shown(&mut pair, "k");
    shown(&mut pair, "l");
    pair.both("INSERT INTO v (d) VALUES (1), (2)");
    let sql = "SELECT COUNT(DISTINCT u), MIN(LENGTH(u)) FROM v";
    let (plain, protected) = (pair.plain.text(sql), pair.protected.text(sql));
    assert_eq!(plain.expect(sql), protected.expect(sql));
    for sql in [
        "CREATE TABLE bad (u UUID {like})",
        "CREATE TABLE bad (u UUID DEFAULT 'x' {eq})",
        "CREATE TABLE bad (s INET6 DEFAULT '1.2.3.4' {eq})",
        "CREATE TABLE bad (f INET4 DEFAULT 5 {eq})",
        "CREATE TABLE bad (u UUID AUTO_INCREMENT PRIMARY KEY {eq})",
        "CREATE TABLE bad (u UUID {eq}, KEY (u(3)))",
    ] {
        let said = pair.say(sql);
        assert_ne!(said.protected, "", "{sql}");
        assert!(said.protected.contains("OS1"), "{sql}: {said:?}");
    }
    pair.conclude(0);
}

/// Rows that are named by plain columns of these types, whatever the connection's character set
/// makes of texts.
pub fn uuid_and_inet_name_rows(kind: Kind) {
    if kind == Kind::MySql {
        return;
    }
    let Some(mut pair) = Pair::with_engine(
        kind,
        "CREATE TABLE p (u UUID NOT NULL, s INET6 NOT NULL, n INT {eq}, w UUID {}, PRIMARY KEY (u, s))",
    ) else {
        return;
    };
    for names in ["utf8mb4", "latin1", "gbk", "binary", "utf8mb4"] {
        pair.both("SET NAMES utf8mb4");
        pair.both("REPLACE INTO p VALUES ('123e4567-e89b-12d3-a456-426614174000', '::1', 1, NULL), ('123e4567-e89b-42d3-a456-426614174000', '1::', 2, '123e4567-e89b-12d3-a456-426614174001')");
        pair.both(&format!("SET NAMES {names}"));
        for sql in [
            "UPDATE p SET n = n + 1",
            "UPDATE p SET n = n + 1 WHERE n = 2 ORDER BY n",
            "UPDATE p SET n = ABS(n) + LENGTH(w)",
            "UPDATE p SET w = u, n = LENGTH(s) + 5",
            "DELETE FROM p WHERE LENGTH(w) = 36 AND n < 8",
        ] {
            pair.same_if_done(sql);
            pair.same("SELECT HEX(u), s, n, HEX(w) FROM p ORDER BY u");
        }
    }
}

/// What the server would say of these has to be asked of an engine.
pub fn uuid_and_inet_without_an_engine(kind: Kind) {
    if kind == Kind::MySql {
        let Some(mut pair) = Pair::of(kind, false, &[]) else {
            return;
        };
        let said = pair.say("CREATE TABLE t (id INT PRIMARY KEY, u UUID {eq})");
        assert!(
            said.is_refused() && said.plain.starts_with("1064"),
            "{said:?}"
        );
        return;
    }
    let tables = [
        TABLE,
        "CREATE TABLE p (id INT PRIMARY KEY, n INT {eq}, u UUID, f INET4)",
        "INSERT INTO t (id, u, f) VALUES (1, '123e4567-e89b-12d3-a456-426614174000', '1.2.3.4')",
        "INSERT INTO p VALUES (1, 2, '123e4567-e89b-12d3-a456-426614174000', '1.2.3.4')",
    ];
    let Some(mut pair) = Pair::of(kind, false, &tables) else {
        return;
    };
    for sql in [
        "SELECT id FROM t WHERE u = 'x'",
        "SELECT id FROM t WHERE u = 5",
        "SELECT id FROM t WHERE f IN ('1.2.3.4', '')",
        "SELECT id FROM t WHERE u LIKE '123%'",
        "SELECT t.id FROM t JOIN p ON t.u = p.u",
        "INSERT INTO t (id, u) VALUES (2, 5)",
        "UPDATE t SET u = 5 WHERE id = 0 ORDER BY id",
        "UPDATE t SET u = uuid() WHERE id = 1",
        "UPDATE p SET n = n + 1, u = 5 WHERE id = 0",
        "UPDATE p SET n = n + 1, f = 0x01020304 WHERE id = 0",
    ] {
        let said = pair.protected.run(sql).expect_err(sql);
        assert!(said.message.starts_with("OS1"), "{sql}: {said}");
    }
    for sql in [
        "SELECT id FROM t WHERE u > x'123e4567e89b12d3a456426614173fff' AND f <> '1.2.3.5'",
        "UPDATE p SET n = n + 1, u = NULL, f = '4.3.2.1' WHERE id = 1",
        "SELECT * FROM p",
        "SELECT MIN(u), MAX(f), COUNT(DISTINCT s) FROM t",
        "SELECT f, COUNT(*) FROM t GROUP BY f",
    ] {
        pair.same(sql);
    }
}

/// By CREATE … SELECT, INSERT … SELECT and UNION.
pub fn uuid_and_inet_are_moved(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    rows(&mut pair);
    for sql in [
        "CREATE TABLE p (id INT PRIMARY KEY, u UUID, s INET6, f INET4)",
        "INSERT INTO p VALUES (1, '00000005-0002-4000-8000-000000000006', '::1', '1.2.3.4'), (2, NULL, NULL, NULL), (3, x'00000000000000000000000000000000', '::2', '1.0.0.0')",
        "INSERT INTO t (id, u, s, f) SELECT id + 100, u, s, f FROM p",
        "INSERT INTO t (id, u, n, s, f, m) SELECT id + 200, n, n, m, f, m FROM t WHERE id < 10",
        "SELECT * FROM t WHERE id >= 100 ORDER BY id",
        "SELECT p.id, t.id FROM p JOIN t ON t.u = p.u ORDER BY 1, 2",
        "SELECT p.u, MIN(t.s), COUNT(*) FROM p JOIN t ON t.id = p.id + 100 GROUP BY p.u ORDER BY p.u",
        "SELECT u FROM t WHERE id < 4 UNION SELECT u FROM p ORDER BY u",
        "UPDATE t SET u = (SELECT MAX(u) FROM p WHERE id = 3) WHERE id = 4",
        "UPDATE t JOIN p ON t.id = p.id SET t.s = p.s",
        "SELECT * FROM t WHERE id < 5 ORDER BY id",
        "SELECT id FROM t WHERE UPPER(u) LIKE '%-4%' AND f > '3.3.3.3' ORDER BY id",
        "DELETE t FROM t JOIN p ON t.u = p.u",
        "SELECT COUNT(*) FROM t",
    ] {
        assert!(pair.same_if_done(sql), "{sql}");
    }
    pair.conclude(0);
}

/// Of the versions 1 to 5 the server turns the segments round before it compares and sorts.
pub fn uuids_of_mixed_versions(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    let values = [
        "00000000-0000-0000-0000-000000000000",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
        "117f22e2-79b0-7cc3-98c4-dc0c0c07398f",
        "f17f22e2-79b0-7cc3-98c4-dc0c0c07398f",
        "123e4567-e89b-42d3-a456-026614174000",
        "123e4567-e89b-42d3-a456-f26614174000",
        "02345678-e89b-12d3-a456-126614174000",
        "123e4567-e89b-82d3-0056-426614174000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
    ];
    for (id, value) in values.iter().enumerate() {
        pair.both(&format!("INSERT INTO t (id, u) VALUES ({id}, '{value}')"));
    }
    pair.same("SELECT id, u FROM t ORDER BY u");
    pair.same("SELECT id, u FROM t ORDER BY u DESC");
    for part in [
        "id < 5",
        "id IN (2, 4)",
        "id IN (5, 6)",
        "id IN (1, 6)",
        "id IN (3, 5)",
    ] {
        pair.same(&format!("SELECT MIN(u), MAX(u) FROM t WHERE {part}"));
    }
    for value in values {
        for operator in ["<", "<=", ">"] {
            let sql = |hint: &str| {
                format!("SELECT id FROM t {hint} WHERE u {operator} '{value}' ORDER BY id")
            };
            let protected = pair.protected.text(&sql("")).expect("rows");
            for hint in ["FORCE INDEX (u)", "IGNORE INDEX (u)"] {
                let plain = pair.plain.text(&sql(hint)).expect("rows");
                assert_eq!(plain, protected, "{hint} {operator} {value}");
            }
        }
    }
    pair.conclude(0);
}
