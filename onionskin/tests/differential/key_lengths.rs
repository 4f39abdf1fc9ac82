//! Random definitions of keys: over texts without a length, with a length that is none, and longer
//! than a key may be.

use super::random::Random;
use super::schema::Table;
use super::script::{Order, Statement, Step};

pub const KEYED: &str = "create table with keys";
pub const ADDED: &str = "add a key";

pub fn steps(random: &mut Random, tables: &[Table], number: usize) -> Vec<Step> {
    match random.chance(50) {
        true => created(random),
        false => added(random, &tables[number]),
    }
}

fn part(random: &mut Random, column: &str) -> String {
    let length = random.pick(&["", "", "", "(4)", "(20)", "(255)", "(800)", "(5000)"]);
    let order = random.pick(&["", "", "", " DESC"]);
    format!("{column}{length}{order}")
}

/// A table of its own that is shown and dropped.
fn created(random: &mut Random) -> Vec<Step> {
    let ty = random.pick(&[
        "TEXT",
        "BLOB",
        "MEDIUMTEXT",
        "VARCHAR(20)",
        "VARCHAR(800)",
        "VARCHAR(3000)",
        "VARBINARY(3100)",
        "CHAR(200)",
        "INT",
    ]);
    let is_text = !ty.contains("B") && ty != "INT";
    let collation = match is_text {
        true => random.pick(&[" COLLATE utf8mb4_bin", " COLLATE latin1_swedish_ci", ""]),
        false => "",
    };
    let protection = random.pick(&[
        " ENCRYPTED FOR (eq)",
        " ENCRYPTED FOR (eq, range)",
        " ENCRYPTED FOR ()",
        "",
    ]);
    let kind = random.pick(&["KEY k", "UNIQUE KEY k", "UNIQUE", "INDEX", "PRIMARY KEY"]);
    let id = match kind {
        "PRIMARY KEY" => "id INT",
        _ => "id INT PRIMARY KEY",
    };
    let mut parts = part(random, "s");
    if random.chance(30) {
        parts += ", n";
    }
    if random.chance(30) {
        parts += &format!(", {}", part(random, "v"));
    }
    let text = format!(
        "CREATE TABLE keyed ({id}, n INT, v VARCHAR(700) COLLATE utf8mb4_bin ENCRYPTED FOR (eq), \
         s {ty}{collation} NOT NULL{protection}, {kind} ({parts}))"
    );
    let mut create = Statement::fixed(KEYED, text);
    create.check.several_errors = true;
    let mut show = Statement::fixed("show create table", "SHOW CREATE TABLE keyed");
    show.check.order = Order::Total;
    vec![
        Step::One(create),
        Step::One(show),
        Step::One(Statement::fixed("drop table", "DROP TABLE IF EXISTS keyed")),
    ]
}

/// A key of a table of the case, which is dropped again: what an index does to a comparison depends
/// on it.
fn added(random: &mut Random, table: &Table) -> Vec<Step> {
    let name = &table.name;
    let count = 1 + random.below(3);
    let parts: Vec<String> = random
        .sample(table.columns.len(), count)
        .into_iter()
        .map(|index| part(random, &table.columns[index].name))
        .collect();
    let parts = parts.join(", ");
    let text = match random.below(3) {
        0 => format!("CREATE INDEX odd_key ON {name} ({parts})"),
        1 => format!("ALTER TABLE {name} ADD UNIQUE KEY odd_key ({parts})"),
        _ => format!("ALTER TABLE {name} ADD KEY odd_key ({parts})"),
    };
    let mut add = Statement::fixed(ADDED, text);
    add.check.several_errors = true;
    let drop = Statement::fixed("drop index", format!("DROP INDEX odd_key ON {name}"));
    vec![Step::One(add), Step::One(drop)]
}
