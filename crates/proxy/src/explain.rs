//! `onionskin explain`: what would be done with a statement, and what the server would see.

use std::collections::HashMap;
use std::sync::Arc;

use onionskin_plan::{
    Action, COLLATION, Catalog, Effect, Known, LexMode, Outcome as PlanOutcome, Piece, Plan,
    Purpose, Request, Scratch, Settings, Template, UseScratch,
};

use onionskin_schema::{PinnedTable, Pins, Policy, Table, TableName};

use crate::config::Config;

/// What there is to say about a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// 1 (server), 2 (finished by the proxy), 3 (scratch engine); 0 when relayed untouched or
    /// refused.
    pub tier: u8,
    /// One line: what is done.
    pub what: String,
    /// The text that the server gets, with values as `<…>`. Tier 3 has a line for each table that
    /// is read.
    pub server_text: String,
    /// What the server learns, a line for each column.
    pub learns: Vec<String>,
    /// Where `[protect]` and the tables that the statement names do not agree, a line for each.
    pub findings: Vec<String>,
}

/// Reads tables by their names.
pub type LoadTables<'l> = dyn FnMut(&[TableName]) -> Vec<Table> + 'l;

/// Explains a statement against a schema that `load` reads: it is asked for tables by their names
/// and answers with what [`onionskin_schema::tables_from_rows`] makes of them.
pub fn explain(
    config: &Config,
    sql: &str,
    database: Option<&str>,
    family: onionskin_value::Family,
    load: &mut LoadTables<'_>,
) -> Result<Explained, String> {
    let lex = LexMode::default();
    let mut template = Template::default();
    template
        .read(sql.as_bytes(), lex)
        .map_err(|e| e.to_string())?;
    if template.multiple {
        return Err("explain takes one statement".into());
    }
    let settings = Settings {
        family,
        lex,
        database: database.map(str::to_string),
        strict: true,
        high_not: false,
        found_rows: false,
        default_collation: "utf8mb4_general_ci".into(),
        charset_collations: String::new(),
        scratch: match config.scratch {
            Some(_) => UseScratch::IfNeeded,
            None => UseScratch::Never,
        },
    };
    let mut known = Loaded {
        pins: config.pins.as_ref().map(|file| file.pins()),
        ..Loaded::default()
    };
    for _ in 0..8 {
        let request = Request {
            sql: sql.as_bytes(),
            template: &template,
            settings: &settings,
            catalog: &known,
            policy: &config.policy,
        };
        match onionskin_plan::plan(&request) {
            PlanOutcome::Plan(plan) => {
                let mut explained = describe(&plan, sql, &template);
                explained.findings = known.findings(&config.policy, &plan.names);
                return Ok(explained);
            }
            PlanOutcome::Need(names) => {
                let found = load(&names);
                for name in names {
                    let table = found.iter().find(|t| {
                        t.database.eq_ignore_ascii_case(&name.database)
                            && t.name.eq_ignore_ascii_case(&name.name)
                    });
                    known.tables.insert(name, table.cloned().map(Arc::new));
                }
            }
        }
    }
    Err("the schema keeps changing".into())
}

type Found = Option<Arc<Table>>;

#[derive(Default)]
struct Loaded {
    tables: HashMap<TableName, Found>,
    pins: Option<Arc<Pins>>,
}

impl Loaded {
    fn findings(&self, policy: &Policy, names: &[TableName]) -> Vec<String> {
        let mut findings = Vec::new();
        for table in names {
            let TableName { database, name } = table;
            if name.starts_with(COLLATION) || !policy.concerns(database, name) {
                continue;
            }
            let found = self.tables.get(table);
            let table = found.and_then(|found| found.as_deref());
            findings.extend(policy.findings(database, name, table));
        }
        findings
    }
}

impl Catalog for Loaded {
    fn table(&self, database: &str, name: &str) -> Known {
        match self.tables.get(&TableName::new(database, name)) {
            None => Known::Unknown,
            Some(None) => Known::Absent,
            Some(Some(table)) => Known::Table(Arc::clone(table)),
        }
    }

    fn pinned(&self, database: &str, name: &str) -> Option<Arc<PinnedTable>> {
        self.pins.as_ref()?.get(database, name).cloned()
    }
}

fn describe(plan: &Plan, sql: &str, template: &Template) -> Explained {
    let mut learns = Vec::new();
    let (what, server_text) = match &plan.action {
        Action::Relay => (
            "relayed untouched: no protected table is near".into(),
            sql.to_string(),
        ),
        Action::ByName(_) => (
            "kept by the proxy if its text touches something protected, and planned when it is executed".into(),
            String::new(),
        ),
        Action::Refuse(refusal) => (format!("refused: {}", refusal.message()), String::new()),
        Action::Server { text, .. } => (
            match plan.tells_time {
                true => "done by the server, which is asked for the time before".into(),
                false => "done by the server".into(),
            },
            show(text, plan, sql, template, &mut learns),
        ),
        Action::Finish(finish) => (
            "narrowed by the server, finished by the proxy".into(),
            show(&finish.text, plan, sql, template, &mut learns),
        ),
        Action::Compute { .. } => (
            "constants computed by the scratch engine, then done with literals in their place"
                .into(),
            String::new(),
        ),
        Action::Scratch(scratch) => (
            "read from the server, opened, and done by the scratch engine".into(),
            reads(scratch, plan, sql, template, &mut learns),
        ),
        Action::ScratchWrite(write) => {
            let mut scratch = write.scratch.clone();
            if let Effect::Insert(new) = &write.effect {
                scratch
                    .reads
                    .extend(new.met.iter().map(|met| met.read.clone()));
            }
            let what = match &write.effect {
                Effect::Create(_) => {
                    "read from the server, opened, run by the scratch engine; the table that it makes is defined, made physical, and filled"
                }
                _ => {
                    "read from the server under locks, opened, done by the scratch engine, and written where changed"
                }
            };
            (
                what.into(),
                reads(&scratch, plan, sql, template, &mut learns),
            )
        }
        Action::Update(update) => (
            "read under row locks, computed by the proxy, written where changed".into(),
            show(&update.select, plan, sql, template, &mut learns),
        ),
        Action::Delete(delete) => (
            "candidates read under row locks, picked by the proxy, deleted by key".into(),
            show(&delete.select, plan, sql, template, &mut learns),
        ),
        Action::Define(_) => ("a definition, made physical".into(), String::new()),
        Action::Copy(_) => (
            "a definition like the other table's, with keys of its own".into(),
            String::new(),
        ),
        Action::Show { text, .. } => (
            "shown logically".into(),
            show(text, plan, sql, template, &mut learns),
        ),
    };
    learns.sort();
    learns.dedup();
    Explained {
        tier: plan.tier(),
        what,
        server_text,
        learns,
        findings: Vec::new(),
    }
}

/// What tier 3 reads, a line for each table.
fn reads(
    scratch: &Scratch,
    plan: &Plan,
    sql: &str,
    template: &Template,
    learns: &mut Vec<String>,
) -> String {
    let mut reads = String::new();
    for read in &scratch.reads {
        if !reads.is_empty() {
            reads.push('\n');
        }
        reads += &show(&read.text, plan, sql, template, learns);
        for (n, condition) in read.conditions.iter().enumerate() {
            reads += if n == 0 { " WHERE (" } else { " AND (" };
            reads += &show(condition, plan, sql, template, learns);
            reads.push(')');
        }
        reads += read.lock;
    }
    reads
}

fn show(
    text: &[Piece],
    plan: &Plan,
    sql: &str,
    template: &Template,
    learns: &mut Vec<String>,
) -> String {
    let mut out = String::new();
    put(text, plan, sql, template, 0, &mut out, learns);
    out
}

fn put(
    text: &[Piece],
    plan: &Plan,
    sql: &str,
    template: &Template,
    base: usize,
    out: &mut String,
    learns: &mut Vec<String>,
) {
    for piece in text {
        match piece {
            Piece::Sql(sql) => out.push_str(&String::from_utf8_lossy(sql)),
            Piece::Literal(i) => {
                let literal = template.literals.get(i + base);
                let text = literal.map_or(b"".as_slice(), |l| l.text(sql.as_bytes()));
                out.push_str(&String::from_utf8_lossy(text));
            }
            Piece::Slot(slot) => {
                let path = plan
                    .columns
                    .get(slot.column)
                    .map(|c| c.path())
                    .unwrap_or_default();
                let (name, learned) = match slot.purpose {
                    Purpose::Seal => ("sealed", "a sealed value: that it is there, and its length"),
                    Purpose::Kept => ("present cells", "which rows hold the value already"),
                    Purpose::StoreEquality | Purpose::CompareEquality => {
                        ("equality token", "which values are equal")
                    }
                    Purpose::StoreOrder | Purpose::CompareOrder => {
                        ("order key", "which values are equal, and their order")
                    }
                    Purpose::StoreGrams
                    | Purpose::CandidateGrams(_)
                    | Purpose::CandidateGram(..) => (
                        "gram tokens",
                        "which runs of three characters texts share, and how many they have",
                    ),
                    Purpose::CandidateOrder => (
                        "order key of the beginning",
                        "which values begin alike, and the order of their beginnings",
                    ),
                };
                out.push_str(&format!("<{name} of {path}>"));
                learns.push(format!("{path}: {learned}"));
            }
            Piece::Present(_) => out.push_str("<the statement's time>"),
            // what the statement is like outside of a transaction
            Piece::Indexed(inner) => put(inner, plan, sql, template, base, out, learns),
            Piece::Rows {
                row, first_literal, ..
            } => {
                put(row, plan, sql, template, *first_literal, out, learns);
                if template.rows.is_some_and(|r| r.count > 1) {
                    out.push_str(", …");
                }
            }
        }
    }
}
