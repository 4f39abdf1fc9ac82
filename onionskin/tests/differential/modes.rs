//! Random words of `sql_mode`, several at a time, and statements whose meaning depends on them.

use super::conditions::{by_id, sql};
use super::odd;
use super::queries;
use super::random::Random;
use super::schema::{Column, Table};
use super::script::{Check, Order, Piece, Statement, Step};
use super::values;
use super::writes;
use onionskin_testkit::Kind;

pub const LABEL: &str = "set words of sql_mode";
pub const QUERY: &str = "select under words of sql_mode";
pub const INSERT: &str = "insert under words of sql_mode";
pub const UPDATE: &str = "update under words of sql_mode";

/// Words that both servers know.
const WORDS: [&str; 21] = [
    "REAL_AS_FLOAT",
    "PIPES_AS_CONCAT",
    "ANSI_QUOTES",
    "IGNORE_SPACE",
    "ONLY_FULL_GROUP_BY",
    "NO_UNSIGNED_SUBTRACTION",
    "NO_DIR_IN_CREATE",
    "ANSI",
    "NO_AUTO_VALUE_ON_ZERO",
    "NO_BACKSLASH_ESCAPES",
    "STRICT_TRANS_TABLES",
    "STRICT_ALL_TABLES",
    "NO_ZERO_IN_DATE",
    "NO_ZERO_DATE",
    "ALLOW_INVALID_DATES",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "TRADITIONAL",
    "HIGH_NOT_PRECEDENCE",
    "NO_ENGINE_SUBSTITUTION",
    "PAD_CHAR_TO_FULL_LENGTH",
    "",
];

const OF_MARIADB: [&str; 15] = [
    "IGNORE_BAD_TABLE_OPTIONS",
    "POSTGRESQL",
    "ORACLE",
    "MSSQL",
    "DB2",
    "MAXDB",
    "NO_KEY_OPTIONS",
    "NO_TABLE_OPTIONS",
    "NO_FIELD_OPTIONS",
    "MYSQL323",
    "MYSQL40",
    "NO_AUTO_CREATE_USER",
    "EMPTY_STRING_IS_NULL",
    "SIMULTANEOUS_ASSIGNMENT",
    "TIME_ROUND_FRACTIONAL",
];

const OF_MYSQL: [&str; 1] = ["TIME_TRUNCATE_FRACTIONAL"];

/// A value of `sql_mode`.
pub fn words(random: &mut Random, kind: Kind) -> String {
    let own: &[&str] = match kind {
        Kind::MariaDb => &OF_MARIADB,
        Kind::MySql => &OF_MYSQL,
    };
    let words: Vec<&str> = (0..1 + random.below(4))
        .map(
            |_| match random.chance(if own.len() > 1 { 30 } else { 8 }) {
                true => random.pick(own),
                false => random.pick(&WORDS),
            },
        )
        .filter(|word| !word.is_empty())
        .collect();
    words.join(",")
}

/// The words, a few statements, and the default again.
pub fn steps(random: &mut Random, tables: &[Table], number: usize, kind: Kind) -> Vec<Step> {
    let text = format!("SET sql_mode = '{}'", words(random, kind));
    let mut steps = vec![Step::One(Statement::fixed(LABEL, text))];
    for _ in 0..1 + random.below(3) {
        steps.push(statement(random, tables, number));
    }
    steps.push(Step::One(Statement::fixed(LABEL, "SET sql_mode = DEFAULT")));
    steps
}

fn statement(random: &mut Random, tables: &[Table], number: usize) -> Step {
    let table = &tables[number];
    let name = &table.name;
    let at = odd::unindexed(random, table, |c| !c.on_update).unwrap_or(0);
    let column = &table.columns[at];
    let c = &column.name;
    let value = |random: &mut Random, column: &Column| {
        Piece::Constant(values::ordinary(random, column), (number, at))
    };
    let fixed = |text: String| made(QUERY, vec![sql(&text)]);
    let statement = match random.below(12) {
        0 | 1 => {
            let mut insert = writes::plain_insert(random, table, number, 1, true);
            insert.label = Some(INSERT);
            insert.check.several_errors = true;
            for (literal, (_, index)) in insert.rows[0].iter_mut().zip(&insert.columns) {
                if *index > 0 && random.chance(25) {
                    *literal = values::stored(random, &table.columns[*index]);
                }
            }
            return Step::Insert(insert);
        }
        2 | 3 => {
            let mut pieces = vec![sql(&format!("UPDATE {name} SET {c} = "))];
            let value = match at {
                0 => Piece::Sql("id".into()),
                _ => Piece::Constant(values::stored(random, column), (number, at)),
            };
            pieces.push(value);
            pieces.extend(by_id(random, (number, 0)));
            made(UPDATE, pieces)
        }
        4 => {
            let mut pieces = vec![sql(&format!("SELECT id, {c} FROM {name} WHERE NOT {c} = "))];
            pieces.push(value(random, column));
            pieces.push(sql(" ORDER BY id"));
            made(QUERY, pieces)
        }
        5 => fixed(format!("SELECT id, \"{c}\" AS q FROM {name} ORDER BY id")),
        6 => fixed(format!(
            "SELECT id FROM {name} WHERE {c} = 'a' || 'b' ORDER BY id"
        )),
        7 => fixed(format!("SELECT COUNT (*), MAX (id), MIN(id) FROM {name}")),
        8 => fixed(format!("SELECT id, {c} || 'x' FROM {name} ORDER BY id")),
        9 => fixed(format!(
            "SELECT id, {c}, id / 0, '\\\\' FROM {name} ORDER BY id"
        )),
        10 => fixed(format!(
            "SELECT id, {c} FROM {name} WHERE {c} = '' ORDER BY id"
        )),
        _ => {
            let mut statement = queries::query(random, tables);
            statement.prepared = random.chance(30);
            statement
        }
    };
    Step::One(statement)
}

fn made(label: &'static str, pieces: Vec<Piece>) -> Statement {
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
