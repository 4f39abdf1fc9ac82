//! Random statements with parentheses and blanks where none are needed. What a column of the result
//! is called is part of the answer.

use super::conditions::sql;
use super::odd;
use super::random::Random;
use super::schema::{Column, Table};
use super::script::{Check, Order, Piece, Statement};
use super::values;

pub const QUERY: &str = "select parenthesised";
pub const UPDATE: &str = "update, parenthesised";

pub fn statement(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let index = random.below(table.columns.len());
    let column = &table.columns[index];
    let name = spelled(random, table, column);
    let mut check = Check {
        order: Order::Total,
        several_errors: true,
        ..Check::default()
    };
    let mut pieces = Vec::new();
    let mut label = QUERY;
    match random.below(12) {
        0..=3 => {
            let other = random.choose(&table.columns);
            let other = spelled(random, table, other);
            let item = wrapped(random, &name);
            let alias = random.pick(&["", "", " AS x", " y"]);
            let more = match random.chance(40) {
                true => format!(", {}", wrapped(random, &other)),
                false => String::new(),
            };
            let id = wrapped(random, "id");
            let text = format!("SELECT {item}{alias}{more} FROM {}", table.name);
            pieces.push(sql(&text));
            if random.chance(40) {
                condition(random, table, number, &mut pieces);
            }
            pieces.push(sql(&format!(" ORDER BY {id}")));
        }
        4 | 5 => {
            let item = random
                .pick(&[
                    "DISTINCT({})",
                    "DISTINCT ({})",
                    "DISTINCT ( {} )",
                    "DISTINCT ({}) AS x",
                ])
                .replace("{}", &name);
            check.order = Order::Any;
            if column.has_lookalikes() {
                check.lookalikes.push(0);
            }
            pieces.push(sql(&format!("SELECT {item} FROM {}", table.name)));
        }
        6..=8 => {
            let item = random
                .pick(&[
                    "COUNT(DISTINCT({}))",
                    "COUNT( {} )",
                    "COUNT(DISTINCT {} )",
                    "MIN(({}))",
                    "MAX( ({}) )",
                    "(COUNT({}))",
                    "COUNT((({})))",
                    "(MIN({})) AS x",
                ])
                .replace("{}", &name);
            if item.contains("M") && column.has_lookalikes() {
                check.lookalikes.push(0);
            }
            let star = random.pick(&["", ", COUNT( * )", ", (COUNT(*))"]);
            pieces.push(sql(&format!("SELECT {item}{star} FROM {}", table.name)));
            if random.chance(30) {
                condition(random, table, number, &mut pieces);
            }
        }
        9 => {
            check.order = Order::Any;
            if column.has_lookalikes() {
                check.lookalikes.push(0);
            }
            let item = wrapped(random, &name);
            pieces.push(sql(&format!(
                "SELECT {item}, COUNT(*) FROM {} GROUP BY {}",
                table.name,
                wrapped(random, &name)
            )));
        }
        _ => {
            label = UPDATE;
            let free = odd::unindexed(random, table, |c| !c.on_update);
            let index = free.unwrap_or(0);
            let column = &table.columns[index];
            pieces.push(sql(&format!(
                "UPDATE {} SET {} = (",
                table.name, column.name
            )));
            match free {
                Some(_) => {
                    let value = values::harmless(random, column);
                    pieces.push(Piece::Constant(value, (number, index)));
                }
                None => pieces.push(sql("id")),
            }
            pieces.push(sql(")"));
            condition(random, table, number, &mut pieces);
            pieces.push(sql(" ORDER BY (id)"));
        }
    }
    Statement {
        label,
        pieces,
        prepared: random.chance(30),
        check,
    }
}

/// The column's name, now and then with the table's or in quotes.
fn spelled(random: &mut Random, table: &Table, column: &Column) -> String {
    match random.below(6) {
        0 => format!("{}.{}", table.name, column.name),
        1 => format!("`{}`", column.name),
        2 => format!("{} . {}", table.name, column.name),
        _ => column.name.clone(),
    }
}

fn wrapped(random: &mut Random, name: &str) -> String {
    random
        .pick(&["({})", "(({}))", "( {} )", "( ({}))", "{}"])
        .replace("{}", name)
}

fn condition(random: &mut Random, table: &Table, number: usize, pieces: &mut Vec<Piece>) {
    let index = match random.chance(50) {
        true => 0,
        false => odd::unindexed(random, table, Column::can_equal).unwrap_or(0),
    };
    let column = &table.columns[index];
    let name = wrapped(random, &column.name);
    let value = Piece::Constant(values::ordinary(random, column), (number, index));
    let other = Piece::Constant(values::ordinary(random, column), (number, index));
    let (before, between, behind) = random.pick(&[
        (" WHERE {} = (", "", ")"),
        (" WHERE ({} = (", "", "))"),
        (" WHERE NOT ({} = ", "", ")"),
        (" WHERE {} IN ((", "), (", "))"),
        (" WHERE ({} = ", ") OR ({} = (", "))"),
        (" WHERE (({}) IS NOT NULL) AND ((", "", ") = {})"),
    ]);
    pieces.push(sql(&before.replace("{}", &name)));
    pieces.push(value);
    if !between.is_empty() {
        pieces.push(sql(&between.replace("{}", &name)));
        pieces.push(other);
    }
    pieces.push(sql(&behind.replace("{}", &name)));
}
