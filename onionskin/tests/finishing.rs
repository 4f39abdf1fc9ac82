//! What the proxy finishes itself answers as a plain server does: ranges over texts that are longer
//! than their order keys, groups and sums over protected columns, changes of rows that only look
//! like matches to the server.

use ::mysql::Value;
use onionskin_testkit::*;

on_both_servers!(
    ranges_over_long_texts,
    groups_and_their_aggregates,
    zeros_before_the_least_and_the_greatest,
    texts_that_are_shown_as_bytes,
    the_limit_of_a_session,
    settings_for_one_query,
    rows_that_only_look_like_matches_stay,
    rows_that_pass_by_take_no_memory_and_kept_ones_have_a_bound,
);

/// Names of which many agree in the beginning that a key covers.
fn names() -> Vec<String> {
    let beginnings = [
        "",
        "common beginning of names ",
        "Common Beginning of names ",
        "zz",
    ];
    let ends = ["", "a", "A ", "b", "Ä", "ß", "ss", "z", " "];
    let mut names = Vec::new();
    for beginning in beginnings {
        names.extend(ends.iter().map(|end| format!("{beginning}{end}")));
    }
    names
}

fn ranges_over_long_texts(kind: Kind) {
    let mut collations = vec![
        "latin1_swedish_ci",
        "utf8mb4_bin",
        "utf8mb4_general_ci",
        "utf8mb4_unicode_ci",
        "utf8mb4_unicode_520_ci",
    ];
    if kind == Kind::MySql {
        collations.push("utf8mb4_0900_ai_ci");
    }
    let columns: Vec<String> = collations
        .iter()
        .enumerate()
        .map(|(n, c)| {
            format!("c{n} VARCHAR(60) COLLATE {c} {{range}}, d{n} TEXT COLLATE {c} {{eq, range}}")
        })
        .collect();
    let create = format!(
        "CREATE TABLE t (id INT PRIMARY KEY, plain INT, bytes VARBINARY(80) {{range}}, {})",
        columns.join(", ")
    );
    let Some(mut pair) = Pair::on_one_server(kind, &create, "") else {
        return;
    };
    for (id, name) in names().iter().enumerate() {
        let values = vec![format!("'{name}'"); 2 * collations.len() + 1];
        pair.both(&format!(
            "INSERT INTO t VALUES ({id}, {}, {})",
            id % 3,
            values.join(", ")
        ));
    }
    let nulls = vec!["NULL"; 2 * collations.len() + 2];
    pair.both(&format!(
        "INSERT INTO t VALUES (1000, {})",
        nulls.join(", ")
    ));

    let columns: Vec<String> = (0..collations.len())
        .flat_map(|n| [format!("c{n}"), format!("d{n}")])
        .collect();
    let mut found = 0;
    for c in &columns {
        for constant in [
            "common beginning of names A",
            "Common beginning of names ß",
            "zza",
            "",
        ] {
            for operator in ["<", "<=", ">", ">=", "=", "<>"] {
                let sql = format!("SELECT id, {c} FROM t WHERE {c} {operator} ? ORDER BY id");
                found += pair.same_rows(&sql, &[constant]);
            }
            let sql =
                format!("SELECT * FROM t WHERE NOT ({c} < ? OR plain = 1) ORDER BY id LIMIT 5");
            found += pair.same_rows(&sql, &[constant]);
        }
        let between =
            format!("SELECT id FROM t WHERE {c} BETWEEN ? AND ? ORDER BY {c} DESC, id LIMIT 3, 9");
        found += pair.same_rows(
            &between,
            &["common beginning of names a", "common beginning of names c"],
        );
        let counted = format!("SELECT COUNT(*) FROM t WHERE {c} NOT BETWEEN ? AND ? AND id > 3");
        found += pair.same_rows(
            &counted,
            &["common beginning of names a", "common beginning of names z"],
        );
        let either = format!(
            "SELECT DISTINCT plain FROM t x WHERE x.{c} > ? OR x.id IN (1, 2) OR x.{c} IS NULL ORDER BY plain"
        );
        found += pair.same_rows(&either, &["common beginning of names b"]);
        let listed = format!(
            "SELECT id FROM t WHERE {c} IN (?, ?) AND {c} NOT IN (?) ORDER BY plain, {c}, id"
        );
        found += pair.same_rows(&listed, &["zz", "COMMON BEGINNING OF NAMES A", "zzz"]);
        let joined = format!(
            "SELECT a.id, b.id FROM t a JOIN t b ON a.plain = b.plain WHERE a.{c} < b.{c} AND a.id < 12 ORDER BY a.id, b.id"
        );
        found += pair.same_rows(&joined, &[]);
    }
    assert!(found > 1000, "only {found} rows were compared");
    let sql = "SELECT id FROM t WHERE bytes > 'common beginning of names A' ORDER BY id";
    let (a, b) = (pair.plain.must(sql), pair.protected.must(sql));
    assert_eq!(a.sets[0].rows, b.sets[0].rows);
    // where the server would have to do it alone
    for sql in [
        "SELECT id FROM t WHERE id IN (SELECT id FROM t WHERE c0 < 'x')",
        "SELECT c0 < 'x' FROM t",
        "SELECT id FROM t WHERE c0 < 'x' OR RAND() < 2",
    ] {
        assert_eq!(pair.protected.must_fail(sql), 1235, "{sql}");
    }
}

fn groups_and_their_aggregates(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, city VARCHAR(20) COLLATE utf8mb4_general_ci, born DATE, \
         name VARCHAR(40) COLLATE utf8mb4_general_ci {eq}, sealed VARCHAR(40) COLLATE latin1_swedish_ci {}, \
         n INT {}, k BIGINT UNSIGNED {range}, d DECIMAL(12,3) {}, x DOUBLE {})";
    let Some(mut pair) = Pair::on_one_server(kind, create, "") else {
        return;
    };
    for id in 0..60 {
        let or_null = |null: bool, text: String| if null { "NULL".into() } else { text };
        let city = ["Rome", "rome", "Oslo", "Ōslo", ""][id % 5];
        let row = [
            id.to_string(),
            or_null(id % 11 == 0, format!("'{city}'")),
            or_null(id % 13 == 0, format!("'2024-0{}-01'", 1 + id % 3)),
            format!("'{}'", ["Ann", "ANN ", "bob", "cleo"][id % 4]),
            or_null(id % 7 == 0, format!("'{}'", ["u", "v"][id % 2])),
            or_null(id % 6 == 0, (id as i64 * 37 % 101 - 50).to_string()),
            (id * 1_000_003 % 7).to_string(),
            format!("{}.{:03}", id % 9, id * 7 % 1000),
            format!("{}.5", id % 4),
        ];
        pair.both(&format!("INSERT INTO t VALUES ({})", row.join(", ")));
    }
    let statements = [
        "SELECT SUM(n), AVG(n), MIN(n), MAX(sealed), COUNT(n), COUNT(*), COUNT(DISTINCT sealed) FROM t",
        "SELECT SUM(n), COUNT(*), COUNT(born), SUM(id) FROM t WHERE id < 0",
        "SELECT born, SUM(n), AVG(d), MAX(k), COUNT(DISTINCT n) FROM t GROUP BY born ORDER BY born",
        "SELECT SUM(d) s, COUNT(*) FROM t GROUP BY city ORDER BY s DESC, city LIMIT 3",
        "SELECT COUNT(*), SUM(n) FROM t GROUP BY city ORDER BY city DESC",
        "SELECT k, SUM(n), AVG(x), SUM(x) FROM t GROUP BY k HAVING SUM(n) > -20 AND COUNT(*) >= 2 ORDER BY k",
        "SELECT COUNT(*), SUM(n) FROM t GROUP BY sealed ORDER BY sealed",
        "SELECT COUNT(*), SUM(DISTINCT n), AVG(DISTINCT k) FROM t GROUP BY name ORDER BY name",
        "SELECT YEAR(born) y, MONTH(born), SUM(n) FROM t GROUP BY y, MONTH(born) ORDER BY 1, 2",
        "SELECT k, born, MIN(d), MAX(id), MIN(city) IS NULL FROM t GROUP BY k, born ORDER BY k, born",
        "SELECT SUM(n) s FROM t HAVING s > 1000000",
        "SELECT k, AVG(n) FROM t GROUP BY k HAVING AVG(n) BETWEEN -30.5 AND 12.25 OR k = 3 ORDER BY AVG(n), k",
        "SELECT k, MAX(sealed) FROM t WHERE sealed IS NOT NULL GROUP BY k HAVING MAX(sealed) > 'U' ORDER BY 1",
        "SELECT a.k, SUM(b.n) FROM t a JOIN t b ON a.k = b.k GROUP BY a.k ORDER BY SUM(b.n), a.k",
    ];
    let mut found = 0;
    for sql in statements {
        // an item over a plain column in an expression is not the proxy's
        if sql.contains("IS NULL FROM") {
            assert_eq!(pair.protected.must_fail(sql), 1235, "{sql}");
            continue;
        }
        found += pair.same_rows(sql, &[]);
    }
    assert!(found > 40, "only {found} rows were compared");
    for sql in [
        "SELECT city, n, SUM(n) FROM t GROUP BY city",
        "SELECT city, SUM(n) FROM t GROUP BY city WITH ROLLUP",
    ] {
        assert_eq!(pair.protected.must_fail(sql), 1235, "{sql}");
    }
}

/// A server that sorts groups by an aggregate keeps the zeros before plain numbers, and leaves them
/// out where it sorts by the group.
fn zeros_before_the_least_and_the_greatest(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, y YEAR, i INT(5) ZEROFILL, \
         d DECIMAL(5,2) ZEROFILL, f FLOAT(8,2) ZEROFILL, n INT {})";
    let Some(mut pair) = Pair::on_one_server(kind, create, "") else {
        return;
    };
    pair.both(
        "INSERT INTO t VALUES (1, 0, 7, 2.5, 1.5, 5), (2, 0, 8, 3.5, 0, 6), (3, 2001, 9, 0, 3.25, 5), \
         (4, 2001, NULL, NULL, NULL, 7), (5, 1999, NULL, NULL, NULL, 8)",
    );
    for column in ["y", "i", "d", "f"] {
        for order in ["COUNT(DISTINCT n) DESC, y", "y", "SUM(n), y"] {
            let sql = format!(
                "SELECT y, COUNT(DISTINCT n), MIN({column}), MAX({column}) FROM t GROUP BY y ORDER BY {order}"
            );
            match kind {
                Kind::MariaDb => assert_eq!(pair.same_rows(&sql, &[]), 3, "{sql}"),
                Kind::MySql => assert_eq!(pair.protected.must_fail(&sql), 1235, "{sql}"),
            }
        }
    }
}

/// With `character_set_results = binary`, texts are sent as bytes, and are no binary strings.
fn texts_that_are_shown_as_bytes(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, c CHAR(4) {eq, range}, long_text TEXT, \
                 s VARCHAR(9), e ENUM('a', 'b'), b BLOB, n INT, k INT {range})";
    let Some(mut pair) = Pair::start(kind, &[table]) else {
        return;
    };
    pair.both("INSERT INTO t VALUES (1, 'a', 'b', 'c', 'a', 'd', 1, 1)");
    for results in ["binary", "NULL", "utf8mb4"] {
        pair.run(&format!("SET character_set_results = {results}"));
        for aggregates in ["MIN(long_text)", "MAX(s), MIN(e)", "MIN(b), MAX(n), SUM(n)"] {
            let counted = format!("SELECT COUNT(DISTINCT c), {aggregates}, SUM(k) FROM t");
            pair.same_result_of_text(&counted);
            let flags = |session: &mut Session| -> Vec<_> {
                let done = session.must(&counted);
                done.sets[0]
                    .columns
                    .iter()
                    .map(|(.., flags)| *flags)
                    .collect()
            };
            let [plain, protected] = pair.sessions();
            assert_eq!(flags(plain), flags(protected), "{results}: {counted}");
        }
    }
}

/// `sql_select_limit`, which drivers set where an application bounds the rows (`setMaxRows`): it
/// cuts the result, not what the proxy reads.
fn the_limit_of_a_session(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, n INT {range}, word VARCHAR(60) COLLATE utf8mb4_general_ci {eq}, bare INT)";
    let Some(mut pair) = Pair::on_one_server(kind, create, "") else {
        return;
    };
    for id in 0..9 {
        let sql = format!(
            "INSERT INTO t VALUES ({id}, {}, 'w{}', 0)",
            100 - id,
            id % 3
        );
        pair.both(&sql);
    }
    for limit in ["2", "1", "0", "DEFAULT"] {
        pair.both(&format!("SET sql_select_limit = {limit}"));
        for sql in [
            "SELECT SUM(n), COUNT(*) FROM t",
            "SELECT id, word FROM t ORDER BY word, id",
            "SELECT id, word FROM t ORDER BY word DESC, id LIMIT 3",
            "SELECT word, SUM(n) AS s FROM t GROUP BY word ORDER BY s",
            "SELECT id FROM t WHERE word LIKE 'w_' AND n > 93",
            "SELECT word FROM t WHERE id = 5",
        ] {
            pair.same_rows(sql, &[]);
            pair.both("DO 1");
        }
        pair.both("UPDATE t SET n = n + 1, bare = bare + 1 WHERE id < 7");
        pair.both("UPDATE t SET n = n + 1 WHERE id = 5");
        pair.both("UPDATE t SET word = 'W0', n = n - 40 WHERE n > 95");
        pair.both("DELETE FROM t WHERE word LIKE 'w0%' AND id > 7");
        pair.same_rows("SELECT @@sql_select_limit", &[]);
    }
    pair.same_rows("SELECT id, n, word, bare FROM t ORDER BY id", &[]);
    // a warning is that of the query, not of what the proxy did behind it
    pair.both("SET sql_select_limit = 1");
    pair.same_rows("SELECT SUM(n) FROM t WHERE bare = 'x'", &[]);
    let warnings = |session: &mut Session| session.must("SHOW WARNINGS").sets[0].rows.clone();
    assert_eq!(warnings(&mut pair.plain), warnings(&mut pair.protected));
}

/// MariaDB's SET STATEMENT.
fn settings_for_one_query(kind: Kind) {
    if kind == Kind::MySql {
        return;
    }
    let create = "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20) {eq}, n INT {})";
    let Some(mut pair) = Pair::on_one_server(kind, create, "") else {
        return;
    };
    pair.both("INSERT INTO t VALUES (1, 'a', 5), (2, 'b', 7), (3, 'a', NULL)");
    for sql in [
        "SET STATEMENT max_statement_time = 20 FOR SELECT id, name FROM t WHERE name = ? ORDER BY id",
        "SET STATEMENT max_statement_time = 20, optimizer_switch = 'mrr=on' FOR SELECT SUM(n), name FROM t WHERE name = ? GROUP BY name",
        // of the same shape, with another value
        "SET STATEMENT max_statement_time = 30 FOR SELECT id, name FROM t WHERE name = ? ORDER BY id",
    ] {
        assert!(pair.same_rows(sql, &["a"]) > 0, "{sql}");
    }
    for sql in [
        "SET STATEMENT time_zone = '+05:00' FOR SELECT id FROM t WHERE name = 'a'",
        "SET STATEMENT sql_select_limit = 1 FOR SELECT id FROM t WHERE name = 'a'",
        "SET STATEMENT max_statement_time = 20 FOR INSERT INTO t VALUES (4, 'c', 1)",
        "SET STATEMENT max_statement_time = 20 FOR UPDATE t SET name = 'c'",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS"), "{sql}: {failure}");
    }
    pair.same_rows("SELECT * FROM t ORDER BY id", &[]);
}

fn rows_that_only_look_like_matches_stay(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY {range}, name VARCHAR(80) COLLATE utf8mb4_general_ci {range}, \
         n INT {}, note INT)";
    let Some(mut pair) = Pair::on_one_server(kind, create, "") else {
        return;
    };
    let alike = "names that agree in their beginning ";
    for from in (0..900).step_by(300) {
        let rows: Vec<String> = (from..from + 300)
            .map(|id| format!("({id}, '{alike}{:04}', {id}, 0)", id * 7 % 900))
            .collect();
        pair.both(&format!("INSERT INTO t VALUES {}", rows.join(", ")));
    }
    let check = |pair: &mut Pair| {
        pair.same_rows("SELECT * FROM t ORDER BY id", &[]);
    };
    for sql in [
        format!("UPDATE t SET note = note + 1 WHERE name < '{alike}0450'"),
        format!("UPDATE t SET n = n + 1, note = 5 WHERE name >= '{alike}0800' OR id = 3"),
        format!("UPDATE t SET name = 'x' WHERE name BETWEEN '{alike}0100' AND '{alike}0110'"),
        format!("UPDATE t SET n = 7 WHERE name < '{alike}'"),
        format!("DELETE FROM t WHERE name < '{alike}0300' AND NOT (note = 5)"),
        format!("DELETE FROM t WHERE name = '{alike}0301'"),
        "DELETE FROM t WHERE name > 'z'".to_string(),
    ] {
        pair.both(&sql);
        check(&mut pair);
    }
    pair.both("BEGIN");
    pair.both(&format!("DELETE FROM t WHERE name > '{alike}0400'"));
    check(&mut pair);
    pair.both(&format!("UPDATE t SET note = 9 WHERE name < '{alike}0350'"));
    pair.both("ROLLBACK");
    check(&mut pair);
    // more rows than one statement of the proxy's writes, where there is no transaction to put them
    // in
    pair.both("LOCK TABLES t WRITE");
    pair.both("UPDATE t SET note = note + 1 WHERE name > 'a'");
    pair.both(&format!("DELETE FROM t WHERE name > '{alike}0880'"));
    pair.both("UNLOCK TABLES");
    check(&mut pair);
    // the server's SELECT warns of what may be an error in a DELETE
    let sql = format!("DELETE FROM t WHERE n = '5x' AND name > '{alike}'");
    assert_eq!(pair.plain.run(&sql).map_or(0, |done| done.affected), 0);
    assert_eq!(pair.protected.must_fail(&sql), 1235);
    check(&mut pair);
    let sql = "DELETE FROM t WHERE name > 'a' LIMIT 1";
    assert_eq!(pair.protected.must_fail(sql), 1235);
    check(&mut pair);
}

fn rows_that_pass_by_take_no_memory_and_kept_ones_have_a_bound(kind: Kind) {
    let create =
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(80) {range}, body MEDIUMTEXT {})";
    let Some(mut pair) = Pair::on_one_server(kind, create, "") else {
        return;
    };
    for id in 0..70 {
        let body = "x".repeat(1 << 20);
        let sql = format!("INSERT INTO t VALUES ({id}, 'a name of some length {id:02}', '{body}')");
        pair.protected.must(&sql);
    }
    // 70 MiB go by
    let passing = "SELECT body FROM t WHERE name >= 'a name of some length 01'";
    let rows = &pair.protected.must(passing).sets[0].rows;
    assert_eq!(rows.len(), 69);
    let counted = pair
        .protected
        .must("SELECT COUNT(*), MAX(body) FROM t WHERE name < 'b'");
    assert_eq!(counted.sets[0].rows.len(), 1);
    // 70 MiB do not fit
    let kept = "SELECT body FROM t WHERE name >= 'a name' ORDER BY body";
    assert_eq!(pair.protected.must_fail(kept), 1038);
    let again = pair.protected.must("SELECT COUNT(body) FROM t");
    assert_eq!(again.sets[0].rows, [[Value::from("70")]]);
}
