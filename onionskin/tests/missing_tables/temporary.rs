//! Plaintext temporary tables that the proxy has not made, by names that `[protect]` is about; and
//! EXPLAIN of another database, whose tables are looked for elsewhere.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use ::mysql::prelude::Queryable;
use onionskin_testkit::*;

use super::{Place, SECRET};

/// `{t}` is a table with a column `a`, `{v}` a value.
const USES: [&str; 9] = [
    "INSERT INTO {t} (a) VALUES ({v})",
    "INSERT INTO {t} SET a = {v}",
    "REPLACE INTO app.{t} (a) SELECT {v}",
    "INSERT INTO {t} (a) VALUES ('x') ON DUPLICATE KEY UPDATE a = {v}",
    "UPDATE {t} SET a = {v}",
    "SELECT * FROM {t} WHERE a = {v}",
    "SELECT COUNT(*) FROM {t} AS x WHERE x.a LIKE {v}",
    "DELETE FROM {t} WHERE a = {v}",
    "SET @x = (SELECT COUNT(*) FROM {t} WHERE a = {v})",
];

/// Each use is refused as one of a table is that should be protected: as a text, in a text of
/// several, prepared by the protocol and by name. So is a query without values.
fn is_refused(session: &mut Session, table: &str) {
    for sql in USES {
        let sql = sql.replace("{t}", table);
        let literal = sql.replace("{v}", &format!("'{SECRET}'"));
        let by_name = format!("PREPARE s FROM '{}'", literal.replace('\'', "''"));
        for sql in [literal.clone(), format!("SELECT 1; {literal}"), by_name] {
            let said = session.run(&sql).expect_err(&sql);
            assert!(said.message.starts_with("OS1108"), "{sql}: {said}");
        }
        let with_parameter = sql.replace("{v}", "?");
        let said = session.conn().exec_drop(&with_parameter, (SECRET,));
        let said = said.expect_err(&with_parameter).to_string();
        assert!(said.contains("OS1108"), "{with_parameter}: {said}");
    }
    for sql in [format!("SELECT * FROM {table}"), format!("TABLE {table}")] {
        let _ = session.run(&sql).map(|found| panic!("{sql}: {found:?}"));
    }
    assert!(session.answers_itself(), "{table}");
}

pub fn temporary_tables_of_programs(kind: Kind) {
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    for sql in [
        "USE app",
        "CREATE TABLE ids (x_id INT)",
        "INSERT INTO ids VALUES (1)",
        "CREATE TABLE seen (x_id INT)",
        "CREATE PROCEDURE make() CREATE TEMPORARY TABLE made (id INT, a VARCHAR(60))",
        "CREATE PROCEDURE hide() CREATE TEMPORARY TABLE ids (a VARCHAR(60))",
        "CREATE PROCEDURE hide_again() BEGIN DROP TEMPORARY TABLE IF EXISTS seen; \
         CREATE TEMPORARY TABLE seen (a VARCHAR(60)); END",
        "CREATE PROCEDURE fails() BEGIN CREATE TEMPORARY TABLE failed (a VARCHAR(60)); \
         SIGNAL SQLSTATE '45000'; END",
    ] {
        place.admin.must(sql);
    }
    let mut session = place.proxy.connect_to("app");
    let mut other = place.proxy.connect_to("app");
    let count = |session: &mut Session| session.text("SELECT COUNT(*) FROM ids WHERE x_id = 1");
    assert_eq!(count(&mut session).as_deref(), Ok("1"));
    let prepared = session
        .conn()
        .prep("INSERT INTO ids VALUES (?)")
        .expect("a statement");
    session.conn().exec_drop(&prepared, (7,)).expect("a row");
    // a table of its own
    session.must("CALL make()");
    is_refused(&mut session, "made");
    // one that hides a table which is known
    session.must("CALL hide()");
    assert!(session.conn().exec_drop(&prepared, (SECRET,)).is_err());
    is_refused(&mut session, "ids");
    let block = format!("BEGIN NOT ATOMIC INSERT INTO ids VALUES ('{SECRET}'); END");
    assert!(session.run(&block).is_err());
    session.must("SELECT x_id FROM seen WHERE x_id = 2");
    session.must("CALL hide_again()");
    is_refused(&mut session, "seen");
    session.must("CALL hide_again()");
    is_refused(&mut session, "seen");
    session.must_fail("CALL fails()");
    is_refused(&mut session, "failed");
    session.must("INSERT INTO t VALUES (1, 'x')");
    // they are this session's, and what they hide is there behind them
    assert_eq!(count(&mut other).as_deref(), Ok("1"));
    session.must("DROP TEMPORARY TABLE ids");
    assert_eq!(count(&mut session).as_deref(), Ok("1"));
    session.must("DROP TEMPORARY TABLE made");
    assert_eq!(session.must_fail("SELECT * FROM made WHERE a = 'x'"), 1146);
    // and protected ones stay what they are
    session.must("CALL hide_again()");
    let found = session.text("SELECT id FROM t WHERE a = 'x'");
    assert_eq!(found.as_deref(), Ok("1"));
    drop((session, other));
    place.nothing_leaked();
}

/// A question that ends in an error says nothing of the name: somebody has ended it, a lock was
/// waited for in vain, the account has asked as often as it may.
pub fn questions_that_end_in_errors(kind: Kind) {
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    place.admin.must("USE app");
    place.admin.must("CREATE TABLE seen (x_id INT)");
    place
        .admin
        .must("CREATE PROCEDURE hide() CREATE TEMPORARY TABLE seen (a VARCHAR(60))");
    let said = Arc::new(AtomicU16::new(0));
    let saying = Arc::clone(&said);
    // whether the row was there, of an answer in whose place an error was said
    let rest = Mutex::new(None::<bool>);
    let lies = move |command: &[u8], _: usize, packet: &[u8]| {
        let mut rest = rest.lock().expect("no panic with it");
        if let Some(had_row) = *rest {
            let is_row = packet.windows(6).any(|part| part == b"CREATE");
            *rest = (!had_row || packet[0] != 0xfe).then_some(had_row || is_row);
            return Vec::new();
        }
        let code = saying.load(Ordering::Relaxed);
        // an answer to what was asked in front of it may come first
        let is_count = packet == [2] && command.starts_with(b"\x03SHOW CREATE TABLE");
        if code == 0 || !is_count {
            return vec![packet.to_vec()];
        }
        *rest = Some(false);
        vec![[b"\xff", &code.to_le_bytes()[..], b"#HY000ended"].concat()]
    };
    let meddler = Meddler::to(place.server.port(), lies);
    let options = ProxyOptions {
        settings: "backend_tls = \"never\"\n".into(),
        tables: super::POLICY.into(),
        backend: Some(meddler.address()),
        keys: Some(place.proxy.keys()),
        ..ProxyOptions::default()
    };
    let proxy = Proxy::start_with(&place.server, options);
    let insert = format!("INSERT INTO seen VALUES ('{SECRET}')");
    for code in [1317, 1969, 3024, 1205, 1226] {
        let mut session = proxy.connect_to("app");
        session.must("SELECT x_id FROM seen WHERE x_id = 2");
        session.must("CALL hide()");
        said.store(code, Ordering::Relaxed);
        assert_eq!(session.must_fail(&insert), code);
        assert_eq!(session.must_fail(&insert), code);
        assert!(
            session
                .conn()
                .query_drop(format!("DO 1; {insert}"))
                .is_err()
        );
        said.store(0, Ordering::Relaxed);
        is_refused(&mut session, "seen");
    }
    drop(proxy);
    place.nothing_leaked();
}

/// No value by position, nor by the name of a column that no table was seen to protect, reaches a
/// table in front of a known one: as a text, prepared before, by name, and in a text of several.
fn hides(session: &mut Session, table: &str, prepared: &::mysql::Statement) {
    let said = session.conn().exec_drop(prepared, (SECRET,));
    let said = said.expect_err(table).to_string();
    // one that was relayed is prepared once more by whoever gets this
    let is_refused = said.contains("OS1108") || said.contains("OS1105");
    assert!(is_refused, "{table}: {said}");
    let insert = format!("INSERT INTO {table} VALUES ('{SECRET}')");
    let named = format!("UPDATE {table} SET never_seen = '{SECRET}'");
    for sql in [insert, named] {
        let by_name = format!("PREPARE s FROM '{}'", sql.replace('\'', "''"));
        for sql in [sql.clone(), format!("DO 1; {sql}"), by_name] {
            let said = session.run(&sql).expect_err(&sql);
            assert!(said.message.starts_with("OS1108"), "{sql}: {said}");
        }
    }
    assert!(session.answers_itself(), "{table}");
}

/// Tables that are known, with a statement prepared for each.
fn known(session: &mut Session, tables: &[&str]) -> Vec<::mysql::Statement> {
    let mut prepare = |table: &&str| {
        session.must(&format!("SELECT x_id FROM {table} WHERE x_id = 2"));
        let insert = format!("INSERT INTO {table} VALUES (?)");
        session.conn().prep(insert).expect("a statement")
    };
    tables.iter().map(&mut prepare).collect()
}

/// A trigger makes a table in front of one that is known.
pub fn temporary_tables_of_triggers(kind: Kind) {
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    const TABLES: [&str; 6] = ["by_row", "failed", "behind", "filled", "updated", "at_once"];
    for table in TABLES {
        place
            .admin
            .must(&format!("CREATE TABLE app.{table} (x_id INT)"));
    }
    for (base, table) in [
        ("rows", "by_row"),
        ("keys_of", "failed"),
        ("second", "behind"),
        ("copies", "filled"),
        ("all_at", "at_once"),
    ] {
        place
            .admin
            .must(&format!("CREATE TABLE other.`{base}` (id INT PRIMARY KEY)"));
        place.admin.must(&format!(
            "CREATE TRIGGER other.tr_{table} BEFORE INSERT ON other.`{base}` FOR EACH ROW \
             CREATE TEMPORARY TABLE IF NOT EXISTS app.{table} (never_seen VARCHAR(60))"
        ));
    }
    for sql in [
        "INSERT INTO other.keys_of VALUES (1)",
        "CREATE TABLE other.first (id INT)",
        "CREATE TRIGGER other.tr_first AFTER INSERT ON other.first FOR EACH ROW \
         INSERT INTO other.second VALUES (NEW.id)",
        "CREATE TRIGGER app.tr_there AFTER UPDATE ON app.there FOR EACH ROW \
         CREATE TEMPORARY TABLE IF NOT EXISTS app.updated (never_seen VARCHAR(60))",
        "INSERT INTO other.plain VALUES (7, 'x', NULL)",
    ] {
        place.admin.must(sql);
    }
    let mut session = place.proxy.connect_to("app");
    session.must("INSERT INTO there VALUES (1, 'x')");
    let prepared = known(&mut session, &TABLES);
    for sql in [
        "INSERT INTO other.`rows` VALUES (1)",
        "INSERT INTO other.keys_of VALUES (1)",
        "INSERT INTO other.first VALUES (1)",
        "REPLACE INTO other.copies SELECT id FROM other.plain",
        "UPDATE there SET a = 'y' WHERE a = 'x'",
    ] {
        let _ = session.run(sql);
        let table = match sql {
            _ if sql.contains("`rows`") => 0,
            _ if sql.contains("keys_of") => 1,
            _ if sql.contains("first") => 2,
            _ if sql.contains("copies") => 3,
            _ => 4,
        };
        hides(&mut session, TABLES[table], &prepared[table]);
    }
    // in one text with the statement that has the trigger run
    let both =
        format!("INSERT INTO other.all_at VALUES (1); INSERT INTO at_once VALUES ('{SECRET}')");
    let said = session.run(&both).expect_err("a plaintext table");
    assert!(said.message.starts_with("OS1108"), "{said}");
    hides(&mut session, "at_once", &prepared[5]);
    // a session without such a table goes on
    let mut other = place.proxy.connect_to("app");
    other.must("INSERT INTO by_row VALUES (1); INSERT INTO failed VALUES (2)");
    drop((session, other));
    place.nothing_leaked();
}

/// A function that a view calls makes one.
pub fn temporary_tables_of_views(kind: Kind) {
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    const TABLES: [&str; 4] = ["read_once", "copied", "set_once", "broken"];
    if kind == Kind::MySql {
        place
            .admin
            .must("SET GLOBAL log_bin_trust_function_creators = 1");
    }
    for table in TABLES {
        let end = match table {
            "broken" => "SIGNAL SQLSTATE '45000'; RETURN 1",
            _ => "RETURN 1",
        };
        for sql in [
            format!("CREATE TABLE app.{table} (x_id INT)"),
            format!(
                "CREATE FUNCTION other.f_{table}() RETURNS INT BEGIN CREATE TEMPORARY TABLE IF NOT \
                 EXISTS app.{table} (never_seen VARCHAR(60)); {end}; END"
            ),
            format!(
                "CREATE VIEW other.v_{table} AS SELECT id, other.f_{table}() AS f FROM other.plain"
            ),
        ] {
            place.admin.must(&sql);
        }
    }
    let mut session = place.proxy.connect_to("app");
    let prepared = known(&mut session, &TABLES);
    for (at, sql) in [
        "SELECT f FROM other.v_read_once",
        "INSERT INTO other.plain SELECT f, 'x', NULL FROM other.v_copied",
        "SET @x = (SELECT MAX(f) FROM other.v_set_once)",
        "SELECT f FROM other.v_broken",
    ]
    .iter()
    .enumerate()
    {
        let _ = session.run(sql);
        hides(&mut session, TABLES[at], &prepared[at]);
    }
    drop(session);
    // MySQL tells clients that want EOF packets nothing at the end of rows
    let mut client = RawClient::login_into(place.proxy.port(), b"app", 45);
    client.query(b"SELECT x_id FROM read_once WHERE x_id = 2");
    for sql in [
        "SELECT f FROM other.v_read_once",
        "SELECT 1; SELECT f FROM other.v_copied; DO 1",
    ] {
        match sql.contains(';') {
            false => drop(client.query(sql.as_bytes())),
            true => {
                client.command(3, sql.as_bytes());
                (0..4).for_each(|_| client.until_eof());
                client.read();
            }
        }
        let table = ["read_once", "copied"][usize::from(sql.contains(';'))];
        let insert = format!("INSERT INTO {table} VALUES ('{SECRET}')");
        let said = client.query(insert.as_bytes());
        let is_refused = matches!(&said, Reply::Error(_, message) if message.contains("OS1108"));
        assert!(is_refused, "{said:?}");
    }
    drop(client);
    place.nothing_leaked();
}

/// A trigger takes away what tells of it, before it makes its table or a statement earlier. The
/// client does so itself.
pub fn programs_that_have_the_server_tell_less(kind: Kind) {
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    const TABLES: [&str; 4] = ["at_once", "later", "lessened", "by_client"];
    const LESS: &str =
        "SET SESSION session_track_system_variables = '', SESSION session_track_state_change = 0;";
    for (table, before) in TABLES.iter().zip([LESS, "", "", ""]) {
        place
            .admin
            .must(&format!("CREATE TABLE app.{table} (x_id INT)"));
        place
            .admin
            .must(&format!("CREATE TABLE other.{table} (id INT)"));
        place.admin.must(&format!(
            "CREATE TRIGGER other.{table} BEFORE INSERT ON other.{table} FOR EACH ROW BEGIN {before} \
             CREATE TEMPORARY TABLE IF NOT EXISTS app.{table} (never_seen VARCHAR(60)); END"
        ));
    }
    for sql in [
        "CREATE TABLE other.quiet (id INT)".to_owned(),
        format!(
            "CREATE TRIGGER other.quiet BEFORE INSERT ON other.quiet FOR EACH ROW BEGIN {LESS} END"
        ),
    ] {
        place.admin.must(&sql);
    }
    let mut session = place.proxy.connect_to("app");
    let prepared = known(&mut session, &TABLES);
    session.must("INSERT INTO other.at_once VALUES (1)");
    hides(&mut session, TABLES[0], &prepared[0]);
    for between in ["DO 1", "SELECT x_id FROM later WHERE x_id = 3"] {
        session.must("DROP TEMPORARY TABLE IF EXISTS app.later");
        session.must("INSERT INTO other.quiet VALUES (1)");
        session.must(between);
        session.must("INSERT INTO other.later VALUES (1)");
        hides(&mut session, TABLES[1], &prepared[1]);
    }
    let mut session = place.proxy.connect_to("app");
    let prepared = known(&mut session, &TABLES);
    session.must("SET session_track_state_change = 0");
    session.must("INSERT INTO other.lessened VALUES (1)");
    hides(&mut session, TABLES[2], &prepared[2]);
    session.must("SET session_track_system_variables = '', session_track_state_change = OFF");
    session.must("INSERT INTO other.by_client VALUES (1)");
    hides(&mut session, TABLES[3], &prepared[3]);
    drop(session);
    place.nothing_leaked();
}

pub fn temporary_tables_of_logins(kind: Kind) {
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    // whoever may set the variable does not run its statement
    for sql in [
        "CREATE USER narrow@'%' IDENTIFIED BY 'secret'",
        "GRANT ALL ON app.* TO narrow@'%'",
        "RENAME TABLE app.t TO other.taken",
        "CREATE TABLE app.ids (x_id INT)",
        "SET GLOBAL init_connect = 'CREATE TEMPORARY TABLE app.t (id INT, a VARCHAR(60)); \
         CREATE TEMPORARY TABLE app.ids (a VARCHAR(60)); CREATE TEMPORARY TABLE app.there (id INT, a VARCHAR(60))'",
    ] {
        place.admin.must(sql);
    }
    let open = || Session::open(place.proxy.port(), "narrow", "secret", Some("app"));
    let mut session = open();
    is_refused(&mut session, "t");
    is_refused(&mut session, "ids");
    is_refused(&mut session, "there");
    let mut session = open();
    let sql = format!("INSERT INTO ids VALUES ('{SECRET}')");
    let said = session.run(&sql).expect_err("a plaintext table");
    assert!(said.message.starts_with("OS1108"), "{said}");
    place.admin.must("SET GLOBAL init_connect = ''");
    let mut session = open();
    session.must("INSERT INTO there VALUES (1, 'x')");
    drop(session);
    place.nothing_leaked();
}

/// What the client makes without a protected column is judged as a table in the schema is.
pub fn temporary_tables_without_protected_columns(kind: Kind) {
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    place
        .admin
        .must("CREATE TABLE app.base (x_id INT, y_id INT)");
    let mut session = place.proxy.connect_to("app");
    // its column is known as a protected one's name from now on
    session.must("SELECT id FROM t WHERE a = 'x'");
    session.must("CREATE TEMPORARY TABLE tt (x_id INT, y_id INT)");
    session.must("INSERT INTO tt VALUES (1, 2), (3, 4)");
    let found = session.text("SELECT x_id FROM tt WHERE y_id = 2");
    assert_eq!(found.as_deref(), Ok("1"));
    for sql in USES {
        let literal = sql.replace("{v}", &format!("'{SECRET}'"));
        let [base, tt] = ["base", "tt"].map(|table| literal.replace("{t}", table));
        let [base, tt] = [base, tt].map(|sql| session.run(&sql).expect_err(&sql));
        assert_eq!(
            (base.code, &base.state),
            (tt.code, &tt.state),
            "{sql}: {base}, {tt}"
        );
        let parameter = sql.replace("{v}", "?").replace("{t}", "tt");
        assert!(
            session.conn().exec_drop(&parameter, (SECRET,)).is_err(),
            "{sql}"
        );
    }
    // a column that comes later is protected, or refused
    let _ = session.run("ALTER TABLE tt ADD COLUMN a VARCHAR(60)");
    let _ = session.run(&format!("INSERT INTO tt (a) VALUES ('{SECRET}')"));
    // under another name it is what it was
    session.must("CREATE TEMPORARY TABLE uu (x_id INT)");
    session.must("ALTER TABLE uu RENAME TO vv");
    session.must("INSERT INTO vv VALUES (5)");
    let sql = format!("INSERT INTO vv (x_id, a) VALUES (1, '{SECRET}')");
    assert_eq!(session.must_fail(&sql), 1054);
    let _ = session.run("CREATE TEMPORARY TABLE copied LIKE base");
    let sql = format!("UPDATE copied SET a = '{SECRET}'");
    session.run(&sql).expect_err(&sql);
    session.must("DROP TEMPORARY TABLE vv");
    drop(session);
    place.nothing_leaked();
}

/// MySQL's EXPLAIN FOR SCHEMA reads the tables of the database that it names.
pub fn explained_in_another_database(kind: Kind) {
    if kind != Kind::MySql {
        return;
    }
    let Some(mut place) = Place::start(kind) else {
        return;
    };
    place
        .admin
        .must("CREATE TABLE other.t (id INT PRIMARY KEY, b VARCHAR(20), a INT)");
    place.admin.must("CREATE DATABASE bare");
    for database in [Some("other"), Some("bare"), Some("app"), None] {
        let mut session = match database {
            Some(database) => place.proxy.connect_to(database),
            None => Session::open(place.proxy.port(), "root", "", None),
        };
        let v = format!("'{SECRET}'");
        for sql in [
            "EXPLAIN FORMAT=TREE FOR SCHEMA app SELECT id FROM t WHERE a = {v}",
            "EXPLAIN FOR DATABASE `app` SELECT id FROM t WHERE a = {v}",
            "EXPLAIN ANALYZE FOR SCHEMA app SELECT id FROM t WHERE a = {v}",
            "EXPLAIN FORMAT=JSON INTO @v FOR SCHEMA app SELECT id FROM t WHERE a = {v}",
            "DESC FOR SCHEMA app DELETE FROM t WHERE a = {v}",
        ] {
            session.must(&sql.replace("{v}", &v));
            let _ = session.conn().exec_drop(sql.replace("{v}", "?"), (SECRET,));
        }
        for sql in [
            "EXPLAIN FOR SCHEMA app UPDATE t SET a = {v} WHERE id = 1",
            "EXPLAIN FOR SCHEMA app INSERT INTO t (id, a) VALUES (1, {v})",
            "EXPLAIN FOR SCHEMA app REPLACE INTO t (id, a) SELECT 1, {v}",
            "PREPARE s FROM 'EXPLAIN FOR SCHEMA app SELECT id FROM t WHERE a = ''{w}'' LIMIT 1'",
            "EXPLAIN /*!50000 FOR SCHEMA app */ SELECT id FROM t WHERE a = {v}",
            "/*!50000 EXPLAIN FOR */ SCHEMA app SELECT id FROM t WHERE a = {v}",
            "EXPLAIN FOR SCHEMA app SELECT id FROM lost WHERE a = {v}",
            "EXPLAIN FOR SCHEMA app SELECT id FROM t WHERE lost = {v}",
            "EXPLAIN FOR SCHEMA app INSERT INTO lost VALUES ({v})",
            "CREATE PROCEDURE other.p() EXPLAIN FOR SCHEMA app SELECT id FROM t WHERE a = {v}",
        ] {
            let _ = session.run(&sql.replace("{v}", &v).replace("{w}", SECRET));
            assert!(session.answers_itself(), "{sql}");
        }
        session.must("EXPLAIN FORMAT=TREE FOR SCHEMA other SELECT id FROM t WHERE b = 'x'");
        let lost = "EXPLAIN FOR SCHEMA app SELECT id FROM lost WHERE a = 'x'";
        assert_eq!(session.must_fail(lost), 1146, "{database:?}");
    }
    place.nothing_leaked();
}
