//! Parameters that are compared with plain columns, beside protected ones.

use super::*;

const MOMENTS: &[(&str, P)] = &[
    ("'2020-01-01'", P::Text("2020-01-01")),
    ("'2020-01-01 12:30:00'", P::Text("2020-01-01 12:30:00")),
    (
        "'2020-01-01 12:30:00.123456'",
        P::Text("2020-01-01 12:30:00.123456"),
    ),
    (
        "TIMESTAMP'2020-01-01 12:30:00.123456'",
        P::DateTime(2020, 1, 1, 12, 30, 0, 123_456),
    ),
    (
        "TIMESTAMP'2020-01-01 12:30:00.6'",
        P::DateTime(2020, 1, 1, 12, 30, 0, 600_000),
    ),
    ("20200101", P::Int(20_200_101)),
    ("20200101123000", P::Int(20_200_101_123_000)),
    ("NULL", P::Null),
];
const TIMES: &[(&str, P)] = &[
    ("'10:11:12'", P::Text("10:11:12")),
    ("'10:11:12.123456'", P::Text("10:11:12.123456")),
    ("'10:11:12.6'", P::Text("10:11:12.6")),
    ("101112", P::Int(101_112)),
    ("101112.123456", P::Decimal("101112.123456")),
    ("TIME'10:11:12.16'", P::Time(false, 0, 10, 11, 12, 160_000)),
];
const NUMBERS: &[(&str, P)] = &[
    ("2020", P::Int(2020)),
    ("20", P::Int(20)),
    ("-1", P::Int(-1)),
    ("'2020'", P::Text("2020")),
    ("2.5", P::Decimal("2.5")),
    ("-2.5", P::Decimal("-2.5")),
    ("2.5e0", P::Double(2.5)),
    ("9007199254740993", P::Int(9_007_199_254_740_993)),
    ("'9007199254740993'", P::Text("9007199254740993")),
    ("9007199254740992e0", P::Double(9_007_199_254_740_992.0)),
];
/// Columns, and what they are compared with: as a literal, and as a parameter.
const COMPARED: [(&str, &[(&str, P)]); 9] = [
    ("dt", MOMENTS),
    ("t", MOMENTS),
    ("t1", MOMENTS),
    ("ti", TIMES),
    ("ti1", TIMES),
    ("y", NUMBERS),
    ("b", NUMBERS),
    ("d", NUMBERS),
    ("s", NUMBERS),
];

/// A parameter is no constant to MySQL: it is not rounded to the type of a column before it is
/// compared, as a literal is. Beside protected columns the proxy must not write the one as the
/// other.
pub fn parameters_beside_plain_columns_stay_parameters(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    let (protected, plain) = with_and_without_protection(
        "CREATE TABLE pl (id INT PRIMARY KEY, dt DATE, t DATETIME, t1 DATETIME(1), ti TIME, ti1 TIME(1), y YEAR, b BIGINT, \
         d DECIMAL(10,2), s VARCHAR(20), n INT {}, k VARCHAR(20) {})",
    );
    scene.bare.must(&protected);
    scene.plain.must(&plain);
    let rows = "INSERT INTO pl VALUES \
         (1, '2020-01-01', '2020-01-01 12:30:00', '2020-01-01 12:30:00.1', '10:11:12', '10:11:12.1', 2020, 9007199254740993, 2.5, '2020', 1, 'a'), \
         (2, '2020-01-02', '2020-01-01 12:30:01', '2020-01-01 12:30:00.2', '10:11:13', '10:11:12.2', 2021, 9007199254740992, 2.51, '2.5', 2, 'b'), \
         (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 3, 'c')";
    for client in [&mut scene.bare, &mut scene.plain] {
        client.must(rows);
    }
    let forms = [
        "{} = ?",
        "{} >= ?",
        "NOT {} < ?",
        "{} IN (?, ?)",
        "{} BETWEEN ? AND ?",
    ];
    let verbs = [
        "SELECT n FROM pl WHERE",
        "UPDATE pl SET n = n + 1 WHERE",
        "UPDATE pl SET k = 'a' WHERE",
        "DELETE FROM pl WHERE k > 'A' AND",
    ];
    for (column, values) in COMPARED {
        for (literal, bound) in values {
            for form in forms {
                for verb in verbs {
                    let sql = format!("{verb} {}", form.replace("{}", column));
                    let places = sql.matches('?').count();
                    let bound = vec![*bound; places];
                    scene.compare(verb, &sql, Some(&bound), false);
                    let using = ["@a", "@a", "@a"][..places].join(", ");
                    scene.by_name(verb, &sql, &format!("@a = {literal}"), &using);
                }
            }
        }
    }
    // signs, several rows, values beside conditions
    for (sql, values, using) in [
        (
            "SELECT n FROM pl WHERE n < ? AND t > ?",
            "@a = 7, @b = '9999999999999999999999'",
            "@a, @b",
        ),
        (
            "SELECT n FROM pl WHERE b > ? AND d <> -?",
            "@a = -1, @b = -2.5",
            "@a, @b",
        ),
        (
            "INSERT INTO pl (id, n, t, ti1) VALUES (?, ?, ?, ?), (8, ?, ?, '1:2:3.55')",
            "@a = 7, @b = '2020-01-01 12:30:00.6', @c = '1:2:3.55'",
            "@a, @a, @b, @c, @a, @b",
        ),
        (
            "UPDATE pl SET n = ?, t = ? WHERE id = ?",
            "@a = 7, @b = '2020-01-01 12:30:01', @c = 1",
            "@a, @b, @c",
        ),
        (
            "SELECT n FROM pl WHERE s = ? AND k = 'a' LIMIT ?",
            "@a = '2020', @b = 1",
            "@a, @b",
        ),
    ] {
        scene.by_name("several", sql, values, using);
    }
    scene.conclude();
}

impl Scene {
    /// Compares a statement that is prepared and executed in SQL.
    fn by_name(&mut self, what: &str, sql: &str, set: &str, using: &str) {
        let run = |client: &mut Client| {
            client.must("BEGIN");
            client.must(&format!("SET {set}"));
            let text = sql.replace('\'', "''");
            let seen = match client.text(&format!("PREPARE st FROM '{text}'")) {
                Seen::Done { .. } => {
                    let seen = client.text(&format!("EXECUTE st USING {using}"));
                    client.text("DEALLOCATE PREPARE st");
                    seen
                }
                other => other,
            };
            let kept = client.text("SELECT id, t, ti1 FROM pl ORDER BY id");
            client.must("ROLLBACK");
            (seen, kept)
        };
        let protected = run(&mut self.bare);
        if let (Seen::Refused(_), _) = protected {
            *self.refused.entry(format!("by name {what}")).or_default() += 1;
            return;
        }
        self.answers += 1;
        let plain = run(&mut self.plain);
        if plain != protected {
            self.different.push(format!(
                "by name: {sql} with {set} using {using}\n    plain {plain:?}\n    proxy {protected:?}"
            ));
        }
    }
}
