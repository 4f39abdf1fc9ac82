//! Protected columns at replicas: the same answers at both addresses, and nothing that is known of
//! one server's tables is believed of another's.

use super::*;

/// Whatever reads is answered at a replica as at the primary.
pub fn both_addresses_answer_alike(kind: Kind) {
    let Some(members) = Members::reading(kind, 2, "causal_seconds = 5") else {
        return;
    };
    let mut root = members.proxy.connect();
    root.must("CREATE TABLE bank.people (id INT PRIMARY KEY, name VARCHAR(30) ENCRYPTED FOR (eq, like), born DATE ENCRYPTED FOR (eq, range), note TEXT ENCRYPTED FOR (), amount INT ENCRYPTED FOR (), open VARCHAR(9))");
    for id in 1..40 {
        root.must(&format!(
            "INSERT INTO bank.people VALUES ({id}, 'person {}', '19{:02}-01-02', 'note {id}', {}, 'o{}')",
            id % 7,
            40 + id,
            id * 3,
            id % 3
        ));
    }
    let mut first = members.app_soon();
    let mut second = members.reader_soon_at(&[1]);
    for sql in [
        "SELECT * FROM people ORDER BY id",
        "SELECT id FROM people WHERE name = 'person 3' ORDER BY id",
        "SELECT id FROM people WHERE name IN ('person 3', 'person 5') ORDER BY id",
        "SELECT id, name FROM people WHERE name LIKE '%rson 4%' ORDER BY id",
        "SELECT id FROM people WHERE born BETWEEN '1950-01-01' AND '1960-12-31' ORDER BY id",
        "SELECT name, COUNT(*), SUM(amount) FROM people GROUP BY name ORDER BY name",
        "SELECT MAX(born), MIN(amount) FROM people",
        "SELECT UPPER(name) FROM people WHERE id = 4",
        "SELECT a.id, b.id FROM people a JOIN people b ON a.name = b.name WHERE a.id = 3 ORDER BY b.id",
        "SELECT DISTINCT name FROM people ORDER BY name DESC",
        "SHOW CREATE TABLE people",
        "SHOW COLUMNS FROM people",
        "WITH x AS (SELECT id, name FROM people WHERE open = 'o1') SELECT * FROM x ORDER BY id",
        "EXPLAIN SELECT id FROM people WHERE id = 1",
    ] {
        let texts = [first.text(sql), second.text(sql)];
        match &texts {
            [Ok(one), Ok(other)] => assert_eq!(one, other, "{sql}"),
            [Err(one), Err(other)] => assert_eq!(one.code, other.code, "{sql}"),
            other => panic!("{sql}: {other:?}"),
        }
    }
    for (sql, value) in [
        (
            "SELECT id FROM people WHERE name = ? ORDER BY id",
            "person 2",
        ),
        (
            "SELECT id, note FROM people WHERE born > ? ORDER BY id",
            "1970-01-01",
        ),
    ] {
        for _ in 0..3 {
            let texts = [
                first.execute_text(sql, (value,)),
                second.execute_text(sql, (value,)),
            ];
            let [one, other] = texts.map(|text| text.expect("rows"));
            assert!(!one.is_empty());
            assert_eq!(one, other, "{sql}");
        }
    }
    // a definition is known at once at its primary, and at the replica when it has come there
    let mut define = members.proxy.connect();
    define.must("ALTER TABLE bank.people ADD COLUMN more VARCHAR(9) ENCRYPTED FOR (eq)");
    define.must("UPDATE bank.people SET more = 'x' WHERE id = 5");
    let read = second.text("SELECT id, more FROM people WHERE more = 'x'");
    assert_eq!(read.expect("rows"), "5\tx");
}

/// The primary has a table protected by a migration while the replica still has the plain one, and
/// gets the switch in the midst of reads. Answers are right, or refusals; and once the primary's
/// sessions know of the protection, no value goes to the replica in clear text.
pub fn a_replica_behind_a_migration_gets_no_clear_values(kind: Kind) {
    let Some(members) = Members::reading_with(
        kind,
        2,
        "max_lag_seconds = 120\nwithout_replica = \"refuse\"",
        true,
    ) else {
        return;
    };
    let mut root = members.servers[0].connect();
    root.must("CREATE TABLE bank.people (id INT PRIMARY KEY, name VARCHAR(40))");
    for id in 1..30 {
        root.must(&format!(
            "INSERT INTO bank.people VALUES ({id}, 'before {id}')"
        ));
    }
    members.wait_for_replicas(0);
    delay(&members.servers[1], 600);
    let mut writer = members.app_soon();
    let mut reader = members.reader_soon_at(&[1]);
    let mut prepared = members.reader_soon_at(&[1]);
    let by_name = "SELECT id FROM people WHERE name = ?";
    assert_eq!(
        reader
            .text("SELECT id FROM people WHERE name = 'before 7'")
            .expect("rows"),
        "7"
    );
    assert_eq!(
        prepared.execute_text(by_name, ("before 7",)).expect("rows"),
        "7"
    );

    must_migrate(
        &members.servers[0],
        Some(&members.proxy),
        &["bank.people", "--encrypt", "name: eq", "--drop-old"],
    );
    // the primary's sessions have the protected one
    let found = writer.text("SELECT id FROM people WHERE name = 'before 7'");
    assert_eq!(found.expect("rows"), "7");
    writer.must("INSERT INTO people VALUES (100, 'after the switch')");

    let at_replica = "SHOW CREATE TABLE bank.people";
    let shown = members.servers[1]
        .connect()
        .text(at_replica)
        .expect("a table");
    assert!(
        !shown.contains("$enc"),
        "the replica is not behind: {shown}"
    );

    // from now on nothing in clear text: the replica may get the switch at any moment
    let mark = "zq4marker";
    for _ in 0..3 {
        for failure in [
            reader.run(&format!("SELECT id FROM people WHERE name = '{mark} 1'")),
            prepared.execute(by_name, (format!("{mark} 2"),)),
            members.reader().expect("let in").run(&format!(
                "SELECT id FROM bank.people WHERE name = '{mark} 3' OR id = 1"
            )),
        ]
        .map(|done| done.expect_err("it is refused"))
        {
            assert_eq!(failure.code, 1412, "{failure}");
            assert!(failure.message.contains("OS1222"), "{failure}");
        }
    }
    // other tables are read
    reader.must("SELECT 1");
    delay(&members.servers[1], 0);
    let begin = Instant::now();
    let mut answers = [0, 0];
    loop {
        // the applier was stopped for a moment
        for session in [&mut reader, &mut prepared] {
            if session.run("SELECT 1").is_err() {
                *session = members.reader_soon_at(&[1]);
            }
        }
        let texts = [
            reader.text(&format!(
                "SELECT COUNT(*) FROM people WHERE name IN ('{mark} 4', 'after the switch')"
            )),
            prepared.execute_text(
                "SELECT COUNT(*) FROM people WHERE name IN (?, ?)",
                (format!("{mark} 5"), "before 7"),
            ),
        ];
        let mut are_done = true;
        for text in texts {
            match text {
                Ok(count) => {
                    answers[0] += 1;
                    // the row of after the switch comes behind it
                    assert!(["0", "1"].contains(&count.as_str()), "{count}");
                    are_done &= count == "1";
                }
                Err(failure) => {
                    answers[1] += 1;
                    let is_left = failure.is_disconnect() || failure.code == DEMOTED;
                    assert!(is_left || [1412, 1146].contains(&failure.code), "{failure}");
                    are_done = false;
                }
            }
        }
        if are_done {
            break;
        }
        assert!(
            begin.elapsed() < SOON,
            "{answers:?} {}",
            members.proxy.log()
        );
    }
    let log = members.servers[1].data_dir().join("general.log");
    let log = fs::read(log).expect("the general log");
    let log = String::from_utf8_lossy(&log);
    assert!(log.contains("before 7"), "the log is kept");
    let leaks: Vec<&str> = log.lines().filter(|line| line.contains(mark)).collect();
    assert!(leaks.is_empty(), "{leaks:?}");
}

/// Has a replica apply everything so many seconds later.
fn delay(server: &Server, seconds: u32) {
    let [stop, change, start] = match server.kind() {
        Kind::MariaDb => [
            "STOP SLAVE",
            "CHANGE MASTER TO MASTER_DELAY =",
            "START SLAVE",
        ],
        Kind::MySql => [
            "STOP REPLICA SQL_THREAD",
            "CHANGE REPLICATION SOURCE TO SOURCE_DELAY =",
            "START REPLICA SQL_THREAD",
        ],
    };
    let mut root = server.connect();
    root.must(stop);
    root.must(&format!("{change} {seconds}"));
    root.must(start);
}
