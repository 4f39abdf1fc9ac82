//! `onionskin assess queries`: from the statements that an application sends, the smallest policy
//! that keeps all of them running.
//!
//! Nothing here judges a statement. The planner of the proxy does: it is pure, so it can be given
//! the tables as they would be, and asked what it would do.
//!
//! | module | what it is |
//! |---|---|
//! | [`asked`] | statements by their shapes |
//! | [`logs`], `digests` | where they are read from |
//! | [`schema`] | the tables, keys and definitions of the database |
//! | [`columns`] | which columns are protected at all |
//! | [`judge`], `narrowed` | what becomes of a statement under a choice |
//! | [`search`] | the smallest choice |
//! | `roles` | in which roles a column stands |
//! | `advice` | storage, the policy and the commands |
//! | `between` | what becomes of statements between the commands |
//! | `report` | the report |
//!
//! Values of statements are kept while the program runs, because planning may depend on them. No
//! report has one.

mod advice;
pub mod asked;
mod between;
pub mod columns;
mod digests;
pub mod judge;
pub mod logs;
mod narrowed;
pub mod observed;
mod report;
mod request;
mod roles;
pub mod schema;
pub mod search;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;

use onionskin_schema::folded;
use onionskin_value::Family;

use crate::{AssessError, data, reader::Reader, text::shown};
use asked::{Asked, Shape};
use judge::{Judge, Verdict};
use schema::{At, Schema};
use search::{Addition, Part, Search};

pub use report::{Capability, ColumnReport, Counted, FORMAT, QueriesReport, ShapeReport, VERSION};
pub use request::Request;

/// Bytes of a file of statements.
const MAX_FILE: u64 = 1 << 30;
/// Statements that are listed for a capability.
const MAX_LISTED: usize = 20;

/// Reads the statements and the database, and searches.
pub fn assess(request: &Request) -> Result<QueriesReport, AssessError> {
    let mut asked = Asked::default();
    let mut sources = Vec::new();
    if let Some(path) = &request.statements {
        let text = text_of(path)?;
        let source = logs::read(&text, &request.database, &mut asked);
        sources.push(source.title().to_owned());
    }
    let mut reader = Reader::connect(&request.connect)?;
    let mut schema = Schema::read(&mut reader, &request.database)?;
    if request.digests {
        sources.push("digests of the server".to_owned());
        let missing = digests::read(&mut reader, &request.database, &mut asked)?;
        schema.left_out.extend(missing);
    }
    let shapes = asked.shapes();
    if shapes.is_empty() {
        return Err(AssessError::Request(
            "there is no statement to look at: name a file with --statements, or --digests".into(),
        ));
    }
    let wanted = match &request.columns {
        Some(columns) => columns::by_patterns(&schema, columns)?,
        None => proposed(request, &schema)?,
    };
    let grams = request.like_index || schema.family == Family::MySql;
    load_outside(&mut reader, &mut schema, &shapes)?;
    let server = reader.version()?;

    let mut judge = Judge::new(&schema, request.engine, request.small, grams);
    let chosen = columns::choose(&mut judge, &wanted);
    let mut search = Search::run(&judge, &shapes, chosen.choice.clone());
    let needs = search.needs();
    let faster = search.faster();
    let between = between::between(&judge, &search, &shapes);
    let name = |at: At| shown(&schema.path(at));
    let mut left_out = schema.left_out.clone();
    if schema.family == Family::MariaDb && !grams {
        left_out.push(
            "indexes for LIKE: this server keeps them with like_index = true (--like-index)".into(),
        );
    }
    let policy = advice::policy(&schema, search.choice());
    let commands = advice::commands(&schema, search.choice());
    let mut report = QueriesReport {
        format: FORMAT.into(),
        version: VERSION,
        made: chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        onionskin: request.program.clone(),
        server,
        address: request.address.clone(),
        database: shown(&request.database),
        source: sources.join(", "),
        engine: request.engine,
        small: request.small,
        columns: Vec::new(),
        plain: chosen
            .plain
            .iter()
            .map(|(at, why)| (name(*at), shown(why)))
            .collect(),
        added: chosen
            .added
            .iter()
            .map(|(at, why)| (name(*at), shown(why)))
            .collect(),
        shapes: shapes
            .iter()
            .zip(search.verdicts())
            .enumerate()
            .map(|(at, (shape, verdict))| {
                let faster = faster.get(&at);
                let faster = faster.map(|(addition, tier)| (in_words(&schema, *addition), *tier));
                shape_report(shape, verdict, faster, between.found.get(&at))
            })
            .collect(),
        policy,
        commands,
        skipped: asked.skipped().to_vec(),
        left_out,
        asked: search.asked + between.asked,
    };
    report.columns = columns_of(&judge, &search, &shapes, &needs);
    Ok(report)
}

fn text_of(path: &std::path::Path) -> Result<String, AssessError> {
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin()
            .lock()
            .take(MAX_FILE)
            .read_to_end(&mut bytes),
        false => fs::File::open(path).and_then(|file| file.take(MAX_FILE).read_to_end(&mut bytes)),
    };
    let read = read.map_err(AssessError::file(path))?;
    if read as u64 >= MAX_FILE {
        return Err(AssessError::Request(format!(
            "{} is larger than {} MiB: give a part of it",
            path.display(),
            MAX_FILE >> 20
        )));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What `assess data` proposes.
fn proposed(request: &Request, schema: &Schema) -> Result<BTreeMap<At, bool>, AssessError> {
    let found = data::assess(&data::Request {
        connect: request.connect.clone(),
        address: request.address.clone(),
        database: request.database.clone(),
        rows: 100,
        pace: 1_000,
        program: request.program.clone(),
    })?;
    let wanted = found.findings.iter().filter(|f| f.policy.is_some());
    let wanted: BTreeMap<At, bool> = wanted
        .filter_map(|finding| {
            let table = finding
                .table
                .strip_prefix(&format!("{}.", found.database))?;
            Some((schema.find(table, &finding.column)?, true))
        })
        .collect();
    match wanted.is_empty() {
        true => Err(AssessError::Request(
            "no personal data was found: name the columns with --columns".into(),
        )),
        false => Ok(wanted),
    }
}

fn load_outside(
    reader: &mut Reader,
    schema: &mut Schema,
    shapes: &[Shape],
) -> Result<(), AssessError> {
    for _ in 0..3 {
        let judge = Judge::new(schema, false, 0, false);
        let mut missing: Vec<_> = shapes
            .iter()
            .flat_map(|shape| judge.missing(shape))
            .collect();
        missing.sort();
        missing.dedup();
        if missing.is_empty() {
            break;
        }
        schema.read_outside(reader, &missing)?;
    }
    Ok(())
}

fn shape_report(
    shape: &Shape,
    verdict: &Verdict,
    faster: Option<(String, u8)>,
    between: Option<&Verdict>,
) -> ShapeReport {
    let (tier, whole, refused, reason) = match verdict {
        Verdict::Runs { tier, whole } => (Some(*tier), whole.clone(), None, None),
        Verdict::Refused { code, message } => (
            None,
            Vec::new(),
            Some((*code).to_owned()),
            Some(shown(message)),
        ),
        Verdict::Unknown(why) => (None, Vec::new(), None, Some((*why).to_owned())),
    };
    ShapeReport {
        shape: shape.shown.clone(),
        database: shown(&shape.database),
        count: shape.count,
        tier,
        whole: whole.iter().map(|table| shown(table)).collect(),
        refused,
        reason,
        faster,
        between: between.map(|verdict| match verdict {
            Verdict::Runs { whole, .. } => format!("reads {} whole", shown(&whole.join(", "))),
            Verdict::Refused { code, message } => format!("refused: {code} {}", shown(message)),
            Verdict::Unknown(why) => (*why).to_owned(),
        }),
    }
}

/// `customers.name: range`
fn in_words(schema: &Schema, addition: Addition) -> String {
    let one = |at, word: &str| format!("{}: {word}", shown(&schema.path(at)));
    match addition {
        Addition::Equality(at) => one(at, "eq"),
        Addition::Like(at) => one(at, "like"),
        Addition::Range(at) => one(at, "range"),
        Addition::Join(a, b) => format!(
            "{} and {}: join",
            shown(&schema.path(a)),
            shown(&schema.path(b))
        ),
    }
}

fn columns_of(
    judge: &Judge<'_>,
    search: &Search<'_, '_>,
    shapes: &[Shape],
    needs: &BTreeMap<(At, Part), search::Needs>,
) -> Vec<ColumnReport> {
    let schema = judge.schema;
    let protected: Vec<String> = search
        .choice()
        .keys()
        .map(|(t, c)| folded(&schema.tables[*t].table.columns[*c].name))
        .collect();
    let mut reports = Vec::new();
    for (at, capabilities) in search.choice() {
        let described = &schema.tables[at.0];
        let column = &described.table.columns[at.1];
        let mut roles: BTreeMap<&str, u64> = BTreeMap::new();
        let own = folded(&column.name);
        let others = |name: &str| {
            let name = folded(name);
            name != own && protected.contains(&name)
        };
        for (shape, near) in shapes.iter().zip(search.near()) {
            if near.columns.contains(at) {
                for role in roles::roles(&shape.sql, &column.name, &others) {
                    *roles.entry(role).or_default() += shape.count;
                }
            }
        }
        let mut roles: Vec<(String, u64)> = roles
            .into_iter()
            .map(|(role, n)| (role.to_owned(), n))
            .collect();
        roles.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        let parts = [Part::Equality, Part::Join, Part::Like, Part::Range];
        let parts = parts.into_iter().filter(|part| part.is_in(capabilities));
        let capabilities = parts.map(|part| {
            let empty = search::Needs::default();
            let needs = needs.get(&(*at, part)).unwrap_or(&empty);
            let listed = needs.shapes.iter().take(MAX_LISTED);
            Capability {
                word: shown(&advice::word(part, capabilities)),
                shows: advice::shows(part).into(),
                definition: needs.definition,
                shapes: listed
                    .map(|at| Counted {
                        shape: shapes[*at].shown.clone(),
                        count: shapes[*at].count,
                    })
                    .collect(),
                omitted: needs.shapes.len().saturating_sub(MAX_LISTED),
                bytes: advice::bytes(judge, *at, part, capabilities),
            }
        });
        reports.push(ColumnReport {
            table: shown(&described.table.name),
            column: shown(&column.name),
            sql_type: shown(&column.type_text),
            roles,
            capabilities: capabilities.collect(),
            sealed_bytes: onionskin_schema::CELL_OVERHEAD,
            rows: described.rows,
        });
    }
    reports
}
