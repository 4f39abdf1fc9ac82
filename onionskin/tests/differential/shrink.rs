//! From a case that shows a difference to a small one that shows the same kind of difference.

use super::comparison::Difference;
use super::lane::Lane;
use super::script::{Case, Step};
use std::time::{Duration, Instant};

/// The smallest case found within the time that shows the same kind of difference.
pub fn shrink(lane: Lane, case: &Case, difference: &Difference, limit: Duration) -> Case {
    let until = Instant::now() + limit;
    let mut best = case.clone();
    let mut shrinker = Shrinker {
        lane,
        kind: &difference.kind,
        until,
    };
    // What comes after the difference has nothing to do with it.
    let mut candidate = case.clone();
    candidate.steps.truncate(difference.step + 1);
    shrinker.attempt(&mut best, candidate);
    loop {
        let before = size(&best);
        shrinker.drop_tables(&mut best);
        shrinker.drop_steps(&mut best);
        shrinker.drop_rows(&mut best);
        shrinker.drop_parts(&mut best);
        if size(&best) == before || Instant::now() > until {
            return best;
        }
    }
}

fn size(case: &Case) -> usize {
    case.script(true).len()
}

struct Shrinker<'a> {
    lane: Lane,
    kind: &'a str,
    until: Instant,
}

impl Shrinker<'_> {
    fn still_fails(&self, case: &Case) -> bool {
        Instant::now() < self.until
            && self
                .lane
                .run(case)
                .differences
                .iter()
                .any(|difference| difference.kind == self.kind)
    }

    /// Takes a candidate if it still shows the difference.
    fn attempt(&mut self, best: &mut Case, candidate: Case) -> bool {
        let fails = self.still_fails(&candidate);
        if fails {
            *best = candidate;
        }
        fails
    }

    /// Leaves out whole tables, with the INSERTs into them.
    fn drop_tables(&mut self, best: &mut Case) {
        let mut table = best.tables.len();
        while table > 0 && best.tables.len() > 1 {
            table -= 1;
            let mut candidate = best.clone();
            candidate.tables.remove(table);
            candidate
                .steps
                .retain(|step| !matches!(step, Step::Insert(insert) if insert.table == table));
            for step in &mut candidate.steps {
                if let Step::Insert(insert) = step
                    && insert.table > table
                {
                    insert.table -= 1;
                }
            }
            self.attempt(best, candidate);
        }
    }

    fn drop_steps(&mut self, best: &mut Case) {
        let mut chunk = best.steps.len().div_ceil(2).max(1);
        loop {
            let mut at = 0;
            while at < best.steps.len() {
                let mut candidate = best.clone();
                let end = (at + chunk).min(candidate.steps.len());
                candidate.steps.drain(at..end);
                if !self.attempt(best, candidate) {
                    at += chunk;
                }
            }
            if chunk == 1 {
                return;
            }
            chunk /= 2;
        }
    }

    fn drop_rows(&mut self, best: &mut Case) {
        for step in 0..best.steps.len() {
            while let Step::Insert(insert) = &best.steps[step] {
                let count = insert.rows.len();
                let mut chunk = count / 2;
                let mut dropped = false;
                while chunk > 0 && !dropped {
                    for at in (0..count).step_by(chunk) {
                        let mut candidate = best.clone();
                        let Step::Insert(insert) = &mut candidate.steps[step] else {
                            break;
                        };
                        insert.rows.drain(at..(at + chunk).min(count));
                        if !insert.rows.is_empty() && self.attempt(best, candidate) {
                            dropped = true;
                            break;
                        }
                    }
                    chunk /= 2;
                }
                if !dropped {
                    break;
                }
            }
        }
    }

    /// Keys, columns, defaults, protections, and the binary protocol.
    fn drop_parts(&mut self, best: &mut Case) {
        for table in 0..best.tables.len() {
            let mut key = best.tables[table].keys.len();
            while key > 0 {
                key -= 1;
                let mut candidate = best.clone();
                candidate.tables[table].keys.remove(key);
                self.attempt(best, candidate);
            }
            let mut column = best.tables[table].columns.len();
            while column > 1 {
                column -= 1;
                self.drop_column(best, table, column);
            }
            for column in 0..best.tables[table].columns.len() {
                let mut candidate = best.clone();
                let default = &mut candidate.tables[table].columns[column].default;
                if default.take().is_some() {
                    self.attempt(best, candidate);
                }
                let mut candidate = best.clone();
                let protection = &mut candidate.tables[table].columns[column].protection;
                if protection.take().is_some() {
                    self.attempt(best, candidate);
                }
            }
        }
        if best.found_rows {
            let mut candidate = best.clone();
            candidate.found_rows = false;
            self.attempt(best, candidate);
        }
    }

    fn drop_column(&mut self, best: &mut Case, table: usize, column: usize) {
        let mut candidate = best.clone();
        let removed = candidate.tables[table].columns.remove(column);
        for key in &mut candidate.tables[table].keys {
            key.columns.retain(|name| *name != removed.name);
        }
        candidate.tables[table]
            .keys
            .retain(|key| !key.columns.is_empty());
        for step in &mut candidate.steps {
            let Step::Insert(insert) = step else { continue };
            if insert.table != table {
                continue;
            }
            if let Some(at) = insert
                .columns
                .iter()
                .position(|(name, _)| *name == removed.name)
            {
                insert.columns.remove(at);
                for row in &mut insert.rows {
                    row.remove(at);
                }
            }
            for (_, number) in &mut insert.columns {
                if *number > column {
                    *number -= 1;
                }
            }
        }
        self.attempt(best, candidate);
    }
}
