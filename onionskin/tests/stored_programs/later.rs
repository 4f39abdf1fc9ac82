//! What happens to programs when the columns that they name change afterwards.

use onionskin_testkit::*;

use super::{CHANGE, HOST, make, refused};

/// A program goes by names, as on any server. It fails where a name is gone, and stores nothing.
pub(super) fn columns_that_change_later(kind: Kind) {
    let Some(mut pair) = Pair::start(kind, &[HOST, CHANGE]) else {
        return;
    };
    make(
        &mut pair,
        &[
            "CREATE TRIGGER t AFTER INSERT ON host FOR EACH ROW INSERT INTO change_log (object, what) VALUES (NEW.id, NEW.note)",
            "CREATE PROCEDURE p(v VARCHAR(40)) UPDATE host SET note = v WHERE id = 1",
        ],
    );
    pair.both("INSERT INTO host (name, note) VALUES ('a', 'x')");
    pair.both("ALTER TABLE host RENAME COLUMN note TO remark");
    assert_eq!(
        pair.same_error("INSERT INTO host (name, remark) VALUES ('b', 'y')"),
        1054
    );
    assert_eq!(pair.same_error("CALL p('z')"), 1054);
    pair.both("ALTER TABLE host RENAME COLUMN remark TO note");
    pair.both("INSERT INTO host (name, note) VALUES ('b', 'y')");
    pair.run("CALL p('z')");
    pair.same_result("SELECT id, name, note FROM host ORDER BY id");
    pair.both("ALTER TABLE host DROP COLUMN note");
    assert_eq!(pair.same_error("CALL p('z')"), 1054);
    pair.run("DROP TRIGGER t");
    // the name comes back, for a protected column
    pair.protected
        .must("ALTER TABLE host ADD COLUMN note VARCHAR(40) ENCRYPTED FOR (EQ)");
    assert_eq!(pair.protected.must_fail("CALL p('z')"), 1054);
    let trigger = "CREATE TRIGGER t AFTER INSERT ON host FOR EACH ROW INSERT INTO change_log (object, what) VALUES (NEW.id, NEW.note)";
    refused(&mut pair.protected, trigger);
    pair.nothing_leaked();
}

/// `onionskin migrate` finds the programs that name a column which becomes protected, and those
/// that put rows into its table by place. What one still does afterwards fails.
pub(super) fn columns_that_become_protected(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut proxy = Proxy::start(&server, "");
    let mut session = proxy.connect();
    for sql in [
        "CREATE DATABASE app",
        "USE app",
        "CREATE TABLE host (id INT PRIMARY KEY, name VARCHAR(40) ENCRYPTED FOR (EQ), note VARCHAR(80), state INT)",
        "CREATE TABLE other (id INT PRIMARY KEY, n INT)",
        "INSERT INTO host VALUES (1, 'a', 'b', 0)",
        "CREATE TRIGGER t AFTER UPDATE ON host FOR EACH ROW INSERT INTO other (id, n) VALUES (NEW.id, LENGTH(NEW.note))",
    ] {
        session.must(sql);
    }
    let change = ["app.host", "--encrypt", "note: eq"];
    let text = must_not_migrate(&server, Some(&proxy), &change);
    assert!(text.contains("trigger t uses the column note"), "{text}");
    session.must("DROP TRIGGER t");
    // by place: made at the server, or before the table had a protected column
    let mut direct = server.connect();
    direct.must("USE app");
    for (kind, make, drop) in [
        (
            "routine",
            "CREATE PROCEDURE p(v VARCHAR(40)) INSERT INTO host VALUES (7, NULL, v, 1)",
            "DROP PROCEDURE p",
        ),
        (
            "routine",
            "CREATE PROCEDURE p(v VARCHAR(40)) BEGIN IF 1 THEN REPLACE LOW_PRIORITY INTO `app`.`HOST` SELECT 7, NULL, v, 1; END IF; END",
            "DROP PROCEDURE p",
        ),
        (
            "trigger",
            "CREATE TRIGGER u AFTER INSERT ON other FOR EACH ROW INSERT IGNORE host (SELECT 7, NULL, NEW.n, 1)",
            "DROP TRIGGER u",
        ),
        (
            "event",
            "CREATE EVENT e ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01' DO INSERT host () VALUES (7, NULL, 'x', 1)",
            "DROP EVENT e",
        ),
    ] {
        direct.must(make);
        let text = must_not_migrate(&server, Some(&proxy), &change);
        let told = format!("the {kind} app.");
        assert!(
            text.contains(&told) && text.contains("without a list of columns"),
            "{make}: {text}"
        );
        direct.must(drop);
    }
    session.must("CREATE PROCEDURE p(v VARCHAR(80)) BEGIN INSERT INTO host (id, note, state) VALUES (8, v, 1); END");
    session.must("CREATE PROCEDURE q() BEGIN INSERT INTO host (id, state) VALUES (9, 1); SELECT COUNT(*) FROM host; END");
    session.must("CALL p('x')");
    let text = must_migrate(
        &server,
        Some(&proxy),
        &[&change[..], &["--drop-old"]].concat(),
    );
    assert!(text.contains("the routine app.p names host"), "{text}");
    session.must("DELETE FROM host WHERE id = 8");
    assert_eq!(session.must_fail(&format!("CALL p('{SECRET}')")), 1054);
    assert_eq!(session.text("CALL q()").unwrap(), "2");
    assert_eq!(
        session
            .must("SELECT id, name, note FROM host ORDER BY id")
            .text()
            .lines()
            .count(),
        2
    );
    proxy.assert_healthy();
}
