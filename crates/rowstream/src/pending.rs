//! What has changed since it was last written: the last thing that happened to each key.
//!
//! The binary log tells *which* rows changed. What they hold now is read from the table itself,
//! when they are written: so every type arrives exactly, and a row that changed a hundred times is
//! written once. That is right because of three facts, which hold together:
//!
//! 1. **A row is read after its change is visible.** An event may be delivered before its
//!    transaction is visible to other sessions (group commit, semi-synchronous replication). The
//!    engine therefore commits a *mark* of its own in between: servers make transactions visible in
//!    the order of the binary log, so once the mark's commit has returned, everything that was
//!    delivered before it was written can be read. (`binlog_order_commits=OFF` is refused.)
//! 2. **Whatever is stale has an event to come.** If a row read now holds a newer value than the
//!    event said, the event of that newer value follows, and the row is written again. The same
//!    goes for rows that meet on a unique key: REPLACE may remove a row that holds the value in the
//!    new table only. In the old table two rows never hold it at once, so the removed row's own
//!    change is younger than what was written of it, and it comes back with its event.
//! 3. **Deletions first, then a barrier, then the rest.** Keys are told apart by bytes, so `'a'`
//!    deleted and `'A'` inserted are two entries though the collation takes them for one. A before
//!    image holds the bytes that were stored, so the last entry of each spelling is right, and a
//!    deletion never hits a row that was written after it.
//!
//! Copying and writing of changes take turns, so that no chunk that was read before a change is
//! written after it.

use std::collections::HashMap;

use crate::key::{Key, KeyDefinition};

/// The last thing that happened to each key.
#[derive(Default)]
pub struct Pending {
    keys: HashMap<Key, Last>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Last {
    /// The row was deleted, or its key became another.
    Gone,
    /// It was inserted or updated.
    Written,
}

/// One row's change: its key before, if it was there before, and after, if it is there after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyChange {
    /// `None` for an insert.
    pub before: Option<Key>,
    /// `None` for a deletion.
    pub after: Option<Key>,
}

/// Keys to be written, in two phases.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Phase one: these rows are deleted from the new table.
    pub deletions: Vec<Key>,
    /// Phase two: these are read again and replaced.
    pub replacements: Vec<Key>,
}

impl Pending {
    /// Takes a change in, in the order of the binary log.
    pub fn absorb(&mut self, change: KeyChange) {
        if let Some(before) = change.before
            && change.after.as_ref() != Some(&before)
        {
            self.keys.insert(before, Last::Gone);
        }
        if let Some(after) = change.after {
            self.keys.insert(after, Last::Written);
        }
    }

    /// How many keys wait.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether something happened to the key.
    pub fn contains(&self, key: &Key) -> bool {
        self.keys.contains_key(key)
    }

    /// Takes back what could not be written, as if it had happened before everything that waits.
    pub fn give_back(&mut self, work: Work) {
        for key in work.deletions {
            self.keys.entry(key).or_insert(Last::Gone);
        }
        for key in work.replacements {
            self.keys.entry(key).or_insert(Last::Written);
        }
    }

    /// Takes everything out. Integers beyond `copied_to` are left away: those rows are copied
    /// later, and by then every change that was delivered so far can be read.
    pub fn take(&mut self, definition: &KeyDefinition, copied_to: Option<i128>) -> Work {
        let mut work = Work::default();
        for (key, last) in self.keys.drain() {
            let number = definition.number(&key);
            if let (Some(limit), Some(number)) = (copied_to, number)
                && number > limit
            {
                continue;
            }
            match last {
                Last::Gone => work.deletions.push(key),
                Last::Written => work.replacements.push(key),
            }
        }
        definition.sort(&mut work.deletions);
        definition.sort(&mut work.replacements);
        work
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{KeyColumn, KeyKind};

    fn key(text: &str) -> Key {
        Key(vec![text.as_bytes().to_vec()])
    }

    fn change(before: Option<&str>, after: Option<&str>) -> KeyChange {
        KeyChange {
            before: before.map(key),
            after: after.map(key),
        }
    }

    fn definition(kind: KeyKind) -> KeyDefinition {
        KeyDefinition {
            index: "PRIMARY".into(),
            columns: vec![KeyColumn {
                name: "k".into(),
                kind,
                ordinal: 0,
                unsigned: false,
                column_type: String::new(),
            }],
        }
    }

    #[test]
    fn the_last_change_of_a_key_wins() {
        let mut pending = Pending::default();
        pending.absorb(change(None, Some("1")));
        pending.absorb(change(Some("1"), None));
        pending.absorb(change(Some("2"), None));
        pending.absorb(change(None, Some("2")));
        pending.absorb(change(Some("3"), Some("4")));
        let work = pending.take(&definition(KeyKind::Integer), None);
        assert_eq!(work.deletions, [key("1"), key("3")]);
        assert_eq!(work.replacements, [key("2"), key("4")]);
        assert!(pending.is_empty());
    }

    #[test]
    fn spellings_of_one_key_are_deleted_before_they_are_written() {
        let mut pending = Pending::default();
        pending.absorb(change(Some("a"), Some("A")));
        let text = KeyKind::Text {
            charset: "utf8mb4".into(),
        };
        let work = pending.take(&definition(text), None);
        assert_eq!(
            (work.deletions, work.replacements),
            (vec![key("a")], vec![key("A")])
        );
    }

    #[test]
    fn what_is_given_back_is_older_than_what_waits() {
        let mut pending = Pending::default();
        pending.absorb(change(None, Some("1")));
        pending.absorb(change(None, Some("2")));
        let work = pending.take(&definition(KeyKind::Integer), None);
        pending.absorb(change(Some("2"), None));
        pending.give_back(work);
        let work = pending.take(&definition(KeyKind::Integer), None);
        assert_eq!(
            (work.deletions, work.replacements),
            (vec![key("2")], vec![key("1")])
        );
    }

    #[test]
    fn before_the_first_row_is_copied_all_numbers_are_left_to_the_copy() {
        let mut pending = Pending::default();
        pending.absorb(change(Some("-9223372036854775808"), None));
        pending.absorb(change(None, Some("0")));
        let work = pending.take(&definition(KeyKind::Integer), Some(i128::MIN));
        assert_eq!(work, Work::default());
    }

    #[test]
    fn rows_that_are_still_to_be_copied_are_left_to_the_copy() {
        let mut pending = Pending::default();
        for number in ["9", "10", "11"] {
            pending.absorb(change(Some(number), Some(number)));
        }
        let work = pending.take(&definition(KeyKind::Integer), Some(10));
        assert_eq!(work.replacements, [key("9"), key("10")]);
    }
}
