//! JSON.

use super::*;

pub fn documents(kind: Kind) {
    let Some(mut pair) = Pair::with_engine(
        kind,
        "CREATE TABLE t (id INT PRIMARY KEY, j JSON {}, k JSON NOT NULL {}, plain JSON)",
    ) else {
        return;
    };
    let mut ids = Ids(0);
    let mut refused = Vec::new();
    for value in [
        "'{\"b\": 1, \"a\":[1,2.0,\"x\"], \"bb\":{\"z\":null,\"y\":true}}'",
        "'[1, 2 ,3]'",
        "'\"text \\\\u00e9 😀\"'",
        "'null'",
        "'12345678901234567890'",
        "'1e3'",
        "NULL",
        "'{\"a\":1,\"a\":2}'",
        "'{'",
        "'abc'",
        "''",
        "'[1,]'",
        "'{\"a\" 1}'",
        "'  [ ]  '",
    ] {
        write(
            &mut pair,
            &mut refused,
            "t",
            &ids.insert("t", "j, k, plain", &format!("{value}, '{{}}', {value}")),
            &[],
        );
    }
    for value in [
        Value::from("{\"b\":2,\"a\":1}"),
        Value::from("[1"),
        Value::from("[\"\u{e9}\"]"),
    ] {
        write(
            &mut pair,
            &mut refused,
            "t",
            &ids.insert("t", "j, k", "?, '[]'"),
            std::slice::from_ref(&value),
        );
    }
    for sql in [
        "SELECT id, JSON_OBJECT('j', j, 'plain', plain), JSON_ARRAY(plain, UPPER(j)) FROM t ORDER BY id",
        "SELECT JSON_ARRAYAGG(plain), JSON_ARRAYAGG(k), MAX(LENGTH(j)) FROM t WHERE id < 4",
        "SELECT JSON_EXTRACT(plain, '$.a'), UPPER(j), JSON_MERGE_PATCH(plain, '[]') FROM t ORDER BY id",
    ] {
        pair.same(sql);
    }
    surrogates(&mut pair, &mut ids, &mut refused);
    write(
        &mut pair,
        &mut refused,
        "t",
        &ids.insert(
            "t",
            "j, k",
            "JSON_OBJECT('b', 1, 'a', JSON_ARRAY('x', NULL, 1e3)), JSON_QUOTE('é')",
        ),
        &[],
    );
    write(
        &mut pair,
        &mut refused,
        "t",
        "UPDATE t SET j = '{\"changed\": [true]}' WHERE id = 2",
        &[],
    );
    write(
        &mut pair,
        &mut refused,
        "t",
        "UPDATE t SET j = '{\"changed\":[true]}' WHERE id = 2",
        &[],
    );
    for sql in [
        "SELECT id, j, k FROM t WHERE j IS NOT NULL ORDER BY id",
        "SELECT id, JSON_EXTRACT(j, '$.a') FROM t ORDER BY id",
        "SELECT id, JSON_UNQUOTE(JSON_EXTRACT(j, '$.bb.z')), JSON_VALID(j), JSON_TYPE(j), JSON_LENGTH(j) FROM t ORDER BY id",
        "SELECT id FROM t WHERE JSON_EXTRACT(j, '$.b') = 1 ORDER BY id",
        "SELECT id, JSON_OBJECT('j', j) FROM t ORDER BY id",
        "SELECT COUNT(j) FROM t",
        "SELECT id, j FROM t ORDER BY j, id",
        "SELECT j, COUNT(*) FROM t GROUP BY j ORDER BY COUNT(*), MIN(id)",
        "SELECT DISTINCT k FROM t ORDER BY 1",
        "SELECT id FROM t WHERE j = '[1, 2, 3]' ORDER BY id",
    ] {
        pair.compare(sql, &[]);
    }
    for results in ["latin1", "utf8mb3", "binary"] {
        pair.run(&format!("SET character_set_results = {results}"));
        pair.compare("SELECT j, k FROM t ORDER BY id", &[]);
    }
    pair.run("SET NAMES latin1");
    write(
        &mut pair,
        &mut refused,
        "t",
        &ids.insert("t", "j, k", "_latin1 x'5b22e9225d', '[]'"),
        &[],
    );
    at_most(&refused, 4);
    pair.conclude(0);
}

/// Characters beyond U+FFFF as drivers escape them. Halves of such an escape may be refused.
fn surrogates(pair: &mut Pair, ids: &mut Ids, refused: &mut Vec<String>) {
    let mut halves = Vec::new();
    let units = [
        "\\ud83d",
        "\\udc0d",
        "\\uDBFF",
        "\\uDfff",
        "\\u0041",
        "\\\\ud83d",
        "\\n",
        "x",
    ];
    for first in units {
        for second in units {
            for value in [
                format!("\"{first}{second}\""),
                format!("{{\"{first}{second}\": [1]}}"),
            ] {
                let (a, b) = (first.to_lowercase(), second.to_lowercase());
                let high = |unit: &str| unit == "\\ud83d" || unit == "\\udbff";
                let low = |unit: &str| unit == "\\udc0d" || unit == "\\udfff";
                let is_sound = high(&a) && low(&b) || ![&a, &b].iter().any(|u| high(u) || low(u));
                let refused = if is_sound { &mut *refused } else { &mut halves };
                let sql = ids.insert("t", "j, k", "?, '[]'");
                write(pair, refused, "t", &sql, &[Value::from(value)]);
            }
        }
    }
}
