//! Without `like_index` MariaDB's tables get no grams, which no query would use and which tell the server what texts share. LIKE opens rows.

use crate::support::*;
use crate::twins::{Twins, twins};
use crate::{GRAM_COLUMN, GRAM_INDEX};

/// How many columns of grams there are, and how many indexes over them.
fn kept(twins: &mut Twins) -> [usize; 2] {
    [GRAM_COLUMN, GRAM_INDEX].map(|sql| twins.admin.text(sql).unwrap().lines().count())
}

fn another_proxy(twins: &Twins, settings: &str) -> Proxy {
    let options = ProxyOptions {
        settings: settings.into(),
        keys: Some(twins.proxy.keys()),
        ..ProxyOptions::default()
    };
    Proxy::start_with(&twins.server, options)
}

fn migrate_under(twins: &Twins, proxy: &Proxy, arguments: &[&str]) {
    let arguments = [arguments, &["--drop-old"]].concat();
    must_migrate(&twins.server, Some(proxy), &arguments);
}

pub fn no_grams_are_kept_for_an_index_that_is_not_used(kind: Kind) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(60) {like}, note TEXT NOT NULL {eq, like}) \
                  DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci";
    let Some(mut twins) = twins(kind, create) else {
        return;
    };
    // MySQL's index is always used.
    let of = |columns: usize| match kind {
        Kind::MariaDb => [0, 0],
        Kind::MySql => [columns, columns],
    };
    assert_eq!(kept(&mut twins), of(2));
    let queries = [
        "SELECT * FROM t WHERE name LIKE '%needle%'",
        "SELECT id FROM t WHERE note LIKE 'the %' AND name LIKE '%hay%'",
        "SELECT id FROM t WHERE name NOT LIKE '%e%'",
    ];
    let same = |twins: &mut Twins| {
        for sql in queries {
            assert!(twins.same(sql, &[]) > 0, "{sql}");
        }
    };
    twins.both(
        "INSERT INTO t VALUES (1, 'a needle', 'the one'), (2, 'hay', 'the other'), (3, NULL, '')",
    );
    twins.both("UPDATE t SET name = 'needle in hay' WHERE name LIKE '%needle'");
    twins.both("INSERT INTO t VALUES (2, 'x', 'y') ON DUPLICATE KEY UPDATE name = 'hay'");
    twins.both("INSERT INTO t VALUES (4, 'fog', 'the fog')");
    same(&mut twins);
    twins.same("SHOW CREATE TABLE t", &[]);

    // Every other way to a column with LIKE.
    for sql in [
        "CREATE TABLE u LIKE t",
        "ALTER TABLE u RENAME COLUMN name TO called",
        "CREATE VIEW v AS SELECT id, name AS called, note FROM t",
    ] {
        twins.plain.must(sql);
        twins.protected.must(sql);
    }
    twins
        .protected
        .must("ALTER TABLE u ADD COLUMN more VARCHAR(20) ENCRYPTED FOR (like)");
    twins
        .plain
        .must("ALTER TABLE u ADD COLUMN more VARCHAR(20)");
    twins.both("INSERT INTO u VALUES (1, 'a needle', '', 'more hay')");
    for sql in [
        "SELECT * FROM u WHERE called LIKE '%need%' AND more LIKE '%hay'",
        "SELECT * FROM v WHERE called LIKE '%need%'",
        "SHOW CREATE TABLE u",
    ] {
        assert!(twins.same(sql, &[]) > 0, "{sql}");
    }
    if kind == Kind::MariaDb {
        assert_eq!(kept(&mut twins), [0, 0]);
    }
    twins.both("DROP VIEW v");
    twins.both("DROP TABLE u");

    // A proxy that uses indexes opens the rows of a table without.
    let with_index = another_proxy(&twins, "like_index = true\n");
    let without = std::mem::replace(&mut twins.protected, with_index.connect_to("app"));
    same(&mut twins);
    twins.both("UPDATE t SET note = 'the one' WHERE name LIKE '%needle%'");
    // A table with grams, as all were once: a proxy that does not use them writes them on.
    migrate_under(&twins, &with_index, &["app.t", "--rotate"]);
    assert_eq!(kept(&mut twins), [2, 2]);
    twins.protected = without;
    twins.both("INSERT INTO t VALUES (5, 'haystack', 'the stack')");
    let gram = twins.admin.text(GRAM_COLUMN).unwrap();
    let gram = gram.lines().find(|name| name.starts_with("name")).unwrap();
    let missing =
        format!("SELECT COUNT(*) FROM app.t WHERE name$enc IS NOT NULL AND `{gram}` IS NULL");
    assert_eq!(twins.admin.text(&missing).unwrap(), "0");
    same(&mut twins);
    twins.protected = with_index.connect_to("app");
    same(&mut twins);
    // Written anew without the index, it has none.
    let proxy = another_proxy(&twins, "");
    migrate_under(&twins, &proxy, &["app.t", "--rebuild"]);
    assert_eq!(kept(&mut twins), of(2));
    twins.protected = proxy.connect_to("app");
    same(&mut twins);
}
