//! Transactions that only read: what fails in them, whatever the proxy has asked in between.

use onionskin_testkit::*;

use super::TABLES;

/// A BEGIN ends the transaction before it. On MySQL, the next one only reads if that one did.
pub fn a_begin_within_one_that_only_reads(kind: Kind) {
    let Some(mut pair) = Pair::of(kind, false, &TABLES) else {
        return;
    };
    for (number, begin) in [
        "START TRANSACTION READ ONLY",
        "SET TRANSACTION READ ONLY",
        "START TRANSACTION READ WRITE",
    ]
    .into_iter()
    .enumerate()
    {
        // nobody has met it: it is looked up in the transaction
        let table = format!("fresh{number}");
        pair.same(&format!("CREATE TABLE {table} (id INT PRIMARY KEY, n INT)"));
        pair.same(begin);
        pair.same("START TRANSACTION");
        pair.same("START TRANSACTION");
        pair.same(&format!("UPDATE {table} SET n = 1"));
        pair.same("ROLLBACK");
        pair.same(&format!("UPDATE {table} SET n = 2"));
    }
}

/// MySQL says that the transaction only reads before it looks for the table.
pub fn a_change_fails_before_its_table_does(kind: Kind) {
    const TEMPORARY: &str = "CREATE TEMPORARY TABLE tmp (id INT PRIMARY KEY, n INT {range})";
    for lock in ["DO 1", "LOCK TABLES p WRITE, q WRITE"] {
        let Some(mut pair) = Pair::of(kind, false, &TABLES) else {
            return;
        };
        pair.same(lock);
        pair.same("SET TRANSACTION READ ONLY");
        assert!(!pair.same_if_done(TEMPORARY), "it is made, and not refused");
        for change in [
            "UPDATE tmp SET n = n + 1 WHERE id < 3",
            "INSERT INTO tmp VALUES (1, 5)",
            "DELETE FROM tmp WHERE n = 5",
        ] {
            pair.same(change);
            pair.same_if_done_with(change, &[]);
        }
        pair.same_or_refused("SELECT n FROM tmp WHERE id = 3");
        pair.same("UPDATE q SET plain = 1");
    }
}
