//! Rows that `REPLACE` and `INSERT … ON DUPLICATE KEY UPDATE` meet.
//!
//! Such a row counts as affected only if it changes, and to the server a value that was sealed
//! again has changed. Tokens do not always tell (sealed columns, texts that are equal and not the
//! same). Then the cells of the rows that the new ones meet are read first, with one search by each
//! unique key. A cell that holds the new value already is sent again instead of a new one. Nothing
//! is locked: a row that changes in between counts as changed.
//!
//! A new row may also meet an earlier one of the same statement, or the row that an earlier one has
//! met. Then both get one cell.

mod keys;
mod searches;

use onionskin_schema::same_name;
use std::collections::HashMap;

use onionskin_plan::{OpenFrom, Piece, Purpose, ResultItem, Slot, Source, Upsert, errors};
use onionskin_value::Family;
use onionskin_wire::rows::TextRow;

use crate::bind::{Binder, Filled, Kept, StoreMode};
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::exchange::{ALL_ROWS, Question};
use crate::session::{Execution, Session};
use crate::unique_keys::{Keys, UniqueKey};

use self::searches::Searches;

/// Searches in one query.
const SEARCHES: usize = 64;
/// Searches that are queries of their own in a table with AUTO_INCREMENT on MySQL. A table that
/// stands twice in a query is opened twice. MySQL then learns of numbers that an INSERT has given,
/// even if it failed.
const SEARCHES_APART: usize = 8;
/// Bytes of conditions that are sent before the first answer is read.
const SENT_AT_ONCE: usize = 16 << 10;
/// A temporary table named twice.
const CANNOT_REOPEN: u16 = 1137;

/// A search for the row that a new one meets.
struct Search {
    row: usize,
    key: usize,
    condition: Vec<u8>,
    /// The same for rows that meet each other under the key.
    identity: Vec<u8>,
}

/// A row that a new one meets: its cells and their payloads, in the order of [`Upsert::columns`]
/// and then of [`Upsert::constants`].
type Met = Vec<(Option<Vec<u8>>, Option<Vec<u8>>)>;

/// What becomes of the rows of a statement, one after the other.
#[derive(Default)]
struct Rows<'r> {
    /// Of each row of the table that was inserted or met, the new row that has written it last.
    written: Vec<usize>,
    /// The places of these new rows in `written`, by the key under which each was inserted or met.
    by_key: HashMap<(usize, &'r [u8]), usize>,
    /// The same the other way: the keys of each of these rows.
    keys: Vec<Vec<(usize, &'r [u8])>>,
    /// Those that stood there before, by their cells: sealed ones tell rows apart.
    there: HashMap<&'r Met, usize>,
    /// What becomes of each key of a row that is met.
    moves: &'r [Move],
}

/// What becomes of a key of a row that is met.
#[derive(Clone, Copy, PartialEq)]
enum Move {
    /// It stays.
    None,
    /// The row gets the new row's key.
    ToNew,
    /// The row gets another key, which is not known.
    Away,
}

impl Move {
    fn of(key: &UniqueKey, upsert: &Upsert) -> Self {
        let assigned = |column: &String| {
            let mut all = upsert.assigned.iter().rev();
            all.find(|a| same_name(&a.column, column))
        };
        let assigned: Vec<_> = key.columns.iter().map(|c| assigned(&c.name)).collect();
        if assigned.iter().all(Option::is_none) {
            Move::None
        } else if assigned.iter().all(|a| a.is_some_and(|a| a.as_new)) {
            Move::ToNew
        } else {
            Move::Away
        }
    }
}

/// What a new row meets.
enum Meeting<'r> {
    /// Nothing: it is inserted.
    None,
    /// A row that an earlier new one has written.
    Row(usize),
    /// A row of the table.
    Old(&'r Met),
}

impl<'r> Rows<'r> {
    /// A new row, its searches, and what they have found, each with the number of its key.
    fn meet(
        &mut self,
        row: usize,
        searches: &[&'r Search],
        old: &'r [(usize, Met)],
    ) -> Meeting<'r> {
        let found = searches.iter().find_map(|search| self.find(search, old));
        let place = match &found {
            Some((_, Ok(known))) => *known,
            Some((_, Err(_))) | None => self.written.len(),
        };
        let before = match self.written.get_mut(place) {
            Some(written) => Some(std::mem::replace(written, row)),
            None => {
                self.written.push(row);
                self.keys.push(Vec::new());
                None
            }
        };
        let met = found.as_ref().map(|(key, _)| *key);
        self.note_keys(place, searches, met);
        match (found, before) {
            (_, Some(before)) => Meeting::Row(before),
            (Some((_, Err(cells))), None) => {
                if cells.iter().any(|(cell, _)| cell.is_some()) {
                    self.there.insert(cells, place);
                }
                Meeting::Old(cells)
            }
            (_, None) => Meeting::None,
        }
    }

    /// What a search finds: the key, and the place of a row that an earlier new one has written, or
    /// a row of the table.
    fn find(
        &self,
        search: &'r Search,
        old: &'r [(usize, Met)],
    ) -> Option<(usize, Result<usize, &'r Met>)> {
        let key = search.key;
        // an earlier row of the statement stands before a row of the table under the same key
        if let Some(known) = self.by_key.get(&(key, search.identity.as_slice())) {
            return Some((key, Ok(*known)));
        }
        let (_, cells) = old.iter().find(|(of, _)| *of == key)?;
        match self.there.get(cells) {
            Some(_) if self.moves.get(key) != Some(&Move::None) => None,
            Some(known) => Some((key, Ok(*known))),
            None => Some((key, Err(cells))),
        }
    }

    /// Notes under which keys the row stands that a new one was inserted as, or has met by a key.
    fn note_keys(&mut self, place: usize, searches: &[&'r Search], met: Option<usize>) {
        let keys = &mut self.keys[place];
        if met.is_some() {
            let moves = self.moves;
            let stays = |key: &(usize, &[u8])| moves.get(key.0) == Some(&Move::None);
            for key in keys.extract_if(.., |key| !stays(key)) {
                if self.by_key.get(&key) == Some(&place) {
                    self.by_key.remove(&key);
                }
            }
        }
        for search in searches {
            let stands = match (met, self.moves.get(search.key)) {
                (None, _) | (Some(_), Some(Move::ToNew)) => true,
                (Some(met), Some(Move::None)) => met == search.key,
                _ => false,
            };
            if stands {
                let key = (search.key, search.identity.as_slice());
                if self.by_key.insert(key, place) != Some(place) {
                    keys.push(key);
                }
            }
        }
    }
}

/// A new row's cells as the plan has them, and where its literals begin.
struct NewRow<'p> {
    cells: &'p [(String, Vec<Piece>)],
    base: usize,
    /// As in [`Binder::fill`].
    number: u64,
}

impl NewRow<'_> {
    /// The slot of a column's sealed cell.
    fn seal(&self, column: usize) -> Option<Slot> {
        let pieces = self.cells.iter().flat_map(|(_, text)| text);
        pieces
            .filter_map(|piece| match piece {
                Piece::Slot(slot) => Some(*slot),
                _ => None,
            })
            .find(|slot| slot.column == column && slot.purpose == Purpose::Seal)
    }
}

fn new_row(upsert: &Upsert, n: usize) -> NewRow<'_> {
    let (cells, base, number) = match upsert.folded {
        Some((first, per_row)) => (&upsert.rows[0], first + n * per_row, n as u64 + 1),
        None => (&upsert.rows[n], 0, 1),
    };
    NewRow {
        cells,
        base,
        number,
    }
}

/// How many rows a statement has.
fn count_of(execution: &Execution, upsert: &Upsert) -> usize {
    match upsert.folded {
        Some(_) => execution.rows,
        None => upsert.rows.len(),
    }
}

impl Session {
    /// Reads which cells are to be sent again; the binder finds them in the scratch buffers. What
    /// is wrong with a value, a table or a privilege is left for the statement itself to find.
    pub fn keep_cells(&mut self, execution: &Execution, upsert: &Upsert) -> Outcome<()> {
        self.buffers.kept = Kept::default();
        let kept = match self.searches(execution, upsert) {
            Ok(Searches::Unclear(about)) => {
                return Err(Failure::refused(&errors::MET_ROW, about));
            }
            Ok(Searches::All(keys, searches)) => {
                self.kept_cells(execution, upsert, &keys, &searches)
            }
            Err(failure) => Err(failure),
        };
        match kept {
            Ok(kept) => self.buffers.kept = kept,
            // the statement itself will find these, or has no use for a text that does not convert
            Err(
                Failure::Value(_)
                | Failure::Refused(_)
                | Failure::Server {
                    code: 1046 | 1049 | 1054 | 1146 | 1267 | 1292 | 1366 | 1525 | 3854 | 3988,
                    ..
                },
            ) => self.server.settle()?,
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    fn kept_cells(
        &mut self,
        execution: &Execution,
        upsert: &Upsert,
        keys: &Keys,
        searches: &[Search],
    ) -> Outcome<Kept> {
        let (keyed, values) = (execution.keyed, execution.values);
        let ignore = execution.mode.ignore;
        let met = self.search_all(keyed, upsert, searches)?;
        let mut binder = Binder::new(keyed, &self.state, values, &mut self.buffers);
        binder.mode = StoreMode {
            ignore,
            lenient_nulls: true,
        };
        let mut kept = Kept::default();
        let moves: Vec<Move> = keys.iter().map(|key| Move::of(key, upsert)).collect();
        let mut rows = Rows {
            moves: &moves,
            ..Rows::default()
        };
        let mut searches = searches.iter().peekable();
        for row in 0..count_of(execution, upsert) {
            let new = new_row(upsert, row);
            let mut own = Vec::new();
            while let Some(search) = searches.next_if(|search| search.row == row) {
                own.push(search);
            }
            let old = met.get(&row).map_or(&[][..], Vec::as_slice);
            match rows.meet(row, &own, old) {
                Meeting::Row(before) => {
                    let twin = new_row(upsert, before);
                    keep_twin(&mut binder, upsert, &new, &twin, &mut kept)?;
                }
                Meeting::Old(old) => keep_old(&mut binder, upsert, &new, old, &mut kept)?,
                Meeting::None => {}
            }
        }
        Ok(kept)
    }

    /// Reads the cells of the rows that searches find.
    fn search_all(
        &mut self,
        keyed: &KeyedPlan,
        upsert: &Upsert,
        searches: &[Search],
    ) -> Outcome<HashMap<usize, Vec<(usize, Met)>>> {
        let mut met = HashMap::new();
        let table = keyed.plan.columns.first().map(|used| &used.table);
        let mut columns = table.into_iter().flat_map(|table| &table.columns);
        let counts = self.state.family == Family::MySql && columns.any(|c| c.auto_increment);
        // a locked table, and a temporary one, cannot be named twice in one query
        let size = match self.locked_tables || counts && searches.len() <= SEARCHES_APART {
            true => 1,
            false => SEARCHES,
        };
        // both sides may not wait for each other to read
        let bytes: usize = searches.iter().map(|search| search.condition.len()).sum();
        let at_once = match size == 1 && bytes <= SENT_AT_ONCE {
            true => SEARCHES_APART,
            false => 1,
        };
        for several in searches.chunks(size * at_once) {
            let chunks: Vec<&[Search]> = several.chunks(size).collect();
            match self.search(keyed, upsert, &chunks, &mut met) {
                Err(Failure::Server {
                    code: CANNOT_REOPEN,
                    ..
                }) => {
                    for one in several.chunks(1) {
                        self.search(keyed, upsert, &[one], &mut met)?;
                    }
                }
                done => done?,
            }
        }
        Ok(met)
    }

    /// Sends these queries at once, and reads what they find.
    fn search(
        &mut self,
        keyed: &KeyedPlan,
        upsert: &Upsert,
        queries: &[&[Search]],
        met: &mut HashMap<usize, Vec<(usize, Met)>>,
    ) -> Outcome<()> {
        let columns: Vec<usize> = upsert
            .columns
            .iter()
            .copied()
            .chain(upsert.constants.iter().map(|slot| slot.column))
            .collect();
        let cells: String = columns
            .iter()
            .map(|&c| {
                let name = keyed.plan.columns[c].sealed().replace('`', "``");
                format!(",`{name}`")
            })
            .collect();
        let mut questions = Vec::with_capacity(queries.len());
        for searches in queries {
            let mut sql = Vec::new();
            for search in *searches {
                if !sql.is_empty() {
                    sql.extend_from_slice(b" UNION ALL ");
                }
                let head = format!(
                    "(SELECT {},{}{cells} FROM {} WHERE ",
                    search.row, search.key, upsert.target
                );
                sql.extend_from_slice(head.as_bytes());
                sql.extend_from_slice(&search.condition);
                sql.extend_from_slice(b" LIMIT 1)");
            }
            if searches.len() > 1 {
                sql.extend_from_slice(ALL_ROWS.as_bytes());
            }
            questions.push(self.server.put_select(&sql)?);
        }
        self.server.flush()?;
        questions
            .into_iter()
            .try_for_each(|question| self.read_found(keyed, &columns, question, met))
    }

    /// Reads the rows that a query has found.
    fn read_found(
        &mut self,
        keyed: &KeyedPlan,
        columns: &[usize],
        question: Question,
        met: &mut HashMap<usize, Vec<(usize, Met)>>,
    ) -> Outcome<()> {
        let item = |open| ResultItem {
            open,
            ..ResultItem::plain()
        };
        let mut items = vec![item(None), item(None)];
        items.extend(columns.iter().map(|&c| item(Some((c, OpenFrom::Sealed)))));
        self.opened_rows(question, keyed, &items, |packet, payloads| {
            let raw = TextRow::new(packet)
                .map(|cell| cell.map(|c| c.map(<[u8]>::to_vec)))
                .collect::<Result<Vec<_>, _>>()
                .map_err(Failure::Backend)?;
            let number = |at: usize| -> usize {
                let text: Option<&[u8]> = raw.get(at).and_then(Option::as_deref);
                String::from_utf8_lossy(text.unwrap_or_default())
                    .parse()
                    .unwrap_or(usize::MAX)
            };
            let (row, key) = (number(0), number(1));
            let cells = raw.into_iter().zip(payloads).skip(2).collect();
            met.entry(row).or_default().push((key, cells));
            Ok(())
        })
    }
}

/// Keeps the cells of a row of the table that hold the new values.
fn keep_old(
    binder: &mut Binder,
    upsert: &Upsert,
    new: &NewRow,
    old: &Met,
    kept: &mut Kept,
) -> Outcome<()> {
    let (of_row, of_constants) = old.split_at(upsert.columns.len().min(old.len()));
    for (&column, (cell, payload)) in upsert.columns.iter().zip(of_row) {
        let (Some(slot), Some(cell)) = (new.seal(column), cell) else {
            continue;
        };
        if binder.payload(&slot, new)? == *payload
            && let Some(place) = place(upsert, &slot, new, 1)
        {
            kept.cells.insert(place, cell.clone());
        }
    }
    for (slot, (cell, payload)) in upsert.constants.iter().zip(of_constants) {
        let Some(cell) = cell else { continue };
        if binder.payload(slot, &NewRow::outside())? == *payload {
            kept.keep(slot.column, cell);
        }
    }
    Ok(())
}

/// The new row meets an earlier one of the statement: equal values get one cell.
fn keep_twin(
    binder: &mut Binder,
    upsert: &Upsert,
    new: &NewRow,
    twin: &NewRow,
    kept: &mut Kept,
) -> Outcome<()> {
    for &column in &upsert.columns {
        let (Some(slot), Some(first)) = (new.seal(column), twin.seal(column)) else {
            continue;
        };
        // two rows that both say DEFAULT share it rightly
        let rows = if slot.source == first.source { 2 } else { 1 };
        let payload = binder.payload(&slot, new)?;
        if payload.is_some()
            && payload == binder.payload(&first, twin)?
            && let (Some(to), Some(from)) = (
                place(upsert, &slot, new, rows),
                place(upsert, &first, twin, rows),
            )
        {
            let cell = kept.cell(binder, from, &first, twin)?;
            kept.cells.insert(to, cell);
        }
    }
    for slot in &upsert.constants {
        let Some(first) = twin.seal(slot.column) else {
            continue;
        };
        let payload = binder.payload(slot, &NewRow::outside())?;
        if payload.is_some()
            && payload == binder.payload(&first, twin)?
            && let Some(from) = place(upsert, &first, twin, 1)
        {
            let cell = kept.cell(binder, from, &first, twin)?;
            kept.keep(slot.column, &cell);
        }
    }
    Ok(())
}

impl Kept {
    fn keep(&mut self, column: usize, cell: &[u8]) {
        self.constants
            .entry(column)
            .or_default()
            .extend_from_slice(cell);
    }

    /// The cell that a new row will get; made now if it was not yet.
    fn cell(
        &mut self,
        binder: &mut Binder,
        place: (usize, Source, u64),
        slot: &Slot,
        row: &NewRow,
    ) -> Outcome<Vec<u8>> {
        if let Some(cell) = self.cells.get(&place) {
            return Ok(cell.clone());
        }
        let cell = match binder.fill(slot, row.base, row.number)? {
            Filled::Null => Vec::new(),
            Filled::Bytes(bytes) => bytes.to_vec(),
        };
        self.cells.insert(place, cell.clone());
        Ok(cell)
    }
}

/// Where the binder looks a cell up. Rows that are not folded cannot be told apart by their
/// defaults. All that take a column's default look in one place, which is wrong if they are more
/// than `rows`.
fn place(upsert: &Upsert, slot: &Slot, row: &NewRow, rows: usize) -> Option<(usize, Source, u64)> {
    let source = slot.source.behind(row.base);
    let sharing = || {
        (0..upsert.rows.len())
            .filter_map(|n| new_row(upsert, n).seal(slot.column))
            .filter(|other| other.source == slot.source)
            .count()
    };
    let certain = matches!(source, Source::Literal { .. } | Source::Omitted { .. })
        || upsert.folded.is_some()
        || sharing() <= rows;
    certain.then_some((slot.column, source, row.number))
}

impl NewRow<'_> {
    /// What stands behind the rows.
    fn outside() -> Self {
        NewRow {
            cells: &[],
            base: 0,
            number: 1,
        }
    }
}

impl Binder<'_> {
    /// The payload of a slot's value; `None` is NULL.
    fn payload(&mut self, slot: &Slot, row: &NewRow) -> Outcome<Option<Vec<u8>>> {
        let source = slot.source.behind(row.base);
        let payload = self.stored_payload_of(slot.column, source, row.number)?;
        Ok(payload.map(<[u8]>::to_vec))
    }
}
