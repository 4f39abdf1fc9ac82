//! What the engine is not asked, and what it may take.

use super::*;

pub fn what_is_refused(kind: Kind) {
    let Some(mut pair) = stage(kind) else { return };
    pair.protected
        .must("CREATE TEMPORARY TABLE passing (word VARCHAR(20))");
    for sql in [
        "SELECT UPPER(name), SLEEP(0) FROM user",
        "SELECT GET_LOCK(name, 1) FROM user",
        "SELECT LOAD_FILE(name) FROM user",
        "SELECT UPPER(name), @n := 1 FROM user",
        "SELECT UPPER(name), CONNECTION_ID() FROM user",
        "SELECT UPPER(name), CURRENT_USER() FROM user",
        "SELECT UPPER(name), CURRENT_USER FROM user",
        "SELECT UPPER(name), VERSION() FROM user",
        "SELECT UPPER(name), @@hostname FROM user",
        "SELECT UPPER(name), LAST_INSERT_ID(5) FROM user",
        "SELECT UPPER(name), FOUND_ROWS() FROM user",
        "SELECT UPPER(name) INTO @x FROM user LIMIT 1",
        "SELECT UPPER(name) INTO OUTFILE '/tmp/x' FROM user",
        "SELECT UPPER(name) FROM user, mysql.user AS m",
        "SELECT UPPER(name), t.table_name FROM user, information_schema.tables t",
        "SELECT UPPER(name) FROM user JOIN passing ON passing.word = name",
        "SELECT app.secret(name) FROM user",
        "SELECT UPPER(name) /*!50000 , 1 */ FROM user",
    ] {
        let failure = pair.protected.run(sql).expect_err(sql);
        assert!(failure.message.starts_with("OS1"), "{sql}: {failure}");
        assert_eq!(failure.code, 1235, "{sql}");
    }
    assert_eq!(
        pair.protected
            .text("SELECT UPPER(name) FROM user WHERE id = 1")
            .unwrap(),
        "ALICE"
    );
    // without a scratch engine, and with one that is gone
    let without = Proxy::start_with(
        &pair.behind,
        ProxyOptions {
            keys: Some(pair.proxy.keys()),
            ..ProxyOptions::default()
        },
    );
    let mut session = without.connect_to("app");
    assert_eq!(session.must_fail("SELECT UPPER(name) FROM user"), 1235);
    pair.engine_mut().kill9();
    let failure = pair
        .protected
        .run("SELECT UPPER(name) FROM user")
        .unwrap_err();
    assert!(failure.message.starts_with("OS1208"), "{failure}");
    pair.protected.must("SELECT name FROM user");
    pair.engine_mut().restart();
    assert_eq!(
        pair.protected
            .text("SELECT UPPER(name) FROM user WHERE id = 1")
            .unwrap(),
        "ALICE"
    );
    pair.proxy.assert_healthy();
}

pub fn bounds_are_errors(kind: Kind) {
    let Some(mut pair) = Pair::with_settings(
        kind,
        "CREATE TABLE t (id INT PRIMARY KEY, word VARCHAR(2000) {})",
        "scratch_rows = 50\nscratch_memory = 40000",
    ) else {
        return;
    };
    for id in 0..50 {
        pair.both(&format!("INSERT INTO t VALUES ({id}, 'x')"));
    }
    let all = "SELECT COUNT(UPPER(word)) FROM t";
    pair.compare(all, &[]);
    pair.both("INSERT INTO t VALUES (50, 'x')");
    let failure = pair.protected.run(all).unwrap_err();
    assert!(failure.message.starts_with("OS1209"), "{failure}");
    // narrowed by the server
    pair.compare("SELECT COUNT(UPPER(word)) FROM t WHERE id < 50", &[]);
    let joined =
        "SELECT COUNT(*) FROM t a JOIN t b ON UPPER(a.word) = b.word WHERE a.id < 26 AND b.id < 26";
    let failure = pair.protected.run(joined).unwrap_err();
    assert!(failure.message.starts_with("OS1209"), "{failure}");
    pair.both(&format!(
        "UPDATE t SET word = '{}' WHERE id < 30",
        "y".repeat(1500)
    ));
    let failure = pair
        .protected
        .run("SELECT COUNT(UPPER(word)) FROM t WHERE id < 30")
        .unwrap_err();
    assert!(failure.message.starts_with("OS1209"), "{failure}");
    pair.compare("SELECT COUNT(UPPER(word)) FROM t WHERE id < 20", &[]);
    pair.conclude(0);
}

pub fn the_engine_is_quiet_and_bounded(kind: Kind) {
    let Some(mut pair) = Pair::with_settings(
        kind,
        "CREATE TABLE t (id INT PRIMARY KEY, word VARCHAR(20) {})",
        "scratch_seconds = 1",
    ) else {
        return;
    };
    for id in 0..40 {
        pair.both(&format!("INSERT INTO t VALUES ({id}, 'word{id}')"));
    }
    let mut root = pair.engine().connect();
    root.must("SET GLOBAL general_log = 1");
    let short = "SELECT REVERSE(word) FROM t WHERE id = 7";
    pair.compare(short, &[]);
    root.must("SET GLOBAL general_log = 0");
    let logged = pair.engine().data_files().iter().any(|file| {
        let bytes = std::fs::read(file).unwrap_or_default();
        file.extension().is_some_and(|e| e == "log")
            && !find_all(&Pattern::of_text("REVERSE(word)"), &bytes).is_empty()
    });
    assert!(!logged, "the engine logs statements");
    // a join that would take very long
    let long = "SELECT COUNT(*) FROM t a, t b, t c, t d, t e, t f WHERE CONCAT(a.word, b.word, c.word, d.word, e.word, f.word) LIKE '%y%x'";
    let failure = pair.protected.run(long).unwrap_err();
    assert!(failure.message.starts_with("OS1209"), "{failure}");
    pair.compare(short, &[]);
    // connections that were ended meanwhile
    let processes = root
        .text("SELECT GROUP_CONCAT(id) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND user = 'root'")
        .unwrap();
    for id in processes.split(',') {
        let _ = root.run(&format!("KILL {id}"));
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    pair.compare(short, &[]);
    pair.both("INSERT INTO t VALUES (50, CONCAT('a', 'b'))");
    pair.compare("SELECT UPPER(word) FROM t WHERE id = 50", &[]);
    // a log that no session can leave
    if kind == Kind::MySql {
        root.must("SET GLOBAL slow_query_log = 1");
        let mut other = pair.proxy.connect_to("app");
        let failure = other.run(short).unwrap_err();
        assert!(failure.message.starts_with("OS1208"), "{failure}");
        root.must("SET GLOBAL slow_query_log = 0");
    }
    pair.conclude(0);
}

/// The aim is 5 ms beyond a plain server's time, on a quiet machine; `ONIONSKIN_TEST_LONG` asks for
/// it.
pub fn a_hundred_rows_take_milliseconds(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(
        kind,
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(40) {eq}, age INT {range}, note TEXT {})",
    ) else {
        return;
    };
    for id in 0..100 {
        let note = "n".repeat(100);
        pair.both(&format!(
            "INSERT INTO t VALUES ({id}, 'name {id}', {id}, '{note}')"
        ));
    }
    let sql = "SELECT UPPER(name), age * 2, LEFT(note, 10) FROM t WHERE CHAR_LENGTH(name) > 3 ORDER BY LOWER(name)";
    let median = |session: &mut Session| {
        let mut times: Vec<f64> = (0..150)
            .map(|_| {
                let start = std::time::Instant::now();
                assert_eq!(session.must(sql).sets[0].rows.len(), 100);
                start.elapsed().as_secs_f64() * 1000.0
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (plain, protected) = (median(&mut pair.plain), median(&mut pair.protected));
    announce(&format!(
        "tier 3 over 100 rows on {}: {protected:.2} ms, a plain server {plain:.2} ms",
        kind.name()
    ));
    let limit = if long_run() { 5.0 } else { 50.0 };
    assert!(protected - plain < limit, "{protected} ms and {plain} ms");
}
