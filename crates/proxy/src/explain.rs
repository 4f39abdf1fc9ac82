//! `onionskin explain`: what would be done with a statement, and what the server would see.

use std::collections::HashMap;
use std::sync::Arc;

use onionskin_physical::{definition_text, with_ids};
use onionskin_plan::functions::{self, CallError, Piece as FunctionPiece};
use onionskin_plan::{
    Action, COLLATION, Catalog, Ddl, Effect, Known, LexMode, Outcome as PlanOutcome, Piece, Plan,
    Purpose, Refusal, Request, Scratch, Settings, Template, UseScratch, errors, in_other_words,
    tables_named,
};

use onionskin_schema::{
    COMMENT_MARK, NewColumn, PinnedTable, Pins, Policy, Table, TableName, same_name,
};
use onionskin_value::Family;

use crate::config::{Config, FunctionsConfig};
use crate::engine_place::Whereabouts;
use crate::status::shown_by;

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
    /// Why it is refused, if it is: the error's code, and what it is about.
    pub refused: Option<String>,
    /// What may be wrong with it, a line for each: tables that `[protect]` names and that are not
    /// as it says, tables that are not there, a statement that is not understood.
    pub findings: Vec<String>,
}

/// Reads tables by their names.
pub type LoadTables<'l> = dyn FnMut(&[TableName]) -> Vec<Table> + 'l;

/// The statements of a text that semicolons separate; the whole of it where it holds the body of a
/// program.
pub fn statements(text: &str) -> Result<Vec<&str>, String> {
    let cut = onionskin_plan::lex::split(text.as_bytes(), LexMode::default());
    let cut = cut.map_err(|error| error.to_string())?;
    Ok(match cut.compound {
        Some(_) => vec![text.trim()],
        None => cut.parts.into_iter().map(|part| &text[part]).collect(),
    })
}

/// Explains a statement against a schema that `load` reads: it is asked for tables by their names
/// and answers with what [`onionskin_schema::tables_from_rows`] makes of them.
pub fn explain(
    config: &Config,
    sql: &str,
    database: Option<&str>,
    family: Family,
    load: &mut LoadTables<'_>,
) -> Result<Explained, String> {
    let lex = LexMode::default();
    if let Some(functions) = &config.functions
        && let Some(exchanged) = exchanged(functions, sql, lex)
    {
        let (left, calls) = match exchanged {
            Ok(exchanged) => exchanged,
            Err(refused) => return Ok(refused),
        };
        let mut explained = explain_text(config, &left, database, family, load)?;
        explained.what = match calls {
            1 => format!("a function computed by the proxy; then {}", explained.what),
            _ => format!(
                "{calls} functions computed by the proxy; then {}",
                explained.what
            ),
        };
        return Ok(explained);
    }
    explain_text(config, sql, database, family, load)
}

/// Explains a statement without calls that the proxy computes.
fn explain_text(
    config: &Config,
    sql: &str,
    database: Option<&str>,
    family: Family,
    load: &mut LoadTables<'_>,
) -> Result<Explained, String> {
    let lex = LexMode::default();
    let mut template = Template::default();
    template
        .read(sql.as_bytes(), lex)
        .map_err(|e| e.to_string())?;
    if template.multiple && !onionskin_plan::reads_program(sql.as_bytes(), lex) {
        return Err("explain takes one statement".into());
    }
    let settings = Settings {
        database: database.map(str::to_string),
        scratch: match config.scratch {
            Some(_) => UseScratch::IfNeeded,
            None => UseScratch::Never,
        },
        ..Settings::usual(family)
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
            PlanOutcome::Plan(mut plan) => {
                if let Action::Refuse(refusal) = &plan.action
                    && let Some(other) = in_other_words(sql.as_bytes(), refusal, &settings)
                    && let Ok(other) = String::from_utf8(other)
                {
                    return explain_text(config, &other, database, family, load);
                }
                if let Some(why) = no_engine(config, &plan.action) {
                    plan.action = Action::Refuse(Refusal::new(&errors::SCRATCH_GONE, why));
                }
                let mut explained = describe(&plan, sql, &template);
                explained.findings = known.findings(&config.policy, &plan.names);
                match &plan.action {
                    Action::Relay => explained.findings.extend(known.absent(sql, database)?),
                    Action::Define(ddl) => explained.add_definition(ddl, config, family),
                    _ => {}
                }
                return Ok(explained);
            }
            PlanOutcome::Need(names) => {
                let found = load(&names);
                for name in names {
                    let table = found.iter().find(|t| {
                        same_name(&t.database, &name.database) && same_name(&t.name, &name.name)
                    });
                    known.tables.insert(name, table.cloned().map(Arc::new));
                }
            }
        }
    }
    Err("the schema keeps changing".into())
}

/// A statement without the calls that the proxy computes, and how many these are; or why they are
/// refused. `None`: it has none.
fn exchanged(
    functions: &FunctionsConfig,
    sql: &str,
    lex: LexMode,
) -> Option<Result<(String, usize), Explained>> {
    let refused = |what: String, refused: String| Explained {
        tier: 0,
        what: format!("refused: {what}"),
        server_text: String::new(),
        learns: Vec::new(),
        refused: Some(refused),
        findings: Vec::new(),
    };
    let calls = match functions::read(sql.as_bytes(), lex, &functions.secrets) {
        Ok(calls) => calls?,
        Err(CallError::Refused(refusal)) => {
            return Some(Err(refused(refusal.message(), refusal.to_string())));
        }
        Err(CallError::ArgumentCount(name)) => {
            let what = format!("{name} has another number of arguments");
            return Some(Err(refused(what.clone(), what)));
        }
    };
    let mut left = Vec::new();
    let mut count = calls.openings.iter().filter(|o| o.call.is_some()).count();
    for piece in &calls.pieces {
        match piece {
            FunctionPiece::Sql(sql) => left.extend_from_slice(sql),
            FunctionPiece::Parameter(_) => left.push(b'?'),
            FunctionPiece::Computed(call) => {
                count += 1;
                left.extend_from_slice(match call.function.gives_text() {
                    true => b"''",
                    false => b"_binary x''",
                });
            }
        }
    }
    Some(Ok((String::from_utf8_lossy(&left).into_owned(), count)))
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

    /// What a statement may be relayed for beside having no protected table: a table that is not
    /// there, a misspelt word. The error is that the database is not known.
    fn absent(&self, sql: &str, database: Option<&str>) -> Result<Vec<String>, String> {
        let Some(tables) = tables_named(sql) else {
            let word = sql.split(|c: char| !c.is_ascii_alphabetic()).next();
            let word = word.unwrap_or_default().to_ascii_lowercase();
            let is_known = word.is_empty() || FIRST_WORDS.contains(&word.as_str());
            return Ok(match is_known {
                true => Vec::new(),
                false => vec![format!(
                    "no statement begins with {word:?}: the server will refuse it"
                )],
            });
        };
        let mut findings = Vec::new();
        for (its_own, name) in tables {
            let Some(database) = its_own.as_deref().or(database) else {
                return Err(format!(
                    "table {name} stands there without a database: say which with --database"
                ));
            };
            let table = TableName::new(database, &name);
            if self.tables.get(&table).is_some_and(Option::is_none) && !is_servers(database) {
                findings.push(format!(
                    "there is no table {database}.{name}, or the account cannot see it"
                ));
            }
        }
        Ok(findings)
    }
}

/// Whether a database is the server's own.
fn is_servers(database: &str) -> bool {
    let own = ["mysql", "information_schema", "performance_schema", "sys"];
    own.iter().any(|own| database.eq_ignore_ascii_case(own))
}

/// With what statements begin.
const FIRST_WORDS: [&str; 70] = [
    "alter",
    "analyze",
    "backup",
    "begin",
    "binlog",
    "cache",
    "call",
    "change",
    "check",
    "checksum",
    "clone",
    "close",
    "commit",
    "create",
    "deallocate",
    "declare",
    "delete",
    "desc",
    "describe",
    "do",
    "drop",
    "end",
    "execute",
    "explain",
    "fetch",
    "flush",
    "get",
    "grant",
    "handler",
    "help",
    "if",
    "import",
    "insert",
    "install",
    "kill",
    "load",
    "lock",
    "loop",
    "open",
    "optimize",
    "parse_vcol_expr",
    "prepare",
    "purge",
    "release",
    "rename",
    "repair",
    "replace",
    "reset",
    "resignal",
    "restart",
    "return",
    "revoke",
    "rollback",
    "savepoint",
    "select",
    "set",
    "show",
    "shutdown",
    "signal",
    "start",
    "stop",
    "table",
    "truncate",
    "uninstall",
    "unlock",
    "update",
    "use",
    "values",
    "with",
    "xa",
];

impl Explained {
    /// The text of a definition, and what the server learns by it. Ids are made anew each time. The
    /// tags are left out: a definition that has them is authentic, whoever sends it.
    fn add_definition(&mut self, ddl: &Ddl, config: &Config, family: Family) {
        let grams = config.keeps_grams(family);
        let columns = with_ids(ddl, &config.keys, config.suite, grams);
        match definition_text(ddl, &columns, family, config.keys.metadata_key()) {
            Ok(text) => self.server_text = without_tags(&String::from_utf8_lossy(&text)),
            Err(refusal) => {
                self.refused = Some(refusal.to_string());
                self.tier = 0;
                self.what = format!("refused: {}", refusal.message());
                return;
            }
        }
        self.learns = columns.iter().map(learned_of_definition).collect();
    }
}

/// A definition with `<tag>` for each tag of a comment.
fn without_tags(text: &str) -> String {
    let mut parts = text.split(COMMENT_MARK);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (version, rest) = part.split_once('|').unwrap_or((part, ""));
        let rest = rest.split_once('|').map_or("", |(_, rest)| rest);
        out.push_str(&format!("{COMMENT_MARK}{version}|<tag>|{rest}"));
    }
    out
}

/// What a column's definition tells the server.
fn learned_of_definition(column: &NewColumn) -> String {
    let of_values = shown_by(&column.capabilities);
    format!(
        "{}: its name, type and default; of values to come, {of_values}",
        column.name
    )
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
        Action::Refit(refit) => (
            match &refit.otherwise {
                None => "a foreign key over columns that were not made for it: they are made anew if the table is empty".into(),
                Some(otherwise) => format!(
                    "columns are made anew if the table is empty; otherwise {}",
                    otherwise.message()
                ),
            },
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
        refused: match &plan.action {
            Action::Refuse(refusal) => Some(refusal.to_string()),
            _ => None,
        },
        findings: Vec::new(),
    }
}

/// Why what goes to the engine would be refused, where it is known that there is none.
fn no_engine(config: &Config, action: &Action) -> Option<String> {
    match (action, config.scratch.as_ref()?.place.now()) {
        (
            Action::Scratch(_) | Action::ScratchWrite(_) | Action::Compute { .. },
            Whereabouts::Nowhere(why),
        ) => Some(why),
        _ => None,
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
            Piece::Tenant { .. } => {}
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
