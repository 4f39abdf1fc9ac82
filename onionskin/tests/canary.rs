//! No plaintext of a protected column is anywhere but in the application: unique values go in through the proxy in
//! every kind of statement, those that succeed and those that fail, and then the data directory, all logs, the
//! server's own memory of statements, the proxy's log, and every byte sent to the server are searched for them.
//!
//! Each place is also searched for a value that *is* there, the content of an unprotected column, which shows that
//! the search works.

mod support;
use ::mysql::Value;
use support::*;

on_both_servers!(with_statement_binlog, with_row_binlog);

fn with_statement_binlog(kind: Kind) {
    no_plaintext_leaves_the_proxy(kind, Binlog::Statement);
}

fn with_row_binlog(kind: Kind) {
    no_plaintext_leaves_the_proxy(kind, Binlog::Row);
}

/// In every protected text.
const TEXT: &str = "Qz7KwVx9";
/// The leading digits of every protected integer.
const INTEGER: i64 = 7_351_926_400_000_000;
/// The leading digits of every protected decimal.
const DECIMAL: &str = "84620375119";
/// The beginning of every protected date.
const DATE: &str = "2097-03-1";
/// In every unprotected text.
const CONTROL: &str = "Jw5TkRn3";

const PROTECT: &str = r#"
[protect."app.t"]
s = []
e = ["eq"]
n = ["eq", "range"]
d = ["range"]
x = []
b = []
l = ["like"]
"#;

const CREATE: &str = "CREATE TABLE app.t (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    s VARCHAR(60), e VARCHAR(60), n BIGINT, d DATETIME(6), x DECIMAL(24, 4), b VARBINARY(60), l TEXT,
    open VARCHAR(60),
    UNIQUE KEY (e), KEY (n), KEY (d)
) DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_general_ci";

/// Makes values that occur once.
struct Canaries(i64);

impl Canaries {
    fn next(&mut self) -> i64 {
        self.0 += 1;
        self.0
    }
    fn text(&mut self) -> String {
        format!("{TEXT}{:04}", self.next())
    }
    fn integer(&mut self) -> i64 {
        INTEGER + self.next()
    }
    fn decimal(&mut self) -> String {
        format!("{DECIMAL}{:04}.25", self.next())
    }
    fn date(&mut self) -> String {
        let n = self.next();
        format!(
            "{DATE}{} {:02}:{:02}:{:02}.926535",
            n % 10,
            n % 24,
            n / 24 % 60,
            n / 1440 % 60
        )
    }
}

impl Canaries {
    /// A statement with values in the places of `{t}` (text), `{n}`, `{d}` and `{x}`.
    fn filled(&mut self, template: &str) -> String {
        let mut statement = String::new();
        for (i, part) in template.split('{').enumerate() {
            let (value, rest) = match (i, part.split_once('}')) {
                (1.., Some(("t", rest))) => (self.text(), rest),
                (1.., Some(("n", rest))) => (self.integer().to_string(), rest),
                (1.., Some(("d", rest))) => (self.date(), rest),
                (1.., Some(("x", rest))) => (self.decimal(), rest),
                _ => (String::new(), part),
            };
            statement.push_str(&value);
            statement.push_str(rest);
        }
        statement
    }
}

fn secrets() -> Vec<Pattern> {
    let mut patterns = Vec::new();
    for text in [TEXT, &INTEGER.to_string()[..8], DECIMAL, DATE] {
        patterns.extend(Pattern::of_text(text));
    }
    patterns.extend(Pattern::of_integers(INTEGER, 10_000));
    patterns
}

/// Runs statements in the text protocol and counts how many succeeded.
fn run_all(session: &mut Session, statements: &[String]) -> usize {
    statements
        .iter()
        .filter(|statement| session.run(statement).is_ok())
        .count()
}

fn no_plaintext_leaves_the_proxy(kind: Kind, binlog: Binlog) {
    let options = ServerOptions {
        general_log: true,
        slow_log: true,
        binlog: Some(binlog),
        performance_schema: true,
        // What is committed is in the files.
        flush_log_at_commit: 1,
        // A relay cannot look into TLS.
        tls: false,
        ..ServerOptions::default()
    };
    let Some(mut server) = Server::start(kind, options) else {
        return;
    };
    let relay = Relay::start(server.port());
    let options = ProxyOptions {
        // the relay is to read along; MariaDB 11.8 would offer TLS
        settings: "backend_tls = \"never\"\n".into(),
        tables: PROTECT.into(),
        backend: Some(relay.address()),
        log: Some("trace"),
        arguments: vec!["--trace".into()],
        ..ProxyOptions::default()
    };
    let mut proxy = Proxy::start_with(&server, options);
    // In direct mode, the relay stands in for the proxy, and everything must be found.
    let port = if direct_mode() {
        relay.port()
    } else {
        proxy.port()
    };
    let open = || Session::open(port, "root", "", None);
    server.connect().must("CREATE DATABASE app");

    let mut session = open();
    session.must(CREATE);
    let mut make = Canaries(0);
    write_what_must_succeed(&mut session, &mut make);
    write_prepared(&mut session, &mut make);
    fail_in_every_way(&mut session, &mut make);
    mangle(&mut session, &mut make);
    read_otherwise_by_servers(&mut session, &mut make);
    statements_by_other_ids(kind, port, server.port(), &mut make);
    blanks_beyond_ascii(port, &mut make);

    // A statement that waits for a lock is visible in the process list and in InnoDB's status.
    let mut locker = server.connect();
    locker.must("BEGIN");
    locker.must("SELECT COUNT(*) FROM app.t FOR UPDATE");
    let (s, e) = (make.text(), make.text());
    let waiting = std::thread::spawn({
        let mut session = open();
        session.must("SET innodb_lock_wait_timeout = 50");
        move || {
            session.run(&format!(
                "UPDATE app.t SET s = '{s}' WHERE open <> '{CONTROL}w' AND e <> '{e}'"
            ))
        }
    });
    let mut memory = Vec::new();
    wait_until(
        "a statement waits for the lock",
        std::time::Duration::from_secs(20),
        || {
            memory = server_memory(&mut server.connect(), kind);
            !find_all(&Pattern::of_text(&format!("{CONTROL}w")), &memory).is_empty()
        },
    );
    locker.must("ROLLBACK");
    waiting
        .join()
        .expect("no panic")
        .expect("the update goes on");

    let secrets = secrets();
    let controls = Pattern::of_text(CONTROL);
    let mut leaks: Vec<String> = Vec::new();
    let mut search = |place: &str, bytes: &[u8], has_control: bool| {
        leaks.extend(
            find_all(&secrets, bytes)
                .into_iter()
                .map(|leak| format!("{place}: {leak}")),
        );
        if has_control {
            assert!(
                !find_all(&controls, bytes).is_empty(),
                "{place}: the unprotected value is not found"
            );
        }
    };

    search("bytes sent to the server", &relay.sent_to_server(), true);
    search(
        "the server's answers to the proxy",
        &relay.sent_to_client(),
        true,
    );
    search("the server's memory of statements", &memory, true);
    search(
        "the server's memory of statements, later",
        &server_memory(&mut server.connect(), kind),
        true,
    );
    let log = std::fs::read(proxy.log_file()).unwrap_or_default();
    assert!(
        direct_mode() || log.len() > 1000,
        "the proxy traces what it does"
    );
    // The log holds no values at all, not even those of unprotected columns.
    search("the proxy's log", &log, false);
    assert!(
        find_all(&controls, &log).is_empty(),
        "an unprotected value is in the proxy's log"
    );

    let must_have_control = ["general.log", "slow.log", "binlog.000001", "t.ibd"];
    let mut search_files = |when: &str, server: &Server| {
        let mut in_redo = false;
        let mut seen = Vec::new();
        for file in server.data_files() {
            let name = file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let bytes = std::fs::read(&file).unwrap_or_default();
            search(
                &format!("{} {when}", file.display()),
                &bytes,
                must_have_control.contains(&name.as_str()),
            );
            in_redo |= (name.starts_with("ib_logfile") || name.starts_with("#ib_redo"))
                && !find_all(&Pattern::of_text(CONTROL), &bytes).is_empty();
            seen.push(name);
        }
        for name in must_have_control {
            assert!(
                seen.iter().any(|other| other == name),
                "{name} was searched"
            );
        }
        assert!(in_redo, "the unprotected value is found in the redo log");
    };
    // Pages reach the table's file some time after the commit.
    server.connect().must("FLUSH TABLES app.t FOR EXPORT");
    search_files("while the server runs", &server);
    drop(session);
    proxy.assert_healthy();
    proxy.terminate();
    server.shutdown();
    search_files("after a shutdown", &server);

    if direct_mode() {
        assert!(
            leaks.len() > 20,
            "without the proxy, the values are found: {leaks:?}"
        );
    } else {
        assert!(
            leaks.is_empty(),
            "plaintext of protected columns:\n{}",
            leaks.join("\n")
        );
    }
}

/// The statements of everyday life, in the text protocol.
fn write_what_must_succeed(session: &mut Session, make: &mut Canaries) {
    let (e, n, d) = (make.text(), make.integer(), make.date());
    session.must(&format!(
        "INSERT INTO app.t (s, e, n, d, x, b, l, open) VALUES ('{}', '{e}', {n}, '{d}', {}, '{}', '{}', '{CONTROL}1')",
        make.text(),
        make.decimal(),
        make.text(),
        make.text().repeat(500),
    ));
    let rows: Vec<String> = (0..50)
        .map(|i| {
            format!(
                "('{}', '{}', '{}', '{}', '{CONTROL}{i}')",
                make.text(),
                make.text(),
                make.integer(),
                make.date()
            )
        })
        .collect();
    session.must(&format!(
        "INSERT INTO app.t (s, e, n, d, open) VALUES {}",
        rows.join(", ")
    ));
    let hex: String = make.text().bytes().map(|b| format!("{b:02x}")).collect();
    session.must(&format!(
        "INSERT INTO app.t (b, open) VALUES (X'{hex}', '{CONTROL}2')"
    ));
    session.must(&format!(
        "INSERT INTO app.t (b, open) VALUES (0x{hex}, '{CONTROL}2')"
    ));

    for (condition, matches) in [
        (format!("e = '{e}'"), 1),
        (format!("n = {n}"), 1),
        (format!("d = '{d}'"), 1),
        (format!("e IN ('{}', '{e}')", make.text()), 1),
        (format!("n BETWEEN {INTEGER} AND {}", make.integer()), 51),
        (format!("d > '{}'", "2097-03-01 00:00:00"), 51),
        (format!("n > {n} AND e <> '{}'", make.text()), 50),
        (format!("l LIKE '{TEXT}%'"), 1),
        (format!("l LIKE '%{TEXT}_00%' AND n = {n}"), 1),
        (format!("l NOT LIKE '%{}%'", make.text()), 1),
    ] {
        let found = session.text(&format!("SELECT COUNT(*) FROM app.t WHERE {condition}"));
        assert_eq!(found.unwrap(), matches.to_string(), "{condition}");
        session.must(&format!(
            "SELECT s, e, n, d, x, b, open FROM app.t WHERE {condition} ORDER BY id"
        ));
        session.must(&format!("EXPLAIN SELECT id FROM app.t WHERE {condition}"));
    }
    // The old value goes to the undo log.
    session.must(&format!(
        "UPDATE app.t SET s = '{}', n = {} WHERE e = '{e}'",
        make.text(),
        make.integer()
    ));
    session.must(&format!(
        "UPDATE app.t SET open = '{CONTROL}3', d = '{}' WHERE id = 2",
        make.date()
    ));
    session.must(&format!(
        "INSERT INTO app.t (e, n, open) VALUES ('{e}', {}, '{CONTROL}4') ON DUPLICATE KEY UPDATE n = VALUES(n)",
        make.integer()
    ));
    session.must(&format!(
        "REPLACE INTO app.t (e, s, open) VALUES ('{e}', '{}', '{CONTROL}5')",
        make.text()
    ));
    session.must(&format!("DELETE FROM app.t WHERE e = '{}'", make.text()));
    session.must("BEGIN");
    session.must(&format!(
        "INSERT INTO app.t (e, s) VALUES ('{}', '{}')",
        make.text(),
        make.text()
    ));
    session.must("ROLLBACK");
}

/// The same with parameters, in the binary protocol.
fn write_prepared(session: &mut Session, make: &mut Canaries) {
    for i in 0..5 {
        let parameters: Vec<Value> = vec![
            make.text().into(),
            make.text().into(),
            make.integer().into(),
            make.date().into(),
            make.decimal().into(),
            make.text().into_bytes().into(),
            make.text().repeat(20 << i).into(),
            format!("{CONTROL}p{i}").into(),
        ];
        let found = [
            parameters[1].clone(),
            parameters[2].clone(),
            parameters[3].clone(),
        ];
        session
            .execute(
                "INSERT INTO app.t (s, e, n, d, x, b, l, open) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                parameters,
            )
            .unwrap();
        let text = session.execute_text(
            "SELECT COUNT(*) FROM app.t WHERE e = ? AND n >= ? AND d <= ?",
            found.to_vec(),
        );
        assert_eq!(text.unwrap(), "1");
        let pattern = format!("%{}%", make.text());
        let text = session.execute_text("SELECT COUNT(*) FROM app.t WHERE l LIKE ?", (pattern,));
        assert_eq!(text.unwrap(), "0");
        session
            .execute(
                "UPDATE app.t SET s = ? WHERE e = ?",
                (make.text(), found[0].clone()),
            )
            .unwrap();
    }
    // PREPARE as a statement. It may be refused.
    let (s, e) = (make.text(), make.text());
    let statements = [
        format!("SET @e = '{CONTROL}'"),
        format!("PREPARE p FROM 'INSERT INTO app.t (s, e) VALUES (''{s}'', ''{e}'')'"),
        "EXECUTE p".into(),
        "DEALLOCATE PREPARE p".into(),
    ];
    run_all(session, &statements);
}

/// Values that the server refuses: what stands in the error, and in the logs, is the proxy's responsibility as well.
fn fail_in_every_way(session: &mut Session, make: &mut Canaries) {
    session.must("SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'");
    let e = make.text();
    session.must(&format!(
        "INSERT INTO app.t (e, open) VALUES ('{e}', '{CONTROL}6')"
    ));
    assert_eq!(
        session.must_fail(&format!("INSERT INTO app.t (e) VALUES ('{e}')")),
        1062
    );
    assert_eq!(
        session
            .execute("INSERT INTO app.t (e) VALUES (?)", (&e,))
            .unwrap_err()
            .code,
        1062
    );
    let update = format!("UPDATE app.t SET e = '{e}' WHERE id = 3");
    assert_eq!(session.must_fail(&update), 1062);
    let long = make.text().repeat(20);
    assert_eq!(
        session.must_fail(&format!("INSERT INTO app.t (s) VALUES ('{long}')")),
        1406
    );
    let huge = format!("{}000000", make.integer());
    assert_eq!(
        session.must_fail(&format!("INSERT INTO app.t (n) VALUES ({huge})")),
        1264
    );
    let word = make.text();
    session.must_fail(&format!("INSERT INTO app.t (n) VALUES ('{word}')"));
    session.must_fail(&format!("INSERT INTO app.t (d) VALUES ('{word}')"));
    session.must_fail(&format!(
        "INSERT INTO app.t (d) VALUES ('{DATE}9 99:99:99')"
    ));
    session.must_fail(&format!(
        "INSERT INTO app.t (nothing, s) VALUES (1, '{word}')"
    ));
    session.must_fail(&format!("INSERT INTO app.t (s, e) VALUES ('{word}')"));
    // Warnings quote values, too.
    session.must("SET SESSION sql_mode = ''");
    run_all(
        session,
        &[
            format!("INSERT IGNORE INTO app.t (s, n) VALUES ('{long}', '{word}')"),
            "SHOW WARNINGS".into(),
        ],
    );
    session.must("SET SESSION sql_mode = DEFAULT");
}

/// What is cut short, unusual, or beyond what the proxy understands. Any answer is right as long as nothing leaks.
fn mangle(session: &mut Session, make: &mut Canaries) {
    let mut statements = Vec::new();
    let templates = [
        "INSERT INTO app.t (s) VALUES ('{t}'",
        "INSERT INTO app.t (s) VALUES ('{t}",
        "INSERT INTO app.t (s) VALUES (\"{t}\")",
        "INSERT INTO app.t SET s = '{t}', e = '{t}'",
        "INSERT INTO app.t VALUES (NULL, '{t}', '{t}', {n}, '{d}', {x}, '{t}', '{t}', 'o')",
        "INSERT INTO app.t (s) SELECT '{t}'",
        "INSERT INTO app.t (s) SELECT s FROM app.t WHERE e = '{t}'",
        "INSERT INTO app.t (open) SELECT s FROM app.t",
        "INSERT INTO app.t (open) SELECT CONCAT(s, '{t}') FROM app.t",
        "INSERT INTO app.t (s) VALUES (CONCAT('{t}', '{t}'))",
        "INSERT INTO app.t (s) VALUES (_utf8mb4'{t}')",
        "INSERT INTO app.t (s) VALUES (N'{t}')",
        "INSERT INTO app.t (s) VALUES ('{t}' '{t}')",
        "INSERT INTO app.t (s) VALUES (UPPER('{t}'))",
        "INSERT INTO app.t (n) VALUES ({n} + 1)",
        "INSERT INTO app.t (n) VALUES (-{n})",
        "INSERT INTO app.t (x) VALUES (1e0 * {x})",
        "INSERT INTO app.t (s) VALUES (COMPRESS('{t}'))",
        "/*!50000 INSERT INTO app.t (s) VALUES ('{t}') */",
        "INSERT /*! INTO app.t (s) */ VALUES ('{t}')",
        "insert into APP.T (s) values ('{t}')",
        "INSERT INTO `app`.`t` (`s`) VALUES ('{t}')",
        "INSERT INTO app . t (s) VALUES ('{t}')",
        "UPDATE app.t SET open = s",
        "UPDATE app.t SET open = CONCAT(s, '')",
        "UPDATE app.t a, app.t b SET a.s = '{t}' WHERE a.e = b.e",
        "UPDATE app.t SET s = CONCAT(s, '{t}')",
        "UPDATE app.t SET n = n + 1 WHERE n = {n}",
        "UPDATE app.t SET n = {n} WHERE s = '{t}'",
        "UPDATE app.t SET s = CASE id WHEN 1 THEN '{t}' ELSE '{t}' END",
        "UPDATE app.t SET s = IF(id = 1, '{t}', s)",
        "SELECT * FROM app.t WHERE s = '{t}'",
        "SELECT * FROM app.t WHERE s LIKE '%{t}%'",
        "SELECT * FROM app.t WHERE e LIKE '{t}%'",
        "SELECT * FROM app.t WHERE CONCAT(e, '') = '{t}'",
        "SELECT * FROM app.t WHERE e > '{t}'",
        "SELECT * FROM app.t WHERE (e, n) = ('{t}', {n})",
        "SELECT * FROM app.t WHERE n + 1 = {n}",
        "SELECT * FROM app.t WHERE '{t}' = e AND {n} < n",
        "SELECT * FROM app.t WHERE e = '{t}' COLLATE utf8mb4_bin",
        "SELECT CONCAT(s, '{t}') FROM app.t",
        "SELECT COALESCE(s, '{t}') FROM app.t",
        "SELECT (SELECT COUNT(*) FROM app.t WHERE e = '{t}')",
        "SELECT * FROM (SELECT * FROM app.t WHERE e = '{t}') x",
        "SELECT * FROM app.t HAVING e = '{t}'",
        "SELECT s FROM app.t WHERE e = '{t}' UNION SELECT '{t}'",
        "WITH x AS (SELECT * FROM app.t WHERE e = '{t}') SELECT * FROM x",
        "SELECT s INTO @s FROM app.t LIMIT 1",
        "SELECT * FROM app.t WHERE e = '{t}' INTO OUTFILE 'canary.out'",
        "SELECT * FROM app.t WHERE e = '{t}' PROCEDURE ANALYSE()",
        "DELETE FROM app.t WHERE s = '{t}'",
        "DELETE FROM app.t WHERE e = '{t}' OR s IS NULL AND n = {n}",
        "REPLACE app.t SELECT 1, '{t}', '{t}', {n}, '{d}', {x}, '{t}', '{t}', 'o'",
        "CREATE TABLE app.copy AS SELECT * FROM app.t",
        "CREATE TABLE app.copy SELECT '{t}' AS s FROM app.t",
        "CREATE VIEW app.v AS SELECT * FROM app.t WHERE e = '{t}'",
        // A default is part of the definition, which the server may see.
        "ALTER TABLE app.t ALTER COLUMN s SET DEFAULT 'visible'",
        "ALTER TABLE app.t ADD COLUMN more VARCHAR(60) AS (CONCAT(s, '{t}'))",
        "ALTER TABLE app.t PARTITION BY RANGE (n) (PARTITION p VALUES LESS THAN ({n}))",
        "CREATE TRIGGER app.g BEFORE INSERT ON app.t FOR EACH ROW SET NEW.s = '{t}'",
        "CREATE PROCEDURE app.p() INSERT INTO app.t (s) VALUES ('{t}')",
        "CALL app.p()",
        "CREATE EVENT app.ev ON SCHEDULE EVERY 1 DAY DO UPDATE app.t SET s = '{t}'",
        "BEGIN NOT ATOMIC INSERT INTO app.t (s) VALUES ('{t}'); END",
        "EXECUTE IMMEDIATE 'INSERT INTO app.t (s) VALUES (''{t}'')'",
        "HANDLER app.t OPEN",
        "LOCK TABLES app.t WRITE",
        "UNLOCK TABLES",
        "INSERT INTO app.t (s) VALUES ('{t}') RETURNING s",
        "INSERT INTO app.t (s) VALUES ROW('{t}')",
        "INSERT INTO app.t (s) VALUES ('{t}') AS new ON DUPLICATE KEY UPDATE s = new.s",
        "TABLE app.t",
        "DO (SELECT COUNT(*) FROM app.t WHERE e = '{t}')",
        "SET @x = (SELECT COUNT(*) FROM app.t WHERE e = '{t}')",
        "EXPLAIN INSERT INTO app.t (s) VALUES ('{t}')",
        "EXPLAIN FORMAT=JSON SELECT * FROM app.t WHERE e = '{t}'",
        "ANALYZE FORMAT=JSON SELECT * FROM app.t WHERE e = '{t}'",
        "EXPLAIN ANALYZE SELECT * FROM app.t WHERE e = '{t}'",
        "EXPLAIN ANALYZE UPDATE app.t SET e = '{t}'",
        "ANALYZE SELECT * FROM app.t WHERE e = '{t}'",
        "DESCRIBE SELECT * FROM app.t WHERE e = '{t}'",
        "SELECT 1; INSERT INTO app.t (s) VALUES ('{t}')",
        "INSERT INTO app.t (s) VALUES ('{t}'); INSERT INTO app.t (s) VALUES ('{t}'",
    ];
    for template in templates {
        statements.push(make.filled(template));
    }
    let succeeded = run_all(session, &statements);
    announce(&format!(
        "canary: {succeeded} of {} unusual statements were executed, the others refused",
        statements.len()
    ));
    // The same from the current database, without its name, under other lexical rules.
    session.must("USE app");
    for mode in [
        "ANSI_QUOTES",
        "NO_BACKSLASH_ESCAPES",
        "ANSI",
        "PIPES_AS_CONCAT",
        "HIGH_NOT_PRECEDENCE",
    ] {
        session.must(&format!("SET SESSION sql_mode = '{mode}'"));
        let mut statements = vec![
            format!("INSERT INTO t (s) VALUES ('{}')", make.text()),
            format!("INSERT INTO \"t\" (\"s\") VALUES ('{}')", make.text()),
            format!("INSERT INTO t (s) VALUES ('it''s {}')", make.text()),
            format!("INSERT INTO t (s) VALUES ('a' || '{}')", make.text()),
        ];
        // Where these are no strings, they hold names, which are looked up on the server.
        if mode == "NO_BACKSLASH_ESCAPES" {
            statements.push(format!(
                "INSERT INTO t (s, e) VALUES ('\\', '{} -- ')",
                make.text()
            ));
        }
        if !mode.starts_with("ANSI") {
            statements.push(format!("SELECT * FROM t WHERE e = \"{}\"", make.text()));
        }
        run_all(session, &statements);
    }
    session.must("SET SESSION sql_mode = DEFAULT");
}

/// Texts whose comments, quotes and statements end elsewhere for one server or another, and statements inside of statements.
fn read_otherwise_by_servers(session: &mut Session, make: &mut Canaries) {
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

/// Executions of statements that the client was given no id of: the server may know ours by it. To MariaDB, the highest id is that of
/// the statement that was prepared last.
fn statements_by_other_ids(kind: Kind, port: u16, server: u16, make: &mut Canaries) {
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

/// Names that only the server finds, because in its character set a byte beyond ASCII is a blank. In latin1 that is 0xA0.
fn blanks_beyond_ascii(port: u16, make: &mut Canaries) {
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

/// What the server remembers of statements and shows to an administrator.
fn server_memory(session: &mut Session, kind: Kind) -> Vec<u8> {
    let mut tables = vec![
        "performance_schema.events_statements_current",
        "performance_schema.events_statements_history",
        "performance_schema.events_statements_history_long",
        "performance_schema.events_statements_summary_by_digest",
        "performance_schema.prepared_statements_instances",
        "performance_schema.threads",
        "performance_schema.table_handles",
        "performance_schema.user_variables_by_thread",
        "information_schema.processlist",
        "information_schema.innodb_trx",
    ];
    if kind == Kind::MySql {
        tables.extend([
            "performance_schema.error_log",
            "performance_schema.data_locks",
        ]);
    }
    let mut memory = Vec::new();
    let statements = tables.iter().map(|table| format!("SELECT * FROM {table}"));
    let more = ["SHOW FULL PROCESSLIST", "SHOW ENGINE INNODB STATUS"].map(String::from);
    for statement in statements.chain(more) {
        let outcome = session
            .run(&statement)
            .unwrap_or_else(|e| panic!("{statement}: {e}"));
        for value in outcome.sets.iter().flat_map(|set| &set.rows).flatten() {
            if let Value::Bytes(bytes) = value {
                memory.extend_from_slice(bytes);
                memory.push(b'\n');
            }
        }
    }
    memory
}
