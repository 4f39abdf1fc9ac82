//! The view of an application: its own rows are read, so that the success of each attack is known.

use std::collections::HashSet;

use onionskin_rowstream::client::Family as ServerFamily;
use onionskin_schema::{TableName, folded, identifier, same_name, split_token_name};
use onionskin_value::Family;

use super::{
    advice::{self, Judged, Risk},
    auxiliary::ValuesFile,
    capability::Capability,
    coarse,
    company::{self, Link},
    play::{self, Outcome},
    report::{Attack, ColumnLeak, LeaksReport},
    request::{Auxiliary, Request},
    rows::{ColumnRows, Knowledge, NONE, Split, TableRows},
    selection::Selection,
    source::{self, Described, Load, Shown},
    tally::{Spread, Tally},
};
use crate::{AssessError, reader::Reader, text::shown};

/// Columns of a table that are attacked.
const MOST_COLUMNS: usize = 100;
/// Columns that are kept for foreign keys, of all tables.
const MOST_LINKED: usize = 64;
/// Bytes of values: of a table, and the least and the most of a column.
const TABLE_BYTES: usize = 512 << 20;
const COLUMN_BYTES: (usize, usize) = (8 << 20, 128 << 20);

/// A column with a name that no other table has.
type Place = (String, String);

struct View<'a> {
    request: &'a Request,
    selection: Selection,
    file: Option<ValuesFile>,
    family: Family,
    load: Load,
    report: &'a mut LeaksReport,
}

/// What is kept of a table for its foreign keys.
struct Kept {
    rows: TableRows,
    splits: Vec<Split>,
}

/// Reads and attacks table by table.
pub fn assess(
    reader: &mut Reader,
    request: &Request,
    report: &mut LeaksReport,
) -> Result<(), AssessError> {
    let file = ValuesFile::if_given(&request.auxiliary)?;
    let mut view = View {
        request,
        selection: Selection::read(request.columns.as_deref())?,
        file,
        family: match reader.family() {
            ServerFamily::MariaDb => Family::MariaDb,
            ServerFamily::MySql => Family::MySql,
        },
        load: Load {
            rows: request.rows,
            pace: request.pace,
        },
        report,
    };
    let tables = view.tables(reader)?;
    let selected: Vec<Vec<ColumnRows>> = tables.iter().map(|t| view.selected(t)).collect();
    view.selection.check()?;
    let all: usize = selected.iter().map(Vec::len).sum();
    if view.file.is_some() && all != 1 {
        return Err(AssessError::Request(format!(
            "--aux has the values of one column, and {all} are selected: name it with --columns"
        )));
    }
    let auxiliary = view.auxiliary(reader)?;
    let linked = linked(&tables);
    let mut kept: Vec<Kept> = Vec::new();
    for (table, columns) in tables.iter().zip(selected) {
        if columns.is_empty() {
            continue;
        }
        let Some(mut rows) = view.read(reader, table, columns)? else {
            continue;
        };
        view.learn(reader, auxiliary.as_ref(), &mut rows)?;
        let splits: Vec<Split> = (0..request.seeds)
            .map(|seed| play::split(&rows.columns, seed))
            .collect();
        view.attack(&rows, &splits);
        let name = folded(&rows.name);
        rows.columns
            .retain(|c| linked.contains(&(name.clone(), folded(&c.name))));
        let are_kept: usize = kept.iter().map(|k| k.rows.columns.len()).sum();
        if !rows.columns.is_empty() && are_kept + rows.columns.len() <= MOST_LINKED {
            kept.push(Kept { rows, splits });
        }
    }
    view.links(&tables, &kept);
    Ok(())
}

/// Columns that foreign keys are over.
fn linked(tables: &[Shown]) -> HashSet<Place> {
    let sides = tables.iter().flat_map(|table| {
        table.references.iter().flat_map(|reference| {
            let own = (folded(&table.name.name), folded(&reference.column));
            [
                own,
                (folded(&reference.parent), folded(&reference.parent_column)),
            ]
        })
    });
    sides.collect()
}

impl View<'_> {
    fn leave_out(&mut self, what: &str, why: &str) {
        const MOST: usize = 1_000;
        if self.report.left_out.len() < MOST {
            self.report.left_out.push(format!("{}: {why}", shown(what)));
        }
    }

    fn tables(&mut self, reader: &mut Reader) -> Result<Vec<Shown>, AssessError> {
        let database = &self.request.database;
        let mut names = source::tables(reader, database)?;
        if let Some(wanted) = &self.request.table {
            names.retain(|name| same_name(name, wanted));
            if names.is_empty() {
                return Err(AssessError::Request(format!(
                    "{} has no table {} that this account sees",
                    shown(database),
                    shown(wanted)
                )));
            }
        }
        let mut tables = Vec::new();
        for name in names {
            match source::describe(reader, &TableName::new(database, &name))? {
                Ok(table) => tables.push(table),
                Err(refusal) => self.leave_out(&name, &source::why(&refusal)),
            }
        }
        Ok(tables)
    }

    /// The columns of a table that are attacked.
    fn selected(&mut self, table: &Shown) -> Vec<ColumnRows> {
        let mut columns: Vec<(&Described, Vec<Capability>)> = Vec::new();
        let is_physical = |name: &str| name.ends_with("$enc") || split_token_name(name).is_some();
        if table.columns.iter().any(|c| is_physical(&c.name)) {
            self.leave_out(
                &table.name.name,
                "ciphertext is shown: reach it through a proxy that has the keys, or look --as-server",
            );
        }
        for column in table.columns.iter().filter(|c| !is_physical(&c.name)) {
            let Some(wanted) = self.selection.of(&table.name.name, &column.name) else {
                continue;
            };
            let name = format!("{}.{}", table.name.name, column.name);
            if column.auto_increment && !self.selection.names(&column.name) {
                continue;
            }
            match self.attackable(column, wanted) {
                Ok(capabilities) => columns.push((column, capabilities)),
                Err(why) => self.leave_out(&name, &why),
            }
        }
        if columns.len() > MOST_COLUMNS {
            let more = columns.len() - MOST_COLUMNS;
            self.leave_out(
                &table.name.name,
                &format!("{more} columns behind the first ones"),
            );
            columns.truncate(MOST_COLUMNS);
        }
        let (least, most) = COLUMN_BYTES;
        let bytes = (TABLE_BYTES / columns.len().max(1)).clamp(least, most);
        let of_column = |(column, capabilities): (&Described, Vec<Capability>)| {
            let dictionary = super::dictionary::Dictionary::new(column.ty?, self.family, bytes);
            Some(ColumnRows {
                name: column.name.clone(),
                type_text: column.type_text.clone(),
                capabilities,
                dictionary,
                rows: Vec::new(),
                knowledge: Knowledge::HeldApart(0.0),
                too_long: 0,
                problem: None,
            })
        };
        columns.into_iter().filter_map(of_column).collect()
    }

    /// For what a column is attacked, or why it is not.
    fn attackable(
        &self,
        column: &Described,
        wanted: Vec<Capability>,
    ) -> Result<Vec<Capability>, String> {
        if column.auto_increment || column.is_generated {
            return Err("no protected column is AUTO_INCREMENT or generated".into());
        }
        let ty = column.ty.ok_or("its type is not understood")?;
        let possible = Capability::of_type(&ty);
        if let Some(other) = wanted.iter().find(|w| !w.can_be_had(&ty)) {
            return Err(format!(
                "its type has nothing to attack for {}",
                other.word()
            ));
        }
        match (possible.is_empty(), wanted.is_empty()) {
            (true, _) => Err("its type has nothing to attack".into()),
            (_, true) => Ok(possible),
            (_, false) => {
                let mut wanted = wanted;
                wanted.sort_unstable();
                wanted.dedup();
                Ok(wanted)
            }
        }
    }

    fn auxiliary(&self, reader: &mut Reader) -> Result<Option<Shown>, AssessError> {
        let Auxiliary::Table(name) = &self.request.auxiliary else {
            return Ok(None);
        };
        let (database, table) = name
            .split_once('.')
            .ok_or_else(|| AssessError::Request("--aux-table: write DATABASE.TABLE".into()))?;
        match source::describe(reader, &TableName::new(database, table))? {
            Ok(found) => Ok(Some(found)),
            Err(refusal) => Err(AssessError::Request(format!(
                "--aux-table {}: {}",
                shown(name),
                source::why(&refusal)
            ))),
        }
    }

    /// Reads the rows of a table; `None` if it is left out.
    fn read(
        &mut self,
        reader: &mut Reader,
        table: &Shown,
        mut columns: Vec<ColumnRows>,
    ) -> Result<Option<TableRows>, AssessError> {
        let items: Vec<String> = columns.iter().map(|c| identifier(&c.name)).collect();
        let read = source::read(reader, table, &items, self.load, |cells| {
            for (column, cell) in columns.iter_mut().zip(cells) {
                column.push(*cell);
            }
        })?;
        let name = table.name.name.clone();
        match read {
            Ok(read) => {
                self.report.tables += 1;
                self.report.rows += read;
                Ok(Some(TableRows { name, columns }))
            }
            Err(refusal) => {
                self.leave_out(&name, &source::why(&refusal));
                Ok(None)
            }
        }
    }

    /// Gives the attacker what it knows.
    fn learn(
        &mut self,
        reader: &mut Reader,
        auxiliary: Option<&Shown>,
        rows: &mut TableRows,
    ) -> Result<(), AssessError> {
        let mut missing: Vec<(String, String)> = Vec::new();
        if let Auxiliary::HeldApart(percent) = &self.request.auxiliary {
            for column in &mut rows.columns {
                column.knowledge = Knowledge::HeldApart(f64::from(*percent) / 100.0);
            }
        }
        if let Some(file) = &self.file {
            for column in &mut rows.columns {
                let (values, lost) = file.payloads(&mut column.dictionary);
                column.knowledge = Knowledge::Values(values);
                if lost > 0 {
                    missing.push((
                        column.name.clone(),
                        format!("{lost} lines of --aux do not fit"),
                    ));
                }
            }
        }
        if let Some(auxiliary) = auxiliary {
            let is_there = |column: &ColumnRows| auxiliary.column(&column.name).is_some();
            let gone = rows.columns.iter().filter(|column| !is_there(column));
            missing.extend(gone.map(|c| (c.name.clone(), "--aux-table has no such column".into())));
            rows.columns.retain(is_there);
            let items: Vec<String> = rows.columns.iter().map(|c| identifier(&c.name)).collect();
            let mut known: Vec<Vec<u32>> = vec![Vec::new(); items.len()];
            if !items.is_empty() {
                let columns = &mut rows.columns;
                let read = source::read(reader, auxiliary, &items, self.load, |cells| {
                    for ((column, known), cell) in columns.iter_mut().zip(&mut known).zip(cells) {
                        let number = cell.and_then(|c| column.dictionary.add_sent(c).ok());
                        known.push(number.unwrap_or(NONE));
                    }
                })?;
                read.map_err(|refusal| {
                    AssessError::Request(format!("--aux-table: {}", source::why(&refusal)))
                })?;
            }
            for (column, known) in rows.columns.iter_mut().zip(known) {
                column.knowledge = Knowledge::Rows(known);
            }
        }
        for (column, why) in missing {
            self.leave_out(&format!("{}.{column}", rows.name), &why);
        }
        Ok(())
    }

    fn attack(&mut self, table: &TableRows, splits: &[Split]) {
        for column in &table.columns {
            let name = format!("{}.{}", table.name, column.name);
            if let Some(problem) = &column.problem {
                self.leave_out(&name, problem);
                continue;
            }
            if column.too_long > 0 {
                self.leave_out(&name, &format!("{} long values", column.too_long));
            }
            if column.rows.iter().all(|payload| *payload == NONE) {
                self.leave_out(&name, "it has no values");
                continue;
            }
            self.attack_column(&table.name, column, splits);
        }
        match company::pairs(&table.name, &table.columns, splits) {
            Ok(pairs) => self.report.pairs.extend(pairs.into_iter().map(|mut pair| {
                pair.table = shown(&pair.table);
                pair.columns = pair.columns.map(|name| shown(&name));
                pair
            })),
            Err(error) => self.leave_out(&table.name, &format!("pairs of columns: {error}")),
        }
    }

    fn attack_column(&mut self, table: &str, column: &ColumnRows, splits: &[Split]) {
        let mut leaks: Vec<ColumnLeak> = Vec::new();
        let mut coarser = Vec::new();
        let is_chosen = column.capabilities.iter().any(|c| *c != c.whole());
        for capability in &column.capabilities {
            self.play(table, column, *capability, splits, &mut leaks);
            // where all bits tell something, fewer may tell less
            let tells = leaks.last().is_some_and(|leak| {
                leak.capability == *capability && leak.risk > Some(Risk::Little)
            });
            if tells && !is_chosen {
                coarser.extend(coarse::fewer_bits(*capability, &column.dictionary));
            }
        }
        for capability in coarser {
            self.play(table, column, capability, splits, &mut leaks);
        }
        leaks.sort_by_key(|leak| leak.capability);
        let judged = |leak: &ColumnLeak| {
            Some(Judged {
                capability: leak.capability,
                risk: leak.risk?,
                beside: leak.figures.beside.unwrap_or(0.0),
            })
        };
        let risks: Vec<Judged> = leaks.iter().filter_map(judged).collect();
        for leak in &mut leaks {
            leak.advice = Some(advice::advice(leak.capability, &risks));
        }
        self.report.columns.extend(leaks);
    }

    fn play(
        &mut self,
        table: &str,
        column: &ColumnRows,
        capability: Capability,
        splits: &[Split],
        leaks: &mut Vec<ColumnLeak>,
    ) {
        match play::play(column, capability, splits) {
            Ok(outcome) => leaks.push(leak(table, column, capability, outcome)),
            Err(error) => {
                let name = format!("{table}.{} ({})", column.name, capability.word());
                self.leave_out(&name, &error.to_string());
            }
        }
    }

    fn links(&mut self, tables: &[Shown], kept: &[Kept]) {
        let find = |table: &str, column: &str| {
            let table = kept.iter().find(|k| same_name(&k.rows.name, table))?;
            let mut columns = table.rows.columns.iter();
            let column = columns.find(|c| same_name(&c.name, column) && c.problem.is_none())?;
            let has_tokens = column.capabilities.contains(&Capability::Eq);
            has_tokens.then_some((column, table.splits.as_slice()))
        };
        for table in tables {
            for reference in &table.references {
                let names = [
                    format!("{}.{}", table.name.name, reference.column),
                    format!("{}.{}", reference.parent, reference.parent_column),
                ]
                .map(|name| shown(&name));
                let child = find(&table.name.name, &reference.column);
                let parent = find(&reference.parent, &reference.parent_column);
                let (Some((child, child_splits)), Some((parent, parent_splits))) = (child, parent)
                else {
                    continue;
                };
                if child.dictionary.sql_type().collation != parent.dictionary.sql_type().collation {
                    continue;
                }
                let link = Link {
                    child,
                    child_splits,
                    parent,
                    parent_splits,
                };
                match company::link(&link, names.clone()) {
                    Ok(leak) => self.report.links.push(leak),
                    Err(error) => self.leave_out(&names[0], &error.to_string()),
                }
            }
        }
    }
}

/// What came of a column and a capability, for the report.
fn leak(table: &str, column: &ColumnRows, capability: Capability, outcome: Outcome) -> ColumnLeak {
    let Outcome {
        figures,
        blind,
        attacks,
    } = outcome;
    let rows = |tally: &Tally| Spread::of(&tally.rows).unwrap_or_default();
    let best = attacks
        .iter()
        .map(|(_, tally)| tally)
        .max_by(|a, b| rows(a).mean.total_cmp(&rows(b).mean));
    let gain = best.map_or(0.0, |best| advice::gain(rows(best).mean, rows(&blind).mean));
    ColumnLeak {
        table: shown(table),
        column: shown(&column.name),
        sql_type: shown(&column.type_text),
        capability,
        figures,
        blind: Spread::of(&blind.rows),
        classes: best.map(Tally::classes).unwrap_or_default(),
        attacks: attacks
            .iter()
            .map(|(attack, tally)| Attack {
                attack: (*attack).to_owned(),
                rows: rows(tally),
                values: Spread::of(&tally.values).unwrap_or_default(),
                parts: Spread::of(&tally.parts),
            })
            .collect(),
        risk: Some(Risk::of(gain)),
        advice: None,
    }
}
