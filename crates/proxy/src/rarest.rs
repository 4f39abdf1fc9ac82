//! Which grams of a pattern MySQL looks up: the rarest.
//!
//! MySQL's optimizer (9.7) takes the first of several `token MEMBER OF (c$gram)` beside AND to the
//! index, and reads its rows, however many they are. It knows from a dive into the index how many
//! rows each token has. EXPLAIN tells that for all tokens in one answer (0.7 ms for sixteen of
//! them, a million rows). So the proxy asks before it sends the statement, and puts the rarest
//! first. Without an answer any order is as right, and slower.
//!
//! The question is a round trip. So the answers are remembered for a minute ([`crate::gram_rows`]),
//! and nothing is asked where all grams are remembered, or one that few rows have.

use std::fmt::Write as _;
use std::sync::Arc;

use onionskin_physical::companions;
use onionskin_plan::{Piece, Purpose, Slot};
use onionskin_schema::identifier;
use onionskin_value::{Family, Pattern};

use crate::bind::{Binder, LookedUp, Values};
use crate::catalog::KeyedPlan;
use crate::error::{Failure, Outcome};
use crate::gram_rows::{is_known, sort};
use crate::session::Session;

/// Grams of a pattern that the server is asked about.
const ASKED_ABOUT: usize = 12;
/// Where EXPLAIN has the rows that it expects.
const ROWS: usize = 9;
/// What a question in between would change.
const ABOUT_THE_LAST: [&[u8]; 4] = [
    b"row_count",
    b"found_rows",
    b"warning_count",
    b"error_count",
];

impl Session {
    /// Whether every pattern of a text has grams, so that its indexes over grams can be used.
    /// Decides which grams are looked up.
    pub(crate) fn grams_of_all(
        &mut self,
        keyed: &KeyedPlan,
        text: &[Piece],
        values: Values,
    ) -> Outcome<bool> {
        self.buffers.looked_up.clear();
        if self.state.family == Family::MariaDb {
            return Binder::new(keyed, &self.state, values, &mut self.buffers).can_index(text);
        }
        let pieces = text.iter().filter_map(|piece| match piece {
            Piece::Indexed(inner) => Some(inner),
            _ => None,
        });
        for piece in pieces.flatten() {
            let Piece::Slot(Slot {
                column,
                purpose: Purpose::CandidateGram(escape, 0),
                source,
                among: _,
            }) = *piece
            else {
                continue;
            };
            let mut binder = Binder::new(keyed, &self.state, values, &mut self.buffers);
            let mut numbers = Vec::new();
            if let Pattern::Like(pattern) = binder.pattern(column, source, escape)? {
                let cipher = keyed.keys.cipher(column, &keyed.plan.columns[column])?;
                let tokens = companions::pattern_tokens(cipher, &pattern, ASKED_ABOUT);
                numbers.extend(tokens.into_iter().map(|token| token.number()));
            }
            if numbers.is_empty() {
                return Ok(false);
            }
            self.rarest_first(keyed, column, values, &mut numbers)?;
            self.buffers.looked_up.push(LookedUp {
                column,
                pattern: source,
                escape,
                numbers,
            });
        }
        Ok(true)
    }

    /// Sorts numbers by the rows that the server expects of each.
    fn rarest_first(
        &mut self,
        keyed: &KeyedPlan,
        column: usize,
        values: Values,
        numbers: &mut [u32],
    ) -> Outcome<()> {
        let statement = values.sql.to_ascii_lowercase();
        let asks = |words: &&[u8]| memchr::memmem::find(&statement, words).is_some();
        if numbers.len() < 2 || ABOUT_THE_LAST.iter().any(asks) {
            return Ok(());
        }
        let used = &keyed.plan.columns[column];
        let Some((gram, _)) = used.column().grams() else {
            return Ok(());
        };
        let memory = Arc::clone(&self.shared.gram_rows);
        // without an id the table may be another one by now
        let id = used.table.table_id.as_ref().map(|id| &id[..]);
        let keys: Vec<u64> = id.map_or(Vec::new(), |id| {
            let keys = numbers.iter().map(|number| memory.key(id, gram, *number));
            keys.collect()
        });
        let remembered: Vec<Option<u64>> = keys.iter().map(|key| memory.recall(*key)).collect();
        if id.is_some() && is_known(&remembered) {
            sort(numbers, &remembered);
            return Ok(());
        }
        let table = format!(
            "{}.{}",
            identifier(&used.table.database),
            identifier(&used.table.name)
        );
        let mut sql = String::from("EXPLAIN FORMAT=TRADITIONAL ");
        for (n, number) in numbers.iter().enumerate() {
            let union = if n > 0 { " UNION ALL " } else { "" };
            let gram = identifier(gram);
            let _ = write!(
                sql,
                "{union}SELECT 1 FROM {table} WHERE {number} MEMBER OF({gram})"
            );
        }
        let rows = match self.server.rows(sql.as_bytes()) {
            Ok(rows) => rows,
            Err(failure) if failure.ends_transaction() => return Err(failure),
            // whoever ends the statement means all of it
            Err(Failure::Server { code, .. }) if !matches!(code, 1317 | 3024) => {
                return self.server.settle();
            }
            Err(failure) => return Err(failure),
        };
        if rows.len() != numbers.len() {
            return Ok(());
        }
        let expected = |row: &Vec<Option<Vec<u8>>>| -> u64 {
            let cell = row.get(ROWS).and_then(Option::as_deref);
            let text = cell.and_then(|cell| std::str::from_utf8(cell).ok());
            text.and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        let told: Vec<u64> = rows.iter().map(expected).collect();
        for (key, rows) in keys.iter().zip(&told) {
            memory.keep(*key, *rows);
        }
        let told: Vec<Option<u64>> = told.into_iter().map(Some).collect();
        sort(numbers, &told);
        Ok(())
    }
}
