//! What is stored of odd values.

use super::*;

/// What is stored beside what servers say of it.
const STORED: &[P] = &[
    P::Null,
    P::Int(0),
    P::Int(12),
    P::Int(70),
    P::Int(2020),
    P::Int(2156),
    P::Int(-1),
    P::Int(20200131),
    P::Int(20200230),
    P::Int(20201301),
    P::Int(20200131101112),
    P::Int(101112),
    P::Int(-101112),
    P::Int(106112),
    P::Double(12.0),
    P::Double(2020.0),
    P::Double(2020.6),
    P::Double(20200131.0),
    P::Float(12.5),
    P::Decimal("12"),
    P::Decimal("2020.5"),
    P::Decimal("20200131"),
    P::Decimal("-1"),
    P::Text(""),
    P::Text(" "),
    P::Text("0"),
    P::Text("00"),
    P::Text("000"),
    P::Text("0000"),
    P::Text("1"),
    P::Text("12"),
    P::Text("12 "),
    P::Text("12   "),
    P::Text(" 12"),
    P::Text("12\t"),
    P::Text("12\n"),
    P::Text("12\0"),
    P::Text("12x"),
    P::Text("12 x"),
    P::Text("012"),
    P::Text("123"),
    P::Text("2020"),
    P::Text("2020 "),
    P::Text("2020x"),
    P::Text("02020"),
    P::Text("2020.6"),
    P::Text("2e3"),
    P::Text("+12"),
    P::Text("-12"),
    P::Text("-0"),
    P::Text("99999999999999999999"),
    P::Text("x"),
    P::Text("2020-01-31"),
    P::Text("2020-01-31 "),
    P::Text(" 2020-01-31"),
    P::Text("2020-01-31x"),
    P::Text("2020-1-3"),
    P::Text("20-1-3"),
    P::Text("2020-13-01"),
    P::Text("2020-02-30"),
    P::Text("2020-02-31 10:11:12"),
    P::Text("2020-00-00"),
    P::Text("0000-00-00"),
    P::Text("0000-00-00 00:00:00"),
    P::Text("2020-01-31 10:11:12"),
    P::Text("2020-01-31T10:11:12"),
    P::Text("2020-01-31 10:11:12.6"),
    P::Text("2020-01-31 25:11:12"),
    P::Text("20200131"),
    P::Text("200131"),
    P::Text("20200131101112"),
    P::Text("10:11:12"),
    P::Text("10:11:12 "),
    P::Text(" 10:11:12"),
    P::Text("10:11"),
    P::Text("10:61:00"),
    P::Text("-10:11:12"),
    P::Text("1 10:11:12"),
    P::Text("839:00:00"),
    P::Text("101112"),
    P::Text("10:11:12x"),
    P::Blob("12"),
    P::Blob("2020-01-31"),
    P::Date(0, 0, 0),
    P::Date(2020, 0, 0),
    P::Date(2020, 1, 31),
    P::Date(2020, 2, 30),
    P::Date(2020, 13, 1),
    P::Date(1, 1, 1),
    P::Date(2156, 1, 1),
    P::DateTime(0, 0, 0, 0, 0, 0, 0),
    P::DateTime(2020, 1, 31, 0, 0, 0, 0),
    P::DateTime(2020, 1, 31, 10, 11, 12, 600_000),
    P::DateTime(2020, 1, 31, 25, 0, 0, 0),
    P::DateTime(2020, 2, 31, 10, 11, 12, 0),
    P::Timestamp(2020, 1, 31, 10, 11, 12, 0),
    P::Time(false, 0, 10, 11, 12, 0),
    P::Time(false, 0, 10, 11, 12, 600_000),
    P::Time(true, 0, 10, 11, 12, 0),
    P::Time(true, 0, 0, 0, 0, 0),
    P::Time(true, 0, 0, 0, 0, 400_000),
    P::Time(true, 0, 0, 0, 1, 0),
    P::Time(false, 34, 22, 59, 59, 0),
    P::Time(false, 35, 0, 0, 0, 0),
    P::Time(false, 0, 10, 61, 0, 0),
];

const STORING: &[(&str, &str)] = &[
    ("y", "YEAR"),
    ("dt", "DATE"),
    ("t", "DATETIME"),
    ("t1", "DATETIME(1)"),
    ("ts", "TIMESTAMP NULL"),
    ("ti", "TIME"),
    ("t2", "TIME(2)"),
];

pub fn odd_values_are_stored_as_the_server_stores_them(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    let mut table = String::from("CREATE TABLE o (id INT PRIMARY KEY, plain INT");
    for (name, ty) in STORING {
        table += &format!(", {name} {ty} {{eq, range}}");
    }
    let (protected, plain) = with_and_without_protection(&(table + ")"));
    scene.pair.protected.must(&protected);
    scene.pair.plain.must(&plain);
    let modes = [
        "",
        "STRICT_TRANS_TABLES",
        "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE",
        "NO_ZERO_DATE,NO_ZERO_IN_DATE",
        "ALLOW_INVALID_DATES",
    ];
    for (m, mode) in modes.into_iter().enumerate() {
        scene.set_mode(mode);
        for (c, (column, _)) in STORING.iter().enumerate() {
            for (v, value) in STORED.iter().enumerate() {
                // each value in each column, in every other mode
                if long_run() || (m + c + v).is_multiple_of(2) {
                    scene.stored(mode, column, *value);
                }
            }
        }
    }
    scene.conclude();
}

impl Scene {
    /// What an INSERT, an INSERT of a text and an UPDATE leave behind.
    fn stored(&mut self, mode: &str, column: &str, value: P) {
        let mut statements = vec![
            (
                format!("INSERT INTO o (id, {column}) VALUES (2, ?)"),
                Some(value),
            ),
            (
                format!("UPDATE o SET {column} = ? WHERE id = 1"),
                Some(value),
            ),
            (
                format!("INSERT INTO o (id, {column}) VALUES (2, ?), (3, NULL)"),
                Some(value),
            ),
            (
                format!("REPLACE INTO o (id, plain, {column}) VALUES (2, 5, ?)"),
                Some(value),
            ),
        ];
        if let P::Text(text) = value {
            statements.push((
                format!("INSERT INTO o (id, {column}) VALUES (2, '{text}')"),
                None,
            ));
            statements.push((
                format!("UPDATE o SET {column} = '{text}' WHERE id = 1"),
                None,
            ));
        }
        for (sql, bound) in statements {
            let bound = bound.as_slice();
            let run = |client: &mut Client| {
                client.must("BEGIN");
                client.must("INSERT INTO o (id) VALUES (1)");
                let done = match bound {
                    [] => client.text(&sql),
                    bound => client.execute(&sql, bound),
                };
                let said = client.text("SHOW WARNINGS");
                let left = client.text(&format!("SELECT id, {column} FROM o ORDER BY id"));
                client.must("ROLLBACK");
                (done, said, left)
            };
            let protected = run(&mut self.bare);
            let about = format!("{mode}, {column}: {}", &sql[..6]);
            if matches!(protected.0, Seen::Refused(_)) {
                *self.refused.entry(about).or_default() += 1;
                continue;
            }
            self.answers += 1;
            let plain = run(&mut self.plain);
            if plain != protected {
                self.different.push(format!(
                    "{mode}: {sql} {bound:?}\n    plain {plain:?}\n    proxy {protected:?}"
                ));
            }
        }
    }
}
