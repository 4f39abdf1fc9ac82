//! Random statements that the proxy has to finish: ranges over long texts, which the server can
//! only narrow, and groups with sums over protected columns.

use super::conditions::{by_id, qualified, sql};
use super::random::Random;
use super::schema::{Column, Key, Table, Type};
use super::script::{Check, Order, Piece, Statement};
use super::values;

/// A SELECT that the proxy finishes, if the tables allow one.
pub fn query(random: &mut Random, tables: &[Table]) -> Statement {
    let narrow: Vec<usize> = (0..tables.len())
        .filter(|&n| tables[n].columns.iter().any(Column::can_narrow))
        .collect();
    if !narrow.is_empty() && random.chance(60) {
        let number = random.pick(&narrow);
        return match random.below(6) {
            0 => count(random, tables, number),
            1 => groups(random, tables, number, true),
            _ => rows(random, tables, number),
        };
    }
    let number = random.below(tables.len());
    groups(random, tables, number, false)
}

fn statement(label: &'static str, pieces: Vec<Piece>, check: Check) -> Statement {
    Statement {
        label,
        pieces,
        prepared: false,
        check,
    }
}

/// A condition with at least one range that can only be narrowed.
fn narrowed(random: &mut Random, table: &Table, number: usize, alias: &str, out: &mut Vec<Piece>) {
    let range = |random: &mut Random, out: &mut Vec<Piece>| {
        let columns: Vec<usize> = (0..table.columns.len())
            .filter(|&i| table.columns[i].can_narrow())
            .collect();
        let index = random.pick(&columns);
        leaf(random, table, (number, index), alias, out);
    };
    match random.below(8) {
        0..=3 => range(random, out),
        4 => {
            range(random, out);
            out.push(sql(" AND "));
            other(random, table, number, alias, out);
        }
        5 => {
            out.push(sql("("));
            range(random, out);
            out.push(sql(" OR "));
            other(random, table, number, alias, out);
            out.push(sql(")"));
        }
        6 => {
            out.push(sql("NOT ("));
            range(random, out);
            out.push(sql(random.pick(&[" OR ", " AND "])));
            other(random, table, number, alias, out);
            out.push(sql(")"));
        }
        _ => {
            range(random, out);
            out.push(sql(random.pick(&[" OR ", " AND "])));
            range(random, out);
            out.push(sql(" AND NOT ("));
            range(random, out);
            out.push(sql(")"));
        }
    }
}

fn leaf(
    random: &mut Random,
    table: &Table,
    place: (usize, usize),
    alias: &str,
    out: &mut Vec<Piece>,
) {
    let column = &table.columns[place.1];
    let name = qualified(alias, &column.name);
    let constant = |random: &mut Random| Piece::Constant(values::compared(random, column), place);
    let no_tokens = !column.can_equal();
    let ranges = usize::from(column.can_narrow_ranges());
    match random.weighted(&[
        50 * ranges,
        25 * ranges,
        12 * usize::from(no_tokens),
        13 * usize::from(no_tokens),
    ]) {
        0 => {
            let operator = random.pick(&["<", "<=", ">", ">="]);
            if random.chance(15) {
                out.push(constant(random));
                out.push(sql(&format!(" {operator} {name}")));
            } else {
                out.push(sql(&format!("{name} {operator} ")));
                out.push(constant(random));
            }
        }
        1 => {
            let not = if random.chance(30) { " NOT" } else { "" };
            out.push(sql(&format!("{name}{not} BETWEEN ")));
            out.push(constant(random));
            out.push(sql(" AND "));
            out.push(constant(random));
        }
        2 => {
            out.push(sql(&format!("{name} {} ", random.pick(&["=", "<>"]))));
            out.push(constant(random));
        }
        _ => {
            let not = if random.chance(30) { " NOT" } else { "" };
            out.push(sql(&format!("{name}{not} IN (")));
            out.push(constant(random));
            out.push(sql(", "));
            out.push(constant(random));
            out.push(sql(")"));
        }
    }
}

/// A comparison that the server decides.
fn other(random: &mut Random, table: &Table, number: usize, alias: &str, out: &mut Vec<Piece>) {
    let columns: Vec<usize> = (0..table.columns.len())
        .filter(|&i| {
            let column = &table.columns[i];
            column.can_equal() && (column.protection.is_some() || column.ty.is_number())
        })
        .collect();
    let index = if columns.is_empty() {
        0
    } else {
        random.pick(&columns)
    };
    let column = &table.columns[index];
    let name = qualified(alias, &column.name);
    if random.chance(30) {
        out.push(sql(&format!("{name} IS NULL")));
        return;
    }
    out.push(sql(&format!("{name} {} ", random.pick(&["=", "<>"]))));
    let literal = values::ordinary(random, column);
    out.push(Piece::Constant(literal, (number, index)));
}

/// `SELECT … FROM t WHERE long_text < 'x' ORDER BY … LIMIT …`
fn rows(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let alias = random.pick(&["", "", "x"]);
    let from = match alias {
        "" => table.name.clone(),
        _ => format!("{} {alias}", table.name),
    };
    let items = if random.chance(35) {
        "*".to_owned()
    } else {
        let mut items = vec![qualified(alias, "id")];
        for index in random.sample(table.columns.len(), 2) {
            items.push(qualified(alias, &table.columns[index].name));
        }
        items.join(", ")
    };
    let mut pieces = vec![sql(&format!("SELECT {items} FROM {from} WHERE "))];
    narrowed(random, table, number, alias, &mut pieces);
    let mut order = Order::Any;
    if random.chance(70) {
        let mut keys = Vec::new();
        let count = random.below(3);
        for index in random.sample(table.columns.len(), count) {
            let name = qualified(alias, &table.columns[index].name);
            keys.push(format!("{name}{}", random.pick(&["", " DESC"])));
        }
        keys.push(qualified(alias, "id"));
        pieces.push(sql(&format!(" ORDER BY {}", keys.join(", "))));
        order = Order::Total;
        if random.chance(40) {
            let (count, offset) = (random.below(6), random.below(4));
            pieces.push(sql(&match random.below(3) {
                0 => format!(" LIMIT {offset}, {count}"),
                _ => format!(" LIMIT {count}"),
            }));
        }
    }
    let check = Check {
        order,
        ..Check::default()
    };
    statement("select narrowed", pieces, check)
}

fn count(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let mut pieces = vec![sql(&format!("SELECT COUNT(*) FROM {} WHERE ", table.name))];
    narrowed(random, table, number, "", &mut pieces);
    let check = Check {
        order: Order::Total,
        ..Check::default()
    };
    statement("count narrowed", pieces, check)
}

/// Columns that rows can be gathered by: what is protected, and plain ones that are short.
fn may_be_a_key(column: &Column) -> bool {
    match column.protection {
        Some(_) => true,
        None => !matches!(column.ty, Type::Text | Type::Blob),
    }
}

/// `SELECT a, SUM(b), COUNT(*) FROM t GROUP BY a HAVING … ORDER BY … LIMIT …`
fn groups(random: &mut Random, tables: &[Table], number: usize, narrow: bool) -> Statement {
    let table = &tables[number];
    let mut check = Check::default();
    let candidates: Vec<usize> = (0..table.columns.len())
        .filter(|&i| may_be_a_key(&table.columns[i]))
        .collect();
    let count = random.pick(&[0, 1, 1, 1, 2]);
    let keys: Vec<usize> = random
        .sample(candidates.len(), count)
        .into_iter()
        .map(|n| candidates[n])
        .collect();
    let mut items = Vec::new();
    for &index in &keys {
        if table.columns[index].has_lookalikes() {
            check.lookalikes.push(items.len());
        }
        items.push(table.columns[index].name.clone());
    }
    // an aggregate over protected columns, so that there is something to finish
    let mut aggregates = Vec::new();
    for _ in 0..1 + random.below(3) {
        let (text, exact, lookalikes) = aggregate(random, table, narrow);
        if !exact {
            check.approximate.push(items.len());
        }
        if lookalikes {
            check.lookalikes.push(items.len());
        }
        aggregates.push((text.clone(), exact));
        items.push(text);
    }
    let mut pieces = vec![sql(&format!(
        "SELECT {} FROM {}",
        items.join(", "),
        table.name
    ))];
    if narrow {
        pieces.push(sql(" WHERE "));
        narrowed(random, table, number, "", &mut pieces);
    }
    let names: Vec<&str> = keys
        .iter()
        .map(|&i| table.columns[i].name.as_str())
        .collect();
    if !names.is_empty() {
        pieces.push(sql(&format!(" GROUP BY {}", names.join(", "))));
    }
    let number_of = |text: &str| {
        text.starts_with("COUNT") || text.starts_with("SUM") || text.starts_with("AVG")
    };
    let first = &aggregates[0];
    if random.chance(35) && first.1 && number_of(&first.0) {
        let operator = random.pick(&["<", "<=", ">", ">=", "=", "<>"]);
        let constant = random.pick(&["0", "1", "2", "3", "10", "-5", "1.5", "100.25"]);
        pieces.push(sql(&match random.below(4) {
            0 => format!(" HAVING {} BETWEEN 1 AND {constant}", first.0),
            1 => format!(" HAVING {constant} {operator} {}", first.0),
            2 => format!(" HAVING {} {operator} {constant} OR COUNT(*) > 2", first.0),
            _ => format!(" HAVING {} {operator} {constant}", first.0),
        }));
    }
    if !names.is_empty() && random.chance(60) {
        let mut by = Vec::new();
        if first.1 && number_of(&first.0) && random.chance(60) {
            by.push(format!("{}{}", first.0, random.pick(&["", " DESC"])));
        }
        by.extend(names.iter().map(|n| (*n).to_owned()));
        pieces.push(sql(&format!(" ORDER BY {}", by.join(", "))));
        // of values that SQL takes for equal, which one is shown is open, the order is not
        check.order = Order::Total;
        if random.chance(35) {
            pieces.push(sql(&format!(" LIMIT {}", random.below(5))));
        }
    } else if names.is_empty() {
        check.order = Order::Total;
    }
    statement("select groups finished", pieces, check)
}

/// An aggregate, whether its value does not depend on the order of rows, and whether it is one of
/// several that SQL takes for equal.
fn aggregate(random: &mut Random, table: &Table, narrow: bool) -> (String, bool, bool) {
    let pick = |random: &mut Random, fits: &dyn Fn(&Column) -> bool| {
        let found: Vec<&Column> = table.columns.iter().filter(|c| fits(c)).collect();
        (!found.is_empty()).then(|| (*random.choose(&found)).clone())
    };
    let ours = |c: &Column| c.protection.is_some() || !narrow;
    // MySQL takes the extremes of members by their names, and by their numbers where it finds them
    // in an index of the groups
    let by_index = |c: &Column| {
        let indexed = |k: &Key| k.columns.len() > 1 && k.columns.contains(&c.name);
        c.ty == Type::Enum && table.keys.iter().any(indexed)
    };
    let extremes = |c: &Column| ours(c) && !by_index(c);
    let found = match random.below(8) {
        0 => None,
        1 => pick(random, &|_| true).map(|c| ("COUNT(", c)),
        2 => pick(random, &|c| c.protection.is_some()).map(|c| ("COUNT(DISTINCT ", c)),
        3 => pick(random, &extremes).map(|c| ("MIN(", c)),
        4 => pick(random, &extremes).map(|c| ("MAX(", c)),
        5 | 6 => pick(random, &|c| ours(c) && c.ty.is_number()).map(|c| ("SUM(", c)),
        _ => pick(random, &|c| ours(c) && c.ty.is_number()).map(|c| ("AVG(", c)),
    };
    match found {
        None => ("COUNT(*)".into(), true, false),
        Some((call, column)) => {
            let exact = !column.ty.is_approximate() || call.starts_with("COUNT");
            let lookalikes = call.starts_with('M') && column.has_lookalikes();
            (format!("{call}{})", column.name), exact, lookalikes)
        }
    }
}

/// `UPDATE t SET … WHERE long_text < 'x'`
pub fn update(random: &mut Random, tables: &[Table], number: usize) -> Option<Statement> {
    let table = &tables[number];
    if !table.columns.iter().any(Column::can_narrow) {
        return None;
    }
    let candidates: Vec<usize> = (1..table.columns.len())
        .filter(|&i| !table.is_unique(&table.columns[i].name) && !table.columns[i].on_update)
        .collect();
    if candidates.is_empty() {
        return None;
    }
    let index = random.pick(&candidates);
    let column = &table.columns[index];
    let mut pieces = vec![sql(&format!(
        "UPDATE {} SET {} = ",
        table.name, column.name
    ))];
    let literal = values::ordinary(random, column);
    pieces.push(Piece::Constant(literal, (number, index)));
    pieces.push(sql(" WHERE "));
    narrowed(random, table, number, "", &mut pieces);
    let check = Check {
        several_errors: true,
        ..Check::default()
    };
    Some(statement("update narrowed", pieces, check))
}

/// `DELETE FROM t WHERE long_text < 'x'`
pub fn delete(random: &mut Random, tables: &[Table], number: usize) -> Option<Statement> {
    let table = &tables[number];
    if !table.columns.iter().any(Column::can_narrow) {
        return None;
    }
    let mut pieces = vec![sql(&format!("DELETE FROM {}", table.name))];
    // rows are needed for what follows
    pieces.extend(by_id(random, (number, 0)));
    pieces.push(sql(" AND "));
    narrowed(random, table, number, "", &mut pieces);
    Some(statement("delete narrowed", pieces, Check::default()))
}
