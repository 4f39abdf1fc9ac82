//! Triggers, procedures, functions and events that name protected tables: those that stay with
//! plain columns do what they do on a plain server, whatever the proxy makes of the statements that
//! set them off. All others are refused before the server sees them.

#[path = "stored_programs/later.rs"]
mod later;

use later::{columns_that_become_protected, columns_that_change_later};
use onionskin_testkit::*;

on_both_servers!(
    changes_are_written_down,
    audits_by_procedures,
    procedures_that_hand_out_addresses,
    functions_and_events,
    errors_of_triggers_undo_the_statement,
    what_does_more_is_refused,
    programs_of_other_databases,
    dumps_and_settings,
    what_servers_of_one_family_have,
    columns_that_change_later,
    columns_that_become_protected,
);

const HOST: &str = "CREATE TABLE host (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) NOT NULL {eq, range}, upper_name VARCHAR(40) {}, \
     load_of INT {eq, range}, state INT NOT NULL DEFAULT 0, note VARCHAR(40), UNIQUE KEY (name)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci";
const CHANGE: &str = "CREATE TABLE change_log (no INT PRIMARY KEY AUTO_INCREMENT, kind INT, object INT, what VARCHAR(20), clock INT)";
const WRITTEN: &str = "SELECT no, kind, object, what FROM change_log ORDER BY no";

fn pair(kind: Kind) -> Option<Pair> {
    Pair::start(kind, &[HOST, CHANGE])
}

/// Makes programs on both.
fn make(pair: &mut Pair, programs: &[&str]) {
    for sql in programs {
        pair.plain.must(sql);
        pair.protected.must(sql);
    }
}

/// Each is refused, with a code of ours.
fn refused(session: &mut Session, sql: &str) {
    let failure = session.run(sql).expect_err(sql);
    assert!(failure.message.starts_with("OS10"), "{sql}\n→ {failure}");
}

/// As a monitoring server keeps a log of what has changed.
fn changes_are_written_down(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    make(
        &mut pair,
        &[
            "create trigger host_insert after insert on host for each row insert into change_log (kind,object,what,clock) values (1,new.id,'insert',unix_timestamp())",
            "create trigger host_update after update on host for each row insert into change_log (kind,object,what,clock) values (1,old.id,'update',unix_timestamp())",
            "create trigger host_delete before delete on host for each row insert into change_log (kind,object,what,clock) values (1,old.id,'delete',unix_timestamp())",
            "CREATE TRIGGER host_state BEFORE UPDATE ON host FOR EACH ROW SET NEW.note = CONCAT('was ', OLD.state)",
        ],
    );
    for sql in [
        "INSERT INTO host (name, state) VALUES ('Hb4YqMz7 a', 1), ('Hb4YqMz7 b', 2), ('Hb4YqMz7 c', 3)",
        "INSERT INTO host (name, load_of) VALUES ('d', 4)",
        // found by a token, by an order, by a plain column
        "UPDATE host SET state = 7 WHERE name = 'Hb4YqMz7 A'",
        "UPDATE host SET name = 'Hb4YqMz7 z' WHERE name = 'Hb4YqMz7 b'",
        "UPDATE host SET upper_name = 'x', state = state + 1 WHERE name > 'a' ORDER BY id",
        // row by row, and on the scratch engine
        "UPDATE host SET load_of = 5 WHERE id = 1",
        "UPDATE host SET load_of = load_of + 1 WHERE load_of IS NOT NULL ORDER BY id",
        "UPDATE host SET upper_name = UPPER(name) WHERE id < 4",
        // rows that are met
        "INSERT INTO host (id, name, state) VALUES (1, 'p', 1) ON DUPLICATE KEY UPDATE state = state + 1",
        "INSERT INTO host (id, name) VALUES (2, 'q') ON DUPLICATE KEY UPDATE name = VALUES(name), load_of = 9",
        "INSERT INTO host (id, name, load_of) VALUES (2, 'q', 3) ON DUPLICATE KEY UPDATE load_of = load_of + VALUES(load_of)",
        "INSERT IGNORE INTO host (name) VALUES ('Q'), ('r')",
        "REPLACE INTO host (id, name) VALUES (3, 's')",
        "REPLACE INTO host (name, state) VALUES ('S', 3)",
        "INSERT INTO host (name, upper_name) SELECT CONCAT(name, '2'), UPPER(name) FROM host WHERE id < 3",
        "DELETE FROM host WHERE name = 'r'",
        "DELETE FROM host WHERE load_of > 11",
        "DELETE FROM host WHERE CONCAT(name, '') = 'q2'",
    ] {
        pair.run(sql);
        assert_eq!(
            pair.plain.text("SELECT LAST_INSERT_ID()").unwrap(),
            pair.protected.text("SELECT LAST_INSERT_ID()").unwrap(),
            "{sql}"
        );
        let [plain, protected] = pair.sessions().map(|s| s.must(WRITTEN).text());
        assert_eq!(plain, protected, "{sql}");
    }
    pair.same_result("SELECT id, name, upper_name, load_of, state, note FROM host ORDER BY id");
    if kind == Kind::MariaDb {
        pair.same_result_of_text(
            "INSERT INTO host (id, name) VALUES (70, 't') RETURNING id, name, state, note",
        );
        pair.same_result_of_text("DELETE FROM host WHERE id > 60 RETURNING id, name, note");
    }
    // prepared
    for session in pair.sessions() {
        session
            .execute(
                "UPDATE host SET name = ?, state = ? WHERE id = ?",
                ("u", 8, 1),
            )
            .unwrap();
    }
    pair.same_result(WRITTEN);
    pair.same_result("SELECT * FROM host ORDER BY id");
    // what shows them
    pair.same_result("SELECT trigger_name, event_manipulation, action_statement FROM information_schema.triggers WHERE trigger_schema = 'app' ORDER BY 1");
    for session in pair.sessions() {
        let shown = session.must("SHOW CREATE TRIGGER host_state").text();
        assert!(
            shown.contains("SET NEW.note = CONCAT('was ', OLD.state)"),
            "{shown}"
        );
    }
    pair.both("DROP TRIGGER host_update");
    pair.nothing_leaked();
}

/// As a server for addresses has them: triggers call procedures, which call others.
fn audits_by_procedures(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    make(
        &mut pair,
        &[
            "CREATE TABLE revision (id INT PRIMARY KEY AUTO_INCREMENT, tag VARCHAR(20), message VARCHAR(80))",
            "CREATE TABLE audit (id INT PRIMARY KEY AUTO_INCREMENT, object VARCHAR(20), object_id INT, revision_id INT)",
            "CREATE PROCEDURE begin_revision(IN server_tag VARCHAR(20), IN why TEXT, IN cascade_of TINYINT(1)) \
             BEGIN DECLARE found_id INT(20); \
               IF @audit_off IS NULL OR @audit_off = 0 THEN \
                 SET @cascade_of = cascade_of; \
                 SELECT MAX(id) INTO found_id FROM host WHERE note = server_tag; \
                 INSERT INTO revision (tag, message) VALUES (server_tag, CONCAT(why, ' ', IFNULL(found_id, 0))); \
                 SET @revision = LAST_INSERT_ID(); \
               END IF; \
             END",
            "CREATE PROCEDURE add_entry(IN object_of VARCHAR(20), IN id_of INT) \
             BEGIN \
               IF @audit_off IS NULL OR @audit_off = 0 THEN \
                 IF @revision IS NULL THEN \
                   SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no revision'; \
                 END IF; \
                 INSERT INTO audit (object, object_id, revision_id) VALUES (object_of, id_of, @revision); \
                 UPDATE host SET state = state + 1 WHERE note = 'counts' AND id <> id_of; \
               END IF; \
             END",
            "CREATE TRIGGER log_insert AFTER INSERT ON change_log FOR EACH ROW BEGIN CALL add_entry('change', NEW.no); END",
            "CREATE TRIGGER host_before BEFORE DELETE ON host FOR EACH ROW \
             BEGIN IF OLD.state > 5 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'in use'; END IF; \
               DELETE FROM change_log WHERE object = OLD.id; END",
        ],
    );
    pair.both("INSERT INTO host (name, note) VALUES ('Hb4YqMz7', 'counts'), ('b', 'all')");
    assert_eq!(
        pair.same_error("INSERT INTO change_log (object) VALUES (1)"),
        1644
    );
    for sql in [
        "CALL begin_revision('all', 'first', 0)",
        "INSERT INTO change_log (object, what) VALUES (1, 'x'), (2, 'y')",
        "SET @audit_off = 1",
        "INSERT INTO change_log (object, what) VALUES (1, 'z')",
        "SET @audit_off = 0",
        "UPDATE host SET state = 6 WHERE id = 2",
    ] {
        pair.run(sql);
    }
    assert_eq!(pair.same_error("DELETE FROM host WHERE name = 'b'"), 1644);
    pair.both("DELETE FROM host WHERE name = 'hb4yqmz7'");
    for sql in [
        "SELECT id, tag, message FROM revision",
        "SELECT object, object_id, revision_id FROM audit ORDER BY id",
        "SELECT no, object, what FROM change_log ORDER BY no",
        "SELECT id, name, state, note FROM host ORDER BY id",
        "SELECT @revision, @cascade_of",
    ] {
        pair.same_result(sql);
    }
    pair.nothing_leaked();
}

/// As a server for logins has them: many statements, a transaction, handlers, and a result.
fn procedures_that_hand_out_addresses(kind: Kind) {
    let pool = "CREATE TABLE pool (id INT PRIMARY KEY AUTO_INCREMENT, pool_name VARCHAR(20) NOT NULL, address VARCHAR(15) NOT NULL DEFAULT '', \
         gateway VARCHAR(20) NOT NULL DEFAULT '', ends INT NOT NULL DEFAULT 0, user_name VARCHAR(40) {eq}, KEY (pool_name, ends))";
    let Some(mut pair) = Pair::start(kind, &[pool]) else {
        return;
    };
    make(
        &mut pair,
        &[
            "CREATE PROCEDURE hand_out(IN v_pool VARCHAR(64), IN v_gateway VARCHAR(20), IN v_seconds INT)\n\
             proc: BEGIN\n\
               DECLARE r_address VARCHAR(15) DEFAULT NULL;\n\
               DECLARE r_id, n INT;\n\
               DECLARE EXIT HANDLER FOR SQLEXCEPTION\n\
               BEGIN\n\
                 ROLLBACK;\n\
                 RESIGNAL;\n\
               END;\n\
               START TRANSACTION;\n\
               -- one that it had\n\
               SELECT id, address INTO r_id, r_address FROM pool\n\
                 WHERE pool_name = v_pool AND gateway = v_gateway ORDER BY ends LIMIT 1 FOR UPDATE;\n\
               IF r_address IS NULL THEN\n\
                 SELECT p.id, p.address INTO r_id, r_address FROM pool p\n\
                   WHERE p.pool_name = v_pool AND p.ends < 100 ORDER BY p.ends, p.id LIMIT 1 FOR UPDATE;\n\
               END IF;\n\
               IF r_address IS NULL THEN\n\
                 COMMIT;\n\
                 SELECT 'none' AS address;\n\
                 LEAVE proc;\n\
               END IF;\n\
               UPDATE pool SET gateway = v_gateway, ends = 100 + v_seconds * 2 WHERE id = r_id;\n\
               COMMIT;\n\
               SELECT COUNT(*) INTO n FROM pool WHERE ends > 100;\n\
               SELECT r_address AS address, n AS busy;\n\
             END",
            "CREATE PROCEDURE each_pool(OUT total INT, INOUT found TEXT) READS SQL DATA \
             BEGIN DECLARE done BOOL DEFAULT FALSE; DECLARE one VARCHAR(20); DECLARE m INT DEFAULT 0; \
               DECLARE names_of CURSOR FOR SELECT DISTINCT pool_name FROM pool ORDER BY pool_name; \
               DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = TRUE; \
               SET total = 0; OPEN names_of; \
               each_name: LOOP FETCH names_of INTO one; IF done THEN LEAVE each_name; END IF; \
                 SET total = total + 1, found = CONCAT(found, one, CASE WHEN total > 1 THEN '.' ELSE ',' END); \
               END LOOP each_name; CLOSE names_of; \
               WHILE m < 3 DO SET m = m + 1; ITERATE_ME: BEGIN END; END WHILE; \
               REPEAT SET m = m - 1; UNTIL m <= 0 END REPEAT; \
               CASE total WHEN 0 THEN SET total = -1; ELSE BEGIN END; END CASE; END",
        ],
    );
    pair.both("INSERT INTO pool (pool_name, address, user_name) VALUES ('a', '10.0.0.1', 'Hb4YqMz7'), ('a', '10.0.0.2', NULL), ('b', '10.0.1.1', 'x')");
    for call in [
        "CALL hand_out('a', 'g1', 5)",
        "CALL hand_out('a', 'g2', 5)",
        "CALL hand_out('a', 'g1', 9)",
        "CALL hand_out('a', 'g3', 5)",
        "CALL hand_out('b', 'g3', 5)",
    ] {
        pair.same_result_of_text(call);
    }
    pair.run("SET @names = ':'");
    pair.run("CALL each_pool(@total, @names)");
    pair.same_result("SELECT @total, @names");
    pair.same_result(
        "SELECT id, pool_name, address, gateway, ends, user_name FROM pool ORDER BY id",
    );
    pair.same_result("SELECT routine_name, routine_definition FROM information_schema.routines WHERE routine_schema = 'app' ORDER BY 1");
    pair.nothing_leaked();
}

fn functions_and_events(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    make(
        &mut pair,
        &[
            "CREATE FUNCTION hosts_of(s INT) RETURNS INT READS SQL DATA RETURN (SELECT COUNT(*) FROM host WHERE state = s)",
            "CREATE EVENT sweep ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01' ON COMPLETION PRESERVE DO DELETE FROM host WHERE state < 0",
            "CREATE EVENT soon ON SCHEDULE AT '2037-01-01 00:00:00' DO BEGIN UPDATE host SET note = 'x' WHERE id = 1; INSERT INTO change_log (kind) SELECT state FROM host; END",
        ],
    );
    // rows that leave protected columns out
    pair.create("CREATE TABLE free (id INT PRIMARY KEY AUTO_INCREMENT, n INT, t VARCHAR(20) {eq}, u VARCHAR(20) DEFAULT NULL {})");
    make(
        &mut pair,
        &[
            "CREATE PROCEDURE copies() INSERT INTO free (n) SELECT state * 2 FROM host WHERE state > 0",
        ],
    );
    pair.both("INSERT INTO host (name, state) VALUES ('a', 1), ('Hb4YqMz7', 1), ('c', 2)");
    pair.same_result("SELECT hosts_of(1), hosts_of(2), hosts_of(3)");
    pair.same_result("SELECT name FROM host WHERE name > 'a' AND state = hosts_of(2) ORDER BY id");
    pair.run("CALL copies()");
    pair.same_result("SELECT id, n, t, u FROM free ORDER BY id");
    pair.same_result("SELECT id FROM free WHERE t IS NULL AND u IS NULL");
    pair.both("UPDATE free SET t = 'x' WHERE t IS NULL");
    pair.same_result("SELECT id, n, t, u FROM free WHERE t = 'X' ORDER BY id");
    pair.both("DROP EVENT sweep");
    pair.both("DROP FUNCTION hosts_of");
    pair.nothing_leaked();
}

/// Whether the server changes the rows of a statement at once, the proxy one by one, or the engine
/// computes them: an error at one of them leaves none changed.
fn errors_of_triggers_undo_the_statement(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let stops = |timing: &str, event: &str, row: &str| {
        format!(
            "CREATE TRIGGER stops_{event} {timing} {event} ON host FOR EACH ROW \
             BEGIN INSERT INTO change_log (kind, object) VALUES (2, {row}.id); \
             IF {row}.state = 99 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END IF; END"
        )
    };
    pair.both(
        "INSERT INTO host (name, load_of, state) VALUES ('a', 1, 0), ('b', 2, 99), ('c', 3, 0)",
    );
    make(
        &mut pair,
        &[
            &stops("AFTER", "INSERT", "NEW"),
            &stops("BEFORE", "UPDATE", "OLD"),
            &stops("AFTER", "DELETE", "OLD"),
        ],
    );
    for sql in [
        "INSERT INTO host (name, state) VALUES ('d', 1), ('Hb4YqMz7', 99)",
        "INSERT INTO host (name, state) SELECT CONCAT(name, '2'), state FROM host",
        "UPDATE host SET name = CONCAT('x', id)",
        "UPDATE host SET upper_name = 'Hb4YqMz7'",
        "UPDATE host SET load_of = load_of + 1",
        "UPDATE host SET load_of = load_of * 2 + 1 WHERE LENGTH(name) = 1",
        "DELETE FROM host WHERE name < 'x'",
        "DELETE FROM host WHERE CONCAT(name, 'x') <> 'x'",
        "INSERT INTO host (id, name) VALUES (1, 'k'), (2, 'l') ON DUPLICATE KEY UPDATE load_of = load_of + 1",
        "REPLACE INTO host (id, name) VALUES (1, 'm'), (2, 'n')",
    ] {
        assert_eq!(pair.same_error(sql), 1644, "{sql}");
        pair.same_result("SELECT id, name, upper_name, load_of, state FROM host ORDER BY id");
        pair.same_result("SELECT kind, object FROM change_log ORDER BY no");
    }
    pair.nothing_leaked();
}

/// Values stand in each of them. None reaches the server.
fn what_does_more_is_refused(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.run("CREATE TABLE plain (id INT PRIMARY KEY, name VARCHAR(40))");
    let bodies = [
        "SET NEW.name = '{s}'",
        "SET new . `NAME` = '{s}'",
        "SET NEW.note = CONCAT('{s}', NEW.name)",
        "SET NEW.`name$enc` = '{s}'",
        "SET NEW.nämé = '{s}'",
        "BEGIN IF NEW.name = '{s}' THEN SET NEW.state = 1; END IF; END",
        "INSERT INTO change_log (what) VALUES (CONCAT(NEW.name, '{s}'))",
        "INSERT INTO host VALUES (1, '{s}', NULL, NULL, 1, NULL)",
        "INSERT INTO host (name) VALUES ('{s}')",
        "INSERT INTO app.host (id) VALUES ('{s}')",
        "INSERT INTO host SET name = '{s}'",
        "UPDATE host SET name = '{s}'",
        "UPDATE host h SET h.name = '{s}'",
        "UPDATE host SET upper_name = UPPER(name), note = '{s}'",
        "UPDATE plain p JOIN host h ON h.id = p.id SET p.name = '{s}'",
        "DELETE FROM host WHERE name = '{s}'",
        "SELECT '{s}' FROM host WHERE load_of = 3 INTO @a",
        "BEGIN DECLARE name VARCHAR(40) DEFAULT '{s}'; SELECT note INTO name FROM host; END",
        "BEGIN DECLARE v VARCHAR(40) DEFAULT '{s}'; SELECT name INTO v FROM host; END",
        "SET @a = (SELECT '{s}' FROM (SELECT * FROM host) x)",
        // the alias is no row of a trigger's
        "UPDATE host AS new SET new.name = '{s}'",
        "UPDATE host `OLD` SET `OLD`.`name` = '{s}'",
        "UPDATE host old JOIN plain p ON p.id = old.id SET old.name = '{s}'",
    ];
    for body in bodies {
        let body = body.replace("{s}", SECRET);
        for head in [
            "CREATE TRIGGER t BEFORE INSERT ON host FOR EACH ROW ",
            "CREATE TRIGGER t BEFORE INSERT ON plain FOR EACH ROW ",
            "CREATE DEFINER = CURRENT_USER TRIGGER app.t BEFORE INSERT ON `app`.`host` FOR EACH ROW ",
            "CREATE PROCEDURE p() ",
            "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO ",
        ] {
            let of_row = body.contains("NEW.") || body.contains("new .");
            if of_row && (!head.contains("TRIGGER") || head.contains("ON plain")) {
                continue;
            }
            let sql = format!("{head}{body}");
            refused(&mut pair.protected, &sql);
            let sql = format!("/*!50003 {sql} */");
            refused(&mut pair.protected, &sql);
        }
    }
    for sql in [
        "CREATE PROCEDURE p() SELECT * FROM host WHERE note = '{s}'",
        "CREATE PROCEDURE p() SELECT h.* FROM host h WHERE note = '{s}'",
        "CREATE PROCEDURE p(name VARCHAR(40)) UPDATE host SET note = '{s}' WHERE id = name",
        "CREATE PROCEDURE p() BEGIN PREPARE s FROM 'SELECT * FROM host WHERE name = ''{s}'''; EXECUTE s; END",
        "CREATE PROCEDURE p() BEGIN SELECT id FROM host; ALTER TABLE host ADD x VARCHAR(40) DEFAULT '{s}'; END",
        "CREATE PROCEDURE p() BEGIN CREATE TABLE x SELECT id, '{s}' FROM host; END",
        "CREATE PROCEDURE p() BEGIN SELECT id FROM host; SET sql_mode = '{s}'; END",
        "CREATE PROCEDURE p() SELECT id FROM host; INSERT INTO host (name) VALUES ('{s}')",
        "CREATE PROCEDURE p() BEGIN SELECT id FROM host; END; INSERT INTO host (name) VALUES ('{s}')",
        "CREATE FUNCTION f() RETURNS INT READS SQL DATA RETURN (SELECT 1 FROM host WHERE name = '{s}')",
        "CREATE TRIGGER t AFTER INSERT ON plain FOR EACH ROW UPDATE host SET state = 1 WHERE name = CONCAT(NEW.name, '{s}')",
        "ALTER EVENT e DO UPDATE host SET name = '{s}'",
        "CREATE TRIGGER t BEFORE INSERT ON host FOR EACH ROW SET NEW.note = /*!50000 '{s}' */ 'x'",
    ] {
        refused(&mut pair.protected, &sql.replace("{s}", SECRET));
    }
    // a plain column of the same name, where it is clear whose it is
    pair.both("INSERT INTO host (id, name, note) VALUES (1, 'Hb4YqMz7', 'a'), (3, 'b', 'b')");
    let update = "CREATE TRIGGER t AFTER INSERT ON plain FOR EACH ROW UPDATE host SET note = NEW.name WHERE id = NEW.id";
    make(&mut pair, &[update]);
    pair.both("INSERT INTO plain VALUES (3, 'c')");
    pair.run("DROP TRIGGER t");
    let insert = "CREATE TRIGGER u AFTER INSERT ON host FOR EACH ROW INSERT INTO plain (id, name) VALUES (NEW.id + 1, NEW.note)";
    make(&mut pair, &[insert]);
    pair.both("INSERT INTO host (id, name, note) VALUES (7, 'd', 'e')");
    pair.same_result("SELECT id, name FROM plain ORDER BY id");
    pair.same_result("SELECT id, name, note FROM host ORDER BY id");
    pair.nothing_leaked();
}

/// Tables without a database are the program's, wherever its name stands.
fn programs_of_other_databases(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.protected.must("CREATE DATABASE body");
    pair.protected.must("USE body");
    let definition = HOST.replace("{eq, range}", "ENCRYPTED FOR (eq, range)");
    let definition = definition.replace("{}", "ENCRYPTED FOR ()");
    pair.protected
        .must(&definition.replace("{eq}", "ENCRYPTED FOR (eq)"));
    pair.protected.must("USE mysql");
    let change = format!("UPDATE host SET name = '{SECRET}'");
    let mut heads = vec![
        "CREATE PROCEDURE {d}.p() ",
        "CREATE PROCEDURE IF NOT EXISTS {d}.p() ",
        "CREATE DEFINER=event@localhost PROCEDURE {d}.p() ",
        "CREATE DEFINER = function@localhost PROCEDURE {d}.p() ",
        "CREATE DEFINER = trigger PROCEDURE {d}.p() ",
        "CREATE DEFINER=package@localhost EVENT {d}.e ON SCHEDULE EVERY 1 DAY DO ",
        "CREATE DEFINER=procedure@localhost TRIGGER {d}.t AFTER INSERT ON {d}.host FOR EACH ROW ",
        "ALTER DEFINER=event@localhost EVENT {d}.e ON SCHEDULE EVERY 2 DAY DO ",
        "/*!50003 CREATE*/ /*!50020 DEFINER=event@localhost*/ /*!50003 PROCEDURE {d}.p() */",
        // comments that a server skips
        "CREATE PROCEDURE /*!99999 x */ {d}.p() ",
        "CREATE PROCEDURE /*!99999 mysql. */ {d}.p() ",
        "CREATE PROCEDURE /*M!999999 mysql. */ {d}.p() ",
        "CREATE /*!99999 PROCEDURE mysql.x */ PROCEDURE {d}.p() ",
    ];
    if kind == Kind::MariaDb {
        heads.push("SET STATEMENT max_statement_time = 3 FOR CREATE PROCEDURE {d}.p() ");
        heads.push("BEGIN NOT ATOMIC CREATE PROCEDURE {d}.p() {c}; END");
    }
    for head in heads {
        for database in ["app", "body"] {
            let sql = match head.contains("{c}") {
                true => head.replace("{c}", &change),
                false => format!("{head}{change}"),
            };
            refused(&mut pair.protected, &sql.replace("{d}", database));
        }
    }
    pair.nothing_leaked();
}

/// As dumps write them, and as they are read under other settings.
fn dumps_and_settings(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    make(
        &mut pair,
        &[
            "/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER `dumped` BEFORE INSERT ON `host` FOR EACH ROW BEGIN\n  SET NEW.note = 'dumped';\nEND */",
            "/*!50106 CREATE*/ /*!50117 DEFINER=`root`@`localhost`*/ /*!50106 EVENT `once` ON SCHEDULE AT '2037-01-01 00:00:00' ON COMPLETION NOT PRESERVE ENABLE DO DELETE FROM host WHERE id = 3 */",
            "CREATE DEFINER=`root`@`localhost` PROCEDURE `dumped`()\nBEGIN\n  SELECT `id` FROM `host`;\nEND",
        ],
    );
    pair.both("INSERT INTO host (name) VALUES ('Hb4YqMz7')");
    pair.same_result("SELECT id, name, note FROM host");
    pair.same_result_of_text("CALL dumped()");
    pair.run("SET sql_mode = 'ANSI_QUOTES,STRICT_TRANS_TABLES'");
    make(
        &mut pair,
        &[
            "CREATE TRIGGER \"ansi\" BEFORE UPDATE ON \"host\" FOR EACH ROW SET NEW.\"state\" = OLD.\"state\" + 1",
        ],
    );
    let sql =
        "CREATE TRIGGER b BEFORE INSERT ON \"host\" FOR EACH ROW SET NEW.\"name\" = 'Hb4YqMz7'";
    refused(&mut pair.protected, sql);
    pair.both("UPDATE host SET name = 'b'");
    pair.same_result("SELECT id, name, note, state FROM host");
    pair.run("SET sql_mode = DEFAULT");
    // read by other letters than were meant
    pair.protected.must("SET NAMES latin1");
    let sql = "CREATE TRIGGER b BEFORE INSERT ON host FOR EACH ROW BEGIN DECLARE x\u{a0}name INT; SET NEW.note = 'Hb4YqMz7'; END";
    refused(&mut pair.protected, sql);
    pair.protected.must("SET NAMES utf8mb4");
    if kind == Kind::MariaDb {
        pair.protected.must("SET sql_mode = 'MSSQL'");
        let sql = "CREATE TRIGGER b BEFORE INSERT ON host FOR EACH ROW SET NEW.note = 'x'";
        refused(&mut pair.protected, sql);
        pair.protected.must("SET sql_mode = 'ORACLE'");
        let sql = "CREATE TRIGGER b BEFORE INSERT ON host FOR EACH ROW SET NEW.note = 'x'";
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.contains("ORACLE"), "{failure}");
        pair.protected.must("SET sql_mode = DEFAULT");
    }
    pair.nothing_leaked();
}

fn what_servers_of_one_family_have(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let (works, refuses): (&[&str], &[&str]) = match kind {
        Kind::MariaDb => (
            &[
                "CREATE TRIGGER a AFTER INSERT ON host FOR EACH ROW SET @a = NEW.id",
                "CREATE OR REPLACE TRIGGER a AFTER INSERT ON host FOR EACH ROW SET @a = NEW.id + 1",
                "CREATE TRIGGER IF NOT EXISTS a AFTER INSERT ON host FOR EACH ROW SET @a = 0",
                "CREATE TRIGGER b AFTER INSERT ON host FOR EACH ROW PRECEDES a SET @a = 7",
                "CREATE OR REPLACE PROCEDURE p() BEGIN NOT ATOMIC DELETE FROM host WHERE id = 50 RETURNING id, note; END",
            ],
            &[
                "CREATE PROCEDURE q() BEGIN DECLARE r ROW TYPE OF host; SELECT 'Hb4YqMz7'; END",
                "CREATE PROCEDURE q() BEGIN DECLARE r TYPE OF host.id DEFAULT 'Hb4YqMz7'; END",
                "CREATE PROCEDURE q() BEGIN FOR r IN (SELECT id FROM host WHERE note = 'Hb4YqMz7') DO SELECT r.id; END FOR; END",
                "CREATE PROCEDURE q() EXECUTE IMMEDIATE 'INSERT INTO host (name) VALUES (''Hb4YqMz7'')'",
                "CREATE PROCEDURE q() DELETE FROM host WHERE note = 'Hb4YqMz7' RETURNING *",
                "CREATE PROCEDURE q() INSERT INTO change_log (kind) VALUES ('Hb4YqMz7') RETURNING (SELECT name FROM host)",
            ],
        ),
        Kind::MySql => (
            &[
                "CREATE TRIGGER a AFTER INSERT ON host FOR EACH ROW SET @a = NEW.id",
                "CREATE TRIGGER IF NOT EXISTS a AFTER INSERT ON host FOR EACH ROW SET @a = 0",
                "CREATE TRIGGER b AFTER INSERT ON host FOR EACH ROW FOLLOWS a SET @a = @a + 7",
            ],
            &[
                "CREATE PROCEDURE q() TABLE host",
                "CREATE PROCEDURE q() SELECT 'Hb4YqMz7' IN (TABLE host)",
                "CREATE PROCEDURE q() INSERT INTO host TABLE host",
                "CREATE PROCEDURE q() INSERT INTO host (id, state) VALUES (1, 'Hb4YqMz7') AS n ON DUPLICATE KEY UPDATE name = n.state",
            ],
        ),
    };
    make(&mut pair, works);
    for sql in refuses {
        refused(&mut pair.protected, sql);
    }
    pair.both("INSERT INTO host (name) VALUES ('a')");
    pair.same_result("SELECT @a");
    pair.nothing_leaked();
}
