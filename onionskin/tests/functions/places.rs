//! Where calls may stand, and what is refused.

use ::mysql::prelude::Queryable;

use super::{CELLS, pair, same};
use onionskin_testkit::*;

pub fn calls_are_computed_where_they_stand(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    pair.run("CREATE TABLE t (id INT PRIMARY KEY, h VARCHAR(200), b VARBINARY(200))");
    let random = "SHA2(RANDOM_BYTES(16), 256)";
    let session = &mut pair.protected;
    session.must(&format!(
        "INSERT INTO t (id, h) VALUES (1, {random}), (2, {random})"
    ));
    assert_eq!(
        session.text("SELECT COUNT(DISTINCT h) FROM t").unwrap(),
        "2"
    );
    session.must("DELETE FROM t");
    for sql in [
        "SELECT MD5('x') 'an alias', SHA2('y', 256)'other'",
        "SELECT SHA2('x', 256) INTO @x",
        "SELECT @x",
        "SELECT 'a' LIKE SHA2('x', 256) ESCAPE '|'",
        "SELECT HEX(AES_ENCRYPT('x', FROM_BASE64('YR==')))",
        "SELECT * FROM (SELECT SHA2('x', 256) AS s) d",
        "INSERT INTO t VALUES (1, SHA2('x', 256), AES_ENCRYPT('x', 'k')), (2, SHA2('y', 512), NULL)",
        "SELECT id, h FROM t WHERE h = SHA2('x', 256) AND b IS NOT NULL",
        "SELECT id FROM t WHERE b IS NOT NULL AND AES_DECRYPT(b, 'k') = 'x' AND id BETWEEN 1 AND 5",
        "CREATE TABLE p (password VARCHAR(100), KEY k (password(10)))",
        "SELECT id FROM t UNION SELECT SHA2('x', 256)",
        "INSERT INTO t VALUES (1, SHA2('x', 256), 'x') ON DUPLICATE KEY UPDATE h = SHA2('z', 256)",
        "REPLACE INTO t VALUES (2, SHA2('x', 384), AES_ENCRYPT('Ä', 'k'))",
        "SELECT id, h, HEX(b) FROM t ORDER BY id",
    ] {
        // MySQL has no MD5 any more
        let sql = match kind {
            Kind::MySql => sql.replace("MD5('x')", "SHA2('x', 224)"),
            _ => sql.into(),
        };
        same(&mut pair, &sql);
    }
    // what would make too much is refused, and the session goes on
    let session = &mut pair.protected;
    let mut deep = "'x'".to_owned();
    for _ in 0..30 {
        deep = format!("HEX({deep})");
    }
    let many = vec!["REPEAT('x', 1048576)"; 200].join(", ");
    for call in [
        deep,
        format!("CONCAT({many})"),
        "REPEAT('x', 999999999)".into(),
    ] {
        assert_eq!(
            session.must_fail(&format!("SELECT SHA2({call}, 256)")),
            1038
        );
    }
    assert_eq!(session.text("SELECT 5").unwrap(), "5");
    // texts that CAST makes are shown as such
    pair.run("INSERT INTO t VALUES (9, '', AES_ENCRYPT('Grüße', 'k'))");
    for sql in [
        "SELECT CAST(AES_DECRYPT(b, 'k') AS CHAR) AS c FROM t WHERE id = 9",
        "SELECT CONVERT(AES_DECRYPT(b, 'k') USING utf8mb4) AS c FROM t WHERE id = 9",
    ] {
        let defined = pair.sessions().map(|session| {
            let result = session.conn().query_iter(sql).unwrap();
            let columns = result.columns();
            let column = &columns.as_ref()[0];
            (
                column.character_set(),
                column.flags(),
                column.column_length(),
            )
        });
        assert_eq!(defined[0], defined[1], "{sql}");
    }
    pair.run("SET NAMES latin1");
    let refused = pair
        .protected
        .must_fail("SELECT CAST(AES_DECRYPT(b, 'k') AS CHAR) AS c FROM t");
    assert_eq!(refused, 1235);
}

pub fn what_is_not_understood_is_refused(kind: Kind) {
    let Some(mut pair) = pair(kind) else { return };
    let session = &mut pair.protected;
    session.must(CELLS);
    // a PREPARE that is refused leaves no statement under its name
    session.must("PREPARE s FROM 'DELETE FROM t'");
    session.must_fail("PREPARE s FROM 'SELECT MD5(1)'");
    assert_eq!(session.must_fail("EXECUTE s"), 1243);
    // what another setting makes a call of
    if kind == Kind::MySql {
        let sql = "SET sql_mode = 'ANSI_QUOTES'; SELECT \"SHA2\"('sesame', 256)";
        assert_eq!(session.must_fail(sql), 1235);
        session.must("SET sql_mode = DEFAULT");
    }
    for sql in [
        "SELECT id FROM t WHERE AES_DECRYPT(a, 'k') LIKE 'Anna'",
        "SELECT id FROM t WHERE NOT AES_DECRYPT(a, 'k') = 'Anna'",
        "SELECT id FROM t WHERE AES_DECRYPT(a, 'k') = 5",
        "SELECT id FROM t ORDER BY AES_DECRYPT(a, 'k')",
        "SELECT AES_DECRYPT(a, 'k') AS x FROM t ORDER BY x",
        "SELECT DISTINCT AES_DECRYPT(a, 'k') FROM t",
        "SELECT UPPER(AES_DECRYPT(a, 'k')) FROM t",
        "SELECT AES_DECRYPT(a, h) FROM t",
        "UPDATE t SET a = AES_ENCRYPT(h, 'k')",
        "CREATE VIEW v AS SELECT AES_DECRYPT(a, 'k') FROM t",
        "SELECT @key",
        "SELECT AES_ENCRYPT('x', @server)",
    ] {
        let failure = session.run(sql).unwrap_err();
        assert!(failure.message.contains("OS1042"), "{sql}: {failure:?}");
    }
    assert!(session.conn().prep("SET @key = ?").is_err());
    // the session goes on
    assert_eq!(session.text("SELECT 5").unwrap(), "5");
}
