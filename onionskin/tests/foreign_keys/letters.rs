//! Keys whose new value differs from the present one in nothing that its token shows, and what
//! IGNORE would skip: the server alone would leave undone what a foreign key says.

use super::*;

fn is_refused(pair: &mut Pair, sql: &str) {
    let said = pair.protected.run(sql).map(|_| sql.to_owned());
    let said = said.unwrap_err().to_string();
    assert!(said.contains("OS1027"), "{sql}\n{said}");
}

const CONTENTS: [&str; 2] = ["SELECT * FROM r ORDER BY id", "SELECT * FROM d ORDER BY id"];

/// Whatever the key says, and however the row is written.
pub fn other_letters_of_a_referenced_key_are_refused(kind: Kind) {
    for actions in [
        "",
        "ON DELETE CASCADE",
        "ON UPDATE CASCADE ON DELETE SET NULL",
    ] {
        let Some(mut pair) = pair(kind, EVERYTHING) else {
            return;
        };
        same(
            &mut pair,
            &[
                "CREATE TABLE r (id INT PRIMARY KEY, k VARCHAR(20) UNIQUE, n INT)",
                &format!(
                    "CREATE TABLE d (id INT PRIMARY KEY, k VARCHAR(20), FOREIGN KEY (k) REFERENCES r (k) {actions})"
                ),
                "INSERT INTO r VALUES (1, 'a', 1), (2, 'b', 2), (3, 'free', 3)",
                "INSERT INTO d VALUES (1, 'a'), (2, 'b')",
            ],
        );
        for sql in [
            "UPDATE r SET k = 'A' WHERE id = 1",
            "UPDATE r SET k = 'A', n = 5 WHERE id = 1",
            "INSERT INTO r VALUES (1, 'x', 1) ON DUPLICATE KEY UPDATE k = 'A'",
            "INSERT INTO r VALUES (9, 'B', 1), (8, 'A', 1) ON DUPLICATE KEY UPDATE k = VALUES(k)",
            "REPLACE INTO r VALUES (2, 'B', 9)",
        ] {
            is_refused(&mut pair, sql);
        }
        let prepared = "UPDATE r SET k = ? WHERE id = ?";
        let said = pair.protected.execute(prepared, ("A", 1));
        assert!(said.unwrap_err().to_string().contains("OS1027"));
        // whatever the session's settings do to questions of the proxy's
        for set in [
            "SET sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')",
            "SET sql_select_limit = 0",
        ] {
            same(&mut pair, &[set]);
            is_refused(&mut pair, "UPDATE r SET k = 'A' WHERE id = 1");
            same(
                &mut pair,
                &["SET sql_mode = DEFAULT, sql_select_limit = DEFAULT"],
            );
        }
        // what changes no letter, or the whole key, goes on
        same(
            &mut pair,
            &[
                "UPDATE r SET k = 'a', n = 7 WHERE id = 1",
                "INSERT INTO r VALUES (1, 'a', 8) ON DUPLICATE KEY UPDATE k = VALUES(k), n = VALUES(n)",
                "UPDATE r SET k = 'other' WHERE id = 3",
                "INSERT INTO r VALUES (4, 'new', 4) ON DUPLICATE KEY UPDATE k = VALUES(k)",
                "REPLACE INTO r VALUES (4, 'newer', 4)",
            ],
        );
        same(&mut pair, &CONTENTS);
    }
}

/// A row that came after the transaction's snapshot is changed all the same.
pub fn a_snapshot_does_not_hide_a_referenced_key(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(
        &mut pair,
        &[
            "CREATE TABLE r (id INT PRIMARY KEY, k VARCHAR(20) UNIQUE)",
            "CREATE TABLE d (id INT PRIMARY KEY, k VARCHAR(20), FOREIGN KEY (k) REFERENCES r (k))",
            "BEGIN",
            "SELECT COUNT(*) FROM r",
        ],
    );
    let mut other = pair.proxy.connect_to("app");
    other.must("INSERT INTO r VALUES (1, 'a')");
    other.must("INSERT INTO d VALUES (1, 'a')");
    is_refused(&mut pair, "UPDATE r SET k = 'A' WHERE id = 1");
    is_refused(
        &mut pair,
        "INSERT INTO r VALUES (1, 'A') ON DUPLICATE KEY UPDATE k = VALUES(k)",
    );
}

/// A key that another session adds counts for the next statement.
pub fn a_key_that_comes_later_counts_at_once(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(
        &mut pair,
        &[
            "CREATE TABLE r (id INT PRIMARY KEY, k VARCHAR(20) UNIQUE)",
            "CREATE TABLE d (id INT PRIMARY KEY, k VARCHAR(20), CONSTRAINT only FOREIGN KEY (k) REFERENCES r (k))",
            "ALTER TABLE d DROP FOREIGN KEY only",
            "INSERT INTO r VALUES (1, 'a')",
            "INSERT INTO d VALUES (1, 'a')",
            "UPDATE r SET k = 'A' WHERE id = 1",
            "UPDATE r SET k = 'a' WHERE id = 1",
        ],
    );
    let mut other = pair.proxy.connect_to("app");
    other.must("ALTER TABLE d ADD FOREIGN KEY (k) REFERENCES r (k) ON UPDATE CASCADE");
    is_refused(&mut pair, "UPDATE r SET k = 'A' WHERE id = 1");
}

/// Views call the columns otherwise.
pub fn views_do_not_hide_a_referenced_key(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(
        &mut pair,
        &[
            "CREATE TABLE r (id INT PRIMARY KEY, k VARCHAR(20) UNIQUE)",
            "CREATE TABLE d (id INT PRIMARY KEY, k VARCHAR(20), \
             FOREIGN KEY (k) REFERENCES r (k) ON UPDATE CASCADE ON DELETE SET NULL)",
            "CREATE VIEW v AS SELECT id, k AS kk FROM r",
            "INSERT INTO r VALUES (1, 'a'), (2, 'b')",
            "INSERT INTO d VALUES (1, 'a')",
        ],
    );
    is_refused(&mut pair, "UPDATE v SET kk = 'A' WHERE id = 1");
    is_refused(&mut pair, "DELETE IGNORE FROM v WHERE id = 1");
    same(&mut pair, &CONTENTS);
}

/// The row that a plain table's key deletes may be one to which a protected key refers.
pub fn ignore_is_refused_behind_another_cascade(kind: Kind) {
    let Some(mut pair) = pair(kind, EVERYTHING) else {
        return;
    };
    same(
        &mut pair,
        &[
            "CREATE TABLE orgs (id INT PRIMARY KEY)",
            "CREATE TABLE r (id INT PRIMARY KEY, k VARCHAR(20) UNIQUE, org INT, \
             FOREIGN KEY (org) REFERENCES orgs (id) ON DELETE CASCADE)",
            "CREATE TABLE d (id INT PRIMARY KEY, k VARCHAR(20), FOREIGN KEY (k) REFERENCES r (k) ON DELETE SET NULL)",
            "CREATE VIEW v AS SELECT id FROM orgs",
            "INSERT INTO orgs VALUES (1), (2)",
            "INSERT INTO r VALUES (1, 'a', 1)",
            "INSERT INTO d VALUES (1, 'a')",
        ],
    );
    for sql in [
        "DELETE IGNORE FROM orgs WHERE id = 1",
        "DELETE IGNORE FROM v WHERE id = 1",
        "DELETE FROM orgs WHERE id = 1",
    ] {
        // as a relayed statement whose plan is at hand, too
        is_refused(&mut pair, sql);
        is_refused(&mut pair, sql);
    }
    // prepared, by protocol and by name
    let said = pair
        .protected
        .execute("DELETE IGNORE FROM orgs WHERE id = ?", (1,));
    let said = said.map(|_| "deleted").unwrap_err().to_string();
    assert!(said.contains("OS1027"), "{said}");
    is_refused(
        &mut pair,
        "PREPARE gone FROM 'DELETE IGNORE FROM orgs WHERE id = 1'",
    );
    same(
        &mut pair,
        &["DELETE FROM orgs WHERE id = 2", "SELECT * FROM orgs"],
    );
    same(&mut pair, &CONTENTS);
}
