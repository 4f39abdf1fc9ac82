//! Copies of tables.

use super::*;

pub fn copies_of_tables(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.both("CREATE TABLE twin LIKE user");
    pair.both("CREATE TABLE IF NOT EXISTS twin LIKE user");
    pair.both("CREATE TABLE app.third (LIKE app.twin)");
    assert_eq!(pair.same_error("CREATE TABLE twin LIKE user"), 1050);
    for table in ["user", "twin", "third"] {
        pair.same_result_of_text(&format!("SHOW CREATE TABLE {table}"));
        pair.same_result_of_text(&format!("SHOW FULL COLUMNS FROM {table}"));
    }
    pair.both(&format!(
        "INSERT INTO twin (name, age, note) VALUES ('{SECRET} x', 5, '{SECRET}'), ('y', 6, NULL)"
    ));
    pair.same_result(&format!(
        "SELECT id, age FROM twin WHERE name = '{SECRET} X'"
    ));
    pair.same_result("SELECT COUNT(*) FROM user");
    // it is a protected column like any other
    pair.both("ALTER TABLE twin DROP COLUMN note");
    // a new name of a protected column makes a copy, whose rows are counted
    pair.plain
        .must("ALTER TABLE twin RENAME COLUMN age TO years");
    pair.protected
        .must("ALTER TABLE twin RENAME COLUMN age TO years");
    pair.same_result("SELECT name, years FROM twin ORDER BY years");
    pair.both("RENAME TABLE twin TO twin2, third TO app.third2");
    pair.same_result("SELECT name FROM twin2 ORDER BY years");
    pair.both("TRUNCATE TABLE twin2");
    pair.same_result("SELECT COUNT(*) FROM twin2");
    pair.both("DROP TABLE twin2, third2");
    assert_eq!(pair.same_error("SELECT name FROM twin2"), 1146);
    // keys of its own: cells of one do not open in the other
    pair.protected.must("CREATE TABLE other LIKE user");
    let mut direct = pair.behind.connect();
    direct.must("USE app");
    let ids = "SELECT COUNT(DISTINCT SUBSTRING_INDEX(SUBSTRING_INDEX(COLUMN_COMMENT, '|', 4), '|', -2)) FROM information_schema.COLUMNS \
         WHERE TABLE_NAME IN ('user', 'other') AND COLUMN_NAME = 'note$enc'";
    assert_eq!(direct.text(ids).unwrap(), "2");
    for sql in [
        "CREATE TABLE z AS SELECT * FROM user",
        "CREATE TABLE z SELECT name FROM user",
        "CREATE TEMPORARY TABLE z AS SELECT note FROM user",
    ] {
        refusal(&mut pair.protected, sql);
        assert_eq!(pair.protected.must_fail("SELECT * FROM z"), 1146, "{sql}");
    }
    pair.nothing_leaked();
}

/// What a session's character set has no letters for is shown as question marks: that must not
/// become a default.
pub fn copies_keep_every_byte_of_a_default(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let (protected, plain) = with_and_without_protection(
        "CREATE TABLE bytes (id INT PRIMARY KEY, name VARCHAR(20) {eq}, b VARBINARY(20) DEFAULT x'80ff', \
         t VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'Ωé')",
    );
    pair.plain.must(&plain);
    pair.protected.must(&protected);
    let mut made = 0;
    for (n, names) in ["utf8mb4", "utf8", "latin1", "binary"]
        .into_iter()
        .enumerate()
    {
        pair.both(&format!("SET NAMES {names}"));
        let copy = format!("CREATE TABLE copy{n} LIKE bytes");
        let done = pair.protected.run(&copy);
        pair.both("SET NAMES utf8mb4");
        if let Err(refused) = done {
            assert!(refused.to_string().contains("OS10"), "{names}: {refused}");
            continue;
        }
        made += 1;
        pair.plain.must(&copy);
        pair.both(&format!("INSERT INTO copy{n} (id) VALUES (1)"));
        pair.same_result(&format!("SELECT HEX(b), HEX(t) FROM copy{n}"));
    }
    if kind == Kind::MySql {
        assert!(made > 0);
    }
}
