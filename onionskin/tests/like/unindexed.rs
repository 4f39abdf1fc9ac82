//! Without `like_index` MariaDB's tables get no grams, which no query would use and which tell the
//! server what texts share. LIKE opens rows.

use crate::{GRAM_COLUMN, GRAM_INDEX};
use onionskin_testkit::*;

/// How many columns of grams there are, and how many indexes over them.
fn kept(pair: &mut Pair) -> [usize; 2] {
    [GRAM_COLUMN, GRAM_INDEX].map(|sql| pair.behind.connect().text(sql).unwrap().lines().count())
}

fn another_proxy(pair: &Pair, settings: &str) -> Proxy {
    let options = ProxyOptions {
        settings: settings.into(),
        keys: Some(pair.proxy.keys()),
        ..ProxyOptions::default()
    };
    Proxy::start_with(&pair.behind, options)
}

fn migrate_under(pair: &Pair, proxy: &Proxy, arguments: &[&str]) {
    let arguments = [arguments, &["--drop-old"]].concat();
    must_migrate(&pair.behind, Some(proxy), &arguments);
}

pub fn no_grams_are_kept_for_an_index_that_is_not_used(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(60) {like}, note TEXT NOT NULL {eq, like}) \
                  DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci";
    let Some(mut pair) = Pair::on_one_server(kind, create, "") else {
        return;
    };
    // MySQL's index is always used.
    let of = |columns: usize| match kind {
        Kind::MariaDb => [0, 0],
        Kind::MySql => [columns, columns],
    };
    assert_eq!(kept(&mut pair), of(2));
    let queries = [
        "SELECT * FROM t WHERE name LIKE '%needle%'",
        "SELECT id FROM t WHERE note LIKE 'the %' AND name LIKE '%hay%'",
        "SELECT id FROM t WHERE name NOT LIKE '%e%'",
    ];
    let same = |pair: &mut Pair| {
        for sql in queries {
            assert!(pair.same_rows_in_any_order(sql, &[]) > 0, "{sql}");
        }
    };
    pair.both(
        "INSERT INTO t VALUES (1, 'a needle', 'the one'), (2, 'hay', 'the other'), (3, NULL, '')",
    );
    pair.both("UPDATE t SET name = 'needle in hay' WHERE name LIKE '%needle'");
    pair.both("INSERT INTO t VALUES (2, 'x', 'y') ON DUPLICATE KEY UPDATE name = 'hay'");
    pair.both("INSERT INTO t VALUES (4, 'fog', 'the fog')");
    same(&mut pair);
    pair.same_rows_in_any_order("SHOW CREATE TABLE t", &[]);

    // Every other way to a column with LIKE.
    for sql in [
        "CREATE TABLE u LIKE t",
        "ALTER TABLE u RENAME COLUMN name TO called",
        "CREATE VIEW v AS SELECT id, name AS called, note FROM t",
    ] {
        pair.plain.must(sql);
        pair.protected.must(sql);
    }
    pair.protected
        .must("ALTER TABLE u ADD COLUMN more VARCHAR(20) ENCRYPTED FOR (like)");
    pair.plain.must("ALTER TABLE u ADD COLUMN more VARCHAR(20)");
    pair.both("INSERT INTO u VALUES (1, 'a needle', '', 'more hay')");
    for sql in [
        "SELECT * FROM u WHERE called LIKE '%need%' AND more LIKE '%hay'",
        "SELECT * FROM v WHERE called LIKE '%need%'",
        "SHOW CREATE TABLE u",
    ] {
        assert!(pair.same_rows_in_any_order(sql, &[]) > 0, "{sql}");
    }
    if kind == Kind::MariaDb {
        assert_eq!(kept(&mut pair), [0, 0]);
    }
    pair.both("DROP VIEW v");
    pair.both("DROP TABLE u");

    // A proxy that uses indexes opens the rows of a table without.
    let with_index = another_proxy(&pair, "like_index = true\n");
    let without = std::mem::replace(&mut pair.protected, with_index.connect_to("app"));
    same(&mut pair);
    pair.both("UPDATE t SET note = 'the one' WHERE name LIKE '%needle%'");
    // A table with grams, as all were once: a proxy that does not use them writes them on.
    migrate_under(&pair, &with_index, &["app.t", "--rotate"]);
    assert_eq!(kept(&mut pair), [2, 2]);
    pair.protected = without;
    pair.both("INSERT INTO t VALUES (5, 'haystack', 'the stack')");
    let gram = pair.behind.connect().text(GRAM_COLUMN).unwrap();
    let gram = gram.lines().find(|name| name.starts_with("name")).unwrap();
    let missing =
        format!("SELECT COUNT(*) FROM app.t WHERE name$enc IS NOT NULL AND `{gram}` IS NULL");
    assert_eq!(pair.behind.connect().text(&missing).unwrap(), "0");
    same(&mut pair);
    pair.protected = with_index.connect_to("app");
    same(&mut pair);
    // Written anew without the index, it has none.
    let proxy = another_proxy(&pair, "");
    migrate_under(&pair, &proxy, &["app.t", "--rebuild"]);
    assert_eq!(kept(&mut pair), of(2));
    pair.protected = proxy.connect_to("app");
    same(&mut pair);
}
