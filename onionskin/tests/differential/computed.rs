//! Random changes of rows that are computed from protected columns: UPDATE with expressions, of one
//! table and of two, DELETE by functions, INSERT … SELECT. They need a scratch engine.

use super::conditions::{by_id, filter, sql};
use super::random::Random;
use super::schema::{Column, Table, Type};
use super::script::{Check, Piece, Statement};

/// Any of them.
pub fn change(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    match random.below(10) {
        0..=4 => update(random, tables, number),
        5 if tables.len() > 1 => joined(random, tables, number),
        5..=7 => copied(random, tables, number),
        _ => delete(random, tables, number),
    }
}

fn statement(label: &'static str, pieces: Vec<Piece>) -> Statement {
    Statement {
        label,
        pieces,
        prepared: false,
        check: Check {
            // values that do not fit are found row by row
            several_errors: true,
            ..Check::default()
        },
    }
}

/// An expression over a column that mostly fits into it again.
fn expression(random: &mut Random, column: &Column, name: &str) -> Option<String> {
    let of_number = [
        "ABS({})",
        "{} DIV 2",
        "GREATEST({}, 3)",
        "IF({} > 5, {} - 1, {})",
        "COALESCE({}, 1)",
        "{} % 7",
    ];
    let of_text = [
        "UPPER({})",
        "LEFT({}, 2)",
        "REVERSE({})",
        "CONCAT(LEFT({}, 1), 'x')",
        "TRIM({})",
        "COALESCE({}, 'n')",
        "CONCAT({}, {})",
    ];
    let text = match column.ty {
        Type::Int { .. } | Type::Decimal { .. } => random.pick(&of_number),
        Type::Char(_) | Type::VarChar(_) | Type::Text => random.pick(&of_text),
        Type::Date | Type::DateTime(_) => random.pick(&[
            "{} + INTERVAL 1 DAY",
            "LAST_DAY({})",
            "COALESCE({}, '2020-02-02')",
        ]),
        Type::VarBinary(_) | Type::Blob => {
            random.pick(&["LEFT({}, 2)", "CONCAT(LEFT({}, 1), 'x')"])
        }
        _ => return None,
    };
    Some(text.replace("{}", name))
}

/// Columns that may be assigned without a meeting of keys. Whether NULL in the place of NULL is a
/// change depends, where the column has a default, on the bytes that a server keeps behind the
/// NULL.
fn candidates(table: &Table) -> Vec<usize> {
    let free = |i: &usize| {
        let column = &table.columns[*i];
        let is_told_apart = !column.nullable || column.default.is_none();
        *i > 0
            && !column.is_indexed
            && !column.on_update
            && column.protection.is_some()
            && is_told_apart
    };
    (0..table.columns.len()).filter(free).collect()
}

fn narrowed(random: &mut Random, tables: &[Table], number: usize, pieces: &mut Vec<Piece>) {
    match random.below(4) {
        0 => pieces.extend(by_id(random, (number, 0))),
        1 => pieces.extend(filter(random, tables, &[(number, "")])),
        2 => {
            let table = &tables[number];
            let column = random.choose(&table.columns);
            pieces.push(sql(&format!(
                " WHERE LENGTH({}) > 1 AND id < 40",
                column.name
            )));
        }
        _ => {}
    }
}

fn update(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let mut pieces = vec![sql(&format!("UPDATE {} SET ", table.name))];
    let mut assigned = 0;
    let candidates = candidates(table);
    let count = 1 + random.below(2);
    for at in random.sample(candidates.len(), count.min(candidates.len())) {
        let column = &table.columns[candidates[at]];
        if let Some(text) = expression(random, column, &column.name) {
            let comma = if assigned > 0 { ", " } else { "" };
            pieces.push(sql(&format!("{comma}{} = {text}", column.name)));
            assigned += 1;
        }
    }
    if assigned == 0 {
        return delete(random, tables, number);
    }
    narrowed(random, tables, number, &mut pieces);
    let order = random.pick(&[" ORDER BY id", " ORDER BY id DESC", " ORDER BY id LIMIT 2"]);
    pieces.push(sql(order));
    statement("update by expressions", pieces)
}

fn joined(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let other = (number + 1) % tables.len();
    let (a, b) = (&tables[number], &tables[other]);
    let candidates = candidates(a);
    let assigned = (!candidates.is_empty()).then(|| {
        let column = &a.columns[*random.choose(&candidates)];
        let text = expression(random, column, &format!("a.{}", column.name))?;
        Some(format!("a.{} = {text}", column.name))
    });
    let Some(Some(assigned)) = assigned else {
        return delete(random, tables, number);
    };
    let join = random.pick(&[" JOIN ", ", "]);
    let on = if join == ", " { " WHERE" } else { " ON" };
    let text = match join {
        ", " => format!(
            "UPDATE {} a, {} b SET {assigned}{on} a.id = b.id",
            a.name, b.name
        ),
        _ => format!(
            "UPDATE {} a{join}{} b{on} a.id = b.id SET {assigned}",
            a.name, b.name
        ),
    };
    statement("update of two tables", vec![sql(&text)])
}

fn delete(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let column = random.choose(&table.columns);
    let text = format!(
        "DELETE FROM {} WHERE LENGTH({}) > {} ORDER BY id LIMIT {}",
        table.name,
        column.name,
        random.below(6),
        1 + random.below(3)
    );
    statement("delete by expressions", vec![sql(&text)])
}

/// The label of statements that insert the rows of a query.
pub const COPY: &str = "insert of a query";

/// Rows of the table once more, under other keys.
fn copied(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let mut columns = vec!["id".to_owned()];
    let mut items = vec![format!("id + {}", random.between(1, 80))];
    for column in table.columns.iter().skip(1) {
        if !column.nullable && column.default.is_none() || random.chance(70) {
            columns.push(column.name.clone());
            let text = match column.protection.is_some() && random.chance(40) {
                true => expression(random, column, &column.name),
                false => None,
            };
            items.push(text.unwrap_or_else(|| column.name.clone()));
        }
    }
    let computes = items.iter().skip(1).any(|item| !columns.contains(item));
    let verb = random.pick(&["INSERT", "INSERT IGNORE", "REPLACE"]);
    let mut pieces = vec![sql(&format!(
        "{verb} INTO {} ({}) SELECT {} FROM {}",
        table.name,
        columns.join(", "),
        items.join(", "),
        table.name
    ))];
    narrowed(random, tables, number, &mut pieces);
    pieces.push(sql(" ORDER BY id"));
    // whether a server computes rows beyond the limit, which may fail, depends on its plan
    let limit = format!(" LIMIT {}", 1 + random.below(8));
    if !computes {
        pieces.push(sql(&limit));
    }
    statement(COPY, pieces)
}
