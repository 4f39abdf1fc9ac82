//! Lists and ranges whose constants are not all of one kind, and odd constants for dates, times and
//! years: as literals and as parameters of every type. What the proxy answers is what a plain
//! server answers, or it refuses.

#[path = "temporal_constants/client.rs"]
mod client;

#[path = "temporal_constants/constants.rs"]
mod constants;

#[path = "temporal_constants/storing.rs"]
mod storing;

#[path = "temporal_constants/variables.rs"]
mod variables;

#[path = "temporal_constants/plain_columns.rs"]
mod plain_columns;

#[path = "temporal_constants/moments.rs"]
mod moments;

use ::mysql::Value;
use client::{Client, P, Seen};
use constants::{COLUMNS, Constant};
use moments::moments_beside_plain_columns_of_every_type;
use onionskin_testkit::*;
use plain_columns::parameters_beside_plain_columns_stay_parameters;
use storing::odd_values_are_stored_as_the_server_stores_them;
use variables::user_variables_mean_what_they_mean_to_the_server;

on_both_servers!(
    lists_and_ranges_mean_what_they_mean_to_the_server,
    lists_and_ranges_of_columns_with_fewer_bits,
    an_engine_makes_nothing_else_of_them,
    odd_values_are_stored_as_the_server_stores_them,
    everyday_conditions_need_no_engine,
    types_that_no_server_binds_are_refused,
    user_variables_mean_what_they_mean_to_the_server,
    parameters_beside_plain_columns_stay_parameters,
    moments_beside_plain_columns_of_every_type,
    moments_before_the_first_and_the_zero_date,
);

struct Scene {
    pair: Pair,
    plain: Client,
    engine: Client,
    bare: Client,
    _proxy: Proxy,
    /// Cases, of which one in so many is looked at.
    cases: usize,
    one_in: usize,
    answers: usize,
    refused: std::collections::BTreeMap<String, usize>,
    different: Vec<String>,
}

impl Scene {
    fn start(kind: Kind) -> Option<Scene> {
        Self::of_columns(kind, "eq, range")
    }

    /// With these capabilities, where a column's type can have them.
    fn of_columns(kind: Kind, words: &str) -> Option<Scene> {
        let mut tables = String::from("CREATE TABLE m (id INT PRIMARY KEY, plain INT NOT NULL");
        for (name, ty, ..) in COLUMNS {
            let is_whole = ["ENUM", "SET", "BIT"]
                .iter()
                .any(|word| ty.starts_with(word));
            let words = if is_whole { "eq, range" } else { words };
            tables += &format!(", {name} {ty} {{{words}}}");
        }
        tables += ")";
        let pair = Pair::with_engine(kind, &tables)?;
        let proxy = Proxy::start_with(
            &pair.behind,
            ProxyOptions {
                keys: Some(pair.proxy.keys()),
                ..ProxyOptions::default()
            },
        );
        let mut scene = Scene {
            plain: Client::open(pair.beside().port()),
            engine: Client::open(pair.proxy.port()),
            bare: Client::open(proxy.port()),
            pair,
            _proxy: proxy,
            cases: 0,
            one_in: 1,
            answers: 0,
            refused: Default::default(),
            different: Vec::new(),
        };
        for row in 0..5 {
            let values: Vec<&str> = COLUMNS
                .iter()
                .map(|c| c.3.get(row).copied().unwrap_or("NULL"))
                .collect();
            let sql = format!("INSERT INTO m VALUES ({row}, 0, {})", values.join(", "));
            for client in [&mut scene.plain, &mut scene.bare] {
                client.must("SET sql_mode = ''");
                client.must(&sql);
            }
        }
        Some(scene)
    }

    fn set_mode(&mut self, mode: &str) {
        for client in [&mut self.plain, &mut self.bare, &mut self.engine] {
            client.must(&format!("SET sql_mode = '{mode}'"));
        }
    }

    /// `what` groups refusals.
    fn compare(&mut self, what: &str, sql: &str, parameters: Option<&[P]>, with_engine: bool) {
        let run = |client: &mut Client| {
            let writes = !sql.starts_with("SELECT");
            if writes {
                client.must("BEGIN");
            }
            let seen = match parameters {
                None => client.text(sql),
                Some(p) => client.execute(sql, p),
            };
            if writes {
                client.must("ROLLBACK");
            }
            seen
        };
        let mut plain = None;
        let clients = [(&mut self.bare, "bare"), (&mut self.engine, "engine")];
        for (client, name) in clients.into_iter().take(1 + usize::from(with_engine)) {
            let seen = run(client);
            if let Seen::Refused(_) = seen {
                *self.refused.entry(format!("{name} {what}")).or_default() += 1;
                continue;
            }
            self.answers += 1;
            let plain = plain.get_or_insert_with(|| run(&mut self.plain));
            if *plain != seen {
                self.different.push(format!(
                    "{name} {what}: {sql} {parameters:?}\n    plain {plain:?}\n    proxy {seen:?}"
                ));
            }
        }
    }
}

/// A is one constant, B another.
const FORMS: &[&str] = &[
    "{} IN (<A>, <B>)",
    "{} NOT IN (<A>, <B>)",
    "{} IN (<A>, <B>, <A>)",
    "{} BETWEEN <A> AND <B>",
    "{} NOT BETWEEN <A> AND <B>",
    "{} = <A>",
    "{} > <A>",
    "NOT {} <= <A>",
    "{} <=> <A>",
];

const VERBS: &[&str] = &[
    "SELECT id FROM m WHERE",
    "DELETE FROM m WHERE",
    "UPDATE m SET plain = plain + 1 WHERE",
];

impl Scene {
    /// Every form with every pair of constants, as literals, as parameters, and as one of each.
    fn conditions(&mut self, column: &str, constants: &[Constant], with_engine: bool) {
        let all = |(literal, parameters): &Constant| {
            let literal = (!literal.is_empty()).then(|| (literal.to_string(), None));
            let parameters = parameters.iter().map(|p| ("?".to_string(), Some(*p)));
            literal.into_iter().chain(parameters).collect::<Vec<_>>()
        };
        let all: Vec<(String, Option<P>)> = constants.iter().flat_map(all).collect();
        for form in FORMS {
            let alone = !form.contains("<B>");
            for (a, bound_a) in &all {
                for (b, bound_b) in all.iter().take(if alone { 1 } else { all.len() }) {
                    for verb in VERBS {
                        self.cases += 1;
                        if !self.cases.is_multiple_of(self.one_in) {
                            continue;
                        }
                        let condition = form.replace("{}", column);
                        let condition = condition.replace("<A>", a).replace("<B>", b);
                        let sql = format!("{verb} {condition}");
                        let bound: Vec<P> = form
                            .split('<')
                            .filter_map(|part| match part.get(..2) {
                                Some("A>") => *bound_a,
                                Some("B>") => *bound_b,
                                _ => None,
                            })
                            .collect();
                        let bound = (!bound.is_empty()).then_some(bound);
                        let what = format!("{column}: {form}");
                        self.compare(&what, &sql, bound.as_deref(), with_engine);
                    }
                }
            }
        }
    }

    fn conclude(&mut self) {
        self.pair.proxy.assert_healthy();
        let refused: usize = self.refused.values().sum();
        announce(&format!(
            "{} answers compared, {refused} refused, {} different",
            self.answers,
            self.different.len()
        ));
        assert!(
            self.different.is_empty(),
            "{}\n\nrefused: {:#?}",
            self.different.join("\n"),
            self.refused
        );
        assert!(self.answers > 200, "{:#?}", self.refused);
    }
}

/// The columns that `ONIONSKIN_COLUMNS` names, or all.
fn columns() -> impl Iterator<
    Item = &'static (
        &'static str,
        &'static str,
        &'static [Constant],
        &'static [&'static str],
    ),
> {
    let named = std::env::var("ONIONSKIN_COLUMNS").ok();
    COLUMNS.iter().filter(move |(column, ..)| {
        let named = named.as_deref();
        named.is_none_or(|named| named.split(',').any(|one| one == *column))
    })
}

/// Of many cases, one in so many is run; in long runs, in more of them. Primes meet every form.
fn one_in(ordinary: usize, long: usize) -> usize {
    let usual = if long_run() { long } else { ordinary };
    let asked = std::env::var("ONIONSKIN_ONE_IN").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(usual)
}

fn lists_and_ranges_mean_what_they_mean_to_the_server(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    scene.one_in = one_in(61, 29);
    for (n, mode) in ["STRICT_TRANS_TABLES", ""].into_iter().enumerate() {
        scene.set_mode(mode);
        // others in each of them
        scene.cases += n;
        for (column, _, constants, _) in columns() {
            scene.conditions(column, constants, false);
        }
    }
    scene.conclude();
}

/// The server finds candidates, and the proxy decides.
fn lists_and_ranges_of_columns_with_fewer_bits(kind: Kind) {
    for (n, words) in ["eq:3, range:9", "eq:1", "range:13"]
        .into_iter()
        .enumerate()
    {
        let Some(mut scene) = Scene::of_columns(kind, words) else {
            return;
        };
        scene.one_in = one_in(211, 29);
        scene.cases += n;
        scene.set_mode("STRICT_TRANS_TABLES");
        for (column, _, constants, _) in columns() {
            scene.conditions(column, constants, false);
        }
        scene.conclude();
    }
}

fn an_engine_makes_nothing_else_of_them(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    scene.one_in = one_in(257, 127);
    scene.set_mode("STRICT_TRANS_TABLES");
    for (column, _, constants, _) in columns() {
        scene.conditions(column, constants, true);
    }
    scene.conclude();
}

fn everyday_conditions_need_no_engine(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    scene.set_mode("STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE");
    let [d, e] = [P::Date(2020, 1, 1), P::Date(2021, 6, 15)];
    let [s, t] = [P::Text("2020-01-01"), P::Text("2021-06-15")];
    let moment = |y, h| P::DateTime(y, 1, 1, h, 30, 0, 0);
    let cases: &[(&str, &[P])] = &[
        ("dt IN ('2020-01-01', '2020-02-01')", &[]),
        ("dt NOT IN ('2020-01-01', '2020-02-01', NULL)", &[]),
        ("dt BETWEEN '2020-01-01' AND '2020-12-31'", &[]),
        ("dt BETWEEN '2020-01-01' AND '2020-12-31 23:59:59'", &[]),
        ("dt BETWEEN 20200101 AND 20201231", &[]),
        ("dt >= 20200101", &[]),
        ("dt IN (20200101, 19991231)", &[]),
        ("dt IN (?, ?)", &[d, e]),
        ("dt IN (?, ?, '1999-12-31')", &[d, s]),
        ("dt BETWEEN ? AND ?", &[d, e]),
        ("dt BETWEEN ? AND ?", &[s, t]),
        ("dt BETWEEN ? AND '2022-01-01'", &[s]),
        ("dt >= ? AND dt < ?", &[moment(2020, 0), moment(2021, 0)]),
        ("t IN ('2020-01-01', '2020-01-01 12:30:00')", &[]),
        (
            "t BETWEEN '2020-01-01' AND '2020-12-31 23:59:59.999999'",
            &[],
        ),
        ("t IN (?, ?)", &[moment(2020, 12), d]),
        ("t BETWEEN ? AND ?", &[s, moment(2020, 12)]),
        ("ts BETWEEN ? AND ?", &[moment(2019, 12), moment(2020, 12)]),
        ("ts IN ('2020-01-01', ?)", &[P::Text("2020-01-01 12:30:00")]),
        ("ti IN ('12:00:00', '25:00:00')", &[]),
        (
            "ti BETWEEN ? AND '12:00:00'",
            &[P::Time(false, 0, 1, 0, 0, 0)],
        ),
        ("y IN (2020, 1999)", &[]),
        ("y IN (?, 1999)", &[P::Int(2020)]),
        ("y BETWEEN ? AND ?", &[P::Int(1990), P::Int(2015)]),
        ("y BETWEEN 1990 AND '2015'", &[]),
        ("k IN (1, '2', 2.5)", &[]),
        ("k BETWEEN '1' AND 2.5", &[]),
        ("b IN (1, 2, ?)", &[P::Int(0)]),
        ("b BETWEEN 0 AND ?", &[P::Text("5")]),
        ("b BETWEEN ? AND ?", &[P::Int(0), P::Int(9007199254740993)]),
        ("d BETWEEN 0.1 AND 2.5", &[]),
        ("d BETWEEN ? AND 3", &[P::Double(0.1)]),
        ("s IN ('a', 'b')", &[]),
        ("s IN (?, ?)", &[P::Text("a"), P::Text("B")]),
    ];
    for (condition, bound) in cases {
        let bound = (!bound.is_empty()).then_some(*bound);
        let sql = format!("SELECT id FROM m WHERE {condition} ORDER BY id");
        scene.compare(condition, &sql, bound, false);
    }
    assert!(scene.refused.is_empty(), "{:#?}", scene.refused);
    assert!(scene.different.is_empty(), "{:#?}", scene.different);
}

fn types_that_no_server_binds_are_refused(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    let types: [(u8, &'static [u8]); 5] = [
        (9, &[5, 0, 0, 0]),
        (13, &[0xe4, 7]),
        (16, b"\x015"),
        (245, b"\x015"),
        (247, b"\x015"),
    ];
    for (code, bytes) in types {
        let raw = P::Raw(code, bytes);
        for (sql, bound) in [
            ("SELECT id FROM m WHERE y = ?", vec![raw]),
            (
                "SELECT id FROM m WHERE y IN (?, ?)",
                vec![raw, P::Int(1999)],
            ),
            (
                "UPDATE m SET plain = ?, k = ? WHERE id = 1",
                vec![raw, P::Int(7)],
            ),
        ] {
            let seen = scene.bare.execute(sql, &bound);
            let refused = matches!(seen, Seen::Refused(_) | Seen::Error(_));
            assert!(refused, "{code}: {sql}: {seen:?}");
        }
    }
}

/// To MariaDB a constant before 1970 is above the zero date, to MySQL below it, unless it is one of
/// several.
fn moments_before_the_first_and_the_zero_date(kind: Kind) {
    let table = "CREATE TABLE z (id INT PRIMARY KEY, ts TIMESTAMP NULL {range}, p TIMESTAMP(3) NULL {range})";
    for with_engine in [false, true] {
        let Some(mut pair) = Pair::of(kind, with_engine, &[table]) else {
            return;
        };
        pair.same("SET sql_mode = ''");
        pair.same(
            "INSERT INTO z VALUES (1, '0000-00-00', '0000-00-00'), (2, '2020-01-01', '2020-01-01'), (3, NULL, NULL)",
        );
        for column in ["ts", "p"] {
            for operator in ["<", "<=", "=", ">=", ">", "<>", "<=>"] {
                for constant in ["1969-01-01", "1000-01-01 10:00:00"] {
                    for negated in ["", "NOT "] {
                        let condition = format!("{negated}({column} {operator} '{constant}')");
                        pair.same(&format!("SELECT id FROM z WHERE {condition} ORDER BY id"));
                    }
                    let sql = format!("SELECT id FROM z WHERE {column} {operator} ? ORDER BY id");
                    pair.same_if_done_with(&sql, &[Value::from(constant)]);
                }
            }
            for range in [
                "BETWEEN '1960-01-01' AND '1969-01-01'",
                "BETWEEN '1960-01-01' AND '2030-01-01'",
                "NOT BETWEEN '1960-01-01' AND '1969-01-01'",
                "IN ('1960-01-01', '1969-01-01')",
                "NOT IN ('1960-01-01', '2020-01-01')",
            ] {
                pair.same_or_refused(&format!(
                    "SELECT id FROM z WHERE {column} {range} ORDER BY id"
                ));
            }
        }
    }
}
