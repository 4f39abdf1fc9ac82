//! Plans as golden files: SQL, then tier, the server's text with its slots, result and refusal.
//!
//! Each block of `tests/golden/*.txt` is a statement behind `> ` and its expected plan. Update them
//! with `ONIONSKIN_UPDATE=1 cargo test -p onionskin-plan` and read the difference. Files whose
//! names begin with `scratch` are planned with a scratch engine. docs/sql.md is made from them
//! (`coverage.rs`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use onionskin_plan::{
    Action, Catalog, Compared, DdlPiece, Effect, Escape, Known, Operand, Outcome, Output, Piece,
    Plan, Request, Scratch, Settings, SortBy, Source, Template, Test, Text, UseScratch,
    WrittenColumn, plan,
};
use onionskin_schema::{
    Base, Capabilities, Column, Default as ColumnDefault, DefaultLiteral, GramForm, KeyRole,
    PhysicalNames, Policy, Protection, Table, Whole,
};
use onionskin_value::{Family, SqlType};

fn column(name: &str, ty: &str, caps: Option<(&str, u8)>) -> Column {
    let collation = (ty.contains("char") || ty.contains("text")).then_some("utf8mb4_general_ci");
    let sql_type = SqlType::parse(ty, collation).unwrap();
    let protection = caps.map(|(words, id)| {
        let mut capabilities = Capabilities {
            join: words.contains("join").then(|| "group".to_string()),
            ..Capabilities::default()
        };
        for word in words.split(' ') {
            capabilities.take_word(word);
        }
        let column_id = [id, id, 0, 0];
        Protection {
            sql_type,
            column_id,
            key_id: 1,
            suite: 1,
            cell_version: 1,
            names: PhysicalNames::new(name, column_id, &sql_type, &capabilities),
            capabilities,
            checks: Vec::new(),
            grams: match words.contains("numbers") {
                true => GramForm::Numbers,
                false => GramForm::Words,
            },
            actions: Default::default(),
            whole: Whole::Unmarked,
        }
    });
    Column {
        name: name.into(),
        sql_type: Some(sql_type),
        type_text: ty.into(),
        nullable: name != "id",
        default: (name != "id").then(|| ColumnDefault::Server("NULL".into())),
        auto_increment: name == "id",
        refers_to_plaintext: false,
        on_update: false,
        generated: false,
        key: if name == "id" {
            KeyRole::Primary
        } else {
            KeyRole::None
        },
        protection,
        invisible: false,
        comment: String::new(),
        explicit_collation: false,
    }
}

fn shown(capabilities: &Capabilities) -> String {
    let Capabilities {
        eq,
        range,
        like,
        join,
        bits,
        tenant,
    } = capabilities;
    let tenant: String = tenant.iter().map(|t| format!(", {}", t.clause())).collect();
    let bits = [("eq", bits.eq), ("range", bits.range)]
        .into_iter()
        .filter_map(|(word, bits)| Some(format!(", {word} bits: {}", bits?)));
    let bits: String = bits.collect();
    format!(
        "Capabilities {{ eq: {eq}, range: {range}, like: {like}, join: {join:?}{bits}{tenant} }}"
    )
}

fn table(name: &str, columns: Vec<Column>) -> Arc<Table> {
    let protected = columns.iter().any(|c| c.protection.is_some());
    Arc::new(Table {
        database: "app".into(),
        name: name.into(),
        columns,
        table_id: protected.then_some([name.len() as u8; 8]),
        view: false,
        base: None,
        hidden_indexes: Vec::new(),
        guarded: Vec::new(),
        damaged: None,
    })
}

/// A view that computes its last column, over a table with a plain column that changes with its
/// row.
fn view_of_one_table() -> Arc<Table> {
    let mut id = column("id", "int(11)", None);
    id.key = KeyRole::None;
    let mut view = Table::clone(&table(
        "folk",
        vec![
            id,
            column("name", "varchar(40)", Some(("eq", 0x21))),
            column("age", "int(11)", Some(("eq range", 0x23))),
            column("city", "varchar(20)", None),
            column("next", "int(11)", None),
        ],
    ));
    view.view = true;
    view.base = Some(Base {
        key: vec![0],
        computed: vec![4],
        on_update: true,
        changed: None,
        missing: None,
    });
    Arc::new(view)
}

/// A table with KEY BY.
fn of_tenants() -> Arc<Table> {
    table(
        "files",
        vec![
            column("id", "int(11)", None),
            column("who", "int(11)", None),
            column("title", "varchar(40)", Some(("eq key_by:who", 0x17))),
            column("body", "text", Some(("key_by:who", 0x18))),
            column("n", "int(11)", None),
        ],
    )
}

struct Fixture(Vec<Arc<Table>>);

impl Catalog for Fixture {
    fn table(&self, database: &str, name: &str) -> Known {
        let found = self.0.iter().find(|t| {
            t.database.eq_ignore_ascii_case(database) && t.name.eq_ignore_ascii_case(name)
        });
        found.map_or(Known::Absent, |t| Known::Table(Arc::clone(t)))
    }
}

fn fixture() -> Fixture {
    let mut broken = Table::clone(&table("broken", vec![column("id", "int(11)", None)]));
    broken.damaged = Some("test".into());
    Fixture(vec![
        table(
            "sbtest1",
            vec![
                column("id", "int(11)", None),
                column("k", "int(11)", Some(("eq range", 0x11))),
                column("c", "char(120)", Some(("", 0x22))),
                column("pad", "char(60)", Some(("", 0x33))),
            ],
        ),
        table(
            "coarse",
            vec![
                column("id", "int(11)", None),
                column("name", "varchar(40)", Some(("eq:6", 0x61))),
                column("pay", "decimal(10,2)", Some(("eq:5 range:20", 0x62))),
                column("born", "date", Some(("range:16", 0x63))),
                column("mail", "varchar(40)", Some(("eq range:24", 0x64))),
                column("city", "varchar(20)", None),
            ],
        ),
        table(
            "users",
            vec![
                column("id", "int(11)", None),
                column("name", "varchar(40)", Some(("eq", 0x44))),
                column("age", "int(11)", Some(("eq range", 0x55))),
                column("email", "varchar(80)", Some(("eq join", 0x66))),
                column("note", "varchar(80)", None),
            ],
        ),
        table(
            "orders",
            vec![
                column("id", "int(11)", None),
                column("user_id", "int(11)", None),
                column("mail", "varchar(80)", Some(("eq join", 0x77))),
                column("total", "decimal(10,2)", None),
            ],
        ),
        table(
            "texts",
            vec![
                column("id", "int(11)", None),
                column("name", "varchar(40)", Some(("eq range", 0x88))),
                column("body", "text", Some(("range", 0x99))),
                column("short", "varchar(8)", Some(("range", 0xaa))),
                column("city", "varchar(40)", None),
                column("born", "date", None),
                column("n", "int(11)", Some(("", 0xbb))),
                column("about", "text", Some(("like", 0xcc))),
            ],
        ),
        table(
            "letters",
            vec![
                column("id", "int(11)", None),
                column("title", "varchar(40)", Some(("like numbers", 0xdd))),
                column("body", "text", Some(("like numbers", 0xee))),
                column("old", "varchar(40)", Some(("like", 0xff))),
            ],
        ),
        table(
            "plain",
            vec![column("id", "int(11)", None), column("x", "int(11)", None)],
        ),
        table(
            "clear",
            vec![
                column("id", "int(11)", None),
                column("secret", "int(11)", None),
            ],
        ),
        table(
            "policy0",
            vec![
                column("id", "int(11)", None),
                column("secret", "int(11)", None),
            ],
        ),
        table(
            "loose",
            vec![
                column("a", "int(11)", Some(("eq", 0x12))),
                column("b", "varchar(40)", Some(("", 0x13))),
                column("c", "int(11)", None),
                column("d", "float", None),
                column("e", "varchar(9)", None),
            ],
        ),
        table("moments", {
            let computed = |column: Column, text: &str| Column {
                default: Some(ColumnDefault::Literal(DefaultLiteral::Expression(
                    text.into(),
                ))),
                ..column
            };
            let mut at = column("at", "datetime", Some(("range", 0x14)));
            at.on_update = true;
            let mut made = column("made", "timestamp", None);
            made.default = Some(ColumnDefault::Server("current_timestamp()".into()));
            made.on_update = true;
            vec![
                column("id", "int(11)", None),
                column("name", "varchar(40)", Some(("eq", 0x15))),
                computed(at, "current_timestamp()"),
                computed(column("code", "char(36)", Some(("eq", 0x16))), "uuid()"),
                made,
                column("n", "int(11)", None),
            ]
        }),
        of_tenants(),
        Arc::new(broken),
        view_of_one_table(),
    ])
}

fn source(s: Source) -> String {
    match s {
        Source::Literal { index, negative } => {
            format!("{}{index}", if negative { "-" } else { "" })
        }
        Source::Moment { index, is_date } => {
            format!("{}{index}", if is_date { "date " } else { "timestamp " })
        }
        Source::Joined { first, count } => format!("{first} to {}", first + usize::from(count) - 1),
        Source::Null => "NULL".into(),
        Source::Bool(b) => b.to_string(),
        Source::Default => "default".into(),
        Source::Omitted { row } => format!("default of row {row}"),
        Source::Implicit => "implicit default".into(),
        Source::Present { digits, asked } => {
            let asked = if asked { " by a call" } else { "" };
            format!("now({digits}){asked}")
        }
    }
}

/// A test in the form of a condition: `#0` is a fetched column, `@0` an aggregate.
fn test(t: &Test) -> String {
    let join = |tests: &[Test], word: &str| {
        let tests: Vec<String> = tests.iter().map(test).collect();
        format!("({})", tests.join(word))
    };
    match t {
        Test::All(tests) => join(tests, " and "),
        Test::Any(tests) => join(tests, " or "),
        Test::Fetched(at) => format!("#{at}"),
        Test::Compare {
            left,
            comparison,
            right,
        } => {
            let left = match left {
                Operand::Fetch(at) => format!("#{at}"),
                Operand::Aggregate(at) => format!("@{at}"),
            };
            let right = match right {
                Compared::Constant(s, _) => source(*s),
                Compared::Fetch(at) => format!("#{at}"),
            };
            format!("{left} {comparison:?} {right}")
        }
        Test::Like {
            fetch,
            pattern,
            escape,
            negated,
        } => {
            let not = if *negated { "not " } else { "" };
            let escape = match escape {
                Escape::Backslash => String::new(),
                Escape::Literal(index) => format!(" escape {index}"),
            };
            format!("#{fetch} {not}like {}{escape}", source(*pattern))
        }
    }
}

fn text(pieces: &Text, plan: &Plan) -> String {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Sql(sql) => out.push_str(&String::from_utf8_lossy(sql)),
            Piece::Literal(i) => write!(out, "[{i}]").unwrap(),
            Piece::Slot(slot) => {
                let name = &plan.columns[slot.column].column().name;
                write!(out, "<{:?} {name} {}>", slot.purpose, source(slot.source)).unwrap();
            }
            Piece::Present(time) => write!(out, "<the time {time:?}>").unwrap(),
            Piece::Tenant { value, .. } => write!(out, "<of {}>", text(value, plan)).unwrap(),
            Piece::Indexed(inner) => write!(out, "{{ {} }}", text(inner, plan)).unwrap(),
            Piece::Rows {
                row,
                first_literal,
                per_row,
            } => {
                write!(out, "ROWS({first_literal}+{per_row}n){}", text(row, plan)).unwrap();
            }
        }
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What tier 3 reads, and where it goes.
fn reads(s: &Scratch, plan: &Plan, out: &mut String) {
    for read in &s.reads {
        let columns: Vec<String> = read
            .columns
            .iter()
            .map(|c| {
                let name = &read.table.columns[c.index].name;
                format!("{name} {:?}", c.carried)
            })
            .collect();
        let mut read_text = text(&read.text, plan);
        for (n, condition) in read.conditions.iter().enumerate() {
            read_text += if n == 0 { " WHERE (" } else { " AND (" };
            read_text += &text(condition, plan);
            read_text += ")";
        }
        let wait = read
            .seconds
            .as_ref()
            .map(|seconds| format!(" WAIT {seconds}"));
        writeln!(
            out,
            "3: {read_text}{}{}",
            read.lock,
            wait.unwrap_or_default()
        )
        .unwrap();
        writeln!(out, "into {}: {}", read.name, columns.join(", ")).unwrap();
    }
    for r in &s.renamed {
        writeln!(out, "tokens {:?} become {}", r.tokens, r.text).unwrap();
    }
    for v in &s.variables {
        writeln!(out, "reads {}", String::from_utf8_lossy(v)).unwrap();
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each action")]
fn show(sql: &str, settings: &Settings, catalog: &Fixture, policy: &Policy) -> String {
    let mut template = Template::default();
    if let Err(e) = template.read(sql.as_bytes(), settings.lex) {
        return format!("unreadable: {e}\n");
    }
    let request = Request {
        sql: sql.as_bytes(),
        template: &template,
        settings,
        catalog,
        policy,
    };
    let Outcome::Plan(plan) = plan(&request) else {
        return "needs tables\n".into();
    };
    let mut out = String::new();
    let opens = |items: &[onionskin_plan::ResultItem]| -> String {
        items
            .iter()
            .map(|i| {
                let open = i
                    .open
                    .map(|(c, from)| format!("{:?} {}", from, plan.columns[c].column().name));
                match (open, &i.name) {
                    (Some(open), Some(name)) => format!("{open} as {name}"),
                    (Some(open), None) => open,
                    (None, Some(name)) => format!("plain as {name}"),
                    (None, None) => "plain".into(),
                }
            })
            .collect::<Vec<_>>()
            .join(", ")
    };
    match &plan.action {
        Action::Relay => out.push_str("relay\n"),
        Action::ByName(_) => out.push_str("by name\n"),
        Action::Refuse(r) => writeln!(out, "refuse {r}").unwrap(),
        Action::Server { text: t, result } => {
            writeln!(out, "1: {}", text(t, &plan)).unwrap();
            if let Some(items) = result {
                writeln!(out, "opens: {}", opens(items)).unwrap();
            }
        }
        Action::Finish(f) => {
            writeln!(out, "2: {}", text(&f.text, &plan)).unwrap();
            writeln!(out, "opens: {}", opens(&f.fetch)).unwrap();
            let output: Vec<String> = f
                .output
                .iter()
                .map(|o| match o {
                    Output::Cell { fetch } => format!("{fetch}"),
                    Output::Aggregate { call, name } => format!("@{call} as {name}"),
                })
                .collect();
            let sort: Vec<String> = f
                .sort
                .iter()
                .map(|s| {
                    let by = match s.by {
                        SortBy::Cell(at) => format!("{at}"),
                        SortBy::Rank(at) => format!("rank {at}"),
                        SortBy::Aggregate(at) => format!("@{at}"),
                    };
                    format!("{by}{}", if s.descending { " desc" } else { "" })
                })
                .collect();
            if let Some(filter) = &f.filter {
                writeln!(out, "filter: {}", test(filter)).unwrap();
            }
            if let Some(groups) = &f.groups {
                let calls: Vec<String> = groups
                    .calls
                    .iter()
                    .map(|c| {
                        let distinct = if c.distinct { " distinct" } else { "" };
                        format!("{:?}{distinct}({:?})", c.function, c.fetch)
                    })
                    .collect();
                writeln!(
                    out,
                    "groups: by {:?}; compute {}; having {}",
                    groups.keys,
                    calls.join(", "),
                    groups.having.as_ref().map_or("-".into(), test)
                )
                .unwrap();
            }
            writeln!(
                out,
                "finish: output {}; distinct {}; sort [{}]; limit {}",
                output.join(", "),
                f.distinct,
                sort.join(", "),
                f.limit.map_or("none".into(), |l| format!(
                    "{}+{}",
                    l.offset.map_or("0".into(), source),
                    source(l.count)
                ))
            )
            .unwrap();
        }
        Action::Update(u) => {
            writeln!(out, "2: {}", text(&u.select, &plan)).unwrap();
            writeln!(
                out,
                "update {}{}: key {:?}; assign {:?}; plain {}",
                u.target,
                if u.single_row.is_some() {
                    " (one row)"
                } else {
                    ""
                },
                u.key,
                u.assign
                    .iter()
                    .map(|a| (&plan.columns[a.column].column().name, a.value))
                    .collect::<Vec<_>>(),
                text(&u.plain, &plan)
            )
            .unwrap();
            if let Some(filter) = &u.filter {
                writeln!(out, "opens: {}", opens(&filter.fetch)).unwrap();
                writeln!(out, "filter: {}", test(&filter.test)).unwrap();
            }
        }
        Action::Delete(d) => {
            writeln!(out, "2: {}", text(&d.select, &plan)).unwrap();
            writeln!(out, "delete from {}: key {:?}", d.target, d.key).unwrap();
            writeln!(out, "opens: {}", opens(&d.filter.fetch)).unwrap();
            writeln!(out, "filter: {}", test(&d.filter.test)).unwrap();
        }
        Action::Compute { computed } => {
            for c in computed {
                let text = &sql[c.place.0..c.place.1];
                writeln!(out, "3: computes {text} for {}", c.column.path()).unwrap();
            }
        }
        Action::Scratch(s) => reads(s, &plan, &mut out),
        Action::ScratchWrite(write) => {
            reads(&write.scratch, &plan, &mut out);
            if let Effect::Insert(new) = &write.effect
                && let Some(met) = &new.met
            {
                let met_rows = Scratch {
                    reads: vec![met.read.clone()],
                    ..Scratch::default()
                };
                reads(&met_rows, &plan, &mut out);
            }
            let columns = |table: &Table, columns: &[WrittenColumn]| {
                let columns = columns.iter().map(|c| {
                    let sealed = if c.sealed.is_some() { " sealed" } else { "" };
                    format!("{} {:?}{sealed}", table.columns[c.index].name, c.carried)
                });
                columns.collect::<Vec<_>>().join(", ")
            };
            match &write.effect {
                Effect::Insert(new) => {
                    writeln!(
                        out,
                        "3: inserts into {}: {}; tokens {:?} {:?} {:?}",
                        new.table.name,
                        columns(&new.table, &new.columns),
                        new.head,
                        new.query,
                        new.tail
                    )
                    .unwrap();
                    if let Some(met) = &new.met {
                        writeln!(
                            out,
                            "met by {:?}: {}; {} tokens; {:?}",
                            met.read.key,
                            columns(&new.table, &met.columns),
                            met.tail,
                            met.values
                        )
                        .unwrap();
                    }
                }
                Effect::Create(new) => {
                    writeln!(
                        out,
                        "3: creates {}.{}{}{}{}{}{}; list {:?} without {:?}, options {:?}, {}, query {:?}, made from protected columns: {:?}{}, called after constants: {:?}",
                        new.database,
                        new.name,
                        if new.temporary { ", temporary" } else { "" },
                        if new.or_replace { ", replaced" } else { "" },
                        if new.if_absent { ", if absent" } else { "" },
                        if new.ignore { ", IGNORE" } else { "" },
                        if new.replaces { ", REPLACE" } else { "" },
                        new.list,
                        new.cut,
                        new.options,
                        new.collation,
                        new.query,
                        new.handed,
                        if new.positional { "" } else { " of all" },
                        new.called
                    )
                    .unwrap();
                    if !new.encrypted.is_empty() {
                        writeln!(out, "words: {:?}", new.encrypted).unwrap();
                    }
                }
                Effect::Update(targets) | Effect::Delete(targets) => {
                    for target in targets {
                        let read = &write.scratch.reads[target.read];
                        let order = if target.moves { ", in order" } else { "" };
                        writeln!(
                            out,
                            "writes {} by {:?}{order}: {}",
                            read.name,
                            read.key,
                            columns(&read.table, &target.columns)
                        )
                        .unwrap();
                    }
                }
            }
        }
        Action::Define(d) => {
            let pieces: Vec<String> = d
                .pieces
                .iter()
                .map(|p| match p {
                    DdlPiece::Sql(sql) => String::from_utf8_lossy(sql).into_owned(),
                    other => format!("<{other:?}>"),
                })
                .collect();
            let flat = pieces.concat();
            writeln!(
                out,
                "define: {}",
                flat.split_whitespace().collect::<Vec<_>>().join(" ")
            )
            .unwrap();
            for c in &d.new_columns {
                writeln!(
                    out,
                    "column {} {} null {} default {:?}{} {}",
                    c.name,
                    c.sql_type.to_sql(settings.family),
                    c.nullable,
                    c.default,
                    if c.on_update { " on update" } else { "" },
                    shown(&c.capabilities)
                )
                .unwrap();
            }
        }
        Action::Copy(copied) => {
            let head = String::from_utf8_lossy(&copied.head).into_owned();
            writeln!(out, "copy: {head} like {}", copied.source.name).unwrap();
        }
        Action::Refit(refit) => {
            for (index, becomes) in &refit.columns {
                let column = &refit.table.columns[*index].name;
                writeln!(out, "refit {column}: {becomes:?}").unwrap();
            }
            let rest = String::from_utf8_lossy(&refit.specifications).into_owned();
            writeln!(out, "then {rest}").unwrap();
            let locked: Vec<String> = refit.locked.iter().map(ToString::to_string).collect();
            writeln!(out, "locked: {}", locked.join(", ")).unwrap();
        }
        Action::Show { what, text: t, .. } => {
            writeln!(out, "show {what:?}: {}", text(t, &plan)).unwrap();
        }
    }
    let names = |columns: &[usize]| -> Vec<&str> {
        let name = |&c: &usize| plan.columns[c].column().name.as_str();
        columns.iter().map(name).collect()
    };
    if let Some(u) = &plan.upsert {
        let constants: Vec<usize> = u.constants.iter().map(|slot| slot.column).collect();
        let (columns, constants) = (names(&u.columns), names(&constants));
        writeln!(
            out,
            "keeps cells in {}: of rows {columns:?}, of constants {constants:?}",
            u.target
        )
        .unwrap();
    }
    if plan.tells_time {
        out.push_str("asks for the time\n");
    }
    if let Some(t) = &plan.insert_only {
        writeln!(out, "without duplicates: {}", text(t, &plan)).unwrap();
    }
    for g in plan.grouping.iter().flat_map(|g| &g.columns) {
        writeln!(out, "groups: item {} of {}", g.item, g.source).unwrap();
    }
    if !plan.pinned.is_empty() {
        let pinned: Vec<_> = plan.pinned.iter().map(|(i, _)| i).collect();
        writeln!(out, "pinned: {pinned:?}").unwrap();
    }
    out
}

#[test]
fn plans_are_as_written_down() {
    let settings = Settings {
        database: Some("app".into()),
        ..Settings::usual(Family::MariaDb)
    };
    let mut columns = BTreeMap::new();
    columns.insert("secret".to_string(), vec!["eq".to_string()]);
    columns.insert("n".to_string(), vec!["eq".to_string(), "range".to_string()]);
    let policy = Policy::parse(&BTreeMap::from([("app.policy*".to_string(), columns)])).unwrap();
    let catalog = fixture();
    let update = std::env::var_os("ONIONSKIN_UPDATE").is_some();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    let mut failures = Vec::new();
    let mut cases = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let old = std::fs::read_to_string(&path).unwrap();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let settings = Settings {
            scratch: match stem.starts_with("scratch") {
                true => UseScratch::IfNeeded,
                false => UseScratch::Never,
            },
            family: match stem.ends_with("_mysql") {
                true => Family::MySql,
                false => Family::MariaDb,
            },
            high_not: stem.ends_with("_high_not"),
            ..settings.clone()
        };
        let mut new = String::new();
        for block in old.split("\n> ").map(|b| b.strip_prefix("> ").unwrap_or(b)) {
            let sql = block.lines().next().unwrap_or_default();
            if sql.is_empty() {
                continue;
            }
            cases += 1;
            let expected: String = block
                .lines()
                .skip(1)
                .filter(|l| !l.is_empty())
                .map(|l| format!("{l}\n"))
                .collect();
            let got = show(sql, &settings, &catalog, &policy);
            if got != expected {
                failures.push(format!("{sql}\n--- expected\n{expected}--- got\n{got}"));
            }
            write!(new, "> {sql}\n{got}\n").unwrap();
        }
        if update {
            std::fs::write(&path, new).unwrap();
        }
    }
    assert!(cases > 50);
    assert!(update || failures.is_empty(), "{}", failures.join("\n"));
}
