//! Reads tables, a little of each, at a pace.

use std::{thread, time::Duration};

use onionskin_schema::{
    COLUMNS_QUERY_FIELDS, COMMENT_MARK, ColumnRow, KeyRole, Table, identifier, tables_from_rows,
};

use super::{
    classify::{self, Judged, Tally, TypeClass},
    document::Paths,
    kind::{Confidence, Kind},
    report::{ColumnFinding, DataReport},
    request::Request,
};
use crate::{
    AssessError,
    reader::{MAX_BYTES, MAX_ROWS, Reader, Refusal, Texts},
    text::{shown, sql_string},
};

/// Most characters of a text that are read, and of a document.
const TEXT: usize = 256;
const DOCUMENT: usize = 16_384;
/// Characters of one answer. Each may have four bytes, so that it is half of what the reader takes.
const ANSWER: usize = MAX_BYTES / 8;
/// Characters that there is always room for in a value.
const LEAST: usize = 64;
/// Columns of a table that are sampled; more are judged by name.
const MAX_COLUMNS: usize = 500;
/// Places of a primary key at which rows are read.
const PLACES: u32 = 4;
/// Findings that are kept.
const MAX_FINDINGS: usize = 50_000;

/// Looks at every table of the database.
pub(super) fn assess(request: &Request) -> Result<DataReport, AssessError> {
    let mut reader = Reader::connect(&request.connect)?;
    let mut report = DataReport::new(request, &mut reader)?;
    let sql = format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_TYPE = 'BASE TABLE' \
         ORDER BY TABLE_NAME LIMIT {MAX_ROWS}",
        sql_string(&request.database)
    );
    let names = reader.raw(&sql)?.unwrap_or_default();
    if names.is_empty() {
        return Err(AssessError::Request(format!(
            "{} has no tables that this account sees: GRANT SELECT ON {}.*",
            shown(&request.database),
            identifier(&shown(&request.database))
        )));
    }
    if names.len() >= MAX_ROWS {
        report
            .left_out
            .push(format!("tables behind the first {MAX_ROWS}"));
    }
    let pause = Duration::from_secs(1) / request.pace.max(1);
    for name in names
        .into_iter()
        .filter_map(|row| row.into_iter().next().flatten())
    {
        look(&mut reader, request, &name, &mut report)?;
        report.tables += 1;
        thread::sleep(pause);
    }
    report.findings.sort_by(|a, b| {
        (std::cmp::Reverse(a.confidence), &a.table, a.kind).cmp(&(
            std::cmp::Reverse(b.confidence),
            &b.table,
            b.kind,
        ))
    });
    Ok(report)
}

/// A column to be judged.
struct Candidate<'a> {
    name: &'a str,
    class: TypeClass,
    auto_increment: bool,
    tally: Tally,
    paths: Paths,
    /// Texts that are documents; MariaDB's JSON is text.
    documents: usize,
}

fn look(
    reader: &mut Reader,
    request: &Request,
    name: &str,
    report: &mut DataReport,
) -> Result<(), AssessError> {
    let sql = format!(
        "SELECT {COLUMNS_QUERY_FIELDS} FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
        sql_string(&request.database),
        sql_string(name)
    );
    let rows = match reader.raw(&sql)? {
        Ok(rows) => rows,
        Err(refusal) => {
            report.skip(name, &refusal);
            return Ok(());
        }
    };
    let tables = tables_from_rows(rows.iter().map(|row| ColumnRow::of(row)), |_, _| true);
    let Some(table) = tables.first() else {
        return Ok(());
    };
    report.sealed += table.protected_columns().count();
    if table.damaged.is_some() || rows.iter().any(|r| is_damaged(r, table)) {
        report.left_out.push(format!(
            "{}: its protected columns are not understood",
            shown(name)
        ));
    }
    let mut candidates: Vec<Candidate<'_>> = table
        .columns
        .iter()
        .filter(|column| column.protection.is_none())
        .map(|column| {
            let data_type = column
                .type_text
                .split(['(', ' '])
                .next()
                .unwrap_or_default();
            Candidate {
                name: &column.name,
                class: TypeClass::of(data_type),
                auto_increment: column.auto_increment,
                tally: Tally::default(),
                paths: Paths::default(),
                documents: 0,
            }
        })
        .collect();
    report.columns += candidates.len();
    sample(reader, request, table, &mut candidates, report)?;
    for candidate in &candidates {
        judge(candidate, request, name, report);
    }
    Ok(())
}

fn is_damaged(row: &Texts, table: &Table) -> bool {
    let comment = row.get(12).and_then(Option::as_deref).unwrap_or_default();
    comment.starts_with(COMMENT_MARK) && !table.is_protected()
}

/// Counts the values of a few rows.
fn sample(
    reader: &mut Reader,
    request: &Request,
    table: &Table,
    candidates: &mut [Candidate<'_>],
    report: &mut DataReport,
) -> Result<(), AssessError> {
    let mut asked: Vec<&mut Candidate<'_>> = candidates
        .iter_mut()
        .filter(|c| !matches!(c.class, TypeClass::Fraction | TypeClass::Other))
        .filter(|c| !c.auto_increment)
        .collect();
    if asked.len() > MAX_COLUMNS {
        report.left_out.push(format!(
            "{}: {} columns were judged by their names alone",
            shown(&table.name),
            asked.len() - MAX_COLUMNS
        ));
        asked.truncate(MAX_COLUMNS);
    }
    if asked.is_empty() {
        return Ok(());
    }
    let rows = (request.rows as usize)
        .min(ANSWER / (LEAST * asked.len()))
        .max(1);
    let room = ANSWER / (rows * asked.len());
    let (of_text, of_document) = (room.min(TEXT), room.min(DOCUMENT));
    let items: Vec<String> = asked
        .iter()
        .map(|candidate| {
            let column = identifier(candidate.name);
            match candidate.class {
                TypeClass::Json => format!("IF(CHAR_LENGTH({column}) <= {of_document}, {column}, NULL)"),
                // A text may be a document, which is of no use in part.
                TypeClass::Text => format!(
                    "IF(LEFT({column}, 1) IN ('{{', '[') AND CHAR_LENGTH({column}) <= {of_document}, {column}, LEFT({column}, {of_text}))"
                ),
                _ => column,
            }
        })
        .collect();
    let from = format!(
        "SELECT {} FROM {}.{}",
        items.join(", "),
        identifier(&table.database),
        identifier(&table.name)
    );
    for sql in statements(reader, rows, table, &from)? {
        match reader.raw(&sql)? {
            Ok(rows) => {
                report.rows += rows.len();
                for row in rows {
                    for (candidate, cell) in asked.iter_mut().zip(row) {
                        count(candidate, cell.as_deref().unwrap_or_default());
                    }
                }
            }
            Err(refusal) => {
                report.skip(&table.name, &refusal);
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Rows at a few places of a whole-numbered primary key, or the first ones.
fn statements(
    reader: &mut Reader,
    rows: usize,
    table: &Table,
    from: &str,
) -> Result<Vec<String>, AssessError> {
    let first = vec![format!("{from} LIMIT {rows}")];
    let mut keys = table.columns.iter().filter(|c| c.key == KeyRole::Primary);
    let (Some(key), None) = (keys.next(), keys.next()) else {
        return Ok(first);
    };
    let data_type = key.type_text.split(['(', ' ']).next().unwrap_or_default();
    if TypeClass::of(data_type) != TypeClass::Whole || key.protection.is_some() {
        return Ok(first);
    }
    let column = identifier(&key.name);
    let bounds = format!(
        "SELECT MIN({column}), MAX({column}) FROM {}.{}",
        identifier(&table.database),
        identifier(&table.name)
    );
    let bounds = reader.raw(&bounds)?.unwrap_or_default();
    let number = |at: usize| -> Option<i128> { bounds.first()?.get(at)?.as_deref()?.parse().ok() };
    let (Some(low), Some(high)) = (number(0), number(1)) else {
        return Ok(first);
    };
    if high - low <= rows as i128 {
        return Ok(first);
    }
    let each = rows.div_ceil(PLACES as usize);
    let at = |place: u32| {
        let start = low + (high - low) * i128::from(place) / i128::from(PLACES);
        format!("{from} WHERE {column} >= {start} ORDER BY {column} LIMIT {each}")
    };
    Ok((0..PLACES).map(at).collect())
}

fn count(candidate: &mut Candidate<'_>, value: &str) {
    let may_be_document = candidate.class == TypeClass::Json || value.starts_with(['{', '[']);
    if may_be_document && candidate.paths.add(value) {
        candidate.documents += 1;
        return;
    }
    candidate.tally.add(value);
}

fn judge(candidate: &Candidate<'_>, request: &Request, table: &str, report: &mut DataReport) {
    let mut note = |path: Option<&str>, judged: Judged| {
        if report.findings.len() >= MAX_FINDINGS {
            report.omitted += 1;
            return;
        }
        report.findings.push(ColumnFinding {
            table: shown(&format!("{}.{table}", request.database)),
            column: shown(candidate.name),
            path: path.map(shown),
            kind: judged.kind,
            confidence: judged.confidence,
            evidence: judged.evidence,
            policy: policy(request, table, candidate, judged.confidence),
        });
    };
    let mut found: Vec<(Option<&str>, Judged)> = Vec::new();
    if candidate.documents > 0 {
        for (path, last, tally) in candidate.paths.each() {
            let judged = classify::judge(last, TypeClass::Text, tally);
            found.extend(judged.map(|judged| (Some(path), judged)));
        }
    }
    let is_document = candidate.documents > candidate.tally.values();
    if !is_document {
        let judged = classify::judge(candidate.name, candidate.class, &candidate.tally);
        found.extend(judged.map(|judged| (None, judged)));
    }
    // A number that the server counts is nobody's.
    found.retain(|(_, judged)| !(candidate.auto_increment && judged.kind != Kind::National));
    for (path, judged) in found {
        note(path, judged);
    }
}

/// A line for `[protect]`, if it is worth one. A `*` would stand for other columns, too.
fn policy(
    request: &Request,
    table: &str,
    candidate: &Candidate<'_>,
    confidence: Confidence,
) -> Option<String> {
    let is_worth = confidence >= Confidence::Likely && !candidate.auto_increment;
    let names = [request.database.as_str(), table, candidate.name];
    let is_plain = names
        .iter()
        .all(|name| !name.contains('*') && shown(name) == *name);
    (is_worth && is_plain).then(|| format!("{} = []", super::report::toml_key(candidate.name)))
}

impl DataReport {
    fn skip(&mut self, table: &str, refusal: &Refusal) {
        const MAX_LEFT_OUT: usize = 1_000;
        let why = match refusal {
            Refusal::Denied(_) => "not visible: needs GRANT SELECT".to_owned(),
            Refusal::Unknown => "it is not there any more".to_owned(),
            Refusal::Other(said) => said.clone(),
        };
        if self.left_out.len() < MAX_LEFT_OUT {
            self.left_out.push(format!("{}: {why}", shown(table)));
        }
    }
}
