//! What cannot be migrated, and what is left of a migration that was given up.

use super::*;

pub fn what_cannot_be_migrated_is_refused_and_what_was_begun_is_cleaned_up(kind: Kind) {
    let Some(server) = start(kind) else { return };
    let mut session = server.connect();
    session.must("CREATE DATABASE app");
    session.must("USE app");
    session.must("CREATE TABLE parent (id INT PRIMARY KEY)");
    session.must("CREATE TABLE child (id INT PRIMARY KEY, p INT, CONSTRAINT fk FOREIGN KEY (p) REFERENCES parent (id))");
    session.must("CREATE TABLE keyless (id INT, UNIQUE KEY (id))");
    session.must("CREATE TABLE floats (f DOUBLE PRIMARY KEY)");
    session.must("CREATE TABLE other (id INT PRIMARY KEY) ENGINE=MyISAM");
    session.must("CREATE VIEW v AS SELECT 1 AS id");
    session.must("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), u INT, j JSON)");
    session.must("INSERT INTO t VALUES (1, 'long enough', 5, '1'), (2, 'x', 5, NULL)");
    let before = session.text("SHOW TABLES").unwrap();
    tables_that_cannot_be_followed_are_refused(&server);
    operations_that_cannot_be_done_are_refused(&server);
    assert_eq!(
        session.text("SHOW TABLES").unwrap(),
        before,
        "nothing was left behind"
    );
    a_definition_that_rows_do_not_fit_into_is_given_up(&server, &mut session, &before);
    a_postponed_switch_keeps_later_writes(&server, &mut session);
    statements_of_others_are_not_overlooked(&server, &mut session);
    neighbours_are_not_migrated_at_once(&server, &mut session);
    a_switch_that_cannot_be_is_tried_once(&server, &mut session);
    let shown = must_migrate(&server, None, &["app.t", "--rebuild", "--dry-run"]);
    assert!(
        shown.contains("CREATE TABLE `t_onionskin_new` LIKE `t`") && shown.contains("RENAME TABLE"),
        "{shown}"
    );
    assert_eq!(session.text("SHOW TABLES").unwrap(), before);
    session.must("SET GLOBAL binlog_row_image = 'MINIMAL'");
    let text = must_not_migrate(&server, None, &["app.t", "--rebuild"]);
    assert!(text.contains("binlog_row_image"), "{text}");
}

fn tables_that_cannot_be_followed_are_refused(server: &Server) {
    for (table, reason) in [
        ("keyless", "no primary or unique key"),
        ("floats", "no primary or unique key"),
        ("other", "MyISAM"),
        ("v", "VIEW"),
        ("nothing", "there is no table"),
    ] {
        let text = must_not_migrate(server, None, &[&format!("app.{table}"), "--rebuild"]);
        assert!(text.contains(reason), "{table}: {text}");
    }
}

fn operations_that_cannot_be_done_are_refused(server: &Server) {
    for (arguments, reason) in [
        (["--alter", "CHANGE v w INT"], "RENAME COLUMN"),
        (["--alter", "ADD COLUMN"], "making the new table"),
        (
            ["--alter", "ADD COLUMN p INT REFERENCES parent (id)"],
            "foreign keys",
        ),
        (
            ["--alter", "MODIFY id VARCHAR(20) NOT NULL"],
            "no primary or unique key",
        ),
        (["--encrypt", "v: eq"], "-c"),
        (["--encrypt", "v: sounds"], "no capability"),
        (["--decrypt", "v"], "not protected"),
        (["--add", "nope: eq"], "no column nope"),
        (["--threads", "0"], "1 to"),
    ] {
        let text = must_not_migrate(server, None, &["app.t", arguments[0], arguments[1]]);
        assert!(text.contains(reason), "{arguments:?}: {text}");
    }
    let proxy = Proxy::start(server, "");
    let text = must_not_migrate(server, Some(&proxy), &["app.t", "--encrypt", "id: eq"]);
    assert!(text.contains("no primary or unique key"), "{text}");
}

fn a_definition_that_rows_do_not_fit_into_is_given_up(
    server: &Server,
    session: &mut Session,
    before: &str,
) {
    for specification in ["ADD UNIQUE KEY (u)", "MODIFY v VARCHAR(5)"] {
        let text = must_not_migrate(server, None, &["app.t", "--alter", specification]);
        assert!(
            text.contains("does not take a row"),
            "{specification}: {text}"
        );
        let listed = must_migrate(server, None, &["--status"]);
        assert!(
            listed.contains("app.t ") && listed.contains(specification),
            "{listed}"
        );
        let again = must_not_migrate(server, None, &["app.t", "--rebuild"]);
        assert!(again.contains("--abort"), "{again}");
        must_migrate(server, None, &["app.t", "--abort"]);
        assert_eq!(session.text("SHOW TABLES").unwrap(), before);
    }
    let text = must_not_migrate(server, None, &["app.t", "--abort"]);
    assert!(text.contains("no migration of app.t has begun"), "{text}");
}

/// Everything is ready, writes go on, and --resume switches.
fn a_postponed_switch_keeps_later_writes(server: &Server, session: &mut Session) {
    let text = must_migrate(
        server,
        None,
        &[
            "app.t",
            "--alter",
            "ADD COLUMN w INT DEFAULT 3",
            "--cut-over",
            "postpone",
        ],
    );
    assert!(text.contains("--resume"), "{text}");
    session.must("INSERT INTO t VALUES (3, 'late', 6, NULL)");
    session.must("DELETE FROM t WHERE id = 1");
    must_migrate(server, None, &["app.t", "--resume", "--drop-old"]);
    assert_eq!(
        session.text("SELECT id, v, w FROM t ORDER BY id").unwrap(),
        "2\tx\t3\n3\tlate\t3"
    );
}

/// Neither somebody else's TRUNCATE, whatever stands before it, nor somebody else's ALTER.
fn statements_of_others_are_not_overlooked(server: &Server, session: &mut Session) {
    must_migrate(
        server,
        None,
        &["app.t", "--rebuild", "--cut-over", "postpone"],
    );
    session.must("/* app */ TRUNCATE TABLE t");
    let text = must_not_migrate(server, None, &["app.t", "--resume"]);
    assert!(text.contains("changed by another statement"), "{text}");
    must_migrate(server, None, &["app.t", "--abort"]);
    must_migrate(
        server,
        None,
        &["app.t", "--rebuild", "--cut-over", "postpone"],
    );
    session.must("ALTER TABLE t ADD COLUMN z INT");
    let text = must_not_migrate(server, None, &["app.t", "--resume"]);
    assert!(text.contains("changed by another statement"), "{text}");
    must_migrate(server, None, &["app.t", "--abort"]);
}

/// The switch of one of two tables that hang together by a foreign key changes the other's
/// definition, which would end the other's migration.
fn neighbours_are_not_migrated_at_once(server: &Server, session: &mut Session) {
    for (first, second) in [("child", "parent"), ("parent", "child")] {
        let (first, second) = (format!("app.{first}"), format!("app.{second}"));
        let postponed = [&*first, "--rebuild", "--cut-over", "postpone"];
        must_migrate(server, None, &postponed);
        for dry in [&[][..], &["--dry-run"]] {
            let arguments = [&[&*second, "--rebuild"], dry].concat();
            let text = must_not_migrate(server, None, &arguments);
            assert!(text.contains("is being migrated"), "{text}");
        }
        // nothing was made for the second, and the first goes on
        assert!(
            !session
                .text("SHOW TABLES")
                .unwrap()
                .contains(&format!("{}_onionskin", second.trim_start_matches("app.")))
        );
        must_migrate(server, None, &[&first, "--resume"]);
        let name = first.trim_start_matches("app.");
        session.must(&format!("DROP TABLE {name}_onionskin_old"));
        must_migrate(server, None, &[&second, "--rebuild", "--drop-old"]);
    }
}

/// A foreign key that cannot be made is the same at each attempt. Nobody waits for all of them.
fn a_switch_that_cannot_be_is_tried_once(server: &Server, session: &mut Session) {
    let postponed = ["app.child", "--rebuild", "--cut-over", "postpone"];
    must_migrate(server, None, &postponed);
    session.must("SET foreign_key_checks = 0");
    session.must("DROP TABLE parent");
    session.must("SET foreign_key_checks = 1");
    let begun = std::time::Instant::now();
    let text = must_not_migrate(server, None, &["app.child", "--resume"]);
    assert!(text.contains("cannot be switched"), "{text}");
    assert!(!text.contains("tried again"), "{text}");
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    session.must("CREATE TABLE parent (id INT PRIMARY KEY)");
    must_migrate(server, None, &["app.child", "--resume", "--drop-old"]);
    let shown = session.text("SHOW CREATE TABLE child").unwrap();
    assert!(shown.contains("REFERENCES `parent`"), "{shown}");
}
