//! The coverage table of docs/sql.md, made from the golden plan files: kind of statement × tier ×
//! refusal.
//!
//! A golden statement counts under every kind that it shows (a join that is grouped is both). Renew
//! the page with `ONIONSKIN_UPDATE=1 cargo test -p onionskin-plan`, after the golden files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const BEGIN: &str =
    "<!-- made from crates/plan/tests/golden by crates/plan/tests/coverage.rs -->\n";
const END: &str = "<!-- end of what is made from the golden files -->\n";

/// A golden statement: its words in lower case, and what became of it with or without a scratch
/// engine.
struct Golden {
    sql: String,
    words: Vec<String>,
    engine: bool,
    /// `1`, `2`, `3`, `definition`, `show`, `passes`, or the code of a refusal.
    outcome: String,
    about: String,
}

/// Kinds of statements in the order of the page; a word list matches where its words follow each
/// other, `*` is any one word, and `(`, `)`, `,` and signs are words.
const KINDS: &[(&str, &[&str])] = &[
    ("**Queries**", &[]),
    ("SELECT … WHERE", &["select & where"]),
    (
        "=, <>, <=>, IN",
        &["where & =", "where & in (", "where & <=>", "where & <>"],
    ),
    (
        "<, >, BETWEEN",
        &["where & <", "where & >", "where & between", "where & >="],
    ),
    (
        "AND, OR, NOT",
        &["where & and", "where & or", "where & not"],
    ),
    ("IS NULL", &["is null", "is not null"]),
    ("row values `(a, b) = (…)`", &["where ( name ,"]),
    ("LIKE", &["select & like"]),
    ("REGEXP", &["regexp"]),
    ("MATCH … AGAINST", &["match & against"]),
    (
        "expressions and functions",
        &[
            "upper",
            "lower",
            "concat",
            "greatest",
            "left (",
            "char_length",
            "coalesce",
            "age + 1",
            "json_object",
        ],
    ),
    (
        "CASE, IF, IFNULL, COALESCE",
        &["case", "if (", "coalesce", "ifnull"],
    ),
    (
        "CAST, CONVERT, COLLATE",
        &["cast (", "convert (", "select name collate"],
    ),
    ("ORDER BY", &["select & order by"]),
    ("LIMIT, OFFSET", &["select & limit"]),
    ("DISTINCT", &["select distinct"]),
    (
        "COUNT, SUM, AVG, MIN, MAX",
        &["count (", "sum (", "avg (", "min (", "max ("],
    ),
    ("COUNT(DISTINCT …)", &["count ( distinct"]),
    (
        "GROUP_CONCAT, STDDEV, BIT_OR, JSON_ARRAYAGG",
        &["group_concat", "stddev", "bit_or", "json_arrayagg"],
    ),
    ("GROUP BY", &["group by"]),
    ("HAVING", &["having"]),
    ("WITH ROLLUP", &["with rollup"]),
    ("window functions", &["over"]),
    ("inner joins", &["select & join"]),
    ("outer joins", &["left join", "right join"]),
    ("NATURAL, USING", &["natural", "join * using ("]),
    (
        "subqueries in conditions",
        &[
            "in ( select",
            "exists ( select",
            "where & = ( select",
            "all ( select",
        ],
    ),
    ("subqueries as columns", &["select ( select", ", ( select"]),
    ("derived tables", &["from ( select", ", ( select * as"]),
    ("WITH", &["^with"]),
    ("WITH RECURSIVE", &["^with recursive"]),
    (
        "UNION, EXCEPT, INTERSECT",
        &["union", "except", "intersect"],
    ),
    (
        "FOR UPDATE, LOCK IN SHARE MODE",
        &["for update", "lock in share mode"],
    ),
    ("index hints, PARTITION", &["use index", "partition ( p0"]),
    (
        "SELECT … INTO, PROCEDURE",
        &[
            "select & into @",
            "select & into outfile",
            "procedure analyse",
        ],
    ),
    ("user variables in queries", &["select & @"]),
    ("TABLE, VALUES", &["^table", "^values"]),
    (
        "EXPLAIN, ANALYZE of a statement",
        &["^explain", "^analyze select"],
    ),
    ("**Writes**", &[]),
    (
        "INSERT … VALUES, SET",
        &["^insert & values", "^insert & set"],
    ),
    (
        "INSERT with expressions",
        &[
            "^insert & concat",
            "^insert & now",
            "^insert & uuid",
            "^insert & upper",
        ],
    ),
    (
        "INSERT IGNORE, DELAYED",
        &["insert ignore", "insert delayed"],
    ),
    (
        "INSERT … ON DUPLICATE KEY UPDATE",
        &["on duplicate key update"],
    ),
    ("INSERT … SELECT", &["^insert & select"]),
    ("REPLACE", &["^replace"]),
    ("… RETURNING", &["returning"]),
    (
        "UPDATE, constants",
        &[
            "^update users set name = '",
            "^update users set age = #",
            "^update sbtest1 set c = '",
            "^update & set & = null",
            "^update & = default",
        ],
    ),
    (
        "UPDATE, expressions",
        &[
            "^update & age +",
            "^update & age *",
            "^update & k +",
            "^update & upper",
            "^update & = id",
            "^update & = ( select",
            "^update & = name",
        ],
    ),
    ("UPDATE with ORDER BY, LIMIT", &["^update & limit"]),
    ("UPDATE of several tables", &["^update users u"]),
    (
        "DELETE",
        &[
            "^delete from users where",
            "^delete from sbtest1 where",
            "^delete from texts where",
            "^delete quick",
        ],
    ),
    ("DELETE with ORDER BY, LIMIT", &["^delete & limit"]),
    (
        "DELETE from several tables",
        &["^delete u", "^delete & using"],
    ),
    ("LOAD DATA, LOAD XML", &["^load"]),
    ("TRUNCATE", &["^truncate"]),
    ("**Definitions**", &[]),
    (
        "CREATE TABLE",
        &["^create table * (", "^create or replace table"],
    ),
    (
        "CREATE TABLE … LIKE, … AS SELECT",
        &[
            "create table * like",
            "create table * as",
            "create temporary table * as",
        ],
    ),
    ("CREATE TEMPORARY TABLE", &["^create temporary"]),
    (
        "ENUM, SET, BIT, JSON, UUID, INET6",
        &[
            "enum (",
            "( a set (",
            "bit (",
            "json encrypted",
            "( a uuid",
            "( a inet6",
        ],
    ),
    ("FOREIGN KEY", &["foreign key"]),
    ("generated columns, CHECK", &["as ( a +", "check ("]),
    ("ALTER TABLE", &["^alter table"]),
    (
        "CREATE INDEX, DROP INDEX",
        &["^create index", "^create unique index", "^drop index"],
    ),
    ("RENAME TABLE, DROP TABLE", &["^rename", "^drop table"]),
    ("views", &["view"]),
    (
        "triggers, routines, events",
        &[
            "^create trigger",
            "^create procedure",
            "^create function",
            "^create event",
            "^begin not atomic",
            "^call",
        ],
    ),
    ("**Around them**", &[]),
    (
        "transactions",
        &["^start", "^commit", "^savepoint", "^begin"],
    ),
    ("SET", &["^set"]),
    (
        "PREPARE, EXECUTE as SQL",
        &["^prepare", "^execute", "^deallocate"],
    ),
    ("LOCK TABLES, HANDLER", &["^lock", "^unlock", "^handler"]),
    ("SHOW, DESCRIBE", &["^show", "^describe"]),
    ("information_schema", &["information_schema"]),
    (
        "maintenance: CHECK, ANALYZE, OPTIMIZE, CHECKSUM, FLUSH",
        &[
            "^check",
            "^analyze table",
            "^optimize",
            "^checksum",
            "^flush",
        ],
    ),
    ("GRANT", &["^grant"]),
    (
        "statements on tables without protected columns",
        &[
            "from plain",
            "^frobnicate",
            "^do",
            "^use app",
            "^kill",
            "create sequence",
        ],
    ),
];

#[test]
fn the_page_is_what_the_golden_files_give() {
    let goldens = goldens();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sql.md");
    let page = std::fs::read_to_string(path).unwrap();
    let made = made(&goldens);
    let (before, rest) = page.split_once(BEGIN).expect("where the table begins");
    let (old, after) = rest.split_once(END).expect("where the table ends");
    if std::env::var_os("ONIONSKIN_UPDATE").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{made}{END}{after}")).unwrap();
        return;
    }
    assert!(
        old == made,
        "docs/sql.md is not what the golden files give: ONIONSKIN_UPDATE=1 cargo test -p onionskin-plan --test coverage"
    );
}

#[test]
fn every_kind_has_a_statement_and_every_statement_a_kind() {
    let goldens = goldens();
    for (kind, patterns) in KINDS.iter().filter(|(_, patterns)| !patterns.is_empty()) {
        let found = |engine| {
            goldens
                .iter()
                .any(|g| g.engine == engine && is(g, patterns))
        };
        assert!(
            found(false) && found(true),
            "no golden statement shows: {kind}"
        );
    }
    let classes = goldens.iter().filter(|g| {
        KINDS
            .iter()
            .all(|(_, patterns)| patterns.is_empty() || !is(g, patterns))
    });
    // Other files show details of kinds; what they hold may go without a line of its own, if it is
    // little.
    let without: Vec<&str> = classes.map(|g| g.sql.as_str()).collect();
    assert!(
        without.len() * 5 < goldens.len(),
        "no kind fits: {without:#?}"
    );
}

fn goldens() -> Vec<Golden> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let mut goldens = Vec::new();
    for path in paths {
        let engine = path
            .file_stem()
            .is_some_and(|s| s.to_string_lossy().starts_with("scratch"));
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let Some(sql) = line.strip_prefix("> ") else {
                continue;
            };
            let plan = lines.peek().copied().unwrap_or_default();
            if plan.starts_with("unreadable") {
                continue;
            }
            let (outcome, about) = outcome(plan);
            goldens.push(Golden {
                sql: sql.into(),
                words: words(sql),
                engine,
                outcome,
                about,
            });
        }
    }
    assert!(goldens.len() > 300);
    goldens
}

/// From the first line of a plan.
fn outcome(plan: &str) -> (String, String) {
    let word = |end: &str| plan.split(end).next().unwrap_or_default().to_owned();
    if let Some(rest) = plan.strip_prefix("refuse ") {
        let (code, about) = rest.split_once(' ').unwrap_or((rest, ""));
        return (code.into(), about.into());
    }
    let outcome = match word(" ").trim_end_matches(':') {
        "1" => "1",
        "2" => "2",
        "3" => "3",
        "define" | "copy" | "refit" => "definition",
        "show" => "logical",
        "relay" => "passes",
        "by" => "by its text",
        _ => "other",
    };
    (outcome.into(), String::new())
}

/// Words, signs and constants: strings become `'`, numbers `#`.
fn words(sql: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut chars = sql.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_whitespace() {
            continue;
        }
        if c == '\'' {
            chars.by_ref().find(|d| *d == '\'');
            words.push("'".into());
        } else if c.is_ascii_digit() {
            while chars
                .next_if(|d| d.is_ascii_alphanumeric() || *d == '.')
                .is_some()
            {}
            words.push("#".into());
        } else if c.is_alphanumeric() || c == '_' {
            let mut word = c.to_lowercase().to_string();
            while let Some(d) = chars.next_if(|d| d.is_alphanumeric() || *d == '_') {
                word.extend(d.to_lowercase());
            }
            words.push(word);
        } else {
            let mut sign = c.to_string();
            if matches!(c, '<' | '>' | ':' | '!') {
                while let Some(d) = chars.next_if(|d| matches!(d, '=' | '>')) {
                    sign.push(d);
                }
            }
            words.push(sign);
        }
    }
    words
}

/// Whether any of the patterns fits. `^` is the beginning, `&` whatever lies between.
fn is(golden: &Golden, patterns: &[&str]) -> bool {
    // a stored program holds statements of other kinds, and is of none of these
    const PROGRAMS: [&str; 4] = ["trigger", "procedure", "function", "event"];
    let mut head = golden.words.iter().take(9);
    if head.next().is_some_and(|first| first == "create")
        && head.any(|word| PROGRAMS.contains(&word.as_str()))
    {
        return patterns.contains(&"^create trigger");
    }
    patterns.iter().any(|pattern| {
        let (anchored, pattern) = match pattern.strip_prefix('^') {
            Some(rest) => (true, rest),
            None => (false, *pattern),
        };
        let mut rest = golden.words.as_slice();
        for (i, part) in pattern.split(" & ").enumerate() {
            let part: Vec<&str> = part.split(' ').collect();
            let fits = |window: &[String]| {
                window
                    .iter()
                    .zip(&part)
                    .all(|(word, wanted)| *wanted == "*" || word == wanted)
            };
            let found = rest.windows(part.len()).position(fits);
            match found {
                Some(0) => rest = &rest[part.len()..],
                Some(at) if !(anchored && i == 0) => rest = &rest[at + part.len()..],
                _ => return false,
            }
        }
        true
    })
}

/// The two tables.
fn made(goldens: &[Golden]) -> String {
    let mut out = String::from("| | without a scratch engine | with one |\n|---|---|---|\n");
    for (kind, patterns) in KINDS {
        if patterns.is_empty() {
            writeln!(out, "| {kind} | | |").unwrap();
            continue;
        }
        let cell = |engine: bool| -> String {
            let of_kind = goldens
                .iter()
                .filter(|g| g.engine == engine && is(g, patterns));
            let outcomes: BTreeSet<(bool, &str)> = of_kind
                .map(|g| (g.outcome.starts_with("OS"), g.outcome.as_str()))
                .collect();
            let tiers: Vec<&str> = outcomes
                .iter()
                .filter(|(r, _)| !r)
                .map(|(_, o)| *o)
                .collect();
            let codes: Vec<&str> = outcomes
                .iter()
                .filter(|(r, _)| *r)
                .map(|(_, o)| *o)
                .collect();
            match (tiers.is_empty(), codes.is_empty()) {
                (false, true) => tiers.join(", "),
                (true, _) => format!("refused: {}", codes.join(", ")),
                (false, false) => format!(
                    "{}; in part refused: {}",
                    tiers.join(", "),
                    codes.join(", ")
                ),
            }
        };
        writeln!(out, "| {kind} | {} | {} |", cell(false), cell(true)).unwrap();
    }
    out.push_str(
        "\nWhat is refused even with a scratch engine, with one of the golden statements for each cause:\n\n| code | about | such as |\n|---|---|---|\n",
    );
    let mut causes: BTreeMap<(&str, String), &str> = BTreeMap::new();
    let with_engine: BTreeSet<&str> = goldens
        .iter()
        .filter(|g| g.engine)
        .map(|g| g.sql.as_str())
        .collect();
    for g in goldens.iter().filter(|g| g.outcome.starts_with("OS")) {
        // A statement of a file without an engine counts if it is in no file with one and is no
        // query.
        let only_without = !g.engine
            && !with_engine.contains(g.sql.as_str())
            && !matches!(
                g.words.first().map(String::as_str),
                Some("select" | "with" | "(")
            );
        if g.engine || only_without {
            let example = causes
                .entry((&g.outcome, g.about.clone()))
                .or_insert(&g.sql);
            if g.sql.len() < example.len() {
                *example = &g.sql;
            }
        }
    }
    for ((code, about), sql) in causes {
        let escaped = |text: &str| text.replace('|', "\\|");
        writeln!(out, "| {code} | {} | `{}` |", escaped(&about), escaped(sql)).unwrap();
    }
    out
}
