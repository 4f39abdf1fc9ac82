//! Random statements that assign one column twice: the later assignment sees what the earlier one
//! left, in UPDATE and behind ON DUPLICATE KEY UPDATE.

use super::conditions::{by_id, filter, sql};
use super::random::Random;
use super::schema::{Column, Table, Type};
use super::script::{Check, Piece, Statement, Step};
use super::values;
use super::writes;

pub const UPDATE: &str = "update, assigned twice";
pub const MET: &str = "insert on duplicate, assigned twice";

pub fn step(random: &mut Random, tables: &[Table], number: usize) -> Option<Step> {
    let table = &tables[number];
    let free: Vec<usize> = (1..table.columns.len())
        .filter(|&i| {
            let column = &table.columns[i];
            let may = !column.on_update && column.ty != Type::Char(0);
            may && !table.is_unique(&column.name)
        })
        .collect();
    if free.is_empty() {
        return None;
    }
    let mut assignments = Vec::new();
    let count = 1 + usize::from(random.chance(40));
    let chosen: Vec<usize> = random
        .sample(free.len(), count)
        .into_iter()
        .map(|at| free[at])
        .collect();
    let mut order: Vec<usize> = chosen.iter().chain(&chosen).copied().collect();
    if random.chance(25) {
        order.push(chosen[0]);
    }
    if random.chance(50) {
        order.sort_unstable();
    }
    for (n, &index) in order.iter().enumerate() {
        if n > 0 {
            assignments.push(sql(", "));
        }
        assignment(random, table, (number, index), &mut assignments);
    }
    if random.chance(30) {
        let mut insert = writes::plain_insert(random, table, number, 1, true);
        insert.label = Some(MET);
        insert.on_duplicate = assignments;
        insert.prepared = random.chance(35);
        insert.check.several_errors = true;
        return Some(Step::Insert(insert));
    }
    let mut pieces = vec![sql(&format!("UPDATE {} SET ", table.name))];
    pieces.extend(assignments);
    match random.below(4) {
        0 | 1 => pieces.extend(by_id(random, (number, 0))),
        2 => pieces.extend(filter(random, tables, &[(number, "")])),
        _ => {}
    }
    // which row that does not fit is found first depends on the order
    pieces.push(sql(
        random.pick(&[" ORDER BY id", " ORDER BY id DESC LIMIT 3"])
    ));
    Some(Step::One(Statement {
        label: UPDATE,
        pieces,
        prepared: random.chance(35),
        check: Check {
            several_errors: true,
            ..Check::default()
        },
    }))
}

fn assignment(random: &mut Random, table: &Table, place: (usize, usize), pieces: &mut Vec<Piece>) {
    let column: &Column = &table.columns[place.1];
    let name = &column.name;
    let expressions: &[&str] = match column.ty {
        Type::Int { .. } | Type::Decimal { .. } => &["{} + 1", "{} - 1", "{} * 2", "{}"],
        Type::Char(_) | Type::VarChar(_) | Type::Text => &["{}", "CONCAT({}, 'x')", "LEFT({}, 1)"],
        _ => &["{}"],
    };
    if random.chance(45) {
        let text = random.pick(expressions).replace("{}", name);
        pieces.push(sql(&format!("{name} = {text}")));
        return;
    }
    pieces.push(sql(&format!("{name} = ")));
    pieces.push(Piece::Constant(values::harmless(random, column), place));
}
