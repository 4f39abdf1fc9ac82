//! Random statements that say more than which rows they mean: index hints, locks of inner queries,
//! two names of one table in a DELETE, views with constants; stars in inner queries; and the forms
//! that one family alone has: locks that wait for a time, `TABLE t`, changes behind WITH.

use super::conditions::{condition, filter, sql};
use super::queries::comparable;
use super::random::Random;
use super::schema::Table;
use super::script::{Check, Order, Piece, Statement, Step};
use super::values;
use onionskin_testkit::Kind;

pub const HINT: &str = "select with an index hint";
pub const LOCK: &str = "select with a lock in an inner query";
pub const WAIT: &str = "select with a lock that says how to wait";
pub const TABLE: &str = "a table as a query";
pub const WITH: &str = "a change behind WITH";
pub const DELETE: &str = "delete by two names";
pub const STAR: &str = "select with a star in an inner query";
pub const VIEW: &str = "create view with a constant";

/// One of them.
pub fn steps(random: &mut Random, tables: &[Table], number: usize, kind: Kind) -> Vec<Step> {
    let statement = match random.below(7) {
        0 => hint(random, tables, number),
        1 => lock(random, tables, number, kind),
        5 => wait(random, tables, number, kind),
        6 if kind == Kind::MySql && random.below(2) == 0 => behind_with(random, tables, number),
        6 if kind == Kind::MySql => table(random, tables, number),
        2 => delete(random, tables, number),
        3 => star(random, tables, number),
        _ => return view(random, tables, number),
    };
    vec![Step::One(statement)]
}

fn hint(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let column = &random.choose(&table.columns).name;
    let hint = random.pick(&[
        "USE INDEX ()",
        "USE INDEX (PRIMARY)",
        "FORCE KEY (PRIMARY)",
        "IGNORE INDEX (PRIMARY)",
        "FORCE INDEX FOR ORDER BY (PRIMARY)",
        "USE KEY FOR JOIN (PRIMARY) IGNORE INDEX FOR GROUP BY (PRIMARY)",
        "USE INDEX (missing)",
    ]);
    let text = format!("SELECT x.id, x.{column} FROM {} x {hint}", table.name);
    let mut pieces = vec![sql(&text)];
    pieces.extend(filter(random, tables, &[(number, "x")]));
    pieces.push(sql(" ORDER BY x.id"));
    statement(HINT, pieces, Order::Total)
}

fn lock(random: &mut Random, tables: &[Table], number: usize, kind: Kind) -> Statement {
    let name = &tables[number].name;
    let lock = match kind {
        Kind::MySql => random.pick(&["FOR UPDATE", "LOCK IN SHARE MODE", "FOR SHARE"]),
        Kind::MariaDb => random.pick(&["FOR UPDATE", "LOCK IN SHARE MODE"]),
    };
    let mut pieces = vec![sql(&format!(
        "SELECT o.id FROM {name} o WHERE o.id IN (SELECT i.id FROM {name} i"
    ))];
    pieces.extend(filter(random, tables, &[(number, "i")]));
    pieces.push(sql(&format!(" {lock}) ORDER BY o.id")));
    statement(LOCK, pieces, Order::Total)
}

/// The inner query has a constant, or a column of another row.
fn star(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let index = comparable(random, table);
    let (name, column) = (&table.name, &table.columns[index].name);
    let comparison = random.pick(&["IN", "NOT IN", "=", "<=>"]);
    let mut pieces = vec![sql(&format!(
        "SELECT o.id FROM {name} o WHERE o.{column} {comparison} (SELECT * FROM (SELECT "
    ))];
    if random.chance(50) {
        let value = values::harmless(random, &table.columns[index]);
        pieces.push(Piece::Constant(value, (number, index)));
        pieces.push(sql(" AS v) q) ORDER BY o.id"));
    } else {
        let id = 1 + random.below(20);
        pieces.push(sql(&format!(
            "i.{column} FROM {name} i WHERE i.id = {id}) q) ORDER BY o.id"
        )));
    }
    statement(STAR, pieces, Order::Total)
}

/// Nobody else holds locks: it says what it would say without them.
fn wait(random: &mut Random, tables: &[Table], number: usize, kind: Kind) -> Statement {
    let table = &tables[number];
    let column = &random.choose(&table.columns).name;
    let lock = match kind {
        Kind::MySql => random.pick(&["FOR UPDATE", "FOR SHARE"]),
        Kind::MariaDb => random.pick(&["FOR UPDATE", "LOCK IN SHARE MODE"]),
    };
    let wait = match kind {
        Kind::MySql => random.pick(&["NOWAIT", "SKIP LOCKED"]),
        Kind::MariaDb => random.pick(&["NOWAIT", "SKIP LOCKED", "WAIT 5"]),
    };
    let mut pieces = vec![sql(&format!(
        "SELECT x.id, x.{column} FROM {} x",
        table.name
    ))];
    pieces.extend(filter(random, tables, &[(number, "x")]));
    pieces.push(sql(&format!(" ORDER BY x.id {lock} {wait}")));
    statement(WAIT, pieces, Order::Total)
}

fn table(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let name = &tables[number].name;
    let text = match random.below(3) {
        0 => format!("TABLE {name} ORDER BY id"),
        1 => format!("TABLE {name} ORDER BY id DESC LIMIT 3"),
        _ => format!("SELECT x.id FROM (TABLE {name}) AS x ORDER BY x.id"),
    };
    statement(TABLE, vec![sql(&text)], Order::Total)
}

fn behind_with(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let name = &tables[number].name;
    let mut pieces = vec![sql(&format!("WITH found AS (SELECT i.id FROM {name} i"))];
    pieces.extend(filter(random, tables, &[(number, "i")]));
    pieces.push(sql(&format!(
        ") DELETE FROM {name} WHERE id IN (SELECT found.id FROM found) AND id > 20"
    )));
    statement(WITH, pieces, Order::Total)
}

fn delete(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let index = comparable(random, table);
    let (name, column) = (&table.name, &table.columns[index].name);
    let head = random.pick(&[
        "DELETE a, b FROM",
        "DELETE b FROM",
        "DELETE FROM a, b USING",
    ]);
    let on = match random.chance(50) {
        true => format!("a.id = b.id + {}", 1 + random.below(3)),
        false => format!("a.{column} = b.{column} AND a.id < b.id"),
    };
    let most = random.between(1, 30);
    let mut pieces = vec![sql(&format!(
        "{head} {name} a JOIN {name} b ON {on} WHERE a.id < {most}"
    ))];
    if random.chance(40) {
        pieces.push(sql(" AND "));
        condition(
            random,
            tables,
            &[(number, "a"), (number, "b")],
            1,
            &mut pieces,
        );
    }
    statement(DELETE, pieces, Order::Any)
}

/// A view that is made, read and dropped.
fn view(random: &mut Random, tables: &[Table], number: usize) -> Vec<Step> {
    let table = &tables[number];
    let column = &random.choose(&table.columns).name;
    let mut make = vec![sql(&format!(
        "CREATE OR REPLACE VIEW seen AS SELECT * FROM {} WHERE ",
        table.name
    ))];
    // more than one condition is mostly refused
    condition(random, tables, &[(number, "")], 0, &mut make);
    let mut read = vec![sql(&format!("SELECT id, {column} FROM seen"))];
    if random.chance(60) {
        read.extend(filter(random, tables, &[(number, "")]));
    }
    read.push(sql(" ORDER BY id"));
    let mut read = statement("select from a view", read, Order::Total);
    read.check.follows = true;
    [
        statement(VIEW, make, Order::Any),
        read,
        statement(
            "drop view",
            vec![sql("DROP VIEW IF EXISTS seen")],
            Order::Any,
        ),
    ]
    .map(Step::One)
    .to_vec()
}

fn statement(label: &'static str, pieces: Vec<Piece>, order: Order) -> Statement {
    Statement {
        label,
        pieces,
        prepared: false,
        check: Check {
            order,
            several_errors: true,
            // for which rows a condition is evaluated is the plan's choice
            uncounted: true,
            ..Check::default()
        },
    }
}
