//! Random SELECT statements.

use super::conditions::{condition, filter, qualified, sql};
use super::random::Random;
use super::schema::{Column, Table, Type};
use super::script::{Check, Order, Piece, Statement};

/// Any SELECT over the tables.
pub fn query(random: &mut Random, tables: &[Table]) -> Statement {
    let number = random.below(tables.len());
    match random.weighted(&[40, 14, 12, 10, 12, 12]) {
        0 => rows(random, tables, number),
        1 => aggregates(random, tables, number),
        2 => groups(random, tables, number),
        3 => distinct(random, tables, number),
        4 => join(random, tables, number),
        _ => subquery(random, tables, number),
    }
}

fn statement(label: &'static str, pieces: Vec<Piece>, check: Check) -> Statement {
    Statement {
        label,
        pieces,
        prepared: false,
        check,
    }
}

/// `SELECT … FROM t WHERE … ORDER BY … LIMIT …`
fn rows(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let alias = random.pick(&["", "", "", "x"]);
    let name = &table.name;
    let mut items = Vec::new();
    // The number of the result column that shows each of the table's columns.
    let mut shown: Vec<Option<usize>> = vec![None; table.columns.len()];
    let mut label = "select";
    if random.chance(30) {
        items.push(match random.below(3) {
            0 if alias.is_empty() => format!("{name}.*"),
            0 => format!("{alias}.*"),
            _ => "*".to_owned(),
        });
        shown = (0..table.columns.len()).map(Some).collect();
    } else {
        for (position, index) in some_columns(random, table).into_iter().enumerate() {
            let column = &table.columns[index].name;
            let source = if alias.is_empty() && random.chance(20) {
                name.as_str()
            } else {
                alias
            };
            let as_name = match random.below(6) {
                0 => format!(" AS a{position}"),
                1 => format!(" `b {position}`"),
                _ => String::new(),
            };
            items.push(format!("{}{as_name}", qualified(source, column)));
            shown[index] = Some(position);
        }
        if random.chance(5) {
            items.push(
                random
                    .pick(&["1", "'x' AS y", "NULL", "id + 1"])
                    .to_string(),
            );
        }
    }
    let from = if alias.is_empty() {
        name.clone()
    } else {
        format!("{name} AS {alias}")
    };
    let mut pieces = vec![sql(&format!("SELECT {} FROM {from}", items.join(", ")))];
    if random.chance(75) {
        pieces.extend(filter(random, tables, &[(number, alias)]));
    }

    let mut order = Order::Any;
    if random.chance(65) {
        let mut keys = Vec::new();
        let mut by = Vec::new();
        for _ in 0..random.below(3) {
            let index = random.below(table.columns.len());
            let column = &table.columns[index];
            if !column.can_order() {
                // The proxy sorts by its first keys only.
                if !keys.is_empty() && random.chance(90) {
                    continue;
                }
                label = "select, sorted by the proxy";
            }
            let way = random.pick(&["", "", " DESC", " ASC"]);
            keys.push(format!("{}{way}", qualified(alias, &column.name)));
            if !column.has_lookalikes() && by.len() + 1 == keys.len() {
                by.extend(shown[index]);
            }
        }
        let total = random.chance(75) || keys.is_empty();
        if total {
            keys.push(format!(
                "{}{}",
                qualified(alias, "id"),
                random.pick(&["", " DESC"])
            ));
            order = Order::Total;
        } else {
            order = Order::By(by);
        }
        pieces.push(sql(&format!(" ORDER BY {}", keys.join(", "))));
    }
    limit(random, 25, &mut order, &mut pieces);
    if random.chance(8) {
        pieces.push(sql(random.pick(&[" FOR UPDATE", " LOCK IN SHARE MODE"])));
    }
    statement(
        label,
        pieces,
        Check {
            order,
            ..Check::default()
        },
    )
}

/// LIMIT in some cases; without a total order it is not certain which rows come.
fn limit(random: &mut Random, percent: usize, order: &mut Order, pieces: &mut Vec<Piece>) {
    if !random.chance(percent) {
        return;
    }
    let (count, offset) = (random.below(7), random.below(5));
    pieces.push(sql(&match random.below(4) {
        0 => format!(" LIMIT {offset}, {count}"),
        1 => format!(" LIMIT {count} OFFSET {offset}"),
        _ => format!(" LIMIT {count}"),
    }));
    if *order != Order::Total {
        *order = Order::OnlyCount;
    }
}

/// One to four different columns.
fn some_columns(random: &mut Random, table: &Table) -> Vec<usize> {
    let count = 1 + random.below(4);
    random.sample(table.columns.len(), count)
}

/// A column that fits, if any does; in a few cases any column.
fn column(random: &mut Random, table: &Table, fits: impl Fn(&Column) -> bool) -> Option<usize> {
    let heedless = random.chance(5);
    let all: Vec<usize> = (0..table.columns.len())
        .filter(|&i| heedless || fits(&table.columns[i]))
        .collect();
    (!all.is_empty()).then(|| random.pick(&all))
}

/// A column whose values can be compared, mostly; the first if none can.
pub fn comparable(random: &mut Random, table: &Table) -> usize {
    column(random, table, Column::can_equal).unwrap_or(0)
}

/// An aggregate, and what is uncertain of it.
fn aggregate(
    random: &mut Random,
    table: &Table,
    alias: &str,
    position: usize,
    check: &mut Check,
) -> String {
    let found = match random.below(7) {
        0 => None,
        1 => column(random, table, |_| true).map(|i| ("COUNT(", i)),
        2 => column(random, table, Column::can_equal).map(|i| ("COUNT(DISTINCT ", i)),
        3 => column(random, table, |_| true).map(|i| ("MIN(", i)),
        4 => column(random, table, |_| true).map(|i| ("MAX(", i)),
        5 => column(random, table, |c| c.ty.is_number()).map(|i| ("SUM(", i)),
        _ => column(random, table, |c| c.ty.is_number()).map(|i| ("AVG(", i)),
    };
    let Some((call, index)) = found else {
        return "COUNT(*)".into();
    };
    let column = &table.columns[index];
    match call {
        "MIN(" | "MAX(" if column.has_lookalikes() => check.lookalikes.push(position),
        "SUM(" | "AVG(" if !column.ty.is_number() || column.ty.is_approximate() => {
            check.approximate.push(position);
        }
        _ => {}
    }
    format!("{call}{})", qualified(alias, &column.name))
}

/// `SELECT COUNT(*), SUM(a) FROM t WHERE …`
fn aggregates(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let mut check = Check {
        order: Order::Total,
        ..Check::default()
    };
    let items: Vec<String> = (0..1 + random.below(3))
        .map(|position| {
            let item = aggregate(random, table, "", position, &mut check);
            if random.chance(15) {
                format!("{item} AS a{position}")
            } else {
                item
            }
        })
        .collect();
    let mut pieces = vec![sql(&format!(
        "SELECT {} FROM {}",
        items.join(", "),
        table.name
    ))];
    if random.chance(60) {
        pieces.extend(filter(random, tables, &[(number, "")]));
    }
    statement("select aggregates", pieces, check)
}

/// `SELECT a, COUNT(*) FROM t GROUP BY a HAVING … ORDER BY …`
fn groups(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let mut check = Check::default();
    let mut keys = Vec::new();
    for _ in 0..1 + usize::from(random.chance(25)) {
        if let Some(index) = column(random, table, Column::can_equal)
            && !keys.contains(&index)
        {
            keys.push(index);
        }
    }
    if keys.is_empty() {
        keys.push(0);
    }
    let mut items = Vec::new();
    for &index in &keys {
        if random.chance(90) {
            if table.columns[index].has_lookalikes() {
                check.lookalikes.push(items.len());
            }
            items.push(table.columns[index].name.clone());
        }
    }
    let count = 1 + usize::from(random.chance(20));
    for _ in 0..count {
        let position = items.len();
        items.push(match random.below(4) {
            0 => aggregate(random, table, "", position, &mut check),
            _ => "COUNT(*)".into(),
        });
    }
    let mut pieces = vec![sql(&format!(
        "SELECT {} FROM {}",
        items.join(", "),
        table.name
    ))];
    if random.chance(40) {
        pieces.extend(filter(random, tables, &[(number, "")]));
    }
    let names: Vec<&str> = keys
        .iter()
        .map(|&i| table.columns[i].name.as_str())
        .collect();
    pieces.push(sql(&format!(" GROUP BY {}", names.join(", "))));
    if random.chance(30) {
        let operator = random.pick(&[">", "<", "=", ">="]);
        pieces.push(sql(&format!(
            " HAVING COUNT(*) {operator} {}",
            1 + random.below(3)
        )));
    }
    if random.chance(40) && keys.iter().all(|&i| table.columns[i].can_order()) {
        pieces.push(sql(&format!(" ORDER BY {}", names.join(", "))));
        let certain = keys.iter().all(|&i| !table.columns[i].has_lookalikes());
        check.order = if certain { Order::Total } else { Order::Any };
        let mut order = check.order.clone();
        limit(random, 20, &mut order, &mut pieces);
        check.order = order;
    }
    statement("select groups", pieces, check)
}

/// `SELECT DISTINCT a, b FROM t …`
fn distinct(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let mut check = Check::default();
    let chosen = some_columns(random, table);
    for (position, &index) in chosen.iter().enumerate() {
        if table.columns[index].has_lookalikes() {
            check.lookalikes.push(position);
        }
    }
    let names: Vec<&str> = chosen
        .iter()
        .map(|&i| table.columns[i].name.as_str())
        .collect();
    let mut pieces = vec![sql(&format!(
        "SELECT DISTINCT {} FROM {}",
        names.join(", "),
        table.name
    ))];
    if random.chance(40) {
        pieces.extend(filter(random, tables, &[(number, "")]));
    }
    if random.chance(50) {
        pieces.push(sql(&format!(" ORDER BY {}", names.join(", "))));
        if check.lookalikes.is_empty() {
            check.order = Order::Total;
        }
        let mut order = check.order.clone();
        limit(random, 30, &mut order, &mut pieces);
        check.order = order;
    }
    statement("select distinct", pieces, check)
}

/// Two tables, or one twice.
fn join(random: &mut Random, tables: &[Table], left: usize) -> Statement {
    let (mut right, mut on) = (left, None);
    if tables.len() > 1 && random.chance(50) {
        right = (left + 1) % tables.len();
        // The columns made to be joined.
        let partner = |t: &Table| t.columns.iter().any(|c| c.name == "partner");
        let group = |t: &Table, other: &Table| {
            let wanted = other.columns.iter().find(|c| c.name == "partner")?;
            let same = |c: &&Column| {
                c.name != "partner"
                    && c.ty == wanted.ty
                    && c.collation == wanted.collation
                    && c.protection == wanted.protection
            };
            t.columns.iter().find(same).map(|c| c.name.clone())
        };
        if partner(&tables[right]) {
            on = group(&tables[left], &tables[right]).map(|c| (c, "partner".to_owned()));
        } else if partner(&tables[left]) {
            on = group(&tables[right], &tables[left]).map(|c| ("partner".to_owned(), c));
        }
        if on.is_none() || random.chance(20) {
            on = Some(("id".into(), "id".into()));
        }
    }
    let (a, b) = on.unwrap_or_else(|| {
        let index = column(random, &tables[left], Column::can_equal).unwrap_or(0);
        let name = tables[left].columns[index].name.clone();
        (name.clone(), name)
    });
    let sources = [(left, "a"), (right, "b")];
    let mut items = vec!["a.id".to_owned(), "b.id".to_owned()];
    let mut order = Order::Total;
    if random.chance(20) {
        items = vec!["*".into()];
    } else {
        for _ in 0..random.below(3) {
            let (number, alias) = random.pick(&sources);
            items.push(qualified(
                alias,
                &random.choose(&tables[number].columns).name,
            ));
        }
    }
    let (ta, tb) = (&tables[left].name, &tables[right].name);
    let mut pieces = Vec::new();
    let select = format!("SELECT {} FROM {ta}", items.join(", "));
    let how = random.below(5);
    match how {
        0 => pieces.push(sql(&format!("{select} a, {tb} b WHERE a.{a} = b.{b}"))),
        1 => pieces.push(sql(&format!(
            "{select} AS a LEFT JOIN {tb} AS b ON a.{a} = b.{b}"
        ))),
        2 => pieces.push(sql(&format!(
            "{select} a INNER JOIN {tb} b ON b.{b} = a.{a} AND a.id <> b.id"
        ))),
        _ => pieces.push(sql(&format!("{select} a JOIN {tb} b ON a.{a} = b.{b}"))),
    }
    if random.chance(50) {
        pieces.push(sql(if how == 0 { " AND " } else { " WHERE " }));
        condition(random, tables, &sources, 1, &mut pieces);
    }
    if random.chance(70) {
        pieces.push(sql(" ORDER BY a.id, b.id"));
        limit(random, 20, &mut order, &mut pieces);
    } else {
        order = Order::Any;
    }
    statement(
        "select join",
        pieces,
        Check {
            order,
            ..Check::default()
        },
    )
}

/// `IN (SELECT …)` and `EXISTS (SELECT …)`
fn subquery(random: &mut Random, tables: &[Table], number: usize) -> Statement {
    let table = &tables[number];
    let inner = if random.chance(60) {
        number
    } else {
        random.below(tables.len())
    };
    let index = match inner == number {
        true => column(random, table, Column::can_equal).unwrap_or(0),
        false => 0,
    };
    // MySQL finds a wrong row in a list of BITs that it looks up in an index.
    let index = match table.columns[index].ty {
        Type::Bit(_) => 0,
        _ => index,
    };
    let name = &table.columns[index].name;
    let shown = some_columns(random, table);
    let names: Vec<String> = shown
        .iter()
        .map(|&i| format!("o.{}", table.columns[i].name))
        .collect();
    let mut pieces = vec![sql(&format!(
        "SELECT o.id, {} FROM {} o WHERE ",
        names.join(", "),
        table.name
    ))];
    let not = if random.chance(30) { "NOT " } else { "" };
    let inner_name = &tables[inner].name;
    let label = if random.chance(50) {
        pieces.push(sql(&format!(
            "o.{name} {not}IN (SELECT i.{name} FROM {inner_name} i"
        )));
        if random.chance(70) {
            pieces.extend(filter(random, tables, &[(inner, "i")]));
        }
        "select in subquery"
    } else {
        let item = random.pick(&["1", "*", "i.id"]);
        pieces.push(sql(&format!(
            "{not}EXISTS (SELECT {item} FROM {inner_name} i WHERE i.{name} = o.{name} AND "
        )));
        condition(random, tables, &[(inner, "i")], 1, &mut pieces);
        "select exists"
    };
    pieces.push(sql(")"));
    if random.chance(30) {
        pieces.push(sql(" AND "));
        condition(random, tables, &[(number, "o")], 1, &mut pieces);
    }
    pieces.push(sql(" ORDER BY o.id"));
    statement(
        label,
        pieces,
        Check {
            order: Order::Total,
            ..Check::default()
        },
    )
}
