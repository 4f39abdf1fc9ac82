//! Statements, and several questions about them, one behind the other: each answer depends on what
//! was asked before it.

use super::conditions::{by_id, sql};
use super::odd;
use super::queries;
use super::random::Random;
use super::schema::Table;
use super::script::{Check, Order, Piece, Statement, Step};
use super::values::{self, Literal};
use super::writes;

pub const LABEL: &str = "questions about statements";
pub const SUBJECT: &str = "select that is asked about";
const WARNS: &str = "insert ignore that is asked about";

const QUESTIONS: [&str; 12] = [
    "SHOW WARNINGS",
    "SHOW WARNINGS",
    "SHOW WARNINGS",
    "SELECT FOUND_ROWS()",
    "SELECT FOUND_ROWS()",
    "SELECT ROW_COUNT()",
    "SELECT LAST_INSERT_ID()",
    "SELECT @@warning_count",
    "SELECT @@error_count",
    "SHOW COUNT(*) WARNINGS",
    "SHOW ERRORS",
    "SELECT FOUND_ROWS(), ROW_COUNT()",
];

/// A question about the last statement.
pub fn question(random: &mut Random) -> Statement {
    let text = random.pick(&QUESTIONS);
    let mut statement = Statement::fixed(LABEL, text);
    let is_list = text == "SHOW WARNINGS" || text == "SHOW ERRORS";
    statement.check = Check {
        follows: true,
        // the texts of warnings may differ, and the order of those of one statement
        lookalikes: if is_list { vec![2] } else { Vec::new() },
        ..Check::default()
    };
    statement
}

/// A statement and one to four questions.
pub fn steps(random: &mut Random, tables: &[Table], number: usize) -> Vec<Step> {
    let mut steps = vec![subject(random, tables, number)];
    for _ in 0..1 + random.below(4) {
        steps.push(Step::One(question(random)));
    }
    steps
}

fn subject(random: &mut Random, tables: &[Table], number: usize) -> Step {
    let table = &tables[number];
    match random.below(8) {
        0..=2 => Step::One(found(random, tables, number)),
        // duplicates, and values that are cut or converted
        3 | 4 => {
            let mut insert = writes::plain_insert(random, table, number, 3, false);
            insert.label = Some(WARNS);
            insert.verb = "INSERT IGNORE";
            insert.prepared = random.chance(30);
            Step::Insert(insert)
        }
        5 => {
            let index = odd::unindexed(random, table, |c| !c.on_update).unwrap_or(0);
            let column = &table.columns[index];
            let mut pieces = vec![sql(&format!(
                "UPDATE {} SET {} = ",
                table.name, column.name
            ))];
            match index {
                0 => pieces.push(sql("id")),
                _ => {
                    let value = values::stored(random, column);
                    pieces.push(Piece::Constant(value, (number, index)));
                }
            }
            pieces.extend(by_id(random, (number, 0)));
            let check = Check {
                several_errors: true,
                ..Check::default()
            };
            Step::One(Statement {
                label: "update",
                pieces,
                prepared: random.chance(30),
                check,
            })
        }
        6 => Step::One(writes::delete(random, tables, number)),
        _ => {
            let mut statement = queries::query(random, tables);
            statement.prepared = random.chance(30);
            Step::One(statement)
        }
    }
}

/// A SELECT with LIKE and LIMIT, now and then one that counts the rows beyond it.
fn found(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let index = odd::unindexed(random, table, |c| c.ty.is_text()).unwrap_or(0);
    let name = &table.columns[index].name;
    let counts = if random.chance(30) {
        "SQL_CALC_FOUND_ROWS "
    } else {
        ""
    };
    let item = random.pick(&["id", "*"]);
    let pattern = random.pick(&["a%", "%a%", "%", "%b", "_", "A%", "é%"]);
    let mut pieces = vec![
        sql(&format!(
            "SELECT {counts}{item} FROM {} WHERE {name} LIKE ",
            table.name
        )),
        Piece::Constant(Literal::text(pattern), (number, index)),
    ];
    pieces.push(sql(" ORDER BY id"));
    if random.chance(50) {
        pieces.push(sql(&format!(" LIMIT {}", random.below(4))));
    }
    Statement {
        label: SUBJECT,
        pieces,
        prepared: random.chance(30),
        check: Check {
            order: Order::Total,
            ..Check::default()
        },
    }
}
