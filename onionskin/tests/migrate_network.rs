//! Migrations over networks that break, servers that end connections, and a server that lets a
//! writer by.

use onionskin_testkit::*;

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use onionskin_rowstream::binlog::TableName;
use onionskin_rowstream::feed::{Event, Feed, FeedOptions};
use onionskin_rowstream::key::{KeyColumn, KeyDefinition, KeyKind};
use onionskin_rowstream::session::{Address, Login, Session as OurSession};

on_both_servers!(
    a_connection_that_is_cut_at_any_statement_loses_nothing,
    a_stream_that_the_server_ends_goes_on_where_it_was,
    a_reader_that_was_asleep_misses_nothing,
    a_name_that_leads_to_another_server_is_not_followed,
    a_writer_that_comes_before_the_rename_is_not_lost,
);

fn a_connection_that_is_cut_at_any_statement_loses_nothing(kind: Kind) {
    const ROWS: u32 = 4000;
    // What is said, how often, and on which side of it the cable is cut.
    let statements: &[(&str, u32, When)] = &[
        ("INSERT INTO `t_onionskin_new`", 2, When::Before),
        ("REPLACE INTO `t_onionskin_new`", 1, When::After),
        ("BIT_XOR", 3, When::Before),
        ("LOCK TABLES `t` WRITE", 1, When::After),
        ("RENAME TABLE `t`", 1, When::Before),
        ("RENAME TABLE `t`", 1, When::After),
        ("UNLOCK TABLES", 1, When::Before),
        ("UNLOCK TABLES", 1, When::After),
        ("DROP TABLE IF EXISTS `app`.`t_onionskin`", 1, When::After),
    ];
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = table_and_twin(&server, ROWS);
    beside_a_writer(server.port(), ROWS, || {
        for &(statement, times, when) in statements {
            let context = format!("{when:?} {statement}");
            let cable = Cable::to(server.port());
            cable.cut_at(statement, times, when);
            let (succeeded, text) = run_migration(migrate_at(
                &cable.address(),
                None,
                &["app.t", "--rebuild", "--drop-old", "--threads", "2"],
            ));
            assert!(cable.is_cut() && !succeeded, "{context}: {text}");
            assert!(
                text.contains("no row is lost") && text.contains("--resume"),
                "{context}: {text}"
            );
            assert_equal_to_twin(&mut session, &context);
            let (succeeded, text) =
                run_migration(migrate(&server, None, &["app.t", "--resume", "--drop-old"]));
            // Where only the last answer was lost, everything was done.
            let was_done = statement.starts_with("DROP") && text.contains("has begun");
            let sound = succeeded && text.contains(" 0 repaired");
            assert!(sound || was_done, "{context}: {text}");
            assert!(!text.contains("warning"), "{context}: {text}");
            assert_equal_to_twin(&mut session, &context);
            assert_eq!(session.text("SHOW TABLES").unwrap(), "t\ntwin", "{context}");
        }
    });
}

fn a_stream_that_the_server_ends_goes_on_where_it_was(kind: Kind) {
    const ROWS: u32 = 30_000;
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = table_and_twin(&server, ROWS);
    let mut ended = 0;
    beside_a_writer(server.port(), ROWS, || {
        let mut administrator = server.connect();
        for change in ["ADD INDEX (n)", "ENGINE=InnoDB"] {
            let arguments = ["app.t", "--alter", change, "--drop-old", "--threads", "1"];
            let mut child = start_migration(migrate(&server, None, &arguments));
            while child.try_wait().expect("a child").is_none() {
                thread::sleep(Duration::from_millis(200));
                let dumps = administrator
                    .text("SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'")
                    .unwrap();
                for id in dumps.lines() {
                    // It may have ended by itself.
                    ended += u32::from(administrator.run(&format!("KILL {id}")).is_ok());
                }
            }
            let (succeeded, text) = end_of_migration(child);
            assert!(
                succeeded && text.contains("goes on where it was") && text.contains(" 0 repaired"),
                "{change}: {text}"
            );
        }
    });
    announce(&format!("{}: {ended} streams were ended", kind.name()));
    assert_equal_to_twin(&mut session, "afterwards");
}

fn login(port: u16) -> Login {
    Login {
        address: Address::Tcp {
            host: "127.0.0.1".into(),
            port,
        },
        user: "root".into(),
        password: String::new(),
        tls: None,
        trust: Default::default(),
        identity: None,
    }
}

/// Reads changes of `app.t` from the end of the log of the server in `session`, through a login.
fn feed_from_the_end(session: &mut Session, login: Login) -> Feed {
    let end = session
        .run("SHOW MASTER STATUS")
        .or_else(|_| session.run("SHOW BINARY LOG STATUS"))
        .unwrap()
        .text();
    let mut words = end.split('\t');
    let from = format!("{}:{}", words.next().unwrap(), words.next().unwrap());
    let options = FeedOptions {
        login,
        server_id: 0x6F6E_0001,
        table: TableName::new("app", "t"),
        columns_of: TableName::new("app", "t"),
        checkpoint: TableName::new("app", "t_onionskin"),
        key: KeyDefinition {
            index: "PRIMARY".into(),
            columns: vec![KeyColumn {
                name: "id".into(),
                kind: KeyKind::Integer,
                ordinal: 0,
                unsigned: false,
                column_type: "int".into(),
            }],
        },
        patience: Duration::from_secs(1),
    };
    Feed::start(options, &from).unwrap()
}

/// The tables that a feed looks at.
fn tables_of_a_feed(session: &mut Session) {
    session.must("CREATE DATABASE app");
    session.must("USE app");
    session.must("CREATE TABLE t (id INT PRIMARY KEY, v LONGBLOB)");
    session
        .must("CREATE TABLE t_onionskin (id TINYINT UNSIGNED PRIMARY KEY, mark BIGINT UNSIGNED)");
}

/// Positions in the binary log of a server mean something else, or nothing, in its replica's.
fn a_name_that_leads_to_another_server_is_not_followed(kind: Kind) {
    let (Some(server), Some(other)) = (
        logging_server(kind, &["--server-id=71"]),
        server_of_its_own(kind, &["--server-id=72"]),
    ) else {
        return;
    };
    let mut sessions = [&server, &other].map(Server::connect);
    sessions.iter_mut().for_each(tables_of_a_feed);
    let cable = Cable::to(server.port());
    let identity = || {
        let mut asking = OurSession::connect(&login(cable.port())).unwrap();
        asking.identity().unwrap()
    };
    let pinned = Login {
        identity: Some(identity()),
        ..login(cable.port())
    };
    let feed = feed_from_the_end(&mut sessions[0], pinned.clone());
    // or its connection might come up behind the cut
    wait_until("the feed follows", Duration::from_secs(20), || {
        let count =
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'";
        sessions[0].text(count).expect("a number") == "1"
    });
    cable.lead_to(other.port());
    assert_ne!(Some(identity()), pinned.identity);
    let Err(error) = OurSession::connect(&pinned) else {
        panic!("any server will do");
    };
    assert!(
        error.message.contains("another server answers"),
        "{}",
        error.message
    );
    // The other's log has more, of other rows.
    for id in 100..200 {
        sessions[1].must(&format!("INSERT INTO t VALUES ({id}, 'x')"));
    }
    sessions[0].must("INSERT INTO t VALUES (1, 'x')");
    // the place at which it began may come, and nothing that has happened
    while let Some(delivery) = feed.next(Duration::from_secs(2)).unwrap() {
        assert!(delivery.events.is_empty(), "{delivery:?}");
    }
    cable.lead_to(server.port());
    let mut keys = Vec::new();
    while keys.is_empty() {
        let delivery = feed.next(Duration::from_secs(20)).unwrap();
        for event in delivery.expect("something comes").events {
            if let Event::Changes(changes) = event {
                keys.extend(changes.into_iter().map(|change| change.after.unwrap().0));
            }
        }
    }
    assert_eq!(keys, [[b"1".to_vec()]]);
}

/// A server ends the stream of a reader that takes nothing for longer than `net_write_timeout`.
fn a_reader_that_was_asleep_misses_nothing(kind: Kind) {
    const SMALL: u32 = 400;
    const LARGE: u32 = 40;
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = server.connect();
    tables_of_a_feed(&mut session);
    let feed = feed_from_the_end(&mut session, login(server.port()));
    // More transactions than wait in memory, and more bytes than fit into the buffers of two
    // sockets.
    for id in 0..SMALL {
        session.must(&format!("INSERT INTO t VALUES ({id}, 'x')"));
    }
    for id in SMALL..SMALL + LARGE {
        session.must(&format!(
            "INSERT INTO t VALUES ({id}, REPEAT('x', 1000000))"
        ));
    }
    let dumps =
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'";
    wait_until(
        "the server ends the stream",
        Duration::from_secs(30),
        || session.text(dumps).unwrap() == "0",
    );
    let (mut next, mut mended) = (0, 0);
    while next < SMALL + LARGE {
        let delivery = feed
            .next(Duration::from_secs(20))
            .unwrap()
            .expect("something comes");
        for event in delivery.events {
            match event {
                Event::Mended(_) => mended += 1,
                Event::Changes(changes) => {
                    for change in changes {
                        let key = change.after.expect("a row that was inserted");
                        assert_eq!(key.0, [next.to_string().into_bytes()]);
                        next += 1;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(mended > 0, "the stream was never ended");

    // And whoever is answered by nobody does not wait without an end, nor takes a late answer for
    // another's.
    let cable = Cable::to(server.port());
    let mut asking = OurSession::connect(&login(cable.port())).unwrap();
    asking
        .set_longest_answer(Some(Duration::from_millis(500)))
        .unwrap();
    assert_eq!(asking.text("SELECT 1").unwrap(), "1");
    cable.freeze(true);
    let begun = Instant::now();
    let error = asking.text("SELECT 2").unwrap_err();
    assert!(
        error.code == 0 && error.message.contains("not answered in time"),
        "{error}"
    );
    assert!(begun.elapsed() < Duration::from_secs(5));
    cable.freeze(false);
    assert_eq!(asking.text("SELECT 3").unwrap_err().code, 0);
}

/// MariaDB lets a writer that waits go before a rename that waits if `max_write_lock_count` says
/// so. Migrations refuse to begin under such a setting; here it comes while one runs.
fn a_writer_that_comes_before_the_rename_is_not_lost(kind: Kind) {
    let Some(server) = logging_server(kind, &[]) else {
        return;
    };
    let mut session = table_and_twin(&server, 1000);
    audit(&mut session);
    let mut long = server.connect();
    // Without a snapshot, for whose end the switch would wait without asking for the lock.
    long.must("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    long.must("BEGIN");
    long.must("SELECT COUNT(*) FROM app.t");
    let child = start_migration(migrate(&server, None, &["app.t", "--rebuild"]));
    let count = |session: &mut Session, condition: &str| {
        session
            .text(&format!(
                "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE {condition}"
            ))
            .unwrap()
    };
    let statements = [
        "UPDATE t SET v = 'late' WHERE id = 5",
        "INSERT INTO t VALUES (5000, 'late', 1)",
        "DELETE FROM t WHERE id = 7",
    ];
    let ready = Barrier::new(statements.len() + 1);
    thread::scope(|scope| {
        for sql in statements {
            let (port, ready) = (server.port(), &ready);
            scope.spawn(move || {
                let mut writer = Session::open(port, "root", "", Some("app"));
                ready.wait();
                writer.must(sql);
            });
        }
        // The lock is asked for again and again, each time for two seconds.
        for is_asked in [true, false, true] {
            wait_until("the lock is asked for", Duration::from_secs(60), || {
                (count(&mut session, "INFO LIKE 'LOCK TABLES%'") == "1") == is_asked
            });
        }
        session.must("SET GLOBAL max_write_lock_count = 1");
        ready.wait();
        wait_until("the writers wait", Duration::from_secs(20), || {
            count(
                &mut session,
                "STATE = 'Waiting for table metadata lock' AND INFO LIKE '% t %' AND INFO NOT LIKE 'LOCK%'",
            ) == "3"
        });
        long.must("COMMIT");
    });
    let (succeeded, text) = end_of_migration(child);
    assert!(succeeded, "{text}");
    if kind == Kind::MariaDb {
        assert!(
            text.contains("3 rows were written between the lock and the rename"),
            "{text}"
        );
        let text = must_not_migrate(&server, None, &["app.twin", "--rebuild"]);
        assert!(text.contains("max_write_lock_count is 1"), "{text}");
    }
    for sql in statements {
        session.must(&sql.replacen(" t ", " twin ", 1));
    }
    assert_equal_to_twin(&mut session, "afterwards");
    assert_equal_audits(&mut session);
}
