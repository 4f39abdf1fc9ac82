//! Sessions that see the past: snapshots of transactions, and questions that share one.

use super::*;

/// MySQL reads information_schema in the transaction's snapshot. A session whose transaction began
/// before a table became protected must not take it for plain, nor tell other sessions so; and one
/// that was protected then is not for ever.
pub fn a_transaction_that_sees_the_past(kind: Kind) {
    let Some(mut two) = Two::start(kind) else {
        return;
    };
    two.plain("other");
    two.plain("remade");
    let begin = |session: &mut Session| {
        session.must("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
        session.must("START TRANSACTION WITH CONSISTENT SNAPSHOT");
        session.must("SELECT COUNT(*) FROM other");
    };
    let mut old = two.here.connect_to("app");
    let mut fresh = two.here.connect_to("app");
    for session in [&mut old, &mut fresh] {
        session.must(&format!(
            "INSERT INTO remade (name, open) VALUES ('before', '{CONTROL}')"
        ));
    }
    fresh.must("CREATE VIEW seen AS SELECT * FROM remade");
    old.must("SELECT COUNT(*) FROM seen");
    begin(&mut old);
    two.becomes_protected("remade");
    two.protected("made");
    sleep(A_SECOND);
    // with what the old one sees, all sessions of the account were served
    for round in 0..3 {
        let insert = |table: &str, secret: &str| {
            format!("INSERT INTO {table} (name, open) VALUES ('{secret}', '{CONTROL}')")
        };
        for table in ["remade", "made"] {
            let secret = two.secret();
            // the server itself refuses some of them; what counts is what it has seen
            let _ = old.run(&insert(table, &secret));
            let secret = two.secret();
            fresh.must(&insert(table, &secret));
            two.reads(table, &secret);
            let secret = two.secret();
            let sql = format!("SELECT COUNT(*) FROM {table} WHERE name = '{secret}'");
            let _ = old.run(&sql);
        }
        // the view is broken by now, and the server says so; its log has the text by then
        let secret = two.secret();
        let _ = old.run(&insert("seen", &secret));
        let secret = two.secret();
        let _ = old.run(&format!(
            "SELECT COUNT(*) FROM seen WHERE name = '{secret}'"
        ));
        let secret = two.secret();
        let _ = old.run(&format!("UPDATE seen SET name = '{secret}'"));
        if round == 1 {
            sleep(A_SECOND);
        }
    }
    let prepared = "INSERT INTO remade (name, open) VALUES (?, ?)";
    if let Ok(prepared) = old.conn().prep(prepared) {
        let secret = two.secret();
        let _ = old.conn().exec_drop(&prepared, (&secret, CONTROL));
    }
    old.must("ROLLBACK");
    let secret = two.secret();
    old.must(&format!(
        "INSERT INTO remade (name, open) VALUES ('{secret}', '{CONTROL}')"
    ));
    two.reads("remade", &secret);

    // a long transaction over protected tables that nobody touches goes on
    let mut long = two.here.connect_to("app");
    two.elsewhere
        .connect_to("app")
        .must("CREATE VIEW shown AS SELECT id, name FROM made");
    two.elsewhere
        .connect_to("app")
        .must("CREATE VIEW plain AS SELECT id FROM other");
    sleep(A_SECOND);
    begin(&mut long);
    long.must("SELECT COUNT(*) FROM plain");
    for _ in 0..3 {
        sleep(A_SECOND);
        let secret = two.secret();
        long.must(&format!(
            "INSERT INTO made (name, open) VALUES ('{secret}', '{CONTROL}')"
        ));
        let sql = format!("SELECT COUNT(*) FROM made WHERE name = '{secret}'");
        assert_eq!(long.text(&sql).unwrap(), "1");
        assert_eq!(long.text(&sql.replace("made", "shown")).unwrap(), "1");
        long.must("SELECT COUNT(*) FROM plain");
    }
    long.must("COMMIT");
    two.conclude();
}

/// Without autocommit, the questions of a look-up are answered in one snapshot on MySQL. What the
/// later ones find is as old as the first: it is not taken for what there is now, so that no new
/// table is taken for none.
pub fn questions_that_share_a_past(kind: Kind) {
    let Some(mut two) = Two::start(kind) else {
        return;
    };
    two.server
        .connect()
        .must("CREATE TABLE app.control (id INT)");
    let control = format!("SELECT id FROM control WHERE '{CONTROL}' <> ''");
    two.here.connect_to("app").must(&control);
    let is_over = AtomicBool::new(false);
    let proxy = &two.here;
    let mut failed = Vec::new();
    thread::scope(|scope| {
        for asker in 0..3 {
            let is_over = &is_over;
            scope.spawn(move || {
                let mut session = proxy.connect_to("app");
                session.must("SET autocommit = 0");
                let mut n = 0;
                while !is_over.load(Ordering::Relaxed) {
                    // names that nobody knows yet, in databases that come and go
                    let _ = session.run(&format!("SELECT 1 FROM new{}.unknown{asker}_{n}", n % 3));
                    let _ = session.run("COMMIT");
                    n += 1;
                }
            });
        }
        let mut session = proxy.connect();
        let begun = Instant::now();
        for n in 0.. {
            if begun.elapsed() > Duration::from_secs(12) {
                break;
            }
            let database = format!("new{}", n % 3);
            session.must(&format!("CREATE DATABASE {database}"));
            session.must(&format!("USE {database}"));
            session
                .must("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(60) ENCRYPTED FOR (eq))");
            for id in 0..4 {
                let sql = format!("INSERT INTO t (id, name) VALUES ({id}, '{SECRET}')");
                failed.extend(session.run(&sql).err().map(|failure| failure.to_string()));
            }
            session.must(&format!("DROP DATABASE {database}"));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(failed, [""; 0]);
    two.conclude();
}

/// A session in a transaction that sees the past notes that there is a database, for others to
/// look at. What it has not noted is not gone: a protected table was taken for none, where a
/// definition had just made all lists unknown.
pub fn what_is_supposed_hides_no_table(kind: Kind) {
    let Some(mut two) = Two::start(kind) else {
        return;
    };
    two.protected("people");
    two.plain("places");
    two.here
        .connect_to("app")
        .must(&format!("INSERT INTO places (open) VALUES ('{CONTROL}')"));
    let is_over = AtomicBool::new(false);
    let proxy = &two.here;
    let mut failed = Vec::new();
    thread::scope(|scope| {
        for number in 0..3 {
            let is_over = &is_over;
            scope.spawn(move || {
                let mut session = proxy.connect();
                session.must(&format!("CREATE DATABASE past{number}"));
                let mut n = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let _ = session.run("START TRANSACTION WITH CONSISTENT SNAPSHOT");
                    let _ = session.run(&format!("SELECT 1 FROM past{number}.unknown{n}"));
                    let _ = session.run("ROLLBACK");
                    n += 1;
                }
            });
            scope.spawn(move || {
                let mut session = proxy.connect();
                session.must(&format!("CREATE DATABASE made{number}"));
                while !is_over.load(Ordering::Relaxed) {
                    let _ = session.run(&format!("CREATE VIEW made{number}.v AS SELECT 1 AS one"));
                    let _ = session.run(&format!("DROP VIEW made{number}.v"));
                }
            });
        }
        let mut session = proxy.connect_to("app");
        let begun = Instant::now();
        let mut n = 0;
        while begun.elapsed() < Duration::from_secs(10) {
            n += 1;
            let sql =
                format!("INSERT INTO people (name, open) VALUES ('{SECRET}{n}', '{CONTROL}')");
            failed.extend(session.run(&sql).err().map(|failure| failure.to_string()));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    // so many definitions may outrun a statement, which says so then
    failed.retain(|failure| !failure.contains("OS1105"));
    assert_eq!(failed, [""; 0]);
    two.conclude();
}

/// MySQL shows an account the definition neither of a view, without the right SHOW VIEW, nor of a
/// table of which it has privileges on columns, nor while somebody has locked it. A transaction
/// that sees the past takes none of them for what it was.
pub fn definitions_that_are_not_shown(kind: Kind) {
    // the other one has no such transactions
    if kind == Kind::MariaDb {
        return;
    }
    let Some(mut two) = Two::start(kind) else {
        return;
    };
    let mut admin = two.server.connect();
    for table in [
        "other", "locked", "columns", "turned", "under", "below", "kept",
    ] {
        two.plain(table);
    }
    two.protected("sealed");
    let views = [
        "CREATE VIEW narrow AS SELECT id, name, open FROM under",
        "CREATE VIEW above AS SELECT id, name, open FROM below",
    ];
    let unchanged = [
        "CREATE VIEW plainly AS SELECT id, name, open FROM kept",
        "CREATE VIEW openly AS SELECT id, name, open FROM sealed",
    ];
    let mut elsewhere = two.elsewhere.connect_to("app");
    for sql in views.iter().chain(&unchanged) {
        elsewhere.must(sql);
    }
    for sql in [
        "CREATE TABLE app.last (id INT)",
        "CREATE USER writer@'%', viewer@'%', clerk@'%'",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON app.* TO writer@'%'",
        "GRANT SELECT, INSERT, SHOW VIEW ON app.above TO viewer@'%'",
        "GRANT SELECT (name, open), INSERT (name, open) ON app.columns TO clerk@'%'",
        "GRANT SELECT ON app.other TO viewer@'%', clerk@'%'",
    ] {
        admin.must(sql);
    }
    let statement = |table: &str, name: &str| match table {
        // an account that does not see the view's text may not write through it
        "openly" => format!("SELECT id FROM openly WHERE name = {name} AND open <> {name}"),
        _ => format!("INSERT INTO {table} (name, open) VALUES ({name}, {name})"),
    };
    let mut olds = Vec::new();
    for (account, table) in [
        ("root", "locked"),
        ("writer", "narrow"),
        ("writer", "turned"),
        ("viewer", "above"),
        ("clerk", "columns"),
        ("writer", "plainly"),
        ("writer", "openly"),
    ] {
        let mut old = Session::open(two.here.port(), account, "", Some("app"));
        old.must("SET SESSION lock_wait_timeout = 1");
        old.must(&statement(table, "'before'"));
        let prepared = old.conn().prep(statement(table, "?"));
        let prepared = prepared.expect("a statement");
        old.must("START TRANSACTION WITH CONSISTENT SNAPSHOT");
        old.must("SELECT COUNT(*) FROM other");
        olds.push((old, table, prepared));
    }
    for table in ["locked", "columns", "turned", "under", "below"] {
        elsewhere.must(&format!("DROP TABLE {table}"));
        two.protected(table);
    }
    for sql in ["DROP VIEW narrow, above", "RENAME TABLE turned TO turned_2"] {
        elsewhere.must(sql);
    }
    elsewhere.must("CREATE VIEW turned AS SELECT id, name, open FROM turned_2");
    for sql in views {
        elsewhere.must(sql);
    }
    // nobody sees `locked` while somebody renames it and waits for another table
    let mut locker = two.server.connect();
    locker.must("LOCK TABLES app.last READ");
    let mut renaming = two.server.connect();
    let renamed = thread::spawn(move || {
        renaming.run("RENAME TABLE app.locked TO app.locked_2, app.last TO app.last_2")
    });
    sleep(A_SECOND);
    for (old, table, prepared) in &mut olds {
        let is_changed = !matches!(*table, "plainly" | "openly");
        let value = match is_changed {
            true => two.secret(),
            false => CONTROL.to_owned(),
        };
        let done = old.run(&statement(table, &format!("'{value}'")));
        assert_eq!(done.is_err(), is_changed, "{table}: {done:?}");
        let done = old.conn().exec_drop(&*prepared, (&value, &value));
        assert_eq!(done.is_err(), is_changed, "{table}: {done:?}");
    }
    locker.must("UNLOCK TABLES");
    renamed.join().expect("no panic").expect("it is renamed");
    drop(olds);
    two.conclude();
}
