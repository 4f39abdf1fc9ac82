//! Random INSERT, REPLACE, UPDATE and DELETE statements.

use super::conditions::{by_id, filter, sql};
use super::random::Random;
use super::schema::{Table, Type};
use super::script::{Check, Insert, Piece, Statement};
use super::values::{self, Literal};
use onionskin_testkit::Kind;

/// An INSERT of `rows` rows that mostly succeeds.
pub fn fill(random: &mut Random, tables: &[Table], number: usize, rows: usize) -> Insert {
    let mut insert = plain_insert(random, &tables[number], number, rows, true);
    insert.verb = if random.chance(50) {
        "INSERT"
    } else {
        "INSERT IGNORE"
    };
    insert
}

/// Any INSERT or REPLACE.
pub fn insert(random: &mut Random, tables: &[Table], number: usize, kind: Kind) -> Insert {
    let table = &tables[number];
    let rows = random.pick(&[1, 1, 1, 1, 2, 3, 5, 20]);
    let careful = random.chance(45);
    let mut insert = plain_insert(random, table, number, rows, careful);
    insert.verb = random.pick(&["INSERT", "INSERT", "INSERT", "INSERT IGNORE", "REPLACE"]);
    if insert.verb == "INSERT" && random.chance(25) {
        let name = (kind == Kind::MySql && random.chance(30)).then_some("neu");
        insert.on_duplicate = on_duplicate(random, table, number, name);
        insert.new_row = name;
    }
    // of some shapes, so that seeds mean what they meant
    let is_picked = (insert.rows.len() + insert.columns.len()).is_multiple_of(5);
    insert.by_word = kind == Kind::MySql && insert.new_row.is_none() && is_picked;
    if kind == Kind::MariaDb && random.chance(10) {
        insert.returning = Some("*");
    }
    insert
}

/// An INSERT of rows that may not fit, unless it is `careful`.
pub fn plain_insert(
    random: &mut Random,
    table: &Table,
    number: usize,
    rows: usize,
    careful: bool,
) -> Insert {
    let names_columns = random.chance(80);
    let mut columns: Vec<usize> = (0..table.columns.len()).collect();
    if names_columns {
        // Some columns are left to their defaults; a NOT NULL one without a default is an error.
        columns.retain(|&i| {
            let column = &table.columns[i];
            let optional = column.nullable || column.default.is_some();
            i == 0 || random.chance(if optional { 80 } else { 98 })
        });
        if random.chance(20) {
            columns = random
                .sample(columns.len(), columns.len())
                .iter()
                .map(|&i| columns[i])
                .collect();
        }
    }
    let counts = table.columns[0].auto_increment;
    if names_columns && counts && random.chance(50) {
        columns.retain(|&i| i != 0);
    }
    let mut used = Vec::new();
    let rows: Vec<Vec<Literal>> = (0..rows)
        .map(|number| {
            let mut row = Vec::new();
            // An error in a later row has used up numbers of AUTO_INCREMENT, see `uses_up_numbers`.
            let careful = careful || (counts && number > 0);
            for &index in &columns {
                let column = &table.columns[index];
                row.push(if index == 0 {
                    let mut id = random.between(1, 60);
                    while careful && used.contains(&id) && used.len() < 40 {
                        id = random.between(1, 60);
                    }
                    used.push(id);
                    Literal::number(&id.to_string())
                } else if random.chance(3)
                    && (!careful || column.nullable || column.default.is_some())
                {
                    Literal {
                        sql: "DEFAULT".into(),
                        risky: !column.nullable && column.default.is_none(),
                        ..Literal::null()
                    }
                } else if careful {
                    values::harmless(random, column)
                } else {
                    values::stored(random, column)
                });
            }
            row
        })
        .collect();
    let problems = rows
        .iter()
        .flatten()
        .filter(|literal| literal.risky)
        .count();
    let check = Check {
        several_errors: rows.len() > 1 || problems > 1,
        ..Check::default()
    };
    Insert {
        label: None,
        verb: "INSERT",
        table: number,
        table_name: table.name.clone(),
        columns: columns
            .iter()
            .map(|&i| (table.columns[i].name.clone(), i))
            .collect(),
        names_columns,
        rows,
        by_word: false,
        new_row: None,
        on_duplicate: Vec::new(),
        returning: None,
        prepared: false,
        check,
    }
}

fn on_duplicate(
    random: &mut Random,
    table: &Table,
    number: usize,
    new_row: Option<&str>,
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let count = 1 + random.below(3);
    for index in random.sample(table.columns.len(), count) {
        let column = &table.columns[index];
        if index == 0 || column.on_update || column.ty == Type::Char(0) {
            continue;
        }
        if !pieces.is_empty() {
            pieces.push(sql(", "));
        }
        let name = &column.name;
        match random.below(4) {
            0 => {
                pieces.push(sql(&format!("{name} = ")));
                pieces.push(Piece::Constant(
                    values::stored(random, column),
                    (number, index),
                ));
            }
            1 if column.ty.is_number() && column.protection.is_none() => {
                pieces.push(sql(&format!("{name} = {name} + 1")));
            }
            _ => pieces.push(sql(&match new_row {
                Some(row) => format!("{name} = {row}.{name}"),
                None => format!("{name} = VALUES({name})"),
            })),
        }
    }
    pieces
}

/// `UPDATE t SET … WHERE … ORDER BY id LIMIT …`
pub fn update(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let ignore = random.chance(8);
    let mut pieces = vec![sql(&format!(
        "UPDATE {}{} SET ",
        if ignore { "IGNORE " } else { "" },
        table.name
    ))];
    let mut label = "update";
    let mut order_matters = ignore;
    // The proxy computes all values before it writes any.
    let mut computes_unique = false;
    let count = 1 + random.below(3);
    let mut assigned = 0;
    for index in random.sample(table.columns.len(), count) {
        let column = &table.columns[index];
        if index == 0 && random.chance(90) {
            continue;
        }
        if assigned > 0 {
            pieces.push(sql(", "));
        }
        assigned += 1;
        let name = &column.name;
        order_matters |= table.is_unique(name) || index == 0;
        if column.ty.is_number() && random.chance(40) {
            label = "update arithmetic";
            // Whether the first row that does not fit is found first depends on the order.
            order_matters = true;
            computes_unique |= table.is_unique(name);
            let text = match random.below(5) {
                0 => format!("{name} = {name} - "),
                1 => format!("{name} = {name} * "),
                _ => format!("{name} = {name} + "),
            };
            pieces.push(sql(&text));
            let operand = match random.below(8) {
                0 => Literal::number("1.5"),
                1 => Literal::number("-3"),
                2 => Literal::number("1000000"),
                _ => Literal::number(random.pick(&["1", "2", "10"])),
            };
            pieces.push(Piece::Constant(operand, (number, index)));
        } else if random.chance(4) {
            pieces.push(sql(&format!("{name} = DEFAULT")));
        } else {
            pieces.push(sql(&format!("{name} = ")));
            let value = match index {
                0 => Literal::number(&random.between(1, 60).to_string()),
                _ => values::stored(random, column),
            };
            pieces.push(Piece::Constant(value, (number, index)));
        }
    }
    if assigned == 0 {
        pieces.push(sql("id = id"));
    }
    if random.chance(45) {
        pieces.extend(by_id(random, (number, 0)));
        if random.chance(15) {
            pieces.push(sql(" AND "));
            super::conditions::condition(random, tables, &[(number, "")], 0, &mut pieces);
        }
    } else if random.chance(92) {
        pieces.extend(filter(random, tables, &[(number, "")]));
    }
    let mut ordered = false;
    if order_matters || random.chance(20) {
        ordered = true;
        pieces.push(sql(random.pick(&[" ORDER BY id", " ORDER BY id DESC"])));
        if random.chance(35) {
            pieces.push(sql(&format!(" LIMIT {}", random.below(5))));
        }
    }
    let check = Check {
        several_errors: !ordered || assigned > 1 || computes_unique,
        ..Check::default()
    };
    Statement {
        label,
        pieces,
        prepared: false,
        check,
    }
}

/// `DELETE FROM t WHERE …`
pub fn delete(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let mut pieces = vec![sql(&format!("DELETE FROM {}", tables[number].name))];
    if random.chance(50) {
        pieces.extend(by_id(random, (number, 0)));
    } else {
        pieces.extend(filter(random, tables, &[(number, "")]));
        // Rows are needed for what follows.
        pieces.push(sql(&format!(" ORDER BY id LIMIT {}", 1 + random.below(4))));
    }
    Statement {
        label: "delete",
        pieces,
        prepared: false,
        check: Check::default(),
    }
}
