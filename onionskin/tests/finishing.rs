//! What the proxy finishes itself answers as a plain server does: ranges over texts that are longer than their order
//! keys, groups and sums over protected columns, changes of rows that only look like matches to the server.

mod support;
use ::mysql::{Params, Value};
use support::*;

on_both_servers!(
    ranges_over_long_texts,
    groups_and_their_aggregates,
    the_limit_of_a_session,
    settings_for_one_query,
    rows_that_only_look_like_matches_stay,
    rows_that_pass_by_take_no_memory_and_kept_ones_have_a_bound,
);

/// A plain table on the server and its protected twin behind the proxy.
struct Twins {
    plain: Session,
    protected: Session,
    _proxy: Proxy,
    _server: Server,
}

/// `{words}` stands for the protection of a column.
fn twins(kind: Kind, create: &str) -> Option<Twins> {
    if direct_mode() {
        return None;
    }
    let server = Server::start(kind, ServerOptions::default())?;
    let proxy = Proxy::start(&server, "");
    let mut plain = server.connect();
    plain.must("CREATE DATABASE plain; CREATE DATABASE app; USE plain");
    let mut protected = proxy.connect_to("app");
    let (definition, bare) = with_and_without_protection(create);
    plain.must(&bare);
    protected.must(&definition);
    Some(Twins {
        plain,
        protected,
        _proxy: proxy,
        _server: server,
    })
}

impl Twins {
    fn both(&mut self, sql: &str) {
        let (a, b) = (self.plain.must(sql), self.protected.must(sql));
        assert_eq!((a.affected, a.warnings), (b.affected, b.warnings), "{sql}");
    }

    /// Rows, names and types are the same, in the text protocol and in the binary one.
    fn same(&mut self, sql: &str, parameters: &[&str]) -> usize {
        let values: Vec<Value> = parameters.iter().map(|p| Value::from(*p)).collect();
        let params = || Params::Positional(values.clone());
        let a = self.plain.execute(sql, params()).unwrap();
        let b = self.protected.execute(sql, params());
        let b = b.unwrap_or_else(|e| panic!("{sql}: {e}"));
        let mut rows = 0;
        for (a, b) in a.sets.iter().zip(&b.sets) {
            let shape = |set: &ResultSet| -> Vec<_> {
                set.columns.iter().map(|c| (c.0.clone(), c.1)).collect()
            };
            assert_eq!(shape(a), shape(b), "{sql}");
            assert_eq!(a.rows, b.rows, "{sql} {parameters:?}");
            rows = a.rows.len();
        }
        let mut text = String::new();
        let mut parts = sql.split('?');
        text += parts.next().unwrap_or_default();
        for (part, value) in parts.zip(parameters) {
            text += &format!("'{}'{part}", value.replace('\'', "''"));
        }
        let (a, b) = (self.plain.must(&text), self.protected.must(&text));
        assert_eq!(a.sets[0].rows, b.sets[0].rows, "{text}");
        rows
    }
}

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
    let Some(mut twins) = twins(kind, &create) else {
        return;
    };
    for (id, name) in names().iter().enumerate() {
        let values = vec![format!("'{name}'"); 2 * collations.len() + 1];
        twins.both(&format!(
            "INSERT INTO t VALUES ({id}, {}, {})",
            id % 3,
            values.join(", ")
        ));
    }
    let nulls = vec!["NULL"; 2 * collations.len() + 2];
    twins.both(&format!(
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
                found += twins.same(&sql, &[constant]);
            }
            let sql =
                format!("SELECT * FROM t WHERE NOT ({c} < ? OR plain = 1) ORDER BY id LIMIT 5");
            found += twins.same(&sql, &[constant]);
        }
        let between =
            format!("SELECT id FROM t WHERE {c} BETWEEN ? AND ? ORDER BY {c} DESC, id LIMIT 3, 9");
        found += twins.same(
            &between,
            &["common beginning of names a", "common beginning of names c"],
        );
        let counted = format!("SELECT COUNT(*) FROM t WHERE {c} NOT BETWEEN ? AND ? AND id > 3");
        found += twins.same(
            &counted,
            &["common beginning of names a", "common beginning of names z"],
        );
        let either = format!(
            "SELECT DISTINCT plain FROM t x WHERE x.{c} > ? OR x.id IN (1, 2) OR x.{c} IS NULL ORDER BY plain"
        );
        found += twins.same(&either, &["common beginning of names b"]);
        let listed = format!(
            "SELECT id FROM t WHERE {c} IN (?, ?) AND {c} NOT IN (?) ORDER BY plain, {c}, id"
        );
        found += twins.same(&listed, &["zz", "COMMON BEGINNING OF NAMES A", "zzz"]);
        let joined = format!(
            "SELECT a.id, b.id FROM t a JOIN t b ON a.plain = b.plain WHERE a.{c} < b.{c} AND a.id < 12 ORDER BY a.id, b.id"
        );
        found += twins.same(&joined, &[]);
    }
    assert!(found > 1000, "only {found} rows were compared");
    let sql = "SELECT id FROM t WHERE bytes > 'common beginning of names A' ORDER BY id";
    let (a, b) = (twins.plain.must(sql), twins.protected.must(sql));
    assert_eq!(a.sets[0].rows, b.sets[0].rows);
    // where the server would have to do it alone
    for sql in [
        "SELECT id FROM t WHERE id IN (SELECT id FROM t WHERE c0 < 'x')",
        "SELECT c0 < 'x' FROM t",
        "SELECT id FROM t WHERE c0 < 'x' OR RAND() < 2",
    ] {
        assert_eq!(twins.protected.must_fail(sql), 1235, "{sql}");
    }
}

fn groups_and_their_aggregates(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, city VARCHAR(20) COLLATE utf8mb4_general_ci, born DATE, \
         name VARCHAR(40) COLLATE utf8mb4_general_ci {eq}, sealed VARCHAR(40) COLLATE latin1_swedish_ci {}, \
         n INT {}, k BIGINT UNSIGNED {range}, d DECIMAL(12,3) {}, x DOUBLE {})";
    let Some(mut twins) = twins(kind, create) else {
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
        twins.both(&format!("INSERT INTO t VALUES ({})", row.join(", ")));
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
            assert_eq!(twins.protected.must_fail(sql), 1235, "{sql}");
            continue;
        }
        found += twins.same(sql, &[]);
    }
    assert!(found > 40, "only {found} rows were compared");
    for sql in [
        "SELECT city, n, SUM(n) FROM t GROUP BY city",
        "SELECT city, SUM(n) FROM t GROUP BY city WITH ROLLUP",
    ] {
        assert_eq!(twins.protected.must_fail(sql), 1235, "{sql}");
    }
}

/// `sql_select_limit`, which drivers set where an application bounds the rows (`setMaxRows`): it cuts the result, not what the proxy reads.
fn the_limit_of_a_session(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, n INT {range}, word VARCHAR(60) COLLATE utf8mb4_general_ci {eq}, bare INT)";
    let Some(mut twins) = twins(kind, create) else {
        return;
    };
    for id in 0..9 {
        let sql = format!(
            "INSERT INTO t VALUES ({id}, {}, 'w{}', 0)",
            100 - id,
            id % 3
        );
        twins.both(&sql);
    }
    for limit in ["2", "1", "0", "DEFAULT"] {
        twins.both(&format!("SET sql_select_limit = {limit}"));
        for sql in [
            "SELECT SUM(n), COUNT(*) FROM t",
            "SELECT id, word FROM t ORDER BY word, id",
            "SELECT id, word FROM t ORDER BY word DESC, id LIMIT 3",
            "SELECT word, SUM(n) AS s FROM t GROUP BY word ORDER BY s",
            "SELECT id FROM t WHERE word LIKE 'w_' AND n > 93",
            "SELECT word FROM t WHERE id = 5",
        ] {
            twins.same(sql, &[]);
            twins.both("DO 1");
        }
        twins.both("UPDATE t SET n = n + 1, bare = bare + 1 WHERE id < 7");
        twins.both("UPDATE t SET n = n + 1 WHERE id = 5");
        twins.both("UPDATE t SET word = 'W0', n = n - 40 WHERE n > 95");
        twins.both("DELETE FROM t WHERE word LIKE 'w0%' AND id > 7");
        twins.same("SELECT @@sql_select_limit", &[]);
    }
    twins.same("SELECT id, n, word, bare FROM t ORDER BY id", &[]);
    // a warning is that of the query, not of what the proxy did behind it
    twins.both("SET sql_select_limit = 1");
    twins.same("SELECT SUM(n) FROM t WHERE bare = 'x'", &[]);
    let warnings = |session: &mut Session| session.must("SHOW WARNINGS").sets[0].rows.clone();
    assert_eq!(warnings(&mut twins.plain), warnings(&mut twins.protected));
}

/// MariaDB's SET STATEMENT.
fn settings_for_one_query(kind: Kind) {
    if kind == Kind::MySql {
        return;
    }
    let create = "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20) {eq}, n INT {})";
    let Some(mut twins) = twins(kind, create) else {
        return;
    };
    twins.both("INSERT INTO t VALUES (1, 'a', 5), (2, 'b', 7), (3, 'a', NULL)");
    for sql in [
        "SET STATEMENT max_statement_time = 20 FOR SELECT id, name FROM t WHERE name = ? ORDER BY id",
        "SET STATEMENT max_statement_time = 20, optimizer_switch = 'mrr=on' FOR SELECT SUM(n), name FROM t WHERE name = ? GROUP BY name",
        // of the same shape, with another value
        "SET STATEMENT max_statement_time = 30 FOR SELECT id, name FROM t WHERE name = ? ORDER BY id",
    ] {
        assert!(twins.same(sql, &["a"]) > 0, "{sql}");
    }
    for sql in [
        "SET STATEMENT time_zone = '+05:00' FOR SELECT id FROM t WHERE name = 'a'",
        "SET STATEMENT sql_select_limit = 1 FOR SELECT id FROM t WHERE name = 'a'",
        "SET STATEMENT max_statement_time = 20 FOR INSERT INTO t VALUES (4, 'c', 1)",
        "SET STATEMENT max_statement_time = 20 FOR UPDATE t SET name = 'c'",
    ] {
        let failure = twins.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS"), "{sql}: {failure}");
    }
    twins.same("SELECT * FROM t ORDER BY id", &[]);
}

fn rows_that_only_look_like_matches_stay(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY {range}, name VARCHAR(80) COLLATE utf8mb4_general_ci {range}, \
         n INT {}, note INT)";
    let Some(mut twins) = twins(kind, create) else {
        return;
    };
    let alike = "names that agree in their beginning ";
    for from in (0..900).step_by(300) {
        let rows: Vec<String> = (from..from + 300)
            .map(|id| format!("({id}, '{alike}{:04}', {id}, 0)", id * 7 % 900))
            .collect();
        twins.both(&format!("INSERT INTO t VALUES {}", rows.join(", ")));
    }
    let check = |twins: &mut Twins| {
        twins.same("SELECT * FROM t ORDER BY id", &[]);
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
        twins.both(&sql);
        check(&mut twins);
    }
    twins.both("BEGIN");
    twins.both(&format!("DELETE FROM t WHERE name > '{alike}0400'"));
    check(&mut twins);
    twins.both(&format!("UPDATE t SET note = 9 WHERE name < '{alike}0350'"));
    twins.both("ROLLBACK");
    check(&mut twins);
    // more rows than one statement of the proxy's writes, where there is no transaction to put them in
    twins.both("LOCK TABLES t WRITE");
    twins.both("UPDATE t SET note = note + 1 WHERE name > 'a'");
    twins.both(&format!("DELETE FROM t WHERE name > '{alike}0880'"));
    twins.both("UNLOCK TABLES");
    check(&mut twins);
    // the server's SELECT warns of what may be an error in a DELETE
    let sql = format!("DELETE FROM t WHERE n = '5x' AND name > '{alike}'");
    assert_eq!(twins.plain.run(&sql).map_or(0, |done| done.affected), 0);
    assert_eq!(twins.protected.must_fail(&sql), 1235);
    check(&mut twins);
    let sql = "DELETE FROM t WHERE name > 'a' LIMIT 1";
    assert_eq!(twins.protected.must_fail(sql), 1235);
    check(&mut twins);
}

fn rows_that_pass_by_take_no_memory_and_kept_ones_have_a_bound(kind: Kind) {
    let create =
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(80) {range}, body MEDIUMTEXT {})";
    let Some(mut twins) = twins(kind, create) else {
        return;
    };
    for id in 0..70 {
        let body = "x".repeat(1 << 20);
        let sql = format!("INSERT INTO t VALUES ({id}, 'a name of some length {id:02}', '{body}')");
        twins.protected.must(&sql);
    }
    // 70 MiB go by
    let passing = "SELECT body FROM t WHERE name >= 'a name of some length 01'";
    let rows = &twins.protected.must(passing).sets[0].rows;
    assert_eq!(rows.len(), 69);
    let counted = twins
        .protected
        .must("SELECT COUNT(*), MAX(body) FROM t WHERE name < 'b'");
    assert_eq!(counted.sets[0].rows.len(), 1);
    // 70 MiB do not fit
    let kept = "SELECT body FROM t WHERE name >= 'a name' ORDER BY body";
    assert_eq!(twins.protected.must_fail(kept), 1038);
    let again = twins.protected.must("SELECT COUNT(body) FROM t");
    assert_eq!(again.sets[0].rows, [[Value::from("70")]]);
}
