//! Constants of protected columns that are more than a literal, without a scratch engine:
//! `DATE '…'`, `TIMESTAMP '…'`, `{d '…'}`, and CONCAT of texts.

use onionskin_testkit::*;

on_both_servers!(
    compared_with_every_type,
    stored_in_every_type,
    escape_of_nothing,
    texts_are_joined_by_concat,
);

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, d DATE {range}, dt DATETIME {range}, \
                     d6 DATETIME(6) {range}, ts TIMESTAMP NULL {range}, e DATE {eq}, \
                     s VARCHAR(30) {eq, range}, n BIGINT {range}, ti TIME {range}, y YEAR {range})";

const CONSTANTS: [&str; 17] = [
    "DATE '2020-01-31'",
    "DATE'1999-12-31'",
    "TIMESTAMP '2020-01-31 00:00:00'",
    "timestamp'2020-01-31 10:11:12'",
    "TIMESTAMP '2020-01-31 10:11:12.5'",
    "DATE '2020-02-30'",
    "DATE '2020-1-1'",
    "DATE '0000-00-00'",
    "DATE '20200131'",
    "TIMESTAMP '2020-01-31'",
    "TIMESTAMP '2038-01-19 03:14:08'",
    "TIME '10:11:12'",
    "{d '2020-01-31'}",
    "{d'2020-02-30'}",
    "{ts '2020-01-31 10:11:12'}",
    "{d 'x'}",
    "{t '10:11:12'}",
];

const COLUMNS: [&str; 9] = ["d", "dt", "d6", "ts", "e", "s", "n", "ti", "y"];

fn pair(kind: Kind) -> Option<Pair> {
    let mut pair = Pair::of(kind, false, &[])?;
    let (definition, bare) = with_and_without_protection(TABLE);
    pair.plain.must(&bare);
    pair.protected.must(&definition);
    pair.both(
        "INSERT INTO t VALUES \
         (1, '2020-01-31', '2020-01-31', '2020-01-31', '2020-01-31', '2020-01-31', '2020-01-31', 20200131, '00:00:00', 2020), \
         (2, '1999-12-31', '2020-01-31 10:11:12', '2020-01-31 10:11:12.5', '2020-01-31 10:11:12', '1999-12-31', '2020-01-31 10:11:12', 20200131101112, '10:11:12', 1999), \
         (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), \
         (4, '2021-01-01', '2021-01-01', '2021-01-01', '2021-01-01', '2021-01-01', 'x', 0, '-01:00:00', 0)",
    );
    Some(pair)
}

fn compared_with_every_type(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    let mut done = 0;
    for zone in ["+00:00", "+05:00"] {
        pair.same(&format!("SET time_zone = '{zone}'"));
        for (column, constant) in COLUMNS.iter().flat_map(|c| CONSTANTS.map(|k| (c, k))) {
            for condition in [
                format!("{column} = {constant}"),
                format!("{constant} <=> {column}"),
                format!("{column} <> {constant}"),
                format!("{column} >= {constant}"),
                format!("{column} < {constant}"),
                format!("{column} BETWEEN {constant} AND DATE '2020-12-31'"),
                format!("{column} NOT BETWEEN DATE '2000-01-01' AND {constant}"),
                format!("{column} IN ({constant}, DATE '2021-01-01')"),
                format!("{column} NOT IN (DATE '1999-12-31', {constant})"),
                format!("{column} IN ({constant}, '2021-01-01')"),
                format!("{column} BETWEEN {constant} AND '2021-01-01'"),
                format!("{column} IN ({constant}, NULL)"),
            ] {
                let sql = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
                // braces stand for protection in a text
                let is_text_done = constant.starts_with('{') || pair.same_if_done(&sql);
                done += usize::from(is_text_done && pair.same_if_done_with(&sql, &[]));
            }
        }
    }
    assert!(done > 100, "{done}");
    assert!(pair.same_if_done("SELECT id FROM t WHERE d = DATE '2020-01-31'"));
    for sql in [
        "SELECT id FROM t WHERE d = {d '2020-01-31'}",
        "SELECT id FROM t WHERE dt >= {ts '2020-01-31 10:11:12'} ORDER BY id",
    ] {
        assert!(pair.same_if_done_with(sql, &[]), "{sql}");
        let found = |session: &mut Session| session.text(sql).expect(sql);
        let (plain, protected) = (found(&mut pair.plain), found(&mut pair.protected));
        assert_eq!(plain, protected, "{sql}");
    }
    assert!(
        pair.same_if_done(
            "SELECT id FROM t WHERE dt BETWEEN DATE'2020-01-01' AND DATE'2020-12-31'"
        )
    );
    assert!(pair.same_if_done("DELETE FROM t WHERE ts < TIMESTAMP'2020-01-31 01:00:00'"));
}

fn stored_in_every_type(kind: Kind) {
    let Some(mut pair) = pair(kind) else {
        return;
    };
    for (column, constant) in COLUMNS.iter().flat_map(|c| CONSTANTS.map(|k| (c, k))) {
        for sql in [
            format!("INSERT INTO t (id, {column}) VALUES (9, {constant})"),
            format!("UPDATE t SET {column} = {constant} WHERE id = 1"),
            format!(
                "INSERT IGNORE INTO t (id, {column}) VALUES (1, {constant}) ON DUPLICATE KEY UPDATE {column} = {constant}"
            ),
            "DELETE FROM t WHERE id = 9".to_owned(),
        ] {
            pair.same_if_done(&sql);
        }
        pair.same("SELECT * FROM t ORDER BY id");
    }
}

/// Frameworks write it where they want no character to escape.
fn escape_of_nothing(kind: Kind) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(20) {like}, b VARBINARY(20) {})";
    let Some(mut pair) = Pair::of(kind, false, &[]) else {
        return;
    };
    let (definition, bare) = with_and_without_protection(table);
    pair.plain.must(&bare);
    pair.protected.must(&definition);
    pair.both(
        "INSERT INTO t VALUES (1, 'a%', 'a%'), (2, 'a\\\\%b', 'a\\\\%b'), (3, 'a\\\\', 'a\\\\'), (4, 'abc', 'abc'), (5, NULL, NULL)",
    );
    for mode in ["", "NO_BACKSLASH_ESCAPES"] {
        pair.same(&format!("SET sql_mode = '{mode}'"));
        for (column, pattern) in ["s", "b"]
            .iter()
            .flat_map(|c| ["a%", "a\\\\%", "a\\\\\\\\%", "a_", "%", "abc", "a\\\\"].map(|p| (c, p)))
        {
            for not in ["", "NOT "] {
                let sql = format!(
                    "SELECT id FROM t WHERE {column} {not}LIKE '{pattern}' ESCAPE '' ORDER BY id"
                );
                pair.same_if_done(&sql);
                let parameter = [::mysql::Value::from(pattern)];
                let bound =
                    format!("SELECT id FROM t WHERE {column} {not}LIKE ? ESCAPE '' ORDER BY id");
                pair.same_if_done_with(&bound, &parameter);
            }
        }
    }
    pair.same("SET sql_mode = ''");
    assert!(pair.same_if_done("SELECT id FROM t WHERE s LIKE 'a%' ESCAPE ''"));
}

/// `LIKE CONCAT('%', ?, '%')` is what ORMs make of "contains".
fn texts_are_joined_by_concat(kind: Kind) {
    use ::mysql::Value;
    let table = "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(30) {eq, range, like}, \
         u VARCHAR(30) CHARACTER SET utf8mb3 {eq}, l VARCHAR(30) CHARACTER SET latin1 {eq}, \
         x VARCHAR(30) COLLATE utf8mb4_bin {eq, range}, c CHAR(10) {eq}, v VARBINARY(30) {eq}, n INT {eq}, \
         d DATE {eq}, e ENUM('ab','b') {eq}, j JSON {}, p VARCHAR(30))";
    let Some(mut pair) = Pair::of(kind, false, &[]) else {
        return;
    };
    let (definition, bare) = with_and_without_protection(table);
    pair.plain.must(&bare);
    pair.protected.must(&definition);
    for (id, text) in ["ab", "AB", "ab ", "äöü", "5b", "a%b", "a\\\\b", ""]
        .iter()
        .enumerate()
    {
        pair.both(&format!(
            "INSERT INTO t VALUES ({id}, '{text}', '{text}', '{text}', '{text}', '{text}', '{text}', {id}, '2020-01-0{}', 'ab', '\"{id}\"', '{text}')",
            id + 1
        ));
    }
    pair.both("INSERT INTO t (id) VALUES (10)");
    const COLUMNS: [&str; 10] = ["s", "u", "l", "x", "c", "v", "n", "d", "e", "j"];
    const JOINED: [&str; 14] = [
        "CONCAT('a', 'b')",
        "concat('ab')",
        "CONCAT('a','b',' ')",
        "(CONCAT('ä', 'öü'))",
        "CONCAT('', '')",
        "CONCAT('a', NULL)",
        "CONCAT('5', 'b')",
        "CONCAT(5, 'b')",
        "CONCAT('a', '\\\\', 'b')",
        "CONCAT('2020-01', '-01')",
        "CONCAT(_latin1'a', 'b')",
        "CONCAT('a' 'b')",
        "CONCAT(x'61', 'b')",
        "CONCAT('a', CONCAT('b', ''))",
    ];
    let mut done = 0;
    for (column, joined) in COLUMNS.iter().flat_map(|c| JOINED.map(|j| (c, j))) {
        for condition in [
            format!("{column} = {joined}"),
            format!("{joined} <=> {column}"),
            format!("{column} <> {joined}"),
            format!("{column} < {joined}"),
            format!("{column} IN ('x', {joined})"),
            format!("{column} BETWEEN {joined} AND 'b'"),
            format!("{column} LIKE {joined}"),
            format!("{column} = {joined} AND p = {joined}"),
        ] {
            let sql = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
            done += usize::from(pair.same_if_done(&sql));
            pair.same_if_done_with(&sql, &[]);
        }
    }
    let parameters: [&[Value]; 9] = [
        &["a".into(), "b".into()],
        &["ä".into(), "öü".into()],
        &["".into(), "".into()],
        &[Value::NULL, "b".into()],
        &[Value::Int(5), "b".into()],
        &[Value::Int(-5), Value::UInt(7)],
        &[Value::Double(5.0), "b".into()],
        &[Value::Date(2020, 1, 1, 0, 0, 0, 0), "".into()],
        &[vec![0xffu8, 0x61].into(), "b".into()],
    ];
    for (column, values) in COLUMNS.iter().flat_map(|c| parameters.map(|p| (c, p))) {
        for condition in [
            format!("{column} = CONCAT(?, ?)"),
            format!("CONCAT(?, ?) >= {column}"),
            format!("{column} IN (CONCAT(?, ?), 'ab')"),
            format!("{column} LIKE CONCAT('%', ?, ?, '%')"),
            format!("{column} NOT LIKE CONCAT(?, ?, '%')"),
        ] {
            let sql = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
            done += usize::from(pair.same_if_done_with(&sql, values));
        }
        for sql in [
            format!("UPDATE t SET p = 'z' WHERE {column} = CONCAT(?, ?)"),
            format!("DELETE FROM t WHERE {column} LIKE CONCAT(?, ?, '%') AND id > 10"),
        ] {
            pair.same_if_done_with(&sql, values);
        }
    }
    assert!(done > 200, "{done}");
    for sql in [
        "SELECT id FROM t WHERE s LIKE CONCAT('%', 'b', '%')",
        "SELECT id FROM t WHERE x = CONCAT('ä', 'öü')",
        "SELECT id FROM t WHERE l = CONCAT('a', 'b')",
    ] {
        assert!(pair.same_if_done(sql), "{sql}");
    }
    let contains = "SELECT id FROM t WHERE s LIKE CONCAT('%', ?, '%')";
    assert!(pair.same_if_done_with(contains, &["kanarien".into()]));
    assert!(pair.same_if_done("SELECT id FROM t WHERE s = CONCAT('kanarien', 'vogel')"));
    pair.assert_no_trace_of(&["kanarien"]);
}
