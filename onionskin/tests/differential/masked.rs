//! Masked columns tell nothing: two databases have the same tables and the same rows, but for the
//! values of protected columns, all of which are masked for an account. Whatever that account is
//! made to ask, it is answered alike in both, to the order of the rows.

use super::answers::{self, Answer};
use super::cases::random_case;
use super::random::Random;
use super::schema::Table;
use super::script::{Case, Statement, Step};
use super::values;
use mysql::consts::ColumnFlags;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use onionskin_testkit::{
    Kind, Proxy, ProxyOptions, Server, ServerOptions, announce, direct_mode, long_run,
};

/// Cases of an ordinary run, and of a long one.
const CASES: [usize; 2] = [24, 600];
/// Statements of a case, about.
const LENGTH: usize = 40;
/// Of statements near masked columns many are refused; so many percent must not be.
const ANSWERED_AT_LEAST: usize = 10;

const MASKS: &str = "[mask.\"*.*\"]\n\"*\" = { curious = \"null\", \"*\" = \"clear\" }\n";

/// What came of all cases.
#[derive(Default)]
struct Count {
    asked: usize,
    refused: usize,
    /// By a mask.
    masked: usize,
    /// Cases in which the databases differ in nothing.
    same: usize,
}

/// See the module.
pub fn tell_nothing(kind: Kind) {
    if direct_mode() {
        return;
    }
    let Some(server) = Server::start(kind, ServerOptions::default()) else {
        return;
    };
    let options = ProxyOptions {
        tables: MASKS.into(),
        ..ProxyOptions::default()
    };
    let mut proxy = Proxy::start_with(&server, options);
    let mut root = answers::connect(proxy.port(), false);
    answers::must(&mut root, "CREATE USER curious");
    answers::must(&mut root, "GRANT ALL ON *.* TO curious");
    let seed = super::number_from("ONIONSKIN_SEED").unwrap_or(super::SEED);
    announce(&format!(
        "masked columns on {}: ONIONSKIN_SEED={seed}",
        kind.name()
    ));
    let mut count = Count::default();
    let mut found = Vec::new();
    let chosen = super::chosen();
    for number in 0..CASES[usize::from(long_run())] {
        if chosen
            .as_ref()
            .is_some_and(|chosen| !chosen.contains(&number))
        {
            continue;
        }
        let mut random = Random::new(seed, &[kind as u64, number as u64, 0x6d61_736b]);
        let mut case = random_case(&mut random, kind, LENGTH);
        for table in &mut case.tables {
            only_over_masked(table);
        }
        if let Some(difference) = run(&mut random, &case, number, proxy.port(), &mut count) {
            found.push(format!("case {number}\n{difference}"));
        }
    }
    announce(&format!(
        "masked columns on {}: {} statements, {} refused, {} of them by a mask; {} cases with the same values",
        kind.name(),
        count.asked,
        count.refused,
        count.masked,
        count.same
    ));
    assert!(found.is_empty(), "{}", found.join("\n\n"));
    if chosen.is_none() {
        let answered = count.asked - count.refused;
        assert!(answered * 100 >= count.asked * ANSWERED_AT_LEAST);
        assert!(count.masked > 0 && count.same * 2 < CASES[0]);
    }
    proxy.assert_healthy();
}

/// One case; the difference, if there is one.
fn run(
    random: &mut Random,
    case: &Case,
    number: usize,
    port: u16,
    count: &mut Count,
) -> Option<String> {
    let names = ["a", "b"].map(|side| format!("m{number}{side}"));
    let mut owners = names.clone().map(|name| {
        let mut owner = answers::connect(port, false);
        answers::must(
            &mut owner,
            &format!("CREATE DATABASE {name} DEFAULT CHARSET utf8mb4"),
        );
        answers::must(&mut owner, &format!("USE {name}"));
        answers::must(&mut owner, answers::CLOCK);
        owner
    });
    let difference = filled(case, &names, &mut owners).then(|| {
        let changed = other_values(random, case, &mut owners[1]);
        count.same += usize::from(changed == 0);
        ask(case, &names, port, count)
    });
    for (name, owner) in names.iter().zip(&mut owners) {
        answers::must(owner, &format!("DROP DATABASE {name}"));
    }
    difference.flatten()
}

/// Makes and fills the tables on both sides. `false`: they cannot be made.
fn filled(case: &Case, names: &[String; 2], owners: &mut [Conn; 2]) -> bool {
    for (name, owner) in names.iter().zip(owners) {
        for table in &case.tables {
            if owner.query_drop(table.create(true)).is_err() {
                return false;
            }
        }
        for step in &case.steps {
            if let Step::Insert(insert) = step {
                answers::answer(owner, &[insert.statement().on_side(name, true)]);
            }
        }
    }
    true
}

/// Gives protected columns other values, row by row, as far as keys and conditions allow it. How
/// many were changed.
fn other_values(random: &mut Random, case: &Case, owner: &mut Conn) -> u64 {
    let mut changed = 0;
    for table in case.tables.iter().filter(|table| stays(table)) {
        let ids: Vec<mysql::Value> = owner
            .query(format!("SELECT id FROM {}", table.name))
            .unwrap_or_default();
        for column in table.columns.iter().skip(1) {
            if column.protection.is_none() {
                continue;
            }
            for id in &ids {
                let value = values::stored(random, column);
                let sql = format!(
                    "UPDATE IGNORE {} SET {} = {} WHERE id = {}",
                    table.name,
                    column.name,
                    value.sql,
                    id.as_sql(true)
                );
                if owner.query_drop(sql).is_ok() {
                    changed += owner.affected_rows();
                }
            }
        }
    }
    changed
}

/// Leaves out keys over plain columns alone. Which of them a server reads by depends on the sizes
/// of rows, and so on the values of others: that is no secret of theirs, and looks like one here.
fn only_over_masked(table: &mut Table) {
    let columns = &table.columns;
    let is_masked = |name: &String| {
        let mut columns = columns.iter();
        columns.any(|column| column.name == *name && column.protection.is_some())
    };
    table.keys.retain(|key| key.columns.iter().any(is_masked));
}

/// Whether a change of one column changes no other.
fn stays(table: &Table) -> bool {
    table.columns[0].protection.is_none() && !table.columns.iter().any(|column| column.on_update)
}

fn curious(port: u16, database: &str) -> Conn {
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port)
        .user(Some("curious"))
        .db_name(Some(database))
        .prefer_socket(false)
        .max_allowed_packet(Some(64 << 20));
    let mut conn = Conn::new(options).expect("the account logs in");
    answers::must(&mut conn, answers::CLOCK);
    conn
}

/// Has the account run the whole case on both sides.
fn ask(case: &Case, names: &[String; 2], port: u16, count: &mut Count) -> Option<String> {
    let mut sides = names.clone().map(|name| curious(port, &name));
    for step in &case.steps {
        if matches!(step, Step::Command(_)) {
            continue;
        }
        let given = step.statements();
        // it tells how many different values there are, about (docs/masks.md)
        if given.iter().any(|s| s.text().starts_with("SHOW INDEX")) {
            continue;
        }
        let mut answered = Vec::new();
        for (name, side) in names.iter().zip(&mut sides) {
            let statements: Vec<Statement> = given.iter().map(|s| s.on_side(name, true)).collect();
            let mut answer = answers::answer(side, &statements);
            // the proxy has planned by what another session has changed by now
            if answer
                .problem
                .as_ref()
                .is_some_and(|p| p.refusal_code() == Some("1105"))
            {
                answer = answers::answer(side, &statements);
            }
            answered.push(answer);
        }
        let [a, b] = &answered[..] else { return None };
        count.asked += 1;
        if let Some(problem) = a.refusal() {
            count.refused += 1;
            count.masked += usize::from(problem.refusal_code() == Some("1215"));
        }
        // which table of a join is read first depends on sizes, too
        let is_join = |s: &Statement| {
            let text = s.text();
            let tables = case
                .tables
                .iter()
                .filter(|table| text.contains(&table.name));
            tables.count() > 1 || text.matches("t0").count() > text.matches("t0.").count() + 1
        };
        let is_join = given.iter().any(is_join);
        let texts = [(a, &names[0]), (b, &names[1])].map(|(answer, name)| match is_join {
            true => shown(&without_order(answer), name),
            false => shown(answer, name),
        });
        if texts[0] != texts[1] {
            let asked: Vec<String> = given.iter().map(Statement::text).collect();
            let tables: Vec<String> = case.tables.iter().map(|t| t.create(true)).collect();
            return Some(format!(
                "{}\n{}\n→ {}\n→ {}",
                tables.join(";\n"),
                asked.join("; "),
                texts[0],
                texts[1]
            ));
        }
    }
    None
}

/// Flags of keys depend on which table is read first as well.
fn without_order(answer: &Answer) -> Answer {
    let mut answer = answer.clone();
    for set in &mut answer.sets {
        for column in &mut set.columns {
            column.flags = ColumnFlags::empty();
        }
        set.rows.sort_by_key(|row| format!("{row:?}"));
    }
    answer
}

/// All of an answer, without the database's name.
fn shown(answer: &Answer, database: &str) -> String {
    format!("{answer:?}").replace(database, "m")
}
