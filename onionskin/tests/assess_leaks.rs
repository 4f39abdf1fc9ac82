//! `onionskin assess leaks` on real servers: tables with planted distributions are made through the
//! proxy, and attacked as an application and as the server. Success is what the plan says, what the
//! server has is what the attacked stand-ins say, and no report has a value.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use onionskin_assess::leaks::{Capability, ColumnLeak, LeaksReport, Risk};
use onionskin_testkit::*;
use tempfile::TempDir;

on_both_servers!(
    attacks_recover_what_was_planted,
    the_server_has_what_was_attacked,
    fewer_bits_tell_less,
    plain_tables_and_what_is_not_attacked,
    what_cannot_be_asked_is_an_error,
);

const PEOPLE: u32 = 1_200;
const NOTES: [&str; 6] = [
    "canarybird sings in the morning",
    "canarybird sings in the evening",
    "canarybird is quiet",
    "no canarybird was seen",
    "two canarybirds were seen near the lake",
    "the lake is frozen",
];

/// Six of ten are women, one in fifty says nothing. Ages from 20 to 59 all occur, the young ones
/// most. E-mail addresses are unique. Person k of the first ten has 2^(11 - k) visits.
fn fill(session: &mut Session, suffix: &str) {
    let protect = |words: &str| match suffix {
        "" => format!("ENCRYPTED FOR ({words})"),
        _ => String::new(),
    };
    session.must(&format!(
        "CREATE TABLE people{suffix} (id INT AUTO_INCREMENT PRIMARY KEY, sex VARCHAR(12) {}, \
         age TINYINT UNSIGNED NOT NULL {}, email VARCHAR(60) NOT NULL {}, note VARCHAR(100) {}, doc JSON {}, \
         UNIQUE KEY by_mail (email))",
        protect("eq"),
        protect("range"),
        protect("eq, join:mail"),
        protect("like"),
        protect("")
    ));
    session.must(&format!(
        "CREATE TABLE visits{suffix} (id INT AUTO_INCREMENT PRIMARY KEY, email VARCHAR(60) NOT NULL {}, \
         CONSTRAINT of_person{suffix} FOREIGN KEY (email) REFERENCES people{suffix} (email))",
        protect("eq, join:mail"),
    ));
    let mut age = (0..PEOPLE).map(|n| 20 + n % 40 * (n / 40 % 3) / 2);
    let people: Vec<String> = (0..PEOPLE)
        .map(|n| {
            let sex = match n % 50 {
                0 => "NULL",
                n if n % 5 < 3 => "'canaryfem'",
                _ => "'canarymal'",
            };
            let note = NOTES[(n % 21) as usize * (n % 21) as usize / 74];
            let age = age.next().unwrap_or_default();
            format!(
                "({sex}, {age}, 'canary{:04}@example.org', '{note}', '{{\"n\": {n}}}')",
                n * 37 % PEOPLE
            )
        })
        .collect();
    for part in people.chunks(200) {
        let rows = part.join(", ");
        session.must(&format!(
            "INSERT INTO people{suffix} (sex, age, email, note, doc) VALUES {rows}"
        ));
    }
    let visits: Vec<String> = (1..=10)
        .flat_map(|k| (0..1 << (11 - k)).map(move |_| format!("('canary{k:04}@example.org')")))
        .collect();
    for part in visits.chunks(200) {
        session.must(&format!(
            "INSERT INTO visits{suffix} (email) VALUES {}",
            part.join(", ")
        ));
    }
}

struct Stage {
    server: Server,
    proxy: Proxy,
}

fn stage(kind: Kind) -> Option<Stage> {
    if direct_mode() {
        return None;
    }
    let server = Server::start(kind, ServerOptions::default())?;
    server.connect().must("CREATE DATABASE app");
    let options = ProxyOptions {
        settings: "like_index = true\n".into(),
        ..ProxyOptions::default()
    };
    let proxy = Proxy::start_with(&server, options);
    fill(&mut proxy.connect_to("app"), "");
    Some(Stage { server, proxy })
}

fn folder() -> TempDir {
    tempfile::Builder::new()
        .prefix("os-leaks-")
        .tempdir()
        .expect("a temporary folder")
}

fn run(backend: &str, arguments: &[&str], out: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onionskin"));
    command
        .args(["assess", "leaks", "--database", "app", "--backend", backend])
        .args(arguments)
        .env_remove("ONIONSKIN_PASSWORD")
        // no configuration, and so no key, is found there
        .current_dir("/")
        .stdin(Stdio::null());
    if let Some(out) = out {
        command.arg("--out").arg(out);
    }
    command.output().expect("onionskin runs")
}

/// Runs it; the code, and the report. No value stands in anything that it has said or written.
fn assess(backend: &str, arguments: &[&str]) -> (Option<i32>, LeaksReport) {
    let folder = folder();
    let out = folder.path().join("report");
    let output = run(backend, arguments, Some(&out));
    let said = [output.stdout.as_slice(), &output.stderr].concat();
    let mut all = String::from_utf8_lossy(&said).into_owned();
    let json = fs::read_to_string(out.join("report.json"));
    let json = json.unwrap_or_else(|_| panic!("no report: {all}"));
    let report: LeaksReport = serde_json::from_str(&json).expect("JSON as it is documented");
    assert_eq!(
        (report.format.as_str(), report.version),
        ("onionskin-assess-leaks", 1)
    );
    for name in ["report.html", "report.md", "report.json"] {
        all += &fs::read_to_string(out.join(name)).expect("a file of the report");
    }
    let all = all.to_lowercase();
    for value in ["canary", "example.org", "frozen", "evening"] {
        assert!(!all.contains(value), "the report tells {value}");
    }
    (output.status.code(), report)
}

impl Stage {
    fn by_proxy(&self, arguments: &[&str]) -> (Option<i32>, LeaksReport) {
        assess(&format!("127.0.0.1:{}", self.proxy.port()), arguments)
    }

    fn at_server(&self) -> String {
        format!("unix:{}", self.server.socket().display())
    }
}

fn find<'a>(
    report: &'a LeaksReport,
    table: &str,
    column: &str,
    capability: Capability,
) -> &'a ColumnLeak {
    let mut columns = report.columns.iter();
    let found = columns.find(|c| {
        (c.table.as_str(), c.column.as_str(), c.capability) == (table, column, capability)
    });
    found.unwrap_or_else(|| panic!("{table}.{column} is missing: {report:#?}"))
}

fn rows(leak: &ColumnLeak, attack: &str) -> f64 {
    let found = leak.attacks.iter().find(|a| a.attack == attack);
    found
        .unwrap_or_else(|| panic!("no {attack}: {leak:#?}"))
        .rows
        .mean
}

/// What was planted as well known is read, and what is unique is not.
fn attacks_recover_what_was_planted(kind: Kind) {
    let Some(stage) = stage(kind) else { return };
    let (code, report) = stage.by_proxy(&["--seeds", "3"]);
    assert_eq!(code, Some(1));
    assert_eq!((report.tables, report.seeds), (2, 3));
    assert_eq!(report.rows, u64::from(PEOPLE) + 2_046);

    let sex = find(&report, "people", "sex", Capability::Eq);
    assert_eq!(
        rows(sex, "frequency"),
        1.0,
        "two values with other frequencies"
    );
    assert_eq!(sex.risk, Some(Risk::Much));
    assert!(
        sex.advice.as_deref().is_some_and(|a| a.contains("drop it")),
        "{sex:#?}"
    );
    let blind = sex.blind.expect("a share").mean;
    assert!((0.55..0.65).contains(&blind), "{blind}");
    let sealed = find(&report, "people", "sex", Capability::Sealed);
    assert_eq!(sealed.risk, Some(Risk::Little), "both are of one length");

    let age = find(&report, "people", "age", Capability::Range);
    assert!(rows(age, "sorting") > 0.99, "every age occurs: {age:#?}");
    assert!(rows(age, "cumulative") > 0.9, "{age:#?}");
    let [all, left] = age.figures.key_bits.expect("of order keys");
    assert!(
        all == 8.0 && (3.0..6.0).contains(&left),
        "40 of 256 values in a row: {left}"
    );

    let email = find(&report, "people", "email", Capability::Eq);
    assert!(
        email.attacks.iter().all(|a| a.rows.high < 0.02),
        "{email:#?}"
    );
    assert_eq!(email.risk, Some(Risk::Little));
    let bits = email.figures.bits_left.expect("of tokens");
    assert!((bits - f64::from(PEOPLE).log2()).abs() < 1e-6, "{bits}");

    let note = find(&report, "people", "note", Capability::Like);
    assert!(rows(note, "whole texts") > 0.99, "other lengths: {note:#?}");
    assert!(
        note.attacks
            .iter()
            .any(|a| a.attack == "grams" && a.parts.is_some())
    );

    // The children of a person give the person away, whose own address is unique.
    let [link] = report.links.as_slice() else {
        panic!("one foreign key: {report:#?}");
    };
    assert_eq!(
        [link.child.as_str(), &link.parent],
        ["visits.email", "people.email"]
    );
    assert!(
        (link.linked - 10.0 / f64::from(PEOPLE)).abs() < 1e-9,
        "{link:?}"
    );
    assert_eq!(link.linked, link.alone, "each has another number of visits");
    let by_link = link.by_link.expect("a share").mean;
    let by_itself = link.by_itself.expect("a share").mean;
    assert!(
        by_link > 0.5 * link.linked && by_link > 3.0 * by_itself,
        "{link:?}"
    );

    // MariaDB's JSON is a text.
    let left_out: &[&str] = match kind {
        Kind::MySql => &["people.doc: values of type JSON cannot be compared"],
        Kind::MariaDb => &[],
    };
    assert_eq!(report.left_out, left_out);
}

/// The stand-ins that were made for the attack have the shape of those that the server has. No key
/// is at hand where the server is looked at.
fn the_server_has_what_was_attacked(kind: Kind) {
    let Some(stage) = stage(kind) else { return };
    let (_, made) = stage.by_proxy(&["--seeds", "1"]);
    let (code, seen) = assess(&stage.at_server(), &["--as-server"]);
    assert_eq!(code, Some(0), "{:#?}", seen.left_out);
    assert!(seen.as_server && seen.columns.iter().all(|c| c.attacks.is_empty()));
    for (column, capability) in [
        ("sex", Capability::Sealed),
        ("sex", Capability::Eq),
        ("age", Capability::Range),
        ("email", Capability::Eq),
        ("note", Capability::Like),
        ("note", Capability::Sealed),
    ] {
        let (made, seen) = (
            find(&made, "people", column, capability),
            find(&seen, "people", column, capability),
        );
        let (made, seen) = (&made.figures, &seen.figures);
        assert_eq!(
            (made.rows, made.tokens),
            (seen.rows, seen.tokens),
            "{column}"
        );
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(
            near(made.bits, seen.bits) && near(made.alone, seen.alone),
            "{made:?} {seen:?}"
        );
        let left = |bits: Option<f64>| bits.unwrap_or(-1.0);
        assert!(
            near(left(made.bits_left), left(seen.bits_left)),
            "{made:?} {seen:?}"
        );
        // A cell at the end of its range says more, under one key and not under the other.
        let keys = |bits: Option<[f64; 2]>| bits.map_or(-1.0, |[_, left]| left);
        assert!(
            (keys(made.key_bits) - keys(seen.key_bits)).abs() < 0.5,
            "{made:?} {seen:?}"
        );
    }
    assert_eq!(
        seen.links.len(),
        2,
        "each column of the group to the other one: {seen:#?}"
    );

    // With knowledge: how far it fits.
    let folder = folder();
    let file = folder.path().join("sexes");
    fs::write(&file, "canaryfem,60\ncanarymal,40\n").expect("written");
    let file = file.to_str().expect("text");
    let arguments = ["--as-server", "--columns", "people.sex: eq", "--aux", file];
    let (_, seen) = assess(&stage.at_server(), &arguments);
    let apart = find(&seen, "people", "sex", Capability::Eq).figures.apart;
    assert!(apart.is_some_and(|apart| apart < 0.02), "{apart:?}");
}

/// Of values that all have frequencies of their own, whole tokens and keys tell all, and fewer bits
/// tell less. What a search reads beside its own is what the rows say.
fn fewer_bits_tell_less(kind: Kind) {
    let Some(stage) = stage(kind) else { return };
    let mut root = stage.server.connect();
    root.must("USE app");
    root.must("CREATE TABLE coins (id INT PRIMARY KEY AUTO_INCREMENT, n INT, e ENUM('a', 'b'))");
    // n occurs n + 1 times
    let rows: Vec<String> = (0..60)
        .flat_map(|n| vec![format!("({n}, 'a')"); n + 1])
        .collect();
    root.must(&format!(
        "INSERT INTO coins (n, e) VALUES {}",
        rows.join(", ")
    ));
    let arguments = [
        "--table",
        "coins",
        "--aux-table",
        "app.coins",
        "--seeds",
        "9",
    ];
    let (code, report) = assess(&stage.at_server(), &arguments);
    assert_eq!(code, Some(1));
    let of = |capability| find(&report, "coins", "n", capability);
    let best = |capability| of(capability).best().expect("an attack").rows.mean;
    let words: Vec<String> = report
        .columns
        .iter()
        .filter(|leak| leak.column == "n")
        .map(|leak| leak.capability.word())
        .collect();
    assert_eq!(
        words,
        ["eq:1", "eq:3", "eq", "range:27", "range:30", "range"]
    );
    assert_eq!([best(Capability::Eq), best(Capability::Range)], [1.0; 2]);
    assert!(
        best(Capability::CoarseEq(3)) < 0.2,
        "{:#?}",
        of(Capability::CoarseEq(3))
    );
    let (few, more) = (Capability::CoarseRange(27), Capability::CoarseRange(30));
    assert!(
        best(few) < 0.1 && best(few) < best(more) && best(more) < 0.4,
        "{:#?}",
        of(more)
    );
    assert_eq!(of(Capability::Range).risk, Some(Risk::Much));
    let advice = of(Capability::Range).advice.as_deref().unwrap_or_default();
    assert!(advice.starts_with("weaken it: range:27 tells "), "{advice}");
    // rows in steps of 32: 528 and 1,302
    let beside = |rows: &[f64]| -> f64 {
        let values: f64 = (1..=60).map(|n| f64::from(n * n)).sum();
        (rows.iter().map(|n| n * n).sum::<f64>() - values) / 1830.0
    };
    let measured = of(few).figures.beside.expect("of fewer bits");
    assert!(
        (measured - beside(&[528.0, 1302.0])).abs() < 1e-6,
        "{measured}"
    );
    assert_eq!(of(Capability::Eq).figures.beside, None);
    let told = of(Capability::CoarseEq(3))
        .figures
        .bits_left
        .expect("of tokens");
    assert!(told > 2.0, "eight tokens for sixty values: {told}");

    // the server's own tokens, as it sees them
    let (sealed, _) = with_and_without_protection(
        "CREATE TABLE purse (id INT PRIMARY KEY AUTO_INCREMENT, n INT {eq:3, range:27})",
    );
    let mut session = stage.proxy.connect_to("app");
    session.must(&sealed);
    let rows: Vec<String> = (0..60)
        .flat_map(|n| vec![format!("({n})"); n + 1])
        .collect();
    session.must(&format!("INSERT INTO purse (n) VALUES {}", rows.join(", ")));
    let arguments = ["--as-server", "--table", "purse"];
    let (_, seen) = assess(&stage.at_server(), &arguments);
    let tokens = |capability| find(&seen, "purse", "n", capability).figures.tokens;
    assert_eq!(tokens(few), 2);
    assert!((4..=8).contains(&tokens(Capability::CoarseEq(3))));

    // by name, and what is none
    let arguments = ["--columns", "coins.n: eq:2 range:28", "--seeds", "1"];
    let (_, report) = assess(&stage.at_server(), &arguments);
    let words: Vec<String> = report.columns.iter().map(|c| c.capability.word()).collect();
    assert_eq!(words, ["eq:2", "range:28"]);
    let arguments = ["--table", "coins", "--columns", "coins.e: eq:1"];
    let (_, report) = assess(&stage.at_server(), &arguments);
    assert_eq!(
        report.left_out,
        ["coins.e: its type has nothing to attack for eq:1"]
    );
}

/// A table that is not protected yet can be attacked at the server itself; one that is cannot.
fn plain_tables_and_what_is_not_attacked(kind: Kind) {
    let Some(stage) = stage(kind) else { return };
    let mut root = stage.server.connect();
    root.must("USE app");
    fill(&mut root, "_plain");
    root.must("ALTER TABLE people_plain ADD COLUMN spot POINT");
    let arguments = [
        "--table",
        "people_plain",
        "--aux-table",
        "app.people_plain",
        "--seeds",
        "2",
    ];
    let (_, report) = assess(&stage.at_server(), &arguments);
    // who knows the table knows all of it
    let age = find(&report, "people_plain", "age", Capability::Range);
    assert_eq!(
        [
            rows(age, "sorting"),
            rows(age, "cumulative"),
            rows(age, "digits")
        ],
        [1.0; 3]
    );
    let digits = age.attacks.iter().find(|a| a.attack == "digits");
    assert_eq!(digits.and_then(|d| d.parts).map(|p| p.mean), Some(1.0));
    let grams = find(&report, "people_plain", "note", Capability::Like);
    assert!(rows(grams, "whole texts") == 1.0, "{grams:#?}");
    let is_spot = |left: &String| left.starts_with("people_plain.spot: its type");
    assert!(
        report.left_out.iter().any(is_spot),
        "{:#?}",
        report.left_out
    );

    let (code, report) = assess(&stage.at_server(), &["--table", "people"]);
    assert_eq!((code, report.columns.len()), (Some(1), 0), "{report:#?}");
    assert!(
        report.left_out[0].contains("ciphertext is shown"),
        "{:#?}",
        report.left_out
    );
}

fn what_cannot_be_asked_is_an_error(kind: Kind) {
    let Some(stage) = stage(kind) else { return };
    let server = stage.at_server();
    for (arguments, words) in [
        (&["--as-server", "--held-apart", "20"][..], "needs values"),
        (&["--aux-table", "app.people"], "--table"),
        (
            &["--columns", "people.height"],
            "no column that was looked at",
        ),
        (&["--columns", "people.age: order"], "no capability"),
        (&["--table", "nobody"], "no table nobody"),
        (
            &[
                "--aux",
                "/dev/null",
                "--table",
                "visits",
                "--as-server",
                "--columns",
                "x",
            ],
            "no column",
        ),
    ] {
        let output = run(&server, arguments, None);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
    let output = run(&server, &["--aux", "/x", "--held-apart", "20"], None);
    assert_eq!(output.status.code(), Some(2), "one kind of knowledge");
    let output = run("127.0.0.1:1", &[], None);
    assert_eq!(output.status.code(), Some(4));
}
