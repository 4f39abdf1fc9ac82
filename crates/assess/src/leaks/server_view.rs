//! The view of the server: physical columns alone. No key is there, and no truth.

use onionskin_rowstream::client::Family as ServerFamily;
use onionskin_schema::{
    COLUMNS_QUERY_FIELDS, ColumnRow, Protection, Table, TableName, identifier, same_name,
    tables_from_rows,
};
use onionskin_value::Family;

use super::{
    auxiliary::ValuesFile,
    capability::Capability,
    company::LinkLeak,
    dictionary::Dictionary,
    figures::{Figures, apart},
    guessing,
    known::Known,
    report::{ColumnLeak, LeaksReport},
    request::{Auxiliary, Request},
    scheme::put_length,
    seen::{Counting, Seen},
    selection::Selection,
    source::{self, Load},
};
use crate::{
    AssessError,
    reader::Reader,
    text::{shown, sql_string},
};

/// Bytes of stand-ins that are counted of a table, and kept of all for their join groups.
const TABLE_BYTES: usize = 512 << 20;
const KEPT_BYTES: usize = 512 << 20;
/// Bytes of values that are known of a column.
const KNOWN_BYTES: usize = 128 << 20;

/// A physical column, and what it stands for.
struct Physical<'a> {
    column: &'a str,
    type_text: &'a str,
    protection: &'a Protection,
    capability: Capability,
    /// Its name on the server.
    name: &'a str,
}

/// Tokens of a column that other columns share.
struct Kept {
    group: String,
    name: String,
    seen: Seen,
}

/// Reads what the server has, table by table.
pub fn assess(
    reader: &mut Reader,
    request: &Request,
    report: &mut LeaksReport,
) -> Result<(), AssessError> {
    let file = ValuesFile::if_given(&request.auxiliary)?;
    let selection = Selection::read(request.columns.as_deref())?;
    let family = match reader.family() {
        ServerFamily::MariaDb => Family::MariaDb,
        ServerFamily::MySql => Family::MySql,
    };
    let mut kept: Vec<Kept> = Vec::new();
    let mut columns_with_file = 0;
    for name in source::tables(reader, &request.database)? {
        if request
            .table
            .as_ref()
            .is_some_and(|wanted| !same_name(wanted, &name))
        {
            continue;
        }
        let Some(table) = protected(reader, &request.database, &name)? else {
            continue;
        };
        if let Some(damaged) = &table.damaged {
            report
                .left_out
                .push(format!("{}: {}", shown(&name), shown(damaged)));
            continue;
        }
        let physical = physical(&table, &selection);
        let Some(seen) = read(reader, request, &table, &physical, report)? else {
            continue;
        };
        let mut last = "";
        for (column, seen) in physical.iter().zip(seen) {
            columns_with_file += usize::from(last != column.column);
            last = column.column;
            let known = known(reader, request, file.as_ref(), column, family)?;
            report
                .columns
                .push(leak(&name, column, &seen, known.as_ref()));
            let group = column.protection.capabilities.join.clone();
            let bytes: usize = kept.iter().map(|k| k.seen.tokens.len() * 64).sum();
            if let (Some(group), Capability::Eq, true) =
                (group, column.capability, bytes < KEPT_BYTES)
            {
                kept.push(Kept {
                    group,
                    name: shown(&format!("{name}.{}", column.column)),
                    seen,
                });
            }
        }
    }
    selection.check()?;
    if file.is_some() && columns_with_file != 1 {
        return Err(AssessError::Request(format!(
            "--aux has the values of one column, and {columns_with_file} are selected: name it with --columns"
        )));
    }
    if report.columns.is_empty() && report.left_out.is_empty() {
        return Err(AssessError::Request(format!(
            "{} has no protected columns that show anything but NULL",
            shown(&request.database)
        )));
    }
    report.links = links(&kept);
    Ok(())
}

/// The table, if it has protected columns. Nothing is verified: that takes a key.
fn protected(
    reader: &mut Reader,
    database: &str,
    name: &str,
) -> Result<Option<Table>, AssessError> {
    let sql = format!(
        "SELECT {COLUMNS_QUERY_FIELDS} FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} \
         ORDER BY ORDINAL_POSITION",
        sql_string(database),
        sql_string(name)
    );
    let rows = reader.raw(&sql)?.unwrap_or_default();
    let tables = tables_from_rows(rows.iter().map(|row| ColumnRow::of(row)), |_, _| true);
    Ok(tables.into_iter().find(Table::is_protected))
}

/// The stand-ins of a table.
fn physical<'a>(table: &'a Table, selection: &Selection) -> Vec<Physical<'a>> {
    let mut found = Vec::new();
    for (column, protection) in table.protected_columns() {
        let Some(wanted) = selection.of(&table.name, &column.name) else {
            continue;
        };
        let names = &protection.names;
        let is_variable = protection.sql_type.payload_fixed().is_none();
        let stand_ins = [
            (
                Capability::Sealed,
                is_variable.then_some(names.enc.as_str()),
            ),
            (Capability::Eq, names.eq.as_deref()),
            (Capability::Like, names.gram.as_deref()),
            (Capability::Range, names.ord.as_deref()),
        ];
        for (capability, name) in stand_ins {
            let capability = capability.of_bits(protection.capabilities.bits);
            let is_wanted = wanted.iter().any(|w| w.whole() == capability.whole());
            if let Some(name) = name.filter(|_| wanted.is_empty() || is_wanted) {
                found.push(Physical {
                    column: &column.name,
                    type_text: &column.type_text,
                    protection,
                    capability,
                    name,
                });
            }
        }
    }
    found
}

/// Counts the stand-ins of a table; `None` if it is left out.
fn read(
    reader: &mut Reader,
    request: &Request,
    table: &Table,
    physical: &[Physical<'_>],
    report: &mut LeaksReport,
) -> Result<Option<Vec<Seen>>, AssessError> {
    let name = TableName::new(&table.database, &table.name);
    let described = match source::describe(reader, &name)? {
        Ok(described) => described,
        Err(refusal) => {
            let why = source::why(&refusal);
            report
                .left_out
                .push(format!("{}: {why}", shown(&table.name)));
            return Ok(None);
        }
    };
    if physical.is_empty() {
        return Ok(None);
    }
    let overhead = onionskin_schema::CELL_OVERHEAD;
    let items: Vec<String> = physical
        .iter()
        .flat_map(|p| {
            let length = format!("LENGTH({})", identifier(&p.protection.names.enc));
            let stand_in = match p.capability {
                Capability::Sealed => length.clone(),
                _ => identifier(p.name),
            };
            [format!("{length} - {overhead}"), stand_in]
        })
        .collect();
    let load = Load {
        rows: request.rows,
        pace: request.pace,
    };
    let mut counting: Vec<Counting> = physical.iter().map(|_| Counting::default()).collect();
    let mut is_full = false;
    let read = source::read(reader, &described, &items, load, |cells| {
        is_full |= counting.iter().map(Counting::bytes).sum::<usize>() > TABLE_BYTES;
        if is_full {
            return;
        }
        for ((column, counting), cells) in physical.iter().zip(&mut counting).zip(cells.chunks(2)) {
            if let [Some(length), Some(stand_in)] = cells {
                let is_fixed = column.protection.sql_type.payload_fixed().is_some();
                let length = str::from_utf8(length).ok().and_then(|l| l.parse().ok());
                let length = length.filter(|_| !is_fixed).unwrap_or(0);
                let mut bytes = stored(column.capability, stand_in);
                put_length(column.capability, length, &mut bytes);
                counting.add(&bytes, length, 1);
            }
        }
    })?;
    match read {
        Ok(rows) => {
            report.tables += 1;
            report.rows += rows;
        }
        Err(refusal) => {
            let why = source::why(&refusal);
            report
                .left_out
                .push(format!("{}: {why}", shown(&table.name)));
            return Ok(None);
        }
    }
    if is_full {
        report.left_out.push(format!(
            "{}: rows behind the first ones, whose stand-ins take too much memory: fewer --rows",
            shown(&table.name)
        ));
    }
    Ok(Some(counting.into_iter().map(Counting::finish).collect()))
}

/// Sets of grams are words here, however the server keeps them.
fn stored(capability: Capability, cell: &[u8]) -> Vec<u8> {
    match capability {
        Capability::Like => cell
            .iter()
            .copied()
            .filter(|b| !matches!(b, b'[' | b']' | b','))
            .collect(),
        _ => cell.to_vec(),
    }
}

/// What is known of a column; values of another table, or of a file.
fn known(
    reader: &mut Reader,
    request: &Request,
    file: Option<&ValuesFile>,
    column: &Physical<'_>,
    family: Family,
) -> Result<Option<(Dictionary, Known)>, AssessError> {
    let mut dictionary = Dictionary::new(column.protection.sql_type, family, KNOWN_BYTES);
    if let Some(file) = file {
        let (values, _) = file.payloads(&mut dictionary);
        let known = Known::of(&dictionary, values.into_iter());
        return Ok(Some((dictionary, known)));
    }
    let Auxiliary::Table(name) = &request.auxiliary else {
        return Ok(None);
    };
    let (database, table) = name
        .split_once('.')
        .ok_or_else(|| AssessError::Request("--aux-table: write DATABASE.TABLE".into()))?;
    let Ok(described) = source::describe(reader, &TableName::new(database, table))? else {
        return Err(AssessError::Request(format!(
            "--aux-table: there is no {}",
            shown(name)
        )));
    };
    if described.column(column.column).is_none() {
        return Ok(None);
    }
    let load = Load {
        rows: request.rows,
        pace: request.pace,
    };
    let items = [identifier(column.column)];
    let mut values = Vec::new();
    let read = source::read(reader, &described, &items, load, |cells| {
        let value = cells.first().copied().flatten();
        values.extend(value.and_then(|cell| dictionary.add_sent(cell).ok()));
    })?;
    if read.is_err() {
        return Ok(None);
    }
    let known = Known::of(
        &dictionary,
        values.into_iter().map(|payload| (payload, 1.0)),
    );
    Ok(Some((dictionary, known)))
}

fn leak(
    table: &str,
    column: &Physical<'_>,
    seen: &Seen,
    known: Option<&(Dictionary, Known)>,
) -> ColumnLeak {
    let mut figures = Figures::of(column.capability, seen);
    if let Some((dictionary, known)) = known.filter(|_| column.capability != Capability::Sealed) {
        figures.apart = Some(apart(&seen.counts(), &known.counts()));
        let guesses = guessing::guesses(column.capability, dictionary, seen, known);
        figures.agree = guesses.ok().and_then(|g| guessing::agreement(seen, &g));
    }
    ColumnLeak {
        table: shown(table),
        column: shown(column.column),
        sql_type: shown(column.type_text),
        capability: column.capability,
        figures,
        blind: None,
        attacks: Vec::new(),
        classes: Vec::new(),
        risk: None,
        advice: None,
    }
}

/// Columns of one group, two by two.
fn links(kept: &[Kept]) -> Vec<LinkLeak> {
    let mut found = Vec::new();
    for (at, one) in kept.iter().enumerate() {
        for (other_at, other) in kept.iter().enumerate() {
            if at == other_at || one.group != other.group {
                continue;
            }
            found.push(link(one, other));
        }
    }
    found
}

/// How the rows of `parent` are told apart by how often the child has their tokens.
fn link(parent: &Kept, child: &Kept) -> LinkLeak {
    let rows_of = |bytes: &[u8]| {
        let place = child
            .seen
            .tokens
            .binary_search_by(|t| t.bytes.as_slice().cmp(bytes));
        place.map_or(0, |place| child.seen.tokens[place].rows)
    };
    let mut how_many = std::collections::HashMap::<u64, u64>::new();
    for token in &parent.seen.tokens {
        *how_many.entry(rows_of(&token.bytes)).or_default() += token.rows;
    }
    let (mut linked, mut alone) = (0, 0);
    for token in &parent.seen.tokens {
        let rows = rows_of(&token.bytes);
        linked += if rows > 0 { token.rows } else { 0 };
        alone += if rows > 0 && how_many[&rows] == 1 {
            token.rows
        } else {
            0
        };
    }
    let share = |rows: u64| rows as f64 / (parent.seen.rows() as f64).max(1.0);
    LinkLeak {
        child: child.name.clone(),
        parent: parent.name.clone(),
        linked: share(linked),
        alone: share(alone),
        by_itself: None,
        by_link: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(name: &str, tokens: &[(u8, u64)]) -> Kept {
        let mut counting = Counting::default();
        for (token, rows) in tokens {
            counting.add(&[*token], 0, *rows);
        }
        Kept {
            group: "g".into(),
            name: name.into(),
            seen: counting.finish(),
        }
    }

    #[test]
    fn rows_are_known_by_how_many_refer_to_them() {
        let parent = kept("users.email", &[(1, 1), (2, 1), (3, 1), (4, 1)]);
        let child = kept("orders.email", &[(1, 7), (2, 3), (3, 3)]);
        let leak = link(&parent, &child);
        assert_eq!((leak.linked, leak.alone), (0.75, 0.25));
        assert_eq!(links(&[parent, child]).len(), 2);
    }

    #[test]
    fn sets_of_grams_have_one_form() {
        assert_eq!(stored(Capability::Like, b"[12, 345]"), b"12 345");
        assert_eq!(stored(Capability::Eq, b"[1,"), b"[1,");
    }
}
