//! Random comparisons of dates and times with constants of every spelling: as numbers with and
//! without a time, with two digits for a year, with fractions, as texts, and NULL at either end.

use super::conditions::sql;
use super::odd;
use super::random::Random;
use super::schema::{Column, Table, Type};
use super::script::{Check, Order, Piece, Statement};
use super::values::Literal;

pub const LABEL: &str = "select temporal numbers";

/// A SELECT, if any table has a column for it.
pub fn query(random: &mut Random, tables: &[Table]) -> Option<Statement> {
    let is_temporal = |c: &Column| {
        use Type::*;
        matches!(c.ty, Date | Time(_) | DateTime(_) | Timestamp(_) | Year)
    };
    let first = random.below(tables.len());
    let (number, index) = (0..tables.len()).find_map(|n| {
        let number = (first + n) % tables.len();
        // an index rounds constants to what the column holds, or not, see `odd::unindexed`
        odd::unindexed(random, &tables[number], is_temporal).map(|index| (number, index))
    })?;
    let table = &tables[number];
    let column = &table.columns[index];
    let name = &column.name;
    let at = |random: &mut Random| Piece::Constant(constant(random, column.ty), (number, index));
    let mut pieces = vec![sql(&format!(
        "SELECT id, {name} FROM {} WHERE ",
        table.name
    ))];
    let not = if random.chance(45) { " NOT" } else { "" };
    match random.below(5) {
        0 | 1 => {
            pieces.push(sql(&format!("{name}{not} IN (")));
            for n in 0..1 + random.below(4) {
                if n > 0 {
                    pieces.push(sql(", "));
                }
                pieces.push(at(random));
            }
            pieces.push(sql(")"));
        }
        2 | 3 => {
            pieces.push(sql(&format!("{name}{not} BETWEEN ")));
            pieces.push(at(random));
            pieces.push(sql(" AND "));
            pieces.push(at(random));
        }
        _ => {
            let operator = random.pick(&["=", "<=>", "<>", "<", "<=", ">", ">="]);
            match random.chance(20) {
                true => {
                    pieces.push(at(random));
                    pieces.push(sql(&format!(" {operator} {name}")));
                }
                false => {
                    pieces.push(sql(&format!("{name} {operator} ")));
                    pieces.push(at(random));
                }
            }
        }
    }
    pieces.push(sql(" ORDER BY id"));
    Some(Statement {
        label: LABEL,
        pieces,
        prepared: false,
        check: Check {
            order: Order::Total,
            several_errors: true,
            ..Check::default()
        },
    })
}

fn constant(random: &mut Random, ty: Type) -> Literal {
    if random.chance(10) {
        return Literal::null();
    }
    match ty {
        Type::Year => year(random),
        Type::Time(_) => time(random),
        _ => date(random),
    }
}

fn date(random: &mut Random) -> Literal {
    let (date, short, dashed) = random.pick(&[
        ("20200131", "200131", "2020-01-31"),
        ("20000229", "229", "2000-02-29"),
        ("19691231", "691231", "1969-12-31"),
        ("19991231", "991231", "1999-12-31"),
        ("20241225", "241225", "2024-12-25"),
        ("20200101", "200101", "2020-01-01"),
    ]);
    let (time, colons) = random.pick(&[
        ("000000", "00:00:00"),
        ("101112", "10:11:12"),
        ("123000", "12:30:00"),
        ("235959", "23:59:59"),
    ]);
    match random.below(9) {
        0 | 1 => Literal::number(date),
        2 | 3 => Literal::number(&format!("{date}{time}")),
        4 => Literal::number(short),
        5 => Literal::text(dashed),
        6 => Literal::text(&format!("{dashed} {colons}")),
        7 => Literal::text(&format!("{date}{time}")),
        _ => Literal::number(random.pick(&[
            "0",
            "20200131101112.5",
            "20200000",
            "20201301",
            "-20200131",
            "1",
            "99999999",
        ])),
    }
}

fn time(random: &mut Random) -> Literal {
    match random.below(5) {
        0 | 1 => Literal::number(random.pick(&[
            "101112", "235959", "1", "0", "-1", "100", "-100000", "8385959", "1000000", "1112",
        ])),
        2 => Literal::text(random.pick(&["10:11:12", "23:59:59", "10:11", "101112", "-00:00:01"])),
        3 => Literal::number(random.pick(&["101112.5", "101112.123456", "-100000.25"])),
        _ => Literal::number(random.pick(&["20200131101112", "106099", "9999999", "20200131"])),
    }
}

fn year(random: &mut Random) -> Literal {
    match random.below(4) {
        0 => Literal::number(random.pick(&["2000", "1999", "2024", "1970", "2155", "1901"])),
        1 => Literal::number(random.pick(&["0", "99", "24", "70", "69", "1", "100"])),
        2 => Literal::text(random.pick(&["2000", "99", "0", "00", "24", "1970"])),
        _ => Literal::number(random.pick(&["1999.5", "-1", "3000", "20240101"])),
    }
}
