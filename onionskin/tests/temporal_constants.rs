//! Lists and ranges whose constants are not all of one kind, and odd constants for dates, times and years: as literals and as
//! parameters of every type. What the proxy answers is what a plain server answers, or it refuses.

mod support;

#[path = "scratch/twins.rs"]
#[allow(dead_code)]
mod twins;

use support::*;
use twins::{Twins, twins};

on_both_servers!(
    lists_and_ranges_mean_what_they_mean_to_the_server,
    an_engine_makes_nothing_else_of_them,
    odd_values_are_stored_as_the_server_stores_them,
    everyday_conditions_need_no_engine,
    types_that_no_server_binds_are_refused,
    user_variables_mean_what_they_mean_to_the_server,
    parameters_beside_plain_columns_stay_parameters,
);

/// A parameter, as a client sends it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum P {
    Null,
    Int(i64),
    Year(u16),
    Double(f64),
    Float(f32),
    Text(&'static str),
    Blob(&'static str),
    Decimal(&'static str),
    Date(u16, u8, u8),
    DateTime(u16, u8, u8, u8, u8, u8, u32),
    Timestamp(u16, u8, u8, u8, u8, u8, u32),
    Time(bool, u32, u8, u8, u8, u32),
    /// Any type, with these bytes.
    Raw(u8, &'static [u8]),
}

impl P {
    fn type_code(self) -> u8 {
        match self {
            P::Null => 6,
            P::Int(_) => 8,
            P::Year(_) => 13,
            P::Double(_) => 5,
            P::Float(_) => 4,
            P::Text(_) => 253,
            P::Blob(_) => 252,
            P::Decimal(_) => 246,
            P::Date(..) => 10,
            P::DateTime(..) => 12,
            P::Timestamp(..) => 7,
            P::Time(..) => 11,
            P::Raw(code, _) => code,
        }
    }

    fn put(self, out: &mut Vec<u8>) {
        match self {
            P::Null => {}
            P::Int(v) => out.extend(v.to_le_bytes()),
            P::Year(v) => out.extend(v.to_le_bytes()),
            P::Double(v) => out.extend(v.to_le_bytes()),
            P::Float(v) => out.extend(v.to_le_bytes()),
            P::Text(s) | P::Blob(s) | P::Decimal(s) => {
                out.push(u8::try_from(s.len()).expect("a short text"));
                out.extend(s.as_bytes());
            }
            P::Date(y, m, d) => {
                out.push(4);
                out.extend(y.to_le_bytes());
                out.extend([m, d]);
            }
            P::DateTime(y, mo, d, h, mi, s, us) | P::Timestamp(y, mo, d, h, mi, s, us) => {
                out.push(11);
                out.extend(y.to_le_bytes());
                out.extend([mo, d, h, mi, s]);
                out.extend(us.to_le_bytes());
            }
            P::Raw(_, bytes) => out.extend(bytes),
            P::Time(negative, days, h, m, s, us) => {
                out.push(12);
                out.push(u8::from(negative));
                out.extend(days.to_le_bytes());
                out.extend([h, m, s]);
                out.extend(us.to_le_bytes());
            }
        }
    }
}

/// What a client sees of a statement.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Rows(Vec<Vec<u8>>, u16),
    Done { affected: u64, warnings: u16 },
    Error(u16),
    Refused(String),
}

/// A session that sends parameters of any type.
struct Client(RawClient);

impl Client {
    fn open(port: u16) -> Client {
        let mut client = Client(RawClient::login(port));
        client.text("USE app");
        client
    }

    fn text(&mut self, sql: &str) -> Seen {
        self.0.command(3, sql.as_bytes());
        self.answer()
    }

    fn must(&mut self, sql: &str) {
        let seen = self.text(sql);
        assert!(
            matches!(seen, Seen::Rows(..) | Seen::Done { .. }),
            "{sql}: {seen:?}"
        );
    }

    fn execute(&mut self, sql: &str, parameters: &[P]) -> Seen {
        self.0.command(22, sql.as_bytes());
        let prepared = match self.0.read() {
            Reply::Packet(prepared) => prepared,
            Reply::Error(code, message) => return error(code, message),
            other => panic!("{sql}: {other:?}"),
        };
        for count in [&prepared[7..9], &prepared[5..7]] {
            if count != [0, 0] {
                self.0.until_eof();
            }
        }
        let id = &prepared[1..5];
        let mut payload = [id, &[0, 1, 0, 0, 0]].concat();
        if !parameters.is_empty() {
            let mut nulls = vec![0u8; parameters.len().div_ceil(8)];
            for (n, p) in parameters.iter().enumerate() {
                nulls[n / 8] |= u8::from(*p == P::Null) << (n % 8);
            }
            payload.extend(nulls);
            payload.push(1);
            for p in parameters {
                payload.extend([p.type_code(), 0]);
            }
            parameters.iter().for_each(|p| p.put(&mut payload));
        }
        self.0.command(23, &payload);
        let seen = self.answer();
        self.0.command(25, id);
        seen
    }

    fn answer(&mut self) -> Seen {
        let first = match self.0.read() {
            Reply::Packet(packet) => packet,
            Reply::Error(code, message) => return error(code, message),
            other => panic!("{other:?}"),
        };
        if first[0] == 0 {
            let mut at = 1;
            let affected = length(&first, &mut at);
            length(&first, &mut at);
            let warnings = u16::from_le_bytes([first[at + 2], first[at + 3]]);
            return Seen::Done { affected, warnings };
        }
        self.0.until_eof();
        let mut rows = Vec::new();
        loop {
            match self.0.read() {
                Reply::Packet(p) if p[0] == 0xfe && p.len() < 9 => {
                    return Seen::Rows(rows, u16::from_le_bytes([p[1], p[2]]));
                }
                Reply::Packet(p) => rows.push(p),
                Reply::Error(code, message) => return error(code, message),
                other => panic!("{other:?}"),
            }
        }
    }
}

fn error(code: u16, message: String) -> Seen {
    // behind the state
    match message.get(6..) {
        Some(text) if text.starts_with("OS") => Seen::Refused(text.into()),
        _ => Seen::Error(code),
    }
}

/// A length-encoded number.
fn length(packet: &[u8], at: &mut usize) -> u64 {
    let first = packet[*at];
    let bytes = match first {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        _ => {
            *at += 1;
            return first.into();
        }
    };
    let number = packet[*at + 1..*at + 1 + bytes].iter().rev();
    *at += 1 + bytes;
    number.fold(0, |n, byte| n << 8 | u64::from(*byte))
}

/// A constant, as a literal and as parameters.
type Constant = (&'static str, &'static [P]);

const DATES: &[Constant] = &[
    ("'2020-01-01'", &[P::Text("2020-01-01")]),
    ("'1999-12-31'", &[P::Text("1999-12-31")]),
    ("'2020-01-01 12:30:00'", &[P::Text("2020-01-01 12:30:00")]),
    (
        "'2021-06-15 10:11:12.5'",
        &[P::Text("2021-06-15 10:11:12.5")],
    ),
    ("'20200101'", &[P::Text("20200101")]),
    ("20200101", &[P::Int(20200101)]),
    ("20200101123000", &[P::Int(20200101123000)]),
    ("200101", &[P::Int(200101)]),
    ("0", &[P::Int(0)]),
    ("'0000-00-00'", &[P::Text("0000-00-00"), P::Date(0, 0, 0)]),
    (
        "'2020-02-30'",
        &[P::Text("2020-02-30"), P::Date(2020, 2, 30)],
    ),
    ("'abc'", &[P::Text("abc")]),
    ("NULL", &[P::Null]),
    ("TRUE", &[]),
    ("20200101.5", &[P::Decimal("20200101.5")]),
    ("2.0200101e7", &[P::Double(20200101.0)]),
    ("DATE'2020-01-01'", &[P::Date(2020, 1, 1)]),
    (
        "TIMESTAMP'2020-01-01 12:30:00'",
        &[
            P::DateTime(2020, 1, 1, 12, 30, 0, 0),
            P::Timestamp(2020, 1, 1, 12, 30, 0, 0),
        ],
    ),
    ("TIME'12:30:00'", &[P::Time(false, 0, 12, 30, 0, 0)]),
    ("x'323032302D30312D3031'", &[P::Blob("2020-01-01")]),
    (
        "",
        &[P::Date(1999, 12, 31), P::DateTime(2020, 1, 1, 0, 0, 0, 0)],
    ),
];
const TIMES: &[Constant] = &[
    ("'12:00:00'", &[P::Text("12:00:00")]),
    ("'00:00:01.5'", &[P::Text("00:00:01.5")]),
    ("120000", &[P::Int(120000)]),
    ("'120000'", &[P::Text("120000")]),
    ("'-01:00:00'", &[P::Text("-01:00:00")]),
    ("-10000", &[P::Int(-10000)]),
    ("'1:2'", &[P::Text("1:2")]),
    ("0", &[P::Int(0)]),
    ("12.5", &[P::Decimal("12.5")]),
    ("1.2e5", &[P::Double(120000.0)]),
    ("'2020-01-01 12:00:00'", &[P::Text("2020-01-01 12:00:00")]),
    ("'abc'", &[P::Text("abc")]),
    ("NULL", &[P::Null]),
    ("TIME'12:00:00'", &[P::Time(false, 0, 12, 0, 0, 0)]),
    (
        "TIMESTAMP'2020-01-01 12:00:00'",
        &[P::DateTime(2020, 1, 1, 12, 0, 0, 0)],
    ),
    ("DATE'2020-01-01'", &[P::Date(2020, 1, 1)]),
    (
        "",
        &[P::Time(true, 0, 1, 0, 0, 0), P::Time(false, 1, 1, 0, 0, 0)],
    ),
];
const YEARS: &[Constant] = &[
    ("2020", &[P::Int(2020), P::Year(2020)]),
    ("'2020'", &[P::Text("2020")]),
    ("20", &[P::Int(20), P::Year(20)]),
    ("'20'", &[P::Text("20")]),
    ("0", &[P::Int(0)]),
    ("'0'", &[P::Text("0")]),
    ("'0000'", &[P::Text("0000")]),
    ("1999", &[P::Int(1999)]),
    ("'1999'", &[P::Text("1999")]),
    ("2020.5", &[P::Decimal("2020.5")]),
    ("2020.0", &[P::Decimal("2020.0")]),
    ("2.02e3", &[P::Double(2020.0)]),
    ("'12 '", &[P::Text("12 ")]),
    ("'12x'", &[P::Text("12x")]),
    ("1900", &[P::Int(1900)]),
    ("2156", &[P::Int(2156)]),
    ("-1", &[P::Int(-1)]),
    ("NULL", &[P::Null]),
    ("DATE'2020-01-01'", &[P::Date(2020, 1, 1)]),
    ("TIME'12:00:00'", &[P::Time(false, 0, 12, 0, 0, 0)]),
];
const NUMBERS: &[Constant] = &[
    ("1", &[P::Int(1), P::Year(1)]),
    ("2", &[P::Int(2)]),
    ("'1'", &[P::Text("1")]),
    ("'2.5'", &[P::Text("2.5")]),
    ("2.5", &[P::Decimal("2.5"), P::Double(2.5)]),
    ("1e0", &[P::Double(1.0), P::Float(1.0)]),
    ("'1abc'", &[P::Text("1abc")]),
    ("'abc'", &[P::Text("abc")]),
    ("NULL", &[P::Null]),
    ("TRUE", &[]),
    ("-1", &[P::Int(-1)]),
    ("9007199254740993", &[P::Int(9007199254740993)]),
    ("9007199254740992", &[P::Int(9007199254740992)]),
    ("'9007199254740993'", &[P::Text("9007199254740993")]),
    ("'9007199254740992'", &[P::Text("9007199254740992")]),
    ("9007199254740992.5", &[P::Decimal("9007199254740992.5")]),
    ("9007199254740992e0", &[P::Double(9007199254740992.0)]),
    ("0.1", &[P::Decimal("0.1"), P::Double(0.1), P::Float(0.1)]),
    ("'0.1'", &[P::Text("0.1")]),
    ("'0.10'", &[]),
    ("0x31", &[P::Blob("1")]),
    ("DATE'2020-01-01'", &[P::Date(2020, 1, 1)]),
];
const TEXTS: &[Constant] = &[
    ("'a'", &[P::Text("a")]),
    ("'b'", &[P::Text("b")]),
    ("'B'", &[P::Text("B")]),
    ("'1'", &[P::Text("1")]),
    ("'a '", &[P::Text("a ")]),
    ("''", &[P::Text("")]),
    ("1", &[P::Int(1)]),
    ("5", &[P::Int(5)]),
    ("0", &[P::Int(0)]),
    ("1.0", &[P::Decimal("1.0")]),
    ("1e0", &[P::Double(1.0)]),
    ("NULL", &[P::Null]),
    ("TRUE", &[]),
    ("x'61'", &[P::Blob("a")]),
    ("b'1'", &[]),
    ("DATE'2020-01-01'", &[P::Date(2020, 1, 1)]),
    ("'2020-01-01'", &[P::Text("2020-01-01")]),
];

const COLUMNS: &[(&str, &str, &[Constant], &[&str])] = &[
    (
        "dt",
        "DATE",
        DATES,
        &[
            "'2020-01-01'",
            "'1999-12-31'",
            "'2021-06-15'",
            "'0000-00-00'",
        ],
    ),
    (
        "t",
        "DATETIME",
        DATES,
        &[
            "'2020-01-01'",
            "'1999-12-31'",
            "'2020-01-01 12:30:00'",
            "'2021-06-15 10:11:12'",
        ],
    ),
    (
        "t3",
        "DATETIME(3)",
        DATES,
        &[
            "'2020-01-01'",
            "'1999-12-31'",
            "'2020-01-01 12:30:00'",
            "'2021-06-15 10:11:12.5'",
        ],
    ),
    (
        "ts",
        "TIMESTAMP NULL",
        DATES,
        &[
            "'2020-01-01'",
            "'1999-12-31'",
            "'2020-01-01 12:30:00'",
            "'2021-06-15 10:11:12'",
        ],
    ),
    (
        "ti",
        "TIME",
        TIMES,
        &["'12:00:00'", "'00:00:01'", "'-01:00:00'", "'25:00:00'"],
    ),
    (
        "t2",
        "TIME(2)",
        TIMES,
        &["'12:00:00'", "'00:00:01.5'", "'-01:00:00'", "'25:00:00'"],
    ),
    ("y", "YEAR", YEARS, &["2020", "1999", "0", "2012"]),
    ("k", "INT", NUMBERS, &["1", "2", "-1", "0"]),
    (
        "b",
        "BIGINT",
        NUMBERS,
        &["1", "9007199254740993", "9007199254740992", "0"],
    ),
    (
        "d",
        "DECIMAL(20,2)",
        NUMBERS,
        &["1", "2.5", "9007199254740992.50", "0.1"],
    ),
    (
        "r",
        "DOUBLE",
        NUMBERS,
        &["1", "2.5", "9007199254740992", "0.1"],
    ),
    (
        "f",
        "FLOAT",
        NUMBERS,
        &["1", "2.5", "9007199254740992", "0.1"],
    ),
    (
        "s",
        "VARCHAR(12)",
        TEXTS,
        &["'a'", "'b'", "'1'", "'2020-01-01'"],
    ),
    (
        "l",
        "VARCHAR(200)",
        TEXTS,
        &["'a'", "'b'", "'1'", "'2020-01-01'"],
    ),
    ("v", "VARBINARY(12)", TEXTS, &["'a'", "'b'", "'1'", "''"]),
    (
        "e",
        "ENUM('a','b','1','5')",
        TEXTS,
        &["'a'", "'b'", "'1'", "'5'"],
    ),
    (
        "z",
        "SET('a','b','1','5')",
        TEXTS,
        &["'a'", "'b'", "'1'", "''"],
    ),
    ("bi", "BIT(8)", TEXTS, &["1", "5", "97", "0"]),
];

struct Scene {
    twins: Twins,
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
        let mut tables = String::from("CREATE TABLE m (id INT PRIMARY KEY, plain INT NOT NULL");
        for (name, ty, ..) in COLUMNS {
            tables += &format!(", {name} {ty} {{eq, range}}");
        }
        tables += ")";
        let twins = twins(kind, &tables)?;
        let proxy = Proxy::start_with(
            &twins.behind,
            ProxyOptions {
                keys: Some(twins.proxy.keys()),
                ..ProxyOptions::default()
            },
        );
        let mut scene = Scene {
            plain: Client::open(twins.plain_server.port()),
            engine: Client::open(twins.proxy.port()),
            bare: Client::open(proxy.port()),
            twins,
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
        self.twins.proxy.assert_healthy();
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

fn one_in(ordinary: usize) -> usize {
    let asked = std::env::var("ONIONSKIN_ONE_IN").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(ordinary)
}

fn lists_and_ranges_mean_what_they_mean_to_the_server(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    scene.one_in = one_in(29);
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

fn an_engine_makes_nothing_else_of_them(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    scene.one_in = one_in(127);
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

/// What is stored beside what servers say of it.
const STORED: &[P] = &[
    P::Null,
    P::Int(0),
    P::Int(12),
    P::Int(70),
    P::Int(2020),
    P::Int(2156),
    P::Int(-1),
    P::Int(20200131),
    P::Int(20200230),
    P::Int(20201301),
    P::Int(20200131101112),
    P::Int(101112),
    P::Int(-101112),
    P::Int(106112),
    P::Double(12.0),
    P::Double(2020.0),
    P::Double(2020.6),
    P::Double(20200131.0),
    P::Float(12.5),
    P::Decimal("12"),
    P::Decimal("2020.5"),
    P::Decimal("20200131"),
    P::Decimal("-1"),
    P::Text(""),
    P::Text(" "),
    P::Text("0"),
    P::Text("00"),
    P::Text("000"),
    P::Text("0000"),
    P::Text("1"),
    P::Text("12"),
    P::Text("12 "),
    P::Text("12   "),
    P::Text(" 12"),
    P::Text("12\t"),
    P::Text("12\n"),
    P::Text("12\0"),
    P::Text("12x"),
    P::Text("12 x"),
    P::Text("012"),
    P::Text("123"),
    P::Text("2020"),
    P::Text("2020 "),
    P::Text("2020x"),
    P::Text("02020"),
    P::Text("2020.6"),
    P::Text("2e3"),
    P::Text("+12"),
    P::Text("-12"),
    P::Text("-0"),
    P::Text("99999999999999999999"),
    P::Text("x"),
    P::Text("2020-01-31"),
    P::Text("2020-01-31 "),
    P::Text(" 2020-01-31"),
    P::Text("2020-01-31x"),
    P::Text("2020-1-3"),
    P::Text("20-1-3"),
    P::Text("2020-13-01"),
    P::Text("2020-02-30"),
    P::Text("2020-02-31 10:11:12"),
    P::Text("2020-00-00"),
    P::Text("0000-00-00"),
    P::Text("0000-00-00 00:00:00"),
    P::Text("2020-01-31 10:11:12"),
    P::Text("2020-01-31T10:11:12"),
    P::Text("2020-01-31 10:11:12.6"),
    P::Text("2020-01-31 25:11:12"),
    P::Text("20200131"),
    P::Text("200131"),
    P::Text("20200131101112"),
    P::Text("10:11:12"),
    P::Text("10:11:12 "),
    P::Text(" 10:11:12"),
    P::Text("10:11"),
    P::Text("10:61:00"),
    P::Text("-10:11:12"),
    P::Text("1 10:11:12"),
    P::Text("839:00:00"),
    P::Text("101112"),
    P::Text("10:11:12x"),
    P::Blob("12"),
    P::Blob("2020-01-31"),
    P::Date(0, 0, 0),
    P::Date(2020, 0, 0),
    P::Date(2020, 1, 31),
    P::Date(2020, 2, 30),
    P::Date(2020, 13, 1),
    P::Date(1, 1, 1),
    P::Date(2156, 1, 1),
    P::DateTime(0, 0, 0, 0, 0, 0, 0),
    P::DateTime(2020, 1, 31, 0, 0, 0, 0),
    P::DateTime(2020, 1, 31, 10, 11, 12, 600_000),
    P::DateTime(2020, 1, 31, 25, 0, 0, 0),
    P::DateTime(2020, 2, 31, 10, 11, 12, 0),
    P::Timestamp(2020, 1, 31, 10, 11, 12, 0),
    P::Time(false, 0, 10, 11, 12, 0),
    P::Time(false, 0, 10, 11, 12, 600_000),
    P::Time(true, 0, 10, 11, 12, 0),
    P::Time(true, 0, 0, 0, 0, 0),
    P::Time(true, 0, 0, 0, 0, 400_000),
    P::Time(true, 0, 0, 0, 1, 0),
    P::Time(false, 34, 22, 59, 59, 0),
    P::Time(false, 35, 0, 0, 0, 0),
    P::Time(false, 0, 10, 61, 0, 0),
];

const STORING: &[(&str, &str)] = &[
    ("y", "YEAR"),
    ("dt", "DATE"),
    ("t", "DATETIME"),
    ("t1", "DATETIME(1)"),
    ("ts", "TIMESTAMP NULL"),
    ("ti", "TIME"),
    ("t2", "TIME(2)"),
];

fn odd_values_are_stored_as_the_server_stores_them(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    let mut table = String::from("CREATE TABLE o (id INT PRIMARY KEY, plain INT");
    for (name, ty) in STORING {
        table += &format!(", {name} {ty} {{eq, range}}");
    }
    let (protected, plain) = with_and_without_protection(&(table + ")"));
    scene.twins.protected.must(&protected);
    scene.twins.plain.must(&plain);
    for mode in [
        "",
        "STRICT_TRANS_TABLES",
        "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE",
        "NO_ZERO_DATE,NO_ZERO_IN_DATE",
        "ALLOW_INVALID_DATES",
    ] {
        scene.set_mode(mode);
        for (column, _) in STORING {
            for value in STORED {
                scene.stored(mode, column, *value);
            }
        }
    }
    scene.conclude();
}

impl Scene {
    /// What an INSERT, an INSERT of a text and an UPDATE leave behind.
    fn stored(&mut self, mode: &str, column: &str, value: P) {
        let mut statements = vec![
            (
                format!("INSERT INTO o (id, {column}) VALUES (2, ?)"),
                Some(value),
            ),
            (
                format!("UPDATE o SET {column} = ? WHERE id = 1"),
                Some(value),
            ),
            (
                format!("INSERT INTO o (id, {column}) VALUES (2, ?), (3, NULL)"),
                Some(value),
            ),
            (
                format!("REPLACE INTO o (id, plain, {column}) VALUES (2, 5, ?)"),
                Some(value),
            ),
        ];
        if let P::Text(text) = value {
            statements.push((
                format!("INSERT INTO o (id, {column}) VALUES (2, '{text}')"),
                None,
            ));
            statements.push((
                format!("UPDATE o SET {column} = '{text}' WHERE id = 1"),
                None,
            ));
        }
        for (sql, bound) in statements {
            let bound = bound.as_slice();
            let run = |client: &mut Client| {
                client.must("BEGIN");
                client.must("INSERT INTO o (id) VALUES (1)");
                let done = match bound {
                    [] => client.text(&sql),
                    bound => client.execute(&sql, bound),
                };
                let said = client.text("SHOW WARNINGS");
                let left = client.text(&format!("SELECT id, {column} FROM o ORDER BY id"));
                client.must("ROLLBACK");
                (done, said, left)
            };
            let protected = run(&mut self.bare);
            let about = format!("{mode}, {column}: {}", &sql[..6]);
            if matches!(protected.0, Seen::Refused(_)) {
                *self.refused.entry(about).or_default() += 1;
                continue;
            }
            self.answers += 1;
            let plain = run(&mut self.plain);
            if plain != protected {
                self.different.push(format!(
                    "{mode}: {sql} {bound:?}\n    plain {plain:?}\n    proxy {protected:?}"
                ));
            }
        }
    }
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

/// Values of user variables and literals, in statements that are prepared in SQL.
fn user_variables_mean_what_they_mean_to_the_server(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    let dates = [
        "'2020-01-01'",
        "'2020-01-01 12:30:00'",
        "20200101",
        "20200101123000",
        "0",
        "NULL",
    ];
    let years = ["2020", "'2020'", "20", "'12 '", "-1", "1999", "NULL"];
    let times = ["'12:00:00'", "120000", "-10000", "'-01:00:00'", "NULL"];
    let numbers = ["1", "'1'", "1e0", "9007199254740992", "2.5", "NULL"];
    let columns: [(&str, &[&str]); 7] = [
        ("dt", &dates),
        ("t", &dates),
        ("ts", &dates),
        ("y", &years),
        ("ti", &times),
        ("b", &numbers),
        ("d", &numbers),
    ];
    for (column, values) in columns {
        for form in FORMS {
            let alone = !form.contains("<B>");
            for a in values {
                for b in values.iter().take(if alone { 1 } else { values.len() }) {
                    for places in [["?", "?"], ["?", *b]] {
                        let condition = form.replace("{}", column);
                        let condition = condition.replace("<A>", places[0]);
                        let condition = condition.replace("<B>", places[1]);
                        let using = match (places[1], condition.matches('?').count()) {
                            ("?", 2) => "@a, @b",
                            ("?", 3) => "@a, @b, @a",
                            (_, 2) => "@a, @a",
                            _ => "@a",
                        };
                        let text = condition.replace('\'', "''");
                        let seen = |client: &mut Client| {
                            client.must(&format!("SET @a = {a}, @b = {b}"));
                            let prepare = "PREPARE st FROM 'SELECT id FROM m WHERE";
                            match client.text(&format!("{prepare} {text}'")) {
                                Seen::Done { .. } => {}
                                other => return other,
                            }
                            let seen = client.text(&format!("EXECUTE st USING {using}"));
                            client.text("DEALLOCATE PREPARE st");
                            seen
                        };
                        let protected = seen(&mut scene.bare);
                        if matches!(protected, Seen::Refused(_)) {
                            *scene.refused.entry(form.to_string()).or_default() += 1;
                            continue;
                        }
                        scene.answers += 1;
                        let plain = seen(&mut scene.plain);
                        if plain != protected {
                            scene.different.push(format!(
                                "{condition} with {a}, {b}\n    plain {plain:?}\n    proxy {protected:?}"
                            ));
                        }
                    }
                }
            }
        }
    }
    scene.conclude();
}

/// A parameter is no constant to MySQL: it is not rounded to the type of a column before it is compared, as a literal is. Beside
/// protected columns the proxy must not write the one as the other.
fn parameters_beside_plain_columns_stay_parameters(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    let (protected, plain) = with_and_without_protection(
        "CREATE TABLE pl (id INT PRIMARY KEY, dt DATE, t DATETIME, t1 DATETIME(1), ti TIME, ti1 TIME(1), y YEAR, b BIGINT, \
         d DECIMAL(10,2), s VARCHAR(20), n INT {}, k VARCHAR(20) {})",
    );
    scene.bare.must(&protected);
    scene.plain.must(&plain);
    let rows = "INSERT INTO pl VALUES \
         (1, '2020-01-01', '2020-01-01 12:30:00', '2020-01-01 12:30:00.1', '10:11:12', '10:11:12.1', 2020, 9007199254740993, 2.5, '2020', 1, 'a'), \
         (2, '2020-01-02', '2020-01-01 12:30:01', '2020-01-01 12:30:00.2', '10:11:13', '10:11:12.2', 2021, 9007199254740992, 2.51, '2.5', 2, 'b'), \
         (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 3, 'c')";
    for client in [&mut scene.bare, &mut scene.plain] {
        client.must(rows);
    }
    let moments: &[(&str, P)] = &[
        ("'2020-01-01'", P::Text("2020-01-01")),
        ("'2020-01-01 12:30:00'", P::Text("2020-01-01 12:30:00")),
        (
            "'2020-01-01 12:30:00.123456'",
            P::Text("2020-01-01 12:30:00.123456"),
        ),
        (
            "TIMESTAMP'2020-01-01 12:30:00.123456'",
            P::DateTime(2020, 1, 1, 12, 30, 0, 123_456),
        ),
        (
            "TIMESTAMP'2020-01-01 12:30:00.6'",
            P::DateTime(2020, 1, 1, 12, 30, 0, 600_000),
        ),
        ("20200101", P::Int(20_200_101)),
        ("20200101123000", P::Int(20_200_101_123_000)),
        ("NULL", P::Null),
    ];
    let times: &[(&str, P)] = &[
        ("'10:11:12'", P::Text("10:11:12")),
        ("'10:11:12.123456'", P::Text("10:11:12.123456")),
        ("'10:11:12.6'", P::Text("10:11:12.6")),
        ("101112", P::Int(101_112)),
        ("101112.123456", P::Decimal("101112.123456")),
        ("TIME'10:11:12.16'", P::Time(false, 0, 10, 11, 12, 160_000)),
    ];
    let numbers: &[(&str, P)] = &[
        ("2020", P::Int(2020)),
        ("20", P::Int(20)),
        ("-1", P::Int(-1)),
        ("'2020'", P::Text("2020")),
        ("2.5", P::Decimal("2.5")),
        ("-2.5", P::Decimal("-2.5")),
        ("2.5e0", P::Double(2.5)),
        ("9007199254740993", P::Int(9_007_199_254_740_993)),
        ("'9007199254740993'", P::Text("9007199254740993")),
        ("9007199254740992e0", P::Double(9_007_199_254_740_992.0)),
    ];
    let columns: [(&str, &[(&str, P)]); 9] = [
        ("dt", moments),
        ("t", moments),
        ("t1", moments),
        ("ti", times),
        ("ti1", times),
        ("y", numbers),
        ("b", numbers),
        ("d", numbers),
        ("s", numbers),
    ];
    let forms = [
        "{} = ?",
        "{} >= ?",
        "NOT {} < ?",
        "{} IN (?, ?)",
        "{} BETWEEN ? AND ?",
    ];
    let verbs = [
        "SELECT n FROM pl WHERE",
        "UPDATE pl SET n = n + 1 WHERE",
        "UPDATE pl SET k = 'a' WHERE",
        "DELETE FROM pl WHERE k > 'A' AND",
    ];
    for (column, values) in columns {
        for (literal, bound) in values {
            for form in forms {
                for verb in verbs {
                    let sql = format!("{verb} {}", form.replace("{}", column));
                    let places = sql.matches('?').count();
                    let bound = vec![*bound; places];
                    scene.compare(verb, &sql, Some(&bound), false);
                    let using = ["@a", "@a", "@a"][..places].join(", ");
                    scene.by_name(verb, &sql, &format!("@a = {literal}"), &using);
                }
            }
        }
    }
    // signs, several rows, values beside conditions
    for (sql, values, using) in [
        (
            "SELECT n FROM pl WHERE n < ? AND t > ?",
            "@a = 7, @b = '9999999999999999999999'",
            "@a, @b",
        ),
        (
            "SELECT n FROM pl WHERE b > ? AND d <> -?",
            "@a = -1, @b = -2.5",
            "@a, @b",
        ),
        (
            "INSERT INTO pl (id, n, t, ti1) VALUES (?, ?, ?, ?), (8, ?, ?, '1:2:3.55')",
            "@a = 7, @b = '2020-01-01 12:30:00.6', @c = '1:2:3.55'",
            "@a, @a, @b, @c, @a, @b",
        ),
        (
            "UPDATE pl SET n = ?, t = ? WHERE id = ?",
            "@a = 7, @b = '2020-01-01 12:30:01', @c = 1",
            "@a, @b, @c",
        ),
        (
            "SELECT n FROM pl WHERE s = ? AND k = 'a' LIMIT ?",
            "@a = '2020', @b = 1",
            "@a, @b",
        ),
    ] {
        scene.by_name("several", sql, values, using);
    }
    scene.conclude();
}

impl Scene {
    /// Compares a statement that is prepared and executed in SQL.
    fn by_name(&mut self, what: &str, sql: &str, set: &str, using: &str) {
        let run = |client: &mut Client| {
            client.must("BEGIN");
            client.must(&format!("SET {set}"));
            let text = sql.replace('\'', "''");
            let seen = match client.text(&format!("PREPARE st FROM '{text}'")) {
                Seen::Done { .. } => {
                    let seen = client.text(&format!("EXECUTE st USING {using}"));
                    client.text("DEALLOCATE PREPARE st");
                    seen
                }
                other => other,
            };
            let kept = client.text("SELECT id, t, ti1 FROM pl ORDER BY id");
            client.must("ROLLBACK");
            (seen, kept)
        };
        let protected = run(&mut self.bare);
        if let (Seen::Refused(_), _) = protected {
            *self.refused.entry(format!("by name {what}")).or_default() += 1;
            return;
        }
        self.answers += 1;
        let plain = run(&mut self.plain);
        if plain != protected {
            self.different.push(format!(
                "by name: {sql} with {set} using {using}\n    plain {plain:?}\n    proxy {protected:?}"
            ));
        }
    }
}
