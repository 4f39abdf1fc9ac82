//! Comparing the two tables before one takes the other's place.
//!
//! Both are read in one snapshot while nothing of ours is written. They differ in rows that have
//! changed since changes were last written, and those are known: they are pending. What differs
//! beyond that is wrong, is written once more and reported.
//!
//! Columns that the server copied are compared by it: 64 bits of SHA-256 for each row (MySQL has no
//! MD5 any more), combined by XOR for a chunk. What is digested is one digest for each column, so
//! that it is never longer than a server's `max_allowed_packet`. Sealed cells are read, opened and
//! compared by the transform.

use std::collections::HashMap;
use std::time::Instant;

use onionskin_schema::identifier;
use parking_lot::Mutex;

use crate::RowError;
use crate::copy::{Chunk, Cursor};
use crate::key::{Key, column_of};
use crate::route::{Route, split};
use crate::session::{Session, SqlError};

impl Route {
    /// The digest of a row as an expression over `table`; `is_source` tells which names the columns
    /// have.
    fn digest(&self, table: &str, is_source: bool) -> String {
        let mut parts = Vec::new();
        for column in &self.copied {
            let Some(compared) = &column.compared else {
                continue;
            };
            let name = match (is_source, &column.source) {
                (true, Some(source)) => column_of(table, source),
                (true, None) => column.constant.clone(),
                (false, _) => column_of(table, &column.target),
            };
            let value = compared.replace("{}", &name);
            parts.push(format!("IF({name} IS NULL, 'N', SHA2({value}, 256))"));
        }
        if parts.is_empty() {
            return "0".into();
        }
        // What a server cannot compute (a value beyond max_allowed_packet) is NULL: it must not be
        // equal to anything.
        format!(
            "COALESCE(CAST(CONV(LEFT(SHA2(CONCAT({}), 256), 16), 16, 10) AS UNSIGNED), CAST(RAND() * 1e18 AS UNSIGNED))",
            parts.join(", ")
        )
    }

    fn side(&self, is_source: bool) -> (&str, &str) {
        match is_source {
            true => (&self.source, &self.key.index),
            false => (&self.target, &self.key.index),
        }
    }

    fn chunk_digest(
        &self,
        session: &mut Session,
        is_source: bool,
        chunk: &Chunk,
    ) -> Result<(String, u64), SqlError> {
        let (table, _) = self.side(is_source);
        let rows = session.texts(&format!(
            "SELECT COUNT(*), COALESCE(BIT_XOR({}), 0) FROM {} WHERE {}",
            self.digest(table, is_source),
            identifier(table),
            self.key
                .range(table, chunk.from.as_ref(), chunk.to.as_ref()),
        ))?;
        let row = rows.into_iter().next().unwrap_or_default();
        let cell = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        Ok((
            format!("{}/{}", cell(0), cell(1)),
            cell(0).parse().unwrap_or(0),
        ))
    }

    /// The digest of every row for which the condition holds, by key.
    fn row_digests(
        &self,
        session: &mut Session,
        is_source: bool,
        condition: impl Fn(&str) -> String,
    ) -> Result<HashMap<Key, Vec<u8>>, RowError> {
        let (table, _) = self.side(is_source);
        let rows = session.rows(&format!(
            "SELECT {}, {} FROM {} WHERE {}",
            self.key.select_list(table),
            self.digest(table, is_source),
            identifier(table),
            condition(table),
        ))?;
        rows.into_iter()
            .map(|row| {
                let (key, rest) = split(row, &self.key)?;
                Ok((key, rest.into_iter().flatten().next().unwrap_or_default()))
            })
            .collect()
    }

    /// The keys of rows that are not the same in both tables, in the session's snapshot.
    fn differences(
        &self,
        session: &mut Session,
        condition: impl Fn(&str) -> String,
    ) -> Result<Vec<Key>, RowError> {
        let source = self.row_digests(session, true, &condition)?;
        let mut target = self.row_digests(session, false, &condition)?;
        let mut different = Vec::new();
        for (key, digest) in source {
            if target.remove(&key).as_ref() != Some(&digest) {
                different.push(key);
            }
        }
        different.extend(target.into_keys());
        Ok(different)
    }

    /// The keys of rows whose computed columns are not what they should be, in the session's
    /// snapshot. Rows that are missing on one side are found by [`Self::differences`].
    fn computed_differences(
        &self,
        session: &mut Session,
        condition: &str,
    ) -> Result<Vec<Key>, RowError> {
        let Some(transform) = &self.transform else {
            return Ok(Vec::new());
        };
        let mut list = vec![self.key.select_list(&self.source)];
        let inputs = transform.inputs(&self.source);
        let width = inputs.len();
        list.extend(inputs);
        list.extend(transform.stored(&self.target));
        let join: Vec<String> = self
            .key
            .columns
            .iter()
            .map(|column| {
                format!(
                    "{} = {}",
                    column_of(&self.source, &column.name),
                    column_of(&self.target, &column.name)
                )
            })
            .collect();
        let rows = session.rows(&format!(
            "SELECT STRAIGHT_JOIN {} FROM {} FORCE INDEX ({}) JOIN {} ON {} WHERE {condition}",
            list.join(", "),
            identifier(&self.source),
            identifier(&self.key.index),
            identifier(&self.target),
            join.join(" AND "),
        ))?;
        let mut different = Vec::new();
        for row in rows {
            let (key, mut inputs) = split(row, &self.key)?;
            let stored = inputs.split_off(width.min(inputs.len()));
            // A cell that cannot be opened differs.
            if !transform.agrees(&inputs, &stored).unwrap_or(false) {
                different.push(key);
            }
        }
        Ok(different)
    }
}

/// Compares chunks until `until` or the end. Keys of rows that differ are added to `different`.
pub fn compare(
    cursor: &Cursor,
    session: &mut Session,
    route: &Route,
    until: Instant,
    different: &Mutex<Vec<Key>>,
) -> Result<(), RowError> {
    while Instant::now() < until {
        let Some(chunk) = cursor.take(session, route)? else {
            break;
        };
        let begun = Instant::now();
        let mut found = Vec::new();
        let rows = in_snapshot(session, |session| {
            let (source, rows) = route.chunk_digest(session, true, &chunk)?;
            let (target, _) = route.chunk_digest(session, false, &chunk)?;
            let condition = |table: &str| {
                route
                    .key
                    .range(table, chunk.from.as_ref(), chunk.to.as_ref())
            };
            if source != target {
                found = route.differences(session, condition)?;
                if found.is_empty() {
                    return Err(RowError::Unexplained);
                }
            }
            found.extend(route.computed_differences(session, &condition(&route.source))?);
            Ok(rows)
        })?;
        cursor.took(rows, begun.elapsed());
        different.lock().extend(found);
    }
    Ok(())
}

/// Which of these rows differ now; there may be none.
pub fn compare_keys(
    session: &mut Session,
    route: &Route,
    keys: &[Key],
) -> Result<Vec<Key>, RowError> {
    let mut found = Vec::new();
    for batch in keys.chunks(route.key.batch()) {
        in_snapshot(session, |session| {
            let condition = |table: &str| route.key.among(table, batch);
            found.extend(route.differences(session, condition)?);
            found.extend(route.computed_differences(session, &condition(&route.source))?);
            Ok(())
        })?;
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Reads of both tables that see them at one moment.
fn in_snapshot<T>(
    session: &mut Session,
    read: impl FnOnce(&mut Session) -> Result<T, RowError>,
) -> Result<T, RowError> {
    session.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
    session.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")?;
    let done = read(session);
    session.run("COMMIT")?;
    done
}
