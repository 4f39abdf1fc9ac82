//! The unique keys of a table, as the server shows them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Outcome;
use crate::session::Session;
use crate::unique_keys::{KeyColumn, Keys, UniqueKey};

/// How old what is known of a table's keys may be.
const RECHECK: Duration = Duration::from_secs(1);

impl Session {
    /// The unique keys of a table.
    pub(crate) fn unique_keys(&mut self, target: &str) -> Outcome<Keys> {
        let place = (self.state.database.clone(), target.to_owned());
        if let Some((at, keys)) = self.unique_keys.0.get(&place)
            && at.elapsed() < RECHECK
        {
            return Ok(Arc::clone(keys));
        }
        let rows = self
            .server
            .rows(format!("SHOW INDEX FROM {target}").as_bytes())?;
        let mut keys: Vec<UniqueKey> = Vec::new();
        for row in &rows {
            let cell = |n: usize| {
                let cell: Option<&[u8]> = row.get(n).and_then(Option::as_deref);
                cell.map(|cell| String::from_utf8_lossy(cell).into_owned())
            };
            if cell(1).as_deref() != Some("0") {
                continue;
            }
            let name = cell(2).unwrap_or_default();
            if keys.last().is_none_or(|key| key.name != name) {
                keys.push(UniqueKey {
                    name,
                    ..UniqueKey::default()
                });
            }
            let Some(key) = keys.last_mut() else { continue };
            match cell(4) {
                Some(name) => key.columns.push(KeyColumn {
                    name,
                    prefix: cell(7).and_then(|prefix| prefix.parse().ok()),
                }),
                None => key.computed = true,
            }
        }
        let keys: Keys = Arc::new(keys);
        if self.unique_keys.0.len() >= 256 {
            self.unique_keys.0.clear();
        }
        self.unique_keys
            .0
            .insert(place, (Instant::now(), Arc::clone(&keys)));
        Ok(keys)
    }
}
