//! Random statements with constants of odd types in every position: a text with blanks for a
//! number, a double for an integer, a date for a DECIMAL, a time for a date, nothing at all.

use super::conditions::sql;
use super::random::Random;
use super::schema::{Column, Table, Type};
use super::script::{Check, Order, Piece, Statement, Step};
use super::values::{self, Literal};
use super::writes;
use mysql::Value;

pub const WHERE: &str = "select by odd constants";
pub const LIKE: &str = "select like odd constants";
pub const LIMIT: &str = "select with odd limits";
pub const UPDATE: &str = "update with odd constants";
pub const INSERT: &str = "insert of odd constants";
pub const UPSERT: &str = "insert of odd constants, or update with them";
pub const DELETE: &str = "delete by odd constants";

/// Any of them.
pub fn step(random: &mut Random, tables: &[Table], number: usize) -> Step {
    let mut statement = match random.weighted(&[40, 12, 8, 20, 20, 6]) {
        0 => by_constants(random, tables, number),
        1 => like(random, tables, number),
        2 => limit(random, tables, number),
        3 => update(random, tables, number),
        4 => return insert(random, tables, number),
        _ => delete(random, tables, number),
    };
    // The types of parameters are what this is about. LIMIT takes nothing but them.
    statement.prepared = statement.label == LIMIT || random.chance(75);
    Step::One(statement)
}

/// A constant that is mostly of another type than the column.
pub fn constant(random: &mut Random, column: &Column) -> Literal {
    let found = match random.below(12) {
        0 => Literal::null(),
        1 => Literal::text(random.pick(&["", " ", "  "])),
        2 | 3 => Literal::text(random.pick(&[
            "12 ", " 12", "\t7", "12abc", "abc", "1e1", "0x1F", "-0", "+5", "1.5", ".5", "5.",
            "1 2", "2020", "20 ",
        ])),
        4 => {
            let number = random.pick(&[1.5, -0.0, 2.5, -0.5, 3.0, 0.0, 1e15, 20_200_131.0, 1e300]);
            Literal {
                sql: format!("{number:e}"),
                parameter: Value::Double(number),
                risky: true,
            }
        }
        5 => Literal::number(&random.pick(&[-1, 0, 1, 7, i64::MIN, i64::MAX]).to_string()),
        6 => Literal::number("18446744073709551615"),
        7 => moment(random),
        8 => time(random),
        9 => with_blanks(random, column),
        10 => Literal::text(&"long ".repeat(random.pick(&[60, 600]))),
        _ => values::ordinary(random, column),
    };
    Literal {
        risky: true,
        ..found
    }
}

fn moment(random: &mut Random) -> Literal {
    if random.chance(50) {
        return Literal {
            sql: random
                .pick(&["DATE'2020-01-31'", "{d '2020-01-31'}"])
                .into(),
            parameter: Value::Date(2020, 1, 31, 0, 0, 0, 0),
            risky: true,
        };
    }
    Literal {
        sql: "TIMESTAMP'2020-01-31 10:11:12.5'".into(),
        parameter: Value::Date(2020, 1, 31, 10, 11, 12, 500_000),
        risky: true,
    }
}

fn time(random: &mut Random) -> Literal {
    let negative = random.chance(25);
    let sign = if negative { "-" } else { "" };
    Literal {
        sql: format!("TIME'{sign}10:11:12'"),
        parameter: Value::Time(negative, 0, 10, 11, 12, 0),
        risky: true,
    }
}

/// A value of the column's as a text with blanks around it.
fn with_blanks(random: &mut Random, column: &Column) -> Literal {
    let text = match values::ordinary(random, column).parameter {
        Value::Bytes(bytes) => String::from_utf8(bytes).unwrap_or_default(),
        Value::NULL => String::new(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        _ => "2020-01-31".into(),
    };
    let (before, behind) = random.pick(&[("", " "), (" ", ""), (" ", "  "), ("", "\n")]);
    Literal::text(&format!("{before}{text}{behind}"))
}

/// A column that no key names: what an index does with a constant of another type is the server's
/// affair (a MariaDB rounds it to what the column holds, see `values::compared`), and two plain
/// servers with other indexes differ.
pub fn unindexed(
    random: &mut Random,
    table: &Table,
    fits: impl Fn(&Column) -> bool,
) -> Option<usize> {
    let candidates: Vec<usize> = (1..table.columns.len())
        .filter(|&i| {
            let column = &table.columns[i];
            // To MariaDB, no text lies between two empty parameters in a CHAR(0).
            !column.is_indexed && column.ty != Type::Char(0) && fits(column)
        })
        .collect();
    (!candidates.is_empty()).then(|| random.pick(&candidates))
}

fn statement(label: &'static str, pieces: Vec<Piece>) -> Statement {
    Statement {
        label,
        pieces,
        prepared: false,
        check: Check {
            order: Order::Total,
            several_errors: true,
            ..Check::default()
        },
    }
}

/// ` WHERE c = 'odd'`, or any other comparison.
fn condition(random: &mut Random, table: &Table, number: usize, pieces: &mut Vec<Piece>) {
    let Some(index) = unindexed(random, table, |_| true) else {
        pieces.push(sql(" WHERE id = "));
        let id = Literal::number(&random.between(1, 40).to_string());
        pieces.push(Piece::Constant(id, (number, 0)));
        return;
    };
    let column = &table.columns[index];
    let name = &column.name;
    let odd = |random: &mut Random| Piece::Constant(constant(random, column), (number, index));
    pieces.push(sql(" WHERE "));
    let not = if random.chance(35) { " NOT" } else { "" };
    if random.chance(10) {
        among_constants(random, (number, index), pieces);
        pieces.push(sql(" AND "));
    }
    match random.below(6) {
        0 | 1 => {
            pieces.push(sql(&format!("{name}{not} IN (")));
            for n in 0..1 + random.below(4) {
                if n > 0 {
                    pieces.push(sql(", "));
                }
                pieces.push(odd(random));
            }
            pieces.push(sql(")"));
        }
        2 => {
            pieces.push(sql(&format!("{name}{not} BETWEEN ")));
            pieces.push(odd(random));
            pieces.push(sql(" AND "));
            pieces.push(odd(random));
        }
        3 => {
            pieces.push(odd(random));
            let operator = random.pick(&["=", "<", ">=", "<>"]);
            pieces.push(sql(&format!(" {operator} {name}")));
        }
        _ => {
            let operator = random.pick(&["=", "=", "<=>", "<>", "<", "<=", ">", ">="]);
            pieces.push(sql(&format!("{name} {operator} ")));
            pieces.push(odd(random));
        }
    }
}

/// `'a' LIKE 'A'`: what the connection's collation decides alone.
fn among_constants(random: &mut Random, place: (usize, usize), pieces: &mut Vec<Piece>) {
    let mut text = || {
        let text = random.pick(&["a", "A", "ä", "Ä", "b"]);
        Piece::Constant(Literal::text(text), place)
    };
    let (first, second) = (text(), text());
    let (before, between, behind) = random.pick(&[
        ("", " LIKE ", ""),
        ("", " = ", ""),
        ("UPPER(", ") = ", ""),
        ("CONCAT(id, ", ") <> CONCAT(id, ", ")"),
    ]);
    pieces.extend([sql(before), first, sql(between), second, sql(behind)]);
}

fn by_constants(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let mut pieces = vec![sql(&format!("SELECT * FROM {}", table.name))];
    condition(random, table, number, &mut pieces);
    pieces.push(sql(" ORDER BY id"));
    statement(WHERE, pieces)
}

fn like(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let index = unindexed(random, table, |c| c.ty.is_text()).unwrap_or(0);
    let column = &table.columns[index];
    let not = if random.chance(30) { " NOT" } else { "" };
    let mut pieces = vec![sql(&format!(
        "SELECT id, {} FROM {} WHERE {}{not} LIKE ",
        column.name, table.name, column.name
    ))];
    pieces.push(Piece::Constant(constant(random, column), (number, index)));
    pieces.push(sql(" ORDER BY id"));
    statement(LIKE, pieces)
}

fn limit(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let column = random.choose(&table.columns);
    let count = |random: &mut Random| {
        Piece::Constant(
            match random.below(8) {
                0 => Literal::null(),
                1 => Literal::text(random.pick(&["2", "2 ", "", "x"])),
                2 => Literal {
                    parameter: Value::Double(1.5),
                    ..Literal::number("1.5")
                },
                3 => Literal::number("-1"),
                4 => Literal::number("18446744073709551615"),
                _ => Literal::number(&random.below(6).to_string()),
            },
            (number, 0),
        )
    };
    let mut pieces = vec![sql(&format!(
        "SELECT id, {} FROM {} ORDER BY id LIMIT ",
        column.name, table.name
    ))];
    pieces.push(count(random));
    if random.chance(40) {
        pieces.push(sql(random.pick(&[", ", " OFFSET "])));
        pieces.push(count(random));
    }
    statement(LIMIT, pieces)
}

fn update(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let mut pieces = vec![sql(&format!("UPDATE {} SET ", table.name))];
    pieces.extend(assignments(random, table, number));
    match random.chance(65) {
        true => pieces.extend(super::conditions::by_id(random, (number, 0))),
        false => condition(random, table, number, &mut pieces),
    }
    pieces.push(sql(" ORDER BY id"));
    statement(UPDATE, pieces)
}

/// `c = 'odd'`, once or twice, of columns whose values need not be unique.
fn assignments(random: &mut Random, table: &Table, number: usize) -> Vec<Piece> {
    let free: Vec<usize> = (1..table.columns.len())
        .filter(|&i| !table.is_unique(&table.columns[i].name) && !table.columns[i].on_update)
        .collect();
    if free.is_empty() {
        return vec![sql("id = id")];
    }
    let mut pieces = Vec::new();
    let count = 1 + random.below(2);
    for (n, at) in random.sample(free.len(), count).into_iter().enumerate() {
        let index = free[at];
        let column = &table.columns[index];
        let comma = if n > 0 { ", " } else { "" };
        pieces.push(sql(&format!("{comma}{} = ", column.name)));
        pieces.push(Piece::Constant(constant(random, column), (number, index)));
    }
    pieces
}

fn delete(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let mut pieces = vec![sql(&format!("DELETE FROM {}", table.name))];
    condition(random, table, number, &mut pieces);
    // rows are needed for what follows
    pieces.push(sql(" ORDER BY id LIMIT 1"));
    statement(DELETE, pieces)
}

fn insert(random: &mut Random, tables: &[Table], number: usize) -> Step {
    let table = &tables[number];
    let mut insert = writes::plain_insert(random, table, number, 1, true);
    insert.label = Some(INSERT);
    insert.verb = random.pick(&["INSERT", "INSERT IGNORE", "INSERT"]);
    if random.chance(40) {
        insert.label = Some(UPSERT);
        insert.on_duplicate = assignments(random, table, number);
    }
    for (literal, (_, index)) in insert.rows[0].iter_mut().zip(&insert.columns) {
        if *index > 0 && random.chance(50) {
            *literal = constant(random, &table.columns[*index]);
        }
    }
    insert.check.several_errors = true;
    insert.prepared = random.chance(75);
    Step::Insert(insert)
}
