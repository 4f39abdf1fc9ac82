//! Random conditions that compare one text by its collation and by its bytes, or texts of several
//! collations with each other, over rows some of which differ in case and in blanks behind them
//! only; and texts compared with numbers.

use super::conditions::sql;
use super::odd;
use super::random::Random;
use super::schema::{Column, Table, Type};
use super::script::{Check, Order, Piece, Statement, Step};
use super::values::Literal;
use super::writes;

pub const QUERY: &str = "select by text and bytes";
pub const JOIN: &str = "select join by text and bytes";
pub const NUMBERS: &str = "select join of texts and numbers";

/// Rows now and then, and a SELECT; nothing if the table has no text.
pub fn steps(random: &mut Random, tables: &[Table], number: usize) -> Option<Vec<Step>> {
    let table = &tables[number];
    let index = odd::unindexed(random, table, |c| c.ty.is_text())
        .or_else(|| (1..table.columns.len()).find(|&i| table.columns[i].ty.is_text()))?;
    if table.columns[index].ty == Type::Char(0) {
        return None;
    }
    let mut steps = Vec::new();
    let word = word(random, &table.columns[index]);
    if random.chance(50) {
        steps.push(Step::Insert(padded(random, table, (number, index), &word)));
    }
    steps.push(Step::One(match random.below(10) {
        0..=4 => query(random, tables, (number, index), &word),
        5..=7 => join(random, tables, (number, index), &word),
        _ => numbers(random, tables, (number, index)),
    }));
    Some(steps)
}

/// A word of the column's that has a letter.
fn word(random: &mut Random, column: &Column) -> String {
    let limit = match column.ty {
        Type::Char(limit) | Type::VarChar(limit) => limit as usize,
        _ => 20,
    };
    let word = random.pick(&["abc", "a", "Bob", "12", "é", "x y", "100%", "ss"]);
    word.chars().take(limit.max(1)).collect()
}

/// The word in other cases and with blanks behind it.
fn variant(random: &mut Random, word: &str) -> String {
    match random.below(6) {
        0 => format!("{word} "),
        1 => format!("{word}  "),
        2 => word.to_uppercase(),
        3 => format!("{} ", word.to_uppercase()),
        _ => word.to_owned(),
    }
}

/// Rows that are alike but for blanks and case, the padded ones first.
fn padded(
    random: &mut Random,
    table: &Table,
    place: (usize, usize),
    word: &str,
) -> super::script::Insert {
    let mut insert = writes::plain_insert(random, table, place.0, 4, true);
    insert.verb = "INSERT IGNORE";
    let texts = [
        format!("{word} "),
        word.to_owned(),
        word.to_uppercase(),
        format!("{}  ", word.to_uppercase()),
    ];
    for (row, text) in insert.rows.iter_mut().zip(&texts) {
        for (literal, (_, index)) in row.iter_mut().zip(&insert.columns) {
            if *index == place.1 {
                *literal = Literal::text(text);
            }
        }
    }
    insert
}

fn statement(label: &'static str, pieces: Vec<Piece>, prepared: bool) -> Statement {
    Statement {
        label,
        pieces,
        prepared,
        check: Check {
            order: Order::Total,
            several_errors: true,
            ..Check::default()
        },
    }
}

/// One comparison of the text.
fn leaf(random: &mut Random, name: &str, place: (usize, usize), word: &str, out: &mut Vec<Piece>) {
    let text = |random: &mut Random| Piece::Constant(Literal::text(&variant(random, word)), place);
    match random.below(9) {
        0 | 1 => {
            out.push(sql(&format!("{name} = ")));
            out.push(text(random));
        }
        2 => {
            out.push(sql(&format!("BINARY {name} = ")));
            out.push(text(random));
        }
        3 => {
            out.push(sql(&format!("{name} = BINARY ")));
            out.push(text(random));
        }
        4 => {
            let pattern = format!("{}%", variant(random, word));
            out.push(sql(&format!("{name} LIKE ")));
            out.push(Piece::Constant(Literal::text(&pattern), place));
        }
        5 => {
            out.push(sql(&format!("{name} LIKE ")));
            out.push(text(random));
        }
        6 => {
            out.push(sql(&format!("CAST({name} AS BINARY) = ")));
            out.push(text(random));
        }
        7 => {
            out.push(sql(&format!("BINARY {name} IN (")));
            out.push(text(random));
            out.push(sql(", "));
            out.push(text(random));
            out.push(sql(")"));
        }
        _ => {
            out.push(sql(&format!("{name} IN (")));
            out.push(text(random));
            out.push(sql(", "));
            out.push(text(random));
            out.push(sql(")"));
        }
    }
}

fn query(random: &mut Random, tables: &[Table], place: (usize, usize), word: &str) -> Statement {
    let table = &tables[place.0];
    let name = &table.columns[place.1].name;
    let mut pieces = vec![sql(&format!(
        "SELECT id, {name} FROM {} WHERE ",
        table.name
    ))];
    leaf(random, name, place, word, &mut pieces);
    for _ in 0..1 + random.below(2) {
        pieces.push(sql(random.pick(&[" AND ", " AND ", " OR "])));
        leaf(random, name, place, word, &mut pieces);
    }
    pieces.push(sql(" ORDER BY id"));
    statement(QUERY, pieces, random.chance(30))
}

/// Another text, of any table.
fn other(random: &mut Random, tables: &[Table], fits: impl Fn(&Column) -> bool) -> (usize, usize) {
    let mut found = Vec::new();
    for (number, table) in tables.iter().enumerate() {
        let fitting = (0..table.columns.len()).filter(|&i| fits(&table.columns[i]));
        found.extend(fitting.map(|index| (number, index)));
    }
    random.pick(&found)
}

fn join(random: &mut Random, tables: &[Table], place: (usize, usize), word: &str) -> Statement {
    let right = other(random, tables, |c| c.ty.is_text() && c.ty != Type::Char(0));
    let a = format!("a.{}", tables[place.0].columns[place.1].name);
    let b = format!("b.{}", tables[right.0].columns[right.1].name);
    let on = match random.below(4) {
        0 => format!("{a} = {b} AND BINARY {a} = {b}"),
        1 => format!("{a} = {b} COLLATE utf8mb4_bin"),
        2 => format!("BINARY {a} = BINARY {b}"),
        _ => format!("{a} = {b}"),
    };
    let mut pieces = vec![sql(&format!(
        "SELECT a.id, b.id, {a} FROM {} a JOIN {} b ON {on} WHERE ",
        tables[place.0].name, tables[right.0].name
    ))];
    leaf(random, &a, place, word, &mut pieces);
    if random.chance(60) {
        pieces.push(sql(random.pick(&[" AND ", " OR "])));
        leaf(random, &b, right, word, &mut pieces);
    }
    pieces.push(sql(" ORDER BY a.id, b.id"));
    statement(JOIN, pieces, random.chance(30))
}

/// How often it is warned of a text that is no number depends on the order in which tables are
/// read.
fn numbers(random: &mut Random, tables: &[Table], place: (usize, usize)) -> Statement {
    let right = other(random, tables, |c| c.ty.is_number());
    let a = format!("a.{}", tables[place.0].columns[place.1].name);
    let b = format!("b.{}", tables[right.0].columns[right.1].name);
    let text = format!(
        "SELECT a.id, b.id, {a}, {b} FROM {} a JOIN {} b ON {a} {} {b} ORDER BY a.id, b.id",
        tables[place.0].name,
        tables[right.0].name,
        random.pick(&["=", "=", "<=>", "<"])
    );
    let mut statement = statement(NUMBERS, vec![sql(&text)], random.chance(30));
    statement.check.uncounted = true;
    statement
}
