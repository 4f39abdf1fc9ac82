//! What a migration says of rows that the new table does not take.

use onionskin_testkit::*;

use onionskin_keys::KeySet;

on_both_servers!(
    both_rows_of_a_conflict_are_shown,
    sealed_values_are_not_shown,
);

fn both_rows_of_a_conflict_are_shown(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    session.must("USE app");
    session.must(
        "CREATE TABLE t (name VARCHAR(10) CHARACTER SET latin1, day DATE, email VARCHAR(50), note TEXT, b BLOB, \
         j JSON, bits BIT(4), PRIMARY KEY (name, day)) DEFAULT CHARSET=utf8mb4",
    );
    session.must("INSERT INTO t VALUES ('Zoë', '2020-01-01', 'a@x', REPEAT('long ', 100), x'00ff', '[1]', b'101')");
    session.must("INSERT INTO t VALUES ('ann', '2020-01-02', 'b@x', NULL, NULL, NULL, NULL)");
    session.must("INSERT INTO t VALUES ('bob', '2020-01-03', 'A@X', 'it''s\nme', '', NULL, NULL)");
    let unique = ["app.t", "--alter", "ADD UNIQUE (email)"];
    let shown = [
        format!(
            "(name = 'Zoë', day = 2020-01-01, email = 'a@x', note = '{}…', b = 0x00FF, j = '[1]', bits = 5)",
            "long ".repeat(8)
        ),
        r"(name = 'bob', day = 2020-01-03, email = 'A@X', note = 'it\'s\nme', b = 0x, j = NULL, bits = NULL)".into(),
    ];
    // Both are there when the rows are copied.
    let text = must_not_migrate(&server, None, &unique);
    assert!(
        text.contains("does not take a row of the old one"),
        "{text}"
    );
    assert!(shown.iter().all(|row| text.contains(row)), "{text}");
    assert!(!text.contains("b@x"), "{text}");
    must_migrate(&server, None, &["app.t", "--abort"]);

    // One comes as a change.
    session.must("UPDATE t SET email = 'c@x' WHERE name = 'bob'");
    let postponed = [&unique[..], &["--cut-over", "postpone"]].concat();
    must_migrate(&server, None, &postponed);
    session.must("UPDATE t SET email = 'A@X' WHERE name = 'bob'");
    let text = must_not_migrate(&server, None, &["app.t", "--resume"]);
    assert!(shown.iter().all(|row| text.contains(row)), "{text}");
    must_migrate(&server, None, &["app.t", "--abort"]);
    assert_eq!(session.text("SELECT COUNT(*) FROM t").unwrap(), "3");
    assert_eq!(session.text("SHOW TABLES").unwrap(), "t");
}

fn sealed_values_are_not_shown(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    if direct_mode() {
        return;
    }
    let proxy = Proxy::start(&server, "");
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    session.must("USE app");
    session.must("CREATE TABLE t (id INT PRIMARY KEY, n INT, secret VARCHAR(50))");
    session.must("INSERT INTO t VALUES (1, 5, 'canary one'), (2, 6, 'canary two')");
    let postpone = |what: &[&str]| {
        let arguments = [&["app.t"][..], what, &["--cut-over", "postpone"]].concat();
        must_migrate(&server, Some(&proxy), &arguments)
    };
    let assert_sealed = |text: &str| {
        for row in [
            "(id = 1, n = 5, secret = <sealed>)",
            "(id = 3, n = 5, secret = <sealed>)",
        ] {
            assert!(text.contains(row), "{row}: {text}");
        }
        assert!(!text.contains("canary"), "{text}");
    };

    postpone(&["--encrypt", "secret: eq"]);
    session.must("ALTER TABLE t_onionskin_new ADD UNIQUE (n)");
    session.must("INSERT INTO t VALUES (3, 5, 'canary three')");
    let resume = ["app.t", "--resume"];
    let text = must_not_migrate(&server, Some(&proxy), &resume);
    assert!(text.contains("a key or an option is another one"), "{text}");
    note_new_table(&mut session, &proxy);
    let text = must_not_migrate(&server, Some(&proxy), &resume);
    assert_sealed(&text);
    must_migrate(&server, Some(&proxy), &["app.t", "--abort"]);

    // The server's own words would tell the value that both have.
    let encrypt = ["app.t", "--encrypt", "secret: eq", "--drop-old"];
    must_migrate(&server, Some(&proxy), &encrypt);
    let mut through = proxy.connect_to("app");
    postpone(&["--decrypt", "secret"]);
    session.must("ALTER TABLE t_onionskin_new ADD UNIQUE (secret)");
    through.must("UPDATE t SET secret = 'canary one' WHERE id = 3");
    note_new_table(&mut session, &proxy);
    let resume = [&resume[..], &["--decrypt", "secret"]].concat();
    let text = must_not_migrate(&server, Some(&proxy), &resume);
    assert!(text.contains("Duplicate entry for key"), "{text}");
    assert_sealed(&text);
    must_migrate(&server, Some(&proxy), &["app.t", "--abort"]);
    assert_eq!(
        through
            .text("SELECT COUNT(*) FROM t WHERE secret = 'canary one'")
            .unwrap(),
        "2"
    );
}

/// Notes the new table in the checkpoint as it is, as if it had been made so: by itself, a
/// migration never makes one that is more unique.
fn note_new_table(session: &mut Session, proxy: &Proxy) {
    let shown = session.must("SHOW CREATE TABLE t_onionskin_new");
    let ::mysql::Value::Bytes(text) = &shown.sets[0].rows[0][1] else {
        panic!("{shown:?}");
    };
    let text = String::from_utf8(text.clone()).expect("UTF-8");
    let rest = text
        .strip_prefix("CREATE TABLE `t_onionskin_new` (")
        .expect("a table");
    let tagged = [
        b"onionskin imprint 1 definition\0",
        &(rest.len() as u64).to_be_bytes()[..],
        rest.as_bytes(),
    ];
    let keys = KeySet::load("file:keys.json", proxy.folder(), None).expect("the proxy's keys");
    let tag = keys.metadata_key().tag(&tagged.concat());
    let tag: String = tag.iter().map(|byte| format!("{byte:02x}")).collect();
    let state = format!("JSON_SET(state, '$.made.definition', '{tag}')");
    set_state(session, proxy, &state);
}
