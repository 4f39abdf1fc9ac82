use super::*;

/// What becomes of a statement: its text with calls in braces, then the columns that are opened.
fn told(sql: &str) -> String {
    let secrets = ["key".to_owned()];
    let calls = match read(sql.as_bytes(), LexMode::default(), &secrets) {
        Ok(None) => return "as it is".into(),
        Ok(Some(calls)) => calls,
        Err(CallError::ArgumentCount(name)) => return format!("count {name}"),
        Err(CallError::Refused(refusal)) => return format!("refused {}", refusal.message()),
    };
    let mut text = String::new();
    for piece in &calls.pieces {
        match piece {
            Piece::Sql(sql) => text.push_str(std::str::from_utf8(sql).expect("UTF-8")),
            Piece::Computed(call) => text.push_str(&shown(call)),
            Piece::Parameter(number) => text.push_str(&format!("?{number}")),
        }
    }
    for (name, term) in &calls.assigned {
        text.push_str(&format!(" | @{name} = {}", term_shown(term)));
    }
    for opening in &calls.openings {
        let name = String::from_utf8_lossy(&opening.name);
        text.push_str(&format!(" | {name}"));
        if let Some(call) = &opening.call {
            let rest: Vec<_> = call.rest.iter().map(term_shown).collect();
            let vector = if call.vector_in_cell {
                " with vector"
            } else {
                ""
            };
            let as_text = if call.as_text { " as text" } else { "" };
            let name = call.function.name();
            text.push_str(&format!(": {name} {}{vector}{as_text}", rest.join(" ")));
        }
    }
    text
}

fn shown(call: &Call) -> String {
    let arguments: Vec<_> = call.arguments.iter().map(term_shown).collect();
    format!("{{{} {}}}", call.function.name(), arguments.join(" "))
}

fn term_shown(term: &Term) -> String {
    match term {
        Term::Value { index, negative } => format!("{}{index}", if *negative { "-" } else { "" }),
        Term::Null => "NULL".into(),
        Term::Bool(truth) => truth.to_string(),
        Term::Secret(name) => format!("@{name}"),
        Term::Variable(name) => format!("server's {}", String::from_utf8_lossy(name)),
        Term::Call(call) => shown(call),
    }
}

#[track_caller]
fn reads(sql: &str, expected: &str) {
    assert_eq!(told(sql), expected, "{sql}");
}

#[test]
fn calls_of_constants_are_cut_out() {
    reads("SELECT 1", "as it is");
    reads(
        "INSERT INTO t VALUES (5, AES_ENCRYPT('x', 'k'), 6)",
        "INSERT INTO t VALUES (5, {AES_ENCRYPT 1 2}, 6)",
    );
    reads(
        "UPDATE t SET a = aes_encrypt ( ? , UNHEX(SHA2('p', 512)), @iv ) WHERE b = ?",
        "UPDATE t SET a = {AES_ENCRYPT 0 {UNHEX {SHA2 1 2}} server's @iv} WHERE b = ?1",
    );
    reads(
        "DELETE FROM t WHERE a = `AES_ENCRYPT`(-1.5, @`KEY`) -- end",
        "DELETE FROM t WHERE a = {AES_ENCRYPT -0 @key} -- end",
    );
    reads(
        "INSERT INTO t VALUES (HEX(MD5(NULL))), (SHA2(TRUE, 0)), (PASSWORD('x'))",
        "INSERT INTO t VALUES (HEX({MD5 NULL})), ({SHA2 true 0}), ({PASSWORD 1})",
    );
    reads(
        "CALL p(AES_ENCRYPT('x', KEY('billing')))",
        "CALL p({AES_ENCRYPT 0 {KEY 1}})",
    );
    reads(
        "INSERT INTO t VALUES (AES_ENCRYPT('x', 'k'));",
        "INSERT INTO t VALUES ({AES_ENCRYPT 0 1});",
    );
    reads(
        "INSERT INTO t VALUES (SHA2(RANDOM_BYTES(8), 256)), (SHA2(RANDOM_BYTES(8), 256))",
        "INSERT INTO t VALUES ({SHA2 {RANDOM_BYTES 0} 1}), ({SHA2 {RANDOM_BYTES 2} 3})",
    );
}

#[test]
fn items_of_a_select_list_keep_their_names() {
    reads(
        "SELECT a, AES_ENCRYPT('x', 'k'), SHA2('y', 256) AS s, MD5('z') m FROM t",
        "SELECT a, CAST({AES_ENCRYPT 0 1} AS BINARY) AS `onionskin$function_0`, {SHA2 2 3} AS s, {MD5 4} m FROM t \
         | AES_ENCRYPT('x', 'k')",
    );
    reads(
        "SELECT MD5('z') 's', MD5('z')'t' FROM t",
        "SELECT  ({MD5 0})  's',  ({MD5 2}) 't' FROM t",
    );
    reads(
        "SELECT DISTINCT MD5('z') = a  FROM t",
        "SELECT DISTINCT {MD5 0} = a AS `onionskin$function_0`  FROM t | MD5('z') = a",
    );
    reads(
        "SELECT * FROM t WHERE a IN (SELECT MD5('z'))",
        "SELECT * FROM t WHERE a IN (SELECT {MD5 0})",
    );
}

#[test]
fn cells_of_a_select_list_are_opened() {
    reads(
        "SELECT id, AES_DECRYPT(ssn, 'k') FROM t WHERE id = 5 ORDER BY id LIMIT 3",
        "SELECT id, CAST(ssn AS BINARY) AS `onionskin$function_0` FROM t WHERE id = 5 ORDER BY id \
         LIMIT 3 | AES_DECRYPT(ssn, 'k'): AES_DECRYPT 0",
    );
    reads(
        "SELECT CAST(AES_DECRYPT(UNHEX(t.ssn), @key, 'iv') AS CHAR) AS `the ssn`, \
         CONVERT(DECODE(b, ?) USING utf8mb4) 'c' FROM t WHERE d = ?",
        "SELECT CAST(UNHEX(t.ssn) AS BINARY) AS `onionskin$function_0`, \
         CAST(b AS BINARY) AS `onionskin$function_1` FROM t WHERE d = ?1 \
         | the ssn: AES_DECRYPT @key 0 as text | c: DECODE 1 as text",
    );
    reads(
        "SELECT AES_DECRYPT(ssn, 'k', iv) AS s FROM t",
        "SELECT CAST(CONCAT(CHAR(IFNULL(LEAST(LENGTH(iv), 16), 255)), \
         IFNULL(LEFT(CAST(iv AS BINARY), 16), ''), CAST(ssn AS BINARY)) AS BINARY) AS `onionskin$function_0` FROM t \
         | s: AES_DECRYPT 0 NULL with vector",
    );
    reads(
        "SELECT AES_DECRYPT(AES_ENCRYPT('x', 'k'), 'k')",
        "SELECT CAST({AES_ENCRYPT 0 1} AS BINARY) AS `onionskin$function_0` \
         | AES_DECRYPT(AES_ENCRYPT('x', 'k'), 'k'): AES_DECRYPT 2",
    );
}

#[test]
fn conditions_compare_ciphertexts() {
    reads(
        "SELECT id FROM t WHERE b = 5 AND AES_DECRYPT(a, 'k') = 'x' ORDER BY id",
        "SELECT id FROM t WHERE b = 5 AND (a IN (CAST({AES_ENCRYPT 2 1} AS BINARY)) \
         AND CAST(a AS BINARY) IN (CAST({AES_ENCRYPT 2 1} AS BINARY))) ORDER BY id",
    );
    for sql in [
        "SELECT id FROM t WHERE h IS NOT NULL AND AES_DECRYPT(a, 'k') = 'x'",
        "SELECT id FROM t WHERE b BETWEEN 1 AND 2 AND AES_DECRYPT(a, 'k') = 'x'",
        "SELECT id FROM t WHERE NOT b AND AES_DECRYPT(a, 'k') = 'x' FETCH FIRST 1 ROWS ONLY",
    ] {
        assert!(
            told(sql).contains("AND (a IN (CAST({AES_ENCRYPT"),
            "{}",
            told(sql)
        );
    }
    reads(
        "DELETE FROM t WHERE ? = AES_DECRYPT(t.a, @key, ?)",
        "DELETE FROM t WHERE (t.a IN (CAST({AES_ENCRYPT 0 @key 1} AS BINARY)) \
         AND CAST(t.a AS BINARY) IN (CAST({AES_ENCRYPT 0 @key 1} AS BINARY)))",
    );
    reads(
        "UPDATE t SET b = 6 WHERE AES_DECRYPT(UNHEX(a), 'k') IN ('x', NULL) LIMIT 1",
        "UPDATE t SET b = 6 WHERE (UNHEX(a) IN (CAST({AES_ENCRYPT 2 1} AS BINARY), CAST({AES_ENCRYPT NULL 1} AS BINARY)) \
         AND CAST(UNHEX(a) AS BINARY) IN (CAST({AES_ENCRYPT 2 1} AS BINARY), CAST({AES_ENCRYPT NULL 1} AS BINARY))) LIMIT 1",
    );
}

#[test]
fn variables_that_are_kept_get_no_value_at_the_server() {
    reads("SET @key = 'secret'", "SET @key = NULL | @key = 0");
    reads(
        "SET @a = 5, @KEY := UNHEX(SHA2('x', 512)), autocommit = 1;",
        "SET @a = 5, @KEY := NULL, autocommit = 1; | @key = {UNHEX {SHA2 1 2}}",
    );
    reads("SET @other = 'x'", "as it is");
    reads("SET @mail = 'me@key.example'", "as it is");
    reads("SET @mail = 'me@key'", "as it is");
    reads("SET @q = 'SET @other = 1'", "as it is");
    for sql in [
        "SELECT @key",
        "SET @other = @key",
        "SET @key = (SELECT 1)",
        "SET @key = @other",
        "SELECT 1 INTO @key",
        "SELECT @key := 'x'",
        "SET @key = 'x'; SELECT 1",
        "INSERT INTO t VALUES (HEX(@key))",
        "EXECUTE s USING @key",
        "SET @q = \"SET @key = 'secret'\"",
        "SET @q = 'do @KEY := 1'",
        r"SET @q = 'SET @k\ey = 1'",
        "SET @q = 'SELECT @`key`'",
        "SET @q = 'SELECT /*!50000 @key := */ 1'",
        "PREPARE s FROM 'SET @key = 1'",
        "SELECT 'SET @key = 1' INTO @q",
        "SELECT @q := 'SET @key = 1'",
    ] {
        assert!(told(sql).starts_with("refused "), "{sql}: {}", told(sql));
    }
}

#[test]
fn what_is_not_computed_is_refused() {
    for sql in [
        "UPDATE t SET a = AES_ENCRYPT(b, 'k')",
        "SELECT AES_ENCRYPT(b, 'k') FROM t",
        "SELECT AES_ENCRYPT('x', @other)",
        "SELECT MD5(CONCAT(salt, 'password')) FROM t",
        "SELECT MD5(CONCAT(salt, ?)) FROM t",
        "SELECT * FROM t WHERE NOT AES_DECRYPT(a, 'k') = 'x'",
        "SELECT * FROM t WHERE AES_DECRYPT(a, 'k') = 'x' OR b = 5",
        "SELECT * FROM t WHERE AES_DECRYPT(a, 'k') <> 'x'",
        "SELECT * FROM t WHERE AES_DECRYPT(a, 'k') LIKE 'x'",
        "SELECT * FROM t WHERE AES_DECRYPT(a, 'k') = b",
        "SELECT * FROM t WHERE AES_DECRYPT(a, 'k') NOT IN ('x')",
        "SELECT * FROM t WHERE AES_DECRYPT(a, 'k', iv) = 'x'",
        "SELECT * FROM t WHERE AES_DECRYPT(a, 'k', RANDOM_BYTES(16)) = 'x'",
        "SELECT * FROM t WHERE DECODE(a, 'k') = 'x'",
        "SELECT * FROM t WHERE b BETWEEN 1 AND AES_DECRYPT(a, 'k') = 'x'",
        "SELECT * FROM t WHERE (AES_DECRYPT(a, 'k') = 'x') IS NULL",
        "SELECT * FROM t WHERE AES_DECRYPT(a, 'k') = 'x' IS NULL",
        "SELECT * FROM t WHERE c = AES_DECRYPT(a, 'k') = 'x'",
        "SELECT * FROM t HAVING AES_DECRYPT(a, 'k') = 'x'",
        "SELECT LENGTH(AES_DECRYPT(a, 'k')) FROM t",
        "SELECT DISTINCT AES_DECRYPT(a, 'k') FROM t",
        "SELECT AES_DECRYPT(a, 'k') FROM t GROUP BY a",
        "SELECT AES_DECRYPT(a, 'k') FROM t UNION SELECT 1",
        "SELECT AES_DECRYPT(a, 'k') FROM t ORDER BY 1",
        "SELECT AES_DECRYPT(a, 'k') AS b FROM t ORDER BY B DESC",
        "SELECT AES_DECRYPT(a, 'k') AS b FROM t ORDER BY LENGTH(`b`) LIMIT 5",
        "SELECT AES_DECRYPT(a, 'k') INTO @x FROM t",
        "SELECT AES_DECRYPT(a, b) FROM t",
        "SELECT AES_DECRYPT(?, 'k')",
        "SELECT AES_DECRYPT(a, @other) FROM t",
        "SELECT * FROM (SELECT AES_DECRYPT(a, 'k') AS a FROM t) x",
        "(SELECT AES_DECRYPT(a, 'k') FROM t)",
        "INSERT INTO t SELECT AES_DECRYPT(a, 'k') FROM t",
        "CREATE VIEW v AS SELECT AES_DECRYPT(a, 'k') FROM t",
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.a = AES_ENCRYPT(NEW.a, 'k')",
        "SELECT /*!50000 AES_ENCRYPT('x', 'k') */",
        "PREPARE s FROM 'SELECT AES_ENCRYPT(\"x\", \"k\")'",
        "EXECUTE IMMEDIATE 'SELECT AES_ENCRYPT(\"x\", \"k\")'",
        "SELECT AES_DECRYPT(a, 'k') FROM t; SELECT 1",
        "SET @iv = 'x'; INSERT INTO t VALUES (AES_ENCRYPT('x', 'k', @iv))",
        "SELECT 1; PREPARE s FROM 'SELECT AES_ENCRYPT(1, 2)'",
        "SET @s = 'SELECT M' 'D5(1)'",
        "SELECT @iv := iv, AES_DECRYPT(a, 'k', @iv) FROM t",
        "SELECT AES_DECRYPT(a, 'k') FROM t /*!50000 ORDER BY 1 */",
        "SELECT AES_ENCRYPT('x', CONCAT(KEY('a'), 'x'))",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO INSERT INTO u VALUES (1, AES_ENCRYPT(1234, 'k'))",
        "CREATE VIEW v AS SELECT 1 FROM x JOIN y ON MD5(1234) = y.h",
        "SET @a = 1 /*!50000 , @key = 'x', @b = (SELECT password FROM t) */",
        "SELECT /*!50000AES_ENCRYPT*/('x', 'k')",
        "SELECT /*!50000 `md5` */ ('x')",
        "PREPARE s FROM 'SELECT A\\ES_ENCRYPT(1, 2)'",
        "SET @s = 'SELECT AES_ENCRYPT(1, 2)'",
        "CREATE VIEW v AS SELECT x.id FROM t x JOIN t y ON AES_DECRYPT(x.a, 'k') = y.b",
        "CREATE TABLE z AS SELECT 1 FROM t x JOIN t y ON MD5('x') = y.h",
        "CREATE TABLE c AS SELECT MD5('x')",
        "CREATE TABLE c AS SELECT MD5('x') AS m",
        "CREATE VIEW v AS SELECT AES_ENCRYPT('x', 'k') AS e",
        "CREATE PROCEDURE p() SELECT MD5(@key)",
        "CREATE PROCEDURE p() UPDATE t SET h = MD5(RANDOM_BYTES(4))",
        "CREATE PROCEDURE p() SELECT AES_ENCRYPT('x', 'k')",
        "ALTER USER u IDENTIFIED VIA ed25519 USING PASSWORD('x')",
        "SELECT AES_ENCRYPT/*!50000 */('x', 'k')",
        "SELECT AES_ENCRYPT /*! */ ('x', 'k')",
        "SELECT mariadb_schema.AES_ENCRYPT('x', 'k')",
        "SELECT mine.md5('x')",
        "SELECT mine.`md5`('x')",
        "SELECT NOT EXISTS AES_DECRYPT(a, 'k') FROM t",
        "SELECT AES_DECRYPT(AES_ENCRYPT(KEY('billing'), 'k'), 'k')",
        "SELECT MD5(KEY('billing'))",
        "SET @key = KEY('billing')",
        "SET @key = AES_ENCRYPT('x', CONCAT('a', @other))",
        "SELECT SHA2(CONCAT(id, 4711), 256) FROM t",
        "SELECT MD5(4711 + id) FROM t",
        "SELECT ENCRYPT('x', 'ab')",
        "SELECT KDF('x', 'salt')",
        "UPDATE t SET h = SHA2(RANDOM_BYTES(8), 256)",
        "SELECT id, SHA2(RANDOM_BYTES(8), 256) FROM t",
        "INSERT INTO t SELECT SHA2(RANDOM_BYTES(8), 256) FROM u",
        "SELECT @iv := 'x', AES_ENCRYPT('x', 'k', @iv)",
        "SELECT AES_ENCRYPT('x', 'k', @iv) INTO @iv",
        "SET STATEMENT old_passwords = 1 FOR SELECT PASSWORD('x')",
        "SELECT AES_DECRYPT(a, 'k') x, id FROM t ORDER BY (1)",
        "SELECT AES_DECRYPT(a, 'k') x, id FROM t ORDER BY id, ((1)) DESC",
        "SELECT AES_DECRYPT(a, 'k') AS näme FROM t ORDER BY NÄME",
        "SELECT AES_DECRYPT(a, 'k') AS näme FROM t ORDER BY nåme",
        "SELECT * FROM (SELECT MD5('x')) d",
        "SELECT * FROM (SELECT 1, MD5('x') FROM t) d",
        "(SELECT MD5('x'))",
        "WITH d AS (SELECT MD5('x')) SELECT * FROM d",
        "INSERT INTO t VALUES (1) RETURNING MD5('x')",
        "SELECT id FROM t WHERE AES_DECRYPT(IF(@n := @n + 1, a, a), 'k') = 'x'",
        "SELECT id FROM t WHERE AES_DECRYPT(f(a), 'k') = 'x'",
        "SELECT AES_DECRYPT(a, 'k', f(iv)) FROM t",
        "SELECT id FROM t WHERE CASE WHEN a AND AES_DECRYPT(b, 'k') = 'x' AND c THEN 1 END",
        "SELECT id FROM t WHERE b BETWEEN 1 AND 2 OR c AND AES_DECRYPT(a, 'k') = 'x'",
        "SELECT id FROM t WHERE AES_DECRYPT(a, 'k') = 'x' AND b || c",
        "SET @'k\\ey' = 'x'",
        "SET @kéy = 'x'",
        "SELECT @`kéy`",
    ] {
        assert!(told(sql).starts_with("refused "), "{sql}: {}", told(sql));
    }
    reads("SELECT Aes_Encrypt('x')", "count Aes_Encrypt");
    reads("SELECT MD5()", "count MD5");
}

#[test]
fn long_texts_and_deep_calls_end_soon() {
    let rows = vec!["(AES_ENCRYPT('text', 'key'), ?)"; 50_000].join(", ");
    let long = format!("INSERT INTO t VALUES {rows}");
    let deep = |open: &str| {
        format!(
            "SELECT MD5({}'x'{})",
            open.repeat(50_000),
            ")".repeat(50_000)
        )
    };
    let begun = std::time::Instant::now();
    let calls = read(long.as_bytes(), LexMode::default(), &[]);
    assert_eq!(
        calls.ok().flatten().map(|calls| calls.parameters),
        Some(50_000)
    );
    let columns = format!(
        "SELECT {}a{}",
        "MD5(UPPER(".repeat(50_000),
        "))".repeat(50_000)
    );
    assert!(read(columns.as_bytes(), LexMode::default(), &[]).is_err());
    for open in ["MD5(", "(", "CONCAT('a', ", "UPPER("] {
        let sql = deep(open);
        let calls = read(sql.as_bytes(), LexMode::default(), &[]);
        assert!(calls.is_err(), "{open}");
    }
    assert!(begun.elapsed().as_secs() < 10);
}

#[test]
fn names_and_digests_of_columns_stay() {
    for sql in [
        "SELECT MD5(name), SHA2(CONCAT(a, b), 256) FROM t",
        "CREATE TABLE pw (password VARCHAR(100), KEY k (password(10)), UNIQUE (id, md5(8)))",
        "CREATE INDEX i ON pw (md5(16))",
        "CREATE TABLE u (password VARCHAR(9), KEY k (password(10))) DEFAULT CHARSET=utf8mb4",
        "ALTER TABLE u ADD a INT DEFAULT 0, ADD KEY k USING BTREE (id, password(20))",
        "CREATE TABLE app.password (v VARCHAR(100) DEFAULT 'x')",
        "CREATE INDEX i ON app.md5 (a(10))",
        "CALL app.encode('x')",
        "SET @sql = CONCAT('INSERT INTO users (password) VALUES (', @v, ')')",
        "PREPARE s FROM 'SELECT COUNT(*) FROM users WHERE password = ?'",
        "SET @t = 'What shall (we) do'",
        "/*!50017 DEFINER=`root`@`localhost`*/ SELECT (1)",
        "/*!50001 CREATE VIEW `v` AS select `password` AS `password` from (`t`) */",
        "SELECT /*+ NO_MERGE(shares) */ MD5(a) FROM t",
        "CREATE TABLE IF NOT EXISTS password (id INT DEFAULT 5, t VARCHAR(9) DEFAULT 'x')",
        "CREATE FUNCTION encode(a INT) RETURNS INT RETURN a",
        "SELECT mine.md5(a) FROM t",
        "SET @other = 'text (with brackets)'",
        "SET @s = 'SELECT 1'",
        "CREATE TABLE password (id INT, INDEX encode (id))",
        "CREATE INDEX i ON md5 (a)",
        "INSERT INTO password (a) VALUES ('x')",
        "SELECT password, encode FROM users",
        "INSERT INTO users (id, password) VALUES (1, 'x')",
        "INSERT INTO texts VALUES ('call AES_ENCRYPT(1, 2)')",
        "SELECT 'AES_ENCRYPT(1, 2)'",
        "SELECT RANDOM_BYTES(16)",
    ] {
        reads(sql, "as it is");
    }
    reads(
        "SELECT * FROM t JOIN u ON MD5('x') = u.a",
        "SELECT * FROM t JOIN u ON {MD5 0} = u.a",
    );
    reads(
        "SELECT a FROM t WHERE MD5(MD5('x')) = MD5(b)",
        "SELECT a FROM t WHERE {MD5 {MD5 0}} = MD5(b)",
    );
}
