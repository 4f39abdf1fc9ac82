//! Cryptographic functions that the proxy computes: the same results as the server's, and neither
//! key nor text on the server.

#[path = "functions/places.rs"]
mod places;

use ::mysql::Value;
use ::mysql::prelude::Queryable;
use onionskin_testkit::*;
use places::{calls_are_computed_where_they_stand, what_is_not_understood_is_refused};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

on_both_servers!(
    results_are_the_servers,
    odd_calls_come_to_the_same,
    nothing_reaches_the_server,
    cells_are_opened,
    conditions_find_ciphertexts,
    cells_with_their_own_vectors_are_opened,
    protected_columns_take_results,
    secrets_stay_with_the_proxy,
    prepared_statements_compute_anew,
    calls_are_computed_where_they_stand,
    what_is_not_understood_is_refused,
    without_the_switch_nothing_changes,
);

/// Behind the settings, as sections of the configuration.
const EVALUATE: &str = "[functions]\nevaluate = true\nsecrets = [\"key\", \"@Kek\"]\n";

fn pair(kind: Kind) -> Option<Pair> {
    pair_with(kind, EVALUATE)
}

fn pair_with(kind: Kind, settings: &str) -> Option<Pair> {
    Pair::start_with(
        kind,
        PairOptions {
            settings,
            server: ServerOptions {
                general_log: true,
                binlog: Some(Binlog::Row),
                ..ServerOptions::default()
            },
            ..PairOptions::default()
        },
    )
}

/// What both say, without the count of warnings: those about keys and vectors are not raised here.
fn alike(said: &Said) -> (String, String) {
    let cut = |words: &str| {
        let counted = words.strip_suffix(" warnings");
        let shorter = counted.and_then(|words| words.rsplit_once(", "));
        shorter.map_or(words, |(words, _)| words).to_owned()
    };
    (cut(&said.plain), cut(&said.protected))
}

#[track_caller]
fn same(pair: &mut Pair, sql: &str) -> String {
    let (plain, protected) = alike(&pair.say(sql));
    assert_eq!(plain, protected, "{sql}");
    plain
}

fn modes(kind: Kind) -> Vec<String> {
    if kind == Kind::MariaDb {
        return vec![String::new()];
    }
    let bits = [128, 192, 256];
    let modes = ["ecb", "cbc", "cfb1", "cfb8", "cfb128", "ofb"];
    let all = bits.map(|bits| modes.map(|mode| format!("aes-{bits}-{mode}")));
    all.into_iter().flatten().collect()
}

fn results_are_the_servers(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let mut random = StdRng::seed_from_u64(23);
    let mut hex = |count: usize| -> String {
        let bytes = (0..count).map(|_| format!("{:02x}", random.random::<u8>()));
        bytes.collect()
    };
    for mode in modes(kind) {
        if !mode.is_empty() {
            pair.run(&format!("SET block_encryption_mode = '{mode}'"));
        }
        let vector = match mode.ends_with("ecb") || mode.is_empty() {
            true => String::new(),
            false => format!(", x'{}'", hex(16)),
        };
        for round in 0..12 {
            let text = hex(round * 7 % 71);
            let key = hex(round * 11 % 53);
            let call = format!("AES_ENCRYPT(x'{text}', x'{key}'{vector})");
            same(
                &mut pair,
                &format!("SELECT HEX({call}), {call} IS NULL AS n"),
            );
            let opened = format!("AES_DECRYPT({call}, x'{key}'{vector})");
            same(&mut pair, &format!("SELECT {opened} AS a"));
            same(&mut pair, &format!("SELECT {opened}"));
        }
        if kind == Kind::MySql {
            for kdf in [
                "'hkdf'",
                "'hkdf', 'salt', 'info'",
                "'pbkdf2_hmac', 'salt', 2000",
            ] {
                let rest = format!("'key', x'{}', {kdf}", hex(16));
                same(
                    &mut pair,
                    &format!("SELECT HEX(AES_ENCRYPT('text', {rest}))"),
                );
            }
        }
    }
    let named = format!("SELECT AES_ENCRYPT('{}', 'key')", "ü".repeat(300));
    if kind == Kind::MySql {
        pair.run("SET block_encryption_mode = 'aes-128-ecb'");
    }
    same(&mut pair, &named);
    let digests: &[&str] = match kind {
        Kind::MySql => &["SHA2({}, 256)", "SHA2({}, 384)"],
        _ => &[
            "MD5({})",
            "SHA({})",
            "SHA1({})",
            "SHA2({}, 224)",
            "SHA2({}, 512)",
            "PASSWORD({})",
            "OLD_PASSWORD({})",
            "HEX(DES_ENCRYPT({}, 'key'))",
            "HEX(ENCODE({}, 'key'))",
        ],
    };
    for call in digests {
        for text in [
            "'text'",
            "''",
            "'Grüße'",
            "NULL",
            "5",
            "-1.50",
            "x'00ff'",
            "TRUE",
            "'a' 'b'",
        ] {
            same(&mut pair, &format!("SELECT {}", call.replace("{}", text)));
        }
    }
}

/// Calls that a user of the servers would hardly write, from files: each comes to what the server
/// says, or is refused.
fn odd_calls_come_to_the_same(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let probes = match kind {
        Kind::MySql => include_str!("functions/mysql.sql"),
        _ => include_str!("functions/mariadb.sql"),
    };
    let (mut equal, mut refused, mut more, mut different) = (0, Vec::new(), 0, Vec::new());
    for sql in probes.lines() {
        let sql = sql.trim_end_matches(';');
        if sql.is_empty() || sql.starts_with("--") {
            continue;
        }
        let said = pair.say(sql);
        let (plain, protected) = alike(&said);
        if said.is_refused() {
            refused.push(sql);
            continue;
        }
        // the server does not have the function any more
        if ["1305 ", "1064 ", "1046 ", "1123 "]
            .iter()
            .any(|code| plain.starts_with(code))
        {
            more += 1;
            continue;
        }
        match plain == protected {
            true => equal += 1,
            false => different.push(format!("{sql}\n  {plain}\n  {protected}")),
        }
    }
    println!(
        "{kind:?}: {equal} equal, {} refused, {more} that the server lacks",
        refused.len()
    );
    for sql in &refused {
        println!("refused: {sql}");
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(equal > 100, "{equal}");
    assert!(refused.len() < 60, "{refused:#?}");
}

fn nothing_reaches_the_server(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let session = &mut pair.protected;
    session.must("CREATE TABLE t (id INT PRIMARY KEY, a VARBINARY(200), d VARCHAR(200))");
    session.must("SET @key = 'sesame-variable'");
    for sql in [
        "INSERT INTO t VALUES (1, AES_ENCRYPT('sesame-text', 'sesame-key'), MD5('sesame-digest'))",
        "INSERT INTO t VALUES (2, AES_ENCRYPT('sesame-text', @key), SHA2(CONCAT('sesame', '-salt'), 256))",
        "UPDATE t SET d = SHA1('sesame-digest') WHERE a = AES_ENCRYPT('sesame-text', 'sesame-key')",
        "SELECT id, AES_ENCRYPT('sesame-item', 'sesame-key'), AES_DECRYPT(a, 'sesame-key') FROM t",
        "SELECT CAST(AES_DECRYPT(a, @key) AS CHAR) AS x FROM t WHERE id = 2",
        "DELETE FROM t WHERE a = AES_ENCRYPT('sesame-other', UNHEX(SHA2('sesame-key', 512)))",
        "SELECT id FROM t WHERE AES_DECRYPT(a, 'sesame-key') = 'sesame-found'",
        "SELECT AES_DECRYPT(AES_ENCRYPT('sesame-text', 'sesame-key'), 'sesame-key')",
    ] {
        session.must(sql);
    }
    let values = |values: &[&str]| values.iter().map(Value::from).collect::<Vec<_>>();
    session
        .execute(
            "INSERT INTO t VALUES (3, AES_ENCRYPT(?, ?), ?)",
            values(&["sesame-bound", "sesame-bound-key", "open"]),
        )
        .unwrap();
    session
        .execute(
            "SELECT AES_DECRYPT(a, ?) FROM t",
            values(&["sesame-bound-key"]),
        )
        .unwrap();
    // what is refused does not go either
    for sql in [
        "SELECT AES_ENCRYPT(d, 'sesame-refused') FROM t",
        "SELECT * FROM t WHERE AES_DECRYPT(a, 'sesame-refused') < 'sesame-x'",
        "SELECT MD5(CONCAT(d, 'sesame-refused')) FROM t",
        "PREPARE s FROM 'SELECT AES_ENCRYPT(''sesame-refused'', 1)'",
        "SELECT /*! AES_ENCRYPT('sesame-refused', 1), */ 1",
        "SELECT AES_ENCRYPT('sesame-refused')",
        "SELECT AES_ENCRYPT('sesame-refused', 'sesame",
        "SELECT MD5('sesame-fine'), AES_ENCRYPT(d, 'sesame-refused') FROM t",
        "SELECT AES_ENCRYPT('sesame-refused', @other)",
        "SET @key = CONCAT('sesame-refused', @other)",
    ] {
        session.must_fail(sql);
    }
    let shown = "SELECT GROUP_CONCAT(d ORDER BY id) FROM t";
    assert!(session.text(shown).unwrap().contains("open"));
    if kind == Kind::MySql {
        let seen = "SELECT COUNT(*) FROM performance_schema.events_statements_history_long \
             WHERE SQL_TEXT LIKE CONCAT('%ses', 'ame%')";
        pair.behind.connect().must("SELECT 1");
        assert_eq!(pair.behind.connect().text(seen).unwrap(), "0");
    }
    pair.assert_no_trace_of(&["sesame", "736573616D65", "736573616d65"]);
}

const CELLS: &str = "CREATE TABLE t (id INT PRIMARY KEY, a VARBINARY(200), b BLOB, h VARCHAR(200))";

fn cells_are_opened(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.run(CELLS);
    for (id, text) in ["Anna", "Grüße aus Köln", "", "日本語"].iter().enumerate() {
        pair.run(&format!(
            "INSERT INTO t VALUES ({id}, AES_ENCRYPT('{text}', 'k'), AES_ENCRYPT('{text}', 'k'), \
             HEX(AES_ENCRYPT('{text}', 'k')))"
        ));
    }
    pair.run("INSERT INTO t VALUES (8, NULL, NULL, NULL), (9, 'damaged', 'damaged', 'damaged')");
    for sql in [
        "SELECT id, AES_DECRYPT(a, 'k') FROM t ORDER BY id",
        "SELECT id, AES_DECRYPT(a, 'k') AS x, b, AES_DECRYPT(b, 'k') y FROM t ORDER BY id",
        "SELECT t.*, AES_DECRYPT(t.a, 'k') FROM t ORDER BY id LIMIT 3",
        "SELECT AES_DECRYPT(UNHEX(h), 'k') AS `the text` FROM t ORDER BY id",
        "SELECT CAST(AES_DECRYPT(a, 'k') AS CHAR) FROM t WHERE id < 9 ORDER BY id",
        "SELECT CONVERT(AES_DECRYPT(a, 'k') USING utf8mb4) c FROM t WHERE id < 9 ORDER BY id",
        "SELECT AES_DECRYPT(a, 'other') FROM t WHERE id = 0",
        "SELECT AES_DECRYPT(a, NULL) FROM t WHERE id = 0",
        "SELECT COUNT(*) FROM t WHERE a = AES_ENCRYPT('Anna', 'k')",
        "SELECT AES_DECRYPT(u.a, 'k') FROM t JOIN t u ON t.a = u.a AND t.id = u.id ORDER BY u.id",
        "SELECT AES_DECRYPT(a, 'k') AS x FROM t ORDER BY id DESC LIMIT 2",
        "SELECT AES_DECRYPT(a, 'k') FROM t WHERE FALSE",
        "SELECT AES_DECRYPT(missing, 'k') FROM t",
        "SELECT SQL_NO_CACHE AES_DECRYPT(a, 'k') FROM t WHERE id = (SELECT MAX(id) FROM t)",
    ] {
        same(&mut pair, sql);
        let said = pair.execute(sql);
        assert_eq!(said.plain, said.protected, "prepared: {sql}");
    }
    let sql = "SELECT AES_DECRYPT(a, ?) FROM t WHERE id = ?";
    for (key, id) in [("k", 1), ("other", 1), ("k", 3), ("k", 77)] {
        let parameters = || vec![Value::from(key), Value::from(id)];
        let rows = pair.sessions().map(|s| {
            let rows: Vec<Option<Vec<u8>>> = s.conn().exec(sql, parameters()).unwrap();
            rows
        });
        assert_eq!(rows[0], rows[1], "{key} {id}");
    }
}

fn conditions_find_ciphertexts(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.run(CELLS);
    pair.run(
        "ALTER TABLE t ADD n INT DEFAULT 0, ADD c CHAR(60) CHARACTER SET latin1, ADD INDEX (a)",
    );
    for (id, text) in ["Anna", "anna", "", "Anna ", "5"].iter().enumerate() {
        pair.run(&format!(
            "INSERT INTO t (id, a, b, h, c) VALUES ({id}, AES_ENCRYPT('{text}', 'k'), \
             AES_ENCRYPT('{text}', 'k'), HEX(AES_ENCRYPT('{text}', 'k')), 'x')"
        ));
    }
    pair.run("INSERT INTO t (id, a) VALUES (8, NULL), (9, 'damaged')");
    for column in ["a", "b", "UNHEX(h)", "t.a", "n", "c"] {
        for text in [
            "'Anna'",
            "'anna'",
            "''",
            "'Anna '",
            "NULL",
            "x'416e6e61'",
            "'5'",
            "'Ä'",
        ] {
            for sql in [
                format!("SELECT id FROM t WHERE AES_DECRYPT({column}, 'k') = {text} ORDER BY id"),
                format!("SELECT id FROM t WHERE id < 3 AND {text} = AES_DECRYPT({column}, 'k')"),
                format!("SELECT id FROM t WHERE AES_DECRYPT({column}, 'k') IN ('5', {text})"),
            ] {
                same(&mut pair, &sql);
                let said = pair.execute(&sql);
                assert_eq!(said.plain, said.protected, "prepared: {sql}");
            }
        }
    }
    for sql in [
        "SELECT id, AES_DECRYPT(b, 'k') AS x FROM t WHERE AES_DECRYPT(a, 'k') = 'Anna'",
        "SELECT id FROM t WHERE AES_DECRYPT(a, NULL) = 'Anna'",
        "UPDATE t SET b = AES_ENCRYPT('Bea', 'k') WHERE AES_DECRYPT(a, 'k') = 'Anna'",
        "DELETE FROM t WHERE AES_DECRYPT(b, 'k') = 'Bea' AND id < 5 LIMIT 1",
        "SELECT id, HEX(b) FROM t ORDER BY id",
    ] {
        same(&mut pair, sql);
    }
    let sql = "SELECT id FROM t WHERE AES_DECRYPT(a, ?) = ?";
    for (key, text) in [("k", "anna"), ("other", "anna"), ("k", "")] {
        let found = pair
            .sessions()
            .map(|s| s.execute_text(sql, (key, text)).unwrap());
        assert_eq!(found[0], found[1], "{key} {text}");
    }
    assert!(pair.protected.execute_text(sql, ("k", 5)).is_err());
    // by the index
    let plan = pair
        .protected
        .must("EXPLAIN SELECT id FROM t WHERE AES_DECRYPT(a, 'k') = 'anna'");
    assert!(!plan.text().contains("ALL"), "{}", plan.text());
}

fn cells_with_their_own_vectors_are_opened(kind: Kind) {
    if kind == Kind::MariaDb {
        // before 11.2 it has no vectors
        let Some(mut pair) = pair(kind) else { return };
        same(&mut pair, "SELECT AES_ENCRYPT('a', 'b', 'c')");
        return;
    }
    let Some(mut pair) = pair(kind) else { return };
    pair.run("SET block_encryption_mode = 'aes-256-cbc'");
    pair.run(
        "CREATE TABLE t (id INT PRIMARY KEY, iv VARBINARY(40), a VARBINARY(200), n VARBINARY(9))",
    );
    for id in 0..4 {
        pair.run(&format!(
            "SET @iv = REPEAT(CHAR({} + 65), {})",
            id,
            16 + 8 * id
        ));
        pair.run(&format!(
            "INSERT INTO t (id, iv, a) VALUES ({id}, @iv, AES_ENCRYPT('text {id}', 'k', @iv))"
        ));
    }
    pair.run("INSERT INTO t (id, iv) VALUES (7, REPEAT('i', 16))");
    for sql in [
        "SELECT id, AES_DECRYPT(a, 'k', iv) FROM t ORDER BY id",
        "SELECT id, AES_DECRYPT(a, 'k', CONCAT(iv, 'x')) AS x FROM t ORDER BY id",
        "SELECT AES_DECRYPT(a, 'k', @iv) FROM t WHERE id = 3",
        "SELECT CAST(AES_DECRYPT(a, 'k', iv) AS CHAR) FROM t ORDER BY id",
        "SELECT AES_DECRYPT(a, 'k', 'short') FROM t",
        "SELECT AES_DECRYPT(a, 'k', LEFT(iv, 5)) FROM t WHERE id = 0",
        "SELECT AES_DECRYPT(a, 'k') FROM t",
        "SELECT COUNT(*) FROM t WHERE a = AES_ENCRYPT('text 3', 'k', @iv)",
        "SELECT id, AES_DECRYPT(a, 'k', NULL) FROM t WHERE id = 0",
        "SELECT id, AES_DECRYPT(a, 'k', n) FROM t WHERE id = 0",
        "SELECT id, AES_DECRYPT(a, 'k', n) FROM t WHERE id = 7",
        "SET @salt = 'salt', @rounds = 2000, @few = 10",
        "SELECT HEX(AES_ENCRYPT('x', 'k', @iv, 'pbkdf2_hmac', @salt, @rounds))",
        "SELECT HEX(AES_ENCRYPT('x', 'k', @iv, 'pbkdf2_hmac', @salt, @few))",
        "SET block_encryption_mode = 'aes-256-ecb'",
        "SELECT id, AES_DECRYPT(a, 'k', n) AS x FROM t ORDER BY id",
        "SET block_encryption_mode = 'aes-256-cbc'",
    ] {
        same(&mut pair, sql);
    }
    // a vector that is made for each statement
    let session = &mut pair.protected;
    session.must("SET @iv = RANDOM_BYTES(16)");
    session.must("INSERT INTO t (id, iv, a) VALUES (8, @iv, AES_ENCRYPT('text 8', 'k', @iv))");
    let sql = "SELECT CAST(AES_DECRYPT(a, 'k', iv) AS CHAR) FROM t WHERE id = 8";
    assert_eq!(session.text(sql).unwrap(), "text 8");
}

fn protected_columns_take_results(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.create(
        "CREATE TABLE t (id INT PRIMARY KEY, a VARBINARY(200) {eq}, d VARCHAR(200) {eq}, p VARBINARY(200))",
    );
    for sql in [
        "INSERT INTO t VALUES (1, AES_ENCRYPT('Anna', 'k'), SHA2('Anna', 256), AES_ENCRYPT('Anna', 'k'))",
        "INSERT INTO t VALUES (2, AES_ENCRYPT('Bert', 'k'), SHA2('Bert', 256), NULL), \
         (3, AES_ENCRYPT('Cleo', 'k'), SHA2('Cleo', 256), AES_ENCRYPT('Cleo', 'k'))",
        "SELECT id FROM t WHERE a = AES_ENCRYPT('Anna', 'k')",
        "SELECT id FROM t WHERE d IN (SHA2('Bert', 256), SHA2('Cleo', 256)) ORDER BY id",
        "UPDATE t SET a = AES_ENCRYPT('Dora', 'k') WHERE d = SHA2('Bert', 256)",
        "SELECT id, a, d FROM t WHERE id = 9",
        "SELECT id, d, AES_DECRYPT(p, 'k') AS x FROM t ORDER BY id",
        "DELETE FROM t WHERE a = AES_ENCRYPT('Dora', 'k')",
        "SELECT id, a FROM t ORDER BY id",
    ] {
        same(&mut pair, sql);
    }
    let refused = pair
        .protected
        .must_fail("SELECT AES_DECRYPT(a, 'k') FROM t");
    assert_eq!(refused, 1235);
}

fn secrets_stay_with_the_proxy(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("billing.key");
    std::fs::write(&file, "text:k\n").unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&file, private).unwrap();
    let settings = format!(
        "{EVALUATE}[functions.keys]\nbilling = \"{}\"\n",
        file.display()
    );
    let Some(mut pair) = pair_with(kind, &settings) else {
        return;
    };
    pair.run("SET @key = 'k', @a = 5");
    pair.run("SET @KEK := UNHEX(SHA2('k', 512))");
    for sql in [
        "SELECT HEX(AES_ENCRYPT('x', @key))",
        "SELECT HEX(AES_ENCRYPT('x', @`Key`)), @a",
        "SELECT HEX(AES_ENCRYPT('x', @kek))",
        "SELECT AES_DECRYPT(AES_ENCRYPT('x', @kek), @kek) AS x",
    ] {
        same(&mut pair, sql);
    }
    let named = pair
        .protected
        .text("SELECT HEX(AES_ENCRYPT('x', KEY('billing')))")
        .unwrap();
    assert_eq!(
        named,
        pair.plain
            .text("SELECT HEX(AES_ENCRYPT('x', 'k'))")
            .unwrap()
    );
    assert_eq!(
        pair.protected
            .must_fail("SELECT AES_ENCRYPT('x', KEY('other'))"),
        1235
    );
    // what was not set is not kept
    assert_eq!(
        pair.same_error("SET @key = 'bad', nosuchvariable = 1"),
        1193
    );
    same(&mut pair, "SELECT HEX(AES_ENCRYPT('x', @key))");
    for sql in [
        "SET @key = 255",
        "SET @key = KEY('billing')",
        "SELECT MD5(KEY('billing'))",
        "SET @kéy = 'x'",
        "SET @'k\\ey' = 'x'",
    ] {
        assert_eq!(pair.protected.must_fail(sql), 1235, "{sql}");
    }
    // the server does not have the value, and no other session does
    assert_eq!(pair.protected.must_fail("SELECT @key"), 1235);
    let mut other = pair.proxy.connect_to("app");
    assert_eq!(
        other.text("SELECT AES_ENCRYPT('x', @key) IS NULL").unwrap(),
        "1"
    );
    pair.protected.conn().reset().unwrap();
    assert_eq!(
        pair.protected
            .text("SELECT AES_ENCRYPT('x', @key) IS NULL")
            .unwrap(),
        "1"
    );
}

fn prepared_statements_compute_anew(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.run("CREATE TABLE t (id INT PRIMARY KEY, a LONGBLOB, n INT)");
    pair.create("CREATE TABLE p (id INT PRIMARY KEY, a VARBINARY(2000) {eq})");
    let long = "long ".repeat(300_000);
    let insert = "INSERT INTO t VALUES (?, AES_ENCRYPT(?, ?), ? + 1)";
    let sessions = pair.sessions();
    for session in sessions {
        let statement = session.conn().prep(insert).unwrap();
        assert_eq!(statement.num_params(), 4);
        let values: [(Value, Value); 6] = [
            ("text".into(), "k".into()),
            (Value::NULL, "k".into()),
            (Value::Int(-5), "k".into()),
            ("text".into(), Value::NULL),
            (Value::Bytes(vec![0, 255, 39]), Value::Bytes(vec![7; 40])),
            // as long data
            (long.as_str().into(), "k".into()),
        ];
        for (id, (text, key)) in values.into_iter().enumerate() {
            let parameters = vec![Value::from(id), text, key, Value::from(id)];
            session.conn().exec_drop(&statement, parameters).unwrap();
        }
        let select = session
            .conn()
            .prep("SELECT id FROM t WHERE a = AES_ENCRYPT(?, 'k') AND id < ?");
        let select = select.unwrap();
        let found: Vec<u32> = session.conn().exec(&select, ("text", 9)).unwrap();
        assert_eq!(found, [0]);
        let found: Vec<u32> = session.conn().exec(&select, (-5, 9)).unwrap();
        assert_eq!(found, [2]);
        let keep = session
            .conn()
            .prep("INSERT INTO p VALUES (?, AES_ENCRYPT(?, ?))")
            .unwrap();
        session.conn().exec_drop(&keep, (1, "text", "k")).unwrap();
        session.conn().exec_drop(&keep, (2, "other", "k")).unwrap();
        let find = session
            .conn()
            .prep("SELECT id FROM p WHERE a = AES_ENCRYPT(?, 'k')")
            .unwrap();
        let found: Vec<u32> = session.conn().exec(&find, ("other",)).unwrap();
        assert_eq!(found, [2]);
        session.conn().close(statement).unwrap();
    }
    pair.same_result("SELECT id, HEX(a), n FROM t ORDER BY id");
    // what has come for an execution that fails is not for the next one
    let session = &mut pair.protected;
    let both = session
        .conn()
        .prep("INSERT INTO t VALUES (?, ?, AES_ENCRYPT(?, 'k') IS NULL)");
    let both = both.unwrap();
    let good = "text";
    let moment = Value::Date(2020, 1, 1, 0, 0, 0, 0);
    let failed = session.conn().exec_drop(&both, (90, long.as_str(), moment));
    assert!(failed.is_err(), "a date is no argument");
    session
        .conn()
        .exec_drop(&both, (91, long.as_str(), good))
        .unwrap();
    session
        .conn()
        .exec_drop(&both, (92, "short", good))
        .unwrap();
    let lengths = "SELECT GROUP_CONCAT(LENGTH(a) ORDER BY id) FROM t WHERE id > 90";
    assert_eq!(session.text(lengths).unwrap(), "1500000,5");
    session.must("DELETE FROM t WHERE id > 90");
    let items =
        "SELECT AES_ENCRYPT(?, 'k'), HEX(AES_ENCRYPT(?, 'k')) AS h, AES_ENCRYPT(?, 'k') IS NULL";
    for text in [Value::from("text"), Value::NULL, Value::Int(77)] {
        let parameters = vec![text.clone(), text.clone(), text];
        let rows = pair
            .sessions()
            .map(|s| s.execute_text(items, parameters.clone()).unwrap());
        assert_eq!(rows[0], rows[1]);
    }
    pair.same_result("SELECT id, a FROM p ORDER BY id");
    // another text is prepared under the same names, and the variable is read at each execution
    let session = &mut pair.protected;
    session.must("SET @key = 'one'");
    let statement = session
        .conn()
        .prep("SELECT HEX(AES_ENCRYPT('x', @key)) AS c")
        .unwrap();
    let mut seen: Vec<String> = session.conn().exec(&statement, ()).unwrap();
    session.must("SET @key = 'two'");
    seen.extend(session.conn().exec::<String, _, _>(&statement, ()).unwrap());
    session.must("SET @key = 'one'");
    seen.extend(session.conn().exec::<String, _, _>(&statement, ()).unwrap());
    assert_ne!(seen[0], seen[1]);
    assert_eq!(seen[0], seen[2]);
}

fn without_the_switch_nothing_changes(kind: Kind) {
    let settings = "[functions]\nevaluate = false\nsecrets = [\"key\"]\n";
    let Some(mut pair) = pair_with(kind, settings) else {
        return;
    };
    pair.run(CELLS);
    pair.run("SET @key = 'k'");
    for sql in [
        "SELECT @key",
        "INSERT INTO t VALUES (1, AES_ENCRYPT('x', @key), '', '')",
        "SELECT AES_DECRYPT(a, @key) FROM t WHERE AES_DECRYPT(a, 'k') = 'x'",
    ] {
        pair.same(sql);
    }
    assert!(
        pair.behind
            .connect()
            .text("SELECT HEX(a) FROM app.t")
            .is_ok()
    );
}
