//! Random changes of a table by what it holds itself: subqueries on the table that is written to.
//! MySQL refuses those that are not in a derived table (1093), MariaDB computes them.

use super::conditions::{by_id, sql};
use super::odd;
use super::random::Random;
use super::schema::{Table, Type};
use super::script::{Check, Piece, Statement};

pub const UPDATE: &str = "update by its own table";
pub const DELETE: &str = "delete by its own table";

pub fn change(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let name = &table.name;
    let index = odd::unindexed(random, table, |c| !c.on_update).unwrap_or(0);
    let column = &table.columns[index].name;
    let low = random.between(1, 30);
    let rows = random
        .pick(&[
            "SELECT id FROM {} x WHERE x.id < LOW",
            "SELECT id FROM {} WHERE id > LOW",
        ])
        .replace("{}", name)
        .replace("LOW", &low.to_string());
    let rows = match random.chance(50) {
        true => format!("SELECT * FROM ({rows}) AS d"),
        false => rows,
    };
    if random.chance(25) {
        let text = format!("DELETE FROM {name} WHERE id IN ({rows}) ORDER BY id LIMIT 1");
        return statement(DELETE, vec![sql(&text)]);
    }
    let extreme = match table.columns[index].ty {
        // the extreme of members is one by name or by number, see `finishing::aggregate`
        Type::Enum | Type::Set => "SELECT COUNT(*) FROM {}",
        _ => random.pick(&[
            "SELECT MAX(x.COLUMN) FROM {} x",
            "SELECT MIN(COLUMN) FROM {}",
            "SELECT COUNT(*) FROM {}",
            "SELECT d.m FROM (SELECT MAX(COLUMN) AS m FROM {}) d",
        ]),
    };
    let value = extreme.replace("COLUMN", column).replace("{}", name);
    let mut pieces = Vec::new();
    if random.chance(60) {
        pieces.push(sql(&format!("UPDATE {name} SET {column} = ({value})")));
        pieces.extend(by_id(random, (number, 0)));
    } else {
        let text = format!("UPDATE {name} SET {column} = {column} WHERE id IN ({rows})");
        pieces.push(sql(&text));
    }
    statement(UPDATE, pieces)
}

fn statement(label: &'static str, pieces: Vec<Piece>) -> Statement {
    Statement {
        label,
        pieces,
        prepared: false,
        check: Check {
            several_errors: true,
            // in which of its tables a server evaluates first is its plan
            uncounted: true,
            ..Check::default()
        },
    }
}
