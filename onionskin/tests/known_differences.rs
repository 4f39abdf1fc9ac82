//! Why the differences in `differential/known.rs` stay: a plain server makes each of them by
//! itself, when it gets the statements that the proxy has to send.
//!
//! No proxy takes part. A test that fails says that a server has changed: then its entry may go.

use onionskin_testkit::*;

on_both_servers!(a_plain_server_makes_each_difference_itself);

fn a_plain_server_makes_each_difference_itself(kind: Kind) {
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let stories: &[fn(&mut Session)] = match kind {
        Kind::MariaDb => &[
            replace_counts_rows_by_their_bytes,
            one_row_is_told_of_by_its_warnings,
            an_update_is_told_of_by_the_optimizer,
            a_query_sees_what_is_impossible,
            a_key_spares_the_conversion,
        ],
        Kind::MySql => &[
            replace_counts_rows_by_their_bytes,
            one_row_is_told_of_by_its_warnings,
            rows_are_copied_for_a_check,
            definitions_warn_where_they_are_read,
            parameters_of_a_change_are_converted_first,
        ],
    };
    for story in stories {
        let mut plain = server.connect();
        plain.must("DROP DATABASE IF EXISTS plain");
        plain.must("CREATE DATABASE plain");
        plain.must("USE plain");
        story(&mut plain);
    }
}

/// REPLACED. The server compares the old row's bytes with the new one's. A sealed cell never has
/// the same bytes twice, so no text of the statement makes the server count one.
fn replace_counts_rows_by_their_bytes(plain: &mut Session) {
    plain.must("CREATE TABLE t (id INT PRIMARY KEY, cell VARBINARY(40))");
    let mut affected = |cell: &str| {
        let replace = format!("REPLACE INTO t VALUES (1, {cell})");
        plain.must(&replace).affected
    };
    assert_eq!(affected("x'01'"), 1);
    assert_eq!(affected("x'01'"), 1);
    assert_eq!(affected("x'02'"), 2);
    assert_eq!(affected("RANDOM_BYTES(30)"), 2);
}

/// SAYS_ONE_ROW. Under `sql_warnings`, the server writes its words if a row has warned. It is sent
/// cells, of which none warns.
fn one_row_is_told_of_by_its_warnings(plain: &mut Session) {
    plain.must("CREATE TABLE t (id INT PRIMARY KEY, n TINYINT, cell VARBINARY(40))");
    plain.must("SET sql_mode = '', sql_warnings = 1");
    let mut info = |sql: &str| {
        plain.must(sql);
        plain.conn().info_str().into_owned()
    };
    let warned = info("INSERT INTO t VALUES (1, 999, NULL)");
    assert!(warned.ends_with("Warnings: 1"), "{warned}");
    assert_eq!(info("INSERT INTO t VALUES (2, 99, x'01')"), "");
}

/// FINDS_NONE. Both find no row. The words are missing where the optimizer sees that.
fn an_update_is_told_of_by_the_optimizer(plain: &mut Session) {
    plain.must("CREATE TABLE t (id INT PRIMARY KEY, n INT, KEY (n))");
    plain.must("INSERT INTO t VALUES (1, 1)");
    let mut info = |condition: &str| {
        plain.must(&format!("UPDATE t SET n = 2 WHERE {condition}"));
        plain.conn().info_str().into_owned()
    };
    assert_eq!(info("n = 5 AND n = 6"), "");
    assert!(info("n = 5 AND n + 0 = 6").starts_with("Rows matched: 0"));
}

/// SEEN_TO_BE_IMPOSSIBLE. What changes rows converts the constant; what reads them does not.
fn a_query_sees_what_is_impossible(plain: &mut Session) {
    plain.must("CREATE TABLE t (id INT NOT NULL, c TEXT NOT NULL, n INT)");
    plain.must("INSERT INTO t VALUES (11, '0', 0)");
    let condition = "NOT (id > '12abc' OR c IS NOT NULL)";
    let read = plain.must(&format!("SELECT * FROM t WHERE {condition}"));
    assert_eq!(read.warnings, 0);
    let update = format!("UPDATE t SET n = 1 WHERE {condition}");
    assert_eq!(plain.must_fail(&update), 1292);
}

/// NO_ROW_TO_LOOK_AT. The constant is converted where there is a row to look at. Tokens narrow the
/// rows, as a key does.
fn a_key_spares_the_conversion(plain: &mut Session) {
    plain.must("CREATE TABLE t (id INT PRIMARY KEY, n INT, at DATETIME)");
    plain.must("INSERT INTO t VALUES (30, 1, '2020-01-31 10:11:12')");
    let update = "UPDATE t SET n = 2 WHERE at = '10000-01-01'";
    assert_eq!(plain.must_fail(&format!("{update} AND n = 5")), 1292);
    assert_eq!(plain.must_fail(&format!("{update} AND id = 30")), 1292);
    assert_eq!(plain.must(&format!("{update} AND id = 31")).warnings, 0);
}

/// COPIED. A protected column has a CHECK, for which MySQL copies the table.
fn rows_are_copied_for_a_check(plain: &mut Session) {
    plain.must("CREATE TABLE t (id INT PRIMARY KEY, d DATE)");
    plain.must("SET sql_mode = ''");
    plain.must("INSERT INTO t VALUES (1, '0000-00-00')");
    plain.must("SET sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE'");
    plain.must("ALTER TABLE t ADD n INT");
    let add = "ALTER TABLE t ADD cell VARBINARY(40) CHECK (LENGTH(cell) > 9)";
    assert_eq!(plain.must_fail(add), 1292);
    // a text that is no number is 0 for a row that is inserted, and an error for one that is copied
    plain.must("CREATE TABLE c (id INT PRIMARY KEY, n FLOAT NOT NULL, CHECK (n >= 'text'))");
    plain.must("INSERT IGNORE INTO c VALUES (1, 16777216)");
    plain.must("ALTER TABLE c ADD n2 INT");
    let add = "ALTER TABLE c ADD cell VARBINARY(40) CHECK (LENGTH(cell) > 9)";
    assert_eq!(plain.must_fail(add), 3819);
}

/// PREPARED_DEFINITION. The warning is one of PREPARE, not of EXECUTE. What a client prepares
/// has other columns here, so it is sent as a text.
fn definitions_warn_where_they_are_read(plain: &mut Session) {
    let create = "CREATE TEMPORARY TABLE t (n DECIMAL(5, 2) UNSIGNED)";
    let prepared = plain.execute(create, ()).expect("created");
    assert_eq!(prepared.warnings, 0);
    plain.must("DROP TEMPORARY TABLE t");
    assert_eq!(plain.must(create).warnings, 1);
}

/// NOT_SEEN. The change is not sent if the query before it finds no row, and the query does not
/// have the parameter.
fn parameters_of_a_change_are_converted_first(plain: &mut Session) {
    plain.must("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(9) COLLATE gbk_bin)");
    let failure = plain.execute("UPDATE t SET s = ? WHERE id = ?", ("É", 7));
    assert_eq!(failure.expect_err("no such character").code, 3988);
    let query = "SELECT id FROM t WHERE id = ? FOR UPDATE";
    assert_eq!(plain.execute_text(query, (7,)).expect("no row"), "");
}
