//! The rows of a small table, when a protected column gets another definition.
//!
//! `MODIFY s VARCHAR(80)` needs other cells in each row, which the server cannot make. While the
//! table is locked, the proxy opens the cells, makes of their values what ALTER TABLE would make
//! of them, and seals those. They go into new columns that nobody sees, and one ALTER TABLE puts
//! these into the place of the old ones: before it the table is as it was, after it as asked for.
//! No value comes to the server in plaintext.
//!
//! A row is found by its old cell. Cells are never the same, except for those of one UPDATE with a
//! constant, and such rows hold the same value. So no key is needed.
//!
//! Everything here costs the time in which nobody else reads the table. So a larger one is left to
//! `onionskin migrate`.

use std::fmt::Write as _;

use onionskin_crypt::{CellFormat, ColumnCipher, ColumnId};
use onionskin_physical::Retyping;
use onionskin_plan::{Refit, Refitted, errors};
use onionskin_schema::{
    Column, Filling, HELPER_COMMENT, HELPER_PREFIX, NewColumn, Table, identifier, is_granted,
    same_name,
};
use onionskin_value::Family;

use crate::catalog::literal;
use crate::error::{Failure, Outcome};
use crate::filled::{path, sealed_expressions};
use crate::hex::put_hex;
use crate::refit::refused as otherwise;
use crate::session::Session;

/// How many rows are sealed anew while all others wait.
const MAX_ROWS: u64 = 20_000;
/// How many bytes their cells may have.
const MAX_BYTES: u64 = 32 << 20;
/// How many rows one statement is about: the server looks through half of them for each row.
const BATCH_ROWS: usize = 200;
/// How long the text of such a statement may become before it is sent.
const BATCH_BYTES: usize = 256 << 10;

/// A change whose rows are carried over.
pub(crate) struct Refill<'a> {
    refit: &'a Refit,
    /// The columns that hold new cells until the change.
    helpers: Vec<String>,
    /// How long a statement may be: the server ends a session that sends a longer one.
    packet: usize,
}

/// A cell before, and what the new physical columns get for it.
type Resealed = (Vec<u8>, Vec<(String, String)>);

impl Session {
    /// Whether the rows can be carried over at once, as far as the table tells. `physical` is its
    /// text. The reason if not.
    pub(crate) fn refill<'a>(
        &mut self,
        refit: &'a Refit,
        physical: &str,
    ) -> Outcome<Result<Refill<'a>, &'static str>> {
        let is_defined =
            |(_, becomes): &(usize, Refitted)| matches!(becomes, Refitted::Redefined(_));
        if !refit.columns.iter().all(is_defined) {
            return Ok(Err("the table has rows"));
        }
        if physical.contains("SYSTEM VERSIONING") {
            return Ok(Err(
                "the rows of other times would stay under the old definition",
            ));
        }
        let table = &refit.table;
        let columns = refit
            .columns
            .iter()
            .map(|(index, _)| &table.columns[*index]);
        let lengths: Vec<String> = columns
            .filter_map(|column| Some(identifier(column.enc_name()?)))
            .map(|name| format!("COALESCE(SUM(LENGTH({name})), 0)"))
            .collect();
        let question = format!(
            "SELECT COUNT(*), {} FROM {}",
            lengths.join(" + "),
            path(table)
        );
        let found = self.server.rows(question.as_bytes())?;
        let size = |n: usize| number(found.first()?.get(n)?.as_deref()?);
        match (size(0), size(1)) {
            (Some(rows), Some(bytes)) if rows <= MAX_ROWS && bytes <= MAX_BYTES => {}
            _ => return Ok(Err("the table has many rows")),
        }
        // an UPDATE without a key is refused under the one
        let asked = self
            .server
            .rows(b"SELECT @@sql_safe_updates, @@max_allowed_packet")?;
        let setting = asked.first().map(Vec::as_slice).unwrap_or_default();
        let packet = setting.get(1).and_then(|cell| number(cell.as_deref()?));
        let packet = packet.and_then(|packet| usize::try_from(packet).ok());
        let is_free = setting.first().and_then(Option::as_deref) == Some(b"0");
        let Some(packet) = packet.filter(|_| is_free) else {
            return Ok(Err("sql_safe_updates"));
        };
        if self.may_have_triggers(table)? {
            return Ok(Err(
                "a trigger would run for each row, or this account cannot see any",
            ));
        }
        Ok(Ok(Refill {
            refit,
            helpers: Vec::new(),
            packet,
        }))
    }

    fn may_have_triggers(&mut self, table: &Table) -> Outcome<bool> {
        let grants = self.server.rows(b"SHOW GRANTS")?;
        let texts = grants.into_iter().flatten().flatten();
        let texts: Vec<String> = texts
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .collect();
        if !is_granted(&texts, "TRIGGER", &table.database, &table.name) {
            return Ok(true);
        }
        let question = format!(
            "SELECT 1 FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = {} AND EVENT_OBJECT_TABLE = {} LIMIT 1",
            literal(&table.database),
            literal(&table.name)
        );
        Ok(!self.server.rows(question.as_bytes())?.is_empty())
    }

    /// Puts the new cells of all rows into columns of their own, and says so in the definitions of
    /// the new columns.
    pub(crate) fn carry_rows(
        &mut self,
        refill: &mut Refill<'_>,
        columns: &mut [NewColumn],
    ) -> Outcome<()> {
        let refit = refill.refit;
        let table = &refit.table;
        let updated = self.columns_with_on_update(table)?;
        for (index, _) in &refit.columns {
            let old = &table.columns[*index];
            let mut new = columns.iter_mut();
            let Some(new) = new.find(|new| same_name(&new.name, &old.name)) else {
                // one that the server numbers by itself from now on
                return Err(otherwise(refit, "it is not protected afterwards"));
            };
            let cells = self.resealed(refit, old, new)?;
            let (names, before) = (new.names(), refill.helpers.len());
            let mut adds = Vec::new();
            for name in names.all() {
                let helper = format!("{HELPER_PREFIX}{}", refill.helpers.len());
                let ty = match (names.gram.as_deref() == Some(name), self.state.family) {
                    (false, _) => "LONGBLOB",
                    (true, Family::MySql) => "JSON",
                    (true, Family::MariaDb) => "LONGTEXT CHARACTER SET ascii COLLATE ascii_bin",
                };
                adds.push(format!(
                    "ADD COLUMN {helper} {ty} NULL INVISIBLE COMMENT '{HELPER_COMMENT}'"
                ));
                new.filling
                    .push((name.to_owned(), Filling::Column(helper.clone())));
                refill.helpers.push(helper);
            }
            let alter = format!("ALTER TABLE {} {}", path(table), adds.join(", "));
            self.server.run(alter.as_bytes())?;
            let enc = identifier(old.enc_name().unwrap_or_default());
            let helpers = &refill.helpers[before..];
            self.fill(refill, &enc, helpers, &updated, &cells)?;
            let missed = format!(
                "SELECT 1 FROM {} WHERE ({enc} IS NULL) <> ({} IS NULL) LIMIT 1",
                path(table),
                helpers[0]
            );
            if !self.server.rows(missed.as_bytes())?.is_empty() {
                return Err(otherwise(refit, "a row was missed"));
            }
        }
        Ok(())
    }

    /// Opens each cell of a column, and seals what the new definition makes of its value.
    fn resealed(&mut self, refit: &Refit, old: &Column, new: &NewColumn) -> Outcome<Vec<Resealed>> {
        let (table, family) = (&refit.table, self.state.family);
        let enc = identifier(old.enc_name().unwrap_or_default());
        let select = format!("SELECT DISTINCT {enc} FROM {}", path(table));
        let found = self.server.rows(select.as_bytes())?;
        let from = self.cipher_before(table, old)?;
        let to = self.cipher_of_new(new)?;
        let retyping = match old.sql_type {
            Some(ty) if ty == new.sql_type => None,
            // widths of numbers and names of collations are no part of a value
            Some(ty) => match Retyping::new(ty, new.sql_type, family) {
                Some(retyping) => Some(retyping),
                None => return Err(otherwise(refit, "how its values change is not certain")),
            },
            None => return Err(otherwise(refit, "its type is not known")),
        };
        let (mut cells, mut opened, mut payload) = (Vec::new(), Vec::new(), Vec::new());
        for row in found {
            let Some(cell) = row.into_iter().next().flatten() else {
                match new.nullable {
                    true => continue,
                    false => return Err(otherwise(refit, "a row holds NULL")),
                }
            };
            opened.clear();
            from.open(&cell, &mut opened)
                .map_err(|_| otherwise(refit, "a cell cannot be opened here"))?;
            payload.clear();
            match &retyping {
                None => payload.extend_from_slice(&opened),
                Some(retyping) => retyping
                    .convert(&opened, &old.name, &mut payload)
                    .map_err(|why| Failure::refused(&errors::ALTERATION, why))?,
            }
            let expressions = sealed_expressions(&to, new, table, family, &payload)?;
            cells.push((cell, expressions));
        }
        Ok(cells)
    }

    /// The cipher of a column as it is.
    fn cipher_before(
        &self,
        table: &Table,
        column: &Column,
    ) -> Outcome<std::sync::Arc<ColumnCipher>> {
        let damaged = || Failure::refused(&errors::DAMAGED, &column.name);
        let protection = column.protection.as_ref().ok_or_else(damaged)?;
        let cells = CellFormat::from_numbers(protection.suite, protection.cell_version);
        let id = ColumnId {
            table: table.table_id.ok_or_else(damaged)?,
            column: protection.column_id,
        };
        let join = protection.capabilities.join.as_deref();
        let keys = &self.shared.config.keys;
        keys.column_cipher(cells.ok_or_else(damaged)?, protection.key_id, id, join)
            .map_err(|e| Failure::key(&e, &column.name))
    }

    /// Columns that the server sets to the present time when a row changes. Here none does.
    fn columns_with_on_update(&mut self, table: &Table) -> Outcome<Vec<String>> {
        let show = format!(
            "SHOW COLUMNS FROM {} WHERE Extra LIKE '%on update%'",
            path(table)
        );
        let rows = self.server.rows(show.as_bytes())?;
        let names = rows.into_iter().filter_map(|row| row.into_iter().next()?);
        Ok(names
            .map(|name| identifier(&String::from_utf8_lossy(&name)))
            .collect())
    }

    fn fill(
        &mut self,
        refill: &Refill<'_>,
        enc: &str,
        helpers: &[String],
        updated: &[String],
        cells: &[Resealed],
    ) -> Outcome<()> {
        let mut rest = cells;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = rest.iter().take(BATCH_ROWS).take_while(|(cell, new)| {
                let fits = bytes < BATCH_BYTES;
                let texts: usize = new.iter().map(|(_, text)| text.len()).sum();
                bytes += 2 * cell.len() * (helpers.len() + 1) + texts;
                fits
            });
            let (batch, behind) = rest.split_at(fits.count());
            rest = behind;
            let mut set = Vec::new();
            for (at, helper) in helpers.iter().enumerate() {
                let mut case = format!("{helper} = CASE {enc}");
                for (cell, new) in batch {
                    let _ = write!(case, " WHEN {} THEN {}", hex(cell), new[at].1);
                }
                set.push(case + " END");
            }
            set.extend(updated.iter().map(|name| format!("{name} = {name}")));
            let list: Vec<String> = batch.iter().map(|(cell, _)| hex(cell)).collect();
            let update = format!(
                "UPDATE {} SET {} WHERE {enc} IN ({})",
                path(&refill.refit.table),
                set.join(", "),
                list.join(", ")
            );
            // with room for the command's byte
            if update.len() >= refill.packet {
                return Err(otherwise(
                    refill.refit,
                    "a value is longer than max_allowed_packet",
                ));
            }
            self.server.run(update.as_bytes())?;
        }
        Ok(())
    }

    /// Drops the columns that a failure, or a proxy that was killed, has left in a table.
    pub(crate) fn drop_helpers(&mut self, table: &Table) -> Outcome<()> {
        let show = format!(
            "SHOW FULL COLUMNS FROM {} LIKE '{HELPER_PREFIX}%'",
            path(table)
        );
        let rows = self.server.rows(show.as_bytes())?;
        // Field, and Comment behind all others
        let is_ours = |row: &Vec<Option<Vec<u8>>>| {
            row.last().and_then(Option::as_deref) == Some(HELPER_COMMENT.as_bytes())
        };
        let names = rows.into_iter().filter(is_ours);
        let names = names.filter_map(|row| row.into_iter().next()?);
        let drops: Vec<String> = names
            .map(|name| String::from_utf8_lossy(&name).into_owned())
            .map(|name| format!("DROP COLUMN {}", identifier(&name)))
            .collect();
        if drops.is_empty() {
            return Ok(());
        }
        let alter = format!("ALTER TABLE {} {}", path(table), drops.join(", "));
        self.server.run(alter.as_bytes()).map(|_| ())
    }
}

/// Whether a table's text may show columns that [`Session::drop_helpers`] drops.
pub(crate) fn has_helpers(physical: &str) -> bool {
    physical.contains(HELPER_PREFIX)
}

fn number(cell: &[u8]) -> Option<u64> {
    std::str::from_utf8(cell).ok()?.parse().ok()
}

fn hex(bytes: &[u8]) -> String {
    let mut literal = Vec::new();
    put_hex(bytes, &mut literal);
    String::from_utf8_lossy(&literal).into_owned()
}
