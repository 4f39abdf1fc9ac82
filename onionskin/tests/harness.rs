//! The harness itself: a plain server starts, answers, restarts, and takes sysbench and the
//! clients; a search finds.

use onionskin_testkit::*;

on_both_servers!(a_private_server_works);

fn a_private_server_works(kind: Kind) {
    let options = ServerOptions {
        general_log: true,
        slow_log: true,
        binlog: Some(Binlog::Statement),
        performance_schema: true,
        ..ServerOptions::default()
    };
    let Some(mut server) = Server::start(kind, options) else {
        return;
    };
    let mut session = server.connect();
    session.must("CREATE DATABASE sbtest");
    session.must(
        "CREATE TABLE sbtest.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20), d DATETIME)",
    );
    let outcome =
        session.must("INSERT INTO sbtest.t (v, d) VALUES ('one', '2020-01-02'), (NULL, NULL)");
    assert_eq!((outcome.affected, outcome.insert_id), (2, 1));
    assert_eq!(session.must_fail("SELECT * FROM sbtest.nothing"), 1146);
    let rows = "1\tone\t2020-01-02 00:00:00\n2\tNULL\tNULL";
    assert_eq!(session.text("SELECT * FROM sbtest.t").unwrap(), rows);
    assert_eq!(
        session
            .execute_text("SELECT v FROM sbtest.t WHERE id = ?", (1,))
            .unwrap(),
        "one"
    );

    for (prepared, threads) in [(false, 4), (true, 2)] {
        let load = |script| {
            Sysbench::new(server.port(), script)
                .tables(1, 500)
                .threads(threads)
                .prepared(prepared)
        };
        load("oltp_read_write").run("prepare");
        let report = load("oltp_read_write").events(50).run("run");
        assert_eq!(
            (report.transactions, report.queries >= 1000),
            (50, true),
            "{}",
            report.text
        );
        load("oltp_read_write").run("cleanup");
    }

    for user in kind.users() {
        let client = Cli::tcp(kind, server.port(), user.name, user.password);
        for client in [client.clone().with_tls(), client.without_tls()] {
            assert!(client.must("SELECT CURRENT_USER();").contains(user.name));
        }
        let refused = Cli::tcp(kind, server.port(), user.name, "wrong").run("SELECT 1;");
        assert!(
            !refused.success && refused.err.contains("1045"),
            "{}",
            refused.err
        );
    }

    for log in ["general.log", "slow.log"] {
        let text = std::fs::read_to_string(server.data_dir().join(log)).unwrap();
        assert!(text.contains("'2020-01-02'"), "{log} holds the statements");
    }
    server.kill9();
    server.restart();
    assert_eq!(
        server
            .connect()
            .text("SELECT v FROM sbtest.t LIMIT 1")
            .unwrap(),
        "one"
    );
    server.shutdown();
    assert!(server.data_files().len() > 10);
}

#[test]
fn base64_is_found_at_every_offset() {
    // printf '%s' xQz7KwVx9 | base64, with no, one and two letters before
    for encoded in ["UXo3S3dWeDk=", "eFF6N0t3Vng5", "eHhRejdLd1Z4OQ=="] {
        assert_eq!(
            find_all(&Pattern::of_text("Qz7KwVx9"), encoded.as_bytes()).len(),
            1,
            "{encoded}"
        );
    }
    for text in [
        "Qz7KwVx9",
        "QZ7KWVX9",
        "517a374b77567839",
        "517A374B77567839",
        "Q\0z\x007\0K\0w\0V\0x\09\0",
    ] {
        assert!(
            !find_all(&Pattern::of_text("Qz7KwVx9"), text.as_bytes()).is_empty(),
            "{text}"
        );
    }
}
