//! No write goes through `listen_read`, whatever the account may do and whatever it says.

use super::*;

/// `ONLY_READS`, and the server's own for a session that is READ ONLY.
const ONLY: u16 = 1792;

/// Statements that write, or that make the session one that may.
const TRIES: &[&str] = &[
    "INSERT INTO plain VALUES (9, 9)",
    "INSERT INTO account VALUES (9, 'eve', 9)",
    "UPDATE account SET amount = 9 WHERE owner = 'ada'",
    "UPDATE account SET amount = amount + 1",
    "DELETE FROM account WHERE owner = 'ada'",
    "REPLACE INTO plain VALUES (1, 9)",
    "WITH a AS (SELECT 1 AS id) DELETE FROM plain WHERE id IN (SELECT id FROM a)",
    "CREATE TABLE made (a INT)",
    "CREATE TEMPORARY TABLE made (a INT)",
    "CREATE TABLE made AS SELECT * FROM account",
    "DROP TABLE plain",
    "TRUNCATE TABLE plain",
    "ALTER TABLE plain ADD COLUMN b INT",
    "CALL writes()",
    "CALL frees()",
    "SELECT f()",
    "DO f()",
    "SET @a = f()",
    "SELECT amount, f() FROM account WHERE owner = 'ada'",
    "START TRANSACTION READ WRITE",
    "SET SESSION TRANSACTION READ WRITE",
    "SET TRANSACTION READ WRITE",
    "SET @@session.transaction_read_only = 0",
    "SET SESSION tx_read_only = 0",
    "SET GLOBAL read_only = 0",
    "/*!40101 SET SESSION TRANSACTION READ WRITE */",
    "SELECT 1; INSERT INTO plain VALUES (9, 9)",
    "SELECT 1; SET SESSION TRANSACTION READ WRITE; INSERT INTO plain VALUES (9, 9)",
    "SELECT owner FROM account; CALL writes()",
    "PREPARE s FROM 'INSERT INTO plain VALUES (9, 9)'",
    "PREPARE s FROM 'SET SESSION TRANSACTION READ WRITE'",
    "SET @t = 'CALL writes()'; PREPARE s FROM @t",
    "LOCK TABLES plain WRITE",
    "FLUSH TABLES",
    "GRANT ALL ON bank.* TO app@'%'",
    "XA START 'a'",
    "LOAD DATA INFILE '/etc/hostname' INTO TABLE plain",
    "EXECUTE IMMEDIATE 'INSERT INTO plain VALUES (9, 9)'",
    "BEGIN NOT ATOMIC INSERT INTO plain VALUES (9, 9); END",
    "SET STATEMENT tx_read_only = 0 FOR INSERT INTO plain VALUES (9, 9)",
    "ANALYZE UPDATE plain SET n = 9",
    "'unreadable; INSERT INTO plain VALUES (9, 9)",
];

/// A function that sets the session back, and then one that writes.
fn calls_set_nothing_back(session: &mut Session, at: usize) {
    for frees in [
        "SELECT g()",
        "DO g()",
        "SET @a = g()",
        "SELECT a FROM v",
        "SELECT amount, g() FROM account WHERE owner = 'ada'",
        "SELECT UPPER(owner), g() FROM account",
        "SHOW TABLES WHERE g() = 1",
    ] {
        for writes in [
            "SELECT w()",
            "DO w()",
            "SELECT ROW_COUNT(), w()",
            "SELECT UPPER(owner), w() FROM account",
        ] {
            let _ = session.run(frees);
            assert!(session.run(writes).is_err(), "{at}: {frees}; {writes}");
            let _ = session.run(&format!("{frees}; {writes}"));
            let _ = session.execute(frees, ());
            assert!(
                session.execute(writes, ()).is_err(),
                "{at}: {frees}; {writes}"
            );
            session.must("COMMIT");
        }
    }
}

/// All privileges that there are: `read_only` does not hold this account back.
pub fn a_session_that_reads_writes_nowhere(kind: Kind) {
    let Some(members) = Members::reading(kind, 2, "causal_seconds = 2") else {
        return;
    };
    members.table();
    for server in &members.servers {
        let mut root = server.connect();
        root.must("SET GLOBAL log_bin_trust_function_creators = 1");
    }
    let mut root = members.servers[0].connect();
    root.must("CREATE TABLE bank.plain (id INT PRIMARY KEY, n INT)");
    root.must("INSERT INTO bank.plain VALUES (1, 1)");
    root.must("CREATE PROCEDURE bank.writes() BEGIN SET SESSION TRANSACTION READ WRITE; INSERT INTO bank.plain VALUES (2, 2); END");
    root.must("CREATE PROCEDURE bank.frees() SET SESSION TRANSACTION READ WRITE");
    root.must("CREATE FUNCTION bank.f() RETURNS INT BEGIN SET SESSION TRANSACTION READ WRITE; INSERT INTO bank.plain VALUES (3, 3); RETURN 1; END");
    root.must("CREATE FUNCTION bank.g() RETURNS INT BEGIN SET SESSION TRANSACTION READ WRITE; RETURN 1; END");
    root.must("CREATE FUNCTION bank.w() RETURNS INT BEGIN INSERT INTO bank.plain VALUES (4, 4); RETURN 1; END");
    root.must("CREATE VIEW bank.v AS SELECT bank.g() AS a");
    if kind == Kind::MariaDb {
        root.must("CREATE SEQUENCE bank.s");
    }
    root.must("CREATE USER boss@'%' IDENTIFIED BY 'boss secret'");
    root.must("GRANT ALL PRIVILEGES ON *.* TO boss@'%' WITH GRANT OPTION");
    members.wait_for_replicas(0);
    let plain = "SELECT id, n FROM bank.plain ORDER BY id";
    for at in [1, 0] {
        if at == 0 {
            applies(&members.servers[1], false);
            members.reader_soon_at(&[0]);
        }
        let open = || {
            Session::try_open(members.read, "boss", "boss secret", Some("bank")).expect("let in")
        };
        let mut session = open();
        assert_eq!(members.at(&mut session), at);
        assert_eq!(
            session.text("SELECT @@read_only").expect("rows"),
            at.to_string()
        );
        for sql in TRIES {
            let done = session.run(sql);
            assert!(done.is_err(), "{at}: {sql}");
            // and the session is what it was
            assert_eq!(session.must_fail("INSERT INTO plain VALUES (8, 8)"), ONLY);
        }
        calls_set_nothing_back(&mut session, at);
        for sql in [
            "INSERT INTO plain VALUES (?, 9)",
            "UPDATE account SET amount = ? WHERE id = 1",
            "SET SESSION transaction_read_only = ?",
        ] {
            assert!(session.execute(sql, (0,)).is_err(), "{sql}");
        }
        if kind == Kind::MariaDb {
            for sql in [
                "SELECT NEXTVAL(s)",
                "SELECT SETVAL(s, 100)",
                "SELECT NEXT VALUE FOR s",
            ] {
                assert!(session.run(sql).is_err(), "{sql}");
            }
        }
        // a session that begins anew is one that reads
        session.conn().reset().expect("reset");
        assert_eq!(
            session.must_fail("INSERT INTO bank.plain VALUES (8, 8)"),
            ONLY
        );
        session
            .conn()
            .change_user(
                ::mysql::ChangeUserOpts::new()
                    .with_user(Some("boss".into()))
                    .with_pass(Some("boss secret".into())),
            )
            .expect("another user");
        assert_eq!(
            session.must_fail("INSERT INTO bank.plain VALUES (8, 8)"),
            ONLY
        );
        // the proxy's word is not the only one: the server's session is READ ONLY
        let name = match kind {
            Kind::MariaDb => "tx_read_only",
            Kind::MySql => "transaction_read_only",
        };
        assert_eq!(
            session
                .text(&format!("SELECT @@session.{name}"))
                .expect("rows"),
            "1"
        );
        assert_eq!(session.text(plain).expect("rows"), "1\t1");
        // what applications say of sessions that read
        for sql in [
            "SET SESSION TRANSACTION READ ONLY",
            "SET autocommit = 0",
            "SET autocommit = 1",
            "START TRANSACTION READ ONLY",
            "COMMIT",
            "SET NAMES utf8mb4",
            "USE bank",
            "SHOW TABLES",
        ] {
            session.must(sql);
        }
    }
    for server in &members.servers {
        let mut root = server.connect();
        assert_eq!(root.text(plain).expect("rows"), "1\t1");
        let sql = "SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'made'";
        assert_eq!(root.text(sql).expect("a count"), "0");
    }
}
