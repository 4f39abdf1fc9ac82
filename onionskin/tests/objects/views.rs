//! Views: through the proxy, and made at the server.

use super::*;

pub fn views(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    for sql in [
        "CREATE VIEW grown AS SELECT id, name, age, city FROM user WHERE city IS NOT NULL",
        "CREATE OR REPLACE VIEW all_of_it AS SELECT * FROM user",
        "CREATE VIEW owned AS SELECT o.word, u.name, u.note FROM open o JOIN user u ON u.id = o.owner ORDER BY o.id",
        "CREATE ALGORITHM=MERGE SQL SECURITY INVOKER VIEW app.places AS SELECT id, city FROM user WHERE id > 1",
        "CREATE VIEW of_view AS SELECT name, age FROM all_of_it WHERE id < 3",
        "CREATE VIEW plainly AS SELECT id, word FROM open WHERE word <> 'y'",
    ] {
        if sql.contains("places") {
            refusal(&mut pair.protected, sql);
            continue;
        }
        pair.both(sql);
    }
    views_answer_as_on_a_plain_server(&mut pair);
    views_are_shown_without_physical_names(&mut pair);
    let second = another_proxy_knows_the_views(&mut pair);
    rows_are_written_through_views_of_one_table(&mut pair);
    views_that_compute_are_refused(&mut pair);
    a_view_without_its_table_is_an_error_to_everyone(&mut pair, &second);
    let s = SECRET;
    pair.both("DROP VIEW grown, of_view");
    pair.both("DROP VIEW IF EXISTS grown, owned");
    assert_eq!(
        pair.same_error(&format!("SELECT name FROM grown WHERE name = '{s}x'").replace(s, "y")),
        1146
    );
    pair.nothing_leaked();
}

fn views_answer_as_on_a_plain_server(pair: &mut Pair) {
    for sql in [
        "SELECT * FROM grown ORDER BY id",
        "SELECT * FROM all_of_it ORDER BY id",
        "SELECT v.* FROM all_of_it v WHERE v.name = 'BOB'",
        "SELECT name, age FROM all_of_it WHERE age > 17 ORDER BY age DESC",
        "SELECT COUNT(*), MAX(age), SUM(age) FROM grown",
        "SELECT age, COUNT(*) FROM all_of_it GROUP BY age ORDER BY age",
        "SELECT * FROM owned",
        "SELECT u.id, v.name FROM user u JOIN grown v ON u.name = v.name ORDER BY u.id",
        "SELECT UPPER(name), CONCAT(note, '!') FROM all_of_it ORDER BY id",
        "SELECT * FROM all_of_it ORDER BY note, id",
        "SELECT * FROM of_view ORDER BY age",
        "SELECT * FROM plainly",
        "SELECT name FROM grown WHERE name LIKE 'a%'",
    ] {
        pair.same_result(sql);
    }
    pair.same_result_with(
        "SELECT id, name FROM all_of_it WHERE name = ? AND age < ?",
        &["alice".into(), 40.into()],
    );
}

fn views_are_shown_without_physical_names(pair: &mut Pair) {
    for sql in [
        "DESCRIBE grown",
        "SHOW FULL COLUMNS FROM owned",
        "SHOW CREATE VIEW plainly",
        "SELECT TABLE_NAME, COLUMN_NAME, ORDINAL_POSITION, COLUMN_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'app' ORDER BY 1, 3",
    ] {
        let (a, b) = (
            pair.plain.text(sql).unwrap(),
            pair.protected.text(sql).unwrap(),
        );
        assert_eq!(a, b, "{sql}");
    }
    for view in ["grown", "all_of_it", "owned"] {
        let sql = format!("SHOW CREATE VIEW {view}");
        let (a, b) = (
            pair.plain.text(&sql).unwrap(),
            pair.protected.text(&sql).unwrap(),
        );
        assert_eq!(a, b, "{sql}");
        let sql = format!(
            "SELECT VIEW_DEFINITION, IS_UPDATABLE FROM information_schema.VIEWS WHERE TABLE_NAME = '{view}'"
        );
        let text = pair.protected.text(&sql).unwrap();
        assert!(!text.contains('$') && text.contains("name"), "{text}");
    }
}

/// Another proxy reads a view as it reads tables.
fn another_proxy_knows_the_views(pair: &mut Pair) -> Proxy {
    let keys = ProxyOptions {
        keys: Some(pair.proxy.keys()),
        ..ProxyOptions::default()
    };
    let second = Proxy::start_with(&pair.behind, keys);
    let mut there = second.connect_to("app");
    assert_eq!(
        there
            .text("SELECT age FROM grown WHERE name = 'alice'")
            .unwrap(),
        "31"
    );
    // a new definition, seen by everyone
    assert_eq!(there.text("SELECT COUNT(*) FROM all_of_it").unwrap(), "3");
    pair.both("ALTER VIEW all_of_it AS SELECT id, note, name FROM user");
    pair.same_result("SELECT * FROM all_of_it ORDER BY id");
    pair.both("CREATE OR REPLACE VIEW all_of_it AS SELECT name FROM user");
    pair.same_result("SELECT name FROM all_of_it ORDER BY name");
    assert_eq!(
        there
            .text("SELECT * FROM all_of_it WHERE name = 'bob'")
            .unwrap(),
        "bob"
    );
    drop(there);
    second
}

fn rows_are_written_through_views_of_one_table(pair: &mut Pair) {
    let s = SECRET;
    pair.both(&format!(
        "INSERT INTO user (id, name, city) VALUES (77, '{s} grown', 'Bern')"
    ));
    pair.both(&format!("DELETE FROM grown WHERE name = '{s}'"));
    pair.both(&format!("DELETE FROM grown WHERE name = '{s} grown'"));
    pair.same_result("SELECT * FROM user ORDER BY id");
    pair.both(&format!("INSERT INTO grown (id, name) VALUES (9, '{s}')"));
    pair.both(&format!(
        "UPDATE grown SET name = '{s} more' WHERE name = '{s}' OR id = 9"
    ));
    pair.same_result("SELECT * FROM user ORDER BY id");
}

fn views_that_compute_are_refused(pair: &mut Pair) {
    let s = SECRET;
    for sql in [
        format!("REPLACE INTO grown (name) VALUES ('{s}')"),
        format!("UPDATE user, grown SET user.name = '{s}' WHERE user.id = grown.id"),
        "CREATE VIEW w AS SELECT DISTINCT name FROM user".into(),
        "CREATE VIEW w AS SELECT age, COUNT(*) AS n FROM user GROUP BY age".into(),
        "CREATE VIEW w AS SELECT UPPER(name) AS u FROM user".into(),
        "CREATE VIEW w AS SELECT MAX(age) AS m FROM user".into(),
        "CREATE VIEW w AS SELECT name FROM user UNION SELECT word FROM open".into(),
        "CREATE VIEW w AS SELECT a.name FROM user a JOIN user b ON a.id = b.id".into(),
        "CREATE VIEW w AS SELECT name FROM (SELECT * FROM user) t".into(),
        "CREATE VIEW w AS WITH c AS (SELECT name FROM user) SELECT * FROM c".into(),
        "CREATE VIEW w AS SELECT id, name FROM user WITH CHECK OPTION".into(),
    ] {
        refusal(&mut pair.protected, &sql);
        assert_eq!(pair.protected.must_fail("SELECT * FROM w"), 1146, "{sql}");
    }
}

/// What is left of a view without its table is met with errors, also by those who never saw it
/// whole.
fn a_view_without_its_table_is_an_error_to_everyone(pair: &mut Pair, second: &Proxy) {
    let s = SECRET;
    pair.both("CREATE TABLE gone LIKE user");
    pair.both("CREATE VIEW broken AS SELECT id, name FROM gone");
    pair.both("DROP TABLE gone");
    let mut fresh = second.connect_to("app");
    // what another proxy has made is seen within a second
    std::thread::sleep(std::time::Duration::from_millis(1200));
    for session in [&mut pair.protected, &mut fresh] {
        let sql = format!("SELECT id FROM broken WHERE name = '{s}'");
        assert!(session.run(&sql).is_err());
        assert!(session.run(&sql.replace("id FROM", "* FROM")).is_err());
        assert!(session.execute(sql.as_str(), ()).is_err());
    }
    pair.both("DROP VIEW broken");
}

pub fn views_that_are_made_at_the_server(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let mut direct = pair.behind.connect();
    direct.must("USE app");
    direct.must("CREATE VIEW sealed AS SELECT id, `note$enc` FROM user");
    direct.must("CREATE VIEW stars AS SELECT * FROM user");
    direct.must("CREATE VIEW renamed AS SELECT id, `name$enc` AS name FROM user");
    direct.must("CREATE VIEW digits AS SELECT id, HEX(`name$enc`) AS name FROM user");
    // cells know where they belong, so one without capabilities is as good as the table
    assert_eq!(
        pair.protected
            .text("SELECT note FROM sealed WHERE id = 1")
            .unwrap(),
        "first"
    );
    // companions are missing, a name is not the one that was authenticated: refused, in every form
    for view in ["stars", "renamed"] {
        for sql in [
            format!("SELECT * FROM {view}"),
            format!("SELECT id FROM {view} WHERE name = '{SECRET}'"),
            format!("INSERT INTO {view} (id, name) VALUES (9, '{SECRET}')"),
            format!("UPDATE {view} SET name = '{SECRET}'"),
        ] {
            let message = refusal(&mut pair.protected, &sql);
            assert!(message.contains("OS1101"), "{sql}: {message}");
        }
        pair.protected.must(&format!("DROP VIEW {view}"));
    }
    // what somebody computes of ciphertext is that: it shows nothing
    let text = pair
        .protected
        .text("SELECT name FROM digits WHERE id = 1")
        .unwrap();
    assert!(
        text.len() > 70 && text.bytes().all(|b| b.is_ascii_hexdigit()),
        "{text}"
    );
    pair.nothing_leaked();
}
