//! Random conditions.

use super::random::Random;
use super::schema::{Column, Table, Type};
use super::script::Piece;
use super::values::{self, Literal};

/// The tables that a statement reads: numbers and aliases.
pub type Sources<'a> = &'a [(usize, &'a str)];

/// A WHERE clause, with the word.
pub fn filter(random: &mut Random, tables: &[Table], sources: Sources) -> Vec<Piece> {
    let mut pieces = vec![sql(" WHERE ")];
    condition(random, tables, sources, 2, &mut pieces);
    pieces
}

/// A condition, in parentheses where it needs them.
pub fn condition(
    random: &mut Random,
    tables: &[Table],
    sources: Sources,
    depth: usize,
    out: &mut Vec<Piece>,
) {
    if depth > 0 && random.chance(35) {
        let word = random.pick(&[" AND ", " AND ", " OR ", " OR ", " XOR "]);
        let negated = random.chance(12);
        out.push(sql(if negated { "NOT (" } else { "(" }));
        condition(random, tables, sources, depth - 1, out);
        out.push(sql(word));
        condition(random, tables, sources, depth - 1, out);
        out.push(sql(")"));
        return;
    }
    let (number, alias) = random.pick(sources);
    let table = &tables[number];
    let mut index = random.below(table.columns.len());
    if table.columns[index].ty == Type::Char(0) {
        // To MariaDB, no text lies between two empty parameters in such a column.
        index = 0;
    }
    let name = qualified(alias, &table.columns[index].name);
    leaf(random, (number, index), &table.columns[index], &name, out);
}

/// `alias.column`, or the column alone for an empty alias.
pub fn qualified(alias: &str, column: &str) -> String {
    match alias {
        "" => column.to_owned(),
        _ => format!("{alias}.{column}"),
    }
}

/// A comparison of one column, or LIKE, with the capability and without.
fn leaf(
    random: &mut Random,
    place: (usize, usize),
    column: &Column,
    name: &str,
    out: &mut Vec<Piece>,
) {
    let mut aside = random.aside();
    let at = out.len();
    comparison(random, place, column, name, out);
    let is_string = column.ty.is_text() || column.ty.is_string();
    if !aside.chance(if is_string { 12 } else { 1 }) {
        return;
    }
    out.truncate(at);
    let not = if aside.chance(25) { " NOT" } else { "" };
    let pattern = Piece::Constant(Literal::text(&pattern(&mut aside, column)), place);
    if is_string && aside.chance(20) {
        let operator = aside.pick(&[" LIKE", " LIKE", " =", " <>", " >="]);
        let not = if operator == " LIKE" { not } else { "" };
        out.push(sql(&format!("{name}{not}{operator} CONCAT(")));
        let other = Literal::text(aside.pick(&["%", "a", "", "_", " "]));
        let other = Piece::Constant(other, place);
        match aside.below(3) {
            0 => out.push(pattern),
            1 => out.extend([other, sql(", "), pattern]),
            _ => out.extend([pattern, sql(", "), other]),
        }
        out.push(sql(")"));
        return;
    }
    out.push(sql(&format!("{name}{not} LIKE ")));
    out.push(pattern);
    if aside.chance(15) {
        out.push(sql(" ESCAPE '|'"));
    }
}

/// A comparison of one column.
fn comparison(
    random: &mut Random,
    place: (usize, usize),
    column: &Column,
    name: &str,
    out: &mut Vec<Piece>,
) {
    // Mostly what the column's capabilities allow; now and then what must be refused.
    let heedless = random.chance(6);
    let can_equal = heedless || column.can_equal();
    let can_order = heedless || column.can_order();
    let constant = |random: &mut Random| Piece::Constant(values::compared(random, column), place);
    match random.weighted(&[10, 40 * usize::from(can_equal), 40 * usize::from(can_order)]) {
        0 => {
            let not = if random.chance(50) { " NOT" } else { "" };
            out.push(sql(&format!("{name} IS{not} NULL")));
        }
        1 => match random.below(10) {
            0..=4 => {
                let operator = random.pick(&["=", "=", "=", "<>", "!=", "<=>"]);
                if random.chance(10) {
                    out.push(constant(random));
                    out.push(sql(&format!(" {operator} {name}")));
                } else {
                    out.push(sql(&format!("{name} {operator} ")));
                    out.push(constant(random));
                }
            }
            5..=8 => {
                let not = if random.chance(25) { " NOT" } else { "" };
                out.push(sql(&format!("{name}{not} IN (")));
                for n in 0..1 + random.below(4) {
                    if n > 0 {
                        out.push(sql(", "));
                    }
                    out.push(constant(random));
                }
                out.push(sql(")"));
            }
            _ => {
                out.push(sql(&format!("({name} = ")));
                out.push(constant(random));
                out.push(sql(&format!(" OR {name} = ")));
                out.push(constant(random));
                out.push(sql(")"));
            }
        },
        _ => match random.below(3) {
            0 => {
                let not = if random.chance(20) { " NOT" } else { "" };
                out.push(sql(&format!("{name}{not} BETWEEN ")));
                out.push(constant(random));
                out.push(sql(" AND "));
                out.push(constant(random));
            }
            _ => {
                let operator = random.pick(&["<", "<=", ">", ">="]);
                if random.chance(10) {
                    out.push(constant(random));
                    out.push(sql(&format!(" {operator} {name}")));
                } else {
                    out.push(sql(&format!("{name} {operator} ")));
                    out.push(constant(random));
                }
            }
        },
    }
}

/// A pattern that some value of the column may match: parts of one with wildcards between them.
fn pattern(random: &mut Random, column: &Column) -> String {
    let texts: Vec<String> = column
        .pool
        .iter()
        .filter_map(|literal| match &literal.parameter {
            mysql::Value::Bytes(bytes) => String::from_utf8(bytes.clone()).ok(),
            mysql::Value::Int(number) => Some(number.to_string()),
            _ => None,
        })
        .collect();
    let value: Vec<char> = match texts.is_empty() {
        true => "ab".chars().collect(),
        false => random.choose(&texts).chars().collect(),
    };
    let from = random.below(value.len() + 1);
    let to = from + random.below(value.len() - from + 1);
    let mut pattern = String::new();
    if from > 0 || random.chance(30) {
        pattern += random.pick(&["%", "%", "_", ""]);
    }
    for c in &value[from..to] {
        match random.below(20) {
            0 => pattern.push('_'),
            1 => pattern.push('%'),
            2 if c.is_ascii_punctuation() => pattern.extend(['|', *c]),
            3 => pattern.extend(c.to_uppercase()),
            _ => pattern.push(*c),
        }
    }
    pattern + random.pick(&["%", "%", "_", "", "\\%"])
}

/// ` WHERE id = n`
pub fn by_id(random: &mut Random, place: (usize, usize)) -> Vec<Piece> {
    let id = Literal::number(&random.between(1, 30).to_string());
    vec![sql(" WHERE id = "), Piece::Constant(id, place)]
}

/// A piece of text.
pub fn sql(text: &str) -> Piece {
    Piece::Sql(text.to_owned())
}
