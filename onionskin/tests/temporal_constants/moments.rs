//! Dates and times as parameters beside plain columns of every type, in statements that the proxy
//! carries out row by row, and in those whose constants an engine computes.

use super::*;

/// Plain columns, and five values each.
const PLAIN: &[(&str, &str, [&str; 5])] = &[
    (
        "d",
        "DATE",
        [
            "'2020-01-31'",
            "'2019-01-31'",
            "NULL",
            "'2021-02-01'",
            "'0000-00-00'",
        ],
    ),
    (
        "dt",
        "DATETIME",
        [
            "'2020-01-31 10:11:12'",
            "'2020-01-31'",
            "NULL",
            "'2019-02-01'",
            "'0000-00-00'",
        ],
    ),
    (
        "ts",
        "TIMESTAMP(6) NULL",
        [
            "'2020-01-31 10:11:12.5'",
            "'2020-01-31'",
            "NULL",
            "'2019-02-01'",
            "'2022-01-01'",
        ],
    ),
    (
        "ti",
        "TIME",
        [
            "'10:11:12'",
            "'-10:11:12'",
            "NULL",
            "'100:00:00'",
            "'00:00:00'",
        ],
    ),
    ("y", "YEAR", ["2020", "2019", "NULL", "2010", "0"]),
    ("i", "INT", ["20200131", "101112", "NULL", "10", "0"]),
    (
        "de",
        "DECIMAL(20,3)",
        ["20200131101112.5", "101112.5", "NULL", "10", "0"],
    ),
    (
        "f",
        "DOUBLE",
        ["20200131101112.5", "101112", "NULL", "2020", "0"],
    ),
    (
        "s",
        "VARCHAR(40)",
        [
            "'2020-01-31'",
            "'10:11:12'",
            "NULL",
            "'ss'",
            "'2020-01-31 10:11:12'",
        ],
    ),
    (
        "x",
        "TEXT",
        [
            "'2020-01-31 10:11:12'",
            "'10:11:12.0'",
            "NULL",
            "''",
            "'20-1-31'",
        ],
    ),
    (
        "b",
        "VARBINARY(40)",
        ["'2020-01-31'", "'10:11:12'", "NULL", "'zz'", "''"],
    ),
    (
        "e",
        "ENUM('2020-01-31', '10:11:12', 'z')",
        ["1", "2", "NULL", "3", "1"],
    ),
];

const VALUES: &[P] = &[
    P::Date(2020, 1, 31),
    P::DateTime(2020, 1, 31, 0, 0, 0, 0),
    P::DateTime(2020, 1, 31, 10, 11, 12, 0),
    P::DateTime(2020, 1, 31, 10, 11, 12, 500_000),
    P::Timestamp(2020, 1, 31, 10, 11, 12, 0),
    P::Time(false, 0, 10, 11, 12, 0),
    P::Time(false, 0, 10, 11, 12, 500_000),
    P::Time(true, 0, 10, 11, 12, 0),
    P::Time(false, 4, 4, 0, 0, 0),
];

const CONDITIONS: &[&str] = &[
    "{} = ?",
    "{} <= ?",
    "? >= {}",
    "{} <=> ? AND id < 9",
    "NOT ({} > ? OR id = 4)",
    "{} IN (?, 5)",
    "{} NOT IN (?)",
    "{} BETWEEN ? AND '2022-01-01'",
    "{} BETWEEN '2019-05-05' AND ?",
    "{} + 0 = ? + 0",
    "{} = CONCAT(?)",
    "COALESCE({}, ?) = ?",
    "({}, id) = (?, 1)",
    "CAST({} AS CHAR) < ?",
];

/// With these, the plain column's values are looked at afterwards.
const CHANGES: &[(&str, bool)] = &[
    ("UPDATE mo SET k = 'B', {} = ? WHERE id > 0", false),
    ("UPDATE mo SET {} = ?, n = n + 1", false),
    ("UPDATE mo SET n = n + 1, {} = CONCAT(?)", false),
    ("INSERT INTO mo (id, k, {}) VALUES (9, 'n', ?)", false),
    (
        "INSERT INTO mo (id, k, {}) VALUES (1, 'n', ?) ON DUPLICATE KEY UPDATE n = 7, {} = ?",
        false,
    ),
    ("UPDATE mo SET k = UPPER('b'), {} = ?", true),
    ("INSERT INTO mo (id, k, {}) VALUES (9, LOWER('N'), ?)", true),
];

/// A date or time that is a parameter is neither a literal nor a text. Directly beside a column of
/// such values all of them mean the same. Everywhere else the proxy must not write one as the
/// other.
pub fn moments_beside_plain_columns_of_every_type(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    let mut tables =
        String::from("CREATE TABLE mo (id INT PRIMARY KEY, n INT {}, k VARCHAR(20) {}");
    for (name, ty, _) in PLAIN {
        tables += &format!(", {name} {ty}");
    }
    tables += ")";
    let (protected, plain) = with_and_without_protection(&tables);
    scene.bare.must(&protected);
    scene.plain.must(&plain);
    scene.set_mode("");
    for row in 0..5 {
        let values: Vec<&str> = PLAIN.iter().map(|c| c.2[row]).collect();
        let sql = format!(
            "INSERT INTO mo VALUES ({row}, 0, 'a', {})",
            values.join(", ")
        );
        for client in [&mut scene.bare, &mut scene.plain] {
            client.must(&sql);
        }
    }
    for (column, ..) in PLAIN {
        for value in VALUES {
            for condition in CONDITIONS {
                for verb in [
                    "UPDATE mo SET k = 'b' WHERE",
                    "DELETE FROM mo WHERE k = 'a' AND",
                ] {
                    let sql = format!("{verb} {}", condition.replace("{}", column));
                    let values = vec![*value; sql.matches('?').count()];
                    scene.compare(verb, &sql, Some(&values), false);
                }
            }
            for (change, computes) in CHANGES {
                let sql = change.replace("{}", column);
                let values = vec![*value; sql.matches('?').count()];
                scene.changes(&sql, column, &values, *computes);
            }
        }
    }
    scene.conclude();
}

impl Scene {
    /// Compares a statement and what it leaves in a column.
    fn changes(&mut self, sql: &str, column: &str, values: &[P], computes: bool) {
        let run = |client: &mut Client| {
            client.must("BEGIN");
            let seen = client.execute(sql, values);
            let kept = client.text(&format!("SELECT id, n, k, {column} FROM mo ORDER BY id"));
            client.must("ROLLBACK");
            (seen, kept)
        };
        let client = match computes {
            true => &mut self.engine,
            false => &mut self.bare,
        };
        let protected = run(client);
        if let (Seen::Refused(why), _) = protected {
            *self.refused.entry(format!("{sql}: {why}")).or_default() += 1;
            return;
        }
        self.answers += 1;
        let plain = run(&mut self.plain);
        if plain != protected {
            self.different.push(format!(
                "{sql} {values:?}\n    plain {plain:?}\n    proxy {protected:?}"
            ));
        }
    }
}
