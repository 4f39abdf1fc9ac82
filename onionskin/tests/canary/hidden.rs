//! Texts that one server reads otherwise than another, and statements by other ids.

use super::*;

/// Texts whose comments, quotes and statements end elsewhere for one server or another, and
/// statements inside of statements.
pub fn read_otherwise_by_servers(session: &mut Session, make: &mut Canaries) {
    let run = |session: &mut Session, make: &mut Canaries, templates: &[&str]| {
        let statements: Vec<String> = templates.iter().map(|t| make.filled(t)).collect();
        run_all(session, &statements);
    };
    let templates = [
        "SHOW VARIABLES WHERE Variable_name = (SELECT 'x' FROM app.t WHERE e = '{t}' LIMIT 1)",
        "SHOW GLOBAL STATUS WHERE Value IN (SELECT open FROM app.t WHERE s = '{t}')",
        "SHOW WARNINGS; SHOW VARIABLES WHERE Value IN (SELECT open FROM app.t WHERE s = '{t}')",
        "IF 1 THEN EXECUTE IMMEDIATE 'INSERT INTO app.t (s) VALUES (''{t}'')'; END IF",
        "WHILE 0 DO EXECUTE IMMEDIATE 'INSERT INTO app.t (s) VALUES (''{t}'')'; END WHILE",
        "REPEAT EXECUTE IMMEDIATE 'INSERT INTO app.t (s) VALUES (''{t}'')'; UNTIL 1 END REPEAT",
        "SET STATEMENT max_statement_time = 9 FOR IF 1 THEN EXECUTE IMMEDIATE 'INSERT INTO app.t (s) VALUES (''{t}'')'; END IF",
        "SELECT 1 /*!50000 ; EXECUTE IMMEDIATE 'INSERT INTO app.t (s) VALUES (''{t}'')' ; */",
        "/*!50000 IF 1 THEN EXECUTE IMMEDIATE 'INSERT INTO app.t (s) VALUES (''{t}'')'; END IF */",
        "/*!99999 don't */ INSERT INTO app.t (s) VALUES ('{t}') /* it's */",
        "/*!99999 ' */ INSERT INTO app.t (s) VALUES ('{t}') -- ' */",
        "/*M!999999 /* ' */ ' */ INSERT INTO app.t (s) VALUES ('{t}') -- ' */",
        "/*!50000 /*!50000 SELECT 1 */ + 2 */* ' */ + (SELECT COUNT(*) FROM app.t WHERE e = '{t}') -- '",
        "SELECT /*+ SET_VAR(sort_buffer_size = '*/') */ id FROM app.t WHERE e = '{t}' -- ') */",
        "SELECT x'0a''\\' ' FROM app.t WHERE e = '{t}' -- '",
        "SELECT app.t.x'\\' ' FROM app.t WHERE e = '{t}' -- '",
    ];
    run(session, make, &templates);
    session.must("CREATE DATABASE IF NOT EXISTS elsewhere");
    session.must("USE elsewhere");
    let templates = [
        "INSERT INTO app /*!50000 . */ t (s) VALUES ('{t}')",
        "INSERT INTO app /*!50000 .t */ (s) VALUES ('{t}')",
        "INSERT INTO /*!50000 app */ . t (s) VALUES ('{t}')",
        "INSERT INTO app /*!99999 x */ /*!50000 . */ t (s) VALUES ('{t}')",
        "INSERT INTO app /*+ x */ . t (s) VALUES ('{t}')",
        "UPDATE app . /*+ x */ t SET s = '{t}'",
    ];
    run(session, make, &templates);
    session.must("SET SESSION sql_mode = 'ANSI_QUOTES'");
    let templates = [
        "SELECT @\"\\\", id FROM app.t WHERE e = '{t}' -- \"",
        "SELECT @@\"\\\", id FROM app.t WHERE e = '{t}' -- \"",
    ];
    run(session, make, &templates);
    // of MariaDB only
    let _ = session.run("SET SESSION sql_mode = 'ORACLE'");
    let templates = ["BEGIN EXECUTE IMMEDIATE 'INSERT INTO app.t (s) VALUES (''{t}'')'; END"];
    run(session, make, &templates);
    session.must("SET SESSION sql_mode = DEFAULT");
    session.must("USE app");
}

/// Executions of statements that the client was given no id of: the server may know ours by it. To
/// MariaDB, the highest id is that of the statement that was prepared last.
pub fn statements_by_other_ids(kind: Kind, port: u16, server: u16, make: &mut Canaries) {
    let mut client = RawClient::login(port);
    let mut direct = RawClient::login(server);
    let execution = |id: u32, text: &str| {
        let head = [0, 1, 0, 0, 0, 0, 1, 253, 0];
        let length = u8::try_from(text.len()).expect("a short text");
        [&id.to_le_bytes()[..], &head, &[length], text.as_bytes()].concat()
    };
    let id = u32::from_le_bytes(client.prepare(b"SELECT id FROM app.t WHERE e = ?"));
    for other in [id + 1, id + 2, 77_777] {
        client.command(23, &execution(other, &make.text()));
        direct.command(23, &execution(other, ""));
        let refused = client.read();
        assert!(matches!(&refused, Reply::Error(1243, _)), "{refused:?}");
        assert_eq!(refused, direct.read());
    }
    for other in [77_777, u32::MAX] {
        let is_known = other == u32::MAX && kind == Kind::MariaDb;
        let long = [&other.to_le_bytes()[..], &[0, 0], make.text().as_bytes()].concat();
        client.command(24, &long);
        let execution = execution(other, &make.text());
        // a value that was sent as long data does not stand in the execution
        let without = execution.len().min(if is_known { 13 } else { usize::MAX });
        client.command(23, &execution[..without]);
        match client.read() {
            // the definition, EOF, no rows, EOF
            Reply::Packet(_) if is_known => (0..3).for_each(|_| drop(client.read())),
            reply => assert!(
                !is_known && matches!(reply, Reply::Error(1243, _)),
                "{reply:?}"
            ),
        }
    }
    for (code, rest) in [(26, &[][..]), (28, &[1, 0, 0, 0])] {
        let payload = [&77_777u32.to_le_bytes()[..], rest].concat();
        client.command(code, &payload);
        direct.command(code, &payload);
        assert_eq!(client.read(), direct.read(), "command {code}");
    }
    client.command(25, &id.to_le_bytes());
    client.command(23, &execution(u32::MAX, &make.text()));
    assert!(matches!(client.read(), Reply::Error(1243, _)));
    client.command(23, &execution(id, &make.text()));
    assert!(matches!(client.read(), Reply::Error(1243, _)));
}

/// Names that only the server finds, because in its character set a byte beyond ASCII is a blank.
/// In latin1 that is 0xA0.
pub fn blanks_beyond_ascii(port: u16, make: &mut Canaries) {
    let statements: [&[u8]; 6] = [
        b"INSERT INTO\xa0app.t (s) VALUES ('{t}')",
        b"INSERT INTO\xa0app.t\xa0(s) VALUES ('{t}', 1)",
        b"UPDATE app.\xa0t SET s = '{t}' WHERE id = 1",
        b"SELECT 1; INSERT INTO app\xa0.t (s) VALUES ('{t}')",
        b"INSERT INTO app.t (s) VALUES ('\xe9{t}')",
        b"SELECT * FROM app.t AS gr\xf6\xdfe WHERE e = '{t}'",
    ];
    for charset in ["latin1", "latin2", "cp1251", "gbk", "utf8mb4"] {
        let mut client = RawClient::login(port);
        client.query(format!("SET NAMES {charset}").as_bytes());
        for statement in statements {
            let mut sql = Vec::new();
            for (i, part) in statement.split(|b| *b == b'{').enumerate() {
                if i > 0 {
                    sql.extend_from_slice(make.text().as_bytes());
                }
                sql.extend_from_slice(part.strip_prefix(b"t}").unwrap_or(part));
            }
            client.query(&sql);
        }
    }
}
